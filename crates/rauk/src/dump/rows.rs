//! Rows as INSERT statements of many rows.
//!
//! A statement ends before it would have more than 1 MiB; a row that is larger has one for itself, and where that is
//! more than the target takes by default, a comment and a line on standard error say so. Columns are named, so that
//! generated ones are left out and an order of columns does not matter. FLOAT and DOUBLE are read as DOUBLE, whose text
//! gives the same value back; bytes, BIT and geometries are hexadecimal literals; everything else is its text, in
//! UTF-8, with MySQL's escapes. An ENUM of the number 0, which MySQL stores for a value that is no member, is written
//! in a statement of a session that is not strict: that is the only way in which such a value comes to be.

use super::output::Output;
use super::target::Target;
use super::translate::{Definition, Form};
use crate::import::literal::quoted;
use crate::import::server::told;
use mysql::prelude::Queryable;
use mysql::{Conn, Value};

/// A statement of several rows has at most so many bytes.
const STATEMENT: usize = 1 << 20;

#[derive(Debug, Default)]
pub struct Written {
    pub rows: u64,
    /// Bytes of the longest statement.
    pub longest: usize,
}

pub fn write(
    connection: &mut Conn,
    out: &mut Output,
    table: &Definition,
    condition: Option<&str>,
    modes: &str,
    target: Target,
) -> Result<Written, String> {
    let about = |e: &mysql::Error| format!("table {}.{}: {}", table.database, table.name, told(e));
    let mut statements = Statements::new(out, table, modes, target);
    let rows = connection.query_iter(selection(table, condition)).map_err(|e| about(&e))?;
    for row in rows {
        let values = row.map_err(|e| about(&e))?.unwrap_raw();
        statements.row(values, table)?;
    }
    statements.end()?;
    Ok(statements.written)
}

fn selection(table: &Definition, condition: Option<&str>) -> String {
    let selected: Vec<String> = table
        .columns
        .iter()
        .map(|column| match column.form {
            Form::Float => format!("{} * 1e0", quoted(&column.name)),
            _ => quoted(&column.name),
        })
        .collect();
    let selected = if selected.is_empty() { "NULL".to_string() } else { selected.join(", ") };
    let mut text = format!("SELECT {selected} FROM {}.{}", quoted(&table.database), quoted(&table.name));
    if let Some(condition) = condition {
        text += &format!(" WHERE ({condition})");
    }
    if !table.order.is_empty() {
        let order: Vec<String> = table.order.iter().map(|name| quoted(name)).collect();
        text += &format!(" ORDER BY {}", order.join(", "));
    }
    text
}

struct Statements<'a> {
    out: &'a mut Output,
    modes: &'a str,
    target: Target,
    beginning: Vec<u8>,
    /// The statement that is being filled.
    statement: Vec<u8>,
    rows: u64,
    /// Whether it has a value that strict sessions refuse.
    relaxed: bool,
    row: Vec<u8>,
    written: Written,
}

impl<'a> Statements<'a> {
    fn new(out: &'a mut Output, table: &Definition, modes: &'a str, target: Target) -> Statements<'a> {
        let names: Vec<String> = table.columns.iter().map(|column| quoted(&column.name)).collect();
        let beginning = format!("INSERT INTO {} ({}) VALUES", quoted(&table.name), names.join(",")).into_bytes();
        let statement = beginning.clone();
        Statements {
            out,
            modes,
            target,
            beginning,
            statement,
            rows: 0,
            relaxed: false,
            row: Vec::new(),
            written: Written::default(),
        }
    }

    fn row(&mut self, values: Vec<Option<Value>>, table: &Definition) -> Result<(), String> {
        self.row.clear();
        self.row.extend_from_slice(b"\n(");
        let mut relaxed = false;
        for (at, (value, column)) in values.into_iter().zip(&table.columns).enumerate() {
            if at > 0 {
                self.row.push(b',');
            }
            match value.unwrap_or(Value::NULL) {
                Value::NULL => self.row.extend_from_slice(b"NULL"),
                Value::Bytes(bytes) => {
                    relaxed |= column.form == Form::Enum && bytes.is_empty();
                    push(&mut self.row, &bytes, column.form);
                }
                other => return Err(format!("the server sent a value of an unknown form: {other:?}")),
            }
        }
        self.row.push(b')');
        if self.rows > 0 && (relaxed != self.relaxed || self.statement.len() + self.row.len() + 2 > STATEMENT) {
            self.end()?;
        }
        self.relaxed = relaxed;
        if self.rows > 0 {
            self.statement.push(b',');
        }
        self.statement.extend_from_slice(&self.row);
        self.rows += 1;
        Ok(())
    }

    /// Writes the statement, if it has rows.
    fn end(&mut self) -> Result<(), String> {
        if self.rows == 0 {
            return Ok(());
        }
        let length = self.statement.len();
        if length > self.target.packet() {
            let note = format!("-- max_allowed_packet must be more than {length} for this statement:\n");
            self.out.put(note.as_bytes())?;
        }
        self.statement.extend_from_slice(b";\n");
        if self.relaxed {
            let modes = self.modes.replace("STRICT_TRANS_TABLES,STRICT_ALL_TABLES,", "");
            self.out.put(format!("SET SQL_MODE = '{modes}';\n").as_bytes())?;
        }
        self.out.put(&self.statement)?;
        if self.relaxed {
            self.out.put(format!("SET SQL_MODE = '{}';\n", self.modes).as_bytes())?;
        }
        self.written.rows += self.rows;
        self.written.longest = self.written.longest.max(length);
        self.rows = 0;
        self.statement.truncate(self.beginning.len());
        // A large row is rare; its memory is not kept.
        self.statement.shrink_to(2 * STATEMENT);
        self.row.shrink_to(STATEMENT);
        Ok(())
    }
}

fn push(out: &mut Vec<u8>, bytes: &[u8], form: Form) {
    match form {
        Form::Number => out.extend_from_slice(bytes),
        Form::Float => {
            out.extend_from_slice(bytes);
            // Without an exponent it would be an integer, which has no zero below zero.
            if bytes == b"-0" {
                out.extend_from_slice(b"e0");
            }
        }
        Form::Bytes => push_bytes(out, bytes),
        // The server sends UTF-8, as it was told to.
        Form::Text | Form::Enum if std::str::from_utf8(bytes).is_err() => push_bytes(out, bytes),
        Form::Text | Form::Enum => push_text(out, bytes),
    }
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.reserve(bytes.len() * 2 + 3);
    out.extend_from_slice(b"x'");
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
    out.push(b'\'');
}

/// Line ends are escaped, so that a row is a line, and so is what programs take for the end of a file.
fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'\'');
    let mut from = 0;
    for (at, byte) in text.iter().enumerate() {
        let escaped: &[u8] = match byte {
            b'\'' => b"\\'",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            0 => b"\\0",
            0x1a => b"\\Z",
            _ => continue,
        };
        out.extend_from_slice(&text[from..at]);
        out.extend_from_slice(escaped);
        from = at + 1;
    }
    out.extend_from_slice(&text[from..]);
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(bytes: &[u8], form: Form) -> String {
        let mut out = Vec::new();
        push(&mut out, bytes, form);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn literals() {
        assert_eq!(literal(b"12.50", Form::Number), "12.50");
        assert_eq!(literal(b"-0", Form::Float), "-0e0");
        assert_eq!(literal(b"1e300", Form::Float), "1e300");
        assert_eq!(literal(b"", Form::Bytes), "x''");
        assert_eq!(literal(b"\x00\xff", Form::Bytes), "x'00FF'");
        assert_eq!(literal("it's \\ \"ä\"\0\n\r\x1a".as_bytes(), Form::Text), "'it\\'s \\\\ \"ä\"\\0\\n\\r\\Z'");
        assert_eq!(literal(b"NULL", Form::Text), "'NULL'");
        assert_eq!(literal(b"\xff", Form::Text), "x'FF'");
    }
}
