//! The scrub: a walk over all stored rows that goes on all the time, and finds memory that has changed by itself.
//!
//! A task of the node walks one partition after the other (`rauk_kernel::partition::digest`), so few rows in each hold
//! that nobody waits for long, and so few holds in a hundred milliseconds that it takes about one hundredth of a core.
//! When all partitions are through it rests for [`crate::database::Config::scrub_rest`], or goes on at once where there
//! is so much that a round takes longer than that.
//!
//! Large values are compared with their hashes outside of the partition: they do not change, and stay as long as they
//! are looked at.
//!
//! What is damaged is counted, and is an error in the log and among the events. In a cluster the replica is replaced by a
//! copy, or the partition takes no more writes ([`crate::member::comparing`]). A node that is alone can only say so.

use crate::database::Database;
use crate::executor::Class;
use crate::member::event_log::Level;
use crate::node::Node;
use rauk_kernel::{Partition, Scrubbed};
use rauk_types::{NodeId, TableId};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

pub const SCRUB_REST: Duration = Duration::from_secs(10);
/// From some holds to the next.
const PAUSE: Duration = Duration::from_millis(100);
/// Rows that are looked at in one hold, and bytes of large values or holds until the next pause.
const ROWS: usize = 32;
const HOLDS: usize = 200;
const VALUE_BYTES: usize = 4 << 20;

/// Walks as long as the node is there.
pub fn start(node: &Arc<Node>) {
    let weak = Arc::downgrade(node);
    node.runtime.spawn("scrub", Box::pin(run(weak)));
}

async fn run(weak: Weak<Node>) {
    let mut partition = 0;
    let mut pause = PAUSE;
    loop {
        let Some(node) = weak.upgrade().filter(|node| node.check_running().is_ok()) else { return };
        let runtime = node.runtime.clone();
        let mut bytes = 0;
        for _ in 0..HOLDS {
            let scrubbed = node.on_partition(partition, Class::Background, |p| p.scrub(ROWS)).await;
            bytes += scrubbed.values.iter().map(|(_, value)| value.len()).sum::<usize>();
            if look(&node, partition, &scrubbed) {
                partition += 1;
            }
            if partition == node.partition_count() {
                partition = 0;
                node.registry.scrub_rounds.fetch_add(1, Ordering::Relaxed);
                pause = node.config.scrub_rest;
                break;
            }
            if bytes > VALUE_BYTES {
                break;
            }
        }
        drop(node);
        runtime.sleep(std::mem::replace(&mut pause, PAUSE)).await;
    }
}

/// Says what a slice of the walk has found; whether it was the last of the partition.
fn look(node: &Arc<Node>, partition: u16, scrubbed: &Scrubbed) -> bool {
    node.registry.scrubbed_rows.fetch_add(scrubbed.rows, Ordering::Relaxed);
    let value = scrubbed.values.iter().find(|(_, value)| !value.is_intact());
    if let Some(table) = scrubbed.damaged.or(value.map(|(table, _)| *table)) {
        on_damage(node, partition, table);
    }
    scrubbed.is_round
}

fn on_damage(node: &Arc<Node>, partition: u16, table: TableId) {
    node.registry.damaged_tables.fetch_add(1, Ordering::Relaxed);
    let name = node.tables.by_id(table).map(|table| table.schema.name.clone()).unwrap_or_default();
    tracing::error!(partition, table = table.0, name, "damaged rows in memory: stored bytes are not what was written");
    let what = format!(
        "partition {partition} has damaged rows of table {name} ({}) in memory: they are not what was written",
        table.0
    );
    let me = node.cluster().map_or(NodeId(1), |cluster| cluster.me().node);
    node.event_log.note(me, Level::Error, what);
    if let Some(cluster) = node.cluster() {
        cluster.on_damage(node, partition, table);
    }
}

impl Database {
    /// Damages memory, for tests of what finds that: flips a bit of the `nth` committed row that this node has of a table in
    /// a partition. Gives whether there is one. `as_written`: as if that had been written.
    #[doc(hidden)]
    pub async fn flip_bit(&self, partition: u16, table: TableId, nth: usize, bit: usize, as_written: bool) -> bool {
        let flip = move |p: &mut Partition| p.flip_bit(table, nth, bit, as_written);
        self.node.on_partition(partition, Class::Background, flip).await
    }
}
