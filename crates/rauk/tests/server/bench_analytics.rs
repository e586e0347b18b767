//! `rauk bench analytics` on few rows: TPC-H's 22 queries, the statements of single operators and full-text searches give the answers of a
//! MariaDB of the same run, figures agree with each other, nothing is left behind, and wrong words are refused.
//!
//! That anything is fast is not proved here (docs/performance.md).

use crate::common::{bench_in, check_nothing_is_left};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn bench(directory: &Path, arguments: &[&str]) -> Output {
    bench_in(directory, "analytics", arguments)
}

#[test]
fn queries_over_many_rows_have_the_answers_of_mariadb() {
    let directory = tempfile::tempdir().unwrap();
    let small =
        "--against mariadb --scale 0.003 --rows 3000 --rounds 1 --milliseconds 1 --patience 120 --json analytics.json";
    let output = bench(directory.path(), &small.split(' ').collect::<Vec<_>>());
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{out}");
    assert!(output.status.success(), "{out}{err}");
    let text = std::fs::read(directory.path().join("analytics.json")).expect("the JSON was written");
    let report: Value = serde_json::from_slice(&text).expect("it is JSON");
    let lines = |part: &str| report[part].as_array().unwrap_or_else(|| panic!("no {part} in {report}")).clone();
    let (tpch, micro, texts) = (lines("tpch"), lines("micro"), lines("texts"));
    assert_eq!((tpch.len(), micro.len(), texts.len()), (22, 13, 7), "{report}");
    for line in tpch.iter().chain(&micro).chain(&texts) {
        assert!(line["difference"].is_null(), "{line}");
        for server in ["Rauk", "MariaDB"] {
            let figures = &line["servers"][server];
            let number = |name: &str| figures[name].as_f64().unwrap_or_else(|| panic!("{name}: {line}"));
            assert!(number("seconds") > 0.0 && number("runs") >= 1.0 && number("cpu_seconds") >= 0.0, "{line}");
        }
        let ratio = line["time_ratio"].as_f64().expect("both have answered");
        let seconds = |server: &str| line["servers"][server]["seconds"].as_f64().unwrap();
        assert!((seconds("Rauk") / seconds("MariaDB") / ratio - 1.0).abs() < 1e-6, "{line}");
    }
    // Answers without rows would prove little.
    let empty: Vec<&Value> = tpch.iter().filter(|line| line["rows"] == 0).map(|line| &line["name"]).collect();
    assert!(empty.len() <= 4, "queries without a row: {empty:?}");
    check_nothing_is_left(directory.path());
}

#[test]
fn wrong_words_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        ("--scale 0", "--scale is a number from 0.0001 to 100"),
        ("--scale much", "not much"),
        ("--queries q1,q23", "there is no q23; there are q1, q2"),
        ("--only tpcds", "possible values: tpch, micro, texts"),
        ("--rounds 0", "--rounds"),
    ] {
        let output = bench(directory.path(), &arguments.split(' ').collect::<Vec<_>>());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(expected), "{arguments}: {error}");
    }
}
