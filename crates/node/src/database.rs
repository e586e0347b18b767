//! The open database: tables, DDL, counters, usage, life and end.
use crate::error::NodeError;
use crate::runtime::Runtime;
use crate::transaction::{Transaction, TxnOptions};
use rauk_log::Disk;
use rauk_types::{IndexId, TableId, TableSchema};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Acknowledged means on disk.
    Fsync,
    /// Flushed every epoch (50 ms); a crash loses at most that, never half a transaction.
    Relaxed,
}

#[derive(Clone, Debug)]
pub struct Config {
    pub partitions: u16,
    pub durability: Durability,
    pub memory_limit: u64,
    pub history_limit: u64,
    pub segment_bytes: u64,
    /// A checkpoint begins when the redo log has grown by this much since the last.
    pub checkpoint_redo_bytes: u64,
}

/// One node's database. Cheap to clone.
#[derive(Clone)]
pub struct Database {}

/// A table as open statements hold it; plans keep it. Its schema is fixed: after a DDL the handle is stale and
/// [`Transaction::use_table`] says so.
#[derive(Clone)]
pub struct TableHandle {
    schema: Arc<TableSchema>,
}

impl TableHandle {
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }
}

#[allow(unused_variables)]
impl Database {
    /// Opens or creates the database: loads the catalog and the newest checkpoint, replays the redo log.
    pub fn open(
        config: Config,
        disk: Arc<dyn Disk>,
        runtime: Arc<dyn Runtime>,
        progress: &dyn Fn(&str),
    ) -> Result<Database, NodeError> {
        todo!()
    }

    pub fn begin(&self, options: TxnOptions) -> Transaction {
        todo!()
    }

    /// The newest definition.
    pub fn table(&self, database: &str, name: &str) -> Result<TableHandle, NodeError> {
        todo!()
    }

    pub fn table_by_id(&self, id: TableId) -> Option<TableHandle> {
        todo!()
    }

    /// Names of all databases, sorted.
    pub fn databases(&self) -> Vec<String> {
        todo!()
    }

    /// Base tables of a database (index tables left out), sorted by name.
    pub fn tables(&self, database: &str) -> Result<Vec<Arc<TableSchema>>, NodeError> {
        todo!()
    }

    // DDL: each call waits for transactions that use the table (at most `wait`, then 1205), is durable when it returns, and after a crash is wholly there or not at all.

    pub async fn create_database(&self, name: &str, collation: rauk_types::Collation) -> Result<(), NodeError> {
        todo!()
    }

    /// Drops its tables as well; gives how many.
    pub async fn drop_database(&self, name: &str, wait: Duration) -> Result<u64, NodeError> {
        todo!()
    }

    pub fn database_collation(&self, name: &str) -> Option<rauk_types::Collation> {
        todo!()
    }

    /// `schema` has ids of columns and indexes set; table ids, index tables of unique indexes, layouts and versions are made here.
    pub async fn create_table(&self, schema: TableSchema) -> Result<(), NodeError> {
        todo!()
    }

    pub async fn drop_table(&self, database: &str, name: &str, wait: Duration) -> Result<(), NodeError> {
        todo!()
    }

    /// Replaces the table by an empty one with a new id; AUTO_INCREMENT starts again.
    pub async fn truncate_table(&self, database: &str, name: &str, wait: Duration) -> Result<(), NodeError> {
        todo!()
    }

    /// Renames all or none, in one step. Each pair is ((database, name), (database, name)).
    pub async fn rename_tables(
        &self,
        pairs: &[((String, String), (String, String))],
        wait: Duration,
    ) -> Result<(), NodeError> {
        todo!()
    }

    /// Changes a definition: the caller gives the wanted columns (kept ones with their ids) and indexes (kept ones with their ids and index tables);
    /// new indexes are built, dropped ones go, rows are not copied. Duplicates met by a new unique index: `Refused` with 1062.
    pub async fn alter_table(&self, old: &TableHandle, new: TableSchema, wait: Duration) -> Result<(), NodeError> {
        todo!()
    }

    // Counters

    /// Reserves `count` consecutive AUTO_INCREMENT numbers and gives the first (1 in a new table).
    pub fn next_auto_increment(&self, table: TableId, count: u64) -> Result<u64, NodeError> {
        todo!()
    }

    /// An explicit value was stored: the counter goes above it.
    pub fn observe_auto_increment(&self, table: TableId, value: u64) -> Result<(), NodeError> {
        todo!()
    }

    /// The next number that would be given, as SHOW CREATE TABLE prints it.
    pub fn peek_auto_increment(&self, table: TableId) -> u64 {
        todo!()
    }

    // The key-value part of the catalog: users, grants and persisted variables are stored here by SQL, each change durable when it returns.

    pub fn setting(&self, key: &str) -> Option<String> {
        todo!()
    }

    pub fn settings_with_prefix(&self, prefix: &str) -> Vec<(String, String)> {
        todo!()
    }

    /// `None` removes. All or none.
    pub fn set_settings(&self, changes: &[(String, Option<String>)]) -> Result<(), NodeError> {
        todo!()
    }

    // For the operator

    pub fn table_usage(&self, table: TableId) -> rauk_kernel::partition::TableUsage {
        todo!()
    }

    /// Approximate number of index entries or rows between two encoded keys, for planning. Never waits.
    pub fn estimate_rows(&self, table: TableId, index: Option<IndexId>) -> u64 {
        todo!()
    }

    pub fn memory_used(&self) -> u64 {
        todo!()
    }

    pub fn memory_limit(&self) -> u64 {
        todo!()
    }

    pub fn set_memory_limit(&self, bytes: u64) {
        todo!()
    }

    pub fn partition_count(&self) -> u16 {
        todo!()
    }

    pub async fn checkpoint(&self) -> Result<(), NodeError> {
        todo!()
    }

    /// Ends background work, flushes, writes a checkpoint and closes. Transactions that are open fail from now on.
    pub async fn shutdown(&self) -> Result<(), NodeError> {
        todo!()
    }
}
