//! Nodes of real clusters that come and go: a new cluster serves as soon as it says so, a node that stays away is replaced when it was to be or when the operator says so, and a primary
//! that moves leaves its partition without service for a moment only.

use crate::common::cluster::{
    Node, PATIENCE, all_in_one_with, health, insist, member_command, refused, until, until_healthy,
};
use crate::common::{connect_to, run};
use mysql::prelude::Queryable;
use mysql::{Conn, Error};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DEADLOCK: u16 = 1213;

fn rauk(arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RAUK_")) {
        command.env_remove(name);
    }
    let output = command.args(arguments).output().expect("rauk runs");
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Stops what the test has started, however it ends.
struct Down<'a>(&'a str);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        rauk(&["cluster", "down", "--dir", self.0]);
    }
}

/// Transactions of several statements on one connection, whose rows nobody else touches. Gives what those that failed ended with.
fn transactions(connection: &mut Conn, first: u64, count: u64) -> Vec<String> {
    let mut lost = Vec::new();
    for id in (first..).step_by(3).take(count as usize) {
        let one = |c: &mut Conn| -> Result<(), Error> {
            c.query_drop("BEGIN")?;
            c.query_drop(format!("INSERT INTO d.t VALUES ({id}, 1), ({}, 2)", id + 1))?;
            c.query_drop(format!("UPDATE d.t SET v = v + 10 WHERE id IN ({id}, {})", id + 1))?;
            c.query_drop(format!("INSERT INTO d.t VALUES ({}, 3)", id + 2))?;
            c.query_drop("COMMIT")
        };
        if let Err(error) = one(connection) {
            lost.push(format!("transaction at {id}: {error}"));
        }
    }
    lost
}

/// Ports of the nodes of a cluster of `rauk cluster up`.
fn ports(dir: &Path) -> Vec<u16> {
    let text = std::fs::read_to_string(dir.join("cluster.json")).unwrap();
    let state: serde_json::Value = serde_json::from_str(&text).unwrap();
    let nodes = state["nodes"].as_array().unwrap();
    nodes.iter().map(|n| n["ports"]["mysql"].as_u64().unwrap() as u16).collect()
}

/// Whether a process was taken for gone since it was up: on a machine that is busy beyond its means this is not the cluster's fault, and the run shows nothing.
fn was_disturbed(connection: &mut Conn) -> bool {
    run(connection, "SELECT COUNT(*) FROM rauk.events WHERE what LIKE '%is down (process%'") != ["0"]
}

/// Views of all partitions together: grows with every change of a primary.
fn views(connection: &mut Conn) -> String {
    run(connection, "SELECT SUM(view_number) FROM rauk.partitions").remove(0)
}

#[test]
fn a_cluster_that_says_it_is_up_loses_no_transaction() {
    for attempt in 1.. {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("c");
        let dir = path.to_str().unwrap();
        let _down = Down(dir);
        let (good, text) = rauk(&["cluster", "up", "--nodes", "3", "--memory-limit", "128MiB", "--dir", dir]);
        assert!(good, "{text}");
        let mut connections: Vec<Conn> = ports(&path).into_iter().map(|port| connect_to(port).unwrap()).collect();
        let before = views(&mut connections[0]);
        connections[0].query_drop("CREATE DATABASE d").unwrap();
        connections[0].query_drop("CREATE TABLE d.t (id BIGINT PRIMARY KEY, v INT)").unwrap();
        let lost: Vec<String> = std::thread::scope(|scope| {
            let work = |(at, connection)| scope.spawn(move || transactions(connection, at * 1_000_000, 170));
            let running: Vec<_> = (0u64..).zip(&mut connections).map(work).collect();
            running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let mut fresh = connect_to(ports(&path)[0]).unwrap();
        if !lost.is_empty() && was_disturbed(&mut fresh) && attempt < 4 {
            println!("attempt {attempt}: {} transactions lost to a process that was taken for gone", lost.len());
            continue;
        }
        let after = views(&mut fresh);
        assert!(lost.is_empty(), "views {before} and then {after}: {lost:#?}");
        assert_eq!(run(&mut fresh, "SELECT COUNT(*), SUM(v) FROM d.t"), ["1530 | 13260"]);
        return;
    }
}

fn replicas_missing(node: &Node) -> String {
    let mut connection = node.connect();
    run(&mut connection, "SELECT COUNT(*) FROM rauk.partitions WHERE in_sync_count < 2").remove(0)
}

fn table(node: &Node) {
    let mut connection = node.connect();
    connection.query_drop("CREATE DATABASE d").unwrap();
    connection.query_drop("CREATE TABLE d.t (id BIGINT PRIMARY KEY, v INT)").unwrap();
    let rows: Vec<String> = (0..500).map(|id| format!("({id}, {id})")).collect();
    insist(&mut connection, &format!("INSERT INTO d.t VALUES {}", rows.join(",")));
}

#[test]
fn a_node_that_stays_away_is_replaced_after_the_time_that_was_set() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one_with(root.path(), 3, &["--replicas", "2", "--replace-after", "1000"]);
    until_healthy(&nodes[0], 3);
    table(&nodes[0]);
    let mut connection = nodes[0].connect();
    assert_eq!(run(&mut nodes[1].connect(), "SELECT @@rauk_replace_after"), ["1000"]);
    for wrong in ["0", "99999999", "99999999999"] {
        let refused = connection.query_drop(format!("SET GLOBAL rauk_replace_after = {wrong}"));
        assert!(refused.unwrap_err().to_string().contains("1 to 2592000 are possible"), "{wrong}");
    }
    nodes[2].kill();
    until("it is down", || run(&mut connection, "SELECT status FROM rauk.nodes WHERE node_id = 3") == ["down"]);
    assert_ne!(replicas_missing(&nodes[0]), "0");
    assert_eq!(
        run(&mut connection, "SELECT COUNT(*) FROM rauk.health WHERE reason LIKE '%stays away for 1000 s'"),
        ["1"]
    );
    connection.query_drop("SET GLOBAL rauk_replace_after = 1").unwrap();
    until("the other node knows it", || run(&mut nodes[1].connect(), "SELECT @@rauk_replace_after") == ["1"]);
    until("the two that are left have everything", || replicas_missing(&nodes[1]) == "0");
    assert_eq!(run(&mut nodes[1].connect(), "SELECT COUNT(*), SUM(v) FROM d.t"), ["500 | 124750"]);
    // It is welcome when it comes after all.
    nodes[2].restart();
    until_healthy(&nodes[0], 3);
}

#[test]
fn the_operator_says_that_a_node_does_not_come_back() {
    let root = tempfile::tempdir().unwrap();
    let secret = root.path().join("secret");
    let mut nodes = all_in_one_with(root.path(), 3, &["--replicas", "2"]);
    until_healthy(&nodes[0], 3);
    table(&nodes[0]);
    let mut connection = nodes[0].connect();
    let says = |connection: &mut Conn, sql: &str, words: &str| {
        let text = connection.query_drop(sql).unwrap_err().to_string();
        assert!(text.contains(words), "{sql}: {text}");
    };
    says(&mut connection, "ALTER CLUSTER FORGET NODE 3", "node 3 is up; stop it");
    says(&mut connection, "ALTER CLUSTER FORGET NODE 9", "there is no node 9");
    nodes[2].kill();
    until("it is down", || run(&mut connection, "SELECT status FROM rauk.nodes WHERE node_id = 3") == ["down"]);
    // A new one at another address, at the same time.
    let arguments = ["--join", &nodes[0].address(), "--cluster-secret-file", secret.to_str().unwrap()];
    let fourth = Node::start(&root.path().join("n4"), &arguments);
    connection.query_drop("ALTER CLUSTER FORGET NODE 3").unwrap();
    connection.query_drop("ALTER CLUSTER FORGET NODE 3").unwrap();
    let took = until("everything is as configured", || health(&nodes[0]).as_deref() == Some("green"));
    println!("forgotten node: everything as configured {} ms after that was said", took.as_millis());
    assert_eq!(run(&mut connection, "SELECT COUNT(*) FROM rauk.nodes WHERE node_id = 3"), ["0"]);
    assert_ne!(run(&mut connection, "SELECT replicas FROM rauk.nodes WHERE node_id = 4"), ["0"]);
    assert_eq!(run(&mut fourth.connect(), "SELECT COUNT(*), SUM(v) FROM d.t"), ["500 | 124750"]);
    // Its directory is nobody's from now on, and says so.
    let text = refused(member_command(&nodes[2].dir, &arguments));
    assert!(text.contains("node 3") && text.contains("removed"), "{text}");
}

#[test]
fn the_last_replica_is_not_forgotten() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one_with(root.path(), 3, &["--replicas", "1"]);
    until_healthy(&nodes[0], 3);
    table(&nodes[0]);
    nodes[2].kill();
    let mut connection = nodes[0].connect();
    until("it is down", || run(&mut connection, "SELECT status FROM rauk.nodes WHERE node_id = 3") == ["down"]);
    let text = connection.query_drop("ALTER CLUSTER FORGET NODE 3").unwrap_err().to_string();
    assert!(
        text.contains("no node that is up has the whole of replication group") && text.contains("node 3 has"),
        "{text}"
    );
    nodes[2].restart();
    until_healthy(&nodes[0], 3);
    assert_eq!(run(&mut connection, "SELECT COUNT(*), SUM(v) FROM d.t"), ["500 | 124750"]);
}

/// Writers whose statements stand for themselves, while primaries move back to a node that has returned: nobody waits for long, and only who had locks there is refused.
#[test]
fn primaries_move_in_a_moment() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one_with(root.path(), 3, &["--replicas", "3"]);
    until_healthy(&nodes[0], 3);
    table(&nodes[0]);
    nodes[2].kill();
    let mut connection = nodes[0].connect();
    until("it is down", || run(&mut connection, "SELECT status FROM rauk.nodes WHERE node_id = 3") == ["down"]);
    until("others lead", || run(&mut connection, "SELECT COUNT(*) FROM rauk.partitions WHERE serves = 'NO'") == ["0"]);
    nodes[2].restart();
    let stop = AtomicBool::new(false);
    let (longest, written, refused) = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut c = connect_to(nodes[0].process().port).unwrap();
            let (mut longest, mut written, mut refused) = (Duration::ZERO, 0, 0);
            while !stop.load(Ordering::SeqCst) {
                for id in 0..24 {
                    let began = Instant::now();
                    match c.query_drop(format!("UPDATE d.t SET v = v + 1 WHERE id = {id}")) {
                        Ok(()) => written += 1,
                        Err(Error::MySqlError(e)) if e.code == DEADLOCK => refused += 1,
                        Err(error) => panic!("{error}"),
                    }
                    longest = longest.max(began.elapsed());
                }
            }
            (longest, written, refused)
        });
        let began = Instant::now();
        until_healthy(&nodes[0], 3);
        println!("everything as configured {} ms after the node served again", began.elapsed().as_millis());
        stop.store(true, Ordering::SeqCst);
        writing.join().unwrap()
    });
    let moved = run(&mut connection, "SELECT COUNT(*) FROM rauk.partitions WHERE primary_node = 3").remove(0);
    println!(
        "{moved} primaries moved; {written} statements, the longest {} ms, {refused} refused",
        longest.as_millis()
    );
    assert_ne!(moved, "0");
    assert!(longest < PATIENCE / 20, "{longest:?}");
    assert!(refused <= written / 20, "{refused} of {written}");
}
