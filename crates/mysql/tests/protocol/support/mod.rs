//! A server with the scripted backend on a free port, and a client to talk to it.
#![allow(dead_code)]

pub mod backend;
pub mod client;

use backend::Scripted;
pub use client::Client;
use rauk_mysql::{Limits, Listener, Server, ServerOptions, Workers, workers};
use std::sync::Arc;
use std::time::Duration;

pub struct Running {
    pub port: u16,
    pub backend: Arc<Scripted>,
    pub server: Arc<Server<Scripted>>,
    pub workers: Option<Workers<Scripted>>,
}

pub fn run(backend: Scripted, options: ServerOptions) -> Running {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let backend = Arc::new(backend);
    let server = Server::new(backend.clone(), options).unwrap();
    let workers = workers::start(server.clone(), 2, vec![Listener::Tcp(listener)]).unwrap();
    Running { port, backend, server, workers: Some(workers) }
}

pub fn run_default() -> Running {
    run(Scripted::default(), ServerOptions::default())
}

pub fn with_timeouts(change: impl FnOnce(&mut rauk_mysql::Timeouts)) -> backend::Scripted {
    let mut scripted = backend::Scripted::default();
    change(&mut scripted.timeouts);
    scripted
}

pub fn limits(change: impl FnOnce(&mut Limits)) -> ServerOptions {
    let mut options = ServerOptions::default();
    change(&mut options.limits);
    options
}

impl Running {
    pub fn client(&self) -> Client {
        self.client_with(client::DEPRECATE_EOF)
    }

    pub fn client_with(&self, extra: u32) -> Client {
        let mut client = Client::connect(self.port).unwrap();
        client.login("root", "", extra, "caching_sha2_password").unwrap();
        client
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(workers) = self.workers.take() {
            workers.shutdown(Duration::from_millis(100));
        }
    }
}

/// Tries for a while until `what` holds.
pub fn eventually(what: impl Fn() -> bool) {
    for _ in 0..500 {
        if what() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it did not come to pass within five seconds");
}
