//! The table as bytes: the state that a copy begins with, and that a checkpoint's anchor carries.
//!
//! A version and postcard. Clocks are left out. What is remembered of finished transactions is written as differences (about 4 bytes for each, at most some 250 kB).
//! Reading refuses what no table can be: it is checked against the invariants that the table asserts, so that bytes from a disk or a peer never bring one to fall.

use super::chunks::Chunks;
use super::memory::{COMMITS, Commits, TOMBSTONES, Tombstones, number};
use super::record::{Outcome, is_sorted};
use super::table::{Change, CutAt, Part, Prepared, Standing, TxnTable};
use bytes::Bytes;
use rauk_types::{Position, ProcessId, Timestamp, TxnId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Cuts came with 2, chunks with 3.
const VERSION: u8 = 3;
const WITHOUT_CHUNKS: u8 = 2;
const WITHOUT_CUTS: u8 = 1;

#[derive(Serialize, Deserialize)]
struct Stored {
    last: Position,
    stable: Position,
    /// Sorted.
    alone: Vec<(TxnId, Position, Timestamp, Bytes)>,
    /// Sorted.
    parts: Vec<(TxnId, Part)>,
    /// Oldest first: process, difference to the number before of the same process, difference to the time before.
    commits: Vec<(ProcessId, i64, i64)>,
    floors: Vec<(ProcessId, u64)>,
    floorless: ProcessId,
    tombstones: Vec<(ProcessId, i64)>,
}

impl TxnTable {
    pub fn encode(&self) -> Bytes {
        let (mut alone, mut parts) = (Vec::new(), Vec::new());
        for (txn, standing) in &self.standing {
            match standing {
                Standing::Alone { at, time, writes } => alone.push((*txn, *at, *time, writes.clone())),
                Standing::Part(part) => parts.push((*txn, Part::clone(part))),
            }
        }
        alone.sort_unstable_by_key(|(txn, ..)| *txn);
        parts.sort_unstable_by_key(|(txn, _)| *txn);

        let mut numbers = Numbers::default();
        let mut before = 0;
        let commits = self.commits.iter().map(|(txn, time)| {
            let difference = time.0.wrapping_sub(before) as i64;
            before = time.0;
            let (process, number) = numbers.difference(txn);
            (process, number, difference)
        });
        let commits = commits.collect();
        let mut numbers = Numbers::default();
        let stored = Stored {
            last: self.last,
            stable: self.stable,
            alone,
            parts,
            commits,
            floors: self.commits.floors().collect(),
            floorless: self.commits.floorless(),
            tombstones: self.tombstones.iter().map(|txn| numbers.difference(txn)).collect(),
        };
        let bytes = postcard::to_extend(&stored, vec![VERSION]).expect("a table can always be written");
        let bytes = postcard::to_extend(&self.cuts, bytes).expect("a table can always be written");
        postcard::to_extend(&self.chunks.store(), bytes).expect("a table can always be written").into()
    }

    /// `None`: these bytes are no table. All clocks begin `now`.
    pub fn decode(bytes: &[u8], now: Duration) -> Option<TxnTable> {
        let (version, rest) = bytes.split_first()?;
        let (stored, rest) = postcard::take_from_bytes::<Stored>(rest).ok()?;
        let (cuts, rest) = match *version {
            WITHOUT_CUTS => (VecDeque::new(), rest),
            WITHOUT_CHUNKS | VERSION => postcard::take_from_bytes::<VecDeque<CutAt>>(rest).ok()?,
            _ => return None,
        };
        let (chunks, rest) = match *version {
            VERSION => {
                let (chunks, rest) = postcard::take_from_bytes(rest).ok()?;
                (Chunks::restore(chunks, stored.stable, stored.last)?, rest)
            }
            _ => (Chunks::default(), rest),
        };
        let grows = |(a, b): (&CutAt, &CutAt)| a.at < b.at && b.at > stored.stable;
        let sound = cuts.iter().zip(cuts.iter().skip(1)).all(grows) && cuts.iter().all(|c| c.at <= stored.last);
        sound.then_some(())?;
        if !rest.is_empty() || stored.commits.len() > COMMITS || stored.tombstones.len() > TOMBSTONES {
            return None;
        }
        let (mut numbers, mut time, mut times) = (Numbers::default(), 0u64, Vec::with_capacity(stored.commits.len()));
        for (process, number, difference) in stored.commits {
            time = time.wrapping_add(difference as u64);
            times.push((numbers.sum(process, number)?, Timestamp(time)));
        }
        let mut table = TxnTable {
            last: stored.last,
            stable: stored.stable,
            commits: Commits::restore(&times, &stored.floors, stored.floorless)?,
            tombstones: Tombstones::default(),
            cuts,
            chunks,
            ..TxnTable::default()
        };
        let mut numbers = Numbers::default();
        let count = stored.tombstones.len();
        for (process, number) in stored.tombstones {
            table.tombstones.add(numbers.sum(process, number)?);
        }
        if table.tombstones.iter().count() != count {
            return None;
        }
        let mut unstable = BTreeMap::new();
        for (txn, at, time, writes) in stored.alone {
            table.stands(txn, Standing::Alone { at, time, writes: writes.clone() })?;
            table.writes_bytes += writes.len();
            (at > table.stable).then_some(())?;
            queue(&mut unstable, at, Change::Commit(txn))?;
        }
        for (txn, mut part) in stored.parts {
            part.since = now;
            table.restore_part(txn, &part, &mut unstable)?;
            table.stands(txn, Standing::Part(Box::new(part)))?;
        }
        if unstable.keys().next_back().is_some_and(|position| *position > table.last) {
            return None;
        }
        table.unstable = unstable.into_iter().collect();
        Some(table)
    }

    fn stands(&mut self, txn: TxnId, standing: Standing) -> Option<()> {
        (self.may_prepare(txn) && self.standing.insert(txn, standing).is_none()).then_some(())
    }

    /// Checks a part, and puts it where the table finds it.
    fn restore_part(&mut self, txn: TxnId, part: &Part, unstable: &mut BTreeMap<Position, Change>) -> Option<()> {
        let begins = match (&part.prepared, part.fence) {
            (Some(prepared), None) => {
                let sound = is_sorted(&prepared.participants)
                    && !prepared.participants.is_empty()
                    && prepared.writes.is_some() == part.outcome.is_none();
                sound.then_some(())?;
                self.restore_prepared(txn, part, prepared, unstable)?;
                prepared.at
            }
            (None, Some(fence)) => {
                (part.outcome.is_some() == part.decided.is_some()).then_some(())?;
                self.restore_change(fence, Change::Fence(txn), unstable)?;
                fence
            }
            (None, None) if part.decided.is_some() => Position(0),
            _ => return None,
        };
        let fits = match part.outcome {
            None => part.decided.is_none(),
            Some(Outcome::Aborted) => true,
            Some(Outcome::Committed(time)) => part.prepared.as_ref().is_some_and(|prepared| time >= prepared.least),
        };
        fits.then_some(())?;
        if let Some(decided) = part.decided {
            (decided > begins).then_some(())?;
            self.restore_change(decided, Change::Decide(txn), unstable)?;
        }
        if let Some(forgotten) = part.forgotten {
            let settled = part.decided.or(part.fence)?;
            (forgotten > settled && forgotten > self.stable).then_some(())?;
            match unstable.entry(forgotten) {
                Entry::Vacant(entry) => {
                    entry.insert(Change::Forget(vec![txn]));
                }
                Entry::Occupied(mut entry) => {
                    let Change::Forget(txns) = entry.get_mut() else { return None };
                    txns.push(txn);
                }
            }
        }
        Some(())
    }

    fn restore_prepared(
        &mut self,
        txn: TxnId,
        part: &Part,
        prepared: &Prepared,
        unstable: &mut BTreeMap<Position, Change>,
    ) -> Option<()> {
        self.writes_bytes += prepared.writes.as_ref().map_or(0, Bytes::len);
        if part.decided.is_none() {
            self.undecided.insert(prepared.at, txn).is_none().then_some(())?;
        }
        self.restore_change(prepared.at, Change::Prepare(txn), unstable)
    }

    fn restore_change(&self, at: Position, change: Change, unstable: &mut BTreeMap<Position, Change>) -> Option<()> {
        if at <= self.stable {
            return (at <= self.last && at > Position(0)).then_some(());
        }
        queue(unstable, at, change)
    }
}

fn queue(unstable: &mut BTreeMap<Position, Change>, at: Position, change: Change) -> Option<()> {
    unstable.insert(at, change).is_none().then_some(())
}

/// Of the table's contents; clocks do not count.
impl PartialEq for TxnTable {
    fn eq(&self, other: &TxnTable) -> bool {
        self.encode() == other.encode()
    }
}

impl Eq for TxnTable {}

/// The last number of each process, for differences.
#[derive(Default)]
struct Numbers(FxHashMap<ProcessId, u64>);

impl Numbers {
    fn difference(&mut self, txn: TxnId) -> (ProcessId, i64) {
        let before = self.0.insert(txn.process(), number(txn)).unwrap_or(0);
        (txn.process(), number(txn) as i64 - before as i64)
    }

    /// `None`: no number of a transaction.
    fn sum(&mut self, process: ProcessId, difference: i64) -> Option<TxnId> {
        let last = self.0.entry(process).or_default();
        *last = last.checked_add_signed(difference)?;
        let sound = *last < 1 << TxnId::NUMBER_BITS && process.0 < 1 << (64 - TxnId::NUMBER_BITS);
        sound.then(|| TxnId::of_process(process, *last))
    }
}
