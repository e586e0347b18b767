//! Changes of many rows that a statement has locked, in a cluster.
//!
//! A statement that changes many rows has found and locked them. To write each by itself would be a question and an
//! answer a row wherever another node leads the partition, and one more for each entry of a unique index that changes;
//! here up to [`MOST_ROWS`] rows of a partition are one operation ([`Op::UpdateMany`], [`Op::DeleteMany`],
//! [`Op::InsertMany`]).
//!
//! | call | rows | what can be in the way |
//! |---|---|---|
//! | [`Transaction::change_many`] | all updated with the keys that they had, or all deleted | nothing: they are locked. One that the statement itself has deleted is passed over |
//! | [`Transaction::change_all`] | updated, deleted, inserted; keys may change | a key that is taken, a parent, a child: then nothing is written, and the caller goes row by row |
//!
//! *Keys that change.* Row by row, a key must be free when its row comes: `SET u = u + 1` meets the next row's old key,
//! unless that has been changed before. Which of the rows meet others so is found first, from nothing but these rows
//! ([`Transaction::meet_each_other`]); the caller writes them by themselves, each in its turn. What comes of the others
//! is written by key, in the table and in each unique index: a key that a row leaves and another one takes is one
//! update of what is stored under it. Rows that are not here may have a key all the same; that is found when it is
//! inserted.
//!
//! *Foreign keys.* Parents are locked together before (`super::parents`); children of rows that are deleted are looked
//! for together afterwards (`super::childless`). If a parent is not found, or a child is, nothing is written.
//!
//! Left to [`Transaction::update`] and [`Transaction::delete`], row by row: a node that is alone, where a call costs no
//! message; rows that others refer to by what changes ([`Transaction::stands_apart`]); temporary tables, and tables on
//! which something is being built.

use super::Transaction;
use super::View;
use super::insert_many::{IN_CLUSTER, fitting};
use super::write::{entry_keys, kept_bytes};
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::ops::operation::{Done, Key, KeyedRow, Op};
#[cfg(doc)]
use crate::ops::serve::MOST_ROWS;
use crate::table::io::Written;
use crate::table::{TableInfo, entries};
use rauk_kernel::Verdict;
use rauk_types::schema::IndexSchema;
use rauk_types::{IndexKind, Value, row};
use std::collections::{BTreeMap, BTreeSet};

/// A row that is written.
pub struct ChangedRow {
    /// As it was read with an exclusive lock; `None`: it is inserted.
    pub old: Option<Vec<Value>>,
    /// What takes its place; `None`: it is deleted.
    pub new: Option<Vec<Value>>,
}

/// What is done with a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Update,
    Delete,
    Insert,
}

/// A key and what is stored there from now on.
struct Write {
    number: usize,
    key: Vec<u8>,
    image: Option<Vec<u8>>,
}

impl Write {
    fn bytes(&self) -> usize {
        self.key.len() + self.image.as_ref().map_or(0, Vec::len)
    }
}

/// By key: the number of the row that has it before, and of the one that has it afterwards.
#[derive(Default)]
struct Net(BTreeMap<Vec<u8>, (Option<usize>, Option<usize>)>);

impl Net {
    /// `false`: two rows would have the key.
    #[must_use]
    fn note(&mut self, key: Vec<u8>, number: usize, is_new: bool) -> bool {
        let (before, after) = self.0.entry(key).or_default();
        if is_new { after.replace(number) } else { before.replace(number) }.is_none()
    }

    /// What is done with each key, the deletions first: `image` makes what is stored for a row, `None` if that is
    /// stored already.
    fn writes(
        self,
        mut image: impl FnMut(&[u8], Option<usize>, usize) -> Result<Option<Vec<u8>>, NodeError>,
    ) -> Result<[(Act, Vec<Write>); 3], NodeError> {
        let (mut deletes, mut updates, mut inserts) = (Vec::new(), Vec::new(), Vec::new());
        for (key, held) in self.0 {
            match held {
                (Some(number), None) => deletes.push(Write { number, key, image: None }),
                (before, Some(number)) => {
                    let Some(image) = image(&key, before, number)? else { continue };
                    let writes = if before.is_some() { &mut updates } else { &mut inserts };
                    writes.push(Write { number, key, image: Some(image) });
                }
                (None, None) => unreachable!("a key is noted with a row"),
            }
        }
        Ok([(Act::Delete, deletes), (Act::Update, updates), (Act::Insert, inserts)])
    }
}

impl Transaction {
    /// How many changed rows of a table are worth to be brought together; 1: none. `deletes`: the rows go.
    pub fn changes_together(&self, table: &TableHandle, deletes: bool) -> usize {
        let info = table.info();
        let is_plain = info.own.is_none() && info.parts.is_none() && !info.shared.building.is_some();
        // That there are no children is kept so.
        let keeps = deletes && self.is_parent(table) && self.locks_ranges();
        if is_plain && !keeps && self.node.cluster().is_some() { IN_CLUSTER } else { 1 }
    }

    /// Whether children of rows that go are looked for.
    pub fn is_parent(&self, table: &TableHandle) -> bool {
        let info = table.info();
        self.checks_relations(info) && info.shared.children.any()
    }

    /// Whether an update of a row is one of that row alone: it keeps its keys, and no other table has to be looked at.
    pub fn keeps_keys(&self, table: &TableHandle, old: &[Value], new: &[Value]) -> bool {
        let info = table.info();
        let is_key = |index: &IndexSchema| index.kind == IndexKind::Primary || index.entry_table.is_some();
        let mut parts = info.schema.indexes.iter().filter(|index| is_key(index)).flat_map(|index| &index.parts);
        let mut refers = info.references.iter().filter(|_| self.checks_relations(info)).flat_map(|to| &to.columns);
        parts.all(|part| old[part.column] == new[part.column])
            && refers.all(|&column| old[column] == new[column])
            && self.stands_apart(table, old, new)
    }

    /// Whether no children have to be seen to for an update of a row, and what was read of it is what it is: columns
    /// that others may refer to have an index and stay, and the statement has not cascaded.
    pub fn stands_apart(&self, table: &TableHandle, old: &[Value], new: &[Value]) -> bool {
        let info = table.info();
        if !self.checks_relations(info) {
            return true;
        }
        let mut parts = info.schema.indexes.iter().flat_map(|index| &index.parts);
        !self.has_cascaded() && (!info.shared.children.any() || parts.all(|part| old[part.column] == new[part.column]))
    }

    /// Of rows that are updated one after another: which of them want a key that another one of them has by then. Such a
    /// row stays as it is.
    pub fn meet_each_other(table: &TableHandle, rows: &[ChangedRow]) -> Vec<bool> {
        let info = table.info();
        // Each with the number of its index.
        let keys_of = |row: &Option<Vec<Value>>| {
            let mut keys = Vec::with_capacity(1 + info.uniques.len());
            if let Some(row) = row {
                let mut key = Vec::with_capacity(32);
                info.primary.encode_values(row, &mut key);
                keys.push((0, key));
                for (number, unique) in info.uniques.iter().enumerate() {
                    keys.extend(entry_keys(unique, row).into_iter().map(|key| (number + 1, key)));
                }
            }
            keys
        };
        let mut held: BTreeSet<(usize, Vec<u8>)> = rows.iter().flat_map(|row| keys_of(&row.old)).collect();
        let turn = |row: &ChangedRow| {
            let (before, after) = (keys_of(&row.old), keys_of(&row.new));
            before.iter().for_each(|key| {
                held.remove(key);
            });
            let meets = after.iter().any(|key| held.contains(key));
            held.extend(if meets { before } else { after });
            meets
        };
        rows.iter().map(turn).collect()
    }

    /// Changes and deletes rows, and marks those that were there in `done`. All are of one kind: updated as
    /// [`Transaction::keeps_keys`] says, or deleted. On an error some may be written: the statement is undone.
    pub async fn change_many(
        &mut self,
        table: &TableHandle,
        rows: &[ChangedRow],
        done: &mut [bool],
    ) -> Result<(), NodeError> {
        assert_eq!(rows.len(), done.len(), "one mark for each row");
        let info = table.info();
        self.check_writable_table(info)?;
        self.check_killed()?;
        self.ensure_txn();
        let Some(first) = rows.first() else { return Ok(()) };
        let act = if first.new.is_some() { Act::Update } else { Act::Delete };
        let mut writes = Vec::with_capacity(rows.len());
        for (number, row) in rows.iter().enumerate() {
            let old = row.old.as_ref().unwrap_or_else(|| unreachable!("the rows are there"));
            let mut key = Vec::with_capacity(32);
            info.primary.encode_values(old, &mut key);
            let image = match &row.new {
                None => None,
                Some(new) => Some(self.changed_image(info, Some(old), new)?),
            };
            writes.push(Write { number, key, image });
        }
        self.write_many(info, self.write_view(), act, &writes, done).await?;
        if info.is_related() {
            self.forget_parents();
        }
        let written = done.iter().filter(|done| **done).count() as u64;
        if act == Act::Update {
            self.count_writes(info, Written::Updated, written);
            return Ok(());
        }
        for unique in &info.uniques {
            let gone = rows.iter().zip(&*done).filter(|(_, done)| **done);
            let keys = gone.flat_map(|(row, _)| row.old.iter().flat_map(|old| entry_keys(unique, old)));
            let write = |(number, key): (usize, Vec<u8>)| Write {
                number,
                key: entries::locate(&unique.entries, &key).key,
                image: None,
            };
            let writes: Vec<Write> = keys.enumerate().map(write).collect();
            let done = &mut vec![false; writes.len()];
            self.write_many(&unique.entries, self.entry_view(), Act::Delete, &writes, done).await?;
        }
        self.count_writes(info, Written::Deleted, written);
        Ok(())
    }

    /// Writes all of these rows, or none: `false`, some key is taken, a row is gone, a parent is missing, a child is there,
    /// or a row is too large. Which, and of which row, is found row by row. On an error the statement is undone.
    pub async fn change_all(&mut self, table: &TableHandle, rows: &[ChangedRow]) -> Result<bool, NodeError> {
        let info = table.info();
        self.check_writable_table(info)?;
        self.check_killed()?;
        self.ensure_txn();
        if self.has_parents(table) {
            self.lock_parents(table, rows.iter().filter_map(|row| row.new.as_deref())).await?;
            if !rows.iter().filter_map(|row| row.new.as_ref()).all(|row| self.knows_parents(info, row)) {
                return Ok(false);
            }
        }
        let gone = || rows.iter().filter(|row| row.new.is_none()).filter_map(|row| row.old.as_deref());
        let mut children = Vec::new();
        if self.is_parent(table) && gone().next().is_some() {
            children = self.children(info).await?;
            // Row by row, a row may go before another one that refers to it.
            if children.iter().any(|child| child.table.schema.id == info.schema.id) {
                return Ok(false);
            }
        }
        self.write_number += 1;
        let number = self.write_number;
        let written = self.write_net(table, rows).await? && self.are_childless(info, &children, gone()).await?;
        if !written {
            self.undo_to(number);
            return Ok(false);
        }
        if info.is_related() {
            self.forget_parents();
        }
        for (is_there, is_kept, kind) in
            [(true, true, Written::Updated), (true, false, Written::Deleted), (false, true, Written::Inserted)]
        {
            let of_kind = rows.iter().filter(|row| (row.old.is_some(), row.new.is_some()) == (is_there, is_kept));
            self.count_writes(info, kind, of_kind.count() as u64);
        }
        Ok(true)
    }

    async fn write_net(&mut self, table: &TableHandle, rows: &[ChangedRow]) -> Result<bool, NodeError> {
        let info = table.info();
        // The primary keys of each row, before and afterwards.
        let mut keys: Vec<[Vec<u8>; 2]> = Vec::with_capacity(rows.len());
        let mut net = Net::default();
        for (number, row) in rows.iter().enumerate() {
            let mut own = [Vec::new(), Vec::new()];
            for (values, key) in [&row.old, &row.new].into_iter().zip(&mut own) {
                if let Some(values) = values {
                    info.primary.encode_values(values, key);
                }
            }
            let fits = (row.old.is_none() || net.note(own[0].clone(), number, false))
                && (row.new.is_none() || net.note(own[1].clone(), number, true));
            if !fits {
                return Ok(false);
            }
            keys.push(own);
        }
        let image = |_: &[u8], before: Option<usize>, number: usize| {
            let old = before.and_then(|before| rows[before].old.as_deref());
            rows[number].new.as_deref().map(|new| self.changed_image(info, old, new)).transpose()
        };
        let Ok(writes) = net.writes(image) else { return Ok(false) };
        if !self.write_acts(info, self.write_view(), writes).await? {
            return Ok(false);
        }
        for unique in &info.uniques {
            let mut net = Net::default();
            for (number, row) in rows.iter().enumerate() {
                for (values, is_new) in [(&row.old, false), (&row.new, true)] {
                    for key in values.iter().flat_map(|values| entry_keys(unique, values)) {
                        if !net.note(key, number, is_new) {
                            return Ok(false);
                        }
                    }
                }
            }
            let image = |key: &[u8], before: Option<usize>, number: usize| {
                let base = &keys[number][1];
                let stays = before.is_some_and(|before| keys[before][0] == *base);
                Ok((!stays).then(|| entries::encode(&unique.entries, key, base)))
            };
            let mut writes = net.writes(image)?;
            for write in writes.iter_mut().flat_map(|(_, writes)| writes) {
                write.key = entries::locate(&unique.entries, &write.key).key;
            }
            if !self.write_acts(&unique.entries, self.entry_view(), writes).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether all was done.
    async fn write_acts(
        &mut self,
        info: &TableInfo,
        view: View,
        acts: [(Act, Vec<Write>); 3],
    ) -> Result<bool, NodeError> {
        for (act, mut writes) in acts {
            writes.iter_mut().enumerate().for_each(|(number, write)| write.number = number);
            let mut done = vec![false; writes.len()];
            self.write_many(info, view, act, &writes, &mut done).await?;
            if done.contains(&false) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A row as it is stored, if it is not too large. `old`: what it takes the place of.
    fn changed_image(&self, info: &TableInfo, old: Option<&[Value]>, new: &[Value]) -> Result<Vec<u8>, NodeError> {
        let mut image = Vec::with_capacity(128);
        row::encode_row(&info.schema, new, &mut image);
        let Some(old) = old else {
            self.node.check_commit_size(image.len())?;
            return Ok(image);
        };
        self.node.check_row_size(image.len())?;
        if image.len() > self.node.commit_limit() {
            self.node.check_commit_size(image.len() - kept_bytes(old, new))?;
        }
        Ok(image)
    }

    /// Partition by partition, wherever each is led. Of inserts, none is made behind one whose key is taken.
    async fn write_many(
        &mut self,
        info: &TableInfo,
        view: View,
        act: Act,
        writes: &[Write],
        done: &mut [bool],
    ) -> Result<(), NodeError> {
        let mut by_partition: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (at, write) in writes.iter().enumerate() {
            by_partition.entry(self.place(info, &write.key).1).or_default().push(at);
        }
        for (partition, places) in by_partition {
            let mut left = &places[..];
            while !left.is_empty() {
                let some = &left[..fitting(left, |at| writes[at].bytes())];
                let rows = || some.iter().map(|at| stored(&writes[*at])).collect();
                let mut op = match act {
                    Act::Update => Op::UpdateMany { rows: rows(), done: 0 },
                    Act::Insert => Op::InsertMany { rows: rows(), done: 0 },
                    Act::Delete => {
                        Op::DeleteMany { keys: some.iter().map(|at| Key::of(&writes[*at].key)).collect(), done: 0 }
                    }
                };
                let Done::Count(count) = self.call(info, partition, view, &mut op, &mut |_| Verdict::Keep).await?
                else {
                    unreachable!("it gives a count");
                };
                let count = count as usize;
                some[..count].iter().for_each(|at| done[writes[*at].number] = true);
                if count < some.len() && act == Act::Insert {
                    return Ok(());
                }
                // It ends before a row that is gone.
                left = &left[(count + 1).min(some.len())..];
            }
        }
        Ok(())
    }
}

fn stored(write: &Write) -> KeyedRow<'_> {
    let image = write.image.as_ref().unwrap_or_else(|| unreachable!("a row that is stored has an image"));
    KeyedRow { key: Key::of(&write.key), row: image }
}
