//! `rauk size SCHEMA.sql --rows t=1e7`: the memory that tables will take, and how many nodes carry them.
//!
//! Whoever buys machines for a database in memory must know this before there are rows. A table of type sizes would
//! be wrong: rows are in size classes, indexes are more or less full, unique keys have tables of their own, and all
//! of it changes with versions. So nothing is computed that can be measured: the schema is given to a server of this
//! program that exists for the run alone (`import::migrate::scratch`), each table gets sample rows, and the memory
//! that the server reports is extrapolated.
//!
//! - [`arguments`]: what is asked, refused early if it is wrong.
//! - [`schema`]: the tables of the file, as the server understands them.
//! - [`values`]: sample rows.
//! - [`measure`]: fills and reads.
//! - [`growth`]: from few rows to many, and from bytes to nodes.
//!
//! The prediction is within 5 % of what a load takes whose values are as long as was assumed, which the output
//! therefore lists. Left out: NULLs, rows that were deleted or grew, old versions and transactions under way (the
//! margin is for these), and what a process takes besides rows and indexes, which no memory limit counts.

mod arguments;
mod growth;
mod measure;
mod schema;
mod values;

pub use arguments::command;

use crate::import::migrate::scratch::Scratch;
use crate::import::report::{grouped, rows as counted, size as shown};
use crate::import::server::{Session, told};
use crate::out;
use arguments::Options;
use clap::ArgMatches;
use growth::{Point, Size};
use mysql::Conn;
use mysql::prelude::Queryable;
use schema::Table;
use values::Kind;

pub fn run(arguments: &ArgMatches) -> Result<(), String> {
    let options = arguments::options(arguments)?;
    std::fs::File::open(&options.schema).map_err(|e| format!("cannot read {}: {e}", options.schema.display()))?;
    let partitions = options.partitions.map(|count| count.to_string());
    let flags: Vec<&str> = partitions.iter().flat_map(|count| ["--partitions", count.as_str()]).collect();
    let mut server = Server::start(&options, &flags)?;
    let asked = asked(&options, &server.tables)?;
    for &(at, rows) in &asked {
        refuse_what_cannot_be(&server.tables[at], rows)?;
    }
    let sample = |table: &Table, rows: u64| measure::sample(table, rows, options.sample);
    let mut points = Vec::new();
    for &(at, rows) in &asked {
        let table = &server.tables[at];
        points.push(measure::measure(&mut server.target, table, &growth::steps(sample(table, rows)))?);
    }
    let (partitions, tables) = server.end();
    let mut single: Vec<Vec<Point>> = asked.iter().map(|_| Vec::new()).collect();
    if asked.iter().any(|&(at, rows)| sample(&tables[at], rows) < rows) {
        let mut server = Server::start(&options, &["--partitions", "1"])?;
        for (&(at, rows), points) in asked.iter().zip(&mut single) {
            let (table, sample) = (&server.tables[at], sample(&tables[at], rows));
            if sample < rows {
                *points = measure::measure(&mut server.target, table, &growth::even_steps(sample))?;
            }
        }
    }
    let mut found = Vec::new();
    for ((&(at, rows), points), single) in asked.iter().zip(points).zip(single) {
        let table = &tables[at];
        let (leaves, index_tables) = (table.leaves as f64, table.index_tables as f64);
        let measured = growth::Measured { points, single, partitions: partitions as f64, leaves, index_tables };
        let size = measured.predict(rows);
        refuse_what_no_partition_holds(table, rows, size, partitions)?;
        found.push((table, rows, sample(table, rows), size));
    }
    let total = print_sizes(&found)?;
    print_nodes(&options, total, partitions)?;
    let left_out: Vec<String> =
        (0..tables.len()).filter(|at| asked.iter().all(|(own, _)| own != at)).map(|at| tables[at].shown()).collect();
    print_assumptions(&found, partitions, &left_out)
}

/// A scratch server with the tables of the file.
struct Server {
    // In this order: the connection ends before the server.
    target: Conn,
    scratch: Scratch,
    partitions: u64,
    tables: Vec<Table>,
}

impl Server {
    fn start(options: &Options, flags: &[&str]) -> Result<Server, String> {
        let scratch = Scratch::start_with(flags)?;
        let session = Session { zero_dates: true, skip_foreign_keys: true, time_zone: Some("+00:00".into()) };
        schema::make(&mut scratch.place.session(&session)?, &options.schema)?;
        // What the file has set for its session is not for the sample.
        let mut target = scratch.place.session(&session)?;
        let partitions: Option<u64> = target.query_first("SELECT partitions FROM rauk.nodes").map_err(|e| told(&e))?;
        let mut tables = schema::tables(&mut target)?;
        set_widths(options, &mut tables)?;
        Ok(Server { target, scratch, partitions: partitions.unwrap_or(1).max(1), tables })
    }

    /// Ends the server; gives its partitions and tables. Two at once would be in each other's directory.
    fn end(self) -> (u64, Vec<Table>) {
        let Server { target, scratch, partitions, tables } = self;
        drop(target);
        drop(scratch);
        (partitions, tables)
    }
}

/// The table of a name. The error names those that there are.
fn find(tables: &[Table], name: &arguments::Name, option: &str) -> Result<usize, String> {
    let found: Vec<usize> = (0..tables.len()).filter(|&at| name.is(&tables[at].database, &tables[at].name)).collect();
    let list = |all: &mut dyn Iterator<Item = String>| all.take(10).collect::<Vec<_>>().join(", ");
    match found[..] {
        [one] => Ok(one),
        [] if tables.is_empty() => {
            Err(format!("{option}: the file makes no table; give one with CREATE TABLE statements"))
        }
        [] => Err(format!(
            "{option}: the file makes no table {}; it makes {}",
            name.shown(),
            list(&mut tables.iter().map(Table::shown))
        )),
        _ => Err(format!(
            "{option}: {} is in several databases; name one of {}",
            name.shown(),
            list(&mut found.iter().map(|&at| tables[at].shown()))
        )),
    }
}

fn asked(options: &Options, tables: &[Table]) -> Result<Vec<(usize, u64)>, String> {
    let mut asked: Vec<(usize, u64)> = Vec::new();
    for rows in &options.rows {
        let at = find(tables, &rows.of, "--rows")?;
        if asked.iter().any(|(own, _)| *own == at) {
            return Err(format!("--rows: {} has two numbers of rows; give one", tables[at].shown()));
        }
        asked.push((at, rows.rows));
    }
    Ok(asked)
}

fn set_widths(options: &Options, tables: &mut [Table]) -> Result<(), String> {
    for width in &options.widths {
        let at = find(tables, &width.of, "--width")?;
        let table = &mut tables[at];
        let shown = table.shown();
        let column = table.columns.iter_mut().find(|c| c.name.eq_ignore_ascii_case(&width.column));
        let column = column.ok_or_else(|| {
            format!("--width: {shown} has no column {} that is stored; correct the name", width.column)
        })?;
        let set = column.kind.set_lengths(width.least, width.most);
        set.map_err(|reason| format!("--width: {shown}.{} is {}: {reason}", column.name, column.type_shown))?;
    }
    Ok(())
}

fn refuse_what_cannot_be(table: &Table, rows: u64) -> Result<(), String> {
    if let Some(column) = table.columns.iter().find(|c| c.kind == Kind::Unknown) {
        return Err(format!(
            "{}.{} is {}, of which there are no sample values; leave the column out of the file",
            table.shown(),
            column.name,
            column.type_shown
        ));
    }
    match &table.most {
        Some((most, key)) if rows > *most => Err(format!(
            "{} cannot have {} rows: its unique key {key} has values for about {}; give fewer rows, or widen the key",
            table.shown(),
            grouped(rows),
            grouped(*most)
        )),
        _ => Ok(()),
    }
}

/// Bounds of the kernel's row store: ids, and bytes of rows up to 4 KiB.
const MOST_IDS: u64 = u32::MAX as u64 - 1;
const MOST_PAGES: f64 = (16u64 << 30) as f64;
const LARGEST_IN_PAGES: f64 = 4096.0;

/// Rows that one partition could not store, whatever memory it has.
fn refuse_what_no_partition_holds(table: &Table, rows: u64, size: Size, partitions: u64) -> Result<(), String> {
    let fragments = partitions * table.leaves;
    // Chance gives some partitions a little more than others.
    let by_ids = rows.div_ceil(MOST_IDS / 10 * 9);
    let in_pages = size.rows / rows as f64 <= LARGEST_IN_PAGES;
    let by_pages = if in_pages { (size.rows / (MOST_PAGES * 0.9)).ceil() as u64 } else { 0 };
    let needed = by_ids.max(by_pages).div_ceil(table.leaves);
    match by_ids.max(by_pages) > fragments {
        false => Ok(()),
        true => Err(format!(
            "{} with {} rows needs at least {needed} partitions (4 294 967 294 rows and 16 GiB of them in each at most), \
             not {partitions}; give {}",
            table.shown(),
            grouped(rows),
            if needed <= 256 { format!("--partitions {needed} or more") } else { "fewer rows".into() }
        )),
    }
}

type Found<'a> = (&'a Table, u64, u64, Size);

/// The table of sizes; gives their sum.
fn print_sizes(found: &[Found<'_>]) -> Result<f64, String> {
    let bytes = |bytes: f64| shown(bytes.max(0.0) as u64);
    let mut lines = vec![["table", "rows", "of rows", "of indexes", "memory", "a row"].map(String::from)];
    let mut sum = Size::default();
    for (table, rows, _, size) in found {
        sum = Size { rows: sum.rows + size.rows, indexes: sum.indexes + size.indexes };
        let row = format!("{:.0} bytes", size.total() / *rows as f64);
        lines.push([table.shown(), grouped(*rows), bytes(size.rows), bytes(size.indexes), bytes(size.total()), row]);
    }
    let rows = grouped(found.iter().map(|(_, rows, ..)| rows).sum());
    lines.push(["together".into(), rows, bytes(sum.rows), bytes(sum.indexes), bytes(sum.total()), String::new()]);
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    for line in &lines {
        let cells = line.iter().zip(&widths).skip(1).map(|(cell, width)| format!("  {cell:>width$}"));
        let text = format!("{:<first$}{}", line[0], cells.collect::<String>(), first = widths[0]);
        out::line(format_args!("{}", text.trim_end()))?;
    }
    Ok(sum.total())
}

fn print_nodes(options: &Options, total: f64, partitions: u64) -> Result<(), String> {
    let bytes = |bytes: f64| shown(bytes.max(0.0) as u64);
    let (replicas, percent) = (options.replicas, growth::PLANNED * 100.0);
    let margin = "for versions, writes and copies";
    out::line(format_args!(""))?;
    out::line(format_args!(
        "With a margin {margin}, so that a node is below {percent:.0} % of its limit: {}{}.",
        bytes(total * replicas as f64 / growth::PLANNED),
        match replicas {
            1 => String::new(),
            _ => format!(" in all nodes together, with {replicas} replicas"),
        }
    ))?;
    let Some(limit) = options.node_memory else { return Ok(()) };
    match growth::nodes(total, partitions, replicas, limit) {
        None => Err(format!(
            "one of {partitions} partitions takes {}, more than {percent:.0} % of {}; give nodes more memory, or more --partitions",
            bytes(total / partitions as f64),
            shown(limit)
        )),
        Some(nodes) => {
            let fullest = growth::fullest(total, partitions, replicas, nodes);
            out::line(format_args!(
                "Nodes with --memory-limit {}: {nodes}, of which the fullest uses {} ({:.0} %).",
                rauk_types::size::show(limit),
                bytes(fullest),
                fullest * 100.0 / limit as f64
            ))
        }
    }
}

fn print_assumptions(found: &[Found<'_>], partitions: u64, left_out: &[String]) -> Result<(), String> {
    out::line(format_args!(""))?;
    out::line(format_args!("Assumed (--width TABLE.COLUMN=BYTES and --partitions change it):"))?;
    for (table, ..) in found {
        for column in &table.columns {
            let Some(lengths) = column.kind.lengths() else { continue };
            let text = match lengths {
                values::Lengths::Fixed(bytes) => format!("{bytes} bytes"),
                values::Lengths::Spread(least, most) => format!("{} bytes ({least} to {most})", lengths.mean()),
            };
            out::line(format_args!("  {}.{}, {}: {text}", table.shown(), column.name, column.type_shown))?;
        }
    }
    let samples: Vec<u64> = found.iter().map(|(_, _, sample, _)| *sample).collect();
    let (least, most) = (samples.iter().min().copied().unwrap_or(0), samples.iter().max().copied().unwrap_or(0));
    let samples = if least == most { counted(most) } else { format!("{} to {}", grouped(least), counted(most)) };
    out::line(format_args!(
        "  {partitions} partitions, into which rows spread evenly; no NULLs; texts of ASCII characters"
    ))?;
    out::line(format_args!(
        "  keys of one number or time in ascending order, others at random; measured with {samples} a table"
    ))?;
    match left_out {
        [] => Ok(()),
        tables => out::line(format_args!("  without rows, since --rows does not name them: {}", tables.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_partition_holds() {
        let table = Table {
            database: "d".into(),
            name: "t".into(),
            columns: Vec::new(),
            leaves: 1,
            index_tables: 0,
            most: None,
        };
        let check = |rows: u64, each: f64, partitions: u64| {
            let size = Size { rows: rows as f64 * each, indexes: 0.0 };
            refuse_what_no_partition_holds(&table, rows, size, partitions)
        };
        assert_eq!(check(10_000_000_000, 4.0, 4), Ok(()));
        let error = check(1_000_000_000, 100.0, 4).expect_err("93 GiB of rows");
        assert!(error.contains("needs at least 7 partitions") && error.ends_with("--partitions 7 or more"), "{error}");
        assert_eq!(check(1_000_000, 1e6, 4), Ok(()), "large rows have no pages");
        assert!(check(10_000_000_000_000, 4.0, 256).expect_err("ids").ends_with("give fewer rows"));
    }
}
