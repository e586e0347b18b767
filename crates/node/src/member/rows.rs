//! What a stream says, on its way to the rows of one partition.
//!
//! The stream's lock decides what happens, and in which order; the partition's guard is where it happens. Between the
//! two lies a queue: whoever holds the stream's lock appends [`RowStep`]s, and never waits for a guard. Whoever enters
//! the partition next, for whatever work, carries out what is queued before it does its own
//! ([`crate::executor::Guarded::set_first`]). So to those who look at rows a step has happened when it is queued (rule
//! 50): a follower that has acknowledged an entry shows its rows as pending, and who is told of a commit finds it.
//!
//! *Standing.* A transaction stands in a partition from the step that brings its writes ([`RowStep::Stand`], where the
//! primary wrote the entry itself and they are there already; else [`RowStep::Adopt`], or the first [`RowStep::Chunk`])
//! until it is decided, or nothing is left of its chunks. What stands
//! is taken away by the stream alone: who ends sessions, or gives back locks, passes it by ([`RowQueue::abort_open`]).
//!
//! *Written over.* A primary may know of an entry to be stable, and write over its rows, before this replica has heard
//! so. Then the later entry proves the earlier one: what it has only to be stable for commits here at once
//! ([`Standing::time`]), and its own step finds it done.
//!
//! *Several partitions.* An entry may be for several partitions of a group: each gets a step, and takes its share of
//! the writes. They share the transaction's status word, so it commits in all of them at one moment.
//!
//! *Bounds.* Steps share the memory of the stream's entries. A replica whose queue holds more than [`MOST_BYTES`] does
//! not listen to its primary, which sends again ([`RowQueue::is_full`]); on a primary there is one step for each
//! transaction that begins or ends.

use super::comparing::MOST_UNSTABLE_ROWS;
use super::effects::{NotAdopted, Rows};
use super::group_rows::Share;
use bytes::Bytes;
use parking_lot::Mutex;
use rauk_cluster::EntryId;
use rauk_cluster::comparison::Digests;
use rauk_kernel::{CopyCursor, Horizon, Partition, TxnRef, TxnState, slice_rows};
use rauk_types::{Member, TableId, Timestamp, TxnId, View};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of writes and rows in a queue, beyond which no more is taken from a primary.
const MOST_BYTES: usize = 64 << 20;
/// Rows of a copy that are read in one hold of the partition.
const SLICE_BYTES: usize = 64 << 10;
const SLICE_ROWS: usize = 256;

/// What happens to the rows.
#[derive(Debug)]
pub enum RowStep {
    /// The primary's own transaction is in the stream; its writes are there. `time`: it commits then, if its entry
    /// becomes stable.
    Stand {
        txn: TxnRef,
        time: Option<Timestamp>,
    },
    /// The writes of a transaction that another process ran.
    Adopt {
        txn: TxnRef,
        time: Option<Timestamp>,
        /// Behind those of its chunks.
        number: u32,
        writes: Bytes,
    },
    /// What such a transaction has written so far; it may be taken back.
    Chunk {
        txn: TxnRef,
        number: u32,
        writes: Bytes,
    },
    /// The chunks with this number and above are taken back.
    Back {
        txn: TxnId,
        number: u32,
    },
    Commit {
        txn: TxnId,
        time: Timestamp,
    },
    /// Pending versions and locks go.
    Abort {
        txn: TxnId,
    },
    /// The same of all that does not stand: the view in which it was locked has ended.
    DropOpen,
    /// What stands is put beside the rows again: only what its entries say is left of it.
    Readopt {
        txn: TxnRef,
        time: Option<Timestamp>,
        pieces: Vec<(u32, Bytes)>,
    },
    /// All rows are forgotten. Until [`RowStep::Finish`] only the next two come.
    Clear,
    /// Rows of a copy.
    Install {
        rows: Bytes,
    },
    /// Committed writes, while rows are being put together.
    Restore {
        writes: Bytes,
        time: Timestamp,
    },
    /// All rows are in.
    Finish,
    /// Another replica has no room (its limit).
    Full {
        limit: Option<u64>,
    },
    /// Nothing may be written here, or again.
    ReadOnly {
        is_read_only: bool,
    },
    /// The entry is reached at which the rows are to be compared with those of other replicas.
    Compare {
        entry: EntryId,
    },
    /// This process leads in this view, and takes work when all that came before is beside the rows.
    Serve {
        view: View,
    },
    /// The next slice of a copy for this joiner is to be read.
    ReadSlice {
        to: Member,
        copy: u64,
        cursor: CopyCursor,
    },
}

impl RowStep {
    fn bytes(&self) -> usize {
        match self {
            RowStep::Adopt { writes, .. } | RowStep::Chunk { writes, .. } | RowStep::Restore { writes, .. } => {
                writes.len()
            }
            RowStep::Readopt { pieces, .. } => pieces.iter().map(|(_, writes)| writes.len()).sum(),
            RowStep::Install { rows } => rows.len(),
            _ => 0,
        }
    }
}

/// A slice of a copy that was read.
pub struct Slice {
    pub to: Member,
    pub copy: u64,
    pub rows: Bytes,
    /// Where to go on in this partition; `None`: it has no more.
    pub next: Option<CopyCursor>,
}

/// What carrying out steps has come to.
#[derive(Default)]
pub struct Carried {
    pub slices: Vec<Slice>,
    /// The digests of the tables at entries that ask for a comparison.
    pub digests: Vec<(EntryId, Digests)>,
    /// The rows are as the stream has them at the beginning of this view.
    pub serves: Option<View>,
    /// A step could not be carried out: this replica stops, and nothing more is done here until all rows are forgotten.
    pub failed: Option<String>,
}

impl Carried {
    pub fn is_nothing(&self) -> bool {
        self.slices.is_empty() && self.digests.is_empty() && self.serves.is_none() && self.failed.is_none()
    }
}

/// A transaction that stands here by an entry of the stream.
struct Standing {
    txn: TxnRef,
    /// Its commit time, where nothing but a stable entry is needed for it.
    time: Option<Timestamp>,
}

#[derive(Default)]
struct State {
    standing: FxHashMap<TxnId, Standing>,
    /// Those that were written over before they were told to be committed.
    ahead: FxHashSet<TxnId>,
    failed: bool,
    /// Copies that are read here, by joiner: their numbers, and the ends that had begun here before
    /// ([`Partition::newest_end`]).
    copies: FxHashMap<Member, (u64, u64)>,
    /// Steps that are being carried out.
    taken: VecDeque<RowStep>,
}

/// The steps that wait for one partition, and what stands there.
pub struct RowQueue {
    share: Share,
    steps: Mutex<VecDeque<RowStep>>,
    bytes: AtomicUsize,
    /// Entered under the partition's guard only.
    state: Mutex<State>,
}

impl RowQueue {
    /// What stands beside the rows when the process begins.
    pub fn new(share: Share, pending: impl IntoIterator<Item = (TxnRef, Option<Timestamp>)>) -> RowQueue {
        let standing = pending.into_iter().map(|(txn, time)| (txn.id, Standing { txn, time })).collect();
        let state = Mutex::new(State { standing, ..State::default() });
        RowQueue { share, steps: Mutex::default(), bytes: AtomicUsize::new(0), state }
    }

    /// Under the stream's lock.
    pub fn push(&self, step: RowStep) {
        self.bytes.fetch_add(step.bytes(), Ordering::Relaxed);
        self.steps.lock().push_back(step);
    }

    #[cfg(test)]
    pub fn waiting_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Under the stream's lock and the guard: the rows have all that the stream has.
    pub fn is_empty(&self) -> bool {
        self.steps.lock().is_empty()
    }

    /// Whether no more is to be taken from a primary for now.
    pub fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > MOST_BYTES
    }

    /// Under the guard: carries out what is queued.
    pub fn carry_out(&self, p: &mut Partition, horizon: Horizon) -> Carried {
        let mut carried = Carried::default();
        let mut state = self.state.lock();
        let mut taken = std::mem::take(&mut state.taken);
        loop {
            std::mem::swap(&mut taken, &mut *self.steps.lock());
            if taken.is_empty() {
                break;
            }
            for step in taken.drain(..) {
                self.bytes.fetch_sub(step.bytes(), Ordering::Relaxed);
                if matches!(step, RowStep::Clear) {
                    // All rows go: what comes then is another beginning.
                    (state.failed, carried.failed) = (false, None);
                }
                if state.failed {
                    continue;
                }
                if let Err(what) = state.carry_out(p, horizon, self.share, step, &mut carried) {
                    state.failed = true;
                    carried.failed = Some(what);
                }
            }
        }
        state.taken = taken;
        carried
    }

    /// Under the guard, when the queue is empty: gives back what transactions have here that do not stand.
    pub fn abort_open(&self, p: &mut Partition, txns: &[TxnId]) {
        let state = self.state.lock();
        for txn in txns.iter().filter(|txn| !state.standing.contains_key(txn)) {
            p.abort(*txn);
        }
    }
}

impl State {
    fn carry_out(
        &mut self,
        p: &mut Partition,
        horizon: Horizon,
        share: Share,
        step: RowStep,
        carried: &mut Carried,
    ) -> Result<(), String> {
        match step {
            RowStep::Stand { txn, time } => {
                self.standing.insert(txn.id, Standing { txn, time });
            }
            RowStep::Adopt { txn, time, number, writes } => {
                self.adopt(p, horizon, &txn, number, &writes, share)?;
                self.standing.insert(txn.id, Standing { txn, time });
            }
            RowStep::Chunk { txn, number, writes } => {
                self.adopt(p, horizon, &txn, number, &writes, share)?;
                self.standing.insert(txn.id, Standing { txn, time: None });
            }
            RowStep::Back { txn, number } => {
                if p.has_writes_before(txn, number) {
                    p.take_back(txn, number);
                } else {
                    self.standing.remove(&txn);
                    p.abort(txn);
                }
            }
            RowStep::Commit { txn, .. } if self.ahead.remove(&txn) => {}
            RowStep::Commit { txn, time } => match self.standing.remove(&txn) {
                Some(_) => p.commit(txn, time, horizon),
                // Its writes would be missing from these rows for ever.
                None => return Err(format!("transaction {} commits and is not beside the rows", txn.0)),
            },
            RowStep::Abort { txn } if self.ahead.contains(&txn) => {
                return Err(format!("transaction {} is aborted, and was written over", txn.0));
            }
            RowStep::Abort { txn } => {
                // Also where it has only locks.
                self.standing.remove(&txn);
                p.abort(txn);
            }
            RowStep::DropOpen => {
                let open = p.open_transactions();
                open.into_iter().filter(|txn| !self.standing.contains_key(txn)).for_each(|txn| p.abort(txn));
            }
            RowStep::Readopt { txn, .. } if self.ahead.contains(&txn.id) => {}
            RowStep::Readopt { txn, time, pieces } => {
                p.abort(txn.id);
                self.standing.remove(&txn.id);
                for (number, writes) in &pieces {
                    self.adopt(p, horizon, &txn, *number, writes, share).map_err(|what| {
                        format!("transaction {} cannot be put beside the rows again: {what}", txn.id.0)
                    })?;
                }
                self.standing.insert(txn.id, Standing { txn, time });
            }
            RowStep::Clear => {
                // The status of what stood is left as it is: it may stand in other partitions of this process, where it
                // is to be committed.
                self.standing.clear();
                self.ahead.clear();
                p.clear();
            }
            RowStep::Install { rows } => {
                // A table that is not here was dropped: what its sender knows of the catalog this process knows too.
                let gone: FxHashSet<_> = slice_tables(&rows).filter(|table| !p.has_table(*table)).collect();
                p.restore_slice(&rows, &mut |table| gone.contains(&table)).map_err(|error| error.to_string())?;
            }
            RowStep::Restore { writes, time } => p.restore_writes(&writes, time, share)?,
            RowStep::Finish => p.finish_restore().map_err(|stop| format!("{stop:?}"))?,
            RowStep::Serve { view } => {
                // What was found in another view is found again, if it is so still.
                p.set_read_only(false);
                carried.serves = Some(view);
            }
            RowStep::Full { limit } => p.set_full_elsewhere(limit),
            RowStep::ReadOnly { is_read_only } => p.set_read_only(is_read_only),
            RowStep::Compare { entry } => carried.digests.extend(self.digests(p).map(|digests| (entry, digests))),
            RowStep::ReadSlice { to, copy, cursor } => {
                // What was committed before the copy began comes in no other way; what is committed later comes with
                // the stream.
                let begun = self.copies.entry(to).or_insert_with(|| (copy, p.newest_end()));
                if begun.0 != copy {
                    *begun = (copy, p.newest_end());
                }
                if p.has_ends_upto(begun.1) {
                    p.go_on(horizon);
                    // A slice of no rows: the joiner asks for more, and others pass meanwhile.
                    let (rows, next) = (Bytes::copy_from_slice(&p.copy_nothing()), Some(cursor));
                    carried.slices.push(Slice { to, copy, rows, next });
                    return Ok(());
                }
                let mut rows = Vec::with_capacity(SLICE_BYTES);
                let next = p.copy_slice(cursor, SLICE_ROWS, SLICE_BYTES, &mut rows);
                if next.is_none() {
                    self.copies.remove(&to);
                }
                carried.slices.push(Slice { to, copy, rows: rows.into(), next });
            }
        }
        Ok(())
    }

    /// As the rows will be when all entries of this group alone have committed that have come: some have done so on other
    /// replicas, and none can be cut without the entry that asks (rule 78). `None`: that would take too long.
    fn digests(&self, p: &Partition) -> Option<Digests> {
        let alone = self.standing.values().filter(|standing| standing.time.is_some());
        let committing: Vec<TxnId> = alone.map(|standing| standing.txn.id).collect();
        let digests = p.digests_with(&committing, MOST_UNSTABLE_ROWS)?;
        Some(digests.into_iter().map(|told| (told.table, told.digest)).collect())
    }

    /// Puts writes beside the rows; who has a row of them has committed, or has only void locks.
    fn adopt(
        &mut self,
        p: &mut Partition,
        horizon: Horizon,
        txn: &TxnRef,
        number: u32,
        writes: &[u8],
        share: Share,
    ) -> Result<(), String> {
        loop {
            match p.adopt_writes(txn, number, writes, share) {
                Ok(()) => return Ok(()),
                Err(NotAdopted::Held(holders)) => {
                    // It names the holders of one row, and there may be more.
                    p.take_back(txn.id, number);
                    for holder in holders {
                        self.written_over(p, horizon, txn.id, holder)?;
                    }
                }
                Err(NotAdopted::Refused(what)) => return Err(what),
            }
        }
    }

    /// `txn` writes over what `holder` has: its primary had seen that decided.
    fn written_over(&mut self, p: &mut Partition, horizon: Horizon, txn: TxnId, holder: TxnId) -> Result<(), String> {
        match self.standing.remove(&holder) {
            Some(Standing { txn, time: Some(time) }) => {
                txn.status.set(TxnState::Committed(time));
                p.commit(holder, time, horizon);
                self.ahead.insert(holder);
                Ok(())
            }
            Some(undecided) => {
                self.standing.insert(holder, undecided);
                Err(format!("transaction {} writes over undecided {}", txn.0, holder.0))
            }
            // Locks of a view that has ended.
            None => {
                p.abort(holder);
                Ok(())
            }
        }
    }
}

/// Those of a copy's rows, as far as they can be read.
fn slice_tables(rows: &[u8]) -> impl Iterator<Item = TableId> + '_ {
    slice_rows(rows).map_while(|row| row.ok().map(|row| row.table))
}

#[cfg(test)]
mod tests;
