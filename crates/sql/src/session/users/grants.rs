//! The statements that would make an account again: SHOW GRANTS and SHOW CREATE USER.

use super::privilege::Privileges;
use super::store::AccountRecord;

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

fn quoted(name: &str) -> String {
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
    let never = Privileges(u64::MAX);
    let mut lines = vec![line(fixed.with(option), never, "*.*", &account)];
    if !dynamic.is_empty() {
        let names = dynamic.names().join(",");
        let option = if option.is_empty() { "" } else { " WITH GRANT OPTION" };
        lines.push(format!("GRANT {names} ON *.* TO {account}{option}"));
    }
    for (database, privileges) in &record.databases {
        let level = format!("{}.*", quoted(database));
        lines.push(line(*privileges, Privileges::all_database(), &level, &account));
    }
    for ((database, table), privileges) in &record.tables {
        let level = format!("{}.{}", quoted(database), quoted(table));
        lines.push(line(*privileges, Privileges::all_table(), &level, &account));
    }
    lines
}

/// SHOW CREATE USER.
pub fn create_user(record: &AccountRecord) -> String {
    let hash = if record.hash.is_empty() { String::new() } else { format!(" AS '{}'", record.hash) };
    let lock = if record.locked { "LOCK" } else { "UNLOCK" };
    format!(
        "CREATE USER {} IDENTIFIED WITH '{}'{hash} REQUIRE NONE PASSWORD EXPIRE DEFAULT ACCOUNT {lock} PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE CURRENT DEFAULT",
        account_name(record),
        record.plugin
    )
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
