//! A server in this process that can be stopped and started again on its port, and a relay in front of it that loses what a test wants lost.

use parking_lot::Mutex;
use rauk_client::{Client, Options, Record, RetryPolicy, blocking};
use rauk_node::native::{Limits, Service, server::Server as Native};
use rauk_node::{Config, Database, Threads, block_on};
use rauk_transporter::{Identity, Secret, Security, Transporter};
use rauk_wire::frame::{self, Parsed};
use rauk_wire::hello::Role;
use rauk_wire::{Kind, MAX_PAYLOAD};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const SECRET: &[u8] = b"a secret that only these tests know";

pub struct Server {
    pub transporter: Arc<Transporter>,
    pub database: Database,
    pub address: SocketAddr,
    pub directory: PathBuf,
}

impl Server {
    /// On a free port.
    pub fn start(directory: &Path) -> Server {
        Server::start_at(directory, "127.0.0.1:0".parse().expect("an address"))
    }

    pub fn start_at(directory: &Path, address: SocketAddr) -> Server {
        Server::start_of([7; 16], directory, address)
    }

    pub fn start_of(cluster: [u8; 16], directory: &Path, address: SocketAddr) -> Server {
        static INCARNATION: AtomicU64 = AtomicU64::new(1);
        let config = Config { partitions: 4, segment_bytes: 1 << 20, ..Config::default() };
        let disk = rauk_log::RealDisk::open(directory).expect("a data directory");
        let threads = Threads::start().expect("threads");
        let database = Database::open(config, Arc::new(disk), threads, &|_| {}).expect("a database");
        let service = Service::new(database.clone(), Limits::default());
        let identity = Identity {
            role: Role::Node,
            cluster,
            incarnation: INCARNATION.fetch_add(1, Ordering::SeqCst),
            version: rauk_wire::PROTOCOL,
            name: "server".into(),
        };
        let options = rauk_transporter::Options { receive_threads: 1, ..Default::default() };
        let transporter = Transporter::start(options, identity, Native::new(service)).expect("a transporter");
        let listener = TcpListener::bind(address).expect("the port");
        let security = Security { secret: Some(Secret::new(SECRET).expect("long enough")), tls: None };
        let address = transporter.listen(listener, security).expect("listening");
        Server { transporter, database, address, directory: directory.to_owned() }
    }

    /// Says goodbye and ends; its directory and port are free then.
    pub fn stop(self) {
        self.transporter.shutdown(Duration::from_millis(50));
        block_on(self.database.shutdown()).expect("a last checkpoint");
    }
}

/// Options that give up soon.
pub fn options() -> Options {
    Options {
        connect_timeout: Duration::from_secs(5),
        retry: RetryPolicy {
            attempts: 12,
            first_pause: Duration::from_millis(2),
            longest_pause: Duration::from_millis(200),
        },
        ..Options::secret(SECRET)
    }
}

pub fn connect(address: SocketAddr) -> Client {
    connect_with(address, options())
}

pub fn connect_with(address: SocketAddr, options: Options) -> Client {
    blocking::connect(&address.to_string(), options).expect("connected")
}

#[derive(Record, Clone, Debug, PartialEq)]
#[rauk(database = "test", table = "counters")]
pub struct Counter {
    #[rauk(key)]
    pub id: u64,
    pub value: i64,
}

pub fn counter(id: u64, value: i64) -> Counter {
    Counter { id, value }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    ToServer,
    ToClient,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The frame does not arrive, and the connection ends.
    Cut,
    /// It does not arrive, and nobody notices.
    Lost,
}

/// What becomes of the next frame of this kind.
type Rule = (Way, Kind, Fate);

pub struct Relay {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    /// `None`: clients find their connections closed.
    server: Mutex<Option<SocketAddr>>,
    /// Nothing passes any more, and nothing ends: as behind a machine that has lost its power.
    frozen: AtomicBool,
    rule: Mutex<Option<Rule>>,
    sockets: Mutex<Vec<TcpStream>>,
    accepted: AtomicUsize,
    passed: Mutex<Vec<(Way, Kind)>>,
}

impl Relay {
    pub fn start(server: SocketAddr) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            server: Mutex::new(Some(server)),
            frozen: AtomicBool::new(false),
            rule: Mutex::new(None),
            sockets: Mutex::default(),
            accepted: AtomicUsize::new(0),
            passed: Mutex::default(),
        });
        let weak = Arc::downgrade(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Some(shared), Ok(client)) = (weak.upgrade(), client) else { return };
                shared.accepted.fetch_add(1, Ordering::SeqCst);
                // A server that is away: the client finds its connection closed.
                let Some(server) = *shared.server.lock() else { continue };
                let Ok(server) = TcpStream::connect(server) else { continue };
                for (way, from, to) in [(Way::ToServer, &client, &server), (Way::ToClient, &server, &client)] {
                    let (from, to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
                    shared.sockets.lock().push(from.try_clone().expect("a socket"));
                    let shared = shared.clone();
                    std::thread::spawn(move || pass(way, from, to, &shared));
                }
            }
        });
        Relay { address, shared }
    }

    /// What becomes of the next frame of this kind.
    pub fn next(&self, way: Way, kind: Kind, fate: Fate) {
        *self.shared.rule.lock() = Some((way, kind, fate));
    }

    /// Whether what was asked for has happened.
    pub fn happened(&self) -> bool {
        self.shared.rule.lock().is_none()
    }

    /// Where new connections lead; those that are open end.
    pub fn lead_to(&self, server: Option<SocketAddr>) {
        *self.shared.server.lock() = server;
        self.cut_all();
    }

    pub fn freeze(&self) {
        self.shared.frozen.store(true, Ordering::SeqCst);
    }

    pub fn cut_all(&self) {
        for socket in self.shared.sockets.lock().drain(..) {
            // It may be closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    pub fn connections(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many frames of this kind have passed.
    pub fn passed(&self, way: Way, kind: Kind) -> usize {
        self.shared.passed.lock().iter().filter(|frame| **frame == (way, kind)).count()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.cut_all();
    }
}

fn pass(way: Way, mut from: TcpStream, mut to: TcpStream, shared: &Shared) {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    let cut = |a: &TcpStream, b: &TcpStream| {
        // They may be closed already.
        let _ = (a.shutdown(Shutdown::Both), b.shutdown(Shutdown::Both));
    };
    loop {
        let count = match from.read(&mut chunk) {
            Ok(0) | Err(_) => return cut(&from, &to),
            Ok(count) => count,
        };
        bytes.extend_from_slice(&chunk[..count]);
        loop {
            let (header, length) = match frame::parse(&bytes).expect("both sides send frames") {
                Parsed::Incomplete(needed) => {
                    assert!(needed <= MAX_PAYLOAD + 1024);
                    break;
                }
                Parsed::Whole(header, length) => (header, length),
            };
            let frame: Vec<u8> = bytes.drain(..length).collect();
            if shared.frozen.load(Ordering::SeqCst) {
                continue;
            }
            let fate = {
                let mut rule = shared.rule.lock();
                match *rule {
                    Some((w, kind, fate)) if w == way && kind == header.kind => {
                        *rule = None;
                        Some(fate)
                    }
                    _ => None,
                }
            };
            match fate {
                Some(Fate::Cut) => return cut(&from, &to),
                Some(Fate::Lost) => continue,
                None => {
                    shared.passed.lock().push((way, header.kind));
                    if to.write_all(&frame).is_err() {
                        return cut(&from, &to);
                    }
                }
            }
        }
    }
}
