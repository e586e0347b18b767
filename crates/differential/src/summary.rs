//! What a run has shown, in numbers.

use crate::campaign::{Finding, REFERENCE_LACKS, Verdict};
use crate::compare::Category;
use crate::run::Answers;
use crate::run::outcome::Outcome;
use crate::tree::Statement;
use crate::tree::feature::{ALL, Feature, Features};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};
use std::time::Duration;

#[derive(Default)]
pub struct Summary {
    pub seeds: u64,
    pub time: Duration,
    /// Seeds whose tables Rauk does not support.
    pub schemas_not_supported: u64,
    pub statements: u64,
    /// The same answer on both servers.
    pub same: u64,
    /// Answered by Rauk, and nobody to compare with.
    pub alone: u64,
    /// MariaDB's errors where it is no judge, by their code.
    pub reference_errors: BTreeMap<String, u64>,
    pub not_supported: u64,
    /// By Rauk's message.
    pub messages: BTreeMap<String, u64>,
    pub known: BTreeMap<&'static str, u64>,
    pub checks: BTreeMap<&'static str, u64>,
    features: BTreeMap<Feature, Counts>,
    pub findings: Vec<Finding>,
    /// Differences that look like a finding before them.
    pub repeated: u64,
    errors: BTreeMap<(Category, String), u32>,
    shapes: BTreeSet<(Category, String)>,
}

/// Findings with the same pair of error codes and the same message, but for names.
const SAME_ERROR: u32 = 2;

#[derive(Default)]
struct Counts {
    statements: u64,
    compared: u64,
    not_supported: u64,
}

impl Summary {
    pub fn count(&mut self, statement: &Statement, verdict: &Verdict, answers: &Answers) {
        self.statements += 1;
        if let (Verdict::Alone, Outcome::Error { code, message }) = (verdict, &answers.reference)
            && REFERENCE_LACKS.contains(code)
        {
            *self.reference_errors.entry(format!("{code} {}", shape(message))).or_default() += 1;
        }
        match verdict {
            Verdict::Same => self.same += 1,
            Verdict::Alone => self.alone += 1,
            Verdict::NotSupported(message) => {
                self.not_supported += 1;
                *self.messages.entry(quoted(message)).or_default() += 1;
            }
            Verdict::Known(kind) => *self.known.entry(kind.name).or_default() += 1,
            Verdict::Different(_) => {}
        }
        for feature in Features::of(statement).iter() {
            let counts = self.features.entry(feature).or_default();
            counts.statements += 1;
            match verdict {
                Verdict::Same | Verdict::Known(_) | Verdict::Different(_) => counts.compared += 1,
                Verdict::NotSupported(_) => counts.not_supported += 1,
                Verdict::Alone => {}
            }
        }
    }

    /// Rauk's error was found often enough: it is counted and not shrunk again.
    pub fn is_repeated(&mut self, category: Category, rauk: &Outcome) -> bool {
        let Outcome::Error { message, .. } = rauk else { return false };
        // The place of a mistake of syntax is the statement's own text.
        let message = message.split(" near ").next().unwrap_or(message);
        let found = self.errors.entry((category, shape(message))).or_default();
        *found += 1;
        let is_repeated = *found > SAME_ERROR;
        self.repeated += u64::from(is_repeated);
        is_repeated
    }

    /// No finding before it has the same statement, but for names and literals.
    pub fn is_new(&mut self, finding: &Finding) -> bool {
        let is_new = self.shapes.insert((finding.category, shape(&finding.statement)));
        self.repeated += u64::from(!is_new);
        is_new
    }

    /// Statements with the feature that both servers answered.
    pub fn compared(&self, feature: Feature) -> u64 {
        self.features.get(&feature).map_or(0, |counts| counts.compared)
    }
}

/// A text without what is in quotes, and with one sign for each name and number.
fn shape(text: &str) -> String {
    let outside: String = text.split('\'').step_by(2).collect::<Vec<_>>().join("?");
    let word = |word: &str| match word {
        "" => String::new(),
        word if word.chars().all(|c| c.is_uppercase() || c == '_') => word.to_string(),
        _ => "x".to_string(),
    };
    let mut shape = String::new();
    let mut start = 0;
    for (at, c) in outside.char_indices().filter(|(_, c)| !c.is_alphanumeric() && *c != '_') {
        shape += &word(&outside[start..at]);
        shape.push(c);
        start = at + c.len_utf8();
    }
    shape + &word(&outside[start..])
}

/// The part of the message between quotes: what is not supported.
fn quoted(message: &str) -> String {
    message.split('\'').nth(2).or(message.split('\'').nth(1)).unwrap_or(message).trim().to_string()
}

impl Display for Summary {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let known: u64 = self.known.values().sum();
        writeln!(
            f,
            "{} statements of {} seeds in {:.1} s: {} the same, {} not supported by Rauk, {} that MariaDB does not judge, {known} known differences of {} kinds, {} findings",
            self.statements,
            self.seeds,
            self.time.as_secs_f64(),
            self.same,
            self.not_supported,
            self.alone,
            self.known.len(),
            self.findings.len()
        )?;
        if self.repeated > 0 {
            writeln!(f, "{} differences repeat a finding", self.repeated)?;
        }
        if self.schemas_not_supported > 0 {
            writeln!(f, "{} seeds whose tables Rauk does not support", self.schemas_not_supported)?;
        }
        writeln!(f, "\n{:20} {:>10} {:>10} {:>14}", "feature", "statements", "compared", "not supported")?;
        for (feature, name) in ALL {
            let none = Counts::default();
            let counts = self.features.get(feature).unwrap_or(&none);
            writeln!(f, "{name:20} {:>10} {:>10} {:>14}", counts.statements, counts.compared, counts.not_supported)?;
        }
        list(f, "\nmetamorphic checks that held or were found", self.checks.iter().map(|(name, n)| (*name, *n)))?;
        list(f, "\nknown kinds of difference", self.known.iter().map(|(name, n)| (*name, *n)))?;
        list(
            f,
            "\nerrors of MariaDB where it is no judge",
            self.reference_errors.iter().map(|(name, n)| (name.as_str(), *n)),
        )?;
        list(f, "\nnot supported, in Rauk's words", self.messages.iter().map(|(name, n)| (name.as_str(), *n)))
    }
}

fn list<'a>(f: &mut Formatter<'_>, title: &str, rows: impl Iterator<Item = (&'a str, u64)>) -> std::fmt::Result {
    let mut rows: Vec<(&str, u64)> = rows.collect();
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    writeln!(f, "{title}:")?;
    for (name, n) in rows.iter().take(40) {
        writeln!(f, "{n:>8}  {name}")?;
    }
    Ok(())
}

impl Display for Finding {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let number = self.number.map_or("tables".to_string(), |n| format!("statement {n}"));
        writeln!(f, "== seed {} {number}: {}", self.seed, self.category)?;
        writeln!(f, "{}", self.statement)?;
        writeln!(f, "   MariaDB: {}", self.reference)?;
        writeln!(f, "   Rauk:    {}", self.rauk)?;
        writeln!(f, "-- golden file:\n{}", self.script)
    }
}
