//! CREATE USER, ALTER USER, DROP USER, RENAME USER, SET PASSWORD.
//!
//! Each says what it makes of the accounts in a function that [`Session::change_accounts`] may call more than once, so rights are checked there too.

use super::passwords::{Credentials, Generated};
use super::privilege::Privileges;
use super::record::AccountRecord;
use super::store::Users;
use crate::parse::Statement;
use crate::parse::ast::{AccountOptions, Expiry, RoleChoice, SetPassword, UserDefinition};
use crate::parse::statement::{Authentication, UserName};
use crate::session::run::Done;
use crate::session::session::Session;
use rauk_types::MysqlError;
use rauk_types::error::codes;
use rauk_types::result::{Completion, ResultSink};
use std::collections::BTreeMap;

const RENAME_ROLE: u16 = 3532;
const MUST_CHANGE_PASSWORD: u16 = 1820;

/// What IDENTIFIED gives, by the place of the user in the statement: made once.
type Known = BTreeMap<usize, Credentials>;

/// What a session may do whose password has expired.
fn changes_passwords(statement: &Statement) -> bool {
    matches!(statement, Statement::AlterUser { .. } | Statement::SetPassword(_))
}

fn must_change_password() -> MysqlError {
    let message = "You must reset your password using ALTER USER statement before executing this statement.";
    MysqlError::new(MUST_CHANGE_PASSWORD, message)
}

impl Session {
    /// CURRENT_USER arrives as two empty names.
    pub(super) fn named(&self, name: &UserName) -> (String, String) {
        if name.user.is_empty() && name.host.is_empty() {
            return (self.account.user.clone(), self.account.host.clone());
        }
        (name.user.clone(), name.host.clone())
    }

    fn full_name(&self, name: &UserName) -> UserName {
        let (user, host) = self.named(name);
        UserName { user, host }
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

    /// Error 1820 while the session's password has expired, but for statements that change passwords.
    pub(crate) fn check_expired(&self, statement: &Statement) -> Result<(), MysqlError> {
        if self.password_expired && !changes_passwords(statement) { Err(must_change_password()) } else { Ok(()) }
    }

    /// Error 1820 for a command that is no statement.
    pub(crate) fn check_not_expired(&self) -> Result<(), MysqlError> {
        if self.password_expired { Err(must_change_password()) } else { Ok(()) }
    }

    /// The same in every draft.
    fn credentials_once(
        &self,
        authentication: &Authentication,
        at: usize,
        keep: Option<&str>,
        known: &mut Known,
    ) -> Result<Credentials, MysqlError> {
        if let Some(made) = known.get(&at) {
            return Ok(made.clone());
        }
        let made = self.credentials(authentication, keep)?;
        known.insert(at, made.clone());
        Ok(made)
    }

    /// Passwords that were made for the accounts of a statement that was carried out.
    fn generated(&self, users: &[UserDefinition], known: &Known) -> Vec<Generated> {
        let made = known.iter().filter(|(_, made)| made.random);
        made.map(|(at, made)| {
            let (user, host) = self.named(&users[*at].name);
            Generated { name: UserName { user, host }, text: made.text.clone().unwrap_or_default() }
        })
        .collect()
    }

    pub(crate) async fn create_users(
        &mut self,
        users: &[UserDefinition],
        options: &AccountOptions,
        if_not_exists: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
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
        let mut known = Known::new();
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
                let name = UserName { user: user.clone(), host: host.clone() };
                let locked = options.lock.unwrap_or(false);
                let mut record = AccountRecord { user, host, locked, ..AccountRecord::default() };
                record.rules.apply(options, session.engine.now_micros())?;
                record.rules.unlocks = 0;
                let empty = Authentication::Password { plugin: None, password: String::new() };
                let authentication = definition.authentication.as_ref().unwrap_or(&empty);
                let made = session.credentials_once(authentication, at, None, &mut known)?;
                let expired = record.rules.expired;
                session.draft_password(&mut record, &made, false)?;
                record.rules.expired = expired;
                *account = Some(record);
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
        let generated = self.generated(users, &known);
        Ok(self.send_generated(&generated, sink))
    }

    /// Everybody may change the own password and default roles; a second password takes a privilege.
    fn may_alter(&self, users: &[UserDefinition], options: &AccountOptions) -> Result<(), MysqlError> {
        let own = |(user, host): (String, String)| self.own.is(&UserName { user, host });
        let plain = AccountOptions { default_role: options.default_role.clone(), ..AccountOptions::default() };
        if *options == plain && users.iter().all(|definition| own(self.named(&definition.name))) {
            return match users.iter().any(|definition| definition.retain || definition.discard) {
                true => self.may_have_second_password(),
                false => Ok(()),
            };
        }
        self.require_any(Privileges::CREATE_USER, "CREATE USER")
    }

    fn may_have_second_password(&self) -> Result<(), MysqlError> {
        let any = Privileges::CREATE_USER.with(Privileges::APPLICATION_PASSWORD_ADMIN);
        self.require_any(any, "CREATE USER or APPLICATION_PASSWORD_ADMIN")
    }

    pub(crate) async fn alter_users(
        &mut self,
        users: &[UserDefinition],
        options: &AccountOptions,
        if_exists: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        self.may_alter(users, options)?;
        if self.password_expired && users.iter().any(|definition| definition.authentication.is_none()) {
            return Err(must_change_password());
        }
        self.commit_implicitly().await?;
        let mut known = Known::new();
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
                    session.check_replaced(record, definition.replaced.as_deref())?;
                    let made = session.credentials_once(authentication, at, None, &mut known)?;
                    // Rules that the same statement sets hold for the password already.
                    record.rules.apply(options, session.engine.now_micros())?;
                    session.draft_password(record, &made, definition.retain)?;
                    record.rules.expired = made.bare || options.expiry == Some(Expiry::Now);
                } else {
                    record.rules.apply(options, session.engine.now_micros())?;
                }
                if definition.discard {
                    record.rules.second.clear();
                }
                record.locked = options.lock.unwrap_or(record.locked);
                if let Some(choice) = &options.default_role {
                    session.draft_default_roles(draft, choice, &UserName { user, host })?;
                }
            }
            Self::failed_accounts("ALTER USER", &failed)
        })
        .await?;
        let own = users.iter().any(|definition| self.own.is(&self.full_name(&definition.name)));
        if own && options.expiry == Some(Expiry::Now) {
            self.password_expired = true;
        }
        let generated = self.generated(users, &known);
        Ok(self.send_generated(&generated, sink))
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

    /// Everybody may set the own password; a second one takes a privilege.
    fn may_set_password(&self, name: &UserName, retain: bool) -> Result<(), MysqlError> {
        match (self.own.is(name), retain) {
            (true, false) => Ok(()),
            (true, true) => self.may_have_second_password(),
            (false, _) => self.require_any(Privileges::CREATE_USER.with(Privileges::SUPER), "CREATE USER"),
        }
    }

    /// SET PASSWORD: the plugin stays.
    pub(crate) async fn set_password(
        &mut self,
        change: &SetPassword,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        let name = match &change.user {
            Some(name) => self.full_name(name),
            None => self.own.name(),
        };
        self.may_set_password(&name, change.retain)?;
        self.commit_implicitly().await?;
        let authentication = match &change.password {
            Some(text) => Authentication::Password { plugin: None, password: text.clone() },
            None => Authentication::Random { plugin: None },
        };
        let mut known = Known::new();
        self.change_accounts(|session, draft| {
            session.may_set_password(&name, change.retain)?;
            let Some(record) = draft.account(&session.engine.users, &name.user, &name.host) else {
                return Err(MysqlError::new(codes::PASSWORD_NO_MATCH, "Can't find any matching row in the user table"));
            };
            session.check_replaced(record, change.replaced.as_deref())?;
            let plugin = record.plugin.clone();
            let mut made = session.credentials_once(&authentication, 0, Some(&plugin), &mut known)?;
            if made.plugin != plugin {
                // Somebody gave the account another plugin while this was drafted.
                known.clear();
                made = session.credentials_once(&authentication, 0, Some(&plugin), &mut known)?;
            }
            session.draft_password(record, &made, change.retain)
        })
        .await?;
        let made = known.remove(&0).filter(|made| made.random);
        let generated: Vec<Generated> =
            made.map(|made| Generated { name, text: made.text.unwrap_or_default() }).into_iter().collect();
        Ok(self.send_generated(&generated, sink))
    }
}
