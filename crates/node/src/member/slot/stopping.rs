//! A slot that does no more: the process ends, or this replica of the group *stops* (rule 80).
//!
//! *Ends.* A record of the log could not be written, or this process was to lead and lacks what its node has acknowledged. What the
//! log has is a beginning of the stream without a hole, and stays so: nothing is written, shown or told until the process has ended.
//!
//! *Stops.* The rows or the transaction table contradict the stream, or memory is damaged. The log is as good as before, and
//! so are the other groups of this process: only this replica takes part in nothing any more. It serves nothing and
//! answers no reads from this moment on. Then it tells the in-sync members, again and again: its primary excludes it, as one whose rows
//! are damaged; where it leads itself, a follower has it withdrawn, and another leads. When a primary goes on without it it forgets its rows,
//! and gets a copy. Where there is nobody else to go on it stays as it is, until the process is restarted and reads its
//! disk.
//!
//! Whoever waits here for an outcome asks the next primary.

use super::{Action, Context, Slot, State};
use crate::Database;
use crate::error::NodeError;
use crate::member::Cluster;
use crate::member::event_log::Level;
use crate::member::rows::RowStep;
use crate::member::signal::Signal;
use crate::node::Node;
use rauk_types::{GroupId, Member, Timestamp, TxnId, View};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A replica that has stopped says so again after this.
const TELL: Duration = Duration::from_millis(200);

/// Why a slot does nothing.
#[derive(Debug)]
pub enum Halt {
    Ends,
    Stopped {
        why: String,
        /// When the others were last told.
        told: Duration,
    },
}

/// Why there is no checkpoint now.
pub(super) fn stopped(group: GroupId) -> String {
    format!("replication group {} has stopped on this node: what it has in memory is not to be stored", group.0)
}

impl State {
    pub fn is_halted(&self) -> bool {
        self.halt.is_some()
    }

    pub(super) fn ends(&self) -> bool {
        matches!(self.halt, Some(Halt::Ends))
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.halt, Some(Halt::Stopped { .. }))
    }
}

impl Slot {
    /// Whether this replica has stopped.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// The node must stop, and the slot does nothing more until it has. A later record that found room would be in the log without this one: the next start would find a hole in the stream,
    /// and the report that the later record is on disk would acknowledge this one too.
    pub(super) fn fail(&self, s: &mut State, cx: &mut Context<'_>, what: &str) {
        self.stop_serving();
        if !s.ends() {
            s.halt = cx.safeguards.failed_slot.then_some(Halt::Ends);
            cx.actions.push(Action::Fatal(format!("group {}: {what}", self.group.0)));
        }
    }

    /// This replica cannot go on.
    pub(crate) fn stop(&self, s: &mut State, cx: &mut Context<'_>, why: &str) {
        if s.is_halted() {
            return;
        }
        if !cx.safeguards.stops_alone {
            return self.fail(s, cx, why);
        }
        // Before anybody is told.
        self.stop_serving();
        self.is_stopped.store(true, Ordering::Release);
        s.replica.stop();
        s.drop_waiters();
        s.commits.clear();
        s.cut.clear();
        s.cutting = None;
        s.awaited.clear();
        s.halt = Some(Halt::Stopped { why: why.to_owned(), told: cx.now });
        cx.actions.push(Action::Stopped);
        cx.actions.push(Action::Note(Level::Error, format!("this replica has stopped: {why}")));
        self.tell_stopped(s, cx);
        self.decided.fire();
    }

    /// Time has passed: what was told may be lost.
    pub(super) fn look_whom_to_tell(&self, s: &mut State, cx: &mut Context<'_>) {
        if let Some(Halt::Stopped { told, .. }) = &mut s.halt
            && cx.now.saturating_sub(*told) >= TELL
        {
            *told = cx.now;
            self.tell_stopped(s, cx);
        }
    }

    fn tell_stopped(&self, s: &State, cx: &mut Context<'_>) {
        let Some(known) = s.replica.assignment() else { return };
        let (view, copy, me) = (known.view, s.replica.newest_copy(), s.replica.me());
        let others: std::collections::BTreeSet<Member> =
            known.in_sync.iter().copied().chain(known.primary).filter(|member| *member != me).collect();
        cx.actions.extend(others.into_iter().map(|to| Action::TellStopped { to, view, copy }));
    }

    /// Others go on, and the rows here are forgotten: it takes part again.
    pub(super) fn begins_again(&self, s: &mut State) {
        if s.is_stopped() {
            s.halt = None;
            self.is_stopped.store(false, Ordering::Release);
        }
    }

    /// Primary: a member has stopped. `false`: that is known, or over.
    fn on_stopped(&self, s: &mut State, cx: &mut Context<'_>, member: Member, copy: u64) -> bool {
        let mut out = Vec::new();
        let is_new = s.replica.on_stopped(cx.now, member, copy, &mut out);
        self.carry_out(s, cx, out, Vec::new());
        is_new
    }

    fn why_stopped(&self) -> Option<String> {
        match &self.state.lock().halt {
            Some(Halt::Stopped { why, .. }) => Some(why.clone()),
            _ => None,
        }
    }
}

impl Cluster {
    /// A member has stopped in the group.
    pub(in crate::member) fn on_stopped(&self, node: &Node, from: Member, group: GroupId, view: View, copy: u64) {
        if self.may_lead(group) == Some(view) {
            if self.at_slot(node, group, |slot, s, cx| slot.on_stopped(s, cx, from, copy)) {
                let number = from.node.0;
                let what = format!("its replica on node {number} has stopped: it is removed and gets a copy");
                self.act(group, Action::Note(Level::Error, what));
            }
            return;
        }
        let known = self.group();
        let Some(state) = known.replication_group(group) else { return };
        let leads = state.primary == Some(from) && state.view == view;
        if leads && state.in_sync.contains(&self.me) && !self.slot(group).is_stopped() {
            let version = state.version;
            tracing::warn!(group = group.0, node = from.node.0, "the primary has stopped: another is to lead");
            self.suggest(rauk_manage::group::GroupCommand::Withdraw { group, version, member: from });
        }
    }

    /// Whether somebody has all of the group and can go on when this replica stops.
    pub(in crate::member) fn others_go_on(&self, group: GroupId) -> bool {
        let known = self.group();
        let is_other = |member: &Member| *member != self.me && known.is_member(*member);
        known.replication_group(group).is_some_and(|state| state.in_sync.iter().any(is_other))
    }

    pub(in crate::member) fn tell_stopped(&self, group: GroupId, to: Member, view: View, copy: u64) {
        self.tell(to, Signal::Stopped { group, view, copy });
    }

    /// `Err`: a replica has stopped; rows that were read lately may be damaged.
    pub fn refuse_stopped(&self) -> Result<(), NodeError> {
        match self.slots.iter().find(|slot| slot.is_stopped()) {
            Some(slot) => Err(NodeError::Unavailable(stopped(slot.group))),
            None => Ok(()),
        }
    }

    /// Groups of which this process's replica has stopped, and why.
    pub fn all_stopped(&self) -> Vec<String> {
        let why = |slot: &Slot| {
            let why = slot.is_stopped().then(|| slot.why_stopped()).flatten()?;
            Some(format!(
                "replication group {} has stopped on this node: {why}. Another replica takes its place; where there is \
                 none, restart this node: it reads the rows from its disk",
                slot.group.0
            ))
        };
        self.slots.iter().filter_map(why).collect()
    }
}

impl Database {
    /// For tests of what follows: the stream says of a partition what contradicts its rows, on this node alone.
    #[doc(hidden)]
    pub fn contradict(&self, partition: u16) {
        let Some(cluster) = self.node.cluster() else { return };
        let (txn, time) = (TxnId(u64::MAX), Timestamp(1));
        cluster.at_slot(&self.node, cluster.group_of(partition), |slot, s, cx| {
            slot.bring(s, cx, partition, RowStep::Commit { txn, time });
        });
    }
}
