//! Fills a table of the scratch server with sample rows, and reads how its memory grows.
//!
//! Memory is what the server reports: `information_schema.TABLES` for rows and indexes, `rauk.nodes.memory_used` for
//! everything, which also counts the tables of unique indexes. Tables are measured one after the other, and each is
//! dropped before the next, so that a schema of any number of tables needs the memory of one sample.

use super::growth::Point;
use super::schema::{self, Table};
use super::values;
use crate::import::server::{code, told};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::time::{Duration, Instant};

/// Bytes of values of a sample, at most, and the rows that are measured even so.
const SAMPLE_BYTES: u64 = 64 << 20;
const LEAST_SAMPLE: u64 = 32;
/// Of an INSERT statement.
const STATEMENT_BYTES: usize = 256 * 1024;
const STATEMENT_ROWS: u64 = 1000;
/// How long old versions and locks may take to be released.
const PATIENCE: Duration = Duration::from_secs(5);
const DUPLICATE: u16 = 1062;

/// So many rows of a table are measured.
pub fn sample(table: &Table, rows: u64, most: u64) -> u64 {
    let row: u64 = table.columns.iter().map(|c| 8 + c.kind.lengths().map_or(0, values::Lengths::mean)).sum();
    rows.min(most).min((SAMPLE_BYTES / row.max(1)).max(LEAST_SAMPLE))
}

/// What the server reports at these numbers of rows; the table is gone afterwards.
pub fn measure(target: &mut Conn, table: &Table, steps: &[u64]) -> Result<Vec<Point>, String> {
    schema::drop_checks(target, table)?;
    let before = settled(target, table, 0)?;
    let mut points = Vec::new();
    let mut rows = 0;
    for &step in steps {
        fill(target, table, rows, step)?;
        rows = step;
        let now = settled(target, table, rows)?;
        points.push(Point {
            rows,
            row_bytes: now.row_bytes as f64,
            index_bytes: now.index_bytes as f64,
            other_bytes: now.used as f64 - before.used as f64 - (now.row_bytes + now.index_bytes) as f64,
        });
    }
    target.query_drop(format!("DROP TABLE {}", table.quoted())).map_err(|e| told(&e))?;
    Ok(points)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    rows: u64,
    row_bytes: u64,
    index_bytes: u64,
    used: u64,
}

fn read(target: &mut Conn, table: &Table) -> Result<Reading, mysql::Error> {
    let of = (&table.database, &table.name);
    let sizes: Option<(u64, u64, u64)> = target.exec_first(
        "SELECT TABLE_ROWS, DATA_LENGTH, INDEX_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND \
         TABLE_NAME = ?",
        of,
    )?;
    let used: Option<u64> = target.query_first("SELECT memory_used FROM rauk.nodes")?;
    let (rows, row_bytes, index_bytes) = sizes.unwrap_or_default();
    Ok(Reading { rows, row_bytes, index_bytes, used: used.unwrap_or_default() })
}

/// The server releases old versions and locks a little later: two equal readings with all rows in them.
fn settled(target: &mut Conn, table: &Table, rows: u64) -> Result<Reading, String> {
    let begun = Instant::now();
    let mut last = None;
    loop {
        let now = read(target, table).map_err(|e| told(&e))?;
        if last == Some(now) && now.rows == rows || begun.elapsed() > PATIENCE {
            return Ok(now);
        }
        last = Some(now);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Rows from a number to another.
fn fill(target: &mut Conn, table: &Table, mut row: u64, to: u64) -> Result<(), String> {
    let names: Vec<String> = table.columns.iter().map(|c| crate::import::literal::quoted(&c.name)).collect();
    let head = format!("INSERT INTO {} ({}) VALUES ", table.quoted(), names.join(", "));
    while row < to {
        let mut sql = head.clone();
        let begun = row;
        while row < to && row - begun < STATEMENT_ROWS && sql.len() < STATEMENT_BYTES {
            sql.push_str(if row == begun { "(" } else { ", (" });
            for (at, column) in table.columns.iter().enumerate() {
                if at > 0 {
                    sql.push_str(", ");
                }
                values::push(&mut sql, column, at, row);
            }
            sql.push(')');
            row += 1;
        }
        target.query_drop(&sql).map_err(|error| refused(table, &error))?;
    }
    Ok(())
}

fn refused(table: &Table, error: &mysql::Error) -> String {
    let way_out = match code(error) {
        Some(DUPLICATE) => "drop the unique key from the file, or make it a plain one",
        Some(1526) => "leave PARTITION BY out of the file: it costs little memory",
        _ => "leave out of the file what refuses them",
    };
    format!("{} takes no sample rows: {}; {way_out}", table.shown(), told(error))
}
