//! Real nodes of a cluster for a test: temporary directories, free ports that a node keeps over restarts, ended by pid.

use super::{Rauk, rauk_command};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A debug build on a machine that does other things as well.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A node's ports: how it is told of each, and how it says them.
const PORTS: [(&str, &str); 4] =
    [("--mysql-port", "mysql"), ("--native-port", "native"), ("--http-port", "http"), ("--cluster-port", "cluster")];

/// A free port that no other process is given while the node is down: those that the system deals out, to listen or to
/// connect from, are from 32768 on. None is given twice: a port that was drawn is free until its node listens on it, and
/// again while that node is down.
pub fn own_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let draw = || rand::random_range(10_000..32_000u16);
    let is_free = |port: &u16| !given.contains(port) && TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let port = std::iter::repeat_with(draw).take(1_000).find(is_free).expect("a port is free");
    given.insert(port);
    port
}

pub struct Node {
    pub dir: PathBuf,
    pub process: Option<Rauk>,
    pub cluster_port: u16,
    ports: Vec<String>,
    arguments: Vec<String>,
    namespace: Option<String>,
}

fn start(namespace: Option<&str>, command: Command) -> Rauk {
    let process = match namespace {
        Some(namespace) => Rauk::start_within(namespace, command),
        None => Rauk::start_with(command),
    };
    process.unwrap_or_else(|e| panic!("{e}"))
}

/// `rauk start` as a member, with free ports.
pub fn member_command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = rauk_command(dir);
    command.args(["--memory-limit", "128MiB", "--redo-segment", "1MiB", "--cluster-port", "0"]).args(arguments);
    command
}

/// What a node that is to be refused says, within its time.
pub fn refused(command: Command) -> String {
    let began = Instant::now();
    match Rauk::start_with(command) {
        Ok(_) => panic!("it was let in"),
        Err(text) => {
            assert!(began.elapsed() < PATIENCE, "{text}");
            text
        }
    }
}

impl Node {
    pub fn start(dir: &Path, arguments: &[&str]) -> Node {
        Self::start_within(None, dir, arguments)
    }

    /// In a network namespace of the test's.
    pub fn start_within(namespace: Option<&str>, dir: &Path, arguments: &[&str]) -> Node {
        let chosen: Vec<String> =
            PORTS.iter().flat_map(|(flag, _)| [flag.to_string(), own_port().to_string()]).collect();
        let told = chosen.iter().map(String::as_str).chain(arguments.iter().copied());
        let process = start(namespace, member_command(dir, &told.collect::<Vec<_>>()));
        let mut ready = serde_json::Value::Null;
        // One that was taken for gone on a busy machine begins anew, and says it again.
        until("a node that serves says where", || {
            let text = std::fs::read_to_string(dir.join("ready.json")).unwrap_or_default();
            ready = serde_json::from_str(&text).unwrap_or_default();
            ready.is_object()
        });
        let port =
            |name: &str| ready[name].as_str().and_then(|a| a.rsplit_once(':')?.1.parse::<u16>().ok()).unwrap_or(0);
        let cluster_port = port("cluster");
        let mut ports = Vec::new();
        for (flag, name) in PORTS {
            ports.extend([flag.to_string(), port(name).to_string()]);
        }
        let arguments = arguments.iter().map(|a| a.to_string()).collect();
        let namespace = namespace.map(str::to_string);
        Node { dir: dir.into(), process: Some(process), cluster_port, ports, arguments, namespace }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.cluster_port)
    }

    pub fn process(&self) -> &Rauk {
        self.process.as_ref().expect("it runs")
    }

    pub fn connect(&self) -> Conn {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.process().try_connect() {
                Ok(connection) => return connection,
                // A process that starts anew does not listen for a moment.
                Err(error) if Instant::now() > end => panic!("{error}"),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    pub fn kill(&mut self) {
        self.process.take().expect("it runs").kill();
    }

    /// SIGTERM, and a clean end.
    pub fn stop(&mut self) {
        let status = self.process.take().expect("it runs").stop();
        assert!(status.success(), "a node that is told to stop ends with {status}");
    }

    /// On the ports that it had.
    pub fn restart(&mut self) {
        self.restart_with(&[]);
    }

    /// The same, told this as well.
    pub fn restart_with(&mut self, more: &[&str]) {
        self.process = Some(start(self.namespace.as_deref(), self.again(more)));
    }

    /// What it says when it is told this as well, and does not start.
    pub fn refused_restart(&self, more: &[&str]) -> String {
        refused(self.again(more))
    }

    fn again(&self, more: &[&str]) -> Command {
        let own = self.arguments.iter().chain(&self.ports).map(String::as_str);
        member_command(&self.dir, &own.chain(more.iter().copied()).collect::<Vec<_>>())
    }
}

/// `count` nodes with all roles; the first has founded the cluster.
pub fn all_in_one(root: &Path, count: usize, replicas: &str) -> Vec<Node> {
    all_in_one_with(root, count, &["--replicas", replicas])
}

/// The same; `founding`: what the first is told.
pub fn all_in_one_with(root: &Path, count: usize, founding: &[&str]) -> Vec<Node> {
    let secret = root.join("secret");
    let secret = secret.to_str().expect("UTF-8").to_string();
    let mut nodes = vec![Node::start(&root.join("n1"), &[founding, &["--cluster-secret-file", &secret]].concat())];
    let founder = nodes[0].address();
    for number in 2..=count {
        let dir = root.join(format!("n{number}"));
        nodes.push(Node::start(&dir, &["--join", &founder, "--cluster-secret-file", &secret]));
    }
    nodes
}

/// Restarts nodes that were all down at once: nobody serves before a majority of the manage nodes is there.
pub fn restart_all(nodes: &mut [Node]) {
    std::thread::scope(|scope| {
        for node in nodes {
            scope.spawn(|| node.restart());
        }
    });
}

/// Runs a statement, again as long as it ends with 1213: primaries move to where they are preferred for a while after nodes have come, and take transactions that are under way with them.
pub fn insist(connection: &mut Conn, sql: &str) {
    let began = Instant::now();
    loop {
        match connection.query_drop(sql) {
            Ok(()) => return,
            Err(mysql::Error::MySqlError(e)) if e.code == 1213 && began.elapsed() < PATIENCE => {}
            Err(error) => panic!("{sql:.100}: {error}"),
        }
    }
}

/// Runs statements that may be run twice, each until it is done, whatever it is refused with and whether or not its connection lasts: a node of a busy machine may lose its lease and start anew.
pub fn insist_on(node: &Node, statements: &[&str]) {
    for sql in statements {
        let mut told = String::new();
        let began = Instant::now();
        while let Err(error) = node.connect().query_drop(sql) {
            assert!(began.elapsed() < PATIENCE, "{sql:.100}: {error}, before that {told}");
            told = error.to_string();
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Waits until `condition` holds of a fresh connection's answers.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    began.elapsed()
}

/// What every cluster of two nodes is told, since its control plane has one voter.
const OF_TWO: &str = "since fewer than three nodes have the role manage";

/// Health as a node tells it, but for what a cluster of two cannot help.
pub fn health(node: &Node) -> Option<String> {
    let mut connection = node.process().try_connect().ok()?;
    let rows: Vec<(String, String)> = connection.query("SELECT status, reason FROM rauk.health").ok()?;
    let (status, _) = rows.first()?;
    let as_expected = status == "yellow" && rows.iter().all(|(_, reason)| reason.contains(OF_TWO));
    Some(if as_expected { "green".into() } else { status.clone() })
}

pub fn until_healthy(node: &Node, nodes: usize) -> Duration {
    until("the cluster is healthy", || {
        let up = |c: &mut Conn| c.query_first::<usize, _>("SELECT COUNT(*) FROM rauk.nodes WHERE status = 'up'");
        let all = node.process().try_connect().ok().and_then(|mut c| up(&mut c).ok()?) == Some(nodes);
        all && health(node).as_deref() == Some("green")
    })
}

/// Waits until no primary has moved for a while; they move one a second after nodes have come.
pub fn until_settled(node: &Node) {
    let (mut views, mut since) = (Vec::new(), Instant::now());
    until("primaries rest", || {
        let now = super::run(&mut node.connect(), "SELECT SUM(view_number) FROM rauk.partitions");
        assert!(!now[0].starts_with("error"), "{now:?}");
        if now != views {
            (views, since) = (now, Instant::now());
        }
        since.elapsed() > Duration::from_millis(2500)
    });
}

/// A database `shop` with the numbers from 1 to 600.
pub fn numbered(connection: &mut Conn) {
    insist(connection, "CREATE DATABASE shop");
    insist(connection, "CREATE TABLE shop.numbers (i INT PRIMARY KEY)");
    insist(connection, "SET cte_max_recursion_depth = 1000");
    let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600) SELECT i FROM n";
    insist(connection, &format!("INSERT INTO shop.numbers {numbers}"));
}
