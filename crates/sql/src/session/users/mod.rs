//! Users: who may connect, and what they may do.
//!
//! Every account (`user`@`host`) is one JSON document in the database's settings (`user:NAME@HOST`), so that a change is durable when the statement
//! returns. [`store`] keeps all of them in memory, ordered as MySQL tries them: most specific host first. A session holds its account and
//! asks it before every statement; when any account changes, an epoch number moves and sessions fetch theirs again. A statement changes accounts only from what
//! they are ([`change`]), however many do so on however many nodes.
//!
//! Privileges are granted globally, on a database (with `%` and `_` as wildcards), on a table or on columns; accounts
//! can be granted to others as [`roles`]. What else an account is held to ([`rules`]: how old its password may be, which
//! passwords it may not use again, how its connections must be encrypted, how much it may do in an hour) is stored
//! with it; what it has used up, and wrong passwords in a row, are counted by each node ([`logins`]).
//! [`root`] has root's first password and the way back to one that is lost.
//! Left out: accounts of several factors, proxies, passwords that a component checks.

pub mod change;
pub mod grants;
mod graph;
pub mod logins;
pub mod password;
pub mod passwords;
pub mod privilege;
pub mod privilege_statements;
pub mod record;
pub mod role_statements;
pub mod roles;
mod root;
pub mod rules;
pub mod statements;
pub mod store;

pub use graph::roles_graph;
pub use privilege::Privileges;
pub use record::AccountRecord;
pub use root::RootPassword;
pub use store::{Account, Users};
