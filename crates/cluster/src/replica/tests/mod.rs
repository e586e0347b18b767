//! Replicas against random schedules, and single points by hand.
//!
//! `table` is a toy content (a map under a toy transaction table), `node` runs one block with a toy redo log and checkpoints, `world` has the nodes, the network, the manage
//! group and the checkers, `schedules` draws the schedules.

mod by_hand;
mod node;
mod schedules;
mod stopping;
mod table;
mod world;
