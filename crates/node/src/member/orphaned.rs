//! Rows that this node has of groups in which it has no place any more.
//!
//! They are kept for a while: a group may come back, and then entries alone bring it up. After [`GRACE`] they are
//! forgotten, so that a node that has given groups to others has the memory for what it keeps. Nobody can need them by
//! then ([`rauk_manage::group::Group::is_orphaned`]): whoever has a place there has everything and is up. The log says
//! so too, by the record of a copy that has begun and goes no further: a restart finds the group empty, and who is
//! given it again gets a copy.

use super::Cluster;
use super::slot::Happening;
use rauk_cluster::replica::Contents;
use rauk_types::GroupId;
use std::collections::BTreeMap;
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(5);

/// Since when what.
#[derive(Default)]
pub struct Orphaned(BTreeMap<GroupId, Duration>);

impl Cluster {
    /// To be called every second or so.
    pub(super) fn drop_orphaned(&self, known: &mut Orphaned) {
        let (group, now) = (self.group(), self.runtime.now());
        let grace = self.hooks.orphaned_after.unwrap_or(GRACE);
        for (slot, state) in self.slots.iter().zip(&group.replication_groups) {
            let id = slot.group;
            let has_rows = || {
                let state = slot.state.lock();
                state.replica.contents() == Contents::Whole && state.replica.last().position.0 > 0
            };
            if !group.is_orphaned(id, self.me.node) || !has_rows() {
                known.0.remove(&id);
                continue;
            }
            if now.saturating_sub(*known.0.entry(id).or_insert(now)) >= grace {
                self.hooks.observer.iter().for_each(|observer| observer.orphaned(id));
                self.poke(id, Happening::Orphaned { version: state.version });
            }
        }
    }
}
