//! Expressions, by precedence climbing.
//!
//! ```text
//! weakest   :=
//!           OR  ||          (|| concatenates in PIPES_AS_CONCAT, then it binds as tightly as ^)
//!           XOR
//!           AND  &&
//!           NOT             (as tight as ! in HIGH_NOT_PRECEDENCE)
//!           = <=> >= > <= < <> !=  IS          comparisons: operands are predicates
//!           BETWEEN IN LIKE REGEXP …           predicates: operands are bit expressions
//!           |
//!           &
//!           << >>
//!           - +             (also with INTERVAL on the right)
//!           * / % DIV MOD
//!           ^
//!           - ~ (unary)  !  BINARY
//! tightest  COLLATE
//! ```
//! A node that was built from a weak operator cannot become the left operand of a stronger one without parentheses (`a LIKE b + c`
//! is an error, as in MySQL): `strength` in [`Parser::operators`] watches that. Chains of AND and OR become balanced trees, so that a
//! generated condition with thousands of terms is shallow.
//!
//! The tree is sqlparser's; where MySQL has more, it says: `@x` and `@@x` are [`Expr::Identifier`]s without quotes whose name begins with `@`;
//! `?` is a placeholder `?0`, `?1`, … numbered by place; `a SOUNDS LIKE b` is `SOUNDEX(a) = SOUNDEX(b)`, its definition.

use super::cursor::{MAX_PARAMETERS, Parser, Result};
use super::lexer::{Kind, literal_digits};
use super::reserved::{is_reserved, is_reserved_function};
use rauk_types::MysqlError;
use rauk_types::error::codes;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::*;
use sqlparser::tokenizer::Span;

/// ER_PS_MANY_PARAM.
const PS_MANY_PARAM: u16 = 1390;

const OR: u8 = 10;
const XOR: u8 = 20;
const AND: u8 = 30;
const NOT: u8 = 40;
const COMPARISON: u8 = 50;
const PREDICATE: u8 = 60;
const BIT_OR: u8 = 70;
const BIT_AND: u8 = 80;
const SHIFT: u8 = 90;
const ADD: u8 = 100;
const MULTIPLY: u8 = 110;
const BIT_XOR: u8 = 120;
const UNARY: u8 = 130;
const COLLATE: u8 = 140;
const PRIMARY: u8 = 255;

pub(super) fn value(value: Value) -> Expr {
    Expr::Value(ValueWithSpan { value, span: Span::empty() })
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// A call of `name` with these arguments.
pub(super) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    Expr::Function(function(name, arguments))
}

fn function(name: &str, arguments: Vec<Expr>) -> Function {
    let args = arguments.into_iter().map(|e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e))).collect();
    Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: vec![] }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    }
}

/// Operands joined by an associative operator, as a tree of logarithmic depth. Neighbours become a tree as soon as they are trees of the same size,
/// so that few wait at a time.
struct Junction {
    op: BinaryOperator,
    /// Trees with the logarithms of their sizes, which fall.
    trees: Vec<(Expr, usize)>,
}

impl Junction {
    fn push(&mut self, operand: Expr) {
        let mut tree = (operand, 0);
        while let Some((left, size)) = self.trees.pop_if(|(_, size)| *size == tree.1) {
            tree = (binary(left, self.op.clone(), tree.0), size + 1);
        }
        self.trees.push(tree);
    }

    /// The tree of all, and how many levels stand above its operands at most.
    fn end(mut self) -> (Expr, usize) {
        let (mut tree, _) = self.trees.pop().expect("an operator has operands");
        let levels = self.trees.first().map_or(0, |(_, size)| size + self.trees.len());
        while let Some((left, _)) = self.trees.pop() {
            tree = binary(left, self.op.clone(), tree);
        }
        (tree, levels)
    }
}

/// The units of INTERVAL, EXTRACT and TIMESTAMPADD.
const UNITS: &[&str] = &[
    "MICROSECOND",
    "SECOND",
    "MINUTE",
    "HOUR",
    "DAY",
    "WEEK",
    "MONTH",
    "QUARTER",
    "YEAR",
    "SECOND_MICROSECOND",
    "MINUTE_MICROSECOND",
    "MINUTE_SECOND",
    "HOUR_MICROSECOND",
    "HOUR_SECOND",
    "HOUR_MINUTE",
    "DAY_MICROSECOND",
    "DAY_SECOND",
    "DAY_MINUTE",
    "DAY_HOUR",
    "YEAR_MONTH",
];

impl Parser<'_> {
    pub fn expr(&mut self) -> Result<Expr> {
        self.operators(0)
    }

    /// A literal, name, call or parenthesis without operators around it.
    pub fn operand(&mut self) -> Result<Expr> {
        self.nested(Self::primary)
    }

    pub fn boxed_expr(&mut self) -> Result<Box<Expr>> {
        self.expr().map(Box::new)
    }

    /// The operator at the cursor that can follow an operand: its strength, and how many tokens it has.
    fn infix_strength(&self) -> u8 {
        match self.kind() {
            Kind::PipePipe => {
                if self.mode.pipes_as_concat {
                    BIT_XOR
                } else {
                    OR
                }
            }
            Kind::AmpAmp => AND,
            Kind::Eq | Kind::NullEq | Kind::Ge | Kind::Gt | Kind::Le | Kind::Lt | Kind::Ne => COMPARISON,
            Kind::Pipe => BIT_OR,
            Kind::Amp => BIT_AND,
            Kind::ShiftLeft | Kind::ShiftRight => SHIFT,
            Kind::Plus | Kind::Minus => ADD,
            Kind::Star | Kind::Slash | Kind::Percent => MULTIPLY,
            Kind::Caret => BIT_XOR,
            Kind::Arrow | Kind::LongArrow => COLLATE,
            Kind::Word => self.word_strength(),
            _ => 0,
        }
    }

    fn word_strength(&self) -> u8 {
        let token = self.peek();
        let text = self.text(token);
        if text.len() > 8 {
            return 0;
        }
        let mut upper = [0u8; 8];
        upper[..text.len()].copy_from_slice(text.as_bytes());
        upper.make_ascii_uppercase();
        match &upper[..text.len()] {
            b"AND" => AND,
            b"OR" => OR,
            b"XOR" => XOR,
            b"IS" => COMPARISON,
            b"IN" | b"LIKE" | b"BETWEEN" | b"REGEXP" | b"RLIKE" => PREDICATE,
            b"NOT" if ["IN", "LIKE", "BETWEEN", "REGEXP", "RLIKE"].iter().any(|k| self.is_kw_at(1, k)) => PREDICATE,
            b"SOUNDS" if self.is_kw_at(1, "LIKE") => PREDICATE,
            b"MEMBER" if self.is_kw_at(1, "OF") || self.kind_at(1) == Kind::LParen => PREDICATE,
            b"DIV" | b"MOD" => MULTIPLY,
            b"COLLATE" => COLLATE,
            _ => 0,
        }
    }

    /// An expression of operators that bind more tightly than `weakest`.
    fn operators(&mut self, weakest: u8) -> Result<Expr> {
        self.nested(|p| {
            p.count_operand()?;
            let beside = p.take_height();
            let (mut left, mut strength) = p.prefix(weakest)?;
            p.taller(1)?;
            loop {
                let next = p.infix_strength();
                if next <= weakest || next > strength || (next == PREDICATE && strength == PREDICATE) {
                    p.beside(beside);
                    return Ok(left);
                }
                left = p.infix(left, next)?;
                p.taller(1)?;
                strength = next;
            }
        })
    }

    fn infix(&mut self, left: Expr, strength: u8) -> Result<Expr> {
        match strength {
            OR | AND => self.junction(left, strength),
            COMPARISON => self.comparison(left),
            PREDICATE => self.predicate(left),
            COLLATE => self.postfix(left),
            _ => {
                let op = self.arithmetic_operator();
                let right = if strength == ADD && self.is_kw("INTERVAL") && !self.is_interval_function() {
                    self.interval()?
                } else {
                    self.operators(strength)?
                };
                Ok(binary(left, op, right))
            }
        }
    }

    fn arithmetic_operator(&mut self) -> BinaryOperator {
        let token = self.advance();
        match token.kind {
            Kind::PipePipe => BinaryOperator::StringConcat,
            Kind::Pipe => BinaryOperator::BitwiseOr,
            Kind::Amp => BinaryOperator::BitwiseAnd,
            Kind::ShiftLeft => BinaryOperator::PGBitwiseShiftLeft,
            Kind::ShiftRight => BinaryOperator::PGBitwiseShiftRight,
            Kind::Plus => BinaryOperator::Plus,
            Kind::Minus => BinaryOperator::Minus,
            Kind::Star => BinaryOperator::Multiply,
            Kind::Slash => BinaryOperator::Divide,
            Kind::Percent => BinaryOperator::Modulo,
            Kind::Caret => BinaryOperator::BitwiseXor,
            _ if self.text(token).eq_ignore_ascii_case("DIV") => BinaryOperator::MyIntegerDivide,
            _ if self.text(token).eq_ignore_ascii_case("MOD") => BinaryOperator::Modulo,
            _ => BinaryOperator::Xor,
        }
    }

    /// All operands of a chain of AND, or of OR.
    fn junction(&mut self, left: Expr, strength: u8) -> Result<Expr> {
        let op = if strength == AND { BinaryOperator::And } else { BinaryOperator::Or };
        let mut operands = Junction { op, trees: vec![(left, 0)] };
        while self.infix_strength() == strength {
            self.advance();
            operands.push(self.operators(strength)?);
        }
        let (tree, levels) = operands.end();
        self.taller(levels)?;
        Ok(tree)
    }

    fn comparison(&mut self, left: Expr) -> Result<Expr> {
        if self.accept_kw("IS") {
            let negated = self.accept_kw("NOT");
            let left = Box::new(left);
            return Ok(match (self.accept_any_kw(&["NULL", "TRUE", "FALSE", "UNKNOWN"]), negated) {
                (Some("NULL"), false) => Expr::IsNull(left),
                (Some("NULL"), true) => Expr::IsNotNull(left),
                (Some("TRUE"), false) => Expr::IsTrue(left),
                (Some("TRUE"), true) => Expr::IsNotTrue(left),
                (Some("FALSE"), false) => Expr::IsFalse(left),
                (Some("FALSE"), true) => Expr::IsNotFalse(left),
                (Some(_), false) => Expr::IsUnknown(left),
                (Some(_), true) => Expr::IsNotUnknown(left),
                (None, _) => return self.fail(),
            });
        }
        let op = match self.advance().kind {
            Kind::Eq => BinaryOperator::Eq,
            Kind::NullEq => BinaryOperator::Spaceship,
            Kind::Ge => BinaryOperator::GtEq,
            Kind::Gt => BinaryOperator::Gt,
            Kind::Le => BinaryOperator::LtEq,
            Kind::Lt => BinaryOperator::Lt,
            _ => BinaryOperator::NotEq,
        };
        if let Some(quantifier) = self.quantifier() {
            let query = self.nested(|p| p.parenthesized(Self::query))?;
            let (left, right) = (Box::new(left), Box::new(Expr::Subquery(query)));
            return Ok(match quantifier {
                "ALL" => Expr::AllOp { left, compare_op: op, right },
                word => Expr::AnyOp { left, compare_op: op, right, is_some: word == "SOME" },
            });
        }
        Ok(binary(left, op, self.operators(COMPARISON)?))
    }

    fn quantifier(&mut self) -> Option<&'static str> {
        if self.kind_at(1) == Kind::LParen { self.accept_any_kw(&["ALL", "ANY", "SOME"]) } else { None }
    }

    fn predicate(&mut self, left: Expr) -> Result<Expr> {
        let negated = self.accept_kw("NOT");
        let expr = Box::new(left);
        if self.accept_kw("IN") {
            self.expect(Kind::LParen)?;
            let result = if self.is_query_start() {
                Expr::InSubquery { expr, subquery: self.nested(Self::query)?, negated }
            } else {
                Expr::InList { expr, list: self.comma_separated(Self::expr)?, negated }
            };
            self.expect(Kind::RParen)?;
            return Ok(result);
        }
        if self.accept_kw("BETWEEN") {
            let low = Box::new(self.operators(PREDICATE)?);
            self.expect_kw("AND")?;
            // The upper end is a predicate: `x BETWEEN 1 AND y IN (…)` is `x BETWEEN 1 AND (y IN (…))`.
            let high = Box::new(self.operators(COMPARISON)?);
            return Ok(Expr::Between { expr, negated, low, high });
        }
        if self.accept_kw("LIKE") {
            let pattern = Box::new(self.operators(if self.mode.pipes_as_concat { MULTIPLY } else { BIT_XOR })?);
            let escape_char = if self.accept_kw("ESCAPE") {
                match self.operators(BIT_XOR)? {
                    Expr::Value(value) => Some(value),
                    _ => return Err(MysqlError::new(codes::WRONG_ARGUMENTS, "Incorrect arguments to ESCAPE")),
                }
            } else {
                None
            };
            return Ok(Expr::Like { negated, any: false, expr, pattern, escape_char });
        }
        if let Some(word) = self.accept_any_kw(&["REGEXP", "RLIKE"]) {
            let pattern = Box::new(self.operators(PREDICATE)?);
            return Ok(Expr::RLike { negated, expr, pattern, regexp: word == "REGEXP" });
        }
        if self.accept_kws(&["SOUNDS", "LIKE"]) {
            let right = self.operators(PREDICATE)?;
            return Ok(binary(call("SOUNDEX", vec![*expr]), BinaryOperator::Eq, call("SOUNDEX", vec![right])));
        }
        self.expect_kw("MEMBER")?;
        self.accept_kw("OF");
        let array = self.parenthesized(Self::boxed_expr)?;
        Ok(Expr::MemberOf(MemberOf { value: expr, array }))
    }

    fn postfix(&mut self, left: Expr) -> Result<Expr> {
        match self.kind() {
            Kind::Arrow | Kind::LongArrow => {
                let long = self.advance().kind == Kind::LongArrow;
                let path = self.string()?;
                let op = if long { BinaryOperator::LongArrow } else { BinaryOperator::Arrow };
                Ok(binary(left, op, value(Value::SingleQuotedString(path))))
            }
            _ => {
                self.expect_kw("COLLATE")?;
                let collation = ObjectName::from(vec![Ident::new(self.charset_name()?)]);
                Ok(Expr::Collate { expr: Box::new(left), collation })
            }
        }
    }

    /// An operand with the operators before it, and the strength of what was built.
    fn prefix(&mut self, weakest: u8) -> Result<(Expr, u8)> {
        let op = match self.kind() {
            Kind::Plus => UnaryOperator::Plus,
            Kind::Minus => UnaryOperator::Minus,
            Kind::Tilde => UnaryOperator::BitwiseNot,
            Kind::Bang => UnaryOperator::BangNot,
            Kind::Word if self.is_kw("NOT") => {
                let strength = if self.mode.high_not_precedence { UNARY } else { NOT };
                if strength < weakest {
                    return self.fail();
                }
                self.advance();
                let expr = Box::new(self.operators(strength - 1)?);
                return Ok((Expr::UnaryOp { op: UnaryOperator::Not, expr }, strength));
            }
            Kind::Word if self.is_kw("BINARY") => {
                self.advance();
                let expr = Box::new(self.operators(UNARY - 1)?);
                let data_type = DataType::Binary(None);
                return Ok((Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None }, UNARY));
            }
            _ => return self.primary().map(|e| (e, PRIMARY)),
        };
        self.advance();
        let expr = Box::new(self.operators(UNARY - 1)?);
        Ok((Expr::UnaryOp { op, expr }, UNARY))
    }

    /// What binds most tightly: literals, names, calls, parentheses.
    fn primary(&mut self) -> Result<Expr> {
        let token = self.peek();
        match token.kind {
            Kind::Integer | Kind::Decimal | Kind::Float => {
                self.advance();
                Ok(value(Value::Number(self.text(token).to_string(), false)))
            }
            Kind::String => self.string().map(|s| value(Value::SingleQuotedString(s))),
            Kind::National => self.string().map(|s| value(Value::NationalStringLiteral(s))),
            Kind::Hex => {
                self.advance();
                let digits = literal_digits(self.text(token));
                let padding = if digits.len() % 2 == 1 { "0" } else { "" };
                Ok(value(Value::HexStringLiteral(format!("{padding}{digits}"))))
            }
            Kind::Bit => {
                self.advance();
                Ok(value(Value::SingleQuotedByteStringLiteral(literal_digits(self.text(token)).to_string())))
            }
            Kind::Placeholder => self.placeholder(),
            Kind::UserVariable => {
                self.advance();
                let variable = Expr::Identifier(Ident::new(format!("@{}", self.variable_name(token))));
                if self.accept(Kind::Assign) {
                    let assigned = self.expr()?;
                    return Ok(binary(variable, BinaryOperator::Assignment, assigned));
                }
                Ok(variable)
            }
            Kind::SystemVariable => {
                self.advance();
                Ok(Expr::Identifier(Ident::new(self.text(token).replace('`', ""))))
            }
            Kind::LParen => self.parenthesis(),
            Kind::LBrace => self.odbc_literal(),
            Kind::Quoted => self.column_or_call(),
            Kind::Word => self.word_expression(),
            _ => self.fail(),
        }
    }

    pub fn placeholder(&mut self) -> Result<Expr> {
        self.expect(Kind::Placeholder)?;
        if self.parameters >= MAX_PARAMETERS {
            return Err(MysqlError::new(PS_MANY_PARAM, "Prepared statement contains too many placeholders"));
        }
        self.parameters += 1;
        Ok(value(Value::Placeholder(format!("?{}", self.parameters - 1))))
    }

    fn parenthesis(&mut self) -> Result<Expr> {
        self.expect(Kind::LParen)?;
        let result = if self.is_query_start() {
            Expr::Subquery(self.nested(Self::query)?)
        } else {
            let mut items = self.comma_separated(Self::expr)?;
            match items.len() {
                // Parentheses around parentheses say nothing more.
                1 => match items.remove(0) {
                    nested @ Expr::Nested(_) => nested,
                    item => Expr::Nested(Box::new(item)),
                },
                _ => Expr::Tuple(items),
            }
        };
        self.expect(Kind::RParen)?;
        Ok(result)
    }

    /// `{d '2024-01-01'}`, `{t …}`, `{ts …}`, `{fn f(…)}`
    fn odbc_literal(&mut self) -> Result<Expr> {
        self.expect(Kind::LBrace)?;
        let data_type = match self.accept_any_kw(&["D", "T", "TS", "FN"]) {
            Some("D") => DataType::Date,
            Some("T") => DataType::Time(None, TimezoneInfo::None),
            Some("TS") => DataType::Timestamp(None, TimezoneInfo::None),
            Some(_) => {
                let inner = self.expr()?;
                self.expect(Kind::RBrace)?;
                return Ok(inner);
            }
            None => return self.fail(),
        };
        let text = self.string()?;
        self.expect(Kind::RBrace)?;
        Ok(typed_string(data_type, text))
    }

    fn word_expression(&mut self) -> Result<Expr> {
        let token = self.peek();
        let text = self.text(token);
        let next = self.kind_at(1);
        if next == Kind::Dot {
            return self.column_or_call();
        }
        if text.starts_with('_') && matches!(next, Kind::String | Kind::Hex | Kind::Bit) && is_introducer(text) {
            self.advance();
            let prefix = Ident::new(text.to_ascii_lowercase());
            let value = if next == Kind::String {
                Box::new(value(Value::SingleQuotedString(self.string()?)))
            } else {
                Box::new(self.primary()?)
            };
            return Ok(Expr::Prefixed { prefix, value });
        }
        let upper = text.to_ascii_uppercase();
        match upper.as_str() {
            "NULL" | "TRUE" | "FALSE" => {
                self.advance();
                return Ok(value(match upper.as_str() {
                    "NULL" => Value::Null,
                    word => Value::Boolean(word == "TRUE"),
                }));
            }
            "CASE" => return self.case(),
            "EXISTS" => {
                self.advance();
                let subquery = self.nested(|p| p.parenthesized(Self::query))?;
                return Ok(Expr::Exists { subquery, negated: false });
            }
            "INTERVAL" if self.is_interval_function() => {
                self.advance();
                let arguments = self.parenthesized(|p| p.comma_separated(Self::expr))?;
                return Ok(call("INTERVAL", arguments));
            }
            "INTERVAL" => return self.interval_first(),
            "ROW" if next == Kind::LParen => {
                self.advance();
                return self.parenthesized(|p| p.comma_separated(Self::expr)).map(Expr::Tuple);
            }
            "MATCH" => return self.match_against(),
            "DATE" | "TIME" | "TIMESTAMP" if next == Kind::String => {
                self.advance();
                let data_type = match upper.as_str() {
                    "DATE" => DataType::Date,
                    "TIME" => DataType::Time(None, TimezoneInfo::None),
                    _ => DataType::Timestamp(None, TimezoneInfo::None),
                };
                return Ok(typed_string(data_type, self.string()?));
            }
            "CURRENT_TIMESTAMP" | "CURRENT_DATE" | "CURRENT_TIME" | "CURRENT_USER" | "LOCALTIME" | "LOCALTIMESTAMP"
            | "UTC_DATE" | "UTC_TIME" | "UTC_TIMESTAMP"
                if next != Kind::LParen =>
            {
                self.advance();
                return Ok(call(&upper, vec![]));
            }
            "DEFAULT" if next != Kind::LParen => {
                self.advance();
                return Ok(Expr::Identifier(Ident::new("DEFAULT")));
            }
            "DEFAULT" => {
                self.advance();
                let column = self.parenthesized(Self::column)?;
                return Ok(call("DEFAULT", vec![column]));
            }
            _ => {}
        }
        if next == Kind::LParen {
            if let Some(special) = self.special_call(&upper)? {
                return Ok(special);
            }
            if is_reserved(text) && !is_reserved_function(text) {
                return self.fail();
            }
        }
        self.column_or_call()
    }

    /// `name`, `table.name`, `database.table.name`
    pub fn column(&mut self) -> Result<Expr> {
        let first = self.ident()?;
        if self.kind() != Kind::Dot {
            return Ok(Expr::Identifier(first));
        }
        let mut parts = vec![first];
        while parts.len() < 3 && self.kind() == Kind::Dot && self.kind_at(1) != Kind::Star {
            self.advance();
            parts.push(self.ident_after_dot()?);
        }
        Ok(if parts.len() == 1 { Expr::Identifier(parts.remove(0)) } else { Expr::CompoundIdentifier(parts) })
    }

    fn column_or_call(&mut self) -> Result<Expr> {
        if self.kind_at(1) == Kind::LParen {
            let ident = self.ident_after_dot()?;
            return self.call_of(ObjectName::from(vec![ident]));
        }
        let column = self.column()?;
        match column {
            Expr::CompoundIdentifier(parts) if self.kind() == Kind::LParen => self.call_of(ObjectName::from(parts)),
            column => Ok(column),
        }
    }

    /// The arguments of a call, aggregate clauses and OVER included.
    fn call_of(&mut self, name: ObjectName) -> Result<Expr> {
        self.expect(Kind::LParen)?;
        let mut list = FunctionArgumentList { duplicate_treatment: None, args: vec![], clauses: vec![] };
        match self.accept_any_kw(&["DISTINCT", "ALL"]) {
            Some("DISTINCT") => list.duplicate_treatment = Some(DuplicateTreatment::Distinct),
            Some(_) => list.duplicate_treatment = Some(DuplicateTreatment::All),
            None => {}
        }
        if self.accept(Kind::Star) {
            list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Wildcard));
        } else if self.kind() != Kind::RParen {
            list.args = self.comma_separated(|p| p.expr().map(|e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e))))?;
        }
        if self.accept_kws(&["ORDER", "BY"]) {
            list.clauses.push(FunctionArgumentClause::OrderBy(self.comma_separated(Self::order_by_expr)?));
        }
        if self.accept_kw("SEPARATOR") {
            let separator = ValueWithSpan { value: Value::SingleQuotedString(self.string()?), span: Span::empty() };
            list.clauses.push(FunctionArgumentClause::Separator(separator));
        }
        self.expect(Kind::RParen)?;
        let mut result = function("", vec![]);
        result.name = name;
        result.args = FunctionArguments::List(list);
        if self.accept_kw("OVER") {
            result.over = Some(if self.kind() == Kind::LParen {
                WindowType::WindowSpec(self.window_spec()?)
            } else {
                WindowType::NamedWindow(self.ident()?)
            });
        }
        Ok(Expr::Function(result))
    }

    pub fn window_spec(&mut self) -> Result<WindowSpec> {
        self.parenthesized(|p| {
            let window_name = if p.is_name() && !p.is_any_kw(&["PARTITION", "ORDER", "ROWS", "RANGE"]) {
                Some(p.ident()?)
            } else {
                None
            };
            let partition_by = if p.accept_kws(&["PARTITION", "BY"]) { p.comma_separated(Self::expr)? } else { vec![] };
            let order_by =
                if p.accept_kws(&["ORDER", "BY"]) { p.comma_separated(Self::order_by_expr)? } else { vec![] };
            let units = match p.accept_any_kw(&["ROWS", "RANGE"]) {
                Some("ROWS") => Some(WindowFrameUnits::Rows),
                Some(_) => Some(WindowFrameUnits::Range),
                None => None,
            };
            let window_frame = match units {
                None => None,
                Some(units) if p.accept_kw("BETWEEN") => {
                    let start_bound = p.frame_bound()?;
                    p.expect_kw("AND")?;
                    Some(WindowFrame { units, start_bound, end_bound: Some(p.frame_bound()?) })
                }
                Some(units) => Some(WindowFrame { units, start_bound: p.frame_bound()?, end_bound: None }),
            };
            Ok(WindowSpec { window_name, partition_by, order_by, window_frame })
        })
    }

    fn frame_bound(&mut self) -> Result<WindowFrameBound> {
        if self.accept_kws(&["CURRENT", "ROW"]) {
            return Ok(WindowFrameBound::CurrentRow);
        }
        let distance = if self.accept_kw("UNBOUNDED") { None } else { Some(self.boxed_expr()?) };
        match self.accept_any_kw(&["PRECEDING", "FOLLOWING"]) {
            Some("PRECEDING") => Ok(WindowFrameBound::Preceding(distance)),
            Some(_) => Ok(WindowFrameBound::Following(distance)),
            None => self.fail(),
        }
    }

    /// Calls with a grammar of their own; `None` leaves the cursor at the name.
    fn special_call(&mut self, name: &str) -> Result<Option<Expr>> {
        let start = self.position();
        if !matches!(
            name,
            "CAST"
                | "CONVERT"
                | "EXTRACT"
                | "POSITION"
                | "SUBSTRING"
                | "SUBSTR"
                | "MID"
                | "TRIM"
                | "TIMESTAMPADD"
                | "TIMESTAMPDIFF"
                | "GET_FORMAT"
                | "CHAR"
        ) {
            return Ok(None);
        }
        self.advance();
        self.expect(Kind::LParen)?;
        let result = match name {
            "CAST" => {
                let expr = self.boxed_expr()?;
                self.expect_kw("AS")?;
                let data_type = self.cast_type()?;
                Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None }
            }
            "CONVERT" => {
                let expr = self.boxed_expr()?;
                let (data_type, charset) = if self.accept_kw("USING") {
                    (None, Some(ObjectName::from(vec![Ident::new(self.charset_name()?)])))
                } else {
                    self.expect(Kind::Comma)?;
                    (Some(self.cast_type()?), None)
                };
                Expr::Convert { is_try: false, expr, data_type, charset, target_before_value: false, styles: vec![] }
            }
            "EXTRACT" => {
                let field = self.unit()?;
                self.expect_kw("FROM")?;
                Expr::Extract { field, syntax: ExtractSyntax::From, expr: self.boxed_expr()? }
            }
            "POSITION" => {
                let needle = self.operators(PREDICATE)?;
                self.expect_kw("IN")?;
                call("LOCATE", vec![needle, self.expr()?])
            }
            "SUBSTRING" | "SUBSTR" | "MID" => {
                let mut arguments = vec![self.expr()?];
                if self.accept_kw("FROM") {
                    arguments.push(self.expr()?);
                    if self.accept_kw("FOR") {
                        arguments.push(self.expr()?);
                    }
                } else {
                    while self.accept(Kind::Comma) {
                        arguments.push(self.expr()?);
                    }
                }
                call("SUBSTRING", arguments)
            }
            "TRIM" => self.trim()?,
            "TIMESTAMPADD" | "TIMESTAMPDIFF" => {
                let unit = self.unit_name()?;
                self.expect(Kind::Comma)?;
                let first = self.expr()?;
                self.expect(Kind::Comma)?;
                let second = self.expr()?;
                call(name, vec![value(Value::SingleQuotedString(unit)), first, second])
            }
            "GET_FORMAT" => {
                let Some(kind) = self.accept_any_kw(&["DATE", "TIME", "DATETIME", "TIMESTAMP"]) else {
                    return self.fail();
                };
                self.expect(Kind::Comma)?;
                call(name, vec![value(Value::SingleQuotedString(kind.to_string())), self.expr()?])
            }
            _ => {
                let arguments = self.comma_separated(Self::expr)?;
                let expr = call("CHAR", arguments);
                if self.accept_kw("USING") {
                    let charset = Some(ObjectName::from(vec![Ident::new(self.charset_name()?)]));
                    let expr = Box::new(expr);
                    Expr::Convert {
                        is_try: false,
                        expr,
                        data_type: None,
                        charset,
                        target_before_value: false,
                        styles: vec![],
                    }
                } else {
                    expr
                }
            }
        };
        debug_assert!(self.position() > start);
        self.expect(Kind::RParen)?;
        Ok(Some(result))
    }

    fn trim(&mut self) -> Result<Expr> {
        let trim_where = match self.accept_any_kw(&["BOTH", "LEADING", "TRAILING"]) {
            Some("BOTH") => Some(TrimWhereField::Both),
            Some("LEADING") => Some(TrimWhereField::Leading),
            Some(_) => Some(TrimWhereField::Trailing),
            None => None,
        };
        let plain = |trim_where, trim_what, expr| Expr::Trim { trim_where, trim_what, expr, trim_characters: None };
        if trim_where.is_some() && self.accept_kw("FROM") {
            return Ok(plain(trim_where, None, self.boxed_expr()?));
        }
        let first = self.boxed_expr()?;
        if self.accept_kw("FROM") {
            return Ok(plain(trim_where, Some(first), self.boxed_expr()?));
        }
        if trim_where.is_some() { self.fail() } else { Ok(plain(None, None, first)) }
    }

    fn case(&mut self) -> Result<Expr> {
        self.expect_kw("CASE")?;
        let operand = if self.is_kw("WHEN") { None } else { Some(self.boxed_expr()?) };
        let mut conditions = Vec::new();
        while self.accept_kw("WHEN") {
            let condition = self.expr()?;
            self.expect_kw("THEN")?;
            conditions.push(CaseWhen { condition, result: self.expr()? });
        }
        if conditions.is_empty() {
            return self.fail();
        }
        let else_result = if self.accept_kw("ELSE") { Some(self.boxed_expr()?) } else { None };
        self.expect_kw("END")?;
        let empty = AttachedToken::empty;
        Ok(Expr::Case { case_token: empty(), end_token: empty(), operand, conditions, else_result })
    }

    fn match_against(&mut self) -> Result<Expr> {
        self.expect_kw("MATCH")?;
        let column = |p: &mut Self| p.object_name();
        let columns = if self.kind() == Kind::LParen {
            self.parenthesized(|p| p.comma_separated(column))?
        } else {
            self.comma_separated(column)?
        };
        self.expect_kw("AGAINST")?;
        self.skip_parentheses()?;
        let match_value = ValueWithSpan { value: Value::Null, span: Span::empty() };
        Ok(Expr::MatchAgainst { columns, match_value, opt_search_modifier: None })
    }

    /// `INTERVAL(n, a, b)`, the function: a comma stands on the first level of the parentheses.
    fn is_interval_function(&self) -> bool {
        if self.kind_at(1) != Kind::LParen {
            return false;
        }
        let mut depth = 0;
        for ahead in 1.. {
            match self.kind_at(ahead) {
                Kind::LParen => depth += 1,
                Kind::RParen if depth == 1 => return false,
                Kind::RParen => depth -= 1,
                Kind::Comma if depth == 1 => return true,
                Kind::End => return false,
                _ => {}
            }
        }
        false
    }

    pub fn interval(&mut self) -> Result<Expr> {
        self.expect_kw("INTERVAL")?;
        let value = self.boxed_expr()?;
        let unit = self.unit()?;
        Ok(Expr::Interval(Interval {
            value,
            leading_field: Some(unit),
            leading_precision: None,
            last_field: None,
            fractional_seconds_precision: None,
        }))
    }

    /// `INTERVAL 1 DAY` as an argument, or `INTERVAL 1 DAY + date`.
    fn interval_first(&mut self) -> Result<Expr> {
        let interval = self.interval()?;
        if self.accept(Kind::Plus) {
            let date = self.operators(ADD)?;
            return Ok(binary(date, BinaryOperator::Plus, interval));
        }
        if matches!(self.kind(), Kind::RParen) { Ok(interval) } else { self.fail() }
    }

    /// A unit, `SQL_TSI_…` forms too, as a custom field with its upper-case name.
    fn unit(&mut self) -> Result<DateTimeField> {
        self.unit_name().map(|name| DateTimeField::Custom(Ident::new(name)))
    }

    fn unit_name(&mut self) -> Result<String> {
        let token = self.peek();
        if token.kind != Kind::Word {
            return self.fail();
        }
        let upper = self.text(token).to_ascii_uppercase();
        let name = match upper.strip_prefix("SQL_TSI_") {
            Some("FRAC_SECOND") => "MICROSECOND",
            Some(name) => name,
            None => &upper,
        };
        if !UNITS.contains(&name) {
            return self.fail();
        }
        self.advance();
        Ok(name.to_string())
    }
}

fn typed_string(data_type: DataType, text: String) -> Expr {
    let value = ValueWithSpan { value: Value::SingleQuotedString(text), span: Span::empty() };
    Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false })
}

/// Character sets that may introduce a literal.
fn is_introducer(word: &str) -> bool {
    const CHARSETS: &[&str] = &[
        "_utf8mb4", "_utf8mb3", "_utf8", "_binary", "_latin1", "_ascii", "_ucs2", "_utf16", "_utf16le", "_utf32",
        "_cp1250", "_cp1251", "_cp1252", "_latin2", "_koi8r", "_gbk", "_gb2312", "_gb18030", "_big5", "_sjis", "_ujis",
        "_euckr", "_cp932",
    ];
    CHARSETS.iter().any(|c| c.eq_ignore_ascii_case(word))
}
