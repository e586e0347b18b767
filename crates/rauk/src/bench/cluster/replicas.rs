//! What a second replica costs: sysbench on a node alone, on clusters with one and with two replicas, and on peers, all up at the same time and taking turns.
//!
//! Connections are spread over all nodes that serve SQL, for the peers as well. The processor time is that of all processes of a system, whoever does the work: a replica that is written on another node
//! counts. On a machine with few cores that figure says what replicas cost; the throughput says what is left when client and all servers share those cores.

use super::arguments::{Options, Peer};
use super::galera::Galera;
use super::nodes::{Cluster, Plan};
use crate::bench::Sample;
use crate::bench::servers::{Kind, Server};
use crate::bench::sysbench::{self, Load, Workload};
use comfy_table::{Table, presets};
use std::path::Path;

const WORKLOADS: &[&str] = &["update-index", "point select", "read-write"];
const DURABILITY: &str = "fsync";

enum System {
    Alone(Server),
    Cluster(Cluster),
    Galera(Galera),
}

impl System {
    fn ports(&self) -> Vec<u16> {
        match self {
            System::Alone(server) => vec![server.port],
            System::Cluster(cluster) => cluster.sql_ports(),
            System::Galera(galera) => galera.ports(),
        }
    }

    fn cpu_seconds(&self) -> Result<f64, String> {
        match self {
            System::Alone(server) => server.cpu_seconds(),
            System::Cluster(cluster) => cluster.cpu_seconds(),
            System::Galera(galera) => galera.cpu_seconds(),
        }
    }
}

/// What one system did in one workload, all rounds together.
pub struct Line {
    pub workload: &'static str,
    pub system: &'static str,
    pub sample: Sample,
}

fn systems(options: &Options, root: &Path) -> Result<Vec<(&'static str, System)>, String> {
    let cluster = |name: &str, nodes, replicas| -> Result<System, String> {
        Cluster::start(&root.join(name), Plan::of(nodes, replicas, options.partitions, options.groups))
            .map(System::Cluster)
    };
    let mut list = vec![
        ("Rauk alone", System::Alone(Server::start(Kind::Rauk, root, DURABILITY)?)),
        ("Rauk, 1 replica", cluster("one", 1, 1)?),
        ("Rauk, 2 replicas", cluster("two", 2, 2)?),
    ];
    for peer in &options.against {
        list.push(match peer {
            Peer::MariaDb => ("MariaDB alone", System::Alone(Server::start(Kind::MariaDb, root, DURABILITY)?)),
            Peer::Galera => ("Galera, 2 nodes", System::Galera(Galera::start(&root.join("galera"), 2)?)),
        });
    }
    Ok(list)
}

pub fn run(options: &Options, root: &Path) -> Result<Vec<Line>, String> {
    let systems = systems(options, root)?;
    let ports: Vec<Vec<u16>> = systems.iter().map(|(_, s)| s.ports()).collect();
    let load = |at: usize| Load {
        ports: &ports[at],
        tables: options.tables,
        table_size: options.rows,
        threads: options.threads,
        seconds: options.seconds,
    };
    for (at, (name, _)) in systems.iter().enumerate() {
        eprintln!("{name}: loads {} × {} rows", options.tables, options.rows);
        sysbench::prepare(&load(at)).map_err(|e| format!("{name}: {e}"))?;
    }
    let mut lines = Vec::new();
    for workload in WORKLOADS.iter().filter_map(|name| sysbench::WORKLOADS.iter().find(|w| w.name == *name)) {
        let mut totals = vec![Sample::default(); systems.len()];
        for round in 0..options.rounds {
            for (at, (name, system)) in systems.iter().enumerate() {
                eprintln!("{}: round {} of {}, {name}", workload.name, round + 1, options.rounds);
                let sample =
                    measured(system, workload, &load(at)).map_err(|e| format!("{} on {name}: {e}", workload.name))?;
                let total = &mut totals[at];
                total.operations += sample.operations;
                total.seconds += sample.seconds;
                total.cpu_seconds += sample.cpu_seconds;
                total.p95_ms += sample.p95_ms / options.rounds as f64;
            }
        }
        lines.extend(systems.iter().zip(totals).map(|((system, _), sample)| Line {
            workload: workload.name,
            system,
            sample,
        }));
    }
    Ok(lines)
}

fn measured(system: &System, workload: &Workload, load: &Load<'_>) -> Result<Sample, String> {
    let before = system.cpu_seconds()?;
    let mut sample = sysbench::run(workload, load)?;
    sample.cpu_seconds = system.cpu_seconds()? - before;
    Ok(sample)
}

impl Line {
    pub fn rate(&self) -> f64 {
        self.sample.operations / self.sample.seconds
    }

    pub fn cpu_micros(&self) -> f64 {
        self.sample.cpu_seconds * 1e6 / self.sample.operations
    }
}

/// The same workload on another system.
fn beside<'l>(lines: &'l [Line], line: &Line, system: &str) -> Option<&'l Line> {
    lines.iter().find(|l| l.workload == line.workload && l.system == system && l.system != line.system)
}

pub fn table(lines: &[Line]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header([
        "workload",
        "system",
        "transactions/s",
        "server CPU µs/transaction",
        "p95 ms",
        "throughput ÷ Rauk alone",
        "CPU ÷ Rauk alone",
        "throughput ÷ Galera",
        "CPU ÷ Galera",
    ]);
    for line in lines {
        let ratios = |system: &str| match beside(lines, line, system) {
            Some(other) => {
                [line.rate() / other.rate(), line.cpu_micros() / other.cpu_micros()].map(|r| format!("{r:.2}×"))
            }
            None => ["–".to_string(), "–".to_string()],
        };
        let mut cells = vec![
            line.workload.to_string(),
            line.system.to_string(),
            format!("{:.0}", line.rate()),
            format!("{:.1}", line.cpu_micros()),
            format!("{:.2}", line.sample.p95_ms),
        ];
        cells.extend(ratios("Rauk alone"));
        cells.extend(ratios("Galera, 2 nodes"));
        table.add_row(cells);
    }
    table.to_string()
}

pub fn json(lines: &[Line]) -> serde_json::Value {
    let one = |line: &Line| {
        serde_json::json!({
            "workload": line.workload, "system": line.system, "transactions_per_second": line.rate(),
            "server_cpu_micros_per_transaction": line.cpu_micros(), "p95_ms": line.sample.p95_ms,
        })
    };
    lines.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_to_the_same_workload_of_another_system() {
        let line = |workload, system, operations, cpu_seconds| Line {
            workload,
            system,
            sample: Sample { operations, seconds: 2.0, cpu_seconds, p95_ms: 1.0 },
        };
        let lines = [
            line("update-index", "Rauk alone", 2000.0, 0.1),
            line("read-write", "Rauk alone", 10.0, 1.0),
            line("update-index", "Rauk, 2 replicas", 1000.0, 0.1),
            line("update-index", "Galera, 2 nodes", 500.0, 0.1),
        ];
        let text = table(&lines);
        let row = text.lines().find(|l| l.contains("2 replicas")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(
            cells[1..10],
            ["update-index", "Rauk, 2 replicas", "500", "100.0", "1.00", "0.50×", "2.00×", "2.00×", "0.50×"]
        );
        let alone = text.lines().find(|l| l.contains("read-write")).unwrap();
        assert!(alone.contains("–"), "{alone}");
        assert_eq!(json(&lines)[3]["transactions_per_second"], 250.0);
    }
}
