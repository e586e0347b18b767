//! What the entries of a group's stream mean, and how a commit over several groups is decided.
//!
//! | file | what |
//! |---|---|
//! | `record` | what an entry says, and its bytes |
//! | `table` | the transaction table: entries, stable positions and cuts in, effects on rows and answers out |
//! | `questions` | what a primary asks its table before it takes or answers something, and what there is to do on its own |
//! | `memory` | what is remembered of finished transactions, bounded |
//! | `chunks` | what large transactions have written so far |
//! | `encoding` | the table as bytes, for copies and checkpoints |
//! | `decision` | the rule by which an outcome is decided |
//! | `takeover` | closing a transaction: questions, outcome, confirmations, forgetting; by its coordinator or by who takes over |
//! | `safeguards` | rules that tests switch off |
//!
//! # The life of a transaction over two groups
//! ```text
//! coordinator     Prepare →  look: nothing, locks held → propose Prepare → Adopt … stable → Answer(Prepared)
//! Closing         ← votes    all prepared: Committed(largest least time); the client is told
//!                 Decide →   tell: Propose → propose Decide → Commit … stable → Confirmed
//!                 ← confirmed, all
//!                 Forget →   forgettable → propose Forget … stable → tombstone
//! ```
//! If the coordinator is silent, a participant does the same from its own prepare on: `undecided` → [`Closing::take_over`] → `ask` at the others, which fence what they do not know.
//!
//! # Who must do what
//! The blocks here keep the rules of docs/cluster-protocols.md, given that their caller does this:
//! - Every entry, stable position and cut is shown to the table in the order of the replica's outbox, with its effects
//!   carried out in the same turn under the group's guard.
//! - An entry is proposed only after its question in `questions` was answered so in the same turn. Questions are asked by a primary (not one that opens) with a lease,
//!   and prepares are taken only where the transaction's locks are held (rule 5).
//! - Answers leave after the lease was checked again (rule 15). What was waited for at a primary that leads no more is void.
//! - A process that is dead for the control plane is heard no more (rule 21), and its locks go before
//!   [`TxnTable::orphans`] is asked.

mod chunks;
mod decision;
mod encoding;
mod memory;
mod questions;
mod record;
mod safeguards;
mod table;
mod takeover;
#[cfg(test)]
mod tests;

pub use decision::Decision;
pub use questions::{Contradiction, Known, Orphans, Told, Undecided};
pub use record::{Counted, Outcome, Record};
pub use table::{Effect, TxnTable, Vote, Writes};
pub use takeover::{Closing, Pace, Step};
