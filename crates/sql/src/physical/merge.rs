//! Index merge: the parts of an OR, each by an index of its own.
//!
//! `a = 1 OR b = 2` reads the rows of `a = 1` by an index on `a`, and those of `b = 2` by one on `b`. Each alternative
//! (see `alternatives`) takes the index that leaves the fewest rows, beside the other conditions on the table; those of one
//! index are one scan. The rows are checked against all conditions, and come once each (`exec/merge`).
//!
//! Left out: intersections. An entry of an index leads to the row, which says whether it is to be seen; there the other
//! conditions are checked at no further cost, so that a second index saves nothing.

use super::access::{Chosen, MAX_POINTS, RANGE, RANGE_ROW, Spread, Table};
use super::alternatives::{Alternative, match_alternative};
use super::condition::{Sarg, Test};
use super::model::{Access, DistributionKey, IndexAccess, KeyCondition, MergeAccess};

/// To find out whether another scan gives a row too.
const MERGED_ROW: f64 = 0.5;

/// The cheapest merge for one of the ORs.
pub(super) fn candidate(
    of: &Table<'_>,
    sargs: &[&Sarg],
    total: f64,
    distribution: &Option<DistributionKey>,
) -> Option<Chosen> {
    if of.joins || !of.switches.index_merge() {
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
    let usable = |position: &usize| {
        let hidden = *position == 0 && schema.hidden_key;
        let allowed = of.source.allowed_indexes.as_ref().is_none_or(|allowed| allowed.contains(position));
        !hidden && allowed && schema.indexes[*position].is_ordered()
    };
    let positions: Vec<usize> = (0..schema.indexes.len()).filter(usable).collect();
    let mut parts: Vec<(usize, Vec<KeyCondition>)> = Vec::new();
    let (mut rows, mut ranges, mut whole) = (0.0, 0, true);
    for alternative in any {
        let matched = positions.iter().filter_map(|&position| {
            let index = &schema.indexes[position];
            let spread = Spread { index, statistics: of.source.statistics.as_deref(), total };
            Some((position, match_alternative(&spread, alternative, plain)?))
        });
        let (position, found) = matched.min_by(|a, b| a.1.selectivity.total_cmp(&b.1.selectivity))?;
        rows += total * found.selectivity;
        ranges += found.condition.ranges();
        if ranges > MAX_POINTS {
            return None;
        }
        whole &=
            found.condition.range.is_none() && found.condition.fixed_parts() == schema.indexes[position].parts.len();
        match parts.iter_mut().find(|(known, _)| *known == position) {
            Some((_, conditions)) => conditions.push(found.condition),
            None => parts.push((position, vec![found.condition])),
        }
    }
    // By one index it is a list of ranges.
    if parts.len() < 2 || !of.switches.index_merge_of(whole) {
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
        access: Access::Merge(Box::new(MergeAccess { parts, whole })),
        rows,
        kept: 0.0,
        cost: rows * (RANGE_ROW + MERGED_ROW) + RANGE * ranges as f64,
        covers: vec![],
        uses: vec![conjunct],
        possible,
        ordered: false,
    })
}
