//! Models of the thirteen protocols on which the cluster's promises rest, small enough that a checker visits every
//! state: a development tool, nothing depends on it.
//!
//! * [`commit_takeover`]: a transaction over two participants, with crashes, promotions and competing take-overs.
//! * [`least_timestamp`]: snapshot reads on any replica against commits that draw no timestamp.
//! * [`in_sync`]: leases, in-sync sets, views and incarnations.
//! * [`cuts`]: cuts over the whole cluster, crashes that take memory, and going back.
//! * [`follower_reads`]: reads of the newest state that a follower answers by itself.
//! * [`group_entry`]: one entry over several partitions, each with a guard of its own.
//! * [`bucket_move`]: a bucket that goes to another group.
//! * [`group_split`]: groups that split and merge.
//! * [`large_chunks`]: large transactions that reach replicas in chunks.
//! * [`comparison`]: digests of rows that replicas tell at one entry.
//! * [`foreign_keys`]: inserts of child rows against deletes of their parents.
//! * [`new_foreign_key`]: a foreign key that is validated beside writers.
//! * [`table_copy`]: a table that is copied into a new form beside writers.
//!
//! Each says what it stands for, what it leaves out, which sizes were exhausted, and which rules of the design it
//! confirmed, sharpened or replaced. Each has *mutations*: safeguards that are switched off one at a time. A test shows
//! that every mutation is found, so that "nothing was found" means something; most of them are bugs that an
//! implementation is likely to have.
//!
//! The models are of the rules, not of the code: the simulator runs the real blocks, and takes the mutations as a list
//! of what it must be able to detect. When a rule changes in a block, it is changed here first.
//!
//! `cargo test -p rauk-models` exhausts the small sizes; `cargo run --release -p rauk-models -- all --large` the large
//! ones. [`check`] runs a model and tests progress, which the checker itself cannot.

pub mod bucket_move;
pub mod check;
pub mod commit_takeover;
pub mod comparison;
pub mod cuts;
pub mod follower_reads;
pub mod foreign_keys;
pub mod group_entry;
pub mod group_split;
pub mod in_sync;
pub mod large_chunks;
pub mod least_timestamp;
pub mod new_foreign_key;
pub mod table_copy;
