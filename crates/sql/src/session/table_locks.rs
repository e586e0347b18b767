//! LOCK TABLES, UNLOCK TABLES, FLUSH TABLES WITH READ LOCK, LOCK INSTANCE FOR BACKUP.
//!
//! The node locks tables on all nodes (`rauk_node::ddl::locking`); here it is kept which names a session has locked,
//! since a statement may use only these: each name (alias) once, tables below a view with the view, temporary and
//! virtual tables without a lock (1100). Rows of what is locked with READ are not changed (1099). While a session has
//! locks its statements are planned each time, so that the binder asks for every name.
//!
//! FLUSH TABLES WITH READ LOCK locks all tables against writers, and keeps out whatever changes definitions or accounts
//! ([`Session::changing`]), also of its own session (1223); it restricts no names. LOCK INSTANCE FOR BACKUP does the latter alone: rows go on.
//!
//! DDL of the session on tables that it has locked with WRITE works under their locks (`DdlWait::locks`): nobody gets at
//! the tables in between. A renamed table is locked under its new name, one that is gone is not locked any more.

use super::run::Done;
use super::session::Session;
use super::system;
use super::users::Privileges;
use crate::parse::Statement;
use crate::parse::ast::{PartitionOperation, TableName};
use crate::parse::statement::{AlterOperation, TableLock};
use rauk_node::{Changing, LockedTables, NodeError, TableHandle, TableLockMode, TableLocks};
use rauk_types::MysqlError;
use rauk_types::error::codes;
use rauk_types::result::ResultSink;
use std::sync::Arc;

pub(crate) const NOT_LOCKED_TO_WRITE: u16 = 1099;
pub(crate) const NOT_LOCKED: u16 = 1100;
const CONFLICTING_READ_LOCK: u16 = 1223;

/// What LOCK TABLES has locked.
pub(crate) struct Locked {
    pub names: Arc<LockedNames>,
    /// `None`: only what needs no lock.
    locks: Option<TableLocks>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockedName {
    pub database: String,
    pub table: String,
    pub alias: Option<String>,
    pub write: bool,
}

impl LockedName {
    fn is(&self, database: &str, table: &str) -> bool {
        self.database == database && self.table == table
    }
}

/// In the order of the statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct LockedNames {
    pub names: Vec<LockedName>,
}

impl LockedNames {
    /// The lock of a name that a statement uses, but for those that it has used.
    pub fn find(&self, database: &str, table: &str, alias: Option<&str>, used: &[usize]) -> Option<usize> {
        let shown = alias.unwrap_or(table);
        let fits = |(at, name): &(usize, &LockedName)| {
            name.is(database, table) && name.alias.as_deref().unwrap_or(&name.table) == shown && !used.contains(at)
        };
        self.names.iter().enumerate().find(fits).map(|(at, _)| at)
    }
}

fn not_locked(name: &str) -> MysqlError {
    MysqlError::new(NOT_LOCKED, format!("Table '{name}' was not locked with LOCK TABLES"))
}

fn has_locks() -> MysqlError {
    let message = "Can't execute the given command because you have active locked tables or an active transaction";
    MysqlError::new(codes::LOCK_OR_ACTIVE_TRANSACTION, message)
}

/// Error 1223: the session itself keeps the change out.
fn conflicting_lock() -> MysqlError {
    let message = "Can't execute the query because you have a conflicting read lock";
    MysqlError::new(CONFLICTING_READ_LOCK, message)
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A table that DDL changes, and what it is called afterwards.
pub(crate) type Changed = (TableName, Option<TableName>);

impl Session {
    /// For the session's transactions.
    pub(crate) fn locked_tables(&self) -> Option<Arc<LockedTables>> {
        let own = self.locked.as_ref().and_then(|locked| locked.locks.as_ref()).or(self.locks_of_ddl.as_ref());
        let own = own.map(TableLocks::tables);
        let all = self.read_lock.as_ref().map(TableLocks::tables);
        match (own, all) {
            (Some(own), Some(all)) => Some(Arc::new(LockedTables(own.0.iter().chain(&all.0).copied().collect()))),
            (own, all) => own.or(all),
        }
    }

    pub(crate) fn release_table_locks(&mut self) {
        self.locked = None;
        self.locks_of_ddl = None;
        self.read_lock = None;
    }

    /// Error 1223 for changes under FLUSH TABLES WITH READ LOCK of the session's own.
    pub(crate) fn check_read_lock(&self) -> Result<(), MysqlError> {
        if self.read_lock.is_some() { Err(conflicting_lock()) } else { Ok(()) }
    }

    /// LOCK INSTANCE FOR BACKUP: nobody changes definitions or accounts until UNLOCK INSTANCE, or the end of the session;
    /// rows are read and written. Errors 1205, 1227, 1317; 1192 under LOCK TABLES … WRITE, which may change definitions.
    pub(crate) async fn lock_instance(&mut self) -> Result<(), MysqlError> {
        self.require_any(Privileges::BACKUP_ADMIN, "BACKUP_ADMIN")?;
        if self.locked.as_ref().and_then(|locked| locked.locks.as_ref()).is_some_and(TableLocks::may_change) {
            return Err(has_locks());
        }
        if self.backup_lock.is_none() {
            self.backup_lock = Some(self.engine.database.lock_definitions(self.ddl_wait()).await?);
        }
        Ok(())
    }

    /// Error 1227.
    pub(crate) fn unlock_instance(&mut self) -> Result<(), MysqlError> {
        self.require_any(Privileges::BACKUP_ADMIN, "BACKUP_ADMIN")?;
        self.backup_lock = None;
        Ok(())
    }

    pub(crate) async fn lock_tables(&mut self, wanted: &[TableLock]) -> Result<(), MysqlError> {
        self.commit_implicitly().await?;
        self.locked = None;
        let mut names: Vec<LockedName> = Vec::new();
        for lock in wanted {
            let (database, table) = self.qualified(&lock.table)?;
            let shown = lock.alias.as_ref().unwrap_or(&table);
            let same = |known: &&LockedName| {
                known.database == database && known.alias.as_ref().unwrap_or(&known.table) == shown
            };
            if names.iter().any(|known| same(&known)) {
                return Err(MysqlError::new(codes::NONUNIQ_TABLE, format!("Not unique table/alias: '{shown}'")));
            }
            if !self.temporary.has(&database, &table) && !system::is_system(&database) {
                self.require_database(&database, Privileges::LOCK_TABLES)?;
                self.require_table("SELECT", &database, &table, Privileges::SELECT)?;
                if lock.write {
                    self.check_read_lock()?;
                    if self.backup_lock.is_some() {
                        return Err(conflicting_lock());
                    }
                }
            }
            names.push(LockedName { database, table, alias: lock.alias.clone(), write: lock.write });
        }
        self.locked = Some(self.lock_names(names).await?);
        Ok(())
    }

    async fn lock_names(&self, names: Vec<LockedName>) -> Result<Locked, MysqlError> {
        loop {
            let mut wanted: Vec<(TableHandle, TableLockMode)> = Vec::new();
            for name in &names {
                let mode = if name.write { TableLockMode::Alone } else { TableLockMode::NoWrites };
                for table in self.tables_below(name)? {
                    match wanted.iter_mut().find(|(known, _)| known.schema().id == table.schema().id) {
                        Some((_, known)) => *known = mode.max(*known),
                        None => wanted.push((table, mode)),
                    }
                }
            }
            let locks = match wanted.is_empty() {
                true => None,
                false => match self.engine.database.lock_tables(&wanted, self.ddl_wait()).await {
                    Err(NodeError::StaleSchema) => continue,
                    locked => Some(locked?),
                },
            };
            return Ok(Locked { names: Arc::new(LockedNames { names }), locks });
        }
    }

    /// What has to be locked for a name: a table, or those that a view reads.
    fn tables_below(&self, name: &LockedName) -> Result<Vec<TableHandle>, MysqlError> {
        if system::is_system(&name.database) || self.temporary.has(&name.database, &name.table) {
            return Ok(vec![]);
        }
        if self.view(&name.database, &name.table).is_none() {
            return Ok(vec![self.stored_table(&name.database, &name.table)?]);
        }
        let query = format!("SELECT * FROM {}.{}", quoted(&name.database), quoted(&name.table));
        let statement = self.parse_one(&query)?;
        let plan = self.plan(&statement, vec![])?.0;
        let stored = plan.plan.tables.iter().filter(|(table, _)| !table.is_temporary());
        Ok(stored.map(|(table, _)| table.clone()).collect())
    }

    pub(crate) async fn unlock_tables(&mut self) -> Result<(), MysqlError> {
        if self.locked.is_some() {
            self.commit_implicitly().await?;
        }
        if let Some(open) = &mut self.open {
            open.transaction.leave_locked();
        }
        self.release_table_locks();
        Ok(())
    }

    /// FLUSH TABLES [tables] [WITH READ LOCK].
    pub(crate) async fn flush_tables(&mut self, tables: &[TableName], read_lock: bool) -> Result<(), MysqlError> {
        self.require_any(Privileges::RELOAD.with(Privileges::FLUSH_TABLES), "RELOAD or FLUSH_TABLES")?;
        if read_lock && self.locked.is_some() {
            return Err(has_locks());
        }
        if read_lock && !tables.is_empty() {
            let lock = |table: &TableName| TableLock { table: table.clone(), alias: None, write: false };
            let wanted: Vec<TableLock> = tables.iter().map(lock).collect();
            return self.lock_tables(&wanted).await;
        }
        self.commit_implicitly().await?;
        for table in tables {
            let (database, name) = self.qualified(table)?;
            if self.view(&database, &name).is_none() && !system::is_system(&database) {
                self.stored_table(&database, &name)?;
            }
        }
        self.engine.plans.clear();
        if read_lock && self.read_lock.is_none() {
            self.read_lock = Some(self.engine.database.lock_everything(self.ddl_wait()).await?);
        }
        Ok(())
    }

    /// Holds off FLUSH TABLES WITH READ LOCK and LOCK INSTANCE FOR BACKUP while a statement changes definitions or accounts,
    /// and waits for whoever has said that: 1205, 1317; 1223 where it is this session. `None`: the statement makes no such change, or the session has locked tables with WRITE,
    /// which holds it off.
    pub(crate) async fn changing(&mut self, statement: &Statement) -> Result<Option<Changing>, MysqlError> {
        let locks = self.locked.as_ref().and_then(|locked| locked.locks.as_ref()).or(self.locks_of_ddl.as_ref());
        let changes = self.changes_definitions(statement)
            || matches!(statement, Statement::TableMaintenance { histograms: Some(_), .. });
        if locks.is_some_and(TableLocks::may_change) || !changes {
            return Ok(None);
        }
        if self.backup_lock.is_some() {
            return Err(conflicting_lock());
        }
        if let Some(changing) = self.engine.database.try_changing() {
            return Ok(Some(changing));
        }
        // Whoever keeps changes out may wait for this session's transaction.
        self.commit_implicitly().await?;
        Ok(Some(self.engine.database.changing(self.ddl_wait()).await?))
    }

    /// The tables of a DDL statement under LOCK TABLES; `None`: it is none, or there are no locks. Errors: 1099, 1100,
    /// 1192.
    pub(crate) fn changed_under_locks(&self, statement: &Statement) -> Result<Option<Vec<Changed>>, MysqlError> {
        let Some(locked) = &self.locked else { return Ok(None) };
        let same = |table: &TableName| (table.clone(), Some(table.clone()));
        let changed: Vec<Changed> = match statement {
            Statement::CreateTable(create) if !create.temporary => {
                let (database, name) = self.qualified(&create.name)?;
                // It exists: error 1050, or a warning.
                let is_locked = locked.names.names.iter().any(|known| known.is(&database, &name));
                return if is_locked { Ok(None) } else { Err(not_locked(&create.name.name)) };
            }
            Statement::CreateView(view) => return Err(not_locked(&view.name.name)),
            Statement::CreateDatabase { .. } | Statement::AlterDatabase { .. } | Statement::DropDatabase { .. } => {
                return Err(has_locks());
            }
            Statement::AlterTable {
                table, partitions: Some(PartitionOperation::Exchange { table: with, .. }), ..
            } => {
                vec![same(table), same(with)]
            }
            Statement::AlterTable { table, operations, .. } => {
                let renamed = operations.iter().find_map(|operation| match operation {
                    AlterOperation::RenameTable(to) => Some(to.clone()),
                    _ => None,
                });
                vec![(table.clone(), renamed.or_else(|| Some(table.clone())))]
            }
            Statement::DropTable { tables, temporary: false, .. } | Statement::DropView { views: tables, .. } => {
                tables.iter().map(|table| (table.clone(), None)).collect()
            }
            Statement::TruncateTable(table) => vec![same(table)],
            Statement::RenameTable(pairs) => pairs.iter().map(|(from, to)| (from.clone(), Some(to.clone()))).collect(),
            Statement::CreateIndex(index) => vec![same(&index.table)],
            Statement::DropIndex { table, .. } => vec![same(table)],
            Statement::TableMaintenance { tables, histograms: Some(_), .. } => tables.iter().map(same).collect(),
            _ => return Ok(None),
        };
        let changed: Vec<Changed> = changed.into_iter().filter(|(table, _)| !self.is_temporary(table)).collect();
        for (table, _) in &changed {
            let (database, name) = self.qualified(table)?;
            let mut of_table = locked.names.names.iter().filter(|known| known.is(&database, &name)).peekable();
            if of_table.peek().is_none() {
                return Err(not_locked(&table.name));
            }
            if !of_table.any(|known| known.write) {
                let message = format!("Table '{name}' was locked with a READ lock and can't be updated");
                return Err(MysqlError::new(NOT_LOCKED_TO_WRITE, message));
            }
        }
        Ok(if changed.is_empty() { None } else { Some(changed) })
    }

    /// Runs DDL on tables that the session has locked; the locks stay.
    pub(crate) async fn change_under_locks(
        &mut self,
        changed: Vec<Changed>,
        statement: &Statement,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        self.commit_implicitly().await?;
        let Some(Locked { names, locks }) = self.locked.take() else { return Ok(Done::default()) };
        self.locks_of_ddl = locks;
        let result = Box::pin(self.dispatch(statement, sink)).await;
        let locks = self.locks_of_ddl.take();
        let mut names = names.names.clone();
        if result.is_ok() {
            for (from, to) in changed {
                let (Ok(from), to) = (self.qualified(&from), to.and_then(|to| self.qualified(&to).ok())) else {
                    continue;
                };
                for name in names.iter_mut().filter(|name| name.is(&from.0, &from.1)) {
                    if let Some((database, table)) = &to {
                        name.database.clone_from(database);
                        name.table.clone_from(table);
                    }
                }
            }
        }
        names.retain(|name| self.is_there(name));
        self.locked = Some(Locked { names: Arc::new(LockedNames { names }), locks });
        result
    }

    /// Whether a locked name still stands for something; what is gone is not locked any more.
    fn is_there(&self, name: &LockedName) -> bool {
        let (database, table) = (&name.database, &name.table);
        system::is_system(database)
            || self.temporary.has(database, table)
            || self.view(database, table).is_some()
            || self.stored_table(database, table).is_ok()
    }
}
