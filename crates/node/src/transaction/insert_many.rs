//! Inserts of many rows in one call, for statements that bring many.
//!
//! The rows are encoded into one buffer and sorted by partition; each partition that is idle takes up to
//! [`rauk_kernel::MANY`] of them a hold; then the entries of unique indexes, in the same way. What is not so simple is
//! left to the caller, who inserts it row by row ([`Transaction::insert`]): a row whose key is there, and whatever
//! comes behind a partition that is busy or has no memory. Nothing waits here, and rows of one key are not passed by
//! each other.
//!
//! An entry that finds no place undoes the whole call, since writes are undone by their number and the rows of a call
//! have one. Of a table with foreign keys the parents are locked first (`super::parents`); rows are written here up to
//! the first whose parents are not all known to be locked.
//!
//! Left out altogether: temporary tables, and clusters, where only the parents are locked together.

use super::Transaction;
use super::call::explain;
use super::write::entry_keys;
use crate::bulk::Keys;
use crate::bulk::groups::Groups;
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::executor::Class;
use crate::table::io::Written;
use crate::table::{TableInfo, entries};
use rauk_kernel::MANY;
use rauk_types::{Value, row};
use smallvec::SmallVec;

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
        let stored_here = table.info().own.is_none() && self.node.cluster().is_none();
        stored_here || self.has_parents(table)
    }

    /// Inserts those of the rows that need no more than their place, and marks them in `done`. `rows`: the values of
    /// each, one a column; a hidden key that is missing is filled.
    pub async fn insert_many(
        &mut self,
        table: &TableHandle,
        rows: &mut [Vec<Value>],
        done: &mut [bool],
    ) -> Result<(), NodeError> {
        assert_eq!(rows.len(), done.len(), "one mark for each row");
        if !self.takes_many(table) {
            return Ok(());
        }
        self.lock_parents(table, rows).await?;
        if self.node.cluster().is_some() {
            return Ok(());
        }
        let info = table.info();
        // What is being built is kept row by row.
        if info.shared.building.is_some() {
            return Ok(());
        }
        self.check_writable_table(info)?;
        self.check_killed()?;
        let columns = info.schema.columns.len();
        for row in rows.iter_mut().filter(|_| info.schema.hidden_key) {
            if row.last().is_none_or(Value::is_null) || row.len() < columns {
                row.truncate(columns - 1);
                row.push(Value::UInt(self.node.hidden_key(info).await?));
            }
        }
        let mut count = rows.len();
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
        if inserted > 0 && !info.uniques.is_empty() && !self.insert_all_entries(info, rows, &encoded.keys, done).await?
        {
            self.undo_to(number);
            done.fill(false);
            return Ok(());
        }
        self.count_writes(info, Written::Inserted, inserted);
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
            let table = &unique.entries;
            let mut encoded = Encoded::default();
            for (number, row) in rows.iter().enumerate().filter(|(number, _)| marked[*number]) {
                for index_key in entry_keys(unique, row) {
                    encoded.keys.push(&entries::locate(table, &index_key).key);
                    encoded.images.extend(entries::encode(table, &index_key, base_keys.get(number)));
                    encoded.ends.push(encoded.images.len());
                }
            }
            let mut done = vec![false; encoded.ends.len()];
            self.insert_encoded(table, &encoded, true, &mut done).await?;
            if done.contains(&false) {
                return Ok(false);
            }
        }
        Ok(true)
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
                p.insert_many(info.schema.id, probes, &list, &access, &mut |i| {
                    done[groups.number(&group, i)] = true;
                    inserted += 1;
                })
            });
            match tried {
                Ok(result) => result.map_err(|stop| explain(stop, info))?,
                Err(_) => busy = Some(group.partition),
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
}
