//! Inserts of many rows in one call, for statements that bring many.
//!
//! The rows are encoded into one buffer and sorted by partition; each partition that is idle takes up to
//! [`rauk_kernel::MANY`] of them a hold. What is not so simple is left to the caller, who inserts it row by row
//! ([`Transaction::insert`]): a row whose key is there, and whatever comes behind a partition that is busy or has no
//! memory. Nothing waits here, and rows of one key are not passed by each other.
//!
//! Left out altogether: tables with unique indexes or foreign keys, whose rows stand in more than one place, those without a
//! primary key, temporary ones, and clusters.

use super::Transaction;
use super::call::explain;
use crate::bulk::Keys;
use crate::bulk::groups::Groups;
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::executor::Class;
use crate::table::io::Written;
use rauk_kernel::MANY;
use rauk_types::{Value, row};
use smallvec::SmallVec;

impl Transaction {
    /// Whether [`Transaction::insert_many`] can do anything for a table.
    pub fn takes_many(&self, table: &TableHandle) -> bool {
        let info = table.info();
        let stands_alone = info.own.is_none() && info.uniques.is_empty() && !self.checks_relations(info);
        stands_alone && !info.schema.hidden_key && self.node.cluster().is_none()
    }

    /// Inserts those of the rows that need no more than their place, and marks them in `done`. `row`: the values of a row,
    /// one a column.
    pub async fn insert_many(
        &mut self,
        table: &TableHandle,
        rows: &[Vec<Value>],
        done: &mut [bool],
    ) -> Result<(), NodeError> {
        assert_eq!(rows.len(), done.len(), "one mark for each row");
        if !self.takes_many(table) {
            return Ok(());
        }
        let info = table.info();
        self.check_writable()?;
        self.check_killed()?;
        let (mut keys, mut images, mut ends) = (Keys::default(), Vec::new(), Vec::with_capacity(rows.len()));
        let mut key = Vec::with_capacity(32);
        for values in rows {
            key.clear();
            info.primary.encode_values(values, &mut key);
            keys.push(&key);
            let start = images.len();
            row::encode_row(&info.schema, values, &mut images);
            self.node.check_commit_size(images.len() - start)?;
            ends.push(images.len());
        }
        let image = |number: usize| &images[number.checked_sub(1).map_or(0, |before| ends[before])..ends[number]];
        self.ensure_txn();
        let node = self.node.clone();
        let groups = Groups::new(&node, info, &keys, done);
        let mut busy = None;
        for group in groups.iter().filter(|group| group.len() > 0) {
            if busy == Some(group.partition) {
                continue;
            }
            self.touch(info, group.partition);
            let probes = &groups.probes(&group, &keys)[..group.len()];
            let list: SmallVec<[&[u8]; MANY]> = (0..group.len()).map(|i| image(groups.number(&group, i))).collect();
            let mut inserted = 0;
            let access = self.access(self.newest_view(u32::MAX));
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
            self.count_writes(info, Written::Inserted, inserted as u64);
            self.worked(Class::Scan.weight()).await;
        }
        Ok(())
    }
}
