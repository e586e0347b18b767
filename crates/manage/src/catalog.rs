//! The state, and how commands change it.
//!
//! `apply` checks everything first and then changes, so that a refused command leaves no trace. It gives what the caller needs
//! to know of the effect (a new job's id and its reserved table ids).

use crate::command::{Command, Job, JobId, JobLimits, JobStep};
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
                self.check_replaced(tables, &BTreeSet::new())?;
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
                    limits: JobLimits::default(),
                };
                self.next_table += builds;
                self.begin(job, &mut applied);
            }
            Command::StartBuild { what, table, owner, tables, definitions, limits } => {
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
                    limits: *limits,
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
                after.check_replaced(replace, &reserved)?;
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
                after.check_replaced(tables, &BTreeSet::new())?;
                after.replace(tables);
                for (view, to) in moved {
                    let view = ViewSchema { database: to.0.clone(), name: to.1.clone(), ..(*view).clone() };
                    after.apply(&Command::CreateView { view: Arc::new(view), replace: false })?;
                }
                *self = after;
            }
            Command::ExchangeLeaf { partitioned, with, tables } => {
                self.check_exchange(partitioned, *with, tables)?;
                let replaced = self.clone();
                self.remove(&[*with], &mut applied);
                self.add(tables);
                self.replace(std::slice::from_ref(partitioned));
                if let Some((old, of, new)) = replaced.replaced(&[*with], tables) {
                    self.histograms.take_over(of, old, new);
                }
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

    /// Leaves that they did not have get new ids, or `reserved` ones.
    fn check_replaced(&self, tables: &[Arc<TableSchema>], reserved: &BTreeSet<TableId>) -> Result<(), CatalogError> {
        let leaving: BTreeSet<TableId> = tables.iter().map(|t| t.id).collect();
        let mut names = BTreeSet::new();
        for table in tables {
            let Some(old) = self.tables.get(&table.id) else { return Err(CatalogError::NoSuchTableId(table.id)) };
            let had: BTreeSet<TableId> = ids_of(old).collect();
            let is_used = |id: &TableId| !had.contains(id) && !reserved.contains(id) && id.0 < self.next_table;
            if let Some(used) = ids_of(table).find(is_used) {
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

    /// Both definitions are of tables that are here, under the names that they have, and the ids stay the same, all together.
    fn check_exchange(
        &self,
        partitioned: &TableSchema,
        with: TableId,
        tables: &[Arc<TableSchema>],
    ) -> Result<(), CatalogError> {
        let known = |id: TableId| self.tables.get(&id).ok_or(CatalogError::NoSuchTableId(id));
        let (old, other) = (known(partitioned.id)?, known(with)?);
        let family = self.tables.values().filter(|t| t.id == with || t.entry_of.is_some_and(|(base, _)| base == with));
        let mut had: Vec<TableId> = ids_of(old).chain(family.map(|table| table.id)).collect();
        let mut has: Vec<TableId> = ids_of(partitioned).chain(tables.iter().map(|table| table.id)).collect();
        had.sort_unstable();
        has.sort_unstable();
        if had != has {
            let other_id = has.iter().find(|id| !had.contains(id)).or(has.first());
            return Err(CatalogError::TableIdUsed(*other_id.expect("a table has an id")));
        }
        let base = tables.iter().filter(|table| table.entry_of.is_none());
        let same = name_of(partitioned) == name_of(old) && base.map(|table| name_of(table)).eq([name_of(other)]);
        match same {
            true => Ok(()),
            false => Err(CatalogError::NoSuchTableId(with)),
        }
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
pub(crate) mod tests;
