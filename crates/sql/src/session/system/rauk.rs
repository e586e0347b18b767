//! Rauk's own tables about this server alone; those about the whole cluster are in `cluster`.

use super::{Definition, Hints, INFORMATION_SCHEMA, Rows, s, u};
use crate::session::errors;
use crate::session::lookup::Viewer;
use crate::session::users::Privileges;
use rauk_node::status::{TransactionInfo, TransactionState};
use rauk_types::Value;

const R: &str = "rauk";

pub(super) const TABLES: &[Definition] = &[
    Definition { database: R, name: "plans", columns: "plans u, capacity u, hits u, misses u", rows: plans },
    Definition {
        database: INFORMATION_SCHEMA,
        name: "INNODB_TRX",
        columns: "trx_id u, trx_state s13, trx_started t?, trx_requested_lock_id s126?, trx_wait_started t?, trx_weight u, trx_mysql_thread_id u, trx_query s1024?, trx_operation_state s64?, trx_tables_in_use u, trx_tables_locked u, trx_lock_structs u, trx_lock_memory_bytes u, trx_rows_locked u, trx_rows_modified u, trx_concurrency_tickets u, trx_isolation_level s16, trx_unique_checks i, trx_foreign_key_checks i, trx_last_foreign_key_error s256?, trx_adaptive_hash_latched i, trx_adaptive_hash_timeout u, trx_is_read_only i, trx_autocommit_non_locking i, trx_schedule_weight u?",
        rows: innodb_trx,
    },
    Definition {
        database: INFORMATION_SCHEMA,
        name: "INNODB_TEMP_TABLE_INFO",
        columns: "TABLE_ID u, NAME s64?, N_COLS u, SPACE u",
        rows: temporary_tables,
    },
    Definition { database: R, name: "jobs", columns: "name s64, value u", rows: jobs },
];

/// What goes on in the background, as counts: commits, flushes, checkpoints, the redo log.
fn jobs(viewer: &Viewer, _: &Hints<'_>) -> Rows {
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
        ("redo_end", c.redo_end),
        ("redo_live_bytes", c.redo_live_bytes),
        ("snapshots", c.snapshots),
        ("transactions", c.transactions),
    ];
    Ok(rows.into_iter().map(|(name, value)| vec![s(name), u(value)]).collect())
}

/// For those who have PROCESS, as in MySQL; what the node does not know of a transaction is 0.
fn innodb_trx(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    if !viewer.account.global.contains(Privileges::PROCESS) {
        return Err(errors::needs_privilege("PROCESS"));
    }
    let now = viewer.engine.now_micros();
    let row = |t: TransactionInfo| {
        let waits = t.state == TransactionState::Waiting;
        let started = now - i64::try_from(t.age.as_micros()).unwrap_or(0);
        vec![
            u(t.id.0),
            s(if waits { "LOCK WAIT" } else { "RUNNING" }),
            super::datetime(started),
            Value::Null,
            Value::Null,
            u(t.rows_changed),
            u(0u64),
            Value::Null,
            Value::Null,
            u(0u64),
            u(0u64),
            u(0u64),
            u(0u64),
            u(0u64),
            u(t.rows_changed),
            u(0u64),
            s(""),
            Value::Int(1),
            Value::Int(1),
            Value::Null,
            Value::Int(0),
            u(0u64),
            Value::Int(0),
            Value::Int(0),
            Value::Null,
        ]
    };
    Ok(viewer.engine.database.transactions().into_iter().map(row).collect())
}

/// The session's own temporary tables, hidden keys counted among the columns, as InnoDB counts its own.
fn temporary_tables(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let row = |table: &rauk_node::TableHandle| {
        let schema = table.schema();
        vec![u(schema.id.0), s(&schema.name), u(schema.columns.len() as u64), u(0u32)]
    };
    Ok(viewer.temporary.all().into_iter().map(row).collect())
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
