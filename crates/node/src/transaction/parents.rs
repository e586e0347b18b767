//! Parents of many rows, locked together before the rows are written.
//!
//! A statement that brings many child rows would ask for the parent of each; here all parents in one partition are
//! asked for with one operation ([`Op::LockMany`]), which is one round trip where another node leads the partition.
//! Those that are there are locked with KeyShare to the end of the transaction and remembered ([`Known::locked`]), so
//! that the write of a row finds them locked. That is as good as looking after the write: a parent whose lock is held
//! neither goes nor changes its key, and the transaction commits only if the view in which it took the lock still
//! stands when all that it has written is in place (rules 42 and 32 of docs/cluster-protocols.md). An insert is never
//! left to be sent with the commit.
//!
//! Nothing is refused here. A parent that is missing may come with an earlier row of the same statement, and is looked
//! for again when its child is written. Left out: parents that an index must be searched for (not by a unique key).

use super::Transaction;
use super::foreign::{KNOWN, Known};
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::ops::operation::{Key, Op, Seen};
use crate::ops::serve::MOST_KEYS;
use crate::table::{TableInfo, entries};
use rauk_kernel::{LockMode, Verdict, WaitPolicy};
use rauk_types::foreign::ParentKey;
use rauk_types::{IndexId, Value, ValueRef};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A parent that is to be locked: its key in the index that the foreign key refers to, and as the table or index table
/// has it that the lock is taken in.
struct Wanted {
    key: Vec<u8>,
    stored: Vec<u8>,
}

impl Transaction {
    /// Whether rows that are to be inserted have parents that are looked for.
    pub fn has_parents(&self, table: &TableHandle) -> bool {
        let info = table.info();
        info.own.is_none() && self.checks_relations(info) && !info.references.is_empty()
    }

    /// Locks the parents of rows that are to be written.
    pub(super) async fn lock_parents<'r>(
        &mut self,
        table: &TableHandle,
        rows: impl Iterator<Item = &'r [Value]> + Clone + Send,
    ) -> Result<(), NodeError> {
        if !self.has_parents(table) {
            return Ok(());
        }
        let child = table.info().clone();
        self.check_writable_table(&child)?;
        self.ensure_txn();
        for number in 0..child.references.len() {
            let Some(parent) = self.parent(&child, number).await? else { continue };
            let within = match parent.index.key {
                ParentKey::Whole(IndexId::PRIMARY) => parent.table.clone(),
                ParentKey::Whole(id) => parent.table.unique(id).ok_or(NodeError::StaleSchema)?.entries.clone(),
                ParentKey::First(_) => continue,
            };
            let known = self.known.get_or_insert_default();
            let mut wanted: BTreeMap<u16, Vec<Wanted>> = BTreeMap::new();
            let columns = &child.references[number].columns;
            for row in rows.clone().filter(|row| columns.iter().all(|&at| !row[at].is_null())) {
                let values: Vec<ValueRef<'_>> = columns.iter().map(|&at| row[at].as_ref()).collect();
                let mut place = (child.schema.id, number, Vec::with_capacity(32));
                parent.key.encode_prefix(&values, &mut place.2);
                if known.locked.contains(&place) {
                    continue;
                }
                let key = place.2;
                let (stored, bucket) = match parent.index.key {
                    ParentKey::Whole(IndexId::PRIMARY) => {
                        let bucket = within.route.bucket_of_key(&key, rauk_types::key::hash(&key));
                        (key.clone(), bucket)
                    }
                    _ => {
                        let entry = entries::locate(&within, &key);
                        (entry.key, entry.bucket)
                    }
                };
                wanted.entry(self.node.partition_of(bucket)).or_default().push(Wanted { key, stored });
            }
            for (partition, mut wanted) in wanted {
                // In an order, so that two statements do not wait for each other.
                wanted.sort_by(|a, b| a.stored.cmp(&b.stored));
                wanted.dedup_by(|a, b| a.stored == b.stored);
                for wanted in wanted.chunks(MOST_KEYS) {
                    self.lock_together(&within, partition, (&child, number), wanted).await?;
                }
            }
        }
        Ok(())
    }

    async fn lock_together(
        &mut self,
        within: &TableInfo,
        partition: u16,
        (child, number): (&Arc<TableInfo>, usize),
        wanted: &[Wanted],
    ) -> Result<(), NodeError> {
        let keys = wanted.iter().map(|wanted| Key::of(&wanted.stored)).collect();
        let mut op = Op::LockMany { keys, mode: LockMode::KeyShare, wait: WaitPolicy::Wait, done: 0 };
        let mut found = Vec::new();
        let step = self.begin_newest();
        self.touch(within, partition);
        let view = self.newest_view(u32::MAX);
        let called = self
            .call(within, partition, view, &mut op, &mut |seen| {
                let Seen::Key(number) = seen else { unreachable!("numbers of keys are shown") };
                found.extend(<[u8; 4]>::try_from(number).map(|bytes| u32::from_le_bytes(bytes) as usize));
                Verdict::Keep
            })
            .await;
        self.end_newest(step);
        called?;
        let known: &mut Known = self.known.get_or_insert_default();
        if known.locked.len() + found.len() > KNOWN {
            known.locked.clear();
        }
        let found = found.iter().filter_map(|&at| wanted.get(at));
        known.locked.extend(found.map(|wanted| (child.schema.id, number, wanted.key.clone())));
        Ok(())
    }

    /// Whether all parents of a row are known to be locked.
    pub(super) fn knows_parents(&self, child: &TableInfo, row: &[Value]) -> bool {
        let Some(known) = &self.known else { return false };
        child.references.iter().enumerate().all(|(number, reference)| {
            let columns = &reference.columns;
            if columns.iter().any(|&at| row[at].is_null()) {
                return true;
            }
            let id = child.schema.id;
            let Some((_, _, parent)) = known.parents.iter().find(|(of, n, _)| (*of, *n) == (id, number)) else {
                return false;
            };
            let values: Vec<ValueRef<'_>> = columns.iter().map(|&at| row[at].as_ref()).collect();
            let mut key = Vec::with_capacity(32);
            parent.key.encode_prefix(&values, &mut key);
            known.locked.contains(&(id, number, key))
        })
    }
}
