//! One connection: its state, and the calls that the protocols make.

use super::accounting::Running;
use super::diagnostics::Signalled;
use super::engine::{Client, Engine, too_many_connections};
use super::errors;
use super::handlers::Opened;
use super::lookup::{SessionLookup, Viewer};
use super::prepared::PreparedStatement;
use super::processlist::{Killed, Process};
use super::server::SessionServer;
use super::status::Counter;
use super::system;
use super::table_locks::Locked;
use super::tables_in_use::Noted;
use super::temporary::TemporaryTables;
use super::tracking::Tracker;
use super::transactions::{NextTransaction, OpenTransaction};
use super::users::logins::Entered;
use super::users::{AccountRecord, Privileges};
use super::variables::{SessionVariables, Settings};
use crate::expr::context::{UserVariable, Warning, WarningLevel};
use crate::expr::type_of;
use crate::expr::{BindContext, Budget, Context, Switches};
use crate::locks::UserLocks;
use crate::memory::{Memory, Watch, interrupted};
use crate::parse::ast::TableName;
use crate::parse::statement::UserName;
use crate::parse::{self, Mode, Normal, Parsed, Tree};
use rauk_node::{DdlWait, Meanwhile, TableHandle, TableLocks};
use rauk_types::result::{Charsets, ResultColumn, ResultSink, ServerStatus};
use rauk_types::{Charset, Collation, DataType, MysqlError, Value};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Texts from this length on take long to parse and to plan: some milliseconds.
pub(crate) const LONG_TEXT: usize = 256 << 10;

/// One connection. Dropping it rolls back what is open.
pub struct Session {
    pub engine: Arc<Engine>,
    pub(crate) client: Client,
    /// The session's account as it is stored.
    pub(crate) own: Arc<AccountRecord>,
    /// What the session may do: its account with its active roles.
    pub(crate) account: Arc<AccountRecord>,
    /// In order of their names.
    pub(crate) active_roles: Vec<UserName>,
    /// Nothing but its change is allowed (error 1820).
    pub(crate) password_expired: bool,
    /// Its place among the sessions of its account.
    pub(crate) entered: Entered,
    /// Of [`super::users::Users`] when `account` was fetched.
    account_epoch: u64,
    pub(crate) variables: Arc<SessionVariables>,
    pub(crate) settings: Settings,
    /// As the settings and the client's handshake have them.
    charsets: Charsets,
    pub(crate) context: Context,
    pub(crate) process: Arc<Process>,
    pub(crate) open: Option<OpenTransaction>,
    pub(crate) next: NextTransaction,
    pub(crate) prepared: FxHashMap<u32, Arc<PreparedStatement>>,
    pub(crate) last_prepared: u32,
    /// What the prepared statements hold.
    pub(crate) prepared_memory: Memory,
    /// PREPARE name FROM …, by name in lower case.
    pub(crate) named: FxHashMap<String, Arc<PreparedStatement>>,
    pub(crate) temporary: Arc<TemporaryTables>,
    /// LOCK TABLES.
    pub(crate) locked: Option<Locked>,
    /// The locks of LOCK TABLES while a DDL statement works under them.
    pub(crate) locks_of_ddl: Option<TableLocks>,
    /// HANDLER … OPEN.
    pub(crate) handlers: Vec<Opened>,
    /// FLUSH TABLES WITH READ LOCK.
    pub(crate) read_lock: Option<TableLocks>,
    /// LOCK INSTANCE FOR BACKUP.
    pub(crate) backup_lock: Option<TableLocks>,
    pub(crate) errors: u64,
    pub(crate) signalled: Option<Box<Signalled>>,
    pub(crate) tracker: Tracker,
    /// Types of `context.parameters` while a prepared statement that is no query runs.
    pub(crate) parameter_types: Vec<DataType>,
    /// Buffers for the normal form of a statement.
    pub(crate) normal: Normal,
    pub(crate) run: Running,
    pub(crate) noted: Noted,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.open = None;
        self.release_table_locks();
        self.backup_lock = None;
        self.context.user_locks.release_all();
        self.engine.processes.remove(self.process.id);
    }
}

impl Session {
    pub(crate) fn new(engine: Arc<Engine>, client: Client) -> Result<Session, MysqlError> {
        let account_epoch = engine.users.epoch();
        let account = engine.users.find_or_resolve(&client.user, &client.account_host, client.peer);
        let account = account.ok_or_else(|| {
            let message = format!("Access denied for user '{}'@'{}' (using password: NO)", client.user, client.peer);
            MysqlError::new(rauk_types::error::codes::ACCESS_DENIED, message)
        })?;
        let own = account;
        let password_expired = engine.check_password_age(&own, client.handles_expired_passwords)?;
        let entered =
            engine.logins.enter(&own, engine.variables.unsigned("max_user_connections"), engine.now_micros())?;
        let roles = engine.users.roles_at_login(&own);
        let account = engine.users.with_roles(&own, &roles);
        let limit = engine.variables.unsigned("max_connections");
        let now = engine.now_micros();
        let host = if client.peer.to_canonical().is_loopback() {
            "localhost".to_string()
        } else {
            client.peer.to_canonical().to_string()
        };
        // One more for whoever may end the others, as MySQL keeps.
        let reserve = account.global.intersects(Privileges::SUPER.with(Privileges::CONNECTION_ADMIN));
        let process =
            engine.processes.add(&client, &host, now, limit + u64::from(reserve)).ok_or_else(too_many_connections)?;
        let id = engine.database.cluster_session_id(client.connection_id);
        let variables = Arc::new(SessionVariables::new(engine.variables.clone(), id));
        if client.interactive {
            let (_, at) = super::variables::store::find("wait_timeout").expect("it is a variable");
            variables.set(at, variables.by_name("interactive_timeout"));
        }
        let settings = Settings::read(&variables);
        let context = Context {
            json_paths: Default::default(),
            parameters: Vec::new(),
            sql_mode: settings.sql_mode,
            now_micros: now,
            time_zone: settings.time_zone.clone(),
            collation: settings.collation,
            current_database: None,
            user: format!("{}@{host}", client.user),
            current_user: format!("{}@{}", account.user, account.host),
            current_role: "NONE".to_string(),
            connection_id: id,
            last_insert_id: 0,
            new_last_insert_id: None,
            auto_increment: settings.auto_increment,
            insert_id: None,
            row_count: -1,
            found_rows: 0,
            user_variables: HashMap::new(),
            user_variable_bytes: 0,
            warnings: Vec::new(),
            warning_count: 0,
            max_error_count: settings.max_error_count,
            max_allowed_packet: settings.max_allowed_packet,
            strict_statement: false,
            locks_changed_tables: false,
            ignores_errors: false,
            matched_rows: 0,
            variables: variables.clone(),
            server: Arc::new(SessionServer::new(engine.clone(), account.clone())),
            budget: Budget::new(
                Memory::new(
                    engine.memory.clone(),
                    settings.memory_limit,
                    Watch::new(process.interrupt.clone(), engine.runtime.clone()),
                ),
                (engine.beside, engine.give_way),
            ),
            subqueries: Default::default(),
            searches: Default::default(),
            measures: None,
            user_locks: UserLocks::new(engine.database.clone(), id, process.interrupt.clone(), {
                let process = process.clone();
                Arc::new(move || process.kill_connection())
            }),
            random_state: engine.runtime.random(),
            key: Vec::new(),
            seeded_random: Vec::new(),
        };
        let prepared_memory = Memory::new(engine.memory.clone(), settings.memory_limit, Watch::default());
        let database = client.database.clone();
        let mut session = Session {
            engine,
            client,
            own,
            account,
            active_roles: vec![],
            password_expired,
            entered,
            account_epoch,
            variables,
            settings,
            charsets: Charsets::default(),
            context,
            process,
            open: None,
            next: NextTransaction::default(),
            prepared: FxHashMap::default(),
            last_prepared: 0,
            prepared_memory,
            named: FxHashMap::default(),
            temporary: Arc::default(),
            locked: None,
            locks_of_ddl: None,
            read_lock: None,
            backup_lock: None,
            handlers: Vec::new(),
            errors: 0,
            signalled: None,
            tracker: Tracker::default(),
            parameter_types: Vec::new(),
            normal: Normal::default(),
            run: Running::default(),
            noted: Noted::default(),
        };
        session.activate(roles);
        session.set_client_collation();
        if let Some(name) = database.filter(|name| !name.is_empty()) {
            session.use_database(&name)?;
        }
        session.forget_changes();
        Ok(session)
    }

    /// The character set that the client announced in its handshake.
    fn set_client_collation(&mut self) {
        let announced = Collation::from_mysql_id(self.client.collation);
        // As in MySQL the server's own counts where a client names a set that no statement can be written in.
        if let Some(collation) = announced.filter(|collation| collation.charset().is_for_clients()) {
            self.set_names(collation);
        }
        self.read_settings();
    }

    /// The character sets of the client's texts. Columns say the collation that the client announced, where it is one of the
    /// results' set.
    fn charsets_of_client(&self) -> Charsets {
        let results = self.settings.results;
        let default = Collation::of_charset(results.unwrap_or(Charset::UTF8MB4));
        let announced = Collation::from_mysql_id(self.client.collation);
        let results_collation = announced.filter(|c| c.charset() == default.charset()).unwrap_or(default);
        Charsets { client: self.settings.client, results, results_collation }
    }

    // Calls of the protocols

    /// Runs one or several statements (several only when the client allowed it); each writes its result into `sink`. The first error ends it.
    /// When this returns, all that was answered is durable.
    pub async fn query(&mut self, sql: &str, sink: &mut dyn ResultSink) -> Result<(), MysqlError> {
        self.begin_command(sql)?;
        // Boxed: what a statement needs while it runs should not be part of an idle connection.
        let result = Box::pin(self.run_text(sql, sink)).await;
        self.process.end();
        result
    }

    /// COM_INIT_DB.
    pub async fn init_db(&mut self, name: &str) -> Result<(), MysqlError> {
        self.refresh_account();
        self.check_not_expired()?;
        self.use_database(name)
    }

    /// COM_RESET_CONNECTION: rolls back, forgets variables, prepared statements and warnings.
    pub async fn reset(&mut self) {
        self.open = None;
        self.release_table_locks();
        self.backup_lock = None;
        self.handlers.clear();
        self.drop_all_temporary();
        self.context.user_locks.release_all();
        self.note_end();
        self.next = NextTransaction::default();
        self.prepared.clear();
        self.named.clear();
        self.variables.reset();
        self.context.user_variables.clear();
        self.context.user_variable_bytes = 0;
        self.context.last_insert_id = 0;
        self.context.insert_id = None;
        self.context.row_count = -1;
        self.context.found_rows = 0;
        self.clear_warnings();
        self.refresh_account();
        self.activate(self.engine.users.roles_at_login(&self.own));
        self.set_client_collation();
        self.forget_changes();
    }

    pub fn status(&self) -> ServerStatus {
        ServerStatus {
            in_transaction: self.open.is_some(),
            autocommit: self.settings.autocommit,
            in_transaction_readonly: self.open.as_ref().is_some_and(|open| open.read_only),
            more_results: false,
            no_backslash_escapes: self.settings.sql_mode.no_backslash_escapes,
            charsets: self.charsets,
        }
    }

    pub fn set_multi_statements(&mut self, on: bool) {
        self.client.multi_statements = on;
    }

    /// COM_FIELD_LIST: the columns of a table of the current database whose names match the pattern (empty: all).
    pub fn columns_of(&mut self, table: &str, wildcard: &str) -> Result<Vec<ResultColumn>, MysqlError> {
        self.refresh_account();
        self.check_not_expired()?;
        let name = TableName { database: None, name: table.to_string() };
        let (database, table) = self.qualified(&name)?;
        if !self.temporary.has(&database, &table) {
            self.require_table("SELECT", &database, &table, Privileges::SELECT)?;
        }
        let schema = match self.view(&database, &table) {
            Some(view) => system::schema_of_view(&self.viewer(), &view)?,
            None => self.stored_table(&database, &table)?.schema().clone(),
        };
        let pattern = if wildcard.is_empty() { "%" } else { wildcard };
        let visible = schema.visible_columns();
        let matching = visible.iter().filter(|c| super::pattern::like(pattern, &c.name, true));
        Ok(matching
            .map(|column| ResultColumn {
                name: column.name.clone(),
                org_name: column.name.clone(),
                table: table.clone(),
                org_table: table.clone(),
                database: database.clone(),
                ty: column.ty,
                nullable: column.nullable,
                primary_key: false,
                unique_key: false,
                multiple_key: false,
                auto_increment: false,
            })
            .collect())
    }

    /// COM_STATISTICS.
    pub fn statistics(&self) -> String {
        let totals = self.engine.processes.totals();
        let uptime = self.engine.uptime().as_secs().max(1);
        let questions = totals[Counter::Questions as usize];
        format!(
            "Uptime: {uptime}  Threads: {}  Questions: {questions}  Slow queries: 0  Opens: 0  Flush tables: 0  Open tables: 0  Queries per second avg: {:.3}",
            self.engine.processes.len(),
            questions as f64 / uptime as f64
        )
    }

    pub fn max_allowed_packet(&self) -> usize {
        self.settings.max_allowed_packet
    }

    /// How long the connection may be idle (wait_timeout).
    /// wait_timeout, net_read_timeout, net_write_timeout.
    pub fn timeouts(&self) -> (Duration, Duration, Duration) {
        self.settings.timeouts
    }

    /// Interrupts the running statement, as KILL QUERY does, from any thread.
    pub fn interrupter(&self) -> impl Fn() + Send + Sync + 'static {
        let interrupt = self.process.interrupt.clone();
        move || interrupt.kill()
    }

    /// Resolves when the connection was killed.
    pub fn killed(&self) -> impl Future<Output = ()> + Send + 'static {
        Killed(self.process.clone())
    }

    // State that statements share

    /// A command of the client begins.
    pub(crate) fn begin_command(&mut self, sql: &str) -> Result<(), MysqlError> {
        if self.process.is_killed() {
            return Err(interrupted());
        }
        self.process.interrupt.clear();
        self.process.begin(sql, self.engine.now_micros());
        self.refresh_account();
        Ok(())
    }

    /// Fetches the account again when any account has changed.
    pub(crate) fn refresh_account(&mut self) {
        let epoch = self.engine.users.epoch();
        if epoch != self.account_epoch {
            self.account_epoch = epoch;
            // A dropped account keeps what it had until it disconnects, as in MySQL.
            if let Some(own) = self.engine.users.find(&self.own.user, &self.own.host) {
                self.own = own;
                let rules = &self.own.rules;
                self.password_expired &= rules.is_expired(self.engine.now_micros(), &self.engine.password_defaults());
            }
            // Roles that were revoked or dropped are active no more, and those that are left may have changed.
            let mut active = std::mem::take(&mut self.active_roles);
            if !active.is_empty() {
                let granted = self.engine.users.granted_roles(&self.own);
                active.retain(|role| granted.contains_key(role));
            }
            self.activate(active);
        }
    }

    /// A statement begins that counts for MAX_QUERIES_PER_HOUR. Error 1226.
    pub(crate) fn spend_query(&self) -> Result<(), MysqlError> {
        match &self.own.rules.limits {
            limits if limits.queries == 0 => Ok(()),
            limits => self.entered.spend_query(limits, self.engine.now_micros()),
        }
    }

    /// The same for MAX_UPDATES_PER_HOUR.
    pub(crate) fn spend_update(&self) -> Result<(), MysqlError> {
        match &self.own.rules.limits {
            limits if limits.updates == 0 => Ok(()),
            limits => self.entered.spend_update(limits, self.engine.now_micros()),
        }
    }

    /// How long DDL waits for the users of its tables: until lock_wait_timeout (1205) or KILL (1317).
    pub(crate) fn ddl_wait(&self) -> DdlWait<'_> {
        DdlWait {
            limit: self.settings.metadata_wait,
            interrupt: Some(&self.process.interrupt),
            foreign_key_checks: self.settings.foreign_key_checks,
            meanwhile: Meanwhile::All,
            progress: Some(&self.process.progress),
            locks: self.locks_of_ddl.as_ref(),
            threads: self.settings.ddl_threads,
            rows_per_second: self.settings.ddl_rows_per_second,
        }
    }

    /// After SET: the plain fields from the variables.
    pub(crate) fn read_settings(&mut self) {
        self.settings = Settings::read(&self.variables);
        self.settings.sql_mode.ignore_space |= self.client.ignore_space;
        self.charsets = self.charsets_of_client();
        self.context.sql_mode = self.settings.sql_mode;
        self.context.time_zone = self.settings.time_zone.clone();
        self.context.collation = self.settings.collation;
        self.context.auto_increment = self.settings.auto_increment;
        self.context.max_error_count = self.settings.max_error_count;
        self.context.max_allowed_packet = self.settings.max_allowed_packet;
        self.temporary.set_limit(self.settings.temporary_memory);
    }

    /// How text is read.
    pub(crate) fn mode(&self) -> Mode {
        self.settings.sql_mode.parse_mode()
    }

    /// Parses a text as this session reads it. A long one takes its time, in which the thread's other tasks need not wait.
    pub(crate) fn parse(&self, sql: &str) -> Result<Parsed, MysqlError> {
        let budget = &self.context.budget;
        let parse = || parse::parse_within(sql, self.mode(), &budget.memory);
        if sql.len() >= LONG_TEXT { budget.beside(parse) } else { parse() }
    }

    pub(crate) fn parse_one(&self, sql: &str) -> Result<Tree, MysqlError> {
        Ok(self.parse(sql)?.statement)
    }

    pub(crate) fn bind_context(&self, parameters: Vec<DataType>) -> BindContext {
        let user_variables = self.context.user_variables.iter();
        BindContext {
            parameters,
            collation: self.settings.collation,
            sql_mode: self.settings.sql_mode,
            switches: self.settings.switches,
            usual_switches: Switches::of(&self.engine.variables.text("optimizer_switch")),
            variable_type: Some(super::variables::definition::type_by_name),
            user_variables: user_variables.map(|(name, variable)| (name.clone(), type_of_variable(variable))).collect(),
            memory: self.context.budget.memory.clone(),
            arrays: false,
            waits: Default::default(),
        }
    }

    pub(crate) fn lookup(&self) -> SessionLookup {
        SessionLookup::new(self)
    }

    /// What virtual tables may show this session.
    pub(crate) fn viewer(&self) -> Viewer {
        Viewer {
            engine: self.engine.clone(),
            account: self.account.clone(),
            active_roles: self.active_roles.clone(),
            variables: self.variables.clone(),
            connection_id: self.client.connection_id,
            temporary: self.temporary.clone(),
            locked: self.locked.as_ref().map(|locked| locked.names.clone()),
        }
    }

    pub(crate) fn clear_warnings(&mut self) {
        self.context.warnings.clear();
        self.context.warning_count = 0;
        self.errors = 0;
        self.signalled = None;
    }

    pub(crate) fn note(&mut self, code: u16, message: String) {
        if self.settings.sql_notes {
            self.push_warning(WarningLevel::Note, code, message);
        }
    }

    pub(crate) fn push_warning(&mut self, level: WarningLevel, code: u16, message: String) {
        self.context.warning_count += 1;
        if self.context.warnings.len() < self.context.max_error_count {
            self.context.warnings.push(Warning { level, code, message });
        }
    }

    // Names and tables

    /// Database and name of a table; 1046.
    pub(crate) fn qualified(&self, name: &TableName) -> Result<(String, String), MysqlError> {
        let database = match &name.database {
            Some(database) => database.clone(),
            None => self.context.current_database.clone().ok_or_else(errors::no_database)?,
        };
        Ok((system::canonical_database(&database), name.name.clone()))
    }

    /// A temporary or else a stored table; 1049, 1146.
    pub(crate) fn stored_table(&self, database: &str, name: &str) -> Result<TableHandle, MysqlError> {
        if let Some(table) = self.temporary.get(database, name) {
            return Ok(table.clone());
        }
        super::lookup::stored(&self.engine, database, name)
    }

    /// USE: 1049, 1044.
    pub(crate) fn use_database(&mut self, name: &str) -> Result<(), MysqlError> {
        let name = system::canonical_database(name);
        if !self.account.may_use(&name) {
            return Err(errors::database_denied(&self.account.user, &self.account.host, &name));
        }
        if !system::is_system(&name) && self.engine.database.database_collation(&name).is_none() {
            return Err(errors::unknown_database(&name));
        }
        self.set_current_database(Some(name));
        self.track_schema();
        Ok(())
    }

    pub(crate) fn set_current_database(&mut self, name: Option<String>) {
        let collation = name
            .as_deref()
            .and_then(|name| self.engine.database.database_collation(name))
            .unwrap_or(rauk_types::Collation::DEFAULT);
        self.set_variable("collation_database", Value::from(collation.name()));
        self.set_variable("character_set_database", Value::from(collation.charset_name()));
        *self.process.database.lock() = name.clone();
        self.context.current_database = name;
    }

    /// Sets a session variable to a value that is known to be good.
    pub(crate) fn set_variable(&mut self, name: &str, value: Value) {
        let (_, at) = super::variables::store::find(name).expect("a variable that the server sets exists");
        self.variables.set(at, value);
    }

    // Privileges

    /// 1227 unless one of these is granted globally.
    pub(crate) fn require_any(&self, privileges: Privileges, names: &str) -> Result<(), MysqlError> {
        if self.account.global.intersects(privileges) { Ok(()) } else { Err(errors::needs_privilege(names)) }
    }

    /// 1044 unless granted on the database.
    pub(crate) fn require_database(&self, database: &str, privileges: Privileges) -> Result<(), MysqlError> {
        if self.account.on_database(database).contains(privileges) {
            return Ok(());
        }
        Err(errors::database_denied(&self.account.user, &self.account.host, database))
    }

    /// 1142 unless granted on the table. `command` is the word that the error names.
    pub(crate) fn require_table(
        &self,
        command: &str,
        database: &str,
        table: &str,
        privileges: Privileges,
    ) -> Result<(), MysqlError> {
        if self.account.global_on(database).contains(privileges)
            || self.account.on_table(database, table).contains(privileges)
        {
            return Ok(());
        }
        Err(errors::table_denied(command, &self.account.user, &self.process.host, table))
    }

    /// FOR UPDATE keeps others from changing rows: besides SELECT it takes one of UPDATE, DELETE and LOCK TABLES, or
    /// error 1142.
    pub(crate) fn require_row_locks(&self, database: &str, table: &str) -> Result<(), MysqlError> {
        let any = Privileges::UPDATE.with(Privileges::DELETE).with(Privileges::LOCK_TABLES);
        if self.account.global_on(database).intersects(any) || self.account.on_table(database, table).intersects(any) {
            return Ok(());
        }
        let command = "SELECT with locking clause";
        Err(errors::table_denied(command, &self.account.user, &self.process.host, table))
    }
}

/// Without a value it is text; text keeps a length that fits into a VARCHAR.
fn type_of_variable(variable: &UserVariable) -> DataType {
    match &variable.value {
        Value::Null => DataType::varchar(16_383, variable.collation),
        Value::Str(text) if text.len() <= 4 * 16_383 && text.chars().count() <= 16_383 => {
            DataType::varchar(16_383, variable.collation)
        }
        other => type_of(other, variable.collation),
    }
}
