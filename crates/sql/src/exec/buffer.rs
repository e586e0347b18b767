//! Inner tables of a join that no index reaches: read once, then probed by hash or looped over.
//!
//! Rows of a stored table are kept as the bytes that they are stored as ([`Kept`]), rows of a query as it gave them. The index
//! knows the hashes of keys: a row that it finds is looked at by the level's conditions, the equalities among them, as every
//! other row. Where keys are all that is wanted (a semi join) only they are kept, each once, and compared.
//!
//! When a table does not fit the statement's memory, the join goes back to reading it once for each outer row: slow, but it ends.

use super::answer::{turn, with_answers};
use super::kept::{Found, HashIndex, Kept, KeySet};
use super::output::with_value;
use super::query::rows_of;
use super::remote::{Wants, Work};
use super::row::{Joined, Part};
use super::scan::{Opened, get, open, passes};
use crate::expr::value_key::append_class_key;
use crate::expr::{Columns, Context, Expr, NoColumns, SharedRows};
use crate::hash::hash_of;
use crate::memory::{Memory, values_bytes};
use crate::physical::model::{Access, Level, Source, SourceTable};
use rauk_kernel::Verdict;
use rauk_node::{ScanCursor, ScanSpec, Transaction};
use rauk_types::{DataType, KeyDef, MysqlError, RowView, TableSchema, Value};
use std::sync::Arc;

/// Rows between two turns of others.
const TURN: usize = 64;

#[derive(Default)]
pub(crate) struct Buffer {
    /// Of a query or a virtual table.
    rows: SharedRows,
    /// Of a stored table, with what reads them.
    kept: Kept,
    schema: Option<Arc<TableSchema>>,
    /// Rows by the key of the join's equalities.
    index: Option<HashIndex>,
    /// Where keys are all that is kept.
    keys: KeySet,
    /// Of rows that were looked up for a batch: for each the next one of the same lookup.
    next: Vec<u32>,
    pub too_large: bool,
}

/// Rows that may join, as far as they have not been looked at.
pub(crate) enum Candidates {
    All(usize),
    Some(Found),
    /// A row that was looked up for a batch, and those that follow it; [`NO_ROW`] ends them.
    Linked(u32),
}

/// The number of no row.
pub(crate) const NO_ROW: u32 = u32::MAX;

impl Candidates {
    /// The next row, and its number in the buffer.
    #[inline]
    pub fn next<'b>(&mut self, buffer: &'b Buffer) -> Option<(usize, Part<'b>)> {
        let number = match (self, &buffer.index) {
            (Candidates::Some(found), Some(index)) => found.next(index, buffer.stored())?,
            (Candidates::All(next), _) => {
                *next += 1;
                *next - 1
            }
            (Candidates::Linked(NO_ROW), _) => return None,
            (Candidates::Linked(next), _) => {
                let number = *next as usize;
                *next = buffer.next[number];
                number
            }
            (Candidates::Some(_), None) => return None,
        };
        Some((number, buffer.part(number)?))
    }
}

impl Buffer {
    /// Rows of a query, to loop over.
    pub fn of(rows: SharedRows) -> Buffer {
        Buffer { rows, ..Buffer::default() }
    }

    /// Rows of a stored table that are looked up for a batch.
    pub fn linked(schema: Arc<TableSchema>) -> Buffer {
        Buffer { schema: Some(schema), ..Buffer::default() }
    }

    /// Keeps a row that was looked up, behind those of the same lookup, the first and the last of which are given.
    pub fn push_linked(
        &mut self,
        view: &RowView<'_>,
        ends: &mut (u32, u32),
        memory: &Memory,
    ) -> Result<(), MysqlError> {
        self.kept.push(view.layout(), view.whole(&mut Vec::new()), memory)?;
        let number = self.next.len() as u32;
        self.next.push(NO_ROW);
        match ends.0 {
            NO_ROW => ends.0 = number,
            _ => self.next[ends.1 as usize] = number,
        }
        ends.1 = number;
        Ok(())
    }

    /// Puts the rows of one lookup in the order of the index and, where its keys are equal, of the primary key.
    pub fn order_linked(&mut self, ends: &mut (u32, u32), index: &KeyDef, primary: &KeyDef) {
        let Some(schema) = self.schema.as_ref().filter(|_| ends.0 != ends.1) else { return };
        let mut rows: Vec<(Vec<u8>, u32)> = Vec::new();
        let mut at = ends.0;
        while at != NO_ROW {
            let (layout, bytes) = self.kept.get(at as usize).expect("linked rows are kept");
            let row = RowView::new(schema, layout, bytes);
            let mut key = Vec::new();
            index.encode_row(&row, &mut key);
            primary.encode_row(&row, &mut key);
            rows.push((key, at));
            at = self.next[at as usize];
        }
        rows.sort_unstable();
        for pair in rows.windows(2) {
            self.next[pair[0].1 as usize] = pair[1].1;
        }
        let last = rows[rows.len() - 1].1;
        self.next[last as usize] = NO_ROW;
        *ends = (rows[0].1, last);
    }

    /// Gives up the rows that were looked up.
    pub fn clear_linked(&mut self, memory: &Memory) {
        self.kept.release(memory);
        self.next.clear();
    }

    /// Rows that are kept.
    pub fn len(&self) -> u64 {
        (self.rows.len() + self.kept.len() + self.keys.len()) as u64
    }

    /// The rows of a stored table.
    #[inline]
    fn stored(&self) -> Option<&Kept> {
        self.schema.is_some().then_some(&self.kept)
    }

    /// The row of a number.
    #[inline]
    pub fn part(&self, number: usize) -> Option<Part<'_>> {
        match &self.schema {
            Some(schema) => {
                let (layout, bytes) = self.kept.get(number)?;
                Some(Part::Stored(RowView::new(schema, layout, bytes)))
            }
            None => self.rows.get(number).map(|values| Part::Values(values)),
        }
    }

    /// The rows that may join `row`. `key` is overwritten.
    pub fn candidates(
        &self,
        level: &Level,
        row: &Joined<'_>,
        context: &mut Context,
        key: &mut Vec<u8>,
    ) -> Result<Candidates, MysqlError> {
        let (Some(hash), Some(index)) = (&level.hash, &self.index) else { return Ok(Candidates::All(0)) };
        key.clear();
        Ok(Candidates::Some(match join_key(&hash.outer, &hash.classes, row, context, key)? {
            true => {
                let found = index.find(hash_of(key));
                if let Some(kept) = self.stored() {
                    found.prefetch(index, kept);
                }
                found
            }
            false => Found::nothing(),
        }))
    }

    /// Whether a row of the key is there, where keys are all that is kept.
    pub fn has_key(
        &self,
        level: &Level,
        row: &Joined<'_>,
        context: &mut Context,
        key: &mut Vec<u8>,
    ) -> Result<bool, MysqlError> {
        let Some(hash) = &level.hash else { unreachable!("keys are kept for a hash join") };
        key.clear();
        Ok(join_key(&hash.outer, &hash.classes, row, context, key)? && self.keys.has(key))
    }

    /// Keeps a stored row, or its key.
    fn push(
        &mut self,
        level: &Level,
        view: &RowView<'_>,
        key: Option<&[u8]>,
        memory: &Memory,
    ) -> Result<(), MysqlError> {
        if level.hash.is_some() {
            // A NULL joins nothing.
            let Some(key) = key else { return Ok(()) };
            if level.keys_only.is_some() {
                return self.keys.add(key, memory);
            }
            self.index.get_or_insert_default().add(hash_of(key), self.kept.len(), memory)?;
        }
        self.kept.push(view.layout(), view.whole(&mut Vec::new()), memory)
    }

    /// Makes the rows findable that are there.
    fn link(&mut self, level: &Level, memory: &Memory) -> Result<(), MysqlError> {
        let kept = self.schema.is_some().then_some(&mut self.kept);
        match &mut self.index {
            Some(index) if level.keys_only.is_none() => index.link(kept, memory),
            _ => Ok(()),
        }
    }

    /// Gives up: the table is read for each outer row.
    fn give_up(mut self, memory: &Memory) -> Buffer {
        self.kept.release(memory);
        self.keys.release(memory);
        if let Some(index) = &mut self.index {
            index.release(memory);
        }
        Buffer { too_large: true, ..Buffer::default() }
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
        buffer.index = Some(HashIndex::default());
    }
    let mut key = Vec::new();
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
            let mut rows = Vec::new();
            for values in table.gather(hints[0].as_deref(), hints[1].as_deref()).await? {
                let joined = root.with(level.table, Part::Values(&values));
                if !passes(&level.own_filters, &joined, context)? {
                    continue;
                }
                memory.take(values_bytes(&values) + 24)?;
                rows.push(values);
            }
            buffer.rows = Arc::new(rows);
            return query_buffer(buffer, level, txn, context, &memory).await;
        }
    };
    if level.keys_only.is_none() {
        buffer.schema = Some(table.schema().clone());
    }
    let mut failed = None;
    // What is read is known before any other table.
    let opened = with_answers(txn, context, |context| open(level, source, &root, context, None)).await?;
    let work = match &opened {
        Opened::Scans(_) => Work::new((level.table, table), &level.own_filters, Wants::Rows, &root, txn, context),
        Opened::Nothing | Opened::Keys { .. } | Opened::Skip(_) | Opened::Merge(_) => None,
    };
    let mut visit = |view: &RowView<'_>| {
        if let Some(work) = &work {
            work.before_row(context);
        }
        let joined = root.with(level.table, Part::Stored(*view));
        let mut keep = || -> Result<bool, MysqlError> {
            if !passes(&level.own_filters, &joined, context)? {
                return Ok(false);
            }
            let known = own_key(level, &joined, context, &mut key)?;
            buffer.push(level, view, known.then_some(&key), &memory)?;
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
    match opened {
        Opened::Nothing => {}
        Opened::Keys { unique, keys } => {
            for key in &keys {
                let visit = |view: Option<RowView<'_>>| view.map(|view| visit(&view));
                if get(txn, table, unique, key, None, visit).await? == Some(Verdict::KeepAndStop) {
                    break;
                }
            }
        }
        Opened::Skip(_) | Opened::Merge(_) => unreachable!("only the table of a block without others is read so"),
        Opened::Scans(scans) => {
            for spec in scans {
                let pushdown = work.clone().map(|work| work as _);
                ScanCursor::new(table, ScanSpec { pushdown, ..spec }).for_each(txn, &mut visit).await?;
            }
        }
    }
    if let Some(work) = work {
        work.end(failed.is_some(), context);
    }
    let linked = failed.map_or_else(|| buffer.link(level, &memory), Err);
    match linked {
        Ok(()) => Ok(buffer),
        Err(error) if error.code == rauk_types::error::codes::OUT_OF_SORTMEMORY => Ok(buffer.give_up(&memory)),
        Err(error) => Err(error),
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
    if level.hash.is_none() {
        return Ok(buffer);
    }
    let zone = context.time_zone.clone();
    let root = Joined::root(&zone);
    let rows = buffer.rows.clone();
    let mut key = Vec::new();
    for (number, values) in rows.iter().enumerate() {
        if number % TURN == 0 {
            turn(TURN, txn, context).await?;
        }
        let joined = root.with(level.table, Part::Values(values));
        let mut look = |context: &mut Context| match passes(&level.own_filters, &joined, context)? {
            true => own_key(level, &joined, context, &mut key),
            false => Ok(false),
        };
        let known = match context.subqueries.is_active() {
            true => with_answers(txn, context, look).await?,
            false => look(context)?,
        };
        // A NULL joins nothing.
        if !known {
            continue;
        }
        match level.keys_only.is_some() {
            true => buffer.keys.add(&key, memory)?,
            false => buffer.index.get_or_insert_default().add(hash_of(&key), number, memory)?,
        }
    }
    if level.keys_only.is_some() {
        buffer.rows = SharedRows::default();
    }
    buffer.link(level, memory)?;
    Ok(buffer)
}

/// The key of a row of the table itself, where there is one.
fn own_key(level: &Level, row: &Joined<'_>, context: &mut Context, key: &mut Vec<u8>) -> Result<bool, MysqlError> {
    let Some(hash) = &level.hash else { return Ok(false) };
    key.clear();
    join_key(&hash.inner, &hash.classes, row, context, key)
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
        let mut null = false;
        with_value(expr, row, context, |value| match value.is_null() {
            true => null = true,
            false => append_class_key(value, class, out),
        })?;
        if null {
            return Ok(false);
        }
    }
    Ok(true)
}
