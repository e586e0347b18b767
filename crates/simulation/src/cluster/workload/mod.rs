//! What clients do on every node that takes them: three workloads made for a cluster, and those of a single node, which are the same code.
//!
//! | workload | what it does | who judges |
//! |---|---|---|
//! | [`bands`] | one transaction writes a value into rows of several partitions; others read them all | `check::{acknowledged, atomic, answered, recent}` |
//! | [`cells`] | single rows are read and written, in every way that there is | `check::linearizable` |
//! | [`crate::node::lists`] | list-append transactions at all isolation levels | `check::lists` |
//! | [`crate::node::bank`] | transfers with a ledger; audits in one snapshot | the bank |
//! | [`crate::node::entries`] | rows come and go under a unique index | the entries, `check::{unique, indexes}` |
//! | [`crate::node::families`] | parents and children under foreign keys | the families themselves |
//! | [`ballast`] | rows that nobody changes, for copies to be long | all are there in the end |
//! | [`schemas`] | tables, and users' partitioned tables, are created, changed, renamed, emptied, dropped; rows in them are written meanwhile | `check::{definitions, lineage, remains}` |
//!
//! A client is a task of the process that it is connected to, and ends with it: whatever it had asked for has an unknown outcome then. Temporary errors are noted, and it goes on.
pub mod ballast;
pub mod bands;
pub mod cells;
pub mod schemas;

#[cfg(test)]
mod tests;

use super::consensus::SimConsensus;
use super::record::Bands;
use crate::clock::SimClock;
use crate::executor::Executor;
use crate::node::bank::{self, Transfers};
use crate::node::client::Client;
use crate::node::entries::{self, Owners};
use crate::node::families;
use crate::node::history::History;
use crate::node::lists;
use parking_lot::Mutex;
use rand::Rng;
use rauk_node::runtime::Runtime;
use rauk_node::{Database, NodeError};
use rauk_types::TableSchema;
use std::sync::Arc;
use std::time::Duration;

/// What all clients of a run share.
#[derive(Clone)]
pub struct Shared {
    pub executor: Executor,
    /// In simulated time: clients begin nothing after that.
    pub until: Arc<Mutex<Duration>>,
    pub bands: Arc<Mutex<Bands>>,
    pub cells: Arc<Mutex<cells::Cells>>,
    pub history: Arc<Mutex<History>>,
    pub transfers: Arc<Mutex<Transfers>>,
    pub owners: Owners,
    pub schemas: Arc<Mutex<schemas::record::Schemas>>,
    /// A node that is alone has none.
    consensus: Option<SimConsensus>,
    next_owner: Arc<Mutex<i64>>,
}

impl Shared {
    pub fn new(executor: Executor, clock: &SimClock, consensus: Option<SimConsensus>) -> Shared {
        let (bands, history) = (Bands::new(clock), History::new(clock));
        Shared {
            executor,
            until: Arc::default(),
            bands: Arc::new(Mutex::new(bands)),
            cells: Arc::default(),
            history: Arc::new(Mutex::new(history)),
            transfers: Arc::default(),
            owners: Arc::default(),
            schemas: Arc::default(),
            consensus,
            next_owner: Arc::default(),
        }
    }

    pub fn is_over(&self) -> bool {
        self.executor.now() >= *self.until.lock()
    }

    /// Of the newest command of the manage group, whoever has heard of it.
    pub fn group_index(&self) -> u64 {
        self.consensus.as_ref().map_or(0, |consensus| consensus.group().index)
    }

    fn owner(&self) -> i64 {
        let mut next = self.next_owner.lock();
        *next += 1;
        *next
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bands,
    Cells,
    Keys,
    Lists,
    Bank,
    Entries,
    Families,
    Definitions,
    Divided,
    Pairs,
}

/// The tables of all workloads.
pub fn tables() -> Vec<TableSchema> {
    vec![
        bands::schema(),
        cells::schema(),
        lists::schema(),
        bank::accounts(),
        bank::ledger(),
        entries::schema(),
        ballast::schema(),
    ]
}

/// Fills them with what must be there in the beginning. May be called again when it has failed.
pub async fn prepare(db: &Database, ballast: u32) -> Result<(), NodeError> {
    ballast::prepare(db, ballast).await?;
    bands::prepare(db).await?;
    cells::prepare(db).await?;
    bank::prepare(db).await
}

/// One client, until the time is over.
pub async fn run(kind: Kind, mut client: Client, shared: Shared) {
    while !shared.is_over() {
        let session = client.another();
        match kind {
            Kind::Bands => bands::run(session, &shared, 3).await,
            Kind::Cells => cells::run(session, &shared, 5).await,
            Kind::Keys => cells::run_keys(session, &shared, 10).await,
            Kind::Lists => lists::run(session, shared.history.clone(), 3).await,
            Kind::Bank => bank::run(session, shared.transfers.clone(), 3).await,
            // It ends when it does not know what its rows are: then they stay as they are.
            Kind::Entries => entries::run(session, shared.owner(), shared.owners.clone(), 20).await,
            Kind::Families => families::run(session, 3).await,
            Kind::Definitions => schemas::change(session, &shared, 5, false).await,
            Kind::Divided => schemas::change(session, &shared, 5, true).await,
            Kind::Pairs => schemas::rows(session, &shared, 40).await,
        }
        // Time to think: what goes wrong matters more than how much is done meanwhile.
        let think = Duration::from_millis(client.rng.random_range(5..80));
        client.runtime.sleep(think).await;
    }
}
