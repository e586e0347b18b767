//! Native clients that know several nodes of a cluster: the end of the node that they talk to costs the transaction that was running at most.

use crate::common::cluster::{Node, insist, until, until_healthy};
use crate::common::number;
use rauk_client::blocking::{self, wait};
use rauk_client::{Client, Error, Options, RetryPolicy, Table, Value};
use std::path::Path;
use std::time::Duration;

/// Three nodes, and a table of the database `shop`.
fn cluster(root: &Path) -> Vec<Node> {
    let secret = root.join("native.secret");
    std::fs::write(&secret, "a secret that all nodes are given").unwrap();
    let secret = secret.to_str().expect("UTF-8");
    let cluster_secret = root.join("secret");
    let cluster_secret = cluster_secret.to_str().expect("UTF-8");
    let given = ["--secret-file", secret, "--cluster-secret-file", cluster_secret];
    let mut nodes = vec![Node::start(&root.join("n1"), &[&given[..], &["--replicas", "2"]].concat())];
    let founder = nodes[0].address();
    for number in 2..=3 {
        let dir = root.join(format!("n{number}"));
        nodes.push(Node::start(&dir, &[&given[..], &["--join", &founder]].concat()));
    }
    until_healthy(&nodes[0], 3);
    let mut sql = nodes[0].connect();
    insist(&mut sql, "CREATE DATABASE shop");
    insist(&mut sql, "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT NOT NULL)");
    insist(&mut sql, "CREATE TABLE shop.sums (id INT PRIMARY KEY, v INT NOT NULL)");
    insist(&mut sql, "INSERT INTO shop.sums VALUES (1, 0)");
    nodes
}

fn servers(nodes: &[Node]) -> String {
    let of = |node: &Node| format!("127.0.0.1:{}", node.process().native_port);
    nodes.iter().map(of).collect::<Vec<_>>().join(",")
}

/// How many native clients a node has.
fn sessions(node: &Node) -> u64 {
    let text = node.process().http("/metrics");
    let line = text.lines().find(|line| line.starts_with("rauk_native_sessions ")).expect("it is counted");
    line.rsplit_once(' ').expect("a value").1.parse().expect("a number")
}

/// The node that the only client is connected to.
fn used(nodes: &[Node]) -> usize {
    let mut found = None;
    until("a node has the client", || {
        let with: Vec<usize> = (0..nodes.len()).filter(|at| sessions(&nodes[*at]) > 0).collect();
        assert!(with.len() < 2, "one connection leads to one node: {with:?}");
        found = with.first().copied();
        found.is_some()
    });
    found.expect("found above")
}

/// Writes one row after the other, each together with a sum.
struct Writer {
    client: Client,
    rows: Table,
    sums: Table,
    next: i32,
    acknowledged: Vec<i32>,
    unknown: Vec<i32>,
}

impl Writer {
    fn new(client: Client) -> Writer {
        let table = |name| wait(client.table("shop", name)).expect("opened");
        let (rows, sums) = (table("t"), table("sums"));
        Writer { rows, sums, client, next: 0, acknowledged: Vec::new(), unknown: Vec::new() }
    }

    fn one(&mut self) {
        let id = self.next;
        self.next += 1;
        let done: Result<(), Error> = wait(self.client.transact(async |transaction| {
            let mut batch = transaction.batch();
            batch.insert(&self.rows, &[("id", Value::from(id)), ("v", Value::from(id))]);
            batch.increment(&self.sums, 1, "v", 1);
            transaction.execute(batch).await?.all_succeeded()
        }));
        match done {
            Ok(()) => self.acknowledged.push(id),
            Err(error) if error.is_unknown_outcome() => self.unknown.push(id),
            Err(error) => panic!("row {id}: {error}"),
        }
    }

    fn some(&mut self, count: usize) {
        (0..count).for_each(|_| self.one());
    }
}

#[test]
fn a_node_that_ends_costs_its_clients_the_running_transaction_at_most() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = cluster(root.path());
    let secret = root.path().join("native.secret");
    let address = format!("rauk://{}/?secret-file={}", servers(&nodes), secret.display());
    // As long as a busy machine may need for another node to take partitions over.
    let retry = RetryPolicy { attempts: 120, longest_pause: Duration::from_millis(500), ..RetryPolicy::default() };
    let client = blocking::connect(&address, Options { retry, ..Options::default() }).expect("let in");
    let mut writer = Writer::new(client);
    writer.some(50);

    // Killed while it writes.
    let first = used(&nodes);
    let pid = nodes[first].process().pid();
    let killer = std::thread::spawn(move || {
        std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill runs")
    });
    writer.some(200);
    assert!(killer.join().expect("no panic").success());
    nodes[first].kill();
    writer.some(50);
    let lost = writer.unknown.len();
    assert!(lost <= 1, "{lost} transactions for one node");

    // Stopped in order.
    nodes[first].restart();
    until_healthy(&nodes[first], 3);
    let second = used(&nodes);
    assert_ne!(first, second, "the client has gone on at another node");
    std::thread::scope(|scope| {
        let node = &mut nodes[second];
        let stopping = scope.spawn(|| node.stop());
        while !stopping.is_finished() {
            writer.one();
        }
    });
    writer.some(50);
    assert!(writer.unknown.len() <= lost + 1, "{} transactions for one node", writer.unknown.len() - lost);

    // What was acknowledged is there; of an unknown outcome both parts or none.
    let third = (0..3).find(|at| *at != second).expect("there are three");
    let mut sql = nodes[third].connect();
    let list = |ids: &[i32]| ids.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    let count = format!("SELECT COUNT(*) FROM shop.t WHERE v = id AND id IN ({})", list(&writer.acknowledged));
    assert_eq!(number(&mut sql, &count), writer.acknowledged.len() as u64);
    let all = number(&mut sql, "SELECT COUNT(*) FROM shop.t");
    assert_eq!(number(&mut sql, "SELECT v FROM shop.sums"), all);
    assert!(all <= (writer.acknowledged.len() + writer.unknown.len()) as u64);
    println!("{} acknowledged, {} unknown", writer.acknowledged.len(), writer.unknown.len());
}
