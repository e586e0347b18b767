//! Foreign keys in DDL: which tables a statement has alone beside its own, what it may do to them, and whether the rows that are there keep the
//! constraint.
//!
//! A statement that adds a foreign key has the parents alone, so that no transaction that uses a parent does not know the new child
//! ([`crate::table::relations`]). One that renames a table, or a column that others refer to, has the children alone: their declarations are rewritten in
//! the same change of the catalog. All checks are made under these locks, by the newest definitions; SQL checks only what the statement itself says.
//!
//! Rows are validated beside their writers ([`super::validating`]). Where that cannot be ([`super::online`]), child and parent are held alone meanwhile, and all
//! rows of the child, a batch at a time, look for their parents.

use super::build::{Patience, Reader, filling};
use crate::bulk::Keys;
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::node::Node;
use crate::scan::{ScanBatch, ScanCursor, ScanSpec};
use crate::table::TableInfo;
use crate::table::relations::ParentIndex;
use rauk_types::error::codes;
use rauk_types::foreign::{ParentKey, child_index, is_compatible, parent_key};
use rauk_types::key::prefix_successor;
use rauk_types::{Column, ForeignKey, MysqlError, ReferenceAction, RowView, TableId, TableSchema, TypeKind, ValueRef};
use std::ops::Bound;
use std::sync::Arc;

fn refuse<T>(code: u16, text: String) -> Result<T, NodeError> {
    Err(NodeError::Refused(MysqlError::new(code, text)))
}

/// Foreign keys that `new` has and `old` has not.
pub(super) fn added<'a>(old: Option<&'a TableSchema>, new: &'a TableSchema) -> impl Iterator<Item = &'a ForeignKey> {
    new.foreign_keys.iter().filter(move |key| !old.is_some_and(|old| old.foreign_keys.contains(key)))
}

/// The tables that new foreign keys refer to, as far as they are there; the table itself left out.
pub(super) fn parents(node: &Node, old: Option<&TableSchema>, new: &TableSchema) -> Vec<Arc<TableInfo>> {
    let other = added(old, new).filter(|key| !key.is_parent(new));
    other.filter_map(|key| node.tables.by_name(&key.parent_database, &key.parent_table)).collect()
}

/// The tables that refer to one; itself left out.
pub(super) fn children(node: &Node, table: &TableInfo) -> Vec<Arc<TableInfo>> {
    let list = table.shared.children.list();
    let others = list.iter().filter(|child| child.table != table.schema.id);
    let mut found: Vec<_> = others.filter_map(|child| node.tables.by_id(child.table)).collect();
    found.dedup_by_key(|child| child.schema.id);
    found
}

/// The tables that an ALTER has alone beside its own.
pub(super) fn beside(node: &Node, old: &TableInfo, new: &TableSchema) -> Vec<Arc<TableInfo>> {
    let mut tables = parents(node, Some(&old.schema), new);
    tables.extend(children(node, old));
    tables.sort_by_key(|table| table.schema.id);
    tables.dedup_by_key(|table| table.schema.id);
    tables
}

/// Whether two looks gave the same tables in the same versions.
pub(super) fn same(a: &[Arc<TableInfo>], b: &[Arc<TableInfo>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.schema.id == b.schema.id)
}

/// Checks a definition that is about to be made: its new foreign keys against their parents, those that it keeps against what it changes.
pub(super) fn check_declared(
    node: &Node,
    old: Option<&TableSchema>,
    new: &TableSchema,
    checks: bool,
) -> Result<(), NodeError> {
    for key in &new.foreign_keys {
        let columns = key.positions(new);
        if child_index(new, &columns).is_none() {
            // SQL makes one for a new key; so what it had is dropped.
            let index = old.and_then(|old| child_index(old, &key.positions(old)));
            return needed_index(index.map_or(&key.name, |index| &index.name));
        }
        let is_new = !old.is_some_and(|old| old.foreign_keys.contains(key));
        for (&at, id) in columns.iter().zip(&key.columns) {
            let column = &new.columns[at];
            if !column.nullable && [key.on_delete, key.on_update].contains(&ReferenceAction::SetNull) {
                let text = format!(
                    "Column '{}' cannot be NOT NULL: needed in a foreign key constraint '{}' SET NULL",
                    column.name, key.name
                );
                return refuse(codes::FK_COLUMN_NOT_NULL, text);
            }
            let before = old.filter(|_| !is_new).and_then(|old| old.columns.iter().find(|c| c.id == *id));
            let keeps = |before: &Column| old.is_none_or(|old| keeps_values(old, before, new, column));
            if checks && before.is_some_and(|before| !keeps(before)) {
                let text =
                    format!("Cannot change column '{}': used in a foreign key constraint '{}'", column.name, key.name);
                return refuse(codes::FK_COLUMN_CANNOT_CHANGE, text);
            }
        }
        let stored;
        let parent = match key.is_parent(new) {
            true => new,
            false => match node.tables.by_name(&key.parent_database, &key.parent_table) {
                Some(info) => {
                    stored = info.schema.clone();
                    &*stored
                }
                None if checks && is_new => {
                    let text = format!("Failed to open the referenced table '{}'", key.parent_table);
                    return refuse(codes::FK_CANNOT_OPEN_PARENT, text);
                }
                None => continue,
            },
        };
        check_parent(key, new, parent)?;
    }
    // Children that wait for a table of this name.
    let waiting = if old.is_none() { node.tables.children_of(&new.database, &new.name) } else { Arc::from([]) };
    for child in waiting.iter() {
        let Some(info) = node.tables.by_id(child.table) else { continue };
        if let Some(key) = info.schema.foreign_keys.iter().find(|key| key.name == child.name) {
            check_parent(key, &info.schema, new)?;
        }
    }
    Ok(())
}

/// Whether a parent has what a foreign key needs: 3734, 3780, 1822.
fn check_parent(key: &ForeignKey, child: &TableSchema, parent: &TableSchema) -> Result<(), NodeError> {
    let Some(columns) = key.parent_positions(parent) else {
        let missing = key
            .parent_columns
            .iter()
            .find(|name| parent.visible_columns().iter().all(|column| !column.name.eq_ignore_ascii_case(name)));
        let text = format!(
            "Failed to add the foreign key constraint. Missing column '{}' for constraint '{}' in the referenced table '{}'",
            missing.map_or("", String::as_str),
            key.name,
            parent.name
        );
        return refuse(codes::FK_NO_COLUMN_PARENT, text);
    };
    for (at, from) in key.positions(child).into_iter().zip(&columns) {
        let (own, other) = (&child.columns[at], &parent.columns[*from]);
        if !is_compatible(&own.ty, &other.ty) {
            let text = format!(
                "Referencing column '{}' and referenced column '{}' in foreign key constraint '{}' are incompatible.",
                own.name, other.name, key.name
            );
            return refuse(codes::FK_INCOMPATIBLE_COLUMNS, text);
        }
    }
    if parent_key(parent, &columns).is_none() {
        let text = format!(
            "Failed to add the foreign key constraint. Missing index for constraint '{}' in the referenced table '{}'",
            key.name, parent.name
        );
        return refuse(codes::FK_NO_INDEX_PARENT, text);
    }
    Ok(())
}

fn needed_index(name: &str) -> Result<(), NodeError> {
    refuse(codes::DROP_INDEX_FK, format!("Cannot drop index '{name}': needed in a foreign key constraint"))
}

/// Whether a column's values stay what they are when the rows are written again, so that what refers to them does too.
fn keeps_values(old: &TableSchema, before: &Column, new: &TableSchema, after: &Column) -> bool {
    let is_numbered = |schema: &TableSchema, column: &Column| {
        schema.auto_increment.is_some_and(|at| schema.columns[at].id == column.id)
    };
    let (from, to) = (&before.ty, &after.ty);
    let is_long_enough = from.length <= to.length || from.is_integer();
    let is_float = matches!(to.kind, TypeKind::Float | TypeKind::Double);
    // CHAR loses spaces that VARCHAR has; a FLOAT with digits is rounded.
    let keeps_form = from.kind == to.kind || from.is_integer() && to.is_integer();
    is_compatible(from, to)
        && is_long_enough
        && keeps_form
        && (!is_float || (from.precision, from.scale) == (to.precision, to.scale))
        && before.generated == after.generated
        // Rows with NULL or zero get numbers.
        && (is_numbered(old, before) || !is_numbered(new, after))
}

/// What an ALTER does to the children of a table: checked, and given as their new definitions where columns get other names. Those of the table
/// itself are changed in `new`.
pub(super) fn follow_columns(
    old: &TableSchema,
    new: &mut TableSchema,
    children: &[Arc<TableInfo>],
    checks: bool,
) -> Result<Vec<TableSchema>, NodeError> {
    let mut own = new.foreign_keys.clone();
    for key in own.iter_mut().filter(|key| key.is_parent(old)) {
        let has = old.foreign_keys.iter().any(|before| before.name == key.name);
        if has {
            follow_key(old, new, key, &old.name, checks)?;
        }
    }
    new.foreign_keys = own;
    let mut changed = Vec::new();
    for child in children {
        let mut schema = (*child.schema).clone();
        let mut differs = false;
        for key in schema.foreign_keys.iter_mut().filter(|key| key.is_parent(old)) {
            differs |= follow_key(old, new, key, &child.schema.name, checks)?;
        }
        for key in schema.foreign_keys.iter().filter(|key| key.is_parent(old)) {
            if !checks {
                check_parent(key, &schema, new)?;
            }
        }
        if differs {
            schema.version += 1;
            changed.push(schema);
        }
    }
    Ok(changed)
}

/// One foreign key that refers to an altered table; gives whether its columns have other names now.
fn follow_key(
    old: &TableSchema,
    new: &TableSchema,
    key: &mut ForeignKey,
    child: &str,
    checks: bool,
) -> Result<bool, NodeError> {
    let Some(columns) = key.parent_positions(old) else { return Ok(false) };
    let mut names = Vec::with_capacity(columns.len());
    let mut places = Vec::with_capacity(columns.len());
    for &at in &columns {
        let before = &old.columns[at];
        let Some(place) = new.column_position(before.id) else {
            let text = format!(
                "Cannot drop column '{}': needed in a foreign key constraint '{}' of table '{child}'",
                before.name, key.name
            );
            refuse(codes::FK_COLUMN_CANNOT_DROP_CHILD, text)?;
            return Ok(false);
        };
        let column = &new.columns[place];
        if checks && !keeps_values(old, before, new, column) {
            let text = format!(
                "Cannot change column '{}': used in a foreign key constraint '{}' of table '{child}'",
                before.name, key.name
            );
            refuse(codes::FK_COLUMN_CANNOT_CHANGE_CHILD, text)?;
        }
        names.push(column.name.clone());
        places.push(place);
    }
    if let (Some(ParentKey::Whole(id) | ParentKey::First(id)), None) =
        (parent_key(old, &columns), parent_key(new, &places))
    {
        needed_index(old.index(id).map_or("PRIMARY", |index| &index.name))?;
    }
    let differs = names != key.parent_columns;
    key.parent_columns = names;
    Ok(differs)
}

/// Error 3730 when a table that goes has a child that stays.
pub(super) fn check_dropped(node: &Node, tables: &[Arc<TableInfo>], checks: bool) -> Result<(), NodeError> {
    for table in tables.iter().filter(|_| checks) {
        let leaves = |id: TableId| tables.iter().any(|other| other.schema.id == id);
        for child in table.shared.children.list().iter().filter(|child| !leaves(child.table)) {
            let Some(info) = node.tables.by_id(child.table) else { continue };
            let text = format!(
                "Cannot drop table '{}' referenced by a foreign key constraint '{}' on table '{}'.",
                table.schema.name, child.name, info.schema.name
            );
            return refuse(codes::FK_CANNOT_DROP_PARENT, text);
        }
    }
    Ok(())
}

/// Error 1701 when a table that is emptied has children.
pub(super) fn check_truncated(node: &Node, table: &TableInfo, checks: bool) -> Result<(), NodeError> {
    for child in table.shared.children.list().iter().filter(|child| checks && child.table != table.schema.id) {
        let Some(info) = node.tables.by_id(child.table) else { continue };
        let key = info.schema.foreign_keys.iter().find(|key| key.name == child.name);
        let Some(key) = key else { continue };
        let described = key.described(&info.schema);
        return refuse(
            codes::TRUNCATE_ILLEGAL_FK,
            format!("Cannot truncate a table referenced in a foreign key constraint {described}"),
        );
    }
    Ok(())
}

/// Whether all rows of `table`, read as `schema` says, have their parents by these foreign keys; error 1452. `own` is the table as it will be, for keys
/// that refer to it.
pub(super) async fn validate(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    own: &Arc<TableInfo>,
    keys: &[ForeignKey],
) -> Result<(), NodeError> {
    let schema = &own.schema;
    for key in keys {
        let parent = match key.is_parent(schema) {
            true => own.clone(),
            false => match node.tables.by_name(&key.parent_database, &key.parent_table) {
                Some(parent) => parent,
                None => return missing_parent(key, schema),
            },
        };
        let Some(index) = ParentIndex::of(key, schema, &parent.schema) else { return missing_parent(key, schema) };
        let columns = key.positions(schema);
        let mut reader = Reader::new(node, table, schema);
        let mut patience = Patience::default();
        while reader.next().await? {
            let mut wanted: Vec<Vec<u8>> =
                reader.rows().filter_map(|row| key_of(&row, &columns, &index, &parent)).collect();
            wanted.sort_unstable();
            wanted.dedup();
            loop {
                match all_there(node, &parent, &index, &wanted).await {
                    Ok(true) => break,
                    Ok(false) => return missing_parent(key, schema),
                    Err(error) => patience.again(node, error).await?,
                }
            }
            patience.went_on();
        }
    }
    Ok(())
}

pub(super) fn missing_parent(key: &ForeignKey, child: &TableSchema) -> Result<(), NodeError> {
    let constraint = key.described(child);
    let text = format!("Cannot add or update a child row: a foreign key constraint fails {constraint}");
    refuse(codes::NO_REFERENCED_ROW_2, text)
}

/// The parent's key of a child row; `None` when a part of it is NULL.
pub(super) fn key_of(row: &RowView<'_>, columns: &[usize], index: &ParentIndex, parent: &TableInfo) -> Option<Vec<u8>> {
    let values: Vec<ValueRef<'_>> = columns.iter().map(|&at| row.get(at)).collect();
    if values.iter().any(|value| value.is_null()) {
        return None;
    }
    let (ParentKey::Whole(id) | ParentKey::First(id)) = index.key;
    let def = parent.schema.key_def(parent.schema.index(id)?);
    let mut key = Vec::new();
    def.encode_prefix(&values, &mut key);
    Some(key)
}

/// Whether a parent row has each of these keys.
pub(super) async fn all_there(
    node: &Arc<Node>,
    parent: &Arc<TableInfo>,
    index: &ParentIndex,
    wanted: &[Vec<u8>],
) -> Result<bool, NodeError> {
    let mut txn = filling(node, parent);
    match index.key {
        ParentKey::Whole(id) => {
            let mut keys = Keys::default();
            wanted.iter().for_each(|key| keys.push(key));
            let (mut done, mut all) = (vec![false; keys.len()], true);
            let visit = &mut |_: usize, row: Option<RowView<'_>>| {
                all &= row.is_some();
                all
            };
            txn.get_many(&TableHandle::new(parent.clone()), id, &keys, &mut done, visit).await?;
            Ok(all)
        }
        ParentKey::First(id) => {
            let mut batch = ScanBatch::default();
            for key in wanted {
                let mut above = key.clone();
                let bounded = prefix_successor(&mut above);
                let spec = ScanSpec {
                    index: Some(id),
                    low: Bound::Included(key.clone()),
                    high: if bounded { Bound::Excluded(above) } else { Bound::Unbounded },
                    limit_hint: Some(1),
                    ..ScanSpec::default()
                };
                ScanCursor::over(parent.clone(), spec).next_batch(&mut txn, 1, &mut |_| true, &mut batch).await?;
                if batch.is_empty() {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}
