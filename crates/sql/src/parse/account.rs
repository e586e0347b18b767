//! Users, roles and privileges.

use super::ast::{AccountOptions, Forgiving, PrivilegeItem, RoleChoice, RoleStatement, UserDefinition};
use super::cursor::{Parser, Result};
use super::lexer::Kind;
use super::statement::{Authentication, Statement, UserName};

impl Parser<'_> {
    /// Behind `CREATE USER` or `ALTER USER`.
    fn user_definitions(&mut self) -> Result<Vec<UserDefinition>> {
        self.comma_separated(|p| Ok(UserDefinition { name: p.user_name()?, authentication: p.authentication()? }))
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
                let password = String::new();
                return Ok(Some(Authentication::Password { plugin, password, replaced: None }));
            }
        }
        self.expect_kw("BY")?;
        if self.accept_kw("PASSWORD") {
            let plugin = plugin.unwrap_or_else(|| "mysql_native_password".into());
            return Ok(Some(Authentication::Hash { plugin, hash: self.string()? }));
        }
        let password = self.string()?;
        let replaced = if self.accept_kw("REPLACE") { Some(self.string()?) } else { None };
        Ok(Some(Authentication::Password { plugin, password, replaced }))
    }

    /// REQUIRE, WITH limits, PASSWORD and ACCOUNT options, COMMENT. What says how accounts are in any case is
    /// accepted; what asks for something that nothing follows is noted for error 1235.
    fn account_options(&mut self, options: &mut AccountOptions) -> Result<()> {
        loop {
            let mut unsupported = None;
            if self.accept_kw("REQUIRE") {
                if !self.accept_kw("NONE") {
                    unsupported = Some("REQUIRE SSL, X509, SUBJECT, ISSUER and CIPHER");
                    self.required_certificate()?;
                }
            } else if self.accept_kw("WITH") {
                while let Some(limit) = self.resource_limit()? {
                    unsupported = unsupported.or((limit > 0).then_some("Limits of an account"));
                }
            } else if self.accept_kw("ACCOUNT") {
                options.lock = Some(self.accept_kw("LOCK"));
                if options.lock == Some(false) {
                    self.expect_kw("UNLOCK")?;
                }
            } else if self.accept_kw("PASSWORD") {
                unsupported = self.password_option()?;
            } else if let Some(word) = self.accept_any_kw(&["FAILED_LOGIN_ATTEMPTS", "PASSWORD_LOCK_TIME"]) {
                let unbounded = word == "PASSWORD_LOCK_TIME" && self.accept_kw("UNBOUNDED");
                let limits = unbounded || self.integer()? > 0;
                unsupported = limits.then_some("FAILED_LOGIN_ATTEMPTS and PASSWORD_LOCK_TIME");
            } else if self.accept_any_kw(&["COMMENT", "ATTRIBUTE"]).is_some() {
                self.string()?;
            } else {
                return Ok(());
            }
            options.unsupported = options.unsupported.take().or(unsupported.map(str::to_string));
        }
    }

    /// Behind `REQUIRE`.
    fn required_certificate(&mut self) -> Result<()> {
        if self.accept_any_kw(&["SSL", "X509"]).is_some() {
            return Ok(());
        }
        let mut some = false;
        while self.accept_any_kw(&["SUBJECT", "ISSUER", "CIPHER"]).is_some() {
            self.string()?;
            self.accept_kw("AND");
            some = true;
        }
        if some { Ok(()) } else { self.fail() }
    }

    fn resource_limit(&mut self) -> Result<Option<u64>> {
        const LIMITS: &[&str] =
            &["MAX_QUERIES_PER_HOUR", "MAX_UPDATES_PER_HOUR", "MAX_CONNECTIONS_PER_HOUR", "MAX_USER_CONNECTIONS"];
        if self.accept_any_kw(LIMITS).is_none() { Ok(None) } else { self.integer().map(Some) }
    }

    /// Behind `PASSWORD`: what of it nothing follows.
    fn password_option(&mut self) -> Result<Option<&'static str>> {
        if self.accept_kw("EXPIRE") {
            let never = self.accept_any_kw(&["NEVER", "DEFAULT"]).is_some();
            if !never && self.accept_kw("INTERVAL") {
                self.integer()?;
                self.expect_kw("DAY")?;
            }
            return Ok((!never).then_some("PASSWORD EXPIRE"));
        }
        if self.accept_kw("HISTORY") {
            let limits = !self.accept_kw("DEFAULT") && self.integer()? > 0;
            return Ok(limits.then_some("PASSWORD HISTORY"));
        }
        if self.accept_kws(&["REUSE", "INTERVAL"]) {
            if self.accept_kw("DEFAULT") {
                return Ok(None);
            }
            let days = self.integer()?;
            self.expect_kw("DAY")?;
            return Ok((days > 0).then_some("PASSWORD REUSE INTERVAL"));
        }
        self.expect_kws(&["REQUIRE", "CURRENT"])?;
        let optional = self.accept_any_kw(&["OPTIONAL", "DEFAULT"]).is_some();
        Ok((!optional).then_some("PASSWORD REQUIRE CURRENT"))
    }

    pub fn create_user(&mut self) -> Result<Statement> {
        let if_not_exists = self.accept_kws(&["IF", "NOT", "EXISTS"]);
        let users = self.user_definitions()?;
        let mut options = Box::<AccountOptions>::default();
        if self.accept_kws(&["DEFAULT", "ROLE"]) {
            options.default_role = Some(RoleChoice::Named(self.comma_separated(Self::user_name)?));
        }
        self.account_options(&mut options)?;
        if let Some(feature) = options.unsupported.take() {
            return self.unsupported(&feature);
        }
        Ok(Statement::CreateUser { users, options, if_not_exists })
    }

    pub fn alter_user(&mut self) -> Result<Statement> {
        let if_exists = self.accept_kws(&["IF", "EXISTS"]);
        let users = self.user_definitions()?;
        let mut options = Box::<AccountOptions>::default();
        if users.len() == 1 && self.accept_kws(&["DEFAULT", "ROLE"]) {
            options.default_role = Some(self.role_choice()?);
            return Ok(Statement::AlterUser { users, options, if_exists });
        }
        if self.are_kws(&["DISCARD", "OLD", "PASSWORD"]) || self.are_kws(&["RETAIN", "CURRENT", "PASSWORD"]) {
            return self.unsupported("A second password of an account");
        }
        self.account_options(&mut options)?;
        if let Some(feature) = options.unsupported.take() {
            return self.unsupported(&feature);
        }
        Ok(Statement::AlterUser { users, options, if_exists })
    }

    pub fn drop_user(&mut self) -> Result<Statement> {
        let if_exists = self.accept_kws(&["IF", "EXISTS"]);
        Ok(Statement::DropUser { users: self.comma_separated(Self::user_name)?, if_exists })
    }

    /// Behind `RENAME USER`.
    pub fn rename_user(&mut self) -> Result<Statement> {
        let pairs = self.comma_separated(|p| {
            let from = p.user_name()?;
            p.expect_kw("TO")?;
            Ok((from, p.user_name()?))
        })?;
        Ok(Statement::RenameUser(pairs))
    }

    // Roles

    /// A list of roles and nothing behind it: the value of `mandatory_roles`.
    pub fn role_list(&mut self) -> Result<Vec<UserName>> {
        if self.kind() == Kind::End {
            return Ok(vec![]);
        }
        let roles = self.comma_separated(Self::user_name)?;
        if self.kind() == Kind::End { Ok(roles) } else { self.fail() }
    }

    pub fn create_role(&mut self) -> Result<Statement> {
        let if_not_exists = self.accept_kws(&["IF", "NOT", "EXISTS"]);
        let roles = self.comma_separated(Self::user_name)?;
        Ok(Statement::Role(Box::new(RoleStatement::Create { roles, if_not_exists })))
    }

    pub fn drop_role(&mut self) -> Result<Statement> {
        let if_exists = self.accept_kws(&["IF", "EXISTS"]);
        let roles = self.comma_separated(Self::user_name)?;
        Ok(Statement::Role(Box::new(RoleStatement::Drop { roles, if_exists })))
    }

    /// NONE, ALL, or roles.
    fn role_choice(&mut self) -> Result<RoleChoice> {
        if self.accept_kw("NONE") {
            return Ok(RoleChoice::None);
        }
        if self.accept_kw("ALL") {
            return Ok(RoleChoice::All);
        }
        Ok(RoleChoice::Named(self.comma_separated(Self::user_name)?))
    }

    pub fn set_role(&mut self) -> Result<Statement> {
        self.expect_kw("ROLE")?;
        let choice = if self.accept_kw("DEFAULT") {
            RoleChoice::Default
        } else if self.accept_kws(&["ALL", "EXCEPT"]) {
            RoleChoice::AllExcept(self.comma_separated(Self::user_name)?)
        } else {
            self.role_choice()?
        };
        Ok(Statement::Role(Box::new(RoleStatement::Set(choice))))
    }

    pub fn set_default_role(&mut self) -> Result<Statement> {
        self.expect_kws(&["DEFAULT", "ROLE"])?;
        let choice = self.role_choice()?;
        self.expect_kw("TO")?;
        let users = self.comma_separated(Self::user_name)?;
        Ok(Statement::Role(Box::new(RoleStatement::SetDefault { choice, users })))
    }

    /// GRANT and REVOKE are of roles when no ON stands before the accounts.
    fn is_of_roles(&self, behind: &'static str) -> bool {
        // REVOKE ALL PRIVILEGES, GRANT OPTION FROM user
        self.find_kw(&["ON", behind]) == Some(behind) && !self.is_kw("ALL")
    }

    // Privileges

    /// `SELECT, INSERT (a, b), ALL PRIVILEGES, …`.
    fn privileges(&mut self) -> Result<Vec<PrivilegeItem>> {
        self.comma_separated(|p| {
            let mut words = Vec::new();
            while p.kind() == Kind::Word && !p.is_any_kw(&["ON", "TO", "FROM"]) {
                words.push(p.any_word()?.to_ascii_uppercase());
            }
            if words.is_empty() {
                return p.fail();
            }
            let columns = match p.kind() {
                Kind::LParen => p.parenthesized(|p| p.comma_separated(Self::name))?,
                _ => vec![],
            };
            let name = words.join(" ");
            let name = if name == "ALL" { "ALL PRIVILEGES".to_string() } else { name };
            Ok(PrivilegeItem { name, columns })
        })
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
        if self.are_kws(&["PROXY", "ON"]) {
            return self.unsupported("GRANT PROXY");
        }
        if self.is_of_roles("TO") {
            let roles = self.comma_separated(Self::user_name)?;
            self.expect_kw("TO")?;
            let users = self.comma_separated(Self::user_name)?;
            let admin = self.accept_kws(&["WITH", "ADMIN", "OPTION"]);
            return Ok(Statement::Role(Box::new(RoleStatement::Grant { roles, users, admin })));
        }
        let privileges = self.privileges()?;
        self.expect_kw("ON")?;
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
        let grant_option = self.accept_kws(&["WITH", "GRANT", "OPTION"]);
        if self.is_kw("AS") {
            return self.unsupported("GRANT … AS");
        }
        Ok(Statement::Grant { privileges, database, table, users, grant_option })
    }

    pub fn revoke(&mut self) -> Result<Statement> {
        self.expect_kw("REVOKE")?;
        let missing_grants = self.accept_kws(&["IF", "EXISTS"]);
        if self.are_kws(&["PROXY", "ON"]) {
            return self.unsupported("REVOKE PROXY");
        }
        if self.is_of_roles("FROM") {
            let roles = self.comma_separated(Self::user_name)?;
            self.expect_kw("FROM")?;
            let (users, forgiving) = self.revoked_users(missing_grants)?;
            return Ok(Statement::Role(Box::new(RoleStatement::Revoke { roles, users, forgiving })));
        }
        let privileges = self.privileges()?;
        let (database, table) = if self.accept_kw("ON") {
            if self.is_any_kw(&["PROCEDURE", "FUNCTION"]) {
                return self.unsupported("REVOKE on routines");
            }
            self.privilege_level()?
        } else {
            // REVOKE ALL PRIVILEGES, GRANT OPTION FROM user
            let names: Vec<&str> = privileges.iter().map(|item| item.name.as_str()).collect();
            if names != ["ALL PRIVILEGES", "GRANT OPTION"] {
                return self.fail();
            }
            (None, None)
        };
        self.expect_kw("FROM")?;
        let (users, forgiving) = self.revoked_users(missing_grants)?;
        Ok(Statement::Revoke { privileges, database, table, users, forgiving })
    }

    fn revoked_users(&mut self, missing_grants: bool) -> Result<(Vec<UserName>, Forgiving)> {
        let users = self.comma_separated(Self::user_name)?;
        let unknown_users = self.accept_kws(&["IGNORE", "UNKNOWN", "USER"]);
        Ok((users, Forgiving { missing_grants, unknown_users }))
    }
}
