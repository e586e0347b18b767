//! INSERT, REPLACE, UPDATE, DELETE.
//!
//! LOW_PRIORITY, HIGH_PRIORITY, DELAYED and QUICK are accepted and mean nothing here, as in InnoDB. UPDATE and DELETE of several tables
//! become [`Statement::Unsupported`].

use super::cursor::{Parser, Result};
use super::lexer::Kind;
use super::query::query_of;
use super::statement::Statement;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, FromTable, Ident, Insert, InsertAliases, ObjectName, OnInsert, SetExpr,
    TableFactor, TableObject, TableWithJoins, Update,
};

impl Parser<'_> {
    pub fn insert(&mut self) -> Result<Statement> {
        let replace_into = match self.accept_any_kw(&["INSERT", "REPLACE"]) {
            Some(word) => word == "REPLACE",
            None => return self.fail(),
        };
        let _ = self.accept_any_kw(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY"]);
        let ignore = !replace_into && self.accept_kw("IGNORE");
        let into = self.accept_kw("INTO");
        let table = self.object_name()?;
        if self.accept_kw("PARTITION") {
            self.skip_parentheses()?;
        }
        let mut columns = Vec::new();
        let mut assignments = Vec::new();
        let mut source = None;
        let has_columns = self.kind() == Kind::LParen && !self.is_query_start();
        if has_columns {
            columns = self.parenthesized(|p| {
                if p.kind() == Kind::RParen { Ok(vec![]) } else { p.comma_separated(Self::object_name) }
            })?;
        }
        if !has_columns && self.accept_kw("SET") {
            assignments = self.comma_separated(Self::assignment)?;
        } else if (self.is_kw("VALUES") || self.is_kw("VALUE"))
            && !(self.is_kw_at(1, "ROW") && has_columns && self.is_kw("VALUE"))
        {
            self.advance();
            source = Some(Box::new(query_of(SetExpr::Values(self.insert_values()?))));
        } else if self.is_query_start() {
            source = Some(self.query()?);
        } else {
            return self.fail();
        }
        let insert_alias = if self.accept_kw("AS") {
            let row_alias = ObjectName::from(vec![self.ident()?]);
            let col_aliases = if self.kind() == Kind::LParen {
                Some(self.parenthesized(|p| p.comma_separated(Self::ident))?)
            } else {
                None
            };
            Some(InsertAliases { row_alias, col_aliases })
        } else {
            None
        };
        let on = if !replace_into && self.accept_kws(&["ON", "DUPLICATE", "KEY", "UPDATE"]) {
            Some(OnInsert::DuplicateKeyUpdate(self.comma_separated(Self::assignment)?))
        } else {
            None
        };
        Ok(Statement::Insert(Box::new(Insert {
            insert_token: AttachedToken::empty(),
            optimizer_hints: vec![],
            or: None,
            ignore,
            into,
            table: TableObject::TableName(table),
            table_alias: None,
            columns,
            overwrite: false,
            source,
            assignments,
            partitioned: None,
            after_columns: vec![],
            has_table_keyword: false,
            on,
            returning: None,
            output: None,
            replace_into,
            priority: None,
            insert_alias,
            settings: None,
            format_clause: None,
            multi_table_insert_type: None,
            multi_table_into_clauses: vec![],
            multi_table_when_clauses: vec![],
            multi_table_else_clause: None,
        })))
    }

    /// `column = expression`; `:=` is allowed too.
    fn assignment(&mut self) -> Result<Assignment> {
        let target = AssignmentTarget::ColumnName(self.object_name()?);
        if !self.accept(Kind::Eq) && !self.accept(Kind::Assign) {
            return self.fail();
        }
        Ok(Assignment { target, value: self.expr()? })
    }

    pub fn update(&mut self) -> Result<Statement> {
        self.expect_kw("UPDATE")?;
        self.accept_kw("LOW_PRIORITY");
        let ignore = self.accept_kw("IGNORE");
        let mut tables = self.comma_separated(Self::table_with_joins)?;
        self.expect_kw("SET")?;
        let assignments = self.comma_separated(Self::assignment)?;
        let selection = if self.accept_kw("WHERE") { Some(self.expr()?) } else { None };
        let (order_by, limit) = self.order_and_limit()?;
        if tables.len() > 1 || !is_single(&tables[0]) {
            return Ok(Statement::Unsupported("UPDATE of several tables".into()));
        }
        if ignore {
            return Ok(Statement::Unsupported("UPDATE IGNORE".into()));
        }
        Ok(Statement::Update(Box::new(Update {
            update_token: AttachedToken::empty(),
            optimizer_hints: vec![],
            table: tables.remove(0),
            assignments,
            from: None,
            selection,
            returning: None,
            output: None,
            or: None,
            order_by,
            limit,
        })))
    }

    pub fn delete(&mut self) -> Result<Statement> {
        self.expect_kw("DELETE")?;
        while self.accept_any_kw(&["LOW_PRIORITY", "QUICK", "IGNORE"]).is_some() {}
        let several = Ok(Statement::Unsupported("DELETE from several tables".into()));
        if !self.accept_kw("FROM") {
            // `DELETE a, b FROM …`
            self.comma_separated(Self::delete_target)?;
            self.expect_kw("FROM")?;
            self.comma_separated(Self::table_with_joins)?;
            if self.accept_kw("WHERE") {
                self.expr()?;
            }
            return several;
        }
        if self.is_multi_table_delete() {
            self.comma_separated(Self::delete_target)?;
            self.expect_kw("USING")?;
            self.comma_separated(Self::table_with_joins)?;
            if self.accept_kw("WHERE") {
                self.expr()?;
            }
            return several;
        }
        let table = self.table_with_joins()?;
        if !is_single(&table) {
            return self.fail();
        }
        let selection = if self.accept_kw("WHERE") { Some(self.expr()?) } else { None };
        let (order_by, limit) = self.order_and_limit()?;
        Ok(Statement::Delete(Box::new(Delete {
            delete_token: AttachedToken::empty(),
            optimizer_hints: vec![],
            tables: vec![],
            from: FromTable::WithFromKeyword(vec![table]),
            using: None,
            selection,
            returning: None,
            output: None,
            order_by,
            limit,
        })))
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

    fn delete_target(&mut self) -> Result<Vec<Ident>> {
        let mut parts = vec![self.ident()?];
        while self.accept(Kind::Dot) {
            if self.accept(Kind::Star) {
                break;
            }
            parts.push(self.ident_after_dot()?);
        }
        Ok(parts)
    }
}

fn is_single(table: &TableWithJoins) -> bool {
    table.joins.is_empty() && matches!(table.relation, TableFactor::Table { .. })
}
