//! `rauk bench sql`: sysbench, single-row inserts, and what schemas cost (foreign keys, JSON, LOAD DATA), against Rauk, and against MariaDB in the same run.
//!
//! The servers are started for the run, each with a temporary data directory, both durable (an acknowledged commit is on disk). For every workload they take
//! turns for as many rounds as wanted, so that a change of the machine's mood meets both. Reported are throughput, the server's CPU time an
//! operation (user and system, from /proc), and the 95th percentile of latency; a ratio means Rauk against the peer of the same run.
//!
//! What it does not do: talk to servers that it did not start, or compare runs.

pub mod analytics;
pub mod cluster;
pub mod ddl;
pub mod flex;
mod inserts;
pub mod process;
mod report;
mod schemas;
mod servers;
mod sysbench;
mod warehouses;

pub use report::Row;

use crate::out;
use servers::{Kind, Server};

pub struct SqlOptions {
    pub against_mariadb: bool,
    pub seconds: u64,
    pub rounds: usize,
    pub threads: usize,
    pub table_size: u64,
    pub inserts: u64,
    /// Only workloads whose name contains this.
    pub only: Option<String>,
    pub json: Option<String>,
    pub durability: String,
}

impl SqlOptions {
    fn load<'a>(&self, ports: &'a [u16]) -> sysbench::Load<'a> {
        let SqlOptions { table_size, threads, seconds, .. } = *self;
        sysbench::Load { ports, tables: 1, table_size, threads, seconds }
    }
}

/// What one server did in one round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub operations: f64,
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub p95_ms: f64,
}

pub fn sql(options: &SqlOptions) -> Result<(), String> {
    let root = process::temporary_directory()?;
    let mut list = vec![Server::start(Kind::Rauk, root.path(), &options.durability)?];
    if options.against_mariadb {
        list.push(Server::start(Kind::MariaDb, root.path(), &options.durability)?);
    }
    for server in &list {
        eprintln!("{} is up: port {}, pid {}", server.kind.name(), server.port, server.pid());
    }
    let mut rows = Vec::new();
    let wanted = |name: &str| options.only.as_deref().is_none_or(|only| name.contains(only));
    let workloads: Vec<_> = sysbench::WORKLOADS.iter().filter(|w| wanted(w.name)).collect();
    if !workloads.is_empty() {
        for server in &list {
            sysbench::prepare(&options.load(&[server.port]))?;
        }
    }
    for workload in workloads {
        rows.push(rounds(workload.name, &list, options, |server| {
            sysbench::run(workload, &options.load(&[server.port]))
        })?);
    }
    for (name, key, connections) in [
        ("insert 1 int, key, 1 connection", true, 1),
        ("insert 1 int, key, 8 connections", true, 8),
        ("insert 1 int, no key, 1 connection", false, 1),
        ("insert 1 int, no key, 8 connections", false, 8),
    ] {
        if wanted(name) {
            rows.push(rounds(name, &list, options, |server| inserts::run(server, key, connections, options.inserts))?);
        }
    }
    for workload in schemas::WORKLOADS.iter().filter(|workload| wanted(workload.name())) {
        for server in &list {
            let prepared = workload.prepare(server, options);
            prepared.map_err(|e| format!("{} on {}: {e}", workload.name(), server.kind.name()))?;
        }
        rows.push(rounds(workload.name(), &list, options, |server| workload.run(server, options, root.path()))?);
    }
    let names: Vec<&str> = list.iter().map(|s| s.kind.name()).collect();
    out::line(format_args!("{}", report::table(&names, &rows)))?;
    if let Some(file) = &options.json {
        std::fs::write(file, report::json(&names, &rows)).map_err(|e| format!("cannot write {file}: {e}"))?;
    }
    for server in list {
        server.stop()?;
    }
    Ok(())
}

/// Alternates the servers and adds up their rounds.
fn rounds(
    name: &str,
    servers: &[Server],
    options: &SqlOptions,
    mut run: impl FnMut(&Server) -> Result<Sample, String>,
) -> Result<Row, String> {
    let mut totals = vec![Sample::default(); servers.len()];
    for round in 0..options.rounds {
        for (server, total) in servers.iter().zip(&mut totals) {
            eprint!("\r{name}: round {} of {}, {}          ", round + 1, options.rounds, server.kind.name());
            let before = server.cpu_seconds()?;
            let sample = run(server).map_err(|e| format!("{name} on {}: {e}", server.kind.name()))?;
            total.cpu_seconds += server.cpu_seconds()? - before;
            total.operations += sample.operations;
            total.seconds += sample.seconds;
            total.p95_ms += sample.p95_ms / options.rounds as f64;
        }
    }
    eprintln!("\r{name}: done                              ");
    Ok(Row { name: name.into(), samples: totals })
}
