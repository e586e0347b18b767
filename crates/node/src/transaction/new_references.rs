//! Writes see to foreign keys that a DDL is validating meanwhile ([`crate::table::building`]).
//!
//! The DDL looks for the parents of the rows that were there. What comes between is noted for it, and refused to nobody:
//!
//! - A child row that is written looks for its parent as it will when the constraint is there: it is written first, and
//!   then its parent is looked up in the newest state and locked with KeyShare. Where there is none, that is noted.
//! - A row that goes, or changes its key, may have been a parent: its key is noted. Its child rows are not looked for.
//!
//! So a row without a parent is met at the DDL's end in whatever order things happened: either its parent was there and
//! locked when it was written, and whoever took the parent away later has noted that; or it has noted itself. The
//! argument is that of [`super::foreign`], with the DDL in the place of the parent's writer, who would look for the
//! child rows: it does so by a locking scan, after the parent's writer has committed.
//!
//! `foreign_key_checks = 0` changes nothing here: the rows that are there at the switch have their parents.

use super::Transaction;
use super::foreign::{Parent, rows_of};
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::scan::{ScanBatch, ScanCursor};
use crate::table::TableInfo;
use crate::table::building::{Building, Note};
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_types::{IndexId, Value, ValueRef};
use std::sync::Arc;

impl Transaction {
    /// A row was written, and had been `old` before, each with its primary key: by a new foreign key, its parent is
    /// there or that is noted.
    pub(super) async fn note_orphan(
        &mut self,
        building: &Building,
        old: Option<(&[Value], &[u8])>,
        (new, base): (&[Value], &[u8]),
    ) -> Result<(), NodeError> {
        for reference in &building.references {
            let columns = &reference.columns;
            let is_same =
                |(old, old_base): (&[Value], &[u8])| old_base == base && columns.iter().all(|&at| old[at] == new[at]);
            if old.is_some_and(is_same) || columns.iter().any(|&at| new[at].is_null()) {
                continue;
            }
            let values: Vec<ValueRef<'_>> = columns.iter().map(|&at| new[at].as_ref()).collect();
            if !self.has_new_parent(building, reference.number, &values).await? {
                let reference = reference.number as u16;
                self.note(building, Note::Orphan { reference, base }, &[]).await?;
            }
        }
        Ok(())
    }

    /// A row is gone, or has become `new`: if that takes a key away by which others may refer to it, the key is noted.
    pub(super) async fn note_left(
        &mut self,
        building: &Building,
        old: &[Value],
        new: Option<&[Value]>,
    ) -> Result<(), NodeError> {
        for parent in &building.referenced {
            let columns = &parent.columns;
            let stays = new.is_some_and(|new| columns.iter().all(|&at| old[at] == new[at]));
            if stays || columns.iter().any(|&at| old[at].is_null()) {
                continue;
            }
            let values: Vec<ValueRef<'_>> = columns.iter().map(|&at| old[at].as_ref()).collect();
            let (mut key, mut children) = (Vec::new(), Vec::new());
            parent.key.encode_prefix(&values, &mut key);
            parent.children.encode_prefix(&values, &mut children);
            let note = Note::Left { reference: parent.number as u16, key: &key, children: &children };
            self.note(building, note, &[]).await?;
        }
        Ok(())
    }

    /// Whether a new foreign key has a parent row with these values; it is locked then.
    pub(crate) async fn has_new_parent(
        &mut self,
        building: &Building,
        number: usize,
        values: &[ValueRef<'_>],
    ) -> Result<bool, NodeError> {
        let Some(parent) = self.new_parent(building, number).await? else { return Ok(false) };
        let mut key = Vec::with_capacity(32);
        parent.key.encode_prefix(values, &mut key);
        let distribution = parent.distribution_of(values);
        self.find_parent(&parent, &key, distribution).await
    }

    /// The same, by the key of the index that finds parents.
    pub(crate) async fn has_new_parent_by_key(
        &mut self,
        building: &Building,
        number: usize,
        key: &[u8],
    ) -> Result<bool, NodeError> {
        match self.new_parent(building, number).await? {
            Some(parent) => self.find_parent(&parent, key, None).await,
            None => Ok(false),
        }
    }

    /// Locks (shared) a row whose key in an index begins so; `false` when there is none, not even one that another
    /// transaction was about to write. `table` is the altered one with the definition of the build.
    pub(crate) async fn lock_new_child(
        &mut self,
        table: Arc<TableInfo>,
        index: IndexId,
        key: &[u8],
    ) -> Result<bool, NodeError> {
        let mut cursor = ScanCursor::over(table, rows_of(index, key, None, (LockMode::Shared, WaitPolicy::Wait)));
        let mut batch = ScanBatch::default();
        self.next_rows(&mut cursor, 1, &mut batch).await?;
        Ok(!batch.is_empty())
    }

    /// Locks (shared) a row by its primary key, and gives the values of some of its columns; `None` when it is gone.
    pub(crate) async fn lock_new_reference(
        &mut self,
        table: &Arc<TableInfo>,
        base: &[u8],
        columns: &[usize],
    ) -> Result<Option<Vec<Value>>, NodeError> {
        let lock = Some((LockMode::Shared, WaitPolicy::Wait));
        let see = |row: Option<rauk_types::RowView<'_>>| {
            row.map(|row| columns.iter().map(|&at| row.get(at).to_owned()).collect::<Vec<_>>())
        };
        self.get(&TableHandle::new(table.clone()), base, lock, see).await
    }

    async fn new_parent(&mut self, building: &Building, number: usize) -> Result<Option<Parent>, NodeError> {
        let key = &building.schema.foreign_keys[number];
        let table = self.use_named(&key.parent_database, &key.parent_table).await?;
        Ok(table.and_then(|table| Parent::of(key, &building.schema, table)))
    }
}
