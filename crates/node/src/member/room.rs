//! Memory that runs out on one node of several.
//!
//! What the stream says has happened, so a replica takes every entry, whatever its limit says. That a limit is kept all the same rests on three steps:
//!
//! 1. *The primary refuses first.* A process whose memory is [`is_nearly_full`] tells the others, again and again. Whoever leads a partition that has an in-sync replica there refuses what needs room in it
//!    (error 1114, with that process's limit), as it does when its own memory is full. Deletions go on.
//! 2. *A replica goes by its own wish.* Where that was not enough (the limit was lowered, index entries and old versions have grown) and a process is beyond its limit, it asks the group to strike
//!    its replicas. Until that is done it takes every entry; from then on it listens no more, and its memory grows no further. It listens again when there is room, and catches up like
//!    one that was away.
//! 3. *A copy begins only where there is room*, and is given up halfway when there is none left: its rows go, and it is tried again later, after twice as long each time.
//!
//! A replica that is not in-sync is not counted for anything, so that it does not listen is to the others as if its messages were lost. A joiner that the primary has asked the group to take in counts
//! already, and holds commits up until the group has answered: it is in-sync then and listens, or counts no more.
//!
//! What is left out: a limit for all nodes together, and moving partitions to where there is room.

use super::Cluster;
use super::event_log::Level;
use super::rows::RowStep;
use super::signal::Signal;
use super::slot::{Action, Context, Slot, State};
use crate::Database;
use crate::node::Node;
use parking_lot::Mutex;
use rauk_cluster::Role;
use rauk_cluster::replica::{Contents, Message};
use rauk_kernel::MemoryBudget;
use rauk_types::{Member, ProcessId};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a process that is nearly full says so, and how long that is believed.
const TELL: Duration = Duration::from_millis(100);
const BELIEVED: Duration = Duration::from_millis(500);
/// A replica asks to be struck again after this.
const ASK: Duration = Duration::from_millis(200);
/// Between two copies that found no room: at first, and at most.
const FIRST_REST: Duration = Duration::from_secs(2);
const LONGEST_REST: Duration = Duration::from_secs(300);

/// Per cent of the limit: a replica that is not in-sync does not listen; others refuse what needs room here, and copies are given up; who did not listen does again; a copy may begin.
const BEYOND: u64 = 100;
pub const NEARLY_FULL: u64 = 96;
const ROOM_AGAIN: u64 = 94;
const ROOM_FOR_COPY: u64 = 80;

fn is_above(budget: &MemoryBudget, percent: u64) -> bool {
    u128::from(budget.used()) * 100 >= u128::from(budget.limit()) * u128::from(percent)
}

pub fn is_nearly_full(budget: &MemoryBudget) -> bool {
    is_above(budget, NEARLY_FULL)
}

/// What processes have said of their memory.
#[derive(Default)]
pub struct Rooms {
    /// The limits of those that are nearly full, and when they said so.
    full: Mutex<BTreeMap<ProcessId, (u64, Duration)>>,
}

impl Rooms {
    pub fn on_full(&self, now: Duration, process: ProcessId, limit: u64) {
        self.full.lock().insert(process, (limit, now));
    }

    fn limit_of(&self, now: Duration, process: ProcessId) -> Option<u64> {
        let full = self.full.lock();
        let (limit, at) = full.get(&process)?;
        (now.saturating_sub(*at) < BELIEVED).then_some(*limit)
    }

    fn forget_old(&self, now: Duration) {
        self.full.lock().retain(|_, (_, at)| now.saturating_sub(*at) < BELIEVED);
    }
}

/// A slot's part.
#[derive(Debug, Default)]
pub struct Wishes {
    /// It was struck for want of room, and does not listen.
    deaf: bool,
    asked_at: Option<Duration>,
    /// When a copy may be tried again, and how long the rest before was.
    copy_after: Duration,
    rest: Duration,
}

impl Slot {
    /// Time has passed.
    pub(super) fn look_for_room(&self, s: &mut State, cx: &mut Context<'_>) {
        let full = match s.replica.role() {
            Role::Primary => {
                let counting = s.replica.followers().filter(|follower| follower.in_sync);
                counting.filter_map(|follower| cx.rooms.limit_of(cx.now, follower.member.process)).min()
            }
            _ => None,
        };
        if s.full_elsewhere != full {
            s.full_elsewhere = full;
            self.bring_everywhere(s, cx, || RowStep::Full { limit: full });
        }
        if s.replica.role() != Role::Follower {
            s.wishes.deaf = false;
        } else if s.replica.is_in_sync() {
            s.wishes.deaf = false;
            self.wish_to_go(s, cx);
        } else {
            s.wishes.deaf = is_above(cx.budget, if s.wishes.deaf { ROOM_AGAIN } else { BEYOND });
            self.give_copy_up(s, cx);
        }
        if s.replica.contents() == Contents::Whole {
            s.wishes.rest = Duration::ZERO;
        }
    }

    fn wish_to_go(&self, s: &mut State, cx: &mut Context<'_>) {
        let again = s.wishes.asked_at.is_none_or(|at| cx.now.saturating_sub(at) >= ASK);
        if !is_above(cx.budget, BEYOND) || !again {
            return;
        }
        if s.wishes.asked_at.replace(cx.now).is_none() {
            let (used, limit) = (cx.budget.used(), cx.budget.limit());
            cx.actions.push(Action::Note(Level::Info, format!(
                "memory is used up ({used} of {limit} bytes): this replica asks to be struck, and comes back when there is room"
            )));
        }
        if let Some((version, me)) = s.replica.version().zip(Some(s.replica.me())) {
            cx.actions.push(Action::Strike { version, member: me });
        }
    }

    fn give_copy_up(&self, s: &mut State, cx: &mut Context<'_>) {
        s.wishes.asked_at = None;
        if !s.replica.copies_in() || !is_nearly_full(cx.budget) {
            return;
        }
        s.replica.give_copy_up();
        self.forget_rows(s, cx);
        let rest = (s.wishes.rest * 2).clamp(FIRST_REST, LONGEST_REST);
        (s.wishes.rest, s.wishes.copy_after) = (rest, cx.now + rest);
        let limit = cx.budget.limit();
        cx.actions.push(Action::Note(
            Level::Info,
            format!(
                "there is no room for a copy of the rows (the limit is {limit} bytes); it is tried again in {} s",
                rest.as_secs()
            ),
        ));
    }

    /// Whether the slot listens to a message of its primary: not while its rows are far behind its stream, either.
    pub(super) fn listens(&self, s: &State, cx: &Context<'_>, message: &Message) -> bool {
        if matches!(message, Message::Append { .. } | Message::CopySlice { .. }) && cx.rows.are_behind() {
            return false;
        }
        if s.replica.is_in_sync() || s.replica.role() == Role::Primary {
            return true;
        }
        match message {
            Message::CopyBegin { .. } => {
                cx.now >= s.wishes.copy_after && !s.wishes.deaf && !is_above(cx.budget, ROOM_FOR_COPY)
            }
            Message::Append { .. } | Message::CopySlice { .. } => !s.wishes.deaf,
            _ => true,
        }
    }
}

impl Cluster {
    /// Tells the others that this process's memory is nearly used up, if it is; gives when it was last told.
    pub(super) fn tell_room(&self, node: &Node, told: Duration) -> Duration {
        let now = self.runtime.now();
        if now.saturating_sub(told) < TELL {
            return told;
        }
        self.rooms.forget_old(now);
        if is_nearly_full(&node.budget) {
            let limit = node.budget.limit();
            self.rooms.on_full(now, self.me.process, limit);
            for other in self.processes().into_iter().filter(|other| *other != self.me) {
                self.tell(other, Signal::Full { limit });
            }
        }
        now
    }

    /// Nodes whose memory is nearly used up, as far as is known here, with their limits.
    pub fn full_nodes(&self) -> Vec<(Member, u64)> {
        let now = self.runtime.now();
        let all = self.processes().into_iter();
        all.filter_map(|member| Some((member, self.rooms.limit_of(now, member.process)?))).collect()
    }
}

impl Database {
    /// Sentences for the operator.
    pub(super) fn rooms(&self) -> Vec<String> {
        let Some(cluster) = self.node.cluster() else { return Vec::new() };
        let one = |(member, limit): (Member, u64)| {
            let node = member.node.0;
            format!(
                "memory of node {node} is nearly used up (rauk_memory_limit is {limit} there): writes that need room are refused where it has a replica; delete rows or raise the limit"
            )
        };
        cluster.full_nodes().into_iter().map(one).collect()
    }
}
