//! Many small tasks on one thread of the runtime: questions of other nodes that have to wait, commits that go on without their client.
//!
//! A task is polled once where it is begun, since most end at once; only what waits goes to the thread. The set is a `FuturesUnordered`, so that a
//! task that is woken costs one poll.

use crate::runtime::{BoxFuture, Runtime};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
pub struct Tasks {
    inbox: Mutex<Inbox>,
}

#[derive(Default)]
struct Inbox {
    new: Vec<BoxFuture<()>>,
    waker: Option<Waker>,
    closed: bool,
}

impl Tasks {
    /// `threads` of the runtime work on the tasks.
    pub fn start(runtime: &dyn Runtime, threads: usize) -> Arc<Tasks> {
        let tasks = Arc::new(Tasks::default());
        for _ in 0..threads {
            let own = tasks.clone();
            runtime.spawn("member", Box::pin(async move { own.run().await }));
        }
        tasks
    }

    /// Begins a task here.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut task: BoxFuture<()> = Box::pin(task);
        if task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return;
        }
        self.hand_over(task);
    }

    /// Leaves a task to the thread: for those that may not run on the caller's stack.
    pub fn spawn_later(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.hand_over(Box::pin(task));
    }

    fn hand_over(&self, task: BoxFuture<()>) {
        let waker = {
            let mut inbox = self.inbox.lock();
            if inbox.closed {
                return;
            }
            inbox.new.push(task);
            inbox.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ends the thread; tasks are dropped.
    pub fn close(&self) {
        let (waker, dropped) = {
            let mut inbox = self.inbox.lock();
            inbox.closed = true;
            (inbox.waker.take(), std::mem::take(&mut inbox.new))
        };
        drop(dropped);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn run(self: Arc<Self>) {
        let mut set = FuturesUnordered::new();
        poll_fn(move |cx| {
            loop {
                let new = {
                    let mut inbox = self.inbox.lock();
                    if inbox.closed {
                        return Poll::Ready(());
                    }
                    inbox.waker = Some(cx.waker().clone());
                    std::mem::take(&mut inbox.new)
                };
                // Polled below, which registers the wakers that their first poll did not.
                let none = new.is_empty();
                set.extend(new);
                while let Poll::Ready(Some(())) = set.poll_next_unpin(cx) {}
                if none {
                    return Poll::Pending;
                }
            }
        })
        .await;
    }
}
