//! Debian's sysbench as the client: the same program, scripts and settings for every server.

use super::Sample;
use super::servers;
use mysql::prelude::Queryable;
use std::process::Command;

pub struct Workload {
    pub name: &'static str,
    script: &'static str,
}

pub const WORKLOADS: &[Workload] = &[
    Workload { name: "point select", script: "oltp_point_select" },
    Workload { name: "read-only", script: "oltp_read_only" },
    Workload { name: "read-write", script: "oltp_read_write" },
    Workload { name: "update-index", script: "oltp_update_index" },
    Workload { name: "insert", script: "oltp_insert" },
];

/// How much of it, and against which servers: connections go to the ports in turn.
pub struct Load<'a> {
    pub ports: &'a [u16],
    pub tables: u64,
    /// Rows of each table.
    pub table_size: u64,
    pub threads: usize,
    pub seconds: u64,
}

fn command(load: &Load<'_>, script: &str) -> Command {
    let ports: Vec<String> = load.ports.iter().map(u16::to_string).collect();
    let mut command = Command::new("sysbench");
    command
        .arg(script)
        .args([
            "--db-driver=mysql",
            "--mysql-host=127.0.0.1",
            "--mysql-user=root",
            "--mysql-db=sbtest",
            "--mysql-ssl=off",
        ])
        .arg(format!("--mysql-port={}", ports.join(",")))
        .arg(format!("--tables={}", load.tables))
        .arg(format!("--table-size={}", load.table_size))
        .arg(format!("--threads={}", load.threads))
        .arg(format!("--time={}", load.seconds))
        .args(["--percentile=95", "--report-interval=0"]);
    command
}

fn output(mut command: Command) -> Result<String, String> {
    let output = command.output().map_err(|_| "cannot start sysbench: install Debian's sysbench".to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        Err(format!("sysbench failed:\n{text}{}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Makes and fills the tables, through the first port.
pub fn prepare(load: &Load<'_>) -> Result<(), String> {
    let mut connection = servers::connect(load.ports[0])?;
    connection.query_drop("CREATE DATABASE IF NOT EXISTS sbtest").map_err(|e| e.to_string())?;
    let mut command = command(&Load { ports: &load.ports[..1], threads: 1, ..*load }, "oltp_read_write");
    command.arg("prepare");
    output(command).map(drop)
}

pub fn run(workload: &Workload, load: &Load<'_>) -> Result<Sample, String> {
    let mut command = command(load, workload.script);
    command.arg("run");
    parse(&output(command)?)
}

/// Reads sysbench 1.0's closing report.
fn parse(text: &str) -> Result<Sample, String> {
    let after = |label: &str| -> Result<f64, String> {
        let line = text.lines().find(|l| l.trim_start().starts_with(label));
        let rest = line.and_then(|l| l.split(':').nth(1)).unwrap_or("").trim();
        let number = rest.split(|c: char| !(c.is_ascii_digit() || c == '.')).next().unwrap_or("");
        number.parse().map_err(|_| format!("sysbench's report has no '{label}':\n{text}"))
    };
    Ok(Sample {
        operations: after("transactions:")?,
        seconds: after("total time:")?,
        cpu_seconds: 0.0,
        p95_ms: after("95th percentile:")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn reads_the_report() {
        let text = "SQL statistics:\n    queries performed:\n        read:                            14014\n    transactions:                        1001   (100.05 per sec.)\n    queries:                             20020  (2001.00 per sec.)\n    ignored errors:                      0      (0.00 per sec.)\n\nGeneral statistics:\n    total time:                          10.0045s\n    total number of events:              1001\n\nLatency (ms):\n         min:                                    7.40\n         95th percentile:                       12.98\n";
        let sample = super::parse(text).unwrap();
        assert_eq!((sample.operations, sample.seconds, sample.p95_ms), (1001.0, 10.0045, 12.98));
        assert!(super::parse("nothing").unwrap_err().contains("transactions"));
    }
}
