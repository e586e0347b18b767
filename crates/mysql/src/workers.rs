//! The threads that serve connections.
//!
//! Each worker is a [`Runtime`]: a thread with its own tasks and sockets. A connection lives on one worker from beginning to end, and the
//! thread that reads a packet executes and answers it. Tasks of the first worker accept, and hand each connection to the worker that has the
//! fewest. What waits (for locks, the log, a slow client) holds no thread.
//!
//! What computes for long does not hold a worker either: statements give way to others now and then, and what cannot (the evaluation of one
//! row, the parsing of a long text) runs in [`beside`], while another thread of the same worker goes on with its connections. So
//! logins, KILL and other clients wait for no statement.
//!
//! Stopping: listeners close, idle connections end at once, running statements may end within the time given, then they are cancelled and
//! told 1053.
use crate::backend::Backend;
use crate::connection::stream::Socket;
use crate::runtime::{Direction, Done, Registered, Runtime, sleep};
use crate::server::{Counters, Phase, Server};
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// After stopping has cancelled everything, threads get so long to say goodbye.
const FAREWELL: Duration = Duration::from_secs(2);
/// Pause after a failed accept (out of file descriptors), so as not to spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub use crate::runtime::beside;

/// Lets the worker's other connections run, and its sockets be looked at, before the task of this context is polled again.
pub fn give_way(context: &mut Context<'_>) {
    context.waker().wake_by_ref();
}

/// A bound socket that clients connect to.
#[derive(Debug)]
pub enum Listener {
    Tcp(std::net::TcpListener),
    /// The path is removed when the server stops.
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixListener, PathBuf),
}

impl Listener {
    /// Binds a Unix-domain socket. A file that nobody listens on is replaced; a live one is `AddrInUse`.
    #[cfg(unix)]
    pub fn bind_unix(path: impl Into<PathBuf>) -> io::Result<Listener> {
        use std::os::unix::net::{UnixListener, UnixStream};
        let path = path.into();
        if UnixStream::connect(&path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Ok(Listener::Unix(UnixListener::bind(&path)?, path))
    }
}

struct Worker<B: Backend> {
    server: Arc<Server<B>>,
    runtime: Runtime,
    counters: Arc<Counters>,
    connections: Arc<AtomicUsize>,
}

/// The running threads.
pub struct Workers<B: Backend> {
    server: Arc<Server<B>>,
    workers: Arc<Vec<Worker<B>>>,
}

/// Starts `count` workers (at least one), the first of which accepts connections.
pub fn start<B: Backend>(server: Arc<Server<B>>, count: usize, listeners: Vec<Listener>) -> io::Result<Workers<B>> {
    let worker = |number: usize| {
        Ok(Worker {
            server: server.clone(),
            runtime: Runtime::start(format!("mysql-{number}"))?,
            counters: server.new_counters(),
            connections: Arc::default(),
        })
    };
    let workers = Arc::new((0..count.max(1)).map(worker).collect::<io::Result<Vec<_>>>()?);
    let accepting = &workers[0].runtime;
    let listeners =
        listeners.into_iter().map(|listener| Bound::new(accepting, listener)).collect::<io::Result<Vec<_>>>()?;
    for listener in listeners {
        let stop = server.phase_reached(Phase::Draining);
        accepting.spawn(accept_all(listener, Arc::downgrade(&workers), stop));
    }
    Ok(Workers { server, workers })
}

impl<B: Backend> Workers<B> {
    pub fn server(&self) -> &Arc<Server<B>> {
        &self.server
    }

    /// Connections on each worker.
    pub fn connections(&self) -> Vec<usize> {
        self.workers.iter().map(|w| w.connections.load(Relaxed)).collect()
    }

    /// Serves a connection that was accepted elsewhere, from a client at `peer`.
    pub fn serve(&self, stream: std::net::TcpStream, peer: IpAddr) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        hand_over(&self.workers, Accepted::Tcp(mio::net::TcpStream::from_std(stream), peer))
    }

    /// Stops: accepts nobody more, lets statements run for at most `grace`, then cancels them. Blocks until all connections are closed; gives
    /// how many statements had to be cancelled.
    pub fn shutdown(self, grace: Duration) -> usize {
        self.server.advance(Phase::Draining);
        let idle = |limit: Duration| {
            let deadline = Instant::now() + limit;
            loop {
                let left: usize = self.connections().iter().sum();
                if left == 0 || Instant::now() >= deadline {
                    return left;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        };
        let cancelled = idle(grace);
        self.server.advance(Phase::Closing);
        idle(FAREWELL);
        self.workers.iter().for_each(|worker| worker.runtime.begin_end());
        for worker in self.workers.iter() {
            worker.runtime.end(FAREWELL);
        }
        cancelled
    }
}

impl<B: Backend> Worker<B> {
    /// Serves a connection that was just accepted.
    fn serve(&self, socket: Socket, peer: IpAddr) {
        let counted = Counted::new(&self.connections);
        let (server, counters) = (self.server.clone(), self.counters.clone());
        self.runtime.spawn(async move {
            let _counted = counted;
            let id = server.next_connection_id();
            server.serve_connection(socket, peer, id, counters).await;
        });
    }
}

/// A connection of a worker, until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(connections: &Arc<AtomicUsize>) -> Counted {
        connections.fetch_add(1, Relaxed);
        Counted(connections.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

enum Bound {
    Tcp(Registered<mio::net::TcpListener>),
    #[cfg(unix)]
    Unix(Registered<mio::net::UnixListener>, PathBuf),
}

enum Accepted {
    Tcp(mio::net::TcpStream, IpAddr),
    #[cfg(unix)]
    Unix(mio::net::UnixStream),
}

impl Bound {
    fn new(runtime: &Runtime, listener: Listener) -> io::Result<Bound> {
        Ok(match listener {
            Listener::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                Bound::Tcp(Registered::new(runtime, mio::net::TcpListener::from_std(listener))?)
            }
            #[cfg(unix)]
            Listener::Unix(listener, path) => {
                listener.set_nonblocking(true)?;
                Bound::Unix(Registered::new(runtime, mio::net::UnixListener::from_std(listener))?, path)
            }
        })
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        match self {
            Bound::Tcp(listener) => listener.poll_io(Direction::Read, cx, |listener| {
                let (stream, peer) = listener.accept()?;
                Ok(Done::Some(Accepted::Tcp(stream, peer.ip().to_canonical())))
            }),
            #[cfg(unix)]
            Bound::Unix(listener, _) => {
                listener.poll_io(Direction::Read, cx, |listener| Ok(Done::Some(Accepted::Unix(listener.accept()?.0))))
            }
        }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Bound::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn accept_all<B: Backend>(listener: Bound, workers: Weak<Vec<Worker<B>>>, stop: impl Future<Output = ()>) {
    let mut stop = pin!(stop);
    loop {
        let accepted = poll_fn(|cx| match stop.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => listener.poll_accept(cx).map(Some),
        });
        let Some(accepted) = accepted.await else { return };
        let Some(workers) = workers.upgrade() else { return };
        if let Err(error) = accepted.and_then(|accepted| hand_over(&workers, accepted)) {
            tracing::warn!(%error, "cannot accept a connection");
            drop(workers);
            sleep(ACCEPT_PAUSE).await;
        }
    }
}

/// To the worker with the fewest connections.
fn hand_over<B: Backend>(workers: &[Worker<B>], accepted: Accepted) -> io::Result<()> {
    let worker = workers.iter().min_by_key(|w| w.connections.load(Relaxed)).expect("there is a worker");
    match accepted {
        Accepted::Tcp(stream, peer) => worker.serve(Socket::tcp(&worker.runtime, stream)?, peer),
        #[cfg(unix)]
        Accepted::Unix(stream) => worker.serve(Socket::unix(&worker.runtime, stream)?, Ipv4Addr::LOCALHOST.into()),
    }
    Ok(())
}
