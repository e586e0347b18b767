//! A data node in one process: executors around partitions, transactions, group commit, checkpoints, recovery.
//!
//! The node is runtime-agnostic: its futures need only wakers, and time, background work and randomness come through [`Runtime`], disk access
//! through [`rauk_log::Disk`], so that the same code runs under threads in production and under the seeded single-thread simulator.

pub mod database;
pub mod error;
pub mod runtime;
pub mod scan;
pub mod transaction;

pub use database::{Config, Database, Durability, TableHandle};
pub use error::NodeError;
pub use runtime::Runtime;
pub use scan::{ScanBatch, ScanCursor, ScanSpec};
pub use transaction::{InsertOutcome, Isolation, Lock, Savepoint, Transaction, TxnOptions};
