//! Inserts of many rows in one call, for statements that bring many.
//!
//! The rows are encoded into one buffer and sorted by partition; each partition takes many of them together, and then
//! the entries of unique indexes, in the same way.
//!
//! *On a node that is alone* a partition that is idle takes up to [`rauk_kernel::MANY`] rows a hold. What is not so
//! simple is left to the caller, who inserts it row by row ([`Transaction::insert`]): a row whose key is there, and
//! whatever comes behind a partition that is busy or has no memory. Nothing waits here.
//!
//! *In a cluster* up to [`MOST_ROWS`] rows are one operation ([`Op::InsertMany`]), so one question where another node
//! leads the partition. It waits for locks as an insert of one row does, and ends before the first row whose key is
//! there: that, and whatever comes behind it in its partition, is left to the caller.
//!
//! In both, rows of one key are not passed by each other. An entry that finds no place undoes the whole call, since
//! writes are undone by their number and the rows of a call have one. Of a table with foreign keys the parents are
//! locked first (`super::parents`); rows are written here up to the first whose parents are not all known to be locked.
//!
//! Left out: temporary tables, and tables on which something is being built ([`crate::table::building`]).

use super::Transaction;
use super::call::explain;
use super::foreign::Checked;
use super::write::entry_keys;
use crate::bulk::Keys;
use crate::bulk::groups::Groups;
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::executor::Class;
use crate::ops::operation::{Done, Key, KeyedRow, Op};
use crate::ops::serve::MOST_ROWS;
use crate::table::io::Written;
use crate::table::{TableInfo, UniqueIndex, entries};
use rauk_kernel::{MANY, Verdict};
use rauk_types::{Value, row};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Rows that a statement brings together.
const ALONE: usize = 256;
pub(super) const IN_CLUSTER: usize = 1024;
/// Of a table with more leaves, rows are brought together as if it had so many.
const MOST_LEAVES: usize = 64;
/// Bytes of rows in one operation of a cluster, or one row.
const MOST_BYTES: usize = 256 << 10;

/// Rows of one table with their keys, encoded one behind the other.
#[derive(Default)]
struct Encoded {
    keys: Keys,
    images: Vec<u8>,
    ends: Vec<usize>,
}

impl Encoded {
    fn image(&self, number: usize) -> &[u8] {
        &self.images[number.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[number]]
    }
}

impl Transaction {
    /// Whether [`Transaction::insert_many`] can do anything for a table.
    pub fn takes_many(&self, table: &TableHandle) -> bool {
        table.info().own.is_none()
    }

    /// How many rows are worth to be brought together: in a cluster each partition's share is a question.
    pub fn rows_together(&self) -> usize {
        if self.node.cluster().is_some() { IN_CLUSTER } else { ALONE }
    }

    /// The same of rows that are inserted into this table: of a partitioned one each leaf gets its own share.
    pub fn inserts_together(&self, table: &TableHandle) -> usize {
        self.rows_together() * table.parts().map_or(1, |parts| parts.count().clamp(1, MOST_LEAVES))
    }

    /// Inserts those of the rows that need no more than their place, and marks them in `done`. `rows`: the values of
    /// each, one a column; a hidden key that is missing is filled.
    pub async fn insert_many(
        &mut self,
        table: &TableHandle,
        rows: &mut [Vec<Value>],
        done: &mut [bool],
    ) -> Result<(), NodeError> {
        match table.parts() {
            None => self.insert_together(table, rows, false, done).await,
            Some(parts) => Box::pin(self.insert_many_into_leaves(table, parts, rows, done)).await,
        }
    }

    /// Inserts all of the rows, or none: of a table with unique indexes. `false`: some row needs more than its place.
    pub async fn insert_all(&mut self, table: &TableHandle, rows: &mut [Vec<Value>]) -> Result<bool, NodeError> {
        if table.parts().is_some() {
            return Ok(false);
        }
        assert!(!table.info().uniques.is_empty(), "what is undone needs a number of its own");
        let mut done = vec![false; rows.len()];
        self.insert_together(table, rows, true, &mut done).await?;
        Ok(!done.contains(&false))
    }

    /// Of a table that has rows. `whole`: all or none.
    pub(super) async fn insert_together(
        &mut self,
        table: &TableHandle,
        rows: &mut [Vec<Value>],
        whole: bool,
        done: &mut [bool],
    ) -> Result<(), NodeError> {
        assert_eq!(rows.len(), done.len(), "one mark for each row");
        if !self.takes_many(table) {
            return Ok(());
        }
        let info = table.info();
        // What is being built is kept row by row.
        if info.shared.building.is_some() {
            return Ok(());
        }
        self.lock_parents(table, rows.iter().map(Vec::as_slice)).await?;
        self.check_writable_table(info)?;
        self.check_killed()?;
        self.fill_hidden_keys(info, rows).await?;
        let all = rows.len();
        let mut count = all;
        if self.has_parents(table) {
            count = rows.iter().position(|row| !self.knows_parents(info, row)).unwrap_or(count);
        }
        let (rows, done) = (&rows[..count], &mut done[..count]);
        let mut encoded = Encoded::default();
        let mut key = Vec::with_capacity(32);
        for values in rows {
            key.clear();
            info.primary.encode_values(values, &mut key);
            encoded.keys.push(&key);
            let start = encoded.images.len();
            row::encode_row(&info.schema, values, &mut encoded.images);
            self.node.check_commit_size(encoded.images.len() - start)?;
            encoded.ends.push(encoded.images.len());
        }
        self.ensure_txn();
        if !info.uniques.is_empty() {
            self.write_number += 1;
        }
        let number = self.write_number;
        let inserted = self.insert_encoded(info, &encoded, false, done).await?;
        if inserted > 0 && !info.uniques.is_empty() {
            let lacks_some = whole && inserted < all as u64;
            if lacks_some || !self.insert_all_entries(info, rows, &encoded.keys, done).await? {
                self.undo_to(number);
                done.fill(false);
                return Ok(());
            }
        }
        self.count_writes(info, Written::Inserted, inserted);
        Ok(())
    }

    /// Gives rows that are to be inserted the hidden keys that they lack.
    pub(super) async fn fill_hidden_keys(
        &mut self,
        info: &TableInfo,
        rows: &mut [Vec<Value>],
    ) -> Result<(), NodeError> {
        let columns = info.schema.columns.len();
        for row in rows.iter_mut().filter(|_| info.schema.hidden_key) {
            if row.last().is_none_or(Value::is_null) || row.len() < columns {
                row.truncate(columns - 1);
                row.push(Value::UInt(self.node.hidden_key(info).await?));
            }
        }
        Ok(())
    }

    /// Enters the rows that are marked into all unique indexes. `false`: some entry found no place.
    async fn insert_all_entries(
        &mut self,
        info: &TableInfo,
        rows: &[Vec<Value>],
        base_keys: &Keys,
        marked: &[bool],
    ) -> Result<bool, NodeError> {
        for unique in &info.uniques {
            let marked = rows.iter().enumerate().filter(|(number, _)| marked[*number]);
            let entries = marked.flat_map(|(number, row)| {
                entry_keys(unique, row).into_iter().map(move |key| (key, base_keys.get(number)))
            });
            if !self.enter_together(unique, entries).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Enters rows into a unique index, each by a key and with its primary key. `false`: some key is taken, and others
    /// may have been entered.
    pub(crate) async fn enter_together<'b>(
        &mut self,
        unique: &UniqueIndex,
        entries: impl Iterator<Item = (Vec<u8>, &'b [u8])>,
    ) -> Result<bool, NodeError> {
        let table = &unique.entries;
        let mut encoded = Encoded::default();
        for (key, base) in entries {
            encoded.keys.push(&entries::locate(table, &key).key);
            encoded.images.extend(entries::encode(table, &key, base));
            encoded.ends.push(encoded.images.len());
        }
        self.ensure_txn();
        let mut done = vec![false; encoded.ends.len()];
        self.insert_encoded(table, &encoded, true, &mut done).await?;
        Ok(!done.contains(&false))
    }

    /// Gives how many were inserted.
    async fn insert_encoded(
        &mut self,
        info: &TableInfo,
        encoded: &Encoded,
        are_entries: bool,
        done: &mut [bool],
    ) -> Result<u64, NodeError> {
        let node = self.node.clone();
        let groups = Groups::new(&node, info, &encoded.keys, done);
        if node.cluster().is_some() {
            let inserted: Checked<'_, u64> =
                Box::pin(self.insert_in_cluster(info, encoded, are_entries, &groups, done));
            return inserted.await;
        }
        let (mut busy, mut all) = (None, 0);
        for group in groups.iter().filter(|group| group.len() > 0) {
            if busy == Some(group.partition) {
                continue;
            }
            self.touch(info, group.partition);
            let probes = &groups.probes(&group, &encoded.keys)[..group.len()];
            let images = (0..group.len()).map(|i| encoded.image(groups.number(&group, i)));
            let list: SmallVec<[&[u8]; MANY]> = images.collect();
            let mut inserted = 0;
            let access = self.access(if are_entries { self.entry_view() } else { self.write_view() });
            let tried = node.partitions[usize::from(group.partition)].try_with(|p| {
                (!self.is_undone_in(p)).then(|| {
                    p.insert_many(info.schema.id, probes, &list, &access, &mut |i| {
                        done[groups.number(&group, i)] = true;
                        inserted += 1;
                    })
                })
            });
            match tried {
                Ok(Some(result)) => result.map_err(|stop| explain(stop, info))?,
                Ok(None) | Err(_) => busy = Some(group.partition),
            }
            if inserted < group.len() {
                // Of the partition's later rows one may have the key of one that was left.
                busy = Some(group.partition);
            }
            all += inserted as u64;
            self.worked(Class::Scan.weight()).await;
        }
        Ok(all)
    }

    /// The same, partition by partition, wherever each is led.
    async fn insert_in_cluster(
        &mut self,
        info: &TableInfo,
        encoded: &Encoded,
        are_entries: bool,
        groups: &Groups,
        done: &mut [bool],
    ) -> Result<u64, NodeError> {
        let mut by_partition: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for group in groups.iter() {
            let numbers = (0..group.len()).map(|i| groups.number(&group, i));
            by_partition.entry(group.partition).or_default().extend(numbers);
        }
        let mut all = 0;
        for (partition, numbers) in by_partition {
            let mut left = &numbers[..];
            while !left.is_empty() {
                let bytes = |number| encoded.image(number).len() + encoded.keys.get(number).len();
                let (some, rest) = left.split_at(fitting(left, bytes));
                let new =
                    |&number: &usize| KeyedRow { key: Key::of(encoded.keys.get(number)), row: encoded.image(number) };
                let mut op = Op::InsertMany { rows: some.iter().map(new).collect(), done: 0 };
                let view = if are_entries { self.entry_view() } else { self.write_view() };
                let Done::Count(inserted) = self.call(info, partition, view, &mut op, &mut |_| Verdict::Keep).await?
                else {
                    unreachable!("it gives a count");
                };
                let inserted = inserted as usize;
                some[..inserted].iter().for_each(|number| done[*number] = true);
                all += inserted as u64;
                left = if inserted == some.len() { rest } else { &[] };
            }
        }
        Ok(all)
    }
}

/// How many of these rows, by their numbers, go in one operation: one at least.
pub(super) fn fitting(numbers: &[usize], bytes_of: impl Fn(usize) -> usize) -> usize {
    let mut bytes = 0;
    let fit = numbers.iter().take(MOST_ROWS).take_while(|number| {
        let is_first = bytes == 0;
        bytes += bytes_of(**number);
        is_first || bytes <= MOST_BYTES
    });
    fit.count()
}
