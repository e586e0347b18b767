//! What a partitioned table computes of a row: the expression of RANGE, LIST and HASH.
//!
//! It gives an integer and is made of the operators `+ - * DIV %` and a few functions (MySQL's manual, "Partitioning
//! Limitations Relating to Functions"), none of which depends on more than the row. Functions of dates take a column of the
//! right type and nothing else; a TIMESTAMP, which every time zone shows otherwise, may stand in UNIX_TIMESTAMP() alone. The
//! same functions, over constants, may stand in the values of partitions.
//!
//! [`settle`] checks an expression when a table is defined and gives its canonical text; [`bound`] is for whoever computes
//! it.
//!
//! Errors: 1054, 1486, 1491, 1564, 1659; 1064 with the text of 1486 where MySQL's parser knows it already.

use super::own_row::{Role, bound as bound_text, bound_expr, columns_of};
use crate::expr::{BindContext, Expr};
use crate::parse::ast::{self, Arguments, BinaryOp, Call, UnaryOp, Unit};
use crate::parse::print;
use rauk_types::error::codes;
use rauk_types::partitioning::{PartitionOn, Partitioning};
use rauk_types::{DataType, MysqlError, TableSchema, TypeKind};

/// ER_WRONG_EXPR_IN_PARTITION_FUNC_ERROR, ER_PARTITION_FUNC_NOT_ALLOWED_ERROR, ER_PARTITION_FUNCTION_IS_NOT_ALLOWED,
/// ER_FIELD_TYPE_NOT_ALLOWED_AS_PARTITION_FIELD.
const WRONG_EXPRESSION: u16 = 1486;
const WRONG_TYPE: u16 = 1491;
const NOT_ALLOWED: u16 = 1564;
const FIELD_TYPE_NOT_ALLOWED: u16 = 1659;

const WRONG_EXPRESSION_TEXT: &str =
    "Constant, random or timezone-dependent expressions in (sub)partitioning function are not allowed";

/// What a function must be given.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    Any,
    /// A column of type DATE or DATETIME.
    Date,
    /// A column of type TIME or DATETIME.
    Time,
    /// A column of type DATETIME.
    DateTime,
    /// A column of type TIMESTAMP.
    Timestamp,
    /// It depends on the session.
    Never,
}

const FUNCTIONS: &[(&str, Takes)] = &[
    ("ABS", Takes::Any),
    ("CEIL", Takes::Any),
    ("CEILING", Takes::Any),
    ("DATEDIFF", Takes::Date),
    ("DAY", Takes::Date),
    ("DAYOFMONTH", Takes::Date),
    ("DAYOFWEEK", Takes::Date),
    ("DAYOFYEAR", Takes::Date),
    ("FLOOR", Takes::Any),
    ("HOUR", Takes::Time),
    ("MICROSECOND", Takes::Time),
    ("MINUTE", Takes::Time),
    ("MOD", Takes::Any),
    ("MONTH", Takes::Date),
    ("QUARTER", Takes::Date),
    ("SECOND", Takes::Time),
    ("TIME_TO_SEC", Takes::Time),
    ("TO_DAYS", Takes::Date),
    ("TO_SECONDS", Takes::Date),
    ("UNIX_TIMESTAMP", Takes::Timestamp),
    ("WEEKDAY", Takes::Date),
    ("YEAR", Takes::Date),
    ("YEARWEEK", Takes::Date),
];

/// Functions that MySQL's parser refuses in a partition clause: their value changes, or depends on the session.
const CHANGING: &[&str] = &[
    "BENCHMARK",
    "CONNECTION_ID",
    "CURDATE",
    "CURRENT_DATE",
    "CURRENT_ROLE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "CURTIME",
    "DATABASE",
    "FOUND_ROWS",
    "GET_LOCK",
    "IS_FREE_LOCK",
    "IS_USED_LOCK",
    "LAST_INSERT_ID",
    "LOAD_FILE",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "NOW",
    "RAND",
    "RANDOM_BYTES",
    "RELEASE_LOCK",
    "ROW_COUNT",
    "SCHEMA",
    "SLEEP",
    "SYSDATE",
    "USER",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
    "UUID",
    "UUID_SHORT",
];

/// Where an expression stands.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Place {
    Partition,
    Subpartition,
}

/// Error 1486.
fn wrong_expression() -> MysqlError {
    MysqlError::new(WRONG_EXPRESSION, WRONG_EXPRESSION_TEXT)
}

/// The same where MySQL's parser finds it.
pub(super) fn refused_by_parser() -> MysqlError {
    MysqlError::new(codes::PARSE_ERROR, WRONG_EXPRESSION_TEXT)
}

/// Error 1564.
pub(crate) fn not_allowed() -> MysqlError {
    MysqlError::new(NOT_ALLOWED, "This partition function is not allowed")
}

/// Error 1659.
pub(crate) fn field_type_not_allowed(name: &str) -> MysqlError {
    let text = format!("Field '{name}' is of a not allowed type for this type of partitioning");
    MysqlError::new(FIELD_TYPE_NOT_ALLOWED, text)
}

/// A partitioning expression that was found to be one.
pub(crate) struct Function {
    /// Canonical.
    pub text: String,
    pub columns: Vec<usize>,
    /// It gives no negative number.
    pub unsigned: bool,
}

/// Checks the expression of a table whose columns are known.
pub(crate) fn settle(expr: &ast::Expr, schema: &TableSchema, place: Place) -> Result<Function, MysqlError> {
    check_variables(expr)?;
    let bound = bound_expr(expr, schema, Role::Partition, &BindContext::default());
    // A name that is not there comes first, everything else that cannot be bound after what is not allowed.
    if let Err(error) = &bound
        && error.code == codes::BAD_FIELD
    {
        return Err(error.clone());
    }
    check_functions(expr, Some(schema))?;
    let bound = bound?;
    let columns = columns_of(&bound);
    if columns.is_empty() {
        return Err(wrong_expression());
    }
    if let ast::Expr::Column(column) = expr {
        let ty = &schema.columns[columns[0]].ty;
        if !is_integer(ty) {
            return Err(field_type_not_allowed(&column.name));
        }
    }
    check_columns(expr, schema)?;
    if !gives_integer(expr, &bound.ty) {
        let which = if place == Place::Subpartition { "SUBPARTITION" } else { "PARTITION" };
        return Err(MysqlError::new(WRONG_TYPE, format!("The {which} function returns the wrong type")));
    }
    let unsigned = bound.ty.unsigned || matches!(bound.ty.kind, TypeKind::Year | TypeKind::Bit);
    Ok(Function { text: print::of_own_row(expr), columns, unsigned })
}

/// Whether values of this type are integers to a partitioning function.
fn is_integer(ty: &DataType) -> bool {
    ty.is_integer() || matches!(ty.kind, TypeKind::Year | TypeKind::Bit)
}

/// FLOOR and CEILING of a DECIMAL give an integer to MySQL.
fn gives_integer(expr: &ast::Expr, ty: &DataType) -> bool {
    let rounds = match expr {
        ast::Expr::Call(call) => {
            ["FLOOR", "CEIL", "CEILING"].iter().any(|rounding| call.name.eq_ignore_ascii_case(rounding))
        }
        _ => false,
    };
    is_integer(ty) || rounds && ty.kind == TypeKind::Decimal && ty.scale == 0
}

/// The expression of a stored table, bound to its row; `None`: it has none.
pub(crate) fn bound(schema: &TableSchema, partitioning: &Partitioning, sub: bool) -> Result<Option<Expr>, MysqlError> {
    let by = if sub { partitioning.sub.as_ref() } else { Some(&partitioning.by) };
    match by.map(|by| &by.on) {
        Some(PartitionOn::Expression { text, .. }) => {
            bound_text(text, schema, Role::Partition, &BindContext::default()).map(Some)
        }
        _ => Ok(None),
    }
}

/// Checks the functions in a value of a partition.
pub(crate) fn check_value(expr: &ast::Expr) -> Result<(), MysqlError> {
    check_variables(expr)?;
    check_functions(expr, None)
}

fn arguments(call: &Call) -> &[ast::Expr] {
    match &call.arguments {
        Arguments::List { items, .. } => items,
        Arguments::Star => &[],
    }
}

/// What is refused before names are looked at.
fn check_variables(expr: &ast::Expr) -> Result<(), MysqlError> {
    match expr {
        ast::Expr::UserVariable(_) | ast::Expr::AssignVariable { .. } | ast::Expr::SystemVariable { .. } => {
            Err(refused_by_parser())
        }
        ast::Expr::Unary { operand, .. } | ast::Expr::Extract { operand, .. } => {
            crate::stack::grow(|| check_variables(operand))
        }
        ast::Expr::Binary { left, right, .. } => {
            crate::stack::grow(|| check_variables(left))?;
            crate::stack::grow(|| check_variables(right))
        }
        ast::Expr::Call(call) => {
            let name = call.name.to_ascii_uppercase();
            let items = arguments(call);
            let changes = CHANGING.contains(&name.as_str()) || name == "UNIX_TIMESTAMP" && items.is_empty();
            if changes {
                return Err(refused_by_parser());
            }
            items.iter().try_for_each(|item| crate::stack::grow(|| check_variables(item)))
        }
        _ => Ok(()),
    }
}

/// Whether every function may stand there and, with a `schema`, has the arguments that it must have.
fn check_functions(expr: &ast::Expr, schema: Option<&TableSchema>) -> Result<(), MysqlError> {
    let inner = |expr: &ast::Expr| crate::stack::grow(|| check_functions(expr, schema));
    match expr {
        ast::Expr::Literal(_) | ast::Expr::Column(_) => Ok(()),
        ast::Expr::Unary { op: UnaryOp::Minus | UnaryOp::Plus, operand } => inner(operand),
        ast::Expr::Binary {
            op: BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::IntegerDivide | BinaryOp::Modulo,
            left,
            right,
        } => {
            inner(left)?;
            inner(right)
        }
        ast::Expr::Extract { unit, operand } => {
            inner(operand)?;
            check_argument(operand, takes_unit(*unit), schema)
        }
        ast::Expr::Call(call) if call.database.is_none() && call.over.is_none() => {
            let name = call.name.to_ascii_uppercase();
            let Some((_, takes)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
                return Err(not_allowed());
            };
            let items = arguments(call);
            items.iter().try_for_each(inner)?;
            let dated = if name == "DATEDIFF" { items.len() } else { items.len().min(1) };
            items[..dated].iter().try_for_each(|item| check_argument(item, *takes, schema))
        }
        _ => Err(not_allowed()),
    }
}

fn takes_unit(unit: Unit) -> Takes {
    match unit {
        Unit::Year | Unit::YearMonth | Unit::Quarter | Unit::Month | Unit::Day => Takes::Date,
        Unit::DayHour | Unit::DayMinute | Unit::DaySecond | Unit::DayMicrosecond => Takes::DateTime,
        // Which week a day is in depends on default_week_format.
        Unit::Week => Takes::Never,
        _ => Takes::Time,
    }
}

/// Error 1486 for what a function of dates cannot be given.
fn check_argument(expr: &ast::Expr, takes: Takes, schema: Option<&TableSchema>) -> Result<(), MysqlError> {
    let Some(schema) = schema else { return Ok(()) };
    if takes == Takes::Any {
        return Ok(());
    }
    let fits = type_of(expr, schema).is_some_and(|ty| match takes {
        Takes::Any => true,
        Takes::Date => matches!(ty.kind, TypeKind::Date | TypeKind::DateTime),
        Takes::Time => matches!(ty.kind, TypeKind::Time | TypeKind::DateTime),
        Takes::DateTime => ty.kind == TypeKind::DateTime,
        Takes::Timestamp => ty.kind == TypeKind::Timestamp,
        Takes::Never => false,
    });
    if fits { Ok(()) } else { Err(wrong_expression()) }
}

/// The type of a column; `None`: it is none.
fn type_of<'s>(expr: &ast::Expr, schema: &'s TableSchema) -> Option<&'s DataType> {
    let ast::Expr::Column(name) = expr else { return None };
    let column = schema.visible_columns().iter().find(|column| column.name.eq_ignore_ascii_case(&name.name))?;
    Some(&column.ty)
}

/// Error 1486 for a TIMESTAMP anywhere but in UNIX_TIMESTAMP.
fn check_columns(expr: &ast::Expr, schema: &TableSchema) -> Result<(), MysqlError> {
    let inner = |expr: &ast::Expr| crate::stack::grow(|| check_columns(expr, schema));
    match expr {
        ast::Expr::Column(_) => match type_of(expr, schema) {
            Some(ty) if ty.kind == TypeKind::Timestamp => Err(wrong_expression()),
            _ => Ok(()),
        },
        ast::Expr::Unary { operand, .. } | ast::Expr::Extract { operand, .. } => inner(operand),
        ast::Expr::Binary { left, right, .. } => {
            inner(left)?;
            inner(right)
        }
        ast::Expr::Call(call) if call.name.eq_ignore_ascii_case("UNIX_TIMESTAMP") => Ok(()),
        ast::Expr::Call(call) => arguments(call).iter().try_for_each(inner),
        _ => Ok(()),
    }
}
