//! Point reads: consistent ones, which never wait for a lock, and locking ones, which see the newest version.
//!
//! A locking read looks before it locks: a row that nobody is changing and that is absent is not locked at all. After it got
//! the lock it looks again, and gives back a lock that turned out to be for nothing.

use super::fragment::Fragment;
use super::locks::{self, LockTable, Mode, Taken};
use super::side::RowKey;
use super::transactions::TxnTable;
use super::versions::{Sight, VersionTable, flags};
use super::{Access, LockMode, Partition, ReadAt, Stop, WaitPolicy};
use rauk_types::{RowView, TableId};

/// Whether the row's newest committed version, a tombstone included, is later than what the transaction may overwrite.
pub(super) fn changed_after(fragment: &Fragment, versions: &VersionTable, key: RowKey, access: &Access<'_>) -> bool {
    let Some(after) = access.conflict_after else { return false };
    let header = fragment.rows.header(key.row());
    header.flags & flags::UNCOMMITTED == 0
        && header.time > after
        // Own pending: the lock was taken before, and nobody else has written since.
        && access.txn.is_none_or(|t| versions.own_top(key, header, t.id).is_none())
}

/// Of a key without a row: whether the transaction's snapshot certainly had none either.
pub(super) fn knows_missing(fragment: &Fragment, access: &Access<'_>) -> Result<(), Stop> {
    match access.conflict_after {
        Some(after) if after < fragment.removed_floor => Err(Stop::SnapshotTooOld),
        _ => Ok(()),
    }
}

/// Whether somebody else has pending images on the row.
pub(super) fn others_pending(fragment: &Fragment, versions: &VersionTable, key: RowKey, access: &Access<'_>) -> bool {
    let top = versions.pending(key, fragment.rows.header(key.row()));
    top.is_some_and(|top| access.txn.is_none_or(|t| t.id != top.owner.id))
}

impl Partition {
    /// A consistent read without a lock. `visit` runs under the caller's hold of the partition and must be short.
    pub fn read<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        hash: u64,
        access: &mut Access<'_>,
        visit: impl FnOnce(Option<RowView<'_>>) -> R,
    ) -> Result<R, Stop> {
        self.about_to_look(access.at);
        let fragment = self.fragments.get(&table).ok_or(Stop::StaleSchema)?;
        let Some(id) = fragment.find(key, hash) else {
            return match access.at {
                ReadAt::Snapshot(time) if time < fragment.removed_floor => Err(Stop::SnapshotTooOld),
                _ => Ok(visit(None)),
            };
        };
        let at = access.at;
        let sight = self.versions.see(fragment, RowKey::new(table, id), at, access)?;
        Ok(visit(sight.map(|s| fragment.view(s.layout, s.bytes))))
    }

    /// Locks the row (a missing row is not locked) and reads its newest version. With
    /// [`WaitPolicy::SkipLocked`] a row locked by others reads as missing.
    #[expect(clippy::too_many_arguments, reason = "a key is three of them")]
    pub fn read_locked<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        hash: u64,
        mode: LockMode,
        wait: WaitPolicy,
        access: &mut Access<'_>,
        visit: impl FnOnce(Option<RowView<'_>>) -> R,
    ) -> Result<R, Stop> {
        let txn = access.txn.expect("a locking read belongs to a transaction");
        self.about_to_compare(access);
        let fragment = self.fragments.get(&table).ok_or(Stop::StaleSchema)?;
        let Some(id) = fragment.find(key, hash) else {
            knows_missing(fragment, access)?;
            return Ok(visit(None));
        };
        let rk = RowKey::new(table, id);
        let absent = !others_pending(fragment, &self.versions, rk, access)
            && self.versions.see(fragment, rk, ReadAt::Newest, access)?.is_none();
        let (versions, lock_table, txns) = (&self.versions, &mut self.locks, &mut self.txns);
        let result = if absent {
            locks::drop_wait(lock_table, txns, txn.id, rk);
            Ok(None)
        } else {
            lock_and_see(fragment, versions, lock_table, txns, rk, mode.into(), wait, access)
        };
        let result = match result {
            Err(Stop::WouldWait) if wait == WaitPolicy::SkipLocked => Ok(visit(None)),
            Err(stop) => Err(stop),
            Ok(None) if changed_after(fragment, &self.versions, rk, access) => Err(Stop::Changed),
            Ok(None) => Ok(visit(None)),
            Ok(Some((_, taken))) if changed_after(fragment, &self.versions, rk, access) => {
                locks::give_back(&mut self.locks, &mut self.txns, txn.id, rk, taken);
                Err(Stop::Changed)
            }
            Ok(Some((sight, _))) => Ok(visit(Some(fragment.view(sight.layout, sight.bytes)))),
        };
        self.settle();
        result
    }
}

/// Locks a row that is there and gives its newest version; holds nothing new when it gives `None` or an error.
#[expect(clippy::too_many_arguments, reason = "parts of one partition, borrowed apart")]
pub(super) fn lock_and_see<'a>(
    fragment: &'a Fragment,
    versions: &'a VersionTable,
    lock_table: &mut LockTable,
    txns: &mut TxnTable,
    rk: RowKey,
    mode: Mode,
    wait: WaitPolicy,
    access: &mut Access<'_>,
) -> Result<Option<(Sight<'a>, Taken)>, Stop> {
    let txn = access.txn.expect("a locking read belongs to a transaction");
    let fresh = versions.seats.owner(fragment.rows.header(rk.row())).map(|(owner, _)| owner);
    let taken = locks::take(lock_table, txns, txn, rk, mode, wait, fresh)?;
    match versions.see(fragment, rk, ReadAt::Newest, access) {
        Ok(Some(sight)) => Ok(Some((sight, taken))),
        other => {
            locks::give_back(lock_table, txns, txn.id, rk, taken);
            match other {
                // A key-share lock stands beside an exclusive one; what the row will be is not known yet.
                Err(Stop::Prepared(_)) if wait != WaitPolicy::Wait => Err(Stop::WouldWait),
                other => other.map(|_| None),
            }
        }
    }
}
