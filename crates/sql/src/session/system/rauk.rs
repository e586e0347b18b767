//! Rauk's own tables: what an operator asks about this server.

use super::{Definition, Hints, INFORMATION_SCHEMA, Rows, s, u};
use crate::session::engine::VERSION;
use crate::session::lookup::Viewer;
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
    Definition {
        database: R,
        name: "plans",
        columns: "plans u, capacity u, hits u, misses u",
        rows: plans,
    },
    Definition {
        database: INFORMATION_SCHEMA,
        name: "INNODB_TRX",
        columns: "trx_id u, trx_state s13, trx_started t?, trx_requested_lock_id s126?, trx_wait_started t?, trx_weight u, trx_mysql_thread_id u, trx_query s1024?, trx_operation_state s64?, trx_tables_in_use u, trx_tables_locked u, trx_lock_structs u, trx_lock_memory_bytes u, trx_rows_locked u, trx_rows_modified u, trx_concurrency_tickets u, trx_isolation_level s16, trx_unique_checks i, trx_foreign_key_checks i, trx_last_foreign_key_error s256?, trx_adaptive_hash_latched i, trx_adaptive_hash_timeout u, trx_is_read_only i, trx_autocommit_non_locking i, trx_schedule_weight u?",
        rows: super::none,
    },
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
