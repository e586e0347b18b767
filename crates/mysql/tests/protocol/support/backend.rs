//! A backend that knows a handful of statements by heart, to try the protocol on without a database.
//!
//! Users: `root` without a password, `native` and `sha2` with the password `secret`, `locked`. Statements are separated by `;` when the client
//! allows several; see `statement` for what there is.
use rauk_mysql::auth::{native, sha2};
use rauk_mysql::{Account, Backend, ConnectionInfo, Prepared, Session, Timeouts, Transport};
use rauk_types::result::{Completion, ResultColumn, ResultSink, ServerStatus, SessionChange};
use rauk_types::{Collation, DataType, Date, DateTime, Decimal, MysqlError, Time, TypeKind, Value, ValueRef};
use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

pub struct Scripted {
    pub accounts: BTreeMap<&'static str, Account>,
    pub sessions: AtomicUsize,
    pub kills: Mutex<BTreeMap<u32, watch::Sender<bool>>>,
    /// How often a running statement was interrupted.
    pub interrupted: AtomicUsize,
    pub max_allowed_packet: usize,
    pub timeouts: Timeouts,
    pub connect_timeout: Duration,
    pub require_secure_transport: bool,
    /// Of the last login that was judged.
    pub transport: Mutex<Transport>,
}

impl Default for Scripted {
    fn default() -> Self {
        let account = |plugin: &str, hash: String, locked| Account {
            host: "%".into(),
            plugin: plugin.into(),
            hash,
            second: String::new(),
            locked,
        };
        let sha2 = sha2::hash(b"secret");
        Scripted {
            accounts: BTreeMap::from([
                ("root", account("caching_sha2_password", String::new(), false)),
                ("native", account("mysql_native_password", native::hash(b"secret"), false)),
                ("sha2", account("caching_sha2_password", sha2.clone(), false)),
                ("locked", account("caching_sha2_password", sha2, true)),
            ]),
            sessions: AtomicUsize::new(0),
            kills: Mutex::default(),
            interrupted: AtomicUsize::new(0),
            max_allowed_packet: 64 << 20,
            timeouts: Timeouts {
                idle: Duration::from_secs(3600),
                read: Duration::from_secs(30),
                write: Duration::from_secs(60),
            },
            connect_timeout: Duration::from_secs(10),
            require_secure_transport: false,
            transport: Mutex::default(),
        }
    }
}

impl Backend for Scripted {
    type Session = Script;

    fn account(&self, user: &str, _peer: IpAddr) -> Option<Account> {
        self.accounts.get(user).cloned()
    }

    fn judge_login(
        &self,
        user: &str,
        account: &Account,
        _peer: IpAddr,
        proven: bool,
        transport: &Transport,
    ) -> Result<(), MysqlError> {
        *self.transport.lock().unwrap() = transport.clone();
        match proven && account.locked {
            true => {
                let message = format!("Access denied for user '{user}'@'localhost'. Account is locked.");
                Err(MysqlError::new(3118, message))
            }
            false => Ok(()),
        }
    }

    fn requires_secure_transport(&self) -> bool {
        self.require_secure_transport
    }

    async fn connect(self: &Arc<Self>, info: ConnectionInfo) -> Result<Script, MysqlError> {
        if let Some(database) = &info.database
            && database == "missing"
        {
            return Err(MysqlError::new(1049, format!("Unknown database '{database}'")));
        }
        self.sessions.fetch_add(1, Relaxed);
        let (kill, killed) = watch::channel(false);
        self.kills.lock().unwrap().insert(info.connection_id, kill);
        Ok(Script {
            backend: self.clone(),
            database: info.database.clone(),
            multi_statements: info.multi_statements,
            info,
            killed,
            in_transaction: false,
            changes: Vec::new(),
            prepared: BTreeMap::new(),
            next_id: 1,
        })
    }

    fn server_version(&self) -> String {
        "8.0.36-Rauk-scripted".into()
    }

    fn max_allowed_packet(&self) -> usize {
        self.max_allowed_packet
    }

    fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }
}

pub struct Script {
    backend: Arc<Scripted>,
    pub info: ConnectionInfo,
    database: Option<String>,
    multi_statements: bool,
    killed: watch::Receiver<bool>,
    in_transaction: bool,
    changes: Vec<SessionChange>,
    prepared: BTreeMap<u32, String>,
    next_id: u32,
}

impl Drop for Script {
    fn drop(&mut self) {
        self.backend.sessions.fetch_sub(1, Relaxed);
        self.backend.kills.lock().unwrap().remove(&self.info.connection_id);
    }
}

pub fn column(name: &str, ty: DataType) -> ResultColumn {
    ResultColumn {
        name: name.into(),
        org_name: String::new(),
        table: String::new(),
        org_table: String::new(),
        database: String::new(),
        ty,
        nullable: true,
        primary_key: false,
        unique_key: false,
        multiple_key: false,
        auto_increment: false,
    }
}

/// A column and a value of every type.
pub fn every_type() -> (Vec<ResultColumn>, Vec<Value>) {
    let new = DataType::new;
    let unsigned = |kind| DataType { unsigned: true, ..new(kind) };
    let fraction = |kind, scale| DataType { scale, ..new(kind) };
    let moment = DateTime::from_parts(2024, 2, 29, 23, 59, 58, 123_456).unwrap();
    let all = [
        ("tiny", new(TypeKind::TinyInt), Value::Int(-128)),
        ("tiny_u", unsigned(TypeKind::TinyInt), Value::UInt(255)),
        ("small", new(TypeKind::SmallInt), Value::Int(-32768)),
        ("medium", new(TypeKind::MediumInt), Value::Int(-8388608)),
        ("medium_u", unsigned(TypeKind::MediumInt), Value::UInt(16777215)),
        ("int", new(TypeKind::Int), Value::Int(-2147483648)),
        ("int_u", unsigned(TypeKind::Int), Value::UInt(4294967295)),
        ("big", new(TypeKind::BigInt), Value::Int(i64::MIN)),
        ("big_u", unsigned(TypeKind::BigInt), Value::UInt(u64::MAX)),
        ("decimal", DataType::decimal(20, 4), Value::Decimal("-1234567890.1230".parse::<Decimal>().unwrap())),
        ("float", new(TypeKind::Float), Value::Double(1.5)),
        ("double", new(TypeKind::Double), Value::Double(-2.25e100)),
        ("char", DataType { length: 10, ..new(TypeKind::Char) }, Value::Str("aß€".into())),
        ("varchar", DataType::varchar(20, Collation::DEFAULT), Value::Str("😀 it's".into())),
        ("text", new(TypeKind::Text), Value::Str("t".repeat(300))),
        ("binary", DataType::varbinary(10), Value::Bytes(vec![0, 255, 39])),
        ("blob", new(TypeKind::Blob), Value::Bytes((0..=255).collect())),
        ("date", new(TypeKind::Date), Value::Date(Date::new(2024, 2, 29).unwrap())),
        ("time", fraction(TypeKind::Time, 6), Value::Time(Time::new(true, 26, 3, 4, 500_000).unwrap())),
        ("datetime", fraction(TypeKind::DateTime, 6), Value::DateTime(moment)),
        ("timestamp", new(TypeKind::Timestamp), Value::DateTime(DateTime::from_parts(2024, 1, 2, 3, 4, 5, 0).unwrap())),
        ("json", new(TypeKind::Json), Value::Str("{\"a\": 1}".into())),
        ("null", DataType::varchar(5, Collation::DEFAULT), Value::Null),
    ];
    all.into_iter().map(|(name, ty, value)| (column(name, ty), value)).unzip()
}

fn type_of(value: &Value) -> DataType {
    match value {
        Value::Null | Value::Str(_) => DataType::varchar(1 << 20, Collation::DEFAULT),
        Value::Int(_) => DataType::BIGINT,
        Value::UInt(_) => DataType::BIGINT_UNSIGNED,
        Value::Double(_) => DataType::DOUBLE,
        Value::Decimal(d) => DataType::decimal(65, d.scale()),
        Value::Date(_) => DataType::new(TypeKind::Date),
        Value::Time(_) => DataType { scale: 6, ..DataType::new(TypeKind::Time) },
        Value::DateTime(_) | Value::Timestamp(_) => DataType { scale: 6, ..DataType::new(TypeKind::DateTime) },
        Value::Bytes(_) => DataType::varbinary(1 << 24),
        Value::Json(_) => DataType::new(TypeKind::Json),
    }
}

impl Script {
    fn completion(&self, more: bool) -> Completion {
        Completion { status: ServerStatus { more_results: more, ..self.status() }, ..Completion::default() }
    }

    fn one_row(&self, sink: &mut dyn ResultSink, more: bool, columns: &[ResultColumn], values: &[Value]) {
        let row: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        sink.columns(columns);
        sink.row(&row);
        sink.complete(&self.completion(more));
    }

    /// One statement; `parameters` stand for its `?`.
    async fn statement(
        &mut self,
        sql: &str,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> Result<(), MysqlError> {
        // Connector/J wants to see a SELECT where it expects rows.
        let sql = match sql.strip_prefix("SELECT ") {
            Some(rest) if ["WHOAMI", "ROWS ", "EVERY "].iter().any(|w| rest.starts_with(w)) => rest,
            _ => sql,
        };
        let upper = sql.to_ascii_uppercase();
        let words: Vec<&str> = sql.split_ascii_whitespace().collect();
        let number = |i: usize| words.get(i).and_then(|w| w.parse::<u64>().ok());
        let text = |name: &str| column(name, DataType::varchar(1000, Collation::DEFAULT));
        match words.as_slice() {
            [] => return Err(MysqlError::new(1065, "Query was empty")),
            ["ECHO", ..] => {
                let columns: Vec<ResultColumn> =
                    parameters.iter().enumerate().map(|(i, v)| column(&format!("p{i}"), type_of(v))).collect();
                self.one_row(sink, more, &columns, parameters);
            }
            ["EVERY", "TYPE"] => {
                let (columns, values) = every_type();
                self.one_row(sink, more, &columns, &values);
            }
            ["ROWS", ..] => {
                sink.columns(&[column("n", DataType::BIGINT), text("filler")]);
                let filler = "x".repeat(number(2).unwrap_or(10) as usize);
                for n in 0..number(1).unwrap_or(0) {
                    sink.row(&[ValueRef::UInt(n), ValueRef::Str(&filler)]);
                    if sink.buffered() > 64 * 1024 {
                        sink.flush().await?;
                    }
                }
                sink.complete(&self.completion(more));
            }
            ["ROWS_THEN_ERROR", ..] => {
                sink.columns(&[column("n", DataType::BIGINT)]);
                sink.row(&[ValueRef::Int(1)]);
                if number(1) == Some(1) {
                    sink.flush().await?;
                }
                return Err(MysqlError::new(1317, "Query execution was interrupted"));
            }
            ["ROWS_THEN_AGAIN", ..] => {
                sink.columns(&[column("n", DataType::BIGINT), text("taken back")]);
                sink.row(&[ValueRef::Int(1), ValueRef::Str("x")]);
                if number(1) == Some(1) {
                    sink.flush().await?;
                }
                if !sink.withdraw() {
                    return Err(MysqlError::new(1412, "Table definition has changed, please retry transaction"));
                }
                self.one_row(sink, more, &[column("n", DataType::BIGINT)], &[Value::Int(2)]);
            }
            ["LENGTH", literal] => {
                self.one_row(sink, more, &[column("length", DataType::BIGINT)], &[Value::Int(literal.len() as i64)]);
            }
            // Computes until it is interrupted, and looks at nothing else meanwhile.
            ["SPIN"] => {
                let interrupted = || self.backend.interrupted.load(Relaxed);
                let before = interrupted();
                rauk_mysql::workers::beside(&mut || {
                    while interrupted() == before {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                });
                return Err(MysqlError::new(1317, "Query execution was interrupted"));
            }
            ["SLEEP", ..] => {
                let mut killed = self.killed.clone();
                let (end, ended) = tokio::sync::oneshot::channel();
                let duration = Duration::from_millis(number(1).unwrap_or(0));
                std::thread::spawn(move || {
                    std::thread::sleep(duration);
                    let _ = end.send(());
                });
                tokio::select! {
                    _ = ended => {}
                    _ = killed.wait_for(|k| *k) => return Err(MysqlError::new(1317, "Query execution was interrupted")),
                }
                sink.complete(&self.completion(more));
            }
            // The bytes and pieces of a client's file, or the first error; with a number, an error after so many bytes. The file is read to its end.
            ["LOAD", "INFILE", name, ..] => {
                if !sink.request_file(name) {
                    return Err(MysqlError::new(3948, "Loading local data is disabled"));
                }
                let (mut file, mut pieces, mut failed) = (Vec::new(), 0, None);
                loop {
                    match sink.read_file(&mut file).await {
                        Ok(true) => pieces += 1,
                        Ok(false) => break,
                        Err(error) => failed = failed.or(Some(error)),
                    }
                    if number(3).is_some_and(|limit| file.len() as u64 >= limit) {
                        failed = failed.or_else(|| Some(MysqlError::new(1062, "Duplicate entry")));
                    }
                }
                if let Some(error) = failed {
                    return Err(error);
                }
                let columns = ["bytes", "pieces"].map(|name| column(name, DataType::BIGINT));
                self.one_row(sink, more, &columns, &[Value::Int(file.len() as i64), Value::Int(pieces)]);
            }
            ["SILENCE"] => {}
            ["BEGIN"] => {
                self.in_transaction = true;
                sink.complete(&self.completion(more));
            }
            ["COMMIT" | "ROLLBACK"] => {
                self.in_transaction = false;
                sink.complete(&self.completion(more));
            }
            ["KILL", ..] => {
                let id = number(1).unwrap_or(0) as u32;
                match self.backend.kills.lock().unwrap().get(&id) {
                    Some(kill) => drop(kill.send(true)),
                    None => return Err(MysqlError::new(1094, format!("Unknown thread id: {id}"))),
                }
                sink.complete(&self.completion(more));
            }
            ["USE", name] => {
                self.database = Some((*name).to_owned());
                sink.changed(SessionChange::Schema((*name).to_owned()));
                sink.complete(&self.completion(more));
            }
            ["TRACK"] => {
                sink.changed(SessionChange::Variable { name: "a".into(), value: "1".into() });
                sink.changed(SessionChange::State);
                sink.changed(SessionChange::TransactionState("T_R___S_".into()));
                sink.changed(SessionChange::TransactionCharacteristics("START TRANSACTION;".into()));
                sink.complete(&self.completion(more));
            }
            ["INSERT", ..] => {
                let done = Completion {
                    affected_rows: 3,
                    last_insert_id: 41,
                    warnings: 1,
                    info: "Records: 3  Duplicates: 0  Warnings: 1".into(),
                    ..self.completion(more)
                };
                sink.complete(&done);
            }
            ["SHOW", "PROCESSLIST"] => {
                let id = Value::UInt(self.info.connection_id.into());
                self.one_row(sink, more, &[column("Id", DataType::BIGINT_UNSIGNED)], &[id]);
            }
            ["SHOW", ..] => {
                sink.columns(&[text("Variable_name"), text("Value")]);
                sink.complete(&self.completion(more));
            }
            ["WHOAMI"] => {
                let columns = ["user", "host", "database", "cipher", "attributes"].map(text);
                let or_null = |v: &Option<String>| v.clone().map_or(Value::Null, Value::Str);
                let values = [
                    Value::Str(self.info.user.clone()),
                    Value::Str(self.info.account_host.clone()),
                    or_null(&self.database),
                    or_null(&self.info.tls_cipher),
                    Value::Str(format!("{:?}", self.info.attributes)),
                ];
                self.one_row(sink, more, &columns, &values);
            }
            _ if upper.starts_with("SET") || upper.starts_with("CREATE") || upper.starts_with("DROP") => {
                sink.complete(&self.completion(more));
            }
            _ if upper.starts_with("SELECT ") || upper.starts_with("/*") => self.select(sql, sink, more)?,
            _ => {
                let message = format!("You have an error in your SQL syntax; near '{sql}' at line 1");
                return Err(MysqlError::new(1064, message));
            }
        }
        Ok(())
    }

    /// `SELECT a, b, …` of integers, quoted strings and the variables that drivers ask for.
    fn select(&self, sql: &str, sink: &mut dyn ResultSink, more: bool) -> Result<(), MysqlError> {
        let at = sql.to_ascii_uppercase().find("SELECT ").unwrap_or(0) + 7;
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for item in sql[at..].trim_end_matches(" LIMIT 1").trim_end_matches(" limit 1").split(',') {
            let mut parts = item.trim().splitn(2, " AS ");
            let expression = parts.next().unwrap_or_default().trim();
            let name = parts.next().unwrap_or(expression);
            let variable =
                expression.trim_start_matches('@').trim_start_matches("session.").trim_start_matches("global.");
            let value = match variable.to_ascii_lowercase().as_str() {
                "max_allowed_packet" => Value::UInt(self.backend.max_allowed_packet as u64),
                "auto_increment_increment" | "lower_case_table_names" | "performance_schema" | "autocommit" => {
                    Value::Int(1)
                }
                "interactive_timeout" | "wait_timeout" | "net_write_timeout" | "net_buffer_length" => Value::Int(28800),
                "sql_mode" => Value::Str("STRICT_TRANS_TABLES".into()),
                "time_zone" | "system_time_zone" => Value::Str("UTC".into()),
                "transaction_isolation" | "tx_isolation" => Value::Str("REPEATABLE-READ".into()),
                "version_comment" => Value::Str("Rauk".into()),
                "database()" => self.database.clone().map_or(Value::Null, Value::Str),
                other if expression.starts_with("@@") => Value::Str(format!("utf8mb4 {other}")),
                other => match (other.parse::<i64>(), expression.strip_prefix('\'')) {
                    (Ok(n), _) => Value::Int(n),
                    (_, Some(text)) => Value::Str(text.trim_end_matches('\'').into()),
                    _ => return Err(MysqlError::new(1054, format!("Unknown column '{expression}' in 'field list'"))),
                },
            };
            columns.push(column(name, type_of(&value)));
            values.push(value);
        }
        self.one_row(sink, more, &columns, &values);
        Ok(())
    }
}

impl Session for Script {
    async fn query(&mut self, sql: &str, sink: &mut dyn ResultSink) -> Result<(), MysqlError> {
        let statements: Vec<&str> =
            if self.multi_statements { sql.split(';').collect() } else { vec![sql.trim_end_matches(';')] };
        let last = statements.iter().rposition(|s| !s.trim().is_empty()).unwrap_or(0);
        for (i, statement) in statements.iter().enumerate().take(last + 1) {
            self.statement(statement.trim(), &[], sink, i < last).await?;
        }
        Ok(())
    }

    async fn prepare(&mut self, sql: &str) -> Result<Prepared, MysqlError> {
        if sql.starts_with("SYNTAX") {
            return Err(MysqlError::new(1064, "You have an error in your SQL syntax"));
        }
        let id = self.next_id;
        self.next_id += 1;
        self.prepared.insert(id, sql.to_owned());
        let count = sql.matches('?').count();
        let parameter = column("?", DataType::varbinary(0));
        // What a SELECT has before its execution; other columns show then.
        let columns = match sql.trim_start_matches("SELECT ").split_ascii_whitespace().next() {
            Some("ROWS") => {
                vec![column("n", DataType::BIGINT), column("filler", DataType::varchar(1000, Collation::DEFAULT))]
            }
            Some("EVERY") => every_type().0,
            Some("ECHO") => (0..count).map(|i| column(&format!("p{i}"), DataType::varbinary(100))).collect(),
            _ => Vec::new(),
        };
        Ok(Prepared { id, parameters: vec![parameter; count], columns, warnings: 0 })
    }

    async fn execute(&mut self, id: u32, parameters: &[Value], sink: &mut dyn ResultSink) -> Result<(), MysqlError> {
        let sql = self.prepared.get(&id).cloned().expect("the protocol knows which statements there are");
        self.statement(&sql, parameters, sink, false).await
    }

    fn close_statement(&mut self, id: u32) {
        self.prepared.remove(&id);
    }

    fn take_changes(&mut self) -> Vec<SessionChange> {
        std::mem::take(&mut self.changes)
    }

    async fn init_db(&mut self, name: &str) -> Result<(), MysqlError> {
        if name == "missing" {
            return Err(MysqlError::new(1049, "Unknown database 'missing'"));
        }
        self.database = Some(name.to_owned());
        self.changes.push(SessionChange::Schema(name.to_owned()));
        Ok(())
    }

    async fn reset(&mut self) {
        self.in_transaction = false;
        self.prepared.clear();
    }

    fn set_multi_statements(&mut self, on: bool) {
        self.multi_statements = on;
    }

    fn columns_of(&mut self, table: &str, _wildcard: &str) -> Result<Vec<ResultColumn>, MysqlError> {
        if table == "t" {
            return Ok(every_type().0);
        }
        Err(MysqlError::new(1146, format!("Table 'd.{table}' doesn't exist")))
    }

    fn statistics(&self) -> String {
        "Uptime: 1  Threads: 1  Questions: 1".into()
    }

    fn status(&self) -> ServerStatus {
        ServerStatus { autocommit: true, in_transaction: self.in_transaction, ..ServerStatus::default() }
    }

    fn max_allowed_packet(&self) -> usize {
        self.backend.max_allowed_packet
    }

    fn timeouts(&self) -> Timeouts {
        self.backend.timeouts
    }

    fn interrupter(&self) -> impl Fn() + Send + Sync + 'static {
        let backend = self.backend.clone();
        move || {
            backend.interrupted.fetch_add(1, Relaxed);
        }
    }

    fn killed(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut killed = self.killed.clone();
        async move {
            if killed.wait_for(|k| *k).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
