//! For programs without an asynchronous runtime: the calling thread waits, and receives for itself while it does.
//!
//! [`wait`] polls the future; what is ready at once, as almost everything is in an embedded database, costs nothing more. A future that waits for an answer has
//! told this module, when it sent its request, by which transporter the answer will come, and the thread takes part in receiving there: a request then needs no change
//! of threads. Answers to other clients in the same future come by those clients' own stand-in threads, and wake this one.

use crate::{Client, Error, Options};
use futures::task::AtomicWaker;
use rauk_transporter::Transporter;
use std::cell::RefCell;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

thread_local! {
    /// Where this thread's last request was sent.
    static TRANSPORTER: RefCell<Weak<Transporter>> = const { RefCell::new(Weak::new()) };
    /// Kept for the next wait.
    static SPARE: RefCell<Option<(Arc<Signal>, Waker)>> = const { RefCell::new(None) };
}

/// This thread has sent something by this transporter.
#[inline]
pub(crate) fn receives_for(transporter: &Weak<Transporter>) {
    TRANSPORTER.with(|current| {
        if !current.borrow().ptr_eq(transporter) {
            current.replace(transporter.clone());
        }
    });
}

/// Says that the future wants to be polled, whatever its thread is doing meanwhile: receiving, or sleeping.
struct Signal {
    woken: AtomicBool,
    receiving: AtomicWaker,
    thread: Thread,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::SeqCst) {
            self.receiving.wake();
            self.thread.unpark();
        }
    }
}

impl Signal {
    fn new() -> (Arc<Signal>, Waker) {
        let thread = std::thread::current();
        let signal = Arc::new(Signal { woken: AtomicBool::new(false), receiving: AtomicWaker::new(), thread });
        (signal.clone(), Waker::from(signal))
    }

    fn take(&self) -> bool {
        self.woken.swap(false, Ordering::SeqCst)
    }
}

/// Runs a future of this API on the calling thread. While it waits, the thread receives from the network for all clients in it: so a request needs
/// no change of threads. (The future itself is polled while the thread does not receive, so that nobody's answers wait for what the program does.)
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    // A wait within a wait has a signal of its own.
    let (signal, waker) = SPARE.take().unwrap_or_else(Signal::new);
    let value = loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            break value;
        }
        match TRANSPORTER.with(|current| current.borrow().upgrade()) {
            Some(transporter) => transporter.receive_until(|cx| {
                if signal.take() {
                    return Poll::Ready(());
                }
                signal.receiving.register(cx.waker());
                if signal.take() { Poll::Ready(()) } else { Poll::Pending }
            }),
            // Waits for something else: a timer, a lock in this process.
            None => {
                while !signal.take() {
                    std::thread::park();
                }
            }
        }
    };
    SPARE.set(Some((signal, waker)));
    value
}

/// Connects as [`Client::connect`] does.
pub fn connect(address: &str, options: Options) -> Result<Client, Error> {
    wait(Client::connect(address, options))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn waits_for_what_has_nothing_to_do_with_the_network() {
        assert_eq!(wait(async { 7 }), 7);
        let start = Instant::now();
        wait(crate::timer::sleep(Duration::from_millis(20)));
        assert!(start.elapsed() >= Duration::from_millis(20));
        let (sender, receiver) = futures::channel::oneshot::channel();
        let thread = std::thread::spawn(move || sender.send(5));
        assert_eq!(wait(receiver), Ok(5));
        thread.join().expect("no panic").expect("received");
    }
}
