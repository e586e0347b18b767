//! SHOW CREATE VIEW: the stored text, without the databases that go without saying.
//!
//! Names are printed without their database, as MySQL does, when the view is in the current database and reads tables of that database only.

use super::{Table, long_text_column, text_column};
use crate::parse::ast::TableName;
use crate::parse::print::without_database;
use crate::parse::{self, Statement};
use crate::session::errors;
use crate::session::session::Session;
use crate::session::system::{self, s};
use crate::session::users::Privileges;
use crate::stack;
use rauk_types::{MysqlError, Value, ViewAlgorithm, ViewCheck, ViewSchema, ViewSecurity};

impl Session {
    /// Errors 1142, 1146, 1347.
    pub(super) fn show_create_view(&self, name: &TableName) -> Result<Table, MysqlError> {
        let (database, name) = self.qualified(name)?;
        self.require_table("SELECT", &database, &name, Privileges::SELECT)?;
        let view = match database == system::SYS {
            true => system::sys_view(&name).cloned(),
            false => self.engine.database.view(&database, &name),
        };
        match view {
            Some(view) => self.view_text(&view),
            None if system::is_system(&database) => {
                system::schema(&database, &name)?;
                Err(errors::wrong_object(&database, &name, "VIEW"))
            }
            None => {
                // Whether it is a table, or nothing.
                self.stored_table(&database, &name)?;
                Err(errors::wrong_object(&database, &name, "VIEW"))
            }
        }
    }

    pub(super) fn view_text(&self, view: &ViewSchema) -> Result<Table, MysqlError> {
        self.require_table("SHOW VIEW", &view.database, &view.name, Privileges::SHOW_VIEW)?;
        let text = self.text_of_view(view)?;
        Ok(Table {
            columns: vec![
                text_column("View", 64),
                long_text_column("Create View"),
                text_column("character_set_client", 32),
                text_column("collation_connection", 32),
            ],
            rows: vec![vec![s(&view.name), Value::Str(text), s(&view.charset), s(view.collation.name())]],
        })
    }

    fn text_of_view(&self, view: &ViewSchema) -> Result<String, MysqlError> {
        let is_home = self.context.current_database.as_deref() == Some(&*view.database);
        let mut query = None;
        if is_home {
            let parsed = parse::parse(&view.query, parse::Mode::default())?.statement;
            query = stack::with_room(parsed.height, || match &*parsed {
                Statement::Query(query) => without_database(query, &view.database),
                _ => None,
            });
        }
        let name = |name: &str| format!("`{}`", name.replace('`', "``"));
        let names: Vec<String> = view.columns.iter().map(|column| name(column)).collect();
        Ok(format!(
            "CREATE ALGORITHM={} DEFINER={}@{} SQL SECURITY {} VIEW {}{}{} AS {}{}",
            match view.algorithm {
                ViewAlgorithm::Undefined => "UNDEFINED",
                ViewAlgorithm::Merge => "MERGE",
                ViewAlgorithm::Temptable => "TEMPTABLE",
            },
            name(&view.definer.0),
            name(&view.definer.1),
            match view.security {
                ViewSecurity::Definer => "DEFINER",
                ViewSecurity::Invoker => "INVOKER",
            },
            if is_home { String::new() } else { format!("{}.", name(&view.database)) },
            name(&view.name),
            if names.is_empty() { String::new() } else { format!(" ({})", names.join(",")) },
            query.as_ref().unwrap_or(&view.query),
            match view.check {
                ViewCheck::None => "",
                ViewCheck::Local => " WITH LOCAL CHECK OPTION",
                ViewCheck::Cascaded => " WITH CASCADED CHECK OPTION",
            },
        ))
    }
}
