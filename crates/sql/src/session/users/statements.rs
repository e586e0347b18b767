//! CREATE USER, ALTER USER, DROP USER, RENAME USER, SET PASSWORD.
//!
//! Each says what it makes of the accounts in a function that [`Session::change_accounts`] may call more than once, so rights are checked there too.

use super::password;
use super::privilege::Privileges;
use super::record::AccountRecord;
use super::store::Users;
use crate::parse::ast::{AccountOptions, RoleChoice, UserDefinition};
use crate::parse::statement::{Authentication, UserName};
use crate::session::session::Session;
use rauk_types::MysqlError;
use rauk_types::error::codes;
use rauk_types::result::Completion;
use std::collections::BTreeMap;

const INCORRECT_PASSWORD: u16 = 3891;
const RENAME_ROLE: u16 = 3532;

/// Plugins and hashes that IDENTIFIED gives, by the place of the user in the statement: made once, since hashing takes long.
type Credentials = BTreeMap<usize, (String, String)>;

/// REPLACE names the present password. Error 3891.
fn check_replaced(record: &AccountRecord, authentication: &Authentication) -> Result<(), MysqlError> {
    let Authentication::Password { replaced: Some(present), .. } = authentication else { return Ok(()) };
    if password::matches(&record.plugin, &record.hash, present) {
        return Ok(());
    }
    let message = "Incorrect current password. Specify the correct password which has to be replaced.";
    Err(MysqlError::new(INCORRECT_PASSWORD, message))
}

impl Session {
    /// CURRENT_USER arrives as two empty names.
    pub(super) fn named(&self, name: &UserName) -> (String, String) {
        if name.user.is_empty() && name.host.is_empty() {
            return (self.account.user.clone(), self.account.host.clone());
        }
        (name.user.clone(), name.host.clone())
    }

    /// `accounts` failed, as one error 1396 that lists them.
    pub(super) fn failed_accounts(operation: &str, accounts: &[(String, String)]) -> Result<(), MysqlError> {
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
            Authentication::Password { plugin, password, .. } => {
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
        users: &[UserDefinition],
        options: &AccountOptions,
        if_not_exists: bool,
    ) -> Result<Completion, MysqlError> {
        let default = match &options.default_role {
            Some(RoleChoice::Named(roles)) => roles.as_slice(),
            _ => &[],
        };
        let may = |session: &Session| {
            session.require_any(Privileges::CREATE_USER, "CREATE USER")?;
            session.may_grant_roles(default)
        };
        may(self)?;
        self.commit_implicitly().await?;
        let mut known = Credentials::new();
        self.change_accounts(|session, draft| {
            may(session)?;
            let mut failed = Vec::new();
            for (at, definition) in users.iter().enumerate() {
                let (user, host) = session.named(&definition.name);
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
                let empty = Authentication::Password { plugin: None, password: String::new(), replaced: None };
                let authentication = definition.authentication.as_ref().unwrap_or(&empty);
                let (plugin, hash) = session.credentials_once(authentication, at, &mut known)?;
                let locked = options.lock.unwrap_or(false);
                let name = UserName { user: user.clone(), host: host.clone() };
                *account = Some(AccountRecord { user, host, plugin, hash, locked, ..AccountRecord::default() });
                // A default role of CREATE USER is granted with it.
                for role in default {
                    session.draft_grant(draft, role, &name, false)?;
                }
                if let Some(account) = draft.account(&session.engine.users, &name.user, &name.host) {
                    account.default_roles = default.iter().cloned().collect();
                }
            }
            Self::failed_accounts("CREATE USER", &failed)
        })
        .await?;
        Ok(Completion::default())
    }

    /// Everybody may change the own password and default roles.
    fn may_alter(&self, users: &[UserDefinition], options: &AccountOptions) -> Result<(), MysqlError> {
        let own = |(user, host): (String, String)| self.own.is(&UserName { user, host });
        if options.lock.is_none() && users.iter().all(|definition| own(self.named(&definition.name))) {
            return Ok(());
        }
        self.require_any(Privileges::CREATE_USER, "CREATE USER")
    }

    pub(crate) async fn alter_users(
        &mut self,
        users: &[UserDefinition],
        options: &AccountOptions,
        if_exists: bool,
    ) -> Result<Completion, MysqlError> {
        self.may_alter(users, options)?;
        self.commit_implicitly().await?;
        let mut known = Credentials::new();
        self.change_accounts(|session, draft| {
            session.may_alter(users, options)?;
            let mut failed = Vec::new();
            for (at, definition) in users.iter().enumerate() {
                let (user, host) = session.named(&definition.name);
                let Some(record) = draft.account(&session.engine.users, &user, &host) else {
                    if if_exists {
                        draft.note(3162, format!("Authorization ID '{user}'@'{host}' does not exist."));
                    } else {
                        failed.push((user, host));
                    }
                    continue;
                };
                if let Some(authentication) = &definition.authentication {
                    check_replaced(record, authentication)?;
                    (record.plugin, record.hash) = session.credentials_once(authentication, at, &mut known)?;
                }
                record.locked = options.lock.unwrap_or(record.locked);
                if let Some(choice) = &options.default_role {
                    session.draft_default_roles(draft, choice, &UserName { user, host })?;
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
            session.draft_drops("DROP USER", users, if_exists, draft)
        })
        .await?;
        Ok(Completion::default())
    }

    /// RENAME USER. What was granted to an account goes with it; views whose definer it is keep the old name. What
    /// was granted as a role keeps its name (3532).
    pub(crate) async fn rename_users(&mut self, pairs: &[(UserName, UserName)]) -> Result<Completion, MysqlError> {
        self.require_any(Privileges::CREATE_USER, "CREATE USER")?;
        self.commit_implicitly().await?;
        self.change_accounts(|session, draft| {
            session.require_any(Privileges::CREATE_USER, "CREATE USER")?;
            let users = &session.engine.users;
            let mut failed = Vec::new();
            for (from, to) in pairs {
                let (user, host) = session.named(from);
                let from = UserName { user, host };
                Users::check_name(&to.user, &to.host)?;
                if users.all().iter().any(|record| record.roles.contains_key(&from)) || users.is_mandatory(&from) {
                    return Err(MysqlError::new(RENAME_ROLE, "Renaming of a role identifier is forbidden"));
                }
                let taken = draft.account(users, &to.user, &to.host).is_some();
                let record = draft.account(users, &from.user, &from.host);
                if taken || record.is_none() {
                    failed.push((from.user, from.host));
                    continue;
                }
                let record = record.take().map(|record| AccountRecord {
                    user: to.user.clone(),
                    host: to.host.clone(),
                    ..record
                });
                *draft.account(users, &to.user, &to.host) = record;
            }
            Self::failed_accounts("RENAME USER", &failed)
        })
        .await?;
        Ok(Completion::default())
    }

    /// Everybody may set the own password.
    pub(crate) fn may_set_password(&self, user: &str, host: &str) -> Result<(), MysqlError> {
        if self.own.user == user && self.own.host.eq_ignore_ascii_case(host) {
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
}
