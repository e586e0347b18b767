//! A connection before it is a link: connecting, TLS, the handshake, and the last words to a peer that is refused.
//!
//! The protocol's steps are [`crate::handshake`]'s; here they meet the socket. Frames of a peer that has not proved who it is are bounded to a few KiB, the time for all of it by a
//! deadline, and the number of half-open connections by a limit. A refused peer is told why; then our side ends sending and reads away what the peer still says, for a
//! second at most: closing at once would reset the connection, and the words with it.

use super::sockets::Listening;
use crate::certificates::explain;
use crate::handshake::{ClientHandshake, Limits, Room, ServerHandshake, Side, Step};
use crate::login::{Granted, Stranger};
use crate::security::fill_random;
use crate::shared::Shared;
use crate::stream::Stream;
use crate::{CloseReason, Identity, Link, Secret, Security, TransportError};
use parking_lot::Mutex;
use rauk_wire::frame::{HEADER, Parsed, parse_bounded};
use rauk_wire::hello::{NONCE, Refusal, Refused, Role};
use rauk_wire::{Kind, MAX_HANDSHAKE};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 << 10;
/// What a TLS connection begins with.
const TLS_HANDSHAKE: u8 = 22;

/// Where the result of [`crate::Transporter::connect`] is waited for. The first result counts.
#[derive(Default)]
pub(crate) struct Slot {
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    result: Option<Result<Arc<Link>, TransportError>>,
    waker: Option<Waker>,
    resolved: bool,
}

impl Slot {
    pub fn resolve(&self, result: Result<Arc<Link>, TransportError>) {
        let mut state = self.state.lock();
        if state.resolved {
            return;
        }
        state.resolved = true;
        state.result = Some(result);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub fn poll(&self, context: &mut Context<'_>) -> Poll<Result<Arc<Link>, TransportError>> {
        let mut state = self.state.lock();
        match state.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

enum Talk {
    /// `suffices`: a certificate takes the place of the secret.
    Server { secret: Option<Secret>, suffices: bool, machine: Option<ServerHandshake> },
    /// `verifies`: the server's certificate is proof enough.
    Client { secret: Option<Secret>, verifies: bool, machine: Option<ClientHandshake>, address: String },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Talking,
    /// Refused: until the peer has ended too.
    Lingering,
}

pub(crate) struct Opening {
    pub stream: Arc<Stream>,
    pub peer: SocketAddr,
    pub serial: u64,
    /// Changes once, when the peer is refused.
    pub deadline: Duration,
    timeout: Duration,
    shared: Arc<Shared>,
    talk: Talk,
    /// Where somebody waits for the link; gone when it has been told, or the link will tell.
    slot: Option<Arc<Slot>>,
    phase: Phase,
    inbound: Vec<u8>,
    /// Raw bytes (sealed under TLS) and how many of them are gone.
    outbound: Vec<u8>,
    sent: usize,
    lingered: usize,
    /// What the peer speaks, TLS or not, has been looked at; it is not what this port speaks, and is answered without.
    looked: bool,
    raw: bool,
    /// Counted among half-open ones; has a place among the links.
    half_open: bool,
    place: bool,
}

/// What became of it.
pub(crate) enum Progress {
    Pending,
    Open(Opened),
    /// Over, and whoever waits has been told.
    Failed,
}

/// What a link is made of.
pub(crate) struct Opened {
    pub identity: Identity,
    pub limits: Limits,
    pub accepted: bool,
    pub slot: Option<Arc<Slot>>,
    pub granted: Option<Granted>,
    /// Read already, and not yet sent.
    pub inbound: Vec<u8>,
    pub outbound: Vec<u8>,
}

impl Opening {
    /// A connection that was accepted. It counts as half-open from here on.
    pub fn accepted(shared: Arc<Shared>, listening: &Listening, stream: Stream, peer: SocketAddr) -> Opening {
        let timeout = shared.options.handshake;
        let suffices = listening.tls.as_ref().is_some_and(|tls| tls.certificate_suffices());
        let talk = Talk::Server { secret: listening.secret.clone(), suffices, machine: None };
        let mut opening = Opening::new(shared, stream, peer, timeout, talk, Phase::Talking);
        opening.half_open = true;
        opening
    }

    /// Whether it was accepted, and nobody has proved anything on it yet.
    pub fn is_half_open(&self) -> bool {
        self.half_open
    }

    /// A connection that is being made to `address`.
    pub fn connecting(
        shared: Arc<Shared>,
        stream: Stream,
        peer: SocketAddr,
        security: &Security,
        (address, timeout): (String, Duration),
        slot: Arc<Slot>,
    ) -> Opening {
        let verifies = security.tls.as_ref().is_some_and(|tls| tls.verifies());
        let talk = Talk::Client { secret: security.secret.clone(), verifies, machine: None, address };
        let mut opening = Opening::new(shared, stream, peer, timeout, talk, Phase::Connecting);
        opening.slot = Some(slot);
        opening
    }

    fn new(
        shared: Arc<Shared>,
        stream: Stream,
        peer: SocketAddr,
        timeout: Duration,
        talk: Talk,
        phase: Phase,
    ) -> Opening {
        Opening {
            stream: Arc::new(stream),
            peer,
            serial: shared.next_serial(),
            deadline: shared.now() + timeout,
            timeout,
            shared,
            talk,
            slot: None,
            phase,
            inbound: Vec::new(),
            outbound: Vec::new(),
            sent: 0,
            lingered: 0,
            looked: false,
            raw: false,
            half_open: false,
            place: false,
        }
    }

    /// The time is over.
    pub fn on_deadline(&mut self) {
        if let Talk::Client { address, .. } = &self.talk {
            let millis = self.timeout.as_millis() as u64;
            self.resolve(TransportError::Timeout { address: address.clone(), millis });
        } else if self.phase != Phase::Lingering {
            self.shared.refused.fetch_add(1, Relaxed);
            tracing::info!(peer = %self.peer, "a peer did not finish its handshake in time");
        }
    }

    /// The socket has changed.
    pub fn advance(&mut self) -> Progress {
        match self.try_advance() {
            Ok(Some(opened)) => Progress::Open(opened),
            Ok(None) => Progress::Pending,
            Err(reason) => {
                self.fail(reason);
                Progress::Failed
            }
        }
    }

    fn fail(&self, reason: String) {
        match &self.talk {
            Talk::Client { address, .. } => {
                self.resolve(TransportError::Connect { address: address.clone(), reason });
            }
            Talk::Server { .. } if self.phase != Phase::Lingering => {
                self.shared.refused.fetch_add(1, Relaxed);
                let peer = self.peer;
                match self.between_nodes() && self.stream.is_tls() {
                    true => tracing::warn!(%peer, "a peer was not let in: {reason}"),
                    false => tracing::info!(%peer, "a peer was not let in: {reason}"),
                }
            }
            Talk::Server { .. } => {}
        }
    }

    /// `Err`: it is over, for this reason.
    fn try_advance(&mut self) -> Result<Option<Opened>, String> {
        if self.phase == Phase::Connecting && !self.connected()? {
            return Ok(None);
        }
        if !self.looked && !self.look()? {
            return Ok(None);
        }
        let mut chunk = [0; 2048];
        loop {
            self.flush()?;
            let read = if self.raw { self.stream.read_raw(&mut chunk) } else { self.stream.read(&mut chunk) };
            match read {
                Ok(0) if self.phase == Phase::Lingering => return Err("it has gone".into()),
                Ok(0) if self.is_shaking_hands() => return Err(self.no_tls()),
                Ok(0) => return Err("the peer closed the connection during the handshake".into()),
                Ok(count) if self.phase == Phase::Lingering => {
                    self.lingered += count;
                    if self.lingered > LINGER_BYTES {
                        return Err("it goes on talking".into());
                    }
                }
                Ok(count) => {
                    self.inbound.extend_from_slice(&chunk[..count]);
                    if let Some(opened) = self.read_frames()? {
                        return Ok(Some(opened));
                    }
                }
                // TLS wants to write before it reads on.
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => {
                    // An alert tells the peer what is wrong.
                    let _ = self.flush();
                    return Err(self.broken(&e));
                }
            }
        }
        self.flush()?;
        Ok(None)
    }

    /// Looks whether the peer speaks TLS where this port does, and not where it does not. One that does not is told so,
    /// in plain: a program without TLS can read that, and one with TLS sees that it gets none. `false`: not known yet.
    fn look(&mut self) -> Result<bool, String> {
        if matches!(self.talk, Talk::Server { .. }) {
            let speaks_tls = match self.stream.peek() {
                Ok(Some(byte)) => byte == TLS_HANDSHAKE,
                // The end is found below.
                Ok(None) => self.stream.is_tls(),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(false),
                Err(e) => return Err(e.to_string()),
            };
            if speaks_tls != self.stream.is_tls() {
                self.raw = true;
                let (here, there) = if speaks_tls { ("plain", "TLS") } else { ("TLS", "plain") };
                let text = match self.between_nodes() {
                    true => format!(
                        "the links of this node are {here}, those of the other one {there}: \
                         start all nodes of a cluster with --plain-links, or none"
                    ),
                    false => format!("this port speaks {here}, the client {there}: change one of them"),
                };
                let machine = ServerHandshake::new(self.side(), self.serial, self.shared.options.max_requests);
                if let Step::Refuse(frame, refused) = machine.refuse(Refusal::Version, text) {
                    self.refuse(&frame, &refused).map_err(|e| e.to_string())?;
                }
            }
        }
        self.looked = true;
        Ok(true)
    }

    fn between_nodes(&self) -> bool {
        match self.talk {
            Talk::Server { .. } => self.shared.options.accepts == Some(Role::Node),
            Talk::Client { .. } => self.shared.identity().role == Role::Node,
        }
    }

    fn is_shaking_hands(&self) -> bool {
        self.between_nodes() && !self.raw && self.stream.is_shaking_hands()
    }

    /// The peer has ended the connection instead of answering in TLS.
    fn no_tls(&self) -> String {
        let text = "it ended the connection in the TLS handshake: it has no certificate yet, or its links are plain \
                    (an earlier version, or --plain-links: start all nodes of a cluster with that, or none)";
        self.not_linked(text.into(), false)
    }

    /// What is to be said of an error of the socket, or of TLS.
    fn broken(&self, error: &io::Error) -> String {
        let tls = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        match tls {
            Some(error) if self.between_nodes() => {
                let (reason, permanent) = explain(error);
                self.not_linked(reason, permanent)
            }
            Some(error) => format!("TLS: {error}"),
            None if error.kind() == ErrorKind::ConnectionReset && self.is_shaking_hands() => self.no_tls(),
            None => error.to_string(),
        }
    }

    fn not_linked(&self, reason: String, permanent: bool) -> String {
        if let Talk::Client { address, .. } = &self.talk {
            let (address, reason) = (address.clone(), reason.clone());
            self.resolve(TransportError::Certificate { address, reason, permanent });
        }
        reason
    }

    fn connected(&mut self) -> Result<bool, String> {
        let socket = self.stream.socket();
        if let Some(error) = socket.take_error().map_err(|e| e.to_string())? {
            return Err(error.to_string());
        }
        match socket.peer_addr() {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::NotConnected => return Ok(false),
            Err(e) => return Err(e.to_string()),
        }
        self.phase = Phase::Talking;
        let side = self.side();
        let Talk::Client { machine, .. } = &mut self.talk else { unreachable!("only clients connect") };
        let made = ClientHandshake::new(side).with_account(self.shared.account.get());
        let hello = machine.insert(made).hello();
        self.queue(&hello).map_err(|e| e.to_string())?;
        Ok(true)
    }

    fn side(&self) -> Side {
        let mut nonce = [0; NONCE];
        fill_random(&mut nonce);
        let (secret, certified, certificate_suffices) = match &self.talk {
            Talk::Server { secret, suffices, .. } => (secret, self.stream.is_certified(), *suffices),
            // Without a good certificate of the server TLS does not come about.
            Talk::Client { secret, verifies, .. } => (secret, self.stream.is_tls() && *verifies, false),
        };
        Side {
            identity: self.shared.identity(),
            accepts: self.shared.options.accepts,
            versions: self.shared.versions(),
            secret: secret.clone(),
            certified,
            certificate_suffices,
            nonce,
        }
    }

    fn read_frames(&mut self) -> Result<Option<Opened>, String> {
        loop {
            let inbound = std::mem::take(&mut self.inbound);
            let (kind, total) = match parse_bounded(&inbound, MAX_HANDSHAKE) {
                Ok(Parsed::Whole(header, total)) => (header.kind, total),
                Ok(Parsed::Incomplete(_)) => {
                    self.inbound = inbound;
                    return Ok(None);
                }
                Err(e) => return Err(e.to_string()),
            };
            let step = self.step(kind, &inbound[HEADER..total]);
            self.inbound = inbound;
            self.inbound.drain(..total);
            match step {
                Step::Send(frame) => self.queue(&frame).map_err(|e| e.to_string())?,
                Step::Wait => {}
                Step::Done { last, peer, limits, granted } => {
                    if let Some(last) = last {
                        self.queue(&last).map_err(|e| e.to_string())?;
                    }
                    self.flush()?;
                    return Ok(Some(self.opened(peer, limits, granted)));
                }
                Step::Refuse(frame, refused) => {
                    self.refuse(&frame, &refused).map_err(|e| e.to_string())?;
                    return Ok(None);
                }
                Step::Deny(frame, message) => {
                    self.turn_away(&frame, &message).map_err(|e| e.to_string())?;
                    return Ok(None);
                }
                Step::DeniedBy(denied) => {
                    self.resolve(TransportError::Denied { code: denied.code, message: denied.message });
                    return Err(String::new());
                }
                Step::RefusedBy(refused) => {
                    self.resolve(TransportError::Refused { reason: refused.reason, message: refused.message });
                    return Err(String::new());
                }
                Step::Untrusted => {
                    let Talk::Client { address, .. } = &self.talk else { unreachable!("only clients ask for that") };
                    self.resolve(TransportError::Untrusted { address: address.clone() });
                    return Err(String::new());
                }
                Step::Violation(what) => return Err(what),
            }
        }
    }

    fn refuse(&mut self, frame: &[u8], refused: &Refused) -> io::Result<()> {
        self.turn_away(frame, &refused.message)
    }

    fn turn_away(&mut self, frame: &[u8], message: &str) -> io::Result<()> {
        self.shared.refused.fetch_add(1, Relaxed);
        let peer = self.peer;
        match self.shared.options.accepts {
            // Somebody who wants to be of the cluster, or is taken for it.
            Some(Role::Node) => tracing::warn!(%peer, "a peer was refused: {message}"),
            _ => tracing::info!(%peer, "a peer was refused: {message}"),
        }
        self.phase = Phase::Lingering;
        self.deadline = self.shared.now() + LINGER;
        self.inbound = Vec::new();
        self.queue(frame)
    }

    fn resolve(&self, error: TransportError) {
        if let Some(slot) = &self.slot {
            slot.resolve(Err(error));
        }
    }

    fn step(&mut self, kind: Kind, payload: &[u8]) -> Step {
        let binding = self.between_nodes().then(|| self.stream.binding()).flatten();
        let begin = matches!(&self.talk, Talk::Server { machine: None, .. }).then(|| self.side());
        match &mut self.talk {
            Talk::Server { machine, .. } => {
                if let Some(side) = begin {
                    let (tls, certified) = (self.stream.is_tls(), side.certified);
                    let made = ServerHandshake::new(side, self.serial, self.shared.options.max_requests);
                    let stranger = Stranger { user: String::new(), peer: self.peer.ip(), tls, certified };
                    *machine = Some(made.with_accounts(self.shared.accounts.get(), stranger));
                }
                let (shared, place) = (&self.shared, &mut self.place);
                let machine = machine.as_mut().expect("made above");
                machine.bind(binding);
                machine.on_frame(kind, payload, || {
                    if shared.stopping.load(SeqCst) {
                        return Room::Stopping;
                    }
                    *place = shared.take_place();
                    if *place { Room::Free } else { Room::Full }
                })
            }
            Talk::Client { machine, .. } => match machine {
                Some(machine) => {
                    machine.bind(binding);
                    machine.on_frame(kind, payload)
                }
                None => Step::Violation("the peer spoke first".into()),
            },
        }
    }

    fn opened(&mut self, identity: Identity, limits: Limits, granted: Option<Granted>) -> Opened {
        // The place is the link's from now on.
        self.place = false;
        let slot = self.slot.take();
        Opened {
            identity,
            limits,
            accepted: slot.is_none(),
            slot,
            granted,
            inbound: std::mem::take(&mut self.inbound),
            outbound: std::mem::take(&mut self.outbound).split_off(self.sent),
        }
    }

    fn queue(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.stream.is_tls() && !self.raw {
            return self.stream.seal(frame, &mut self.outbound);
        }
        self.outbound.extend_from_slice(frame);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        if !self.raw {
            self.stream.pull(&mut self.outbound).map_err(|e| e.to_string())?;
        }
        while self.sent < self.outbound.len() {
            match self.stream.write(&self.outbound[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.to_string()),
            }
        }
        self.outbound.clear();
        self.sent = 0;
        if self.phase == Phase::Lingering {
            self.stream.end_sending();
        }
        Ok(())
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if self.half_open {
            self.shared.give_half_open();
        }
        if self.place {
            self.shared.give_place();
        }
        self.resolve(TransportError::Closed(CloseReason::Here));
    }
}
