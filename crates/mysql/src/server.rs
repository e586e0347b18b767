//! What all connections share: options, limits, counters, TLS, the RSA key, the password cache, the stop signal.
use crate::auth::rsa_key::RsaKey;
use crate::auth::sha2;
use crate::auth::throttle::Throttle;
use crate::backend::Backend;
use crate::connection::{self, stream::Socket};
use crate::constants::{capability, code};
use crate::runtime::beside;
use crate::tls::{TlsError, TlsOptions};
use parking_lot::{Mutex, RwLock};
use rauk_types::MysqlError;
use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use tokio::sync::{OnceCell, Semaphore, watch};

/// Passwords that are hashed at a time, so that guessing cannot take the machine.
const HASHERS: usize = 2;

/// Limits that may be changed while the server runs; they hold for connections made afterwards.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Sessions, and again so many clients that have not yet proven who they are.
    pub max_connections: usize,
    /// Rows that one open cursor keeps, in bytes.
    pub cursor_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_connections: 4096, cursor_bytes: 64 * 1024 * 1024 }
    }
}

#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    pub tls: TlsOptions,
    /// Certificates (PEM) that those of clients are checked by; `None`: clients are asked for none.
    pub client_ca: Option<PathBuf>,
    /// Where the RSA key of `caching_sha2_password` is kept (PEM, made when it is not there); `None`: a new one at every start.
    pub rsa_key_path: Option<PathBuf>,
    pub limits: Limits,
}

/// How far the stopping of the server has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Running,
    /// Connections end after the statement that they run.
    Draining,
    /// Running statements end as well.
    Closing,
}

/// Counts since the start; one set a worker, so that workers do not share cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    pub connections: AtomicU64,
    /// Connections that never became sessions.
    pub aborted_connects: AtomicU64,
    /// Sessions that ended without COM_QUIT.
    pub aborted_clients: AtomicU64,
    pub commands: AtomicU64,
    pub received: AtomicU64,
    pub sent: AtomicU64,
}

/// A moment's sums over all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sessions now.
    pub sessions: u64,
    pub connections: u64,
    pub aborted_connects: u64,
    pub aborted_clients: u64,
    pub commands: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

pub struct Server<B: Backend> {
    backend: Arc<B>,
    tls: Option<Arc<rustls::ServerConfig>>,
    rsa_key_path: Option<PathBuf>,
    rsa_key: OnceCell<RsaKey>,
    limits: RwLock<Limits>,
    throttle: Throttle,
    passwords: sha2::Cache,
    hashers: Semaphore,
    phase: watch::Sender<Phase>,
    next_connection: AtomicU32,
    handshaking: Arc<AtomicUsize>,
    sessions: Arc<AtomicUsize>,
    counters: Mutex<Vec<Arc<Counters>>>,
    interrupts: Arc<Interrupts>,
}

/// What interrupts a session's statement, from any thread.
type Interrupt = Arc<dyn Fn() + Send + Sync>;

/// What interrupts the statements of all sessions: also of those that compute, and so look at no signal, when the server ends.
#[derive(Default)]
pub(crate) struct Interrupts(Mutex<(u64, BTreeMap<u64, Interrupt>)>);

/// One session's, until it is dropped.
pub(crate) struct Registered {
    all: Arc<Interrupts>,
    number: u64,
    interrupt: Interrupt,
}

impl Interrupts {
    pub fn register(self: &Arc<Self>, interrupt: Interrupt) -> Registered {
        let mut all = self.0.lock();
        all.0 += 1;
        let number = all.0;
        all.1.insert(number, interrupt.clone());
        Registered { all: self.clone(), number, interrupt }
    }

    fn call_all(&self) {
        let all: Vec<Interrupt> = self.0.lock().1.values().cloned().collect();
        all.into_iter().for_each(|interrupt| interrupt());
    }
}

impl Registered {
    pub fn call(&self) {
        (self.interrupt)();
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.all.0.lock().1.remove(&self.number);
    }
}

/// A place among a bounded number; given back when dropped.
pub(crate) struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn take(taken: &Arc<AtomicUsize>, limit: usize) -> Option<Slot> {
        taken.fetch_update(Relaxed, Relaxed, |n| (n < limit).then_some(n + 1)).ok()?;
        Some(Slot(taken.clone()))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl<B: Backend> Server<B> {
    /// Loads or makes the certificate; opens nothing yet.
    pub fn new(backend: Arc<B>, options: ServerOptions) -> Result<Arc<Self>, TlsError> {
        let tls = options.tls.load(options.client_ca.as_deref())?;
        Ok(Arc::new(Server {
            backend,
            tls,
            rsa_key_path: options.rsa_key_path,
            rsa_key: OnceCell::new(),
            limits: RwLock::new(options.limits),
            throttle: Throttle::default(),
            passwords: sha2::Cache::default(),
            hashers: Semaphore::new(HASHERS),
            phase: watch::Sender::new(Phase::Running),
            next_connection: AtomicU32::new(1),
            handshaking: Arc::default(),
            sessions: Arc::default(),
            counters: Mutex::default(),
            interrupts: Arc::default(),
        }))
    }

    /// Serves one connection on the present task until it ends. `peer`: the loopback address for Unix-domain sockets.
    pub(crate) async fn serve_connection(
        self: Arc<Self>,
        socket: Socket,
        peer: IpAddr,
        connection_id: u32,
        counters: Arc<Counters>,
    ) {
        connection::serve(self, socket, peer, connection_id, counters).await;
    }

    pub fn backend(&self) -> &Arc<B> {
        &self.backend
    }

    pub fn limits(&self) -> Limits {
        *self.limits.read()
    }

    pub fn set_limits(&self, limits: Limits) {
        *self.limits.write() = limits;
    }

    /// The number of a new connection; never zero.
    pub fn next_connection_id(&self) -> u32 {
        loop {
            let id = self.next_connection.fetch_add(1, Relaxed);
            if id != 0 {
                return id;
            }
        }
    }

    /// A set of counters that [`totals`](Self::totals) includes.
    pub fn new_counters(&self) -> Arc<Counters> {
        let counters = Arc::new(Counters::default());
        self.counters.lock().push(counters.clone());
        counters
    }

    pub fn totals(&self) -> Totals {
        let mut totals = Totals { sessions: self.sessions.load(Relaxed) as u64, ..Totals::default() };
        for c in self.counters.lock().iter() {
            totals.connections += c.connections.load(Relaxed);
            totals.aborted_connects += c.aborted_connects.load(Relaxed);
            totals.aborted_clients += c.aborted_clients.load(Relaxed);
            totals.commands += c.commands.load(Relaxed);
            totals.received_bytes += c.received.load(Relaxed);
            totals.sent_bytes += c.sent.load(Relaxed);
        }
        totals
    }

    /// Goes on with stopping; there is no way back.
    pub fn advance(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let forward = phase > *now;
            if forward {
                *now = phase;
            }
            forward
        });
        if phase == Phase::Closing {
            self.interrupts.call_all();
        }
    }

    pub(crate) fn interrupts(&self) -> &Arc<Interrupts> {
        &self.interrupts
    }

    /// Resolves when stopping has got so far.
    pub fn phase_reached(&self, phase: Phase) -> impl Future<Output = ()> + Send + 'static {
        let mut receiver = self.phase.subscribe();
        async move {
            if receiver.wait_for(|now| *now >= phase).await.is_err() {
                // The server is gone, and with it whoever could stop it.
                std::future::pending::<()>().await;
            }
        }
    }

    pub(crate) fn admit_handshake(&self, peer: IpAddr) -> Option<Slot> {
        if !self.throttle.admits(peer) {
            return None;
        }
        Slot::take(&self.handshaking, self.limits().max_connections)
    }

    pub(crate) fn admit_session(&self) -> Option<Slot> {
        Slot::take(&self.sessions, self.limits().max_connections)
    }

    /// Capabilities that the greeting offers.
    pub(crate) fn offered(&self) -> u32 {
        capability::OFFERED | if self.tls.is_some() { capability::SSL } else { 0 }
    }

    pub(crate) fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        self.tls.clone()
    }

    pub(crate) fn throttle(&self) -> &Throttle {
        &self.throttle
    }

    pub(crate) fn password_cache(&self) -> &sha2::Cache {
        &self.passwords
    }

    /// Runs slow hashing while another thread goes on with the worker's connections.
    pub(crate) async fn hash_beside<T>(&self, work: impl Fn() -> T) -> T {
        let _permit = self.hashers.acquire().await.expect("the semaphore is never closed");
        run_beside(work)
    }

    /// The RSA key, loaded or made at first need.
    pub(crate) async fn rsa_key(&self) -> Result<&RsaKey, MysqlError> {
        self.rsa_key
            .get_or_try_init(|| async {
                run_beside(|| RsaKey::load_or_generate(self.rsa_key_path.as_deref())).map_err(|error| {
                    tracing::error!(%error, "no RSA key for caching_sha2_password");
                    out_of_resources(&error.to_string())
                })
            })
            .await
    }
}

fn run_beside<T>(work: impl Fn() -> T) -> T {
    let mut output = None;
    beside(&mut || output = Some(work()));
    output.expect("the work was run")
}

fn out_of_resources(what: &str) -> MysqlError {
    MysqlError { state: *b"HY000", ..MysqlError::new(code::OUT_OF_RESOURCES, what) }
}
