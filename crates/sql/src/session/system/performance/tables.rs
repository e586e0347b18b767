//! Tables and indexes by the rows that were read and written, waits, and memory.
//!
//! Rows are counted and not timed, as `setup_instruments` says, so their times are 0. Counts are those of this node.

use super::P;
use crate::session::lookup::Viewer;
use crate::session::system::catalog::stored_tables;
use crate::session::system::{Definition, Hints, Rows, s, u};
use rauk_types::Value;

const BY_TABLE: &str = "OBJECT_TYPE s64?, OBJECT_SCHEMA b64?, OBJECT_NAME b64?, COUNT_STAR u, SUM_TIMER_WAIT u, MIN_TIMER_WAIT u, AVG_TIMER_WAIT u, MAX_TIMER_WAIT u, COUNT_READ u, SUM_TIMER_READ u, MIN_TIMER_READ u, AVG_TIMER_READ u, MAX_TIMER_READ u, COUNT_WRITE u, SUM_TIMER_WRITE u, MIN_TIMER_WRITE u, AVG_TIMER_WRITE u, MAX_TIMER_WRITE u, COUNT_FETCH u, SUM_TIMER_FETCH u, MIN_TIMER_FETCH u, AVG_TIMER_FETCH u, MAX_TIMER_FETCH u, COUNT_INSERT u, SUM_TIMER_INSERT u, MIN_TIMER_INSERT u, AVG_TIMER_INSERT u, MAX_TIMER_INSERT u, COUNT_UPDATE u, SUM_TIMER_UPDATE u, MIN_TIMER_UPDATE u, AVG_TIMER_UPDATE u, MAX_TIMER_UPDATE u, COUNT_DELETE u, SUM_TIMER_DELETE u, MIN_TIMER_DELETE u, AVG_TIMER_DELETE u, MAX_TIMER_DELETE u";

const BY_INDEX: &str = "OBJECT_TYPE s64?, OBJECT_SCHEMA b64?, OBJECT_NAME b64?, INDEX_NAME s64?, COUNT_STAR u, SUM_TIMER_WAIT u, MIN_TIMER_WAIT u, AVG_TIMER_WAIT u, MAX_TIMER_WAIT u, COUNT_READ u, SUM_TIMER_READ u, MIN_TIMER_READ u, AVG_TIMER_READ u, MAX_TIMER_READ u, COUNT_WRITE u, SUM_TIMER_WRITE u, MIN_TIMER_WRITE u, AVG_TIMER_WRITE u, MAX_TIMER_WRITE u, COUNT_FETCH u, SUM_TIMER_FETCH u, MIN_TIMER_FETCH u, AVG_TIMER_FETCH u, MAX_TIMER_FETCH u, COUNT_INSERT u, SUM_TIMER_INSERT u, MIN_TIMER_INSERT u, AVG_TIMER_INSERT u, MAX_TIMER_INSERT u, COUNT_UPDATE u, SUM_TIMER_UPDATE u, MIN_TIMER_UPDATE u, AVG_TIMER_UPDATE u, MAX_TIMER_UPDATE u, COUNT_DELETE u, SUM_TIMER_DELETE u, MIN_TIMER_DELETE u, AVG_TIMER_DELETE u, MAX_TIMER_DELETE u";

pub(super) const TABLES: &[Definition] = &[
    Definition { database: P, name: "table_io_waits_summary_by_table", columns: BY_TABLE, rows: by_table },
    Definition { database: P, name: "table_io_waits_summary_by_index_usage", columns: BY_INDEX, rows: by_index },
    Definition {
        database: P,
        name: "events_waits_summary_global_by_event_name",
        columns: "EVENT_NAME s128, COUNT_STAR u, SUM_TIMER_WAIT u, MIN_TIMER_WAIT u, AVG_TIMER_WAIT u, MAX_TIMER_WAIT u",
        rows: waits,
    },
    Definition {
        database: P,
        name: "memory_summary_global_by_event_name",
        columns: "EVENT_NAME s128, COUNT_ALLOC u, COUNT_FREE u, SUM_NUMBER_OF_BYTES_ALLOC u, SUM_NUMBER_OF_BYTES_FREE u, LOW_COUNT_USED i, CURRENT_COUNT_USED i, HIGH_COUNT_USED i, LOW_NUMBER_OF_BYTES_USED i, CURRENT_NUMBER_OF_BYTES_USED i, HIGH_NUMBER_OF_BYTES_USED i",
        rows: memory,
    },
];

/// Counts of fetched, inserted, updated and deleted rows as COUNT_STAR to MAX_TIMER_DELETE.
fn counts(fetched: u64, inserted: u64, updated: u64, deleted: u64) -> Vec<Value> {
    let written = inserted + updated + deleted;
    let all = [fetched + written, fetched, written, fetched, inserted, updated, deleted];
    all.into_iter().flat_map(|count| [u(count), u(0u32), u(0u32), u(0u32), u(0u32)]).collect()
}

fn by_table(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in stored_tables(viewer, &Hints::default()) {
        let io = viewer.engine.database.table_io(table.id);
        let mut row = vec![s("TABLE"), s(&table.database), s(&table.name)];
        row.extend(counts(io.fetched(), io.inserted, io.updated, io.deleted));
        rows.push(row);
    }
    Ok(rows)
}

/// Rows that an index has found; the row without an index name is of what was found by none, and of inserted rows.
/// Updates and deletions are counted where MySQL counts them for tables without an index: which index found their rows
/// says COUNT_FETCH.
fn by_index(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in stored_tables(viewer, &Hints::default()) {
        let io = viewer.engine.database.table_io(table.id);
        let mut row = |index: Value, counts: Vec<Value>| {
            let mut row = vec![s("TABLE"), s(&table.database), s(&table.name), index];
            row.extend(counts);
            rows.push(row);
        };
        for index in super::super::keys::declared(&table) {
            row(s(&index.name), counts(io.of_index(index.id), 0, 0, 0));
        }
        let hidden = if table.hidden_key { io.by_key } else { 0 };
        row(Value::Null, counts(io.scanned + hidden, io.inserted, io.updated, io.deleted));
    }
    Ok(rows)
}

/// Waits for row locks are timed; rows that were read and written, and flushes of the redo log, are counted.
fn waits(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    const PICOSECONDS: u64 = 1000;
    let database = &viewer.engine.database;
    let counters = database.counters();
    let mut handled = 0;
    for table in stored_tables(viewer, &Hints::default()) {
        let io = database.table_io(table.id);
        handled += io.fetched() + io.inserted + io.updated + io.deleted;
    }
    let row = |name: &str, count: u64, nanoseconds: u64, longest: u64| {
        let sum = nanoseconds.saturating_mul(PICOSECONDS);
        let average = sum.checked_div(count).unwrap_or(0);
        vec![s(name), u(count), u(sum), u(0u32), u(average), u(longest.saturating_mul(PICOSECONDS))]
    };
    Ok(vec![
        row("wait/lock/row/rauk/row_lock", counters.lock_waits, counters.lock_waited, counters.longest_lock_wait),
        row("wait/io/table/sql/handler", handled, 0, 0),
        row("wait/io/file/rauk/redo_log", counters.flushes, 0, 0),
    ])
}

/// What stored rows and running statements take now.
fn memory(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let engine = &viewer.engine;
    let row = |name: &str, bytes: u64| {
        let bytes = Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX));
        let zero = || Value::Int(0);
        vec![s(name), u(0u32), u(0u32), u(0u32), u(0u32), zero(), zero(), zero(), zero(), bytes.clone(), bytes]
    };
    Ok(vec![
        row("memory/rauk/rows", engine.database.memory_used()),
        row("memory/rauk/statements", engine.memory.used()),
    ])
}
