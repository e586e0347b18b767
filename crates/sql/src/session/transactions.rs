//! Transactions of a session: BEGIN, COMMIT, ROLLBACK, savepoints, and the commits that other statements imply.

use super::session::Session;
use super::tracking::Tracked;
use rauk_node::{Isolation, Savepoint, Transaction, TxnOptions};
use rauk_types::MysqlError;
use rauk_types::error::codes;
use rauk_types::result::Completion;

/// The transaction that is open between statements.
pub(crate) struct OpenTransaction {
    pub transaction: Transaction,
    pub read_only: bool,
    pub isolation: Isolation,
    /// What session tracking tells of it.
    pub tracked: Tracked,
    /// Names as written, with where they lead; compared without case.
    pub savepoints: Vec<(String, Savepoint)>,
}

/// SET TRANSACTION without SESSION or GLOBAL: for the next transaction only.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextTransaction {
    pub isolation: Option<Isolation>,
    pub read_only: Option<bool>,
}

/// Error 1305.
fn no_savepoint(name: &str) -> MysqlError {
    MysqlError::new(codes::SP_DOES_NOT_EXIST, format!("SAVEPOINT {name} does not exist"))
}

impl Session {
    /// A new transaction of the node with the session's characteristics, or with those of SET TRANSACTION, which it uses up.
    pub(crate) fn new_transaction(&mut self, autocommit: bool, read_only: Option<bool>) -> OpenTransaction {
        let next = std::mem::take(&mut self.next);
        let isolation = next.isolation.unwrap_or(self.settings.isolation);
        let read_only = read_only.or(next.read_only).unwrap_or(self.settings.read_only);
        let transaction = self.engine.database.begin(TxnOptions {
            isolation,
            read_only,
            autocommit,
            lock_wait_timeout: self.settings.lock_wait_timeout,
            snapshot_isolation: self.settings.snapshot_isolation,
            foreign_key_checks: self.settings.foreign_key_checks,
            metadata_wait: Some(self.settings.metadata_wait),
            locked: self.locked_tables(),
            session: self.context.connection_id,
            interrupt: self.process.interrupt.clone(),
        });
        let tracked = Tracked { given: next, ..Tracked::default() };
        OpenTransaction { transaction, read_only, isolation, tracked, savepoints: Vec::new() }
    }

    /// BEGIN and START TRANSACTION: commits what is open first.
    pub(crate) async fn begin(
        &mut self,
        read_only: Option<bool>,
        consistent_snapshot: bool,
    ) -> Result<Completion, MysqlError> {
        self.commit_open().await?;
        self.locked = None;
        let mut open = self.new_transaction(false, read_only);
        open.tracked.explicit = true;
        open.tracked.consistent_snapshot = consistent_snapshot;
        open.tracked.given.read_only = read_only.or(open.tracked.given.read_only);
        if consistent_snapshot && open.isolation != Isolation::ReadCommitted {
            open.transaction.take_consistent_snapshot().await?;
        }
        self.open = Some(open);
        Ok(Completion::default())
    }

    pub(crate) async fn commit_open(&mut self) -> Result<(), MysqlError> {
        match self.open.take() {
            Some(open) if open.transaction.has_writes() && self.may_change().is_err() => {
                open.transaction.rollback();
                self.may_change()
            }
            Some(open) => Ok(open.transaction.commit().await?),
            None => Ok(()),
        }
    }

    pub(crate) async fn commit(
        &mut self,
        chain: Option<bool>,
        release: Option<bool>,
    ) -> Result<Completion, MysqlError> {
        let chained = self.chained(chain);
        self.commit_open().await?;
        self.after_end(chained, release);
        Ok(Completion::default())
    }

    pub(crate) async fn rollback(
        &mut self,
        chain: Option<bool>,
        release: Option<bool>,
    ) -> Result<Completion, MysqlError> {
        let chained = self.chained(chain);
        if let Some(mut open) = self.open.take() {
            // What it has read may already have shaped what the client does next.
            let observed = open.transaction.wait_observed().await;
            open.transaction.rollback();
            observed?;
        }
        self.after_end(chained, release);
        Ok(Completion::default())
    }

    /// The characteristics of the transaction that follows at once: those of the one that ends.
    fn chained(&self, chain: Option<bool>) -> Option<NextTransaction> {
        if !chain.unwrap_or(self.settings.completion_chain) {
            return None;
        }
        let same = |open: &OpenTransaction| NextTransaction {
            isolation: Some(open.isolation),
            read_only: Some(open.read_only),
        };
        Some(self.open.as_ref().map_or_else(NextTransaction::default, same))
    }

    fn after_end(&mut self, chained: Option<NextTransaction>, release: Option<bool>) {
        // What SET TRANSACTION said is over with COMMIT and ROLLBACK, be a transaction open or not.
        self.next = chained.unwrap_or_default();
        if chained.is_some() {
            let mut open = self.new_transaction(false, None);
            open.tracked.explicit = true;
            self.open = Some(open);
        }
        if release.unwrap_or(self.settings.completion_release) {
            self.process.kill_connection();
        }
    }

    /// Before DDL and the other statements that end a transaction.
    pub(crate) async fn commit_implicitly(&mut self) -> Result<(), MysqlError> {
        self.next = NextTransaction::default();
        self.commit_open().await
    }

    /// Outside of a transaction (autocommit) a savepoint is set and gone with its statement.
    pub(crate) fn savepoint(&mut self, name: &str) -> Result<Completion, MysqlError> {
        if self.open.is_none() && !self.settings.autocommit {
            self.open = Some(self.new_transaction(false, None));
        }
        if let Some(open) = &mut self.open {
            open.savepoints.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            let savepoint = open.transaction.savepoint();
            open.savepoints.push((name.to_string(), savepoint));
        }
        Ok(Completion::default())
    }

    pub(crate) fn rollback_to(&mut self, name: &str) -> Result<Completion, MysqlError> {
        let open = self.open.as_mut().ok_or_else(|| no_savepoint(name))?;
        let at = open.savepoints.iter().position(|(known, _)| known.eq_ignore_ascii_case(name));
        let at = at.ok_or_else(|| no_savepoint(name))?;
        open.transaction.rollback_to(open.savepoints[at].1);
        open.savepoints.truncate(at + 1);
        Ok(Completion::default())
    }

    pub(crate) fn release_savepoint(&mut self, name: &str) -> Result<Completion, MysqlError> {
        let open = self.open.as_mut().ok_or_else(|| no_savepoint(name))?;
        let at = open.savepoints.iter().position(|(known, _)| known.eq_ignore_ascii_case(name));
        let at = at.ok_or_else(|| no_savepoint(name))?;
        // Those set after it go with it.
        open.savepoints.truncate(at);
        Ok(Completion::default())
    }
}

/// Whether an error has ended the whole transaction, not only its statement: a deadlock's victim, and a snapshot that cannot be kept.
pub(crate) fn ends_transaction(error: &MysqlError) -> bool {
    matches!(error.code, codes::LOCK_DEADLOCK | codes::CHECKREAD)
}

/// Whether the statement should be planned again.
pub(crate) fn is_stale(error: &MysqlError) -> bool {
    error.code == codes::TABLE_DEF_CHANGED
}
