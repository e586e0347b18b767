//! The variables that statements consult, as plain fields. Read again after every SET.

use super::assign;
use super::modes;
use super::store::SessionVariables;
use crate::expr::context::{Formats, SqlMode};
use crate::expr::{Switches, locale};
use crate::session::tracking::TransactionInfo;
use rauk_node::Isolation;
use rauk_types::{Charset, Collation, Value};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Settings {
    pub autocommit: bool,
    pub sql_mode: SqlMode,
    /// optimizer_switch.
    pub switches: Switches,
    /// collation_connection.
    pub collation: Collation,
    /// character_set_client.
    pub client: Charset,
    /// character_set_results; `None`: nothing is converted.
    pub results: Option<Charset>,
    pub time_zone: jiff::tz::TimeZone,
    pub isolation: Isolation,
    pub read_only: bool,
    /// innodb_lock_wait_timeout: rows.
    pub lock_wait_timeout: Duration,
    /// lock_wait_timeout: definitions.
    pub metadata_wait: Duration,
    /// innodb_ddl_threads: of one DDL statement, at most.
    pub ddl_threads: usize,
    /// rauk_ddl_rows_per_second; 0 is no limit.
    pub ddl_rows_per_second: u64,
    pub snapshot_isolation: bool,
    pub foreign_key_checks: bool,
    /// Milliseconds; 0 is no limit.
    pub max_execution_time: u64,
    pub select_limit: u64,
    pub safe_updates: bool,
    /// sql_big_selects: max_join_size does not count.
    pub big_selects: bool,
    pub max_join_size: u64,
    /// sql_require_primary_key.
    pub requires_primary_key: bool,
    pub auto_is_null: bool,
    pub max_error_count: usize,
    pub max_allowed_packet: usize,
    /// rauk_query_memory_limit.
    pub memory_limit: usize,
    /// rauk_temporary_tables_memory.
    pub temporary_memory: u64,
    pub track_transaction: TransactionInfo,
    /// wait_timeout, net_read_timeout, net_write_timeout.
    pub timeouts: (Duration, Duration, Duration),
    /// completion_type: what COMMIT and ROLLBACK do that do not say it.
    pub completion_chain: bool,
    pub completion_release: bool,
    /// auto_increment_increment and auto_increment_offset.
    pub auto_increment: (u64, u64),
    pub sql_notes: bool,
    pub quote_names: bool,
    /// show_create_table_verbosity.
    pub shows_row_format: bool,
    /// print_identified_with_as_hex.
    pub shows_hashes_in_hex: bool,
    pub profiling: bool,
    /// profiling_history_size.
    pub profiling_history: usize,
}

impl Settings {
    pub fn read(variables: &SessionVariables) -> Settings {
        let unsigned = |name: &str| match variables.by_name(name) {
            Value::UInt(v) => v,
            other => unreachable!("{name} is {other:?}"),
        };
        let seconds = |name: &str| Duration::from_secs(unsigned(name));
        let on = |name: &str| matches!(variables.by_name(name), Value::Int(v) if v != 0);
        let text = |name: &str| match variables.by_name(name) {
            Value::Str(text) => text,
            other => unreachable!("{name} is {other:?}"),
        };
        Settings {
            autocommit: on("autocommit"),
            sql_mode: SqlMode {
                formats: Formats {
                    division_digits: unsigned("div_precision_increment") as u8,
                    week: unsigned("default_week_format") as u8,
                    locale: locale::number(&text("lc_time_names")),
                },
                ..modes::flags(&text("sql_mode"))
            },
            switches: Switches::of(&text("optimizer_switch")),
            collation: Collation::from_name(&text("collation_connection")).unwrap_or_default(),
            client: Charset::named(&text("character_set_client")).unwrap_or(Charset::UTF8MB4),
            results: match variables.by_name("character_set_results") {
                Value::Str(name) => Charset::named(&name).filter(|set| *set != Charset::BINARY),
                _ => None,
            },
            time_zone: assign::time_zone(&text("time_zone")).unwrap_or(jiff::tz::TimeZone::UTC),
            isolation: isolation(&text("transaction_isolation")),
            read_only: on("transaction_read_only"),
            lock_wait_timeout: Duration::from_secs(unsigned("innodb_lock_wait_timeout")),
            metadata_wait: Duration::from_secs(unsigned("lock_wait_timeout")),
            ddl_threads: unsigned("innodb_ddl_threads") as usize,
            ddl_rows_per_second: unsigned("rauk_ddl_rows_per_second"),
            snapshot_isolation: on("innodb_snapshot_isolation"),
            foreign_key_checks: on("foreign_key_checks"),
            max_execution_time: unsigned("max_execution_time"),
            select_limit: unsigned("sql_select_limit"),
            safe_updates: on("sql_safe_updates"),
            big_selects: on("sql_big_selects"),
            max_join_size: unsigned("max_join_size"),
            requires_primary_key: on("sql_require_primary_key"),
            auto_is_null: on("sql_auto_is_null"),
            max_error_count: unsigned("max_error_count") as usize,
            max_allowed_packet: unsigned("max_allowed_packet") as usize,
            memory_limit: usize::try_from(unsigned("rauk_query_memory_limit")).unwrap_or(usize::MAX),
            temporary_memory: unsigned("rauk_temporary_tables_memory"),
            track_transaction: TransactionInfo::of(&text("session_track_transaction_info")),
            timeouts: (seconds("wait_timeout"), seconds("net_read_timeout"), seconds("net_write_timeout")),
            completion_chain: text("completion_type") == "CHAIN",
            completion_release: text("completion_type") == "RELEASE",
            auto_increment: (unsigned("auto_increment_increment"), unsigned("auto_increment_offset")),
            sql_notes: on("sql_notes"),
            quote_names: on("sql_quote_show_create"),
            shows_row_format: on("show_create_table_verbosity"),
            shows_hashes_in_hex: on("print_identified_with_as_hex"),
            profiling: on("profiling"),
            profiling_history: unsigned("profiling_history_size") as usize,
        }
    }
}

/// The level that a value of transaction_isolation names.
pub(crate) fn isolation(level: &str) -> Isolation {
    match level {
        // Dirty reads are not offered; READ COMMITTED is the nearest that is stronger.
        "READ-UNCOMMITTED" | "READ-COMMITTED" => Isolation::ReadCommitted,
        "SERIALIZABLE" => Isolation::Serializable,
        _ => Isolation::RepeatableRead,
    }
}
