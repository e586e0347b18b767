//! What is shown of a local cluster: its nodes, its health, what to try.

use super::file::{ClusterFile, NodeEntry};
use crate::out;
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// A node that does not answer within this counts as one that does not.
const PATIENCE: Duration = Duration::from_millis(500);

/// A node's `/cluster`; `None`: it does not answer, or does not serve yet.
fn ask(address: SocketAddr) -> Option<Value> {
    get(address, "/cluster").filter(|(code, _)| *code == 200).map(|(_, page)| page)
}

/// What a node that does not serve yet says of its start.
pub struct Starting {
    /// Changes as long as recovery goes on; `None`: it waits, or has not begun.
    pub done: Option<(u64, u64)>,
    /// In words.
    pub reason: String,
}

impl Starting {
    fn of(page: &Value) -> Option<Starting> {
        let done = match page["status"].as_str()? {
            "recovering" => Some((page["percent"].as_u64()?, page["rows"].as_u64()?)),
            "starting" => None,
            _ => return None,
        };
        Some(Starting { done, reason: page["reason"].as_str()?.into() })
    }

    fn shown(&self) -> String {
        match self.done {
            Some((percent, _)) => format!("recovers, {percent} %"),
            None => "starts".into(),
        }
    }
}

/// `None`: the node serves, or does not answer.
pub fn starting(entry: &NodeEntry) -> Option<Starting> {
    let (code, page) = get(entry.http(), "/health").filter(|_| entry.ports.http != 0)?;
    (code == 503).then(|| Starting::of(&page))?
}

/// The code and the JSON of a page.
fn get(address: SocketAddr, path: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: rauk\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let code = text.split(' ').nth(1)?.parse().ok()?;
    Some((code, serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()?))
}

fn runs(entry: &NodeEntry) -> bool {
    entry.process.as_ref().is_some_and(|p| p.is_running() && !p.is_paused())
}

/// What a node that knows the newest state says: of those that answer, the one that has followed the group furthest.
pub fn newest(cluster: &ClusterFile) -> Option<Value> {
    let answers = cluster.nodes.iter().filter(|n| runs(n)).filter_map(|n| ask(n.http()));
    answers.max_by_key(|v| v["index"].as_u64())
}

/// Waits until other nodes that are up have everything that this one has, which is to lose its disk.
pub fn wait_spare(cluster: &ClusterFile, entry: &NodeEntry, limit: Duration) -> Result<(), String> {
    let end = Instant::now() + limit;
    loop {
        // The cluster hears of a process that has ended only when its lease is over; here it is known at once.
        let others = cluster.nodes.iter().filter(|n| n.number != entry.number && runs(n));
        let others: Vec<u16> = others.map(|n| n.ports.cluster).collect();
        let only = newest(cluster).map(|state| only_on(&state, entry.ports.cluster, &others));
        if only.as_ref().is_some_and(Vec::is_empty) {
            return Ok(());
        }
        if Instant::now() >= end {
            let number = entry.number;
            let why = match only {
                None => format!("no node answers, so nobody can tell whether others have what node {number} has"),
                Some(partitions) => {
                    format!("no other node that is up has all of partition {}", partitions.join(", "))
                }
            };
            let way_out = "`rauk cluster status` says what the cluster waits for";
            return Err(format!("with an empty disk of node {number} rows could be lost: {why}; {way_out}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Partitions that the node at the first cluster port has whole, and none that is up at the others.
fn only_on(state: &Value, port: u16, running: &[u16]) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for node in list(&state["nodes"]) {
        let address = node["address"].as_str().unwrap_or_default();
        let at: Option<u16> = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        if at == Some(port) {
            own.push(node["node"].clone());
        } else if node["life"] == "up" && at.is_some_and(|at| running.contains(&at)) {
            others.push(node["node"].clone());
        }
    }
    let only = |partition: &Value| {
        let in_sync = list(&partition["in_sync"]);
        in_sync.iter().any(|n| own.contains(n)) && !in_sync.iter().any(|n| others.contains(n))
    };
    list(&state["partitions"]).iter().filter(|p| only(p)).map(|p| p["partition"].to_string()).collect()
}

/// Waits until the cluster says that everything is where it is to be, and all nodes know each other.
pub fn wait_healthy(cluster: &ClusterFile, limit: Duration) -> Result<(), String> {
    let end = Instant::now() + limit;
    loop {
        let state = newest(cluster);
        let up = |state: &Value| {
            let nodes = state["nodes"].as_array();
            nodes.map_or(0, |nodes| nodes.iter().filter(|n| n["life"] == "up").count())
        };
        if state.as_ref().is_some_and(|s| s["settled"] == true && up(s) >= cluster.nodes.len()) {
            return Ok(());
        }
        if Instant::now() >= end {
            let reasons = state.map_or("no node answers".into(), |s| words(&s));
            return Err(format!("the cluster is not healthy after {} s: {reasons}", limit.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until all replicas that are placed on a node are in sync there.
pub fn wait_in_sync(cluster: &ClusterFile, entry: &NodeEntry, limit: Duration) -> Result<(), String> {
    let end = Instant::now() + limit;
    loop {
        let missing = newest(cluster).map(|state| missing_on(&state, entry.ports.cluster));
        if missing == Some(Some(0)) {
            return Ok(());
        }
        if !entry.is_running() {
            return Err(format!("node {} has ended: {}", entry.number, last_line(&entry.log)));
        }
        if Instant::now() >= end {
            let why = match missing.flatten() {
                Some(count) => format!("{count} of its partitions are not in sync after {} s", limit.as_secs()),
                None => "no node tells whether its replicas are in sync".into(),
            };
            return Err(format!("node {} serves, and {why}; `rauk cluster status` says what is awaited", entry.number));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Partitions that are placed on the node at a cluster port, and not in sync there; `None`: the cluster does not have it
/// as up yet.
fn missing_on(state: &Value, port: u16) -> Option<usize> {
    let address = format!("127.0.0.1:{port}");
    let nodes = state["nodes"].as_array()?;
    let node = nodes.iter().find(|node| node["address"] == address.as_str() && node["life"] == "up")?;
    let has = |list: &Value| list.as_array().is_some_and(|list| list.contains(&node["node"]));
    let partitions = state["partitions"].as_array()?;
    Some(partitions.iter().filter(|p| has(&p["placed"]) && !has(&p["in_sync"])).count())
}

fn words(state: &Value) -> String {
    let reasons: Vec<&str> = state["reasons"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match reasons.is_empty() {
        true => "everything is as configured".into(),
        false => reasons.join("; "),
    }
}

pub fn status(cluster: &ClusterFile) -> Result<(), String> {
    // The cluster hears of a process that has ended when its lease is over; here it is known at once.
    let ended: Vec<&NodeEntry> = cluster.nodes.iter().filter(|n| n.process.is_some() && !n.is_running()).collect();
    for entry in &ended {
        out::line(format_args!(
            "the process of node {0} has ended (`rauk cluster logs {0}`, `rauk cluster restart {0}`): {1}",
            entry.number,
            last_line(&entry.log)
        ))?;
    }
    match newest(cluster) {
        Some(state) if !ended.is_empty() && state["health"] == "green" => {
            out::line(format_args!("yellow: the cluster has not noticed yet\n"))?;
        }
        Some(state) => out::line(format_args!("{}: {}\n", state["health"].as_str().unwrap_or("?"), words(&state)))?,
        None => match cluster.nodes.iter().filter(|n| runs(n)).find_map(starting) {
            Some(node) => out::line(format_args!("no node serves yet: {}\n", node.reason))?,
            None => out::line(format_args!("no node answers\n"))?,
        },
    }
    table(cluster)
}

/// One row a node: as it was laid out, as its process is, as the cluster sees it.
pub fn table(cluster: &ClusterFile) -> Result<(), String> {
    let state = newest(cluster);
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header(["node", "roles", "process", "in the cluster", "leads", "replicas", "mysql", "http", "log"]);
    for entry in &cluster.nodes {
        let process = match &entry.process {
            None => "never started".into(),
            Some(p) if p.is_paused() => format!("{} paused", p.pid),
            Some(p) if p.is_running() => match starting(entry) {
                Some(starting) => format!("{} {}", p.pid, starting.shown()),
                None => p.pid.to_string(),
            },
            Some(_) => "ended".into(),
        };
        let address = format!("127.0.0.1:{}", entry.ports.cluster);
        let seen = state
            .as_ref()
            .and_then(|s| s["nodes"].as_array()?.iter().find(|n| n["address"] == address.as_str()).cloned());
        let cell = |key: &str| match seen.as_ref().map(|n| &n[key]) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => "-".into(),
        };
        let place = match &seen {
            Some(n) => {
                let leader = if n["leads_manage_group"] == true { ", leads the manage group" } else { "" };
                let life = match n["life"].as_str().unwrap_or("?") {
                    "up" if entry.process.is_some() && !entry.is_running() => "has ended",
                    life => life,
                };
                format!("node {} {life}{leader}", n["node"])
            }
            None => "-".into(),
        };
        let port = |port: u16| if port == 0 { "-".to_string() } else { port.to_string() };
        table.add_row([
            entry.number.to_string(),
            entry.roles.clone(),
            process,
            place,
            cell("primaries"),
            cell("replicas"),
            port(entry.ports.mysql),
            port(entry.ports.http),
            entry.log.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned()),
        ]);
    }
    out::line(format_args!("{table}"))
}

/// What to try next.
pub fn advice(cluster: &ClusterFile) -> Result<(), String> {
    let Some(sql) = cluster.nodes.iter().find(|n| n.serves_sql()) else { return Ok(()) };
    let other = cluster.nodes.iter().rfind(|n| n.serves_sql()).unwrap_or(sql);
    let data = cluster.nodes.iter().rfind(|n| n.roles.contains("data")).unwrap_or(sql);
    let dir = cluster.dir.display();
    out::line(format_args!(
        "\ntry:
  rauk sql --port {port} -e \"CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v TEXT); INSERT INTO shop.t VALUES (1, 'here')\"
  rauk sql --port {other} -e \"SELECT * FROM shop.t\"
  rauk cluster kill {data} --dir {dir}
  rauk cluster status --dir {dir}
  rauk sql --port {port} -e \"SELECT * FROM rauk.events ORDER BY time DESC LIMIT 10\"
  rauk cluster restart {data} --dir {dir}
  rauk status --port {port}
  rauk cluster down --dir {dir}",
        port = sql.ports.mysql,
        other = other.ports.mysql,
        data = data.number,
    ))
}

/// The last thing that a log says.
pub fn last_line(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it has said nothing");
    line.strip_prefix("rauk: ").unwrap_or(line).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_says_how_far_a_start_is() {
        let of = |page: Value| Starting::of(&page).map(|starting| starting.shown());
        let page = json!({ "status": "recovering", "reason": "r", "percent": 42, "rows": 7, "seconds_left": null });
        assert_eq!(of(page).as_deref(), Some("recovers, 42 %"));
        assert_eq!(of(json!({ "status": "starting", "reason": "r" })).as_deref(), Some("starts"));
        assert_eq!(of(json!({ "status": "stopping" })), None);
    }

    #[test]
    fn replicas_that_are_not_in_sync_are_counted() {
        let state = json!({
            "nodes": [
                { "node": 1, "address": "127.0.0.1:7001", "life": "up" },
                { "node": 2, "address": "127.0.0.1:7002", "life": "down" },
            ],
            "partitions": [
                { "placed": [1, 2], "in_sync": [2] },
                { "placed": [2, 1], "in_sync": [2, 1] },
                { "placed": [2], "in_sync": [2] },
            ],
        });
        assert_eq!(missing_on(&state, 7001), Some(1));
        assert_eq!(missing_on(&state, 7002), None, "it is down");
        assert_eq!(missing_on(&state, 7003), None);
    }

    #[test]
    fn who_has_the_only_whole_copy_is_known() {
        let state = |second: &str, in_sync: [&[u16]; 2]| {
            json!({
                "nodes": [
                    { "node": 1, "address": "127.0.0.1:7001", "life": "up" },
                    { "node": 2, "address": "127.0.0.1:7002", "life": second },
                ],
                "partitions": [
                    { "partition": 0, "in_sync": in_sync[0] },
                    { "partition": 1, "in_sync": in_sync[1] },
                ],
            })
        };
        let none: [String; 0] = [];
        assert_eq!(only_on(&state("up", [&[1, 2], &[2, 1]]), 7001, &[7002]), none);
        assert_eq!(only_on(&state("up", [&[1, 2], &[2, 1]]), 7001, &[]), ["0", "1"], "it has ended already");
        assert_eq!(only_on(&state("up", [&[1, 2], &[1]]), 7001, &[7002]), ["1"]);
        assert_eq!(only_on(&state("up", [&[1, 2], &[1]]), 7002, &[7001]), none);
        assert_eq!(only_on(&state("down", [&[1, 2], &[2]]), 7001, &[7002]), ["0"]);
        assert_eq!(only_on(&state("up", [&[], &[1]]), 7003, &[7001, 7002]), none);
    }
}
