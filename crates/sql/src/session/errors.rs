//! MySQL's errors that several parts of the session give, with MySQL's wording.

use super::variables::table::VARIABLES;
use crate::nearest;
use rauk_types::MysqlError;
use rauk_types::error::codes;

pub fn unknown_variable(name: &str) -> MysqlError {
    let hint = nearest::hint(name, VARIABLES.iter().map(|variable| variable.name));
    MysqlError::new(codes::UNKNOWN_SYSTEM_VARIABLE, format!("Unknown system variable '{name}'{hint}"))
}

/// 1238: `@@session.` of a global variable, or the other way round.
pub fn incorrect_scope(name: &str, scope: &str) -> MysqlError {
    MysqlError::new(codes::INCORRECT_GLOBAL_LOCAL_VAR, format!("Variable '{name}' is a {scope} variable"))
}

pub fn read_only_variable(name: &str) -> MysqlError {
    MysqlError::new(codes::INCORRECT_GLOBAL_LOCAL_VAR, format!("Variable '{name}' is a read only variable"))
}

pub fn wrong_value(name: &str, value: &str) -> MysqlError {
    MysqlError::new(codes::WRONG_VALUE_FOR_VAR, format!("Variable '{name}' can't be set to the value of '{value}'"))
}

pub fn wrong_type(name: &str) -> MysqlError {
    MysqlError::new(codes::WRONG_TYPE_FOR_VAR, format!("Incorrect argument type to variable '{name}'"))
}

pub fn not_supported(what: &str) -> MysqlError {
    MysqlError::new(codes::NOT_SUPPORTED_YET, format!("This version of MySQL doesn't yet support '{what}'"))
}

/// ER_UNKNOWN_ERROR.
pub fn unknown(text: &str) -> MysqlError {
    MysqlError::new(codes::UNKNOWN_ERROR, text)
}

pub fn no_database() -> MysqlError {
    MysqlError::new(codes::NO_DB, "No database selected")
}

pub fn unknown_database(name: &str) -> MysqlError {
    MysqlError::new(codes::BAD_DB, format!("Unknown database '{name}'"))
}

pub fn no_such_table(database: &str, name: &str) -> MysqlError {
    MysqlError::new(codes::NO_SUCH_TABLE, format!("Table '{database}.{name}' doesn't exist"))
}

pub fn table_exists(name: &str) -> MysqlError {
    MysqlError::new(codes::TABLE_EXISTS, format!("Table '{name}' already exists"))
}

/// 1227.
pub fn needs_privilege(privileges: &str) -> MysqlError {
    MysqlError::new(
        codes::SPECIFIC_ACCESS_DENIED,
        format!("Access denied; you need (at least one of) the {privileges} privilege(s) for this operation"),
    )
}

pub fn database_denied(user: &str, host: &str, database: &str) -> MysqlError {
    MysqlError::new(
        codes::DBACCESS_DENIED,
        format!("Access denied for user '{user}'@'{host}' to database '{database}'"),
    )
}

pub fn table_denied(command: &str, user: &str, host: &str, table: &str) -> MysqlError {
    MysqlError::new(
        codes::TABLEACCESS_DENIED,
        format!("{command} command denied to user '{user}'@'{host}' for table '{table}'"),
    )
}

/// 1143.
pub fn column_denied(command: &str, user: &str, host: &str, column: &str, table: &str) -> MysqlError {
    MysqlError::new(
        codes::COLUMNACCESS_DENIED,
        format!("{command} command denied to user '{user}'@'{host}' for column '{column}' in table '{table}'"),
    )
}

/// 1449.
pub fn no_such_definer(user: &str, host: &str) -> MysqlError {
    let message = format!("The user specified as a definer ('{user}'@'{host}') does not exist");
    MysqlError::new(codes::NO_SUCH_USER, message)
}

/// 1347; `kind`: `VIEW` or `BASE TABLE`.
pub fn wrong_object(database: &str, name: &str, kind: &str) -> MysqlError {
    MysqlError::new(codes::WRONG_OBJECT, format!("'{database}.{name}' is not {kind}"))
}

pub fn too_long_identifier(name: &str) -> MysqlError {
    MysqlError::new(codes::TOO_LONG_IDENT, format!("Identifier name '{name}' is too long"))
}
