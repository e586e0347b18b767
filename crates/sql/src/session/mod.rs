//! Connection state and everything that is not a query plan.
//!
//! ```text
//! engine        what sessions share: database, global variables, users, plan cache, process list
//! session       one connection: its state, and the calls that the protocols make
//! run           which statement does what; completion, warnings, row counts
//! data          SELECT, INSERT, UPDATE, DELETE: plan cache, binding, execution, atomicity of a statement
//! transactions  BEGIN, COMMIT, savepoints, implicit commits
//! prepared      prepared statements of the binary protocol and of SQL
//! metadata      queries inside queries over virtual tables
//! statistics    statistics of all tables, and the task that gathers them
//! histograms    ANALYZE TABLE … UPDATE HISTOGRAM
//! hints         optimizer hints of a whole statement
//! lookup        tables for the planner, with their privileges
//! variables     system variables and SET
//! users         accounts, privileges, GRANT
//! ddl           definitions
//! show          SHOW, DESCRIBE, EXPLAIN
//! system        virtual tables: information_schema, performance_schema, mysql, rauk
//! checksum      CHECKSUM TABLE
//! load          LOAD DATA
//! outfile       SELECT … INTO OUTFILE, DUMPFILE
//! files         files of the server's machine
//! into          SELECT … INTO; values of DO and SET that need a query
//! temporary     temporary tables
//! diagnostics   GET DIAGNOSTICS, SIGNAL
//! digests       what statements cost, by digest and by kind
//! tables_in_use which tables sessions use and wait for
//! accounting    counting a statement when it has ended
//! tracking      what a session reports of its changes
//! collect       a sink that keeps results in memory, for shells and tests
//! ```
//!
//! The promise about durability is kept here: before any answer, errors included, whatever the transaction has learned from commits is waited for
//! (`wait_observed`), and a commit returns when it is on disk.

mod accounting;
pub mod charset;
mod checksum;
pub mod collect;
pub(crate) mod data;
pub(crate) mod ddl;
mod dead_entries;
mod diagnostics;
mod digests;
pub mod engine;
pub(crate) mod errors;
mod files;
mod handlers;
mod hints;
mod histograms;
pub mod intervals;
mod into;
mod load;
pub(crate) mod lookup;
mod maintenance;
mod native;
mod outfile;
pub(crate) mod pattern;
pub mod plan_cache;
pub(crate) mod prepared;
pub mod processlist;
mod profiles;
mod read_only;
pub(crate) mod run;
mod server;
#[allow(clippy::module_inception)]
pub mod session;
pub(crate) mod show;
pub(crate) mod statistics;
mod status;
pub(crate) mod system;
mod table_locks;
mod tables_in_use;
mod temporary;
mod tracking;
pub(crate) mod transactions;
pub mod users;
pub mod variables;

#[cfg(test)]
mod tests;

pub use engine::{Client, Engine, EngineOptions, LoginAttempt, VERSION};
pub use prepared::Prepared;
pub use session::Session;
pub use users::{Account, RootPassword};
