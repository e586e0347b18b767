//! `rauk bench flex` for a moment on a few keys: every workload on Rauk, Redis and memcached, and the files that it writes, read back.
//!
//! What is proved is that the benchmark measures what it says (right answers, counts that agree with each other, peers that took part, wrong words refused with
//! the right ones), not that anything is fast.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn flex(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RAUK_")) {
        command.env_remove(name);
    }
    let output = command.current_dir(directory).args(["bench", "flex"]).args(arguments).output();
    output.expect("rauk can be started")
}

/// Runs it, and gives the results of its JSON.
fn results(directory: &Path, arguments: &[&str]) -> Vec<Value> {
    let mut all = arguments.to_vec();
    all.extend(["--json", "flex.json", "--keys", "2000", "--rounds", "1", "--warm-up", "0.1"]);
    let output = flex(directory, &all);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}\n{out}{err}");
    let text = std::fs::read(directory.join("flex.json")).expect("the JSON was written");
    let report: Value = serde_json::from_slice(&text).expect("it is JSON");
    assert_eq!(report["keys"], 2000);
    for entry in std::fs::read_dir(directory).expect("readable") {
        let name = entry.expect("readable").file_name().to_string_lossy().into_owned();
        assert!(!name.starts_with("rauk-bench"), "the run left {name} behind");
    }
    let results = report["results"].as_array().expect("a list").clone();
    for line in &results {
        let number = |name: &str| line[name].as_f64().unwrap_or_else(|| panic!("{name}: {line}"));
        assert_eq!(number("errors"), 0.0, "{line}");
        assert!(number("operations") > 0.0 && number("seconds") > 0.0, "{line}");
        let rate = number("operations") / number("seconds");
        assert!((rate / number("operations_per_second") - 1.0).abs() < 0.001, "{line}");
        let quantile = |name: &str| line["latency_us"][name].as_f64().unwrap_or(0.0);
        assert!(quantile("p50") > 0.0 && quantile("p50") <= quantile("p99"), "{line}");
        assert!(quantile("p99") <= quantile("max"), "{line}");
    }
    results
}

fn of<'r>(results: &'r [Value], workload: &str, target: &str) -> &'r Value {
    let line = results.iter().find(|l| l["workload"] == workload && l["target"] == target);
    line.unwrap_or_else(|| panic!("no figures of {workload} on {target}: {results:?}"))
}

#[test]
fn all_workloads_on_rauk_and_its_peers() {
    let directory = tempfile::tempdir().unwrap();
    let workloads = "read,insert,update,write,delete,scan,mix=60:20:12:8";
    let results = results(
        directory.path(),
        &[
            "--workload",
            workloads,
            "--seconds",
            "0.4",
            "--operations",
            "20",
            "--threads",
            "2",
            "--parallel",
            "3",
            "--against",
            "redis,memcached",
            "--csv",
            "flex.csv",
            "--plot",
            "flex.svg",
        ],
    );
    for workload in workloads.split(',') {
        let rauk = of(&results, workload, "Rauk");
        assert!(rauk["server_cpu_us_per_operation"].is_number() && rauk["rauk_throughput_ratio"].is_null(), "{rauk}");
        if workload == "scan" {
            continue;
        }
        for peer in ["Redis", "memcached"] {
            let line = of(&results, workload, peer);
            let ratio = line["rauk_throughput_ratio"].as_f64();
            let wanted = rauk["operations_per_second"].as_f64().zip(line["operations_per_second"].as_f64());
            let wanted = wanted.map(|(a, b)| a / b);
            match (ratio, wanted) {
                (Some(ratio), Some(wanted)) => assert!((ratio / wanted - 1.0).abs() < 1e-6, "{line}"),
                // redis-benchmark was faster.
                _ => assert_eq!(line["best_of_family"], false, "{line}"),
            }
        }
    }
    // Every key once at most; that all are there again for the mix is proved by its reads.
    for target in ["Rauk", "Redis", "memcached"] {
        assert!(of(&results, "delete", target)["operations"].as_u64().is_some_and(|n| n <= 2000));
        let read = of(&results, "read", target);
        let (bytes, rate) = (&read["payload_bytes_per_second"], &read["operations_per_second"]);
        let each = bytes.as_f64().zip(rate.as_f64()).map(|(bytes, rate)| bytes / rate);
        assert!(each.is_some_and(|each| (each - 100.0).abs() < 1e-6), "{read}");
        assert_eq!(of(&results, "delete", target)["payload_bytes_per_second"], 0.0);
    }
    of(&results, "read", "Redis, redis-benchmark");
    let mut csv = csv::Reader::from_path(directory.path().join("flex.csv")).expect("the CSV was written");
    let columns: Vec<String> = csv.headers().expect("a head").iter().map(str::to_string).collect();
    let lines: Vec<csv::StringRecord> = csv.records().collect::<Result<_, _>>().expect("every line is whole");
    assert_eq!(lines.len(), results.len());
    let column = columns.iter().position(|c| c == "operations").expect("it is there");
    for (line, result) in lines.iter().zip(&results) {
        assert_eq!((&line[0], &line[1]), (result["workload"].as_str().unwrap(), result["target"].as_str().unwrap()));
        assert_eq!(line[column].parse::<u64>().ok(), result["operations"].as_u64());
    }
    let svg = std::fs::read_to_string(directory.path().join("flex.svg")).expect("the plot was written");
    assert!(svg.trim_end().ends_with("</svg>"));
    for word in ["Operations per second", "memcached", "mix=60:20:12:8"] {
        assert!(svg.contains(word), "the plot does not show {word}");
    }
}

#[test]
fn transactions_in_this_process_and_over_the_network() {
    let directory = tempfile::tempdir().unwrap();
    let common = [
        "--workload",
        "read,insert,update,delete,mix=50:30:20",
        "--seconds",
        "0.2",
        "--operations",
        "10",
        "--threads",
        "2",
        "--transactional",
        "--distribution",
        "zipf:0.99",
    ];
    let embedded = results(directory.path(), &[&common[..], &["--embedded", "--against", "redis"]].concat());
    of(&embedded, "mix=50:30:20:0", "Rauk, embedded");
    of(&embedded, "mix=50:30:20:0", "Redis");
    let remote = results(
        directory.path(),
        &[&common[..], &["--durability", "fsync", "--against", "relaxed,force", "--connections", "2"]].concat(),
    );
    for target in ["Rauk", "Rauk, relaxed", "Rauk, force-send"] {
        assert!(of(&remote, "delete", target)["operations"].as_u64().is_some_and(|n| n <= 2000));
    }
}

#[test]
fn wrong_words_are_answered_with_the_right_ones() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, wanted) in [
        (&["--workload", "reed"][..], "read, insert, update, write, delete, scan or mix="),
        (&["--against", "postgres"], "redis, memcached"),
        (&["--connect", "127.0.0.1:1", "--secret-file", "/nowhere/secret"], "/nowhere/secret"),
    ] {
        let output = flex(directory.path(), arguments);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && err.contains(wanted), "{arguments:?}: {err}");
    }
}
