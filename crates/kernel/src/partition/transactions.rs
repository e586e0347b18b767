//! What a partition remembers of each transaction that touched it: its changes in order, its locks, its waits.
//!
//! The record is made with the first lock or write and goes with commit or abort (or when nothing is left in it). The
//! *undo list* has one entry for every image that was put on a row's pending stack, in order, so that a savepoint's
//! rollback costs what it undoes; the entries marked `first`, in order, are the rows that the transaction changed.
//!
//! Records are recycled with their vectors, so that a short transaction allocates nothing.

use super::chunks::{Chunks, TakenBack, note_taken_back};
use super::ends::END_SLICE;
use super::side::RowKey;
use crate::status::TxnRef;
use hashbrown::HashMap;
use rauk_types::{TableId, TxnId};
use rustc_hash::FxBuildHasher;

#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub key: RowKey,
    pub statement: u32,
    /// The transaction's first change of this row.
    pub first: bool,
}

#[derive(Debug)]
pub(super) struct TxnRecord {
    pub txn: TxnRef,
    pub undo: Vec<Undo>,
    /// Rows locked, in order. May name rows that are gone, or one twice.
    pub locks: Vec<RowKey>,
    /// Rows waited for, or granted and not yet claimed.
    pub waits: Vec<RowKey>,
    /// Tables with range locks of it.
    pub ranges: Vec<TableId>,
    /// Tables where it waits for a range lock of another.
    pub range_waits: Vec<TableId>,
    /// Its number as an owner of fresh rows.
    seat: Option<u32>,
    /// Its end is under way ([`super::ends`]): the lists have what is left to do.
    pub is_ending: bool,
    pub chunks: Chunks,
}

impl TxnRecord {
    fn new(txn: TxnRef) -> Self {
        TxnRecord {
            txn,
            undo: Vec::new(),
            locks: Vec::new(),
            waits: Vec::new(),
            ranges: Vec::new(),
            range_waits: Vec::new(),
            seat: None,
            is_ending: false,
            chunks: Chunks::default(),
        }
    }

    /// Whether its end takes more than one slice of so many rows.
    pub fn is_large(&self, slice: usize) -> bool {
        self.is_ending || self.undo.len() > slice || self.locks.len() > slice
    }

    fn is_empty(&self) -> bool {
        self.undo.is_empty()
            && self.locks.is_empty()
            && self.waits.is_empty()
            && self.ranges.is_empty()
            && self.range_waits.is_empty()
    }

    fn clear(&mut self) {
        self.undo.clear();
        self.locks.clear();
        self.waits.clear();
        self.ranges.clear();
        self.range_waits.clear();
        self.is_ending = false;
        self.chunks.clear();
    }

    fn bytes(&self) -> usize {
        size_of::<TxnRecord>()
            + self.undo.capacity() * size_of::<Undo>()
            + (self.locks.capacity() + self.waits.capacity()) * size_of::<RowKey>()
            + (self.ranges.capacity() + self.range_waits.capacity()) * size_of::<TableId>()
            + self.chunks.bytes()
    }
}

/// Records kept for the next transactions, and the largest that is worth keeping.
const SPARE_RECORDS: usize = 64;
const SPARE_BYTES: usize = 16 << 10;

pub(super) struct TxnTable {
    // Boxed: records move between the map and the spares.
    records: HashMap<TxnId, Box<TxnRecord>, FxBuildHasher>,
    #[expect(clippy::vec_box, reason = "the boxes are what is recycled")]
    spares: Vec<Box<TxnRecord>>,
    /// Seats that were given back, and how many there are.
    free_seats: Vec<u32>,
    seats: u32,
    bytes: usize,
    /// Bytes of writes after which a transaction has a chunk to be sent; `None`: there is nobody to send it to.
    pub chunk_bytes: Option<u64>,
    /// Those that have one.
    pub full: Vec<TxnId>,
    /// Of what was sent, what was undone since.
    pub taken_back: Vec<TakenBack>,
    /// Rows of a slice of an end.
    pub slice: usize,
}

impl TxnTable {
    pub fn new() -> Self {
        TxnTable {
            records: HashMap::with_hasher(FxBuildHasher),
            spares: Vec::new(),
            free_seats: Vec::new(),
            seats: 0,
            bytes: 0,
            chunk_bytes: None,
            full: Vec::new(),
            taken_back: Vec::new(),
            slice: END_SLICE,
        }
    }

    pub fn bytes(&self) -> usize {
        let lists = self.spares.capacity() * size_of::<usize>()
            + self.free_seats.capacity() * size_of::<u32>()
            + self.full.capacity() * size_of::<TxnId>()
            + self.taken_back.capacity() * size_of::<TakenBack>();
        self.bytes + self.records.allocation_size() + lists
    }

    pub fn get(&self, txn: TxnId) -> Option<&TxnRecord> {
        self.records.get(&txn).map(|r| &**r)
    }

    /// Changes the transaction's record, made when it is not there, and counts what it grew.
    fn with<R>(&mut self, txn: &TxnRef, change: impl FnOnce(&mut TxnRecord) -> R) -> R {
        let record = self.records.entry(txn.id).or_insert_with(|| match self.spares.pop() {
            Some(mut spare) => {
                spare.txn = txn.clone();
                spare
            }
            None => {
                let record = Box::new(TxnRecord::new(txn.clone()));
                self.bytes += record.bytes();
                record
            }
        });
        let before = record.bytes();
        let result = change(record);
        self.bytes = self.bytes + record.bytes() - before;
        result
    }

    /// `bytes`: what it adds to the transaction's next chunk.
    pub fn push_undo(&mut self, txn: &TxnRef, undo: Undo, bytes: usize) {
        let limit = self.chunk_bytes;
        let is_full = self.with(txn, |r| {
            let last = r.undo.last().map_or(0, |u| u.statement);
            assert!(undo.statement >= last, "statement {} writes after statement {last}", undo.statement);
            r.undo.push(undo);
            limit.is_some_and(|limit| r.chunks.add(bytes as u64, limit))
        });
        if is_full {
            self.full.push(txn.id);
        }
    }

    /// The transaction's number as an owner of fresh rows, and whether it has just got it.
    pub fn seat(&mut self, txn: &TxnRef) -> (u32, bool) {
        if let Some(seat) = self.records.get(&txn.id).and_then(|record| record.seat) {
            return (seat, false);
        }
        let seat = self.free_seats.pop().unwrap_or_else(|| {
            self.seats += 1;
            self.seats - 1
        });
        self.with(txn, |r| r.seat = Some(seat));
        (seat, true)
    }

    /// Notes a lock that the transaction got (`new`: on a row it did not hold), waited for or not.
    pub fn claim(&mut self, txn: &TxnRef, key: RowKey, new: bool) {
        self.with(txn, |r| {
            r.waits.retain(|w| *w != key);
            if new {
                r.locks.push(key);
            }
        });
    }

    pub fn push_wait(&mut self, txn: &TxnRef, key: RowKey) {
        self.with(txn, |r| {
            if !r.waits.contains(&key) {
                r.waits.push(key);
            }
        });
    }

    /// Takes a row out of the waits; whether it was there.
    pub fn take_wait(&mut self, txn: TxnId, key: RowKey) -> bool {
        let Some(record) = self.records.get_mut(&txn) else { return false };
        let before = record.waits.len();
        record.waits.retain(|w| *w != key);
        record.waits.len() < before
    }

    /// All of its waits, which are over now.
    pub fn take_waits(&mut self, txn: TxnId) -> (Vec<RowKey>, Vec<TableId>) {
        let Some(record) = self.records.get_mut(&txn) else { return Default::default() };
        let before = record.bytes();
        let waits = (std::mem::take(&mut record.waits), std::mem::take(&mut record.range_waits));
        self.bytes = self.bytes + record.bytes() - before;
        waits
    }

    /// Takes a lock that was given back early off the list.
    pub fn unlist(&mut self, txn: TxnId, key: RowKey) {
        let Some(record) = self.records.get_mut(&txn) else { return };
        if let Some(i) = record.locks.iter().rposition(|k| *k == key) {
            record.locks.remove(i);
        }
        self.release_if_empty(txn);
    }

    /// Takes the newest change off the undo list if it belongs to `statement` or a later one. What was sent of it was
    /// noted before.
    pub fn pop_undo(&mut self, txn: TxnId, statement: u32) -> Option<Undo> {
        let record = self.records.get_mut(&txn)?;
        record.undo.pop_if(|u| u.statement >= statement)
    }

    /// The transaction's end begins: the lists get shorter from here on, and what its chunks were counts no more.
    pub fn begin_end(&mut self, txn: TxnId) {
        if let Some(record) = self.records.get_mut(&txn) {
            record.is_ending = true;
            record.chunks.clear();
        }
    }

    /// Nothing of the transaction is left here: what was sent of it is taken back.
    pub fn take_all_back(&mut self, txn: TxnId) {
        self.begin_undo(txn, 0);
    }

    /// Changes of `statement` and later ones are about to be undone: what was sent of them is taken back.
    pub fn begin_undo(&mut self, txn: TxnId, statement: u32) {
        if let Some(record) = self.records.get_mut(&txn)
            && record.chunks.any()
            && let stays = record.undo.partition_point(|u| u.statement < statement)
            && let Some(left) = record.chunks.taken_back(stays)
        {
            note_taken_back(&mut self.taken_back, txn, left);
        }
    }

    /// Changes the transaction's record, if there is one, and counts what it grew.
    pub fn change<R>(&mut self, txn: TxnId, change: impl FnOnce(&mut TxnRecord) -> R) -> Option<R> {
        let record = self.records.get_mut(&txn)?;
        let before = record.bytes();
        let result = change(record);
        self.bytes = self.bytes + record.bytes() - before;
        Some(result)
    }

    pub fn get_mut(&mut self, txn: TxnId) -> Option<&mut TxnRecord> {
        self.records.get_mut(&txn).map(|r| &mut **r)
    }

    /// Takes the newest lock off the list.
    pub fn pop_lock(&mut self, txn: TxnId) -> Option<RowKey> {
        self.records.get_mut(&txn)?.locks.pop()
    }

    pub fn note_range(&mut self, txn: &TxnRef, table: TableId) {
        self.with(txn, |r| {
            if !r.ranges.contains(&table) {
                r.ranges.push(table);
            }
        });
    }

    pub fn note_range_wait(&mut self, txn: &TxnRef, table: TableId) {
        self.with(txn, |r| {
            if !r.range_waits.contains(&table) {
                r.range_waits.push(table);
            }
        });
    }

    pub fn remove(&mut self, txn: TxnId) -> Option<Box<TxnRecord>> {
        self.records.remove(&txn)
    }

    /// Takes back a record that [`TxnTable::remove`] gave.
    pub fn recycle(&mut self, mut record: Box<TxnRecord>) {
        record.clear();
        self.free_seats.extend(record.seat.take());
        if self.spares.len() < SPARE_RECORDS && record.bytes() <= SPARE_BYTES {
            self.spares.push(record);
        } else {
            self.bytes -= record.bytes();
        }
        if self.records.capacity() > 1024 && self.records.len() * 8 < self.records.capacity() {
            self.records.shrink_to(self.records.len() * 2);
        }
    }

    pub fn release_if_empty(&mut self, txn: TxnId) {
        if self.records.get(&txn).is_some_and(|r| r.is_empty()) {
            let record = self.records.remove(&txn).expect("just seen");
            self.recycle(record);
        }
    }

    /// Takes everything that belongs to a table out of all records.
    pub fn forget_table(&mut self, table: TableId) {
        let mut empty = Vec::new();
        for (txn, record) in &mut self.records {
            record.chunks.keep(&record.undo, |u| u.key.table() != table);
            record.undo.retain(|u| u.key.table() != table);
            record.locks.retain(|k| k.table() != table);
            record.waits.retain(|k| k.table() != table);
            record.ranges.retain(|t| *t != table);
            record.range_waits.retain(|t| *t != table);
            if record.is_empty() {
                empty.push(*txn);
            }
        }
        // In an order that does not depend on the map: records are used again.
        empty.sort_unstable();
        for txn in empty {
            // Its chunks would be counted from zero again.
            self.take_all_back(txn);
            self.release_if_empty(txn);
        }
    }

    /// Those that wait for a row or a range.
    pub fn waiting(&self) -> impl Iterator<Item = TxnId> {
        self.iter().filter(|r| !r.waits.is_empty() || !r.range_waits.is_empty()).map(|r| r.txn.id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &TxnRecord> {
        self.records.values().map(|r| &**r)
    }

    pub fn validate(&self) {
        let bytes: usize = self.records.values().chain(&self.spares).map(|r| r.bytes()).sum();
        assert_eq!(bytes, self.bytes, "bytes of transaction records");
        let mut seats: Vec<u32> = self.iter().filter_map(|r| r.seat).chain(self.free_seats.iter().copied()).collect();
        seats.sort_unstable();
        assert!(seats.iter().copied().eq(0..self.seats), "seats are taken once or free: {seats:?} of {}", self.seats);
    }
}
