//! What a server said to a statement, as a client of the text protocol sees it.

use mysql::consts::{ColumnFlags, ColumnType};
use mysql::prelude::Queryable;
use mysql::{Conn, Value};

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Rows {
        columns: Vec<Column>,
        rows: Vec<Row>,
        warnings: u16,
    },
    Done {
        affected: u64,
        warnings: u16,
    },
    Error {
        code: u16,
        message: String,
    },
    /// The connection broke, or no answer came in time.
    Lost(String),
}

/// `None` is NULL.
pub type Row = Vec<Option<Vec<u8>>>;

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub family: Family,
    pub decimals: u8,
}

/// What kind of type a column of a result has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Integer,
    Decimal,
    Double,
    Text,
    Bytes,
    Date,
    Time,
    DateTime,
    Null,
    Other,
}

impl Outcome {
    pub fn of(connection: &mut Conn, sql: &str) -> Outcome {
        match run(connection, sql) {
            Ok(outcome) => outcome,
            Err(mysql::Error::MySqlError(error)) => Outcome::Error { code: error.code, message: error.message },
            Err(other) => Outcome::Lost(other.to_string()),
        }
    }

    pub fn error_code(&self) -> Option<u16> {
        match self {
            Outcome::Error { code, .. } => Some(*code),
            _ => None,
        }
    }

    pub fn rows(&self) -> Option<&[Row]> {
        match self {
            Outcome::Rows { rows, .. } => Some(rows),
            _ => None,
        }
    }

    /// A few lines for people.
    pub fn shown(&self) -> String {
        match self {
            Outcome::Rows { columns, rows, warnings } => {
                let types: Vec<String> = columns.iter().map(|column| format!("{:?}", column.family)).collect();
                let mut lines = vec![format!("{} rows ({}), {warnings} warnings", rows.len(), types.join(", "))];
                lines.extend(rows.iter().take(12).map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" | ")));
                if rows.len() > 12 {
                    lines.push("…".into());
                }
                lines.join("\n      ")
            }
            Outcome::Done { affected, warnings } => format!("{affected} rows affected, {warnings} warnings"),
            Outcome::Error { code, message } => format!("error {code}: {message}"),
            Outcome::Lost(message) => format!("lost: {message}"),
        }
    }
}

/// As a golden file has it.
pub fn cell(value: &Option<Vec<u8>>) -> String {
    match value {
        None => "NULL".into(),
        Some(bytes) if bytes.is_empty() => "(empty)".into(),
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn run(connection: &mut Conn, sql: &str) -> Result<Outcome, mysql::Error> {
    let mut result = connection.query_iter(sql)?;
    let columns: Vec<Column> = result.columns().as_ref().iter().map(column).collect();
    let mut rows = Vec::new();
    for row in result.by_ref() {
        let values = row?.unwrap_raw();
        rows.push(values.into_iter().map(|value| bytes(value.unwrap_or(Value::NULL))).collect());
    }
    drop(result);
    let warnings = connection.warnings();
    if columns.is_empty() {
        return Ok(Outcome::Done { affected: connection.affected_rows(), warnings });
    }
    Ok(Outcome::Rows { columns, rows, warnings })
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(bytes),
        other => Some(other.as_sql(true).into_bytes()),
    }
}

fn column(column: &mysql::Column) -> Column {
    use ColumnType::*;
    // 63 is the number of the collation `binary`.
    let is_binary = column.character_set() == 63;
    let family = match column.column_type() {
        MYSQL_TYPE_TINY | MYSQL_TYPE_SHORT | MYSQL_TYPE_LONG | MYSQL_TYPE_LONGLONG | MYSQL_TYPE_INT24
        | MYSQL_TYPE_YEAR => Family::Integer,
        MYSQL_TYPE_DECIMAL | MYSQL_TYPE_NEWDECIMAL => Family::Decimal,
        MYSQL_TYPE_FLOAT | MYSQL_TYPE_DOUBLE => Family::Double,
        MYSQL_TYPE_DATE | MYSQL_TYPE_NEWDATE => Family::Date,
        MYSQL_TYPE_TIME | MYSQL_TYPE_TIME2 => Family::Time,
        MYSQL_TYPE_DATETIME | MYSQL_TYPE_TIMESTAMP | MYSQL_TYPE_DATETIME2 | MYSQL_TYPE_TIMESTAMP2 => Family::DateTime,
        MYSQL_TYPE_NULL => Family::Null,
        MYSQL_TYPE_VARCHAR
        | MYSQL_TYPE_VAR_STRING
        | MYSQL_TYPE_STRING
        | MYSQL_TYPE_TINY_BLOB
        | MYSQL_TYPE_BLOB
        | MYSQL_TYPE_MEDIUM_BLOB
        | MYSQL_TYPE_LONG_BLOB => {
            if is_binary && column.flags().contains(ColumnFlags::BINARY_FLAG) {
                Family::Bytes
            } else {
                Family::Text
            }
        }
        _ => Family::Other,
    };
    Column { family, decimals: column.decimals() }
}
