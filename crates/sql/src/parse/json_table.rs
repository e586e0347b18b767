//! JSON_TABLE in FROM, and JSON_VALUE.
//!
//! ```text
//! JSON_TABLE(expr, 'path' COLUMNS (column, …)) [AS] alias
//! column  = name FOR ORDINALITY
//!         | name type PATH 'path' [on EMPTY] [on ERROR]
//!         | name type EXISTS PATH 'path'
//!         | NESTED [PATH] 'path' COLUMNS (column, …)
//! on      = (NULL | ERROR | DEFAULT 'json') ON
//! JSON_VALUE(expr, 'path' [RETURNING type] [(NULL | ERROR | DEFAULT value) ON EMPTY] [… ON ERROR])
//! ```
//! As in MySQL, ON ERROR may also stand before ON EMPTY.

use super::ast::{
    ColumnOption, Expr, JsonTable, JsonTableColumn, JsonValue, Literal, OnMissing, OnNoValue, TableReference,
};
use super::cursor::{Parser, Result};
use super::lexer::Kind;
use rauk_types::MysqlError;

/// ER_TF_MUST_HAVE_ALIAS.
const MUST_HAVE_ALIAS: u16 = 3667;

impl Parser<'_> {
    pub(super) fn json_table(&mut self) -> Result<TableReference> {
        self.expect_kw("JSON_TABLE")?;
        self.expect(Kind::LParen)?;
        let document = self.expr()?;
        self.expect(Kind::Comma)?;
        let path = self.string()?;
        let columns = self.json_columns()?;
        self.expect(Kind::RParen)?;
        let Some(alias) = self.table_alias()? else {
            return Err(MysqlError::new(MUST_HAVE_ALIAS, "Every table function must have an alias."));
        };
        Ok(TableReference::JsonTable(Box::new(JsonTable { document, path, columns, alias })))
    }

    fn json_columns(&mut self) -> Result<Vec<JsonTableColumn>> {
        self.expect_kw("COLUMNS")?;
        self.nested(|p| p.parenthesized(|p| p.comma_separated(Self::json_column)))
    }

    fn json_column(&mut self) -> Result<JsonTableColumn> {
        let has_path = self.is_kw_at(1, "PATH") || matches!(self.kind_at(1), Kind::String | Kind::National);
        if self.is_kw("NESTED") && has_path {
            self.advance();
            self.accept_kw("PATH");
            let path = self.string()?;
            return Ok(JsonTableColumn::Nested { path, columns: self.json_columns()? });
        }
        let name = self.name()?;
        if self.accept_kws(&["FOR", "ORDINALITY"]) {
            return Ok(JsonTableColumn::Ordinality(name));
        }
        let (column_type, mut options) = self.column_type()?;
        if self.accept_kw("COLLATE") {
            options.push(ColumnOption::Collation(self.charset_name()?));
        }
        if self.accept_kw("EXISTS") {
            self.expect_kw("PATH")?;
            return Ok(JsonTableColumn::Exists { name, column_type, options, path: self.string()? });
        }
        self.expect_kw("PATH")?;
        let path = self.string()?;
        let (mut on_empty, mut on_error) = (None, None);
        while let Some(action) = self.on_missing()? {
            self.expect_kw("ON")?;
            let place = match self.accept_any_kw(&["EMPTY", "ERROR"]) {
                Some("EMPTY") => &mut on_empty,
                Some(_) => &mut on_error,
                None => return self.fail(),
            };
            if place.is_some() {
                return self.fail();
            }
            *place = Some(action);
        }
        Ok(JsonTableColumn::Value { name, column_type, options, path, on_empty, on_error })
    }

    /// `JSON_VALUE(…)`: a call, unless it says more than a document and a path.
    pub(super) fn json_value(&mut self, name: String) -> Result<Expr> {
        self.expect(Kind::LParen)?;
        let document = self.expr()?;
        self.expect(Kind::Comma)?;
        let path = self.expr()?;
        let returning = if self.accept_kw("RETURNING") { Some(self.cast_type()?) } else { None };
        let (mut on_empty, mut on_error) = (None, None);
        while let Some(word) = self.accept_any_kw(&["NULL", "ERROR", "DEFAULT"]) {
            let action = match word {
                "NULL" => OnNoValue::Null,
                "ERROR" => OnNoValue::Error,
                _ => OnNoValue::Default(self.expr()?),
            };
            self.expect_kw("ON")?;
            let place = match self.accept_any_kw(&["EMPTY", "ERROR"]) {
                Some("EMPTY") if on_error.is_none() => &mut on_empty,
                Some("ERROR") => &mut on_error,
                _ => return self.fail(),
            };
            if place.is_some() {
                return self.fail();
            }
            *place = Some(action);
        }
        self.expect(Kind::RParen)?;
        if returning.is_none() && on_empty.is_none() && on_error.is_none() {
            let mut call = Expr::call("JSON_VALUE", vec![document, path]);
            if let Expr::Call(call) = &mut call {
                call.name = name;
            }
            return Ok(call);
        }
        let Expr::Literal(Literal::Text { value: path, introducer: None }) = path else { return self.fail() };
        Ok(Expr::JsonValue(Box::new(JsonValue { document, path, returning, on_empty, on_error })))
    }

    fn on_missing(&mut self) -> Result<Option<OnMissing>> {
        Ok(match self.accept_any_kw(&["NULL", "ERROR", "DEFAULT"]) {
            None => None,
            Some("NULL") => Some(OnMissing::Null),
            Some("ERROR") => Some(OnMissing::Error),
            Some(_) => Some(OnMissing::Default(self.string()?)),
        })
    }
}
