//! A file into its table: one thread reads, several send batches, each over its own connection.
//!
//! A batch is one transaction: its range of the file ([`super::progress`]) and its rows, as INSERT statements of several
//! rows. When the server refuses a statement because of a row, the statement is split until the row is alone; the
//! others are stored. With `--rejects` the bad rows are written aside, else the transaction is rolled back and the
//! import ends. Batches are taken in the order of the file, and those that were taken go on to their end, so the bad line
//! that is told is the first one.
//!
//! LOAD DATA LOCAL is not used: the server takes its errors for warnings, and does not allow it unless told so.
//!
//! In memory are the batches of the threads, as many again that wait, and one record while it is read.

use super::encode::{Bad, Encoder};
use super::parquet;
use super::progress::{Counts, NotBegun, Progress};
use super::records::{Batch, Records, Span};
use super::rejects::{Rejected, Rejects};
use super::report::Report;
use super::server::{self, Kind, Place, Session};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How often a batch is sent again that conflicts with others.
const ATTEMPTS: u32 = 100;
/// How long a lost connection is tried again: a cluster has other nodes, and a server may be back at once.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);
/// Most bytes of a statement, but for one row that is longer. Larger ones cost a server no less a row.
const STATEMENT: usize = 128 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    Error,
    Ignore,
    Replace,
}

pub struct Load<'a> {
    pub place: &'a Place,
    pub session: &'a Session,
    pub threads: usize,
    pub encoder: Encoder,
    pub duplicates: Duplicates,
    /// The server's max_allowed_packet.
    pub packet: usize,
    pub progress: Progress,
    /// As it is shown, and as it stands in the file of rejected lines.
    pub path: String,
    pub rejects: Option<&'a Mutex<Rejects>>,
    pub most_rejects: Option<u64>,
    pub report: Report,
    pub counts: Mutex<Counts>,
}

/// Where batches come from.
pub enum Source {
    Text(Box<Records<File>>),
    Parquet(Box<parquet::Rows>),
}

impl Source {
    fn next_batch(&mut self) -> Result<Option<Batch>, String> {
        match self {
            Source::Text(records) => records.next_batch().map_err(|e| e.to_string()),
            Source::Parquet(rows) => rows.next_batch(),
        }
    }
}

/// Why an import ends early.
#[derive(Clone, Debug)]
struct Failure {
    /// The line that it is about; failures of no line are told only if there is no other.
    line: Option<u64>,
    message: String,
}

/// What becomes of a batch that could not be stored.
enum Trouble {
    Conflict(String),
    /// There is no connection any more.
    Lost(String),
    End(Failure),
}

/// A row of a batch: its record and its text.
struct Row {
    record: usize,
    text: Range<usize>,
}

struct Rows {
    text: String,
    rows: Vec<Row>,
    bad: Vec<(usize, Bad)>,
    /// Its bad lines are written aside: an attempt that is repeated does not write them again.
    put_aside: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics with it")
}

impl Load<'_> {
    /// Reads the file to its end.
    pub fn run(&self, mut source: Source) -> Result<(), String> {
        let stop = AtomicBool::new(false);
        let failures: Mutex<Vec<Failure>> = Mutex::new(Vec::new());
        let fail = |failure: Failure| {
            stop.store(true, Relaxed);
            locked(&failures).push(failure);
        };
        let mut connections = Vec::with_capacity(self.threads);
        for _ in 0..self.threads {
            connections.push(self.place.session(self.session)?);
        }
        let (sender, receiver) = sync_channel::<Batch>(self.threads);
        let receiver = Mutex::new(receiver);
        std::thread::scope(|scope| {
            for mut connection in connections {
                let (fail, receiver, stop) = (&fail, &receiver, &stop);
                scope.spawn(move || {
                    while let Some(batch) = next(receiver) {
                        // What is left is taken without being stored, so that the reader does not wait for ever.
                        if !stop.load(Relaxed)
                            && let Err(failure) = self.store(&mut connection, &batch)
                        {
                            fail(failure);
                        }
                    }
                });
            }
            while !stop.load(Relaxed) {
                match source.next_batch() {
                    Ok(Some(batch)) => {
                        if sender.send(batch).is_err() {
                            break;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        fail(Failure { line: None, message: format!("{}: cannot read: {error}", self.path) });
                        break;
                    }
                }
            }
            drop(sender);
        });
        self.report.end();
        let failures = failures.into_inner().expect("nobody panics with it");
        let first = failures.into_iter().min_by_key(|f| f.line.map_or((1, 0), |line| (0, line)));
        first.map_or(Ok(()), |failure| Err(failure.message))
    }

    fn store(&self, connection: &mut Conn, batch: &Batch) -> Result<(), Failure> {
        let mut rows = self.rows(batch);
        for attempt in 1..=ATTEMPTS {
            let written = self.attempt(connection, batch, &mut rows);
            if written.is_err() {
                // Where the connection is lost the server rolls back by itself.
                let _ = connection.query_drop("ROLLBACK");
            }
            match written {
                Ok(counts) => {
                    locked(&self.counts).add(counts);
                    self.report.committed(batch.span.end - batch.span.begin, counts.rows);
                    return Ok(());
                }
                Err(Trouble::End(failure)) => return Err(failure),
                Err(Trouble::Lost(message)) => {
                    let lost = |message| Failure { line: None, message };
                    *connection = self.connect_again().ok_or_else(|| lost(message))?;
                }
                Err(Trouble::Conflict(message)) if attempt == ATTEMPTS => {
                    let message =
                        format!("{}: conflicts again and again: {message}; start again, it goes on", self.path);
                    return Err(Failure { line: None, message });
                }
                Err(Trouble::Conflict(_)) => std::thread::sleep(Duration::from_millis(u64::from(attempt.min(20)))),
            }
        }
        let message = format!("{}: connections are lost again and again; start again, it goes on", self.path);
        Err(Failure { line: None, message })
    }

    fn connect_again(&self) -> Option<Conn> {
        let begun = Instant::now();
        loop {
            match self.place.session(self.session) {
                Ok(connection) => return Some(connection),
                Err(_) if begun.elapsed() > PATIENCE => return None,
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    fn rows(&self, batch: &Batch) -> Rows {
        let mut rows = Rows {
            text: String::with_capacity(batch.bytes.len() * 3 / 2),
            rows: Vec::new(),
            bad: Vec::new(),
            put_aside: false,
        };
        for (number, record) in batch.records.iter().enumerate() {
            let begin = rows.text.len();
            match self.encoder.push_row(record, batch.text(record), &mut rows.text) {
                Ok(true) => rows.rows.push(Row { record: number, text: begin..rows.text.len() }),
                Ok(false) => {}
                Err(bad) => {
                    rows.bad.push((number, bad));
                    // The import ends there: of the rows, those before it are tried, since one of them may be bad too.
                    if self.rejects.is_none() {
                        break;
                    }
                }
            }
        }
        rows
    }

    fn attempt(&self, connection: &mut Conn, batch: &Batch, rows: &mut Rows) -> Result<Counts, Trouble> {
        let span = batch.span;
        let mut counts = Counts { rows: rows.rows.len() as u64, rejected: rows.bad.len() as u64, skipped: 0 };
        let assumed = counts;
        match self.progress.open(connection, span, counts) {
            Ok(()) => {}
            Err(NotBegun::Committed) => {
                connection.query_drop("ROLLBACK").map_err(|e| self.trouble(&e))?;
                return self.progress.committed(connection, span).map_err(|e| self.trouble(&e));
            }
            Err(NotBegun::Taken) => {
                return Err(Trouble::End(Failure {
                    line: None,
                    message: format!("{}: another rauk import of this file has begun and goes on with it", self.path),
                }));
            }
            Err(NotBegun::Error(error)) => return Err(self.trouble(&error)),
        }
        let (stored, refused) = self.insert(connection, rows)?;
        if self.rejects.is_none() {
            let first = refused.iter().chain(&rows.bad).min_by_key(|(record, _)| *record);
            if let Some((record, bad)) = first {
                return Err(Trouble::End(self.bad_line(batch, *record, bad)));
            }
        }
        counts.rows -= refused.len() as u64;
        counts.rejected += refused.len() as u64;
        if self.duplicates == Duplicates::Ignore {
            counts.skipped = counts.rows.saturating_sub(stored);
            counts.rows -= counts.skipped;
        }
        if counts != assumed {
            self.progress.correct(connection, span, counts).map_err(|e| self.trouble(&e))?;
        }
        if counts.rejected > 0 && !rows.put_aside {
            self.put_aside(batch, rows, refused)?;
        }
        connection.query_drop("COMMIT").map_err(|e| self.trouble(&e))?;
        Ok(counts)
    }

    /// How many rows the server says it has stored, and those that it refused.
    #[allow(clippy::type_complexity)]
    fn insert(&self, connection: &mut Conn, rows: &Rows) -> Result<(u64, Vec<(usize, Bad)>), Trouble> {
        let verb = if self.duplicates == Duplicates::Replace { "REPLACE" } else { "INSERT" };
        let beginning = self.encoder.beginning(verb);
        let ending = match self.duplicates {
            Duplicates::Error | Duplicates::Replace => String::new(),
            // A row that is there stays as it is; other errors of the row are errors, which INSERT IGNORE makes warnings.
            Duplicates::Ignore => {
                let column = self.encoder.columns.iter().find(|c| !c.generated).expect("a column takes values");
                let column = super::literal::quoted(&column.name);
                format!(" ON DUPLICATE KEY UPDATE {column} = {}.{column}", self.encoder.table.sql())
            }
        };
        let (mut stored, mut refused) = (0, Vec::new());
        // The next part to try is the last one.
        let mut parts: Vec<Range<usize>> = statements(rows);
        parts.reverse();
        let mut statement = String::new();
        while let Some(part) = parts.pop() {
            statement.clear();
            statement.push_str(&beginning);
            for (at, row) in rows.rows[part.clone()].iter().enumerate() {
                if at > 0 {
                    statement.push(',');
                }
                statement.push_str(&rows.text[row.text.clone()]);
            }
            statement.push_str(&ending);
            // Both ends take a packet of this size, and a byte is the command's.
            if part.len() == 1 && statement.len() + 1 >= self.packet {
                let reason = format!("the row is longer than the server's max_allowed_packet ({} bytes)", self.packet);
                refused.push((rows.rows[part.start].record, Bad::whole(reason)));
                continue;
            }
            match connection.query_drop(&statement) {
                Ok(()) => stored += connection.affected_rows(),
                Err(error) if server::kind(&error) != Kind::Row => return Err(self.trouble(&error)),
                Err(error) if part.len() == 1 => {
                    let record = rows.rows[part.start].record;
                    refused.push((record, Bad::whole(without_row(&error))));
                    // Whoever writes no bad lines aside needs the first one alone.
                    if self.rejects.is_none() {
                        break;
                    }
                }
                Err(error) => {
                    let middle = match row_of(&error).filter(|row| (1..=part.len()).contains(row)) {
                        // The server has said which: it goes alone, and the rows before it are tried first.
                        Some(1) => part.start + 1,
                        Some(row) if row == part.len() => part.end - 1,
                        Some(row) => {
                            parts.push(part.start + row..part.end);
                            parts.push(part.start + row - 1..part.start + row);
                            parts.push(part.start..part.start + row - 1);
                            continue;
                        }
                        None => part.start + part.len() / 2,
                    };
                    parts.push(middle..part.end);
                    parts.push(part.start..middle);
                }
            }
        }
        Ok((stored, refused))
    }

    fn put_aside(&self, batch: &Batch, rows: &mut Rows, refused: Vec<(usize, Bad)>) -> Result<(), Trouble> {
        let Some(rejects) = self.rejects else { return Ok(()) };
        let mut bad: Vec<(usize, Bad)> = rows.bad.iter().cloned().chain(refused).collect();
        bad.sort_by_key(|(record, _)| *record);
        if let Some(most) = self.most_rejects {
            let before = locked(&self.counts).rejected;
            if before + bad.len() as u64 > most {
                let (record, reason) =
                    &bad[usize::try_from(most.saturating_sub(before)).unwrap_or(0).min(bad.len() - 1)];
                let mut failure = self.bad_line(batch, *record, reason);
                failure.message = format!("more than {most} bad lines (--max-rejects); {}", failure.message);
                return Err(Trouble::End(failure));
            }
        }
        let rejected: Vec<Rejected> = bad
            .into_iter()
            .map(|(record, bad)| {
                let record = &batch.records[record];
                Rejected { line: record.line, reason: bad.to_string(), text: batch.text(record).to_vec() }
            })
            .collect();
        let written = locked(rejects).write(&self.path, &rejected);
        rows.put_aside = true;
        written.map_err(|message| Trouble::End(Failure { line: None, message }))
    }

    fn bad_line(&self, batch: &Batch, record: usize, bad: &Bad) -> Failure {
        let line = batch.records[record].line;
        let empty = batch.text(&batch.records[record]).windows(2).any(|w| w == b",,");
        let hint = match bad.reason.contains("value: ''") && empty {
            true => " (an empty field is an empty text; --null '' makes it NULL)",
            false => "",
        };
        let message = format!(
            "{}:{line}: {bad}{hint}; correct the file and give --restart, or give --rejects FILE, which goes on and writes bad lines there",
            self.path
        );
        Failure { line: Some(line), message }
    }

    fn trouble(&self, error: &mysql::Error) -> Trouble {
        let told = server::told(error);
        let message = match server::kind(error) {
            Kind::Conflict => return Trouble::Conflict(told),
            Kind::Full => format!(
                "{}: the server's memory is full: {told}; raise the limit (SET GLOBAL rauk_memory_limit, --memory-limit) or remove \
                 rows, and give the same command again: it goes on where it was",
                self.path
            ),
            Kind::Lost => {
                return Trouble::Lost(format!(
                    "{}: {told}; when the server is there, give the same command again: it goes on where it was",
                    self.path
                ));
            }
            Kind::Row | Kind::Other => format!("{}: {told}", self.path),
        };
        Trouble::End(Failure { line: None, message })
    }
}

fn next(receiver: &Mutex<Receiver<Batch>>) -> Option<Batch> {
    locked(receiver).recv().ok()
}

/// Rows in parts that are not too long for a statement.
fn statements(rows: &Rows) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut begin, mut bytes) = (0, 0);
    for (at, row) in rows.rows.iter().enumerate() {
        if at > begin && bytes + row.text.len() > STATEMENT {
            parts.push(begin..at);
            (begin, bytes) = (at, 0);
        }
        bytes += row.text.len() + 1;
    }
    if begin < rows.rows.len() {
        parts.push(begin..rows.rows.len());
    }
    parts
}

/// The number that many messages end with: ` at row 3`.
fn row_of(error: &mysql::Error) -> Option<usize> {
    let mysql::Error::MySqlError(error) = error else { return None };
    error.message.rsplit_once(" at row ")?.1.trim().parse().ok()
}

/// The message without the number of the row in its statement, which means nothing to others.
fn without_row(error: &mysql::Error) -> String {
    let told = server::told(error);
    match told.rsplit_once(" at row ") {
        Some((text, number)) if number.trim().bytes().all(|b| b.is_ascii_digit()) => text.to_string(),
        _ => told,
    }
}

/// What of a file has been read before.
pub fn bytes_of(spans: &[Span]) -> u64 {
    spans.iter().map(|span| span.end - span.begin).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: u16, message: &str) -> mysql::Error {
        mysql::Error::MySqlError(mysql::error::MySqlError { state: "22001".into(), message: message.into(), code })
    }

    #[test]
    fn messages_name_no_row_of_a_statement() {
        let long = error(1406, "Data too long for column 'a' at row 12");
        assert_eq!(row_of(&long), Some(12));
        assert_eq!(without_row(&long), "ERROR 1406 (22001): Data too long for column 'a'");
        assert_eq!(row_of(&error(1062, "Duplicate entry 'x at row y' for key 'a'")), None);
    }

    #[test]
    fn statements_are_bounded() {
        let lengths = [10, STATEMENT + 5, 3, STATEMENT - 5, 8];
        let mut at = 0;
        let rows = lengths.iter().enumerate().map(|(record, length)| {
            at += length;
            Row { record, text: at - length..at }
        });
        let rows = Rows { text: String::new(), rows: rows.collect(), bad: Vec::new(), put_aside: false };
        assert_eq!(statements(&rows), [0..1, 1..2, 2..4, 4..5]);
    }
}
