//! How often rows of a table were read and written on this node, since it was opened or the counts were set back.
//!
//! Whoever reads or writes counts in one of a few stripes, by the number of its session, so that sessions on different
//! cores seldom share a line; reading the counts adds the stripes up. Reads are counted by the index that finds the
//! rows: by the primary key, by no index, or by another one. Each call to a partition counts at once what it has shown,
//! so a scan adds once for a slice of rows.

use parking_lot::Mutex;
use rauk_types::IndexId;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const STRIPES: usize = 8;

#[derive(Default)]
#[repr(align(64))]
struct Stripe {
    by_key: AtomicU64,
    scanned: AtomicU64,
    inserted: AtomicU64,
    updated: AtomicU64,
    deleted: AtomicU64,
    /// Read by indexes but the primary key, as they are met.
    others: Mutex<Vec<(IndexId, u64)>>,
}

#[derive(Default)]
pub struct TableIo {
    stripes: [Stripe; STRIPES],
}

/// What was done to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Inserted,
    Updated,
    Deleted,
}

/// Rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Found by the primary key.
    pub by_key: u64,
    /// Found by no index.
    pub scanned: u64,
    /// Found by other indexes.
    pub by_index: Vec<(IndexId, u64)>,
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
}

impl IoCounts {
    pub fn fetched(&self) -> u64 {
        self.by_key + self.scanned + self.by_index.iter().map(|(_, rows)| rows).sum::<u64>()
    }

    pub fn of_index(&self, index: IndexId) -> u64 {
        match index {
            IndexId::PRIMARY => self.by_key,
            other => self.by_index.iter().find(|(id, _)| *id == other).map_or(0, |(_, rows)| *rows),
        }
    }
}

impl TableIo {
    #[inline]
    fn stripe(&self, session: u64) -> &Stripe {
        &self.stripes[session as usize % STRIPES]
    }

    /// `index` `None`: found without one.
    #[inline]
    pub fn read(&self, session: u64, index: Option<IndexId>, rows: u64) {
        match index {
            Some(IndexId::PRIMARY) => _ = self.stripe(session).by_key.fetch_add(rows, Relaxed),
            None => _ = self.stripe(session).scanned.fetch_add(rows, Relaxed),
            Some(other) => add(&mut self.stripe(session).others.lock(), other, rows),
        }
    }

    #[inline]
    pub fn write(&self, session: u64, written: Written, rows: u64) {
        let stripe = self.stripe(session);
        let count = match written {
            Written::Inserted => &stripe.inserted,
            Written::Updated => &stripe.updated,
            Written::Deleted => &stripe.deleted,
        };
        count.fetch_add(rows, Relaxed);
    }

    pub fn counts(&self) -> IoCounts {
        let mut sum = IoCounts::default();
        for stripe in &self.stripes {
            sum.by_key += stripe.by_key.load(Relaxed);
            sum.scanned += stripe.scanned.load(Relaxed);
            sum.inserted += stripe.inserted.load(Relaxed);
            sum.updated += stripe.updated.load(Relaxed);
            sum.deleted += stripe.deleted.load(Relaxed);
            stripe.others.lock().iter().for_each(|(index, rows)| add(&mut sum.by_index, *index, *rows));
        }
        sum
    }

    /// Counts begin at 0 again.
    pub fn clear(&self) {
        for stripe in &self.stripes {
            let Stripe { by_key, scanned, inserted, updated, deleted, others } = stripe;
            [by_key, scanned, inserted, updated, deleted].into_iter().for_each(|count| count.store(0, Relaxed));
            others.lock().clear();
        }
    }
}

fn add(list: &mut Vec<(IndexId, u64)>, index: IndexId, rows: u64) {
    match list.iter_mut().find(|(id, _)| *id == index) {
        Some((_, count)) => *count += rows,
        None => list.push((index, rows)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_go_back_to_nothing() {
        let io = TableIo::default();
        for session in 0..20 {
            io.read(session, Some(IndexId::PRIMARY), 1);
            io.read(session, Some(IndexId(3)), 2);
            io.read(session, None, 3);
            io.write(session, Written::Updated, 1);
        }
        let counts = io.counts();
        assert_eq!((counts.fetched(), counts.by_key, counts.scanned, counts.updated), (120, 20, 60, 20));
        assert_eq!(
            (counts.of_index(IndexId(3)), counts.of_index(IndexId(4)), counts.of_index(IndexId::PRIMARY)),
            (40, 0, 20)
        );
        io.clear();
        assert_eq!(io.counts(), IoCounts::default());
    }
}
