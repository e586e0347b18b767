//! CREATE VIEW, ALTER VIEW, DROP VIEW.
//!
//! `[OR REPLACE] [ALGORITHM = …] [DEFINER = …] [SQL SECURITY …] VIEW name [(columns)] AS query [WITH [CASCADED | LOCAL] CHECK OPTION]`. Dump tools write
//! the parts in conditional comments, one a part; the lexer reads through those.

use super::ast;
use super::cursor::{Parser, Result};
use super::lexer::Kind;
use super::statement::{CreateView, Statement, ViewChange};
use rauk_types::error::codes;
use rauk_types::{MysqlError, ViewAlgorithm, ViewCheck, ViewSecurity};

impl Parser<'_> {
    /// Whether what follows CREATE [OR REPLACE] or ALTER is of a view.
    pub fn is_view(&self) -> bool {
        let options = self.is_any_kw(&["ALGORITHM", "DEFINER", "SQL"]);
        let others = ["VIEW", "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"];
        self.is_kw("VIEW") || options && self.find_kw(&others) == Some("VIEW")
    }

    /// Behind CREATE [OR REPLACE] or ALTER.
    pub fn view(&mut self, change: ViewChange) -> Result<Statement> {
        let mut algorithm = None;
        if self.accept_kw("ALGORITHM") {
            self.expect(Kind::Eq)?;
            algorithm = Some(match self.accept_any_kw(&["UNDEFINED", "MERGE", "TEMPTABLE"]) {
                Some("UNDEFINED") => ViewAlgorithm::Undefined,
                Some("MERGE") => ViewAlgorithm::Merge,
                Some(_) => ViewAlgorithm::Temptable,
                None => return self.fail(),
            });
        }
        let mut definer = None;
        if self.accept_kw("DEFINER") {
            self.expect(Kind::Eq)?;
            definer = Some(self.user_name()?);
        }
        let mut security = None;
        if self.accept_kws(&["SQL", "SECURITY"]) {
            security = Some(match self.accept_any_kw(&["DEFINER", "INVOKER"]) {
                Some("DEFINER") => ViewSecurity::Definer,
                Some(_) => ViewSecurity::Invoker,
                None => return self.fail(),
            });
        }
        self.expect_kw("VIEW")?;
        let name = self.table_name()?;
        let columns = if self.kind() == Kind::LParen { self.column_list()? } else { vec![] };
        self.expect_kw("AS")?;
        let query = self.view_query()?;
        let mut check = ViewCheck::None;
        if self.accept_kw("WITH") {
            check = if self.accept_kw("LOCAL") { ViewCheck::Local } else { ViewCheck::Cascaded };
            self.accept_kw("CASCADED");
            self.expect_kws(&["CHECK", "OPTION"])?;
        }
        Ok(Statement::CreateView(Box::new(CreateView {
            change,
            algorithm,
            definer,
            security,
            name,
            columns,
            query,
            check,
        })))
    }

    /// The query of a view. Errors: 1350 for INTO, 1351 for variables.
    fn view_query(&mut self) -> Result<ast::Query> {
        let start = self.position();
        let query = self.query()?;
        if query.into.is_some() {
            return Err(MysqlError::new(codes::VIEW_SELECT_CLAUSE, "View's SELECT contains a 'INTO' clause"));
        }
        let end = self.position();
        self.rewind(start);
        let variable =
            (0..end - start).any(|ahead| matches!(self.kind_at(ahead), Kind::UserVariable | Kind::SystemVariable));
        self.rewind(end);
        if variable {
            return Err(variable_in_view());
        }
        Ok(query)
    }

    /// Behind DROP VIEW.
    pub fn drop_views(&mut self) -> Result<Statement> {
        let if_exists = self.accept_kws(&["IF", "EXISTS"]);
        let views = self.table_names()?;
        let _ = self.accept_any_kw(&["RESTRICT", "CASCADE"]);
        Ok(Statement::DropView { views, if_exists })
    }
}

/// Error 1351.
pub(crate) fn variable_in_view() -> MysqlError {
    MysqlError::new(codes::VIEW_SELECT_VARIABLE, "View's SELECT contains a variable or parameter")
}
