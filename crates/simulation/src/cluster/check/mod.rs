//! Checkers, one a file: each names the promise that it guards, and is a function of what was recorded. They know nothing of how the cluster works.
//!
//! | file | promise |
//! |---|---|
//! | [`acknowledged`] | no acknowledged write is lost, no rolled-back one appears |
//! | [`atomic`] | every snapshot shows a transaction's writes wholly or not at all |
//! | [`cut`] | where memory is what counts: the cluster goes back to a cut, and little is lost |
//! | [`paced`] | where memory is what counts: what a loss of all memory takes is bounded |
//! | [`answered`] | what an answered read has seen is not taken back |
//! | [`recent`] | who begins after an acknowledgement sees what was acknowledged |
//! | [`lists`] | snapshot isolation and serializability, by the dependency graph of list-append transactions |
//! | [`linearizable`] | a single row is a linearizable register |
//! | [`replicas`] | all in-sync replicas of a partition have the same rows when nothing goes on |
//! | [`unique`] | what is declared unique is unique |
//! | [`indexes`] | every index says what the rows say |
//! | [`primaries`] | at most one process is primary in a view |
//! | [`leases`] | nobody answers for a partition once a newer view has answered: no serving without a lease |
//! | [`catalog`] | all processes have the same catalog |
//! | [`definitions`] | a statement that changes definitions is done, or not, as was answered, and wholly |
//! | [`lineage`] | rows stay in the table that they were written to, whatever becomes of its name and form |
//! | [`released`] | transactions that have ended hold nothing |
//! | [`remains`] | nothing is left behind of statements that have ended |
//! | [`healthy`] | without faults the cluster becomes whole |
pub mod acknowledged;
pub mod answered;
pub mod atomic;
pub mod catalog;
pub mod cut;
pub mod definitions;
pub mod healthy;
pub mod indexes;
pub mod leases;
pub mod lineage;
pub mod linearizable;
pub mod lists;
pub mod paced;
pub mod primaries;
pub mod recent;
pub mod released;
pub mod remains;
pub mod replicas;
pub mod unique;

/// `Err` says what is wrong, and in what.
pub type Verdict = Result<(), String>;
