//! Second opinions: the reference asked the same thing in other ways.
//!
//! An answer must not depend on the plan. Where MariaDB contradicts itself when its optimizer is switched otherwise,
//! or when the same rows stand in tables without indexes, and then says what Rauk says, its first answer is the
//! plan's fault. That is no list of MariaDB's faults but a question to MariaDB itself, so that it hides nothing that
//! Rauk alone gets wrong.
//!
//! The copies are made when they are first asked for, and again after the rows have changed. They have no indexes but
//! those that a change needs: unique ones, and all where there are foreign keys. None is a HASH, which MariaDB looks into
//! last and not at all when a row is changed because another one was there. A change runs in a transaction that is
//! rolled back. What is left out: faults that MariaDB has under each of its plans.

use super::{Answers, Pair, through_view};
use crate::run::outcome::{Outcome, Row};
use crate::schema::Schema;
use crate::tree::visit::{NodeMut, walk_mut};
use crate::tree::{From, Statement};

/// The database of the copies.
const COPIES: &str = "differential_copies";

/// Ways to plan: without rewriting, with rewriting of another kind, as usual.
const PLANS: &[&str] = &[
    "SET optimizer_switch = 'materialization=off,semijoin=off,derived_merge=off,condition_pushdown_for_derived=off,\
     condition_pushdown_for_subquery=off,condition_pushdown_from_having=off,split_materialized=off,index_merge=off,\
     subquery_cache=off,exists_to_in=off,table_elimination=off,outer_join_with_cache=off', join_cache_level = 0",
    "SET optimizer_switch = 'default,in_to_exists=off,materialization=on,semijoin=off,derived_merge=off,\
     optimize_join_buffer_size=off', join_cache_level = 8",
    "SET optimizer_switch = 'default', join_cache_level = 2",
];

/// Which keys the copies have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    None,
    Unique,
    /// With foreign keys.
    All,
}

impl Pair {
    /// There is a MariaDB that is not compared with itself.
    pub fn has_reference_beside(&self) -> bool {
        self.rauk.is_some()
    }

    /// What the reference says to the statement by other plans, each beside Rauk's first answer.
    pub fn by_other_plans(&mut self, schema: &Schema, statement: &Statement, first: &Answers) -> Vec<Answers> {
        if self.connect().is_err() {
            return Vec::new();
        }
        let mut found = self.opinions(statement, first, &PLANS[..2]);
        let related = schema.tables.iter().any(|table| !table.foreign.is_empty());
        let keys = match statement {
            Statement::Query(_) | Statement::View { .. } => Keys::None,
            _ if related => Keys::All,
            _ => Keys::Unique,
        };
        if self.copy(schema, keys) {
            let mut plain = statement.clone();
            walk_mut(&mut plain, &mut |node| {
                if let NodeMut::From(From::Table { hint, .. }) = node {
                    hint.clear();
                }
            });
            self.second.run(&format!("USE {COPIES}"));
            found.extend(self.opinions_here(&plain, first, PLANS));
        }
        found
    }

    /// What the reference says to another statement, by its usual plan and by one that rewrites little.
    pub fn in_other_words(&mut self, statement: &Statement, first: &Answers) -> Vec<Answers> {
        if self.connect().is_err() {
            return Vec::new();
        }
        self.opinions(statement, first, &[PLANS[2], PLANS[0]])
    }

    /// What the reference says when its sql_mode lets dates be zero.
    pub fn with_zero_dates(&mut self, statement: &Statement, first: &Answers) -> Vec<Answers> {
        if self.connect().is_err() {
            return Vec::new();
        }
        self.second.run("SET @strict = @@sql_mode");
        // Without the mode that is about parts of dates too.
        self.second.run("SET sql_mode = REPLACE(@@sql_mode, 'NO_ZERO_DATE', '')");
        let mut said = self.opinions(statement, first, &PLANS[2..]);
        self.second.run("SET sql_mode = REPLACE(@@sql_mode, 'NO_ZERO_IN_DATE', '')");
        said.extend(self.opinions(statement, first, &[PLANS[2], PLANS[0]]));
        if matches!(&first.reference, Outcome::Error { message, .. } if message.contains("'0000-00-00")) {
            // Of a function of one it warns in any mode, which a strict change refuses.
            self.second.run("SET sql_mode = REPLACE(@@sql_mode, 'STRICT_TRANS_TABLES', '')");
            said.extend(self.opinions(statement, first, &PLANS[2..]));
        }
        self.second.run("SET sql_mode = @strict");
        said
    }

    /// Codes that the reference warns of in a change, as it is or `lenient`, passing over errors of data (IGNORE); and
    /// its error without foreign keys.
    pub fn warned_of(&mut self, statement: &Statement, lenient: bool) -> Vec<u16> {
        let is_lenient = lenient;
        let mut lenient = statement.clone();
        if self.connect().is_err() || is_lenient && !ignore(&mut lenient) {
            return Vec::new();
        }
        let database = self.reference.database;
        let text = |statement: &Statement| match statement {
            Statement::ThroughView { change, .. } => change.to_string(),
            other => other.to_string(),
        };
        let (original, change, frame) = (text(statement), text(&lenient), statement.frame());
        let session = &mut self.second;
        session.run(&format!("USE {database}"));
        session.run(PLANS[2]);
        if let Some((before, _)) = &frame {
            session.run(before);
        }
        session.run("BEGIN");
        session.run(&change);
        let warnings = session.run("SHOW WARNINGS");
        session.run("ROLLBACK");
        session.run("SET foreign_key_checks = 0");
        session.run("BEGIN");
        let unrelated = session.run(&original).error_code();
        session.run("ROLLBACK");
        session.run("SET foreign_key_checks = 1");
        if let Some((_, behind)) = &frame {
            session.run(behind);
        }
        let code = |row: &Row| String::from_utf8_lossy(row.get(1)?.as_ref()?).parse().ok();
        warnings.rows().unwrap_or_default().iter().filter_map(code).chain(unrelated).collect()
    }

    fn opinions(&mut self, statement: &Statement, first: &Answers, plans: &[&str]) -> Vec<Answers> {
        let database = self.reference.database;
        self.second.run(&format!("USE {database}"));
        self.opinions_here(statement, first, plans)
    }

    fn opinions_here(&mut self, statement: &Statement, first: &Answers, plans: &[&str]) -> Vec<Answers> {
        let opinion = |plan: &&str| {
            self.second.run(plan);
            self.opinion(statement, first)
        };
        plans.iter().map(opinion).collect()
    }

    fn opinion(&mut self, statement: &Statement, first: &Answers) -> Answers {
        let session = &mut self.second;
        let mut contents = Vec::new();
        let reference = match statement {
            Statement::Query(query) => session.run(&query.to_string()),
            Statement::View { twice, .. } => through_view(session, &statement.to_string(), *twice),
            _ => {
                let frame = statement.frame();
                let sql = match statement {
                    Statement::ThroughView { change, .. } => change.to_string(),
                    _ => statement.to_string(),
                };
                if let Some((before, behind)) = &frame {
                    let made = session.run(before);
                    if made.error_code().is_some() {
                        session.run(behind);
                        return Answers { reference: made, rauk: first.rauk.clone(), contents };
                    }
                }
                session.run("BEGIN");
                let outcome = session.run(&sql);
                for (table, _, rauk) in &first.contents {
                    contents.push((table.clone(), session.run(&format!("SELECT * FROM {table}")), rauk.clone()));
                }
                session.run("ROLLBACK");
                if let Some((_, behind)) = &frame {
                    session.run(behind);
                }
                outcome
            }
        };
        Answers { reference, rauk: first.rauk.clone(), contents }
    }

    /// The tables with these keys, none of them by HASH; whether that is done.
    fn copy(&mut self, schema: &Schema, keys: Keys) -> bool {
        if self.copied == Some(keys) {
            return true;
        }
        let done = |outcome: Outcome| matches!(outcome, Outcome::Done { .. });
        let source = self.reference.database;
        let session = &mut self.second;
        self.copied = None;
        // Rows may have zero dates.
        session.run("SET @strict = @@sql_mode, sql_mode = ''");
        let made = done(session.run(&format!("DROP DATABASE IF EXISTS {COPIES}")))
            && done(session.run(&format!("CREATE DATABASE {COPIES} COLLATE utf8mb4_unicode_ci")))
            && done(session.run(&format!("USE {COPIES}")))
            && schema.tables.iter().all(|table| {
                let mut plain = table.clone();
                plain.keys.retain(|key| match keys {
                    Keys::None => false,
                    Keys::Unique => key.primary || key.unique,
                    Keys::All => true,
                });
                plain.keys.iter_mut().for_each(|key| key.hash = false);
                if keys != Keys::All {
                    plain.foreign.clear();
                }
                let columns: Vec<&str> = plain.base().iter().map(|column| column.name.as_str()).collect();
                let columns = columns.join(", ");
                let name = &table.name;
                done(session.run(&plain.create()))
                    && done(
                        session.run(&format!("INSERT INTO {name} ({columns}) SELECT {columns} FROM {source}.{name}")),
                    )
            });
        session.run("SET sql_mode = @strict");
        self.copied = made.then_some(keys);
        made
    }
}

/// Makes a change one that passes over errors of data; `false`: it is none.
fn ignore(statement: &mut Statement) -> bool {
    match statement {
        Statement::ThroughView { change, .. } => ignore(change),
        Statement::Insert { verb, .. } => {
            *verb = "INSERT IGNORE";
            true
        }
        Statement::Update { ignore, .. } | Statement::Delete { ignore, .. } => {
            *ignore = true;
            true
        }
        Statement::Query(_) | Statement::View { .. } => false,
    }
}
