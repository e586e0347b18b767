//! Accounts of native clients: what a session of SQL keeps of its account, for connections that send no SQL.
//!
//! Rules hold as at the MySQL port: the age of the password and the limits of connections at the login, privileges and roles
//! before each request ([`crate::session::session`] does the same before each statement). An account that changes is fetched again; one that was dropped keeps
//! what it had until its connections end; one that is locked keeps its connections, as in MySQL.

use crate::parse::statement::UserName;
use crate::session::engine::Engine;
use crate::session::users::logins::Entered;
use crate::session::users::{AccountRecord, Privileges};
use parking_lot::RwLock;
use rauk_node::native::{Allowed, Rights};
use rauk_types::MysqlError;
use rauk_types::error::codes;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

struct Account {
    engine: Arc<Engine>,
    host: String,
    entered: Entered,
    /// Of the accounts when this one was fetched.
    epoch: AtomicU64,
    current: RwLock<Current>,
}

struct Current {
    own: Arc<AccountRecord>,
    roles: Vec<UserName>,
    /// With what its roles may do.
    all: Arc<AccountRecord>,
}

impl Engine {
    /// The account of a native client that has proved its password. Errors: 1045 (dropped meanwhile), 1862 (its password
    /// has expired), 1203 and 1226 (connections).
    pub fn native_account(
        self: &Arc<Self>,
        user: &str,
        account_host: &str,
        peer: IpAddr,
    ) -> Result<Arc<dyn Rights>, MysqlError> {
        let epoch = self.users.epoch();
        let peer_name =
            if peer.to_canonical().is_loopback() { "localhost".into() } else { peer.to_canonical().to_string() };
        let own = self.users.find_or_resolve(user, account_host, peer).ok_or_else(|| {
            let message = format!("Access denied for user '{user}'@'{peer_name}' (using password: YES)");
            MysqlError::new(codes::ACCESS_DENIED, message)
        })?;
        if own.rules.is_expired(self.now_micros(), &self.password_defaults()) {
            self.check_password_age(&own, false)?;
            // A session in which only the password can be changed is none here.
            let message = "You must reset your password using ALTER USER statement before executing this statement.";
            return Err(MysqlError::new(codes::MUST_CHANGE_PASSWORD, message));
        }
        let most = self.variables.unsigned("max_user_connections");
        let entered = self.logins.enter(&own, most, self.now_micros())?;
        let roles = self.users.roles_at_login(&own);
        let all = self.users.with_roles(&own, &roles);
        let current = RwLock::new(Current { own, roles, all });
        Ok(Arc::new(Account { engine: self.clone(), host: peer_name, entered, epoch: AtomicU64::new(epoch), current }))
    }
}

impl Account {
    /// The account as it is now.
    fn fetch(&self) -> Arc<AccountRecord> {
        let epoch = self.engine.users.epoch();
        if epoch != self.epoch.load(Ordering::Acquire) {
            let users = &self.engine.users;
            let mut current = self.current.write();
            if let Some(own) = users.find(&current.own.user, &current.own.host) {
                current.own = own;
            }
            let granted = users.granted_roles(&current.own);
            current.roles.retain(|role| granted.contains_key(role));
            current.all = users.with_roles(&current.own, &current.roles);
            self.epoch.store(epoch, Ordering::Release);
        }
        self.current.read().all.clone()
    }
}

fn allowed(granted: Privileges) -> Allowed {
    let of = |privilege: Privileges, allowed: Allowed| allowed.when(granted.contains(privilege));
    let locks = Privileges::UPDATE.with(Privileges::DELETE).with(Privileges::LOCK_TABLES);
    of(Privileges::SELECT, Allowed::SELECT)
        .with(of(Privileges::INSERT, Allowed::INSERT))
        .with(of(Privileges::UPDATE, Allowed::UPDATE))
        .with(of(Privileges::DELETE, Allowed::DELETE))
        .with(of(Privileges::CREATE, Allowed::CREATE))
        .with(of(Privileges::DROP, Allowed::DROP))
        .with(Allowed::LOCK.when(granted.intersects(locks)))
}

impl Rights for Account {
    fn epoch(&self) -> u64 {
        self.engine.users.epoch()
    }

    fn on_table(&self, database: &str, table: &str) -> Allowed {
        let account = self.fetch();
        allowed(account.on_table(database, table)).with(Allowed::SEE.when(account.sees_table(database, table)))
    }

    fn on_database(&self, database: &str) -> Allowed {
        allowed(self.fetch().on_database(database))
    }

    fn name(&self) -> String {
        format!("'{}'@'{}'", self.current.read().own.user, self.host)
    }

    fn is_limited(&self) -> bool {
        let limits = self.fetch().rules.limits;
        limits.queries > 0 || limits.updates > 0
    }

    fn spend(&self, writes: bool) -> Result<(), MysqlError> {
        let limits = self.fetch().rules.limits;
        let now = self.engine.now_micros();
        if limits.queries > 0 {
            self.entered.spend_query(&limits, now)?;
        }
        if writes && limits.updates > 0 {
            self.entered.spend_update(&limits, now)?;
        }
        Ok(())
    }
}
