//! The catalog: databases, tables, settings and DDL jobs, as a deterministic state machine.
//!
//! Every change is a [`Command`]; [`Catalog::apply`] either carries it out wholly or refuses it with a typed error and
//! changes nothing. The same commands in the same order give the same state on every machine: there is no clock, no random
//! number and no map with a random order in here. On one node the commands stand in a journal ([`store`]); in a cluster they
//! come out of the manage group's log, as part of its state ([`group`]), on which the group's leader acts ([`leader`]).
//!
//! Ids of tables and jobs are handed out from counters in the state and are never used twice, not even after a table is
//! dropped or a job failed: rows of a dead table that still stand in the redo log can then never be taken for another's.

pub mod catalog;
pub mod command;
pub mod consensus;
pub mod error;
pub mod group;
pub mod histograms;
pub mod leader;
pub mod store;
pub mod views;

pub use catalog::{Applied, Catalog, Database};
pub use command::{Command, Job, JobId, JobLimits, JobStep, SettingChange};
pub use error::CatalogError;
pub use store::{CatalogStore, StoreError};
