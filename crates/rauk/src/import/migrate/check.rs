//! `rauk import --check`: everything of a dump or of a running server that Rauk does not take, at once.
//!
//! Statements are given to a server of this program that exists for the check alone ([`super::scratch`]). Definitions stay
//! in it until it goes; rows are inserted and rolled back, so a dump may be larger than memory. Foreign keys and unique
//! keys are therefore not checked between statements. Of a running server the definitions are checked, not its rows.

use super::findings::Findings;
use super::scratch::Scratch;
use super::source::Source;
use super::{accounts, create_views, run_item};
use crate::import::literal::quoted;
use crate::import::options::Options;
use crate::import::server::{self, Session};
use crate::out;
use mysql::Conn;
use mysql::prelude::Queryable;
use std::collections::HashSet;
use std::path::Path;

pub fn server(options: &Options, url: &str) -> Result<(), String> {
    let schema = Source::connect(url, 1)?.schema;
    let scratch = Scratch::start()?;
    let mut target = scratch.place.session(&super::session())?;
    let mut findings = Findings::new();
    for database in &schema.databases {
        run_item(&mut target, None, database, &mut findings)?;
    }
    for table in &schema.tables {
        run_item(&mut target, Some(&table.database), &table.item, &mut findings)?;
    }
    create_views(&mut target, &schema.views, &mut findings)?;
    for other in &schema.others {
        run_item(&mut target, Some(&other.database), &other.item, &mut findings)?;
    }
    let mut users = String::new();
    if options.users {
        accounts::copy(&schema.accounts, &mut target, &mut findings)?;
        users = format!(", {} users", schema.accounts.len());
    }
    let checked = format!(
        "checked: {} tables, {} views, {} routines, triggers, events and sequences{users}; rows were not checked",
        schema.tables.len(),
        schema.views.len(),
        schema.others.len()
    );
    told(&findings, &checked)
}

pub fn dump(options: &Options, path: &Path) -> Result<(), String> {
    let scratch = Scratch::start()?;
    let session = Session { zero_dates: true, skip_foreign_keys: true, time_zone: None };
    let mut target = scratch.place.session(&session)?;
    if let Some(database) = &options.database {
        use_database(&mut target, database)?;
    }
    let mut check = DumpCheck { target, findings: Findings::new(), refused: HashSet::new(), statements: 0 };
    let limit = server::packet(&mut check.target)?;
    super::dump::each(path, limit, |line, statement| {
        check.statement(&format!("{}:{line}", path.display()), statement)
    })?;
    let checked = format!("checked: {} statements", check.statements);
    told(&check.findings, &checked)
}

fn told(findings: &Findings, checked: &str) -> Result<(), String> {
    for line in findings.lines() {
        out::line(format_args!("{line}"))?;
    }
    out::line(format_args!("{checked}"))?;
    findings.outcome()
}

fn use_database(target: &mut Conn, name: &str) -> Result<(), String> {
    let name = quoted(name);
    let made = target.query_drop(format!("CREATE DATABASE IF NOT EXISTS {name}"));
    made.and_then(|()| target.query_drop(format!("USE {name}"))).map_err(|e| server::told(&e))
}

struct DumpCheck {
    target: Conn,
    findings: Findings,
    /// Tables whose definitions were refused: that their rows have no table is no news.
    refused: HashSet<String>,
    statements: u64,
}

impl DumpCheck {
    fn statement(&mut self, place: &str, statement: super::dump::Statement<'_>) -> Result<(), String> {
        self.statements += 1;
        let text = match statement {
            // The dump may be of a database that it does not create.
            super::dump::Statement::Use(name) => return use_database(&mut self.target, name),
            super::dump::Statement::Text(text) => text,
            super::dump::Statement::Refused(reason) => {
                self.findings.add_text(place, reason);
                return Ok(());
            }
        };
        let words = words(text);
        let first = words.first().map(String::as_str);
        let result = match first {
            Some("INSERT" | "REPLACE") => {
                if table_of(text, "INTO").is_some_and(|name| self.refused.contains(&name)) {
                    return Ok(());
                }
                let inserted = self.target.query_drop("START TRANSACTION").and_then(|()| self.target.query_drop(text));
                // The transaction may be gone with the error.
                let undone = self.target.query_drop("ROLLBACK");
                inserted.and(undone)
            }
            _ => self.target.query_drop(text),
        };
        match result {
            Ok(()) => Ok(()),
            Err(error) if server::code(&error).is_some() => {
                if first == Some("CREATE")
                    && let Some(name) = table_of(text, "TABLE")
                {
                    self.refused.insert(name);
                }
                // A dump without USE, and without --database.
                if server::code(&error) == Some(1046) {
                    use_database(&mut self.target, "checked")?;
                    return self.statement(place, super::dump::Statement::Text(text));
                }
                let missing =
                    server::code(&error) == Some(1146) && self.refused.iter().any(|name| text.contains(name.as_str()));
                if !missing {
                    let shown: String = text.chars().take(60).collect();
                    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
                    self.findings.add(&format!("{place}: {shown} …"), &error);
                }
                Ok(())
            }
            Err(error) => Err(format!("{place}: {}", server::told(&error))),
        }
    }
}

/// The first words, in capitals, without comments that a dump puts around them (`/*!40101 SET …`).
pub fn words(text: &str) -> Vec<String> {
    let begin = text.trim_start();
    let begin = begin.strip_prefix("/*!").map_or(begin, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    begin.split_whitespace().take(4).map(str::to_uppercase).collect()
}

/// The name behind a word, without its database and quotes.
fn table_of(text: &str, word: &str) -> Option<String> {
    let head: String = text.chars().take(400).collect();
    let mut words = head.split_whitespace();
    words.find(|w| w.eq_ignore_ascii_case(word))?;
    let mut name = words.next()?;
    if name.eq_ignore_ascii_case("IF") {
        name = words.nth(2)?;
    }
    let name = name.split('(').next()?;
    Some(name.rsplit('.').next()?.trim_matches('`').to_string()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_statements() {
        assert_eq!(table_of("CREATE TABLE IF NOT EXISTS `d`.`a`(x INT)", "TABLE").as_deref(), Some("a"));
        assert_eq!(table_of("INSERT INTO `b` VALUES (1)", "INTO").as_deref(), Some("b"));
        assert_eq!(words("/*!50001 create view x"), ["CREATE", "VIEW", "X"]);
    }
}
