//! Sockets in the poll set of a runtime.
//!
//! The poll set tells of changes only (edges). What it has told stands in a word beside the socket ([`Readiness`]): an operation is tried while the word says
//! that it may succeed, and what finds that it does not clears the bit, so that the socket is asked again only when the poll set has told. The word counts what
//! was told: a bit is cleared only when nothing was told since the operation began.
//!
//! That the other side has closed is never cleared: [`Registered::is_read_closed`] costs no system call.

use super::{Shared, WAKE};
use futures::task::AtomicWaker;
use mio::event::Source;
use mio::{Events, Interest, Token};
use parking_lot::Mutex;
use slab::Slab;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::task::{Context, Poll, Waker, ready};

const READABLE: u32 = 1;
const WRITABLE: u32 = 2;
const READ_CLOSED: u32 = 4;
const WRITE_CLOSED: u32 = 8;
/// Above the bits: how often the poll set has told something.
const TOLD: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
}

/// What an operation on a socket found.
pub enum Done<T> {
    /// There may be more.
    Some(T),
    /// There is no more until the poll set tells.
    All(T),
}

struct Readiness {
    word: AtomicU32,
    reader: AtomicWaker,
    writer: AtomicWaker,
}

/// The sockets of a runtime by their tokens.
#[derive(Default)]
pub(super) struct Sockets(Mutex<Places>);

#[derive(Default)]
struct Places {
    sockets: Slab<(u32, Arc<Readiness>)>,
    /// Of the next socket: events of one that has gone do not reach the one that has its place.
    generation: u32,
}

/// A socket in the poll set, until it is dropped.
pub struct Registered<S: Source> {
    socket: S,
    readiness: Arc<Readiness>,
    place: usize,
    shared: Arc<Shared>,
}

impl Sockets {
    /// Notes what the poll set tells and collects the wakers of who waits for it.
    pub fn note(&self, events: &Events, wakers: &mut Vec<Waker>) {
        if events.is_empty() {
            return;
        }
        let places = self.0.lock();
        for event in events {
            if event.token() == WAKE {
                continue;
            }
            let Token(token) = event.token();
            let (place, generation) = (token & 0xFFFF_FFFF, (token >> 32) as u32);
            let Some((_, readiness)) = places.sockets.get(place).filter(|(current, _)| *current == generation) else {
                continue;
            };
            let mut told = 0;
            if event.is_readable() {
                told |= READABLE;
            }
            if event.is_writable() {
                told |= WRITABLE;
            }
            if event.is_read_closed() || event.is_error() {
                told |= READABLE | READ_CLOSED;
            }
            if event.is_write_closed() || event.is_error() {
                told |= WRITABLE | WRITE_CLOSED;
            }
            readiness.tell(told, wakers);
        }
    }
}

impl Readiness {
    fn tell(&self, told: u32, wakers: &mut Vec<Waker>) {
        let update = |word: u32| Some(word.wrapping_add(TOLD) | told);
        self.word.fetch_update(AcqRel, Relaxed, update).expect("it always gives a word");
        if told & READABLE != 0 {
            wakers.extend(self.reader.take());
        }
        if told & WRITABLE != 0 {
            wakers.extend(self.writer.take());
        }
    }

    /// The word, when an operation may succeed.
    fn poll(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<u32> {
        let (bit, waker) = match direction {
            Direction::Read => (READABLE, &self.reader),
            Direction::Write => (WRITABLE, &self.writer),
        };
        let word = self.word.load(Acquire);
        if word & bit != 0 {
            return Poll::Ready(word);
        }
        waker.register(cx.waker());
        let word = self.word.load(Acquire);
        if word & bit != 0 { Poll::Ready(word) } else { Poll::Pending }
    }

    /// Notes that an operation which began at `word` found no more.
    fn clear(&self, direction: Direction, word: u32) {
        let (bit, closed) = match direction {
            Direction::Read => (READABLE, READ_CLOSED),
            Direction::Write => (WRITABLE, WRITE_CLOSED),
        };
        if word & closed == 0 {
            // It fails when the poll set has told something since; then the bit stays.
            let _ = self.word.compare_exchange(word, word & !bit, AcqRel, Relaxed);
        }
    }
}

impl<S: Source> Registered<S> {
    /// Puts a socket that does not block into the poll set of a runtime.
    pub fn new(runtime: &super::Runtime, mut socket: S) -> io::Result<Registered<S>> {
        let shared = runtime.shared().clone();
        let readiness = Arc::new(Readiness {
            // The first operations find out.
            word: AtomicU32::new(READABLE | WRITABLE),
            reader: AtomicWaker::new(),
            writer: AtomicWaker::new(),
        });
        let (place, token) = {
            let mut places = shared.sockets.0.lock();
            // The highest generation is left out, so that no token is `WAKE`.
            places.generation = (places.generation + 1) % u32::MAX;
            let generation = places.generation;
            let place = places.sockets.insert((generation, readiness.clone()));
            assert!(place < u32::MAX as usize, "sockets are numbered with 32 bits");
            (place, Token(place | (generation as usize) << 32))
        };
        if let Err(error) = shared.registry.register(&mut socket, token, Interest::READABLE | Interest::WRITABLE) {
            shared.sockets.0.lock().sockets.remove(place);
            return Err(error);
        }
        Ok(Registered { socket, readiness, place, shared })
    }

    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// Whether the other side has closed its direction, or the connection is broken.
    pub fn is_read_closed(&self) -> bool {
        self.readiness.word.load(Acquire) & READ_CLOSED != 0
    }

    /// Tries an operation as soon as it may succeed, and again when it would block.
    pub fn poll_io<T>(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        mut operation: impl FnMut(&S) -> io::Result<Done<T>>,
    ) -> Poll<io::Result<T>> {
        loop {
            let word = ready!(self.readiness.poll(direction, cx));
            if !super::has_turn(cx) {
                return Poll::Pending;
            }
            match operation(&self.socket) {
                Ok(Done::Some(value)) => return Poll::Ready(Ok(value)),
                Ok(Done::All(value)) => {
                    self.readiness.clear(direction, word);
                    return Poll::Ready(Ok(value));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readiness.clear(direction, word);
                    if word & (READ_CLOSED | WRITE_CLOSED) != 0 && self.readiness.word.load(Acquire) == word {
                        // Closed, and yet it would block: what the poll set has told is not true of this operation.
                        return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl<S: Source> Drop for Registered<S> {
    fn drop(&mut self) {
        if let Err(error) = self.shared.registry.deregister(&mut self.socket) {
            tracing::debug!(%error, "deregister a socket");
        }
        self.shared.sockets.0.lock().sockets.remove(self.place);
    }
}

impl<S: Source + fmt::Debug> fmt::Debug for Registered<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registered").field(&self.socket).finish()
    }
}
