//! Filling tables that nobody knows yet: the index table of a new unique index, or a whole table in a new form.
//!
//! Rows go in through ordinary transactions of [`BATCH`] rows, so they are in the redo log and in checkpoints like all others, under the ids that the job
//! has reserved. The base table is held alone meanwhile, so it is read without locks.

use super::progress::RowWork;
use crate::commit::group::yield_once;
use crate::error::NodeError;
use crate::locks::metadata::DdlWait;
use crate::node::Node;
use crate::scan::{ScanBatch, ScanCursor, ScanSpec};
use crate::table::building::{Building as KeptByWriters, notes_schema};
use crate::table::{TableInfo, TableShared, UniqueIndex};
use crate::transaction::{Isolation, Transaction, TxnOptions};
use rauk_log::fault;
use rauk_manage::{Command, Job, JobStep};
use rauk_types::error::codes;
use rauk_types::{DataType, IndexSchema, MysqlError, RowView, TableId, TableSchema, Value, format};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Rows in one transaction.
pub(super) const BATCH: usize = 500;

/// A job that is under way. Dropped before [`Building::end`], it is undone.
pub(super) struct Building {
    node: Arc<Node>,
    pub job: Job,
    /// Tables that it has made in the partitions.
    made: Vec<TableId>,
    /// What an altered table goes back to.
    restore: Option<Arc<TableSchema>>,
    /// What writers see to meanwhile, at these tables; all have one table of notes.
    kept: Vec<(Arc<TableShared>, Arc<KeptByWriters>)>,
    ended: bool,
}

impl Building {
    /// Starts a job that reserves `builds` table ids.
    pub fn start(node: &Arc<Node>, what: String, table: TableId, builds: usize) -> Result<Building, NodeError> {
        let applied = node.change_catalog(&Command::StartJob { what, table, builds: builds as u32 })?;
        let job = *applied.job.expect("a started job is told");
        Ok(Building { node: node.clone(), job, made: Vec::new(), restore: None, kept: Vec::new(), ended: false })
    }

    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Makes tables in the partitions, known by their ids only. The first is the base table if `with_base`.
    pub fn make(&mut self, schema: &Arc<TableSchema>) {
        self.made.push(schema.id);
        self.made.extend(schema.partitioning.iter().flat_map(|partitioning| partitioning.tables()));
        self.node.create_in_partitions(schema);
    }

    /// Gives partitions a new definition of a table, to be taken back if the job fails.
    pub fn alter(&mut self, old: &Arc<TableSchema>, new: &Arc<TableSchema>) {
        self.restore = Some(old.clone());
        self.node.alter_in_partitions(new);
    }

    /// From here on every writer of a table sees to what is being built. The table is held alone, and is so again when
    /// this ends.
    pub fn keep(&mut self, shared: &Arc<TableShared>, building: Arc<KeptByWriters>) {
        shared.building.set(Some(building.clone()));
        self.kept.push((shared.clone(), building));
    }

    /// From here on every writer of these tables, which have rows of `old`, notes what it writes, in a table of this id.
    pub fn keep_copied(&mut self, old: &TableInfo, tables: &[Arc<TableInfo>], id: TableId) -> Arc<KeptByWriters> {
        let schema = Arc::new(notes_schema(&old.schema, id));
        self.make(&schema);
        let notes = self.node.info_of_new(schema, &[]);
        self.node.tables.publish_hidden(notes.clone());
        let kept = KeptByWriters::of_copy(&old.schema, notes);
        tables.iter().for_each(|table| self.keep(&table.shared, kept.clone()));
        kept
    }

    /// Unless it has ended well, its tables are not to go while users may be at them.
    pub fn is_kept(&self) -> bool {
        !self.ended && !self.kept.is_empty()
    }

    /// Writers need not see to it any more.
    pub fn give_up(&self) {
        for (_, building) in &self.kept {
            building.given_up.store(true, Ordering::Relaxed);
        }
    }

    pub fn step(&mut self, step: JobStep) -> Result<(), NodeError> {
        fault::point("node.ddl.step").map_err(fault_error)?;
        self.node.change_catalog(&Command::JobStep { job: self.job.id, step })?;
        self.job.step = step;
        Ok(())
    }

    /// Makes all that was filled durable.
    pub async fn filled(&mut self) -> Result<(), NodeError> {
        self.node.group.flush_all().await?;
        self.step(JobStep::Filled)
    }

    /// Puts what was filled in place with one command.
    pub fn switch(
        &mut self,
        drop: Vec<TableId>,
        create: Vec<Arc<TableSchema>>,
        replace: Vec<Arc<TableSchema>>,
    ) -> Result<(), NodeError> {
        fault::point("node.ddl.before_switch").map_err(fault_error)?;
        self.node.change_catalog(&Command::Switch { job: Some(self.job.id), drop, create, replace })?;
        self.ended = true;
        // Done and durable: only a crash can still happen here.
        let _ = fault::point("node.ddl.after_switch");
        Ok(())
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        self.kept.iter().for_each(|(shared, _)| shared.building.set(None));
        if let Some((_, building)) = self.kept.first() {
            let notes = building.notes.schema.id;
            self.node.tables.retract(notes);
            self.node.drop_in_partitions(notes);
        }
        if self.ended {
            return;
        }
        for &id in &self.made {
            self.node.tables.retract(id);
            self.node.drop_in_partitions(id);
        }
        if let Some(old) = &self.restore {
            self.node.alter_in_partitions(old);
        }
        if let Err(error) = self.node.change_catalog(&Command::AbortJob { job: self.job.id }) {
            // It stays in the catalog without effect until the next start takes it away.
            tracing::warn!(%error, what = self.job.what, "the end of a failed DDL job could not be written down");
        }
    }
}

/// What a fault point gave, as an error that a client can get.
pub(super) fn fault_error(error: std::io::Error) -> NodeError {
    NodeError::DiskFull(error.to_string())
}

/// Between looks whether a test still holds a build.
const HELD: Duration = Duration::from_millis(5);

/// Where a build may fail in a test, or is held until the test lets it go on.
pub(super) async fn fault_point(name: &'static str, node: &Node) -> Result<(), NodeError> {
    fault::point(name).map_err(fault_error)?;
    while fault::holds(name) {
        node.check_running()?;
        node.runtime.sleep(HELD).await;
    }
    Ok(())
}

fn internal(node: &Arc<Node>, table: &Arc<TableInfo>) -> Transaction {
    // The table is held alone, so locks are waited for only where transactions of the dead are to be decided; and a primary that does not answer must not be asked for ever.
    let lock_wait_timeout = if node.cluster().is_some() { ONE_CALL } else { Duration::from_secs(3600) };
    waiting(node, table, lock_wait_timeout)
}

/// A transaction beside those of users: it waits for a lock at most for `lock_wait_timeout`, and is the victim of any
/// deadlock.
pub(super) fn giving_way(node: &Arc<Node>, table: &Arc<TableInfo>, lock_wait_timeout: Duration) -> Transaction {
    let mut txn = waiting(node, table, lock_wait_timeout);
    txn.give_way();
    txn
}

fn waiting(node: &Arc<Node>, table: &Arc<TableInfo>, lock_wait_timeout: Duration) -> Transaction {
    let options = TxnOptions {
        isolation: Isolation::ReadCommitted,
        snapshot_isolation: false,
        foreign_key_checks: false,
        lock_wait_timeout,
        ..TxnOptions::default()
    };
    let mut txn = Transaction::new(node.clone(), options);
    txn.borrow_table(table.clone());
    txn
}

/// Reads a whole table, batch by batch.
pub(super) struct Reader {
    /// Each batch is of its own time, so that no old versions are kept for all of it.
    beside_writers: bool,
    txn: Transaction,
    cursor: ScanCursor,
    schema: Arc<TableSchema>,
    batch: ScanBatch,
}

impl Reader {
    /// Of a table that is held alone. Rows are given as `schema` says, a definition of the table that knows the layouts
    /// of all its rows.
    pub fn new(node: &Arc<Node>, table: &Arc<TableInfo>, schema: &Arc<TableSchema>) -> Reader {
        Reader::of(node, table, schema, false, None)
    }

    /// Of a table that is used meanwhile: gives every row that is there from the first batch to the last. In a cluster
    /// all batches are of one time, since a scan goes on only where it began.
    pub fn beside_writers(node: &Arc<Node>, table: &Arc<TableInfo>, schema: &Arc<TableSchema>) -> Reader {
        Reader::of(node, table, schema, true, None)
    }

    /// One or the other, of all partitions or one.
    pub fn of(
        node: &Arc<Node>,
        table: &Arc<TableInfo>,
        schema: &Arc<TableSchema>,
        beside_writers: bool,
        partition: Option<u16>,
    ) -> Reader {
        let spec = ScanSpec { partition, ..ScanSpec::default() };
        Reader {
            beside_writers: beside_writers && node.cluster().is_none(),
            txn: internal(node, table),
            cursor: ScanCursor::over(table.clone(), spec),
            schema: schema.clone(),
            batch: ScanBatch::default(),
        }
    }

    /// `false` at the end.
    pub async fn next(&mut self) -> Result<bool, NodeError> {
        if self.beside_writers {
            self.txn.begin_statement();
        }
        self.cursor.next_batch(&mut self.txn, BATCH, &mut |_| true, &mut self.batch).await?;
        Ok(!self.batch.is_empty())
    }

    pub fn rows(&self) -> impl Iterator<Item = RowView<'_>> {
        (0..self.batch.len()).map(|i| {
            let (layout, bytes) = self.batch.raw(i);
            RowView::new(&self.schema, layout, bytes)
        })
    }
}

/// A table in a partition.
pub(super) type Part = (Arc<TableInfo>, u16);

/// All parts of these tables, partition by partition.
pub(super) fn parts_of(node: &Node, tables: &[Arc<TableInfo>]) -> Vec<Part> {
    let mut parts = Vec::new();
    for table in tables {
        parts.extend(node.partitions_of(table).map(|partition| (table.clone(), partition)));
    }
    parts.sort_by_key(|(_, partition)| *partition);
    parts
}

/// Enters all rows of `table` into the index tables of new unique indexes; `schema` is the definition that has these.
pub(super) async fn fill_uniques(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    schema: &Arc<TableSchema>,
    new: &[&UniqueIndex],
    patience: &mut Patience,
    wait: DdlWait<'_>,
) -> Result<(), NodeError> {
    wait.begins(RowWork::EnterKeys, node.rows_of(table));
    let primary = schema.key_def(schema.primary());
    let mut reader = Reader::new(node, table, schema);
    let mut entries: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    while reader.next().await? {
        for unique in new {
            entries.clear();
            for row in reader.rows() {
                let mut base = Vec::new();
                primary.encode_row(&row, &mut base);
                unique.keys.for_each_unique(&row, |key| entries.push((key.to_vec(), base.clone())));
            }
            let refused = loop {
                match enter(node, unique, &entries).await {
                    Ok(refused) => break refused,
                    Err(error) => patience.again(node, error).await?,
                }
            };
            if let Some((_, base)) = refused.map(|at| &entries[at]) {
                let row = reader.rows().find(|row| {
                    let mut bytes = Vec::new();
                    primary.encode_row(row, &mut bytes);
                    bytes == *base
                });
                let index = schema.index(unique.id).expect("it is being added");
                let row = row.expect("the row was just read");
                return Err(duplicate_entry(schema, index, |column| row.get(column).to_owned()));
            }
        }
        patience.went_on();
        wait.has_done(reader.rows().count() as u64);
        yield_once().await;
    }
    Ok(())
}

/// Entries (index key, base row's key) go into an index table, all in one transaction; gives the first that does not fit, and then none is in.
async fn enter(
    node: &Arc<Node>,
    unique: &UniqueIndex,
    entries: &[(Vec<u8>, Vec<u8>)],
) -> Result<Option<usize>, NodeError> {
    let mut txn = internal(node, &unique.entries);
    if txn.enter_together(unique, entries.iter().map(|(key, base)| (key.clone(), &base[..]))).await? {
        txn.commit_without_waiting().await?;
        return Ok(None);
    }
    // One by one, to find which; what is entered is taken back first.
    drop(txn);
    let mut txn = internal(node, &unique.entries);
    for (at, (key, base)) in entries.iter().enumerate() {
        if !txn.add_entry(unique, key, base).await? {
            return Ok(Some(at));
        }
    }
    txn.commit_without_waiting().await?;
    Ok(None)
}

/// How long transactions of a build are tried again without one that succeeds, and how often.
const PATIENCE: Duration = Duration::from_secs(15);
const AGAIN: Duration = Duration::from_millis(50);
/// In a cluster, the longest wait for one call of a transaction of a build.
const ONE_CALL: Duration = Duration::from_secs(5);

/// Whether a transaction was rolled back because of what passes: in a cluster, partitions change their primaries.
pub(super) fn passes(error: &NodeError) -> bool {
    matches!(
        error,
        NodeError::Moved { .. }
            | NodeError::NoPrimary { .. }
            | NodeError::Deadlock
            | NodeError::LockTimeout
            | NodeError::Unavailable(_)
    )
}

/// For trying transactions again.
#[derive(Default)]
pub(crate) struct Patience {
    /// The first failure since something succeeded.
    since: Option<Duration>,
    /// Beside users: how long one may be in the way.
    longer: Duration,
}

impl Patience {
    /// As long as a statement waits for those who use its table.
    pub fn with_users(wait: Duration) -> Patience {
        Patience { since: None, longer: wait }
    }

    /// The same for somebody else.
    pub fn another(&self) -> Patience {
        Patience { since: None, longer: self.longer }
    }

    pub fn went_on(&mut self) {
        self.since = None;
    }

    /// Whether nothing has succeeded for long.
    pub fn is_over(&self, node: &Node) -> bool {
        self.since.is_some_and(|since| node.runtime.now().saturating_sub(since) >= PATIENCE.max(self.longer))
    }

    /// Waits a little; gives back an error that does not pass, or has lasted.
    pub async fn again(&mut self, node: &Node, error: NodeError) -> Result<(), NodeError> {
        node.check_running()?;
        self.since.get_or_insert(node.runtime.now());
        if !passes(&error) || self.is_over(node) {
            return Err(error);
        }
        node.runtime.sleep(AGAIN).await;
        Ok(())
    }
}

/// MySQL's 1062, with the values of the index in the row that does not fit.
pub(crate) fn duplicate_entry(table: &TableSchema, index: &IndexSchema, value: impl Fn(usize) -> Value) -> NodeError {
    let mut text = Vec::new();
    for (i, part) in index.parts.iter().enumerate() {
        if i > 0 {
            text.push(b'-');
        }
        let ty: &DataType = &table.columns[part.column].ty;
        let value = value(part.column);
        match &value {
            Value::Null => text.extend_from_slice(b"NULL"),
            value => format::append_text(value.as_ref(), ty, &mut text),
        }
    }
    let entry = String::from_utf8_lossy(&text);
    let message = format!("Duplicate entry '{entry}' for key '{}.{}'", table.name, index.name);
    NodeError::Refused(MysqlError::new(codes::DUP_ENTRY, message))
}

/// A transaction that fills `table`, which is being built.
pub(super) fn filling(node: &Arc<Node>, table: &Arc<TableInfo>) -> Transaction {
    internal(node, table)
}

/// Rows after which a filling transaction is committed.
pub(super) const FILL_ROWS: usize = BATCH;
