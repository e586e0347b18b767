//! Foreign keys as statements use them: what each table refers to, and who refers to it.
//!
//! A child declares its foreign keys in its schema and names the parent by name. Who refers to a table follows from that: [`Relations`] beside the table
//! cache keeps it by the parent's name, so that a parent that is made, renamed or replaced later finds its children, and puts it into what all versions
//! of the parent share ([`Children`]). A write looks there after it has locked its row.
//!
//! Invariant: the list of a table's children grows only while its metadata lock is held alone (on every node of a cluster), so a transaction that
//! uses the parent sees every child into which somebody could insert. It may see one that has gone, or has another name or number by now: whoever
//! needs the children takes their metadata locks, and looks at the list again when one was not there.

use parking_lot::RwLock;
use rauk_types::foreign::{ParentKey, child_index, is_compatible, parent_key};
use rauk_types::{IndexId, KeyDef, TableId, TableSchema, ValueRef};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A foreign key that refers to a table. In the order in which they are acted upon: by name, as in InnoDB.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Child {
    pub database: String,
    /// Of the constraint.
    pub name: String,
    pub table: TableId,
}

/// Who refers to a table: shared by all its versions.
#[derive(Default)]
pub struct Children {
    any: AtomicBool,
    list: RwLock<Arc<[Child]>>,
}

impl Children {
    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub fn list(&self) -> Arc<[Child]> {
        self.list.read().clone()
    }

    pub fn set(&self, children: Arc<[Child]>) {
        let any = !children.is_empty();
        *self.list.write() = children;
        self.any.store(any, Ordering::Release);
    }
}

/// A foreign key of a table, with what a lookup of its rows needs.
pub struct Reference {
    /// Positions in the table.
    pub columns: Vec<usize>,
    /// By which rows are found that have a parent's key.
    pub index: Option<(IndexId, KeyDef)>,
    /// If the columns decide where a row is: encodes the distribution key, and the columns' places in `columns` for each of its parts.
    pub distribution: Option<(KeyDef, Vec<usize>)>,
}

impl Reference {
    pub fn all_of(schema: &TableSchema) -> Vec<Reference> {
        schema.foreign_keys.iter().map(|key| Reference::of(schema, key)).collect()
    }

    pub fn of(schema: &TableSchema, key: &rauk_types::ForeignKey) -> Reference {
        let columns = key.positions(schema);
        let index = child_index(schema, &columns).map(|index| (index.id, schema.key_def(index)));
        let distribution = distribution(schema, &columns);
        Reference { columns, index, distribution }
    }
}

/// How the distribution key is made of the values of `columns`; `None` when it needs others.
pub fn distribution(schema: &TableSchema, columns: &[usize]) -> Option<(KeyDef, Vec<usize>)> {
    if schema.fully_replicated {
        return None;
    }
    let place = |column: &usize| columns.iter().position(|c| c == column);
    let places: Option<Vec<usize>> = schema.distribution.iter().map(place).collect();
    places.map(|places| (schema.distribution_def(), places))
}

/// The encoded distribution key of rows with these values.
pub fn distribution_key((def, places): &(KeyDef, Vec<usize>), values: &[ValueRef<'_>]) -> Vec<u8> {
    let values: Vec<ValueRef<'_>> = places.iter().map(|&at| values[at]).collect();
    let mut key = Vec::new();
    def.encode_prefix(&values, &mut key);
    key
}

/// A parent as a foreign key finds its rows.
pub struct ParentIndex {
    /// Positions of the referenced columns.
    pub columns: Vec<usize>,
    pub key: ParentKey,
}

impl ParentIndex {
    /// `None`: the parent lacks a column or an index, or has a column of another type. DDL makes no such pair; a parent that is renamed to the name
    /// that a child waits for may be one.
    pub fn of(key: &rauk_types::ForeignKey, child: &TableSchema, parent: &TableSchema) -> Option<ParentIndex> {
        let columns = key.parent_positions(parent)?;
        let fit = |(own, other): (usize, &usize)| is_compatible(&child.columns[own].ty, &parent.columns[*other].ty);
        let fits = key.positions(child).into_iter().zip(&columns).all(fit);
        let key = parent_key(parent, &columns).filter(|_| fits)?;
        Some(ParentIndex { columns, key })
    }
}

/// All children by their parents' names.
#[derive(Default)]
pub struct Relations {
    by_parent: FxHashMap<(String, String), BTreeSet<Child>>,
}

impl Relations {
    pub fn is_empty(&self) -> bool {
        self.by_parent.is_empty()
    }

    pub fn of(&self, database: &str, name: &str) -> Arc<[Child]> {
        let found = self.by_parent.get(&(database.to_owned(), name.to_owned()));
        found.map_or_else(|| Arc::from([]), |children| children.iter().cloned().collect())
    }

    /// Takes the foreign keys of `old` out and those of `new` in; gives the names of the parents that this concerns.
    pub fn replace(&mut self, old: Option<&TableSchema>, new: Option<&TableSchema>) -> Vec<(String, String)> {
        let mut concerned = Vec::new();
        let keys = |schema: Option<&TableSchema>| -> Vec<((String, String), Child)> {
            let all = schema.into_iter().flat_map(|schema| {
                schema.foreign_keys.iter().map(move |key| {
                    let parent = (key.parent_database.clone(), key.parent_table.clone());
                    (parent, Child { database: schema.database.clone(), name: key.name.clone(), table: schema.id })
                })
            });
            all.collect()
        };
        for (parent, child) in keys(old) {
            if let Some(children) = self.by_parent.get_mut(&parent) {
                children.remove(&child);
                if children.is_empty() {
                    self.by_parent.remove(&parent);
                }
            }
            concerned.push(parent);
        }
        for (parent, child) in keys(new) {
            self.by_parent.entry(parent.clone()).or_default().insert(child);
            concerned.push(parent);
        }
        concerned
    }
}
