//! Single-integer inserts, a statement and a commit each (mission C11): what a newcomer tries first.

use super::Sample;
use super::servers::Server;
use hdrhistogram::Histogram;
use mysql::prelude::Queryable;
use std::time::Instant;

/// Microseconds, up to a minute.
pub(super) fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 2).expect("the bounds are in order")
}

pub fn run(server: &Server, key: bool, connections: u64, count: u64) -> Result<Sample, String> {
    let shown = |e: mysql::Error| e.to_string();
    let mut connection = server.connect()?;
    for statement in [
        "CREATE DATABASE IF NOT EXISTS singles",
        "DROP TABLE IF EXISTS singles.numbers",
        if key {
            "CREATE TABLE singles.numbers (number INT PRIMARY KEY)"
        } else {
            "CREATE TABLE singles.numbers (number INT)"
        },
    ] {
        connection.query_drop(statement).map_err(shown)?;
    }
    let mut clients = (0..connections).map(|_| server.connect()).collect::<Result<Vec<_>, _>>()?;
    let started = Instant::now();
    let histograms = std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter_mut()
            .enumerate()
            .map(|(i, client)| {
                scope.spawn(move || -> Result<Histogram<u64>, String> {
                    let mut histogram = latencies();
                    for number in (i as u64..count).step_by(connections as usize) {
                        let started = Instant::now();
                        client.query_drop(format!("INSERT INTO singles.numbers VALUES ({number})")).map_err(shown)?;
                        histogram.saturating_record(started.elapsed().as_micros() as u64);
                    }
                    Ok(histogram)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().expect("an insert thread does not panic")).collect::<Result<Vec<_>, _>>()
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let stored: Option<u64> = connection.query_first("SELECT COUNT(*) FROM singles.numbers").map_err(shown)?;
    if stored != Some(count) {
        return Err(format!("{count} rows were acknowledged and {stored:?} are there"));
    }
    let mut all = latencies();
    for histogram in histograms {
        all.add(histogram).map_err(|e| e.to_string())?;
    }
    Ok(Sample { operations: count as f64, seconds, cpu_seconds: 0.0, p95_ms: all.value_at_quantile(0.95) as f64 / 1e3 })
}
