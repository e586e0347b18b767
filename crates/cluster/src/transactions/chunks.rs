//! Chunks: what large transactions have written so far, in entries of their own, before it is known whether they commit.
//!
//! Rules 63–68 of docs/cluster-protocols.md; the model is `large_chunks`. The chunks of a transaction stand here from
//! their entries until the transaction is decided; nobody waits for them, and they change nothing for readers. Taken
//! away before are those that the primary takes back, and all that no entry names when a view opens. A commit or
//! prepare *names* those that stand: a count of them comes right before it, and a replica that has others has gone
//! wrong.
//!
//! A *series* is where chunks are made one after another: a partition of the primary. So a part of a series that is
//! taken back is its end. Over all series of a transaction chunks have a growing *number*, by which the rows know them.
//!
//! Each entry that is not stable has left in `changes` how it is undone, so that a cut gives what a fold over the
//! remaining entries would give: chunks that the opening of a view voided stand again where that opening is cut.

use super::record::Counted;
use bytes::Bytes;
use rauk_types::{Position, TxnId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// A chunk that stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Chunk {
    /// Where its entry stands.
    pub at: Position,
    pub series: u16,
    pub number: u32,
    pub writes: Bytes,
}

/// How an entry is undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Undo {
    /// The transaction's last chunk came with it.
    Remove(TxnId),
    /// It took these away.
    Restore(Vec<(TxnId, Vec<Chunk>)>),
}

/// See the module. The chunks of a transaction by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chunks {
    standing: FxHashMap<TxnId, Vec<Chunk>>,
    changes: VecDeque<(Position, Undo)>,
    bytes: usize,
    /// Bytes of writes in `changes`.
    void_bytes: usize,
}

/// [`Chunks`] in copies and checkpoints, sorted by transaction.
#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    standing: Vec<(TxnId, Vec<Chunk>)>,
    changes: Vec<(Position, Undo)>,
}

impl Chunks {
    /// A chunk's entry; gives its number over all series. `Err`: it is not the next of its series.
    pub fn on_chunk(
        &mut self,
        position: Position,
        txn: TxnId,
        (series, in_series): (u16, u32),
        writes: &Bytes,
    ) -> Result<u32, String> {
        let chunks = self.standing.entry(txn).or_default();
        let before = chunks.iter().filter(|chunk| chunk.series == series).count();
        if before != in_series as usize {
            return Err(format!("chunk {in_series} of transaction {} comes after {before} others", txn.0));
        }
        let number = chunks.last().map_or(0, |last| last.number + 1);
        chunks.push(Chunk { at: position, series, number, writes: writes.clone() });
        self.bytes += writes.len();
        self.changes.push_back((position, Undo::Remove(txn)));
        Ok(number)
    }

    /// Of a series only so many chunks stand; gives the number of the first that does not. `None`: there were no more.
    pub fn on_back(&mut self, position: Position, txn: TxnId, series: u16, left: u32) -> Option<u32> {
        let chunks = self.standing.get_mut(&txn)?;
        let first = chunks.iter().filter(|chunk| chunk.series == series).nth(left as usize)?.number;
        let gone: Vec<Chunk> = chunks.extract_if(.., |c| c.series == series && c.number >= first).collect();
        if chunks.is_empty() {
            self.standing.remove(&txn);
        }
        self.make_void(position, vec![(txn, gone)]);
        Some(first)
    }

    /// The chunks of these transactions are void from this entry on; gives those that had some, sorted.
    pub fn on_void(&mut self, position: Position, is_void: impl Fn(TxnId) -> bool) -> Vec<TxnId> {
        let mut gone: Vec<(TxnId, Vec<Chunk>)> = self.standing.extract_if(|txn, _| is_void(*txn)).collect();
        gone.sort_unstable_by_key(|(txn, _)| *txn);
        let txns = gone.iter().map(|(txn, _)| *txn).collect();
        if !gone.is_empty() {
            self.make_void(position, gone);
        }
        txns
    }

    /// They do not stand any more, and are kept for a cut of this entry.
    fn make_void(&mut self, position: Position, gone: Vec<(TxnId, Vec<Chunk>)>) {
        let bytes = bytes_of_all(&gone);
        self.bytes -= bytes;
        self.void_bytes += bytes;
        self.changes.push_back((position, Undo::Restore(gone)));
    }

    /// The transaction is decided, which no cut takes back: its chunks, by number.
    pub fn take(&mut self, txn: TxnId) -> Vec<Chunk> {
        let chunks = self.standing.remove(&txn).unwrap_or_default();
        self.bytes -= bytes_of(&chunks);
        chunks
    }

    pub fn on_stable(&mut self, upto: Position) {
        while let Some((_, undo)) = self.changes.pop_front_if(|(position, _)| *position <= upto) {
            self.void_bytes -= undo.bytes();
        }
    }

    /// Entries behind `after` are void; gives the transactions that have other chunks now.
    pub fn on_cut(&mut self, after: Position) -> BTreeSet<TxnId> {
        let mut changed = BTreeSet::new();
        while let Some((_, undo)) = self.changes.pop_back_if(|(position, _)| *position > after) {
            self.void_bytes -= undo.bytes();
            match undo {
                Undo::Remove(txn) => {
                    // It is there, unless the transaction has been decided meanwhile.
                    if let Some(chunks) = self.standing.get_mut(&txn) {
                        self.bytes -= chunks.pop().map_or(0, |chunk| chunk.writes.len());
                        if chunks.is_empty() {
                            self.standing.remove(&txn);
                        }
                    }
                    changed.insert(txn);
                }
                Undo::Restore(gone) => {
                    for (txn, chunks) in gone {
                        self.bytes += bytes_of(&chunks);
                        let standing = self.standing.entry(txn).or_default();
                        standing.extend(chunks);
                        standing.sort_unstable_by_key(|chunk| chunk.number);
                        changed.insert(txn);
                    }
                }
            }
        }
        changed
    }

    /// The number of the transaction's next chunk, or of what its naming entry has.
    pub fn next_number(&self, txn: TxnId) -> u32 {
        self.of(txn).last().map_or(0, |last| last.number + 1)
    }

    pub fn of(&self, txn: TxnId) -> &[Chunk] {
        self.standing.get(&txn).map_or(&[], Vec::as_slice)
    }

    /// All chunks that stand.
    pub fn iter(&self) -> impl Iterator<Item = (TxnId, &Chunk)> {
        self.standing.iter().flat_map(|(txn, chunks)| chunks.iter().map(|chunk| (*txn, chunk)))
    }

    /// What a naming entry counts, by series.
    pub fn counts(&self, txn: TxnId) -> Vec<Counted> {
        let mut counts: Vec<Counted> = Vec::new();
        for Chunk { series, writes, .. } in self.of(txn) {
            let counted = match counts.iter_mut().find(|counted| counted.series == *series) {
                Some(counted) => counted,
                None => counts.push_mut(Counted { series: *series, chunks: 0, digest: 0 }),
            };
            counted.chunks += 1;
            counted.digest = digest(counted.digest, writes);
        }
        counts.sort_unstable_by_key(|counted| counted.series);
        counts
    }

    /// Bytes of writes of chunks that stand.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The same, with those of chunks that would stand again after a cut.
    pub fn kept_bytes(&self) -> usize {
        self.bytes + self.void_bytes
    }

    pub fn store(&self) -> Stored {
        let mut standing: Vec<_> = self.standing.iter().map(|(txn, chunks)| (*txn, chunks.clone())).collect();
        standing.sort_unstable_by_key(|(txn, _)| *txn);
        Stored { standing, changes: self.changes.iter().cloned().collect() }
    }

    /// `None`: no table has this.
    pub fn restore(Stored { standing, changes }: Stored, stable: Position, last: Position) -> Option<Chunks> {
        let sorted = |chunks: &[Chunk]| chunks.windows(2).all(|pair| pair[0].number < pair[1].number);
        let sound = standing.windows(2).all(|pair| pair[0].0 < pair[1].0)
            && standing.iter().all(|(_, chunks)| !chunks.is_empty() && sorted(chunks))
            && changes.windows(2).all(|pair| pair[0].0 <= pair[1].0)
            && changes.iter().all(|(position, _)| *position > stable && *position <= last);
        sound.then_some(())?;
        let bytes = bytes_of_all(&standing);
        let void_bytes = changes.iter().map(|(_, undo)| undo.bytes()).sum();
        Some(Chunks { standing: standing.into_iter().collect(), changes: changes.into(), bytes, void_bytes })
    }
}

impl Undo {
    fn bytes(&self) -> usize {
        match self {
            Undo::Remove(_) => 0,
            Undo::Restore(gone) => bytes_of_all(gone),
        }
    }
}

fn bytes_of_all(chunks: &[(TxnId, Vec<Chunk>)]) -> usize {
    chunks.iter().map(|(_, chunks)| bytes_of(chunks)).sum()
}

fn bytes_of(chunks: &[Chunk]) -> usize {
    chunks.iter().map(|chunk| chunk.writes.len()).sum()
}

/// CRC-32C of what came before and these bytes.
fn digest(before: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(before, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TXN: TxnId = TxnId(7);

    fn at(position: u64) -> Position {
        Position(position)
    }

    fn chunk(chunks: &mut Chunks, position: u64, series: u16, number: u32) -> Result<u32, String> {
        chunks.on_chunk(at(position), TXN, (series, number), &Bytes::from(vec![series as u8; position as usize]))
    }

    fn standing(chunks: &Chunks) -> Vec<(u16, u32, usize)> {
        chunks.of(TXN).iter().map(|chunk| (chunk.series, chunk.number, chunk.writes.len())).collect()
    }

    #[test]
    fn chunks_of_a_series_are_taken_back_from_the_last_on() {
        let mut chunks = Chunks::default();
        assert_eq!(chunk(&mut chunks, 1, 4, 0), Ok(0));
        assert_eq!(chunk(&mut chunks, 2, 5, 0), Ok(1));
        assert_eq!(chunk(&mut chunks, 3, 4, 1), Ok(2));
        assert!(chunk(&mut chunks, 4, 4, 1).unwrap_err().contains("comes after 2"));
        assert_eq!(chunks.on_back(at(5), TXN, 4, 1), Some(2));
        assert_eq!(chunks.on_back(at(6), TXN, 4, 1), None, "there are no more");
        assert_eq!((standing(&chunks), chunks.bytes()), (vec![(4, 0, 1), (5, 1, 2)], 3));
        assert_eq!(chunks.kept_bytes(), 6, "what is taken back may stand again until that is stable");
        chunks.on_stable(at(5));
        assert_eq!(chunks.kept_bytes(), 3);
        assert_eq!(chunk(&mut chunks, 7, 4, 1), Ok(2));
        let counted = |series, number: u32| (series, number);
        let counts: Vec<_> = chunks.counts(TXN).iter().map(|c| counted(c.series, c.chunks)).collect();
        assert_eq!(counts, [(4, 2), (5, 1)]);
        assert_eq!(chunks.take(TXN).len(), 3);
        assert_eq!((chunks.bytes(), chunks.counts(TXN)), (0, vec![]));
    }

    /// What a cut leaves is what a fold over the entries that are left gives, wherever it cuts.
    #[test]
    fn a_cut_gives_what_the_remaining_entries_say() {
        type Apply = fn(&mut Chunks, u64);
        let entries: [Apply; 7] = [
            |c, p| drop(chunk(c, p, 1, 0)),
            |c, p| drop(chunk(c, p, 2, 0)),
            |c, p| drop(chunk(c, p, 1, 1)),
            |c, p| assert_eq!(c.on_back(at(p), TXN, 1, 0), Some(0)),
            |c, p| drop(chunk(c, p, 1, 0)),
            |c, p| drop(c.on_void(at(p), |_| true)),
            |c, p| drop(chunk(c, p, 1, 0)),
        ];
        for length in 0..=entries.len() {
            for stable in 0..=length {
                for cut in stable..=length {
                    let fold = |upto: usize| {
                        let mut chunks = Chunks::default();
                        (0..upto).for_each(|i| entries[i](&mut chunks, i as u64 + 1));
                        chunks.on_stable(at(stable as u64));
                        chunks
                    };
                    let mut chunks = fold(length);
                    let stored = postcard::to_stdvec(&chunks.store()).unwrap();
                    let stored = postcard::from_bytes(&stored).unwrap();
                    let read = Chunks::restore(stored, at(stable as u64), at(length as u64));
                    assert_eq!(read.as_ref(), Some(&chunks));
                    chunks.on_cut(at(cut as u64));
                    assert_eq!(chunks, fold(cut), "{length} entries, {stable} stable, cut after {cut}");
                }
            }
        }
    }
}
