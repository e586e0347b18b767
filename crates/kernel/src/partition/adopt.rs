//! Writes of transactions that another replica leads.
//!
//! A follower gets a transaction's writes when they are in the partition's stream, and shows them to nobody until it is decided: they stand as pending versions under
//! exclusive locks, as on the primary, so that a follower that becomes primary has what its predecessor had, and reads on a replica know whom to wait
//! for. Commit and abort are then the same calls as everywhere ([`super::finish`]).
//!
//! What the stream says has happened: nothing here is refused for memory, for a range lock or for a duplicate key. A follower has no locks but these, and the
//! stream never has two undecided transactions on one row. A node that has just lost a partition may still have locks of its own transactions there; they are
//! void, and the caller ends them.

use super::locks::{self, Mode};
use super::side::RowKey;
use super::transactions::Undo;
use super::versions::{Change, Image, flags};
use super::{Partition, Stop, WaitPolicy, Write, large};
use crate::budget::Purpose;
use crate::row_store::RowId;
use crate::status::TxnRef;
use rauk_types::row::sparse;
use rauk_types::{RowImage, RowView, TableId, key};

/// Who writes, and the number of the write.
type Adopted<'a> = (&'a TxnRef, u32);

impl Partition {
    /// Puts a write of a transaction beside the rows, with a number that does not go down, by which it can be taken
    /// back ([`Partition::take_back`]). A row that is not there is inserted, one that is there gets a new version; the deletion
    /// of a missing one is nothing. The transaction's status word is the caller's, and is set before.
    ///
    /// Errors change nothing: [`Stop::Wait`] names transactions that hold the row here (nobody is queued: end them, and call again);
    /// [`Stop::StaleSchema`] and [`Stop::NoRow`] as [`Partition::check_row`] has them.
    pub fn adopt(&mut self, txn: &TxnRef, number: u32, table: TableId, write: Write<'_>) -> Result<(), Stop> {
        self.finish_end(txn.id);
        loop {
            match self.adopt_once((txn, number), table, write) {
                // The end of another was in the way, and has left the row.
                Err(Stop::Committing) => {}
                result => {
                    self.settle();
                    return result;
                }
            }
        }
    }

    fn adopt_once(&mut self, txn: Adopted<'_>, table: TableId, write: Write<'_>) -> Result<(), Stop> {
        match write {
            Write::Put { layout, row } => self.check_row(table, layout, row).and_then(|()| {
                let fragment = &self.fragments[&table];
                let mut key = std::mem::take(&mut self.scratch);
                key.clear();
                fragment.primary.encode_row(&RowView::new(&fragment.schema, layout, row), &mut key);
                let result = self.adopt_put(txn, table, &key, layout, row);
                self.scratch = key;
                result
            }),
            Write::Sparse { layout, row } => self.adopt_sparse(txn, table, layout, row),
            Write::Delete { key } => self.adopt_delete(txn, table, key),
        }
    }

    /// Whether bytes that another node sent are a row of a table: [`Stop::StaleSchema`] when table or layout are not known here, yet or any more,
    /// [`Stop::NoRow`] when they are not what such a row looks like.
    pub fn check_row(&self, table: TableId, layout: u16, row: &[u8]) -> Result<(), Stop> {
        let fragment = self.fragments.get(&table).filter(|f| f.knows(layout)).ok_or(Stop::StaleSchema)?;
        if fragment.schema.layout_of(layout).holds(row) { Ok(()) } else { Err(Stop::NoRow) }
    }

    fn adopt_put(&mut self, txn: Adopted<'_>, table: TableId, key: &[u8], layout: u16, row: &[u8]) -> Result<(), Stop> {
        let fragment = &self.fragments[&table];
        let hash = key::hash(key);
        let apart = large::take_apart(&self.budget, fragment.schema.layout_of(layout), row, &[], Purpose::Relief)?;
        let row = large::image(row, &apart);
        let Some(id) = self.find_settled(txn.0, table, key, hash) else {
            return Ok(self.put_fresh(txn.0, table, hash, (layout, row), txn.1, Purpose::Relief)?);
        };
        self.adopt_over(txn, RowKey::new(table, id), layout, row)
    }

    /// A row that has large values of its newest committed version.
    fn adopt_sparse(&mut self, txn: Adopted<'_>, table: TableId, layout: u16, row: &[u8]) -> Result<(), Stop> {
        self.fragments.get(&table).filter(|f| f.knows(layout)).ok_or(Stop::StaleSchema)?;
        let row = sparse::read_sparse(row).ok_or(Stop::NoRow)?;
        let id = self.find_settled(txn.0, table, row.key, key::hash(row.key)).ok_or(Stop::NoRow)?;
        let rk = RowKey::new(table, id);
        // Until the row is held here, the version that is kept from need not have come.
        self.hold(txn.0, rk, Mode::Exclusive)?;
        let fragment = &self.fragments[&table];
        let (header, before) = fragment.rows.get(id);
        if header.flags & (flags::TOMBSTONE | flags::UNCOMMITTED) != 0 {
            return Err(Stop::NoRow);
        }
        let apart = large::assemble(&self.budget, &row, before.beside)?;
        if !fragment.is_row(layout, row.key, apart.image()) {
            return Err(Stop::NoRow);
        }
        self.adopt_over(txn, rk, layout, apart.image())
    }

    fn adopt_over(&mut self, txn: Adopted<'_>, rk: RowKey, layout: u16, row: RowImage<'_>) -> Result<(), Stop> {
        let id = rk.row();
        let mode = if self.is_there(txn.0, rk) { Mode::Exclusive } else { Mode::Gone };
        self.hold(txn.0, rk, mode)?;
        let image = self.versions.store(layout, row, Purpose::Relief)?;
        let fragment = self.fragments.get_mut(&rk.table()).expect("seen by the caller");
        fragment.add_entries(id, layout, row, &mut self.entry);
        self.push_adopted(txn, rk, Image::Stored(image));
        Ok(())
    }

    fn adopt_delete(&mut self, txn: Adopted<'_>, table: TableId, key: &[u8]) -> Result<(), Stop> {
        self.fragments.get(&table).ok_or(Stop::StaleSchema)?;
        let Some(id) = self.find_settled(txn.0, table, key, key::hash(key)) else { return Ok(()) };
        let rk = RowKey::new(table, id);
        if self.is_there(txn.0, rk) {
            self.hold(txn.0, rk, Mode::Gone)?;
            self.push_adopted(txn, rk, Image::Deleted);
        }
        Ok(())
    }

    /// The row with this key, as it is when all that has ended for others has ended here.
    fn find_settled(&mut self, txn: &TxnRef, table: TableId, key: &[u8], hash: u64) -> Option<RowId> {
        loop {
            let fragment = &self.fragments[&table];
            let id = fragment.find(key, hash)?;
            let pending = self.versions.pending(RowKey::new(table, id), fragment.rows.header(id));
            let other = pending.map(|top| top.owner.id).filter(|owner| *owner != txn.id);
            if !other.is_some_and(|other| self.settle_row(RowKey::new(table, id), other)) {
                return Some(id);
            }
        }
    }

    /// Whether the row is there for this transaction: as it wrote it, or else as it was committed.
    fn is_there(&self, txn: &TxnRef, rk: RowKey) -> bool {
        let header = self.fragments[&rk.table()].rows.header(rk.row());
        match self.versions.own_top(rk, header, txn.id) {
            Some(own) => own.image != Image::Deleted,
            None => header.flags & (flags::TOMBSTONE | flags::UNCOMMITTED) == 0,
        }
    }

    fn hold(&mut self, txn: &TxnRef, rk: RowKey, mode: Mode) -> Result<(), Stop> {
        let header = self.fragments[&rk.table()].rows.header(rk.row());
        let fresh = self.versions.seats.owner(header).map(|(owner, _)| owner);
        if locks::take(&mut self.locks, &mut self.txns, txn, rk, mode, WaitPolicy::NoWait, fresh).is_ok() {
            return Ok(());
        }
        let holders = self.locks.holders_beside(rk, txn.id);
        // Who is decided and has the row still gives it up. Without it the row may be gone.
        match holders.iter().any(|holder| self.settle_row(rk, *holder)) {
            true => Err(Stop::Committing),
            false => Err(Stop::Wait(holders)),
        }
    }

    fn push_adopted(&mut self, (txn, statement): Adopted<'_>, rk: RowKey, image: Image) {
        let fragment = self.fragments.get_mut(&rk.table()).expect("seen by the caller");
        fragment.unfold(&mut self.versions, rk);
        let first = self.versions.push(rk, txn, Change { statement, image });
        fragment.add_flags(rk.row(), flags::SIDE);
        self.txns.push_undo(txn, Undo { key: rk, statement, first }, 0);
    }
}
