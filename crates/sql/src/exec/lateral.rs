//! The rows of lateral tables.
//!
//! A lateral table is run for each row of the tables before it, with the columns that it reads as parameters. Its rows are remembered by the values of
//! these columns, encoded so that only identical values are one key: as many sets of rows as [`MOST`], as far as the statement's memory goes. When
//! there are more they are all forgotten, and remembering starts again.

use super::answer::{Mark, parts, turn};
use super::buffer::Buffer;
use super::query::collect;
use super::row::Joined;
use crate::expr::{Context, append_exact};
use crate::hash::KeyMap;
use crate::memory::{Memory, values_bytes};
use crate::physical::model::LateralRows;
use rauk_node::Transaction;
use rauk_types::MysqlError;
use std::sync::Arc;

/// Sets of rows that are remembered of one table.
const MOST: usize = 1024;
/// Work of starting a query, in rows.
const QUERY_ROWS: usize = 32;
/// What a set takes beside its key and its rows.
const SET_BYTES: usize = 160;

/// What is known of one lateral table while its block runs.
pub(crate) struct Remembered {
    rows: KeyMap<Arc<Buffer>>,
    bytes: usize,
    memory: Memory,
}

impl Remembered {
    pub fn new(context: &Context) -> Remembered {
        Remembered { rows: KeyMap::default(), bytes: 0, memory: context.budget.memory.clone() }
    }

    /// The rows for the values of `row`, the rows of the tables before.
    pub async fn rows(
        &mut self,
        lateral: &LateralRows,
        row: &Joined<'_>,
        txn: &mut Transaction,
        context: &mut Context,
    ) -> Result<Arc<Buffer>, MysqlError> {
        let mut key = Vec::new();
        let mut values = Vec::with_capacity(lateral.outer.len());
        for outer in &lateral.outer {
            let value = outer.eval(row, context)?;
            append_exact(value.as_ref(), &mut key);
            values.push(value);
        }
        if let Some(known) = self.rows.get(key.as_slice()) {
            return Ok(known.clone());
        }
        turn(QUERY_ROWS, txn, context).await?;
        let parts = parts(context);
        let plan = &parts.subqueries[lateral.query];
        assert_eq!(values.len(), plan.outer, "as many outer values as columns");
        for (place, value) in context.parameters[plan.first_outer..].iter_mut().zip(values) {
            *place = value;
        }
        let mark = Mark::set(context);
        let rows = collect(&plan.query, &plan.types, None, txn, context).await?;
        mark.release(context);
        self.keep(key, rows.iter().map(|row| values_bytes(row) + 24).sum(), Arc::new(Buffer::of(rows)))
    }

    fn keep(&mut self, key: Vec<u8>, bytes: usize, rows: Arc<Buffer>) -> Result<Arc<Buffer>, MysqlError> {
        let bytes = key.len() + bytes + SET_BYTES;
        let fits = self.rows.len() < MOST && self.memory.take(bytes).is_ok();
        if !fits {
            self.forget();
            self.memory.take(bytes)?;
        }
        self.bytes += bytes;
        self.rows.insert(key.into_boxed_slice(), rows.clone());
        Ok(rows)
    }

    fn forget(&mut self) {
        self.rows.clear();
        self.memory.give(self.bytes);
        self.bytes = 0;
    }
}

impl Drop for Remembered {
    fn drop(&mut self) {
        self.forget();
    }
}
