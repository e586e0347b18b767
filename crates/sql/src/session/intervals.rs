//! The partitions of tables with INTERVAL, as time passes.
//!
//! A background task looks at all such tables every 20 seconds and makes, and drops, what is due ([`super::ddl::interval`]), one
//! change of the catalog a table. In a cluster one node does it: the first of those that serve clients. Two that both take
//! themselves for the first do no harm: a change that meets another one is given up, and looked at again the next time.
//!
//! Partitions are made and dropped by the clock of that node, in the global time zone. While `super_read_only` is on, nothing
//! is changed. A table that is locked is waited for a moment and tried again in the next round. What fails is told once, in the log and in
//! `rauk.events`, until it succeeds or fails otherwise.

use super::ddl::interval::{self, Moment};
use super::engine::Engine;
use super::read_only::ReadOnly;
use super::variables::{SessionVariables, Settings};
use rauk_node::member::event_log::Level;
use rauk_types::error::codes;
use rauk_types::{MysqlError, TableId, TableSchema};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// From one look to the next. Partitions are made well ahead, so none is missed.
const PAUSE: Duration = Duration::from_secs(20);
/// Whoever has locked definitions, or the table, is waited for so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// What could not be done, by table; what is here has been told.
#[derive(Default)]
pub struct Failures(BTreeMap<TableId, MysqlError>);

impl Engine {
    /// From now on, until the engine is gone.
    pub fn keep_intervals(self: &Arc<Self>) {
        let (engine, runtime) = (Arc::downgrade(self), self.runtime.clone());
        let work = async move {
            let mut failures = Failures::default();
            while let Some(engine) = engine.upgrade() {
                engine.apply_intervals(&mut failures).await;
                drop(engine);
                runtime.sleep(PAUSE).await;
            }
        };
        self.runtime.spawn("intervals", Box::pin(work));
    }

    /// Makes and drops the partitions that are due now; gives the tables that were changed.
    pub async fn apply_intervals(&self, failures: &mut Failures) -> Vec<TableId> {
        let mut changed = Vec::new();
        if !self.database.does_what_one_node_does() || self.variables.read_only() == ReadOnly::Super {
            return changed;
        }
        let zone = Settings::read(&SessionVariables::new(self.variables.clone(), 0)).time_zone;
        let moment = Moment { micros: self.now_micros(), zone };
        let tables: Vec<Arc<TableSchema>> = self
            .database
            .databases()
            .iter()
            .filter_map(|database| self.database.tables(database).ok())
            .flatten()
            .filter(|schema| schema.partitioning.as_ref().is_some_and(|of| of.interval.is_some()))
            .collect();
        failures.0.retain(|table, _| tables.iter().any(|schema| schema.id == *table));
        for schema in tables {
            match self.apply_interval(&schema, &moment).await {
                Ok(is_changed) => {
                    failures.0.remove(&schema.id);
                    changed.extend(is_changed.then_some(schema.id));
                }
                // Changed or dropped since it was looked at: there is a next time.
                Err(error) if [codes::TABLE_DEF_CHANGED, codes::NO_SUCH_TABLE].contains(&error.code) => {}
                Err(error) => {
                    let what = format!("partitions of {}.{} are due: {error}", schema.database, schema.name);
                    if failures.0.insert(schema.id, error.clone()).is_none_or(|before| before != error) {
                        tracing::warn!("{what}");
                        self.database.note(Level::Warning, what);
                    }
                }
            }
        }
        changed
    }

    /// Whether there was something to do.
    async fn apply_interval(&self, schema: &Arc<TableSchema>, moment: &Moment) -> Result<bool, MysqlError> {
        let Some(before) = &schema.partitioning else { return Ok(false) };
        let mut after = before.as_ref().clone();
        interval::apply(&mut after, schema, moment, true, before.leaves_each() as u64)?;
        if after == **before {
            return Ok(false);
        }
        // FLUSH TABLES WITH READ LOCK and LOCK INSTANCE FOR BACKUP keep it out.
        let _changing = self.database.changing(PATIENCE).await?;
        let table = self.database.table_by_id(schema.id);
        // A table that has changed meanwhile has another definition, which was not looked at.
        let Some(table) = table.filter(|table| table.schema().version == schema.version) else { return Ok(false) };
        let dropped = before.partitions.iter().filter(|of| !after.partitions.iter().any(|now| now.name == of.name));
        let dropped: Vec<&str> = dropped.map(|of| of.name.as_str()).collect();
        let made = after.partitions.len() + dropped.len() - before.partitions.len();
        let new = TableSchema { partitioning: Some(Arc::new(after)), ..schema.as_ref().clone() };
        self.database.change_partitions(&table, new, PATIENCE).await?;
        let (database, name) = (&schema.database, &schema.name);
        tracing::info!(made, dropped = dropped.join(","), "partitions of {database}.{name} made and dropped by time");
        if !dropped.is_empty() {
            let what = format!("{database}.{name}: partitions dropped, whose time was over: {}", dropped.join(", "));
            self.database.note(Level::Info, what);
        }
        Ok(true)
    }
}
