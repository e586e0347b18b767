//! Rows as structs: what `#[derive(Record)]` implements.
//!
//! | attribute | on | meaning |
//! |---|---|---|
//! | `database = "…", table = "…"` | the struct | where its rows are |
//! | `key` | a field | part of the primary key, in the order of the fields |
//! | `unique`, `index` | a field | an index on it, for tables that are made from the struct |
//! | `column = "…"` | a field | its column, when it is named otherwise |
//! | `length = N` | a String or `Vec<u8>` field | VARCHAR(N) or VARBINARY(N), for tables that are made from the struct |
//! | `collation = "…"` | a String field | `utf8mb4_bin`, `utf8mb4_general_ci`, …; without it MySQL's default `utf8mb4_0900_ai_ci`, to which `'A'` and `'a'` are equal |
//! | `auto_increment` | the first key field, an integer | the node gives numbers to rows that are inserted with 0 |
//! | `precision = N`, `scale = N` | a Decimal field | DECIMAL(precision, scale) |
//! | `fraction = N` | a Time or DateTime field | digits of a second's fraction |
//!
//! # Types
//!
//! A table that is made from a struct ([`crate::Client::open_or_create`]) gets for each field the column that holds every value of it. A table that
//! is there already is checked when it is opened: a field is accepted when *every value that may be stored* in the column can be read into it. What a program
//! then writes may still be too much for the column (300 into a TINYINT): that is refused with MySQL's code when it is written, and nothing is changed.
//!
//! | field | column made | columns accepted |
//! |---|---|---|
//! | `i8`, `i16`, `i32`, `i64` | TINYINT, SMALLINT, INT, BIGINT | integers, signed or not, all of whose values fit |
//! | `u8`, `u16`, `u32`, `u64` | the same UNSIGNED | unsigned integers that are no wider |
//! | `bool` | TINYINT(1) | TINYINT(1), which is BOOL; all but 0 is true |
//! | `f32`, `f64` | FLOAT, DOUBLE | FLOAT; and DOUBLE for `f64` |
//! | `Decimal` | DECIMAL(65,30) | DECIMAL |
//! | `String` | VARCHAR(N); without `length` MEDIUMTEXT, and VARCHAR(255) where it is indexed | CHAR, VARCHAR, the TEXTs, JSON |
//! | `Vec<u8>` | VARBINARY(N); without `length` MEDIUMBLOB, and VARBINARY(255) where it is indexed | BINARY, VARBINARY, the BLOBs |
//! | `Date`, `Time`, `DateTime` | DATE, TIME(6), DATETIME(6) | DATE; TIME; DATETIME, and TIMESTAMP as UTC |
//! | `Option<…>` | the same, NULL allowed | the same, with NULL or without |
//!
//! A column that may be NULL needs an `Option`. Columns that the struct does not have are left alone: they get their defaults when a record is inserted, and
//! keep what they have when it is updated.

use crate::{Error, ErrorKind, FromColumn};
use rauk_types::error::codes;
#[doc(hidden)] // for what the macro writes
pub use rauk_types::{Collation, DataType, TypeKind, ValueRef};
use rauk_types::{Date, DateTime, Decimal, TableSchema, Time};

/// A column as the struct says it.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldInfo {
    pub column: &'static str,
    /// The field's type as it is written: `Option<u64>`.
    pub rust: &'static str,
    /// The type that a table made from the struct gets.
    pub ty: DataType,
    pub nullable: bool,
    pub key: bool,
    pub unique: bool,
    pub index: bool,
    pub auto_increment: bool,
}

/// A struct whose values are rows.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a record",
    note = "put #[derive(Record)] and #[rauk(database = \"…\", table = \"…\")] above the struct"
)]
pub trait Record: Sized + Send + Sync + 'static {
    const DATABASE: &'static str;
    const TABLE: &'static str;
    fn fields() -> &'static [FieldInfo];
    /// Appends the values of all fields in their order.
    fn values<'a>(&'a self, into: &mut Vec<ValueRef<'a>>);
    /// From one value for each field, asked for once each in their order; the number of the first that does not fit.
    fn from_values<'a>(value: &mut dyn FnMut(usize) -> ValueRef<'a>) -> Result<Self, usize>;
    /// Whether every value of a column of this type can be read into the field.
    fn accepts(field: usize, ty: &DataType, nullable: bool) -> bool;
}

/// A type that a record's field may have.
#[diagnostic::on_unimplemented(
    message = "a record's field cannot be a `{Self}`",
    note = "fields are i8 to i64, u8 to u64, f32, f64, bool, String, Vec<u8>, Decimal, Date, Time, DateTime of rauk_client, and Option of these"
)]
pub trait Field: FromColumn {
    const NULLABLE: bool = false;
    fn value(&self) -> ValueRef<'_>;
    /// Whether every value of a NOT NULL column of this type can be read into the field.
    fn accepts(ty: &DataType) -> bool;
}

macro_rules! fields {
    ($($type:ty, $value:ident => $borrowed:expr, $ty:ident => $accepts:expr;)*) => {$(
        impl Field for $type {
            #[inline]
            fn value(&self) -> ValueRef<'_> {
                let $value = self;
                $borrowed
            }

            fn accepts($ty: &DataType) -> bool {
                $accepts
            }
        }
    )*};
}

/// Whether all integers of a type are in a range.
fn within(ty: &DataType, low: impl Into<i128>, high: impl Into<i128>) -> bool {
    ty.integer_range().is_some_and(|(least, most)| low.into() <= least && most <= high.into())
}

fields! {
    i8, v => ValueRef::Int((*v).into()), ty => within(ty, i8::MIN, i8::MAX);
    i16, v => ValueRef::Int((*v).into()), ty => within(ty, i16::MIN, i16::MAX);
    i32, v => ValueRef::Int((*v).into()), ty => within(ty, i32::MIN, i32::MAX);
    i64, v => ValueRef::Int(*v), ty => within(ty, i64::MIN, i64::MAX);
    u8, v => ValueRef::UInt((*v).into()), ty => within(ty, 0, u8::MAX);
    u16, v => ValueRef::UInt((*v).into()), ty => within(ty, 0, u16::MAX);
    u32, v => ValueRef::UInt((*v).into()), ty => within(ty, 0, u32::MAX);
    u64, v => ValueRef::UInt(*v), ty => within(ty, 0, u64::MAX);
    bool, v => ValueRef::Int((*v).into()), ty => ty.kind == TypeKind::TinyInt && ty.length == 1;
    f32, v => ValueRef::Double((*v).into()), ty => ty.kind == TypeKind::Float;
    f64, v => ValueRef::Double(*v), ty => matches!(ty.kind, TypeKind::Float | TypeKind::Double);
    String, v => ValueRef::Str(v), ty => ty.is_text();
    Vec<u8>, v => ValueRef::Bytes(v), ty => ty.is_bytes();
    Decimal, v => ValueRef::Decimal(*v), ty => ty.kind == TypeKind::Decimal;
    Date, v => ValueRef::Date(*v), ty => ty.kind == TypeKind::Date;
    Time, v => ValueRef::Time(*v), ty => ty.kind == TypeKind::Time;
    DateTime, v => ValueRef::DateTime(*v), ty => matches!(ty.kind, TypeKind::DateTime | TypeKind::Timestamp);
}

impl<T: Field> Field for Option<T> {
    const NULLABLE: bool = true;

    #[inline]
    fn value(&self) -> ValueRef<'_> {
        self.as_ref().map_or(ValueRef::Null, T::value)
    }

    fn accepts(ty: &DataType) -> bool {
        T::accepts(ty)
    }
}

/// Where a record's fields are among a table's columns, in the order of the fields. An error names everything that does not fit, and what would.
pub fn columns_of<R: Record>(schema: &TableSchema) -> Result<Vec<u16>, Error> {
    let table = format!("{}.{}", schema.database, schema.name);
    let visible = schema.visible_columns();
    let mut columns = Vec::with_capacity(R::fields().len());
    let mut unknown = Vec::new();
    let mut mismatches = Vec::new();
    for (number, field) in R::fields().iter().enumerate() {
        let Some(position) = visible.iter().position(|column| column.name.eq_ignore_ascii_case(field.column)) else {
            unknown.push(format!("{table} has no column `{}`", field.column));
            continue;
        };
        columns.push(position as u16);
        let column = &visible[position];
        if !R::accepts(number, &column.ty, column.nullable) {
            mismatches.push(format!(
                "column `{}` of {table} is {}{}, which a field of type {} does not hold: make the field {}",
                column.name,
                type_name(&column.ty),
                if column.nullable { "" } else { " NOT NULL" },
                field.rust,
                rust_type(&column.ty, column.nullable),
            ));
        }
    }
    let key: Vec<&str> = R::fields().iter().filter(|field| field.key).map(|field| field.column).collect();
    let primary: Vec<&str> = match schema.hidden_key {
        true => Vec::new(),
        false => schema.primary().parts.iter().map(|part| schema.columns[part.column].name.as_str()).collect(),
    };
    if unknown.is_empty()
        && !(key.len() == primary.len() && key.iter().zip(&primary).all(|(a, b)| a.eq_ignore_ascii_case(b)))
    {
        mismatches.push(match primary.is_empty() {
            true => format!("{table} has no primary key, so its rows cannot be records: give it one, or scan it by column name"),
            false => format!(
                "the primary key of {table} is ({}), that of the record is ({}): mark the same fields with #[rauk(key)], in the same order",
                primary.join(", "),
                key.join(", "),
            ),
        });
    }
    if unknown.is_empty() && mismatches.is_empty() {
        return Ok(columns);
    }
    let (kind, code) = match unknown.is_empty() {
        true => (ErrorKind::WrongType, codes::TRUNCATED_WRONG_VALUE_FOR_FIELD),
        false => (ErrorKind::UnknownColumn, codes::BAD_FIELD),
    };
    unknown.append(&mut mismatches);
    Err(Error { kind, code, message: unknown.join("; ") })
}

/// `BIGINT UNSIGNED`, `DECIMAL(10,2)`, `VARCHAR(20)`: as MySQL writes it, as far as it matters to a reader of an error.
fn type_name(ty: &DataType) -> String {
    let mut name = format!("{:?}", ty.kind).to_ascii_uppercase();
    match ty.kind {
        TypeKind::Decimal => name += &format!("({},{})", ty.precision, ty.scale),
        TypeKind::Char | TypeKind::VarChar | TypeKind::Binary | TypeKind::VarBinary => {
            name += &format!("({})", ty.length)
        }
        TypeKind::TinyInt if ty.length == 1 => name += "(1)",
        TypeKind::Bit => name += &format!("({})", ty.length),
        _ => {}
    }
    if ty.unsigned { name + " UNSIGNED" } else { name }
}

/// The type of a field that holds every value of a column.
fn rust_type(ty: &DataType, nullable: bool) -> String {
    let name = match (ty.kind, ty.unsigned) {
        (TypeKind::TinyInt, false) if ty.length == 1 => "bool",
        (TypeKind::TinyInt, false) => "i8",
        (TypeKind::TinyInt, true) => "u8",
        (TypeKind::SmallInt, false) => "i16",
        (TypeKind::SmallInt, true) => "u16",
        (TypeKind::MediumInt | TypeKind::Int, false) => "i32",
        (TypeKind::MediumInt | TypeKind::Int, true) => "u32",
        (TypeKind::BigInt, false) => "i64",
        (TypeKind::BigInt, true) => "u64",
        (TypeKind::Enum | TypeKind::Year, _) => "u16",
        (TypeKind::Set | TypeKind::Bit, _) => "u64",
        (TypeKind::Float, _) => "f32",
        (TypeKind::Double, _) => "f64",
        (TypeKind::Decimal, _) => "Decimal",
        (TypeKind::Date, _) => "Date",
        (TypeKind::Time, _) => "Time",
        (TypeKind::DateTime | TypeKind::Timestamp, _) => "DateTime",
        _ if ty.is_text() => "String",
        _ => "Vec<u8>",
    };
    if nullable { format!("Option<{name}>") } else { name.into() }
}

#[cfg(test)]
mod tests;
