//! System variables: what exists, who has which value, and how SET changes them.
//!
//! [`definition`] and [`table`] say what exists (name, scope, kind, range, default). [`store`] holds the values: the global ones as one shared
//! immutable vector that every new session borrows, a session's own ones as a small map over it, so that an idle connection costs a few
//! hundred bytes. [`assign`] checks and converts new values with MySQL's errors. [`refused`] has the values that are
//! refused because nothing follows them. [`settings`] is the digest of those variables that
//! statements consult, so that no statement looks a variable up by name.
//!
//! Left out: variables of parts that Rauk does not have (replication, MyISAM, the slow log's details), beyond those that tools read.

pub mod assign;
pub mod definition;
pub mod modes;
pub(crate) mod refused;
pub mod set;
pub mod settings;
pub mod store;
pub mod table;

pub use definition::{Kind, Variable, VariableScope};
pub use settings::Settings;
pub use store::{GlobalVariables, SessionVariables};
