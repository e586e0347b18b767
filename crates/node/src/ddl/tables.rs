//! Databases and whole tables: create, drop, truncate, rename.

use super::cluster::{self, Place};
use super::{Exclusive, foreign};
use crate::database::Database;
use crate::error::NodeError;
use crate::locks::metadata::DdlWait;
use crate::member::Cluster;
use crate::node::Node;
use crate::table::{TableInfo, entries};
use crate::transaction::TxnOptions;
use rauk_manage::{CatalogError, Command};
use rauk_types::error::codes;
use rauk_types::{Collation, MysqlError, RowLayout, TableId, TableSchema};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A table's database and name.
pub type TableName = (String, String);

impl Node {
    /// Gives a new table's schema what the node decides: ids from `first` on, version, layout, and index tables. All new schemas, the table's first.
    pub(crate) fn complete(mut schema: TableSchema, mut ids: impl FnMut() -> TableId) -> Vec<Arc<TableSchema>> {
        schema.id = ids();
        schema.version = 1;
        schema.entry_of = None;
        schema.layouts = vec![Arc::new(RowLayout::for_columns(0, &schema.columns))];
        let is_partitioned = schema.partitioning.is_some();
        for index in &mut schema.indexes {
            assert!(!index.global || is_partitioned && index.is_guarded(), "global: {}", index.name);
            let is_here = if is_partitioned { index.global } else { index.is_guarded() };
            index.entry_table = is_here.then(&mut ids);
        }
        let of_leaf = tables_of_leaf(&schema);
        if let Some(partitioning) = &mut schema.partitioning {
            let leaves = Arc::make_mut(partitioning).leaves_mut();
            leaves.for_each(|leaf| leaf.tables = (0..of_leaf).map(|_| ids()).collect());
        }
        let mut all = vec![];
        for index in &schema.indexes {
            if let Some(id) = index.entry_table {
                all.push(Arc::new(entries::schema(&schema, index, id)));
            }
        }
        all.insert(0, Arc::new(schema));
        all
    }

    /// Brings new tables, made by [`Node::complete`], into partitions and cache; before the first is found there it goes
    /// through `found`.
    fn install_new(self: &Arc<Self>, schemas: &[Arc<TableSchema>], found: impl FnOnce(&Arc<TableInfo>)) {
        schemas.iter().for_each(|s| self.create_in_partitions(s));
        let info = self.info_of_new(schemas[0].clone(), &schemas[1..]);
        found(&info);
        info.uniques.iter().for_each(|u| self.tables.publish(u.entries.clone()));
        self.tables.publish(info);
    }

    pub(super) fn find_table(&self, (database, name): &TableName) -> Result<Arc<TableInfo>, NodeError> {
        let found = self.tables.by_name(database, name);
        found.ok_or_else(|| NodeError::NoSuchTable { database: database.clone(), table: name.clone() })
    }

    /// The named tables, alone; looks again when one was changed while it was waited for.
    async fn lock_by_name(self: &Arc<Self>, names: &[TableName], wait: DdlWait<'_>) -> Result<Exclusive, NodeError> {
        loop {
            let tables: Result<Vec<_>, _> = names.iter().map(|n| self.find_table(n)).collect();
            match Exclusive::lock(self, tables?, wait).await {
                Err(NodeError::StaleSchema) => {}
                other => return other,
            }
        }
    }
}

/// How many physical tables a leaf of a partitioned table is.
pub(super) fn tables_of_leaf(schema: &TableSchema) -> usize {
    1 + schema.indexes.iter().filter(|index| index.is_guarded_by_leaves()).count()
}

/// How many ids a new table takes.
pub(super) fn ids_of_new(schema: &TableSchema) -> usize {
    match &schema.partitioning {
        None => tables_of_leaf(schema),
        Some(partitioning) => {
            let global = schema.indexes.iter().filter(|index| index.global).count();
            1 + global + partitioning.leaves().count() * tables_of_leaf(schema)
        }
    }
}

impl Database {
    fn place<'a>(&'a self, cluster: &'a Arc<Cluster>) -> Place<'a> {
        Place { node: &self.node, cluster }
    }

    /// Changes what is of no table: settings, views.
    pub(crate) async fn change_by(&self, command: Command) -> Result<(), NodeError> {
        self.node.check_running()?;
        match self.node.cluster() {
            Some(cluster) => cluster::change_catalog(self.place(cluster), command).await,
            None => self.node.change_catalog(&command).map(drop),
        }
    }
}

// Each call waits for transactions that use the table: at most `wait`, then 1205; 1317 when it is killed meanwhile. It
// is durable when it returns, and after a crash it is wholly there or not at all.
impl Database {
    pub async fn create_database(&self, name: &str, collation: Collation) -> Result<(), NodeError> {
        self.create_commented_database(name, collation, "").await
    }

    pub async fn create_commented_database(
        &self,
        name: &str,
        collation: Collation,
        comment: &str,
    ) -> Result<(), NodeError> {
        self.change_by(Command::CreateDatabase { name: name.into(), collation, comment: comment.into() }).await
    }

    /// Changes the collation that tables made from now on have, and the comment if there is one.
    pub async fn alter_database(
        &self,
        name: &str,
        collation: Collation,
        comment: Option<&str>,
    ) -> Result<(), NodeError> {
        let comment = comment.map(str::to_string);
        self.change_by(Command::AlterDatabase { name: name.into(), collation, comment }).await
    }

    /// Drops its tables and views as well; gives how many of both.
    pub async fn drop_database(&self, name: &str, wait: impl Into<DdlWait<'_>>) -> Result<u64, NodeError> {
        let wait = wait.into();
        if let Some(cluster) = self.node.cluster() {
            return cluster::drop_database(self.place(cluster), name, wait).await;
        }
        let node = &self.node;
        loop {
            let names: Vec<TableName> =
                self.tables(name)?.iter().map(|t| (t.database.clone(), t.name.clone())).collect();
            let held = match node.lock_by_name(&names, wait).await {
                // Somebody else dropped or renamed one meanwhile.
                Err(NodeError::NoSuchTable { .. }) => continue,
                held => held?,
            };
            {
                let mut catalog = node.catalog.lock();
                let mut present: Vec<TableId> = catalog.catalog().tables_of(name).map(|t| t.id).collect();
                present.sort_unstable();
                if !present.iter().eq(held.tables.iter().map(|t| &t.schema.id)) {
                    continue;
                }
                foreign::check_dropped(node, &held.tables, wait.foreign_key_checks)?;
                let views = catalog.catalog().views_of(name).count();
                let result = catalog.execute(&Command::DropDatabase { name: name.to_string() });
                drop(catalog);
                node.settled(result)?;
                held.tables.iter().for_each(|t| node.forget_table(t));
                return Ok((held.tables.len() + views) as u64);
            }
        }
    }

    /// `schema` has ids of columns and indexes set; table ids, index tables of unique indexes, layouts and versions are made here.
    pub async fn create_table(&self, schema: TableSchema) -> Result<(), NodeError> {
        self.create_related_table(schema, TxnOptions::default().lock_wait_timeout).await
    }

    /// The same; the tables that it refers to are waited for.
    pub async fn create_related_table(
        &self,
        schema: TableSchema,
        wait: impl Into<DdlWait<'_>>,
    ) -> Result<(), NodeError> {
        let wait = wait.into();
        if let Some(cluster) = self.node.cluster() {
            return cluster::create_table(self.place(cluster), schema, wait).await;
        }
        let node = &self.node;
        node.check_running()?;
        let _parents = Exclusive::lock_with(node, None, || foreign::parents(node, None, &schema), wait).await?;
        foreign::check_declared(node, None, &schema, wait.foreign_key_checks)?;
        let schemas = {
            let mut catalog = node.catalog.lock();
            let mut next = catalog.catalog().next_table_id();
            let schemas = Node::complete(schema, || {
                next.0 += 1;
                TableId(next.0 - 1)
            });
            let result = catalog.execute(&Command::CreateTables { tables: schemas.clone() });
            drop(catalog);
            node.settled(result)?;
            schemas
        };
        node.install_new(&schemas, |_| ());
        Ok(())
    }

    pub async fn drop_table(&self, database: &str, name: &str, wait: impl Into<DdlWait<'_>>) -> Result<(), NodeError> {
        self.drop_tables(&[(database.to_string(), name.to_string())], wait).await
    }

    /// All or none. Error 3730 for one that a table refers to that stays.
    pub async fn drop_tables(&self, names: &[TableName], wait: impl Into<DdlWait<'_>>) -> Result<(), NodeError> {
        let wait = wait.into();
        let node = &self.node;
        let unknown = |error| match error {
            NodeError::NoSuchTable { database, table } => {
                let text = format!("Unknown table '{database}.{table}'");
                NodeError::Refused(MysqlError::new(codes::BAD_TABLE, text))
            }
            other => other,
        };
        if let Some(cluster) = node.cluster() {
            return cluster::drop_tables(self.place(cluster), names, wait).await.map_err(unknown);
        }
        let held = node.lock_by_name(names, wait).await.map_err(unknown)?;
        foreign::check_dropped(node, &held.tables, wait.foreign_key_checks)?;
        let tables = held.tables.iter().map(|t| t.schema.id).collect();
        node.change_catalog(&Command::DropTables { tables })?;
        held.tables.iter().for_each(|t| node.forget_table(t));
        wait.forgets(held.tables.iter().map(|t| t.schema.id));
        Ok(())
    }

    /// Replaces the table by an empty one with a new id; AUTO_INCREMENT starts again.
    pub async fn truncate_table(
        &self,
        database: &str,
        name: &str,
        wait: impl Into<DdlWait<'_>>,
    ) -> Result<(), NodeError> {
        let wait = wait.into();
        if let Some(cluster) = self.node.cluster() {
            return cluster::truncate_table(self.place(cluster), (database.into(), name.into()), wait).await;
        }
        let node = &self.node;
        let held = node.lock_by_name(&[(database.into(), name.into())], wait).await?;
        let old = &held.tables[0];
        foreign::check_truncated(node, old, wait.foreign_key_checks)?;
        let schemas = {
            let mut catalog = node.catalog.lock();
            let mut next = catalog.catalog().next_table_id();
            let schemas = Node::complete((*old.schema).clone(), || {
                next.0 += 1;
                TableId(next.0 - 1)
            });
            let drop_ids = old.family().map(|s| s.id).collect();
            let switch = Command::Switch { job: None, drop: drop_ids, create: schemas.clone(), replace: vec![] };
            let result = catalog.execute(&switch);
            drop(catalog);
            node.settled(result)?;
            schemas
        };
        node.install_new(&schemas, |new| wait.replaces(old.schema.id, new));
        node.forget_table(old);
        wait.forgets(std::iter::once(old.schema.id));
        Ok(())
    }

    /// Renames tables and views, all or none, in one step, from left to right. Each pair is ((database, name), (database, name)).
    pub async fn rename_tables(
        &self,
        pairs: &[(TableName, TableName)],
        wait: impl Into<DdlWait<'_>>,
    ) -> Result<(), NodeError> {
        let wait = wait.into();
        if let Some(cluster) = self.node.cluster() {
            return cluster::rename_tables(self.place(cluster), pairs, wait).await;
        }
        let node = &self.node;
        let sources = rename_sources(node, pairs);
        let held = loop {
            let held = node.lock_by_name(&with_children(node, &sources), wait).await?;
            if has_children(node, &held.tables, &sources) {
                break held;
            }
        };
        let renamed = renamed_objects(node, &held.tables, pairs)?;
        node.change_catalog(&renamed.command())?;
        renamed.tables.iter().for_each(|t| node.publish_altered(t));
        Ok(())
    }
}

impl Node {
    /// A new version of a table that exists already goes into partitions and cache.
    pub(super) fn publish_altered(self: &Arc<Self>, info: &Arc<TableInfo>) {
        info.family().for_each(|s| self.alter_in_partitions(s));
        for unique in &info.uniques {
            self.tables.publish(unique.entries.clone());
        }
        self.tables.publish(info.clone());
        info.shared.set_version(info.schema.version);
    }
}

/// The tables that a RENAME takes away from their names, to be locked. Names that only exist in between (a → tmp, b → a, tmp → b) are no tables, nor are views.
pub(super) fn rename_sources(node: &Node, pairs: &[(TableName, TableName)]) -> Vec<TableName> {
    let mut made: Vec<&TableName> = Vec::new();
    let mut sources = Vec::new();
    let is_view = |(database, name): &TableName| node.catalog.lock().catalog().view(database, name).is_some();
    for (from, to) in pairs {
        if !made.contains(&from) && !is_view(from) {
            sources.push(from.clone());
        }
        made.push(to);
    }
    sources
}

/// The same and the tables that refer to them, whose declarations follow.
pub(super) fn with_children(node: &Node, sources: &[TableName]) -> Vec<TableName> {
    let mut all = sources.to_vec();
    for table in sources.iter().filter_map(|(database, name)| node.tables.by_name(database, name)) {
        let children = foreign::children(node, &table);
        all.extend(children.iter().map(|child| (child.schema.database.clone(), child.schema.name.clone())));
    }
    all.sort();
    all.dedup();
    all
}

/// Whether all children of the renamed tables are among those that are held.
pub(super) fn has_children(node: &Node, held: &[Arc<TableInfo>], sources: &[TableName]) -> bool {
    let is_held = |name: &TableName| held.iter().any(|t| t.schema.database == name.0 && t.schema.name == name.1);
    with_children(node, sources).iter().all(is_held)
}

/// What a RENAME makes.
pub(super) struct Renamed {
    /// New versions under their new names.
    pub tables: Vec<Arc<TableInfo>>,
    /// Old and new names.
    pub views: Vec<(TableName, TableName)>,
}

/// What a name stands for while a RENAME is looked at.
enum Object {
    Table(Arc<TableInfo>),
    /// A view, with the name that it has in the catalog.
    View(TableName),
}

/// What becomes of the tables, which are held alone, and of the views.
pub(super) fn renamed_objects(
    node: &Node,
    tables: &[Arc<TableInfo>],
    pairs: &[(TableName, TableName)],
) -> Result<Renamed, NodeError> {
    let mut now: BTreeMap<TableName, Object> = BTreeMap::new();
    let mut gone: Vec<TableName> = Vec::new();
    for table in tables {
        now.insert((table.schema.database.clone(), table.schema.name.clone()), Object::Table(table.clone()));
    }
    let catalog = node.catalog.lock();
    let catalog = catalog.catalog();
    for (from, to) in pairs {
        let is_view = |name: &TableName| catalog.view(&name.0, &name.1).is_some();
        let object = match now.remove(from) {
            Some(object) => object,
            None if !gone.contains(from) && is_view(from) => Object::View(from.clone()),
            None => return Err(NodeError::NoSuchTable { database: from.0.clone(), table: from.1.clone() }),
        };
        gone.push(from.clone());
        let exists = is_view(to) || node.tables.by_name(&to.0, &to.1).is_some();
        let taken = now.contains_key(to) || !gone.contains(to) && exists;
        if taken && from != to {
            return Err(CatalogError::TableExists { database: to.0.clone(), name: to.1.clone() }.into());
        }
        if catalog.database(&to.0).is_none() {
            return Err(CatalogError::UnknownDatabase(to.0.clone()).into());
        }
        now.insert(to.clone(), object);
    }
    let mut all = Renamed { tables: Vec::new(), views: Vec::new() };
    let mut parents: BTreeMap<TableName, TableName> = BTreeMap::new();
    for (to, object) in &now {
        if let Object::Table(table) = object {
            parents.insert((table.schema.database.clone(), table.schema.name.clone()), to.clone());
        }
    }
    for (to, object) in now {
        match object {
            Object::Table(table) => {
                let named =
                    pairs.iter().any(|(from, _)| *from == (table.schema.database.clone(), table.schema.name.clone()));
                let name = |key: &rauk_types::ForeignKey| (key.parent_database.clone(), key.parent_table.clone());
                let follows = |key: &rauk_types::ForeignKey| {
                    let name = name(key);
                    parents.get(&name).is_some_and(|to| *to != name)
                };
                // A child that is only held.
                if !named && !table.schema.foreign_keys.iter().any(follows) {
                    continue;
                }
                all.tables.push(renamed(&table, to.0, to.1, &parents));
            }
            Object::View(from) => all.views.push((from, to)),
        }
    }
    Ok(all)
}

/// CHECK constraints that were named after the table are named after its new name.
fn rename_checks(schema: &mut TableSchema, old: &str) {
    for check in &mut schema.checks {
        let number = check.name.strip_prefix(old).and_then(|rest| rest.strip_prefix("_chk_"));
        if let Some(number) = number.filter(|number| number.bytes().all(|b| b.is_ascii_digit())) {
            check.name = format!("{}_chk_{number}", schema.name);
        }
    }
    schema.checks.sort_by_cached_key(|check| check.name.to_lowercase());
}

/// The table and its index tables under another name; its foreign keys follow their parents, and names that were made of the table's name follow that.
fn renamed(
    table: &TableInfo,
    database: String,
    name: String,
    parents: &BTreeMap<TableName, TableName>,
) -> Arc<TableInfo> {
    let mut schema = (*table.schema).clone();
    schema.version += 1;
    let made = format!("{}_ibfk_", schema.name);
    for key in &mut schema.foreign_keys {
        if let Some(to) = parents.get(&(key.parent_database.clone(), key.parent_table.clone())) {
            (key.parent_database, key.parent_table) = to.clone();
        }
        if let Some(number) = key.name.strip_prefix(&made) {
            key.name = format!("{name}_ibfk_{number}");
        }
    }
    schema.database = database.clone();
    schema.name = name.clone();
    rename_checks(&mut schema, &table.schema.name);
    TableInfo::new(Arc::new(schema), table.shared.clone(), |id| {
        let unique = table.uniques.iter().find(|u| u.entries.schema.id == id).expect("a table knows its index tables");
        let old = &unique.entries;
        let mut entries = (*old.schema).clone();
        let index = entries.name.split_once('\u{1}').map_or("", |(_, index)| index);
        entries.name = format!("{name}\u{1}{index}");
        entries.database = database.clone();
        TableInfo::new(Arc::new(entries), old.shared.clone(), |_| unreachable!("index tables have no unique index"))
    })
}
