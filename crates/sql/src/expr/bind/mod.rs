//! Binding: from the syntax tree to [`Expr`].
//!
//! ```text
//! mod         names, literals, and which part of the grammar is whose
//! operators   arithmetic, comparisons, predicates; how two sides compare
//! calls       functions, CASE and what is written like a call
//! aggregates  COUNT, SUM and their kin
//! windows     calls with OVER
//! sys         functions of the database sys
//! subquery    values, rows, EXISTS, IN, ANY and ALL of queries
//! fold        constants are computed once
//! ```

mod aggregates;
mod calls;
mod fold;
mod full_text;
mod members;
mod operators;
mod subquery;
mod sys;
mod windows;

pub(super) use calls::converted;
pub(crate) use full_text::wrong_arguments;
pub(super) use members::{as_document, as_shown as shown, as_sorted as sorted, as_text};
pub(super) use operators::WRONG_VALUE;
pub(crate) use operators::settle_comparisons;
pub(in crate::expr) use operators::{boolean, row_keys, sorted_list};

use super::convert::{Result, without};
use super::display::readable;
use super::types::{self, Class, text_type};
use super::{BindContext, CompareOp, Deep, Expr, ExprKind, Resolved, Scope};
use crate::parse::ast::{self, Introducer, IsTest, Literal};
use crate::parse::statement;
use crate::stack;
use rauk_types::error::codes;
use rauk_types::{Charset, Collation, DataType, Decimal, MysqlError, TypeKind, Value, datetime};

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

/// What may not stand where it stands, though the grammar of expressions has it.
fn syntax(near: &str) -> MysqlError {
    MysqlError::new(
        codes::PARSE_ERROR,
        format!(
            "You have an error in your SQL syntax; see Rauk's SQL reference for the right syntax to use near '{near}' at line 1"
        ),
    )
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
            E::Literal(literal) => self.literal(literal)?,
            E::Column(name) => {
                let resolved = self.scope.resolve(&name.path())?;
                self.resolved(resolved)?
            }
            E::Parameter(index) => self.parameter(*index),
            E::UserVariable(name) => self.user_variable(name),
            E::AssignVariable { name, value } => self.assign_variable(name, value)?,
            E::SystemVariable { scope, name } => self.system_variable(*scope, name),
            E::DefaultOf(column) => self.scope.default_value(&column.path())?,
            E::InsertedValue(column) => {
                let resolved = self.scope.inserted_value(&column.name)?;
                self.resolved(resolved)?
            }
            E::Unary { op, operand } => self.unary(*op, operand, expr)?,
            E::Binary { op, left, right } => self.binary(*op, left, right, expr)?,
            E::Is { operand, test, negated } => match test {
                IsTest::Null | IsTest::Unknown => self.is_null(operand, *negated)?,
                IsTest::True => self.is_truth(operand, true, *negated)?,
                IsTest::False => self.is_truth(operand, false, *negated)?,
            },
            E::Between { operand, low, high, negated } => self.between(operand, *negated, low, high)?,
            E::InList { operand, list, negated } => self.in_list(operand, list, *negated)?,
            E::Like { operand, pattern, escape, negated } => {
                self.like(operand, pattern, escape.as_deref(), *negated)?
            }
            E::Regexp { operand, pattern, negated } => self.regexp(operand, pattern, *negated)?,
            E::Case { operand, branches, otherwise } => {
                self.case(operand.as_deref(), branches, otherwise.as_deref())?
            }
            E::Cast { operand, target } => {
                let text = || format!("CAST({} AS {})", readable(operand), target.to_string().to_ascii_uppercase());
                self.cast(operand, target, text)?
            }
            E::ConvertUsing { operand, charset } => self.convert_using(operand, charset)?,
            E::Collate { operand, collation } => self.collate(operand, collation)?,
            E::Extract { unit, operand } => self.extract(*unit, operand)?,
            E::WeightString { operand, binary, length } => self.weight_string(operand, *binary, *length)?,
            E::Trim { side, what, operand } => self.trim(*side, what.as_deref(), operand)?,
            E::TimestampAdd { unit, amount, date } => {
                let (amount, date) = (self.bind(amount)?, self.bind(date)?);
                self.date_add(date, amount, *unit, false)
            }
            E::TimestampDiff { unit, from, to } => self.timestamp_diff(*unit, from, to)?,
            E::Call(call) => self.function(call)?,
            E::Row(_) => return Err(one_column()),
            E::Default => return Err(syntax("DEFAULT")),
            E::Interval { .. } => return Err(syntax("INTERVAL")),
            E::Subquery(query) => self.subquery_value(query)?,
            E::Exists(query) => self.exists(query)?,
            E::InQuery { operand, query, negated } => self.in_query(operand, query, *negated)?,
            E::Quantified { left, op, quantifier, query } => {
                self.any_or_all(left, comparison_op(*op)?, *quantifier, query)?
            }
            E::Match { columns, against, mode } => self.full_text(columns, against, *mode)?,
            E::MemberOf { value, array } => {
                let arguments = vec![self.bind_for_document(value)?, self.bind(array)?];
                self.call("MEMBER OF", arguments)?
            }
            E::JsonValue(call) => self.json_value(call)?,
            E::JsonPath { column, path, unquote } => {
                let arguments = vec![self.bind(column)?, self.text_literal(path.clone())];
                let found = self.call("JSON_EXTRACT", arguments)?;
                if *unquote { self.call("JSON_UNQUOTE", vec![found])? } else { found }
            }
        };
        Ok(fold::fold(bound, self.context))
    }

    /// A value for a document: what was written as a predicate, or as TRUE, is a boolean.
    pub fn bind_for_document(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let bound = self.bind(expr)?;
        if is_boolean(expr) { self.boolean_document(bound) } else { Ok(bound) }
    }

    pub fn boolean_document(&mut self, bound: Expr) -> Result<Expr> {
        let truth = self.call("JSON_TRUTH", vec![bound])?;
        Ok(fold::fold(truth, self.context))
    }

    pub fn resolved(&self, resolved: Resolved) -> Result<Expr> {
        Ok(match resolved {
            Resolved::Column { table, column, ty, nullable } => {
                let coercibility = types::column_coercibility(&ty);
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

    fn assign_variable(&mut self, name: &str, value: &ast::Expr) -> Result<Expr> {
        let mut value = Box::new(members::as_text(self.bind(value)?));
        value.ty = types::plain(value.ty);
        let (ty, nullable, coercibility) = (value.ty, value.nullable, value.coercibility);
        let name = name.to_ascii_lowercase().into();
        Ok(Expr { kind: ExprKind::AssignVariable { name, value }, ty, nullable, coercibility })
    }

    fn system_variable(&self, scope: statement::Scope, name: &str) -> Expr {
        let name = name.to_ascii_lowercase();
        let known = self.context.variable_type.and_then(|type_of| type_of(&name));
        let ty = known.unwrap_or_else(|| text_type(1024, Collation::Utf8mb4GeneralCi));
        Expr {
            kind: ExprKind::SystemVariable { scope, name: name.into() },
            ty,
            nullable: true,
            coercibility: types::SYSTEM,
        }
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

    fn literal(&self, written: &Literal) -> Result<Expr> {
        Ok(match written {
            Literal::Null => Expr::null(),
            Literal::Boolean(truth) => literal(Value::Int((*truth).into()), types::BOOLEAN, types::NUMERIC),
            Literal::Number(digits) => number(digits)?,
            Literal::Text { value, introducer: None } => match self.context.collation {
                // What a client calls binary is no text.
                Collation::Binary => binary_literal(value.clone().into_bytes()),
                // It came in the client's set, which may have more.
                connection => self.text_literal(without(value.as_str().into(), connection.charset()).into_owned()),
            },
            // What was written in another set than UTF-8 came as hexadecimal digits.
            Literal::Text { value, introducer } => self.introduced(introducer.as_ref(), value.clone().into_bytes())?,
            Literal::Hex { digits, introducer } => self.introduced(introducer.as_ref(), hex_bytes(digits))?,
            Literal::Bits { digits, introducer } => self.introduced(introducer.as_ref(), bit_bytes(digits))?,
            Literal::Date(text) => self.date(text)?,
            Literal::Time(text) => time(text)?,
            Literal::Timestamp(text) => self.timestamp(text)?,
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

    /// `x'41'`, `_binary x'41'`, `_latin1 x'41'`, `_latin1'A'`: bytes in a character set. Errors 1115, 1300.
    fn introduced(&self, introducer: Option<&Introducer>, bytes: Vec<u8>) -> Result<Expr> {
        let set = match introducer {
            None => return Ok(hex_literal(bytes)),
            Some(Introducer::National) => Charset::UTF8MB3,
            Some(Introducer::Charset(name)) => charset_named(name)?,
        };
        if set == Charset::BINARY {
            return Ok(binary_literal(bytes));
        }
        let bytes = set.aligned(&bytes);
        let decoded = set.decode(&bytes);
        if let Some(at) = decoded.malformed {
            let message = super::cast::invalid_text(&bytes[at..], set);
            return Err(MysqlError::new(super::cast::INVALID_CHARACTER_STRING, message));
        }
        let text = decoded.text.into_owned();
        let ty = text_type(text.chars().count() as u64, self.of_charset(set));
        Ok(literal(Value::Str(text), ty, types::COERCIBLE))
    }

    /// The collation of text that is said to be of a character set: the connection's, where it is one of it.
    pub fn of_charset(&self, set: Charset) -> Collation {
        let connection = self.context.collation;
        if connection.charset() == set { connection } else { Collation::of_charset(set) }
    }

    /// `DATE '2024-01-01'`: error 1525 when it is none.
    fn date(&self, text: &str) -> Result<Expr> {
        match datetime::parse_date_time(text.as_bytes(), self.context.sql_mode.date_flags(true)) {
            Ok(p) if p.date_only && !p.truncated => {
                Ok(literal(Value::Date(p.value.date()), DataType::new(TypeKind::Date), types::NUMERIC))
            }
            _ => Err(operators::wrong_value("DATE", text)),
        }
    }

    /// `TIMESTAMP '2024-01-01 00:00:00'`: a DATETIME.
    fn timestamp(&self, text: &str) -> Result<Expr> {
        let wrong = || operators::wrong_value("DATETIME", text);
        match datetime::parse_date_time(text.as_bytes(), self.context.sql_mode.date_flags(true)) {
            Ok(p) if !p.truncated && p.offset.is_none() => {
                let ty = DataType { scale: p.fraction_digits, ..DataType::new(TypeKind::DateTime) };
                let value = p.to_precision(6, false).ok_or_else(wrong)?;
                Ok(literal(Value::DateTime(value), ty, types::NUMERIC))
            }
            _ => Err(wrong()),
        }
    }
}

/// Whether an expression is a boolean as it is written.
pub(super) fn is_boolean(expr: &ast::Expr) -> bool {
    use ast::{BinaryOp as B, Expr as E};
    match expr {
        E::Literal(Literal::Boolean(_))
        | E::Unary { op: ast::UnaryOp::Not, .. }
        | E::Is { .. }
        | E::Between { .. }
        | E::InList { .. }
        | E::InQuery { .. }
        | E::Exists(_)
        | E::Quantified { .. }
        | E::MemberOf { .. }
        | E::Like { .. }
        | E::Regexp { .. } => true,
        E::Binary { op, .. } => matches!(
            op,
            B::Equal
                | B::NullSafeEqual
                | B::NotEqual
                | B::Less
                | B::LessOrEqual
                | B::Greater
                | B::GreaterOrEqual
                | B::And
                | B::Or
                | B::Xor
        ),
        _ => false,
    }
}

/// `TIME '12:00:00'`.
fn time(text: &str) -> Result<Expr> {
    match datetime::parse_time(text.as_bytes()) {
        Ok(p) if !p.truncated && !p.out_of_range => {
            let ty = DataType { scale: p.fraction_digits, ..DataType::new(TypeKind::Time) };
            Ok(literal(Value::Time(p.to_precision(6, false)), ty, types::NUMERIC))
        }
        _ => Err(operators::wrong_value("TIME", text)),
    }
}

/// The comparison before ANY and ALL.
fn comparison_op(op: ast::BinaryOp) -> Result<CompareOp> {
    Ok(match op {
        ast::BinaryOp::Equal => CompareOp::Eq,
        ast::BinaryOp::NotEqual => CompareOp::Ne,
        ast::BinaryOp::Less => CompareOp::Lt,
        ast::BinaryOp::LessOrEqual => CompareOp::Le,
        ast::BinaryOp::Greater => CompareOp::Gt,
        ast::BinaryOp::GreaterOrEqual => CompareOp::Ge,
        op => return Err(syntax(op.symbol())),
    })
}

fn hex_literal(bytes: Vec<u8>) -> Expr {
    let ty = types::hex_type(bytes.len());
    literal(Value::Bytes(bytes), ty, types::COERCIBLE)
}

pub(super) fn binary_literal(bytes: Vec<u8>) -> Expr {
    let ty = text_type(bytes.len() as u64, Collation::Binary);
    literal(Value::Bytes(bytes), ty, types::COERCIBLE)
}

/// Error 1115.
pub(super) fn charset_named(name: &str) -> Result<Charset> {
    let unknown = || MysqlError::new(codes::UNKNOWN_CHARACTER_SET, format!("Unknown character set: '{name}'"));
    Charset::named(name).ok_or_else(unknown)
}
