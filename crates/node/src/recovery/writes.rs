//! The writes of a transaction in a cluster, as its entry in a group's stream carries them (a payload of
//! [`rauk_log::record`]), put into a partition, which takes its share of them.
//!
//! They stand as pending versions while the transaction is undecided ([`adopt`]); in a partition that is being restored, only what is committed is put in ([`restore`]). Writes to tables
//! that the catalog does not have any more are passed over. What is wrong with them is an error that says where, for they come from other nodes.

use crate::member::group_rows::Share;
use rauk_kernel::{Partition, Stop, TxnRef, Write};
use rauk_log::record::{Change, Malformed, changes};
use rauk_types::{TableId, Timestamp, TxnId};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WritesError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("a row of table {} is none, or keeps values that its version before has not", .table.0)]
    NoRow { table: TableId },
    #[error("a row of table {} has layout {layout}, which is newer than the catalog here", .table.0)]
    StaleSchema { table: TableId, layout: u16 },
    #[error("the writes carry what is not a row")]
    NotRows,
    /// These hold rows that are to be written: transactions of a view in which this node led. End them, and adopt again (what was adopted is adopted once).
    #[error("rows are held by transactions {0:?}")]
    Held(Vec<TxnId>),
}

/// Puts the writes beside the rows, with this number; the status word is the caller's, and is set before. After an error nothing of the transaction is left in the partition.
/// `pass`: a table that the catalog does not have.
pub fn adopt(
    partition: &mut Partition,
    txn: &TxnRef,
    number: u32,
    writes: &[u8],
    share: Share,
    pass: &mut dyn FnMut(TableId) -> bool,
) -> Result<(), WritesError> {
    let result = visit(writes, Some(share), pass, &mut |table, write| {
        partition.adopt(txn, number, table, write).map_err(|stop| explain(stop, table, write))
    });
    if result.is_err() {
        partition.abort(txn.id);
    }
    result
}

/// Puts the writes into a partition that is being restored, committed at `time`, in the order of the stream.
pub fn restore(
    partition: &mut Partition,
    writes: &[u8],
    time: Timestamp,
    share: Share,
    pass: &mut dyn FnMut(TableId) -> bool,
) -> Result<(), WritesError> {
    visit(writes, Some(share), pass, &mut |table, write| match write {
        Write::Put { layout, row } => {
            let put = partition.check_row(table, layout, row);
            let put = put.and_then(|()| partition.restore_put(table, layout, row, time));
            put.map_err(|stop| explain(stop, table, write))
        }
        Write::Sparse { layout, row } => {
            partition.restore_sparse(table, layout, row, time).map_err(|stop| explain(stop, table, write))
        }
        Write::Delete { key } => {
            partition.restore_delete(table, key, time);
            Ok(())
        }
    })
}

/// Visits the rows that are written, in order; of a share only those that are in it.
pub(super) fn visit<E: From<WritesError>>(
    writes: &[u8],
    share: Option<Share>,
    pass: &mut dyn FnMut(TableId) -> bool,
    visit: &mut dyn FnMut(TableId, Write<'_>) -> Result<(), E>,
) -> Result<(), E> {
    for change in changes(writes) {
        let change = change.map_err(WritesError::from)?;
        if change.bucket().is_some_and(|bucket| share.is_some_and(|share| !share.has(bucket))) {
            continue;
        }
        match change {
            Change::Put { table, .. } | Change::Sparse { table, .. } | Change::Delete { table, .. } if pass(table) => {}
            Change::Put { table, layout, row, .. } => visit(table, Write::Put { layout, row })?,
            Change::Sparse { table, layout, row, .. } => visit(table, Write::Sparse { layout, row })?,
            Change::Delete { table, key, .. } => visit(table, Write::Delete { key })?,
            Change::Counter { .. } | Change::Stream { .. } => return Err(WritesError::NotRows.into()),
        }
    }
    Ok(())
}

fn explain(stop: Stop, table: TableId, write: Write<'_>) -> WritesError {
    let layout = match write {
        Write::Put { layout, .. } | Write::Sparse { layout, .. } => layout,
        Write::Delete { .. } => 0,
    };
    match stop {
        Stop::Wait(holders) => WritesError::Held(holders),
        Stop::NoRow => WritesError::NoRow { table },
        Stop::StaleSchema => WritesError::StaleSchema { table, layout },
        other => unreachable!("what a stream says is not refused: {other:?}"),
    }
}
