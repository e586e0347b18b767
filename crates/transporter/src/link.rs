//! One connection: what others hold of it.
//!
//! A link has a place (a receive thread and its number there), which changes when it moves; a send state (see `send`); tasks of the handler (see `receive::tasks`); and
//! counts of what is outstanding, by which reading from the peer is paused:
//!
//! * *unsent bytes*: when more than `send_limit` wait, the requests of a peer that we accepted are not read until half of that is left. A side that connected goes on
//!   reading (answers must be read, or both would wait for each other), and [`Link::send`] refuses beyond twice the limit;
//! * *requests without an answer*: frames with a request number that were handed to the handler, less frames with one that were sent. The same for `max_requests`.
//!
//! The end of a link comes from anywhere ([`Link::close`]); its socket is shut down by whoever sends then, and its receive thread takes it out of the poll set, drops its
//! tasks and tells the handler, once, after the last frame.

use crate::handshake::Limits;
use crate::login::Granted;
use crate::receive::Command;
use crate::receive::round;
use crate::send::Sending;
use crate::shared::Shared;
use crate::statistics::{LinkStatistics, ReceiveCounts};
use crate::stream::Stream;
use crate::{CloseReason, Identity, Name, TransportError};
use parking_lot::Mutex;
use rauk_wire::{Header, frame};
use std::any::Any;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Poll;

/// Whether a frame may wait for company.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// As the socket's adaptive state says.
    Adaptive,
    /// At once (but by somebody else, if somebody is sending on this socket this moment).
    Force,
}

/// A connection whose handshake went well. Cheap to share.
pub struct Link {
    pub(crate) shared: Arc<Shared>,
    pub(crate) me: Weak<Link>,
    /// Key among all links of this transporter.
    pub(crate) serial: u64,
    limits: Limits,
    peer: SocketAddr,
    identity: Identity,
    /// The peer connected to us.
    pub(crate) accepted: bool,
    pub(crate) sending: Mutex<Sending>,
    /// By when a frame that waits must have gone, in nanoseconds; `u64::MAX`: none waits. Changed under `sending` only.
    pub(crate) deadline: AtomicU64,
    /// The send thread looks after its deadlines.
    pub(crate) listed: AtomicBool,
    closed: AtomicBool,
    /// Receive thread and number there.
    place: AtomicU64,
    pub(crate) over_limit: AtomicBool,
    /// A timer looks whether its peer reads. Its receiver's.
    pub(crate) watched: AtomicBool,
    /// Requests read and not answered.
    pub(crate) requests: AtomicU32,
    /// Its socket is not read.
    pub(crate) paused: AtomicBool,
    pub(crate) received: ReceiveCounts,
    /// Who the peer's certificate names.
    certified: Option<Name>,
    /// What the account of the peer was given.
    pub(crate) granted: OnceLock<Granted>,
    data: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// Where a link is: a receive thread, and its number there, once it has one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub set: usize,
    pub token: Option<usize>,
}

impl Link {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        shared: Arc<Shared>,
        stream: Arc<Stream>,
        peer: SocketAddr,
        identity: Identity,
        limits: Limits,
        accepted: bool,
        unsent: Vec<u8>,
        set: usize,
    ) -> Arc<Link> {
        let certified = stream.certified();
        let sending = Sending::new(stream, unsent, &shared);
        let serial = shared.next_serial();
        let link = Arc::new_cyclic(|me| Link {
            shared,
            me: me.clone(),
            serial,
            limits,
            peer,
            identity,
            accepted,
            sending: Mutex::new(sending),
            deadline: AtomicU64::new(u64::MAX),
            listed: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            place: AtomicU64::new(0),
            over_limit: AtomicBool::new(false),
            watched: AtomicBool::new(false),
            requests: AtomicU32::new(0),
            paused: AtomicBool::new(false),
            received: ReceiveCounts::default(),
            certified,
            granted: OnceLock::new(),
            data: OnceLock::new(),
        });
        link.set_place(Place { set, token: None });
        link
    }

    /// Sends a frame made by [`rauk_wire::frame::begin`]: header and checksum are filled in here. The buffer is sent as it is, without a copy.
    /// `Congested` when more than twice the limit waits already (for the side that connected); the frame is then not taken. A peer that has connected to us and has
    /// so many answers waiting that it cannot be honest is closed.
    pub fn send(&self, header: &Header, frame: Vec<u8>, urgency: Urgency) -> Result<(), TransportError> {
        let answered = self.accepted && header.request != 0;
        let result = self.send_as(header, frame, urgency);
        if answered {
            self.answered();
        }
        result
    }

    /// The same for what is no answer to a request that was counted.
    pub(crate) fn send_as(&self, header: &Header, mut frame: Vec<u8>, urgency: Urgency) -> Result<(), TransportError> {
        frame::finish(&mut frame, &Header { format: self.identity.version, ..*header });
        self.send_finished(frame, urgency)
    }

    /// One request less is outstanding.
    fn answered(&self) {
        let before = self.requests.try_update(SeqCst, Relaxed, |n| n.checked_sub(1)).unwrap_or(0);
        if before != 0 && self.paused.load(SeqCst) {
            self.resume_if_possible();
        }
    }

    /// Has the socket read again, when it is paused and half of both limits is free.
    pub(crate) fn resume_if_possible(&self) {
        let few = self.requests.load(SeqCst) <= self.shared.options.max_requests / 2;
        if few && !self.over_limit.load(SeqCst) && self.paused.swap(false, SeqCst) {
            self.command(Command::Resume);
        }
    }

    /// Whether reading must pause now.
    pub(crate) fn must_pause(&self) -> bool {
        self.accepted
            && (self.over_limit.load(SeqCst) || self.requests.load(SeqCst) >= self.shared.options.max_requests)
    }

    pub(crate) fn command(&self, command: fn(Arc<Link>) -> Command) {
        if let Some(link) = self.me.upgrade() {
            self.shared.sets[self.place().set].command(command(link));
        }
    }

    /// Sends what waits.
    pub fn flush(&self) {
        self.start_sending(|_| true, crate::send::By::Sender);
    }

    /// A buffer to build a frame in, from those that were sent; made as by [`rauk_wire::frame::begin`].
    pub fn buffer(&self) -> Vec<u8> {
        self.shared.buffers.take()
    }

    /// Resolves when less than half of the limit waits to be sent, or the link is closed.
    pub fn writable(self: &Arc<Self>) -> impl Future<Output = Result<(), TransportError>> + Send + 'static {
        let link = self.clone();
        std::future::poll_fn(move |context| {
            let mut sending = link.sending.lock();
            if let Some(reason) = &sending.closed {
                return Poll::Ready(Err(TransportError::Closed(reason.clone())));
            }
            if sending.unsent <= link.shared.options.send_limit / 2 {
                return Poll::Ready(Ok(()));
            }
            if !sending.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                sending.wakers.push(context.waker().clone());
            }
            Poll::Pending
        })
    }

    /// Polls the future at once on this thread, which must be the link's receive thread (that is: within [`crate::Handler`]'s calls), and goes on with it there whenever it
    /// is woken. Called elsewhere, it hands the future to that thread. Dropped when the link closes.
    pub fn spawn(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        round::spawn(self, Box::pin(task));
    }

    /// What the handler keeps for this link; set once in `on_open` (later calls change nothing).
    pub fn set_data(&self, data: Arc<dyn Any + Send + Sync>) {
        let _ = self.data.set(data);
    }

    pub fn data(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.data.get()
    }

    /// Ends it: what waits is sent if that goes at once, requests under way are dropped.
    pub fn close(&self, reason: CloseReason) {
        self.close_sending(reason);
    }

    pub(crate) fn mark_closed(&self) {
        self.closed.store(true, SeqCst);
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Acquire)
    }

    /// Moves it to another receive thread (numbered from 0; as soon as no task of it is pending). Answers whether there is such a thread.
    pub fn move_to(self: &Arc<Self>, receive_thread: usize) -> bool {
        let there = receive_thread < self.shared.sets.len();
        if there {
            self.shared.sets[self.place().set].command(Command::Move(self.clone(), receive_thread));
        }
        there
    }

    /// The receive thread that serves it.
    pub fn receive_thread(&self) -> usize {
        self.place().set
    }

    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// What the peer said in the handshake: its cluster, incarnation, version and name.
    /// The node that the peer's certificate names. `None`: a link without TLS, or one to get a certificate.
    pub fn certified(&self) -> Option<Name> {
        self.certified
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Number of this connection at the server, on both sides.
    pub fn connection(&self) -> u64 {
        self.limits.connection
    }

    /// Requests that the server reads before it has answered the first of them.
    pub fn max_requests(&self) -> u32 {
        self.limits.max_requests
    }

    /// What the account was given that the peer has shown. `None`: it has proved the secret, or shown a certificate.
    pub fn granted(&self) -> Option<&Granted> {
        self.granted.get()
    }

    /// Bytes that were read from it.
    pub fn received_bytes(&self) -> u64 {
        self.received.bytes.load(Relaxed)
    }

    pub(crate) fn place(&self) -> Place {
        let place = self.place.load(SeqCst);
        Place { set: (place >> 32) as usize, token: (place as u32).checked_sub(1).map(|token| token as usize) }
    }

    pub(crate) fn set_place(&self, place: Place) {
        let token = place.token.map_or(0, |token| token as u64 + 1);
        self.place.store((place.set as u64) << 32 | token, SeqCst);
    }

    /// Nothing is outstanding: no request without an answer, nothing unsent.
    pub(crate) fn is_settled(&self) -> bool {
        self.requests.load(SeqCst) == 0 && self.sending.lock().unsent == 0
    }

    /// When the socket last took something.
    pub(crate) fn progress(&self) -> std::time::Duration {
        self.sending.lock().progress
    }

    pub(crate) fn unsent(&self) -> u64 {
        self.sending.lock().unsent as u64
    }

    pub(crate) fn statistics(&self) -> LinkStatistics {
        let sending = self.sending.lock();
        LinkStatistics {
            connection: self.limits.connection,
            peer: self.peer.to_string(),
            name: self.identity.name.clone(),
            max_waits: sending.adaptive.max_waits(),
            frames_sent: sending.counts.frames,
            sends: sending.counts.sends,
            unsent_bytes: sending.unsent as u64,
            frames_received: self.received.frames.load(Relaxed),
            requests: u64::from(self.requests.load(Relaxed)),
            receive_thread: self.place().set,
        }
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("connection", &self.connection()).field("peer", &self.peer).finish_non_exhaustive()
    }
}
