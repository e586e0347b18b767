//! New unique indexes are filled while writers go on.
//!
//! From the short lock on every transaction that writes keeps the index tables ([`crate::table::building`]). The rows
//! that were there are entered by small transactions, each of which locks its rows (shared) and enters what they are
//! *now*: so nothing that was deleted or changed meanwhile is entered, and no writer of such a row is passed by.
//!
//! *Writers are not held up for long*: a transaction of the fill waits for a row only before it has locked another one,
//! ends after [`ROWS`] rows, and is the victim of any deadlock; one that meets a key that is being written waits for
//! [`KEY`] and then gives its rows back, to try again one by one.
//!
//! *Duplicates are found where they stay.* A row whose key another row has is refused here with 1062, for both are
//! committed. A writer whose key is taken notes that ([`Building::refused`]), and its row is looked at again: what is
//! not a duplicate any more is entered.

use super::build::{self, Patience, Reader, duplicate_entry};
use crate::commit::group::yield_once;
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::node::Node;
use crate::table::building::{Building, refused_base};
use crate::table::{TableInfo, entries};
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_types::ValueRef;
use std::sync::Arc;
use std::time::Duration;

/// Rows that are locked together, on a node that is alone and in a cluster, where each takes messages.
const ROWS: (usize, usize) = (64, 16);
/// The longest wait for a lock while others are held; in a cluster, for one call.
const KEY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// So many refused rows may be left to be looked at while the table is held alone.
const FEW: usize = 100;

/// Enters all rows of a table into the index tables that are being built on it.
pub(super) async fn fill(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    building: &Building,
    patience: &mut Patience,
) -> Result<(), NodeError> {
    let primary = building.schema.key_def(building.schema.primary());
    let mut reader = Reader::beside_writers(node, table, &building.schema);
    let mut bases: Vec<Vec<u8>> = Vec::new();
    while reader.next().await? {
        bases.clear();
        for row in reader.rows() {
            let mut base = Vec::new();
            primary.encode_row(&row, &mut base);
            bases.push(base);
        }
        enter_all(node, table, building, &bases, patience).await?;
    }
    while refused(node, table, building, patience).await? > FEW {}
    Ok(())
}

/// Looks at the rows that writers noted as refused; gives how many there were.
pub(super) async fn refused(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    building: &Building,
    patience: &mut Patience,
) -> Result<usize, NodeError> {
    let mut notes: Vec<Vec<u8>> = Vec::new();
    let mut reader = Reader::beside_writers(node, &building.refused, &building.refused.schema);
    while reader.next().await? {
        for row in reader.rows() {
            let ValueRef::Bytes(note) = row.get(0) else { unreachable!("a note is bytes") };
            notes.push(note.to_vec());
        }
    }
    for note in &notes {
        enter_all(node, table, building, &[refused_base(note).to_vec()], patience).await?;
        loop {
            match take_away(node, building, note).await {
                Ok(()) => break,
                Err(error) => patience.again(node, error).await?,
            }
        }
    }
    Ok(notes.len())
}

async fn take_away(node: &Arc<Node>, building: &Building, note: &[u8]) -> Result<(), NodeError> {
    let mut txn = build::filling(node, &building.refused);
    let place = entries::locate(&building.refused, note);
    txn.drop_note(&building.refused, &place).await?;
    txn.commit_without_waiting().await
}

/// Enters rows, which are named by their primary keys, as they are now.
async fn enter_all(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    building: &Building,
    bases: &[Vec<u8>],
    patience: &mut Patience,
) -> Result<(), NodeError> {
    let rows = if node.cluster().is_some() { ROWS.1 } else { ROWS.0 };
    let (mut at, mut most) = (0, rows);
    while at < bases.len() {
        let end = (at + most).min(bases.len());
        match enter_some(node, table, building, &bases[at..end]).await {
            Ok(done) => {
                at += done;
                most = rows;
                patience.went_on();
            }
            Err(error) => {
                most = 1;
                patience.again(node, error).await?;
            }
        }
        yield_once().await;
    }
    Ok(())
}

/// One transaction; gives how many of the rows it has seen to: those before the first that is locked, and at least one.
async fn enter_some(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    building: &Building,
    bases: &[Vec<u8>],
) -> Result<usize, NodeError> {
    let wait = if node.cluster().is_some() { KEY.1 } else { KEY.0 };
    let mut txn = build::giving_way(node, table, wait);
    building.tables().for_each(|info| txn.borrow_table(info.clone()));
    let handle = TableHandle::new(table.clone());
    let mut done = 0;
    for base in bases {
        let policy = if done == 0 { WaitPolicy::Wait } else { WaitPolicy::NoWait };
        let mut keys: Vec<(usize, Vec<u8>)> = Vec::new();
        let see = |row: Option<rauk_types::RowView<'_>>| {
            let Some(row) = row else { return };
            for (number, unique) in building.uniques.iter().enumerate() {
                unique.keys.for_each_unique(&row, |key| keys.push((number, key.to_vec())));
            }
        };
        match txn.get(&handle, base, Some((LockMode::Shared, policy)), see).await {
            Err(NodeError::NoWait) if done > 0 => break,
            seen => seen?,
        }
        for (number, key) in &keys {
            let unique = &building.uniques[*number];
            if !txn.enter_if_free(unique, key, base).await? {
                let index = building.schema.index(unique.id).expect("it is being built");
                let shared = Some((LockMode::Shared, WaitPolicy::Wait));
                let error = txn.get(&handle, base, shared, |row| {
                    let row = row.expect("it is locked");
                    duplicate_entry(&building.schema, index, |column| row.get(column).to_owned())
                });
                return Err(error.await?);
            }
        }
        done += 1;
    }
    txn.commit_without_waiting().await?;
    Ok(done)
}
