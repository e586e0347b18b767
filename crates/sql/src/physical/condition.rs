//! Conjuncts of a condition, and what an index can use of them.
//!
//! A condition is usable when it compares a column with something known before the column's table is read, and when it compares *as the column's
//! own type and collation do*: an index on text in one collation says nothing about comparisons in another, nor about a string column
//! compared with a number. `Sarg::exact` says that keys decide the condition completely, so that it need not be checked on the rows again.
//!
//! An OR of equalities on the same columns is a list of values, or of tuples; so is a row IN. Every other OR is a list of
//! alternatives (see `alternatives`).

use super::alternatives::{Alternative, alternatives, is_ordered};
use super::model::Source;
use crate::bind::names::literal;
use crate::expr::{AskedElements, CompareOp, Comparison, Expr, ExprKind, RowIn, key_class};
use rauk_types::{Collation, DataType, DateTime, TypeKind, Value};

/// A condition on one column (several for tuples) of one table.
#[derive(Clone, Debug)]
pub(crate) struct Sarg {
    /// The number of the conjunct it comes from.
    pub conjunct: usize,
    pub table: usize,
    /// `usize::MAX` for tuples and alternatives.
    pub column: usize,
    pub test: Test,
    /// Tables whose rows must be there before the values are known.
    pub needs: Vec<usize>,
    pub exact: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Test {
    Equal(Expr),
    /// `<=>`.
    NullSafe(Expr),
    IsNull,
    IsNotNull,
    In(Vec<Expr>),
    /// `column > value`, or `>=` (inclusive).
    Low(Expr, bool),
    High(Expr, bool),
    Between(Expr, Expr),
    Like(Expr, Option<char>),
    /// One of several tuples of values.
    Tuples {
        columns: Vec<usize>,
        rows: Vec<Vec<Expr>>,
    },
    /// One of several conditions.
    Any(Vec<Alternative>),
}

impl Test {
    /// Whether a value of it is a subquery's.
    pub fn has_subquery(&self) -> bool {
        match self {
            Test::Equal(value) | Test::NullSafe(value) | Test::Low(value, _) | Test::High(value, _) => {
                value.has_subquery()
            }
            Test::Like(pattern, _) => pattern.has_subquery(),
            Test::Between(low, high) => low.has_subquery() || high.has_subquery(),
            Test::In(values) => values.iter().any(Expr::has_subquery),
            Test::Tuples { rows, .. } => rows.iter().flatten().any(Expr::has_subquery),
            Test::Any(alternatives) => alternatives.iter().any(Alternative::has_subquery),
            Test::IsNull | Test::IsNotNull => false,
        }
    }

    /// Whether a key part is fixed to one value.
    pub fn is_one_value(&self) -> bool {
        matches!(self, Test::Equal(_) | Test::NullSafe(_) | Test::IsNull)
    }
}

/// Makes a condition what MySQL reads: `column IS NULL` also finds the zero date of a DATE or DATETIME that is NOT NULL, as clients ask that show
/// zero dates as NULL. Only what a condition requires counts, by itself or through AND, OR and NOT; a value is not changed.
pub(crate) fn find_zero_dates(condition: &mut Expr, sources: &[Source]) {
    find_zeros(condition, sources, false);
}

/// `is_negated`: below an odd number of NOTs, where it is `IS NOT NULL` that asks so.
fn find_zeros(condition: &mut Expr, sources: &[Source], is_negated: bool) {
    match &mut condition.kind {
        ExprKind::And(left, right) | ExprKind::Or(left, right) => {
            find_zeros(right, sources, is_negated);
            find_zeros(left, sources, is_negated);
        }
        ExprKind::Not(inner) => find_zeros(inner, sources, !is_negated),
        ExprKind::IsNull { expr: column, negated } if *negated == is_negated && is_whole_date(column, sources) => {
            let zero = literal(Value::DateTime(DateTime::ZERO), DataType::new(TypeKind::DateTime));
            let (left, right) = (column.clone(), Box::new(zero));
            let op = if is_negated { CompareOp::Ne } else { CompareOp::Eq };
            let by_value = ExprKind::Compare { op, by: Comparison::DateTime, left, right };
            if !column.nullable {
                condition.kind = by_value;
                return;
            }
            // The null rows of an outer join are found as before.
            let by_null = Box::new(condition.clone());
            let by_value = Box::new(Expr { kind: by_value, ..condition.clone() });
            condition.kind = match is_negated {
                false => ExprKind::Or(by_value, by_null),
                true => ExprKind::And(by_null, by_value),
            };
        }
        _ => {}
    }
}

/// A DATE or DATETIME column that is NOT NULL.
fn is_whole_date(expr: &Expr, sources: &[Source]) -> bool {
    let ExprKind::Column { table, column } = expr.kind else { return false };
    let Some(source) = sources.get(table) else { return false };
    let definition = &source.schema().columns[column];
    !definition.nullable && matches!(definition.ty.kind, TypeKind::Date | TypeKind::DateTime)
}

/// Collects what an OR or an AND joins.
pub(super) fn leaves<'a>(expr: &'a Expr, of_or: bool, out: &mut Vec<&'a Expr>) {
    match &expr.kind {
        ExprKind::And(left, right) if !of_or => {
            leaves(left, of_or, out);
            leaves(right, of_or, out);
        }
        ExprKind::Or(left, right) if of_or => {
            leaves(left, of_or, out);
            leaves(right, of_or, out);
        }
        _ => out.push(expr),
    }
}

/// Tables, aggregates left out, that an expression reads.
pub(crate) fn tables_of(expr: &Expr) -> Vec<usize> {
    let mut out = Vec::new();
    expr.for_each_column(&mut |table, _| {
        if !out.contains(&table) {
            out.push(table);
        }
    });
    out
}

/// No function whose value changes from call to call, and no assignment.
pub(super) fn is_deterministic(expr: &Expr) -> bool {
    let mut deterministic = match &expr.kind {
        ExprKind::Function { function, .. } => !function.volatile,
        ExprKind::AssignVariable { .. } => false,
        _ => true,
    };
    expr.for_each_child(&mut |child| deterministic = deterministic && is_deterministic(child));
    deterministic
}

/// Appends what an index can use of a conjunct.
pub(crate) fn sargs(condition: &Expr, conjunct: usize, out: &mut Vec<Sarg>) {
    let mut push = |target: &Expr, values: &[&Expr], test: Test, exact: bool| {
        let ExprKind::Column { table, column } = target.kind else { return };
        let mut needs = Vec::new();
        for value in values {
            if !is_deterministic(value) {
                return;
            }
            needs.extend(tables_of(value));
        }
        if !needs.contains(&table) {
            out.push(Sarg { conjunct, table, column, test, needs, exact });
        }
    };
    match &condition.kind {
        ExprKind::Compare { op, by, left, right } => {
            for (target, value, op) in [(left, right, *op), (right, left, op.flipped())] {
                let Some(exact) = usable(target, value, *by) else { continue };
                let test = match op {
                    CompareOp::Eq => Test::Equal((**value).clone()),
                    CompareOp::NullSafeEq => Test::NullSafe((**value).clone()),
                    CompareOp::Gt | CompareOp::Ge => Test::Low((**value).clone(), op == CompareOp::Ge),
                    CompareOp::Lt | CompareOp::Le => Test::High((**value).clone(), op == CompareOp::Le),
                    CompareOp::Ne => continue,
                };
                push(target, &[value], test, exact);
            }
        }
        ExprKind::Between { expr, negated: false, low, low_by, high, high_by } => {
            let (below, above) = (usable(expr, low, *low_by), usable(expr, high, *high_by));
            if let (Some(low_exact), Some(high_exact)) = (below, above) {
                let test = Test::Between((**low).clone(), (**high).clone());
                push(expr, &[low, high], test, low_exact && high_exact);
            }
            // `5 BETWEEN a AND b`: each side says something, none all.
            if usable(low, expr, *low_by).is_some() {
                push(low, &[expr], Test::High((**expr).clone(), true), false);
            }
            if usable(high, expr, *high_by).is_some() {
                push(high, &[expr], Test::Low((**expr).clone(), true), false);
            }
        }
        ExprKind::InList { expr, negated: false, list, .. } => {
            let mut exact = true;
            for (item, by) in list {
                match usable(expr, item, *by) {
                    Some(item_exact) => exact &= item_exact,
                    None => return,
                }
            }
            let values: Vec<&Expr> = list.iter().map(|(item, _)| item).collect();
            let test = match values.as_slice() {
                [value] => Test::Equal((*value).clone()),
                _ => Test::In(values.iter().map(|v| (*v).clone()).collect()),
            };
            push(expr, &values, test, exact);
        }
        ExprKind::IsNull { expr, negated } => {
            let test = if *negated { Test::IsNotNull } else { Test::IsNull };
            push(expr, &[], test, true);
        }
        ExprKind::Like(like) if !like.negated => {
            let ty = &like.expr.ty;
            let collation = if ty.is_bytes() { Collation::Binary } else { ty.collation };
            // Nothing stands before the first wildcard.
            let open = matches!(&like.pattern.kind, ExprKind::Literal(Value::Str(p)) if p.starts_with(['%', '_']));
            if (ty.is_text() || ty.is_bytes()) && ty.kind != TypeKind::Json && collation == like.collation && !open {
                push(&like.expr, &[&like.pattern], Test::Like(like.pattern.clone(), like.escape), false);
            }
        }
        ExprKind::Or(..) => {
            let before = out.len();
            or_sargs(condition, conjunct, out);
            if out[before..].iter().all(|sarg| !sarg.exact) {
                alternatives(condition, conjunct, out);
            }
        }
        ExprKind::Function { .. } => {
            let Some(AskedElements { column, all, keys, .. }) = AskedElements::of(condition) else { return };
            match keys {
                [key] => push(column, &[key], Test::Equal(key.clone()), false),
                _ if all => keys.iter().for_each(|key| push(column, &[], Test::Equal(key.clone()), false)),
                _ => push(column, &[], Test::In(keys.to_vec()), false),
            }
        }
        ExprKind::RowOrder { op, .. } if is_ordered(*op) => alternatives(condition, conjunct, out),
        ExprKind::RowIn(row_in) if !row_in.negated => row_in_sargs(row_in, conjunct, out),
        _ => {}
    }
}

/// A row IN: the values of its columns of one table, all together.
fn row_in_sargs(row_in: &RowIn, conjunct: usize, out: &mut Vec<Sarg>) {
    // Where each column stands on the left, with whether keys say all of its comparisons.
    let mut places: Vec<(usize, usize, usize, bool)> = Vec::new();
    for (at, part) in row_in.left.iter().enumerate() {
        let ExprKind::Column { table, column } = part.kind else { continue };
        if places.iter().any(|(t, c, ..)| (*t, *c) == (table, column)) {
            continue;
        }
        let own = |row: &Vec<(Expr, Comparison)>| {
            let (value, by) = &row[at];
            usable(part, value, *by).filter(|_| is_deterministic(value) && !tables_of(value).contains(&table))
        };
        let each: Option<Vec<bool>> = row_in.rows.iter().map(own).collect();
        if let Some(exact) = each {
            places.push((table, column, at, exact.iter().all(|exact| *exact)));
        }
    }
    let mut tables: Vec<usize> = places.iter().map(|(table, ..)| *table).collect();
    tables.sort_unstable();
    tables.dedup();
    for table in tables {
        let mut own: Vec<_> = places.iter().filter(|place| place.0 == table).collect();
        own.sort_unstable_by_key(|place| place.1);
        let exact = own.len() == row_in.left.len() && own.iter().all(|place| place.3);
        let rows: Vec<Vec<Expr>> =
            row_in.rows.iter().map(|row| own.iter().map(|place| row[place.2].0.clone()).collect()).collect();
        let needs = rows.iter().flatten().flat_map(tables_of).collect();
        let (column, test) = match own.as_slice() {
            [place] => (place.1, Test::In(rows.into_iter().flatten().collect())),
            _ => (usize::MAX, Test::Tuples { columns: own.iter().map(|place| place.1).collect(), rows }),
        };
        out.push(Sarg { conjunct, table, column, test, needs, exact });
    }
}

/// An OR whose branches all fix the same columns of a table.
/// What an OR of equalities is: a list of values, or of rows of them.
pub(super) fn or_sargs(condition: &Expr, conjunct: usize, out: &mut Vec<Sarg>) {
    let mut branches = Vec::new();
    leaves(condition, true, &mut branches);
    // Equalities of each branch, and whether they are all that it says.
    let mut fixed: Vec<(Vec<Sarg>, bool)> = Vec::with_capacity(branches.len());
    for branch in &branches {
        let mut conjuncts = Vec::new();
        leaves(branch, false, &mut conjuncts);
        let mut found: Vec<Sarg> = Vec::new();
        for part in &conjuncts {
            let mut of_part = Vec::new();
            match part.kind {
                ExprKind::Or(..) => or_sargs(part, conjunct, &mut of_part),
                _ => sargs(part, conjunct, &mut of_part),
            }
            of_part.retain(|s| matches!(s.test, Test::Equal(_) | Test::In(_)));
            found.extend(of_part);
        }
        if found.is_empty() {
            return;
        }
        let whole = found.len() == conjuncts.len() && found.iter().all(|s| s.exact);
        fixed.push((found, whole));
    }
    let mut candidates: Vec<usize> = fixed[0].0.iter().map(|s| s.table).collect();
    candidates.sort_unstable();
    candidates.dedup();
    for table in candidates {
        let mut columns: Vec<usize> = fixed[0].0.iter().filter(|s| s.table == table).map(|s| s.column).collect();
        columns.sort_unstable();
        columns.dedup();
        for (branch, _) in &fixed[1..] {
            columns.retain(|c| branch.iter().any(|s| s.table == table && s.column == *c));
        }
        if columns.is_empty() {
            continue;
        }
        let of = |branch: &'_ [Sarg], column: usize| -> Option<Sarg> {
            branch.iter().find(|s| s.table == table && s.column == column).cloned()
        };
        let mut needs = Vec::new();
        let mut exact = true;
        for (branch, whole) in &fixed {
            exact &= *whole && branch.len() == columns.len();
            for sarg in branch.iter().filter(|s| s.table == table && columns.contains(&s.column)) {
                needs.extend(sarg.needs.iter().copied());
            }
        }
        if let [column] = columns[..] {
            let mut values = Vec::new();
            for (branch, _) in &fixed {
                match of(branch, column).map(|s| s.test) {
                    Some(Test::Equal(value)) => values.push(value),
                    Some(Test::In(list)) => values.extend(list),
                    _ => return,
                }
            }
            out.push(Sarg { conjunct, table, column, test: Test::In(values), needs, exact });
            continue;
        }
        let mut rows = Vec::with_capacity(fixed.len());
        for (branch, _) in &fixed {
            let row: Option<Vec<Expr>> = columns
                .iter()
                .map(|&c| match of(branch, c).map(|s| s.test) {
                    Some(Test::Equal(value)) => Some(value),
                    _ => None,
                })
                .collect();
            match row {
                Some(row) => rows.push(row),
                None => return,
            }
        }
        out.push(Sarg { conjunct, table, column: usize::MAX, test: Test::Tuples { columns, rows }, needs, exact });
    }
}

/// Whether keys of the column `target` can answer a comparison `by` with `value`, and if so whether they answer it completely.
fn usable(target: &Expr, value: &Expr, by: Comparison) -> Option<bool> {
    let ExprKind::Column { .. } = target.kind else { return None };
    let untyped = value.ty.kind == TypeKind::Null;
    let (column, value) = (&target.ty, &value.ty);
    let temporal = value.is_temporal() && value.kind != TypeKind::Time;
    // A parameter without a type may bring anything.
    let fits = |test: bool, exact: bool| (test || untyped).then_some(exact && !untyped);
    match by {
        Comparison::Integer if column.holds_integer() => fits(value.holds_integer(), true),
        Comparison::Decimal if column.holds_integer() || column.kind == TypeKind::Decimal => {
            fits(value.holds_integer() || value.kind == TypeKind::Decimal, true)
        }
        // Texts and doubles: several integers may equal one.
        Comparison::Double if column.holds_integer() => {
            fits(value.is_numeric() || value.holds_integer() || value.is_text() || value.is_bytes(), false)
        }
        Comparison::Double if column.kind == TypeKind::Double => fits(value.is_numeric(), false),
        Comparison::Text(collation) if column.is_text() && column.kind != TypeKind::Json => {
            fits(value.is_text(), value.kind != TypeKind::Json).filter(|_| collation == column.collation)
        }
        Comparison::Bytes if column.is_bytes() => fits(value.is_bytes() || value.is_text(), true),
        Comparison::DateTime => match column.kind {
            TypeKind::Date | TypeKind::DateTime => fits(value.is_text() || temporal, temporal),
            TypeKind::Timestamp => fits(value.is_text() || temporal, false),
            _ => None,
        },
        Comparison::Time if column.kind == TypeKind::Time => {
            fits(value.is_text() || value.kind == TypeKind::Time, value.kind == TypeKind::Time)
        }
        _ => None,
    }
}

/// An equality between two expressions that a hash join can use: both sides, and the type in which equal values have equal keys.
pub(crate) fn equality(condition: &Expr) -> Option<(&Expr, &Expr, DataType)> {
    let ExprKind::Compare { op: CompareOp::Eq, by, left, right } = &condition.kind else { return None };
    // The rows of a join buffer are compared where no query can be run.
    if !is_deterministic(left) || !is_deterministic(right) || condition.has_subquery() {
        return None;
    }
    Some((left, right, key_class(*by, &left.ty, &right.ty)?))
}

/// Appends the tables for whose null rows a condition is never true.
pub(crate) fn null_rejected(condition: &Expr, out: &mut Vec<usize>) {
    match &condition.kind {
        ExprKind::And(left, right) => {
            null_rejected(left, out);
            null_rejected(right, out);
        }
        ExprKind::Or(left, right) => {
            let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
            null_rejected(left, &mut of_left);
            null_rejected(right, &mut of_right);
            out.extend(of_left.into_iter().filter(|t| of_right.contains(t)));
        }
        ExprKind::Compare { op, left, right, .. } if *op != CompareOp::NullSafeEq => {
            strict_tables(left, out);
            strict_tables(right, out);
        }
        ExprKind::Between { expr, negated: false, low, high, .. } => {
            strict_tables(expr, out);
            strict_tables(low, out);
            strict_tables(high, out);
        }
        ExprKind::Between { expr, .. } | ExprKind::InList { expr, .. } => strict_tables(expr, out),
        // A NULL on the left makes no row equal.
        ExprKind::RowIn(row_in) if !row_in.negated => row_in.left.iter().for_each(|part| strict_tables(part, out)),
        ExprKind::Like(like) => strict_tables(&like.expr, out),
        ExprKind::Regexp(regexp) => strict_tables(&regexp.expr, out),
        ExprKind::IsNull { expr, negated: true } => strict_tables(expr, out),
        ExprKind::IsTruth { expr, truth: true, negated: false } => null_rejected(expr, out),
        ExprKind::Column { .. } => strict_tables(condition, out),
        _ => {}
    }
}

/// Tables whose null rows make an expression NULL.
fn strict_tables(expr: &Expr, out: &mut Vec<usize>) {
    match &expr.kind {
        ExprKind::Column { table, .. } => out.push(*table),
        ExprKind::Arithmetic { left, right, .. } | ExprKind::Bit { left, right, .. } => {
            strict_tables(left, out);
            strict_tables(right, out);
        }
        ExprKind::Negate { expr, .. } | ExprKind::BitNot(expr) | ExprKind::Cast(expr) | ExprKind::Collate(expr) => {
            strict_tables(expr, out);
        }
        _ => {}
    }
}
