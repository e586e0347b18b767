//! Inserts, updates and deletes: lock, check, put a pending image, add index entries.
//!
//! Everything that can fail comes before the first change, memory included: the slab store refuses the image at the
//! limit, and what grows beside it (index leaves, side tables) may use the reserve. Deletes never fail for memory.
//!
//! Writes act on the newest state, own changes of the same statement included. A second write of one statement to one
//! row takes the place of the first one's image, since both are undone together.

use super::fragment::{Fragment, KeyList};
use super::locks::{self, Mode};
use super::ranges::RangeTable;
use super::side::RowKey;
use super::transactions::{TxnTable, Undo};
use super::versions::{Change, Image, VersionTable, flags};
use super::{Access, Partition, Stop, WaitPolicy, large, read};
use crate::budget::{MemoryBudget, MemoryFull, Purpose};
use crate::row_store::{RowHeader, RowId};
use crate::status::{TxnRef, TxnState};
use rauk_types::{RowImage, TableId, Timestamp};
use std::sync::Arc;

impl From<MemoryFull> for Stop {
    fn from(full: MemoryFull) -> Self {
        Stop::MemoryFull { limit: full.limit }
    }
}

/// What a deletion counts for in a chunk, in bytes: about a key.
const DELETION: usize = 32;

/// The newest state of a row for its lock's holder.
enum Newest {
    Absent,
    /// The image and, when it is the transaction's own, its change.
    Present(Image, Option<Change>),
}

impl Partition {
    /// Locks and inserts. `row` is in the table's newest layout.
    pub fn insert(
        &mut self,
        table: TableId,
        key: &[u8],
        hash: u64,
        row: &[u8],
        access: &mut Access<'_>,
    ) -> Result<(), Stop> {
        let txn = access.txn.expect("a write belongs to a transaction");
        self.may_write()?;
        self.has_room_elsewhere()?;
        let fragment = self.fragments.get(&table).ok_or(Stop::StaleSchema)?;
        let result = match fragment.find(key, hash) {
            Some(id) => self.insert_over(txn, RowKey::new(table, id), row, access),
            None => self.insert_fresh(txn, table, hash, row, access),
        };
        self.settle();
        result
    }

    fn insert_fresh(
        &mut self,
        txn: &TxnRef,
        table: TableId,
        hash: u64,
        row: &[u8],
        access: &mut Access<'_>,
    ) -> Result<(), Stop> {
        let fragment = self.fragments.get_mut(&table).expect("seen by the caller");
        let layout = fragment.schema.layout().version;
        if self.ranges.is_used(table) {
            self.keys.clear();
            all_range_keys(fragment, layout, row.into(), &mut self.keys);
            check_ranges(fragment, &mut self.ranges, &mut self.txns, txn, table, &self.keys)?;
        }
        let apart = self.take_apart(table, row, Purpose::Write)?;
        let row = large::image(row, &apart);
        Ok(self.put_fresh(txn, table, hash, (layout, row), access.statement, Purpose::Write)?)
    }

    /// An insert where a row with this key is: pending, deleted, or in the way.
    fn insert_over(&mut self, txn: &TxnRef, rk: RowKey, row: &[u8], access: &mut Access<'_>) -> Result<(), Stop> {
        let fragment = self.fragments.get_mut(&rk.table()).expect("seen by the caller");
        let header = fragment.rows.header(rk.row());
        let in_the_way = match self.versions.pending(rk, header) {
            Some(top) if top.change.image == Image::Deleted => None,
            Some(top) if top.owner.id == txn.id => Some(Timestamp::ZERO),
            Some(top) => match top.owner.status.get() {
                TxnState::Committed(time) => Some(time),
                _ => None,
            },
            None => (header.flags & flags::TOMBSTONE == 0).then_some(header.time),
        };
        if let Some(time) = in_the_way {
            access.observed = access.observed.max(time);
            locks::drop_wait(&mut self.locks, &mut self.txns, txn.id, rk);
            return Err(Stop::Duplicate);
        }
        let fresh = self.versions.seats.owner(header).map(|(owner, _)| owner);
        let taken = locks::take(&mut self.locks, &mut self.txns, txn, rk, Mode::Gone, WaitPolicy::Wait, fresh)?;
        // What is held now: an own deletion or a tombstone.
        let own = self.versions.own_top(rk, header, txn.id).is_some();
        if !own {
            access.observed = access.observed.max(header.time);
        }
        let result = if read::changed_after(fragment, &self.versions, rk, access) {
            Err(Stop::Changed)
        } else {
            let (versions, ranges, txns) = (&mut self.versions, &mut self.ranges, &mut self.txns);
            put_over(fragment, versions, ranges, txns, &mut self.keys, &self.budget, txn, rk, row)
        };
        match result {
            Ok(image) => {
                let (layout, _) = self.versions.image(image);
                fragment.add_entries(rk.row(), layout, row.into(), &mut self.scratch);
                let (versions, txns, image) = (&mut self.versions, &mut self.txns, Image::Stored(image));
                push(fragment, versions, txns, txn, rk, access.statement, image, row.len());
                Ok(())
            }
            Err(stop) => {
                if !matches!(stop, Stop::Wait(_)) {
                    locks::give_back(&mut self.locks, &mut self.txns, txn.id, rk, taken);
                }
                Err(stop)
            }
        }
    }

    /// Locks and gives the row new content with the same primary key; `false` when there is no such row.
    pub fn update(
        &mut self,
        table: TableId,
        key: &[u8],
        hash: u64,
        row: &[u8],
        access: &mut Access<'_>,
    ) -> Result<bool, Stop> {
        self.change(table, key, hash, Some(row), access)
    }

    /// Locks and deletes; `false` when there is no such row. Works when memory is full.
    pub fn delete(&mut self, table: TableId, key: &[u8], hash: u64, access: &mut Access<'_>) -> Result<bool, Stop> {
        self.change(table, key, hash, None, access)
    }

    fn change(
        &mut self,
        table: TableId,
        key: &[u8],
        hash: u64,
        row: Option<&[u8]>,
        access: &mut Access<'_>,
    ) -> Result<bool, Stop> {
        let txn = access.txn.expect("a write belongs to a transaction");
        self.may_write()?;
        if row.is_some() {
            self.has_room_elsewhere()?;
        }
        let fragment = self.fragments.get(&table).ok_or(Stop::StaleSchema)?;
        let Some(id) = fragment.find(key, hash) else {
            read::knows_missing(fragment, access)?;
            return Ok(false);
        };
        let rk = RowKey::new(table, id);
        let mode = if row.is_some() { Mode::Exclusive } else { Mode::Gone };
        let fresh = self.versions.seats.owner(fragment.rows.header(id)).map(|(owner, _)| owner);
        let result = match locks::take(&mut self.locks, &mut self.txns, txn, rk, mode, WaitPolicy::Wait, fresh) {
            Err(stop) => Err(stop),
            Ok(taken) => {
                let result = self.change_locked(txn, rk, row, access);
                if !matches!(result, Ok(true) | Err(Stop::Wait(_))) {
                    locks::give_back(&mut self.locks, &mut self.txns, txn.id, rk, taken);
                }
                result
            }
        };
        self.settle();
        result
    }

    fn change_locked(
        &mut self,
        txn: &TxnRef,
        rk: RowKey,
        row: Option<&[u8]>,
        access: &mut Access<'_>,
    ) -> Result<bool, Stop> {
        let is_chunked = self.has_chunks(txn.id);
        let fragment = self.fragments.get_mut(&rk.table()).expect("seen by the caller");
        let (current, own) = match newest(fragment, &self.versions, txn, rk, access)? {
            Newest::Absent => return Ok(false),
            Newest::Present(image, own) => (image, own),
        };
        let Some(row) = row else {
            if self.ranges.is_used(rk.table()) {
                let (layout, bytes) = resolve(fragment, &self.versions, rk, current);
                self.keys.clear();
                all_range_keys(fragment, layout, bytes, &mut self.keys);
                check_ranges(fragment, &mut self.ranges, &mut self.txns, txn, rk.table(), &self.keys)?;
            }
            let (versions, txns) = (&mut self.versions, &mut self.txns);
            push(fragment, versions, txns, txn, rk, access.statement, Image::Deleted, DELETION);
            return Ok(true);
        };
        let layout = fragment.schema.layout().version;
        if self.ranges.is_used(rk.table()) {
            let (old_layout, old) = resolve(fragment, &self.versions, rk, current);
            self.keys.clear();
            moved_range_keys(fragment, (old_layout, old), (layout, row.into()), &mut self.keys);
            check_ranges(fragment, &mut self.ranges, &mut self.txns, txn, rk.table(), &self.keys)?;
        }
        self.keys.clear();
        let old = resolve(fragment, &self.versions, rk, current);
        let apart = large::take_apart(&self.budget, fragment.schema.layout(), row, old.1.beside, Purpose::Write)?;
        let row = large::image(row, &apart);
        fragment.distinct_keys((layout, row), old, &mut self.keys, &mut self.scratch);
        // What a chunk may have already is written beside it.
        match own.filter(|c| c.statement == access.statement && !is_chunked) {
            Some(change) => {
                // The image of the same statement: what it had and the new one has not becomes suspect.
                let mut lost = std::mem::take(&mut self.lost);
                lost.clear();
                fragment.distinct_keys(old, (layout, row), &mut lost, &mut self.scratch);
                let replaced = match change.image {
                    Image::Inline => {
                        let header = RowHeader { layout, ..fragment.rows.header(rk.row()) };
                        fragment.rows.replace(rk.row(), header, row, Purpose::Write)
                    }
                    Image::Stored(image) => {
                        let header = RowHeader { time: Timestamp::ZERO, layout, flags: 0 };
                        self.versions.images.replace(image, header, row, Purpose::Write)
                    }
                    Image::Deleted => unreachable!("a deleted row is absent"),
                };
                if replaced.is_ok() {
                    fragment.add_listed(rk.row(), &self.keys);
                    fragment.drop_suspects(&self.versions, rk, &mut lost, &mut self.scratch);
                }
                self.lost = lost;
                replaced?;
            }
            None => {
                let image = self.versions.store(layout, row, Purpose::Write)?;
                fragment.add_listed(rk.row(), &self.keys);
                let (bytes, image) = (row.size(), Image::Stored(image));
                push(fragment, &mut self.versions, &mut self.txns, txn, rk, access.statement, image, bytes);
            }
        }
        Ok(true)
    }
}

/// Stores the image of an insert over a deleted row, after the range locks have let it pass.
#[expect(clippy::too_many_arguments, reason = "parts of one partition, borrowed apart")]
fn put_over(
    fragment: &Fragment,
    versions: &mut VersionTable,
    ranges: &mut RangeTable,
    txns: &mut TxnTable,
    keys: &mut KeyList,
    budget: &Arc<MemoryBudget>,
    txn: &TxnRef,
    rk: RowKey,
    row: &[u8],
) -> Result<RowId, Stop> {
    let layout = fragment.schema.layout().version;
    if ranges.is_used(rk.table()) {
        keys.clear();
        all_range_keys(fragment, layout, row.into(), keys);
        check_ranges(fragment, ranges, txns, txn, rk.table(), keys)?;
    }
    let apart = large::take_apart(budget, fragment.schema.layout(), row, &[], Purpose::Write)?;
    Ok(versions.store(layout, large::image(row, &apart), Purpose::Write)?)
}

/// The newest state of a row that the transaction has locked.
fn newest(
    fragment: &Fragment,
    versions: &VersionTable,
    txn: &TxnRef,
    rk: RowKey,
    access: &mut Access<'_>,
) -> Result<Newest, Stop> {
    let header = fragment.rows.header(rk.row());
    if let Some(change) = versions.own_top(rk, header, txn.id) {
        return Ok(match change.image {
            Image::Deleted => Newest::Absent,
            image => Newest::Present(image, Some(change)),
        });
    }
    access.observed = access.observed.max(header.time);
    if read::changed_after(fragment, versions, rk, access) {
        return Err(Stop::Changed);
    }
    if header.flags & flags::TOMBSTONE != 0 { Ok(Newest::Absent) } else { Ok(Newest::Present(Image::Inline, None)) }
}

fn resolve<'a>(fragment: &'a Fragment, versions: &'a VersionTable, rk: RowKey, image: Image) -> (u16, RowImage<'a>) {
    match image {
        Image::Stored(id) => versions.image(id),
        _ => {
            let (header, bytes) = fragment.rows.get(rk.row());
            (header.layout, bytes)
        }
    }
}

/// `bytes`: what is written.
#[expect(clippy::too_many_arguments, reason = "parts of one partition, borrowed apart")]
fn push(
    fragment: &mut Fragment,
    versions: &mut VersionTable,
    txns: &mut TxnTable,
    txn: &TxnRef,
    rk: RowKey,
    statement: u32,
    image: Image,
    bytes: usize,
) {
    fragment.unfold(versions, rk);
    let first = versions.push(rk, txn, Change { statement, image });
    fragment.add_flags(rk.row(), flags::SIDE);
    txns.push_undo(txn, Undo { key: rk, statement, first }, bytes);
}

/// The keys of an image in all indexes, by position in `range_defs`.
fn all_range_keys(fragment: &Fragment, layout: u16, bytes: RowImage<'_>, keys: &mut KeyList) {
    let view = fragment.view(layout, bytes);
    for (position, (_, def)) in fragment.range_defs.iter().enumerate() {
        keys.push_all(position, def, &view);
    }
}

/// The old and new keys in the indexes in which they differ, by position in `range_defs`.
fn moved_range_keys(fragment: &Fragment, old: (u16, RowImage<'_>), new: (u16, RowImage<'_>), keys: &mut KeyList) {
    let (old, new) = (fragment.view(old.0, old.1), fragment.view(new.0, new.1));
    for (position, (_, def)) in fragment.range_defs.iter().enumerate() {
        if !def.same_columns(&old, &new) {
            keys.push_all(position, def, &old);
            keys.push_all(position, def, &new);
        }
    }
}

/// Waits when one of the keys is in another transaction's range.
fn check_ranges(
    fragment: &Fragment,
    ranges: &mut RangeTable,
    txns: &mut TxnTable,
    txn: &TxnRef,
    table: TableId,
    keys: &KeyList,
) -> Result<(), Stop> {
    let mut blockers = Vec::new();
    for (position, key) in keys.iter() {
        ranges.find(txn.id, table, fragment.range_defs[position].0, key, &mut blockers);
    }
    if blockers.is_empty() {
        return Ok(());
    }
    ranges.wait(txn.id, table);
    txns.note_range_wait(txn, table);
    Err(Stop::Wait(blockers))
}
