//! Lists of the row locks of this node's partitions, for people.
//!
//! A partition is held for [`SLICE`] places of a transaction's lists at a time, and other work of the thread goes on in
//! between. The caller bounds the whole list.

use crate::commit::group::yield_once;
use crate::database::Database;
use crate::executor::Class;
use rauk_kernel::{HeldLock, HeldOn};
use rauk_types::{PartitionId, TxnId};
use rustc_hash::FxHashSet;

/// Places that are looked at in one hold of a partition.
const SLICE: usize = 256;

/// A lock that a transaction of this or another node has on this one.
#[derive(Clone, Debug, PartialEq)]
pub struct LockInfo {
    pub txn: TxnId,
    pub partition: PartitionId,
    pub lock: HeldLock,
}

impl Database {
    /// Locks of rows and ranges, held ones and those that are waited for: at most `most`, by partition and transaction.
    pub async fn held_locks(&self, most: usize) -> Vec<LockInfo> {
        let node = &self.node;
        let mut all: Vec<LockInfo> = Vec::new();
        for number in 0..node.partition_count() {
            let lockers = node.on_partition(number, Class::Background, |p| p.lockers()).await;
            for txn in lockers {
                let mut seen = FxHashSet::default();
                let mut next = Some(0);
                while let Some(from) = next.filter(|_| all.len() < most) {
                    let mut some = Vec::new();
                    next = node
                        .on_partition(number, Class::Background, |p| p.list_locks(txn, from, SLICE, &mut some))
                        .await;
                    some.retain(|lock| match lock.what {
                        HeldOn::Row { row, .. } => seen.insert((lock.table, row)),
                        HeldOn::Ranges { .. } => true,
                    });
                    some.truncate(most - all.len());
                    let partition = PartitionId(number);
                    all.extend(some.into_iter().map(|lock| LockInfo { txn, partition, lock }));
                    yield_once().await;
                }
            }
        }
        all
    }
}
