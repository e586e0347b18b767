//! sysbench on a cluster: it goes on while nodes fail to which it is not connected, and while indexes are made and dropped; afterwards every replica holds the same.
//!
//! Where replicas are compared each node has one of everything, so that a snapshot read through a node reads that node's own rows.

use crate::common::cluster::{Node, PATIENCE, all_in_one, until_healthy, until_settled};
use crate::common::run;
use crate::common::sysbench::{self, Load, ROWS, TABLES};
use mysql::prelude::Queryable;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A CREATE INDEX or DROP INDEX under load may take so long, on a machine that does other things as well.
const DEFINITION: Duration = Duration::from_secs(30);

fn start(root: &std::path::Path, replicas: &str) -> Vec<Node> {
    let nodes = all_in_one(root, 3, replicas);
    until_healthy(&nodes[0], 3);
    until_settled(&nodes[0]);
    sysbench::prepare(&nodes[0]);
    nodes
}

/// The same rows through each node, as its own replica has them and as the primaries have them.
fn all_hold_the_same(nodes: &[Node]) {
    for table in 1..=TABLES {
        let first = sysbench::rows(&mut nodes[0].connect(), table);
        assert_eq!(first.len(), ROWS, "each transaction puts back what it takes");
        for node in nodes {
            let mut connection = node.connect();
            assert!(sysbench::rows(&mut connection, table) == first, "sbtest{table} differs on {}", node.dir.display());
            let locked = format!("SELECT id, k, c, pad FROM sbtest.sbtest{table} ORDER BY id LOCK IN SHARE MODE");
            let locked: Vec<sysbench::Row> = connection.query(locked).expect("the primaries' rows");
            assert!(locked == first, "sbtest{table} differs from its primaries");
        }
    }
}

#[test]
fn sysbench_goes_on_while_other_nodes_fail() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = start(root.path(), "3");
    let load = Load::start(&[nodes[0].process().port], 4, 18);
    std::thread::sleep(Duration::from_secs(2));
    nodes[2].kill();
    std::thread::sleep(Duration::from_secs(3));
    nodes[2].restart();
    until_healthy(&nodes[0], 3);
    nodes[1].process().signal("STOP");
    std::thread::sleep(Duration::from_secs(2));
    nodes[1].process().signal("CONT");
    until_healthy(&nodes[0], 3);
    assert!(load.goes_on(), "sysbench was to work meanwhile");
    let rates = load.wait(PATIENCE);
    println!("sysbench, transactions a second while nodes fail: {rates:?}");
    assert!(rates.iter().sum::<f64>() > 0.0);
    assert!(rates.iter().rev().take(3).any(|rate| *rate > 0.0), "it has stopped: {rates:?}");
    until_healthy(&nodes[0], 3);
    all_hold_the_same(&nodes);
}

/// Runs a definition statement through a node, and says what stands in its way when it does not come back.
fn define(nodes: &[Node], at: usize, sql: &str) -> Duration {
    let mut connection = nodes[at].connect();
    let (answer, answered) = std::sync::mpsc::channel();
    let (statement, began) = (sql.to_string(), Instant::now());
    std::thread::spawn(move || {
        // Conflicts with a primary that moves are tried again, as an operator would.
        let result = loop {
            match connection.query_drop(&statement) {
                Err(mysql::Error::MySqlError(e)) if matches!(e.code, 1205 | 1213 | 1297) => {}
                other => break other,
            }
        };
        let _ = answer.send(result);
    });
    match answered.recv_timeout(DEFINITION) {
        Ok(result) => result.unwrap_or_else(|e| panic!("{sql}: {e}")),
        Err(_) => {
            for node in nodes {
                let mut connection = node.connect();
                for table in ["rauk.health", "rauk.transactions", "rauk.locks"] {
                    println!(
                        "{} {table}:\n  {}",
                        node.dir.display(),
                        run(&mut connection, &format!("SELECT * FROM {table}")).join("\n  ")
                    );
                }
            }
            panic!("{sql} hangs");
        }
    }
    began.elapsed()
}

/// Reads ranges of rows by prepared statements until told to stop. Gives how many; fails when an answer is not that of its statement: each snapshot has all rows.
fn read_ranges(port: u16, seed: i64, stop: &AtomicBool) -> u64 {
    const RANGE: i64 = 50;
    let (mut connection, mut count, mut from) = (None, 0, seed);
    while !stop.load(Ordering::Relaxed) {
        from = (from * 7 + 11) % (ROWS as i64 - RANGE);
        let table = 1 + from as usize % TABLES;
        let Some(open) = &mut connection else {
            let options = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(port).user(Some("root"));
            connection = mysql::Conn::new(options.prefer_socket(false)).ok();
            continue;
        };
        let range = format!("SELECT id, c FROM sbtest.sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY id");
        let answer: Result<Vec<(i64, String)>, _> = open.exec(range, (from + 1, from + RANGE));
        match answer {
            Ok(rows) => {
                let ids: Vec<i64> = rows.iter().map(|(id, _)| *id).collect();
                assert_eq!(ids, (from + 1..=from + RANGE).collect::<Vec<_>>());
                assert!(rows.iter().all(|(_, c)| c.len() == 119), "{rows:?}");
                count += 1;
            }
            Err(mysql::Error::MySqlError(_)) => {}
            // The node has started anew.
            Err(mysql::Error::IoError(_)) => connection = None,
            Err(error) => panic!("the answer is not that of its statement: {error}"),
        }
    }
    count
}

#[test]
fn indexes_come_and_go_under_sysbench() {
    let root = tempfile::tempdir().unwrap();
    let nodes = start(root.path(), "2");
    // Fewer replicas than nodes: each node asks others for a part of the rows.
    let ports: Vec<u16> = nodes.iter().map(|node| node.process().port).collect();
    let load = Load::start(&ports, 4, 14);
    std::thread::sleep(Duration::from_secs(1));
    let (mut times, mut round) = (Vec::new(), 0);
    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..6)
        .map(|number| {
            let (port, stop) = (ports[number % ports.len()], stop.clone());
            std::thread::spawn(move || read_ranges(port, number as i64, &stop))
        })
        .collect();
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end && load.goes_on() {
        let (at, table) = (round % nodes.len(), round % TABLES + 1);
        times.push(define(&nodes, at, &format!("CREATE INDEX by_pad ON sbtest.sbtest{table} (pad, k)")));
        let counted = format!("SELECT COUNT(*) FROM sbtest.sbtest{table} FORCE INDEX (by_pad) WHERE pad > ''");
        // The number of rows in a snapshot is always the same.
        let rows = run(&mut nodes[at].connect(), &counted);
        assert!(rows == [ROWS.to_string()] || rows[0].starts_with("error"), "{rows:?}");
        times.push(define(&nodes, (at + 1) % nodes.len(), &format!("DROP INDEX by_pad ON sbtest.sbtest{table}")));
        round += 1;
    }
    stop.store(true, Ordering::Relaxed);
    let read: u64 = readers.into_iter().map(|thread| thread.join().expect("a reader ends")).sum();
    assert!(read > 0);
    let slowest = times.iter().max().expect("at least one").as_millis();
    println!("{} definitions under load, {read} ranges read, the slowest {slowest} ms", times.len());
    let rates = load.wait(PATIENCE);
    println!("sysbench, transactions a second meanwhile: {rates:?}");
    assert!(round > 1, "only {round} indexes in the time");
    assert!(rates.iter().rev().take(3).any(|rate| *rate > 0.0), "it has stopped: {rates:?}");
    all_hold_the_same(&nodes);
}
