//! RETURNING of INSERT, REPLACE and DELETE.
//!
//! Each row is computed when it has been written. The rows wait in the session ([`Held`]) until the statement has succeeded and, in autocommit,
//! committed: a client never sees rows of a statement that fails. They count against the statement's memory (1038).

use super::answer::with_answers;
use super::row::Rows;
use super::sort::{KeptRows, values_of};
use crate::expr::{Context, Expr};
use crate::memory::Memory;
use rauk_node::Transaction;
use rauk_types::result::{Completion, FlushFuture, ResultColumn, ResultSink};
use rauk_types::{MysqlError, Value, ValueRef};
use smallvec::SmallVec;

/// Bytes that wait for the client before they are sent.
const FLUSH_BYTES: usize = 256 << 10;

/// Gives the row of RETURNING for a stored row. Whoever has no RETURNING does not ask.
pub(super) async fn return_row(
    returning: &[Expr],
    row: &[Value],
    txn: &mut Transaction,
    context: &mut Context,
    sink: &mut dyn ResultSink,
) -> Result<(), MysqlError> {
    let zone = context.time_zone.clone();
    let row = Rows { rows: [row, &[], &[]], zone: &zone };
    let values = with_answers(txn, context, |context| {
        returning.iter().map(|item| item.eval(&row, context)).collect::<Result<SmallVec<[Value; 8]>, _>>()
    })
    .await?;
    let values: SmallVec<[ValueRef<'_>; 8]> = values.iter().map(Value::as_ref).collect();
    sink.row(&values);
    Ok(())
}

/// Keeps the rows of a statement until it may be told that they are written.
pub(crate) struct Held {
    memory: Memory,
    rows: KeptRows,
    failed: Option<MysqlError>,
}

impl Held {
    pub fn new(memory: Memory) -> Held {
        Held { rows: KeptRows::new(memory.clone()), memory, failed: None }
    }

    /// Whether all rows are kept. Error 1038.
    pub fn check(&mut self) -> Result<(), MysqlError> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Sends the rows.
    pub async fn send(mut self, columns: &[ResultColumn], sink: &mut dyn ResultSink) -> Result<(), MysqlError> {
        sink.columns(columns);
        while let Some(row) = self.rows.next() {
            let values: SmallVec<[ValueRef<'_>; 16]> = values_of(row).collect();
            sink.row(&values);
            if sink.buffered() >= FLUSH_BYTES {
                sink.flush().await?;
            }
        }
        Ok(())
    }
}

impl ResultSink for Held {
    fn columns(&mut self, _: &[ResultColumn]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) {
        if self.failed.is_none() {
            self.failed = self.rows.push_refs(values).err();
        }
    }

    fn withdraw(&mut self) -> bool {
        self.rows = KeptRows::new(self.memory.clone());
        self.failed = None;
        true
    }

    fn complete(&mut self, _: &Completion) {}

    fn buffered(&self) -> usize {
        0
    }

    fn flush(&mut self) -> FlushFuture<'_> {
        Box::pin(async { Ok(()) })
    }
}
