//! What all sessions share.

use super::digests::Digests;
use super::errors;
use super::plan_cache::PlanCache;
use super::processlist::{ProcessList, Shown};
use super::session::Session;
use super::statistics::Statistics;
use super::temporary::MEMORY_VARIABLE;
use super::users::logins::Logins;
use super::users::rules::PasswordDefaults;
use super::users::{Account, AccountRecord, RootPassword, Users};
use super::variables::GlobalVariables;
use super::variables::assign;
use super::variables::refused;
use super::variables::store;
use crate::expr::context::Warning;
use crate::expr::{Beside, GiveWay};
use crate::memory::{Pool, TOTAL_VARIABLE, VARIABLE};
use crate::parse::ast::TlsRule;
use rauk_node::{Database, Runtime};
use rauk_types::error::codes;
use rauk_types::{MysqlError, Value};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

pub const VERSION: &str = "8.0.36-rauk-0.1.0";
const ACCOUNT_LOCKED: u16 = 3118;
const PASSWORD_EXPIRED: u16 = 1862;
const PERSISTED: &str = "variable:";
/// Of small memory limits: what one statement gets is never less than two of these.
const LEAST_TENTH: u64 = 128 << 20;

/// What the server knows of itself when it starts: values of read-only variables, and the clock.
#[derive(Clone)]
pub struct EngineOptions {
    /// Names of system variables and their values: `port`, `datadir`, `hostname`, `rauk_durability`, …
    pub variables: Vec<(&'static str, Value)>,
    /// Microseconds since 1970 UTC.
    pub clock: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// What is to be done with root's password before anybody can connect.
    pub root_password: Option<RootPassword>,
    /// Runs what takes long while another thread takes over the tasks of this one; by default it just runs.
    pub beside: Beside,
    /// Lets other tasks of the thread run first; by default the task is woken at once.
    pub give_way: GiveWay,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            variables: Vec::new(),
            clock: Arc::new(|| {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
            }),
            root_password: None,
            beside: |work| work(),
            give_way: |context| context.waker().wake_by_ref(),
        }
    }
}

/// Who connected, after authentication.
#[derive(Clone, Debug)]
pub struct Client {
    pub connection_id: u32,
    pub user: String,
    /// The account's host pattern that matched.
    pub account_host: String,
    pub peer: IpAddr,
    pub database: Option<String>,
    /// The collation number of the handshake.
    pub collation: u16,
    pub multi_statements: bool,
    /// CLIENT_FOUND_ROWS: UPDATE reports matched rather than changed rows.
    pub found_rows: bool,
    pub ignore_space: bool,
    /// CLIENT_LOCAL_FILES: it gives files of its own (LOAD DATA LOCAL).
    pub local_files: bool,
    /// CLIENT_INTERACTIVE: wait_timeout begins as interactive_timeout.
    pub interactive: bool,
    /// CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS.
    pub handles_expired_passwords: bool,
    pub tls_cipher: Option<String>,
    pub attributes: Vec<(String, String)>,
}

/// A login whose password was proven or not.
pub struct LoginAttempt<'a> {
    pub user: &'a str,
    /// The account's host pattern that matched.
    pub account_host: &'a str,
    pub peer: IpAddr,
    pub proven: bool,
    /// OpenSSL's name of the cipher; `None` without TLS.
    pub cipher: Option<&'a str>,
    /// Subject and issuer of the client's certificate, which the server trusts, as OpenSSL writes them in one line.
    pub certificate: Option<(&'a str, &'a str)>,
}

impl Client {
    /// The server's own: a shell in the same process, tests.
    pub fn local(connection_id: u32) -> Client {
        Client {
            connection_id,
            user: "root".to_string(),
            account_host: "localhost".to_string(),
            peer: IpAddr::from([127, 0, 0, 1]),
            database: None,
            collation: 255,
            multi_statements: true,
            found_rows: false,
            ignore_space: false,
            local_files: true,
            interactive: false,
            handles_expired_passwords: true,
            tls_cipher: None,
            attributes: Vec::new(),
        }
    }
}

/// What all sessions share: the database, global variables, plan cache, users, process list, status counters.
pub struct Engine {
    pub database: Database,
    pub runtime: Arc<dyn Runtime>,
    pub variables: Arc<GlobalVariables>,
    pub users: Users,
    pub logins: Logins,
    pub plans: Arc<PlanCache>,
    pub processes: ProcessList,
    pub digests: Digests,
    pub(crate) statistics: Statistics,
    pub clock: Arc<dyn Fn() -> i64 + Send + Sync>,
    pub(crate) beside: Beside,
    pub(crate) give_way: GiveWay,
    /// Of all statements.
    pub(crate) memory: Arc<Pool>,
    /// Prepared statements of all sessions.
    pub(crate) prepared: Arc<AtomicU64>,
    started: Duration,
}

impl Engine {
    /// Reads users and persisted variables from the database.
    pub fn new(
        database: Database,
        runtime: Arc<dyn Runtime>,
        options: EngineOptions,
    ) -> Result<Arc<Engine>, MysqlError> {
        let mut started = vec![
            ("version", Value::from(VERSION)),
            ("rauk_partitions", Value::UInt(u64::from(database.partition_count()))),
            ("rauk_durability", Value::from(database.durability().name())),
            (refused::MEMORY_LIMIT, Value::UInt(database.memory_limit())),
        ];
        // A share of what the stored rows may take, which by default is a share of the machine's memory.
        let share = |of: u64| (database.memory_limit() / 10 * of).max(of * LEAST_TENTH);
        started.push((VARIABLE, Value::UInt(share(2))));
        started.push((TOTAL_VARIABLE, Value::UInt(share(4))));
        started.push((MEMORY_VARIABLE, Value::UInt(share(1))));
        started.extend(options.variables);
        let variables = Arc::new(GlobalVariables::new(database.clone(), &started));
        for (key, text) in database.settings_with_prefix(PERSISTED) {
            let name = &key[PERSISTED.len()..];
            if let Err(error) = restore(&variables, name, &text, database.memory_available()) {
                tracing::warn!(name, text, %error, "a persisted variable cannot be used and keeps its default");
            }
        }
        let plans = Arc::new(PlanCache::new(variables.unsigned("rauk_plan_cache_size") as usize));
        let random = &mut || runtime.random();
        let users = Users::load(database.clone(), options.root_password.as_ref(), (options.clock)(), random)?;
        // Plans that have read a view depend on the roles of its definer.
        let (settings, known) = (users.role_settings(), plans.clone());
        variables.watch("mandatory_roles", move |value| {
            settings.set_mandatory(value);
            known.clear();
        });
        let (settings, known) = (users.role_settings(), plans.clone());
        variables.watch("activate_all_roles_on_login", move |value| {
            settings.set_activate_all(value);
            known.clear();
        });
        let memory = Arc::new(Pool::default());
        let pool = memory.clone();
        variables.watch(TOTAL_VARIABLE, move |value| {
            if let Value::UInt(bytes) = value {
                pool.set_limit(*bytes);
            }
        });
        let digests = Digests::new(variables.unsigned("performance_schema_digests_size") as usize);
        let started = runtime.now();
        let engine = Arc::new(Engine {
            database,
            runtime,
            variables,
            users,
            logins: Logins::default(),
            plans,
            processes: ProcessList::default(),
            digests,
            statistics: Statistics::default(),
            clock: options.clock,
            beside: options.beside,
            give_way: options.give_way,
            memory,
            prepared: Arc::default(),
            started,
        });
        engine.database.set_processes(Arc::new(Shown(Arc::downgrade(&engine))));
        Ok(engine)
    }

    pub fn now_micros(&self) -> i64 {
        (self.clock)()
    }

    pub fn uptime(&self) -> Duration {
        self.runtime.now().saturating_sub(self.started)
    }

    /// The account for a user from an address, most specific host first.
    pub fn account(&self, user: &str, peer: IpAddr) -> Option<Account> {
        let record = self.users.resolve(user, peer)?;
        Some(Account {
            host: record.host.clone(),
            plugin: record.plugin.clone(),
            hash: record.hash.clone(),
            second: record.rules.second.clone(),
            locked: record.locked,
        })
    }

    /// What comes of a login, whatever the password was. Errors 3955 (blocked after wrong passwords) and, for one who
    /// has proven the password, 3118 (locked) and 1045 (the connection is not what REQUIRE asks for).
    pub fn judge_login(&self, attempt: &LoginAttempt<'_>) -> Result<(), MysqlError> {
        let Some(record) = self.users.find_or_resolve(attempt.user, attempt.account_host, attempt.peer) else {
            return Ok(());
        };
        let peer = attempt.peer.to_canonical();
        let host = if peer.is_loopback() { "localhost".to_string() } else { peer.to_string() };
        self.logins.note(&record, attempt.proven, &host, self.now_micros())?;
        if !attempt.proven {
            return Ok(());
        }
        let user = attempt.user;
        if record.locked {
            let message = format!("Access denied for user '{user}'@'{host}'. Account is locked.");
            return Err(MysqlError::new(ACCOUNT_LOCKED, message));
        }
        let (cipher, certificate) = (attempt.cipher, attempt.certificate);
        let is =
            |asked: &Option<String>, found: Option<&str>| asked.as_deref().is_none_or(|asked| found == Some(asked));
        let good = match &record.rules.tls {
            TlsRule::None => true,
            TlsRule::Any => cipher.is_some(),
            TlsRule::X509 => certificate.is_some(),
            TlsRule::Specified { subject, issuer, cipher: asked } => {
                cipher.is_some()
                    && is(asked, cipher)
                    && is(subject, certificate.map(|(subject, _)| subject))
                    && is(issuer, certificate.map(|(_, issuer)| issuer))
            }
        };
        if good {
            return Ok(());
        }
        let using = if record.hash.is_empty() { "NO" } else { "YES" };
        let message = format!("Access denied for user '{user}'@'{host}' (using password: {using})");
        Err(MysqlError::new(codes::ACCESS_DENIED, message))
    }

    pub(crate) fn password_defaults(&self) -> PasswordDefaults {
        PasswordDefaults {
            lifetime: self.variables.unsigned("default_password_lifetime"),
            history: self.variables.unsigned("password_history"),
            reuse_days: self.variables.unsigned("password_reuse_interval"),
            require_current: self.variables.is_on("password_require_current"),
        }
    }

    /// Whether a session has to change its password first. Error 1862 where the client could not be told.
    pub(crate) fn check_password_age(&self, record: &AccountRecord, handled: bool) -> Result<bool, MysqlError> {
        let expired = record.rules.is_expired(self.now_micros(), &self.password_defaults());
        if expired && !handled && self.variables.is_on("disconnect_on_expired_password") {
            let message = "Your password has expired. To log in you must change it using a client that supports expired passwords.";
            return Err(MysqlError::new(PASSWORD_EXPIRED, message));
        }
        Ok(expired)
    }

    /// Whether clients without TLS or a Unix-domain socket are refused.
    pub fn requires_secure_transport(&self) -> bool {
        self.variables.is_on("require_secure_transport")
    }

    /// Begins a session. Errors: 1040 (too many connections), 1044 and 1049 (the database).
    pub fn connect(self: &Arc<Self>, client: Client) -> Result<Session, MysqlError> {
        Session::new(self.clone(), client)
    }

    /// From a client's connection to its session.
    pub fn connect_timeout(&self) -> Duration {
        Duration::from_secs(self.variables.unsigned("connect_timeout"))
    }

    pub fn max_allowed_packet(&self) -> usize {
        self.variables.unsigned("max_allowed_packet") as usize
    }

    /// Names and values of the variables that are stored for the next start.
    pub(crate) fn persisted(&self) -> Vec<(String, String)> {
        let stored = self.database.settings_with_prefix(PERSISTED).into_iter();
        stored.map(|(key, value)| (key[PERSISTED.len()..].to_string(), value)).collect()
    }

    /// Stores a global variable's value so that it comes back at the next start; `None` forgets it.
    pub(crate) async fn persist(&self, name: &str, value: Option<&Value>) -> Result<(), MysqlError> {
        let (variable, _) = store::find(name)?;
        let text = value.map(|v| variable.show(v));
        self.database.set_settings(&[(format!("{PERSISTED}{}", variable.name), text)]).await?;
        Ok(())
    }
}

fn restore(variables: &GlobalVariables, name: &str, text: &str, available: u64) -> Result<(), MysqlError> {
    let (variable, at) = store::find(name)?;
    if !variable.dynamic {
        return Err(errors::read_only_variable(name));
    }
    let value = match variable.default_value() {
        Value::UInt(_) => text.parse().map(Value::UInt).map_err(|_| errors::wrong_type(name))?,
        Value::Double(_) => text.parse().map(Value::Double).map_err(|_| errors::wrong_type(name))?,
        _ => Value::Str(text.to_string()),
    };
    let mut warnings: Vec<Warning> = Vec::new();
    let (now, default) = (variables.get(at), variables.default_of(at));
    let before = assign::Before { now: &now, default: &default };
    let value = assign::convert(variable, value, before, &mut warnings)?;
    refused::check_memory(variable, &value, available)?;
    variables.set(at, value);
    Ok(())
}

/// Error 1040.
pub(crate) fn too_many_connections() -> MysqlError {
    MysqlError::new(codes::CON_COUNT, "Too many connections")
}
