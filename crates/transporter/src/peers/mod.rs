//! Between nodes: a link to each peer that something is sent to, made and kept by itself.
//!
//! Peers are known by their address. Whoever has something to send says so ([`Peers::send`], [`Peers::call`]); the first message makes the link. Each side sends on the link that it made
//! and reads from those that others made to it, so two nodes that talk have one link in each direction. Answers come back on the link of the request.
//!
//! # What must not wait
//! Calls, and messages that are sent as urgent, have links of their own, which each side reads on a thread of its own ([`Options::thread_apart`]): neither a long message before them nor what the handler does with another holds
//! them up. Such a link begins with an empty call; that tells the side that accepts it what it is.
//!
//! # What is promised, and what is not
//! Nothing blocks and memory is bounded, whatever a peer does. A message is sent once or dropped: while a link is being made a bounded queue keeps the newest; when there is none and the last attempt
//! has failed, until the next is due, everything is dropped at once; a peer that does not read gets no more than the link's limit. Whoever needs it done says it again. A call whose link ends, or that is
//! dropped, fails; it may have been done.
//!
//! # Dead links
//! Attempts to connect are repeated when somebody has something to send, after a wait that doubles up to a second; a peer that connects to us from the address that it says it has is tried at once.
//! Links are asked for a sign of life twice a second (`Ping`); one that gives none and takes no bytes for four seconds is closed. Time is counted in rounds of this process, so that one that
//! was stopped itself does not take everybody else for dead.

mod peer;

pub use peer::PeerStatistics;

use crate::{
    CloseReason, Handler, Identity, Link, Name, NodeTls, Options, Secret, Security, Statistics, Tls, TransportError,
    Transporter, Urgency,
};
use bytes::Bytes;
use futures::channel::oneshot;
use parking_lot::{Condvar, Mutex};
use peer::{Peer, Post};
use rauk_wire::{Frame, Header, Kind, MAX_PAYLOAD};
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A round of looking after links.
const ROUND: Duration = Duration::from_millis(250);
/// An attempt to connect, handshake included.
const CONNECT: Duration = Duration::from_secs(2);
/// A peer to whom nobody has sent anything for so long is forgotten.
const UNUSED: Duration = Duration::from_secs(60);
/// Of an incarnation: those in which processes of the same directory differ.
const PROCESS_BITS: u32 = 16;
/// In the name that a node says in its handshake, before its address.
const AT: &str = " at ";

/// What comes in. Calls come on receive threads and must not block.
pub trait PeerHandler: Send + Sync + 'static {
    /// A message ([`Kind::Member`]); `from`: the node that the link's certificate names, where links have some.
    fn on_message(&self, from: Option<Name>, payload: Bytes);
    /// A request ([`Kind::Raft`]): what the future gives is sent back.
    fn on_request(&self, payload: Bytes) -> Pin<Box<dyn Future<Output = Vec<u8>> + Send>>;
    /// A request on a link on which the peer has proved the secret and shown no certificate: it asks for one.
    fn on_enrol(&self, payload: Bytes) -> Pin<Box<dyn Future<Output = Vec<u8>> + Send>>;
}

/// Messages and bytes of one kind, headers left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub sent: u64,
    pub sent_bytes: u64,
    pub received: u64,
    pub received_bytes: u64,
}

#[derive(Debug, Default)]
struct Counted {
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    received: AtomicU64,
    received_bytes: AtomicU64,
}

impl Counted {
    fn on_sent(&self, bytes: usize) {
        self.sent.fetch_add(1, Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
    }

    fn on_received(&self, bytes: usize) {
        self.received.fetch_add(1, Relaxed);
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
    }

    fn get(&self) -> Traffic {
        Traffic {
            sent: self.sent.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            received: self.received.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
        }
    }
}

/// What a link is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    Common,
    /// Calls and urgent messages.
    Urgent,
}

/// A call that waits for its answer.
struct Call {
    peer: Weak<Peer>,
    answer: oneshot::Sender<Result<Bytes, TransportError>>,
}

struct Inner {
    /// As [`incarnation`] makes it, or 0.
    incarnation: u64,
    /// Of links without TLS; and of nodes that get a certificate.
    secret: Secret,
    tls: Option<Arc<NodeTls>>,
    /// The node that is expected at an address.
    expected: Mutex<HashMap<String, u16>>,
    handler: Arc<dyn PeerHandler>,
    transporter: OnceLock<Weak<Transporter>>,
    peers: Mutex<BTreeMap<(String, Lane), Arc<Peer>>>,
    calls: Mutex<HashMap<u64, Call>>,
    next: AtomicU64,
    messages: Counted,
    requests: Counted,
    stopping: AtomicBool,
    /// The rounds' thread sleeps here.
    asleep: Mutex<()>,
    wake: Condvar,
}

/// Links to other nodes, and what listens for theirs. Dropping it closes them.
pub struct Peers {
    transporter: Arc<Transporter>,
    inner: Arc<Inner>,
    rounds: Mutex<Option<JoinHandle<()>>>,
}

/// The name that a node says in its handshake.
pub fn node_name(program: &str, address: &str) -> String {
    format!("{program}{AT}{address}")
}

/// The number by which a node knows itself and others that believe to be it: random numbers of its data directory and of its process. A process may be reached by names that it knows nothing of.
pub fn incarnation(directory: u64, process: u64) -> u64 {
    let low = (1 << PROCESS_BITS) - 1;
    directory & !low | process & low
}

impl Peers {
    /// `identity.name` as [`node_name`] makes it; `identity.incarnation` as [`incarnation`] does, or 0.
    pub fn start(
        options: Options,
        identity: Identity,
        (secret, tls): (Secret, Option<Arc<NodeTls>>),
        handler: Arc<dyn PeerHandler>,
    ) -> Result<Arc<Peers>, TransportError> {
        let inner = Arc::new(Inner {
            incarnation: identity.incarnation,
            secret,
            tls,
            expected: Mutex::default(),
            handler,
            transporter: OnceLock::new(),
            peers: Mutex::default(),
            calls: Mutex::default(),
            next: AtomicU64::new(1),
            messages: Counted::default(),
            requests: Counted::default(),
            stopping: AtomicBool::new(false),
            asleep: Mutex::default(),
            wake: Condvar::new(),
        });
        let options = Options { thread_apart: true, ..options };
        let transporter = Transporter::start(options, identity, Arc::new(Ear(inner.clone())))?;
        inner.transporter.set(Arc::downgrade(&transporter)).expect("set once");
        let looking = inner.clone();
        let rounds = std::thread::Builder::new()
            .name("rauk-peers".into())
            .spawn(move || looking.run())
            .map_err(|e| TransportError::Configuration(format!("cannot start a thread: {e}")))?;
        Ok(Arc::new(Peers { transporter, inner, rounds: Mutex::new(Some(rounds)) }))
    }

    /// Lets peers in that have a certificate; without TLS those that know the secret.
    pub fn listen(&self, listener: TcpListener) -> Result<SocketAddr, TransportError> {
        let tls = self.inner.tls.clone().map(Tls::Nodes);
        self.transporter.listen(listener, Security { secret: Some(self.inner.secret.clone()), tls })
    }

    /// Which node is at which address: links that are made from now on are refused by others.
    pub fn expect(&self, nodes: HashMap<String, u16>) {
        *self.inner.expected.lock() = nodes;
    }

    /// Ends the links that this side has made; the next messages make new ones, with the certificate of then.
    pub fn reconnect(&self) {
        let peers: Vec<Arc<Peer>> = self.inner.peers.lock().values().cloned().collect();
        peers.iter().for_each(|peer| peer.disconnect());
    }

    /// Asks a node for a certificate, on a link of its own: both sides prove the secret.
    pub fn enrol(
        &self,
        address: &str,
        tls: &Arc<NodeTls>,
        payload: Vec<u8>,
    ) -> impl Future<Output = Result<Bytes, TransportError>> + Send + 'static {
        let security = Security { secret: Some(self.inner.secret.clone()), tls: Some(Tls::Enrol(tls.clone())) };
        let (transporter, inner, address) = (self.transporter.clone(), self.inner.clone(), address.to_string());
        async move {
            // It is in no list: the call fails with the link.
            let peer = Arc::new(Peer::new(&address, Lane::Urgent));
            let connected = transporter.connect(&address, &security, CONNECT).await;
            let link = connected.and_then(|link| inner.not_oneself(&peer, link))?;
            let number = inner.next.fetch_add(1, Relaxed);
            let (sender, receiver) = oneshot::channel();
            inner.calls.lock().insert(number, Call { peer: Arc::downgrade(&peer), answer: sender });
            let _forget = Forget { inner: inner.clone(), number };
            link.set_data(peer.clone());
            let mut frame = link.buffer();
            frame.extend_from_slice(&payload);
            link.send(&Header::new(Kind::Raft, number), frame, Urgency::Force)?;
            let answer = receiver.await.unwrap_or(Err(TransportError::Closed(CloseReason::Here)));
            link.close(CloseReason::Here);
            answer
        }
    }

    /// See [`Transporter::set_cluster`].
    pub fn set_cluster(&self, cluster: [u8; 16]) {
        self.transporter.set_cluster(cluster);
    }

    /// A message, to be handed to [`PeerHandler::on_message`] there; or it is dropped.
    pub fn send(&self, address: &str, payload: Vec<u8>) {
        self.inner.post_message(address, Lane::Common, payload, Urgency::Adaptive);
    }

    /// The same for one that must not wait for others. It may overtake them.
    pub fn send_urgent(&self, address: &str, payload: Vec<u8>) {
        self.inner.post_message(address, Lane::Urgent, payload, Urgency::Force);
    }

    /// A request, to be handed to [`PeerHandler::on_request`] there, and its answer.
    pub fn call(
        &self,
        address: &str,
        payload: Vec<u8>,
    ) -> impl Future<Output = Result<Bytes, TransportError>> + Send + 'static {
        let number = self.inner.next.fetch_add(1, Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.inner.requests.on_sent(payload.len());
        let peer = self.inner.peer(address, Lane::Urgent);
        self.inner.calls.lock().insert(number, Call { peer: Arc::downgrade(&peer), answer: sender });
        let forget = Forget { inner: self.inner.clone(), number };
        self.inner.post_to(&peer, Post { header: Header::new(Kind::Raft, number), payload }, Urgency::Force);
        async move {
            let _forget = forget;
            receiver.await.unwrap_or(Err(TransportError::Closed(CloseReason::Here)))
        }
    }

    pub fn statistics(&self) -> Statistics {
        self.transporter.statistics()
    }

    /// Of messages, and of requests with their answers.
    pub fn traffic(&self) -> (Traffic, Traffic) {
        (self.inner.messages.get(), self.inner.requests.get())
    }

    /// One for each address: all links there taken together.
    pub fn peers(&self) -> Vec<PeerStatistics> {
        let peers: Vec<Arc<Peer>> = self.inner.peers.lock().values().cloned().collect();
        let mut found: Vec<PeerStatistics> = Vec::new();
        for one in peers.iter().map(|peer| peer.statistics()) {
            match found.last_mut().filter(|last| last.address == one.address) {
                Some(last) => last.add(one),
                None => found.push(one),
            }
        }
        found
    }

    /// Closes everything; blocks until the threads have ended. Not to be called by a handler.
    pub fn shutdown(&self) {
        self.inner.stopping.store(true, Relaxed);
        {
            let _asleep = self.inner.asleep.lock();
            self.inner.wake.notify_all();
        }
        if let Some(rounds) = self.rounds.lock().take() {
            // It cannot have panicked without having said so.
            let _ = rounds.join();
        }
        self.transporter.shutdown(Duration::ZERO);
        self.inner.calls.lock().clear();
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// A call that nobody waits for any more.
struct Forget {
    inner: Arc<Inner>,
    number: u64,
}

impl Drop for Forget {
    fn drop(&mut self) {
        self.inner.calls.lock().remove(&self.number);
    }
}

impl Inner {
    fn peer(&self, address: &str, lane: Lane) -> Arc<Peer> {
        let mut peers = self.peers.lock();
        let key = (address.to_string(), lane);
        match peers.get(&key) {
            Some(peer) => peer.clone(),
            None => {
                let peer = Arc::new(Peer::new(address, lane));
                peers.insert(key, peer.clone());
                peer
            }
        }
    }

    fn post_message(self: &Arc<Self>, address: &str, lane: Lane, payload: Vec<u8>, urgency: Urgency) {
        self.messages.on_sent(payload.len());
        let post = Post { header: Header::new(Kind::Member, 0), payload };
        self.post_to(&self.peer(address, lane), post, urgency);
    }

    fn post_to(self: &Arc<Self>, peer: &Arc<Peer>, post: Post, urgency: Urgency) {
        if post.payload.len() > MAX_PAYLOAD {
            let bytes = post.payload.len();
            tracing::error!(peer = peer.address, bytes, "a message is too long for a frame and is dropped");
            let text = format!("{bytes} bytes are too long for a frame");
            return self.fail(post.header.request, TransportError::Configuration(text));
        }
        let now = Instant::now();
        let sent = peer.post(now, post, urgency);
        for (number, error) in sent.failed {
            self.fail(number, error);
        }
        if sent.connect {
            self.connect(peer);
        }
    }

    fn fail(&self, number: u64, error: TransportError) {
        let call = self.calls.lock().remove(&number);
        if let Some(call) = call {
            // Whoever asked may be gone.
            let _ = call.answer.send(Err(error));
        }
    }

    /// Connects on a thread of its own: names are resolved there, and one peer's trouble holds up no other.
    fn connect(self: &Arc<Self>, peer: &Arc<Peer>) {
        let (inner, peer) = (self.clone(), peer.clone());
        let life = {
            let (inner, peer) = (inner.clone(), peer.clone());
            move || {
                let Some(transporter) = inner.transporter.get().and_then(Weak::upgrade) else { return };
                let name = inner.name();
                let security = inner.security();
                let mut connecting = Box::pin(transporter.connect(&peer.address, &security, CONNECT));
                let result = transporter.receive_until(|context| connecting.as_mut().poll(context));
                drop(connecting);
                let result = result.and_then(|link| inner.not_oneself(&peer, link));
                inner.connected(&peer, result.and_then(|link| inner.as_expected(&peer, name, link)));
            }
        };
        if let Err(e) = std::thread::Builder::new().name("rauk-connect".into()).spawn(life) {
            let error = TransportError::Configuration(format!("cannot start a thread: {e}"));
            inner.connected(&peer, Err(error));
        }
    }

    /// What a link to a peer shows and asks for: certificates, or else the secret.
    fn security(&self) -> Security {
        match &self.tls {
            Some(tls) => Security { secret: None, tls: Some(Tls::Nodes(tls.clone())) },
            None => Security { secret: Some(self.secret.clone()), tls: None },
        }
    }

    fn name(&self) -> Option<Name> {
        self.tls.as_ref().and_then(|tls| tls.name())
    }

    /// The link is to the node that is meant, and this node has shown on it who it is now.
    fn as_expected(&self, peer: &Peer, shown: Option<Name>, link: Arc<Link>) -> Result<Arc<Link>, TransportError> {
        let expected = self.expected.lock().get(&peer.address).copied();
        let found = link.certified().map_or(0, |name| name.node);
        if let Some(expected) = expected
            && found != 0
            && found != expected
        {
            link.close(CloseReason::Here);
            return Err(TransportError::Certificate {
                address: peer.address.clone(),
                reason: format!("its certificate is that of node {found}, and node {expected} is expected there"),
                permanent: false,
            });
        }
        if shown != self.name() {
            link.close(CloseReason::Here);
            return Err(TransportError::Closed(CloseReason::Here));
        }
        Ok(link)
    }

    fn not_oneself(&self, peer: &Peer, link: Arc<Link>) -> Result<Arc<Link>, TransportError> {
        let theirs = link.identity().incarnation;
        if self.incarnation == 0 || theirs >> PROCESS_BITS != self.incarnation >> PROCESS_BITS {
            return Ok(link);
        }
        link.close(CloseReason::Here);
        let address = peer.address.clone();
        Err(match theirs == self.incarnation {
            true => TransportError::Oneself { address },
            false => TransportError::Configuration(format!(
                "the node at {address} runs with this node's data directory, or a copy of it"
            )),
        })
    }

    fn connected(&self, peer: &Arc<Peer>, result: Result<Arc<Link>, TransportError>) {
        let failed = match result {
            Ok(link) => {
                link.set_data(peer.clone());
                if peer.lane == Lane::Urgent {
                    self.put_apart(&link);
                    let greeting = Header::new(Kind::Raft, self.next.fetch_add(1, Relaxed));
                    // A link that has ended already is found out below.
                    let _ = link.send(&greeting, link.buffer(), Urgency::Force);
                }
                peer.connected(&link)
            }
            Err(error) => {
                let permanent = error.class() == rauk_types::ErrorClass::Permanent;
                let failed = peer.failed(Instant::now(), error.clone());
                if failed.is_news {
                    let peer = &peer.address;
                    match permanent {
                        // Whoever has asked there is told.
                        _ if matches!(error, TransportError::Oneself { .. }) => tracing::debug!(peer, "{error}"),
                        true => tracing::error!(peer, "no link to a node: {error}"),
                        false => tracing::warn!(peer, "no link to a node: {error}"),
                    }
                }
                failed.calls.into_iter().map(|number| (number, error.clone())).collect()
            }
        };
        for (number, error) in failed {
            self.fail(number, error);
        }
    }

    /// It is read by the thread that does nothing else.
    fn put_apart(&self, link: &Arc<Link>) {
        let Some(transporter) = self.transporter.get().and_then(Weak::upgrade) else { return };
        let apart = transporter.options().receive_threads;
        if link.receive_thread() != apart {
            link.move_to(apart);
        }
    }

    /// Looks after links until the end.
    fn run(&self) {
        loop {
            let peers: Vec<Arc<Peer>> = {
                let mut asleep = self.asleep.lock();
                if self.stopping.load(Relaxed) {
                    return;
                }
                self.wake.wait_for(&mut asleep, ROUND);
                if self.stopping.load(Relaxed) {
                    return;
                }
                let mut peers = self.peers.lock();
                let now = Instant::now();
                peers.retain(|_, peer| !peer.is_unused(now, UNUSED));
                peers.values().cloned().collect()
            };
            for peer in peers {
                peer.on_round();
            }
        }
    }

    /// All calls of a peer fail.
    fn fail_calls(&self, peer: &Arc<Peer>, error: &TransportError) {
        let mut lost = Vec::new();
        let mut calls = self.calls.lock();
        calls.retain(|_, call| {
            let is_his = std::ptr::eq(call.peer.as_ptr(), Arc::as_ptr(peer));
            if is_his {
                let (sender, _) = oneshot::channel();
                lost.push(std::mem::replace(&mut call.answer, sender));
            }
            !is_his
        });
        drop(calls);
        for answer in lost {
            // Whoever asked may be gone.
            let _ = answer.send(Err(error.clone()));
        }
    }
}

/// The transporter's handler.
struct Ear(Arc<Inner>);

fn peer_of(link: &Link) -> Option<Arc<Peer>> {
    link.data().and_then(|data| data.clone().downcast().ok())
}

impl Handler for Ear {
    fn on_open(&self, link: &Arc<Link>) {
        if !link.accepted {
            return;
        }
        let name = &link.identity().name;
        tracing::debug!(from = %link.peer(), "{name} has connected");
        if let Some((_, address)) = name.rsplit_once(AT) {
            let peers = self.0.peers.lock();
            for lane in [Lane::Common, Lane::Urgent] {
                if let Some(peer) = peers.get(&(address.to_string(), lane)) {
                    peer.try_at_once();
                }
            }
        }
    }

    fn on_frame(&self, link: &Arc<Link>, frame: Frame) {
        let (header, bytes) = (frame.header, frame.payload.len());
        // Who has proved the secret only may ask for a certificate, and nothing else.
        let enrols = self.0.tls.is_some() && link.accepted && link.certified().is_none();
        match header.kind {
            Kind::Raft if enrols => {
                let answering = self.0.handler.on_enrol(frame.payload);
                let back = link.clone();
                link.spawn(async move {
                    let mut answer = back.buffer();
                    answer.extend_from_slice(&answering.await);
                    // A link that has ended needs no answer.
                    let _ = back.send(&Header::new(Kind::RaftAnswer, header.request), answer, Urgency::Force);
                });
            }
            kind if enrols => {
                link.close(CloseReason::Protocol(format!("{kind:?} is for nodes with a certificate")));
            }
            Kind::Member if link.accepted => {
                self.0.messages.on_received(bytes);
                self.0.handler.on_message(link.certified(), frame.payload);
            }
            Kind::Raft if link.accepted => {
                self.0.requests.on_received(bytes);
                self.0.put_apart(link);
                let answering = self.0.handler.on_request(frame.payload);
                let (back, inner) = (link.clone(), self.0.clone());
                link.spawn(async move {
                    let payload = answering.await;
                    if payload.len() > MAX_PAYLOAD {
                        return back.close(CloseReason::Protocol("an answer is too long for a frame".into()));
                    }
                    inner.requests.on_sent(payload.len());
                    let mut answer = back.buffer();
                    answer.extend_from_slice(&payload);
                    // A link that has ended needs no answer.
                    let _ = back.send(&Header::new(Kind::RaftAnswer, header.request), answer, Urgency::Force);
                });
            }
            Kind::RaftAnswer if !link.accepted => {
                if let Some(peer) = peer_of(link) {
                    peer.heard();
                }
                self.0.requests.on_received(bytes);
                let call = self.0.calls.lock().remove(&header.request);
                if let Some(call) = call {
                    // Whoever asked may be gone.
                    let _ = call.answer.send(Ok(frame.payload));
                }
            }
            Kind::Pong | Kind::Goodbye if !link.accepted => {
                if let Some(peer) = peer_of(link) {
                    peer.heard();
                }
            }
            kind => link.close(CloseReason::Protocol(format!("{kind:?} does not belong between nodes"))),
        }
    }

    fn on_close(&self, link: &Arc<Link>, reason: &CloseReason) {
        let Some(peer) = peer_of(link) else { return };
        if peer.closed(link) && !self.0.stopping.load(Relaxed) {
            tracing::info!(peer = peer.address, "the link to a node has ended: {reason}");
        }
        self.0.fail_calls(&peer, &TransportError::Closed(reason.clone()));
    }
}
