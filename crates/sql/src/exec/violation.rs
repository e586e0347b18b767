//! Rows that a foreign key refuses, or that no partition takes, under IGNORE: a warning, and the row stays as it was (the node has undone what was written
//! of it).

use crate::expr::Context;
use rauk_node::NodeError;
use rauk_types::MysqlError;
use rauk_types::error::codes;

/// What concerns one row alone.
const OF_A_ROW: &[u16] = &[
    codes::ROW_IS_REFERENCED_2,
    codes::NO_REFERENCED_ROW_2,
    codes::NO_PARTITION_FOR_GIVEN_VALUE,
    codes::ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET,
];

/// The outcome of a write; `None`: it was refused for the row's values, and the statement goes on.
pub(super) fn unless_refused<T>(
    written: Result<T, NodeError>,
    ignore: bool,
    context: &mut Context,
) -> Result<Option<T>, MysqlError> {
    match written {
        Ok(written) => Ok(Some(written)),
        Err(NodeError::Refused(error)) if ignore && OF_A_ROW.contains(&error.code) => {
            context.warn(error.code, error.message);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
