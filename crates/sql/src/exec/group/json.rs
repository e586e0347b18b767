//! JSON_ARRAYAGG and JSON_OBJECTAGG: documents that grow row by row.
//!
//! Predicates and TRUE are booleans. A NULL argument is `null`, but not as the name of a member (3158). Values are kept in their stored form and put
//! together at the end, so that a large document is written once.
//!
//! A document is not longer than `max_allowed_packet`: a longer one is NULL, with warning 1301.

use crate::exec::output::with_value;
use crate::expr::{Aggregate, AggregateFunction, Columns, Context, Expr, json};
use crate::memory::Memory;
use rauk_types::format::append_text;
use rauk_types::json::{Json as Tree, JsonRef, Members};
use rauk_types::{MysqlError, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// ER_JSON_DOCUMENT_NULL_KEY.
const NULL_NAME: u16 = 3158;

/// ER_WARN_ALLOWED_PACKET_OVERFLOWED.
const OVERFLOWED: u16 = 1301;

/// A document as it grows.
#[derive(Clone)]
pub(super) enum Json {
    /// The elements in their stored forms.
    Array(Vec<Vec<u8>>),
    /// Values by names.
    Object(BTreeMap<String, Vec<u8>>),
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
            (Json::Array(items), [argument]) => {
                let item = document(argument, row, context)?;
                memory.take(item.len() + 48)?;
                items.push(item);
                Ok(())
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
                let name = String::from_utf8(bytes).map_err(|_| json::binary_text())?;
                let value = document(argument, row, context)?;
                memory.take(name.len() + value.len() + 96)?;
                if let Some(old) = members.insert(name, value) {
                    memory.give(old.len());
                }
                Ok(())
            }
            _ => unreachable!("the number of arguments was checked"),
        }
    }

    pub fn finish(self, context: &mut Context) -> Result<Value, MysqlError> {
        let (name, result) = match &self {
            Json::Array(items) if items.is_empty() => return Ok(Value::Null),
            Json::Object(members) if members.is_empty() => return Ok(Value::Null),
            Json::Array(items) => {
                let tree = Tree::Array(items.iter().map(|item| Tree::Stored(JsonRef::stored(item))).collect());
                ("json_arrayagg", json::encoded(&tree, context)?)
            }
            Json::Object(members) => {
                let list = members
                    .iter()
                    .map(|(name, value)| (Cow::Borrowed(name.as_str()), Tree::Stored(JsonRef::stored(value))));
                ("json_objectagg", json::encoded(&Tree::Object(Members::new(list.collect())), context)?)
            }
        };
        let limit = context.max_allowed_packet;
        if crate::memory::heap_bytes(&result) > limit {
            context.warn(
                OVERFLOWED,
                format!("Result of {name}() was larger than max_allowed_packet ({limit}) - truncated"),
            );
            return Ok(Value::Null);
        }
        Ok(result)
    }
}

/// The stored form of an argument's value.
fn document(argument: &Expr, row: &dyn Columns, context: &mut Context) -> Result<Vec<u8>, MysqlError> {
    let value = argument.eval(row, context)?;
    let mut copy = Vec::new();
    let part = json::part_of(value.as_ref(), argument, &mut copy, context)?;
    match json::encoded(&part, context)? {
        Value::Json(stored) => Ok(stored),
        _ => unreachable!("a document is JSON"),
    }
}
