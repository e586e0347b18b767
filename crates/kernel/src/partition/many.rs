//! Reads of many keys at once.
//!
//! One key read of a row that no cache holds waits for memory three or four times, one after the other: hash index, directory, row. Here
//! all keys take each step before any takes the next, and what the next step needs is fetched ahead, so that the waits
//! of different keys fall together. The row that the index names first is only a guess (equal tags): it is compared with the key in the last
//! step, and a wrong guess is followed by an ordinary search.
//!
//! What a reader sees is decided by the same function as for one key (`VersionTable::see`).

use super::fragment::Fragment;
use super::side::RowKey;
use super::{Access, Partition, ReadAt, Stop};
use crate::row_store::{Location, RowHeader, RowId};
use rauk_types::{RowImage, RowView, TableId, TxnId};

/// Keys of one call: so many that their waits for memory overlap, and so few that a hold stays short.
pub const MANY: usize = 64;

/// An encoded primary key to look for, and its hash.
#[derive(Clone, Copy, Debug, Default)]
pub struct Probe<'a> {
    pub key: &'a [u8],
    pub hash: u64,
}

/// A row and the version of its layout; `None`: there is no such row.
pub type Found<'a> = Option<(u16, RowView<'a>)>;

/// A row that may be the one with a key, and where it lies.
#[derive(Clone, Copy)]
pub(super) struct Guess {
    id: u32,
    location: Location,
}

impl Guess {
    const NONE: Guess = Guess { id: u32::MAX, location: Location::NONE };
}

pub(super) type Guesses = [Guess; MANY];

/// How far [`Partition::read_many`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManyRead {
    /// Keys that it got through.
    pub keys: usize,
    /// Of these, how many were not visited.
    pub left_out: usize,
    /// The first prepared transaction for which a key was left out: until it is decided there is no use in asking again.
    pub prepared: Option<TxnId>,
}

/// Bytes of rows after which a call ends: copying them takes some 20 µs.
const ENOUGH_BYTES: usize = 256 << 10;

impl Partition {
    /// Consistent reads of up to [`MANY`] rows, without a lock. `visit` is called with the position of each key, in order, under the caller's hold of the partition. Keys
    /// whose answer depends on a commit that is being decided, or on a prepared transaction, are left out. Ends early when the rows were large. An error comes in the place of a visit and ends the call.
    pub fn read_many(
        &mut self,
        table: TableId,
        probes: &[Probe<'_>],
        access: &mut Access<'_>,
        visit: &mut dyn FnMut(usize, Found<'_>),
    ) -> Result<ManyRead, Stop> {
        assert!(probes.len() <= MANY, "{} keys in one call", probes.len());
        self.about_to_look(access.at);
        let fragment = self.fragments.get(&table).ok_or(Stop::StaleSchema)?;
        let guesses = fragment.guess(probes);
        let (mut left_out, mut bytes, mut prepared) = (0, 0, None);
        for (i, (probe, guess)) in probes.iter().zip(guesses).enumerate() {
            if bytes >= ENOUGH_BYTES {
                return Ok(ManyRead { keys: i, left_out, prepared });
            }
            let Some((id, row)) = fragment.confirm(probe, guess) else {
                match access.at {
                    ReadAt::Snapshot(time) if time < fragment.removed_floor => return Err(Stop::SnapshotTooOld),
                    _ => visit(i, None),
                }
                continue;
            };
            let at = access.at;
            match self.versions.see_row(fragment, RowKey::new(table, id), row, at, access) {
                Ok(sight) => {
                    bytes += sight.map_or(0, |s| s.bytes.size());
                    visit(i, sight.map(|s| (s.layout, fragment.view(s.layout, s.bytes))));
                }
                Err(Stop::Committing) => left_out += 1,
                Err(Stop::Prepared(txn)) => {
                    left_out += 1;
                    prepared = prepared.or(Some(txn));
                }
                Err(stop) => return Err(stop),
            }
        }
        Ok(ManyRead { keys: probes.len(), left_out, prepared })
    }
}

impl Fragment {
    /// For each key the row that the hash index names first, whose memory is on its way into the cache.
    pub(super) fn guess(&self, probes: &[Probe<'_>]) -> Guesses {
        let mut guesses = [Guess::NONE; MANY];
        for probe in probes {
            self.hash.prefetch(probe.hash);
        }
        for (guess, probe) in guesses.iter_mut().zip(probes) {
            if let Some(id) = self.hash.find(probe.hash, |_| true) {
                self.rows.prefetch_location(id);
                guess.id = id.0;
            }
        }
        for guess in guesses[..probes.len()].iter_mut().filter(|g| g.id != Guess::NONE.id) {
            guess.location = self.rows.prefetch_row(RowId(guess.id));
        }
        guesses
    }

    /// The row with this key: the guess, most often.
    #[inline]
    pub(super) fn confirm(&self, probe: &Probe<'_>, guess: Guess) -> Option<(RowId, (RowHeader, RowImage<'_>))> {
        if guess.id == Guess::NONE.id {
            return None;
        }
        let row = self.rows.at(guess.location);
        match self.primary.matches(&self.view(row.0.layout, row.1), probe.key) {
            true => Some((RowId(guess.id), row)),
            false => self.find(probe.key, probe.hash).map(|id| (id, self.rows.get(id))),
        }
    }
}
