//! Subqueries in expressions.
//!
//! An expression never waits, so it cannot run a query. A node of a subquery names the query by its number in the statement and says how its rows
//! become a value. Its evaluation looks into [`Context::subqueries`](super::Context), where answers are kept by the values of the outer
//! columns that the query reads; an uncorrelated query has one answer. When the answer is not there yet, evaluation notes what is
//! missing ([`Missing`]) and fails with [`pending`]; the operator that asked runs the query, keeps the answer and evaluates again. What the first
//! evaluation changed (warnings, user variables) is undone. So a branch that is not taken runs no query and raises no error of one.
//!
//! An answer may be an error: it is raised wherever the answer is used.
//!
//! SLEEP waits in the same way (`functions/sleep`): it has no query and no answer that is kept, but it is missing until the operator has slept.

use super::types;
use super::{CompareOp, Comparison, Expr, ExprKind};
use rauk_types::{DataType, MysqlError, Value};

/// A column of the logical tree: unique in its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnId(pub u32);

/// A query of the statement, by its place in the list of subqueries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubqueryId(pub u32);

/// A subquery where an expression stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Subquery {
    pub id: SubqueryId,
    /// The columns of the queries around it that it reads, each once; in the subquery's own plan they are parameters, in this order.
    pub outer: Vec<Expr>,
    pub test: SubqueryTest,
}

/// How the rows of a subquery become a value.
#[derive(Clone, Debug, PartialEq)]
pub enum SubqueryTest {
    /// The value of the only column; NULL without rows; error 1242 with several.
    Scalar,
    /// Whether there are rows.
    Exists,
    /// `left op ANY (…)` or, with `all`, `left op ALL (…)`; IN is `= ANY`, NOT IN is `<> ALL`. Several columns only with = ANY and <> ALL.
    Quantified { left: Vec<Expr>, op: CompareOp, by: Vec<Comparison>, all: bool },
    /// `(a, b) op (SELECT x, y …)`: the only row compared with the row at the left; error 1242 with several rows; NULL without rows.
    Row { left: Vec<Expr>, op: CompareOp, by: Vec<Comparison> },
}

impl SubqueryTest {
    /// The expressions at the left of the subquery.
    pub fn left(&self) -> &[Expr] {
        match self {
            SubqueryTest::Scalar | SubqueryTest::Exists => &[],
            SubqueryTest::Quantified { left, .. } | SubqueryTest::Row { left, .. } => left,
        }
    }

    pub fn left_mut(&mut self) -> &mut [Expr] {
        match self {
            SubqueryTest::Scalar | SubqueryTest::Exists => &mut [],
            SubqueryTest::Quantified { left, .. } | SubqueryTest::Row { left, .. } => left,
        }
    }
}

/// A subquery as the expression that uses it needs to know it while it is bound.
pub struct BoundSubquery {
    pub id: SubqueryId,
    /// The columns of the queries around it that it reads, as the expression's own scope names them.
    pub outer: Vec<Expr>,
    /// Its columns, for their types.
    pub columns: Vec<Expr>,
}

impl Expr {
    /// A column of the logical tree.
    pub fn reference(id: ColumnId, ty: DataType, nullable: bool) -> Expr {
        Expr { kind: ExprKind::Reference(id), ty, nullable, coercibility: types::column_coercibility(&ty) }
    }

    /// Whether its value may have to be waited for: a subquery is in it, or SLEEP.
    pub fn has_subquery(&self) -> bool {
        let mut found = matches!(self.kind, ExprKind::Subquery(_)) || self.sleeps();
        self.for_each_child(&mut |child| found = found || child.has_subquery());
        found
    }

    /// The number of the call that the expression is, when it is a call that waits.
    pub(crate) fn waiting_call(&self) -> Option<i64> {
        match &self.kind {
            ExprKind::Function { function, arguments } if function.waits => match arguments.last()?.kind {
                ExprKind::Literal(Value::Int(call)) => Some(call),
                _ => unreachable!("behind the arguments stands the number of the call"),
            },
            _ => None,
        }
    }

    /// Whether SLEEP is in it.
    pub(crate) fn has_sleep(&self) -> bool {
        let mut found = self.sleeps();
        self.for_each_child(&mut |child| found = found || child.has_sleep());
        found
    }

    fn sleeps(&self) -> bool {
        matches!(&self.kind, ExprKind::Function { function, .. } if function.waits)
    }

    /// Whether it waits for each row of the block where it stands: a subquery in it reads columns of the block, or SLEEP is in it.
    pub fn reads_around(&self) -> bool {
        let mut found = self.sleeps();
        if let ExprKind::Subquery(subquery) = &self.kind {
            subquery.outer.iter().for_each(|outer| outer.for_each_column(&mut |_, _| found = true));
        }
        self.for_each_child(&mut |child| found = found || child.reads_around());
        found
    }

    /// Calls `visit` on every column of the logical tree that the expression reads, those that its subqueries read of the queries around
    /// them included.
    pub fn for_each_reference(&self, visit: &mut dyn FnMut(ColumnId, &Expr)) {
        if let ExprKind::Reference(id) = self.kind {
            visit(id, self);
        }
        self.for_each_child(&mut |child| child.for_each_reference(visit));
    }
}

/// What an evaluation waits for.
#[derive(Clone, Debug)]
pub enum Awaited {
    Answer(Missing),
    /// A call of SLEEP, by its number, has to have slept so many seconds.
    Sleep {
        call: i64,
        seconds: f64,
    },
    /// A call of GET_LOCK or its like.
    Lock {
        call: i64,
        request: crate::locks::LockRequest,
    },
}

/// An answer that an evaluation needs.
#[derive(Clone, Debug)]
pub struct Missing {
    pub id: SubqueryId,
    /// The values of [`Subquery::outer`].
    pub outer: Vec<Value>,
    /// Their encoding, by which the answer is kept.
    pub key: Box<[u8]>,
    /// What is to become of the rows.
    pub want: super::answers::Want,
}

/// Whether an error says that an answer is missing.
pub(crate) fn is_pending(error: &MysqlError) -> bool {
    error.code == 0
}

/// The error of an evaluation that needs an answer; `Context::subqueries` says which. It never reaches a client.
pub(crate) fn pending() -> MysqlError {
    MysqlError::new(0, "a subquery has not been run yet")
}
