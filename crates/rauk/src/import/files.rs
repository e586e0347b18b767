//! Files of rows: which there are, what table each goes to, whether it fits, and then each into its table.
//!
//! All files are looked at before the first is read: that it can be read, that its table exists, that its header fits.
//! So a wrong name ends an import before it has begun. Progress of all files is forgotten together at the end: the same
//! command, given again after a failure, finds the files that are done and passes over them.

use super::columns::{self, Column, Table};
use super::create;
use super::encode::Encoder;
use super::fields::{self, BadField, FileFormat, Format};
use super::literal::Binary;
use super::load::{self, Load, Source};
use super::options::Options;
use super::parquet;
use super::progress::{Done, Identity, Progress};
use super::records::Records;
use super::rejects::Rejects;
use super::report::{self, Report};
use super::server;
use crate::out;
use mysql::Conn;
use mysql::prelude::Queryable;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// A file that fits its table.
struct Prepared {
    path: PathBuf,
    identity: Identity,
    format: FileFormat,
    table: Table,
    columns: Vec<Column>,
    targets: Vec<Option<usize>>,
    /// Of Parquet: what goes where.
    sources: Vec<parquet::Source>,
}

pub fn run(options: &Options, sources: &[PathBuf]) -> Result<(), String> {
    let files = expanded(options, sources)?;
    let mut connection = options.place.session(&options.session)?;
    let packet = server::packet(&mut connection)?;
    let mut prepared = Vec::with_capacity(files.len());
    for (path, format) in files {
        let shown = path.display().to_string();
        let one = prepare(options, &mut connection, path, format, packet).map_err(|e| format!("{shown}: {e}"))?;
        prepared.push(one);
    }
    let mut begun: Vec<(Progress, Done)> = Vec::with_capacity(prepared.len());
    for one in &prepared {
        begun.push(Progress::begin(&mut connection, &one.table, &one.identity, options.restart)?);
    }
    let rejects = match &options.rejects {
        None => None,
        Some(path) => {
            let mut done: HashMap<String, Vec<_>> = HashMap::new();
            for (one, (_, before)) in prepared.iter().zip(&begun) {
                done.entry(one.identity.path.clone()).or_default().extend(&before.spans);
            }
            Some(Mutex::new(Rejects::open(path, &done)?))
        }
    };
    let mut ends = Vec::with_capacity(begun.len());
    let mut rejected = 0;
    for (one, (progress, before)) in prepared.into_iter().zip(begun) {
        ends.push(progress.clone());
        rejected += load_one(options, one, progress, before, packet, rejects.as_ref(), rejected)?;
    }
    // The connection was idle for as long as that took; a server may have closed it.
    let mut connection = options.place.session(&options.session)?;
    ends.iter().try_for_each(|progress| progress.end(&mut connection))
}

/// Files of directories, each with its format.
fn expanded(options: &Options, sources: &[PathBuf]) -> Result<Vec<(PathBuf, FileFormat)>, String> {
    let mut files = Vec::new();
    for source in sources {
        let about = |e: std::io::Error| format!("cannot read {}: {e}", source.display());
        if !source.metadata().map_err(about)?.is_dir() {
            let format = options
                .format
                .or_else(|| by_ending(source))
                .ok_or_else(|| format!("{}: is it csv, tsv, jsonl or parquet? Give --format", source.display()))?;
            files.push((source.clone(), with_delimiter(format, options)));
            continue;
        }
        if options.table.is_some() {
            return Err("--table is for files; a directory has a file for each table, DB.TABLE.csv or TABLE.csv".into());
        }
        let mut found: Vec<(PathBuf, FileFormat)> = Vec::new();
        for entry in std::fs::read_dir(source).map_err(about)? {
            let path = entry.map_err(about)?.path();
            match by_ending(&path) {
                Some(format) if path.is_file() => found.push((path, with_delimiter(format, options))),
                _ => eprintln!("{}: passed over, since it is no .csv, .tsv, .jsonl or .parquet", path.display()),
            }
        }
        if found.is_empty() {
            return Err(format!("{} has no file that ends with .csv, .tsv, .jsonl or .parquet", source.display()));
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        files.extend(found);
    }
    Ok(files)
}

fn with_delimiter(format: FileFormat, options: &Options) -> FileFormat {
    match (format, options.delimiter) {
        (FileFormat::Text(Format::Csv { .. }), Some(delimiter)) => FileFormat::Text(Format::Csv { delimiter }),
        (format, _) => format,
    }
}

fn by_ending(path: &Path) -> Option<FileFormat> {
    FileFormat::by_name(path.extension()?.to_str()?)
}

fn table_of(options: &Options, path: &Path) -> Result<Table, String> {
    let database = options.database.as_deref();
    match &options.table {
        Some(table) => Table::parse(table, database),
        None => {
            let stem = path.file_stem().and_then(|s| s.to_str()).ok_or("the name is not UTF-8; give --table")?;
            Table::parse(stem, database)
        }
    }
}

fn prepare(
    options: &Options,
    connection: &mut Conn,
    path: PathBuf,
    format: FileFormat,
    packet: usize,
) -> Result<Prepared, String> {
    let table = table_of(options, &path)?;
    let identity = identity(options, &path, format)?;
    let file = File::open(&path).map_err(|e| format!("cannot read: {e}"))?;
    let FileFormat::Text(format) = format else {
        return prepare_parquet(options, connection, path, identity, table, file);
    };
    let mut records = Records::new(file, format, packet, Vec::new())?;
    let header = match options.has_header(format) {
        true => Some(header(&mut records, format)?),
        false => None,
    };
    let names = options.columns.clone().or(header);
    let mut columns = columns::of_table(connection, &table)?;
    if columns.is_empty() {
        if !options.create {
            return Err(no_table(connection, &table)?);
        }
        if names.is_none() && format != Format::Jsonl {
            return Err("--create takes the names of columns from a header line, or from --columns".into());
        }
        let statement = create::statement(&mut records, format, &options.null, names.as_deref(), &table)?;
        columns = made(connection, &table, &statement)?;
    }
    let mut targets = match (&names, format) {
        (Some(names), _) => columns::matched(names, &columns, &table)?,
        (None, _) => {
            let takes_values = columns.iter().enumerate().filter(|(_, c)| !c.generated);
            takes_values.map(|(at, _)| Some(at)).collect()
        }
    };
    if format == Format::Jsonl {
        targets.retain(Option::is_some);
    }
    let format = FileFormat::Text(format);
    Ok(Prepared { path, identity, format, table, columns, targets, sources: Vec::new() })
}

/// The columns of a table that is made by a statement, which is shown.
fn made(connection: &mut Conn, table: &Table, statement: &str) -> Result<Vec<Column>, String> {
    out::line(format_args!("{statement}"))?;
    connection.query_drop(statement).map_err(|e| server::told(&e))?;
    columns::of_table(connection, table)
}

fn prepare_parquet(
    options: &Options,
    connection: &mut Conn,
    path: PathBuf,
    identity: Identity,
    table: Table,
    file: File,
) -> Result<Prepared, String> {
    parquet::refuse_options(options)?;
    let opened = parquet::Opened::open(file)?;
    let names = opened.names(options.columns.as_deref())?;
    let mut columns = columns::of_table(connection, &table)?;
    if columns.is_empty() {
        if !options.create {
            return Err(no_table(connection, &table)?);
        }
        columns = made(connection, &table, &opened.create(&names, &table)?)?;
    }
    let mut targets = columns::matched(&names, &columns, &table)?;
    let sources = opened.sources(&targets, &columns, &table)?;
    // Members come in any order; those that are left out have no place.
    targets.retain(Option::is_some);
    parquet::time_zone(&sources, options.session.time_zone.as_ref())?;
    Ok(Prepared { path, identity, format: FileFormat::Parquet, table, columns, targets, sources })
}

/// The names of the first line.
fn header(records: &mut Records<File>, format: Format) -> Result<Vec<String>, String> {
    let Some((bytes, record)) = records.next_record().map_err(|e| format!("cannot read: {e}"))? else {
        return Err("the file is empty; its first line must name its columns (or give --no-header)".into());
    };
    if record.fault.is_some() {
        return Err("the first line has a quote that is not closed, or does not end".into());
    }
    let mut names = Vec::new();
    fields::each::<BadField>(&bytes[record.begin..record.end], format, b"\0", |_, field| {
        names.push(String::from_utf8_lossy(&field.bytes).trim().to_string());
        Ok(())
    })
    .map_err(|bad| format!("the first line must name the columns; in field {} {}", bad.field + 1, bad.what))?;
    Ok(names)
}

fn identity(options: &Options, path: &Path, format: FileFormat) -> Result<Identity, String> {
    let about = |e: std::io::Error| format!("cannot read: {e}");
    let metadata = path.metadata().map_err(about)?;
    if !metadata.is_file() {
        return Err(
            "it is no regular file; write it to a file first, so that an import can go on after a failure".into()
        );
    }
    let whole = path.canonicalize().map_err(about)?;
    let path = whole.to_str().ok_or("the path is not UTF-8; rename it")?.to_string();
    let modified = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
    Ok(Identity { path, size: metadata.len(), modified, settings: options.reading(format) })
}

/// What is said of a table that does not exist.
fn no_table(connection: &mut Conn, table: &Table) -> Result<String, String> {
    let names: Vec<String> = connection
        .exec("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?", (&table.database,))
        .map_err(|e| server::told(&e))?;
    let databases: Vec<String> =
        connection.query("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA").map_err(|e| server::told(&e))?;
    if !databases.iter().any(|d| d.eq_ignore_ascii_case(&table.database)) {
        let list: Vec<&str> = databases.iter().map(String::as_str).collect();
        let text = format!("there is no database '{}'", table.database);
        return Ok(match columns::nearest(&table.database, &list) {
            Some(near) => format!("{text}; did you mean '{near}'?"),
            None => format!("{text}; CREATE DATABASE makes it"),
        });
    }
    let list: Vec<&str> = names.iter().map(String::as_str).collect();
    let text = format!("there is no table {table}");
    Ok(match columns::nearest(&table.name, &list) {
        Some(near) => format!("{text}; did you mean '{near}'?"),
        None => format!("{text}; create it, or give --create, which guesses its columns from the file"),
    })
}

/// How many lines of it were bad, in all.
fn load_one(
    options: &Options,
    one: Prepared,
    progress: Progress,
    before: Done,
    packet: usize,
    rejects: Option<&Mutex<Rejects>>,
    rejected: u64,
) -> Result<u64, String> {
    let begun = Instant::now();
    let shown = one.path.display().to_string();
    let file = File::open(&one.path).map_err(|e| format!("cannot read {shown}: {e}"))?;
    let read_before = load::bytes_of(&before.spans);
    let resumed = !before.spans.is_empty();
    if resumed {
        eprintln!("{shown}: goes on behind {}", report::rows(before.counts.rows));
    }
    let about = |e: String| format!("{shown}: {e}");
    let mut session = options.session.clone();
    // How far it is, is told in bytes, and of Parquet in rows.
    let (source, whole, format) = match one.format {
        FileFormat::Text(format) => {
            let mut records = Records::new(file, format, packet, before.spans).map_err(about)?;
            if options.has_header(format) {
                records.next_record().map_err(|e| format!("cannot read {shown}: {e}"))?;
            }
            (Source::Text(Box::new(records)), one.identity.size, format)
        }
        FileFormat::Parquet => {
            session.time_zone = parquet::time_zone(&one.sources, session.time_zone.as_ref()).map_err(about)?;
            let opened = parquet::Opened::open(file).map_err(about)?;
            let rows = opened.rows();
            let rows_of = opened.into_rows(one.sources, packet, before.spans);
            (Source::Parquet(Box::new(rows_of)), rows, Format::Jsonl)
        }
    };
    let load = Load {
        place: &options.place,
        session: &session,
        threads: options.threads,
        encoder: Encoder {
            format,
            null: options.null.clone(),
            // Bytes of Parquet are written so.
            binary: if one.format == FileFormat::Parquet { Binary::Hex } else { options.binary },
            table: one.table.clone(),
            columns: one.columns,
            targets: one.targets,
            others_left_out: options.columns.is_some(),
            documents_in_texts: one.format == FileFormat::Parquet,
        },
        duplicates: options.duplicates,
        packet,
        progress,
        path: one.identity.path.clone(),
        rejects,
        most_rejects: options.most_rejects.map(|most| most.saturating_sub(rejected)),
        report: Report::new(&shown, whole, read_before, before.counts.rows),
        counts: Mutex::new(before.counts),
    };
    load.run(source)?;
    if identity(options, &one.path, one.format).as_ref() != Ok(&one.identity) {
        return Err(format!(
            "{shown} was changed while it was read; what is in {} may be neither of its states. Remove its rows and give --restart",
            one.table
        ));
    }
    let counts = load.counts.into_inner().expect("nobody panics with it");
    let time = begun.elapsed().as_secs_f64();
    let fresh = counts.rows - before.counts.rows;
    let mut line = format!(
        "{shown}: {} into {}, {} in {time:.1} s ({} rows/s)",
        report::rows(counts.rows),
        one.table,
        report::size(part(one.identity.size, read_before, whole)),
        report::grouped((fresh as f64 / time.max(1e-9)) as u64),
    );
    if resumed {
        line += &format!(", {} of them before", report::grouped(before.counts.rows));
    }
    if counts.skipped > 0 {
        line += &format!(", {} were there already", report::grouped(counts.skipped));
    }
    if let (Some(path), true) = (&options.rejects, counts.rejected > 0) {
        line += &format!(", {} bad lines are in {}", report::grouped(counts.rejected), path.display());
    }
    out::line(format_args!("{line}"))?;
    Ok(counts.rejected)
}

/// Bytes of the file that were read now, where so much of the whole was read before.
fn part(size: u64, before: u64, whole: u64) -> u64 {
    let left = u128::from(whole.saturating_sub(before)) * u128::from(size) / u128::from(whole.max(1));
    u64::try_from(left).unwrap_or(size)
}
