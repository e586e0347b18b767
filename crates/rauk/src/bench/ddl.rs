//! `rauk bench ddl`: what changes of definitions cost, on Rauk and on MariaDB in the same run.
//!
//! | workload | an operation |
//! |---|---|
//! | copying ALTER | a row of `ALTER TABLE … MODIFY` that changes a column's type |
//! | ADD INDEX | a row of `ALTER TABLE … ADD KEY` |
//! | …, one thread | the same with `innodb_ddl_threads = 1`; MariaDB never has more |
//! | REORGANIZE PARTITION | a row that goes from one partition to two, or back |
//! | DROP PARTITION, EXCHANGE PARTITION | a statement, over a partition with all rows; EXCHANGE without validation, which MariaDB has not |
//! | insert, one table; insert, partitions | a row of `INSERT … SELECT` |
//! | point select, one table; point select, partitions | a prepared SELECT by key |
//! | update alone; update beside ALTER | an UPDATE by key of one client, without and with copying ALTERs one behind the other |
//!
//! Both servers are started for the run and take turns. What a workload needs is made before each round and is not
//! measured. After the table come ratios of workloads that belong together, and the longest statement beside an ALTER.

use super::process::{self, temporary_directory};
use super::report::{self, Row};
use super::servers::{Kind, Server};
use super::{Sample, inserts};
use crate::out;
use clap::{Arg, ArgMatches, Command, value_parser};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const DATABASE: &str = "changed";

pub struct Options {
    against_mariadb: bool,
    rows: u64,
    partitions: u64,
    selects: u64,
    rounds: usize,
    /// Only workloads whose name contains this.
    only: Option<String>,
    json: Option<String>,
    durability: String,
}

pub fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let count = |name: &'static str, help: &'static str, most: u64, default: &'static str| {
        text(name, "N", help).value_parser(value_parser!(u64).range(1..=most)).default_value(default)
    };
    Command::new("ddl")
        .about("ALTER TABLE, indexes and partitions over many rows, on servers started for the run")
        .arg(text("against", "SERVER", "Peer of the same run").value_parser(["mariadb"]))
        .arg(count("rows", "Rows of a table", 100_000_000, "1000000"))
        .arg(count("partitions", "Partitions of the table that has many", 8_192, "1024"))
        .arg(count("selects", "Selects of a round", 100_000_000, "20000"))
        .arg(count("rounds", "Rounds on each server", 100, "3"))
        .arg(text("only", "TEXT", "Workloads whose name contains this"))
        .arg(text("durability", "WHICH", "fsync or relaxed").value_parser(["fsync", "relaxed"]).default_value("fsync"))
        .arg(text("json", "FILE", "Write the figures as JSON too"))
}

pub fn options(arguments: &ArgMatches) -> Options {
    let word = |name: &str| arguments.get_one::<String>(name).cloned();
    let number = |name: &str| *arguments.get_one::<u64>(name).expect("has a default");
    Options {
        against_mariadb: word("against").is_some(),
        rows: number("rows"),
        partitions: number("partitions"),
        selects: number("selects"),
        rounds: number("rounds") as usize,
        only: word("only"),
        json: word("json"),
        durability: word("durability").expect("has a default"),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Workload {
    Copy { threads: Threads },
    AddIndex { threads: Threads },
    Reorganize,
    Drop,
    Exchange,
    Insert { partitions: bool },
    Select { partitions: bool },
    Update { beside: bool },
}

/// Threads that work on one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    /// As many as there are cores.
    All,
    One,
}

const WORKLOADS: [Workload; 13] = [
    Workload::Copy { threads: Threads::All },
    Workload::Copy { threads: Threads::One },
    Workload::AddIndex { threads: Threads::All },
    Workload::AddIndex { threads: Threads::One },
    Workload::Reorganize,
    Workload::Drop,
    Workload::Exchange,
    Workload::Insert { partitions: false },
    Workload::Insert { partitions: true },
    Workload::Select { partitions: false },
    Workload::Select { partitions: true },
    Workload::Update { beside: false },
    Workload::Update { beside: true },
];

/// What was measured of one workload: a sample for each server, and the longest operations in milliseconds.
struct Measured {
    workload: Workload,
    row: Row,
    longest: Vec<f64>,
}

impl Workload {
    fn name(self) -> &'static str {
        match self {
            Workload::Copy { threads: Threads::All } => "copying ALTER",
            Workload::Copy { threads: Threads::One } => "copying ALTER, one thread",
            Workload::AddIndex { threads: Threads::All } => "ADD INDEX",
            Workload::AddIndex { threads: Threads::One } => "ADD INDEX, one thread",
            Workload::Reorganize => "REORGANIZE PARTITION",
            Workload::Drop => "DROP PARTITION",
            Workload::Exchange => "EXCHANGE PARTITION",
            Workload::Insert { partitions: false } => "insert, one table",
            Workload::Insert { partitions: true } => "insert, partitions",
            Workload::Select { partitions: false } => "point select, one table",
            Workload::Select { partitions: true } => "point select, partitions",
            Workload::Update { beside: false } => "update alone",
            Workload::Update { beside: true } => "update beside ALTER",
        }
    }

    fn has_one_thread(self) -> bool {
        matches!(self, Workload::Copy { threads: Threads::One } | Workload::AddIndex { threads: Threads::One })
    }

    /// The tables of a round: `t` has all rows.
    fn prepare(self, connection: &mut Conn, options: &Options) -> Result<(), String> {
        let rows = options.rows;
        let one = "PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (1000000000), PARTITION z VALUES LESS THAN MAXVALUE)";
        let many = format!("PARTITION BY HASH (id) PARTITIONS {}", options.partitions);
        let table = |name: &str, partitions: &str| {
            format!(
                "CREATE TABLE {DATABASE}.{name} (id BIGINT NOT NULL PRIMARY KEY, a INT NOT NULL, name VARCHAR(40) NOT NULL, total BIGINT NOT NULL) {partitions}"
            )
        };
        let partitions = match self {
            Workload::Reorganize | Workload::Drop | Workload::Exchange => one,
            Workload::Select { partitions: true } => &many,
            _ => "",
        };
        run(connection, &format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
        run(connection, &format!("CREATE DATABASE {DATABASE}"))?;
        run(connection, &table("t", partitions))?;
        run(connection, &format!("INSERT INTO {DATABASE}.t VALUES (0, 0, 'name 0', 0)"))?;
        let mut have = 1;
        while have < rows {
            let more = have.min(rows - have);
            run(
                connection,
                &format!(
                    "INSERT INTO {DATABASE}.t SELECT id + {have}, (id + {have}) * 7919 % 100003, CONCAT('name ', id + {have}), id * 3 FROM {DATABASE}.t WHERE id < {more}"
                ),
            )?;
            have += more;
        }
        match self {
            Workload::Exchange => run(connection, &table("u", "")),
            Workload::Insert { partitions } => run(connection, &table("u", if partitions { &many } else { "" })),
            _ => Ok(()),
        }
    }

    /// Gives what was done, and the longest operation in milliseconds.
    fn run(self, server: &Server, connection: &mut Conn, options: &Options) -> Result<(Sample, f64), String> {
        let table = format!("{DATABASE}.t");
        let rows = options.rows as f64;
        match self {
            Workload::Copy { .. } => {
                statements(connection, rows, &[format!("ALTER TABLE {table} MODIFY a BIGINT NOT NULL")])
            }
            Workload::AddIndex { .. } => {
                statements(connection, rows, &[format!("ALTER TABLE {table} ADD KEY by_a (a)")])
            }
            Workload::Reorganize => {
                let half = options.rows / 2;
                let split = format!(
                    "ALTER TABLE {table} REORGANIZE PARTITION a INTO (PARTITION b VALUES LESS THAN ({half}), PARTITION c VALUES LESS THAN (1000000000))"
                );
                let join = format!(
                    "ALTER TABLE {table} REORGANIZE PARTITION b, c INTO (PARTITION a VALUES LESS THAN (1000000000))"
                );
                statements(connection, 2.0 * rows, &[split, join])
            }
            Workload::Drop => statements(connection, 1.0, &[format!("ALTER TABLE {table} DROP PARTITION a")]),
            Workload::Exchange => {
                // MariaDB always looks at the rows.
                let validation = if server.kind == Kind::Rauk { "WITHOUT VALIDATION" } else { "" };
                let exchange = format!("ALTER TABLE {table} EXCHANGE PARTITION a WITH TABLE {DATABASE}.u {validation}");
                statements(connection, 2.0, &[exchange.clone(), exchange])
            }
            Workload::Insert { .. } => {
                statements(connection, rows, &[format!("INSERT INTO {DATABASE}.u SELECT * FROM {table}")])
            }
            Workload::Select { .. } => selects(connection, options),
            Workload::Update { beside: false } => updates(connection, options, |done| done < options.selects),
            Workload::Update { beside: true } => {
                let ended = AtomicBool::new(false);
                let mut other = server.connect()?;
                std::thread::scope(|scope| {
                    let altering = scope.spawn(|| {
                        let types = ["BIGINT", "INT", "BIGINT"];
                        let each = |ty: &&str| run(&mut other, &format!("ALTER TABLE {table} MODIFY a {ty} NOT NULL"));
                        let altered = types.iter().try_for_each(each);
                        ended.store(true, Ordering::Release);
                        altered
                    });
                    let updated = updates(connection, options, |_| !ended.load(Ordering::Acquire));
                    altering.join().expect("a thread that sends statements does not panic")?;
                    updated
                })
            }
        }
    }
}

fn run(connection: &mut Conn, statement: &str) -> Result<(), String> {
    connection.query_drop(statement).map_err(|e| format!("{e}: {}", statement.chars().take(80).collect::<String>()))
}

/// Statements that are so many operations together. The time of the longest one stands for the latency.
fn statements(connection: &mut Conn, operations: f64, statements: &[String]) -> Result<(Sample, f64), String> {
    let started = Instant::now();
    let mut longest: f64 = 0.0;
    for statement in statements {
        let began = Instant::now();
        run(connection, statement)?;
        longest = longest.max(began.elapsed().as_secs_f64() * 1e3);
    }
    let sample = Sample { operations, seconds: started.elapsed().as_secs_f64(), cpu_seconds: 0.0, p95_ms: longest };
    Ok((sample, longest))
}

/// Keys in an order that has nothing to do with theirs.
fn key(number: u64, rows: u64) -> u64 {
    number.wrapping_mul(2_654_435_761) % rows
}

fn selects(connection: &mut Conn, options: &Options) -> Result<(Sample, f64), String> {
    let shown = |e: mysql::Error| e.to_string();
    let statement = connection.prep(format!("SELECT a FROM {DATABASE}.t WHERE id = ?")).map_err(shown)?;
    timed(
        |done| done < options.selects,
        |number| {
            let found: Option<i64> = connection.exec_first(&statement, (key(number, options.rows),)).map_err(shown)?;
            found.map(drop).ok_or_else(|| "a row was not found".to_string())
        },
    )
}

fn updates(connection: &mut Conn, options: &Options, goes_on: impl Fn(u64) -> bool) -> Result<(Sample, f64), String> {
    timed(goes_on, |number| {
        let key = key(number, options.rows);
        run(connection, &format!("UPDATE {DATABASE}.t SET total = total + 1 WHERE id = {key}"))
    })
}

/// One client's operations, while `goes_on`, which sees how many are done.
fn timed(
    goes_on: impl Fn(u64) -> bool,
    mut operation: impl FnMut(u64) -> Result<(), String>,
) -> Result<(Sample, f64), String> {
    let mut histogram = inserts::latencies();
    let started = Instant::now();
    let mut done = 0;
    while goes_on(done) {
        let began = Instant::now();
        operation(done)?;
        histogram.saturating_record(began.elapsed().as_micros() as u64);
        done += 1;
    }
    let seconds = started.elapsed().as_secs_f64();
    let p95_ms = histogram.value_at_quantile(0.95) as f64 / 1e3;
    let sample = Sample { operations: done as f64, seconds, cpu_seconds: 0.0, p95_ms };
    Ok((sample, histogram.max() as f64 / 1e3))
}

pub fn run_all(options: &Options) -> Result<(), String> {
    process::end_with_this_process();
    let wanted = |workload: &&Workload| options.only.as_deref().is_none_or(|only| workload.name().contains(only));
    let workloads: Vec<Workload> = WORKLOADS.iter().filter(wanted).copied().collect();
    if workloads.is_empty() {
        let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name()).collect();
        return Err(format!("--only: no workload's name contains that; there are {}", names.join("; ")));
    }
    let root = temporary_directory()?;
    let mut servers = vec![Server::start(Kind::Rauk, root.path(), &options.durability)?];
    if options.against_mariadb {
        servers.push(Server::start(Kind::MariaDb, root.path(), &options.durability)?);
    }
    let empty = |workload: Workload| Measured {
        workload,
        row: Row { name: workload.name().into(), samples: vec![Sample::default(); servers.len()] },
        longest: vec![0.0; servers.len()],
    };
    let mut measured: Vec<Measured> = workloads.into_iter().map(empty).collect();
    // Workloads that are compared with each other take turns too: the machine is not always as fast.
    for round in 1..=options.rounds {
        measured.iter_mut().try_for_each(|measured| measured.round(round, &servers, options))?;
    }
    eprintln!();
    let names: Vec<&str> = servers.iter().map(|server| server.kind.name()).collect();
    let rows: Vec<Row> = measured.iter().map(|measured| measured.row.clone()).collect();
    out::line(format_args!("{}", report::table(&names, &rows)))?;
    for line in comparisons(&names, &measured) {
        out::line(format_args!("{line}"))?;
    }
    if let Some(file) = &options.json {
        std::fs::write(file, report::json(&names, &rows)).map_err(|e| format!("cannot write {file}: {e}"))?;
    }
    servers.into_iter().try_for_each(Server::stop)
}

impl Measured {
    fn round(&mut self, round: usize, servers: &[Server], options: &Options) -> Result<(), String> {
        let name = self.workload.name();
        for ((server, total), longest) in servers.iter().zip(&mut self.row.samples).zip(&mut self.longest) {
            eprint!("\r{name}: round {round} of {}, {}                    ", options.rounds, server.kind.name());
            let on = |error: String| format!("{name} on {}: {error}", server.kind.name());
            let mut connection = server.connect()?;
            self.workload.prepare(&mut connection, options).map_err(on)?;
            if server.kind == Kind::Rauk && self.workload.has_one_thread() {
                run(&mut connection, "SET SESSION innodb_ddl_threads = 1").map_err(on)?;
            }
            let before = server.cpu_seconds()?;
            let (sample, most) = self.workload.run(server, &mut connection, options).map_err(on)?;
            total.cpu_seconds += server.cpu_seconds()? - before;
            total.operations += sample.operations;
            total.seconds += sample.seconds;
            total.p95_ms += sample.p95_ms / options.rounds as f64;
            *longest = longest.max(most);
        }
        Ok(())
    }
}

/// Workloads that belong together, server by server.
fn comparisons(names: &[&str], measured: &[Measured]) -> Vec<String> {
    let of = |workload: Workload| measured.iter().find(|measured| measured.workload == workload);
    let each = |what: &str, value: &dyn Fn(usize) -> String| {
        let values: Vec<String> = (0..names.len()).map(|i| format!("{} {}", names[i], value(i))).collect();
        format!("{what}: {}", values.join(", "))
    };
    let mut lines = Vec::new();
    let pairs = [
        (
            "insert into partitions, CPU of one table",
            Workload::Insert { partitions: true },
            Workload::Insert { partitions: false },
        ),
        (
            "point select among partitions, CPU of one table",
            Workload::Select { partitions: true },
            Workload::Select { partitions: false },
        ),
    ];
    for (what, part, whole) in pairs {
        if let (Some(part), Some(whole)) = (of(part), of(whole)) {
            lines.push(each(what, &|i| format!("{:.2}×", part.row.cpu_micros(i) / whole.row.cpu_micros(i))));
        }
    }
    let speedups = [
        ("copying ALTER, speed of one thread", (|threads| Workload::Copy { threads }) as fn(Threads) -> Workload),
        ("ADD INDEX, speed of one thread", |threads| Workload::AddIndex { threads }),
    ];
    for (what, workload) in speedups {
        if let (Some(all), Some(one)) = (of(workload(Threads::All)), of(workload(Threads::One))) {
            lines.push(each(what, &|i| format!("{:.2}×", all.row.rate(i) / one.row.rate(i))));
        }
    }
    if let Some(beside) = of(Workload::Update { beside: true }) {
        if let Some(alone) = of(Workload::Update { beside: false }) {
            lines.push(each("updates beside ALTER, rate of those alone", &|i| {
                format!("{:.0} %", 100.0 * beside.row.rate(i) / alone.row.rate(i))
            }));
        }
        lines.push(each("longest update beside ALTER", &|i| format!("{:.1} ms", beside.longest[i])));
    }
    lines
}
