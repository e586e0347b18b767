//! CREATE ROLE, DROP ROLE, GRANT and REVOKE of roles, SET ROLE, SET DEFAULT ROLE.
//!
//! DROP takes a role from everybody who has it in the same change: the role's document counts its grants, so that a
//! GRANT that comes meanwhile makes the statement begin again.

use super::change::Draft;
use super::password;
use super::privilege::Privileges;
use super::record::{AccountRecord, quoted_name};
use super::store::Users;
use crate::parse::ast::{Forgiving, RoleChoice, RoleStatement};
use crate::parse::statement::UserName;
use crate::session::errors;
use crate::session::server::SessionServer;
use crate::session::session::Session;
use rauk_types::MysqlError;
use std::collections::BTreeMap;
use std::sync::Arc;

const UNKNOWN_AUTHORIZATION: u16 = 3523;
const ROLE_NOT_GRANTED: u16 = 3530;
const MANDATORY_ROLE: u16 = 3628;
const ROLE_LOOP: u16 = 4027;
const CREATES: Privileges = Privileges::CREATE_USER.with(Privileges::CREATE_ROLE);
const DROPS: Privileges = Privileges::CREATE_USER.with(Privileges::DROP_ROLE);

pub(super) fn unknown_authorization(name: &UserName) -> MysqlError {
    MysqlError::new(UNKNOWN_AUTHORIZATION, format!("Unknown authorization ID {}", quoted_name(name)))
}

fn not_granted(role: &UserName, to: &UserName) -> MysqlError {
    MysqlError::new(ROLE_NOT_GRANTED, format!("{} is not granted to {}", quoted_name(role), quoted_name(to)))
}

fn mandatory(role: &UserName) -> MysqlError {
    MysqlError::new(
        MANDATORY_ROLE,
        format!(
            "The role {} is a mandatory role and can't be revoked or dropped. The restriction can be lifted by excluding the role identifier from the global variable mandatory_roles.",
            quoted_name(role)
        ),
    )
}

/// Takes a role from all accounts that have it.
pub(super) fn take_from_all(draft: &mut Draft, users: &Users, role: &UserName) {
    for record in users.all().iter().filter(|record| record.roles.contains_key(role)) {
        if let Some(record) = draft.account(users, &record.user, &record.host) {
            record.roles.remove(role);
            record.default_roles.remove(role);
        }
    }
}

/// The roles of `granted` that a choice means for an account. Error 3530.
fn chosen(
    choice: &RoleChoice,
    granted: &BTreeMap<UserName, bool>,
    default: &[UserName],
    of: &UserName,
) -> Result<Vec<UserName>, MysqlError> {
    let check = |roles: &[UserName]| {
        let missing = roles.iter().find(|role| !granted.contains_key(role));
        missing.map_or(Ok(()), |role| Err(not_granted(role, of)))
    };
    Ok(match choice {
        RoleChoice::Default => default.to_vec(),
        RoleChoice::None => vec![],
        RoleChoice::All => granted.keys().cloned().collect(),
        RoleChoice::AllExcept(roles) => {
            check(roles)?;
            granted.keys().filter(|role| !roles.contains(role)).cloned().collect()
        }
        RoleChoice::Named(roles) => {
            check(roles)?;
            let mut roles = roles.clone();
            roles.sort();
            roles.dedup();
            roles
        }
    })
}

impl Session {
    pub(crate) async fn run_role_statement(&mut self, statement: &RoleStatement) -> Result<(), MysqlError> {
        match statement {
            RoleStatement::Create { roles, if_not_exists } => self.create_roles(roles, *if_not_exists).await,
            RoleStatement::Drop { roles, if_exists } => self.drop_roles(roles, *if_exists).await,
            RoleStatement::Grant { roles, users, admin } => self.grant_roles(roles, users, *admin).await,
            RoleStatement::Revoke { roles, users, forgiving } => self.revoke_roles(roles, users, *forgiving).await,
            RoleStatement::Set(choice) => self.set_role(choice),
            RoleStatement::SetDefault { choice, users } => self.set_default_roles(choice, users).await,
        }
    }

    async fn create_roles(&mut self, roles: &[UserName], if_not_exists: bool) -> Result<(), MysqlError> {
        let may = |session: &Session| session.require_any(CREATES, "CREATE USER, CREATE ROLE");
        may(self)?;
        self.commit_implicitly().await?;
        self.change_accounts(|session, draft| {
            may(session)?;
            let mut failed = Vec::new();
            for role in roles {
                let (user, host) = (&role.user, &role.host);
                if user.is_empty() {
                    failed.push((user.clone(), host.clone()));
                    continue;
                }
                Users::check_name(user, host)?;
                let account = draft.account(&session.engine.users, user, host);
                if account.is_none() {
                    *account = Some(AccountRecord {
                        user: user.clone(),
                        host: host.clone(),
                        plugin: password::CACHING_SHA2.to_string(),
                        locked: true,
                        ..AccountRecord::default()
                    });
                } else if if_not_exists {
                    draft.note(3163, format!("Authorization ID '{user}'@'{host}' already exists."));
                } else {
                    failed.push((user.clone(), host.clone()));
                }
            }
            Session::failed_accounts("CREATE ROLE", &failed)
        })
        .await
    }

    async fn drop_roles(&mut self, roles: &[UserName], if_exists: bool) -> Result<(), MysqlError> {
        let may = |session: &Session| session.require_any(DROPS, "CREATE USER, DROP ROLE");
        may(self)?;
        self.commit_implicitly().await?;
        self.change_accounts(|session, draft| {
            may(session)?;
            session.draft_drops("DROP ROLE", roles, if_exists, draft)
        })
        .await
    }

    /// Drops accounts, and takes them from whomever they are granted to as roles.
    pub(super) fn draft_drops(
        &self,
        operation: &str,
        names: &[UserName],
        if_exists: bool,
        draft: &mut Draft,
    ) -> Result<(), MysqlError> {
        let users = &self.engine.users;
        let mut failed = Vec::new();
        for name in names {
            let (user, host) = self.named(name);
            let name = UserName { user, host };
            if users.is_mandatory(&name) {
                return Err(mandatory(&name));
            }
            let (user, host) = (&name.user, &name.host);
            let found = draft.account(users, user, host).take();
            match found {
                Some(record) => {
                    // CREATE ROLE makes no users, and DROP ROLE by itself ends none.
                    if !record.locked {
                        self.require_any(Privileges::CREATE_USER, "CREATE USER")?;
                    }
                    take_from_all(draft, users, &name);
                }
                None if if_exists => draft.note(3162, format!("Authorization ID '{user}'@'{host}' does not exist.")),
                None => failed.push((user.clone(), host.clone())),
            }
        }
        Session::failed_accounts(operation, &failed)
    }

    /// ROLE_ADMIN, or every role WITH ADMIN OPTION.
    pub(super) fn may_grant_roles(&self, roles: &[UserName]) -> Result<(), MysqlError> {
        if self.account.global.intersects(Privileges::ROLE_ADMIN.with(Privileges::SUPER)) {
            return Ok(());
        }
        let admin = |role: &UserName| self.account.roles.get(role).copied().unwrap_or(false);
        match roles.iter().all(admin) {
            true => Ok(()),
            false => Err(errors::needs_privilege("WITH ADMIN, ROLE_ADMIN, SUPER")),
        }
    }

    /// Grants one role to one account. Errors 3523, 4027.
    pub(super) fn draft_grant(
        &self,
        draft: &mut Draft,
        role: &UserName,
        to: &UserName,
        admin: bool,
    ) -> Result<(), MysqlError> {
        let users = &self.engine.users;
        let Some(of_role) = draft.account(users, &role.user, &role.host) else {
            return Err(unknown_authorization(role));
        };
        of_role.grants += 1;
        if draft.account(users, &to.user, &to.host).is_none() {
            return Err(unknown_authorization(to));
        }
        if draft.leads_to(users, role, to) {
            let message = format!(
                "User account {} is directly or indirectly granted to the role {}. The GRANT would create a loop",
                quoted_name(role),
                quoted_name(to)
            );
            return Err(MysqlError::new(ROLE_LOOP, message));
        }
        if let Some(record) = draft.account(users, &to.user, &to.host) {
            *record.roles.entry(role.clone()).or_default() |= admin;
        }
        Ok(())
    }

    async fn grant_roles(&mut self, roles: &[UserName], to: &[UserName], admin: bool) -> Result<(), MysqlError> {
        let named = |session: &Session, name: &UserName| {
            let (user, host) = session.named(name);
            UserName { user, host }
        };
        self.may_grant_roles(roles)?;
        self.commit_implicitly().await?;
        self.change_accounts(|session, draft| {
            session.may_grant_roles(roles)?;
            for user in to {
                let user = named(session, user);
                for role in roles {
                    session.draft_grant(draft, &named(session, role), &user, admin)?;
                }
            }
            Ok(())
        })
        .await
    }

    async fn revoke_roles(
        &mut self,
        roles: &[UserName],
        from: &[UserName],
        forgiving: Forgiving,
    ) -> Result<(), MysqlError> {
        self.may_grant_roles(roles)?;
        self.commit_implicitly().await?;
        self.change_accounts(|session, draft| {
            session.may_grant_roles(roles)?;
            let users = &session.engine.users;
            for name in from {
                let (user, host) = session.named(name);
                let name = UserName { user, host };
                if draft.account(users, &name.user, &name.host).is_none() {
                    if !forgiving.unknown_users {
                        return Err(unknown_authorization(&name));
                    }
                    draft.warn(3162, format!("Authorization ID '{}'@'{}' does not exist.", name.user, name.host));
                    continue;
                }
                for role in roles {
                    if users.is_mandatory(role) {
                        return Err(mandatory(role));
                    }
                    let exists = draft.account(users, &role.user, &role.host).is_some();
                    let Some(record) = draft.account(users, &name.user, &name.host) else { continue };
                    if record.roles.remove(role).is_some() {
                        record.default_roles.remove(role);
                        continue;
                    }
                    let error = if exists { not_granted(role, &name) } else { unknown_authorization(role) };
                    if !forgiving.missing_grants {
                        return Err(error);
                    }
                    draft.warn(error.code, error.message);
                }
            }
            Ok(())
        })
        .await
    }

    fn set_role(&mut self, choice: &RoleChoice) -> Result<(), MysqlError> {
        let users = &self.engine.users;
        let granted = users.granted_roles(&self.own);
        let default: Vec<UserName> =
            self.own.default_roles.iter().filter(|role| granted.contains_key(role)).cloned().collect();
        let active = chosen(choice, &granted, &default, &self.own.name())?;
        self.activate(active);
        Ok(())
    }

    /// Makes roles active, and all others not.
    pub(crate) fn activate(&mut self, roles: Vec<UserName>) {
        self.account = self.engine.users.with_roles(&self.own, &roles);
        self.context.server = Arc::new(SessionServer::new(self.engine.clone(), self.account.clone()));
        self.context.current_role = match roles.is_empty() {
            true => "NONE".to_string(),
            false => roles.iter().map(quoted_name).collect::<Vec<_>>().join(","),
        };
        self.active_roles = roles;
    }

    /// One's own may be set by everybody.
    pub(super) fn may_set_default_roles(&self, users: &[UserName]) -> Result<(), MysqlError> {
        let own = |name: &UserName| {
            let (user, host) = self.named(name);
            self.own.is(&UserName { user, host })
        };
        if users.iter().all(own) {
            return Ok(());
        }
        self.require_any(Privileges::CREATE_USER, "CREATE USER")
    }

    async fn set_default_roles(&mut self, choice: &RoleChoice, of: &[UserName]) -> Result<(), MysqlError> {
        self.may_set_default_roles(of)?;
        self.commit_implicitly().await?;
        self.change_accounts(|session, draft| {
            session.may_set_default_roles(of)?;
            for name in of {
                let (user, host) = session.named(name);
                let name = UserName { user, host };
                if !session.draft_default_roles(draft, choice, &name)? {
                    return Err(unknown_authorization(&name));
                }
            }
            Ok(())
        })
        .await
    }

    /// `false`: there is no such account.
    pub(super) fn draft_default_roles(
        &self,
        draft: &mut Draft,
        choice: &RoleChoice,
        of: &UserName,
    ) -> Result<bool, MysqlError> {
        let users = &self.engine.users;
        let Some(record) = draft.account(users, &of.user, &of.host) else { return Ok(false) };
        let granted = users.granted_roles(record);
        record.default_roles = chosen(choice, &granted, &[], of)?.into_iter().collect();
        Ok(true)
    }
}
