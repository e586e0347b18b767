//! Users of another server, and what they may do.
//!
//! MySQL's and MariaDB's statements differ in how a password's hash is written; what MariaDB writes is brought into the
//! form that Rauk and MySQL take. A user that exists here keeps its password and gets the grants.

use super::findings::Findings;
use super::schema::Account;
use mysql::Conn;
use mysql::prelude::Queryable;

/// How many were made.
pub fn copy(accounts: &[Account], target: &mut Conn, findings: &mut Findings) -> Result<u64, String> {
    if accounts.is_empty() {
        findings.add_text("users", "the other server shows none to this account; it needs SELECT on mysql.*");
    }
    let mut made = 0;
    for account in accounts {
        let label = account.item.label(None);
        let create = match &account.item.create {
            Ok(create) => in_our_form(create),
            Err(reason) => {
                findings.add_text(&label, reason);
                continue;
            }
        };
        match target.query_drop(&create) {
            Ok(()) => made += 1,
            Err(error) => findings.add(&label, &error),
        }
        match &account.grants {
            Err(reason) => findings.add_text(&format!("grants of {label}"), reason),
            Ok(grants) => {
                for grant in grants {
                    let grant = without_password(grant);
                    if let Err(error) = target.query_drop(&grant) {
                        findings.add(&format!("{label}: {grant}"), &error);
                    }
                }
            }
        }
    }
    Ok(made)
}

/// `IDENTIFIED BY PASSWORD '*…'` is MariaDB's, and `IDENTIFIED VIA plugin USING '…'`.
fn in_our_form(create: &str) -> String {
    let text = create.replacen(" IDENTIFIED BY PASSWORD ", " IDENTIFIED WITH mysql_native_password AS ", 1);
    match text.split_once(" IDENTIFIED VIA ") {
        Some((before, rest)) => format!("{before} IDENTIFIED WITH {}", rest.replacen(" USING ", " AS ", 1)),
        None => text,
    }
}

/// MariaDB's SHOW GRANTS repeats the password.
fn without_password(grant: &str) -> String {
    let at = [" IDENTIFIED BY PASSWORD ", " IDENTIFIED VIA "].iter().find_map(|word| grant.find(word));
    let Some(at) = at else { return grant.into() };
    let end = match grant[at..].contains("WITH GRANT OPTION") {
        true => " WITH GRANT OPTION",
        false => "",
    };
    format!("{}{end}", &grant[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_mariadb() {
        assert_eq!(
            in_our_form("CREATE USER `a`@`%` IDENTIFIED BY PASSWORD '*AB'"),
            "CREATE USER `a`@`%` IDENTIFIED WITH mysql_native_password AS '*AB'"
        );
        assert_eq!(
            in_our_form("CREATE USER `a`@`%` IDENTIFIED VIA x USING 'y'"),
            "CREATE USER `a`@`%` IDENTIFIED WITH x AS 'y'"
        );
        assert_eq!(
            without_password("GRANT ALL PRIVILEGES ON *.* TO `a`@`%` IDENTIFIED BY PASSWORD '*AB' WITH GRANT OPTION"),
            "GRANT ALL PRIVILEGES ON *.* TO `a`@`%` WITH GRANT OPTION"
        );
    }
}
