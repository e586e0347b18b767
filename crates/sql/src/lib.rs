//! SQL: from text to typed plans to rows.
//!
//! ```text
//! memory    what statements may use beside the stored rows
//! parse     text → Statement (a syntax tree of MySQL's statements) → text; normal form for the plan cache
//! expr      typed expressions: types, coercions, collations, functions, evaluation. One meaning for each, wherever it runs
//! plan      Statement → bound, typed plan: names resolved, access paths chosen, partitions pruned
//! exec      the row executor: key lookups, index ranges, small joins, grouping, sorting; INSERT, UPDATE, DELETE
//! session   connection state: variables, transactions, prepared statements, plan cache, users, DDL, SHOW, information_schema
//! ```
//! Each folder uses only those above it in this list.

pub mod bind;
pub mod exec;
pub mod expr;
mod logical;
mod memory;
mod optimize;
pub mod parse;
pub mod plan;
pub mod session;
mod stack;

pub use memory::Memory;
pub use session::{Engine, Session};
