//! Rauk's own tables about this server alone; those about the whole cluster are in `cluster`.

use super::{Definition, Hints, Rows, s, u};
use crate::session::lookup::Viewer;
use crate::session::processlist::Process;
use rauk_types::Value;
use std::sync::Arc;

const R: &str = "rauk";

pub(super) const TABLES: &[Definition] = &[
    Definition { database: R, name: "plans", columns: "plans u, capacity u, hits u, misses u", rows: plans },
    Definition { database: R, name: "counters", columns: "name s64, value u", rows: counters },
    Definition {
        database: R,
        name: "jobs",
        columns: "id u, user s32, statement x?, work s64, done u, total u, per_cent u, seconds i, seconds_left u?",
        rows: jobs,
    },
];

/// DDL statements of this node's sessions that look at many rows, and how far they are.
fn jobs(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let engine = &viewer.engine;
    let now = engine.now_micros();
    let row = |process: &Arc<Process>| {
        let job = process.job(now)?;
        Some(vec![
            u(engine.database.cluster_session_id(process.id)),
            s(process.user.as_str()),
            process.info().map_or(Value::Null, Value::Str),
            s(job.work),
            u(job.done),
            u(job.all),
            u(job.per_cent()),
            Value::Int((now - process.since_micros()).max(0) / 1_000_000),
            job.seconds_left.map_or(Value::Null, u),
        ])
    };
    Ok(engine.processes.all().iter().filter_map(row).collect())
}

/// What has been done since the start, as counts: commits, flushes, checkpoints, the redo log.
fn counters(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let c = viewer.engine.database.counters();
    let rows = [
        ("commits", c.commits),
        ("rollbacks", c.rollbacks),
        ("flushes", c.flushes),
        ("deadlocks", c.deadlocks),
        ("lock_waits", c.lock_waits),
        ("lock_timeouts", c.lock_timeouts),
        ("checkpoints", c.checkpoints),
        ("checkpoint_failures", c.checkpoint_failures),
        ("commit_bytes", c.commit_bytes),
        ("remote_scan_rows", c.remote_scan_rows),
        ("remote_scan_bytes", c.remote_scan_bytes),
        ("remote_scan_answers", c.remote_scan_answers),
        ("remote_operations", c.remote_operations),
        ("scrubbed_rows", c.scrubbed_rows),
        ("scrub_rounds", c.scrub_rounds),
        ("damaged_tables", c.damaged_tables),
        ("digest_mismatches", c.digest_mismatches),
        ("stopped_replicas", c.stopped_replicas),
        ("redo_end", c.redo_end),
        ("redo_live_bytes", c.redo_live_bytes),
        ("snapshots", c.snapshots),
        ("transactions", c.transactions),
    ];
    Ok(rows.into_iter().map(|(name, value)| vec![s(name), u(value)]).collect())
}

fn plans(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    use crate::session::status::Counter;
    let engine = &viewer.engine;
    let totals = engine.processes.totals();
    Ok(vec![vec![
        u(engine.plans.len() as u64),
        u(engine.variables.unsigned("rauk_plan_cache_size")),
        u(totals[Counter::PlanCacheHits as usize]),
        u(totals[Counter::PlanCacheMisses as usize]),
    ]])
}
