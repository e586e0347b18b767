//! The part of a table's rows that conditions leave which its access path has not used.
//!
//! ```text
//! column = value            the rows of one value on average     a list of values    as many times that
//! column IS NULL            the part that is NULL
//! column < value, BETWEEN   the part between the values, by the spread of the column's values
//! NOT, <>, NOT IN, …        the rest, without the NULLs of the column
//! AND, OR                   conditions count as independent of each other
//! ```
//! Two bounds of one column are one range. Without statistics an equality leaves a tenth of the rows, a range with one
//! bound a third, with two a tenth, LIKE a tenth. Of anything else three of ten rows are thought to stay.
//!
//! A value is known when it is a literal of the plan. In the normal form of a statement numbers and texts are parameters; that
//! one mattered is noted, so that a statement which costs much is planned with its literals ([`Of::by_values`]).
//!
//! Only joins ask. The number of rows that are left of the only table changes little in how it is read, and planning a
//! statement of one table stays as short as it is.

use super::condition::tables_of;
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::histogram::Spot;
use crate::statistics::{Bound, TableStatistics};
use rauk_types::TableSchema;
use std::cell::Cell;

/// What a condition leaves of which nothing is known.
const UNKNOWN: f64 = 0.3;
/// Conditions of which nothing is known count only so often.
const MOST_UNKNOWN: i32 = 8;
const EQUAL: f64 = 0.1;
const ONE_BOUND: f64 = 0.33;
const TWO_BOUNDS: f64 = 0.1;
const LIKE: f64 = 0.1;
/// Nothing is thought to leave less, nor less than this of the rows to go.
const LEAST: f64 = 1e-9;
/// Levels of AND, OR and NOT that are looked into.
const MOST_LEVELS: usize = 16;

/// What so many conditions leave of which nothing is known.
pub(super) fn unknown(conditions: usize) -> f64 {
    UNKNOWN.powi(i32::try_from(conditions).unwrap_or(MOST_UNKNOWN).min(MOST_UNKNOWN))
}

/// The table that is asked about.
pub(super) struct Of<'a> {
    /// Its number in FROM.
    pub table: usize,
    pub schema: &'a TableSchema,
    pub statistics: Option<&'a TableStatistics>,
    pub rows: f64,
    /// Set when a value is not known which would have said more.
    pub by_values: &'a Cell<bool>,
}

/// The part of the rows that is left by conjuncts, all of whose other tables have been read before.
pub(super) fn left(conjuncts: &[&Expr], of: &Of<'_>) -> f64 {
    let mut part = 1.0;
    let mut unknowns = 0;
    let mut fixed: Vec<usize> = Vec::new();
    let mut ranges: Vec<Range> = Vec::new();
    for conjunct in conjuncts {
        if let Some(range) = of.range(conjunct) {
            match ranges.iter_mut().find(|known| known.column == range.column) {
                Some(known) => known.narrow(range),
                None => ranges.push(range),
            }
            continue;
        }
        let column = of.equal(conjunct);
        // `a = b AND a = c` mostly says that b is c, which is another condition's matter.
        let again = column.is_some_and(|column| fixed.contains(&column));
        fixed.extend(column);
        match of.part(conjunct, 0).filter(|_| !again) {
            Some(left) => part *= left,
            None => unknowns += 1,
        }
    }
    ranges.iter().for_each(|range| part *= of.part_of_range(range));
    (part * unknown(unknowns)).max(LEAST)
}

/// Bounds of a column; of one whose value is not known there is none.
struct Range {
    column: usize,
    low: Option<Option<Bound>>,
    high: Option<Option<Bound>>,
}

impl Range {
    fn narrow(&mut self, other: Range) {
        // Whether a low bound is above another one.
        let above = |a: &Bound, b: &Bound| a.spot > b.spot || a.spot == b.spot && !a.inclusive;
        let below = |a: &Bound, b: &Bound| a.spot < b.spot || a.spot == b.spot && !a.inclusive;
        tighten(&mut self.low, other.low, above);
        tighten(&mut self.high, other.high, below);
    }
}

fn tighten(known: &mut Option<Option<Bound>>, more: Option<Option<Bound>>, tighter: impl Fn(&Bound, &Bound) -> bool) {
    match (known.as_mut(), more) {
        (_, None) => {}
        (Some(Some(old)), Some(Some(new))) => {
            if tighter(&new, old) {
                *old = new;
            }
        }
        (Some(Some(_)), Some(None)) => {}
        (_, more) => *known = more,
    }
}

impl Of<'_> {
    /// The column of this table that an expression is.
    fn column(&self, expr: &Expr) -> Option<usize> {
        match expr.kind {
            ExprKind::Column { table, column } if table == self.table => Some(column),
            _ => None,
        }
    }

    /// Whether a value is known before this table is read.
    fn is_before(&self, value: &Expr) -> bool {
        !tables_of(value).contains(&self.table)
    }

    /// A comparison of a column with what is known before: the column, the operator behind it, the value.
    fn comparison<'e>(&self, expr: &'e Expr) -> Option<(usize, CompareOp, &'e Expr)> {
        let ExprKind::Compare { op, left, right, .. } = &expr.kind else { return None };
        match (self.column(left), self.column(right)) {
            (Some(column), _) if self.is_before(right) => Some((column, *op, right)),
            (_, Some(column)) if self.is_before(left) => Some((column, op.flipped(), left)),
            _ => None,
        }
    }

    /// The column that a conjunct fixes to one value.
    fn equal(&self, expr: &Expr) -> Option<usize> {
        match self.comparison(expr)? {
            (column, CompareOp::Eq | CompareOp::NullSafeEq, _) => Some(column),
            _ => None,
        }
    }

    /// The bounds that a conjunct sets.
    fn range(&self, expr: &Expr) -> Option<Range> {
        if let ExprKind::Between { expr, negated: false, low, high, .. } = &expr.kind {
            return self.between(expr, low, high);
        }
        let (column, op, value) = self.comparison(expr)?;
        let bound = |inclusive| Some(self.bound(column, value, inclusive));
        match op {
            CompareOp::Gt | CompareOp::Ge => Some(Range { column, low: bound(op == CompareOp::Ge), high: None }),
            CompareOp::Lt | CompareOp::Le => Some(Range { column, low: None, high: bound(op == CompareOp::Le) }),
            _ => None,
        }
    }

    fn between(&self, expr: &Expr, low: &Expr, high: &Expr) -> Option<Range> {
        let column = self.column(expr).filter(|_| self.is_before(low) && self.is_before(high))?;
        let (low, high) = (self.bound(column, low, true), self.bound(column, high, true));
        Some(Range { column, low: Some(low), high: Some(high) })
    }

    fn bound(&self, column: usize, value: &Expr, inclusive: bool) -> Option<Bound> {
        let knows = || self.statistics.is_some_and(|statistics| statistics.knows_spread(self.schema, column));
        self.spot(column, value, &knows).map(|spot| Bound { spot, inclusive })
    }

    /// Where a value lies among those of a column; `None`: the value is not known. `matters`: whether it would say more.
    fn spot(&self, column: usize, value: &Expr, matters: &dyn Fn() -> bool) -> Option<Spot> {
        match &value.kind {
            ExprKind::Literal(value) => Spot::of(value.as_ref(), &self.schema.columns.get(column)?.ty),
            ExprKind::Parameter(_) => {
                if matters() {
                    self.by_values.set(true);
                }
                None
            }
            _ => None,
        }
    }

    fn part_of_range(&self, range: &Range) -> f64 {
        let spread = || {
            // A bound that is not known makes the whole range unknown.
            let known = |bound: &Option<Option<Bound>>| !matches!(bound, Some(None));
            let statistics = self.statistics.filter(|_| known(&range.low) && known(&range.high))?;
            let bound = |bound: &'_ Option<Option<Bound>>| bound.clone().flatten();
            let (low, high) = (bound(&range.low), bound(&range.high));
            statistics.part_between(self.schema, range.column, low.as_ref(), high.as_ref())
        };
        let guess = if range.low.is_some() && range.high.is_some() { TWO_BOUNDS } else { ONE_BOUND };
        spread().unwrap_or(guess)
    }

    /// The rows of one value, on average.
    fn part_of_value(&self, column: usize) -> f64 {
        self.part_of_spot(column, None)
    }

    /// The rows with what an expression gives.
    fn part_equal(&self, column: usize, value: &Expr) -> f64 {
        let matters = || self.statistics.is_some_and(|statistics| statistics.has_histogram(self.schema, column));
        let spot = self.spot(column, value, &matters);
        self.part_of_spot(column, spot.as_ref())
    }

    fn part_of_spot(&self, column: usize, spot: Option<&Spot>) -> f64 {
        let rows = self.rows.max(1.0);
        let known = || self.statistics?.part_of_value(self.schema, column, spot, rows as u64);
        known().unwrap_or(EQUAL.max(1.0 / rows))
    }

    fn part_of_nulls(&self, column: usize) -> f64 {
        let Some(definition) = self.schema.columns.get(column) else { return 0.0 };
        let known = || self.statistics?.part_of_nulls(self.schema, column);
        if definition.nullable { known().unwrap_or(EQUAL) } else { 0.0 }
    }

    /// What a condition leaves; `None`: nothing is known of it.
    fn part(&self, expr: &Expr, level: usize) -> Option<f64> {
        if level > MOST_LEVELS {
            return None;
        }
        let of = |expr: &Expr| self.part(expr, level + 1);
        // What is not so, and not NULL.
        let rest = |negated: bool, part: f64, column: Option<usize>| match negated {
            true => 1.0 - part - column.map_or(0.0, |column| self.part_of_nulls(column)),
            false => part,
        };
        let part = match &expr.kind {
            ExprKind::And(left, right) => match (of(left), of(right)) {
                (None, None) => return None,
                (left, right) => left.unwrap_or(UNKNOWN) * right.unwrap_or(UNKNOWN),
            },
            ExprKind::Or(left, right) => {
                let (left, right) = (of(left)?, of(right)?);
                left + right - left * right
            }
            ExprKind::Not(expr) => 1.0 - of(expr)?,
            ExprKind::IsTruth { expr, truth, negated } => rest(truth == negated, of(expr)?, None),
            ExprKind::IsNull { expr, negated } => rest(*negated, self.part_of_nulls(self.column(expr)?), None),
            ExprKind::Compare { op, left, right, .. } => {
                let Some((column, op, value)) = self.comparison(expr) else {
                    // Two columns of a row.
                    let part = self.part_of_value(self.column(left)?).min(self.part_of_value(self.column(right)?));
                    return match op {
                        CompareOp::Eq | CompareOp::NullSafeEq => Some(part),
                        CompareOp::Ne => Some(1.0 - part),
                        _ => Some(ONE_BOUND),
                    };
                };
                match op {
                    CompareOp::Eq | CompareOp::NullSafeEq => self.part_equal(column, value),
                    CompareOp::Ne => rest(true, self.part_equal(column, value), Some(column)),
                    _ => self.part_of_range(&self.range(expr)?),
                }
            }
            ExprKind::Between { expr, negated, low, high, .. } => {
                let range = self.between(expr, low, high)?;
                rest(*negated, self.part_of_range(&range), Some(range.column))
            }
            ExprKind::InList { expr, negated, list, .. } => {
                let column = self.column(expr)?;
                let part: f64 = list.iter().map(|(value, _)| self.part_equal(column, value)).sum();
                let part = part.min(1.0 - self.part_of_nulls(column));
                rest(*negated, part, Some(column))
            }
            ExprKind::RowIn(row_in) => {
                let columns = row_in.left.iter().filter_map(|part| self.column(part));
                let of_one = columns.map(|column| self.part_of_value(column)).reduce(|a, b| a * b)?;
                rest(row_in.negated, (of_one * row_in.rows.len() as f64).min(1.0), None)
            }
            ExprKind::Like(like) => {
                let column = self.column(&like.expr)?;
                rest(like.negated, LIKE, Some(column))
            }
            ExprKind::Regexp(regexp) => {
                let column = self.column(&regexp.expr)?;
                rest(regexp.negated, LIKE, Some(column))
            }
            _ => return None,
        };
        Some(part.clamp(LEAST, 1.0))
    }
}
