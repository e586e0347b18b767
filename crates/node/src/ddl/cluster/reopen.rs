//! Tables that a statement had alone are used while it fills an index, and then it has them alone again.
//!
//! The control plane knows the intent as open meanwhile: processes give their locks back when they hear of it, which is
//! after they have followed the job that fills the index, and other DDL is refused. Each change gives the intent
//! another number, so that what processes say of their locks is of this one.

use super::{Held, RETRY, refused, unexpected};
use crate::error::NodeError;
use crate::locks::metadata::{DdlWait, Meanwhile, Turns};
use crate::member::nothing_seen;
use futures::future::{Either, select};
use rauk_log::fault;
use rauk_manage::group::{Answer, GroupCommand, Open, Refused};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Held<'_> {
    /// Lets users in on all processes, or those that only read.
    pub(super) async fn let_users_in(&self, meanwhile: Meanwhile) -> Result<(), NodeError> {
        let open = match meanwhile {
            Meanwhile::Readers => Open::ToReaders,
            Meanwhile::All => Open::ToAll,
            Meanwhile::Nobody => unreachable!("such a statement has its tables alone for all of its time"),
        };
        self.alone.store(false, Ordering::Relaxed);
        match self.reopen(open).await? {
            true => Ok(()),
            false => Err(NodeError::LockTimeout),
        }
    }

    /// Has the tables alone again on all processes, after at most `wait`, then 1205; in turns, as they were locked
    /// first.
    pub(super) async fn have_alone_again(&self, wait: Duration) -> Result<(), NodeError> {
        let (node, cluster) = (self.place.node, self.place.cluster);
        self.alone.store(false, Ordering::Relaxed);
        let runtime = &*node.runtime;
        let start = runtime.now();
        let left = || wait.saturating_sub(runtime.now().saturating_sub(start));
        let mut turns = Turns::CLUSTER;
        loop {
            while !self.reopen(Open::No).await? {
                // A session has said LOCK TABLES ... READ.
                if left().is_zero() {
                    return Err(NodeError::LockTimeout);
                }
                runtime.sleep(RETRY.min(left())).await;
            }
            let number = self.number().expect("it has tables");
            let processes = || cluster.processes().iter().map(|m| m.process).collect();
            let locked = cluster.catalog_state().intents.wait_locked(runtime, number, processes);
            match select(pin!(locked), runtime.sleep(turns.window().min(left()))).await {
                Either::Left((true, _)) => {
                    self.alone.store(true, Ordering::Relaxed);
                    fault::point("node.ddl.cluster.locked_again").map_err(crate::ddl::build::fault_error)?;
                    return Ok(());
                }
                Either::Left((false, _)) => return Err(NodeError::LockTimeout),
                Either::Right(_) if left().is_zero() => return Err(NodeError::LockTimeout),
                Either::Right(_) => self.let_users_in(Meanwhile::All).await?,
            }
            runtime.sleep(turns.pause().min(left())).await;
            node.check_running()?;
        }
    }

    /// The same if the tables are not held alone.
    pub(super) async fn alone_again(&self, wait: DdlWait<'_>) -> Result<(), NodeError> {
        match self.alone.load(Ordering::Relaxed) {
            true => Ok(()),
            false => wait.unless_killed(self.have_alone_again(wait.limit)).await,
        }
    }

    /// The same before a job ends that has failed: what writers keep is not to go while they are at it. If they stay, they
    /// hear of it.
    pub(super) async fn alone_again_to_end(&self, wait: DdlWait<'_>) {
        let _ = self.alone_again(wait).await;
    }

    /// Opens or closes the intent; `false`: another one is in the way.
    async fn reopen(&self, open: Open) -> Result<bool, NodeError> {
        let cluster = self.place.cluster;
        let intents = &cluster.catalog_state().intents;
        let _starting = intents.starting();
        let number = self.number().expect("only what has tables is opened");
        match cluster.propose(GroupCommand::Reopen { number, open }).await.map_err(nothing_seen)? {
            Answer::Intent(number) => {
                *self.intent.lock() = Some((number, Arc::new(intents.own(number))));
                Ok(true)
            }
            Answer::Refused(Refused::Intended(_)) => Ok(false),
            Answer::Refused(why) => Err(refused(&why)),
            // The control plane has ended the intent.
            Answer::Void => Err(NodeError::LockTimeout),
            other => Err(unexpected(&other)),
        }
    }
}
