//! Waiting: for row locks ([`waits`]) and for table definitions ([`metadata`]). No wait holds a thread.

pub mod held;
pub mod metadata;
pub mod waits;
