//! What the server is and does: character sets, engines, connections, variables, counters.

use super::{Definition, Hints, INFORMATION_SCHEMA, PERFORMANCE_SCHEMA, Rows, s, u};
use crate::session::charset;
use crate::session::lookup::Viewer;
use crate::session::profiles::seconds;
use crate::session::status::{self, Counter};
use crate::session::users::Privileges;
use rauk_node::member::processes::ProcessInfo;
use rauk_types::{Charset, Collation, NodeId, Value};
use std::sync::atomic::Ordering;

const I: &str = INFORMATION_SCHEMA;
const P: &str = PERFORMANCE_SCHEMA;
const VARIABLE_COLUMNS: &str = "VARIABLE_NAME s64, VARIABLE_VALUE s2048?";

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: I,
        name: "CHARACTER_SETS",
        columns: "CHARACTER_SET_NAME s64, DEFAULT_COLLATE_NAME s64, DESCRIPTION s2048, MAXLEN m",
        rows: character_sets,
    },
    Definition {
        database: I,
        name: "COLLATIONS",
        columns: "COLLATION_NAME s64, CHARACTER_SET_NAME s64, ID u, IS_DEFAULT s3, IS_COMPILED s3, SORTLEN m, PAD_ATTRIBUTE s9",
        rows: collations,
    },
    Definition {
        database: I,
        name: "COLLATION_CHARACTER_SET_APPLICABILITY",
        columns: "COLLATION_NAME s64, CHARACTER_SET_NAME s64",
        rows: applicability,
    },
    Definition {
        database: I,
        name: "ENGINES",
        columns: "ENGINE s64, SUPPORT s8, COMMENT s80, TRANSACTIONS s3?, XA s3?, SAVEPOINTS s3?",
        rows: engines,
    },
    Definition {
        database: I,
        name: "PLUGINS",
        columns: "PLUGIN_NAME s64, PLUGIN_VERSION s20, PLUGIN_STATUS s10, PLUGIN_TYPE s80, PLUGIN_TYPE_VERSION s20, PLUGIN_LIBRARY s64?, PLUGIN_LIBRARY_VERSION s20?, PLUGIN_AUTHOR s64?, PLUGIN_DESCRIPTION s65535?, PLUGIN_LICENSE s80?, LOAD_OPTION s64",
        rows: plugins,
    },
    Definition {
        database: I,
        name: "PROCESSLIST",
        columns: "ID u, USER s32, HOST s261, DB s64?, COMMAND s16, TIME n, STATE s64?, INFO s65535?",
        rows: processes,
    },
    Definition { database: I, name: "GLOBAL_VARIABLES", columns: VARIABLE_COLUMNS, rows: global_variables },
    Definition { database: I, name: "SESSION_VARIABLES", columns: VARIABLE_COLUMNS, rows: session_variables },
    Definition { database: I, name: "GLOBAL_STATUS", columns: VARIABLE_COLUMNS, rows: global_status },
    Definition { database: I, name: "SESSION_STATUS", columns: VARIABLE_COLUMNS, rows: session_status },
    Definition {
        database: I,
        name: "PROFILING",
        columns: "QUERY_ID n, SEQ n, STATE s30, DURATION d, CPU_USER d?, CPU_SYSTEM d?, CONTEXT_VOLUNTARY n?, CONTEXT_INVOLUNTARY n?, BLOCK_OPS_IN n?, BLOCK_OPS_OUT n?, MESSAGES_SENT n?, MESSAGES_RECEIVED n?, PAGE_FAULTS_MAJOR n?, PAGE_FAULTS_MINOR n?, SWAPS n?, SOURCE_FUNCTION s30?, SOURCE_FILE s20?, SOURCE_LINE n?",
        rows: profiling,
    },
    Definition { database: P, name: "global_variables", columns: VARIABLE_COLUMNS, rows: global_variables },
    Definition { database: P, name: "session_variables", columns: VARIABLE_COLUMNS, rows: session_variables },
    Definition { database: P, name: "global_status", columns: VARIABLE_COLUMNS, rows: global_status },
    Definition { database: P, name: "session_status", columns: VARIABLE_COLUMNS, rows: session_status },
    Definition {
        database: P,
        name: "processlist",
        columns: "ID u, USER s32, HOST s261, DB s64?, COMMAND s16, TIME i, STATE s64?, INFO x?",
        rows: processes,
    },
];

/// Columns of PROFILING; what is not measured is NULL.
const PROFILING_COLUMNS: usize = 18;

fn profiling(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let Some(process) = viewer.engine.processes.find(viewer.connection_id) else { return Ok(Vec::new()) };
    let profiles = process.profiles.lock();
    let mut rows = Vec::new();
    for profile in &profiles.kept {
        for (at, (name, nanos)) in profile.stages.iter().enumerate() {
            let mut row = vec![Value::UInt(profile.number), u(at as u64 + 1), s(*name), seconds(*nanos)];
            row.resize(PROFILING_COLUMNS, Value::Null);
            rows.push(row);
        }
    }
    Ok(rows)
}

fn character_sets(_: &Viewer, _: &Hints<'_>) -> Rows {
    let default = |set: Charset| s(Collation::of_charset(set).name());
    let row = |set: Charset| vec![s(set.name()), default(set), s(set.description()), u(set.max_bytes())];
    Ok(Charset::all().map(row).collect())
}

fn collations(_: &Viewer, _: &Hints<'_>) -> Rows {
    let row = |c: &Collation| {
        vec![
            s(c.name()),
            s(c.charset_name()),
            u(c.mysql_id()),
            s(if c.is_default() { "Yes" } else { "" }),
            s("Yes"),
            u(c.sort_length()),
            s(c.pad_attribute()),
        ]
    };
    Ok(charset::collations().iter().map(row).collect())
}

fn applicability(_: &Viewer, _: &Hints<'_>) -> Rows {
    Ok(charset::collations().iter().map(|c| vec![s(c.name()), s(c.charset_name())]).collect())
}

fn engines(_: &Viewer, _: &Hints<'_>) -> Rows {
    Ok(vec![vec![
        s("InnoDB"),
        s("DEFAULT"),
        s("Rauk: rows in memory, transactions, row-level locking, durable"),
        s("YES"),
        s("NO"),
        s("YES"),
    ]])
}

fn plugins(_: &Viewer, _: &Hints<'_>) -> Rows {
    let row = |name: &str, kind: &str, text: &str| {
        vec![
            s(name),
            s("1.0"),
            s("ACTIVE"),
            s(kind),
            s("80036.0"),
            Value::Null,
            Value::Null,
            s("Rauk"),
            s(text),
            s("Apache-2.0"),
            s("FORCE"),
        ]
    };
    Ok(vec![
        row("mysql_native_password", "AUTHENTICATION", "Native MySQL authentication"),
        row("caching_sha2_password", "AUTHENTICATION", "Caching sha2 authentication"),
        row("InnoDB", "STORAGE ENGINE", "Rauk's row store"),
    ])
}

/// Own connections, or all for who has PROCESS.
fn processes(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    Ok(process_rows(viewer))
}

/// Whose sessions the viewer may see; `None`: all.
fn seen_user(viewer: &Viewer) -> Option<&str> {
    (!viewer.account.global.contains(Privileges::PROCESS)).then_some(&*viewer.account.user)
}

fn process_rows(viewer: &Viewer) -> Vec<Vec<Value>> {
    let engine = &viewer.engine;
    let id_of = |id| engine.database.cluster_session_id(id);
    rows_of_sessions(engine.processes.list(seen_user(viewer), engine.now_micros(), id_of))
}

fn rows_of_sessions(sessions: Vec<ProcessInfo>) -> Vec<Vec<Value>> {
    let row = |session: ProcessInfo| {
        let info = session.info;
        vec![
            u(session.id),
            s(session.user),
            s(session.host),
            session.database.map_or(Value::Null, Value::Str),
            s(if info.is_some() { "Query" } else { "Sleep" }),
            Value::Int(session.seconds),
            s(session.state),
            info.map_or(Value::Null, Value::Str),
        ]
    };
    sessions.into_iter().map(row).collect()
}

/// The sessions of this node, then those of the others; and the nodes that have not answered.
pub(crate) async fn all_process_rows(viewer: &Viewer) -> (Vec<Vec<Value>>, Vec<NodeId>) {
    let mut rows = process_rows(viewer);
    let told = viewer.engine.database.sessions_elsewhere(seen_user(viewer)).await;
    rows.extend(rows_of_sessions(told.sessions));
    (rows, told.silent)
}

fn variable_rows(viewer: &Viewer, global: bool) -> Rows {
    let list = viewer.variables.list(global);
    Ok(list.into_iter().map(|(name, value)| vec![s(name), s(value)]).collect())
}

fn global_variables(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    variable_rows(viewer, true)
}

fn session_variables(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    variable_rows(viewer, false)
}

fn status_rows(viewer: &Viewer, global: bool) -> Rows {
    Ok(status_list(viewer, global).into_iter().map(|(name, value)| vec![s(name), s(value)]).collect())
}

fn global_status(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    status_rows(viewer, true)
}

fn session_status(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    status_rows(viewer, false)
}

/// Names and values of SHOW STATUS, by name.
pub(crate) fn status_list(viewer: &Viewer, global: bool) -> Vec<(String, String)> {
    let engine = &viewer.engine;
    let counters = match (global, engine.processes.find(viewer.connection_id)) {
        (false, Some(process)) => {
            let mut own = [0; status::NAMES.len()];
            process.counters.add_to(&mut own);
            own
        }
        _ => engine.processes.totals(),
    };
    let mut list: Vec<(String, String)> =
        status::NAMES.iter().zip(&counters).map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let totals = engine.processes.totals();
    let running = engine.processes.all().iter().filter(|p| p.is_running()).count();
    let mut add = |name: &str, value: u64| list.push((name.to_string(), value.to_string()));
    add("Connections", engine.processes.connections.load(Ordering::Relaxed) + 1);
    add("Max_used_connections", engine.processes.max_used.load(Ordering::Relaxed));
    add("Threads_connected", engine.processes.len() as u64);
    add("Threads_running", running as u64);
    add("Threads_created", engine.processes.connections.load(Ordering::Relaxed));
    add("Threads_cached", 0);
    add("Uptime", engine.uptime().as_secs());
    add("Uptime_since_flush_status", engine.uptime().as_secs());
    add("Slow_queries", 0);
    add("Open_tables", 0);
    add("Rauk_memory_used", engine.database.memory_used());
    add("Rauk_memory_limit", engine.database.memory_limit());
    add("Rauk_partitions", u64::from(engine.database.partition_count()));
    add("Rauk_plan_cache_plans", engine.plans.len() as u64);
    add("Innodb_row_lock_timeouts", totals[Counter::LockTimeouts as usize]);
    let cipher = engine.processes.find(viewer.connection_id).and_then(|p| p.tls_cipher.clone());
    let version = match cipher.as_deref() {
        None => "",
        // The suites of TLS 1.3 name no key exchange.
        Some(name) if name.starts_with("TLS_") || name.starts_with("TLS13") => "TLSv1.3",
        Some(_) => "TLSv1.2",
    };
    list.push(("Ssl_version".to_string(), version.to_string()));
    list.push(("Ssl_cipher".to_string(), cipher.unwrap_or_default()));
    list.push(("Compression".to_string(), "OFF".to_string()));
    list.sort();
    list
}
