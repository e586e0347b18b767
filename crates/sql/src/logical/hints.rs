//! What optimizer hints ask of a whole statement, and of single tables.

use crate::expr::context::{Warning, WarningLevel};

/// What hints say of how a table is joined; `None`: as optimizer_switch says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JoinHints {
    /// Its rows may be kept in memory when no index finds them.
    pub buffer: Option<bool>,
    /// They may be probed by hash; `true`: they are, wherever there is an equality.
    pub hash: Option<bool>,
    /// It may be looked up for many rows before it at once; `true`: it is wherever that is possible.
    pub batch: Option<bool>,
    /// In a semi or anti join: found by an index for each row before it; read once.
    pub first_match: Option<bool>,
    pub materialization: Option<bool>,
}

/// What hints say of ways to read a table; `None`: as optimizer_switch says.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathHints {
    /// INDEX_MERGE and NO_INDEX_MERGE.
    pub merge: Option<PathHint>,
    /// SKIP_SCAN and NO_SKIP_SCAN.
    pub skip: Option<PathHint>,
    /// JOIN_INDEX and NO_JOIN_INDEX: indexes that find rows by conditions.
    pub lookup: Option<PathHint>,
    /// ORDER_INDEX and NO_ORDER_INDEX: indexes that give rows in an order.
    pub order: Option<PathHint>,
    /// GROUP_INDEX and NO_GROUP_INDEX: indexes of loose scans.
    pub group: Option<PathHint>,
    /// NO_RANGE_OPTIMIZATION: indexes that are read by one value of each leading column, or not by conditions.
    pub range: Option<PathHint>,
}

#[derive(Clone, Debug)]
pub(crate) struct PathHint {
    /// It is taken where it is possible; else it is not taken.
    pub wanted: bool,
    /// By which indexes; empty: all.
    pub indexes: Vec<usize>,
}

impl PathHint {
    /// Whether an index may be read in this way.
    pub fn allows(hint: &Option<PathHint>, index: usize) -> bool {
        let Some(PathHint { wanted, indexes }) = hint else { return true };
        match indexes.is_empty() {
            true => *wanted,
            false => indexes.contains(&index) == *wanted,
        }
    }

    /// Whether it is asked for, whatever it costs.
    pub fn asks(hint: &Option<PathHint>) -> bool {
        hint.as_ref().is_some_and(|hint| hint.wanted)
    }
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
