//! All accounts, in memory and in the database's settings.
//!
//! The settings are what counts: what is in memory is read from them again whenever the catalog has changed, which in a cluster another node may have done. Only accounts whose
//! text has changed are taken apart.

use super::password;
use super::record::AccountRecord;
use super::roles::RoleSettings;
use super::root::{self, RootPassword};
use crate::session::errors;
use crate::session::pattern;
use parking_lot::RwLock;
use rauk_node::{Database, NodeError, SettingChange, block_on};
use rauk_types::MysqlError;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Set once the first accounts were written, so that a server whose users were all dropped does not grow a root again.
const INITIALIZED: &str = "users.initialized";

/// What the protocol needs to authenticate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// `%`, `localhost`, an address or a pattern: the one that matched.
    pub host: String,
    /// `caching_sha2_password` or `mysql_native_password`.
    pub plugin: String,
    /// `authentication_string` as in mysql.user: `$A$005$…` or `*HEX`; empty: no password.
    pub hash: String,
    /// The same of a second password; empty: there is none.
    pub second: String,
    pub locked: bool,
}

/// How many characters of a host pattern are fixed: MySQL tries the most specific first.
fn specificity(host: &str) -> usize {
    match host.find(['%', '_']) {
        None if host.contains('/') => 1_000,
        None => 10_000,
        Some(at) => at,
    }
}

/// Whether an account's host stands for this address.
fn host_matches(host: &str, peer: IpAddr) -> bool {
    let peer = peer.to_canonical();
    if host.eq_ignore_ascii_case("localhost") {
        return peer.is_loopback();
    }
    if let Some((network, mask)) = host.split_once('/') {
        let (Ok(network), IpAddr::V4(peer)) = (network.parse::<std::net::Ipv4Addr>(), peer) else { return false };
        let mask = match mask.parse::<std::net::Ipv4Addr>() {
            Ok(mask) => u32::from(mask),
            Err(_) => match mask.parse::<u32>() {
                Ok(0) => 0,
                Ok(bits @ 1..=32) => u32::MAX << (32 - bits),
                _ => return false,
            },
        };
        return u32::from(peer) & mask == u32::from(network);
    }
    pattern::like(host, &peer.to_string(), true)
}

/// What there is under an account's name.
pub struct Stored {
    /// Of the setting.
    pub key: String,
    /// Of the setting, if there is one; one that cannot be read is no account.
    pub text: Option<String>,
    pub record: Option<Arc<AccountRecord>>,
}

/// The accounts of the server.
pub struct Users {
    database: Database,
    loaded: RwLock<Loaded>,
    /// The catalog's version that was loaded.
    version: AtomicU32,
    /// Moves with every change.
    epoch: AtomicU64,
    pub(super) role_settings: Arc<RoleSettings>,
}

#[derive(Default)]
struct Loaded {
    /// Each setting's text and what it says.
    texts: BTreeMap<String, (String, Option<Arc<AccountRecord>>)>,
    /// Most specific host first; within a host, named users before the anonymous one.
    accounts: Arc<Vec<Arc<AccountRecord>>>,
}

impl Users {
    /// Reads all accounts; a new server gets `root`@`localhost`, with the password given or without one.
    pub fn load(
        database: Database,
        root: Option<&RootPassword>,
        now_micros: i64,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<Users, MysqlError> {
        if database.setting(INITIALIZED).is_none() {
            // Another node of the cluster may have done so, and its root may have a password by now, before this one hears of it.
            let settings = [(INITIALIZED.to_string(), "1".to_string()), root::first(root, random)];
            block_on(database.set_first_settings(&settings))?;
        }
        let users = Users {
            database,
            loaded: RwLock::default(),
            version: AtomicU32::new(0),
            epoch: AtomicU64::new(1),
            role_settings: Arc::default(),
        };
        users.reload(users.database.catalog_version());
        if let Some(root) = root {
            root::settle(&users, root, now_micros, random)?;
        }
        Ok(users)
    }

    pub fn epoch(&self) -> u64 {
        self.refresh();
        // Both only grow.
        self.epoch.load(Ordering::Acquire) + self.role_settings.changes()
    }

    pub fn role_settings(&self) -> Arc<RoleSettings> {
        self.role_settings.clone()
    }

    pub fn all(&self) -> Arc<Vec<Arc<AccountRecord>>> {
        self.refresh();
        self.loaded.read().accounts.clone()
    }

    /// Reads the accounts again if the catalog has changed.
    fn refresh(&self) {
        let version = self.database.catalog_version();
        if self.version.load(Ordering::Acquire) != version {
            self.reload(version);
        }
    }

    /// `version` was asked for before the settings are read, so that nothing that comes later is missed.
    fn reload(&self, version: u32) {
        let mut loaded = self.loaded.write();
        let mut changed = false;
        let mut texts = BTreeMap::new();
        for (key, text) in self.database.settings_with_prefix(AccountRecord::PREFIX) {
            let record = match loaded.texts.remove(&key) {
                Some((known, record)) if known == text => record,
                _ => {
                    changed = true;
                    let record = AccountRecord::from_json(&text).map(Arc::new);
                    if record.is_none() {
                        tracing::error!(key, "an account in the catalog cannot be read and is left out");
                    }
                    record
                }
            };
            texts.insert(key, (text, record));
        }
        changed |= !loaded.texts.is_empty();
        loaded.texts = texts;
        if changed {
            let mut accounts: Vec<_> = loaded.texts.values().filter_map(|(_, record)| record.clone()).collect();
            sort(&mut accounts);
            loaded.accounts = Arc::new(accounts);
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
        self.version.store(version, Ordering::Release);
    }

    /// The account of exactly this name.
    pub fn find(&self, user: &str, host: &str) -> Option<Arc<AccountRecord>> {
        self.all().iter().find(|a| a.user == user && a.host.eq_ignore_ascii_case(host)).cloned()
    }

    /// The account that a client at `peer` who calls itself `user` is.
    pub fn resolve(&self, user: &str, peer: IpAddr) -> Option<Arc<AccountRecord>> {
        let accounts = self.all();
        accounts.iter().find(|a| (a.user == user || a.user.is_empty()) && host_matches(&a.host, peer)).cloned()
    }

    pub fn find_or_resolve(&self, user: &str, host: &str, peer: IpAddr) -> Option<Arc<AccountRecord>> {
        self.find(user, host).or_else(|| self.resolve(user, peer))
    }

    /// The account of exactly this name with what is stored of it, or the place where it would be stored.
    pub fn stored(&self, user: &str, host: &str) -> Stored {
        self.refresh();
        let loaded = self.loaded.read();
        let of_name = |record: &AccountRecord| record.user == user && record.host.eq_ignore_ascii_case(host);
        let found = loaded.texts.iter().find(|(_, (_, record))| record.as_deref().is_some_and(of_name));
        match found {
            Some((key, (text, record))) => {
                Stored { key: key.clone(), text: Some(text.clone()), record: record.clone() }
            }
            None => {
                let key = AccountRecord::key(user, host);
                let text = loaded.texts.get(&key).map(|(text, _)| text.clone());
                Stored { key, text, record: None }
            }
        }
    }

    /// All or none, durably. [`NodeError::SettingsChanged`]: one of the texts is another one now, and what it says is known here from now on.
    pub async fn change(&self, changes: Vec<SettingChange>) -> Result<(), NodeError> {
        let result = self.database.change_settings(changes).await;
        // Not only if the version has moved: the catalog may have changed, and its version not yet.
        self.reload(self.database.catalog_version());
        result
    }

    /// Error 1396.
    pub fn operation_failed(operation: &str, user: &str, host: &str) -> MysqlError {
        MysqlError::new(
            rauk_types::error::codes::CANNOT_USER,
            format!("Operation {operation} failed for '{user}'@'{host}'"),
        )
    }

    /// Refuses names that MySQL's tables could not hold (1470).
    pub fn check_name(user: &str, host: &str) -> Result<(), MysqlError> {
        for (name, limit, what) in [(user, 32, "user name"), (host, 255, "host name")] {
            if name.chars().count() > limit {
                let message = format!("String '{name}' is too long for {what} (should be no longer than {limit})");
                return Err(MysqlError::new(rauk_types::error::codes::WRONG_STRING_LENGTH, message));
            }
        }
        Ok(())
    }

    pub fn check_plugin(plugin: &str) -> Result<(), MysqlError> {
        match plugin {
            password::CACHING_SHA2 | password::NATIVE => Ok(()),
            "sha256_password" | "auth_socket" | "ed25519" | "unix_socket" => Err(errors::not_supported(plugin)),
            _ => Err(MysqlError::new(1524, format!("Plugin '{plugin}' is not loaded"))),
        }
    }
}

fn sort(accounts: &mut [Arc<AccountRecord>]) {
    accounts.sort_by(|a, b| {
        let rank = |r: &AccountRecord| (std::cmp::Reverse(specificity(&r.host)), r.user.is_empty());
        rank(a).cmp(&rank(b)).then_with(|| (&a.host, &a.user).cmp(&(&b.host, &b.user)))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_match_as_patterns() {
        let v4: IpAddr = "10.0.3.4".parse().unwrap();
        let local: IpAddr = "127.0.0.1".parse().unwrap();
        assert!(host_matches("%", v4) && host_matches("10.0.%", v4) && host_matches("10.0.3.4", v4));
        assert!(!host_matches("10.1.%", v4) && !host_matches("localhost", v4));
        assert!(host_matches("localhost", local) && host_matches("127.0.0.1", local));
        assert!(host_matches("localhost", "::1".parse().unwrap()));
        assert!(host_matches("10.0.0.0/255.255.0.0", v4) && host_matches("10.0.0.0/16", v4));
        assert!(!host_matches("10.1.0.0/255.255.0.0", v4));
        assert!(host_matches("10.0.%", "::ffff:10.0.3.4".parse().unwrap()));
        assert!(specificity("localhost") > specificity("10.0.%") && specificity("10.0.%") > specificity("%"));
    }
}
