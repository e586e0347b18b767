//! In the same process: a request is a call of the database's session, executed by the thread that asks. No frame, no checksum, no other thread.
//!
//! Buffers of requests are used again, so that a plain read allocates its answer and nothing else that grows with it.

use super::{Ask, Effect};
use crate::Error;
use bytes::Bytes;
use rauk_node::native::{Reply, Request, Session};
use rauk_wire::Kind;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buffers larger than this are given back to the allocator.
const KEPT: usize = 64 << 10;

pub(crate) struct Local {
    session: Arc<Session>,
    next: AtomicU64,
}

thread_local! {
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn buffer() -> Vec<u8> {
    SPARE.with(|spare| std::mem::take(&mut *spare.borrow_mut()))
}

/// A request's buffer comes back when nobody has kept a part of it.
fn recycle(payload: Bytes) {
    if let Ok(bytes) = payload.try_into_mut() {
        let mut bytes = Vec::from(bytes);
        if bytes.capacity() <= KEPT {
            bytes.clear();
            SPARE.with(|spare| *spare.borrow_mut() = bytes);
        }
    }
}

impl Local {
    pub fn new(session: Arc<Session>) -> Arc<Local> {
        Arc::new(Local { session, next: AtomicU64::new(1) })
    }

    fn request(&self, ask: Ask, timeout: Duration, build: impl Fn(Vec<u8>) -> Vec<u8>) -> Request {
        Request {
            kind: ask.kind,
            number: self.next.fetch_add(1, Ordering::Relaxed),
            transaction: ask.transaction,
            timestamp: 0,
            deadline: (!timeout.is_zero()).then_some(timeout),
            payload: Bytes::from(build(buffer())),
        }
    }

    /// What can be answered without a wait; `None`: nothing has been done.
    #[inline]
    pub fn try_call(&self, ask: Ask, timeout: Duration, build: impl Fn(Vec<u8>) -> Vec<u8>) -> Option<(Kind, Bytes)> {
        let request = self.request(ask, timeout, build);
        let reply = self.session.try_call(&request, Vec::with_capacity(256));
        recycle(request.payload);
        reply.ok().map(|reply| (reply.kind, Bytes::from(reply.frame)))
    }

    /// See [`super::Line::call`].
    pub async fn call(&self, ask: Ask, timeout: Duration, build: impl Fn(Vec<u8>) -> Vec<u8>) -> (Kind, Bytes) {
        let request = self.request(ask, timeout, build);
        let reply = match self.session.try_call(&request, Vec::with_capacity(256)) {
            Ok(reply) => {
                recycle(request.payload);
                reply
            }
            // Boxed here only, so that the future of what need not wait stays small.
            Err(frame) => Box::pin(self.session.call(request, frame)).await,
        };
        (reply.kind, Bytes::from(reply.frame))
    }

    /// The end of a transaction or scan takes place here and now where that goes; else on a thread of its own, since who drops something must not wait.
    pub fn tell(&self, kind: Kind, transaction: u64, build: impl Fn(Vec<u8>) -> Vec<u8>) {
        let ask = Ask { kind, transaction, effect: Effect::None };
        let request = self.request(ask, Duration::ZERO, build);
        let Err(frame) = self.session.try_call(&request, Vec::new()) else { return };
        let session = self.session.clone();
        let mut call = Box::pin(async move { session.call(request, frame).await });
        let now = call.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        if now.is_pending() {
            let rest = std::thread::Builder::new().name("rauk-client-end".into()).spawn(move || {
                let _: Reply = rauk_node::block_on(call);
            });
            if let Err(error) = rest {
                let error = Error::new(crate::ErrorKind::Busy, 0, error.to_string());
                tracing::warn!(%error, "the end of a transaction waits for the session's end");
            }
        }
    }
}
