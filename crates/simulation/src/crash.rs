//! When and how a life of the program ends.
use crate::disk::SimDisk;
use rand::Rng;
use rand::rngs::SmallRng;
use rauk_log::fault;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;

/// What is set up before a life begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// It ends when the workload does.
    Calm,
    /// The machine stops within the n-th disk operation.
    Operation(u64),
    /// The machine stops at the n-th fault point that is met.
    Point(u64),
    /// The machine stops when this fault point is met the n-th time.
    At(&'static str, u64),
    /// The n-th sync of a file fails.
    FailSync(u64),
    /// The n-th write fails.
    FailWrite(u64),
}

impl Plan {
    /// A random plan; a life of the workload makes about `operations` disk operations.
    pub fn draw(rng: &mut SmallRng, operations: u64) -> Plan {
        let n = rng.random_range(1..=operations);
        match rng.random_range(0..10) {
            0 => Plan::Calm,
            1..=4 => Plan::Operation(n),
            5..=7 => Plan::Point(n),
            8 => Plan::FailSync(n / 4 + 1),
            _ => Plan::FailWrite(n / 4 + 1),
        }
    }
}

thread_local! {
    /// How often each fault point was met in this thread.
    static MET: RefCell<BTreeMap<&'static str, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Fault points met by this thread's simulations so far, with how often.
pub fn points_met() -> BTreeMap<&'static str, u64> {
    MET.with_borrow(Clone::clone)
}

/// A plan at work. Dropping it ends the faults of its fault points.
pub struct Armed {
    _local: fault::Local,
}

pub fn arm(plan: Plan, disk: &SimDisk) -> Armed {
    disk.stop_at(if let Plan::Operation(n) = plan { Some(n) } else { None });
    disk.fail_sync_at(if let Plan::FailSync(n) = plan { Some(n) } else { None });
    disk.fail_write_at(if let Plan::FailWrite(n) = plan { Some(n) } else { None });
    let (at, only) = match plan {
        Plan::Point(n) => (n, None),
        Plan::At(name, n) => (n, Some(name)),
        _ => (0, None),
    };
    let (disk, hits) = (disk.clone(), Cell::new(0));
    let local = fault::Local::new(move |name| {
        MET.with_borrow_mut(|met| *met.entry(name).or_default() += 1);
        if only.is_some_and(|only| only != name) {
            return Ok(());
        }
        hits.set(hits.get() + 1);
        if hits.get() == at {
            disk.stop();
            return Err(io::Error::other(format!("simulated stop at {name}")));
        }
        Ok(())
    });
    Armed { _local: local }
}

/// Completes the end of a life: the power fails, or only the process ends.
pub fn end_life(rng: &mut SmallRng, disk: &SimDisk) {
    if rng.random_bool(0.7) { disk.power_failure() } else { disk.kill() }
}
