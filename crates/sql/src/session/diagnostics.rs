//! GET DIAGNOSTICS, SIGNAL and RESIGNAL.
//!
//! The diagnostics area is the list of warnings that SHOW WARNINGS shows: GET DIAGNOSTICS reads it and leaves it, and
//! the error of a condition that is not there joins it. There are no handlers outside of routines, so STACKED and
//! RESIGNAL are errors 1887 and 1645.

use super::session::Session;
use crate::expr::context::{Warning, WarningLevel};
use crate::parse::ast::Expr;
use crate::parse::diagnostics::{ConditionItem, Diagnostics, GetDiagnostics, Signal, StatementItem};
use rauk_types::{MysqlError, Value};

/// The condition that SIGNAL has raised, which is the first in the list: what the list does not say.
#[derive(Clone, Debug)]
pub(crate) struct Signalled {
    state: [u8; 5],
    items: Vec<(ConditionItem, String)>,
}

/// ER_DA_INVALID_CONDITION_NUMBER.
const NO_CONDITION: u16 = 1758;
/// Characters of MESSAGE_TEXT, and of the others.
const MESSAGE_CHARS: usize = 128;
const NAME_CHARS: usize = 64;

impl Session {
    pub(crate) fn get_diagnostics(&mut self, of: &GetDiagnostics) -> Result<(), MysqlError> {
        if of.stacked {
            return Err(MysqlError::new(1887, "GET STACKED DIAGNOSTICS when handler not active"));
        }
        match &of.what {
            Diagnostics::Statement(items) => {
                let (number, rows) = (self.context.warnings.len() as i64, self.context.row_count);
                for (name, item) in items {
                    let value = match item {
                        StatementItem::Number => number,
                        StatementItem::RowCount => rows,
                    };
                    self.set_diagnosed(name, Value::Int(value))?;
                }
            }
            Diagnostics::Condition { number, items } => {
                let number = self.evaluate(number)?.0.as_ref().as_integer().unwrap_or(0);
                let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                let Some(condition) = at.and_then(|at| self.context.warnings.get(at)).cloned() else {
                    // It joins the list, and the statement is well: as in MySQL.
                    self.push_warning(WarningLevel::Error, NO_CONDITION, "Invalid condition number".to_string());
                    self.errors += 1;
                    return Ok(());
                };
                let signalled = self.signalled.clone().filter(|_| at == Some(0));
                for (name, item) in items {
                    self.set_diagnosed(name, item_of(&condition, signalled.as_deref(), *item))?;
                }
            }
        }
        Ok(())
    }

    fn set_diagnosed(&mut self, name: &str, value: Value) -> Result<(), MysqlError> {
        let collation = self.settings.collation;
        self.context.set_user_variable(name.to_lowercase(), value, collation)
    }

    /// Raises a condition: an error, or a warning where its class is that of warnings.
    pub(crate) fn signal(&mut self, signal: &Signal) -> Result<(), MysqlError> {
        let Some(state) = signal.state.filter(|_| !signal.again) else {
            return Err(MysqlError::new(1645, "RESIGNAL when handler not active"));
        };
        let (mut code, message) = match &state[..2] {
            b"01" => (1642, "Unhandled user-defined warning condition"),
            b"02" => (1643, "Unhandled user-defined not found condition"),
            _ => (1644, "Unhandled user-defined exception condition"),
        };
        let mut message = message.to_string();
        let mut items = Vec::new();
        for (item, value) in &signal.items {
            match item {
                ConditionItem::MysqlErrno => code = self.errno(value)?,
                ConditionItem::MessageText => message = self.item_text(*item, value, MESSAGE_CHARS)?,
                item => items.push((*item, self.item_text(*item, value, NAME_CHARS)?)),
            }
        }
        self.clear_warnings();
        self.signalled = Some(Box::new(Signalled { state, items }));
        if &state[..2] == b"01" {
            self.push_warning(WarningLevel::Warning, code, message);
            return Ok(());
        }
        Err(MysqlError { code, state, message })
    }

    fn errno(&mut self, value: &Expr) -> Result<u16, MysqlError> {
        let (value, _) = self.evaluate(value)?;
        let number = value.as_ref().as_integer().and_then(|number| u16::try_from(number).ok());
        number.filter(|number| *number > 0).ok_or_else(|| not_an_item(ConditionItem::MysqlErrno, &value))
    }

    /// Errors 1231 for NULL, 1648 for what is too long; without strict mode that is cut, with warning 1647.
    fn item_text(&mut self, item: ConditionItem, value: &Expr, most: usize) -> Result<String, MysqlError> {
        let (value, ty) = self.evaluate(value)?;
        if value.is_null() {
            return Err(not_an_item(item, &value));
        }
        let mut text = Vec::new();
        rauk_types::format::append_text(value.as_ref(), &ty, &mut text);
        let mut text = String::from_utf8_lossy(&text).into_owned();
        if let Some((end, _)) = text.char_indices().nth(most) {
            if self.settings.sql_mode.strict {
                return Err(MysqlError::new(1648, format!("Data too long for condition item '{}'", item.name())));
            }
            text.truncate(end);
        }
        Ok(text)
    }
}

fn not_an_item(item: ConditionItem, value: &Value) -> MysqlError {
    let shown = match value {
        Value::Null => "NULL".to_string(),
        Value::Str(text) => text.clone(),
        other => other.as_ref().as_integer().map_or_else(String::new, |number| number.to_string()),
    };
    MysqlError::new(1231, format!("Variable '{}' can't be set to the value of '{shown}'", item.name()))
}

fn item_of(condition: &Warning, signalled: Option<&Signalled>, item: ConditionItem) -> Value {
    let state = signalled.map_or_else(|| MysqlError::new(condition.code, "").state, |signalled| signalled.state);
    let given = signalled.and_then(|s| s.items.iter().find(|(of, _)| *of == item));
    if let Some((_, text)) = given {
        return Value::Str(text.clone());
    }
    match item {
        ConditionItem::MysqlErrno => Value::Int(i64::from(condition.code)),
        ConditionItem::MessageText => Value::Str(condition.message.clone()),
        ConditionItem::ReturnedSqlstate => Value::Str(String::from_utf8_lossy(&state).into_owned()),
        ConditionItem::ClassOrigin => origin(is_standard(&state[..2])),
        ConditionItem::SubclassOrigin => origin(is_standard(&state[..2]) && is_standard(&state[2..])),
        _ => Value::Str(String::new()),
    }
}

/// Whether a class or subclass is one that the standard may define, by its first byte.
fn is_standard(code: &[u8]) -> bool {
    matches!(code[0], b'0'..=b'4' | b'A'..=b'H')
}

fn origin(standard: bool) -> Value {
    Value::from(if standard { "ISO 9075" } else { "MySQL" })
}
