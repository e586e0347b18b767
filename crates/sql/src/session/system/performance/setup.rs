//! What is measured: the tables `setup_…`, which nobody can change, and timers.

use super::P;
use crate::session::digests::{event_kinds, event_name};
use crate::session::lookup::Viewer;
use crate::session::system::{Definition, Hints, Rows, s, yes};
use rauk_types::Value;

pub(super) const TABLES: &[Definition] = &[
    Definition { database: P, name: "setup_consumers", columns: "NAME s64, ENABLED s3", rows: consumers },
    Definition {
        database: P,
        name: "setup_instruments",
        columns: "NAME s128, ENABLED s3, TIMED s3?, PROPERTIES s64, FLAGS s64?, VOLATILITY n, DOCUMENTATION x?",
        rows: instruments,
    },
    Definition {
        database: P,
        name: "setup_actors",
        columns: "HOST c255, USER c32, ROLE c32, ENABLED s3, HISTORY s3",
        rows: actors,
    },
    Definition {
        database: P,
        name: "setup_objects",
        columns: "OBJECT_TYPE s9, OBJECT_SCHEMA s64?, OBJECT_NAME s64, ENABLED s3, TIMED s3",
        rows: objects,
    },
    Definition {
        database: P,
        name: "setup_threads",
        columns: "NAME s128, ENABLED s3, HISTORY s3, PROPERTIES s64, VOLATILITY n, DOCUMENTATION x?",
        rows: threads,
    },
    Definition {
        database: P,
        name: "performance_timers",
        columns: "TIMER_NAME s11, TIMER_FREQUENCY i?, TIMER_RESOLUTION i?, TIMER_OVERHEAD i?",
        rows: timers,
    },
];

fn consumers(_: &Viewer, _: &Hints<'_>) -> Rows {
    let row = |(name, on): (&str, bool)| vec![s(name), yes(on)];
    let all = [
        ("events_stages_current", false),
        ("events_stages_history", false),
        ("events_stages_history_long", false),
        ("events_statements_cpu", false),
        ("events_statements_current", true),
        ("events_statements_history", false),
        ("events_statements_history_long", false),
        ("events_transactions_current", false),
        ("events_transactions_history", false),
        ("events_transactions_history_long", false),
        ("events_waits_current", false),
        ("events_waits_history", false),
        ("events_waits_history_long", false),
        ("global_instrumentation", true),
        ("thread_instrumentation", true),
        ("statements_digest", true),
    ];
    Ok(all.into_iter().map(row).collect())
}

fn instruments(_: &Viewer, _: &Hints<'_>) -> Rows {
    let row = |name: &str, timed: Option<bool>, what: &str| {
        let timed = timed.map_or(Value::Null, yes);
        vec![s(name), yes(true), timed, s(""), Value::Null, Value::Int(0), s(what)]
    };
    let mut rows: Vec<Vec<Value>> =
        event_kinds().map(|kind| row(&event_name(kind), Some(true), "Statements of this kind")).collect();
    rows.push(row("wait/lock/row/rauk/row_lock", Some(true), "Waits for row locks"));
    rows.push(row("wait/io/table/sql/handler", Some(false), "Rows that are read and written"));
    rows.push(row("wait/io/file/rauk/redo_log", Some(false), "Flushes of the redo log"));
    rows.push(row("memory/rauk/rows", None, "Stored rows, indexes and old versions"));
    rows.push(row("memory/rauk/statements", None, "Running statements"));
    Ok(rows)
}

fn actors(_: &Viewer, _: &Hints<'_>) -> Rows {
    Ok(vec![vec![s("%"), s("%"), s("%"), yes(true), yes(false)]])
}

fn objects(_: &Viewer, _: &Hints<'_>) -> Rows {
    let row = |(database, on): (&str, bool)| vec![s("TABLE"), s(database), s("%"), yes(on), yes(false)];
    let all = [("information_schema", false), ("mysql", false), ("performance_schema", false), ("%", true)];
    Ok(all.into_iter().map(row).collect())
}

fn threads(_: &Viewer, _: &Hints<'_>) -> Rows {
    let what = s("A session");
    Ok(vec![vec![s("thread/sql/one_connection"), yes(true), yes(false), s("user"), Value::Int(0), what]])
}

fn timers(_: &Viewer, _: &Hints<'_>) -> Rows {
    Ok(vec![vec![s("MICROSECOND"), Value::Int(1_000_000), Value::Int(1), Value::Null]])
}
