//! One account: what is stored of it as a JSON document, and what it may do.
//!
//! A document that an older version has written lacks members, which then have their defaults; members that this
//! version does not know are kept as they are and written again, so that a node of an older version in a cluster that
//! is being upgraded takes nothing away that it does not understand. A *role* is an account that is locked and has no
//! password; what it may do is granted to it as to any account. A grant of a role is kept with the account that has
//! it ([`AccountRecord::roles`]).
//!
//! What a session may do is the account and its active roles together: [`AccountRecord::merge`] makes one record of
//! them, which every check reads.

use super::privilege::Privileges;
use super::rules::AccountRules;
use crate::parse::statement::UserName;
use crate::session::pattern;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

/// One account and all that was granted to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountRecord {
    pub user: String,
    pub host: String,
    pub plugin: String,
    pub hash: String,
    pub locked: bool,
    pub global: Privileges,
    /// By database name as written in GRANT, wildcards included.
    pub databases: BTreeMap<String, Privileges>,
    pub tables: BTreeMap<(String, String), Privileges>,
    /// By database and table: privileges on columns.
    pub columns: BTreeMap<(String, String), BTreeMap<String, Privileges>>,
    /// Roles that were granted to it; `true`: WITH ADMIN OPTION.
    pub roles: BTreeMap<UserName, bool>,
    /// Roles that are active from the beginning of a session.
    pub default_roles: BTreeSet<UserName>,
    /// How often it was granted as a role. Whoever drops or renames it has then seen all its grants: one that comes
    /// meanwhile changes the document.
    pub grants: u64,
    pub rules: AccountRules,
    /// Global privileges that were revoked on single databases (partial_revokes).
    pub restrictions: BTreeMap<String, Privileges>,
    /// Members of the document that this version does not know.
    pub unknown: Map<String, Json>,
}

fn privileges_json(privileges: Privileges) -> Json {
    let mut names = privileges.names();
    if privileges.contains(Privileges::GRANT_OPTION) {
        names.push("GRANT OPTION");
    }
    json!(names)
}

fn privileges_from(json: &Json) -> Privileges {
    let names = json.as_array().map(Vec::as_slice).unwrap_or_default();
    names.iter().filter_map(Json::as_str).filter_map(Privileges::named).fold(Privileges::NONE, Privileges::with)
}

fn text_of(json: &Json, name: &str) -> String {
    json[name].as_str().unwrap_or_default().to_string()
}

fn list_of(json: &Json, name: &str) -> Vec<Json> {
    json[name].as_array().cloned().unwrap_or_default()
}

fn name_of(json: &Json) -> UserName {
    UserName { user: text_of(json, "user"), host: text_of(json, "host") }
}

/// The name as SHOW GRANTS and errors of roles write it.
pub fn quoted_name(name: &UserName) -> String {
    format!("{}@{}", super::grants::quoted(&name.user), super::grants::quoted(&name.host))
}

impl AccountRecord {
    /// Of the settings that are accounts.
    pub(super) const PREFIX: &str = "user:";
    /// Members of every document.
    const MEMBERS: [&str; 8] = ["user", "host", "plugin", "hash", "locked", "global", "databases", "tables"];
    /// Members that a document has if there is something to say.
    const OPTIONAL: [&str; 6] = ["columns", "roles", "default_roles", "grants", "rules", "restrictions"];

    pub(super) fn to_json(&self) -> String {
        let databases: Vec<Json> = self
            .databases
            .iter()
            .map(|(name, p)| json!({ "database": name, "privileges": privileges_json(*p) }))
            .collect();
        let table = |((database, table), p): (&(String, String), &Privileges)| json!({ "database": database, "table": table, "privileges": privileges_json(*p) });
        let tables: Vec<Json> = self.tables.iter().map(table).collect();
        let mut document = self.unknown.clone();
        let mut put = |name: &str, value: Json| drop(document.insert(name.to_string(), value));
        put("user", json!(self.user));
        put("host", json!(self.host));
        put("plugin", json!(self.plugin));
        put("hash", json!(self.hash));
        put("locked", json!(self.locked));
        put("global", privileges_json(self.global));
        put("databases", json!(databases));
        put("tables", json!(tables));
        if !self.columns.is_empty() {
            let of_table = |((database, table), columns): (&(String, String), &BTreeMap<String, Privileges>)| {
                let columns: Map<String, Json> =
                    columns.iter().map(|(name, p)| (name.clone(), privileges_json(*p))).collect();
                json!({ "database": database, "table": table, "columns": columns })
            };
            put("columns", self.columns.iter().map(of_table).collect());
        }
        if !self.roles.is_empty() {
            let role =
                |(name, admin): (&UserName, &bool)| json!({ "user": name.user, "host": name.host, "admin": admin });
            put("roles", self.roles.iter().map(role).collect());
        }
        if !self.default_roles.is_empty() {
            let role = |name: &UserName| json!({ "user": name.user, "host": name.host });
            put("default_roles", self.default_roles.iter().map(role).collect());
        }
        if self.grants > 0 {
            put("grants", json!(self.grants));
        }
        if self.rules != AccountRules::default() {
            put("rules", serde_json::to_value(&self.rules).unwrap_or_default());
        }
        if !self.restrictions.is_empty() {
            let of_database = |(name, p): (&String, &Privileges)| (name.clone(), privileges_json(*p));
            put("restrictions", Json::Object(self.restrictions.iter().map(of_database).collect()));
        }
        Json::Object(document).to_string()
    }

    pub(super) fn from_json(text: &str) -> Option<AccountRecord> {
        let json: Json = serde_json::from_str(text).ok()?;
        let of_columns = |entry: &Json| {
            let columns = entry["columns"].as_object().cloned().unwrap_or_default();
            let columns = columns.iter().map(|(name, p)| (name.clone(), privileges_from(p))).collect();
            ((text_of(entry, "database"), text_of(entry, "table")), columns)
        };
        let known = |name: &str| Self::MEMBERS.contains(&name) || Self::OPTIONAL.contains(&name);
        // Rules that cannot be read would let in whom they keep out: such an account is none.
        let rules = match json.get("rules") {
            Some(rules) => AccountRules::deserialize(rules).ok()?,
            None => AccountRules::default(),
        };
        let restrictions = json["restrictions"].as_object().cloned().unwrap_or_default();
        let unknown = json.as_object()?.iter().filter(|(name, _)| !known(name));
        Some(AccountRecord {
            user: json["user"].as_str()?.to_string(),
            host: json["host"].as_str()?.to_string(),
            plugin: text_of(&json, "plugin"),
            hash: text_of(&json, "hash"),
            locked: json["locked"].as_bool().unwrap_or(false),
            global: privileges_from(&json["global"]),
            databases: list_of(&json, "databases")
                .iter()
                .map(|e| (text_of(e, "database"), privileges_from(&e["privileges"])))
                .collect(),
            tables: list_of(&json, "tables")
                .iter()
                .map(|e| ((text_of(e, "database"), text_of(e, "table")), privileges_from(&e["privileges"])))
                .collect(),
            columns: list_of(&json, "columns").iter().map(of_columns).collect(),
            roles: list_of(&json, "roles")
                .iter()
                .map(|e| (name_of(e), e["admin"].as_bool().unwrap_or(false)))
                .collect(),
            default_roles: list_of(&json, "default_roles").iter().map(name_of).collect(),
            grants: json["grants"].as_u64().unwrap_or(0),
            rules,
            restrictions: restrictions.iter().map(|(name, p)| (name.clone(), privileges_from(p))).collect(),
            unknown: unknown.map(|(name, value)| (name.clone(), value.clone())).collect(),
        })
    }

    pub(super) fn key(user: &str, host: &str) -> String {
        format!("{}{user}@{host}", Self::PREFIX)
    }

    pub fn name(&self) -> UserName {
        UserName { user: self.user.clone(), host: self.host.clone() }
    }

    pub fn is(&self, name: &UserName) -> bool {
        self.user == name.user && self.host.eq_ignore_ascii_case(&name.host)
    }

    /// What is granted to another account, too; its name, password and default roles are not. A global privilege is
    /// restricted on a database where each of those that have it is.
    pub fn merge(&mut self, other: &AccountRecord) {
        let databases: BTreeSet<&String> = self.restrictions.keys().chain(other.restrictions.keys()).collect();
        let (own, others) = (|d: &str| self.kept_from(d), |d: &str| other.kept_from(d));
        let both = databases.into_iter().map(|d| (d.clone(), Privileges(own(d).0 & others(d).0)));
        let all = self.global.with(other.global);
        self.restrictions = both.map(|(d, p)| (d, Privileges(p.0 & all.0))).filter(|(_, p)| !p.is_empty()).collect();
        self.global = self.global.with(other.global);
        for (database, privileges) in &other.databases {
            let known = self.databases.entry(database.clone()).or_default();
            *known = known.with(*privileges);
        }
        for (table, privileges) in &other.tables {
            let known = self.tables.entry(table.clone()).or_default();
            *known = known.with(*privileges);
        }
        for (table, columns) in &other.columns {
            let known = self.columns.entry(table.clone()).or_default();
            for (column, privileges) in columns {
                let known = known.entry(column.clone()).or_default();
                *known = known.with(*privileges);
            }
        }
        for (role, admin) in &other.roles {
            *self.roles.entry(role.clone()).or_default() |= admin;
        }
    }

    /// Levels at which nothing is left are no grants.
    pub fn forget_empty(&mut self) {
        self.databases.retain(|_, privileges| !privileges.is_empty());
        self.restrictions.retain(|_, privileges| !privileges.is_empty());
        self.tables.retain(|_, privileges| !privileges.is_empty());
        self.columns.retain(|_, columns| {
            columns.retain(|_, privileges| !privileges.is_empty());
            !columns.is_empty()
        });
    }

    /// What no global grant gives on a database.
    fn kept_from(&self, database: &str) -> Privileges {
        let restricted = self.restrictions.get(database).copied().unwrap_or_default();
        Privileges(!self.global.0 | restricted.0)
    }

    /// Global privileges as they hold on a database.
    pub fn global_on(&self, database: &str) -> Privileges {
        match self.restrictions.get(database) {
            Some(restricted) => self.global.without(*restricted),
            None => self.global,
        }
    }

    /// What is granted on a database, the global privileges included.
    pub fn on_database(&self, database: &str) -> Privileges {
        let granted = self.databases.iter().filter(|(name, _)| pattern::like(name, database, false));
        granted.fold(self.global_on(database), |all, (_, p)| all.with(*p))
    }

    /// What is granted on a table, the wider levels included.
    pub fn on_table(&self, database: &str, table: &str) -> Privileges {
        let own = self.tables.iter().find(|((d, t), _)| d == database && t == table);
        self.on_database(database).with(own.map_or(Privileges::NONE, |(_, p)| *p))
    }

    /// The privileges on columns of a table, if there are any.
    pub fn on_columns(&self, database: &str, table: &str) -> Option<&BTreeMap<String, Privileges>> {
        let found = self.columns.iter().find(|((d, t), _)| d == database && t == table);
        found.map(|(_, columns)| columns)
    }

    /// Whether a privilege is granted on some column of a table.
    pub fn on_any_column(&self, database: &str, table: &str, privilege: Privileges) -> bool {
        let columns = self.on_columns(database, table);
        columns.is_some_and(|columns| columns.values().any(|granted| granted.contains(privilege)))
    }

    /// Whether a privilege is granted on a column, by whatever level.
    pub fn on_column(&self, database: &str, table: &str, column: &str, privilege: Privileges) -> bool {
        if self.on_table(database, table).contains(privilege) {
            return true;
        }
        let Some(columns) = self.on_columns(database, table) else { return false };
        let mut of_column = columns.iter().filter(|(name, _)| name.eq_ignore_ascii_case(column));
        of_column.any(|(_, granted)| granted.contains(privilege))
    }

    fn has_table_of(&self, database: &str) -> bool {
        self.tables.keys().chain(self.columns.keys()).any(|(d, _)| d == database)
    }

    /// Whether the account may know that the database exists.
    pub fn sees_database(&self, database: &str) -> bool {
        if matches!(database, "information_schema" | "performance_schema") {
            return true;
        }
        let shown = Privileges::all_database().with(Privileges::SHOW_DATABASES).with(Privileges::GRANT_OPTION);
        self.on_database(database).intersects(shown) || self.has_table_of(database)
    }

    /// Whether the account may use the database as its current one.
    pub fn may_use(&self, database: &str) -> bool {
        let useful = Privileges::all_database().with(Privileges::GRANT_OPTION);
        matches!(database, "information_schema" | "performance_schema")
            || self.on_database(database).intersects(useful)
            || self.has_table_of(database)
    }

    /// Whether the account may know that the table exists.
    pub fn sees_table(&self, database: &str, table: &str) -> bool {
        let seen = Privileges::all_database().with(Privileges::GRANT_OPTION);
        self.on_table(database, table).intersects(seen) || self.on_columns(database, table).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::users::password;

    #[test]
    fn records_survive_json() {
        let mut record = AccountRecord {
            user: "app".to_string(),
            host: "%".to_string(),
            plugin: password::NATIVE.to_string(),
            hash: "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19".to_string(),
            locked: true,
            global: Privileges::PROCESS,
            ..AccountRecord::default()
        };
        record.databases.insert("shop".to_string(), Privileges::SELECT.with(Privileges::GRANT_OPTION));
        record.tables.insert(("other".to_string(), "t".to_string()), Privileges::UPDATE);
        let columns = BTreeMap::from([("a".to_string(), Privileges::SELECT)]);
        record.columns.insert(("shop".to_string(), "u".to_string()), columns);
        let role = UserName { user: "reader".to_string(), host: "%".to_string() };
        record.roles.insert(role.clone(), true);
        record.default_roles.insert(role);
        record.grants = 3;
        assert_eq!(AccountRecord::from_json(&record.to_json()), Some(record.clone()));
        assert!(record.may_use("shop") && record.may_use("other") && !record.may_use("third"));
        assert_eq!(record.on_table("other", "t"), Privileges::PROCESS.with(Privileges::UPDATE));
    }

    #[test]
    fn database_grants_are_patterns() {
        let mut record = AccountRecord::default();
        record.databases.insert("app\\_%".to_string(), Privileges::SELECT);
        assert!(record.on_database("app_one").contains(Privileges::SELECT));
        assert!(record.on_database("apple").is_empty());
    }

    #[test]
    fn documents_of_other_versions() {
        let old = r#"{"user":"app","host":"%","global":["SELECT"]}"#;
        let record = AccountRecord::from_json(old).unwrap();
        assert_eq!((record.global, record.roles.len(), record.locked), (Privileges::SELECT, 0, false));
        let newer = r#"{"user":"app","host":"%","global":["SELECT"],"later":{"a":[1]}}"#;
        let record = AccountRecord::from_json(newer).unwrap();
        let again: Json = serde_json::from_str(&record.to_json()).unwrap();
        assert_eq!(again["later"], json!({ "a": [1] }));
    }
}
