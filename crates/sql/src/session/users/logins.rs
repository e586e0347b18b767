//! What one node remembers of the logins of accounts: wrong passwords in a row, and what an account has used up.
//!
//! Both live in the node's memory and start at nothing with it, as in MySQL; in a cluster each node counts for itself. Only
//! accounts that have a rule or a session are remembered, and a count that is over an hour old and belongs to no
//! session is forgotten when another account is added, so the maps stay as small as the list of accounts.

use super::record::AccountRecord;
use super::rules::Limits;
use crate::parse::statement::UserName;
use parking_lot::Mutex;
use rauk_types::MysqlError;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BLOCKED: u16 = 3955;
const LIMIT_REACHED: u16 = 1226;
const TOO_MANY: u16 = 1203;
const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 86_400_000_000;

/// Of one account with FAILED_LOGIN_ATTEMPTS and PASSWORD_LOCK_TIME.
struct Failures {
    /// Of the rules that they were counted under; under other ones they start at nothing.
    unlocks: u64,
    count: u16,
    /// The day since 1970 on which the account was blocked.
    blocked: Option<i64>,
}

#[derive(Default)]
pub struct Logins {
    failures: Mutex<BTreeMap<UserName, Failures>>,
    usage: Mutex<BTreeMap<UserName, Arc<Usage>>>,
}

impl Logins {
    /// Notes an attempt. Error 3955 when the account is blocked, with the right password too.
    pub fn note(&self, record: &AccountRecord, proven: bool, peer: &str, now_micros: i64) -> Result<(), MysqlError> {
        let rules = &record.rules;
        if rules.failed_logins == 0 || rules.lock_days == 0 {
            return Ok(());
        }
        let today = now_micros.div_euclid(DAY);
        let mut failures = self.failures.lock();
        let none = || Failures { unlocks: rules.unlocks, count: 0, blocked: None };
        let state = failures.entry(record.name()).or_insert_with(none);
        let is_over = |day: i64| rules.lock_days > 0 && today - day >= i64::from(rules.lock_days);
        if state.unlocks != rules.unlocks || state.blocked.is_some_and(is_over) {
            *state = none();
        }
        if state.blocked.is_none() {
            if proven {
                failures.remove(&record.name());
                return Ok(());
            }
            state.count += 1;
            if state.count < rules.failed_logins {
                return Ok(());
            }
            state.blocked = Some(today);
        }
        let since = state.blocked.unwrap_or(today);
        let (days, left) = match rules.lock_days {
            ..0 => ("unlimited".to_string(), "unlimited".to_string()),
            days => (days.to_string(), (i64::from(days) - (today - since)).to_string()),
        };
        let message = format!(
            "Access denied for user '{}'@'{peer}'. Account is blocked for {days} day(s) ({left} day(s) remaining) due to {} consecutive failed logins.",
            record.user, rules.failed_logins
        );
        Err(MysqlError::new(BLOCKED, message))
    }

    /// FLUSH PRIVILEGES.
    pub fn forget_failures(&self) {
        self.failures.lock().clear();
    }

    /// FLUSH USER_RESOURCES.
    pub fn forget_usage(&self) {
        self.usage.lock().values().for_each(|usage| *usage.hour.lock() = Hour::default());
    }

    /// A session of an account begins. `most`: max_user_connections. Errors 1203, 1226.
    pub fn enter(&self, record: &AccountRecord, most: u64, now_micros: i64) -> Result<Entered, MysqlError> {
        let mut all = self.usage.lock();
        let name = record.name();
        if !all.contains_key(&name) {
            all.retain(|_, usage| {
                usage.sessions.load(Ordering::Relaxed) > 0 || now_micros - usage.hour.lock().since < HOUR
            });
        }
        let usage = all.entry(name).or_default().clone();
        drop(all);
        let entered = Entered { usage, user: record.user.clone() };
        let sessions = entered.usage.sessions.fetch_add(1, Ordering::AcqRel) + 1;
        let limits = &record.rules.limits;
        if limits.user_connections == 0 && most > 0 && sessions > most {
            let message =
                format!("User {} already has more than 'max_user_connections' active connections", record.user);
            return Err(MysqlError::new(TOO_MANY, message));
        }
        if limits.user_connections > 0 && sessions > limits.user_connections.into() {
            return Err(reached(&record.user, "max_user_connections", limits.user_connections));
        }
        let mut hour = entered.usage.hour(now_micros);
        spend(&mut hour.connections, limits.connections, &record.user, "max_connections_per_hour")?;
        drop(hour);
        Ok(entered)
    }
}

/// Counts of one account.
#[derive(Default)]
struct Usage {
    sessions: AtomicU64,
    hour: Mutex<Hour>,
}

#[derive(Default)]
struct Hour {
    /// When it began, in microseconds; zero: nothing was counted yet.
    since: i64,
    queries: u32,
    updates: u32,
    connections: u32,
}

impl Usage {
    fn hour(&self, now_micros: i64) -> parking_lot::MutexGuard<'_, Hour> {
        let mut hour = self.hour.lock();
        if hour.since == 0 || now_micros - hour.since >= HOUR {
            *hour = Hour { since: now_micros, ..Hour::default() };
        }
        hour
    }
}

fn reached(user: &str, resource: &str, limit: u32) -> MysqlError {
    let message = format!("User '{user}' has exceeded the '{resource}' resource (current value: {limit})");
    MysqlError { state: *b"42000", ..MysqlError::new(LIMIT_REACHED, message) }
}

fn spend(used: &mut u32, limit: u32, user: &str, resource: &str) -> Result<(), MysqlError> {
    if limit > 0 && *used >= limit {
        return Err(reached(user, resource, limit));
    }
    *used = used.saturating_add(1);
    Ok(())
}

/// A session's place among those of its account; given back when dropped.
pub struct Entered {
    usage: Arc<Usage>,
    user: String,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.usage.sessions.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Entered {
    /// A statement begins. Error 1226.
    pub fn spend_query(&self, limits: &Limits, now_micros: i64) -> Result<(), MysqlError> {
        spend(&mut self.usage.hour(now_micros).queries, limits.queries, &self.user, "max_queries_per_hour")
    }

    /// A statement changes data, definitions or accounts. Error 1226.
    pub fn spend_update(&self, limits: &Limits, now_micros: i64) -> Result<(), MysqlError> {
        spend(&mut self.usage.hour(now_micros).updates, limits.updates, &self.user, "max_updates_per_hour")
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::AccountRules;
    use super::*;

    fn account(rules: AccountRules) -> AccountRecord {
        AccountRecord { user: "app".to_string(), host: "%".to_string(), rules, ..AccountRecord::default() }
    }

    #[test]
    fn wrong_passwords_in_a_row_block_an_account_for_days() {
        let logins = Logins::default();
        let mut record = account(AccountRules { failed_logins: 2, lock_days: 3, ..AccountRules::default() });
        let note = |record: &AccountRecord, proven: bool, day: i64| {
            logins.note(record, proven, "10.0.0.1", day * DAY + 5).map_err(|error| error.message)
        };
        assert!(note(&record, false, 10).is_ok() && note(&record, true, 10).is_ok());
        assert!(note(&record, false, 10).is_ok());
        let message = note(&record, false, 10).unwrap_err();
        assert_eq!(
            message,
            "Access denied for user 'app'@'10.0.0.1'. Account is blocked for 3 day(s) (3 day(s) remaining) due to 2 consecutive failed logins."
        );
        assert!(note(&record, true, 12).unwrap_err().contains("(1 day(s) remaining)"));
        assert!(note(&record, true, 13).is_ok());
        assert!(note(&record, false, 13).is_ok() && note(&record, false, 13).is_err());
        record.rules.unlocks += 1;
        assert!(note(&record, true, 13).is_ok());
        record.rules.lock_days = -1;
        assert!(note(&record, false, 14).is_ok() && note(&record, false, 14).is_err());
        assert!(note(&record, true, 14_000).unwrap_err().contains("unlimited day(s) (unlimited day(s) remaining)"));
    }

    #[test]
    fn limits_hold_for_an_hour() {
        let logins = Logins::default();
        let limits = Limits { queries: 2, updates: 1, connections: 3, user_connections: 1 };
        let record = account(AccountRules { limits, ..AccountRules::default() });
        let first = logins.enter(&record, 0, 1).unwrap();
        assert_eq!(logins.enter(&record, 0, 1).err().unwrap().code, 1226);
        assert!(first.spend_query(&limits, 1).is_ok() && first.spend_query(&limits, 1).is_ok());
        let error = first.spend_query(&limits, 1).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (1226, "User 'app' has exceeded the 'max_queries_per_hour' resource (current value: 2)")
        );
        assert!(first.spend_update(&limits, 1).is_ok() && first.spend_update(&limits, 1).is_err());
        assert!(first.spend_query(&limits, 1 + HOUR).is_ok());
        drop(first);
        for _ in 0..3 {
            assert!(logins.enter(&record, 0, 2 + 3 * HOUR).is_ok());
        }
        assert_eq!(logins.enter(&record, 0, 2 + 3 * HOUR).err().unwrap().code, 1226);
        logins.forget_usage();
        assert!(logins.enter(&record, 0, 2 + 3 * HOUR).is_ok());
        let free = account(AccountRules::default());
        let one = logins.enter(&free, 1, 9 * HOUR).unwrap();
        assert_eq!(logins.enter(&free, 1, 9 * HOUR).err().unwrap().code, 1203);
        drop(one);
        assert!(logins.enter(&free, 1, 9 * HOUR).is_ok());
    }
}
