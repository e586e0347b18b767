//! How wide the integers of functions are, as clients are told and CREATE … SELECT stores them.
//!
//! MySQL makes an INT column of an integer function whose values have few digits, and a BIGINT of the others. The width
//! belongs to the column of a result alone: what computes with the value takes it for a BIGINT.

use crate::expr::{Expr, ExprKind};
use rauk_types::{DataType, TypeKind, Value};

/// The digits of what fits an INT, whatever the function's own width.
const WIDE: u32 = 9;

/// The type of a column of a result.
pub(crate) fn result_type(expr: &Expr) -> DataType {
    let ExprKind::Function { function, arguments } = &expr.kind else { return expr.ty };
    match (expr.ty.kind, expr.ty.length) {
        (TypeKind::BigInt, 0) => DataType { length: digits(function.name, arguments).unwrap_or(0), ..expr.ty },
        _ => expr.ty,
    }
}

fn digits(name: &str, arguments: &[Expr]) -> Option<u32> {
    Some(match name {
        "DAYOFWEEK" | "WEEKDAY" | "QUARTER" => 1,
        "MONTH" | "DAYOFMONTH" | "HOUR" | "MINUTE" | "SECOND" | "WEEK" | "WEEKOFYEAR" => 2,
        "STRCMP" | "INTERVAL" | "BIT_COUNT" => 2,
        "DAYOFYEAR" | "ASCII" | "FIELD" | "FIND_IN_SET" => 3,
        "YEAR" => 4,
        "YEARWEEK" | "TO_DAYS" | "PERIOD_ADD" | "PERIOD_DIFF" => 6,
        "LENGTH" | "CHAR_LENGTH" | "BIT_LENGTH" | "LOCATE" | "INSTR" | "CRC32" | "TIME_TO_SEC" => WIDE,
        "UNCOMPRESSED_LENGTH" => WIDE,
        "EXTRACT" => of_unit(arguments.first()?)?,
        _ => return None,
    })
}

/// Of EXTRACT, by its unit. What does not fit an INT is a BIGINT.
fn of_unit(unit: &Expr) -> Option<u32> {
    let ExprKind::Literal(Value::Str(unit)) = &unit.kind else { return None };
    Some(match unit.as_str() {
        "QUARTER" | "MONTH" | "WEEK" | "DAY" | "MINUTE" | "SECOND" => 2,
        "YEAR" | "HOUR" | "MINUTE_SECOND" => 4,
        "HOUR_MINUTE" => 5,
        "YEAR_MONTH" => 6,
        "HOUR_SECOND" => 7,
        "MICROSECOND" | "SECOND_MICROSECOND" | "DAY_HOUR" | "DAY_MINUTE" => WIDE,
        _ => return None,
    })
}
