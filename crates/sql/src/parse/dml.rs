//! INSERT, REPLACE, UPDATE, DELETE.
//!
//! LOW_PRIORITY, HIGH_PRIORITY, DELAYED and QUICK are accepted and mean nothing here, as in InnoDB. RETURNING is MariaDB's; where it may
//! follow, the word is no alias. Which forms cannot be executed yet is decided by the planner: here all of them become trees.

use super::ast::{
    Assignment, Delete, Insert, InsertSource, Query, QueryBody, RowAlias, SelectItem, TableFactor, TableName,
    TableReference, Update, With,
};
use super::cursor::{Parser, Result};
use super::lexer::Kind;
use super::statement::Statement;

impl Parser<'_> {
    pub fn insert(&mut self) -> Result<Statement> {
        let start = self.offset();
        let Some(word) = self.accept_any_kw(&["INSERT", "REPLACE"]) else { return self.fail() };
        let replace = word == "REPLACE";
        let hints = self.hints_behind(start + word.len());
        self.may_return = true;
        let _ = self.accept_any_kw(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY"]);
        let ignore = !replace && self.accept_kw("IGNORE");
        self.accept_kw("INTO");
        let table = self.table_name()?;
        let partitions = self.partitions()?;
        let columns = if self.kind() == Kind::LParen && !self.is_query_start() {
            Some(self.parenthesized(|p| {
                if p.kind() == Kind::RParen { Ok(vec![]) } else { p.comma_separated(Self::column_name) }
            })?)
        } else {
            None
        };
        let source = if columns.is_none() && self.accept_kw("SET") {
            InsertSource::Set(self.comma_separated(Self::assignment)?)
        } else if self.is_any_kw(&["VALUES", "VALUE"]) {
            self.insert_values()?
        } else if self.is_query_start() {
            InsertSource::Query(Box::new(self.subquery()?))
        } else {
            return self.fail();
        };
        let row_alias = if !matches!(source, InsertSource::Query(_)) && self.accept_kw("AS") {
            let name = self.name()?;
            let columns = if self.kind() == Kind::LParen { self.column_list()? } else { vec![] };
            Some(RowAlias { name, columns })
        } else {
            None
        };
        let on_duplicate = if !replace && self.accept_kws(&["ON", "DUPLICATE", "KEY", "UPDATE"]) {
            self.comma_separated(Self::assignment)?
        } else {
            vec![]
        };
        let returning = self.returning()?;
        Ok(Statement::Insert(Box::new(Insert {
            hints,
            replace,
            ignore,
            table,
            partitions,
            columns,
            source,
            row_alias,
            on_duplicate,
            returning,
        })))
    }

    /// `VALUES (…), (), …`; `VALUES ROW(…), …` too, which may also begin a query.
    fn insert_values(&mut self) -> Result<InsertSource> {
        let explicit = self.is_kw("VALUES") && self.is_kw_at(1, "ROW");
        self.advance();
        let row = |p: &mut Self| {
            p.parenthesized(|p| if p.kind() == Kind::RParen { Ok(vec![]) } else { p.comma_separated(Self::expr) })
        };
        if !explicit {
            return self.comma_separated(row).map(InsertSource::Values);
        }
        let rows = self.explicit_rows(row)?;
        if !self.goes_on_as_query() {
            return Ok(InsertSource::Values(rows));
        }
        let query = Query::plain(QueryBody::Values(rows));
        self.subquery_from(query).map(|query| InsertSource::Query(Box::new(query)))
    }

    fn returning(&mut self) -> Result<Vec<SelectItem>> {
        if self.accept_kw("RETURNING") { self.comma_separated(Self::select_item) } else { Ok(vec![]) }
    }

    /// `column = expression`; `:=` is allowed too.
    pub fn assignment(&mut self) -> Result<Assignment> {
        let column = self.column_name()?;
        if !self.accept(Kind::Eq) && !self.accept(Kind::Assign) {
            return self.fail();
        }
        Ok(Assignment { column, value: self.expr()? })
    }

    /// Behind WITH, if there was one.
    pub fn update(&mut self, with: Option<With>) -> Result<Statement> {
        let start = self.offset();
        self.expect_kw("UPDATE")?;
        let hints = self.hints_behind(start + "UPDATE".len());
        self.accept_kw("LOW_PRIORITY");
        let ignore = self.accept_kw("IGNORE");
        let tables = self.comma_separated(Self::table_reference)?;
        self.expect_kw("SET")?;
        let assignments = self.comma_separated(Self::assignment)?;
        let filter = self.where_clause()?;
        let order_by = self.order_by()?;
        let limit = self.limit_count()?;
        Ok(Statement::Update(Box::new(Update { hints, with, ignore, tables, assignments, filter, order_by, limit })))
    }

    /// Behind WITH, if there was one.
    pub fn delete(&mut self, with: Option<With>) -> Result<Statement> {
        let start = self.offset();
        self.expect_kw("DELETE")?;
        let hints = self.hints_behind(start + "DELETE".len());
        self.may_return = true;
        let mut ignore = false;
        while let Some(word) = self.accept_any_kw(&["LOW_PRIORITY", "QUICK", "IGNORE"]) {
            ignore |= word == "IGNORE";
        }
        let mut delete = Delete {
            hints,
            with,
            ignore,
            targets: vec![],
            from: vec![],
            filter: None,
            order_by: vec![],
            limit: None,
            returning: vec![],
        };
        let from_first = self.accept_kw("FROM");
        if !from_first || self.is_multi_table_delete() {
            delete.targets = self.comma_separated(Self::delete_target)?;
            self.expect_kw(if from_first { "USING" } else { "FROM" })?;
            delete.from = self.comma_separated(Self::table_reference)?;
            delete.filter = self.where_clause()?;
        } else {
            let name = self.table_name()?;
            let mut partitions = self.partitions()?;
            let alias = self.table_alias()?;
            if partitions.is_empty() {
                partitions = self.partitions()?;
            }
            delete.from.push(TableReference::Table(TableFactor { name, alias, partitions, hints: vec![] }));
            delete.filter = self.where_clause()?;
            delete.order_by = self.order_by()?;
            delete.limit = self.limit_count()?;
        }
        delete.returning = self.returning()?;
        Ok(Statement::Delete(Box::new(delete)))
    }

    /// `a, b USING …` or `a.* …` behind FROM.
    fn is_multi_table_delete(&self) -> bool {
        let mut ahead = 0;
        loop {
            match self.kind_at(ahead) {
                Kind::Comma | Kind::Star => return true,
                Kind::Quoted | Kind::Dot => ahead += 1,
                Kind::Word if self.is_kw_at(ahead, "USING") => return true,
                Kind::Word if ahead == 0 || self.kind_at(ahead - 1) == Kind::Dot => ahead += 1,
                _ => return false,
            }
        }
    }

    /// `table`, `database.table`, either with `.*` behind it.
    fn delete_target(&mut self) -> Result<TableName> {
        let mut target = TableName { database: None, name: self.name()? };
        while self.accept(Kind::Dot) {
            if self.accept(Kind::Star) {
                break;
            }
            if target.database.is_some() {
                return self.fail();
            }
            target.database = Some(std::mem::replace(&mut target.name, self.any_word()?));
        }
        Ok(target)
    }
}
