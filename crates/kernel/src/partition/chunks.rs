//! What a large transaction writes, in pieces while it runs.
//!
//! Where replicas have to learn of writes, those of a large transaction are sent in *chunks* before it is known whether
//! it commits (docs/cluster-protocols.md, rules 63–68). A chunk is what stands in the undo list behind the chunk before
//! it: each row once, as it is when the chunk is made. A row that is written again is in a later chunk again. Commit
//! then carries what no chunk has ([`Partition::collect_writes`]).
//!
//! A transaction is listed when it has written [`Partition::set_chunk_bytes`] since its last chunk. Whoever holds the
//! partition looks for that at the end of its work ([`Partition::wants_sending`]). He also finds there what was undone of what
//! was sent ([`Partition::take_taken_back`]): that must be told to the replicas before anybody else enters, for locks
//! were given back with it. [`Partition::collect_writes`] comes behind [`Partition::seal_chunks`]: from there on there
//! are no more chunks.
//!
//! What others have written and is put beside the rows here ([`Partition::adopt`]) is in no chunk.

use super::transactions::{TxnRecord, Undo};
use super::{Partition, Write, large};
use crate::partition::versions::{Image, flags};
use rauk_types::{TableId, TxnId};
use rustc_hash::FxHashSet;

/// What a transaction has in chunks.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// For each chunk that stands: the length of the undo list behind it.
    ends: Vec<usize>,
    /// Bytes written since.
    since: u64,
    is_listed: bool,
    /// The transaction is about to end: there are no more chunks.
    is_sealed: bool,
}

impl Chunks {
    pub fn any(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Where the part of the undo list begins that is in no chunk.
    pub fn end(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    pub fn bytes(&self) -> usize {
        self.ends.capacity() * size_of::<usize>()
    }

    pub fn clear(&mut self) {
        *self = Chunks { ends: std::mem::take(&mut self.ends), ..Chunks::default() };
        self.ends.clear();
    }

    /// Counts a write; whether the transaction is to be listed.
    pub fn add(&mut self, bytes: u64, limit: u64) -> bool {
        self.since += bytes;
        let is_full = self.since >= limit && !self.is_sealed;
        is_full && !std::mem::replace(&mut self.is_listed, true)
    }

    /// The undo list has only so many entries left; gives how many chunks are left, if some are not. Chunks of tables
    /// that were dropped have no entries: they go with what the transaction wrote first.
    pub fn taken_back(&mut self, length: usize) -> Option<u32> {
        let before = self.ends.len();
        while self.ends.pop_if(|end| *end > length || length == 0).is_some() {}
        (self.ends.len() < before).then_some(self.ends.len() as u32)
    }

    /// Entries are about to leave the middle of the undo list.
    pub fn keep(&mut self, undo: &[Undo], stays: impl Fn(&Undo) -> bool) {
        for end in &mut self.ends {
            *end = undo[..*end].iter().filter(|undo| stays(undo)).count();
        }
    }
}

/// Of the chunks of a transaction only so many stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenBack {
    pub txn: TxnId,
    pub left: u32,
}

pub(super) fn note_taken_back(noted: &mut Vec<TakenBack>, txn: TxnId, left: u32) {
    match noted.iter_mut().find(|noted| noted.txn == txn) {
        Some(noted) => noted.left = noted.left.min(left),
        None => noted.push(TakenBack { txn, left }),
    }
}

impl Partition {
    /// Transactions that have written so many bytes here are listed from now on.
    pub fn set_chunk_bytes(&mut self, bytes: u64) {
        self.txns.chunk_bytes = Some(bytes);
    }

    /// Whether there is something to be sent before anybody else enters.
    #[inline]
    pub fn wants_sending(&self) -> bool {
        !self.txns.full.is_empty() || !self.txns.taken_back.is_empty()
    }

    /// Transactions that have a chunk to be sent. They are listed again by a later write if nobody makes one.
    pub fn take_full(&mut self) -> Vec<TxnId> {
        let mut full = std::mem::take(&mut self.txns.full);
        full.retain(|txn| {
            let Some(record) = self.txns.get_mut(*txn) else { return false };
            record.chunks.is_listed = false;
            !record.is_ending && !record.chunks.is_sealed
        });
        self.settle();
        full
    }

    /// What was undone of what was sent.
    pub fn take_taken_back(&mut self) -> Vec<TakenBack> {
        let taken_back = std::mem::take(&mut self.txns.taken_back);
        self.settle();
        taken_back
    }

    /// Makes a chunk of what the transaction has written since the last: calls `visit` for each row. Gives its number,
    /// from 0 on; `None`: there is nothing.
    pub fn collect_chunk(&mut self, txn: TxnId, visit: &mut dyn FnMut(TableId, Write<'_>)) -> Option<u32> {
        let record = self.txns.get(txn)?;
        if record.undo.len() == record.chunks.end() {
            return None;
        }
        self.collect_writes(txn, visit);
        let number = self.txns.change(txn, |record| {
            record.chunks.since = 0;
            record.chunks.ends.push(record.undo.len());
            record.chunks.ends.len() as u32 - 1
        });
        self.settle();
        number
    }

    /// The newest chunk was not sent: it is none.
    pub fn drop_chunk(&mut self, txn: TxnId) {
        if let Some(record) = self.txns.get_mut(txn) {
            record.chunks.ends.pop();
        }
    }

    /// The transaction is about to end: no more chunks are made of it.
    pub fn seal_chunks(&mut self, txn: TxnId) {
        if let Some(record) = self.txns.get_mut(txn) {
            record.chunks.is_sealed = true;
        }
    }

    /// Whether chunks of the transaction stand: what is written again must be listed again.
    pub fn has_chunks(&self, txn: TxnId) -> bool {
        self.txns.get(txn).is_some_and(|record| record.chunks.any())
    }

    /// Calls `visit` for every row that the transaction changed here and that no chunk has, once each with its final state, in the order of
    /// these changes. A row that was inserted and deleted again is left out.
    pub fn collect_writes(&self, txn: TxnId, visit: &mut dyn FnMut(TableId, Write<'_>)) {
        let Some(record) = self.txns.get(txn) else { return };
        if !record.chunks.any() {
            record.undo.iter().filter(|u| u.first).for_each(|undo| self.collect_row(record, undo, visit));
            return;
        }
        let mut met = FxHashSet::default();
        for undo in record.undo[record.chunks.end()..].iter() {
            if met.insert(undo.key) {
                self.collect_row(record, undo, visit);
            }
        }
    }

    /// `undo`: the first change of a row that is collected.
    fn collect_row(&self, record: &TxnRecord, undo: &Undo, visit: &mut dyn FnMut(TableId, Write<'_>)) {
        let mut room = Vec::new();
        let (table, id) = (undo.key.table(), undo.key.row());
        let fragment = &self.fragments[&table];
        let (header, bytes) = fragment.rows.get(id);
        let top = self.versions.own_top(undo.key, header, record.txn.id).expect("a changed row has a pending image");
        let is_new = header.flags & (flags::UNCOMMITTED | flags::TOMBSTONE) != 0;
        match top.image {
            Image::Inline => {
                let layout = fragment.schema.layout_of(header.layout);
                visit(table, Write::Put { layout: header.layout, row: bytes.whole(layout, &mut room) });
            }
            Image::Stored(image) => {
                let (layout, row) = self.versions.image(image);
                // What no other has: of a row that is in a chunk already the replicas have another version.
                let before = if is_new || !undo.first { &[] } else { bytes.beside };
                let key = |key: &mut Vec<u8>| fragment.primary.encode_row(&fragment.view(layout, row), key);
                visit(table, large::written(fragment.schema.layout_of(layout), key, row, before, &mut room));
            }
            Image::Deleted if is_new && undo.first => {}
            Image::Deleted => {
                let mut key = Vec::new();
                fragment.primary.encode_row(&fragment.view(header.layout, bytes), &mut key);
                visit(table, Write::Delete { key: &key });
            }
        }
    }
}
