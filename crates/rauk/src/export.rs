//! `rauk export`: the rows of a table as CSV, TSV or JSON lines, which `rauk import` reads back.
//!
//! One SELECT reads the table, in the order of its primary key, so the file is one snapshot. Its rows are streamed:
//! one row is in memory. Generated columns are left out, since they take no values.
//!
//! Columns of bytes (BINARY, VARBINARY, the BLOBs, spatial types) are written in hexadecimal, or as `--binary` says; BIT
//! as a number; everything else as its text in UTF-8. NULL is `\N` without quotes in CSV and TSV, `null` in JSON.
//! In JSON lines numbers are numbers, documents of JSON columns are written as they are. There, a JSON document `null`
//! and NULL are the same, so that is told, and how to tell them apart.
//!
//! A file is written beside its place and renamed when it is whole and on disk, so that nobody takes half of a table for
//! all of it.

use crate::client::arguments::{options, with_connection};
use crate::import::columns::{self, Column, Table};
use crate::import::fields::{Format, write_csv, write_tsv};
use crate::import::literal::{self, Binary, Kind, quoted};
use crate::import::options::binary;
use crate::import::{report, server};
use crate::out;
use clap::{Arg, ArgMatches, Command};
use mysql::Value;
use mysql::prelude::Queryable;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

const BUFFER: usize = 256 * 1024;

pub fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let command = Command::new("export")
        .about("Write the rows of a table as CSV, TSV or JSON lines")
        .arg(text("table", "DB.TABLE", "Table").required(true))
        .arg(text("database", "NAME", "Database of a table without one").short('D'))
        .arg(text("output", "FILE", "A new file; standard output by default").short('o'))
        .arg(
            text("format", "FORMAT", "By default by the file's ending, else csv").value_parser(["csv", "tsv", "jsonl"]),
        )
        .arg(
            text("binary", "FORM", "How bytes are written")
                .value_parser(["hex", "base64", "text"])
                .default_value("hex"),
        )
        .arg(text("time-zone", "ZONE", "Of TIMESTAMP values, by default the server's"));
    with_connection(command)
}

pub fn run(arguments: &ArgMatches) -> Result<(), String> {
    let get = |name: &str| arguments.get_one::<String>(name).cloned();
    let table = Table::parse(&get("table").expect("required"), get("database").as_deref())?;
    let output = get("output").map(PathBuf::from);
    let ending = output.as_deref().and_then(Path::extension).and_then(|e| e.to_str());
    if get("format").is_none() && ending.is_some_and(|ending| ending.eq_ignore_ascii_case("parquet")) {
        return Err(
            "rauk export writes no Parquet; give --format, or a file that ends with .csv, .tsv or .jsonl".into()
        );
    }
    let format = get("format").as_deref().or(ending).and_then(Format::by_name).unwrap_or(Format::CSV);
    let binary = binary(&get("binary").expect("has a default"));
    if binary == Binary::Text && format == Format::Jsonl {
        return Err("--binary text: JSON is text in UTF-8, which bytes need not be; take hex or base64".into());
    }
    let session = server::Session { zero_dates: true, skip_foreign_keys: false, time_zone: get("time-zone") };
    let mut connection = server::Place(options(arguments)?).session(&session)?;
    let columns: Vec<Column> = columns::of_table(&mut connection, &table)?;
    if columns.is_empty() {
        return Err(format!("there is no table {table}"));
    }
    let columns: Vec<Column> = columns.into_iter().filter(|c| !c.generated).collect();
    let mut writer = Writer { format, binary, columns, json_nulls: 0, line: Vec::new() };
    let statement = writer.statement(&mut connection, &table)?;
    match output {
        None => {
            let mut out = BufWriter::with_capacity(BUFFER, std::io::stdout().lock());
            writer.write(&mut connection, &statement, &mut out)?;
            out.flush().map_err(out::told)?;
        }
        Some(path) => {
            let shown = path.display();
            if path.exists() {
                return Err(format!("{shown} exists; remove it or name another file"));
            }
            let mut aside = path.as_os_str().to_owned();
            aside.push(".part");
            let aside = PathBuf::from(aside);
            let about = |e: std::io::Error| format!("cannot write {shown}: {e}");
            let file = File::create(&aside).map_err(about)?;
            let written = write_file(&mut writer, &mut connection, &statement, file, &aside, &path);
            if written.is_err() {
                // What is not whole is of no use; the error that is told is the first one.
                let _ = std::fs::remove_file(&aside);
            }
            let (rows, bytes) = written?;
            out::line(format_args!("{table}: {} into {shown}, {}", report::rows(rows), report::size(bytes)))?;
        }
    }
    if writer.json_nulls > 0 {
        eprintln!(
            "{} JSON documents are null, which JSON lines do not tell from NULL; --format csv and tsv do",
            writer.json_nulls
        );
    }
    Ok(())
}

fn write_file(
    writer: &mut Writer,
    connection: &mut mysql::Conn,
    statement: &str,
    file: File,
    aside: &Path,
    path: &Path,
) -> Result<(u64, u64), String> {
    let about = |e: std::io::Error| format!("cannot write {}: {e}", path.display());
    let mut out = BufWriter::with_capacity(BUFFER, file);
    let rows = writer.write(connection, statement, &mut out)?;
    let file = out.into_inner().map_err(|e| about(e.into_error()))?;
    file.sync_all().map_err(about)?;
    let bytes = file.metadata().map_err(about)?.len();
    std::fs::rename(aside, path).map_err(about)?;
    Ok((rows, bytes))
}

struct Writer {
    format: Format,
    binary: Binary,
    columns: Vec<Column>,
    /// Documents of JSON lines that are read as NULL.
    json_nulls: u64,
    /// The current line.
    line: Vec<u8>,
}

impl Writer {
    fn statement(&self, connection: &mut mysql::Conn, table: &Table) -> Result<String, String> {
        let key: Vec<String> = connection
            .exec(
                "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? \
                 AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX",
                (&table.database, &table.name),
            )
            .map_err(|e| server::told(&e))?;
        let names: Vec<String> = self.columns.iter().map(|c| quoted(&c.name)).collect();
        let order: Vec<String> = key.iter().map(|name| quoted(name)).collect();
        let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
        Ok(format!("SELECT {} FROM {}{order}", names.join(", "), table.sql()))
    }

    /// The number of rows.
    fn write(&mut self, connection: &mut mysql::Conn, statement: &str, out: &mut impl Write) -> Result<u64, String> {
        self.header();
        out.write_all(&self.line).map_err(out::told)?;
        let mut rows = connection.query_iter(statement).map_err(|e| server::told(&e))?;
        let types: Vec<bool> = rows.columns().as_ref().iter().map(|c| c.column_type().is_numeric_type()).collect();
        let mut count = 0;
        for row in rows.by_ref() {
            let row = row.map_err(|e| server::told(&e))?;
            let values: Vec<Value> = row.unwrap_raw().into_iter().map(|v| v.unwrap_or(Value::NULL)).collect();
            self.row(&values, &types)?;
            out.write_all(&self.line).map_err(out::told)?;
            count += 1;
        }
        Ok(count)
    }

    fn header(&mut self) {
        self.line.clear();
        let names: Vec<Vec<u8>> = self.columns.iter().map(|c| c.name.as_bytes().to_vec()).collect();
        match self.format {
            Format::Jsonl => return,
            Format::Csv { delimiter } => {
                for (at, name) in names.iter().enumerate() {
                    self.separate(at, delimiter);
                    write_csv(&mut self.line, name, delimiter, b"\\N");
                }
            }
            Format::Tsv => {
                for (at, name) in names.iter().enumerate() {
                    self.separate(at, b'\t');
                    write_tsv(&mut self.line, name);
                }
            }
        }
        self.line.push(b'\n');
    }

    fn separate(&mut self, at: usize, separator: u8) {
        if at > 0 {
            self.line.push(separator);
        }
    }

    fn row(&mut self, values: &[Value], numeric: &[bool]) -> Result<(), String> {
        self.line.clear();
        for (at, value) in values.iter().enumerate() {
            let kind = self.columns[at].kind;
            let bytes = match value {
                Value::NULL => None,
                Value::Bytes(bytes) => Some(self.text(bytes, kind)),
                other => return Err(format!("the server sent a value of an unknown form: {other:?}")),
            };
            match self.format {
                Format::Csv { delimiter } => {
                    self.separate(at, delimiter);
                    match bytes {
                        None => self.line.extend_from_slice(b"\\N"),
                        Some(bytes) => write_csv(&mut self.line, &bytes, delimiter, b"\\N"),
                    }
                }
                Format::Tsv => {
                    self.separate(at, b'\t');
                    match bytes {
                        None => self.line.extend_from_slice(b"\\N"),
                        Some(bytes) => write_tsv(&mut self.line, &bytes),
                    }
                }
                Format::Jsonl => self.member(at, bytes, kind, numeric.get(at) == Some(&true))?,
            }
        }
        if self.format == Format::Jsonl {
            self.line.push(b'}');
        }
        self.line.push(b'\n');
        Ok(())
    }

    fn text(&self, bytes: &[u8], kind: Kind) -> Vec<u8> {
        match (kind, self.binary) {
            (Kind::Text | Kind::Json, _) | (Kind::Bytes, Binary::Text) => bytes.to_vec(),
            (Kind::Bit, _) => {
                let number = bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
                number.to_string().into_bytes()
            }
            (Kind::Bytes, Binary::Hex) => {
                let mut text = String::from("0x");
                literal::push_hex(&mut text, bytes);
                text.into_bytes()
            }
            (Kind::Bytes, Binary::Base64) => {
                let mut text = String::new();
                literal::push_base64(&mut text, bytes);
                text.into_bytes()
            }
        }
    }

    fn member(&mut self, at: usize, bytes: Option<Vec<u8>>, kind: Kind, numeric: bool) -> Result<(), String> {
        self.line.push(if at == 0 { b'{' } else { b',' });
        let name = serde_json::to_string(&self.columns[at].name).map_err(|e| e.to_string())?;
        self.line.extend_from_slice(name.as_bytes());
        self.line.push(b':');
        let Some(bytes) = bytes else {
            self.line.extend_from_slice(b"null");
            return Ok(());
        };
        match kind {
            Kind::Json => {
                self.json_nulls += u64::from(bytes == b"null");
                // The text of a document has no line end outside of strings, and none inside.
                self.line.extend_from_slice(&bytes);
            }
            Kind::Bit => self.line.extend_from_slice(&bytes),
            // A number of JSON has no zero in front (ZEROFILL, YEAR 0000) and begins with a digit.
            Kind::Text if numeric && serde_json::from_slice::<serde_json::Number>(&bytes).is_ok() => {
                self.line.extend_from_slice(&bytes);
            }
            Kind::Text | Kind::Bytes => {
                let text = std::str::from_utf8(&bytes).map_err(|_| "the server sent a text that is not UTF-8")?;
                let text = serde_json::to_string(text).map_err(|e| e.to_string())?;
                self.line.extend_from_slice(text.as_bytes());
            }
        }
        Ok(())
    }
}
