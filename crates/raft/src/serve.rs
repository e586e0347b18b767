//! What comes in from other processes.

use crate::error::{JoinRefused, RaftError as GroupError};
use crate::group::Core;
use crate::message::{Body, Envelope, JoinRequest, Joined, Refusal, Reply, Undecodable, check, decode};
use crate::{election, following, propose};
use openraft::ChangeMembers;
use openraft::error::{InstallSnapshotError, RaftError};
use openraft::raft::AppendEntriesResponse;
use rauk_manage::group::{Answer, GroupCommand};
use rauk_types::NodeId;
use std::time::Duration;

/// Whoever sent a proposal has given up by then.
const PROPOSAL: Duration = Duration::from_secs(5);
/// For a join, on the leader.
const JOIN: Duration = Duration::from_secs(5);

/// Answers a request; what it says is checked first.
pub async fn answer(core: &Core, request: &[u8]) -> Reply {
    let envelope: Envelope = match decode(request) {
        Ok(envelope) => envelope,
        // The answer's own frame tells the versions.
        Err(Undecodable::Version(theirs)) => {
            return Reply::Refused(Refusal::Failed(format!("the request is of Rauk {theirs}")));
        }
        Err(Undecodable::Malformed(what)) => return Reply::Refused(Refusal::Malformed(what)),
    };
    match admit(core, envelope) {
        Ok(envelope) => act(core, envelope).await,
        Err(refusal) => Reply::Refused(refusal),
    }
}

fn admit(core: &Core, envelope: Envelope) -> Result<Envelope, Refusal> {
    let (Some(identity), Some(_)) = (core.log.identity(), core.raft()) else { return Err(Refusal::NoCluster) };
    if let Some(why) = core.failure() {
        return Err(Refusal::Failed(why));
    }
    if matches!(envelope.body, Body::Join(_)) {
        return Ok(envelope);
    }
    if envelope.cluster != identity.cluster {
        return Err(Refusal::OtherCluster { name: identity.name });
    }
    if envelope.to != 0 && envelope.to != identity.node {
        return Err(Refusal::OtherNode(identity.node));
    }
    check(&envelope, identity.node).map_err(Refusal::Malformed)?;
    Ok(envelope)
}

fn failed(error: impl ToString) -> Reply {
    Reply::Refused(Refusal::Failed(error.to_string()))
}

async fn act(core: &Core, envelope: Envelope) -> Reply {
    let Some(raft) = core.raft() else { return Reply::Refused(Refusal::NoCluster) };
    match envelope.body {
        Body::Append(request) => match raft.append_entries(request).await {
            Ok(response) => {
                if !matches!(response, AppendEntriesResponse::HigherVote(_)) {
                    core.hear_leader();
                }
                Reply::Append(response)
            }
            Err(error) => failed(error),
        },
        Body::Vote(request) => match raft.vote(request).await {
            Ok(response) => {
                if response.vote_granted {
                    core.hear_leader();
                }
                Reply::Vote(response)
            }
            Err(error) => failed(error),
        },
        Body::Snapshot(request) => match raft.install_snapshot(request).await {
            Ok(response) => {
                core.hear_leader();
                Reply::Snapshot(response)
            }
            Err(RaftError::APIError(InstallSnapshotError::SnapshotMismatch(mismatch))) => {
                Reply::SnapshotMismatch { expect: mismatch.expect, got: mismatch.got }
            }
            Err(RaftError::Fatal(error)) => failed(error),
        },
        // It would never hear what came of it: the log is not sent to it any more.
        Body::Propose(_) if was_removed(core, envelope.from) => Reply::Refused(Refusal::Removed(envelope.from)),
        Body::Propose(proposal) => propose::carry_out(core, proposal, PROPOSAL).await,
        Body::Hello { address } => {
            if envelope.from != 0 && envelope.from != core.me() {
                core.network.addresses.tell(envelope.from, &address);
            }
            Reply::Hello { node: core.me() }
        }
        Body::Canvass { last_log } => Reply::Canvass { willing: election::willing(core, last_log) },
        Body::Follow { vote } => Reply::Follow { follows: following::follows(core, vote) },
        Body::Ping => Reply::Pong,
        Body::Who => Reply::Hello { node: core.me() },
        Body::Lost { acknowledged } => {
            // It may have been said of another process that was started with an older directory.
            if core.log.last() < Some(acknowledged) {
                let node = crate::group::node_id(core.me()).0;
                core.end(&GroupError::OlderCopy { node, acknowledged: acknowledged.index }.to_string());
                // It ends whatever it is asked meanwhile.
                let _ = raft.shutdown().await;
            }
            Reply::Pong
        }
        Body::Join(request) => join(core, request).await,
    }
}

/// Numbers are given in order, and once.
fn was_removed(core: &Core, node: u64) -> bool {
    let group = core.shared.group();
    let known = u16::try_from(node).ok().map(NodeId);
    known.is_some_and(|node| (1..group.next_node).contains(&node.0) && !group.nodes.contains_key(&node))
}

async fn join(core: &Core, request: JoinRequest) -> Reply {
    let group = core.shared.group();
    let Some(config) = &group.config else { return Reply::Refused(Refusal::NoCluster) };
    if request.cluster != config.name {
        return Reply::JoinRefused(JoinRefused::OtherCluster { name: config.name.clone() });
    }
    if core.leading().is_none() {
        return pass_on(core, request).await;
    }
    let known = group.nodes.iter().find(|(_, state)| state.directory == request.directory);
    if let Some((&node, _)) = known {
        let number = u64::from(node.0);
        if core.voters().contains(&number) {
            return Reply::JoinRefused(JoinRefused::StateLost { node: node.0 });
        }
        // It was added and went down before it knew: what Raft remembers of it does not count.
        if core.members().contains(&number)
            && let Some(raft) = core.raft()
        {
            let removed = raft.change_membership(ChangeMembers::RemoveNodes([number].into()), true);
            match tokio::time::timeout(JOIN, removed).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return failed(error),
                Err(_) => return failed("no majority of the manage nodes follows"),
            }
        }
    }
    let cluster = config.id;
    match propose::propose(core, request.description.add_node(request.directory), JOIN).await {
        Ok(Answer::Node(node)) => {
            Reply::Joined(Joined { node: u64::from(node.0), cluster, nodes: core.network.addresses.all() })
        }
        Ok(Answer::Refused(refused)) => Reply::JoinRefused(JoinRefused::Refused(refused.to_string())),
        Ok(other) => failed(format!("adding the node gave {other:?}")),
        Err(error) => failed(error),
    }
}

/// To the leader, once.
async fn pass_on(core: &Core, request: JoinRequest) -> Reply {
    let leader = core.with_address(core.leader_id().filter(|leader| *leader != core.me()));
    let Some((node, _)) = leader.as_ref().filter(|_| !request.forwarded) else { return Reply::NotLeader(leader) };
    let body = Body::Join(JoinRequest { forwarded: true, ..request });
    match core.network.call(*node, body, JOIN).await {
        Ok(reply @ (Reply::Joined(_) | Reply::JoinRefused(_))) => reply,
        Ok(_) | Err(_) => Reply::NotLeader(leader),
    }
}

impl crate::group::Description {
    /// The command that makes the node known.
    pub(crate) fn add_node(&self, directory: u64) -> GroupCommand {
        GroupCommand::AddNode {
            directory,
            address: self.address.clone(),
            sql_address: self.sql_address.clone(),
            native_address: self.native_address.clone(),
            roles: self.roles.clone(),
        }
    }
}
