//! The snapshots in use, so that nothing they need is thrown away.
//!
//! A snapshot registers *before* it settles on its time: it puts the log's time into its shard, and then reads the log's time again,
//! which may only be later. Whoever asks for the oldest reads the log's time first and then the shards. So either he sees the
//! registration, or the snapshot settles on a time not below the one he read.

use crate::member::Cluster;
use crate::node::Node;
use parking_lot::Mutex;
use rauk_types::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

const SHARDS: usize = 16;

pub struct Snapshots {
    shards: [Shard; SHARDS],
    next_shard: AtomicUsize,
}

#[repr(align(64))]
#[derive(Default)]
struct Shard {
    /// Smallest of `times`, or `u64::MAX`.
    min: AtomicU64,
    times: Mutex<Vec<u64>>,
}

/// A registered snapshot. It is given back with [`Snapshots::release`].
#[derive(Debug)]
pub struct Snapshot {
    pub time: Timestamp,
    registered: u64,
    shard: usize,
}

/// A transaction's snapshot.
pub enum Held {
    Here(Snapshot),
    /// Drawn from the cluster's timestamp service. Shared by a transaction and the readers beside it.
    Cluster(Arc<Drawn>),
}

/// Registered until the last of its holders drops it.
pub struct Drawn {
    cluster: Arc<Cluster>,
    time: Timestamp,
}

impl Drawn {
    pub fn new(cluster: Arc<Cluster>, time: Timestamp) -> Drawn {
        Drawn { cluster, time }
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        self.cluster.release_snapshot(self.time);
    }
}

impl Held {
    pub fn time(&self) -> Timestamp {
        match self {
            Held::Here(snapshot) => snapshot.time,
            Held::Cluster(drawn) => drawn.time,
        }
    }

    /// The same snapshot once more.
    pub fn share(&self, node: &Node) -> Held {
        match self {
            Held::Here(snapshot) => Held::Here(node.snapshots.share(snapshot)),
            Held::Cluster(drawn) => Held::Cluster(drawn.clone()),
        }
    }

    pub fn release(self, node: &Node) {
        match self {
            Held::Here(snapshot) => node.snapshots.release(snapshot),
            Held::Cluster(drawn) => drop(drawn),
        }
    }
}

impl Default for Snapshots {
    fn default() -> Self {
        let snapshots = Snapshots { shards: Default::default(), next_shard: AtomicUsize::new(0) };
        snapshots.shards.iter().for_each(|s| s.min.store(u64::MAX, Ordering::Relaxed));
        snapshots
    }
}

impl Snapshots {
    /// A snapshot of now. `last_time` reads the log's time.
    pub fn draw(&self, last_time: impl Fn() -> Timestamp) -> Snapshot {
        let shard = self.next_shard.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let registered = last_time().0;
        {
            let shard = &self.shards[shard];
            let mut times = shard.times.lock();
            times.push(registered);
            if registered < shard.min.load(Ordering::Relaxed) {
                shard.min.store(registered, Ordering::Relaxed);
            }
        }
        fence(Ordering::SeqCst);
        Snapshot { time: last_time(), registered, shard }
    }

    /// The same snapshot once more; both are given back.
    pub fn share(&self, snapshot: &Snapshot) -> Snapshot {
        let Snapshot { time, registered, shard } = *snapshot;
        // What it needs is kept already: the shard's smallest is not above it.
        self.shards[shard].times.lock().push(registered);
        Snapshot { time, registered, shard }
    }

    pub fn release(&self, snapshot: Snapshot) {
        let shard = &self.shards[snapshot.shard];
        let mut times = shard.times.lock();
        let at = times.iter().position(|&t| t == snapshot.registered).expect("it was registered");
        times.swap_remove(at);
        if snapshot.registered == shard.min.load(Ordering::Relaxed) {
            shard.min.store(times.iter().copied().min().unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// No snapshot older than this is or will be in use.
    pub fn oldest(&self, last_time: impl Fn() -> Timestamp) -> Timestamp {
        let now = last_time();
        fence(Ordering::SeqCst);
        let oldest = self.shards.iter().map(|s| s.min.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX);
        Timestamp(oldest.min(now.0))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.shards.iter().map(|s| s.times.lock().len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_oldest_counts() {
        let snapshots = Snapshots::default();
        assert_eq!(snapshots.oldest(|| Timestamp(5)), Timestamp(5));
        let a = snapshots.draw(|| Timestamp(5));
        let b = snapshots.draw(|| Timestamp(9));
        assert_eq!(snapshots.oldest(|| Timestamp(12)), Timestamp(5));
        snapshots.release(a);
        assert_eq!(snapshots.oldest(|| Timestamp(12)), Timestamp(9));
        assert_eq!(snapshots.count(), 1);
        let shared = snapshots.share(&b);
        snapshots.release(b);
        assert_eq!((shared.time, snapshots.oldest(|| Timestamp(12))), (Timestamp(9), Timestamp(9)));
        snapshots.release(shared);
        assert_eq!(snapshots.oldest(|| Timestamp(12)), Timestamp(12));
    }

    /// While time goes on, nobody draws a snapshot below what was called the oldest before.
    #[test]
    fn no_snapshot_is_drawn_below_the_oldest() {
        let snapshots = Snapshots::default();
        let clock = AtomicU64::new(1);
        let oldest = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let now = || Timestamp(clock.load(Ordering::Acquire));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..200_000 {
                    clock.fetch_add(1, Ordering::AcqRel);
                    oldest.fetch_max(snapshots.oldest(now).0, Ordering::SeqCst);
                }
                stop.store(true, Ordering::Relaxed);
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let before = oldest.load(Ordering::SeqCst);
                        let s = snapshots.draw(now);
                        assert!(s.time.0 >= before);
                        for _ in 0..3 {
                            assert!(oldest.load(Ordering::SeqCst) <= s.time.0);
                        }
                        snapshots.release(s);
                    }
                });
            }
        });
    }
}
