//! The JSON functions: what reads one document, and what makes one of values.
//!
//! ```text
//! (here)  JSON_ARRAY JSON_OBJECT JSON_QUOTE JSON_UNQUOTE JSON_EXTRACT JSON_VALUE JSON_VALID JSON_TYPE JSON_DEPTH JSON_LENGTH JSON_KEYS JSON_PRETTY
//!         JSON_STORAGE_SIZE JSON_STORAGE_FREE; MariaDB's JSON_COMPACT JSON_LOOSE JSON_DETAILED JSON_EXISTS JSON_QUERY
//! search  JSON_CONTAINS JSON_CONTAINS_PATH JSON_OVERLAPS JSON_SEARCH MEMBER OF
//! schema  JSON_SCHEMA_VALID JSON_SCHEMA_VALIDATION_REPORT
//! elements  CAST(… AS … ARRAY), of keys
//! change  JSON_SET JSON_INSERT JSON_REPLACE JSON_REMOVE JSON_ARRAY_APPEND JSON_ARRAY_INSERT JSON_MERGE…
//! ```
//! A document is JSON, or a text that is parsed (3141); a binary string is none (3144), nor is anything else (3146). What is read of a column
//! is read where it lies: JSON_EXTRACT with a path without wildcards, and JSON_UNQUOTE of it, copy nothing.

pub mod change;
pub mod elements;
pub mod schema;
pub mod search;

#[cfg(test)]
mod tests;

use super::{Call, Derived, Function, Typing, rules};
use crate::expr::convert::{self, Result};
use crate::expr::eval::Env;
use crate::expr::json::{self, path::Path};
use crate::expr::types::text_type;
use crate::expr::{Context, Expr, Val, bind_document};
use rauk_types::json::{Form, Json, JsonRef, List, Members, Node, Normal};
use rauk_types::{Collation, Column, DataType, MysqlError, TypeKind, Value, ValueRef};
use std::borrow::Cow;
use std::sync::Arc;

pub const FUNCTIONS: &[Function] = &[
    Function::new("JSON_ARRAY", 0, u8::MAX, values_type, array).with_null(),
    Function { step: 2, ..Function::new("JSON_OBJECT", 0, u8::MAX, values_type, object).with_null() },
    Function::new("JSON_QUOTE", 1, 1, |t| quoted_type(&t), quote),
    Function { walk: Some(unquote), ..Function::new("JSON_UNQUOTE", 1, 1, text, |_, _| Ok(Value::Null)) },
    Function { walk: Some(extract), ..Function::new("JSON_EXTRACT", 2, u8::MAX, json_or_null, |_, _| Ok(Value::Null)) },
    Function::new("JSON_VALUE", 2, 2, |_| Ok(value_type()), value),
    Function::new("JSON_VALUE_OF", 6, 6, |_| Ok(value_type()), value_of).with_null().unbounded(),
    TRUTH_CALL,
    Function::new("JSON_VALID", 1, 1, rules::boolean, valid),
    Function::new("JSON_TYPE", 1, 1, |_| Ok(Derived::new(DataType::varchar(51, Collation::Utf8mb4Bin))), type_name),
    Function::new("JSON_DEPTH", 1, 1, rules::integer, |c, x| Ok(Value::Int(document(c, 0, x)?.get().depth()? as i64))),
    Function::new("JSON_LENGTH", 1, 2, rules::integer_or_null, length),
    Function::new("JSON_KEYS", 1, 2, json_or_null, keys),
    Function::new("JSON_PRETTY", 1, 1, text, |c, x| shown(c, x, Form::Lines)),
    Function::new("JSON_STORAGE_SIZE", 1, 1, rules::integer, storage_size),
    // Changed documents are written whole, so that nothing is free in them.
    Function::new("JSON_STORAGE_FREE", 1, 1, rules::integer, |c, x| document(c, 0, x).map(|_| Value::Int(0))),
    Function::new("JSON_COMPACT", 1, 1, text, |c, x| shown(c, x, Form::Dense)),
    Function::new("JSON_LOOSE", 1, 1, text, |c, x| shown(c, x, Form::Plain)),
    Function::new("JSON_DETAILED", 1, 1, text, |c, x| shown(c, x, Form::Lines)),
    Function::new("JSON_EXISTS", 2, 2, rules::integer_or_null, |c, x| {
        let (document, path) = (document(c, 0, x)?, path(c, 1, x)?);
        Ok(Value::Int((!found(&path, document.get(), x)?.is_empty()).into()))
    }),
    Function::new("JSON_QUERY", 2, 2, json_or_null, query),
];

/// A predicate beside JSON: a boolean.
pub(in crate::expr) static TRUTH: Function = TRUTH_CALL;

const TRUTH_CALL: Function =
    Function::new("JSON_TRUTH", 1, 1, json_or_null, |c, x| json::encoded(&Json::Bool(c.int(0, x)? != 0), x));

fn json_or_null(_: Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(DataType::new(TypeKind::Json)).nullable())
}

/// Of functions that put values of any type into a document.
fn values_type(t: Typing<'_>) -> Result<Derived> {
    for argument in t.arguments.iter_mut() {
        *argument = bind_document(std::mem::replace(argument, Expr::null()));
    }
    Ok(Derived::new(DataType::new(TypeKind::Json)))
}

fn text(_: Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(text_type(u32::MAX.into(), Collation::Utf8mb4Bin)).nullable())
}

fn quoted_type(t: &Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(text_type(6 * t.length(0) + 2, Collation::Utf8mb4Bin)))
}

fn value_type() -> Derived {
    Derived::new(text_type(512, Collation::Utf8mb4Bin)).nullable()
}

fn lower(c: &Call<'_, '_>) -> String {
    c.name.to_ascii_lowercase()
}

/// Error 3146.
fn no_json(number: usize, function: &str) -> MysqlError {
    MysqlError::new(
        rauk_types::error::codes::INVALID_TYPE_FOR_JSON,
        format!(
            "Invalid data type for JSON data in argument {number} to function {function}; a JSON string or JSON type is \
             required."
        ),
    )
}

/// A value as a document; it is not NULL. Errors: 3140, 3141, 3144, 3146, 3157, 1038.
fn document_of<'v>(
    value: ValueRef<'v>,
    ty: &DataType,
    number: usize,
    function: &str,
    context: &mut Context,
) -> Result<Normal<'v>> {
    match value {
        ValueRef::Json(document) => json::normal(document, context),
        ValueRef::Str(text) if ty.kind == TypeKind::Json => json::normal(JsonRef::of_text(text), context),
        ValueRef::Str(text) => {
            let function = function.to_ascii_lowercase();
            context.budget.work(text.len())?;
            json::counted(&mut context.budget, |take| json::parsed(text, number, &function, take)?.encode(take))
                .map(Normal::of_stored)
        }
        ValueRef::Bytes(_) => Err(json::binary_text()),
        _ => Err(no_json(number, &function.to_ascii_lowercase())),
    }
}

/// An argument that is a document.
fn document<'c>(c: &'c Call<'_, '_>, at: usize, context: &mut Context) -> Result<Normal<'c>> {
    document_of(c.value(at), c.argument_type(at), at + 1, c.name, context)
}

/// An argument that is a path. Error 3143.
fn path(c: &Call<'_, '_>, at: usize, context: &mut Context) -> Result<Arc<Path>> {
    context.json_paths.find(&c.text(at))
}

/// Work of looking at one value of a document, in bytes.
const VISIT: usize = 64;

fn found<'v>(path: &Path, document: JsonRef<'v>, context: &mut Context) -> Result<Vec<JsonRef<'v>>> {
    path.find(document, &mut || context.budget.work(VISIT))
}

/// Error 3149: a path that may find several values, where one is meant.
fn single(path: &Path) -> Result<()> {
    if path.has_wildcard() {
        let message = "In this situation, path expressions may not contain the * and ** tokens or an array range.";
        return Err(MysqlError::new(3149, message));
    }
    Ok(())
}

/// The value that the path in the second argument finds, where there is one.
fn at_path<'v>(c: &Call<'_, '_>, document: JsonRef<'v>, context: &mut Context) -> Result<Option<JsonRef<'v>>> {
    if !c.has(1) {
        return Ok(Some(document));
    }
    let path = path(c, 1, context)?;
    single(&path)?;
    path.get(document)
}

/// All arguments from `from` on as parts of a document.
fn parts<'c>(
    c: &'c Call<'_, '_>,
    from: usize,
    copies: &'c mut Vec<Vec<u8>>,
    context: &mut Context,
) -> Result<Vec<Json<'c>>> {
    copies.resize(c.len() - from, Vec::new());
    copies
        .iter_mut()
        .enumerate()
        .map(|(at, copy)| json::part_of(c.value(from + at), &c.arguments[from + at], copy, context))
        .collect()
}

fn array(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let mut copies = Vec::new();
    let items = parts(c, 0, &mut copies, context)?;
    json::encoded(&Json::Array(items), context)
}

fn object(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let mut copies = Vec::new();
    let values = parts(c, 0, &mut copies, context)?;
    let mut members = Vec::with_capacity(values.len() / 2);
    for (at, value) in values.into_iter().enumerate().filter(|(at, _)| at % 2 == 1) {
        if c.is_null(at - 1) {
            return Err(MysqlError::new(3158, "JSON documents may not contain NULL member names."));
        }
        if matches!(c.value(at - 1), ValueRef::Bytes(_)) {
            return Err(json::binary_text());
        }
        members.push((Cow::Owned(c.text(at - 1).into_owned()), value));
    }
    json::encoded(&Json::Object(Members::new(members)), context)
}

/// Error 3064: a text is wanted.
fn incorrect_type(number: usize, function: &str) -> MysqlError {
    MysqlError::new(3064, format!("Incorrect type for argument {number} in function {function}."))
}

fn quote(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let ValueRef::Str(text) = c.value(0) else { return Err(incorrect_type(1, "json_quote")) };
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | 8 | 9 | 10 | 12 | 13 => 1,
        0..0x20 => 5,
        _ => 0,
    };
    if !c.fits(text.len() + 2 + text.bytes().map(escaped).sum::<usize>(), context) {
        return Ok(Value::Null);
    }
    let mut out = Vec::with_capacity(text.len() + 2);
    rauk_types::json::append_quoted(text, &mut out);
    Ok(c.string(out))
}

/// A string of a document as text, any other value as its text; a text that is a JSON string as what it says.
fn unquote<'a>(arguments: &'a [Expr], env: &Env<'a>, context: &mut Context) -> Result<Val<'a>> {
    let value = arguments[0].value(env, context)?;
    let text = match (&value, value.as_ref()) {
        (_, ValueRef::Null) => return Ok(Val::NULL),
        (Val::Ref(ValueRef::Json(document)), _) if !document.is_text() => match document.read()? {
            Node::String(text) => return Ok(Val::Ref(ValueRef::Str(text))),
            _ => unquoted(*document)?,
        },
        (_, ValueRef::Json(document)) => unquoted(json::normal(document, context)?.get())?,
        (_, ValueRef::Str(text)) if text.len() >= 2 && text.starts_with('"') && text.ends_with('"') => {
            context.budget.work(text.len())?;
            let take: &mut rauk_types::json::Take<'_> = &mut |_| Ok(());
            match json::parsed(text, 1, "json_unquote", take)? {
                Json::String(text) => text.into_owned(),
                _ => text.to_string(),
            }
        }
        (_, ValueRef::Str(_)) => return Ok(value),
        (_, ValueRef::Bytes(_)) => convert::text(value.as_ref(), &arguments[0].ty).into_owned(),
        _ => return Err(incorrect_type(1, "json_unquote")),
    };
    Ok(Val::Own(Value::Str(text)))
}

fn unquoted(document: JsonRef<'_>) -> Result<String> {
    let mut text = Vec::new();
    document.append_unquoted(&mut text)?;
    Ok(String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// One path without wildcards gives the value itself; all else an array of what was found.
fn extract<'a>(arguments: &'a [Expr], env: &Env<'a>, context: &mut Context) -> Result<Val<'a>> {
    let [first, paths @ ..] = arguments else { unreachable!("it has two arguments at least") };
    let value = first.value(env, context)?;
    if value.is_null() {
        return Ok(Val::NULL);
    }
    let mut known = smallvec::SmallVec::<[Arc<Path>; 2]>::new();
    for path in paths {
        let text = path.value(env, context)?;
        if text.is_null() {
            return Ok(Val::NULL);
        }
        known.push(context.json_paths.find(&convert::text(text.as_ref(), &path.ty))?);
    }
    if let ([path], Val::Ref(ValueRef::Json(document))) = (&known[..], &value)
        && !path.has_wildcard()
        && !document.is_text()
    {
        return Ok(path.get(*document)?.map_or(Val::NULL, |found| Val::Ref(ValueRef::Json(found))));
    }
    let work = value.bytes();
    context.budget.work(work)?;
    let runner = context.budget.runner(work);
    let result = crate::expr::run(runner, || {
        let document = document_of(value.as_ref(), &first.ty, 1, "json_extract", context)?;
        extracted(&known, document.get(), context)
    })?;
    Ok(Val::Own(result))
}

fn extracted(paths: &[Arc<Path>], document: JsonRef<'_>, context: &mut Context) -> Result<Value> {
    if let [path] = paths
        && !path.has_wildcard()
    {
        return Ok(path.get(document)?.map_or(Value::Null, |found| ValueRef::Json(found).to_owned()));
    }
    let mut all = Vec::new();
    for path in paths {
        all.extend(found(path, document, context)?.into_iter().map(Json::Stored));
        context.budget.work(all.len() * size_of::<Json<'_>>())?;
    }
    if all.is_empty() { Ok(Value::Null) } else { json::encoded(&Json::Array(all), context) }
}

/// The text of the scalar that a path finds; NULL for anything else, and for `null`.
fn value(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let (document, path) = (document(c, 0, context)?, path(c, 1, context)?);
    match found(&path, document.get(), context)?.as_slice() {
        [one] if one.read()?.is_scalar() && one.read()? != Node::Null => Ok(Value::Str(unquoted(*one)?)),
        _ => Ok(Value::Null),
    }
}

/// The same as a value of the call's type, with what ON EMPTY and ON ERROR say: whether they are errors, and their defaults.
fn value_of(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    if c.is_null(0) || c.is_null(1) {
        return Ok(Value::Null);
    }
    let path = path(c, 1, context)?;
    let on = |at: usize, error: MysqlError| match c.value(at) {
        ValueRef::Int(1) => Err(error),
        _ => Ok(c.value(at + 1).to_owned()),
    };
    let name = "json_value";
    let result = value_as(c, &path, context);
    match result {
        Ok(Some(value)) => Ok(value),
        Ok(None) => on(2, MysqlError::new(3966, format!("No value was found by '{name}' on the specified path."))),
        // What ends the statement is no error of the value.
        Err(error) if matches!(error.code, 1038 | 1317 | 3024 | 3142 | 3144 | 3146) => Err(error),
        Err(error) => on(4, error),
    }
}

fn value_as(c: &Call<'_, '_>, path: &Path, context: &mut Context) -> Result<Option<Value>> {
    let document = document_of(c.value(0), c.argument_type(0), 1, "json_value", context)?;
    let found = found(path, document.get(), context)?;
    let value = match found.as_slice() {
        [] => return Ok(None),
        [value] => *value,
        _ => {
            let message = "More than one value was found by 'json_value' on the specified path.";
            return Err(MysqlError::new(3967, message));
        }
    };
    let column = Column {
        id: rauk_types::ColumnId(0),
        name: String::from("json_value"),
        // Text is not padded, and bytes are as long as they are.
        ty: *c.ty,
        nullable: true,
        default: rauk_types::ColumnDefault::None,
        on_update_now: false,
        comment: String::new(),
        initial: Value::Null,
        generated: None,
        invisible: false,
    };
    json::store::value_for(value, &column, context).map(Some)
}

/// MariaDB's: the array or object that a path finds.
fn query(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let (document, path) = (document(c, 0, context)?, path(c, 1, context)?);
    let found = found(&path, document.get(), context)?;
    for value in found {
        if !value.read()?.is_scalar() {
            return Ok(ValueRef::Json(value).to_owned());
        }
    }
    Ok(Value::Null)
}

fn valid(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let valid = match c.value(0) {
        ValueRef::Json(_) => true,
        ValueRef::Str(text) => {
            match json::counted(&mut context.budget, |take| Ok(rauk_types::json::parse(text, take)?.is_ok())) {
                // Too deep is no JSON.
                Err(error) if error.code == 3157 => false,
                valid => valid?,
            }
        }
        _ => false,
    };
    Ok(Value::Int(valid.into()))
}

fn type_name(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    Ok(Value::from(document(c, 0, context)?.get().read()?.type_name()))
}

fn length(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let document = document(c, 0, context)?;
    let Some(value) = at_path(c, document.get(), context)? else { return Ok(Value::Null) };
    Ok(Value::Int(value.list()?.map_or(1, |list: List<'_>| list.len() as i64)))
}

fn keys(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let document = document(c, 0, context)?;
    let Some(value) = at_path(c, document.get(), context)? else { return Ok(Value::Null) };
    let Node::Object(list) = value.read()? else { return Ok(Value::Null) };
    let names = (0..list.len()).map(|at| Ok(Json::String(Cow::Borrowed(list.name(at)?))));
    let names = names.collect::<Result<Vec<_>>>()?;
    json::encoded(&Json::Array(names), context)
}

fn shown(c: &Call<'_, '_>, context: &mut Context, form: Form) -> Result<Value> {
    let document = document(c, 0, context)?;
    let mut out = Vec::new();
    if document.get().append_form(form, context.max_allowed_packet, &mut out)? {
        return Ok(c.string(out));
    }
    super::overflowed(c.name, context);
    Ok(Value::Null)
}

fn storage_size(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    // Without the byte that tells the form.
    Ok(Value::Int(document(c, 0, context)?.get().stored_len() as i64 - 1))
}
