//! The statistics of all tables, and who brings them up to date.
//!
//! The planner asks for a table's statistics when it plans a statement over it, and a plan from the cache every few hundred runs. When there are none, or the table has
//! changed by more than a tenth since, the table is noted, and a background task samples it: one table at a time, at most
//! [`LONGEST`], each table at most every [`PAUSE`]. Tables of less than [`LEAST_ROWS`] rows are not sampled by themselves:
//! no plan of theirs is dear. ANALYZE TABLE samples at once. New statistics end the life of the cached plans.
//!
//! Histograms are made by ANALYZE TABLE … UPDATE HISTOGRAM only, and stay until they are dropped or the column is changed: they
//! belong to the numbers of table and column, so that renaming keeps them. Nothing of it is stored: after a start, and on each node of a cluster, statistics are gathered again.

use super::engine::Engine;
use crate::exec::{Limits, Sampled, Values, sample};
use crate::histogram::{Histogram, Made};
use crate::statistics::TableStatistics;
use parking_lot::Mutex;
use rauk_node::{Isolation, Runtime, TableHandle, TxnOptions};
use rauk_types::{ColumnId, MysqlError, TableId};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Rows from which on a table is sampled by itself.
const LEAST_ROWS: u64 = 1000;
/// How long one sample may take.
const LONGEST: Duration = Duration::from_secs(2);
/// Between two samples of one table.
const PAUSE: Duration = Duration::from_secs(10);
/// Tables that wait to be sampled.
const MOST_WAITING: usize = 256;

#[derive(Default)]
pub(crate) struct Statistics(Mutex<State>);

#[derive(Default)]
struct State {
    known: FxHashMap<TableId, Known>,
    waiting: VecDeque<TableId>,
    running: bool,
}

struct Known {
    statistics: Arc<TableStatistics>,
    at: Duration,
}

impl Statistics {
    /// What is known of a table.
    pub fn of(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        self.0.lock().known.get(&table).map(|known| known.statistics.clone())
    }

    /// Keeps what a sample has found, and the histograms that there are.
    fn put(&self, table: TableId, mut statistics: TableStatistics, at: Duration) {
        let mut state = self.0.lock();
        if let Some(known) = state.known.get(&table) {
            statistics.histograms.clone_from(&known.statistics.histograms);
        }
        state.known.insert(table, Known { statistics: Arc::new(statistics), at });
    }

    /// Keeps new histograms, and drops others, of a table that has statistics; gives the columns that had one.
    pub fn change_histograms(&self, table: TableId, new: Vec<Histogram>, dropped: &[ColumnId]) -> Vec<ColumnId> {
        let mut state = self.0.lock();
        let Some(known) = state.known.get_mut(&table) else { return vec![] };
        let statistics = Arc::make_mut(&mut known.statistics);
        let goes = |of: &Arc<Histogram>| dropped.contains(&of.column) || new.iter().any(|new| new.column == of.column);
        let gone = statistics.histograms.extract_if(.., |of| goes(of)).map(|of| of.column).collect();
        statistics.histograms.extend(new.into_iter().map(Arc::new));
        gone
    }

    /// Forgets tables that are gone.
    fn clean(&self, exists: impl Fn(TableId) -> bool) {
        self.0.lock().known.retain(|table, _| exists(*table));
    }
}

impl Engine {
    /// The statistics for a plan; when they are missing or old, the table will be sampled.
    pub(crate) fn statistics_for_plan(self: &Arc<Self>, table: &TableHandle) -> Option<Arc<TableStatistics>> {
        if table.is_temporary() {
            return None;
        }
        let id = table.schema().id;
        let rows = self.database.estimate_rows(table);
        let mut state = self.statistics.0.lock();
        let known = state.known.get(&id);
        let found = known.map(|known| known.statistics.clone());
        let now = self.runtime.now();
        if is_due(known, rows, now) && state.waiting.len() < MOST_WAITING && !state.waiting.contains(&id) {
            state.waiting.push_back(id);
            if !std::mem::replace(&mut state.running, true) {
                drop(state);
                let engine = Arc::downgrade(self);
                self.runtime.spawn("statistics", Box::pin(work(engine)));
            }
        }
        found
    }

    /// Samples a table and keeps what was found; gives the part of the rows that was looked at.
    pub(crate) async fn gather_statistics(
        &self,
        table: &TableHandle,
        transaction: &mut rauk_node::Transaction,
        limits: Limits<'_>,
        values: &mut [Values],
    ) -> Result<f64, MysqlError> {
        transaction.use_table(table).await?;
        let Sampled { statistics, rate } = sample(table, limits, values, transaction).await?;
        self.statistics.put(table.schema().id, statistics, self.runtime.now());
        self.plans.clear();
        Ok(rate)
    }

    /// Makes histograms of columns, by their positions.
    pub(crate) async fn make_histograms(
        &self,
        table: &TableHandle,
        transaction: &mut rauk_node::Transaction,
        limits: Limits<'_>,
        columns: &[usize],
        made: Made,
    ) -> Result<(), MysqlError> {
        let mut values: Vec<Values> = columns.iter().map(|&at| Values::new(table.schema(), at)).collect();
        let sampling_rate = self.gather_statistics(table, transaction, limits, &mut values).await?;
        let made = Made { sampling_rate, ..made };
        let new = values.into_iter().map(|of| of.histogram(made)).collect();
        self.statistics.change_histograms(table.schema().id, new, &[]);
        self.plans.clear();
        Ok(())
    }

    async fn sample_in_background(&self, table: TableId) {
        let Some(table) = self.database.table_by_id(table) else { return };
        let end = self.runtime.now() + LONGEST;
        let runtime: &Arc<dyn Runtime> = &self.runtime;
        let is_over = move || runtime.now() >= end;
        let mut transaction = self.database.begin(TxnOptions {
            isolation: Isolation::ReadCommitted,
            read_only: true,
            autocommit: true,
            ..TxnOptions::default()
        });
        let rows = self.database.estimate_rows(&table);
        let clustered = self.database.member().is_some();
        let limits = Limits { rows, clustered, is_over: &is_over, context: None };
        if let Err(error) = self.gather_statistics(&table, &mut transaction, limits, &mut []).await {
            tracing::debug!(table = table.schema().name, %error, "statistics not gathered");
        }
        transaction.rollback();
    }
}

/// Whether a table of `rows` rows should be sampled.
fn is_due(known: Option<&Known>, rows: u64, now: Duration) -> bool {
    rows >= LEAST_ROWS && known.is_none_or(|known| known.statistics.is_old(rows) && now >= known.at + PAUSE)
}

async fn work(engine: Weak<Engine>) {
    loop {
        let Some(engine) = engine.upgrade() else { return };
        let next = {
            let mut state = engine.statistics.0.lock();
            let next = state.waiting.front().copied();
            state.running = next.is_some();
            next
        };
        let Some(table) = next else { return };
        engine.sample_in_background(table).await;
        engine.statistics.clean(|table| engine.database.table_by_id(table).is_some());
        // It waits until here, so that it is not noted again meanwhile.
        engine.statistics.0.lock().waiting.retain(|of| *of != table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_due_when_it_has_changed_much_and_not_at_once_again() {
        let at = Duration::from_secs(100);
        let of = |rows| Known { statistics: Arc::new(TableStatistics { rows, ..TableStatistics::default() }), at };
        assert!(!is_due(None, LEAST_ROWS - 1, at) && is_due(None, LEAST_ROWS, at));
        for (then, rows, due) in
            [(10_000, 10_500, false), (10_000, 12_000, true), (10_000, 5000, true), (10_000, 10, false)]
        {
            assert!(!is_due(Some(&of(then)), rows, at + PAUSE - Duration::from_millis(1)), "{then} {rows}");
            assert_eq!(is_due(Some(&of(then)), rows, at + PAUSE), due, "{then} {rows}");
        }
    }
}
