//! What ALGORITHM and LOCK demand of a change of a table: kept, or an error before anything has changed.
//!
//! A change of the definition alone (columns that come and go, names, options, keys that go) takes no time that depends
//! on the rows: it is INSTANT, and fits every LOCK. An index over columns that are there is filled, and a foreign key over
//! them validated, while readers and writers go on, unless LOCK says that they are to wait ([`meanwhile`]). So are rows
//! written again where they keep their keys ([`rewrite::is_online`]). What else fills an index, checks rows or writes them
//! again has the table alone while it runs: that is EXCLUSIVE and nothing less. Rows that are converted are what MySQL
//! calls COPY, which it refuses with LOCK = NONE.
//!
//! LOCK = SHARED and EXCLUSIVE of a change of the definition alone are kept, since nobody sees a moment between before
//! and after.

use super::rewrite::{self, is_copy, needs_rewrite};
use crate::parse::statement::Demands;
use rauk_node::{Meanwhile, is_online};
use rauk_types::error::codes;
use rauk_types::{MysqlError, TableSchema};

/// Whether the change looks at rows.
fn looks_at_rows(old: &TableSchema, new: &TableSchema) -> bool {
    let makes_index = new.indexes.iter().any(|index| old.index(index.id).is_none());
    let makes_foreign_key = new.foreign_keys.iter().any(|key| !old.foreign_keys.contains(key));
    makes_index || makes_foreign_key || needs_rewrite(old, new)
}

/// Who may use the table while an index is filled, a foreign key is validated or rows are copied.
pub fn meanwhile(demands: &Demands) -> Meanwhile {
    match demands.lock {
        Some("EXCLUSIVE") => Meanwhile::Nobody,
        Some("SHARED") => Meanwhile::Readers,
        _ => Meanwhile::All,
    }
}

/// Errors 1221, 1845 and 1846. `moves_rows`: rows are written again, whatever the definitions say. `checks`: new foreign keys are validated.
pub fn check(
    old: &TableSchema,
    new: &TableSchema,
    demands: &Demands,
    moves_rows: bool,
    temporary: bool,
    checks: bool,
) -> Result<(), MysqlError> {
    let algorithm = demands.algorithm.filter(|word| *word != "DEFAULT");
    let lock = demands.lock.filter(|word| *word != "DEFAULT");
    if let (Some("INSTANT"), Some(_)) = (algorithm, lock) {
        let message = "Incorrect usage of ALGORITHM=INSTANT and LOCK=NONE/SHARED/EXCLUSIVE";
        return Err(MysqlError::new(codes::WRONG_USAGE, message));
    }
    if let (Some("COPY"), Some("NONE")) = (algorithm, lock) {
        let message = "LOCK=NONE is not supported. Reason: COPY algorithm requires a lock. Try LOCK=SHARED.";
        return Err(MysqlError::new(codes::ALTER_OPERATION_NOT_SUPPORTED_REASON, message));
    }
    // Nobody but the session sees a temporary table.
    if temporary || !moves_rows && !looks_at_rows(old, new) {
        return Ok(());
    }
    let refused = |what: String, instead: &str| {
        let message = format!("{what} is not supported for this operation. Try {instead}.");
        Err(MysqlError::new(codes::ALTER_OPERATION_NOT_SUPPORTED, message))
    };
    let copy = is_copy(old, new);
    // Indexes of a partitioned table are made with its rows.
    let rewrites = moves_rows || old.partitioning.is_some() || needs_rewrite(old, new);
    let online = if rewrites { rewrite::is_online(old, new, checks) } else { is_online(old, new, checks) };
    match (algorithm, lock) {
        (Some("INSTANT"), _) if copy => refused("ALGORITHM=INSTANT".into(), "ALGORITHM=COPY"),
        (Some("INSTANT"), _) => refused("ALGORITHM=INSTANT".into(), "ALGORITHM=COPY/INPLACE"),
        (Some("INPLACE"), _) if copy => refused("ALGORITHM=INPLACE".into(), "ALGORITHM=COPY"),
        (_, Some(lock @ ("NONE" | "SHARED"))) if !online => refused(format!("LOCK={lock}"), "LOCK=EXCLUSIVE"),
        _ => Ok(()),
    }
}
