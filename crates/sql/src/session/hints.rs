//! Optimizer hints of a whole statement: MAX_EXECUTION_TIME, SET_VAR, and the warnings of hints that are not followed.

use super::session::Session;
use super::variables::assign::{Before, convert};
use super::variables::store::find;
use super::variables::{Settings, Variable};
use crate::expr::context::WarningLevel;
use crate::logical::StatementHints;
use rauk_types::Value;

/// ER_UNRESOLVED_HINT_NAME.
const UNRESOLVED: u16 = 3128;
/// ER_NOT_HINT_UPDATABLE_VARIABLE.
const NOT_BY_HINT: u16 = 3637;

/// What MySQL lets a hint set, and what takes effect, if it has any, while a statement runs: it has been read and planned
/// when the hint is looked at. The binder has looked at optimizer_switch.
const BY_HINT: &[&str] = &[
    "bulk_insert_buffer_size",
    "cte_max_recursion_depth",
    "eq_range_index_dive_limit",
    "group_concat_max_len",
    "join_buffer_size",
    "lock_wait_timeout",
    "max_execution_time",
    "max_heap_table_size",
    "max_join_size",
    "max_length_for_sort_data",
    "max_seeks_for_key",
    "max_sort_length",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "optimizer_switch",
    "range_alloc_block_size",
    "range_optimizer_max_mem_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "sort_buffer_size",
    "tmp_table_size",
];

impl Session {
    /// Sets what hints set, and warns of those that cannot be followed; gives what the variables were before.
    pub(super) fn take_hints(&mut self, hints: &StatementHints) -> Vec<(usize, Value)> {
        self.warn_of_hints(hints);
        let mut before = Vec::new();
        let limit = hints.max_execution_time.map(|limit| ("max_execution_time", limit.to_string()));
        let variables = hints.variables.iter().map(|(name, value)| (name.as_str(), value.clone()));
        for (name, value) in limit.into_iter().chain(variables) {
            let Ok((variable, at)) = find(name) else {
                self.push_warning(
                    WarningLevel::Warning,
                    UNRESOLVED,
                    format!("Unresolved name '{name}' for SET_VAR hint"),
                );
                continue;
            };
            if !BY_HINT.iter().any(|known| known.eq_ignore_ascii_case(variable.name)) {
                let text = format!("Variable '{}' cannot be set using SET_VAR hint.", variable.name);
                self.push_warning(WarningLevel::Warning, NOT_BY_HINT, text);
                continue;
            }
            let mut warnings = Vec::new();
            let (now, default) = (self.variables.value(at), self.engine.variables.get(at));
            let merged = Before { now: &now, default: &default };
            match convert(variable, typed(variable, &value), merged, &mut warnings) {
                Ok(value) => {
                    before.push((at, self.variables.value(at)));
                    self.variables.set(at, value);
                }
                Err(error) => self.push_warning(WarningLevel::Warning, error.code, error.message),
            }
            for warning in warnings {
                self.push_warning(warning.level, warning.code, warning.message);
            }
        }
        if !before.is_empty() {
            self.settings = Settings::read(&self.variables);
            if before.iter().any(|(at, _)| find("max_execution_time").is_ok_and(|(_, of)| of == *at)) {
                // The limit of the session has begun with the text.
                self.context.budget.memory.set_deadline(None);
            }
        }
        before
    }

    pub(crate) fn warn_of_hints(&mut self, hints: &StatementHints) {
        for warning in &hints.warnings {
            self.push_warning(warning.level, warning.code, warning.message.clone());
        }
    }

    pub(super) fn give_back(&mut self, before: Vec<(usize, Value)>) {
        if before.is_empty() {
            return;
        }
        for (at, value) in before.into_iter().rev() {
            self.variables.set(at, value);
        }
        self.settings = Settings::read(&self.variables);
    }
}

/// The value that a text stands for.
fn typed(variable: &Variable, text: &str) -> Value {
    match variable.default_value() {
        Value::UInt(_) | Value::Int(_) => match (text.parse::<u64>(), text.parse::<i64>()) {
            (Ok(value), _) => Value::UInt(value),
            (_, Ok(value)) => Value::Int(value),
            _ => Value::Str(text.to_string()),
        },
        Value::Double(_) => text.parse().map_or_else(|_| Value::Str(text.to_string()), Value::Double),
        _ => Value::Str(text.to_string()),
    }
}
