//! GRANT and REVOKE of privileges.
//!
//! A privilege is granted globally, on a database, on a table or on columns of one. REVOKE on a table takes the same
//! privileges on its columns, too, as in MySQL. With `partial_revokes`, REVOKE on a database of what an account has
//! globally restricts it there; restrictions hold whatever the variable says later, and go with what a restricted
//! account grants.

use super::change::Draft;
use super::privilege::Privileges;
use super::record::AccountRecord;
use crate::parse::ast::{Forgiving, PrivilegeItem};
use crate::parse::statement::UserName;
use crate::session::errors;
use crate::session::session::Session;
use rauk_types::MysqlError;
use rauk_types::error::codes;
use rauk_types::result::Completion;
use std::collections::BTreeSet;

/// Database and table of a GRANT as written: `None` is `*`, an empty database the current one.
type Written<'a> = (Option<&'a str>, Option<&'a str>);

const TABLE_GRANT_MISSING: u16 = 1147;
const ILLEGAL_LEVEL: u16 = 3619;
const ILLEGAL_ON_TABLE: u16 = 1144;

/// What is granted or revoked, and where.
struct Asked<'a> {
    database: Option<String>,
    table: Option<&'a str>,
    privileges: Privileges,
    columns: Vec<(String, Privileges)>,
}

impl Asked<'_> {
    fn table_key(&self) -> Option<(String, String)> {
        Some((self.database.clone()?, self.table?.to_string()))
    }
}

fn illegal() -> MysqlError {
    let message = "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used";
    MysqlError::new(ILLEGAL_ON_TABLE, message)
}

/// The privileges that the names of a GRANT mean at a level. Errors 1144, 1221 for what the level cannot have.
fn privileges_of(items: &[PrivilegeItem], database: bool, table: bool) -> Result<Privileges, MysqlError> {
    let grantable = match (database, table) {
        (false, _) => Privileges::ALL_GLOBAL,
        (true, false) => Privileges::all_database(),
        (true, true) => Privileges::all_table(),
    };
    let mut all = Privileges::NONE;
    for item in items.iter().filter(|item| item.columns.is_empty()) {
        if item.name == "ALL PRIVILEGES" {
            all = all.with(grantable);
            continue;
        }
        let one = named(&item.name)?;
        if !grantable.with(Privileges::GRANT_OPTION).contains(one) {
            return Err(if Privileges::all_dynamic().contains(one) {
                MysqlError::new(ILLEGAL_LEVEL, format!("Illegal privilege level specified for {}", item.name))
            } else if table {
                illegal()
            } else {
                MysqlError::new(1221, "Incorrect usage of DB GRANT and GLOBAL PRIVILEGES")
            });
        }
        all = all.with(one);
    }
    Ok(all)
}

fn named(name: &str) -> Result<Privileges, MysqlError> {
    Privileges::named(name).ok_or_else(|| {
        let message = format!("You have an error in your SQL syntax; '{name}' is no privilege");
        MysqlError::new(codes::PARSE_ERROR, message)
    })
}

impl Session {
    /// What a statement asks for. Errors 1046, 1054, 1064, 1144, 1146, 1221.
    fn asked<'a>(&self, items: &[PrivilegeItem], level: Written<'a>, revokes: bool) -> Result<Asked<'a>, MysqlError> {
        let database = match level.0 {
            Some("") => Some(self.context.current_database.clone().ok_or_else(errors::no_database)?),
            other => other.map(str::to_string),
        };
        let table = level.1;
        let privileges = privileges_of(items, database.is_some(), table.is_some())?;
        let mut columns: Vec<(String, Privileges)> = Vec::new();
        for item in items.iter().filter(|item| !item.columns.is_empty()) {
            let privilege = named(&item.name)?;
            if !Privileges::all_column().contains(privilege) {
                let message =
                    format!("You have an error in your SQL syntax; '{}' is no privilege on columns", item.name);
                return Err(MysqlError::new(codes::PARSE_ERROR, message));
            }
            let (Some(database), Some(table)) = (&database, table) else { return Err(illegal()) };
            let names = match revokes {
                true => None,
                false => Some(self.column_names(database, table)?),
            };
            for column in &item.columns {
                let known = names.as_ref().map(|names| names.iter().find(|name| name.eq_ignore_ascii_case(column)));
                let name = match known {
                    Some(Some(name)) => name,
                    Some(None) => {
                        let message = format!("Unknown column '{column}' in '{table}'");
                        return Err(MysqlError::new(codes::BAD_FIELD, message));
                    }
                    None => column,
                };
                match columns.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
                    Some((_, privileges)) => *privileges = privileges.with(privilege),
                    None => columns.push((name.clone(), privilege)),
                }
            }
        }
        Ok(Asked { database, table, privileges, columns })
    }

    /// Of a table or view.
    fn column_names(&self, database: &str, table: &str) -> Result<Vec<String>, MysqlError> {
        let schema = match self.engine.database.view(database, table) {
            Some(view) => crate::session::system::schema_of_view(&self.viewer(), &view)?,
            None => self.stored_table(database, table)?.schema().clone(),
        };
        Ok(schema.visible_columns().iter().map(|column| column.name.clone()).collect())
    }

    /// Whoever grants must have what is granted, and GRANT OPTION, at that level.
    fn may_grant(&self, asked: &Asked<'_>) -> Result<(), MysqlError> {
        let (database, table) = (asked.database.as_deref(), asked.table);
        let own = match (database, table) {
            (Some(database), Some(table)) => self.account.on_table(database, table),
            (Some(database), None) => self.account.on_database(database),
            // An account with SUPER that an older version has made lacks dynamic privileges that came later.
            _ if self.account.global.contains(Privileges::SUPER) => self.account.global.with(Privileges::all_dynamic()),
            _ => self.account.global,
        };
        let on_columns = || {
            let (Some(database), Some(table)) = (database, table) else { return asked.columns.is_empty() };
            asked
                .columns
                .iter()
                .all(|(column, privileges)| self.account.on_column(database, table, column, *privileges))
        };
        if own.contains(asked.privileges.with(Privileges::GRANT_OPTION)) && on_columns() {
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

    pub(crate) async fn grant(
        &mut self,
        items: &[PrivilegeItem],
        level: Written<'_>,
        users: &[UserName],
        grant_option: bool,
    ) -> Result<Completion, MysqlError> {
        let asked = self.asked(items, level, false)?;
        self.may_grant(&asked)?;
        self.commit_implicitly().await?;
        let granted = if grant_option { asked.privileges.with(Privileges::GRANT_OPTION) } else { asked.privileges };
        if let (Some(database), Some(table)) = (&asked.database, asked.table) {
            let creating = granted.contains(Privileges::CREATE);
            if !creating && !crate::session::system::is_system(database) && !self.is_named(database, table) {
                self.stored_table(database, table)?;
            }
        }
        self.change_accounts(|session, draft| {
            session.may_grant(&asked)?;
            for name in users {
                let (user, host) = session.named(name);
                let Some(record) = draft.account(&session.engine.users, &user, &host) else {
                    return Err(MysqlError::new(1410, "You are not allowed to create a user with GRANT"));
                };
                match (&asked.database, asked.table_key()) {
                    (None, _) => grant_globally(record, granted, &session.account),
                    (Some(database), None) => {
                        let left = end_restriction(record, database, granted);
                        let known = record.databases.entry(database.clone()).or_default();
                        *known = known.with(left);
                    }
                    (Some(_), Some(key)) => {
                        let known = record.tables.entry(key).or_default();
                        *known = known.with(granted);
                    }
                }
                if let Some(key) = asked.table_key() {
                    let columns = record.columns.entry(key).or_default();
                    for (column, privileges) in &asked.columns {
                        let known = columns.entry(column.clone()).or_default();
                        *known = known.with(*privileges);
                    }
                }
                record.forget_empty();
            }
            Ok(())
        })
        .await?;
        Ok(Completion::default())
    }

    pub(crate) async fn revoke(
        &mut self,
        items: &[PrivilegeItem],
        level: Written<'_>,
        users: &[UserName],
        forgiving: Forgiving,
    ) -> Result<Completion, MysqlError> {
        let asked = self.asked(items, level, true)?;
        // REVOKE ALL PRIVILEGES, GRANT OPTION FROM user: everything, at every level.
        let has = |name: &str| items.iter().any(|item| item.name == name);
        let everything = asked.database.is_none() && has("ALL PRIVILEGES") && has("GRANT OPTION");
        let may_revoke = |session: &Session| match everything {
            true => session.require_any(Privileges::CREATE_USER, "CREATE USER"),
            false => session.may_grant(&asked),
        };
        may_revoke(self)?;
        self.commit_implicitly().await?;
        self.change_accounts(|session, draft| {
            may_revoke(session)?;
            for name in users {
                let (user, host) = session.named(name);
                let result = session.draft_revoke(draft, &asked, everything, (&user, &host));
                match result {
                    Err(Missing::User(error)) if forgiving.unknown_users => {
                        let message = format!("Authorization ID '{user}'@'{host}' does not exist.");
                        draft.warn(3162, message);
                        drop(error);
                    }
                    Err(Missing::Grant(error)) if forgiving.missing_grants => draft.warn(error.code, error.message),
                    Err(Missing::User(error) | Missing::Grant(error)) => return Err(error),
                    Ok(()) => {}
                }
            }
            Ok(())
        })
        .await?;
        Ok(Completion::default())
    }

    fn draft_revoke(
        &self,
        draft: &mut Draft,
        asked: &Asked<'_>,
        everything: bool,
        (user, host): (&str, &str),
    ) -> Result<(), Missing> {
        let missing = || {
            let message = format!("There is no such grant defined for user '{user}' on host '{host}'");
            MysqlError::new(codes::NONEXISTING_GRANT, message)
        };
        let account = draft.account(&self.engine.users, user, host);
        let record = account.as_mut().ok_or_else(|| Missing::User(missing()))?;
        if everything {
            record.global = Privileges::NONE;
            record.restrictions.clear();
            record.databases.clear();
            record.tables.clear();
            record.columns.clear();
            return Ok(());
        }
        match (&asked.database, asked.table_key()) {
            (None, _) => {
                record.global = record.global.without(asked.privileges);
                record.restrictions.values_mut().for_each(|known| *known = known.without(asked.privileges));
            }
            (Some(database), None) => {
                let partial = match self.engine.variables.is_on("partial_revokes") {
                    true => Privileges(record.global.0 & asked.privileges.without(Privileges::GRANT_OPTION).0),
                    false => Privileges::NONE,
                };
                if !partial.is_empty() {
                    let known = record.restrictions.entry(database.clone()).or_default();
                    *known = known.with(partial);
                }
                match record.databases.get_mut(database) {
                    Some(known) => *known = known.without(asked.privileges),
                    None if partial.is_empty() => return Err(Missing::Grant(missing())),
                    None => {}
                }
            }
            (Some(_), Some(key)) => {
                let revoked = revoke_on_table(record, asked, &key);
                revoked.ok_or_else(|| {
                    let message = format!(
                        "There is no such grant defined for user '{user}' on host '{host}' on table '{}'",
                        key.1
                    );
                    Missing::Grant(MysqlError::new(TABLE_GRANT_MISSING, message))
                })?;
            }
        }
        record.forget_empty();
        Ok(())
    }
}

/// A restriction of whoever grants holds for what is granted, unless the account has it without one already.
fn grant_globally(record: &mut AccountRecord, granted: Privileges, grantor: &AccountRecord) {
    let databases: BTreeSet<String> = grantor.restrictions.keys().chain(record.restrictions.keys()).cloned().collect();
    for database in databases {
        let own = record.restrictions.get(&database).copied().unwrap_or_default();
        let of_grantor = grantor.restrictions.get(&database).copied().unwrap_or_default();
        let limited = own.with(granted.without(record.global));
        let kept = own.without(granted).with(Privileges(granted.0 & of_grantor.0 & limited.0));
        record.restrictions.insert(database, kept);
    }
    record.global = record.global.with(granted);
}

/// GRANT on a database ends what partial revokes have kept from the account there; the rest is granted on it.
fn end_restriction(record: &mut AccountRecord, database: &str, granted: Privileges) -> Privileges {
    let Some(restricted) = record.restrictions.get_mut(database) else { return granted };
    let ended = Privileges(restricted.0 & granted.0);
    *restricted = restricted.without(ended);
    granted.without(ended)
}

/// `None`: there is nothing of that.
fn revoke_on_table(record: &mut AccountRecord, asked: &Asked<'_>, key: &(String, String)) -> Option<()> {
    if !record.tables.contains_key(key) && !record.columns.contains_key(key) {
        return None;
    }
    if let Some(known) = record.tables.get_mut(key) {
        *known = known.without(asked.privileges);
    }
    let mut columns = record.columns.get_mut(key);
    for (column, privileges) in &asked.columns {
        let columns = columns.as_mut()?;
        let (_, known) = columns.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case(column))?;
        *known = known.without(*privileges);
    }
    if let Some(columns) = columns {
        columns.values_mut().for_each(|known| *known = known.without(asked.privileges));
    }
    Some(())
}

/// What REVOKE does not find.
enum Missing {
    User(MysqlError),
    Grant(MysqlError),
}
