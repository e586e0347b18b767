//! Shapes of a batch made ready: tables found and found to be of the version that the client knows, columns and indexes looked up, the way of execution chosen.

use super::failure;
use super::rights::{Account, Rights};
use crate::transaction::Lock;
use crate::{Database, TableHandle};
use parking_lot::RwLock;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_types::error::codes;
use rauk_types::{IndexId, TableId, TableSchema};
use rauk_wire::{Failure, LockWish, OpKind, Shape, Wanted};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How operations of a shape are executed outside of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Plain reads by primary key: many in one hold of a partition.
    Read,
    /// Writes by primary key, in a table without unique indexes, that leave it as it is: many in one hold.
    Write,
    /// A transaction for each.
    Alone,
}

pub struct Prepared<'s> {
    pub shape: &'s Shape,
    pub table: TableHandle,
    pub lock: Lock,
    pub way: Way,
}

impl Prepared<'_> {
    pub fn schema(&self) -> &TableSchema {
        self.table.schema()
    }

    /// The lock of an operation that changes the row: the shape's patience, but always exclusive.
    pub fn write_lock(&self) -> (LockMode, WaitPolicy) {
        (LockMode::Exclusive, self.lock.map_or(WaitPolicy::Wait, |(_, wait)| wait))
    }
}

pub fn lock_of(wish: LockWish) -> Lock {
    match wish {
        LockWish::None => None,
        LockWish::Shared => Some((LockMode::Shared, WaitPolicy::Wait)),
        LockWish::Exclusive => Some((LockMode::Exclusive, WaitPolicy::Wait)),
        LockWish::SharedNoWait => Some((LockMode::Shared, WaitPolicy::NoWait)),
        LockWish::ExclusiveNoWait => Some((LockMode::Exclusive, WaitPolicy::NoWait)),
        LockWish::SharedSkipLocked => Some((LockMode::Shared, WaitPolicy::SkipLocked)),
        LockWish::ExclusiveSkipLocked => Some((LockMode::Exclusive, WaitPolicy::SkipLocked)),
    }
}

/// Tables that a session has used: found without the locks that all sessions share.
pub struct Tables {
    known: RwLock<FxHashMap<TableId, TableHandle>>,
    /// `None`: everything is allowed.
    account: Option<Box<Account>>,
}

impl Tables {
    pub fn new(rights: Option<Arc<dyn Rights>>) -> Tables {
        Tables { known: RwLock::default(), account: rights.map(|rights| Box::new(Account::new(rights))) }
    }

    pub fn account(&self) -> Option<&Account> {
        self.account.as_deref()
    }

    /// The table as the client knows it; 1412 when it has changed or gone since.
    pub fn get(&self, database: &Database, id: TableId, version: u32) -> Result<TableHandle, Failure> {
        if let Some(known) = self.known.read().get(&id)
            && !known.is_stale()
        {
            return if known.schema().version == version { Ok(known.clone()) } else { Err(failure::stale()) };
        }
        self.known.write().remove(&id);
        let found = database.table_by_id(id).ok_or_else(failure::stale)?;
        let schema = found.schema();
        // Index tables, leaves, and tables that a DDL is filling, are nobody's to touch.
        let public = database.table(&schema.database, &schema.name).is_ok_and(|public| public.schema().id == id);
        if schema.entry_of.is_some()
            || schema.leaf_of.is_some()
            || !public
            || schema.version != version
            || found.is_stale()
        {
            return Err(failure::stale());
        }
        self.known.write().insert(id, found.clone());
        Ok(found)
    }
}

pub fn unknown_column(table: &TableSchema, column: u16) -> Failure {
    let text = format!("Unknown column '{column}' in '{}.{}'", table.database, table.name);
    failure::refused(codes::BAD_FIELD, text)
}

pub fn unknown_index(table: &TableSchema, index: IndexId) -> Failure {
    let text = format!("Key '{}' doesn't exist in table '{}'", index.0, table.name);
    failure::refused(codes::KEY_DOES_NOT_EXITS, text)
}

/// Expressions that SQL evaluates decide what a row of the table is, and nothing may be written past them.
fn needs_sql(table: &TableSchema) -> Failure {
    let text = format!(
        "This version of MySQL doesn't yet support 'writing to {}.{} by the native API: it has CHECK constraints, generated columns or defaults that are expressions; use SQL'",
        table.database, table.name
    );
    failure::refused(codes::NOT_SUPPORTED_YET, text)
}

/// Columns that a user may see, none of them twice where `once`.
fn check_columns(table: &TableSchema, columns: &[u16], once: bool) -> Result<(), Failure> {
    let visible = table.visible_columns().len();
    for (i, &column) in columns.iter().enumerate() {
        if usize::from(column) >= visible {
            return Err(unknown_column(table, column));
        }
        if once && columns[..i].contains(&column) {
            let name = &table.columns[usize::from(column)].name;
            return Err(failure::refused(codes::FIELD_SPECIFIED_TWICE, format!("Column '{name}' specified twice")));
        }
    }
    Ok(())
}

pub fn check_wanted(table: &TableSchema, wanted: &Wanted) -> Result<(), Failure> {
    match wanted {
        Wanted::Columns(columns) => check_columns(table, columns, false),
        Wanted::Nothing | Wanted::Row => Ok(()),
    }
}

/// Checks a shape against its table.
pub fn prepare<'s>(tables: &Tables, database: &Database, shape: &'s Shape) -> Result<Prepared<'s>, Failure> {
    let table = tables.get(database, shape.table, shape.version)?;
    let schema = table.schema();
    if let Some(account) = tables.account() {
        account.check_shape(schema, shape)?;
    }
    let kind = shape.kind;
    if matches!(kind, OpKind::Savepoint | OpKind::RollbackTo) {
        return Err(failure::malformed(rauk_wire::WireError::Malformed("shape")));
    }
    let by_key = !matches!(kind, OpKind::Insert | OpKind::Write);
    let index = schema.index(shape.index);
    if by_key && index.is_none_or(|i| !i.is_unique()) {
        return Err(unknown_index(schema, shape.index));
    }
    let has_values = !matches!(kind, OpKind::Read | OpKind::Delete);
    let may_be_conditional = matches!(kind, OpKind::Update | OpKind::Delete | OpKind::Increment);
    if !has_values && !shape.columns.is_empty() || shape.conditional && !may_be_conditional {
        return Err(failure::malformed(rauk_wire::WireError::Malformed("shape")));
    }
    if table.info().has_row_rules && !matches!(kind, OpKind::Read | OpKind::Delete) {
        return Err(needs_sql(schema));
    }
    check_columns(schema, &shape.columns, true)?;
    check_wanted(schema, &shape.wanted)?;
    if kind == OpKind::Increment
        && let Some(&column) = shape.columns.iter().find(|&&c| !schema.columns[usize::from(c)].ty.is_numeric())
    {
        let name = &schema.columns[usize::from(column)].name;
        let text = format!("Incorrect column specifier for column '{name}': only numbers can be incremented");
        return Err(failure::refused(codes::WRONG_FIELD_SPEC, text));
    }
    let plain = !by_key || shape.index == IndexId::PRIMARY;
    let in_key = |&column: &u16| schema.primary().parts.iter().any(|p| p.column == usize::from(column));
    let moves = matches!(kind, OpKind::Update | OpKind::Increment) && shape.columns.iter().any(in_key);
    let patient = matches!(shape.lock, LockWish::None | LockWish::Exclusive);
    // The bulk calls know one table with rows.
    let leaves = table.parts().is_some();
    let way = match kind {
        _ if leaves => Way::Alone,
        OpKind::Read if plain && shape.lock == LockWish::None => Way::Read,
        OpKind::Read => Way::Alone,
        _ if plain && patient && !moves && table.info().uniques.is_empty() => Way::Write,
        _ => Way::Alone,
    };
    let lock = lock_of(shape.lock);
    Ok(Prepared { shape, table, lock, way })
}
