//! What the node needs from whatever runs it: time, timers, background tasks, parallel jobs, randomness, and an end.
//!
//! [`threads`] is the one of production; the simulator brings its own.
mod clock;
pub mod threads;
pub mod timer;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub trait Runtime: Send + Sync {
    /// Monotonic time since an arbitrary start, the time that the machine was suspended included: leases are measured
    /// by it.
    fn now(&self) -> Duration;
    fn sleep(&self, duration: Duration) -> BoxFuture<()>;
    /// Runs a background task (checkpoints, collection, log flushing) that may block its thread on disk access.
    fn spawn(&self, name: &'static str, task: BoxFuture<()>);
    /// The same for work that is to leave the processor to what clients wait for, where priorities can say so.
    fn spawn_behind(&self, name: &'static str, task: BoxFuture<()>) {
        self.spawn(name, task);
    }
    /// How many threads can run at the same time.
    fn cores(&self) -> usize;
    /// Runs all jobs, in parallel where there are threads, and returns when they have ended.
    fn run_all(&self, jobs: Vec<Box<dyn FnOnce() + Send>>);
    fn random(&self) -> u64;
    /// Stops the process at once: a broken invariant or a failed sync. In the simulator: crashes the node.
    fn fatal(&self, reason: &str);
}
