//! Global unique indexes of partitioned tables: one index table for the rows of all leaves.
//!
//! An entry names a row by its primary key; the row's leaf follows from that, or all leaves are looked in
//! ([`crate::table::parts`]). So rows go from leaf to leaf and keep their entries.
//!
//! *Dead entries.* DROP PARTITION and TRUNCATE PARTITION look at no row, so the entries of rows that went with a leaf stay.
//! An entry is alive if there is a row with the primary key that it names and with its key. A reader who finds no such row
//! finds nothing; a writer who meets a dead entry takes it away; those that nobody meets are taken away by
//! [`crate::Database::purge_entries`].
//!
//! *Dead for sure* is an entry only for who has locked it, and looks for its row afterwards. Whoever writes a row writes its
//! entry in the same transaction, and gives neither free before the end: so a row that comes or goes meanwhile is not
//! committed before the entry's lock is free, and what is committed then counts. The row is read without a lock, since
//! writers lock rows first and entries second.

use super::leaves::Few;
use super::read::{Visited, named};
use super::{Lock, Transaction, View};
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::ops::operation::{Op, Seen};
use crate::table::{TableInfo, UniqueIndex, entries};
use futures::future::BoxFuture;
use rauk_kernel::{LockMode, ReadAt, Stop, Verdict, WaitPolicy};
use rauk_types::{IndexId, RowView};

/// What is committed now, and what the transaction itself has written.
const NEWEST: View = View { own_before: u32::MAX, at: ReadAt::Newest, conflict_after: None };

impl Transaction {
    /// The partitioned table that a leaf is of.
    fn whole_of(&self, leaf: &TableInfo) -> Result<TableHandle, NodeError> {
        let id = leaf.schema.leaf_of.expect("a leaf of a partitioned table");
        self.node.tables.by_id(id).map(TableHandle::new).ok_or(NodeError::StaleSchema)
    }

    /// The leaves, of those that the handle names, that may have the row which an entry names.
    fn leaves_of_entry(&self, table: &TableHandle, base: &[u8]) -> Result<Few, NodeError> {
        let parts = table.parts().expect("only partitioned tables have global indexes");
        self.node.leaves_of_key(table, parts, IndexId::PRIMARY, base)
    }

    /// [`Transaction::get_unique`] by a global index. A future of its own, so that the usual one does not grow.
    pub(super) async fn get_by_global<R: Send>(
        &mut self,
        table: &TableHandle,
        unique: &UniqueIndex,
        key: &[u8],
        lock: Lock,
        visit: impl FnOnce(Option<RowView<'_>>) -> R + Send,
    ) -> Result<R, NodeError> {
        let mut visit = Visited::new(visit);
        if !self.show_by_global(table, unique, key, lock, &mut |row| visit.show(Some(row))).await? {
            visit.show(None);
        }
        Ok(visit.result())
    }

    /// `visit` is shown the row, if there is one.
    fn show_by_global<'a>(
        &'a mut self,
        table: &'a TableHandle,
        unique: &'a UniqueIndex,
        key: &'a [u8],
        lock: Lock,
        visit: &'a mut (dyn FnMut(RowView<'_>) + Send),
    ) -> BoxFuture<'a, Result<bool, NodeError>> {
        Box::pin(async move {
            self.count_reads(table.info(), Some(unique.id), 1);
            let place = entries::locate(&unique.entries, key);
            let partition = self.node.partition_of(place.bucket);
            let lock = self.effective_lock(lock);
            loop {
                self.check_killed()?;
                let view = match lock {
                    None => self.read_view(table.info(), true).await?,
                    Some(_) => NEWEST,
                };
                let Some(base) = self.read_entry(unique, &place, partition, view).await? else {
                    if lock.is_some() {
                        self.check_row_of_snapshot(table, unique, key).await?;
                        let absent = self.locks_ranges();
                        if absent && self.lock_absence(&unique.entries, partition, place.key()).await? {
                            continue;
                        }
                    }
                    return Ok(false);
                };
                for leaf in self.leaves_of_entry(table, &base)? {
                    let mut found = false;
                    let show = |row: Option<RowView<'_>>| {
                        if let Some(row) = row.filter(|row| unique.keys.matches(row, key)) {
                            found = true;
                            visit(row);
                        }
                    };
                    let (of_leaf, at) = self.place(&leaf, &base);
                    match lock {
                        None => self.read_plain(&leaf, at, of_leaf, view, show).await?,
                        Some(lock) => {
                            let own_before = self.own_before(&leaf, &base);
                            self.read_locked(&leaf, at, of_leaf, lock, own_before, show).await?;
                        }
                    }
                    if found {
                        return Ok(true);
                    }
                }
                match lock {
                    // The row may have changed between the two looks: look at both at one time.
                    None if self.snapshot.is_none() => self.take_snapshot().await?,
                    // Another's lock hides the row.
                    None | Some((_, WaitPolicy::SkipLocked)) => return Ok(false),
                    // The row changed between the two looks, and its entry with it; or the entry is dead, or the
                    // statement itself wrote the row, which stays hidden.
                    Some((_, wait)) => {
                        // Nobody gives the key to another row as long as the entry is locked.
                        let again = match self.locks_ranges() {
                            true => self.lock_entry(unique, &place, (LockMode::Shared, wait)).await?,
                            false => self.read_entry(unique, &place, partition, view).await?,
                        };
                        if again.as_deref() == Some(&base[..]) {
                            return Ok(false);
                        }
                    }
                }
            }
        })
    }

    /// A locking read found no entry: fails when the transaction's snapshot has a row with the key, which has gone or has
    /// another key now.
    async fn check_row_of_snapshot(
        &mut self,
        table: &TableHandle,
        unique: &UniqueIndex,
        key: &[u8],
    ) -> Result<(), NodeError> {
        let Some(snapshot) = self.newest_view(u32::MAX).conflict_after else { return Ok(()) };
        let view = View { at: ReadAt::Snapshot(snapshot), ..NEWEST };
        match self.is_alive(table, unique, key, None, view).await? {
            true => Err(super::explain(Stop::Changed, &unique.entries)),
            false => Ok(()),
        }
    }

    /// Whether an entry of this key has its row: the one that names `base`, or any.
    async fn is_alive(
        &mut self,
        table: &TableHandle,
        unique: &UniqueIndex,
        key: &[u8],
        base: Option<&[u8]>,
        view: View,
    ) -> Result<bool, NodeError> {
        let read;
        let base = match base {
            Some(base) => base,
            None => {
                let place = entries::locate(&unique.entries, key);
                let partition = self.node.partition_of(place.bucket);
                let Some(named) = self.read_entry(unique, &place, partition, view).await? else { return Ok(false) };
                read = named;
                &read
            }
        };
        for leaf in self.leaves_of_entry(table, base)? {
            let (of_leaf, at) = self.place(&leaf, base);
            let is_it = |row: Option<RowView<'_>>| row.is_some_and(|row| unique.keys.matches(&row, key));
            if self.read_plain(&leaf, at, of_leaf, view, is_it).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// [`Transaction::wants_changed`] by a global index.
    pub(super) async fn wants_changed_by_global(
        &mut self,
        table: &TableHandle,
        unique: &UniqueIndex,
        key: &[u8],
        wants: &mut (dyn FnMut(RowView<'_>) -> bool + Send),
    ) -> Result<bool, NodeError> {
        let place = entries::locate(&unique.entries, key);
        let partition = self.node.partition_of(place.bucket);
        let snapshot = self.newest_view(u32::MAX).conflict_after.map(ReadAt::Snapshot);
        let mut dead = None;
        for at in snapshot.into_iter().chain([ReadAt::Newest]) {
            let view = View { at, ..NEWEST };
            let Some(base) = self.read_entry(unique, &place, partition, view).await? else { continue };
            let mut found = false;
            for leaf in self.leaves_of_entry(table, &base)? {
                let (of_leaf, partition) = self.place(&leaf, &base);
                let wanted = |row: Option<RowView<'_>>| match row.filter(|row| unique.keys.matches(row, key)) {
                    Some(row) => (true, wants(row)),
                    None => (false, false),
                };
                let (is_it, wanted) = self.read_plain(&leaf, partition, of_leaf, view, wanted).await?;
                if wanted {
                    return Ok(true);
                }
                found |= is_it;
            }
            // An entry without its row at both times is dead. Else the row has gone or has another key since the entry
            // was read: what has this one now is not known, and that is a conflict.
            if !found && at == ReadAt::Newest && dead.as_ref() != Some(&base) {
                return Ok(true);
            }
            dead = Some(base).filter(|_| !found);
        }
        Ok(false)
    }

    /// A row that is written finds its key taken by an entry that names `existing`. `true`: a row of the table has the key; it is
    /// locked. `false`: the entry was dead and is taken away, or has changed meanwhile.
    pub(super) fn meet_global<'a>(
        &'a mut self,
        leaf: &'a TableInfo,
        unique: &'a UniqueIndex,
        key: &'a [u8],
        existing: &'a [u8],
    ) -> BoxFuture<'a, Result<bool, NodeError>> {
        Box::pin(async move {
            let table = self.whole_of(leaf)?;
            for leaf in self.leaves_of_entry(&table, existing)? {
                if self.lock_existing(&leaf, existing, |row| unique.keys.matches(row, key)).await? {
                    return Ok(true);
                }
            }
            self.take_dead_entry(&table, unique, key, existing).await?;
            Ok(false)
        })
    }

    /// Takes away the entry that gives `key` to the row with the primary key `base`, if it is dead; `false` if not.
    pub(crate) async fn take_dead_entry(
        &mut self,
        table: &TableHandle,
        unique: &UniqueIndex,
        key: &[u8],
        base: &[u8],
    ) -> Result<bool, NodeError> {
        let place = entries::locate(&unique.entries, key);
        let locked = self.lock_entry(unique, &place, (LockMode::Exclusive, WaitPolicy::Wait)).await?;
        if locked.as_deref() != Some(base) || self.is_alive(table, unique, key, Some(base), NEWEST).await? {
            return Ok(false);
        }
        self.delete_entry(unique, key).await?;
        Ok(true)
    }

    /// Locks an entry; gives the primary key that it names now.
    async fn lock_entry(
        &mut self,
        unique: &UniqueIndex,
        place: &entries::Entry,
        (mode, wait): (LockMode, WaitPolicy),
    ) -> Result<Option<Vec<u8>>, NodeError> {
        self.ensure_txn();
        let partition = self.node.partition_of(place.bucket);
        self.touch(&unique.entries, partition);
        let mut op = Op::ReadLocked { key: place.key(), mode, wait, ranges: false };
        let mut found = None;
        let visit = &mut |seen: Seen<'_, '_>| {
            found = named(seen.row());
            Verdict::Keep
        };
        self.call(&unique.entries, partition, NEWEST, &mut op, visit).await?;
        Ok(found)
    }
}
