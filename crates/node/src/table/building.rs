//! Unique indexes that are filled while their table is used: every transaction that writes keeps them too.
//!
//! Their index tables are known by their ids only, and no definition has them. Which they are is said here, for all
//! versions of the table's definition at once; it changes while a DDL has the table alone, so it is the same for the
//! whole of a transaction that uses the table.
//!
//! A writer must not fail because an index that nobody has yet would not take its row. So it notes the row as
//! *refused*, in a table of its own and in its own transaction, and goes on; the DDL fails if there is such a row in
//! the end. What is rolled back has refused nothing.

use super::{TableInfo, UniqueIndex, entries};
use parking_lot::Mutex;
use rauk_types::schema::IndexSchema;
use rauk_types::{IndexId, TableId, TableSchema};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is being built on a table.
pub struct Building {
    /// The definition that has the indexes, over the columns that rows have now.
    pub schema: Arc<TableSchema>,
    pub uniques: Vec<UniqueIndex>,
    /// Rows that an index did not take: (index and keys, what is to be said).
    pub refused: Arc<TableInfo>,
    /// It is being undone: nobody needs to keep it any more.
    pub given_up: AtomicBool,
}

impl Building {
    /// Of the unique indexes of `schema` that are in `fresh`; `info_of` gives the info of an index table.
    pub fn new(
        schema: Arc<TableSchema>,
        fresh: &[IndexId],
        refused: Arc<TableInfo>,
        mut info_of: impl FnMut(TableId) -> Arc<TableInfo>,
    ) -> Arc<Building> {
        let of = |index: &IndexSchema| UniqueIndex::new(&schema, index, &mut info_of);
        let uniques = schema.indexes.iter().filter(|i| fresh.contains(&i.id)).filter_map(of).collect();
        Arc::new(Building { schema, uniques, refused, given_up: AtomicBool::new(false) })
    }

    /// All tables that it writes to.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableInfo>> {
        self.uniques.iter().map(|u| &u.entries).chain([&self.refused])
    }
}

/// The place of a [`Building`] at its table.
#[derive(Default)]
pub struct BuildingSlot {
    any: AtomicBool,
    what: Mutex<Option<Arc<Building>>>,
}

impl BuildingSlot {
    /// Asked under the metadata lock, the answer stays true while it is held.
    #[inline]
    pub fn is_some(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub fn get(&self) -> Option<Arc<Building>> {
        if self.is_some() { self.what.lock().clone() } else { None }
    }

    /// Under the exclusive metadata lock.
    pub fn set(&self, building: Option<Arc<Building>>) {
        let mut what = self.what.lock();
        self.any.store(building.is_some(), Ordering::Release);
        *what = building;
    }
}

/// The key of a refused row in its table: which index did not take it, by which of its keys, and the row's primary key.
///
/// ```text
/// index: u16 | length of the key: u32 | key … | primary key …                 (big-endian)
/// ```
pub fn refused_key(index: IndexId, key: &[u8], base: &[u8]) -> Vec<u8> {
    let length = key.len() as u32;
    [&index.0.to_be_bytes()[..], &length.to_be_bytes(), key, base].concat()
}

/// The primary key of a refused row.
///
/// # Panics
/// If these bytes are not of [`refused_key`]: only that writes them.
pub fn refused_base(refused: &[u8]) -> &[u8] {
    let length = u32::from_be_bytes(refused[2..6].try_into().expect("four bytes"));
    &refused[6 + length as usize..]
}

/// The number that stands for a table of refused rows in the place of an index.
pub const REFUSED: IndexId = IndexId(u16::MAX);

/// The schema of the table of refused rows of a base table: (which, what is to be said), both as bytes.
pub fn refused_schema(base: &TableSchema, id: TableId) -> TableSchema {
    let index = IndexSchema { id: REFUSED, name: String::new(), ..base.primary().clone() };
    entries::schema(base, &index, id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_row_is_found_by_what_was_noted() {
        for (key, base) in [(&b""[..], &b"b"[..]), (b"key", b""), (&[0xff; 300], b"base")] {
            assert_eq!(refused_base(&refused_key(IndexId(7), key, base)), base);
        }
    }
}
