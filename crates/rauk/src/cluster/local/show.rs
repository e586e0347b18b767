//! What is shown of a local cluster: its nodes, its health, what to try.

use super::file::{ClusterFile, NodeEntry};
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// A node that does not answer within this counts as one that does not.
const PATIENCE: Duration = Duration::from_millis(500);

/// A node's `/cluster`.
fn ask(address: SocketAddr) -> Option<Value> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET /cluster HTTP/1.1\r\nHost: rauk\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
}

fn runs(entry: &NodeEntry) -> bool {
    entry.process.as_ref().is_some_and(|p| p.is_running() && !p.is_paused())
}

/// What a node that knows the newest state says: of those that answer, the one that has followed the group furthest.
pub fn newest(cluster: &ClusterFile) -> Option<Value> {
    let answers = cluster.nodes.iter().filter(|n| runs(n)).filter_map(|n| ask(n.http()));
    answers.max_by_key(|v| v["index"].as_u64())
}

/// Waits until the cluster says that everything is as configured, and all nodes know each other.
pub fn wait_healthy(cluster: &ClusterFile, limit: Duration) -> Result<(), String> {
    let end = Instant::now() + limit;
    loop {
        let state = newest(cluster);
        let up = |state: &Value| {
            let nodes = state["nodes"].as_array();
            nodes.map_or(0, |nodes| nodes.iter().filter(|n| n["life"] == "up").count())
        };
        if state.as_ref().is_some_and(|s| s["health"] == "green" && up(s) >= cluster.nodes.len()) {
            return Ok(());
        }
        if Instant::now() >= end {
            let reasons = state.map_or("no node answers".into(), |s| words(&s));
            return Err(format!("the cluster is not healthy after {} s: {reasons}", limit.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn words(state: &Value) -> String {
    let reasons: Vec<&str> = state["reasons"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match reasons.is_empty() {
        true => "everything is as configured".into(),
        false => reasons.join("; "),
    }
}

pub fn status(cluster: &ClusterFile) -> Result<(), String> {
    match newest(cluster) {
        Some(state) => println!("{}: {}\n", state["health"].as_str().unwrap_or("?"), words(&state)),
        None => println!("no node answers\n"),
    }
    table(cluster);
    Ok(())
}

/// One row a node: as it was laid out, as its process is, as the cluster sees it.
pub fn table(cluster: &ClusterFile) {
    let state = newest(cluster);
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header(["node", "roles", "process", "in the cluster", "leads", "replicas", "mysql", "http", "log"]);
    for entry in &cluster.nodes {
        let process = match &entry.process {
            None => "never started".into(),
            Some(p) if p.is_paused() => format!("{} paused", p.pid),
            Some(p) if p.is_running() => p.pid.to_string(),
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
                format!("node {} {}{leader}", n["node"], n["life"].as_str().unwrap_or("?"))
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
    println!("{table}");
}

/// What to try next.
pub fn advice(cluster: &ClusterFile) {
    let Some(sql) = cluster.nodes.iter().find(|n| n.serves_sql()) else { return };
    let other = cluster.nodes.iter().rfind(|n| n.serves_sql()).unwrap_or(sql);
    let data = cluster.nodes.iter().rfind(|n| n.roles.contains("data")).unwrap_or(sql);
    let dir = cluster.dir.display();
    println!(
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
    );
}

/// The last thing that a log says.
pub fn last_line(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it has said nothing");
    line.strip_prefix("rauk: ").unwrap_or(line).to_string()
}
