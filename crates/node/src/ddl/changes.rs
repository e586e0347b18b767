//! FLUSH TABLES WITH READ LOCK keeps out everything that changes definitions or accounts, beside the writers of all
//! tables. LOCK INSTANCE FOR BACKUP keeps out the former alone.
//!
//! A statement that makes such a change is a writer of one lock of the process while it works ([`Database::changing`]);
//! LOCK TABLES … WRITE is one for as long as its session has the locks, so that DDL under them needs no other. The read
//! lock first keeps these writers out, on all nodes, and then locks the tables that exist: no other comes until it is
//! released. In a cluster its first step is an intent on a table that does not exist ([`EVERYTHING`]), which each process
//! follows with its own lock.

use super::locking::TableLocks;
use crate::database::{Database, TableHandle};
use crate::error::NodeError;
use crate::locks::metadata::{DdlWait, Mode};
use crate::node::Node;
use crate::table::TableInfo;
use rauk_types::{DataType, TableId};
use std::sync::Arc;

/// Ids of tables stay far below.
pub const EVERYTHING: TableId = TableId(u32::MAX - 1);

/// Stands for all definitions where tables are locked.
pub(crate) fn everything() -> Arc<TableInfo> {
    TableInfo::without_rows(EVERYTHING, "definitions", DataType::BIGINT)
}

/// A statement that changes definitions or accounts is under way; until this is dropped.
pub struct Changing {
    node: Arc<Node>,
}

impl Drop for Changing {
    fn drop(&mut self) {
        self.node.everything.shared.lock.end_write();
    }
}

impl Database {
    /// If nobody has said FLUSH TABLES WITH READ LOCK.
    pub fn try_changing(&self) -> Option<Changing> {
        let node = &self.node;
        node.everything.shared.lock.try_write().then(|| Changing { node: node.clone() })
    }

    /// The same; waits for whoever has, as DDL does: 1205, 1317.
    pub async fn changing(&self, wait: impl Into<DdlWait<'_>>) -> Result<Changing, NodeError> {
        let (node, wait) = (&self.node, wait.into());
        node.everything.shared.lock.write(&*node.runtime, wait.limit, wait.interrupt).await?;
        Ok(Changing { node: node.clone() })
    }

    /// LOCK INSTANCE FOR BACKUP. Several sessions may have it at a time.
    pub async fn lock_definitions(&self, wait: DdlWait<'_>) -> Result<TableLocks, NodeError> {
        let everything = TableHandle::new(self.node.everything.clone());
        self.lock_tables(&[(everything, Mode::NoWrites)], wait).await
    }

    /// FLUSH TABLES WITH READ LOCK.
    pub async fn lock_everything(&self, wait: DdlWait<'_>) -> Result<TableLocks, NodeError> {
        let runtime = &self.node.runtime;
        let end = runtime.now() + wait.limit;
        let definitions = self.lock_definitions(wait).await?;
        loop {
            let mut all = Vec::new();
            for name in self.databases() {
                for schema in self.tables(&name).unwrap_or_default() {
                    all.extend(self.table_by_id(schema.id).map(|table| (table, Mode::NoWrites)));
                }
            }
            let limit = end.saturating_sub(runtime.now());
            match self.lock_tables(&all, DdlWait { limit, ..wait }).await {
                // In a cluster a change that was made before may be on its way to this process.
                Err(NodeError::StaleSchema) if !limit.is_zero() => {}
                locked => return Ok(locked?.beside(definitions)),
            }
        }
    }
}
