//! The statements that would make an account again: SHOW GRANTS and SHOW CREATE USER.

use super::privilege::Privileges;
use super::record::{AccountRecord, quoted_name};
use super::rules::Limits;
use crate::parse::ast::TlsRule;
use std::collections::{BTreeMap, BTreeSet};

fn line(privileges: Privileges, everything: Privileges, level: &str, account: &str) -> String {
    let list = if privileges.without(Privileges::GRANT_OPTION).is_empty() {
        "USAGE".to_string()
    } else if privileges.contains(everything) {
        "ALL PRIVILEGES".to_string()
    } else {
        privileges.names().join(", ")
    };
    let option = if privileges.contains(Privileges::GRANT_OPTION) { " WITH GRANT OPTION" } else { "" };
    format!("GRANT {list} ON {level} TO {account}{option}")
}

pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The name as SHOW GRANTS writes it.
pub fn account_name(record: &AccountRecord) -> String {
    format!("{}@{}", quoted(&record.user), quoted(&record.host))
}

/// The lines of SHOW GRANTS, in MySQL 8's form.
pub fn grants(record: &AccountRecord) -> Vec<String> {
    let account = account_name(record);
    let (fixed, dynamic) = record.global.split_dynamic();
    let option = Privileges(record.global.0 & Privileges::GRANT_OPTION.0);
    // MySQL 8 lists global privileges one by one, whether they are all there or not.
    let never = Privileges(u128::MAX);
    let mut lines = vec![line(fixed.with(option), never, "*.*", &account)];
    if !dynamic.is_empty() {
        let names = dynamic.names().join(",");
        let option = if option.is_empty() { "" } else { " WITH GRANT OPTION" };
        lines.push(format!("GRANT {names} ON *.* TO {account}{option}"));
    }
    for (database, privileges) in &record.restrictions {
        let names = privileges.names().join(", ");
        lines.push(format!("REVOKE {names} ON {}.* FROM {account}", quoted(database)));
    }
    for (database, privileges) in &record.databases {
        let level = format!("{}.*", quoted(database));
        lines.push(line(*privileges, Privileges::all_database(), &level, &account));
    }
    let tables: BTreeSet<&(String, String)> = record.tables.keys().chain(record.columns.keys()).collect();
    for key in tables {
        let privileges = record.tables.get(key).copied().unwrap_or_default();
        let level = format!("{}.{}", quoted(&key.0), quoted(&key.1));
        match record.columns.get(key) {
            None => lines.push(line(privileges, Privileges::all_table(), &level, &account)),
            Some(columns) => lines.push(table_line(privileges, columns, &level, &account)),
        }
    }
    for (admin, option) in [(false, ""), (true, " WITH ADMIN OPTION")] {
        let roles: Vec<String> =
            record.roles.iter().filter(|(_, with)| **with == admin).map(|(role, _)| quoted_name(role)).collect();
        if !roles.is_empty() {
            lines.push(format!("GRANT {} TO {account}{option}", roles.join(",")));
        }
    }
    lines
}

/// The line of a table with privileges on columns.
fn table_line(privileges: Privileges, columns: &BTreeMap<String, Privileges>, level: &str, account: &str) -> String {
    let all = columns.values().fold(privileges, |all, of_column| all.with(*of_column));
    let mut list = Vec::new();
    for name in all.names() {
        let one = Privileges::named(name).unwrap_or_default();
        if privileges.contains(one) {
            list.push(name.to_string());
        }
        let of: Vec<String> =
            columns.iter().filter(|(_, granted)| granted.contains(one)).map(|(column, _)| quoted(column)).collect();
        if !of.is_empty() {
            list.push(format!("{name} ({})", of.join(", ")));
        }
    }
    let option = if privileges.contains(Privileges::GRANT_OPTION) { " WITH GRANT OPTION" } else { "" };
    format!("GRANT {} ON {level} TO {account}{option}", list.join(", "))
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

fn tls(rule: &TlsRule) -> String {
    match rule {
        TlsRule::None => "NONE".to_string(),
        TlsRule::Any => "SSL".to_string(),
        TlsRule::X509 => "X509".to_string(),
        TlsRule::Specified { subject, issuer, cipher } => {
            let parts = [("SUBJECT", subject), ("ISSUER", issuer), ("CIPHER", cipher)];
            let parts = parts.iter().filter_map(|(word, value)| Some(format!("{word} {}", text(value.as_deref()?))));
            parts.collect::<Vec<_>>().join(" ")
        }
    }
}

fn limits(limits: &Limits) -> String {
    let all = [
        ("MAX_QUERIES_PER_HOUR", limits.queries),
        ("MAX_UPDATES_PER_HOUR", limits.updates),
        ("MAX_CONNECTIONS_PER_HOUR", limits.connections),
        ("MAX_USER_CONNECTIONS", limits.user_connections),
    ];
    let set: Vec<String> =
        all.iter().filter(|(_, limit)| *limit > 0).map(|(word, limit)| format!(" {word} {limit}")).collect();
    if set.is_empty() { String::new() } else { format!(" WITH{}", set.concat()) }
}

/// SHOW CREATE USER, in MySQL 8's form: a statement that makes the account again. `hex`:
/// print_identified_with_as_hex.
pub fn create_user(record: &AccountRecord, hex: bool) -> String {
    let rules = &record.rules;
    let mut out = format!("CREATE USER {} IDENTIFIED WITH '{}'", account_name(record), record.plugin);
    if !record.hash.is_empty() {
        let digits = || record.hash.bytes().map(|byte| format!("{byte:02X}")).collect::<String>();
        out.push_str(&format!(" AS {}", if hex { format!("0x{}", digits()) } else { text(&record.hash) }));
    }
    let roles: Vec<String> = record.default_roles.iter().map(quoted_name).collect();
    if !roles.is_empty() {
        out.push_str(&format!(" DEFAULT ROLE {}", roles.join(",")));
    }
    out.push_str(&format!(" REQUIRE {}{} PASSWORD EXPIRE", tls(&rules.tls), limits(&rules.limits)));
    match (rules.expired, rules.lifetime) {
        (true, _) => {}
        (false, None) => out.push_str(" DEFAULT"),
        (false, Some(0)) => out.push_str(" NEVER"),
        (false, Some(days)) => out.push_str(&format!(" INTERVAL {days} DAY")),
    }
    out.push_str(if record.locked { " ACCOUNT LOCK" } else { " ACCOUNT UNLOCK" });
    let or_default = |value: Option<u32>| value.map_or("DEFAULT".to_string(), |value| value.to_string());
    out.push_str(&format!(" PASSWORD HISTORY {}", or_default(rules.history)));
    let days = if rules.reuse_days.is_some() { " DAY" } else { "" };
    out.push_str(&format!(" PASSWORD REUSE INTERVAL {}{days}", or_default(rules.reuse_days)));
    out.push_str(match rules.require_current {
        None => " PASSWORD REQUIRE CURRENT DEFAULT",
        Some(true) => " PASSWORD REQUIRE CURRENT",
        Some(false) => " PASSWORD REQUIRE CURRENT OPTIONAL",
    });
    if rules.failed_logins > 0 || rules.lock_days != 0 {
        let days = if rules.lock_days < 0 { "UNBOUNDED".to_string() } else { rules.lock_days.to_string() };
        out.push_str(&format!(" FAILED_LOGIN_ATTEMPTS {} PASSWORD_LOCK_TIME {days}", rules.failed_logins));
    }
    if let Some(attribute) = rules.attribute_text() {
        out.push_str(&format!(" ATTRIBUTE {}", text(&attribute)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_as_mysql_prints_them() {
        let mut record = AccountRecord { user: "app".into(), host: "%".into(), ..AccountRecord::default() };
        assert_eq!(grants(&record), ["GRANT USAGE ON *.* TO `app`@`%`"]);
        record.databases.insert("shop".into(), Privileges::all_database());
        record.tables.insert(("other".into(), "t".into()), Privileges::SELECT.with(Privileges::GRANT_OPTION));
        assert_eq!(
            grants(&record),
            [
                "GRANT USAGE ON *.* TO `app`@`%`",
                "GRANT ALL PRIVILEGES ON `shop`.* TO `app`@`%`",
                "GRANT SELECT ON `other`.`t` TO `app`@`%` WITH GRANT OPTION",
            ]
        );
    }
}
