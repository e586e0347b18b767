//! JSON in expressions: values of SQL as documents, documents as values of SQL, and paths in them.
//!
//! A value of type JSON is a document in its stored form ([`rauk_types::json`]); one that came as text of before is parsed where it is read.
//! What is made of a document counts against the statement's memory while it is made ([`counted`]).
//!
//! A value that is no JSON becomes a scalar: a text a string, a predicate a boolean, binary strings and BIT opaque values. A scalar becomes the value
//! of SQL that it is, a string a text; `null`, arrays and objects are none (3156).

pub mod path;
pub mod store;

use super::budget::Budget;
use super::convert::Result;
use super::functions::spatial::geojson;
use super::{Context, Expr};
use rauk_types::json::{Json, JsonRef, Node, Normal, Take, field};
use rauk_types::{DataType, MysqlError, TypeKind, Value, ValueRef};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Runs what makes documents. What it takes is given back at the end: the result is counted by who holds it.
pub fn counted<R>(budget: &mut Budget, make: impl FnOnce(&mut Take<'_>) -> Result<R>) -> Result<R> {
    let memory = budget.memory.clone();
    let mut taken = 0;
    let result = make(&mut |bytes| {
        memory.take(bytes)?;
        taken += bytes;
        budget.work(bytes)
    });
    memory.give(taken);
    result
}

/// A document in the binary form. Errors: 3140, 3157, 1038.
#[inline]
pub fn normal<'a>(document: JsonRef<'a>, context: &mut Context) -> Result<Normal<'a>> {
    if document.is_text() {
        return counted(&mut context.budget, |take| document.normal(take));
    }
    document.normal(&mut |_| Ok(()))
}

/// The stored form of a tree. Errors: 3150, 3151, 3157, 1038.
pub fn encoded(json: &Json<'_>, context: &mut Context) -> Result<Value> {
    counted(&mut context.budget, |take| json.encode(take)).map(Value::Json)
}

/// MySQL's number of a type of binary strings.
fn opaque_type(ty: &DataType) -> u8 {
    match ty.kind {
        TypeKind::Bit => field::BIT,
        TypeKind::Binary => field::STRING,
        TypeKind::TinyBlob => field::TINY_BLOB,
        TypeKind::MediumBlob => field::MEDIUM_BLOB,
        TypeKind::LongBlob => field::LONG_BLOB,
        TypeKind::Blob => field::BLOB,
        _ => field::VARCHAR,
    }
}

/// A value as a part of a document: JSON is itself, anything else a scalar.
pub fn part<'a>(value: ValueRef<'a>, ty: &DataType) -> Json<'a> {
    match value {
        ValueRef::Null => Json::Null,
        ValueRef::UInt(bits) if ty.kind == TypeKind::Bit => {
            let bytes = (ty.length.div_ceil(8) as usize).clamp(1, 8);
            Json::Opaque(field::BIT, Cow::Owned(bits.to_be_bytes()[8 - bytes..].to_vec()))
        }
        ValueRef::Int(v) => Json::Int(v),
        ValueRef::UInt(v) => Json::UInt(v),
        ValueRef::Double(v) => Json::Double(v),
        // With the digits that its type shows: a quotient has more.
        ValueRef::Decimal(v) => Json::Decimal(super::value_key::shown(v, ty)),
        ValueRef::Date(v) => Json::Date(v),
        ValueRef::Time(v) => Json::Time(v),
        ValueRef::DateTime(v) => Json::DateTime(v),
        ValueRef::Timestamp(v) => Json::DateTime(rauk_types::format::timestamp_utc(v)),
        ValueRef::Str(v) => Json::String(Cow::Borrowed(v)),
        ValueRef::Bytes(v) if ty.is_geometry() => {
            geojson::part(v).unwrap_or(Json::Opaque(field::GEOMETRY, Cow::Borrowed(v)))
        }
        ValueRef::Bytes(v) => Json::Opaque(opaque_type(ty), Cow::Borrowed(v)),
        ValueRef::Json(v) => Json::Stored(v),
    }
}

/// The value of an expression as a part of a document; a predicate is a boolean. JSON that is still text gives a copy, which `copy` holds.
pub fn part_of<'a>(value: ValueRef<'a>, expr: &Expr, copy: &'a mut Vec<u8>, context: &mut Context) -> Result<Json<'a>> {
    Ok(match value {
        ValueRef::Int(truth) if expr.is_boolean() => Json::Bool(truth != 0),
        ValueRef::Json(document) if document.is_text() => {
            *copy = normal(document, context)?.get().to_stored();
            Json::Stored(JsonRef::stored(copy))
        }
        ValueRef::Str(text) if expr.ty.kind == TypeKind::Json => {
            *copy = normal(JsonRef::of_text(text), context)?.get().to_stored();
            Json::Stored(JsonRef::stored(copy))
        }
        value => part(value, &expr.ty),
    })
}

/// A scalar as a document, for comparisons.
pub fn scalar_document(value: ValueRef<'_>) -> Value {
    let plain = DataType::new(TypeKind::Null);
    let encoded = part(value, &plain).encode(&mut |_| Ok(()));
    encoded.map_or(Value::Json(JsonRef::NULL.to_stored()), Value::Json)
}

/// The order of two documents; what is no document comes first.
pub fn compare(a: JsonRef<'_>, b: JsonRef<'_>) -> Ordering {
    let free: &mut Take<'_> = &mut |_| Ok(());
    match (a.normal(free), b.normal(free)) {
        (Ok(a), Ok(b)) => a.get().compare(b.get()).unwrap_or(Ordering::Equal),
        (a, b) => a.is_ok().cmp(&b.is_ok()),
    }
}

/// The order of two values of which one is JSON. Errors: 3140, 3142.
pub fn compare_values(a: ValueRef<'_>, b: ValueRef<'_>, context: &mut Context) -> Result<Ordering> {
    match (a, b) {
        (ValueRef::Json(a), ValueRef::Json(b)) => {
            context.budget.work(a.stored_len().min(b.stored_len()))?;
            let (a, b) = (normal(a, context)?, normal(b, context)?);
            Ok(a.get().compare(b.get())?)
        }
        (ValueRef::Json(a), ValueRef::Str(b)) if !a.is_text() => match a.read()? {
            Node::String(a) => Ok(a.cmp(b)),
            _ => compare_values(ValueRef::Json(a), scalar_document(ValueRef::Str(b)).as_ref(), context),
        },
        (ValueRef::Json(_), b) => compare_values(a, scalar_document(b).as_ref(), context),
        (a, ValueRef::Json(_)) => compare_values(scalar_document(a).as_ref(), b, context),
        (a, b) => compare_values(scalar_document(a).as_ref(), scalar_document(b).as_ref(), context),
    }
}

/// Appends bytes that are ordered as documents are.
pub fn append_key(document: JsonRef<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    let known = document.normal(&mut |_| Ok(())).is_ok_and(|normal| normal.get().append_key(out).is_ok());
    if !known {
        // Below every document.
        out.truncate(start);
        out.push(0);
    }
}

/// A document where a number, a date or a truth is asked for: the value that its scalar is. `None`: it is none.
pub fn plain(document: JsonRef<'_>) -> Result<Option<Value>> {
    let normal = document.normal(&mut |_| Ok(()))?;
    Ok(Some(match normal.get().read()? {
        Node::Null | Node::Array(_) | Node::Object(_) => return Ok(None),
        Node::Bool(v) => Value::Int(v.into()),
        Node::Int(v) => Value::Int(v),
        Node::UInt(v) => Value::UInt(v),
        Node::Double(v) => Value::Double(v),
        Node::Decimal(v) => Value::Decimal(v),
        Node::String(v) => Value::Str(v.to_string()),
        Node::Date(v) => Value::Date(v),
        Node::Time(v) => Value::Time(v),
        Node::DateTime(v) => Value::DateTime(v),
        Node::Opaque(_, v) => Value::Bytes(v.to_vec()),
    }))
}

/// Whether it equals the number 0: what MySQL takes for false. The boolean `false` does not.
pub fn is_zero(document: JsonRef<'_>) -> Result<bool> {
    let normal = document.normal(&mut |_| Ok(()))?;
    Ok(match normal.get().read()? {
        Node::Int(v) => v == 0,
        Node::UInt(v) => v == 0,
        Node::Double(v) => v == 0.0,
        Node::Decimal(v) => v.is_zero(),
        _ => false,
    })
}

/// [`plain`] for a conversion to `kind`, with MySQL's warning, or in strict mode its error, where it is none.
pub fn plain_as(document: JsonRef<'_>, kind: &str, context: &mut Context) -> Result<Option<Value>> {
    let value = plain(document)?;
    if value.is_none() {
        let message = format!("Invalid JSON value for CAST to {kind} from column CAST at row 1");
        context.warn_or_fail(INVALID_JSON_VALUE_FOR_CAST, message)?;
    }
    Ok(value)
}

/// ER_INVALID_JSON_VALUE_FOR_CAST.
pub const INVALID_JSON_VALUE_FOR_CAST: u16 = 3156;

/// Error 3144: binary strings are no JSON text.
pub fn binary_text() -> MysqlError {
    MysqlError::new(3144, "Cannot create a JSON value from a string with CHARACTER SET 'binary'.")
}

/// A text as a tree. Error 3141 names the argument and the function.
pub fn parsed<'a>(text: &'a str, number: usize, function: &str, take: &mut Take<'_>) -> Result<Json<'a>> {
    rauk_types::json::parse(text, take)?.map_err(|invalid| {
        let rauk_types::json::Invalid { reason, position } = invalid;
        MysqlError::new(
            rauk_types::error::codes::INVALID_JSON_TEXT_IN_PARAM,
            format!(
                "Invalid JSON text in argument {number} to function {function}: \"{reason}\" at position {position}."
            ),
        )
    })
}
