//! A cluster of real processes with durability `replicated`: all killed at once, it comes back to a cut; stopped in
//! order, it loses nothing.

use crate::common::cluster::{Node, insist, member_command, refused, restart_all, until, until_healthy};
use crate::common::{rauk_command, run};
use mysql::prelude::Queryable;
use mysql::{Conn, TxOpts};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const ACCOUNTS: u64 = 12;
const BALANCE: i64 = 1000;
/// What was acknowledged so long before everything was killed is there. Cuts are drawn every 50 ms, on a machine that
/// has time for them.
const OLD: Duration = Duration::from_secs(4);

fn nodes(root: &Path) -> Vec<Node> {
    let secret = root.join("secret");
    let secret = secret.to_str().expect("UTF-8").to_string();
    let flags = ["--durability", "replicated", "--cluster-secret-file", &secret];
    let mut nodes = vec![Node::start(&root.join("n1"), &[&flags[..], &["--replicas", "2"]].concat())];
    let founder = nodes[0].address();
    for number in 2..=3 {
        let dir = root.join(format!("n{number}"));
        nodes.push(Node::start(&dir, &[&flags[..], &["--join", &founder]].concat()));
    }
    nodes
}

/// Accounts with their first balances, and an empty ledger; gives the connection that made them.
fn bank(node: &Node) -> Conn {
    let mut connection = node.connect();
    for sql in [
        "CREATE DATABASE bank",
        "CREATE TABLE bank.a (id BIGINT PRIMARY KEY, v BIGINT)",
        "CREATE TABLE bank.l (line BIGINT PRIMARY KEY, gets BIGINT, gives BIGINT)",
    ] {
        connection.query_drop(sql).unwrap();
    }
    for id in 0..ACCOUNTS {
        insist(&mut connection, &format!("INSERT INTO bank.a VALUES ({id}, {BALANCE})"));
    }
    connection
}

/// Moves money between accounts, with a line in a ledger each time, until told to stop. Gives the lines that were
/// acknowledged, and when.
fn transfers(port: u16, first: u64, stop: &Arc<AtomicBool>) -> JoinHandle<Vec<(u64, Instant)>> {
    let stop = stop.clone();
    std::thread::spawn(move || {
        let options = || {
            let options = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(port);
            // A process that executes itself may leave a connection behind of which its client hears nothing more.
            options.user(Some("root")).prefer_socket(false).read_timeout(Some(Duration::from_secs(60)))
        };
        let (mut acknowledged, mut line, mut connection) = (Vec::new(), first, None::<Conn>);
        while !stop.load(Ordering::SeqCst) {
            let Some(open) = &mut connection else {
                connection = Conn::new(options()).ok();
                std::thread::sleep(Duration::from_millis(5));
                continue;
            };
            line += 2;
            let (from, to) = (line % ACCOUNTS, (line + 1 + line / 2 % (ACCOUNTS - 1)) % ACCOUNTS);
            let transfer = |conn: &mut Conn| -> Result<(), mysql::Error> {
                let mut txn = conn.start_transaction(TxOpts::default())?;
                // In one order, so that no two wait for each other.
                for (account, amount) in [(from.min(to), 7), (from.max(to), -7)] {
                    txn.query_drop(format!("UPDATE bank.a SET v = v + {amount} WHERE id = {account}"))?;
                }
                txn.query_drop(format!("INSERT INTO bank.l VALUES ({line}, {}, {})", from.min(to), from.max(to)))?;
                txn.commit()
            };
            match transfer(open) {
                Ok(()) => acknowledged.push((line, Instant::now())),
                Err(mysql::Error::MySqlError(_)) => {}
                Err(_) => connection = None,
            }
        }
        acknowledged
    })
}

/// Balances against the ledger; gives the ledger's lines.
fn check(node: &Node) -> Vec<u64> {
    let mut read = None;
    until("the bank is read", || {
        let rows = |conn: &mut Conn| -> Result<_, mysql::Error> {
            let mut txn = conn.start_transaction(TxOpts::default())?;
            let balances: Vec<(u64, i64)> = txn.query("SELECT id, v FROM bank.a")?;
            let lines: Vec<(u64, u64, u64)> = txn.query("SELECT line, gets, gives FROM bank.l ORDER BY line")?;
            txn.commit()?;
            Ok((balances, lines))
        };
        read = node.process().try_connect().ok().and_then(|mut conn| rows(&mut conn).ok());
        read.is_some()
    });
    let (balances, lines) = read.expect("just read");
    assert_eq!(balances.len() as u64, ACCOUNTS);
    for (account, balance) in balances {
        let moved =
            |(_, gets, gives): &(u64, u64, u64)| 7 * (i64::from(*gets == account) - i64::from(*gives == account));
        let expected = BALANCE + lines.iter().map(moved).sum::<i64>();
        assert_eq!(balance, expected, "account {account} against its {} lines", lines.len());
    }
    lines.into_iter().map(|(line, ..)| line).collect()
}

#[test]
fn all_killed_at_once_come_back_to_a_cut_and_all_stopped_in_order_lose_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = nodes(root.path());
    until_healthy(&nodes[0], 3);
    let mut connection = bank(&nodes[0]);
    let shown = run(&mut connection, "SHOW VARIABLES LIKE 'rauk_durability'");
    assert_eq!(shown, ["rauk_durability | replicated"]);

    let stop = Arc::new(AtomicBool::new(false));
    let clients = [transfers(nodes[0].process().port, 2, &stop), transfers(nodes[1].process().port, 3, &stop)];
    std::thread::sleep(OLD * 2);
    let killed = Instant::now();
    nodes.iter_mut().for_each(Node::kill);
    stop.store(true, Ordering::SeqCst);
    let acknowledged: Vec<(u64, Instant)> = clients.into_iter().flat_map(|c| c.join().expect("it ends")).collect();
    let old: Vec<u64> = acknowledged.iter().filter(|(_, at)| *at + OLD < killed).map(|(line, _)| *line).collect();
    assert!(!old.is_empty(), "{} transfers", acknowledged.len());
    restart_all(&mut nodes);
    until_healthy(&nodes[0], 3);
    for node in &nodes {
        let there = check(node);
        let lost: Vec<&u64> = old.iter().filter(|line| there.binary_search(line).is_err()).collect();
        assert!(lost.is_empty(), "{} of {} old transfers are lost: {lost:?}", lost.len(), old.len());
        let all = acknowledged.iter().filter(|(line, _)| there.binary_search(line).is_err()).count();
        println!("killed at once: {all} of {} acknowledged transfers are lost", acknowledged.len());
    }

    let last = acknowledged.iter().map(|(line, _)| *line).max().expect("there are some") + 2;
    let stop = Arc::new(AtomicBool::new(false));
    let client = transfers(nodes[2].process().port, last, &stop);
    std::thread::sleep(Duration::from_secs(2));
    stop.store(true, Ordering::SeqCst);
    let acknowledged = client.join().expect("it ends");
    assert!(!acknowledged.is_empty());
    std::thread::scope(|scope| {
        for node in &mut nodes {
            let process = node.process.take().expect("it runs");
            scope.spawn(move || process.stop());
        }
    });
    restart_all(&mut nodes);
    until_healthy(&nodes[0], 3);
    let there = check(&nodes[0]);
    let lost = acknowledged.iter().filter(|(line, _)| there.binary_search(line).is_err()).count();
    assert_eq!(lost, 0, "of {} acknowledged before a stop in order", acknowledged.len());
}

/// A process that is stopped for longer than its lease may have the only copy of what was acknowledged in its memory.
/// None ends here: the node that goes on meanwhile is stopped too, before the first has everything again.
#[test]
fn nodes_that_are_stopped_one_after_the_other_lose_nothing() {
    let root = tempfile::tempdir().unwrap();
    let nodes = nodes(root.path());
    until_healthy(&nodes[0], 3);
    let mut connection = bank(&nodes[0]);
    assert_eq!(run(&mut connection, "SELECT @@rauk_memory_return_timeout"), ["30"]);
    // A debug build on a busy machine takes its time to come back.
    connection.query_drop("SET GLOBAL rauk_memory_return_timeout = 300").unwrap();

    let is_down = |seen_from: &Node, node: usize| {
        let status = format!("SELECT status FROM rauk.nodes WHERE node_id = {}", node + 1);
        seen_from.process().try_connect().is_ok_and(|mut c| run(&mut c, &status) == ["down"])
    };
    for round in 0..3 {
        let stop = Arc::new(AtomicBool::new(false));
        let ports = [0, 1, 2].map(|node: usize| nodes[node].process().port);
        let first = 10_000_000 * (round + 1);
        let clients = [transfers(ports[2], first, &stop), transfers(ports[1], first + 1, &stop)];
        std::thread::sleep(Duration::from_secs(1));
        for (paused, watching) in [(0, 2), (1, 2)] {
            nodes[paused].process().signal("STOP");
            until("it is down", || is_down(&nodes[watching], paused));
            // Time to go on alone.
            std::thread::sleep(Duration::from_millis(500));
            nodes[paused].process().signal("CONT");
            std::thread::sleep(Duration::from_millis(400 * round));
        }
        until_healthy(&nodes[2], 3);
        stop.store(true, Ordering::SeqCst);
        let acknowledged: Vec<(u64, Instant)> = clients.into_iter().flat_map(|c| c.join().expect("it ends")).collect();
        assert!(!acknowledged.is_empty());
        for node in &nodes {
            let there = check(node);
            let lost = acknowledged.iter().filter(|(line, _)| there.binary_search(line).is_err()).count();
            assert_eq!(lost, 0, "round {round}: of {} acknowledged transfers", acknowledged.len());
        }
        println!("round {round}: {} transfers", acknowledged.len());
    }
    let metrics = nodes[2].process().http("/metrics");
    assert!(metrics.contains("rauk_cluster_cut_age_milliseconds"), "{metrics}");
}

/// Nobody writes while one node after another is replaced; then power fails everywhere. The last cut must be one that
/// the nodes that are left hold.
#[test]
fn rows_outlive_the_nodes_that_they_were_written_on() {
    let root = tempfile::tempdir().unwrap();
    let secret = root.path().join("secret");
    let flags = ["--durability", "replicated", "--cluster-secret-file", secret.to_str().expect("UTF-8")];
    let founding = [&flags[..], &["--replicas", "2", "--replace-after", "1"]].concat();
    let mut nodes = vec![Node::start(&root.path().join("n1"), &founding)];
    let founder = nodes[0].address();
    let join = |nodes: &mut Vec<Node>, founder: &str| {
        let dir = root.path().join(format!("n{}", nodes.len() + 1));
        nodes.push(Node::start(&dir, &[&flags[..], &["--join", founder]].concat()));
    };
    join(&mut nodes, &founder);
    until_healthy(&nodes[0], 2);
    let mut connection = nodes[0].connect();
    connection.query_drop("CREATE DATABASE d").unwrap();
    connection.query_drop("CREATE TABLE d.t (id BIGINT PRIMARY KEY, v BIGINT)").unwrap();
    let rows: Vec<String> = (0..300).map(|id| format!("({id}, {id})")).collect();
    insist(&mut connection, &format!("INSERT INTO d.t VALUES {}", rows.join(",")));
    join(&mut nodes, &founder);
    join(&mut nodes, &founder);
    until_healthy(&nodes[3], 4);
    for gone in [0, 1] {
        nodes[gone].kill();
        let number = gone + 1;
        until("it is down", || {
            let status = format!("SELECT status FROM rauk.nodes WHERE node_id = {number}");
            run(&mut nodes[3].connect(), &status) == ["down"]
        });
        until("it is forgotten", || {
            nodes[3].connect().query_drop(format!("ALTER CLUSTER FORGET NODE {number}")).is_ok()
        });
        until_healthy(&nodes[3], 3 - gone);
        // The voters of the manage group follow.
        std::thread::sleep(Duration::from_secs(2));
    }
    nodes.drain(..2).for_each(drop);
    nodes.iter_mut().for_each(Node::kill);
    restart_all(&mut nodes);
    until_healthy(&nodes[0], 2);
    assert_eq!(run(&mut nodes[1].connect(), "SELECT COUNT(*), SUM(v) FROM d.t"), ["300 | 44850"]);
}

#[test]
fn replicas_are_needed() {
    let root = tempfile::tempdir().unwrap();
    let mut alone = rauk_command(&root.path().join("alone"));
    alone.args(["--durability", "replicated"]);
    let text = refused(alone);
    assert!(text.contains("replicated") && text.contains("--cluster-port"), "{text}");
    let text = refused(member_command(&root.path().join("relaxed"), &["--durability", "relaxed"]));
    assert!(text.contains("fsync or replicated"), "{text}");
}
