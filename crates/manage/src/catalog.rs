//! The state, and how commands change it.
//!
//! `apply` checks everything first and then changes, so that a refused command leaves no trace. It gives what the caller needs
//! to know of the effect (a new job's id and its reserved table ids).

use crate::command::{Command, Job, JobId, JobStep};
use crate::error::CatalogError;
use crate::histograms::{Histograms, TableHistograms};
use crate::views::Views;
use rauk_types::{Collation, TableId, TableSchema, ViewSchema};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    pub name: String,
    /// Default of tables created in it.
    pub collation: Collation,
    /// Databases of older programs have none.
    #[serde(default)]
    pub comment: String,
}

/// What a command did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    /// The job that began.
    pub job: Option<Box<Job>>,
    /// Tables that went, index tables included.
    pub dropped: Vec<TableId>,
}

/// The whole catalog. Serialized as a snapshot when the journal is compacted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    databases: BTreeMap<String, Database>,
    tables: BTreeMap<TableId, Arc<TableSchema>>,
    /// Base tables by database and name; views are in `views`. Made again from `tables` when a snapshot is read.
    #[serde(skip)]
    names: BTreeMap<(String, String), TableId>,
    next_table: u32,
    next_job: u64,
    jobs: BTreeMap<JobId, Job>,
    settings: BTreeMap<String, String>,
    /// Snapshots of older programs have none.
    #[serde(default)]
    views: Views,
    /// As `views`.
    #[serde(default)]
    histograms: Histograms,
}

impl Default for Catalog {
    fn default() -> Self {
        Catalog {
            databases: BTreeMap::new(),
            tables: BTreeMap::new(),
            names: BTreeMap::new(),
            next_table: 1,
            next_job: 1,
            jobs: BTreeMap::new(),
            settings: BTreeMap::new(),
            views: Views::default(),
            histograms: Histograms::default(),
        }
    }
}

impl Catalog {
    /// Rebuilds what a snapshot leaves out.
    pub(crate) fn after_load(&mut self) {
        self.names = self.tables.values().filter(|t| t.entry_of.is_none()).map(|t| (name_of(t), t.id)).collect();
    }

    pub fn databases(&self) -> impl Iterator<Item = &Database> {
        self.databases.values()
    }

    pub fn database(&self, name: &str) -> Option<&Database> {
        self.databases.get(name)
    }

    /// All tables by id, index tables included.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        self.tables.values()
    }

    pub fn table(&self, id: TableId) -> Option<&Arc<TableSchema>> {
        self.tables.get(&id)
    }

    pub fn table_by_name(&self, database: &str, name: &str) -> Option<&Arc<TableSchema>> {
        self.names.get(&(database.to_owned(), name.to_owned())).map(|id| &self.tables[id])
    }

    /// Base tables of a database, sorted by name.
    pub fn tables_of<'a>(&'a self, database: &'a str) -> impl Iterator<Item = &'a Arc<TableSchema>> {
        self.names
            .range((database.to_owned(), String::new())..)
            .take_while(move |((d, _), _)| d == database)
            .map(|(_, id)| &self.tables[id])
    }

    pub fn view(&self, database: &str, name: &str) -> Option<&Arc<ViewSchema>> {
        self.views.get(database, name)
    }

    /// Views of a database, sorted by name.
    pub fn views_of<'a>(&'a self, database: &'a str) -> impl Iterator<Item = &'a Arc<ViewSchema>> {
        self.views.of(database)
    }

    /// Histograms of a table's columns.
    pub fn histograms(&self, table: TableId) -> Option<&Arc<TableHistograms>> {
        self.histograms.of(table)
    }

    /// The lowest table id that was never used.
    pub fn next_table_id(&self) -> TableId {
        TableId(self.next_table)
    }

    /// Tables that jobs of a cluster build: known by their ids only.
    pub fn hidden_tables(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        self.jobs.values().flat_map(|j| &j.tables)
    }

    /// All tables as partitions have them, by id: hidden ones too, and with the definitions that jobs have begun to fill.
    pub fn partition_tables(&self) -> BTreeMap<TableId, Arc<TableSchema>> {
        let mut tables = self.tables.clone();
        for job in self.jobs.values() {
            tables.extend(job.tables.iter().chain(&job.definitions).map(|t| (t.id, t.clone())));
        }
        tables
    }

    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values()
    }

    pub fn setting(&self, key: &str) -> Option<&str> {
        self.settings.get(key).map(String::as_str)
    }

    pub fn settings_with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.settings
            .range(prefix.to_owned()..)
            .take_while(move |(k, _)| k.starts_with(prefix))
            .map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// Carries out a command, or refuses it and changes nothing.
    pub fn apply(&mut self, command: &Command) -> Result<Applied, CatalogError> {
        let mut applied = Applied::default();
        match command {
            Command::CreateDatabase { name, collation, comment } => {
                if self.databases.contains_key(name) {
                    return Err(CatalogError::DatabaseExists(name.clone()));
                }
                let database = Database { name: name.clone(), collation: *collation, comment: comment.clone() };
                self.databases.insert(name.clone(), database);
            }
            Command::AlterDatabase { name, collation, comment } => {
                let database = self.databases.get_mut(name);
                let database = database.ok_or_else(|| CatalogError::UnknownDatabase(name.clone()))?;
                database.collation = *collation;
                if let Some(comment) = comment {
                    database.comment.clone_from(comment);
                }
            }
            Command::DropDatabase { name } => {
                if self.databases.remove(name).is_none() {
                    return Err(CatalogError::UnknownDatabase(name.clone()));
                }
                self.remove_of(name, &mut applied);
            }
            Command::DropDatabaseOf { name, tables } => {
                if !self.databases.contains_key(name) {
                    return Err(CatalogError::UnknownDatabase(name.clone()));
                }
                let present: BTreeSet<TableId> = self.tables_of(name).map(|t| t.id).collect();
                if present != tables.iter().copied().collect() {
                    return Err(CatalogError::TablesChanged(name.clone()));
                }
                self.databases.remove(name);
                self.remove_of(name, &mut applied);
            }
            Command::CreateTables { tables } => {
                self.check_new(tables, &BTreeSet::new(), true)?;
                self.add(tables);
            }
            Command::ReplaceDefinitions { tables } => {
                self.check_replaced(tables)?;
                self.replace(tables);
            }
            Command::DropTables { tables } => {
                self.check_present(tables)?;
                self.remove(tables, &mut applied);
            }
            Command::StartJob { what, table, builds } => {
                let first = self.next_table;
                let job = Job {
                    id: JobId(self.next_job),
                    what: what.clone(),
                    table: *table,
                    builds: (first..first + builds).map(TableId).collect(),
                    step: JobStep::Prepared,
                    owner: None,
                    tables: Vec::new(),
                    definitions: Vec::new(),
                };
                self.next_table += builds;
                self.begin(job, &mut applied);
            }
            Command::StartBuild { what, table, owner, tables, definitions } => {
                self.check_ids(tables, &BTreeSet::new(), true)?;
                self.check_present(&definitions.iter().map(|t| t.id).collect::<Vec<_>>())?;
                let job = Job {
                    id: JobId(self.next_job),
                    what: what.clone(),
                    table: *table,
                    builds: tables.iter().flat_map(|table| ids_of(table)).collect(),
                    step: JobStep::Filling,
                    owner: Some(*owner),
                    tables: tables.clone(),
                    definitions: definitions.clone(),
                };
                self.pass_ids(tables);
                self.begin(job, &mut applied);
            }
            Command::JobStep { job, step } => {
                self.jobs.get_mut(job).ok_or(CatalogError::NoSuchJob(*job))?.step = *step;
            }
            Command::Switch { job, drop, create, replace } => {
                let reserved: BTreeSet<TableId> = match job {
                    Some(job) => {
                        let job = self.jobs.get(job).ok_or(CatalogError::NoSuchJob(*job))?;
                        job.builds.iter().copied().collect()
                    }
                    None => BTreeSet::new(),
                };
                self.check_present(drop)?;
                // On a copy: the names of dropped tables become free, and if anything is refused nothing has happened.
                let mut after = self.clone();
                let replaced = self.replaced(drop, create);
                after.remove(drop, &mut applied);
                after.check_new(create, &reserved, job.is_none())?;
                after.add(create);
                after.check_replaced(replace)?;
                after.replace(replace);
                if let Some((old, of, new)) = replaced {
                    after.histograms.take_over(of, old, new);
                }
                if let Some(job) = job {
                    after.jobs.remove(job);
                }
                *self = after;
            }
            Command::AbortJob { job } => {
                self.jobs.remove(job).ok_or(CatalogError::NoSuchJob(*job))?;
            }
            Command::FirstSettings { settings } => {
                if settings.first().is_some_and(|(key, _)| !self.settings.contains_key(key)) {
                    self.settings.extend(settings.iter().cloned());
                }
            }
            Command::Settings { changes } => {
                for (key, value) in changes {
                    self.set(key, value);
                }
            }
            Command::ChangeSettings { changes } => {
                if changes.iter().any(|change| self.setting(&change.key) != change.from.as_deref()) {
                    return Err(CatalogError::SettingsChanged);
                }
                for change in changes {
                    self.set(&change.key, &change.to);
                }
            }
            Command::CreateView { view, replace } => {
                let name = view.full_name();
                if !self.databases.contains_key(&view.database) {
                    return Err(CatalogError::UnknownDatabase(name.0));
                }
                let replaces = *replace && self.view(&name.0, &name.1).is_some();
                if !replaces && self.is_named(&name) {
                    return Err(CatalogError::TableExists { database: name.0, name: name.1 });
                }
                self.views.insert(view.clone());
            }
            Command::DropViews { views } => {
                // On a copy, as with `Switch`.
                let mut after = self.views.clone();
                for (database, name) in views {
                    take_view(&mut after, database, name)?;
                }
                self.views = after;
            }
            Command::Rename { tables, views } => {
                let mut after = self.clone();
                let mut moved = Vec::new();
                for ((database, name), to) in views {
                    moved.push((take_view(&mut after.views, database, name)?, to));
                }
                after.check_replaced(tables)?;
                after.replace(tables);
                for (view, to) in moved {
                    let view = ViewSchema { database: to.0.clone(), name: to.1.clone(), ..(*view).clone() };
                    after.apply(&Command::CreateView { view: Arc::new(view), replace: false })?;
                }
                *self = after;
            }
            Command::ChangeHistograms { table, changes } => {
                let table = self.tables.get(table).ok_or(CatalogError::NoSuchTableId(*table))?;
                self.histograms.change(table, changes)?;
            }
        }
        Ok(applied)
    }

    /// Jobs of a cluster that build on one of these tables end; gives whether there was one.
    pub(crate) fn end_builds(&mut self, tables: &[TableId]) -> bool {
        let before = self.jobs.len();
        self.jobs.retain(|_, job| job.owner.is_none() || !tables.contains(&job.table));
        self.jobs.len() < before
    }

    fn set(&mut self, key: &str, value: &Option<String>) {
        match value {
            Some(value) => self.settings.insert(key.to_owned(), value.clone()),
            None => self.settings.remove(key),
        };
    }

    fn begin(&mut self, job: Job, applied: &mut Applied) {
        self.next_job += 1;
        self.jobs.insert(job.id, job.clone());
        applied.job = Some(Box::new(job));
    }

    /// `reserved` ids belong to the job that creates the tables; where `fresh` holds others may be new ones too.
    fn check_ids(
        &self,
        tables: &[Arc<TableSchema>],
        reserved: &BTreeSet<TableId>,
        fresh: bool,
    ) -> Result<(), CatalogError> {
        let mut seen = BTreeSet::new();
        for id in tables.iter().flat_map(|table| ids_of(table)) {
            let new = id.0 >= self.next_table && id.0 < u32::MAX;
            let usable = reserved.contains(&id) || fresh && new;
            if !usable || self.tables.contains_key(&id) || !seen.insert(id) {
                return Err(CatalogError::TableIdUsed(id));
            }
        }
        Ok(())
    }

    fn check_new(
        &self,
        tables: &[Arc<TableSchema>],
        reserved: &BTreeSet<TableId>,
        fresh: bool,
    ) -> Result<(), CatalogError> {
        self.check_ids(tables, reserved, fresh)?;
        let mut names = BTreeSet::new();
        for table in tables {
            if !self.databases.contains_key(&table.database) {
                return Err(CatalogError::UnknownDatabase(table.database.clone()));
            }
            if table.entry_of.is_none() {
                let name = name_of(table);
                if self.is_named(&name) || !names.insert(name) {
                    return Err(CatalogError::TableExists {
                        database: table.database.clone(),
                        name: table.name.clone(),
                    });
                }
            }
        }
        self.check_foreign_keys(tables)
    }

    /// Names of foreign keys are unique in a database: among `tables`, and those that stay as they are.
    fn check_foreign_keys(&self, tables: &[Arc<TableSchema>]) -> Result<(), CatalogError> {
        let mut names = BTreeSet::new();
        for table in tables {
            for key in &table.foreign_keys {
                if !names.insert((&table.database, key.name.to_lowercase())) {
                    return Err(CatalogError::ForeignKeyExists(key.name.clone()));
                }
            }
        }
        if names.is_empty() {
            return Ok(());
        }
        let stays = |table: &&Arc<TableSchema>| tables.iter().all(|new| new.id != table.id);
        for table in self.tables.values().filter(stays) {
            let taken = |key: &&rauk_types::ForeignKey| names.contains(&(&table.database, key.name.to_lowercase()));
            if let Some(key) = table.foreign_keys.iter().find(taken) {
                return Err(CatalogError::ForeignKeyExists(key.name.clone()));
            }
        }
        Ok(())
    }

    fn check_replaced(&self, tables: &[Arc<TableSchema>]) -> Result<(), CatalogError> {
        let leaving: BTreeSet<TableId> = tables.iter().map(|t| t.id).collect();
        let mut names = BTreeSet::new();
        for table in tables {
            let Some(old) = self.tables.get(&table.id) else { return Err(CatalogError::NoSuchTableId(table.id)) };
            let had: BTreeSet<TableId> = ids_of(old).collect();
            if let Some(used) = ids_of(table).find(|id| !had.contains(id) && id.0 < self.next_table) {
                return Err(CatalogError::TableIdUsed(used));
            }
            if !self.databases.contains_key(&table.database) {
                return Err(CatalogError::UnknownDatabase(table.database.clone()));
            }
            if table.entry_of.is_none() {
                let name = name_of(table);
                let taken = self.names.get(&name).is_some_and(|id| !leaving.contains(id));
                if taken || self.view(&name.0, &name.1).is_some() || !names.insert(name) {
                    return Err(CatalogError::TableExists {
                        database: table.database.clone(),
                        name: table.name.clone(),
                    });
                }
            }
        }
        self.check_foreign_keys(tables)
    }

    /// Whether a base table or a view has the name.
    fn is_named(&self, name: &(String, String)) -> bool {
        self.names.contains_key(name) || self.view(&name.0, &name.1).is_some()
    }

    fn check_present(&self, tables: &[TableId]) -> Result<(), CatalogError> {
        match tables.iter().find(|id| !self.tables.contains_key(id)) {
            Some(id) => Err(CatalogError::NoSuchTableId(*id)),
            None => Ok(()),
        }
    }

    /// New tables get ids above these.
    fn pass_ids(&mut self, tables: &[Arc<TableSchema>]) {
        let last = tables.iter().flat_map(|table| ids_of(table)).max();
        self.next_table = self.next_table.max(last.map_or(0, |id| id.0 + 1));
    }

    fn add(&mut self, tables: &[Arc<TableSchema>]) {
        self.pass_ids(tables);
        for table in tables {
            if table.entry_of.is_none() {
                self.names.insert(name_of(table), table.id);
            }
            self.tables.insert(table.id, table.clone());
        }
    }

    fn replace(&mut self, tables: &[Arc<TableSchema>]) {
        for table in tables {
            if table.entry_of.is_none() {
                let old = name_of(&self.tables[&table.id]);
                if self.names.get(&old) == Some(&table.id) {
                    self.names.remove(&old);
                }
            }
        }
        self.pass_ids(tables);
        for table in tables {
            if table.entry_of.is_none() {
                self.names.insert(name_of(table), table.id);
            }
            if let Some(old) = self.tables.insert(table.id, table.clone()) {
                self.histograms.follow(&old, table);
            }
        }
    }

    /// The table that one of `create` takes the place of, with its histograms: where each has one base table.
    fn replaced<'a>(
        &'a self,
        drop: &[TableId],
        create: &'a [Arc<TableSchema>],
    ) -> Option<(&'a TableSchema, &'a TableHistograms, &'a TableSchema)> {
        let base = |table: &&Arc<TableSchema>| table.entry_of.is_none();
        let mut old = drop.iter().filter_map(|id| self.tables.get(id)).filter(base);
        let mut new = create.iter().filter(base);
        match (old.next(), old.next(), new.next(), new.next()) {
            (Some(old), None, Some(new), None) => Some((old, self.histograms.of(old.id)?, new)),
            _ => None,
        }
    }

    /// Removes all tables and views of a database.
    fn remove_of(&mut self, database: &str, applied: &mut Applied) {
        let gone: Vec<TableId> = self.tables.values().filter(|t| t.database == database).map(|t| t.id).collect();
        self.remove(&gone, applied);
        self.views.remove_database(database);
    }

    /// Removes tables, and with a base table its index tables.
    fn remove(&mut self, ids: &[TableId], applied: &mut Applied) {
        let mut gone: BTreeSet<TableId> = ids.iter().copied().collect();
        for table in self.tables.values() {
            if table.entry_of.is_some_and(|(base, _)| gone.contains(&base)) {
                gone.insert(table.id);
            }
        }
        for id in gone {
            let Some(table) = self.tables.remove(&id) else { continue };
            if table.entry_of.is_none() {
                self.names.remove(&name_of(&table));
                self.histograms.remove(id);
            }
            applied.dropped.push(id);
        }
    }
}

/// A table's own id, and those of its leaves.
fn ids_of(table: &TableSchema) -> impl Iterator<Item = TableId> + '_ {
    let leaves = table.partitioning.iter().flat_map(|partitioning| partitioning.tables());
    std::iter::once(table.id).chain(leaves)
}

fn take_view(views: &mut Views, database: &str, name: &str) -> Result<Arc<ViewSchema>, CatalogError> {
    let missing = || CatalogError::NoSuchTable { database: database.to_owned(), name: name.to_owned() };
    views.remove(database, name).ok_or_else(missing)
}

fn name_of(table: &TableSchema) -> (String, String) {
    (table.database.clone(), table.name.clone())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::command::SettingChange;
    use rauk_types::partitioning::{
        Leaf, PartitionBy, PartitionMethod, PartitionOn, PartitionValues, Partitioning, UserPartition,
    };
    use rauk_types::{ColumnId, DataType, IndexId, IndexKind, ProcessId, RowLayout, schema::*};

    pub(crate) fn table(id: u32, database: &str, name: &str) -> Arc<TableSchema> {
        let columns = vec![Column {
            id: ColumnId(0),
            name: "id".into(),
            ty: DataType::BIGINT,
            nullable: false,
            default: ColumnDefault::None,
            on_update_now: false,
            comment: String::new(),
            initial: rauk_types::Value::Null,
            generated: None,
            invisible: false,
        }];
        Arc::new(TableSchema {
            id: TableId(id),
            version: 1,
            database: database.into(),
            name: name.into(),
            layouts: vec![Arc::new(RowLayout::for_columns(0, &columns))],
            columns,
            indexes: vec![IndexSchema {
                id: IndexId::PRIMARY,
                name: "PRIMARY".into(),
                kind: IndexKind::Primary,
                parts: vec![IndexPart { column: 0, prefix: None, descending: false }],
                hash_only: false,
                entry_table: None,
                comment: String::new(),
                invisible: false,
            }],
            distribution: vec![0],
            hidden_key: false,
            auto_increment: None,
            collation: Collation::DEFAULT,
            comment: String::new(),
            explicit_partitioning: false,
            fully_replicated: false,
            checks: Vec::new(),
            entry_of: None,
            foreign_keys: Vec::new(),
            storage: Default::default(),
            partitioning: None,
            leaf_of: None,
        })
    }

    fn entries_of(base: u32, id: u32) -> Arc<TableSchema> {
        let mut t = (*table(id, "d", "entries")).clone();
        t.entry_of = Some((TableId(base), IndexId(1)));
        Arc::new(t)
    }

    fn with_database() -> Catalog {
        let mut c = Catalog::default();
        c.apply(&Command::CreateDatabase { name: "d".into(), collation: Collation::DEFAULT, comment: String::new() })
            .unwrap();
        c
    }

    #[test]
    fn names_are_unique_and_refusals_change_nothing() {
        let mut c = with_database();
        c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a")] }).unwrap();
        let before = c.clone();
        assert_eq!(
            c.apply(&Command::CreateTables { tables: vec![table(2, "d", "b"), table(3, "d", "a")] }),
            Err(CatalogError::TableExists { database: "d".into(), name: "a".into() })
        );
        assert_eq!(
            c.apply(&Command::CreateTables { tables: vec![table(2, "x", "b")] }),
            Err(CatalogError::UnknownDatabase("x".into()))
        );
        assert_eq!(
            c.apply(&Command::CreateDatabase {
                name: "d".into(),
                collation: Collation::DEFAULT,
                comment: String::new()
            }),
            Err(CatalogError::DatabaseExists("d".into()))
        );
        assert_eq!(c, before);
    }

    #[test]
    fn ids_are_never_reused() {
        let mut c = with_database();
        c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a")] }).unwrap();
        c.apply(&Command::DropTables { tables: vec![TableId(1)] }).unwrap();
        assert_eq!(c.next_table_id(), TableId(2));
        assert_eq!(
            c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a")] }),
            Err(CatalogError::TableIdUsed(TableId(1)))
        );
        let job = c.apply(&Command::StartJob { what: "x".into(), table: TableId(1), builds: 2 }).unwrap().job.unwrap();
        assert_eq!(job.builds, vec![TableId(2), TableId(3)]);
        c.apply(&Command::AbortJob { job: job.id }).unwrap();
        assert_eq!(c.next_table_id(), TableId(4));
    }

    #[test]
    fn a_dropped_table_takes_its_index_tables_along() {
        let mut c = with_database();
        c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a"), entries_of(1, 2)] }).unwrap();
        let applied = c.apply(&Command::DropDatabase { name: "d".into() }).unwrap();
        assert_eq!(applied.dropped, vec![TableId(1), TableId(2)]);
        assert_eq!(c.tables().count(), 0);
    }

    #[test]
    fn renaming_can_swap_names() {
        let mut c = with_database();
        c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a"), table(2, "d", "b")] }).unwrap();
        c.apply(&Command::ReplaceDefinitions { tables: vec![table(1, "d", "b"), table(2, "d", "a")] }).unwrap();
        assert_eq!(c.table_by_name("d", "a").unwrap().id, TableId(2));
        assert_eq!(c.table_by_name("d", "b").unwrap().id, TableId(1));
        assert!(c.apply(&Command::ReplaceDefinitions { tables: vec![table(1, "d", "a")] }).is_err());
    }

    #[test]
    fn names_of_foreign_keys_are_unique_in_a_database() {
        let mut c = with_database();
        c.apply(&Command::CreateDatabase { name: "e".into(), collation: Collation::DEFAULT, comment: String::new() })
            .unwrap();
        let child = |id, database: &str, name: &str, key: &str| {
            let mut t = (*table(id, database, name)).clone();
            t.foreign_keys.push(rauk_types::ForeignKey {
                name: key.into(),
                columns: vec![ColumnId(0)],
                parent_database: database.into(),
                parent_table: "p".into(),
                parent_columns: vec!["id".into()],
                on_delete: Default::default(),
                on_update: Default::default(),
            });
            Arc::new(t)
        };
        c.apply(&Command::CreateTables { tables: vec![child(1, "d", "a", "f")] }).unwrap();
        c.apply(&Command::CreateTables { tables: vec![child(2, "e", "a", "f")] }).unwrap();
        let taken = Err(CatalogError::ForeignKeyExists("f".into()));
        assert_eq!(c.apply(&Command::CreateTables { tables: vec![child(3, "d", "b", "F")] }), taken);
        c.apply(&Command::CreateTables { tables: vec![child(3, "d", "b", "g")] }).unwrap();
        assert_eq!(c.apply(&Command::ReplaceDefinitions { tables: vec![child(3, "d", "b", "f")] }), taken);
        c.apply(&Command::ReplaceDefinitions { tables: vec![child(1, "d", "a", "g"), child(3, "d", "b", "f")] })
            .unwrap();
    }

    #[test]
    fn a_switch_is_all_or_nothing() {
        let mut c = with_database();
        c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a")] }).unwrap();
        let job = c.apply(&Command::StartJob { what: "x".into(), table: TableId(1), builds: 1 }).unwrap().job.unwrap();
        let before = c.clone();
        let bad = Command::Switch {
            job: Some(job.id),
            drop: vec![TableId(1)],
            create: vec![table(9, "d", "a")],
            replace: vec![],
        };
        assert!(c.apply(&bad).is_err());
        assert_eq!(c, before);
        let good = Command::Switch {
            job: Some(job.id),
            drop: vec![TableId(1)],
            create: vec![table(2, "d", "a")],
            replace: vec![],
        };
        assert_eq!(c.apply(&good).unwrap().dropped, vec![TableId(1)]);
        assert_eq!(c.table_by_name("d", "a").unwrap().id, TableId(2));
        assert_eq!(c.jobs().count(), 0);
    }

    #[test]
    fn settings_by_prefix_are_sorted() {
        let mut c = Catalog::default();
        let set = |k: &str| (k.to_owned(), Some("1".to_owned()));
        c.apply(&Command::Settings { changes: vec![set("user/b"), set("user/a"), set("var/x"), set("a")] }).unwrap();
        c.apply(&Command::Settings { changes: vec![("a".into(), None)] }).unwrap();
        assert_eq!(c.settings_with_prefix("user/").map(|(k, _)| k).collect::<Vec<_>>(), vec!["user/a", "user/b"]);
        assert_eq!(c.setting("a"), None);
    }

    #[test]
    fn first_settings_change_nothing_that_was_set_since() {
        let mut c = Catalog::default();
        let first = |root: &str| Command::FirstSettings {
            settings: vec![("initialized".into(), "1".into()), ("user/root".into(), root.into())],
        };
        c.apply(&first("no password")).unwrap();
        assert_eq!((c.setting("initialized"), c.setting("user/root")), (Some("1"), Some("no password")));
        c.apply(&Command::Settings { changes: vec![("user/root".into(), Some("secret".into()))] }).unwrap();
        c.apply(&first("no password")).unwrap();
        assert_eq!(c.setting("user/root"), Some("secret"));
        c.apply(&Command::Settings { changes: vec![("user/root".into(), None)] }).unwrap();
        c.apply(&first("no password")).unwrap();
        assert_eq!(c.setting("user/root"), None, "who was dropped does not come back");
    }

    fn change(key: &str, from: Option<&str>, to: Option<&str>) -> SettingChange {
        SettingChange { key: key.to_owned(), from: from.map(str::to_owned), to: to.map(str::to_owned) }
    }

    #[test]
    fn of_two_changes_made_from_the_same_text_the_second_is_refused_wholly() {
        let mut c = Catalog::default();
        c.apply(&Command::ChangeSettings {
            changes: vec![change("user/a", None, Some("1")), change("user/b", None, Some("1"))],
        })
        .unwrap();
        c.apply(&Command::ChangeSettings { changes: vec![change("user/a", Some("1"), Some("2"))] }).unwrap();
        let after = c.clone();
        let late = [
            // In either order: what comes before the one that differs is not done.
            vec![change("user/b", Some("1"), Some("3")), change("user/a", Some("1"), Some("3"))],
            vec![change("user/a", Some("1"), None), change("user/c", None, Some("3"))],
            vec![change("user/a", None, Some("3"))],
            // One that is only to be so still.
            vec![change("user/b", Some("1"), None), change("user/c", Some("1"), Some("1"))],
        ];
        for changes in late {
            assert_eq!(c.apply(&Command::ChangeSettings { changes }), Err(CatalogError::SettingsChanged));
            assert_eq!(c, after);
        }
        c.apply(&Command::ChangeSettings { changes: vec![change("user/a", Some("2"), None)] }).unwrap();
        let again = Command::ChangeSettings { changes: vec![change("user/a", Some("2"), Some("3"))] };
        assert_eq!(c.apply(&again), Err(CatalogError::SettingsChanged), "who was dropped does not come back");
        assert_eq!((c.setting("user/a"), c.setting("user/b")), (None, Some("1")));
    }

    mod replay {
        use super::*;
        use proptest::prelude::*;

        fn texts() -> impl Strategy<Value = Option<&'static str>> {
            prop_oneof![Just(None), Just(Some("1")), Just(Some("2"))]
        }

        fn commands() -> impl Strategy<Value = Vec<Command>> {
            let name = prop_oneof![Just("a"), Just("b"), Just("c")];
            let db = prop_oneof![Just("d"), Just("e")];
            let one = prop_oneof![
                db.clone().prop_map(|n| Command::CreateDatabase {
                    name: n.into(),
                    collation: Collation::DEFAULT,
                    comment: String::new()
                }),
                db.clone().prop_map(|n| Command::AlterDatabase {
                    name: n.into(),
                    collation: Collation::Utf8mb4Bin,
                    comment: (n.len() % 2 == 0).then(|| n.to_uppercase()),
                }),
                db.clone().prop_map(|n| Command::DropDatabase { name: n.into() }),
                (1u32..20, db.clone(), name.clone())
                    .prop_map(|(i, d, n)| Command::CreateTables { tables: vec![table(i, d, n)] }),
                (1u32..20, db, name).prop_map(|(i, d, n)| Command::ReplaceDefinitions { tables: vec![table(i, d, n)] }),
                (1u32..20).prop_map(|i| Command::DropTables { tables: vec![TableId(i)] }),
                (1u32..3).prop_map(|n| Command::StartJob { what: "j".into(), table: TableId(1), builds: n }),
                (1u64..4).prop_map(|j| Command::AbortJob { job: JobId(j) }),
                (texts(), texts())
                    .prop_map(|(from, to)| Command::ChangeSettings { changes: vec![change("k", from, to)] }),
            ];
            proptest::collection::vec(one, 0..40)
        }

        proptest! {
            /// What was refused left no trace, so replaying only the accepted commands gives the same state; and a
            /// snapshot in the middle changes nothing.
            #[test]
            fn gives_equal_state(all in commands(), cut in 0usize..40) {
                let mut first = Catalog::default();
                let accepted: Vec<Command> = all.into_iter().filter(|c| first.apply(c).is_ok()).collect();
                let mut second = Catalog::default();
                for (i, command) in accepted.iter().enumerate() {
                    if i == cut {
                        let json = serde_json::to_vec(&second).unwrap();
                        second = serde_json::from_slice(&json).unwrap();
                        second.after_load();
                    }
                    let command: Command = serde_json::from_slice(&serde_json::to_vec(command).unwrap()).unwrap();
                    second.apply(&command).unwrap();
                }
                prop_assert_eq!(first, second);
            }
        }
    }

    #[test]
    fn a_build_of_a_cluster_has_its_tables_hidden_until_the_switch() {
        let mut c = with_database();
        c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a")] }).unwrap();
        let build = |id| Command::StartBuild {
            what: "ALTER TABLE d.a".into(),
            table: TableId(1),
            owner: ProcessId(7),
            tables: vec![table(id, "d", "a")],
            definitions: vec![],
        };
        assert_eq!(c.apply(&build(1)), Err(CatalogError::TableIdUsed(TableId(1))));
        let job = c.apply(&build(2)).unwrap().job.unwrap();
        assert_eq!((job.owner, job.builds.clone()), (Some(ProcessId(7)), vec![TableId(2)]));
        assert_eq!(c.next_table_id(), TableId(3));
        assert_eq!(c.table_by_name("d", "a").unwrap().id, TableId(1));
        assert!(c.table(TableId(2)).is_none());
        assert_eq!(c.hidden_tables().map(|t| t.id).collect::<Vec<_>>(), [TableId(2)]);
        assert_eq!(c.partition_tables().keys().copied().collect::<Vec<_>>(), [TableId(1), TableId(2)]);
        // Somebody who had the same idea takes other ids.
        assert_eq!(c.apply(&build(2)), Err(CatalogError::TableIdUsed(TableId(2))));
        let switch = Command::Switch {
            job: Some(job.id),
            drop: vec![TableId(1)],
            create: vec![table(2, "d", "a")],
            replace: vec![],
        };
        c.apply(&switch).unwrap();
        assert_eq!(c.table_by_name("d", "a").unwrap().id, TableId(2));
        assert_eq!(c.hidden_tables().count(), 0);
        // Partitions may have a definition before the catalog has it.
        let redefine = |id| Command::StartBuild {
            what: "ALTER TABLE d.a".into(),
            table: TableId(2),
            owner: ProcessId(7),
            tables: vec![],
            definitions: vec![table(id, "d", "b")],
        };
        assert_eq!(c.apply(&redefine(9)), Err(CatalogError::NoSuchTableId(TableId(9))));
        let job = c.apply(&redefine(2)).unwrap().job.unwrap();
        assert_eq!((&*c.table(TableId(2)).unwrap().name, &*c.partition_tables()[&TableId(2)].name), ("a", "b"));
        c.apply(&Command::AbortJob { job: job.id }).unwrap();
        assert_eq!(&*c.partition_tables()[&TableId(2)].name, "a");
    }

    /// A partitioned table with these leaves.
    fn partitioned(id: u32, name: &str, leaves: &[u32]) -> Arc<TableSchema> {
        let partition = |leaf: &u32| UserPartition {
            name: format!("p{leaf}"),
            values: PartitionValues::None,
            options: Default::default(),
            leaves: vec![Leaf { tables: vec![TableId(*leaf)], ..Leaf::new(None) }],
        };
        let on = PartitionOn::Columns { columns: vec![0], implied: true };
        let method = PartitionMethod::Key { linear: false, algorithm: None };
        let mut table = (*table(id, "d", name)).clone();
        table.partitioning = Some(Arc::new(Partitioning {
            by: PartitionBy { method, on },
            sub: None,
            partitions: leaves.iter().map(partition).collect(),
            counted: true,
            counted_sub: false,
        }));
        Arc::new(table)
    }

    #[test]
    fn leaves_have_ids_that_nobody_else_gets() {
        let mut c = with_database();
        c.apply(&Command::CreateTables { tables: vec![partitioned(1, "a", &[2, 3])] }).unwrap();
        assert_eq!(c.next_table_id(), TableId(4));
        let used = |id| Err(CatalogError::TableIdUsed(TableId(id)));
        assert_eq!(c.apply(&Command::CreateTables { tables: vec![table(3, "d", "b")] }), used(3));
        assert_eq!(c.apply(&Command::CreateTables { tables: vec![partitioned(4, "b", &[5, 3])] }), used(3));
        let replace = |table| Command::Switch { job: None, drop: vec![], create: vec![], replace: vec![table] };
        // A leaf goes, another comes.
        c.apply(&replace(partitioned(1, "a", &[3, 4]))).unwrap();
        assert_eq!(c.next_table_id(), TableId(5));
        assert_eq!(c.apply(&replace(partitioned(1, "a", &[2, 4]))), used(2));
        // What a job builds it may switch to.
        let build = Command::StartBuild {
            what: "ALTER TABLE d.a".into(),
            table: TableId(1),
            owner: ProcessId(7),
            tables: vec![partitioned(5, "a", &[6, 7])],
            definitions: vec![],
        };
        let job = c.apply(&build).unwrap().job.unwrap();
        assert_eq!((job.builds.clone(), c.next_table_id()), (vec![TableId(5), TableId(6), TableId(7)], TableId(8)));
        let create = vec![partitioned(5, "a", &[6, 7])];
        c.apply(&Command::Switch { job: Some(job.id), drop: vec![TableId(1)], create, replace: vec![] }).unwrap();
        assert_eq!(c.table_by_name("d", "a").unwrap().id, TableId(5));
    }

    #[test]
    fn a_database_is_dropped_only_with_the_tables_that_its_dropper_knows() {
        let mut c = with_database();
        c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a"), entries_of(1, 2)] }).unwrap();
        let drop = |tables: &[u32]| Command::DropDatabaseOf {
            name: "d".into(),
            tables: tables.iter().map(|&t| TableId(t)).collect(),
        };
        let before = c.clone();
        assert_eq!(c.apply(&drop(&[])), Err(CatalogError::TablesChanged("d".into())));
        assert_eq!(c.apply(&drop(&[1, 3])), Err(CatalogError::TablesChanged("d".into())));
        assert_eq!(c, before);
        assert_eq!(c.apply(&drop(&[1])).unwrap().dropped, [TableId(1), TableId(2)]);
        assert_eq!(c.apply(&drop(&[])), Err(CatalogError::UnknownDatabase("d".into())));
    }
}
