//! Reads on a replica of this node, without its primary answering each.
//!
//! # The newest state (rule 33)
//! A follower that is in-sync has everything that was ever acknowledged, beside the rows at least, and nothing is acknowledged without it as long as it may believe to be in-sync. So a row beside which nothing is pending
//! is the newest there is, and is shown without asking anybody, under the lease; of a row with something pending the primary is asked, which knows what becomes of it.
//!
//! # Snapshots (rule 11)
//! Before the first read at a snapshot the primary *confirms* it: nothing commits there at or below it any more but what is in the stream already. Once that much of the stream is here, this replica answers every
//! snapshot up to that one by itself, for as long as its process lives and its contents are not replaced by a copy; waiting only for rows that are prepared at or below the snapshot. It needs no lease.
//!
//! A snapshot by itself holds nobody up: what commits later in a partition that nobody has read at the snapshot may
//! still commit at or below it, and is then part of it. START TRANSACTION WITH CONSISTENT SNAPSHOT promises more, so it
//! has all primaries confirm its snapshot before it answers ([`Cluster::confirm`]).
//!
//! One message asks a primary for all groups that it leads and this node follows: who reads in one at a snapshot mostly
//! reads in others too, and to confirm one more costs the primary less than a message.

use super::Cluster;
use super::signal::Signal;
use super::slot::State;
use crate::node::Node;
use rauk_cluster::{EntryId, Role};
use rauk_types::{GroupId, Member, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

const QUESTION: Duration = Duration::from_millis(100);
/// The stream is waited for so long; then the primary is read.
const STREAM: Duration = Duration::from_millis(100);
/// Groups that are asked for with one message.
const TOGETHER: usize = 64;

impl Cluster {
    /// Whether a plain read at `snapshot` may be made on this node's own replica of the partition. `false`: ask the primary.
    pub async fn may_read_here(&self, node: &Node, partition: u16, snapshot: Timestamp) -> bool {
        match self.confirmed_here(partition, snapshot) {
            Here::Yes => return true,
            Here::No => return false,
            Here::Unconfirmed => {}
        }
        let Some(place) = self.place(partition) else { return false };
        let group = self.group_of(partition);
        let groups = self.unconfirmed(place.primary, group, snapshot);
        let question = Signal::Confirm { groups: groups.clone(), snapshot };
        let Ok(Signal::Confirmed { places }) = self.request(place.primary, question, QUESTION).await else {
            return false;
        };
        let mut mine = None;
        for (other, entry) in places {
            if other == group {
                mine = Some(entry);
            } else if groups.contains(&other) {
                // What has not come yet is asked for again by whoever needs it.
                self.take_confirmation(node, other, snapshot, entry);
            }
        }
        let Some(entry) = mine else { return false };
        let end = self.runtime.now() + STREAM;
        loop {
            let number = self.slot(group).decided.number();
            match self.take_confirmation(node, group, snapshot, entry) {
                Some(false) if self.runtime.now() < end => {
                    self.timeout(Duration::from_millis(2), self.slot(group).decided.after(number)).await;
                }
                other => return other == Some(true),
            }
        }
    }

    /// Asks the primaries of these groups to confirm a snapshot, and takes out those that have: what commits there
    /// from now on, in this view and in every later one (rule 13), is not in the snapshot.
    pub async fn confirm(&self, node: &Node, snapshot: Timestamp, groups: &mut Vec<GroupId>) {
        let mut led: BTreeMap<Member, Vec<GroupId>> = BTreeMap::new();
        for group in groups.iter() {
            if let Some(place) = self.place_of(*group) {
                led.entry(place.primary).or_default().push(*group);
            }
        }
        let questions = led.iter().flat_map(|(primary, led)| led.chunks(TOGETHER).map(|chunk| (*primary, chunk)));
        let ask = |(primary, chunk): (Member, &[GroupId])| {
            let groups = chunk.to_vec();
            async move {
                match primary == self.me() {
                    true => Some(on_confirm(node, self, &groups, snapshot)),
                    false => self.request(primary, Signal::Confirm { groups, snapshot }, QUESTION).await.ok(),
                }
            }
        };
        for answer in futures::future::join_all(questions.map(ask)).await {
            if let Some(Signal::Confirmed { places }) = answer {
                groups.retain(|group| places.iter().all(|(confirmed, _)| confirmed != group));
            }
        }
    }

    /// Whether this replica may answer at the snapshot, without asking anybody; asked under the partition's guard, it
    /// is so for the time of the hold. Gives how often the contents have been replaced.
    pub fn reads_here(&self, partition: u16, snapshot: Timestamp) -> Option<u64> {
        let state = self.slot_of(partition).state.lock();
        match here(&state, snapshot) {
            Here::Yes if self.is_caught_up(partition) => Some(state.copies),
            Here::Yes | Here::No | Here::Unconfirmed => None,
        }
    }

    /// Under the guard and the stream's lock: what has come since the hold began is missing in the rows that it sees.
    fn is_caught_up(&self, partition: u16) -> bool {
        self.rows[usize::from(partition)].is_empty() || !self.hooks.safeguards.adopted
    }

    /// A snapshot read is answered from this replica now.
    pub fn answers_snapshot(&self, partition: u16, snapshot: Timestamp) {
        if let Some(observer) = &self.hooks().observer {
            observer.answered_snapshot(partition, snapshot);
        }
    }

    /// The version of the partition by which this process may show its newest state (rule 33), but for rows beside which something is pending: asked under the guard in the same hold as the look at the row, and
    /// with [`Cluster::in_sync`] again before the answer. Then it must be the same: who was struck meanwhile, and has joined again, has looked at what may have been old.
    pub fn reads_newest_here(&self, partition: u16) -> Option<u64> {
        let version = self.in_sync(partition)?;
        let state = self.slot_of(partition).state.lock();
        let follows = state.replica.role() == Role::Follower && state.replica.is_current();
        (follows && !state.is_halted() && !state.is_restoring() && self.is_caught_up(partition)).then_some(version)
    }

    /// The version of the partition by which this process is in-sync, under its lease.
    #[inline]
    pub fn in_sync(&self, partition: u16) -> Option<u64> {
        if self.hooks().safeguards.lease && !self.has_lease() || self.expelled() {
            return None;
        }
        // Last: who was struck before the lease was granted has heard of it, and stands here as that.
        self.slot_of(partition).in_sync()
    }

    /// Groups that `primary` leads and this process could read at the snapshot if it confirmed that; `first` among
    /// them.
    fn unconfirmed(&self, primary: Member, first: GroupId, snapshot: Timestamp) -> Vec<GroupId> {
        let mut groups = vec![first];
        let known = self.group();
        for (number, state) in (0..).zip(&known.replication_groups).take(self.slots.len()) {
            let id = GroupId(number);
            let wanted = id != first && state.primary == Some(primary) && groups.len() < TOGETHER;
            if wanted && matches!(here(&self.slot(id).state.lock(), snapshot), Here::Unconfirmed) {
                groups.push(id);
            }
        }
        groups
    }

    /// The primary has confirmed the snapshot, for whoever has its stream up to `entry`. `Some(false)`: that has not come yet; `None`: it will not do here.
    fn take_confirmation(&self, node: &Node, group: GroupId, snapshot: Timestamp, entry: EntryId) -> Option<bool> {
        self.at_slot(node, group, |slot, s, _| {
            if s.is_halted() || s.is_restoring() || s.replica.view() != entry.view || s.replica.role() != Role::Follower
            {
                return None;
            }
            // Entries of an older view at these positions may be others.
            let last = s.replica.last();
            if last.view != entry.view || last.position < entry.position {
                return Some(false);
            }
            s.confirmed = s.confirmed.max(snapshot);
            slot.times.raise_max_read(snapshot);
            Some(true)
        })
    }

    fn confirmed_here(&self, partition: u16, snapshot: Timestamp) -> Here {
        here(&self.slot_of(partition).state.lock(), snapshot)
    }
}

fn here(state: &State, snapshot: Timestamp) -> Here {
    match state.replica.role() {
        Role::Follower if state.is_halted() || state.is_restoring() => Here::No,
        Role::Follower if snapshot <= state.confirmed => Here::Yes,
        Role::Follower if state.is_fresh() => Here::Unconfirmed,
        _ => Here::No,
    }
}

enum Here {
    Yes,
    Unconfirmed,
    No,
}

/// On the primary: replicas want to read at a snapshot. From here on nothing commits at or below it that is not in the stream already.
pub(super) fn on_confirm(node: &Node, cluster: &Cluster, groups: &[GroupId], snapshot: Timestamp) -> Signal {
    let mut places = Vec::with_capacity(groups.len());
    for group in groups {
        let confirmed = cluster.at_slot(node, *group, |slot, state, _| {
            let view = slot.serving()?;
            // Under the lock that picks commit times: what commits at or below it is in the stream already.
            slot.times.raise_max_read(snapshot);
            Some(EntryId { view, position: state.replica.last().position })
        });
        if let Some(entry) = confirmed.filter(|entry| cluster.may_answer_for(*group, entry.view)) {
            places.push((*group, entry));
        }
    }
    if places.is_empty() { Signal::NotHere } else { Signal::Confirmed { places } }
}
