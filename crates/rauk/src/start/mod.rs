//! `rauk start`: opens the data directory, recovers, serves, and stops cleanly.
//!
//! Order at start: log output, ports (they cost nothing and are the most frequent mistake), data directory (made, or checked and locked), whoever tells on the ports how far the start is ([`opening`]), recovery with progress or, as a member of a cluster, the way into
//! it ([`crate::cluster::member`]), then whoever serves clients ([`services`]), the ready line. A port in use or a data directory that cannot be used ends it with one line before anything is changed. Order at
//! stop (Ctrl-C, SIGTERM; [`signals`]): no new connections, running statements may end, the rest is told 1053, a last checkpoint, done; a second signal stops at once (nothing acknowledged is lost by that either).
//!
//! A member of a cluster that the others have taken for gone starts anew, whether it serves already or not: a process that gets no time while it opens may be registered, and given up before it has asked for its first lease.
//!
//! The ready line on standard output says where everything is; `ready.json` in the data directory says the same to programs, for as long as the process serves.
//! systemd is told the same ([`supervisor`]).

pub mod opening;
mod ports;
pub mod services;
mod signals;
mod supervisor;

use crate::cluster::member::{self, Anew, Member, Needs};
use crate::cluster::settings::DEFAULT_PORT;
use crate::cluster::{directory, view};
use crate::config::Settings;
use crate::http::{self, Pages, Site};
use crate::machine;
use crate::metrics;
use opening::{Opening, RefusingPort};
use ports::{bind, check_directory};
use rauk_log::{Disk, RealDisk};
use rauk_manage::group::RoleKind;
use rauk_node::runtime::threads::{Threads, block_on};
use rauk_node::{Config, Database, Runtime};
use serde::{Deserialize, Serialize};
use services::Services;
use signals::Signals;
use std::io::IsTerminal;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long running statements may go on after a stop was asked for.
const GRACE: Duration = Duration::from_secs(10);
/// Beginning of the line that says that clients can connect.
const READY: &str = "rauk is ready: ";

/// The MySQL port, if this is the ready line.
pub fn port_of_ready_line(line: &str) -> Option<u16> {
    let address = line.strip_prefix(READY)?.strip_prefix("mysql on ")?.split(',').next()?;
    address.rsplit_once(':')?.1.parse().ok()
}

fn initialise_log(settings: &Settings) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("RAUK_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(filter_of(&settings.log_level)));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let builder = builder.with_target(false).with_ansi(std::io::stderr().is_terminal());
    // Standard error may be a pipe that nobody reads any more; telling of that would be a panic.
    let builder = builder.log_internal_errors(false);
    // A second call (tests in one process) keeps the first.
    let _ = if settings.log_json { builder.json().try_init() } else { builder.try_init() };
}

/// Beside the data, while the process serves: where everything is.
pub const READY_FILE: &str = "ready.json";
/// How often it is looked whether there is a signal, and whether the group has taken this member for gone.
const LOOK: Duration = Duration::from_millis(50);
/// A member whose services do not start may have been taken for gone, and hear of it a little later.
const HEAR: Duration = Duration::from_secs(2);

/// Of openraft nothing: it writes some twenty errors a second while a node is gone, and what it does and fails at is told by the crate around it. Of
/// geo nothing: it warns of each geometry that is not valid, which clients may have as many of as they like.
fn filter_of(level: &str) -> String {
    match level {
        "info" => "info,openraft=off,geo=off".into(),
        "warn" => "warn,openraft=off,geo=off".into(),
        other => other.into(),
    }
}

/// A server that runs; `stop` ends it.
pub struct Running {
    /// With the role sql, or alone.
    services: Option<Services>,
    pub http: SocketAddr,
    cluster: Option<SocketAddr>,
    /// As a member of a cluster.
    member: Option<Arc<Member>>,
    database: Database,
    directory: std::path::PathBuf,
    healthy: Arc<AtomicBool>,
    http_stop: tokio::sync::oneshot::Sender<()>,
    http_thread: std::thread::JoinHandle<()>,
}

/// [`READY_FILE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    pub pid: u32,
    pub mysql: Option<SocketAddr>,
    pub native: Option<SocketAddr>,
    pub http: SocketAddr,
    pub cluster: Option<SocketAddr>,
    pub node: Option<u16>,
}

impl Ready {
    /// What the process that serves from this directory has said.
    pub fn read(data_dir: &Path) -> Option<Ready> {
        serde_json::from_str(&std::fs::read_to_string(data_dir.join(READY_FILE)).ok()?).ok()
    }
}

/// Why there is no server.
enum NotStarted {
    /// One line that names the cause.
    Failed(String),
    /// The cluster has taken this process for gone before it served. It has these ports; what else it has ends with the program.
    Gone { ports: Vec<(&'static str, u16)>, member: Arc<Member> },
}

impl From<String> for NotStarted {
    fn from(text: String) -> NotStarted {
        NotStarted::Failed(text)
    }
}

/// Starts a server and runs it until it is told to end; `ready` is called when it serves. To be called before the process has other threads. Comes back when it has ended, or could not start; a member that the
/// cluster has taken for gone executes the program anew.
pub fn run(settings: &Settings, ready: impl FnOnce(&Running) -> Result<(), String>) -> Result<(), String> {
    initialise_log(settings);
    let signals = Signals::hold()?;
    let started = start(settings);
    signals.end_opening();
    let running = match started {
        Ok(running) => running,
        Err(NotStarted::Failed(text)) => return Err(text),
        Err(NotStarted::Gone { ports, member }) => {
            tracing::warn!("process fenced before it served: its lease has expired; it executes itself again");
            member.fence();
            let anew = Anew::next();
            return if stops_in(anew.pause(), &signals) { Ok(()) } else { Err(member::start_anew(anew, &ports, None)) };
        }
    };
    ready(&running)?;
    supervisor::ready(&running.ready_line(settings));
    match wait_for_end(&running, &signals) {
        Ending::Stop => running.stop(),
        Ending::Anew => {
            if let Some(member) = &running.member {
                member.fence();
            }
            let anew = Anew::next();
            if stops_in(anew.pause(), &signals) { running.stop() } else { Err(running.start_anew(anew)) }
        }
    }
}

fn start(settings: &Settings) -> Result<Running, NotStarted> {
    let cores = std::thread::available_parallelism().map_or(2, |n| n.get());
    // Crash tests say by `RAUK_FAULT` where this process is to end or fail.
    rauk_log::fault::set_from_environment()?;
    let no_threads = |e: std::io::Error| format!("cannot start threads: {e}");
    let threads = Threads::start().map_err(no_threads)?;
    let runtime: Arc<dyn Runtime> = threads.clone();
    let plan = member::plan(settings, &*runtime)?;
    let serves = plan.as_ref().is_none_or(|plan| plan.roles.contains(&RoleKind::Sql));
    if !serves && settings.names_root_password() {
        return Err(NotStarted::Failed(
            "root's password is for nodes with the role sql: leave RAUK_ROOT_PASSWORD, --root-password-file and \
             --reset-root-password out here"
                .into(),
        ));
    }
    let listen = |port, name| bind(settings.host, "host", port, name);
    let clients = match serves {
        true => Some((listen(settings.mysql_port, "mysql-port")?, listen(settings.native_port, "native-port")?)),
        false => None,
    };
    let http = bind(settings.http_address(), "http-host", settings.http_port, "http-port")?;
    let cluster = match &plan {
        Some(_) => Some(listen(settings.cluster.port.unwrap_or(DEFAULT_PORT), "cluster-port")?),
        None => None,
    };
    check_directory(&settings.data_dir)?;
    let disk = RealDisk::open(&settings.data_dir).map_err(|e| e.to_string())?;
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let _ = std::fs::remove_file(settings.data_dir.join(READY_FILE));
    let least = if plan.is_some() { 8 } else { 4 };
    let config = Config {
        partitions: if settings.partitions == 0 { (cores * 2).clamp(least, 256) as u16 } else { settings.partitions },
        durability: settings.durability,
        memory_limit: settings.memory_limit,
        memory_available: machine::memory().map_or(u64::MAX, |memory| memory.bytes),
        history_limit: settings.history_limit,
        segment_bytes: settings.redo_segment,
        checkpoint_redo_bytes: settings.checkpoint_redo,
        ..Config::default()
    };
    let opening = Arc::new(Opening::new(config.recovery.clone(), runtime.clone()));
    let refusing = match &clients {
        Some((mysql, _)) => Some(RefusingPort::start(mysql, opening.clone()).map_err(no_threads)?),
        None => None,
    };
    let http_address = http.local_addr().map_err(|e| e.to_string())?;
    let site = Arc::new(Site::new(opening.clone(), metrics::opening(opening.clone())));
    let (http_stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let http_thread = {
        let site = site.clone();
        let serve = move || serve_http(http, site, stopped);
        std::thread::Builder::new().name("http".into()).spawn(serve).map_err(no_threads)?
    };
    let local = |listener: &TcpListener| listener.local_addr().map_err(|e| e.to_string());
    let cluster_address = cluster.as_ref().map(local).transpose()?;
    let (database, member) = match (plan, cluster) {
        (Some(plan), Some(cluster)) => {
            let needs = Needs {
                settings,
                config,
                disk,
                runtime: runtime.clone(),
                cluster,
                sql: clients.as_ref().map(|(mysql, _)| local(mysql)).transpose()?,
                native: clients.as_ref().map(|(_, native)| local(native)).transpose()?,
                cores,
                opening: opening.clone(),
            };
            let member = Member::open(plan, needs)?;
            (member.database.clone(), Some(Arc::new(member)))
        }
        _ => {
            let progress = |text: &str| opening.tell(text);
            let opened = Database::open(config, disk, runtime.clone(), &progress);
            let shown = settings.data_dir.display();
            (opened.map_err(|e| format!("cannot open data directory {shown}: {e}"))?, None)
        }
    };
    // Other nodes' scans bring expressions along, also to a node without clients.
    database.set_evaluator(Arc::new(rauk_sql::exec::SqlEvaluator::default()));
    let clients_at = match &clients {
        Some((mysql, native)) => Some((local(mysql)?, local(native)?)),
        None => None,
    };
    let services = match clients {
        Some(clients) => match Services::start(settings, &database, runtime, clients, refusing, cores) {
            Ok(services) => Some(services),
            Err(text) => {
                let gone = member.filter(|member| hears_that_it_is_gone(member)).map(|member| {
                    let ports = ports_of(clients_at, http_address, cluster_address);
                    NotStarted::Gone { ports, member }
                });
                return Err(gone.unwrap_or(text.into()));
            }
        },
        None => None,
    };
    let registry = metrics::registry(&database, services.as_ref(), member.clone(), opening);
    let healthy = Arc::new(AtomicBool::new(true));
    site.serve(Pages {
        registry,
        healthy: healthy.clone(),
        trouble: {
            let database = database.clone();
            Box::new(move || database.trouble())
        },
        health: {
            let database = database.clone();
            Box::new(move || {
                let (colour, reasons) = database.health();
                (colour.to_string(), reasons)
            })
        },
        cluster: member.clone().map(|member| -> http::Page { Box::new(move || view::of(&member).to_string()) }),
    });
    let running = Running {
        services,
        http: http_address,
        cluster: cluster_address,
        member,
        database,
        directory: settings.data_dir.clone(),
        healthy,
        http_stop,
        http_thread,
    };
    let text = serde_json::to_string(&running.ready()).expect("addresses can be written");
    directory::write_durably(&settings.data_dir, READY_FILE, text.as_bytes())
        .map_err(|e| format!("cannot write {READY_FILE} in {}: {e}", settings.data_dir.display()))?;
    Ok(running)
}

impl Running {
    /// Where MySQL clients connect; `None`: this node does not serve them.
    pub fn mysql(&self) -> Option<SocketAddr> {
        self.services.as_ref().map(|s| s.mysql)
    }

    fn ready(&self) -> Ready {
        Ready {
            pid: std::process::id(),
            mysql: self.mysql(),
            native: self.services.as_ref().map(|s| s.native.address),
            http: self.http,
            cluster: self.cluster,
            node: self.member.as_ref().map(|m| m.node.0),
        }
    }

    pub fn ready_line(&self, settings: &Settings) -> String {
        let directory = settings.data_dir.canonicalize().unwrap_or_else(|_| settings.data_dir.clone());
        let ready = self.ready();
        let mut parts = Vec::new();
        if let (Some(mysql), Some(native)) = (ready.mysql, ready.native) {
            parts.push(format!("mysql on {mysql}, native on {native}"));
        }
        parts.push(format!("http on {}", ready.http));
        if let (Some(cluster), Some(member)) = (ready.cluster, &self.member) {
            parts.push(format!("cluster '{}' on {cluster} as node {}", member.name, member.node.0));
        }
        format!("{READY}{}, data in {}", parts.join(", "), directory.display())
    }

    /// What to do next, where a cluster has just been founded.
    pub fn invitation(&self) -> Option<String> {
        self.member.as_ref().filter(|member| member.founded).map(|member| member.invitation())
    }

    /// Executes the program anew on the same ports; what was acknowledged is in the redo log, as after a crash. Gives why that failed.
    fn start_anew(self, anew: Anew) -> String {
        let _ = std::fs::remove_file(self.directory.join(READY_FILE));
        let clients = self.services.as_ref().map(|services| (services.mysql, services.native.address));
        let ports = ports_of(clients, self.http, self.cluster);
        // What SET GLOBAL has made of it: with the old limit its rows might not fit any more.
        member::start_anew(anew, &ports, Some(self.database.memory_limit()))
    }

    fn stop(self) -> Result<(), String> {
        supervisor::stopping();
        self.healthy.store(false, Ordering::Relaxed);
        let _ = std::fs::remove_file(self.directory.join(READY_FILE));
        if let Some(services) = self.services {
            services.stop(GRACE);
        }
        let result = block_on(self.database.shutdown())
            .map_err(|e| format!("the last checkpoint failed ({e}); the redo log holds everything"));
        if let Some(member) = &self.member {
            member.close();
        }
        // The thread may have ended already.
        let _ = self.http_stop.send(());
        let _ = self.http_thread.join();
        tracing::info!("stopped");
        result
    }
}

/// Why a server ends.
enum Ending {
    Stop,
    /// The cluster has taken this process for gone.
    Anew,
}

/// Blocks until Ctrl-C or SIGTERM, or until a member must start anew.
fn wait_for_end(running: &Running, signals: &Signals) -> Ending {
    loop {
        if signals.take() {
            return Ending::Stop;
        }
        if running.member.as_ref().is_some_and(|member| member.is_expelled()) {
            tracing::warn!(
                "process is over: its lease has expired, or it has given its place up; it executes itself again"
            );
            return Ending::Anew;
        }
        std::thread::sleep(LOOK);
    }
}

/// Waits before this process starts anew; `true`: it is to stop.
fn stops_in(pause: Duration, signals: &Signals) -> bool {
    if !pause.is_zero() {
        tracing::warn!("it has done so before, a short time ago: it waits {} ms first", pause.as_millis());
    }
    let end = Instant::now() + pause;
    loop {
        if signals.take() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether the cluster has taken this process for gone; who has not been run for a while may be about to hear of it.
fn hears_that_it_is_gone(member: &Member) -> bool {
    let end = Instant::now() + HEAR;
    while !member.is_expelled() && Instant::now() < end {
        std::thread::sleep(LOOK);
    }
    member.is_expelled()
}

/// Flags for the ports that a process has, so that it has them again. `clients`: MySQL, native.
fn ports_of(
    clients: Option<(SocketAddr, SocketAddr)>,
    http: SocketAddr,
    cluster: Option<SocketAddr>,
) -> Vec<(&'static str, u16)> {
    let ports = [
        ("--mysql-port", clients.map(|(mysql, _)| mysql)),
        ("--native-port", clients.map(|(_, native)| native)),
        ("--http-port", Some(http)),
        ("--cluster-port", cluster),
    ];
    ports.into_iter().filter_map(|(flag, address)| Some((flag, address?.port()))).collect()
}

fn serve_http(listener: TcpListener, site: Arc<Site>, stopped: tokio::sync::oneshot::Receiver<()>) {
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
                result = http::serve(listener, site, std::future::pending()) => result,
                () = stop => Ok(()),
            }
        })
    };
    if let Err(error) = serve() {
        tracing::error!(%error, "the HTTP port is closed");
    }
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
}
