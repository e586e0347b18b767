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
//! *In a cluster* a call for each row and each entry would be a message: [`TOGETHER`] rows are locked, read and entered
//! with some messages for each partition, by a transaction that waits for no row. Where one of them is locked or a key
//! is taken, the rows are entered as on a node that is alone.
//!
//! *Duplicates are found where they stay.* A row whose key another row has is refused here with 1062, for both are
//! committed. A writer whose key is taken notes that ([`Note::Refused`]), and its row is looked at again: what is
//! not a duplicate any more is entered.
//!
//! *Notes* are taken away in the transaction that looks at what they say, and before it looks: a writer that leaves the
//! same note waits for that transaction, and then there is a new one. Those about foreign keys are
//! [`super::validating`]'s.
//!
//! *Many rows are entered by several threads* ([`super::workers`]), each by those of one partition after another.

use super::build::{self, Part, Patience, Reader, duplicate_entry, parts_of};
use super::pace::Pace;
use super::progress::RowWork;
use super::validating::{self, Seen};
use super::workers::{Keeps, Parts, Worker, Workers, is_worth_it};
use crate::commit::group::yield_once;
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::locks::metadata::DdlWait;
use crate::node::Node;
use crate::table::TableInfo;
use crate::table::building::{Building, Note};
use crate::transaction::Transaction;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_types::{RowView, ValueRef};
use std::sync::Arc;
use std::time::Duration;

/// Rows that are locked one after another, on a node that is alone and in a cluster, where each takes messages.
const ROWS: (usize, usize) = (64, 16);
/// Rows that are locked together in a cluster.
const TOGETHER: usize = 256;
/// The longest wait for a lock while others are held; in a cluster, for one call.
const KEY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// So many notes may be left to be looked at while the table is held alone.
const FEW: usize = 100;

/// Enters all rows of a table into the index tables that are being built on it, and validates its new foreign keys.
pub(super) async fn fill(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    building: &Arc<Building>,
    patience: &mut Patience,
    wait: DdlWait<'_>,
    (workers, keeps): (&Workers, Keeps),
) -> Result<(), NodeError> {
    if !building.uniques.is_empty() {
        let rows = node.rows_of(table);
        wait.begins(RowWork::EnterKeys, rows);
        let parts = parts_of(node, std::slice::from_ref(table));
        if is_worth_it(node, wait, rows, parts.len()) {
            enter_by_workers(node, building, parts, patience, wait, (workers, keeps.clone())).await?;
        } else {
            let told = Told { tell: &|rows| wait.has_done(rows), is_to_end: &|| false, pace: &wait.pace() };
            enter_part(node, (table, None), building, patience, told).await?;
        }
    }
    validating::validate_beside(node, table, building, patience, wait, (workers, keeps)).await?;
    while look_at_notes(node, table, building, patience).await? > FEW {}
    Ok(())
}

async fn enter_by_workers(
    node: &Arc<Node>,
    building: &Arc<Building>,
    parts: Vec<Part>,
    patience: &Patience,
    wait: DdlWait<'_>,
    (workers, keeps): (&Workers, Keeps),
) -> Result<(), NodeError> {
    let most = parts.len();
    let (parts, pace) = (Parts::new(parts), wait.pace());
    let work = |worker: Worker| {
        let (node, building, parts, pace) = (node.clone(), building.clone(), parts.clone(), pace.clone());
        let mut patience = patience.another();
        async move {
            let (tell, is_to_end) = (|rows| worker.has_done(rows), || worker.is_to_end());
            let told = Told { tell: &tell, is_to_end: &is_to_end, pace: &pace };
            while let Some((table, partition)) = parts.next(&worker) {
                let part = (&table, Some(partition));
                enter_part(&node, part, &building, &mut patience, told).await?;
            }
            Ok(())
        }
    };
    workers.run(node, wait, most, keeps, work).await
}

/// Of those who work through rows: whom to tell, how fast, and whether to end.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    pub tell: &'a (dyn Fn(u64) + Sync),
    pub is_to_end: &'a (dyn Fn() -> bool + Sync),
    pub pace: &'a Pace,
}

impl Told<'_> {
    pub async fn has_done(self, node: &Node, rows: u64) {
        (self.tell)(rows);
        self.pace.rest(node, rows, self.is_to_end).await;
    }
}

/// Enters the rows of a table, or of its part in a partition, unless it `is_to_end`.
async fn enter_part(
    node: &Arc<Node>,
    (table, partition): (&Arc<TableInfo>, Option<u16>),
    building: &Building,
    patience: &mut Patience,
    told: Told<'_>,
) -> Result<(), NodeError> {
    let primary = building.schema.key_def(building.schema.primary());
    let mut reader = Reader::of(node, table, &building.schema, true, partition);
    let mut bases: Vec<Vec<u8>> = Vec::new();
    while reader.next().await? && !(told.is_to_end)() {
        bases.clear();
        for row in reader.rows() {
            let mut base = Vec::new();
            primary.encode_row(&row, &mut base);
            bases.push(base);
        }
        enter_all(node, table, building, &bases, patience).await?;
        told.has_done(node, bases.len() as u64).await;
    }
    Ok(())
}

/// All notes that are there.
pub(super) async fn noted(node: &Arc<Node>, building: &Building) -> Result<Vec<Vec<u8>>, NodeError> {
    let mut notes: Vec<Vec<u8>> = Vec::new();
    let mut reader = Reader::beside_writers(node, &building.notes, &building.notes.schema);
    while reader.next().await? {
        for row in reader.rows() {
            let ValueRef::Bytes(note) = row.get(0) else { unreachable!("a note is bytes") };
            notes.push(note.to_vec());
        }
    }
    Ok(notes)
}

/// Looks at what writers have noted; gives how many notes there were.
pub(super) async fn look_at_notes(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    building: &Building,
    patience: &mut Patience,
) -> Result<usize, NodeError> {
    let notes = noted(node, building).await?;
    for note in &notes {
        let note = Note::decode(note);
        loop {
            match look_at(node, table, building, &note).await {
                Ok(()) => break,
                Err(error) => patience.again(node, error).await?,
            }
        }
        patience.went_on();
        yield_once().await;
    }
    Ok(notes.len())
}

/// One transaction: takes a note away, and sees to what it says.
async fn look_at(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    building: &Building,
    note: &Note<'_>,
) -> Result<(), NodeError> {
    let mut txn = beside_writers(node, table, building);
    txn.drop_note(building, note).await?;
    let seen = match *note {
        Note::Refused { base, .. } => {
            enter_row(&mut txn, table, building, base, WaitPolicy::Wait).await?;
            Seen::Kept
        }
        Note::Orphan { reference, base } => {
            validating::check_row(&mut txn, table, building, reference.into(), base).await?
        }
        Note::Left { reference, key, children } => {
            validating::check_left(&mut txn, table, building, reference.into(), key, children).await?
        }
        Note::Changed { .. } => unreachable!("rows of a table that gets indexes or foreign keys are not copied"),
    };
    validating::end(txn, building, seen).await
}

/// A transaction that gives way to those of users, with the tables of a build and of its new foreign keys.
pub(super) fn beside_writers(node: &Arc<Node>, table: &Arc<TableInfo>, building: &Building) -> Transaction {
    let wait = if node.cluster().is_some() { KEY.1 } else { KEY.0 };
    let mut txn = build::giving_way(node, table, wait);
    building.tables().for_each(|info| txn.borrow_table(info.clone()));
    validating::parents(node, &building.schema, &table.schema).into_iter().for_each(|info| txn.borrow_table(info));
    txn
}

/// Enters rows, which are named by their primary keys, as they are now.
async fn enter_all(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    building: &Building,
    bases: &[Vec<u8>],
    patience: &mut Patience,
) -> Result<(), NodeError> {
    if node.cluster().is_none() {
        return enter_each(node, table, building, bases, patience).await;
    }
    for bases in bases.chunks(TOGETHER) {
        match enter_together(node, table, building, bases).await {
            Ok(true) => patience.went_on(),
            Ok(false) => enter_each(node, table, building, bases, patience).await?,
            Err(error) => {
                patience.again(node, error).await?;
                enter_each(node, table, building, bases, patience).await?;
            }
        }
        yield_once().await;
    }
    Ok(())
}

/// One transaction enters all of the rows, as they are now. `false`: none is entered, since one is locked or a key is
/// taken.
async fn enter_together(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    building: &Building,
    bases: &[Vec<u8>],
) -> Result<bool, NodeError> {
    let mut txn = beside_writers(node, table, building);
    let mut keys: Vec<Vec<(Vec<u8>, usize)>> = vec![Vec::new(); building.uniques.len()];
    let mut see = |number: usize, row: RowView<'_>| {
        for (unique, keys) in building.uniques.iter().zip(&mut keys) {
            unique.keys.for_each_unique(&row, |key| keys.push((key.to_vec(), number)));
        }
    };
    match txn.lock_all(table, bases, &mut see).await {
        Err(NodeError::NoWait) => return Ok(false),
        locked => locked?,
    }
    for (unique, keys) in building.uniques.iter().zip(keys) {
        let entries = keys.into_iter().map(|(key, number)| (key, &bases[number][..]));
        if !txn.enter_together(unique, entries).await? {
            return Ok(false);
        }
    }
    txn.commit_without_waiting().await?;
    Ok(true)
}

/// Enters rows by transactions that lock one row after another.
async fn enter_each(
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
    let mut txn = beside_writers(node, table, building);
    let mut done = 0;
    for base in bases {
        let policy = if done == 0 { WaitPolicy::Wait } else { WaitPolicy::NoWait };
        match enter_row(&mut txn, table, building, base, policy).await {
            Err(NodeError::NoWait) if done > 0 => break,
            entered => entered?,
        }
        done += 1;
    }
    txn.commit_without_waiting().await?;
    Ok(done)
}

/// Enters a row, which is locked for that, as it is now; nothing if it is gone.
async fn enter_row(
    txn: &mut Transaction,
    table: &Arc<TableInfo>,
    building: &Building,
    base: &[u8],
    policy: WaitPolicy,
) -> Result<(), NodeError> {
    let handle = TableHandle::new(table.clone());
    let mut keys: Vec<(usize, Vec<u8>)> = Vec::new();
    let see = |row: Option<RowView<'_>>| {
        let Some(row) = row else { return };
        for (number, unique) in building.uniques.iter().enumerate() {
            unique.keys.for_each_unique(&row, |key| keys.push((number, key.to_vec())));
        }
    };
    txn.get(&handle, base, Some((LockMode::Shared, policy)), see).await?;
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
    Ok(())
}
