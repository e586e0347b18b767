//! The entries of a stream that are kept in memory, and in which views they were written.
//!
//! Entries stand in a row behind `base`, the last entry that is not kept any more. `history` has the last position of each view (oldest first) that has an
//! entry at `base` or behind it, so the view of every position from `base` on is known. Each slot knows the sum of bytes up to its end, counted from the
//! beginning of the process: the bytes between two positions are one subtraction, which is what flow control asks for with each entry.
//!
//! All operations are O(1) amortised, except those that look a view up (a binary search over a handful of views).

use super::messages::{Entry, EntryId};
use rauk_types::{Position, View};
use std::collections::VecDeque;

/// What an entry costs beside its record: the slot, the record's handle and its header.
const ENTRY_OVERHEAD: u64 = 96;

#[derive(Debug)]
struct Slot {
    entry: Entry,
    /// Bytes of all entries up to this one.
    end: u64,
}

#[derive(Debug, Default)]
pub(super) struct History {
    base: EntryId,
    base_end: u64,
    slots: VecDeque<Slot>,
    views: VecDeque<EntryId>,
}

impl History {
    /// Nothing kept; the stream goes on behind `base`.
    pub fn starting(base: EntryId) -> History {
        let views = if base.position.0 == 0 { VecDeque::new() } else { VecDeque::from([base]) };
        History { base, base_end: 0, slots: VecDeque::new(), views }
    }

    /// As a restart has found it. `None`: the parts do not fit together.
    pub fn restored(views: &[EntryId], kept: Vec<Entry>) -> Option<History> {
        if !well_formed(views) {
            return None;
        }
        let last = views.last().copied().unwrap_or_default();
        let base = match kept.first() {
            None => last,
            Some(first) => {
                let position = Position(first.id.position.0.checked_sub(1)?);
                let view = views.iter().find(|id| id.position >= position)?.view;
                if position.0 == 0 { EntryId::default() } else { EntryId { view, position } }
            }
        };
        let mut history = History::starting(base);
        for entry in kept {
            let previous = history.last();
            if entry.id.position.0 != previous.position.0 + 1 || entry.id.view < previous.view {
                return None;
            }
            history.push(entry);
        }
        let known = views.iter().filter(|id| id.position >= base.position && id.position.0 > 0);
        (history.last() == last && known.eq(history.views.iter())).then_some(history)
    }

    pub fn base(&self) -> EntryId {
        self.base
    }

    pub fn last(&self) -> EntryId {
        self.slots.back().map_or(self.base, |slot| slot.entry.id)
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> u64 {
        self.slots.back().map_or(0, |slot| slot.end - self.base_end)
    }

    /// Which entry stands at a position; `None` before the base and behind the last.
    pub fn id_at(&self, position: Position) -> Option<EntryId> {
        if position < self.base.position || position > self.last().position {
            return None;
        }
        if position.0 == 0 {
            return Some(EntryId::default());
        }
        let at = self.views.partition_point(|id| id.position < position);
        Some(EntryId { view: self.views[at].view, position })
    }

    /// # Panics
    /// If the entry does not follow on the last.
    pub fn push(&mut self, entry: Entry) {
        let last = self.last();
        assert!(entry.id.position.0 == last.position.0 + 1, "entry {:?} does not follow on {last:?}", entry.id);
        assert!(entry.id.view >= last.view, "entry {:?} is of an older view than {last:?}", entry.id);
        let end = self.slots.back().map_or(self.base_end, |slot| slot.end) + entry.record.len() as u64 + ENTRY_OVERHEAD;
        match self.views.back_mut() {
            Some(view) if view.view == entry.id.view => view.position = entry.id.position,
            _ => self.views.push_back(entry.id),
        }
        self.slots.push_back(Slot { entry, end });
    }

    /// Takes everything behind `after` away.
    ///
    /// # Panics
    /// If `after` is before the base.
    pub fn cut(&mut self, after: Position) {
        let Some(id) = self.id_at(after) else {
            assert!(after > self.last().position, "a cut behind {after:?}, before the base {:?}", self.base);
            return;
        };
        self.slots.truncate((after.0 - self.base.position.0) as usize);
        while self.views.back().is_some_and(|view| view.position > after) {
            self.views.pop_back();
        }
        if after.0 > 0 && self.views.back().is_none_or(|view| view.position < after) {
            self.views.push_back(id);
        }
    }

    /// Lets the oldest entries go, at or before `upto`, until no more than `limit` bytes are left.
    pub fn evict(&mut self, upto: Position, limit: u64) {
        while self.bytes() > limit {
            match self.slots.front() {
                Some(slot) if slot.entry.id.position <= upto => {
                    self.base = slot.entry.id;
                    self.base_end = slot.end;
                    self.slots.pop_front();
                }
                _ => break,
            }
        }
        while self.views.front().is_some_and(|view| view.position < self.base.position) {
            self.views.pop_front();
        }
    }

    /// Bytes of the entries behind `after` up to `upto`, as far as they are kept.
    pub fn bytes_between(&self, after: Position, upto: Position) -> u64 {
        self.end_of(upto).saturating_sub(self.end_of(after))
    }

    fn end_of(&self, position: Position) -> u64 {
        let position = position.min(self.last().position);
        if position <= self.base.position {
            return self.base_end;
        }
        self.slots[(position.0 - self.base.position.0 - 1) as usize].end
    }

    /// Kept entries from a position on, one at least if there is one, not much more than `bytes` of them.
    pub fn read(&self, from: Position, bytes: usize) -> Vec<Entry> {
        let first = from.0.saturating_sub(self.base.position.0 + 1) as usize;
        let mut entries = Vec::new();
        let mut left = bytes as u64;
        for slot in self.slots.range(first.min(self.slots.len())..) {
            entries.push(slot.entry.clone());
            left = left.saturating_sub(slot.entry.record.len() as u64 + ENTRY_OVERHEAD);
            if left == 0 {
                break;
            }
        }
        entries
    }

    /// The last positions of the views that have an entry at `from` or behind it, oldest first.
    pub fn views_from(&self, from: Position) -> impl DoubleEndedIterator<Item = EntryId> + '_ {
        self.views.iter().copied().filter(move |id| id.position >= from)
    }

    /// The newest entry that this stream and another one share, as far as the views of both tell; the beginning of all streams if they tell of none.
    /// (Who has an entry of a view has everything before it as well, so the newest view that both have decides.) `theirs`: newest first.
    pub fn common(&self, theirs: &[EntryId]) -> EntryId {
        for id in theirs {
            if let Some(mine) = self.views.iter().rev().find(|mine| mine.view == id.view) {
                return EntryId { view: id.view, position: mine.position.min(id.position) };
            }
        }
        EntryId::default()
    }
}

/// Last positions of views, oldest first: both grow.
pub(super) fn well_formed(views: &[EntryId]) -> bool {
    views.windows(2).all(|pair| pair[0].view < pair[1].view && pair[0].position < pair[1].position)
        && views.first().is_none_or(|id| id.view > View(0) && id.position > Position(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn entry(view: u64, position: u64, size: usize) -> Entry {
        Entry {
            id: EntryId { view: View(view), position: Position(position) },
            record: Bytes::from(vec![position as u8; size]),
        }
    }

    fn id(view: u64, position: u64) -> EntryId {
        EntryId { view: View(view), position: Position(position) }
    }

    fn sample() -> History {
        let mut history = History::default();
        for (view, position) in [(1, 1), (1, 2), (3, 3), (3, 4), (3, 5), (4, 6)] {
            history.push(entry(view, position, 10));
        }
        history
    }

    #[test]
    fn views_of_positions() {
        let history = sample();
        assert_eq!(history.id_at(Position(0)), Some(id(0, 0)));
        assert_eq!(history.id_at(Position(2)), Some(id(1, 2)));
        assert_eq!(history.id_at(Position(3)), Some(id(3, 3)));
        assert_eq!(history.id_at(Position(6)), Some(id(4, 6)));
        assert_eq!(history.id_at(Position(7)), None);
    }

    #[test]
    fn cut_evict_and_sizes() {
        let mut history = sample();
        assert_eq!(history.bytes(), 6 * 106);
        assert_eq!(history.bytes_between(Position(2), Position(4)), 2 * 106);
        history.cut(Position(4));
        assert_eq!(history.last(), id(3, 4));
        assert_eq!(history.views_from(Position(0)).collect::<Vec<_>>(), [id(1, 2), id(3, 4)]);
        history.evict(Position(3), 0);
        assert_eq!(history.base(), id(3, 3));
        assert_eq!(history.views_from(Position(0)).collect::<Vec<_>>(), [id(3, 4)]);
        assert_eq!(history.bytes(), 106);
        assert_eq!(history.bytes_between(Position(0), Position(9)), 106);
        history.push(entry(5, 5, 1));
        history.cut(Position(3));
        assert_eq!(history.last(), id(3, 3));
        assert_eq!(history.read(Position(1), 1000), []);
        history.push(entry(6, 4, 1));
        assert_eq!(history.read(Position(1), 1000), [entry(6, 4, 1)]);
    }

    #[test]
    fn the_common_part() {
        let history = sample();
        assert_eq!(history.common(&[id(4, 9), id(3, 5)]), id(4, 6));
        assert_eq!(history.common(&[id(2, 4), id(1, 2)]), id(1, 2));
        assert_eq!(history.common(&[id(3, 4)]), id(3, 4));
        assert_eq!(history.common(&[]), id(0, 0));
    }

    #[test]
    fn restored_parts_fit() {
        let kept = sample().read(Position(4), 1000);
        let views = [id(1, 2), id(3, 5), id(4, 6)];
        let history = History::restored(&views, kept.clone()).unwrap();
        assert_eq!((history.base(), history.last()), (id(3, 3), id(4, 6)));
        assert_eq!(History::restored(&views, vec![]).unwrap().base(), id(4, 6));
        assert!(History::restored(&views[..2], kept.clone()).is_none());
        assert!(History::restored(&[id(1, 2), id(4, 6)], kept).is_none());
    }
}
