//! Statements on the two servers.
//!
//! A [`Pair`] holds the processes and a session with each. [`Pair::fill`] makes a schema's tables in an empty database
//! on both. A change runs inside of a transaction, after which the tables that it names are read; mostly it is rolled
//! back, so that both servers keep the same rows even where they differ.

pub mod outcome;
mod second;
pub mod servers;

use crate::compare::{self, Category};
use crate::known;
use crate::schema::{NEWEST, Schema};
use crate::tree::print::{OUTER_VIEW, VIEW};
use crate::tree::{From, Statement};
use mysql::Conn;
use outcome::Outcome;
use servers::{MariaDb, Rauk};
use std::path::Path;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot wait for signals: {0}")]
    Signals(String),
    #[error("cannot make a temporary directory: {0}")]
    Directory(#[source] std::io::Error),
    #[error("cannot start {what}: {cause}")]
    Start { what: &'static str, cause: String },
    #[error("cannot connect to {server}: {cause}")]
    Connect { server: &'static str, cause: mysql::Error },
    #[error("cannot make an empty database: {sql}: {outcome}")]
    Database { sql: String, outcome: String },
}

/// What both servers said to one statement.
#[derive(Clone, Debug)]
pub struct Answers {
    pub reference: Outcome,
    pub rauk: Outcome,
    /// Of a change: its tables afterwards, on each server.
    pub contents: Vec<(String, Outcome, Outcome)>,
}

impl Answers {
    /// What is compared first and differs.
    pub fn difference(&self, statement: &Statement) -> Option<Category> {
        compare::outcomes(statement, &self.reference, &self.rauk).or_else(|| {
            let differs = |(_, reference, rauk): &(String, Outcome, Outcome)| !compare::same_rows(reference, rauk);
            self.contents.iter().any(differs).then_some(Category::Contents)
        })
    }
}

struct Session {
    connection: Option<Conn>,
    database: &'static str,
    /// It is MariaDB's.
    is_reference: bool,
    /// The statements that a new connection begins with.
    settings: &'static [&'static str],
}

impl Session {
    fn new(database: &'static str, is_reference: bool, settings: &'static [&'static str]) -> Session {
        Session { connection: None, database, is_reference, settings }
    }

    /// In its database, if there is one yet: a connection may be lost among the statements of a seed, as by a statement
    /// that a busy machine does not finish in time.
    fn begin(&mut self, connection: Conn) {
        self.connection = Some(connection);
        self.settings.iter().for_each(|sql| drop(self.run(sql)));
        self.run(&format!("USE {}", self.database));
    }

    fn run(&mut self, sql: &str) -> Outcome {
        let Some(connection) = &mut self.connection else { return Outcome::Lost("no connection".into()) };
        let outcome = match self.is_reference && sql.contains(NEWEST) {
            true => Outcome::of(connection, &sql.replace(NEWEST, NEAREST)),
            false => Outcome::of(connection, sql),
        };
        if matches!(outcome, Outcome::Lost(_)) {
            self.connection = None;
        }
        outcome
    }
}

/// MariaDB's collation that is like [`NEWEST`]: no spaces are added, and of the letters that are generated the same are
/// equal.
const NEAREST: &str = "utf8mb4_unicode_520_nopad_ci";

const REFERENCE_SETTINGS: &[&str] = &[
    "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
    "SET time_zone = '+00:00'",
    "SET group_concat_max_len = 100000",
    "SET max_statement_time = 20",
    // Long lists are in one order, by all their letters; a sort has room for some of that length, else it is error
    // 1038.
    "SET max_sort_length = 65536",
    "SET sort_buffer_size = 33554432",
    // As MySQL 8 does.
    "SET sql_mode = CONCAT(@@sql_mode, ',TIME_ROUND_FRACTIONAL')",
];
const RAUK_SETTINGS: &[&str] = &[
    "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
    "SET time_zone = '+00:00'",
    "SET group_concat_max_len = 100000",
    "SET max_execution_time = 60000",
];

/// A MariaDB that plans in other ways, to judge the generator: what differs from itself has no single right answer.
const TWIN_SETTINGS: &[&str] = &[
    "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
    "SET time_zone = '+00:00'",
    "SET group_concat_max_len = 100000",
    "SET max_statement_time = 20",
    "SET max_sort_length = 65536",
    "SET sort_buffer_size = 33554432",
    "SET sql_mode = CONCAT(@@sql_mode, ',TIME_ROUND_FRACTIONAL')",
    "SET optimizer_switch = 'materialization=off,semijoin=off,derived_merge=off,condition_pushdown_for_derived=off,split_materialized=off,index_merge=off'",
    "SET join_cache_level = 0",
];

pub struct Pair {
    mariadb: MariaDb,
    /// `None` where MariaDB is compared with itself.
    rauk: Option<Rauk>,
    reference: Session,
    tested: Session,
    /// Another session with the reference, for second opinions.
    second: Session,
    /// The reference has copies of the tables as they are, with these keys.
    copied: Option<second::Keys>,
    restarted: bool,
}

impl Pair {
    /// `program` is Rauk's binary.
    pub fn start(program: &Path) -> Result<Pair, Error> {
        Self::of(Some(Rauk::start(program)?))
    }

    /// MariaDB in the place of Rauk too.
    pub fn start_twins() -> Result<Pair, Error> {
        Self::of(None)
    }

    fn of(rauk: Option<Rauk>) -> Result<Pair, Error> {
        let is_twin = rauk.is_none();
        let settings = if is_twin { TWIN_SETTINGS } else { RAUK_SETTINGS };
        let mut pair = Pair {
            mariadb: MariaDb::start()?,
            rauk,
            reference: Session::new("differential", true, REFERENCE_SETTINGS),
            tested: Session::new("differential_tested", is_twin, settings),
            second: Session::new("differential", true, REFERENCE_SETTINGS),
            copied: None,
            restarted: false,
        };
        pair.connect()?;
        Ok(pair)
    }

    /// A server was started again since this was last asked: it has no tables.
    pub fn was_restarted(&mut self) -> bool {
        std::mem::take(&mut self.restarted)
    }

    /// Connections where there are none. A server that takes no connection is started again on an empty directory.
    fn connect(&mut self) -> Result<(), Error> {
        let is_cut = self.reference.connection.is_none() || self.second.connection.is_none();
        if is_cut && self.mariadb.connect().is_err() {
            self.mariadb = MariaDb::start()?;
            (self.reference.connection, self.second.connection) = (None, None);
            (self.copied, self.restarted) = (None, true);
        }
        for session in [&mut self.reference, &mut self.second] {
            if session.connection.is_none() {
                let connection = self.mariadb.connect();
                session.begin(connection.map_err(|cause| Error::Connect { server: "MariaDB", cause })?);
            }
        }
        if self.tested.connection.is_none() {
            let connection = match &mut self.rauk {
                None => self.mariadb.connect(),
                Some(rauk) => match rauk.connect() {
                    Ok(connection) => Ok(connection),
                    Err(_) => {
                        rauk.restart()?;
                        self.restarted = true;
                        rauk.connect()
                    }
                },
            };
            let connection = connection.map_err(|cause| Error::Connect { server: "the tested server", cause })?;
            self.tested.begin(connection);
        }
        Ok(())
    }

    /// An empty database with the schema's tables and rows. A row that both servers refuse is taken out of the schema.
    /// Gives the first difference.
    pub fn fill(&mut self, schema: &mut Schema) -> Result<Option<(String, Answers)>, Error> {
        self.connect()?;
        self.copied = None;
        for session in [&mut self.reference, &mut self.tested] {
            let name = session.database;
            let statements = [
                format!("DROP DATABASE IF EXISTS {name}"),
                format!("CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"),
                format!("USE {name}"),
            ];
            for sql in statements {
                let outcome = session.run(&sql);
                if !matches!(outcome, Outcome::Done { .. }) {
                    return Err(Error::Database { sql, outcome: outcome.shown() });
                }
            }
        }
        for table in &mut schema.tables {
            let create = table.create();
            let answers = self.raw(&create);
            if compare::codes(&answers.reference, &answers.rauk).is_some() {
                return Ok(Some((create, answers)));
            }
            let rows = std::mem::take(&mut table.rows);
            for row in rows {
                let insert = table.insert(std::slice::from_ref(&row)).expect("there is a row");
                let answers = self.raw(&insert);
                // A row that is wrong in several ways is refused by both.
                let code = |outcome: &Outcome| outcome.error_code().unwrap_or_default();
                let are_of_data = known::are_data_errors(code(&answers.reference), code(&answers.rauk));
                if !are_of_data && compare::codes(&answers.reference, &answers.rauk).is_some() {
                    return Ok(Some((insert, answers)));
                }
                if answers.rauk.error_code().is_none() {
                    table.rows.push(row);
                }
            }
            let select = format!("SELECT * FROM {}", table.name);
            let answers = self.raw(&select);
            if !compare::same_rows(&answers.reference, &answers.rauk) {
                return Ok(Some((select, answers)));
            }
        }
        Ok(None)
    }

    fn raw(&mut self, sql: &str) -> Answers {
        let rauk = self.tested.run(sql);
        let reference = self.reference.run(sql);
        Answers { reference, rauk, contents: Vec::new() }
    }

    /// A query, on Rauk alone.
    pub fn ask(&mut self, sql: &str) -> Outcome {
        self.tested.run(sql)
    }

    /// A statement on Rauk, and on the reference as it is `asked`, unless it takes no part or Rauk does not support the
    /// statement; then the reference's answer is Rauk's. A change is kept if `keep`, and both servers agree.
    pub fn run(
        &mut self,
        schema: &Schema,
        statement: &Statement,
        asked: Option<&Statement>,
        keep: bool,
    ) -> Result<Answers, Error> {
        self.connect()?;
        let asked_after =
            |rauk: &Outcome| asked.filter(|_| rauk.error_code() != Some(NOT_SUPPORTED_YET)).map(Statement::to_string);
        let answers = match statement {
            Statement::Query(_) => {
                let rauk = self.tested.run(&statement.to_string());
                let reference = asked_after(&rauk).map_or(rauk.clone(), |sql| self.reference.run(&sql));
                Answers { reference, rauk, contents: Vec::new() }
            }
            Statement::View { twice, .. } => {
                let rauk = through_view(&mut self.tested, &statement.to_string(), *twice);
                let other = |sql: String| through_view(&mut self.reference, &sql, *twice);
                let reference = asked_after(&rauk).map_or(rauk.clone(), other);
                Answers { reference, rauk, contents: Vec::new() }
            }
            Statement::ThroughView { .. } => {
                let (before, behind) = statement.frame().expect("there is a view");
                let made = self.raw(&before);
                if made.rauk.error_code().is_some() || made.reference.error_code().is_some() {
                    self.raw(&behind);
                    return Ok(made);
                }
                let answers = self.change(schema, statement, asked, keep);
                self.raw(&behind);
                answers
            }
            _ => self.change(schema, statement, asked, keep),
        };
        Ok(answers)
    }

    /// Tables are read behind it, all of them where actions of foreign keys may have changed others.
    fn change(&mut self, schema: &Schema, statement: &Statement, asked: Option<&Statement>, keep: bool) -> Answers {
        let text = |statement: &Statement| match statement {
            Statement::ThroughView { change, .. } => change.to_string(),
            other => other.to_string(),
        };
        self.tested.run("BEGIN");
        let rauk = self.tested.run(&text(statement));
        let Some(asked) = asked.filter(|_| rauk.error_code() != Some(NOT_SUPPORTED_YET)) else {
            self.tested.run("ROLLBACK");
            return Answers { reference: rauk.clone(), rauk, contents: Vec::new() };
        };
        self.reference.run("BEGIN");
        let reference = self.reference.run(&text(asked));
        let mut contents = Vec::new();
        if rauk.error_code().is_none() && reference.error_code().is_none() {
            let related = schema.tables.iter().any(|table| !table.foreign.is_empty());
            let tables = match related {
                true => schema.tables.iter().map(|table| table.name.clone()).collect(),
                false => changed_tables(statement),
            };
            for table in tables {
                let select = format!("SELECT * FROM {table}");
                contents.push((table, self.reference.run(&select), self.tested.run(&select)));
            }
        }
        let answers = Answers { reference, rauk, contents };
        let end = if keep && answers.difference(asked).is_none() { "COMMIT" } else { "ROLLBACK" };
        if end == "COMMIT" {
            self.copied = None;
        }
        self.tested.run(end);
        self.reference.run(end);
        answers
    }
}

/// MySQL's code for what it knows and does not do.
pub const NOT_SUPPORTED_YET: u16 = 1235;

/// `twice`: through a view over the view.
fn through_view(session: &mut Session, create: &str, twice: bool) -> Outcome {
    let created = session.run(create);
    if !matches!(created, Outcome::Done { .. }) {
        return created;
    }
    let mut outcome = session.run(&read_view(twice)[0]);
    if let (Outcome::Done { .. }, true) = (&outcome, twice) {
        outcome = session.run(&read_view(twice)[1]);
        session.run(&format!("DROP VIEW {OUTER_VIEW}"));
    }
    session.run(&format!("DROP VIEW {VIEW}"));
    outcome
}

/// The statements that read the view.
pub fn read_view(twice: bool) -> Vec<String> {
    match twice {
        false => vec![format!("SELECT * FROM {VIEW}")],
        true => {
            vec![format!("CREATE VIEW {OUTER_VIEW} AS SELECT * FROM {VIEW}"), format!("SELECT * FROM {OUTER_VIEW}")]
        }
    }
}

fn changed_tables(statement: &Statement) -> Vec<String> {
    fn of(from: &From, tables: &mut Vec<String>) {
        match from {
            From::Table { name, .. } if !tables.contains(name) => tables.push(name.clone()),
            From::Table { .. } | From::Derived { .. } => {}
            From::Join { left, right, .. } => {
                of(left, tables);
                of(right, tables);
            }
        }
    }
    let mut tables = Vec::new();
    match statement {
        Statement::Insert { table, .. } => tables.push(table.clone()),
        Statement::Update { from, .. } | Statement::Delete { from, .. } => of(from, &mut tables),
        Statement::ThroughView { table, .. } => tables.push(table.clone()),
        Statement::Query(_) | Statement::View { .. } => {}
    }
    tables
}
