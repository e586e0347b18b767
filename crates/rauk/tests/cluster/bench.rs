//! `rauk bench cluster` for a moment on a few rows: clusters of real processes whose books agree and that lose nothing, figures that agree with each other, an interrupted run that leaves nothing behind.
//!
//! That replicas beat a peer is not proved here, nor that anything is fast: the parts that need sysbench and Galera are run by hand (docs/performance.md).

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RAUK_")) {
        command.env_remove(name);
    }
    command.current_dir(directory).args(["bench", "cluster"]).args(arguments);
    command
}

/// Runs it, and gives what it prints and its JSON.
fn results(directory: &Path, arguments: &[&str]) -> (String, Value) {
    let output = command(directory, arguments).args(["--json", "cluster.json"]).output().expect("rauk can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}\n{out}{err}");
    let text = std::fs::read(directory.join("cluster.json")).expect("the JSON was written");
    nothing_is_left(directory);
    (out.into_owned(), serde_json::from_slice(&text).expect("it is JSON"))
}

fn nothing_is_left(directory: &Path) {
    for entry in std::fs::read_dir(directory).expect("readable") {
        let name = entry.expect("readable").file_name().to_string_lossy().into_owned();
        assert!(!name.starts_with("rauk-bench"), "the run left {name} behind");
    }
}

fn number(line: &Value, name: &str) -> f64 {
    line[name].as_f64().unwrap_or_else(|| panic!("{name}: {line}"))
}

#[test]
fn transactions_of_a_warehouse_cost_and_their_books_agree() {
    let directory = tempfile::tempdir().unwrap();
    let small = "--only scale --nodes 4 --warehouses 2 --threads 2 --remote 50 --partitions 4 --seconds 1 --rounds 1";
    let (text, json) = results(directory.path(), &small.split(' ').collect::<Vec<_>>());
    let lines = json["scale"].as_array().expect("a list");
    assert_eq!(lines.len(), 6, "two placements and a control, two and one replica: {json}");
    for line in lines {
        assert!(number(line, "transactions_per_second") > 0.0, "{line}");
        assert!(number(line, "cpu_micros_per_transaction") >= number(line, "cpu_micros_without_idle"), "{line}");
        assert!((0.0..=100.0).contains(&number(line, "local_percent")), "{line}");
        if line["terminals"] == "near" {
            assert_eq!(number(line, "local_percent"), 100.0, "{line}");
        }
        let control = line["clusters"] == 2;
        assert!(control || line["clusters"] == 1, "{line}");
        assert_eq!(line["percent_of_control"].is_number(), line["terminals"] == "near" && !control, "{line}");
        if line["replicas"] == 2 {
            assert!(number(line, "bytes_per_transaction") > 100.0, "rows go to the other replica: {line}");
        }
    }
    assert_eq!(lines.iter().filter(|l| l["clusters"] == 2).count(), 2, "{json}");
    assert_eq!(text.matches("| 2 clusters of 2 ").count(), 2, "{text}");
    assert!(text.contains("### Projection") && text.contains("| 64 "), "{text}");
}

#[test]
fn a_killed_node_comes_back_and_nothing_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let small = "--only rejoin --rows 2000 --threads 2 --partitions 4 --seconds 1 --rounds 1";
    let (_, json) = results(directory.path(), &small.split(' ').collect::<Vec<_>>());
    let lines = json["rejoin"].as_array().expect("a list");
    assert!(lines.len() >= 2, "{json}");
    for line in lines {
        assert_eq!(number(line, "lost"), 0.0, "{line}");
        assert!(number(line, "acknowledged") > 10.0, "{line}");
        assert!(number(line, "in_sync_seconds") >= number(line, "copying_seconds"), "{line}");
        eprintln!(
            "{}: {} ms without a success, in-sync after {} s",
            line["case"], line["gap_ms"], line["in_sync_seconds"]
        );
    }
    let empty = lines.iter().find(|l| l["case"] == "with an empty directory").expect("always there");
    assert!(number(empty, "received_bytes") > 2000.0 * 100.0, "all rows come over: {empty}");
}

#[test]
fn nodes_fail_and_nothing_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let small = "--only failures --partitions 4 --seconds 1 --rounds 1";
    let (text, json) = results(directory.path(), &small.split(' ').collect::<Vec<_>>());
    eprintln!("{text}");
    let lines = json["failures"]["failures"].as_array().expect("a list");
    assert_eq!(lines.len(), 7, "{json}");
    for line in lines {
        let rounds = line["rounds"].as_array().expect("a list");
        assert_eq!(rounds.len(), 1);
        assert_eq!(number(&rounds[0], "lost"), 0.0, "{line}");
        assert!(number(&rounds[0], "acknowledged") > 10.0, "{line}");
        assert!(number(&rounds[0], "whole_seconds") > 0.0, "{line}");
    }
    // A partition is without service for a while when the node that led it is gone, however that ended.
    let gap = |name: &str| {
        let line = lines.iter().find(|l| l["failure"].as_str().expect("a name").starts_with(name)).expect("there");
        number(&line["rounds"][0], "write_gap_ms")
    };
    for name in ["killed", "hung", "cut off", "all nodes"] {
        assert!(gap(name) > 100.0, "{name} has not hit anybody: {json}");
    }
    let circles = json["failures"]["deadlocks"][0]["milliseconds"].as_array().expect("a list");
    assert_eq!(circles.len(), 20, "{json}");
}

#[test]
fn a_run_that_is_ended_ends_what_it_has_started() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = command(directory.path(), &["--only", "rejoin", "--rows", "1000", "--seconds", "60"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("rauk can be started");
    let run = directory.path().join(format!("rauk-bench-{}", child.id()));
    let ready = run.join("rejoin/node1/ready.json");
    let end = Instant::now() + Duration::from_secs(50);
    let pid = loop {
        let ready = std::fs::read_to_string(&ready).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        if let Some(pid) = ready.and_then(|ready| ready["pid"].as_u64()) {
            break pid;
        }
        assert!(Instant::now() < end, "no node has come up");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    // Twice, as `timeout` does.
    for _ in 0..2 {
        let ended = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(ended.success());
    }
    child.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(Instant::now() < end, "process {pid} goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    nothing_is_left(directory.path());
}
