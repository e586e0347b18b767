//! The manage group by openraft: [`Consensus`](rauk_manage::consensus::Consensus) in production.
//!
//! Every process of a cluster runs a [`RaftGroup`]. One, three or five nodes of role *manage* are Raft voters; all others are learners, so each process has the whole
//! [`Group`](rauk_manage::group::Group) and hears of every change in order. openraft does not show outside of this crate.
//!
//! | what | module |
//! |---|---|
//! | starting, ending; making and joining a cluster | [`group`], `joining` |
//! | proposals: where to, when again, done once | `propose`, `machine` |
//! | what comes in from other processes | `serve`, `message` |
//! | what goes out | `network`, over the caller's [`Transport`] |
//! | log and vote, the snapshot, on disk | `log_store`, `state_machine` |
//! | how far these are synced | `claim` |
//! | these files without Raft, for the simulator | [`files`] |
//! | who votes, who stands for election | `membership`, `election` |
//! | whether a majority follows the leader | `following` |
//!
//! All of it runs on one thread with an executor of its own; the futures that the methods give can be polled by any executor. The thread is never blocked: files are written on
//! another one. What a peer sends is checked (cluster, sender, receiver, version, shape, order of entries) before openraft sees it.
//!
//! Times, with [`Timing::default`]: the leader is heard every 50 ms at least; a follower stands for election 240–320 ms after the last word, and is elected two round trips and three syncs later. Votes of equal terms
//! are ordered by node, so votes are not split.

mod claim;
mod election;
mod error;
pub mod files;
mod following;
pub mod group;
mod joining;
mod log_store;
mod machine;
mod membership;
mod message;
mod network;
mod propose;
mod serve;
mod state_machine;
mod types;

pub use error::RaftError;
pub use group::{Description, Options, RaftGroup, Status, Timing};
pub use message::PROTOCOL;
pub use network::Transport;
pub use propose::LONGEST_COMMAND;
