//! How many rows tables have, over all nodes: for the planner, and for people.
//!
//! Each process counts the partitions that it leads. The counts of the others are asked for when somebody wants to know and what is known is older than [`FRESH`]: all tables in one message
//! to each process. Only who says so waits for the answers ([`Database::gather_usage`]); the planner takes what is known, and where a process has told nothing yet, the part that is
//! known stands for the rest: keys are spread evenly.

use super::Cluster;
use super::report::{TableReport, Wanted};
use super::signal::Signal;
use crate::Database;
use crate::node::Node;
use crate::scan::SMALL_TABLE;
use crate::table::TableInfo;
use parking_lot::Mutex;
use rauk_kernel::partition::TableUsage;
use rauk_types::{Member, ProcessId, TableId};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;

/// What others have told is good for so long.
const FRESH: Duration = Duration::from_secs(2);
/// How long a process has to answer.
const PATIENCE: Duration = Duration::from_millis(200);

/// What other processes have told.
#[derive(Default)]
pub struct Statistics(Mutex<State>);

#[derive(Default)]
struct State {
    asked_at: Option<Duration>,
    told: FxHashMap<ProcessId, FxHashMap<TableId, TableUsage>>,
}

fn add(sum: &mut TableUsage, more: &TableUsage) {
    sum.rows += more.rows;
    sum.row_bytes += more.row_bytes;
    sum.hash_bytes += more.hash_bytes;
    sum.ordered_bytes += more.ordered_bytes;
    sum.history_bytes += more.history_bytes;
}

/// `part` partitions have `sum`; what `whole` may have.
fn scaled(sum: TableUsage, part: usize, whole: usize) -> TableUsage {
    let scale = |count: u64| (u128::from(count) * whole as u128 / part as u128) as u64;
    TableUsage {
        rows: scale(sum.rows),
        row_bytes: scale(sum.row_bytes),
        hash_bytes: scale(sum.hash_bytes),
        ordered_bytes: scale(sum.ordered_bytes),
        history_bytes: scale(sum.history_bytes),
    }
}

impl Cluster {
    /// Rows and bytes of a table in the partitions that this process leads.
    pub fn usage_led(&self, node: &Node, table: &TableInfo) -> TableUsage {
        let group = self.group();
        node.usage_in(table, |partition| {
            let state = group.replication_group(self.group_of(partition as u16));
            state.is_some_and(|state| state.primary == Some(self.me))
        })
    }

    /// Of all partitions, as far as is known. Never waits.
    fn usage(&self, node: &Arc<Node>, table: &TableInfo) -> TableUsage {
        if self.is_stale() {
            let node = node.clone();
            self.tasks.spawn_later(async move {
                if let Some(cluster) = node.cluster() {
                    cluster.ask_usage().await;
                }
            });
        }
        let group = self.group();
        let spread = usize::from(node.spread());
        let where_it_is = if table.schema.fully_replicated { spread..spread + 1 } else { 0..spread };
        let whole = where_it_is.len();
        let statistics = self.statistics.0.lock();
        let tells = |member: Member| member == self.me || statistics.told.contains_key(&member.process);
        let states = where_it_is.filter_map(|partition| group.replication_group(self.group_of(partition as u16)));
        let known = states.filter(|state| state.primary.is_some_and(tells)).count();
        if known == 0 {
            // Nobody has told anything: whatever is here.
            return node.usage(table);
        }
        let mut sum = self.usage_led(node, table);
        let told = statistics.told.iter().filter(|(process, _)| group.is_up(**process));
        told.filter_map(|(_, tables)| tables.get(&table.schema.id)).for_each(|more| add(&mut sum, more));
        scaled(sum, known, whole)
    }

    /// Whether it is time to ask; who asks has to.
    fn is_stale(&self) -> bool {
        let now = self.runtime.now();
        let mut state = self.statistics.0.lock();
        let stale = state.asked_at.is_none_or(|at| now.saturating_sub(at) >= FRESH);
        if stale {
            state.asked_at = Some(now);
        }
        stale
    }

    async fn ask_usage(&self) {
        let others = self.processes().into_iter().filter(|member| *member != self.me);
        let ask = |member: Member| async move {
            match self.request(member, Signal::Report { wanted: Wanted::Led }, PATIENCE).await {
                Ok(Signal::Reported { report }) => Some((member.process, report.tables)),
                _ => None,
            }
        };
        let answers = futures::future::join_all(others.map(ask)).await;
        let group = self.group();
        let mut state = self.statistics.0.lock();
        state.told.retain(|process, _| group.is_up(*process));
        let usage = |t: &TableReport| TableUsage {
            rows: t.rows,
            row_bytes: t.row_bytes,
            hash_bytes: t.hash_bytes,
            ordered_bytes: t.ordered_bytes,
            history_bytes: t.history_bytes,
        };
        for (process, tables) in answers.into_iter().flatten() {
            state.told.insert(process, tables.iter().map(|t| (t.table, usage(t))).collect());
        }
    }
}

impl Database {
    /// Rows and bytes of a table, all partitions together, wherever they are. Partitions that are busy this moment are counted as they were lately, those of other nodes as they told lately.
    pub fn table_usage(&self, table: TableId) -> TableUsage {
        let Some(info) = self.node.tables.by_id(table) else { return TableUsage::default() };
        self.node.usage_everywhere(&info)
    }

    /// Asks the other nodes for what [`Database::table_usage`] tells; one that does not answer at once is not waited for.
    pub async fn gather_usage(&self) {
        if let Some(cluster) = self.node.cluster() {
            cluster.statistics.0.lock().asked_at = Some(cluster.runtime.now());
            cluster.ask_usage().await;
        }
    }
}

impl Node {
    /// Of all partitions, as far as is known. Never waits.
    fn usage_everywhere(self: &Arc<Node>, table: &TableInfo) -> TableUsage {
        match self.cluster() {
            _ if table.own.is_some() => table.own.as_ref().map_or_else(TableUsage::default, |rows| rows.usage(table)),
            None => self.usage(table),
            Some(cluster) => cluster.usage(self, table),
        }
    }

    /// Whether tables have so few rows together that bringing them into an order costs nothing that matters.
    pub(crate) fn are_small<'t>(self: &Arc<Node>, tables: impl Iterator<Item = &'t Arc<TableInfo>>) -> bool {
        let mut rows = 0;
        for table in tables {
            rows += self.rows_of(table);
            if rows > SMALL_TABLE {
                return false;
            }
        }
        true
    }

    /// About how many rows a table has. Never waits.
    pub fn rows_of(self: &Arc<Node>, table: &TableInfo) -> u64 {
        self.usage_everywhere(table).rows
    }
}
