//! CAST(document AS type ARRAY): what a multi-valued index has of a row.
//!
//! The value is an array of the document's elements in the type of the index, each once; a scalar is an array of one.
//! Only the expression of a key is one ([`rauk_types::elements`]). NULL and `null` give NULL, for which the index has
//! no entries.
//!
//! An element that has no value of the type is an error, in every sql_mode: an index must not lack it. Errors speak of
//! the index, whose name the caller puts in the place of [`INDEX_NAME`]: 3903 for what is no such value and `null`, 3908
//! for arrays and objects, 3904 for numbers out of range, 3907 for long texts, 3905 and 3906 for more values or bytes than
//! an index takes of a row.

use super::{Call, Derived, Function, document, rules};
use crate::expr::convert::{self, Result};
use crate::expr::json;
use crate::expr::{Context, Expr, ExprKind, cast};
use rauk_types::elements::{MAX_ELEMENT_BYTES, MAX_ELEMENTS, element_key};
use rauk_types::json::{Json, Node};
use rauk_types::{Collation, DataType, JsonRef, MysqlError, TypeKind, Value, ValueRef};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Its second argument is NULL of the type of the elements.
pub(in crate::expr) static CAST_ARRAY: Function =
    Function::new("CAST_ARRAY", 2, 2, |_| Ok(Derived::new(DataType::new(TypeKind::Json)).nullable()), cast_array)
        .with_null();

/// A condition on an array, and what elements the rows have that it holds for: the condition, the column of the
/// elements' key, whether a row has all of the elements, and the elements as values of the key. It is the condition;
/// only the choice of an index looks at the others.
static BY_ELEMENTS: Function = Function {
    walk: Some(|arguments, env, context| arguments[0].value(env, context)),
    ..Function::new("BY_ELEMENTS", 4, u8::MAX, rules::boolean, |_, _| Ok(Value::Null)).with_null().unbounded()
};

pub(crate) fn by_elements(test: Expr, column: Expr, all: bool, keys: Vec<Expr>) -> Expr {
    let all = Expr { kind: ExprKind::Literal(Value::Int(all.into())), ty: DataType::BIGINT, ..Expr::null() };
    let (ty, nullable, coercibility) = (test.ty, test.nullable, test.coercibility);
    let arguments = [test, column, all].into_iter().chain(keys).collect();
    Expr { kind: ExprKind::Function { function: &BY_ELEMENTS, arguments }, ty, nullable, coercibility }
}

/// What elements a condition asks for.
pub(crate) struct AskedElements<'e> {
    pub test: &'e Expr,
    pub column: &'e Expr,
    /// A row has all of them; else one.
    pub all: bool,
    pub keys: &'e [Expr],
}

impl AskedElements<'_> {
    pub fn of(expr: &Expr) -> Option<AskedElements<'_>> {
        match &expr.kind {
            ExprKind::Function { function, arguments } if function.name == BY_ELEMENTS.name => {
                let [test, column, all, keys @ ..] = arguments.as_slice() else { return None };
                Some(AskedElements { test, column, all: all.kind == ExprKind::Literal(Value::Int(1)), keys })
            }
            _ => None,
        }
    }
}

/// A constant as a document in its stored form. `element`: a text is a string, else JSON.
pub(crate) fn constant_document(expr: &Expr, element: bool) -> Option<Vec<u8>> {
    let (value, text_is_json) = match &expr.kind {
        ExprKind::Literal(value) => (value, !element || expr.ty.kind == TypeKind::Json),
        ExprKind::Cast(inner) if expr.ty.kind == TypeKind::Json => match &inner.kind {
            ExprKind::Literal(value @ Value::Str(_)) => (value, true),
            _ => return None,
        },
        _ => return None,
    };
    let free: &mut rauk_types::json::Take<'_> = &mut |_| Ok(());
    match value {
        Value::Null => None,
        Value::Json(stored) => Some(stored.clone()),
        Value::Str(text) if text_is_json => rauk_types::json::parse(text, free).ok()?.ok()?.encode(free).ok(),
        // Beside documents only text is JSON.
        _ if !element => None,
        value => json::part(value.as_ref(), &expr.ty).encode(free).ok(),
    }
}

/// What stands for the name of the index in the errors of [`CAST_ARRAY`].
pub(crate) const INDEX_NAME: &str = "\u{0}";

/// ER_INVALID_JSON_VALUE_FOR_FUNC_INDEX.
const INVALID: u16 = 3903;
/// ER_JSON_VALUE_OUT_OF_RANGE_FOR_FUNC_INDEX.
const OUT_OF_RANGE: u16 = 3904;
/// ER_EXCEEDED_MV_KEYS_NUM.
const TOO_MANY: u16 = 3905;
/// ER_EXCEEDED_MV_KEYS_SPACE.
const TOO_LARGE: u16 = 3906;
/// ER_FUNCTIONAL_INDEX_DATA_IS_TOO_LONG.
const TOO_LONG: u16 = 3907;
/// ER_WRONG_MVI_VALUE.
const NOT_SCALAR: u16 = 3908;

fn invalid() -> MysqlError {
    MysqlError::new(INVALID, format!("Invalid JSON value for CAST for functional index '{INDEX_NAME}'."))
}

fn not_scalar() -> MysqlError {
    let message = format!("Cannot store an array or an object in a scalar key part of the index '{INDEX_NAME}'.");
    MysqlError::new(NOT_SCALAR, message)
}

fn out_of_range() -> MysqlError {
    MysqlError::new(OUT_OF_RANGE, format!("Out of range JSON value for CAST for functional index '{INDEX_NAME}'."))
}

fn cast_array(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    if c.is_null(0) {
        return Ok(Value::Null);
    }
    let ty = *c.argument_type(1);
    let normal = document(c, 0, context)?;
    let mut elements = Elements { ty: &ty, keys: BTreeSet::new(), bytes: 0, list: Vec::new() };
    match normal.get().read()? {
        Node::Null => return Ok(Value::Null),
        Node::Object(_) => return Err(not_scalar()),
        Node::Array(list) => {
            for at in 0..list.len() {
                context.budget.work(16)?;
                elements.add(list.value(at)?.read()?, context)?;
            }
        }
        scalar => elements.add(scalar, context)?,
    }
    elements.check()?;
    json::encoded(&Json::Array(elements.list), context)
}

struct Elements<'t> {
    ty: &'t DataType,
    keys: BTreeSet<Vec<u8>>,
    /// Of the keys.
    bytes: usize,
    list: Vec<Json<'static>>,
}

impl Elements<'_> {
    fn add(&mut self, node: Node<'_>, context: &mut Context) -> Result<()> {
        let element = converted(&node, self.ty, context)?;
        let stored = element.encode(&mut |_| Ok(()))?;
        let mut key = Vec::new();
        element_key(JsonRef::stored(&stored), self.ty, &mut key);
        let length = key.len();
        if self.keys.insert(key) {
            self.bytes += length;
            self.list.push(element);
        }
        // Far beyond the limits the numbers in the errors need not be exact.
        if self.keys.len() > 16 * MAX_ELEMENTS || self.bytes > 16 * MAX_ELEMENT_BYTES { self.check() } else { Ok(()) }
    }

    fn check(&self) -> Result<()> {
        if self.keys.len() > MAX_ELEMENTS {
            let more = self.keys.len() - MAX_ELEMENTS;
            let message = format!(
                "Exceeded max number of values per record for multi-valued index '{INDEX_NAME}' by {more} value(s)."
            );
            return Err(MysqlError::new(TOO_MANY, message));
        }
        if self.bytes > MAX_ELEMENT_BYTES {
            let more = self.bytes - MAX_ELEMENT_BYTES;
            let message = format!(
                "Exceeded max total length of values per record for multi-valued index '{INDEX_NAME}' by {more} bytes."
            );
            return Err(MysqlError::new(TOO_LARGE, message));
        }
        Ok(())
    }
}

/// A scalar in the type of an index.
fn converted(node: &Node<'_>, ty: &DataType, context: &mut Context) -> Result<Json<'static>> {
    match node {
        Node::Null => return Err(invalid()),
        Node::Array(_) | Node::Object(_) => return Err(not_scalar()),
        _ => {}
    }
    match ty.kind {
        TypeKind::BigInt => {
            let number = whole(node).ok_or_else(invalid)?;
            match ty.unsigned {
                true => u64::try_from(number).map(Json::UInt),
                false => i64::try_from(number).map(Json::Int),
            }
            .map_err(|_| out_of_range())
        }
        TypeKind::VarChar => {
            let text: Cow<'_, str> = match node {
                Node::String(text) => Cow::Borrowed(text),
                Node::Opaque(..) => return Err(invalid()),
                other => {
                    let mut out = Vec::new();
                    let value = plain(other);
                    rauk_types::format::append_text(value.as_ref(), &own_type(&value), &mut out);
                    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
                }
            };
            if text.chars().count() > ty.length as usize {
                let message = format!("Data too long for functional index '{INDEX_NAME}'.");
                return Err(MysqlError::new(TOO_LONG, message));
            }
            Ok(Json::String(Cow::Owned(text.into_owned())))
        }
        TypeKind::Decimal => {
            let number = match node {
                Node::String(text) if text.trim().parse::<f64>().is_err() => return Err(invalid()),
                Node::Opaque(..) | Node::Date(_) | Node::Time(_) | Node::DateTime(_) => return Err(invalid()),
                other => convert::to_decimal(plain(other).as_ref(), context)?,
            };
            number.to_precision(ty.precision, ty.scale).map(Json::Decimal).map_err(|_| out_of_range())
        }
        _ => {
            let fits = match node {
                Node::String(_) => true,
                Node::Date(_) => matches!(ty.kind, TypeKind::Date | TypeKind::DateTime),
                Node::DateTime(_) => matches!(ty.kind, TypeKind::Date | TypeKind::DateTime | TypeKind::Time),
                Node::Time(_) => ty.kind == TypeKind::Time,
                _ => false,
            };
            if !fits {
                return Err(invalid());
            }
            let (value, warnings) = (plain(node), context.warning_count);
            let from = own_type(&value);
            let (strict, noted) = (std::mem::replace(&mut context.strict_statement, true), context.warnings.len());
            let found = cast::cast(value.into(), &from, ty, context);
            context.strict_statement = strict;
            context.warnings.truncate(noted);
            let complete = context.warning_count == warnings;
            context.warning_count = warnings;
            match found.map(|found| found.as_ref().to_owned()) {
                Ok(Value::Date(date)) if complete => Ok(Json::Date(date)),
                Ok(Value::Time(time)) if complete => Ok(Json::Time(time)),
                Ok(Value::DateTime(time)) if complete => Ok(Json::DateTime(time)),
                _ => Err(invalid()),
            }
        }
    }
}

/// A scalar as a value of SQL.
fn plain(node: &Node<'_>) -> Value {
    match node {
        Node::Bool(truth) => Value::Int((*truth).into()),
        Node::Int(number) => Value::Int(*number),
        Node::UInt(number) => Value::UInt(*number),
        Node::Double(number) => Value::Double(*number),
        Node::Decimal(number) => Value::Decimal(*number),
        Node::String(text) => Value::from(*text),
        Node::Date(date) => Value::Date(*date),
        Node::Time(time) => Value::Time(*time),
        Node::DateTime(time) => Value::DateTime(*time),
        Node::Opaque(_, bytes) => Value::Bytes(bytes.to_vec()),
        Node::Null | Node::Array(_) | Node::Object(_) => Value::Null,
    }
}

/// A type that shows all of a value.
fn own_type(value: &Value) -> DataType {
    match value {
        Value::Double(_) => DataType::DOUBLE,
        Value::Decimal(number) => DataType::decimal(65, number.scale()),
        Value::Date(_) => DataType::new(TypeKind::Date),
        Value::Time(_) => DataType { scale: 6, ..DataType::new(TypeKind::Time) },
        Value::DateTime(_) => DataType { scale: 6, ..DataType::new(TypeKind::DateTime) },
        Value::Str(_) => DataType::varchar(cast::NO_LENGTH, Collation::Utf8mb4Bin),
        _ => DataType::BIGINT,
    }
}

/// A number as a whole one, rounded; `None` for what is no number.
fn whole(node: &Node<'_>) -> Option<i128> {
    match node {
        Node::Bool(truth) => Some((*truth).into()),
        Node::Int(number) => Some((*number).into()),
        Node::UInt(number) => Some((*number).into()),
        Node::Double(number) => Some(number.round_ties_even() as i128),
        Node::Decimal(number) => number.rounded(0).to_i128(),
        Node::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A constant as the elements that equal it have it in the type of an index; `None`: the index says nothing of it.
/// Numbers equal numbers, and texts texts.
pub(crate) fn sought(value: JsonRef<'_>, ty: &DataType, context: &mut Context) -> Option<Value> {
    let node = value.read().ok()?;
    let same_kind = match (&node, ty.kind) {
        (Node::Int(_) | Node::UInt(_), TypeKind::BigInt | TypeKind::Decimal) => true,
        (Node::Double(number), TypeKind::BigInt) => number.fract() == 0.0,
        (Node::Decimal(number), TypeKind::BigInt) => number.rounded(0) == *number,
        (Node::Decimal(_), TypeKind::Decimal) => true,
        (Node::String(_), TypeKind::VarChar) => true,
        (Node::Date(_), TypeKind::Date) | (Node::Time(_), TypeKind::Time) | (Node::DateTime(_), TypeKind::DateTime) => {
            true
        }
        _ => false,
    };
    if !same_kind {
        return None;
    }
    let found = converted(&node, ty, context).ok()?;
    let stored = found.encode(&mut |_| Ok(())).ok()?;
    let found = plain(&JsonRef::stored(&stored).read().ok()?);
    let equal = |exact: ValueRef<'_>| match (exact, plain(&node).as_ref()) {
        (ValueRef::Decimal(found), ValueRef::Decimal(given)) => found == given,
        (ValueRef::Time(found), ValueRef::Time(given)) => found == given,
        (ValueRef::DateTime(found), ValueRef::DateTime(given)) => found == given,
        _ => true,
    };
    // A value that is rounded in the index may be another one.
    if !equal(found.as_ref()) {
        return None;
    }
    Some(match found {
        Value::Int(number) if ty.unsigned => Value::UInt(number as u64),
        Value::UInt(number) if !ty.unsigned && ty.kind == TypeKind::BigInt => Value::Int(number as i64),
        other => other,
    })
}
