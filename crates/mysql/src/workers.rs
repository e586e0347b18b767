//! The threads that serve connections.
//!
//! Each worker is a thread with an asynchronous runtime of its own; a connection lives on one worker from beginning to end, and the
//! thread that reads a packet executes and answers it. One more thread, asleep nearly always, accepts and hands each connection to the
//! worker that has the fewest. What waits (for locks, the log, a slow client) holds no thread.
//!
//! What computes for long does not hold a worker either: statements give way to others now and then, and what cannot (the evaluation of one
//! row, the parsing of a long text) runs in [`beside`], while another thread of the same runtime goes on with the worker's connections. So
//! logins, KILL and other clients wait for no statement.
//!
//! Stopping: listeners close, idle connections end at once, running statements may end within the time given, then they are cancelled and
//! told 1053.
use crate::backend::Backend;
use crate::server::{Phase, Server};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Context;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::sync::mpsc;

/// After stopping has cancelled everything, threads get so long to say goodbye.
const FAREWELL: Duration = Duration::from_secs(2);
/// Pause after a failed accept (out of file descriptors), so as not to spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Runs what takes long on the present thread, while another one goes on with the connections of its worker. Elsewhere it just runs.
pub fn beside(work: &mut dyn FnMut()) {
    let of_worker = Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if of_worker { tokio::task::block_in_place(work) } else { work() }
}

/// Lets the worker's other connections run, and its sockets be looked at, before the task of this context is polled again. A task that only wakes
/// itself would be polled at once, several times in a row.
pub fn give_way(context: &mut Context<'_>) {
    // Polled once it has arranged that.
    let _ = pin!(tokio::task::yield_now()).poll(context);
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

enum Accepted {
    Tcp(std::net::TcpStream, IpAddr),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

#[derive(Clone)]
struct Worker {
    sender: mpsc::UnboundedSender<Accepted>,
    connections: Arc<AtomicUsize>,
}

/// The running threads.
pub struct Workers<B: Backend> {
    server: Arc<Server<B>>,
    workers: Vec<Worker>,
    /// Of the workers, with the task that begins connections.
    runtimes: Vec<(Runtime, tokio::task::JoinHandle<()>)>,
    acceptor: Option<JoinHandle<()>>,
}

/// Starts `count` workers (at least one) and the acceptor.
pub fn start<B: Backend>(server: Arc<Server<B>>, count: usize, listeners: Vec<Listener>) -> io::Result<Workers<B>> {
    let mut started = Workers { server: server.clone(), workers: Vec::new(), runtimes: Vec::new(), acceptor: None };
    for i in 0..count.max(1) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let worker = Worker { sender, connections: Arc::default() };
        let (server, connections) = (server.clone(), worker.connections.clone());
        // One thread has the connections at a time; others take over while it computes, and hash passwords.
        let runtime =
            Builder::new_multi_thread().worker_threads(1).enable_all().thread_name(format!("mysql-{i}")).build()?;
        let task = runtime.spawn(work(server, receiver, connections));
        started.workers.push(worker);
        started.runtimes.push((runtime, task));
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let workers = started.workers.clone();
    let listeners = {
        let _guard = runtime.enter();
        listeners.into_iter().map(Bound::new).collect::<io::Result<Vec<_>>>()?
    };
    started.acceptor = Some(
        std::thread::Builder::new()
            .name("mysql-accept".into())
            .spawn(move || runtime.block_on(accept_all(listeners, workers, server.phase_reached(Phase::Draining))))?,
    );
    Ok(started)
}

impl<B: Backend> Workers<B> {
    pub fn server(&self) -> &Arc<Server<B>> {
        &self.server
    }

    /// Connections on each worker.
    pub fn connections(&self) -> Vec<usize> {
        self.workers.iter().map(|w| w.connections.load(Relaxed)).collect()
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
        // Without senders the workers' loops end; what still hangs on is dropped with its runtime.
        drop(self.workers);
        if let Some(acceptor) = self.acceptor {
            let _ = acceptor.join();
        }
        for (runtime, task) in self.runtimes {
            let _ = runtime.block_on(task);
            runtime.shutdown_timeout(FAREWELL);
        }
        cancelled
    }
}

async fn work<B: Backend>(
    server: Arc<Server<B>>,
    mut receiver: mpsc::UnboundedReceiver<Accepted>,
    connections: Arc<AtomicUsize>,
) {
    let counters = server.new_counters();
    while let Some(accepted) = receiver.recv().await {
        let (server, counters) = (server.clone(), counters.clone());
        let counted = Counted(connections.clone());
        tokio::spawn(async move {
            let _counted = counted;
            let id = server.next_connection_id();
            match accepted {
                Accepted::Tcp(stream, peer) => {
                    if let Ok(stream) = tokio::net::TcpStream::from_std(stream) {
                        server.serve_connection(stream, peer, id, counters).await;
                    }
                }
                #[cfg(unix)]
                Accepted::Unix(stream) => {
                    if let Ok(stream) = tokio::net::UnixStream::from_std(stream) {
                        server.serve_connection(stream, Ipv4Addr::LOCALHOST.into(), id, counters).await;
                    }
                }
            }
        });
    }
}

/// A connection of a worker, until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

enum Bound {
    Tcp(tokio::net::TcpListener),
    #[cfg(unix)]
    Unix(tokio::net::UnixListener, PathBuf),
}

impl Bound {
    fn new(listener: Listener) -> io::Result<Bound> {
        Ok(match listener {
            Listener::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                Bound::Tcp(tokio::net::TcpListener::from_std(listener)?)
            }
            #[cfg(unix)]
            Listener::Unix(listener, path) => {
                listener.set_nonblocking(true)?;
                Bound::Unix(tokio::net::UnixListener::from_std(listener)?, path)
            }
        })
    }

    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Bound::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok(Accepted::Tcp(stream.into_std()?, peer.ip().to_canonical()))
            }
            #[cfg(unix)]
            Bound::Unix(listener, _) => Ok(Accepted::Unix(listener.accept().await?.0.into_std()?)),
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

async fn accept_all(listeners: Vec<Bound>, workers: Vec<Worker>, stop: impl Future<Output = ()>) {
    let workers = Arc::new(workers);
    let tasks = tokio::task::LocalSet::new();
    for listener in listeners {
        let workers = workers.clone();
        tasks.spawn_local(async move {
            loop {
                match listener.accept().await {
                    Ok(accepted) => hand_over(&workers, accepted),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        });
    }
    tasks.run_until(stop).await;
}

/// To the worker with the fewest connections.
fn hand_over(workers: &[Worker], accepted: Accepted) {
    let worker = workers.iter().min_by_key(|w| w.connections.load(Relaxed)).expect("there is a worker");
    worker.connections.fetch_add(1, Relaxed);
    if worker.sender.send(accepted).is_err() {
        worker.connections.fetch_sub(1, Relaxed);
    }
}
