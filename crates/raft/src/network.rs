//! What goes out: openraft's messages, and calls of this crate's own, over the caller's [`Transport`].
//!
//! A follower whose answers do not come back would hear of its leader, and be of no use to it: so one that has not answered for long is only asked whether it does, until it does. If
//! that is so for most of them, they hear of nobody and elect another leader.
//!
//! Where a node is says the group; a node that has moved is known by its own word until the group has it too ([`Addresses`]). Each call has a time limit here, whatever the transport does.

use crate::message::{Body, Envelope, Refusal, Reply, Undecodable, decode, encode};
use crate::state_machine::Shared;
use crate::types::{LogId, Types};
use openraft::error::{
    Fatal, InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, SnapshotMismatch, Unreachable,
};
use openraft::network::{Backoff, RPCOption};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse, VoteRequest,
    VoteResponse,
};
use openraft::{AnyError, EmptyNode, RaftNetwork, RaftNetworkFactory};
use parking_lot::Mutex;
use rauk_manage::consensus::BoxFuture;
use rauk_types::NodeId;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

/// Carries a request to another process and its answer back. The other side hands it to [`RaftGroup::serve`](crate::RaftGroup::serve). Requests may be lost, late or come twice.
pub trait Transport: Send + Sync {
    /// `to` is zero where only the address is known. Polled on the group's thread, so it must not block.
    fn call(&self, to: NodeId, address: &str, request: Vec<u8>) -> BoxFuture<Result<Vec<u8>, String>>;
}

/// A node that has not answered for so long is asked for an answer first.
const MUTE: Duration = Duration::from_millis(700);
/// After a node could not be reached.
const BACKOFF: Duration = Duration::from_millis(75);

/// Where nodes are.
pub struct Addresses {
    shared: Arc<Shared>,
    told: Mutex<BTreeMap<u64, Told>>,
}

/// A node's own word, which counts for as long as the group says what it said then.
struct Told {
    address: String,
    instead_of: Option<String>,
}

impl Addresses {
    fn in_group(&self, node: u64) -> Option<String> {
        let node = NodeId(u16::try_from(node).ok()?);
        let group = self.shared.group();
        group.nodes.get(&node).map(|state| state.address.clone()).filter(|address| !address.is_empty())
    }

    pub fn of(&self, node: u64) -> Option<String> {
        let known = self.in_group(node);
        match self.told.lock().get(&node) {
            Some(told) if told.instead_of == known => Some(told.address.clone()),
            _ => known,
        }
    }

    pub fn tell(&self, node: u64, address: &str) {
        let instead_of = self.in_group(node);
        self.told.lock().insert(node, Told { address: address.to_string(), instead_of });
    }

    /// All nodes with their addresses.
    pub fn all(&self) -> Vec<(u64, String)> {
        let mut nodes: Vec<u64> = self.shared.group().nodes.keys().map(|node| u64::from(node.0)).collect();
        nodes.extend(self.told.lock().keys().copied());
        nodes.sort_unstable();
        nodes.dedup();
        nodes.into_iter().filter_map(|node| Some((node, self.of(node)?))).collect()
    }
}

/// Why a call gave nothing.
#[derive(Debug)]
pub enum CallError {
    /// Nothing came back: it may have been done or not.
    Lost(String),
    /// Nor in the time that it was given.
    Late(String),
    Refused(Refusal),
    OtherVersion(String),
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CallError::Lost(why) | CallError::Late(why) => f.write_str(why),
            CallError::Refused(refusal) => refusal.fmt(f),
            CallError::OtherVersion(version) => write!(f, "it runs Rauk {version}"),
        }
    }
}

/// Who this process is, for what it sends.
#[derive(Clone, Copy, Default)]
pub struct Sender {
    pub node: u64,
    pub cluster: [u8; 16],
}

pub struct Network {
    transport: Arc<dyn Transport>,
    pub addresses: Addresses,
    sender: OnceLock<Sender>,
    /// When a node last answered.
    heard: Mutex<BTreeMap<u64, Instant>>,
    /// Nodes that no longer have entries which they have acknowledged, and up to where.
    forgetful: Mutex<BTreeMap<u64, LogId>>,
}

impl Network {
    pub fn new(transport: Arc<dyn Transport>, shared: Arc<Shared>) -> Network {
        let addresses = Addresses { shared, told: Mutex::default() };
        Network { transport, addresses, sender: OnceLock::new(), heard: Mutex::default(), forgetful: Mutex::default() }
    }

    pub fn set_sender(&self, sender: Sender) {
        // The identity of a directory never changes.
        let _ = self.sender.set(sender);
    }

    pub async fn call(&self, to: u64, body: Body, timeout: Duration) -> Result<Reply, CallError> {
        let address =
            self.addresses.of(to).ok_or_else(|| CallError::Lost(format!("nobody knows where node {to} is")))?;
        let reply = self.call_address(to, &address, body, timeout).await?;
        self.heard.lock().insert(to, Instant::now());
        Ok(reply)
    }

    pub async fn call_address(
        &self,
        to: u64,
        address: &str,
        body: Body,
        timeout: Duration,
    ) -> Result<Reply, CallError> {
        let Sender { node, cluster } = self.sender.get().copied().unwrap_or_default();
        let request = encode(&Envelope { cluster, from: node, to, body });
        let called = self.transport.call(NodeId(u16::try_from(to).unwrap_or(0)), address, request);
        let answer = match tokio::time::timeout(timeout, called).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(why)) => return Err(CallError::Lost(format!("{address}: {why}"))),
            Err(_) => return Err(CallError::Late(format!("{address}: no answer within {} ms", timeout.as_millis()))),
        };
        match decode(&answer) {
            Ok(Reply::Refused(refusal)) => Err(CallError::Refused(refusal)),
            Ok(reply) => Ok(reply),
            Err(Undecodable::Version(version)) => Err(CallError::OtherVersion(version)),
            Err(Undecodable::Malformed(what)) => {
                Err(CallError::Lost(format!("{address}: the answer is malformed: {what}")))
            }
        }
    }

    /// Nodes found to have lost entries, since this was last asked.
    pub fn take_forgetful(&self) -> BTreeMap<u64, LogId> {
        std::mem::take(&mut self.forgetful.lock())
    }

    /// Whether a node used to answer and does not now.
    pub async fn is_mute(&self, node: u64, timeout: Duration) -> bool {
        let silent = self.heard.lock().get(&node).is_some_and(|at| at.elapsed() > MUTE);
        silent && self.call(node, Body::Ping, timeout).await.is_err()
    }

    /// Whether a node has answered since `since`.
    pub fn heard_since(&self, node: u64, since: Instant) -> bool {
        self.heard.lock().get(&node).is_some_and(|at| *at >= since)
    }
}

/// Makes a [`Peer`] for each node that openraft talks to.
pub struct Peers(pub Arc<Network>);

pub struct Peer {
    network: Arc<Network>,
    to: u64,
    /// The last entry that the node is known to have.
    matched: Option<LogId>,
}

impl RaftNetworkFactory<Types> for Peers {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, _node: &EmptyNode) -> Peer {
        Peer { network: self.0.clone(), to: target, matched: None }
    }
}

/// Tried again at once, or after a pause when trying costs no time.
fn not_done<E: std::error::Error>(why: CallError) -> RPCError<u64, EmptyNode, E> {
    match why {
        CallError::Late(why) => RPCError::Network(NetworkError::new(&AnyError::error(why))),
        CallError::Lost(_) | CallError::Refused(_) | CallError::OtherVersion(_) => unreachable(why),
    }
}

type RpcResult<T, E = RaftError<u64>> = Result<T, RPCError<u64, EmptyNode, E>>;

fn unreachable<E: std::error::Error>(why: impl ToString) -> RPCError<u64, EmptyNode, E> {
    RPCError::Unreachable(Unreachable::new(&AnyError::error(why)))
}

/// An answer to another question.
fn unexpected<E: std::error::Error>() -> RPCError<u64, EmptyNode, E> {
    RPCError::Network(NetworkError::new(&AnyError::error("the answer is not one to this request")))
}

impl RaftNetwork<Types> for Peer {
    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> RpcResult<AppendEntriesResponse<u64>> {
        let last = rpc.entries.last().map(|entry| entry.log_id).or(rpc.prev_log_id);
        let (vote, previous) = (rpc.vote, rpc.prev_log_id);
        if self.network.is_mute(self.to, option.hard_ttl()).await {
            return Err(unreachable(format!("node {} does not answer", self.to)));
        }
        match self.network.call(self.to, Body::Append(rpc), option.hard_ttl()).await {
            // openraft asserts these.
            Ok(Reply::Append(AppendEntriesResponse::HigherVote(other))) if other <= vote => Err(unexpected()),
            Ok(Reply::Append(AppendEntriesResponse::PartialSuccess(to))) if to > last => Err(unexpected()),
            Ok(Reply::Append(AppendEntriesResponse::Conflict)) if previous.is_some() && previous <= self.matched => {
                let acknowledged = self.matched.expect("not below an entry");
                self.network.forgetful.lock().insert(self.to, acknowledged);
                Err(unreachable(format!("node {} has lost entries that it had", self.to)))
            }
            Ok(Reply::Append(response)) => {
                match &response {
                    AppendEntriesResponse::Success => self.matched = self.matched.max(last),
                    AppendEntriesResponse::PartialSuccess(to) => self.matched = self.matched.max(*to),
                    AppendEntriesResponse::Conflict | AppendEntriesResponse::HigherVote(_) => {}
                }
                Ok(response)
            }
            Ok(_) => Err(unexpected()),
            Err(why) => Err(not_done(why)),
        }
    }

    async fn vote(&mut self, rpc: VoteRequest<u64>, option: RPCOption) -> RpcResult<VoteResponse<u64>> {
        match self.network.call(self.to, Body::Vote(rpc), option.hard_ttl()).await {
            Ok(Reply::Vote(response)) => Ok(response),
            Ok(_) => Err(unexpected()),
            Err(why) => Err(not_done(why)),
        }
    }

    async fn install_snapshot(
        &mut self,
        rpc: InstallSnapshotRequest<Types>,
        option: RPCOption,
    ) -> RpcResult<InstallSnapshotResponse<u64>, RaftError<u64, InstallSnapshotError>> {
        match self.network.call(self.to, Body::Snapshot(rpc), option.hard_ttl()).await {
            Ok(Reply::Snapshot(response)) => Ok(response),
            Ok(Reply::SnapshotMismatch { expect, got }) => {
                let mismatch = InstallSnapshotError::SnapshotMismatch(SnapshotMismatch { expect, got });
                Err(RPCError::RemoteError(RemoteError::new(self.to, RaftError::APIError(mismatch))))
            }
            Ok(_) => Err(unexpected()),
            Err(CallError::Refused(Refusal::Failed(_))) => {
                Err(RPCError::RemoteError(RemoteError::new(self.to, RaftError::Fatal(Fatal::Stopped))))
            }
            Err(why) => Err(not_done(why)),
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(BACKOFF))
    }
}
