//! `rauk bench analytics`: queries over many rows, on Rauk and on MariaDB in the same run.
//!
//! Three parts. `tpch`: the eight tables of TPC-H by a generator of our own, and its 22 queries. `micro`: one statement for
//! each operator (grouping, sorting, joins, subqueries) over tables of a chosen number of rows. `texts`: full-text search of
//! as many short texts. Both servers are started for
//! the run and loaded with the same rows through the MySQL protocol; then they take turns statement by statement, their
//! answers are compared, and time and CPU time of a run are put beside each other. A run in which an answer differs, or a
//! server has none, ends with an error after its table.
//!
//! ```text
//! random    numbers of a seed            generate  TPC-H's tables
//! words     its words and comments       queries   its queries
//! micro     tables and statements of the second part
//! texts     those of the third
//! measure   runs, answers, times         report    the table, JSON
//! ```
//! This is not an official result of TPC-H: there are no refresh streams, and data are not the reference program's.

mod generate;
mod measure;
mod micro;
mod queries;
mod random;
mod report;
mod texts;
mod words;

use super::process::{self, temporary_directory};
use super::servers::{Kind, Server};
use crate::out;
use clap::{Arg, ArgMatches, Command, value_parser};
use measure::{Line, Statement, Subject};
use mysql::prelude::Queryable;
use std::time::{Duration, Instant};

/// The databases of the parts.
const TPCH: &str = "tpch";
const MICRO: &str = "micro";
const TEXTS: &str = "texts";
/// Bytes of one INSERT.
const INSERT: usize = 256 << 10;

#[derive(Clone, Debug)]
pub struct Options {
    against_mariadb: bool,
    scale: f64,
    rows: u64,
    rounds: usize,
    /// A round repeats a statement for at least so long.
    round: Duration,
    /// Seconds that a statement may take.
    patience: u64,
    tpch: bool,
    micro: bool,
    texts: bool,
    /// Names of statements; empty: all.
    queries: Vec<String>,
    json: Option<String>,
}

pub fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let count = |name: &'static str, help: &'static str, most: u64, default: &'static str| {
        text(name, "N", help).value_parser(value_parser!(u64).range(1..=most)).default_value(default)
    };
    Command::new("analytics")
        .about("TPC-H's 22 queries and single operators over many rows, on servers started for the run")
        .arg(text("against", "SERVER", "Peer of the same run").value_parser(["mariadb"]))
        .arg(text("scale", "X", "Scale of TPC-H: 1 is 6 million rows of lineitem").default_value("0.1"))
        .arg(count("rows", "Rows of the tables of micro, and of texts", 100_000_000, "1000000"))
        .arg(count("rounds", "Rounds on each server", 100, "3"))
        .arg(count("milliseconds", "Least time of a round", 60_000, "300"))
        .arg(count("patience", "Seconds that a statement may take", 3_600, "60"))
        .arg(text("only", "PART", "One part").value_parser([TPCH, MICRO, TEXTS]))
        .arg(text("queries", "LIST", "Only these statements: q1,q6,hash"))
        .arg(text("json", "FILE", "Write the figures as JSON too"))
}

pub fn options(arguments: &ArgMatches) -> Result<Options, String> {
    let word = |name: &str| arguments.get_one::<String>(name).cloned();
    let number = |name: &str| *arguments.get_one::<u64>(name).expect("has a default");
    let scale = word("scale").expect("has a default");
    let scale: f64 = match scale.parse() {
        Ok(scale) if (0.0001..=100.0).contains(&scale) => scale,
        _ => return Err(format!("--scale is a number from 0.0001 to 100, not {scale}")),
    };
    let rows = number("rows");
    let queries: Vec<String> =
        word("queries").iter().flat_map(|list| list.split(',')).map(|name| name.trim().to_lowercase()).collect();
    let known = |list: &[Statement]| {
        let names = list.iter().map(|s| s.name.as_str());
        queries.is_empty() || names.into_iter().any(|name| queries.iter().any(|q| q == name))
    };
    let (tpch, micro, texts) = (statements_of_tpch(scale), statements_of_micro(rows), statements_of_texts());
    let all = || tpch.iter().chain(&micro).chain(&texts);
    for query in &queries {
        if !all().any(|s| s.name == *query) {
            let names: Vec<&str> = all().map(|s| s.name.as_str()).collect();
            return Err(format!("--queries: there is no {query}; there are {}", names.join(", ")));
        }
    }
    let only = word("only");
    let part = |name: &str| only.as_deref().is_none_or(|only| only == name);
    Ok(Options {
        against_mariadb: word("against").is_some(),
        scale,
        rows,
        rounds: number("rounds") as usize,
        round: Duration::from_millis(number("milliseconds")),
        patience: number("patience"),
        tpch: part(TPCH) && known(&tpch),
        micro: part(MICRO) && known(&micro),
        texts: part(TEXTS) && known(&texts),
        queries,
        json: word("json"),
    })
}

fn statements_of_tpch(scale: f64) -> Vec<Statement> {
    let list = queries::queries(scale).into_iter();
    list.map(|(name, text)| Statement { name, text, range: 1 }).collect()
}

fn statements_of_micro(rows: u64) -> Vec<Statement> {
    micro::statements(rows).into_iter().map(|(name, text, range)| Statement { name, text, range }).collect()
}

fn statements_of_texts() -> Vec<Statement> {
    texts::statements().into_iter().map(|(name, text, range)| Statement { name, text, range }).collect()
}

pub fn run(options: &Options) -> Result<(), String> {
    process::end_with_this_process();
    let root = temporary_directory()?;
    let mut servers = vec![Server::start(Kind::Rauk, root.path(), "relaxed")?];
    if options.against_mariadb {
        servers.push(Server::start(Kind::MariaDb, root.path(), "relaxed")?);
    }
    for server in &servers {
        eprintln!("{} is up: port {}, pid {}", server.kind.name(), server.port, server.pid());
    }
    let names: Vec<&str> = servers.iter().map(|s| s.kind.name()).collect();
    let mut parts = Vec::new();
    if options.tpch {
        for server in &servers {
            load(server, TPCH, [generate::DEFINITIONS, &[]], &generate::TABLES, &mut |take| {
                generate::generate(options.scale, take)
            })?;
        }
        let title = format!("TPC-H's queries, scale {}", options.scale);
        parts.push((TPCH, title, measure_all(&servers, TPCH, statements_of_tpch(options.scale), options)?));
    }
    if options.micro {
        for server in &servers {
            load(server, MICRO, [micro::DEFINITIONS, &[]], &micro::TABLES, &mut |take| {
                micro::generate(options.rows, take)
            })?;
        }
        let title = format!("Single operators, {} rows", options.rows);
        parts.push((MICRO, title, measure_all(&servers, MICRO, statements_of_micro(options.rows), options)?));
    }
    if options.texts {
        for server in &servers {
            let statements = [texts::DEFINITIONS, texts::INDEXES];
            load(server, TEXTS, statements, &texts::TABLES, &mut |take| texts::generate(options.rows, take))?;
        }
        let title = format!("Full-text search, {} texts", options.rows);
        parts.push((TEXTS, title, measure_all(&servers, TEXTS, statements_of_texts(), options)?));
    }
    let mut failed = Vec::new();
    for (_, title, lines) in &parts {
        out::line(format_args!("\n### {title}\n\n{}", report::table(&names, lines)))?;
        failed.extend(lines.iter().filter_map(Line::failed));
    }
    if let Some(file) = &options.json {
        let text = report::json(&names, parts.iter().map(|(name, _, lines)| (*name, lines.as_slice())));
        std::fs::write(file, text).map_err(|e| format!("cannot write {file}: {e}"))?;
    }
    for server in servers {
        server.stop()?;
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("{} statements failed:\n{}", failed.len(), failed.join("\n"))) }
}

fn measure_all(
    servers: &[Server],
    database: &'static str,
    statements: Vec<Statement>,
    options: &Options,
) -> Result<Vec<Line>, String> {
    let subjects = servers.iter().map(|server| Subject::new(server, database, options.patience));
    let mut subjects = subjects.collect::<Result<Vec<_>, _>>()?;
    let wanted = |name: &String| options.queries.is_empty() || options.queries.contains(name);
    let statements = statements.into_iter().filter(|statement| wanted(&statement.name));
    Ok(statements.map(|statement| measure::measure(&mut subjects, &statement, options.rounds, options.round)).collect())
}

type Rows<'r> = &'r mut dyn FnMut(&mut dyn FnMut(usize, &str) -> Result<(), String>) -> Result<(), String>;

/// Makes the tables of a part and inserts its rows, many in a statement. `around`: statements before the rows and behind them.
fn load(server: &Server, database: &str, around: [&[&str]; 2], tables: &[&str], rows: Rows<'_>) -> Result<(), String> {
    let started = Instant::now();
    let mut connection = server.connect()?;
    let mut run =
        |text: &str| connection.query_drop(text).map_err(|e| format!("{}: {e}: {:.100}", server.kind.name(), text));
    // One collation that both have, whatever their defaults are.
    run(&format!("CREATE DATABASE {database} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"))?;
    run(&format!("USE {database}"))?;
    for definition in around[0] {
        run(definition)?;
    }
    let mut pending = vec![String::new(); tables.len()];
    let mut count = 0u64;
    rows(&mut |table, row| {
        count += 1;
        let text = &mut pending[table];
        if text.is_empty() {
            *text = format!("INSERT INTO {} VALUES ", tables[table]);
        } else {
            text.push(',');
        }
        text.push_str(row);
        if text.len() >= INSERT {
            run(text)?;
            text.clear();
        }
        Ok(())
    })?;
    for text in pending.iter().filter(|text| !text.is_empty()) {
        run(text)?;
    }
    let inserted = started.elapsed().as_secs_f64();
    for definition in around[1] {
        run(definition)?;
    }
    for table in tables {
        run(&format!("ANALYZE TABLE {table}"))?;
    }
    let (name, all) = (server.kind.name(), started.elapsed().as_secs_f64());
    eprintln!("{name}: {count} rows of {database} loaded in {all:.1} s, {inserted:.1} s of them to insert");
    Ok(())
}
