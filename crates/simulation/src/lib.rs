//! The real code of one node, run under a seed: simulated disk, clock and executor, crashes of every kind, and checkers of what must hold afterwards.
//!
//! Everything runs in one thread and draws from one seeded generator, so a failure is repeated by its seed: `cargo run -p rauk-simulation -- --seed S --seeds 1`.
//!
//! [`disk::SimDisk`] loses, tears, fills, fails and flips; [`crash`] decides when a life of the program ends; [`log_run`] and [`journal_run`] put the log and
//! the catalog's journal alone through it, [`raft_run`] the files of the manage group's consensus, [`node`] a whole node with its clients.

pub mod clock;
pub mod cluster;
pub mod crash;
pub mod disk;
pub mod executor;
pub mod journal_run;
pub mod log_run;
pub mod meddling;
pub mod node;
pub mod raft_run;
pub mod runtime;
pub mod trace;
