//! Index merge: the parts of an OR, each by an index of its own, or of an AND.
//!
//! `a = 1 OR b = 2` reads the rows of `a = 1` by an index on `a`, and those of `b = 2` by one on `b`. Each alternative
//! (see `alternatives`) takes the index that leaves the fewest rows, beside the other conditions on the table; those of one
//! index are one scan. The rows are checked against all conditions, and come once each (`exec/merge`). One of the indexes may be
//! of the elements of an array.
//!
//! `a = 1 AND b = 2` looks at the rows that have entries at both keys, in an index on `a` and one on `b`: entries of one key lie in the order of row
//! ids, and are walked side by side (`kernel`). An entry costs a fifth of its row, so this pays where each condition leaves many rows and
//! both together few. The first index is read as a range is; the other conditions are checked on the rows, since an entry may be of an older version.
//! Only plain reads are intersected: what is locked is locked as the first index finds it. In a join the keys may be of
//! the tables before.
//!
//! Left out: intersections of ranges, whose entries are in another order, and those in the parts of an OR; unions in
//! joins.

use super::access::{Chosen, MAX_POINTS, Match, RANGE, RANGE_ROW, Spread, Table, match_parts};
use super::alternatives::{Alternative, fixes, match_alternative};
use super::condition::{Sarg, Test};
use super::model::{Access, DistributionKey, IndexAccess, KeyCondition, KeyValue, MergeAccess, MergeWay};
use crate::logical::PathHint;

/// To find out whether another scan gives a row too.
pub(super) const MERGED_ROW: f64 = 0.5;
/// To look at an entry without its row.
const ENTRY: f64 = 0.8;
/// More indexes than this are not intersected.
const MOST_COMMON: usize = 4;

/// The cheapest merge for one of the ORs, or of the conditions beside each other.
pub(super) fn candidate(
    of: &Table<'_>,
    sargs: &[&Sarg],
    total: f64,
    distribution: &Option<DistributionKey>,
) -> Option<Chosen> {
    let union = union(of, sargs, total, distribution);
    let common = intersection(of, sargs, total, distribution);
    union.into_iter().chain(common).min_by(|a, b| a.cost.total_cmp(&b.cost))
}

/// Rows that have a whole key in each of several indexes.
fn intersection(of: &Table<'_>, sargs: &[&Sarg], total: f64, distribution: &Option<DistributionKey>) -> Option<Chosen> {
    let asked = PathHint::asks(&of.source.path_hints.merge);
    if !of.plain || !(asked || of.switches.index_merge_intersection()) {
        return None;
    }
    let schema = of.source.schema();
    // Joins look for paths very often.
    if schema.indexes.len() < 3 {
        return None;
    }
    let one_key = |position: usize| {
        let index = &schema.indexes[position];
        let spread = Spread { index, statistics: of.source.statistics.as_deref(), total };
        let found = match_parts(&spread, sargs)?;
        let one_value = |values: &[KeyValue]| matches!(values, [KeyValue::Value(_)]);
        let whole = found.condition.equal.len() == index.parts.len() && found.condition.range.is_none();
        let whole = whole && found.condition.equal.iter().all(|part| one_value(&part.values));
        (whole && is_usable(of, position)).then_some((position, found))
    };
    let mut keys: Vec<(usize, Match)> = (1..schema.indexes.len()).filter_map(one_key).collect();
    keys.sort_by(|a, b| a.1.selectivity.total_cmp(&b.1.selectivity));
    // The most selective ones, as long as each narrows by a column of its own and at less cost than the rows that it leaves out.
    let (mut entries, mut selectivity) = (0.0, 1.0);
    let mut chosen: Vec<(usize, Match)> = Vec::new();
    for (position, found) in keys {
        let columns = |position: usize| schema.indexes[position].parts.iter().map(|part| part.column);
        let known = |column: usize| chosen.iter().any(|(of, _)| columns(*of).any(|other| other == column));
        let saved = total * selectivity * (1.0 - found.selectivity) * RANGE_ROW;
        let cost = total * found.selectivity * ENTRY + RANGE;
        let first = chosen.is_empty();
        if chosen.len() < MOST_COMMON && (first || (asked || saved > cost) && !columns(position).any(known)) {
            entries += total * found.selectivity;
            selectivity *= found.selectivity;
            chosen.push((position, found));
        }
    }
    if chosen.len() < 2 {
        return None;
    }
    let rows = (total * selectivity).clamp(1.0, total);
    let cost = entries * ENTRY + rows * RANGE_ROW + RANGE * chosen.len() as f64;
    let possible = chosen.iter().map(|(position, _)| *position).collect();
    let covers = chosen[0].1.covers.clone();
    let uses = chosen.iter().flat_map(|(_, found)| found.uses.iter().copied()).collect();
    let access = |(position, found): (usize, Match)| IndexAccess {
        index: position,
        key_def: schema.key_def(&schema.indexes[position]),
        condition: found.condition,
        distribution: distribution.clone(),
        ordered: false,
        reverse: false,
    };
    let parts = chosen.into_iter().map(access).collect();
    Some(Chosen {
        access: Access::Merge(Box::new(MergeAccess { parts, way: MergeWay::Intersect })),
        rows,
        kept: 0.0,
        cost,
        covers,
        uses,
        possible,
        ordered: false,
    })
}

/// Whether a merge may read an index.
fn is_usable(of: &Table<'_>, position: usize) -> bool {
    let schema = of.source.schema();
    let hidden = position == 0 && schema.hidden_key;
    !hidden && may_be_used(of, position) && schema.indexes[position].is_ordered()
}

/// Whether a union may read an index of elements, where a condition fixes the element.
fn is_of_elements(of: &Table<'_>, position: usize) -> bool {
    may_be_used(of, position) && of.source.schema().indexes[position].elements().is_some()
}

fn may_be_used(of: &Table<'_>, position: usize) -> bool {
    let allowed = of.source.allowed_indexes.as_ref().is_none_or(|allowed| allowed.contains(&position));
    let hints = &of.source.path_hints;
    let hinted = [&hints.merge, &hints.lookup, &hints.range].iter().all(|hint| PathHint::allows(hint, position));
    allowed && hinted
}

/// The cheapest merge for one of the ORs.
fn union(of: &Table<'_>, sargs: &[&Sarg], total: f64, distribution: &Option<DistributionKey>) -> Option<Chosen> {
    let asked = PathHint::asks(&of.source.path_hints.merge);
    if of.joins || !(asked || of.switches.index_merge()) {
        return None;
    }
    let plain: Vec<&Sarg> = sargs.iter().copied().filter(|sarg| !matches!(sarg.test, Test::Any(_))).collect();
    let merges = sargs.iter().filter_map(|sarg| match &sarg.test {
        Test::Any(any) => merge(of, any, sarg.conjunct, &plain, total, distribution),
        _ => None,
    });
    merges.min_by(|a, b| a.cost.total_cmp(&b.cost))
}

fn merge(
    of: &Table<'_>,
    any: &[Alternative],
    conjunct: usize,
    plain: &[&Sarg],
    total: f64,
    distribution: &Option<DistributionKey>,
) -> Option<Chosen> {
    let schema = of.source.schema();
    let may_be_read = |position: &usize| is_usable(of, *position) || is_of_elements(of, *position);
    let positions: Vec<usize> = (0..schema.indexes.len()).filter(may_be_read).collect();
    let mut parts: Vec<(usize, Vec<KeyCondition>)> = Vec::new();
    let (mut rows, mut ranges, mut whole) = (0.0, 0, true);
    for alternative in any {
        let matched = positions.iter().filter_map(|&position| {
            let index = &schema.indexes[position];
            let spread = Spread { index, statistics: of.source.statistics.as_deref(), total };
            let found = match_alternative(&spread, alternative, plain)?;
            let elements = index.elements();
            elements.is_none_or(|elements| fixes(&found.condition, elements.part.into())).then_some((position, found))
        });
        let (position, found) = matched.min_by(|a, b| a.1.selectivity.total_cmp(&b.1.selectivity))?;
        rows += total * found.selectivity;
        ranges += found.condition.ranges();
        if ranges > MAX_POINTS {
            return None;
        }
        let index = &schema.indexes[position];
        whole &= found.condition.range.is_none()
            && found.condition.fixed_parts() == index.parts.len()
            && index.elements().is_none();
        match parts.iter_mut().find(|(known, _)| *known == position) {
            Some((_, conditions)) => conditions.push(found.condition),
            None => parts.push((position, vec![found.condition])),
        }
    }
    // By one index it is a list of ranges.
    let asked = PathHint::asks(&of.source.path_hints.merge);
    if parts.len() < 2 || !(asked || of.switches.index_merge_of(whole)) {
        return None;
    }
    let rows = rows.clamp(1.0, total);
    let possible = parts.iter().map(|(position, _)| *position).collect();
    let access = |(position, mut conditions): (usize, Vec<KeyCondition>)| IndexAccess {
        index: position,
        key_def: schema.key_def(&schema.indexes[position]),
        condition: match conditions.len() {
            1 => conditions.remove(0),
            _ => KeyCondition { any: vec![conditions], ..KeyCondition::default() },
        },
        distribution: distribution.clone(),
        ordered: false,
        reverse: false,
    };
    let parts = parts.into_iter().map(access).collect();
    Some(Chosen {
        access: Access::Merge(Box::new(MergeAccess {
            parts,
            way: if whole { MergeWay::Union } else { MergeWay::SortUnion },
        })),
        rows,
        kept: 0.0,
        cost: rows * (RANGE_ROW + MERGED_ROW) + RANGE * ranges as f64,
        covers: vec![],
        uses: vec![conjunct],
        possible,
        ordered: false,
    })
}
