//! What stands where rows of a statement go, and what becomes of it.
//!
//! INSERT … ON DUPLICATE KEY UPDATE and REPLACE decide row by row: what a row meets depends on what those before it have
//! left. Where each row and each entry of an index costs a message, that is decided here instead, in memory: all rows in
//! the way are locked and read before ([`Transaction::standing`]), each row of the statement finds what stands in its
//! place by then, and what has changed in the end is written together ([`Transaction::change_all`]).
//!
//! Known are the keys of the rows that are to be inserted, and those of rows that stand. A row that gets another key is
//! not for this: nobody has looked what stands there.

#[cfg(doc)]
use super::Transaction;
use super::change_many::ChangedRow;
use super::write::entry_keys;
use crate::table::TableInfo;
use rauk_types::{IndexId, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rows with the keys of a statement's rows.
pub struct Standing {
    table: Arc<TableInfo>,
    /// In the order in which they were met.
    places: Vec<Place>,
    by_key: BTreeMap<Vec<u8>, usize>,
    /// For each unique index, in the order of the table's: who has a key.
    entries: Vec<BTreeMap<Vec<u8>, usize>>,
}

/// The place of a row, by its primary key.
struct Place {
    /// What stood here before, locked.
    before: Option<Vec<Value>>,
    now: Option<Vec<Value>>,
}

impl Standing {
    pub(super) fn new(table: Arc<TableInfo>) -> Standing {
        let entries = table.uniques.iter().map(|_| BTreeMap::new()).collect();
        Standing { table, places: Vec::new(), by_key: BTreeMap::new(), entries }
    }

    pub(super) fn table(&self) -> &Arc<TableInfo> {
        &self.table
    }

    /// A row that is there, by its encoded primary key.
    pub(super) fn stands(&mut self, key: Vec<u8>, row: Vec<Value>) {
        let place = self.places.len();
        self.by_key.insert(key, place);
        self.enter(place, &row);
        self.places.push(Place { before: Some(row.clone()), now: Some(row) });
    }

    pub(super) fn has(&self, index: IndexId, key: &[u8]) -> bool {
        let at = self.table.uniques.iter().position(|unique| unique.id == index);
        at.is_some_and(|at| self.entries[at].contains_key(key))
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What an insert of the row would meet first: the index whose key is taken, and the place of who has it.
    pub fn in_the_way(&self, row: &[Value]) -> Option<(IndexId, usize)> {
        let taken = self.by_key.get(&self.key_of(row)).filter(|place| self.places[**place].now.is_some());
        if let Some(place) = taken {
            return Some((IndexId::PRIMARY, *place));
        }
        self.table.uniques.iter().zip(&self.entries).find_map(|(unique, entries)| {
            let keys = entry_keys(unique, row);
            keys.iter().find_map(|key| entries.get(key)).map(|place| (unique.id, *place))
        })
    }

    /// The row that stands at a place.
    pub fn row(&self, place: usize) -> &[Value] {
        self.places[place].now.as_deref().unwrap_or_else(|| unreachable!("only places where a row is are told"))
    }

    /// A row for which nothing is in the way.
    pub fn insert(&mut self, row: Vec<Value>) {
        let key = self.key_of(&row);
        let place = *self.by_key.entry(key).or_insert(self.places.len());
        if place == self.places.len() {
            self.places.push(Place { before: None, now: None });
        }
        self.enter(place, &row);
        self.places[place].now = Some(row);
    }

    /// A row gets new values, with the keys that it had.
    pub fn change(&mut self, place: usize, row: Vec<Value>) {
        self.places[place].now = Some(row);
    }

    pub fn delete(&mut self, place: usize) {
        let Some(row) = self.places[place].now.take() else { return };
        for (unique, entries) in self.table.uniques.iter().zip(&mut self.entries) {
            for key in entry_keys(unique, &row) {
                entries.remove(&key);
            }
        }
    }

    /// What has changed in the end.
    pub fn into_changes(self) -> Vec<ChangedRow> {
        let changed = self.places.into_iter().filter(|place| place.before != place.now);
        changed.map(|place| ChangedRow { old: place.before, new: place.now }).collect()
    }

    fn key_of(&self, row: &[Value]) -> Vec<u8> {
        let mut key = Vec::with_capacity(32);
        self.table.primary.encode_values(row, &mut key);
        key
    }

    fn enter(&mut self, place: usize, row: &[Value]) {
        for (unique, entries) in self.table.uniques.iter().zip(&mut self.entries) {
            for key in entry_keys(unique, row) {
                entries.insert(key, place);
            }
        }
    }
}
