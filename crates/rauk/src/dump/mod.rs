//! `rauk dump`: databases as SQL, which Rauk, MariaDB or MySQL load.
//!
//! One transaction (REPEATABLE READ, WITH CONSISTENT SNAPSHOT) reads everything. It begins by using each table, so that
//! definitions do not change until the dump has ended, and all of them are translated before the first byte is written:
//! what the target lacks is known, listed on standard error and written as comments at the beginning, or refused
//! (`--strict`). Then come, in this order: settings of the session, for each database its definition and its tables
//! with their rows, all views, and the settings as they were before. The last line, `-- Dump completed`, is there only
//! when everything before it is.
//!
//! - [`catalog`]: what is dumped; unknown names; the order of views.
//! - [`target`]: what MariaDB and MySQL call differently or lack; [`translate`]: definitions for them; [`changes`]: the
//!   list.
//! - [`rows`]: INSERT statements of bounded size; one row and one statement are in memory.
//! - [`output`]: standard output, or a file that has its name only when it is whole.
//!
//! Definitions are parsed by the parser of `rauk-sql` and printed again, so texts and comments in them are never taken
//! for syntax. For Rauk itself they are what SHOW CREATE shows. Left out: users and privileges (`rauk import mysql://…
//! --users` takes them), statistics, and triggers, routines and events, which Rauk has none of.

mod catalog;
mod changes;
mod output;
mod rows;
mod target;
mod translate;

use crate::client::arguments::{options, with_connection};
use crate::import::literal::quoted;
use crate::import::report;
use crate::import::server::{Place, told};
use crate::out;
use catalog::{Schema, Wanted};
use changes::Changes;
use clap::{Arg, ArgAction, ArgMatches, Command};
use mysql::Conn;
use mysql::prelude::Queryable;
use output::Output;
use std::path::Path;
use target::Target;
use translate::{Definition, Definitions};

/// Of the session that loads. Strict, so that a value that the target does not hold is an error; dates that Rauk holds
/// (0000-00-00, the 31st of February) are none.
const MODES: &str =
    "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION";

pub fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    let command = Command::new("dump")
        .about("Write databases as SQL that Rauk, MariaDB or MySQL load")
        .arg(Arg::new("database").value_name("DATABASE").help("Database").required_unless_present("all-databases"))
        .arg(Arg::new("table").value_name("TABLE").num_args(0..).help("Tables and views of it; all by default"))
        .arg(flag("all-databases", "All databases but the server's own").conflicts_with("database"))
        .arg(
            text("for", "SERVER", "Which server loads the dump: MariaDB 10.11, MySQL 8.0, or Rauk")
                .value_parser(["rauk", "mariadb", "mysql8"])
                .default_value("rauk"),
        )
        .arg(flag("strict", "Refuse what the target does not take, instead of changing it"))
        .arg(flag("no-data", "Definitions without rows"))
        .arg(flag("no-schema", "Rows without definitions").conflicts_with("no-data"))
        .arg(text("where", "CONDITION", "Only rows for which this is true, of every table").conflicts_with("no-data"))
        .arg(text("output", "FILE", "A new file; standard output by default").short('o'));
    with_connection(command)
}

pub fn run(arguments: &ArgMatches) -> Result<(), String> {
    let get = |name: &str| arguments.get_one::<String>(name).cloned();
    let target = Target::by_name(&get("for").expect("has a default"));
    let wanted = Wanted {
        database: get("database"),
        tables: arguments.get_many::<String>("table").into_iter().flatten().cloned().collect(),
    };
    let output = get("output");
    // Before anything is read.
    if let Some(path) = &output {
        output::refuse_existing(Path::new(path))?;
    }
    let mut connection = snapshot(&Place(options(arguments)?))?;
    let schema = catalog::read(&mut connection, &wanted)?;
    let mut changes = Changes::default();
    let definitions = translate::all(&schema, target, &mut changes)?;
    for line in changes.lines() {
        eprintln!("{line}");
    }
    if arguments.get_flag("strict") && !changes.is_empty() {
        return Err(format!(
            "{} does not take everything as it is (above); change it, or leave --strict out",
            target.title()
        ));
    }
    let mut dump = Dump {
        target,
        schema: !arguments.get_flag("no-schema"),
        data: !arguments.get_flag("no-data"),
        condition: get("where"),
        out: Output::open(output.as_deref().map(Path::new))?,
        rows: 0,
    };
    dump.write(&mut connection, &schema, &definitions, &changes)?;
    let (rows, bytes) = (dump.rows, dump.out.finish()?);
    match output {
        None => Ok(()),
        Some(path) => out::line(format_args!(
            "{} tables, {} views, {} into {path}, {}",
            definitions.tables.len(),
            definitions.views.len(),
            report::rows(rows),
            report::size(bytes)
        )),
    }
}

/// A session whose statements all read one moment.
fn snapshot(place: &Place) -> Result<Conn, String> {
    let mut connection = place.connect()?;
    let version: Option<String> = connection.query_first("SELECT VERSION()").map_err(|e| told(&e))?;
    let version = version.unwrap_or_default();
    if !version.contains("-rauk-") {
        return Err(format!("the server is {version}, not a Rauk; mariadb-dump and mysqldump dump other servers"));
    }
    for statement in [
        "SET NAMES utf8mb4",
        "SET SESSION sql_mode = '', time_zone = '+00:00', sql_quote_show_create = 1",
        "SET SESSION transaction_isolation = 'REPEATABLE-READ', max_execution_time = 0",
        // A consumer of the dump may stop for a while.
        "SET SESSION net_write_timeout = 3600, wait_timeout = 86400",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    ] {
        connection.query_drop(statement).map_err(|e| told(&e))?;
    }
    Ok(connection)
}

struct Dump {
    target: Target,
    schema: bool,
    data: bool,
    condition: Option<String>,
    out: Output,
    rows: u64,
}

impl Dump {
    fn write(
        &mut self,
        connection: &mut Conn,
        schema: &Schema,
        definitions: &Definitions,
        changes: &Changes,
    ) -> Result<(), String> {
        self.header(changes)?;
        for (at, database) in definitions.databases.iter().enumerate() {
            let name = &schema.databases[at].name;
            self.put(&format!("\n--\n-- Database {}\n--\n", comment(name)))?;
            if self.schema {
                self.put(&format!("{database};\n"))?;
            }
            self.put(&format!("USE {};\n", quoted(name)))?;
            for table in definitions.tables.iter().filter(|table| table.database == *name) {
                self.table(connection, table)?;
            }
        }
        if self.schema {
            self.views(&definitions.views)?;
        }
        self.footer()
    }

    fn put(&mut self, text: &str) -> Result<(), String> {
        self.out.put(text.as_bytes())
    }

    fn header(&mut self, changes: &Changes) -> Result<(), String> {
        self.put(&format!("-- Rauk dump {}, for {}\n", env!("CARGO_PKG_VERSION"), self.target.title()))?;
        for line in changes.lines() {
            self.put(&format!("-- Changed: {}\n", comment(&line)))?;
        }
        self.put(&format!(
            "\nSET @OLD_CHARACTER_SET_CLIENT = @@CHARACTER_SET_CLIENT;\n\
             SET @OLD_CHARACTER_SET_RESULTS = @@CHARACTER_SET_RESULTS;\n\
             SET @OLD_COLLATION_CONNECTION = @@COLLATION_CONNECTION;\n\
             SET NAMES utf8mb4;\n\
             SET @OLD_TIME_ZONE = @@TIME_ZONE, TIME_ZONE = '+00:00';\n\
             SET @OLD_FOREIGN_KEY_CHECKS = @@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS = 0;\n\
             SET @OLD_SQL_MODE = @@SQL_MODE, SQL_MODE = '{MODES}';\n"
        ))
    }

    fn footer(&mut self) -> Result<(), String> {
        self.put(
            "\nSET SQL_MODE = @OLD_SQL_MODE;\n\
             SET FOREIGN_KEY_CHECKS = @OLD_FOREIGN_KEY_CHECKS;\n\
             SET TIME_ZONE = @OLD_TIME_ZONE;\n\
             SET CHARACTER_SET_CLIENT = @OLD_CHARACTER_SET_CLIENT;\n\
             SET CHARACTER_SET_RESULTS = @OLD_CHARACTER_SET_RESULTS;\n\
             SET COLLATION_CONNECTION = @OLD_COLLATION_CONNECTION;\n\
             \n-- Dump completed\n",
        )
    }

    fn table(&mut self, connection: &mut Conn, table: &Definition) -> Result<(), String> {
        self.put(&format!("\n--\n-- Table {}\n--\n", comment(&table.name)))?;
        if self.schema {
            self.put(&format!("{};\n", table.text))?;
        }
        if !self.data {
            return Ok(());
        }
        let written = rows::write(connection, &mut self.out, table, self.condition.as_deref(), MODES, self.target)?;
        self.rows += written.rows;
        if written.longest > self.target.packet() {
            eprintln!(
                "table {}.{}: a statement of {}; load the dump with a max_allowed_packet of more than that \
                 ({} has {} by default)",
                table.database,
                table.name,
                report::size(written.longest as u64),
                self.target.title(),
                report::size(self.target.packet() as u64)
            );
        }
        Ok(())
    }

    fn views(&mut self, views: &[Definition]) -> Result<(), String> {
        let mut current: Option<&str> = None;
        for view in views {
            self.put(&format!("\n--\n-- View {}\n--\n", comment(&view.name)))?;
            if current != Some(&view.database) {
                self.put(&format!("USE {};\n", quoted(&view.database)))?;
                current = Some(&view.database);
            }
            // Texts in a view have the collation of the session that defines it.
            if let Some(collation) = &view.collation {
                self.put(&format!("SET COLLATION_CONNECTION = '{collation}';\n"))?;
            }
            self.put(&format!("{};\n", view.text))?;
        }
        Ok(())
    }
}

/// A text that stays in its line.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
