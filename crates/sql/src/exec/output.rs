//! What happens to joined rows: grouping, HAVING, projection, DISTINCT, sorting, LIMIT, and the way to the client or to an INSERT.
//!
//! The plain case (no grouping, DISTINCT or sorting) writes a row straight from where its columns lie. Everything that is kept counts
//! against the statement's [`Memory`].

use super::group::Grouper;
use super::memory::{Memory, values_bytes};
use super::sort::{Sorter, append_key};
use crate::expr::{Columns, Context, Expr, ExprKind, NoColumns};
use crate::plan::model::SelectPlan;
use rauk_node::Transaction;
use rauk_types::error::codes;
use rauk_types::result::ResultSink;
use rauk_types::{MysqlError, Value, ValueRef};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// Results are flushed when so many bytes wait.
const FLUSH_BYTES: usize = 256 << 10;

pub(crate) enum Target<'a> {
    Sink(&'a mut dyn ResultSink),
    /// For INSERT … SELECT.
    Rows(&'a mut Vec<Vec<Value>>),
}

pub(crate) struct Output<'a> {
    plan: &'a SelectPlan,
    target: Target<'a>,
    grouper: Option<Grouper<'a>>,
    distinct: Option<FxHashSet<Box<[u8]>>>,
    sorter: Option<Sorter>,
    memory: Option<Memory>,
    offset: u64,
    limit: u64,
    /// Rows that reached LIMIT, and rows that passed it.
    arrived: u64,
    delivered: u64,
    key: Vec<u8>,
    /// DISTINCT and ORDER BY have the same keys, so that one encoding serves both.
    distinct_is_order: bool,
    done: bool,
}

impl<'a> Output<'a> {
    pub fn new(plan: &'a SelectPlan, target: Target<'a>, context: &mut Context) -> Result<Self, MysqlError> {
        let limit = plan.limit.as_ref().map(|l| row_count(l, context)).transpose()?.unwrap_or(u64::MAX);
        let offset = plan.offset.as_ref().map(|o| row_count(o, context)).transpose()?.unwrap_or(0);
        let keeps =
            plan.grouping.is_some() || plan.distinct || !plan.order.is_empty() || matches!(target, Target::Rows(_));
        let memory = keeps.then(|| Memory::of_session(context));
        let sorter = match &memory {
            Some(memory) if !plan.order.is_empty() => {
                let keep = if plan.calc_found_rows { u64::MAX } else { limit.saturating_add(offset) };
                Some(Sorter::new(usize::try_from(keep).unwrap_or(usize::MAX), memory.clone()))
            }
            _ => None,
        };
        let grouper = match (&plan.grouping, &memory) {
            (Some(grouping), Some(memory)) => {
                Some(Grouper::new(grouping, plan.first_row_only, memory.clone(), context))
            }
            _ => None,
        };
        Ok(Output {
            done: limit == 0 && !plan.calc_found_rows,
            plan,
            target,
            grouper,
            distinct: plan.distinct.then(FxHashSet::default),
            sorter,
            memory,
            offset,
            limit,
            arrived: 0,
            delivered: 0,
            key: Vec::new(),
            distinct_is_order: plan.order.len() == plan.items.len()
                && plan.order.iter().zip(&plan.items).all(|(key, item)| !key.descending && key.expr == *item),
        })
    }

    /// Nothing more is wanted.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Rows go to the client as they come.
    pub fn streams(&self) -> bool {
        self.grouper.is_none() && self.sorter.is_none() && matches!(self.target, Target::Sink(_))
    }

    /// How many rows end the statement, when the first ones that come do.
    pub fn rows_wanted(&self) -> Option<u64> {
        let streams = self.grouper.is_none() && self.sorter.is_none() && self.distinct.is_none();
        (streams && self.limit < u64::MAX && !self.plan.calc_found_rows).then(|| self.limit.saturating_add(self.offset))
    }

    pub fn memory(&mut self, context: &Context) -> Memory {
        self.memory.get_or_insert_with(|| Memory::of_session(context)).clone()
    }

    pub fn found_rows(&self) -> u64 {
        if self.plan.calc_found_rows { self.arrived } else { self.delivered }
    }

    /// Takes a joined row.
    pub fn push(&mut self, row: &dyn Columns, context: &mut Context) -> Result<(), MysqlError> {
        match &mut self.grouper {
            Some(grouper) => {
                if grouper.push(row, context)? {
                    self.done = true;
                }
                Ok(())
            }
            None => self.emit(row, context),
        }
    }

    /// Takes a joined row or a group.
    fn emit(&mut self, row: &dyn Columns, context: &mut Context) -> Result<(), MysqlError> {
        let plan = self.plan;
        if let Some(having) = &plan.having
            && !having.eval_bool(row, context)?
        {
            return Ok(());
        }
        if let Some(distinct) = &mut self.distinct {
            self.key.clear();
            for item in &plan.items {
                with_value(item, row, context, |value| append_key(value, &item.ty, false, &mut self.key))?;
            }
            if distinct.contains(self.key.as_slice()) {
                return Ok(());
            }
            if let Some(memory) = &self.memory {
                memory.take(self.key.len() + 40)?;
            }
            distinct.insert(self.key.as_slice().into());
        }
        if let Some(sorter) = &mut self.sorter {
            self.arrived += 1;
            if self.distinct.is_none() || !self.distinct_is_order {
                self.key.clear();
                for key in &plan.order {
                    with_value(&key.expr, row, context, |value| {
                        append_key(value, &key.expr.ty, key.descending, &mut self.key);
                    })?;
                }
            }
            if sorter.wants(&self.key) {
                let values = project(plan, row, context)?;
                sorter.push(&self.key, values)?;
            }
            return Ok(());
        }
        self.arrived += 1;
        if self.arrived <= self.offset || self.delivered >= self.limit {
            return Ok(());
        }
        self.delivered += 1;
        if self.delivered >= self.limit && !plan.calc_found_rows {
            self.done = true;
        }
        match &mut self.target {
            Target::Rows(rows) => {
                let values = project(plan, row, context)?;
                if let Some(memory) = &self.memory {
                    memory.take(values_bytes(&values) + 24)?;
                }
                rows.push(values);
            }
            Target::Sink(sink) => write_row(plan, row, context, *sink)?,
        }
        Ok(())
    }

    /// Ends the result: groups and sorted rows are delivered now. All tables have been read.
    pub async fn finish(&mut self, txn: &mut Transaction, context: &mut Context) -> Result<(), MysqlError> {
        if matches!(self.target, Target::Sink(_)) {
            txn.end_reading();
        }
        if let Some(grouper) = self.grouper.take() {
            self.done = self.limit == 0 && !self.plan.calc_found_rows;
            let groups = grouper.finish(context)?;
            for index in 0..groups.len() {
                if self.done {
                    break;
                }
                self.emit(&groups.row(index), context)?;
                self.flush_if_large(txn).await?;
            }
        }
        if let Some(sorter) = self.sorter.take() {
            for row in sorter.finish().into_iter().skip(usize::try_from(self.offset).unwrap_or(usize::MAX)) {
                if self.delivered >= self.limit {
                    break;
                }
                self.delivered += 1;
                match &mut self.target {
                    Target::Rows(rows) => rows.push(row.values),
                    Target::Sink(sink) => {
                        let values: SmallVec<[ValueRef<'_>; 16]> = row.values.iter().map(Value::as_ref).collect();
                        sink.row(&values);
                    }
                }
                self.flush_if_large(txn).await?;
            }
        }
        Ok(())
    }

    /// Sends what has gathered, after making sure that it is durable.
    pub async fn flush_if_large(&mut self, txn: &mut Transaction) -> Result<(), MysqlError> {
        if let Target::Sink(sink) = &mut self.target
            && sink.buffered() >= FLUSH_BYTES
        {
            txn.wait_observed().await?;
            sink.flush().await?;
        }
        Ok(())
    }
}

/// Calls `then` with the value of an expression; a column is not copied.
#[inline]
pub(crate) fn with_value(
    expr: &Expr,
    row: &dyn Columns,
    context: &mut Context,
    then: impl FnOnce(ValueRef<'_>),
) -> Result<(), MysqlError> {
    match expr.kind {
        ExprKind::Column { table, column } => then(row.column(table, column)),
        _ => expr.eval_ref(row, context, then)?,
    }
    Ok(())
}

fn project(plan: &SelectPlan, row: &dyn Columns, context: &mut Context) -> Result<Vec<Value>, MysqlError> {
    plan.items
        .iter()
        .map(|item| match item.kind {
            ExprKind::Column { table, column } => Ok(row.column(table, column).to_owned()),
            _ => item.eval(row, context),
        })
        .collect()
}

fn write_row(
    plan: &SelectPlan,
    row: &dyn Columns,
    context: &mut Context,
    sink: &mut dyn ResultSink,
) -> Result<(), MysqlError> {
    let mut computed: SmallVec<[Value; 4]> = SmallVec::new();
    for item in &plan.items {
        if !is_column(item) {
            computed.push(item.eval(row, context)?);
        }
    }
    let mut next = computed.iter();
    let values: SmallVec<[ValueRef<'_>; 16]> = plan
        .items
        .iter()
        .map(|item| match item.kind {
            ExprKind::Column { table, column } => row.column(table, column),
            _ => next.next().map_or(ValueRef::Null, Value::as_ref),
        })
        .collect();
    sink.row(&values);
    Ok(())
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Column { .. })
}

/// The value of LIMIT or OFFSET.
pub(crate) fn row_count(expr: &Expr, context: &mut Context) -> Result<u64, MysqlError> {
    let value = expr.eval(&NoColumns, context)?;
    let count = match &value {
        Value::Int(v) => u64::try_from(*v).ok(),
        Value::UInt(v) => Some(*v),
        // Clients that bind everything as text.
        Value::Str(text) => text.trim().parse().ok(),
        _ => None,
    };
    count.ok_or_else(|| MysqlError::new(codes::WRONG_ARGUMENTS, "Incorrect arguments to LIMIT"))
}
