//! Status counters: what SHOW STATUS shows.
//!
//! Every session counts for itself in a block of relaxed atomics that only it writes, so that counting costs a plain store and nothing is shared
//! between cores. SHOW GLOBAL STATUS adds up the blocks of all sessions and what ended sessions left.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter { $($variant),* }
        /// The names of SHOW STATUS, in the order of [`Counter`].
        pub const NAMES: &[&str] = &[$($name),*];
    };
}

counters! {
    AlterDatabase = "Com_alter_db",
    AlterTable = "Com_alter_table",
    AlterUser = "Com_alter_user",
    AlterView = "Com_alter_view",
    Maintenance = "Com_analyze",
    Begin = "Com_begin",
    ChangeDatabase = "Com_change_db",
    Checksum = "Com_checksum",
    Commit = "Com_commit",
    CreateDatabase = "Com_create_db",
    CreateIndex = "Com_create_index",
    CreateTable = "Com_create_table",
    CreateRole = "Com_create_role",
    CreateUser = "Com_create_user",
    CreateView = "Com_create_view",
    Deallocate = "Com_dealloc_sql",
    Delete = "Com_delete",
    Do = "Com_do",
    DropDatabase = "Com_drop_db",
    DropIndex = "Com_drop_index",
    DropRole = "Com_drop_role",
    DropTable = "Com_drop_table",
    DropUser = "Com_drop_user",
    DropView = "Com_drop_view",
    ExecuteSql = "Com_execute_sql",
    Explain = "Com_explain_other",
    Flush = "Com_flush",
    Grant = "Com_grant",
    GrantRoles = "Com_grant_roles",
    HandlerClose = "Com_ha_close",
    HandlerOpen = "Com_ha_open",
    HandlerRead = "Com_ha_read",
    Insert = "Com_insert",
    Kill = "Com_kill",
    Load = "Com_load",
    LockInstance = "Com_lock_instance",
    LockTables = "Com_lock_tables",
    PrepareSql = "Com_prepare_sql",
    ReleaseSavepoint = "Com_release_savepoint",
    RenameTable = "Com_rename_table",
    RenameUser = "Com_rename_user",
    Replace = "Com_replace",
    Revoke = "Com_revoke",
    RevokeRoles = "Com_revoke_roles",
    Rollback = "Com_rollback",
    RollbackToSavepoint = "Com_rollback_to_savepoint",
    Savepoint = "Com_savepoint",
    Select = "Com_select",
    SetOption = "Com_set_option",
    SetPassword = "Com_set_password",
    SetRole = "Com_set_role",
    AlterUserDefaultRole = "Com_alter_user_default_role",
    Show = "Com_show_status",
    StatementClose = "Com_stmt_close",
    StatementExecute = "Com_stmt_execute",
    StatementPrepare = "Com_stmt_prepare",
    Truncate = "Com_truncate",
    UnlockInstance = "Com_unlock_instance",
    UnlockTables = "Com_unlock_tables",
    Update = "Com_update",
    Questions = "Questions",
    Queries = "Queries",
    Deadlocks = "Innodb_deadlocks",
    LockTimeouts = "Innodb_lock_timeouts",
    PlanCacheHits = "Rauk_plan_cache_hits",
    PlanCacheMisses = "Rauk_plan_cache_misses",
    StatementsFailed = "Rauk_statements_failed",
}

/// One session's counters.
pub struct Counters {
    values: [AtomicU64; NAMES.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Counters { values: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl Counters {
    /// Only the owning session calls this; readers may see the value a moment late.
    #[inline]
    pub fn add(&self, counter: Counter, n: u64) {
        let value = &self.values[counter as usize];
        value.store(value.load(Relaxed).wrapping_add(n), Relaxed);
    }

    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize].load(Relaxed)
    }

    /// FLUSH STATUS.
    pub fn clear(&self) {
        for value in &self.values {
            value.store(0, Relaxed);
        }
    }

    pub fn add_to(&self, totals: &mut [u64; NAMES.len()]) {
        for (total, value) in totals.iter_mut().zip(&self.values) {
            *total += value.load(Relaxed);
        }
    }
}

/// What sessions that have ended counted.
#[derive(Default)]
pub struct Retired(Mutex<Option<Box<[u64; NAMES.len()]>>>);

impl Retired {
    pub fn add(&self, counters: &Counters) {
        let mut guard = self.0.lock();
        counters.add_to(guard.get_or_insert_with(|| Box::new([0; NAMES.len()])));
    }

    pub fn totals(&self) -> [u64; NAMES.len()] {
        self.0.lock().as_deref().copied().unwrap_or([0; NAMES.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting() {
        let counters = Counters::default();
        counters.add(Counter::Select, 2);
        counters.add(Counter::StatementsFailed, 1);
        let retired = Retired::default();
        retired.add(&counters);
        retired.add(&counters);
        assert_eq!(retired.totals()[Counter::Select as usize], 4);
        assert_eq!(NAMES[Counter::StatementsFailed as usize], "Rauk_statements_failed");
        counters.clear();
        assert_eq!(counters.get(Counter::Select), 0);
    }
}
