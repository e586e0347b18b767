//! Rows of another server's tables.
//!
//! The work is a list of parts: a whole table, or a range of its primary key where that is one integer and the table is
//! large. Each thread takes the next part, with its own connection to both servers. One row and the statement that is
//! being filled are in memory. Statements are transactions of their own; nobody reads the tables yet.

use super::super::literal::{self, Kind, quoted};
use super::super::options::Options;
use super::super::report::Report;
use super::super::server;
use super::schema::Table;
use super::source::Source;
use mysql::prelude::Queryable;
use mysql::{Conn, Value};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A statement ends when it has so many bytes or rows.
const STATEMENT: usize = 512 * 1024;
const ROWS: usize = 4096;
/// A range of a key has about so many rows.
const RANGE: u64 = 50_000;
const ATTEMPTS: u32 = 100;

/// A table or a part of it.
struct Part {
    table: usize,
    condition: String,
}

/// The number of rows.
pub fn copy(options: &Options, source: Source, tables: &[Table]) -> Result<u64, String> {
    let mut connections = source.connections;
    let first = connections.first_mut().expect("there is at least one");
    let mut parts = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        parts.extend(parts_of(first, at, table)?);
    }
    // Large tables first would be better spread; in order they are better followed.
    parts.reverse();
    let estimated: u64 = tables.iter().map(|table| table.rows).sum();
    let report = Report::new("rows", estimated.max(1), 0, 0);
    let (parts, copied) = (Mutex::new(parts), AtomicU64::new(0));
    let (stop, failure) = (AtomicBool::new(false), Mutex::new(None));
    std::thread::scope(|scope| {
        for mut from in connections {
            let (parts, copied, stop, failure, report) = (&parts, &copied, &stop, &failure, &report);
            scope.spawn(move || {
                let work = || -> Result<(), String> {
                    let mut to = options.place.session(&super::session())?;
                    loop {
                        let part = parts.lock().expect("nobody panics with it").pop();
                        let Some(part) = part else { return Ok(()) };
                        if stop.load(Relaxed) {
                            return Ok(());
                        }
                        let table = &tables[part.table];
                        let told = |rows| {
                            copied.fetch_add(rows, Relaxed);
                            report.committed(rows, rows);
                        };
                        copy_part(&mut from, &mut to, table, &part.condition, &told)
                            .map_err(|e| format!("table {}.{}: {e}", table.database, table.item.name))?;
                    }
                };
                let mut work = work;
                if let Err(error) = work() {
                    stop.store(true, Relaxed);
                    failure.lock().expect("nobody panics with it").get_or_insert(error);
                }
            });
        }
    });
    report.end();
    match failure.into_inner().expect("nobody panics with it") {
        Some(error) => Err(error),
        None => Ok(copied.into_inner()),
    }
}

fn parts_of(source: &mut Conn, at: usize, table: &Table) -> Result<Vec<Part>, String> {
    let whole = || vec![Part { table: at, condition: String::new() }];
    let Some(key) = table.range_key.as_ref().filter(|_| table.rows > 2 * RANGE) else { return Ok(whole()) };
    let key = quoted(key);
    let ends: Option<(Option<i128>, Option<i128>)> = source
        .query_first::<(Option<String>, Option<String>), _>(format!(
            "SELECT CAST(MIN({key}) AS CHAR), CAST(MAX({key}) AS CHAR) FROM {}",
            name(table)
        ))
        .map_err(|e| server::told(&e))?
        .map(|(least, most)| (least.and_then(|n| n.parse().ok()), most.and_then(|n| n.parse().ok())));
    let Some((Some(least), Some(most))) = ends else { return Ok(whole()) };
    let count = i128::from((table.rows / RANGE).clamp(2, 10_000));
    let step = (most - least) / count + 1;
    let mut parts = Vec::new();
    // The ends are open: whatever the snapshot has is in one range.
    for number in 0..count {
        let (from, to) = (least + number * step, least + (number + 1) * step);
        let condition = match number {
            0 => format!(" WHERE {key} < {to}"),
            n if n == count - 1 => format!(" WHERE {key} >= {from}"),
            _ => format!(" WHERE {key} >= {from} AND {key} < {to}"),
        };
        parts.push(Part { table: at, condition });
    }
    Ok(parts)
}

fn name(table: &Table) -> String {
    format!("{}.{}", quoted(&table.database), quoted(&table.item.name))
}

fn copy_part(from: &mut Conn, to: &mut Conn, table: &Table, condition: &str, told: &dyn Fn(u64)) -> Result<(), String> {
    if table.columns.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = table.columns.iter().map(|c| quoted(&c.name)).collect();
    // The text of a FLOAT has six digits, that of a DOUBLE all of them.
    let selected = table.columns.iter().map(|c| match table.floats.contains(&c.name) {
        true => format!("{} * 1e0", quoted(&c.name)),
        false => quoted(&c.name),
    });
    let selected: Vec<String> = selected.collect();
    let beginning = format!("INSERT INTO {} ({}) VALUES ", name(table), names.join(", "));
    let mut statement = beginning.clone();
    let mut count = 0;
    let rows = from.query_iter(format!("SELECT {} FROM {}{condition}", selected.join(", "), name(table)));
    for row in rows.map_err(|e| server::told(&e))? {
        let row = row.map_err(|e| server::told(&e))?;
        statement.push_str(if count > 0 { ",(" } else { "(" });
        for (at, value) in row.unwrap_raw().into_iter().enumerate() {
            if at > 0 {
                statement.push(',');
            }
            push(&mut statement, value.unwrap_or(Value::NULL), table.columns[at].kind);
        }
        statement.push(')');
        count += 1;
        if count == ROWS || statement.len() >= STATEMENT {
            insert(to, &statement)?;
            told(count as u64);
            statement.truncate(beginning.len());
            count = 0;
        }
    }
    if count > 0 {
        insert(to, &statement)?;
        told(count as u64);
    }
    Ok(())
}

fn push(statement: &mut String, value: Value, kind: Kind) {
    match (value, kind) {
        (Value::NULL, _) => statement.push_str("NULL"),
        (Value::Bytes(bytes), Kind::Bit | Kind::Bytes) => literal::push_bytes(statement, &bytes),
        (Value::Bytes(bytes), Kind::Text | Kind::Json) => match std::str::from_utf8(&bytes) {
            Ok(text) => literal::push_text(statement, text),
            Err(_) => literal::push_bytes(statement, &bytes),
        },
        // The text protocol has no others.
        (other, _) => statement.push_str(&other.as_sql(false)),
    }
}

fn insert(to: &mut Conn, statement: &str) -> Result<(), String> {
    for attempt in 1.. {
        match to.query_drop(statement) {
            Err(error) if server::kind(&error) == server::Kind::Conflict && attempt < ATTEMPTS => {
                std::thread::sleep(Duration::from_millis(u64::from(attempt.min(20))));
            }
            other => return other.map_err(|e| server::told(&e)),
        }
    }
    unreachable!("the last attempt returns")
}
