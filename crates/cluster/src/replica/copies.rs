//! Copies: how a joiner gets contents when entries alone cannot bring it up.
//!
//! The primary takes the state of its transaction table ([`Output::ReadState`]) at its last entry, `from`, and sends both (`CopyBegin`). The joiner forgets all that it has, and
//! is *Partial* from then on. Entries behind `from` flow to it in the stream from the moment it has answered. Rows are read and sent slice by slice, one
//! at a time: the next one is read when the one before has been taken (is on the joiner's disk). A row in a slice is the newest that was committed
//! when it was read; a change of a row that was read already comes with the stream. So when the last slice is in, and all entries up to the position `at` which that
//! slice was read at, the joiner has everything that the primary had at `at`, and is *Whole*.
//!
//! What is lost is sent again, doubled slices are passed over by their number. Each attempt has a number, growing within the view; a joiner follows the highest one it has
//! seen. With the view a copy ends: the joiner's contents stay Partial until another one is whole. A copy is begun only for joiners; and one whose message
//! has been under way so long that its receiver has joined in the meantime is refused there: a member that has everything up to `from` in the present view
//! has no use for a copy from there (see [`super::peer::Peer::need`]).
//!
//! The primary keeps one slice and the state for each joiner, no more.

use super::disk::Mark;
use super::history::{History, well_formed};
use super::messages::{Contents, EntryId, LogRecord, Message, Outbox, Output, Role};
use super::{Replica, peer::Peer};
use bytes::Bytes;
use rauk_types::{Member, Position, View};
use std::time::Duration;

/// Sending again waits twice as long each time, up to so many times [`super::Limits::resend`].
const LONGEST_PATIENCE: u32 = 16;

/// A copy as its primary knows it.
#[derive(Debug)]
pub(super) struct Copy {
    stage: Stage,
    sent_at: Duration,
    patience: u32,
    /// Bytes of rows that the joiner has taken.
    sent: u64,
}

#[derive(Debug)]
enum Stage {
    /// The transaction table's state has been asked for; again later, when no answer comes (it is too long to be sent at the moment).
    State,
    /// The beginning was sent.
    Begin { from: EntryId, message: Message },
    /// A slice is being read.
    Reading { from: EntryId, number: u32 },
    /// A slice was sent; the next one begins at `next`, if there is one.
    Slice { from: EntryId, number: u32, size: u64, message: Message, next: Option<Bytes> },
}

impl Copy {
    /// Whether the joiner has begun: entries can be sent to it.
    pub fn is_begun(&self) -> bool {
        matches!(self.stage, Stage::Reading { .. } | Stage::Slice { .. })
    }

    /// Where the joiner's stream begins, once it has begun.
    pub fn from(&self) -> Option<EntryId> {
        match self.stage {
            Stage::Reading { from, .. } | Stage::Slice { from, .. } => Some(from),
            Stage::State | Stage::Begin { .. } => None,
        }
    }

    fn send(&mut self, now: Duration, to: Member, out: &mut Outbox) {
        if let Stage::Begin { message, .. } | Stage::Slice { message, .. } = &self.stage {
            out.push(Output::Send { to, message: message.clone() });
            self.sent_at = now;
        }
    }

    pub fn on_tick(&mut self, now: Duration, resend: Duration, to: Member, out: &mut Outbox) {
        if now.saturating_sub(self.sent_at) < resend * self.patience {
            return;
        }
        self.patience = (self.patience * 2).min(LONGEST_PATIENCE);
        if let Stage::State = self.stage {
            self.sent_at = now;
            out.push(Output::ReadState { to });
        }
        self.send(now, to, out);
    }
}

/// A copy as its joiner knows it.
#[derive(Debug)]
pub(super) struct Incoming {
    pub number: u64,
    /// The next slice.
    next: u32,
    begun: bool,
    /// The newest slice that is on disk.
    taken: Option<u32>,
    /// The last slice, when it is in.
    last: Option<u32>,
    /// What the newest slice was read at.
    at: Position,
}

impl Peer {
    /// Begins a copy, instead of one that may be under way.
    pub fn start_copy(&mut self, now: Duration, number: u64, out: &mut Outbox) {
        if matches!(self.copy, Some(Copy { stage: Stage::State, .. })) {
            return;
        }
        self.copy_number = number;
        self.copy = Some(Copy { stage: Stage::State, sent_at: now, patience: 1, sent: 0 });
        self.whole = false;
        self.received = Position(0);
        self.durable = Position(0);
        out.push(Output::ReadState { to: self.member });
    }

    fn finish_copy(&mut self) {
        self.copy = None;
        self.whole = true;
    }
}

impl Replica {
    /// The answer to [`Output::ReadState`].
    pub fn on_copy_state(&mut self, now: Duration, to: Member, state: Bytes, out: &mut Outbox) {
        let (view, stable, from) = (self.view, self.stable, self.history.last());
        let Some(peer) = self.leading.as_mut().and_then(|leading| leading.peer(to)) else { return };
        let Some(copy) = peer.copy.as_mut().filter(|copy| matches!(copy.stage, Stage::State)) else { return };
        let history = self.history.views_from(from.position).collect();
        let message = Message::CopyBegin { view, copy: peer.copy_number, from, stable, history, state };
        copy.stage = Stage::Begin { from, message };
        copy.patience = 1;
        copy.send(now, to, out);
        peer.next = Position(from.position.0 + 1);
        peer.need = peer.need.max(from.position);
    }

    /// The answer to [`Output::ReadSlice`]: rows read while everything up to `at` was in the group, and where to go on
    /// (`None`: that was all).
    #[expect(clippy::too_many_arguments, reason = "one signal's parts")]
    pub fn on_slice(
        &mut self,
        now: Duration,
        to: Member,
        copy: u64,
        at: Position,
        rows: Bytes,
        next: Option<Bytes>,
        out: &mut Outbox,
    ) {
        assert!(at <= self.history.last().position, "a slice read at {at:?}, behind the last entry");
        let view = self.view;
        let Some(peer) = self.leading.as_mut().and_then(|leading| leading.peer(to)) else { return };
        if peer.copy_number != copy {
            return;
        }
        let Some(going) = peer.copy.as_mut() else { return };
        let Stage::Reading { from, number } = going.stage else { return };
        let size = rows.len() as u64;
        let message = Message::CopySlice { view, copy, number, at, rows, last: next.is_none() };
        going.stage = Stage::Slice { from, number, size, message, next };
        going.patience = 1;
        going.send(now, to, out);
    }

    pub(super) fn on_copy_taken(
        &mut self,
        now: Duration,
        from: Member,
        number: u64,
        slice: Option<u32>,
        out: &mut Outbox,
    ) {
        let Some(peer) = self.leading.as_mut().and_then(|leading| leading.peer(from)) else { return };
        if peer.copy_number != number {
            return;
        }
        peer.heard_at = now;
        let Some(copy) = peer.copy.as_mut() else { return };
        match (&mut copy.stage, slice) {
            (Stage::Begin { from: start, .. }, None) => {
                let start = *start;
                copy.stage = Stage::Reading { from: start, number: 0 };
                peer.probing = false;
                peer.moved_at = now;
                peer.next = Position(start.position.0 + 1);
                peer.received = start.position;
                peer.durable = start.position;
                out.push(Output::ReadSlice { to: from, copy: number, cursor: Bytes::new() });
            }
            (Stage::Slice { from: start, number: going, size, next, .. }, Some(taken)) if *going == taken => {
                copy.sent += *size;
                out.push(Output::Progress { member: from, sent: copy.sent });
                match next.take() {
                    Some(cursor) => {
                        copy.stage = Stage::Reading { from: *start, number: taken + 1 };
                        out.push(Output::ReadSlice { to: from, copy: number, cursor });
                    }
                    None => peer.finish_copy(),
                }
            }
            _ => return,
        }
        self.ship_all(now, out);
        self.look_at_joiners(now, out);
        self.advance(out);
    }

    /// The joiner has said that its contents are whole after the copy that it follows.
    pub(super) fn copy_is_whole(peer: &mut Peer) {
        if peer.copy.as_ref().is_none_or(Copy::is_begun) {
            peer.finish_copy();
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one message's parts")]
    pub(super) fn on_copy_begin(
        &mut self,
        now: Duration,
        number: u64,
        from: EntryId,
        stable: Position,
        views: Vec<EntryId>,
        state: Bytes,
        out: &mut Outbox,
    ) {
        if number <= self.following.newest_copy {
            return self.repeat_taken(now, number, out);
        }
        let joined = |a: &super::Assignment| a.view == self.view && a.in_sync.contains(&self.me);
        if self.assignment.as_ref().is_some_and(joined) {
            return;
        }
        if self.contents == Contents::Whole && self.following.verified.is_some_and(|has| from.position <= has) {
            return;
        }
        let fits = well_formed(&views) && views.last().copied().unwrap_or_default() == from;
        if !fits || from.view > self.view || stable > from.position || (from.view == View(0)) != (from.position.0 == 0)
        {
            return;
        }
        self.history = History::starting(from);
        self.stable = stable;
        self.contents = Contents::Partial;
        self.whole_on_disk = false;
        self.following.newest_copy = number;
        self.following.verified = Some(from.position);
        self.following.copy =
            Some(Incoming { number, next: 0, begun: false, taken: None, last: None, at: from.position });
        self.disk.reset();
        let record = LogRecord::Reset { from, stable, history: views, state: state.clone() };
        self.write(now, record, Some(Mark::Begun(from.position)), out);
        out.push(Output::Reset { state });
        out.push(Output::Stable { upto: stable });
        if !self.limits.durable {
            self.copy_begun(now, out);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one message's parts")]
    pub(super) fn on_copy_slice(
        &mut self,
        now: Duration,
        number: u64,
        slice: u32,
        at: Position,
        rows: Bytes,
        last: bool,
        out: &mut Outbox,
    ) {
        let Some(copy) = self.following.copy.as_mut().filter(|copy| copy.number == number) else { return };
        if slice < copy.next {
            return self.repeat_taken(now, number, out);
        }
        if slice > copy.next || copy.last.is_some() || at < copy.at {
            return;
        }
        copy.next += 1;
        copy.at = at;
        if last {
            copy.last = Some(slice);
        }
        self.write(now, LogRecord::Rows { rows: rows.clone() }, Some(Mark::Slice(slice)), out);
        out.push(Output::Install { rows });
        if !self.limits.durable {
            self.slice_taken(now, slice, out);
        }
        self.finish_copy(now, out);
    }

    /// Joiner: whether the copy has everything now.
    pub(super) fn finish_copy(&mut self, now: Duration, out: &mut Outbox) {
        let Some(copy) = &self.following.copy else { return };
        let has_entries = self.following.verified.is_some_and(|has| has >= copy.at);
        if self.contents == Contents::Whole || copy.last.is_none() || !has_entries {
            return;
        }
        self.contents = Contents::Whole;
        self.write(now, LogRecord::Whole, Some(Mark::Whole), out);
        out.push(Output::Finish);
        if !self.limits.durable {
            self.copy_on_disk(now, out);
        }
    }

    pub(super) fn copy_begun(&mut self, now: Duration, out: &mut Outbox) {
        let Some(copy) = &mut self.following.copy else { return };
        copy.begun = true;
        self.send_taken(None, out);
        self.acknowledge(now, out);
    }

    pub(super) fn slice_taken(&mut self, now: Duration, slice: u32, out: &mut Outbox) {
        let Some(copy) = &mut self.following.copy else { return };
        copy.taken = Some(slice);
        if copy.last == Some(slice) {
            return; // answered when the copy is whole
        }
        self.send_taken(Some(slice), out);
        self.acknowledge(now, out);
    }

    /// Joiner: the copy's end is on disk. (The copy may have been one of an older view.)
    pub(super) fn copy_on_disk(&mut self, now: Duration, out: &mut Outbox) {
        self.whole_on_disk = true;
        if let Some(last) = self.following.copy.as_ref().and_then(|copy| copy.last) {
            self.send_taken(Some(last), out);
        }
        self.acknowledge(now, out);
    }

    /// Joiner: says again what it has said; the primary has sent something twice.
    fn repeat_taken(&mut self, now: Duration, number: u64, out: &mut Outbox) {
        let Some(copy) = self.following.copy.as_ref().filter(|copy| copy.number == number && copy.begun) else {
            return;
        };
        let taken = match copy.taken {
            Some(taken) if copy.last == Some(taken) && !self.whole_on_disk => taken.checked_sub(1),
            taken => taken,
        };
        self.send_taken(taken, out);
        self.acknowledge(now, out);
    }

    fn send_taken(&self, slice: Option<u32>, out: &mut Outbox) {
        let (Some(to), Some(copy)) = (self.leader, &self.following.copy) else { return };
        if self.role != Role::Follower {
            return;
        }
        out.push(Output::Send {
            to,
            message: Message::CopyTaken { view: self.view, copy: copy.number, number: slice },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::{NodeId, ProcessId};

    /// A state that could not be sent yet is asked for again, after longer and longer.
    #[test]
    fn a_state_that_does_not_come_is_asked_for_again() {
        let to = Member { node: NodeId(2), process: ProcessId(2) };
        let resend = Duration::from_millis(50);
        let mut copy = Copy { stage: Stage::State, sent_at: Duration::ZERO, patience: 1, sent: 0 };
        let mut asked = Vec::new();
        for at in (10..400).step_by(10).map(Duration::from_millis) {
            let mut out = Vec::new();
            copy.on_tick(at, resend, to, &mut out);
            if !out.is_empty() {
                assert_eq!(out, [Output::ReadState { to }]);
                asked.push(at.as_millis());
            }
        }
        assert_eq!(asked, [50, 150, 350]);
    }
}
