//! DROP, TRUNCATE, RENAME, ALTER DATABASE, and table maintenance.

use super::keys;
use super::table::{self, TableDraft};
use crate::parse::ast::TableName;
use crate::parse::statement::{DatabaseOptions, Demands};
use crate::session::errors;
use crate::session::session::Session;
use crate::session::system;
use crate::session::users::Privileges;
use rauk_types::error::codes;
use rauk_types::result::Completion;
use rauk_types::{IndexKind, MysqlError};

/// Error 1091 for a column or key.
pub fn missing(name: &str) -> MysqlError {
    MysqlError::new(codes::CANT_DROP_FIELD_OR_KEY, format!("Can't DROP '{name}'; check that column/key exists"))
}

impl Session {
    pub(crate) async fn drop_database(&mut self, name: &str, if_exists: bool) -> Result<Completion, MysqlError> {
        system::refuse_change(name, &self.account)?;
        self.require_database(name, Privileges::DROP)?;
        self.commit_implicitly().await?;
        if self.engine.database.database_collation(name).is_none() {
            let message = format!("Can't drop database '{name}'; database doesn't exist");
            if if_exists {
                self.note(codes::DB_DROP_EXISTS, message);
                return Ok(Completion::default());
            }
            return Err(MysqlError::new(codes::DB_DROP_EXISTS, message));
        }
        let tables = self.engine.database.drop_database(name, self.ddl_wait()).await?;
        if self.context.current_database.as_deref() == Some(name) {
            self.set_current_database(None);
        }
        Ok(Completion { affected_rows: tables, ..Completion::default() })
    }

    /// Drops those that are there; the names of those that are not are one error (1051), or notes.
    pub(crate) async fn drop_tables(
        &mut self,
        tables: &[TableName],
        if_exists: bool,
        temporary: bool,
    ) -> Result<Completion, MysqlError> {
        let mut names = Vec::with_capacity(tables.len());
        for name in tables {
            let (database, name) = self.qualified(name)?;
            system::refuse_change(&database, &self.account)?;
            if names.contains(&(database.clone(), name.clone())) {
                return Err(MysqlError::new(codes::NONUNIQ_TABLE, format!("Not unique table/alias: '{name}'")));
            }
            if !temporary && !self.temporary.has(&database, &name) {
                self.require_table("DROP", &database, &name, Privileges::DROP)?;
            }
            names.push((database, name));
        }
        if !temporary {
            self.commit_implicitly().await?;
        }
        let missing: Vec<String> = names
            .iter()
            .filter(|(database, name)| {
                !self.temporary.has(database, name) && (temporary || !self.table_exists(database, name))
            })
            .map(|(database, name)| format!("{database}.{name}"))
            .collect();
        if !missing.is_empty() && !if_exists {
            return Err(MysqlError::new(codes::BAD_TABLE, format!("Unknown table '{}'", missing.join(","))));
        }
        for name in missing {
            self.note(codes::BAD_TABLE, format!("Unknown table '{name}'"));
        }
        names.retain(|(database, name)| {
            !self.drop_temporary(database, name) && !temporary && self.table_exists(database, name)
        });
        if !names.is_empty() {
            self.engine.database.drop_tables(&names, self.ddl_wait()).await?;
        }
        Ok(Completion::default())
    }

    pub(crate) async fn truncate_table(&mut self, table: &TableName) -> Result<Completion, MysqlError> {
        let (database, name) = self.qualified(table)?;
        if database == system::PERFORMANCE_SCHEMA {
            system::schema(&database, &name)?;
            self.require_table("DROP", &database, &name, Privileges::DROP)?;
            self.commit_implicitly().await?;
            if system::truncate(&self.engine, &name) {
                return Ok(Completion::default());
            }
        }
        system::refuse_change(&database, &self.account)?;
        if let Some(table) = self.temporary.get(&database, &name).cloned() {
            self.commit_implicitly().await?;
            let empty = self.engine.database.truncate_temporary(&table);
            self.replace_temporary(&table, empty);
            return Ok(Completion::default());
        }
        self.require_table("DROP", &database, &name, Privileges::DROP)?;
        self.commit_implicitly().await?;
        self.stored_table(&database, &name)?;
        self.engine.database.truncate_table(&database, &name, self.ddl_wait()).await?;
        Ok(Completion::default())
    }

    pub(crate) async fn rename_tables(&mut self, pairs: &[(TableName, TableName)]) -> Result<Completion, MysqlError> {
        let mut changes = Vec::with_capacity(pairs.len());
        for (from, to) in pairs {
            let (from, to) = (self.qualified(from)?, self.qualified(to)?);
            for (database, _) in [&from, &to] {
                system::refuse_change(database, &self.account)?;
            }
            self.require_table("ALTER", &from.0, &from.1, Privileges::ALTER.with(Privileges::DROP))?;
            self.require_table("CREATE", &to.0, &to.1, Privileges::CREATE.with(Privileges::INSERT))?;
            table::check_table_name(&to.1)?;
            changes.push((from, to));
        }
        self.commit_implicitly().await?;
        // As they will be renamed one after the other: a name that an earlier pair freed is free.
        let mut freed: Vec<(String, String)> = Vec::new();
        let mut taken: Vec<(String, String)> = Vec::new();
        for (from, to) in &changes {
            let there = |t: &(String, String), freed: &[(String, String)], taken: &[(String, String)]| {
                taken.contains(t) || (self.is_named(&t.0, &t.1) && !freed.contains(t))
            };
            if !there(from, &freed, &taken) {
                return Err(errors::no_such_table(&from.0, &from.1));
            }
            self.database_collation(&to.0)?;
            if from.0 != to.0 && self.engine.database.view(&from.0, &from.1).is_some() {
                let message = format!("Changing schema from '{}' to '{}' is not allowed.", from.0, to.0);
                return Err(MysqlError::new(codes::FORBID_SCHEMA_CHANGE, message));
            }
            if there(to, &freed, &taken) {
                return Err(errors::table_exists(&to.1));
            }
            taken.retain(|t| t != from);
            freed.retain(|t| t != to);
            freed.push(from.clone());
            taken.push(to.clone());
        }
        for (from, to) in &changes {
            self.checks_may_move(from, to)?;
        }
        self.engine.database.rename_tables(&changes, self.ddl_wait()).await?;
        Ok(Completion::default())
    }

    pub(crate) async fn drop_index(
        &mut self,
        table: &TableName,
        index: &str,
        if_exists: bool,
        demands: &Demands,
    ) -> Result<Completion, MysqlError> {
        let mut attempts = self.attempts();
        loop {
            match Box::pin(self.take_index(table, index, if_exists, demands)).await {
                Err(error) if self.is_overtaken(&mut attempts, &error) => {}
                taken => return taken,
            }
        }
    }

    async fn take_index(
        &mut self,
        table: &TableName,
        index: &str,
        if_exists: bool,
        demands: &Demands,
    ) -> Result<Completion, MysqlError> {
        let (database, name) = self.qualified(table)?;
        system::refuse_change(&database, &self.account)?;
        if !self.temporary.has(&database, &name) {
            self.require_table("INDEX", &database, &name, Privileges::INDEX)?;
        }
        let table = self.base_table(&database, &name)?;
        let mut draft = TableDraft::of(table.schema());
        match remove_index(&mut draft.indexes, index) {
            Err(error) if if_exists => {
                self.note(error.code, error.message);
                return Ok(Completion::default());
            }
            other => other?,
        }
        self.commit_implicitly().await?;
        self.change_table(&table, draft, demands).await
    }

    /// ALTER DATABASE: the collation of tables made from now on.
    pub(crate) async fn alter_database(
        &mut self,
        name: Option<&str>,
        options: &DatabaseOptions,
    ) -> Result<Completion, MysqlError> {
        let name = match name {
            Some(name) => name.to_string(),
            None => self.context.current_database.clone().ok_or_else(errors::no_database)?,
        };
        system::refuse_change(&name, &self.account)?;
        self.require_database(&name, Privileges::ALTER)?;
        let present = self.database_collation(&name)?;
        let (charset, collation) = (options.charset.as_deref(), options.collation.as_deref());
        let wanted = crate::session::charset::resolve(charset, collation, present)?;
        let comment = self.comment_of_database(&name, options)?;
        self.commit_implicitly().await?;
        if wanted != present || comment.is_some() {
            self.engine.database.alter_database(&name, wanted, comment.as_deref()).await?;
        }
        if self.context.current_database.as_deref() == Some(name.as_str()) {
            self.set_current_database(Some(name));
        }
        Ok(Completion { affected_rows: 1, ..Completion::default() })
    }
}

/// Takes a key out; 1091.
pub fn remove_index(indexes: &mut Vec<keys::IndexDraft>, name: &str) -> Result<(), MysqlError> {
    let at = indexes
        .iter()
        .position(|i| match i.kind {
            IndexKind::Primary => name.eq_ignore_ascii_case("PRIMARY"),
            _ => i.name.as_deref().is_some_and(|n| n.eq_ignore_ascii_case(name)),
        })
        .ok_or_else(|| missing(name))?;
    indexes.remove(at);
    Ok(())
}
