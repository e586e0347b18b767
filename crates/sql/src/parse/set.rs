//! The SET family: variables, user variables, NAMES, TRANSACTION.

use super::ast::{ColumnName, Expr};
use super::cursor::{Parser, Result};
use super::lexer::Kind;
use super::statement::{IsolationLevel, Scope, SetItem, Statement};

impl Parser<'_> {
    pub fn set(&mut self) -> Result<Statement> {
        self.expect_kw("SET")?;
        // `SET role = 1` would be a variable of that name.
        if self.is_kw("ROLE") && !matches!(self.kind_at(1), Kind::Eq | Kind::Assign) {
            return self.set_role();
        }
        if self.are_kws(&["DEFAULT", "ROLE"]) {
            return self.set_default_role();
        }
        if self.accept_kw("RESOURCE") {
            return self.unsupported("Resource groups");
        }
        // `SET password = 1` is no variable: the statement of that name stands alone.
        if self.accept_kw("PASSWORD") {
            return self.set_password();
        }
        let items = self.comma_separated(Self::set_item)?;
        Ok(Statement::Set(items))
    }

    fn scope(&mut self) -> Scope {
        match self.accept_any_kw(&["GLOBAL", "SESSION", "LOCAL", "PERSIST", "PERSIST_ONLY"]) {
            Some("GLOBAL") => Scope::Global,
            Some("SESSION" | "LOCAL") => Scope::Session,
            Some(_) => Scope::Persist,
            None => Scope::Default,
        }
    }

    pub(super) fn assign(&mut self) -> Result<()> {
        if self.accept(Kind::Eq) || self.accept(Kind::Assign) { Ok(()) } else { self.fail() }
    }

    fn set_item(&mut self) -> Result<SetItem> {
        match self.kind() {
            Kind::UserVariable => {
                let name = self.user_variable()?;
                self.assign()?;
                return Ok(SetItem::UserVariable { name, value: self.expr()? });
            }
            Kind::SystemVariable => {
                let (scope, name) = self.system_variable()?;
                self.assign()?;
                return Ok(SetItem::Variable { scope, name, value: self.variable_value()? });
            }
            _ => {}
        }
        if self.is_kw("NAMES") && self.kind_at(1) != Kind::Eq {
            self.advance();
            return self.set_names();
        }
        if self.accept_kws(&["CHARACTER", "SET"])
            || (self.is_kw("CHARSET") && self.kind_at(1) != Kind::Eq && self.accept_kw("CHARSET"))
        {
            let charset = if self.accept_kw("DEFAULT") { None } else { Some(self.charset_name()?) };
            return Ok(SetItem::CharacterSet(charset));
        }
        let start = self.position();
        let scope = self.scope();
        if self.is_kw("TRANSACTION") && self.kind_at(1) != Kind::Eq {
            self.advance();
            return self.set_transaction(scope);
        }
        // `SET global = 1` would be a variable of that name.
        if matches!(self.kind(), Kind::Eq | Kind::Assign) {
            self.rewind(start);
        }
        let mut name = self.any_word()?;
        while self.accept(Kind::Dot) {
            name = format!("{name}.{}", self.any_word()?);
        }
        self.assign()?;
        // A name by itself is the session's; only `@@name` leaves the scope open.
        let scope = if scope == Scope::Default { Scope::Session } else { scope };
        Ok(SetItem::Variable { scope, name, value: self.variable_value()? })
    }

    /// A value: an expression, a bare word (reserved ones too: ON, BINARY, ALL), or DEFAULT.
    fn variable_value(&mut self) -> Result<Option<Expr>> {
        if self.accept_kw("DEFAULT") {
            return Ok(None);
        }
        if self.is_any_kw(&["ON", "ALL", "BINARY", "ROW", "SYSTEM"])
            && matches!(self.kind_at(1), Kind::Comma | Kind::End | Kind::Semicolon)
        {
            return self.any_word().map(|word| Some(Expr::Column(ColumnName::bare(word))));
        }
        self.expr().map(Some)
    }

    fn set_names(&mut self) -> Result<SetItem> {
        if self.accept_kw("DEFAULT") {
            return Ok(SetItem::Names { charset: None, collation: None });
        }
        let charset = Some(self.charset_name()?);
        let collation = if self.accept_kw("COLLATE") { Some(self.charset_name()?) } else { None };
        Ok(SetItem::Names { charset, collation })
    }

    fn set_transaction(&mut self, scope: Scope) -> Result<SetItem> {
        let (mut isolation, mut read_only) = (None, None);
        loop {
            if self.accept_kws(&["ISOLATION", "LEVEL"]) {
                isolation = Some(self.isolation_level()?);
            } else if self.accept_kws(&["READ", "ONLY"]) {
                read_only = Some(true);
            } else if self.accept_kws(&["READ", "WRITE"]) {
                read_only = Some(false);
            } else {
                return self.fail();
            }
            // A comma goes on with the characteristics, not with another SET item.
            if !self.accept(Kind::Comma) {
                return Ok(SetItem::Transaction { scope, isolation, read_only });
            }
        }
    }

    fn isolation_level(&mut self) -> Result<IsolationLevel> {
        Ok(match () {
            () if self.accept_kws(&["READ", "UNCOMMITTED"]) => IsolationLevel::ReadUncommitted,
            () if self.accept_kws(&["READ", "COMMITTED"]) => IsolationLevel::ReadCommitted,
            () if self.accept_kws(&["REPEATABLE", "READ"]) => IsolationLevel::RepeatableRead,
            () if self.accept_kw("SERIALIZABLE") => IsolationLevel::Serializable,
            () => return self.fail(),
        })
    }
}
