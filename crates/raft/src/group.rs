//! [`RaftGroup`]: a process's part in the manage group.
//!
//! `start` opens what the data directory has. A directory that is a member takes part at once, and tells where it is now with [`RaftGroup::announce`]. A new one either makes a
//! cluster ([`RaftGroup::bootstrap`]: the only voter, number 1) or joins one ([`RaftGroup::join`]): a member passes the request to the leader, which adds the node to the group; who it is is
//! written down before anything else is said, and the leader brings it the log, or a snapshot and what follows.
//!
//! What openraft runs, this crate's tasks and the futures that methods give all run on one thread; the last [`RaftGroup`] that is dropped, or [`RaftGroup::shutdown`], ends it. When the disk fails,
//! or is full, this process no longer takes part: `on_failure` is called once, proposals fail with the cause, and the others go on.

use crate::error::RaftError;
use crate::log_store::LogStore;
use crate::message::{Refusal, Reply, encode};
use crate::network::{Network, Peers, Sender, Transport};
use crate::propose::Proposer;
use crate::state_machine::{Shared, StateMachine};
use crate::types::{Identity, Metrics, Raft};
use crate::{election, following, joining, membership, propose, serve};
use openraft::{Config, ServerState, SnapshotPolicy};
use parking_lot::Mutex;
use rauk_log::{DatabaseId, Disk};
use rauk_manage::consensus::{BoxFuture, Consensus, ProposeError, Watcher};
use rauk_manage::group::{Answer, ClusterConfig, Group, GroupCommand, RoleKind};
use rauk_types::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

/// openraft looks at its clock one and a half times as rarely as `heartbeat` says, and sends heartbeats then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long openraft waits for the answer to anything, so that it is not short: a follower's disk, or a machine with much to do, takes its time. A leader is heard more often
    /// ([`crate::following`]).
    pub heartbeat: Duration,
    /// Nobody votes for another while it has heard of its leader within this time. Longer than `heartbeat`.
    pub lease: Duration,
    /// A voter that has not heard of a leader for the lease stands for election after a quarter of this to all of it, drawn each time.
    pub spread: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        let ms = Duration::from_millis;
        Timing { heartbeat: ms(150), lease: ms(220), spread: ms(80) }
    }
}

#[derive(Clone)]
pub struct Options {
    /// The data directory's random number.
    pub directory: u64,
    /// Where this process listens already, if it does: nobody else can be there.
    pub address: Option<String>,
    pub timing: Timing,
    /// Commands between two snapshots.
    pub snapshot_after: u64,
    /// Entries kept behind a snapshot, for members that are only a little behind.
    pub keep_entries: u64,
    /// This process no longer takes part, and why. Called once at most, on the group's thread.
    pub on_failure: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Options {
    pub fn new(directory: u64) -> Options {
        Options {
            directory,
            address: None,
            timing: Timing::default(),
            snapshot_after: 2_000,
            keep_entries: 500,
            on_failure: Arc::new(|why| tracing::error!("the manage group: {why}")),
        }
    }
}

/// A node, as it makes itself known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// `host:port` of its cluster port, as others reach it.
    pub address: String,
    pub sql_address: String,
    pub native_address: String,
    pub roles: BTreeSet<RoleKind>,
}

/// For people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub node: NodeId,
    pub term: u64,
    pub leader: Option<NodeId>,
    pub voters: BTreeSet<NodeId>,
    pub learners: BTreeSet<NodeId>,
    /// A change of the voters is under way: until it is done, a majority of the former voters is needed as well.
    pub changing: bool,
    /// Index of the last entry applied here.
    pub applied: u64,
    /// Index of the last entry in the log here.
    pub last: u64,
    /// Up to which entry each node has the log; on the leader only.
    pub replicated: BTreeMap<NodeId, u64>,
}

/// What the tasks share.
pub(crate) struct Core {
    options: Options,
    pub shared: Arc<Shared>,
    pub network: Arc<Network>,
    pub log: LogStore,
    pub proposer: Proposer,
    raft: OnceLock<Raft>,
    /// Only one of bootstrap, join and start at a time.
    pub beginning: tokio::sync::Mutex<()>,
    failure: Mutex<Option<String>>,
    /// A member has said that this node was taken out of the cluster.
    removed: AtomicBool,
    /// When a leader was last heard of, or a vote given.
    heard_leader: Mutex<Instant>,
    /// When this process last asked, as a leader, who follows it.
    asked: Mutex<Instant>,
    /// The last such question that a majority has answered with yes.
    followed: Mutex<Instant>,
    confirms: mpsc::UnboundedSender<oneshot::Sender<Option<u64>>>,
}

impl Core {
    pub fn raft(&self) -> Option<&Raft> {
        self.raft.get()
    }

    /// Zero before it is known.
    pub fn me(&self) -> u64 {
        self.log.identity().map_or(0, |identity| identity.node)
    }

    pub fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }

    pub fn hear_removed(&self) {
        self.removed.store(true, Ordering::Release);
    }

    pub fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    /// This process takes no part any more. The first reason counts.
    pub fn end(&self, why: &str) {
        let first = {
            let mut failure = self.failure.lock();
            let first = failure.is_none();
            failure.get_or_insert_with(|| why.to_string());
            first
        };
        if first {
            (self.options.on_failure)(why);
        }
    }

    pub fn timing(&self) -> Timing {
        self.options.timing
    }

    pub fn hear_leader(&self) {
        *self.heard_leader.lock() = Instant::now();
    }

    pub fn heard_leader(&self) -> Instant {
        *self.heard_leader.lock()
    }

    /// A leader begins to ask who follows it; gives the time of that.
    pub fn ask(&self) -> Instant {
        let now = Instant::now();
        *self.asked.lock() = now;
        now
    }

    /// A majority has answered the question of `asked` with yes.
    pub fn be_followed(&self, asked: Instant) {
        let mut followed = self.followed.lock();
        *followed = asked.max(*followed);
    }

    pub fn followed(&self) -> Instant {
        *self.followed.lock()
    }

    pub fn asked(&self) -> Instant {
        *self.asked.lock()
    }

    pub fn metrics(&self) -> Option<Metrics> {
        Some(self.raft()?.metrics().borrow().clone())
    }

    /// The term that this process leads in, once all that was committed before has been applied here.
    pub fn leading(&self) -> Option<u64> {
        let receiver = self.raft()?.metrics();
        let metrics = receiver.borrow();
        let own = metrics.last_applied.is_some_and(|id| id.leader_id == metrics.vote.leader_id);
        (metrics.state == ServerState::Leader && own).then_some(metrics.current_term)
    }

    pub fn leader_id(&self) -> Option<u64> {
        self.raft()?.metrics().borrow().current_leader
    }

    /// Resolves when somebody else than `node` is known to lead, or after `limit`.
    pub async fn leader_is_not(&self, node: Option<u64>, limit: Duration) {
        let Some(raft) = self.raft() else { return sleep(limit).await };
        let mut metrics = raft.metrics();
        let other = metrics.wait_for(|now| now.current_leader.is_some() && now.current_leader != node);
        let ended = matches!(timeout(limit, other).await, Ok(Err(_)));
        if ended {
            // Raft has ended; the failure tells it.
            sleep(limit).await;
        }
    }

    pub fn voters(&self) -> BTreeSet<u64> {
        self.metrics().map(|m| m.membership_config.membership().voter_ids().collect()).unwrap_or_default()
    }

    pub fn members(&self) -> BTreeSet<u64> {
        self.metrics().map(|m| m.membership_config.membership().nodes().map(|(n, _)| *n).collect()).unwrap_or_default()
    }

    pub fn with_address(&self, node: Option<u64>) -> Option<(u64, String)> {
        let node = node?;
        Some((node, self.network.addresses.of(node)?))
    }

    pub fn directory(&self) -> u64 {
        self.options.directory
    }

    /// Where this process listens, if that was said.
    pub fn own_address(&self) -> Option<&str> {
        self.options.address.as_deref()
    }

    /// Runs Raft with what the directory has.
    pub async fn take_part(self: &Arc<Core>, identity: &Identity) -> Result<(), RaftError> {
        if self.raft().is_some() {
            return Ok(());
        }
        self.network.set_sender(Sender { node: identity.node, cluster: identity.cluster });
        let machine = StateMachine::open(self.log.claims(), identity.node, self.shared.clone())?;
        let config = Arc::new(config(&self.options, identity));
        let peers = Peers(self.network.clone());
        let raft = Raft::new(identity.node, config, peers, self.log.clone(), machine).await;
        let raft = raft.map_err(|error| RaftError::Raft(error.to_string()))?;
        tokio::spawn(watch(self.clone(), raft.clone()));
        // Nobody else sets it: `beginning` is held.
        let _ = self.raft.set(raft);
        self.hear_leader();
        tokio::spawn(membership::manage(self.clone()));
        tokio::spawn(election::stand(self.clone()));
        tokio::spawn(following::be_heard(self.clone()));
        Ok(())
    }

    pub async fn save(&self, identity: &Identity) -> Result<(), RaftError> {
        Ok(self.log.save_identity(identity.clone()).await?)
    }
}

fn database(directory: u64) -> DatabaseId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&directory.to_le_bytes());
    id[8..].copy_from_slice(b"raukraft");
    DatabaseId(id)
}

fn config(options: &Options, identity: &Identity) -> Config {
    let ms = |time: Duration| time.as_millis() as u64;
    let config = Config {
        cluster_name: identity.name.clone(),
        heartbeat_interval: ms(options.timing.heartbeat),
        // See `election`. The lower bound is the time for an answer to a request for votes.
        enable_elect: false,
        election_timeout_min: ms(options.timing.heartbeat) + 1,
        election_timeout_max: ms(options.timing.lease),
        install_snapshot_timeout: 3_000,
        snapshot_max_chunk_size: 1 << 20,
        max_payload_entries: 300,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(options.snapshot_after),
        max_in_snapshot_log_to_keep: options.keep_entries,
        purge_batch_size: (options.keep_entries / 2).max(1),
        replication_lag_threshold: options.snapshot_after + options.keep_entries,
        ..Config::default()
    };
    config.validate().expect("the times of the manage group fit each other")
}

/// Tells of changes of the leader, and of the end.
async fn watch(core: Arc<Core>, raft: Raft) {
    let mut metrics = raft.metrics();
    let mut leader = None;
    let failed = loop {
        {
            let now = metrics.borrow_and_update();
            if let Err(error) = &now.running_state {
                break error.to_string();
            }
            if now.current_leader != leader {
                leader = now.current_leader;
                match leader {
                    Some(node) => tracing::info!("node {node} leads the manage group (term {})", now.current_term),
                    None => tracing::info!("the manage group has no leader (term {})", now.current_term),
                }
            }
        }
        if metrics.changed().await.is_err() {
            break "it ended by a mistake of its own".to_string();
        }
    };
    core.end(&format!("this process no longer takes part in the manage group: {failed}"));
}

/// One round to the followers answers everybody who asked before it began. Rounds do not wait for each other: where answers take long, whoever asks during one would wait for two.
async fn confirm_all(core: Arc<Core>, mut asked: mpsc::UnboundedReceiver<oneshot::Sender<Option<u64>>>) {
    while let Some(first) = asked.recv().await {
        let mut waiting = vec![first];
        while let Ok(another) = asked.try_recv() {
            waiting.push(another);
        }
        let core = core.clone();
        tokio::spawn(async move {
            let index = following::confirm(&core).await;
            for sender in waiting {
                // Whoever asked may be gone.
                let _ = sender.send(index);
            }
        });
    }
}

pub struct RaftGroup {
    pub(crate) core: Arc<Core>,
    handle: Handle,
    thread: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl RaftGroup {
    /// Opens the directory's part of the manage group, and takes part if it is a member. Blocks until that is done. `watchers` hear of the state as it was, too.
    pub fn start(
        options: Options,
        disk: Arc<dyn Disk>,
        transport: Arc<dyn Transport>,
        watchers: Vec<Arc<dyn Watcher>>,
    ) -> Result<Arc<RaftGroup>, RaftError> {
        let log = LogStore::open(&disk, database(options.directory))?;
        let shared = Arc::new(Shared::new(watchers));
        let network = Arc::new(Network::new(transport, shared.clone()));
        let (confirms, asked) = mpsc::unbounded_channel();
        let core = Arc::new(Core {
            options,
            shared,
            network,
            log,
            proposer: Proposer::default(),
            raft: OnceLock::new(),
            beginning: tokio::sync::Mutex::default(),
            failure: Mutex::default(),
            removed: AtomicBool::new(false),
            heard_leader: Mutex::new(Instant::now()),
            asked: Mutex::new(Instant::now()),
            followed: Mutex::new(Instant::now()),
            confirms,
        });
        let (ready, handle) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let ending = core.clone();
        let thread =
            std::thread::Builder::new().name("manage-group".into()).spawn(move || run(&ready, stopped, ending));
        let thread = thread.map_err(RaftError::Thread)?;
        let handle =
            handle.recv().unwrap_or_else(|_| Err(std::io::Error::other("it ended"))).map_err(RaftError::Thread)?;
        handle.spawn(confirm_all(core.clone(), asked));
        let group = RaftGroup { core: core.clone(), handle, thread: Mutex::new(Some((stop, thread))) };
        if let Some(identity) = core.log.identity() {
            let (sender, receiver) = std::sync::mpsc::channel();
            group.handle.spawn(async move {
                let free = joining::nobody_else(&core, &identity).await;
                let taking_part = match free {
                    Ok(()) => core.take_part(&identity).await,
                    Err(error) => Err(error),
                };
                let unfinished = taking_part.is_ok() && core.shared.group().config.is_none();
                let _ = sender.send(taking_part);
                if let Some(founding) = identity.founding.filter(|_| unfinished) {
                    let _beginning = core.beginning.lock().await;
                    if let Err(error) = joining::found(&core, *founding).await {
                        tracing::error!("the cluster that was begun here is not made: {error}");
                    }
                }
            });
            receiver.recv().unwrap_or(Err(RaftError::Closed))?;
        }
        Ok(Arc::new(group))
    }

    /// Who this directory is, if it is a member of a cluster.
    pub fn node(&self) -> Option<NodeId> {
        self.core.log.identity().map(|identity| node_id(identity.node))
    }

    /// The name of the cluster that this directory belongs to.
    pub fn cluster(&self) -> Option<String> {
        self.core.log.identity().map(|identity| identity.name)
    }

    pub fn cluster_id(&self) -> Option<[u8; 16]> {
        self.core.log.identity().map(|identity| identity.cluster)
    }

    /// Makes a new cluster of this node alone, with what its directory had before, if that is adopted ([`rauk_manage::group::Adopted`]). After a crash in
    /// the midst of it, the next start finishes it by itself.
    pub fn bootstrap(
        &self,
        config: ClusterConfig,
        adopted: Option<Arc<str>>,
        own: Description,
    ) -> BoxFuture<Result<NodeId, RaftError>> {
        let core = self.core.clone();
        self.run(async move { joining::bootstrap(&core, config, adopted, own).await }, Err(RaftError::Closed))
    }

    /// Joins the cluster of this name, or, as a member already, says where it is now. Asks the seeds (`host:port`) in turn until one answers, for `limit` at most. Resolves when this process has the
    /// group's state with itself in it.
    pub fn join(
        &self,
        cluster: &str,
        seeds: &[String],
        own: Description,
        limit: Duration,
    ) -> BoxFuture<Result<NodeId, RaftError>> {
        let (core, cluster, seeds) = (self.core.clone(), cluster.to_string(), seeds.to_vec());
        self.run(async move { joining::join(&core, cluster, seeds, own, limit).await }, Err(RaftError::Closed))
    }

    /// Says where this member is now, to whoever can be reached, and to the group.
    pub fn announce(
        &self,
        seeds: &[String],
        own: Description,
        limit: Duration,
    ) -> BoxFuture<Result<NodeId, RaftError>> {
        let (core, seeds) = (self.core.clone(), seeds.to_vec());
        self.run(async move { joining::announce(&core, &seeds, own, limit).await }, Err(RaftError::Closed))
    }

    /// Answers a request of another process's [`Transport`].
    pub fn serve(&self, request: &[u8]) -> BoxFuture<Vec<u8>> {
        let (core, request) = (self.core.clone(), request.to_vec());
        let closed = encode(&Reply::Refused(Refusal::Failed("the process is shutting down".into())));
        self.run(async move { encode(&serve::answer(&core, &request).await) }, closed)
    }

    pub fn status(&self) -> Status {
        let Some(metrics) = self.core.metrics() else { return Status::default() };
        let membership = metrics.membership_config.membership();
        let replicated = metrics.replication.iter().flatten();
        Status {
            node: node_id(metrics.id),
            term: metrics.current_term,
            leader: metrics.current_leader.map(node_id),
            voters: membership.voter_ids().map(node_id).collect(),
            learners: membership.learner_ids().map(node_id).collect(),
            changing: membership.get_joint_config().len() > 1,
            applied: metrics.last_applied.map_or(0, |id| id.index),
            last: metrics.last_log_index.unwrap_or(0),
            replicated: replicated.map(|(n, id)| (node_id(*n), id.map_or(0, |id| id.index))).collect(),
        }
    }

    /// Why this process no longer takes part, if it does not.
    pub fn failure(&self) -> Option<String> {
        self.core.failure()
    }

    /// Ends this process's part; blocks until nothing of it runs any more. Whoever waits is told.
    pub fn shutdown(&self) {
        let Some((stop, thread)) = self.thread.lock().take() else { return };
        // It may have ended by itself.
        let _ = stop.send(());
        if thread.thread().id() != std::thread::current().id() {
            let _ = thread.join();
        }
    }

    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
        closed: T,
    ) -> BoxFuture<T> {
        let (sender, receiver) = oneshot::channel();
        self.handle.spawn(async move {
            // Whoever asked may be gone.
            let _ = sender.send(work.await);
        });
        Box::pin(async move { receiver.await.unwrap_or(closed) })
    }
}

impl Drop for RaftGroup {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl Consensus for RaftGroup {
    fn propose(&self, command: GroupCommand, timeout: Duration) -> BoxFuture<Result<Answer, ProposeError>> {
        let core = self.core.clone();
        self.run(async move { propose::propose(&core, command, timeout).await }, Err(ProposeError::Closed))
    }

    fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.core.shared.watch(watcher);
    }

    fn group(&self) -> Arc<Group> {
        self.core.shared.group()
    }

    fn leading(&self) -> Option<u64> {
        self.core.leading()
    }

    fn confirm(&self) -> BoxFuture<Option<u64>> {
        let (sender, receiver) = oneshot::channel();
        // A thread that has ended gives nothing.
        let _ = self.core.confirms.send(sender);
        Box::pin(async move { receiver.await.unwrap_or(None) })
    }

    fn leader(&self) -> Option<NodeId> {
        self.core.leader_id().map(node_id)
    }

    fn voters(&self) -> BTreeSet<NodeId> {
        self.core.voters().into_iter().map(node_id).collect()
    }
}

/// The thread: an executor until it is told to stop.
fn run(ready: &std::sync::mpsc::Sender<std::io::Result<Handle>>, stopped: oneshot::Receiver<()>, core: Arc<Core>) {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    let _ = ready.send(Ok(runtime.handle().clone()));
    runtime.block_on(async {
        let _ = stopped.await;
        *core.failure.lock() = Some("this process is shutting down".into());
        if let Some(raft) = core.raft() {
            let _ = timeout(Duration::from_secs(2), raft.shutdown()).await;
        }
    });
    // Files being written are waited for; all tasks are dropped.
    drop(runtime);
}

/// Numbers come from the group, which counts in 16 bits.
pub(crate) fn node_id(number: u64) -> NodeId {
    NodeId(u16::try_from(number).unwrap_or(0))
}
