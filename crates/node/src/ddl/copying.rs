//! Rows are copied into a table in a new form, or into new leaves, while readers and writers go on.
//!
//! From the short lock on (as in [`super::online`]) every transaction that writes a row notes its primary key, in a table
//! of notes and with what it writes ([`crate::table::building`]). The model is `table_copy`.
//!
//! 1. *The pass* copies all rows, a batch at a time and without locks. What it copies may be of before a change.
//! 2. *Rounds* copy again what was noted: one transaction takes some notes away, locks their rows, takes their
//!    copies away and brings them back as the rows are now. A row that somebody has locked is left for a later round, so no
//!    writer waits for more than one such transaction, and the DDL waits for none.
//! 3. *The end*: the table is held alone again, and what is still noted is copied. Where that is much, since many wrote while
//!    the lock was waited for, users are let in once more, and another round comes first.
//!
//! *A copy is found by its row's key*: the new form has the same primary key, of columns of the same types ([`is_online`]).
//! A form with another key is filled while its table is held alone. Hidden keys stay as they are where both forms have
//! them; the new table goes on counting above all that were given out.
//!
//! *Unique keys*: a copy of before may have the key that another row has now. So a key that is taken is an error (1062) only
//! if both rows have it at one time, which is looked up under their locks; else the row is noted and copied again later. At
//! the end all noted rows are taken away before the first is brought back: then a key that is taken is another row's.
//!
//! *What is converted* is converted again with each copy. A row that cannot be converted was there when it was read, and
//! ends the statement.
//!
//! *On all cores*: the pass over many rows is the work of several threads ([`super::workers`]), each of which reads,
//! converts and writes the rows of one partition after another. Rows keep their partition unless their key changes, so
//! these threads meet in unique indexes only.

use super::build::{self, FILL_ROWS, Part, Patience, Reader, duplicate_entry, fault_point, parts_of};
use super::entering::{beside_writers, noted};
use super::pace::Pace;
use super::progress::RowWork;
use super::workers::{Keeps, Parts, Worker, Workers, is_worth_it};
use crate::commit::group::yield_once;
use crate::database::TableHandle;
use crate::error::NodeError;
use crate::locks::metadata::DdlWait;
use crate::node::Node;
use crate::table::TableInfo;
use crate::table::building::{Building as KeptByWriters, Note};
use crate::transaction::{InsertOutcome, Transaction};
use parking_lot::Mutex;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_types::{
    Column, IndexId, IndexKeys, IndexPart, IndexSchema, MysqlError, RowView, TableId, TableSchema, Value,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Turns a row of the old table, one value a column, into one of the new.
pub type Convert<'a> = dyn FnMut(&[Value]) -> Result<Vec<Value>, MysqlError> + Send + 'a;

/// The same for another thread, which converts some of the rows.
pub type OwnConvert = Box<dyn FnMut(&[Value]) -> Result<Vec<Value>, MysqlError> + Send>;

/// Makes one for each thread.
pub type Further<'a> = dyn Fn() -> OwnConvert + Send + Sync + 'a;

/// Sees a row of the old table before any row is converted.
pub type Look<'a> = dyn FnMut(&[Value]) + Send + 'a;

/// Noted rows that one transaction copies again.
const TOGETHER: usize = 64;
/// Rounds go on until one has copied no more rows than this, or there were so many rounds.
const FEW: usize = 100;
const ROUNDS: usize = 20;
/// With more notes than this users are let in once more, so often.
const MANY: usize = 2000;
const RETURNS: usize = 3;

/// Whether rows can be copied from one form into the other while users go on: the keys of rows stay as they are.
pub fn is_online(old: &TableSchema, new: &TableSchema) -> bool {
    let key = |schema: &TableSchema| -> Vec<_> {
        let part = |part: &IndexPart| {
            let Column { id, ty, generated, .. } = &schema.columns[part.column];
            (*id, *ty, generated.clone(), part.prefix, part.descending)
        };
        schema.primary().parts.iter().map(part).collect()
    };
    old.hidden_key == new.hidden_key && key(old) == key(new)
}

/// What has been put into the new table.
#[derive(Clone, Copy, Default)]
pub(crate) struct Copied {
    pub rows: u64,
    /// The highest number in the AUTO_INCREMENT column; 0 without one.
    pub highest: u64,
}

impl Copied {
    fn add(&mut self, more: Copied) {
        self.rows += more.rows;
        self.highest = self.highest.max(more.highest);
    }
}

/// A key of the new table that a row does not get, since the row with this primary key has it.
struct Taken {
    /// The row, among those that were given.
    at: usize,
    index: IndexId,
    existing: Vec<u8>,
}

/// Where rows come from and go to.
pub(crate) struct Copying<'a, 'c> {
    node: &'a Arc<Node>,
    old: TableHandle,
    /// The table, or those of its leaves that are copied.
    from: Vec<Arc<TableInfo>>,
    /// Nobody knows it yet.
    new: TableHandle,
    /// What writers see to meanwhile; `None`: the old table is held alone.
    kept: Option<Arc<KeptByWriters>>,
    convert: &'a mut Convert<'c>,
    /// Makes further ones of `convert`; `None`: all rows pass through that one.
    further: Option<&'a Further<'a>>,
    workers: Workers,
    keeps: Keeps,
    pace: Arc<Pace>,
    /// Whose part of the pass this is; `None`: the statement's own.
    worker: Option<&'a Worker>,
    patience: &'a mut Patience,
    wait: DdlWait<'a>,
    pub copied: Copied,
}

impl<'a, 'c> Copying<'a, 'c> {
    pub fn new(
        node: &'a Arc<Node>,
        old: &Arc<TableInfo>,
        new: TableHandle,
        kept: Option<Arc<KeptByWriters>>,
        convert: &'a mut Convert<'c>,
        patience: &'a mut Patience,
    ) -> Self {
        let old = TableHandle::new(old.clone());
        let from = vec![old.info().clone()];
        let wait = DdlWait::from(Duration::ZERO);
        Copying {
            node,
            old,
            from,
            new,
            kept,
            convert,
            further: None,
            workers: Workers::default(),
            keeps: None,
            pace: Arc::default(),
            worker: None,
            patience,
            wait,
            copied: Copied::default(),
        }
    }

    /// Other threads may convert rows, too.
    pub fn with_further(self, further: Option<&'a Further<'a>>) -> Self {
        Copying { further, ..self }
    }

    /// `workers`: those of the statement. `keeps`: what is not to go before they have ended.
    pub(super) fn by(self, workers: Workers, keeps: Keeps) -> Self {
        Copying { workers, keeps, ..self }
    }

    /// It tells how far it is as the statement does.
    pub fn telling(self, wait: DdlWait<'a>) -> Self {
        Copying { wait, pace: wait.pace(), ..self }
    }

    /// Only these leaves of the old table are copied. What is noted of rows in others, as processes of a cluster do, changes
    /// nothing: they are not found.
    pub fn of_leaves(self, leaves: Vec<Arc<TableInfo>>) -> Self {
        let ids: BTreeSet<TableId> = leaves.iter().map(|leaf| leaf.schema.id).collect();
        let all = self.old.parts().expect("a table with leaves").leaves();
        let marks: Vec<bool> = all.iter().map(|leaf| ids.contains(&leaf.schema.id)).collect();
        Copying { old: self.old.with_leaves(marks.into()), from: leaves, ..self }
    }

    /// All rows that are there from its beginning to its end, and that nobody writes meanwhile, go into the new table; what
    /// is written meanwhile is noted.
    pub async fn pass(&mut self) -> Result<(), NodeError> {
        let rows = self.from.iter().map(|table| self.node.rows_of(table)).sum();
        self.wait.begins(RowWork::Copy, rows);
        let parts = parts_of(self.node, &self.from);
        if let Some(further) = self.further.filter(|_| is_worth_it(self.node, self.wait, rows, parts.len())) {
            return self.pass_by_workers(parts, further).await;
        }
        for table in self.from.clone() {
            self.pass_over(&table, None).await?;
        }
        Ok(())
    }

    async fn pass_by_workers(&mut self, parts: Vec<Part>, further: &Further<'_>) -> Result<(), NodeError> {
        let copied: Arc<Mutex<Copied>> = Arc::default();
        let most = parts.len();
        let parts = Parts::new(parts);
        let work = |worker: Worker| {
            let (node, old, from) = (self.node.clone(), self.old.clone(), self.from.clone());
            let (new, kept, mut convert) = (self.new.clone(), self.kept.clone(), further());
            let (mut patience, parts, copied) = (self.patience.another(), parts.clone(), copied.clone());
            let pace = self.pace.clone();
            async move {
                let mut copying = Copying {
                    node: &node,
                    old,
                    from,
                    new,
                    kept,
                    convert: &mut *convert,
                    further: None,
                    workers: Workers::default(),
                    keeps: None,
                    pace,
                    worker: Some(&worker),
                    patience: &mut patience,
                    wait: DdlWait::from(Duration::ZERO),
                    copied: Copied::default(),
                };
                while let Some((table, partition)) = parts.next(&worker) {
                    copying.pass_over(&table, Some(partition)).await?;
                }
                copied.lock().add(copying.copied);
                Ok(())
            }
        };
        self.workers.run(self.node, self.wait, most, self.keeps.clone(), work).await?;
        self.copied.add(*copied.lock());
        Ok(())
    }

    /// The rows of one of the tables, or of its part in a partition.
    async fn pass_over(&mut self, table: &Arc<TableInfo>, partition: Option<u16>) -> Result<(), NodeError> {
        let mut reader = Reader::of(self.node, table, &table.schema, self.kept.is_some(), partition);
        let mut pending: Vec<Vec<Value>> = Vec::with_capacity(FILL_ROWS);
        let mut values: Vec<Value> = Vec::new();
        while reader.next().await? {
            if let Some(worker) = self.worker {
                worker.leave_cores(self.node, self.old.info()).await;
                if worker.is_to_end() {
                    break;
                }
            }
            fault_point("node.ddl.copy", self.node).await?;
            pending.clear();
            for row in reader.rows() {
                values.clear();
                values.extend((0..table.schema.columns.len()).map(|i| row.get(i).to_owned()));
                pending.push(self.converted(&values)?);
            }
            self.put_in(&mut pending).await?;
        }
        Ok(())
    }

    /// Copies noted rows again while users go on, until there are few.
    pub async fn rounds(&mut self) -> Result<(), NodeError> {
        for _ in 0..ROUNDS {
            fault_point("node.ddl.copy_again", self.node).await?;
            let noted = self.noted().await?;
            self.wait.begins(RowWork::CopyAgain, noted.len() as u64);
            let mut renewed = 0;
            for bases in noted.chunks(TOGETHER) {
                renewed += self.renew_some(bases).await?;
                self.wait.has_done(bases.len() as u64);
                self.patience.went_on();
                yield_once().await;
            }
            if renewed <= FEW {
                break;
            }
        }
        Ok(())
    }

    /// While the table is held alone: whether so much is noted that users are to be let in once more. `returns`: how often
    /// they were.
    pub async fn is_far_behind(&mut self, returns: usize) -> Result<bool, NodeError> {
        Ok(returns < RETURNS && self.noted().await?.len() > MANY)
    }

    /// While the table is held alone: copies what is noted; gives how many rows. The notes stay where they are.
    pub async fn last(&mut self) -> Result<usize, NodeError> {
        let noted = self.noted().await?;
        for bases in noted.chunks(TOGETHER) {
            loop {
                match self.take_all_away(bases).await {
                    Ok(gone) => break self.copied.rows -= gone,
                    Err(error) => self.patience.again(self.node, error).await?,
                }
            }
            self.patience.went_on();
        }
        for bases in noted.chunks(TOGETHER) {
            let brought = loop {
                match self.bring_all_back(bases).await {
                    Ok(brought) => break brought?,
                    Err(error) => self.patience.again(self.node, error).await?,
                }
            };
            self.copied.rows += brought;
            self.patience.went_on();
            yield_once().await;
        }
        Ok(noted.len())
    }

    /// A row in its new form.
    fn converted(&mut self, values: &[Value]) -> Result<Vec<Value>, NodeError> {
        let mut converted = (self.convert)(values).map_err(NodeError::Refused)?;
        let schema = self.new.schema();
        let number = schema.auto_increment.and_then(|at| converted[at].as_ref().as_counted());
        let number = number.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        self.copied.highest = self.copied.highest.max(number);
        if schema.hidden_key {
            // Where there was another key they are given out now.
            let kept = values.last().filter(|_| self.old.schema().hidden_key);
            converted.truncate(schema.columns.len() - 1);
            converted.push(kept.cloned().unwrap_or(Value::Null));
        }
        Ok(converted)
    }

    /// New rows go into the new table; those whose keys are taken by what may be of before a change are noted.
    async fn put_in(&mut self, pending: &mut Vec<Vec<Value>>) -> Result<(), NodeError> {
        let (mut from, mut most) = (0, pending.len());
        while from < pending.len() {
            let to = (from + most).min(pending.len());
            match insert_rows(self.node, &self.new, &mut pending[from..to]).await {
                Ok(None) => from = to,
                Ok(Some(Taken { at, index, existing })) => {
                    let row = &pending[from + at];
                    let mut base = Vec::new();
                    self.new.primary_key().encode_values(row, &mut base);
                    if self.kept.is_none() {
                        return Err(self.duplicate(index, row));
                    }
                    self.check_duplicate(&base, &existing, index).await?;
                    self.note(&base).await?;
                    pending.remove(from + at);
                }
                // Long rows: fewer at a time.
                Err(NodeError::TooLarge { .. }) if to - from > 1 => most = (to - from) / 2,
                Err(error) => self.patience.again(self.node, error).await?,
            }
        }
        self.patience.went_on();
        // In a cluster the streams see to it.
        if self.node.cluster().is_none() {
            self.node.group.flush_if_much();
        }
        self.copied.rows += pending.len() as u64;
        match self.worker {
            Some(worker) => worker.has_done(pending.len() as u64),
            None => self.wait.has_done(pending.len() as u64),
        }
        self.pace.rest(self.node, pending.len() as u64, &|| self.worker.is_some_and(Worker::is_to_end)).await;
        Ok(())
    }

    fn kept(&self) -> &Arc<KeptByWriters> {
        self.kept.as_ref().expect("only with writers beside it is anything noted")
    }

    /// A transaction that gives way to those of users.
    fn begin(&self) -> Transaction {
        let mut txn = beside_writers(self.node, self.old.info(), self.kept());
        txn.borrow_table(self.new.info().clone());
        txn
    }

    /// The keys of the rows that were noted.
    async fn noted(&mut self) -> Result<Vec<Vec<u8>>, NodeError> {
        let base = |note: &Vec<u8>| match Note::decode(note) {
            Note::Changed { base } => base.to_vec(),
            _ => unreachable!("a copy has no other notes"),
        };
        Ok(noted(self.node, &self.kept().clone()).await?.iter().map(base).collect())
    }

    async fn note(&mut self, base: &[u8]) -> Result<(), NodeError> {
        loop {
            let kept = self.kept().clone();
            let mut txn = self.begin();
            let noted = async {
                txn.note(&kept, Note::Changed { base }, &[]).await?;
                txn.commit_without_waiting().await
            };
            match noted.await {
                Ok(()) => return Ok(()),
                Err(error) => self.patience.again(self.node, error).await?,
            }
        }
    }

    /// Copies noted rows again, together or one by one; gives how many. The notes of the others stay.
    async fn renew_some(&mut self, bases: &[Vec<u8>]) -> Result<usize, NodeError> {
        match self.renew(bases).await {
            Ok(Renewed::All) => return Ok(bases.len()),
            Ok(Renewed::Locked | Renewed::Taken(_)) => {}
            Err(error) => self.patience.again(self.node, error).await?,
        }
        let mut renewed = 0;
        for base in bases {
            let one = std::slice::from_ref(base);
            loop {
                match self.renew(one).await {
                    Ok(Renewed::All) => {
                        renewed += 1;
                        break;
                    }
                    Ok(Renewed::Locked) => break,
                    Ok(Renewed::Taken(Taken { index, existing, .. })) => {
                        self.check_duplicate(base, &existing, index).await?;
                        break;
                    }
                    Err(error) => self.patience.again(self.node, error).await?,
                }
            }
        }
        Ok(renewed)
    }

    /// One transaction: takes the notes away, locks the rows, takes their copies away, and copies them again.
    async fn renew(&mut self, bases: &[Vec<u8>]) -> Result<Renewed, NodeError> {
        let kept = self.kept().clone();
        let mut txn = self.begin();
        let mut rows = Vec::with_capacity(bases.len());
        // First the notes: who brings a row that is not there now waits for this transaction before it leaves its note.
        for base in bases {
            txn.drop_note(&kept, &Note::Changed { base }).await?;
        }
        for base in bases {
            match read(&mut txn, &self.old, base, Some((LockMode::Shared, WaitPolicy::NoWait))).await {
                Err(NodeError::NoWait) => return Ok(Renewed::Locked),
                row => rows.push(row?),
            }
        }
        let mut gone = 0;
        for base in bases {
            gone += u64::from(take_away(&mut txn, &self.new, base).await?);
        }
        let mut brought = 0;
        for (at, row) in rows.iter().enumerate() {
            let Some(row) = row else { continue };
            let converted = self.converted(row)?;
            if let InsertOutcome::Duplicate { index, existing } = txn.insert(&self.new, &converted).await? {
                return Ok(Renewed::Taken(Taken { at, index, existing }));
            }
            brought += 1;
        }
        txn.commit_without_waiting().await?;
        self.copied.rows = self.copied.rows + brought - gone;
        Ok(Renewed::All)
    }

    /// One transaction; gives how many copies there were.
    async fn take_all_away(&mut self, bases: &[Vec<u8>]) -> Result<u64, NodeError> {
        let mut txn = self.begin();
        let mut gone = 0;
        for base in bases {
            gone += u64::from(take_away(&mut txn, &self.new, base).await?);
        }
        txn.commit_without_waiting().await?;
        Ok(gone)
    }

    /// One transaction; gives how many rows there are, or error 1062.
    async fn bring_all_back(&mut self, bases: &[Vec<u8>]) -> Result<Result<u64, NodeError>, NodeError> {
        let mut txn = self.begin();
        let mut brought = 0;
        for base in bases {
            let lock = Some((LockMode::Shared, WaitPolicy::Wait));
            let Some(row) = read(&mut txn, &self.old, base, lock).await? else { continue };
            let converted = self.converted(&row)?;
            if let InsertOutcome::Duplicate { index, .. } = txn.insert(&self.new, &converted).await? {
                return Ok(Err(self.duplicate(index, &converted)));
            }
            brought += 1;
        }
        txn.commit_without_waiting().await?;
        Ok(Ok(brought))
    }

    /// Error 1062 if two rows have one key at one time; not if they have not, or somebody is about to change one of them.
    async fn check_duplicate(&mut self, base: &[u8], other: &[u8], index: IndexId) -> Result<(), NodeError> {
        loop {
            match self.find_duplicate(base, other, index).await {
                Ok(Some(row)) => return Err(self.duplicate(index, &row)),
                Ok(None) | Err(NodeError::NoWait) => return Ok(()),
                Err(error) => self.patience.again(self.node, error).await?,
            }
        }
    }

    /// One transaction, whose locks have stood to its end; gives the second row.
    async fn find_duplicate(
        &mut self,
        base: &[u8],
        other: &[u8],
        index: IndexId,
    ) -> Result<Option<Vec<Value>>, NodeError> {
        let mut txn = self.begin();
        let lock = Some((LockMode::Shared, WaitPolicy::NoWait));
        let mut rows = Vec::new();
        if base == other {
            // A row that went and came back is read twice. In several leaves there may be one each, since EXCHANGE PARTITION … WITHOUT
            // VALIDATION.
            let leaves: Vec<_> = self.from.iter().flat_map(tables_with_rows).collect();
            for leaf in leaves.iter().filter(|_| self.old.parts().is_some()) {
                rows.extend(read(&mut txn, &TableHandle::new(leaf.clone()), base, lock).await?);
            }
        } else {
            for base in [base, other] {
                rows.extend(read(&mut txn, &self.old, base, lock).await?);
            }
        }
        txn.commit_without_waiting().await?;
        let schema = self.new.schema().clone();
        let keys = IndexKeys::new(&schema, schema.index(index).expect("the table's own index"));
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for row in rows {
            let converted = self.converted(&row)?;
            let before = seen.len();
            keys.for_each_unique_value(&converted, |key| seen.push(key));
            if seen[before..].iter().any(|key| seen[..before].contains(key)) {
                return Ok(Some(converted));
            }
        }
        Ok(None)
    }

    fn duplicate(&self, index: IndexId, row: &[Value]) -> NodeError {
        let index: &IndexSchema = self.new.schema().index(index).expect("the table's own index");
        duplicate_entry(self.new.schema(), index, |column| row[column].clone())
    }
}

/// What became of noted rows.
enum Renewed {
    All,
    /// None of them: somebody has locked one.
    Locked,
    /// None of them: one has a key that is taken.
    Taken(Taken),
}

/// The tables that have the rows of a table.
pub(crate) fn tables_with_rows(table: &Arc<TableInfo>) -> Vec<Arc<TableInfo>> {
    match &table.parts {
        None => vec![table.clone()],
        Some(parts) => parts.leaves().to_vec(),
    }
}

async fn read(
    txn: &mut Transaction,
    table: &TableHandle,
    key: &[u8],
    lock: Option<(LockMode, WaitPolicy)>,
) -> Result<Option<Vec<Value>>, NodeError> {
    let columns = table.schema().columns.len();
    let values = |row: RowView<'_>| (0..columns).map(|i| row.get(i).to_owned()).collect();
    txn.get(table, key, lock, |row| row.map(values)).await
}

/// Takes a copy away; `false`: there is none.
async fn take_away(txn: &mut Transaction, new: &TableHandle, base: &[u8]) -> Result<bool, NodeError> {
    let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
    match read(txn, new, base, lock).await? {
        Some(copy) => txn.delete(new, &copy).await,
        None => Ok(false),
    }
}

/// One transaction: rows go into a table that is being built; gives the first that does not fit and why, and then none is in.
async fn insert_rows(
    node: &Arc<Node>,
    table: &TableHandle,
    rows: &mut [Vec<Value>],
) -> Result<Option<Taken>, NodeError> {
    let mut txn = build::filling(node, table.info());
    let mut done = vec![false; rows.len()];
    txn.insert_many(table, rows, &mut done).await?;
    for (at, row) in rows.iter().enumerate().filter(|(at, _)| !done[*at]) {
        if let InsertOutcome::Duplicate { index, existing } = txn.insert(table, row).await? {
            return Ok(Some(Taken { at, index, existing }));
        }
    }
    txn.commit_without_waiting().await?;
    Ok(None)
}

/// Shows all rows of a table that is held alone.
pub(crate) async fn look_at_rows(
    node: &Arc<Node>,
    table: &Arc<TableInfo>,
    look: &mut Look<'_>,
) -> Result<(), NodeError> {
    let mut reader = Reader::new(node, table, &table.schema);
    let mut values: Vec<Value> = Vec::new();
    while reader.next().await? {
        for row in reader.rows() {
            values.clear();
            values.extend((0..table.schema.columns.len()).map(|i| row.get(i).to_owned()));
            look(&values);
        }
    }
    Ok(())
}
