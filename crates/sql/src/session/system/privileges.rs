//! Privileges: those tables of information_schema, and the readable part of `mysql`.

use super::{Definition, Hints, INFORMATION_SCHEMA, Rows, datetime, none, s, yes};
use crate::parse::ast::TlsRule;
use crate::session::lookup::Viewer;
use crate::session::users::rules::json_text;
use crate::session::users::{AccountRecord, Privileges};
use rauk_types::Value;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const I: &str = INFORMATION_SCHEMA;

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: I,
        name: "USER_PRIVILEGES",
        columns: "GRANTEE s292, TABLE_CATALOG s512, PRIVILEGE_TYPE s64, IS_GRANTABLE s3",
        rows: user_privileges,
    },
    Definition {
        database: I,
        name: "SCHEMA_PRIVILEGES",
        columns: "GRANTEE s292, TABLE_CATALOG s512, TABLE_SCHEMA b64, PRIVILEGE_TYPE s64, IS_GRANTABLE s3",
        rows: schema_privileges,
    },
    Definition {
        database: I,
        name: "TABLE_PRIVILEGES",
        columns: "GRANTEE s292, TABLE_CATALOG s512, TABLE_SCHEMA b64, TABLE_NAME b64, PRIVILEGE_TYPE s64, IS_GRANTABLE s3",
        rows: table_privileges,
    },
    Definition {
        database: I,
        name: "COLUMN_PRIVILEGES",
        columns: "GRANTEE s292, TABLE_CATALOG s512, TABLE_SCHEMA b64, TABLE_NAME b64, COLUMN_NAME s64, PRIVILEGE_TYPE s64, IS_GRANTABLE s3",
        rows: column_privileges,
    },
    Definition {
        database: I,
        name: "USER_ATTRIBUTES",
        columns: "USER c32, HOST c255, ATTRIBUTE x?",
        rows: user_attributes,
    },
    Definition {
        database: "mysql",
        name: "user",
        columns: "Host s255, User b32, Select_priv s1, Insert_priv s1, Update_priv s1, Delete_priv s1, Create_priv s1, Drop_priv s1, Reload_priv s1, Shutdown_priv s1, Process_priv s1, File_priv s1, Grant_priv s1, References_priv s1, Index_priv s1, Alter_priv s1, Show_db_priv s1, Super_priv s1, Create_tmp_table_priv s1, Lock_tables_priv s1, Execute_priv s1, Repl_slave_priv s1, Repl_client_priv s1, Create_view_priv s1, Show_view_priv s1, Create_routine_priv s1, Alter_routine_priv s1, Create_user_priv s1, Event_priv s1, Trigger_priv s1, Create_tablespace_priv s1, ssl_type s9, ssl_cipher x, x509_issuer x, x509_subject x, max_questions u, max_updates u, max_connections u, max_user_connections u, plugin s64, authentication_string x?, password_expired s1, password_last_changed t?, password_lifetime u?, account_locked s1, Create_role_priv s1, Drop_role_priv s1, Password_reuse_history u?, Password_reuse_time u?, Password_require_current s1?, User_attributes j?",
        rows: users,
    },
    Definition {
        database: "mysql",
        name: "db",
        columns: "Host s255, Db b64, User b32, Select_priv s1, Insert_priv s1, Update_priv s1, Delete_priv s1, Create_priv s1, Drop_priv s1, Grant_priv s1, References_priv s1, Index_priv s1, Alter_priv s1, Create_tmp_table_priv s1, Lock_tables_priv s1, Create_view_priv s1, Show_view_priv s1, Create_routine_priv s1, Alter_routine_priv s1, Execute_priv s1, Event_priv s1, Trigger_priv s1",
        rows: databases,
    },
    Definition {
        database: "mysql",
        name: "tables_priv",
        columns: "Host s255, Db b64, User b32, Table_name b64, Grantor s288, Table_priv s255, Column_priv s255",
        rows: table_grants,
    },
    Definition {
        database: "mysql",
        name: "columns_priv",
        columns: "Host s255, Db b64, User b32, Table_name b64, Column_name s64, Column_priv s31",
        rows: column_grants,
    },
    Definition { database: "mysql", name: "func", columns: "name s64, ret i, dl s128, type s9", rows: none },
    Definition { database: "mysql", name: "time_zone_name", columns: "Name s64, Time_zone_id u", rows: time_zones },
];

/// All accounts for who may see them, else one's own.
fn visible(viewer: &Viewer) -> Vec<Arc<AccountRecord>> {
    let own = &viewer.account;
    let all = own.on_database("mysql").contains(Privileges::SELECT);
    let users = viewer.engine.users.all();
    users.iter().filter(|a| all || (a.user == own.user && a.host == own.host)).cloned().collect()
}

fn grantee(account: &AccountRecord) -> Value {
    s(format!("'{}'@'{}'", account.user, account.host))
}

/// The names as rows show them: USAGE stands for none.
fn named(privileges: Privileges) -> (Vec<&'static str>, bool) {
    let names = privileges.names();
    let grantable = privileges.contains(Privileges::GRANT_OPTION);
    if names.is_empty() { (vec!["USAGE"], grantable) } else { (names, grantable) }
}

fn user_privileges(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for account in visible(viewer) {
        let (names, grantable) = named(account.global);
        for name in names {
            rows.push(vec![grantee(&account), s("def"), s(name), yes(grantable)]);
        }
    }
    Ok(rows)
}

fn schema_privileges(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for account in visible(viewer) {
        for (database, privileges) in &account.databases {
            let (names, grantable) = named(*privileges);
            for name in names {
                rows.push(vec![grantee(&account), s("def"), s(database), s(name), yes(grantable)]);
            }
        }
    }
    Ok(rows)
}

fn table_privileges(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for account in visible(viewer) {
        for ((database, table), privileges) in &account.tables {
            let (names, grantable) = named(*privileges);
            for name in names {
                rows.push(vec![grantee(&account), s("def"), s(database), s(table), s(name), yes(grantable)]);
            }
        }
    }
    Ok(rows)
}

fn flag(granted: Privileges, name: &str) -> Value {
    let has = Privileges::named(name).is_some_and(|p| granted.contains(p));
    s(if has { "Y" } else { "N" })
}

/// The columns of mysql.user behind the privileges that MySQL 5.5 had.
fn rules_of(account: &AccountRecord) -> Vec<Value> {
    let rules = &account.rules;
    let yes_no = |on: bool| s(if on { "Y" } else { "N" });
    let number = |value: Option<u32>| value.map_or(Value::Null, |value| Value::UInt(value.into()));
    let (kind, cipher, issuer, subject) = match &rules.tls {
        TlsRule::None => ("", None, None, None),
        TlsRule::Any => ("ANY", None, None, None),
        TlsRule::X509 => ("X509", None, None, None),
        TlsRule::Specified { subject, issuer, cipher } => {
            ("SPECIFIED", cipher.as_deref(), issuer.as_deref(), subject.as_deref())
        }
    };
    let limits = &rules.limits;
    vec![
        s(kind),
        s(cipher.unwrap_or_default()),
        s(issuer.unwrap_or_default()),
        s(subject.unwrap_or_default()),
        Value::UInt(limits.queries.into()),
        Value::UInt(limits.updates.into()),
        Value::UInt(limits.connections.into()),
        Value::UInt(limits.user_connections.into()),
        s(&account.plugin),
        s(&account.hash),
        yes_no(rules.expired),
        if rules.changed > 0 { datetime(rules.changed) } else { Value::Null },
        number(rules.lifetime.map(u32::from)),
        yes_no(account.locked),
        flag(account.global, "CREATE ROLE"),
        flag(account.global, "DROP ROLE"),
        number(rules.history),
        number(rules.reuse_days),
        rules.require_current.map_or(Value::Null, yes_no),
        attributes(account).map_or(Value::Null, s),
    ]
}

/// User_attributes: the account's own attribute as `metadata`, and rules that have no column.
fn attributes(account: &AccountRecord) -> Option<String> {
    let rules = &account.rules;
    let mut all = Map::new();
    if let Some(attribute) = &rules.attribute {
        all.insert("metadata".to_string(), Json::Object(attribute.clone()));
    }
    if !account.restrictions.is_empty() {
        let of_database =
            |(name, privileges): (&String, &Privileges)| json!({ "Database": name, "Privileges": privileges.names() });
        all.insert("Restrictions".to_string(), account.restrictions.iter().map(of_database).collect());
    }
    if rules.failed_logins > 0 || rules.lock_days != 0 {
        let locking =
            json!({ "failed_login_attempts": rules.failed_logins, "password_lock_time_days": rules.lock_days });
        all.insert("Password_locking".to_string(), locking);
    }
    if !rules.second.is_empty() {
        all.insert("additional_password".to_string(), Json::from(rules.second.as_str()));
    }
    (!all.is_empty()).then(|| json_text(&Json::Object(all)))
}

fn user_attributes(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let row = |account: &Arc<AccountRecord>| {
        let attribute = account.rules.attribute_text().map_or(Value::Null, s);
        vec![s(&account.user), s(&account.host), attribute]
    };
    Ok(visible(viewer).iter().map(row).collect())
}

fn users(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    const FLAGS: &[&str] = &[
        "SELECT",
        "INSERT",
        "UPDATE",
        "DELETE",
        "CREATE",
        "DROP",
        "RELOAD",
        "SHUTDOWN",
        "PROCESS",
        "FILE",
        "GRANT OPTION",
        "REFERENCES",
        "INDEX",
        "ALTER",
        "SHOW DATABASES",
        "SUPER",
        "CREATE TEMPORARY TABLES",
        "LOCK TABLES",
        "EXECUTE",
        "REPLICATION SLAVE",
        "REPLICATION CLIENT",
        "CREATE VIEW",
        "SHOW VIEW",
        "CREATE ROUTINE",
        "ALTER ROUTINE",
        "CREATE USER",
        "EVENT",
        "TRIGGER",
        "CREATE TABLESPACE",
    ];
    let row = |account: &Arc<AccountRecord>| {
        let mut row = vec![s(&account.host), s(&account.user)];
        row.extend(FLAGS.iter().map(|name| flag(account.global, name)));
        row.extend(rules_of(account));
        row
    };
    Ok(viewer.engine.users.all().iter().map(row).collect())
}

fn databases(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    const FLAGS: &[&str] = &[
        "SELECT",
        "INSERT",
        "UPDATE",
        "DELETE",
        "CREATE",
        "DROP",
        "GRANT OPTION",
        "REFERENCES",
        "INDEX",
        "ALTER",
        "CREATE TEMPORARY TABLES",
        "LOCK TABLES",
        "CREATE VIEW",
        "SHOW VIEW",
        "CREATE ROUTINE",
        "ALTER ROUTINE",
        "EXECUTE",
        "EVENT",
        "TRIGGER",
    ];
    let mut rows = Vec::new();
    for account in viewer.engine.users.all().iter() {
        for (database, privileges) in &account.databases {
            let mut row = vec![s(&account.host), s(database), s(&account.user)];
            row.extend(FLAGS.iter().map(|name| flag(*privileges, name)));
            rows.push(row);
        }
    }
    Ok(rows)
}

fn table_grants(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for account in viewer.engine.users.all().iter() {
        let keys: BTreeSet<&(String, String)> = account.tables.keys().chain(account.columns.keys()).collect();
        for key in keys {
            let privileges = account.tables.get(key).copied().unwrap_or_default();
            let columns = account.columns.get(key).into_iter().flat_map(|columns| columns.values());
            let on_columns = columns.fold(Privileges::NONE, |all, of_column| all.with(*of_column));
            rows.push(vec![
                s(&account.host),
                s(&key.0),
                s(&account.user),
                s(&key.1),
                s(""),
                set_of(privileges),
                s(capitalized_names(on_columns).join(",")),
            ]);
        }
    }
    Ok(rows)
}

fn column_grants(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for account in viewer.engine.users.all().iter() {
        for ((database, table), columns) in &account.columns {
            for (column, privileges) in columns {
                rows.push(vec![
                    s(&account.host),
                    s(database),
                    s(&account.user),
                    s(table),
                    s(column),
                    s(capitalized_names(*privileges).join(",")),
                ]);
            }
        }
    }
    Ok(rows)
}

fn column_privileges(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for account in visible(viewer) {
        for ((database, table), columns) in &account.columns {
            let on_table = account.tables.get(&(database.clone(), table.clone())).copied().unwrap_or_default();
            let grantable = on_table.contains(Privileges::GRANT_OPTION);
            for (column, privileges) in columns {
                for name in privileges.names() {
                    rows.push(vec![
                        grantee(&account),
                        s("def"),
                        s(database),
                        s(table),
                        s(column),
                        s(name),
                        yes(grantable),
                    ]);
                }
            }
        }
    }
    Ok(rows)
}

pub(super) fn capitalized_names(privileges: Privileges) -> Vec<String> {
    privileges.names().iter().map(|name| capitalized(name)).collect()
}

/// The privileges on a table as the sets in MySQL's tables show them.
pub(super) fn set_of(privileges: Privileges) -> Value {
    let mut names = capitalized_names(privileges);
    if privileges.contains(Privileges::GRANT_OPTION) {
        names.push("Grant".to_string());
    }
    s(names.join(","))
}

fn capitalized(name: &str) -> String {
    let lower = name.to_lowercase();
    let mut characters = lower.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

/// The zones that `SET time_zone` knows.
fn time_zones(_: &Viewer, _: &Hints<'_>) -> Rows {
    let names = jiff::tz::db().available();
    Ok(names.enumerate().map(|(at, name)| vec![s(name.as_str()), Value::UInt(at as u64 + 1)]).collect())
}
