//! What a running statement keeps of its other queries, and how an expression uses their answers.
//!
//! Evaluation looks an answer up by the number of the subquery and by the values of the outer columns that it reads, encoded so that only identical
//! values are one key (a text in another case may give another answer). The executor puts answers in. It brings the rows of a quantified comparison into
//! the form that its comparison needs: for IN a set of keys, in which equal values have equal keys; for the other operators the least and the
//! greatest value, since no other one decides; where values of the two sides have no common key, all rows, compared one by one.
//!
//! What is kept counts against the statement's memory. A subquery that has more than [`MOST_ANSWERS`] of them loses them all and starts again; the
//! one that is wanted at the moment is put in after that, so evaluation always goes on.

use super::context::Context;
use super::context::UserVariable;
use super::convert::Result;
use super::eval::{Env, compare, with_parameters};
use super::{Awaited, Columns, CompareOp, Comparison, Expr, Missing, Subquery, SubqueryId, SubqueryTest, Val, pending};
use crate::expr::value_key::append_class_key;
use crate::hash::{KeyMap, KeySet};
use crate::memory::values_bytes;
use rauk_types::{DataType, MysqlError, Value, ValueRef};
use std::any::Any;
use std::sync::Arc;

/// Answers that are kept of one subquery.
const MOST_ANSWERS: usize = 8192;
/// What an answer takes beside its key and its rows.
const ANSWER_BYTES: usize = 160;

/// Rows that several readers share.
pub(crate) type SharedRows = Arc<Vec<Vec<Value>>>;

/// The rows of a common table.
pub(crate) struct CommonRows {
    /// The values of the outer columns that it reads, encoded exactly.
    pub values: Vec<u8>,
    pub rows: SharedRows,
    /// What of the statement's memory they take, kept until the values change.
    pub bytes: usize,
}

/// The plans of the statement's other queries. Only the executor looks into them: expressions lie below plans.
pub(crate) type Plans = Arc<dyn Any + Send + Sync>;

/// The other queries of the running statement and what is known of their rows.
#[derive(Default)]
pub struct Subqueries {
    pub(crate) plans: Option<Plans>,
    /// What the last evaluation lacked.
    pub(crate) missing: Option<Awaited>,
    /// Calls of SLEEP and the like that have waited, oldest first, and what each gives; an evaluation takes what it uses.
    waited: Vec<(i64, Value)>,
    /// What the present evaluation has taken of them.
    taken: Vec<(i64, Value)>,
    answers: Vec<KeyMap<Arc<Answer>>>,
    /// Bytes of each subquery's answers.
    answer_bytes: Vec<usize>,
    /// Common tables that have been run, by number.
    pub(crate) tables: Vec<Option<CommonRows>>,
    /// Rows that the last round of a recursive table added, by number.
    pub(crate) working: Vec<Option<SharedRows>>,
    /// Bytes of the statement's memory that stay in use when the query that is running ends.
    pub(crate) kept: usize,
    /// Rows since other tasks had their turn: many short queries are as long as one of many rows.
    pub(crate) rows: usize,
    /// User variables that the present evaluation has set, with the values before.
    undo: Option<Vec<(String, Option<UserVariable>)>>,
}

/// What a subquery gave for some outer values.
pub(crate) enum Answer {
    Error(MysqlError),
    Exists(bool),
    /// The only row; of no rows one of NULLs.
    Row(Vec<Value>),
    Rows(RowSet),
}

/// Keys of rows, and the types by which both sides are encoded.
pub(crate) type Keys = (Vec<DataType>, KeySet);

/// The rows of a quantified comparison.
#[derive(Default)]
pub(crate) struct RowSet {
    /// Of IN: the types by which both sides are encoded, and the keys of the rows without NULLs.
    pub keys: Option<Keys>,
    /// Rows that are compared one by one: with `keys` those that have a NULL.
    pub rows: Vec<Vec<Value>>,
    /// Rows of several columns that a key decides, unless the left side has a NULL.
    pub whole: Vec<Vec<Value>>,
    pub empty: bool,
}

/// How the executor is to bring rows into an answer.
#[derive(Clone, Debug)]
pub enum Want {
    Exists,
    /// One row of so many columns.
    Row(usize),
    Rows {
        left: Vec<DataType>,
        op: CompareOp,
        by: Vec<Comparison>,
        all: bool,
    },
}

impl Want {
    fn of(test: &SubqueryTest) -> Want {
        match test {
            SubqueryTest::Scalar => Want::Row(1),
            SubqueryTest::Exists => Want::Exists,
            SubqueryTest::Row { left, .. } => Want::Row(left.len()),
            SubqueryTest::Quantified { left, op, by, all } => {
                Want::Rows { left: left.iter().map(|e| e.ty).collect(), op: *op, by: by.clone(), all: *all }
            }
        }
    }
}

impl Subqueries {
    /// A statement begins.
    pub(crate) fn begin(&mut self, plans: Plans, subqueries: usize, tables: usize) {
        *self = Subqueries {
            plans: Some(plans),
            answers: (0..subqueries).map(|_| KeyMap::default()).collect(),
            answer_bytes: vec![0; subqueries],
            tables: (0..tables).map(|_| None).collect(),
            working: vec![None; tables],
            ..Subqueries::default()
        };
    }

    /// The statement is over.
    pub(crate) fn end(&mut self) {
        *self = Subqueries::default();
    }

    /// Whether the statement has other queries.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.plans.is_some()
    }

    pub(crate) fn has_answer(&self, id: SubqueryId, key: &[u8]) -> bool {
        self.answers[id.0 as usize].contains_key(key)
    }

    /// Keeps an answer.
    pub(crate) fn keep(
        &mut self,
        id: SubqueryId,
        key: Box<[u8]>,
        answer: Answer,
        memory: &crate::memory::Memory,
    ) -> Result<()> {
        let number = id.0 as usize;
        let bytes = key.len() + ANSWER_BYTES + answer.bytes();
        if self.answers[number].len() >= MOST_ANSWERS {
            self.forget(number, memory);
        }
        if memory.take(bytes).is_err() {
            self.forget(number, memory);
            memory.take(bytes)?;
        }
        self.kept += bytes;
        self.answer_bytes[number] += bytes;
        let old = self.answers[number].insert(key, Arc::new(answer));
        assert!(old.is_none(), "an answer that is there is not looked for");
        Ok(())
    }

    fn forget(&mut self, number: usize, memory: &crate::memory::Memory) {
        let bytes = std::mem::take(&mut self.answer_bytes[number]);
        memory.give(bytes);
        self.kept -= bytes;
        self.answers[number].clear();
    }

    /// User variables have other values: what was answered with the old ones does not hold.
    pub(crate) fn forget_all(&mut self, memory: &crate::memory::Memory) {
        for number in 0..self.answers.len() {
            if !self.answers[number].is_empty() {
                self.forget(number, memory);
            }
        }
        // Their rows are given back at the end of the statement.
        self.tables.iter_mut().for_each(|table| *table = None);
    }

    /// What a call of SLEEP or the like gives when it has waited. `None`: it has yet to wait.
    pub(crate) fn take_waited(&mut self, call: i64) -> Option<Value> {
        let at = self.waited.iter().position(|(waited, _)| *waited == call)?;
        let waited = self.waited.remove(at);
        let value = waited.1.clone();
        if self.undo.is_some() {
            self.taken.push(waited);
        }
        Some(value)
    }

    pub(crate) fn has_waited(&mut self, call: i64, value: Value) {
        self.waited.push((call, value));
    }

    /// For a new row calls wait again, though the last row has not used all.
    pub(crate) fn forget_waited(&mut self, calls: &[i64]) {
        self.waited.retain(|(call, _)| !calls.contains(call));
    }

    /// The evaluation is undone: it has used nothing.
    pub(crate) fn give_waited_back(&mut self) {
        self.taken.append(&mut self.waited);
        std::mem::swap(&mut self.taken, &mut self.waited);
    }

    /// From here on, changes of user variables can be undone.
    pub(crate) fn begin_undo(&mut self) {
        self.undo = Some(Vec::new());
        self.taken.clear();
    }

    /// Changes since `begin_undo`, newest last.
    pub(crate) fn end_undo(&mut self) -> Vec<(String, Option<UserVariable>)> {
        self.undo.take().unwrap_or_default()
    }

    pub(crate) fn changes_variable(&mut self, name: &str, old: Option<&UserVariable>) {
        if let Some(undo) = &mut self.undo {
            undo.push((name.to_string(), old.cloned()));
        }
    }
}

impl Answer {
    fn bytes(&self) -> usize {
        match self {
            Answer::Error(error) => error.message.len(),
            Answer::Exists(_) => 0,
            Answer::Row(values) => values_bytes(values),
            Answer::Rows(set) => {
                let keys = set.keys.as_ref().map_or(0, |(_, keys)| keys.iter().map(|key| key.len() + 40).sum());
                keys + set.rows.iter().chain(&set.whole).map(|row| values_bytes(row) + 24).sum::<usize>()
            }
        }
    }
}

/// Appends a value so that only identical values have equal bytes.
pub(crate) fn append_exact(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let mut text = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        out.extend_from_slice(bytes);
    };
    match value {
        ValueRef::Null => out.push(0),
        ValueRef::Int(v) => text(1, &v.to_be_bytes()),
        ValueRef::UInt(v) => text(2, &v.to_be_bytes()),
        ValueRef::Double(v) => text(3, &v.to_bits().to_be_bytes()),
        ValueRef::Decimal(v) => {
            let mut digits = Vec::with_capacity(72);
            v.append_text(&mut digits);
            text(4, &digits);
        }
        ValueRef::Date(v) => text(5, &v.packed().to_be_bytes()),
        ValueRef::Time(v) => text(6, &v.micros().to_be_bytes()),
        ValueRef::DateTime(v) => text(7, &v.packed().to_be_bytes()),
        ValueRef::Timestamp(v) => text(8, &v.to_be_bytes()),
        ValueRef::Str(v) => text(9, v.as_bytes()),
        ValueRef::Bytes(v) => text(10, v),
        ValueRef::Json(v) => text(11, &v.to_stored()),
    }
}

impl Subquery {
    /// What is missing when nothing is known of an uncorrelated subquery.
    pub(crate) fn uncorrelated(&self) -> Option<Missing> {
        let missing = || Missing { id: self.id, outer: vec![], key: Box::default(), want: Want::of(&self.test) };
        self.outer.is_empty().then(missing)
    }

    /// What its answer for the present outer values is kept by.
    fn key(&self, env: &Env<'_>, context: &mut Context) -> Result<Vec<u8>> {
        let mut key = Vec::new();
        for outer in &self.outer {
            append_exact(outer.value(env, context)?.as_ref(), &mut key);
        }
        Ok(key)
    }

    /// Whether the answer for the outer values of a row is there.
    pub(crate) fn is_answered(&self, row: &dyn Columns, context: &mut Context) -> bool {
        let key = with_parameters(context, |parameters, context| self.key(&Env { row, parameters }, context));
        key.is_ok_and(|key| context.subqueries.has_answer(self.id, &key))
    }

    /// The answer for the present outer values; [`pending`] when it is not there.
    fn answer(&self, env: &Env<'_>, context: &mut Context) -> Result<Arc<Answer>> {
        let key = self.key(env, context)?;
        if !context.subqueries.is_active() {
            // EXPLAIN runs no queries.
            return Err(pending());
        }
        if let Some(answer) = context.subqueries.answers[self.id.0 as usize].get(key.as_slice()) {
            return match &**answer {
                Answer::Error(error) => Err(error.clone()),
                _ => Ok(answer.clone()),
            };
        }
        let outer = self.outer.iter().map(|outer| Ok(outer.value(env, context)?.into_value()));
        let outer = outer.collect::<Result<Vec<_>>>()?;
        let want = Want::of(&self.test);
        let missing = Missing { id: self.id, outer, key: key.into_boxed_slice(), want };
        context.subqueries.missing = Some(Awaited::Answer(missing));
        Err(pending())
    }

    /// The value; of everything but a scalar subquery the truth.
    pub(crate) fn value<'a>(&'a self, env: &Env<'a>, context: &mut Context) -> Result<Val<'a>> {
        match &self.test {
            SubqueryTest::Scalar => match &*self.answer(env, context)? {
                Answer::Row(values) => Ok(Val::Own(values[0].clone())),
                _ => unreachable!("the answer is of the test's kind"),
            },
            _ => Ok(Val::truth(self.truth(env, context)?)),
        }
    }

    /// Of everything but a scalar subquery.
    pub(crate) fn truth(&self, env: &Env<'_>, context: &mut Context) -> Result<Option<bool>> {
        match &self.test {
            SubqueryTest::Scalar => unreachable!("a scalar subquery has a value"),
            SubqueryTest::Exists => match *self.answer(env, context)? {
                Answer::Exists(exists) => Ok(Some(exists)),
                _ => unreachable!("the answer is of the test's kind"),
            },
            SubqueryTest::Row { left, op, by } => {
                let left = values(left, env, context)?;
                match &*self.answer(env, context)? {
                    Answer::Row(right) => compare_rows(*op, by, &left, right, context),
                    _ => unreachable!("the answer is of the test's kind"),
                }
            }
            SubqueryTest::Quantified { left, op, by, all } => {
                let left = values(left, env, context)?;
                match &*self.answer(env, context)? {
                    Answer::Rows(set) => quantified(set, *op, by, *all, &left, context),
                    _ => unreachable!("the answer is of the test's kind"),
                }
            }
        }
    }
}

fn values<'a>(exprs: &'a [Expr], env: &Env<'a>, context: &mut Context) -> Result<Vec<Val<'a>>> {
    exprs.iter().map(|expr| expr.value(env, context)).collect()
}

fn quantified(
    set: &RowSet,
    op: CompareOp,
    by: &[Comparison],
    all: bool,
    left: &[Val<'_>],
    context: &mut Context,
) -> Result<Option<bool>> {
    if set.empty {
        return Ok(Some(all));
    }
    if left.len() == 1 && left[0].is_null() && op != CompareOp::NullSafeEq {
        return Ok(None);
    }
    // x = ANY is found by a key, and so is what makes x <> ALL false.
    let decided = set.keys.as_ref().filter(|_| !left.iter().any(Val::is_null));
    if let Some((classes, keys)) = decided {
        let mut key = Vec::new();
        for (value, class) in left.iter().zip(classes) {
            append_class_key(value.as_ref(), class, &mut key);
        }
        if keys.contains(key.as_slice()) {
            return Ok(Some(!all));
        }
    }
    let mut unknown = false;
    let whole = if decided.is_some() { &[][..] } else { &set.whole };
    for (number, row) in set.rows.iter().chain(whole).enumerate() {
        if number % 1024 == 1023 {
            context.budget.work(64 << 10)?;
        }
        match compare_rows(op, by, left, row, context)? {
            Some(holds) if holds != all => return Ok(Some(!all)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(all) })
}

/// Compares two rows column by column, as MySQL does: `=`, `<>` and `<=>` look at all columns, the others at the first that differs.
fn compare_rows(
    op: CompareOp,
    by: &[Comparison],
    left: &[Val<'_>],
    right: &[Value],
    context: &mut Context,
) -> Result<Option<bool>> {
    assert!(left.len() == right.len() && by.len() == left.len(), "rows that are compared have as many columns");
    if let ([by], [left], [right]) = (by, left, right) {
        return compare(op, *by, left.as_ref(), right.as_ref(), context);
    }
    let columns = || by.iter().zip(left).zip(right).map(|((by, left), right)| (*by, left.as_ref(), right.as_ref()));
    match op {
        CompareOp::Eq | CompareOp::NullSafeEq | CompareOp::Ne => {
            let test = if op == CompareOp::NullSafeEq { op } else { CompareOp::Eq };
            let mut equal = Some(true);
            for (by, left, right) in columns() {
                match compare(test, by, left, right, context)? {
                    Some(true) => {}
                    Some(false) => return Ok(Some(op == CompareOp::Ne)),
                    None => equal = None,
                }
            }
            Ok(equal.map(|equal| equal != (op == CompareOp::Ne)))
        }
        CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => {
            for (by, left, right) in columns() {
                match compare(CompareOp::Eq, by, left, right, context)? {
                    None => return Ok(None),
                    Some(false) => return compare(op, by, left, right, context),
                    Some(true) => {}
                }
            }
            Ok(Some(matches!(op, CompareOp::Le | CompareOp::Ge)))
        }
    }
}
