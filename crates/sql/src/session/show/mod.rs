//! SHOW, DESCRIBE, EXPLAIN.
//!
//! Every SHOW makes a [`Table`]: columns with MySQL's names, and rows. LIKE filters its first column, WHERE any expression over its columns with
//! the meaning that expressions have everywhere.

mod create_table;
mod create_view;
mod engine;
mod explain;
mod filter;
pub(in crate::session) mod partitions;
mod server;
mod tables;

use super::errors;
use super::profiles;
use super::run::Done;
use super::session::Session;
use crate::bind::computed_column;
use crate::expr::context::WarningLevel;
use crate::parse::statement::{ProfileType, Scope, Show, ShowFilter};
pub(in crate::session) use explain::not_measured;
use rauk_types::result::{ResultColumn, ResultSink};
use rauk_types::{Collation, DataType, MysqlError, TypeKind, Value, ValueRef};

/// ER_WARN_DEPRECATED_SYNTAX.
const DEPRECATED: u16 = 1287;

/// A result set in the making.
pub(crate) struct Table {
    pub columns: Vec<ResultColumn>,
    pub rows: Vec<Vec<Value>>,
}

fn column(name: &str, ty: DataType, nullable: bool) -> ResultColumn {
    ResultColumn { org_name: name.to_string(), ..computed_column(ty, nullable, name.to_string()) }
}

/// Text of so many characters, without case; may be NULL.
pub(crate) fn text_column(name: &str, characters: u32) -> ResultColumn {
    column(name, DataType::varchar(characters, Collation::Utf8mb4GeneralCi), true)
}

pub(crate) fn integer_column(name: &str) -> ResultColumn {
    column(name, DataType::BIGINT, true)
}

/// Text without a bound.
pub(crate) fn long_text_column(name: &str) -> ResultColumn {
    column(name, DataType { collation: Collation::Utf8mb4GeneralCi, ..DataType::new(TypeKind::LongText) }, true)
}

pub(crate) fn unsigned_column(name: &str) -> ResultColumn {
    column(name, DataType::BIGINT_UNSIGNED, true)
}

/// Writes a result set without its completion.
pub(crate) fn send(columns: &[ResultColumn], rows: &[Vec<Value>], sink: &mut dyn ResultSink) {
    sink.columns(columns);
    let mut row: Vec<ValueRef<'_>> = Vec::with_capacity(columns.len());
    for values in rows {
        row.clear();
        row.extend(values.iter().map(Value::as_ref));
        sink.row(&row);
    }
}

/// Columns given as `name` (text) or `name#` (a number).
fn columns(names: &[&str]) -> Vec<ResultColumn> {
    let one = |name: &&str| match name.strip_suffix('#') {
        Some(name) => unsigned_column(name),
        None => text_column(name, 256),
    };
    names.iter().map(one).collect()
}

impl Session {
    pub(crate) fn show(&mut self, show: &Show, sink: &mut dyn ResultSink) -> Result<Done, MysqlError> {
        let table = self.show_table(show)?;
        send(&table.columns, &table.rows, sink);
        Ok(Done::rows())
    }

    /// What a client gets when it prepares a SHOW.
    pub(crate) fn show_columns(&mut self, show: &Show) -> Result<Vec<ResultColumn>, MysqlError> {
        Ok(self.show_table(show)?.columns)
    }

    fn show_table(&mut self, show: &Show) -> Result<Table, MysqlError> {
        let none = ShowFilter::default();
        let (table, filter) = match show {
            Show::Databases(filter) => (self.show_databases(filter), filter),
            Show::Tables { full, database, filter } => (self.show_tables(*full, database.as_deref(), filter)?, filter),
            Show::TableStatus { database, filter } => (self.show_table_status(database.as_deref())?, filter),
            Show::Columns { full, table, filter } => (self.show_table_columns(*full, table)?, filter),
            Show::Indexes { table, filter } => (self.show_indexes(table)?, filter),
            Show::CreateTable(table) => (self.show_create_table(table)?, &none),
            Show::CreateView(view) => (self.show_create_view(view)?, &none),
            Show::CreateDatabase { name, if_not_exists } => (self.show_create_database(name, *if_not_exists)?, &none),
            Show::CreateUser(user) => (self.show_create_user(user)?, &none),
            Show::Variables { scope, filter } => (self.show_variables(*scope == Scope::Global), filter),
            Show::Status { scope, filter } => (self.show_status(*scope == Scope::Global), filter),
            Show::Warnings { count, limit } => (self.show_warnings(*count, *limit, false), &none),
            Show::Errors { count } => (self.show_warnings(*count, None, true), &none),
            Show::Collation(filter) => (self.show_collations(), filter),
            Show::CharacterSet(filter) => (self.show_character_sets(), filter),
            Show::Engines => (self.show_engines()?, &none),
            Show::EngineStatus => (self.show_engine_status()?, &none),
            Show::Plugins => (self.show_plugins()?, &none),
            Show::Privileges => (self.show_privileges(), &none),
            Show::ProcessList { full } => (self.show_processes(*full), &none),
            Show::Grants { user, using } => (self.show_grants(user.as_ref(), using)?, &none),
            Show::Profiles => {
                self.discard_profile();
                self.push_warning(WarningLevel::Warning, DEPRECATED, profiles::deprecated("SHOW PROFILES"));
                let columns = vec![
                    unsigned_column("Query_ID"),
                    column("Duration", profiles::duration_type(), false),
                    text_column("Query", 300),
                ];
                (Table { columns, rows: self.list_profiles() }, &none)
            }
            Show::Profile { types, query, limit } => {
                self.discard_profile();
                self.push_warning(WarningLevel::Warning, DEPRECATED, profiles::deprecated("SHOW PROFILE"));
                let mut columns = vec![text_column("Status", 30), column("Duration", profiles::duration_type(), false)];
                columns.extend(ProfileType::columns(types).into_iter().map(unsigned_column));
                let mut rows = self.list_stages(*query, types);
                if let Some((first, count)) = limit {
                    let (first, count) = (usize::try_from(*first), usize::try_from(*count));
                    rows.drain(..first.unwrap_or(usize::MAX).min(rows.len()));
                    rows.truncate(count.unwrap_or(usize::MAX));
                }
                (Table { columns, rows }, &none)
            }
            Show::Empty { kind, filter } => (server::empty(kind)?, filter),
        };
        self.filter(table, filter)
    }

    fn filter(&mut self, mut table: Table, filter: &ShowFilter) -> Result<Table, MysqlError> {
        if let Some(pattern) = &filter.like {
            // Names of databases and tables have case, and yet SHOW … LIKE has none in MySQL's default collation.
            let first =
                |row: &[Value]| matches!(&row[0], Value::Str(text) if super::pattern::like(pattern, text, true));
            table.rows.retain(|row| first(row));
        }
        if let Some(condition) = &filter.condition {
            let bind_context = self.bind_context(self.parameter_types.clone());
            filter::retain(&mut table, condition, &bind_context, &mut self.context)?;
        }
        Ok(table)
    }
}

/// Error for a SHOW that exists in MySQL only.
fn unsupported(kind: &str) -> MysqlError {
    errors::not_supported(&format!("SHOW {kind}"))
}
