//! Writes of many keys at once, without lock, pending version or transaction record.
//!
//! The caller holds the partition from the first step to the last, so nobody sees anything in between:
//!
//! 1. [`Partition::prepare_many`] finds each row, refuses what needs a transaction, lets `change` decide, and sees to everything that can fail.
//!    Nothing of the partition has changed; what is wanted stands in [`Prepared`].
//! 2. The caller appends the redo record of [`Prepared::writes`], which decides the commit time. If that fails, nothing has happened.
//! 3. [`Partition::install_many`] makes the writes the newest committed versions. It cannot fail.
//!
//! A key needs a transaction if somebody holds or awaits a lock on its row or has written it, or if the table has range locks in this partition. Old versions,
//! tombstones and index entries follow the rules of a transaction's commit (`finish`), by the same functions.
//!
//! Memory is asked for while the writes are prepared: a slot of a page that has one is free, a new page must be within the limit. What a hold's rows need
//! beyond one page of their size is taken from the reserve, as are index leaves and history.

use super::collect::Garbage;
use super::fragment::Fragment;
use super::large::{self, Apart};
use super::many::{Found, MANY, Probe};
use super::side::RowKey;
use super::versions::flags;
use super::{Access, Horizon, Partition, Stop, Write, finish};
use crate::budget::{MemoryFull, Purpose};
use crate::row_store::{HEADER_BYTES, LARGEST_CLASS, RowHeader, RowId};
use rauk_types::{RowImage, TableId, Timestamp};
use std::ops::Range;

/// What a write makes of a row that was read (or was found missing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Leave it as it is.
    Keep,
    /// Store the row that was encoded into the buffer, in the newest layout and with the same primary key.
    Put,
    Delete,
}

/// Why a key was not written, or not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `change` was not called: it takes a transaction.
    Left,
    /// `change` was called, and the memory limit is reached.
    Full { limit: u64 },
}

/// A write that was decided on and checked.
#[derive(Clone, Debug)]
struct Planned {
    /// Position among the probes.
    number: u32,
    id: Option<RowId>,
    image: New,
}

/// What becomes of a row.
#[derive(Clone, Debug)]
enum New {
    Deleted,
    /// The new row in `Prepared::images`.
    Row(Range<u32>),
    Large(Box<Large>),
}

/// A new row with large values, and what the log is told.
#[derive(Clone, Debug)]
struct Large {
    apart: Apart,
    write: Vec<u8>,
    is_sparse: bool,
}

/// Writes between [`Partition::prepare_many`] and [`Partition::install_many`]. Kept by the caller and used again, it does not allocate.
#[derive(Debug, Default)]
pub struct Prepared {
    layout: u16,
    planned: Vec<Planned>,
    /// Of the planned writes' keys.
    hashes: Vec<u64>,
    images: Vec<u8>,
    /// What the record has of rows with large values.
    large_bytes: usize,
    row: Vec<u8>,
    /// Bytes that are wanted from the budget and not counted there.
    promised: u64,
    /// (position among the probes, why)
    pub refused: Vec<(usize, Refusal)>,
}

impl Prepared {
    fn clear(&mut self, layout: u16) {
        (self.layout, self.promised, self.large_bytes) = (layout, 0, 0);
        self.planned.clear();
        self.hashes.clear();
        self.images.clear();
        self.refused.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.planned.is_empty()
    }

    pub fn len(&self) -> usize {
        self.planned.len()
    }

    /// What the redo record must carry: position among the probes, and the change.
    pub fn writes<'a>(&'a self, probes: &'a [Probe<'_>]) -> impl Iterator<Item = (usize, Write<'a>)> {
        self.planned.iter().map(|planned| {
            let number = planned.number as usize;
            let layout = self.layout;
            let write = match &planned.image {
                New::Large(large) if large.is_sparse => Write::Sparse { layout, row: &large.write },
                New::Large(large) => Write::Put { layout, row: &large.write },
                New::Row(row) => Write::Put { layout, row: self.row(row) },
                New::Deleted => Write::Delete { key: probes[number].key },
            };
            (number, write)
        })
    }

    fn image<'a>(&'a self, planned: &'a Planned) -> Option<RowImage<'a>> {
        match &planned.image {
            New::Deleted => None,
            New::Row(row) => Some(self.row(row).into()),
            New::Large(large) => Some(large.apart.image()),
        }
    }

    fn row(&self, place: &Range<u32>) -> &[u8] {
        &self.images[place.start as usize..place.end as usize]
    }

    /// Nothing is written: what is planned holds no memory any more.
    pub fn forget(&mut self) {
        self.planned.clear();
    }
}

/// Bytes of new rows after which a call ends, so that a record and a hold stay small.
const ENOUGH_BYTES: usize = 64 << 10;

impl Partition {
    /// Decides on writes to up to [`MANY`] rows; gives how many of the probes it got through: it ends before a key that it has planned to write already, and
    /// when there is enough for one record. `change` is called with the position of a key, its newest committed row, and an empty buffer for the new one. Raises `access.observed` as a read does.
    pub fn prepare_many(
        &mut self,
        table: TableId,
        probes: &[Probe<'_>],
        access: &mut Access<'_>,
        prepared: &mut Prepared,
        change: &mut dyn FnMut(usize, Found<'_>, &mut Vec<u8>) -> Verb,
    ) -> Result<usize, Stop> {
        assert!(probes.len() <= MANY, "{} keys in one call", probes.len());
        let fragment = self.fragments.get(&table).ok_or(Stop::StaleSchema)?;
        prepared.clear(fragment.schema.layout().version);
        if self.ranges.is_used(table) || self.is_read_only {
            prepared.refused.extend((0..probes.len()).map(|i| (i, Refusal::Left)));
            return Ok(probes.len());
        }
        let guesses = fragment.guess(probes);
        for (i, (probe, guess)) in probes.iter().zip(guesses).enumerate() {
            if prepared.hashes.contains(&probe.hash) || prepared.images.len() + prepared.large_bytes >= ENOUGH_BYTES {
                return Ok(i);
            }
            let row = fragment.confirm(probe, guess);
            let id = row.map(|(id, _)| id);
            let found = match row.map(|(id, row)| (RowKey::new(table, id), row)) {
                None => None,
                Some((rk, _)) if self.locks.is_used(rk) || self.has_pending(fragment, rk) => {
                    prepared.refused.push((i, Refusal::Left));
                    continue;
                }
                Some((rk, row)) => {
                    let at = access.at;
                    let sight = self.versions.see_row(fragment, rk, row, at, access)?;
                    sight.map(|s| (s.layout, fragment.view(s.layout, s.bytes)))
                }
            };
            let exists = found.is_some();
            prepared.row.clear();
            match change(i, found, &mut prepared.row) {
                Verb::Keep => {}
                Verb::Delete if !exists => {}
                Verb::Delete => prepared.plan(i, probe.hash, id, New::Deleted),
                Verb::Put => {
                    let view = fragment.view(prepared.layout, &prepared.row);
                    assert!(fragment.primary.matches(&view, probe.key), "a row put under another's key");
                    match self.ask_for_room(fragment, id, exists, &prepared.row, prepared.promised) {
                        Ok((bytes, None)) => {
                            prepared.promised += bytes;
                            prepared.plan_row(i, probe.hash, id);
                        }
                        Ok((bytes, Some(large))) => {
                            prepared.promised += bytes;
                            prepared.large_bytes += large.write.len();
                            prepared.plan(i, probe.hash, id, New::Large(large));
                        }
                        Err(full) => prepared.refused.push((i, Refusal::Full { limit: full.limit })),
                    }
                }
            }
        }
        Ok(probes.len())
    }

    fn has_pending(&self, fragment: &Fragment, rk: RowKey) -> bool {
        self.versions.pending(rk, fragment.rows.header(rk.row())).is_some()
    }

    /// Makes what was prepared, in this hold, the newest committed versions, with the time that the log has decided.
    pub fn install_many(
        &mut self,
        table: TableId,
        probes: &[Probe<'_>],
        prepared: &mut Prepared,
        time: Timestamp,
        horizon: Horizon,
    ) {
        if prepared.is_empty() {
            return;
        }
        self.raise_finished(time);
        for planned in &prepared.planned {
            let hash = probes[planned.number as usize].hash;
            match (planned.id, prepared.image(planned)) {
                (None, Some(row)) => self.put_new(table, hash, prepared.layout, row, time),
                (Some(id), Some(row)) => self.put_over(RowKey::new(table, id), prepared.layout, row, time, horizon),
                (Some(id), None) => self.bury(RowKey::new(table, id), time),
                (None, None) => unreachable!("only rows that are there are deleted"),
            }
        }
        let written = prepared.planned.len();
        prepared.forget();
        self.throw_away(horizon, 2 * written + 2);
        self.enforce_history_limit(horizon);
        self.settle();
    }

    fn put_new(&mut self, table: TableId, hash: u64, layout: u16, row: RowImage<'_>, time: Timestamp) {
        let fragment = self.fragments.get_mut(&table).expect("a table in use");
        let header = RowHeader { time, layout, flags: 0 };
        let id = fragment.rows.insert(header, row, Purpose::Relief).expect("relief is not refused");
        fragment.link(hash, id);
        fragment.add_entries(id, layout, row, &mut self.scratch);
        fragment.count_in(id);
    }

    /// Over a committed row, or a tombstone.
    fn put_over(&mut self, rk: RowKey, layout: u16, row: RowImage<'_>, time: Timestamp, horizon: Horizon) {
        let fragment = self.fragments.get_mut(&rk.table()).expect("a table in use");
        let (old, bytes) = fragment.rows.get(rk.row());
        self.keys.clear();
        self.lost.clear();
        fragment.distinct_keys((layout, row), (old.layout, bytes), &mut self.keys, &mut self.scratch);
        let moved = self.keys.len() > 0;
        if moved {
            fragment.distinct_keys((old.layout, bytes), (layout, row), &mut self.lost, &mut self.scratch);
            fragment.add_listed(rk.row(), &self.keys);
        }
        let chained = old.flags & flags::SIDE != 0 && self.versions.get(rk).is_some_and(|s| !s.history.is_empty());
        let about = finish::Old { moved, chained, next: row.beside };
        let kept = finish::keep_old(fragment, &mut self.versions, rk, about, time, horizon);
        self.history_bytes = self.history_bytes + kept.now - kept.before;
        fragment.history_bytes = fragment.history_bytes + kept.now - kept.before;
        if kept.garbage {
            self.garbage.push_back(Garbage { time, key: rk });
        }
        fragment.count_out(rk.row());
        // A tombstone has a side entry.
        let sole = old.flags & flags::SIDE == 0 && !kept.garbage;
        let header = RowHeader { time, layout, flags: if sole { 0 } else { flags::SIDE } };
        fragment.rows.replace(rk.row(), header, row, Purpose::Relief).expect("relief is not refused");
        fragment.count_in(rk.row());
        if moved {
            fragment.drop_suspects(&self.versions, rk, &mut self.lost, &mut self.scratch);
        }
        if !sole {
            fragment.tidy(&mut self.versions, rk);
        }
    }

    /// Makes a tombstone of a committed row.
    fn bury(&mut self, rk: RowKey, time: Timestamp) {
        let fragment = self.fragments.get_mut(&rk.table()).expect("a table in use");
        let kept = fragment.bury(&mut self.versions, rk, time);
        self.history_bytes += kept;
        self.garbage.push_back(Garbage { time, key: rk });
    }
}

impl Prepared {
    /// The row that was encoded.
    fn plan_row(&mut self, number: usize, hash: u64, id: Option<RowId>) {
        let start = self.images.len() as u32;
        self.images.extend_from_slice(&self.row);
        self.plan(number, hash, id, New::Row(start..self.images.len() as u32));
    }

    fn plan(&mut self, number: usize, hash: u64, id: Option<RowId>, image: New) {
        self.planned.push(Planned { number: number as u32, id, image });
        self.hashes.push(hash);
    }
}

impl Partition {
    /// Whether a row may be put in the place of `id`, or as a new one; gives what that will take from the budget beyond a page, which `promised` sums up, and
    /// the row if it has large values, which are counted.
    fn ask_for_room(
        &self,
        fragment: &Fragment,
        id: Option<RowId>,
        exists: bool,
        row: &[u8],
        promised: u64,
    ) -> Result<(u64, Option<Box<Large>>), MemoryFull> {
        self.has_room_elsewhere()?;
        let layout = fragment.schema.layout();
        let before = id.filter(|_| exists).map_or(&[][..], |id| fragment.rows.get(id).1.beside);
        let apart = large::take_apart(&self.budget, layout, row, before, Purpose::Write)?;
        let image = large::image(row, &apart);
        let bytes = fragment.rows.wanted(id, image);
        if bytes > 0 {
            self.budget.check(promised + bytes, Purpose::Write)?;
        }
        let alone = HEADER_BYTES + image.head.len() > LARGEST_CLASS || !image.beside.is_empty();
        let bytes = if alone { bytes } else { 0 };
        let Some(apart) = apart else { return Ok((bytes, None)) };
        let mut room = Vec::new();
        let key = |key: &mut Vec<u8>| fragment.primary.encode_row(&fragment.view(layout.version, apart.image()), key);
        let write = large::written(layout, key, apart.image(), before, &mut room);
        let is_sparse = matches!(write, Write::Sparse { .. });
        Ok((bytes, Some(Box::new(Large { apart, write: room, is_sparse }))))
    }
}
