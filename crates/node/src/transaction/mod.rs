//! Transactions: statements, savepoints, locks, commit.
//!
//! A [`Transaction`] belongs to one session and runs one call at a time. It becomes known to partitions only with its first lock or
//! write: until then there is no id, no status word and no entry anywhere, and a plain read costs nothing but the read.
//!
//! | isolation | consistent reads see | writes and locking reads see |
//! |---|---|---|
//! | READ COMMITTED | a snapshot of each statement | the newest |
//! | REPEATABLE READ | a snapshot of the first consistent read | the newest; error 1020 if it is newer than that snapshot (`snapshot_isolation`) |
//! | SERIALIZABLE | (are locking reads, of rows and ranges) | the newest |
//!
//! In an autocommit statement a plain read of one row sees its newest committed version and draws no snapshot. A statement that makes more than
//! one such read calls [`Transaction::take_snapshot`] first; scans do so themselves.
//!
//! Every write has a number that only grows. A statement is the numbers from its beginning on, a savepoint is a number, and an insert
//! into several index tables takes a number of its own, so that undoing a statement, a savepoint or half an insert is the same act.
//!
//! Whatever a call learned from others' commits raises `observed`; [`Transaction::wait_observed`] waits until that is on disk.
//! Locks and pending versions go as soon as the commit record is in the log's buffer; so what others see of this transaction may not
//! be durable yet, and they wait in their turn.
//!
//! In a cluster partitions may be led by other processes (`crate::ops`), snapshots come from the timestamp service, and commit is `crate::member::commit`. A partition
//! that the transaction has touched must stay in the view of the first touch; else what it had there has died, and the transaction fails with 1213.
//!
//! | file | what |
//! |---|---|
//! | `call` | a call to a partition, here or elsewhere |
//! | `far` | in a cluster: where partitions are led, what has been touched there |
//! | `read`, `many`, `take_many`, `write`, `change`, `insert_many`, `change_many` | the calls |
//! | `standing` | what stands where rows of REPLACE and ON DUPLICATE KEY UPDATE go |
//! | `ending` | in a cluster: the only call of a transaction, with its commit |
//! | `own` | calls to the rows of temporary tables |
//! | `foreign`, `parents`, `childless` | foreign keys: checks and cascades beside the writes; parents and children of many rows |
//! | `end` | commit and rollback |
//! | `snapshots` | the snapshots in use |

mod building;
pub(crate) mod call;
mod change;
mod change_many;
mod childless;
mod end;
mod ending;
pub(crate) mod far;
mod foreign;
mod global;
mod insert_many;
mod interrupt;
mod leaves;
mod lookup;
mod many;
mod new_references;
mod own;
mod parents;
mod read;
pub mod snapshots;
mod standing;
mod take_many;
mod write;

pub(crate) use call::{explain, name_of};
pub use change::ChangeOutcome;
pub use change_many::ChangedRow;
pub(crate) use end::{append_record, failed_append};
pub(crate) use far::not_shown;
pub use interrupt::Interrupt;
pub use lookup::{Spans, VisitSpans};
pub use standing::Standing;
pub use write::{InsertOutcome, UpdateOutcome};

use crate::database::TableHandle;
use crate::error::NodeError;
use crate::locks::metadata::{LockedTables, Mode};
use crate::node::Node;
use crate::status::TxnRecord;
use crate::table::TableInfo;
use crate::table::own::OwnRows;
use far::Far;
use rauk_kernel::{LockMode, Partition, ReadAt, TxnRef, WaitPolicy};
use rauk_types::{MysqlError, TableId, TableSchema, Timestamp};
use smallvec::SmallVec;
use snapshots::{Drawn, Held};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// How a read locks. At SERIALIZABLE (not autocommit) a plain read is turned into a shared lock.
pub type Lock = Option<(LockMode, WaitPolicy)>;

#[derive(Clone, Debug)]
pub struct TxnOptions {
    pub isolation: Isolation,
    pub read_only: bool,
    /// One statement is the whole transaction: plain reads of one partition need no snapshot.
    pub autocommit: bool,
    pub lock_wait_timeout: Duration,
    /// `innodb_snapshot_isolation`: writes to rows that changed after the snapshot fail with 1020.
    pub snapshot_isolation: bool,
    /// Foreign keys are checked, and their cascades carried out.
    pub foreign_key_checks: bool,
    /// How long it waits for a table that others have locked; `None`: as long as for a row.
    pub metadata_wait: Option<Duration>,
    /// The session's own table locks.
    pub locked: Option<Arc<LockedTables>>,
    /// Number of the session that it belongs to, for the operator's tables; 0: none.
    pub session: u64,
    /// Set by KILL; waits are woken by [`Interrupt::kill`].
    pub interrupt: Arc<Interrupt>,
}

impl Default for TxnOptions {
    /// As a MySQL session begins: REPEATABLE READ, not autocommit, 50 s.
    fn default() -> Self {
        TxnOptions {
            isolation: Isolation::RepeatableRead,
            read_only: false,
            autocommit: false,
            lock_wait_timeout: Duration::from_secs(50),
            snapshot_isolation: true,
            foreign_key_checks: true,
            metadata_wait: None,
            locked: None,
            session: 0,
            interrupt: Arc::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(pub u32);

/// A running transaction. Dropping it rolls back.
pub struct Transaction {
    pub(crate) node: Arc<Node>,
    options: TxnOptions,
    /// As partitions know it; from the first lock or write on.
    txn: Option<TxnRef>,
    record: Option<Arc<TxnRecord>>,
    snapshot: Option<Held>,
    /// [`crate::table::cache::TableCache::published`] before it was drawn.
    published: u64,
    pub(crate) observed: Timestamp,
    /// Number of the present statement's first write.
    pub(crate) statement: u32,
    /// Number of the next write.
    write_number: u32,
    tables: SmallVec<[Used; 2]>,
    /// Partitions where it has locks or writes, on a node that is alone.
    touched: SmallVec<[u16; 8]>,
    /// In a cluster: the same with who leads them, and the calls to other processes.
    far: Option<Box<Far>>,
    /// It has read rows by their keys at its snapshot in partitions that are led elsewhere.
    read_far: bool,
    sending: Sending,
    /// It is the victim of any deadlock.
    gives_way: bool,
    writes: u64,
    /// Rows that it was shown.
    reads: u64,
    /// The key that the last `Duplicate` named: the next locking read of it sees own writes of this statement as well.
    duplicate: Option<(TableId, Vec<u8>)>,
    /// Foreign keys that it has met.
    known: Option<Box<foreign::Known>>,
    /// The present statement changes rows by what it reads: at SERIALIZABLE its plain reads lock also when it is the
    /// whole transaction.
    reads_to_change: bool,
    /// Work done since the task last gave way to others of its thread.
    work: u32,
    /// Why it was rolled back before its end.
    failed: Option<NodeError>,
}

/// In a cluster: what may become of the write that comes now, if another process leads its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    AtOnce,
    /// It is sure, and may be sent with what comes next.
    Deferred,
    /// It is all that is left to do: the transaction may be committed with it.
    Ending,
    /// The transaction was committed with its only call: its status says when.
    Ended,
}

impl Sending {
    /// What is sure may wait.
    fn of_sure(is_sure: bool) -> Sending {
        if is_sure { Sending::Deferred } else { Sending::AtOnce }
    }
}

const NOT_LOCKED_TO_WRITE: u16 = 1099;

/// Error 1099.
fn not_locked_to_write(table: &str) -> NodeError {
    let message = format!("Table '{table}' was locked with a READ lock and can't be updated");
    NodeError::Refused(MysqlError::new(NOT_LOCKED_TO_WRITE, message))
}

/// A table that the transaction uses.
struct Used {
    info: Arc<TableInfo>,
    /// Whether it shares the metadata lock; a DDL that fills a table, or a session that has locked it, has it already.
    shared: bool,
    /// Whether it may be written: it is counted among the writers, or the table is locked for that.
    writes: bool,
}

/// What a call sees and is refused for.
#[derive(Clone, Copy)]
pub(crate) struct View {
    pub own_before: u32,
    pub at: ReadAt,
    pub conflict_after: Option<Timestamp>,
}

impl Transaction {
    pub(crate) fn new(node: Arc<Node>, options: TxnOptions) -> Transaction {
        Transaction {
            node,
            options,
            txn: None,
            record: None,
            snapshot: None,
            published: 0,
            observed: Timestamp::ZERO,
            statement: 1,
            write_number: 1,
            tables: SmallVec::new(),
            touched: SmallVec::new(),
            far: None,
            read_far: false,
            sending: Sending::AtOnce,
            gives_way: false,
            writes: 0,
            reads: 0,
            duplicate: None,
            known: None,
            reads_to_change: false,
            work: 0,
            failed: None,
        }
    }

    /// Counts rows that it was shown of a table: by an index, or by none.
    #[inline]
    pub(crate) fn count_reads(&mut self, table: &TableInfo, index: Option<rauk_types::IndexId>, rows: u64) {
        if rows > 0 {
            self.reads += rows;
            table.shared.io().read(self.options.session, index, rows);
        }
    }

    /// Rows that it was shown since it began.
    pub fn rows_read(&self) -> u64 {
        self.reads
    }

    /// As partitions know it.
    pub(crate) fn id(&self) -> Option<rauk_types::TxnId> {
        self.txn.as_ref().map(|txn| txn.id)
    }

    /// In a cluster: the partitions where it has something, and in which views.
    pub(crate) fn places(&self) -> Option<Vec<(u16, rauk_types::View)>> {
        self.far.as_ref().map(|far| far.views().collect())
    }

    pub fn options(&self) -> &TxnOptions {
        &self.options
    }

    /// Begins a statement: own writes before it are visible to it, at READ COMMITTED a new snapshot will be drawn.
    pub fn begin_statement(&mut self) {
        self.write_number += 1;
        self.statement = self.write_number;
        self.duplicate = None;
        self.reads_to_change = false;
        if self.options.isolation == Isolation::ReadCommitted {
            self.release_snapshot();
        }
    }

    /// The present statement changes rows by what it reads of others. At SERIALIZABLE its plain reads lock from here on,
    /// also when the statement is the whole transaction.
    pub fn read_to_change(&mut self) {
        self.reads_to_change = true;
    }

    /// Whether plain reads lock what they read, and so see the newest rows.
    pub fn locks_plain_reads(&self) -> bool {
        self.options.isolation == Isolation::Serializable && (!self.options.autocommit || self.reads_to_change)
    }

    /// Whether other processes lead partitions of the table.
    pub fn reads_elsewhere(&self, table: &TableHandle) -> bool {
        let Some(cluster) = self.node.cluster().filter(|_| table.info().own.is_none()) else { return false };
        let led_here = |partition| cluster.place(partition).is_some_and(|place| place.primary == cluster.me());
        !self.node.partitions_of(table.info()).all(led_here)
    }

    /// Whether plain reads see a snapshot that is drawn already.
    pub fn has_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Gives up the snapshot: for a statement that drew it itself and begins again.
    pub fn give_up_snapshot(&mut self) {
        self.release_snapshot();
    }

    /// Begins the next step of a statement: what it wrote before becomes visible to it, its snapshot stays. [`Transaction::rollback_statement`] undoes the step only.
    pub fn begin_step(&mut self) {
        self.write_number += 1;
        self.statement = self.write_number;
        self.duplicate = None;
    }

    /// Who may interrupt from now on.
    pub fn set_interrupt(&mut self, interrupt: Arc<Interrupt>) {
        self.options.interrupt = interrupt;
    }

    /// How long waits for rows may last from now on.
    pub fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.options.lock_wait_timeout = timeout;
    }

    /// The newest commit time that a call has learned from.
    pub fn observed(&self) -> Timestamp {
        self.observed
    }

    /// A reader beside this transaction: on its snapshot, under its tables' definitions. Only for those that have not written and do not lock what they read.
    pub(crate) async fn fork_reader(&mut self) -> Result<Transaction, NodeError> {
        debug_assert!(self.txn.is_none(), "own writes and locks are not shared");
        self.take_snapshot().await?;
        let mut reader = Transaction::new(self.node.clone(), self.options.clone());
        reader.published = self.published;
        reader.snapshot = self.snapshot.as_ref().map(|snapshot| snapshot.share(&self.node));
        reader.observed = self.observed;
        for used in self.tables.iter().filter(|t| t.shared) {
            used.info.shared.lock.share_more();
            reader.tables.push(Used { info: used.info.clone(), shared: true, writes: false });
        }
        for used in self.tables.iter().filter(|t| !t.shared) {
            reader.tables.push(Used { info: used.info.clone(), shared: false, writes: false });
        }
        Ok(reader)
    }

    /// Undoes what the present statement wrote (its locks stay) after an error that does not end the transaction.
    pub fn rollback_statement(&mut self) {
        self.undo_to(self.statement);
    }

    pub fn savepoint(&mut self) -> Savepoint {
        self.write_number += 1;
        Savepoint(self.write_number)
    }

    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        self.undo_to(savepoint.0);
    }

    /// START TRANSACTION WITH CONSISTENT SNAPSHOT: nothing that is committed after this call is in the snapshot, in no
    /// partition. (In a cluster, a snapshot by itself may come to show later commits in partitions that the transaction
    /// has not read yet.)
    pub async fn take_consistent_snapshot(&mut self) -> Result<(), NodeError> {
        self.take_snapshot().await?;
        match self.snapshot.as_ref().map(Held::time) {
            Some(time) if self.node.cluster().is_some() => self.confirm_snapshot(time).await,
            _ => Ok(()),
        }
    }

    /// The beginning of a statement that makes more than one plain read. Only in a cluster it waits, and can fail.
    pub async fn take_snapshot(&mut self) -> Result<(), NodeError> {
        if self.snapshot.is_some() {
            return Ok(());
        }
        let published = self.node.tables.published();
        let drawn = match self.node.cluster() {
            None => Held::Here(self.node.draw_snapshot()),
            Some(cluster) => Held::Cluster(Arc::new(Drawn::new(cluster.clone(), cluster.draw_snapshot().await?))),
        };
        (self.snapshot, self.published) = (Some(drawn), published);
        Ok(())
    }

    /// Waits until everything that this transaction has read is durable: before any answer, errors included.
    pub async fn wait_observed(&mut self) -> Result<(), NodeError> {
        self.node.wait_durable(self.observed).await
    }

    /// Whether it wrote anything.
    pub fn has_writes(&self) -> bool {
        self.writes > 0
    }

    /// Takes the table's metadata lock until the transaction ends. `StaleSchema`: look it up and bind again.
    pub async fn use_table(&mut self, table: &TableHandle) -> Result<(), NodeError> {
        if let Some(result) = self.use_table_now(table) {
            return result;
        }
        let info = table.info();
        let interrupt = Some(&*self.options.interrupt);
        info.shared.lock.share(&*self.node.runtime, self.metadata_wait(), interrupt).await?;
        self.shared(info)
    }

    /// The same for a table that will be written.
    pub async fn use_table_to_write(&mut self, table: &TableHandle) -> Result<(), NodeError> {
        self.use_table(table).await?;
        if self.may_write(table.info())? {
            return Ok(());
        }
        let interrupt = Some(&*self.options.interrupt);
        let lock = &table.info().shared.lock;
        lock.write(&*self.node.runtime, self.metadata_wait(), interrupt).await?;
        if let Some(used) = self.tables.iter_mut().find(|used| Arc::ptr_eq(&used.info, table.info())) {
            used.writes = true;
        }
        Ok(())
    }

    fn metadata_wait(&self) -> Duration {
        self.options.metadata_wait.unwrap_or(self.options.lock_wait_timeout)
    }

    /// Whether a table that is used can be written at once; `false`: others keep writers out. Error 1099 when the session
    /// has locked it against its own writes, too.
    pub(super) fn may_write(&mut self, info: &TableInfo) -> Result<bool, NodeError> {
        let of = |used: &&mut Used| used.info.schema.id == info.schema.id;
        // A table that belongs to another one, or to the session alone, is locked with it.
        let Some(used) = self.tables.iter_mut().find(of) else { return Ok(true) };
        if !used.writes {
            if !used.shared {
                return Err(not_locked_to_write(&info.schema.name));
            }
            used.writes = used.info.shared.lock.try_write();
        }
        Ok(used.writes)
    }

    /// [`Self::use_table`] where the lock is free. `None`: it has to be waited for.
    pub fn use_table_now(&mut self, table: &TableHandle) -> Option<Result<(), NodeError>> {
        let info = table.info();
        if self.tables.iter().any(|t| Arc::ptr_eq(&t.info, info)) {
            return Some(Ok(()));
        }
        if let Some(mode) = self.options.locked.as_ref().and_then(|locked| locked.mode_of(info.schema.id)) {
            if !info.shared.is_current(info.schema.version) {
                return Some(Err(NodeError::StaleSchema));
            }
            self.tables.push(Used { info: info.clone(), shared: false, writes: mode == Mode::Alone });
            return Some(self.check_running());
        }
        if let Err(error) = self.check_running() {
            return Some(Err(error));
        }
        if self.tables.iter().any(|t| t.info.schema.id == info.schema.id) {
            // It holds the lock through another version of the definition, which is then the current one.
            return Some(Err(NodeError::StaleSchema));
        }
        info.shared.lock.try_share().then(|| self.shared(info))
    }

    /// The lock of a table is held now.
    fn shared(&mut self, info: &Arc<TableInfo>) -> Result<(), NodeError> {
        let shared = &info.shared;
        if !shared.is_current(info.schema.version) {
            shared.lock.unshare();
            return Err(NodeError::StaleSchema);
        }
        self.tables.push(Used { info: info.clone(), shared: true, writes: false });
        Ok(())
    }

    /// The session gives its table locks back while this transaction goes on, which needs locks of its own from here on.
    pub fn leave_locked(&mut self) {
        self.options.locked = None;
        for used in self.tables.iter_mut().filter(|used| !used.shared) {
            used.info.shared.lock.share_more();
            (used.shared, used.writes) = (true, false);
        }
    }

    /// From here on it is the victim of any deadlock that it is in.
    pub(crate) fn give_way(&mut self) {
        self.gives_way = true;
    }

    /// What it loses as the victim of a deadlock.
    fn weight(&self) -> u64 {
        if self.gives_way { 0 } else { self.writes + 1 }
    }

    /// Uses a table that the caller holds alone.
    pub(crate) fn borrow_table(&mut self, info: Arc<TableInfo>) {
        self.tables.push(Used { info, shared: false, writes: true });
    }

    pub(crate) fn check_running(&self) -> Result<(), NodeError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => self.node.check_running(),
        }
    }

    /// Whether something that it has undone here is not all undone yet: a call waits for that.
    #[inline]
    pub(crate) fn is_undone_in(&self, p: &Partition) -> bool {
        p.has_ends() && self.txn.as_ref().is_some_and(|txn| p.is_under_way(txn.id))
    }

    /// The rows of temporary tables that it uses.
    fn own_rows(&self) -> impl Iterator<Item = &Arc<OwnRows>> {
        self.tables.iter().filter_map(|used| used.info.own.as_ref())
    }

    fn release_snapshot(&mut self) {
        if let Some(snapshot) = self.snapshot.take() {
            snapshot.release(&self.node);
        }
    }

    /// Whether a plain read must lock what it reads.
    pub(crate) fn effective_lock(&self, lock: Lock) -> Lock {
        match lock {
            None if self.locks_plain_reads() => Some((LockMode::Shared, WaitPolicy::Wait)),
            _ => lock,
        }
    }

    pub(crate) fn locks_ranges(&self) -> bool {
        self.options.isolation == Isolation::Serializable
    }

    /// For plain reads of a table: of `one` row, or of more. Error 1412 where the table is newer than the snapshot.
    #[inline]
    pub(crate) async fn read_view(&mut self, table: &TableInfo, one: bool) -> Result<View, NodeError> {
        if table.own.is_none() && self.needs_snapshot(one) {
            self.take_snapshot().await?;
        }
        self.plain_view(table)
    }

    /// Whether plain reads, of `one` row or of more, need a snapshot that is not drawn yet.
    #[inline]
    pub(crate) fn needs_snapshot(&self, one: bool) -> bool {
        self.snapshot.is_none() && !(one && self.options.autocommit)
    }

    /// For plain reads of a table, with the snapshot that is there. Error 1412 where the table is newer.
    #[inline]
    pub(crate) fn plain_view(&self, table: &TableInfo) -> Result<View, NodeError> {
        let at = match &self.snapshot {
            Some(_) if table.shared.is_newer_than(self.published) => return Err(NodeError::NewerThanSnapshot),
            Some(held) => ReadAt::Snapshot(held.time()),
            None => ReadAt::Newest,
        };
        Ok(View { own_before: self.statement, at, conflict_after: None })
    }

    /// For writes and locking reads.
    pub(crate) fn newest_view(&self, own_before: u32) -> View {
        let checked = self.options.snapshot_isolation && self.options.isolation == Isolation::RepeatableRead;
        let conflict_after = if checked { self.snapshot.as_ref().map(Held::time) } else { None };
        View { own_before, at: ReadAt::Newest, conflict_after }
    }

    /// Undoes all writes with this number and above: at once a slice in each partition, the rest while others pass.
    /// Its next call there, or its commit, comes behind that.
    fn undo_to(&mut self, number: u32) {
        self.forget_parents();
        let Some(txn) = &self.txn else { return };
        self.own_rows().for_each(|rows| rows.rollback_to(txn.id, number));
        // Also without a finished write: one that was refused halfway has left a part.
        if self.failed.is_none() {
            let id = txn.id;
            for &partition in &self.touched {
                self.node.detach(partition, move |p| p.rollback_to(id, number));
            }
            if let (Some(_), Some(record)) = (self.node.cluster(), &self.record) {
                for touch in record.touches.list() {
                    self.node.detach(touch.partition, move |p| p.rollback_to(id, number));
                }
            }
            if let Some(far) = &mut self.far {
                far.undo_to(number);
            }
        }
    }
}

/// Whether a `TableSchema` is the one behind a handle: a helper for plan caches.
pub fn same_definition(a: &TableSchema, b: &TableSchema) -> bool {
    a.id == b.id && a.version == b.version
}
