//! Values of variables that would change answers or safety, and that nothing here follows: error 1235 instead of a promise; and
//! a memory limit that could not be kept (1231).
//!
//! Each variable stands here with the values that say what Rauk does in any case; any other value is refused. docs/sql.md lists them, and names the
//! variables whose values are kept without an effect because nothing that a client sees depends on them.

use super::definition::Variable;
use crate::expr::check_gtid_set;
use crate::session::ddl::options::is_engine;
use crate::session::errors;
use rauk_types::error::codes;
use rauk_types::{MysqlError, Value, size};

const KEPT: &[(&str, &[&str])] = &[
    ("authentication_policy", &["*,,"]),
    ("check_proxy_users", &["OFF"]),
    ("default_collation_for_utf8mb4", &["utf8mb4_0900_ai_ci"]),
    ("default_table_encryption", &["OFF"]),
    ("end_markers_in_json", &["OFF"]),
    ("enforce_gtid_consistency", &["OFF"]),
    ("explain_format", &["TRADITIONAL"]),
    ("explain_json_format_version", &["1"]),
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
    ("restrict_fk_on_non_standard_key", &["OFF"]),
    ("resultset_metadata", &["FULL"]),
    ("secure_auth", &["ON"]),
    ("select_into_disk_sync", &["OFF"]),
    ("session_track_gtids", &["OFF"]),
    ("show_old_temporals", &["OFF"]),
    ("slow_query_log", &["OFF"]),
    ("sql_generate_invisible_primary_key", &["OFF"]),
    ("sql_warnings", &["OFF"]),
    ("updatable_views_with_limit", &["YES"]),
    ("use_secondary_engine", &["ON", "OFF"]),
];

pub const MEMORY_LIMIT: &str = "rauk_memory_limit";

/// ER_CANT_SET_GTID_NEXT_TO_GTID_WHEN_GTID_MODE_IS_OFF.
const NO_GTID: u16 = 1781;

/// Errors 1235, 1286 and 1781 for a value that says what is not done. `started`: what the server has begun with.
pub fn check(variable: &Variable, value: &Value, started: &Value) -> Result<(), MysqlError> {
    match (variable.name, value) {
        ("default_storage_engine" | "default_tmp_storage_engine", Value::Str(engine)) if !is_engine(engine) => {
            let message = format!("Unknown storage engine '{engine}'");
            return Err(MysqlError::new(codes::UNKNOWN_STORAGE_ENGINE, message));
        }
        ("gtid_purged", Value::Str(set)) => check_gtid_set(set.strip_prefix('+').unwrap_or(set))?,
        ("gtid_next", Value::Str(id)) if !["AUTOMATIC", "ANONYMOUS"].iter().any(|w| id.eq_ignore_ascii_case(w)) => {
            let message = "@@SESSION.GTID_NEXT cannot be set to UUID:NUMBER when @@GLOBAL.GTID_MODE = OFF.";
            return Err(MysqlError::new(NO_GTID, message));
        }
        _ => {}
    }
    let Some((name, kept)) = KEPT.iter().find(|(name, _)| *name == variable.name) else { return Ok(()) };
    let shown = variable.show(value);
    match value == started || kept.iter().any(|kept| kept.eq_ignore_ascii_case(&shown)) {
        true => Ok(()),
        false => Err(errors::not_supported(&format!("{name} = {shown}"))),
    }
}

/// Error 1231 for a memory limit above what the process can have: the system would end it before the limit is reached.
pub fn check_memory(variable: &Variable, value: &Value, available: u64) -> Result<(), MysqlError> {
    let (MEMORY_LIMIT, Value::UInt(bytes)) = (variable.name, value) else { return Ok(()) };
    if *bytes <= available {
        return Ok(());
    }
    let MysqlError { code, message, .. } = errors::wrong_value(variable.name, &bytes.to_string());
    let most = size::show(available);
    Err(MysqlError::new(code, format!("{message}: this machine, or its control group, has {most} of memory")))
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
