//! Inner tables of a join that no index reaches: read once, then probed by hash or looped over.
//!
//! When a table does not fit the statement's memory, the join goes back to reading it once for each outer row: slow, but it ends.

use super::answer::{turn, with_answers};
use super::query::rows_of;
use super::row::{Joined, Part, owned};
use super::scan::{lock_of, passes};
use super::sort::append_class_key;
use crate::expr::{Columns, Context, Expr, NoColumns, SharedRows};
use crate::memory::{Memory, values_bytes};
use crate::physical::model::{Access, Level, Source, SourceTable};
use rauk_kernel::Verdict;
use rauk_node::{ScanCursor, ScanSpec, Transaction};
use rauk_types::{DataType, MysqlError, RowView, Value};
use rustc_hash::FxHashMap;
use std::ops::Bound;
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct Buffer {
    rows: SharedRows,
    /// Rows by the key of the join's equalities.
    by_key: Option<FxHashMap<Box<[u8]>, Vec<u32>>>,
    pub too_large: bool,
}

pub(crate) enum Candidates {
    All(usize),
    Some(Vec<u32>, usize),
}

impl Candidates {
    pub fn next<'b>(&mut self, buffer: &'b Buffer) -> Option<&'b [Value]> {
        match self {
            Candidates::All(at) => {
                *at += 1;
                buffer.rows.get(*at - 1).map(Vec::as_slice)
            }
            Candidates::Some(rows, at) => {
                *at += 1;
                rows.get(*at - 1).map(|&row| buffer.rows[row as usize].as_slice())
            }
        }
    }
}

impl Buffer {
    /// The rows that may join `row`.
    pub fn candidates(&self, level: &Level, row: &Joined<'_>, context: &mut Context) -> Result<Candidates, MysqlError> {
        let (Some(hash), Some(by_key)) = (&level.hash, &self.by_key) else { return Ok(Candidates::All(0)) };
        let mut key = Vec::new();
        if !join_key(&hash.outer, &hash.classes, row, context, &mut key)? {
            return Ok(Candidates::Some(vec![], 0));
        }
        Ok(Candidates::Some(by_key.get(key.as_slice()).cloned().unwrap_or_default(), 0))
    }

    fn push(
        &mut self,
        level: &Level,
        values: Vec<Value>,
        key: Option<Vec<u8>>,
        memory: &Memory,
    ) -> Result<(), MysqlError> {
        let number = self.rows.len() as u32;
        memory.take(values_bytes(&values) + 40 + key.as_ref().map_or(0, |k| k.len() + 40))?;
        if level.hash.is_some() {
            // A NULL joins nothing.
            let Some(key) = key else { return Ok(()) };
            self.by_key.get_or_insert_default().entry(key.into_boxed_slice()).or_default().push(number);
        }
        Arc::get_mut(&mut self.rows).expect("rows are shared when all are there").push(values);
        Ok(())
    }
}

/// Reads a table into memory: the rows that its own conditions leave. Of a query, `wanted` rows are enough.
pub(crate) async fn build(
    level: &Level,
    source: &Source,
    txn: &mut Transaction,
    context: &mut Context,
    memory: Memory,
    wanted: Option<u64>,
) -> Result<Buffer, MysqlError> {
    let zone = context.time_zone.clone();
    let root = Joined::root(&zone);
    let mut buffer = Buffer::default();
    if level.hash.is_some() {
        buffer.by_key = Some(FxHashMap::default());
    }
    let table = match &source.table {
        SourceTable::Stored(table) => table,
        SourceTable::Query(of, _) => {
            buffer.rows = rows_of(of, wanted, txn, context).await?;
            return query_buffer(buffer, level, txn, context, &memory).await;
        }
        SourceTable::Virtual(table) => {
            let Access::Virtual { schema, table: name } = &level.access else {
                unreachable!("virtual tables have their own access")
            };
            let mut hints = [None, None];
            for (hint, expr) in hints.iter_mut().zip([schema, name]) {
                if let Some(expr) = expr
                    && let Value::Str(text) = expr.eval(&NoColumns, context)?
                {
                    *hint = Some(text);
                }
            }
            for values in table.gather(hints[0].as_deref(), hints[1].as_deref()).await? {
                let joined = root.with(level.table, Part::Values(&values));
                if !passes(&level.own_filters, &joined, context)? {
                    continue;
                }
                let key = own_key(level, &joined, context)?;
                buffer.push(level, values, key, &memory)?;
            }
            return Ok(buffer);
        }
    };
    let columns = table.schema().columns.len();
    let spec = ScanSpec {
        index: None,
        low: Bound::Unbounded,
        high: Bound::Unbounded,
        reverse: false,
        ordered: false,
        lock: lock_of(level, context),
        distribution: None,
        partition: None,
        limit_hint: None,
    };
    let mut failed = None;
    let mut visit = |view: &RowView<'_>| {
        let joined = root.with(level.table, Part::Stored(*view));
        let mut keep = || -> Result<bool, MysqlError> {
            if !passes(&level.own_filters, &joined, context)? {
                return Ok(false);
            }
            let key = own_key(level, &joined, context)?;
            buffer.push(level, owned(view, columns), key, &memory)?;
            Ok(true)
        };
        match keep() {
            Ok(true) => Verdict::Keep,
            Ok(false) => Verdict::Skip,
            Err(error) => {
                failed = Some(error);
                Verdict::KeepAndStop
            }
        }
    };
    ScanCursor::new(table, spec).for_each(txn, &mut visit).await?;
    match failed {
        Some(error) if error.code == rauk_types::error::codes::OUT_OF_SORTMEMORY => {
            let held: usize = buffer.rows.iter().map(|r| values_bytes(r) + 40).sum();
            memory.give(held);
            Ok(Buffer { too_large: true, ..Buffer::default() })
        }
        Some(error) => Err(error),
        None => Ok(buffer),
    }
}

/// Finds the rows of a query by their keys. Without keys they are looped over as they are, since all conditions are checked there as well.
async fn query_buffer(
    mut buffer: Buffer,
    level: &Level,
    txn: &mut Transaction,
    context: &mut Context,
    memory: &Memory,
) -> Result<Buffer, MysqlError> {
    let Some(mut by_key) = buffer.by_key.take() else { return Ok(buffer) };
    let zone = context.time_zone.clone();
    let root = Joined::root(&zone);
    for (number, values) in buffer.rows.iter().enumerate() {
        turn(1, txn, context).await?;
        let joined = root.with(level.table, Part::Values(values));
        let key = with_answers(txn, context, |context| match passes(&level.own_filters, &joined, context)? {
            true => own_key(level, &joined, context),
            false => Ok(None),
        })
        .await?;
        // A NULL joins nothing.
        let Some(key) = key else { continue };
        memory.take(key.len() + 40)?;
        by_key.entry(key.into_boxed_slice()).or_insert_with(Vec::new).push(number as u32);
    }
    buffer.by_key = Some(by_key);
    Ok(buffer)
}

fn own_key(level: &Level, row: &Joined<'_>, context: &mut Context) -> Result<Option<Vec<u8>>, MysqlError> {
    let Some(hash) = &level.hash else { return Ok(None) };
    let mut key = Vec::new();
    Ok(join_key(&hash.inner, &hash.classes, row, context, &mut key)?.then_some(key))
}

/// The key of one side of the equalities; `false` when a NULL makes a match impossible.
fn join_key(
    exprs: &[Expr],
    classes: &[DataType],
    row: &dyn Columns,
    context: &mut Context,
    out: &mut Vec<u8>,
) -> Result<bool, MysqlError> {
    for (expr, class) in exprs.iter().zip(classes) {
        let value = expr.eval(row, context)?;
        if value.is_null() {
            return Ok(false);
        }
        append_class_key(value.as_ref(), class, out);
    }
    Ok(true)
}
