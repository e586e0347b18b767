//! Digests of the committed rows, and the walk that compares them with the stored bytes.
//!
//! *The digest of a table* is the sum (wrapping, 128 bits) of the digests of its newest committed rows here
//! (`rauk_types::row::digest`: table, layout, bytes). A sum does not depend on the order of rows or of changes, so a
//! change costs one subtraction and one addition. It is brought up to date where an image becomes the committed row of
//! its place, or ceases to be: [`Fragment::count_in`] and [`Fragment::count_out`], which also count the rows. There is
//! no other way in or out: commits, writes of many keys, deletions, rows that are restored or copied all pass there. A
//! table that is dropped takes its digest along.
//!
//! *Equal on all replicas* that have the same commits, because nothing goes in that replicas may have of their own: no
//! row ids, history, locks, pending images and index entries. Commit times are left out too: what counts is what a
//! reader of the newest state finds. Bytes and layouts are those of the log and of the stream, and nothing rewrites
//! them in place; a large value goes in by its hash, so whole and sparse rows come to the same.
//!
//! *At a place of the stream.* When an entry of the stream reaches the rows, replicas may differ in one thing: one has
//! been told already that an earlier entry is stable, and has committed it; another has its writes still beside the
//! rows. [`Partition::digests_with`] gives the digests as they will be when these transactions have committed, so that
//! all replicas give the same. It gives none while the end of a large transaction is under way, or if there is too much
//! to be added: whoever compares asks again later.
//!
//! *Why digests are kept and not computed.* Recomputing one takes a walk over all rows, beside writes that go on, and
//! gives each replica another moment. Kept digests are there at every moment, so replicas can be compared at one place
//! of the stream for nothing. They cost two hashes of a row for each change, on bytes that the change touches anyway.
//!
//! *The walk* ([`Partition::scrub`]) computes the digest of each table again, from the stored bytes, a few rows in each
//! call. Rows change between two calls: a change of a row that the walk has passed changes its sum too, a change of a
//! row that is still to come does not. At the end of a table the sum must be the digest. If it is not, bytes have
//! changed that nobody wrote: of rows that nobody has touched since, or under somebody who has written over them, for
//! what was subtracted then is not what was once added. So damage does not heal, and is found by the next comparison
//! with other replicas as well. The walk cannot say which row it was. Large values are compared with their own hashes,
//! without the partition.

use super::Partition;
use super::fragment::Fragment;
use super::versions::{Image, flags};
use crate::row_store::RowId;
use rauk_types::{LargeValue, TableId, TxnId};

/// Bytes of rows after which a slice of the walk ends.
const SLICE_BYTES: usize = 16 << 10;

/// Of the committed rows of a fragment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Digest {
    value: u128,
    /// What the walk has found: of the rows below `next`, as they are now.
    passed: u128,
    /// Where the walk goes on; 0: it is not here.
    next: u32,
}

impl Digest {
    pub fn value(&self) -> u128 {
        self.value
    }

    fn add(&mut self, id: RowId, digest: u128) {
        self.value = self.value.wrapping_add(digest);
        if id.0 < self.next {
            self.passed = self.passed.wrapping_add(digest);
        }
    }

    fn subtract(&mut self, id: RowId, digest: u128) {
        self.add(id, digest.wrapping_neg());
    }
}

/// The digest of the committed rows that a partition has of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableDigest {
    pub table: TableId,
    pub digest: u128,
}

/// What a slice of the walk has come to.
#[derive(Debug, Default)]
pub struct Scrubbed {
    /// Rows that were looked at.
    pub rows: u64,
    /// The stored bytes of this table are not what was written.
    pub damaged: Option<TableId>,
    /// All tables have been walked over once; the next call begins with the first again.
    pub is_round: bool,
    /// Large values of these rows: intact if [`LargeValue::is_intact`] says so.
    pub values: Vec<(TableId, LargeValue)>,
}

impl Fragment {
    /// The inline image of this row has become a committed row.
    #[inline]
    pub(super) fn count_in(&mut self, id: RowId) {
        let digest = self.committed_digest(id).expect("it is committed");
        self.live += 1;
        self.digest.add(id, digest);
    }

    /// The inline image of this row is about to be no committed row any more; if it is one.
    #[inline]
    pub(super) fn count_out(&mut self, id: RowId) {
        if let Some(digest) = self.committed_digest(id) {
            self.live -= 1;
            self.digest.subtract(id, digest);
        }
    }

    #[inline]
    fn committed_digest(&self, id: RowId) -> Option<u128> {
        let (header, row) = self.rows.get(id);
        let is_committed = header.flags & (flags::UNCOMMITTED | flags::TOMBSTONE) == 0;
        is_committed.then(|| row.digest(self.schema.id, header.layout))
    }

    /// Walks over up to so many rows; whether that was the end of the table.
    fn scrub(&mut self, rows: usize, scrubbed: &mut Scrubbed) -> bool {
        let mut bytes = 0;
        let mut met = 0;
        while let Some(id) = self.rows.next(RowId(self.digest.next)) {
            if met == rows || bytes >= SLICE_BYTES {
                return false;
            }
            met += 1;
            if let Some(digest) = self.committed_digest(id) {
                self.digest.passed = self.digest.passed.wrapping_add(digest);
                let (_, row) = self.rows.get(id);
                bytes += row.head.len();
                scrubbed.rows += 1;
                scrubbed.values.extend(row.beside.iter().map(|value| (self.schema.id, value.clone())));
            }
            self.digest.next = id.0 + 1;
        }
        if self.digest.passed != self.digest.value {
            scrubbed.damaged = Some(self.schema.id);
        }
        self.digest = Digest { value: self.digest.value, ..Digest::default() };
        true
    }
}

impl Partition {
    /// Of the committed rows of all tables.
    pub fn digest(&self) -> u128 {
        self.fragments.own().fold(0, |sum, (_, fragment)| sum.wrapping_add(fragment.digest.value))
    }

    /// The digests of all tables that are here, by table, as they will be when these transactions have committed, which
    /// have changed up to `most` rows here. `None`: they have changed more, or the end of a transaction is under way.
    pub fn digests_with(&self, committing: &[TxnId], most: usize) -> Option<Vec<TableDigest>> {
        if self.has_ends() {
            return None;
        }
        let mut digests: Vec<TableDigest> = self
            .fragments
            .iter()
            .map(|(table, fragment)| TableDigest { table, digest: fragment.digest.value })
            .collect();
        digests.sort_unstable_by_key(|digest| digest.table);
        let records = || committing.iter().filter_map(|txn| self.txns.get(*txn));
        if records().map(|record| record.undo.len()).sum::<usize>() > most {
            return None;
        }
        for record in records() {
            for undo in record.undo.iter().filter(|undo| undo.first) {
                let (table, id) = (undo.key.table(), undo.key.row());
                let fragment = &self.fragments[&table];
                let (header, inline) = fragment.rows.get(id);
                let top = self.versions.own_top(undo.key, header, record.txn.id).expect("a changed row has an image");
                let new = match top.image {
                    Image::Inline => inline.digest(table, header.layout),
                    Image::Stored(image) => {
                        let (layout, row) = self.versions.image(image);
                        row.digest(table, layout)
                    }
                    Image::Deleted => 0,
                };
                let old = fragment.committed_digest(id).unwrap_or(0);
                let at = digests.binary_search_by_key(&table, |digest| digest.table).expect("listed above");
                digests[at].digest = digests[at].digest.wrapping_add(new).wrapping_sub(old);
            }
        }
        Some(digests)
    }

    /// Walks over up to so many rows, less if they are long, and goes on there in the next call; of the tables that are
    /// here one after another.
    pub fn scrub(&mut self, rows: usize) -> Scrubbed {
        let mut scrubbed = Scrubbed::default();
        let at = self.scrubbing;
        let table = self.fragments.own().map(|(table, _)| table).filter(|table| *table >= at).min();
        let Some(table) = table else {
            (self.scrubbing, scrubbed.is_round) = (TableId(0), true);
            return scrubbed;
        };
        self.scrubbing = table;
        let fragment = self.fragments.get_mut(&table).expect("just found");
        if fragment.scrub(rows.max(1), &mut scrubbed) {
            self.scrubbing = TableId(table.0.saturating_add(1));
        }
        scrubbed
    }

    /// The digest of a table, from the stored bytes of all rows.
    pub(super) fn recompute_digest(&self, table: TableId) -> u128 {
        let fragment = &self.fragments[&table];
        let ids = std::iter::successors(fragment.rows.next(RowId(0)), |id| fragment.rows.next(RowId(id.0 + 1)));
        ids.filter_map(|id| fragment.committed_digest(id)).fold(0, u128::wrapping_add)
    }

    /// Damages memory, for tests of what finds that: flips a bit in the stored bytes of the `nth` committed row of a
    /// table, counted around. Gives whether there is a row. `as_written`: the digest is that of the damaged row, as if it
    /// had been written so; the walk does not find that, a comparison with other replicas does.
    #[doc(hidden)]
    pub fn flip_bit(&mut self, table: TableId, nth: usize, bit: usize, as_written: bool) -> bool {
        let Some(fragment) = self.fragments.own_mut(&table) else { return false };
        let ids = std::iter::successors(fragment.rows.next(RowId(0)), |id| fragment.rows.next(RowId(id.0 + 1)));
        let committed: Vec<RowId> = ids.filter(|id| fragment.committed_digest(*id).is_some()).collect();
        if committed.is_empty() {
            return false;
        }
        let id = committed[nth % committed.len()];
        if as_written {
            fragment.count_out(id);
        }
        fragment.rows.flip_bit(id, bit);
        if as_written {
            fragment.count_in(id);
        }
        true
    }
}
