//! Where the protocol meets SQL: `mysql`'s traits, answered by `sql`'s engine and sessions.

use rauk_mysql::backend as protocol;
use rauk_sql::session::{Client, Engine, LoginAttempt, Session, VERSION};
use rauk_types::result::{ResultColumn, ResultSink, ServerStatus, SessionChange};
use rauk_types::{MysqlError, Value};
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

pub struct Backend(pub Arc<Engine>);

pub struct Connection(Session);

impl protocol::Backend for Backend {
    type Session = Connection;

    fn account(&self, user: &str, peer: IpAddr) -> Option<protocol::Account> {
        let account = self.0.account(user, peer)?;
        Some(protocol::Account {
            host: account.host,
            plugin: account.plugin,
            hash: account.hash,
            second: account.second,
            locked: account.locked,
        })
    }

    fn judge_login(
        &self,
        user: &str,
        account: &protocol::Account,
        peer: IpAddr,
        proven: bool,
        transport: &protocol::Transport,
    ) -> Result<(), MysqlError> {
        let certificate = transport.certificate.as_ref();
        self.0.judge_login(&LoginAttempt {
            user,
            account_host: &account.host,
            peer,
            proven,
            cipher: transport.cipher.as_deref(),
            certificate: certificate.map(|shown| (shown.subject.as_str(), shown.issuer.as_str())),
        })
    }

    fn requires_secure_transport(&self) -> bool {
        self.0.requires_secure_transport()
    }

    async fn connect(self: &Arc<Self>, info: protocol::ConnectionInfo) -> Result<Connection, MysqlError> {
        let session = self.0.connect(Client {
            connection_id: info.connection_id,
            user: info.user,
            account_host: info.account_host,
            peer: info.peer,
            database: info.database,
            collation: info.collation,
            multi_statements: info.multi_statements,
            found_rows: info.found_rows,
            ignore_space: info.ignore_space,
            local_files: info.local_files,
            interactive: info.interactive,
            handles_expired_passwords: info.handles_expired_passwords,
            tls_cipher: info.tls_cipher,
            attributes: info.attributes,
        })?;
        Ok(Connection(session))
    }

    fn server_version(&self) -> String {
        VERSION.to_string()
    }

    fn max_allowed_packet(&self) -> usize {
        self.0.max_allowed_packet()
    }

    fn connect_timeout(&self) -> Duration {
        self.0.connect_timeout()
    }
}

impl protocol::Session for Connection {
    async fn query(&mut self, sql: &str, sink: &mut dyn ResultSink) -> Result<(), MysqlError> {
        self.0.query(sql, sink).await
    }

    async fn prepare(&mut self, sql: &str) -> Result<protocol::Prepared, MysqlError> {
        let prepared = self.0.prepare(sql).await?;
        Ok(protocol::Prepared {
            id: prepared.id,
            parameters: prepared.parameters,
            columns: prepared.columns,
            warnings: prepared.warnings,
        })
    }

    async fn execute(&mut self, id: u32, parameters: &[Value], sink: &mut dyn ResultSink) -> Result<(), MysqlError> {
        self.0.execute(id, parameters, sink).await
    }

    fn close_statement(&mut self, id: u32) {
        self.0.close_statement(id);
    }

    async fn init_db(&mut self, name: &str) -> Result<(), MysqlError> {
        self.0.init_db(name).await
    }

    async fn reset(&mut self) {
        self.0.reset().await;
    }

    fn take_changes(&mut self) -> Vec<SessionChange> {
        self.0.take_changes()
    }

    fn set_multi_statements(&mut self, on: bool) {
        self.0.set_multi_statements(on);
    }

    fn columns_of(&mut self, table: &str, wildcard: &str) -> Result<Vec<ResultColumn>, MysqlError> {
        self.0.columns_of(table, wildcard)
    }

    fn statistics(&self) -> String {
        self.0.statistics()
    }

    fn status(&self) -> ServerStatus {
        self.0.status()
    }

    fn max_allowed_packet(&self) -> usize {
        self.0.max_allowed_packet()
    }

    fn timeouts(&self) -> protocol::Timeouts {
        let (idle, read, write) = self.0.timeouts();
        protocol::Timeouts { idle, read, write }
    }

    fn interrupter(&self) -> impl Fn() + Send + Sync + 'static {
        self.0.interrupter()
    }

    fn killed(&self) -> impl Future<Output = ()> + Send + 'static {
        self.0.killed()
    }
}
