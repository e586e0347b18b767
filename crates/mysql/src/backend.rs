//! The seam to whatever executes statements.
use rauk_types::result::{ResultColumn, ResultSink, ServerStatus, SessionChange};
use rauk_types::{MysqlError, Value};
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Who connected, after authentication.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    pub connection_id: u32,
    pub user: String,
    /// The account's host pattern that matched.
    pub account_host: String,
    pub peer: IpAddr,
    pub database: Option<String>,
    /// The collation number of the handshake.
    pub collation: u16,
    /// CLIENT_MULTI_STATEMENTS; COM_SET_OPTION changes it through `Session::set_multi_statements`.
    pub multi_statements: bool,
    /// CLIENT_FOUND_ROWS: UPDATE reports matched rather than changed rows.
    pub found_rows: bool,
    /// CLIENT_IGNORE_SPACE.
    pub ignore_space: bool,
    /// CLIENT_LOCAL_FILES: the client gives files of its own.
    pub local_files: bool,
    /// CLIENT_INTERACTIVE: idle for `interactive_timeout` instead of `wait_timeout`.
    pub interactive: bool,
    /// CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS.
    pub handles_expired_passwords: bool,
    /// OpenSSL's name of the cipher; `None` without TLS.
    pub tls_cipher: Option<String>,
    /// Connection attributes (`program_name`, …).
    pub attributes: Vec<(String, String)>,
}

/// How long a session waits for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the next command (wait_timeout).
    pub idle: Duration,
    /// Within a packet or a file (net_read_timeout).
    pub read: Duration,
    /// While the client does not take an answer (net_write_timeout).
    pub write: Duration,
}

/// What is stored of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// `%`, `localhost`, an address or a pattern: the one that matched.
    pub host: String,
    /// `caching_sha2_password` or `mysql_native_password`.
    pub plugin: String,
    /// `authentication_string` as in mysql.user: `$A$005$…` or `*HEX`; empty: no password.
    pub hash: String,
    /// The same of a second password, which is as good; empty: there is none.
    pub second: String,
    pub locked: bool,
}

/// A certificate that a client has shown and that the server trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// As OpenSSL writes it in one line: `/C=…/O=…/CN=…`.
    pub subject: String,
    pub issuer: String,
}

/// How a client is connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transport {
    /// OpenSSL's name of the cipher; `None` without TLS.
    pub cipher: Option<String>,
    pub certificate: Option<Certificate>,
}

#[derive(Clone, Debug)]
pub struct Prepared {
    pub id: u32,
    pub parameters: Vec<ResultColumn>,
    pub columns: Vec<ResultColumn>,
    pub warnings: u16,
}

pub trait Backend: Send + Sync + 'static {
    type Session: Session;
    /// The account for a user from an address, most specific host first.
    fn account(&self, user: &str, peer: IpAddr) -> Option<Account>;
    /// What comes of a login of `account`, whose password was proven or not: an error refuses it in any case.
    fn judge_login(
        &self,
        user: &str,
        account: &Account,
        peer: IpAddr,
        proven: bool,
        transport: &Transport,
    ) -> Result<(), MysqlError>;
    /// Whether clients that use neither TLS nor a Unix-domain socket are refused.
    fn requires_secure_transport(&self) -> bool;
    /// Begins a session; fails with 1049 or 1044 for the database, 1040 for too many.
    fn connect(
        self: &Arc<Self>,
        info: ConnectionInfo,
    ) -> impl Future<Output = Result<Self::Session, MysqlError>> + Send;
    fn server_version(&self) -> String;
    fn max_allowed_packet(&self) -> usize;
    /// From the connection to the session.
    fn connect_timeout(&self) -> Duration;
}

pub trait Session: Send {
    fn query(&mut self, sql: &str, sink: &mut dyn ResultSink) -> impl Future<Output = Result<(), MysqlError>> + Send;
    fn prepare(&mut self, sql: &str) -> impl Future<Output = Result<Prepared, MysqlError>> + Send;
    fn execute(
        &mut self,
        id: u32,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> impl Future<Output = Result<(), MysqlError>> + Send;
    fn close_statement(&mut self, id: u32);
    fn init_db(&mut self, name: &str) -> impl Future<Output = Result<(), MysqlError>> + Send;
    /// What clients may follow, and have not been told.
    fn take_changes(&mut self) -> Vec<SessionChange>;
    fn reset(&mut self) -> impl Future<Output = ()> + Send;
    fn set_multi_statements(&mut self, on: bool);
    /// COM_FIELD_LIST.
    fn columns_of(&mut self, table: &str, wildcard: &str) -> Result<Vec<ResultColumn>, MysqlError>;
    /// COM_STATISTICS.
    fn statistics(&self) -> String;
    fn status(&self) -> ServerStatus;
    fn max_allowed_packet(&self) -> usize;
    fn timeouts(&self) -> Timeouts;
    /// What interrupts the running statement, from any thread.
    fn interrupter(&self) -> impl Fn() + Send + Sync + 'static;
    /// Resolves when the connection was killed.
    fn killed(&self) -> impl Future<Output = ()> + Send + 'static;
}
