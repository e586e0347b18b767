//! The catalog of a cluster on one of its processes: what the manage group has decided comes into partitions and table cache; tables are locked for DDL of any
//! node.
//!
//! The glue calls [`CatalogState::follow`] with each state of the group. It does two things:
//!
//! * [`tables`]: what the group's catalog has, partitions and table cache get: new tables and changed ones, those that
//!   a DDL job builds (known by their ids only), and dropped ones go. New ordered indexes of a job are filled beside ([`fills`]). When `follow` returns, whoever needs this state of the group finds it.
//! * [`intents`]: the group's intents are DDL statements that want tables alone. Their tables are locked on this process, beside `follow`, since that takes
//!   as long as transactions use them; the owner is told when it is done. An intent that is gone from the group gives its locks back after the tables have
//!   followed, so that nobody gets in between.
//!
//! A process that begins makes the same call with the group's state as it finds it. Nobody uses its tables yet, so the locks of intents that are there are taken
//! at once, before it serves anybody.
//!
//! What is left behind is cleared up by [`upkeep`]: intents and jobs of DDL statements that have gone without ending them (their client went away, their process died).

mod fills;
pub mod intents;
mod tables;
#[cfg(test)]
mod tests;
mod upkeep;

pub use tables::all_tables;

use super::counters::Blocks;
use crate::node::Node;
use intents::Intents;
use parking_lot::Mutex;
use rauk_manage::JobId;
use rauk_manage::group::Group;
use rauk_types::ProcessId;
use std::sync::Arc;
use tables::Followed;

/// What this process has done for the catalog and for intents.
#[derive(Default)]
pub struct CatalogState {
    followed: Mutex<Option<Followed>>,
    pub intents: Arc<Intents>,
    /// Numbers in hand of AUTO_INCREMENT counters and hidden keys.
    pub blocks: Blocks,
}

impl CatalogState {
    /// Brings this process from what it has to what `group` says: tables made, changed, dropped in partitions and cache (indexes filled), locks of new intents begun, those of ended ones
    /// given back. Called for group states in order, one call at a time; when it returns, operations that need this state may run. Waits for nobody but this node's own work (locks are waited for in tasks of their own).
    pub async fn follow(&self, node: &Arc<Node>, group: &Arc<Group>) {
        let before = self.followed.lock().take();
        let unchanged = before.as_ref().is_some_and(|f| f.index == group.catalog_index);
        let mut taken = intents::Held::default();
        let now = match before {
            Some(followed) if unchanged => followed,
            before => tables::follow(node, before, group, &self.intents.fills, &mut taken).await,
        };
        if !unchanged {
            self.blocks.keep(|table| now.has(table));
        }
        *self.followed.lock() = Some(now);
        self.intents.follow(node, group, taken);
    }

    /// A process has filled the new indexes of a job, or could not for this memory limit; of a job that nobody waits for here, it is old news.
    pub fn on_filled(&self, job: JobId, process: ProcessId, full: Option<u64>) {
        self.intents.on_filled(job, process, full);
    }

    /// A process has locked the tables of an intent; of an intent that nobody waits for here, it is old news.
    pub fn on_locked(&self, intent: u64, process: ProcessId) {
        self.intents.on_locked(intent, process);
    }
}
