//! The check of everything against everything, for tests: indexes equal rows, counts equal contents, side tables consistent.

use super::Partition;
use super::fragment::Fragment;
use super::locks::Mode;
use super::side::RowKey;
use super::versions::{Image, flags};
use crate::row_store::{RowHeader, RowId};
use rauk_types::{TableId, Timestamp, key};
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};

impl Partition {
    /// Checks that indexes equal rows, counts equal contents, and side tables are consistent; panics with what is wrong.
    pub fn validate(&self) {
        let mut sides = 0;
        let mut images = 0;
        let mut history = 0;
        for (table, fragment) in self.fragments.iter() {
            let mut live = 0;
            let mut fragment_history = 0;
            let mut next = RowId(0);
            let mut rows = 0;
            while let Some(id) = fragment.rows.next(next) {
                next = RowId(id.0 + 1);
                rows += 1;
                let rk = RowKey::new(table, id);
                let (header, bytes) = fragment.rows.get(id);
                let settled = fragment.rows.settled(id, Timestamp::MAX);
                assert_eq!(settled.is_some(), header.flags & flags::SIDE == 0, "{rk:?}: the mark's bit");
                assert!(settled.is_none_or(|newest| newest >= header.time), "{rk:?}: newer than its mark");
                live += u64::from(header.flags & (flags::TOMBSTONE | flags::UNCOMMITTED) == 0);
                let mut pk = Vec::new();
                fragment.primary.encode_row(&fragment.view(header.layout, bytes), &mut pk);
                assert_eq!(fragment.find(&pk, key::hash(&pk)), Some(id), "{rk:?}: not found by its key");
                let fresh = header.flags & flags::FRESH != 0;
                let has_side = header.flags & flags::SIDE != 0 && !fresh;
                assert_eq!(has_side, self.versions.get(rk).is_some(), "{rk:?}: flags {:b}", header.flags);
                if fresh {
                    self.validate_fresh(rk, header);
                } else if header.flags & flags::SIDE != 0 {
                    sides += 1;
                    let (stored, old) = self.validate_side(fragment, rk);
                    images += stored;
                    fragment_history += old;
                } else {
                    assert_eq!(header.flags, 0, "{rk:?}: flags without a side entry");
                }
            }
            assert_eq!(rows, fragment.rows.len(), "{table:?}: rows");
            assert_eq!(rows, fragment.hash.len(), "{table:?}: hash entries");
            assert_eq!(live, fragment.live, "{table:?}: live rows");
            assert_eq!(self.recompute_digest(table), fragment.digest.value(), "{table:?}: digest");
            assert_eq!(fragment_history, fragment.history_bytes, "{table:?}: history bytes");
            history += fragment_history;
            self.validate_indexes(table, fragment);
        }
        assert_eq!(sides, self.versions.len(), "side entries of rows that are not there");
        assert_eq!(images, self.versions.image_count(), "images that belong to nobody");
        assert_eq!(history, self.history_bytes, "history bytes");
        self.locks.validate(&self.txns);
        self.versions.validate_bytes();
        self.txns.validate();
        self.ranges.validate();
        self.names.validate();
        for record in self.txns.iter().filter(|record| !self.is_under_way(record.txn.id)) {
            for undo in &record.undo {
                let header = self.fragments[&undo.key.table()].rows.header(undo.key.row());
                let own = self.versions.own_top(undo.key, header, record.txn.id);
                assert!(own.is_some(), "{undo:?}: nothing pending");
            }
        }
        assert_eq!(self.counted, self.side_bytes(), "bytes of side tables counted in the budget");
    }

    /// A fresh row is listed once by its owner, who alone holds its lock.
    fn validate_fresh(&self, rk: RowKey, header: RowHeader) {
        let all = flags::UNCOMMITTED | flags::SIDE | flags::FRESH;
        assert_eq!(header.flags, all, "{rk:?}: flags of a fresh row");
        let (owner, statement) = self.versions.seats.owner(header).expect("it is fresh");
        let record = self.txns.get(owner.id).expect("the owner is known");
        let mut undo = record.undo.iter().filter(|u| u.key == rk).map(|u| (u.statement, u.first));
        assert_eq!((undo.next(), undo.next()), (Some((statement, true)), None), "{rk:?}: undo entries");
        let held = !self.locks.is_used(rk) || self.locks.held(rk, owner.id) == Some(Mode::Gone);
        assert!(held && self.locks.holders_beside(rk, owner.id).is_empty(), "{rk:?}: a fresh row of somebody else");
    }

    /// Gives the images in the store and the bytes of history.
    fn validate_side(&self, fragment: &Fragment, rk: RowKey) -> (usize, u64) {
        let side = self.versions.get(rk).expect("seen by the caller");
        let (header, bytes) = fragment.rows.get(rk.row());
        assert!(!side.is_empty(), "{rk:?}: an empty side entry");
        assert_eq!(
            header.flags & flags::TOMBSTONE != 0,
            side.buried != Timestamp::ZERO,
            "{rk:?}: what lies under the tombstone"
        );
        let mut images = 0;
        let mut history = if side.buried != Timestamp::ZERO { bytes.size() as u64 } else { 0 };
        let mut last = Timestamp::ZERO;
        for version in &side.history {
            assert!(version.time > Timestamp::ZERO && version.time >= last, "{rk:?}: history {:?}", side.history);
            last = version.time;
            if let Some(image) = version.image() {
                images += 1;
                history += version.bytes();
                let (head, size) = (self.versions.image(image).1.head.len(), self.versions.image(image).1.size());
                let counted = head as u64..=size as u64;
                assert!(counted.contains(&version.bytes()), "{rk:?}: a version that counts {} bytes", version.bytes());
            }
        }
        let inline = if side.buried != Timestamp::ZERO { side.buried } else { header.time };
        let fresh = header.flags & flags::UNCOMMITTED != 0;
        assert!(fresh || inline >= last, "{rk:?}: inline version is older than history");
        assert!(fresh || inline <= header.time, "{rk:?}: deleted at {:?}, before it came", header.time);
        assert!(header.time <= self.finished, "{rk:?}: committed at {:?} of {:?}", header.time, self.finished);
        assert!(!fresh || side.history.is_empty(), "{rk:?}: an uncommitted insert has history");
        if let Some(pending) = &side.pending {
            let owner = pending.owner.id;
            let held = self.locks.held(rk, owner);
            assert!(held >= Some(Mode::Exclusive), "{rk:?}: {owner:?} has written and holds {held:?}");
            let record = self.txns.get(owner).expect("the owner is known");
            // Of what is under way the list has what is left to do.
            if !self.is_under_way(owner) {
                let undo = &record.undo;
                let firsts = undo.iter().filter(|u| u.key == rk && u.first).count();
                assert_eq!(firsts, 1, "{rk:?}: first changes in the undo list");
                assert_eq!(undo.iter().filter(|u| u.key == rk).count(), pending.stack.len(), "{rk:?}: undo entries");
            }
            for (i, change) in pending.stack.iter().enumerate() {
                assert_eq!(change.image == Image::Inline, i == 0 && fresh, "{rk:?}: {:?}", pending.stack);
                images += usize::from(matches!(change.image, Image::Stored(_)));
            }
        } else {
            assert!(!fresh, "{rk:?}: an uncommitted insert of nobody");
        }
        (images, history)
    }

    fn validate_indexes(&self, table: TableId, fragment: &Fragment) {
        for index in &fragment.indexes {
            let mut expected = BTreeSet::new();
            let mut next = RowId(0);
            while let Some(id) = fragment.rows.next(next) {
                next = RowId(id.0 + 1);
                self.versions.any_image(fragment, RowKey::new(table, id), |layout, bytes| {
                    index.def.for_each(&fragment.view(layout, bytes), &mut Vec::new(), |key| {
                        expected.insert((key.to_vec(), id));
                    });
                    false
                });
            }
            let mut expected_next = expected.iter();
            index.tree.scan(Bound::Unbounded, Bound::Unbounded, false, None, &mut |key, id| {
                let found = (key.to_vec(), id);
                assert_eq!(expected_next.next(), Some(&found), "{table:?} {:?}: entries", index.id);
                ControlFlow::Continue(())
            });
            assert_eq!(expected_next.next(), None, "{table:?} {:?}: a missing entry", index.id);
            assert_eq!(index.tree.len(), expected.len(), "{table:?} {:?}: number of entries", index.id);
        }
    }
}
