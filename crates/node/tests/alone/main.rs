//! A data node alone, in this process, one module per subject: `cargo test -p rauk-node --test alone durability`.

#[path = "../support/mod.rs"]
mod support;

mod basics;
mod bulk;
mod ddl;
mod durability;
mod isolation;
mod large_values;
mod limits;
mod native;
mod online_copy;
mod online_ddl;
mod online_foreign;
mod parallel_ddl;
mod partitions;
mod stress;
