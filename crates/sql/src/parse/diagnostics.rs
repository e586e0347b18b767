//! GET DIAGNOSTICS, SIGNAL and RESIGNAL, as statements outside of routines: targets are user variables.

use super::ast::{Expr, Literal};
use super::cursor::{Parser, Result};
use super::lexer::Kind;
use super::statement::Statement;
use rauk_types::MysqlError;

#[derive(Clone, Debug, PartialEq)]
pub struct GetDiagnostics {
    /// STACKED: of the statement that a handler is for.
    pub stacked: bool,
    pub what: Diagnostics,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Diagnostics {
    /// Variables and what they get.
    Statement(Vec<(String, StatementItem)>),
    Condition {
        number: Expr,
        items: Vec<(String, ConditionItem)>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementItem {
    Number,
    RowCount,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionItem {
    ClassOrigin,
    SubclassOrigin,
    ConstraintCatalog,
    ConstraintSchema,
    ConstraintName,
    CatalogName,
    SchemaName,
    TableName,
    ColumnName,
    CursorName,
    MessageText,
    MysqlErrno,
    /// Not for SIGNAL.
    ReturnedSqlstate,
}

const ITEMS: [(&str, ConditionItem); 13] = [
    ("CLASS_ORIGIN", ConditionItem::ClassOrigin),
    ("SUBCLASS_ORIGIN", ConditionItem::SubclassOrigin),
    ("CONSTRAINT_CATALOG", ConditionItem::ConstraintCatalog),
    ("CONSTRAINT_SCHEMA", ConditionItem::ConstraintSchema),
    ("CONSTRAINT_NAME", ConditionItem::ConstraintName),
    ("CATALOG_NAME", ConditionItem::CatalogName),
    ("SCHEMA_NAME", ConditionItem::SchemaName),
    ("TABLE_NAME", ConditionItem::TableName),
    ("COLUMN_NAME", ConditionItem::ColumnName),
    ("CURSOR_NAME", ConditionItem::CursorName),
    ("MESSAGE_TEXT", ConditionItem::MessageText),
    ("MYSQL_ERRNO", ConditionItem::MysqlErrno),
    ("RETURNED_SQLSTATE", ConditionItem::ReturnedSqlstate),
];

impl ConditionItem {
    pub fn name(self) -> &'static str {
        ITEMS.iter().find(|(_, item)| *item == self).map_or("", |(name, _)| name)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// RESIGNAL, with or without a condition of its own.
    pub again: bool,
    pub state: Option<[u8; 5]>,
    pub items: Vec<(ConditionItem, Expr)>,
}

impl Parser<'_> {
    pub fn get_diagnostics(&mut self) -> Result<Statement> {
        self.expect_kw("GET")?;
        let stacked = matches!(self.accept_any_kw(&["CURRENT", "STACKED"]), Some("STACKED"));
        self.expect_kw("DIAGNOSTICS")?;
        let what = match self.accept_kw("CONDITION") {
            true => {
                let number = self.simple_value()?;
                let items = self.comma_separated(|p| p.assigned(Self::condition_item))?;
                Diagnostics::Condition { number, items }
            }
            false => Diagnostics::Statement(self.comma_separated(|p| p.assigned(Self::statement_item))?),
        };
        Ok(Statement::GetDiagnostics(Box::new(GetDiagnostics { stacked, what })))
    }

    /// `@variable = item`. Error 1327 for a variable that only a routine has.
    fn assigned<T>(&mut self, item: impl FnOnce(&mut Self) -> Result<T>) -> Result<(String, T)> {
        if self.kind() != Kind::UserVariable {
            let name = self.name()?;
            return Err(MysqlError::new(1327, format!("Undeclared variable: {name}")));
        }
        let name = self.user_variable()?;
        self.expect(Kind::Eq)?;
        Ok((name, item(self)?))
    }

    fn statement_item(&mut self) -> Result<StatementItem> {
        match self.accept_any_kw(&["NUMBER", "ROW_COUNT"]) {
            Some("NUMBER") => Ok(StatementItem::Number),
            Some(_) => Ok(StatementItem::RowCount),
            None => self.fail(),
        }
    }

    fn condition_item(&mut self) -> Result<ConditionItem> {
        match ITEMS.iter().find(|(name, _)| self.is_kw(name)) {
            Some((_, item)) => {
                self.advance();
                Ok(*item)
            }
            None => self.fail(),
        }
    }

    /// A literal or a variable.
    fn simple_value(&mut self) -> Result<Expr> {
        let first = self.peek();
        let value = self.expr()?;
        let signed = |of: &Expr| matches!(of, Expr::Literal(Literal::Number(_)));
        match &value {
            Expr::Literal(_) | Expr::UserVariable(_) | Expr::SystemVariable { .. } => Ok(value),
            Expr::Unary { operand, .. } if signed(operand) => Ok(value),
            _ => self.fail_at(first),
        }
    }

    /// SIGNAL and RESIGNAL. Errors 1319 for the name of a condition, which only a routine declares; 1407; 1641.
    pub fn signal(&mut self, again: bool) -> Result<Statement> {
        self.advance();
        let mut state = None;
        if self.accept_kw("SQLSTATE") {
            self.accept_kw("VALUE");
            let text = self.string()?;
            let valid = |b: u8| b.is_ascii_digit() || b.is_ascii_uppercase();
            let known =
                <[u8; 5]>::try_from(text.as_bytes()).ok().filter(|s| s.iter().all(|b| valid(*b)) && &s[..2] != b"00");
            state = Some(known.ok_or_else(|| MysqlError::new(1407, format!("Bad SQLSTATE: '{text}'")))?);
        } else if !again || !(self.at_end() || self.is_kw("SET")) {
            let name = self.name()?;
            return Err(MysqlError::new(1319, format!("Undefined CONDITION: {name}")));
        }
        let mut items: Vec<(ConditionItem, Expr)> = Vec::new();
        if self.accept_kw("SET") {
            items = self.comma_separated(|p| {
                let first = p.peek();
                let item = p.condition_item()?;
                if item == ConditionItem::ReturnedSqlstate {
                    return p.fail_at(first);
                }
                p.expect(Kind::Eq)?;
                Ok((item, p.simple_value()?))
            })?;
        }
        for (at, (item, _)) in items.iter().enumerate() {
            if items[..at].iter().any(|(other, _)| other == item) {
                return Err(MysqlError::new(1641, format!("Duplicate condition information item '{}'", item.name())));
            }
        }
        Ok(Statement::Signal(Box::new(Signal { again, state, items })))
    }
}
