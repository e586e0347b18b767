//! Point reads: by primary key, and by the key of a unique index.

use super::call::explain;
use super::leaves::Place;
use super::{Lock, Transaction, View};
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::member::Cluster;
use crate::ops::operation::{Done, Key, Op, Seen};
use crate::table::{TableInfo, UniqueIndex, entries};
use rauk_kernel::{LockMode, ReadAt, Stop, Verdict, WaitPolicy};
use rauk_types::{IndexId, RowView, Timestamp};
use std::sync::Arc;

/// By what a process of a cluster may show a row.
pub(super) enum Right {
    /// It leads the partition, in this view.
    Primary(rauk_types::View),
    /// It is in-sync, by this version of the partition.
    InSync(u64),
    /// The primary has confirmed the snapshot to it.
    Confirmed(Timestamp),
}

impl Right {
    /// Under the partition's guard, in the same hold as the look.
    pub(super) fn of(cluster: &Cluster, partition: u16, at: ReadAt) -> Option<Right> {
        match (cluster.may_serve(partition), at) {
            (Some(view), _) => Some(Right::Primary(view)),
            (None, ReadAt::Newest) => cluster.reads_newest_here(partition).map(Right::InSync),
            (None, ReadAt::Snapshot(time)) => cluster.reads_here(partition, time).map(|_| Right::Confirmed(time)),
        }
    }

    /// After the look and before the answer.
    pub(super) fn holds(&self, cluster: &Cluster, partition: u16) -> bool {
        match self {
            Right::Primary(view) => cluster.may_answer(partition, *view),
            Right::InSync(version) => cluster.in_sync(partition) == Some(*version),
            Right::Confirmed(snapshot) => {
                cluster.answers_snapshot(partition, *snapshot);
                true
            }
        }
    }
}

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
        let leaf = match self.node.place_of_key(table, IndexId::PRIMARY, key)? {
            Place::Table => None,
            Place::Leaf(leaf) => Some(leaf),
            Place::Nowhere => return Ok(visit(None)),
            Place::Unknown => return Box::pin(self.get_somewhere(table, IndexId::PRIMARY, key, lock, visit)).await,
        };
        let info = leaf.as_ref().unwrap_or(table.info());
        let key = Key::of(key);
        let partition = self.node.partition_of(info.route.bucket_of_key(key.bytes, key.hash));
        self.count_reads(info, Some(IndexId::PRIMARY), 1);
        match self.effective_lock(lock) {
            None => {
                let view = self.read_view(info, true).await?;
                let mut visit = Some(visit);
                match self.read_now(info, partition, key, view, &mut visit) {
                    Some(result) => result,
                    None => {
                        let visit = visit.take().expect("not visited yet");
                        self.read_plain(info, partition, key, view, visit).await
                    }
                }
            }
            Some(lock) => {
                let own_before = self.own_before(info, key.bytes);
                self.read_locked(info, partition, key, lock, own_before, visit).await
            }
        }
    }

    /// A lookup by a key that does not tell the leaf. The statement's future is not to grow for what is rare: it is a future of its own.
    async fn get_somewhere<R: Send>(
        &mut self,
        table: &TableHandle,
        index: IndexId,
        key: &[u8],
        lock: Lock,
        visit: impl FnOnce(Option<RowView<'_>>) -> R + Send,
    ) -> Result<R, NodeError> {
        let mut visit = Visited::new(visit);
        self.get_in_leaves(table, index, key, lock, &mut |row| visit.show(row)).await?;
        Ok(visit.result())
    }

    /// A plain [`Self::get`] where nothing has to be waited for. `None`: it must be asked in that way; `visit` has not been called.
    pub fn get_now<R>(
        &mut self,
        table: &TableHandle,
        key: &[u8],
        visit: impl FnOnce(Option<RowView<'_>>) -> R,
    ) -> Option<Result<R, NodeError>> {
        if let Err(error) = self.check_running() {
            return Some(Err(error));
        }
        let leaf;
        let info = match self.node.place_of_key(table, IndexId::PRIMARY, key) {
            Ok(Place::Table) => &**table.info(),
            Ok(Place::Leaf(only)) => {
                leaf = only;
                &*leaf
            }
            Ok(Place::Nowhere | Place::Unknown) => return None,
            Err(error) => return Some(Err(error)),
        };
        if self.locks_plain_reads() || info.own.is_none() && self.needs_snapshot(true) {
            return None;
        }
        let key = Key::of(key);
        let partition = self.node.partition_of(info.route.bucket_of_key(key.bytes, key.hash));
        let view = match self.plain_view(info) {
            Ok(view) => view,
            Err(error) => return Some(Err(error)),
        };
        let read = self.read_now(info, partition, key, view, &mut Some(visit))?;
        self.count_reads(info, Some(IndexId::PRIMARY), 1);
        Some(read)
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
        if table.parts().is_some()
            && let Some(unique) = table.info().unique(index)
        {
            return Box::pin(self.get_by_global(table, unique, key, lock, visit)).await;
        }
        let info = match self.node.place_of_key(table, index, key)? {
            Place::Table => table.info().clone(),
            Place::Leaf(leaf) => leaf,
            Place::Nowhere => return Ok(visit(None)),
            Place::Unknown => return Box::pin(self.get_somewhere(table, index, key, lock, visit)).await,
        };
        let Some(unique) = info.unique(index) else { return Err(NodeError::StaleSchema) };
        self.count_reads(&info, Some(index), 1);
        let place = entries::locate(&unique.entries, key);
        let entry_partition = self.node.partition_of(place.bucket);
        let lock = self.effective_lock(lock);
        let mut visit = Some(visit);
        loop {
            self.check_killed()?;
            // A locking read looks at the newest entry without locking it: writers lock the row first and its entry second,
            // and so must readers, or the two would meet in deadlocks.
            let view = match lock {
                None => self.read_view(&info, true).await?,
                Some(_) => View { own_before: u32::MAX, at: ReadAt::Newest, conflict_after: None },
            };
            let now = match lock {
                None => self.read_now(&unique.entries, entry_partition, place.key(), view, &mut Some(named)),
                Some(_) => None,
            };
            let base = match now {
                Some(base) => base?,
                None => self.read_entry(unique, &place, entry_partition, view).await?,
            };
            let Some(base) = base else {
                if lock.is_some() {
                    self.check_entry_of_snapshot(unique, &place, entry_partition).await?;
                }
                if lock.is_some() && self.locks_ranges() {
                    let seen = self.lock_absence(&unique.entries, entry_partition, place.key()).await?;
                    if seen {
                        continue;
                    }
                }
                return Ok(visit.take().expect("called once")(None));
            };
            let base_key = Key::of(&base);
            let partition = self.node.partition_of(info.route.bucket_of_key(&base, base_key.hash));
            let visit_row = &mut visit;
            let check = move |row: Option<RowView<'_>>| match row {
                Some(row) if unique.keys.matches(&row, key) => {
                    Found::Row(visit_row.take().expect("called once")(Some(row)))
                }
                _ => Found::Other,
            };
            let found = match lock {
                None => {
                    let mut check = Some(check);
                    match self.read_now(&info, partition, base_key, view, &mut check) {
                        Some(found) => found?,
                        None => {
                            let check = check.take().expect("not visited yet");
                            self.read_plain(&info, partition, base_key, view, check).await?
                        }
                    }
                }
                Some(lock) => {
                    let own_before = self.own_before(&info, &base);
                    self.read_locked(&info, partition, base_key, lock, own_before, check).await?
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
                (Found::Other, None) if self.snapshot.is_none() => self.take_snapshot().await?,
                (Found::Other, None) => return Ok(visit.take().expect("called once")(None)),
            }
        }
    }

    /// What a locking point read hides of this statement's own writes: all, but not the row that the last `Duplicate` named.
    pub(super) fn own_before(&self, table: &TableInfo, key: &[u8]) -> u32 {
        match &self.duplicate {
            Some((id, named)) if *id == table.schema.id && named == key => u32::MAX,
            _ => self.statement,
        }
    }

    /// A plain read when nobody is at the partition and nothing is in its way, which is nearly always: without the states that a call
    /// which may wait carries along. `None`: it must be made as such a call. In a cluster it is made where the partition is led, or on an in-sync replica (rules 11, 33).
    #[inline]
    fn read_now<R>(
        &mut self,
        info: &TableInfo,
        partition: u16,
        key: Key<'_>,
        view: View,
        visit: &mut Option<impl FnOnce(Option<RowView<'_>>) -> R>,
    ) -> Option<Result<R, NodeError>> {
        if let Some(rows) = &info.own {
            let mut found = None;
            let show = &mut |seen: Seen<'_, '_>| {
                found = Some(visit.take().expect("visited once")(seen.row()));
                Verdict::Keep
            };
            let read = self.call_own(info, rows, view, &mut Op::Read { key }, show);
            return Some(read.map(|_| found.expect("a row that is read is shown")));
        }
        let node = &*self.node;
        // What it has touched must still be its own: the long way sees to that.
        if self.far.is_some() {
            return None;
        }
        let cluster = node.cluster();
        let mut right = None;
        let mut access = self.access(view);
        let id = info.schema.id;
        let read = node.partitions[partition as usize]
            .try_with(|p| {
                if let Some(cluster) = cluster {
                    right = Some(Right::of(cluster, partition, view.at)?);
                }
                (!self.is_undone_in(p)).then_some(())?;
                Some(p.read(id, key.bytes, key.hash, &mut access, |row| visit.take().expect("visited once")(row)))
            })
            .ok()
            .flatten();
        let observed = access.observed;
        let result = read?;
        let leads = matches!(right, None | Some(Right::Primary(_)));
        // What a replica cannot show its primary may.
        if !is_decided(&result) || result.is_err() && !leads {
            return None;
        }
        self.observed = self.observed.max(observed);
        match cluster.zip(right) {
            // What gave the right to look gives it still.
            Some((cluster, right)) if !right.holds(cluster, partition) => Some(Err(NodeError::NoPrimary { partition })),
            _ => Some(result.map_err(|stop| explain(stop, info))),
        }
    }

    pub(super) async fn read_plain<R: Send>(
        &mut self,
        info: &TableInfo,
        partition: u16,
        key: Key<'_>,
        view: View,
        visit: impl FnOnce(Option<RowView<'_>>) -> R + Send,
    ) -> Result<R, NodeError> {
        let mut visit = Visit::New(visit);
        self.call(info, partition, view, &mut Op::Read { key }, &mut |seen| visit.show(seen)).await?;
        Ok(visit.result())
    }

    pub(super) async fn read_locked<R: Send>(
        &mut self,
        info: &TableInfo,
        partition: u16,
        key: Key<'_>,
        (mode, wait): (LockMode, WaitPolicy),
        own_before: u32,
        visit: impl FnOnce(Option<RowView<'_>>) -> R + Send,
    ) -> Result<R, NodeError> {
        self.ensure_txn();
        self.touch(info, partition);
        let view = self.newest_view(own_before);
        let mut op = Op::ReadLocked { key, mode, wait, ranges: self.locks_ranges() };
        let mut visit = Visit::New(visit);
        self.call(info, partition, view, &mut op, &mut |seen| visit.show(seen)).await?;
        Ok(visit.result())
    }

    /// The base row's key that an index entry holds.
    pub(super) async fn read_entry(
        &mut self,
        unique: &UniqueIndex,
        place: &entries::Entry,
        partition: u16,
        view: View,
    ) -> Result<Option<Vec<u8>>, NodeError> {
        self.read_plain(&unique.entries, partition, place.key(), view, named).await
    }

    /// After a locking read by a whole key has failed because the row changed after the snapshot ([`NodeError::Changed`]): whether `wants` wants a form that a row has
    /// under this key, the one of the snapshot or the newest one that is committed. If not, there is no conflict, as in a scan: at this moment the statement has nothing to do with the row.
    pub async fn wants_changed(
        &mut self,
        table: &TableHandle,
        index: IndexId,
        key: &[u8],
        wants: &mut (dyn FnMut(RowView<'_>) -> bool + Send),
    ) -> Result<bool, NodeError> {
        let Some(parts) = table.parts() else { return self.wants_changed_of(table.info(), index, key, wants).await };
        if let Some(unique) = table.info().unique(index) {
            return self.wants_changed_by_global(table, unique, key, wants).await;
        }
        for leaf in self.node.leaves_of_key(table, parts, index, key)? {
            if self.wants_changed_of(&leaf, index, key, wants).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn wants_changed_of(
        &mut self,
        table: &Arc<TableInfo>,
        index: IndexId,
        key: &[u8],
        wants: &mut (dyn FnMut(RowView<'_>) -> bool + Send),
    ) -> Result<bool, NodeError> {
        let info = table.clone();
        let snapshot = self.newest_view(u32::MAX).conflict_after.map(ReadAt::Snapshot);
        for at in snapshot.into_iter().chain([ReadAt::Newest]) {
            let view = View { own_before: u32::MAX, at, conflict_after: None };
            let (base, unique) = match info.unique(index) {
                None if index == IndexId::PRIMARY => (key.to_vec(), None),
                None => return Err(NodeError::StaleSchema),
                Some(unique) => {
                    let place = entries::locate(&unique.entries, key);
                    let partition = self.node.partition_of(place.bucket);
                    match self.read_entry(unique, &place, partition, view).await? {
                        Some(base) => (base, Some(unique)),
                        None => continue,
                    }
                }
            };
            let base = Key::of(&base);
            let partition = self.node.partition_of(info.route.bucket_of_key(base.bytes, base.hash));
            let wanted = |row: Option<RowView<'_>>| match (row, unique) {
                (Some(row), Some(unique)) if !unique.keys.matches(&row, key) => {
                    // It has another key since the entry was read. What has this one now is not known: that is a conflict.
                    at == ReadAt::Newest
                }
                (Some(row), _) => wants(row),
                // As before; of the primary key it is an answer.
                (None, unique) => unique.is_some() && at == ReadAt::Newest,
            };
            if self.read_plain(&info, partition, base, view, wanted).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A locking read found no entry: fails when the transaction's snapshot has one, so that the row that it led to has
    /// gone or has another key now.
    async fn check_entry_of_snapshot(
        &mut self,
        unique: &UniqueIndex,
        place: &entries::Entry,
        partition: u16,
    ) -> Result<(), NodeError> {
        let Some(snapshot) = self.newest_view(u32::MAX).conflict_after else { return Ok(()) };
        let view = View { own_before: u32::MAX, at: ReadAt::Snapshot(snapshot), conflict_after: None };
        match self.read_entry(unique, place, partition, view).await? {
            Some(_) => Err(explain(Stop::Changed, &unique.entries)),
            None => Ok(()),
        }
    }

    /// SERIALIZABLE: keeps a missing key missing; `true` when it is there after all.
    pub(super) async fn lock_absence(
        &mut self,
        entries: &Arc<TableInfo>,
        partition: u16,
        key: Key<'_>,
    ) -> Result<bool, NodeError> {
        self.ensure_txn();
        self.touch(entries, partition);
        let view = self.newest_view(u32::MAX);
        self.call(entries, partition, view, &mut Op::LockAbsence { key }, &mut |_| Verdict::Keep).await.map(Done::is)
    }
}

/// The key of the base row that an entry names.
pub(super) fn named(entry: Option<RowView<'_>>) -> Option<Vec<u8>> {
    entry.map(|entry| entries::base_key(&entry))
}

/// A visitor of one row of a partitioned table, and what it has given.
pub(super) struct Visited<F, R> {
    visit: Option<F>,
    result: Option<R>,
}

impl<R, F: FnOnce(Option<RowView<'_>>) -> R> Visited<F, R> {
    pub(super) fn new(visit: F) -> Self {
        Visited { visit: Some(visit), result: None }
    }

    pub(super) fn show(&mut self, row: Option<RowView<'_>>) {
        let visit = self.visit.take().expect("a point read shows one row");
        self.result = Some(visit(row));
    }

    pub(super) fn result(self) -> R {
        self.result.expect("a point read shows one row, or that there is none")
    }
}

/// A visitor of one row, and what it has given.
pub(super) enum Visit<F, R> {
    New(F),
    Visiting,
    Visited(R),
}

impl<R, F: FnOnce(Option<RowView<'_>>) -> R> Visit<F, R> {
    pub(super) fn show(&mut self, seen: Seen<'_, '_>) -> Verdict {
        let Visit::New(visit) = std::mem::replace(self, Visit::Visiting) else {
            unreachable!("a point read shows one row")
        };
        *self = Visit::Visited(visit(seen.row()));
        Verdict::Keep
    }

    pub(super) fn result(self) -> R {
        match self {
            Visit::Visited(result) => result,
            _ => unreachable!("a point read shows one row"),
        }
    }
}

fn is_decided<R>(read: &Result<R, Stop>) -> bool {
    !matches!(read, Err(Stop::Committing | Stop::Prepared(_)))
}
