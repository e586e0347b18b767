//! Error classes, and the one place where errors get MySQL's codes.
//!
//! Every crate has an error enum of its own; what reaches a client is a
//! [`MysqlError`]: code, SQLSTATE, text. The [`ErrorClass`] says what a caller
//! may do: try again, give up, find out, or stop the node.

use std::fmt;

/// What a caller may do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The same transaction may succeed when run again.
    Temporary,
    /// It fails again until something else changes.
    Permanent,
    /// Nobody knows whether it took effect.
    UnknownOutcome,
    /// The node must stop.
    Fatal,
}

/// An error as a MySQL client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MysqlError {
    pub code: u16,
    pub state: [u8; 5],
    pub message: String,
}

impl MysqlError {
    /// An error with the SQLSTATE that MySQL's manual lists for `code`.
    pub fn new(code: u16, message: impl Into<String>) -> Self {
        MysqlError { code, state: *sqlstate(code), message: message.into() }
    }

    pub fn state_str(&self) -> &str {
        std::str::from_utf8(&self.state).expect("SQLSTATE is ASCII")
    }

    pub fn class(&self) -> ErrorClass {
        match self.code {
            codes::LOCK_DEADLOCK
            | codes::LOCK_WAIT_TIMEOUT
            | codes::CHECKREAD
            | codes::RECORD_FILE_FULL
            | codes::DISK_FULL
            | codes::CON_COUNT
            | codes::LOCK_NOWAIT => ErrorClass::Temporary,
            codes::ERROR_DURING_COMMIT => ErrorClass::UnknownOutcome,
            _ => ErrorClass::Permanent,
        }
    }
}

impl fmt::Display for MysqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.code, self.state_str(), self.message)
    }
}

impl std::error::Error for MysqlError {}

/// MySQL's error numbers, without the `ER_` prefix (MySQL 8 error message reference).
pub mod codes {
    macro_rules! codes {
        ($($name:ident = $code:literal $state:literal;)*) => {
            $(pub const $name: u16 = $code;)*
            pub(super) const STATES: &[(u16, &[u8; 5])] = &[$(($code, $state)),*];
        };
    }
    codes! {
        CANT_CREATE_TABLE = 1005 b"HY000";
        DB_CREATE_EXISTS = 1007 b"HY000";
        DB_DROP_EXISTS = 1008 b"HY000";
        CHECKREAD = 1020 b"HY000";
        DISK_FULL = 1021 b"HY000";
        DUP_KEY = 1022 b"23000";
        OUT_OF_SORTMEMORY = 1038 b"HY001";
        CON_COUNT = 1040 b"08004";
        HANDSHAKE = 1043 b"08S01";
        DBACCESS_DENIED = 1044 b"42000";
        ACCESS_DENIED = 1045 b"28000";
        NO_DB = 1046 b"3D000";
        UNKNOWN_COM = 1047 b"08S01";
        BAD_NULL = 1048 b"23000";
        BAD_DB = 1049 b"42000";
        TABLE_EXISTS = 1050 b"42S01";
        BAD_TABLE = 1051 b"42S02";
        NON_UNIQ = 1052 b"23000";
        SERVER_SHUTDOWN = 1053 b"08S01";
        BAD_FIELD = 1054 b"42S22";
        WRONG_FIELD_WITH_GROUP = 1055 b"42000";
        WRONG_GROUP_FIELD = 1056 b"42000";
        WRONG_VALUE_COUNT = 1058 b"21S01";
        TOO_LONG_IDENT = 1059 b"42000";
        DUP_FIELDNAME = 1060 b"42S21";
        DUP_KEYNAME = 1061 b"42000";
        DUP_ENTRY = 1062 b"23000";
        PARSE_ERROR = 1064 b"42000";
        EMPTY_QUERY = 1065 b"42000";
        NONUNIQ_TABLE = 1066 b"42000";
        INVALID_DEFAULT = 1067 b"42000";
        MULTIPLE_PRI_KEY = 1068 b"42000";
        TOO_MANY_KEYS = 1069 b"42000";
        TOO_MANY_KEY_PARTS = 1070 b"42000";
        TOO_LONG_KEY = 1071 b"42000";
        KEY_COLUMN_DOES_NOT_EXIST = 1072 b"42000";
        TOO_BIG_FIELDLENGTH = 1074 b"42000";
        WRONG_AUTO_KEY = 1075 b"42000";
        FORCING_CLOSE = 1080 b"08S01";
        WRONG_SUB_KEY = 1089 b"HY000";
        CANT_REMOVE_ALL_FIELDS = 1090 b"42000";
        CANT_DROP_FIELD_OR_KEY = 1091 b"42000";
        NO_SUCH_THREAD = 1094 b"HY000";
        KILL_DENIED = 1095 b"HY000";
        NO_TABLES_USED = 1096 b"HY000";
        BLOB_CANT_HAVE_DEFAULT = 1101 b"42000";
        WRONG_DB_NAME = 1102 b"42000";
        WRONG_TABLE_NAME = 1103 b"42000";
        UNKNOWN_ERROR = 1105 b"HY000";
        UNKNOWN_TABLE = 1109 b"42S02";
        FIELD_SPECIFIED_TWICE = 1110 b"42000";
        INVALID_GROUP_FUNC_USE = 1111 b"HY000";
        TABLE_MUST_HAVE_COLUMNS = 1113 b"42000";
        RECORD_FILE_FULL = 1114 b"HY000";
        UNKNOWN_CHARACTER_SET = 1115 b"42000";
        TOO_MANY_FIELDS = 1117 b"42000";
        TOO_BIG_ROWSIZE = 1118 b"42000";
        WRONG_VALUE_COUNT_ON_ROW = 1136 b"21S01";
        MIX_OF_GROUP_FUNC_AND_FIELDS = 1140 b"42000";
        NONEXISTING_GRANT = 1141 b"42000";
        TABLEACCESS_DENIED = 1142 b"42000";
        NO_SUCH_TABLE = 1146 b"42S02";
        SYNTAX_ERROR = 1149 b"42000";
        NET_PACKET_TOO_LARGE = 1153 b"08S01";
        NET_PACKETS_OUT_OF_ORDER = 1156 b"08S01";
        PRIMARY_CANT_HAVE_NULL = 1171 b"42000";
        BLOB_KEY_WITHOUT_LENGTH = 1170 b"42000";
        KEY_DOES_NOT_EXITS = 1176 b"42000";
        ERROR_DURING_COMMIT = 1180 b"HY000";
        UNKNOWN_SYSTEM_VARIABLE = 1193 b"HY000";
        LOCK_WAIT_TIMEOUT = 1205 b"HY000";
        WRONG_ARGUMENTS = 1210 b"HY000";
        LOCK_DEADLOCK = 1213 b"40001";
        CANNOT_ADD_FOREIGN = 1215 b"HY000";
        WRONG_NUMBER_OF_COLUMNS_IN_SELECT = 1222 b"21000";
        SPECIFIC_ACCESS_DENIED = 1227 b"42000";
        LOCAL_VARIABLE = 1228 b"HY000";
        GLOBAL_VARIABLE = 1229 b"HY000";
        NO_DEFAULT = 1230 b"42000";
        WRONG_VALUE_FOR_VAR = 1231 b"42000";
        WRONG_TYPE_FOR_VAR = 1232 b"42000";
        NOT_SUPPORTED_YET = 1235 b"42000";
        INCORRECT_GLOBAL_LOCAL_VAR = 1238 b"HY000";
        OPERAND_COLUMNS = 1241 b"21000";
        SUBQUERY_NO_1_ROW = 1242 b"21000";
        UNKNOWN_STMT_HANDLER = 1243 b"HY000";
        ILLEGAL_REFERENCE = 1247 b"42S22";
        DERIVED_MUST_HAVE_ALIAS = 1248 b"42000";
        CONFLICTING_DECLARATIONS = 1302 b"HY000";
        WARN_TOO_MANY_RECORDS = 1262 b"01000";
        WARN_DATA_OUT_OF_RANGE = 1264 b"22003";
        WARN_DATA_TRUNCATED = 1265 b"01000";
        CANT_AGGREGATE_2COLLATIONS = 1267 b"HY000";
        UNKNOWN_COLLATION = 1273 b"HY000";
        WRONG_NAME_FOR_INDEX = 1280 b"42000";
        UNKNOWN_STORAGE_ENGINE = 1286 b"42000";
        WARN_DEPRECATED_SYNTAX = 1287 b"HY000";
        TRUNCATED_WRONG_VALUE = 1292 b"22007";
        SP_DOES_NOT_EXIST = 1305 b"42000";
        QUERY_INTERRUPTED = 1317 b"70100";
        NO_DEFAULT_FOR_FIELD = 1364 b"HY000";
        DIVISION_BY_ZERO = 1365 b"22012";
        TRUNCATED_WRONG_VALUE_FOR_FIELD = 1366 b"HY000";
        ILLEGAL_VALUE_FOR_TYPE = 1367 b"22007";
        CANNOT_USER = 1396 b"HY000";
        DATA_TOO_LONG = 1406 b"22001";
        WRONG_STRING_LENGTH = 1470 b"HY000";
        TABLE_DEF_CHANGED = 1412 b"HY000";
        SP_NO_RETSET = 1415 b"0A000";
        TOO_BIG_SCALE = 1425 b"42000";
        TOO_BIG_PRECISION = 1426 b"42000";
        M_BIGGER_THAN_D = 1427 b"42000";
        DATETIME_FUNCTION_OVERFLOW = 1441 b"22008";
        WRONG_PARAMCOUNT_TO_NATIVE_FCT = 1582 b"42000";
        WRONG_PARAMETERS_TO_NATIVE_FCT = 1583 b"42000";
        DUP_ENTRY_WITH_KEY_NAME = 1586 b"23000";
        INDEX_COLUMN_TOO_LONG = 1709 b"HY000";
        READ_ONLY_TRANSACTION = 1792 b"25006";
        UNKNOWN_TIME_ZONE = 1298 b"HY000";
        CANT_CHANGE_TX_CHARACTERISTICS = 1568 b"25001";
        PARTITION_FUNC_NOT_ALLOWED = 1503 b"HY000";
        UNSUPPORTED_EXTENSION = 1112 b"42000";
        DATA_OUT_OF_RANGE = 1690 b"22003";
        INVALID_JSON_TEXT = 3140 b"22032";
        UNSUPPORTED_PS = 1295 b"HY000";
        MUST_CHANGE_PASSWORD = 1820 b"HY000";
        LOCK_NOWAIT = 3572 b"HY000";
        INVALID_JSON_TEXT_IN_PARAM = 3141 b"22032";
        CLIENT_INTERACTION_TIMEOUT = 4031 b"HY000";
    }
}

fn sqlstate(code: u16) -> &'static [u8; 5] {
    codes::STATES.iter().find(|(c, _)| *c == code).map_or(b"HY000", |(_, s)| *s)
}
