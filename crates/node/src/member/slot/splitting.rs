//! A replication group becomes two, on each process that has to do with it (rules 56–62; the model is `group_split`).
//!
//! *The primary* hears that the group is to be split ([`Happening::Divide`](super::Happening::Divide)). It takes no
//! more work: commits and prepares are refused, operations look for another primary. What is prepared is decided
//! meanwhile, and nothing else is in the way: locks of open transactions die with the view. Then it writes the last
//! entry of the view ([`Record::End`]), and when that is stable it asks the control plane to split the group
//! ([`Slot::advance_end`]).
//!
//! *Each process* hears that the group has been split ([`Happening::Split`](super::Happening::Split)), before it
//! hears of the views that follow. Under the lock of the parent's stream it makes the heir's replica of the parent's:
//! the same rows, the same outcomes, a stream that goes on behind the last entry. The heir's first record in the log, an
//! anchor, stands before everything that follows in the parent's stream, so a restart that finds the later has the
//! earlier; one that finds neither makes the heir of the parent's stream, as here ([`crate::recovery`]). From then on the
//! partitions are the heir's ([`crate::member::group_table`]).
//!
//! A process may hear of the parent's next view before it hears of the split: a primary's messages come on other ways
//! than the control plane's. A stream that ends with the last entry of a view therefore takes nothing of a later view
//! before the control plane has named that view here ([`Slot::is_ahead_of_split`]).
//!
//! A replica that lacks the last entry was not in-sync then. What it has of the parent's stream up to there, or would get,
//! may name rows of either group. It forgets all of both, and gets copies when it is to have them; so does one that has
//! nothing, which could be brought up by entries from the first on. One that was not in-sync may also have got the last
//! entry together with what follows in the next view, or a copy by a primary of that view, before it hears of the split: it
//! keeps the parent's rows, and has nothing of the heir.

use super::super::rows::RowStep;
use super::{Action, Context, Happening, Slot, State, log_failed};
use rauk_cluster::replica::{Assignment, Contents, LogRecord, Message, Output, Restored};
use rauk_cluster::{EntryId, Record, Replica, Role, TxnTable};
use rauk_log::record::CommitBuilder;
use rauk_manage::group::GroupSplit;
use rauk_types::{GroupId, Split, View};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The control plane is asked again after this: the question may be lost.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// A group that this process leads is to be split.
#[derive(Clone, Copy, Debug)]
pub struct Dividing {
    view: View,
    at: u16,
    /// The version under which the control plane was asked to split it, and when.
    asked: Option<(u64, Duration)>,
}

impl Dividing {
    pub fn new(view: View, at: u16) -> Dividing {
        Dividing { view, at, asked: None }
    }
}

/// What is known of a group before it begins here.
#[derive(Default)]
pub struct Unborn {
    assignment: Option<Assignment>,
}

/// The restored parts of a replica that begins behind the last entry of its parent's view.
pub fn heir(end: EntryId) -> Restored {
    Restored { contents: Contents::Whole, stable: end.position, history: vec![end], kept: Vec::new() }
}

impl State {
    /// Whether the stream ends with the last entry of its view.
    pub(super) fn has_ended(&self) -> bool {
        self.table.end().is_some_and(|end| end.view == self.replica.last().view)
    }
}

impl Slot {
    /// Whether all these partitions are the group's, under its lock: an heir may have got some of them.
    pub(super) fn has_all(&self, cx: &Context<'_>, parts: &[u16]) -> bool {
        let own = cx.rows.partitions();
        parts.iter().all(|partition| own.contains(partition))
    }

    /// Whether the view is about to end.
    pub(super) fn takes_no_more(&self, s: &State) -> bool {
        self.is_ending(s.replica.view())
    }

    /// What happens to a group that there is not yet: its assignment waits, everything else is passed over.
    pub(super) fn is_unborn(&self, s: &mut State, happening: &Happening) -> bool {
        let Some(unborn) = &mut s.unborn else { return false };
        if let Happening::Assigned(assignment) = happening
            && unborn.assignment.as_ref().is_none_or(|known| known.version <= assignment.version)
        {
            unborn.assignment = Some(assignment.clone());
        }
        true
    }

    /// Whether a message is of a later view than the one that has ended here, and the control plane has not said here
    /// what becomes of the group.
    pub(super) fn is_ahead_of_split(&self, s: &State, message: &Message) -> bool {
        let named = s.replica.assignment().map_or(View(0), |assignment| assignment.view);
        s.has_ended() && message.view() > s.replica.last().view && message.view() > named
    }

    /// Primary: takes a group that is to be split one step further.
    pub(super) fn advance_end(&self, s: &mut State, cx: &mut Context<'_>) {
        let Some(Dividing { view, at, asked }) = s.dividing else { return };
        let leads = s.replica.role() == Role::Primary && s.replica.view() == view && self.serving() == Some(view);
        if s.is_halted() || !leads {
            return;
        }
        self.ending.store(view.0, Ordering::Release);
        match s.table.end().filter(|end| end.view == view) {
            None if s.table.is_all_decided() => {
                self.propose(s, cx, &Record::End { view, at });
            }
            None => {}
            Some(end) if s.replica.stable() >= end.position => {
                let Some(version) = s.replica.version() else { return };
                let is_new = |(under, when)| under != version || cx.now.saturating_sub(when) >= ASK_AGAIN;
                if asked.is_none_or(is_new) {
                    s.dividing = Some(Dividing { view, at, asked: Some((version, cx.now)) });
                    let end = EntryId { view, position: end.position };
                    cx.actions.push(Action::Split { version, at, end });
                }
            }
            Some(_) => {}
        }
    }

    /// Makes the heir of a group that has been split, and gives it its partitions.
    ///
    /// # Panics
    /// If something is open before the last entry of a view that this replica has (see [`TxnTable::heir`]).
    pub(super) fn split(&self, s: &mut State, cx: &mut Context<'_>, heir: GroupId, split: GroupSplit) {
        let GroupSplit { at, end, .. } = split;
        s.dividing = None;
        let (has, is_past) = (s.replica.ends_with(end), s.replica.is_past(end));
        let mut out = Vec::new();
        if has && s.is_stopped() {
            // Its rows count no more, whatever becomes of them.
            s.table.on_stable(end.position, &mut Vec::new());
        } else if has || is_past {
            s.replica.hear_stable(end.position, &mut out);
        } else {
            self.give_up(s, cx, &mut out);
        }
        self.carry_out(s, cx, out, Vec::new());
        self.leave_partitions(s, cx, at);
        if s.ends() {
            return;
        }
        let (me, slot) = (s.replica.me(), &cx.slots[usize::from(heir.0)]);
        let (replica, table) = match has {
            true => (Replica::new(heir, me, cx.limits, Some(self::heir(end))), s.table.heir(end.position)),
            false => (Replica::new(heir, me, cx.limits, None), TxnTable::default()),
        };
        if has {
            // Before anything that follows in the parent's stream.
            let mut builder = CommitBuilder::default();
            let anchor: LogRecord = replica.anchor(table.encode());
            let bytes = postcard::to_stdvec(&anchor).expect("a log record can always be written");
            builder.stream(heir, &bytes);
            if let Err(error) = cx.log.append(builder.payload()) {
                return self.fail(s, cx, &log_failed(&error));
            }
        }
        let mut born = slot.state.lock();
        let unborn = born.unborn.take().unwrap_or_default();
        (born.replica, born.table) = (replica, table);
        slot.share_times(self.times());
        cx.rows.groups.split(Split { parent: self.group, at });
        // Before what has come for it meanwhile.
        let mut queue = slot.queue.lock();
        unborn.assignment.map(Happening::Assigned).into_iter().for_each(|assigned| queue.push_front(assigned));
        queue.push_front(Happening::Begin { lacks: !has });
        drop(queue);
        if has && s.is_stopped() {
            slot.stop(&mut born, cx, "its parent had stopped when it was split");
        }
        cx.actions.push(Action::Begin { heir });
    }

    /// What is open in partitions from `at` on is void there, and not of this group any more.
    fn leave_partitions(&self, s: &mut State, cx: &mut Context<'_>, at: u16) {
        let given = at..cx.rows.partitions().end;
        for (txn, known) in s.take_standing_in(&given) {
            let is_open = known.is_open;
            for partition in given.clone().filter(|partition| known.parts.contains(partition)) {
                self.bring(s, cx, partition, RowStep::Abort { txn });
            }
            if !is_open && !s.is_halted() {
                self.stop(s, cx, &format!("transaction {} is pending behind the end of the view", txn.0));
            }
        }
    }

    /// Nothing that is here of the group counts.
    fn give_up(&self, s: &mut State, cx: &mut Context<'_>, out: &mut Vec<Output>) {
        let state = TxnTable::default().encode();
        s.replica.give_up(cx.now, state.clone(), out);
        self.begins_again(s);
        self.reset(s, cx, &state);
    }

    /// An heir begins.
    pub(super) fn begin(&self, s: &mut State, cx: &mut Context<'_>, lacks: bool) {
        if lacks {
            let mut out = Vec::new();
            self.give_up(s, cx, &mut out);
            self.carry_out(s, cx, out, Vec::new());
        }
    }
}
