//! The MySQL client/server protocol, server side: handshake, authentication, TLS, commands, result sets. It knows nothing of storage or SQL; whatever
//! executes statements is a [`Backend`].

pub mod backend;

pub use backend::{Account, Backend, ConnectionInfo, Prepared, Session};
