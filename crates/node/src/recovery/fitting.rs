//! Whether what a directory holds fits into memory.
//!
//! Recovery takes every row, whatever the limit says: rows that were acknowledged cannot be left out. So a limit that is
//! too low would give a server in which every write fails, and a machine that is too small one which the kernel ends
//! halfway, again and again. Both are refused, with what is stored and what to give:
//!
//! - The *limit* is compared when all rows and indexes are in memory, so that the error can name the whole. A node may
//!   have been a little above its limit before ([`rauk_kernel::budget::Purpose::Relief`], replicas), and must come back
//!   with it; so [`TOLERANCE`] per cent above it are taken.
//! - The *memory of the machine* is compared after each round of reading, since loading on would end the process.
//!
//! Invariant: nothing of the directory has been changed before either check. A limit that `SET PERSIST` has stored in
//! the directory counts as well as the one of the command line, if it is the higher: it is in force once SQL has begun.

use crate::database::Config;
use crate::error::NodeError;
use rauk_kernel::MemoryBudget;
use rauk_manage::Catalog;
use rauk_types::size;
use std::sync::Arc;

/// Per cent of the limit that a directory may have above it.
const TOLERANCE: u64 = 5;
/// Where SQL stores what `SET PERSIST rauk_memory_limit` was given.
pub const PERSISTED_LIMIT: &str = "variable:rauk_memory_limit";

pub(super) struct Fitting {
    budget: Arc<MemoryBudget>,
    limit: u64,
    available: u64,
}

/// The limit that is in force on a node with the role sql: the one of the command line or the persisted one.
pub fn in_force(config: &Config, catalog: &Catalog) -> u64 {
    let persisted = catalog.setting(PERSISTED_LIMIT).and_then(|text| text.parse::<u64>().ok());
    // SQL does not take a persisted limit beyond the machine's memory, either.
    let persisted = persisted.filter(|limit| *limit <= config.memory_available);
    config.memory_limit.max(persisted.unwrap_or(0))
}

impl Fitting {
    pub(super) fn new(config: &Config, limit: u64, budget: &Arc<MemoryBudget>) -> Fitting {
        Fitting { budget: budget.clone(), limit, available: config.memory_available }
    }

    /// Between two rounds: there is memory for another.
    pub(super) fn check_available(&self) -> Result<(), NodeError> {
        if self.budget.used() <= self.available {
            return Ok(());
        }
        let available = size::show(self.available);
        Err(NodeError::TooSmall(format!(
            "it holds more rows and indexes than the {available} of memory that this machine, or its control group, has: \
             open it where there is more"
        )))
    }

    /// All rows and indexes are in memory.
    pub(super) fn check_limit(&self) -> Result<(), NodeError> {
        let (stored, limit) = (self.budget.used(), self.limit);
        if stored <= limit.saturating_add(limit / 100 * TOLERANCE) {
            return Ok(());
        }
        // A tenth more, so that there is room to write.
        let enough = size::show_enough((stored + stored / 10).min(self.available.max(stored)));
        Err(NodeError::TooSmall(format!(
            "it holds {} of rows and indexes, and the memory limit is {}; give --memory-limit {enough} or more",
            size::show(stored),
            size::show(limit)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitting(limit: u64, available: u64, used: u64) -> Fitting {
        let budget = Arc::new(MemoryBudget::new(limit));
        budget.add(used);
        Fitting { budget, limit, available }
    }

    #[test]
    fn what_is_stored_is_compared_with_the_limit_and_with_the_machine() {
        const MIB: u64 = 1 << 20;
        assert_eq!(fitting(100 * MIB, 200 * MIB, 100 * MIB).check_limit(), Ok(()));
        assert_eq!(fitting(100 * MIB, 200 * MIB, 105 * MIB).check_limit(), Ok(()), "it was in use with this limit");
        assert_eq!(fitting(100 * MIB, 200 * MIB, 200 * MIB).check_available(), Ok(()));
        let error = fitting(100 * MIB, 300 * MIB, 200 * MIB).check_limit().unwrap_err().to_string();
        assert_eq!(
            error,
            "it holds 200MiB of rows and indexes, and the memory limit is 100MiB; give --memory-limit 220MiB or more"
        );
        // No more than there is.
        let error = fitting(100 * MIB, 210 * MIB, 200 * MIB).check_limit().unwrap_err().to_string();
        assert!(error.ends_with("give --memory-limit 210MiB or more"), "{error}");
        let error = fitting(100 * MIB, 199 * MIB, 200 * MIB).check_available().unwrap_err().to_string();
        assert!(error.contains("than the 199MiB of memory that this machine"), "{error}");
    }
}
