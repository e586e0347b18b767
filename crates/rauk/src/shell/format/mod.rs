//! How results look: `--format` and the command `format`.
//!
//! | format | for | NULL | memory |
//! |---|---|---|---|
//! | table | people | `NULL`; the text NULL is `'NULL'` | the first rows, which decide how wide columns are |
//! | vertical | people, wide rows | as table | a row |
//! | csv | RFC 4180 | nothing; an empty text is `""` | a row |
//! | tsv | LOAD DATA with its defaults | `\N` | a row |
//! | json | an array of objects | `null` | a row |
//! | markdown | documents | as table | a row |
//!
//! A [`Printer`] takes the columns of a result, its rows one by one, and its end. Values come as the text protocol sends
//! them. Bytes that are no text are shown in hexadecimal, everywhere.

mod machine;
mod table;

use mysql::Value;
use mysql::consts::{ColumnFlags, ColumnType};
use std::io::{self, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Table,
    Vertical,
    Csv,
    Tsv,
    Json,
    Markdown,
}

pub const FORMATS: &[(&str, Format)] = &[
    ("table", Format::Table),
    ("vertical", Format::Vertical),
    ("csv", Format::Csv),
    ("tsv", Format::Tsv),
    ("json", Format::Json),
    ("markdown", Format::Markdown),
];

impl Format {
    pub fn by_name(name: &str) -> Option<Format> {
        FORMATS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, format)| *format)
    }

    pub fn name(self) -> &'static str {
        FORMATS.iter().find(|(_, format)| *format == self).expect("all are there").0
    }

    /// Whether counts and times belong to it: what programs read has rows only.
    pub fn is_for_people(self) -> bool {
        matches!(self, Format::Table | Format::Vertical)
    }
}

/// What is known of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Number,
    /// A document of JSON, as it is.
    Json,
    /// Bytes that are never text.
    Bits,
}

impl Column {
    pub fn of(column: &mysql::Column) -> Column {
        let kind = match column.column_type() {
            ColumnType::MYSQL_TYPE_TINY
            | ColumnType::MYSQL_TYPE_SHORT
            | ColumnType::MYSQL_TYPE_INT24
            | ColumnType::MYSQL_TYPE_LONG
            | ColumnType::MYSQL_TYPE_LONGLONG
            | ColumnType::MYSQL_TYPE_FLOAT
            | ColumnType::MYSQL_TYPE_DOUBLE
            | ColumnType::MYSQL_TYPE_DECIMAL
            | ColumnType::MYSQL_TYPE_NEWDECIMAL
            | ColumnType::MYSQL_TYPE_YEAR
                if !column.flags().contains(ColumnFlags::ENUM_FLAG) =>
            {
                Kind::Number
            }
            ColumnType::MYSQL_TYPE_JSON => Kind::Json,
            ColumnType::MYSQL_TYPE_BIT | ColumnType::MYSQL_TYPE_GEOMETRY => Kind::Bits,
            _ => Kind::Text,
        };
        // The name of an expression is its text, with its line breaks.
        let name = column.name_str().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Column { name, kind }
    }
}

/// A value as text; `None` is NULL.
pub type Cell = Option<String>;

/// A value of the text protocol. Programs get control characters as they are; a terminal would obey them.
pub fn cell(value: Value, kind: Kind, for_people: bool) -> Cell {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) if kind == Kind::Bits => Some(hexadecimal(&bytes)),
        Value::Bytes(bytes) => Some(match String::from_utf8(bytes) {
            Ok(text) if !for_people || !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r')) => {
                text
            }
            Ok(text) => hexadecimal(text.as_bytes()),
            Err(error) => hexadecimal(error.as_bytes()),
        }),
        other => Some(other.as_sql(true).trim_matches('\'').into()),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(2 + bytes.len() * 2);
    text.push_str("0x");
    for byte in bytes {
        write!(text, "{byte:02X}").expect("a String takes all");
    }
    text
}

/// For people: NULL bare, and the text that looks like it in quotes.
fn for_people(cell: &Cell) -> std::borrow::Cow<'_, str> {
    match cell {
        None => "NULL".into(),
        // With quotes around it already it gets one more pair, so that every text reads in one way only.
        Some(text) if text.trim_matches('\'') == "NULL" => format!("'{text}'").into(),
        Some(text) => text.into(),
    }
}

/// The rows of one result.
pub struct Printer<'a> {
    out: &'a mut dyn Write,
    format: Format,
    /// Names of the columns in front of the rows.
    header: bool,
    columns: Vec<Column>,
    rows: u64,
    table: table::Table,
}

impl<'a> Printer<'a> {
    pub fn new(out: &'a mut dyn Write, format: Format, header: bool, columns: Vec<Column>) -> Printer<'a> {
        let columns = if format == Format::Json { machine::different_names(columns) } else { columns };
        Printer { out, format, header, columns, rows: 0, table: table::Table::default() }
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn row(&mut self, cells: Vec<Cell>) -> io::Result<()> {
        if self.rows == 0 {
            self.begin()?;
        }
        self.rows += 1;
        match self.format {
            Format::Table => self.table.row(self.out, &self.columns, self.header, cells),
            Format::Vertical => table::vertical(self.out, &self.columns, self.rows, &cells),
            Format::Csv => machine::csv_row(self.out, &cells),
            Format::Tsv => machine::tsv_row(self.out, &cells),
            Format::Json => machine::json_row(self.out, &self.columns, self.rows == 1, &cells),
            Format::Markdown => machine::markdown_row(self.out, &cells),
        }
    }

    /// In front of the first row, or of the end.
    fn begin(&mut self) -> io::Result<()> {
        let names = || self.columns.iter().map(|c| Some(c.name.clone())).collect::<Vec<_>>();
        match self.format {
            Format::Csv if self.header => machine::csv_row(self.out, &names()),
            Format::Tsv if self.header => machine::tsv_row(self.out, &names()),
            Format::Markdown if self.header => machine::markdown_header(self.out, &self.columns),
            Format::Json => self.out.write_all(b"["),
            _ => Ok(()),
        }
    }

    pub fn end(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            self.begin()?;
        }
        match self.format {
            Format::Table => self.table.end(self.out, &self.columns, self.header),
            Format::Json if self.rows == 0 => self.out.write_all(b"]\n"),
            Format::Json => self.out.write_all(b"\n]\n"),
            // Another table could follow.
            Format::Markdown => self.out.write_all(b"\n"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
