//! CREATE USER, ALTER USER, DROP USER, GRANT, REVOKE, SET PASSWORD.

use super::password;
use super::privilege::Privileges;
use super::store::{AccountRecord, Users};
use crate::parse::statement::{Authentication, UserName};
use crate::session::errors;
use crate::session::session::Session;
use rauk_types::MysqlError;
use rauk_types::error::codes;
use rauk_types::result::Completion;

/// Accounts to store or to remove, with their names.
type Changes = Vec<(String, String, Option<AccountRecord>)>;

impl Session {
    /// CURRENT_USER arrives as two empty names.
    fn named(&self, name: &UserName) -> (String, String) {
        if name.user.is_empty() && name.host.is_empty() {
            return (self.account.user.clone(), self.account.host.clone());
        }
        (name.user.clone(), name.host.clone())
    }

    /// `accounts` failed, as one error 1396 that lists them.
    fn failed_accounts(operation: &str, accounts: &[(String, String)]) -> Result<(), MysqlError> {
        if accounts.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = accounts.iter().map(|(user, host)| format!("'{user}'@'{host}'")).collect();
        let message = format!("Operation {operation} failed for {}", names.join(","));
        Err(MysqlError::new(codes::CANNOT_USER, message))
    }

    /// Plugin and hash of IDENTIFIED.
    fn credentials(&self, authentication: &Authentication) -> Result<(String, String), MysqlError> {
        match authentication {
            Authentication::Password { plugin, password } => {
                let plugin = plugin.clone().unwrap_or_else(|| password::CACHING_SHA2.to_string());
                Users::check_plugin(&plugin)?;
                let hash = password::hash(&plugin, password, &mut || self.engine.runtime.random());
                Ok((plugin, hash))
            }
            Authentication::Hash { plugin, hash } => {
                Users::check_plugin(plugin)?;
                if !password::is_hash(plugin, hash) {
                    return Err(MysqlError::new(1827, "The password hash doesn't have the expected format."));
                }
                Ok((plugin.clone(), hash.clone()))
            }
        }
    }

    pub(crate) async fn create_users(
        &mut self,
        users: &[(UserName, Option<Authentication>)],
        if_not_exists: bool,
    ) -> Result<Completion, MysqlError> {
        self.require_any(Privileges::CREATE_USER, "CREATE USER")?;
        self.commit_implicitly().await?;
        let mut changes: Changes = Vec::new();
        let mut failed = Vec::new();
        for (name, authentication) in users {
            let (user, host) = self.named(name);
            Users::check_name(&user, &host)?;
            if self.engine.users.find(&user, &host).is_some() {
                if if_not_exists {
                    self.note(3163, format!("Authorization ID '{user}'@'{host}' already exists."));
                } else {
                    failed.push((user, host));
                }
                continue;
            }
            let empty = Authentication::Password { plugin: None, password: String::new() };
            let (plugin, hash) = self.credentials(authentication.as_ref().unwrap_or(&empty))?;
            let record =
                AccountRecord { user: user.clone(), host: host.clone(), plugin, hash, ..AccountRecord::default() };
            changes.push((user, host, Some(record)));
        }
        Self::failed_accounts("CREATE USER", &failed)?;
        self.engine.users.change(&changes).await?;
        Ok(Completion::default())
    }

    pub(crate) async fn alter_users(
        &mut self,
        users: &[(UserName, Option<Authentication>)],
        if_exists: bool,
    ) -> Result<Completion, MysqlError> {
        let own = |(user, host): (String, String)| user == self.account.user && host == self.account.host;
        if !users.iter().all(|(name, _)| own(self.named(name))) {
            self.require_any(Privileges::CREATE_USER, "CREATE USER")?;
        }
        self.commit_implicitly().await?;
        let mut changes: Changes = Vec::new();
        let mut failed = Vec::new();
        for (name, authentication) in users {
            let (user, host) = self.named(name);
            let Some(found) = self.engine.users.find(&user, &host) else {
                if if_exists {
                    self.note(3162, format!("Authorization ID '{user}'@'{host}' does not exist."));
                } else {
                    failed.push((user, host));
                }
                continue;
            };
            let mut record = (*found).clone();
            if let Some(authentication) = authentication {
                (record.plugin, record.hash) = self.credentials(authentication)?;
            }
            changes.push((user, host, Some(record)));
        }
        Self::failed_accounts("ALTER USER", &failed)?;
        self.engine.users.change(&changes).await?;
        Ok(Completion::default())
    }

    pub(crate) async fn drop_users(&mut self, users: &[UserName], if_exists: bool) -> Result<Completion, MysqlError> {
        self.require_any(Privileges::CREATE_USER, "CREATE USER")?;
        self.commit_implicitly().await?;
        let mut changes: Changes = Vec::new();
        let mut failed = Vec::new();
        for name in users {
            let (user, host) = self.named(name);
            if self.engine.users.find(&user, &host).is_some() {
                changes.push((user, host, None));
            } else if if_exists {
                self.note(3162, format!("Authorization ID '{user}'@'{host}' does not exist."));
            } else {
                failed.push((user, host));
            }
        }
        Self::failed_accounts("DROP USER", &failed)?;
        self.engine.users.change(&changes).await?;
        Ok(Completion::default())
    }

    pub(crate) async fn set_password(&mut self, user: &str, host: &str, text: &str) -> Result<(), MysqlError> {
        let found = self
            .engine
            .users
            .find(user, host)
            .ok_or_else(|| MysqlError::new(1133, "Can't find any matching row in the user table"))?;
        let mut record = (*found).clone();
        record.hash = password::hash(&record.plugin, text, &mut || self.engine.runtime.random());
        self.engine.users.change(&[(user.to_string(), host.to_string(), Some(record))]).await
    }

    /// The privileges that the names of a GRANT mean at a level. Error 1221 for what the level cannot have.
    fn privileges_of(names: &[String], database: bool, table: bool) -> Result<Privileges, MysqlError> {
        let grantable = match (database, table) {
            (false, _) => Privileges::ALL_GLOBAL,
            (true, false) => Privileges::all_database(),
            (true, true) => Privileges::all_table(),
        };
        let mut all = Privileges::NONE;
        for name in names {
            if name == "ALL PRIVILEGES" {
                all = all.with(grantable);
                continue;
            }
            let one = Privileges::named(name).ok_or_else(|| {
                MysqlError::new(
                    codes::PARSE_ERROR,
                    format!("You have an error in your SQL syntax; '{name}' is no privilege"),
                )
            })?;
            if !grantable.with(Privileges::GRANT_OPTION).contains(one) {
                return Err(if table {
                    MysqlError::new(
                        1144,
                        "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used",
                    )
                } else {
                    MysqlError::new(1221, "Incorrect usage of DB GRANT and GLOBAL PRIVILEGES")
                });
            }
            all = all.with(one);
        }
        Ok(all)
    }

    /// Who grants must have what is granted, and GRANT OPTION, at that level.
    fn may_grant(&self, privileges: Privileges, database: Option<&str>, table: Option<&str>) -> Result<(), MysqlError> {
        let own = match (database, table) {
            (Some(database), Some(table)) => self.account.on_table(database, table),
            (Some(database), None) => self.account.on_database(database),
            _ => self.account.global,
        };
        if own.contains(privileges.with(Privileges::GRANT_OPTION)) {
            return Ok(());
        }
        let (user, host) = (&self.account.user, &self.account.host);
        Err(match (database, table) {
            (Some(_), Some(table)) => errors::table_denied("GRANT", user, host, table),
            (Some(database), None) => errors::database_denied(user, host, database),
            _ => MysqlError::new(
                codes::ACCESS_DENIED,
                format!(
                    "Access denied for user '{user}'@'{host}' (using password: {})",
                    if self.account.hash.is_empty() { "NO" } else { "YES" }
                ),
            ),
        })
    }

    /// The database of a GRANT: an empty name is the current one.
    fn grant_level(&self, database: Option<&str>) -> Result<Option<String>, MysqlError> {
        match database {
            Some("") => Ok(Some(self.context.current_database.clone().ok_or_else(errors::no_database)?)),
            other => Ok(other.map(str::to_string)),
        }
    }

    pub(crate) async fn grant(
        &mut self,
        privileges: &[String],
        database: Option<&str>,
        table: Option<&str>,
        users: &[UserName],
        grant_option: bool,
    ) -> Result<Completion, MysqlError> {
        let database = self.grant_level(database)?;
        let mut granted = Self::privileges_of(privileges, database.is_some(), table.is_some())?;
        self.may_grant(granted, database.as_deref(), table)?;
        self.commit_implicitly().await?;
        if grant_option {
            granted = granted.with(Privileges::GRANT_OPTION);
        }
        if let (Some(database), Some(table)) = (&database, table) {
            let creating = granted.contains(Privileges::CREATE);
            if !creating && !crate::session::system::is_system(database) {
                self.stored_table(database, table)?;
            }
        }
        let mut changes: Changes = Vec::new();
        for name in users {
            let (user, host) = self.named(name);
            let Some(found) = self.engine.users.find(&user, &host) else {
                return Err(MysqlError::new(1410, "You are not allowed to create a user with GRANT"));
            };
            let mut record = (*found).clone();
            match (&database, table) {
                (None, _) => record.global = record.global.with(granted),
                (Some(database), None) => {
                    let known = record.databases.entry(database.clone()).or_default();
                    *known = known.with(granted);
                }
                (Some(database), Some(table)) => {
                    let known = record.tables.entry((database.clone(), table.to_string())).or_default();
                    *known = known.with(granted);
                }
            }
            record.databases.retain(|_, p| !p.is_empty());
            record.tables.retain(|_, p| !p.is_empty());
            changes.push((user, host, Some(record)));
        }
        self.engine.users.change(&changes).await?;
        Ok(Completion::default())
    }

    pub(crate) async fn revoke(
        &mut self,
        privileges: &[String],
        database: Option<&str>,
        table: Option<&str>,
        users: &[UserName],
    ) -> Result<Completion, MysqlError> {
        let database = self.grant_level(database)?;
        let revoked = Self::privileges_of(privileges, database.is_some(), table.is_some())?;
        // REVOKE ALL PRIVILEGES, GRANT OPTION FROM user: everything, at every level.
        let everything = database.is_none()
            && privileges.iter().any(|p| p == "ALL PRIVILEGES")
            && privileges.iter().any(|p| p == "GRANT OPTION");
        if everything {
            self.require_any(Privileges::CREATE_USER, "CREATE USER")?;
        } else {
            self.may_grant(revoked, database.as_deref(), table)?;
        }
        self.commit_implicitly().await?;
        let mut changes: Changes = Vec::new();
        for name in users {
            let (user, host) = self.named(name);
            let missing = || {
                let message = format!("There is no such grant defined for user '{user}' on host '{host}'");
                MysqlError::new(codes::NONEXISTING_GRANT, message)
            };
            let found = self.engine.users.find(&user, &host).ok_or_else(missing)?;
            let mut record = (*found).clone();
            if everything {
                record.global = Privileges::NONE;
                record.databases.clear();
                record.tables.clear();
                changes.push((user, host, Some(record)));
                continue;
            }
            match (&database, table) {
                (None, _) => record.global = record.global.without(revoked),
                (Some(database), None) => {
                    let known = record.databases.get_mut(database).ok_or_else(missing)?;
                    *known = known.without(revoked);
                }
                (Some(database), Some(table)) => {
                    let key = (database.clone(), table.to_string());
                    let known = record.tables.get_mut(&key).ok_or_else(|| {
                        let message = format!(
                            "There is no such grant defined for user '{user}' on host '{host}' on table '{table}'"
                        );
                        MysqlError::new(1147, message)
                    })?;
                    *known = known.without(revoked);
                }
            }
            record.databases.retain(|_, p| !p.is_empty());
            record.tables.retain(|_, p| !p.is_empty());
            changes.push((user, host, Some(record)));
        }
        self.engine.users.change(&changes).await?;
        Ok(Completion::default())
    }
}
