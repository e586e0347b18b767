//! Rows that are locked exclusively and read, many in one call.
//!
//! A statement that changes rows which it has found without locking them (an UPDATE of several tables, INSERT … ON
//! DUPLICATE KEY UPDATE) would ask for the lock of each; here up to [`MOST_KEYS`] rows of a partition are one operation
//! ([`Op::TakeMany`]), which is one question where another node leads the partition. It waits for locks as a locking
//! read of one row does. Within a partition the rows are locked in the order of their keys, so that two statements that
//! take the same rows do not wait for each other.
//!
//! [`Transaction::standing`] takes all rows that are in the way of others: those that have one of their keys, primary or
//! unique. The entries of unique indexes are looked up together (as [`super::many`] does it), without a lock, since
//! whoever writes locks the row first and its entry second. A row that has another key by then is told from one that is
//! in the way: then nobody knows what stands where, and the caller goes row by row.

use super::standing::Standing;
use super::write::entry_keys;
use super::{Transaction, View};
use crate::bulk::Keys;
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::ops::operation::{Key, Op, Seen};
use crate::ops::serve::MOST_KEYS;
use crate::table::{TableInfo, entries};
use rauk_kernel::{LockMode, Verdict, WaitPolicy};
use rauk_types::{IndexId, RowView, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of rows in the way that are kept: rows that are longer are taken one by one.
const MOST_BYTES: usize = 16 << 20;

/// Is shown the number of a key and its row. `false`: no more are wanted, though some may still come.
type VisitTaken<'v> = dyn FnMut(usize, Option<RowView<'_>>) -> bool + Send + 'v;

impl Transaction {
    /// Locks the rows with these primary keys exclusively and shows each in its newest state, in any order: what the
    /// statement has written stays hidden. `visit` runs while a partition is held.
    pub async fn take_many(
        &mut self,
        table: &TableHandle,
        keys: &Keys,
        visit: &mut VisitTaken<'_>,
    ) -> Result<(), NodeError> {
        self.check_running()?;
        self.check_killed()?;
        let view = self.newest_view(self.statement);
        if table.parts().is_none() {
            return self.take_rows(table.info(), keys, view, visit).await;
        }
        for number in 0..keys.len() {
            let exclusive = Some((LockMode::Exclusive, WaitPolicy::Wait));
            if !self.get(table, keys.get(number), exclusive, |row| visit(number, row)).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Locks and reads the rows that are in the way of others which are to be inserted. Hidden keys that these lack are
    /// filled. `None`: it is not known, and each row has to find out by itself.
    pub async fn standing(
        &mut self,
        table: &TableHandle,
        rows: &mut [Vec<Value>],
    ) -> Result<Option<Standing>, NodeError> {
        let info = table.info().clone();
        if info.parts.is_some() {
            return Ok(None);
        }
        self.check_writable_table(&info)?;
        self.check_killed()?;
        self.ensure_txn();
        // A missing parent may be an error before a row that is in the way is one.
        self.lock_parents(table, rows.iter().map(Vec::as_slice)).await?;
        if self.has_parents(table) && !rows.iter().all(|row| self.knows_parents(&info, row)) {
            return Ok(None);
        }
        self.fill_hidden_keys(&info, rows).await?;
        let mut standing = Standing::new(info.clone());
        let mut looked: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut keys = Keys::default();
        let mut key = Vec::with_capacity(32);
        for row in rows.iter() {
            key.clear();
            info.primary.encode_values(row, &mut key);
            if !looked.contains(&key) {
                keys.push(&key);
                looked.insert(key.clone());
            }
        }
        let mut bytes = 0;
        if !self.take_standing(&keys, &mut standing, &mut bytes, &mut |_, _| true).await? {
            return Ok(None);
        }
        for unique in &info.uniques {
            let wanted: BTreeSet<Vec<u8>> = rows.iter().flat_map(|row| entry_keys(unique, row)).collect();
            let wanted: Vec<Vec<u8>> = wanted.into_iter().filter(|key| !standing.has(unique.id, key)).collect();
            keys.clear();
            wanted.iter().for_each(|key| keys.push(&entries::locate(&unique.entries, key).key));
            let mut bases: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
            let mut done = vec![false; keys.len()];
            let mut named = |number: usize, entry: Option<RowView<'_>>| {
                bases.extend(entry.map(|entry| (entries::base_key(&entry), number)));
                true
            };
            self.read_many(&unique.entries, &keys, self.entry_view(), &mut done, &mut named).await?;
            // One that is locked already had another key then.
            if bases.keys().any(|base| looked.contains(base)) {
                return Ok(None);
            }
            let before = standing.len();
            keys.clear();
            bases.keys().for_each(|base| keys.push(base));
            let numbers: Vec<usize> = bases.values().copied().collect();
            let is_it = &mut |number: usize, row: &RowView<'_>| unique.keys.matches(row, &wanted[numbers[number]]);
            if !self.take_standing(&keys, &mut standing, &mut bytes, is_it).await? {
                return Ok(None);
            }
            if standing.len() < before + bases.len() {
                return Ok(None);
            }
            looked.extend(bases.into_keys());
        }
        Ok(Some(standing))
    }

    /// Takes rows and notes those that there are. `false`: one of them `is_it` does not want, or they are too large.
    async fn take_standing(
        &mut self,
        keys: &Keys,
        standing: &mut Standing,
        bytes: &mut usize,
        is_it: &mut (dyn FnMut(usize, &RowView<'_>) -> bool + Send),
    ) -> Result<bool, NodeError> {
        let info = standing.table().clone();
        let mut known = true;
        let mut taken = Vec::new();
        let view = self.write_view();
        self.take_rows(&info, keys, view, &mut |number, row| {
            let Some(row) = row.filter(|_| known) else { return known };
            *bytes += row.size();
            known = *bytes <= MOST_BYTES && is_it(number, &row);
            if known {
                taken.push((keys.get(number).to_vec(), row.to_values()));
            }
            known
        })
        .await?;
        // In an order that does not depend on who leads what.
        taken.sort_by(|a, b| a.0.cmp(&b.0));
        taken.into_iter().for_each(|(key, row)| standing.stands(key, row));
        Ok(known)
    }

    async fn take_rows(
        &mut self,
        info: &TableInfo,
        keys: &Keys,
        view: View,
        visit: &mut VisitTaken<'_>,
    ) -> Result<(), NodeError> {
        self.ensure_txn();
        self.count_reads(info, Some(IndexId::PRIMARY), keys.len() as u64);
        let mut by_partition: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for number in 0..keys.len() {
            by_partition.entry(self.place(info, keys.get(number)).1).or_default().push(number);
        }
        for (partition, mut numbers) in by_partition {
            numbers.sort_by_key(|number| keys.get(*number));
            self.touch(info, partition);
            let mut left = &numbers[..];
            while !left.is_empty() {
                let some = &left[..left.len().min(MOST_KEYS)];
                let (mut seen, mut wanted) = (0, true);
                let show = &mut |row: Seen<'_, '_>| {
                    wanted &= visit(some[seen], row.row());
                    seen += 1;
                    if wanted { Verdict::Keep } else { Verdict::KeepAndStop }
                };
                let keys = some.iter().map(|number| Key::of(keys.get(*number))).collect();
                self.call(info, partition, view, &mut Op::TakeMany { keys, done: 0 }, show).await?;
                if !wanted {
                    return Ok(());
                }
                // Large rows come in several answers.
                left = &left[seen..];
            }
        }
        Ok(())
    }
}
