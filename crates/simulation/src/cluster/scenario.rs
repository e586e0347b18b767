//! Scenarios are data: what the cluster is made of, what its clients do, and what goes wrong, how often and for how long. One TOML file each, in `crates/simulation/scenarios`.
use super::network::Weather;
use rauk_manage::group::RoleKind;
use rauk_node::member::hooks::Safeguards;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::Duration;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// For people: what it is meant to show.
    pub about: String,
    pub nodes: Vec<Nodes>,
    pub partitions: u16,
    /// Replication groups that these are dealt out to. `None`: as the seed says.
    pub groups: Option<u16>,
    pub replicas: u8,
    /// Simulated seconds during which things go wrong.
    pub seconds: f64,
    /// Simulated seconds after that, within which the cluster must be whole.
    pub healthy_within: f64,
    #[serde(default)]
    pub weather: Weather,
    /// The part of the times that a task could go on and does not for up to 20 ms, while others of its process do.
    #[serde(default)]
    pub sluggish: f64,
    /// The chance that a thread is interrupted after a message or flush that a step of a partition wants: other threads go on, and the rest is done later.
    #[serde(default)]
    pub interrupted: f64,
    /// Clocks go wrong by up to so many parts in a million; and begin anywhere.
    #[serde(default)]
    pub drift: i64,
    /// The chance of an election that nobody needed, each second.
    #[serde(default)]
    pub restless: f64,
    /// The chance that a manage command's answer is lost.
    #[serde(default)]
    pub lost_answers: f64,
    pub clients: Clients,
    /// Rows that are there from the beginning and that nobody changes: copies have more slices.
    #[serde(default)]
    pub ballast: u32,
    /// The redo log's segments are small, and none is used again within a run: a disk without room shows soon.
    #[serde(default)]
    pub small_log: bool,
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// In the end, power fails everywhere at once, and everything is checked again.
    #[serde(default)]
    pub blackout: bool,
    #[serde(default)]
    pub durability: Durability,
    /// Where memory is what counts: nothing is lost that was acknowledged so many seconds before the failure that the cluster goes back for.
    pub may_lose: Option<f64>,
    /// Where memory is what counts: no process ends, so the cluster never goes back.
    #[serde(default)]
    pub keeps_all: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    #[default]
    Fsync,
    Replicated,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    pub count: u16,
    pub roles: Vec<Role>,
    /// Seconds into the faults when they are started for the first time; else they are there from the beginning.
    pub join_at: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Manage,
    Data,
    Sql,
}

impl Nodes {
    pub fn kinds(&self) -> BTreeSet<RoleKind> {
        let kind = |role: &Role| match role {
            Role::Manage => RoleKind::Manage,
            Role::Data => RoleKind::Data,
            Role::Sql => RoleKind::Sql,
        };
        self.roles.iter().map(kind).collect()
    }
}

/// Clients of each kind on every node with the role `sql`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clients {
    pub bands: u32,
    pub cells: u32,
    /// Of the same rows, read by key in autocommit and no other way.
    pub keys: u32,
    pub lists: u32,
    pub bank: u32,
    pub entries: u32,
    /// Their tables are made only where there are such clients.
    pub families: u32,
    /// Changes of the definitions of tables …
    pub definitions: u32,
    /// The same of tables that users partition …
    pub divided: u32,
    /// … and rows in these.
    pub pairs: u32,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    pub kind: FaultKind,
    /// Mean seconds between two of them.
    pub every: f64,
    /// Seconds that one lasts, from … to.
    #[serde(default)]
    pub lasts: (f64, f64),
    /// The first not before.
    #[serde(default)]
    pub after: f64,
    /// Seconds that a message takes at most while it lasts (`slow`).
    #[serde(default)]
    pub delay: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The process ends, at any step; its machine stays.
    Kill,
    /// The machine loses power.
    Power,
    /// The machine is replaced by one with an empty disk, if it is not the only one that has something.
    Wipe,
    /// A disk is lost, as by `Wipe`, and before the first lease has ended another machine or process fails too.
    WipeAndKill,
    /// Power fails everywhere at once.
    Blackout,
    /// All processes end at once, and a bit of the last frame of one site's log is flipped.
    DamagedEnd,
    /// A process ends, or all do, and one file of a directory is damaged, missing, shortened or older than it was.
    FileDamaged,
    /// A process ends, or all do, and a directory is put back to what it was before the node's newest start.
    OlderDirectory,
    /// A process ends, and its directory is put back to a copy that was made since its start, while another in-sync replica knows that what is missing was stable.
    CopiedDirectory,
    /// As SIGSTOP.
    Pause,
    /// All processes that hold some partition stop, so that no cut is complete, and then power fails everywhere.
    CutsEndInBlackout,
    /// One direction of one link.
    Cut,
    /// A primary and a replica that follows it do not hear each other, or one does not hear the other; both reach the manage leader.
    Apart,
    /// What one site is sent takes up to `delay`, each message for itself, but for what goes from or to manage nodes: leases are kept.
    Slow,
    /// A primary that lives is to lead no more, and it or another begins a new view, as when partitions are moved.
    Relieve,
    /// A minority of the sites (or half of them) is cut off.
    Partition,
    /// One site can be heard but hears nothing, or the other way round.
    Deaf,
    /// No room for more than a little.
    DiskFull,
    /// No room for more than a little where a process catches up, at any step.
    JoinerDiskFull,
    /// A write or sync fails, or the machine stops within one.
    DiskFails,
    /// Many syncs take long.
    DiskSlow,
    /// One node after another is shut down and started.
    Rolling,
    /// The manage group elects anew.
    Elections,
    /// A process to which rows are being copied ends, at any step.
    KillJoiner,
    /// The memory limit of one process is lowered to about what it uses.
    Memory,
    /// A row of a replica is damaged: in memory, or as if another row had been written; or its stream contradicts its
    /// rows. It must be found: the next comes when the replica was removed from the in-sync set.
    Damage,
}

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../scenarios/", $name, ".toml")))),*]
    };
}

/// All scenarios, by name.
pub const ALL: &[(&str, &str)] = scenarios!(
    "calm",
    "crashes",
    "pauses",
    "cuts",
    "partitions",
    "disks",
    "disks_rejoining",
    "clocks",
    "followers",
    "blackout",
    "rolling",
    "joining",
    "copies",
    "memory",
    "schemas",
    "partitions_of_users",
    "families",
    "losses",
    "damaged_end",
    "damaged_files",
    "copied_directory",
    "damaged_memory",
    "damaged_memory_of_two",
    "everything",
    "replicated",
    "replicated_blackout",
    "replicated_everything",
    "replicated_pauses",
    "replicated_without_cuts",
);

/// Each made to show one safeguard: switched off, a seed fails.
pub const SAFEGUARDS: &[(&str, &str)] = scenarios!(
    "safeguards/lease",
    "safeguards/view",
    "safeguards/incarnation",
    "safeguards/prepare_everywhere",
    "safeguards/sync_before_acknowledge",
    "safeguards/abort_fence",
    "safeguards/max_read",
    "safeguards/dedupe",
    "safeguards/leaving",
    "safeguards/cut_decided",
    "safeguards/cut_durable",
    "safeguards/cut_kept",
    "safeguards/cut_covers",
    "safeguards/doubtful_end",
    "safeguards/memory_kept",
    "safeguards/silence",
    "safeguards/claims",
    "safeguards/starts",
    "safeguards/lacking",
    "safeguards/pacing",
    "safeguards/failed_slot",
    "safeguards/adopted",
    "safeguards/taken_back",
);

/// All safeguards but the one with this name; `None`: there is none.
pub fn without(name: &str) -> Option<Safeguards> {
    let mut safeguards = Safeguards::default();
    let safeguard = match name {
        "lease" => &mut safeguards.lease,
        "view" => &mut safeguards.view,
        "incarnation" => &mut safeguards.incarnation,
        "prepare_everywhere" => &mut safeguards.prepare_everywhere,
        "sync_before_acknowledge" => &mut safeguards.sync_before_acknowledge,
        "abort_fence" => &mut safeguards.abort_fence,
        "max_read" => &mut safeguards.max_read,
        "dedupe" => &mut safeguards.dedupe,
        "leaving" => &mut safeguards.leaving,
        "cut_decided" => &mut safeguards.cut_decided,
        "cut_durable" => &mut safeguards.cut_durable,
        "cut_kept" => &mut safeguards.cut_kept,
        "cut_covers" => &mut safeguards.cut_covers,
        "doubtful_end" => &mut safeguards.doubtful_end,
        "memory_kept" => &mut safeguards.memory_kept,
        "silence" => &mut safeguards.silence,
        "claims" => {
            // What a start does not refuse, another replica tells when the node leads: to see what claims are for, nobody listens to that.
            safeguards.lacking = false;
            &mut safeguards.claims
        }
        "starts" => &mut safeguards.starts,
        "lacking" => &mut safeguards.lacking,
        "failed_slot" => &mut safeguards.failed_slot,
        "pacing" => &mut safeguards.pacing,
        "adopted" => &mut safeguards.adopted,
        "taken_back" => &mut safeguards.taken_back,
        _ => return None,
    };
    *safeguard = false;
    Some(safeguards)
}

impl Scenario {
    /// One of ours by its name, or a file by its path (`*.toml`).
    pub fn find(name: &str) -> Result<Scenario, String> {
        if !name.ends_with(".toml") {
            return Scenario::named(name);
        }
        let text = std::fs::read_to_string(name).map_err(|error| format!("{name}: {error}"))?;
        toml::from_str(&text).map_err(|error| format!("{name}: {error}"))
    }

    pub fn named(name: &str) -> Result<Scenario, String> {
        let (_, text) = ALL.iter().chain(SAFEGUARDS).find(|(known, _)| *known == name).ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
            format!("there is no scenario '{name}'; there are {}", names.join(", "))
        })?;
        toml::from_str(text).map_err(|error| format!("scenario {name}: {error}"))
    }

    /// The replication groups of a run: every other seed has fewer than partitions, one in four a single one.
    pub fn groups_under(&self, seed: u64) -> u16 {
        self.groups.unwrap_or(match seed % 4 {
            0 => 1,
            1 => 1 + (seed / 4 % u64::from(self.partitions)) as u16,
            _ => self.partitions,
        })
    }

    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_can_be_read() {
        for (name, _) in ALL.iter().chain(SAFEGUARDS) {
            let scenario = Scenario::named(name).unwrap();
            assert!(!scenario.about.is_empty() && scenario.seconds > 0.0);
            let manage = scenario.nodes.iter().filter(|n| n.kinds().contains(&RoleKind::Manage));
            let voters: u16 = manage.map(|n| n.count).sum();
            assert!(voters >= 1, "{name}");
            let data: u16 =
                scenario.nodes.iter().filter(|n| n.kinds().contains(&RoleKind::Data)).map(|n| n.count).sum();
            assert!(data >= u16::from(scenario.replicas), "{name}");
            let late = |fault: &Fault| fault.kind != FaultKind::Slow || fault.delay > 0.0;
            assert!(scenario.faults.iter().all(late), "{name}");
        }
        assert!(Scenario::named("nonsense").unwrap_err().contains("calm"));
    }
}
