//! SHOW ENGINE INNODB STATUS: what the node is doing, as text in the sections that people and tools look for.

use super::{Table, columns};
use crate::session::errors;
use crate::session::session::Session;
use crate::session::system::{s, session_of};
use crate::session::users::Privileges;
use rauk_node::status::{TransactionInfo, TransactionState};
use rauk_types::MysqlError;
use std::fmt::Write;

/// Transactions that are listed at most.
const LISTED: usize = 1000;

fn section(out: &mut String, name: &str) {
    let line = "-".repeat(name.len());
    let _ = writeln!(out, "{line}\n{name}\n{line}");
}

impl Session {
    /// Error 1227 without PROCESS.
    pub(super) fn show_engine_status(&self) -> Result<Table, MysqlError> {
        if !self.account.global.contains(Privileges::PROCESS) {
            return Err(errors::needs_privilege("PROCESS"));
        }
        Ok(Table {
            columns: columns(&["Type", "Name", "Status"]),
            rows: vec![vec![s("InnoDB"), s(""), s(self.status_text())]],
        })
    }

    fn status_text(&self) -> String {
        let database = &self.engine.database;
        let counters = database.counters();
        let mut out = String::from(
            "\n=====================================\nRAUK MONITOR OUTPUT\n=====================================\n",
        );
        section(&mut out, "TRANSACTIONS");
        let all = database.transactions();
        let _ = writeln!(
            out,
            "{} transactions that hold locks or have written, {} snapshots",
            all.len(),
            counters.snapshots
        );
        for transaction in all.iter().take(LISTED) {
            self.write_transaction(&mut out, transaction);
        }
        if all.len() > LISTED {
            let _ = writeln!(out, "... and {} more", all.len() - LISTED);
        }
        section(&mut out, "LOCKS");
        let _ = writeln!(
            out,
            "{} waits, {} deadlocks, {} timeouts",
            counters.lock_waits, counters.deadlocks, counters.lock_timeouts
        );
        section(&mut out, "LOG");
        let _ = writeln!(out, "Log sequence number          {}", counters.redo_end);
        let _ = writeln!(out, "{} bytes in use, {} flushes", counters.redo_live_bytes, counters.flushes);
        let _ = writeln!(out, "{} checkpoints, {} that failed", counters.checkpoints, counters.checkpoint_failures);
        section(&mut out, "MEMORY");
        let _ = writeln!(out, "{} bytes used of {}", database.memory_used(), database.memory_limit());
        section(&mut out, "ROW OPERATIONS");
        let _ = writeln!(out, "{} commits, {} rollbacks", counters.commits, counters.rollbacks);
        out.push_str("----------------------------\nEND OF RAUK MONITOR OUTPUT\n============================\n");
        out
    }

    fn write_transaction(&self, out: &mut String, t: &TransactionInfo) {
        let _ = writeln!(out, "---TRANSACTION {}, ACTIVE {} sec", t.id.0, t.age.as_secs());
        if t.state == TransactionState::Waiting {
            let blockers: Vec<String> = t.waiting_for.iter().map(|id| id.0.to_string()).collect();
            let _ = writeln!(out, "LOCK WAIT {} sec, for {}", t.waited.as_secs(), blockers.join(", "));
        }
        let _ = writeln!(out, "{} rows changed", t.rows_changed);
        if let Some(session) = session_of(&self.viewer(), t) {
            let _ = writeln!(out, "MySQL thread id {}, {} {}", t.began.session, session.host, session.user);
            if let Some(text) = session.info() {
                let _ = writeln!(out, "{text}");
            }
        }
    }
}
