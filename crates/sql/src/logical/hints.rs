//! What optimizer hints ask of a whole statement, and of single tables.

use crate::expr::context::{Warning, WarningLevel};

/// What hints say of how a table is joined; `None`: as optimizer_switch says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JoinHints {
    /// Its rows may be kept in memory when no index finds them.
    pub buffer: Option<bool>,
    /// They may be probed by hash; `true`: they are, wherever there is an equality.
    pub hash: Option<bool>,
    /// In a semi or anti join: found by an index for each row before it; read once.
    pub first_match: Option<bool>,
    pub materialization: Option<bool>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct StatementHints {
    /// Milliseconds; 0: no limit.
    pub max_execution_time: Option<u64>,
    /// SET_VAR: names and values, as they were written.
    pub variables: Vec<(String, String)>,
    /// What they set was planned with a global value, which may change.
    pub by_global: bool,
    /// What could not be followed: warnings of each execution.
    pub warnings: Vec<Warning>,
}

impl StatementHints {
    pub fn is_empty(&self) -> bool {
        self.max_execution_time.is_none() && self.variables.is_empty() && self.warnings.is_empty()
    }

    pub fn warn(&mut self, code: u16, message: String) {
        self.warnings.push(Warning { level: WarningLevel::Warning, code, message });
    }
}
