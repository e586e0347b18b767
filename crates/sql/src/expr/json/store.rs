//! Documents into columns: JSON columns from values of any type, other columns from JSON.

use super::{INVALID_JSON_VALUE_FOR_CAST, counted, encoded, normal, part, plain};
use crate::expr::convert::Result;
use crate::expr::{Context, convert_for_column, type_of};
use rauk_types::error::codes;
use rauk_types::json::{Json, JsonRef, Node};
use rauk_types::{Collation, Column, DataType, MysqlError, TypeKind, Value, ValueRef};

/// A value as the document that a JSON column stores. Errors: 3140, 3144, 3150, 3157.
pub fn document(value: Value, from: &DataType, column: &Column, context: &mut Context) -> Result<Value> {
    let name = &column.name;
    let tree = match &value {
        Value::Json(stored) if !JsonRef::stored(stored).is_text() => return Ok(value),
        Value::Json(stored) => Json::Stored(JsonRef::stored(stored)),
        Value::Str(text) => {
            return counted(&mut context.budget, |take| {
                let tree = rauk_types::json::parse(text, take)?.map_err(|invalid| {
                    let rauk_types::json::Invalid { reason, position } = invalid;
                    MysqlError::new(
                        codes::INVALID_JSON_TEXT,
                        format!("Invalid JSON text: \"{reason}\" at position {position} in value for column '{name}'."),
                    )
                })?;
                tree.encode(take).map(Value::Json)
            });
        }
        Value::Bytes(_) => {
            let message =
                format!("Cannot create a JSON value from a string with CHARACTER SET 'binary' (column '{name}').");
            return Err(MysqlError::new(3144, message));
        }
        other => part(other.as_ref(), from),
    };
    if let Json::Stored(text) = tree {
        return Ok(Value::Json(normal(text, context)?.get().to_stored()));
    }
    encoded(&tree, context)
}

/// A document in a column of another type: its text, or the value that its scalar is. Error 3156.
pub fn plain_for(value: Value, column: &Column) -> Result<(Value, DataType)> {
    let ValueRef::Json(document) = value.as_ref() else { return Ok((value, column.ty)) };
    if column.ty.is_text() || column.ty.is_bytes() || column.ty.has_members() {
        let mut text = Vec::new();
        document.append_shown(&mut text);
        let text = Value::Str(String::from_utf8_lossy(&text).into_owned());
        return Ok((text, DataType { collation: Collation::Utf8mb4Bin, ..DataType::new(TypeKind::LongText) }));
    }
    let Some(plain) = plain(document)? else {
        let kind = match column.ty.kind {
            TypeKind::Decimal => "DECIMAL",
            TypeKind::Float | TypeKind::Double => "DOUBLE",
            TypeKind::Date => "DATE",
            TypeKind::Time => "TIME",
            TypeKind::DateTime | TypeKind::Timestamp => "DATETIME",
            _ => "INTEGER",
        };
        let message = format!("Invalid JSON value for CAST to {kind} from column {} at row 1", column.name);
        return Err(MysqlError::new(INVALID_JSON_VALUE_FOR_CAST, message));
    };
    let ty = type_of(&plain, Collation::Utf8mb4Bin);
    Ok((plain, ty))
}

/// ER_WRONG_JSON_TABLE_VALUE.
pub fn not_scalar(column: &Column) -> MysqlError {
    let name = &column.name;
    MysqlError::new(3666, format!("Can't store an array or an object in the scalar JSON_TABLE column '{name}'"))
}

/// A value of a document as a value of a column. Errors: 3666, 3156, 3669.
pub fn value_for(value: JsonRef<'_>, column: &Column, context: &mut Context) -> Result<Value> {
    let ty = &column.ty;
    if ty.kind == TypeKind::Json {
        return encoded(&Json::Stored(value), context);
    }
    let node = value.read()?;
    if node == Node::Null {
        return Ok(Value::Null);
    }
    let text = ty.is_text() || ty.is_bytes();
    let varchar = DataType { length: 16_383, collation: context.collation, ..DataType::new(TypeKind::VarChar) };
    let is_string = matches!(node, Node::String(_));
    let (given, from) = match node {
        Node::Array(_) | Node::Object(_) => return Err(not_scalar(column)),
        Node::String(text) => (Value::Str(text.to_string()), varchar),
        _ if text => {
            let mut shown = Vec::new();
            value.append_unquoted(&mut shown)?;
            (Value::Str(String::from_utf8_lossy(&shown).into_owned()), varchar)
        }
        Node::Bool(_) | Node::Int(_) | Node::UInt(_) | Node::Double(_) | Node::Decimal(_) if ty.is_temporal() => {
            return Err(not_cast(column));
        }
        Node::UInt(number) => (Value::UInt(number), DataType { unsigned: true, ..DataType::BIGINT }),
        Node::Double(number) => (Value::Double(number), DataType::DOUBLE),
        Node::Decimal(number) => (Value::Decimal(number), DataType::decimal(65, number.scale())),
        Node::Date(_) | Node::Time(_) | Node::DateTime(_) | Node::Opaque(..) => {
            let plain = plain(value)?.unwrap_or_default();
            let ty = type_of(&plain, context.collation);
            (plain, ty)
        }
        Node::Bool(truth) => (Value::Int(truth.into()), DataType::BIGINT),
        Node::Int(number) => (Value::Int(number), DataType::BIGINT),
        Node::Null => unreachable!("it was looked at above"),
    };
    let (warnings, count) = (context.warnings.len(), context.warning_count);
    let strict = std::mem::replace(&mut context.strict_statement, true);
    // A TIMESTAMP in an expression is a local time.
    let local = DataType { kind: TypeKind::DateTime, ..*ty };
    let stored = match ty.kind {
        TypeKind::Timestamp => convert_for_column(given, &from, &Column { ty: local, ..column.clone() }, 1, context),
        _ => convert_for_column(given, &from, column, 1, context),
    };
    context.strict_statement = strict;
    context.warnings.truncate(warnings);
    context.warning_count = count;
    stored.map_err(|error| {
        let is_number = error.code == codes::WARN_DATA_OUT_OF_RANGE;
        if is_string && !text && (ty.is_temporal() || !is_number) { not_cast(column) } else { out_of_range(column) }
    })
}

/// ER_JT_VALUE_OUT_OF_RANGE.
fn out_of_range(column: &Column) -> MysqlError {
    MysqlError::new(3669, format!("Value is out of range for JSON_TABLE's column '{}'", column.name))
}

/// ER_INVALID_JSON_VALUE_FOR_CAST.
fn not_cast(column: &Column) -> MysqlError {
    let kind = match column.ty.kind {
        TypeKind::Decimal => "DECIMAL",
        TypeKind::Float | TypeKind::Double => "DOUBLE",
        TypeKind::Date => "DATE",
        TypeKind::Time => "TIME",
        TypeKind::DateTime | TypeKind::Timestamp => "DATETIME",
        _ => "INTEGER",
    };
    let name = &column.name;
    MysqlError::new(3156, format!("Invalid JSON value for CAST to {kind} from column {name} at row 1"))
}
