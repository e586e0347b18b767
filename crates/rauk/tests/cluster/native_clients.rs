//! Native clients that know several nodes of a cluster: the end of the node that they talk to costs the transaction that was running at most, and one secret is
//! good for all nodes.

use crate::common::cluster::{Node, all_in_one_with, insist, until, until_healthy};
use crate::common::{Rauk, number};
use rauk_client::blocking::{self, wait};
use rauk_client::{Client, Error, Options, RetryPolicy, Table, Value};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// Three nodes, and a table of the database `shop`.
fn cluster(root: &Path) -> Vec<Node> {
    let nodes = all_in_one_with(root, 3, &["--replicas", "2"]);
    until_healthy(&nodes[0], 3);
    let mut sql = nodes[0].connect();
    insist(&mut sql, "CREATE DATABASE shop");
    insist(&mut sql, "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT NOT NULL)");
    insist(&mut sql, "CREATE TABLE shop.sums (id INT PRIMARY KEY, v INT NOT NULL)");
    insist(&mut sql, "INSERT INTO shop.sums VALUES (1, 0)");
    nodes
}

pub fn servers(nodes: &[Node]) -> String {
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
    let secret = nodes[0].dir.join("native.secret");
    // One connection leads to one node.
    let address = format!("rauk://{}/?secret-file={}&placement=off", servers(&nodes), secret.display());
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

/// The secret in a node's directory, which only its owner may read.
fn secret(node: &Node) -> String {
    let file = node.dir.join("native.secret");
    let mode = std::fs::metadata(&file).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    std::fs::read_to_string(file).expect("readable").trim().to_string()
}

/// Whether a node lets in who knows a secret.
fn lets_in(node: &Node, secret: &str) -> bool {
    let client = blocking::connect(&servers(std::slice::from_ref(node)), Options::secret(secret));
    match client {
        Ok(_) => true,
        Err(error) => {
            assert!(error.message.contains("the secret is wrong"), "{error}");
            false
        }
    }
}

#[test]
fn a_cluster_has_one_secret() {
    let root = tempfile::tempdir().unwrap();
    // A node alone that founds a cluster keeps its secret.
    let founder = root.path().join("n1");
    Rauk::start(&founder).stop();
    let before = std::fs::read_to_string(founder.join("native.secret")).expect("made at the first start");
    let mut nodes = all_in_one_with(root.path(), 2, &["--replicas", "2"]);
    until_healthy(&nodes[0], 2);
    assert_eq!(secret(&nodes[0]), before.trim());
    assert_eq!(secret(&nodes[1]), before.trim());
    let own = before.trim().to_string();
    assert!(nodes.iter().all(|node| lets_in(node, &own)));
    assert!(!lets_in(&nodes[1], "a secret that nobody has"));

    // A directory of an earlier version has a secret of its own: whoever knows that is let in until its file is removed.
    let another = "the secret that this node had";
    nodes[1].stop();
    std::fs::write(nodes[1].dir.join("native.secret"), another).unwrap();
    nodes[1].restart();
    assert_eq!(secret(&nodes[1]), own);
    assert!(lets_in(&nodes[1], &own) && lets_in(&nodes[1], another));
    assert!(!lets_in(&nodes[0], another) && !lets_in(&nodes[1], "a secret that nobody has"));
    let said = nodes[1].process().said();
    assert!(said.contains("native.secret.earlier") && !said.contains(another) && !said.contains(&own), "{said}");
    nodes[1].stop();
    std::fs::remove_file(nodes[1].dir.join("native.secret.earlier")).unwrap();
    nodes[1].restart();
    assert!(lets_in(&nodes[1], &own) && !lets_in(&nodes[1], another));

    // A file that is named counts, and changes nothing of the cluster's.
    let named = root.path().join("named");
    std::fs::write(&named, another).unwrap();
    nodes[1].stop();
    nodes[1].restart_with(&["--secret-file", named.to_str().expect("UTF-8")]);
    assert!(lets_in(&nodes[1], another) && !lets_in(&nodes[1], &own));
    assert_eq!(secret(&nodes[1]), own);
}
