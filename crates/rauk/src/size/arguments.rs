//! What `rauk size` is asked: numbers of rows, widths, nodes.
//!
//! Everything that can be wrong without a server is refused here, before one is started.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use rauk_types::size;
use std::path::PathBuf;

/// More rows than any cluster holds; the arithmetic stays exact below.
const MOST_ROWS: f64 = 1e13;
/// The longest value of a TEXT or BLOB column.
const WIDEST: u64 = 16 << 20;

/// A table, as `t` or `db.t`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub database: Option<String>,
    pub table: String,
}

impl Name {
    fn parse(text: &str) -> Option<Name> {
        let (database, table) = match text.split_once('.') {
            None => (None, text),
            Some((database, table)) => (Some(database), table),
        };
        let bare = |name: &str| Some(name.trim_matches('`').to_string()).filter(|name| !name.is_empty());
        Some(Name { database: database.map(bare).map_or(Some(None), |d| d.map(Some))?, table: bare(table)? })
    }

    pub fn is(&self, database: &str, table: &str) -> bool {
        self.table == table && self.database.as_ref().is_none_or(|own| own == database)
    }

    pub fn shown(&self) -> String {
        self.database.as_ref().map_or_else(|| self.table.clone(), |database| format!("{database}.{}", self.table))
    }
}

/// `--rows t=1e7`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    pub of: Name,
    pub rows: u64,
}

/// `--width t.c=40` or `--width t.c=36..40`, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Width {
    pub of: Name,
    pub column: String,
    pub least: u64,
    pub most: Option<u64>,
}

pub struct Options {
    pub schema: PathBuf,
    pub rows: Vec<Rows>,
    pub widths: Vec<Width>,
    pub replicas: u64,
    pub node_memory: Option<u64>,
    pub partitions: Option<u16>,
    pub sample: u64,
}

fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

pub fn command() -> Command {
    Command::new("size")
        .about("Predict the memory that tables take, and the nodes that carry them")
        .arg(
            Arg::new("schema")
                .value_name("SCHEMA.sql")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("CREATE TABLE statements, or a dump; its rows are not read"),
        )
        .arg(
            text("rows", "TABLE=N", "How many rows a table will have: t=1e7, db.t=10M, t=10_000_000; once a table")
                .action(ArgAction::Append),
        )
        .arg(
            text(
                "width",
                "TABLE.COLUMN=BYTES",
                "How long the values of a text, blob or JSON column are: 40 (20 to 60), or 36..40 [default: half of VARCHAR(n), 64 at most; 200 for TEXT, BLOB, JSON]",
            )
            .action(ArgAction::Append),
        )
        .arg(
            text("replicas", "N", "Replicas of every row in the cluster")
                .value_parser(value_parser!(u64).range(1..=4))
                .default_value("1"),
        )
        .arg(text("node-memory", "SIZE", "Memory limit of a node, as 16GiB: says how many nodes are needed"))
        .arg(
            text("partitions", "N", "Partitions of the server or cluster [default: as one on this machine has]")
                .value_parser(value_parser!(u16).range(1..=256)),
        )
        .arg(
            text("sample", "N", "Rows that are measured a table, at most; 64 MiB of values at most")
                .value_parser(value_parser!(u64).range(1000..=2_000_000))
                .default_value("100000"),
        )
}

pub fn options(arguments: &ArgMatches) -> Result<Options, String> {
    let all = |name: &str| arguments.get_many::<String>(name).into_iter().flatten();
    let rows: Vec<Rows> = all("rows").map(|text| parse_rows(text)).collect::<Result<_, _>>()?;
    if rows.is_empty() {
        return Err("no table has a number of rows; give one for each that counts: --rows t=1e7 --rows db.u=5M".into());
    }
    let node_memory = arguments.get_one::<String>("node-memory").map(|text| {
        let bytes = size::parse(text).filter(|bytes| *bytes >= 1 << 20);
        bytes.ok_or_else(|| format!("--node-memory: '{text}' is no memory limit; give a size such as 16GiB"))
    });
    Ok(Options {
        schema: arguments.get_one::<PathBuf>("schema").expect("required").clone(),
        rows,
        widths: all("width").map(|text| parse_width(text)).collect::<Result<_, _>>()?,
        replicas: *arguments.get_one::<u64>("replicas").expect("has a default"),
        node_memory: node_memory.transpose()?,
        partitions: arguments.get_one::<u16>("partitions").copied(),
        sample: *arguments.get_one::<u64>("sample").expect("has a default"),
    })
}

fn parse_rows(text: &str) -> Result<Rows, String> {
    let way_out = "give it as --rows t=1e7, t=10_000_000, t=10M or db.t=10M";
    let parts = text.rsplit_once('=').and_then(|(name, count)| Some((Name::parse(name.trim())?, count)));
    let Some((of, count)) = parts else {
        return Err(format!("--rows: '{text}' names no table and number; {way_out}"));
    };
    let rows = number(count).ok_or_else(|| format!("--rows: '{count}' is no number of rows; {way_out}"))?;
    Ok(Rows { of, rows })
}

/// `10000000`, `10_000_000`, `1e7`, `1.5e6`, `10M`, `10k`, `2G`: units are decimal, since rows are counted.
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, factor) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 1e3),
        'm' | 'M' => (&text[..text.len() - 1], 1e6),
        'g' | 'G' | 'b' | 'B' => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    let begins = digits.starts_with(|c: char| c.is_ascii_digit()) && digits.ends_with(|c: char| c.is_ascii_digit());
    let known = digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '_' | '.' | 'e' | 'E' | '+'));
    let value = digits.replace('_', "").parse::<f64>().ok().filter(|_| begins && known)? * factor;
    ((1.0..=MOST_ROWS).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}

fn parse_width(text: &str) -> Result<Width, String> {
    let bad =
        || format!("--width: '{text}' is none; give bytes of a column as --width t.c=40, db.t.c=40 or t.c=36..40");
    let (name, width) = text.rsplit_once('=').ok_or_else(bad)?;
    let (table, column) = name.trim().rsplit_once('.').ok_or_else(bad)?;
    let of = Name::parse(table).ok_or_else(bad)?;
    let bytes = |text: &str| text.trim().parse::<u64>().ok().filter(|bytes| *bytes <= WIDEST);
    let (least, most) = match width.split_once("..") {
        None => (bytes(width).ok_or_else(bad)?, None),
        Some((least, most)) => (bytes(least).ok_or_else(bad)?, Some(bytes(most).ok_or_else(bad)?)),
    };
    if column.is_empty() || most.is_some_and(|most| most < least) {
        return Err(bad());
    }
    Ok(Width { of, column: column.trim_matches('`').into(), least, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_rows() {
        for (text, rows) in [
            ("7", 7),
            ("1e7", 10_000_000),
            ("1E+7", 10_000_000),
            ("1.5e6", 1_500_000),
            ("10_000_000", 10_000_000),
            ("10M", 10_000_000),
            ("2.5k", 2_500),
            ("3G", 3_000_000_000),
        ] {
            assert_eq!(number(text), Some(rows), "{text}");
        }
        for text in ["", "M", "0", "-5", "1.5", "1e99", "ten", "inf", "NaN", "_1", "1_", "0x10", "1 000", "1e-3", "é"]
        {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn tables_and_columns() {
        let name =
            |database: Option<&str>, table: &str| Name { database: database.map(Into::into), table: table.into() };
        assert_eq!(parse_rows("t=1k"), Ok(Rows { of: name(None, "t"), rows: 1000 }));
        assert_eq!(parse_rows("`d`.`t`=2"), Ok(Rows { of: name(Some("d"), "t"), rows: 2 }));
        for text in ["t", "=5", ".t=5", "d.=5", "t=", "t=x"] {
            let error = parse_rows(text).expect_err(text);
            assert!(error.starts_with("--rows: '") && error.contains("give it as --rows t=1e7"), "{error}");
        }
        let width = Width { of: name(None, "t"), column: "c".into(), least: 40, most: None };
        assert_eq!(parse_width("t.c=40"), Ok(width.clone()));
        assert_eq!(
            parse_width("d.t.c=3..9"),
            Ok(Width { of: name(Some("d"), "t"), least: 3, most: Some(9), ..width.clone() })
        );
        for text in ["t.c", "c=4", "t.c=x", "t.c=9..3", "t.c=99999999999", "t.=4", ".c=4"] {
            assert!(parse_width(text).is_err(), "{text}");
        }
    }
}
