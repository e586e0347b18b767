//! Users, roles and privileges.

use super::ast::{
    AccountNote, AccountOptions, Expiry, Forgiving, PrivilegeItem, ResourceLimits, RoleChoice, RoleStatement,
    SetPassword, TlsRule, UserDefinition,
};
use super::cursor::{Parser, Result};
use super::lexer::{Kind, literal_digits};
use super::statement::{Authentication, Statement, UserName};
use rauk_types::MysqlError;
use rauk_types::error::codes;

/// Of FAILED_LOGIN_ATTEMPTS and PASSWORD_LOCK_TIME.
const LONGEST_LOCK: u64 = 32_767;

impl Parser<'_> {
    /// Behind `CREATE USER` or `ALTER USER`.
    fn user_definitions(&mut self) -> Result<Vec<UserDefinition>> {
        self.comma_separated(|p| {
            let name = p.user_name()?;
            if p.accept_kws(&["DISCARD", "OLD", "PASSWORD"]) {
                let (authentication, replaced, retain) = (None, None, false);
                return Ok(UserDefinition { name, authentication, replaced, retain, discard: true });
            }
            let authentication = p.authentication()?;
            let (replaced, retain) =
                if authentication.is_some() { p.replaced_and_retained()? } else { Default::default() };
            Ok(UserDefinition { name, authentication, replaced, retain, discard: false })
        })
    }

    fn authentication(&mut self) -> Result<Option<Authentication>> {
        if !self.accept_kw("IDENTIFIED") {
            return Ok(None);
        }
        let mut plugin = None;
        if self.accept_kw("WITH") {
            let name = if self.kind() == Kind::String { self.string()? } else { self.name()? };
            if self.accept_kw("AS") {
                return Ok(Some(Authentication::Hash { plugin: name, hash: self.stored_hash()? }));
            }
            if !self.is_kw("BY") {
                return Ok(Some(Authentication::Plugin(name)));
            }
            plugin = Some(name);
        }
        self.expect_kw("BY")?;
        if self.accept_kws(&["RANDOM", "PASSWORD"]) {
            return Ok(Some(Authentication::Random { plugin }));
        }
        if self.accept_kw("PASSWORD") {
            let plugin = plugin.unwrap_or_else(|| "mysql_native_password".into());
            return Ok(Some(Authentication::Hash { plugin, hash: self.string()? }));
        }
        Ok(Some(Authentication::Password { plugin, password: self.string()? }))
    }

    /// Text, or its bytes as a hexadecimal literal.
    fn stored_hash(&mut self) -> Result<String> {
        if self.kind() != Kind::Hex {
            return self.string();
        }
        let token = self.advance();
        let digits = literal_digits(self.text(token)).as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
        match bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
            Some(hash) if digits.len().is_multiple_of(2) => Ok(hash),
            _ => self.fail(),
        }
    }

    /// `[REPLACE 'text'] [RETAIN CURRENT PASSWORD]`.
    fn replaced_and_retained(&mut self) -> Result<(Option<String>, bool)> {
        let replaced = if self.accept_kw("REPLACE") { Some(self.string()?) } else { None };
        Ok((replaced, self.accept_kws(&["RETAIN", "CURRENT", "PASSWORD"])))
    }

    /// Behind `SET PASSWORD`.
    pub fn set_password(&mut self) -> Result<Statement> {
        let user = if self.accept_kw("FOR") { Some(self.user_name()?) } else { None };
        let password = if self.accept_kws(&["TO", "RANDOM"]) {
            None
        } else {
            self.assign()?;
            Some(if self.accept_kw("PASSWORD") { self.parenthesized(Self::string)? } else { self.string()? })
        };
        let (replaced, retain) = self.replaced_and_retained()?;
        Ok(Statement::SetPassword(Box::new(SetPassword { user, password, replaced, retain })))
    }

    /// REQUIRE, WITH limits, PASSWORD and ACCOUNT options, COMMENT or ATTRIBUTE.
    fn account_options(&mut self, options: &mut AccountOptions) -> Result<()> {
        loop {
            if self.accept_kw("REQUIRE") {
                options.tls = Some(self.tls_rule()?);
            } else if self.accept_kw("WITH") {
                self.resource_limits(&mut options.limits)?;
            } else if self.accept_kw("ACCOUNT") {
                options.lock = Some(self.accept_kw("LOCK"));
                if options.lock == Some(false) {
                    self.expect_kw("UNLOCK")?;
                }
            } else if self.accept_kw("PASSWORD") {
                self.password_option(options)?;
            } else if self.accept_kw("FAILED_LOGIN_ATTEMPTS") {
                options.failed_logins = Some(self.number_within("FAILED_LOGIN_ATTEMPTS", 0, LONGEST_LOCK)?);
            } else if self.accept_kw("PASSWORD_LOCK_TIME") {
                options.lock_days = Some(match self.accept_kw("UNBOUNDED") {
                    true => -1,
                    false => self.number_within::<u16>("PASSWORD_LOCK_TIME", 0, LONGEST_LOCK)?.into(),
                });
            } else if options.note.is_none() && self.accept_kw("COMMENT") {
                options.note = Some(AccountNote::Comment(self.string()?));
            } else if options.note.is_none() && self.accept_kw("ATTRIBUTE") {
                options.note = Some(AccountNote::Attribute(self.string()?));
            } else {
                return Ok(());
            }
        }
    }

    /// Behind `REQUIRE`.
    fn tls_rule(&mut self) -> Result<TlsRule> {
        match self.accept_any_kw(&["NONE", "SSL", "X509"]) {
            Some("NONE") => return Ok(TlsRule::None),
            Some("SSL") => return Ok(TlsRule::Any),
            Some(_) => return Ok(TlsRule::X509),
            None => {}
        }
        let (mut subject, mut issuer, mut cipher) = (None, None, None);
        while let Some(word) = self.accept_any_kw(&["SUBJECT", "ISSUER", "CIPHER"]) {
            let place = match word {
                "SUBJECT" => &mut subject,
                "ISSUER" => &mut issuer,
                _ => &mut cipher,
            };
            if place.is_some() {
                let message = format!("Option '{word}' used twice in statement");
                return Err(MysqlError::new(codes::DUP_ARGUMENT, message));
            }
            *place = Some(self.string()?);
            self.accept_kw("AND");
        }
        match (&subject, &issuer, &cipher) {
            (None, None, None) => self.fail(),
            _ => Ok(TlsRule::Specified { subject, issuer, cipher }),
        }
    }

    /// Behind `WITH`.
    fn resource_limits(&mut self, limits: &mut ResourceLimits) -> Result<()> {
        const LIMITS: &[&str] =
            &["MAX_QUERIES_PER_HOUR", "MAX_UPDATES_PER_HOUR", "MAX_CONNECTIONS_PER_HOUR", "MAX_USER_CONNECTIONS"];
        let mut some = false;
        while let Some(word) = self.accept_any_kw(LIMITS) {
            some = true;
            let place = match word {
                "MAX_QUERIES_PER_HOUR" => &mut limits.queries,
                "MAX_UPDATES_PER_HOUR" => &mut limits.updates,
                "MAX_CONNECTIONS_PER_HOUR" => &mut limits.connections,
                _ => &mut limits.user_connections,
            };
            *place = Some(self.number_within(word, 0, u32::MAX.into())?);
        }
        if some { Ok(()) } else { self.fail() }
    }

    /// A number from `least` to `largest`, which the type can hold. Error 1525.
    fn number_within<N: TryFrom<u64>>(&mut self, what: &str, least: u64, largest: u64) -> Result<N> {
        let number = self.integer()?;
        match N::try_from(number) {
            Ok(small) if (least..=largest).contains(&number) => Ok(small),
            _ => Err(MysqlError::new(codes::WRONG_VALUE, format!("Incorrect {what} value: '{number}'"))),
        }
    }

    /// Behind `PASSWORD`.
    fn password_option(&mut self, options: &mut AccountOptions) -> Result<()> {
        if self.accept_kw("EXPIRE") {
            options.expiry = Some(if self.accept_kw("NEVER") {
                Expiry::Never
            } else if self.accept_kw("DEFAULT") {
                Expiry::Default
            } else if self.accept_kw("INTERVAL") {
                let days = self.number_within("DAY", 1, u16::MAX.into())?;
                self.expect_kw("DAY")?;
                Expiry::Days(days)
            } else {
                Expiry::Now
            });
        } else if self.accept_kw("HISTORY") {
            let default = self.accept_kw("DEFAULT");
            options.history =
                Some(if default { None } else { Some(self.number_within("HISTORY", 0, u16::MAX.into())?) });
        } else if self.accept_kws(&["REUSE", "INTERVAL"]) {
            let default = self.accept_kw("DEFAULT");
            options.reuse_days =
                Some(if default { None } else { Some(self.number_within("DAY", 0, u16::MAX.into())?) });
            if !default {
                self.expect_kw("DAY")?;
            }
        } else {
            self.expect_kws(&["REQUIRE", "CURRENT"])?;
            options.require_current = Some(match self.accept_any_kw(&["OPTIONAL", "DEFAULT"]) {
                Some("OPTIONAL") => Some(false),
                Some(_) => None,
                None => Some(true),
            });
        }
        Ok(())
    }

    pub fn create_user(&mut self) -> Result<Statement> {
        let if_not_exists = self.accept_kws(&["IF", "NOT", "EXISTS"]);
        let users = self.user_definitions()?;
        let mut options = Box::<AccountOptions>::default();
        if self.accept_kws(&["DEFAULT", "ROLE"]) {
            options.default_role = Some(RoleChoice::Named(self.comma_separated(Self::user_name)?));
        }
        self.account_options(&mut options)?;
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
        self.account_options(&mut options)?;
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
