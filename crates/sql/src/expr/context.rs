//! What evaluation knows of its session: one per session, lent to every statement.
use crate::memory::heap_bytes;
use rauk_types::error::codes;
use rauk_types::{Collation, MysqlError, Value};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Variables of the session that decide what expressions mean, beside sql_mode. Binding puts them into the expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    /// div_precision_increment.
    pub division_digits: u8,
    /// default_week_format.
    pub week: u8,
    /// lc_time_names, by its number.
    pub locale: u8,
}

impl Default for Formats {
    fn default() -> Self {
        Formats { division_digits: 4, week: 0, locale: 0 }
    }
}

/// sql_mode as flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlMode {
    pub strict: bool,
    pub ansi_quotes: bool,
    pub pipes_as_concat: bool,
    pub no_backslash_escapes: bool,
    pub only_full_group_by: bool,
    pub no_zero_date: bool,
    pub no_zero_in_date: bool,
    pub error_for_division_by_zero: bool,
    pub no_auto_value_on_zero: bool,
    pub no_unsigned_subtraction: bool,
    pub high_not_precedence: bool,
    pub ignore_space: bool,
    pub real_as_float: bool,
    pub pad_char_to_full_length: bool,
    pub allow_invalid_dates: bool,
    pub time_truncate_fractional: bool,
    pub no_engine_substitution: bool,
    /// They go wherever sql_mode goes: a plan belongs to both.
    pub formats: Formats,
}

impl Default for SqlMode {
    /// MySQL 8's default: ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION.
    fn default() -> Self {
        SqlMode {
            strict: true,
            ansi_quotes: false,
            pipes_as_concat: false,
            no_backslash_escapes: false,
            only_full_group_by: true,
            no_zero_date: true,
            no_zero_in_date: true,
            error_for_division_by_zero: true,
            no_auto_value_on_zero: false,
            no_unsigned_subtraction: false,
            high_not_precedence: false,
            ignore_space: false,
            real_as_float: false,
            pad_char_to_full_length: false,
            allow_invalid_dates: false,
            time_truncate_fractional: false,
            no_engine_substitution: true,
            formats: Formats::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningLevel {
    Note,
    Warning,
    Error,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub level: WarningLevel,
    pub code: u16,
    pub message: String,
}

/// `@@name` inside expressions; the session implements it.
pub trait SystemVariables: Send + Sync {
    fn get(&self, scope: crate::parse::statement::Scope, name: &str) -> Result<Value, rauk_types::MysqlError>;
}

/// What functions ask of the server around the session.
pub trait Server: Send + Sync {
    /// The first `most` bytes of a file; nothing where the session may not read it or there is none.
    fn read_file(&self, name: &str, most: usize) -> Option<Vec<u8>>;

    /// Which roles are granted to whom, as GraphML.
    fn roles_graph(&self) -> String;

    /// The present in microseconds since 1970 UTC, which goes on within a statement.
    fn clock_micros(&self) -> Option<i64> {
        None
    }
}

/// No files and no accounts: where expressions are evaluated outside of a session.
pub struct NoServer;

impl Server for NoServer {
    fn read_file(&self, _: &str, _: usize) -> Option<Vec<u8>> {
        None
    }

    fn roles_graph(&self) -> String {
        String::new()
    }
}

/// A value of `@name`.
#[derive(Clone, Debug, PartialEq)]
pub struct UserVariable {
    pub value: Value,
    /// Of a text.
    pub collation: Collation,
}

/// Session state that expressions read and write.
pub struct Context {
    /// Parameters of the running statement, literals taken out by the plan cache included.
    pub parameters: Vec<Value>,
    pub sql_mode: SqlMode,
    /// Start of the statement: microseconds since 1970 UTC (NOW()).
    pub now_micros: i64,
    pub time_zone: jiff::tz::TimeZone,
    pub collation: rauk_types::Collation,
    pub current_database: Option<String>,
    /// `user@host` as the client gave it, and the account that matched.
    pub user: String,
    pub current_user: String,
    /// The active roles, or NONE.
    pub current_role: String,
    /// In the cluster.
    pub connection_id: u64,
    pub last_insert_id: u64,
    /// What LAST_INSERT_ID(expr) set in this statement.
    pub new_last_insert_id: Option<u64>,
    /// auto_increment_increment and auto_increment_offset.
    pub auto_increment: (u64, u64),
    /// SET insert_id: the first number that the next INSERT generates.
    pub insert_id: Option<u64>,
    pub row_count: i64,
    pub found_rows: u64,
    pub user_variables: HashMap<String, UserVariable>,
    /// What they take, as far as [`Context::set_user_variable`] has set them.
    pub user_variable_bytes: usize,
    pub warnings: Vec<Warning>,
    /// Warnings beyond max_error_count are counted only.
    pub warning_count: u64,
    pub max_error_count: usize,
    pub max_allowed_packet: usize,
    /// True inside INSERT/UPDATE/DELETE of strict mode: conversions that lose data are errors, not warnings.
    pub strict_statement: bool,
    /// The tables that the running UPDATE or DELETE changes are read with exclusive locks.
    pub locks_changed_tables: bool,
    /// IGNORE: errors of values become warnings.
    pub ignores_errors: bool,
    /// Rows that the conditions of the last UPDATE were true for.
    pub matched_rows: u64,
    pub variables: Arc<dyn SystemVariables>,
    pub server: Arc<dyn Server>,
    pub budget: super::Budget,
    /// The other queries of the running statement.
    pub subqueries: super::answers::Subqueries,
    /// The searches by MATCH of the running statement.
    pub searches: super::fulltext::Searches,
    /// Of EXPLAIN ANALYZE: what its operators do is counted.
    pub measures: Option<Box<crate::measure::Measures>>,
    /// GET_LOCK's.
    pub user_locks: crate::locks::UserLocks,
    /// State of RAND() with and without seed, UUID() and the like.
    pub random_state: u64,
    /// Paths in documents that the session has used lately.
    pub(crate) json_paths: crate::expr::json::path::Paths,
    /// Where a read of one row makes its key: kept, so that it allocates nothing.
    pub key: Vec<u8>,
    /// The running statement's calls of RAND(seed) with a constant seed: a number of the call, and its state.
    pub seeded_random: Vec<(i64, u64, u64)>,
}

impl SqlMode {
    /// The parts that decide how text is read.
    pub fn parse_mode(&self) -> crate::parse::Mode {
        crate::parse::Mode {
            ansi_quotes: self.ansi_quotes,
            no_backslash_escapes: self.no_backslash_escapes,
            pipes_as_concat: self.pipes_as_concat,
            high_not_precedence: self.high_not_precedence,
        }
    }

    /// What is accepted as a date: of `for_storing`, NO_ZERO_DATE and NO_ZERO_IN_DATE count.
    pub fn date_flags(&self, for_storing: bool) -> rauk_types::datetime::DateFlags {
        rauk_types::datetime::DateFlags {
            no_zero_date: for_storing && self.no_zero_date,
            no_zero_in_date: for_storing && self.no_zero_in_date,
            allow_invalid: self.allow_invalid_dates,
        }
    }
}

/// What there is of system variables without a session.
struct NoVariables;

impl SystemVariables for NoVariables {
    fn get(&self, _: crate::parse::statement::Scope, name: &str) -> Result<Value, MysqlError> {
        Err(MysqlError::new(codes::UNKNOWN_SYSTEM_VARIABLE, format!("Unknown system variable '{name}'")))
    }
}

impl Context {
    /// For constants, which are computed while a statement is planned.
    pub(crate) fn without_session() -> Context {
        static NONE: OnceLock<Arc<NoVariables>> = OnceLock::new();
        Context::new(NONE.get_or_init(|| Arc::new(NoVariables)).clone())
    }

    /// A session's state before its first statement, for tests and for folding constants.
    pub fn new(variables: Arc<dyn SystemVariables>) -> Context {
        Context {
            json_paths: Default::default(),
            parameters: Vec::new(),
            sql_mode: SqlMode::default(),
            now_micros: 0,
            time_zone: jiff::tz::TimeZone::UTC,
            collation: rauk_types::Collation::DEFAULT,
            current_database: None,
            user: String::new(),
            current_user: String::new(),
            current_role: String::new(),
            connection_id: 0,
            last_insert_id: 0,
            new_last_insert_id: None,
            auto_increment: (1, 1),
            insert_id: None,
            row_count: 0,
            found_rows: 0,
            user_variables: HashMap::new(),
            user_variable_bytes: 0,
            warnings: Vec::new(),
            warning_count: 0,
            max_error_count: 1024,
            max_allowed_packet: 64 << 20,
            strict_statement: false,
            locks_changed_tables: false,
            ignores_errors: false,
            matched_rows: 0,
            variables,
            server: Arc::new(NoServer),
            budget: super::Budget::default(),
            subqueries: Default::default(),
            searches: Default::default(),
            measures: None,
            user_locks: Default::default(),
            random_state: 0,
            key: Vec::new(),
            seeded_random: Vec::new(),
        }
    }

    /// For another thread that works on the same statement, without what the statement has come to so far, the session's
    /// variables and its subqueries. `random_state`: its own.
    pub(crate) fn beside(&self, random_state: u64) -> Context {
        Context {
            sql_mode: self.sql_mode,
            now_micros: self.now_micros,
            time_zone: self.time_zone.clone(),
            collation: self.collation,
            current_database: self.current_database.clone(),
            user: self.user.clone(),
            current_user: self.current_user.clone(),
            current_role: self.current_role.clone(),
            connection_id: self.connection_id,
            auto_increment: self.auto_increment,
            max_error_count: self.max_error_count,
            max_allowed_packet: self.max_allowed_packet,
            strict_statement: self.strict_statement,
            ignores_errors: self.ignores_errors,
            server: self.server.clone(),
            random_state,
            ..Context::new(self.variables.clone())
        }
    }

    /// Notes warnings of another thread, `count` of them, of which these were kept.
    pub(crate) fn take_over(&mut self, warnings: Vec<Warning>, count: u64) {
        let room = self.max_error_count.saturating_sub(self.warnings.len());
        self.warnings.extend(warnings.into_iter().take(room));
        self.warning_count += count;
    }

    /// `@name := value`. Error 1038: a session's variables may take as much memory as one of its statements.
    pub fn set_user_variable(&mut self, name: String, value: Value, collation: Collation) -> Result<(), MysqlError> {
        // A variable holds no JSON: it has its text.
        let (value, collation) = match value.as_ref() {
            rauk_types::ValueRef::Json(document) => {
                let mut text = Vec::new();
                document.append_shown(&mut text);
                (Value::Str(String::from_utf8_lossy(&text).into_owned()), Collation::Utf8mb4Bin)
            }
            _ => (value, collation),
        };
        let bytes = |name: &str, value: &Value| name.len() + heap_bytes(value) + 2 * size_of::<(String, Value)>();
        let old = self.user_variables.get(&name).map_or(0, |old| bytes(&name, &old.value));
        let now = self.user_variable_bytes.saturating_sub(old) + bytes(&name, &value);
        self.budget.memory.check(now)?;
        self.user_variable_bytes = now;
        self.subqueries.changes_variable(&name, self.user_variables.get(&name));
        self.user_variables.insert(name, UserVariable { value, collation });
        Ok(())
    }

    /// Notes a warning.
    pub fn warn(&mut self, code: u16, message: String) {
        self.push_warning(WarningLevel::Warning, code, message);
    }

    pub fn push_warning(&mut self, level: WarningLevel, code: u16, message: String) {
        self.warning_count += 1;
        if self.warnings.len() < self.max_error_count {
            self.warnings.push(Warning { level, code, message });
        }
    }

    /// A warning, or the error that it is inside a strict INSERT, UPDATE or DELETE.
    pub fn warn_or_fail(&mut self, code: u16, message: String) -> Result<(), MysqlError> {
        if self.strict_statement {
            return Err(MysqlError::new(code, message));
        }
        self.warn(code, message);
        Ok(())
    }

    /// `Truncated incorrect DOUBLE value: 'abc'`.
    pub fn truncated(&mut self, kind: &str, text: &str) -> Result<(), MysqlError> {
        self.warn_or_fail(codes::TRUNCATED_WRONG_VALUE, format!("Truncated incorrect {kind} value: '{text}'"))
    }

    /// A division by zero gives NULL; what sql_mode makes of it besides.
    pub fn division_by_zero(&mut self) -> Result<(), MysqlError> {
        if !self.sql_mode.error_for_division_by_zero {
            return Ok(());
        }
        self.warn_or_fail(codes::DIVISION_BY_ZERO, "Division by 0".to_string())
    }
}
