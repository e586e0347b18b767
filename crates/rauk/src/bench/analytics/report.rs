//! The table, and the same as JSON.

use super::measure::Line;
use comfy_table::{Table, presets};

fn milliseconds(seconds: f64) -> String {
    let value = seconds * 1e3;
    if value < 10.0 { format!("{value:.3}") } else { format!("{value:.1}") }
}

pub fn table(names: &[&str], lines: &[Line]) -> String {
    let mut header = vec!["statement".to_string(), "rows".to_string()];
    header.extend(names.iter().map(|n| format!("{n} ms")));
    header.extend(names.iter().map(|n| format!("{n} CPU ms")));
    let compared = names.len() > 1;
    if compared {
        header.extend(["time ratio".into(), "CPU ratio".into(), "answer".into()]);
    }
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header(header);
    let mut sums = vec![(0.0, 0.0); names.len()];
    for line in lines {
        let mut cells = vec![line.name.clone(), line.rows.to_string()];
        let cell = |f: &dyn Fn(usize) -> Option<f64>| {
            (0..names.len()).map(|at| f(at).map_or("–".to_string(), milliseconds)).collect::<Vec<_>>()
        };
        cells.extend(cell(&|at| line.servers[at].as_ref().ok().map(|f| f.seconds)));
        cells.extend(cell(&|at| line.servers[at].as_ref().ok().map(|f| f.cpu_seconds)));
        if compared {
            let (time, cpu) = match line.ratios() {
                Some((time, cpu)) => (format!("{time:.2}×"), format!("{cpu:.2}×")),
                None => ("–".into(), "–".into()),
            };
            let answer = match (&line.difference, line.servers.iter().any(Result::is_err)) {
                (Some(_), _) => "differs",
                (None, true) => "none",
                (None, false) => "same",
            };
            cells.extend([time, cpu, answer.into()]);
        }
        table.add_row(cells);
        // Only what all have is summed up.
        if line.servers.iter().all(Result::is_ok) {
            for (sum, server) in sums.iter_mut().zip(line.servers.iter().flatten()) {
                sum.0 += server.seconds;
                sum.1 += server.cpu_seconds;
            }
        }
    }
    let mut cells = vec!["together".to_string(), String::new()];
    cells.extend(sums.iter().map(|sum| milliseconds(sum.0)));
    cells.extend(sums.iter().map(|sum| milliseconds(sum.1)));
    if compared {
        cells.extend([
            format!("{:.2}×", sums[0].0 / sums[1].0),
            format!("{:.2}×", sums[0].1 / sums[1].1),
            String::new(),
        ]);
    }
    table.add_row(cells);
    table.to_string()
}

pub fn json<'a>(names: &[&str], parts: impl Iterator<Item = (&'a str, &'a [Line])>) -> String {
    let mut all = serde_json::Map::new();
    for (part, lines) in parts {
        let lines: Vec<_> = lines
            .iter()
            .map(|line| {
                let servers: serde_json::Map<_, _> = names
                    .iter()
                    .zip(&line.servers)
                    .map(|(name, server)| {
                        let figures = match server {
                            Ok(figures) => serde_json::json!({
                                "seconds": figures.seconds,
                                "cpu_seconds": figures.cpu_seconds,
                                "runs": figures.runs,
                            }),
                            Err(error) => serde_json::json!({ "error": error }),
                        };
                        (name.to_string(), figures)
                    })
                    .collect();
                let (time, cpu) = line.ratios().unzip();
                serde_json::json!({
                    "name": line.name,
                    "rows": line.rows,
                    "servers": servers,
                    "difference": line.difference,
                    "time_ratio": time,
                    "cpu_ratio": cpu,
                })
            })
            .collect();
        all.insert(part.to_string(), lines.into());
    }
    serde_json::to_string_pretty(&all).expect("numbers and texts are JSON")
}
