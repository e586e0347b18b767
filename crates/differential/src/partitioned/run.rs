//! Steps on a server, and whether they hold what they have to.
//!
//! In a database of its own there are the tables `p`, which is partitioned, `t`, its twin without partitions, `x`, which
//! is exchanged with partitions, and `y`, the twin of that. After each write `p` and `t` have the same rows; after each
//! statement that manages partitions and each crash everything that [`Run::check`] lists is true.
//!
//! What partitioning alone refuses (1526, 1748) is tried on the twin in a transaction that is rolled back: there is a row
//! that no partition takes, or the refusal is a failure.

use super::model::Partitioning;
use super::step::{Exchange, MARK, Manage, Step, Twin, Which, Write};
use super::table::Table;
use crate::run::Error;
use crate::run::outcome::{Outcome, Row, cell};
use crate::run::servers::Rauk;
use mysql::Conn;
use std::time::Duration;

const NO_PARTITION: u16 = 1526;
const WRONG_PARTITION: u16 = 1748;
const DUPLICATE: u16 = 1062;
/// EXCHANGE: a row belongs elsewhere; tables that differ in how rows are written.
const ROW_DOES_NOT_MATCH: u16 = 1737;
const DIFFERENT_INSIDE: u16 = 1731;

/// Something that does not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Two failures of one kind and one code are taken for the same.
    pub kind: &'static str,
    pub code: Option<u16>,
    pub detail: String,
}

type Held<T = ()> = Result<T, Trouble>;

pub enum Trouble {
    Failed(Failure),
    Server(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Server(error)
    }
}

fn failed<T>(kind: &'static str, code: Option<u16>, detail: String) -> Held<T> {
    Err(Trouble::Failed(Failure { kind, code, detail }))
}

pub struct Run<'a> {
    rauk: &'a mut Rauk,
    connection: Option<Conn>,
    database: String,
    pub table: Table,
    pub partitioning: Option<Partitioning>,
    pub in_transaction: bool,
    /// Rows of `p`.
    pub rows: usize,
    /// What was sent, save what only checks.
    pub log: Vec<String>,
    /// Statements of which both tables were asked.
    pub compared: u64,
}

impl<'a> Run<'a> {
    /// The tables, empty, in a database that is made.
    pub fn begin(
        rauk: &'a mut Rauk,
        database: &str,
        table: &Table,
        partitioning: &Partitioning,
    ) -> Result<Run<'a>, Trouble> {
        let mut run = Run {
            rauk,
            connection: None,
            database: database.to_string(),
            table: table.clone(),
            partitioning: Some(partitioning.clone()),
            in_transaction: false,
            rows: 0,
            log: Vec::new(),
            compared: 0,
        };
        let connected = run.rauk.connect();
        let mut connection = match connected {
            Ok(connection) => connection,
            Err(_) => {
                run.rauk.crash()?;
                run.rauk.connect().map_err(|cause| Error::Connect { server: "Rauk", cause })?
            }
        };
        Outcome::of(&mut connection, &format!("DROP DATABASE IF EXISTS {database}"));
        Outcome::of(&mut connection, &format!("CREATE DATABASE {database}"));
        run.connection = Some(connection);
        run.settings()?;
        run.expect(&format!("{} {}", table.create("p", true), partitioning.clause(table)))?;
        for name in ["t", "x", "y"] {
            run.expect(&table.create(name, false))?;
        }
        Ok(run)
    }

    pub fn end(mut self) {
        self.ask(&format!("DROP DATABASE IF EXISTS {}", self.database.clone()));
    }

    fn settings(&mut self) -> Held {
        let database = self.database.clone();
        for sql in ["SET NAMES utf8mb4", "SET time_zone = '+00:00'", &format!("USE {database}")] {
            if let Outcome::Error { code, message } = self.ask(sql) {
                return failed("settings", Some(code), message);
            }
        }
        Ok(())
    }

    fn ask(&mut self, sql: &str) -> Outcome {
        let Some(connection) = &mut self.connection else { return Outcome::Lost("no connection".into()) };
        let outcome = Outcome::of(connection, sql);
        if matches!(outcome, Outcome::Lost(_)) {
            self.connection = None;
        }
        outcome
    }

    /// Part of the script that a failure prints.
    fn say(&mut self, sql: &str) -> Outcome {
        let outcome = self.ask(sql);
        let comment = match &outcome {
            Outcome::Error { code, message } => format!("  -- error {code}: {}", message.replace('\n', " ")),
            Outcome::Lost(message) => format!("  -- {message}"),
            _ => String::new(),
        };
        self.log.push(format!("{sql};{comment}"));
        outcome
    }

    fn expect(&mut self, sql: &str) -> Held<Outcome> {
        match self.say(sql) {
            Outcome::Error { code, message } => failed("refused", Some(code), format!("{sql}\n{message}")),
            Outcome::Lost(message) => failed("lost", None, format!("{sql}\n{message}")),
            outcome => Ok(outcome),
        }
    }

    /// Rows, ordered by their bytes.
    fn read(&mut self, sql: &str) -> Held<Vec<Row>> {
        match self.ask(sql) {
            Outcome::Rows { mut rows, .. } => {
                rows.sort();
                Ok(rows)
            }
            Outcome::Error { code, message } => failed("refused", Some(code), format!("{sql}\n{message}")),
            other => failed("lost", None, format!("{sql}\n{}", other.shown())),
        }
    }

    fn count(&mut self, sql: &str) -> Held<u64> {
        let rows = self.read(sql)?;
        Ok(rows.first().and_then(|row| row.first()).map_or(0, |value| cell(value).parse().unwrap_or(0)))
    }

    fn same(&mut self, kind: &'static str, one: &str, two: &str) -> Held<Vec<Row>> {
        let (a, b) = (self.read(one)?, self.read(two)?);
        match a == b {
            true => Ok(a),
            false => failed(kind, None, format!("{one}\n{}\n{two}\n{}", only_in(&a, &b), only_in(&b, &a))),
        }
    }

    pub fn step(&mut self, step: &Step) -> Held {
        match step {
            Step::Query { sql, values, only } => self.query(sql, values, only.as_ref()),
            Step::Write(write) => self.write(write),
            Step::Transaction(sql) => {
                self.expect(sql)?;
                match sql.as_str() {
                    "BEGIN" => {
                        // What ROLLBACK TO SAVEPOINT goes back to, if no other is set.
                        self.expect("SAVEPOINT s")?;
                        self.in_transaction = true;
                    }
                    "COMMIT" | "ROLLBACK" => self.in_transaction = false,
                    _ => {}
                }
                self.rows_are_equal()
            }
            Step::Manage(manage) => self.manage(manage),
            Step::Exchange(exchange) => self.exchange(exchange),
            Step::Crash => {
                let before = self.definition()?;
                self.crash()?;
                self.check()?;
                let after = self.definition()?;
                if before != after {
                    return failed("definition", None, format!("before the crash {before}\nafter it {after}"));
                }
                Ok(())
            }
        }
    }

    fn query(&mut self, sql: &str, values: &[Vec<String>], only: Option<&super::step::Only>) -> Held {
        self.compared += 1;
        let (one, two) = match only {
            None => (sql.replace(MARK, "p"), sql.replace(MARK, "t")),
            Some(only) => (
                sql.replace(MARK, &format!("p {}", only.clause)),
                sql.replace(MARK, &format!("(SELECT * FROM t WHERE {}) d", only.members)),
            ),
        };
        if values.is_empty() {
            return match (self.read_or_error(&one)?, self.read_or_error(&two)?) {
                (Ok(a), Ok(b)) if a == b => Ok(()),
                (Ok(a), Ok(b)) => {
                    self.log.push(format!("{one};"));
                    failed("query", None, format!("{one}\n{}\n{two}\n{}", only_in(&a, &b), only_in(&b, &a)))
                }
                (Err(a), Err(b)) if a.0 == b.0 => Ok(()),
                (Err((code, message)), _) => {
                    self.log.push(format!("{one};"));
                    failed("query", Some(code), format!("{one}\n{message}"))
                }
                (_, Err((code, message))) => {
                    self.log.push(format!("{two};"));
                    failed("query", Some(code), format!("{two}\n{message}"))
                }
            };
        }
        for (name, text) in [("of_p", &one), ("of_t", &two)] {
            let text = text.replace('\\', "\\\\").replace('\'', "''");
            self.expect_silent(&format!("PREPARE {name} FROM '{text}'"))?;
        }
        for values in values {
            let set: Vec<String> = values.iter().enumerate().map(|(at, value)| format!("@v{at} = {value}")).collect();
            let used: Vec<String> = (0..values.len()).map(|at| format!("@v{at}")).collect();
            self.expect_silent(&format!("SET {}", set.join(", ")))?;
            let execute = |name: &str| format!("EXECUTE {name} USING {}", used.join(", "));
            let same = self.same("prepared", &execute("of_p"), &execute("of_t"));
            if same.is_err() {
                self.log.push(format!("PREPARE of_p FROM '{one}'; SET {}; {};", set.join(", "), execute("of_p")));
            }
            same?;
        }
        Ok(())
    }

    fn expect_silent(&mut self, sql: &str) -> Held {
        match self.ask(sql) {
            Outcome::Error { code, message } => failed("refused", Some(code), format!("{sql}\n{message}")),
            Outcome::Lost(message) => failed("lost", None, format!("{sql}\n{message}")),
            _ => Ok(()),
        }
    }

    fn read_or_error(&mut self, sql: &str) -> Held<Result<Vec<Row>, (u16, String)>> {
        match self.ask(sql) {
            Outcome::Rows { mut rows, .. } => {
                rows.sort();
                Ok(Ok(rows))
            }
            Outcome::Error { code, message } => Ok(Err((code, message))),
            other => failed("lost", None, format!("{sql}\n{}", other.shown())),
        }
    }

    /// Undone by [`Run::undo`]: a transaction, or a savepoint in the one that is open.
    fn mark(&mut self) -> Held {
        let sql = if self.in_transaction { "SAVEPOINT tried" } else { "BEGIN" };
        self.expect(sql).map(drop)
    }

    fn undo(&mut self) -> Held {
        let sql = if self.in_transaction { "ROLLBACK TO SAVEPOINT tried" } else { "ROLLBACK" };
        self.expect(sql).map(drop)
    }

    fn keep(&mut self) -> Held {
        let sql = if self.in_transaction { "RELEASE SAVEPOINT tried" } else { "COMMIT" };
        self.expect(sql).map(drop)
    }

    fn write(&mut self, write: &Write) -> Held {
        self.compared += 1;
        let (one, two) = match write.which {
            Which::Main => ("p", "t"),
            Which::Other => ("x", "y"),
        };
        let (first, second) = (write.text.of(one, true), write.text.of(two, false));
        // Rows outside of the partitions that are named stay as they are.
        let outside = write.text.only().map(|only| format!("SELECT COUNT(*) FROM t WHERE NOT ({})", only.members));
        let before = outside.as_ref().map(|sql| self.count(sql)).transpose()?;
        if write.loose {
            self.mark()?;
        }
        let outcome = self.say(&first);
        if let Some(code @ (NO_PARTITION | WRONG_PARTITION)) = outcome.error_code() {
            if write.loose {
                self.undo()?;
            }
            if !write.replaces {
                self.check_refusal(code, write, &second)?;
            }
            return self.rows_are_equal();
        }
        if let Outcome::Lost(message) = &outcome {
            return failed("lost", None, format!("{first}\n{message}"));
        }
        let mut twin = self.say(&second);
        if write.ignores
            && write.which == Which::Main
            && let Some(fits) = self.partitioning.as_ref().and_then(|now| now.fits(&self.table))
            && let Outcome::Done { affected, .. } = &mut twin
        {
            let gone = self.expect(&format!("DELETE FROM t WHERE NOT ({fits})"))?;
            if let Outcome::Done { affected: gone, .. } = gone {
                *affected = affected.saturating_sub(gone);
            }
        }
        let same = match (&outcome, &twin) {
            (Outcome::Done { affected: a, .. }, Outcome::Done { affected: b, .. }) => a == b,
            (Outcome::Error { code: a, .. }, Outcome::Error { code: b, .. }) => a == b || write.loose,
            (Outcome::Error { code: DUPLICATE, .. }, _) | (_, Outcome::Error { code: DUPLICATE, .. }) => write.loose,
            _ => false,
        };
        if !same {
            let code = outcome.error_code().or(twin.error_code());
            let detail = format!("{first}\n{}\n{second}\n{}", outcome.shown(), twin.shown());
            return failed("write", code, detail);
        }
        let after = outside.as_ref().map(|sql| self.count(sql)).transpose()?;
        if before != after && outcome.error_code().is_none() {
            let detail = format!("{first}\n{before:?} rows outside of these partitions are {after:?} now");
            return failed("outside", None, detail);
        }
        if write.loose {
            let refused = outcome.error_code().is_some() || twin.error_code().is_some();
            if refused { self.undo()? } else { self.keep()? }
        }
        match write.which {
            Which::Main => self.rows_are_equal(),
            Which::Other => self.same("rows of x", "SELECT * FROM x", "SELECT * FROM y").map(drop),
        }
    }

    /// The twin, were it not for partitions, would have a row that no partition takes.
    fn check_refusal(&mut self, code: u16, write: &Write, sql: &str) -> Held {
        let fits = || self.partitioning.as_ref().and_then(|now| now.fits(&self.table));
        let members = match write.text.only() {
            Some(only) => Some(only.members.clone()),
            None => fits(),
        };
        let Some(members) = members else {
            return failed("refusal", Some(code), format!("every row has a partition: {sql}"));
        };
        // What is outside of the partitions that are named has been there before.
        let outside = format!("SELECT COUNT(*) FROM t WHERE NOT ({members})");
        let before = self.count(&outside)?;
        self.mark()?;
        let outcome = self.say(sql);
        let after = self.count(&outside)?;
        self.undo()?;
        match outcome.error_code().is_some() || after > before {
            true => Ok(()),
            false => failed("refusal", Some(code), format!("every row has a partition: {sql}")),
        }
    }

    fn rows_are_equal(&mut self) -> Held {
        self.rows = self.same("rows", "SELECT * FROM p", "SELECT * FROM t")?.len();
        Ok(())
    }

    fn manage(&mut self, manage: &Manage) -> Held {
        let misfits = match &manage.misfits {
            Some(condition) => self.count(&format!("SELECT COUNT(*) FROM t WHERE {condition}"))?,
            None => 0,
        };
        let sql = manage.sql.replace(MARK, "p");
        if matches!(manage.twin, Twin::Same) {
            for table in ["p", "t", "x", "y"] {
                self.expect(&manage.sql.replace(MARK, table))?;
            }
        } else {
            // Rows that go with a partition of KEY are known as long as it is there.
            let saved = matches!(manage.twin, Twin::DeleteOf { .. });
            if let Twin::DeleteOf { clause, .. } = &manage.twin {
                self.save_partition(clause)?;
            }
            let before = self.definition()?;
            let (outcome, was_killed) = self.say_and_kill(&sql, manage.killed_after)?;
            let mut done = match outcome.error_code() {
                Some(NO_PARTITION) if misfits > 0 => false,
                Some(code) => return failed("refused", Some(code), format!("{sql}\n{}", outcome.shown())),
                None if misfits > 0 && !was_killed => {
                    return failed("accepted", None, format!("{misfits} rows have no partition: {sql}"));
                }
                None => true,
            };
            if let (true, Outcome::Rows { rows, .. }) = (manage.answers, &outcome) {
                let says = |row: &Row| row.last().map(cell) == Some("OK".into());
                if !rows.iter().any(says) {
                    return failed("answer", None, format!("{sql}\n{}", outcome.shown()));
                }
            }
            if was_killed {
                done = self.has_happened(&before, manage)?;
            }
            if done {
                match &manage.twin {
                    Twin::Nothing | Twin::Same => {}
                    Twin::Delete(condition) => drop(self.expect(&format!("DELETE FROM t WHERE {condition}"))?),
                    Twin::DeleteOf { columns, .. } => self.delete_saved(columns)?,
                }
            }
            if saved {
                self.expect("DROP TABLE z")?;
            }
            self.in_transaction = false;
            if !done {
                return self.check();
            }
        }
        self.in_transaction = false;
        self.table = manage.table.clone();
        self.partitioning = manage.partitioning.clone();
        self.check()
    }

    /// After a crash in the middle: wholly done, or not at all.
    fn has_happened(&mut self, before: &str, manage: &Manage) -> Held<bool> {
        if self.definition()? != before {
            return Ok(true);
        }
        // What changes no definition shows by the rows; what changes nothing that shows has either way happened.
        let is_shown = manage.partitioning != self.partitioning;
        let same = self.read("SELECT * FROM p")? == self.read("SELECT * FROM t")?;
        Ok(!is_shown && !same)
    }

    /// Copies the rows of partitions into the table `z`.
    fn save_partition(&mut self, clause: &str) -> Held {
        self.in_transaction = false;
        self.expect("DROP TABLE IF EXISTS z")?;
        self.expect("CREATE TABLE z LIKE t")?;
        self.expect(&format!("INSERT INTO z SELECT * FROM p {clause}")).map(drop)
    }

    /// Rows with the same values in what decides the partition are in one partition.
    fn delete_saved(&mut self, columns: &[String]) -> Held {
        let same: Vec<String> = columns.iter().map(|column| format!("z.{column} <=> t.{column}")).collect();
        let sql = format!("DELETE FROM t WHERE EXISTS (SELECT * FROM z WHERE {})", same.join(" AND "));
        self.expect(&sql).map(drop)
    }

    /// Whether the server was killed meanwhile; it is back then.
    fn say_and_kill(&mut self, sql: &str, after: Option<u64>) -> Held<(Outcome, bool)> {
        let Some(after) = after else {
            return match self.say(sql) {
                Outcome::Lost(message) => failed("lost", None, format!("{sql}\n{message}")),
                outcome => Ok((outcome, false)),
            };
        };
        let killing = self.rauk.kill_after(Duration::from_micros(after));
        let outcome = self.say(sql);
        killing.join().expect("it does not panic");
        self.log.push(format!("-- killed {after} µs after that statement began"));
        self.crash()?;
        Ok((outcome, true))
    }

    fn crash(&mut self) -> Held {
        self.log.push("-- kill -9".into());
        self.connection = None;
        self.in_transaction = false;
        if let Err(error) = self.rauk.crash() {
            return failed("start", None, error.to_string());
        }
        let connection = self.rauk.connect().map_err(|cause| Error::Connect { server: "Rauk", cause })?;
        self.connection = Some(connection);
        self.settings()
    }

    fn exchange(&mut self, exchange: &Exchange) -> Held {
        self.in_transaction = false;
        if let Some(filling) = &exchange.filled_by {
            for name in ["x", "y"] {
                self.expect(&format!("DELETE FROM {name}"))?;
                self.expect(&filling.replace(MARK, name))?;
            }
        }
        let misfits = match &exchange.members {
            Some(members) => Some(self.count(&format!("SELECT COUNT(*) FROM y WHERE NOT ({members})"))?),
            None => None,
        };
        self.save_partition(&format!("PARTITION ({})", exchange.leaf))?;
        let sql = format!("ALTER TABLE p EXCHANGE PARTITION {} WITH TABLE x{}", exchange.leaf, exchange.validates);
        let (outcome, was_killed) = self.say_and_kill(&sql, exchange.killed_after)?;
        let done = match outcome.error_code() {
            Some(ROW_DOES_NOT_MATCH) if misfits.is_none_or(|misfits| misfits > 0) => false,
            // Columns were added to one of them as its rows were, or it was written again since.
            Some(DIFFERENT_INSIDE) => false,
            Some(code) => return failed("refused", Some(code), format!("{sql}\n{}", outcome.shown())),
            None if was_killed => self.read("SELECT * FROM x")? != self.read("SELECT * FROM y")?,
            None if misfits.is_some_and(|misfits| misfits > 0) => {
                return failed("accepted", None, format!("rows belong elsewhere: {sql}"));
            }
            None => true,
        };
        if done {
            self.delete_saved(&exchange.columns)?;
            self.expect("INSERT INTO t SELECT * FROM y")?;
            self.expect("DELETE FROM y")?;
            self.expect("INSERT INTO y SELECT * FROM z")?;
        }
        self.expect("DROP TABLE z")?;
        self.check()
    }

    fn definition(&mut self) -> Held<String> {
        let rows = self.read("SHOW CREATE TABLE p")?;
        Ok(rows.first().map_or(String::new(), |row| cell(&row[1])))
    }

    /// Rows, partitions, indexes, definitions and what the server says of them.
    pub fn check(&mut self) -> Held {
        self.rows_are_equal()?;
        self.same("rows of x", "SELECT * FROM x", "SELECT * FROM y")?;
        let all = self.read("SELECT * FROM p")?;
        for (index, columns) in self.table.indexes.clone() {
            let first = &self.table.columns[columns[0]].name;
            let order = format!("SELECT * FROM p FORCE INDEX ({index}) WHERE {first} IS NULL OR {first} IS NOT NULL");
            self.same("index", &order, "SELECT * FROM t")?;
        }
        for (number, columns) in self.table.globals.clone().iter().enumerate() {
            let names = || columns.iter().map(|&column| &self.table.columns[column].name);
            let same = names().map(|name| format!("a.{name} = b.{name}")).collect::<Vec<_>>().join(" AND ");
            let whole = names().map(|name| format!("{name} IS NOT NULL")).collect::<Vec<_>>().join(" AND ");
            let by_key = format!("SELECT STRAIGHT_JOIN b.* FROM t a JOIN p b FORCE INDEX (g{number}) ON {same}");
            self.same("global key", &by_key, &format!("SELECT * FROM t WHERE {whole}"))?;
        }
        if let Some(partitioning) = self.partitioning.clone() {
            self.check_partitions(&partitioning, &all)?;
        }
        let checked = self.read("CHECK TABLE p")?;
        if checked.len() != 1 || checked[0].last().map(cell) != Some("OK".into()) {
            return failed("check", None, format!("CHECK TABLE p\n{checked:?}"));
        }
        let definition = self.definition()?;
        let other = definition.replacen("`p`", "`copy`", 1);
        self.expect_silent(&other)?;
        let again = self.read("SHOW CREATE TABLE copy")?;
        self.expect_silent("DROP TABLE copy")?;
        if cell(&again[0][1]) != other {
            return failed("reload", None, format!("{other}\nbecomes\n{}", cell(&again[0][1])));
        }
        Ok(())
    }

    fn check_partitions(&mut self, partitioning: &Partitioning, all: &[Row]) -> Held {
        let of = "FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'p'";
        let named = format!(
            "SELECT DISTINCT PARTITION_ORDINAL_POSITION, PARTITION_NAME {of} ORDER BY PARTITION_ORDINAL_POSITION"
        );
        let Outcome::Rows { rows, .. } = self.ask(&named) else { return failed("partitions", None, named) };
        let names: Vec<String> = rows.iter().map(|row| cell(&row[1])).collect();
        let expected: Vec<&str> = partitioning.partitions.iter().map(|partition| partition.name.as_str()).collect();
        if names != expected {
            return failed("names", None, format!("there are partitions {names:?} in the place of {expected:?}"));
        }
        let leaves = partitioning.leaves(&self.table);
        let mut united = Vec::new();
        for (leaf, members) in &leaves {
            let sql = format!("SELECT * FROM p PARTITION ({leaf})");
            let rows = match members {
                Some(members) => {
                    let rows = self.same("members", &sql, &format!("SELECT * FROM t WHERE {members}"))?;
                    self.same("pruning", &format!("SELECT * FROM p WHERE {members}"), &sql)?;
                    rows
                }
                None => self.read(&sql)?,
            };
            let counted = self.count(&format!("SELECT COUNT(*) FROM p PARTITION ({leaf})"))?;
            if counted != rows.len() as u64 {
                return failed("count", None, format!("{counted} are counted of {} rows: {sql}", rows.len()));
            }
            if !self.in_transaction {
                let said = self.count(&format!(
                    "SELECT SUM(TABLE_ROWS) {of} AND '{leaf}' IN (PARTITION_NAME, SUBPARTITION_NAME)"
                ))?;
                if said != counted {
                    return failed("table_rows", None, format!("TABLE_ROWS of {leaf} is {said}, there are {counted}"));
                }
            }
            united.extend(rows);
        }
        for column in partitioning.columns() {
            self.check_pruning(column)?;
        }
        united.sort();
        if united != all {
            let detail = format!("{}\n{}", only_in(&united, all), only_in(all, &united));
            return failed("united", None, format!("the rows of all partitions are not those of the table:\n{detail}"));
        }
        Ok(())
    }

    /// How many rows each simple condition on a column finds: of `p` one by one, of `t` all at once, without an index.
    fn check_pruning(&mut self, column: usize) -> Held {
        let column = self.table.columns[column].clone();
        let literals = column.kind.domain().iter();
        let conditions: Vec<String> = literals
            .flat_map(|literal| PROBES.iter().map(move |probe| (probe, literal)))
            .map(|(probe, literal)| format!("{} {probe} {literal}", column.name))
            .collect();
        let sums: Vec<String> = conditions.iter().map(|of| format!("COALESCE(SUM({of}), 0)")).collect();
        let expected = self.read(&format!("SELECT {} FROM t", sums.join(", ")))?;
        for (condition, expected) in conditions.iter().zip(&expected[0]) {
            let sql = format!("SELECT COUNT(*) FROM p WHERE {condition}");
            let counted = self.count(&sql)?.to_string();
            if counted != cell(expected) {
                return failed("pruning", None, format!("{sql}\n{counted} in the place of {}", cell(expected)));
            }
        }
        Ok(())
    }
}

const PROBES: &[&str] = &["=", "<", "<=", ">", ">="];

/// For people.
fn only_in(rows: &[Row], others: &[Row]) -> String {
    let mut left = others.to_vec();
    let mut only = Vec::new();
    for row in rows {
        match left.iter().position(|other| other == row) {
            Some(at) => drop(left.swap_remove(at)),
            None => only.push(row.iter().map(cell).collect::<Vec<_>>().join(" | ")),
        }
    }
    only.truncate(8);
    format!("  {} rows, only here: {only:?}", rows.len())
}
