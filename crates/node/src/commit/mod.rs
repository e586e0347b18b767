//! The end of a transaction: one record in the redo log, and waiting until it is on disk.

pub mod group;
pub mod inflight;
