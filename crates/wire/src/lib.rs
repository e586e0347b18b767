//! Frames and signals of the native protocol: what travels between programs and data nodes, and between nodes.
//!
//! Nothing here does I/O. A *frame* is a fixed little-endian header ([`frame::Header`]) and a payload; a *signal* is what a payload means
//! ([`Kind`]). Whoever reads never trusts a length: every reader returns [`WireError`] on bytes that do not fit, and allocates no more than
//! what has arrived. Layouts are frozen by golden bytes (`tests/golden`); a change needs a new protocol version.
//!
//! | module | what |
//! |---|---|
//! | [`frame`] | header, checksum, bounds |
//! | [`kind`] | the numbers of signals |
//! | [`hello`] | handshake: versions, who is who, challenge and proof |
//! | [`value`] | one value; lists of values |
//! | [`expression`] | the one form of expressions that travel to where the rows are |
//! | [`filter`] | its part that the native API uses: conditions on a row |
//! | [`batch`] | many operations in one request, and their answer |
//! | [`scan`] | scans in pages |
//! | [`definition`] | table definitions: open, create, drop |
//! | [`placement`] | which node leads which partitions |
//! | [`failure`] | errors on the wire |
//! | [`read`] | the cursor that everything is read with |
//! | [`fuzz`] | any bytes through all of it |
//!
//! Times: a deadline is relative (microseconds left), so that no two clocks are compared. Timestamps are commit times.

pub mod batch;
pub mod definition;
pub mod expression;
pub mod failure;
pub mod filter;
pub mod frame;
pub mod fuzz;
pub mod hello;
pub mod kind;
pub mod login;
pub mod placement;
pub mod read;
pub mod scan;
pub mod value;

pub use batch::{
    Answer, AnswerBuilder, AnswerReader, Batch, BatchBuilder, BatchOptions, Isolation, LockWish, OpKind, Operation,
    Outcome, Shape, Wanted,
};
pub use expression::Expression;
pub use failure::{Failure, WireError};
pub use filter::{CompareOp, Filter};
pub use frame::{Frame, Header};
pub use kind::Kind;
pub use placement::Placement;
pub use value::Values;

/// The protocol that this program speaks; it accepts the one before as well.
pub const PROTOCOL: u16 = 1;
/// The oldest protocol that it accepts.
pub const OLDEST_PROTOCOL: u16 = PROTOCOL - 1;
/// Longest payload of a frame, in bytes; a peer that announces more is cut off.
pub const MAX_PAYLOAD: usize = 64 << 20;
/// Most operations of one batch.
pub const MAX_OPERATIONS: usize = u16::MAX as usize;
/// Longest payload of a handshake's signals, which come from peers of whom nothing is known yet.
pub const MAX_HANDSHAKE: usize = 4096;
/// Longest encoded key: text keys may have three bytes where the text has one.
pub const MAX_KEY: usize = 3 * rauk_types::schema::MAX_KEY_BYTES;

/// Whether frames of this format are read.
pub const fn is_spoken(format: u16) -> bool {
    format == PROTOCOL || format == OLDEST_PROTOCOL
}
