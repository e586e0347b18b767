//! Calls: functions, aggregates, window functions, and calls with a grammar of their own (CAST, TRIM, EXTRACT …).
//!
//! Which function a name means, and with how many arguments, is found when it is bound; here a call is a name and a list. Clauses inside
//! and behind a list are read where MySQL's grammar has them: DISTINCT, ORDER BY and SEPARATOR for any name, `NULLS` and `FROM LAST` for
//! the window functions that know them, OVER for any. Arguments that are words become parts of nodes of their own (units), or texts
//! (GET_FORMAT's kind). Synonyms are merged: `MID` and `SUBSTR` are SUBSTRING, `POSITION(a IN b)` is `LOCATE(a, b)`.
//!
//! Windows are read whole. GROUPS and frames with EXCLUDE are MySQL's grammar, but MySQL itself has them not: 1235.

use super::ast::{
    Arguments, Call, CastType, Expr, Frame, FrameBound, FrameUnit, NullTreatment, TrimSide, Window, WindowSpec,
};
use super::cursor::{Parser, Result, not_yet};
use super::lexer::Kind;
use super::operators::PREDICATE;

/// Window functions that say what to do with NULL.
const NULL_TREATMENT: &[&str] = &["LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"];

impl Parser<'_> {
    /// What follows the name of a function.
    pub fn call(&mut self, database: Option<String>, name: String) -> Result<Expr> {
        if database.is_none() && name.eq_ignore_ascii_case("JSON_VALUE") {
            return self.json_value(name);
        }
        self.expect(Kind::LParen)?;
        let quantifier = self.accept_any_kw(&["DISTINCT", "ALL"]);
        let arguments = if quantifier != Some("DISTINCT") && self.accept(Kind::Star) {
            Arguments::Star
        } else if self.kind() == Kind::RParen {
            Arguments::List { distinct: false, items: vec![] }
        } else {
            Arguments::List { distinct: quantifier == Some("DISTINCT"), items: self.comma_separated(Self::expr)? }
        };
        let order_by = self.order_by()?;
        let separator = if self.accept_kw("SEPARATOR") { Some(self.string()?) } else { None };
        self.expect(Kind::RParen)?;
        let mut call =
            Call { database, name, arguments, order_by, separator, over: None, nulls: None, from_last: false };
        let is = |known: &str| call.database.is_none() && call.name.eq_ignore_ascii_case(known);
        if is("NTH_VALUE") && self.is_kw("FROM") && (self.is_kw_at(1, "FIRST") || self.is_kw_at(1, "LAST")) {
            self.advance();
            let word = self.advance();
            call.from_last = self.text(word).eq_ignore_ascii_case("LAST");
        }
        let is = |known: &str| call.database.is_none() && call.name.eq_ignore_ascii_case(known);
        if self.is_kw_at(1, "NULLS") && NULL_TREATMENT.iter().any(|known| is(known)) {
            call.nulls = match self.accept_any_kw(&["RESPECT", "IGNORE"]) {
                Some("RESPECT") => Some(NullTreatment::Respect),
                Some(_) => Some(NullTreatment::Ignore),
                None => return self.fail(),
            };
            self.advance();
        }
        if self.accept_kw("OVER") {
            call.over = Some(if self.kind() == Kind::LParen {
                Window::Spec(Box::new(self.window_spec()?))
            } else {
                Window::Named(self.name()?)
            });
        }
        Ok(Expr::Call(Box::new(call)))
    }

    /// `(base PARTITION BY … ORDER BY … frame)`
    pub fn window_spec(&mut self) -> Result<WindowSpec> {
        self.parenthesized(|p| {
            let named = p.is_name() && !p.is_any_kw(&["PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS"]);
            let base = if named { Some(p.name()?) } else { None };
            let partition_by = if p.accept_kws(&["PARTITION", "BY"]) { p.comma_separated(Self::expr)? } else { vec![] };
            let order_by = p.order_by()?;
            Ok(WindowSpec { base, partition_by, order_by, frame: p.frame()? })
        })
    }

    fn frame(&mut self) -> Result<Option<Frame>> {
        let unit = match self.accept_any_kw(&["ROWS", "RANGE", "GROUPS"]) {
            Some("ROWS") => FrameUnit::Rows,
            Some("RANGE") => FrameUnit::Range,
            Some(_) => return Err(not_yet("GROUPS")),
            None => return Ok(None),
        };
        let frame = if self.accept_kw("BETWEEN") {
            let start = self.frame_bound()?;
            self.expect_kw("AND")?;
            Frame { unit, start, end: Some(self.frame_bound()?) }
        } else {
            Frame { unit, start: self.frame_bound()?, end: None }
        };
        if self.is_kw("EXCLUDE") { Err(not_yet("EXCLUDE")) } else { Ok(Some(frame)) }
    }

    fn frame_bound(&mut self) -> Result<FrameBound> {
        if self.accept_kws(&["CURRENT", "ROW"]) {
            return Ok(FrameBound::CurrentRow);
        }
        let unbounded = self.accept_kw("UNBOUNDED");
        let distance = match self.kind() {
            _ if unbounded => None,
            Kind::Integer | Kind::Decimal | Kind::Float | Kind::Placeholder => Some(self.primary()?),
            Kind::Word if self.is_kw("INTERVAL") => match self.interval_or_call()? {
                Expr::Call(_) => return self.fail(),
                interval => Some(interval),
            },
            _ => return self.fail(),
        };
        match (self.accept_any_kw(&["PRECEDING", "FOLLOWING"]), distance) {
            (Some("PRECEDING"), None) => Ok(FrameBound::UnboundedPreceding),
            (Some("PRECEDING"), Some(distance)) => Ok(FrameBound::Preceding(distance)),
            (Some(_), None) => Ok(FrameBound::UnboundedFollowing),
            (Some(_), Some(distance)) => Ok(FrameBound::Following(distance)),
            (None, _) => self.fail(),
        }
    }

    /// Calls with a grammar of their own; `None` leaves the cursor at the name, which is given in upper case.
    pub fn special_call(&mut self, name: &str) -> Result<Option<Expr>> {
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
                | "WEIGHT_STRING"
                | "CHAR"
        ) {
            return Ok(None);
        }
        self.advance();
        self.expect(Kind::LParen)?;
        let result = match name {
            "CAST" => {
                let operand = self.boxed_expr()?;
                self.expect_kw("AS")?;
                let target = self.cast_type()?;
                let target = if self.accept_kw("ARRAY") { CastType::Array(Box::new(target)) } else { target };
                Expr::Cast { operand, target }
            }
            "CONVERT" => {
                let operand = self.boxed_expr()?;
                if self.accept_kw("USING") {
                    Expr::ConvertUsing { operand, charset: self.charset_name()? }
                } else {
                    self.expect(Kind::Comma)?;
                    Expr::Cast { operand, target: self.cast_type()? }
                }
            }
            "EXTRACT" => {
                let unit = self.unit()?;
                self.expect_kw("FROM")?;
                Expr::Extract { unit, operand: self.boxed_expr()? }
            }
            "POSITION" => {
                let needle = self.operators(PREDICATE)?;
                self.expect_kw("IN")?;
                Expr::call("LOCATE", vec![needle, self.expr()?])
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
                Expr::call("SUBSTRING", arguments)
            }
            "TRIM" => self.trim()?,
            "TIMESTAMPADD" | "TIMESTAMPDIFF" => {
                let unit = self.unit()?;
                self.expect(Kind::Comma)?;
                let first = self.boxed_expr()?;
                self.expect(Kind::Comma)?;
                let second = self.boxed_expr()?;
                match name {
                    "TIMESTAMPADD" => Expr::TimestampAdd { unit, amount: first, date: second },
                    _ => Expr::TimestampDiff { unit, from: first, to: second },
                }
            }
            "WEIGHT_STRING" => {
                let operand = self.expr()?;
                if self.accept_kw("AS") {
                    let Some(kind) = self.accept_any_kw(&["CHAR", "BINARY"]) else { return self.fail() };
                    self.expect(Kind::LParen)?;
                    let length = self.weight_length()?;
                    self.expect(Kind::RParen)?;
                    Expr::WeightString { operand: Box::new(operand), binary: kind == "BINARY", length }
                } else {
                    Expr::call(name, vec![operand])
                }
            }
            "GET_FORMAT" => {
                let Some(kind) = self.accept_any_kw(&["DATE", "TIME", "DATETIME", "TIMESTAMP"]) else {
                    return self.fail();
                };
                self.expect(Kind::Comma)?;
                Expr::call(name, vec![Expr::text(kind), self.expr()?])
            }
            _ => {
                let call = Expr::call("CHAR", self.comma_separated(Self::expr)?);
                if self.accept_kw("USING") {
                    Expr::ConvertUsing { operand: Box::new(call), charset: self.charset_name()? }
                } else {
                    call
                }
            }
        };
        self.expect(Kind::RParen)?;
        Ok(Some(result))
    }

    /// The length in WEIGHT_STRING(x AS CHAR(length)).
    fn weight_length(&mut self) -> Result<u32> {
        let at = self.peek();
        match u32::try_from(self.integer()?) {
            Ok(length) if length > 0 => Ok(length),
            _ => self.fail_at(at),
        }
    }

    fn trim(&mut self) -> Result<Expr> {
        let side = match self.accept_any_kw(&["BOTH", "LEADING", "TRAILING"]) {
            Some("BOTH") => Some(TrimSide::Both),
            Some("LEADING") => Some(TrimSide::Leading),
            Some(_) => Some(TrimSide::Trailing),
            None => None,
        };
        if let Some(side) = side
            && self.accept_kw("FROM")
        {
            return Ok(Expr::Trim { side, what: None, operand: self.boxed_expr()? });
        }
        let first = self.boxed_expr()?;
        if self.accept_kw("FROM") {
            let side = side.unwrap_or(TrimSide::Both);
            return Ok(Expr::Trim { side, what: Some(first), operand: self.boxed_expr()? });
        }
        if side.is_some() { self.fail() } else { Ok(Expr::Trim { side: TrimSide::Both, what: None, operand: first }) }
    }
}
