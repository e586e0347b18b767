//! What declarations cost: rows that refer to others, transactions over tables with foreign keys, values in JSON documents, LOAD DATA.
//!
//! | workload | an operation |
//! |---|---|
//! | child insert | INSERT of a row with a foreign key, a commit each; 10 000 parents |
//! | JSON path | a prepared SELECT by key of one text deep in a document of 2 kB |
//! | orders, indexes | a transaction of [`warehouses`](super::warehouses), tables without foreign keys and with the indexes that these need |
//! | orders, foreign keys | the same with foreign keys |
//! | LOAD DATA | a row of a LOAD DATA LOCAL of 300 000 |

use super::servers::Server;
use super::warehouses::{self, Done, Shape, Terminal};
use super::{Sample, SqlOptions};
use hdrhistogram::Histogram;
use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    ChildInsert,
    JsonPath,
    Orders(Shape),
    LoadData,
}

pub const WORKLOADS: &[Workload] = &[
    Workload::ChildInsert,
    Workload::JsonPath,
    Workload::Orders(Shape::Indexed),
    Workload::Orders(Shape::ForeignKeys),
    Workload::LoadData,
];

const PARENTS: u64 = 10_000;
const DOCUMENTS: u64 = 10_000;
const LOADED: u64 = 300_000;
/// Rows of one INSERT while tables are filled.
const BATCH: u64 = 500;

fn shown(error: mysql::Error) -> String {
    error.to_string()
}

fn all(connection: &mut Conn, statements: &[&str]) -> Result<(), String> {
    statements.iter().try_for_each(|statement| connection.query_drop(statement).map_err(shown))
}

fn fill(connection: &mut Conn, table: &str, rows: u64, row: impl Fn(u64) -> String) -> Result<(), String> {
    for from in (0..rows).step_by(BATCH as usize) {
        let values: Vec<String> = (from..rows.min(from + BATCH)).map(&row).collect();
        connection.query_drop(format!("INSERT INTO {table} VALUES {}", values.join(","))).map_err(shown)?;
    }
    Ok(())
}

/// Some 2 000 bytes: forty members, one of which is an array of objects.
fn document(id: u64) -> String {
    let members: Vec<String> =
        (0..40).map(|n| format!("\"member{n:02}\": \"the value {n} of {id} {}\"", "x".repeat(12))).collect();
    format!("{{{}, \"orders\": [{{\"total\": 1}}, {{\"total\": 2, \"note\": \"note of {id}\"}}]}}", members.join(", "))
}

impl Workload {
    pub fn name(self) -> &'static str {
        match self {
            Workload::ChildInsert => "child insert",
            Workload::JsonPath => "JSON path",
            Workload::Orders(Shape::ForeignKeys) => "orders, foreign keys",
            Workload::Orders(_) => "orders, indexes",
            Workload::LoadData => "LOAD DATA",
        }
    }

    /// What is there before the first round, and is not measured.
    pub fn prepare(self, server: &Server, options: &SqlOptions) -> Result<(), String> {
        let mut connection = server.connect()?;
        all(&mut connection, &["CREATE DATABASE IF NOT EXISTS declared"])?;
        match self {
            Workload::ChildInsert => {
                all(
                    &mut connection,
                    &[
                        "CREATE TABLE declared.parents (id INT PRIMARY KEY, name VARCHAR(20))",
                        "CREATE TABLE declared.children (id INT PRIMARY KEY, parent INT NOT NULL, KEY (parent), \
                         FOREIGN KEY (parent) REFERENCES parents (id))",
                    ],
                )?;
                fill(&mut connection, "declared.parents", PARENTS, |id| format!("({id}, 'parent')"))
            }
            Workload::JsonPath => {
                all(&mut connection, &["CREATE TABLE declared.documents (id INT PRIMARY KEY, document JSON)"])?;
                fill(&mut connection, "declared.documents", DOCUMENTS, |id| format!("({id}, '{}')", document(id)))
            }
            Workload::Orders(shape) => {
                all(&mut connection, &["DROP DATABASE IF EXISTS trade"])?;
                warehouses::load(&mut connection, options.threads as u32, shape)
            }
            Workload::LoadData => match server.kind {
                super::servers::Kind::Rauk => all(&mut connection, &["SET GLOBAL local_infile = 1"]),
                super::servers::Kind::MariaDb => Ok(()),
            },
        }
    }

    pub fn run(self, server: &Server, options: &SqlOptions, directory: &Path) -> Result<Sample, String> {
        match self {
            Workload::ChildInsert => {
                all(&mut server.connect()?, &["DELETE FROM declared.children"])?;
                clients(server, options.threads, |connection, thread, latencies| {
                    let insert = connection.prep("INSERT INTO declared.children VALUES (?, ?)").map_err(shown)?;
                    for id in (thread as u64..options.inserts).step_by(options.threads) {
                        latencies.time(|| connection.exec_drop(&insert, (id, id * 7919 % PARENTS)))?;
                    }
                    Ok(())
                })
            }
            Workload::JsonPath => clients(server, options.threads, |connection, thread, latencies| {
                let end = Instant::now() + Duration::from_secs(options.seconds);
                let read = "SELECT JSON_UNQUOTE(JSON_EXTRACT(document, '$.orders[1].note')) FROM declared.documents WHERE id = ?";
                let read = connection.prep(read).map_err(shown)?;
                let mut id = thread as u64;
                while Instant::now() < end {
                    id = (id + 7919) % DOCUMENTS;
                    let note: Option<String> = latencies.time(|| connection.exec_first(&read, (id,)))?;
                    if note != Some(format!("note of {id}")) {
                        return Err(format!("the document {id} has the note {note:?}"));
                    }
                }
                Ok(())
            }),
            Workload::Orders(_) => orders(server, options),
            Workload::LoadData => load_data(server, directory),
        }
    }
}

/// Microseconds, up to a minute.
struct Latencies(Histogram<u64>);

impl Latencies {
    fn time<T>(&mut self, run: impl FnOnce() -> Result<T, mysql::Error>) -> Result<T, String> {
        let started = Instant::now();
        let result = run().map_err(shown)?;
        self.0.saturating_record(started.elapsed().as_micros() as u64);
        Ok(result)
    }
}

fn latencies() -> Latencies {
    Latencies(Histogram::new_with_bounds(1, 60_000_000, 2).expect("the bounds are in order"))
}

/// Runs `work` on a connection for each thread.
fn clients(
    server: &Server,
    threads: usize,
    work: impl Fn(&mut Conn, usize, &mut Latencies) -> Result<(), String> + Sync,
) -> Result<Sample, String> {
    let mut connections = (0..threads).map(|_| server.connect()).collect::<Result<Vec<_>, _>>()?;
    let work = &work;
    let started = Instant::now();
    let histograms = std::thread::scope(|scope| {
        let each = connections.iter_mut().enumerate();
        let threads: Vec<_> = each
            .map(|(thread, connection)| {
                scope.spawn(move || {
                    let mut latencies = latencies();
                    work(connection, thread, &mut latencies).map(|()| latencies.0)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().expect("a client's thread does not panic")).collect::<Result<Vec<_>, _>>()
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let mut all = latencies().0;
    for histogram in histograms {
        all.add(histogram).map_err(|e| e.to_string())?;
    }
    let p95_ms = all.value_at_quantile(0.95) as f64 / 1e3;
    Ok(Sample { operations: all.len() as f64, seconds, cpu_seconds: 0.0, p95_ms })
}

fn orders(server: &Server, options: &SqlOptions) -> Result<Sample, String> {
    let warehouses = options.threads as u32;
    let mut connection = server.connect()?;
    // History goes on behind the rounds before.
    let next: Option<Option<u64>> = connection.query_first("SELECT MAX(h_id) + 1 FROM trade.history").map_err(shown)?;
    let next = next.flatten().unwrap_or(0);
    let started = Instant::now();
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=warehouses)
            .map(|warehouse| {
                scope.spawn(move || {
                    let terminal = Terminal::new(server.connect()?, warehouse, warehouses, 10, next)?;
                    let mut terminals = [terminal];
                    warehouses::work(&mut terminals, Duration::from_secs(options.seconds))?;
                    Ok::<Done, String>(terminals[0].done)
                })
            })
            .collect();
        let mut done = Done::default();
        for thread in threads {
            done.add(thread.join().expect("a terminal's thread does not panic")?);
        }
        Ok::<Done, String>(done)
    })?;
    let seconds = started.elapsed().as_secs_f64();
    Ok(Sample { operations: done.transactions() as f64, seconds, cpu_seconds: 0.0, p95_ms: 0.0 })
}

/// One statement; the file is made before the clock runs.
fn load_data(server: &Server, directory: &Path) -> Result<Sample, String> {
    let path = directory.join("rows.txt");
    if !path.exists() {
        let mut file = std::io::BufWriter::new(std::fs::File::create(&path).map_err(|e| e.to_string())?);
        for id in 0..LOADED {
            writeln!(file, "{id}\t{}\trow number {id}\t{}.25", id * 31 % 1000, id % 977).map_err(|e| e.to_string())?;
        }
        file.flush().map_err(|e| e.to_string())?;
    }
    let mut connection = server.connect()?;
    all(
        &mut connection,
        &[
            "DROP TABLE IF EXISTS declared.loaded",
            "CREATE TABLE declared.loaded (id INT PRIMARY KEY, number INT, name VARCHAR(40), amount DECIMAL(10,2))",
        ],
    )?;
    connection.set_local_infile_handler(Some(LocalInfileHandler::new(|name, out| {
        let mut file = std::fs::File::open(String::from_utf8_lossy(name).as_ref())?;
        std::io::copy(&mut file, out).map(drop)
    })));
    let started = Instant::now();
    connection
        .query_drop(format!("LOAD DATA LOCAL INFILE '{}' INTO TABLE declared.loaded", path.display()))
        .map_err(shown)?;
    let seconds = started.elapsed().as_secs_f64();
    let stored: Option<u64> = connection.query_first("SELECT COUNT(*) FROM declared.loaded").map_err(shown)?;
    match stored {
        Some(LOADED) => Ok(Sample { operations: LOADED as f64, seconds, cpu_seconds: 0.0, p95_ms: seconds * 1e3 }),
        other => Err(format!("{LOADED} rows were loaded and {other:?} are there")),
    }
}
