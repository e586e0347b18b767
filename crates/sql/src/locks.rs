//! The user-level locks of a session: GET_LOCK, RELEASE_LOCK, RELEASE_ALL_LOCKS, IS_FREE_LOCK, IS_USED_LOCK.
//!
//! The node locks names (`rauk_node::names`); here they are counted, since a session may take one several times and has to
//! release it as often. Names are compared in lower case. COMMIT and ROLLBACK release nothing; the end of the session,
//! COM_RESET_CONNECTION and COM_CHANGE_USER release all.
//!
//! When a primary of the cluster fails, the locks that it kept are lost. The session hears of it by the end of its
//! connection; a call in the moment before that gives error 1213. Either way no lock of the session is left.
//!
//! What a session's locks take in memory is bounded as its user variables are (1038).

use crate::memory::Memory;
use rauk_node::transaction::Interrupt;
use rauk_node::{Database, NameLocks, NodeError, OnLost};
use rauk_types::error::codes;
use rauk_types::{MysqlError, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a lock takes here and in its partition, beside its name.
const LOCK_BYTES: usize = 256;

/// What a function asks for. Names are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockRequest {
    /// Negative: as long as it takes.
    Get {
        name: String,
        seconds: i64,
    },
    Release(String),
    ReleaseAll,
    IsFree(String),
    /// The connection that has it.
    Owner(String),
}

/// Where locks are taken, and for whom.
struct Source {
    database: Database,
    /// In the cluster.
    connection_id: u64,
    interrupt: Arc<Interrupt>,
    on_lost: OnLost,
}

/// The locks of a session.
#[derive(Default)]
pub struct UserLocks {
    /// `None`: expressions that are evaluated for no session.
    source: Option<Source>,
    taken: Option<NameLocks>,
    /// How often each is held.
    counts: BTreeMap<String, u64>,
    bytes: usize,
}

impl UserLocks {
    pub(crate) fn new(database: Database, connection_id: u64, interrupt: Arc<Interrupt>, on_lost: OnLost) -> UserLocks {
        UserLocks { source: Some(Source { database, connection_id, interrupt, on_lost }), ..UserLocks::default() }
    }

    /// Releases all; gives how many there were, each as often as it was taken.
    pub(crate) fn release_all(&mut self) -> u64 {
        self.taken = None;
        self.bytes = 0;
        std::mem::take(&mut self.counts).into_values().sum()
    }

    /// Does what a function asks for, and gives its value.
    pub(crate) async fn run(&mut self, request: LockRequest, memory: &Memory) -> Result<Value, MysqlError> {
        let result = match request {
            LockRequest::Get { name, seconds } => {
                if !self.counts.contains_key(&name) {
                    memory.check(self.bytes + LOCK_BYTES + 2 * name.len())?;
                }
                self.get(name, seconds).await
            }
            LockRequest::Release(name) => self.release(name).await,
            LockRequest::ReleaseAll => Ok(Value::UInt(self.release_all())),
            LockRequest::IsFree(name) => self.owner(&name).await.map(|owner| Value::Int(i64::from(owner.is_none()))),
            LockRequest::Owner(name) => self.owner(&name).await.map(|owner| owner.map_or(Value::Null, Value::UInt)),
        };
        result.map_err(|error| match error {
            // 3024 when it was max_execution_time that ended it.
            NodeError::Interrupted => memory.look().err().unwrap_or_else(|| error.into()),
            error => error.into(),
        })
    }

    async fn get(&mut self, name: String, seconds: i64) -> Result<Value, NodeError> {
        if let Some(count) = self.counts.get_mut(&name) {
            *count += 1;
            return Ok(Value::Int(1));
        }
        let source = self.source.as_ref().ok_or_else(no_session)?;
        let taken = self.taken.get_or_insert_with(|| {
            source.database.name_locks(source.connection_id, source.interrupt.clone(), source.on_lost.clone())
        });
        let patience = u64::try_from(seconds).ok().map(Duration::from_secs);
        match taken.take(&name, patience).await {
            Ok(true) => {
                self.bytes += LOCK_BYTES + 2 * name.len();
                self.counts.insert(name, 1);
                Ok(Value::Int(1))
            }
            Ok(false) => Ok(Value::Int(0)),
            Err(error) => Err(self.failed(error)),
        }
    }

    async fn release(&mut self, name: String) -> Result<Value, NodeError> {
        let Some(count) = self.counts.get_mut(&name) else {
            return Ok(self.owner(&name).await?.map_or(Value::Null, |_| Value::Int(0)));
        };
        *count -= 1;
        if *count > 0 {
            return Ok(Value::Int(1));
        }
        self.counts.remove(&name);
        self.bytes = self.bytes.saturating_sub(LOCK_BYTES + 2 * name.len());
        let given = match &mut self.taken {
            // With the last one goes everything that could be lost.
            Some(_) if self.counts.is_empty() => {
                self.taken = None;
                Ok(())
            }
            Some(taken) => taken.give(&name).await,
            None => Ok(()),
        };
        given.map_err(|error| self.failed(error))?;
        Ok(Value::Int(1))
    }

    async fn owner(&mut self, name: &str) -> Result<Option<u64>, NodeError> {
        let source = self.source.as_ref().ok_or_else(no_session)?;
        if self.counts.contains_key(name) {
            return Ok(Some(source.connection_id));
        }
        source.database.name_owner(name, source.interrupt.clone()).await
    }

    /// After an error that has taken the locks with it, none is left.
    fn failed(&mut self, error: NodeError) -> NodeError {
        let keeps = matches!(
            error,
            NodeError::NameDeadlock | NodeError::Interrupted | NodeError::NoPrimary { .. } | NodeError::LockTimeout
        );
        if !keeps {
            self.release_all();
        }
        error
    }
}

fn no_session() -> NodeError {
    let message = "This version of MySQL doesn't yet support 'user-level locks here'";
    NodeError::Refused(MysqlError::new(codes::NOT_SUPPORTED_YET, message))
}
