//! SQL: from text to typed plans to rows.
//!
//! ```text
//! memory    what statements may use beside the stored rows
//! locks     the user-level locks of a session
//! parse     text → Statement (a syntax tree of MySQL's statements) → text; normal form for the plan cache
//! expr      typed expressions: types, coercions, collations, functions, evaluation. One meaning for each, wherever it runs
//! lookup    where tables come from: what binding asks of the session
//! logical   the tree of a statement: what it means, before anything is decided about how it runs
//! bind      Statement → logical tree: names resolved in scopes, types and collations derived
//! optimize  passes from tree to tree
//! physical  logical tree → plans: blocks of fused steps, access paths, partitions pruned; EXPLAIN
//! exec      the row executor: key lookups, index ranges, small joins, grouping, sorting; INSERT, UPDATE, DELETE
//! session   connection state: variables, transactions, prepared statements, plan cache, users, DDL, SHOW, information_schema
//! ```
//! Each folder uses only those above it in this list; a test of `rauk` (`architecture`) checks that.

mod bind;
pub mod exec;
pub mod expr;
mod hash;
mod histogram;
mod locks;
mod logical;
pub mod lookup;
mod measure;
mod memory;
mod nearest;
mod optimize;
pub mod parse;
pub mod physical;
pub mod session;
mod stack;
mod statistics;

pub use memory::Memory;
pub use session::{Engine, Session};
