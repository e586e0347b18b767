//! Random statements on Rauk and on MariaDB: whoever differs from the other is looked at.
//!
//! A *seed* decides tables ([`schema`]) with rows ([`data`]) and statements over them ([`generate`], whose syntax tree
//! is [`tree`]). Both servers run them ([`run`]), the answers are compared ([`compare`]), and what differs is one of a
//! short list of known kinds ([`known`]) or is shrunk ([`shrink`]) to a script that can be pasted as a golden file
//! ([`golden`]). What MariaDB has no syntax for it is asked in other words ([`dialect`]). [`metamorphic`] compares Rauk
//! with itself. [`campaign`] runs seeds, [`summary`] counts. [`partitioned`] compares tables with partitions with tables
//! without, under crashes, and needs no MariaDB.
//!
//! The judge shares no code with what it judges: no crate of the server is used, and the server is a process that is
//! spoken to in MySQL's protocol. A statement that Rauk refuses with error 1235 is counted as not supported, by its
//! features; it is never a difference.

pub mod campaign;
pub mod compare;
pub mod data;
pub mod dialect;
pub mod dice;
pub mod generate;
pub mod golden;
pub mod known;
pub mod metamorphic;
pub mod partitioned;
pub mod run;
pub mod schema;
pub mod shrink;
pub mod summary;
pub mod tree;
