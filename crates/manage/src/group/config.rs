//! What is settled when a cluster is made, and what can be changed while it runs.
//!
//! The numbers of partitions and of groups are fixed for ever: keys are mapped to them. Replicas, and the time after
//! which a node is replaced, can be changed at any time; placement follows. Durability is chosen when the cluster is
//! made: with `Fsync` an acknowledged commit is on the disks of all in-sync replicas; with `Replicated` it is in their
//! memory, reaches disks a moment later, and after the loss of all memory of a group the cluster goes back to a cut
//! ([`super::cuts`]). To change it later is refused in words: what was promised for commits that are acknowledged
//! already could not be kept at once on every node.

use super::command::{Answer, Refused};
use super::{Adopted, Group, ReplicationGroup};
use rauk_types::Layout;
use serde::{Deserialize, Serialize};

/// The durability of acknowledged commits; the same for all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClusterDurability {
    Fsync,
    Replicated,
}

/// What is settled when the cluster is made, and changed by [`super::GroupCommand::Configure`] where that is possible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterConfig {
    pub id: [u8; 16],
    /// At most 255 bytes.
    pub name: String,
    /// Never changes, 1–65 534. One more partition, with this number, holds the fully replicated tables: it has a replica on every data node.
    pub partitions: u16,
    /// Replication groups over which the partitions are dealt out; never changes. `None`: as many as partitions.
    #[serde(default)]
    pub groups: Option<u16>,
    /// Wanted replicas of each group, 1–4; fewer while there are fewer data nodes.
    pub replicas: u8,
    pub durability: ClusterDurability,
    /// Seconds after which a node that is down is replaced: others get its replicas.
    #[serde(default = "default_replace_after")]
    pub replace_after: u32,
    /// Durability `replicated`: seconds for which the last process that had a group in memory is waited for when it is
    /// silent, before the cluster goes back to a cut without it. 0: not at all.
    #[serde(default = "default_memory_return")]
    pub memory_return: u32,
}

/// Longer than a process is stopped by a debugger's attach, a virtual machine's move or a machine that swaps, and than a fenced process takes to come back.
pub const DEFAULT_MEMORY_RETURN: u32 = 30;

fn default_memory_return() -> u32 {
    DEFAULT_MEMORY_RETURN
}

/// Longer than a process takes to be started again, and short enough that rows do not stand on fewer replicas than were asked for until somebody looks.
pub const DEFAULT_REPLACE_AFTER: u32 = 60;

fn default_replace_after() -> u32 {
    DEFAULT_REPLACE_AFTER
}

/// The most partitions: one more number is that of the fully replicated one.
const MOST_PARTITIONS: u16 = u16::MAX - 1;
const MOST_REPLICAS: u8 = 4;
/// A month.
pub const MOST_REPLACE_AFTER: u32 = 30 * 24 * 3600;
pub const MOST_MEMORY_RETURN: u32 = MOST_REPLACE_AFTER;
const NAME_BYTES: usize = 255;

fn out_of_range(text: String) -> Answer {
    Answer::Refused(Refused::OutOfRange(text))
}

fn check_replicas(replicas: u8) -> Result<(), Answer> {
    if (1..=MOST_REPLICAS).contains(&replicas) {
        return Ok(());
    }
    Err(out_of_range(format!("{replicas} replicas were asked for; 1 to {MOST_REPLICAS} are possible")))
}

fn check_replace_after(seconds: u32) -> Result<(), Answer> {
    if (1..=MOST_REPLACE_AFTER).contains(&seconds) {
        return Ok(());
    }
    Err(out_of_range(format!(
        "a node was to be replaced after {seconds} seconds; 1 to {MOST_REPLACE_AFTER} are possible"
    )))
}

fn check_memory_return(seconds: u32) -> Result<(), Answer> {
    if seconds <= MOST_MEMORY_RETURN {
        return Ok(());
    }
    Err(out_of_range(format!(
        "the last memory of a replication group was to be waited for {seconds} seconds; 0 to {MOST_MEMORY_RETURN} \
         are possible"
    )))
}

impl ClusterConfig {
    /// Which partitions there are, and which group each is in.
    ///
    /// # Panics
    /// If the numbers of a cluster that was made make no layout: they were checked then.
    pub fn layout(&self) -> Layout {
        Layout::new(self.partitions, self.groups.unwrap_or(self.partitions)).expect("checked when the cluster was made")
    }

    fn check(&self) -> Result<(), Answer> {
        if !(1..=MOST_PARTITIONS).contains(&self.partitions) {
            let asked = self.partitions;
            return Err(out_of_range(format!(
                "{asked} partitions were asked for; 1 to {MOST_PARTITIONS} are possible"
            )));
        }
        if let Some(groups) = self.groups.filter(|groups| Layout::new(self.partitions, *groups).is_none()) {
            return Err(out_of_range(format!(
                "{groups} replication groups were asked for; 1 to {} are possible, a partition each",
                self.partitions
            )));
        }
        if self.name.len() > NAME_BYTES {
            return Err(out_of_range(format!("the cluster's name is longer than {NAME_BYTES} bytes")));
        }
        check_replicas(self.replicas)?;
        check_replace_after(self.replace_after)?;
        check_memory_return(self.memory_return)
    }
}

impl Group {
    pub(super) fn create(&mut self, config: &ClusterConfig, adopted: Option<&str>) -> Result<Answer, Answer> {
        if let Some(made) = &self.config {
            // Proposed again after a lost answer.
            return if made.id == config.id { Ok(Answer::Done) } else { Err(Answer::Refused(Refused::Made)) };
        }
        config.check()?;
        let adopted = adopted.map(Adopted::decode).transpose()?;
        self.replication_groups = vec![ReplicationGroup::default(); config.layout().groups().len()];
        self.config = Some(config.clone());
        if let Some(adopted) = adopted {
            self.adopt(&adopted);
        }
        Ok(Answer::Done)
    }

    pub(super) fn configure(
        &mut self,
        replicas: Option<u8>,
        durability: Option<ClusterDurability>,
        replace_after: Option<u32>,
        memory_return: Option<u32>,
    ) -> Result<Answer, Answer> {
        replicas.map_or(Ok(()), check_replicas)?;
        replace_after.map_or(Ok(()), check_replace_after)?;
        memory_return.map_or(Ok(()), check_memory_return)?;
        let config = self.config.as_mut().ok_or(Answer::Refused(Refused::NotMade))?;
        if durability.is_some_and(|durability| durability != config.durability) {
            return Err(out_of_range("the durability of a cluster is chosen when it is founded; to change it, found another cluster and copy the data".into()));
        }
        config.replicas = replicas.unwrap_or(config.replicas);
        config.replace_after = replace_after.unwrap_or(config.replace_after);
        config.memory_return = memory_return.unwrap_or(config.memory_return);
        Ok(Answer::Done)
    }
}
