//! Cuts over the whole cluster, for durability `replicated`: drawn by the control-plane leader, written by primaries,
//! waited for by whoever needs one (rules 26–28, 30, 31).
//!
//! The leader draws a time C and asks every primary for a cut there. A primary raises `max_read` to C, so that whatever it prepares from now on commits above C, and when nothing that may commit at or below C is
//! undecided in its stream it writes an entry that says so. All in-sync replicas make their logs durable for that entry, and the primary answers with its place when all of them have. When all partitions have answered
//! the leader has the group note the cut, if no in-sync set has changed since before the draw.
//!
//! So a partition goes back to a cut by itself, without asking another: everything at or below C is decided in its own stream before the entry. The price is that a cut waits for transactions that
//! are being decided, a message or two, or until they are taken over where their coordinator is silent.
//!
//! A cut is drawn when somebody *wants* one above the last: a process that has seen a commit above it, or that waits in [`Cluster::wait_cut`]. Heartbeats carry that, so an idle cluster draws none,
//! but for those who have become in-sync since the last.

use super::Cluster;
use super::signal::Signal;
use super::slot::{Context, Slot, State};
use crate::error::NodeError;
use crate::node::Node;
use futures::channel::oneshot;
use futures::future::join_all;
use rauk_cluster::{EntryId, Record, Role};
use rauk_manage::group::{Group, GroupCommand};
use rauk_types::{GroupId, Member, Position, Timestamp, View};
use std::collections::BTreeMap;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Between two cuts, from draw to draw.
const PACE: Duration = Duration::from_millis(50);
/// How often the leader looks whether one is wanted.
const LOOK: Duration = Duration::from_millis(10);
/// The same where there is none to draw: another leads, or nobody needs cuts.
const SELDOM: Duration = Duration::from_millis(100);
/// A primary that has not answered is asked again after this.
const ASK: Duration = Duration::from_millis(400);
/// A cut that is not complete by then is given up, and the next is drawn.
const GIVE_UP: Duration = Duration::from_secs(3);
const PROPOSE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Cuts {
    /// A complete cut at or above this is wanted, by this process.
    wanted: AtomicU64,
    /// The same by all processes, as the control-plane leader has heard.
    wanted_by_all: AtomicU64,
}

impl Cuts {
    /// A commit was seen, or is waited for.
    #[inline]
    pub fn want(&self, time: Timestamp) {
        if self.wanted.load(Ordering::Relaxed) < time.0 {
            self.wanted.fetch_max(time.0, Ordering::SeqCst);
        }
    }

    pub fn wanted(&self) -> Timestamp {
        Timestamp(self.wanted.load(Ordering::SeqCst))
    }

    /// To the leader: what a process wants.
    pub fn on_wanted(&self, time: Timestamp) {
        self.wanted_by_all.fetch_max(time.0, Ordering::SeqCst);
    }
}

/// A cut that a primary has been asked for.
pub struct Cutting {
    time: Timestamp,
    view: View,
    /// Where its entry stands.
    at: Option<Position>,
    waiters: Vec<oneshot::Sender<EntryId>>,
}

impl Slot {
    /// Begins a cut, or waits for the one that has begun. Resolves with the place of its entry when that is on the disks of all in-sync replicas; dropped when this process does not lead any more, or a later one has begun.
    /// `None`: not now.
    fn begin_cut(&self, s: &mut State, cx: &mut Context<'_>, time: Timestamp) -> Option<oneshot::Receiver<EntryId>> {
        let view = self.serving()?;
        if s.cutting.as_ref().is_none_or(|cutting| cutting.view != view || cutting.time < time) {
            self.times.raise_max_read(time);
            s.cutting = Some(Cutting { time, view, at: None, waiters: Vec::new() });
        }
        let cutting = s.cutting.as_mut().filter(|cutting| cutting.time == time)?;
        let (sender, receiver) = oneshot::channel();
        cutting.waiters.push(sender);
        self.advance_cut(s, cx);
        Some(receiver)
    }

    /// Goes on with a cut that has begun.
    pub(super) fn advance_cut(&self, s: &mut State, cx: &mut Context<'_>) {
        let Some(Cutting { time, view, at, .. }) = s.cutting else { return };
        if s.replica.role() != Role::Primary || s.replica.view() != view {
            s.cutting = None;
            return;
        }
        if at.is_none() && s.table.is_open_before(time) && cx.safeguards.cut_decided {
            return;
        }
        let position = match at {
            Some(position) => position,
            None => {
                if !self.propose(s, cx, &Record::Cut { time, view }) {
                    return;
                }
                s.replica.last().position
            }
        };
        let Some(cutting) = s.cutting.as_mut() else { return };
        cutting.at = Some(position);
        let everywhere = s.replica.durable_everywhere().is_some_and(|durable| durable >= position);
        if s.replica.stable() >= position && (everywhere || !cx.safeguards.cut_durable) {
            for waiter in cutting.waiters.drain(..) {
                let _ = waiter.send(EntryId { view, position });
            }
        }
    }
}

impl Cluster {
    /// Resolves when the cluster cannot go back any more to before this call: a cut that was drawn after it is complete. At once where all that is acknowledged is on disk.
    pub async fn wait_cut(&self, timeout: Duration) -> Result<(), NodeError> {
        if !self.group().is_replicated() {
            return Ok(());
        }
        let end = self.runtime.now() + timeout;
        // Whatever has committed has done so at or below this.
        let time = self.times.draw(self).await?;
        self.cuts.want(time);
        loop {
            let number = self.changed.number();
            if self.group().cut.time >= time {
                return Ok(());
            }
            if self.is_closed() || self.expelled() {
                return Err(NodeError::ShuttingDown);
            }
            let left = end.saturating_sub(self.runtime.now());
            if left.is_zero() {
                let what = "no cut over the whole cluster was completed in time: some replication group has no \
                 primary, or a replica's disk is slow";
                return Err(NodeError::Unavailable(what.into()));
            }
            self.wait_news(number, left).await;
        }
    }

    /// The control-plane leader asks for cuts in groups that are led here.
    pub(super) async fn on_cut(&self, node: &Node, time: Timestamp, groups: &[GroupId]) -> Signal {
        let mut under = Vec::new();
        for group in groups.iter().filter(|group| self.layout().groups().contains(&group.0)) {
            let begun = self.at_slot(node, *group, |slot, s, cx| slot.begin_cut(s, cx, time));
            let Some(cut) = begun else { return Signal::NotHere };
            let group = *group;
            under.push(async move { cut.await.ok().map(|entry| (group, entry)) });
        }
        match self.timeout(GIVE_UP, join_all(under)).await {
            Some(entries) if entries.iter().all(Option::is_some) => {
                Signal::CutDone { time, entries: entries.into_iter().flatten().collect() }
            }
            _ => Signal::NotHere,
        }
    }

    /// The control-plane leader's cuts.
    pub(super) async fn run_cuts(node: Weak<Node>) {
        let mut last = Duration::ZERO;
        loop {
            let Some(strong) = node.upgrade() else { return };
            let Some(cluster) = strong.cluster().cloned() else { return };
            if cluster.is_closed() {
                return;
            }
            let runtime = strong.runtime.clone();
            drop(strong);
            let group = cluster.group();
            let leads = group.is_replicated() && cluster.consensus.leading().is_some();
            let is_wanted =
                || cluster.cuts.wanted_by_all.load(Ordering::SeqCst) > group.cut.time.0 || group.wants_holders();
            if leads && runtime.now() >= last + PACE && is_wanted() {
                last = runtime.now();
                cluster.cut(&group).await;
            }
            drop(cluster);
            runtime.sleep(if leads { LOOK } else { SELDOM }).await;
        }
    }

    /// Draws one cut. If it fails there is another soon.
    async fn cut(&self, group: &Group) {
        // Before the draw: who is in-sync in the end, with nothing changed since, was so all the time.
        let versions = group.versions();
        let mut primaries: BTreeMap<Member, Vec<GroupId>> = BTreeMap::new();
        for (number, state) in (0..).zip(&group.replication_groups) {
            let Some(primary) = state.primary else { return };
            primaries.entry(primary).or_default().push(GroupId(number));
        }
        let Signal::Time { time: Some(time) } = self.on_draw_time().await else { return };
        if time <= group.cut.time {
            return;
        }
        let end = self.runtime.now() + GIVE_UP;
        let asked = primaries.into_iter().map(|(to, groups)| async move {
            while self.runtime.now() < end && self.group().versions() == versions {
                let signal = Signal::Cut { time, groups: groups.clone() };
                if let Ok(Signal::CutDone { time: of, entries }) = self.request(to, signal, ASK).await
                    && of == time
                    && entries.iter().map(|(group, _)| group).eq(&groups)
                {
                    return Some(entries);
                }
                self.runtime.sleep(LOOK).await;
            }
            None
        });
        let Some(done): Option<Vec<_>> = join_all(asked).await.into_iter().collect() else { return };
        let mut done: Vec<(GroupId, EntryId)> = done.into_iter().flatten().collect();
        done.sort_unstable_by_key(|(group, _)| *group);
        let entries = done.into_iter().map(|(_, entry)| entry).collect();
        // A proposal whose answer was lost shows in the group.
        let _ = self.consensus.propose(GroupCommand::Cut { time, versions, entries }, PROPOSE).await;
    }
}
