//! The cluster's protocols as pure blocks: signals in, signals out; no clock, socket, file, thread or random source.
//!
//! | module | what |
//! |---|---|
//! | [`replica`] | one replica of one group: the stream of entries from its primary to all in-sync replicas, views, acknowledgements, catching up, copies |
//! | [`comparison`] | digests of the rows of all replicas at one place of the stream: who differs from the others |
//! | [`transactions`] | what the entries of a stream mean: prepares, commits, outcomes, fences; and how a commit over several groups is decided |
//!
//! The rules that both keep, and why, are in docs/cluster-protocols.md; the models that prove them in `crates/models`. Numbers of rules
//! in comments (*rule 7*) are those of that page.
//!
//! # How a group is replicated
//! The primary's *stream* is a list of entries at positions 1, 2, 3 …, each written in a view. An entry is *stable*
//! when every in-sync replica has it (on disk, at `fsync`). A one-group transaction is one entry and commits when that
//! is stable. A transaction over several groups is a prepare in each; when all of them are stable it is committed,
//! whoever dies after that. Whatever is not stable can still be *cut* by the next primary, and until then stands beside
//! the rows as pending versions, on followers too; so cutting is aborting pending versions, and never undoes a
//! committed row.

pub mod comparison;
pub mod replica;
pub mod transactions;

pub use comparison::{Comparison, Verdict};
pub use replica::{Assignment, Entry, EntryId, Outbox, Replica, Role};
pub use transactions::{Closing, Decision, Effect, Outcome, Record, TxnTable, Vote};
