//! Reads and writes of many keys within the random histories.

use super::*;
use crate::partition::{ManyRead, Prepared, Probe, Refusal, Verb};

impl Model {
    fn ids(&mut self) -> Vec<i64> {
        // Large rows are read in several calls.
        let most = if self.w.schema.columns.len() == 5 { 10 } else { 20 };
        let n = self.rng.random_range(0..most);
        (0..n).map(|_| self.rng.random_range(0..IDS)).collect()
    }

    fn keys(&self, ids: &[i64]) -> Vec<Vec<u8>> {
        ids.iter().map(|id| self.w.key(*id)).collect()
    }

    /// Consistent reads of many keys: each as if it were alone.
    pub(super) fn look_many(&mut self) {
        let ids = self.ids();
        let (at, upto) = if self.w.snapshots.is_empty() || self.rng.random_ratio(1, 2) {
            (ReadAt::Newest, u64::MAX)
        } else {
            let time = self.w.snapshots[self.rng.random_range(0..self.w.snapshots.len())];
            (ReadAt::Snapshot(Timestamp(time)), time)
        };
        if let (ReadAt::Snapshot(time), false) = (at, ids.is_empty()) {
            self.read_at = self.read_at.max(time.0);
        }
        let keys = self.keys(&ids);
        let mut access = self.w.access(None, at);
        let mut found = Vec::new();
        let read = self.w.p.read_many(TABLE, &probes(&keys), &mut access, &mut |i, row| {
            found.push((i, row.map(|(_, view)| decode(&view))));
        });
        match read {
            Ok(read) => {
                let out: Vec<Option<TxnId>> = ids.iter().map(|id| self.prepared_on(None, *id, upto)).collect();
                let (left_out, prepared) = (out.iter().flatten().count(), out.iter().flatten().next().copied());
                assert_eq!(read, ManyRead { keys: ids.len(), left_out, prepared });
                let expected: Vec<_> = ids.iter().map(|id| self.sees(None, *id, upto)).collect();
                let mut rows: Vec<_> = expected.iter().map(|e| e.0.clone()).enumerate().collect();
                rows.retain(|(i, _)| out[*i].is_none());
                assert_eq!(found, rows, "{ids:?} at {at:?}");
                let expected: Vec<_> = expected.into_iter().zip(&out).filter(|e| e.1.is_none()).map(|e| e.0).collect();
                let seen = expected.iter().filter(|e| e.0.is_some() || e.1 > self.w.durable).map(|e| e.1).max();
                assert!(access.observed.0 >= seen.unwrap_or(0) && access.observed.0 <= upto);
            }
            Err(Stop::SnapshotTooOld) if self.limited && upto != u64::MAX => self.old_reads_refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }

    /// A row whose commit is being decided is left out, its neighbours are read.
    pub(super) fn check_left_out(&mut self, committing: i64) {
        let keys = self.keys(&[IDS + 1, committing, IDS + 2]);
        let mut access = self.w.access(None, ReadAt::Newest);
        let mut visited = Vec::new();
        let read = self.w.p.read_many(TABLE, &probes(&keys), &mut access, &mut |i, _| visited.push(i));
        assert_eq!(read, Ok(ManyRead { keys: 3, left_out: 1, prepared: None }));
        assert_eq!(visited, [0, 2]);
    }

    /// Writes of many keys, each an own transaction.
    pub(super) fn write_many(&mut self) {
        let ids = self.ids();
        let wanted: Vec<Option<Option<Row>>> = ids
            .iter()
            .map(|id| match self.rng.random_range(0..10) {
                0 => None,
                1..4 => Some(None),
                _ => Some(Some(self.row(*id))),
            })
            .collect();
        let keys = self.keys(&ids);
        let probes = probes(&keys);
        let mut prepared = Prepared::default();
        let mut start = 0;
        while start < ids.len() {
            let rest = &probes[start..];
            let mut access = self.w.access(None, ReadAt::Newest);
            let mut met = Vec::new();
            let schema = self.w.schema.clone();
            let decided = self.w.p.prepare_many(TABLE, rest, &mut access, &mut prepared, &mut |i, found, buffer| {
                assert!(buffer.is_empty());
                met.push((start + i, found.map(|(_, view)| decode(&view))));
                match &wanted[start + i] {
                    None => Verb::Keep,
                    Some(None) => Verb::Delete,
                    Some(Some(row)) => {
                        row::encode_row(&schema, &all_values(&schema, row), buffer);
                        Verb::Put
                    }
                }
            });
            let n = decided.unwrap();
            assert!(n > 0);
            if n < rest.len() {
                // Or when there is enough for one record.
                let large = self.w.schema.columns.len() == 5;
                assert!(large || ids[start..start + n].contains(&ids[start + n]), "it ends before a key that it has");
            }
            for &(i, why) in &prepared.refused {
                assert_eq!(why, Refusal::Left);
                let id = ids[start + i];
                let used = self.actors.iter().any(|a| a.touched.contains(&id) || !a.ranges.is_empty());
                assert!(used, "row {id} is left to a transaction for nobody");
            }
            let left: BTreeSet<usize> = prepared.refused.iter().map(|(i, _)| start + i).collect();
            let mut expected = Vec::new();
            for (i, found) in &met {
                let id = ids[*i];
                assert!(!left.contains(i));
                assert_eq!(*found, self.at_time(id, u64::MAX).1, "row {id} as a write found it");
                for a in &self.actors {
                    assert!(a.ranges.is_empty() && !a.held.contains_key(&id), "row {id} is {:?}'s", a.txn.r.id);
                    assert!(a.writes.iter().all(|w| w.1 != id), "row {id} has a pending write");
                }
                match &wanted[*i] {
                    Some(None) if found.is_some() => expected.push((id, None)),
                    Some(Some(row)) => expected.push((id, Some(row.clone()))),
                    _ => {}
                }
                assert!(found.is_none() || access.observed.0 >= self.at_time(id, u64::MAX).0);
            }
            assert_eq!(met.len() + left.len(), n);
            let mut bytes: Writes = Vec::new();
            let mut written = Vec::new();
            for (i, write) in prepared.writes(rest) {
                let id = ids[start + i];
                let write = Logged::of(write);
                self.sparse += u64::from(matches!(write, Logged::Sparse(_)));
                let shown = self.shown(&write);
                assert_eq!(shown.0, id);
                written.push(shown);
                bytes.push(write);
            }
            assert_eq!(written, expected, "writes of the record");
            if self.rng.random_ratio(1, 6) {
                // The record could not be appended: nothing has happened.
                return;
            }
            let mut time = self.w.now;
            if !written.is_empty() {
                time = self.draw_time(0);
                for (id, row) in written {
                    self.committed.entry(id).or_default().push((time, row));
                }
                self.log.push((time, bytes));
            }
            self.w.p.install_many(TABLE, rest, &mut prepared, Timestamp(time), self.w.horizon());
            start += n;
        }
    }
}

fn probes(keys: &[Vec<u8>]) -> Vec<Probe<'_>> {
    keys.iter().map(|key| Probe { key, hash: key::hash(key) }).collect()
}
