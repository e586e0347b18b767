//! Fresh rows: inserts that nobody has touched since.
//!
//! Most pending rows are inserts, and most of them are committed before anybody else looks at them. Such a row needs no
//! entry beside it, neither of versions nor of locks: its header has the flag [`flags::FRESH`], and in the place of the
//! time, which an uncommitted insert does not have, the *seat* of its owner (upper half) and the number of the
//! statement (lower half). A seat is a number that a transaction has in one partition from its first fresh row to its
//! end.
//!
//! The owner holds the row in mode Gone without an entry in the lock table. Whoever asks for the row's lock makes that
//! entry first ([`super::locks::take`]), so nobody has to tell the two forms of a lock apart. When the owner changes a
//! fresh row in a later statement, or deletes it, the row becomes an ordinary pending one ([`Fragment::unfold`]); its
//! lock has its entry by then.
//!
//! Commit gives the row its time and clears the flags. So a large insert costs a partition its rows, index entries and
//! undo list, and no more.

use super::fragment::Fragment;
use super::side::RowKey;
use super::transactions::Undo;
use super::versions::{Change, Image, VersionTable, flags};
use super::{Access, MANY, MemoryFull, Partition, Probe, Stop, large};
use crate::budget::Purpose;
use crate::row_store::RowHeader;
use crate::status::TxnRef;
use rauk_types::{RowImage, TableId, Timestamp};

const FLAGS: u8 = flags::UNCOMMITTED | flags::SIDE | flags::FRESH;

/// Who has which seat. The numbers are given out by [`super::transactions::TxnTable`].
#[derive(Debug, Default)]
pub(super) struct Seats {
    /// Of a seat that is free: who had it last.
    owners: Vec<TxnRef>,
}

impl Seats {
    /// Whose the row is that has this header, and the statement that inserted it; `None`: it is not fresh.
    #[inline]
    pub fn owner(&self, header: RowHeader) -> Option<(&TxnRef, u32)> {
        if header.flags & flags::FRESH == 0 {
            return None;
        }
        Some((&self.owners[(header.time.0 >> 32) as usize], header.time.0 as u32))
    }

    pub fn take(&mut self, seat: u32, owner: &TxnRef) {
        let seat = seat as usize;
        assert!(seat <= self.owners.len(), "seats are given out without gaps");
        match seat == self.owners.len() {
            true => self.owners.push(owner.clone()),
            false => self.owners[seat] = owner.clone(),
        }
    }

    pub fn bytes(&self) -> usize {
        self.owners.capacity() * size_of::<TxnRef>()
    }
}

impl Partition {
    /// Puts a row where none with this key is. On error nothing has changed. For [`Purpose::Relief`] it was written
    /// elsewhere, and is no part of a chunk.
    pub(super) fn put_fresh(
        &mut self,
        txn: &TxnRef,
        table: TableId,
        hash: u64,
        (layout, row): (u16, RowImage<'_>),
        statement: u32,
        purpose: Purpose,
    ) -> Result<(), MemoryFull> {
        let bytes = if purpose == Purpose::Write { row.size() } else { 0 };
        let fragment = self.fragments.get_mut(&table).expect("seen by the caller");
        let (seat, new) = self.txns.seat(txn);
        if new {
            self.versions.seats.take(seat, txn);
        }
        let time = Timestamp(u64::from(seat) << 32 | u64::from(statement));
        let id = match fragment.rows.insert(RowHeader { time, layout, flags: FLAGS }, row, purpose) {
            Ok(id) => id,
            Err(full) => {
                self.txns.release_if_empty(txn.id);
                return Err(full);
            }
        };
        fragment.link(hash, id);
        fragment.add_entries(id, layout, row, &mut self.entry);
        let undo = Undo { key: RowKey::new(table, id), statement, first: true };
        self.txns.push_undo(txn, undo, bytes);
        Ok(())
    }
}

impl Partition {
    /// Inserts rows whose keys are not here, up to [`MANY`], and tells of each by its position. What takes more is left
    /// to [`Partition::insert`]: a row with a key that is here, and all rows from the first on that finds no memory;
    /// all of them where the table has range locks. So of rows with one key the first comes first.
    pub fn insert_many(
        &mut self,
        table: TableId,
        probes: &[Probe<'_>],
        rows: &[&[u8]],
        access: &Access<'_>,
        inserted: &mut dyn FnMut(usize),
    ) -> Result<(), Stop> {
        assert!(probes.len() <= MANY && probes.len() == rows.len(), "{} keys, {} rows", probes.len(), rows.len());
        let txn = access.txn.expect("a write belongs to a transaction");
        let fragment = self.fragments.get(&table).ok_or(Stop::StaleSchema)?;
        if self.ranges.is_used(table) || self.has_room_elsewhere().is_err() || self.is_read_only {
            return Ok(());
        }
        let layout = fragment.schema.layout().version;
        probes.iter().for_each(|probe| fragment.hash.prefetch(probe.hash));
        for (i, (probe, row)) in probes.iter().zip(rows).enumerate() {
            if self.fragments[&table].find(probe.key, probe.hash).is_some() {
                continue;
            }
            let Ok(apart) = self.take_apart(table, row, Purpose::Write) else { break };
            let row = large::image(row, &apart);
            if self.put_fresh(txn, table, probe.hash, (layout, row), access.statement, Purpose::Write).is_err() {
                break;
            }
            inserted(i);
        }
        self.settle();
        Ok(())
    }
}

impl Fragment {
    /// Makes an ordinary pending row of a fresh one, whose lock has an entry; leaves any other as it is.
    pub(super) fn unfold(&mut self, versions: &mut VersionTable, key: RowKey) {
        let header = self.rows.header(key.row());
        let Some((owner, statement)) = versions.seats.owner(header) else { return };
        let owner = owner.clone();
        versions.push(key, &owner, Change { statement, image: Image::Inline });
        let flags = header.flags & !flags::FRESH;
        self.rows.set_header(key.row(), RowHeader { time: Timestamp::ZERO, flags, ..header });
    }
}
