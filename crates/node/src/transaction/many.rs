//! Plain reads of many keys in one call, for joins that look up a batch of rows.
//!
//! The keys are sorted by partition. A partition that is led here (or may be read here) and is idle is read at once, up to
//! [`rauk_kernel::MANY`] keys a hold, with the memory of all of them fetched ahead. What is left, because the partition is
//! led elsewhere, is busy or waits for a commit to be decided, goes as one operation for each partition: one message for a
//! partition, not one for a key. What a reader sees is the same as by [`Transaction::get`].
//!
//! The reads see the transaction's snapshot. Locking reads are not here: their order is the order in which they lock.

use super::call::explain;
use super::read::Right;
use super::{Transaction, View};
use crate::bulk::Keys;
use crate::bulk::groups::{Group, Groups};
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::ops::operation::{Key, Op, Seen};
use crate::ops::serve::MOST_KEYS;
use crate::table::{TableInfo, entries};
use rauk_kernel::Verdict;
use rauk_types::{IndexId, RowView, TableId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Is shown the number of a key and its row. `false`: no more are wanted for now; those of the present hold still come.
pub type VisitMany<'v> = dyn FnMut(usize, Option<RowView<'_>>) -> bool + Send + 'v;

impl Transaction {
    /// Reads rows by whole keys of the primary key or of a unique index: those that `done` does not mark, which are marked
    /// then. `visit` sees each of them once, in any order, while the partition is held: it copies what it needs.
    pub async fn get_many(
        &mut self,
        table: &TableHandle,
        index: IndexId,
        keys: &Keys,
        done: &mut [bool],
        visit: &mut VisitMany<'_>,
    ) -> Result<(), NodeError> {
        assert!(self.effective_lock(None).is_none(), "locking reads keep their order");
        assert_eq!(keys.len(), done.len(), "one mark for each key");
        self.check_running()?;
        self.check_killed()?;
        let Some(parts) = table.parts() else { return self.get_many_of(table.info(), index, keys, done, visit).await };
        let mut by_leaf: BTreeMap<TableId, (Arc<TableInfo>, Vec<usize>)> = BTreeMap::new();
        let mut nowhere = Vec::new();
        for number in (0..keys.len()).filter(|number| !done[*number]) {
            let leaves = self.node.leaves_of_key(table, parts, index, keys.get(number))?;
            match &leaves[..] {
                [] => nowhere.push(number),
                [leaf] => {
                    by_leaf.entry(leaf.schema.id).or_insert_with(|| (leaf.clone(), Vec::new())).1.push(number);
                }
                // The keys do not tell: each is looked for by itself.
                _ => return self.get_each(table, index, keys, done, visit).await,
            }
        }
        for number in nowhere {
            done[number] = true;
            if !visit(number, None) {
                return Ok(());
            }
        }
        for (leaf, numbers) in by_leaf.into_values() {
            let mut some = Keys::default();
            numbers.iter().for_each(|number| some.push(keys.get(*number)));
            let mut seen = vec![false; numbers.len()];
            let mut wanted = true;
            let mut show = |place: usize, row: Option<RowView<'_>>| {
                wanted = visit(numbers[place], row);
                wanted
            };
            self.get_many_of(&leaf, index, &some, &mut seen, &mut show).await?;
            numbers.iter().zip(seen).filter(|(_, seen)| *seen).for_each(|(number, _)| done[*number] = true);
            if !wanted {
                return Ok(());
            }
        }
        Ok(())
    }

    /// One key after another.
    async fn get_each(
        &mut self,
        table: &TableHandle,
        index: IndexId,
        keys: &Keys,
        done: &mut [bool],
        visit: &mut VisitMany<'_>,
    ) -> Result<(), NodeError> {
        for (number, done) in done.iter_mut().enumerate().filter(|(_, done)| !**done) {
            let wanted = self.get_unique(table, index, keys.get(number), None, |row| visit(number, row)).await?;
            *done = true;
            if !wanted {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn get_many_of(
        &mut self,
        table: &Arc<TableInfo>,
        index: IndexId,
        keys: &Keys,
        done: &mut [bool],
        visit: &mut VisitMany<'_>,
    ) -> Result<(), NodeError> {
        let info = table.clone();
        let view = self.read_view(&info, false).await?;
        if index == IndexId::PRIMARY {
            return self.read_many(&info, keys, view, done, visit).await;
        }
        let Some(unique) = info.unique(index) else { return Err(NodeError::StaleSchema) };
        let (mut places, mut numbers) = (Keys::default(), Vec::new());
        for number in (0..keys.len()).filter(|number| !done[*number]) {
            places.push(&entries::locate(&unique.entries, keys.get(number)).key);
            numbers.push(number);
        }
        let mut bases = vec![None; numbers.len()];
        let mut found = vec![false; numbers.len()];
        let mut named = |place: usize, entry: Option<RowView<'_>>| {
            bases[place] = entry.map(|entry| entries::base_key(&entry));
            true
        };
        self.read_many(&unique.entries, &places, view, &mut found, &mut named).await?;
        places.clear();
        let mut wanted = true;
        let mut bases = bases.into_iter();
        numbers.retain(|number| match bases.next().expect("one for each key") {
            Some(base) => {
                places.push(&base);
                true
            }
            None => {
                done[*number] = true;
                wanted &= visit(*number, None);
                false
            }
        });
        if !wanted {
            return Ok(());
        }
        found.clear();
        found.resize(numbers.len(), false);
        let mut row = |place: usize, row: Option<RowView<'_>>| {
            // The snapshot shows row and entry at one time: a row with another key was written by this very statement.
            let number = numbers[place];
            visit(number, row.filter(|row| unique.keys.matches(row, keys.get(number))))
        };
        self.read_many(&info, &places, view, &mut found, &mut row).await?;
        for (number, _) in numbers.iter().zip(&found).filter(|(_, found)| **found) {
            done[*number] = true;
        }
        Ok(())
    }

    pub(super) async fn read_many(
        &mut self,
        info: &TableInfo,
        keys: &Keys,
        view: View,
        done: &mut [bool],
        visit: &mut VisitMany<'_>,
    ) -> Result<(), NodeError> {
        if let Some(rows) = &info.own {
            let all = (0..keys.len()).map(|number| (number, keys.get(number)));
            return self.read_many_own(info, rows, all, view, done, visit);
        }
        self.count_reads(info, Some(IndexId::PRIMARY), done.iter().filter(|done| !**done).count() as u64);
        let node = self.node.clone();
        let groups = Groups::new(&node, info, keys, done);
        let mut wanted = true;
        for mut group in groups.iter() {
            while wanted && group.len() > 0 {
                let mut show = |number: usize, row: Option<RowView<'_>>| wanted &= visit(number, row);
                match self.read_group_now(info, &groups, &group, keys, view, done, &mut show) {
                    Some(seen) => group = group.skip(seen?),
                    None => break,
                }
            }
        }
        // The groups of a partition follow each other.
        let mut rest: Vec<(usize, Key<'_>)> = Vec::new();
        let mut all = groups.iter().peekable();
        while let Some(group) = all.next() {
            for number in (0..group.len()).map(|i| groups.number(&group, i)).filter(|number| !done[*number]) {
                rest.push((number, Key::of(keys.get(number))));
            }
            if all.peek().is_some_and(|next| next.partition == group.partition) {
                continue;
            }
            while wanted && !rest.is_empty() {
                let keys = rest.iter().take(MOST_KEYS).map(|(_, key)| *key).collect();
                let mut seen = 0;
                let show = &mut |row: Seen<'_, '_>| {
                    let number = rest[seen].0;
                    seen += 1;
                    done[number] = true;
                    wanted &= visit(number, row.row());
                    if wanted { Verdict::Keep } else { Verdict::KeepAndStop }
                };
                // Large rows come in several answers.
                self.call(info, group.partition, view, &mut Op::ReadMany { keys, done: 0 }, show).await?;
                rest.drain(..seen);
            }
            rest.clear();
        }
        Ok(())
    }

    /// One hold of a partition that is idle and may be read here; gives the number of keys that it got through. `None`: it
    /// takes a call that may wait.
    #[allow(clippy::too_many_arguments)] // the parts of one call
    fn read_group_now(
        &mut self,
        info: &TableInfo,
        groups: &Groups,
        group: &Group,
        keys: &Keys,
        view: View,
        done: &mut [bool],
        show: &mut (dyn FnMut(usize, Option<RowView<'_>>) + Send),
    ) -> Option<Result<usize, NodeError>> {
        let node = &*self.node;
        // What it has touched must still be its own: a call sees to that.
        if self.far.is_some() {
            return None;
        }
        let (cluster, partition) = (node.cluster(), group.partition);
        let mut right = None;
        let mut access = self.access(view);
        let probes = &groups.probes(group, keys)[..group.len()];
        let read = node.partitions[usize::from(partition)]
            .try_with(|p| {
                if let Some(cluster) = cluster {
                    right = Some(Right::of(cluster, partition, view.at)?);
                }
                (!self.is_undone_in(p)).then_some(())?;
                Some(p.read_many(info.schema.id, probes, &mut access, &mut |i, found| {
                    let number = groups.number(group, i);
                    done[number] = true;
                    show(number, found.map(|(_, row)| row));
                }))
            })
            .ok()
            .flatten()?;
        let observed = access.observed;
        // What a replica cannot show its primary may; what is left out waits for a commit to be decided.
        let leads = matches!(right, None | Some(Right::Primary(_)));
        let read = match read {
            Err(_) if !leads => return None,
            other => other,
        };
        self.observed = self.observed.max(observed);
        match cluster.zip(right) {
            // What gave the right to look gives it still.
            Some((cluster, right)) if !right.holds(cluster, partition) => Some(Err(NodeError::NoPrimary { partition })),
            _ => Some(read.map(|read| read.keys).map_err(|stop| explain(stop, info))),
        }
    }
}
