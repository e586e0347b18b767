//! A connection to the first server of a list that answers.
//!
//! Hosts are tried in their order. One that cannot be reached, is full or is stopping gives way to the next; a server
//! that refuses the account or the database has answered, and its answer is the error. Before the protocol library
//! connects, the port is asked for its greeting: a server of MySQL's protocol speaks first, and a client of another
//! protocol's port would wait for ever. The greeting also says whether the server has TLS.
//!
//! A connection is lost when the server has ended or closed it. [`Connection::is_open`] finds that out before a
//! statement is sent: a server never speaks unasked, so anything that can be read means the end. Whoever finds a
//! connection lost that way knows that its statement was not executed.

use super::tls::{self, TlsOptions};
use mysql::consts::CapabilityFlags;
use mysql::{Conn, OptsBuilder};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fmt::Display;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// How long a server may take to accept and to greet.
const GREETING: Duration = Duration::from_secs(5);
/// Of a greeting, as much as says whether there is TLS: a version of 64 bytes and the capabilities.
const GREETING_BYTES: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    pub port: u16,
}

impl Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    /// At least one.
    pub hosts: Vec<Host>,
    /// A Unix socket instead of hosts.
    pub socket: Option<String>,
    pub user: String,
    pub password: Option<String>,
    pub database: Option<String>,
    pub tls: TlsOptions,
    /// How long an answer may take; `None`: for ever.
    pub answer: Option<Duration>,
}

impl Options {
    /// Root without a password at one address.
    pub fn root_at(name: &str, port: u16) -> Options {
        Options {
            hosts: vec![Host { name: name.into(), port }],
            socket: None,
            user: "root".into(),
            password: None,
            database: None,
            tls: TlsOptions::default(),
            answer: None,
        }
    }
}

pub struct Connection {
    pub conn: Conn,
    /// `None`: a Unix socket.
    pub host: Option<Host>,
    /// Protocol and cipher; `None`: not encrypted.
    pub tls: Option<String>,
}

impl Connection {
    /// Whether the server is still there, as far as can be seen without asking it. Only between statements.
    pub fn is_open(&self) -> bool {
        // SAFETY: the connection owns the descriptor and lives longer than this call.
        let socket = unsafe { BorrowedFd::borrow_raw(self.conn.as_raw_fd()) };
        let mut watched = [PollFd::new(socket, PollFlags::POLLIN)];
        matches!(poll(&mut watched, PollTimeout::ZERO), Ok(0))
    }

    /// As people write it.
    pub fn server(&self, options: &Options) -> String {
        match (&self.host, &options.socket) {
            (Some(host), _) => host.to_string(),
            (None, Some(socket)) => socket.clone(),
            (None, None) => "?".into(),
        }
    }
}

/// Why there is no connection.
enum Refused {
    /// Another host may do better.
    Elsewhere(String),
    Final(String),
}

pub fn connect(options: &Options) -> Result<Connection, String> {
    if options.socket.is_some() {
        let conn = open(options, None, options.socket.as_deref()).map_err(|refused| match refused {
            Refused::Elsewhere(text) | Refused::Final(text) => text,
        })?;
        return Ok(Connection { conn, host: None, tls: None });
    }
    let mut reasons = Vec::new();
    for host in &options.hosts {
        match connect_to(options, host) {
            Ok(connection) => return Ok(connection),
            Err(Refused::Final(reason)) => return Err(reason),
            Err(Refused::Elsewhere(reason)) => reasons.push(reason),
        }
    }
    Err(reasons.join("\n"))
}

fn connect_to(options: &Options, host: &Host) -> Result<Connection, Refused> {
    let (stream, has_tls) = greeting(host)?;
    // TLS that is impossible is no reason to look elsewhere: the next host would be worse unnoticed.
    if !options.tls.wants(has_tls).map_err(|e| Refused::Final(format!("{host}: {e}")))? {
        drop(stream);
        let conn = open(options, Some(host), None)?;
        return Ok(Connection { conn, host: Some(host.clone()), tls: None });
    }
    let relay = tls::Relay::begin(stream, &host.name, &options.tls).map_err(Refused::Final)?;
    let opened = open(options, Some(host), Some(relay.path()));
    match (opened, relay.outcome()) {
        (Ok(conn), Ok(cipher)) => Ok(Connection { conn, host: Some(host.clone()), tls: Some(cipher) }),
        // What went wrong there is why the library has found no server.
        (Err(_), Err(reason)) => Err(Refused::Final(format!("{host}: {reason}"))),
        (Err(refused), Ok(_)) => Err(refused),
        (Ok(_), Err(reason)) => Err(Refused::Elsewhere(format!("{host}: {reason}"))),
    }
}

fn open(options: &Options, host: Option<&Host>, socket: Option<&str>) -> Result<Conn, Refused> {
    // What a session changes comes with each OK: the database, and whether a transaction is open.
    let reports = CapabilityFlags::CLIENT_SESSION_TRACK;
    let builder = OptsBuilder::new()
        .ip_or_hostname(host.map(|h| h.name.as_str()))
        .tcp_port(host.map_or(0, |h| h.port))
        .socket(socket)
        .prefer_socket(false)
        .user(Some(&options.user))
        .pass(options.password.as_deref())
        .db_name(options.database.as_deref())
        .additional_capabilities(reports)
        .read_timeout(options.answer)
        .tcp_connect_timeout(Some(GREETING));
    Conn::new(builder).map_err(|error| match error {
        mysql::Error::MySqlError(e) => {
            let text = format!("ERROR {} ({}): {}", e.code, e.state, e.message);
            match e.code {
                // Too many connections, shutting down, too many errors of this host, too many of this user.
                1040 | 1053 | 1129 | 1203 => Refused::Elsewhere(match host {
                    Some(host) => format!("{host}: {text}"),
                    None => text,
                }),
                _ => Refused::Final(text),
            }
        }
        other => unreachable(&host.map_or_else(|| socket.unwrap_or("?").to_string(), Host::to_string), &other),
    })
}

fn unreachable(place: &str, why: &dyn Display) -> Refused {
    Refused::Elsewhere(format!("cannot connect to {place}: {why}; is `rauk start` running there?"))
}

/// Whether the server that greets there has TLS. The stream has not been read.
fn greeting(host: &Host) -> Result<(TcpStream, bool), Refused> {
    let place = host.to_string();
    let addresses = (host.name.as_str(), host.port).to_socket_addrs().map_err(|e| unreachable(&place, &e))?;
    let mut failed = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, GREETING) {
            Ok(stream) => {
                let mut seen = [0; GREETING_BYTES];
                let greeted = stream.set_read_timeout(Some(GREETING)).and_then(|()| peek_greeting(&stream, &mut seen));
                let greeted = greeted.and_then(|n| stream.set_read_timeout(None).map(|()| n));
                return match greeted {
                    // Whatever it says, the protocol library has an answer to it.
                    Ok(n) => Ok((stream, tls::is_offered(&seen[..n]))),
                    Err(_) => Err(Refused::Elsewhere(format!(
                        "{place} does not greet as a MySQL server does: is it the port of something else? `rauk start` prints its ports"
                    ))),
                };
            }
            Err(error) => failed = Some(error),
        }
    }
    let why = failed.unwrap_or_else(|| std::io::ErrorKind::NotFound.into());
    Err(unreachable(&place, &why))
}

/// Servers send a greeting at once; one that came in two parts would only look like one without TLS, so this asks twice.
fn peek_greeting(stream: &TcpStream, seen: &mut [u8]) -> std::io::Result<usize> {
    let n = stream.peek(seen)?;
    if n > 0 && n < tls::shortest_greeting(&seen[..n]) {
        std::thread::sleep(Duration::from_millis(20));
        return stream.peek(seen);
    }
    Ok(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_well() {
        let shown = |name: &str| Host { name: name.into(), port: 3306 }.to_string();
        assert_eq!((shown("a"), shown("::1")), ("a:3306".into(), "[::1]:3306".into()));
    }

    /// A port that accepts and says nothing, or closes at once, is not waited for for ever; the next host is tried.
    #[test]
    fn every_host_that_fails_is_named() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port");
        let mut options = Options::root_at("127.0.0.1", closed.port());
        options.hosts.push(Host { name: "no-such-host.invalid".into(), port: 1 });
        let Err(error) = connect(&options) else { panic!("nobody listens") };
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines.len(), 2, "{error}");
        assert!(lines[0].contains(&closed.to_string()) && lines[1].contains("no-such-host.invalid:1"), "{error}");
    }
}
