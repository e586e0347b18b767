//! Users and privileges.

use super::cursor::{Parser, Result};
use super::lexer::Kind;
use super::statement::{Authentication, Statement, UserName};

impl Parser<'_> {
    /// Behind `CREATE USER` or `ALTER USER`.
    fn user_definitions(&mut self) -> Result<Vec<(UserName, Option<Authentication>)>> {
        let users = self.comma_separated(|p| {
            let user = p.user_name()?;
            Ok((user, p.authentication()?))
        })?;
        self.account_options()?;
        Ok(users)
    }

    fn authentication(&mut self) -> Result<Option<Authentication>> {
        if !self.accept_kw("IDENTIFIED") {
            return Ok(None);
        }
        let mut plugin = None;
        if self.accept_kw("WITH") {
            let name = if self.kind() == Kind::String { self.string()? } else { self.name()? };
            if self.accept_kw("AS") {
                return Ok(Some(Authentication::Hash { plugin: name, hash: self.string()? }));
            }
            plugin = Some(name);
            if !self.is_kw("BY") {
                return Ok(Some(Authentication::Password { plugin, password: String::new() }));
            }
        }
        self.expect_kw("BY")?;
        if self.accept_kw("PASSWORD") {
            let plugin = plugin.unwrap_or_else(|| "mysql_native_password".into());
            return Ok(Some(Authentication::Hash { plugin, hash: self.string()? }));
        }
        let password = self.string()?;
        if self.accept_kw("REPLACE") {
            self.string()?;
        }
        self.accept_kws(&["RETAIN", "CURRENT", "PASSWORD"]);
        Ok(Some(Authentication::Password { plugin, password }))
    }

    /// REQUIRE, WITH limits, PASSWORD and ACCOUNT options, COMMENT: accepted where they ask for nothing that Rauk would have to do.
    fn account_options(&mut self) -> Result<()> {
        loop {
            if self.accept_kw("REQUIRE") {
                self.expect_kw("NONE")?;
            } else if self.accept_kw("ACCOUNT") {
                self.expect_kw("UNLOCK")?;
            } else if self.accept_kw("PASSWORD") {
                self.skip_password_option()?;
            } else if self.accept_kw("DEFAULT") {
                self.expect_kw("ROLE")?;
                self.expect_kw("NONE")?;
            } else if self.accept_any_kw(&["COMMENT", "ATTRIBUTE"]).is_some() {
                self.string()?;
            } else {
                return Ok(());
            }
        }
    }

    fn skip_password_option(&mut self) -> Result<()> {
        const WORDS: &[&str] =
            &["EXPIRE", "HISTORY", "REUSE", "REQUIRE", "INTERVAL", "NEVER", "DEFAULT", "CURRENT", "OPTIONAL", "DAY"];
        let start = self.position();
        while self.accept_any_kw(WORDS).is_some() || self.accept(Kind::Integer) {}
        if self.position() == start { self.fail() } else { Ok(()) }
    }

    pub fn create_user(&mut self) -> Result<Statement> {
        let if_not_exists = self.accept_kws(&["IF", "NOT", "EXISTS"]);
        Ok(Statement::CreateUser { users: self.user_definitions()?, if_not_exists })
    }

    pub fn alter_user(&mut self) -> Result<Statement> {
        let if_exists = self.accept_kws(&["IF", "EXISTS"]);
        Ok(Statement::AlterUser { users: self.user_definitions()?, if_exists })
    }

    pub fn drop_user(&mut self) -> Result<Statement> {
        let if_exists = self.accept_kws(&["IF", "EXISTS"]);
        Ok(Statement::DropUser { users: self.comma_separated(Self::user_name)?, if_exists })
    }

    /// `SELECT, INSERT (a, b), ALL PRIVILEGES, …` in upper case; column lists make it unsupported (`None`).
    fn privileges(&mut self) -> Result<Option<Vec<String>>> {
        let mut columns = false;
        let list = self.comma_separated(|p| {
            let mut words = Vec::new();
            while p.kind() == Kind::Word && !p.is_any_kw(&["ON", "TO", "FROM"]) {
                words.push(p.any_word()?.to_ascii_uppercase());
            }
            if p.kind() == Kind::LParen {
                columns = true;
                p.skip_parentheses()?;
            }
            if words.is_empty() {
                return p.fail();
            }
            let name = words.join(" ");
            Ok(if name == "ALL" { "ALL PRIVILEGES".to_string() } else { name })
        })?;
        Ok(if columns { None } else { Some(list) })
    }

    /// `*.*`, `database.*`, `database.table`, `table`, `*`. The database `None` of a bare table or `*` is the current one's place,
    /// which MySQL resolves when the statement runs: it is given as an empty name.
    fn privilege_level(&mut self) -> Result<(Option<String>, Option<String>)> {
        self.accept_kw("TABLE");
        if self.accept(Kind::Star) {
            if self.accept(Kind::Dot) {
                self.expect(Kind::Star)?;
                return Ok((None, None));
            }
            return Ok((Some(String::new()), None));
        }
        let name = self.name()?;
        if !self.accept(Kind::Dot) {
            return Ok((Some(String::new()), Some(name)));
        }
        if self.accept(Kind::Star) {
            return Ok((Some(name), None));
        }
        Ok((Some(name), Some(self.any_word()?)))
    }

    pub fn grant(&mut self) -> Result<Statement> {
        self.expect_kw("GRANT")?;
        if self.kind() != Kind::Word {
            return self.unsupported("Roles");
        }
        let privileges = self.privileges()?;
        if !self.is_kw("ON") {
            return self.unsupported("Roles");
        }
        self.advance();
        if self.is_any_kw(&["PROCEDURE", "FUNCTION"]) {
            return self.unsupported("GRANT on routines");
        }
        let (database, table) = self.privilege_level()?;
        self.expect_kw("TO")?;
        let users = self.comma_separated(|p| {
            let user = p.user_name()?;
            // MySQL 5.7 and MariaDB create the account here; MySQL 8 does not.
            if p.is_kw("IDENTIFIED") { p.fail() } else { Ok(user) }
        })?;
        let mut grant_option = false;
        if self.accept_kw("REQUIRE") {
            self.expect_kw("NONE")?;
        }
        if self.accept_kw("WITH") {
            self.expect_kws(&["GRANT", "OPTION"])?;
            grant_option = true;
        }
        match privileges {
            Some(privileges) => Ok(Statement::Grant { privileges, database, table, users, grant_option }),
            None => Ok(Statement::Unsupported("Column privileges".into())),
        }
    }

    pub fn revoke(&mut self) -> Result<Statement> {
        self.expect_kw("REVOKE")?;
        self.accept_kws(&["IF", "EXISTS"]);
        if self.kind() != Kind::Word {
            return self.unsupported("Roles");
        }
        let privileges = self.privileges()?;
        let (database, table) = if self.accept_kw("ON") {
            if self.is_any_kw(&["PROCEDURE", "FUNCTION"]) {
                return self.unsupported("REVOKE on routines");
            }
            self.privilege_level()?
        } else if privileges.as_ref().is_some_and(|p| p.iter().any(|p| p == "GRANT OPTION")) {
            // REVOKE ALL PRIVILEGES, GRANT OPTION FROM user
            (None, None)
        } else {
            return self.unsupported("Roles");
        };
        self.expect_kw("FROM")?;
        let users = self.comma_separated(Self::user_name)?;
        self.accept_kws(&["IGNORE", "UNKNOWN", "USER"]);
        match privileges {
            Some(privileges) => Ok(Statement::Revoke { privileges, database, table, users }),
            None => Ok(Statement::Unsupported("Column privileges".into())),
        }
    }
}
