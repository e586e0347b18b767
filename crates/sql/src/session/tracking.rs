//! Session tracking (CLIENT_SESSION_TRACK): what has changed in the session, for proxies and pools that would move it
//! elsewhere.
//!
//! Changes are noted while a statement runs and reported with the next OK, in the order of MySQL's trackers: variables
//! (`session_track_system_variables`; those that SET names, also where the value is the old one), the schema
//! (`session_track_schema`), that something has changed (`session_track_state_change`: schema, variables, user
//! variables, temporary tables, prepared statements), and the transaction (`session_track_transaction_info`): its state
//! in eight places, and the statements that would begin it again. There are no GTIDs.

use super::session::Session;
use super::transactions::NextTransaction;
use super::variables::store;
use super::variables::table::VARIABLES;
use rauk_node::Isolation;
use rauk_types::Value;
use rauk_types::result::SessionChange;

/// What is to be reported.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    /// Positions of variables that were assigned, each once.
    variables: Vec<usize>,
    schema: bool,
    state: bool,
    /// As they were last reported; empty: no transaction.
    transaction: String,
    characteristics: String,
}

/// `session_track_transaction_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionInfo {
    Off,
    State,
    Characteristics,
}

impl TransactionInfo {
    pub fn of(name: &str) -> TransactionInfo {
        match name {
            "STATE" => TransactionInfo::State,
            "CHARACTERISTICS" => TransactionInfo::Characteristics,
            _ => TransactionInfo::Off,
        }
    }
}

/// What is told of an open transaction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tracked {
    /// It was begun by a statement of its own.
    pub explicit: bool,
    pub consistent_snapshot: bool,
    /// Characteristics that are not the session's.
    pub given: NextTransaction,
    pub read: bool,
    pub wrote: bool,
    /// A result set was sent.
    pub sent: bool,
}

/// No transaction.
const IDLE: &str = "________";

impl Tracked {
    fn state(self) -> String {
        let place = |on: bool, letter: char| if on { letter } else { '_' };
        let begun = if self.explicit { 'T' } else { 'I' };
        [begun, '_', place(self.read, 'R'), '_', place(self.wrote, 'W'), '_', place(self.sent, 'S'), '_']
            .into_iter()
            .collect()
    }
}

fn level(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}

/// The statements that begin a transaction like the one that is open (`tracked`), or that comes next.
fn characteristics(tracked: Option<Tracked>, next: NextTransaction) -> String {
    let given = tracked.map_or(next, |tracked| tracked.given);
    let access = given.read_only.map(|on| if on { " READ ONLY" } else { " READ WRITE" });
    let mut text = String::new();
    if let Some(isolation) = given.isolation {
        text.push_str(&format!("SET TRANSACTION ISOLATION LEVEL {}; ", level(isolation)));
    }
    match tracked.filter(|tracked| tracked.explicit) {
        Some(tracked) => {
            text.push_str("START TRANSACTION");
            if tracked.consistent_snapshot {
                text.push_str(" WITH CONSISTENT SNAPSHOT");
            }
            if let Some(access) = access {
                text.push_str(if tracked.consistent_snapshot { "," } else { "" });
                text.push_str(access);
            }
            text.push(';');
        }
        None => {
            if let Some(access) = access {
                text.push_str(&format!("SET TRANSACTION{access};"));
            }
        }
    }
    text.truncate(text.trim_end().len());
    text
}

impl Session {
    /// SET has assigned a session variable.
    pub(crate) fn track_variable(&mut self, at: usize) {
        self.tracker.state = true;
        if !self.tracker.variables.contains(&at) {
            self.tracker.variables.push(at);
        }
    }

    pub(crate) fn track_schema(&mut self) {
        self.tracker.schema = true;
        self.tracker.state = true;
    }

    /// User variables, temporary tables, prepared statements.
    pub(crate) fn track_state(&mut self) {
        self.tracker.state = true;
    }

    /// What has happened before somebody listens.
    pub(crate) fn forget_changes(&mut self) {
        self.tracker = Tracker::default();
    }

    /// What has changed since this was asked last.
    pub fn take_changes(&mut self) -> Vec<SessionChange> {
        let mut changes = Vec::new();
        let info = self.settings.track_transaction;
        if !self.tracker.state && info == TransactionInfo::Off {
            return changes;
        }
        let variables = std::mem::take(&mut self.tracker.variables);
        if !variables.is_empty() {
            let wanted = match self.variables.by_name("session_track_system_variables") {
                Value::Str(names) => names,
                _ => String::new(),
            };
            let is_wanted = |name: &str| {
                let mut names = wanted.split(',').map(str::trim);
                names.any(|wanted| wanted == "*" || wanted.eq_ignore_ascii_case(name))
            };
            for at in variables.into_iter().filter(|at| is_wanted(VARIABLES[*at].name)) {
                let variable = &VARIABLES[at];
                let value = variable.show(&self.variables.by_name(variable.name));
                changes.push(SessionChange::Variable { name: variable.name.to_string(), value });
            }
        }
        let is_on = |name: &str| self.variables.by_name(name) == Value::Int(1);
        if std::mem::take(&mut self.tracker.schema) && is_on("session_track_schema") {
            changes.push(SessionChange::Schema(self.context.current_database.clone().unwrap_or_default()));
        }
        if std::mem::take(&mut self.tracker.state) && is_on("session_track_state_change") {
            changes.push(SessionChange::State);
        }
        if info == TransactionInfo::Off {
            return changes;
        }
        let tracked = self.open.as_ref().map(|open| open.tracked);
        let state = tracked.map_or_else(|| IDLE.to_string(), Tracked::state);
        let known = if self.tracker.transaction.is_empty() { IDLE } else { &self.tracker.transaction };
        if state != known {
            self.tracker.transaction.clone_from(&state);
            changes.push(SessionChange::TransactionState(state));
        }
        if info == TransactionInfo::Characteristics {
            let text = characteristics(tracked, self.next);
            if text != self.tracker.characteristics {
                self.tracker.characteristics.clone_from(&text);
                changes.push(SessionChange::TransactionCharacteristics(text));
            }
        }
        changes
    }

    /// Names of `session_track_system_variables` that are no variables' are ignored, with a warning.
    pub(crate) fn warn_of_untracked(&mut self, names: &str) {
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "*") {
            if store::find(name).is_err() {
                let text = format!("{name} is not a valid system variable and will be ignored.");
                self.push_warning(crate::expr::context::WarningLevel::Warning, 1231, text);
            }
        }
    }
}
