//! What partitions that are gone have left in global unique indexes is taken away in the background.
//!
//! DROP PARTITION and TRUNCATE PARTITION cost the same whatever rows there are, so they leave the entries of those rows in the
//! table's GLOBAL unique keys. Such entries change no result, and take memory. A background task looks every 20 seconds for tables
//! that have some, on one node of a cluster, and takes them away beside readers and writers. While `super_read_only` is on,
//! nothing is taken away. What cannot be done now is done in a later round; a table that has none left, and whose
//! definition cannot say so since it is in use, is not gone through again.

use super::engine::Engine;
use super::read_only::ReadOnly;
use rauk_node::member::event_log::Level;
use rauk_node::{NodeError, TableHandle};
use rauk_types::TableId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// From one look to the next.
const PAUSE: Duration = Duration::from_secs(20);
/// Whoever has locked definitions, or the table, is waited for so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tables that have none left, and the version of each.
#[derive(Default)]
pub struct Purged(BTreeMap<TableId, u32>);

impl Engine {
    /// From now on, until the engine is gone.
    pub fn purge_as_time_passes(self: &Arc<Self>) {
        let (engine, runtime) = (Arc::downgrade(self), self.runtime.clone());
        let work = async move {
            let mut purged = Purged::default();
            while let Some(engine) = engine.upgrade() {
                engine.purge_dead_entries(&mut purged).await;
                drop(engine);
                runtime.sleep(PAUSE).await;
            }
        };
        self.runtime.spawn("entries of dropped partitions", Box::pin(work));
    }

    /// Gives how many entries were taken away.
    pub async fn purge_dead_entries(&self, purged: &mut Purged) -> u64 {
        if !self.database.does_what_one_node_does() || self.variables.read_only() == ReadOnly::Super {
            return 0;
        }
        let databases = self.database.databases();
        let tables = databases.iter().filter_map(|database| self.database.tables(database).ok()).flatten();
        let dead: Vec<_> =
            tables.filter(|schema| schema.partitioning.as_ref().is_some_and(|of| of.dead_entries)).collect();
        purged.0.retain(|table, _| dead.iter().any(|schema| schema.id == *table));
        let mut gone = 0;
        for schema in dead {
            let Some(table) = self.database.table_by_id(schema.id) else { continue };
            match self.purge_table(&table, purged).await {
                Ok(some) => {
                    gone += some;
                    if some > 0 {
                        let (database, name) = (&schema.database, &schema.name);
                        let what = format!("{database}.{name}: {some} entries of dropped partitions taken away");
                        tracing::info!("{what}");
                        self.database.note(Level::Info, what);
                    }
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

    async fn purge_table(&self, table: &TableHandle, purged: &mut Purged) -> Result<u64, NodeError> {
        let (id, version) = (table.schema().id, table.schema().version);
        let mut gone = 0;
        if purged.0.get(&id) != Some(&version) {
            let some = self.database.purge_entries(table).await?;
            gone = some.gone;
            if some.left > 0 {
                return Ok(gone);
            }
            purged.0.insert(id, version);
        }
        // FLUSH TABLES WITH READ LOCK and LOCK INSTANCE FOR BACKUP keep it out.
        let _changing = self.database.changing(PATIENCE).await?;
        match self.database.has_no_dead_entries(table, PATIENCE).await {
            // It is in use: there is a next time.
            Ok(()) | Err(NodeError::LockTimeout) => Ok(gone),
            Err(error) => Err(error),
        }
    }
}
