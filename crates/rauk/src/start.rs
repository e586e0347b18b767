//! `rauk start`: opens the data directory, recovers, serves, and stops cleanly.
//!
//! Order at start: log output, data directory (made, or checked and locked), recovery with progress, listeners, the native port's secret, the ready line. A port in use or a data directory that cannot be
//! used ends it with one line before anything is changed. Order at stop (Ctrl-C, SIGTERM): no new connections, running statements may end, the rest is told 1053,
//! a last checkpoint, done; a second signal stops at once (nothing acknowledged is lost by that either).

use crate::backend::Backend;
use crate::config::Settings;
use crate::native::Native;
use crate::{http, metrics};
use rauk_log::{Disk, RealDisk};
use rauk_mysql::server::{Limits, Server, ServerOptions};
use rauk_mysql::tls::TlsOptions;
use rauk_mysql::workers::{self, Listener};
use rauk_node::runtime::threads::{Threads, block_on};
use rauk_node::{Config, Database, Durability, Runtime};
use rauk_sql::session::{Engine, EngineOptions};
use rauk_types::Value;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long running statements may go on after a stop was asked for.
const GRACE: Duration = Duration::from_secs(10);
/// Beginning of the line that says that clients can connect.
const READY: &str = "rauk is ready: mysql on ";

/// The MySQL port, if this is the ready line.
pub fn port_of_ready_line(line: &str) -> Option<u16> {
    let address = line.strip_prefix(READY)?.split(',').next()?;
    address.rsplit_once(':')?.1.parse().ok()
}

pub fn initialise_log(settings: &Settings) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("RAUK_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(&settings.log_level));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // A second call (tests in one process) keeps the first.
    let _ = if settings.log_json { builder.json().try_init() } else { builder.try_init() };
}

/// A server that runs; `stop` ends it.
pub struct Running {
    pub mysql: SocketAddr,
    pub http: SocketAddr,
    native: Native,
    database: Database,
    workers: workers::Workers<Backend>,
    healthy: Arc<AtomicBool>,
    http_stop: tokio::sync::oneshot::Sender<()>,
    http_thread: std::thread::JoinHandle<()>,
}

pub fn start(settings: &Settings) -> Result<Running, String> {
    let cores = std::thread::available_parallelism().map_or(2, |n| n.get());
    // Crash tests say by `RAUK_FAULT` where this process is to end or fail.
    rauk_log::fault::set_from_environment()?;
    // Ports first: they cost nothing and are the most frequent mistake.
    let mysql = bind(settings, settings.mysql_port, "mysql-port")?;
    let http = bind(settings, settings.http_port, "http-port")?;
    let native = bind(settings, settings.native_port, "native-port")?;
    check_directory(&settings.data_dir)?;
    let disk = RealDisk::open(&settings.data_dir).map_err(|e| e.to_string())?;
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let threads = Threads::start().map_err(|e| format!("cannot start threads: {e}"))?;
    let runtime: Arc<dyn Runtime> = threads.clone();
    let config = Config {
        partitions: if settings.partitions == 0 { (cores * 2).clamp(4, 256) as u16 } else { settings.partitions },
        durability: settings.durability,
        memory_limit: settings.memory_limit,
        history_limit: settings.history_limit,
        segment_bytes: settings.redo_segment,
        checkpoint_redo_bytes: settings.checkpoint_redo,
        ..Config::default()
    };
    let progress = |text: &str| tracing::info!("{text}");
    let database = Database::open(config, disk, runtime.clone(), &progress)
        .map_err(|e| format!("cannot open data directory {}: {e}", settings.data_dir.display()))?;
    let engine = Engine::new(database.clone(), runtime, engine_options(settings, &mysql, &native)?)
        .map_err(|e| e.to_string())?;

    let tls = match (&settings.tls_cert, &settings.tls_key) {
        (Some(certificate), Some(key)) => TlsOptions::Files { certificate: certificate.clone(), key: key.clone() },
        _ => TlsOptions::Automatic { directory: settings.data_dir.clone() },
    };
    let options = ServerOptions {
        tls,
        require_secure_transport: settings.require_tls,
        rsa_key_path: Some(settings.data_dir.join("private_key.pem")),
        limits: Limits { max_connections: settings.max_connections as usize, ..Limits::default() },
    };
    let server = Server::new(Arc::new(Backend(engine.clone())), options).map_err(|e| e.to_string())?;
    let native = Native::start(settings, database.clone(), native, cores)?;
    native.follow(&engine);
    let registry = metrics::registry(engine, server.clone(), &native);
    let mysql_address = mysql.local_addr().map_err(|e| e.to_string())?;
    let mut listeners = vec![Listener::Tcp(mysql)];
    if let Some(path) = &settings.socket {
        let listener =
            Listener::bind_unix(path).map_err(|e| format!("cannot listen on socket {}: {e}", path.display()))?;
        listeners.push(listener);
    }
    let count = if settings.threads == 0 { cores } else { settings.threads as usize };
    let workers = workers::start(server, count, listeners).map_err(|e| format!("cannot start threads: {e}"))?;

    let healthy = Arc::new(AtomicBool::new(true));
    let http_address = http.local_addr().map_err(|e| e.to_string())?;
    let (http_stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let http_thread = {
        let healthy = healthy.clone();
        std::thread::Builder::new()
            .name("http".into())
            .spawn(move || serve_http(http, registry, healthy, stopped))
            .map_err(|e| format!("cannot start threads: {e}"))?
    };
    Ok(Running { mysql: mysql_address, http: http_address, native, database, workers, healthy, http_stop, http_thread })
}

impl Running {
    pub fn ready_line(&self, settings: &Settings) -> String {
        let directory = settings.data_dir.canonicalize().unwrap_or_else(|_| settings.data_dir.clone());
        let (mysql, native, http) = (self.mysql, self.native.address, self.http);
        format!("{READY}{mysql}, native on {native}, http on {http}, data in {}", directory.display())
    }

    pub fn stop(self) -> Result<(), String> {
        self.healthy.store(false, Ordering::Relaxed);
        // Both kinds of clients at the same time: requests that run may end, open transactions are rolled back.
        let native = self.native;
        let cancelled = std::thread::scope(|scope| {
            scope.spawn(|| native.stop(GRACE));
            self.workers.shutdown(GRACE)
        });
        if cancelled > 0 {
            tracing::warn!(cancelled, "statements that still ran were cancelled");
        }
        let result = block_on(self.database.shutdown())
            .map_err(|e| format!("the last checkpoint failed ({e}); the redo log holds everything"));
        // The thread may have ended already.
        let _ = self.http_stop.send(());
        let _ = self.http_thread.join();
        tracing::info!("stopped");
        result
    }
}

/// Blocks until Ctrl-C or SIGTERM; a second one ends the process at once.
pub fn wait_for_signal() -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(signal())?;
    tracing::info!("stopping; a second signal stops at once");
    std::thread::spawn(move || {
        if runtime.block_on(signal()).is_ok() {
            std::process::exit(1);
        }
    });
    Ok(())
}

async fn signal() -> Result<(), String> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| format!("cannot wait for signals: {e}"))?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result.map_err(|e| format!("cannot wait for signals: {e}")),
        _ = terminate.recv() => Ok(()),
    }
}

fn serve_http(
    listener: TcpListener,
    registry: prometheus_client::registry::Registry,
    healthy: Arc<AtomicBool>,
    stopped: tokio::sync::oneshot::Receiver<()>,
) {
    let serve = || -> std::io::Result<()> {
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let stop = async {
                // A dropped sender means stop as well.
                let _ = stopped.await;
            };
            // Connections that are kept open must not hold up the end.
            tokio::select! {
                result = http::serve(listener, registry, healthy, std::future::pending()) => result,
                () = stop => Ok(()),
            }
        })
    };
    if let Err(error) = serve() {
        tracing::error!(%error, "the HTTP port is closed");
    }
}

fn bind(settings: &Settings, port: u16, name: &str) -> Result<TcpListener, String> {
    let address = SocketAddr::new(settings.host, port);
    let socket = || -> std::io::Result<TcpListener> {
        let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
        // A restart must not wait for old connections' TIME_WAIT; a live listener is still refused.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(1024)?;
        Ok(socket.into())
    };
    socket().map_err(|e| match e.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!(
                "port {port} on {} is in use by another process; choose another with --{name} (0 takes a free one)",
                settings.host
            )
        }
        std::io::ErrorKind::PermissionDenied => {
            format!("no permission to listen on port {port}; choose one above 1023 with --{name}")
        }
        _ => format!("cannot listen on {address} (--{name}, --host): {e}"),
    })
}

/// A directory that holds something else is left alone.
fn check_directory(directory: &Path) -> Result<(), String> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("cannot use data directory {}: {error}", directory.display())),
        Ok(entries) => entries,
    };
    let names: Vec<_> = entries.filter_map(|e| e.ok()).map(|e| e.file_name()).collect();
    if names.is_empty() || names.iter().any(|n| n == rauk_log::real_disk::LOCK_FILE) {
        return Ok(());
    }
    Err(format!(
        "{} is not a Rauk data directory and not empty (it holds {}); choose another with --data-dir",
        directory.display(),
        names[0].to_string_lossy()
    ))
}

fn engine_options(settings: &Settings, mysql: &TcpListener, native: &TcpListener) -> Result<EngineOptions, String> {
    let port_of = |listener: &TcpListener| listener.local_addr().map(|a| a.port()).map_err(|e| e.to_string());
    let (port, native_port) = (port_of(mysql)?, port_of(native)?);
    let hostname =
        std::fs::read_to_string("/proc/sys/kernel/hostname").map_or("localhost".into(), |h| h.trim().to_string());
    let directory = settings.data_dir.canonicalize().unwrap_or_else(|_| settings.data_dir.clone());
    let durability = match settings.durability {
        Durability::Fsync => "fsync",
        Durability::Relaxed => "relaxed",
    };
    Ok(EngineOptions {
        variables: vec![
            ("port", Value::UInt(port.into())),
            ("datadir", Value::Str(format!("{}/", directory.display()))),
            ("hostname", Value::Str(hostname)),
            ("socket", Value::Str(settings.socket.as_ref().map_or(String::new(), |s| s.display().to_string()))),
            ("rauk_durability", Value::Str(durability.into())),
            ("rauk_history_limit", Value::UInt(settings.history_limit)),
            ("rauk_checkpoint_redo_bytes", Value::UInt(settings.checkpoint_redo)),
            ("rauk_native_port", Value::UInt(native_port.into())),
            ("rauk_native_longest_wait", Value::UInt(settings.native_longest_wait.into())),
            ("rauk_native_longest_spin", Value::UInt(settings.native_longest_spin.into())),
            ("max_connections", Value::UInt(settings.max_connections.into())),
        ],
        ..EngineOptions::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_is_read_back() {
        assert_eq!(
            port_of_ready_line(
                "rauk is ready: mysql on 127.0.0.1:4406, native on 127.0.0.1:2, http on 127.0.0.1:1, data in /x"
            ),
            Some(4406)
        );
        assert_eq!(port_of_ready_line("rauk is ready: mysql on [::1]:4406, http on [::1]:1, data in /x"), Some(4406));
        assert_eq!(port_of_ready_line("something else"), None);
    }

    #[test]
    fn a_foreign_directory_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(check_directory(directory.path()), Ok(()));
        assert_eq!(check_directory(&directory.path().join("not/there")), Ok(()));
        std::fs::write(directory.path().join("letters.txt"), "x").unwrap();
        let error = check_directory(directory.path()).unwrap_err();
        assert!(error.contains("letters.txt") && error.contains("--data-dir"), "{error}");
    }
}
