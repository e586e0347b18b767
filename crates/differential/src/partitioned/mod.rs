//! Random partitioned tables, each beside a twin without partitions: both always have the same rows.
//!
//! A seed draws a table ([`table`]) and how it is partitioned ([`model`]), then step by step reads and writes
//! ([`statement`]), statements that manage partitions ([`manage`]), transactions, and crashes of the server. A [`step`]
//! is data: [`run`] does it on the server and compares, and a failure is repeated with fewer steps ([`shrink`]). The
//! judge is Rauk itself on a table without partitions, and what is known of each partition's values; no other server is
//! needed.
//!
//! Left out: AUTO_INCREMENT (the two tables count apart), EXCHANGE … WITHOUT VALIDATION of rows that belong elsewhere,
//! UPDATE IGNORE where rows may have no partition, more than one session.

pub mod manage;
pub mod model;
pub mod run;
pub mod shrink;
pub mod statement;
pub mod step;
pub mod table;

use crate::dice::Dice;
use crate::run::Error;
use crate::run::servers::Rauk;
use model::Partitioning;
use run::{Failure, Run, Trouble};
use statement::Drawing;
use std::fmt;
use std::time::{Duration, Instant};
use step::{Step, Text, Which, Write};
use table::Table;

pub struct Plan {
    pub first_seed: u64,
    pub seeds: u64,
    /// Steps of each seed.
    pub steps: u64,
    /// No further seed is begun after this time.
    pub limit: Option<Duration>,
    /// The run ends with so many findings.
    pub findings: usize,
    /// Every step is printed before it runs.
    pub verbose: bool,
}

/// A failure with the statements that lead to it.
pub struct Finding {
    pub seed: u64,
    pub number: u64,
    pub failure: Failure,
    pub script: Vec<String>,
}

#[derive(Default)]
pub struct Summary {
    pub seeds: u64,
    /// Reads and writes that both tables were asked.
    pub compared: u64,
    /// Statements that manage partitions.
    pub managed: u64,
    pub crashes: u64,
    pub findings: Vec<Finding>,
    pub time: Duration,
}

/// Rows above which more is deleted than inserted.
const MANY_ROWS: usize = 90;

/// Then another server begins: the catalog's journal grows with each ALTER, and recovery reads it.
const SEEDS_OF_A_DIRECTORY: u64 = 20;

const DATABASE: &str = "partitioned";

/// On a server that is started durable ([`Rauk::start_durable`]).
pub fn run(plan: &Plan, rauk: &mut Rauk, mut tell: impl FnMut(&Finding)) -> Result<Summary, Error> {
    let begin = Instant::now();
    let mut summary = Summary::default();
    for seed in plan.first_seed..plan.first_seed + plan.seeds {
        if plan.limit.is_some_and(|limit| begin.elapsed() > limit) || summary.findings.len() >= plan.findings {
            break;
        }
        if let Some(finding) = run_seed(plan, seed, rauk, &mut summary)? {
            tell(&finding);
            summary.findings.push(finding);
        }
        summary.seeds += 1;
        if summary.seeds % SEEDS_OF_A_DIRECTORY == 0 {
            rauk.restart()?;
        }
    }
    summary.time = begin.elapsed();
    Ok(summary)
}

fn run_seed(plan: &Plan, seed: u64, rauk: &mut Rauk, summary: &mut Summary) -> Result<Option<Finding>, Error> {
    let mut dice = Dice::new(seed, 0);
    let table = Table::random(&mut dice);
    let table = with_partitionable(table);
    let partitioning = Partitioning::random(&mut dice, &table, 0);
    let mut steps: Vec<Step> = Vec::new();
    let mut run = match Run::begin(rauk, DATABASE, &table, &partitioning) {
        Ok(run) => run,
        Err(Trouble::Server(error)) => return Err(error),
        Err(Trouble::Failed(failure)) => {
            let script = vec![format!("{} {};", table.create("p", true), partitioning.clause(&table))];
            return Ok(Some(Finding { seed, number: 0, failure, script }));
        }
    };
    for number in 0..plan.steps {
        let step = draw(&run, &mut Dice::new(seed, 1 + number));
        if plan.verbose {
            eprintln!("{seed}:{number} {step:?}");
        }
        summary.managed += u64::from(matches!(step, Step::Manage(_) | Step::Exchange(_)));
        summary.crashes += u64::from(crashes(&step));
        steps.push(step);
        match run.step(steps.last().expect("one was drawn")) {
            Ok(()) => {}
            Err(Trouble::Server(error)) => return Err(error),
            Err(Trouble::Failed(failure)) => {
                let script = std::mem::take(&mut run.log);
                summary.compared += run.compared;
                drop(run);
                let whole = Finding { seed, number, failure, script };
                return Ok(Some(shrunk(rauk, &table, &partitioning, steps, whole)));
            }
        }
    }
    summary.compared += run.compared;
    run.end();
    Ok(None)
}

/// Rows can be partitioned by some column: a unique key without one goes.
fn with_partitionable(mut table: Table) -> Table {
    if table.partitionable().is_empty() {
        table.uniques.clear();
    }
    table
}

fn crashes(step: &Step) -> bool {
    match step {
        Step::Crash => true,
        Step::Manage(manage) => manage.killed_after.is_some(),
        Step::Exchange(exchange) => exchange.killed_after.is_some(),
        _ => false,
    }
}

/// The next step, of what is there now.
fn draw(run: &Run<'_>, dice: &mut Dice) -> Step {
    let (table, partitioning) = (&run.table, run.partitioning.as_ref());
    let kind = dice.below(100);
    if run.in_transaction && kind < 18 {
        let sql = ["COMMIT", "ROLLBACK", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO SAVEPOINT s"][dice.below(5)];
        // There is a savepoint of this name in every transaction that is begun here.
        return Step::Transaction(sql.into());
    }
    if kind < 1 {
        return Step::Crash;
    }
    if kind < 15 && (run.rows > 5 || dice.chance(0.3)) {
        return manage::step(dice, table, partitioning);
    }
    let mut drawing = Drawing { dice, table, partitioning };
    match kind {
        15..17 => Step::Transaction("BEGIN".into()),
        17..20 => drawing.insert(Which::Other),
        20..22 if let Some(text) = manage::fill(&mut drawing) => Step::Write(Write {
            which: Which::Other,
            text: Text::Plain(text),
            ignores: true,
            loose: false,
            replaces: false,
        }),
        22 => Step::Write(Write {
            which: Which::Other,
            text: Text::Plain(format!("DELETE FROM {}", step::MARK)),
            ignores: false,
            loose: false,
            replaces: false,
        }),
        23..60 if run.rows < MANY_ROWS => match run.rows < 12 {
            true => drawing.insert(Which::Main),
            false => drawing.write(),
        },
        23..60 => Step::Write(Write {
            which: Which::Main,
            text: Text::Plain(format!("DELETE FROM {} ORDER BY {} LIMIT 40", step::MARK, table.whole_order())),
            ignores: false,
            loose: false,
            replaces: false,
        }),
        _ => drawing.query(),
    }
}

fn shrunk(rauk: &mut Rauk, table: &Table, partitioning: &Partitioning, steps: Vec<Step>, whole: Finding) -> Finding {
    let mut best = whole;
    let (kind, code) = (best.failure.kind, best.failure.code);
    shrink::steps(steps, &mut |candidate| match replay(rauk, table, partitioning, candidate) {
        Some((failure, script)) if failure.kind == kind && failure.code == code => {
            (best.failure, best.script) = (failure, script);
            true
        }
        _ => false,
    });
    best
}

/// The failure of these steps, with what was sent up to it.
fn replay(
    rauk: &mut Rauk,
    table: &Table,
    partitioning: &Partitioning,
    steps: &[Step],
) -> Option<(Failure, Vec<String>)> {
    let mut run = Run::begin(rauk, DATABASE, table, partitioning).ok()?;
    for (number, step) in steps.iter().enumerate() {
        match run.step(step) {
            Ok(()) => {}
            // Steps behind the failure are not needed: the candidate without them is tried too.
            Err(Trouble::Failed(failure)) if number + 1 == steps.len() => {
                return Some((failure, std::mem::take(&mut run.log)));
            }
            Err(_) => return None,
        }
    }
    None
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { kind, code, detail } = &self.failure;
        let code = code.map_or(String::new(), |code| format!(" {code}"));
        writeln!(f, "== seed {} step {}: {kind}{code}\n{detail}\nstatements:", self.seed, self.number)?;
        self.script.iter().try_for_each(|sql| writeln!(f, "{sql}"))
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} seeds, {} statements compared, {} that manage partitions, {} crashes, {} findings, {:.1} s",
            self.seeds,
            self.compared,
            self.managed,
            self.crashes,
            self.findings.len(),
            self.time.as_secs_f64()
        )
    }
}
