//! A replica that leads: proposals, acknowledgements, what is stable, who joins, who is to be struck.
//!
//! *Leading* begins when an assignment names this very process in a view that no entry of the own log is of, and ends with any assignment or message of a newer view. The
//! first entry is the view's opening; when that is stable so is everything inherited, and work is taken.
//!
//! *Stable* is what all have that count: the own log, the in-sync members, and joiners from the moment on that the
//! control plane has been asked to take them in (rule 24). Under load a joiner is always a little behind, so it is
//! *held* first: when it lags no more than a message it counts already, without anybody having been asked; it has what
//! is stable a moment later, and then the control plane is asked. A held joiner that falls silent is let go. Once
//! asked, only an assignment ends the counting: it names the joiner in-sync, or it is of a newer version (the request
//! was void) and does not, or of the same version and lists it nowhere any more (its process is gone).
//!
//! *Damaged.* A member whose rows are damaged is excluded by the caller ([`Replica::exclude`], rule 79), or says so itself ([`Replica::on_stopped`], rule 80): the control plane is
//! asked to remove it from the in-sync set, and it is not asked to take it in again before a copy has begun for it. When
//! it is in-sync no more it is told to discard what it has.
//!
//! An in-sync member that something has waited for since [`super::Limits::strike_after`], without any progress, is the
//! control plane is asked to remove it from the in-sync set; later where what it has to do is long. Until the control
//! plane has done so nothing is stable without it (rule 19).

use super::Replica;
use super::disk::Mark;
use super::messages::{Contents, Entry, EntryId, LogRecord, Message, Outbox, Output, Role};
use super::peer::{Counting, Peer, Sender};
use crate::Record;
use bytes::Bytes;
use rauk_types::{Member, Position};
use std::time::Duration;

/// A joiner takes part in nothing when it has not been heard of for so many times [`super::Limits::resend`].
const FRESH: u32 = 4;
/// When nothing new is stable, that is told again after so many times [`super::Limits::heartbeat`] (what was told may be lost).
const QUIET: u32 = 100;

#[derive(Debug)]
pub(super) struct Leading {
    pub opening: Position,
    pub peers: Vec<Peer>,
    /// Copies begun so far.
    pub copies: u64,
    /// Their rows are damaged, and no copy has begun for them since; when something was last done about it.
    pub damaged: Vec<(Member, Duration)>,
}

impl Leading {
    pub fn peer(&mut self, member: Member) -> Option<&mut Peer> {
        self.peers.iter_mut().find(|peer| peer.member == member)
    }

    fn begin_copy(&mut self, now: Duration, member: Member, out: &mut Outbox) {
        self.damaged.retain(|(damaged, _)| *damaged != member);
        self.copies += 1;
        let number = self.copies;
        if let Some(peer) = self.peer(member) {
            peer.counting_ends();
            peer.start_copy(now, number, out);
        }
    }
}

/// How far a follower is, as its primary knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub member: Member,
    pub acknowledged: Position,
    pub in_sync: bool,
    /// It is brought a copy of the rows.
    pub copies: bool,
}

impl Replica {
    /// The others, on the replica that leads.
    pub fn followers(&self) -> impl Iterator<Item = Progress> + '_ {
        let peers = self.leading.iter().flat_map(|leading| &leading.peers);
        peers.map(|peer| Progress {
            member: peer.member,
            acknowledged: peer.acknowledged(&self.limits),
            in_sync: peer.in_sync,
            copies: peer.copy.is_some(),
        })
    }

    /// How far the own log and those of all members that count are on disk, on the replica that leads.
    pub fn durable_everywhere(&self) -> Option<Position> {
        let peers = self.leading.as_ref()?.peers.iter().filter(|peer| peer.counts());
        Some(peers.map(|peer| peer.durable).fold(self.disk.durable(), Position::min))
    }

    /// Begins to lead the view that the assignment names.
    pub(super) fn lead(&mut self, now: Duration, out: &mut Outbox) {
        let opening = Position(self.history.last().position.0 + 1);
        self.leading = Some(Leading { opening, peers: Vec::new(), copies: 0, damaged: Vec::new() });
        self.meet_peers(now);
        self.set_role(Role::Opening, out);
        let id = EntryId { view: self.view, position: opening };
        let entry = Entry { id, record: Record::Opening.encode() };
        self.append(now, entry.clone(), out);
        out.push(Output::Received { entry });
        for peer in self.leading.iter_mut().flat_map(|leading| &mut leading.peers) {
            peer.waiting_since = Some(now);
        }
        self.send_to_new(now, out);
        self.advance(out);
    }

    /// The assignment has changed while this replica leads.
    pub(super) fn regroup(&mut self, now: Duration, out: &mut Outbox) {
        self.meet_peers(now);
        self.send_to_new(now, out);
        self.look_at_joiners(now, out);
        self.advance(out);
    }

    /// Brings the list of peers to what the assignment says.
    fn meet_peers(&mut self, now: Duration) {
        let (Some(leading), Some(assignment)) = (&mut self.leading, &self.assignment) else { return };
        let last = self.history.last().position;
        leading.peers.retain(|peer| assignment.names(peer.member));
        for member in assignment.in_sync.iter().chain(&assignment.joining).filter(|member| **member != self.me) {
            if leading.peer(*member).is_none() {
                leading.peers.push(Peer::new(now, *member, last));
            }
            let Some(peer) = leading.peer(*member) else { continue };
            let in_sync = assignment.in_sync.contains(member);
            if in_sync != peer.in_sync {
                peer.in_sync = in_sync;
                peer.counting = Counting::No;
                peer.strike_asked = None;
                peer.waiting_since = (in_sync && peer.acknowledged(&self.limits) < last).then_some(now);
            }
            if matches!(peer.counting, Counting::Requested { version, .. } if version < assignment.version) {
                peer.counting = Counting::No;
            }
            if in_sync {
                peer.copy = None;
            }
        }
    }

    /// Asks peers that have never been sent anything where they are.
    fn send_to_new(&mut self, now: Duration, out: &mut Outbox) {
        let Some(sender) = self.sender() else { return };
        let Some(leading) = &mut self.leading else { return };
        for peer in leading.peers.iter_mut().filter(|peer| peer.probing && peer.heard_at.is_zero()) {
            peer.probe(now, &self.history, sender, out);
        }
    }

    pub(super) fn sender(&self) -> Option<Sender> {
        let version = self.assignment.as_ref()?.version;
        Some(Sender { view: self.view, version, stable: self.stable, limits: self.limits })
    }

    /// Primary: writes an entry. `None`: it does not lead, or not yet.
    pub fn propose(&mut self, now: Duration, record: Bytes, out: &mut Outbox) -> Option<EntryId> {
        if self.role != Role::Primary {
            return None;
        }
        let id = EntryId { view: self.view, position: Position(self.history.last().position.0 + 1) };
        self.append(now, Entry { id, record }, out);
        let sender = self.sender()?;
        for peer in &mut self.leading.as_mut()?.peers {
            peer.waiting_since.get_or_insert(now);
            peer.ship(now, &self.history, sender, out);
        }
        if !self.limits.durable {
            self.advance(out);
        }
        Some(id)
    }

    /// Puts an entry at the end of history and log.
    pub(super) fn append(&mut self, now: Duration, entry: Entry, out: &mut Outbox) {
        let position = entry.id.position;
        self.history.push(entry.clone());
        self.write(now, LogRecord::Entry { entry, stable: self.stable }, Some(Mark::Entry(position)), out);
    }

    pub(super) fn ship_all(&mut self, now: Duration, out: &mut Outbox) {
        let Some(sender) = self.sender() else { return };
        let Some(leading) = &mut self.leading else { return };
        for peer in &mut leading.peers {
            peer.ship(now, &self.history, sender, out);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one message's parts")]
    pub(super) fn on_acknowledge(
        &mut self,
        now: Duration,
        from: Member,
        received: Position,
        durable: Position,
        copy: u64,
        contents: Contents,
        out: &mut Outbox,
    ) {
        let last = self.history.last().position;
        if received > last || durable > received {
            return; // nonsense
        }
        let (Some(sender), role) = (self.sender(), self.role) else { return };
        let Some(leading) = &mut self.leading else { return };
        let copies = leading.copies;
        let Some(peer) = leading.peer(from) else { return };
        if copy > copies || copy < peer.copy_number {
            return; // nonsense, or from before a copy
        }
        peer.heard_at = now;
        peer.copy_number = copy;
        match contents {
            Contents::Whole => Replica::copy_is_whole(peer),
            // It follows a copy that this primary has given up (it was sent away and came back).
            Contents::Partial if peer.copy.is_none() && !peer.whole => {
                if role == Role::Primary && !peer.in_sync {
                    leading.begin_copy(now, from, out);
                }
                return;
            }
            Contents::Partial => {}
        }
        let before = peer.acknowledged(&sender.limits);
        if received > peer.received {
            peer.received = received;
            peer.moved_at = now;
        }
        peer.durable = peer.durable.max(durable);
        if peer.next <= peer.received {
            peer.next = Position(peer.received.0 + 1);
        }
        if peer.probing {
            peer.probing = false;
            peer.moved_at = now;
            peer.next = Position(peer.received.0 + 1);
        }
        let after = peer.acknowledged(&sender.limits);
        if after >= last {
            peer.waiting_since = None;
        } else if after > before {
            peer.waiting_since = Some(now);
        }
        if after > before {
            peer.strike_asked = None;
        }
        peer.ship(now, &self.history, sender, out);
        self.look_at_joiners(now, out);
        self.advance(out);
    }

    /// A follower names an entry that it knows to be stable. All in-sync members have it, and so has whoever leads, if its directory is the one that acknowledged it (rule 38).
    pub(super) fn on_lacking(&mut self, member: Member, stable: EntryId, contents: Contents, out: &mut Outbox) {
        let differs = self.history.id_at(stable.position).is_some_and(|own| own != stable);
        let lacks = differs || stable.position > self.history.last().position;
        let Some(peer) = self.leading.as_mut().and_then(|leading| leading.peer(member)) else { return };
        if !lacks || contents == Contents::Partial {
            return;
        }
        if peer.in_sync {
            out.push(Output::Lacking { member, stable });
        } else if !std::mem::replace(&mut peer.is_ahead, true) {
            out.push(Output::Discards { member, stable });
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one message's parts")]
    pub(super) fn on_mismatch(
        &mut self,
        now: Duration,
        from: Member,
        last: EntryId,
        history: &[EntryId],
        floor: Position,
        contents: Contents,
        out: &mut Outbox,
    ) {
        let Some(sender) = self.sender() else { return };
        let base = self.history.base().position;
        let Some(leading) = &mut self.leading else { return };
        let Some(peer) = leading.peer(from) else { return };
        let copied_from = match &peer.copy {
            None => None,
            Some(copy) => match copy.from() {
                None => return, // the copy's beginning is on its way
                begun => begun,
            },
        };
        if last.position < peer.received || copied_from.is_some_and(|start| last.position < start.position) {
            return; // from before what it has acknowledged since
        }
        // What it has acknowledged is common, whether or not the views of it are still known here.
        let common = self.history.common(history).position.max(peer.received);
        peer.heard_at = now;
        let given_up = history.is_empty();
        let partial = contents == Contents::Partial && (copied_from.is_none() || given_up);
        if partial || common < floor || common < base {
            // Entries cannot bring it up. In-sync members always have a common part with a primary, unless the primary lacks what is stable.
            if !peer.in_sync && self.role == Role::Primary {
                leading.begin_copy(now, from, out);
            }
            return;
        }
        let next = Position(common.0 + 1);
        if peer.rewound.0 == next && now.saturating_sub(peer.rewound.1) < sender.limits.heartbeat {
            return; // several messages have found the same
        }
        peer.rewound = (next, now);
        peer.next = next;
        peer.probing = false;
        peer.moved_at = now;
        if next > self.history.last().position {
            peer.tell(now, &self.history, sender, out);
        } else {
            peer.ship(now, &self.history, sender, out);
        }
    }

    /// Which joiners count, and which can be asked to be taken in.
    pub(super) fn look_at_joiners(&mut self, now: Duration, out: &mut Outbox) {
        if self.role != Role::Primary {
            return;
        }
        let (last, stable, limits) = (self.history.last().position, self.stable, self.limits);
        let (Some(leading), Some(assignment)) = (&mut self.leading, &self.assignment) else { return };
        let Leading { peers, damaged, opening, .. } = leading;
        for peer in peers.iter_mut().filter(|peer| !peer.in_sync) {
            if matches!(peer.counting, Counting::Requested { .. }) {
                continue;
            }
            if damaged.iter().any(|(member, _)| *member == peer.member) {
                peer.counting = Counting::No;
                continue;
            }
            let fresh = now.saturating_sub(peer.heard_at) <= limits.resend * FRESH;
            if !fresh || !peer.whole || peer.copy.is_some() || peer.probing {
                peer.counting = Counting::No;
                continue;
            }
            let has = peer.acknowledged(&limits);
            if peer.counting == Counting::No {
                let lag = self.history.bytes_between(has, last);
                if peer.next <= last || lag > limits.append_bytes as u64 {
                    continue;
                }
                peer.counting = Counting::Held;
            }
            if has >= stable && stable >= peer.need && has >= *opening {
                let (version, member) = (assignment.version, peer.member);
                peer.counting = Counting::Requested { version, at: now };
                out.push(Output::RequestJoin { version, member });
            }
        }
    }

    /// Finds what is stable now.
    pub(super) fn advance(&mut self, out: &mut Outbox) {
        let Some(leading) = &self.leading else { return };
        let own = if self.limits.durable { self.disk.durable() } else { self.history.last().position };
        let counting = leading.peers.iter().filter(|peer| peer.counts());
        let upto = counting.map(|peer| peer.acknowledged(&self.limits)).fold(own, Position::min);
        let opening = leading.opening;
        if upto <= self.stable {
            return;
        }
        self.stable = upto;
        out.push(Output::Stable { upto });
        if self.role == Role::Opening && upto >= opening {
            self.set_role(Role::Primary, out);
        }
        self.history.evict(upto, self.limits.kept_bytes as u64);
    }

    pub(super) fn tick_primary(&mut self, now: Duration, out: &mut Outbox) {
        let limits = self.limits;
        // A process that was stopped for a while has answers waiting; it must not blame others for its own silence.
        let stopped = now.saturating_sub(self.ticked) > limits.strike_after / 2;
        let Some(sender) = self.sender() else { return };
        let last = self.history.last().position;
        let Some(leading) = &mut self.leading else { return };
        for peer in &mut leading.peers {
            if stopped {
                peer.waiting_since = peer.waiting_since.map(|_| now);
                peer.moved_at = now;
            }
            if let Some(copy) = &mut peer.copy {
                copy.on_tick(now, limits.resend, peer.member, out);
            }
            let silence = now.saturating_sub(peer.sent_at);
            let tell_after = match (peer.told < self.stable, peer.in_sync) {
                (true, _) => limits.heartbeat,
                (false, false) => limits.resend,
                (false, true) => limits.heartbeat * QUIET,
            };
            let long = peer.long(&self.history, &limits);
            let lost = peer.in_flight() && now.saturating_sub(peer.moved_at) >= limits.resend + long;
            if lost {
                peer.next = Position(peer.received.0 + 1);
                peer.probe(now, &self.history, sender, out);
            } else if peer.probing {
                if silence >= limits.resend + long {
                    peer.probe(now, &self.history, sender, out);
                }
            } else if silence >= tell_after && peer.copy.as_ref().is_none_or(|copy| copy.is_begun()) {
                peer.tell(now, &self.history, sender, out);
            }
            if let Counting::Requested { version, at } = &mut peer.counting
                && now.saturating_sub(*at) >= limits.resend * 2
            {
                *at = now;
                out.push(Output::RequestJoin { version: *version, member: peer.member });
            }
            let behind = peer.acknowledged(&limits) < last;
            if !behind {
                peer.waiting_since = None;
            }
            let patience = limits.strike_after + long;
            let waits = peer.waiting_since.is_some_and(|since| now.saturating_sub(since) >= patience);
            let again = peer.strike_asked.is_none_or(|at| now.saturating_sub(at) >= limits.resend * 2);
            if peer.in_sync && behind && waits && again {
                peer.strike_asked = Some(now);
                out.push(Output::RequestStrike { version: sender.version, member: peer.member });
            }
        }
        self.see_to_damaged(now, out);
        self.look_at_joiners(now, out);
        self.advance(out);
    }

    /// Primary: the rows of this member are damaged, and it is in-sync. `false`: it is not, so nobody can say what it
    /// has, or this is known.
    pub fn exclude(&mut self, now: Duration, member: Member, out: &mut Outbox) -> bool {
        let in_sync = |leading: &mut Leading| leading.peer(member).is_some_and(|peer| peer.in_sync);
        self.leading.as_mut().is_some_and(in_sync) && self.count_as_damaged(now, member, out)
    }

    /// Primary: this member has stopped (rule 80), after so many copies that were begun for it in this view. `false`: there
    /// was another since, or this is known.
    pub fn on_stopped(&mut self, now: Duration, member: Member, copy: u64, out: &mut Outbox) -> bool {
        let same = |leading: &mut Leading| leading.peer(member).is_some_and(|peer| peer.copy_number == copy);
        self.leading.as_mut().is_some_and(same) && self.count_as_damaged(now, member, out)
    }

    fn count_as_damaged(&mut self, now: Duration, member: Member, out: &mut Outbox) -> bool {
        let Some(leading) = self.leading.as_mut().filter(|_| self.role == Role::Primary) else { return false };
        if leading.damaged.iter().any(|(damaged, _)| *damaged == member) {
            return false;
        }
        // Something is done at once.
        leading.damaged.push((member, Duration::ZERO));
        self.see_to_damaged(now, out);
        true
    }

    /// Whether the rows of this member are damaged, and no copy has begun for it since.
    pub fn is_excluded(&self, member: Member) -> bool {
        self.leading.iter().flat_map(|leading| &leading.damaged).any(|(damaged, _)| *damaged == member)
    }

    /// What has not happened is asked for again.
    fn see_to_damaged(&mut self, now: Duration, out: &mut Outbox) {
        let Some(Sender { view, version, limits, .. }) = self.sender() else { return };
        let Some(Leading { peers, damaged, .. }) = &mut self.leading else { return };
        for (member, at) in damaged.iter_mut().filter(|(_, at)| now.saturating_sub(*at) >= limits.resend * 2) {
            let Some(peer) = peers.iter().find(|peer| peer.member == *member) else { continue };
            if !peer.in_sync && matches!(peer.counting, Counting::Requested { .. }) {
                continue; // it may be taken in, and is removed again then
            }
            *at = now;
            out.push(match peer.in_sync {
                true => Output::RequestStrike { version, member: *member },
                false => {
                    let message = Message::Discard { view, copy: peer.copy_number };
                    Output::Send { to: *member, message }
                }
            });
        }
    }
}
