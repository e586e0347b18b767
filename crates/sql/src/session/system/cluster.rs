//! Rauk's tables about all nodes: nodes, partitions, health, transactions, lock waits, memory, what has happened.
//!
//! Nodes are asked at the same time when a table is read, without holding a thread, and have 200 ms to answer: one that does not has no rows, and that is an event. What the manage group has decided
//! is known without asking. A node that is alone is shown as a cluster of one.

use super::{Definition, Hints, Rows, datetime, s, u, yes};
use crate::session::engine::VERSION;
use crate::session::lookup::Viewer;
use rauk_node::member::event_log::merge;
use rauk_node::member::report::{Told, Wanted};
use rauk_node::pressure::colour;
use rauk_types::{NodeId, Value};

const R: &str = "rauk";

/// Rows of a table out of what nodes have told.
pub(super) type RowsOfTold = fn(&Viewer, &[Told]) -> Rows;

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: R,
        name: "nodes",
        columns: "node_id u, roles s64, version s64?, uptime_seconds u?, partitions u, memory_used u?, memory_limit u?, memory_status s16?, durability s16, connections u?, status s16, process_id u, primaries u, replicas u, leads_manage_group s3, lease s3?, commits u?, address s300, sql_address s300, native_address s300",
        rows: wait,
    },
    Definition {
        database: R,
        name: "partitions",
        columns: "partition_id u, group_id u, view_number u, primary_node u?, in_sync s256, in_sync_count u, wanted u, placed s256, joining x?, lag_entries u?, serves s3, fully_replicated s3, health s16, digest s32?, compared_entry u?, compared_seconds_ago u?",
        rows: wait,
    },
    Definition { database: R, name: "health", columns: "status s16, reason s1024", rows: health },
    Definition {
        database: R,
        name: "transactions",
        columns: "node_id u, transaction_id u, state s16, age_seconds u, rows_changed u, waiting_for x?",
        rows: wait,
    },
    Definition {
        database: R,
        name: "locks",
        columns: "node_id u, waiting_transaction u, blocking_transaction u, partition_id u",
        rows: wait,
    },
    Definition {
        database: R,
        name: "memory",
        columns: "node_id u, database_name b64?, table_name b64?, rows_count u?, row_bytes u, hash_index_bytes u?, ordered_index_bytes u?, history_bytes u?, total_bytes u",
        rows: wait,
    },
    Definition { database: R, name: "events", columns: "time t, node_id u, level s8, what s1024", rows: wait },
];

/// What a table asks nodes for, and how its rows are made of the answers.
pub(super) fn told(definition: &Definition) -> Option<(Wanted, RowsOfTold)> {
    let found: (Wanted, RowsOfTold) = match (definition.database, definition.name) {
        (R, "nodes") => (Wanted::Node, nodes),
        (R, "partitions") => (Wanted::Partitions, partitions),
        (R, "transactions") => (Wanted::Transactions, transactions),
        (R, "locks") => (Wanted::Locks, locks),
        (R, "memory") => (Wanted::Memory, memory),
        (R, "events") => (Wanted::Events, events),
        _ => return None,
    };
    Some(found)
}

/// These tables are read by who can wait, through [`told`].
fn wait(_: &Viewer, _: &Hints<'_>) -> Rows {
    Ok(Vec::new())
}

fn list(nodes: &[NodeId]) -> Value {
    let numbers: Vec<String> = nodes.iter().map(|n| n.0.to_string()).collect();
    s(numbers.join(","))
}

fn known(number: Option<u64>) -> Value {
    number.map_or(Value::Null, Value::UInt)
}

fn nodes(viewer: &Viewer, told: &[Told]) -> Rows {
    let engine = &viewer.engine;
    let durability = engine.variables.get(crate::session::variables::store::find("rauk_durability")?.1);
    let me = engine.database.member().map_or(NodeId(1), |cluster| cluster.me().node);
    let row = |t: &Told| {
        let report = t.report.as_ref();
        let (primaries, replicas) = engine.database.load_of(t.node);
        let here = t.node == me;
        vec![
            u(t.node.0),
            s(t.role_names()),
            match report {
                Some(_) if here => s(VERSION),
                Some(report) => s(&report.version),
                None => Value::Null,
            },
            known(report.map(|r| r.uptime.as_secs())),
            u(engine.database.partition_count()),
            known(report.map(|r| r.memory_used)),
            known(report.map(|r| r.memory_limit)),
            report.map_or(Value::Null, |r| s(colour(r.memory_used, r.memory_limit).to_string())),
            durability.clone(),
            known(here.then(|| engine.processes.len() as u64)),
            s(t.status()),
            u(t.process.0),
            u(primaries as u64),
            u(replicas as u64),
            yes(t.leads),
            report.map_or(Value::Null, |r| yes(r.lease)),
            known(report.map(|r| r.commits)),
            s(&t.address),
            s(&t.sql_address),
            s(&t.native_address),
        ]
    };
    Ok(told.iter().map(row).collect())
}

fn partitions(viewer: &Viewer, told: &[Told]) -> Rows {
    let all = viewer.engine.database.partition_overviews(told).into_iter();
    let row = |p: rauk_node::member::overview::PartitionOverview| {
        let joining: Vec<String> = p.joining.iter().map(|(node, how)| format!("node {} {how}", node.0)).collect();
        vec![
            u(p.partition),
            u(p.group),
            u(p.view),
            known(p.primary.map(|n| n.0.into())),
            list(&p.in_sync),
            u(p.in_sync.len() as u64),
            u(p.wanted as u64),
            list(&p.placed),
            if joining.is_empty() { Value::Null } else { s(joining.join("; ")) },
            known(p.lag),
            yes(p.serves),
            yes(p.fully_replicated),
            s(p.health),
            p.compared.map_or(Value::Null, |compared| s(format!("{:032x}", compared.digest))),
            known(p.compared.map(|compared| compared.position)),
            known(p.compared.map(|compared| compared.ago.as_secs())),
        ]
    };
    Ok(all.map(row).collect())
}

/// One row a reason, the worst first; one without a reason when all is well.
fn health(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let (status, mut reasons) = viewer.engine.database.health();
    if reasons.is_empty() {
        reasons.push(String::new());
    }
    Ok(reasons.into_iter().map(|reason| vec![s(status.to_string()), s(reason)]).collect())
}

fn transactions(_: &Viewer, told: &[Told]) -> Rows {
    let mut rows = Vec::new();
    for (node, report) in told.iter().filter_map(|t| Some((t.node, t.report.as_ref()?))) {
        for t in &report.transactions {
            let waiting: Vec<String> = t.waiting_for.iter().map(|id| id.0.to_string()).collect();
            rows.push(vec![
                u(node.0),
                u(t.id.0),
                s(if t.waits { "waiting" } else { "running" }),
                u(t.age.as_secs()),
                u(t.rows_changed),
                if waiting.is_empty() { Value::Null } else { s(waiting.join(",")) },
            ]);
        }
    }
    Ok(rows)
}

fn locks(_: &Viewer, told: &[Told]) -> Rows {
    let mut rows = Vec::new();
    for (node, report) in told.iter().filter_map(|t| Some((t.node, t.report.as_ref()?))) {
        let row = |w: &rauk_node::member::report::LockReport| {
            vec![u(node.0), u(w.waiting.0), u(w.blocking.0), u(w.partition.0)]
        };
        rows.extend(report.locks.iter().map(row));
    }
    Ok(rows)
}

/// One row a table, largest first, and one for the node, for each node.
fn memory(viewer: &Viewer, told: &[Told]) -> Rows {
    let database = &viewer.engine.database;
    let mut rows = Vec::new();
    for (node, report) in told.iter().filter_map(|t| Some((t.node, t.report.as_ref()?))) {
        let total =
            |t: &rauk_node::member::report::TableReport| t.row_bytes + t.hash_bytes + t.ordered_bytes + t.history_bytes;
        let mut tables: Vec<_> = report.tables.iter().collect();
        tables.sort_by_key(|t| (std::cmp::Reverse(total(t)), t.table));
        for t in tables {
            // Index tables count with their base tables; one that was dropped meanwhile counts no more.
            let Some(handle) = database.table_by_id(t.table).filter(|h| h.schema().entry_of.is_none()) else {
                continue;
            };
            let schema = handle.schema();
            rows.push(vec![
                u(node.0),
                s(&schema.database),
                s(&schema.name),
                u(t.rows),
                u(t.row_bytes),
                u(t.hash_bytes),
                u(t.ordered_bytes),
                u(t.history_bytes),
                u(total(t)),
            ]);
        }
        let used = u(report.memory_used);
        let mut row = vec![u(node.0), Value::Null, Value::Null, Value::Null, used.clone()];
        row.extend([Value::Null, Value::Null, Value::Null, used]);
        rows.push(row);
    }
    Ok(rows)
}

/// The cluster's log as all nodes remember it, oldest first.
fn events(_: &Viewer, told: &[Told]) -> Rows {
    let rings = told.iter().filter_map(|t| Some(t.report.as_ref()?.events.clone()));
    let row = |h: rauk_node::member::event_log::LoggedEvent| {
        vec![datetime(i64::try_from(h.time).unwrap_or(0)), u(h.node.0), s(h.level.name()), s(h.what)]
    };
    Ok(merge(rings).into_iter().map(row).collect())
}
