//! The tables INNODB_… of information_schema that mean something here: transactions, and tables, indexes and foreign
//! keys as the storage engine sees them.
//!
//! Rauk has no pages, tablespaces or buffer pool. Sizes in pages are bytes in units of 16 KiB, and the tables about
//! pages, compression, files and full-text auxiliary tables are not there (error 1109). As in MySQL all but those of
//! foreign keys need PROCESS.

use super::catalog::{row_format, stored_tables, usage_of};
use super::{Definition, Hints, INFORMATION_SCHEMA, Rows, s, u};
use crate::session::errors;
use crate::session::lookup::Viewer;
use crate::session::processlist::Process;
use crate::session::users::Privileges;
use rauk_node::Isolation;
use rauk_node::status::{TransactionInfo, TransactionState};
use rauk_types::fulltext::STOP_WORDS;
use rauk_types::{IndexKind, IndexSchema, MysqlError, ReferenceAction, TableSchema, Value};
use std::sync::Arc;

/// Bytes that count as a page.
const PAGE: u64 = 16 << 10;
/// InnoDB's hidden columns, which its counts of columns have in them.
const HIDDEN_COLUMNS: i64 = 3;

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: INFORMATION_SCHEMA,
        name: "INNODB_METRICS",
        columns: "NAME s193, SUBSYSTEM s193, COUNT i, MAX_COUNT i?, MIN_COUNT i?, AVG_COUNT f?, COUNT_RESET i, MAX_COUNT_RESET i?, MIN_COUNT_RESET i?, AVG_COUNT_RESET f?, TIME_ENABLED t?, TIME_DISABLED t?, TIME_ELAPSED i?, TIME_RESET t?, STATUS s193, TYPE s193, COMMENT s193",
        rows: metrics,
    },
    Definition {
        database: INFORMATION_SCHEMA,
        name: "INNODB_TABLES",
        columns: "TABLE_ID u, NAME s655, FLAG n, N_COLS n, SPACE i, ROW_FORMAT s12?, ZIP_PAGE_SIZE m, SPACE_TYPE s10?, INSTANT_COLS n, TOTAL_ROW_VERSIONS n",
        rows: tables,
    },
    Definition {
        database: INFORMATION_SCHEMA,
        name: "INNODB_INDEXES",
        columns: "INDEX_ID u, NAME s193, TABLE_ID u, TYPE n, N_FIELDS n, PAGE_NO n, SPACE n, MERGE_THRESHOLD n",
        rows: indexes,
    },
    Definition {
        database: INFORMATION_SCHEMA,
        name: "INNODB_FIELDS",
        columns: "INDEX_ID u, NAME b64, POS u",
        rows: fields,
    },
    Definition {
        database: INFORMATION_SCHEMA,
        name: "INNODB_TABLESTATS",
        columns: "TABLE_ID u, NAME s193, STATS_INITIALIZED s193, NUM_ROWS u, CLUST_INDEX_SIZE u, OTHER_INDEX_SIZE u, MODIFIED_COUNTER u, AUTOINC u, REF_COUNT n",
        rows: table_statistics,
    },
    Definition {
        database: INFORMATION_SCHEMA,
        name: "INNODB_FOREIGN_COLS",
        columns: "ID s129?, FOR_COL_NAME b64, REF_COL_NAME b64, POS m",
        rows: foreign_columns,
    },
    Definition {
        database: INFORMATION_SCHEMA,
        name: "INNODB_TRX",
        columns: "trx_id u, trx_state s13, trx_started t, trx_requested_lock_id s105?, trx_wait_started t?, trx_weight u, trx_mysql_thread_id u, trx_query s1024?, trx_operation_state s64?, trx_tables_in_use u, trx_tables_locked u, trx_lock_structs u, trx_lock_memory_bytes u, trx_rows_locked u, trx_rows_modified u, trx_concurrency_tickets u, trx_isolation_level s16, trx_unique_checks n, trx_foreign_key_checks n, trx_last_foreign_key_error s256?, trx_adaptive_hash_latched n, trx_adaptive_hash_timeout u, trx_is_read_only n, trx_autocommit_non_locking n, trx_schedule_weight u?",
        rows: innodb_trx,
    },
    Definition {
        database: INFORMATION_SCHEMA,
        name: "INNODB_TEMP_TABLE_INFO",
        columns: "TABLE_ID u, NAME s64?, N_COLS m, SPACE m",
        rows: temporary_tables,
    },
    Definition {
        database: INFORMATION_SCHEMA,
        name: "INNODB_FOREIGN",
        columns: "ID s129?, FOR_NAME s129?, REF_NAME s129?, N_COLS i, TYPE u",
        rows: innodb_foreign,
    },
    Definition {
        database: INFORMATION_SCHEMA,
        name: "INNODB_FT_DEFAULT_STOPWORD",
        columns: "value s18",
        rows: |_, _| Ok(STOP_WORDS.iter().map(|word| vec![s(*word)]).collect()),
    },
];

/// Error 1227.
fn require_process(viewer: &Viewer) -> Result<(), MysqlError> {
    match viewer.account.global.contains(Privileges::PROCESS) {
        true => Ok(()),
        false => Err(errors::needs_privilege("PROCESS")),
    }
}

fn name_of(table: &TableSchema) -> Value {
    s(format!("{}/{}", table.database, table.name))
}

/// An index is known by its table's number and its own.
fn number_of(table: &TableSchema, index: &IndexSchema) -> Value {
    u((u64::from(table.id.0) << 16) | u64::from(index.id.0))
}

fn tables(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    require_process(viewer)?;
    // Of the row format DYNAMIC.
    const FLAG: i64 = 33;
    let row = |table: Arc<TableSchema>| {
        vec![
            u(table.id.0),
            name_of(&table),
            Value::Int(FLAG),
            Value::Int(table.visible_columns().len() as i64 + HIDDEN_COLUMNS),
            Value::Int(0),
            s(row_format(&table)),
            u(0u32),
            s("System"),
            Value::Int(0),
            Value::Int(0),
        ]
    };
    Ok(stored_tables(viewer, hints).into_iter().map(row).collect())
}

fn indexes(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    require_process(viewer)?;
    let mut rows = Vec::new();
    for table in stored_tables(viewer, hints) {
        for (at, index) in table.indexes.iter().enumerate() {
            let hidden = table.hidden_key && index.kind == IndexKind::Primary;
            let kind = match &index.kind {
                IndexKind::FullText(_) => 32,
                _ if hidden => 1,
                IndexKind::Primary => 3,
                _ if at == 0 => 3,
                _ if index.is_unique() => 2,
                _ => 0,
            };
            rows.push(vec![
                number_of(&table, index),
                s(if hidden { "GEN_CLUST_INDEX" } else { &index.name }),
                u(table.id.0),
                Value::Int(kind),
                Value::Int(if hidden { 0 } else { index.parts.len() as i64 }),
                // There are no pages.
                Value::Int(-1),
                Value::Int(0),
                Value::Int(50),
            ]);
        }
    }
    Ok(rows)
}

fn fields(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    require_process(viewer)?;
    let mut rows = Vec::new();
    for table in stored_tables(viewer, hints) {
        for index in super::keys::declared(&table) {
            let field = |(at, part): (usize, &rauk_types::schema::IndexPart)| {
                vec![number_of(&table, index), s(&table.columns[part.column].name), u(at as u64)]
            };
            rows.extend(index.parts.iter().enumerate().map(field));
        }
    }
    Ok(rows)
}

fn table_statistics(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    require_process(viewer)?;
    let database = &viewer.engine.database;
    let row = |table: Arc<TableSchema>| {
        let usage = usage_of(viewer, &table);
        let known = viewer.engine.known_statistics(table.id).is_some();
        vec![
            u(table.id.0),
            name_of(&table),
            s(if known { "Initialized" } else { "Uninitialized" }),
            u(usage.rows),
            u(usage.row_bytes.div_ceil(PAGE)),
            u(usage.index_bytes.div_ceil(PAGE)),
            u(0u32),
            u(table.auto_increment.map_or(0, |_| database.peek_auto_increment(table.id))),
            Value::Int(0),
        ]
    };
    Ok(stored_tables(viewer, hints).into_iter().map(row).collect())
}

fn foreign_columns(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in stored_tables(viewer, hints) {
        for key in &table.foreign_keys {
            let columns = key.positions(&table).into_iter().zip(&key.parent_columns).enumerate();
            rows.extend(columns.map(|(at, (column, parent))| {
                let id = format!("{}/{}", table.database, key.name);
                vec![s(id), s(&table.columns[column].name), s(parent), u(at as u64 + 1)]
            }));
        }
    }
    Ok(rows)
}

/// The counters that mean here what InnoDB's mean.
fn metrics(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    require_process(viewer)?;
    let engine = &viewer.engine;
    let c = engine.database.counters();
    let seconds = engine.uptime().as_secs();
    let started = super::datetime(engine.now_micros() - i64::try_from(engine.uptime().as_micros()).unwrap_or(0));
    let row = |name: &str, subsystem: &str, count: u64, kind: &str, comment: &str| {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let average =
            if kind == "counter" && seconds > 0 { Value::Double(count as f64 / seconds as f64) } else { Value::Null };
        let numbers = [Value::Int(count), Value::Null, Value::Null, average];
        let mut row = vec![s(name), s(subsystem)];
        row.extend(numbers.clone());
        row.extend(numbers);
        row.extend([started.clone(), Value::Null, Value::Int(seconds as i64), Value::Null]);
        row.extend([s("enabled"), s(kind), s(comment)]);
        row
    };
    Ok(vec![
        row("lock_deadlocks", "lock", c.deadlocks, "counter", "Number of deadlocks"),
        row("lock_timeouts", "lock", c.lock_timeouts, "counter", "Number of lock timeouts"),
        row(
            "lock_rec_lock_waits",
            "lock",
            c.lock_waits,
            "counter",
            "Number of times enqueued into record lock wait queue",
        ),
        row("trx_rw_commits", "transaction", c.commits, "counter", "Number of read-write transactions committed"),
        row("trx_rollbacks", "transaction", c.rollbacks, "counter", "Number of transactions rolled back"),
        row("trx_active_transactions", "transaction", c.transactions, "value", "Number of active transactions"),
        row("log_lsn_current", "log", c.redo_end, "value", "Current LSN value"),
        row("log_checkpoints", "log", c.checkpoints, "counter", "Number of checkpoints"),
    ])
}

/// The session of a transaction, where it is one of this node.
pub(crate) fn session_of(viewer: &Viewer, transaction: &TransactionInfo) -> Option<Arc<Process>> {
    let engine = &viewer.engine;
    let number = transaction.began.session;
    let is_it = |process: &Arc<Process>| engine.database.cluster_session_id(process.id) == number;
    engine.processes.all().into_iter().find(is_it)
}

/// What the node does not know of a transaction is 0. The lock that is waited for is that of
/// performance_schema.data_locks.
fn innodb_trx(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    require_process(viewer)?;
    let now = viewer.engine.now_micros();
    let before = |age: std::time::Duration| now - i64::try_from(age.as_micros()).unwrap_or(0);
    let row = |t: TransactionInfo| {
        let waits = t.state == TransactionState::Waiting;
        let session = session_of(viewer, &t);
        vec![
            u(t.id.0),
            s(if waits { "LOCK WAIT" } else { "RUNNING" }),
            super::datetime(before(t.age)),
            if waits { s(super::locks::wanted_id(t.id)) } else { Value::Null },
            if waits { super::datetime(before(t.waited)) } else { Value::Null },
            u(t.rows_changed),
            u(t.began.session),
            session
                .and_then(|session| session.info())
                .map_or(Value::Null, |text| s(text.chars().take(1024).collect::<String>())),
            Value::Null,
            u(0u32),
            u(0u32),
            u(0u32),
            u(0u32),
            u(0u32),
            u(t.rows_changed),
            u(0u32),
            s(match t.began.isolation {
                Isolation::ReadCommitted => "READ COMMITTED",
                Isolation::RepeatableRead => "REPEATABLE READ",
                Isolation::Serializable => "SERIALIZABLE",
            }),
            Value::Int(1),
            Value::Int(i64::from(t.began.foreign_key_checks)),
            Value::Null,
            Value::Int(0),
            u(0u32),
            Value::Int(i64::from(t.began.read_only)),
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

/// InnoDB's own view of foreign keys. TYPE: 1 and 2 are ON DELETE CASCADE and SET NULL, 4 and 8 ON UPDATE, 16 and 32 NO
/// ACTION.
fn innodb_foreign(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let bits = |action: ReferenceAction, cascade: u64, none: u64| match action {
        ReferenceAction::Cascade => cascade,
        ReferenceAction::SetNull => 2 * cascade,
        ReferenceAction::NoAction => none,
        ReferenceAction::Restrict => 0,
    };
    let mut rows = Vec::new();
    for table in stored_tables(viewer, hints) {
        for key in &table.foreign_keys {
            rows.push(vec![
                s(format!("{}/{}", table.database, key.name)),
                s(format!("{}/{}", table.database, table.name)),
                s(format!("{}/{}", key.parent_database, key.parent_table)),
                Value::Int(key.columns.len() as i64),
                u(bits(key.on_delete, 1, 16) | bits(key.on_update, 4, 32)),
            ]);
        }
    }
    Ok(rows)
}
