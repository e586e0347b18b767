//! Values of variables that would change answers or safety, and that nothing here follows: error 1235 instead of a promise.
//!
//! Each variable stands here with the values that say what Rauk does in any case; any other value is refused. docs/sql.md lists them, and names the
//! variables whose values are kept without an effect because nothing that a client sees depends on them.

use super::definition::Variable;
use crate::session::errors;
use rauk_types::{MysqlError, Value};

const KEPT: &[(&str, &[&str])] = &[
    ("authentication_policy", &["*,,"]),
    ("check_proxy_users", &["OFF"]),
    ("default_collation_for_utf8mb4", &["utf8mb4_0900_ai_ci"]),
    ("default_table_encryption", &["OFF"]),
    ("explicit_defaults_for_timestamp", &["ON"]),
    ("ft_boolean_syntax", &["+ -><()~*:\"\"&|"]),
    ("general_log", &["OFF"]),
    ("gtid_mode", &["OFF"]),
    ("init_connect", &[""]),
    ("innodb_ft_enable_stopword", &["ON"]),
    ("innodb_ft_server_stopword_table", &["", "NULL"]),
    ("innodb_ft_user_stopword_table", &["", "NULL"]),
    ("offline_mode", &["OFF"]),
    ("optimizer_trace", &["enabled=off,one_line=off", "enabled=off,one_line=on", "enabled=off"]),
    ("resultset_metadata", &["FULL"]),
    ("secure_auth", &["ON"]),
    ("session_track_gtids", &["OFF"]),
    ("slow_query_log", &["OFF"]),
    ("updatable_views_with_limit", &["YES"]),
    ("use_secondary_engine", &["ON", "OFF"]),
];

/// Error 1235 for a value that says what is not done. `started`: what the server has begun with.
pub fn check(variable: &Variable, value: &Value, started: &Value) -> Result<(), MysqlError> {
    let Some((name, kept)) = KEPT.iter().find(|(name, _)| *name == variable.name) else { return Ok(()) };
    let shown = variable.show(value);
    match value == started || kept.iter().any(|kept| kept.eq_ignore_ascii_case(&shown)) {
        true => Ok(()),
        false => Err(errors::not_supported(&format!("{name} = {shown}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::find;
    use super::*;

    #[test]
    fn defaults_are_never_refused() {
        for (name, kept) in KEPT {
            let variable = find(name).expect("it is a variable").0;
            let default = variable.default_value();
            assert!(check(variable, &default, &Value::Null).is_ok() || kept.is_empty(), "{name}");
        }
    }
}
