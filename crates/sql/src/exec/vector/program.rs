//! A block's expressions as kernels, compiled for one execution: the values of parameters are constants in it.
//!
//! A constant is evaluated once, before any row. One that fails or warns has no kernel: it is then evaluated with each row, as the push form does.
//! Equal expressions are one node, so that `SUM(a), AVG(a)` reads `a` once.

use super::batch::{Batch, Selection, Vector};
use super::filter::{Range, Test};
use super::fold::Fold;
use super::number::{self, Target};
use crate::expr::{
    Aggregate, AggregateFunction, ArithmeticOp, CompareOp, Comparison, Context, Expr, ExprKind, NoColumns, to_datetime,
    to_f64, to_time,
};
use crate::physical::model::Grouping;
use rauk_types::{Collation, DateTime, Decimal, FieldKind, MysqlError, Time, TypeKind, Value, ValueRef};
use std::borrow::Cow;

pub(super) enum Filter<'p> {
    Kernel(Test),
    /// By the evaluator.
    Rows(&'p Expr),
}

/// What becomes of the rows that pass.
pub(super) enum Tail {
    /// They are grouped one by one.
    Rows,
    /// By the nodes of their keys.
    Vectors { keys: Vec<usize>, folds: Vec<Fold> },
}

#[derive(Clone, Copy)]
enum Node {
    Column(usize),
    Constant(FieldKind, i128),
    Binary { op: ArithmeticOp, target: Target, left: usize, right: usize },
    Negate { target: Target, of: usize },
}

pub(super) struct Program<'p> {
    pub filters: Vec<Filter<'p>>,
    nodes: Vec<(&'p Expr, Node, FieldKind)>,
    pub tail: Tail,
}

/// What evaluation has left in a context, to see whether there is more, and to take that back.
pub(super) struct Mark {
    warnings: usize,
    count: u64,
    memory: usize,
}

impl Mark {
    pub fn of(context: &Context) -> Mark {
        let memory = context.budget.memory.used();
        Mark { warnings: context.warnings.len(), count: context.warning_count, memory }
    }

    /// Whether there was a warning since.
    pub fn is_passed(&self, context: &Context) -> bool {
        context.warning_count != self.count
    }

    pub fn go_back(&self, context: &mut Context) {
        context.warnings.truncate(self.warnings);
        context.warning_count = self.count;
        context.budget.memory.back_to(self.memory);
    }
}

struct Compiler<'p, 'c> {
    batch: &'c Batch<'c>,
    context: &'c mut Context,
    nodes: Vec<(&'p Expr, Node, FieldKind)>,
}

impl<'p> Program<'p> {
    pub fn new(batch: &Batch<'_>, filters: &'p [Expr], grouping: &'p Grouping, context: &mut Context) -> Program<'p> {
        let mut compiler = Compiler { batch, context, nodes: Vec::new() };
        let filters =
            filters.iter().map(|filter| compiler.test(filter).map_or(Filter::Rows(filter), Filter::Kernel)).collect();
        let tail = compiler.tail(grouping).unwrap_or(Tail::Rows);
        let nodes = match &tail {
            Tail::Rows => Vec::new(),
            Tail::Vectors { .. } => compiler.nodes,
        };
        Program { filters, nodes, tail }
    }

    /// Whether some of it runs row by row.
    pub fn walks(&self) -> bool {
        matches!(self.tail, Tail::Rows) || self.filters.iter().any(|filter| matches!(filter, Filter::Rows(_)))
    }

    /// The values of all nodes for the selected rows; `None`: a kernel has given up.
    pub fn vectors<'b>(&self, batch: &'b Batch<'_>, selection: &Selection) -> Option<Vec<Cow<'b, Vector>>> {
        let rows = selection.rows.len();
        let mut vectors: Vec<Cow<'b, Vector>> = Vec::with_capacity(self.nodes.len());
        for (_, node, _) in &self.nodes {
            let vector = match *node {
                Node::Column(column) => {
                    let vector = batch.vector(column)?;
                    match rows == batch.len() {
                        true => Cow::Borrowed(vector),
                        false => Cow::Owned(vector.taken(&selection.rows)),
                    }
                }
                Node::Constant(kind, value) => Cow::Owned(Vector::of_constant(kind, value, rows)),
                Node::Binary { op, target, left, right } => {
                    Cow::Owned(number::calculate(op, target, &vectors[left], &vectors[right])?)
                }
                Node::Negate { target, of } => Cow::Owned(number::negate(target, &vectors[of])?),
            };
            vectors.push(vector);
        }
        Some(vectors)
    }
}

impl<'p> Compiler<'p, '_> {
    /// The value of what is the same for all rows; `None`: it is not, or evaluating it fails or warns.
    fn constant(&mut self, expr: &Expr) -> Option<Value> {
        if !expr.is_constant() || expr.has_subquery() {
            return None;
        }
        self.quietly(|context| expr.eval(&NoColumns, context))
    }

    fn quietly<R>(&mut self, work: impl FnOnce(&mut Context) -> Result<R, MysqlError>) -> Option<R> {
        let mark = Mark::of(self.context);
        let result = work(self.context);
        if result.is_err() || mark.is_passed(self.context) {
            mark.go_back(self.context);
            return None;
        }
        result.ok()
    }

    fn column(&self, expr: &Expr) -> Option<usize> {
        match expr.kind {
            ExprKind::Column { table, column } => self.batch.find(table, column),
            _ => None,
        }
    }

    // Conditions

    fn test(&mut self, expr: &Expr) -> Option<Test> {
        Some(match &expr.kind {
            ExprKind::Compare { op: CompareOp::NullSafeEq, .. } => return None,
            ExprKind::Compare { op, by, left, right } => match (self.column(left), self.column(right)) {
                (Some(left), Some(right)) => self.columns(*op, *by, left, right)?,
                (Some(column), None) => {
                    let value = self.constant(right)?;
                    self.compare(column, *op, *by, &value)?
                }
                (None, Some(column)) => {
                    let value = self.constant(left)?;
                    self.compare(column, op.flipped(), *by, &value)?
                }
                (None, None) => return None,
            },
            ExprKind::And(left, right) => self.test(left)?.both(self.test(right)?),
            ExprKind::Or(left, right) => Test::any(vec![self.test(left)?, self.test(right)?])?,
            ExprKind::Not(inner) => Test::Not(Box::new(self.test(inner)?)),
            ExprKind::IsNull { expr, negated } => Test::IsNull { column: self.column(expr)?, negated: *negated },
            ExprKind::Between { expr, negated, low, low_by, high, high_by } => {
                let column = self.column(expr)?;
                let (low, high) = (self.constant(low)?, self.constant(high)?);
                let above = self.compare(column, CompareOp::Ge, *low_by, &low)?;
                let below = self.compare(column, CompareOp::Le, *high_by, &high)?;
                not(above.both(below), *negated)
            }
            ExprKind::InList { expr, negated, list, .. } => {
                let column = self.column(expr)?;
                let mut tests = Vec::with_capacity(list.len());
                for (item, by) in list {
                    let value = self.constant(item)?;
                    tests.push(self.compare(column, CompareOp::Eq, *by, &value)?);
                }
                // Long lists of what is no word are found faster by the evaluator.
                let test = Test::any(tests)?;
                if list.len() > 8 && !matches!(test, Test::Among { .. }) {
                    return None;
                }
                not(test, *negated)
            }
            _ => return None,
        })
    }

    /// Two columns whose values compare as their words do.
    fn columns(&self, op: CompareOp, by: Comparison, left: usize, right: usize) -> Option<Test> {
        let kind = self.batch.kind(left);
        let fits = match kind {
            FieldKind::Int | FieldKind::UInt => {
                matches!(by, Comparison::Integer | Comparison::Decimal | Comparison::Double)
            }
            FieldKind::Decimal(_) => by == Comparison::Decimal,
            FieldKind::Double => by == Comparison::Double,
            FieldKind::Date | FieldKind::DateTime => by == Comparison::DateTime,
            FieldKind::Time => by == Comparison::Time,
            FieldKind::WideDecimal(_) | FieldKind::Timestamp | FieldKind::Text | FieldKind::Bytes => false,
        };
        (fits && self.batch.kind(right) == kind).then_some(Test::Columns { op, left, right })
    }

    /// A column against a constant.
    fn compare(&mut self, column: usize, op: CompareOp, by: Comparison, value: &Value) -> Option<Test> {
        let value = value.as_ref();
        if value.is_null() {
            return Some(Test::Unknown);
        }
        let kind = self.batch.kind(column);
        let of_double = |value: f64| Some(Test::Double { column, op, value });
        let (whole, exact) = match (by, kind) {
            (Comparison::Integer, FieldKind::Int | FieldKind::UInt) => (value.as_integer()?, true),
            (
                Comparison::Decimal,
                FieldKind::Int | FieldKind::UInt | FieldKind::Decimal(_) | FieldKind::WideDecimal(_),
            ) => {
                let number = match value {
                    ValueRef::Decimal(number) => number,
                    value => Decimal::from(value.as_integer()?),
                };
                floor(&number, number::scale_of(kind)?)?
            }
            (Comparison::Double, FieldKind::Int | FieldKind::UInt) => match (value.as_integer(), value) {
                (Some(integer), _) => (integer, true),
                (None, ValueRef::Double(_) | ValueRef::Decimal(_)) => {
                    return of_double(self.quietly(|context| to_f64(value, context))?);
                }
                _ => return None,
            },
            (Comparison::Double, FieldKind::Double) => match value {
                ValueRef::Double(_) | ValueRef::Decimal(_) | ValueRef::Int(_) | ValueRef::UInt(_) => {
                    return of_double(self.quietly(|context| to_f64(value, context))?);
                }
                _ => return None,
            },
            (Comparison::DateTime, FieldKind::Date | FieldKind::DateTime) => {
                let time = self.quietly(|context| to_datetime(value, context))?.unwrap_or(DateTime::ZERO);
                match kind {
                    FieldKind::Date => (time.date().packed().into(), time == time.date().at_midnight()),
                    _ => (time.packed().into(), true),
                }
            }
            (Comparison::Time, FieldKind::Time) => {
                let time = self.quietly(|context| to_time(value, context))?.unwrap_or(Time::ZERO);
                (time.micros().into(), true)
            }
            (Comparison::Text(collation), FieldKind::Text) => {
                let value = value.as_str()?.as_bytes().into();
                let collation = (collation != Collation::Binary).then_some(collation);
                return Some(Test::Bytes { column, op, value, collation });
            }
            (Comparison::Bytes, FieldKind::Text | FieldKind::Bytes) => {
                let value = value.as_bytes()?.into();
                return Some(Test::Bytes { column, op, value, collation: None });
            }
            _ => return None,
        };
        let range = |range: Range, negated| Test::range(column, kind, range, negated);
        Some(match (op, exact) {
            (CompareOp::Eq, true) => range((whole, whole), false),
            (CompareOp::Ne, true) => range((whole, whole), true),
            // No value of the column is between two of them.
            (CompareOp::Eq, false) => Test::Constant { column, truth: false },
            (CompareOp::Ne, false) => Test::Constant { column, truth: true },
            (CompareOp::Lt, true) => range((i128::MIN, whole.saturating_sub(1)), false),
            (CompareOp::Lt, false) | (CompareOp::Le, _) => range((i128::MIN, whole), false),
            (CompareOp::Ge, true) => range((whole, i128::MAX), false),
            (CompareOp::Ge, false) | (CompareOp::Gt, _) => range((whole.saturating_add(1), i128::MAX), false),
            (CompareOp::NullSafeEq, _) => return None,
        })
    }

    // Groups

    /// `None`: an aggregate or a key has no kernel.
    fn tail(&mut self, grouping: &'p Grouping) -> Option<Tail> {
        let keys = grouping.keys.iter().map(|key| self.node(key)).collect::<Option<_>>()?;
        let folds = grouping.aggregates.iter().map(|aggregate| self.fold(aggregate)).collect::<Option<_>>()?;
        Some(Tail::Vectors { keys, folds })
    }

    fn fold(&mut self, aggregate: &'p Aggregate) -> Option<Fold> {
        if aggregate.distinct {
            return None;
        }
        let argument = match aggregate.arguments.as_slice() {
            [] if aggregate.function == AggregateFunction::Count => return Some(Fold::Rows),
            [argument] => argument,
            _ => return None,
        };
        match aggregate.function {
            AggregateFunction::Count => {
                if self.constant(argument).is_some_and(|value| !value.is_null()) {
                    return Some(Fold::Rows);
                }
                self.node(argument).map(Fold::Count)
            }
            AggregateFunction::Sum | AggregateFunction::Avg => {
                let node = self.node(argument)?;
                match (aggregate.ty.kind, self.nodes[node].2) {
                    (TypeKind::Decimal, kind) => number::scale_of(kind).map(|_| Fold::Exact(node)),
                    (_, FieldKind::Double) => Some(Fold::Doubles(node)),
                    _ => None,
                }
            }
            AggregateFunction::Min | AggregateFunction::Max => {
                let node = self.node(argument)?;
                // They compare as local times.
                (self.nodes[node].2 != FieldKind::Timestamp).then_some(Fold::Extreme(node))
            }
            _ => None,
        }
    }

    /// The node of an expression, which is made if there is none.
    fn node(&mut self, expr: &'p Expr) -> Option<usize> {
        if let Some(known) = self.nodes.iter().position(|(other, ..)| *other == expr) {
            return Some(known);
        }
        let (node, kind) = match &expr.kind {
            ExprKind::Column { .. } => {
                let column = self.column(expr)?;
                (Node::Column(column), self.batch.kind(column))
            }
            ExprKind::Arithmetic { op, left, right, .. } if !expr.is_constant() => {
                let target = target(expr)?;
                if target == Target::UInt && self.context.sql_mode.no_unsigned_subtraction {
                    return None;
                }
                let (left, right) = (self.node(left)?, self.node(right)?);
                let kinds = (self.nodes[left].2, self.nodes[right].2);
                if !number::is_possible(*op, target, kinds.0, kinds.1) {
                    return None;
                }
                let kind = number::result_kind(*op, target, kinds.0, kinds.1);
                (Node::Binary { op: *op, target, left, right }, kind)
            }
            ExprKind::Negate { expr: inner, .. } if !expr.is_constant() => {
                let target = target(expr)?;
                let of = self.node(inner)?;
                let of_kind = self.nodes[of].2;
                if !number::is_possible(ArithmeticOp::Subtract, target, of_kind, of_kind) {
                    return None;
                }
                (Node::Negate { target, of }, number::result_kind(ArithmeticOp::Subtract, target, of_kind, of_kind))
            }
            _ => {
                let (kind, value) = match self.constant(expr)? {
                    Value::Int(value) => (FieldKind::Int, value.into()),
                    Value::UInt(value) => (FieldKind::UInt, value.into()),
                    Value::Double(value) => (FieldKind::Double, value.to_bits().into()),
                    Value::Decimal(value) => {
                        let unscaled = value.unscaled_i128()?;
                        match i64::try_from(unscaled) {
                            Ok(_) => (FieldKind::Decimal(value.scale()), unscaled),
                            Err(_) => (FieldKind::WideDecimal(value.scale()), unscaled),
                        }
                    }
                    _ => return None,
                };
                (Node::Constant(kind, value), kind)
            }
        };
        self.nodes.push((expr, node, kind));
        Some(self.nodes.len() - 1)
    }
}

fn not(test: Test, negated: bool) -> Test {
    if negated { Test::Not(Box::new(test)) } else { test }
}

fn target(expr: &Expr) -> Option<Target> {
    Some(match (expr.ty.kind, expr.ty.unsigned) {
        (TypeKind::BigInt, true) => Target::UInt,
        (TypeKind::BigInt, false) => Target::Int,
        (TypeKind::Decimal, _) => Target::Decimal,
        (TypeKind::Double, _) => Target::Double,
        _ => return None,
    })
}

/// The greatest unscaled integer of this scale that is not greater than the number, and whether it is equal. What is beyond 128 bits is at their ends.
fn floor(number: &Decimal, scale: u8) -> Option<(i128, bool)> {
    let unscaled = number.unscaled_i128()?;
    let own = number.scale();
    if own <= scale {
        let factor = 10i128.checked_pow(u32::from(scale - own))?;
        let end = if unscaled < 0 { i128::MIN } else { i128::MAX };
        return Some((unscaled.checked_mul(factor).unwrap_or(end), true));
    }
    let divisor = 10i128.checked_pow(u32::from(own - scale))?;
    Some((unscaled.div_euclid(divisor), unscaled.rem_euclid(divisor) == 0))
}
