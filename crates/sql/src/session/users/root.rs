//! root's password as whoever starts the server gives it.
//!
//! Two purposes, told apart because one must never undo the other:
//!
//! - The *first* password is for a server that has no accounts yet: with it nobody finds a root without one, not even for
//!   the moment between the start and the first `ALTER USER`. On a directory that has accounts it changes nothing,
//!   since a password that was changed by SQL must not come back at each start. That is said in one line.
//! - A *reset* is for whoever has lost the password, and may start the server on its directory: root has the new one,
//!   is unlocked, and is made again if it was dropped.
//!
//! Invariant: both are stored before the server takes connections, as a change of what is there ([`Users::change`]), so
//! that other nodes of a cluster neither overwrite it nor lose theirs. Only `root`@`localhost` is touched: an account
//! that can come from elsewhere is made by SQL.

use super::password::{self, CACHING_SHA2};
use super::privilege::Privileges;
use super::record::AccountRecord;
use super::rules::PasswordDefaults;
use super::store::{Stored, Users};
use rauk_node::{NodeError, SettingChange, block_on};
use rauk_types::MysqlError;

const USER: &str = "root";
const HOST: &str = "localhost";
/// Other nodes may change accounts at the same time.
const TRIES: u32 = 100;

/// What is to be done with root's password, and which setting says so.
#[derive(Clone)]
pub struct RootPassword {
    pub text: String,
    /// As the log names it: `RAUK_ROOT_PASSWORD`.
    pub given_by: String,
    /// On a server that has accounts, too.
    pub reset: bool,
}

impl std::fmt::Debug for RootPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RootPassword({}, reset {})", self.given_by, self.reset)
    }
}

/// A root with all privileges and this hash.
pub(super) fn record(hash: String) -> AccountRecord {
    AccountRecord {
        user: USER.to_string(),
        host: HOST.to_string(),
        plugin: CACHING_SHA2.to_string(),
        hash,
        global: Privileges::ALL_GLOBAL.with(Privileges::GRANT_OPTION),
        ..AccountRecord::default()
    }
}

/// The setting of a new server's root.
pub(super) fn first(root: Option<&RootPassword>, random: &mut dyn FnMut() -> u64) -> (String, String) {
    let hash = root.map_or(String::new(), |root| password::hash(CACHING_SHA2, &root.text, random));
    (AccountRecord::key(USER, HOST), record(hash).to_json())
}

/// The accounts are there, those of a new server too: resets the password, or says what became of the first one.
pub(super) fn settle(
    users: &Users,
    root: &RootPassword,
    now_micros: i64,
    random: &mut dyn FnMut() -> u64,
) -> Result<(), MysqlError> {
    if root.reset {
        return reset(users, root, now_micros, random);
    }
    let given_by = &root.given_by;
    let has = |record: &AccountRecord| password::matches(&record.plugin, &record.hash, &root.text);
    match users.find(USER, HOST).is_some_and(|record| has(&record)) {
        true => tracing::info!("root has the password that {given_by} gives"),
        false => tracing::warn!(
            "{given_by} has no effect: it is for a server without accounts, and this one has some; change the password \
             with ALTER USER, or start once with --reset-root-password FILE"
        ),
    }
    Ok(())
}

fn reset(
    users: &Users,
    root: &RootPassword,
    now_micros: i64,
    random: &mut dyn FnMut() -> u64,
) -> Result<(), MysqlError> {
    let hash = password::hash(CACHING_SHA2, &root.text, random);
    for _ in 0..TRIES {
        let Stored { key, text, record: found } = users.stored(USER, HOST);
        let mut now = found.as_deref().cloned().unwrap_or_else(|| record(String::new()));
        now.plugin = CACHING_SHA2.to_string();
        now.hash.clone_from(&hash);
        now.locked = false;
        now.rules.second.clear();
        now.rules.unlocks += 1;
        now.rules.password_changed(&hash, now_micros, &PasswordDefaults::default());
        match block_on(users.change(vec![SettingChange { key, from: text, to: Some(now.to_json()) }])) {
            Err(NodeError::SettingsChanged) => {}
            Err(error) => return Err(error.into()),
            Ok(()) => {
                let what = if found.is_some() { "has a new password" } else { "was made again" };
                tracing::warn!("root@localhost {what}, given by {}; leave that out of the next start", root.given_by);
                return Ok(());
            }
        }
    }
    Err(NodeError::SettingsChanged.into())
}
