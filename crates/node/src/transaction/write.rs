//! Inserts, updates and deletes, with the entries of unique indexes kept in step.
//!
//! The row is written first, then the index tables in the order of the indexes: so a duplicate primary key is found before a duplicate
//! in a unique index, as MySQL's users expect. When an index table refuses, what this call has written is undone, and the row in the way
//! is locked and named. It may have gone while its lock was waited for: then everything is tried again.
//!
//! Where foreign keys go from a table or lead to it, they are seen to when the row is written (`super::foreign`); a violation undoes the call.

use super::foreign::{Checked, is_violation};
use super::{Sending, Transaction, View};
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::ops::operation::{Done, Key, Op, Seen};
use crate::table::io::Written;
use crate::table::{TableInfo, UniqueIndex, entries};
use rauk_kernel::{LockMode, ReadAt, Verdict, WaitPolicy};
use rauk_types::error::codes;
use rauk_types::row::large::LARGE_VALUE;
use rauk_types::{IndexId, MysqlError, RowView, Value, row};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InsertOutcome {
    Inserted,
    /// A row with the same key is there, locked exclusively for this transaction; nothing was inserted.
    Duplicate {
        index: IndexId,
        /// Encoded primary key of the row in the way.
        existing: Vec<u8>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateOutcome {
    Updated,
    /// There is no such row any more.
    Missing,
    Duplicate {
        index: IndexId,
        existing: Vec<u8>,
    },
}

/// What became of a step that may meet a duplicate.
enum Step {
    Done,
    /// Locked: the index and the row's primary key.
    Duplicate(IndexId, Vec<u8>),
    /// What was in the way has gone.
    Again,
}

impl Transaction {
    /// Inserts a row: one converted value a column (the hidden key's may be NULL and is filled).
    pub async fn insert(&mut self, table: &TableHandle, row: &[Value]) -> Result<InsertOutcome, NodeError> {
        match table.parts() {
            None => self.insert_into(table.info(), row).await,
            Some(parts) => Box::pin(self.insert_into_leaf(table, parts, row)).await,
        }
    }

    /// A row with the hidden key that it lacks.
    pub(super) async fn with_hidden_key(&self, table: &TableInfo, row: &[Value]) -> Result<Vec<Value>, NodeError> {
        let mut filled = row.to_vec();
        filled.truncate(table.schema.columns.len() - 1);
        filled.push(Value::UInt(self.node.hidden_key(table).await?));
        Ok(filled)
    }

    pub(crate) async fn insert_into(
        &mut self,
        table: &Arc<TableInfo>,
        row: &[Value],
    ) -> Result<InsertOutcome, NodeError> {
        self.check_writable_table(table)?;
        let filled;
        let mut row = row;
        if table.schema.hidden_key && row.last().is_none_or(Value::is_null) {
            filled = self.with_hidden_key(table, row).await?;
            row = &filled;
        }
        let image = Image::new(table, row);
        self.node.check_commit_size(image.bytes.len())?;
        self.ensure_txn();
        let related = self.checks_relations(table);
        loop {
            if related || table.has_entries() {
                self.write_number += 1;
            }
            let number = self.write_number;
            let mut step = self.insert_row(table, &image).await?;
            for unique in &table.uniques {
                if !matches!(step, Step::Done) {
                    break;
                }
                step = self.insert_entries(table, unique, &entry_keys(unique, row), &image.key, number).await?;
            }
            if table.shared.building.is_some() && matches!(step, Step::Done) {
                let seen_to: Checked<'_> = Box::pin(self.enter_built(table, row, &image.key));
                seen_to.await?;
            }
            match step {
                Step::Done => {
                    if related {
                        let checked = self.after_insert(table, row).await;
                        self.or_undo(number, checked)?;
                    }
                    self.count_write(table, Written::Inserted);
                    return Ok(InsertOutcome::Inserted);
                }
                Step::Duplicate(index, existing) => {
                    if related {
                        // Rare, and not to make every insert's future larger.
                        Box::pin(self.before_duplicate(table, row, index)).await?;
                    }
                    return Ok(InsertOutcome::Duplicate { index, existing });
                }
                Step::Again => self.check_killed()?,
            }
        }
    }

    /// Changes a row that was read with an exclusive lock: `old` as read, `new` as wanted; the primary key may change.
    pub async fn update(
        &mut self,
        table: &TableHandle,
        old: &[Value],
        new: &[Value],
    ) -> Result<UpdateOutcome, NodeError> {
        if let Some(parts) = table.parts() {
            return Box::pin(self.update_in_leaves(table, parts, old, new)).await;
        }
        let table = table.info();
        self.check_writable_table(table)?;
        if !self.checks_relations(table) {
            return self.change_row(table, old, new).await;
        }
        let mut key = Vec::with_capacity(32);
        table.primary.encode_values(old, &mut key);
        self.ensure_txn();
        let mut merged = None;
        if self.has_cascaded() {
            merged = self.after_cascades(table, &key, old, new).await?;
            if merged.is_none() {
                return Ok(UpdateOutcome::Missing);
            }
        }
        let (old, new) = merged.as_ref().map_or((old, new), |(old, new)| (&**old, &**new));
        let moved = self.lock_referenced(table, &key, old, new).await?;
        self.write_number += 1;
        let number = self.write_number;
        let outcome = self.change_row(table, old, new).await?;
        if outcome == UpdateOutcome::Updated {
            let checked = self.after_update(table, old, new, moved).await;
            self.or_undo(number, checked)?;
        }
        Ok(outcome)
    }

    /// Changes a row; foreign keys are the caller's to see to.
    pub(super) async fn change_row(
        &mut self,
        table: &Arc<TableInfo>,
        old: &[Value],
        new: &[Value],
    ) -> Result<UpdateOutcome, NodeError> {
        let image = Image::new(table, new);
        self.node.check_row_size(image.bytes.len())?;
        if image.bytes.len() > self.node.commit_limit() {
            self.node.check_commit_size(image.bytes.len() - kept_bytes(old, new))?;
        }
        let mut old_key = Vec::with_capacity(image.key.len());
        table.primary.encode_values(old, &mut old_key);
        self.ensure_txn();
        loop {
            let moved = old_key != image.key;
            // A number of its own only where a part of it may have to be undone.
            if moved || table.has_entries() {
                self.write_number += 1;
            }
            let number = self.write_number;
            // Where others refer to the row, what is written must be there before they are looked for.
            let is_sure = self.options.autocommit && !moved && !table.has_entries() && !table.is_related();
            self.sending = Sending::of_sure(is_sure);
            let present = match moved {
                false => self.update_row(table, &image).await,
                true => self.delete_row(table, &old_key).await,
            };
            self.sending = Sending::AtOnce;
            let present = present?;
            if !present {
                return Ok(UpdateOutcome::Missing);
            }
            let mut step = Step::Done;
            if moved {
                // Here what is undone is the deletion as well.
                step = self.insert_row_or_undo(table, &image, number).await?;
            }
            for unique in &table.uniques {
                if !matches!(step, Step::Done) {
                    break;
                }
                // Both are in order.
                let (before, mut after) = (entry_keys(unique, old), entry_keys(unique, new));
                for key in before.iter().filter(|key| after.binary_search(key).is_err()) {
                    self.delete_entry(unique, key).await?;
                }
                if moved {
                    for key in after.iter().filter(|key| before.binary_search(key).is_ok()) {
                        self.update_entry(unique, key, &image.key).await?;
                    }
                }
                after.retain(|key| before.binary_search(key).is_err());
                step = self.insert_entries(table, unique, &after, &image.key, number).await?;
            }
            if table.shared.building.is_some() && matches!(step, Step::Done) {
                let seen_to: Checked<'_> =
                    Box::pin(self.change_built(table, (old, &old_key[..]), (new, &image.key[..])));
                seen_to.await?;
            }
            match step {
                Step::Done => {
                    self.count_write(table, Written::Updated);
                    return Ok(UpdateOutcome::Updated);
                }
                Step::Duplicate(index, existing) => return Ok(UpdateOutcome::Duplicate { index, existing }),
                Step::Again => self.check_killed()?,
            }
        }
    }

    /// Deletes a row that was read with an exclusive lock; `false` when it is gone.
    pub async fn delete(&mut self, table: &TableHandle, row: &[Value]) -> Result<bool, NodeError> {
        if let Some(parts) = table.parts() {
            return Box::pin(self.delete_in_leaf(table, parts, row)).await;
        }
        let table = table.info();
        self.check_writable_table(table)?;
        if !self.checks_relations(table) {
            return self.remove_row(table, row).await;
        }
        self.write_number += 1;
        let number = self.write_number;
        let present = self.remove_row(table, row).await?;
        if present {
            let checked = self.after_delete(table, row).await;
            self.or_undo(number, checked)?;
        }
        Ok(present)
    }

    /// Gives the outcome of what follows a write; a violation undoes the write, and all that came of it.
    fn or_undo(&mut self, number: u32, checked: Result<(), NodeError>) -> Result<(), NodeError> {
        if checked.as_ref().is_err_and(is_violation) {
            self.undo_to(number);
        }
        checked
    }

    /// Deletes a row; foreign keys are the caller's to see to.
    pub(super) async fn remove_row(&mut self, table: &Arc<TableInfo>, row: &[Value]) -> Result<bool, NodeError> {
        let mut key = Vec::new();
        table.primary.encode_values(row, &mut key);
        self.ensure_txn();
        self.sending = Sending::of_sure(self.options.autocommit && !table.has_entries() && !table.is_related());
        let present = self.delete_row(table, &key).await;
        self.sending = Sending::AtOnce;
        if !present? {
            return Ok(false);
        }
        for unique in &table.uniques {
            for key in entry_keys(unique, row) {
                self.delete_entry(unique, &key).await?;
            }
        }
        if table.shared.building.is_some() {
            let seen_to: Checked<'_> = Box::pin(self.leave_built(table, row, &key));
            seen_to.await?;
        }
        self.count_write(table, Written::Deleted);
        Ok(true)
    }

    pub(crate) fn check_writable(&self) -> Result<(), NodeError> {
        if self.options.read_only {
            let text = "Cannot execute statement in a READ ONLY transaction.";
            return Err(NodeError::Refused(MysqlError::new(codes::READ_ONLY_TRANSACTION, text)));
        }
        self.check_running()
    }

    /// A READ ONLY transaction may write temporary tables.
    pub(super) fn check_writable_table(&mut self, table: &TableInfo) -> Result<(), NodeError> {
        if table.own.is_some() {
            return self.check_running();
        }
        self.check_writable()?;
        // Who has not waited before ([`Transaction::use_table_to_write`]) does not write what others have locked.
        if self.may_write(table)? { Ok(()) } else { Err(NodeError::LockTimeout) }
    }

    pub(super) fn count_write(&mut self, table: &TableInfo, written: Written) {
        if table.own.is_some() {
            return;
        }
        self.count_writes(table, written, 1);
    }

    /// Rows that were written in a stored table.
    pub(super) fn count_writes(&mut self, table: &TableInfo, written: Written, rows: u64) {
        self.writes += rows;
        table.shared.io().write(self.options.session, written, rows);
        if let Some(record) = &self.record {
            record.rows_changed.fetch_add(rows, Ordering::Relaxed);
        }
    }

    pub(super) fn write_view(&self) -> View {
        self.newest_view(u32::MAX)
    }

    /// Entries may well be newer than the snapshot: it is their rows that are checked.
    pub(super) fn entry_view(&self) -> View {
        View { conflict_after: None, ..self.write_view() }
    }

    pub(super) fn place<'k>(&self, table: &TableInfo, key: &'k [u8]) -> (Key<'k>, u16) {
        let key = Key::of(key);
        (key, self.node.partition_of(table.route.bucket_of_key(key.bytes, key.hash)))
    }

    /// `Again` when a row was in the way and has gone; `Duplicate` with that row locked. Nothing was written then.
    async fn insert_row(&mut self, table: &TableInfo, image: &Image) -> Result<Step, NodeError> {
        if self.try_insert_row(table, image).await? {
            return Ok(Step::Done);
        }
        match self.lock_existing(table, &image.key, |_| true).await? {
            true => Ok(Step::Duplicate(IndexId::PRIMARY, image.key.clone())),
            false => Ok(Step::Again),
        }
    }

    async fn insert_row_or_undo(&mut self, table: &TableInfo, image: &Image, number: u32) -> Result<Step, NodeError> {
        if self.try_insert_row(table, image).await? {
            return Ok(Step::Done);
        }
        self.undo_to(number);
        match self.lock_existing(table, &image.key, |_| true).await? {
            true => Ok(Step::Duplicate(IndexId::PRIMARY, image.key.clone())),
            false => Ok(Step::Again),
        }
    }

    async fn try_insert_row(&mut self, table: &TableInfo, image: &Image) -> Result<bool, NodeError> {
        let (key, partition) = self.place(table, &image.key);
        if self.sending == Sending::Ending && !table.has_entries() && !self.checks_relations(table) {
            let (view, op) = (self.write_view(), &mut Op::Insert { key, row: &image.bytes });
            let ended = Box::pin(self.call_ending(table, partition, view, op, &mut |_| Verdict::Keep)).await?;
            if let Some(done) = ended {
                return Ok(done.is());
            }
        }
        self.write_one(table, partition, self.write_view(), Op::Insert { key, row: &image.bytes }).await
    }

    async fn update_row(&mut self, table: &TableInfo, image: &Image) -> Result<bool, NodeError> {
        let (key, partition) = self.place(table, &image.key);
        self.write_one(table, partition, self.write_view(), Op::Update { key, row: &image.bytes }).await
    }

    async fn delete_row(&mut self, table: &TableInfo, key: &[u8]) -> Result<bool, NodeError> {
        let (key, partition) = self.place(table, key);
        self.write_one(table, partition, self.write_view(), Op::Delete { key }).await
    }

    /// Whether it was done.
    pub(super) async fn write_one(
        &mut self,
        table: &TableInfo,
        partition: u16,
        view: View,
        mut op: Op<'_>,
    ) -> Result<bool, NodeError> {
        self.touch(table, partition);
        self.call(table, partition, view, &mut op, &mut |_| Verdict::Keep).await.map(Done::is)
    }

    /// Enters a row into a unique index by all its keys there.
    async fn insert_entries(
        &mut self,
        table: &TableInfo,
        unique: &UniqueIndex,
        index_keys: &[Vec<u8>],
        base_key: &[u8],
        number: u32,
    ) -> Result<Step, NodeError> {
        for index_key in index_keys {
            let step = self.insert_entry(table, unique, index_key, base_key, number).await?;
            if !matches!(step, Step::Done) {
                return Ok(step);
            }
        }
        Ok(Step::Done)
    }

    /// Enters a row into a unique index by one key. On a duplicate, undoes everything from `number` on and locks the row in the way.
    async fn insert_entry(
        &mut self,
        table: &TableInfo,
        unique: &UniqueIndex,
        index_key: &[u8],
        base_key: &[u8],
        number: u32,
    ) -> Result<Step, NodeError> {
        let entry_table = &unique.entries;
        let place = entries::locate(entry_table, index_key);
        let partition = self.node.partition_of(place.bucket);
        let bytes = entries::encode(entry_table, index_key, base_key);
        let view = self.entry_view();
        if self.write_one(entry_table, partition, view, Op::Insert { key: place.key(), row: &bytes }).await? {
            return Ok(Step::Done);
        }
        self.undo_to(number);
        let existing = self.read_entry(unique, &place, partition, view).await?;
        let Some(existing) = existing else { return Ok(Step::Again) };
        let is_taken = match unique.global {
            true => self.meet_global(table, unique, index_key, &existing).await?,
            false => self.lock_existing(table, &existing, |row| unique.keys.matches(row, index_key)).await?,
        };
        match is_taken {
            true => Ok(Step::Duplicate(unique.id, existing)),
            false => Ok(Step::Again),
        }
    }

    /// Adds an entry of a row that is there already, for an index that is being built; `false` when its key is taken.
    pub(crate) async fn add_entry(
        &mut self,
        unique: &UniqueIndex,
        index_key: &[u8],
        base_key: &[u8],
    ) -> Result<bool, NodeError> {
        let table = &unique.entries;
        let place = entries::locate(table, index_key);
        let partition = self.node.partition_of(place.bucket);
        self.ensure_txn();
        let bytes = entries::encode(table, index_key, base_key);
        self.write_one(table, partition, self.write_view(), Op::Insert { key: place.key(), row: &bytes }).await
    }

    async fn update_entry(&mut self, unique: &UniqueIndex, index_key: &[u8], base_key: &[u8]) -> Result<(), NodeError> {
        let table = &unique.entries;
        let place = entries::locate(table, index_key);
        let partition = self.node.partition_of(place.bucket);
        let bytes = entries::encode(table, index_key, base_key);
        self.write_one(table, partition, self.entry_view(), Op::Update { key: place.key(), row: &bytes }).await?;
        Ok(())
    }

    pub(super) async fn delete_entry(&mut self, unique: &UniqueIndex, index_key: &[u8]) -> Result<(), NodeError> {
        let table = &unique.entries;
        let place = entries::locate(table, index_key);
        let partition = self.node.partition_of(place.bucket);
        self.write_one(table, partition, self.entry_view(), Op::Delete { key: place.key() }).await?;
        Ok(())
    }

    /// Locks the row that is in the way and notes it; `false` when it has gone, or `is_it` says that it is another by now.
    pub(super) async fn lock_existing(
        &mut self,
        table: &TableInfo,
        key: &[u8],
        is_it: impl Fn(&RowView<'_>) -> bool + Send + Sync,
    ) -> Result<bool, NodeError> {
        let (place, partition) = self.place(table, key);
        self.touch(table, partition);
        // It may well be newer than the snapshot: a duplicate is reported all the same.
        let view = View { own_before: u32::MAX, at: ReadAt::Newest, conflict_after: None };
        let (mode, wait) = (LockMode::Exclusive, WaitPolicy::Wait);
        let mut op = Op::ReadLocked { key: place, mode, wait, ranges: false };
        let mut found = false;
        let visit = &mut |seen: Seen<'_, '_>| {
            found = seen.row().is_some_and(|row| is_it(&row));
            Verdict::Keep
        };
        self.call(table, partition, view, &mut op, visit).await?;
        if found {
            self.duplicate = Some((table.schema.id, key.to_vec()));
        }
        Ok(found)
    }
}

/// A row to be stored: its bytes and its encoded primary key.
struct Image {
    key: Vec<u8>,
    bytes: Vec<u8>,
}

impl Image {
    fn new(table: &TableInfo, values: &[Value]) -> Image {
        let mut image = Image { key: Vec::with_capacity(32), bytes: Vec::with_capacity(128) };
        table.primary.encode_values(values, &mut image.key);
        row::encode_row(&table.schema, values, &mut image.bytes);
        image
    }
}

/// Bytes of large values that a change leaves as they are: they are not written again.
pub(super) fn kept_bytes(old: &[Value], new: &[Value]) -> usize {
    let bytes_of = |value: &Value| match value {
        Value::Str(text) => text.len(),
        Value::Bytes(bytes) | Value::Json(bytes) => bytes.len(),
        _ => 0,
    };
    let kept = old.iter().zip(new).filter(|(old, new)| bytes_of(new) > LARGE_VALUE && old == new);
    kept.map(|(_, new)| bytes_of(new)).sum()
}

/// Most often there is one.
pub(super) type EntryKeys = SmallVec<[Vec<u8>; 1]>;

/// The row's keys in a unique index, in order.
pub(super) fn entry_keys(unique: &UniqueIndex, row: &[Value]) -> EntryKeys {
    let mut keys = EntryKeys::new();
    unique.keys.for_each_unique_value(row, |key| keys.push(key));
    keys
}
