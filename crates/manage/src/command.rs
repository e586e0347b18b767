//! What can be done to the catalog. These are written to disk: variants and fields are added at the end, never reused.

use rauk_types::{Collation, ColumnId, ProcessId, TableId, TableSchema, ViewSchema};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A DDL job; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobId(pub u64);

/// How far a DDL job has come. A job that is in the catalog when the node starts was cut off by a crash: whatever its step,
/// the tables it was building are not in the catalog yet, and it is undone by removing the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobStep {
    /// Ids are reserved, nothing is built.
    Prepared,
    /// New tables or index tables are being filled.
    Filling,
    /// All rows are there and durable; the switch comes next.
    Filled,
}

/// A change of the catalog that takes longer than one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub id: JobId,
    /// The statement's kind and its table, for people: `ALTER TABLE shop.orders`.
    pub what: String,
    /// The table that is changed.
    pub table: TableId,
    /// Tables that the job builds; they enter the catalog with [`Command::Switch`].
    pub builds: Vec<TableId>,
    pub step: JobStep,
    /// The process of a cluster that runs it; whoever finds it dead ends the job. `None` on a node that is alone.
    #[serde(default)]
    pub owner: Option<ProcessId>,
    /// In a cluster, the tables themselves: every process has them, under their ids only, from the start of the job to its end, since the rows that fill
    /// them go to all nodes.
    #[serde(default)]
    pub tables: Vec<Arc<TableSchema>>,
    /// Definitions that the partitions have already while the job runs: their new ordered indexes are being filled. Nobody else knows them before the switch.
    #[serde(default)]
    pub definitions: Vec<Arc<TableSchema>>,
    /// In a cluster, for all processes that work on it.
    #[serde(default)]
    pub limits: JobLimits,
}

/// How much of a process a job may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLimits {
    /// Threads that work on rows at the same time.
    pub threads: u32,
    /// Rows that are worked on in a second; 0: as many as can be.
    pub rows_per_second: u64,
}

impl Default for JobLimits {
    fn default() -> JobLimits {
        JobLimits { threads: u32::MAX, rows_per_second: 0 }
    }
}

/// A setting that is changed by somebody who has read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    pub key: String,
    /// What was read; `None`: there was none.
    pub from: Option<String>,
    /// `None` removes it. The same as `from`: it is only to be so still.
    pub to: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    CreateDatabase {
        name: String,
        collation: Collation,
        #[serde(default)]
        comment: String,
    },
    /// With all its tables.
    DropDatabase {
        name: String,
    },
    /// Tables with the index tables of their unique indexes. Ids must be new ones, taken from [`crate::Catalog::next_table_id`] upward.
    CreateTables {
        tables: Vec<Arc<TableSchema>>,
    },
    /// New definitions of tables that exist (by id): renamed, columns or indexes changed. All or none.
    ReplaceDefinitions {
        tables: Vec<Arc<TableSchema>>,
    },
    DropTables {
        tables: Vec<TableId>,
    },
    /// Reserves `builds` table ids for a job that begins.
    StartJob {
        what: String,
        table: TableId,
        builds: u32,
    },
    JobStep {
        job: JobId,
        step: JobStep,
    },
    /// In one step: drops tables, takes in the ones that a job has built, changes definitions, and ends the job.
    Switch {
        job: Option<JobId>,
        drop: Vec<TableId>,
        create: Vec<Arc<TableSchema>>,
        replace: Vec<Arc<TableSchema>>,
    },
    /// Takes a job away that failed or was cut off.
    AbortJob {
        job: JobId,
    },
    /// Sets (`Some`) or removes (`None`) settings, whatever they are. All or none.
    Settings {
        changes: Vec<(String, Option<String>)>,
    },
    /// Begins a job of a cluster: its tables are made known to all processes, hidden from names. Their ids must be new ones, taken from
    /// [`crate::Catalog::next_table_id`] upward. `definitions` are of tables that exist.
    StartBuild {
        what: String,
        table: TableId,
        owner: ProcessId,
        tables: Vec<Arc<TableSchema>>,
        definitions: Vec<Arc<TableSchema>>,
        #[serde(default)]
        limits: JobLimits,
    },
    /// Drops a database if these are all the base tables in it: its dropper has locked no others.
    DropDatabaseOf {
        name: String,
        tables: Vec<TableId>,
    },
    /// Settings of a new database, unless the first of them is there: then nothing changes, whatever the others are. Who asks may know less than others have done.
    FirstSettings {
        settings: Vec<(String, String)>,
    },
    /// Changes settings if all of them are what they were changed from. All or none: else what somebody else has done meanwhile would be undone.
    ChangeSettings {
        changes: Vec<SettingChange>,
    },
    /// A view. With `replace` a view of its name goes; a table of its name never does.
    CreateView {
        view: Arc<ViewSchema>,
        replace: bool,
    },
    /// Views by database and name. All or none.
    DropViews {
        views: Vec<ObjectName>,
    },
    /// In one step: new definitions of tables under other names, and views under other names, each from and to. All or none.
    Rename {
        tables: Vec<Arc<TableSchema>>,
        views: Vec<(ObjectName, ObjectName)>,
    },
    /// Histograms of columns of a table; `None` takes one away. All or none.
    ChangeHistograms {
        table: TableId,
        changes: Vec<(ColumnId, Option<Arc<str>>)>,
    },
    /// The collation of tables that are made in a database from now on, and its comment if that changes.
    AlterDatabase {
        name: String,
        collation: Collation,
        #[serde(default)]
        comment: Option<String>,
    },
    /// In one step: the table `with` and a leaf of a partitioned table change places. `partitioned` is the new definition, in which the leaf
    /// has the ids of `with` and its index tables; `tables` are `with` and its index tables under the ids that the leaf had. All
    /// rows stay under their ids. In a cluster both go on counting above what either has counted.
    ExchangeLeaf {
        partitioned: Arc<TableSchema>,
        with: TableId,
        tables: Vec<Arc<TableSchema>>,
    },
}

/// Database and name.
pub type ObjectName = (String, String);
