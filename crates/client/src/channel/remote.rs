//! Over the network: connections that are made again when they are lost, requests by number.
//!
//! A client has a transporter of its own without receive threads: a thread that waits in [`crate::blocking::wait`] receives for itself, and the transporter's stand-in wakes the
//! tasks of asynchronous runtimes. Requests of many tasks are in flight on a connection at a time; answers come in any order and find their request by its number.
//!
//! A connection that has ended, or whose server has said goodbye, is replaced on its next use: whoever comes first begins, all others wait for the same attempt, with growing pauses
//! in between. Requests that were in flight are lost: those with a lasting effect have an unknown outcome, all others may be tried again.
//!
//! A client with several addresses takes them for nodes of one cluster. Its first connection goes to one of them at random, so that clients spread; each further connection of it begins
//! one address further on. An attempt goes through all addresses, and begins behind the one that was lost. The cluster that was met first is the only one that is taken from then on: each handshake
//! names it. Definitions are the cluster's, so those that one node has given are good for the others; only a node that has started again (at the same address, with another incarnation) makes all be
//! opened again, since a node alone may then have an older directory.
//!
//! [`super::places`] makes and keeps connections to the nodes that lead partitions, with the same credentials.

use super::places::division::{self, Dealt, Located};
use super::places::map::NOWHERE;
use super::places::{Means, Places};
use super::sweep::watch;
use super::waiting::{Lost, Waiting};
use super::{Ask, CallError, Effect};
use crate::address::Address;
use crate::blocking;
use crate::options::{Options, RetryPolicy};
use crate::timer;
use crate::{Error, ErrorKind};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, Shared};
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_transporter::{CloseReason, Handler, Identity, Link, Security, TransportError, Transporter, Urgency};
use rauk_types::NodeId;
use rauk_types::error::codes;
use rauk_wire::hello::Role;
use rauk_wire::placement::is_newer;
use rauk_wire::{Failure, Frame, Header, Kind, PROTOCOL};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// What links and client have in common.
#[derive(Default)]
pub(super) struct Seen {
    /// The highest commit time.
    timestamp: AtomicU64,
    /// The newest version of the cluster's placement; 0: no server is a member of a cluster.
    pub placement: AtomicU32,
    /// The newest version of the catalog.
    schema: AtomicU32,
    /// How often a server was found to have started again.
    epoch: AtomicU64,
}

/// A link's state, kept with it.
pub(super) struct Session {
    pub waiting: Waiting,
    /// The server has said that it will close: new requests go elsewhere.
    goodbye: AtomicBool,
    /// Why this client ended it.
    given_up: OnceLock<String>,
    /// A sweep for requests that wait too long is under way.
    pub sweeping: AtomicBool,
    /// Those who are to hear of a silence, where the link is one to a node for what it leads.
    pub places: OnceLock<Weak<Places>>,
}

struct Receiver {
    seen: Arc<Seen>,
}

pub(super) fn session_of(link: &Link) -> Option<&Session> {
    link.data()?.downcast_ref()
}

/// Ends a link for a reason that its requests are to be told.
pub(super) fn give_up(link: &Link, session: &Session, why: &str) {
    tracing::warn!(server = %link.peer(), why, "the connection is given up");
    // Only the first reason counts.
    let _ = session.given_up.set(why.to_owned());
    link.close(CloseReason::Protocol(why.to_owned()));
}

impl Handler for Receiver {
    fn on_open(&self, link: &Arc<Link>) {
        link.set_data(Arc::new(Session {
            waiting: Waiting::new(),
            goodbye: AtomicBool::new(false),
            given_up: OnceLock::new(),
            sweeping: AtomicBool::new(false),
            places: OnceLock::new(),
        }));
    }

    fn on_frame(&self, link: &Arc<Link>, frame: Frame) {
        let Some(session) = session_of(link) else { return };
        // Reading is cheaper than writing what other threads read.
        let header = &frame.header;
        if header.timestamp > self.seen.timestamp.load(Ordering::Relaxed) {
            self.seen.timestamp.fetch_max(header.timestamp, Ordering::Relaxed);
        }
        if header.schema > self.seen.schema.load(Ordering::Relaxed) {
            self.seen.schema.fetch_max(header.schema, Ordering::Relaxed);
        }
        if is_newer(header.placement, self.seen.placement.load(Ordering::Relaxed)) {
            let newer = |known| is_newer(header.placement, known).then_some(header.placement);
            // Another thread may have heard of a newer one meanwhile.
            let _ = self.seen.placement.fetch_update(Ordering::Relaxed, Ordering::Relaxed, newer);
        }
        match header.kind {
            Kind::Goodbye => {
                let why = Failure::decode(&frame.payload).map_or_else(|_| String::new(), |failure| failure.message);
                tracing::info!(server = %link.peer(), why, "the server will close the connection");
                session.goodbye.store(true, Ordering::Release);
            }
            Kind::Ping => {
                let mut buffer = link.buffer();
                buffer.extend_from_slice(&frame.payload);
                // A link that cannot be written to is about to be closed.
                let _ = link.send(&Header::new(Kind::Pong, header.request), buffer, Urgency::Force);
            }
            _ => session.waiting.answer(header.request, frame),
        }
    }

    fn on_close(&self, link: &Arc<Link>, reason: &CloseReason) {
        let Some(session) = session_of(link) else { return };
        match session.given_up.get() {
            Some(why) => session.waiting.close(why),
            None => session.waiting.close(&reason.to_string()),
        }
    }
}

pub(crate) struct Remote {
    transporter: Arc<Transporter>,
    servers: Vec<Server>,
    security: Security,
    connect_timeout: Duration,
    retry: RetryPolicy,
    urgency: Urgency,
    seen: Arc<Seen>,
    slots: Vec<Slot>,
    /// `None`: switched off.
    places: Option<Arc<Places>>,
}

struct Server {
    address: String,
    /// Of the start that was met last; 0: none was.
    incarnation: AtomicU64,
}

/// A connection's place.
#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    /// The server that the next attempt begins with.
    next: AtomicUsize,
}

type Attempt = Shared<BoxFuture<'static, Result<Arc<Connection>, Error>>>;

#[derive(Default)]
enum State {
    /// Never used, or lost.
    #[default]
    Closed,
    Opening(Attempt),
    Open(Arc<Connection>),
}

/// A pause of about this length: half of it to the whole, so that many clients do not come back at the same moment.
pub(crate) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(SmallRng::from_os_rng().random_range(0.5..=1.0))
}

impl Remote {
    /// Starts a transporter; the first connection is made by [`Remote::connect_first`].
    pub fn new(address: Address, options: &Options) -> Result<Arc<Remote>, Error> {
        let seen = Arc::new(Seen { epoch: AtomicU64::new(1), ..Seen::default() });
        let transporter = Transporter::start(
            rauk_transporter::Options {
                receive_threads: 0,
                longest_wait: options.longest_wait,
                longest_spin: options.longest_spin,
                handshake: options.connect_timeout,
                ..rauk_transporter::Options::default()
            },
            Identity {
                role: Role::Client,
                cluster: [0; 16],
                incarnation: 0,
                version: PROTOCOL,
                name: address.name.unwrap_or_else(|| options.name.clone()),
            },
            Arc::new(Receiver { seen: seen.clone() }),
        )?;
        if let Some(account) = address.account.as_ref().or(options.account.as_ref()) {
            transporter.set_account(rauk_transporter::Account::new(&*account.user, &*account.password)?);
        }
        let count = address.servers.len();
        let first = SmallRng::from_os_rng().random_range(0..count);
        let slot = |number| Slot { next: AtomicUsize::new((first + number) % count), ..Slot::default() };
        let slots = address.connections.map_or(options.connections, usize::from).max(1);
        let server = |address| Server { address, incarnation: AtomicU64::new(0) };
        let security = options.security(address.secret_file.as_deref())?;
        let urgency = if options.force_send { Urgency::Force } else { Urgency::Adaptive };
        let places = address.placement.unwrap_or(options.placement).then(|| {
            Places::new(Means {
                transporter: Arc::downgrade(&transporter),
                security: security.clone(),
                urgency,
                timeout: options.connect_timeout,
                seen: seen.clone(),
            })
        });
        Ok(Arc::new(Remote {
            transporter,
            servers: address.servers.into_iter().map(server).collect(),
            security,
            connect_timeout: options.connect_timeout,
            retry: options.retry.clone(),
            urgency,
            seen,
            slots: (0..slots).map(slot).collect(),
            places,
        }))
    }

    /// What knows the nodes that lead; `None`: it is switched off, or no server is a member of a cluster.
    #[inline]
    fn places(&self) -> Option<&Arc<Places>> {
        self.places.as_ref().filter(|_| self.seen.placement.load(Ordering::Relaxed) != 0)
    }

    /// Whether requests go to the nodes that lead what they are about.
    pub fn is_placed(&self) -> bool {
        self.places().is_some()
    }

    /// See [`super::Line::epoch`].
    pub fn epoch(&self) -> u64 {
        self.seen.epoch.load(Ordering::SeqCst)
    }

    /// The connection to the node that leads a bucket. `None`: none is needed or none works; a connection of this turn
    /// will do.
    pub fn open_at(&self, bucket: u16, writes: bool, turn: Option<u64>) -> Option<Arc<Connection>> {
        let places = self.places().filter(|_| bucket != NOWHERE)?;
        let present = self.open(turn);
        let map = places.map(present.as_ref());
        places.connection(&map, map.leader(bucket, writes)?, present.as_ref())
    }

    /// How the operations of one request go to the nodes that lead what they are about.
    pub fn deal(&self, located: Located<'_>) -> Dealt {
        let Some(places) = self.places() else { return Dealt::Together(None) };
        let present = self.open(None);
        let map = places.map(present.as_ref());
        let is_other = |made: &Arc<Connection>| present.as_ref().is_none_or(|present| !Arc::ptr_eq(present, made));
        let connection = |at| places.connection(&map, at, present.as_ref()).filter(is_other);
        division::deal(&map, located, connection)
    }

    /// Each address once: a program that starts wants to hear at once that they are wrong.
    pub async fn connect_first(self: &Arc<Self>) -> Result<(), Error> {
        let connection = self.connect(&self.slots[0]).await?;
        // Another cluster behind one of the addresses is refused from here on.
        self.transporter.set_cluster(connection.link.identity().cluster);
        *self.slots[0].state.lock() = State::Open(connection);
        Ok(())
    }

    fn slot(&self, turn: Option<u64>) -> usize {
        match self.slots.len() {
            1 => 0,
            many => turn.unwrap_or_else(thread_number) as usize % many,
        }
    }

    /// The connection of this turn, if it works.
    pub fn open(&self, turn: Option<u64>) -> Option<Arc<Connection>> {
        match &*self.slots[self.slot(turn)].state.lock() {
            State::Open(connection) if connection.is_usable() => Some(connection.clone()),
            _ => None,
        }
    }

    /// Makes the connection of this turn again, or waits for who does so already.
    pub async fn reconnect(self: &Arc<Self>, turn: Option<u64>) -> Result<Arc<Connection>, Error> {
        let number = self.slot(turn);
        let slot = &self.slots[number];
        blocking::receives_for(&Arc::downgrade(&self.transporter));
        let attempt = {
            let mut state = slot.state.lock();
            match &*state {
                State::Open(connection) if connection.is_usable() => return Ok(connection.clone()),
                State::Opening(attempt) => attempt.clone(),
                _ => {
                    let attempt = persist(Arc::downgrade(self), number).boxed().shared();
                    *state = State::Opening(attempt.clone());
                    attempt
                }
            }
        };
        let result = attempt.clone().await;
        let mut state = slot.state.lock();
        if matches!(&*state, State::Opening(current) if current.ptr_eq(&attempt)) {
            *state = match &result {
                Ok(connection) => State::Open(connection.clone()),
                Err(_) => State::Closed,
            };
        }
        result
    }

    /// Goes through the servers once. Each has an equal part of the time that is left, so that one that does not answer leaves time for the others.
    async fn connect(&self, slot: &Slot) -> Result<Arc<Connection>, Error> {
        blocking::receives_for(&Arc::downgrade(&self.transporter));
        let count = self.servers.len();
        let first = slot.next.load(Ordering::Relaxed);
        let until = Instant::now() + self.connect_timeout;
        let mut refused = Vec::new();
        for turn in 0..count {
            let number = (first + turn) % count;
            let left = until.saturating_duration_since(Instant::now()) / (count - turn) as u32;
            match self.connect_to(&self.servers[number], left).await {
                Ok(connection) => {
                    slot.next.store((number + 1) % count, Ordering::Relaxed);
                    return Ok(connection);
                }
                Err(error) if count == 1 => return Err(error),
                // All nodes have the same accounts, and each would count the wrong password.
                Err(error) if error.code == codes::ACCESS_DENIED => return Err(error),
                Err(error) => {
                    let server = &self.servers[number].address;
                    tracing::info!(server, %error, "no connection to this server: the next one is tried");
                    refused.push((server.as_str(), error));
                }
            }
        }
        Err(none_of(&refused))
    }

    async fn connect_to(&self, server: &Server, timeout: Duration) -> Result<Arc<Connection>, Error> {
        let link = self.transporter.connect(&server.address, &self.security, timeout).await?;
        let incarnation = link.identity().incarnation;
        let before = server.incarnation.swap(incarnation, Ordering::SeqCst);
        if before != 0 && before != incarnation {
            self.seen.epoch.fetch_add(1, Ordering::SeqCst);
        }
        let patience = (self.servers.len() > 1).then_some(self.connect_timeout);
        let transporter = Arc::downgrade(&self.transporter);
        Connection::new(link, self.urgency, patience, self.seen.clone(), transporter)
    }
}

/// What is told when no server has let the client in. It is worth another attempt as long as one of the errors is temporary.
fn none_of(refused: &[(&str, Error)]) -> Error {
    let (_, first) = refused.iter().find(|(_, error)| error.is_temporary()).unwrap_or(&refused[0]);
    let texts: Vec<String> = refused.iter().map(|(server, error)| format!("{server}: {error}")).collect();
    Error::new(first.kind, first.code, format!("no server takes this client: {}", texts.join("; ")))
}

/// Tries to connect as often as the policy says. Ends early when the client is gone.
async fn persist(remote: Weak<Remote>, slot: usize) -> Result<Arc<Connection>, Error> {
    let mut pause = Duration::ZERO;
    let mut attempt = 0;
    loop {
        let Some(remote) = remote.upgrade() else { return Err(Error::disconnected("the client is closed")) };
        attempt += 1;
        let error = match remote.connect(&remote.slots[slot]).await {
            Ok(connection) => return Ok(connection),
            Err(error) if !error.is_temporary() => return Err(error),
            Err(error) => error,
        };
        let retry = remote.retry.clone();
        drop(remote);
        if attempt >= retry.attempts.max(1) {
            return Err(Error::new(ErrorKind::Disconnected, 0, error.message));
        }
        pause = (pause * 2).clamp(retry.first_pause, retry.longest_pause.max(retry.first_pause));
        timer::sleep(jittered(pause)).await;
    }
}

/// A number of the calling thread's own, counted from 0.
fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static MINE: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    MINE.with(|mine| *mine)
}

impl Drop for Remote {
    fn drop(&mut self) {
        for slot in &self.slots {
            if let State::Open(connection) = &*slot.state.lock() {
                connection.link.close(CloseReason::Here);
            }
        }
        if let Some(places) = &self.places {
            places.close();
        }
    }
}

/// A link in use.
pub(crate) struct Connection {
    link: Arc<Link>,
    urgency: Urgency,
    /// How long the server may be silent while requests wait, where there is another to go to.
    patience: Option<Duration>,
    seen: Arc<Seen>,
    transporter: Weak<Transporter>,
    /// The node of the cluster that it leads to, by number; 0: not known.
    node: AtomicU16,
}

impl Connection {
    pub(super) fn new(
        link: Arc<Link>,
        urgency: Urgency,
        patience: Option<Duration>,
        seen: Arc<Seen>,
        transporter: Weak<Transporter>,
    ) -> Result<Arc<Connection>, Error> {
        match session_of(&link) {
            Some(_) => Ok(Arc::new(Connection { link, urgency, patience, seen, transporter, node: AtomicU16::new(0) })),
            None => Err(Error::disconnected("it was closed at once")),
        }
    }

    pub fn node(&self) -> Option<NodeId> {
        Some(NodeId(self.node.load(Ordering::Relaxed))).filter(|node| *node != NodeId(0))
    }

    pub fn set_node(&self, node: NodeId) {
        self.node.store(node.0, Ordering::Relaxed);
    }

    /// These are told when the server is silent while requests wait; once, before the first request.
    pub fn belongs_to(&self, places: &Weak<Places>) {
        let _ = self.session().places.set(places.clone());
    }

    pub fn peer(&self) -> SocketAddr {
        self.link.peer()
    }

    pub fn close(&self, reason: CloseReason) {
        self.link.close(reason);
    }

    /// See [`super::Line::epoch`].
    pub fn epoch(&self) -> u64 {
        self.seen.epoch.load(Ordering::SeqCst)
    }

    fn session(&self) -> &Session {
        session_of(&self.link).expect("checked when the connection was made")
    }

    pub fn is_usable(&self) -> bool {
        !self.link.is_closed() && !self.session().goodbye.load(Ordering::Acquire)
    }

    pub fn give_up(&self, why: &str) {
        give_up(&self.link, self.session(), why);
    }

    fn header(&self, kind: Kind, number: u64, transaction: u64, timeout: Duration) -> Header {
        let identity = self.link.identity();
        Header {
            cluster: identity.cluster,
            incarnation: identity.incarnation,
            schema: self.seen.schema.load(Ordering::Relaxed),
            transaction,
            timestamp: self.seen.timestamp.load(Ordering::Relaxed),
            deadline_us: u32::try_from(timeout.as_micros()).unwrap_or(u32::MAX),
            ..Header::new(kind, number)
        }
    }

    /// See [`super::Line::call`]. `timeout` zero: none.
    pub async fn call(
        self: &Arc<Self>,
        ask: Ask,
        timeout: Duration,
        build: impl Fn(Vec<u8>) -> Vec<u8>,
    ) -> Result<(Kind, Bytes), CallError> {
        loop {
            match self.send(ask, timeout, &build) {
                Ok(mut pending) => return (&mut pending).await.map_err(|lost| self.lost(ask, timeout, lost)),
                Err(TransportError::Congested { .. }) => {
                    self.link.writable().await.map_err(|error| CallError::lost(Error::disconnected(error)))?;
                }
                // Nothing has left this process.
                Err(error) => return Err(CallError::lost(Error::disconnected(error))),
            }
        }
    }

    fn send(
        self: &Arc<Self>,
        ask: Ask,
        timeout: Duration,
        build: &impl Fn(Vec<u8>) -> Vec<u8>,
    ) -> Result<Pending, TransportError> {
        blocking::receives_for(&self.transporter);
        let session = self.session();
        let until = (!timeout.is_zero()).then(|| Instant::now() + timeout);
        let number = session.waiting.begin(until).map_err(|lost| match lost {
            Lost::Closed(why) => TransportError::Closed(CloseReason::Protocol(why)),
            Lost::TimedOut => TransportError::Closed(CloseReason::Here),
        })?;
        let mut pending = Pending { connection: self.clone(), number, sent: false };
        let payload = build(self.link.buffer());
        self.link.send(&self.header(ask.kind, number, ask.transaction, timeout), payload, self.urgency)?;
        pending.sent = true;
        if until.is_some() || self.patience.is_some() {
            watch(&self.link, session, timeout, self.patience);
        }
        Ok(pending)
    }

    pub fn tell(&self, kind: Kind, transaction: u64, build: impl Fn(Vec<u8>) -> Vec<u8>) {
        let payload = build(self.link.buffer());
        // A link that is closed has ended everything that was open on it.
        let _ = self.link.send(&self.header(kind, 0, transaction, Duration::ZERO), payload, self.urgency);
    }

    fn lost(&self, ask: Ask, timeout: Duration, lost: Lost) -> CallError {
        match (lost, ask.effect) {
            (Lost::Closed(why), Effect::None) => CallError::lost(Error::disconnected(why)),
            (Lost::Closed(why), Effect::Lasting) => CallError::lost(Error::outcome_unknown(why)),
            (Lost::TimedOut, effect) => {
                let why = format!("no answer from {} within {} ms", self.link.peer(), timeout.as_millis());
                let error = match effect {
                    Effect::None => Error::new(ErrorKind::Timeout, codes::QUERY_TIMEOUT, why),
                    Effect::Lasting => Error::outcome_unknown(why),
                };
                CallError { error, ended: true, answered: false }
            }
        }
    }
}

/// A request in flight. Dropping it before its answer cancels it.
struct Pending {
    connection: Arc<Connection>,
    number: u64,
    sent: bool,
}

impl Future for Pending {
    type Output = Result<(Kind, Bytes), Lost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let pending = &mut *self;
        let answer = std::task::ready!(pending.connection.session().waiting.poll(pending.number, cx));
        let number = std::mem::take(&mut pending.number);
        if matches!(answer, Err(Lost::TimedOut)) {
            pending.connection.cancel(number);
        }
        Poll::Ready(answer.map(|frame| (frame.header.kind, frame.payload)))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.number != 0 && self.connection.session().waiting.forget(self.number) && self.sent {
            self.connection.cancel(self.number);
        }
    }
}

impl Connection {
    fn cancel(&self, number: u64) {
        self.tell(Kind::Cancel, 0, |mut payload| {
            payload.extend_from_slice(&number.to_le_bytes());
            payload
        });
    }
}
