//! Window functions.
//!
//! A stage takes rows in the order of its keys: those of its PARTITION BY, then those of its ORDER BY. Rows wait encoded in a [`Sorter`], with their
//! keys, so that rows of one partition, and rows that the order does not tell apart (*peers*), are found by comparing bytes. Then the stage goes
//! through the rows one by one: each comes with the values of the stage's functions and is not kept, but for the columns that functions read of
//! other rows of its partition. The rows of a stage go into the next one, those of the last to the block above.
//!
//! ```text
//! frame      which rows of its partition a row's frame has
//! call       one function over the rows of a partition
//! aggregate  aggregates over frames that move
//! ```

mod aggregate;
mod call;
mod exact;
mod frame;

use super::answer::turn;
use super::output::Target;
use super::query::run_query;
use super::scan::give_way;
use super::sort::{Sorted, Sorter, put_values, values_of};
use crate::expr::run;
use crate::expr::value_key::append_key;
use crate::expr::{Columns, Context};
use crate::memory::{Memory, heap_bytes};
use crate::physical::model::{Stage, WindowPlan};
use call::Call;
use rauk_node::Transaction;
use rauk_types::{MysqlError, Value, ValueRef};
use std::ops::Range;

/// Rows with the values of all window functions of a block.
pub(crate) struct WindowRows<'p> {
    /// The last stage.
    stage: Running<'p>,
}

impl<'p> WindowRows<'p> {
    /// Runs the input, and all stages but the last.
    pub async fn open(
        plan: &'p WindowPlan,
        txn: &mut Transaction,
        context: &mut Context,
    ) -> Result<WindowRows<'p>, MysqlError> {
        let width = plan.width + plan.stages.iter().map(|stage| stage.calls.len()).sum::<usize>();
        let mut stages = plan.stages.iter();
        let first = stages.next().expect("a plan of windows has a stage");
        let mut waiting = Waiting::new(first, context);
        let mut each = |mut values: Vec<Value>| {
            values.resize(width, Value::Null);
            waiting.push(&values).map(|()| true)
        };
        run_query(&plan.input, txn, context, Target::Each(&mut each)).await?;
        let mut stage = waiting.start(width, context)?;
        for next in stages {
            let mut waiting = Waiting::new(next, context);
            let mut row = Vec::new();
            while stage.next(&mut row, txn, context).await? {
                waiting.push(&row)?;
            }
            stage.close();
            stage = waiting.start(width, context)?;
        }
        Ok(WindowRows { stage })
    }

    /// Puts the next row in the place of `row`; `false`: there is none.
    pub async fn next(
        &mut self,
        row: &mut Vec<Value>,
        txn: &Transaction,
        context: &mut Context,
    ) -> Result<bool, MysqlError> {
        self.stage.next(row, txn, context).await
    }

    /// No more rows are wanted: what they take is free again.
    pub fn close(self) {
        self.stage.close();
    }
}

/// Rows on their way into a stage.
struct Waiting<'p> {
    stage: &'p Stage,
    sorter: Sorter,
    key: Vec<u8>,
    payload: Vec<u8>,
}

/// Bytes at the beginning of a payload: how long the partition's part of the key is.
const HEAD: usize = 4;

impl<'p> Waiting<'p> {
    fn new(stage: &'p Stage, context: &Context) -> Self {
        let sorter = Sorter::new(usize::MAX, context.budget.memory.clone());
        Waiting { stage, sorter, key: Vec::new(), payload: Vec::new() }
    }

    fn push(&mut self, row: &[Value]) -> Result<(), MysqlError> {
        self.key.clear();
        let mut partition = 0;
        for (number, key) in self.stage.keys.iter().enumerate() {
            append_key(row[key.column].as_ref(), &key.ty, key.descending, &mut self.key);
            if number + 1 == self.stage.partitions {
                partition = self.key.len();
            }
        }
        self.payload.clear();
        self.payload.extend_from_slice(&(partition as u32).to_be_bytes());
        put_values(row.iter().map(Value::as_ref), &mut self.payload);
        self.sorter.push(&self.key, &self.payload)
    }

    fn start(self, width: usize, context: &mut Context) -> Result<Running<'p>, MysqlError> {
        let Waiting { stage, sorter, .. } = self;
        let runner = context.budget.runner_of_rows(sorter.len());
        let rows = if stage.sorts { run(runner, || sorter.finish())? } else { sorter.unsorted() };
        let memory = context.budget.memory.clone();
        Running::new(stage, rows, width, memory, context)
    }
}

/// The rows of a partition, as functions read them.
struct Partition {
    /// Their number.
    rows: usize,
    /// Those columns that functions read; empty the others.
    columns: Vec<Vec<Value>>,
    /// What they take.
    bytes: usize,
    /// The peers of the current row, the row itself among them.
    peers: Range<usize>,
    /// How many groups of peers are before the current one.
    groups_before: usize,
}

/// A row of a partition.
struct At<'a> {
    partition: &'a Partition,
    row: usize,
}

impl Columns for At<'_> {
    fn column(&self, _: usize, column: usize) -> ValueRef<'_> {
        self.partition.columns[column][self.row].as_ref()
    }
}

/// A stage that gives its rows.
struct Running<'p> {
    stage: &'p Stage,
    rows: Sorted,
    memory: Memory,
    width: usize,
    /// Columns that functions read of other rows than the current one.
    read: Vec<bool>,
    partition: Partition,
    /// Where the partition begins among the rows.
    start: usize,
    /// The next row, in the partition.
    at: usize,
    calls: Vec<Call<'p>>,
}

impl<'p> Running<'p> {
    fn new(
        stage: &'p Stage,
        rows: Sorted,
        width: usize,
        memory: Memory,
        context: &mut Context,
    ) -> Result<Self, MysqlError> {
        let order = &stage.keys[stage.partitions..];
        let mut read = vec![false; width];
        let mut calls = Vec::with_capacity(stage.calls.len());
        for call in &stage.calls {
            let made = Call::new(call, order, context)?;
            made.reads(call, order, &mut |column| read[column] = true);
            calls.push(made);
        }
        let columns = vec![Vec::new(); width];
        let partition = Partition { rows: 0, columns, bytes: 0, peers: 0..0, groups_before: 0 };
        Ok(Running { stage, rows, memory, width, read, partition, start: 0, at: 0, calls })
    }

    async fn next(
        &mut self,
        row: &mut Vec<Value>,
        txn: &Transaction,
        context: &mut Context,
    ) -> Result<bool, MysqlError> {
        turn(1, txn, context).await?;
        give_way(txn, context).await?;
        if self.at == self.partition.rows {
            self.start += self.partition.rows;
            if self.start == self.rows.len() {
                return Ok(false);
            }
            let runner = context.budget.runner_of_rows(self.rows.len() - self.start);
            run(runner, || self.begin_partition(context))?;
        }
        self.give(row, context)?;
        self.at += 1;
        Ok(true)
    }

    fn close(mut self) {
        self.memory.give(self.partition.bytes);
        self.calls.iter_mut().for_each(|call| call.begin(&self.memory));
        self.rows.release();
    }

    /// The number of rows from `first` on that are alike in a part of their keys.
    fn alike(&self, first: usize, part: impl Fn(&Sorted, usize) -> usize, end: usize) -> usize {
        let length = part(&self.rows, first);
        let key = &self.rows.record(first).0[..length];
        let same = |at: &usize| part(&self.rows, *at) == length && &self.rows.record(*at).0[..length] == key;
        (first + 1..end).take_while(same).count() + 1
    }

    /// Finds the end of the partition that begins at `start`, and keeps the columns that functions read.
    fn begin_partition(&mut self, context: &mut Context) -> Result<(), MysqlError> {
        self.memory.give(std::mem::take(&mut self.partition.bytes));
        self.partition.columns.iter_mut().for_each(Vec::clear);
        let head = |rows: &Sorted, at: usize| {
            let head = rows.record(at).1[..HEAD].try_into().expect("a payload has a head");
            u32::from_be_bytes(head) as usize
        };
        let end = self.rows.len();
        let rows = if self.stage.partitions == 0 { end - self.start } else { self.alike(self.start, head, end) };
        self.partition.rows = rows;
        self.at = 0;
        self.partition.peers = 0..0;
        self.partition.groups_before = 0;
        self.calls.iter_mut().for_each(|call| call.begin(&self.memory));
        let Some(last) = self.read.iter().rposition(|read| *read) else { return Ok(()) };
        let each = self.read.iter().filter(|read| **read).count() * size_of::<Value>();
        for at in self.start..self.start + rows {
            context.budget.work(64)?;
            let mut bytes = each;
            for (column, value) in values_of(&self.rows.record(at).1[HEAD..]).take(last + 1).enumerate() {
                if self.read[column] {
                    let value = value.to_owned();
                    bytes += heap_bytes(&value);
                    self.partition.columns[column].push(value);
                }
            }
            self.memory.take(bytes)?;
            self.partition.bytes += bytes;
        }
        for call in &mut self.calls {
            call.look(&self.partition);
        }
        Ok(())
    }

    /// The current row with the values of the functions.
    fn give(&mut self, row: &mut Vec<Value>, context: &mut Context) -> Result<(), MysqlError> {
        let at = self.start + self.at;
        if self.at == self.partition.peers.end {
            let whole = |rows: &Sorted, at: usize| rows.record(at).0.len();
            let end = self.start + self.partition.rows;
            let peers = if self.stage.keys.len() == self.stage.partitions {
                self.partition.rows
            } else {
                self.alike(at, whole, end)
            };
            self.partition.groups_before += usize::from(self.at > 0);
            self.partition.peers = self.at..self.at + peers;
        }
        row.clear();
        row.extend(values_of(&self.rows.record(at).1[HEAD..]).map(ValueRef::to_owned));
        assert_eq!(row.len(), self.width, "a row keeps its columns");
        for (call, of) in self.calls.iter_mut().zip(&self.stage.calls) {
            row[of.output] = call.value(&self.partition, self.at, &self.memory, context)?;
        }
        Ok(())
    }
}
