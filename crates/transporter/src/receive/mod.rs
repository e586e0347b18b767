//! Receiving: poll sets, receive threads, and waiters that receive for themselves.
//!
//! A [`ReceiveSet`] is what others see of a receiver: an inbox of [`Command`]s, a list of tasks that were woken, counters, and the waker for its poll set. The
//! [`Receiver`] behind it owns the poll set, the sockets and the tasks; one thread has it at a time. With receive threads each has one for good; without,
//! it is lent to whoever waits (see [`role`]).
//!
//! A receiver goes round: commands and woken tasks; sockets with something left; the poll set without waiting; then it spins for a bounded time ([`spin`]), keeping the deadlines of
//! frames that wait to be sent; then it sleeps. Whatever arrived is read, parsed in place and handled before it looks again, and the answers leave at the end of
//! the round ([`round`]).
//!
//! Sleeping and waking: a receiver that will sleep sets `sleeping`, then looks at `has_work` once more; whoever brings work sets `has_work`, then looks at `sleeping`. Both in
//! sequential consistency, so one of them sees the other, and nobody pays for waking a receiver that is awake.

pub(crate) mod inbound;
pub(crate) mod opening;
pub(crate) mod poll_set;
pub(crate) mod receiver;
pub(crate) mod role;
pub(crate) mod round;
mod sockets;
pub(crate) mod spin;
pub(crate) mod tasks;

pub(crate) use receiver::Receiver;

use crate::security::ServerTls;
use crate::{Link, Secret};
use opening::Opening;
use parking_lot::Mutex;
use poll_set::PollSet;
use sockets::{LinkSocket, Listening};
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Duration;
use tasks::TaskWaker;

/// What others ask of a receiver.
pub(crate) enum Command {
    Listen(Box<Listening>),
    /// A connection that begins its handshake.
    Open(Box<Opening>),
    /// A link that comes from another receiver.
    Adopt(Box<LinkSocket>),
    Closed(Arc<Link>),
    /// Read it again.
    Resume(Arc<Link>),
    /// More than the limit waits to be sent: see that the peer reads.
    OverLimit(Arc<Link>),
    Move(Arc<Link>, usize),
    Spawn(Arc<Link>, tasks::Future),
    /// Accept no more.
    StopListening,
}

impl Command {
    /// Listen, and ask this of whoever comes.
    pub fn listen(listener: TcpListener, secret: Option<Secret>, tls: Option<ServerTls>) -> Command {
        Command::Listen(Box::new(Listening { listener, secret, tls }))
    }
}

pub(crate) struct ReceiveSet {
    pub index: usize,
    inbox: Mutex<Inbox>,
    has_work: AtomicBool,
    sleeping: AtomicBool,
    waker: mio::Waker,
    /// Sockets here or on their way.
    pub sockets: AtomicUsize,
    /// Frames of the last second that it had something to do in, and when that ended (milliseconds).
    load: AtomicU64,
    load_at: AtomicU64,
    pub spins: AtomicU64,
    pub spins_that_found: AtomicU64,
    pub sleeps: AtomicU64,
}

#[derive(Default)]
struct Inbox {
    commands: Vec<Command>,
    /// Tasks to poll.
    woken: Vec<Arc<TaskWaker>>,
    /// The receiver is gone.
    ended: bool,
}

impl ReceiveSet {
    pub fn new(index: usize) -> io::Result<(Arc<ReceiveSet>, PollSet)> {
        let (poll, waker) = PollSet::new()?;
        let set = ReceiveSet {
            index,
            inbox: Mutex::default(),
            has_work: AtomicBool::new(false),
            sleeping: AtomicBool::new(false),
            waker,
            sockets: AtomicUsize::new(0),
            load: AtomicU64::new(0),
            load_at: AtomicU64::new(0),
            spins: AtomicU64::new(0),
            spins_that_found: AtomicU64::new(0),
            sleeps: AtomicU64::new(0),
        };
        Ok((Arc::new(set), poll))
    }

    /// After the receiver's end a command is dropped: what it brings is closed by that.
    pub fn command(&self, command: Command) {
        let mut inbox = self.inbox.lock();
        if inbox.ended {
            drop(inbox);
            drop(command);
            return;
        }
        inbox.commands.push(command);
        drop(inbox);
        self.notify();
    }

    /// A task was woken.
    pub fn ready(&self, task: Arc<TaskWaker>) {
        let mut inbox = self.inbox.lock();
        if !inbox.ended {
            inbox.woken.push(task);
            drop(inbox);
            self.notify();
        }
    }

    /// There is something to do.
    pub fn notify(&self) {
        self.has_work.store(true, SeqCst);
        self.interrupt();
    }

    /// Ends the receiver's sleep, if it sleeps.
    pub fn interrupt(&self) {
        if self.sleeping.swap(false, SeqCst)
            && let Err(error) = self.waker.wake()
        {
            tracing::error!(%error, "cannot wake a receive thread");
        }
    }

    fn set_load(&self, frames: u64, now: Duration) {
        self.load.store(frames, SeqCst);
        self.load_at.store(now.as_millis() as u64, SeqCst);
    }

    /// Frames a second; a receiver that has slept since has nothing to do.
    fn load(&self, now: Duration) -> u64 {
        let fresh = self.load_at.load(SeqCst) + 2500 > now.as_millis() as u64;
        if fresh { self.load.load(SeqCst) } else { 0 }
    }

    fn end(&self) -> Vec<Command> {
        let mut inbox = self.inbox.lock();
        inbox.ended = true;
        inbox.woken = Vec::new();
        std::mem::take(&mut inbox.commands)
    }
}
