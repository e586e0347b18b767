//! Random tables with partitions beside the same tables without (`crates/differential`): a bounded number, by fixed seeds, on a
//! server that is killed now and then.
//!
//! A failure prints the statements that show it. `RAUK_DIFFERENTIAL_SEEDS=N` runs N seeds.

use rauk_differential::dice::Dice;
use rauk_differential::partitioned::model::Partitioning;
use rauk_differential::partitioned::run::{Run, Trouble};
use rauk_differential::partitioned::step::{Manage, Step, Text, Twin, Which, Write};
use rauk_differential::partitioned::table::Table;
use rauk_differential::partitioned::{self, Plan};
use rauk_differential::run::servers::Rauk;
use std::path::Path;

fn start() -> Rauk {
    Rauk::start_durable(Path::new(env!("CARGO_BIN_EXE_rauk"))).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn tables_with_partitions_have_the_rows_of_their_twins() {
    let seeds = std::env::var("RAUK_DIFFERENTIAL_SEEDS").ok().and_then(|n| n.parse().ok());
    let seeds = seeds.unwrap_or(15);
    let plan = Plan { first_seed: 1000, seeds, steps: 80, limit: None, findings: 3, verbose: false };
    let summary = partitioned::run(&plan, &mut start(), |finding| println!("{finding}"));
    let summary = summary.unwrap_or_else(|error| panic!("{error}"));
    println!("{summary}");
    assert!(summary.findings.is_empty(), "{} differences, printed above", summary.findings.len());
    assert!(summary.compared > seeds * 40, "only {} statements are compared", summary.compared);
    assert!(summary.managed > seeds * 4, "only {} statements manage partitions", summary.managed);
    assert!(summary.crashes > seeds / 2, "only {} crashes", summary.crashes);
}

/// The twin keeps rows that the partitions lose: this is seen.
#[test]
fn a_table_that_differs_from_its_twin_is_found() {
    let mut dice = Dice::new(0, 0);
    let (table, partitioning) = loop {
        let table = Table::random(&mut dice);
        if table.partitionable().is_empty() {
            continue;
        }
        let partitioning = Partitioning::random(&mut dice, &table, 0);
        if partitioning.fits(&table).is_none() {
            break (table, partitioning);
        }
    };
    let mut rauk = start();
    let mut run = Run::begin(&mut rauk, "partitioned", &table, &partitioning).unwrap_or_else(|_| panic!("no tables"));
    let rows = vec![table.row(&mut dice)];
    let text = Text::Rows { before: "INSERT INTO ~".into(), rows, behind: String::new(), only: None };
    let insert = Write { which: Which::Main, text, ignores: false, loose: false, replaces: false };
    assert!(run.step(&Step::Write(insert)).is_ok());
    assert!(run.step(&Step::Crash).is_ok());
    let truncate = Manage {
        sql: "TRUNCATE TABLE ~".into(),
        twin: Twin::Nothing,
        table: table.clone(),
        partitioning: Some(partitioning.clone()),
        misfits: None,
        killed_after: None,
        answers: false,
    };
    match run.step(&Step::Manage(Box::new(truncate))) {
        Err(Trouble::Failed(failure)) => assert_eq!(failure.kind, "rows", "{}", failure.detail),
        _ => panic!("the rows that the twin alone has are not seen"),
    }
}
