//! What a primary knows of one other replica, and how it sends to it.
//!
//! A peer is *probed* until it has answered: one message at a time, again after a while. From its first acknowledgement, or from the common part that a mismatch tells of,
//! it is *streamed* to: entries go out as they are written, up to [`Limits::flight_bytes`] without an answer. An answer that stays away brings it back to
//! probing, so a peer that is gone costs one message now and then. Entries are never queued for a peer: they are read from the history when there is room, and who
//! is so slow that they are gone from there begins anew with a copy.
//!
//! All positions are as acknowledged in the present view by the present process of the node (rule 21); a new view makes new peers.

use super::copies::Copy;
use super::history::History;
use super::messages::{EntryId, Limits, Message, Outbox, Output};
use rauk_types::{Member, Position, View};
use std::time::Duration;

/// How many of the newest outputs are looked at for a message that more entries can go into.
const MERGE_LOOK: usize = 12;

/// How fast an entry goes to another disk at least, on a machine that has much to do.
const BYTES_A_MICROSECOND: u64 = 2;

/// Whether a joiner counts for what is stable (rule 24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    No,
    /// Nothing gets stable without it, so that it can catch up with what is; nobody has been asked yet, so this can be given up.
    Held,
    /// The control plane was asked under this version: only an assignment can say no.
    Requested {
        version: u64,
        at: Duration,
    },
}

/// What all messages of a primary say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    pub view: View,
    pub version: u64,
    pub stable: Position,
    pub limits: Limits,
}

#[derive(Debug)]
pub(super) struct Peer {
    pub member: Member,
    pub in_sync: bool,
    pub counting: Counting,
    pub probing: bool,
    /// The next entry to send.
    pub next: Position,
    pub received: Position,
    pub durable: Position,
    /// It has said that its contents are whole (and are so after a restart).
    pub whole: bool,
    /// The newest copy that was begun for it, in this view.
    pub copy_number: u64,
    pub copy: Option<Copy>,
    /// It cannot join before it has this, and before this is stable: what was written when it came here, or when its newest copy began. So a message of an older
    /// copy that is still under way is known to be old when it arrives.
    pub need: Position,
    /// The stable position that it was told last.
    pub told: Position,
    pub sent_at: Duration,
    pub heard_at: Duration,
    /// Since when what was sent waits for an answer without progress.
    pub moved_at: Duration,
    /// Since when entries wait for its acknowledgement without progress.
    pub waiting_since: Option<Duration>,
    pub strike_asked: Option<Duration>,
    /// It has named a stable entry that is not in this stream, and the caller was told.
    pub is_ahead: bool,
    /// Where a mismatch made it begin again, and when.
    pub rewound: (Position, Duration),
    /// Bytes in the append that was made last.
    batch: usize,
}

impl Peer {
    pub fn new(now: Duration, member: Member, last: Position) -> Peer {
        Peer {
            member,
            in_sync: false,
            counting: Counting::No,
            probing: true,
            next: Position(last.0 + 1),
            received: Position(0),
            durable: Position(0),
            whole: false,
            copy_number: 0,
            copy: None,
            need: last,
            told: Position(0),
            sent_at: now,
            heard_at: Duration::ZERO,
            moved_at: now,
            waiting_since: None,
            strike_asked: None,
            is_ahead: false,
            rewound: (Position(0), Duration::ZERO),
            batch: 0,
        }
    }

    /// What it has acknowledged, as the limits count.
    pub fn acknowledged(&self, limits: &Limits) -> Position {
        if limits.durable { self.durable } else { self.received }
    }

    pub fn counts(&self) -> bool {
        self.in_sync || self.counting != Counting::No
    }

    /// Its contents count for nothing any more.
    pub fn counting_ends(&mut self) {
        if self.counting == Counting::Held {
            self.counting = Counting::No;
        }
    }

    fn streams(&self) -> bool {
        !self.probing && self.copy.as_ref().is_none_or(Copy::is_begun)
    }

    /// Whether entries that were sent have no answer.
    pub fn in_flight(&self) -> bool {
        self.streams() && self.next.0 > self.received.0 + 1
    }

    /// How much longer its answer may take, since what it has to send, read and write before that is long. Entries that are short do not count.
    pub fn long(&self, history: &History, limits: &Limits) -> Duration {
        let (after, sent) = match self.probing {
            true => (Position(self.next.0 - 1), self.next),
            false => (self.acknowledged(limits), Position(self.next.0 - 1)),
        };
        let bytes = history.bytes_between(after, sent);
        let long = bytes.saturating_sub(limits.flight_bytes as u64);
        Duration::from_micros(long / BYTES_A_MICROSECOND)
    }

    /// Sends what is there and has room.
    pub fn ship(&mut self, now: Duration, history: &History, sender: Sender, out: &mut Outbox) {
        if !self.streams() {
            return;
        }
        while self.next <= history.last().position {
            if self.next <= history.base().position {
                self.probe(now, history, sender, out);
                return;
            }
            let flight = history.bytes_between(self.received, Position(self.next.0 - 1));
            if flight >= sender.limits.flight_bytes as u64 {
                return;
            }
            if !self.in_flight() {
                self.moved_at = now;
            }
            self.append(now, history, sender, out);
        }
    }

    /// Asks where it is: sends one message from where it is believed to be.
    pub fn probe(&mut self, now: Duration, history: &History, sender: Sender, out: &mut Outbox) {
        if self.copy.as_ref().is_some_and(|copy| !copy.is_begun()) {
            return;
        }
        self.probing = true;
        if self.next <= history.base().position {
            self.next = Position(history.last().position.0 + 1);
        }
        let next = self.next;
        self.append(now, history, sender, out);
        self.next = next;
    }

    /// One message without entries.
    pub fn tell(&mut self, now: Duration, history: &History, sender: Sender, out: &mut Outbox) {
        let Some(previous) = history.id_at(Position(self.next.0 - 1)) else {
            return self.probe(now, history, sender, out);
        };
        self.told = sender.stable;
        self.sent_at = now;
        let Sender { view, version, stable, .. } = sender;
        let message = Message::Append { view, version, previous, entries: Vec::new(), stable };
        out.push(Output::Send { to: self.member, message });
    }

    fn append(&mut self, now: Duration, history: &History, sender: Sender, out: &mut Outbox) {
        let Some(previous) = history.id_at(Position(self.next.0 - 1)) else { return };
        let Sender { view, version, stable, limits } = sender;
        let mut entries = history.read(self.next, limits.append_bytes);
        let size =
            history.bytes_between(previous.position, Position(previous.position.0 + entries.len() as u64)) as usize;
        self.next = Position(self.next.0 + entries.len() as u64);
        self.told = stable;
        self.sent_at = now;
        if !self.probing
            && self.batch + size <= limits.append_bytes
            && let Some(Message::Append { version: old_version, entries: old, stable: old_stable, .. }) =
                open_append(self.member, view, previous, out)
        {
            (*old_version, *old_stable) = (version, stable);
            old.append(&mut entries);
            self.batch += size;
            return;
        }
        self.batch = size;
        out.push(Output::Send {
            to: self.member,
            message: Message::Append { view, version, previous, entries, stable },
        });
    }
}

/// The append among the newest outputs that entries behind `previous` can go into. Where several entries are proposed before the outbox is emptied, they leave together.
fn open_append(to: Member, view: View, previous: EntryId, out: &mut Outbox) -> Option<&mut Message> {
    let newest = out.iter_mut().rev().take(MERGE_LOOK).find_map(|output| match output {
        Output::Send { to: other, message } if *other == to => Some(message),
        _ => None,
    })?;
    match newest {
        Message::Append { view: of, entries, .. }
            if *of == view && entries.last().is_some_and(|e| e.id == previous) =>
        {
            Some(newest)
        }
        _ => None,
    }
}
