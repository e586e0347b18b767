//! Expressions as a whole: a file of expressions with the values that MySQL gives, storing into columns, names and types.

use super::context::SystemVariables;
use super::*;
use crate::parse::{self, Mode};
use rauk_types::format::append_text;
use rauk_types::schema::ColumnDefault;
use rauk_types::{Column, ColumnId, Date, DateTime, Decimal, Time, TypeKind};
use std::sync::Arc;

struct Variables;

impl SystemVariables for Variables {
    fn get(&self, _: crate::parse::statement::Scope, name: &str) -> Result<Value, MysqlError> {
        match name {
            "version" => Ok(Value::from("8.0.36-rauk")),
            "autocommit" => Ok(Value::Int(1)),
            _ => Err(MysqlError::new(1193, format!("Unknown system variable '{name}'"))),
        }
    }
}

/// One table `t` with a column of every kind, and one row.
struct Table {
    columns: Vec<(&'static str, DataType, bool, Value)>,
}

impl Columns for Table {
    fn column(&self, _: usize, column: usize) -> ValueRef<'_> {
        self.columns[column].3.as_ref()
    }
}

impl super::Scope for &Table {
    fn resolve(&mut self, path: &[&str]) -> Result<Resolved, MysqlError> {
        let name = path[path.len() - 1];
        let (column, (_, ty, nullable, _)) = self
            .columns
            .iter()
            .enumerate()
            .find(|(_, c)| c.0.eq_ignore_ascii_case(name))
            .ok_or_else(|| MysqlError::new(1054, format!("Unknown column '{}' in 'field list'", path.join("."))))?;
        Ok(Resolved::Column { table: 0, column, ty: *ty, nullable: *nullable })
    }

    fn aggregate(&mut self, _: Aggregate) -> Result<usize, MysqlError> {
        Err(MysqlError::new(1111, "Invalid use of group function"))
    }

    fn inserted_value(&mut self, column: &str) -> Result<Resolved, MysqlError> {
        self.resolve(&[column])
    }

    fn default_value(&mut self, _: &[&str]) -> Result<Expr, MysqlError> {
        Ok(Expr::null())
    }
}

fn table() -> Table {
    let text = |collation| DataType::varchar(20, collation);
    let unsigned = |kind| DataType { unsigned: true, ..DataType::new(kind) };
    let fraction = |kind, scale| DataType { scale, ..DataType::new(kind) };
    Table {
        columns: vec![
            ("id", DataType::new(TypeKind::Int), false, Value::Int(42)),
            ("b", DataType::BIGINT, false, Value::Int(i64::MAX)),
            ("u", unsigned(TypeKind::BigInt), false, Value::UInt(5)),
            ("ti", DataType::new(TypeKind::TinyInt), true, Value::Int(-7)),
            ("d", DataType::decimal(10, 2), true, Value::Decimal(Decimal::new(1050, 2))),
            ("f", DataType::DOUBLE, true, Value::Double(1.5)),
            ("n", DataType::new(TypeKind::Int), true, Value::Null),
            ("s", text(Collation::Utf8mb40900AiCi), true, Value::from("Straße")),
            ("sb", text(Collation::Utf8mb4Bin), true, Value::from("abc")),
            ("sg", text(Collation::Utf8mb4GeneralCi), true, Value::from("ABC")),
            ("vb", DataType::varbinary(20), true, Value::Bytes(b"abc".to_vec())),
            (
                "dt",
                fraction(TypeKind::DateTime, 3),
                true,
                Value::DateTime(DateTime::from_parts(2024, 2, 29, 13, 14, 15, 678_000).unwrap()),
            ),
            ("da", DataType::new(TypeKind::Date), true, Value::Date(Date::new(2024, 2, 29).unwrap())),
            ("tm", DataType::new(TypeKind::Time), true, Value::Time(Time::new(true, 26, 30, 15, 0).unwrap())),
            ("ts", DataType::new(TypeKind::Timestamp), true, Value::Timestamp(1_700_000_000_000_000)),
            ("js", DataType::new(TypeKind::Json), true, Value::from("{\"a\": 1}")),
        ],
    }
}

fn context() -> Context {
    let mut context = Context::new(Arc::new(Variables));
    // 2024-03-10 12:34:56.789012 UTC
    context.now_micros = 1_710_074_096_789_012;
    context.current_database = Some("test".into());
    context.connection_id = 7;
    context.user = "u@localhost".into();
    context.current_user = "u@%".into();
    context
}

fn bound(sql: &str, bind: &BindContext) -> Result<Expr, MysqlError> {
    let parsed = parse::parse_expression(sql, Mode::default())?;
    super::bind(&parsed, &mut &table(), bind)
}

fn evaluated(sql: &str, context: &mut Context) -> Result<(Value, DataType), MysqlError> {
    let bind = BindContext { collation: context.collation, sql_mode: context.sql_mode, parameters: vec![] };
    let expr = bound(sql, &bind)?;
    Ok((expr.eval(&table(), context)?, expr.ty))
}

/// A value as a client sees it: text, bytes that are no text in hexadecimal, NULL.
fn printed(value: &Value, ty: &DataType) -> String {
    if value.is_null() {
        return "NULL".into();
    }
    let mut out = Vec::new();
    append_text(value.as_ref(), ty, &mut out);
    String::from_utf8(out).unwrap_or_else(|e| e.as_bytes().iter().map(|b| format!("\\x{b:02X}")).collect())
}

fn shown(sql: &str) -> String {
    match evaluated(sql, &mut context()) {
        Ok((value, ty)) => printed(&value, &ty),
        Err(error) => format!("ERROR {}: {}", error.code, error.message),
    }
}

/// `expression` TAB `value`; lines that begin with `#` are comments.
#[test]
fn golden() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in include_str!("golden.tsv").lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (sql, expected) = line.split_once('\t').expect("an expression and a value");
        let expected = expected.replace("\\n", "\n").replace("\\t", "\t");
        let found = shown(sql);
        count += 1;
        // An error is known by its number.
        let same = match expected.strip_prefix("ERROR ") {
            Some(code) => found.starts_with(&format!("ERROR {}", code.split(':').next().unwrap_or(code))),
            None => found == expected,
        };
        if !same {
            wrong.push(format!("{sql}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 600, "{count}");
}
