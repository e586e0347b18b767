//! Throwing away what no reader needs: old versions, tombstones, and the index entries that go with them.
//!
//! Every commit that left something behind has put (its time, the row) into a queue; the queue is in about the order
//! of time, so collecting looks at its front only. An entry says no more than "look at this row": trimming a row is
//! idempotent, and harmless when the row id has come to belong to another row.
//!
//! History has a limit of its own. Beyond it the oldest versions are given up although a snapshot may need them. What is not yet durable is never given up.
//!
//! Whatever goes raises the fragment's floors to the time that superseded it, and a read below a floor that finds nothing fails with `SnapshotTooOld`. A
//! caller that is right about the oldest snapshot never meets that, except at the history limit.

use super::fragment::Fragment;
use super::side::RowKey;
use super::versions::flags;
use super::{Horizon, Partition};
use rauk_types::Timestamp;

/// From this time on the row has something to throw away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Garbage {
    pub time: Timestamp,
    pub key: RowKey,
}

/// Of rows that somebody writes over or has locked, so many are looked at in one call: there may be as many as a transaction
/// has rows, and each commit beside it collects.
const MOST_BLOCKED: usize = 1024;

/// What [`Partition::trim`] did.
struct Trimmed {
    thrown: usize,
    /// Something is left that a later call may throw away: look again.
    again: bool,
}

impl Horizon {
    /// What was superseded at or before this time can go.
    pub(super) fn bound(&self) -> Timestamp {
        self.oldest_snapshot.min(self.durable)
    }
}

impl Partition {
    /// Throws away up to about `limit` versions, tombstones and index entries that no snapshot needs; gives how many.
    pub fn collect(&mut self, horizon: Horizon, limit: usize) -> usize {
        let thrown = self.throw_away(horizon, limit);
        self.settle();
        thrown
    }

    /// How many bytes of old versions this partition may keep. The oldest go first; readers that need them get
    /// [`super::Stop::SnapshotTooOld`].
    pub fn set_history_limit(&mut self, bytes: u64) {
        self.history_limit = bytes;
    }

    pub(super) fn throw_away(&mut self, horizon: Horizon, limit: usize) -> usize {
        let bound = horizon.bound();
        let (mut thrown, mut blocked) = (0, 0);
        // What cannot go yet is put back at the end and not met again in this call.
        for _ in 0..self.garbage.len() {
            if thrown >= limit || blocked >= limit.min(MOST_BLOCKED) {
                break;
            }
            let Some(garbage) = self.garbage.front().copied().filter(|g| g.time <= bound) else { break };
            self.garbage.pop_front();
            let trimmed = self.trim(garbage.key, bound);
            thrown += trimmed.thrown;
            if trimmed.again {
                blocked += 1;
                self.garbage.push_back(garbage);
            }
        }
        if self.garbage.capacity() > 4096 && self.garbage.len() * 8 < self.garbage.capacity() {
            self.garbage.shrink_to(self.garbage.len() * 2);
        }
        thrown
    }

    pub(super) fn enforce_history_limit(&mut self, horizon: Horizon) {
        if self.history_bytes <= self.history_limit {
            return;
        }
        self.throw_away(horizon, usize::MAX);
        let mut blocked = 0;
        for _ in 0..self.garbage.len() {
            if self.history_bytes <= self.history_limit || blocked >= MOST_BLOCKED {
                break;
            }
            let durable = |g: &Garbage| g.time <= horizon.durable;
            let Some(garbage) = self.garbage.front().copied().filter(durable) else { break };
            self.garbage.pop_front();
            if self.trim(garbage.key, horizon.durable).again {
                blocked += 1;
                self.garbage.push_back(garbage);
            }
        }
    }

    /// Throws away everything of a row that was superseded at or before `bound`.
    fn trim(&mut self, rk: RowKey, bound: Timestamp) -> Trimmed {
        let nothing = Trimmed { thrown: 0, again: false };
        let Some(fragment) = self.fragments.get_mut(&rk.table()) else { return nothing };
        let Some(side) = self.versions.get(rk) else { return nothing };
        let header = fragment.rows.header(rk.row());
        let tombstone = header.flags & flags::TOMBSTONE != 0;
        // Each version is superseded by the next; the last by the inline one, or by what lies under the tombstone.
        let inline_time = if tombstone { side.buried } else { header.time };
        let superseded = |i: usize| side.history.get(i + 1).map_or(inline_time, |next| next.time);
        let count = (0..side.history.len()).take_while(|&i| superseded(i) <= bound).count();
        let mut thrown = count;
        if count > 0 {
            let newest = superseded(count - 1);
            self.keys.clear();
            for i in 0..count {
                let version = self.versions.get(rk).expect("seen").history[i];
                if let Some(image) = version.image() {
                    let (header, inline) = fragment.rows.get(rk.row());
                    let old = self.versions.image(image);
                    fragment.distinct_keys(old, (header.layout, inline), &mut self.keys, &mut self.scratch);
                    let size = version.bytes();
                    fragment.history_bytes -= size;
                    self.history_bytes -= size;
                    self.versions.images.remove(image);
                }
            }
            self.versions.with(rk, |s| {
                s.history.drain(..count);
                if s.history.spilled() && s.history.len() <= 1 {
                    s.history.shrink_to_fit();
                }
            });
            let entries = fragment.drop_suspects(&self.versions, rk, &mut self.keys, &mut self.scratch);
            thrown += entries;
            raise(&mut fragment.floor, newest);
            if entries > 0 {
                raise(&mut fragment.entry_floor, newest);
            }
        }
        let side = self.versions.get(rk).expect("seen");
        if tombstone && header.time <= bound {
            if side.pending.is_some() || self.locks.is_used(rk) {
                return Trimmed { thrown, again: true };
            }
            let size = fragment.rows.get(rk.row()).1.size() as u64;
            self.history_bytes -= size;
            fragment.vanish(&mut self.versions, rk, &mut self.keys);
            thrown += 1;
            fragment.raise_floors(header.time);
            return Trimmed { thrown, again: false };
        }
        fragment.tidy(&mut self.versions, rk);
        Trimmed { thrown, again: false }
    }
}

fn raise(floor: &mut Timestamp, time: Timestamp) {
    *floor = (*floor).max(time);
}

impl Fragment {
    /// Nothing is known of what was before this time.
    pub(super) fn raise_floors(&mut self, time: Timestamp) {
        raise(&mut self.floor, time);
        raise(&mut self.entry_floor, time);
        raise(&mut self.removed_floor, time);
    }
}
