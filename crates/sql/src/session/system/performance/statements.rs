//! Statements: by digest, by kind, and those that run.

use super::{P, PICOSECONDS};
use crate::session::digests::{AccountName, DigestRow, Field, KindSums, Sums, event_kinds, event_name};
use crate::session::lookup::Viewer;
use crate::session::system::{Definition, Hints, Rows, none, s, u};
use rauk_types::Value;
use std::collections::BTreeMap;

/// Of the tables that sum up by kind, behind EVENT_NAME.
macro_rules! with_sums {
    ($before:literal) => {
        concat!(
            $before,
            "EVENT_NAME s128, COUNT_STAR u, SUM_TIMER_WAIT u, MIN_TIMER_WAIT u, AVG_TIMER_WAIT u, MAX_TIMER_WAIT u, SUM_LOCK_TIME u, SUM_ERRORS u, SUM_WARNINGS u, SUM_ROWS_AFFECTED u, SUM_ROWS_SENT u, SUM_ROWS_EXAMINED u, SUM_CREATED_TMP_DISK_TABLES u, SUM_CREATED_TMP_TABLES u, SUM_SELECT_FULL_JOIN u, SUM_SELECT_FULL_RANGE_JOIN u, SUM_SELECT_RANGE u, SUM_SELECT_RANGE_CHECK u, SUM_SELECT_SCAN u, SUM_SORT_MERGE_PASSES u, SUM_SORT_RANGE u, SUM_SORT_ROWS u, SUM_SORT_SCAN u, SUM_NO_INDEX_USED u, SUM_NO_GOOD_INDEX_USED u, SUM_CPU_TIME u, MAX_CONTROLLED_MEMORY u, MAX_TOTAL_MEMORY u, COUNT_SECONDARY u"
        )
    };
}

const EVENT: &str = "THREAD_ID u, EVENT_ID u, END_EVENT_ID u?, EVENT_NAME s128, SOURCE s64?, TIMER_START u?, TIMER_END u?, TIMER_WAIT u?, LOCK_TIME u, SQL_TEXT x?, DIGEST s64?, DIGEST_TEXT x?, CURRENT_SCHEMA s64?, OBJECT_TYPE s64?, OBJECT_SCHEMA s64?, OBJECT_NAME s64?, OBJECT_INSTANCE_BEGIN u?, MYSQL_ERRNO n?, RETURNED_SQLSTATE s5?, MESSAGE_TEXT s128?, ERRORS u, WARNINGS u, ROWS_AFFECTED u, ROWS_SENT u, ROWS_EXAMINED u, CREATED_TMP_DISK_TABLES u, CREATED_TMP_TABLES u, SELECT_FULL_JOIN u, SELECT_FULL_RANGE_JOIN u, SELECT_RANGE u, SELECT_RANGE_CHECK u, SELECT_SCAN u, SORT_MERGE_PASSES u, SORT_RANGE u, SORT_ROWS u, SORT_SCAN u, NO_INDEX_USED u, NO_GOOD_INDEX_USED u, NESTING_EVENT_ID u?, NESTING_EVENT_TYPE s11?, NESTING_EVENT_LEVEL n?, STATEMENT_ID u?, CPU_TIME u, MAX_CONTROLLED_MEMORY u, MAX_TOTAL_MEMORY u, EXECUTION_ENGINE s9?";

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: P,
        name: "events_statements_summary_by_digest",
        columns: "SCHEMA_NAME b64?, DIGEST s64?, DIGEST_TEXT x?, COUNT_STAR u, SUM_TIMER_WAIT u, MIN_TIMER_WAIT u, AVG_TIMER_WAIT u, MAX_TIMER_WAIT u, SUM_LOCK_TIME u, SUM_ERRORS u, SUM_WARNINGS u, SUM_ROWS_AFFECTED u, SUM_ROWS_SENT u, SUM_ROWS_EXAMINED u, SUM_CREATED_TMP_DISK_TABLES u, SUM_CREATED_TMP_TABLES u, SUM_SELECT_FULL_JOIN u, SUM_SELECT_FULL_RANGE_JOIN u, SUM_SELECT_RANGE u, SUM_SELECT_RANGE_CHECK u, SUM_SELECT_SCAN u, SUM_SORT_MERGE_PASSES u, SUM_SORT_RANGE u, SUM_SORT_ROWS u, SUM_SORT_SCAN u, SUM_NO_INDEX_USED u, SUM_NO_GOOD_INDEX_USED u, SUM_CPU_TIME u, MAX_CONTROLLED_MEMORY u, MAX_TOTAL_MEMORY u, COUNT_SECONDARY u, FIRST_SEEN q, LAST_SEEN q, QUANTILE_95 u, QUANTILE_99 u, QUANTILE_999 u, QUERY_SAMPLE_TEXT x?, QUERY_SAMPLE_SEEN q?, QUERY_SAMPLE_TIMER_WAIT u",
        rows: by_digest,
    },
    Definition {
        database: P,
        name: "events_statements_summary_global_by_event_name",
        columns: with_sums!(""),
        rows: by_event_name,
    },
    Definition {
        database: P,
        name: "events_statements_summary_by_thread_by_event_name",
        columns: with_sums!("THREAD_ID u, "),
        rows: by_thread,
    },
    Definition {
        database: P,
        name: "events_statements_summary_by_user_by_event_name",
        columns: with_sums!("USER c32?, "),
        rows: by_user,
    },
    Definition {
        database: P,
        name: "events_statements_summary_by_host_by_event_name",
        columns: with_sums!("HOST c255?, "),
        rows: by_host,
    },
    Definition {
        database: P,
        name: "events_statements_summary_by_account_by_event_name",
        columns: with_sums!("USER c32?, HOST c255?, "),
        rows: by_account,
    },
    Definition { database: P, name: "events_statements_current", columns: EVENT, rows: current },
    Definition { database: P, name: "events_statements_history", columns: EVENT, rows: none },
    Definition { database: P, name: "events_statements_history_long", columns: EVENT, rows: none },
];

/// COUNT_STAR to COUNT_SECONDARY. What is not measured, or does not happen here (tables on disk, merge passes of
/// sorts), is 0.
fn sums(sums: &Sums) -> Vec<Value> {
    let get = |field| sums.get(field);
    let count = get(Field::Count);
    let shortest = if count == 0 { 0 } else { sums.shortest };
    let zero = || u(0u32);
    let picoseconds = |micros: u64| u(micros.saturating_mul(PICOSECONDS));
    vec![
        u(count),
        picoseconds(get(Field::Micros)),
        picoseconds(shortest),
        picoseconds(get(Field::Micros).checked_div(count).unwrap_or(0)),
        picoseconds(get(Field::Longest)),
        picoseconds(get(Field::Locked)),
        u(get(Field::Errors)),
        u(get(Field::Warnings)),
        u(get(Field::Affected)),
        u(get(Field::Sent)),
        u(get(Field::Examined)),
        zero(),
        u(get(Field::Temporary)),
        u(get(Field::FullJoins)),
        zero(),
        u(get(Field::Ranges)),
        zero(),
        u(get(Field::Scans)),
        zero(),
        u(get(Field::SortsOfRanges)),
        u(get(Field::SortedRows)),
        u(get(Field::SortsOfScans)),
        u(get(Field::NoIndex)),
        zero(),
        zero(),
        zero(),
        zero(),
        zero(),
    ]
}

fn by_digest(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let text = |text: &Option<Box<str>>| text.as_deref().map_or(Value::Null, s);
    let picoseconds = |micros: u64| u(micros.saturating_mul(PICOSECONDS));
    let mut rows = Vec::new();
    for digest in viewer.engine.digests.all() {
        let DigestRow { sums: counted, quantiles, first_seen, last_seen, sample } = digest.row();
        let mut row = vec![text(&digest.database), text(&digest.hash), text(&digest.text)];
        row.extend(sums(&counted));
        row.extend([Value::Timestamp(first_seen), Value::Timestamp(last_seen)]);
        row.extend(quantiles.map(picoseconds));
        let known = digest.text.is_some() && sample.seen != 0;
        row.extend(match known {
            true => [s(sample.text), Value::Timestamp(sample.seen), picoseconds(sample.micros)],
            false => [Value::Null, Value::Null, u(0u32)],
        });
        rows.push(row);
    }
    Ok(rows)
}

/// One row a kind of statement, also of those that nobody has run.
fn of_kinds(before: &[Value], kinds: &KindSums) -> Vec<Vec<Value>> {
    let row = |kind: usize| {
        let mut row = before.to_vec();
        row.push(s(event_name(kind)));
        row.extend(sums(&kinds.get(&kind).copied().unwrap_or_default()));
        row
    };
    event_kinds().map(row).collect()
}

/// What sessions that are there and those that have ended have run, by accounts.
pub(super) fn of_accounts(viewer: &Viewer) -> BTreeMap<AccountName, KindSums> {
    let processes = &viewer.engine.processes;
    let ended = processes.accounts.all().into_iter().map(|(name, account)| (name, account.kinds));
    let mut all: BTreeMap<AccountName, KindSums> = ended.collect();
    for process in processes.all() {
        let name = Some((process.user.clone(), process.host.clone()));
        // Of an account beyond those that are told apart.
        let name = if all.contains_key(&name) { name } else { None };
        process.kinds.add_to(all.entry(name).or_default());
    }
    all
}

fn merge(into: &mut KindSums, kinds: &KindSums) {
    for (kind, sums) in kinds {
        into.entry(*kind).or_default().add(sums);
    }
}

fn by_event_name(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut all = KindSums::default();
    of_accounts(viewer).values().for_each(|kinds| merge(&mut all, kinds));
    Ok(of_kinds(&[], &all))
}

fn by_thread(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for process in viewer.engine.processes.all() {
        let mut kinds = KindSums::default();
        process.kinds.add_to(&mut kinds);
        rows.extend(of_kinds(&[u(viewer.engine.database.cluster_session_id(process.id))], &kinds));
    }
    Ok(rows)
}

fn text_of(name: Option<&String>) -> Value {
    name.map_or(Value::Null, s)
}

fn by_part(viewer: &Viewer, part: impl Fn(&(String, String)) -> String) -> Rows {
    let mut parts: BTreeMap<Option<String>, KindSums> = BTreeMap::new();
    for (name, kinds) in of_accounts(viewer) {
        merge(parts.entry(name.as_ref().map(&part)).or_default(), &kinds);
    }
    Ok(parts.iter().flat_map(|(part, kinds)| of_kinds(&[text_of(part.as_ref())], kinds)).collect())
}

fn by_user(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    by_part(viewer, |(user, _)| user.clone())
}

fn by_host(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    by_part(viewer, |(_, host)| host.clone())
}

fn by_account(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let of = |(name, kinds): (AccountName, KindSums)| {
        let (user, host) = (name.as_ref().map(|(user, _)| user), name.as_ref().map(|(_, host)| host));
        of_kinds(&[text_of(user), text_of(host)], &kinds)
    };
    Ok(of_accounts(viewer).into_iter().flat_map(of).collect())
}

/// Statements that run now; those that have ended are not kept.
fn current(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let engine = &viewer.engine;
    let now = engine.now_micros();
    let started = now - i64::try_from(engine.uptime().as_micros()).unwrap_or(0);
    let mut rows = Vec::new();
    for process in engine.processes.all() {
        let Some(text) = process.info() else { continue };
        let began = process.since_micros();
        let picoseconds = |micros: i64| u(u64::try_from(micros).unwrap_or(0).saturating_mul(PICOSECONDS));
        let mut row = vec![
            u(engine.database.cluster_session_id(process.id)),
            u(1u32),
            Value::Null,
            s("statement/abstract/Query"),
        ];
        row.extend([Value::Null, picoseconds(began - started), picoseconds(now - started), picoseconds(now - began)]);
        row.extend([u(0u32), s(text), Value::Null, Value::Null]);
        row.push(process.database.lock().as_ref().map_or(Value::Null, s));
        row.resize(20, Value::Null);
        row.resize(38, u(0u32));
        row.resize(42, Value::Null);
        row.extend([u(0u32), u(0u32), u(0u32), s("PRIMARY")]);
        rows.push(row);
    }
    Ok(rows)
}
