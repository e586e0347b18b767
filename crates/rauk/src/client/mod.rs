//! Connections and scripts for the tools that are clients of a server: `rauk sql`, `rauk status`, `rauk demo`.
//!
//! - [`arguments`]: the flags and environment variables of a connection, the same for all tools.
//! - [`connect`]: hosts in turn, errors that say what to do, a lost connection that is noticed.
//! - [`tls`]: `--ssl-mode`; TLS beside the protocol library, which has it only with crates that Rauk does not need.
//! - [`password`]: a password typed at the terminal.
//! - [`split`], [`commands`], [`literals`]: scripts of any size, statement by statement.
//!
//! Nothing here prints, except the prompt for a password.

pub mod arguments;
pub mod commands;
pub mod connect;
pub mod literals;
pub mod password;
pub mod split;
pub mod tls;

pub use connect::{Connection, Options, connect};

/// A number that nobody else has drawn, and nobody can guess.
pub fn unlikely_number() -> u64 {
    use rand::{Rng, SeedableRng, rngs::StdRng};
    StdRng::from_os_rng().random()
}
