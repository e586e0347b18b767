//! The flags of `rauk import`, and what they mean together.

use super::fields::{FileFormat, Format};
use super::literal::Binary;
use super::load::Duplicates;
use super::server::{Place, Session};
use crate::client::arguments;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::PathBuf;

pub struct Options {
    pub place: Place,
    pub session: Session,
    pub table: Option<String>,
    pub database: Option<String>,
    pub threads: usize,
    pub format: Option<FileFormat>,
    pub delimiter: Option<u8>,
    pub columns: Option<Vec<String>>,
    pub null: Vec<u8>,
    pub binary: Binary,
    pub no_header: bool,
    pub rejects: Option<PathBuf>,
    pub most_rejects: Option<u64>,
    pub create: bool,
    pub restart: bool,
    pub check: bool,
    pub users: bool,
    pub duplicates: Duplicates,
    pub sources: Vec<String>,
}

const THREADS: &str = "4";

fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

pub fn command() -> Command {
    let command = Command::new("import")
        .about("Load files (CSV, TSV, JSON lines, Parquet, dumps) or databases of a MySQL or MariaDB server")
        .arg(Arg::new("source").value_name("SOURCE").num_args(1..).required(true).help(
            "FILE.csv, .tsv, .jsonl, .parquet, .sql, a directory of DB.TABLE.csv, or mysql://USER:PASSWORD@HOST:PORT[/DATABASE]",
        ))
        .arg(text("table", "DB.TABLE", "Table; by default named after the file"))
        .arg(text("database", "NAME", "Database of tables without one").short('D'))
        .arg(
            text("format", "FORMAT", "By default by the file's ending").value_parser(["csv", "tsv", "jsonl", "parquet"]),
        )
        .arg(text("delimiter", "C", "Between fields of CSV, one character of ASCII or TAB").value_parser(delimiter))
        .arg(text("columns", "A,B,…", "Columns of the file's fields, - for none, in place of the header's names"))
        .arg(flag("no-header", "The first line is a row"))
        .arg(text("null", "TEXT", "What stands for NULL, without quotes").default_value("\\N"))
        .arg(
            text("binary", "FORM", "How files write bytes")
                .value_parser(["hex", "base64", "text"])
                .default_value("hex"),
        )
        .arg(
            text("on-duplicate", "WHAT", "What becomes of a row whose key exists")
                .value_parser(["error", "ignore", "replace"])
                .default_value("error"),
        )
        .arg(text("rejects", "FILE", "Write bad lines there and go on; else the first one ends the import"))
        .arg(
            text("max-rejects", "N", "Bad lines that end the import all the same")
                .value_parser(value_parser!(u64))
                .requires("rejects"),
        )
        .arg(flag("create", "Create a table that does not exist; types are guessed, or those of Parquet"))
        .arg(flag("restart", "Forget the progress of an earlier import of the file"))
        .arg(flag("check", "List what Rauk does not take of a dump or server, and load nothing"))
        .arg(flag("users", "With mysql://: users and their privileges too"))
        .arg(text("threads", "N", "Connections").value_parser(value_parser!(u64).range(1..=256)).default_value(THREADS))
        .arg(text("time-zone", "ZONE", "Of TIMESTAMP values, by default the server's"))
        .arg(flag("zero-dates", "Take dates such as 0000-00-00"))
        .arg(flag("skip-foreign-keys", "Do not check foreign keys (files of tables that refer to each other)"));
    arguments::with_connection(command)
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"TAB" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r' | 0) => Ok(*byte),
        _ => Err("wanted: one character of ASCII that is no quote, or TAB".into()),
    }
}

pub fn binary(name: &str) -> Binary {
    match name {
        "base64" => Binary::Base64,
        "text" => Binary::Text,
        _ => Binary::Hex,
    }
}

pub fn options(arguments: &ArgMatches) -> Result<Options, String> {
    let get = |name: &str| arguments.get_one::<String>(name).cloned();
    let chosen = |name: &str| get(name).expect("has a default");
    Ok(Options {
        place: Place(arguments::options(arguments)?),
        session: Session {
            zero_dates: arguments.get_flag("zero-dates"),
            skip_foreign_keys: arguments.get_flag("skip-foreign-keys"),
            time_zone: get("time-zone"),
        },
        table: get("table"),
        database: get("database"),
        threads: *arguments.get_one::<u64>("threads").expect("has a default") as usize,
        format: get("format").and_then(|name| FileFormat::by_name(&name)),
        delimiter: arguments.get_one::<u8>("delimiter").copied(),
        columns: get("columns").map(|list| list.split(',').map(|name| name.trim().to_string()).collect()),
        null: chosen("null").into_bytes(),
        binary: binary(&chosen("binary")),
        no_header: arguments.get_flag("no-header"),
        rejects: get("rejects").map(PathBuf::from),
        most_rejects: arguments.get_one::<u64>("max-rejects").copied(),
        create: arguments.get_flag("create"),
        restart: arguments.get_flag("restart"),
        check: arguments.get_flag("check"),
        users: arguments.get_flag("users"),
        duplicates: match chosen("on-duplicate").as_str() {
            "ignore" => Duplicates::Ignore,
            "replace" => Duplicates::Replace,
            _ => Duplicates::Error,
        },
        sources: arguments.get_many::<String>("source").into_iter().flatten().cloned().collect(),
    })
}

impl Options {
    pub fn has_header(&self, format: Format) -> bool {
        format != Format::Jsonl && !self.no_header
    }

    /// How a file is read. An import goes on only where this is the same.
    pub fn reading(&self, format: FileFormat) -> String {
        let FileFormat::Text(format) = format else {
            let columns = self.columns.as_ref().map(|columns| format!(" --columns {}", columns.join(",")));
            return format!("--format parquet{}", columns.unwrap_or_default());
        };
        let mut text = format!("--format {} --null '{}'", format.name(), String::from_utf8_lossy(&self.null));
        if let Format::Csv { delimiter } = format {
            text += &format!(" --delimiter '{}'", delimiter.escape_ascii());
        }
        text += match self.binary {
            Binary::Hex => "",
            Binary::Base64 => " --binary base64",
            Binary::Text => " --binary text",
        };
        if self.no_header {
            text += " --no-header";
        }
        if let Some(columns) = &self.columns {
            text += &format!(" --columns {}", columns.join(","));
        }
        text
    }
}
