//! Statements of a cluster's nodes, on threads in one process: transactions, calls that go with their commits, DDL.

#[allow(dead_code)]
#[path = "../cluster/pairs.rs"]
mod pairs;
#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code)]
#[path = "../cluster/world.rs"]
mod world;

mod calls;
mod ddl;
mod parallel_ddl;
mod transactions;

use parking_lot::{Mutex, MutexGuard};

/// One cluster at a time: leases are short, nodes that get no time to run are taken for dead, and locks die with them.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock()
}
