//! Writes keep the unique indexes that a DDL is filling meanwhile, and note the rows that it copies
//! ([`crate::table::building`]). What they do for new foreign keys is [`super::new_references`].
//!
//! As with an index that is there, the row is written first and then its entries, in the same transaction. Two things
//! are otherwise. The index has holes: what a row's entry says is looked at before it is deleted, since the entry under
//! the row's key may be another row's. And it refuses nobody: a key that is taken is noted for the DDL.
//!
//! The DDL enters the rows that were there under their row locks, so it and the writers of a row take turns. A writer
//! waits for it, or for another writer of the same key, as it would once the index is there; where that would be a
//! deadlock, the DDL gives way.

use super::write::entry_keys;
use super::{Transaction, View};
use crate::ddl::duplicate_entry;
use crate::error::NodeError;
use crate::ops::operation::{Key, Op, Seen};
use crate::ops::serve::MOST_KEYS;
use crate::table::building::{Building, Note};
use crate::table::{TableInfo, UniqueIndex, entries};
use rauk_kernel::{LockMode, ReadAt, Verdict, WaitPolicy};
use rauk_types::{MysqlError, RowView, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Entries are those of the newest rows, own ones too.
const NEWEST: View = View { own_before: u32::MAX, at: ReadAt::Newest, conflict_after: None };

impl Transaction {
    /// What is being built on a table. Its tables are used from here on.
    fn building(&mut self, table: &TableInfo) -> Option<Arc<Building>> {
        let building = table.shared.building.get().filter(|b| !b.given_up.load(Ordering::Relaxed))?;
        for info in building.tables() {
            if !self.tables.iter().any(|used| used.info.schema.id == info.schema.id) {
                self.borrow_table(info.clone());
            }
        }
        Some(building)
    }

    /// A row was inserted.
    pub(super) async fn enter_built(&mut self, table: &TableInfo, row: &[Value], base: &[u8]) -> Result<(), NodeError> {
        let Some(building) = self.building(table) else { return Ok(()) };
        for unique in &building.uniques {
            for key in entry_keys(unique, row) {
                let entered = self.enter_key(&building, unique, &key, base, row).await;
                unless_gone(table, &building, entered)?;
            }
        }
        let noted = async {
            self.note_orphan(&building, None, (row, base)).await?;
            self.note_changed(&building, &[base]).await
        };
        let noted = noted.await;
        unless_gone(table, &building, noted)
    }

    /// A row was deleted.
    pub(super) async fn leave_built(&mut self, table: &TableInfo, row: &[Value], base: &[u8]) -> Result<(), NodeError> {
        let Some(building) = self.building(table) else { return Ok(()) };
        for unique in &building.uniques {
            for key in entry_keys(unique, row) {
                let left = self.leave_key(unique, &key, base).await;
                unless_gone(table, &building, left)?;
            }
        }
        let noted = async {
            self.note_left(&building, row, None).await?;
            self.note_changed(&building, &[base]).await
        };
        let noted = noted.await;
        unless_gone(table, &building, noted)
    }

    /// A row has become another one; each has its primary key.
    pub(super) async fn change_built(
        &mut self,
        table: &TableInfo,
        (old, old_base): (&[Value], &[u8]),
        (new, new_base): (&[Value], &[u8]),
    ) -> Result<(), NodeError> {
        let Some(building) = self.building(table) else { return Ok(()) };
        let moved = old_base != new_base;
        for unique in &building.uniques {
            // Both are in order.
            let (before, after) = (entry_keys(unique, old), entry_keys(unique, new));
            for key in before.iter().filter(|key| moved || after.binary_search(key).is_err()) {
                let left = self.leave_key(unique, key, old_base).await;
                unless_gone(table, &building, left)?;
            }
            for key in after.iter().filter(|key| moved || before.binary_search(key).is_err()) {
                let entered = self.enter_key(&building, unique, key, new_base, new).await;
                unless_gone(table, &building, entered)?;
            }
        }
        let noted = async {
            self.note_orphan(&building, Some((old, old_base)), (new, new_base)).await?;
            self.note_left(&building, old, Some(new)).await?;
            let bases = [old_base, new_base];
            self.note_changed(&building, if moved { &bases } else { &bases[..1] }).await
        };
        let noted = noted.await;
        unless_gone(table, &building, noted)
    }

    /// Rows with these primary keys were written, of a table that is copied.
    async fn note_changed(&mut self, building: &Building, bases: &[&[u8]]) -> Result<(), NodeError> {
        for base in bases.iter().filter(|_| building.copied) {
            self.note(building, Note::Changed { base }, &[]).await?;
        }
        Ok(())
    }

    async fn enter_key(
        &mut self,
        building: &Building,
        unique: &UniqueIndex,
        key: &[u8],
        base: &[u8],
        row: &[Value],
    ) -> Result<(), NodeError> {
        if self.enter_if_free(unique, key, base).await? {
            return Ok(());
        }
        let index = building.schema.index(unique.id).expect("it is being built");
        let error = duplicate_entry(&building.schema, index, |column| row[column].clone());
        let message = MysqlError::from(error).message;
        self.note(building, Note::Refused { index: unique.id, key, base }, message.as_bytes()).await
    }

    /// Leaves a note, unless there is the same.
    pub(crate) async fn note(&mut self, building: &Building, note: Note<'_>, text: &[u8]) -> Result<(), NodeError> {
        let notes = &building.notes;
        let note = note.encode();
        let place = entries::locate(notes, &note);
        let bytes = entries::encode(notes, &note, text);
        let partition = self.node.partition_of(place.bucket);
        self.ensure_txn();
        // The same may be about to be taken away: then that is waited for.
        self.write_one(notes, partition, NEWEST, Op::Insert { key: place.key(), row: &bytes }).await?;
        Ok(())
    }

    /// Enters a row by one key; `false` when another row has it.
    pub(crate) async fn enter_if_free(
        &mut self,
        unique: &UniqueIndex,
        key: &[u8],
        base: &[u8],
    ) -> Result<bool, NodeError> {
        let table = &unique.entries;
        let place = entries::locate(table, key);
        let partition = self.node.partition_of(place.bucket);
        let bytes = entries::encode(table, key, base);
        self.ensure_txn();
        loop {
            if self.write_one(table, partition, NEWEST, Op::Insert { key: place.key(), row: &bytes }).await? {
                return Ok(true);
            }
            match self.read_entry(unique, &place, partition, NEWEST).await? {
                Some(taken) => return Ok(taken == base),
                // It has gone meanwhile.
                None => self.check_killed()?,
            }
        }
    }

    /// Locks rows (shared), by their primary keys, and shows each that is there as it is now. [`NodeError::NoWait`] if
    /// somebody has one of them.
    pub(crate) async fn lock_all(
        &mut self,
        table: &TableInfo,
        bases: &[Vec<u8>],
        visit: &mut (dyn FnMut(usize, RowView<'_>) + Send),
    ) -> Result<(), NodeError> {
        self.ensure_txn();
        let mut by_partition: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (number, base) in bases.iter().enumerate() {
            by_partition.entry(self.place(table, base).1).or_default().push(number);
        }
        for (partition, numbers) in by_partition {
            self.touch(table, partition);
            for numbers in numbers.chunks(MOST_KEYS) {
                let keys = |numbers: &[usize]| numbers.iter().map(|number| Key::of(&bases[*number])).collect();
                let (mode, wait) = (LockMode::Shared, WaitPolicy::NoWait);
                let mut lock = Op::LockMany { keys: keys(numbers), mode, wait, done: 0 };
                self.call(table, partition, NEWEST, &mut lock, &mut |_| Verdict::Keep).await?;
                let mut left = numbers;
                while !left.is_empty() {
                    let mut seen = 0;
                    let show = &mut |row: Seen<'_, '_>| {
                        if let Some(row) = row.row() {
                            visit(left[seen], row);
                        }
                        seen += 1;
                        Verdict::Keep
                    };
                    // Large rows come in several answers.
                    self.call(table, partition, NEWEST, &mut Op::ReadMany { keys: keys(left), done: 0 }, show).await?;
                    left = &left[seen..];
                }
            }
        }
        Ok(())
    }

    /// Takes a note away.
    pub(crate) async fn drop_note(&mut self, building: &Building, note: &Note<'_>) -> Result<(), NodeError> {
        let place = entries::locate(&building.notes, &note.encode());
        let partition = self.node.partition_of(place.bucket);
        self.ensure_txn();
        self.write_one(&building.notes, partition, NEWEST, Op::Delete { key: place.key() }).await?;
        Ok(())
    }

    /// Takes a row's entry away, if there is one of this row.
    async fn leave_key(&mut self, unique: &UniqueIndex, key: &[u8], base: &[u8]) -> Result<(), NodeError> {
        let table = &unique.entries;
        let place = entries::locate(table, key);
        let partition = self.node.partition_of(place.bucket);
        // What others are about to do to the entry concerns their rows, not this one.
        if self.read_entry(unique, &place, partition, NEWEST).await?.as_deref() == Some(base) {
            self.write_one(table, partition, NEWEST, Op::Delete { key: place.key() }).await?;
        }
        Ok(())
    }
}

/// In a cluster the group ends a job whose owner has died, whoever is at its tables: then there is nothing to be kept.
fn unless_gone(table: &TableInfo, building: &Arc<Building>, done: Result<(), NodeError>) -> Result<(), NodeError> {
    match done {
        Err(NodeError::StaleSchema) if !table.shared.building.get().is_some_and(|b| Arc::ptr_eq(&b, building)) => {
            Ok(())
        }
        done => done,
    }
}
