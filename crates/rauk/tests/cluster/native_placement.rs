//! Native clients that know which node leads which rows: their requests need no other node, and the end of a node costs
//! what was under way there at most.

use crate::common::cluster::{Node, all_in_one_with, insist, until, until_healthy, until_settled};
use crate::common::number;
use crate::native_clients::servers;
use rauk_client::blocking::{self, wait};
use rauk_client::{Client, Options, RetryPolicy, Table, Value};
use std::path::Path;
use std::time::Duration;

const ROWS: i32 = 200;

/// Three nodes whose primaries rest, and tables of the database `shop` that are distributed in different ways.
fn cluster(root: &Path) -> Vec<Node> {
    let nodes = all_in_one_with(root, 3, &["--replicas", "2"]);
    until_healthy(&nodes[0], 3);
    until_settled(&nodes[0]);
    let mut sql = nodes[0].connect();
    for statement in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT NOT NULL)",
        "CREATE TABLE shop.probe (id INT PRIMARY KEY, v INT NOT NULL)",
        "INSERT INTO shop.probe WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 199) \
         SELECT i, 0 FROM n",
        "CREATE TABLE shop.session (user INT, number INT, v INT NOT NULL, PRIMARY KEY (user, number)) \
         PARTITION BY KEY (user)",
        "CREATE TABLE shop.ranges (id INT PRIMARY KEY, v INT NOT NULL) PARTITION BY RANGE (id) \
         (PARTITION low VALUES LESS THAN (100), PARTITION high VALUES LESS THAN MAXVALUE)",
    ] {
        insist(&mut sql, statement);
    }
    nodes
}

fn client(nodes: &[Node], more: &str) -> Client {
    let secret = nodes[0].dir.join("native.secret");
    let address = format!("rauk://{}/?secret-file={}{more}", servers(nodes), secret.display());
    // As long as a busy machine may need for another node to take partitions over.
    let retry = RetryPolicy { attempts: 120, longest_pause: Duration::from_millis(500), ..RetryPolicy::default() };
    blocking::connect(&address, Options { retry, ..Options::default() }).expect("let in")
}

fn table(client: &Client, name: &str) -> Table {
    wait(client.table("shop", name)).expect("opened")
}

/// Operations that nodes have asked other nodes for.
fn forwarded(nodes: &[Node]) -> u64 {
    let sql = "SELECT value FROM rauk.counters WHERE name = 'remote_operations'";
    nodes.iter().map(|node| number(&mut node.connect(), sql)).sum()
}

/// How many operations are forwarded while this is done.
fn forwarded_by(nodes: &[Node], mut work: impl FnMut()) -> u64 {
    let before = forwarded(nodes);
    work();
    forwarded(nodes) - before
}

/// Changes each of the rows that are there for that, by a request of its own.
fn change_each(client: &Client) {
    let probe = table(client, "probe");
    for id in 0..ROWS {
        assert!(wait(probe.increment(id, "v", 1)).expect("changed").is_some());
    }
}

/// Waits until the client has connections to all leaders: then its requests stay where they go.
fn until_placed(nodes: &[Node], client: &Client) {
    until("requests go to the leaders", || forwarded_by(nodes, || change_each(client)) <= ROWS as u64 / 20);
}

#[test]
fn requests_go_to_the_nodes_that_lead() {
    let root = tempfile::tempdir().unwrap();
    let nodes = cluster(root.path());
    let few = ROWS as u64 / 20;

    // By one node, most of it is other nodes' work.
    let away = client(&nodes, "&placement=off");
    let rows = table(&away, "t");
    for id in 0..ROWS {
        wait(rows.insert(&[("id", Value::from(id)), ("v", Value::from(0))])).expect("inserted");
    }
    let all = forwarded_by(&nodes, || change_each(&away));
    assert!(all > ROWS as u64 / 3, "{all} of {ROWS} operations went to other nodes");

    let near = client(&nodes, "");
    until_placed(&nodes, &near);
    let rows = table(&near, "t");

    let singles = forwarded_by(&nodes, || {
        for id in 0..ROWS {
            assert!(wait(rows.get(id)).expect("read").is_some());
            assert!(wait(rows.increment(id, "v", 1)).expect("changed").is_some());
            assert_eq!(wait(rows.delete(id)), Ok(true));
            wait(rows.insert(&[("v", Value::from(id)), ("id", Value::from(id))])).expect("inserted");
        }
    });
    assert!(singles <= few, "{singles} of {} single operations went to other nodes", 4 * ROWS);

    // A batch of reads is one frame to each node, and its answers are in the order of the batch.
    let batches = forwarded_by(&nodes, || {
        for _ in 0..20 {
            let mut batch = near.batch();
            let ids: Vec<i32> = (0..ROWS).rev().chain([-1, 5, 5]).collect();
            let operations: Vec<_> = ids.iter().map(|id| batch.get_columns(&rows, *id, &["v", "id"])).collect();
            let result = wait(near.execute(batch)).expect("read");
            assert_eq!((result.len(), result.succeeded()), (ids.len(), ids.len() - 1));
            for (id, operation) in ids.iter().zip(operations) {
                let row = result.row(operation).expect("read");
                assert_eq!(row.map(|row| row.get::<i32>("v").expect("a number")), (*id >= 0).then_some(*id));
            }
        }
    });
    assert!(batches <= few, "{batches} operations of 20 batches of {ROWS} went to other nodes");

    // A transaction begins at the node that leads its first key.
    let transactions = forwarded_by(&nodes, || {
        for id in 0..ROWS {
            let changed = wait(near.transact(async |transaction| {
                let mut batch = transaction.batch();
                batch.get_for_update(&rows, id);
                batch.increment(&rows, id, "v", 1);
                transaction.execute(batch).await?.all_succeeded()
            }));
            assert_eq!(changed, Ok(()));
        }
    });
    assert!(transactions <= few, "{transactions} operations of {ROWS} transactions went to other nodes");

    // By a part of the key, and in a table whose rows are in partitions of the user's.
    let (sessions, ranges) = (table(&near, "session"), table(&near, "ranges"));
    let others = forwarded_by(&nodes, || {
        for id in 0..ROWS {
            let values = [("user", Value::from(id / 4)), ("number", Value::from(id)), ("v", Value::from(id))];
            wait(sessions.insert(&values)).expect("inserted");
            assert!(wait(sessions.increment((id / 4, id), "v", 1)).expect("changed").is_some());
            wait(ranges.insert(&[("id", Value::from(id)), ("v", Value::from(id))])).expect("inserted");
            assert!(wait(ranges.increment(id, "v", 1)).expect("changed").is_some());
        }
    });
    assert!(others <= few, "{others} of {} operations on other tables went to other nodes", 4 * ROWS);

    // What a node has acknowledged the others show, in transactions and outside of them, by whatever node.
    for id in 0..ROWS {
        let value = wait(rows.increment(id, "v", 7)).expect("changed").expect("it is there");
        let value: i32 = value.get("v").expect("a number");
        let shown = |row: Option<rauk_client::Row>| row.expect("it is there").get::<i32>("v").expect("a number");
        let first = (id + 1) % ROWS;
        let by_another = wait(near.transact(async |transaction| {
            transaction.get_row(&rows, first).await?;
            transaction.get_row(&rows, id).await
        }));
        assert_eq!(shown(by_another.expect("read")), value, "in a snapshot that another node has drawn");
        assert_eq!(shown(wait(table(&away, "t").get(id)).expect("read")), value, "by another client");
    }
}

/// Inserts one row after the other.
struct Writer {
    rows: Table,
    next: i32,
    acknowledged: Vec<i32>,
    unknown: Vec<i32>,
}

impl Writer {
    fn some(&mut self, count: usize) {
        for _ in 0..count {
            let id = self.next;
            self.next += 1;
            match wait(self.rows.insert(&[("id", Value::from(id)), ("v", Value::from(id))])) {
                Ok(_) => self.acknowledged.push(id),
                Err(error) if error.is_unknown_outcome() => self.unknown.push(id),
                Err(error) => panic!("row {id}: {error}"),
            }
            // What was acknowledged is there, whoever leads it now.
            let before = self.acknowledged[id as usize % self.acknowledged.len()];
            let row = wait(self.rows.get(before)).expect("read");
            assert_eq!(row.map(|row| row.get::<i32>("v")), Some(Ok(before)), "row {before} after row {id}");
        }
    }
}

#[test]
fn a_leader_that_is_killed_costs_what_was_under_way_there_at_most() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = cluster(root.path());
    let client = client(&nodes, "");
    let rows = table(&client, "t");
    let mut writer = Writer { rows, next: 0, acknowledged: Vec::new(), unknown: Vec::new() };
    writer.some(ROWS as usize);
    until_placed(&nodes, &client);

    // Each node leads something, and the client has a connection to each.
    for killed in 0..2 {
        let pid = nodes[killed].process().pid();
        let killer = std::thread::spawn(move || {
            std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill runs")
        });
        let before = writer.unknown.len();
        writer.some(300);
        assert!(killer.join().expect("no panic").success());
        nodes[killed].kill();
        writer.some(100);
        assert!(writer.unknown.len() <= before + 1, "one writer has one request under way");
        nodes[killed].restart();
        until_healthy(&nodes[2], 3);
        until_settled(&nodes[2]);
        // The node that has come back is used again.
        until_placed(&nodes, &client);
    }

    let mut sql = nodes[2].connect();
    let all = number(&mut sql, "SELECT COUNT(*) FROM shop.t");
    let (acknowledged, unknown) = (writer.acknowledged.len() as u64, writer.unknown.len() as u64);
    assert!((acknowledged..=acknowledged + unknown).contains(&all), "{all} rows, {acknowledged} acknowledged");
    println!("{acknowledged} acknowledged, {unknown} unknown");
}
