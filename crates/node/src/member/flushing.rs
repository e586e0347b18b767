//! The redo log's durability: whoever has appended says so, somebody flushes, and slots hear how far it is.
//!
//! A client's thread that has appended its own commit sees to the flush itself ([`Flushing::left_to_caller`]), as on a
//! node alone ([`crate::commit::group`]: it flushes while few commit, the log's thread while many do), and goes on with
//! what the flush has made stable: its commit, and its answer. Nobody else is woken for it. For all that others append
//! here one task flushes.
//!
//! Where nobody waits for the disk (durability `replicated`), the log is flushed for cuts at once and for everything
//! else now and then. What follows a decision over several partitions (the outcome, that it is forgotten) is flushed
//! with what comes next, or at the next tick: its client has its answer.
//!
//! While one flush runs, all that is appended gathers for the next: group commit over all partitions of the node.

use super::Cluster;
use super::events::Event;
use crate::commit::group::Target;
use crate::node::Node;
use rauk_log::Lsn;
use std::cell::Cell;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

thread_local! {
    static LEFT: Cell<Left> = const { Cell::new(Left::ToTheTask) };
}

/// Who flushes what a thread appends.
#[derive(Clone, Copy)]
enum Left {
    ToTheTask,
    /// This thread, which runs [`Flushing::left_to_caller`]; so far, if there is something.
    ToTheCaller(Option<Lsn>),
}

#[derive(Default)]
pub struct Flushing {
    wanted: AtomicU64,
    soon: AtomicU64,
    event: Event,
    closed: AtomicBool,
}

impl Flushing {
    pub fn want(&self, lsn: Lsn) {
        self.wanted.fetch_max(lsn.0, Ordering::SeqCst);
        match LEFT.get() {
            Left::ToTheTask => self.event.fire(),
            Left::ToTheCaller(upto) => LEFT.set(Left::ToTheCaller(upto.max(Some(lsn)))),
        }
    }

    /// Somebody wants it on disk, and does not wait: [`Flushing::now_and_then`] sees to it.
    pub fn want_soon(&self, lsn: Lsn) {
        self.soon.fetch_max(lsn.0, Ordering::SeqCst);
    }

    pub fn now_and_then(&self) {
        let soon = self.soon.load(Ordering::SeqCst);
        if soon > self.wanted.load(Ordering::SeqCst) {
            self.want(Lsn(soon));
        }
    }

    /// Runs `f`; what is to be made durable by what this thread does meanwhile is left to the caller.
    pub fn left_to_caller<R>(&self, f: impl FnOnce() -> R) -> (R, Unflushed<'_>) {
        let leave = Leave(LEFT.replace(Left::ToTheCaller(None)));
        let r = f();
        let upto = match LEFT.get() {
            Left::ToTheCaller(upto) => upto,
            Left::ToTheTask => None,
        };
        drop(leave);
        (r, Unflushed { flushing: self, upto })
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.event.fire();
    }
}

/// A flush that is left to a caller. If it goes away before, the task flushes.
pub struct Unflushed<'a> {
    flushing: &'a Flushing,
    upto: Option<Lsn>,
}

impl Unflushed<'_> {
    /// Flushes what is left to the caller, and brings to the slots what that has made durable.
    pub async fn flush(mut self, node: &Node, cluster: &Cluster) {
        let Some(upto) = self.upto else { return };
        // On an error the node stops: the task meets it too.
        if node.group.wait(Target::Position(upto)).await.is_ok() {
            self.upto = None;
            cluster.tasks.here(|| cluster.on_durable(node.log.durable_lsn()));
        }
    }
}

impl Drop for Unflushed<'_> {
    fn drop(&mut self) {
        if self.upto.is_some() {
            self.flushing.event.fire();
        }
    }
}

/// Puts back what was there before, also on a panic.
struct Leave(Left);

impl Drop for Leave {
    fn drop(&mut self) {
        LEFT.set(self.0);
    }
}

impl Cluster {
    pub(super) async fn run_flushing(node: Weak<Node>) {
        loop {
            let Some(strong) = node.upgrade() else { return };
            let Some(cluster) = strong.cluster() else { return };
            let flushing = &cluster.flushing;
            if flushing.closed.load(Ordering::SeqCst) {
                return;
            }
            let number = flushing.event.number();
            let wanted = flushing.wanted.load(Ordering::SeqCst);
            if strong.log.durable_lsn().0 < wanted && strong.group.flush_all().await.is_err() {
                // The node stops: whoever waits for this waits for ever, and is never told what is not so.
                return;
            }
            // Also when nothing was to be flushed: a slot may have noted its record only after it was flushed together with another's.
            cluster.tasks.here(|| cluster.on_durable(strong.log.durable_lsn()));
            flushing.event.after(number).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often the task was woken, and how far it is to flush.
    fn of_the_task(flushing: &Flushing) -> (u64, u64) {
        (flushing.event.number(), flushing.wanted.load(Ordering::SeqCst))
    }

    #[test]
    fn what_is_left_to_a_caller_wakes_nobody_until_the_caller_goes_away() {
        let flushing = Flushing::default();
        flushing.want(Lsn(10));
        assert_eq!(of_the_task(&flushing), (1, 10));
        let ((), unflushed) = flushing.left_to_caller(|| {
            flushing.want(Lsn(30));
            flushing.want(Lsn(20));
        });
        assert_eq!((of_the_task(&flushing), unflushed.upto), ((1, 30), Some(Lsn(30))));
        drop(unflushed);
        assert_eq!(of_the_task(&flushing), (2, 30));
        flushing.want(Lsn(40));
        assert_eq!(of_the_task(&flushing), (3, 40), "the thread leaves nothing to anybody any more");
    }

    #[test]
    fn a_caller_without_anything_to_flush_wakes_nobody() {
        let flushing = Flushing::default();
        let (r, unflushed) = flushing.left_to_caller(|| 7);
        assert_eq!((r, unflushed.upto), (7, None));
        drop(unflushed);
        assert_eq!(of_the_task(&flushing), (0, 0));
    }

    #[test]
    fn what_another_caller_leaves_inside_is_its_own() {
        let flushing = Flushing::default();
        let (inner, outer) = flushing.left_to_caller(|| {
            flushing.want(Lsn(5));
            let ((), inner) = flushing.left_to_caller(|| flushing.want(Lsn(9)));
            inner.upto
        });
        assert_eq!((inner, outer.upto), (Some(Lsn(9)), Some(Lsn(5))));
    }
}
