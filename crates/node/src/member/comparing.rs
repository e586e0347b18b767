//! Rows of replicas, compared at one place of the stream (rules 78, 79).
//!
//! Every [`crate::database::Config::compare_every`] a primary that has in-sync followers writes an entry that asks for a
//! comparison, unless the last has found all equal and nothing was written since. Each in-sync replica looks at its rows when the entry reaches
//! them ([`super::rows`]), and tells the primary the digests of the tables of each partition ([`Signal::Digests`]).
//! Nobody waits for that; what is lost is not sent again, for there is another comparison soon.
//!
//! *What follows* (`rauk_cluster::comparison`):
//!
//! * all equal: noted, and shown in rauk.partitions;
//! * a follower differs from the majority: it is excluded. The control plane removes it from the in-sync set, it forgets
//!   its rows, and gets a copy. The others go on;
//! * the primary differs from the majority: it stops ([`super::slot::stopping`]), another leads, and it gets a copy;
//! * no majority, as with two replicas: the partition takes no writes in this view until
//!   a comparison finds all equal. Both copies stay as they are: what is right the operator must find out. Reads go on.
//!
//! *By itself* a replica may find that its memory was damaged ([`crate::scrub`]). A follower tells its primary, which
//! excludes it, also where there are only two: here it is known who is wrong. A primary stops, if another in-sync replica can
//! lead; else the partition takes no writes.
//!
//! Whatever is found is an error in the log and among the events, and is counted.

use super::Cluster;
use super::event_log::Level;
use super::rows::RowStep;
use super::signal::Signal;
use super::slot::{Action, Context, Slot, State};
use crate::node::Node;
use parking_lot::Mutex;
use rauk_cluster::comparison::Digests;
use rauk_cluster::{Comparison, EntryId, Record, Role, Verdict};
use rauk_types::{Member, PartitionId, TableId, View};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often replicas are compared.
pub const COMPARE_EVERY: Duration = Duration::from_secs(5);
/// Rows of entries that are not stable yet, of which a digest is computed when replicas are compared.
pub const MOST_UNSTABLE_ROWS: usize = 4096;

/// What a slot remembers of comparisons.
#[derive(Debug, Default)]
pub struct Asked {
    /// When the last was asked for, or when there were in-sync followers to ask.
    at: Option<Duration>,
    /// The newest, and the partitions that it has found equal.
    entry: EntryId,
    equal: BTreeSet<u16>,
}

/// What this process knows of the partitions that it leads.
pub struct Comparing(Box<[Mutex<Compared>]>);

#[derive(Default)]
struct Compared {
    under_way: Option<Comparison>,
    /// The newest that has found all equal.
    equal: Option<Equal>,
    /// Why the partition takes no writes, in this view.
    divided: Option<Divided>,
}

struct Divided {
    view: View,
    why: String,
    /// The memory of this process is damaged. A comparison does not see that, for digests are of what was written.
    is_damaged: bool,
}

/// A comparison that has found all in-sync replicas equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Equal {
    pub entry: EntryId,
    pub at: Duration,
    /// Of all rows of the partition at this entry.
    pub digest: u128,
}

/// The same as others are told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedReport {
    pub position: u64,
    pub ago: Duration,
    pub digest: u128,
}

impl Comparing {
    pub fn new(partitions: usize) -> Comparing {
        Comparing((0..partitions).map(|_| Mutex::default()).collect())
    }

    fn of(&self, partition: u16) -> &Mutex<Compared> {
        &self.0[usize::from(partition)]
    }
}

impl Slot {
    /// Time has passed. Primary: asks for a comparison, if it is time, unless the last has found all partitions equal
    /// and nothing was written since.
    pub(super) fn look_to_compare(&self, s: &mut State, cx: &mut Context<'_>) {
        if self.serving().is_none() || !s.replica.followers().any(|follower| follower.in_sync) {
            s.compared.at = None;
            return;
        }
        let at = *s.compared.at.get_or_insert(cx.now);
        let last = s.replica.last();
        let is_done = s.compared.entry == last && s.compared.equal.len() == cx.rows.partitions().len();
        if cx.now.saturating_sub(at) >= cx.compare_every && !is_done && self.propose(s, cx, &Record::Compare) {
            s.compared = Asked { at: Some(cx.now), entry: s.replica.last(), equal: BTreeSet::new() };
        }
    }

    /// All replicas have the same rows of a partition, at this entry.
    fn on_equal(&self, s: &mut State, partition: u16, entry: EntryId) {
        if s.compared.entry == entry {
            s.compared.equal.insert(partition);
        }
    }

    /// The rows of a partition have come to an entry that asks for a comparison.
    pub(super) fn on_digests(&self, s: &State, cx: &mut Context<'_>, partition: u16, entry: EntryId, digests: Digests) {
        let counts = s.replica.role() == Role::Primary || s.replica.is_in_sync();
        if counts && s.replica.view() == entry.view && !s.is_halted() {
            cx.actions.push(Action::Digests { partition, entry, digests });
        }
    }

    /// Primary: the rows of a follower are damaged.
    pub(super) fn exclude(&self, s: &mut State, cx: &mut Context<'_>, member: Member) -> bool {
        let mut out = Vec::new();
        let excluded = s.replica.exclude(cx.now, member, &mut out);
        self.carry_out(s, cx, out, Vec::new());
        excluded
    }
}

impl Cluster {
    /// This process's own rows, at an entry.
    pub(super) fn tell_digests(&self, partition: u16, entry: EntryId, digests: Digests) {
        let Some(place) = self.place(partition).filter(|place| place.view == entry.view) else { return };
        if place.primary == self.me {
            self.on_digests(self.me, partition, entry, digests);
        } else {
            self.tell(place.primary, Signal::Digests { partition: PartitionId(partition), entry, digests });
        }
    }

    /// Primary: a replica has told.
    pub(super) fn on_digests(&self, from: Member, partition: u16, entry: EntryId, digests: Digests) {
        let group = self.group_of(partition);
        let (Some(node), Some(view)) = (self.node.upgrade(), self.may_lead(group)) else { return };
        if view != entry.view {
            return;
        }
        let sum = digests.iter().fold(0u128, |sum, (_, digest)| sum.wrapping_add(*digest));
        let mut compared = self.comparing.of(partition).lock();
        if compared.under_way.as_ref().is_none_or(|known| known.entry() < entry) {
            let in_sync = self.group().replication_group(group).map(|state| state.in_sync.clone());
            compared.under_way = Some(Comparison::new(entry, in_sync.unwrap_or_default()));
        }
        let verdict = compared.under_way.as_mut().and_then(|under_way| under_way.tell(entry, from, digests));
        match verdict {
            None => {}
            Some(Verdict::Equal) => {
                compared.equal = Some(Equal { entry, at: self.runtime.now(), digest: sum });
                let was_divided = compared.divided.take_if(|divided| !divided.is_damaged).is_some();
                drop(compared);
                self.at_slot(&node, group, |slot, s, _| slot.on_equal(s, partition, entry));
                if was_divided {
                    let what =
                        format!("all replicas of partition {partition} have the same rows: it takes writes again");
                    self.note_rows(&node, partition, Level::Info, what);
                    self.set_read_only(&node, partition, false);
                }
            }
            Some(Verdict::Minority { members, table }) => {
                drop(compared);
                node.registry.digest_mismatches.fetch_add(1, Ordering::Relaxed);
                if members.contains(&self.me) {
                    let why = "it has other rows than the majority of the replicas";
                    return self.stop(&node, partition, table, why, false);
                }
                for member in members {
                    self.exclude(
                        &node,
                        partition,
                        member,
                        table,
                        "it has other rows than the majority of the replicas",
                    );
                }
            }
            Some(Verdict::Divided { table }) => {
                drop(compared);
                node.registry.digest_mismatches.fetch_add(1, Ordering::Relaxed);
                let why = "its replicas have different rows, and no majority has the same";
                self.divide(&node, partition, table, why, false);
            }
        }
    }

    /// The memory of this replica was damaged: what is stored is not what was written.
    pub(crate) fn on_damage(&self, node: &Node, partition: u16, table: TableId) {
        let Some(place) = self.place(partition) else { return };
        if place.primary == self.me {
            self.stop(node, partition, table, "memory is damaged", true);
        } else {
            self.tell(place.primary, Signal::Damaged { partition: PartitionId(partition), table });
        }
    }

    /// Primary: a follower has found that its memory was damaged.
    pub(super) fn on_damaged(&self, from: Member, partition: u16, table: TableId) {
        if let Some(node) = self.node.upgrade()
            && self.may_serve(partition).is_some()
        {
            self.exclude(&node, partition, from, table, "its memory is damaged");
        }
    }

    /// The rows of the primary are wrong: others go on, if there are any.
    fn stop(&self, node: &Node, partition: u16, table: TableId, why: &str, is_damaged: bool) {
        if !self.others_go_on(self.group_of(partition)) {
            return self.divide(node, partition, table, &format!("at the primary, {why}"), is_damaged);
        }
        let why = format!("{why} (partition {partition}, table {})", table.0);
        self.at_slot(node, self.group_of(partition), |slot, s, cx| slot.stop(s, cx, &why));
    }

    fn exclude(&self, node: &Node, partition: u16, member: Member, table: TableId, why: &str) {
        if self.at_slot(node, self.group_of(partition), |slot, s, cx| slot.exclude(s, cx, member)) {
            let what = format!(
                "node {} is removed from the in-sync set and gets a copy: {why} (partition {partition}, table {})",
                member.node.0, table.0
            );
            self.note_rows(node, partition, Level::Error, what);
        }
    }

    /// The partition takes no writes from now on, in this view.
    fn divide(&self, node: &Node, partition: u16, table: TableId, why: &str, is_damaged: bool) {
        let Some(view) = self.may_serve(partition) else { return };
        let why = format!("partition {partition} takes no writes: {why} (table {})", table.0);
        let mut compared = self.comparing.of(partition).lock();
        let before = compared.divided.take_if(|divided| divided.view == view);
        let is_new = before.is_none();
        let is_damaged = is_damaged || before.is_some_and(|divided| divided.is_damaged);
        compared.divided = Some(Divided { view, why: why.clone(), is_damaged });
        drop(compared);
        if is_new {
            self.note_rows(node, partition, Level::Error, why);
        }
        self.set_read_only(node, partition, true);
    }

    fn set_read_only(&self, node: &Node, partition: u16, is_read_only: bool) {
        self.at_slot(node, self.group_of(partition), |slot, s, cx| {
            slot.bring(s, cx, partition, RowStep::ReadOnly { is_read_only });
        });
    }

    fn note_rows(&self, node: &Node, partition: u16, level: Level, what: String) {
        let group = self.group_of(partition).0;
        match level {
            Level::Error => tracing::error!(group, partition, "{what}"),
            _ => tracing::info!(group, partition, "{what}"),
        }
        node.event_log.note(self.me.node, level, what);
    }

    /// The newest comparison of a partition that has found all equal, while this process leads it.
    pub fn compared(&self, partition: u16) -> Option<Equal> {
        self.comparing.of(partition).lock().equal
    }

    /// Why a partition that is led here takes no writes.
    pub fn divided(&self, partition: u16) -> Option<String> {
        let place = self.place(partition).filter(|place| place.primary == self.me)?;
        let compared = self.comparing.of(partition).lock();
        compared.divided.as_ref().filter(|divided| divided.view == place.view).map(|divided| divided.why.clone())
    }

    /// The same of all partitions.
    pub(super) fn all_divided(&self) -> Vec<String> {
        self.layout.partitions().filter_map(|partition| self.divided(partition)).collect()
    }

    pub(super) fn compared_report(&self, partition: u16) -> Option<ComparedReport> {
        let Equal { entry, at, digest } = self.compared(partition)?;
        let ago = self.runtime.now().saturating_sub(at);
        Some(ComparedReport { position: entry.position.0, ago, digest })
    }
}
