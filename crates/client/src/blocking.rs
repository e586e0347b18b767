//! For programs without an asynchronous runtime: the calling thread waits, and receives for itself while it does.
//!
//! [`wait`] polls the future; what is ready at once, as almost everything is in an embedded database, costs nothing more. A future that waits for an answer has
//! told this module, when it sent its request, by which transporter the answer will come, and the thread takes part in receiving there: a request then needs no change
//! of threads. Answers to other clients in the same future come by those clients' own stand-in threads, and wake this one.

use crate::{Client, Error, Options};
use rauk_transporter::Transporter;
use std::cell::RefCell;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

thread_local! {
    /// Where this thread's last request was sent.
    static TRANSPORTER: RefCell<Weak<Transporter>> = const { RefCell::new(Weak::new()) };
    static WAKER: Waker = Waker::from(Arc::new(Unpark(std::thread::current())));
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

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future of this API on the calling thread. While it waits, the thread receives from the network for all clients in it: so a request needs
/// no change of threads.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        let ready = WAKER.with(|waker| future.as_mut().poll(&mut Context::from_waker(waker)));
        if let Poll::Ready(value) = ready {
            return value;
        }
        match TRANSPORTER.with(|current| current.borrow().upgrade()) {
            Some(transporter) => return transporter.receive_until(|cx| future.as_mut().poll(cx)),
            // Waits for something else: a timer, a lock in this process.
            None => std::thread::park(),
        }
    }
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
