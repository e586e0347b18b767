//! CREATE USER, ALTER USER, DROP USER, GRANT, REVOKE, SET PASSWORD.
//!
//! Each says what it makes of the accounts in a function that [`Session::change_accounts`] may call more than once, so rights are checked there too.

use super::password;
use super::privilege::Privileges;
use super::store::{AccountRecord, Users};
use crate::parse::statement::{Authentication, UserName};
use crate::session::errors;
use crate::session::session::Session;
use rauk_types::MysqlError;
use rauk_types::error::codes;
use rauk_types::result::Completion;
use std::collections::BTreeMap;

/// Plugins and hashes that IDENTIFIED gives, by the place of the user in the statement: made once, since hashing takes long.
type Credentials = BTreeMap<usize, (String, String)>;

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

    fn credentials_once(
        &self,
        authentication: &Authentication,
        at: usize,
        known: &mut Credentials,
    ) -> Result<(String, String), MysqlError> {
        if let Some(made) = known.get(&at) {
            return Ok(made.clone());
        }
        let made = self.credentials(authentication)?;
        known.insert(at, made.clone());
        Ok(made)
    }

    pub(crate) async fn create_users(
        &mut self,
        users: &[(UserName, Option<Authentication>)],
        if_not_exists: bool,
    ) -> Result<Completion, MysqlError> {
        self.require_any(Privileges::CREATE_USER, "CREATE USER")?;
        self.commit_implicitly().await?;
        let mut known = Credentials::new();
        self.change_accounts(|session, draft| {
            session.require_any(Privileges::CREATE_USER, "CREATE USER")?;
            let mut failed = Vec::new();
            for (at, (name, authentication)) in users.iter().enumerate() {
                let (user, host) = session.named(name);
                Users::check_name(&user, &host)?;
                let account = draft.account(&session.engine.users, &user, &host);
                if account.is_some() {
                    if if_not_exists {
                        draft.note(3163, format!("Authorization ID '{user}'@'{host}' already exists."));
                    } else {
                        failed.push((user, host));
                    }
                    continue;
                }
                let empty = Authentication::Password { plugin: None, password: String::new() };
                let authentication = authentication.as_ref().unwrap_or(&empty);
                let (plugin, hash) = session.credentials_once(authentication, at, &mut known)?;
                *account = Some(AccountRecord { user, host, plugin, hash, ..AccountRecord::default() });
            }
            Self::failed_accounts("CREATE USER", &failed)
        })
        .await?;
        Ok(Completion::default())
    }

    /// Everybody may alter the own account.
    fn may_alter(&self, users: &[(UserName, Option<Authentication>)]) -> Result<(), MysqlError> {
        let own = |(user, host): (String, String)| user == self.account.user && host == self.account.host;
        if users.iter().all(|(name, _)| own(self.named(name))) {
            return Ok(());
        }
        self.require_any(Privileges::CREATE_USER, "CREATE USER")
    }

    pub(crate) async fn alter_users(
        &mut self,
        users: &[(UserName, Option<Authentication>)],
        if_exists: bool,
    ) -> Result<Completion, MysqlError> {
        self.may_alter(users)?;
        self.commit_implicitly().await?;
        let mut known = Credentials::new();
        self.change_accounts(|session, draft| {
            session.may_alter(users)?;
            let mut failed = Vec::new();
            for (at, (name, authentication)) in users.iter().enumerate() {
                let (user, host) = session.named(name);
                let Some(record) = draft.account(&session.engine.users, &user, &host) else {
                    if if_exists {
                        draft.note(3162, format!("Authorization ID '{user}'@'{host}' does not exist."));
                    } else {
                        failed.push((user, host));
                    }
                    continue;
                };
                if let Some(authentication) = authentication {
                    (record.plugin, record.hash) = session.credentials_once(authentication, at, &mut known)?;
                }
            }
            Self::failed_accounts("ALTER USER", &failed)
        })
        .await?;
        Ok(Completion::default())
    }

    pub(crate) async fn drop_users(&mut self, users: &[UserName], if_exists: bool) -> Result<Completion, MysqlError> {
        self.require_any(Privileges::CREATE_USER, "CREATE USER")?;
        self.commit_implicitly().await?;
        self.change_accounts(|session, draft| {
            session.require_any(Privileges::CREATE_USER, "CREATE USER")?;
            let mut failed = Vec::new();
            for name in users {
                let (user, host) = session.named(name);
                if draft.account(&session.engine.users, &user, &host).take().is_some() {
                    continue;
                }
                if if_exists {
                    draft.note(3162, format!("Authorization ID '{user}'@'{host}' does not exist."));
                } else {
                    failed.push((user, host));
                }
            }
            Self::failed_accounts("DROP USER", &failed)
        })
        .await?;
        Ok(Completion::default())
    }

    /// Everybody may set the own password.
    pub(crate) fn may_set_password(&self, user: &str, host: &str) -> Result<(), MysqlError> {
        if user == self.account.user && host == self.account.host {
            return Ok(());
        }
        self.require_any(Privileges::CREATE_USER.with(Privileges::SUPER), "CREATE USER")
    }

    pub(crate) async fn set_password(&mut self, user: &str, host: &str, text: &str) -> Result<(), MysqlError> {
        self.change_accounts(|session, draft| {
            session.may_set_password(user, host)?;
            let Some(record) = draft.account(&session.engine.users, user, host) else {
                return Err(MysqlError::new(codes::PASSWORD_NO_MATCH, "Can't find any matching row in the user table"));
            };
            record.hash = password::hash(&record.plugin, text, &mut || session.engine.runtime.random());
            Ok(())
        })
        .await
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
        let asked = Self::privileges_of(privileges, database.is_some(), table.is_some())?;
        self.may_grant(asked, database.as_deref(), table)?;
        self.commit_implicitly().await?;
        let granted = if grant_option { asked.with(Privileges::GRANT_OPTION) } else { asked };
        if let (Some(database), Some(table)) = (&database, table) {
            let creating = granted.contains(Privileges::CREATE);
            if !creating && !crate::session::system::is_system(database) && !self.is_named(database, table) {
                self.stored_table(database, table)?;
            }
        }
        self.change_accounts(|session, draft| {
            session.may_grant(asked, database.as_deref(), table)?;
            for name in users {
                let (user, host) = session.named(name);
                let Some(record) = draft.account(&session.engine.users, &user, &host) else {
                    return Err(MysqlError::new(1410, "You are not allowed to create a user with GRANT"));
                };
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
            }
            Ok(())
        })
        .await?;
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
        let may_revoke = |session: &Session| match everything {
            true => session.require_any(Privileges::CREATE_USER, "CREATE USER"),
            false => session.may_grant(revoked, database.as_deref(), table),
        };
        may_revoke(self)?;
        self.commit_implicitly().await?;
        self.change_accounts(|session, draft| {
            may_revoke(session)?;
            for name in users {
                let (user, host) = session.named(name);
                let missing = || {
                    let message = format!("There is no such grant defined for user '{user}' on host '{host}'");
                    MysqlError::new(codes::NONEXISTING_GRANT, message)
                };
                let account = draft.account(&session.engine.users, &user, &host);
                let record = account.as_mut().ok_or_else(missing)?;
                if everything {
                    record.global = Privileges::NONE;
                    record.databases.clear();
                    record.tables.clear();
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
            }
            Ok(())
        })
        .await?;
        Ok(Completion::default())
    }
}
