//! From measured cost to nodes on machines of their own.
//!
//! A transaction costs so much of some processor, somewhere in the cluster, and so many messages. Nodes that have processors of their own carry together as many transactions as their processors have
//! time for, as long as work and messages are spread evenly and no transaction waits for another. The cost that counts is that of the largest cluster that was measured: what grows with the number of nodes
//! is in it. A transaction whose terminal sits at another node than its warehouse costs more; the difference of the two measured placements says how much.
//!
//! Not in it: waits (a transaction takes longer over a real network, so more terminals are needed to keep the processors busy), networks and disks at their limits (the table has the bytes), uneven load.

use comfy_table::{Table, presets};

/// Of one cluster with two replicas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    pub nodes: usize,
    /// Share of transactions whose terminal is at the primary, 0 to 1.
    pub local: f64,
    /// A transaction's, of all nodes together, without idle.
    pub cpu_micros: f64,
    pub messages: f64,
    pub bytes: f64,
    /// Processors that a node takes with nobody connected.
    pub idle_cpu: f64,
}

/// Cost of a transaction as a line over the share of transactions that are local.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    /// With all local.
    near: f64,
    /// More for one that is not.
    away: f64,
}

impl Cost {
    fn of(near: (f64, f64), spread: (f64, f64)) -> Cost {
        let ((local_near, near), (local_spread, spread)) = (near, spread);
        let difference = local_near - local_spread;
        // Where both placements are the same, there is nothing to tell them apart by.
        let away = if difference > 0.01 { ((spread - near) / difference).max(0.0) } else { 0.0 };
        Cost { near: near - away * (1.0 - local_near), away }
    }

    fn at(self, local: f64) -> f64 {
        self.near + self.away * (1.0 - local)
    }
}

pub const NODES: &[usize] = &[2, 4, 8, 16, 32, 64];

/// Transactions a second of so many nodes.
fn rate(nodes: usize, cores: f64, idle_cpu: f64, micros: f64) -> f64 {
    nodes as f64 * (cores - idle_cpu).max(0.0) * 1e6 / micros
}

pub fn table(near: &[Measured], spread: &[Measured], cores: f64) -> Option<String> {
    let near = near.iter().max_by_key(|m| m.nodes)?;
    let spread = spread.iter().find(|m| m.nodes == near.nodes)?;
    let line = |of: fn(&Measured) -> f64| Cost::of((near.local, of(near)), (spread.local, of(spread)));
    let (cpu, messages, bytes) = (line(|m| m.cpu_micros), line(|m| m.messages), line(|m| m.bytes));
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header([
        "data nodes",
        "transactions/s, terminals near",
        "messages/s a node",
        "MB/s a node",
        "transactions/s, terminals anywhere",
        "messages/s a node",
        "MB/s a node",
    ]);
    for &nodes in NODES {
        let mut cells = vec![nodes.to_string()];
        for local in [1.0, 1.0 / nodes as f64] {
            let rate = rate(nodes, cores, near.idle_cpu, cpu.at(local));
            let each = rate / nodes as f64;
            cells.push(format!("{rate:.0}"));
            cells.push(format!("{:.0}", each * messages.at(local)));
            cells.push(format!("{:.1}", each * bytes.at(local) / 1e6));
        }
        table.add_row(cells);
    }
    Some(format!(
        "Projected from {} data nodes with two replicas, {cores:.0} cores each: {:.0} µs a transaction at its primary, {:.0} µs more elsewhere; {:.1} messages, {:.1} more.\n\n{table}",
        near.nodes, cpu.near, cpu.away, messages.near, messages.away
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(nodes: usize, local: f64, cpu_micros: f64, messages: f64) -> Measured {
        Measured { nodes, local, cpu_micros, messages, bytes: 1000.0, idle_cpu: 0.0 }
    }

    #[test]
    fn the_cost_away_is_the_difference_of_the_placements() {
        let cost = Cost::of((1.0, 500.0), (0.25, 800.0));
        assert_eq!(cost, Cost { near: 500.0, away: 400.0 });
        assert_eq!(cost.at(0.5), 700.0);
        // Not all near: what they would cost then.
        assert_eq!(Cost::of((0.75, 600.0), (0.25, 800.0)), Cost { near: 500.0, away: 400.0 });
        assert_eq!(Cost::of((1.0, 500.0), (1.0, 600.0)).away, 0.0);
        assert_eq!(Cost::of((1.0, 500.0), (0.5, 450.0)).away, 0.0);
    }

    #[test]
    fn the_largest_cluster_counts() {
        let near = [measured(2, 1.0, 400.0, 8.0), measured(8, 1.0, 500.0, 10.0)];
        let spread = [measured(2, 0.5, 500.0, 9.0), measured(8, 0.125, 850.0, 17.0)];
        let text = table(&near, &spread, 8.0).unwrap();
        assert!(text.contains("8 data nodes") && text.contains("500 µs") && text.contains("400 µs more"), "{text}");
        let row = text.lines().find(|l| l.starts_with("| 2 ")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        // Two nodes of 8 cores, 500 µs: 32 000; half of them elsewhere: 700 µs.
        assert_eq!(cells[1..7], ["2", "32000", "160000", "16.0", "22857", "160000"]);
        assert_eq!(table(&[], &[], 8.0), None);
        assert_eq!(table(&near, &spread[..1], 8.0), None);
    }

    #[test]
    fn what_a_node_needs_for_itself_is_not_sold() {
        assert_eq!(rate(4, 8.0, 0.5, 1000.0), 30_000.0);
        assert_eq!(rate(4, 1.0, 2.0, 1000.0), 0.0);
    }
}
