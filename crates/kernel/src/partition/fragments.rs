//! The fragments of a partition, by table.
//!
//! A table whose rows have never been here has no fragment of its own: a user's partitioned table may have thousands of leaves, in every
//! partition of the node, of which most are empty. Its entry names its definition and an *empty* fragment, which all tables of one shape have in
//! common. Reads find that one, and find nothing in it. [`Fragments::get_mut`] is for whoever is about to change something: there the table gets a fragment of
//! its own, which it keeps until it is dropped.
//!
//! Two tables are of one shape if rows and keys of the one are encoded as those of the other, in indexes of the same ids, and if
//! snapshots can be read from the same time on. An empty fragment is looked for among the few that were used last: leaves are made and altered one after
//! another, each with its index tables, which are all of one shape.
//!
//! Invariants: an empty fragment has no row, no entry, no digest, and does not change; the definition of a table's own fragment is the table's.

use super::fragment::Fragment;
use crate::budget::MemoryBudget;
use hashbrown::HashMap;
use rauk_types::{TableId, TableSchema, Timestamp};
use rustc_hash::FxBuildHasher;
use std::ops::Index;
use std::sync::Arc;

/// So many empty fragments are remembered to be found again.
const RECENT: usize = 4;

enum Slot {
    Empty { schema: Arc<TableSchema>, fragment: Arc<Fragment> },
    Own(Box<Fragment>),
}

impl Slot {
    #[inline]
    fn fragment(&self) -> &Fragment {
        match self {
            Slot::Own(fragment) => fragment,
            Slot::Empty { fragment, .. } => fragment,
        }
    }

    fn schema(&self) -> &Arc<TableSchema> {
        match self {
            Slot::Own(fragment) => &fragment.schema,
            Slot::Empty { schema, .. } => schema,
        }
    }
}

pub(super) struct Fragments {
    budget: Arc<MemoryBudget>,
    tables: HashMap<TableId, Slot, FxBuildHasher>,
    /// The last one used comes first.
    recent: Vec<Arc<Fragment>>,
}

impl Fragments {
    pub fn new(budget: Arc<MemoryBudget>) -> Fragments {
        Fragments { budget, tables: HashMap::default(), recent: Vec::new() }
    }

    /// Adds a table without rows; panics if it is here already.
    pub fn create(&mut self, schema: Arc<TableSchema>) {
        let is_it = |known: &Fragment| !known.has_floors() && known.has_shape_of(&schema);
        let fragment = match self.recall(is_it) {
            Some(known) => known,
            None => self.remember(Fragment::new(schema.clone(), &self.budget)),
        };
        let id = schema.id;
        let old = self.tables.insert(id, Slot::Empty { schema, fragment });
        assert!(old.is_none(), "table {id:?} is there already");
    }

    /// Gives a table another definition; panics if it is not here.
    pub fn alter(&mut self, schema: Arc<TableSchema>) {
        let slot = self.tables.get_mut(&schema.id).expect("the table to alter is here");
        let old = match slot {
            Slot::Own(fragment) => return fragment.set_schema(schema, &self.budget),
            Slot::Empty { schema: known, fragment } if fragment.has_shape_of(&schema) => {
                *known = schema;
                return;
            }
            Slot::Empty { fragment, .. } => fragment.clone(),
        };
        let mut altered = old.of_table(old.schema.clone(), &self.budget);
        altered.set_schema(schema.clone(), &self.budget);
        let fragment = match self.recall(|known| known.has_shape_of(&schema) && known.has_floors_of(&altered)) {
            Some(known) => known,
            None => self.remember(altered),
        };
        self.tables.insert(schema.id, Slot::Empty { schema, fragment });
    }

    /// Takes a table out: its fragment, if it has one of its own. `None`: the table is not here.
    pub fn remove(&mut self, table: TableId) -> Option<Option<Box<Fragment>>> {
        Some(match self.tables.remove(&table)? {
            Slot::Own(fragment) => Some(fragment),
            Slot::Empty { .. } => None,
        })
    }

    #[inline]
    pub fn get(&self, table: &TableId) -> Option<&Fragment> {
        self.tables.get(table).map(Slot::fragment)
    }

    /// The table's own fragment; it gets one if it has none.
    #[inline]
    pub fn get_mut(&mut self, table: &TableId) -> Option<&mut Fragment> {
        let slot = self.tables.get_mut(table)?;
        if let Slot::Empty { schema, fragment } = slot {
            *slot = Slot::Own(Box::new(fragment.of_table(schema.clone(), &self.budget)));
        }
        match slot {
            Slot::Own(fragment) => Some(fragment),
            Slot::Empty { .. } => unreachable!("it has its own by now"),
        }
    }

    /// The table's own fragment, if it has one.
    pub fn own_mut(&mut self, table: &TableId) -> Option<&mut Fragment> {
        match self.tables.get_mut(table)? {
            Slot::Own(fragment) => Some(fragment),
            Slot::Empty { .. } => None,
        }
    }

    pub fn contains(&self, table: &TableId) -> bool {
        self.tables.contains_key(table)
    }

    pub fn schema(&self, table: &TableId) -> Option<&Arc<TableSchema>> {
        self.tables.get(table).map(Slot::schema)
    }

    /// In no order.
    pub fn tables(&self) -> impl Iterator<Item = TableId> {
        self.tables.keys().copied()
    }

    /// In no order.
    pub fn schemas(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        self.tables.values().map(Slot::schema)
    }

    /// In no order.
    pub fn iter(&self) -> impl Iterator<Item = (TableId, &Fragment)> {
        self.tables.iter().map(|(table, slot)| (*table, slot.fragment()))
    }

    /// Tables that have a fragment of their own, in no order: all others have no rows.
    pub fn own(&self) -> impl Iterator<Item = (TableId, &Fragment)> {
        self.tables.iter().filter_map(|(table, slot)| match slot {
            Slot::Own(fragment) => Some((*table, &**fragment)),
            Slot::Empty { .. } => None,
        })
    }

    /// [`Fragment::raise_floors`] of all tables without a fragment of their own.
    pub fn raise_floors_of_empty(&mut self, time: Timestamp) {
        self.recent.clear();
        // The old ones are kept here, so that no new one has the address of an old one.
        let mut raised: HashMap<*const Fragment, (Arc<Fragment>, Arc<Fragment>), FxBuildHasher> = HashMap::default();
        for slot in self.tables.values_mut() {
            let Slot::Empty { fragment, .. } = slot else { continue };
            let (_, new) = raised.entry(Arc::as_ptr(fragment)).or_insert_with(|| {
                let mut new = fragment.of_table(fragment.schema.clone(), &self.budget);
                new.raise_floors(time);
                (fragment.clone(), Arc::new(new))
            });
            *fragment = new.clone();
        }
    }

    /// One of the empty fragments that were used last.
    fn recall(&mut self, is_it: impl Fn(&Fragment) -> bool) -> Option<Arc<Fragment>> {
        let at = self.recent.iter().position(|known| is_it(known))?;
        self.recent[..=at].rotate_right(1);
        Some(self.recent[0].clone())
    }

    fn remember(&mut self, fragment: Fragment) -> Arc<Fragment> {
        let fragment = Arc::new(fragment);
        self.recent.truncate(RECENT - 1);
        self.recent.insert(0, fragment.clone());
        fragment
    }
}

impl Index<&TableId> for Fragments {
    type Output = Fragment;

    #[inline]
    fn index(&self, table: &TableId) -> &Fragment {
        self.get(table).expect("a table in use")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_table_takes_two_pointers() {
        assert_eq!(size_of::<(TableId, Slot)>(), 24);
    }
}
