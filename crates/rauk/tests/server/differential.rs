//! Random statements on this Rauk and on MariaDB (`crates/differential`): a bounded number, by fixed seeds.
//!
//! The seeds are such that nothing differs today. A failure prints a script: if Rauk is wrong, mend it and put the
//! script into `conformance/`; if MariaDB is not MySQL 8 there, add a kind to `crates/differential/src/known/`.
//! `RAUK_DIFFERENTIAL_SEEDS=N` runs N seeds of each plan in the place of its own number.

use rauk_differential::campaign::{self, Plan};
use rauk_differential::run::Pair;
use rauk_differential::summary::Summary;
use rauk_differential::tree::feature::{COMMON, Feature, Features};
use std::path::Path;

fn plan(features: Features, first_seed: u64, seeds: u64, statements: u64) -> Plan {
    let more = std::env::var("RAUK_DIFFERENTIAL_SEEDS").ok().and_then(|n| n.parse().ok());
    Plan {
        first_seed,
        seeds: more.unwrap_or(seeds),
        statements,
        limit: None,
        features,
        findings: 3,
        only: None,
        verbose: false,
        known: false,
    }
}

fn start() -> Pair {
    Pair::start(Path::new(env!("CARGO_BIN_EXE_rauk"))).unwrap_or_else(|error| panic!("{error}"))
}

fn run(pair: &mut Pair, plan: &Plan) -> Summary {
    campaign::run(plan, pair, |finding| println!("{finding}")).unwrap_or_else(|error| panic!("{error}"))
}

fn common() -> Features {
    COMMON.iter().fold(Features::default(), |set, feature| set.with(*feature))
}

fn windows() -> Features {
    use Feature::{Derived, Distinct, Group, Join, Limit, Window};
    [Window, Join, Group, Distinct, Limit, Derived].into_iter().fold(Features::default(), Features::with)
}

#[test]
fn random_statements_have_the_answers_of_mariadb() {
    let mut pair = start();
    let narrow = run(&mut pair, &plan(common(), NARROW_FROM, 8, 60));
    println!("{narrow}");
    assert!(narrow.findings.is_empty(), "{} differences, printed above", narrow.findings.len());
    assert!(narrow.same >= 300, "only {} statements are compared", narrow.same);
    for feature in COMMON {
        assert!(narrow.compared(*feature) >= 5, "hardly any statement has {}", feature.name());
    }
    let windows = run(&mut pair, &plan(windows(), WINDOWS_FROM, 6, 60));
    println!("{windows}");
    assert!(windows.findings.is_empty(), "{} differences, printed above", windows.findings.len());
    assert!(windows.compared(Feature::Window) >= 60, "hardly any statement has windows");
    let wide = run(&mut pair, &plan(Features::all(), WIDE_FROM, 4, 60));
    println!("{wide}");
    assert!(wide.findings.is_empty(), "{} differences, printed above", wide.findings.len());
    assert!(wide.statements >= 150, "only {} statements have run", wide.statements);
}

/// First seeds of runs in which nothing differs.
const NARROW_FROM: u64 = 5003;
const WINDOWS_FROM: u64 = 6013;
const WIDE_FROM: u64 = 4054;

#[test]
fn a_server_that_differs_is_found_and_the_script_is_short() {
    let mut pair = start();
    // Not strict: a wrong value is stored, with a warning.
    pair.ask("SET sql_mode = 'ONLY_FULL_GROUP_BY'");
    let features = Features::default().with(Feature::Insert);
    let summary = run(&mut pair, &Plan { findings: 6, ..plan(features, 0, 20, 60) });
    let finding = summary.findings.iter().find(|finding| finding.statement.starts_with("INSERT"));
    let finding = finding.expect("an INSERT that is refused by MariaDB alone is found");
    assert!(finding.script.lines().count() <= 12, "not shrunk:\n{}", finding.script);
}
