//! Manage groups of several processes, each with its own thread, over a network in memory whose links can be cut.

mod failures;
mod membership;
mod support;
