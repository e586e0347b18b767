//! Rauk's own tables: what an operator asks about this server.

use super::{Definition, Hints, INFORMATION_SCHEMA, Rows, s, u};
use crate::session::engine::VERSION;
use crate::session::errors;
use crate::session::lookup::Viewer;
use crate::session::users::Privileges;
use rauk_node::status::{TransactionInfo, TransactionState};
use rauk_types::Value;

const R: &str = "rauk";

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: R,
        name: "memory",
        columns: "database_name b64?, table_name b64?, rows_count u?, row_bytes u, hash_index_bytes u?, ordered_index_bytes u?, history_bytes u?, total_bytes u",
        rows: memory,
    },
    Definition {
        database: R,
        name: "nodes",
        columns: "node_id u, roles s64, version s64, uptime_seconds u, partitions u, memory_used u, memory_limit u, durability s16, connections u, status s16",
        rows: nodes,
    },
    Definition { database: R, name: "plans", columns: "plans u, capacity u, hits u, misses u", rows: plans },
    Definition {
        database: INFORMATION_SCHEMA,
        name: "INNODB_TRX",
        columns: "trx_id u, trx_state s13, trx_started t?, trx_requested_lock_id s126?, trx_wait_started t?, trx_weight u, trx_mysql_thread_id u, trx_query s1024?, trx_operation_state s64?, trx_tables_in_use u, trx_tables_locked u, trx_lock_structs u, trx_lock_memory_bytes u, trx_rows_locked u, trx_rows_modified u, trx_concurrency_tickets u, trx_isolation_level s16, trx_unique_checks i, trx_foreign_key_checks i, trx_last_foreign_key_error s256?, trx_adaptive_hash_latched i, trx_adaptive_hash_timeout u, trx_is_read_only i, trx_autocommit_non_locking i, trx_schedule_weight u?",
        rows: innodb_trx,
    },
    Definition {
        database: R,
        name: "transactions",
        columns: "transaction_id u, state s16, age_seconds u, rows_changed u, waiting_for x?",
        rows: transactions,
    },
    Definition {
        database: R,
        name: "locks",
        columns: "waiting_transaction u, blocking_transaction u, partition_id u",
        rows: locks,
    },
    Definition { database: R, name: "jobs", columns: "name s64, value u", rows: jobs },
];

/// One row a table, largest first, and one for all.
fn memory(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let database = &viewer.engine.database;
    let mut rows = Vec::new();
    for name in database.databases() {
        for table in database.tables(&name).unwrap_or_default() {
            let usage = database.table_usage(table.id);
            let total = usage.row_bytes + usage.hash_bytes + usage.ordered_bytes + usage.history_bytes;
            rows.push((
                total,
                vec![
                    s(&table.database),
                    s(&table.name),
                    Value::UInt(usage.rows),
                    Value::UInt(usage.row_bytes),
                    Value::UInt(usage.hash_bytes),
                    Value::UInt(usage.ordered_bytes),
                    Value::UInt(usage.history_bytes),
                    Value::UInt(total),
                ],
            ));
        }
    }
    rows.sort_by_key(|(total, _)| std::cmp::Reverse(*total));
    let mut rows: Vec<Vec<Value>> = rows.into_iter().map(|(_, row)| row).collect();
    let used = database.memory_used();
    rows.push(vec![
        Value::Null,
        Value::Null,
        Value::Null,
        Value::UInt(used),
        Value::Null,
        Value::Null,
        Value::Null,
        Value::UInt(used),
    ]);
    Ok(rows)
}

fn nodes(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let engine = &viewer.engine;
    let durability = engine.variables.get(crate::session::variables::store::find("rauk_durability")?.1);
    Ok(vec![vec![
        u(1u64),
        s("manage,data,sql"),
        s(VERSION),
        u(engine.uptime().as_secs()),
        u(engine.database.partition_count()),
        u(engine.database.memory_used()),
        u(engine.database.memory_limit()),
        durability,
        u(engine.processes.len() as u64),
        s("up"),
    ]])
}

fn transactions(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let row = |t: TransactionInfo| {
        let waiting: Vec<String> = t.waiting_for.iter().map(|id| id.0.to_string()).collect();
        vec![
            u(t.id.0),
            s(if t.state == TransactionState::Waiting { "waiting" } else { "running" }),
            u(t.age.as_secs()),
            u(t.rows_changed),
            if waiting.is_empty() { Value::Null } else { s(waiting.join(",")) },
        ]
    };
    Ok(viewer.engine.database.transactions().into_iter().map(row).collect())
}

fn locks(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let waits = viewer.engine.database.locks().into_iter();
    Ok(waits.map(|w| vec![u(w.waiting.0), u(w.blocking.0), u(w.partition.0)]).collect())
}

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
