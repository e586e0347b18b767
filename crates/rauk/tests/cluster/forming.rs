//! Clusters of real processes: they form, serve as one, go on when nodes die or hang, and take them back by themselves.

use crate::common::cluster::{Node, all_in_one, insist, insist_on, restart_all, until, until_healthy};
use crate::common::run;
use mysql::prelude::Queryable;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Inserts one row after another into `bench.t` until told to stop. Gives the ids that were acknowledged, and the longest time without one.
struct Writer {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<(Vec<u64>, Duration)>,
}

impl Writer {
    fn start(port: u16, first: u64) -> Writer {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let options = || {
                mysql::OptsBuilder::new()
                    .ip_or_hostname(Some("127.0.0.1"))
                    .tcp_port(port)
                    .user(Some("root"))
                    .prefer_socket(false)
            };
            let (mut acknowledged, mut longest, mut last) = (Vec::new(), Duration::ZERO, Instant::now());
            let mut connection = None;
            let mut id = first;
            while !stopped.load(Ordering::SeqCst) {
                let inserted = match &mut connection {
                    Some(connection) => {
                        mysql::Conn::query_drop(connection, format!("INSERT INTO bench.t VALUES ({id}, 'x')"))
                    }
                    None => match mysql::Conn::new(options()) {
                        Ok(fresh) => {
                            connection = Some(fresh);
                            continue;
                        }
                        Err(error) => Err(error),
                    },
                };
                match inserted {
                    Ok(()) => {
                        longest = longest.max(last.elapsed());
                        last = Instant::now();
                        acknowledged.push(id);
                    }
                    // Refused for the moment: the connection is good.
                    Err(mysql::Error::MySqlError(_)) => std::thread::sleep(Duration::from_millis(5)),
                    Err(_) => {
                        connection = None;
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
                // Never the same again: what became of one without an answer is unknown.
                id += 1;
            }
            (acknowledged, longest.max(last.elapsed()))
        });
        Writer { stop, thread }
    }

    fn stop(self) -> (Vec<u64>, Duration) {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().expect("the writer ends")
    }
}

fn table(node: &Node) {
    let mut connection = node.connect();
    connection.query_drop("CREATE DATABASE bench").unwrap();
    connection.query_drop("CREATE TABLE bench.t (id BIGINT PRIMARY KEY, v VARCHAR(20))").unwrap();
}

fn has_all(node: &Node, acknowledged: &[u64]) {
    let mut found: Vec<u64> = Vec::new();
    until("the rows are read", || {
        // A node that has just come back may start anew once more.
        let read = node.process().try_connect().and_then(|mut c| c.query("SELECT id FROM bench.t ORDER BY id"));
        let is_read = read.is_ok();
        found = read.unwrap_or_default();
        is_read
    });
    let lost: Vec<&u64> = acknowledged.iter().filter(|id| found.binary_search(id).is_err()).collect();
    assert!(lost.is_empty(), "{} of {} acknowledged rows are lost: {lost:?}", lost.len(), acknowledged.len());
}

#[test]
fn three_nodes_serve_as_one() {
    let root = tempfile::tempdir().unwrap();
    let nodes = all_in_one(root.path(), 3, "2");
    until_healthy(&nodes[0], 3);
    let mut connections: Vec<mysql::Conn> = nodes.iter().map(Node::connect).collect();
    // What one makes is there on the others at once.
    connections[0].query_drop("CREATE DATABASE shop").unwrap();
    connections[0].query_drop("CREATE TABLE shop.items (id INT PRIMARY KEY, name VARCHAR(20), KEY (name))").unwrap();
    for connection in &mut connections {
        assert_eq!(run(connection, "SELECT COUNT(*) FROM shop.items"), ["0"]);
    }
    for id in 0..60 {
        let connection = &mut connections[id % 3];
        insist(connection, &format!("INSERT INTO shop.items VALUES ({id}, 'item {id}')"));
    }
    for connection in &mut connections {
        assert_eq!(run(connection, "SELECT COUNT(*), SUM(id) FROM shop.items"), ["60 | 1770"]);
        assert_eq!(run(connection, "SELECT id FROM shop.items WHERE name = 'item 41'"), ["41"]);
    }
    // A transaction over nodes, seen whole.
    until("a transaction over nodes goes through", || {
        connections[1].query_drop("BEGIN").unwrap();
        // Ended with 1213 when a primary moves.
        let changed = connections[1].query_drop("UPDATE shop.items SET name = 'sold' WHERE id < 30").is_ok();
        assert_eq!(run(&mut connections[2], "SELECT COUNT(*) FROM shop.items WHERE name = 'sold'"), ["0"]);
        changed && connections[1].query_drop("COMMIT").is_ok()
    });
    assert_eq!(run(&mut connections[2], "SELECT COUNT(*) FROM shop.items WHERE name = 'sold'"), ["30"]);

    // What the operator sees, from any node.
    let c = &mut connections[2];
    assert_eq!(run(c, "SELECT node_id, roles, status FROM rauk.nodes ORDER BY 1").len(), 3);
    assert_eq!(run(c, "SELECT COUNT(*) FROM rauk.nodes WHERE status = 'up' AND lease = 'YES'"), ["3"]);
    assert_eq!(run(c, "SELECT COUNT(*) FROM rauk.nodes WHERE leads_manage_group = 'YES'"), ["1"]);
    assert_eq!(run(c, "SELECT COUNT(*) FROM rauk.partitions WHERE in_sync_count < wanted OR serves = 'NO'"), ["0"]);
    assert_eq!(run(c, "SELECT COUNT(DISTINCT node_id) FROM rauk.memory WHERE table_name = 'items'"), ["3"]);
    assert_ne!(run(c, "SELECT COUNT(*) FROM rauk.events WHERE what LIKE 'node 3 is up%'"), ["0"]);
    connections[0].query_drop("BEGIN").unwrap();
    insist(&mut connections[0], "UPDATE shop.items SET name = 'held' WHERE id = 7");
    until("the transaction of another node is shown", || {
        run(&mut connections[2], "SELECT COUNT(*) FROM rauk.transactions WHERE rows_changed > 0") != ["0"]
    });
    connections[0].query_drop("ROLLBACK").unwrap();
    let cluster = nodes[1].process().http("/cluster");
    assert!(cluster.contains("\"health\":\"green\""), "{cluster}");
    let metrics = nodes[1].process().http("/metrics");
    for name in [
        "rauk_cluster_lease 1",
        "rauk_cluster_nodes_up 3",
        "rauk_cluster_partition_lag{",
        "rauk_cluster_messages_sent_total",
    ] {
        assert!(metrics.contains(name), "{name} is not in {metrics}");
    }
}

/// A cluster does a statement that is a transaction of its own again when it meets 1213; never one of a transaction, which has lost all that it did before.
#[test]
fn a_deadlock_ends_the_whole_transaction_and_is_told() {
    let root = tempfile::tempdir().unwrap();
    let nodes = all_in_one(root.path(), 1, "1");
    insist_on(
        &nodes[0],
        &[
            "CREATE DATABASE IF NOT EXISTS d",
            "CREATE TABLE IF NOT EXISTS d.t (id INT PRIMARY KEY, v INT)",
            "REPLACE INTO d.t VALUES (1, 0), (2, 0), (3, 0)",
        ],
    );
    let (mut one, mut other) = (nodes[0].connect(), nodes[0].connect());
    for (connection, own) in [(&mut one, 1), (&mut other, 2)] {
        connection.query_drop("BEGIN").unwrap();
        assert_eq!(run(connection, &format!("UPDATE d.t SET v = 1 WHERE id = {own}")), ["ok 1"]);
    }
    let waiting = std::thread::spawn(move || {
        let answer = run(&mut one, "UPDATE d.t SET v = 1 WHERE id = 2");
        (answer, run(&mut one, "COMMIT"))
    });
    std::thread::sleep(Duration::from_millis(200));
    // The circle is closed; whichever is chosen is told, and its first change is gone with it.
    let answer = run(&mut other, "UPDATE d.t SET v = 1 WHERE id IN (1, 3)");
    run(&mut other, "COMMIT");
    let (first, _) = waiting.join().expect("it ends");
    let ended = [first[0].as_str(), answer[0].as_str()];
    assert!(ended.contains(&"error 1213"), "nobody was told: {ended:?}");
    let wanted = if first == ["ok 1"] { ["1 | 1", "2 | 1", "3 | 0"] } else { ["1 | 1", "2 | 1", "3 | 1"] };
    assert_eq!(run(&mut other, "SELECT id, v FROM d.t ORDER BY id"), wanted);
}

/// A SELECT too, as long as its client has got no rows.
#[test]
fn a_select_by_itself_is_done_again_and_tells_of_no_deadlock() {
    let root = tempfile::tempdir().unwrap();
    let nodes = all_in_one(root.path(), 1, "1");
    let rows =
        ["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "INSERT INTO d.t VALUES (1, 0), (2, 0)"];
    insist_on(&nodes[0], &rows);
    let (mut reader, mut writer) = (nodes[0].connect(), nodes[0].connect());
    for round in 0..4 {
        let (first, second) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
        writer.query_drop("BEGIN").unwrap();
        assert_eq!(run(&mut writer, &format!("UPDATE d.t SET v = v + 1 WHERE id = {second}")), ["ok 1"]);
        let reading = std::thread::spawn(move || {
            let answer = run(&mut reader, "SELECT id FROM d.t ORDER BY id FOR UPDATE");
            (reader, answer)
        });
        std::thread::sleep(Duration::from_millis(200));
        let ended = run(&mut writer, &format!("UPDATE d.t SET v = v + 1 WHERE id = {first}"));
        println!("round {round}: the writer was told {ended:?}");
        run(&mut writer, "COMMIT");
        let answer;
        (reader, answer) = reading.join().expect("it ends");
        assert_eq!(answer, ["1", "2"]);
    }
}

#[test]
fn a_killed_node_is_done_without_and_comes_back() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 3, "2");
    table(&nodes[0]);
    until_healthy(&nodes[0], 3);
    let writer = Writer::start(nodes[0].process().port, 1);
    std::thread::sleep(Duration::from_millis(500));
    nodes[2].kill();
    std::thread::sleep(Duration::from_secs(3));
    let (mut acknowledged, gap) = writer.stop();
    println!("killed node: {} ms without service, {} rows", gap.as_millis(), acknowledged.len());
    assert!(gap < Duration::from_secs(5), "the others go on after {gap:?}");
    has_all(&nodes[0], &acknowledged);
    has_all(&nodes[1], &acknowledged);
    // It comes back while writes go on.
    let writer = Writer::start(nodes[1].process().port, 1_000_000);
    nodes[2].restart();
    let back = until_healthy(&nodes[0], 3);
    println!("killed node: everything as configured {} ms after it served again", back.as_millis());
    let (more, _) = writer.stop();
    acknowledged.extend(more);
    nodes.iter().for_each(|node| has_all(node, &acknowledged));
}

#[test]
fn a_paused_node_comes_back_by_itself() {
    let root = tempfile::tempdir().unwrap();
    let nodes = all_in_one(root.path(), 3, "2");
    table(&nodes[0]);
    until_healthy(&nodes[0], 3);
    let writer = Writer::start(nodes[1].process().port, 1);
    std::thread::sleep(Duration::from_millis(300));
    // The one that leads the manage group.
    nodes[0].process().signal("STOP");
    std::thread::sleep(Duration::from_secs(4));
    let (acknowledged, gap) = writer.stop();
    println!("paused manage leader: {} ms without service, {} rows", gap.as_millis(), acknowledged.len());
    assert!(gap < Duration::from_secs(4), "the others go on: {gap:?}");
    nodes[0].process().signal("CONT");
    let back = until_healthy(&nodes[1], 3);
    println!("paused node: everything as configured {} ms after it went on", back.as_millis());
    nodes.iter().for_each(|node| has_all(node, &acknowledged));
    assert_ne!(run(&mut nodes[0].connect(), "SELECT COUNT(*) FROM rauk.events WHERE what LIKE 'node 1 is up%'"), ["0"]);
}

/// The others end what a hung node's transactions do with them. That is the end of these transactions, not a KILL of a statement, after which they would go on.
#[test]
fn a_statement_that_waits_while_its_node_hangs_is_not_killed() {
    let root = tempfile::tempdir().unwrap();
    let nodes = all_in_one(root.path(), 3, "2");
    insist_on(
        &nodes[0],
        &[
            "CREATE DATABASE IF NOT EXISTS d",
            "CREATE TABLE IF NOT EXISTS d.t (id INT PRIMARY KEY, v INT)",
            "REPLACE INTO d.t VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0)",
        ],
    );
    for round in 0..3 {
        until_healthy(&nodes[0], 3);
        until_healthy(&nodes[1], 3);
        // Which of the rows the first node leads does not matter: some wait at others.
        let mut holder = nodes[1].connect();
        holder.query_drop("BEGIN").unwrap();
        if holder.query_drop(format!("UPDATE d.t SET v = {round}")).is_err() {
            continue;
        }
        let waiting: Vec<_> = (0..10)
            .map(|id| {
                let mut connection = nodes[0].connect();
                std::thread::spawn(move || {
                    let begun = run(&mut connection, "BEGIN");
                    let answer = run(&mut connection, &format!("UPDATE d.t SET v = 9 WHERE id = {id}"));
                    [begun[0].clone(), answer[0].clone()]
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        nodes[0].process().signal("STOP");
        std::thread::sleep(Duration::from_secs(1));
        nodes[0].process().signal("CONT");
        let answers: Vec<_> = waiting.into_iter().map(|t| t.join().expect("it ends")).collect();
        println!("what waited on a node that hung was told {answers:?}");
        assert!(!answers.iter().flatten().any(|answer| answer == "error 1317"), "{answers:?}");
    }
}

#[test]
fn all_nodes_killed_at_once_lose_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 3, "2");
    table(&nodes[0]);
    until_healthy(&nodes[0], 3);
    let writer = Writer::start(nodes[0].process().port, 1);
    std::thread::sleep(Duration::from_secs(1));
    for node in &mut nodes {
        node.kill();
    }
    let (acknowledged, _) = writer.stop();
    assert!(!acknowledged.is_empty());
    restart_all(&mut nodes);
    until_healthy(&nodes[0], 3);
    nodes.iter().for_each(|node| has_all(node, &acknowledged));
}

#[test]
fn a_node_with_an_empty_disk_is_filled() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 3, "3");
    table(&nodes[0]);
    until_healthy(&nodes[0], 3);
    let rows: Vec<String> = (0..2000).map(|id| format!("({id}, 'row {id}')")).collect();
    insist(&mut nodes[0].connect(), &format!("INSERT INTO bench.t VALUES {}", rows.join(",")));
    // Its disk is lost; it comes as a new node, and the cluster does without the old one.
    nodes[2].kill();
    std::fs::remove_dir_all(&nodes[2].dir).unwrap();
    nodes[2].restart();
    until("the new node has replicas of all partitions", || {
        let mut connection = nodes[0].connect();
        run(&mut connection, "SELECT COUNT(*) FROM rauk.partitions WHERE in_sync_count < 3") == ["0"]
    });
    let all: Vec<u64> = (0..2000).collect();
    nodes.iter().for_each(|node| has_all(node, &all));
}
