//! performance_schema.data_locks and data_lock_waits: row locks of this node; and metadata_locks: its sessions' locks on
//! tables.
//!
//! Partitions keep locks beside the rows, and nobody has a list of them all: it is gathered in slices when a query asks
//! (`Database::held_locks`), at most [`MOST`] locks. Waits are those that the node knows. A wait whose blocking lock the
//! list does not have gets a row for that, too, so that the two tables can always be joined; its mode is empty where it
//! may be either. Sessions are known by the same number as in the process list.

use super::{Definition, Hints, PERFORMANCE_SCHEMA, Rows, none, s, u};
use crate::session::lookup::Viewer;
use rauk_node::status::{LockWaitInfo, TransactionInfo};
use rauk_node::{HeldMode, HeldOn, LockInfo, RowId};
use rauk_types::{IndexKind, PartitionId, TableId, TableSchema, TxnId, Value, format};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

const P: &str = PERFORMANCE_SCHEMA;

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: P,
        name: "data_locks",
        columns: "ENGINE s32, ENGINE_LOCK_ID s128, ENGINE_TRANSACTION_ID u?, THREAD_ID u?, EVENT_ID u?, OBJECT_SCHEMA b64?, OBJECT_NAME b64?, PARTITION_NAME s64?, SUBPARTITION_NAME s64?, INDEX_NAME s64?, OBJECT_INSTANCE_BEGIN u, LOCK_TYPE s32, LOCK_MODE s32, LOCK_STATUS s32, LOCK_DATA s8192?",
        rows: none,
    },
    Definition {
        database: P,
        name: "data_lock_waits",
        columns: "ENGINE s32, REQUESTING_ENGINE_LOCK_ID s128, REQUESTING_ENGINE_TRANSACTION_ID u?, REQUESTING_THREAD_ID u?, REQUESTING_EVENT_ID u?, REQUESTING_OBJECT_INSTANCE_BEGIN u, BLOCKING_ENGINE_LOCK_ID s128, BLOCKING_ENGINE_TRANSACTION_ID u?, BLOCKING_THREAD_ID u?, BLOCKING_EVENT_ID u?, BLOCKING_OBJECT_INSTANCE_BEGIN u",
        rows: none,
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

/// As many locks are listed at most.
const MOST: usize = 50_000;

/// The lock that a transaction waits for: it waits for one at a time.
pub(super) fn wanted_id(transaction: TxnId) -> String {
    format!("{}:wanted", transaction.0)
}

/// What a transaction holds that another one waits for, where the list of locks does not have it: a lock on a name or
/// range, one that has come or gone meanwhile, or one behind the end of a list that is cut.
fn held_id(wait: &LockWaitInfo) -> String {
    format!("{}:held:{}:{}", wait.blocking.0, wait.wanted.table.0, wait.wanted.partition.0)
}

/// A lock of the list.
fn id_of(info: &LockInfo) -> String {
    let (txn, table, partition) = (info.txn.0, info.lock.table.0, info.partition.0);
    match &info.lock.what {
        HeldOn::Row { row, .. } => format!("{txn}:{table}:{partition}:{}", row.0),
        HeldOn::Ranges { index, .. } => format!("{txn}:{table}:{partition}:index {}", index.0),
    }
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

/// The list of locks, and where each of a row stands in it.
struct Listed {
    all: Vec<LockInfo>,
    rows: FxHashMap<(PartitionId, TableId, RowId, TxnId), usize>,
    /// What transactions wait for, by partition and table.
    wanted: FxHashMap<(PartitionId, TableId, TxnId), usize>,
}

impl Listed {
    async fn gather(viewer: &Viewer) -> Listed {
        let all = viewer.engine.database.held_locks(MOST).await;
        let (mut rows, mut wanted) = (FxHashMap::default(), FxHashMap::default());
        for (at, info) in all.iter().enumerate() {
            match &info.lock.what {
                HeldOn::Row { .. } if info.lock.waits => {
                    wanted.insert((info.partition, info.lock.table, info.txn), at);
                }
                HeldOn::Row { row, .. } => {
                    rows.insert((info.partition, info.lock.table, *row, info.txn), at);
                }
                HeldOn::Ranges { .. } => {}
            }
        }
        Listed { all, rows, wanted }
    }

    /// The row that a transaction waits for.
    fn wanted(&self, wait: &LockWaitInfo) -> Option<&LockInfo> {
        self.wanted.get(&(wait.wanted.partition, wait.wanted.table, wait.waiting)).map(|at| &self.all[*at])
    }

    /// The lock that is in its way.
    fn blocking(&self, wait: &LockWaitInfo) -> Option<&LockInfo> {
        let wanted = self.wanted(wait)?;
        let HeldOn::Row { row, .. } = &wanted.lock.what else { return None };
        let at = self.rows.get(&(wanted.partition, wanted.lock.table, *row, wait.blocking))?;
        Some(&self.all[*at])
    }
}

/// No lock is on a gap between rows, but for ranges.
fn mode_name(mode: HeldMode) -> &'static str {
    match mode {
        HeldMode::KeyShare => "KEY_SHARE",
        HeldMode::Shared => "S,REC_NOT_GAP",
        HeldMode::Exclusive => "X,REC_NOT_GAP",
    }
}

/// Values of a key as literals: `1, 'a'`.
fn key_text(table: &TableSchema, key: &[Value]) -> String {
    let mut out = Vec::new();
    for (part, value) in table.primary().parts.iter().zip(key) {
        if !out.is_empty() {
            out.extend_from_slice(b", ");
        }
        let ty = &table.columns[part.column].ty;
        match value {
            Value::Null => out.extend_from_slice(b"NULL"),
            Value::Bytes(bytes) => {
                out.extend_from_slice(b"0x");
                out.extend(bytes.iter().flat_map(|byte| format!("{byte:02X}").into_bytes()));
            }
            value => {
                let mut text = Vec::new();
                format::append_text(value.as_ref(), ty, &mut text);
                let quoted = ty.is_text() || ty.has_members() || ty.is_temporal();
                if quoted {
                    text = text.iter().flat_map(|&b| if b == b'\'' { vec![b, b] } else { vec![b] }).collect();
                    text.insert(0, b'\'');
                    text.push(b'\'');
                }
                out.extend_from_slice(&text);
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Database, table, index and key of what a lock is on.
fn object(viewer: &Viewer, table: TableId, what: Option<&HeldOn>) -> [Value; 4] {
    let null = || [Value::Null, Value::Null, Value::Null, Value::Null];
    let database = &viewer.engine.database;
    let Some(table) = database.table_by_id(table) else { return null() };
    let schema = table.schema();
    // The index table of a unique index: its keys are encoded.
    if let Some((base, index)) = schema.entry_of {
        let Some(base) = database.table_by_id(base) else { return null() };
        let name = base.schema().index(index).map_or(Value::Null, |index| s(&index.name));
        return [s(&base.schema().database), s(&base.schema().name), name, Value::Null];
    }
    let primary = if schema.hidden_key { "GEN_CLUST_INDEX" } else { "PRIMARY" };
    let (index, key) = match what {
        Some(HeldOn::Row { key, .. }) => (s(primary), s(key_text(schema, key))),
        Some(HeldOn::Ranges { index, .. }) => match schema.index(*index) {
            Some(index) if index.kind != IndexKind::Primary => (s(&index.name), Value::Null),
            _ => (s(primary), Value::Null),
        },
        None => (Value::Null, Value::Null),
    };
    [s(&schema.database), s(&schema.name), index, key]
}

fn locks(viewer: &Viewer, listed: &Listed) -> Vec<Vec<Value>> {
    let sessions = Sessions::of(viewer);
    let row = |id: String, transaction: TxnId, [database, table, index, key]: [Value; 4], mode: &str, status: &str| {
        vec![
            s("INNODB"),
            s(id),
            u(transaction.0),
            sessions.thread(transaction),
            Value::Null,
            database,
            table,
            Value::Null,
            Value::Null,
            index,
            u(0u32),
            s("RECORD"),
            s(mode),
            s(status),
            key,
        ]
    };
    let mut rows = Vec::new();
    for info in listed.all.iter().filter(|info| !info.lock.waits) {
        let mode = match &info.lock.what {
            HeldOn::Row { mode, .. } => mode_name(*mode),
            HeldOn::Ranges { .. } => "S,GAP",
        };
        let object = object(viewer, info.lock.table, Some(&info.lock.what));
        rows.push(row(id_of(info), info.txn, object, mode, "GRANTED"));
    }
    let mut told = BTreeSet::new();
    for wait in viewer.engine.database.locks() {
        let table = wait.wanted.table;
        if told.insert(wanted_id(wait.waiting)) {
            let wanted = listed.wanted(&wait).map(|info| &info.lock.what);
            let mode = match wanted {
                Some(HeldOn::Row { mode, .. }) => *mode,
                _ if wait.wanted.shared => HeldMode::Shared,
                _ => HeldMode::Exclusive,
            };
            let object = object(viewer, table, wanted);
            rows.push(row(wanted_id(wait.waiting), wait.waiting, object, mode_name(mode), "WAITING"));
        }
        if listed.blocking(&wait).is_none() && told.insert(held_id(&wait)) {
            // A shared lock waits for an exclusive one; an exclusive lock waits for any.
            let mode = if wait.wanted.shared { mode_name(HeldMode::Exclusive) } else { "" };
            rows.push(row(held_id(&wait), wait.blocking, object(viewer, table, None), mode, "GRANTED"));
        }
    }
    rows
}

fn waits(viewer: &Viewer, listed: &Listed) -> Vec<Vec<Value>> {
    let sessions = Sessions::of(viewer);
    let row = |wait: LockWaitInfo| {
        vec![
            s("INNODB"),
            s(wanted_id(wait.waiting)),
            u(wait.waiting.0),
            sessions.thread(wait.waiting),
            Value::Null,
            u(0u32),
            s(listed.blocking(&wait).map_or_else(|| held_id(&wait), id_of)),
            u(wait.blocking.0),
            sessions.thread(wait.blocking),
            Value::Null,
            u(0u32),
        ]
    };
    viewer.engine.database.locks().into_iter().map(row).collect()
}

/// Whether the rows of a table are made of the list of locks.
pub(super) fn is_listed(definition: &Definition) -> bool {
    definition.database == P && ["data_locks", "data_lock_waits"].contains(&definition.name)
}

/// The rows of such a table.
pub(super) async fn gather(definition: &Definition, viewer: &Viewer) -> Rows {
    let listed = Listed::gather(viewer).await;
    let rows = if definition.name == "data_locks" { locks } else { waits };
    Ok(rows(viewer, &listed))
}
