//! Sessions of the other nodes: who is connected there and what runs (SHOW PROCESSLIST), and KILL.
//!
//! The layer above keeps the sessions of this process and registers what lists and ends them ([`Processes`]). A
//! session's number in the cluster is the number of its process, which is never given again, and its number there
//! ([`Database::cluster_session_id`]); on a node that is alone it is the latter. A process that does not answer within
//! [`PATIENCE`] is named, and not waited for any longer. An answer has at most [`MOST_TEXT`] bytes of statements.

use super::Cluster;
use super::signal::Signal;
use crate::database::Database;
use crate::error::NodeError;
use crate::node::Node;
use rauk_types::{Member, NodeId, ProcessId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// How long a process has to answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of running statements in one answer, and of one of them at least.
const MOST_TEXT: usize = 1 << 20;
const LEAST_TEXT: usize = 100;
/// Sessions in one answer.
const MOST_SESSIONS: usize = 20_000;

/// A session as SHOW PROCESSLIST tells of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// In the cluster.
    pub id: u64,
    pub user: String,
    pub host: String,
    pub database: Option<String>,
    /// Since the statement began, or the session has been idle.
    pub seconds: i64,
    /// What it does with that.
    pub state: String,
    /// The running statement.
    pub info: Option<String>,
}

/// What came of a KILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KillOutcome {
    Done,
    Unknown,
    /// It is another user's.
    Denied,
}

/// The sessions of this process.
pub trait Processes: Send + Sync {
    /// Those of `user`, or all.
    fn list(&self, user: Option<&str>) -> Vec<ProcessInfo>;
    /// Ends a session, or what it runs, if it is of `user` or that is `None`.
    fn kill(&self, id: u32, query_only: bool, user: Option<&str>) -> KillOutcome;
}

/// What the processes of a cluster have told.
#[derive(Default)]
pub struct Sessions {
    pub sessions: Vec<ProcessInfo>,
    /// Nodes that are up and have not answered.
    pub silent: Vec<NodeId>,
}

fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
}

/// Makes an answer as small as it must be.
fn bounded(mut sessions: Vec<ProcessInfo>) -> Vec<ProcessInfo> {
    sessions.truncate(MOST_SESSIONS);
    let all: usize = sessions.iter().filter_map(|s| s.info.as_ref()).map(String::len).sum();
    if all > MOST_TEXT {
        let running = sessions.iter().filter(|s| s.info.is_some()).count();
        let each = (MOST_TEXT / running.max(1)).max(LEAST_TEXT);
        sessions.iter_mut().filter_map(|s| s.info.as_mut()).for_each(|info| cut(info, each));
    }
    sessions
}

impl Node {
    /// The answer to [`Signal::ListSessions`].
    pub(super) fn list_sessions(&self, user: Option<&str>) -> Signal {
        let sessions = self.processes.get().map_or_else(Vec::new, |own| own.list(user));
        Signal::Sessions { sessions: bounded(sessions) }
    }

    /// The answer to [`Signal::KillSession`].
    pub(super) fn kill_session(&self, id: u32, query_only: bool, user: Option<&str>) -> Signal {
        let outcome = self.processes.get().map_or(KillOutcome::Unknown, |own| own.kill(id, query_only, user));
        Signal::SessionKilled { outcome }
    }
}

impl Cluster {
    async fn sessions_elsewhere(&self, user: Option<&str>) -> Sessions {
        let others = self.processes().into_iter().filter(|member| *member != self.me);
        let ask = |member: Member| async move {
            let question = Signal::ListSessions { user: user.map(str::to_string) };
            match self.request(member, question, PATIENCE).await {
                Ok(Signal::Sessions { sessions }) => Ok(sessions),
                _ => Err(member.node),
            }
        };
        let mut all = Sessions::default();
        for answer in futures::future::join_all(others.map(ask)).await {
            match answer {
                Ok(sessions) => all.sessions.extend(sessions),
                Err(node) => all.silent.push(node),
            }
        }
        all.sessions.sort_by_key(|session| session.id);
        all
    }
}

impl Database {
    /// Who lists and ends the sessions of this process; once.
    pub fn set_processes(&self, processes: Arc<dyn Processes>) {
        // A second engine of the process has no clients of its own.
        let _ = self.node.processes.set(processes);
    }

    /// The number in the whole cluster of a session of this process.
    pub fn cluster_session_id(&self, id: u32) -> u64 {
        let process = self.node.cluster().map_or(0, |cluster| cluster.me().process.0);
        u64::from(process) << 32 | u64::from(id)
    }

    /// The sessions of the other nodes that are up: those of `user`, or all.
    pub async fn sessions_elsewhere(&self, user: Option<&str>) -> Sessions {
        match self.node.cluster() {
            None => Sessions::default(),
            Some(cluster) => cluster.sessions_elsewhere(user).await,
        }
    }

    /// Ends a session of another process by its number in the cluster. `Unavailable`: no answer has come.
    pub async fn kill_elsewhere(
        &self,
        id: u64,
        query_only: bool,
        user: Option<&str>,
    ) -> Result<KillOutcome, NodeError> {
        let Some(cluster) = self.node.cluster() else { return Ok(KillOutcome::Unknown) };
        let process = ProcessId((id >> 32) as u32);
        let Some(member) = cluster.processes().into_iter().find(|member| member.process == process) else {
            return Ok(KillOutcome::Unknown);
        };
        let user = user.map(str::to_string);
        match cluster.request(member, Signal::KillSession { id: id as u32, query_only, user }, PATIENCE).await {
            Ok(Signal::SessionKilled { outcome }) => Ok(outcome),
            _ => Err(NodeError::Unavailable(format!("node {} has not answered", member.node.0))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_bounded() {
        let session = |id| ProcessInfo {
            id,
            user: "u".into(),
            host: "h".into(),
            database: None,
            seconds: 0,
            state: String::new(),
            info: Some("ß".repeat(30_000)),
        };
        let few = bounded((0..10).map(session).collect());
        assert!(few.iter().all(|s| s.info.as_ref().is_some_and(|info| info.len() == 60_000)));
        let many = bounded((0..100).map(session).collect());
        let bytes: usize = many.iter().filter_map(|s| s.info.as_ref()).map(String::len).sum();
        assert!(many.len() == 100 && bytes <= MOST_TEXT && bytes > MOST_TEXT / 2, "{bytes}");
        assert_eq!(bounded((0..30_000).map(session).collect()).len(), MOST_SESSIONS);
    }
}
