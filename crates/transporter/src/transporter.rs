//! The door: options, listening, connecting, receiving.

use crate::login::{Account, Accounts};
use crate::receive::opening::{Opening, Slot};
use crate::receive::{Command, role};
use crate::shared::Shared;
use crate::stream::Stream;
use crate::{CloseReason, Link, LinkStatistics, Security, Statistics, TransportError, Urgency};
use parking_lot::Mutex;
use rauk_types::ErrorClass;
use rauk_wire::hello::Role;
use rauk_wire::{Failure, Frame, Header, Kind};
use rustls::{ClientConnection, Connection};
use rustls_pki_types::ServerName;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// MySQL's ER_SERVER_SHUTDOWN.
const SHUTDOWN: u16 = 1053;

/// Every limit has a default that works.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads that receive and handle. 0: none of its own, whoever waits receives ([`Transporter::receive_until`]); one thread stands in when nobody who
    /// could receive is waiting, so that tasks of an asynchronous runtime are woken too.
    pub receive_threads: usize,
    /// One more receive thread, for links that must not wait for what handlers do with others. It gets those that are moved to it ([`Link::move_to`] its number, which is `receive_threads`), and no other.
    /// Only beside receive threads.
    pub thread_apart: bool,
    /// Longest time that adaptive send lets a frame wait; 0 sends at once. Changed online with [`Transporter::set_longest_wait`].
    pub longest_wait: Duration,
    /// Longest time that a receiver spins before it sleeps; the time in use adapts below that, and is 0 when there are more runnable threads than cores.
    pub longest_spin: Duration,
    /// Bytes that may wait on one link; beyond, the requests of a peer that connected to us are not read any more, and [`Link::send`] to a peer that we connected to
    /// answers `Congested` (beyond twice as much).
    pub send_limit: usize,
    /// A peer that has not read anything for so long while that limit is reached is cut off.
    pub stalled: Duration,
    /// Unanswered requests of one link beyond which its socket is not read.
    pub max_requests: u32,
    pub max_links: usize,
    pub handshake: Duration,
    /// Only peers of this role are let in; `None`: all.
    pub accepts: Option<Role>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            receive_threads: 1,
            thread_apart: false,
            longest_wait: Duration::from_micros(200),
            longest_spin: Duration::from_micros(50),
            send_limit: 16 << 20,
            stalled: Duration::from_secs(30),
            max_requests: 4096,
            max_links: 10_000,
            handshake: Duration::from_secs(10),
            accepts: None,
        }
    }
}

/// Who a side is, as the other side learns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub role: Role,
    /// A server: its cluster. A client: the one it expects, or zeros for any. A node that has no cluster yet has zeros, until [`Transporter::set_cluster`].
    pub cluster: [u8; 16],
    pub incarnation: u64,
    /// Version of the protocol: of a peer, the one agreed on; of oneself, the newest that is spoken (the one before is as well).
    pub version: u16,
    pub name: String,
}

/// What happens with links and frames. Calls come on receive threads and must not block. Pings are answered before, and do not come here; a panic closes the link.
pub trait Handler: Send + Sync + 'static {
    fn on_open(&self, link: &Arc<Link>);
    fn on_frame(&self, link: &Arc<Link>, frame: Frame);
    /// Comes once, after the last frame.
    fn on_close(&self, link: &Arc<Link>, reason: &CloseReason);
}

/// Links to peers, and the threads that serve them. Dropping it closes all links and ends the threads.
pub struct Transporter {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Transporter {
    pub fn start(
        options: Options,
        identity: Identity,
        handler: Arc<dyn Handler>,
    ) -> Result<Arc<Transporter>, TransportError> {
        let (shared, receivers) = Shared::new(options, identity, handler)
            .map_err(|e| TransportError::Configuration(format!("cannot make a poll set: {e}")))?;
        let transporter = Arc::new(Transporter { shared: shared.clone(), threads: Mutex::default() });
        for (index, receiver) in receivers.into_iter().enumerate() {
            if let Some(role) = &shared.role {
                role.put(receiver);
                let shared = shared.clone();
                transporter.spawn("rauk-receive".into(), move || {
                    shared.role.as_ref().expect("it is there").stand_in(&shared);
                })?;
            } else {
                transporter.spawn(format!("rauk-receive-{index}"), move || receiver.run())?;
            }
        }
        transporter.spawn("rauk-send".into(), move || shared.send_thread.run(&shared))?;
        Ok(transporter)
    }

    fn spawn(&self, name: String, life: impl FnOnce() + Send + 'static) -> Result<(), TransportError> {
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(life)
            .map_err(|e| TransportError::Configuration(format!("cannot start a thread: {e}")))?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Accepts connections of peers that prove what `security` asks for. With a security that asks for nothing it is refused (`Configuration`).
    pub fn listen(&self, listener: TcpListener, security: Security) -> Result<SocketAddr, TransportError> {
        let bad = |e: io::Error| TransportError::Configuration(format!("cannot listen: {e}"));
        let address = listener.local_addr().map_err(bad)?;
        if security.secret.is_none() && security.tls.is_none() {
            return Err(TransportError::Configuration(format!(
                "{address} would let everybody in: give it a shared secret, or certificates, or both"
            )));
        }
        listener.set_nonblocking(true).map_err(bad)?;
        let tls = security.tls.as_ref().map(|tls| tls.server()).transpose()?;
        let set = self.shared.least_loaded();
        set.sockets.fetch_add(1, Relaxed);
        set.command(Command::listen(listener, security.secret, tls));
        Ok(address)
    }

    /// Connects and goes through the handshake; `address` is `host:port`. Blocks the calling thread only for the name's resolution.
    pub fn connect(
        self: &Arc<Self>,
        address: &str,
        security: &Security,
        timeout: Duration,
    ) -> impl Future<Output = Result<Arc<Link>, TransportError>> + Send + 'static {
        let connect = Connect::new(&self.shared, address, security, timeout);
        async move {
            let connect = connect?;
            let mut last = None;
            for peer in &connect.peers {
                match connect.one(*peer).await {
                    // The next address may do better.
                    Err(error @ TransportError::Connect { .. }) => last = Some(error),
                    other => return other,
                }
            }
            Err(last.unwrap_or(TransportError::Connect {
                address: connect.address,
                reason: "the name has no address".into(),
            }))
        }
    }

    /// Receives on this thread until `poll` is ready: takes the role of the receiver when nobody has it (spinning, then sleeping in the poll set), else
    /// sleeps until woken, by its waker or to take the role over. For transporters without receive threads; with some, it just sleeps.
    pub fn receive_until<T>(&self, poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        match &self.shared.role {
            Some(role) => role.receive_until(&self.shared, poll),
            None => role::wait(poll),
        }
    }

    /// Lets in accounts as well; once, before [`Transporter::listen`].
    pub fn set_accounts(&self, accounts: Arc<dyn Accounts>) {
        // The first counts.
        let _ = self.shared.accounts.set(accounts);
    }

    /// Connections show this account in the place of a secret; once, before the first.
    pub fn set_account(&self, account: Account) {
        // The first counts.
        let _ = self.shared.account.set(account);
    }

    /// This node has become a member of a cluster: handshakes from now on say so. Links that are open stay.
    pub fn set_cluster(&self, cluster: [u8; 16]) {
        self.shared.set_cluster(cluster);
    }

    pub fn set_longest_wait(&self, longest_wait: Duration) {
        self.shared.set_longest_wait(longest_wait);
    }

    pub fn longest_wait(&self) -> Duration {
        self.shared.longest_wait()
    }

    /// As it was started.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    pub fn statistics(&self) -> Statistics {
        self.shared.statistics()
    }

    pub fn links(&self) -> Vec<LinkStatistics> {
        self.shared.link_statistics()
    }

    /// No new links from now on; each open one gets `Goodbye`, and is closed when its requests are answered or `grace` is over. Threads end. Blocks until then; not to
    /// be called by a handler.
    pub fn shutdown(&self, grace: Duration) {
        let shared = &self.shared;
        if shared.stopping.swap(true, SeqCst) {
            return;
        }
        for set in &shared.sets {
            set.command(Command::StopListening);
        }
        let goodbye = Failure::new(SHUTDOWN, ErrorClass::Temporary, "Server shutdown in progress");
        for link in shared.open_links() {
            let mut frame = link.buffer();
            goodbye.encode(&mut frame);
            // A link that does not take it is closed or will be.
            let _ = link.send(&Header::new(Kind::Goodbye, 0), frame, Urgency::Force);
        }
        let end = Instant::now() + grace;
        loop {
            let open = shared.open_links();
            for link in &open {
                if link.is_settled() {
                    link.close(CloseReason::Here);
                }
            }
            if open.is_empty() || Instant::now() >= end {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        shared.end();
        let me = std::thread::current().id();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.thread().id() != me {
                // A thread that has panicked has said so.
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Transporter {
    fn drop(&mut self) {
        self.shared.end();
    }
}

/// An attempt to connect, its name resolved and its certificates read.
struct Connect {
    shared: Arc<Shared>,
    address: String,
    peers: Vec<SocketAddr>,
    security: Security,
    tls: Option<(Arc<rustls::ClientConfig>, ServerName<'static>)>,
    timeout: Duration,
}

impl Connect {
    fn new(
        shared: &Arc<Shared>,
        address: &str,
        security: &Security,
        timeout: Duration,
    ) -> Result<Connect, TransportError> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
        let tls = security.tls.as_ref().map(|tls| tls.client(host)).transpose()?;
        let peers = address
            .to_socket_addrs()
            .map_err(|e| TransportError::Connect { address: address.into(), reason: e.to_string() })?
            .collect();
        Ok(Connect { shared: shared.clone(), address: address.into(), peers, security: security.clone(), tls, timeout })
    }

    async fn one(&self, peer: SocketAddr) -> Result<Arc<Link>, TransportError> {
        let failed = |e: io::Error| TransportError::Connect { address: self.address.clone(), reason: e.to_string() };
        if self.shared.stopping.load(SeqCst) {
            return Err(TransportError::Closed(CloseReason::Here));
        }
        let socket = begin(peer).map_err(failed)?;
        let tls = self.tls.as_ref().map(|(config, name)| ClientConnection::new(config.clone(), name.clone()));
        let tls = tls.transpose().map_err(|e| failed(io::Error::other(e)))?.map(Connection::Client);
        let slot = Arc::new(Slot::default());
        let opening = Opening::connecting(
            self.shared.clone(),
            Stream::new(socket, tls),
            peer,
            &self.security,
            (self.address.clone(), self.timeout),
            slot.clone(),
        );
        let set = self.shared.least_loaded();
        set.sockets.fetch_add(1, Relaxed);
        set.command(Command::Open(Box::new(opening)));
        std::future::poll_fn(move |context| slot.poll(context)).await
    }
}

/// A socket that is connecting.
fn begin(peer: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    match socket.connect(&peer.into()) {
        Ok(()) => {}
        Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) || e.kind() == io::ErrorKind::WouldBlock => {}
        Err(e) => return Err(e),
    }
    Ok(socket.into())
}
