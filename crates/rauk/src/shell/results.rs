//! One statement: sent, its results shown, its time taken.
//!
//! A statement may have several results (CALL). Rows are shown as they come; the time of a result is what the server and
//! the network took, without the time that showing took. Results with rows go to the pager if there is one; counts and
//! times go to standard output, in formats for programs only at the prompt.

use super::format::{self, Column, Format, Printer};
use super::output::{self, Output, Taken};
use super::watch::Watch;
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};
use std::io;
use std::time::{Duration, Instant};

#[derive(Clone, Copy)]
pub struct How {
    pub format: Format,
    /// Names of the columns in front of the rows.
    pub header: bool,
    /// Counts and times.
    pub counts: bool,
}

/// Why a statement has not been shown to its end.
pub enum Trouble {
    Server(mysql::Error),
    /// What could not be shown; the connection is in the middle of a result.
    Output(String),
}

/// A result whose line is still to be written: its warnings are known when the next one comes or there is none.
struct Ended {
    text: String,
    time: Duration,
    info: String,
}

/// Runs a statement and shows what it answers; its number of warnings.
pub fn show(
    conn: &mut Conn,
    statement: &str,
    how: How,
    output: &mut Output,
    watch: Option<&Watch>,
) -> Result<u16, Trouble> {
    let mut started = Instant::now();
    let mut results = conn.query_iter(statement).map_err(Trouble::Server)?;
    let mut ended: Option<Ended> = None;
    let mut unread = None;
    while let Some(mut set) = results.iter() {
        if let Some(before) = ended.take() {
            say(output, how, before, 0).map_err(Trouble::Output)?;
        }
        let columns: Vec<Column> = set.columns().as_ref().iter().map(Column::of).collect();
        if columns.is_empty() {
            let (affected, info) = (set.affected_rows(), set.info_str().into_owned());
            // An error takes the place of a result.
            if let Some(Err(error)) = set.next() {
                return Err(Trouble::Server(error));
            }
            let text = format!("OK, {} affected", plural(affected, "row"));
            ended = Some(Ended { text, time: started.elapsed(), info });
            started = Instant::now();
            continue;
        }
        // A pager has the terminal.
        if let Some(watch) = watch.filter(|_| output.pager.is_some()) {
            watch.quiet();
        }
        let mut sink = output.sink();
        let (count, writing, end) = rows(&mut set, how, columns, &mut sink, watch);
        let (failed, written) = match end {
            End::Whole => (None, Ok(())),
            End::Server(error) => (Some(error), Ok(())),
            End::Output(error) => (None, Err(error)),
        };
        match output::finish(sink, written) {
            Ok(Taken::Whole) => {}
            Ok(Taken::Enough) => {
                if let Some(watch) = watch {
                    watch.cancel();
                }
                // What is under way is read, and the error with which it ends.
                while set.next().is_some() {}
                return Ok(0);
            }
            Err(reason) => {
                // To drop it is to read the rest of the result, which could take for ever.
                std::mem::forget(set);
                unread = Some(reason);
                break;
            }
        }
        if let Some(error) = failed {
            return Err(Trouble::Server(error));
        }
        let time = started.elapsed().saturating_sub(writing);
        ended = Some(Ended { text: plural(count, "row"), time, info: String::new() });
        started = Instant::now();
    }
    if let Some(reason) = unread {
        // The connection is not used again.
        std::mem::forget(results);
        return Err(Trouble::Output(reason));
    }
    drop(results);
    let warnings = conn.warnings();
    if let Some(last) = ended {
        say(output, how, last, warnings).map_err(Trouble::Output)?;
    }
    Ok(warnings)
}

enum End {
    Whole,
    Server(mysql::Error),
    Output(io::Error),
}

/// Shows rows; how many, how long showing took, and why they have ended.
fn rows(
    set: &mut impl Iterator<Item = mysql::Result<Row>>,
    how: How,
    columns: Vec<Column>,
    sink: &mut dyn io::Write,
    watch: Option<&Watch>,
) -> (u64, Duration, End) {
    let kinds: Vec<_> = columns.iter().map(|c| c.kind).collect();
    let mut printer = Printer::new(sink, how.format, how.header, columns);
    let for_people = how.format.is_for_people();
    let mut writing = Duration::ZERO;
    let mut end = End::Whole;
    for row in set {
        let row = match row {
            Ok(row) => row.unwrap_raw(),
            Err(error) => {
                end = End::Server(error);
                break;
            }
        };
        let began = Instant::now();
        if let Some(watch) = watch.filter(|_| printer.rows() == 0) {
            watch.quiet();
        }
        let cells =
            row.into_iter().zip(&kinds).map(|(v, kind)| format::cell(v.unwrap_or(Value::NULL), *kind, for_people));
        let written = printer.row(cells.collect());
        writing += began.elapsed();
        if let Err(error) = written {
            return (printer.rows(), writing, End::Output(error));
        }
    }
    let began = Instant::now();
    match printer.end() {
        Ok(()) => (printer.rows(), writing + began.elapsed(), end),
        Err(error) => (printer.rows(), writing, End::Output(error)),
    }
}

fn say(output: &mut Output, how: How, ended: Ended, warnings: u16) -> Result<(), String> {
    if !how.counts {
        return Ok(());
    }
    let warned = if warnings == 0 { String::new() } else { format!(", {}", plural(warnings.into(), "warning")) };
    let info = if ended.info.is_empty() { String::new() } else { format!("  {}", ended.info) };
    output.line(&format!("{}{warned} ({}){info}", ended.text, pretty(ended.time)))
}

pub fn plural(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

pub fn pretty(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1000.0 {
        format!("{micros:.0} µs")
    } else if micros < 1e6 {
        format!("{:.1} ms", micros / 1e3)
    } else {
        format!("{:.2} s", micros / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_read_well() {
        assert_eq!(pretty(Duration::from_micros(85)), "85 µs");
        assert_eq!(pretty(Duration::from_millis(12)), "12.0 ms");
        assert_eq!(pretty(Duration::from_millis(2500)), "2.50 s");
        assert_eq!((plural(1, "row"), plural(0, "row")), ("1 row".into(), "0 rows".into()));
    }
}
