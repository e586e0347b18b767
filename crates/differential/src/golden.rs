//! A case as a golden file of `crates/rauk/tests/conformance`: what is printed can be pasted there.
//!
//! The answers are the reference's. A change is followed by a query of the tables that it names.

use crate::run::Answers;
use crate::run::outcome::{Outcome, cell};
use crate::run::read_view;
use crate::shrink::Setup;
use crate::tree::Statement;
use crate::tree::print::{OUTER_VIEW, VIEW};

pub fn script(setup: &Setup, statement: &Statement, answers: &Answers) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut record = |head: String, body: String| lines.push(format!("{head}\n{body}\n"));
    for table in &setup.schema.tables {
        record("statement count 0".into(), table.create());
        if let Some(insert) = table.insert(&table.rows) {
            record(format!("statement count {}", table.rows.len()), insert);
        }
    }
    for change in &setup.history {
        record("statement ok".into(), change.to_string());
    }
    match statement {
        Statement::View { query, twice, .. } => {
            record("statement count 0".into(), statement.to_string());
            let reads = read_view(*twice);
            if *twice {
                record("statement count 0".into(), reads[0].clone());
            }
            let last = reads.last().expect("the view is read");
            record(head(&answers.reference), format!("{last}{}", tail(&answers.reference)));
            if *twice {
                record("statement count 0".into(), format!("DROP VIEW {OUTER_VIEW}"));
            }
            record("statement count 0".into(), format!("DROP VIEW {VIEW}"));
            record(head(&answers.reference), format!("{query}{}", tail(&answers.reference)));
        }
        Statement::ThroughView { change, .. } => {
            let (before, behind) = statement.frame().expect("there is a view");
            record("statement count 0".into(), before);
            record(head(&answers.reference), format!("{change}{}", tail(&answers.reference)));
            record("statement count 0".into(), behind);
        }
        _ => record(head(&answers.reference), format!("{statement}{}", tail(&answers.reference))),
    }
    for (table, reference, _) in &answers.contents {
        record(head(reference), format!("SELECT * FROM {table}{}", tail(reference)));
    }
    lines.join("\n")
}

fn head(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Rows { columns, .. } => format!("query {} rowsort", "T".repeat(columns.len())),
        Outcome::Done { affected, .. } => format!("statement count {affected}"),
        Outcome::Error { code, .. } => format!("statement error {code}"),
        Outcome::Lost(_) => "statement ok".into(),
    }
}

fn tail(outcome: &Outcome) -> String {
    let Outcome::Rows { rows, .. } = outcome else { return String::new() };
    let mut rows: Vec<String> = rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" ")).collect();
    rows.sort();
    let mut text = String::from("\n----");
    for row in rows {
        text += &format!("\n{row}");
    }
    text
}
