//! Which tables sessions use and wait for: what performance_schema.metadata_locks shows.
//!
//! A metadata lock of the node counts its users and does not know them. So each session notes its tables where others
//! can read them: those of an open transaction; of a statement that is a transaction of its own, if it reads more than
//! single rows by their keys; of LOCK TABLES; and those that a DDL or LOCK TABLES wants for itself. Short statements
//! note nothing, so that they pay nothing. A session keeps a copy of what it has noted and takes the lock of the list
//! only when that changes.

use super::plan_cache::CachedPlan;
use super::session::Session;
use crate::parse::Statement;
use crate::parse::ast::{PartitionOperation, TableName};
use rauk_types::TableId;

/// Of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TablesInUse {
    /// Of statements and the transaction, with whether they are written.
    pub used: Vec<(TableId, bool)>,
    /// Database and name of tables that are wanted alone.
    pub wanted: Vec<(String, String)>,
    /// Of LOCK TABLES, with whether it is WRITE.
    pub locked: Vec<(String, String, bool)>,
}

/// What the session knows to have noted.
#[derive(Default)]
pub(crate) struct Noted {
    used: Vec<(TableId, bool)>,
    wants: bool,
    locks: bool,
}

/// The tables that a statement wants for itself.
fn wanted(statement: &Statement) -> Vec<&TableName> {
    match statement {
        Statement::AlterTable { table, partitions: Some(PartitionOperation::Exchange { table: with, .. }), .. } => {
            vec![table, with]
        }
        Statement::AlterTable { table, .. } | Statement::TruncateTable(table) | Statement::DropIndex { table, .. } => {
            vec![table]
        }
        Statement::CreateIndex(index) => vec![&index.table],
        Statement::DropTable { tables, .. } => tables.iter().collect(),
        Statement::RenameTable(pairs) => pairs.iter().map(|(from, _)| from).collect(),
        Statement::LockTables(locks) => locks.iter().filter(|lock| lock.write).map(|lock| &lock.table).collect(),
        _ => Vec::new(),
    }
}

impl Session {
    /// A plan is about to run; `alone`: as a transaction of its own.
    pub(crate) fn note_tables(&mut self, plan: &CachedPlan, alone: bool) {
        let facts = &plan.facts;
        if alone && !(facts.scans || facts.full_join || facts.range) {
            return;
        }
        let mut changed = false;
        for (table, written) in plan.plan.tables.iter().filter(|(table, _)| !table.is_temporary()) {
            let id = table.schema().id;
            match self.noted.used.iter_mut().find(|(known, _)| *known == id) {
                Some((_, known)) if *known || !written => continue,
                Some((_, known)) => *known = true,
                None => self.noted.used.push((id, *written)),
            }
            changed = true;
        }
        if changed {
            self.process.tables.lock().used.clone_from(&self.noted.used);
        }
    }

    /// A statement begins that may want tables for itself.
    pub(crate) fn note_wanted(&mut self, statement: &Statement) {
        let wanted = wanted(statement);
        if wanted.is_empty() {
            return;
        }
        let names: Vec<(String, String)> = wanted.into_iter().filter_map(|table| self.qualified(table).ok()).collect();
        let stored = |(database, name): &(String, String)| !self.temporary.has(database, name);
        self.process.tables.lock().wanted = names.into_iter().filter(stored).collect();
        self.noted.wants = true;
    }

    /// A statement has ended.
    pub(crate) fn note_end(&mut self) {
        if self.noted.wants {
            self.noted.wants = false;
            self.process.tables.lock().wanted.clear();
        }
        if !self.noted.used.is_empty() && self.open.is_none() {
            self.noted.used.clear();
            self.process.tables.lock().used.clear();
        }
        if self.noted.locks || self.locked.is_some() {
            let names = self.locked.iter().flat_map(|locked| &locked.names.names);
            let stored = names.filter(|name| !self.temporary.has(&name.database, &name.table));
            let locked: Vec<_> = stored.map(|name| (name.database.clone(), name.table.clone(), name.write)).collect();
            self.noted.locks = !locked.is_empty();
            self.process.tables.lock().locked = locked;
        }
    }
}
