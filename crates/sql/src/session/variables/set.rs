//! SET: system variables, user variables, NAMES, TRANSACTION, PASSWORD.
//!
//! All values are evaluated and checked before the first is assigned, so that a SET with a mistake changes nothing.

use super::assign;
use super::definition::{Variable, VariableScope};
use super::refused;
use super::settings::isolation;
use super::store;
use super::table::VARIABLES;
use crate::expr::context::WarningLevel;
use crate::parse::ast;
use crate::parse::statement::{IsolationLevel, Scope, SetItem};
use crate::session::session::Session;
use crate::session::transactions::NextTransaction;
use crate::session::users::Privileges;
use crate::session::{charset, errors};
use rauk_node::{Isolation, NodeError};
use rauk_types::error::codes;
use rauk_types::result::Completion;
use rauk_types::{Charset, Collation, MysqlError, Value, size};

/// ER_VAR_DOES_NOT_EXIST.
const NOT_PERSISTED: u16 = 3615;
/// WARN_OPTION_IGNORED.
const OPTION_IGNORED: u16 = 1618;
const GTID_PURGED: &str = "gtid_purged";

/// These belong to the whole cluster.
const PARTIAL_REVOKES_EXIST: u16 = 3896;
const REPLICAS: &str = "rauk_replicas";
const REPLACE_AFTER: &str = "rauk_replace_after";
const MEMORY_RETURN: &str = "rauk_memory_return_timeout";

const MANDATORY_ROLES: &str = "mandatory_roles";

/// A checked assignment.
enum Assignment {
    Session(usize, Value),
    Global(usize, Value),
    /// The text that is stored; `None`: forget it.
    Persist(usize, Option<Value>),
    User(String, Value, Collation),
    /// SET NAMES.
    Names(Collation),
    /// SET CHARACTER SET: of the client and of results; the connection's is the current database's.
    CharacterSet(Charset),
    NextTransaction {
        isolation: Option<Isolation>,
        read_only: Option<bool>,
    },
}

fn isolation_name(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::ReadUncommitted => "READ-UNCOMMITTED",
        IsolationLevel::ReadCommitted => "READ-COMMITTED",
        IsolationLevel::RepeatableRead => "REPEATABLE-READ",
        IsolationLevel::Serializable => "SERIALIZABLE",
    }
}

impl Session {
    pub(crate) async fn run_set(&mut self, items: &[SetItem]) -> Result<Completion, MysqlError> {
        let mut assignments = Vec::with_capacity(items.len());
        for item in items {
            self.check_item(item, &mut assignments).await?;
        }
        for assignment in assignments {
            self.assign(assignment).await?;
        }
        self.read_settings();
        Ok(Completion::default())
    }

    async fn check_item(&mut self, item: &SetItem, out: &mut Vec<Assignment>) -> Result<(), MysqlError> {
        match item {
            SetItem::Variable { scope, name, value } => self.check_variable(*scope, name, value.as_ref(), out).await,
            SetItem::UserVariable { name, value } => {
                let (value, ty) = self.value_with_queries(value).await?;
                out.push(Assignment::User(name.to_lowercase(), value, ty.collation));
                Ok(())
            }
            SetItem::Names { charset, collation } => {
                let set = self.client_charset(charset.as_deref())?;
                let collation = charset::resolve(Some(set.name()), collation.as_deref(), Collation::DEFAULT)?;
                out.push(Assignment::Names(collation));
                Ok(())
            }
            SetItem::CharacterSet(charset) => {
                out.push(Assignment::CharacterSet(self.client_charset(charset.as_deref())?));
                Ok(())
            }
            SetItem::Transaction { scope, isolation, read_only } => {
                self.check_transaction(*scope, *isolation, *read_only, out)
            }
        }
    }

    async fn check_variable(
        &mut self,
        scope: Scope,
        name: &str,
        value: Option<&ast::Expr>,
        out: &mut Vec<Assignment>,
    ) -> Result<(), MysqlError> {
        let (variable, at) = store::find(name)?;
        let shared = matches!(scope, Scope::Global | Scope::Persist);
        if !variable.dynamic {
            return Err(errors::read_only_variable(variable.name));
        }
        match (shared, variable.scope) {
            (true, VariableScope::Session) => {
                return Err(MysqlError::new(
                    codes::LOCAL_VARIABLE,
                    format!("Variable '{}' is a SESSION variable and can't be used with SET GLOBAL", variable.name),
                ));
            }
            (false, VariableScope::Global) => {
                return Err(MysqlError::new(
                    codes::GLOBAL_VARIABLE,
                    format!("Variable '{}' is a GLOBAL variable and should be set with SET GLOBAL", variable.name),
                ));
            }
            _ => {}
        }
        if shared {
            let needed = Privileges::SUPER.with(Privileges::SYSTEM_VARIABLES_ADMIN);
            self.require_any(needed, "SUPER or SYSTEM_VARIABLES_ADMIN")?;
        }
        let checked = match value {
            None if shared => self.engine.variables.default_of(at),
            // A session's DEFAULT is the global value; for what has none, the compiled-in one.
            None if variable.has_global() => self.engine.variables.get(at),
            None => variable.default_value(),
            Some(expression) => self.variable_value(variable, at, shared, expression).await?,
        };
        refused::check(variable, &checked, &self.engine.variables.default_of(at))?;
        if variable.name == GTID_PURGED {
            // Dumps of servers with a binary log tell where they end. Nothing here goes on from there.
            if scope == Scope::Persist {
                return Err(errors::read_only_variable(variable.name));
            }
            let message = "<GTID_PURGED> option ignored".to_string();
            self.push_warning(WarningLevel::Warning, OPTION_IGNORED, message);
            return Ok(());
        }
        if shared {
            self.may_be_read_only(variable, &checked)?;
            self.may_be_mandatory(variable, &checked)?;
            self.may_end_restrictions(variable, &checked)?;
            self.judge_memory_limit(variable, &checked)?;
            if scope == Scope::Persist && [REPLICAS, REPLACE_AFTER, MEMORY_RETURN].contains(&variable.name) {
                let text = format!("{} is kept by the cluster in any case; use SET GLOBAL", variable.name);
                return Err(MysqlError::new(codes::WRONG_VALUE_FOR_VAR, text));
            }
            if scope == Scope::Persist {
                out.push(Assignment::Persist(at, value.is_some().then(|| checked.clone())));
            }
            out.push(Assignment::Global(at, checked));
        } else {
            if variable.name == "max_allowed_packet" || variable.name == "net_buffer_length" {
                return Err(MysqlError::new(
                    1621,
                    format!("SESSION variable '{}' is read-only. Use SET GLOBAL to assign the value", variable.name),
                ));
            }
            // `SET @@transaction_isolation` is for the next transaction, as SET TRANSACTION is.
            let next = match (scope, variable.name, &checked) {
                (Scope::Default, "transaction_isolation" | "tx_isolation", Value::Str(level)) => {
                    Some(NextTransaction { isolation: Some(isolation(level)), read_only: None })
                }
                (Scope::Default, "transaction_read_only" | "tx_read_only", value) => {
                    let read_only = value.as_ref().as_integer() == Some(1);
                    Some(NextTransaction { isolation: None, read_only: Some(read_only) })
                }
                _ => None,
            };
            out.push(match next {
                Some(NextTransaction { isolation, read_only }) => {
                    self.may_change_next()?;
                    Assignment::NextTransaction { isolation, read_only }
                }
                None => Assignment::Session(at, checked),
            });
        }
        Ok(())
    }

    /// partial_revokes stays on while an account has a restriction (3896).
    fn may_end_restrictions(&self, variable: &Variable, value: &Value) -> Result<(), MysqlError> {
        let ends = variable.name == "partial_revokes" && *value != Value::Int(1);
        if !ends || self.engine.users.all().iter().all(|account| account.restrictions.is_empty()) {
            return Ok(());
        }
        let message = "At least one partial revoke exists on a database. The system variable '@@partial_revokes' must be set to ON.";
        Err(MysqlError::new(PARTIAL_REVOKES_EXIST, message))
    }

    /// mandatory_roles is a list of roles (1231), and takes the privilege to grant them (1227).
    fn may_be_mandatory(&self, variable: &Variable, value: &Value) -> Result<(), MysqlError> {
        let (MANDATORY_ROLES, Value::Str(text)) = (variable.name, value) else { return Ok(()) };
        self.require_any(Privileges::SUPER.with(Privileges::ROLE_ADMIN), "SUPER or ROLE_ADMIN")?;
        crate::parse::role_list(text).map(drop).map_err(|_| errors::wrong_value(variable.name, text))
    }

    /// Error 1231 for a memory limit above the machine's memory. One below what is stored is allowed, since deletes go on
    /// and replicas move away, and leaves a warning.
    fn judge_memory_limit(&mut self, variable: &Variable, value: &Value) -> Result<(), MysqlError> {
        let database = &self.engine.database;
        refused::check_memory(variable, value, database.memory_available())?;
        let used = database.memory_used();
        if let (refused::MEMORY_LIMIT, Value::UInt(bytes)) = (variable.name, value)
            && *bytes < used
        {
            let text = format!(
                "{} of rows and indexes are stored here, and the memory limit is {} now: writes are refused until rows \
                 are deleted or the limit is at least {}",
                size::show(used),
                size::show(*bytes),
                size::show_enough(used + used / 10)
            );
            self.push_warning(WarningLevel::Warning, codes::UNKNOWN_ERROR, text);
        }
        Ok(())
    }

    /// Error 1192 for who makes the server read only within a transaction of its own.
    fn may_be_read_only(&self, variable: &Variable, value: &Value) -> Result<(), MysqlError> {
        let on = matches!(variable.name, "read_only" | "super_read_only") && *value == Value::Int(1);
        if on && self.open.as_ref().is_some_and(|open| open.transaction.has_writes()) {
            let text = "Can't execute the given command because you have active locked tables or an active transaction";
            return Err(MysqlError::new(codes::LOCK_OR_ACTIVE_TRANSACTION, text));
        }
        Ok(())
    }

    /// A bare word is a word (`SET autocommit = ON`); all else is an expression.
    async fn variable_value(
        &mut self,
        variable: &Variable,
        at: usize,
        shared: bool,
        expression: &ast::Expr,
    ) -> Result<Value, MysqlError> {
        let given = match expression {
            ast::Expr::Column(word) if word.table.is_none() => Value::Str(word.name.clone()),
            _ => match self.value_with_queries(expression).await?.0 {
                Value::Bytes(bytes) => Value::Str(String::from_utf8_lossy(&bytes).into_owned()),
                other => other,
            },
        };
        let mut warnings = Vec::new();
        let global = self.engine.variables.get(at);
        let (now, default) = match shared {
            true => (global, self.engine.variables.default_of(at)),
            false => (self.variables.value(at), global),
        };
        let before = assign::Before { now: &now, default: &default };
        let value = assign::convert(variable, given, before, &mut warnings)?;
        for warning in warnings {
            self.push_warning(warning.level, warning.code, warning.message);
        }
        Ok(value)
    }

    fn check_transaction(
        &mut self,
        scope: Scope,
        isolation: Option<IsolationLevel>,
        read_only: Option<bool>,
        out: &mut Vec<Assignment>,
    ) -> Result<(), MysqlError> {
        if scope == Scope::Default {
            self.may_change_next()?;
            let isolation = isolation.map(|level| match level {
                IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
                IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
                IsolationLevel::Serializable => Isolation::Serializable,
            });
            out.push(Assignment::NextTransaction { isolation, read_only });
            return Ok(());
        }
        let values = [
            isolation.map(|level| ("transaction_isolation", Value::from(isolation_name(level)))),
            read_only.map(|on| ("transaction_read_only", Value::Int(i64::from(on)))),
        ];
        for (name, value) in values.into_iter().flatten() {
            let (_, at) = store::find(name)?;
            if scope == Scope::Session {
                out.push(Assignment::Session(at, value));
            } else {
                let needed = Privileges::SUPER.with(Privileges::SYSTEM_VARIABLES_ADMIN);
                self.require_any(needed, "SUPER or SYSTEM_VARIABLES_ADMIN")?;
                out.push(Assignment::Global(at, value));
            }
        }
        Ok(())
    }

    /// Error 1568 while a transaction is open.
    fn may_change_next(&self) -> Result<(), MysqlError> {
        if self.open.is_none() {
            return Ok(());
        }
        Err(MysqlError::new(
            codes::CANT_CHANGE_TX_CHARACTERISTICS,
            "Transaction characteristics can't be changed while a transaction is in progress",
        ))
    }

    async fn assign(&mut self, assignment: Assignment) -> Result<(), MysqlError> {
        match assignment {
            Assignment::User(name, value, collation) => {
                self.track_state();
                self.context.set_user_variable(name, value, collation)?;
            }
            Assignment::Global(at, Value::UInt(replicas)) if VARIABLES[at].name == REPLICAS => {
                self.set_replicas(replicas).await?;
            }
            Assignment::Global(at, Value::UInt(seconds)) if VARIABLES[at].name == REPLACE_AFTER => {
                let set = self.engine.database.set_replace_after(seconds).await;
                set.map_err(|error| out_of_range(REPLACE_AFTER, seconds, error))?;
            }
            Assignment::Global(at, Value::UInt(seconds)) if VARIABLES[at].name == MEMORY_RETURN => {
                let set = self.engine.database.set_memory_return(seconds).await;
                set.map_err(|error| out_of_range(MEMORY_RETURN, seconds, error))?;
            }
            Assignment::Global(at, value) => {
                if let ("rauk_plan_cache_size", Value::UInt(plans)) = (VARIABLES[at].name, &value) {
                    self.engine.plans.set_capacity(*plans as usize);
                }
                self.engine.variables.set(at, value);
            }
            Assignment::Persist(at, value) => self.engine.persist(VARIABLES[at].name, value.as_ref()).await?,
            Assignment::Names(collation) => {
                self.set_names(collation);
                self.track_character_sets()?;
            }
            Assignment::CharacterSet(set) => {
                for name in ["character_set_client", "character_set_results"] {
                    self.set_variable(name, Value::from(set.name()));
                }
                let names = ["character_set", "collation"];
                for (connection, database) in
                    names.map(|name| (format!("{name}_connection"), format!("{name}_database")))
                {
                    let value = self.variables.by_name(&database);
                    self.set_variable(&connection, value);
                }
                self.track_character_sets()?;
            }
            Assignment::NextTransaction { isolation, read_only } => {
                self.next.isolation = isolation.or(self.next.isolation);
                self.next.read_only = read_only.or(self.next.read_only);
            }
            Assignment::Session(at, value) => self.assign_session(at, value).await?,
        }
        Ok(())
    }

    /// RESET PERSIST: what is kept is forgotten, the present value stays. Error 3615 for a variable that nothing is kept of.
    pub(crate) async fn reset_persist(&mut self, variable: Option<&str>, if_exists: bool) -> Result<(), MysqlError> {
        let needed = Privileges::SUPER.with(Privileges::SYSTEM_VARIABLES_ADMIN);
        self.require_any(needed, "SUPER or SYSTEM_VARIABLES_ADMIN")?;
        let mut kept = self.engine.persisted();
        if let Some(variable) = variable {
            kept.retain(|(name, _)| name.eq_ignore_ascii_case(variable));
            if kept.is_empty() {
                let message = format!("Variable {variable} does not exist in persisted config file");
                if !if_exists {
                    return Err(MysqlError::new(NOT_PERSISTED, message));
                }
                self.push_warning(WarningLevel::Warning, NOT_PERSISTED, message);
            }
        }
        for (name, _) in kept {
            self.engine.persist(&name, None).await?;
        }
        Ok(())
    }

    /// Changes how many replicas the whole cluster keeps of each partition.
    async fn set_replicas(&mut self, replicas: u64) -> Result<(), MysqlError> {
        let set = self.engine.database.set_replicas(replicas).await;
        set.map_err(|error| out_of_range(REPLICAS, replicas, error))?;
        let nodes = self.engine.database.data_nodes() as u64;
        if nodes < replicas {
            let text = format!("{replicas} replicas are wanted, and there are {nodes} data nodes to hold them");
            self.push_warning(WarningLevel::Warning, codes::UNKNOWN_ERROR, text);
        }
        Ok(())
    }

    /// Some variables bring others with them.
    async fn assign_session(&mut self, at: usize, value: Value) -> Result<(), MysqlError> {
        match (VARIABLES[at].name, &value) {
            ("autocommit", Value::Int(1)) if !self.settings.autocommit => {
                // What autocommit=0 held open is committed.
                self.commit_open().await?;
                self.settings.autocommit = true;
            }
            ("autocommit", Value::Int(0)) => self.settings.autocommit = false,
            ("last_insert_id" | "identity", Value::UInt(id)) => self.context.last_insert_id = *id,
            // As MySQL has it: who sets a limit wants it followed.
            ("max_join_size", Value::UInt(rows)) => {
                let big = Value::Int(i64::from(*rows == u64::MAX));
                self.set_variable("sql_big_selects", big);
            }
            ("insert_id", Value::UInt(id)) => self.context.insert_id = Some(*id).filter(|id| *id > 0),
            ("rand_seed1" | "rand_seed2", Value::UInt(seed)) => {
                self.context.random_state = self.context.random_state.rotate_left(32) ^ *seed;
            }
            ("character_set_connection", Value::Str(name)) => {
                let collation = Collation::of_charset(charset::charset(name)?);
                self.set_variable("collation_connection", Value::from(collation.name()));
            }
            ("collation_connection", Value::Str(name)) => {
                let charset = charset::collation(name)?.charset_name();
                self.set_variable("character_set_connection", Value::from(charset));
            }
            ("collation_server", Value::Str(name)) => {
                let charset = charset::collation(name)?.charset_name();
                self.set_variable("character_set_server", Value::from(charset));
            }
            ("character_set_server", Value::Str(name)) => {
                let collation = Collation::of_charset(charset::charset(name)?);
                self.set_variable("collation_server", Value::from(collation.name()));
            }
            // The session's characteristic is that of the next transaction too, whatever SET TRANSACTION said before.
            ("transaction_isolation" | "tx_isolation", _) => self.next.isolation = None,
            ("transaction_read_only" | "tx_read_only", _) => self.next.read_only = None,
            _ => {}
        }
        if let ("session_track_system_variables", Value::Str(names)) = (VARIABLES[at].name, &value) {
            self.warn_of_untracked(names);
        }
        self.variables.set(at, value);
        self.track_variable(at);
        Ok(())
    }

    /// SET NAMES.
    pub(crate) fn set_names(&mut self, collation: Collation) {
        for name in ["character_set_client", "character_set_connection", "character_set_results"] {
            self.set_variable(name, Value::from(collation.charset_name()));
        }
        self.set_variable("collation_connection", Value::from(collation.name()));
    }

    /// The set that a client may write statements in; without a name the server's default. Errors: 1115, 1231.
    fn client_charset(&self, name: Option<&str>) -> Result<Charset, MysqlError> {
        let default;
        let name = match name {
            Some(name) => name,
            None => {
                default = self.engine.variables.text("character_set_client");
                &default
            }
        };
        assign::client_charset(charset::charset(name)?)
    }

    fn track_character_sets(&mut self) -> Result<(), MysqlError> {
        for name in ["character_set_client", "character_set_results", "character_set_connection"] {
            self.track_variable(store::find(name)?.1);
        }
        Ok(())
    }
}

/// What the cluster says of a setting of its own, as MySQL does of a variable.
fn out_of_range(name: &str, value: u64, error: NodeError) -> MysqlError {
    match error {
        NodeError::Refused(why) => {
            let MysqlError { code, message, .. } = errors::wrong_value(name, &value.to_string());
            MysqlError::new(code, format!("{message}: {}", why.message))
        }
        other => other.into(),
    }
}
