//! CREATE DATABASE, CREATE TABLE (with a definition, LIKE a table, or AS a query), CREATE INDEX.

use super::checks;
use super::columns;
use super::foreign;
use super::keys;
use super::options;
use super::table::{self, TableDraft};
use super::types;
use crate::expr::context::WarningLevel;
use crate::parse::ast::{ColumnName, Insert, InsertSource, Query, QueryBody, TableConstraint, TableName};
use crate::parse::statement::{CreateIndex, CreateTable, DatabaseOptions, DuplicateRows, Statement};
use crate::physical;
use crate::session::errors;
use crate::session::session::Session;
use crate::session::users::Privileges;
use crate::session::{charset, system, temporary};
use rauk_node::{DdlWait, TableHandle};
use rauk_types::error::codes;
use rauk_types::result::{Completion, ResultColumn};
use rauk_types::{Collation, ColumnDefault, MysqlError, TableSchema};

/// ER_TABLE_WITHOUT_PK.
const TABLE_WITHOUT_PK: u16 = 3750;

/// MariaDB's ER_TOO_LONG_DATABASE_COMMENT: characters of a database's comment.
const TOO_LONG_DATABASE_COMMENT: u16 = 4160;
const LONGEST_COMMENT: usize = 1024;

/// ER_UNSUPPORTED_INDEX_ALGORITHM.
const UNSUPPORTED_INDEX_ALGORITHM: u16 = 3502;

impl Session {
    pub(crate) async fn create_database(
        &mut self,
        name: &str,
        if_not_exists: bool,
        options: &DatabaseOptions,
    ) -> Result<Completion, MysqlError> {
        table::check_database_name(name)?;
        self.require_database(name, Privileges::CREATE)?;
        let server = self.collation_server();
        let collation = charset::resolve(options.charset.as_deref(), options.collation.as_deref(), server)?;
        let comment = self.comment_of_database(name, options)?.unwrap_or_default();
        self.commit_implicitly().await?;
        let exists = system::is_system(name) || self.engine.database.database_collation(name).is_some();
        if exists {
            let message = format!("Can't create database '{name}'; database exists");
            if if_not_exists {
                self.note(codes::DB_CREATE_EXISTS, message);
                return Ok(Completion { affected_rows: 1, ..Completion::default() });
            }
            return Err(MysqlError::new(codes::DB_CREATE_EXISTS, message));
        }
        self.engine.database.create_commented_database(name, collation, &comment).await?;
        Ok(Completion { affected_rows: 1, ..Completion::default() })
    }

    /// Error 4160 for one that is too long; outside of strict mode it is cut, with a warning.
    pub(super) fn comment_of_database(
        &mut self,
        name: &str,
        options: &DatabaseOptions,
    ) -> Result<Option<String>, MysqlError> {
        let Some(comment) = &options.comment else { return Ok(None) };
        if comment.chars().count() <= LONGEST_COMMENT {
            return Ok(Some(comment.clone()));
        }
        let message = format!("Comment for database '{name}' is too long (max = {LONGEST_COMMENT})");
        if self.context.sql_mode.strict {
            return Err(MysqlError::new(TOO_LONG_DATABASE_COMMENT, message));
        }
        self.push_warning(WarningLevel::Warning, TOO_LONG_DATABASE_COMMENT, message);
        Ok(Some(comment.chars().take(LONGEST_COMMENT).collect()))
    }

    /// The collation of databases that declare none.
    fn collation_server(&self) -> Collation {
        match self.variables.by_name("collation_server") {
            rauk_types::Value::Str(name) => Collation::from_name(&name).unwrap_or_default(),
            _ => Collation::DEFAULT,
        }
    }

    /// Whether a stored table of this name is there.
    pub(crate) fn table_exists(&self, database: &str, name: &str) -> bool {
        self.engine.database.table(database, name).is_ok()
    }

    /// The collation of a database; 1049.
    pub(crate) fn database_collation(&self, database: &str) -> Result<Collation, MysqlError> {
        self.engine.database.database_collation(database).ok_or_else(|| errors::unknown_database(database))
    }

    pub(crate) async fn create_table(&mut self, statement: &CreateTable) -> Result<Completion, MysqlError> {
        let temporary = statement.temporary;
        let (database, name) = self.qualified(&statement.name)?;
        system::refuse_change(&database, &self.account)?;
        match temporary {
            true => self.may_make_temporary(statement, &database)?,
            false => self.require_table("CREATE", &database, &name, Privileges::CREATE)?,
        }
        table::check_table_name(&name)?;
        let inherited = self.database_collation(&database)?;
        if let Some(like) = &statement.like {
            let (from_database, from_name) = self.qualified(like)?;
            if !self.temporary.has(&from_database, &from_name) {
                self.require_table("SELECT", &from_database, &from_name, Privileges::SELECT)?;
            }
        }
        if !temporary {
            self.commit_implicitly().await?;
        }
        let is_there = if temporary { self.temporary.has(&database, &name) } else { self.is_named(&database, &name) };
        if is_there {
            if statement.if_not_exists {
                self.note(codes::TABLE_EXISTS, format!("Table '{name}' already exists"));
                return Ok(Completion::default());
            }
            return Err(errors::table_exists(&name));
        }
        if let Some(like) = &statement.like {
            let (from_database, from_name) = self.qualified(like)?;
            let source = self.base_table(&from_database, &from_name)?;
            let mut draft = TableDraft::of(source.schema());
            draft.database = database;
            draft.name = name;
            forget_ids(&mut draft);
            draft.foreign_keys.clear();
            if temporary {
                if draft.partitions.is_some() {
                    return Err(temporary::partitioned());
                }
                draft.distribution = None;
                draft.fully_replicated = false;
                let table = self.make_temporary(draft)?;
                self.publish_temporary(table);
                return Ok(Completion::default());
            }
            let schema = draft.build(None)?;
            self.check_primary_key(&schema)?;
            self.check_not_referred_to(&schema)?;
            self.check_names_are_free(&schema, None)?;
            self.engine.database.create_table(schema).await?;
            return Ok(Completion::default());
        }
        let options = options::read(&statement.options, &name, &mut self.context)?;
        let collation = options.collation.unwrap_or(inherited);
        let mut draft = TableDraft::new(&database, &name, collation);
        draft.comment = options.comment.unwrap_or_default();
        draft.fully_replicated = options.fully_replicated.unwrap_or(false);
        options::merge(&mut draft.storage, &options.storage);
        for definition in &statement.columns {
            draft.columns.push(columns::draft(definition, collation, &mut self.context)?);
            self.add_inline_keys(&mut draft, definition)?;
        }
        draft.checks = checks::written(statement);
        for constraint in statement.constraints.iter().filter(|c| !matches!(c, TableConstraint::Check(_))) {
            if !self.add_if_foreign(&mut draft, constraint)? {
                let index = keys::draft(constraint, &mut draft.columns)?;
                draft.indexes.push(index);
                self.note_if_not_hashed(constraint);
            }
        }
        if let Some(clause) = &statement.partition_by {
            let engine = statement.options.iter().rfind(|(name, _)| name == "ENGINE").map(|(_, value)| value.as_str());
            draft.partition_by(clause, engine, &mut self.context)?;
        }
        match &statement.query {
            None if temporary => {
                let table = self.make_temporary(draft)?;
                self.warn_of_duplicate_indexes(table.schema(), |_| true);
                self.start_auto_increment(&table, options.auto_increment).await?;
                self.publish_temporary(table);
                Ok(Completion::default())
            }
            None => {
                let schema = draft.build(None)?;
                self.check_primary_key(&schema)?;
                self.check_not_referred_to(&schema)?;
                self.warn_of_duplicate_indexes(&schema, |_| true);
                self.check_names_are_free(&schema, None)?;
                self.engine.database.create_related_table(schema, self.ddl_wait()).await?;
                let table = self.engine.database.table(&database, &name)?;
                self.start_auto_increment(&table, options.auto_increment).await?;
                Ok(Completion::default())
            }
            Some(query) => self.create_table_as(draft, query, statement, options.auto_increment).await,
        }
    }

    /// Warning 1831 for each new index that is like another one.
    pub(super) fn warn_of_duplicate_indexes(
        &mut self,
        schema: &TableSchema,
        is_new: impl Fn(&rauk_types::IndexSchema) -> bool,
    ) {
        for (at, index) in schema.indexes.iter().enumerate().filter(|(_, index)| is_new(index)) {
            let same = |other: &rauk_types::IndexSchema| other.kind == index.kind && other.parts == index.parts;
            let others = schema.indexes.iter().enumerate();
            let duplicate =
                others.filter(|(number, other)| *number < at || !is_new(other)).any(|(_, other)| same(other));
            if duplicate {
                let message = format!(
                    "Duplicate index '{}' defined on the table '{}.{}'. This is deprecated and will be disallowed in a future release.",
                    index.name, schema.database, schema.name
                );
                self.push_warning(WarningLevel::Warning, 1831, message);
            }
        }
    }

    /// AUTO_INCREMENT = n: the next number given is n.
    pub(crate) async fn start_auto_increment(&self, table: &TableHandle, start: Option<u64>) -> Result<(), MysqlError> {
        let Some(above) = start.and_then(|n| n.checked_sub(1)).filter(|n| *n > 0) else { return Ok(()) };
        if table.schema().auto_increment.is_some() {
            self.engine.database.start_auto_increment(table, above).await?;
        }
        Ok(())
    }

    /// Columns that are declared only come first, then those of the query in its order; one of a declared column's name fills that. The table is
    /// dropped again when the rows cannot be written.
    async fn create_table_as(
        &mut self,
        mut draft: TableDraft,
        query: &Query,
        statement: &CreateTable,
        auto_increment: Option<u64>,
    ) -> Result<Completion, MysqlError> {
        let select = Statement::Query(Box::new(query.clone()));
        let columns = {
            let lookup = self.lookup();
            physical::plan(&select, &lookup, &self.bind_context(Vec::new()))?.columns
        };
        let mut names = Vec::with_capacity(columns.len());
        for column in &columns {
            if names.iter().any(|known: &String| known.eq_ignore_ascii_case(&column.name)) {
                let message = format!("Duplicate column name '{}'", column.name);
                return Err(MysqlError::new(codes::DUP_FIELDNAME, message));
            }
            names.push(column.name.clone());
            let made = match draft.column(&column.name) {
                Some(declared) => draft.columns.remove(declared),
                None => self.of_result(column, matches!(query.body, QueryBody::Select(_))),
            };
            draft.columns.push(made);
        }
        let (database, name) = (draft.database.clone(), draft.name.clone());
        let (duplicates, temporary) = (statement.duplicates, statement.temporary);
        let table = match temporary {
            true => self.make_temporary(draft)?,
            false => {
                let schema = draft.build(None)?;
                self.check_primary_key(&schema)?;
                self.check_not_referred_to(&schema)?;
                self.check_names_are_free(&schema, None)?;
                self.engine.database.create_related_table(schema, self.ddl_wait()).await?;
                self.engine.database.table(&database, &name)?
            }
        };
        self.set_filled(Some(table.clone()));
        let filled = async {
            self.start_auto_increment(&table, auto_increment).await?;
            let insert = Insert {
                hints: Default::default(),
                replace: duplicates == DuplicateRows::Replace,
                ignore: duplicates == DuplicateRows::Ignore,
                table: TableName { database: Some(database.clone()), name: name.clone() },
                partitions: Vec::new(),
                columns: Some(names.into_iter().map(ColumnName::bare).collect()),
                source: InsertSource::Query(Box::new(query.clone())),
                row_alias: None,
                on_duplicate: Vec::new(),
                returning: Vec::new(),
            };
            self.run_insert(&Statement::Insert(Box::new(insert)), temporary).await
        };
        let filled = filled.await;
        self.set_filled(None);
        match filled {
            Ok(completion) => {
                if temporary {
                    self.publish_temporary(table);
                }
                Ok(completion)
            }
            Err(error) if temporary => Err(error),
            Err(error) => {
                // It goes as it came, whoever waits for a parent of its name, also after a KILL.
                let wait = DdlWait { foreign_key_checks: false, interrupt: None, ..self.ddl_wait() };
                self.engine.database.drop_table(&database, &name, wait).await?;
                Err(error)
            }
        }
    }

    /// sql_require_primary_key: error 3750 for a table without one.
    pub(crate) fn check_primary_key(&self, schema: &TableSchema) -> Result<(), MysqlError> {
        if !self.settings.requires_primary_key || !schema.hidden_key {
            return Ok(());
        }
        let text = "Unable to create or change a table without a primary key, when the system variable 'sql_require_primary_key' is set. Add a \
                    primary key to the table or unset this variable to avoid this message. Note that tables without a primary key can cause \
                    performance problems in row-based replication, so please consult your DBA before changing this setting.";
        Err(MysqlError::new(TABLE_WITHOUT_PK, text))
    }

    /// A column that holds what a query gives. One that is a column of a table (of a query that is a single SELECT) has its default and comment too.
    fn of_result(&self, column: &ResultColumn, may_be_own: bool) -> columns::ColumnDraft {
        let mut draft = of_result(column);
        if !may_be_own || column.org_table.is_empty() {
            return draft;
        }
        let Ok(table) = self.stored_table(&column.database, &column.org_table) else { return draft };
        let schema = table.schema();
        let own = schema.columns.iter().find(|own| own.name.eq_ignore_ascii_case(&column.org_name));
        if let Some(own) = own.filter(|own| own.ty == draft.ty) {
            draft.default = match &own.default {
                ColumnDefault::Value(value) if !value.is_null() => columns::DefaultDraft::Value(value.clone()),
                ColumnDefault::Now => columns::DefaultDraft::Now,
                // One that is computed may read columns that are not here.
                _ => columns::DefaultDraft::NotGiven,
            };
            draft.on_update_now = own.on_update_now;
            draft.comment = own.comment.clone();
        }
        draft
    }

    pub(crate) async fn create_index(&mut self, statement: &CreateIndex) -> Result<Completion, MysqlError> {
        let mut attempts = self.attempts();
        loop {
            match Box::pin(self.add_index(statement)).await {
                Err(error) if self.is_overtaken(&mut attempts, &error) => {}
                added => return added,
            }
        }
    }

    async fn add_index(&mut self, statement: &CreateIndex) -> Result<Completion, MysqlError> {
        let (database, name) = self.qualified(&statement.table)?;
        system::refuse_change(&database, &self.account)?;
        if !self.temporary.has(&database, &name) {
            self.require_table("INDEX", &database, &name, Privileges::INDEX)?;
        }
        let table = self.base_table(&database, &name)?;
        let mut draft = TableDraft::of(table.schema());
        let index = keys::draft(&statement.key, &mut draft.columns)?;
        let name = index.name.as_deref().unwrap_or_default();
        if statement.if_not_exists && table.schema().index_by_name(name).is_some() {
            self.note(codes::DUP_KEYNAME, format!("Duplicate key name '{name}'"));
            return Ok(Completion::default());
        }
        self.commit_implicitly().await?;
        foreign::give_way(&mut draft, &index);
        draft.indexes.push(index);
        self.note_if_not_hashed(&statement.key);
        self.change_table(&table, draft, &statement.demands).await
    }

    /// Note 3502 for USING HASH where an ordered index is made.
    pub(super) fn note_if_not_hashed(&mut self, constraint: &TableConstraint) {
        if keys::is_not_hashed(constraint) {
            let message = "This storage engine does not support the HASH index algorithm, storage engine default was used instead.";
            self.note(UNSUPPORTED_INDEX_ALGORITHM, message.to_string());
        }
    }
}

/// As for a new table.
fn forget_ids(draft: &mut TableDraft) {
    for column in &mut draft.columns {
        column.id = None;
        column.initial = None;
    }
    for index in &mut draft.indexes {
        index.id = None;
        index.entry_table = None;
    }
    for check in &mut draft.checks {
        check.name = None;
    }
    if let Some(partitions) = &mut draft.partitions {
        partitions.forget_tables();
    }
    draft.next_column_id = 0;
    draft.next_index_id = 1;
}

/// A column that holds what a query gives.
fn of_result(column: &ResultColumn) -> columns::ColumnDraft {
    let mut ty = types::of_expression(column.ty);
    ty = match column.org_table.is_empty() {
        true => types::of_short_integer(types::of_long_text(ty)),
        false => types::of_any_integer(ty),
    };
    columns::ColumnDraft {
        id: None,
        name: column.name.clone(),
        ty,
        // A primary key makes it NOT NULL.
        nullable: (!column.nullable).then_some(false),
        default: columns::DefaultDraft::NotGiven,
        on_update_now: false,
        auto_increment: false,
        comment: String::new(),
        initial: None,
        key: None,
        generated: None,
        elements: None,
        invisible: false,
        storage: String::new(),
    }
}
