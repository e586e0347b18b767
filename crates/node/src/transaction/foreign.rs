//! Foreign keys: a row's parents are there, and what becomes of child rows when their parent goes.
//!
//! Both sides write first and look then. A child row is written (its lock and its pending version are in place), then its parent is looked up in
//! the newest state and locked with KeyShare to the end. A parent row is deleted, or its key changed (held so that KeyShare must wait), then its
//! children are looked for in the newest state by a locking scan. So of two transactions that do this at the same time, whatever partitions
//! the rows are in, one at least meets what the other has written, and waits for its end. This does not rest on the lock of the parent: where that
//! dies with the primary of its partition, the pending child row is met; and if that has died, its transaction cannot commit.
//!
//! | the referenced columns are | a parent is looked up | what keeps it |
//! |---|---|---|
//! | the primary key | its row | a delete, or a change of the key, has the row to itself |
//! | a unique index | its row in the index table | the same, of that row |
//! | the first columns of an index | the index, until a row is found | the same, and an update of these columns locks the row so ([`LockMode::KeyChange`]) |
//!
//! Snapshots play no part: a parent may be newer than the transaction's snapshot, and a child too (no error 1020 comes of it).
//!
//! CASCADE and SET NULL are carried out depth first, constraint by constraint in the order of their names, a batch of child rows at a time; each
//! changed child row is a parent in its turn. The limits are InnoDB's: [`MAX_CASCADE_DEPTH`] levels (3008), and an update does not cascade into a
//! table that was updated on the way to it (then it is refused like RESTRICT). A violation undoes the row's write with everything that came of it.
//!
//! Statements of many rows lock the parents of many of them together first (`super::parents`): then they are found to
//! be locked when each row is looked at. And the children of many deleted rows are looked for together
//! (`super::childless`): where there are none, nothing has to be seen to row by row.
//!
//! Tables that are only looked at are used under their metadata locks like all others. What is written here is subject to the same checks, but
//! not counted as rows of the statement. Generated columns of child rows that are changed are computed by the
//! registered evaluator ([`crate::scan::pushdown::Evaluator`]): VIRTUAL ones may read what a cascade changes.

use super::{Transaction, UpdateOutcome};
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::ops::operation::Key;
use crate::scan::{Page, ScanBatch, ScanCursor, ScanSpec};
use crate::table::relations::{Child, ParentIndex, Reference, distribution, distribution_key};
use crate::table::{TableInfo, entries};
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_types::error::codes;
use rauk_types::foreign::{MAX_CASCADE_DEPTH, ParentKey};
use rauk_types::key::prefix_successor;
use rauk_types::{
    IndexId, IndexPart, IndexSchema, KeyDef, MysqlError, ReferenceAction, RowView, TableId, TableSchema, TypeKind,
    Value, ValueRef, format,
};
use rustc_hash::FxHashSet;
use std::future::Future;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::Arc;

/// Child rows that are changed between two steps of the scan that finds them.
const BATCH: usize = 128;
/// Parents that are remembered as locked.
pub(super) const KNOWN: usize = 4096;

/// What a transaction knows of the foreign keys that it has met.
#[derive(Default)]
pub(super) struct Known {
    /// By the child's table and the number of its foreign key. Their tables' metadata locks are held to the end, so this stays true.
    pub(super) parents: Vec<(TableId, usize, Arc<Parent>)>,
    /// Parents that were found and are locked: the child's table, the number of its foreign key, the encoded key.
    pub(super) locked: FxHashSet<(TableId, usize, Vec<u8>)>,
    /// The statement that has changed child rows last: rows that it has read before may be old.
    cascaded: Option<u32>,
}

pub(super) struct Parent {
    pub(super) table: Arc<TableInfo>,
    pub(super) index: ParentIndex,
    /// Encodes keys of the index.
    pub(super) key: KeyDef,
    distribution: Option<(KeyDef, Vec<usize>)>,
}

/// A row that was changed, as its children see it.
struct Changed {
    table: Arc<TableInfo>,
    old: Vec<Value>,
    /// `None`: it is gone.
    new: Option<Vec<Value>>,
    /// How many cascades led to it.
    depth: usize,
    /// Tables that were updated on the way, itself included.
    updated: Vec<TableId>,
}

/// One foreign key that refers to a changed row, and how far its child rows have been seen to.
struct Step {
    changed: Arc<Changed>,
    child: Found,
    cursor: Option<ScanCursor>,
}

/// A child's table and the number of its foreign key.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) table: Arc<TableInfo>,
    pub(super) number: usize,
}

/// What a write has to see to in other tables. In a box without its type, so that statements on tables without foreign keys do not carry its state.
pub(super) type Checked<'a, T = ()> = Pin<Box<dyn Future<Output = Result<T, NodeError>> + Send + 'a>>;

impl Transaction {
    /// Foreign keys are not looked at from now on (`foreign_key_checks=0`), or are.
    pub fn set_foreign_key_checks(&mut self, checks: bool) {
        if self.options.foreign_key_checks != checks {
            // Parents may go without a look at their children meanwhile.
            self.forget_parents();
            self.options.foreign_key_checks = checks;
        }
    }

    /// Whether a write to the table must see to other tables.
    pub(super) fn checks_relations(&self, table: &TableInfo) -> bool {
        table.is_related() && self.options.foreign_key_checks
    }

    /// What was learned of locked parents may no longer hold: something was undone, or a row that others refer to was changed.
    pub(super) fn forget_parents(&mut self) {
        if let Some(known) = &mut self.known {
            known.locked.clear();
        }
    }

    /// A row was inserted.
    pub(super) async fn after_insert(&mut self, table: &Arc<TableInfo>, row: &[Value]) -> Result<(), NodeError> {
        if table.references.is_empty() {
            return Ok(());
        }
        let checked: Checked<'_> = Box::pin(self.check_parents(table, None, row, 0..table.references.len()));
        checked.await
    }

    /// A unique key of a row that was to be inserted is taken. InnoDB enters a row into one index after the other, and
    /// looks for a parent before it enters the row into the foreign key's index: error 1452 of the keys up to there.
    pub(super) async fn before_duplicate(
        &mut self,
        table: &Arc<TableInfo>,
        row: &[Value],
        index: IndexId,
    ) -> Result<(), NodeError> {
        let indexes = &table.schema.indexes;
        let taken = indexes.iter().position(|own| own.id == index);
        let comes_before = |number: &usize| {
            let columns = &table.references[*number].columns;
            let begins = |own: &IndexSchema| {
                let is_whole = |(part, column): (&IndexPart, &usize)| part.column == *column && part.prefix.is_none();
                own.parts.len() >= columns.len() && own.parts.iter().zip(columns).all(is_whole)
            };
            indexes.iter().position(begins).is_some_and(|own| taken.is_some_and(|taken| own <= taken))
        };
        let before: Vec<usize> = (0..table.references.len()).filter(comes_before).collect();
        if before.is_empty() {
            return Ok(());
        }
        let checked: Checked<'_> = Box::pin(self.check_parents(table, None, row, before.into_iter()));
        checked.await
    }

    /// A row was changed; `moved` as [`Transaction::lock_referenced`] has said.
    pub(super) async fn after_update(
        &mut self,
        table: &Arc<TableInfo>,
        old: &[Value],
        new: &[Value],
        moved: bool,
    ) -> Result<(), NodeError> {
        self.forget_parents();
        if moved {
            let changed: Checked<'_> = Box::pin(self.see_to_children(table, old, Some(new)));
            changed.await?;
        }
        if table.references.is_empty() {
            return Ok(());
        }
        let numbers = 0..table.references.len();
        let checked: Checked<'_> = Box::pin(self.check_parents(table, Some(old), new, numbers));
        checked.await
    }

    /// A row was deleted.
    pub(super) async fn after_delete(&mut self, table: &Arc<TableInfo>, row: &[Value]) -> Result<(), NodeError> {
        self.forget_parents();
        let changed: Checked<'_> = Box::pin(self.see_to_children(table, row, None));
        changed.await
    }

    /// Before an update in place: where columns that others refer to change, nobody may find the row by them until this transaction has
    /// ended. Gives whether they do.
    pub(super) async fn lock_referenced(
        &mut self,
        table: &Arc<TableInfo>,
        key: &[u8],
        old: &[Value],
        new: &[Value],
    ) -> Result<bool, NodeError> {
        if !table.shared.children.any() {
            return Ok(false);
        }
        let locked: Checked<'_, bool> = Box::pin(self.lock_if_moved(table, key, old, new));
        locked.await
    }

    async fn lock_if_moved(
        &mut self,
        table: &Arc<TableInfo>,
        key: &[u8],
        old: &[Value],
        new: &[Value],
    ) -> Result<bool, NodeError> {
        let mut moved = false;
        for found in self.children(table).await? {
            let key = &found.table.schema.foreign_keys[found.number];
            let columns = key.parent_positions(&table.schema).unwrap_or_default();
            moved |= columns.iter().any(|&column| old[column] != new[column]);
        }
        if moved {
            let key = Key::of(key);
            let partition = self.node.partition_of(table.route.bucket_of_key(key.bytes, key.hash));
            let lock = (LockMode::KeyChange, WaitPolicy::Wait);
            self.read_locked(table, partition, key, lock, u32::MAX, |_| ()).await?;
        }
        Ok(moved)
    }

    /// A table by its name, used; `None` when there is none.
    pub(super) async fn use_named(&mut self, database: &str, name: &str) -> Result<Option<Arc<TableInfo>>, NodeError> {
        loop {
            let Some(info) = self.node.tables.by_name(database, name) else { return Ok(None) };
            if let Some(used) = self.use_info(info).await? {
                return Ok(Some(used));
            }
        }
    }

    /// The table under its metadata lock; `None` when a DDL was faster.
    async fn use_info(&mut self, info: Arc<TableInfo>) -> Result<Option<Arc<TableInfo>>, NodeError> {
        // Under a lock that is held already this is the newest definition.
        if let Some(used) = self.tables.iter().find(|used| used.info.schema.id == info.schema.id) {
            return Ok(Some(used.info.clone()));
        }
        match self.use_table(&TableHandle::new(info.clone())).await {
            Ok(()) => Ok(Some(info)),
            Err(NodeError::StaleSchema) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// `None`: it does not refer to the table any more.
    async fn child(&mut self, child: &Child) -> Result<Option<Found>, NodeError> {
        loop {
            let Some(info) = self.node.tables.by_id(child.table) else { return Ok(None) };
            if let Some(table) = self.use_info(info).await? {
                let number = table.schema.foreign_keys.iter().position(|key| key.name == child.name);
                return Ok(number.map(|number| Found { table, number }));
            }
        }
    }

    /// All foreign keys that refer to a table, each child under its metadata lock. A DDL that a lock was waited for may have renamed a child or
    /// written it again under another number: then the list says what it is now.
    pub(super) async fn children(&mut self, table: &Arc<TableInfo>) -> Result<Vec<Found>, NodeError> {
        loop {
            let list = table.shared.children.list();
            let (mut found, mut all) = (Vec::with_capacity(list.len()), true);
            for child in list.iter() {
                match self.child(child).await? {
                    Some(child) => {
                        // A cascade writes there: it waits for those who keep writers out.
                        let key = &child.table.schema.foreign_keys[child.number];
                        if key.on_delete.changes_children() || key.on_update.changes_children() {
                            self.use_table_to_write(&TableHandle::new(child.table.clone())).await?;
                        }
                        found.push(child);
                    }
                    None => all = false,
                }
            }
            if all || Arc::ptr_eq(&list, &table.shared.children.list()) {
                return Ok(found);
            }
        }
    }

    /// Whether the running statement has changed child rows: rows that it has read before may be old.
    pub(super) fn has_cascaded(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.cascaded == Some(self.statement))
    }

    /// A row as it is, and as an UPDATE wants it that read `old` before its own cascades: columns that it does not assign keep what these have put
    /// there. `None`: the row has gone. No CHECK reads what a cascade changes.
    pub(super) async fn after_cascades(
        &mut self,
        table: &Arc<TableInfo>,
        key: &[u8],
        old: &[Value],
        new: &[Value],
    ) -> Result<Option<(Vec<Value>, Vec<Value>)>, NodeError> {
        let key = Key::of(key);
        let partition = self.node.partition_of(table.route.bucket_of_key(key.bytes, key.hash));
        let step = self.begin_newest();
        let lock = (LockMode::Exclusive, WaitPolicy::Wait);
        let now = self.read_locked(table, partition, key, lock, u32::MAX, |row| row.map(|row| row.to_values())).await;
        self.end_newest(step);
        let Some(now) = now? else { return Ok(None) };
        let assigned = old.iter().zip(new).zip(&now);
        let mut new: Vec<Value> =
            assigned.map(|((old, new), now)| if old == new { now } else { new }.clone()).collect();
        self.node.compute_generated(&table.schema, &mut new)?;
        Ok(Some((now, new)))
    }

    /// The parent of a foreign key; `None` when it is missing, or lacks the columns or their index.
    pub(super) async fn parent(
        &mut self,
        child: &Arc<TableInfo>,
        number: usize,
    ) -> Result<Option<Arc<Parent>>, NodeError> {
        let known = self.known.get_or_insert_default();
        if let Some((_, _, parent)) = known.parents.iter().find(|(id, n, _)| (*id, *n) == (child.schema.id, number)) {
            return Ok(Some(parent.clone()));
        }
        let key = &child.schema.foreign_keys[number];
        let Some(table) = self.use_named(&key.parent_database, &key.parent_table).await? else { return Ok(None) };
        let Some(parent) = Parent::of(key, &child.schema, table) else { return Ok(None) };
        let parent = Arc::new(parent);
        self.known.get_or_insert_default().parents.push((child.schema.id, number, parent.clone()));
        Ok(Some(parent))
    }

    /// Each parent of a row, new or changed, is there and stays; error 1452. `numbers`: of these foreign keys.
    async fn check_parents(
        &mut self,
        child: &Arc<TableInfo>,
        old: Option<&[Value]>,
        new: &[Value],
        numbers: impl Iterator<Item = usize> + Send,
    ) -> Result<(), NodeError> {
        for number in numbers {
            let columns = &child.references[number].columns;
            // A row under another primary key is another row, as in InnoDB.
            let own = child.schema.primary().parts.iter().map(|part| &part.column);
            let changed = old.is_none_or(|old| columns.iter().chain(own).any(|&at| old[at] != new[at]));
            // MATCH SIMPLE: a NULL in it refers to nothing.
            if !changed || columns.iter().any(|&at| new[at].is_null()) {
                continue;
            }
            let values: Vec<ValueRef<'_>> = columns.iter().map(|&at| new[at].as_ref()).collect();
            if !self.lock_parent(child, number, &values).await? {
                let key = &child.schema.foreign_keys[number];
                let text = "Cannot add or update a child row: a foreign key constraint fails";
                return Err(violation(codes::NO_REFERENCED_ROW_2, text, &key.described(&child.schema)));
            }
        }
        Ok(())
    }

    /// Whether there is a parent row with these values; it is locked then.
    async fn lock_parent(
        &mut self,
        child: &Arc<TableInfo>,
        number: usize,
        values: &[ValueRef<'_>],
    ) -> Result<bool, NodeError> {
        let Some(parent) = self.parent(child, number).await? else { return Ok(false) };
        let mut key = Vec::with_capacity(32);
        parent.key.encode_prefix(values, &mut key);
        let known = self.known.get_or_insert_default();
        let place = (child.schema.id, number, key);
        if known.locked.contains(&place) {
            return Ok(true);
        }
        let found = self.find_parent(&parent, &place.2, parent.distribution_of(values)).await?;
        let known = self.known.get_or_insert_default();
        if found && known.locked.len() < KNOWN {
            known.locked.insert(place);
        }
        Ok(found)
    }

    /// Whether there is a row with this key of the index that parents are found by; it is locked then. `distribution`: its
    /// distribution key, where that is known.
    pub(super) async fn find_parent(
        &mut self,
        parent: &Parent,
        key: &[u8],
        distribution: Option<Vec<u8>>,
    ) -> Result<bool, NodeError> {
        let lock = (LockMode::KeyShare, WaitPolicy::Wait);
        let seen = |row: Option<RowView<'_>>| row.is_some();
        let table = &parent.table;
        match parent.index.key {
            ParentKey::Whole(IndexId::PRIMARY) => {
                let key = Key::of(key);
                let partition = self.node.partition_of(table.route.bucket_of_key(key.bytes, key.hash));
                let step = self.begin_newest();
                let found = self.read_locked(table, partition, key, lock, u32::MAX, seen).await;
                self.end_newest(step);
                found
            }
            ParentKey::Whole(id) => {
                let unique = table.unique(id).ok_or(NodeError::StaleSchema)?;
                let place = entries::locate(&unique.entries, key);
                let partition = self.node.partition_of(place.bucket);
                let step = self.begin_newest();
                let found = self.read_locked(&unique.entries, partition, place.key(), lock, u32::MAX, seen).await;
                self.end_newest(step);
                found
            }
            ParentKey::First(id) => {
                let mut cursor = ScanCursor::over(table.clone(), rows_of(id, key, distribution, lock));
                let mut batch = ScanBatch::default();
                self.next_rows(&mut cursor, 1, &mut batch).await?;
                Ok(!batch.is_empty())
            }
        }
    }

    /// Child rows of a row that is gone or has another key: they are in the way (1451), or go, or change.
    async fn see_to_children(
        &mut self,
        table: &Arc<TableInfo>,
        old: &[Value],
        new: Option<&[Value]>,
    ) -> Result<(), NodeError> {
        let mut stack: Vec<Step> = Vec::new();
        let updated = new.iter().map(|_| table.schema.id).collect();
        let new = new.map(<[Value]>::to_vec);
        self.push(&mut stack, Changed { table: table.clone(), old: old.to_vec(), new, depth: 0, updated }).await?;
        while let Some(mut step) = stack.pop() {
            let found = step.child.clone();
            let rows = self.child_rows(&mut step, &found).await?;
            if rows.is_empty() {
                continue;
            }
            if step.changed.depth + 1 >= MAX_CASCADE_DEPTH {
                let text = format!("Foreign key cascade delete/update exceeds max depth of {MAX_CASCADE_DEPTH}.");
                return Err(NodeError::Refused(MysqlError::new(codes::FK_DEPTH_EXCEEDED, text)));
            }
            let changed = step.changed.clone();
            // What comes of these rows goes before the rest of them.
            stack.push(step);
            for row in rows.into_iter().rev() {
                if let Some(next) = self.change_child(&changed, &found, row).await? {
                    let statement = self.statement;
                    self.known.get_or_insert_default().cascaded = Some(statement);
                    self.push(&mut stack, next).await?;
                }
            }
        }
        Ok(())
    }

    /// The foreign keys that refer to a row are seen to in InnoDB's order: by the indexes that they refer to, and their names. The last one pushed is
    /// the first.
    async fn push(&mut self, stack: &mut Vec<Step>, changed: Changed) -> Result<(), NodeError> {
        let mut children = self.children(&changed.table).await?;
        if children.len() > 1 {
            let parent = &changed.table.schema;
            let place = |child: &Found| {
                let schema = &child.table.schema;
                let key = &schema.foreign_keys[child.number];
                let (ParentKey::Whole(id) | ParentKey::First(id)) = ParentIndex::of(key, schema, parent)?.key;
                parent.indexes.iter().position(|index| index.id == id)
            };
            children.sort_by_cached_key(place);
        }
        let changed = Arc::new(changed);
        let step = |child: Found| Step { changed: changed.clone(), child, cursor: None };
        stack.extend(children.into_iter().rev().map(step));
        Ok(())
    }

    /// Some of the child rows of a step, locked; none when there are no more. Error 1451 where they are not to be changed.
    async fn child_rows(&mut self, step: &mut Step, found: &Found) -> Result<Vec<Vec<Value>>, NodeError> {
        let changed = &step.changed;
        let key = &found.table.schema.foreign_keys[found.number];
        let reference = &found.table.references[found.number];
        let parent = ParentIndex::of(key, &found.table.schema, &changed.table.schema);
        let Some(columns) = parent.map(|parent| parent.columns) else { return Ok(Vec::new()) };
        let values: Vec<ValueRef<'_>> = columns.iter().map(|&at| changed.old[at].as_ref()).collect();
        let stays = changed.new.as_ref().is_some_and(|new| columns.iter().all(|&at| new[at] == changed.old[at]));
        if stays || values.iter().any(|value| value.is_null()) {
            return Ok(Vec::new());
        }
        let refused = !action(changed, key).changes_children()
            || changed.new.is_some() && changed.updated.contains(&found.table.schema.id);
        // A row that refers to itself is its own child, although it is changed by now.
        let itself = found.table.schema.id == changed.table.schema.id
            && reference.columns.iter().zip(&columns).all(|(&at, &from)| changed.old[at] == changed.old[from]);
        if refused && itself {
            return Err(referenced(key, &found.table));
        }
        if step.cursor.is_none() {
            step.cursor = Some(children_of(found, reference, &values, refused)?);
        }
        let cursor = step.cursor.as_mut().expect("just made");
        let mut batch = ScanBatch::default();
        self.next_rows(cursor, if refused { 1 } else { BATCH }, &mut batch).await?;
        if refused && !batch.is_empty() {
            return Err(referenced(key, &found.table));
        }
        let handle = crate::database::TableHandle::new(found.table.clone());
        Ok((0..batch.len()).map(|at| batch.row(&handle, at).to_values()).collect())
    }

    /// Does to a child row what its foreign key says; gives what its own children have to know.
    async fn change_child(
        &mut self,
        changed: &Changed,
        found: &Found,
        old: Vec<Value>,
    ) -> Result<Option<Changed>, NodeError> {
        let (table, depth) = (found.table.clone(), changed.depth + 1);
        let key = &table.schema.foreign_keys[found.number];
        if changed.new.is_none() && key.on_delete == ReferenceAction::Cascade {
            let step = self.begin_newest();
            let removed = self.remove_row(&table, &old).await;
            self.end_newest(step);
            let next = Changed { table, old, new: None, depth, updated: Vec::new() };
            return Ok(removed?.then_some(next));
        }
        let mut new = old.clone();
        let columns = &table.references[found.number].columns;
        match (action(changed, key), &changed.new) {
            (ReferenceAction::SetNull, _) => columns.iter().for_each(|&at| new[at] = Value::Null),
            (_, Some(parent)) => {
                let from = key.parent_positions(&changed.table.schema).unwrap_or_default();
                for (&at, from) in columns.iter().zip(from) {
                    if !fits(&parent[from], &table.schema.columns[at].ty) {
                        return Err(referenced(key, &table));
                    }
                    new[at] = parent[from].clone();
                }
            }
            (action, None) => unreachable!("{action:?} changes no child of a row that is gone"),
        }
        if columns.iter().any(|&at| new[at].is_null() && !table.schema.columns[at].nullable) {
            return Err(referenced(key, &table));
        }
        self.node.compute_generated(&table.schema, &mut new)?;
        let mut row_key = Vec::new();
        table.primary.encode_values(&old, &mut row_key);
        let step = self.begin_newest();
        let outcome = async {
            self.lock_referenced(&table, &row_key, &old, &new).await?;
            self.change_row(&table, &old, &new).await
        }
        .await;
        self.end_newest(step);
        match outcome? {
            UpdateOutcome::Updated => {}
            UpdateOutcome::Missing => return Ok(None),
            UpdateOutcome::Duplicate { index, .. } => return Err(duplicate(changed, &table, index)),
        }
        let others = (0..table.references.len()).filter(|number| *number != found.number);
        self.check_parents(&table, Some(&old), &new, others).await?;
        let mut updated = changed.updated.clone();
        updated.push(table.schema.id);
        Ok(Some(Changed { table, old, new: Some(new), depth, updated }))
    }

    pub(super) async fn next_rows(
        &mut self,
        cursor: &mut ScanCursor,
        rows: usize,
        batch: &mut ScanBatch,
    ) -> Result<(), NodeError> {
        let step = self.begin_newest();
        let page = Page { rows, bytes: 1 << 20 };
        let found = cursor.next_page(self, page, &mut |_| true, batch).await;
        self.end_newest(step);
        found
    }

    /// From here on this transaction sees all that it has written, and is not refused what is newer than its snapshot.
    pub(super) fn begin_newest(&mut self) -> (u32, bool) {
        let before = (self.statement, self.options.snapshot_isolation);
        self.write_number += 1;
        self.statement = self.write_number;
        self.options.snapshot_isolation = false;
        before
    }

    pub(super) fn end_newest(&mut self, (statement, snapshot_isolation): (u32, bool)) {
        self.statement = statement;
        self.options.snapshot_isolation = snapshot_isolation;
    }
}

impl Parent {
    pub(super) fn of(key: &rauk_types::ForeignKey, child: &TableSchema, table: Arc<TableInfo>) -> Option<Parent> {
        let index = ParentIndex::of(key, child, &table.schema)?;
        let (ParentKey::Whole(id) | ParentKey::First(id)) = index.key;
        let key = table.schema.key_def(table.schema.index(id)?);
        let distribution = distribution(&table.schema, &index.columns);
        Some(Parent { table, index, key, distribution })
    }

    /// The distribution key of a row with these values, where they decide it and it helps to find the row.
    pub(super) fn distribution_of(&self, values: &[ValueRef<'_>]) -> Option<Vec<u8>> {
        let ParentKey::First(_) = self.index.key else { return None };
        self.distribution.as_ref().map(|known| distribution_key(known, values))
    }
}

fn action(changed: &Changed, key: &rauk_types::ForeignKey) -> ReferenceAction {
    if changed.new.is_none() { key.on_delete } else { key.on_update }
}

fn children_of(
    found: &Found,
    reference: &Reference,
    values: &[ValueRef<'_>],
    refused: bool,
) -> Result<ScanCursor, NodeError> {
    // DDL keeps an index for each foreign key.
    let (index, def) = reference.index.as_ref().ok_or(NodeError::StaleSchema)?;
    let mut key = Vec::with_capacity(32);
    def.encode_prefix(values, &mut key);
    let distribution = reference.distribution.as_ref().map(|known| distribution_key(known, values));
    let mode = if refused { LockMode::Shared } else { LockMode::Exclusive };
    Ok(ScanCursor::over(found.table.clone(), rows_of(*index, &key, distribution, (mode, WaitPolicy::Wait))))
}

/// The rows whose key in an index begins so.
pub(super) fn rows_of(
    index: IndexId,
    key: &[u8],
    distribution: Option<Vec<u8>>,
    lock: (LockMode, WaitPolicy),
) -> ScanSpec {
    let mut above = key.to_vec();
    let bounded = prefix_successor(&mut above);
    ScanSpec {
        index: Some(index),
        low: Bound::Included(key.to_vec()),
        high: if bounded { Bound::Excluded(above) } else { Bound::Unbounded },
        lock: Some(lock),
        distribution,
        limit_hint: Some(1),
        ..ScanSpec::default()
    }
}

/// Whether a parent's value can be stored in the child's column as it is: that may be shorter, CHAR has no spaces at its end, BINARY has all its bytes.
fn fits(value: &Value, ty: &rauk_types::DataType) -> bool {
    match value {
        Value::Str(text) => {
            text.chars().count() <= ty.length as usize && !(ty.kind == TypeKind::Char && text.ends_with(' '))
        }
        Value::Bytes(bytes) => {
            bytes.len() <= ty.length as usize && (ty.kind != TypeKind::Binary || bytes.len() == ty.length as usize)
        }
        _ => true,
    }
}

/// Error 1451.
fn referenced(key: &rauk_types::ForeignKey, child: &TableInfo) -> NodeError {
    let text = "Cannot delete or update a parent row: a foreign key constraint fails";
    violation(codes::ROW_IS_REFERENCED_2, text, &key.described(&child.schema))
}

fn violation(code: u16, text: &str, constraint: &str) -> NodeError {
    NodeError::Refused(MysqlError::new(code, format!("{text} {constraint}")))
}

/// Whether a write was refused by a foreign key: what it has written is undone, and the transaction goes on.
pub(super) fn is_violation(error: &NodeError) -> bool {
    let codes = [codes::ROW_IS_REFERENCED_2, codes::NO_REFERENCED_ROW_2, codes::FK_DEPTH_EXCEEDED];
    matches!(error, NodeError::Refused(refused)
        if codes.contains(&refused.code) || refused.code == codes::FOREIGN_DUPLICATE_KEY)
}

/// Error 1761: a cascade would give a child row the key of another one.
fn duplicate(changed: &Changed, child: &TableInfo, index: IndexId) -> NodeError {
    let parent = &changed.table.schema;
    let row = changed.new.as_ref().unwrap_or(&changed.old);
    let mut record = Vec::new();
    for part in &parent.primary().parts {
        if !record.is_empty() {
            record.push(b'-');
        }
        format::append_text(row[part.column].as_ref(), &parent.columns[part.column].ty, &mut record);
    }
    let text = format!(
        "Foreign key constraint for table '{}', record '{}' would lead to a duplicate entry in table '{}', key '{}'",
        parent.name,
        String::from_utf8_lossy(&record),
        child.schema.name,
        child.schema.index(index).map_or("PRIMARY", |index| &index.name)
    );
    NodeError::Refused(MysqlError::new(codes::FOREIGN_DUPLICATE_KEY, text))
}
