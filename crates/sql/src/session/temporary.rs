//! Temporary tables: a session's own, by name, before all stored tables and views of the same name.
//!
//! Where a statement names a table, the session's temporary ones are looked up first ([`super::lookup`]); names in the
//! query of a view never mean them, and no view is made on them (1352). Whoever made one may do everything with it, so
//! no privilege is asked for but CREATE TEMPORARY TABLES. CREATE and DROP TEMPORARY TABLE end no transaction, and are
//! not undone by its end; rows are. The node has the rows ([`rauk_node::temporary`]).
//!
//! A plan that has one is never in the cache of all sessions, and one from there is not used where a table that it
//! names by itself is hidden by a temporary one ([`Session::is_shadowed`]).
//!
//! Unlike MySQL, a statement may name a temporary table more than once (MySQL: 1137).

use super::ddl::table::TableDraft;
use super::errors;
use super::plan_cache::CachedPlan;
use super::session::Session;
use super::users::Privileges;
use crate::parse::Statement;
use crate::parse::ast::TableName;
use crate::parse::statement::CreateTable;
use rauk_node::{TableHandle, TemporaryMemory};
use rauk_types::error::codes;
use rauk_types::{MysqlError, TableSchema, ViewSchema};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Bytes that the temporary tables of a session may take.
pub(crate) const MEMORY_VARIABLE: &str = "rauk_temporary_tables_memory";

#[derive(Clone, Default)]
pub struct TemporaryTables {
    /// By database and name.
    tables: FxHashMap<(String, String), TableHandle>,
    /// From the first table on.
    memory: Option<Arc<TemporaryMemory>>,
    /// The table that CREATE TABLE … AS SELECT fills: what is written to its name goes there, what is read of it does
    /// not.
    filled: Option<TableHandle>,
}

fn key(database: &str, name: &str) -> (String, String) {
    (database.to_string(), name.to_string())
}

fn key_of(table: &TableHandle) -> (String, String) {
    key(&table.schema().database, &table.schema().name)
}

impl TemporaryTables {
    pub fn get(&self, database: &str, name: &str) -> Option<&TableHandle> {
        if self.tables.is_empty() {
            return None;
        }
        self.tables.get(&key(database, name))
    }

    pub fn has(&self, database: &str, name: &str) -> bool {
        self.get(database, name).is_some()
    }

    /// What a statement means by a name, for `privilege`.
    pub fn meant(&self, database: &str, name: &str, privilege: &str) -> Option<&TableHandle> {
        let is_it = |table: &&TableHandle| table.schema().name == name && table.schema().database == database;
        let filled = self.filled.as_ref().filter(|_| privilege != "SELECT");
        filled.filter(is_it).or_else(|| self.get(database, name))
    }

    pub fn set_limit(&self, bytes: u64) {
        if let Some(memory) = &self.memory {
            memory.set_limit(bytes);
        }
    }

    /// All of them, by name.
    pub fn all(&self) -> Vec<&TableHandle> {
        let mut all: Vec<&TableHandle> = self.tables.values().collect();
        all.sort_by_key(|table| key_of(table));
        all
    }
}

/// ER_PARTITION_NO_TEMPORARY.
pub(crate) fn partitioned() -> MysqlError {
    MysqlError::new(1562, "Cannot create temporary table with partitions")
}

impl Session {
    /// A view that a name means: none where a temporary table has the name.
    pub(crate) fn view(&self, database: &str, name: &str) -> Option<Arc<ViewSchema>> {
        if database == super::system::SYS {
            return super::system::sys_view(name).cloned();
        }
        match self.temporary.has(database, name) {
            true => None,
            false => self.engine.database.view(database, name),
        }
    }

    pub(crate) fn is_temporary(&self, table: &TableName) -> bool {
        self.qualified(table).is_ok_and(|(database, name)| self.temporary.has(&database, &name))
    }

    /// Whether a plan of the cache means another table by a name than this session does.
    pub(crate) fn is_shadowed(&self, plan: &CachedPlan) -> bool {
        !self.temporary.tables.is_empty()
            && plan.needs.privileges.iter().any(|n| n.view.is_none() && self.temporary.has(&n.database, &n.name))
    }

    /// Whether one of a plan's temporary tables is not there any more. A transaction that has used it would not notice.
    pub(crate) fn has_lost(&self, plan: &CachedPlan) -> bool {
        plan.temporary && plan.plan.tables.iter().any(|(table, _)| table.is_temporary() && table.is_stale())
    }

    /// Whether the change that a statement makes is of temporary tables only, so that `read_only` lets it pass.
    pub(crate) fn changes_only_temporary(&self, statement: &Statement) -> bool {
        match statement {
            Statement::CreateTable(table) => table.temporary,
            Statement::DropTable { tables, temporary, .. } => *temporary || tables.iter().all(|t| self.is_temporary(t)),
            Statement::AlterTable { table, .. } | Statement::TruncateTable(table) => self.is_temporary(table),
            Statement::CreateIndex(index) => self.is_temporary(&index.table),
            Statement::DropIndex { table, .. } => self.is_temporary(table),
            _ => false,
        }
    }

    /// What takes CREATE TEMPORARY TABLES. Errors 1044, 1049, 1562.
    pub(crate) fn may_make_temporary(&self, statement: &CreateTable, database: &str) -> Result<(), MysqlError> {
        self.require_database(database, Privileges::CREATE_TEMPORARY_TABLES)?;
        if statement.partition_by.is_some() {
            return Err(partitioned());
        }
        Ok(())
    }

    /// Makes a table that no name means yet.
    pub(crate) fn make_temporary(&mut self, draft: TableDraft) -> Result<TableHandle, MysqlError> {
        let schema = self.temporary_schema(draft, None)?;
        let limit = self.settings.temporary_memory;
        let database = &self.engine.database;
        let temporary = Arc::make_mut(&mut self.temporary);
        let memory = temporary.memory.get_or_insert_with(|| Arc::new(database.temporary_memory(limit)));
        Ok(database.create_temporary(schema, memory))
    }

    /// Errors of a definition that only a stored table may have: 1215, 1235.
    pub(crate) fn temporary_schema(
        &self,
        draft: TableDraft,
        hidden: Option<rauk_types::ColumnId>,
    ) -> Result<TableSchema, MysqlError> {
        if !draft.foreign_keys.is_empty() {
            return Err(MysqlError::new(codes::CANNOT_ADD_FOREIGN, "Cannot add foreign key constraint"));
        }
        if draft.fully_replicated {
            return Err(errors::not_supported("FULLY_REPLICATED=1 of a temporary table"));
        }
        let schema = draft.build(hidden)?;
        self.check_primary_key(&schema)?;
        Ok(schema)
    }

    /// From now on its name means this table; gives the one that had the name.
    pub(crate) fn publish_temporary(&mut self, table: TableHandle) {
        self.track_state();
        let temporary = Arc::make_mut(&mut self.temporary);
        if let Some(old) = temporary.tables.insert(key_of(&table), table) {
            old.drop_temporary();
        }
    }

    /// A table in the place of another one.
    pub(crate) fn replace_temporary(&mut self, old: &TableHandle, new: TableHandle) {
        Arc::make_mut(&mut self.temporary).tables.remove(&key_of(old));
        self.publish_temporary(new);
    }

    /// Whether there was one.
    pub(crate) fn drop_temporary(&mut self, database: &str, name: &str) -> bool {
        if !self.temporary.has(database, name) {
            return false;
        }
        self.track_state();
        let dropped = Arc::make_mut(&mut self.temporary).tables.remove(&key(database, name));
        dropped.inspect(TableHandle::drop_temporary).is_some()
    }

    /// COM_RESET_CONNECTION.
    pub(crate) fn drop_all_temporary(&mut self) {
        self.temporary.all().into_iter().for_each(TableHandle::drop_temporary);
        self.temporary = Arc::default();
    }

    /// What is written to its name goes to this table from now on; `None`: no more.
    pub(crate) fn set_filled(&mut self, table: Option<TableHandle>) {
        Arc::make_mut(&mut self.temporary).filled = table;
    }
}
