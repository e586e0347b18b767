//! Sockets: links between programs and nodes, receive threads with poll sets, adaptive send, back-pressure, handshake, TLS.
//!
//! A [`Transporter`] has receive threads, each with a poll set of its own, and one send thread. A [`Link`] is one connection whose handshake went well.
//! Whoever reads a frame handles it ([`Handler::on_frame`]); whoever wants to send hands a finished frame to [`Link::send`], which sends at once, or leaves it to whoever
//! is sending, or lets it wait a little for company, by the rules of [`adaptive`]. What must wait in a handler becomes a task of the receive
//! thread ([`Link::spawn`]).
//!
//! | module | what |
//! |---|---|
//! | [`adaptive`] | when a frame may wait for others: pure, time passed in |
//! | [`link`] | one connection: send state, tasks, back-pressure, end |
//! | [`transporter`] | the door: options, listening, connecting, shutting down |
//! | [`peers`] | between nodes: a link to each, made and kept by itself |
//! | `receive` | poll sets, receive threads, waiters that receive for themselves, tasks, spinning |
//! | `send` | who sends, the send thread |
//! | `stream`, `buffers` | a socket, plain or under TLS; buffers that were sent, for the next frames |
//! | [`security`] | TLS, shared secrets |
//! | [`certificates`] | a cluster's authority, certificates of nodes, their TLS |
//! | [`login`] | the login of an account in the handshake |
//! | `handshake` | the handshake's state machine: pure, nonces passed in |
//! | [`statistics`] | counters for the operator |

pub mod adaptive;
mod buffers;
pub mod certificates;
pub mod error;
mod handshake;
pub mod link;
pub mod login;
pub mod peers;
mod receive;
pub mod security;
mod send;
mod shared;
pub mod statistics;
mod stream;
pub mod transporter;

pub use certificates::{Authority, Clock, Name, NodeCertificate, NodeKey, NodeTls};
pub use error::{CloseReason, TransportError};
pub use link::{Link, Urgency};
pub use login::{Account, Accounts, Denied, Granted, Stored, Stranger};
pub use peers::{PeerHandler, Peers};
pub use receive::round::together;
pub use security::{Secret, Security, Tls, TlsFiles};
pub use statistics::{LinkStatistics, Statistics};
pub use transporter::{Handler, Identity, Options, Transporter};
