//! Runs statements on the servers in turn, and compares their answers and what they cost.
//!
//! The first run of a statement gives its answer, which must be the same on all servers: row by row, in order, exact but for
//! numbers with a fraction, which may differ in the last digit that both have (divisions are rounded in several ways).
//! After it a statement is repeated on each server for some time a round, since CPU time is counted in hundredths of a second. What counts is the median of all its
//! times, and the median over the rounds of the server's CPU time a run.

use super::super::process::cpu_time;
use super::super::servers::{Kind, Server};
use mysql::prelude::Queryable;
use std::time::{Duration, Instant};

/// Most runs of a statement in a round.
const MOST_RUNS: u32 = 2_000;

/// A statement under measurement.
pub struct Statement {
    pub name: String,
    /// `{at+n}` stands for `n` more than a number that changes from run to run.
    pub text: String,
    /// That number is below this.
    pub range: u64,
}

impl Statement {
    fn text(&self, run: u64) -> String {
        // A step that shares no divisor with most ranges, so that runs are spread.
        let at = run * 7919 % self.range.max(1);
        let mut parts = self.text.split("{at+");
        let mut text = parts.next().unwrap_or_default().to_string();
        for part in parts {
            let (more, rest) = part.split_once('}').expect("the brace is closed");
            text.push_str(&(at + more.parse::<u64>().expect("a number")).to_string());
            text.push_str(rest);
        }
        text
    }
}

/// What a statement costs on one server.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub runs: usize,
}

/// A statement on all servers.
pub struct Line {
    pub name: String,
    /// One a server; the error of a server that did not answer.
    pub servers: Vec<Result<Figures, String>>,
    /// Rows of the answer.
    pub rows: usize,
    /// What differs between the answers.
    pub difference: Option<String>,
}

impl Line {
    pub fn failed(&self) -> Option<String> {
        let errors = self.servers.iter().filter_map(|s| s.as_ref().err());
        errors.chain(&self.difference).next().map(|e| format!("{}: {e}", self.name))
    }

    /// The first server against the second: time and CPU time.
    pub fn ratios(&self) -> Option<(f64, f64)> {
        match self.servers.as_slice() {
            [Ok(a), Ok(b)] => Some((a.seconds / b.seconds, a.cpu_seconds / b.cpu_seconds)),
            _ => None,
        }
    }
}

/// A server with the connection that measures it.
pub struct Subject<'s> {
    server: &'s Server,
    connection: mysql::Conn,
    database: &'static str,
    /// Seconds that a statement may take.
    patience: u64,
}

impl<'s> Subject<'s> {
    pub fn new(server: &'s Server, database: &'static str, patience: u64) -> Result<Self, String> {
        let connection = server.connect()?;
        let mut subject = Subject { server, connection, database, patience };
        subject.prepare()?;
        Ok(subject)
    }

    fn prepare(&mut self) -> Result<(), String> {
        let patience = self.patience;
        let mut settings = vec![format!("USE {}", self.database)];
        match self.server.kind {
            Kind::Rauk => settings.extend([
                format!("SET SESSION max_execution_time = {}", patience * 1000),
                "SET SESSION cte_max_recursion_depth = 1000000".into(),
            ]),
            // Room for groups; else they go to disk.
            Kind::MariaDb => settings.extend([
                format!("SET SESSION max_statement_time = {patience}"),
                "SET SESSION max_recursive_iterations = 1000000".into(),
                "SET SESSION tmp_table_size = 268435456, max_heap_table_size = 268435456".into(),
            ]),
        }
        for setting in settings {
            self.connection.query_drop(&setting).map_err(|e| format!("{setting}: {e}"))?;
        }
        Ok(())
    }

    /// MariaDB joins by hash only where it is told to; with room for its buffer, else the join is made in pieces.
    fn join_by_hash(&mut self, wanted: bool) -> Result<(), String> {
        if self.server.kind != Kind::MariaDb {
            return Ok(());
        }
        let (level, total, size) =
            if wanted { ("4", "536870912", "268435456") } else { ("DEFAULT", "DEFAULT", "DEFAULT") };
        let setting = format!(
            "SET SESSION join_cache_level = {level}, join_buffer_space_limit = {total}, join_buffer_size = {size}"
        );
        self.connection.query_drop(&setting).map_err(|e| format!("{setting}: {e}"))
    }

    fn ask(&mut self, text: &str) -> Result<Vec<mysql::Row>, String> {
        self.connection.query(text).map_err(|error| {
            // What an error leaves of the connection is not known.
            if let Ok(connection) = self.server.connect() {
                self.connection = connection;
                let _ = self.prepare();
            }
            error.to_string()
        })
    }

    fn answer(&mut self, text: &str) -> Result<(Vec<AnswerRow>, Duration), String> {
        let started = Instant::now();
        let rows = self.ask(text)?;
        Ok((rows.into_iter().map(texts).collect(), started.elapsed()))
    }

    /// The times of so many runs, and the CPU time of the server for each.
    fn round(&mut self, statement: &Statement, first: u64, runs: u32) -> Result<(Vec<f64>, f64), String> {
        let before = cpu_time(self.server.pid())?.own;
        let mut times = Vec::with_capacity(runs as usize);
        for run in 0..u64::from(runs) {
            let text = statement.text(first + run);
            let started = Instant::now();
            self.ask(&text)?;
            times.push(started.elapsed().as_secs_f64());
        }
        Ok((times, (cpu_time(self.server.pid())?.own - before) / f64::from(runs)))
    }
}

fn texts(row: mysql::Row) -> AnswerRow {
    let text = |value| match value {
        mysql::Value::NULL => None,
        mysql::Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        other => Some(other.as_sql(true)),
    };
    row.unwrap().into_iter().map(text).collect()
}

pub fn measure(subjects: &mut [Subject<'_>], statement: &Statement, rounds: usize, round: Duration) -> Line {
    let mut answers = Vec::new();
    let mut servers: Vec<Result<Figures, String>> = Vec::new();
    for subject in subjects.iter_mut() {
        eprint!("\r{}: {}          ", statement.name, subject.server.kind.name());
        let by_hash = statement.name.starts_with("hash");
        match subject.join_by_hash(by_hash).and_then(|()| subject.answer(&statement.text(0))) {
            Ok((rows, time)) => {
                answers.push((subject.server.kind.name(), rows));
                servers.push(Ok(Figures { seconds: time.as_secs_f64(), ..Figures::default() }));
            }
            Err(error) => servers.push(Err(format!("{}: {error}", subject.server.kind.name()))),
        }
    }
    let difference = match answers.as_slice() {
        [(a, left), (b, right)] => difference(a, left, b, right),
        _ => None,
    };
    let mut times = vec![Vec::new(); subjects.len()];
    let mut cpu = vec![Vec::new(); subjects.len()];
    let mut first = 1;
    for _ in 0..rounds {
        let mut most = 1;
        for (at, subject) in subjects.iter_mut().enumerate() {
            let Ok(figures) = &servers[at] else { continue };
            let runs = ((round.as_secs_f64() / figures.seconds.max(1e-6)).ceil() as u32).clamp(1, MOST_RUNS);
            most = most.max(runs);
            match subject.round(statement, first, runs) {
                Ok((some, each)) => {
                    times[at].extend(some);
                    cpu[at].push(each);
                }
                Err(error) => servers[at] = Err(format!("{}: {error}", subject.server.kind.name())),
            }
        }
        first += u64::from(most);
    }
    for (at, server) in servers.iter_mut().enumerate() {
        if let Ok(figures) = server {
            *figures =
                Figures { runs: times[at].len(), seconds: median(&mut times[at]), cpu_seconds: median(&mut cpu[at]) };
        }
    }
    eprintln!("\r{}: done                    ", statement.name);
    let rows = answers.first().map_or(0, |(_, rows)| rows.len());
    Line { name: statement.name.clone(), servers, rows, difference }
}

/// Zero of none.
fn median(list: &mut [f64]) -> f64 {
    list.sort_by(f64::total_cmp);
    match list.len() {
        0 => 0.0,
        length if length % 2 == 1 => list[length / 2],
        length => (list[length / 2 - 1] + list[length / 2]) / 2.0,
    }
}

/// The values of a row as texts.
type AnswerRow = Vec<Option<String>>;
type Answer = [AnswerRow];

fn difference(a: &str, left: &Answer, b: &str, right: &Answer) -> Option<String> {
    if left.len() != right.len() {
        return Some(format!("{a} has {} rows, {b} {}", left.len(), right.len()));
    }
    for (number, (left, right)) in left.iter().zip(right).enumerate() {
        let same = left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l.as_deref(), r.as_deref()));
        if !same {
            return Some(format!("row {}: {a} has {left:?}, {b} {right:?}", number + 1));
        }
    }
    None
}

fn same(left: Option<&str>, right: Option<&str>) -> bool {
    if left == right {
        return true;
    }
    let (Some(left), Some(right)) = (left, right) else { return false };
    let fraction = |text: &str| text.split_once('.').map(|(_, fraction)| fraction.len() as i32);
    let (Some(l), Some(r)) = (fraction(left), fraction(right)) else { return false };
    match (left.parse::<f64>(), right.parse::<f64>()) {
        (Ok(left), Ok(right)) => (left - right).abs() <= 1.5 * 0.1f64.powi(l.min(r)) + left.abs() * 1e-12,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_may_differ_in_the_last_digit_of_a_fraction() {
        let rows = |text: &str| vec![vec![Some(text.to_string()), None]];
        let differs = |a: &str, b: &str| difference("A", &rows(a), "B", &rows(b)).is_some();
        assert!(!differs("0.3333", "0.3334") && !differs("0.33333333", "0.3333") && !differs("x", "x"));
        assert!(differs("0.3333", "0.3336") && differs("3", "4") && differs("x", "y") && differs("1.5x", "1.5y"));
        assert!(difference("A", &[vec![None]], "B", &[vec![Some("0.1".into())]]).is_some());
        assert!(difference("A", &[], "B", &rows("x")).unwrap().contains("0 rows"));
    }

    #[test]
    fn runs_have_numbers_of_their_own() {
        let statement = Statement { name: "x".into(), text: "{at+1} to {at+10}: {}".into(), range: 1000 };
        assert_eq!([statement.text(0), statement.text(1)], ["1 to 10: {}", "920 to 929: {}"]);
        assert_eq!(Statement { text: "plain".into(), ..statement }.text(5), "plain");
    }

    #[test]
    fn medians() {
        assert_eq!((median(&mut [3.0, 1.0, 2.0]), median(&mut [4.0, 1.0]), median(&mut [])), (2.0, 2.5, 0.0));
    }
}
