//! performance_schema: statements, sessions, tables, waits and memory, as far as Rauk measures them.
//!
//! What is measured: statements by digest and by kind, with times (`session::digests`); rows read and written by table
//! and index, and waits for row locks with times (the node); connections by account; memory. Events are not kept when
//! they have ended, so the tables of histories are empty and `setup_consumers` says that they are off; nothing of
//! `setup_…` can be changed. Times are picoseconds, as in MySQL. Tables about what Rauk has not (mutexes, files,
//! sockets, stages) are not there.
//!
//! A thread is a session, and has its number. TRUNCATE sets counts back ([`truncate`]).

mod replication;
mod sessions;
mod setup;
mod statements;
mod tables;

use super::{Definition, PERFORMANCE_SCHEMA};
use crate::session::engine::Engine;

const P: &str = PERFORMANCE_SCHEMA;

pub(super) const TABLES: [&[Definition]; 5] =
    [statements::TABLES, sessions::TABLES, tables::TABLES, setup::TABLES, replication::TABLES];

/// Picoseconds in a microsecond.
const PICOSECONDS: u64 = 1_000_000;

/// Sets the counts of a table back. `false`: it is a table that MySQL does not truncate either, or none.
pub(crate) fn truncate(engine: &Engine, name: &str) -> bool {
    match name.to_ascii_lowercase().as_str() {
        "events_statements_summary_by_digest" => {
            engine.digests.clear();
            // Plans know theirs.
            engine.plans.clear();
        }
        "events_statements_summary_global_by_event_name"
        | "events_statements_summary_by_thread_by_event_name"
        | "events_statements_summary_by_user_by_event_name"
        | "events_statements_summary_by_host_by_event_name"
        | "events_statements_summary_by_account_by_event_name" => {
            engine.processes.all().iter().for_each(|process| process.kinds.clear());
            engine.processes.accounts.clear_kinds();
        }
        "table_io_waits_summary_by_table" | "table_io_waits_summary_by_index_usage" => {
            for database in engine.database.databases() {
                for table in engine.database.tables(&database).unwrap_or_default() {
                    engine.database.clear_table_io(table.id);
                }
            }
        }
        // These have no counts of what has been.
        "events_statements_current" | "events_statements_history" | "events_statements_history_long" => {}
        _ => return false,
    }
    true
}
