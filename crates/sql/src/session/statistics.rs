//! The statistics of all tables, and who brings them up to date.
//!
//! The planner asks for a table's statistics when it plans a statement over it, and a plan from the cache every few hundred runs. When there are none, or the table has
//! changed by more than a tenth since, the table is noted, and a background task samples it: one table at a time, at most
//! [`LONGEST`], each table at most every [`PAUSE`]. Tables of less than [`LEAST_ROWS`] rows are not sampled by themselves:
//! no plan of theirs is dear. ANALYZE TABLE samples at once. New statistics end the life of the cached plans.
//!
//! Samples are not stored: after a start, and on each node of a cluster, they are taken again. Histograms are made by ANALYZE TABLE … UPDATE HISTOGRAM
//! only, and are the catalog's: the same on all nodes, until they are dropped or the column is changed. Whoever asks for a table's statistics looks whether
//! the catalog has others of it than were read before; then they are read, and the cached plans go.

use super::engine::Engine;
use crate::exec::{Limits, Sampled, Values, sample};
use crate::histogram::{Histogram, Made};
use crate::statistics::TableStatistics;
use parking_lot::Mutex;
use rauk_node::{Isolation, Runtime, TableHandle, TableHistograms, TxnOptions};
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
    /// When the table was sampled; `None`: there are histograms only.
    at: Option<Duration>,
    /// The catalog's text of its histograms.
    stored: Option<Arc<TableHistograms>>,
}

impl Statistics {
    /// Keeps what a sample has found, and the histograms that there are.
    fn put(&self, table: TableId, mut statistics: TableStatistics, at: Duration) {
        let mut state = self.0.lock();
        let mut stored = None;
        if let Some(known) = state.known.remove(&table) {
            statistics.histograms.clone_from(&known.statistics.histograms);
            stored = known.stored;
        }
        state.known.insert(table, Known { statistics: Arc::new(statistics), at: Some(at), stored });
    }

    /// Forgets tables that are gone.
    fn clean(&self, exists: impl Fn(TableId) -> bool) {
        self.0.lock().known.retain(|table, _| exists(*table));
    }
}

impl State {
    /// Reads the catalog's histograms of a table of `rows` rows if they are others than before; whether they are.
    fn follow(&mut self, table: TableId, stored: Option<Arc<TableHistograms>>, rows: u64) -> bool {
        let same = |known: &Option<Arc<TableHistograms>>| match (known, &stored) {
            (Some(known), Some(stored)) => Arc::ptr_eq(known, stored) || known == stored,
            (known, stored) => known.is_none() && stored.is_none(),
        };
        match self.known.get_mut(&table) {
            None if stored.is_none() => return false,
            Some(known) if same(&known.stored) => return false,
            Some(known) => {
                Arc::make_mut(&mut known.statistics).histograms = read(table, stored.as_deref());
                known.stored = stored;
            }
            None => {
                let histograms = read(table, stored.as_deref());
                let statistics = Arc::new(TableStatistics { rows, histograms, ..TableStatistics::default() });
                self.known.insert(table, Known { statistics, at: None, stored });
            }
        }
        true
    }
}

/// Histograms from their text. One that cannot be read counts as none: it says nothing about what a query gives.
fn read(table: TableId, stored: Option<&TableHistograms>) -> Vec<Arc<Histogram>> {
    let one = |(column, text): (&ColumnId, &Arc<str>)| match Histogram::from_text(*column, text) {
        Ok(histogram) => Some(Arc::new(histogram)),
        Err(error) => {
            tracing::warn!(table = table.0, column = column.0, error, "histogram not readable");
            None
        }
    };
    stored.into_iter().flatten().filter_map(one).collect()
}

impl Engine {
    /// What is known of a table.
    pub(crate) fn known_statistics(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        self.follow_histograms(table, self.database.table_usage(table).rows);
        self.statistics.0.lock().known.get(&table).map(|known| known.statistics.clone())
    }

    fn follow_histograms(&self, table: TableId, rows: u64) {
        let stored = self.database.histograms(table);
        if self.statistics.0.lock().follow(table, stored, rows) {
            self.plans.clear();
        }
    }

    /// The statistics for a plan; when they are missing or old, the table will be sampled.
    pub(crate) fn statistics_for_plan(self: &Arc<Self>, table: &TableHandle) -> Option<Arc<TableStatistics>> {
        if table.is_temporary() {
            return None;
        }
        let id = table.schema().id;
        let rows = self.database.estimate_rows(table);
        self.follow_histograms(id, rows);
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
        // A command each: none is long.
        for of in values {
            let histogram = of.histogram(made);
            self.change_histograms(table, vec![(histogram.column, Some(histogram.to_text().into()))]).await?;
        }
        Ok(())
    }

    async fn change_histograms(
        &self,
        table: &TableHandle,
        changes: Vec<(ColumnId, Option<Arc<str>>)>,
    ) -> Result<(), MysqlError> {
        let id = table.schema().id;
        self.database.change_histograms(id, changes).await?;
        self.follow_histograms(id, self.database.table_usage(id).rows);
        Ok(())
    }

    /// Takes histograms of columns away; gives the columns that had one.
    pub(crate) async fn drop_histograms(
        &self,
        table: &TableHandle,
        columns: &[ColumnId],
    ) -> Result<Vec<ColumnId>, MysqlError> {
        let Some(stored) = self.database.histograms(table.schema().id) else { return Ok(vec![]) };
        let gone: Vec<ColumnId> = columns.iter().filter(|column| stored.contains_key(column)).copied().collect();
        if !gone.is_empty() {
            self.change_histograms(table, gone.iter().map(|column| (*column, None)).collect()).await?;
        }
        Ok(gone)
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
            // Who has locked the table is not waited for long.
            metadata_wait: Some(LONGEST),
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
    let is_due = |known: &Known| known.at.is_none_or(|at| known.statistics.is_old(rows) && now >= at + PAUSE);
    rows >= LEAST_ROWS && known.is_none_or(is_due)
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
        let statistics = |rows| Arc::new(TableStatistics { rows, ..TableStatistics::default() });
        let of = |rows| Known { statistics: statistics(rows), at: Some(at), stored: None };
        let unsampled = Known { at: None, ..of(LEAST_ROWS) };
        assert!(is_due(Some(&unsampled), LEAST_ROWS, at) && !is_due(Some(&unsampled), LEAST_ROWS - 1, at));
        assert!(!is_due(None, LEAST_ROWS - 1, at) && is_due(None, LEAST_ROWS, at));
        for (then, rows, due) in
            [(10_000, 10_500, false), (10_000, 12_000, true), (10_000, 5000, true), (10_000, 10, false)]
        {
            assert!(!is_due(Some(&of(then)), rows, at + PAUSE - Duration::from_millis(1)), "{then} {rows}");
            assert_eq!(is_due(Some(&of(then)), rows, at + PAUSE), due, "{then} {rows}");
        }
    }
}
