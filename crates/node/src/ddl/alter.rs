//! ALTER TABLE: a new definition over the same rows, or the rows in a new form.
//!
//! [`Database::alter_table`] changes columns and indexes and copies no row: rows keep the layout they were written
//! with, and read as the new definition says. New ordered indexes are filled while the table is used
//! ([`super::online`]). [`Database::rewrite_table`] is for what changes stored values or where they live (column types,
//! primary key, distribution, partitions): it fills a new table, while the old one is used where that can be so
//! ([`super::copying`]), and puts it in the old one's place. Before the switch the new table's AUTO_INCREMENT counter, and
//! that of its hidden keys, go above every number in it.

use super::build::{self, Building, Patience};
use super::cluster::{self, Place};
use super::copying::{self, Convert, Copying, Further, Look, look_at_rows, tables_with_rows};
use super::online::{Work, building_definition};
use super::pace::Pace;
use super::progress::RowWork;
use super::tables::ids_of_new;
use super::workers::{Parts, Worker, Workers, is_worth_it};
use super::{Exclusive, entering, foreign, validating};
use crate::commit::group::yield_once;
use crate::database::{Database, TableHandle};
use crate::error::NodeError;
use crate::executor::Class;
use crate::locks::metadata::{DdlWait, Meanwhile};
use crate::node::Node;
use crate::table::building::{Building as KeptByWriters, notes_schema};
use crate::table::{TableInfo, entries};
use rauk_kernel::budget::Purpose;
use rauk_kernel::{RowId, Stop};
use rauk_manage::JobStep;
use rauk_types::{ForeignKey, IndexId, RowLayout, TableId, TableSchema};
use std::sync::Arc;
use std::time::Duration;

/// Rows put into a new ordered index in one hold of a partition.
const INDEX_SLICE: usize = 64;

impl Database {
    /// Changes a definition: the caller gives the wanted columns (kept ones with their ids) and indexes (kept ones with their ids and index tables);
    /// new indexes are built, dropped ones go, rows are not copied. Duplicates met by a new unique index: `Refused` with 1062.
    pub async fn alter_table(
        &self,
        old: &TableHandle,
        new: TableSchema,
        wait: impl Into<DdlWait<'_>>,
    ) -> Result<(), NodeError> {
        let wait = wait.into().under_locks();
        let node = &self.node;
        if let Some(cluster) = node.cluster() {
            return cluster::alter_table(Place { node, cluster }, old.info(), new, wait).await;
        }
        let beside = || foreign::beside(node, old.info(), &new);
        let held = Exclusive::lock_with(node, Some(old.info().clone()), beside, wait).await?;
        let old = &held.tables[0].clone();
        let mut new = next_version(&old.schema, new);
        let children = follow(node, old, &mut new, wait)?;
        let what = format!("ALTER TABLE {}.{}", new.database, new.name);
        let added = added_keys(&old.schema, &new, wait);
        // One more for the notes of writers.
        let uniques = Plan::fresh(&new);
        let builds = uniques + usize::from(uniques > 0 || !added.is_empty());
        let mut building = Building::start(node, what, new.id, builds)?;
        let mut reserved = building.job.builds.clone().into_iter();
        let mut ids = || reserved.next().expect("one for each table was reserved");
        let Plan { new, fresh, made, dropped } = Plan::make(old, new, &mut ids);

        made.iter().for_each(|s| building.make(s));
        let online = building_definition(&old.schema, &new, &added, wait.meanwhile).map(Arc::new);
        let definition = online.clone().unwrap_or_else(|| Arc::new(between(&old.schema, &new)));
        building.alter(&old.schema, &definition);
        let info = altered_info(node, old, &new, &made);
        for unique in info.uniques.iter().filter(|u| fresh.contains(&u.id)) {
            node.tables.publish_hidden(unique.entries.clone());
        }
        let needs_writers = !fresh.is_empty() || !added.is_empty();
        let kept = online.as_ref().filter(|_| needs_writers).map(|definition| {
            let schema = Arc::new(notes_schema(&old.schema, ids()));
            building.make(&schema);
            let notes = node.info_of_new(schema, &[]);
            node.tables.publish_hidden(notes.clone());
            let entries_of = |id| {
                let unique = info.uniques.iter().find(|u| u.entries.schema.id == id);
                unique.expect("it was just made").entries.clone()
            };
            let kept = KeptByWriters::new(definition.clone(), &old.schema, &fresh, notes.clone(), entries_of);
            building.keep(&old.shared, kept.clone());
            for parent in validating::parents(node, definition, &old.schema) {
                let at_parent = KeptByWriters::at_parent(definition, &old.schema, &parent.schema, &notes);
                building.keep(&parent.shared, at_parent);
            }
            kept
        });
        building.step(JobStep::Filling)?;
        let mut work = Work::new(building, held);
        if online.is_some() {
            work.held().let_users_in(wait.meanwhile);
        }
        for index in new.indexes.iter().filter(|i| i.has_entries()) {
            if !old.schema.index(index.id).is_some_and(|i| i.has_entries()) {
                let workers = work.workers.clone();
                wait.unless_killed(build_ordered(node, old, &new, index.id, &workers, wait)).await?;
            }
        }
        let mut patience = Patience::with_users(wait.limit);
        match &kept {
            Some(kept) => {
                let workers = work.workers.clone();
                let filled = entering::fill(node, old, kept, &mut patience, wait, (&workers, None));
                wait.unless_killed(filled).await?;
            }
            None if fresh.is_empty() => {}
            None => {
                let uniques: Vec<_> = info.uniques.iter().filter(|u| fresh.contains(&u.id)).collect();
                let filled = build::fill_uniques(node, &info, &info.schema, &uniques, &mut patience, wait);
                wait.unless_killed(filled).await?;
            }
        }
        if online.is_none() {
            wait.unless_killed(foreign::validate(node, old, &info, &added)).await?;
        }
        work.building().filled().await?;
        wait.unless_killed(work.held().have_alone_again(node, wait.limit)).await?;
        if let Some(kept) = &kept
            && wait.unless_killed(entering::look_at_notes(node, old, kept, &mut patience)).await? > 0
        {
            node.group.flush_all().await?;
        }
        let replaced = std::iter::once(&new).chain(children.iter().map(|c| &c.schema)).cloned().collect();
        work.building().switch(dropped.clone(), made, replaced)?;
        node.alter_in_partitions(&new);

        for unique in &info.uniques {
            if fresh.contains(&unique.id) {
                node.show_in_partitions(unique.entries.schema.id);
            }
            node.tables.publish(unique.entries.clone());
        }
        node.tables.publish(info.clone());
        info.shared.set_version(info.schema.version);
        children.iter().for_each(|child| node.publish_altered(child));
        for id in dropped {
            node.tables.retract(id);
            node.drop_in_partitions(id);
        }
        Ok(())
    }

    /// Replaces a table by one with another form and the same rows, each passed through `convert`. Gives how many rows there are. An error of
    /// `convert`, or a duplicate key in the new form (1062), leaves the old table as it is.
    pub async fn rewrite_table(
        &self,
        old: &TableHandle,
        new: TableSchema,
        wait: impl Into<DdlWait<'_>>,
        convert: &mut Convert<'_>,
    ) -> Result<u64, NodeError> {
        self.rewrite_seen_table(old, new, wait, None, convert, None).await
    }

    /// [`Database::rewrite_table`] that shows all rows to `look` first: `convert` may depend on all of them, as a number above all others does.
    /// Both may see rows more than once, since a cluster does a rewrite again that was disturbed. With `further` many rows are converted by
    /// several threads, each with one of its own.
    pub async fn rewrite_seen_table(
        &self,
        old: &TableHandle,
        new: TableSchema,
        wait: impl Into<DdlWait<'_>>,
        look: Option<&mut Look<'_>>,
        convert: &mut Convert<'_>,
        further: Option<&Further<'_>>,
    ) -> Result<u64, NodeError> {
        let wait = wait.into();
        let node = &self.node;
        if let Some(cluster) = node.cluster() {
            let place = Place { node, cluster };
            return cluster::rewrite_table(place, old.info(), new, wait, look, (convert, further)).await;
        }
        let wait = wait.under_locks();
        let mut new = new;
        let beside = || foreign::beside(node, old.info(), &new);
        let held = Exclusive::lock_with(node, Some(old.info().clone()), beside, wait).await?;
        let old = &held.tables[0].clone();
        let children = follow(node, old, &mut new, wait)?;
        let added = added_keys(&old.schema, &new, wait);
        let is_online = look.is_none() && added.is_empty() && copies_online(&old.schema, &new, wait);
        let builds = ids_of_new(&new) + usize::from(is_online);
        let what = format!("ALTER TABLE {}.{}", new.database, new.name);
        let mut building = Building::start(node, what, old.schema.id, builds)?;
        let mut reserved = building.job.builds.clone().into_iter();
        let mut ids = || reserved.next().expect("one for each table was reserved");
        let schemas = Node::complete(new, &mut ids);
        schemas.iter().for_each(|s| building.make(s));
        let kept = is_online.then(|| building.keep_copied(old, &tables_with_rows(old), ids()));
        building.step(JobStep::Filling)?;
        let info = node.info_of_new(schemas[0].clone(), &schemas[1..]);
        for unique in &info.uniques {
            node.tables.publish_hidden(unique.entries.clone());
        }
        node.tables.publish_hidden(info.clone());

        let mut work = Work::new(building, held);
        if let Some(look) = look {
            wait.unless_killed(look_at_rows(node, old, look)).await?;
        }
        let mut patience = Patience::with_users(if is_online { wait.limit } else { Duration::ZERO });
        let copying = Copying::new(node, old, TableHandle::new(info.clone()), kept, convert, &mut patience)
            .with_further(further)
            .telling(wait);
        let copied = work.copy(copying, wait).await?;
        wait.unless_killed(foreign::validate(node, &info, &info, &added)).await?;
        // The new table's counter is in the log before the switch makes it the table's.
        let given = old.shared.auto_increment.peek() - 1;
        info.shared.auto_increment.observe(given.max(copied.highest), &node.log)?;
        if old.schema.hidden_key && info.schema.hidden_key {
            info.shared.hidden_keys.pass(&old.shared.hidden_keys, &node.log)?;
        }
        let dropped = old.family().map(|s| s.id).collect();
        let replaced = children.iter().map(|c| c.schema.clone()).collect();
        work.building().filled().await?;
        work.building().switch(dropped, schemas, replaced)?;
        children.iter().for_each(|child| node.publish_altered(child));
        let beneath = info.beneath().map(|leaf| &leaf.schema);
        info.family().chain(beneath).for_each(|schema| node.show_in_partitions(schema.id));
        for unique in &info.uniques {
            node.tables.publish(unique.entries.clone());
        }
        wait.replaces(old.schema.id, &info);
        node.tables.publish(info);
        node.forget_table(old);
        wait.forgets(std::iter::once(old.schema.id));
        Ok(copied.rows)
    }
}

/// Checks an altered definition against the foreign keys around it; gives the children whose declarations follow it, in their new versions.
pub(super) fn follow(
    node: &Node,
    old: &TableInfo,
    new: &mut TableSchema,
    wait: DdlWait<'_>,
) -> Result<Vec<Arc<TableInfo>>, NodeError> {
    let children = foreign::children(node, old);
    let changed = foreign::follow_columns(&old.schema, new, &children, wait.foreign_key_checks)?;
    foreign::check_declared(node, Some(&old.schema), new, wait.foreign_key_checks)?;
    let info = |schema: TableSchema| {
        let child = children.iter().find(|c| c.schema.id == schema.id).expect("it is one of them");
        redefined(child, Arc::new(schema))
    };
    Ok(changed.into_iter().map(info).collect())
}

/// Whether users go on while rows are copied.
pub(super) fn copies_online(old: &TableSchema, new: &TableSchema, wait: DdlWait<'_>) -> bool {
    wait.meanwhile != Meanwhile::Nobody && copying::is_online(old, new)
}

/// Foreign keys whose rows are to be validated.
pub(super) fn added_keys(old: &TableSchema, new: &TableSchema, wait: DdlWait<'_>) -> Vec<ForeignKey> {
    // One of the same name may be another.
    let before = |key: &&ForeignKey| !old.foreign_keys.contains(key);
    new.foreign_keys.iter().filter(|key| wait.foreign_key_checks && before(key)).cloned().collect()
}

/// A table under another definition with the same index tables.
pub(super) fn redefined(table: &TableInfo, schema: Arc<TableSchema>) -> Arc<TableInfo> {
    TableInfo::new(schema, table.shared.clone(), |id| {
        let unique = table.uniques.iter().find(|u| u.entries.schema.id == id);
        unique.expect("a table knows its index tables").entries.clone()
    })
}

/// What an altered table is made of.
pub(super) struct Plan {
    pub new: Arc<TableSchema>,
    /// Unique indexes that it did not have.
    pub fresh: Vec<IndexId>,
    /// Their index tables.
    pub made: Vec<Arc<TableSchema>>,
    /// Index tables of unique indexes that it has no more.
    pub dropped: Vec<TableId>,
}

impl Plan {
    /// How many index tables a new definition needs.
    pub fn fresh(new: &TableSchema) -> usize {
        new.indexes.iter().filter(|i| i.is_guarded() && i.entry_table.is_none()).count()
    }

    /// `new` comes from [`next_version`]; `ids` gives new table ids, as many as [`Plan::fresh`] says.
    pub fn make(old: &TableInfo, mut new: TableSchema, mut ids: impl FnMut() -> TableId) -> Plan {
        let mut fresh: Vec<IndexId> = Vec::new();
        for index in &mut new.indexes {
            if !index.is_guarded() {
                index.entry_table = None;
            } else if index.entry_table.is_none() {
                index.entry_table = Some(ids());
                fresh.push(index.id);
            }
        }
        let new = Arc::new(new);
        let made = new
            .indexes
            .iter()
            .filter(|i| fresh.contains(&i.id))
            .map(|i| Arc::new(entries::schema(&new, i, i.entry_table.expect("it was given one"))))
            .collect();
        let dropped = old
            .uniques
            .iter()
            .map(|u| u.entries.schema.id)
            .filter(|id| !new.indexes.iter().any(|i| i.entry_table == Some(*id)))
            .collect();
        Plan { new, fresh, made, dropped }
    }
}

/// What the node decides of an altered table: version, layouts, identity.
pub(super) fn next_version(old: &TableSchema, mut new: TableSchema) -> TableSchema {
    new.id = old.id;
    new.version = old.version + 1;
    new.entry_of = None;
    new.layouts = old.layouts.clone();
    let layout = RowLayout::for_columns(new.layouts.len() as u16, &new.columns);
    if layout.columns != new.layout().columns {
        new.layouts.push(Arc::new(layout));
    }
    new
}

/// The definition that partitions have while the change may still fail: the new one, and the ordered indexes that it drops, which must not be empty if the old
/// definition comes back.
pub(super) fn between(old: &TableSchema, new: &TableSchema) -> TableSchema {
    let mut between = new.clone();
    for index in old.indexes.iter().filter(|i| i.has_entries()) {
        if let Some(kept) = between.indexes.iter_mut().find(|i| i.id == index.id) {
            kept.hash_only = false;
            continue;
        }
        let mut index = index.clone();
        for part in &mut index.parts {
            let column = &old.columns[part.column];
            let present = between.columns.iter().position(|c| c.id == column.id);
            part.column = present.unwrap_or_else(|| {
                between.columns.push(column.clone());
                between.columns.len() - 1
            });
        }
        between.indexes.push(index);
    }
    between
}

/// The info of the altered table; index tables are the old ones and those in `made`.
fn altered_info(node: &Node, old: &TableInfo, new: &Arc<TableSchema>, made: &[Arc<TableSchema>]) -> Arc<TableInfo> {
    TableInfo::new(new.clone(), old.shared.clone(), |id| match made.iter().find(|s| s.id == id) {
        Some(schema) => node.info_of_new(schema.clone(), &[]),
        None => {
            let kept = old.uniques.iter().find(|u| u.entries.schema.id == id);
            kept.expect("a kept unique index keeps its index table").entries.clone()
        }
    })
}

/// Fills an ordered index in every partition, slice by slice; many rows by several threads.
async fn build_ordered(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    new: &Arc<TableSchema>,
    index: IndexId,
    workers: &Workers,
    wait: DdlWait<'_>,
) -> Result<(), NodeError> {
    let partitions = node.partition_count();
    wait.begins(RowWork::FillIndex, partitions.into());
    if !is_worth_it(node, wait, node.rows_of(table), partitions.into()) {
        let pace = wait.pace();
        for partition in 0..partitions {
            fill_ordered(node, new, index, partition, (&pace, &|| false)).await?;
            wait.has_done(1);
        }
        return Ok(());
    }
    let (parts, pace) = (Parts::new(0..partitions), wait.pace());
    let work = |worker: Worker| {
        let (node, new, parts, pace) = (node.clone(), new.clone(), parts.clone(), pace.clone());
        async move {
            let is_to_end = || worker.is_to_end();
            while let Some(partition) = parts.next(&worker) {
                fill_ordered(&node, &new, index, partition, (&pace, &is_to_end)).await?;
                worker.has_done(1);
            }
            Ok(())
        }
    };
    workers.run(node, wait, partitions.into(), None, work).await
}

/// In one partition, at this pace, unless it `is_to_end`.
async fn fill_ordered(
    node: &Arc<Node>,
    table: &TableSchema,
    index: IndexId,
    partition: u16,
    (pace, is_to_end): (&Pace, &(dyn Fn() -> bool + Sync)),
) -> Result<(), NodeError> {
    build::fault_point("node.ddl.index", node).await?;
    let mut next = Some(RowId(0));
    while let Some(from) = next.filter(|_| !is_to_end()) {
        let built = node
            .on_partition(partition, Class::Background, |p| {
                p.build_index(table.id, index, from, INDEX_SLICE, Purpose::Write)
            })
            .await;
        yield_once().await;
        pace.rest(node, INDEX_SLICE as u64, is_to_end).await;
        next = match built {
            Ok(next) => next,
            Err(Stop::MemoryFull { limit }) => {
                return Err(NodeError::MemoryFull { table: table.name.clone(), limit });
            }
            Err(stop) => return Err(NodeError::Fatal(format!("building an index: {stop:?}"))),
        };
    }
    Ok(())
}
