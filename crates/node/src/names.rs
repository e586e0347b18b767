//! Locks on names (GET_LOCK), for the whole cluster.
//!
//! A name belongs to a partition, as a key of a table would ([`Names::table`], which is in no catalog), and is locked
//! there by the queues of row locks (`rauk_kernel::partition::names`). The locks of a session are held by one transaction,
//! which never writes and never commits ([`NameLocks`]): so waits, deadlocks over nodes, sessions of other nodes, and the
//! end of all locks with their process are what they are for rows.
//!
//! **Never twice.** Locks live in the memory of their partition's primary and end with its view, while their holder may
//! not know that yet. Two rules keep a second one from getting the lock meanwhile:
//!
//! * A holder's process looks every [`LOOK`] whether the partitions of its names are in the views in which it got them,
//!   and whether it has had its lease within [`CUT_OFF`]. Where not, the locks count as lost, and the session is told
//!   at once by [`OnLost`] (which ends its connection).
//! * A primary gives no name away before [`SETTLING`] has passed since it heard of its view. Within a lease of that moment
//!   every process has heard of the view as well or is without a lease: so by then all who held names have been told.
//!
//! A process that stands still (SIGSTOP, a paused machine) for longer than that finds itself without a lease when it goes
//! on, and tells its sessions then: what a session does in the moment before is for nobody to prevent.

use crate::database::Database;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::operation::{Done, Key, NameAct, Op};
use crate::table::TableInfo;
use crate::transaction::{Interrupt, Isolation, Transaction, TxnOptions};
use parking_lot::Mutex;
use rauk_kernel::{NAMES, Verdict};
use rauk_types::{DataType, PartitionId, TxnId, Value, View};
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// Between looks at the partitions of held names.
const LOOK: Duration = Duration::from_millis(50);
/// A process that has been without a lease for so long has lost its names.
const CUT_OFF: Duration = Duration::from_secs(1);
/// A primary gives names away when it has heard of its view so long ago: above a lease, [`CUT_OFF`] and two looks.
const SETTLING: Duration = Duration::from_secs(2);
/// The longest single wait; who would wait longer waits again.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Bytes of a name.
const MOST_BYTES: u32 = 256;

/// Called once, from any thread, when the locks of a session are lost.
pub type OnLost = Arc<dyn Fn() + Send + Sync>;

/// What a node knows of names.
#[derive(Default)]
pub struct Names {
    table: OnceLock<Arc<TableInfo>>,
    /// Of each partition the newest view that was heard of, and when.
    views: Mutex<FxHashMap<u16, (View, Duration)>>,
    /// Who holds names from here in partitions of the cluster.
    holders: Mutex<FxHashMap<TxnId, Holder>>,
}

struct Holder {
    places: Vec<(u16, View)>,
    on_lost: OnLost,
}

impl Names {
    /// The table that names would be keys of.
    pub fn table(&self) -> &Arc<TableInfo> {
        self.table.get_or_init(|| TableInfo::without_rows(NAMES, "user-level locks", DataType::varbinary(MOST_BYTES)))
    }

    /// A partition is in this view from now on.
    pub fn on_view(&self, partition: PartitionId, view: View, now: Duration) {
        self.views.lock().insert(partition.0, (view, now));
    }

    /// Whether all who held names in views before this one have been told.
    pub fn is_settled(&self, partition: u16, view: View, now: Duration) -> bool {
        let mut views = self.views.lock();
        let (known, since) = views.entry(partition).or_insert((view, now));
        *known == view && now >= *since + SETTLING
    }

    fn watch(&self, txn: TxnId, places: Vec<(u16, View)>, on_lost: &OnLost) {
        self.holders.lock().insert(txn, Holder { places, on_lost: on_lost.clone() });
    }

    fn forget(&self, txn: TxnId) {
        self.holders.lock().remove(&txn);
    }
}

/// Looks after held names while the node is a member of a cluster; ends with the node.
pub fn start(node: &Arc<Node>) {
    let weak = Arc::downgrade(node);
    node.runtime.spawn("names", Box::pin(look_after(weak)));
}

async fn look_after(node: Weak<Node>) {
    let mut had_lease = Duration::ZERO;
    loop {
        let Some(sleep) = node.upgrade().map(|node| node.runtime.sleep(LOOK)) else { return };
        sleep.await;
        let Some(node) = node.upgrade().filter(|node| node.check_running().is_ok()) else { return };
        let (Some(cluster), now) = (node.cluster(), node.runtime.now()) else { return };
        if cluster.has_lease() {
            had_lease = now;
        }
        let cut_off = now.saturating_sub(had_lease) >= CUT_OFF || cluster.expelled();
        let mut holders = node.names.holders.lock();
        let is_there = |(partition, view): &(u16, View)| cluster.place(*partition).is_some_and(|p| p.view == *view);
        let lost: Vec<TxnId> = holders
            .iter()
            .filter(|(_, holder)| cut_off || !holder.places.iter().all(is_there))
            .map(|(txn, _)| *txn)
            .collect();
        let lost: Vec<Holder> = lost.into_iter().filter_map(|txn| holders.remove(&txn)).collect();
        drop(holders);
        for holder in lost {
            tracing::warn!("named locks lost with the primary of their partition: their connection is ended");
            (holder.on_lost)();
        }
    }
}

/// The names that a session has locked. Dropped, it gives all of them back.
pub struct NameLocks {
    txn: Transaction,
    owner: u64,
    on_lost: OnLost,
}

impl NameLocks {
    /// Locks a name, which the session may have locked before: the caller counts. Waits as long as `patience` says (`None`: for
    /// ever); `false`: in vain. Deadlocks among names are [`NodeError::NameDeadlock`], and leave all locks as they are.
    pub async fn take(&mut self, name: &str, patience: Option<Duration>) -> Result<bool, NodeError> {
        let act = if patience == Some(Duration::ZERO) { NameAct::TryTake } else { NameAct::Take };
        self.txn.set_lock_wait_timeout(patience.unwrap_or(LONGEST).min(LONGEST));
        let begun = self.txn.node.runtime.now();
        let result = loop {
            let result = self.txn.on_name(name, self.owner, act).await;
            let waited = self.txn.node.runtime.now().saturating_sub(begun);
            let goes_on = patience.is_none_or(|patience| patience > LONGEST && waited < patience);
            if !(goes_on && matches!(result, Err(NodeError::LockTimeout))) {
                break result;
            }
        };
        match result {
            Ok(_) => {
                self.watch();
                Ok(true)
            }
            Err(NodeError::LockTimeout | NodeError::NoWait) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives one name back.
    pub async fn give(&mut self, name: &str) -> Result<(), NodeError> {
        self.txn.on_name(name, self.owner, NameAct::Give).await.map(drop)
    }

    fn watch(&self) {
        if let (Some(id), Some(places)) = (self.txn.id(), self.txn.places()) {
            self.txn.node.names.watch(id, places, &self.on_lost);
        }
    }
}

impl Drop for NameLocks {
    fn drop(&mut self) {
        if let Some(id) = self.txn.id() {
            self.txn.node.names.forget(id);
        }
    }
}

impl Transaction {
    async fn on_name(&mut self, name: &str, owner: u64, act: NameAct) -> Result<Done, NodeError> {
        self.check_running()?;
        let node = self.node.clone();
        let table = node.names.table();
        let mut key = Vec::new();
        table.primary.encode_values(&[Value::Bytes(name.as_bytes().to_vec())], &mut key);
        let key = Key::of(&key);
        let partition = node.partition_of(table.route.bucket_of_key(key.bytes, key.hash));
        let mut op = Op::Name { key, owner, act };
        if op.touches() {
            self.ensure_txn();
            self.touch(table, partition);
        }
        let view = self.newest_view(0);
        self.call(table, partition, view, &mut op, &mut |_| Verdict::Keep).await
    }
}

impl Database {
    /// For a session that locks names. `owner` is what others are told of who has a lock.
    pub fn name_locks(&self, owner: u64, interrupt: Arc<Interrupt>, on_lost: OnLost) -> NameLocks {
        let options = TxnOptions { isolation: Isolation::ReadCommitted, interrupt, ..TxnOptions::default() };
        NameLocks { txn: self.begin(options), owner, on_lost }
    }

    /// The owner of whoever has locked a name.
    pub async fn name_owner(&self, name: &str, interrupt: Arc<Interrupt>) -> Result<Option<u64>, NodeError> {
        let options = TxnOptions { isolation: Isolation::ReadCommitted, interrupt, ..TxnOptions::default() };
        match self.begin(options).on_name(name, 0, NameAct::Look).await? {
            Done::Owner(owner) => Ok(owner),
            done => unreachable!("a look at a name gives its owner, not {done:?}"),
        }
    }
}
