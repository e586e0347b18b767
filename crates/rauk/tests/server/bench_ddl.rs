//! `rauk bench ddl` on few rows: every workload runs on Rauk and on a MariaDB of the same run, nothing is left behind, and
//! wrong words are refused.
//!
//! That anything is fast is not proved here (docs/performance.md).

use crate::common::{bench_in, check_nothing_is_left};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn bench(directory: &Path, arguments: &[&str]) -> Output {
    bench_in(directory, "ddl", arguments)
}

#[test]
fn every_workload_runs_on_both_servers() {
    let directory = tempfile::tempdir().unwrap();
    let small = "--against mariadb --rows 2000 --partitions 8 --selects 50 --rounds 1 --json ddl.json";
    let output = bench(directory.path(), &small.split(' ').collect::<Vec<_>>());
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    for line in [
        "updates beside ALTER, rate of those alone: Rauk",
        "point select among partitions",
        "insert into partitions",
        "copying ALTER, speed of one thread: Rauk",
        "ADD INDEX, speed of one thread: Rauk",
    ] {
        assert!(out.contains(line), "{line} in {out}");
    }
    let text = std::fs::read(directory.path().join("ddl.json")).expect("the JSON was written");
    let report: Value = serde_json::from_slice(&text).expect("it is JSON");
    let lines = report.as_array().expect("a list");
    assert_eq!(lines.len(), 13, "{report}");
    for line in lines {
        for server in ["Rauk", "MariaDB"] {
            assert!(line["servers"][server]["operations_per_second"].as_f64().unwrap() > 0.0, "{line}");
        }
    }
    check_nothing_is_left(directory.path());
}

#[test]
fn wrong_words_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        ("--rows 0", "--rows"),
        ("--partitions 8193", "--partitions"),
        (
            "--only nothing",
            "no workload's name contains that; there are copying ALTER; copying ALTER, one thread; ADD INDEX",
        ),
    ] {
        let output = bench(directory.path(), &arguments.split(' ').collect::<Vec<_>>());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(expected), "{arguments}: {error}");
    }
}
