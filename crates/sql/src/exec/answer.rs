//! Running the queries that expressions wait for.
//!
//! [`with_answers`] evaluates, and as long as an answer is missing undoes what the evaluation has changed, runs the query and evaluates again. Where
//! several expressions are evaluated one after another and something is kept in between (grouping, output), [`Late`] evaluates those with subqueries
//! before, for the answers only, so that the evaluation that counts finds them all. Where the answers of all subqueries
//! are there already, nothing is evaluated before; when all of a block are uncorrelated, that is so after the first row.
//! A subquery is run inside of the statement's transaction and sees its snapshot.
//!
//! What a query has taken of the statement's memory is free when it ends, but for what is kept between queries ([`Mark`]).

use super::output::Target;
use super::query::run_query;
use super::row::Joined;
use super::scan::{YIELD_ROWS, is_interrupted, passes, yield_now};
use crate::expr::key_class;
use crate::expr::value_key::{append_class_key, in_class};
use crate::expr::{
    Answer, Awaited, Columns, CompareOp, Comparison, Context, Expr, ExprKind, Missing, RowSet, Subquery, SubqueryId,
    Want, compare_values, is_pending,
};
use crate::hash::KeySet;
use crate::memory::{Memory, values_bytes};
use crate::physical::model::{Parts, SelectPlan, SubqueryPlan};
use rauk_node::{NodeError, Transaction};
use rauk_types::error::ErrorClass;
use rauk_types::error::codes;
use rauk_types::{DataType, MysqlError, Value};
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// Work of starting a query, in rows.
const QUERY_ROWS: usize = 32;

/// Evaluates; queries that it waits for are run.
pub(crate) async fn with_answers<R>(
    txn: &mut Transaction,
    context: &mut Context,
    mut evaluate: impl FnMut(&mut Context) -> Result<R, MysqlError>,
) -> Result<R, MysqlError> {
    if !context.subqueries.is_active() {
        return evaluate(context);
    }
    loop {
        let effects = Effects::begin(context);
        match evaluate(context) {
            Err(error) if is_pending(&error) => effects.undo(context),
            other => {
                context.subqueries.end_undo();
                return other;
            }
        }
        run_awaited(txn, context, false).await?;
    }
}

/// What an evaluation changes, as it was before.
struct Effects {
    warnings: usize,
    warning_count: u64,
    new_last_insert_id: Option<u64>,
    random_state: u64,
    seeded_random: Vec<(i64, u64, u64)>,
    user_variable_bytes: usize,
    memory: usize,
}

impl Effects {
    fn begin(context: &mut Context) -> Effects {
        context.subqueries.begin_undo();
        Effects {
            warnings: context.warnings.len(),
            warning_count: context.warning_count,
            new_last_insert_id: context.new_last_insert_id,
            random_state: context.random_state,
            seeded_random: context.seeded_random.clone(),
            user_variable_bytes: context.user_variable_bytes,
            memory: context.budget.memory.used(),
        }
    }

    fn undo(self, context: &mut Context) {
        context.warnings.truncate(self.warnings);
        context.warning_count = self.warning_count;
        context.new_last_insert_id = self.new_last_insert_id;
        context.random_state = self.random_state;
        context.seeded_random = self.seeded_random;
        for (name, old) in context.subqueries.end_undo().into_iter().rev() {
            match old {
                Some(value) => context.user_variables.insert(name, value),
                None => context.user_variables.remove(&name),
            };
        }
        context.subqueries.give_waited_back();
        context.user_variable_bytes = self.user_variable_bytes;
        // Values that waited for others when it ended.
        let memory = &context.budget.memory;
        memory.give(memory.used().saturating_sub(self.memory));
    }
}

/// The statement's memory when a query begins.
pub(crate) struct Mark {
    used: usize,
    kept: usize,
}

impl Mark {
    pub fn set(context: &Context) -> Mark {
        Mark { used: context.budget.memory.used(), kept: context.subqueries.kept }
    }

    /// The query is over: what it took is free, but for what is kept.
    pub fn release(self, context: &Context) {
        let memory = &context.budget.memory;
        let stays = (self.used + context.subqueries.kept).saturating_sub(self.kept);
        memory.give(memory.used().saturating_sub(stays));
    }
}

/// Counts work that is done in many short queries, and lets others run now and then; 1317, 3024.
pub(crate) async fn turn(rows: usize, txn: &Transaction, context: &mut Context) -> Result<(), MysqlError> {
    context.subqueries.rows += rows;
    if context.subqueries.rows >= YIELD_ROWS {
        context.subqueries.rows = 0;
        if is_interrupted(txn) {
            return Err(NodeError::Interrupted.into());
        }
        yield_now(context).await;
    }
    Ok(())
}

/// A statement with other queries begins.
pub(crate) fn begin(parts: &Arc<Parts>, context: &mut Context) {
    context.subqueries.begin(parts.clone(), parts.subqueries.len(), parts.tables.len());
}

/// The other queries of the running statement, which [`begin`] gave.
pub(crate) fn parts(context: &Context) -> Arc<Parts> {
    let plans = context.subqueries.plans.clone().expect("a statement that reads another query has parts");
    plans.downcast().expect("nothing but parts is kept there")
}

/// Runs what the last evaluation waits for. `alone`: it is the list of a SELECT without FROM. There an interrupted SLEEP gives 1;
/// elsewhere it ends the statement.
async fn run_awaited(txn: &mut Transaction, context: &mut Context, alone: bool) -> Result<(), MysqlError> {
    let awaited = context.subqueries.missing.take().expect("an evaluation that waits says for what");
    match awaited {
        Awaited::Answer(missing) => run_missing(missing, txn, context).await,
        Awaited::Sleep { call, seconds } => {
            let memory = context.budget.memory.clone();
            let interrupted = memory.sleep(sleeping_time(seconds)).await;
            if interrupted && !alone {
                memory.look()?;
                return Err(NodeError::Interrupted.into());
            }
            context.subqueries.has_waited(call, Value::Int(interrupted.into()));
            Ok(())
        }
        Awaited::Lock { call, request } => {
            let memory = context.budget.memory.clone();
            let value = context.user_locks.run(request, &memory).await?;
            context.subqueries.has_waited(call, value);
            Ok(())
        }
    }
}

/// Nobody sleeps longer (a timer's range).
const MAX_SLEEP: Duration = Duration::from_secs(365 * 24 * 3600);

fn sleeping_time(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(MAX_SLEEP).min(MAX_SLEEP)
}

/// Runs a subquery and keeps its answer.
async fn run_missing(missing: Missing, txn: &mut Transaction, context: &mut Context) -> Result<(), MysqlError> {
    let Missing { id, outer, key, want } = missing;
    turn(QUERY_ROWS, txn, context).await?;
    let parts = parts(context);
    let plan = &parts.subqueries[id.0 as usize];
    assert_eq!(outer.len(), plan.outer, "as many outer values as columns");
    for (place, value) in context.parameters[plan.first_outer..].iter_mut().zip(outer) {
        *place = value;
    }
    let mark = Mark::set(context);
    let answer = match answer(plan, want, txn, context).await {
        Ok(answer) => answer,
        // IGNORE: as if it had given no row.
        Err(error) if error.code == codes::SUBQUERY_NO_1_ROW && context.ignores_errors => {
            context.warn(error.code, error.message);
            Answer::Row(vec![Value::Null; plan.types.len()])
        }
        Err(error) if ends_statement(&error) => return Err(error),
        Err(error) => {
            assert!(!is_pending(&error), "a query waits for its own subqueries");
            Answer::Error(error)
        }
    };
    mark.release(context);
    let memory = context.budget.memory.clone();
    context.subqueries.keep(id, key, answer, &memory)
}

/// Errors that are not those of values.
pub(crate) fn ends_statement(error: &MysqlError) -> bool {
    const QUERY_TIMEOUT: u16 = 3024;
    error.class() == ErrorClass::Temporary
        || matches!(error.code, codes::QUERY_INTERRUPTED | QUERY_TIMEOUT | codes::OUT_OF_SORTMEMORY)
}

async fn answer(
    plan: &SubqueryPlan,
    want: Want,
    txn: &mut Transaction,
    context: &mut Context,
) -> Result<Answer, MysqlError> {
    match want {
        Want::Exists => {
            let mut exists = false;
            let mut each = |_: Vec<Value>| {
                exists = true;
                Ok(false)
            };
            run_query(&plan.query, txn, context, Target::Each(&mut each)).await?;
            Ok(Answer::Exists(exists))
        }
        Want::Row(columns) => {
            assert_eq!(columns, plan.types.len(), "both sides have as many columns");
            let mut row = None;
            let mut several = false;
            let mut each = |values: Vec<Value>| {
                several = row.is_some();
                row.get_or_insert(values);
                Ok(!several)
            };
            run_query(&plan.query, txn, context, Target::Each(&mut each)).await?;
            if several {
                return Err(MysqlError::new(codes::SUBQUERY_NO_1_ROW, "Subquery returns more than 1 row"));
            }
            Ok(Answer::Row(row.unwrap_or_else(|| vec![Value::Null; columns])))
        }
        Want::Rows { left, op, by, all } => {
            let mut gather = Gather::new(&left, (op, all), &by, &plan.types, context.budget.memory.clone());
            let mut each = |values: Vec<Value>| gather.push(values).map(|()| true);
            run_query(&plan.query, txn, context, Target::Each(&mut each)).await?;
            Ok(Answer::Rows(gather.set))
        }
    }
}

/// Brings rows into what a quantified comparison needs.
struct Gather {
    set: RowSet,
    /// Of one column that is compared by order: its class; the rows are the least, the greatest and one NULL.
    extremes: Option<DataType>,
    has_null: bool,
    memory: Memory,
}

impl Gather {
    fn new(
        left: &[DataType],
        (op, all): (CompareOp, bool),
        by: &[Comparison],
        right: &[DataType],
        memory: Memory,
    ) -> Gather {
        assert!(left.len() == right.len() && by.len() == left.len(), "both sides have as many columns");
        let classes: Option<Vec<DataType>> =
            by.iter().zip(left).zip(right).map(|((by, left), right)| key_class(*by, left, right)).collect();
        let (keys, extremes) = match classes {
            Some(classes) if matches!((op, all), (CompareOp::Eq, false) | (CompareOp::Ne, true)) => {
                (Some((classes, KeySet::default())), None)
            }
            Some(classes) if classes.len() == 1 && op != CompareOp::NullSafeEq => (None, Some(classes[0])),
            _ => (None, None),
        };
        Gather { set: RowSet { keys, empty: true, ..RowSet::default() }, extremes, has_null: false, memory }
    }

    fn push(&mut self, values: Vec<Value>) -> Result<(), MysqlError> {
        self.set.empty = false;
        let null = values.iter().any(Value::is_null);
        if values.len() == 1 && null {
            if !std::mem::replace(&mut self.has_null, true) {
                self.set.rows.push(values);
            }
            return Ok(());
        }
        if let Some((classes, keys)) = &mut self.set.keys {
            if !null {
                let mut key = Vec::new();
                for (value, class) in values.iter().zip(classes.iter()) {
                    append_class_key(value.as_ref(), class, &mut key);
                }
                if keys.contains(key.as_slice()) {
                    return Ok(());
                }
                self.memory.take(key.len() + 40)?;
                keys.insert(key.into_boxed_slice());
                // Of several values on the left some may be NULL.
                if values.len() > 1 {
                    self.memory.take(values_bytes(&values) + 48)?;
                    self.set.whole.push(values);
                }
                return Ok(());
            }
        } else if let Some(class) = &self.extremes {
            let order = |a: &[Value], b: &[Value]| {
                compare_values(in_class(a[0].as_ref(), class), in_class(b[0].as_ref(), class), class)
            };
            // The rows are the least and the greatest, then the NULL; or fewer.
            let known = self.set.rows.iter().take_while(|row| !row[0].is_null()).count();
            match known {
                0 => self.set.rows.insert(0, values),
                _ if order(&values, &self.set.rows[0]) == Ordering::Less => {
                    if known == 1 {
                        self.set.rows.insert(0, values);
                    } else {
                        self.set.rows[0] = values;
                    }
                }
                _ if order(&values, &self.set.rows[known - 1]) == Ordering::Greater => {
                    if known == 1 {
                        self.set.rows.insert(1, values);
                    } else {
                        self.set.rows[1] = values;
                    }
                }
                _ => {}
            }
            return Ok(());
        }
        self.memory.take(values_bytes(&values) + 48)?;
        self.set.rows.push(values);
        Ok(())
    }
}

/// Runs the uncorrelated subqueries of expressions that are evaluated where nothing can wait.
pub(crate) async fn run_uncorrelated<'e>(
    exprs: impl IntoIterator<Item = &'e Expr>,
    txn: &mut Transaction,
    context: &mut Context,
) -> Result<(), MysqlError> {
    if !context.subqueries.is_active() {
        return Ok(());
    }
    let mut wanted = Vec::new();
    for expr in exprs {
        for_each_subquery(expr, &mut |subquery| wanted.extend(subquery.uncorrelated()));
    }
    for missing in wanted {
        if !context.subqueries.has_answer(missing.id, &missing.key) {
            run_missing(missing, txn, context).await?;
        }
    }
    Ok(())
}

/// Whether the answers that are there decide that conditions do not hold on a row. Changes nothing.
pub(crate) fn known_to_fail(filters: &[Expr], row: &Joined<'_>, context: &mut Context) -> bool {
    let effects = Effects::begin(context);
    let result = passes(filters, row, context);
    effects.undo(context);
    context.subqueries.missing = None;
    matches!(result, Ok(false))
}

/// Whether conditions may be evaluated on a row before it is their turn.
pub(crate) fn may_look_ahead(filters: &[Expr]) -> bool {
    fn reads_variable(expr: &Expr) -> bool {
        let mut found = matches!(expr.kind, ExprKind::UserVariable(_));
        expr.for_each_child(&mut |child| found = found || reads_variable(child));
        found
    }
    !filters.iter().any(|filter| is_volatile(filter) || reads_variable(filter))
}

fn for_each_waiting_call(expr: &Expr, visit: &mut dyn FnMut(i64)) {
    expr.waiting_call().into_iter().for_each(&mut *visit);
    expr.for_each_child(&mut |child| for_each_waiting_call(child, visit));
}

fn for_each_subquery(expr: &Expr, visit: &mut dyn FnMut(&Subquery)) {
    if let ExprKind::Subquery(subquery) = &expr.kind {
        visit(subquery);
    }
    expr.for_each_child(&mut |child| for_each_subquery(child, visit));
}

fn is_volatile(expr: &Expr) -> bool {
    let mut volatile = match &expr.kind {
        ExprKind::Function { function, .. } => function.volatile,
        ExprKind::AssignVariable { .. } => true,
        _ => false,
    };
    expr.for_each_child(&mut |child| volatile = volatile || is_volatile(child));
    volatile
}

/// Expressions of a block that are evaluated together, as far as they wait for subqueries.
#[derive(Default)]
pub(crate) struct Late<'a> {
    exprs: Vec<&'a Expr>,
    /// Something that is evaluated before a subquery may change which answer it needs.
    volatile: bool,
    /// The calls of SLEEP.
    sleeps: Vec<i64>,
    /// It is the list of the statement's only SELECT, which reads no table.
    alone: bool,
    /// The subqueries, when all of them are uncorrelated.
    uncorrelated: Option<Vec<SubqueryId>>,
    settled: bool,
}

impl<'a> Late<'a> {
    fn new(all: Vec<&'a Expr>) -> Late<'a> {
        let (mut ids, mut sleeps) = (Vec::new(), Vec::new());
        let mut correlated = false;
        let mut with_subqueries = Vec::new();
        for expr in &all {
            let before = ids.len() + sleeps.len();
            for_each_waiting_call(expr, &mut |call| sleeps.push(call));
            for_each_subquery(expr, &mut |subquery| {
                ids.push(subquery.id);
                correlated |= !subquery.outer.is_empty();
            });
            if ids.len() + sleeps.len() > before {
                with_subqueries.push(*expr);
            }
        }
        // What the others change decides what is evaluated.
        let volatile = !with_subqueries.is_empty() && all.iter().any(|e| is_volatile(e));
        let exprs = if volatile { all } else { with_subqueries };
        let uncorrelated = (!correlated && sleeps.is_empty()).then_some(ids);
        Late { settled: exprs.is_empty(), exprs, volatile, sleeps, alone: false, uncorrelated }
    }

    /// What a block evaluates for each joined row before it groups.
    pub fn of_grouping(plan: &'a SelectPlan) -> Late<'a> {
        let Some(grouping) = &plan.grouping else { return Late { settled: true, ..Late::default() } };
        let mut all: Vec<&Expr> = grouping.keys.iter().collect();
        for aggregate in &grouping.aggregates {
            all.extend(&aggregate.arguments);
            all.extend(aggregate.order_by.iter().map(|(expr, _)| expr));
        }
        Late::new(all)
    }

    /// What a block evaluates for each row that it gives, but HAVING.
    pub fn of_output(plan: &'a SelectPlan, alone: bool) -> Late<'a> {
        let late = Late::new(plan.items.iter().chain(plan.order.iter().map(|key| &key.expr)).collect());
        Late { alone, ..late }
    }

    /// Whether the answers of all subqueries are there: nothing waits, whatever is evaluated.
    fn is_answered(&self, row: &dyn Columns, context: &mut Context) -> bool {
        let mut answered = !self.volatile;
        for expr in &self.exprs {
            for_each_subquery(expr, &mut |subquery| answered = answered && subquery.is_answered(row, context));
        }
        answered
    }

    /// Runs what the expressions wait for on `row`. Their errors come when they are evaluated for good.
    pub async fn settle(
        &mut self,
        row: &(dyn Columns + Sync),
        txn: &mut Transaction,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        if self.settled {
            return Ok(());
        }
        context.subqueries.forget_waited(&self.sleeps);
        while !self.is_answered(row, context) {
            let effects = Effects::begin(context);
            let mut waits = false;
            for expr in &self.exprs {
                match expr.eval(row, context) {
                    Err(error) if is_pending(&error) => {
                        waits = true;
                        break;
                    }
                    _ => {}
                }
            }
            effects.undo(context);
            if !waits {
                break;
            }
            run_awaited(txn, context, self.alone).await?;
        }
        if let Some(ids) = &self.uncorrelated {
            self.settled = ids.iter().all(|id| context.subqueries.has_answer(*id, &[]));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::SubqueryTest;
    use crate::physical::model::{Parts, QueryPlan};
    use rauk_log::MemoryDisk;
    use rauk_node::{Config, Database, Threads, TxnOptions, block_on};
    use rauk_types::ValueRef;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

    /// Column 0 has a value; column 1 counts how often it is read.
    #[derive(Default)]
    struct Row {
        value: AtomicI64,
        reads: AtomicUsize,
    }

    impl Columns for Row {
        fn column(&self, _: usize, column: usize) -> ValueRef<'_> {
            if column == 1 {
                self.reads.fetch_add(1, Relaxed);
            }
            ValueRef::Int(self.value.load(Relaxed))
        }
    }

    #[test]
    fn what_has_its_answers_is_not_evaluated_before() {
        let column = |column| Expr {
            kind: ExprKind::Column { table: 0, column },
            ty: DataType::BIGINT,
            nullable: false,
            coercibility: 2,
        };
        let test = SubqueryTest::Quantified {
            left: vec![column(1)],
            op: CompareOp::Eq,
            by: vec![Comparison::Integer],
            all: false,
        };
        let subquery = Subquery { id: SubqueryId(0), outer: vec![column(0)], test };
        let expr = Expr { kind: ExprKind::Subquery(Box::new(subquery)), ..column(0) };
        let plan =
            SubqueryPlan { query: QueryPlan::Values(vec![]), first_outer: 0, outer: 1, types: vec![DataType::BIGINT] };
        let parts = Parts { subqueries: vec![plan], tables: vec![], parameters: 0, outer_columns: 1 };

        let runtime = Threads::start().unwrap();
        let database = Database::open(Config::default(), MemoryDisk::new(), runtime, &|_| {}).unwrap();
        let mut txn = database.begin(TxnOptions::default());
        let mut context = Context::new(Arc::new(crate::expr::tests::Variables));
        context.parameters = vec![Value::Null];
        begin(&Arc::new(parts), &mut context);
        let (mut late, row) = (Late::new(vec![&expr]), Row::default());
        // For each new value the query is run, after one evaluation that has not found its answer.
        for (value, reads) in [(5, 1), (5, 1), (7, 2), (5, 2), (7, 2), (8, 3)] {
            row.value.store(value, Relaxed);
            block_on(late.settle(&row, &mut txn, &mut context)).unwrap();
            assert_eq!(row.reads.load(Relaxed), reads, "{value}");
            assert_eq!(expr.eval(&row, &mut context).unwrap(), Value::Int(0));
            row.reads.fetch_sub(1, Relaxed);
        }
    }
}
