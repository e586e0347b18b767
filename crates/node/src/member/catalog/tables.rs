//! Partitions and table cache follow the group's catalog.
//!
//! What is wanted: the catalog's tables, and the tables that jobs build, hidden from names; in partitions, some with the definition that a job is filling. What is there is remembered
//! from the call before ([`Followed`]); the first call of a process asks the partitions, which have what recovery gave them. Only what differs is touched.
//!
//! The order of one call keeps two promises. *No statement finds in the cache what partitions do not have*: tables are made and changed in all partitions before they are published
//! (ordered indexes that no job has filled are filled), and dropped from the cache before they are dropped from partitions. *No statement that knows an older definition runs
//! on*: a changed table has been locked alone on this process by its DDL's intent, and its version moves before the locks are given back.
//! *No statement finds a table that an intent has for itself*: a new one that took the place of a table which a session
//! has locked is locked before it is published.

use super::fills::{Fills, Item, fill_now};
use super::intents::{Held, locked_alone};
use crate::ddl::{tables_with_rows, validating};
use crate::executor::Class;
use crate::node::Node;
use crate::table::building::{Building, NOTES};
use crate::table::counter::table_of_counter;
use crate::table::parts::physical;
use crate::table::{TableInfo, TableShared};
use rauk_kernel::RowId;
use rauk_manage::group::Group;
use rauk_manage::{Catalog, JobId};
use rauk_types::{IndexId, IndexSchema, TableId, TableSchema};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

type Tables = BTreeMap<TableId, Arc<TableSchema>>;

/// What partitions and cache have.
pub(super) struct Followed {
    /// `Group::catalog_index` at that state.
    pub index: u64,
    tables: Tables,
    /// As partitions have them.
    placed: Tables,
    hidden: BTreeSet<TableId>,
}

impl Followed {
    /// Whether a counter's table is there.
    pub fn has(&self, counter: TableId) -> bool {
        self.tables.contains_key(&table_of_counter(counter))
    }
}

/// All tables that a process of the cluster has in its partitions: those of the catalog and those that jobs build.
pub fn all_tables(catalog: &Catalog) -> Vec<Arc<TableSchema>> {
    catalog.partition_tables().values().flat_map(physical).collect()
}

pub(super) async fn follow(
    node: &Arc<Node>,
    before: Option<Followed>,
    group: &Group,
    fills: &Fills,
    taken: &mut Held,
) -> Followed {
    let catalog = &group.catalog;
    let now = Followed {
        index: group.catalog_index,
        tables: catalog.tables().chain(catalog.hidden_tables()).map(|t| (t.id, t.clone())).collect(),
        placed: catalog.partition_tables(),
        hidden: catalog.hidden_tables().map(|t| t.id).collect(),
    };
    let (had, placed, was_hidden) = match before {
        Some(before) => (before.tables, before.placed, before.hidden),
        None => Default::default(),
    };
    let left = fills.follow(catalog);
    let filling: BTreeMap<TableId, JobId> =
        catalog.jobs().flat_map(|j| j.definitions.iter().map(|t| (t.id, j.id))).collect();
    let redefined = differences(&placed, &now.placed);
    let changed: Vec<Arc<TableSchema>> = redefined.iter().flat_map(physical).collect();
    for partition in 0..node.partition_count() {
        bring(node, partition, &changed, &filling, fills).await;
    }
    for item in left {
        let schema = now.placed.get(&item.table);
        if schema.and_then(|t| t.index(item.index)).is_some_and(|i| i.has_entries()) {
            fill_now(node, item).await;
        }
    }
    let gone = match placed.is_empty() {
        // The first call, or nothing was there: partitions may have more than the catalog.
        true => node.on_partition(0, Class::Background, |p| p.tables()).await,
        false => {
            let stays = |old: &&Arc<TableSchema>| now.placed.get(&old.id).is_some_and(|new| same(old, new));
            let changed = placed.values().filter(|old| !stays(old));
            changed.flat_map(|old| std::iter::once(old.id).chain(ids_of(old))).collect()
        }
    };
    // A partitioned table is in the cache alone, its leaves are in partitions too.
    let all = now.placed.values().flat_map(|table| std::iter::once(table.id).chain(ids_of(table)));
    let stay: BTreeSet<TableId> = all.collect();
    let gone: Vec<TableId> = gone.into_iter().filter(|id| !stay.contains(id)).collect();

    // What was built and is now in place.
    let shown = was_hidden.iter().filter(|id| !now.hidden.contains(id)).filter_map(|id| now.tables.get(id));
    // Leaves that a job has filled are leaves of a table now.
    let leaves = was_hidden.iter().filter(|id| !now.tables.contains_key(id) && stay.contains(id));
    let shown: Vec<TableId> = shown.flat_map(ids_of).chain(leaves.copied()).collect();
    for partition in (0..node.partition_count()).filter(|_| !shown.is_empty()) {
        node.finish_ends(partition).await;
        node.on_partition(partition, Class::Background, |p| shown.iter().for_each(|id| p.show_table(*id))).await;
    }
    // Tables that changed places with a leaf, which has their ids now.
    let exchanged = had.keys().filter(|id| !now.tables.contains_key(id) && stay.contains(id));
    let exchanged: Vec<Arc<TableInfo>> = exchanged.filter_map(|id| node.tables.by_id(*id)).collect();
    let changed = differences(&had, &now.tables);
    publish(node, &now, &changed, &was_hidden, &locked_alone(group), taken);
    keep_builds(node, catalog);
    node.catalog.lock().set(catalog.clone());
    node.catalog_changes.fetch_add(1, Ordering::Release);
    for table in &exchanged {
        table.shared.set_dropped();
        node.tables.retract_name(table);
    }
    for &id in &gone {
        if let Some(info) = node.tables.by_id(id) {
            info.shared.set_dropped();
        }
        node.tables.retract(id);
    }
    for partition in 0..node.partition_count() {
        for &id in &gone {
            node.on_partition(partition, Class::Background, |p| p.drop_table(id)).await;
        }
    }
    now
}

fn same(a: &Arc<TableSchema>, b: &Arc<TableSchema>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

/// The tables that have the rows of a table ([`physical`]).
fn ids_of(table: &Arc<TableSchema>) -> Vec<TableId> {
    match &table.partitioning {
        None => vec![table.id],
        Some(partitioning) => partitioning.tables().collect(),
    }
}

/// Tables of `now` that `had` has not, or otherwise.
fn differences(had: &Tables, now: &Tables) -> Vec<Arc<TableSchema>> {
    now.values().filter(|t| !had.get(&t.id).is_some_and(|old| same(old, t))).cloned().collect()
}

/// Makes and changes tables in a partition.
async fn bring(
    node: &Arc<Node>,
    partition: u16,
    changed: &[Arc<TableSchema>],
    filling: &BTreeMap<TableId, JobId>,
    fills: &Fills,
) {
    for schema in changed {
        node.finish_ends(partition).await;
        let new_indexes = node
            .on_partition(partition, Class::Background, |p| {
                let Some(old) = p.schema(schema.id).cloned() else {
                    p.create_table(schema.clone());
                    return Vec::new();
                };
                if same(&old, schema) {
                    return Vec::new();
                }
                p.alter_table(schema.clone());
                let kept = schema.indexes.iter().filter(|i| i.has_entries());
                let new = kept.filter(|i| !old.index(i.id).is_some_and(|o| o.has_entries()));
                new.map(|i| i.id).collect::<Vec<IndexId>>()
            })
            .await;
        for index in new_indexes {
            let item = Item { partition, table: schema.id, index, next: RowId(0) };
            match filling.get(&schema.id) {
                Some(job) => fills.add(*job, item),
                None => fill_now(node, item).await,
            }
        }
    }
}

/// What jobs build while their tables are used is seen to by all writers here: of the tables that are altered, and of
/// those that their new foreign keys refer to. What begins does so before the locks of its intent are given back, and what
/// has been switched ends so too.
fn keep_builds(node: &Arc<Node>, catalog: &Catalog) {
    let mut kept: BTreeSet<TableId> = BTreeSet::new();
    for job in catalog.jobs() {
        let base_of =
            |t: &Arc<TableSchema>| t.entry_of.filter(|(_, index)| *index == NOTES).map(|(base, _)| (base, t.id));
        let Some((base, notes)) = job.tables.iter().find_map(base_of) else { continue };
        let definition = job.definitions.iter().find(|definition| definition.id == base);
        let (Some(table), Some(notes)) = (node.tables.by_id(base), node.tables.by_id(notes)) else { continue };
        let Some(definition) = definition else {
            // It gets no other definition over the same rows: they are copied.
            let copied = Building::of_copy(&table.schema, notes);
            for table in tables_with_rows(&table) {
                kept.insert(table.schema.id);
                let slot = &table.shared.building;
                if slot.get().is_none_or(|kept| kept.notes.schema.id != copied.notes.schema.id) {
                    slot.set(Some(copied.clone()));
                }
            }
            continue;
        };
        let parents = validating::parents(node, definition, &table.schema);
        kept.extend([base].into_iter().chain(parents.iter().map(|parent| parent.schema.id)));
        let slot = &table.shared.building;
        if slot.get().is_some_and(|building| building.notes.schema.id == notes.schema.id) {
            continue;
        }
        let is_built =
            |index: &&IndexSchema| index.entry_table.is_some_and(|id| job.tables.iter().any(|built| built.id == id));
        let fresh: Vec<IndexId> = definition.indexes.iter().filter(is_built).map(|index| index.id).collect();
        let entries_of = |id| node.tables.by_id(id).expect("what a job builds is in the cache");
        for parent in &parents {
            let at_parent = Building::at_parent(definition, &table.schema, &parent.schema, &notes);
            parent.shared.building.set(Some(at_parent));
        }
        slot.set(Some(Building::new(definition.clone(), &table.schema, &fresh, notes, entries_of)));
    }
    for table in node.tables.all() {
        if table.shared.building.is_some() && !kept.contains(&table.schema.id) {
            table.shared.building.set(None);
        }
    }
}

/// Puts the definitions into the cache: index tables first, since their base tables refer to them.
fn publish(
    node: &Arc<Node>,
    now: &Followed,
    changed: &[Arc<TableSchema>],
    was_hidden: &BTreeSet<TableId>,
    alone: &BTreeSet<TableId>,
    taken: &mut Held,
) {
    // What a leaf has is no table's that has changed places with it.
    let known =
        |schema: &TableSchema| node.tables.by_id(schema.id).filter(|known| known.schema.leaf_of == schema.leaf_of);
    let shared_of = |schema: &TableSchema| match known(schema) {
        Some(info) => info.shared.clone(),
        None => TableShared::new(schema, 1, 1),
    };
    let mut touched: BTreeSet<TableId> = BTreeSet::new();
    for schema in changed {
        match schema.entry_of {
            None => {
                touched.insert(schema.id);
            }
            Some((base, _)) => {
                touched.insert(base);
                let shared = shared_of(schema);
                shared.set_version(schema.version);
                let info =
                    TableInfo::new(schema.clone(), shared, |_| unreachable!("index tables have no unique index"));
                node.tables.publish(info);
            }
        }
    }
    // What was built and is now in place.
    let shown = was_hidden.iter().filter(|id| !now.hidden.contains(id));
    touched.extend(shown.filter(|id| now.tables.get(id).is_some_and(|t| t.entry_of.is_none())));
    for id in touched {
        // An index table may be built for a base table that does not have it yet.
        let Some(schema) = now.tables.get(&id) else { continue };
        let entries_of = |id| node.tables.by_id(id).expect("the catalog has a table's index tables");
        let info = TableInfo::new(schema.clone(), shared_of(schema), entries_of);
        let is_unknown = was_hidden.contains(&id) || known(schema).is_none();
        if is_unknown && alone.contains(&id) && !now.hidden.contains(&id) {
            taken.lock_unknown(&info);
        }
        match now.hidden.contains(&id) {
            true => node.tables.publish_hidden(info.clone()),
            false => node.tables.publish(info.clone()),
        }
        info.shared.set_version(info.schema.version);
    }
}
