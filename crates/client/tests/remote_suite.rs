//! The shared suite over the network: a server in this process, on a port of its own, and clients that know its secret.

use rauk_client::{Client, Options, blocking};
use rauk_node::native::{Limits, Service, server::Server};
use rauk_node::{Config, Database, Threads};
use rauk_transporter::{Identity, Secret, Security, Transporter};
use rauk_wire::hello::Role;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

#[macro_use]
mod suite;

const SECRET: &[u8] = b"a secret that only these tests know";

/// Ends with the test.
struct Running {
    transporter: Arc<Transporter>,
    _database: Database,
    _directory: tempfile::TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.transporter.shutdown(Duration::from_millis(100));
    }
}

fn start() -> suite::Place {
    let directory = tempfile::tempdir().expect("a directory");
    let config = Config { partitions: 4, segment_bytes: 1 << 20, ..Default::default() };
    let disk = rauk_log::RealDisk::open(directory.path()).expect("a data directory");
    let threads = Threads::start().expect("threads");
    let database = Database::open(config, Arc::new(disk), threads, &|_| {}).expect("a database");
    let service = Service::new(database.clone(), Limits::default());
    let identity = Identity {
        role: Role::Node,
        cluster: [7; 16],
        incarnation: 1,
        version: rauk_wire::PROTOCOL,
        name: "suite".into(),
    };
    let options = rauk_transporter::Options { receive_threads: 2, ..Default::default() };
    let transporter = Transporter::start(options, identity, Server::new(service)).expect("a transporter");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let security = Security { secret: Some(Secret::new(SECRET).expect("long enough")), tls: None };
    let address = transporter.listen(listener, security).expect("listening").to_string();
    let connect = move || -> Client { blocking::connect(&address, Options::secret(SECRET)).expect("connected") };
    suite::Place {
        client: connect(),
        another: Arc::new(connect),
        _running: Box::new(Running { transporter, _database: database, _directory: directory }),
    }
}

suite!(crate::start);
