//! What partitions that are gone have left in global unique indexes is taken away in the background.
//!
//! DROP PARTITION and TRUNCATE PARTITION cost the same whatever rows there are, so they leave the entries of those rows in the
//! table's GLOBAL unique keys. Such entries change no result, and take memory. The task of partitions by time
//! ([`super::intervals`]) looks every 20 seconds for tables that have some, on one node of a cluster, and takes them away
//! beside readers and writers. While `super_read_only` is on, nothing is taken away. What cannot be done now is done in a later round.

use super::engine::Engine;
use super::read_only::ReadOnly;
use rauk_node::{NodeError, TableHandle};
use std::time::Duration;

/// Whoever has locked definitions, or the table, is waited for so long.
const PATIENCE: Duration = Duration::from_secs(10);

impl Engine {
    /// Gives how many entries were taken away.
    pub async fn purge_dead_entries(&self) -> u64 {
        if !self.database.does_what_one_node_does() || self.variables.read_only() == ReadOnly::Super {
            return 0;
        }
        let databases = self.database.databases();
        let tables = databases.iter().filter_map(|database| self.database.tables(database).ok()).flatten();
        let dead: Vec<_> =
            tables.filter(|schema| schema.partitioning.as_ref().is_some_and(|of| of.dead_entries)).collect();
        let mut gone = 0;
        for schema in dead {
            let Some(table) = self.database.table_by_id(schema.id) else { continue };
            match self.purge_table(&table).await {
                Ok(some) => {
                    gone += some;
                    let (database, name) = (&schema.database, &schema.name);
                    tracing::info!(entries = some, "entries of dropped partitions of {database}.{name} taken away");
                }
                // Changed, dropped or locked meanwhile: there is a next time.
                Err(error) => {
                    let (database, name) = (&schema.database, &schema.name);
                    tracing::debug!(%error, "entries of dropped partitions of {database}.{name} stay for now");
                }
            }
        }
        gone
    }

    async fn purge_table(&self, table: &TableHandle) -> Result<u64, NodeError> {
        let purged = self.database.purge_entries(table).await?;
        if purged.left == 0 {
            // FLUSH TABLES WITH READ LOCK and LOCK INSTANCE FOR BACKUP keep it out.
            let _changing = self.database.changing(PATIENCE).await?;
            self.database.has_no_dead_entries(table, PATIENCE).await?;
        }
        Ok(purged.gone)
    }
}
