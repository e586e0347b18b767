//! What a transaction of one warehouse costs as the cluster grows.
//!
//! For each number of data nodes, with one and with two replicas, a cluster is started, loaded and used by terminals ([`super::warehouses`]), as many for each node whatever their number, unless the same load is asked
//! for (then fewer transactions share a flush and a message on each of more nodes), in two ways: *near*, each terminal connected to the
//! node that leads its warehouse, and *spread*, to the nodes in turn, wherever its warehouse is. How many terminals were local is measured, not assumed: EXPLAIN names a warehouse's partition, the cluster
//! tells who leads it.
//!
//! The processor time is that of all nodes of a cluster together, with what they spend on watching each other; how much that is, is measured before, with nobody connected. If the time a transaction
//! stays the same from two to eight nodes, nodes on machines of their own carry four times as much ([`super::projection`]): these few cores cannot show speed, but cost.

use super::arguments::Options;
use super::nodes::{Cluster, Plan, Traffic};
use super::projection;
use super::warehouses::{self, Done, Terminal};
use crate::bench::servers::connect;
use comfy_table::{Table, presets};
use std::path::Path;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    Near,
    Spread,
}

impl Placement {
    fn name(self) -> &'static str {
        match self {
            Placement::Near => "near",
            Placement::Spread => "spread",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub nodes: usize,
    pub replicas: u8,
    pub placement: Placement,
    /// Share of terminals connected to the node that leads their warehouse, in per cent.
    pub local: f64,
    pub transactions: f64,
    pub retries: u64,
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub messages: f64,
    pub bytes: f64,
    /// Of all nodes with nobody connected: processor seconds and messages a second.
    pub idle_cpu: f64,
    pub idle_messages: f64,
}

impl Line {
    pub fn rate(&self) -> f64 {
        self.transactions / self.seconds
    }

    pub fn cpu_micros(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.transactions
    }

    /// Without what the nodes spend when nobody is there.
    pub fn net_micros(&self) -> f64 {
        (self.cpu_seconds - self.idle_cpu * self.seconds) * 1e6 / self.transactions
    }

    pub fn net_messages(&self) -> f64 {
        (self.messages - self.idle_messages * self.seconds) / self.transactions
    }
}

/// Warehouses, and threads that work on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Load {
    warehouses: u32,
    threads: usize,
}

impl Load {
    fn of(options: &Options, nodes: usize) -> Load {
        let (warehouses, threads) = (options.warehouses, options.threads);
        match options.grows {
            true => {
                Load {
                    // Two at least, for transactions that touch a second one.
                    warehouses: (warehouses * nodes as u32).div_ceil(2).max(2),
                    threads: (threads * nodes).div_ceil(2),
                }
            }
            false => Load { warehouses, threads },
        }
    }
}

pub fn run(options: &Options, root: &Path) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for replicas in [2, 1] {
        for nodes in options.nodes_or(&[2, 4, 8]).iter().copied().filter(|n| *n >= usize::from(replicas)) {
            let name = format!("scale-{nodes}-{replicas}");
            eprintln!(
                "{nodes} data nodes, {replicas} replicas: starts and loads {} warehouses",
                Load::of(options, nodes).warehouses
            );
            let cluster = Cluster::start(&root.join(&name), Plan::of(nodes, replicas, options.partitions))?;
            lines.extend(
                on(&cluster, nodes, replicas, options)
                    .map_err(|e| format!("{nodes} data nodes, {replicas} replicas: {e}"))?,
            );
        }
    }
    Ok(lines)
}

fn on(cluster: &Cluster, nodes: usize, replicas: u8, options: &Options) -> Result<Vec<Line>, String> {
    let ports = cluster.sql_ports();
    let load = Load::of(options, nodes);
    let mut connection = connect(ports[0])?;
    warehouses::load(&mut connection, load.warehouses)?;
    cluster.wait_healthy(Duration::from_secs(60))?;
    let idle_time = Duration::from_secs(options.seconds.min(3));
    let (cpu, traffic) = (cluster.cpu_seconds()?, cluster.traffic()?);
    std::thread::sleep(idle_time);
    let idle_cpu = (cluster.cpu_seconds()? - cpu) / idle_time.as_secs_f64();
    let idle_messages = cluster.traffic()?.since(traffic).messages / idle_time.as_secs_f64();
    let mut lines: Vec<Line> = [Placement::Near, Placement::Spread]
        .map(|placement| Line {
            nodes,
            replicas,
            placement,
            local: 0.0,
            transactions: 0.0,
            retries: 0,
            seconds: 0.0,
            cpu_seconds: 0.0,
            messages: 0.0,
            bytes: 0.0,
            idle_cpu,
            idle_messages,
        })
        .into();
    let mut done = Done::default();
    let mut history = vec![1u64; load.warehouses as usize];
    for round in 0..options.rounds {
        for line in &mut lines {
            eprintln!(
                "{nodes} data nodes, {replicas} replicas, {}: round {} of {}",
                line.placement.name(),
                round + 1,
                options.rounds
            );
            let homes = homes(&mut connection, cluster, load.warehouses)?;
            let chosen: Vec<u16> = match line.placement {
                Placement::Near => homes.clone(),
                Placement::Spread => ports.iter().copied().cycle().take(homes.len()).collect(),
            };
            let local = homes.iter().zip(&chosen).filter(|(home, port)| home == port).count();
            line.local += 100.0 * local as f64 / homes.len() as f64 / options.rounds as f64;
            let one = round_of(cluster, &chosen, &mut history, load, options)?;
            line.transactions += one.done.transactions() as f64;
            line.retries += one.done.retries;
            line.seconds += one.seconds;
            line.cpu_seconds += one.cpu_seconds;
            line.messages += one.traffic.messages;
            line.bytes += one.traffic.bytes;
            done.add(one.done);
        }
    }
    for port in ports {
        warehouses::check(&mut connect(port)?, &done)?;
    }
    Ok(lines)
}

/// SQL port of the node that leads each warehouse.
fn homes(connection: &mut mysql::Conn, cluster: &Cluster, warehouses: u32) -> Result<Vec<u16>, String> {
    let primaries = cluster.primaries()?;
    let home = |warehouse| -> Result<u16, String> {
        let partition = warehouses::partition(connection, warehouse)?;
        primaries.get(partition).copied().ok_or_else(|| format!("there is no partition {partition}"))
    };
    (1..=warehouses).map(home).collect()
}

struct Round {
    done: Done,
    seconds: f64,
    cpu_seconds: f64,
    traffic: Traffic,
}

/// A terminal for each port, shared out to the threads.
fn round_of(
    cluster: &Cluster,
    ports: &[u16],
    history: &mut [u64],
    load: Load,
    options: &Options,
) -> Result<Round, String> {
    let mut shares: Vec<Vec<Terminal>> = (0..load.threads).map(|_| Vec::new()).collect();
    for (at, port) in ports.iter().enumerate() {
        let warehouse = at as u32 + 1;
        let terminal = Terminal::new(connect(*port)?, warehouse, load.warehouses, options.remote, history[at])?;
        shares[at % load.threads].push(terminal);
    }
    let (cpu, traffic) = (cluster.cpu_seconds()?, cluster.traffic()?);
    let duration = Duration::from_secs(options.seconds);
    let began = Instant::now();
    std::thread::scope(|scope| -> Result<(), String> {
        let threads: Vec<_> =
            shares.iter_mut().map(|share| scope.spawn(move || warehouses::work(share, duration))).collect();
        let results: Vec<_> = threads.into_iter().map(|t| t.join().expect("a terminal does not panic")).collect();
        results.into_iter().collect()
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let cpu_seconds = cluster.cpu_seconds()? - cpu;
    let traffic = cluster.traffic()?.since(traffic);
    let mut done = Done::default();
    for (at, share) in shares.iter().enumerate() {
        for (turn, terminal) in share.iter().enumerate() {
            done.add(terminal.done);
            history[at + turn * load.threads] = terminal.next_history;
        }
    }
    Ok(Round { done, seconds, cpu_seconds, traffic })
}

pub fn table(lines: &[Line]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header([
        "data nodes",
        "replicas",
        "terminals",
        "local",
        "transactions/s",
        "CPU µs/transaction",
        "… without idle",
        "against the smallest",
        "messages/transaction",
        "KB/transaction",
        "idle: CPU %, messages/s",
        "retries",
    ]);
    for line in lines {
        let base = lines.iter().find(|l| l.replicas == line.replicas && l.placement == line.placement);
        let base = base.expect("a line is among the lines");
        table.add_row([
            line.nodes.to_string(),
            line.replicas.to_string(),
            line.placement.name().to_string(),
            format!("{:.0} %", line.local),
            format!("{:.0}", line.rate()),
            format!("{:.0}", line.cpu_micros()),
            format!("{:.0}", line.net_micros()),
            format!("{:.0} %", 100.0 * line.net_micros() / base.net_micros()),
            format!("{:.1}", line.net_messages()),
            format!("{:.1}", line.bytes / line.transactions / 1e3),
            format!("{:.1}, {:.0}", 100.0 * line.idle_cpu, line.idle_messages),
            line.retries.to_string(),
        ]);
    }
    table.to_string()
}

/// What these costs mean for machines of their own; `None` without measurements of two replicas.
pub fn projected(lines: &[Line], cores: f64) -> Option<String> {
    let cost = |placement: Placement| -> Vec<projection::Measured> {
        let fitting = lines.iter().filter(|l| l.replicas == 2 && l.placement == placement);
        let measured = |l: &Line| projection::Measured {
            nodes: l.nodes,
            local: l.local / 100.0,
            cpu_micros: l.net_micros(),
            messages: l.net_messages(),
            bytes: l.bytes / l.transactions,
            idle_cpu: l.idle_cpu / l.nodes as f64,
        };
        fitting.map(measured).collect()
    };
    projection::table(&cost(Placement::Near), &cost(Placement::Spread), cores)
}

pub fn json(lines: &[Line]) -> serde_json::Value {
    let one = |line: &Line| {
        serde_json::json!({
            "data_nodes": line.nodes, "replicas": line.replicas, "terminals": line.placement.name(), "local_percent": line.local,
            "transactions_per_second": line.rate(), "cpu_micros_per_transaction": line.cpu_micros(),
            "cpu_micros_without_idle": line.net_micros(), "messages_per_transaction": line.net_messages(),
            "bytes_per_transaction": line.bytes / line.transactions, "idle_cpu": line.idle_cpu,
            "idle_messages_per_second": line.idle_messages, "retries": line.retries,
        })
    };
    lines.iter().map(one).collect()
}
