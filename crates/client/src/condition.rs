//! Conditions by column name: `column("age").at_least(18).and(column("name").starts_with("A"))`.
//!
//! A condition is made without knowing the table, and is turned into a [`Filter`] of the table's definition when it is used ([`Condition::resolve`]): then a column that is not
//! there, or a value that cannot be compared with its column, is a typed error. It is evaluated where the rows are.
//!
//! Text is compared by the column's collation (so `'A'` equals `'a'` unless it is a binary one); `starts_with` byte by byte. A `DateTime` is compared
//! with a TIMESTAMP as UTC.

use crate::{Error, ErrorKind};
use rauk_types::error::codes;
use rauk_types::{DateTime, TableSchema, TypeKind, Value};
use rauk_wire::filter::{CompareOp, Filter, MAX_DEPTH, MAX_NODES};

/// Three-valued as in SQL: a comparison with NULL is unknown, and only what is true passes.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition(Node);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Compare { column: String, op: CompareOp, value: Value },
    IsNull { column: String },
    StartsWith { column: String, prefix: Vec<u8> },
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
}

/// A column to be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnName(String);

pub fn column(name: &str) -> ColumnName {
    ColumnName(name.to_string())
}

impl ColumnName {
    fn compare(self, op: CompareOp, value: impl Into<Value>) -> Condition {
        Condition(Node::Compare { column: self.0, op, value: value.into() })
    }

    pub fn equals(self, value: impl Into<Value>) -> Condition {
        self.compare(CompareOp::Equal, value)
    }

    pub fn differs(self, value: impl Into<Value>) -> Condition {
        self.compare(CompareOp::NotEqual, value)
    }

    pub fn less_than(self, value: impl Into<Value>) -> Condition {
        self.compare(CompareOp::Less, value)
    }

    pub fn at_most(self, value: impl Into<Value>) -> Condition {
        self.compare(CompareOp::LessOrEqual, value)
    }

    pub fn greater_than(self, value: impl Into<Value>) -> Condition {
        self.compare(CompareOp::Greater, value)
    }

    pub fn at_least(self, value: impl Into<Value>) -> Condition {
        self.compare(CompareOp::GreaterOrEqual, value)
    }

    /// Equal to one of these; with none of them, nothing passes.
    pub fn is_one_of<V: Into<Value>>(self, values: impl IntoIterator<Item = V>) -> Condition {
        Condition(Node::Or(values.into_iter().map(|value| self.clone().equals(value).0).collect()))
    }

    pub fn is_null(self) -> Condition {
        Condition(Node::IsNull { column: self.0 })
    }

    pub fn is_not_null(self) -> Condition {
        self.is_null().negated()
    }

    /// Text or bytes that begin so, byte by byte.
    pub fn starts_with(self, prefix: impl AsRef<[u8]>) -> Condition {
        Condition(Node::StartsWith { column: self.0, prefix: prefix.as_ref().to_vec() })
    }
}

impl Condition {
    /// Chains of `and` are one list, however long: they nest no deeper. The same holds for `or`.
    pub fn and(self, other: Condition) -> Condition {
        let mut all = match self.0 {
            Node::And(all) => all,
            one => vec![one],
        };
        match other.0 {
            Node::And(more) => all.extend(more),
            one => all.push(one),
        }
        Condition(Node::And(all))
    }

    pub fn or(self, other: Condition) -> Condition {
        let mut any = match self.0 {
            Node::Or(any) => any,
            one => vec![one],
        };
        match other.0 {
            Node::Or(more) => any.extend(more),
            one => any.push(one),
        }
        Condition(Node::Or(any))
    }

    pub fn negated(self) -> Condition {
        Condition(Node::Not(Box::new(self.0)))
    }

    /// The same by the columns' positions in a table's definition, checked against it.
    pub(crate) fn resolve(&self, schema: &TableSchema) -> Result<Filter, Error> {
        let mut nodes = 0;
        let filter = self.0.resolve(schema, MAX_DEPTH, &mut nodes)?;
        filter.check(schema).map_err(|message| Error {
            kind: ErrorKind::WrongType,
            code: codes::TRUNCATED_WRONG_VALUE_FOR_FIELD,
            message: format!("condition on {}.{}: {message}", schema.database, schema.name),
        })?;
        Ok(filter)
    }
}

impl Node {
    /// `depth` is how many levels are left.
    fn resolve(&self, schema: &TableSchema, depth: usize, nodes: &mut usize) -> Result<Filter, Error> {
        *nodes += 1;
        if depth == 0 || *nodes > MAX_NODES {
            return Err(Error {
                kind: ErrorKind::InvalidValue,
                code: codes::OUT_OF_RESOURCES,
                message: format!("a condition has at most {MAX_NODES} parts, at most {MAX_DEPTH} deep"),
            });
        }
        let mut list = |list: &[Node]| -> Result<Vec<Filter>, Error> {
            list.iter().map(|node| node.resolve(schema, depth - 1, nodes)).collect()
        };
        Ok(match self {
            Node::Compare { column, op, value } => {
                let column = position(schema, column)?;
                Filter::Compare { column, op: *op, value: constant(schema, column, value) }
            }
            Node::IsNull { column } => Filter::IsNull { column: position(schema, column)? },
            Node::StartsWith { column, prefix } => {
                Filter::StartsWith { column: position(schema, column)?, prefix: prefix.clone() }
            }
            Node::And(all) => Filter::And(list(all)?),
            Node::Or(any) => Filter::Or(list(any)?),
            Node::Not(node) => Filter::Not(Box::new(node.resolve(schema, depth - 1, nodes)?)),
        })
    }
}

fn position(schema: &TableSchema, name: &str) -> Result<u16, Error> {
    let found = schema.visible_columns().iter().position(|column| column.name.eq_ignore_ascii_case(name));
    found.map(|position| position as u16).ok_or_else(|| Error {
        kind: ErrorKind::UnknownColumn,
        code: codes::BAD_FIELD,
        message: format!("Unknown column '{name}' in 'where clause' of {}.{}", schema.database, schema.name),
    })
}

/// The value as the column's rows have it: a TIMESTAMP is a moment, which programs give in UTC.
fn constant(schema: &TableSchema, column: u16, value: &Value) -> Value {
    match value {
        Value::DateTime(DateTime::ZERO) if schema.columns[column as usize].ty.kind == TypeKind::Timestamp => {
            Value::Timestamp(0)
        }
        Value::DateTime(time) if schema.columns[column as usize].ty.kind == TypeKind::Timestamp => {
            time.to_unix_micros_utc().map_or_else(|| value.clone(), Value::Timestamp)
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::{Collation, Column, ColumnId, DataType, IndexSchema, TableId};

    fn people() -> TableSchema {
        let columns = vec![
            Column::new(ColumnId(0), "id", DataType::BIGINT_UNSIGNED, false),
            Column::new(ColumnId(1), "Name", DataType::varchar(20, Collation::DEFAULT), true),
            Column::new(ColumnId(2), "born", DataType::new(TypeKind::Timestamp), true),
        ];
        TableSchema::new(TableId(1), "d", "people", columns, vec![IndexSchema::primary(&[0])])
    }

    #[test]
    fn names_become_positions() {
        let condition = column("ID").at_least(18u32).and(column("name").starts_with("A")).and(column("born").is_null());
        let expected = Filter::And(vec![
            Filter::Compare { column: 0, op: CompareOp::GreaterOrEqual, value: Value::UInt(18) },
            Filter::StartsWith { column: 1, prefix: b"A".to_vec() },
            Filter::IsNull { column: 2 },
        ]);
        assert_eq!(condition.resolve(&people()), Ok(expected));
    }

    #[test]
    fn a_date_time_is_a_moment_in_utc() {
        let time = DateTime::from_unix_micros_utc(1_700_000_000_000_000).unwrap();
        let filter = column("born").equals(time).resolve(&people()).unwrap();
        let value = Value::Timestamp(1_700_000_000_000_000);
        assert_eq!(filter, Filter::Compare { column: 2, op: CompareOp::Equal, value });
    }

    #[test]
    fn mistakes_are_typed() {
        let unknown = column("age").equals(1).negated().resolve(&people()).unwrap_err();
        assert_eq!((unknown.kind, unknown.code), (ErrorKind::UnknownColumn, 1054));
        assert_eq!(unknown.message, "Unknown column 'age' in 'where clause' of d.people");
        let wrong = column("id").equals("one").resolve(&people()).unwrap_err();
        assert_eq!((wrong.kind, wrong.code), (ErrorKind::WrongType, 1366));
        assert!(wrong.message.starts_with("condition on d.people: "), "{}", wrong.message);
    }

    #[test]
    fn chains_do_not_nest_and_size_is_bounded() {
        let chain = |n: i32| (1..n).fold(column("id").equals(0), |all, i| all.and(column("id").differs(i)));
        assert!(chain(1000).resolve(&people()).is_ok());
        assert_eq!(chain(1025).resolve(&people()).unwrap_err().kind, ErrorKind::InvalidValue);
        let deep = (0..20).fold(column("id").equals(0), |condition, _| condition.negated());
        assert_eq!(deep.resolve(&people()).unwrap_err().kind, ErrorKind::InvalidValue);
        assert_eq!(
            column("id").is_one_of([1, 2]).resolve(&people()).map(|f| matches!(f, Filter::Or(l) if l.len() == 2)),
            Ok(true)
        );
    }
}
