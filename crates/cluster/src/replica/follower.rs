//! A replica that follows: takes the primary's stream, cuts what differs, acknowledges.
//!
//! What a follower has from older views may differ from the new primary's stream, so it says only what it has *verified*: everything up to an entry that an
//! append of this view has shown to be the same. What stands behind that is cut by the first entry that differs (the opening of the view differs from anything).
//!
//! An append that names another entry before it than the follower has at that place is answered by a mismatch. Nothing is cut at or before the *floor*: the own
//! stable position, and the place where a copy began (what came before is in the table's state only). An append that asks for that is wrong, or
//! meant for a replica that needs a copy: it is refused with a mismatch that names the floor, and the primary decides.

use super::Replica;
use super::copies::Incoming;
use super::disk::Reached;
use super::messages::{Contents, Entry, EntryId, Message, Outbox, Output, Role};
use rauk_types::{Position, View};
use std::time::Duration;

/// Views that a mismatch tells of at most. There are as many as there were primaries since the floor.
const TOLD_VIEWS: usize = 256;

/// What a follower keeps of the present view.
#[derive(Debug, Default)]
pub(super) struct Following {
    /// Up to here its entries are the primary's. `None`: nothing has been compared yet.
    pub verified: Option<Position>,
    /// It has all that was stable when the primary's opening was.
    pub is_current: bool,
    /// The copy that it follows, or has followed, in this view.
    pub copy: Option<Incoming>,
    pub newest_copy: u64,
    /// What it has acknowledged last (received, durable), and when.
    acknowledged: Option<(Position, Position, Duration)>,
    mismatched: Option<(EntryId, Duration)>,
}

impl Replica {
    pub(super) fn on_append(
        &mut self,
        now: Duration,
        previous: EntryId,
        entries: Vec<Entry>,
        stable: Position,
        out: &mut Outbox,
    ) {
        if !follows(previous, &entries, self.view) {
            return;
        }
        if self.contents == Contents::Partial && self.following.copy.is_none() {
            return self.mismatch(now, out);
        }
        let end = Position(previous.position.0 + entries.len() as u64);
        let known = self.following.verified.is_some_and(|has| end <= has);
        if !known && !self.matches(previous, &entries) {
            return self.mismatch(now, out);
        }
        let mut new = false;
        if !known {
            for entry in entries {
                let position = entry.id.position;
                let base = self.history.base().position;
                if position <= base || self.history.id_at(position) == Some(entry.id) {
                    continue;
                }
                if position <= self.history.last().position {
                    if position <= self.floor() {
                        return self.mismatch(now, out);
                    }
                    self.cut(Position(position.0 - 1), out);
                }
                // Its primary knew this when it wrote the entry, which may rest on it: a row's lock is given on when the entry before is stable.
                self.learn_stable(stable.min(Position(position.0 - 1)), out);
                self.append(now, entry.clone(), out);
                out.push(Output::Received { entry });
                new = true;
            }
            self.following.verified = Some(end.max(self.following.verified.unwrap_or_default()));
        }
        let verified = self.following.verified.unwrap_or_default();
        // A primary that has not opened its view says what it was told to be stable, which may be less than what is. Its opening is stable when
        // all in-sync members have accepted it, and none of them has more.
        let opened = self.history.id_at(stable).is_some_and(|entry| entry.view == self.view);
        self.following.is_current |= opened && stable <= verified;
        self.learn_stable(stable.min(verified), out);
        self.finish_copy(now, out);
        let told = self.following.acknowledged;
        let current = (verified, self.disk.durable().min(verified));
        // New entries are acknowledged when they are on disk; everything else at once, unless it was said a moment ago.
        let stale = told.is_none_or(|(received, durable, at)| {
            (received, durable) != current || now.saturating_sub(at) >= self.limits.resend
        });
        if !self.limits.durable || (!new && stale) {
            self.acknowledge(now, out);
        }
    }

    fn learn_stable(&mut self, upto: Position, out: &mut Outbox) {
        if upto > self.stable {
            self.stable = upto;
            out.push(Output::Stable { upto });
            self.history.evict(upto, self.limits.kept_bytes as u64);
        }
    }

    /// Whether an append follows on something that this stream has too. What stands before the base is not known any more; it is the same if it is stable, and if the
    /// append has the same entry at the base. An append that ends before the base and is of a later view than the entry there is another stream: views only grow.
    fn matches(&self, previous: EntryId, entries: &[Entry]) -> bool {
        let base = self.history.base();
        if previous.position >= base.position {
            return self.history.id_at(previous.position) == Some(previous);
        }
        match entries.get((base.position.0 - previous.position.0 - 1) as usize) {
            Some(entry) => entry.id == base,
            None => {
                let last = entries.last().map_or(previous, |entry| entry.id);
                last.position <= self.stable && last.view <= base.view
            }
        }
    }

    /// Nothing at or before this can be cut.
    fn floor(&self) -> Position {
        self.stable.max(self.history.base().position)
    }

    fn cut(&mut self, after: Position, out: &mut Outbox) {
        assert!(after >= self.floor(), "a cut behind {after:?}, and {:?} is stable", self.stable);
        self.history.cut(after);
        self.disk.cut(after);
        out.push(Output::Cut { after });
    }

    fn mismatch(&mut self, now: Duration, out: &mut Outbox) {
        let last = self.history.last();
        let said = |(id, at): &(EntryId, Duration)| *id == last && now.saturating_sub(*at) < self.limits.heartbeat;
        let Some(to) = self.leader else { return };
        if self.following.mismatched.as_ref().is_some_and(said) {
            return;
        }
        self.following.mismatched = Some((last, now));
        let floor = self.floor();
        let history = match (self.contents, &self.following.copy) {
            // It has given up the copy that its primary may still bring.
            (Contents::Partial, None) => Vec::new(),
            _ => self.history.views_from(floor).rev().take(TOLD_VIEWS).collect(),
        };
        let stable = match self.contents {
            Contents::Whole => self.history.id_at(self.stable).unwrap_or_default(),
            // What such a replica takes for stable may be what it was to forget.
            Contents::Partial => EntryId::default(),
        };
        let message = Message::Mismatch { view: self.view, last, history, floor, stable, contents: self.contents };
        out.push(Output::Send { to, message });
    }

    /// Says what is here. A copy that has become whole in an older view and is not so on disk yet says nothing: it could be taken for half a copy.
    pub(super) fn acknowledge(&mut self, now: Duration, out: &mut Outbox) {
        let (Some(received), Some(to)) = (self.following.verified, self.leader) else { return };
        if self.role != Role::Follower || (!self.whole_on_disk && self.following.copy.is_none()) {
            return;
        }
        let durable = self.disk.durable().min(received);
        self.following.acknowledged = Some((received, durable, now));
        let contents = if self.whole_on_disk { Contents::Whole } else { Contents::Partial };
        let copy = self.following.newest_copy;
        let message = Message::Acknowledge { view: self.view, received, durable, copy, contents };
        // What was said before and is still here need not be sent any more.
        if let Some(Output::Send { to: other, message: old @ Message::Acknowledge { .. } }) = out.last_mut()
            && *other == to
        {
            *old = message;
            return;
        }
        out.push(Output::Send { to, message });
    }

    pub(super) fn follower_durable(&mut self, now: Duration, reached: &Reached, out: &mut Outbox) {
        if self.limits.durable {
            if reached.begun {
                self.copy_begun(now, out);
            }
            if let Some(slice) = reached.slice {
                self.slice_taken(now, slice, out);
            }
            if reached.whole {
                self.copy_on_disk(now, out);
            }
        }
        // Where nobody waits for the disk, cuts do (rule 28).
        let durable = self.disk.durable();
        let news = |has: Position| self.following.acknowledged.is_none_or(|(_, said, _)| durable.min(has) > said);
        if self.following.verified.is_some_and(news) {
            self.acknowledge(now, out);
        }
    }

    /// Says what was received when the disk takes long: it need not be sent again.
    pub(super) fn tick_follower(&mut self, now: Duration, out: &mut Outbox) {
        let Some(verified) = self.following.verified else { return };
        if self.following.acknowledged.is_none_or(|(received, _, _)| received < verified) {
            self.acknowledge(now, out);
        }
    }
}

/// Whether the entries of an append are one behind the other, in views that only grow, up to the present one.
fn follows(previous: EntryId, entries: &[Entry], view: View) -> bool {
    let mut before = previous;
    if (previous.view == View(0)) != (previous.position == Position(0)) {
        return false;
    }
    for Entry { id, .. } in entries {
        if Some(id.position.0) != before.position.0.checked_add(1) || id.view < before.view || id.view == View(0) {
            return false;
        }
        before = *id;
    }
    before.view <= view
}
