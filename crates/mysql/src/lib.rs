//! The MySQL client/server protocol, server side: handshake, authentication, TLS, commands, result sets. It knows nothing of storage or SQL; whatever
//! executes statements is a [`Backend`].
//!
//! ```text
//! packet       cutting bytes into packets and back, compression, fields: no I/O
//! handshake    the packets of greeting and login: no I/O
//! auth         password hashes and proofs, RSA key, brake on guessing
//! statement    prepared statements: binary parameters, long data
//! result       OK, ERR, EOF, columns, rows; the sink that statements write into
//! connection   one client from greeting to goodbye
//! server       what connections share
//! runtime      tasks, sockets and timers of a worker; handing its connections to another thread
//! workers      threads, listeners, stopping
//! ```

pub mod auth;
pub mod backend;
mod connection;
mod constants;
pub mod fuzz;
mod handshake;
mod packet;
mod result;
mod runtime;
pub mod server;
mod statement;
mod statement_text;
pub mod tls;
pub mod workers;

pub use backend::{Account, Backend, Certificate, ConnectionInfo, Prepared, Session, Timeouts, Transport};
pub use connection::stream::Socket;
pub use server::{Counters, Limits, Phase, Server, ServerOptions, Totals};
pub use tls::TlsOptions;
pub use workers::{Listener, Workers};
