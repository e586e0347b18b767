//! What the clauses are called in errors, the errors of names, and expressions without names.

use crate::expr::{self, Aggregate, BindContext, Expr, ExprKind, Resolved, Scope, readable};
use crate::nearest;
use crate::parse::ast;
use rauk_types::error::codes;
use rauk_types::{Column, DataType, MysqlError, TypeKind, Value, schema::ColumnDefault};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    FieldList,
    Where,
    On,
    From,
    GroupBy,
    Having,
    OrderBy,
    WindowPartition,
    WindowOrder,
    WindowFrame,
    TableFunction,
    PartitionFunction,
}

impl Clause {
    /// As errors 1052 and 1054 name it.
    pub fn name(self) -> &'static str {
        match self {
            Clause::FieldList => "field list",
            Clause::Where => "where clause",
            Clause::On => "on clause",
            Clause::From => "from clause",
            Clause::GroupBy => "group statement",
            Clause::Having => "having clause",
            Clause::OrderBy => "order clause",
            Clause::WindowPartition => "window partition by",
            Clause::WindowOrder => "window order by",
            Clause::WindowFrame => "window frame bound",
            Clause::TableFunction => "a table function argument",
            Clause::PartitionFunction => "partition function",
        }
    }
}

/// No names at all: LIMIT, defaults, and the like.
struct NoNames(Clause);

impl Scope for NoNames {
    fn resolve(&mut self, path: &[&str]) -> Result<Resolved, MysqlError> {
        Err(unknown_column(path, self.0))
    }

    fn aggregate(&mut self, _: Aggregate) -> Result<ExprKind, MysqlError> {
        Err(MysqlError::new(codes::INVALID_GROUP_FUNC_USE, "Invalid use of group function"))
    }

    fn inserted_value(&mut self, column: &str) -> Result<Resolved, MysqlError> {
        Err(unknown_column(&[column], self.0))
    }

    fn default_value(&mut self, column: &[&str]) -> Result<Expr, MysqlError> {
        Err(unknown_column(column, self.0))
    }
}

/// Binds an expression without names.
pub(crate) fn bind_constant(expr: &ast::Expr, clause: Clause, context: &BindContext) -> Result<Expr, MysqlError> {
    expr::bind(expr, &mut NoNames(clause), context)
}

/// A number of rows: a literal or a parameter.
pub(crate) fn bind_row_count(expr: &ast::Expr, context: &BindContext) -> Result<Expr, MysqlError> {
    let bound = bind_constant(expr, Clause::FieldList, context)?;
    let fits = match &bound.kind {
        ExprKind::Literal(Value::Int(v)) => *v >= 0,
        ExprKind::Literal(Value::UInt(_)) | ExprKind::Parameter(_) => true,
        _ => false,
    };
    if !fits {
        return Err(MysqlError::new(
            codes::PARSE_ERROR,
            format!(
                "You have an error in your SQL syntax; see Rauk's SQL reference for the right syntax to use near '{}' at line 1",
                readable(expr)
            ),
        ));
    }
    Ok(bound)
}

pub(crate) fn literal(value: Value, ty: DataType) -> Expr {
    let nullable = value.is_null();
    Expr { kind: ExprKind::Literal(value), ty, nullable, coercibility: if nullable { 6 } else { 4 } }
}

/// What DEFAULT means for a column; `None` when it has no default, or one that reads the row ([`super::own_row`]).
pub(crate) fn default_expression(column: &Column, context: &BindContext) -> Result<Option<Expr>, MysqlError> {
    Ok(match &column.default {
        // The first member, though no DEFAULT says so.
        ColumnDefault::None if column.ty.kind == TypeKind::Enum => Some(literal(Value::UInt(1), column.ty)),
        ColumnDefault::None | ColumnDefault::Expression(_) => None,
        // The value keeps the column's type even for TIMESTAMP, so that storing it again changes nothing.
        ColumnDefault::Value(value) => Some(literal(value.clone(), column.ty)),
        ColumnDefault::Now => Some(now_expression(column.ty.scale, context)?),
    })
}

/// `CURRENT_TIMESTAMP(digits)`.
pub(crate) fn now_expression(digits: u8, context: &BindContext) -> Result<Expr, MysqlError> {
    let arguments = if digits > 0 { vec![ast::Expr::number(digits.to_string())] } else { vec![] };
    bind_constant(&ast::Expr::call("CURRENT_TIMESTAMP", arguments), Clause::FieldList, context)
}

pub(crate) fn no_default(column: &str) -> MysqlError {
    MysqlError::new(codes::NO_DEFAULT_FOR_FIELD, format!("Field '{column}' doesn't have a default value"))
}

pub(crate) fn unknown_column(path: &[&str], clause: Clause) -> MysqlError {
    MysqlError::new(codes::BAD_FIELD, format!("Unknown column '{}' in '{}'", path.join("."), clause.name()))
}

/// The same, with the nearest of the names that might have been meant.
pub(crate) fn unknown_column_of<'a>(
    path: &[&str],
    clause: Clause,
    names: impl IntoIterator<Item = &'a str>,
) -> MysqlError {
    let MysqlError { code, message, .. } = unknown_column(path, clause);
    let word = path.last().copied().unwrap_or_default();
    MysqlError::new(code, format!("{message}{}", nearest::hint(word, names)))
}

pub(crate) fn ambiguous(path: &[&str], clause: Clause) -> MysqlError {
    MysqlError::new(codes::NON_UNIQ, format!("Column '{}' in {} is ambiguous", path.join("."), clause.name()))
}

/// Characters of an alias.
const MAX_ALIAS: usize = 256;

/// Error 1059 for an alias of more than 256 characters.
pub(crate) fn check_alias(alias: &str) -> Result<(), MysqlError> {
    if alias.chars().nth(MAX_ALIAS).is_none() {
        return Ok(());
    }
    Err(MysqlError::new(codes::TOO_LONG_IDENT, format!("Identifier name '{alias}' is too long")))
}
