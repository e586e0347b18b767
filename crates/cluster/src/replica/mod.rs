//! One replica of one group: the stream of entries.
//!
//! [`Replica`] is a pure block: assignments, messages, proposals, reports of the log and ticks go in; messages, log records, entries and wishes come out, in an order that
//! the caller keeps. What the entries mean is none of its business ([`crate::transactions`]).
//!
//! | file | what |
//! |---|---|
//! | `messages` | what goes in and out |
//! | `history` | entries kept in memory, and the views that they were written in |
//! | `disk` | what was given to the redo log, and how far that is on disk |
//! | `primary`, `peer` | leading: what is stable, who joins; sending to one other replica |
//! | `follower` | following: comparing, cutting, acknowledging |
//! | `copies` | contents for joiners that entries cannot bring up, both sides |
//! | `replay` | what a restart makes of the log records |
//!
//! # Views
//! A replica follows the newest view it has heard of, from an assignment or from its primary, and refuses everything of
//! older ones (rules 7, 22). A view belongs to one process: only an assignment that names this very process lets it
//! lead, only if its contents are whole, and only in a view that its log has no entry of. Before its first assignment a
//! process listens to nobody: the control plane registers it before it names it to anybody, so its first assignment is
//! at least as new as everything that its predecessor has promised.
//!
//! # Why nothing stable is lost
//! An entry is called stable when all have acknowledged it that could lead next: the in-sync members that the primary
//! knows of, and joiners that it has asked the control plane to take in. The control plane's set has no others, since
//! it grows only by requests of the primary that leads in the present version. What is acknowledged is verified to be
//! the primary's own stream, and is on disk (`fsync`); and nobody takes it back: older views are refused, and a primary
//! of a newer one has it. By induction equal [`EntryId`]s are equal streams up to there, for an append says which entry
//! it follows on. A directory that was put back to an older copy breaks this. A primary that an in-sync member tells of
//! a stable entry which it lacks says so to its caller ([`Output::Lacking`]), who ends the process.
//!
//! # What stays bounded
//! Entries in memory: [`Limits::kept_bytes`], and those that are not stable yet ([`Replica::unstable_bytes`]: who proposes should wait when these are many). To each
//! peer: [`Limits::flight_bytes`] of entries, one slice and one state of a copy.
//!
//! # What is left out
//! Leases: who asks a primary for something looks at them. What stands in the rows and in the transaction table: the caller's.

mod copies;
mod disk;
mod follower;
mod history;
mod messages;
mod peer;
mod primary;
mod replay;
#[cfg(test)]
mod tests;

pub use messages::{Assignment, Contents, Entry, EntryId, Limits, LogRecord, Message, Outbox, Output, Restored, Role};
pub use primary::Progress;
pub use replay::{Replay, ReplayError, Step};

use bytes::Bytes;
use disk::{Disk, Mark};
use follower::Following;
use history::History;
use primary::Leading;
use rauk_types::{GroupId, Member, Position, View};
use std::time::Duration;

/// The stable position is logged after so many times [`Limits::heartbeat`] without an entry that says it.
const LOG_STABLE: u32 = 100;

/// The block.
#[derive(Debug)]
pub struct Replica {
    group: GroupId,
    me: Member,
    limits: Limits,
    assignment: Option<Assignment>,
    view: View,
    /// Who leads the view, as far as is known.
    leader: Option<Member>,
    role: Role,
    /// The role and view that were told last.
    told: (Role, View),
    history: History,
    disk: Disk,
    stable: Position,
    contents: Contents,
    /// It takes part in nothing, since this view.
    stopped: Option<View>,
    /// A restart would find the contents whole.
    whole_on_disk: bool,
    following: Following,
    leading: Option<Leading>,
    /// The stable position that is in the log, and when the last record went there.
    logged: (Position, Duration),
    ticked: Duration,
}

impl Replica {
    /// A replica without anything (`None`), or with what restart has read. One without anything is whole: it is at the beginning of the stream.
    ///
    /// # Panics
    /// If the parts of `restored` do not fit together: [`Replay`] makes them so.
    pub fn new(group: GroupId, me: Member, limits: Limits, restored: Option<Restored>) -> Replica {
        let role = if restored.is_some() { Role::Follower } else { Role::None };
        let restored = restored.unwrap_or(Restored {
            contents: Contents::Whole,
            stable: Position(0),
            history: Vec::new(),
            kept: Vec::new(),
        });
        let history = History::restored(&restored.history, restored.kept).expect("restored entries and views fit");
        let last = history.last();
        assert!(restored.stable <= last.position, "restored: stable is behind the last entry");
        Replica {
            group,
            me,
            limits,
            assignment: None,
            view: last.view,
            leader: None,
            role,
            told: (role, last.view),
            disk: Disk::new(last.position),
            history,
            stable: restored.stable,
            contents: restored.contents,
            stopped: None,
            whole_on_disk: restored.contents == Contents::Whole,
            following: Following::default(),
            leading: None,
            logged: (restored.stable, Duration::ZERO),
            ticked: Duration::ZERO,
        }
    }

    /// What the control plane has decided; also when it names this process nowhere (its contents stay, and count for
    /// nothing).
    pub fn on_assignment(&mut self, now: Duration, assignment: &Assignment, out: &mut Outbox) {
        assert_eq!(assignment.group, self.group, "an assignment of another group");
        let known = self.assignment.as_ref();
        if known.is_some_and(|known| assignment.version < known.version || assignment == known) {
            return;
        }
        self.assignment = Some(assignment.clone());
        if self.stopped.is_some() {
            return;
        }
        if assignment.view < self.view {
            return; // a primary of a newer view was here before its assignment
        }
        if assignment.view > self.view || assignment.primary != self.leader {
            self.turn(assignment.view, assignment.primary);
        }
        let may_lead = assignment.primary == Some(self.me) && self.whole_on_disk && self.contents == Contents::Whole;
        if may_lead && self.leading.is_some() {
            self.regroup(now, out);
        } else if may_lead && self.history.last().view < self.view {
            self.lead(now, out);
        } else {
            self.leading = None;
            let named = assignment.names(self.me) || assignment.primary == Some(self.me);
            self.set_role(if named { Role::Follower } else { Role::None }, out);
        }
    }

    /// Follows another primary.
    fn turn(&mut self, view: View, leader: Option<Member>) {
        self.view = view;
        self.leader = leader;
        self.leading = None;
        self.following = Following::default();
    }

    fn set_role(&mut self, role: Role, out: &mut Outbox) {
        self.role = role;
        if self.told != (role, self.view) {
            self.told = (role, self.view);
            out.push(Output::Role { role, view: self.view });
        }
    }

    /// Whether a message comes from the primary of the newest view. If that is newer than what was known, it is followed from now on.
    fn follows(&mut self, from: Member, view: View, version: Option<u64>, out: &mut Outbox) -> bool {
        let Some(assignment) = &self.assignment else { return false };
        if view < self.view || from == self.me {
            return false;
        }
        if view == self.view {
            let gone = assignment.view == view
                && !assignment.names(self.me)
                && version.is_none_or(|version| version <= assignment.version);
            if self.leading.is_some() || self.leader != Some(from) || gone {
                return false;
            }
        } else {
            self.turn(view, Some(from));
        }
        self.set_role(Role::Follower, out);
        true
    }

    pub fn on_message(&mut self, now: Duration, from: Member, message: Message, out: &mut Outbox) {
        if let Some(since) = self.stopped {
            return self.on_message_stopped(from, &message, since, out);
        }
        match message {
            Message::Append { view, version, previous, entries, stable } => {
                if self.follows(from, view, Some(version), out) {
                    self.on_append(now, previous, entries, stable, out);
                }
            }
            Message::CopyBegin { view, copy, from: start, stable, history, state } => {
                if self.follows(from, view, None, out) {
                    self.on_copy_begin(now, copy, start, stable, history, state, out);
                }
            }
            Message::CopySlice { view, copy, number, at, rows, last } => {
                if self.follows(from, view, None, out) {
                    self.on_copy_slice(now, copy, number, at, rows, last, out);
                }
            }
            Message::Acknowledge { view, received, durable, copy, contents } => {
                if view == self.view {
                    self.on_acknowledge(now, from, received, durable, copy, contents, out);
                }
            }
            Message::Mismatch { view, last, history, floor, stable, contents } => {
                if view == self.view {
                    self.on_lacking(from, stable, contents, out);
                    self.on_mismatch(now, from, last, &history, floor, contents, out);
                }
            }
            Message::Discard { view, copy } => {
                if self.follows(from, view, None, out) && self.may_discard() && copy == self.following.newest_copy {
                    out.push(Output::Damaged);
                }
            }
            Message::CopyTaken { view, copy, number } => {
                if view == self.view {
                    self.on_copy_taken(now, from, copy, number, out);
                }
            }
        }
    }

    /// The redo log is on disk as far as the record with this number ([`Output::Log`]).
    pub fn on_durable(&mut self, now: Duration, number: u64, out: &mut Outbox) {
        let reached = self.disk.on_durable(number);
        if self.stopped.is_some() {
            self.whole_on_disk |= reached.whole;
            return;
        }
        if self.leading.is_some() {
            self.whole_on_disk |= reached.whole;
            self.advance(out);
        } else {
            self.follower_durable(now, &reached, out);
        }
    }

    /// Time has passed: heartbeats, what was lost is sent again. To be called every [`Limits::heartbeat`] or so.
    pub fn on_tick(&mut self, now: Duration, out: &mut Outbox) {
        if self.stopped.is_some() {
            return;
        }
        if self.leading.is_some() {
            self.tick_primary(now, out);
        } else {
            self.tick_follower(now, out);
        }
        self.ticked = now;
        let (stable, at) = self.logged;
        if self.stable > stable && now.saturating_sub(at) >= self.limits.heartbeat * LOG_STABLE {
            self.write(now, LogRecord::Stable { stable: self.stable }, None, out);
        }
    }

    /// A record for the redo log.
    fn write(&mut self, now: Duration, record: LogRecord, mark: Option<Mark>, out: &mut Outbox) {
        match &record {
            LogRecord::Entry { stable, .. } | LogRecord::Stable { stable } | LogRecord::Reset { stable, .. } => {
                self.logged = (*stable, now);
            }
            _ => {}
        }
        self.disk.write(record, mark, out);
    }

    pub fn role(&self) -> Role {
        self.role
    }

    pub fn view(&self) -> View {
        self.view
    }

    pub fn last(&self) -> EntryId {
        self.history.last()
    }

    pub fn stable(&self) -> Position {
        self.stable
    }

    /// The entry at this place, as far as it is known.
    pub fn entry(&self, at: Position) -> Option<EntryId> {
        self.history.id_at(at)
    }

    pub fn contents(&self) -> Contents {
        self.contents
    }

    /// Whether the control plane counts this process among those that have everything.
    pub fn is_in_sync(&self) -> bool {
        self.stopped.is_none() && self.assignment.as_ref().is_some_and(|a| a.in_sync.contains(&self.me))
    }

    /// Whether this follower is known to have all that was stable when the opening of this view was. Nothing gets stable without an in-sync member since. One that is in-sync had it anyway,
    /// unless its directory has gone back (rule 38): it must not answer reads before.
    pub fn is_current(&self) -> bool {
        self.following.is_current
    }

    /// The newest copy that was begun here in this view; 0: none.
    pub fn newest_copy(&self) -> u64 {
        self.following.newest_copy
    }

    /// Whether a copy is under way to here. A checkpoint then lets restart begin at the copy's [`LogRecord::Reset`], the newest one (see [`LogRecord::Anchor`]).
    pub fn copies_in(&self) -> bool {
        self.contents == Contents::Partial && self.following.copy.is_some()
    }

    pub fn me(&self) -> Member {
        self.me
    }

    /// The newest that it knows.
    pub fn assignment(&self) -> Option<&Assignment> {
        self.assignment.as_ref()
    }

    /// Of the assignment that it knows.
    pub fn version(&self) -> Option<u64> {
        self.assignment.as_ref().map(|assignment| assignment.version)
    }

    /// Leaves a copy that is under way to here where it is: the contents stay Partial until another one is whole.
    ///
    /// # Panics
    /// If none is under way.
    pub fn give_copy_up(&mut self) {
        assert!(self.copies_in(), "there is no copy to give up");
        self.following.copy = None;
    }

    /// The rows here are wanted no more, for others hold the group (the caller has seen to it that these do not need
    /// them either): they are forgotten, in the log too, and this replica is as one whose copy was cut off. `state`: of
    /// a transaction table without transactions. `false`: it has a part in the group as far as it knows, or nothing to
    /// forget.
    pub fn drop_contents(&mut self, now: Duration, state: Bytes, out: &mut Outbox) -> bool {
        let from = self.history.last();
        let has = from.position.0 > 0 && (self.contents == Contents::Whole || self.stopped.is_some());
        let named = self.assignment.as_ref().is_none_or(|a| a.names(self.me) || a.primary == Some(self.me));
        if !has || named || self.role != Role::None {
            return false;
        }
        self.forget_contents(now, state, out);
        true
    }

    /// The rows here are damaged ([`Output::Damaged`]): as [`Replica::drop_contents`], where this replica is a joiner that
    /// the control plane does not count. Its primary will find it empty, and bring a copy.
    pub fn discard(&mut self, now: Duration, state: Bytes, out: &mut Outbox) -> bool {
        let may = self.may_discard();
        if may {
            self.forget_contents(now, state, out);
            self.set_role(Role::Follower, out);
        }
        may
    }

    /// The rows or the table here contradict the stream, or are damaged: this replica takes part in nothing any more
    /// (rule 80). Its log is as good as before. It begins again ([`Output::Damaged`]) when a primary goes on without it:
    /// one of a later view, or one that tells it to discard what it has.
    pub fn stop(&mut self) {
        self.stopped.get_or_insert(self.view);
        self.leading = None;
        self.role = Role::None;
    }

    /// A message for a replica that has stopped. Nothing was acknowledged since: so a primary of a later view does not
    /// count it, and one of the same view does not if it has excluded it, or brings a copy.
    fn on_message_stopped(&mut self, from: Member, message: &Message, since: View, out: &mut Outbox) {
        let view = message.view();
        let named = self.assignment.as_ref().filter(|a| a.view == view && a.primary == Some(from));
        let Following { newest_copy, verified, .. } = self.following;
        let knows = view > since
            || match message {
                Message::Discard { copy, .. } => *copy == newest_copy,
                // Not one that is late, as everywhere.
                Message::CopyBegin { copy, from: start, .. } => {
                    *copy > newest_copy && verified.is_none_or(|has| start.position > has)
                }
                _ => false,
            } && view == since;
        if !knows || from == self.me || named.is_none() || self.is_counted() {
            return;
        }
        if view > self.view {
            self.turn(view, Some(from));
        }
        self.role = Role::Follower;
        out.push(Output::Damaged);
    }

    fn is_counted(&self) -> bool {
        self.assignment.as_ref().is_none_or(|a| a.in_sync.contains(&self.me) || a.view < self.view)
    }

    /// Whether nobody counts on what is here, as far as this replica knows. It cannot have been taken in without knowing:
    /// no primary of this view asks for that before a copy has begun, and no other primary knows it as a joiner.
    fn may_discard(&self) -> bool {
        let has = self.contents == Contents::Whole || self.stopped.is_some();
        self.role == Role::Follower && has && !self.is_counted()
    }

    fn forget_contents(&mut self, now: Duration, state: Bytes, out: &mut Outbox) {
        let from = self.history.last();
        let history = self.history.views_from(from.position).collect();
        self.history = History::starting(from);
        self.stable = from.position;
        self.contents = Contents::Partial;
        self.whole_on_disk = false;
        self.stopped = None;
        self.following = Following::default();
        self.disk.reset();
        self.write(now, LogRecord::Reset { from, stable: from.position, history, state }, None, out);
    }

    /// Bytes of entries in memory.
    pub fn kept_bytes(&self) -> u64 {
        self.history.bytes()
    }

    /// Bytes of entries that are not stable yet.
    pub fn unstable_bytes(&self) -> u64 {
        self.history.bytes_between(self.stable, self.history.last().position)
    }

    /// For a checkpoint's beginning: what restart needs to go on from here; `state` is the encoded transaction table.
    pub fn anchor(&self, state: Bytes) -> LogRecord {
        let kept = self.history.read(Position(self.stable.0 + 1), usize::MAX);
        let before = Position(self.history.last().position.0 - kept.len() as u64);
        LogRecord::Anchor {
            last: self.history.last(),
            stable: self.stable,
            history: self.history.views_from(before).collect(),
            kept,
            contents: self.contents,
            state,
        }
    }
}
