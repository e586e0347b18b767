//! The definitions that statements find: by name in shards, by id in one map. Only the newest version of a table is in here.
//!
//! A publication makes a table *another* one when its name belonged to no table or to a different one, or when it has
//! lost leaves. Such publications are numbered. A transaction remembers the newest number when it draws its snapshot. It
//! does not read a table with a newer number at that snapshot (error 1412): rows that went with the old table or leaf are
//! missing, and rows that were copied are newer than the snapshot. The number is given under the exclusive metadata lock,
//! before the table is found. Instant changes, renames and new leaves keep the number.

use super::TableInfo;
use super::relations::{Child, Relations};
use hashbrown::HashTable;
use parking_lot::{Mutex, RwLock};
use rauk_types::TableId;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SHARDS: usize = 16;

#[derive(Default)]
pub struct TableCache {
    names: [RwLock<HashTable<Arc<TableInfo>>>; SHARDS],
    /// Base tables, index tables, and leaves of partitioned tables.
    ids: RwLock<FxHashMap<TableId, Arc<TableInfo>>>,
    /// Of the tables that are found by name.
    relations: Mutex<Relations>,
    published: AtomicU64,
}

fn hash(database: &str, name: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(database.as_bytes());
    hasher.write_u8(0xFF);
    hasher.write(name.as_bytes());
    hasher.finish()
}

fn hash_of(table: &Arc<TableInfo>) -> u64 {
    hash(&table.schema.database, &table.schema.name)
}

impl TableCache {
    fn shard(&self, hash: u64) -> &RwLock<HashTable<Arc<TableInfo>>> {
        &self.names[(hash >> 32) as usize % SHARDS]
    }

    pub fn by_name(&self, database: &str, name: &str) -> Option<Arc<TableInfo>> {
        let hash = hash(database, name);
        let is_it = |t: &Arc<TableInfo>| t.schema.name == name && t.schema.database == database;
        self.shard(hash).read().find(hash, is_it).cloned()
    }

    pub fn by_id(&self, id: TableId) -> Option<Arc<TableInfo>> {
        self.ids.read().get(&id).cloned()
    }

    /// All tables, index tables included, by id.
    pub fn all(&self) -> Vec<Arc<TableInfo>> {
        let mut all: Vec<_> = self.ids.read().values().cloned().collect();
        all.sort_by_key(|t| t.schema.id);
        all
    }

    /// Who refers to a table of this name, which need not be there.
    pub fn children_of(&self, database: &str, name: &str) -> Arc<[Child]> {
        self.relations.lock().of(database, name)
    }

    /// The number of the newest publication that older snapshots cannot read.
    #[inline]
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Gives a table a new number.
    fn number(&self, table: &TableInfo) {
        let number = self.published.fetch_add(1, Ordering::AcqRel) + 1;
        table.shared.set_published(number);
        table.beneath().for_each(|leaf| leaf.shared.set_published(number));
    }

    /// Gives it one if it is another table than the one that was known by its id or name.
    fn number_other(&self, table: &TableInfo, before: Option<&Arc<TableInfo>>) {
        let has =
            |leaf: &Arc<TableInfo>| table.parts.as_ref().is_some_and(|parts| parts.find(leaf.schema.id).is_some());
        let leaves = |table: &Arc<TableInfo>| table.parts.as_ref().is_none_or(|parts| parts.leaves().iter().all(has));
        let lost = || before.is_some_and(|before| !leaves(before));
        let schema = &table.schema;
        let named = || self.by_name(&schema.database, &schema.name);
        let is_other = || schema.entry_of.is_none() && named().is_some_and(|known| known.schema.id != schema.id);
        if !table.shared.is_published() || is_other() || lost() {
            self.number(table);
        }
    }

    /// Puts a table in, in place of an earlier version of it (whatever name that had). At no time is neither of them found.
    pub fn publish(&self, table: Arc<TableInfo>) {
        let id = table.schema.id;
        // Before anybody finds it.
        let children = self.children_of(&table.schema.database, &table.schema.name);
        if !children.is_empty() {
            table.shared.children.set(children);
        }
        self.number_other(&table, self.by_id(id).as_ref());
        let old = {
            let mut ids = self.ids.write();
            let old = ids.insert(id, table.clone());
            Self::replace_beneath(&mut ids, old.as_ref(), Some(&table));
            old
        };
        if table.schema.entry_of.is_none() {
            let hash = hash_of(&table);
            self.shard(hash).write().insert_unique(hash, table.clone(), hash_of);
        }
        // A table that was built is the same that was known by its id before.
        if let Some(old) = old
            && !Arc::ptr_eq(&old, &table)
        {
            self.remove_name(&old);
            self.relate(Some(&old), Some(&table));
            return;
        }
        self.relate(None, Some(&table));
    }

    /// Brings the lists of children to what is declared now.
    fn relate(&self, old: Option<&Arc<TableInfo>>, new: Option<&Arc<TableInfo>>) {
        let schema = |info: Option<&Arc<TableInfo>>| info.map(|info| info.schema.clone());
        let (old, new) = (schema(old), schema(new));
        let mut relations = self.relations.lock();
        let declares = |schema: &Option<Arc<rauk_types::TableSchema>>| {
            schema.as_ref().is_some_and(|schema| !schema.foreign_keys.is_empty())
        };
        if relations.is_empty() && !declares(&old) && !declares(&new) {
            return;
        }
        let mut concerned = relations.replace(old.as_deref(), new.as_deref());
        if let Some(new) = new.filter(|new| new.entry_of.is_none()) {
            concerned.push((new.database.clone(), new.name.clone()));
        }
        for (database, name) in concerned {
            if let Some(parent) = self.by_name(&database, &name) {
                parent.shared.children.set(relations.of(&database, &name));
            }
        }
    }

    /// Puts a table in by id only: it is being built, and nobody may find it by name.
    pub fn publish_hidden(&self, table: Arc<TableInfo>) {
        let mut ids = self.ids.write();
        let old = ids.insert(table.schema.id, table.clone());
        Self::replace_beneath(&mut ids, old.as_ref(), Some(&table));
    }

    /// Leaves of a partitioned table come and go with it.
    fn replace_beneath(
        ids: &mut FxHashMap<TableId, Arc<TableInfo>>,
        old: Option<&Arc<TableInfo>>,
        new: Option<&Arc<TableInfo>>,
    ) {
        for gone in old.iter().flat_map(|old| old.beneath()) {
            // The id may be another table's by now.
            if ids.get(&gone.schema.id).is_some_and(|found| Arc::ptr_eq(found, gone)) {
                ids.remove(&gone.schema.id);
            }
        }
        for leaf in new.iter().flat_map(|new| new.beneath()) {
            ids.insert(leaf.schema.id, leaf.clone());
        }
    }

    /// A leaf and a table have changed places: `partitioned` is the newest version, and the table is `new` under the id that
    /// the leaf had. At no time is a name without its table.
    pub fn exchange(&self, partitioned: &Arc<TableInfo>, old: &Arc<TableInfo>, new: &Arc<TableInfo>) {
        [partitioned, new].into_iter().for_each(|table| self.number(table));
        let before = {
            let mut ids = self.ids.write();
            let before = ids.insert(partitioned.schema.id, partitioned.clone());
            Self::replace_beneath(&mut ids, before.as_ref(), None);
            ids.remove(&old.schema.id);
            old.uniques.iter().for_each(|unique| drop(ids.remove(&unique.entries.schema.id)));
            Self::replace_beneath(&mut ids, None, Some(partitioned));
            ids.insert(new.schema.id, new.clone());
            for unique in &new.uniques {
                ids.insert(unique.entries.schema.id, unique.entries.clone());
            }
            before
        };
        for table in [partitioned, new] {
            let hash = hash_of(table);
            self.shard(hash).write().insert_unique(hash, table.clone(), hash_of);
        }
        before.iter().chain([old]).for_each(|gone| self.remove_name(gone));
    }

    pub fn retract(&self, id: TableId) {
        let old = {
            let mut ids = self.ids.write();
            let old = ids.remove(&id);
            Self::replace_beneath(&mut ids, old.as_ref(), None);
            old
        };
        if let Some(old) = old {
            self.remove_name(&old);
            self.relate(Some(&old), None);
        }
    }

    /// Of a table whose id is a leaf's by now.
    pub fn retract_name(&self, old: &Arc<TableInfo>) {
        self.remove_name(old);
        self.relate(Some(old), None);
    }

    fn remove_name(&self, old: &Arc<TableInfo>) {
        let hash = hash_of(old);
        if let Ok(found) = self.shard(hash).write().find_entry(hash, |t| Arc::ptr_eq(t, old)) {
            found.remove();
        }
    }
}
