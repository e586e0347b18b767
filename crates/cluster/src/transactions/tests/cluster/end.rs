//! Faults stop: the cluster must come to rest, with equal replicas and rows as the outcomes say.

use super::super::super::table::Standing;
use super::*;

impl World {
    /// Faults stop. Everything must come to rest within bounded time.
    pub(super) fn settle(&mut self) {
        self.faults = false;
        for coordinator in self.coordinators.iter_mut().filter(|coordinator| coordinator.condemned) {
            coordinator.alive = false;
            coordinator.running.clear();
        }
        for _ in 0..200 {
            self.now += Duration::from_millis(20);
            for c in 0..self.coordinators.len() {
                self.tick_coordinator(c);
            }
            for p in 0..self.partitions.len() {
                self.learn_death(p);
                self.tick_partition(p);
                for r in 0..self.partitions[p].replicas.len() {
                    self.replicate(p, r, usize::MAX);
                    self.tell_stable(p, r);
                    self.compare(p, r);
                }
            }
            while !self.messages.is_empty() {
                self.deliver();
            }
            if self.is_quiet() {
                break;
            }
        }
        let running: usize = self.coordinators.iter().map(|coordinator| coordinator.running.len()).sum();
        assert_eq!(running, 0, "coordinators never end");
        for partition in &self.partitions {
            assert!(partition.closings.is_empty(), "take-overs never end");
            let first = &partition.replicas[0];
            for replica in &partition.replicas {
                assert!(replica.table.is_empty() && replica.table.pending().is_empty(), "{:?}", replica.table);
                assert_eq!((replica.table.writes_bytes, replica.table.chunk_bytes()), (0, 0));
                assert!(replica.chunks.is_empty(), "chunks stay beside the rows: {:?}", replica.chunks);
                assert!(replica.table == first.table && replica.rows == first.rows, "replicas differ");
            }
        }
        for (txn, facts) in &self.facts {
            for p in &facts.participants {
                let row = self.partitions[index(*p)].replicas[0].rows.get(txn);
                match facts.outcome {
                    Some(Outcome::Committed(time)) => assert_eq!(row, Some(&Row::Committed(time)), "{txn:?} {facts:?}"),
                    _ => assert_eq!(row, None, "{txn:?} {facts:?}"),
                }
            }
            match facts.outcome {
                Some(Outcome::Committed(_)) => self.count.committed += 1,
                _ => self.count.aborted += 1,
            }
            self.count.unheard += usize::from(facts.told.is_none());
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        let quiet = |partition: &Partition| {
            let first = &partition.replicas[0];
            let level = |replica: &Replica| replica.table == first.table && replica.table.stable == replica.table.last;
            partition.closings.is_empty() && first.table.is_empty() && partition.replicas.iter().all(level)
        };
        self.coordinators.iter().all(|coordinator| coordinator.running.is_empty())
            && self.messages.is_empty()
            && self.partitions.iter().all(quiet)
    }

    /// Equal streams make equal tables, apart from outcomes whose entries were cut.
    pub(super) fn compare(&self, p: usize, r: usize) {
        let partition = &self.partitions[p];
        let (one, other) = (&partition.replicas[partition.primary], &partition.replicas[r]);
        if one.log == other.log && one.table.stable == other.table.stable {
            assert_alike(&one.table, &other.table);
        }
    }
}

/// Of the same stream, what it alone says is equal.
pub(super) fn assert_alike(one: &TxnTable, other: &TxnTable) {
    assert_eq!(shape(one, other), shape(other, one));
}

/// What the stream alone says. The chunks of a transaction go with its outcome, and `other` may know of one from an entry
/// that was cut.
fn shape(table: &TxnTable, other: &TxnTable) -> Vec<String> {
    let mut shape: Vec<String> = table
        .standing
        .iter()
        .map(|(txn, standing)| match standing {
            Standing::Alone { at, time, writes } => format!("{txn:?} {at:?} {time:?} {writes:?}"),
            Standing::Part(part) => {
                let prepared = part.prepared.as_ref().map(|p| (p.at, &p.participants, p.least));
                let outcome = part.decided.and(part.outcome);
                format!("{txn:?} {prepared:?} {outcome:?} {:?} {:?} {:?}", part.fence, part.decided, part.forgotten)
            }
        })
        .collect();
    let is_open = |txn| table.outcome(txn).is_none() && other.outcome(txn).is_none();
    let chunks = table.chunks.iter().filter(|(txn, _)| is_open(*txn));
    shape.extend(chunks.map(|(txn, chunk)| format!("{txn:?} {chunk:?}")));
    shape.sort_unstable();
    shape.push(format!("{:?} {:?}", table.last, table.stable));
    shape.extend(table.tombstones.iter().map(|txn| format!("{txn:?}")));
    shape.extend(table.commits.iter().map(|commit| format!("{commit:?}")));
    shape
}
