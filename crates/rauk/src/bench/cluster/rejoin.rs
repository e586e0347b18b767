//! A node that is killed while it is written to, and comes back: with its disk, with an empty directory, and as the one that led the manage group.
//!
//! Two nodes hold every row, a third only decides with them. While clients at a node that stays update rows and one *probe* inserts a row every few milliseconds, a node gets SIGKILL; a while later it is
//! started again. Measured are the longest time in which the probe had no success, the time from the start of the process until all replicas are in-sync again, and what came over in that time. At the
//! end every row that the probe had acknowledged must be there, read through each node; a row whose INSERT failed may be there or not.
//!
//! The probe is one connection that waits for each answer, as an application's is: its gap is what a user sees, with what the client needs to come back. On a machine where all nodes and clients share a few
//! cores a gap can be that of the machine; the probe's longest pause in the time *before* the kill is printed beside it.

use super::arguments::Options;
use super::nodes::{self, Cluster, Plan};
use super::pauses::Successes;
use crate::bench::servers::{again_on_conflict, connect, connect_with_patience};
use comfy_table::{Table, presets};
use mysql::prelude::Queryable;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Rows of one INSERT while loading.
const BATCH: u64 = 1000;
/// Between the probe's writes.
const PROBE: Duration = Duration::from_millis(2);
/// A client gives an answer up after this: longer than any failover should last, so that it is seen whole.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a node may take to come back.
const BACK: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(10);
/// Bytes of a row's text.
const TEXT: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Disk,
    Empty,
    Leader,
}

impl Case {
    fn name(self) -> &'static str {
        match self {
            Case::Disk => "with its disk",
            Case::Empty => "with an empty directory",
            Case::Leader => "leads the manage group, with its disk",
        }
    }
}

pub struct Line {
    case: Case,
    /// Rows of the table before.
    rows: u64,
    gap: Duration,
    /// The probe's longest pause before the node was killed.
    calm: Duration,
    down: Duration,
    serves: Duration,
    in_sync: Duration,
    /// From where the cluster knew the new process.
    copying: Duration,
    received: f64,
    updates: f64,
    probes: u64,
    lost: u64,
}

pub fn run(options: &Options, root: &Path) -> Result<Vec<Line>, String> {
    let mut cluster = Cluster::start(&root.join("rejoin"), Plan::of(2, 2, options.partitions, options.groups))?;
    eprintln!("rejoin: loads {} rows", options.rows);
    load(&cluster, options.rows)?;
    let mut lines = Vec::new();
    for round in 0..options.rounds {
        for case in [Case::Disk, Case::Empty, Case::Leader] {
            eprintln!("rejoin {}: round {} of {}", case.name(), round + 1, options.rounds);
            match one(&mut cluster, case, options).map_err(|e| format!("rejoin {}: {e}", case.name()))? {
                Some(line) => lines.push(line),
                None => eprintln!("rejoin {}: the node that only decides leads; left out", case.name()),
            }
        }
    }
    if let Some(line) = lines.iter().find(|l| l.lost > 0) {
        return Err(format!("{}\n{} acknowledged writes are lost ({})", table(&lines), line.lost, line.case.name()));
    }
    Ok(lines)
}

fn load(cluster: &Cluster, rows: u64) -> Result<(), String> {
    let shown = |e: mysql::Error| format!("loading: {e}");
    let mut connection = connect(cluster.sql_ports()[0])?;
    for statement in [
        "CREATE DATABASE rejoin",
        "CREATE TABLE rejoin.accounts (id INT PRIMARY KEY, counter BIGINT NOT NULL, text VARCHAR(200) NOT NULL)",
        "CREATE TABLE rejoin.probe (id BIGINT PRIMARY KEY)",
    ] {
        connection.query_drop(statement).map_err(shown)?;
    }
    let text = "x".repeat(TEXT);
    for first in (0..rows).step_by(BATCH as usize) {
        let values: Vec<String> = (first..rows.min(first + BATCH)).map(|id| format!("({id}, 0, '{text}')")).collect();
        again_on_conflict(&mut connection, &format!("INSERT INTO rejoin.accounts VALUES {}", values.join(",")))
            .map_err(|e| format!("loading: {e}"))?;
    }
    Ok(())
}

/// The data node to be killed; `None`: who leads has no data.
fn victim(cluster: &Cluster, case: Case) -> Result<Option<usize>, String> {
    let leader = cluster.leader().ok_or("nobody leads the manage group")?;
    let data = |at: &usize| cluster.nodes[*at].has_data();
    Ok(match case {
        Case::Leader => Some(leader).filter(data),
        _ => (0..cluster.nodes.len()).filter(data).find(|at| *at != leader),
    })
}

fn one(cluster: &mut Cluster, case: Case, options: &Options) -> Result<Option<Line>, String> {
    let Some(victim) = victim(cluster, case)? else { return Ok(None) };
    let stays = (0..cluster.nodes.len()).find(|at| *at != victim && cluster.nodes[*at].has_data());
    let port = stays.and_then(|at| cluster.nodes[at].sql_port()).ok_or("no node with data stays")?;
    let stop = AtomicBool::new(false);
    let updates = AtomicU64::new(0);
    let phase = Duration::from_secs(options.seconds);
    let (events, probe) = std::thread::scope(|scope| {
        let probe = scope.spawn(|| probe(port, &stop));
        for number in 0..options.threads {
            let (stop, updates, rows) = (&stop, &updates, options.rows);
            scope.spawn(move || update(port, number as u64, rows, stop, updates));
        }
        let events = break_and_mend(cluster, case, victim, phase);
        // Some more writes to a cluster that is whole again.
        std::thread::sleep(phase.min(Duration::from_secs(2)));
        stop.store(true, Ordering::Relaxed);
        (events, probe.join().expect("the probe does not panic"))
    });
    let (events, probe) = (events?, probe?);
    cluster.wait_healthy(BACK)?;
    let lost = lost(cluster, &probe)?;
    let (calm, gap) = probe.successes.around(events.killed);
    Ok(Some(Line {
        case,
        rows: options.rows,
        gap,
        calm,
        down: events.down,
        serves: events.serves,
        in_sync: events.in_sync,
        copying: events.copying,
        received: events.received,
        updates: updates.load(Ordering::Relaxed) as f64 / probe.successes.duration().as_secs_f64(),
        probes: probe.acknowledged.len() as u64,
        lost,
    }))
}

struct Events {
    killed: Instant,
    down: Duration,
    serves: Duration,
    in_sync: Duration,
    copying: Duration,
    received: f64,
}

fn break_and_mend(cluster: &mut Cluster, case: Case, victim: usize, phase: Duration) -> Result<Events, String> {
    std::thread::sleep(phase);
    let killed = Instant::now();
    cluster.kill(victim);
    std::thread::sleep(phase);
    if case == Case::Empty {
        cluster.empty(victim)?;
    }
    let started = Instant::now();
    let down = started - killed;
    let before = cluster.newest_process();
    cluster.launch(victim)?;
    let (mut serves, mut known) = (None, None);
    loop {
        if serves.is_none() && cluster.is_ready(victim)? {
            serves = Some(started.elapsed());
        }
        let state = cluster.nodes.iter().enumerate().filter(|(at, n)| *at != victim && n.is_running());
        let state = state.filter_map(|(_, n)| n.state()).max_by_key(|s| s["index"].as_u64());
        if let Some(state) = &state {
            if known.is_none() && nodes::processes(state).any(|process| process > before) {
                known = Some(started.elapsed());
            }
            // As long as its new process is not known, the state may be that of before it was missed.
            let whole = nodes::is_healthy(state) && nodes::nodes_up(state) >= cluster.nodes.len();
            if let (Some(serves), Some(known), true) = (serves, known, whole) {
                let in_sync = started.elapsed();
                let received = cluster.received_bytes(victim)?;
                return Ok(Events { killed, down, serves, in_sync, copying: in_sync.saturating_sub(known), received });
            }
        }
        if started.elapsed() >= BACK {
            let why = state.map_or("no node answers".to_string(), |s| s["reasons"].to_string());
            return Err(format!("the node is not back after {BACK:?}: {why}"));
        }
        std::thread::sleep(LOOK);
    }
}

/// What the probe has seen.
struct Probe {
    successes: Successes,
    acknowledged: Vec<u64>,
}

/// Inserts rows one by one, numbered as nobody before, until it is stopped. What fails is not tried again: the next row is another.
fn probe(port: u16, stop: &AtomicBool) -> Result<Probe, String> {
    let mut connection = connect_with_patience(port, PATIENCE)?;
    let newest: Option<Option<u64>> =
        connection.query_first("SELECT MAX(id) FROM rejoin.probe").map_err(|e| e.to_string())?;
    let mut id = newest.flatten().unwrap_or(0);
    let (mut successes, mut acknowledged) = (Successes::begin(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        id += 1;
        match connection.query_drop(format!("INSERT INTO rejoin.probe VALUES ({id})")) {
            Ok(()) => {
                successes.another();
                acknowledged.push(id);
            }
            Err(mysql::Error::MySqlError(_)) => {}
            Err(_) => {
                if let Ok(again) = connect_with_patience(port, PATIENCE) {
                    connection = again;
                }
            }
        }
        std::thread::sleep(PROBE);
    }
    successes.end();
    Ok(Probe { successes, acknowledged })
}

/// Updates rows by key until it is stopped; what fails is counted nowhere.
fn update(port: u16, seed: u64, rows: u64, stop: &AtomicBool, done: &AtomicU64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut connection = None;
    while !stop.load(Ordering::Relaxed) {
        let Some(open) = &mut connection else {
            connection = connect_with_patience(port, PATIENCE).ok();
            if connection.is_none() {
                std::thread::sleep(PROBE);
            }
            continue;
        };
        let id = random.random_range(0..rows);
        match open.exec_drop("UPDATE rejoin.accounts SET counter = counter + 1 WHERE id = ?", (id,)) {
            Ok(()) => {
                done.fetch_add(1, Ordering::Relaxed);
            }
            Err(mysql::Error::MySqlError(_)) => {}
            Err(_) => connection = None,
        }
    }
}

/// Acknowledged rows that are not there, through whichever node misses most.
fn lost(cluster: &Cluster, probe: &Probe) -> Result<u64, String> {
    let mut most = 0;
    for port in cluster.sql_ports() {
        let shown = |e: mysql::Error| format!("reading back: {e}");
        let mut connection = connect(port)?;
        let there: BTreeSet<u64> =
            connection.query("SELECT id FROM rejoin.probe").map_err(shown)?.into_iter().collect();
        most = most.max(missing(&probe.acknowledged, &there));
    }
    Ok(most)
}

fn missing(acknowledged: &[u64], there: &BTreeSet<u64>) -> u64 {
    acknowledged.iter().filter(|id| !there.contains(id)).count() as u64
}

pub fn table(lines: &[Line]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header([
        "the node that is killed comes back",
        "rows",
        "updates/s meanwhile",
        "longest time without a success, ms (before the kill)",
        "was down s",
        "serves after s",
        "all in-sync after s",
        "copy: rows/s",
        "received MB",
        "MB/s",
        "acknowledged",
        "lost",
    ]);
    for line in lines {
        let copying = line.copying.as_secs_f64().max(0.001);
        let copy = match line.case {
            Case::Empty => format!("{:.0}", line.rows as f64 / copying),
            // What it had missed came, not the rows.
            _ => "–".to_string(),
        };
        table.add_row([
            line.case.name().to_string(),
            line.rows.to_string(),
            format!("{:.0}", line.updates),
            format!("{} ({})", line.gap.as_millis(), line.calm.as_millis()),
            format!("{:.1}", line.down.as_secs_f64()),
            format!("{:.2}", line.serves.as_secs_f64()),
            format!("{:.2}", line.in_sync.as_secs_f64()),
            copy,
            format!("{:.1}", line.received / 1e6),
            format!("{:.1}", line.received / 1e6 / copying),
            line.probes.to_string(),
            line.lost.to_string(),
        ]);
    }
    table.to_string()
}

pub fn json(lines: &[Line]) -> serde_json::Value {
    let one = |line: &Line| {
        serde_json::json!({
            "case": line.case.name(), "rows": line.rows, "updates_per_second": line.updates, "gap_ms": line.gap.as_millis() as u64,
            "longest_pause_before_ms": line.calm.as_millis() as u64, "down_seconds": line.down.as_secs_f64(),
            "serves_seconds": line.serves.as_secs_f64(), "in_sync_seconds": line.in_sync.as_secs_f64(),
            "copying_seconds": line.copying.as_secs_f64(), "received_bytes": line.received, "acknowledged": line.probes,
            "lost": line.lost,
        })
    };
    lines.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_were_not_acknowledged_may_be_there_or_not() {
        let there = BTreeSet::from([1, 2, 5]);
        assert_eq!(missing(&[1, 2], &there), 0);
        assert_eq!(missing(&[1, 2, 3, 4], &there), 2);
    }
}
