//! One interface over the system's way to wait for many sockets: epoll, kqueue, event ports or poll, as mio chooses. (Unix; I/O completion ports would need sockets
//! that are owned by the poll set.)
//!
//! Edge-triggered: a socket is reported when it changes, so whoever is told reads until nothing is left, or remembers that something is. A socket is registered for
//! reading and writing once; on a socket that was never full the second costs nothing. Registering reports what is ready at that time, so a socket
//! that moves to another set loses nothing.

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

const EVENTS: usize = 256;
const WAKER: Token = Token(usize::MAX);

/// A socket that has changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub token: usize,
    pub readable: bool,
    pub writable: bool,
    /// The peer has ended its side, or there is an error: read until it shows.
    pub ended: bool,
}

pub(crate) struct PollSet {
    poll: Poll,
    events: Events,
}

impl PollSet {
    /// With the waker that ends its waiting from another thread.
    pub fn new() -> io::Result<(PollSet, Waker)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        Ok((PollSet { poll, events: Events::with_capacity(EVENTS) }, waker))
    }

    pub fn add(&self, fd: RawFd, token: usize) -> io::Result<()> {
        self.poll.registry().register(&mut SourceFd(&fd), Token(token), Interest::READABLE | Interest::WRITABLE)
    }

    pub fn add_listener(&self, fd: RawFd, token: usize) -> io::Result<()> {
        self.poll.registry().register(&mut SourceFd(&fd), Token(token), Interest::READABLE)
    }

    pub fn remove(&self, fd: RawFd) {
        // A socket that the system has taken out already is out.
        let _ = self.poll.registry().deregister(&mut SourceFd(&fd));
    }

    /// Waits (rounded up to milliseconds; `None`: as long as it takes; zero: not at all) and appends what is ready. Answers whether anything
    /// happened, a wake-up included.
    pub fn wait(&mut self, timeout: Option<Duration>, ready: &mut Vec<Ready>) -> bool {
        match self.poll.poll(&mut self.events, timeout) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return false,
            Err(e) => panic!("the poll set itself is broken: {e}"),
        }
        ready.extend(self.events.iter().filter(|event| event.token() != WAKER).map(|event| Ready {
            token: event.token().0,
            readable: event.is_readable(),
            writable: event.is_writable(),
            ended: event.is_read_closed() || event.is_error(),
        }));
        !self.events.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        other.set_nonblocking(true).unwrap();
        (one, other)
    }

    #[test]
    fn tells_of_changes_once_and_of_everything_when_added() {
        let (mut one, other) = pair();
        let ((mut first, _w1), (mut second, _w2)) = (PollSet::new().unwrap(), PollSet::new().unwrap());
        let mut ready = Vec::new();
        first.add(other.as_raw_fd(), 7).unwrap();
        one.write_all(b"x").unwrap();
        while !ready.iter().any(|r: &Ready| r.token == 7 && r.readable) {
            first.wait(Some(Duration::from_secs(1)), &mut ready);
        }
        ready.clear();
        first.wait(Some(Duration::ZERO), &mut ready);
        assert!(ready.is_empty(), "no change, no event");
        first.remove(other.as_raw_fd());
        second.add(other.as_raw_fd(), 3).unwrap();
        second.wait(Some(Duration::from_secs(1)), &mut ready);
        assert!(ready.iter().any(|r| r.token == 3 && r.readable), "the byte is still there");
        drop(one);
        ready.clear();
        second.wait(Some(Duration::from_secs(1)), &mut ready);
        assert!(ready.iter().any(|r| r.token == 3 && r.ended));
    }

    #[test]
    fn wakes_without_a_socket() {
        let (mut set, waker) = PollSet::new().unwrap();
        let mut ready = Vec::new();
        waker.wake().unwrap();
        assert!(set.wait(None, &mut ready));
        assert!(ready.is_empty());
    }
}
