//! What the processes say to each other about the manage group, and what is checked before it is believed.
//!
//! A frame: `RKMG`, the protocol's number (`u16`, little-endian), the program's version as text (its length in one byte), then postcard. The first three never change, so that processes of
//! different versions can tell each other why they do not go together. An [`Envelope`] names the cluster and both nodes; a message for another is refused. The transport has
//! checked the cluster's secret before anything comes here.

use crate::error::JoinRefused;
use crate::group::Description;
use crate::machine::{Outcome, Proposal};
use crate::types::{LogId, Types, Vote};
use openraft::SnapshotSegmentId;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse, VoteRequest,
    VoteResponse,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const MAGIC: &[u8; 4] = b"RKMG";
/// The version of what the nodes of a cluster say to each other. Every change of the control plane's messages, of the
/// meaning of its log entries, or of the messages between data nodes raises it: a process of another version cannot join.
pub const PROTOCOL: u16 = 18;
pub const PROGRAM: &str = env!("CARGO_PKG_VERSION");

#[derive(Serialize, Deserialize)]
pub struct Envelope {
    /// Zeros: the sender is in no cluster yet.
    pub cluster: [u8; 16],
    /// Zero: the sender has no number yet.
    pub from: u64,
    /// Zero: whoever has the address.
    pub to: u64,
    pub body: Body,
}

#[derive(Serialize, Deserialize)]
pub enum Body {
    Append(AppendEntriesRequest<Types>),
    Vote(VoteRequest<u64>),
    Snapshot(InstallSnapshotRequest<Types>),
    Propose(Proposal),
    Join(JoinRequest),
    /// A member says where it is now.
    Hello {
        address: String,
    },
    /// Would you vote for a node whose log ends so?
    Canvass {
        last_log: Option<LogId>,
    },
    /// Do you follow the leader whose vote this is?
    Follow {
        vote: Vote,
    },
    /// Does an answer come back?
    Ping,
    /// Which node is there?
    Who,
    /// You acknowledged the log up to here, and do not have it any more.
    Lost {
        acknowledged: LogId,
    },
}

#[derive(Clone, Serialize, Deserialize)]
pub struct JoinRequest {
    pub cluster: String,
    pub directory: u64,
    pub description: Description,
    /// A member has passed it on to the leader.
    pub forwarded: bool,
}

#[derive(Serialize, Deserialize)]
pub struct Joined {
    pub node: u64,
    pub cluster: [u8; 16],
    /// Addresses of the nodes.
    pub nodes: Vec<(u64, String)>,
}

#[derive(Serialize, Deserialize)]
pub enum Reply {
    Append(AppendEntriesResponse<u64>),
    Vote(VoteResponse<u64>),
    Snapshot(InstallSnapshotResponse<u64>),
    /// Another part of the snapshot was expected.
    SnapshotMismatch {
        expect: SnapshotSegmentId,
        got: SnapshotSegmentId,
    },
    Proposed(Outcome),
    Joined(Joined),
    JoinRefused(JoinRefused),
    Hello {
        node: u64,
    },
    Canvass {
        willing: bool,
    },
    Follow {
        follows: bool,
    },
    Pong,
    /// With the leader and its address, if they are known.
    NotLeader(Option<(u64, String)>),
    Refused(Refusal),
}

/// Why a message was not acted on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    #[error("the message is malformed: {0}")]
    Malformed(String),
    #[error("it is of another cluster, {name:?}")]
    OtherCluster { name: String },
    #[error("node {0} is at this address")]
    OtherNode(u64),
    #[error("it is in no cluster yet")]
    NoCluster,
    #[error("{0}")]
    Failed(String),
    /// Its number was given once, and it is no node of the cluster any more.
    #[error("node {0} has been removed from the cluster")]
    Removed(u64),
}

#[derive(Debug, PartialEq, Eq)]
pub enum Undecodable {
    /// The other one's version, for people.
    Version(String),
    Malformed(String),
}

pub fn version(program: &str, protocol: u16) -> String {
    format!("{program} (protocol {protocol})")
}

pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    encode_as(PROTOCOL, PROGRAM, message)
}

pub(crate) fn encode_as<T: Serialize>(protocol: u16, program: &str, message: &T) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&protocol.to_le_bytes());
    bytes.push(program.len() as u8);
    bytes.extend_from_slice(program.as_bytes());
    postcard::to_extend(message, bytes).expect("a message can always be encoded")
}

pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Undecodable> {
    let malformed = |what: &str| Undecodable::Malformed(what.to_string());
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| malformed("it does not begin as one of the manage group"))?;
    let (protocol, rest) = rest.split_first_chunk().ok_or_else(|| malformed("it is cut off"))?;
    let (length, rest) = rest.split_first().ok_or_else(|| malformed("it is cut off"))?;
    let (program, rest) = rest.split_at_checked(usize::from(*length)).ok_or_else(|| malformed("it is cut off"))?;
    let protocol = u16::from_le_bytes(*protocol);
    if protocol != PROTOCOL || program != PROGRAM.as_bytes() {
        return Err(Undecodable::Version(version(&String::from_utf8_lossy(program), protocol)));
    }
    match postcard::take_from_bytes(rest) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(malformed(&format!("{} bytes follow it", rest.len()))),
        Err(e) => Err(malformed(&e.to_string())),
    }
}

/// openraft takes a request's consistency for granted; this does not.
pub fn check(envelope: &Envelope, me: u64) -> Result<(), String> {
    let from = envelope.from;
    if from > u64::from(u16::MAX) {
        return Err(format!("there is no node {from}"));
    }
    let sender = |vote: &Vote, committed: bool| {
        if from == me || from == 0 || vote.leader_id.node_id != from {
            return Err(format!("node {from} speaks for node {}", vote.leader_id.node_id));
        }
        if vote.committed != committed {
            return Err("a candidate's word where a leader's is due, or the reverse".to_string());
        }
        Ok(())
    };
    match &envelope.body {
        Body::Append(append) => {
            sender(&append.vote, true)?;
            let mut previous = append.prev_log_id;
            for entry in &append.entries {
                let due = previous.map_or(0, |id| id.index + 1);
                if entry.log_id.index != due {
                    return Err(format!("entry {} where {due} is due", entry.log_id.index));
                }
                if previous.is_some_and(|id| id.leader_id > entry.log_id.leader_id) {
                    return Err(format!("entry {due} is of an earlier leader than the one before"));
                }
                if entry.log_id.leader_id > append.vote.leader_id {
                    return Err(format!("entry {due} is of a later leader than the sender"));
                }
                previous = Some(entry.log_id);
            }
            if append.prev_log_id.is_some_and(|id| id.index == u64::MAX || id.leader_id > append.vote.leader_id) {
                return Err("it follows an entry that cannot be".to_string());
            }
            Ok(())
        }
        Body::Vote(vote) => sender(&vote.vote, false),
        Body::Follow { vote } => sender(vote, true),
        Body::Snapshot(snapshot) => {
            sender(&snapshot.vote, true)?;
            if snapshot.offset.checked_add(snapshot.data.len() as u64).is_none() {
                return Err("a part of a snapshot lies beyond every end".to_string());
            }
            Ok(())
        }
        Body::Propose(_)
        | Body::Join(_)
        | Body::Hello { .. }
        | Body::Canvass { .. }
        | Body::Ping
        | Body::Who
        | Body::Lost { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Entry;
    use openraft::{CommittedLeaderId, EntryPayload};

    fn id(term: u64, node: u64, index: u64) -> LogId {
        LogId::new(CommittedLeaderId::new(term, node), index)
    }

    fn append(previous: Option<LogId>, entries: &[LogId]) -> Envelope {
        let entries = entries.iter().map(|&log_id| Entry { log_id, payload: EntryPayload::Blank }).collect();
        let vote = Vote::new_committed(5, 2);
        let body = AppendEntriesRequest { vote, prev_log_id: previous, entries, leader_commit: None };
        Envelope { cluster: [1; 16], from: 2, to: 1, body: Body::Append(body) }
    }

    #[test]
    fn impossible_requests_are_refused() {
        assert!(check(&append(None, &[id(4, 3, 0), id(5, 2, 1)]), 1).is_ok());
        assert!(check(&append(Some(id(4, 3, 7)), &[id(5, 2, 8)]), 1).is_ok());
        assert!(check(&append(None, &[id(4, 3, 1)]), 1).is_err());
        assert!(check(&append(Some(id(4, 3, 7)), &[id(5, 2, 9)]), 1).is_err());
        assert!(check(&append(Some(id(4, 3, 7)), &[id(3, 2, 8)]), 1).is_err());
        assert!(check(&append(None, &[id(6, 2, 0)]), 1).is_err());
        assert!(check(&append(Some(id(5, 2, u64::MAX)), &[]), 1).is_err());
        assert!(check(&append(None, &[]), 2).is_err(), "from the receiver itself");
        let mut other = append(None, &[]);
        other.from = 3;
        assert!(check(&other, 1).is_err(), "for somebody else");
        other.from = 1 << 16;
        assert!(check(&other, 1).is_err());
    }

    #[test]
    fn frames() {
        let bytes = encode(&append(None, &[id(4, 3, 0)]));
        assert!(decode::<Envelope>(&bytes).is_ok());
        for cut in 0..bytes.len() {
            assert!(decode::<Envelope>(&bytes[..cut]).is_err());
        }
        assert!(decode::<Envelope>(&[&bytes[..], &[0]].concat()).is_err());
        let other = encode_as(9, "7.7.7", &Refusal::NoCluster);
        let error = decode::<Envelope>(&other).err().unwrap();
        assert_eq!(error, Undecodable::Version("7.7.7 (protocol 9)".into()));
    }

    proptest::proptest! {
        /// Whatever arrives, it is decoded or refused.
        #[test]
        fn garbage(bytes: Vec<u8>) {
            let framed = encode_as(PROTOCOL, PROGRAM, &());
            let _ = decode::<Envelope>(&[framed, bytes].concat()).map(|envelope| check(&envelope, 1));
        }
    }
}
