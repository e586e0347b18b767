//! What the server is and does: character sets, engines, connections, variables, counters.

use super::{Definition, Hints, INFORMATION_SCHEMA, PERFORMANCE_SCHEMA, Rows, none, s, u};
use crate::session::charset;
use crate::session::lookup::Viewer;
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
        columns: "CHARACTER_SET_NAME s64, DEFAULT_COLLATE_NAME s64, DESCRIPTION s2048, MAXLEN u",
        rows: character_sets,
    },
    Definition {
        database: I,
        name: "COLLATIONS",
        columns: "COLLATION_NAME s64, CHARACTER_SET_NAME s64, ID u, IS_DEFAULT s3, IS_COMPILED s3, SORTLEN u, PAD_ATTRIBUTE s9",
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
        columns: "PLUGIN_NAME s64, PLUGIN_VERSION s20, PLUGIN_STATUS s10, PLUGIN_TYPE s80, PLUGIN_TYPE_VERSION s20, PLUGIN_LIBRARY s64?, PLUGIN_LIBRARY_VERSION s20?, PLUGIN_AUTHOR s64?, PLUGIN_DESCRIPTION x?, PLUGIN_LICENSE s80?, LOAD_OPTION s64",
        rows: plugins,
    },
    Definition {
        database: I,
        name: "PROCESSLIST",
        columns: "ID u, USER s32, HOST s261, DB s64?, COMMAND s16, TIME i, STATE s64?, INFO x?",
        rows: processes,
    },
    Definition { database: I, name: "KEYWORDS", columns: "WORD s128?, RESERVED i?", rows: keywords },
    Definition { database: I, name: "GLOBAL_VARIABLES", columns: VARIABLE_COLUMNS, rows: global_variables },
    Definition { database: I, name: "SESSION_VARIABLES", columns: VARIABLE_COLUMNS, rows: session_variables },
    Definition { database: I, name: "GLOBAL_STATUS", columns: VARIABLE_COLUMNS, rows: global_status },
    Definition { database: I, name: "SESSION_STATUS", columns: VARIABLE_COLUMNS, rows: session_status },
    Definition { database: I, name: "PROFILING", columns: "QUERY_ID i, SEQ i, STATE s30, DURATION i", rows: none },
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
            s(if info.is_some() { "executing" } else { "" }),
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

/// The reserved words of MySQL 8.0 (its documentation's list).
const RESERVED: &str = "ACCESSIBLE ADD ALL ALTER ANALYZE AND AS ASC ASENSITIVE BEFORE BETWEEN BIGINT BINARY BLOB BOTH BY CALL CASCADE CASE CHANGE CHAR CHARACTER CHECK COLLATE COLUMN CONDITION CONSTRAINT CONTINUE CONVERT CREATE CROSS CUBE CUME_DIST CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURSOR DATABASE DATABASES DAY_HOUR DAY_MICROSECOND DAY_MINUTE DAY_SECOND DEC DECIMAL DECLARE DEFAULT DELAYED DELETE DENSE_RANK DESC DESCRIBE DETERMINISTIC DISTINCT DISTINCTROW DIV DOUBLE DROP DUAL EACH ELSE ELSEIF EMPTY ENCLOSED ESCAPED EXCEPT EXISTS EXIT EXPLAIN FALSE FETCH FIRST_VALUE FLOAT FLOAT4 FLOAT8 FOR FORCE FOREIGN FROM FULLTEXT FUNCTION GENERATED GET GRANT GROUP GROUPING GROUPS HAVING HIGH_PRIORITY HOUR_MICROSECOND HOUR_MINUTE HOUR_SECOND IF IGNORE IN INDEX INFILE INNER INOUT INSENSITIVE INSERT INT INT1 INT2 INT3 INT4 INT8 INTEGER INTERSECT INTERVAL INTO IO_AFTER_GTIDS IO_BEFORE_GTIDS IS ITERATE JOIN JSON_TABLE KEY KEYS KILL LAG LAST_VALUE LATERAL LEAD LEADING LEAVE LEFT LIKE LIMIT LINEAR LINES LOAD LOCALTIME LOCALTIMESTAMP LOCK LONG LONGBLOB LONGTEXT LOOP LOW_PRIORITY MASTER_BIND MASTER_SSL_VERIFY_SERVER_CERT MATCH MAXVALUE MEDIUMBLOB MEDIUMINT MEDIUMTEXT MIDDLEINT MINUTE_MICROSECOND MINUTE_SECOND MOD MODIFIES NATURAL NOT NO_WRITE_TO_BINLOG NTH_VALUE NTILE NULL NUMERIC OF ON OPTIMIZE OPTIMIZER_COSTS OPTION OPTIONALLY OR ORDER OUT OUTER OUTFILE OVER PARTITION PERCENT_RANK PRECISION PRIMARY PROCEDURE PURGE RANGE RANK READ READS READ_WRITE REAL RECURSIVE REFERENCES REGEXP RELEASE RENAME REPEAT REPLACE REQUIRE RESIGNAL RESTRICT RETURN REVOKE RIGHT RLIKE ROW ROWS ROW_NUMBER SCHEMA SCHEMAS SECOND_MICROSECOND SELECT SENSITIVE SEPARATOR SET SHOW SIGNAL SMALLINT SPATIAL SPECIFIC SQL SQLEXCEPTION SQLSTATE SQLWARNING SQL_BIG_RESULT SQL_CALC_FOUND_ROWS SQL_SMALL_RESULT SSL STARTING STORED STRAIGHT_JOIN SYSTEM TABLE TERMINATED THEN TINYBLOB TINYINT TINYTEXT TO TRAILING TRIGGER TRUE UNDO UNION UNIQUE UNLOCK UNSIGNED UPDATE USAGE USE USING UTC_DATE UTC_TIME UTC_TIMESTAMP VALUES VARBINARY VARCHAR VARCHARACTER VARYING VIRTUAL WHEN WHERE WHILE WINDOW WITH WRITE XOR YEAR_MONTH ZEROFILL";

fn keywords(_: &Viewer, _: &Hints<'_>) -> Rows {
    Ok(RESERVED.split(' ').map(|word| vec![s(word), Value::Int(1)]).collect())
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
