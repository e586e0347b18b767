//! The stream of one replication group in this process: its replica block and its transaction table, under a lock of
//! their own.
//!
//! Whatever happens to a slot (a message, something is on disk, the control plane has decided, time has passed) is a
//! [`Happening`] in its queue; whoever takes the lock works the queue off, in order. The lock is a leaf: who has it
//! takes no partition's guard, sends nothing and waits for nothing. The blocks' outputs take place at once: entries go
//! to the redo log, and what they do to rows goes into the queues of the partitions ([`super::rows`]). What must leave
//! the lock (messages, requests to the manage group, partitions that have something to take in) is collected as
//! [`Action`]s and done when it is free.
//!
//! *A commit* collects its writes under the guards of the partitions that have them, and comes here without any. Under
//! the lock, and there alone, it is decided: the view of its locks is looked at, its status word set to *committing*,
//! its time picked, its entry written (rules 45 and 46).
//!
//! *Serving.* A slot takes work in one view at a time: from when its opening is stable and a fresh `max_read` has been
//! drawn (rule 13), until the control plane names another view. It begins when the rows of all its partitions have come
//! to the opening. The number is kept outside of the lock ([`Slot::serving`]), and is cleared the moment this process
//! hears of the change.
//!
//! *When it cannot go on* ([`stopping`]): a record cannot be written (the disk is full), and the node ends; or an entry cannot be carried out, and this replica stops. The slot takes, writes and does nothing more.
//! So the log holds a beginning of the stream without a hole, and neither the rows nor what others are told are ahead of the log.

mod requests;
pub mod stopping;
#[cfg(test)]
mod tests;

pub use requests::{Collected, Refused};
use stopping::{Halt, stopped};

use super::comparing::Asked;
use super::cutting::Cutting;
use super::event_log::Level;
use super::events::Event;
use super::group_rows::{GroupRows, Parts, copied};
use super::hooks::Safeguards;
use super::room::{Rooms, Wishes};
use super::rows::{RowStep, Slice};
use crate::error::NodeError;
use bytes::Bytes;
use futures::channel::oneshot;
use parking_lot::Mutex;
use rauk_cluster::comparison::Digests;
use rauk_cluster::replica::{Assignment, LogRecord, Message, Output};
use rauk_cluster::{Effect, EntryId, Outcome, Record, Replica, Role, TxnTable, Vote};
use rauk_kernel::{CopyCursor, MemoryBudget, TimeBounds, TxnRef, TxnState};
use rauk_log::record::CommitBuilder;
use rauk_log::{LogError, Lsn, RedoLog};
use rauk_types::{GroupId, Member, Position, Timestamp, TxnId, View};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What happens to a slot.
pub enum Happening {
    Message {
        from: Member,
        message: Message,
    },
    /// The redo log is on disk up to here.
    Durable(Lsn),
    Assigned(Assignment),
    Tick,
    /// The control plane does not count on what is here, by this version of the group.
    Orphaned {
        version: u64,
    },
    /// A time above all that an earlier primary may have shown has been drawn for this view.
    Drawn {
        view: View,
        time: Timestamp,
    },
}

/// What leaves the lock.
#[derive(Debug)]
pub enum Action {
    Send {
        to: Member,
        message: Message,
    },
    /// Ask the control plane to add a member to the in-sync set, or to remove one.
    Join {
        version: u64,
        member: Member,
    },
    Strike {
        version: u64,
        member: Member,
    },
    /// Draw a time and bring it as [`Happening::Drawn`].
    Draw {
        view: View,
    },
    /// The redo log has something to make durable.
    Flush(Lsn),
    /// The same, and nobody waits for it.
    FlushSoon(Lsn),
    /// Something has committed here, where only cuts make that last.
    Committed(Timestamp),
    /// This replica has stopped.
    Stopped,
    /// Tells a member of that.
    TellStopped {
        to: Member,
        view: View,
        copy: u64,
    },
    /// The log cannot be written: the node must stop.
    Fatal(String),
    /// This process was to lead and lacks what its node has acknowledged: it must end, and not lead again before the others.
    Lacking(String),
    /// For the operator's log.
    Note(Level, String),
    /// What a comparison is told of the rows of a partition.
    Digests {
        partition: u16,
        entry: EntryId,
        digests: Digests,
    },
    /// The rows of a partition have something to take in.
    Rows {
        partition: u16,
    },
}

/// What a step of a slot works with.
pub struct Context<'a> {
    pub now: Duration,
    pub rows: &'a GroupRows<'a>,
    pub log: &'a RedoLog,
    pub actions: &'a mut Vec<Action>,
    pub safeguards: Safeguards,
    /// Durability `replicated`: what is in all memories is stable.
    pub replicated: bool,
    pub budget: &'a MemoryBudget,
    pub rooms: &'a Rooms,
    /// Replicas are compared so often.
    pub compare_every: Duration,
    /// Bytes of a transaction table that a copy can begin with.
    pub longest_state: usize,
}

pub struct Slot {
    pub group: GroupId,
    /// A leaf lock, held for a step.
    pub state: Mutex<State>,
    pub queue: Mutex<VecDeque<Happening>>,
    /// What commit times are above, with the partitions.
    pub times: Arc<TimeBounds>,
    /// The view in which it takes work; zero: none.
    serving: AtomicU64,
    /// The view in which this process leads by what it has heard of the control plane; zero: in none. The slot may be
    /// behind that, so both are looked at.
    named: AtomicU64,
    /// The group's version, if this process is in-sync by that; zero: it is not, as far as it has heard.
    in_sync: AtomicU64,
    /// Something was decided, or the role has changed.
    pub decided: Event,
    /// Where the oldest log record stands that is not known to be durable; `u64::MAX`: none.
    pub undurable: AtomicU64,
    /// A large transaction has found the replicas far behind.
    pub is_behind: AtomicBool,
    is_stopped: AtomicBool,
}

pub struct State {
    pub replica: Replica,
    pub table: TxnTable,
    /// Transactions that stand in partitions by an entry of the stream, or will when the rows have caught up.
    refs: FxHashMap<TxnId, Standing>,
    /// Rows are being put together (a copy): pending transactions stand in the table only.
    restoring: bool,
    /// Log records not known to be durable: where they end, and their numbers.
    logged: VecDeque<(Lsn, u64)>,
    votes: FxHashMap<TxnId, Vec<oneshot::Sender<Vote>>>,
    confirmations: FxHashMap<TxnId, Vec<oneshot::Sender<()>>>,
    commits: FxHashMap<TxnId, oneshot::Sender<Option<Timestamp>>>,
    /// Commits of one partition that were cut, and where they stood. The next primary may have them still, and the one that cut them may not live to see its own stream stable:
    /// their clients are told when something else is stable at that place (rule 6).
    cut: Vec<(Position, TxnId)>,
    builder: CommitBuilder,
    /// On a primary: the newest cut that it was asked for.
    pub(super) cutting: Option<Cutting>,
    /// Where the newest copy begins in the redo log.
    reset_at: Option<Lsn>,
    /// The highest snapshot that the primary has confirmed to this replica, and whose stream has come (rule 11).
    pub confirmed: Timestamp,
    /// How often a copy has taken the place of what was here: positions of scans do not outlive that.
    pub copies: u64,
    pub(super) wishes: Wishes,
    pub(super) compared: Asked,
    /// The limit of another replica without room that the rows have been told of.
    pub(super) full_elsewhere: Option<u64>,
    /// Partitions whose rows have something to take in that others may wait for.
    stepped: Parts,
    /// Partitions whose rows have not come to the beginning of the view yet in which this process is to serve.
    awaited: Parts,
    /// Bytes of chunks that the budget has.
    counted: u64,
    /// Why nothing is done here.
    halt: Option<Halt>,
}

/// A transaction that stands in partitions by an entry of the stream.
#[derive(Clone)]
pub struct Standing {
    pub txn: TxnRef,
    /// Where it has writes; on its primary also where it has only locks.
    pub parts: Parts,
    /// It has chunks that no entry names.
    pub is_open: bool,
    /// It ran on this process as the primary, where it may have more than its entries say.
    pub ran_here: bool,
}

/// How a slot begins.
pub struct Beginning {
    pub replica: Replica,
    pub table: TxnTable,
    pub refs: FxHashMap<TxnId, Standing>,
    pub whole: bool,
    pub times: Arc<TimeBounds>,
}

impl Slot {
    pub fn new(group: GroupId, beginning: Beginning) -> Slot {
        let Beginning { replica, table, refs, whole, times } = beginning;
        Slot {
            group,
            state: Mutex::new(State {
                replica,
                table,
                refs,
                restoring: !whole,
                logged: VecDeque::new(),
                votes: FxHashMap::default(),
                confirmations: FxHashMap::default(),
                commits: FxHashMap::default(),
                cut: Vec::new(),
                builder: CommitBuilder::default(),
                cutting: None,
                reset_at: None,
                confirmed: Timestamp::ZERO,
                copies: 0,
                wishes: Wishes::default(),
                compared: Asked::default(),
                full_elsewhere: None,
                stepped: Parts::new(),
                awaited: Parts::new(),
                counted: 0,
                halt: None,
            }),
            queue: Mutex::default(),
            times,
            serving: AtomicU64::new(0),
            named: AtomicU64::new(0),
            in_sync: AtomicU64::new(0),
            decided: Event::default(),
            undurable: AtomicU64::new(u64::MAX),
            is_behind: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// The view in which this process leads the group and takes work.
    #[inline]
    pub fn serving(&self) -> Option<View> {
        let view = self.serving.load(Ordering::Acquire);
        (view != 0).then_some(View(view))
    }

    /// The view in which the control plane has this process lead, as heard here; `None`: in none, and what was served
    /// until now ends.
    pub fn name(&self, view: Option<View>) {
        self.named.store(view.map_or(0, |view| view.0), Ordering::Release);
        if self.serving().is_some_and(|serving| Some(serving) != view) {
            self.stop_serving();
        }
    }

    pub fn is_named(&self, view: View) -> bool {
        self.named.load(Ordering::Acquire) == view.0
    }

    /// The group's version, if the control plane counts this process in-sync by that, as heard here.
    pub fn set_in_sync(&self, version: Option<u64>) {
        self.in_sync.store(version.unwrap_or(0), Ordering::Release);
    }

    pub fn in_sync(&self) -> Option<u64> {
        let version = self.in_sync.load(Ordering::Acquire);
        (version != 0 && !self.is_stopped()).then_some(version)
    }

    /// No work from this moment on.
    pub fn stop_serving(&self) {
        self.serving.store(0, Ordering::Release);
    }

    /// Takes the lock, works the queue off, and runs `f`.
    pub fn enter<R>(&self, cx: &mut Context<'_>, f: impl FnOnce(&Slot, &mut State, &mut Context<'_>) -> R) -> R {
        let mut state = self.state.lock();
        let s = &mut *state;
        loop {
            // Its lock is not held while the step runs, which may bring more.
            let next = self.queue.lock().pop_front();
            let Some(happening) = next else { break };
            self.on_happening(s, cx, happening);
        }
        let r = f(self, s, cx);
        self.advance_cut(s, cx);
        s.count_chunks(cx.budget);
        cx.actions.extend(s.stepped.drain(..).map(|partition| Action::Rows { partition }));
        r
    }

    /// The rows take this in, when somebody enters the partition next.
    pub(super) fn bring(&self, s: &mut State, cx: &Context<'_>, partition: u16, step: RowStep) {
        // That one's own commit stands changes nothing that anybody waits for.
        if !matches!(step, RowStep::Stand { .. }) && !s.stepped.contains(&partition) {
            s.stepped.push(partition);
        }
        cx.rows.push(partition, step);
    }

    /// The same in each of these partitions.
    pub(super) fn bring_to(&self, s: &mut State, cx: &Context<'_>, parts: &[u16], step: impl Fn() -> RowStep) {
        parts.iter().for_each(|partition| self.bring(s, cx, *partition, step()));
    }

    /// The same in all partitions of the group.
    pub(super) fn bring_everywhere(&self, s: &mut State, cx: &Context<'_>, step: impl Fn() -> RowStep) {
        cx.rows.partitions().for_each(|partition| self.bring(s, cx, partition, step()));
    }

    /// The partitions that writes are for; `None`: this is no entry of the group, and the replica has stopped.
    fn written(&self, s: &mut State, cx: &mut Context<'_>, writes: &[u8]) -> Option<Parts> {
        cx.rows.written(writes).map_err(|what| self.stop(s, cx, &what)).ok()
    }

    fn on_happening(&self, s: &mut State, cx: &mut Context<'_>, happening: Happening) {
        if s.ends() {
            return;
        }
        let mut out = Vec::new();
        match happening {
            Happening::Tick if s.is_stopped() => self.look_whom_to_tell(s, cx),
            Happening::Message { message, .. } if !self.listens(s, cx, &message) => {}
            Happening::Message { from, message } => s.replica.on_message(cx.now, from, message, &mut out),
            Happening::Assigned(assignment) => s.replica.on_assignment(cx.now, &assignment, &mut out),
            Happening::Tick => {
                s.replica.on_tick(cx.now, &mut out);
                // Before what is proposed here: records go to the log in the order of their numbers.
                self.carry_out(s, cx, std::mem::take(&mut out), Vec::new());
                self.look_for_room(s, cx);
                self.look_to_compare(s, cx);
            }
            Happening::Durable(lsn) => {
                let mut reached = None;
                while s.logged.front().is_some_and(|(end, _)| *end <= lsn) {
                    reached = s.logged.pop_front().map(|(_, number)| number);
                }
                self.note_undurable(s);
                if let Some(number) = reached {
                    s.replica.on_durable(cx.now, number, &mut out);
                }
            }
            Happening::Orphaned { version } => {
                let state = TxnTable::default().encode();
                if s.replica.version() == Some(version) && s.replica.drop_contents(cx.now, state.clone(), &mut out) {
                    self.begins_again(s);
                    self.reset(s, cx, &state);
                    cx.actions.push(Action::Note(Level::Info, "others hold it; its rows here are forgotten".into()));
                }
            }
            Happening::Drawn { view, time } => {
                if s.replica.role() == Role::Primary && s.replica.view() == view && self.serving().is_none() {
                    self.say_outcomes(s, cx);
                    self.times.raise_max_read(time);
                    s.awaited = cx.rows.partitions().collect();
                    self.bring_everywhere(s, cx, || RowStep::Serve { view });
                }
            }
        }
        self.carry_out(s, cx, out, Vec::new());
    }

    /// What this process knows to be decided although the entry that said so was cut: said again before anybody can write over those rows. On the other replicas they are pending still, and an entry
    /// that writes over them must come behind the one that decides them.
    fn say_outcomes(&self, s: &mut State, cx: &mut Context<'_>) {
        for known in s.table.undecided(Duration::MAX) {
            if let Vote::Decided(outcome) = known.vote {
                self.propose(s, cx, &Record::Decide { txn: known.txn, outcome });
            }
        }
    }

    /// The rows of a partition have all that the stream had when this view began. When all of them have, the group is
    /// served.
    pub(super) fn begin_service(&self, s: &mut State, cx: &mut Context<'_>, partition: u16, view: View) {
        if s.replica.role() != Role::Primary || s.replica.view() != view || s.is_halted() {
            return;
        }
        s.awaited.retain(|awaited| *awaited != partition);
        if s.awaited.is_empty() {
            self.serving.store(view.0, Ordering::Release);
            cx.actions.push(Action::Note(Level::Info, format!("leads in view {}", view.0)));
            self.decided.fire();
        }
    }

    fn note_undurable(&self, s: &State) {
        let oldest = s.logged.front().map_or(u64::MAX, |(end, _)| end.0);
        self.undurable.store(oldest, Ordering::SeqCst);
    }

    /// Does what the replica block wants, and what follows from that. `effects`: what follows from the first output. Nothing is done after an output that halts the slot.
    pub(super) fn carry_out(&self, s: &mut State, cx: &mut Context<'_>, out: Vec<Output>, mut effects: Vec<Effect>) {
        let mut left: VecDeque<Output> = out.into();
        let mut more = Vec::new();
        while let Some(output) = left.pop_front() {
            match output {
                Output::Send { to, message } => cx.actions.push(Action::Send { to, message }),
                Output::Log { record, number } => self.write_log(s, cx, &record, number),
                Output::Received { entry } => match Record::decode(&entry.record).filter(times_fit) {
                    Some(record) => s.table.on_entry(cx.now, entry.id.position, &record, &mut effects),
                    None => {
                        let what = format!("entry {:?} is not a record", entry.id);
                        self.stop(s, cx, &what);
                    }
                },
                Output::Cut { after } => {
                    s.table.on_cut(after, &mut effects);
                    let at = Position(after.0 + 1);
                    s.cut.extend(effects.iter().filter_map(|effect| match effect {
                        Effect::Abort { txn } if s.commits.contains_key(txn) => Some((at, *txn)),
                        _ => None,
                    }));
                }
                Output::Stable { upto } => {
                    s.table.on_stable(upto, &mut effects);
                    s.tell_cut(upto);
                }
                Output::Reset { state } => self.reset(s, cx, &state),
                Output::Install { rows } => self.install(s, cx, rows),
                Output::Finish => {
                    self.bring_everywhere(s, cx, || RowStep::Finish);
                    s.restoring = false;
                    effects.extend(s.table.pending());
                }
                Output::ReadSlice { to, copy, cursor } => {
                    let (partition, cursor) = read_cursor(cx.rows, &cursor).expect("a cursor of ours");
                    self.bring(s, cx, partition, RowStep::ReadSlice { to, copy, cursor });
                }
                Output::ReadState { to } => {
                    let state = s.table.encode();
                    // It has the changes of all transactions that are not decided. When it does not fit into a message it is asked for again: by then they may be.
                    if state.len() <= cx.longest_state {
                        s.replica.on_copy_state(cx.now, to, state, &mut more);
                    }
                }
                Output::RequestJoin { version, member } => cx.actions.push(Action::Join { version, member }),
                Output::RequestStrike { version, member } => cx.actions.push(Action::Strike { version, member }),
                Output::Lacking { member, stable } if cx.safeguards.lacking => self.on_lacking(s, cx, member, stable),
                Output::Lacking { .. } => {}
                Output::Discards { member, stable } => {
                    let what = format!(
                        "node {} has entry {} of view {} as acknowledged, and the primary does not have it: commits are lost, by an older copy of a data directory or an accepted loss; the replica there is replaced by a copy of the primary's",
                        member.node.0, stable.position.0, stable.view.0
                    );
                    cx.actions.push(Action::Note(Level::Error, what));
                }
                Output::Damaged => {
                    let state = TxnTable::default().encode();
                    if s.replica.discard(cx.now, state.clone(), &mut more) {
                        self.begins_again(s);
                        self.reset(s, cx, &state);
                        let what = "the rows here are damaged: they are forgotten, and a copy will come";
                        cx.actions.push(Action::Note(Level::Error, what.into()));
                    }
                }
                Output::Role { role, view } => self.on_role(s, cx, role, view),
                Output::Progress { .. } => {}
            }
            if !effects.is_empty() && !s.is_halted() {
                self.apply(s, cx, std::mem::take(&mut effects));
            }
            if s.is_halted() {
                return;
            }
            // What an output brings comes before what was behind it: it belongs to the same step.
            for output in more.drain(..).rev() {
                left.push_front(output);
            }
        }
    }

    fn write_log(&self, s: &mut State, cx: &mut Context<'_>, record: &LogRecord, number: u64) {
        let bytes = postcard::to_stdvec(record).expect("a log record can always be written");
        s.builder.clear();
        s.builder.stream(self.group, &bytes);
        match cx.log.append(s.builder.payload()) {
            Ok(appended) => {
                if let LogRecord::Reset { .. } = record {
                    s.reset_at = Some(appended.start);
                }
                let before = s.logged.back().map_or(0, |(_, before)| *before);
                assert!(before < number, "group {}: log record {number} behind {before}", self.group.0);
                s.logged.push_back((appended.end, number));
                self.note_undurable(s);
                let waited_for = match record {
                    LogRecord::Entry { entry, .. } if cx.replicated => Record::is_cut(&entry.record),
                    // The client has its answer: what follows a decision goes to the disk with what comes next.
                    LogRecord::Entry { entry, .. } => Record::is_waited_for(&entry.record),
                    _ => !cx.replicated,
                };
                let flush = if waited_for { Action::Flush } else { Action::FlushSoon };
                cx.actions.push(flush(appended.end));
            }
            Err(error) => self.fail(s, cx, &log_failed(&error)),
        }
    }

    /// An in-sync replica has what this one, which is to lead, lacks (rule 38). Nothing was served in this view: its opening needs that replica's acknowledgement, which does not come.
    fn on_lacking(&self, s: &mut State, cx: &mut Context<'_>, member: Member, stable: EntryId) {
        self.stop_serving();
        s.halt = Some(Halt::Ends);
        cx.actions.push(Action::Lacking(format!(
            "group {}: node {} has entry {} of view {}, which all in-sync replicas had acknowledged, and this \
             node's log lacks it: the data directory is an older copy, or this node has followed one",
            self.group.0, member.node.0, stable.position.0, stable.view.0
        )));
    }

    /// A slice of a copy has been read, in the hold of the partition that lasts still: the rows have what was stable
    /// when the copy began, and nothing that is not in the stream by now.
    pub(super) fn on_slice(&self, s: &mut State, cx: &mut Context<'_>, partition: u16, slice: Slice) {
        if s.is_halted() {
            return;
        }
        let Slice { to, copy, rows, next } = slice;
        let (at, mut out) = (s.replica.last().position, Vec::new());
        let next = match next {
            Some(cursor) => Some(write_cursor(partition, cursor)),
            None if partition + 1 < cx.rows.partitions().end => {
                Some(write_cursor(partition + 1, CopyCursor::default()))
            }
            None => None,
        };
        s.replica.on_slice(cx.now, to, copy, at, rows, next, &mut out);
        self.carry_out(s, cx, out, Vec::new());
    }

    /// Rows of a copy, which are of one partition.
    fn install(&self, s: &mut State, cx: &mut Context<'_>, rows: Bytes) {
        match copied(cx.rows.layout, self.group, &rows) {
            Ok(partition) => self.bring(s, cx, partition, RowStep::Install { rows }),
            Err(what) => self.stop(s, cx, &what),
        }
    }

    fn reset(&self, s: &mut State, cx: &mut Context<'_>, state: &[u8]) {
        self.forget_rows(s, cx);
        s.confirmed = Timestamp::ZERO;
        s.copies += 1;
        s.drop_waiters();
        s.commits.clear();
        s.cut.clear();
        match TxnTable::decode(state, cx.now) {
            Some(table) => s.table = table,
            None => self.stop(s, cx, "the state that came with a copy cannot be read"),
        }
        self.decided.fire();
    }

    /// Its contents are no more than a part from here on.
    pub(super) fn forget_rows(&self, s: &mut State, cx: &Context<'_>) {
        // Their status is left as it is: a transaction of this process may have it in common with partitions where it
        // is to be committed.
        s.refs.clear();
        self.bring_everywhere(s, cx, || RowStep::Clear);
        s.restoring = true;
    }

    fn on_role(&self, s: &mut State, cx: &mut Context<'_>, role: Role, view: View) {
        if role == Role::Primary {
            cx.actions.push(Action::Draw { view });
            return;
        }
        self.stop_serving();
        // Locks and writes that are in no entry die with the view (rule 5).
        self.bring_everywhere(s, cx, || RowStep::DropOpen);
        self.readopt(s, cx);
        // Of transactions that ran here. When this process is to lead itself, its opening voids them.
        if role == Role::Follower && !s.restoring {
            let open = s.table.open_chunks().into_iter().filter(|effect| match effect {
                Effect::Chunk { txn, .. } => !s.refs.contains_key(txn),
                _ => false,
            });
            let open = open.collect();
            self.apply(s, cx, open);
        }
        s.drop_waiters();
        self.decided.fire();
    }

    /// Locks that are in no entry die with the view also where a transaction is prepared (on rows that it only read, or
    /// whose writes it took back): the next primary knows nothing of them and gives these rows to others. So what ran
    /// here and is prepared is put beside the rows again, as its entries have it. What ran elsewhere stands here so
    /// already.
    fn readopt(&self, s: &mut State, cx: &mut Context<'_>) {
        if s.restoring {
            return;
        }
        for effect in s.table.pending() {
            let Effect::Adopt { txn, number, writes, .. } = effect else { continue };
            let Some(known) = s.refs.get_mut(&txn) else {
                self.stop(s, cx, &format!("transaction {} is pending and is not beside the rows", txn.0));
                return;
            };
            if !std::mem::take(&mut known.ran_here) {
                continue;
            }
            let known = known.clone();
            let time = s.table.alone_time(txn);
            let mut pieces = s.table.chunks_of(txn);
            pieces.push((number, writes));
            let Standing { txn, parts, .. } = known;
            self.bring_to(s, cx, &parts, || RowStep::Readopt { txn: txn.clone(), time, pieces: pieces.clone() });
        }
    }

    /// Says what effects mean for the rows, and tells those who wait for them.
    fn apply(&self, s: &mut State, cx: &mut Context<'_>, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Adopt { txn, least, number, writes } => {
                    // It was cut, and the stream has it after all.
                    s.cut.retain(|(_, cut)| *cut != txn);
                    if s.restoring || s.refs.get(&txn).is_some_and(|known| !known.is_open) {
                        continue;
                    }
                    let Some(parts) = self.written(s, cx, &writes) else { return };
                    let known = stand(s, txn, &parts);
                    known.is_open = false;
                    let Standing { txn: adopted, parts, .. } = known.clone();
                    // From here on its chunks are pending, too (rule 67).
                    adopted.status.set(TxnState::Prepared(least));
                    let time = s.table.alone_time(txn);
                    let step = || RowStep::Adopt { txn: adopted.clone(), time, number, writes: writes.clone() };
                    self.bring_to(s, cx, &parts, step);
                }
                Effect::Chunk { txn, series, number, writes } => {
                    if s.restoring {
                        continue;
                    }
                    let Some(parts) = self.written(s, cx, &writes) else { return };
                    if parts.as_slice() != [series] {
                        let what = format!("a chunk of partition {series} writes in partitions {parts:?}");
                        return self.stop(s, cx, &what);
                    }
                    let adopted = stand(s, txn, &parts).txn.clone();
                    self.bring(s, cx, series, RowStep::Chunk { txn: adopted, number, writes });
                }
                Effect::Back { txn, series, number } => {
                    if !s.restoring {
                        self.bring(s, cx, series, RowStep::Back { txn, number });
                    }
                    if !s.table.has_open_chunks(txn) {
                        // It may have been all that it had.
                        s.refs.remove(&txn);
                    }
                }
                Effect::Compare { at } => {
                    let entry = s.replica.entry(at).filter(|_| !s.restoring);
                    if let Some(entry) = entry {
                        self.bring_everywhere(s, cx, || RowStep::Compare { entry });
                    }
                }
                Effect::Wrong { what } => return self.stop(s, cx, &what),
                Effect::Commit { txn, time, writes } => {
                    if cx.replicated {
                        cx.actions.push(Action::Committed(time));
                    }
                    if s.restoring {
                        for writes in writes {
                            let Some(parts) = self.written(s, cx, &writes) else { return };
                            self.bring_to(s, cx, &parts, || RowStep::Restore { writes: writes.clone(), time });
                        }
                    } else if let Some(known) = s.refs.remove(&txn) {
                        known.txn.status.set(TxnState::Committed(time));
                        self.bring_to(s, cx, &known.parts, || RowStep::Commit { txn, time });
                    } else {
                        // Its writes would be missing from these rows for ever.
                        self.stop(s, cx, &format!("transaction {} commits and is not beside the rows", txn.0));
                        return;
                    }
                    // Whoever is told enters the partition behind the step.
                    if let Some(commit) = s.commits.remove(&txn) {
                        let _ = commit.send(Some(time));
                    }
                    self.decided.fire();
                }
                Effect::Abort { txn } => {
                    // Its status stays as it is: what is cut here may be prepared in other partitions of this process, whose readers must wait for the decision. And it goes where it has only locks here, too.
                    s.refs.remove(&txn);
                    self.bring_everywhere(s, cx, || RowStep::Abort { txn });
                    self.decided.fire();
                }
                Effect::Answer { txn, vote } => {
                    for asker in s.votes.remove(&txn).into_iter().flatten() {
                        let _ = asker.send(vote);
                    }
                }
                Effect::Confirmed { txn } => {
                    for asker in s.confirmations.remove(&txn).into_iter().flatten() {
                        let _ = asker.send(());
                    }
                }
            }
        }
    }

    /// Primary: writes an entry and does what follows; `false`: it does not lead. If the entry cannot be logged the node ends: its fate is not known here, for others may have it.
    pub(super) fn propose(&self, s: &mut State, cx: &mut Context<'_>, record: &Record) -> bool {
        if s.is_halted() {
            return false;
        }
        let mut out = Vec::new();
        let Some(id) = s.replica.propose(cx.now, record.encode(), &mut out) else { return false };
        let mut effects = Vec::new();
        s.table.on_entry(cx.now, id.position, record, &mut effects);
        // Chunks are made of what stands beside the rows here, and taken back with it.
        effects.retain(|effect| !matches!(effect, Effect::Chunk { .. } | Effect::Back { .. }));
        // The block's first output is the log record: what follows from the entry comes to the rows when the log has it.
        self.carry_out(s, cx, out, effects);
        true
    }

    /// What restart needs to go on from here. A slot that is halted refuses: what it has in memory is not in the log, or not what the log says. Gives where the copy that is under way begins in the log.
    pub fn write_anchor(&self, s: &mut State, cx: &mut Context<'_>) -> Result<Option<Lsn>, NodeError> {
        match &s.halt {
            Some(Halt::Ends) => return Err(NodeError::ShuttingDown),
            Some(Halt::Stopped { .. }) => return Err(NodeError::Unavailable(stopped(self.group))),
            None => {}
        }
        let anchor = s.replica.anchor(s.table.encode());
        let bytes = postcard::to_stdvec(&anchor).expect("a log record can always be written");
        s.builder.clear();
        s.builder.stream(self.group, &bytes);
        cx.log.append(s.builder.payload())?;
        Ok(s.reset_at.filter(|_| s.replica.copies_in()))
    }
}

/// Where a copy goes on: partition: u16, and a cursor in it (big-endian). Of no bytes: the beginning of the group.
fn write_cursor(partition: u16, cursor: CopyCursor) -> Bytes {
    [&partition.to_be_bytes()[..], &cursor.encode()].concat().into()
}

/// `None`: not a cursor in this group.
fn read_cursor(rows: &GroupRows<'_>, bytes: &[u8]) -> Option<(u16, CopyCursor)> {
    let all = rows.partitions();
    let (partition, cursor) = match bytes.split_first_chunk::<2>() {
        None if bytes.is_empty() => (all.start, CopyCursor::default()),
        None => return None,
        Some((partition, cursor)) => (u16::from_be_bytes(*partition), CopyCursor::decode(cursor)?),
    };
    all.contains(&partition).then_some((partition, cursor))
}

/// The transaction stands in these partitions, too; by chunks that no entry names, if nothing else was known of it.
fn stand<'a>(s: &'a mut State, txn: TxnId, parts: &Parts) -> &'a mut Standing {
    let new = || Standing { txn: TxnRef::new(txn), parts: Parts::new(), is_open: true, ran_here: false };
    let known = s.refs.entry(txn).or_insert_with(new);
    for partition in parts {
        if !known.parts.contains(partition) {
            known.parts.push(*partition);
        }
    }
    known
}

/// Times are far below what a status word holds, unless the entry comes from somebody whose numbers are broken.
fn times_fit(record: &Record) -> bool {
    match record {
        Record::Commit { time, .. }
        | Record::Prepare { least: time, .. }
        | Record::Cut { time, .. }
        | Record::Decide { outcome: Outcome::Committed(time), .. } => time.0 < 1 << 60,
        _ => true,
    }
}

impl State {
    pub fn is_restoring(&self) -> bool {
        self.restoring
    }

    /// Chunks are kept until their transaction is decided, on every replica, and count in its memory: a large
    /// transaction comes to the limit with them, and is refused there (1114).
    fn count_chunks(&mut self, budget: &MemoryBudget) {
        let now = self.table.kept_chunk_bytes() as u64;
        if now > self.counted {
            budget.add(now - self.counted);
        } else if now < self.counted {
            budget.subtract(self.counted - now);
        }
        self.counted = now;
    }

    /// Whether this replica follows a primary's stream closely: it is worth asking for confirmations.
    pub fn is_fresh(&self) -> bool {
        self.replica.role() == Role::Follower && self.replica.is_in_sync()
    }

    /// So much is stable: what was cut before there never comes back.
    fn tell_cut(&mut self, upto: Position) {
        let State { cut, commits, .. } = self;
        cut.retain(|(at, txn)| {
            if *at <= upto
                && let Some(commit) = commits.remove(txn)
            {
                let _ = commit.send(None);
            }
            *at > upto
        });
    }

    /// Whoever waits for an answer here must ask again, of the next primary. Commits of one partition stay: the stream goes on to tell of them.
    fn drop_waiters(&mut self) {
        self.votes.clear();
        self.confirmations.clear();
    }
}

fn log_failed(error: &LogError) -> String {
    match error {
        LogError::DiskFull(what) => format!(
            "the disk is full ({what}): the redo log cannot be written, so this node stops and the others take over; free some space and start it again"
        ),
        other => other.to_string(),
    }
}
