//! Queries of several blocks, and the rows of queries that stand for tables.
//!
//! UNION ALL hands on the rows of one side after the other. The other set operations know rows by the sort keys of their values, so equal is what
//! GROUP BY calls equal: by the collation, and NULL equals NULL. A chain of UNIONs has one set of keys for all its parts. EXCEPT and INTERSECT read
//! their right side first and count its rows by key; then rows of the left side go on as they come: with ALL as often as the counts allow, else
//! once.
//!
//! A common table is run when it is first read, and its rows serve all who read it, as long as the outer columns that it reads have the
//! same values. A recursive one begins with the rows of its seed; each
//! round runs its recursive part on the rows that the round before added, until a round adds none, until its LIMIT has its
//! rows, or until there were more rounds than `cte_max_recursion_depth` (3636). The seed decides the types: a value of a
//! later row that does not fit is error 1406 or 1264 in strict mode, and cut with a warning otherwise.
//!
//! Rows and keys that are held count against the statement's memory; nothing is spilled.

use super::answer::{Mark, parts, turn, with_answers};
use super::json_table::run_json_table;
use super::output::{Target, row_count};
use super::scan::is_interrupted;
use super::select::{Ran, run_select};
use super::window::WindowRows;
use crate::expr::value_key::{append_key, shown};
use crate::expr::{CommonRows, Context, Expr, NoColumns, SharedRows, append_exact, year_number};
use crate::hash::KeyMap;
use crate::measure::BlockMeasure;
use crate::memory::{Memory, values_bytes};
use crate::parse::statement::Scope;
use crate::physical::model::{CommonTablePlan, QueryPlan, RowsOf, SetOp, SetPlan, WindowPlan};
use crate::stack;
use rauk_node::{NodeError, Transaction};
use rauk_types::error::codes;
use rauk_types::{DataType, Decimal, MysqlError, TypeKind, Value};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

/// ER_CTE_MAX_RECURSION_DEPTH.
const RECURSION_DEPTH: u16 = 3636;
/// What a key takes in a table of keys beside its bytes.
const KEY_BYTES: usize = 48;
/// Work of a round of a recursive table, in rows.
const ROUND_ROWS: usize = 32;

/// A query that runs. Queries in queries are polled one inside of the other: each level asks for stack.
pub(crate) struct Running<'r, R>(Pin<Box<dyn Future<Output = Result<R, MysqlError>> + Send + 'r>>);

impl<'r, R> Running<'r, R> {
    pub fn new(future: impl Future<Output = Result<R, MysqlError>> + Send + 'r) -> Running<'r, R> {
        Running(Box::pin(future))
    }
}

impl<R> Future for Running<'_, R> {
    type Output = Result<R, MysqlError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        stack::grow(|| self.0.as_mut().poll(context))
    }
}

/// Runs a query into `target`.
pub(crate) fn run_query<'r>(
    query: &'r QueryPlan,
    txn: &'r mut Transaction,
    context: &'r mut Context,
    target: Target<'r>,
) -> Running<'r, Ran> {
    match query {
        QueryPlan::Select(select) => Running(Box::pin(run_select(select, txn, context, target))),
        QueryPlan::Set(set) if context.measures.is_some() => {
            Running(Box::pin(run_set_measured(set, txn, context, target)))
        }
        QueryPlan::Set(set) => Running(Box::pin(run_set(set, txn, context, target))),
        QueryPlan::Values(rows) => Running(Box::pin(run_values(rows, txn, context, target))),
        QueryPlan::JsonTable(plan) => Running(Box::pin(run_json_table(plan, txn, context, target))),
        QueryPlan::Window(window) => Running(Box::pin(run_windows(window, txn, context, target))),
    }
}

async fn run_windows(
    plan: &WindowPlan,
    txn: &mut Transaction,
    context: &mut Context,
    mut target: Target<'_>,
) -> Result<Ran, MysqlError> {
    let mut ran = Ran::default();
    let mut rows = WindowRows::open(plan, txn, context).await?;
    let mut row = Vec::new();
    while rows.next(&mut row, txn, context).await? {
        ran.rows += 1;
        if !target.take(std::mem::take(&mut row))? {
            ran.refused = true;
            break;
        }
        target.flush_if_large(txn, context).await?;
    }
    rows.close();
    Ok(ran)
}

async fn run_values(
    rows: &[Vec<Expr>],
    txn: &mut Transaction,
    context: &mut Context,
    mut target: Target<'_>,
) -> Result<Ran, MysqlError> {
    let mut ran = Ran::default();
    for row in rows {
        turn(1, txn, context).await?;
        let values = with_answers(txn, context, |context| {
            row.iter().map(|expr| expr.eval(&NoColumns, context)).collect::<Result<Vec<_>, _>>()
        })
        .await?;
        ran.rows += 1;
        if !target.take(values)? {
            ran.refused = true;
            break;
        }
        target.flush_if_large(txn, context).await?;
    }
    Ok(ran)
}

/// How often rows were there, by their keys.
struct Counts<'a> {
    by_key: KeyMap<u64>,
    types: &'a [DataType],
    memory: Memory,
    /// What of it the keys take.
    bytes: usize,
    key: Vec<u8>,
}

impl<'a> Counts<'a> {
    fn new(types: &'a [DataType], context: &Context) -> Self {
        Counts { by_key: KeyMap::default(), types, memory: context.budget.memory.clone(), bytes: 0, key: Vec::new() }
    }

    /// Makes the key of a row.
    fn look(&mut self, values: &[Value]) {
        assert_eq!(values.len(), self.types.len(), "both sides have the columns of the result");
        self.key.clear();
        for (value, ty) in values.iter().zip(self.types) {
            append_key(value.as_ref(), ty, false, &mut self.key);
        }
    }

    /// Counts a row; `true`: it is the first of its key.
    fn add(&mut self, values: &[Value]) -> Result<bool, MysqlError> {
        self.look(values);
        if let Some(count) = self.by_key.get_mut(self.key.as_slice()) {
            *count += 1;
            return Ok(false);
        }
        let bytes = self.key.len() + KEY_BYTES;
        self.memory.take(bytes)?;
        self.bytes += bytes;
        self.by_key.insert(self.key.as_slice().into(), 1);
        Ok(true)
    }

    /// Takes one of a key's rows away; `false`: there is none.
    fn take_one(&mut self, values: &[Value]) -> bool {
        self.look(values);
        match self.by_key.get_mut(self.key.as_slice()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }

    /// Takes all of a key's rows away; `false`: there was none.
    fn take_all(&mut self, values: &[Value]) -> bool {
        self.look(values);
        self.by_key.get_mut(self.key.as_slice()).is_some_and(|count| std::mem::take(count) > 0)
    }
}

impl Drop for Counts<'_> {
    fn drop(&mut self) {
        self.memory.give(self.bytes);
        self.memory.free_aside(self.by_key.len(), std::mem::take(&mut self.by_key));
    }
}

/// The queries whose rows make up a chain of UNIONs, in order.
fn parts_of_union(set: &SetPlan) -> Vec<&QueryPlan> {
    let mut parts = Vec::new();
    let mut pending = vec![&set.right, &set.left];
    while let Some(query) = pending.pop() {
        match query {
            // Under UNION DISTINCT it makes no difference what its parts do with equal rows.
            QueryPlan::Set(inner) if inner.op == SetOp::Union && (inner.all || !set.all) => {
                pending.push(&inner.right);
                pending.push(&inner.left);
            }
            other => parts.push(other),
        }
    }
    parts
}

/// A set operation of EXPLAIN ANALYZE.
async fn run_set_measured(
    set: &SetPlan,
    txn: &mut Transaction,
    context: &mut Context,
    target: Target<'_>,
) -> Result<Ran, MysqlError> {
    let now = |context: &Context| context.measures.as_ref().map(|measures| measures.now()).unwrap_or_default();
    let began = now(context);
    let ran = run_set(set, txn, context, target).await?;
    let time = now(context).saturating_sub(began);
    if let Some(measures) = &mut context.measures {
        measures.add(set, BlockMeasure { delivered: ran.rows, time, ..BlockMeasure::default() });
    }
    Ok(ran)
}

async fn run_set(
    set: &SetPlan,
    txn: &mut Transaction,
    context: &mut Context,
    mut target: Target<'_>,
) -> Result<Ran, MysqlError> {
    let mut ran = Ran::default();
    if set.op == SetOp::Union && set.all {
        let parts = parts_of_union(set);
        for (number, part) in parts.iter().enumerate() {
            let last = number + 1 == parts.len();
            let target = if last { target.again() } else { target.before_others() };
            let part = run_query(part, txn, context, target).await?;
            ran.rows += part.rows;
            ran.refused = part.refused;
            if ran.refused {
                break;
            }
        }
        return Ok(ran);
    }
    let mut counts = Counts::new(&set.types, context);
    let mut rows = 0;
    if set.op == SetOp::Union {
        let mut sieve = |values: &[Value]| {
            let first = counts.add(values)?;
            rows += u64::from(first);
            Ok(first)
        };
        let parts = parts_of_union(set);
        for (number, part) in parts.iter().enumerate() {
            let last = number + 1 == parts.len();
            let target = if last { target.again() } else { target.before_others() };
            let part = run_query(part, txn, context, Target::Sieve(&mut sieve, Box::new(target))).await?;
            ran.refused = part.refused;
            if ran.refused {
                break;
            }
        }
        return Ok(Ran { rows, ..ran });
    }
    let mut count = |values: Vec<Value>| counts.add(&values).map(|_| true);
    run_query(&set.right, txn, context, Target::Each(&mut count)).await?;
    let mut sieve = |values: &[Value]| {
        let passes = match (set.op, set.all) {
            (SetOp::Intersect, true) => counts.take_one(values),
            (SetOp::Intersect, false) => counts.take_all(values),
            (SetOp::Except, true) => !counts.take_one(values),
            // A row that went on is not wanted again.
            (SetOp::Except, false) => counts.add(values)?,
            (SetOp::Union, _) => unreachable!("a UNION has been run"),
        };
        rows += u64::from(passes);
        Ok(passes)
    };
    let left = run_query(&set.left, txn, context, Target::Sieve(&mut sieve, Box::new(target.again()))).await?;
    Ok(Ran { rows, refused: left.refused })
}

/// The rows that stand for a table. With `wanted` no more than so many are needed.
pub(crate) fn rows_of<'r>(
    rows: &'r RowsOf,
    wanted: Option<u64>,
    txn: &'r mut Transaction,
    context: &'r mut Context,
) -> Running<'r, SharedRows> {
    Running(Box::pin(async move {
        match rows {
            RowsOf::Derived(query) => {
                let types = query.types();
                collect(query, &types, wanted, txn, context).await
            }
            RowsOf::Working(number) => {
                let rows = context.subqueries.working[*number].clone();
                Ok(rows.expect("a recursive part runs in a round of its table"))
            }
            RowsOf::Lateral(_) => unreachable!("a lateral table is run for each row before it"),
            RowsOf::Common(number) => {
                let parts = parts(context);
                let table = &parts.tables[*number];
                let mut values = Vec::new();
                for &parameter in &table.reads {
                    append_exact(context.parameters[parameter].as_ref(), &mut values);
                }
                match context.subqueries.tables[*number].take() {
                    Some(known) if known.values == values => {
                        let rows = known.rows.clone();
                        context.subqueries.tables[*number] = Some(known);
                        return Ok(rows);
                    }
                    Some(known) => {
                        drop(known.rows);
                        context.subqueries.kept -= known.bytes;
                        context.budget.memory.give(known.bytes);
                    }
                    None => {}
                }
                let (rows, bytes) = run_table(table, *number, txn, context).await?;
                context.subqueries.tables[*number] = Some(CommonRows { values, rows: rows.clone(), bytes });
                Ok(rows)
            }
        }
    }))
}

/// Runs the query of a table.
pub(crate) async fn collect(
    query: &QueryPlan,
    types: &[DataType],
    wanted: Option<u64>,
    txn: &mut Transaction,
    context: &mut Context,
) -> Result<SharedRows, MysqlError> {
    let mut rows = Vec::new();
    let memory = context.budget.memory.clone();
    let mut each = |mut values: Vec<Value>| {
        settle(&mut values, types);
        memory.take(values_bytes(&values) + 24)?;
        rows.push(values);
        Ok(wanted.is_none_or(|wanted| (rows.len() as u64) < wanted))
    };
    run_query(query, txn, context, Target::Each(&mut each)).await?;
    Ok(Arc::new(rows))
}

/// What a table keeps of its rows: a DECIMAL has the digits that its column shows.
fn settle(values: &mut [Value], types: &[DataType]) {
    for (value, ty) in values.iter_mut().zip(types) {
        if let Value::Decimal(decimal) = value {
            *decimal = shown(*decimal, ty);
        }
    }
}

/// Makes the values of a recursive row fit the columns that the seed has given the table.
struct Fitting<'a> {
    table: &'a CommonTablePlan,
    strict: bool,
    /// Rows of the table so far.
    rows: u64,
    warnings: Vec<MysqlError>,
}

impl Fitting<'_> {
    fn fit(&mut self, values: &mut [Value]) -> Result<(), MysqlError> {
        for (at, (value, ty)) in values.iter_mut().zip(&self.table.types).enumerate() {
            let (fitting, code, what) = match value {
                Value::Str(text) if ty.kind == TypeKind::VarChar && text.len() > ty.length as usize => {
                    match text.char_indices().nth(ty.length as usize) {
                        Some((end, _)) => (Value::Str(text[..end].to_string()), codes::DATA_TOO_LONG, "Data too long"),
                        None => continue,
                    }
                }
                Value::Bytes(bytes) if ty.kind == TypeKind::VarBinary && bytes.len() > ty.length as usize => {
                    (Value::Bytes(bytes[..ty.length as usize].to_vec()), codes::DATA_TOO_LONG, "Data too long")
                }
                Value::Decimal(decimal) if ty.kind == TypeKind::Decimal => {
                    match decimal.to_precision(ty.precision, ty.scale) {
                        Ok(_) => continue,
                        Err(_) => {
                            let most = Decimal::largest(ty.precision, ty.scale);
                            let most = if decimal.is_negative() { -most } else { most };
                            (Value::Decimal(most), codes::WARN_DATA_OUT_OF_RANGE, "Out of range value")
                        }
                    }
                }
                Value::Int(_) | Value::UInt(_) => match fitting_integer(value, ty) {
                    (fitting, true) => {
                        *value = fitting;
                        continue;
                    }
                    (fitting, false) => (fitting, codes::WARN_DATA_OUT_OF_RANGE, "Out of range value"),
                },
                _ => continue,
            };
            let message = |what: &str| format!("{what} for column '{}' at row {}", self.table.names[at], self.rows);
            if self.strict {
                return Err(MysqlError::new(code, message(what)));
            }
            if self.warnings.len() < MOST_WARNINGS {
                let cut = code == codes::DATA_TOO_LONG;
                let (code, what) = if cut { (codes::WARN_DATA_TRUNCATED, "Data truncated") } else { (code, what) };
                self.warnings.push(MysqlError::new(code, message(what)));
            }
            *value = fitting;
        }
        Ok(())
    }
}

/// An integer as a column of this type keeps it, and whether it is the same number: the nearest one in its range, no year as
/// the year zero.
fn fitting_integer(value: &Value, ty: &DataType) -> (Value, bool) {
    let Some(number) = value.as_ref().as_integer() else { return (value.clone(), true) };
    if ty.kind == TypeKind::Year {
        let year = year_number(value.as_ref());
        return (Value::UInt(year.unwrap_or(0).unsigned_abs()), year.is_some());
    }
    let range = if ty.is_integer() { ty.integer_range() } else { None };
    let Some((least, most)) = range else { return (value.clone(), true) };
    let kept = number.clamp(least, most);
    let fitting = if ty.unsigned { Value::UInt(kept as u64) } else { Value::Int(kept as i64) };
    (fitting, kept == number)
}

/// Warnings that one round of a recursive table keeps.
const MOST_WARNINGS: usize = 64;

/// Runs a query of a common table; gives the rows that are to be kept, `most` of them.
async fn run_part(
    query: &QueryPlan,
    types: &[DataType],
    mut fitting: Option<&mut Fitting<'_>>,
    most: u64,
    mut known: Option<&mut Counts<'_>>,
    txn: &mut Transaction,
    context: &mut Context,
) -> Result<SharedRows, MysqlError> {
    let mark = Mark::set(context);
    let memory = context.budget.memory.clone();
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let before = known.as_ref().map_or(0, |known| known.bytes);
    let mut each = |mut values: Vec<Value>| {
        settle(&mut values, types);
        if let Some(fitting) = &mut fitting {
            fitting.rows += 1;
            fitting.fit(&mut values)?;
        }
        if let Some(known) = &mut known
            && !known.add(&values)?
        {
            return Ok(true);
        }
        let taken = values_bytes(&values) + 24;
        memory.take(taken)?;
        bytes += taken;
        rows.push(values);
        Ok((rows.len() as u64) < most)
    };
    if most > 0 {
        run_query(query, txn, context, Target::Each(&mut each)).await?;
    }
    let keys = known.map_or(0, |known| known.bytes) - before;
    context.subqueries.kept += bytes + keys;
    mark.release(context);
    Ok(Arc::new(rows))
}

/// The rows of a common table, and what they take of the statement's memory.
async fn run_table(
    table: &CommonTablePlan,
    number: usize,
    txn: &mut Transaction,
    context: &mut Context,
) -> Result<(SharedRows, usize), MysqlError> {
    let bytes_of = |rows: &[Vec<Value>]| rows.iter().map(|row| values_bytes(row) + 24).sum::<usize>();
    let Some(recursive) = &table.recursive else {
        let rows = run_part(&table.seed, &table.types, None, u64::MAX, None, txn, context).await?;
        let bytes = bytes_of(&rows);
        return Ok((rows, bytes));
    };
    let most = match context.variables.get(Scope::Default, "cte_max_recursion_depth")? {
        Value::UInt(most) => most,
        Value::Int(most) => most.max(0) as u64,
        other => unreachable!("cte_max_recursion_depth is {other:?}"),
    };
    let mut known = (!recursive.all).then(|| Counts::new(&table.types, context));
    let mut rounds = Vec::new();
    let offset = recursive.offset.as_ref().map_or(Ok(0), |offset| row_count(offset, context))?;
    let limit = recursive.limit.as_ref().map_or(Ok(u64::MAX), |limit| row_count(limit, context))?;
    // Rows that are still wanted, those before OFFSET included.
    let mut wanted = limit.saturating_add(offset);
    let strict = context.sql_mode.strict;
    let mut fitting = Fitting { table, strict, rows: 0, warnings: Vec::new() };
    let mut added = run_part(&table.seed, &table.types, None, wanted, known.as_mut(), txn, context).await?;
    fitting.rows = added.len() as u64;
    while !added.is_empty() {
        wanted = wanted.saturating_sub(added.len() as u64);
        rounds.push(added.clone());
        let round = rounds.len() as u64;
        if round > most {
            return Err(MysqlError::new(
                RECURSION_DEPTH,
                format!(
                    "Recursive query aborted after {round} iterations. \
                     Try increasing @@cte_max_recursion_depth to a larger value."
                ),
            ));
        }
        if is_interrupted(txn) {
            return Err(NodeError::Interrupted.into());
        }
        context.budget.work(ROUND_ROWS * 256)?;
        turn(ROUND_ROWS, txn, context).await?;
        context.subqueries.working[number] = Some(added);
        added =
            run_part(&recursive.query, &table.types, Some(&mut fitting), wanted, known.as_mut(), txn, context).await?;
        for warning in fitting.warnings.drain(..) {
            context.warn(warning.code, warning.message);
        }
    }
    context.subqueries.working[number] = None;
    // The keys are free again.
    context.subqueries.kept -= known.map_or(0, |known| known.bytes);
    let mut rows = Vec::with_capacity(rounds.iter().map(|rows| rows.len()).sum());
    for round in rounds {
        rows.extend(Arc::try_unwrap(round).unwrap_or_else(|shared| shared.to_vec()));
    }
    let bytes = bytes_of(&rows);
    if offset > 0 {
        rows.drain(..usize::try_from(offset).unwrap_or(usize::MAX).min(rows.len()));
    }
    Ok((Arc::new(rows), bytes))
}
