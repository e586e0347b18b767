//! Operators, by precedence climbing.
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
//! tightest  COLLATE  ->  ->>
//! ```
//! A node that was built from a weak operator cannot become the left operand of a stronger one without parentheses (`a LIKE b + c`
//! is an error, as in MySQL): `strength` in [`Parser::climb`] watches that. Chains of AND and OR become balanced trees, so that a
//! generated condition with thousands of terms is shallow ([`Junction`]).
//!
//! What stands between operators is read by `primary`. Parentheses leave no node: the shape of the tree holds them. Synonyms are merged
//! here: `a SOUNDS LIKE b` is `SOUNDEX(a) = SOUNDEX(b)`, its definition; SOME is ANY; RLIKE is REGEXP.

use super::ast::{BinaryOp, CastType, Expr, IsTest, Quantifier, Query, UnaryOp};
use super::cursor::{Parser, Result};
use super::lexer::Kind;

const OR: u8 = 10;
const XOR: u8 = 20;
const AND: u8 = 30;
const NOT: u8 = 40;
const COMPARISON: u8 = 50;
pub(super) const PREDICATE: u8 = 60;
pub(super) const BIT_OR: u8 = 70;
const BIT_AND: u8 = 80;
const SHIFT: u8 = 90;
pub(super) const ADD: u8 = 100;
const MULTIPLY: u8 = 110;
const BIT_XOR: u8 = 120;
const UNARY: u8 = 130;
const COLLATE: u8 = 140;
const PRIMARY: u8 = 255;

/// What stands in parentheses where both may.
pub(super) enum QueryOrExprs {
    Query(Box<Query>),
    /// At least one.
    Exprs(Vec<Expr>),
}

/// Operands joined by an associative operator, as a tree of logarithmic depth. Neighbours become a tree as soon as they are trees of the same size,
/// so that few wait at a time.
struct Junction {
    op: BinaryOp,
    /// Trees with the logarithms of their sizes, which fall.
    trees: Vec<(Expr, usize)>,
}

impl Junction {
    fn push(&mut self, operand: Expr) {
        let mut tree = (operand, 0);
        while let Some((left, size)) = self.trees.pop_if(|(_, size)| *size == tree.1) {
            tree = (Expr::binary(self.op, left, tree.0), size + 1);
        }
        self.trees.push(tree);
    }

    /// The tree of all, and how many levels stand above its operands at most.
    fn end(mut self) -> (Expr, usize) {
        let (mut tree, _) = self.trees.pop().expect("an operator has operands");
        let levels = self.trees.first().map_or(0, |(_, size)| size + self.trees.len());
        while let Some((left, _)) = self.trees.pop() {
            tree = Expr::binary(self.op, left, tree);
        }
        (tree, levels)
    }
}

impl Parser<'_> {
    pub fn expr(&mut self) -> Result<Expr> {
        self.operators(0)
    }

    pub fn boxed_expr(&mut self) -> Result<Box<Expr>> {
        self.expr().map(Box::new)
    }

    /// A literal, name, call or parenthesis without operators around it.
    pub fn operand(&mut self) -> Result<Expr> {
        self.nested(Self::primary)
    }

    /// Behind `(`: a query, or expressions between commas. Parentheses that open here may belong to the query (`((SELECT 1) UNION SELECT 2)`) or to an
    /// operand (`((SELECT 1) + 1)`): what follows them says.
    pub fn query_or_exprs(&mut self) -> Result<QueryOrExprs> {
        if !self.is_query_start() {
            return self.comma_separated(Self::expr).map(QueryOrExprs::Exprs);
        }
        if self.kind() != Kind::LParen {
            return self.nested(Self::subquery).map(|query| QueryOrExprs::Query(Box::new(query)));
        }
        self.advance();
        let inner = self.nested(Self::query_or_exprs)?;
        self.expect(Kind::RParen)?;
        let first = match inner {
            QueryOrExprs::Query(query) if self.goes_on_as_query() => {
                return self.subquery_from(*query).map(|query| QueryOrExprs::Query(Box::new(query)));
            }
            QueryOrExprs::Query(query) => Expr::Subquery(query),
            QueryOrExprs::Exprs(items) => row_or_single(items),
        };
        let mut items = vec![self.operators_behind(first, 0)?];
        while self.accept(Kind::Comma) {
            items.push(self.expr()?);
        }
        Ok(QueryOrExprs::Exprs(items))
    }

    /// The strength of the operator at the cursor that can follow an operand; 0: there is none.
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
    pub fn operators(&mut self, weakest: u8) -> Result<Expr> {
        self.nested(|p| {
            p.count_operand()?;
            let beside = p.take_height();
            let (first, strength) = p.prefix(weakest)?;
            p.taller(1)?;
            let expr = p.climb(first, strength, weakest)?;
            p.beside(beside);
            Ok(expr)
        })
    }

    /// The operators that bind more tightly than `weakest` behind an operand that has been read already.
    pub fn operators_behind(&mut self, operand: Expr, weakest: u8) -> Result<Expr> {
        self.count_operand()?;
        self.taller(1)?;
        self.climb(operand, PRIMARY, weakest)
    }

    /// The operators behind `left`, which was built from one of `strength`.
    fn climb(&mut self, mut left: Expr, mut strength: u8, weakest: u8) -> Result<Expr> {
        loop {
            let next = self.infix_strength();
            if next <= weakest || next > strength || (next == PREDICATE && strength == PREDICATE) {
                return Ok(left);
            }
            left = self.infix(left, next)?;
            self.taller(1)?;
            strength = next;
        }
    }

    fn infix(&mut self, left: Expr, strength: u8) -> Result<Expr> {
        match strength {
            OR | AND => self.junction(left, strength),
            COMPARISON => self.comparison(left),
            PREDICATE => self.predicate(left),
            COLLATE => self.postfix(left),
            _ => {
                let op = self.arithmetic_operator();
                let right = if strength == ADD && self.is_kw("INTERVAL") {
                    match self.interval_or_call()? {
                        interval @ Expr::Interval { .. } => interval,
                        call => self.operators_behind(call, strength)?,
                    }
                } else {
                    self.operators(strength)?
                };
                Ok(Expr::binary(op, left, right))
            }
        }
    }

    fn arithmetic_operator(&mut self) -> BinaryOp {
        let token = self.advance();
        match token.kind {
            Kind::PipePipe => BinaryOp::Concat,
            Kind::Pipe => BinaryOp::BitOr,
            Kind::Amp => BinaryOp::BitAnd,
            Kind::ShiftLeft => BinaryOp::ShiftLeft,
            Kind::ShiftRight => BinaryOp::ShiftRight,
            Kind::Plus => BinaryOp::Add,
            Kind::Minus => BinaryOp::Subtract,
            Kind::Star => BinaryOp::Multiply,
            Kind::Slash => BinaryOp::Divide,
            Kind::Percent => BinaryOp::Modulo,
            Kind::Caret => BinaryOp::BitXor,
            _ if self.text(token).eq_ignore_ascii_case("DIV") => BinaryOp::IntegerDivide,
            _ if self.text(token).eq_ignore_ascii_case("MOD") => BinaryOp::Modulo,
            _ => BinaryOp::Xor,
        }
    }

    /// All operands of a chain of AND, or of OR.
    fn junction(&mut self, left: Expr, strength: u8) -> Result<Expr> {
        let op = if strength == AND { BinaryOp::And } else { BinaryOp::Or };
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
            let test = match self.accept_any_kw(&["NULL", "TRUE", "FALSE", "UNKNOWN"]) {
                Some("NULL") => IsTest::Null,
                Some("TRUE") => IsTest::True,
                Some("FALSE") => IsTest::False,
                Some(_) => IsTest::Unknown,
                None => return self.fail(),
            };
            return Ok(Expr::Is { operand: Box::new(left), test, negated });
        }
        let op = match self.advance().kind {
            Kind::Eq => BinaryOp::Equal,
            Kind::NullEq => BinaryOp::NullSafeEqual,
            Kind::Ge => BinaryOp::GreaterOrEqual,
            Kind::Gt => BinaryOp::Greater,
            Kind::Le => BinaryOp::LessOrEqual,
            Kind::Lt => BinaryOp::Less,
            _ => BinaryOp::NotEqual,
        };
        if let Some(quantifier) = self.quantifier() {
            let query = self.nested(|p| p.parenthesized(Self::subquery))?;
            return Ok(Expr::Quantified { left: Box::new(left), op, quantifier, query: Box::new(query) });
        }
        Ok(Expr::binary(op, left, self.operators(COMPARISON)?))
    }

    fn quantifier(&mut self) -> Option<Quantifier> {
        if self.kind_at(1) != Kind::LParen {
            return None;
        }
        let word = self.accept_any_kw(&["ALL", "ANY", "SOME"])?;
        Some(if word == "ALL" { Quantifier::All } else { Quantifier::Any })
    }

    fn predicate(&mut self, left: Expr) -> Result<Expr> {
        let negated = self.accept_kw("NOT");
        let operand = Box::new(left);
        if self.accept_kw("IN") {
            let content = self.parenthesized(Self::query_or_exprs)?;
            return Ok(match content {
                QueryOrExprs::Query(query) => Expr::InQuery { operand, query, negated },
                QueryOrExprs::Exprs(list) => Expr::InList { operand, list, negated },
            });
        }
        if self.accept_kw("BETWEEN") {
            let low = Box::new(self.operators(PREDICATE)?);
            self.expect_kw("AND")?;
            // The upper end is a predicate: `x BETWEEN 1 AND y IN (…)` is `x BETWEEN 1 AND (y IN (…))`.
            let high = Box::new(self.operators(COMPARISON)?);
            return Ok(Expr::Between { operand, low, high, negated });
        }
        if self.accept_kw("LIKE") {
            let pattern = Box::new(self.operators(if self.mode.pipes_as_concat { MULTIPLY } else { BIT_XOR })?);
            let escape = if self.accept_kw("ESCAPE") { Some(Box::new(self.operators(BIT_XOR)?)) } else { None };
            return Ok(Expr::Like { operand, pattern, escape, negated });
        }
        if self.accept_any_kw(&["REGEXP", "RLIKE"]).is_some() {
            let pattern = Box::new(self.operators(PREDICATE)?);
            return Ok(Expr::Regexp { operand, pattern, negated });
        }
        if self.accept_kws(&["SOUNDS", "LIKE"]) {
            let right = self.operators(PREDICATE)?;
            let sound = |operand| Expr::call("SOUNDEX", vec![operand]);
            return Ok(Expr::binary(BinaryOp::Equal, sound(*operand), sound(right)));
        }
        self.expect_kw("MEMBER")?;
        self.accept_kw("OF");
        let array = self.parenthesized(Self::boxed_expr)?;
        Ok(Expr::MemberOf { value: operand, array })
    }

    fn postfix(&mut self, left: Expr) -> Result<Expr> {
        match self.kind() {
            Kind::Arrow | Kind::LongArrow => {
                let unquote = self.advance().kind == Kind::LongArrow;
                Ok(Expr::JsonPath { column: Box::new(left), path: self.string()?, unquote })
            }
            _ => {
                self.expect_kw("COLLATE")?;
                Ok(Expr::Collate { operand: Box::new(left), collation: self.charset_name()? })
            }
        }
    }

    /// An operand with the operators before it, and the strength of what was built.
    fn prefix(&mut self, weakest: u8) -> Result<(Expr, u8)> {
        let op = match self.kind() {
            Kind::Plus => UnaryOp::Plus,
            Kind::Minus => UnaryOp::Minus,
            Kind::Tilde => UnaryOp::BitNot,
            Kind::Bang => UnaryOp::Not,
            Kind::Word if self.is_kw("NOT") => {
                let strength = if self.mode.high_not_precedence { UNARY } else { NOT };
                if strength < weakest {
                    return self.fail();
                }
                self.advance();
                let operand = Box::new(self.operators(strength - 1)?);
                return Ok((Expr::Unary { op: UnaryOp::Not, operand }, strength));
            }
            Kind::Word if self.is_kw("BINARY") => {
                self.advance();
                let operand = Box::new(self.operators(UNARY - 1)?);
                return Ok((Expr::Cast { operand, target: CastType::Binary(None) }, UNARY));
            }
            _ => return self.primary().map(|e| (e, PRIMARY)),
        };
        self.advance();
        let operand = Box::new(self.operators(UNARY - 1)?);
        Ok((Expr::Unary { op, operand }, UNARY))
    }
}

/// `(a)` is `a`; `(a, b)` is a row.
pub(super) fn row_or_single(mut items: Vec<Expr>) -> Expr {
    if items.len() == 1 { items.remove(0) } else { Expr::Row(items) }
}
