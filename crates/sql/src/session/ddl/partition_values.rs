//! The values of partitions: constants on their way into a table, and back to what is written.
//!
//! [`fold`] computes them when they are written, in the session's time zone (`UNIX_TIMESTAMP('2020-01-01')`): what stays are
//! literals. They become values when the columns of the table are known: for an expression integers in its domain
//! ([`integer`]), for a list of columns what a column would store ([`of_column`]), where nothing may be lost on the way but
//! the end of a text that is too long. [`literal`] gives what could have been written.
//!
//! Errors: 1054, 1563, 1564, 1654, 1697.

use crate::bind::{names, partition_function};
use crate::expr::{self, BindContext, Context, NoColumns};
use crate::parse::ast::{self, ListValue, Literal, PartitionBound, PartitionDefinition, PartitionValues, UnaryOp};
use rauk_types::error::codes;
use rauk_types::{Column, DataType, MysqlError, TypeKind, Value, format};

/// ER_PARTITION_CONST_DOMAIN_ERROR, ER_WRONG_TYPE_COLUMN_VALUE_ERROR, ER_VALUES_IS_NOT_INT_TYPE_ERROR.
const CONSTANT_DOMAIN: u16 = 1563;
const WRONG_COLUMN_VALUE: u16 = 1654;
const VALUE_IS_NO_INTEGER: u16 = 1697;

/// A constant with its type.
pub type Constant = (Value, DataType);

/// Makes all values literals.
pub fn fold(definitions: &mut [PartitionDefinition], context: &mut Context) -> Result<(), MysqlError> {
    for definition in definitions {
        match &mut definition.values {
            PartitionValues::None | PartitionValues::Default => {}
            PartitionValues::LessThan(bounds) => fold_bounds(bounds, context)?,
            PartitionValues::In(values) => {
                for value in values {
                    match value {
                        ListValue::One(bound) => fold_bounds(std::slice::from_mut(bound), context)?,
                        ListValue::Row(bounds) => fold_bounds(bounds, context)?,
                    }
                }
            }
        }
    }
    Ok(())
}

fn fold_bounds(bounds: &mut [PartitionBound], context: &mut Context) -> Result<(), MysqlError> {
    for bound in bounds {
        let PartitionBound::Value(expr) = bound else { continue };
        if is_literal(expr) {
            continue;
        }
        partition_function::check_value(expr)?;
        let (value, ty) = computed(expr, context)?;
        *expr = literal(&value, &ty);
    }
    Ok(())
}

fn is_literal(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Literal(_) => true,
        ast::Expr::Unary { op: UnaryOp::Minus, operand } => {
            matches!(**operand, ast::Expr::Literal(Literal::Number(_)))
        }
        _ => false,
    }
}

fn computed(expr: &ast::Expr, context: &mut Context) -> Result<Constant, MysqlError> {
    let bind_context = BindContext { sql_mode: context.sql_mode, ..BindContext::default() };
    let bound = names::bind_constant(expr, names::Clause::PartitionFunction, &bind_context)?;
    Ok((bound.eval(&NoColumns, context)?, bound.ty))
}

/// Reads literals.
pub struct Reader {
    context: Context,
    bind_context: BindContext,
}

impl Reader {
    pub fn new() -> Reader {
        let mut context = Context::without_session();
        // As MySQL does: dates that are zero are values, too.
        context.sql_mode.no_zero_date = false;
        context.sql_mode.no_zero_in_date = false;
        context.strict_statement = true;
        Reader { context, bind_context: BindContext::default() }
    }

    /// The value of one that [`fold`] has left.
    pub fn read(&mut self, expr: &ast::Expr) -> Result<Constant, MysqlError> {
        let bound = names::bind_constant(expr, names::Clause::PartitionFunction, &self.bind_context)?;
        Ok((bound.eval(&NoColumns, &mut self.context)?, bound.ty))
    }

    /// A value for a column of a list. NULL stays what it is.
    pub fn of_column(&mut self, (value, ty): Constant, column: &Column) -> Result<Value, MysqlError> {
        let wrong = || MysqlError::new(WRONG_COLUMN_VALUE, "Partition column values of incorrect type");
        let is_integer = matches!(value, Value::Int(_) | Value::UInt(_)) && ty.is_integer();
        let value = match value {
            Value::Null => return Ok(Value::Null),
            value if column.ty.is_integer() => match is_integer {
                true => value,
                false => return Err(wrong()),
            },
            Value::Str(text) if column.ty.is_text() || column.ty.is_bytes() => Value::Str(cut(text, &column.ty)),
            Value::Bytes(mut bytes) if column.ty.is_text() || column.ty.is_bytes() => {
                bytes.truncate(column.ty.length as usize);
                Value::Bytes(bytes)
            }
            Value::Str(_) | Value::Bytes(_) | Value::Date(_) | Value::Time(_) | Value::DateTime(_) => value,
            _ => return Err(wrong()),
        };
        self.context.warning_count = 0;
        let stored = expr::convert_for_column(value, &ty, column, 1, &mut self.context).map_err(|_| wrong())?;
        self.context.warnings.clear();
        if self.context.warning_count > 0 || stored.is_null() { Err(wrong()) } else { Ok(stored) }
    }
}

/// As much of a text as a column holds.
fn cut(text: String, ty: &DataType) -> String {
    let end = if ty.is_text() {
        text.char_indices().nth(ty.length as usize).map(|(at, _)| at)
    } else {
        (text.len() > ty.length as usize).then(|| text.floor_char_boundary(ty.length as usize))
    };
    end.map_or_else(|| text.clone(), |end| text[..end].to_string())
}

/// A value of an expression: signed where it fits. Errors 1563, 1697; NULL stays what it is.
pub fn integer((value, ty): Constant, unsigned: bool, partition: &str) -> Result<Value, MysqlError> {
    let number = match value {
        Value::Null => return Ok(Value::Null),
        Value::Int(number) if ty.is_integer() => i128::from(number),
        Value::UInt(number) if ty.is_integer() => i128::from(number),
        _ => {
            let text = format!("VALUES value for partition '{partition}' must have type INT");
            return Err(MysqlError::new(VALUE_IS_NO_INTEGER, text));
        }
    };
    if unsigned && number < 0 {
        return Err(MysqlError::new(CONSTANT_DOMAIN, "Partition constant is out of partition function domain"));
    }
    Ok(of_number(number))
}

fn of_number(number: i128) -> Value {
    i64::try_from(number).map(Value::Int).unwrap_or(Value::UInt(number as u64))
}

/// What could have been written for a value.
pub fn literal(value: &Value, ty: &DataType) -> ast::Expr {
    let number = |digits: String| ast::Expr::Literal(Literal::Number(digits));
    let signed = |digits: String| match digits.strip_prefix('-') {
        Some(positive) => ast::Expr::Unary { op: UnaryOp::Minus, operand: Box::new(number(positive.to_string())) },
        None => number(digits),
    };
    match value {
        Value::Null => ast::Expr::Literal(Literal::Null),
        Value::Int(value) => signed(value.to_string()),
        Value::UInt(value) => number(value.to_string()),
        Value::Double(value) => signed(format!("{value:e}")),
        Value::Decimal(value) => signed(value.to_string()),
        Value::Bytes(bytes) | Value::Json(bytes) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            ast::Expr::Literal(Literal::Hex { digits, introducer: None })
        }
        Value::Str(text) => ast::Expr::text(text.clone()),
        Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Timestamp(_) => ast::Expr::text(text(value, ty)),
    }
}

/// A value as text, without quotes.
pub fn text(value: &Value, ty: &DataType) -> String {
    let mut out = Vec::new();
    format::append_text(value.as_ref(), ty, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Error 1064 with the text of another error, as where MySQL's parser finds it.
pub fn syntax(text: &str) -> MysqlError {
    MysqlError::new(codes::PARSE_ERROR, text)
}

/// Whether a column may be in RANGE COLUMNS and LIST COLUMNS.
pub fn is_listed(ty: &DataType) -> bool {
    use TypeKind::*;
    let kinds = [Date, Time, DateTime, Char, VarChar, Binary, VarBinary];
    ty.is_integer() && !matches!(ty.kind, Year | Bit) || kinds.contains(&ty.kind)
}
