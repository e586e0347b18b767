//! Clusters of real `rauk` processes on this machine, one module per subject.
//!
//! One binary: each file by itself would be linked with the whole of what tests share again. A module's tests are run by its name: `cargo test -p rauk --test cluster damage`.

#[path = "../common/mod.rs"]
mod common;

mod adopted;
mod bad_input;
mod begun_again;
mod bench;
mod changes;
mod changes_many;
mod cut;
mod damage;
mod foreign;
mod forming;
mod histories;
mod links;
mod local;
mod locks;
mod namespaces;
mod native_clients;
mod native_placement;
mod native_sessions;
mod nodes;
mod partitions;
mod replicated;
mod risks;
mod sql;
mod sysbench;
