//! performance_schema.data_locks and data_lock_waits: row locks of this node that somebody waits for; and
//! metadata_locks: its sessions' locks on tables.
//!
//! Partitions keep locks beside the rows, and nobody has a list of them all. What is listed is every wait: the lock
//! that is wanted, and for each transaction in its way the lock that it holds. A lock that nobody waits for is not
//! shown, and the mode of a held one is empty where it may be either. Sessions are known by the same number as in the
//! process list.

use super::{Definition, Hints, PERFORMANCE_SCHEMA, Rows, s, u};
use crate::session::lookup::Viewer;
use rauk_node::status::{LockWaitInfo, TransactionInfo};
use rauk_types::{TableId, TxnId, Value};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

const P: &str = PERFORMANCE_SCHEMA;

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: P,
        name: "data_locks",
        columns: "ENGINE s32, ENGINE_LOCK_ID s128, ENGINE_TRANSACTION_ID u?, THREAD_ID u?, EVENT_ID u?, OBJECT_SCHEMA b64?, OBJECT_NAME b64?, PARTITION_NAME s64?, SUBPARTITION_NAME s64?, INDEX_NAME s64?, OBJECT_INSTANCE_BEGIN u, LOCK_TYPE s32, LOCK_MODE s32, LOCK_STATUS s32, LOCK_DATA s8192?",
        rows: locks,
    },
    Definition {
        database: P,
        name: "data_lock_waits",
        columns: "ENGINE s32, REQUESTING_ENGINE_LOCK_ID s128, REQUESTING_ENGINE_TRANSACTION_ID u?, REQUESTING_THREAD_ID u?, REQUESTING_EVENT_ID u?, REQUESTING_OBJECT_INSTANCE_BEGIN u, BLOCKING_ENGINE_LOCK_ID s128, BLOCKING_ENGINE_TRANSACTION_ID u?, BLOCKING_THREAD_ID u?, BLOCKING_EVENT_ID u?, BLOCKING_OBJECT_INSTANCE_BEGIN u",
        rows: waits,
    },
    Definition {
        database: P,
        name: "metadata_locks",
        columns: "OBJECT_TYPE s64, OBJECT_SCHEMA b64?, OBJECT_NAME b64?, COLUMN_NAME s64?, OBJECT_INSTANCE_BEGIN u, LOCK_TYPE s32, LOCK_DURATION s32, LOCK_STATUS s32, SOURCE s64?, OWNER_THREAD_ID u?, OWNER_EVENT_ID u?",
        rows: metadata_locks,
    },
];

/// How a session uses a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Write,
    LockedToRead,
    LockedToWrite,
    /// It has the table alone, or waits for that.
    Alone,
}

/// One table of a session.
struct TableUse {
    session: u64,
    table: (String, String),
    kind: Use,
}

impl TableUse {
    /// Whether it waits for another one.
    fn waits_for(&self, other: &TableUse) -> bool {
        let keeps_out = match self.kind {
            Use::Alone => other.kind != Use::Alone,
            Use::Write => matches!(other.kind, Use::LockedToRead | Use::LockedToWrite),
            Use::Read => other.kind == Use::LockedToWrite,
            Use::LockedToRead | Use::LockedToWrite => false,
        };
        keeps_out && self.session != other.session && self.table == other.table
    }
}

fn uses(viewer: &Viewer) -> Vec<TableUse> {
    let database = &viewer.engine.database;
    let mut all = Vec::new();
    for process in viewer.engine.processes.all() {
        let session = database.cluster_session_id(process.id);
        let tables = process.tables.lock().clone();
        let mut add = |table: (String, String), kind: Use| all.push(TableUse { session, table, kind });
        for (id, written) in tables.used {
            let Some(table) = database.table_by_id(id) else { continue };
            let name = (table.schema().database.clone(), table.schema().name.clone());
            add(name, if written { Use::Write } else { Use::Read });
        }
        for (database, name, write) in tables.locked {
            add((database, name), if write { Use::LockedToWrite } else { Use::LockedToRead });
        }
        tables.wanted.into_iter().for_each(|name| add(name, Use::Alone));
    }
    all
}

/// Who waits is told from what the others have: the locks themselves do not know their users. See
/// `session::tables_in_use` for what is noted.
fn metadata_locks(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let all = uses(viewer);
    let row = |of: &TableUse| {
        let waits = all.iter().any(|other| of.waits_for(other));
        let (database, name) = &of.table;
        vec![
            s("TABLE"),
            s(database),
            s(name),
            Value::Null,
            u(0u32),
            s(match of.kind {
                Use::Read => "SHARED_READ",
                Use::Write => "SHARED_WRITE",
                Use::LockedToRead => "SHARED_READ_ONLY",
                Use::LockedToWrite => "SHARED_NO_READ_WRITE",
                Use::Alone => "EXCLUSIVE",
            }),
            s("TRANSACTION"),
            s(if waits { "PENDING" } else { "GRANTED" }),
            Value::Null,
            u(of.session),
            Value::Null,
        ]
    };
    Ok(all.iter().map(row).collect())
}

/// The lock that a transaction waits for: it waits for one at a time.
pub(super) fn wanted_id(transaction: TxnId) -> String {
    format!("{}:wanted", transaction.0)
}

/// What a transaction holds that another one waits for.
fn held_id(wait: &LockWaitInfo) -> String {
    format!("{}:held:{}:{}", wait.blocking.0, wait.wanted.table.0, wait.wanted.partition.0)
}

/// The sessions of transactions that run here.
struct Sessions(FxHashMap<TxnId, u64>);

impl Sessions {
    fn of(viewer: &Viewer) -> Sessions {
        let all = viewer.engine.database.transactions().into_iter();
        Sessions(all.map(|t: TransactionInfo| (t.id, t.began.session)).collect())
    }

    fn thread(&self, transaction: TxnId) -> Value {
        self.0.get(&transaction).filter(|session| **session != 0).map_or(Value::Null, |session| u(*session))
    }
}

fn locks(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let sessions = Sessions::of(viewer);
    let mut rows = Vec::new();
    let mut listed = BTreeSet::new();
    let mut row = |id: String, transaction: TxnId, table: TableId, mode: &str, status: &str| {
        if !listed.insert(id.clone()) {
            return;
        }
        let (database, name) = match viewer.engine.database.table_by_id(table) {
            Some(table) => (s(&table.schema().database), s(&table.schema().name)),
            None => (Value::Null, Value::Null),
        };
        rows.push(vec![
            s("INNODB"),
            s(id),
            u(transaction.0),
            sessions.thread(transaction),
            Value::Null,
            database,
            name,
            Value::Null,
            Value::Null,
            Value::Null,
            u(0u32),
            s("RECORD"),
            s(mode),
            s(status),
            Value::Null,
        ]);
    };
    for wait in viewer.engine.database.locks() {
        let table = wait.wanted.table;
        // A shared lock waits for an exclusive one; an exclusive lock waits for any.
        let (wanted, held) = if wait.wanted.shared { ("S", "X") } else { ("X", "") };
        row(wanted_id(wait.waiting), wait.waiting, table, wanted, "WAITING");
        row(held_id(&wait), wait.blocking, table, held, "GRANTED");
    }
    Ok(rows)
}

fn waits(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let sessions = Sessions::of(viewer);
    let row = |wait: LockWaitInfo| {
        vec![
            s("INNODB"),
            s(wanted_id(wait.waiting)),
            u(wait.waiting.0),
            sessions.thread(wait.waiting),
            Value::Null,
            u(0u32),
            s(held_id(&wait)),
            u(wait.blocking.0),
            sessions.thread(wait.blocking),
            Value::Null,
            u(0u32),
        ]
    };
    Ok(viewer.engine.database.locks().into_iter().map(row).collect())
}
