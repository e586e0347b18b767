//! Counting a statement when it has ended: for its digest, and for what its session does by kinds of statements.
//!
//! A statement that ran by a plan with a digest is counted as soon as it has run ([`Session::count_plan`]). Others are
//! counted at their end by their text; a session remembers the digests of the last short texts, since what is not
//! planned is mostly BEGIN, COMMIT and SET. A text that cannot be read has no digest.

use super::data::DataKind;
use super::digests::{Digest, Ran};
use super::plan_cache::CachedPlan;
use super::profiles::Stages;
use super::session::Session;
use super::status::Counter;
use crate::parse;
use crate::physical::facts::Facts;
use rauk_types::result::Completion;
use std::sync::Arc;

/// Texts whose digests a session remembers, and how long they are at most.
const REMEMBERED: usize = 8;
const SHORT: usize = 256;
/// Of a longer text its beginning is read: the bulk INSERTs of a dump.
const MAX_READ: usize = 16 * 1024;

/// What is known of the statement that runs.
#[derive(Default)]
pub(crate) struct Running {
    /// In microseconds of the engine's clock.
    began: i64,
    /// How long the session had waited for locks before, in microseconds.
    locked_before: u64,
    pub kind: Option<Counter>,
    pub facts: Facts,
    /// Rows that it has read.
    pub examined: u64,
    /// Its digest has counted it.
    counted: Option<Ran>,
    remembered: Vec<(Box<str>, Arc<Digest>)>,
    /// Of the digests when these were remembered.
    generation: u32,
    pub stages: Stages,
}

impl Running {
    pub fn begin(&mut self, now: i64, locked_before: u64) {
        self.locked_before = locked_before;
        (self.began, self.kind, self.examined, self.counted) = (now, None, 0, None);
        self.facts = Facts::default();
    }
}

/// Statements that may have passwords in them: nobody is shown their text.
fn is_secret(kind: Counter) -> bool {
    use Counter::{AlterUser, CreateUser, ExecuteSql, Grant, PrepareSql, SetOption, SetPassword};
    matches!(kind, AlterUser | CreateUser | ExecuteSql | Grant | PrepareSql | SetOption | SetPassword)
}

impl Session {
    /// How long the session has waited for locks, in microseconds.
    pub(crate) fn locked(&self) -> u64 {
        u64::try_from(self.process.interrupt.waited().as_micros()).unwrap_or(u64::MAX)
    }

    /// The digest of a text that can be read.
    pub(crate) fn find_digest(&self, sql: &str) -> Arc<Digest> {
        let text = parse::digest_beginning(sql, self.mode(), MAX_READ);
        self.engine.digests.find(self.context.current_database.as_deref(), &text)
    }

    /// A plan has run; `None`: it failed.
    pub(crate) fn count_plan(&mut self, plan: &CachedPlan, completion: Option<&Completion>) {
        self.run.kind = Some(plan.kind.counter());
        self.run.facts = plan.facts;
        let Some(digest) = plan.digest.get() else { return };
        let now = self.engine.now_micros();
        let gives_rows = !plan.plan.columns.is_empty();
        let ran = Ran {
            micros: (now - self.run.began).max(0) as u64,
            locked: self.locked() - self.run.locked_before,
            failed: completion.is_none(),
            warnings: self.context.warning_count,
            affected: completion.map_or(0, |completion| completion.affected_rows),
            sent: match completion {
                Some(_) if plan.kind == DataKind::Select && gives_rows => self.context.found_rows,
                _ => 0,
            },
            examined: self.run.examined,
            facts: plan.facts,
        };
        digest.note(self.process.id, &ran, now, || self.process.info());
        self.run.counted = Some(ran);
    }

    /// A statement has ended.
    pub(crate) fn count_statement(&mut self, sql: &str, failed: bool) {
        let kind = self.run.kind;
        let ran = match self.run.counted.take() {
            Some(ran) => Ran { failed, ..ran },
            None => self.count_text(sql, failed),
        };
        self.note_end();
        self.end_profile(kind.is_none_or(|kind| !is_secret(kind)).then_some(sql));
        // A text that has done nothing is a comment.
        if kind.is_some() || failed {
            self.process.kinds.note(kind, &ran);
        }
    }

    fn count_text(&mut self, sql: &str, failed: bool) -> Ran {
        let now = self.engine.now_micros();
        let Running { began, kind, facts, examined, .. } = self.run;
        let selects = kind == Some(Counter::Select) && !failed;
        let ran = Ran {
            micros: (now - began).max(0) as u64,
            locked: self.locked() - self.run.locked_before,
            failed,
            // The error of a statement is the last of its warnings.
            warnings: self.context.warning_count - u64::from(failed && self.context.warning_count > 0),
            affected: u64::try_from(self.context.row_count).unwrap_or(0),
            sent: if selects { self.context.found_rows } else { 0 },
            examined,
            facts,
        };
        if let Some(kind) = kind {
            let digest = self.remembered_digest(sql);
            digest.note(self.process.id, &ran, now, || (!is_secret(kind)).then(|| sql.to_string()));
        }
        ran
    }

    fn remembered_digest(&mut self, sql: &str) -> Arc<Digest> {
        if sql.len() > SHORT {
            return self.find_digest(sql);
        }
        let generation = self.engine.digests.generation();
        if self.run.generation != generation {
            (self.run.generation, self.run.remembered) = (generation, Vec::new());
        }
        let database = self.context.current_database.as_deref();
        let is_it =
            |(text, digest): &&(Box<str>, Arc<Digest>)| **text == *sql && digest.database.as_deref() == database;
        if let Some((_, digest)) = self.run.remembered.iter().find(is_it) {
            return digest.clone();
        }
        let digest = self.find_digest(sql);
        if digest.text.is_some() {
            if self.run.remembered.len() == REMEMBERED {
                self.run.remembered.remove(0);
            }
            self.run.remembered.push((sql.into(), digest.clone()));
        }
        digest
    }
}
