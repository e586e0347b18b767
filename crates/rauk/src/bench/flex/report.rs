//! What comes out: a table for people, CSV and JSON for programs.

use super::arguments::Options;
use super::measure::Sample;
use comfy_table::{Table, presets};

/// One target's figures in one workload, all rounds together.
pub struct Line {
    pub workload: String,
    pub target: String,
    pub family: &'static str,
    pub sample: Sample,
}

pub struct Report {
    pub options: Options,
    pub lines: Vec<Line>,
}

/// Name and place of each quantile that is shown.
pub const QUANTILES: &[(&str, f64)] = &[("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

impl Line {
    /// Microseconds of the processor an operation.
    fn each(&self, cpu: Option<f64>) -> Option<f64> {
        cpu.filter(|_| self.sample.operations > 0).map(|seconds| seconds * 1e6 / self.sample.operations as f64)
    }

    pub fn server_cpu(&self) -> Option<f64> {
        self.each(self.sample.server_cpu)
    }

    pub fn client_cpu(&self) -> Option<f64> {
        self.each(self.sample.client_cpu)
    }

    pub fn bytes_per_second(&self) -> f64 {
        self.sample.payload_bytes as f64 / self.sample.seconds.max(1e-9)
    }
}

impl Report {
    pub fn new(options: &Options) -> Report {
        Report { options: options.clone(), lines: Vec::new() }
    }

    /// The faster of the two ways to one server: what counts as its figure.
    pub fn is_best(&self, line: &Line) -> bool {
        let rivals = self.lines.iter().filter(|l| l.workload == line.workload && l.family == line.family);
        rivals.into_iter().all(|rival| rival.sample.rate() <= line.sample.rate())
    }

    /// Throughput and server CPU of Rauk (the first target) divided by this one's.
    fn ratios(&self, line: &Line) -> Option<(f64, Option<f64>)> {
        let rauk = self.lines.iter().find(|l| l.workload == line.workload && l.family == "Rauk")?;
        if rauk.target == line.target || !self.is_best(line) {
            return None;
        }
        let cpu = rauk.server_cpu().zip(line.server_cpu()).map(|(a, b)| a / b);
        Some((rauk.sample.rate() / line.sample.rate(), cpu.filter(|c| c.is_finite())))
    }

    pub fn table(&self) -> String {
        let mut header = vec!["workload", "target", "operations/s"];
        let names: Vec<String> = QUANTILES.iter().map(|(name, _)| format!("{name} µs")).collect();
        header.extend(names.iter().map(String::as_str));
        header.extend([
            "server CPU µs/op",
            "client CPU µs/op",
            "MB/s",
            "aborted",
            "errors",
            "Rauk ÷ this",
            "CPU ÷ this",
        ]);
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN).set_header(header);
        let shown = |number: Option<f64>, digits: usize| number.map_or("–".into(), |n| format!("{n:.digits$}"));
        for line in &self.lines {
            let sample = &line.sample;
            let mut cells = vec![line.workload.clone(), line.target.clone(), format!("{:.0}", sample.rate())];
            cells.extend(QUANTILES.iter().map(|(_, q)| shown(sample.latency.quantile(*q), 1)));
            cells.extend([shown(line.server_cpu(), 3), shown(line.client_cpu(), 3)]);
            cells.push(format!("{:.1}", line.bytes_per_second() / 1e6));
            cells.extend([sample.aborted.to_string(), sample.errors.to_string()]);
            let (throughput, cpu) = self.ratios(line).map_or((None, None), |(a, b)| (Some(a), b));
            cells.extend([throughput, cpu].map(|ratio| ratio.map_or(String::new(), |r| format!("{r:.2}×"))));
            table.add_row(cells);
        }
        let o = &self.options;
        format!(
            "{} threads × {} in flight × {} operations{}, records of {} bytes, {} keys, {}, {} × {} s, {}\n{table}",
            o.threads,
            o.parallel,
            o.operations,
            if o.transactional { " a transaction" } else { "" },
            o.size,
            o.keys,
            o.distribution,
            o.rounds,
            o.measured.as_secs_f64(),
            o.durability,
        )
    }

    pub fn csv(&self) -> Result<Vec<u8>, String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut header: Vec<String> = ["workload", "target", "operations", "seconds", "operations_per_second"]
            .iter()
            .map(|name| name.to_string())
            .collect();
        header.extend(QUANTILES.iter().map(|(name, _)| format!("{}_us", name.replace('.', "_"))));
        let rest = [
            "server_cpu_us_per_operation",
            "client_cpu_us_per_operation",
            "payload_bytes_per_second",
            "aborted",
            "errors",
            "rauk_throughput_ratio",
            "rauk_server_cpu_ratio",
        ];
        header.extend(rest.iter().map(|name| name.to_string()));
        writer.write_record(&header).map_err(|e| e.to_string())?;
        for line in &self.lines {
            let sample = &line.sample;
            let number = |n: Option<f64>| n.map_or(String::new(), |n| format!("{n:.4}"));
            let mut record = vec![line.workload.clone(), line.target.clone(), sample.operations.to_string()];
            record.extend([number(Some(sample.seconds)), number(Some(sample.rate()))]);
            record.extend(QUANTILES.iter().map(|(_, q)| number(sample.latency.quantile(*q))));
            record.extend([number(line.server_cpu()), number(line.client_cpu())]);
            record.push(number(Some(line.bytes_per_second())));
            record.extend([sample.aborted.to_string(), sample.errors.to_string()]);
            let ratios = self.ratios(line);
            record.extend([number(ratios.map(|r| r.0)), number(ratios.and_then(|r| r.1))]);
            writer.write_record(&record).map_err(|e| e.to_string())?;
        }
        writer.into_inner().map_err(|e| e.to_string())
    }

    pub fn json(&self) -> Vec<u8> {
        let o = &self.options;
        let lines: Vec<_> = self
            .lines
            .iter()
            .map(|line| {
                let sample = &line.sample;
                let latency: serde_json::Map<_, _> = QUANTILES
                    .iter()
                    .map(|(name, q)| (name.to_string(), serde_json::json!(sample.latency.quantile(*q))))
                    .collect();
                let ratios = self.ratios(line);
                serde_json::json!({
                    "workload": line.workload,
                    "target": line.target,
                    "operations": sample.operations,
                    "seconds": sample.seconds,
                    "operations_per_second": sample.rate(),
                    "latency_us": latency,
                    "server_cpu_us_per_operation": line.server_cpu(),
                    "client_cpu_us_per_operation": line.client_cpu(),
                    "payload_bytes_per_second": line.bytes_per_second(),
                    "aborted": sample.aborted,
                    "errors": sample.errors,
                    "best_of_family": self.is_best(line),
                    "rauk_throughput_ratio": ratios.map(|r| r.0),
                    "rauk_server_cpu_ratio": ratios.and_then(|r| r.1),
                })
            })
            .collect();
        let report = serde_json::json!({
            "threads": o.threads,
            "parallel": o.parallel,
            "operations": o.operations,
            "transactional": o.transactional,
            "size": o.size,
            "keys": o.keys,
            "distribution": o.distribution.to_string(),
            "seconds": o.measured.as_secs_f64(),
            "rounds": o.rounds,
            "durability": o.durability,
            "force_send": o.force_send,
            "connections": o.connections,
            "results": lines,
        });
        serde_json::to_vec_pretty(&report).expect("numbers and texts are JSON")
    }

    /// Wrong answers make the run a failure, after its figures were shown.
    pub fn verdict(&self) -> Result<(), String> {
        match self.lines.iter().find(|line| line.sample.errors > 0) {
            None => Ok(()),
            Some(line) => Err(format!(
                "{} on {}: {} wrong answers; the first: {}",
                line.workload,
                line.target,
                line.sample.errors,
                line.sample.first_error.as_deref().unwrap_or("unknown")
            )),
        }
    }
}
