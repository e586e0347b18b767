//! What stands between operators: literals, variables, names, parentheses, CASE, MATCH, INTERVAL.
//!
//! A word can begin many things; [`Parser::word_expression`] decides by the word and the token behind it. Calls are in `calls`.
//!
//! Numbers stay the digits that were written: what type they have is decided when they are bound. `?` are numbered by their place.
//! Strings lose quotes and escapes here, by the lexer's mode; adjacent ones are one. DATE '…', `{d '…'}` and the like are literals of their own,
//! whose text is checked later, since sql_mode has a say.

use super::ast::{ColumnName, Expr, Introducer, Literal, MatchMode, Unit};
use super::cursor::{MAX_PARAMETERS, Parser, Result};
use super::lexer::{Kind, literal_digits};
use super::operators::{ADD, PREDICATE, QueryOrExprs, row_or_single};
use super::reserved::{is_reserved, is_reserved_function};
use super::statement::Scope;
use rauk_types::{Charset, MysqlError};

/// ER_PS_MANY_PARAM.
const PS_MANY_PARAM: u16 = 1390;

impl Parser<'_> {
    /// What binds most tightly.
    pub fn primary(&mut self) -> Result<Expr> {
        let token = self.peek();
        match token.kind {
            Kind::Integer | Kind::Decimal | Kind::Float => {
                self.advance();
                Ok(Expr::number(self.text(token)))
            }
            Kind::String => self.string().map(Expr::text),
            Kind::National => {
                let value = self.string()?;
                Ok(Expr::Literal(Literal::Text { value, introducer: Some(Introducer::National) }))
            }
            Kind::Hex | Kind::Bit => {
                self.advance();
                Ok(Expr::Literal(self.digits_literal(token, None)))
            }
            Kind::Placeholder => self.placeholder(),
            Kind::UserVariable => {
                self.advance();
                let name = self.variable_name(token);
                if self.accept(Kind::Assign) {
                    return Ok(Expr::AssignVariable { name, value: self.boxed_expr()? });
                }
                Ok(Expr::UserVariable(name))
            }
            Kind::SystemVariable => {
                let (scope, name) = self.system_variable()?;
                Ok(Expr::SystemVariable { scope, name })
            }
            Kind::LParen => {
                let content = self.parenthesized(Self::query_or_exprs)?;
                Ok(match content {
                    QueryOrExprs::Query(query) => Expr::Subquery(query),
                    QueryOrExprs::Exprs(items) => row_or_single(items),
                })
            }
            Kind::LBrace => self.odbc_literal(),
            Kind::Quoted => self.column_or_call(),
            Kind::Word => self.word_expression(),
            _ => self.fail(),
        }
    }

    /// `x'…'`, `0x…`, `b'…'` or `0b…`, consumed already.
    fn digits_literal(&self, token: super::lexer::Token, introducer: Option<Introducer>) -> Literal {
        let digits = literal_digits(self.text(token));
        if token.kind == Kind::Bit {
            return Literal::Bits { digits: digits.to_string(), introducer };
        }
        let padding = if digits.len() % 2 == 1 { "0" } else { "" };
        Literal::Hex { digits: format!("{padding}{digits}"), introducer }
    }

    pub fn placeholder(&mut self) -> Result<Expr> {
        self.expect(Kind::Placeholder)?;
        if self.parameters >= MAX_PARAMETERS {
            return Err(MysqlError::new(PS_MANY_PARAM, "Prepared statement contains too many placeholders"));
        }
        self.parameters += 1;
        Ok(Expr::Parameter(self.parameters - 1))
    }

    /// `@@name`, `@@scope.name`: a scope that MySQL does not know is part of the name.
    pub fn system_variable(&mut self) -> Result<(Scope, String)> {
        let token = self.expect(Kind::SystemVariable)?;
        let path = self.text(token).trim_start_matches('@').replace('`', "");
        let scope = |word: &str| match word.to_ascii_lowercase().as_str() {
            "global" => Some(Scope::Global),
            "session" | "local" => Some(Scope::Session),
            "persist" | "persist_only" => Some(Scope::Persist),
            _ => None,
        };
        match path.split_once('.').and_then(|(word, name)| Some((scope(word)?, name))) {
            Some((scope, name)) => Ok((scope, name.to_string())),
            None => Ok((Scope::Default, path)),
        }
    }

    /// `{d '2024-01-01'}`, `{t …}`, `{ts …}`, `{fn f(…)}`
    fn odbc_literal(&mut self) -> Result<Expr> {
        self.expect(Kind::LBrace)?;
        let literal = match self.accept_any_kw(&["D", "T", "TS", "FN"]) {
            Some("D") => Expr::Literal(Literal::Date(self.string()?)),
            Some("T") => Expr::Literal(Literal::Time(self.string()?)),
            Some("TS") => Expr::Literal(Literal::Timestamp(self.string()?)),
            Some(_) => self.expr()?,
            None => return self.fail(),
        };
        self.expect(Kind::RBrace)?;
        Ok(literal)
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
            let introducer = Some(Introducer::Charset(text[1..].to_ascii_lowercase()));
            return Ok(Expr::Literal(if next == Kind::String {
                Literal::Text { value: self.string()?, introducer }
            } else {
                let digits = self.advance();
                self.digits_literal(digits, introducer)
            }));
        }
        let upper = text.to_ascii_uppercase();
        match upper.as_str() {
            "NULL" => {
                self.advance();
                return Ok(Expr::Literal(Literal::Null));
            }
            "TRUE" | "FALSE" => {
                self.advance();
                return Ok(Expr::Literal(Literal::Boolean(upper == "TRUE")));
            }
            "CASE" => return self.case(),
            "EXISTS" => {
                self.advance();
                let query = self.nested(|p| p.parenthesized(Self::subquery))?;
                return Ok(Expr::Exists(Box::new(query)));
            }
            "INTERVAL" => return self.interval_first(),
            "ROW" if next == Kind::LParen => {
                self.advance();
                return self.parenthesized(|p| p.comma_separated(Self::expr)).map(Expr::Row);
            }
            "MATCH" => return self.match_against(),
            "DATE" | "TIME" | "TIMESTAMP" if next == Kind::String => {
                self.advance();
                let text = self.string()?;
                return Ok(Expr::Literal(match upper.as_str() {
                    "DATE" => Literal::Date(text),
                    "TIME" => Literal::Time(text),
                    _ => Literal::Timestamp(text),
                }));
            }
            "CURRENT_TIMESTAMP" | "CURRENT_DATE" | "CURRENT_TIME" | "CURRENT_USER" | "LOCALTIME" | "LOCALTIMESTAMP"
            | "UTC_DATE" | "UTC_TIME" | "UTC_TIMESTAMP"
                if next != Kind::LParen =>
            {
                self.advance();
                return Ok(Expr::call(upper, vec![]));
            }
            "DEFAULT" => {
                self.advance();
                if next != Kind::LParen {
                    return Ok(Expr::Default);
                }
                return self.parenthesized(Self::column_name).map(Expr::DefaultOf);
            }
            "VALUES" if next == Kind::LParen => {
                self.advance();
                return self.parenthesized(Self::column_name).map(Expr::InsertedValue);
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
    pub fn column_name(&mut self) -> Result<ColumnName> {
        let mut column = ColumnName::bare(self.name()?);
        while column.database.is_none() && self.kind() == Kind::Dot && self.kind_at(1) != Kind::Star {
            self.advance();
            column.database = column.table.take();
            column.table = Some(std::mem::replace(&mut column.name, self.any_word()?));
        }
        Ok(column)
    }

    fn column_or_call(&mut self) -> Result<Expr> {
        if self.kind_at(1) == Kind::LParen {
            let name = self.any_word()?;
            return self.call(None, name);
        }
        let column = self.column_name()?;
        match column {
            // `database.function(…)`
            ColumnName { database: None, table: Some(database), name } if self.kind() == Kind::LParen => {
                self.call(Some(database), name)
            }
            column => Ok(Expr::Column(column)),
        }
    }

    fn case(&mut self) -> Result<Expr> {
        self.expect_kw("CASE")?;
        let operand = if self.is_kw("WHEN") { None } else { Some(self.boxed_expr()?) };
        let mut branches = Vec::new();
        while self.accept_kw("WHEN") {
            let condition = self.expr()?;
            self.expect_kw("THEN")?;
            branches.push((condition, self.expr()?));
        }
        if branches.is_empty() {
            return self.fail();
        }
        let otherwise = if self.accept_kw("ELSE") { Some(self.boxed_expr()?) } else { None };
        self.expect_kw("END")?;
        Ok(Expr::Case { operand, branches, otherwise })
    }

    fn match_against(&mut self) -> Result<Expr> {
        self.expect_kw("MATCH")?;
        let columns = if self.kind() == Kind::LParen {
            self.parenthesized(|p| p.comma_separated(Self::column_name))?
        } else {
            self.comma_separated(Self::column_name)?
        };
        self.expect_kw("AGAINST")?;
        let (against, mode) = self.parenthesized(|p| {
            // IN begins the mode, no list.
            let against = Box::new(p.operators(PREDICATE)?);
            let mode = match () {
                () if p.accept_kws(&["IN", "BOOLEAN", "MODE"]) => MatchMode::Boolean,
                () if p.accept_kws(&["IN", "NATURAL", "LANGUAGE", "MODE"]) => {
                    if p.accept_kws(&["WITH", "QUERY", "EXPANSION"]) {
                        MatchMode::NaturalWithExpansion
                    } else {
                        MatchMode::Natural
                    }
                }
                () if p.accept_kws(&["WITH", "QUERY", "EXPANSION"]) => MatchMode::Expansion,
                () => MatchMode::Natural,
            };
            Ok((against, mode))
        })?;
        Ok(Expr::Match { columns, against, mode })
    }

    /// `INTERVAL amount unit`, or `INTERVAL(n, a, b)`, the function: which it is shows when the parentheses have been read.
    pub fn interval_or_call(&mut self) -> Result<Expr> {
        self.expect_kw("INTERVAL")?;
        let amount = if self.kind() == Kind::LParen {
            let first = match self.nested(|p| p.parenthesized(Self::query_or_exprs))? {
                QueryOrExprs::Exprs(items) if items.len() > 1 => return Ok(Expr::call("INTERVAL", items)),
                QueryOrExprs::Exprs(items) => row_or_single(items),
                QueryOrExprs::Query(query) => Expr::Subquery(query),
            };
            self.operators_behind(first, 0)?
        } else {
            self.expr()?
        };
        Ok(Expr::Interval { amount: Box::new(amount), unit: self.unit()? })
    }

    /// `INTERVAL 1 DAY` as an argument, or `INTERVAL 1 DAY + date`; the function.
    fn interval_first(&mut self) -> Result<Expr> {
        let interval = self.interval_or_call()?;
        if matches!(interval, Expr::Call(_)) {
            return Ok(interval);
        }
        if self.accept(Kind::Plus) {
            let date = self.operators(ADD)?;
            return Ok(Expr::binary(super::ast::BinaryOp::Add, date, interval));
        }
        if matches!(self.kind(), Kind::RParen) { Ok(interval) } else { self.fail() }
    }

    /// A unit, `SQL_TSI_…` forms too.
    pub fn unit(&mut self) -> Result<Unit> {
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
        let Some(unit) = Unit::from_name(name) else { return self.fail() };
        self.advance();
        Ok(unit)
    }
}

/// Character sets that may introduce a literal.
fn is_introducer(word: &str) -> bool {
    /// Those that MySQL has and Rauk has not: error 1115 when the literal is bound, and not a name.
    const OTHERS: [&str; 5] = ["eucjpms", "gb18030", "swe7", "tis620", "ujis"];
    let Some(name) = word.strip_prefix('_') else { return false };
    Charset::named(name).is_some() || OTHERS.iter().any(|other| other.eq_ignore_ascii_case(name))
}
