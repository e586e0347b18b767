//! SHOW DATABASES, TABLES, TABLE STATUS, COLUMNS, INDEX, CREATE DATABASE; DESCRIBE.

use super::create_table::{quoted_text, says_collation};
use super::{Table, columns, integer_column, long_text_column, text_column, unsigned_column};
use crate::parse::ast::TableName;
use crate::parse::statement::{Show, ShowFilter};
use crate::session::ddl::types::column_type;
use crate::session::errors;
use crate::session::run::Done;
use crate::session::session::Session;
use crate::session::system::{self, s, u};
use crate::session::users::Privileges;
use rauk_types::result::ResultSink;
use rauk_types::{MysqlError, TableSchema, TypeKind, Value};
use std::sync::Arc;

impl Session {
    pub(super) fn show_databases(&self, filter: &ShowFilter) -> Table {
        let name = match &filter.like {
            Some(pattern) => format!("Database ({pattern})"),
            None => "Database".to_string(),
        };
        // `mysql`, `rauk` and `sys` are left out: dump tools take every database that stands here but the two schemas, and what they would write
        // of these could not be read back. SCHEMATA lists them.
        let shown = system::visible_databases(&self.viewer()).into_iter();
        let shown = shown.filter(|name| !matches!(name.as_str(), "mysql" | "rauk" | system::SYS));
        let rows = shown.map(|name| vec![Value::Str(name)]).collect();
        Table { columns: vec![text_column(&name, 64)], rows }
    }

    /// The database that a SHOW names, or the current one; 1046, 1044, 1049.
    fn shown_database(&self, database: Option<&str>) -> Result<String, MysqlError> {
        let name = match database {
            Some(name) => system::canonical_database(name),
            None => self.context.current_database.clone().ok_or_else(errors::no_database)?,
        };
        if !self.account.may_use(&name) {
            return Err(errors::database_denied(&self.account.user, &self.account.host, &name));
        }
        if !system::is_system(&name) && self.engine.database.database_collation(&name).is_none() {
            return Err(errors::unknown_database(&name));
        }
        Ok(name)
    }

    /// Names and kinds of the tables and views that the account may know of, by name.
    fn visible_tables(&self, database: &str) -> Result<Vec<(String, &'static str)>, MysqlError> {
        if system::is_system(database) {
            let tables = system::schemas(database).into_iter();
            let mut names: Vec<(String, &str)> = tables.map(|table| (table.name.clone(), "SYSTEM VIEW")).collect();
            if database == system::SYS {
                names.extend(system::sys_views().keys().map(|name| (name.clone(), "VIEW")));
                names.sort();
            }
            return Ok(names);
        }
        let tables = self.engine.database.tables(database)?.into_iter();
        let tables = tables.filter(|t| self.account.sees_table(database, &t.name));
        let views = system::visible_views(&self.viewer(), &system::Hints { schema: Some(database), table: None });
        let mut names: Vec<(String, &str)> = tables.map(|table| (table.name.clone(), "BASE TABLE")).collect();
        names.extend(views.iter().map(|view| (view.name.clone(), "VIEW")));
        names.sort();
        Ok(names)
    }

    pub(super) fn show_tables(
        &self,
        full: bool,
        database: Option<&str>,
        filter: &ShowFilter,
    ) -> Result<Table, MysqlError> {
        let database = self.shown_database(database)?;
        let mut name = format!("Tables_in_{database}");
        if let Some(pattern) = &filter.like {
            name.push_str(&format!(" ({pattern})"));
        }
        let mut columns = vec![text_column(&name, 64)];
        if full {
            columns.push(text_column("Table_type", 11));
        }
        let row = |(name, kind): (String, &str)| {
            let mut row = vec![s(name)];
            if full {
                row.push(s(kind));
            }
            row
        };
        Ok(Table { columns, rows: self.visible_tables(&database)?.into_iter().map(row).collect() })
    }

    pub(super) fn show_table_status(&self, database: Option<&str>) -> Result<Table, MysqlError> {
        let database = self.shown_database(database)?;
        let names = [
            "Name",
            "Engine",
            "Version#",
            "Row_format",
            "Rows#",
            "Avg_row_length#",
            "Data_length#",
            "Max_data_length#",
            "Index_length#",
            "Data_free#",
            "Auto_increment#",
            "Create_time",
            "Update_time",
            "Check_time",
            "Collation",
            "Checksum#",
            "Create_options",
            "Comment",
        ];
        // information_schema.TABLES has the same columns, behind its first four names.
        let source = system::table(system::INFORMATION_SCHEMA, "TABLES", self.viewer())?;
        let rows = source.rows(Some(&database), None)?;
        let shown = |row: Vec<Value>| {
            let mut out = vec![row[2].clone()];
            out.extend_from_slice(&row[4..]);
            out
        };
        let mut rows: Vec<Vec<Value>> =
            rows.into_iter().filter(|row| row[1] == Value::Str(database.clone())).map(shown).collect();
        rows.sort_by(|a, b| name_of(a).cmp(name_of(b)));
        for row in &mut rows {
            // TABLES gives times as such; here all three are NULL and typed as text.
            row.truncate(names.len());
        }
        Ok(Table { columns: columns(&names), rows })
    }

    /// The definition of a table, stored or virtual, or of a view, that the session may look at.
    fn shown_table(&self, table: &TableName) -> Result<Arc<TableSchema>, MysqlError> {
        let (database, name) = self.qualified(table)?;
        if let Some(view) = system::sys_view(&name).filter(|_| database == system::SYS) {
            return system::schema_of_view(&self.viewer(), view);
        }
        if system::is_system(&database) {
            return system::schema(&database, &name);
        }
        if !self.temporary.has(&database, &name) && !self.account.sees_table(&database, &name) {
            return Err(errors::table_denied("SELECT", &self.account.user, &self.process.host, &name));
        }
        match self.view(&database, &name) {
            Some(view) => system::schema_of_view(&self.viewer(), &view),
            None => Ok(self.stored_table(&database, &name)?.schema().clone()),
        }
    }

    pub(super) fn show_table_columns(&self, full: bool, table: &TableName) -> Result<Table, MysqlError> {
        let schema = self.shown_table(table)?;
        let columns = if full {
            vec![
                text_column("Field", 64),
                long_text_column("Type"),
                text_column("Collation", 64),
                text_column("Null", 3),
                text_column("Key", 3),
                long_text_column("Default"),
                text_column("Extra", 256),
                text_column("Privileges", 154),
                long_text_column("Comment"),
            ]
        } else {
            vec![
                text_column("Field", 64),
                long_text_column("Type"),
                text_column("Null", 3),
                text_column("Key", 3),
                long_text_column("Default"),
                text_column("Extra", 256),
            ]
        };
        let viewer = self.viewer();
        let privileges = system::column_privileges(&viewer, &schema);
        let stored = !system::is_system(&schema.database);
        let mut rows = Vec::new();
        for (at, column) in schema.visible_columns().iter().enumerate() {
            let privileges = privileges(&column.name);
            if privileges.is_empty() {
                continue;
            }
            let text = column.ty.is_text() && column.ty.kind != TypeKind::Json || column.ty.has_members();
            let default = match stored {
                true => system::default_text(column, &self.settings.time_zone).map_or(Value::Null, Value::Str),
                false => Value::Null,
            };
            let mut row = vec![s(&column.name), s(column_type(&column.ty))];
            if full {
                row.push(if text { s(column.ty.collation.name()) } else { Value::Null });
            }
            row.extend([
                s(if column.nullable { "YES" } else { "NO" }),
                s(if stored { system::column_key(&schema, at) } else { "" }),
                default,
                s(if stored { system::column_extra(&schema, at) } else { String::new() }),
            ]);
            if full {
                row.extend([s(privileges), s(&column.comment)]);
            }
            rows.push(row);
        }
        Ok(Table { columns, rows })
    }

    /// DESCRIBE table [column or pattern].
    pub(crate) fn describe(
        &mut self,
        table: &TableName,
        column: Option<&str>,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        let filter = ShowFilter { like: column.map(str::to_string), condition: None };
        self.show(&Show::Columns { full: false, table: table.clone(), filter }, sink)
    }

    pub(super) fn show_indexes(&self, table: &TableName) -> Result<Table, MysqlError> {
        let schema = self.shown_table(table)?;
        let columns = vec![
            text_column("Table", 64),
            integer_column("Non_unique"),
            text_column("Key_name", 64),
            unsigned_column("Seq_in_index"),
            text_column("Column_name", 64),
            text_column("Collation", 1),
            integer_column("Cardinality"),
            integer_column("Sub_part"),
            text_column("Packed", 10),
            text_column("Null", 3),
            text_column("Index_type", 11),
            text_column("Comment", 8),
            text_column("Index_comment", 2048),
            text_column("Visible", 3),
            long_text_column("Expression"),
        ];
        let parts =
            if system::is_system(&schema.database) { Vec::new() } else { system::parts(&self.viewer(), &schema) };
        let row = |part: system::PartRow| {
            vec![
                s(&schema.name),
                Value::Int(i64::from(part.non_unique)),
                s(&part.key_name),
                u(part.sequence),
                part.column.as_deref().map_or(Value::Null, s),
                part.collation().map_or(Value::Null, s),
                part.cardinality(),
                part.prefix.map_or(Value::Null, |p| Value::Int(i64::from(p))),
                Value::Null,
                s(if part.nullable { "YES" } else { "" }),
                s(part.kind),
                s(""),
                s(part.comment),
                s(if part.visible { "YES" } else { "NO" }),
                part.expression.map_or(Value::Null, s),
            ]
        };
        Ok(Table { columns, rows: parts.into_iter().map(row).collect() })
    }

    pub(super) fn show_create_table(&self, table: &TableName) -> Result<Table, MysqlError> {
        let (database, name) = self.qualified(table)?;
        if let Some(view) = self.view(&database, &name) {
            self.require_table("SHOW", &database, &name, Privileges::SELECT)?;
            return self.view_text(&view);
        }
        let schema = self.shown_table(table)?;
        let text = if system::is_system(&schema.database) {
            super::create_table::text_of_virtual(&schema)
        } else {
            let table = self.stored_table(&database, &name)?;
            let next = schema.auto_increment.map(|_| self.engine.database.peek_auto_increment_of(&table));
            let temporary = table.is_temporary();
            let style = super::create_table::Style {
                zone: &self.settings.time_zone,
                quotes: self.settings.quote_names,
                shows_row_format: self.settings.shows_row_format,
            };
            super::create_table::text(&schema, temporary, next, &style)
        };
        Ok(Table {
            columns: vec![text_column("Table", 64), long_text_column("Create Table")],
            rows: vec![vec![s(&schema.name), Value::Str(text)]],
        })
    }

    pub(super) fn show_create_database(&self, name: &str, if_not_exists: bool) -> Result<Table, MysqlError> {
        let name = system::canonical_database(name);
        if !self.account.may_use(&name) {
            return Err(errors::database_denied(&self.account.user, &self.account.host, &name));
        }
        let collation = match self.engine.database.database_collation(&name) {
            Some(collation) => collation,
            None if system::is_system(&name) => rauk_types::Collation::Utf8mb4GeneralCi,
            None => return Err(errors::unknown_database(&name)),
        };
        let comment = match self.engine.database.database_comment(&name) {
            Some(comment) if !comment.is_empty() => format!(" COMMENT {}", quoted_text(&comment)),
            _ => String::new(),
        };
        let guard = if if_not_exists { "/*!32312 IF NOT EXISTS*/ " } else { "" };
        let said = match says_collation(collation) {
            true => format!("{} COLLATE {}", collation.charset_name(), collation.name()),
            false => collation.charset_name().to_string(),
        };
        let text = format!(
            "CREATE DATABASE {guard}`{}` /*!40100 DEFAULT CHARACTER SET {said} */ /*!80016 DEFAULT ENCRYPTION='N' */{comment}",
            name.replace('`', "``"),
        );
        Ok(Table {
            columns: vec![text_column("Database", 64), text_column("Create Database", 1024)],
            rows: vec![vec![s(name), Value::Str(text)]],
        })
    }
}

/// The first value of a row as text.
fn name_of(row: &[Value]) -> &str {
    match row.first() {
        Some(Value::Str(name)) => name,
        _ => "",
    }
}
