//! Records to rows of an INSERT.
//!
//! What can be said without the server is said here: too many or too few fields, a broken quote, an encoding that is not
//! UTF-8, a member that no column has. A bad record names its column where one is at fault.

use super::columns::{self, Column, Table};
use super::fields::{self, BadField, Format};
use super::json::{self, Scalar};
use super::literal::{self, Binary, Kind, quoted};
use super::records::{Fault, Record};

pub struct Encoder {
    pub format: Format,
    pub null: Vec<u8>,
    pub binary: Binary,
    pub table: Table,
    pub columns: Vec<Column>,
    /// For each field of the file its column. With JSON lines: the columns that are written.
    pub targets: Vec<Option<usize>>,
    /// Members of JSON lines that no column has are left out, since the caller has named those that are taken.
    pub others_left_out: bool,
    /// A JSON string for a JSON column holds the document, and is none itself.
    pub documents_in_texts: bool,
}

/// Why a record is no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    pub column: Option<String>,
    pub reason: String,
}

impl Bad {
    pub fn whole(reason: impl Into<String>) -> Bad {
        Bad { column: None, reason: reason.into() }
    }
}

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.column {
            Some(column) => write!(f, "column '{column}': {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl Encoder {
    /// `INSERT INTO t (a, b) VALUES ` or the like.
    pub fn beginning(&self, verb: &str) -> String {
        let names: Vec<String> = self.targets.iter().flatten().map(|at| quoted(&self.columns[*at].name)).collect();
        format!("{verb} INTO {} ({}) VALUES ", self.table.sql(), names.join(", "))
    }

    /// Appends `(…)`; `false`: the record is an empty line, which is no row.
    pub fn push_row(&self, record: &Record, text: &[u8], out: &mut String) -> Result<bool, Bad> {
        match &record.fault {
            Some(Fault::TooLong) => return Err(Bad::whole("the line is longer than the server's max_allowed_packet")),
            Some(Fault::OpenQuote) => return Err(Bad::whole("a quote begins here that is not closed")),
            Some(Fault::Value { column, reason }) => {
                return Err(Bad { column: Some(self.columns[*column].name.clone()), reason: reason.to_string() });
            }
            None => {}
        }
        let empty = text.is_empty() || (self.format == Format::Jsonl && text.trim_ascii().is_empty());
        if empty && (self.format != Format::Tsv || self.targets.len() > 1) {
            return Ok(false);
        }
        let before = out.len();
        let pushed = match self.format {
            Format::Jsonl => self.push_object(text, out),
            Format::Csv { .. } | Format::Tsv => self.push_fields(record, text, out),
        };
        if pushed.is_err() {
            out.truncate(before);
        }
        pushed.map(|()| true)
    }

    fn column_of(&self, field: usize) -> Option<&Column> {
        self.targets.get(field).copied().flatten().map(|at| &self.columns[at])
    }

    fn push_fields(&self, record: &Record, text: &[u8], out: &mut String) -> Result<(), Bad> {
        out.push('(');
        let mut first = true;
        // A wrong number of fields says more than a value that is in a wrong column for it.
        let mut bad = None;
        let fields = fields::each::<BadField>(text, self.format, &self.null, |number, field| {
            let Some(column) = self.column_of(number) else { return Ok(()) };
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            if let Err(reason) = literal::push_field(out, &field, column.kind, self.binary) {
                bad.get_or_insert_with(|| Bad { column: Some(column.name.clone()), reason });
            }
            Ok(())
        });
        out.push(')');
        let wanted = self.targets.len();
        match fields {
            Ok(fields) if fields == wanted => bad.map_or(Ok(()), Err),
            Ok(fields) => {
                let cut =
                    if record.cut && fields < wanted { "; the file ends in this line: is it cut off?" } else { "" };
                let excess = if fields > wanted { "too many" } else { "too few" };
                Err(Bad::whole(format!("{excess} fields: {fields}, and {wanted} are wanted{cut}")))
            }
            Err(bad) => Err(Bad {
                column: self.column_of(bad.field).map(|c| c.name.clone()),
                reason: format!("field {}: {}", bad.field + 1, bad.what),
            }),
        }
    }

    fn push_object(&self, text: &[u8], out: &mut String) -> Result<(), Bad> {
        let line = std::str::from_utf8(text).map_err(|e| {
            Bad::whole(format!("byte 0x{:02X} is not UTF-8; convert the file (iconv)", text[e.valid_up_to()]))
        })?;
        // Members come in any order, the columns of the statement in theirs.
        let mut cells: Vec<Option<String>> = vec![None; self.targets.len()];
        json::each(line, Bad::whole, |name, value| {
            let Some(at) = columns::position(name, &self.columns) else {
                return match self.others_left_out {
                    true => Ok(()),
                    false => Err(Bad::whole(columns::unknown(name, &self.columns, &self.table))),
                };
            };
            let column = &self.columns[at];
            let Some(cell) = self.targets.iter().position(|target| *target == Some(at)) else {
                return match self.others_left_out {
                    true => Ok(()),
                    false => Err(Bad {
                        column: Some(column.name.clone()),
                        reason: "it is generated and takes no values".into(),
                    }),
                };
            };
            let mut literal = String::new();
            match value.scalar() {
                Scalar::Text(document) if self.documents_in_texts && column.kind == Kind::Json => {
                    literal::push_text(&mut literal, &document);
                }
                _ => literal::push_json(&mut literal, value, column.kind, self.binary)
                    .map_err(|reason| Bad { column: Some(column.name.clone()), reason })?,
            }
            cells[cell] = Some(literal);
            Ok(())
        })?;
        out.push('(');
        for (at, cell) in cells.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(cell.as_deref().unwrap_or("DEFAULT"));
        }
        out.push(')');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoder(format: Format) -> Encoder {
        let column = |name: &str, kind| Column { name: name.into(), kind, generated: false };
        Encoder {
            format,
            null: b"\\N".to_vec(),
            binary: Binary::Hex,
            table: Table { database: "d".into(), name: "t".into() },
            columns: vec![column("id", Kind::Text), column("doc", Kind::Json), column("b", Kind::Bytes)],
            targets: vec![Some(0), Some(1), Some(2)],
            others_left_out: false,
            documents_in_texts: false,
        }
    }

    fn row(format: Format, text: &[u8]) -> Result<String, String> {
        let record = Record { begin: 0, end: text.len(), line: 1, fault: None, cut: true };
        let mut out = String::new();
        match encoder(format).push_row(&record, text, &mut out) {
            Ok(true) => Ok(out),
            Ok(false) => Ok("no row".into()),
            Err(bad) => {
                assert_eq!(out, "");
                Err(bad.to_string())
            }
        }
    }

    #[test]
    fn rows_of_fields() {
        assert_eq!(row(Format::CSV, b"1,\"{}\",\\N"), Ok("('1','{}',NULL)".into()));
        assert_eq!(row(Format::CSV, b""), Ok("no row".into()));
        assert_eq!(row(Format::Tsv, b"it's\t[]\t0xFf"), Ok("('it''s','[]',x'Ff')".into()));
        assert!(row(Format::CSV, b"1,2,3,4").expect_err("4").starts_with("too many fields: 4, and 3 are wanted"));
        assert!(row(Format::CSV, b"1,2").expect_err("2").contains("is it cut off?"));
        assert!(row(Format::CSV, b"\xE4,2,").expect_err("latin1").starts_with("column 'id': byte 0xE4 is not UTF-8"));
        assert!(row(Format::CSV, b"1,\"a\"b,").expect_err("quote").starts_with("column 'doc': field 2: there is text"));
        assert!(row(Format::CSV, b"1,2,x").expect_err("bytes").contains("column 'b': "));
    }

    #[test]
    fn rows_of_objects() {
        assert_eq!(row(Format::Jsonl, br#"{"doc":{"a":null},"ID":7}"#), Ok("('7','{\"a\":null}',DEFAULT)".into()));
        assert_eq!(row(Format::Jsonl, br#"{"doc":null,"b":"0A"}"#), Ok("(DEFAULT,NULL,x'0A')".into()));
        assert_eq!(row(Format::Jsonl, b" "), Ok("no row".into()));
        assert!(row(Format::Jsonl, br#"{"dok":1}"#).expect_err("unknown").contains("did you mean 'doc'?"));
        assert!(row(Format::Jsonl, br#"{"b":1}"#).expect_err("bytes").contains("JSON string"));
        assert!(row(Format::Jsonl, b"{\"id\":\"\xE4\"}").expect_err("latin1").contains("0xE4"));
    }
}
