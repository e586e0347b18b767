//! Large transactions: what they write goes into the streams while they run, is taken back, and is named by the entry
//! that prepares or commits.

use super::*;

/// A partition of this test stands for a group, and has so many series.
pub(super) const SERIES: std::ops::Range<u16> = 0..2;

impl World {
    /// A transaction that has not asked for its end writes a chunk where it has its locks, or takes some back.
    pub(super) fn write(&mut self, c: usize) {
        let running = &self.coordinators[c].running;
        let open = |running: &Running| matches!(running.part, Phase::Touched);
        let mut places: Vec<(TxnId, usize)> = Vec::new();
        for (txn, running) in running.iter().filter(|(_, running)| open(running)) {
            for (group, view) in &running.touched {
                let partition = &self.partitions[index(*group)];
                if partition.serving && partition.view == *view && partition.locks.contains(txn) {
                    places.push((*txn, index(*group)));
                }
            }
        }
        if places.is_empty() {
            return;
        }
        let (txn, p) = places[self.random.random_range(0..places.len())];
        for _ in 0..self.random.random_range(1..4) {
            let series = self.random.random_range(SERIES);
            let left = self.standing(p, txn, series);
            if left > 0 && self.chance(30) {
                let left = self.random.random_range(0..left);
                self.take_back(p, txn, series, left);
            } else {
                self.count.chunks += 1;
                let writes = Bytes::from(format!("chunk {} of {} in {p}", self.count.chunks, txn.0));
                self.propose(p, &Record::Chunk { txn, series, number: left, writes });
            }
        }
    }

    /// How many chunks of a series stand on the primary.
    fn standing(&self, p: usize, txn: TxnId, series: u16) -> u32 {
        let partition = &self.partitions[p];
        let chunks = partition.replicas[partition.primary].table.chunks.of(txn);
        chunks.iter().filter(|chunk| chunk.series == series).count() as u32
    }

    pub(super) fn take_back(&mut self, p: usize, txn: TxnId, series: u16, left: u32) {
        if self.standing(p, txn, series) > left {
            self.count.taken_back += 1;
            self.propose(p, &Record::Back { txn, series, left });
        }
    }

    /// Right before the entry that prepares or commits.
    pub(super) fn name_chunks(&mut self, p: usize, txn: TxnId) {
        let partition = &self.partitions[p];
        let table = &partition.replicas[partition.primary].table;
        let named: Vec<Bytes> = table.chunks_of(txn).into_iter().map(|(_, writes)| writes).collect();
        if let Some(count) = table.count(txn) {
            self.count.named += 1;
            self.facts.get_mut(&txn).expect("begun").chunks.insert(id(p), named);
            self.propose(p, &count);
        }
    }
}
