//! Clusters of Rauk for a run: real processes of this program, on free ports of the loopback interface, in directories of the run.
//!
//! The first node founds the cluster and makes its secret, the others join at the same time; a node tells where it is in its `ready.json`. What the cluster thinks of itself is read from a node's
//! `/cluster`, what it has done from `/metrics`. Nodes end by being killed, when they are dropped at the latest: their data is of no use after the run, and a clean end of nodes that go one after the other
//! would wait for majorities that are not there any more.
//!
//! A cluster that is to be cut apart has its nodes talk through relays of the run, one for each direction between two of them ([`Cluster::start_relayed`]); each message then takes a step more.

use super::relay::Relay;
use crate::bench::process::{Process, cpu_time, free_ports};
use crate::start::Ready;
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A node serves within this, also when it has a copy to wait for.
const SERVES: Duration = Duration::from_secs(120);
const HEALTHY: Duration = Duration::from_secs(60);
/// Nothing has moved for so long; primaries move one a second.
const SETTLED: Duration = Duration::from_millis(2500);
/// For an answer over HTTP.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

pub const ALL_ROLES: &str = "manage,data,sql";
pub const MANAGE: &str = "manage";
pub const NO_MANAGE: &str = "data,sql";

/// What a cluster is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Roles of each node; the first founds the cluster.
    pub roles: Vec<&'static str>,
    pub replicas: u8,
    pub partitions: u16,
    /// 0: one a partition.
    pub groups: u16,
}

impl Plan {
    /// So many nodes with data that all serve SQL. The first three decide in the manage group; beside only two of them a third does nothing else, so that there is a majority without either.
    pub fn of(data_nodes: usize, replicas: u8, partitions: u16, groups: u16) -> Plan {
        let mut roles: Vec<&str> = (0..data_nodes).map(|at| if at < 3 { ALL_ROLES } else { NO_MANAGE }).collect();
        if data_nodes == 2 {
            roles.push(MANAGE);
        }
        Plan { roles, replicas, partitions, groups }
    }
}

pub struct Node {
    /// From 1, in the order of the plan; not what the cluster calls it.
    pub number: usize,
    roles: &'static str,
    directory: PathBuf,
    log: PathBuf,
    process: Option<Process>,
    ready: Option<Ready>,
}

impl Node {
    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    pub fn has_data(&self) -> bool {
        self.roles.contains("data")
    }

    pub fn http(&self) -> Option<SocketAddr> {
        self.ready.as_ref().map(|ready| ready.http)
    }

    pub fn sql_port(&self) -> Option<u16> {
        self.ready.as_ref().and_then(|ready| ready.mysql).map(|address| address.port())
    }

    fn cluster_address(&self) -> Option<SocketAddr> {
        self.ready.as_ref().and_then(|ready| ready.cluster)
    }

    /// `/cluster` as this node has it.
    pub fn state(&self) -> Option<Value> {
        serde_json::from_str(&get(self.http()?, "/cluster").ok()?).ok()
    }

    fn metrics(&self) -> Result<String, String> {
        get(self.http().ok_or("the node does not run")?, "/metrics")
    }

    /// The last thing that it has said.
    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().rfind(|l| !l.trim().is_empty()).unwrap_or("it has said nothing").to_string()
    }
}

pub struct Cluster {
    pub nodes: Vec<Node>,
    secret: PathBuf,
    plan: Plan,
    relays: Option<Relays>,
}

/// Ways between nodes that can be cut.
struct Relays {
    /// By who speaks, then by who is spoken to.
    ways: Vec<Vec<Relay>>,
    /// Where each node listens: known before it does, so that others' ways lead there.
    ports: Vec<u16>,
}

impl Relays {
    fn new(nodes: usize) -> Result<Relays, String> {
        let ports = free_ports(nodes)?;
        let way = |to: &u16| -> Result<Relay, String> {
            let relay = Relay::start().map_err(|e| format!("cannot start a relay: {e}"))?;
            relay.lead_to(*to);
            Ok(relay)
        };
        let ways = (0..nodes).map(|_| ports.iter().map(way).collect()).collect::<Result<_, _>>()?;
        Ok(Relays { ways, ports })
    }
}

impl Cluster {
    /// Starts it in directories under `root`, and waits until all is as planned.
    pub fn start(root: &Path, plan: Plan) -> Result<Cluster, String> {
        Self::form(root, plan, None)
    }

    /// The same with nodes that can be cut off ([`Cluster::cut_off`]).
    pub fn start_relayed(root: &Path, plan: Plan) -> Result<Cluster, String> {
        let relays = Relays::new(plan.roles.len())?;
        Self::form(root, plan, Some(relays))
    }

    fn form(root: &Path, plan: Plan, relays: Option<Relays>) -> Result<Cluster, String> {
        std::fs::create_dir_all(root).map_err(|e| format!("cannot make {}: {e}", root.display()))?;
        let node = |(number, roles): (usize, &&'static str)| Node {
            number,
            roles,
            directory: root.join(format!("node{number}")),
            log: root.join(format!("node{number}.log")),
            process: None,
            ready: None,
        };
        let nodes: Vec<Node> = (1..).zip(&plan.roles).map(node).collect();
        let mut cluster = Cluster { secret: nodes[0].directory.join("cluster.secret"), nodes, plan, relays };
        cluster.launch(0)?;
        cluster.wait_ready(0)?;
        for at in 1..cluster.nodes.len() {
            cluster.launch(at)?;
            // Ways are named by the cluster's numbers, which follow the order of joining.
            if cluster.relays.is_some() {
                cluster.wait_ready(at)?;
            }
        }
        for at in 1..cluster.nodes.len() {
            cluster.wait_ready(at)?;
        }
        cluster.wait_healthy(HEALTHY)?;
        Ok(cluster)
    }

    /// Starts a node's process, and does not wait for it. One that has run keeps its address: a node with an empty directory there takes the place of the one before, while at another address it would be one
    /// more, and the replicas of the one before would wait for that to come back.
    pub fn launch(&mut self, at: usize) -> Result<(), String> {
        let running = self.nodes.iter().enumerate().filter(|(other, n)| n.is_running() && *other != at);
        let address = |(other, node): (usize, &Node)| match &self.relays {
            Some(relays) => Some(relays.ways[at][other].address),
            None => node.cluster_address(),
        };
        let members: Vec<String> = running.filter_map(address).map(|a| a.to_string()).collect();
        let (plan, node) = (&self.plan, &mut self.nodes[at]);
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut command = Command::new(program);
        // What configures other servers of this machine must not configure this one.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RAUK_")) {
            command.env_remove(name);
        }
        let log = OpenOptions::new().create(true).append(true).open(&node.log);
        let log = log.map_err(|e| format!("cannot write {}: {e}", node.log.display()))?;
        let kept = node.ready.take();
        let port = |address: Option<SocketAddr>| address.map_or(0, |a| a.port()).to_string();
        command
            .arg("start")
            .arg("--data-dir")
            .arg(&node.directory)
            .args(["--roles", node.roles, "--partitions", &plan.partitions.to_string()])
            .args(["--mysql-port", &port(kept.as_ref().and_then(|r| r.mysql))])
            .args(["--http-port", "0", "--native-port", "0", "--log-level", "warn"]);
        match &self.relays {
            Some(relays) => {
                let others = (0..relays.ports.len()).filter(|to| *to != at);
                let ways: Vec<String> =
                    others.map(|to| format!("{}={}", to + 1, relays.ways[at][to].address)).collect();
                command.args(["--cluster-port", &relays.ports[at].to_string(), "--peer-address", &ways.join(",")]);
            }
            None => {
                command.args(["--cluster-port", &port(kept.as_ref().and_then(|r| r.cluster))]);
            }
        }
        if members.is_empty() {
            command.args(["--replicas", &plan.replicas.to_string(), "--groups", &plan.groups.to_string()]);
        } else {
            command.args(["--join", &members.join(",")]).arg("--cluster-secret-file").arg(&self.secret);
        }
        let again = log.try_clone().map_err(|e| e.to_string())?;
        command.stdin(Stdio::null()).stdout(log).stderr(again);
        let process = Process::start("rauk", &mut command).map_err(|e| format!("cannot start rauk: {e}"))?;
        node.process = Some(process);
        Ok(())
    }

    /// Whether the node serves by now.
    pub fn is_ready(&mut self, at: usize) -> Result<bool, String> {
        let node = &mut self.nodes[at];
        let process = node.process.as_mut().ok_or("the node does not run")?;
        if let Some(words) = process.ended() {
            return Err(format!("node {}: {words}: {}", node.number, node.last_words()));
        }
        let pid = process.pid();
        node.ready = Ready::read(&node.directory).filter(|ready| ready.pid == pid);
        Ok(node.ready.is_some())
    }

    pub fn wait_ready(&mut self, at: usize) -> Result<(), String> {
        let end = Instant::now() + SERVES;
        while !self.is_ready(at)? {
            if Instant::now() >= end {
                let node = &self.nodes[at];
                return Err(format!("node {} does not serve after {SERVES:?}: {}", node.number, node.last_words()));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// What the node that has followed the group furthest says.
    pub fn state(&self) -> Option<Value> {
        self.nodes.iter().filter(|n| n.is_running()).filter_map(Node::state).max_by_key(|s| s["index"].as_u64())
    }

    /// Waits until all is as planned and stays so for a moment: a cluster that has just formed, or that has a node back, moves primaries still, and transactions that meet that end with 1213.
    pub fn wait_healthy(&self, limit: Duration) -> Result<(), String> {
        let end = Instant::now() + limit;
        let wanted = self.nodes.iter().filter(|n| n.is_running()).count();
        let mut since: Option<(Vec<Value>, Instant)> = None;
        loop {
            let state = self.state();
            let leads = state.as_ref().filter(|s| is_healthy(s) && nodes_up(s) >= wanted).map(views);
            since = match (leads, since) {
                (Some(now), Some((before, at))) if now == before => Some((before, at)),
                (Some(now), _) => Some((now, Instant::now())),
                (None, _) => None,
            };
            if since.as_ref().is_some_and(|(_, at)| at.elapsed() >= SETTLED) {
                return Ok(());
            }
            if Instant::now() >= end {
                let why = state.map_or("no node answers".into(), |s| s["reasons"].to_string());
                let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
                let processors = std::thread::available_parallelism().map_or(1, usize::from);
                let starved = starved(&load, processors).unwrap_or_default();
                return Err(format!("the cluster is not healthy after {limit:?}: {why}{starved}"));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// SIGKILL, and waits for its end.
    pub fn kill(&mut self, at: usize) {
        drop(self.nodes[at].process.take());
    }

    /// SIGTERM, and waits for its clean end.
    pub fn stop(&mut self, at: usize) -> Result<(), String> {
        self.nodes[at].process.take().ok_or("the node does not run")?.stop()
    }

    /// SIGSTOP or SIGCONT.
    pub fn signal(&self, at: usize, name: &str) -> Result<(), String> {
        self.nodes[at].process.as_ref().ok_or("the node does not run")?.signal(name)
    }

    /// Cuts every way to and from a node, or mends them.
    pub fn cut_off(&self, at: usize, is_cut: bool) {
        let relays = self.relays.as_ref().expect("only a cluster with relays is cut");
        relays.ways[at].iter().chain(relays.ways.iter().map(|ways| &ways[at])).for_each(|relay| relay.set_cut(is_cut));
    }

    /// Takes away what a node that does not run has on disk.
    pub fn empty(&mut self, at: usize) -> Result<(), String> {
        assert!(!self.nodes[at].is_running(), "a directory in use is not taken away");
        let directory = &self.nodes[at].directory;
        // The node that made the secret may be the one that loses everything.
        if self.secret.starts_with(directory) {
            let kept = directory.with_extension("secret");
            std::fs::copy(&self.secret, &kept).map_err(|e| format!("cannot copy {}: {e}", self.secret.display()))?;
            self.secret = kept;
        }
        std::fs::remove_dir_all(directory).map_err(|e| format!("cannot remove {}: {e}", directory.display()))
    }

    /// Which of the nodes leads the manage group.
    pub fn leader(&self) -> Option<usize> {
        let state = self.state()?;
        let leads = state["nodes"].as_array()?.iter().find(|n| n["leads_manage_group"] == true)?;
        let address = leads["address"].as_str()?;
        self.nodes.iter().position(|n| n.cluster_address().is_some_and(|a| a.to_string() == address))
    }

    pub fn sql_ports(&self) -> Vec<u16> {
        self.nodes.iter().filter(|n| n.is_running()).filter_map(Node::sql_port).collect()
    }

    /// Who leads each partition, and in which view; changes whenever a primary does.
    pub fn views(&self) -> Vec<Value> {
        self.state().as_ref().map(views).unwrap_or_default()
    }

    /// SQL port of the node that leads each partition.
    pub fn primaries(&self) -> Result<Vec<u16>, String> {
        let state = self.state().ok_or("no node tells of the cluster")?;
        primaries(&state).ok_or_else(|| "a partition is led by no node that serves SQL".to_string())
    }

    /// The largest number of a process that the cluster knows: they only grow.
    pub fn newest_process(&self) -> u64 {
        self.state().map_or(0, |state| processes(&state).max().unwrap_or(0))
    }

    /// Of all its processes so far.
    pub fn cpu_seconds(&self) -> Result<f64, String> {
        let processes = self.nodes.iter().filter_map(|n| n.process.as_ref());
        processes.map(|p| cpu_time(p.pid()).map(|t| t.own)).sum()
    }

    pub fn traffic(&self) -> Result<Traffic, String> {
        let mut sum = Traffic::default();
        for node in self.nodes.iter().filter(|n| n.is_running()) {
            let one = Traffic::read(&node.metrics()?)?;
            sum.messages += one.messages;
            sum.bytes += one.bytes;
        }
        Ok(sum)
    }

    /// Bytes of messages that a node has got from others.
    pub fn received_bytes(&self, at: usize) -> Result<f64, String> {
        counter(&self.nodes[at].metrics()?, "rauk_cluster_messages_received_bytes_total")
    }
}

/// Who leads each partition, and in which view.
fn views(state: &Value) -> Vec<Value> {
    let partitions = state["partitions"].as_array().into_iter().flatten();
    partitions.flat_map(|p| [p["view"].clone(), p["primary"].clone()]).collect()
}

pub fn is_healthy(state: &Value) -> bool {
    state["settled"] == true
}

pub fn nodes_up(state: &Value) -> usize {
    state["nodes"].as_array().map_or(0, |nodes| nodes.iter().filter(|n| n["life"] == "up").count())
}

/// The numbers of the processes that are its nodes.
pub fn processes(state: &Value) -> impl Iterator<Item = u64> + '_ {
    state["nodes"].as_array().into_iter().flatten().filter_map(|n| n["process"].as_u64())
}

/// The last partition is that of fully replicated tables, where rows of others never are.
fn primaries(state: &Value) -> Option<Vec<u16>> {
    let nodes = state["nodes"].as_array()?;
    let port = |id: &Value| -> Option<u16> {
        let node = nodes.iter().find(|n| n["node"] == *id)?;
        node["sql_address"].as_str()?.rsplit_once(':')?.1.parse().ok()
    };
    let partitions = state["partitions"].as_array()?;
    let (_, own) = partitions.split_last()?;
    own.iter().map(|p| port(&p["primary"])).collect()
}

/// What nodes have sent each other, without what the manage group's own consensus sends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    pub messages: f64,
    pub bytes: f64,
}

impl Traffic {
    fn read(metrics: &str) -> Result<Traffic, String> {
        Ok(Traffic {
            messages: counter(metrics, "rauk_cluster_messages_sent_total")?,
            bytes: counter(metrics, "rauk_cluster_messages_sent_bytes_total")?,
        })
    }

    pub fn since(self, before: Traffic) -> Traffic {
        Traffic { messages: self.messages - before.messages, bytes: self.bytes - before.bytes }
    }
}

/// A counter without labels, out of `/metrics`.
fn counter(metrics: &str, name: &str) -> Result<f64, String> {
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok());
    value.ok_or_else(|| format!("/metrics has no {name}"))
}

fn get(address: SocketAddr, path: &str) -> Result<String, String> {
    let shown = |e: std::io::Error| format!("{address}{path}: {e}");
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(shown)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(shown)?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: rauk\r\n\r\n").map_err(shown)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(shown)?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| format!("{address}{path}: no answer"))?;
    if head.split_whitespace().nth(1) == Some("200") {
        Ok(body.to_string())
    } else {
        Err(format!("{address}{path}: {}", head.lines().next().unwrap_or("")))
    }
}

/// What to add to the reasons of a cluster that is not healthy, where the machine had no time for it: a lease is 300 ms, and a node that gets no time has none. `load`: of `/proc/loadavg`.
fn starved(load: &str, processors: usize) -> Option<String> {
    let runnable: f64 = load.split(' ').next()?.parse().ok()?;
    (runnable > 2.0 * processors as f64).then(|| {
        format!("; the machine is overloaded ({runnable:.1} tasks want its {processors} processors), and nodes that get no time have no leases: run it again on an idle machine")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_majority_without_any_one_node() {
        assert_eq!(Plan::of(1, 1, 8, 0).roles, [ALL_ROLES]);
        assert_eq!(Plan::of(2, 2, 8, 0).roles, [ALL_ROLES, ALL_ROLES, MANAGE]);
        assert_eq!(Plan::of(4, 2, 8, 0).roles, [ALL_ROLES, ALL_ROLES, ALL_ROLES, NO_MANAGE]);
    }

    #[test]
    fn a_machine_without_time_is_told_of() {
        let told = starved("15.23 14.61 11.41 7/512 1234", 2).unwrap();
        assert!(told.contains("15.2 tasks want its 2 processors") && told.contains("idle machine"), "{told}");
        assert_eq!(starved("1.73 9.0 9.0 1/512 1234", 2), None);
        assert_eq!(starved("", 2), None);
    }

    #[test]
    fn counters_are_read_by_their_whole_name() {
        let metrics = "# TYPE rauk_cluster_messages_sent counter\nrauk_cluster_messages_sent_total 42\nrauk_cluster_messages_sent_bytes_total 9000\n";
        assert_eq!(Traffic::read(metrics).unwrap(), Traffic { messages: 42.0, bytes: 9000.0 });
        assert!(counter(metrics, "rauk_cluster_messages").unwrap_err().contains("no rauk_cluster_messages"));
    }

    #[test]
    fn who_leads_is_told_by_sql_port_and_the_replicated_partition_left_out() {
        let state = serde_json::json!({
            "nodes": [
                {"node": 1, "address": "127.0.0.1:1", "sql_address": "127.0.0.1:11", "life": "up", "process": 3},
                {"node": 2, "address": "127.0.0.1:2", "sql_address": "127.0.0.1:12", "life": "down", "process": 4},
            ],
            "partitions": [{"primary": 2}, {"primary": 1}, {"primary": 1}],
        });
        assert_eq!(primaries(&state), Some(vec![12, 11]));
        assert_eq!(nodes_up(&state), 1);
        let moved = serde_json::json!({"partitions": [{"view": 2, "primary": 1}]});
        assert_ne!(views(&state), views(&moved));
        let without = serde_json::json!({"nodes": [], "partitions": [{"primary": null}, {"primary": 1}]});
        assert_eq!(primaries(&without), None);
    }
}
