//! What reading a table costs inside of a join.
//!
//! ```text
//! an index for each row before        the cost of the access path, once a row
//! read once, then probed by hash      the cost of the access path, and half a row of a full scan a probe;
//!                                     where an index reaches it too, three and a half a row that is kept
//! read once, then looped over         the cost of the access path, and a fifth of a row a row looked at
//! ```
//! The unit is a row of a full scan (see `access`).

use super::model::{Level, Step};

/// A probe of a hash table.
pub(super) const PROBE: f64 = 0.5;
/// A row that is brought into a hash table.
pub(super) const BUILD: f64 = 3.5;
/// A table of which more rows would be kept is reached by its index.
pub(super) const MOST_BUILT: f64 = 1e5;
/// A row of a table in memory that is looked at.
pub(super) const BUFFERED_ROW: f64 = 0.2;

/// How the rows of an inner table are come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inner {
    /// By its access path, for each row before it.
    Each,
    Probed,
    Looped,
}

/// The cost of a table whose access path costs `cost` and gives `rows` rows, behind `before` rows.
pub(super) fn step(before: f64, cost: f64, rows: f64, inner: Inner) -> f64 {
    match inner {
        Inner::Each => before * cost,
        Inner::Probed => cost + before * PROBE,
        Inner::Looped => cost + before * rows * BUFFERED_ROW,
    }
}

/// Adds up the steps of a plan.
pub(super) struct Estimate {
    /// Rows that come out of the steps so far.
    pub rows: f64,
    pub cost: f64,
    /// Rows before the groups of outer, semi and anti joins that are open.
    groups: Vec<f64>,
}

impl Estimate {
    pub fn new() -> Estimate {
        Estimate { rows: 1.0, cost: 0.0, groups: vec![] }
    }

    pub fn level(&mut self, level: &Level) {
        let inner = match (level.buffered, &level.hash) {
            (false, _) => Inner::Each,
            (true, Some(_)) => Inner::Probed,
            (true, None) => Inner::Looped,
        };
        self.cost += step(self.rows, level.cost, level.rows as f64, inner);
        self.rows *= level.produced();
    }

    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Scan(level) => self.level(level),
            Step::Enter { .. } | Step::Test { .. } => self.groups.push(self.rows),
            // A row without a match stays, with NULLs.
            Step::Leave { .. } => self.rows = self.rows.max(self.groups.pop().unwrap_or(1.0)),
            // A row stays once, or goes.
            Step::Match { .. } => self.rows = self.rows.min(self.groups.pop().unwrap_or(1.0)),
        }
    }
}

impl Level {
    /// Rows that an iteration hands on, by the estimate.
    pub(super) fn produced(&self) -> f64 {
        self.rows as f64 * self.filtered / 100.0
    }
}
