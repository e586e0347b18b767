//! A cluster that is made of the directory of a node that was alone (rule 81).
//!
//! Tables, accounts and settings come with the first command, so they are there as soon as the cluster is. Rows never
//! pass through the control plane: they are on the founder's disk. So the cluster begins as one that has gone back to
//! a cut ([`super::cuts`]) which the founder alone holds: recovery 1, whose time is that of the newest commit, and
//! whose place in each group's stream is the first entry, which nobody ever sends. Nobody is in-sync before the
//! founder has registered with a directory that has carried this recovery out; whoever joins later lacks the first
//! entry and gets a copy.

use super::command::{Answer, Refused};
use super::{Cut, Group, Recovery, whole_catalog};
use crate::catalog::Catalog;
use rauk_cluster::EntryId;
use rauk_types::{NodeId, Position, TableId, Timestamp, View};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The node that makes a cluster is given this number.
const FOUNDER: NodeId = NodeId(1);
/// What the founder's disk has of each group ends here.
const ENTRY: EntryId = EntryId { view: View(1), position: Position(1) };

/// What a directory had beside its rows. It travels as one text: a log entry is encoded and decoded for each node that
/// it is sent to, however often, and within the time that an answer may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adopted {
    #[serde(deserialize_with = "whole_catalog")]
    pub catalog: Catalog,
    /// Numbers below may have been given out, by counter.
    pub counters: BTreeMap<TableId, u64>,
    /// No commit is newer.
    pub time: Timestamp,
}

impl Adopted {
    /// As it stands in [`GroupCommand::Create`](super::GroupCommand::Create): JSON.
    pub fn encode(&self) -> Arc<str> {
        serde_json::to_string(self).expect("a catalog can always be written as JSON").into()
    }

    pub(super) fn decode(text: &str) -> Result<Adopted, Answer> {
        let adopted: Adopted = serde_json::from_str(text).map_err(|e| {
            Answer::Refused(Refused::OutOfRange(format!("what the cluster was to be made of cannot be read: {e}")))
        })?;
        adopted.check()?;
        Ok(adopted)
    }

    fn check(&self) -> Result<(), Answer> {
        if self.catalog.jobs().next().is_some() {
            let text = "a DDL statement is unfinished in the directory that founds the cluster".to_owned();
            return Err(Answer::Refused(Refused::OutOfRange(text)));
        }
        if self.time >= Timestamp(Timestamp::MAX.0 - 1) {
            let text =
                format!("the directory that founds the cluster has used all commit times, up to {}", self.time.0);
            return Err(Answer::Refused(Refused::OutOfRange(text)));
        }
        Ok(())
    }
}

impl Group {
    /// Of a group that has been made just now.
    pub(super) fn adopt(&mut self, adopted: &Adopted) {
        let groups = self.replication_groups.len();
        for state in &mut self.replication_groups {
            state.view = ENTRY.view;
            state.version = 1;
        }
        self.catalog = adopted.catalog.clone();
        self.catalog_index = self.index;
        self.counters.clone_from(&adopted.counters);
        self.drop_counters();
        self.timestamp_bound = adopted.time.0 + 1;
        let cut = Cut { time: adopted.time, entries: vec![ENTRY; groups], holders: vec![vec![FOUNDER]; groups] };
        if self.is_replicated() {
            self.cut = cut.clone();
        }
        self.recovery = Recovery { number: 1, cut };
    }
}
