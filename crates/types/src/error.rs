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
            | codes::GET_TEMPORARY_ERRMSG
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
        CANT_CREATE_DB = 1006 b"HY000";
        DB_CREATE_EXISTS = 1007 b"HY000";
        DB_DROP_EXISTS = 1008 b"HY000";
        CHECKREAD = 1020 b"HY000";
        DISK_FULL = 1021 b"HY000";
        DUP_KEY = 1022 b"23000";
        ERROR_ON_READ = 1024 b"HY000";
        ERROR_ON_WRITE = 1026 b"HY000";
        GET_ERRNO = 1030 b"HY000";
        KEY_NOT_FOUND = 1032 b"HY000";
        OPEN_AS_READONLY = 1036 b"HY000";
        OUTOFMEMORY = 1037 b"HY001";
        OUT_OF_SORTMEMORY = 1038 b"HY001";
        CON_COUNT = 1040 b"08004";
        OUT_OF_RESOURCES = 1041 b"HY000";
        BAD_HOST = 1042 b"08S01";
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
        WRONG_SUM_SELECT = 1057 b"42000";
        WRONG_VALUE_COUNT = 1058 b"21S01";
        TOO_LONG_IDENT = 1059 b"42000";
        DUP_FIELDNAME = 1060 b"42S21";
        DUP_KEYNAME = 1061 b"42000";
        DUP_ENTRY = 1062 b"23000";
        WRONG_FIELD_SPEC = 1063 b"42000";
        PARSE_ERROR = 1064 b"42000";
        EMPTY_QUERY = 1065 b"42000";
        NONUNIQ_TABLE = 1066 b"42000";
        INVALID_DEFAULT = 1067 b"42000";
        MULTIPLE_PRI_KEY = 1068 b"42000";
        TOO_MANY_KEYS = 1069 b"42000";
        TOO_MANY_KEY_PARTS = 1070 b"42000";
        TOO_LONG_KEY = 1071 b"42000";
        KEY_COLUMN_DOES_NOT_EXIST = 1072 b"42000";
        BLOB_USED_AS_KEY = 1073 b"42000";
        TOO_BIG_FIELDLENGTH = 1074 b"42000";
        WRONG_AUTO_KEY = 1075 b"42000";
        FORCING_CLOSE = 1080 b"08S01";
        WRONG_SUB_KEY = 1089 b"HY000";
        CANT_REMOVE_ALL_FIELDS = 1090 b"42000";
        CANT_DROP_FIELD_OR_KEY = 1091 b"42000";
        UPDATE_TABLE_USED = 1093 b"HY000";
        NO_SUCH_THREAD = 1094 b"HY000";
        KILL_DENIED = 1095 b"HY000";
        NO_TABLES_USED = 1096 b"HY000";
        TOO_BIG_SET = 1097 b"HY000";
        BLOB_CANT_HAVE_DEFAULT = 1101 b"42000";
        WRONG_DB_NAME = 1102 b"42000";
        WRONG_TABLE_NAME = 1103 b"42000";
        UNKNOWN_ERROR = 1105 b"HY000";
        UNKNOWN_TABLE = 1109 b"42S02";
        FIELD_SPECIFIED_TWICE = 1110 b"42000";
        INVALID_GROUP_FUNC_USE = 1111 b"HY000";
        UNSUPPORTED_EXTENSION = 1112 b"42000";
        TABLE_MUST_HAVE_COLUMNS = 1113 b"42000";
        RECORD_FILE_FULL = 1114 b"HY000";
        UNKNOWN_CHARACTER_SET = 1115 b"42000";
        TOO_MANY_TABLES = 1116 b"HY000";
        TOO_MANY_FIELDS = 1117 b"HY000";
        TOO_BIG_ROWSIZE = 1118 b"42000";
        HOST_IS_BLOCKED = 1129 b"HY000";
        HOST_NOT_PRIVILEGED = 1130 b"HY000";
        PASSWORD_NO_MATCH = 1133 b"42000";
        WRONG_VALUE_COUNT_ON_ROW = 1136 b"21S01";
        INVALID_USE_OF_NULL = 1138 b"22004";
        REGEXP_ERROR = 1139 b"42000";
        MIX_OF_GROUP_FUNC_AND_FIELDS = 1140 b"42000";
        NONEXISTING_GRANT = 1141 b"42000";
        TABLEACCESS_DENIED = 1142 b"42000";
        COLUMNACCESS_DENIED = 1143 b"42000";
        ILLEGAL_GRANT_FOR_TABLE = 1144 b"42000";
        NO_SUCH_TABLE = 1146 b"42S02";
        NONEXISTING_TABLE_GRANT = 1147 b"42000";
        NOT_ALLOWED_COMMAND = 1148 b"42000";
        SYNTAX_ERROR = 1149 b"42000";
        ABORTING_CONNECTION = 1152 b"08S01";
        NET_PACKET_TOO_LARGE = 1153 b"08S01";
        NET_PACKETS_OUT_OF_ORDER = 1156 b"08S01";
        NET_UNCOMPRESS_ERROR = 1157 b"08S01";
        NET_READ_ERROR = 1158 b"08S01";
        NET_READ_INTERRUPTED = 1159 b"08S01";
        NET_ERROR_ON_WRITE = 1160 b"08S01";
        NET_WRITE_INTERRUPTED = 1161 b"08S01";
        TOO_LONG_STRING = 1162 b"42000";
        WRONG_COLUMN_NAME = 1166 b"42000";
        WRONG_KEY_COLUMN = 1167 b"42000";
        DUP_UNIQUE = 1169 b"23000";
        BLOB_KEY_WITHOUT_LENGTH = 1170 b"42000";
        PRIMARY_CANT_HAVE_NULL = 1171 b"42000";
        TOO_MANY_ROWS = 1172 b"42000";
        REQUIRES_PRIMARY_KEY = 1173 b"42000";
        UPDATE_WITHOUT_KEY_IN_SAFE_MODE = 1175 b"HY000";
        KEY_DOES_NOT_EXITS = 1176 b"42000";
        CHECK_NOT_IMPLEMENTED = 1178 b"42000";
        CANT_DO_THIS_DURING_AN_TRANSACTION = 1179 b"25000";
        ERROR_DURING_COMMIT = 1180 b"HY000";
        ERROR_DURING_ROLLBACK = 1181 b"HY000";
        LOCK_OR_ACTIVE_TRANSACTION = 1192 b"HY000";
        UNKNOWN_SYSTEM_VARIABLE = 1193 b"HY000";
        TOO_MANY_USER_CONNECTIONS = 1203 b"42000";
        SET_CONSTANTS_ONLY = 1204 b"HY000";
        LOCK_WAIT_TIMEOUT = 1205 b"HY000";
        LOCK_TABLE_FULL = 1206 b"HY000";
        WRONG_ARGUMENTS = 1210 b"HY000";
        LOCK_DEADLOCK = 1213 b"40001";
        CANNOT_ADD_FOREIGN = 1215 b"HY000";
        NO_REFERENCED_ROW = 1216 b"23000";
        ROW_IS_REFERENCED = 1217 b"23000";
        WRONG_USAGE = 1221 b"HY000";
        WRONG_NUMBER_OF_COLUMNS_IN_SELECT = 1222 b"21000";
        DUP_ARGUMENT = 1225 b"HY000";
        USER_LIMIT_REACHED = 1226 b"42000";
        SPECIFIC_ACCESS_DENIED = 1227 b"42000";
        LOCAL_VARIABLE = 1228 b"HY000";
        GLOBAL_VARIABLE = 1229 b"HY000";
        NO_DEFAULT = 1230 b"42000";
        WRONG_VALUE_FOR_VAR = 1231 b"42000";
        WRONG_TYPE_FOR_VAR = 1232 b"42000";
        VAR_CANT_BE_READ = 1233 b"HY000";
        CANT_USE_OPTION_HERE = 1234 b"42000";
        NOT_SUPPORTED_YET = 1235 b"42000";
        INCORRECT_GLOBAL_LOCAL_VAR = 1238 b"HY000";
        WRONG_FK_DEF = 1239 b"42000";
        OPERAND_COLUMNS = 1241 b"21000";
        SUBQUERY_NO_1_ROW = 1242 b"21000";
        UNKNOWN_STMT_HANDLER = 1243 b"HY000";
        AUTO_CONVERT = 1246 b"HY000";
        ILLEGAL_REFERENCE = 1247 b"42S22";
        DERIVED_MUST_HAVE_ALIAS = 1248 b"42000";
        TABLENAME_NOT_ALLOWED_HERE = 1250 b"42000";
        NOT_SUPPORTED_AUTH_MODE = 1251 b"08004";
        COLLATION_CHARSET_MISMATCH = 1253 b"42000";
        CUT_VALUE_GROUP_CONCAT = 1260 b"HY000";
        WARN_TOO_FEW_RECORDS = 1261 b"01000";
        WARN_TOO_MANY_RECORDS = 1262 b"01000";
        WARN_NULL_TO_NOTNULL = 1263 b"22004";
        WARN_DATA_OUT_OF_RANGE = 1264 b"22003";
        WARN_DATA_TRUNCATED = 1265 b"01000";
        CANT_AGGREGATE_2COLLATIONS = 1267 b"HY000";
        CANT_AGGREGATE_3COLLATIONS = 1270 b"HY000";
        CANT_AGGREGATE_NCOLLATIONS = 1271 b"HY000";
        NO_PARTITION_FOR_GIVEN_VALUE = 1526 b"HY000";
        UNKNOWN_PARTITION = 1735 b"HY000";
        ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET = 1748 b"HY000";
        UNKNOWN_COLLATION = 1273 b"HY000";
        WRONG_NAME_FOR_INDEX = 1280 b"42000";
        UNKNOWN_STORAGE_ENGINE = 1286 b"42000";
        WARN_DEPRECATED_SYNTAX = 1287 b"HY000";
        NON_UPDATABLE_TABLE = 1288 b"HY000";
        OPTION_PREVENTS_STATEMENT = 1290 b"HY000";
        DUPLICATED_VALUE_IN_TYPE = 1291 b"HY000";
        TRUNCATED_WRONG_VALUE = 1292 b"22007";
        INVALID_ON_UPDATE = 1294 b"HY000";
        UNSUPPORTED_PS = 1295 b"HY000";
        GET_TEMPORARY_ERRMSG = 1297 b"HY000";
        UNKNOWN_TIME_ZONE = 1298 b"HY000";
        WARN_INVALID_TIMESTAMP = 1299 b"HY000";
        INVALID_CHARACTER_STRING = 1300 b"HY000";
        WARN_ALLOWED_PACKET_OVERFLOWED = 1301 b"HY000";
        CONFLICTING_DECLARATIONS = 1302 b"HY000";
        SP_ALREADY_EXISTS = 1304 b"42000";
        SP_DOES_NOT_EXIST = 1305 b"42000";
        QUERY_INTERRUPTED = 1317 b"70100";
        SP_WRONG_NO_OF_ARGS = 1318 b"42000";
        VIEW_NO_EXPLAIN = 1345 b"HY000";
        WRONG_OBJECT = 1347 b"HY000";
        NONUPDATEABLE_COLUMN = 1348 b"HY000";
        VIEW_SELECT_CLAUSE = 1350 b"HY000";
        VIEW_SELECT_VARIABLE = 1351 b"HY000";
        VIEW_WRONG_LIST = 1353 b"HY000";
        WARN_VIEW_MERGE = 1354 b"HY000";
        VIEW_INVALID = 1356 b"HY000";
        NO_DEFAULT_FOR_FIELD = 1364 b"HY000";
        DIVISION_BY_ZERO = 1365 b"22012";
        TRUNCATED_WRONG_VALUE_FOR_FIELD = 1366 b"HY000";
        ILLEGAL_VALUE_FOR_TYPE = 1367 b"22007";
        VIEW_NONUPD_CHECK = 1368 b"HY000";
        VIEW_CHECK_FAILED = 1369 b"HY000";
        PS_MANY_PARAM = 1390 b"HY000";
        KEY_PART_0 = 1391 b"HY000";
        VIEW_MULTIUPDATE = 1393 b"HY000";
        VIEW_NO_INSERT_FIELD_LIST = 1394 b"HY000";
        VIEW_DELETE_MERGE_VIEW = 1395 b"HY000";
        CANNOT_USER = 1396 b"HY000";
        DATA_TOO_LONG = 1406 b"22001";
        CANT_CREATE_USER_WITH_GRANT = 1410 b"42000";
        WRONG_VALUE_FOR_TYPE = 1411 b"HY000";
        TABLE_DEF_CHANGED = 1412 b"HY000";
        SP_NO_RETSET = 1415 b"0A000";
        CANT_CREATE_GEOMETRY_OBJECT = 1416 b"22003";
        STMT_HAS_NO_OPEN_CURSOR = 1421 b"HY000";
        NO_DEFAULT_FOR_VIEW_FIELD = 1423 b"HY000";
        TOO_BIG_SCALE = 1425 b"42000";
        TOO_BIG_PRECISION = 1426 b"42000";
        M_BIGGER_THAN_D = 1427 b"42000";
        STACK_OVERRUN_NEED_MORE = 1436 b"HY000";
        TOO_BIG_DISPLAYWIDTH = 1439 b"42000";
        DATETIME_FUNCTION_OVERFLOW = 1441 b"22008";
        VIEW_PREVENT_UPDATE = 1443 b"HY000";
        NO_SUCH_USER = 1449 b"HY000";
        FORBID_SCHEMA_CHANGE = 1450 b"HY000";
        ROW_IS_REFERENCED_2 = 1451 b"23000";
        NO_REFERENCED_ROW_2 = 1452 b"23000";
        MAX_PREPARED_STMT_COUNT_REACHED = 1461 b"42000";
        VIEW_RECURSIVE = 1462 b"HY000";
        NON_GROUPING_FIELD_USED = 1463 b"42000";
        AUTOINC_READ_FAILED = 1467 b"HY000";
        WRONG_STRING_LENGTH = 1470 b"HY000";
        NON_INSERTABLE_TABLE = 1471 b"HY000";
        ILLEGAL_HA_CREATE_OPTION = 1478 b"HY000";
        FIELD_NOT_FOUND_PART = 1488 b"HY000";
        UNIQUE_KEY_NEED_ALL_FIELDS_IN_PF = 1503 b"HY000";
        PLUGIN_IS_NOT_LOADED = 1524 b"HY000";
        WRONG_VALUE = 1525 b"HY000";
        DROP_INDEX_FK = 1553 b"HY000";
        CANT_CHANGE_TX_CHARACTERISTICS = 1568 b"25001";
        WRONG_PARAMCOUNT_TO_NATIVE_FCT = 1582 b"42000";
        WRONG_PARAMETERS_TO_NATIVE_FCT = 1583 b"42000";
        WRONG_PARAMETERS_TO_STORED_FCT = 1584 b"42000";
        DUP_ENTRY_WITH_KEY_NAME = 1586 b"23000";
        NEED_REPREPARE = 1615 b"HY000";
        TOO_LONG_TABLE_COMMENT = 1628 b"HY000";
        TOO_LONG_FIELD_COMMENT = 1629 b"HY000";
        FUNC_INEXISTENT_NAME_COLLISION = 1630 b"42000";
        TOO_LONG_INDEX_COMMENT = 1688 b"HY000";
        DATA_OUT_OF_RANGE = 1690 b"22003";
        ACCESS_DENIED_NO_PASSWORD = 1698 b"28000";
        TRUNCATE_ILLEGAL_FK = 1701 b"42000";
        INDEX_COLUMN_TOO_LONG = 1709 b"HY000";
        FOREIGN_DUPLICATE_KEY = 1761 b"23000";
        READ_ONLY_TRANSACTION = 1792 b"25006";
        INVALID_YEAR_COLUMN_LENGTH = 1818 b"HY000";
        NOT_VALID_PASSWORD = 1819 b"HY000";
        MUST_CHANGE_PASSWORD = 1820 b"HY000";
        FK_NO_INDEX_PARENT = 1822 b"HY000";
        FK_CANNOT_OPEN_PARENT = 1824 b"HY000";
        FK_DUP_NAME = 1826 b"HY000";
        FK_COLUMN_CANNOT_DROP = 1828 b"HY000";
        FK_COLUMN_CANNOT_DROP_CHILD = 1829 b"HY000";
        FK_COLUMN_NOT_NULL = 1830 b"HY000";
        DUP_INDEX = 1831 b"HY000";
        FK_COLUMN_CANNOT_CHANGE = 1832 b"HY000";
        FK_COLUMN_CANNOT_CHANGE_CHILD = 1833 b"HY000";
        MALFORMED_PACKET = 1835 b"HY000";
        READ_ONLY_MODE = 1836 b"HY000";
        ALTER_OPERATION_NOT_SUPPORTED = 1845 b"0A000";
        ALTER_OPERATION_NOT_SUPPORTED_REASON = 1846 b"0A000";
        ACCESS_DENIED_CHANGE_USER = 1873 b"28000";
        FK_DEPTH_EXCEEDED = 3008 b"HY000";
        INVALID_FIELD_SIZE = 3013 b"HY000";
        INVALID_ARGUMENT_FOR_LOGARITHM = 3020 b"2201E";
        QUERY_TIMEOUT = 3024 b"HY000";
        GIS_DIFFERENT_SRIDS = 3033 b"HY000";
        GIS_INVALID_DATA = 3037 b"22023";
        GIS_DATA_WRONG_ENDIANESS = 3055 b"HY000";
        USER_LOCK_WRONG_NAME = 3057 b"42000";
        USER_LOCK_DEADLOCK = 3058 b"HY000";
        INCORRECT_TYPE = 3064 b"HY000";
        INVALID_GEOJSON_MISSING_MEMBER = 3070 b"HY000";
        INVALID_GEOJSON_WRONG_TYPE = 3071 b"HY000";
        INVALID_GEOJSON_UNSPECIFIED = 3072 b"HY000";
        DIMENSION_UNSUPPORTED = 3073 b"HY000";
        ACCOUNT_LOCKED = 3118 b"HY000";
        INVALID_JSON_TEXT = 3140 b"22032";
        INVALID_JSON_TEXT_IN_PARAM = 3141 b"22032";
        INVALID_JSON_PATH = 3143 b"42000";
        INVALID_JSON_CHARSET = 3144 b"22032";
        INVALID_TYPE_FOR_JSON = 3146 b"22032";
        JSON_USED_AS_KEY = 3152 b"42000";
        INVALID_JSON_VALUE_FOR_CAST = 3156 b"22018";
        JSON_DOCUMENT_TOO_DEEP = 3157 b"22032";
        SECURE_TRANSPORT_REQUIRED = 3159 b"HY000";
        TOO_BIG_ENUM = 3504 b"HY000";
        TOO_LONG_SET_ENUM_VALUE = 3505 b"HY000";
        UNEXPECTED_GEOMETRY_TYPE = 3516 b"22S01";
        SRS_NOT_FOUND = 3548 b"SR001";
        INVALID_OPTION_KEY = 3558 b"22023";
        INVALID_OPTION_VALUE = 3559 b"22023";
        INVALID_OPTION_KEY_VALUE_PAIR = 3560 b"22023";
        INVALID_OPTION_START_CHARACTER = 3561 b"22023";
        INVALID_OPTION_END_CHARACTER = 3562 b"22023";
        INVALID_OPTION_CHARACTERS = 3563 b"22023";
        DUPLICATE_OPTION_KEY = 3564 b"22023";
        WARN_SRS_NOT_FOUND_AXIS_ORDER = 3565 b"01000";
        UNRESOLVED_TABLE_LOCK = 3568 b"HY000";
        LOCK_NOWAIT = 3572 b"HY000";
        LONGITUDE_OUT_OF_RANGE = 3616 b"22S02";
        LATITUDE_OUT_OF_RANGE = 3617 b"22S03";
        NOT_IMPLEMENTED_FOR_GEOGRAPHIC_SRS = 3618 b"22S00";
        WRONG_SRID_FOR_COLUMN = 3643 b"HY000";
        REGEXP_SYNTAX = 3685 b"HY000";
        REGEXP_TOO_BIG = 3688 b"HY000";
        NOT_IMPLEMENTED_FOR_CARTESIAN_SRS = 3704 b"22S00";
        NOT_IMPLEMENTED_FOR_PROJECTED_SRS = 3705 b"22S00";
        NONPOSITIVE_RADIUS = 3706 b"22003";
        SRS_NOT_GEOGRAPHIC = 3726 b"22S00";
        FK_CANNOT_DROP_PARENT = 3730 b"HY000";
        GEOMETRY_PARAM_LONGITUDE_OUT_OF_RANGE = 3731 b"22S02";
        GEOMETRY_PARAM_LATITUDE_OUT_OF_RANGE = 3732 b"22S03";
        FK_NO_COLUMN_PARENT = 3734 b"HY000";
        FK_INCOMPATIBLE_COLUMNS = 3780 b"HY000";
        CHECK_CONSTRAINT_VIOLATED = 3819 b"HY000";
        GEOMETRY_IN_UNKNOWN_LENGTH_UNIT = 3882 b"SU001";
        UNIT_NOT_FOUND = 3902 b"SU001";
        CLIENT_INTERACTION_TIMEOUT = 4031 b"HY000";
        INVALID_CAST_TO_GEOMETRY = 4032 b"22S01";
        INVALID_CAST_POLYGON_RING_DIRECTION = 4033 b"22S04";
        GIS_DIFFERENT_SRIDS_AGGREGATION = 4034 b"22S05";
        USER_LOCK_OVERLONG_NAME = 4163 b"42000";
    }

    /// 1503 under an earlier name.
    pub const PARTITION_FUNC_NOT_ALLOWED: u16 = UNIQUE_KEY_NEED_ALL_FIELDS_IN_PF;
}

/// SQLSTATEs other than `HY000` of codes that have no name here.
const OTHER_STATES: &[(u16, &[u8; 5])] = &[
    (1081, b"08S01"),
    (1082, b"42S12"),
    (1083, b"42000"),
    (1084, b"42000"),
    (1104, b"42000"),
    (1106, b"42000"),
    (1107, b"42000"),
    (1120, b"42000"),
    (1121, b"42000"),
    (1131, b"42000"),
    (1132, b"42000"),
    (1145, b"42000"),
    (1154, b"08S01"),
    (1155, b"08S01"),
    (1163, b"42000"),
    (1164, b"42000"),
    (1177, b"42000"),
    (1184, b"08S01"),
    (1189, b"08S01"),
    (1190, b"08S01"),
    (1207, b"25000"),
    (1211, b"42000"),
    (1218, b"08S01"),
    (1249, b"01000"),
    (1252, b"42000"),
    (1281, b"42000"),
    (1303, b"2F003"),
    (1308, b"42000"),
    (1309, b"42000"),
    (1310, b"42000"),
    (1311, b"01000"),
    (1312, b"0A000"),
    (1313, b"42000"),
    (1314, b"0A000"),
    (1319, b"42000"),
    (1320, b"42000"),
    (1321, b"2F005"),
    (1322, b"42000"),
    (1323, b"42000"),
    (1324, b"42000"),
    (1325, b"24000"),
    (1326, b"24000"),
    (1327, b"42000"),
    (1329, b"02000"),
    (1330, b"42000"),
    (1331, b"42000"),
    (1332, b"42000"),
    (1333, b"42000"),
    (1335, b"0A000"),
    (1336, b"0A000"),
    (1337, b"42000"),
    (1338, b"42000"),
    (1339, b"20000"),
    (1370, b"42000"),
    (1397, b"XAE04"),
    (1398, b"XAE05"),
    (1399, b"XAE07"),
    (1400, b"XAE09"),
    (1401, b"XAE03"),
    (1402, b"XA100"),
    (1403, b"42000"),
    (1407, b"42000"),
    (1413, b"42000"),
    (1414, b"42000"),
    (1437, b"42000"),
    (1440, b"XAE08"),
    (1453, b"42000"),
    (1458, b"42000"),
    (1460, b"42000"),
    (1613, b"XA106"),
    (1614, b"XA102"),
    (1641, b"42000"),
    (1642, b"01000"),
    (1643, b"02000"),
    (1645, b"0K000"),
    (1687, b"42000"),
    (1758, b"35000"),
    (1859, b"23000"),
    (1887, b"0Z002"),
    (3149, b"42000"),
    (3150, b"22032"),
    (3153, b"42000"),
    (3154, b"42000"),
    (3155, b"22003"),
    (3158, b"22032"),
    (3665, b"22035"),
    (3666, b"2203F"),
    (3667, b"42000"),
    (3669, b"22003"),
    (3670, b"42000"),
];

fn sqlstate(code: u16) -> &'static [u8; 5] {
    codes::STATES.iter().chain(OTHER_STATES).find(|(c, _)| *c == code).map_or(b"HY000", |(_, s)| *s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_states_of_the_manual() {
        for (code, state) in [
            (codes::DUP_ENTRY, "23000"),
            (codes::PARSE_ERROR, "42000"),
            (codes::LOCK_DEADLOCK, "40001"),
            (codes::TOO_MANY_FIELDS, "HY000"),
            (codes::TRUNCATED_WRONG_VALUE, "22007"),
            (codes::WARN_DATA_OUT_OF_RANGE, "22003"),
            (1325, "24000"),
            (9999, "HY000"),
        ] {
            assert_eq!(MysqlError::new(code, "").state_str(), state, "{code}");
        }
        let error = MysqlError::new(codes::NO_DB, "No database selected");
        assert_eq!(error.to_string(), "ERROR 1046 (3D000): No database selected");
    }

    #[test]
    fn no_code_is_listed_twice() {
        let mut all: Vec<u16> = codes::STATES.iter().chain(OTHER_STATES).map(|(code, _)| *code).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn classes_say_what_a_caller_may_do() {
        assert_eq!(MysqlError::new(codes::LOCK_DEADLOCK, "").class(), ErrorClass::Temporary);
        assert_eq!(MysqlError::new(codes::ERROR_DURING_COMMIT, "").class(), ErrorClass::UnknownOutcome);
        assert_eq!(MysqlError::new(codes::DUP_ENTRY, "").class(), ErrorClass::Permanent);
    }
}
