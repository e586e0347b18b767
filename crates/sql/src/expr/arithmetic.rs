//! `+ - * / DIV %` and negation.
//!
//! The operation is done in the type that binding derived ([`types::arithmetic`](super::types::arithmetic)): 64-bit integers, decimals or doubles.
//! Results beyond the type are error 1690, which shows the expression; a division by zero is NULL, and what sql_mode makes of it.

use super::convert::{self, Result, to_decimal, to_f64, to_integer};
use super::{ArithmeticOp, Context};
use rauk_types::decimal::DecimalError;
use rauk_types::error::codes;
use rauk_types::{DataType, MysqlError, TypeKind, Value, ValueRef};

/// `BIGINT value is out of range in '(…)'`.
pub fn out_of_range(kind: &str, text: &str) -> MysqlError {
    MysqlError::new(codes::DATA_OUT_OF_RANGE, format!("{kind} value is out of range in '{text}'"))
}

/// An integer result in the range of its type.
pub fn integer(value: Option<i128>, ty: &DataType, text: &str) -> Result<Value> {
    if ty.unsigned {
        match value.map(u64::try_from) {
            Some(Ok(value)) => Ok(Value::UInt(value)),
            _ => Err(out_of_range("BIGINT UNSIGNED", text)),
        }
    } else {
        match value.map(i64::try_from) {
            Some(Ok(value)) => Ok(Value::Int(value)),
            _ => Err(out_of_range("BIGINT", text)),
        }
    }
}

pub fn double(value: f64, text: &str) -> Result<Value> {
    if value.is_finite() { Ok(Value::Double(value)) } else { Err(out_of_range("DOUBLE", text)) }
}

/// Both sides are not NULL. `digits`: how many more a quotient has behind its point than the dividend.
pub fn calculate(
    op: ArithmeticOp,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    ty: &DataType,
    digits: u8,
    text: &str,
    context: &mut Context,
) -> Result<Value> {
    match (op, ty.kind) {
        (ArithmeticOp::IntegerDivide, _) => integer_divide(left, right, ty, text, context),
        (_, TypeKind::BigInt) => integers(op, left, right, ty, text, context),
        (_, TypeKind::Decimal) => decimals(op, left, right, digits, text, context),
        _ => doubles(op, left, right, text, context),
    }
}

fn integers(
    op: ArithmeticOp,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    ty: &DataType,
    text: &str,
    context: &mut Context,
) -> Result<Value> {
    if let (ValueRef::Int(a), ValueRef::Int(b), false) = (left, right, ty.unsigned) {
        let quick = match op {
            ArithmeticOp::Add => a.checked_add(b),
            ArithmeticOp::Subtract => a.checked_sub(b),
            ArithmeticOp::Multiply => a.checked_mul(b),
            _ => None,
        };
        if let Some(value) = quick {
            return Ok(Value::Int(value));
        }
    }
    let (a, b) = (to_integer(left, context)?, to_integer(right, context)?);
    let value = match op {
        ArithmeticOp::Add => a.checked_add(b),
        ArithmeticOp::Subtract => {
            let value = a.checked_sub(b);
            if ty.unsigned && context.sql_mode.no_unsigned_subtraction {
                return integer(value, &DataType::BIGINT, text);
            }
            value
        }
        ArithmeticOp::Multiply => a.checked_mul(b),
        _ if b == 0 => {
            context.division_by_zero()?;
            return Ok(Value::Null);
        }
        _ => Some(a % b),
    };
    integer(value, ty, text)
}

fn decimals(
    op: ArithmeticOp,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    digits: u8,
    text: &str,
    context: &mut Context,
) -> Result<Value> {
    let (a, b) = (to_decimal(left, context)?, to_decimal(right, context)?);
    let result = match op {
        ArithmeticOp::Add => a.checked_add(&b),
        ArithmeticOp::Subtract => a.checked_sub(&b),
        ArithmeticOp::Multiply => a.checked_mul(&b),
        // With MySQL's guard digits: the value is rounded when it leaves the expression, so that 2 / 3 * 3 is 2.
        ArithmeticOp::Divide => a.checked_div_guarded(&b, digits),
        _ => a.checked_rem(&b),
    };
    match result {
        Ok(value) => Ok(Value::Decimal(value)),
        Err(DecimalError::DivisionByZero) => {
            context.division_by_zero()?;
            Ok(Value::Null)
        }
        Err(_) => Err(out_of_range("DECIMAL", text)),
    }
}

fn doubles(
    op: ArithmeticOp,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    text: &str,
    context: &mut Context,
) -> Result<Value> {
    let (a, b) = (to_f64(left, context)?, to_f64(right, context)?);
    let value = match op {
        ArithmeticOp::Add => a + b,
        ArithmeticOp::Subtract => a - b,
        ArithmeticOp::Multiply => a * b,
        _ if b == 0.0 => {
            context.division_by_zero()?;
            return Ok(Value::Null);
        }
        ArithmeticOp::Divide => a / b,
        _ => a % b,
    };
    double(value, text)
}

/// DIV: decimals are divided exactly and cut off; everything else too, by way of decimals.
fn integer_divide(
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    ty: &DataType,
    text: &str,
    context: &mut Context,
) -> Result<Value> {
    if let (Some(a), Some(b)) = (left.as_integer(), right.as_integer()) {
        if b == 0 {
            context.division_by_zero()?;
            return Ok(Value::Null);
        }
        return integer(a.checked_div(b), ty, text);
    }
    let (a, b) = (convert::to_decimal(left, context)?, convert::to_decimal(right, context)?);
    match a.checked_div_integer(&b) {
        Ok(value) => integer(value.to_i128(), ty, text),
        Err(DecimalError::DivisionByZero) => {
            context.division_by_zero()?;
            Ok(Value::Null)
        }
        Err(_) => integer(None, ty, text),
    }
}

/// `-x`.
pub fn negate(value: ValueRef<'_>, ty: &DataType, text: &str, context: &mut Context) -> Result<Value> {
    match ty.kind {
        TypeKind::BigInt => integer(Some(-to_integer(value, context)?), ty, text),
        TypeKind::Decimal => Ok(Value::Decimal(-to_decimal(value, context)?)),
        _ => Ok(Value::Double(-to_f64(value, context)?)),
    }
}
