//! What MySQL's manual lists as "internal use only": functions for the views of its data dictionary. Whoever calls one
//! is refused there with the same error.

use rauk_types::MysqlError;

/// ER_NO_ACCESS_TO_NATIVE_FCT.
const NO_ACCESS: u16 = 3566;

const NAMES: [&str; 28] = [
    "CAN_ACCESS_COLUMN",
    "CAN_ACCESS_DATABASE",
    "CAN_ACCESS_TABLE",
    "CAN_ACCESS_USER",
    "CAN_ACCESS_VIEW",
    "GET_DD_COLUMN_PRIVILEGES",
    "GET_DD_CREATE_OPTIONS",
    "GET_DD_INDEX_SUB_PART_LENGTH",
    "INTERNAL_AUTO_INCREMENT",
    "INTERNAL_AVG_ROW_LENGTH",
    "INTERNAL_CHECKSUM",
    "INTERNAL_CHECK_TIME",
    "INTERNAL_DATA_FREE",
    "INTERNAL_DATA_LENGTH",
    "INTERNAL_DD_CHAR_LENGTH",
    "INTERNAL_GET_COMMENT_OR_ERROR",
    "INTERNAL_GET_ENABLED_ROLE_JSON",
    "INTERNAL_GET_HOSTNAME",
    "INTERNAL_GET_USERNAME",
    "INTERNAL_GET_VIEW_WARNING_OR_ERROR",
    "INTERNAL_INDEX_COLUMN_CARDINALITY",
    "INTERNAL_INDEX_LENGTH",
    "INTERNAL_IS_ENABLED_ROLE",
    "INTERNAL_IS_MANDATORY_ROLE",
    "INTERNAL_KEYS_DISABLED",
    "INTERNAL_MAX_DATA_LENGTH",
    "INTERNAL_TABLE_ROWS",
    "INTERNAL_UPDATE_TIME",
];

/// The refusal of a call of an internal function, whose name is in upper case.
pub(in crate::expr) fn refusal(name: &str, written: &str) -> Option<MysqlError> {
    let message = || format!("Access to native function '{written}' is rejected.");
    NAMES.contains(&name).then(|| MysqlError::new(NO_ACCESS, message()))
}
