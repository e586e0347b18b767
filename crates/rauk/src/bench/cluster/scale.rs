//! What a transaction of one warehouse costs as the cluster grows.
//!
//! For each number of data nodes, with one and with two replicas, a cluster is started, loaded and used by terminals ([`crate::bench::warehouses`]), as many for each node whatever their number, unless the same load is asked
//! for (then fewer transactions share a flush and a message on each of more nodes), in two ways: *near*, each terminal connected to the
//! node that leads its warehouse, and *spread*, to the nodes in turn, wherever its warehouse is. How many terminals were local is measured, not assumed: EXPLAIN names a warehouse's partition, the cluster
//! tells who leads it.
//!
//! The processor time is that of all nodes of a cluster together, with what they spend on watching each other; how much that is, is measured before, with nobody connected. If the time a transaction
//! stays the same from two to eight nodes, nodes on machines of their own carry four times as much ([`super::projection`]): these few cores cannot show speed, but cost.
//!
//! # The control
//! Many processes on few cores also take caches from each other and change threads more often, which is no cost of the cluster and would not be there on machines of their own. So each cluster of four data nodes or
//! more is set against as many data nodes with the same load that are clusters of two, and know nothing of each other: what the cluster costs more than they do is what comes from being one cluster. They run after the cluster
//! has ended, not beside it in turns: twelve nodes with nobody connected take more than a third of a core.

use super::arguments::Options;
use super::fleet::{Fleet, Idle, Load, Round};
use super::nodes::Plan;
use super::projection;
use comfy_table::{Table, presets};
use std::path::Path;

/// Data nodes of each cluster of a control.
const PAIR: usize = 2;

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
    /// Data nodes, of all clusters together.
    pub nodes: usize,
    pub replicas: u8,
    pub placement: Placement,
    /// More than one: the control of one cluster of so many nodes.
    pub clusters: usize,
    /// Share of terminals connected to the node that leads their warehouse, in per cent.
    pub local: f64,
    pub transactions: f64,
    pub retries: u64,
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub messages: f64,
    pub bytes: f64,
    /// Of all nodes with nobody connected.
    pub idle: Idle,
}

impl Line {
    fn of(nodes: usize, replicas: u8, clusters: usize, placement: Placement, idle: Idle, rounds: &[Round]) -> Line {
        let sum = |of: fn(&Round) -> f64| rounds.iter().map(of).sum::<f64>();
        Line {
            nodes,
            replicas,
            placement,
            clusters,
            local: 100.0 * sum(|r| r.local) / rounds.len() as f64,
            transactions: sum(|r| r.done.transactions() as f64),
            retries: rounds.iter().map(|r| r.done.retries).sum(),
            seconds: sum(|r| r.seconds),
            cpu_seconds: sum(|r| r.cpu_seconds),
            messages: sum(|r| r.traffic.messages),
            bytes: sum(|r| r.traffic.bytes),
            idle,
        }
    }

    fn is_control(&self) -> bool {
        self.clusters > 1
    }

    pub fn rate(&self) -> f64 {
        self.transactions / self.seconds
    }

    pub fn cpu_micros(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.transactions
    }

    /// Without what the nodes spend when nobody is there.
    pub fn net_micros(&self) -> f64 {
        (self.cpu_seconds - self.idle.cpu * self.seconds) * 1e6 / self.transactions
    }

    pub fn net_messages(&self) -> f64 {
        (self.messages - self.idle.messages * self.seconds) / self.transactions
    }

    /// Cost of a transaction in per cent of that in the smallest cluster of these lines.
    fn against_smallest(&self, lines: &[Line]) -> f64 {
        let mut alike = lines.iter().filter(|l| l.replicas == self.replicas && l.placement == self.placement);
        let base = alike.find(|l| !l.is_control()).unwrap_or(self);
        100.0 * self.net_micros() / base.net_micros()
    }

    /// In per cent of that in this cluster's control, if there is one.
    fn against_control(&self, lines: &[Line]) -> Option<f64> {
        let its_own = |l: &&Line| {
            (l.nodes, l.replicas, l.placement) == (self.nodes, self.replicas, self.placement) && l.is_control()
        };
        let control = lines.iter().find(its_own).filter(|_| !self.is_control())?;
        Some(100.0 * self.net_micros() / control.net_micros())
    }
}

/// How many clusters make the control of one of so many data nodes. None: it is as small itself, or would leave a node over.
fn control_clusters(nodes: usize) -> Option<usize> {
    (nodes > PAIR && nodes.is_multiple_of(PAIR)).then_some(nodes / PAIR)
}

pub fn run(options: &Options, root: &Path) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for replicas in [2, 1] {
        for nodes in options.nodes_or(&[2, 4, 8]).iter().copied().filter(|n| *n >= usize::from(replicas)) {
            let control = control_clusters(nodes).filter(|_| options.control);
            for clusters in std::iter::once(1).chain(control) {
                let what = described(nodes, replicas, clusters);
                let measured = on(nodes, replicas, clusters, options, root);
                lines.extend(measured.map_err(|e| format!("{what}: {e}"))?);
            }
        }
    }
    Ok(lines)
}

fn described(nodes: usize, replicas: u8, clusters: usize) -> String {
    let control = if clusters > 1 { " (control)" } else { "" };
    format!("{}{control}, {replicas} replicas", data_nodes(nodes, clusters))
}

fn data_nodes(nodes: usize, clusters: usize) -> String {
    match clusters {
        1 => format!("{nodes} data nodes"),
        _ => format!("{clusters} clusters of {}", nodes / clusters),
    }
}

fn on(nodes: usize, replicas: u8, clusters: usize, options: &Options, root: &Path) -> Result<Vec<Line>, String> {
    let (what, load) = (described(nodes, replicas, clusters), Load::of(options, nodes));
    eprintln!("{what}: starts and loads {} warehouses", load.warehouses);
    let plan = Plan::of(nodes / clusters, replicas, options.partitions, options.groups);
    let directory = root.join(format!("scale-{nodes}-{replicas}-{clusters}"));
    let mut fleet = Fleet::start(&directory, &plan, clusters, load)?;
    let idle = fleet.idle(options)?;
    let placements: &[Placement] =
        if clusters > 1 { &[Placement::Near] } else { &[Placement::Near, Placement::Spread] };
    let mut measured: Vec<Vec<Round>> = vec![Vec::new(); placements.len()];
    for round in 1..=options.rounds {
        for (placement, rounds) in placements.iter().zip(&mut measured) {
            eprintln!("{what}, {}: round {round} of {}", placement.name(), options.rounds);
            rounds.push(fleet.round(*placement, options)?);
        }
    }
    fleet.check()?;
    let line =
        |(placement, rounds): (&Placement, &Vec<Round>)| Line::of(nodes, replicas, clusters, *placement, idle, rounds);
    Ok(placements.iter().zip(&measured).map(line).collect())
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
        "against the control",
        "messages/transaction",
        "KB/transaction",
        "idle: CPU %, messages/s",
        "retries",
    ]);
    for line in lines {
        let (clusters, terminals) = match line.is_control() {
            true => (data_nodes(line.nodes, line.clusters), "near, control"),
            false => (line.nodes.to_string(), line.placement.name()),
        };
        let control = line.against_control(lines);
        table.add_row([
            clusters,
            line.replicas.to_string(),
            terminals.to_string(),
            format!("{:.0} %", line.local),
            format!("{:.0}", line.rate()),
            format!("{:.0}", line.cpu_micros()),
            format!("{:.0}", line.net_micros()),
            format!("{:.0} %", line.against_smallest(lines)),
            control.map_or(String::new(), |percent| format!("{percent:.0} %")),
            format!("{:.1}", line.net_messages()),
            format!("{:.1}", line.bytes / line.transactions / 1e3),
            format!("{:.1}, {:.0}", 100.0 * line.idle.cpu, line.idle.messages),
            line.retries.to_string(),
        ]);
    }
    table.to_string()
}

/// What these costs mean for machines of their own; `None` without measurements of two replicas.
pub fn projected(lines: &[Line], cores: f64) -> Option<String> {
    let cost = |placement: Placement| -> Vec<projection::Measured> {
        let fitting = lines.iter().filter(|l| l.replicas == 2 && l.placement == placement && !l.is_control());
        let measured = |l: &Line| projection::Measured {
            nodes: l.nodes,
            local: l.local / 100.0,
            cpu_micros: l.net_micros(),
            messages: l.net_messages(),
            bytes: l.bytes / l.transactions,
            idle_cpu: l.idle.cpu / l.nodes as f64,
        };
        fitting.map(measured).collect()
    };
    projection::table(&cost(Placement::Near), &cost(Placement::Spread), cores)
}

pub fn json(lines: &[Line]) -> serde_json::Value {
    let one = |line: &Line| {
        serde_json::json!({
            "data_nodes": line.nodes, "clusters": line.clusters, "replicas": line.replicas, "terminals": line.placement.name(), "local_percent": line.local,
            "transactions_per_second": line.rate(), "cpu_micros_per_transaction": line.cpu_micros(),
            "cpu_micros_without_idle": line.net_micros(), "messages_per_transaction": line.net_messages(),
            "bytes_per_transaction": line.bytes / line.transactions, "idle_cpu": line.idle.cpu,
            "idle_messages_per_second": line.idle.messages, "retries": line.retries,
            "percent_of_smallest": line.against_smallest(lines), "percent_of_control": line.against_control(lines),
        })
    };
    lines.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cluster::nodes::Traffic;
    use crate::bench::warehouses::Done;

    /// A round of 1000 transactions in two seconds.
    fn round(cpu_seconds: f64) -> Round {
        let done = Done { orders: 400, payments: 600, retries: 3, ..Done::default() };
        let traffic = Traffic { messages: 5000.0, bytes: 10_000.0 };
        Round { local: 0.5, done, seconds: 2.0, cpu_seconds, traffic }
    }

    fn line(nodes: usize, clusters: usize, placement: Placement, cpu_seconds: f64) -> Line {
        let idle = Idle { cpu: 0.1, messages: 250.0 };
        Line::of(nodes, 2, clusters, placement, idle, &[round(cpu_seconds), round(cpu_seconds)])
    }

    #[test]
    fn rounds_are_added_up_and_what_idle_nodes_need_is_taken_off() {
        let line = line(2, 1, Placement::Spread, 1.0);
        assert_eq!((line.transactions, line.retries, line.local), (2000.0, 6, 50.0));
        assert_eq!(line.rate(), 500.0);
        assert_eq!(line.cpu_micros(), 1000.0);
        // Four seconds of a tenth of a core, of 250 messages.
        assert!((line.net_micros() - 800.0).abs() < 1e-6, "{}", line.net_micros());
        assert_eq!(line.net_messages(), 4.5);
    }

    #[test]
    fn a_cluster_is_compared_with_the_smallest_and_with_as_many_nodes_that_are_no_cluster() {
        let (near, spread) = (Placement::Near, Placement::Spread);
        // Without idle 800, 1000, 1600 and 1200 µs.
        let lines = [line(2, 1, near, 1.0), line(4, 1, near, 1.2), line(4, 1, spread, 1.8), line(4, 2, near, 1.4)];
        let smallest: Vec<f64> = lines.iter().map(|l| l.against_smallest(&lines).round()).collect();
        assert_eq!(smallest, [100.0, 125.0, 100.0, 150.0]);
        let control: Vec<Option<f64>> = lines.iter().map(|l| l.against_control(&lines).map(f64::round)).collect();
        assert_eq!(control, [None, Some(83.0), None, None]);
        // A control is never what another is measured by, also where it comes first.
        let only = [line(4, 2, near, 1.4), line(4, 1, near, 1.2)];
        assert_eq!(only[1].against_smallest(&only), 100.0);
    }

    #[test]
    fn the_control_has_a_line_of_its_own_and_no_part_in_the_projection() {
        let (near, spread) = (Placement::Near, Placement::Spread);
        let with = [line(4, 1, near, 1.2), line(4, 1, spread, 1.8), line(4, 2, near, 5.0)];
        let text = table(&with);
        let row = text.lines().find(|l| l.contains("| 2 clusters of 2 ")).expect("the control's line");
        assert!(row.contains("near, control"), "{text}");
        assert!(projected(&with, 8.0).is_some());
        assert_eq!(projected(&with, 8.0), projected(&with[..2], 8.0));
    }

    #[test]
    fn a_control_is_made_of_pairs() {
        let clusters = [1, 2, 3, 4, 8, 9].map(control_clusters);
        assert_eq!(clusters, [None, None, None, Some(2), Some(4), None]);
    }
}
