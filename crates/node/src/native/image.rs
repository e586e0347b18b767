//! Rows as writes make them: from given values and defaults, from a row and changes, from a row and numbers to add.
//!
//! All values are borrowed: from the request, from the row as it stands in the partition, from the table's definition. So a row is made without an allocation
//! and encoded straight into the buffer it is stored from. The rules are those of SQL's INSERT and UPDATE, so that nobody can tell by which door a row came in:
//! the same defaults, AUTO_INCREMENT, limits of keys; DEFAULT and ON UPDATE CURRENT_TIMESTAMP have the wall clock in UTC (the server's zone).
//! Left out: conversions. A value that does not fit its column was refused before.

use super::failure::{of_mysql, refused};
use crate::{Database, NodeError, TableHandle};
use rauk_types::error::codes;
use rauk_types::schema::MAX_KEY_BYTES;
use rauk_types::{
    Column, ColumnDefault, DataType, DateTime, Decimal, IndexKind, MysqlError, TableSchema, TypeKind, Value, ValueRef,
    check,
};
use rauk_wire::Failure;
use smallvec::SmallVec;

/// One value for each column.
pub type Refs<'a> = SmallVec<[ValueRef<'a>; 16]>;

/// Longest encoded weights of a byte of text: what makes checking a key's length worth while.
const WORST_KEY_GROWTH: usize = 20;

/// A given value as the column stores it. An AUTO_INCREMENT column takes NULL: it asks for a number (`numbered`).
pub fn stored<'a>(column: &Column, value: ValueRef<'a>, numbered: bool) -> Result<ValueRef<'a>, Failure> {
    if numbered && value.is_null() {
        return Ok(value);
    }
    check::column_value(column, value).map_err(|e| of_mysql(&e))
}

/// The present (microseconds since 1970 UTC) as a TIMESTAMP or DATETIME column stores it.
pub fn now_for(ty: &DataType, now: i64) -> ValueRef<'static> {
    let unit = 10i64.pow(6 - u32::from(ty.scale.min(6)));
    let micros = now.div_euclid(unit) * unit;
    if ty.kind == TypeKind::Timestamp {
        return ValueRef::Timestamp(micros);
    }
    ValueRef::DateTime(DateTime::from_unix_micros_utc(micros).unwrap_or(DateTime::ZERO))
}

/// A new row: given values, and defaults for the rest. An AUTO_INCREMENT column and a hidden key without a value are NULL: [`number`] fills them. The failure
/// is that of inserting it when a column has neither value nor default; it is NULL then.
pub fn new_row<'a>(
    schema: &'a TableSchema,
    columns: &[u16],
    values: &[ValueRef<'a>],
    now: i64,
) -> (Refs<'a>, Option<Failure>) {
    let mut row: Refs<'a> = SmallVec::with_capacity(schema.columns.len());
    let mut incomplete = None;
    for (at, column) in schema.visible_columns().iter().enumerate() {
        let value = match columns.iter().position(|&c| usize::from(c) == at) {
            Some(given) => values[given],
            None if schema.auto_increment == Some(at) => ValueRef::Null,
            None => match &column.default {
                ColumnDefault::Value(value) if column.nullable || !value.is_null() => value.as_ref(),
                ColumnDefault::Now => now_for(&column.ty, now),
                // The first member, though no DEFAULT says so.
                ColumnDefault::None if column.ty.kind == TypeKind::Enum => ValueRef::UInt(1),
                _ => {
                    let text = || format!("Field '{}' doesn't have a default value", column.name);
                    incomplete.get_or_insert_with(|| refused(codes::NO_DEFAULT_FOR_FIELD, text()));
                    ValueRef::Null
                }
            },
        };
        row.push(value);
    }
    if schema.hidden_key {
        row.push(ValueRef::Null);
    }
    (row, incomplete)
}

/// How a new row's AUTO_INCREMENT column got its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    None,
    Generated(u64),
    /// The counter goes above it when the row is there.
    Explicit(u64),
}

impl Number {
    pub fn generated(self) -> Option<u64> {
        match self {
            Number::Generated(number) => Some(number),
            _ => None,
        }
    }
}

/// Gives a new row its AUTO_INCREMENT number, or finds the one it brings, and its hidden key.
pub async fn number(database: &Database, table: &TableHandle, row: &mut Refs<'_>) -> Result<Number, NodeError> {
    if database.node.cluster().is_none() {
        return number_alone(database, table, row);
    }
    if table.schema().hidden_key
        && let Some(key) = row.last_mut()
    {
        *key = ValueRef::UInt(database.node.hidden_key(table.info()).await?);
    }
    match wanted(table, row) {
        Wanted::Given(number) => Ok(number),
        Wanted::At(at) => generated(table, row, at, database.take_auto_increment(table, 1).await?),
    }
}

/// The same on a node that is alone, where it does not wait.
pub fn number_alone(database: &Database, table: &TableHandle, row: &mut Refs<'_>) -> Result<Number, NodeError> {
    if table.schema().hidden_key
        && let Some(key) = row.last_mut()
    {
        *key = ValueRef::UInt(table.info().shared.hidden_keys.take(&database.node.log)?);
    }
    match wanted(table, row) {
        Wanted::Given(number) => Ok(number),
        Wanted::At(at) => generated(table, row, at, table.info().shared.auto_increment.take(1, &database.node.log)?),
    }
}

/// Whether a row's number is still to be made.
enum Wanted {
    Given(Number),
    /// Position of the column.
    At(usize),
}

fn wanted(table: &TableHandle, row: &Refs<'_>) -> Wanted {
    let Some(at) = table.schema().auto_increment else { return Wanted::Given(Number::None) };
    match row[at].as_counted() {
        None | Some(0) => Wanted::At(at),
        Some(wanted) => Wanted::Given(u64::try_from(wanted).map_or(Number::None, Number::Explicit)),
    }
}

fn generated(table: &TableHandle, row: &mut Refs<'_>, at: usize, next: u64) -> Result<Number, NodeError> {
    let ty = &table.schema().columns[at].ty;
    if next > ty.largest_counted() {
        let text = "Failed to read auto-increment value from storage engine";
        return Err(NodeError::Refused(MysqlError::new(codes::AUTOINC_READ_FAILED, text)));
    }
    row[at] = match ty.kind {
        TypeKind::Float | TypeKind::Double => ValueRef::Double(next as f64),
        _ if ty.unsigned => ValueRef::UInt(next),
        _ => ValueRef::Int(next as i64),
    };
    Ok(Number::Generated(next))
}

/// Sets columns of a row; `true` when that changed something, and then columns with ON UPDATE CURRENT_TIMESTAMP that were not set are set too.
pub fn change<'a>(
    schema: &TableSchema,
    row: &mut Refs<'a>,
    columns: &[u16],
    values: &[ValueRef<'a>],
    now: i64,
) -> bool {
    let mut changed = false;
    for (&column, &value) in columns.iter().zip(values) {
        let at = usize::from(column);
        changed |= row[at] != value;
        row[at] = value;
    }
    if changed {
        touch(schema, row, columns, now);
    }
    changed
}

/// The AUTO_INCREMENT number that a change gives to a row: the counter goes above it.
pub fn changed_number(schema: &TableSchema, old: &Refs<'_>, new: &Refs<'_>) -> Option<u64> {
    let at = schema.auto_increment.filter(|&at| old[at] != new[at])?;
    new[at].as_counted().and_then(|number| u64::try_from(number).ok())
}

/// Columns with ON UPDATE CURRENT_TIMESTAMP that a write does not set.
fn touch(schema: &TableSchema, row: &mut Refs<'_>, columns: &[u16], now: i64) {
    for (at, column) in schema.columns.iter().enumerate() {
        if column.on_update_now && !columns.iter().any(|&c| usize::from(c) == at) {
            row[at] = now_for(&column.ty, now);
        }
    }
}

/// Adds numbers to columns of a row; `true` when that changed something. NULL stays NULL. Error 1264 when a sum is out of its column's range.
pub fn increment(
    schema: &TableSchema,
    row: &mut Refs<'_>,
    columns: &[u16],
    values: &[ValueRef<'_>],
    now: i64,
) -> Result<bool, Failure> {
    let mut changed = false;
    for (&column, &by) in columns.iter().zip(values) {
        let at = usize::from(column);
        let sum = add(&schema.columns[at], row[at], by)?;
        changed |= row[at] != sum;
        row[at] = sum;
    }
    if changed {
        touch(schema, row, columns, now);
    }
    Ok(changed)
}

/// Whether this number can be added to the column at all.
pub fn check_increment(column: &Column, by: ValueRef<'_>) -> Result<(), Failure> {
    let fits = match (column.ty.kind, by) {
        _ if column.ty.is_integer() => by.as_integer().is_some(),
        (TypeKind::Decimal, ValueRef::Decimal(by)) => by.rounded(column.ty.scale) == by,
        (TypeKind::Decimal, _) => by.as_integer().is_some(),
        (TypeKind::Float | TypeKind::Double, ValueRef::Double(by)) => by.is_finite(),
        (TypeKind::Float | TypeKind::Double, ValueRef::Decimal(_)) => true,
        (TypeKind::Float | TypeKind::Double, _) => by.as_integer().is_some(),
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let text = format!("Incorrect value for column '{}' at row 1: this cannot be added to it", column.name);
    Err(refused(codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, text))
}

fn add<'a>(column: &Column, old: ValueRef<'a>, by: ValueRef<'_>) -> Result<ValueRef<'a>, Failure> {
    let ty = &column.ty;
    let out_of_range = || {
        let text = format!("Out of range value for column '{}' at row 1", column.name);
        refused(codes::WARN_DATA_OUT_OF_RANGE, text)
    };
    if old.is_null() {
        return Ok(old);
    }
    match old {
        ValueRef::Int(_) | ValueRef::UInt(_) => {
            let (low, high) = ty.integer_range().ok_or_else(out_of_range)?;
            let sum = old.as_integer().zip(by.as_integer()).map(|(a, b)| a + b);
            let sum = sum.filter(|sum| (low..=high).contains(sum)).ok_or_else(out_of_range)?;
            Ok(if ty.unsigned { ValueRef::UInt(sum as u64) } else { ValueRef::Int(sum as i64) })
        }
        ValueRef::Decimal(old) => {
            let by = match by {
                ValueRef::Decimal(by) => by,
                other => Decimal::new(other.as_integer().ok_or_else(out_of_range)?, 0),
            };
            let sum = old.checked_add(&by).map_err(|_| out_of_range())?;
            if ty.unsigned && sum.is_negative() {
                return Err(out_of_range());
            }
            sum.to_precision(ty.precision, ty.scale).map(ValueRef::Decimal).map_err(|_| out_of_range())
        }
        ValueRef::Double(old) => {
            let by = match by {
                ValueRef::Double(by) => by,
                ValueRef::Decimal(by) => by.to_f64(),
                other => other.as_integer().ok_or_else(out_of_range)? as f64,
            };
            let sum = old + by;
            // FLOAT(M,D) and DOUBLE(M,D) have a fixed number of digits.
            let power = 10f64.powi(ty.scale.into());
            let fixed = |sum: f64| sum.floor() + ((sum - sum.floor()) * power).round_ties_even() / power;
            let sum = if ty.scale < 31 { fixed(sum) } else { sum };
            let sum = if ty.kind == TypeKind::Float { f64::from(sum as f32) } else { sum };
            check::column_value(column, ValueRef::Double(sum))
                .map(|_| ValueRef::Double(sum))
                .map_err(|_| out_of_range())
        }
        _ => Err(out_of_range()),
    }
}

/// Keys have a largest size in bytes, whatever the number of characters. Those of a FULLTEXT index are words.
pub fn check_keys(schema: &TableSchema, row: &[ValueRef<'_>]) -> Result<(), Failure> {
    for index in schema.indexes.iter().filter(|index| !matches!(index.kind, IndexKind::FullText(_))) {
        let text: usize = index.parts.iter().filter_map(|p| row[p.column].as_bytes()).map(<[u8]>::len).sum();
        if text * WORST_KEY_GROWTH <= MAX_KEY_BYTES - 256 {
            continue;
        }
        let mut key = Vec::new();
        encode_key(&schema.key_def(index), row, &mut key);
        if key.len() > MAX_KEY_BYTES {
            let text = format!("Specified key was too long; max key length is {MAX_KEY_BYTES} bytes");
            return Err(refused(codes::TOO_LONG_KEY, text));
        }
    }
    Ok(())
}

/// Appends the row's key.
pub fn encode_key(def: &rauk_types::KeyDef, row: &[ValueRef<'_>], out: &mut Vec<u8>) {
    for part in &def.parts {
        part.encode(row[part.column], out);
    }
}

pub fn owned(row: &[ValueRef<'_>]) -> Vec<Value> {
    row.iter().map(|&value| Value::from(value)).collect()
}

/// The values of a stored row.
pub fn values_of<'a>(row: &rauk_types::RowView<'a>) -> Refs<'a> {
    (0..row.table().columns.len()).map(|column| row.get(column)).collect()
}
