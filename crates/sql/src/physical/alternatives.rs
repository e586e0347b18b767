//! What an OR says of an index.
//!
//! `a > 1 OR (a = 1 AND b > 2)`, which is also what `(a, b) > (1, 2)` means, reads two ranges of an index on `(a, b)`, and
//! these touch. So a condition is taken apart into *alternatives*: ANDs of plain comparisons, of which one must hold. An
//! AND over ORs is multiplied out while the product stays small; what is too large stays a condition that no index uses.
//!
//! Each alternative is matched with an index beside the other conditions on the table: with `t = 5`, an index on
//! `(t, a, b)` has the ranges `t = 5 AND a > 1` and `t = 5 AND a = 1 AND b > 2`. The keys of the alternatives are united
//! when the plan runs; those of several ORs, and those of the conditions beside them, are intersected
//! ([`KeyCondition::any`]). So `(a, b) > (1, 2) AND (a, b) <= (5, 6)` is one range.
//!
//! An OR needs no check on the rows when keys say all of every alternative.

use super::access::{MAX_POINTS, Match, Spread, match_parts};
use super::condition::{Sarg, Test, leaves, or_sargs, sargs};
use super::model::KeyCondition;
use crate::expr::{CompareOp, Expr, ExprKind, RowPart};
use rauk_types::DataType;
use std::borrow::Cow;

/// Most alternatives of one condition.
const MOST: usize = 256;
/// Most comparisons in all alternatives of one condition.
const MOST_LEAVES: usize = 2048;
/// Numbers of conjuncts from here on are those of the comparisons of one alternative.
const OWN: usize = usize::MAX / 2;

/// One AND of an OR.
#[derive(Clone, Debug)]
pub(crate) struct Alternative {
    /// What an index can use of it, of one table. The numbers of conjuncts are [`OWN`] and those behind it.
    sargs: Vec<Sarg>,
    /// How many comparisons it has.
    leaves: usize,
}

impl Alternative {
    pub fn has_subquery(&self) -> bool {
        self.sargs.iter().any(|sarg| sarg.test.has_subquery())
    }
}

/// Appends what an index can use of an OR, or of a comparison of rows by their order: alternatives of each table that all of
/// them speak of.
pub(super) fn alternatives(condition: &Expr, conjunct: usize, out: &mut Vec<Sarg>) {
    let Some(branches) = branches(condition) else { return };
    let mut found: Vec<(Vec<Sarg>, usize)> = Vec::with_capacity(branches.len());
    for branch in &branches {
        let mut of_branch = Vec::new();
        for (number, leaf) in branch.iter().enumerate() {
            // Alternatives of alternatives are not used: an OR counts for its lists only.
            match leaf.kind {
                ExprKind::Or(..) => or_sargs(leaf, OWN + number, &mut of_branch),
                ExprKind::RowOrder { .. } => {}
                _ => sargs(leaf, OWN + number, &mut of_branch),
            }
        }
        if of_branch.is_empty() {
            return;
        }
        found.push((of_branch, branch.len()));
    }
    let mut tables: Vec<usize> = found[0].0.iter().map(|sarg| sarg.table).collect();
    tables.sort_unstable();
    tables.dedup();
    for table in tables {
        let of_table = |(sargs, leaves): &(Vec<Sarg>, usize)| {
            let sargs: Vec<Sarg> = sargs.iter().filter(|sarg| sarg.table == table).cloned().collect();
            (!sargs.is_empty()).then_some(Alternative { sargs, leaves: *leaves })
        };
        let Some(any) = found.iter().map(of_table).collect::<Option<Vec<Alternative>>>() else { continue };
        let of_all = any.iter().flat_map(|alternative| &alternative.sargs);
        let needs = of_all.clone().flat_map(|sarg| sarg.needs.iter().copied()).collect();
        let exact = of_all.clone().all(|sarg| sarg.exact);
        out.push(Sarg { conjunct, table, column: usize::MAX, test: Test::Any(any), needs, exact });
    }
}

/// A condition as an OR of ANDs; `None`: there would be too many of them.
fn branches(condition: &Expr) -> Option<Vec<Vec<Cow<'_, Expr>>>> {
    crate::stack::grow(|| {
        let mut out: Vec<Vec<Cow<'_, Expr>>> = Vec::new();
        let mut total = 0;
        let mut parts = Vec::new();
        leaves(condition, true, &mut parts);
        for part in parts {
            let of_part = match &part.kind {
                ExprKind::And(..) => product(part),
                // As many comparisons as a triangle has places.
                ExprKind::RowOrder { parts, .. } if parts.len() * (parts.len() + 1) / 2 > MOST_LEAVES => return None,
                ExprKind::RowOrder { op, parts } => row_order(*op, parts),
                _ => vec![vec![Cow::Borrowed(part)]],
            };
            total += of_part.iter().map(Vec::len).sum::<usize>();
            out.extend(of_part);
            if out.len() > MOST || total > MOST_LEAVES {
                return None;
            }
        }
        Some(out)
    })
}

/// An AND multiplied out. An OR in it that would make too many alternatives stays one comparison.
fn product(condition: &Expr) -> Vec<Vec<Cow<'_, Expr>>> {
    let mut out: Vec<Vec<Cow<'_, Expr>>> = vec![vec![]];
    let mut parts = Vec::new();
    leaves(condition, false, &mut parts);
    for part in parts {
        let of_part = match part.kind {
            ExprKind::Or(..) | ExprKind::RowOrder { .. } => branches(part),
            _ => None,
        };
        match of_part.filter(|of_part| of_part.len() * out.len() <= MOST) {
            Some(of_part) => {
                let mut longer = Vec::with_capacity(out.len() * of_part.len());
                for branch in &out {
                    longer.extend(of_part.iter().map(|more| [branch.as_slice(), more].concat()));
                }
                out = longer;
            }
            None => out.iter_mut().for_each(|branch| branch.push(Cow::Borrowed(part))),
        }
    }
    out
}

/// `(a, b) < (x, y)` is `a < x OR a = x AND b < y`.
fn row_order(op: CompareOp, parts: &[RowPart]) -> Vec<Vec<Cow<'_, Expr>>> {
    let strict = match op {
        CompareOp::Le => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Gt,
        op => op,
    };
    let compare = |part: &RowPart, op: CompareOp| {
        let RowPart { by, left, right } = part.clone();
        let nullable = left.nullable || right.nullable;
        let kind = ExprKind::Compare { op, by, left: Box::new(left), right: Box::new(right) };
        Cow::Owned(Expr { kind, ty: DataType::BIGINT, nullable, coercibility: 5 })
    };
    let last = parts.len() - 1;
    let branch = |at: usize| {
        let equal = parts[..at].iter().map(|part| compare(part, CompareOp::Eq));
        equal.chain(std::iter::once(compare(&parts[at], if at == last { op } else { strict }))).collect()
    };
    (0..=last).map(branch).collect()
}

/// Adds what the ORs among `sargs` say of the keys of an index to what the other conditions say.
pub(super) fn match_alternatives(spread: &Spread<'_>, sargs: &[&Sarg], found: Option<Match>) -> Option<Match> {
    if !sargs.iter().any(|sarg| matches!(sarg.test, Test::Any(_))) {
        return found;
    }
    let plain: Vec<&Sarg> = sargs.iter().copied().filter(|sarg| !matches!(sarg.test, Test::Any(_))).collect();
    // A whole key has nothing left to narrow, and lookups know no alternatives.
    if found.as_ref().is_some_and(|found| found.condition.fixed_parts() == spread.index.parts.len()) {
        return found;
    }
    let mut found = found;
    for sarg in sargs {
        let Test::Any(any) = &sarg.test else { continue };
        if found.as_ref().is_some_and(|found| found.covers.contains(&sarg.conjunct)) {
            continue;
        }
        let Some(of_any) = match_any(spread, any, &plain) else { continue };
        let of = found.get_or_insert_with(Match::everything);
        of.selectivity = of.selectivity.min(of_any.selectivity);
        of.uses.push(sarg.conjunct);
        if of_any.whole {
            of.covers.push(sarg.conjunct);
        }
        of.condition.any.push(of_any.conditions);
    }
    found
}

struct MatchedAny {
    conditions: Vec<KeyCondition>,
    selectivity: f64,
    /// Keys say all of it.
    whole: bool,
}

/// What an alternative and the conditions beside it say of an index; `None`: nothing that those do not say alone.
pub(super) fn match_alternative(spread: &Spread<'_>, alternative: &Alternative, plain: &[&Sarg]) -> Option<Match> {
    let sargs: Vec<&Sarg> = alternative.sargs.iter().chain(plain.iter().copied()).collect();
    match_parts(spread, &sargs).filter(|found| found.uses.iter().any(|conjunct| *conjunct >= OWN))
}

fn match_any(spread: &Spread<'_>, any: &[Alternative], plain: &[&Sarg]) -> Option<MatchedAny> {
    let mut out = MatchedAny { conditions: Vec::with_capacity(any.len()), selectivity: 0.0, whole: true };
    let mut ranges = 0;
    for alternative in any {
        let found = match_alternative(spread, alternative, plain)?;
        ranges += found.condition.ranges();
        if ranges > MAX_POINTS {
            return None;
        }
        out.selectivity += found.selectivity;
        out.whole &= (0..alternative.leaves).all(|leaf| found.covers.contains(&(OWN + leaf)));
        out.conditions.push(found.condition);
    }
    out.selectivity = out.selectivity.min(1.0);
    Some(out)
}

/// What an OR says of an index of elements, whose part with the number `part` each of its alternatives fixes. ORs beside
/// each other are not intersected: a row has several keys, and each OR may hold for another one.
pub(super) fn match_elements(spread: &Spread<'_>, sargs: &[&Sarg], part: usize) -> Option<Match> {
    let plain: Vec<&Sarg> = sargs.iter().copied().filter(|sarg| !matches!(sarg.test, Test::Any(_))).collect();
    let of_or = |sarg: &&Sarg| {
        let Test::Any(any) = &sarg.test else { return None };
        let found = match_any(spread, any, &plain)?;
        if !found.conditions.iter().all(|condition| fixes(condition, part)) {
            return None;
        }
        let condition = KeyCondition { any: vec![found.conditions], ..KeyCondition::default() };
        Some(Match { condition, uses: vec![sarg.conjunct], selectivity: found.selectivity, ..Match::everything() })
    };
    sargs.iter().filter_map(of_or).min_by(|a, b| a.selectivity.total_cmp(&b.selectivity))
}

/// Whether a condition says which element a row has: an index of elements lacks rows without any.
pub(super) fn fixes(condition: &KeyCondition, part: usize) -> bool {
    condition.equal.len() > part && condition.tuples.is_none() && condition.any.is_empty()
}

/// Whether comparisons of rows of this kind are taken apart.
pub(super) fn is_ordered(op: CompareOp) -> bool {
    matches!(op, CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Comparison;
    use rauk_types::Value;

    fn compare(column: usize, op: CompareOp, value: i64) -> Expr {
        let of = |kind: ExprKind| Box::new(Expr { kind, ty: DataType::BIGINT, nullable: false, coercibility: 5 });
        let left = of(ExprKind::Column { table: 0, column });
        let right = of(ExprKind::Literal(Value::Int(value)));
        *of(ExprKind::Compare { op, by: Comparison::Integer, left, right })
    }

    fn join(kind: fn(Box<Expr>, Box<Expr>) -> ExprKind, left: Expr, right: Expr) -> Expr {
        let kind = kind(Box::new(left), Box::new(right));
        Expr { kind, ty: DataType::BIGINT, nullable: false, coercibility: 5 }
    }

    fn one(number: i64) -> Expr {
        compare(0, CompareOp::Eq, number)
    }

    fn shape(condition: &Expr) -> Option<Vec<Vec<Expr>>> {
        let owned = |branch: Vec<Cow<'_, Expr>>| branch.into_iter().map(Cow::into_owned).collect();
        branches(condition).map(|found| found.into_iter().map(owned).collect())
    }

    #[test]
    fn an_and_over_ors_is_multiplied_out() {
        let (and, or) = (ExprKind::And, ExprKind::Or);
        let condition = join(or, one(1), join(and, one(2), join(or, one(3), join(and, one(4), one(5)))));
        let expected = vec![vec![one(1)], vec![one(2), one(3)], vec![one(2), one(4), one(5)]];
        assert_eq!(shape(&condition), Some(expected));
    }

    #[test]
    fn what_would_be_too_much_stays_together() {
        let any =
            |from: i64, count: i64| (from..from + count).map(one).reduce(|a, b| join(ExprKind::Or, a, b)).unwrap();
        // A product of 20 * 20 alternatives.
        let large = join(ExprKind::And, any(0, 20), any(100, 20));
        let found = shape(&join(ExprKind::Or, one(-1), large)).unwrap();
        assert_eq!(found.len(), 21);
        assert_eq!(found[1], vec![one(0), any(100, 20)]);
        assert_eq!(shape(&any(0, MOST as i64 + 1)), None);
    }

    #[test]
    fn the_order_of_rows_is_an_or() {
        let part = |column: usize, value: i64| {
            let ExprKind::Compare { by, left, right, .. } = compare(column, CompareOp::Eq, value).kind else {
                panic!()
            };
            RowPart { by, left: *left, right: *right }
        };
        let kind = ExprKind::RowOrder { op: CompareOp::Ge, parts: vec![part(0, 1), part(1, 2)] };
        let rows = Expr { kind, ty: DataType::BIGINT, nullable: false, coercibility: 5 };
        let (a, b) = (|op| compare(0, op, 1), |op| compare(1, op, 2));
        let expected = vec![vec![a(CompareOp::Gt)], vec![a(CompareOp::Eq), b(CompareOp::Ge)]];
        assert_eq!(shape(&rows), Some(expected));
    }
}
