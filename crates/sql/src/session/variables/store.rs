//! Values of system variables: the global ones, and each session's own.
//!
//! The global values are one immutable vector behind an `Arc`; SET GLOBAL replaces the vector. A session keeps the `Arc` that was current when it
//! connected (as MySQL copies global values into a new session) and a map of what it changed.
//!
//! Some variables are answered from live state instead: `timestamp`, `last_insert_id`, `warning_count`, the memory limit.

use super::definition::{Variable, VariableScope};
use super::table::{VARIABLES, position};
use crate::expr::context::SystemVariables;
use crate::parse::statement::Scope;
use crate::session::errors;
use crate::session::read_only::ReadOnly;
use parking_lot::{Mutex, RwLock};
use rauk_node::Database;
use rauk_types::{MysqlError, Value};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};

/// Old names of variables that share one value with the new name.
fn storage(position: usize) -> usize {
    let name = match VARIABLES[position].name {
        "tx_isolation" => "transaction_isolation",
        "tx_read_only" => "transaction_read_only",
        "identity" => "last_insert_id",
        _ => return position,
    };
    super::table::position(name).expect("an alias stands for a variable")
}

/// The variable of that name, and where its value is kept. Error 1193.
pub fn find(name: &str) -> Result<(&'static Variable, usize), MysqlError> {
    let at = position(name).ok_or_else(|| errors::unknown_variable(name))?;
    Ok((&VARIABLES[at], storage(at)))
}

/// The values that new sessions begin with, and those of variables that are global only.
pub struct GlobalVariables {
    values: RwLock<Arc<Vec<Value>>>,
    /// What DEFAULT means: compiled-in values with what the command line changed.
    defaults: Vec<Value>,
    database: Database,
    watchers: RwLock<Vec<(usize, Watcher)>>,
    /// read_only and super_read_only: looked at by every change.
    read_only: AtomicU8,
}

/// Whoever a variable is for, outside of SQL.
type Watcher = Box<dyn Fn(&Value) + Send + Sync>;

impl GlobalVariables {
    /// `started` are values known when the server starts (port, data directory, …); unknown names are our own mistake.
    pub fn new(database: Database, started: &[(&str, Value)]) -> Self {
        let mut defaults: Vec<Value> = VARIABLES.iter().map(Variable::default_value).collect();
        for (name, value) in started {
            let (_, at) = find(name).expect("a variable that the server sets exists");
            defaults[at] = value.clone();
        }
        GlobalVariables {
            values: RwLock::new(Arc::new(defaults.clone())),
            defaults,
            database,
            watchers: RwLock::default(),
            read_only: AtomicU8::new(ReadOnly::Off as u8),
        }
    }

    /// All values, by position in [`VARIABLES`].
    pub fn snapshot(&self) -> Arc<Vec<Value>> {
        self.values.read().clone()
    }

    pub fn get(&self, at: usize) -> Value {
        match VARIABLES[at].name {
            "rauk_memory_limit" => Value::UInt(self.database.memory_limit()),
            // The cluster's: any node may have changed it.
            "rauk_replicas" => Value::UInt(self.database.replicas().into()),
            "rauk_replace_after" => Value::UInt(self.database.replace_after().as_secs()),
            "rauk_memory_return_timeout" => Value::UInt(self.database.memory_return().as_secs()),
            _ => self.values.read()[at].clone(),
        }
    }

    pub fn default_of(&self, at: usize) -> Value {
        self.defaults[at].clone()
    }

    /// The value is checked already.
    pub fn set(&self, at: usize, value: Value) {
        if let ("rauk_memory_limit", Value::UInt(bytes)) = (VARIABLES[at].name, &value) {
            self.database.set_memory_limit(*bytes);
        }
        let now = {
            let mut values = self.values.write();
            let mut changed = (**values).clone();
            changed[at] = value;
            self.settle_read_only(at, &mut changed);
            *values = Arc::new(changed);
            values.clone()
        };
        self.watchers.read().iter().filter(|(watched, _)| *watched == at).for_each(|(_, watcher)| watcher(&now[at]));
    }

    /// super_read_only brings read_only with it, and goes with it.
    fn settle_read_only(&self, at: usize, values: &mut [Value]) {
        let place = |name: &str| position(name).expect("it is a variable");
        let (plain, full) = (place("read_only"), place("super_read_only"));
        match (at == plain, at == full) {
            (true, _) if values[plain] == Value::Int(0) => values[full] = Value::Int(0),
            (_, true) if values[full] == Value::Int(1) => values[plain] = Value::Int(1),
            (false, false) => return,
            _ => {}
        }
        let now = match (&values[plain], &values[full]) {
            (_, Value::Int(1)) => ReadOnly::Super,
            (Value::Int(1), _) => ReadOnly::On,
            _ => ReadOnly::Off,
        };
        self.read_only.store(now as u8, Relaxed);
    }

    pub fn read_only(&self) -> ReadOnly {
        ReadOnly::of(self.read_only.load(Relaxed))
    }

    /// Calls `watcher` with the value as it is, and whenever it is set.
    pub fn watch(&self, name: &str, watcher: impl Fn(&Value) + Send + Sync + 'static) {
        let (_, at) = find(name).expect("a variable that the server watches exists");
        watcher(&self.get(at));
        self.watchers.write().push((at, Box::new(watcher)));
    }

    /// Sets a variable that the server knows by name; the value is of its kind.
    pub fn set_by_name(&self, name: &str, value: Value) {
        let (_, at) = find(name).expect("a variable that the server sets exists");
        self.set(at, value);
    }

    pub fn text(&self, name: &str) -> String {
        let (_, at) = find(name).expect("a variable that the server reads exists");
        match self.get(at) {
            Value::Str(text) => text,
            other => unreachable!("{name} is {other:?}"),
        }
    }

    pub fn is_on(&self, name: &str) -> bool {
        let (_, at) = find(name).expect("a variable that the server reads exists");
        self.get(at) == Value::Int(1)
    }

    pub fn unsigned(&self, name: &str) -> u64 {
        let (_, at) = find(name).expect("a variable that the server reads exists");
        match self.get(at) {
            Value::UInt(value) => value,
            other => unreachable!("{name} is {other:?}"),
        }
    }
}

#[derive(Default)]
struct Own {
    base: Arc<Vec<Value>>,
    changed: FxHashMap<usize, Value>,
}

/// What `@@name` means in one session.
pub struct SessionVariables {
    pub globals: Arc<GlobalVariables>,
    own: Mutex<Own>,
    /// In the cluster.
    pub connection_id: u64,
    pub last_insert_id: AtomicU64,
    /// SET INSERT_ID: the next AUTO_INCREMENT value to use; 0 is none.
    pub insert_id: AtomicU64,
    pub warning_count: AtomicU64,
    pub error_count: AtomicU64,
    /// SET TIMESTAMP, in microseconds; 0 is the clock.
    pub fixed_timestamp: AtomicI64,
    /// Start of the running statement, in microseconds.
    pub statement_micros: AtomicI64,
}

impl SessionVariables {
    pub fn new(globals: Arc<GlobalVariables>, connection_id: u64) -> Self {
        let base = globals.snapshot();
        SessionVariables {
            globals,
            own: Mutex::new(Own { base, changed: FxHashMap::default() }),
            connection_id,
            last_insert_id: AtomicU64::new(0),
            insert_id: AtomicU64::new(0),
            warning_count: AtomicU64::new(0),
            error_count: AtomicU64::new(0),
            fixed_timestamp: AtomicI64::new(0),
            statement_micros: AtomicI64::new(0),
        }
    }

    /// As when the session began, with the global values of now.
    pub fn reset(&self) {
        *self.own.lock() = Own { base: self.globals.snapshot(), changed: FxHashMap::default() };
        self.last_insert_id.store(0, Relaxed);
        self.insert_id.store(0, Relaxed);
        self.fixed_timestamp.store(0, Relaxed);
    }

    /// The session's value of a variable that has one, else the global one.
    pub fn value(&self, at: usize) -> Value {
        let variable = &VARIABLES[at];
        if !variable.has_session() {
            return self.globals.get(at);
        }
        match variable.name {
            "last_insert_id" => return Value::UInt(self.last_insert_id.load(Relaxed)),
            "insert_id" => return Value::UInt(self.insert_id.load(Relaxed)),
            "warning_count" => return Value::UInt(self.warning_count.load(Relaxed)),
            "error_count" => return Value::UInt(self.error_count.load(Relaxed)),
            "pseudo_thread_id" => return Value::UInt(self.connection_id),
            "timestamp" => {
                let fixed = self.fixed_timestamp.load(Relaxed);
                let micros = if fixed != 0 { fixed } else { self.statement_micros.load(Relaxed) };
                return Value::Double(micros as f64 / 1e6);
            }
            _ => {}
        }
        let own = self.own.lock();
        own.changed.get(&at).unwrap_or_else(|| &own.base[at]).clone()
    }

    pub fn by_name(&self, name: &str) -> Value {
        let (_, at) = find(name).expect("a variable that the server reads exists");
        self.value(at)
    }

    /// The value is checked already.
    pub fn set(&self, at: usize, value: Value) {
        match (VARIABLES[at].name, &value) {
            ("last_insert_id", Value::UInt(v)) => self.last_insert_id.store(*v, Relaxed),
            ("insert_id", Value::UInt(v)) => self.insert_id.store(*v, Relaxed),
            ("timestamp", Value::Double(v)) => self.fixed_timestamp.store((*v * 1e6) as i64, Relaxed),
            _ => {
                self.own.lock().changed.insert(at, value);
            }
        }
    }

    /// Names and shown values in the order of SHOW VARIABLES.
    pub fn list(&self, global: bool) -> Vec<(&'static str, String)> {
        let mut rows = Vec::with_capacity(VARIABLES.len());
        for (at, variable) in VARIABLES.iter().enumerate() {
            if global && !variable.has_global() {
                continue;
            }
            let at = storage(at);
            let value = if global { self.globals.get(at) } else { self.value(at) };
            rows.push((variable.name, variable.show(&value)));
        }
        rows
    }
}

impl SystemVariables for SessionVariables {
    fn get(&self, scope: Scope, name: &str) -> Result<Value, MysqlError> {
        let (variable, at) = find(name)?;
        match (scope, variable.scope) {
            (Scope::Session, VariableScope::Global) => Err(errors::incorrect_scope(variable.name, "GLOBAL")),
            (Scope::Global | Scope::Persist, VariableScope::Session) => {
                Err(errors::incorrect_scope(variable.name, "SESSION"))
            }
            (Scope::Global | Scope::Persist, _) => Ok(self.globals.get(at)),
            _ => Ok(self.value(at)),
        }
    }
}
