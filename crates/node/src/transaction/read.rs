//! Point reads: by primary key, and by the key of a unique index.

use super::call::explain;
use super::{Lock, Transaction, View};
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::executor::Class;
use crate::table::{TableInfo, UniqueIndex, entries};
use rauk_kernel::{Access, LockMode, ReadAt, Stop, WaitPolicy};
use rauk_types::{IndexId, RowView, Timestamp, key};
use std::ops::Bound;
use std::sync::Arc;

/// What came of reading a row that a unique index named.
enum Found<R> {
    Row(R),
    /// The row is gone or has another key by now.
    Other,
}

impl Transaction {
    /// Reads one row by encoded primary key. `visit` runs while the partition is held: it copies what it needs.
    pub async fn get<R: Send>(
        &mut self,
        table: &TableHandle,
        key: &[u8],
        lock: Lock,
        visit: impl FnOnce(Option<RowView<'_>>) -> R + Send,
    ) -> Result<R, NodeError> {
        self.check_running()?;
        let info = &**table.info();
        let hash = key::hash(key);
        let partition = self.node.partition_of(info.route.bucket_of_key(key, hash));
        match self.effective_lock(lock) {
            None => {
                let view = self.read_view(true);
                let mut visit = Some(visit);
                match self.read_now(info, partition, key, hash, view, &mut visit) {
                    Some(result) => result,
                    None => {
                        let visit = visit.take().expect("not visited yet");
                        self.read_plain(info, partition, key, hash, view, visit).await
                    }
                }
            }
            Some(lock) => {
                let own_before = self.own_before(info, key);
                self.read_locked(info, partition, key, hash, lock, own_before, visit).await
            }
        }
    }

    /// Reads one row by the full encoded key of a unique index: the index table first, then the row.
    pub async fn get_unique<R: Send>(
        &mut self,
        table: &TableHandle,
        index: IndexId,
        key: &[u8],
        lock: Lock,
        visit: impl FnOnce(Option<RowView<'_>>) -> R + Send,
    ) -> Result<R, NodeError> {
        if index == IndexId::PRIMARY {
            return self.get(table, key, lock, visit).await;
        }
        self.check_running()?;
        let info = table.info().clone();
        let Some(unique) = info.unique(index) else { return Err(NodeError::StaleSchema) };
        let place = entries::locate(&unique.entries, key);
        let entry_partition = self.node.partition_of(place.bucket);
        let lock = self.effective_lock(lock);
        let mut visit = Some(visit);
        loop {
            self.check_killed()?;
            // A locking read looks at the newest entry without locking it: writers lock the row first and its entry second,
            // and so must readers, or the two would meet in deadlocks.
            let view = match lock {
                None => self.read_view(true),
                Some(_) => View { own_before: u32::MAX, at: ReadAt::Newest, conflict_after: None },
            };
            let base = self.read_entry(unique, &place, entry_partition, view).await?;
            let Some(base) = base else {
                if lock.is_some() && self.locks_ranges() {
                    let seen = self.lock_absence(&unique.entries, entry_partition, &place.key, place.hash).await?;
                    if seen {
                        continue;
                    }
                }
                return Ok(visit.take().expect("called once")(None));
            };
            let hash = key::hash(&base);
            let partition = self.node.partition_of(info.route.bucket_of_key(&base, hash));
            let visit_row = &mut visit;
            let check = move |row: Option<RowView<'_>>| match row {
                Some(row) if unique.key.matches(&row, key) => {
                    Found::Row(visit_row.take().expect("called once")(Some(row)))
                }
                _ => Found::Other,
            };
            let found = match lock {
                None => self.read_plain(&info, partition, &base, hash, view, check).await?,
                Some(lock) => {
                    let own_before = self.own_before(&info, &base);
                    self.read_locked(&info, partition, &base, hash, lock, own_before, check).await?
                }
            };
            match (found, lock) {
                (Found::Row(r), _) => return Ok(r),
                // Another's lock hides the row.
                (Found::Other, Some((_, WaitPolicy::SkipLocked))) => {
                    return Ok(visit.take().expect("called once")(None));
                }
                // Either the row changed between the two looks, and then the entry has changed too; or this statement wrote it, and it stays hidden.
                (Found::Other, Some(_)) => {
                    let again = self.read_entry(unique, &place, entry_partition, view).await?;
                    if again.as_deref() == Some(&base[..]) {
                        return Ok(visit.take().expect("called once")(None));
                    }
                }
                // It changed between the two looks: look at both at one time.
                (Found::Other, None) if self.snapshot.is_none() => self.take_snapshot(),
                (Found::Other, None) => return Ok(visit.take().expect("called once")(None)),
            }
        }
    }

    /// What a locking point read hides of this statement's own writes: all, but not the row that the last `Duplicate` named.
    fn own_before(&self, table: &TableInfo, key: &[u8]) -> u32 {
        match &self.duplicate {
            Some((id, named)) if *id == table.schema.id && named == key => u32::MAX,
            _ => self.statement,
        }
    }

    /// A plain read when nobody is at the partition and nothing is in its way, which is nearly always: without the states that a call
    /// which may wait carries along. `None`: it must be made as such a call.
    #[inline]
    fn read_now<R>(
        &mut self,
        info: &TableInfo,
        partition: u16,
        key: &[u8],
        hash: u64,
        view: View,
        visit: &mut Option<impl FnOnce(Option<RowView<'_>>) -> R>,
    ) -> Option<Result<R, NodeError>> {
        let node = &*self.node;
        let mut access = Access {
            txn: self.txn.as_ref(),
            own_before: view.own_before,
            statement: self.write_number,
            at: view.at,
            conflict_after: view.conflict_after,
            horizon: node.recent_horizon(),
            observed: Timestamp::ZERO,
        };
        let id = info.schema.id;
        let read = node.partitions[partition as usize]
            .try_with(|p| p.read(id, key, hash, &mut access, |row| visit.take().expect("visited once")(row)))
            .ok();
        let observed = access.observed;
        match read {
            Some(Err(Stop::Committing)) | None => None,
            Some(result) => {
                self.observed = self.observed.max(observed);
                Some(result.map_err(|stop| explain(stop, info)))
            }
        }
    }

    async fn read_plain<R: Send>(
        &mut self,
        info: &TableInfo,
        partition: u16,
        key: &[u8],
        hash: u64,
        view: View,
        visit: impl FnOnce(Option<RowView<'_>>) -> R + Send,
    ) -> Result<R, NodeError> {
        let mut visit = Some(visit);
        let id = info.schema.id;
        self.call(info, partition, Class::Point, view, |p, access| {
            p.read(id, key, hash, access, |row| visit.take().expect("visited once")(row))
        })
        .await
    }

    #[allow(clippy::too_many_arguments)] // the parts of one call
    pub(super) async fn read_locked<R: Send>(
        &mut self,
        info: &TableInfo,
        partition: u16,
        key: &[u8],
        hash: u64,
        (mode, wait): (LockMode, WaitPolicy),
        own_before: u32,
        visit: impl FnOnce(Option<RowView<'_>>) -> R + Send,
    ) -> Result<R, NodeError> {
        self.ensure_txn();
        self.touch(partition);
        let mut visit = Some(visit);
        let id = info.schema.id;
        let view = self.newest_view(own_before);
        let ranges = self.locks_ranges();
        self.call(info, partition, Class::Point, view, |p, access| {
            let mut result = None;
            p.read_locked(id, key, hash, mode, wait, access, |row| {
                if row.is_some() {
                    result = Some(visit.take().expect("visited once")(row));
                }
            })?;
            if result.is_none() && ranges {
                // In the same hold, so that what was found missing stays missing.
                let txn = access.txn.expect("known");
                p.lock_range(txn, id, IndexId::PRIMARY, Bound::Included(key), Bound::Included(key))?;
            }
            Ok(result.unwrap_or_else(|| visit.take().expect("visited once")(None)))
        })
        .await
    }

    /// The base row's key that an index entry holds.
    async fn read_entry(
        &mut self,
        unique: &UniqueIndex,
        place: &entries::Entry,
        partition: u16,
        view: View,
    ) -> Result<Option<Vec<u8>>, NodeError> {
        let read = |row: Option<RowView<'_>>| row.map(|row| entries::base_key(&row));
        self.read_plain(&unique.entries, partition, &place.key, place.hash, view, read).await
    }

    /// SERIALIZABLE: keeps a missing key missing; `true` when it is there after all.
    async fn lock_absence(
        &mut self,
        entries: &Arc<TableInfo>,
        partition: u16,
        key: &[u8],
        hash: u64,
    ) -> Result<bool, NodeError> {
        self.ensure_txn();
        self.touch(partition);
        let view = self.newest_view(u32::MAX);
        let id = entries.schema.id;
        self.call(entries, partition, Class::Point, view, |p, access| {
            let txn = access.txn.expect("known");
            p.lock_range(txn, id, IndexId::PRIMARY, Bound::Included(key), Bound::Included(key))?;
            p.read(id, key, hash, access, |row| row.is_some())
        })
        .await
    }
}
