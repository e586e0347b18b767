//! JSON_ARRAYAGG and JSON_OBJECTAGG: documents in the form in which MySQL shows them.
//!
//! A JSON argument is brought into the form of [`crate::expr::json`]. Predicates and TRUE are booleans; dates and times are texts, with six
//! digits of the fraction. A NULL argument is `null`, but not as the name of a member (3158). Names and values of binary strings are refused
//! where the call is bound.
//!
//! A document is not longer than `max_allowed_packet`: a longer one is NULL, with warning 1301.

use crate::exec::output::with_value;
use crate::expr::json::{self, append_double, append_string};
use crate::expr::{Aggregate, AggregateFunction, Columns, Context, Expr};
use crate::memory::Memory;
use rauk_types::error::codes;
use rauk_types::format::append_text;
use rauk_types::{DataType, MysqlError, TypeKind, Value, ValueRef};
use std::collections::BTreeMap;

/// ER_JSON_DOCUMENT_NULL_KEY.
const NULL_NAME: u16 = 3158;

/// ER_WARN_ALLOWED_PACKET_OVERFLOWED.
const OVERFLOWED: u16 = 1301;

/// A document as it grows.
#[derive(Clone)]
pub(super) enum Json {
    /// The elements, with what stands between them.
    Array(Vec<u8>),
    /// Values by the lengths of their names and the names.
    Object(BTreeMap<(usize, Vec<u8>), Vec<u8>>),
}

impl Json {
    pub fn new(function: AggregateFunction) -> Json {
        match function {
            AggregateFunction::JsonArrayAgg => Json::Array(Vec::new()),
            _ => Json::Object(BTreeMap::new()),
        }
    }

    pub fn push(
        &mut self,
        aggregate: &Aggregate,
        row: &dyn Columns,
        context: &mut Context,
        memory: &Memory,
    ) -> Result<(), MysqlError> {
        match (self, aggregate.arguments.as_slice()) {
            (Json::Array(text), [argument]) => {
                let before = text.len();
                if !text.is_empty() {
                    text.extend_from_slice(b", ");
                }
                let mut result = Ok(());
                with_value(argument, row, context, |value| result = append(value, argument, text))?;
                result?;
                memory.take(text.len() - before)
            }
            (Json::Object(members), [name, argument]) => {
                let mut bytes = Vec::new();
                let mut null = false;
                with_value(name, row, context, |value| {
                    null = value.is_null();
                    append_text(value, &name.ty, &mut bytes);
                })?;
                if null {
                    return Err(MysqlError::new(NULL_NAME, "JSON documents may not contain NULL member names."));
                }
                let mut text = Vec::new();
                let mut result = Ok(());
                with_value(argument, row, context, |value| result = append(value, argument, &mut text))?;
                result?;
                memory.take(bytes.len() + text.len() + 96)?;
                if let Some(old) = members.insert((bytes.len(), bytes), text) {
                    memory.give(old.len());
                }
                Ok(())
            }
            _ => unreachable!("the number of arguments was checked"),
        }
    }

    pub fn finish(self, memory: &Memory, context: &mut Context) -> Result<Value, MysqlError> {
        let mut out = Vec::new();
        let name = match self {
            Json::Array(text) if text.is_empty() => return Ok(Value::Null),
            Json::Array(text) => {
                memory.take(text.len() + 2)?;
                out.push(b'[');
                out.extend_from_slice(&text);
                out.push(b']');
                "json_arrayagg"
            }
            Json::Object(members) if members.is_empty() => return Ok(Value::Null),
            Json::Object(members) => {
                memory.take(members.iter().map(|((length, _), text)| length + text.len() + 6).sum())?;
                for (number, ((_, name), text)) in members.iter().enumerate() {
                    out.extend_from_slice(if number == 0 { &b"{"[..] } else { b", " });
                    append_string(&String::from_utf8_lossy(name), &mut out);
                    out.extend_from_slice(b": ");
                    out.extend_from_slice(text);
                }
                out.push(b'}');
                "json_objectagg"
            }
        };
        let limit = context.max_allowed_packet;
        if out.len() > limit {
            context.warn(
                OVERFLOWED,
                format!("Result of {name}() was larger than max_allowed_packet ({limit}) - truncated"),
            );
            return Ok(Value::Null);
        }
        Ok(Value::Str(String::from_utf8(out).expect("a document is made of texts")))
    }
}

/// Appends a value as JSON. Error 3140: a JSON value that is none.
fn append(value: ValueRef<'_>, argument: &Expr, out: &mut Vec<u8>) -> Result<(), MysqlError> {
    let ty = &argument.ty;
    match value {
        ValueRef::Null => out.extend_from_slice(b"null"),
        ValueRef::Int(v) if argument.is_predicate() => {
            out.extend_from_slice(if v == 0 { &b"false"[..] } else { b"true" })
        }
        ValueRef::Int(_) | ValueRef::UInt(_) | ValueRef::Decimal(_) => append_text(value, ty, out),
        ValueRef::Double(v) => append_double(v, out),
        ValueRef::Date(_) => quoted(value, ty, out),
        ValueRef::Time(_) | ValueRef::DateTime(_) | ValueRef::Timestamp(_) => {
            quoted(value, &DataType { scale: 6, ..*ty }, out);
        }
        ValueRef::Str(text) if ty.kind == TypeKind::Json => append_document(text, out)?,
        ValueRef::Str(text) => append_string(text, out),
        ValueRef::Bytes(_) => unreachable!("binary strings are refused where the call is bound"),
    }
    Ok(())
}

fn quoted(value: ValueRef<'_>, ty: &DataType, out: &mut Vec<u8>) {
    out.push(b'"');
    append_text(value, ty, out);
    out.push(b'"');
}

/// A document as MySQL shows it. It was checked when it was stored, which bounds its depth too.
fn append_document(text: &str, out: &mut Vec<u8>) -> Result<(), MysqlError> {
    let document = serde_json::from_str(text)
        .map_err(|error| MysqlError::new(codes::INVALID_JSON_TEXT, format!("Invalid JSON text: {error}")))?;
    json::append(&document, out);
    Ok(())
}
