//! Binding: from sqlparser's tree to [`Expr`].
//!
//! ```text
//! mod         names, literals, and which part of the grammar is whose
//! operators   arithmetic, comparisons, predicates; how two sides compare
//! calls       functions, aggregates, CASE and what is written like a call
//! fold        constants are computed once
//! ```

mod calls;
mod fold;
mod operators;

pub(super) use calls::converted;
pub(super) use operators::WRONG_VALUE;

use super::convert::Result;
use super::types::{self, Class, text_type};
use super::{BindContext, Deep, Expr, ExprKind, Resolved, Scope};
use crate::parse;
use crate::stack;
use rauk_types::error::codes;
use rauk_types::{Collation, DataType, Decimal, MysqlError, TypeKind, Value};
use sqlparser::ast;

pub(super) struct Binder<'b> {
    pub scope: &'b mut dyn Scope,
    pub context: &'b BindContext,
    /// Levels since the last mark of the highest expression that was bound since this was last set to zero.
    height: usize,
}

/// What a node takes, with what the planner copies of it.
const NODE_BYTES: usize = 4 * size_of::<Expr>();

fn is_leaf(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Literal(_) | ExprKind::Column { .. } | ExprKind::Parameter(_))
}

pub(super) fn not_yet(feature: &str) -> MysqlError {
    MysqlError::new(codes::NOT_SUPPORTED_YET, format!("This version of MySQL doesn't yet support '{feature}'"))
}

pub(super) fn one_column() -> MysqlError {
    MysqlError::new(codes::OPERAND_COLUMNS, "Operand should contain 1 column(s)")
}

pub(in crate::expr) fn literal(value: Value, ty: DataType, coercibility: u8) -> Expr {
    let nullable = value.is_null();
    Expr { kind: ExprKind::Literal(value), ty, nullable, coercibility }
}

/// A number as it was written. Error 1367 beyond DOUBLE.
fn number(text: &str) -> Result<Expr> {
    if text.contains(['e', 'E']) {
        return match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(literal(Value::Double(value), DataType::DOUBLE, types::NUMERIC)),
            _ => Err(MysqlError::new(
                codes::ILLEGAL_VALUE_FOR_TYPE,
                format!("Illegal double '{text}' value found during parsing"),
            )),
        };
    }
    Ok(exact_number(text))
}

fn exact_number(text: &str) -> Expr {
    if !text.contains('.') {
        let length = text.len().min(20) as u32;
        if let Ok(value) = text.parse::<i64>() {
            return literal(Value::Int(value), DataType { length, ..DataType::BIGINT }, types::NUMERIC);
        }
        if let Ok(value) = text.parse::<u64>() {
            return literal(Value::UInt(value), DataType { length, ..DataType::BIGINT_UNSIGNED }, types::NUMERIC);
        }
    }
    let value = Decimal::parse_prefix(text.as_bytes()).value;
    let ty = DataType::decimal(value.precision().max(1), value.scale());
    literal(Value::Decimal(value), ty, types::NUMERIC)
}

fn hex_bytes(digits: &str) -> Vec<u8> {
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |byte, d| byte << 4 | char::from(*d).to_digit(16).unwrap_or(0) as u8))
        .collect()
}

fn bit_bytes(digits: &str) -> Vec<u8> {
    let bytes = digits.len().div_ceil(8);
    let padded = format!("{digits:0>width$}", width = bytes * 8);
    padded.as_bytes().chunks(8).map(|byte| byte.iter().fold(0, |b, d| b << 1 | (d - b'0'))).collect()
}

impl<'b> Binder<'b> {
    pub fn new(scope: &'b mut dyn Scope, context: &'b BindContext) -> Self {
        Binder { scope, context, height: 0 }
    }

    pub fn boxed(&mut self, expr: &ast::Expr) -> Result<Box<Expr>> {
        self.bind(expr).map(Box::new)
    }

    pub fn bind(&mut self, expr: &ast::Expr) -> Result<Expr> {
        self.context.memory.take(NODE_BYTES)?;
        let beside = std::mem::take(&mut self.height);
        let bound = stack::grow(|| self.bind_node(expr))?;
        self.height = if is_leaf(&bound) { 0 } else { self.height + 1 };
        let bound = if self.height >= Deep::LEVELS {
            self.height = 0;
            Deep::mark(bound)
        } else {
            bound
        };
        self.height = self.height.max(beside);
        Ok(bound)
    }

    fn bind_node(&mut self, expr: &ast::Expr) -> Result<Expr> {
        use ast::Expr as E;
        let bound = match expr {
            E::Identifier(name) => self.identifier(name)?,
            E::CompoundIdentifier(path) => {
                let path: Vec<&str> = path.iter().map(|p| p.value.as_str()).collect();
                let resolved = self.scope.resolve(&path)?;
                self.resolved(resolved)?
            }
            E::Value(value) => self.value(&value.value)?,
            E::Nested(inner) => self.bind(inner)?,
            E::Prefixed { prefix, value } => self.introduced(&prefix.value, value)?,
            E::TypedString(typed) => self.typed_string(typed)?,
            E::UnaryOp { op, expr: operand } => self.unary(*op, operand, expr)?,
            E::BinaryOp { left, op, right } => self.binary(left, op, right, expr)?,
            E::IsNull(e) => self.is_null(e, false)?,
            E::IsNotNull(e) => self.is_null(e, true)?,
            E::IsUnknown(e) => self.is_null(e, false)?,
            E::IsNotUnknown(e) => self.is_null(e, true)?,
            E::IsTrue(e) => self.is_truth(e, true, false)?,
            E::IsNotTrue(e) => self.is_truth(e, true, true)?,
            E::IsFalse(e) => self.is_truth(e, false, false)?,
            E::IsNotFalse(e) => self.is_truth(e, false, true)?,
            E::Between { expr, negated, low, high } => self.between(expr, *negated, low, high)?,
            E::InList { expr, list, negated } => self.in_list(expr, list, *negated)?,
            E::Like { negated, expr, pattern, escape_char, .. } => {
                self.like(expr, pattern, escape_char.as_ref(), *negated)?
            }
            E::RLike { negated, expr, pattern, .. } => self.regexp(expr, pattern, *negated)?,
            E::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())?
            }
            E::Cast { expr: inner, data_type, .. } => self.cast(inner, data_type, || expr.to_string())?,
            E::Convert { expr: inner, data_type: Some(data_type), .. } => {
                self.cast(inner, data_type, || expr.to_string())?
            }
            E::Convert { expr, charset: Some(charset), .. } => self.convert_using(expr, &charset.to_string())?,
            E::Collate { expr, collation } => self.collate(expr, &collation.to_string())?,
            E::Extract { field, expr, .. } => self.extract(field, expr)?,
            E::Trim { trim_where, trim_what, expr, .. } => self.trim(*trim_where, trim_what.as_deref(), expr)?,
            E::Function(call) => self.function(call)?,
            E::Tuple(_) => return Err(one_column()),
            E::Interval(_) => {
                return Err(MysqlError::new(
                    codes::PARSE_ERROR,
                    "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right \
                     syntax to use near 'INTERVAL' at line 1",
                ));
            }
            E::Subquery(_) | E::Exists { .. } | E::InSubquery { .. } | E::AnyOp { .. } | E::AllOp { .. } => {
                return Err(not_yet("subqueries in expressions"));
            }
            E::MatchAgainst { .. } => return Err(not_yet("MATCH ... AGAINST")),
            E::MemberOf(_) => return Err(not_yet("MEMBER OF")),
            other => return Err(not_yet(&other.to_string())),
        };
        Ok(fold::fold(bound, self.context))
    }

    fn identifier(&mut self, name: &ast::Ident) -> Result<Expr> {
        if name.quote_style.is_none() {
            if name.value.starts_with("@@") {
                return self.system_variable(&name.value);
            }
            if let Some(variable) = name.value.strip_prefix('@') {
                return Ok(self.user_variable(variable));
            }
        }
        let resolved = self.scope.resolve(&[&name.value])?;
        self.resolved(resolved)
    }

    pub fn resolved(&self, resolved: Resolved) -> Result<Expr> {
        Ok(match resolved {
            Resolved::Column { table, column, ty, nullable } => {
                let coercibility = if Class::of(&ty).is_string() { types::IMPLICIT } else { types::NUMERIC };
                Expr { kind: ExprKind::Column { table, column }, ty, nullable, coercibility }
            }
            Resolved::Expression(expr) => {
                // A copy for each name that stands for it.
                self.context.memory.take(expr.nodes() * size_of::<Expr>())?;
                expr
            }
        })
    }

    /// A user variable has the type of the value that it has now; without a value it is text.
    fn user_variable(&self, name: &str) -> Expr {
        let name = name.to_ascii_lowercase();
        let ty = self.context.user_variables.get(&name).copied();
        Expr {
            kind: ExprKind::UserVariable(name.into()),
            ty: ty.unwrap_or_else(|| text_type(16_383, self.context.collation)),
            nullable: true,
            coercibility: types::IMPLICIT,
        }
    }

    fn system_variable(&self, text: &str) -> Result<Expr> {
        let (scope, name) = parse::system_variable(text);
        let name = name.to_ascii_lowercase();
        let known = self.context.variable_type.and_then(|type_of| type_of(&name));
        let ty = known.unwrap_or_else(|| text_type(1024, Collation::Utf8mb4GeneralCi));
        Ok(Expr {
            kind: ExprKind::SystemVariable { scope, name: name.into() },
            ty,
            nullable: true,
            coercibility: types::SYSTEM,
        })
    }

    pub fn text_literal(&self, text: String) -> Expr {
        let ty = text_type(text.chars().count() as u64, self.text_collation());
        literal(Value::Str(text), ty, types::COERCIBLE)
    }

    fn text_collation(&self) -> Collation {
        match self.context.collation {
            Collation::Binary => Collation::DEFAULT,
            collation => collation,
        }
    }

    fn value(&mut self, value: &ast::Value) -> Result<Expr> {
        use ast::Value as V;
        Ok(match value {
            V::Number(text, _) => number(text)?,
            V::SingleQuotedString(text) | V::DoubleQuotedString(text) | V::NationalStringLiteral(text) => {
                self.text_literal(text.clone())
            }
            V::HexStringLiteral(digits) => hex_literal(hex_bytes(digits)),
            V::SingleQuotedByteStringLiteral(digits) => hex_literal(bit_bytes(digits)),
            V::Boolean(truth) => literal(Value::Int((*truth).into()), types::BOOLEAN, types::NUMERIC),
            V::Null => Expr::null(),
            V::Placeholder(name) => {
                let index = parse::parameter_index(name).unwrap_or(0);
                self.parameter(index)
            }
            other => return Err(not_yet(&other.to_string())),
        })
    }

    fn parameter(&self, index: usize) -> Expr {
        let ty = match self.context.parameters.get(index) {
            Some(ty) if ty.kind != TypeKind::Null => *ty,
            _ => text_type(16_383, self.text_collation()),
        };
        // Text of a client is of the connection's collation, whatever the caller said.
        let ty = if ty.is_text() { DataType { collation: self.text_collation(), ..ty } } else { ty };
        let coercibility = if Class::of(&ty).is_string() { types::COERCIBLE } else { types::NUMERIC };
        Expr { kind: ExprKind::Parameter(index), ty, nullable: true, coercibility }
    }

    /// `_utf8mb4'x'`, `_binary'x'`, `_latin1 x'41'`.
    fn introduced(&mut self, charset: &str, value: &ast::Expr) -> Result<Expr> {
        let mut bound = self.bind(value)?;
        let binary = charset.eq_ignore_ascii_case("_binary");
        let ExprKind::Literal(content) = bound.kind else {
            return Err(not_yet("character set introducers of expressions"));
        };
        let bytes = match content {
            Value::Str(text) if !binary => {
                bound.kind = ExprKind::Literal(Value::Str(text));
                return Ok(bound);
            }
            Value::Str(text) => text.into_bytes(),
            Value::Bytes(bytes) => bytes,
            other => return Ok(Expr { kind: ExprKind::Literal(other), ..bound }),
        };
        if binary {
            return Ok(binary_literal(bytes));
        }
        if charset.eq_ignore_ascii_case("_latin1") {
            return Ok(self.text_literal(bytes.iter().map(|b| char::from(*b)).collect()));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(self.text_literal(text)),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let message = super::cast::invalid_text(&error.as_bytes()[valid..]);
                Err(MysqlError::new(super::cast::INVALID_CHARACTER_STRING, message))
            }
        }
    }

    /// `DATE '2024-01-01'` and the like: error 1525 when it is none.
    fn typed_string(&mut self, typed: &ast::TypedString) -> Result<Expr> {
        let ast::Value::SingleQuotedString(text) = &typed.value.value else { return Err(not_yet("typed literals")) };
        let flags = self.context.sql_mode.date_flags(true);
        let wrong = |kind: &str| MysqlError::new(operators::WRONG_VALUE, format!("Incorrect {kind} value: '{text}'"));
        let parsed = rauk_types::datetime::parse_date_time(text.as_bytes(), flags);
        Ok(match &typed.data_type {
            ast::DataType::Date => match parsed {
                Ok(p) if p.date_only && !p.truncated => {
                    literal(Value::Date(p.value.date()), DataType::new(TypeKind::Date), types::NUMERIC)
                }
                _ => return Err(wrong("DATE")),
            },
            ast::DataType::Timestamp(..) => match parsed {
                Ok(p) if !p.truncated && p.offset.is_none() => {
                    let ty = DataType { scale: p.fraction_digits, ..DataType::new(TypeKind::DateTime) };
                    let value = p.to_precision(6, false).ok_or_else(|| wrong("DATETIME"))?;
                    literal(Value::DateTime(value), ty, types::NUMERIC)
                }
                _ => return Err(wrong("DATETIME")),
            },
            _ => match rauk_types::datetime::parse_time(text.as_bytes()) {
                Ok(p) if !p.truncated && !p.out_of_range => {
                    let ty = DataType { scale: p.fraction_digits, ..DataType::new(TypeKind::Time) };
                    literal(Value::Time(p.to_precision(6, false)), ty, types::NUMERIC)
                }
                _ => return Err(wrong("TIME")),
            },
        })
    }
}

fn hex_literal(bytes: Vec<u8>) -> Expr {
    let ty = types::hex_type(bytes.len());
    literal(Value::Bytes(bytes), ty, types::COERCIBLE)
}

pub(super) fn binary_literal(bytes: Vec<u8>) -> Expr {
    let ty = text_type(bytes.len() as u64, Collation::Binary);
    literal(Value::Bytes(bytes), ty, types::COERCIBLE)
}
