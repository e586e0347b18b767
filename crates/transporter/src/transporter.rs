//! The door: options, listening, connecting, receiving.

use crate::{CloseReason, Link, LinkStatistics, Security, Statistics, TransportError};
use rauk_wire::Frame;
use rauk_wire::hello::Role;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Every limit has a default that works.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads that receive and handle. 0: none of its own, whoever waits receives ([`Transporter::receive_until`]); one thread stands in when nobody who
    /// could receive is waiting, so that tasks of an asynchronous runtime are woken too.
    pub receive_threads: usize,
    /// Longest time that adaptive send lets a frame wait; 0 sends at once. Changed online with [`Transporter::set_longest_wait`].
    pub longest_wait: Duration,
    /// Longest time that a receiver spins before it sleeps; the time in use adapts below that, and is 0 when there are more runnable threads than cores.
    pub longest_spin: Duration,
    /// Bytes that may wait on one link; beyond, its requests are not read any more and [`Link::send`] answers `Congested`.
    pub send_limit: usize,
    /// A peer that has not read anything for so long while that limit is reached is cut off.
    pub stalled: Duration,
    /// Unanswered requests of one link beyond which its socket is not read.
    pub max_requests: u32,
    pub max_links: usize,
    pub handshake: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            receive_threads: 1,
            longest_wait: Duration::from_micros(200),
            longest_spin: Duration::from_micros(50),
            send_limit: 16 << 20,
            stalled: Duration::from_secs(30),
            max_requests: 4096,
            max_links: 10_000,
            handshake: Duration::from_secs(10),
        }
    }
}

/// Who a side is, as the other side learns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub role: Role,
    /// A server: its cluster. A client: the one it expects, or zeros for any.
    pub cluster: [u8; 16],
    pub incarnation: u64,
    /// Version of the protocol: of a peer, the one agreed on.
    pub version: u16,
    pub name: String,
}

/// What happens with links and frames. Calls come on receive threads and must not block.
pub trait Handler: Send + Sync + 'static {
    fn on_open(&self, link: &Arc<Link>);
    fn on_frame(&self, link: &Arc<Link>, frame: Frame);
    /// Comes once, after the last frame.
    fn on_close(&self, link: &Arc<Link>, reason: &CloseReason);
}

pub struct Transporter {
    _private: (),
}

impl Transporter {
    pub fn start(
        _options: Options,
        _identity: Identity,
        _handler: Arc<dyn Handler>,
    ) -> Result<Arc<Transporter>, TransportError> {
        todo!()
    }

    /// Accepts connections of peers that prove what `security` asks for. With a security that asks for nothing it is refused (`Configuration`).
    pub fn listen(&self, _listener: TcpListener, _security: Security) -> Result<SocketAddr, TransportError> {
        todo!()
    }

    /// Connects and goes through the handshake; `address` is `host:port`. Blocks the calling thread only for the name's resolution.
    pub fn connect(
        self: &Arc<Self>,
        _address: &str,
        _security: &Security,
        _timeout: Duration,
    ) -> impl Future<Output = Result<Arc<Link>, TransportError>> + Send + 'static {
        async { todo!() }
    }

    /// Receives on this thread until `poll` is ready: takes the role of the receiver when nobody has it (spinning, then sleeping in the poll set), else
    /// sleeps until woken, by its waker or to take the role over. For transporters without receive threads; with some, it just sleeps.
    pub fn receive_until<T>(&self, _poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        todo!()
    }

    pub fn set_longest_wait(&self, _longest_wait: Duration) {
        todo!()
    }

    pub fn statistics(&self) -> Statistics {
        todo!()
    }

    pub fn links(&self) -> Vec<LinkStatistics> {
        todo!()
    }

    /// No new links from now on; each open one gets `Goodbye`, and is closed when its requests are answered or `grace` is over. Threads end.
    pub fn shutdown(&self, _grace: Duration) {
        todo!()
    }
}
