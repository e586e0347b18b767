//! HANDLER … OPEN, READ, CLOSE.

use super::ast::{Expr, Limit, TableName};
use super::cursor::{Parser, Result};
use super::lexer::Kind;
use super::statement::Statement;

#[derive(Clone, Debug, PartialEq)]
pub enum Handler {
    Open {
        table: TableName,
        alias: Option<String>,
    },
    /// `table`: the alias, or the table that was opened without one.
    Read {
        table: TableName,
        place: Place,
        filter: Option<Expr>,
        limit: Option<Box<Limit>>,
    },
    Close(TableName),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    First,
    Next,
    Prev,
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOp {
    Equal,
    LessOrEqual,
    GreaterOrEqual,
    Less,
    Greater,
}

/// Where reading begins.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// `index` `None`: the rows in their natural order, FIRST and NEXT only.
    Step {
        index: Option<String>,
        step: Step,
    },
    Key {
        index: String,
        op: KeyOp,
        values: Vec<Expr>,
    },
}

impl Parser<'_> {
    /// Behind `HANDLER`.
    pub fn handler(&mut self) -> Result<Statement> {
        let table = self.table_name()?;
        let handler = match self.accept_any_kw(&["OPEN", "READ", "CLOSE"]) {
            Some("OPEN") => {
                let explicit = self.accept_kw("AS");
                let alias = if explicit || self.is_name() { Some(self.name()?) } else { None };
                Handler::Open { table, alias }
            }
            Some("READ") => {
                let place = self.handler_place()?;
                let filter = if self.accept_kw("WHERE") { Some(self.expr()?) } else { None };
                Handler::Read { table, place, filter, limit: self.limit()?.map(Box::new) }
            }
            Some(_) => Handler::Close(table),
            None => return self.fail(),
        };
        Ok(Statement::Handler(Box::new(handler)))
    }

    fn handler_step(&mut self) -> Option<Step> {
        let steps = [("FIRST", Step::First), ("NEXT", Step::Next), ("PREV", Step::Prev), ("LAST", Step::Last)];
        let word = self.accept_any_kw(&steps.map(|(word, _)| word))?;
        steps.iter().find(|(known, _)| *known == word).map(|(_, step)| *step)
    }

    fn handler_place(&mut self) -> Result<Place> {
        // An index may be called `first`: then more stands behind it.
        let ends = matches!(self.kind_at(1), Kind::End | Kind::Semicolon)
            || self.is_kw_at(1, "WHERE")
            || self.is_kw_at(1, "LIMIT");
        if ends && self.is_any_kw(&["FIRST", "NEXT"]) {
            let step = self.handler_step().unwrap_or(Step::First);
            return Ok(Place::Step { index: None, step });
        }
        let index = if self.accept_kw("PRIMARY") { "PRIMARY".to_string() } else { self.name()? };
        if let Some(step) = self.handler_step() {
            return Ok(Place::Step { index: Some(index), step });
        }
        let op = match self.kind() {
            Kind::Eq => KeyOp::Equal,
            Kind::Le => KeyOp::LessOrEqual,
            Kind::Ge => KeyOp::GreaterOrEqual,
            Kind::Lt => KeyOp::Less,
            Kind::Gt => KeyOp::Greater,
            _ => return self.fail(),
        };
        self.advance();
        let values = self.parenthesized(|p| p.comma_separated(Self::expr))?;
        Ok(Place::Key { index, op, values })
    }
}
