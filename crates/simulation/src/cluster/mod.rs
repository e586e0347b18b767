//! Whole clusters of the real nodes, in one thread under a seed.
//!
//! | file | what |
//! |---|---|
//! | [`scenario`] | what a cluster is made of, what its clients do, what goes wrong: a TOML file each |
//! | [`world`] | machines, and the processes on them |
//! | [`network`] | messages, late, lost, doubled, reordered, cut off |
//! | [`consensus`] | the manage group's Raft, simulated at its interface |
//! | [`faults`] | what goes wrong |
//! | [`workload`] | what clients do |
//! | [`record`] | what they were told |
//! | [`check`] | the promises, one a file |
//! | [`run`] | a run from beginning to end |
//!
//! What runs is the code of production: `rauk_node::Database` as a member of a cluster, over a simulated disk, clock, network and consensus. A failure is repeated by scenario and seed:
//! `cargo run -p rauk-simulation -- --only cluster --scenario S --from N --seeds 1`.
pub mod check;
pub mod consensus;
pub mod faults;
pub mod network;
pub mod record;
pub mod run;
pub mod scenario;
pub mod workload;
pub mod world;

#[cfg(test)]
mod tests;
