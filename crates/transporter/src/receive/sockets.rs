//! What a receiver does with each kind of socket: accept, open, read.

use super::inbound::{Inbound, Read, Reader};
use super::opening::{Opened, Opening, Progress};
use super::poll_set::Ready;
use super::receiver::{Receiver, Timer};
use super::tasks::on_panic;
use super::{Command, round};
use crate::link::Place;
use crate::security::ServerTls;
use crate::send::closed_by;
use crate::stream::Stream;
use crate::{CloseReason, Link, Secret, Urgency};
use rauk_wire::{Frame, Header, Kind, WireError};
use rustls::{Connection, ServerConnection};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// Connections accepted before others have their turn.
const ACCEPTS: usize = 64;
/// Pause after a failed accept (out of descriptors): the poll set will not tell again of those who wait.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A socket that others connect to, and what is asked of them.
pub(crate) struct Listening {
    pub listener: TcpListener,
    pub secret: Option<Secret>,
    pub tls: Option<ServerTls>,
}

pub(crate) enum Socket {
    Listening(Box<Listening>),
    Opening(Box<Opening>),
    Link(Box<LinkSocket>),
    /// In use further up the stack.
    Taken,
}

/// A link's side that only its receiver sees.
pub(crate) struct LinkSocket {
    pub link: Arc<Link>,
    pub stream: Arc<Stream>,
    pub inbound: Inbound,
    /// Keys of its pending tasks.
    pub tasks: Vec<usize>,
    /// The poll set has told of the peer's end.
    pub ended: bool,
    /// Where it goes when it has no tasks.
    pub moving_to: Option<usize>,
    /// Frames since the loads were last compared.
    pub frames: u64,
}

/// Hands the frames of one link to the handler.
struct Deliver<'a> {
    link: &'a Arc<Link>,
    frames: u64,
}

impl Reader for Deliver<'_> {
    fn may_read(&mut self) -> bool {
        let link = self.link;
        if link.is_closed() || link.paused.load(SeqCst) {
            return false;
        }
        if !link.must_pause() {
            return true;
        }
        link.paused.store(true, SeqCst);
        // Whoever answered or sent between the two looks has seen no pause.
        if !link.must_pause() && link.paused.swap(false, SeqCst) {
            return true;
        }
        link.received.pauses.fetch_add(1, Relaxed);
        false
    }

    fn on_frame(&mut self, frame: Frame) -> bool {
        self.frames += 1;
        deliver(self.link, frame);
        !self.link.is_closed()
    }
}

fn deliver(link: &Arc<Link>, frame: Frame) {
    let header = &frame.header;
    if header.kind.is_handshake() {
        return link.close(CloseReason::Protocol(format!("{:?} after the handshake", header.kind)));
    }
    if header.format != link.identity().version {
        return link.close(CloseReason::Wire(WireError::Version(header.format)));
    }
    match header.kind {
        Kind::Ping => {
            let mut pong = link.buffer();
            pong.extend_from_slice(&frame.payload);
            // A link that takes no frames any more is closed, and needs no answer.
            let _ = link.send_as(&Header { kind: Kind::Pong, ..*header }, pong, Urgency::Adaptive);
            return;
        }
        // A client's end needs no handling: the link closes.
        Kind::Goodbye if link.accepted => return,
        _ => {}
    }
    if link.accepted && header.request != 0 {
        link.requests.fetch_add(1, SeqCst);
    }
    let handler = &link.shared.handler;
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| handler.on_frame(link, frame))) {
        on_panic(link, "the handler", panic.as_ref());
    }
}

impl Receiver {
    /// A socket has changed, or has something left.
    pub(super) fn handle(&mut self, ready: Ready) {
        let Some(socket) = self.sockets.get_mut(ready.token) else { return };
        match std::mem::replace(socket, Socket::Taken) {
            Socket::Listening(listening) => {
                self.accept(&listening, ready.token);
                self.sockets[ready.token] = Socket::Listening(listening);
            }
            Socket::Opening(opening) => self.advance(ready.token, opening),
            Socket::Link(mut socket) => {
                if ready.writable {
                    socket.link.on_writable();
                }
                socket.ended |= ready.ended;
                if ready.readable || ready.ended {
                    self.read(ready.token, &mut socket);
                }
                self.sockets[ready.token] = Socket::Link(socket);
                self.adopt_spawned();
            }
            Socket::Taken => unreachable!("a receiver handles one socket at a time"),
        }
    }

    fn accept(&mut self, listening: &Listening, token: usize) {
        for _ in 0..ACCEPTS {
            match listening.listener.accept() {
                Ok((stream, peer)) => self.accepted(listening, stream, peer),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                // Connections that ended while they waited.
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    self.add_timer(self.shared.now() + ACCEPT_PAUSE, Timer::Accept(token));
                    return;
                }
            }
        }
        self.again.push(token);
    }

    fn accepted(&mut self, listening: &Listening, socket: TcpStream, peer: SocketAddr) {
        let shared = self.shared.clone();
        if shared.stopping.load(SeqCst) {
            return;
        }
        // Peers that say nothing must not keep others out: the one that has had the most time makes room.
        let room = shared.take_half_open() || self.end_oldest_opening() && shared.take_half_open();
        if !room {
            shared.refused.fetch_add(1, Relaxed);
            tracing::debug!(%peer, "too many handshakes are under way; a peer was turned away");
            return;
        }
        let made = prepare(&socket).and_then(|()| {
            let no_certificate = || io::Error::other(crate::TransportError::NoCertificate);
            let config = listening.tls.as_ref().map(|tls| tls.config().ok_or_else(no_certificate)).transpose()?;
            let tls = config.map(ServerConnection::new).transpose().map_err(io::Error::other)?;
            Ok(Stream::new(socket, tls.map(Connection::Server)))
        });
        match made {
            Ok(stream) => {
                let opening = Box::new(Opening::accepted(shared.clone(), listening, stream, peer));
                let set = shared.least_loaded();
                set.sockets.fetch_add(1, Relaxed);
                if Arc::ptr_eq(set, &self.set) {
                    self.open(opening);
                } else {
                    set.command(Command::Open(opening));
                }
            }
            Err(error) => {
                shared.give_half_open();
                tracing::warn!(%peer, %error, "cannot use an accepted connection");
            }
        }
    }

    /// Ends the handshake of the accepted connection that has been at it the longest, of those that are here.
    fn end_oldest_opening(&mut self) -> bool {
        let oldest = self
            .openings()
            .find(|token| matches!(self.sockets.get(*token), Some(Socket::Opening(opening)) if opening.is_half_open()));
        let Some(token) = oldest else { return false };
        let Socket::Opening(opening) = std::mem::replace(&mut self.sockets[token], Socket::Taken) else {
            unreachable!("just seen")
        };
        self.remove_opening_timer(&opening);
        self.shared.refused.fetch_add(1, Relaxed);
        tracing::debug!(peer = %opening.peer, "too many handshakes are under way; this one was ended");
        self.discard(token, &opening);
        true
    }

    /// Takes a connection that begins. It is counted among this set's sockets already.
    pub(super) fn open(&mut self, opening: Box<Opening>) {
        let entry = self.sockets.vacant_entry();
        let token = entry.key();
        if let Err(error) = self.poll.add(opening.stream.fd(), token) {
            tracing::error!(%error, "cannot watch a socket");
            self.set.sockets.fetch_sub(1, Relaxed);
            return;
        }
        entry.insert(Socket::Taken);
        self.add_opening_timer(&opening, token);
        self.sockets[token] = Socket::Opening(opening);
    }

    fn advance(&mut self, token: usize, mut opening: Box<Opening>) {
        self.remove_opening_timer(&opening);
        match opening.advance() {
            Progress::Pending => {
                self.add_opening_timer(&opening, token);
                self.sockets[token] = Socket::Opening(opening);
            }
            Progress::Failed => self.discard(token, &opening),
            Progress::Open(opened) => self.become_link(token, *opening, opened),
        }
    }

    /// An opening is over without a link.
    pub(super) fn discard(&mut self, token: usize, opening: &Opening) {
        self.poll.remove(opening.stream.fd());
        self.sockets.remove(token);
        self.set.sockets.fetch_sub(1, Relaxed);
    }

    fn become_link(&mut self, token: usize, opening: Opening, opened: Opened) {
        let (stream, peer) = (opening.stream.clone(), opening.peer);
        drop(opening);
        let Opened { identity, limits, accepted, slot, granted, inbound, outbound } = opened;
        let link =
            Link::new(self.shared.clone(), stream.clone(), peer, identity, limits, accepted, outbound, self.set.index);
        link.set_place(Place { set: self.set.index, token: Some(token) });
        if let Some(granted) = granted {
            // Nobody else knows the link yet.
            let _ = link.granted.set(granted);
        }
        if accepted {
            self.shared.accepted.fetch_add(1, Relaxed);
        }
        self.shared.add_link(&link);
        let handler = self.shared.handler.clone();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| handler.on_open(&link))) {
            on_panic(&link, "the handler", panic.as_ref());
        }
        if let Some(slot) = slot {
            // Nobody else holds it: whoever wanted to connect has given up.
            if Arc::strong_count(&slot) == 1 {
                link.close(CloseReason::Here);
            }
            slot.resolve(Ok(link.clone()));
        }
        link.flush();
        let inbound = Inbound::beginning_with(inbound);
        let socket = LinkSocket { link, stream, inbound, tasks: Vec::new(), ended: false, moving_to: None, frames: 0 };
        self.sockets[token] = Socket::Link(Box::new(socket));
        // Frames may have come with the handshake's last; the poll set has told of them already.
        self.handle(Ready { token, readable: true, writable: false, ended: false });
    }

    fn read(&mut self, token: usize, socket: &mut LinkSocket) {
        let link = socket.link.clone();
        if link.is_closed() {
            return;
        }
        let mut deliver = Deliver { link: &link, frames: 0 };
        let (read, bytes) = socket.inbound.read(&socket.stream, &mut self.buffer, socket.ended, &mut deliver);
        let frames = deliver.frames;
        socket.frames += frames;
        self.frames += frames;
        link.received.frames.fetch_add(frames, Relaxed);
        link.received.bytes.fetch_add(bytes as u64, Relaxed);
        match read {
            Read::Drained | Read::Paused | Read::Stopped => {}
            Read::More => self.again.push(token),
            Read::End => link.close(CloseReason::Peer),
            Read::Failed(e) => link.close(closed_by(&e)),
            Read::Garbage(e) => {
                tracing::info!(connection = link.connection(), peer = %link.peer(), "a link is closed: {e}");
                link.close(CloseReason::Wire(e));
            }
        }
        if socket.stream.wants_write() {
            link.flush();
        }
    }

    /// Takes a closed link out and tells the handler. Its descriptor is closed when nobody uses it any more.
    pub(super) fn finish(&mut self, token: usize) {
        let Some(Socket::Link(socket)) = self.sockets.try_remove(token) else { return };
        self.poll.remove(socket.stream.fd());
        self.set.sockets.fetch_sub(1, Relaxed);
        let link = &socket.link;
        for key in &socket.tasks {
            let task = self.tasks.remove(*key);
            // A future's end is the handler's code.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(task))) {
                on_panic(link, "a task", panic.as_ref());
            }
        }
        // Its place is free as soon as it is not counted any more.
        if link.accepted {
            self.shared.give_place();
        }
        self.shared.remove_link(link);
        let reason = link.sending.lock().closed.clone().unwrap_or(CloseReason::Here);
        let handler = &self.shared.handler;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| handler.on_close(link, &reason))) {
            on_panic(link, "the handler", panic.as_ref());
        }
    }

    /// Gives a link away, if it has no tasks here.
    pub(super) fn move_link(&mut self, token: usize, target: usize) {
        let Some(Socket::Link(socket)) = self.sockets.get_mut(token) else { return };
        if target == self.set.index || socket.link.is_closed() {
            socket.moving_to = None;
            return;
        }
        if !socket.tasks.is_empty() {
            socket.moving_to = Some(target);
            return;
        }
        let Socket::Link(mut socket) = self.sockets.remove(token) else { unreachable!("looked at above") };
        self.poll.remove(socket.stream.fd());
        socket.moving_to = None;
        socket.link.set_place(Place { set: target, token: None });
        self.set.sockets.fetch_sub(1, Relaxed);
        let target = &self.shared.sets[target];
        target.sockets.fetch_add(1, Relaxed);
        self.shared.moves.fetch_add(1, Relaxed);
        target.command(Command::Adopt(socket));
    }

    /// Takes a link that was given away.
    pub(super) fn adopt(&mut self, socket: Box<LinkSocket>) {
        let link = socket.link.clone();
        let token = self.sockets.insert(Socket::Link(socket));
        link.set_place(Place { set: self.set.index, token: Some(token) });
        let Socket::Link(socket) = &self.sockets[token] else { unreachable!("inserted above") };
        if let Err(error) = self.poll.add(socket.stream.fd(), token) {
            link.close(CloseReason::Io(error.to_string()));
        }
        // What was said to it on its way has found no socket.
        if link.is_closed() {
            self.finish(token);
        } else {
            self.watch_stalled(&link);
            self.handle(Ready { token, readable: true, writable: true, ended: false });
        }
    }

    pub(super) fn listen(&mut self, listening: Box<Listening>) {
        let token = self.sockets.insert(Socket::Taken);
        if let Err(error) = self.poll.add_listener(listening.listener.as_raw_fd(), token) {
            tracing::error!(%error, "cannot watch a listening socket");
        }
        self.sockets[token] = Socket::Listening(listening);
        self.handle(Ready { token, readable: true, writable: false, ended: false });
    }

    pub(super) fn stop_listening(&mut self) {
        let poll = &self.poll;
        let mut gone = 0;
        self.sockets.retain(|_, socket| {
            let Socket::Listening(listening) = socket else { return true };
            poll.remove(listening.listener.as_raw_fd());
            gone += 1;
            false
        });
        self.set.sockets.fetch_sub(gone, Relaxed);
    }

    /// Tasks that handlers have spawned and that are pending.
    pub(super) fn adopt_spawned(&mut self) {
        for spawned in round::take_spawned() {
            self.adopt_task(spawned);
        }
    }
}

/// What every socket of links needs: no blocking, and no waiting for company but our own.
pub(crate) fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)
}
