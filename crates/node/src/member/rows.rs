//! What a stream says, on its way to the rows of one partition.
//!
//! The stream's lock decides what happens, and in which order; the partition's guard is where it happens. Between the
//! two lies a queue: whoever holds the stream's lock appends [`RowStep`]s, and never waits for a guard. Whoever enters
//! the partition next, for whatever work, carries out what is queued before it does its own
//! ([`crate::executor::Guarded::set_first`]). So to those who look at rows a step has happened when it is queued (rule
//! 50): a follower that has acknowledged an entry shows its rows as pending, and who is told of a commit finds it.
//!
//! *Standing.* A transaction stands in a partition from the step that brings its writes ([`RowStep::Stand`], where the
//! primary wrote the entry itself and they are there already; else [`RowStep::Adopt`]) until it is decided. What stands
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

use super::effects::{NotAdopted, Rows};
use super::group_rows::Share;
use bytes::Bytes;
use parking_lot::Mutex;
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
        writes: Bytes,
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
        writes: Bytes,
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
            RowStep::Adopt { writes, .. } | RowStep::Readopt { writes, .. } | RowStep::Restore { writes, .. } => {
                writes.len()
            }
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
    /// The rows are as the stream has them at the beginning of this view.
    pub serves: Option<View>,
    /// A step could not be carried out: the stream has failed in this process, and nothing more is done here.
    pub failed: Option<String>,
}

impl Carried {
    pub fn is_nothing(&self) -> bool {
        self.slices.is_empty() && self.serves.is_none() && self.failed.is_none()
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
            RowStep::Adopt { txn, time, writes } => self.adopt(p, horizon, txn, time, &writes, share)?,
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
            RowStep::Readopt { txn, time, writes } => {
                p.abort(txn.id);
                let id = txn.id;
                self.standing.remove(&id);
                self.adopt(p, horizon, txn, time, &writes, share)
                    .map_err(|what| format!("transaction {} cannot be put beside the rows again: {what}", id.0))?;
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
            RowStep::Serve { view } => carried.serves = Some(view),
            RowStep::Full { limit } => p.set_full_elsewhere(limit),
            RowStep::ReadSlice { to, copy, cursor } => {
                let mut rows = Vec::with_capacity(SLICE_BYTES);
                let next = p.copy_slice(cursor, SLICE_ROWS, SLICE_BYTES, &mut rows);
                carried.slices.push(Slice { to, copy, rows: rows.into(), next });
            }
        }
        Ok(())
    }

    /// Puts writes beside the rows; who has a row of them has committed, or has only void locks.
    fn adopt(
        &mut self,
        p: &mut Partition,
        horizon: Horizon,
        txn: TxnRef,
        time: Option<Timestamp>,
        writes: &[u8],
        share: Share,
    ) -> Result<(), String> {
        loop {
            match p.adopt_writes(&txn, writes, share) {
                Ok(()) => break,
                Err(NotAdopted::Held(holders)) => {
                    // It names the holders of one row, and there may be more.
                    p.abort(txn.id);
                    for holder in holders {
                        self.written_over(p, horizon, txn.id, holder)?;
                    }
                }
                Err(NotAdopted::Refused(what)) => return Err(what),
            }
        }
        self.standing.insert(txn.id, Standing { txn, time });
        Ok(())
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
