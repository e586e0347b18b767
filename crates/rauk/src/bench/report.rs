//! The table, and the same as JSON.

use super::Sample;
use comfy_table::{Table, presets};

/// One workload: what each server did, Rauk first.
#[derive(Clone)]
pub struct Row {
    pub name: String,
    pub samples: Vec<Sample>,
}

impl Row {
    pub fn rate(&self, i: usize) -> f64 {
        self.samples[i].operations / self.samples[i].seconds
    }

    pub fn cpu_micros(&self, i: usize) -> f64 {
        self.samples[i].cpu_seconds * 1e6 / self.samples[i].operations
    }
}

pub fn table(names: &[&str], rows: &[Row]) -> String {
    let mut header = vec!["workload".to_string()];
    header.extend(names.iter().map(|n| format!("{n} ops/s")));
    header.extend(names.iter().map(|n| format!("{n} CPU µs/op")));
    header.extend(names.iter().map(|n| format!("{n} p95 ms")));
    if names.len() > 1 {
        header.extend(["throughput ratio".into(), "CPU ratio".into()]);
    }
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header(header);
    for row in rows {
        let each = 0..names.len();
        let mut cells = vec![row.name.clone()];
        cells.extend(each.clone().map(|i| format!("{:.0}", row.rate(i))));
        cells.extend(each.clone().map(|i| format!("{:.1}", row.cpu_micros(i))));
        cells.extend(each.map(|i| format!("{:.2}", row.samples[i].p95_ms)));
        if names.len() > 1 {
            cells.push(format!("{:.2}×", row.rate(0) / row.rate(1)));
            cells.push(format!("{:.2}×", row.cpu_micros(0) / row.cpu_micros(1)));
        }
        table.add_row(cells);
    }
    table.to_string()
}

pub fn json(names: &[&str], rows: &[Row]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let servers: serde_json::Map<_, _> = names
                .iter()
                .enumerate()
                .map(|(i, name)| {
                    let numbers = serde_json::json!({
                        "operations_per_second": row.rate(i),
                        "server_cpu_micros_per_operation": row.cpu_micros(i),
                        "p95_ms": row.samples[i].p95_ms,
                    });
                    (name.to_string(), numbers)
                })
                .collect();
            serde_json::json!({ "workload": row.name, "servers": servers })
        })
        .collect();
    serde_json::to_string_pretty(&rows).expect("numbers and texts are JSON")
}
