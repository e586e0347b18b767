//! Definitions: CREATE, ALTER, DROP, TRUNCATE, RENAME.
//!
//! [`types`] turns a declared type into a [`rauk_types::DataType`], [`columns`] a column definition into a draft, [`keys`] checks and builds indexes, [`checks`] CHECK constraints, [`foreign`] foreign keys,
//! [`partitions`] PARTITION BY with [`partition_clause`] and the values of [`partition_values`],
//! [`table`] puts a whole table together from drafts. CREATE TABLE and ALTER TABLE both end there: ALTER takes the table apart into
//! drafts, applies its operations and builds it again, so that every rule is checked in one place.
//! [`create`], [`alter`], [`drop`] and [`view`] are the statements; all commit the open transaction first, as MySQL does.
//!
//! [`demanded`] checks what ALGORITHM and LOCK ask for, [`repartition`] is ALTER TABLE … PARTITION, [`exchange`] its EXCHANGE;
//! [`rewrite`] writes rows again where a new definition cannot read them.
//!
//! Left out, with error 1235: spatial indexes.

pub mod alter;
pub mod checks;
pub mod columns;
mod conversion;
pub mod create;
mod demanded;
pub mod drop;
mod exchange;
pub mod foreign;
pub(crate) mod interval;
pub mod keys;
pub mod options;
mod partition_changes;
mod partition_clause;
#[cfg(test)]
mod partition_tests;
pub mod partition_values;
pub mod partitions;
mod repartition;
mod rewrite;
pub mod table;
pub mod types;
pub mod view;

use super::data::MAX_REPLANS;
use super::session::Session;
use super::transactions::is_stale;
use rauk_types::MysqlError;

/// How often a change of a definition has begun, and what had been warned of before.
pub(crate) struct Attempts {
    made: usize,
    warnings: usize,
    warning_count: u64,
}

impl Session {
    /// A statement that changes a definition begins.
    pub(crate) fn attempts(&self) -> Attempts {
        let context = &self.context;
        Attempts { made: 1, warnings: context.warnings.len(), warning_count: context.warning_count }
    }

    /// Whether the statement has failed because another one has changed the table since it looked at it. Then it is to
    /// look, and to begin, once more.
    pub(crate) fn is_overtaken(&mut self, attempts: &mut Attempts, error: &MysqlError) -> bool {
        if !is_stale(error) || attempts.made > MAX_REPLANS {
            return false;
        }
        attempts.made += 1;
        self.context.warnings.truncate(attempts.warnings);
        self.context.warning_count = attempts.warning_count;
        true
    }
}

/// Columns and constraints, or operations, of one statement after which MySQL's own limits on names apply.
pub(crate) fn check_identifier(name: &str) -> Result<(), rauk_types::MysqlError> {
    if name.chars().count() > rauk_types::schema::MAX_IDENTIFIER_CHARS {
        return Err(crate::session::errors::too_long_identifier(name));
    }
    Ok(())
}
