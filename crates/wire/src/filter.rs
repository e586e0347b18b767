//! Conditions on a row, evaluated where the rows are: three-valued as SQL's, a row passes when the whole is true. Their form is a part of the form of all
//! expressions ([`crate::expression`]).
//!
//! Columns are positions in the table's definition of the version that the request names. Numbers are compared by what they are, whatever their type (a DECIMAL
//! with a double as doubles, as MySQL does), text by the column's collation, dates and times in their order. A comparison with NULL is unknown.
//!
//! ```text
//! Compare     0, operator u8, column varint, value
//! IsNull      1, column varint
//! StartsWith  2, column varint, length varint, bytes
//! And, Or     3 or 4, count varint, filters
//! Not         5, filter
//! ```

use crate::WireError;
use crate::read::{Reader, put_prefixed, put_varint};
use rauk_types::json::JsonRef;
use rauk_types::schema::MAX_COLUMNS;
use rauk_types::{Column, Decimal, RowView, TableSchema, TypeKind, Value, ValueRef};
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CompareOp {
    Equal = 0,
    NotEqual = 1,
    Less = 2,
    LessOrEqual = 3,
    Greater = 4,
    GreaterOrEqual = 5,
}

impl CompareOp {
    #[inline]
    fn holds(self, order: Ordering) -> bool {
        match self {
            CompareOp::Equal => order.is_eq(),
            CompareOp::NotEqual => order.is_ne(),
            CompareOp::Less => order.is_lt(),
            CompareOp::LessOrEqual => order.is_le(),
            CompareOp::Greater => order.is_gt(),
            CompareOp::GreaterOrEqual => order.is_ge(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// Column against a constant of a comparable type (`check` says whether it is).
    Compare {
        column: u16,
        op: CompareOp,
        value: Value,
    },
    IsNull {
        column: u16,
    },
    /// Text or bytes that begin so, byte by byte (not by collation).
    StartsWith {
        column: u16,
        prefix: Vec<u8>,
    },
    /// True when it has nothing within.
    And(Vec<Filter>),
    /// False when it has nothing within.
    Or(Vec<Filter>),
    Not(Box<Filter>),
}

/// Deepest nesting and most nodes of a filter.
pub const MAX_DEPTH: usize = 16;
pub const MAX_NODES: usize = 1024;

const COMPARE: u8 = 0;
const IS_NULL: u8 = 1;
const STARTS_WITH: u8 = 2;
const AND: u8 = 3;
const OR: u8 = 4;
const NOT: u8 = 5;

impl Filter {
    /// A filter that [`Filter::check`] refuses for its size is refused by the receiver as well.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Filter::Compare { column, op, value } => {
                out.extend_from_slice(&[COMPARE, *op as u8]);
                put_varint((*column).into(), out);
                crate::value::put(value.as_ref(), out);
            }
            Filter::IsNull { column } => {
                out.push(IS_NULL);
                put_varint((*column).into(), out);
            }
            Filter::StartsWith { column, prefix } => {
                out.push(STARTS_WITH);
                put_varint((*column).into(), out);
                put_prefixed(prefix, out);
            }
            Filter::And(parts) => encode_all(AND, parts, out),
            Filter::Or(parts) => encode_all(OR, parts, out),
            Filter::Not(part) => {
                out.push(NOT);
                part.encode(out);
            }
        }
    }

    /// Bounded by [`MAX_DEPTH`] and [`MAX_NODES`].
    pub fn decode(reader: &mut Reader<'_>) -> Result<Filter, WireError> {
        decode(reader, MAX_DEPTH, &mut { MAX_NODES })
    }

    /// Whether columns exist and constants compare with them; the text names what does not.
    pub fn check(&self, table: &TableSchema) -> Result<(), String> {
        self.check_part(table, MAX_DEPTH, &mut { MAX_NODES })
    }

    fn check_part(&self, table: &TableSchema, depth: usize, nodes: &mut usize) -> Result<(), String> {
        if depth == 0 {
            return Err(format!("a filter is nested more than {MAX_DEPTH} deep"));
        }
        *nodes = nodes.checked_sub(1).ok_or_else(|| format!("a filter has more than {MAX_NODES} parts"))?;
        match self {
            Filter::Compare { column, value, .. } => check_constant(table, column_of(table, *column)?, value),
            Filter::IsNull { column } => column_of(table, *column).map(drop),
            Filter::StartsWith { column, .. } => {
                let column = column_of(table, *column)?;
                if column.ty.is_text() || column.ty.is_bytes() {
                    return Ok(());
                }
                Err(format!(
                    "column '{}' of table '{}' is {}; only texts and bytes begin with something",
                    column.name,
                    table.name,
                    type_name(column)
                ))
            }
            Filter::And(parts) | Filter::Or(parts) => {
                parts.iter().try_for_each(|part| part.check_part(table, depth - 1, nodes))
            }
            Filter::Not(part) => part.check_part(table, depth - 1, nodes),
        }
    }

    /// `None` is SQL's unknown. The filter was checked against the row's table.
    pub fn eval(&self, row: &RowView<'_>) -> Option<bool> {
        match self {
            Filter::Compare { column, op, value } => {
                let position = usize::from(*column);
                compare(row, position, row.get(position), value.as_ref()).map(|order| op.holds(order))
            }
            Filter::IsNull { column } => Some(row.is_null(usize::from(*column))),
            Filter::StartsWith { column, prefix } => {
                row.get(usize::from(*column)).as_bytes().map(|bytes| bytes.starts_with(prefix))
            }
            Filter::And(parts) => eval_all(parts, row, false),
            Filter::Or(parts) => eval_all(parts, row, true),
            Filter::Not(part) => part.eval(row).map(|passes| !passes),
        }
    }

    #[inline]
    pub fn passes(&self, row: &RowView<'_>) -> bool {
        self.eval(row) == Some(true)
    }
}

fn encode_all(tag: u8, parts: &[Filter], out: &mut Vec<u8>) {
    out.push(tag);
    put_varint(u32::try_from(parts.len()).expect("a list in memory"), out);
    parts.iter().for_each(|part| part.encode(out));
}

pub(crate) fn decode(reader: &mut Reader<'_>, depth: usize, nodes: &mut usize) -> Result<Filter, WireError> {
    if depth == 0 || *nodes == 0 {
        return Err(reader.malformed());
    }
    *nodes -= 1;
    Ok(match reader.u8()? {
        COMPARE => {
            let op = match reader.u8()? {
                0 => CompareOp::Equal,
                1 => CompareOp::NotEqual,
                2 => CompareOp::Less,
                3 => CompareOp::LessOrEqual,
                4 => CompareOp::Greater,
                5 => CompareOp::GreaterOrEqual,
                _ => return Err(reader.malformed()),
            };
            Filter::Compare { column: column_number(reader)?, op, value: crate::value::get(reader)?.to_owned() }
        }
        IS_NULL => Filter::IsNull { column: column_number(reader)? },
        STARTS_WITH => Filter::StartsWith { column: column_number(reader)?, prefix: reader.prefixed()?.to_vec() },
        AND => Filter::And(decode_all(reader, depth, nodes)?),
        OR => Filter::Or(decode_all(reader, depth, nodes)?),
        NOT => Filter::Not(Box::new(decode(reader, depth - 1, nodes)?)),
        _ => return Err(reader.malformed()),
    })
}

fn decode_all(reader: &mut Reader<'_>, depth: usize, nodes: &mut usize) -> Result<Vec<Filter>, WireError> {
    let count = reader.varint()? as usize;
    if count > *nodes || count > reader.remaining() {
        return Err(reader.malformed());
    }
    (0..count).map(|_| decode(reader, depth - 1, nodes)).collect()
}

/// The position of a column, which no table has beyond its limit.
pub(crate) fn column_number(reader: &mut Reader<'_>) -> Result<u16, WireError> {
    let column = reader.varint()?;
    if column as usize >= MAX_COLUMNS { Err(reader.malformed()) } else { Ok(column as u16) }
}

fn column_of(table: &TableSchema, position: u16) -> Result<&Column, String> {
    table.columns.get(usize::from(position)).ok_or_else(|| {
        format!("table '{}' has {} columns, none at position {position}", table.name, table.columns.len())
    })
}

fn type_name(column: &Column) -> String {
    format!("{:?}{}", column.ty.kind, if column.ty.unsigned { " unsigned" } else { "" }).to_uppercase()
}

fn check_constant(table: &TableSchema, column: &Column, value: &Value) -> Result<(), String> {
    use TypeKind::{Date, DateTime, Time, Timestamp};
    let ty = &column.ty;
    let (fits, name) = match value {
        Value::Null => (true, "NULL"),
        Value::Int(_) | Value::UInt(_) => (ty.is_numeric() || ty.holds_integer(), "an integer"),
        Value::Double(v) if !v.is_finite() => (false, "a double that is not finite"),
        Value::Double(_) => (ty.is_numeric(), "a double"),
        Value::Decimal(_) => (ty.is_numeric(), "a DECIMAL"),
        Value::Date(_) => (matches!(ty.kind, Date | DateTime), "a DATE"),
        Value::DateTime(_) => (matches!(ty.kind, Date | DateTime), "a DATETIME"),
        Value::Time(_) => (ty.kind == Time, "a TIME"),
        Value::Timestamp(_) => (ty.kind == Timestamp, "a TIMESTAMP"),
        Value::Str(_) => (ty.is_text(), "a text"),
        Value::Bytes(_) => (ty.is_bytes(), "bytes"),
        Value::Json(_) => (false, "JSON"),
    };
    if fits {
        return Ok(());
    }
    Err(format!(
        "column '{}' of table '{}' is {} and cannot be compared with {name}",
        column.name,
        table.name,
        type_name(column)
    ))
}

/// `decided`: the answer of one part that decides the whole.
fn eval_all(parts: &[Filter], row: &RowView<'_>, decided: bool) -> Option<bool> {
    let mut answer = Some(!decided);
    for part in parts {
        match part.eval(row) {
            Some(passes) if passes == decided => return Some(decided),
            None => answer = None,
            Some(_) => {}
        }
    }
    answer
}

/// `None` when one is NULL.
#[inline]
fn compare(row: &RowView<'_>, position: usize, left: ValueRef<'_>, right: ValueRef<'_>) -> Option<Ordering> {
    use ValueRef::*;
    Some(match (left, right) {
        (Int(a), Int(b)) => a.cmp(&b),
        (UInt(a), UInt(b)) => a.cmp(&b),
        (Str(a), Str(b)) => row.table().columns[position].ty.collation.compare(a.as_bytes(), b.as_bytes()),
        (Bytes(a), Bytes(b)) => a.cmp(b),
        // By its text, as a client sees it.
        (Json(a), Str(b)) => shown(a).as_slice().cmp(b.as_bytes()),
        (Str(a), Json(b)) => a.as_bytes().cmp(&shown(b)),
        (Json(a), Json(b)) => shown(a).cmp(&shown(b)),
        (Date(a), Date(b)) => a.cmp(&b),
        (DateTime(a), DateTime(b)) => a.cmp(&b),
        (Date(a), DateTime(b)) => a.at_midnight().cmp(&b),
        (DateTime(a), Date(b)) => a.cmp(&b.at_midnight()),
        (Time(a), Time(b)) => a.cmp(&b),
        (Timestamp(a), Timestamp(b)) => a.cmp(&b),
        _ => return compare_numbers(left, right),
    })
}

fn shown(json: JsonRef<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    json.append_shown(&mut text);
    text
}

/// Numbers of different types; `None` for what is no number, NULL above all.
fn compare_numbers(left: ValueRef<'_>, right: ValueRef<'_>) -> Option<Ordering> {
    use ValueRef::{Decimal as Dec, Double};
    match (left, right) {
        (Double(a), Double(b)) => a.partial_cmp(&b),
        (Dec(a), Dec(b)) => Some(a.cmp(&b)),
        (Double(a), Dec(b)) => a.partial_cmp(&b.to_f64()),
        (Dec(a), Double(b)) => a.to_f64().partial_cmp(&b),
        (Double(a), b) => compare_integer(b.as_integer()?, a).map(Ordering::reverse),
        (a, Double(b)) => compare_integer(a.as_integer()?, b),
        (Dec(a), b) => Some(a.cmp(&Decimal::from(b.as_integer()?))),
        (a, Dec(b)) => Some(Decimal::from(a.as_integer()?).cmp(&b)),
        (a, b) => Some(a.as_integer()?.cmp(&b.as_integer()?)),
    }
}

/// A 64-bit integer with a double, exactly: above 2^53 not every integer is a double.
fn compare_integer(integer: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // Saturates far outside of 64 bits, where the fraction does not matter any more.
    let whole = double.trunc() as i128;
    Some(integer.cmp(&whole).then_with(|| 0.0f64.total_cmp(&(double.fract() + 0.0))))
}

#[cfg(test)]
mod tests;
