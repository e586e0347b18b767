//! The access path of one table.
//!
//! Candidates are: whole primary keys, whole unique keys, ranges of each ordered index (equalities on leading parts, then bounds on the next), an
//! ordered index as a whole when its order is wanted, and all rows. The cheapest is taken, by a rule simple enough to explain:
//!
//! ```text
//! a lookup by primary key      1 a key           a lookup by unique key   2 a key
//! a row by index range         3.5, and 3 a range  all rows               1 a row, and 10
//! an entry that is enough      1
//! rows in an index's order     3.5 a row of a whole index; LIMIT takes its part of the cost
//! sorting                      a tenth of log2(rows) a row
//! ```
//! (A row found through an index costs a jump in memory; measured, that is three to four times a row of a full scan. Where the block
//! reads no other columns of the table than those of the index, and locks nothing, entries stand for most rows; `kernel` looks at a row only where it may have
//! changed lately. That takes a seventh of the time.) An equality that is not unique is
//! thought to leave the square root of the rows, each further part a tenth of that; a range between two bounds a tenth of the rows, with one bound a
//! third. Where a table has statistics, an equality leaves the rows of one value on average.
//!
//! A condition that the path guarantees exactly is not checked again; one that an index only narrows (prefix parts, bounds that lose precision, DST) is.
//! Prefix indexes serve equalities as MySQL's do: by the first characters, in every collation.

use super::alternatives::{fixes, match_alternatives, match_elements};
use super::condition::{Sarg, Test};
use super::merge;
use super::model::{
    Access, DistributionKey, EqualPart, IndexAccess, KeyCondition, KeyValue, MergeAccess, MergeWay, RangePart, Source,
    SourceTable, TextAccess,
};
use super::selectivity::{self, Of};
use super::skip::{self, Groups};
use crate::expr::{CompareOp, Expr, ExprKind, Switches, fulltext};
use crate::logical::PathHint;
use crate::statistics::TableStatistics;
use rauk_node::Database;
use rauk_types::{Covering, IndexKind, IndexSchema, TableSchema};
use std::cell::Cell;

/// An order that would save a sort: columns of this table with their directions (true: descending).
pub(crate) struct Wanted<'a> {
    pub order: &'a [(usize, bool)],
    /// Rows that will be taken.
    pub limit: Option<f64>,
}

#[derive(Clone)]
pub(crate) struct Chosen {
    pub access: Access,
    /// Rows that one iteration reads.
    pub rows: f64,
    /// Rows of them that the conditions leave; in a join, less than one where most iterations leave none.
    pub kept: f64,
    pub cost: f64,
    /// Conjuncts that need no check.
    pub covers: Vec<usize>,
    /// Conjuncts that the path narrows its rows by, whether they need a check or not.
    pub uses: Vec<usize>,
    /// Indexes that have a usable condition.
    pub possible: Vec<usize>,
    /// The wanted order is served.
    pub ordered: bool,
}

const LOOKUP: f64 = 1.0;
const UNIQUE_LOOKUP: f64 = 2.0;
pub(super) const RANGE_ROW: f64 = 3.5;
pub(super) const RANGE: f64 = 3.0;
const INDEX_ROW: f64 = 3.5;
/// A row of which the index's entry says enough.
const COVERED_ROW: f64 = 1.0;
const SCAN_START: f64 = 10.0;
/// Keys that conditions on several parts may multiply to.
pub(super) const MAX_POINTS: usize = 1 << 16;
/// Rows that a query of FROM is believed to give.
const QUERY_ROWS: f64 = 100.0;

pub(crate) fn sort_cost(rows: f64) -> f64 {
    rows * (1.0 + rows.max(2.0).log2() * 0.1)
}

/// The table that a path is chosen for.
pub(crate) struct Table<'a> {
    /// Its number in FROM.
    pub number: usize,
    pub source: &'a Source,
    /// There are other tables.
    pub joins: bool,
    /// Set when a value is not known which would say what its conditions leave.
    pub by_values: &'a Cell<bool>,
    /// Its rows are not locked.
    pub plain: bool,
    /// Its columns that are read behind the conditions that are checked on its rows.
    pub read: &'a [usize],
    pub switches: Switches,
    /// Of a block with one table: what it reads where equal rows count once.
    pub groups: Option<&'a Groups>,
}

/// What a hint says, and the paths that it speaks of.
type HintedWay<'a> = (&'a Option<PathHint>, &'a dyn Fn(&Chosen) -> bool);

/// Chooses for one table. `sargs` are the conditions on this table whose values are known when it is read; `conditions` the
/// conjuncts that will be checked on its rows, with their numbers.
pub(crate) fn choose(
    of: &Table<'_>,
    sargs: &[&Sarg],
    conditions: &[(usize, &Expr)],
    wanted: Option<&Wanted<'_>>,
    database: &Database,
) -> Chosen {
    let source = of.source;
    let schema = source.schema().clone();
    let table = match &source.table {
        SourceTable::Virtual(_) => return virtual_table(&schema, sargs, conditions.len()),
        SourceTable::Query(..) => return query_rows(conditions.len()),
        SourceTable::Stored(handle) => handle,
    };
    let total = database.estimate_rows(table).max(1) as f64;
    let distribution = distribution_key(&schema, sargs);
    let pruned = if distribution.is_some() { f64::from(database.partition_count().max(1)) } else { 1.0 };

    let mut candidates = Vec::new();
    let mut possible = Vec::new();
    for position in 0..schema.indexes.len() {
        if source.allowed_indexes.as_ref().is_some_and(|a| !a.contains(&position)) {
            continue;
        }
        let hints = &source.path_hints;
        let narrowed: Vec<&Sarg>;
        let sargs = match (PathHint::allows(&hints.lookup, position), PathHint::allows(&hints.range, position)) {
            (true, true) => sargs,
            (lookups, _) => {
                let keeps = |sarg: &&&Sarg| lookups && sarg.test.is_one_value();
                narrowed = sargs.iter().filter(keeps).copied().collect();
                narrowed.as_slice()
            }
        };
        let wanted = wanted.filter(|_| PathHint::allows(&hints.order, position));
        let known = Known { of, sargs, conditions, total, distribution: &distribution, wanted };
        index_candidates(&schema, position, &known, &mut candidates, &mut possible);
        if !(position == 0 && schema.hidden_key) {
            let distribution = &distribution;
            let conditions = conditions.iter().map(|(number, _)| *number).collect::<Vec<usize>>();
            let asked = skip::Asked { of, position, sargs, conditions: &conditions, total, distribution, database };
            let before = candidates.len();
            skip::candidates(&asked, &mut candidates);
            if candidates.len() > before && !possible.contains(&position) {
                possible.push(position);
            }
        }
    }
    let hints = &source.path_hints;
    // A whole key is better in any case.
    let by_key = |candidate: &Chosen| matches!(candidate.access, Access::Primary(_) | Access::Unique(_));
    let asked_for = |hint: &Option<PathHint>, candidate: &Chosen, way: &dyn Fn(&Chosen) -> bool| {
        PathHint::asks(hint) && way(candidate)
    };
    let ways: [HintedWay<'_>; 4] = [
        (&hints.lookup, &|candidate| !candidate.uses.is_empty() && matches!(candidate.access, Access::Range(_))),
        (&hints.order, &|candidate| candidate.ordered),
        (&hints.group, &skip::is_loose),
        (&hints.skip, &skip::is_skip),
    ];
    for (hint, way) in ways {
        if candidates.iter().any(|candidate| asked_for(hint, candidate, way)) {
            candidates.retain(|candidate| by_key(candidate) || way(candidate));
        }
    }
    if let Some(mut merged) = merge::candidate(of, sargs, total, &distribution) {
        if PathHint::asks(&hints.merge) {
            candidates.retain(by_key);
        }
        let new: Vec<usize> = merged.possible.drain(..).filter(|position| !possible.contains(position)).collect();
        possible.extend(new);
        possible.sort_unstable();
        candidates.push(merged);
    }
    if let Some(found) = full_text(of, conditions, total) {
        if let Access::Text(text) = &found.access
            && !possible.contains(&text.access.index)
        {
            possible.push(text.access.index);
        }
        candidates.push(found);
    }
    let has_index = !candidates.is_empty();
    let asked = |candidate: &Chosen| match candidate.access {
        Access::Merge(_) => PathHint::asks(&hints.merge),
        _ => ways.iter().any(|(hint, way)| asked_for(hint, candidate, way)),
    };
    if !(source.force_index && has_index || candidates.iter().any(asked)) {
        candidates.push(Chosen {
            access: Access::Full { distribution: distribution.clone() },
            rows: total / pruned,
            kept: 0.0,
            cost: total / pruned + SCAN_START,
            covers: vec![],
            uses: vec![],
            possible: vec![],
            ordered: false,
        });
    }
    let mut best: Option<Chosen> = None;
    for mut candidate in candidates {
        candidate.kept = match of.joins {
            false => {
                let unchecked = conditions.len().saturating_sub(candidate.covers.len());
                (candidate.rows * selectivity::unknown(unchecked)).max(1.0)
            }
            true => kept(&candidate, of, conditions, total),
        };
        if let Some(wanted) = wanted {
            if !candidate.ordered {
                candidate.cost += sort_cost(candidate.kept);
            } else if let Some(limit) = wanted.limit {
                candidate.cost *= (limit / candidate.kept).clamp(0.0, 1.0);
            }
        }
        if best.as_ref().is_none_or(|b| candidate.cost < b.cost) {
            best = Some(candidate);
        }
    }
    let mut best = best.expect("a full scan or an index is always a candidate");
    best.possible = possible;
    best
}

/// The part of the rows that a search is thought to find.
const FOUND: f64 = 0.01;

/// Rows that a MATCH among the conditions finds.
fn full_text(of: &Table<'_>, conditions: &[(usize, &Expr)], total: f64) -> Option<Chosen> {
    let schema = of.source.schema();
    let allowed =
        |position: &usize| of.source.allowed_indexes.as_ref().is_none_or(|allowed| allowed.contains(position));
    conditions.iter().find_map(|(number, condition)| {
        let (search, columns, above) = found_by(condition)?;
        let mut positions = Vec::with_capacity(columns.len());
        for column in columns {
            match column.kind {
                ExprKind::Column { table, column } if table == of.number => positions.push(column),
                _ => return None,
            }
        }
        let position = fulltext::index_of(schema, &positions).filter(allowed)?;
        let rows = (total * FOUND).max(1.0);
        let access = IndexAccess {
            index: position,
            key_def: schema.key_def(&schema.indexes[position]),
            condition: KeyCondition::default(),
            distribution: None,
            ordered: false,
            reverse: false,
        };
        Some(Chosen {
            access: Access::Text(Box::new(TextAccess { access, search, above })),
            rows,
            kept: 0.0,
            cost: rows * RANGE_ROW + RANGE,
            covers: vec![],
            uses: vec![*number],
            possible: vec![],
            ordered: false,
        })
    })
}

/// A condition that MATCH decides: its search, its columns, and what it must be above.
type FoundBy<'e> = (usize, &'e [Expr], Option<(Expr, bool)>);

fn found_by(condition: &Expr) -> Option<FoundBy<'_>> {
    if let Some((search, columns)) = fulltext::called(condition) {
        return Some((search, columns, None));
    }
    let ExprKind::Compare { op, left, right, .. } = &condition.kind else { return None };
    let (op, call, value) = match fulltext::called(left) {
        Some(call) => (*op, call, right),
        None => (op.flipped(), fulltext::called(right)?, left),
    };
    let inclusive = match op {
        CompareOp::Gt => false,
        CompareOp::Ge => true,
        _ => return None,
    };
    let known = value.is_constant() && !value.has_subquery() && value.ty.is_numeric();
    known.then(|| (call.0, call.1, Some(((**value).clone(), inclusive))))
}

/// Rows of a candidate that the conditions of a join leave.
fn kept(candidate: &Chosen, of: &Table<'_>, conditions: &[(usize, &Expr)], rows: f64) -> f64 {
    let unused = conditions.iter().filter(|(number, _)| !candidate.uses.contains(number));
    let unused: Vec<&Expr> = unused.map(|(_, condition)| *condition).collect();
    let statistics = of.source.statistics.as_deref();
    let (schema, by_values) = (of.source.schema(), of.by_values);
    let left = selectivity::left(&unused, &Of { table: of.number, schema, statistics, rows, by_values });
    match candidate.access {
        // One partition has all rows that the conditions leave.
        Access::Full { .. } => (rows * left).min(candidate.rows),
        _ => candidate.rows * left,
    }
}

fn virtual_table(schema: &TableSchema, sargs: &[&Sarg], conditions: usize) -> Chosen {
    let mut hints = [None, None];
    for sarg in sargs {
        if let Test::Equal(value) = &sarg.test
            && value.is_constant()
        {
            let name = &schema.columns[sarg.column].name;
            if name.eq_ignore_ascii_case("TABLE_SCHEMA") || name.eq_ignore_ascii_case("SCHEMA_NAME") {
                hints[0] = Some(value.clone());
            } else if name.eq_ignore_ascii_case("TABLE_NAME") {
                hints[1] = Some(value.clone());
            }
        }
    }
    let [schema_hint, table_hint] = hints;
    let rows = 100.0;
    Chosen {
        access: Access::Virtual { schema: schema_hint, table: table_hint },
        rows,
        kept: (rows * selectivity::unknown(conditions)).max(1.0),
        cost: rows + SCAN_START,
        covers: vec![],
        uses: vec![],
        possible: vec![],
        ordered: false,
    }
}

/// Rows of a query: nothing is known of them.
fn query_rows(conditions: usize) -> Chosen {
    let rows = QUERY_ROWS;
    Chosen {
        access: Access::Rows,
        rows,
        kept: (rows * selectivity::unknown(conditions)).max(1.0),
        cost: rows,
        covers: vec![],
        uses: vec![],
        possible: vec![],
        ordered: false,
    }
}

/// The distribution columns, when each is fixed to one value.
fn distribution_key(schema: &TableSchema, sargs: &[&Sarg]) -> Option<DistributionKey> {
    let mut values = Vec::with_capacity(schema.distribution.len());
    for &column in &schema.distribution {
        values.push(sargs.iter().find_map(|s| match &s.test {
            Test::Equal(value) if s.column == column => Some(value.clone()),
            _ => None,
        })?);
    }
    Some(DistributionKey { key_def: schema.distribution_def(), values })
}

/// What conditions say about the leading parts of an index.
pub(super) struct Match {
    pub condition: KeyCondition,
    pub covers: Vec<usize>,
    pub uses: Vec<usize>,
    /// Parts fixed to exactly one value.
    pub single: Vec<bool>,
    pub selectivity: f64,
}

impl Match {
    /// All keys.
    pub fn everything() -> Match {
        Match { condition: KeyCondition::default(), covers: vec![], uses: vec![], single: vec![], selectivity: 1.0 }
    }
}

/// What an index says about the number of rows with one value of its leading columns.
pub(super) struct Spread<'a> {
    pub index: &'a IndexSchema,
    pub statistics: Option<&'a TableStatistics>,
    pub total: f64,
}

impl Spread<'_> {
    /// The part of the rows that one value of the first `parts` columns has; `None`: it is not known.
    fn of_one(&self, parts: usize) -> Option<f64> {
        let distinct = self.statistics?.distinct(self.index.id, parts, self.total as u64)?;
        Some(1.0 / distinct.max(1.0))
    }
}

pub(super) fn match_index(spread: &Spread<'_>, sargs: &[&Sarg]) -> Option<Match> {
    let (index, total) = (spread.index, spread.total);
    let mut best = match_parts(spread, sargs);
    // Tuples serve when they fix more parts than single conditions do.
    for sarg in sargs {
        let Test::Tuples { columns, rows } = &sarg.test else { continue };
        let parts = index.parts.len().min(columns.len());
        let Some(order) = index.parts[..parts]
            .iter()
            .map(|p| columns.iter().position(|c| *c == p.column))
            .collect::<Option<Vec<usize>>>()
        else {
            continue;
        };
        if order.is_empty() || best.as_ref().is_some_and(|b| b.condition.equal.len() >= order.len()) {
            continue;
        }
        let tuples: Vec<Vec<KeyValue>> =
            rows.iter().map(|row| order.iter().map(|&i| KeyValue::Value(row[i].clone())).collect()).collect();
        let whole = order.len() == columns.len() && index.parts[..parts].iter().all(|p| p.prefix.is_none());
        best = Some(Match {
            selectivity: match spread.of_one(order.len()) {
                Some(of_one) => (of_one * tuples.len() as f64).min(1.0),
                None => (0.1f64.powi(order.len() as i32 - 1) * tuples.len() as f64 / total.sqrt()).min(1.0),
            },
            single: vec![tuples.len() == 1; order.len()],
            covers: if sarg.exact && whole { vec![sarg.conjunct] } else { vec![] },
            uses: vec![sarg.conjunct],
            condition: KeyCondition { tuples: Some(tuples), ..KeyCondition::default() },
        });
    }
    match_alternatives(spread, sargs, best)
}

pub(super) fn match_parts(spread: &Spread<'_>, sargs: &[&Sarg]) -> Option<Match> {
    let (index, total) = (spread.index, spread.total);
    let mut out = Match::everything();
    let mut points = 1usize;
    // A value without an exact key is a range of keys, and then the parts behind it narrow nothing.
    let mut exact = true;
    for part in &index.parts {
        let of_part = || sargs.iter().filter(|s| s.column == part.column);
        // One value first, then few, then a list.
        let mut equality: Option<(&Sarg, Vec<KeyValue>)> = None;
        for sarg in of_part() {
            let values = match &sarg.test {
                Test::Equal(value) => vec![KeyValue::Value(value.clone())],
                Test::NullSafe(value) => vec![KeyValue::NullSafe(value.clone())],
                Test::IsNull => vec![KeyValue::Null],
                Test::In(values) => values.iter().map(|v| KeyValue::Value(v.clone())).collect(),
                _ => continue,
            };
            if equality.as_ref().is_none_or(|(_, known)| values.len() < known.len()) {
                equality = Some((sarg, values));
            }
        }
        if let Some((sarg, values)) = equality
            && points * values.len() <= MAX_POINTS
        {
            points *= values.len();
            let of_one = if out.single.is_empty() { 1.0 / total.sqrt() } else { 0.1 };
            out.single.push(values.len() == 1);
            out.selectivity = match spread.of_one(out.single.len()) {
                Some(of_one) => (of_one * points as f64).min(1.0),
                None => out.selectivity * (of_one * values.len() as f64).min(1.0),
            };
            exact &= sarg.exact && part.prefix.is_none();
            out.uses.push(sarg.conjunct);
            if exact {
                out.covers.push(sarg.conjunct);
            }
            out.condition.equal.push(EqualPart { values });
            continue;
        }
        let mut range = RangePart::default();
        for sarg in of_part() {
            match &sarg.test {
                Test::Low(value, inclusive) => range.low.push((value.clone(), *inclusive)),
                Test::High(value, inclusive) => range.high.push((value.clone(), *inclusive)),
                Test::Between(low, high) => {
                    range.low.push((low.clone(), true));
                    range.high.push((high.clone(), true));
                }
                Test::Like(pattern, escape) => range.like.push((pattern.clone(), *escape)),
                Test::IsNotNull => {}
                _ => continue,
            }
            range.not_null = true;
            out.uses.push(sarg.conjunct);
            // LIKE is narrowed by its prefix only.
            if exact && sarg.exact && part.prefix.is_none() && !matches!(sarg.test, Test::Like(..)) {
                out.covers.push(sarg.conjunct);
            }
        }
        if range.not_null {
            out.selectivity *= if !range.like.is_empty() || (!range.low.is_empty() && !range.high.is_empty()) {
                0.1
            } else if !range.low.is_empty() || !range.high.is_empty() {
                0.33
            } else {
                0.9
            };
            out.condition.range = Some(range);
        }
        break;
    }
    (!out.condition.equal.is_empty() || out.condition.range.is_some()).then_some(out)
}

/// What is known when the candidates of an index are looked for.
struct Known<'a> {
    of: &'a Table<'a>,
    sargs: &'a [&'a Sarg],
    conditions: &'a [(usize, &'a Expr)],
    total: f64,
    distribution: &'a Option<DistributionKey>,
    wanted: Option<&'a Wanted<'a>>,
}

impl Known<'_> {
    /// What a row costs that is found by an index, when these conditions need no check.
    fn row(&self, index: &IndexSchema, covers: &[usize], row: f64) -> f64 {
        let (of, schema) = (self.of, self.of.source.schema());
        if !of.plain || !Covering::is_possible(schema, &index.parts, of.read) {
            return row;
        }
        let mut read = of.read.to_vec();
        for (_, condition) in self.conditions.iter().filter(|(number, _)| !covers.contains(number)) {
            condition.for_each_column(&mut |table, column| {
                if table == of.number {
                    read.push(column);
                }
            });
        }
        if Covering::is_possible(schema, &index.parts, &read) { COVERED_ROW } else { row }
    }
}

fn index_candidates(
    schema: &TableSchema,
    position: usize,
    known: &Known<'_>,
    candidates: &mut Vec<Chosen>,
    possible: &mut Vec<usize>,
) {
    let &Known { of, sargs, total, distribution, wanted, .. } = known;
    let statistics = of.source.statistics.as_deref();
    let index = &schema.indexes[position];
    let hidden = position == 0 && schema.hidden_key;
    if hidden || index.is_full_text() {
        return;
    }
    let spread = Spread { index, statistics, total };
    if let Some(elements) = index.elements() {
        let part = elements.part.into();
        let fixed = match_parts(&spread, sargs).filter(|found| fixes(&found.condition, part));
        let found = fixed.or_else(|| match_elements(&spread, sargs, part));
        candidates.extend(found.and_then(|found| by_elements(known, position, found, possible)));
        return;
    }
    let found = match_index(&spread, sargs);
    let fixed_columns: Vec<usize> = sargs
        .iter()
        .filter(|s| matches!(s.test, Test::Equal(_) | Test::NullSafe(_) | Test::IsNull))
        .map(|s| s.column)
        .collect();
    let direction = wanted.and_then(|w| index_order(schema, index, &fixed_columns, w.order));
    let access = |condition: KeyCondition, ordered: Option<bool>| IndexAccess {
        index: position,
        key_def: schema.key_def(index),
        condition,
        distribution: distribution.clone(),
        ordered: ordered.is_some(),
        reverse: ordered.unwrap_or(false),
    };
    if let Some(found) = found {
        if index.is_ordered() || found.condition.fixed_parts() == index.parts.len() {
            possible.push(position);
        }
        let whole = found.condition.fixed_parts() == index.parts.len();
        let plain = match &found.condition.tuples {
            Some(_) => true,
            None => found.condition.equal.iter().all(|p| p.values.iter().all(|v| matches!(v, KeyValue::Value(_)))),
        };
        let points = found.condition.points() as f64;
        let ranges = found.condition.ranges() as f64;
        let unique = index.is_unique();
        if whole && unique && (plain || index.kind == IndexKind::Primary) {
            // Whether each value is exactly one key. If not, an index without an order may have to read everything, so all conditions stay.
            let are_keys = found.covers.len() == found.uses.len();
            let primary = index.kind == IndexKind::Primary;
            let access = access(found.condition, direction);
            candidates.push(Chosen {
                rows: points.min(total),
                kept: 0.0,
                cost: points * if primary { LOOKUP } else { UNIQUE_LOOKUP },
                // The row behind a unique index entry is checked again: it may have changed in between.
                covers: if primary && (are_keys || index.is_ordered()) { found.covers } else { vec![] },
                uses: found.uses,
                possible: vec![],
                // The order of one row is any order. A value that is not exactly one key makes ranges of them, which an ordered index reads in its order.
                ordered: wanted.is_some()
                    && match direction {
                        Some(_) => are_keys || index.is_ordered(),
                        None => are_keys && points <= 1.0,
                    },
                access: if primary { Access::Primary(access) } else { Access::Unique(access) },
            });
            return;
        }
        if index.is_ordered() {
            let rows = (total * found.selectivity).clamp(1.0, total);
            candidates.push(Chosen {
                rows,
                kept: 0.0,
                cost: rows * known.row(index, &found.covers, RANGE_ROW) + RANGE * ranges.max(1.0),
                covers: found.covers,
                uses: found.uses,
                possible: vec![],
                ordered: direction.is_some(),
                access: Access::Range(access(found.condition, direction)),
            });
        }
    } else if index.is_ordered() && direction.is_some() {
        candidates.push(Chosen {
            rows: total,
            kept: 0.0,
            cost: total * known.row(index, &[], INDEX_ROW),
            covers: vec![],
            uses: vec![],
            possible: vec![],
            ordered: true,
            access: Access::Range(access(KeyCondition::default(), direction)),
        });
    }
}

/// Rows that have one of some elements. A row has several keys in such an index: where more than one is looked for, rows that were met are remembered, as where
/// several indexes are merged, which is not done in joins.
fn by_elements(known: &Known<'_>, position: usize, found: Match, possible: &mut Vec<usize>) -> Option<Chosen> {
    let &Known { of, total, distribution, .. } = known;
    let schema = of.source.schema();
    possible.push(position);
    let (points, ranges) = (found.condition.points(), found.condition.ranges());
    let access = IndexAccess {
        index: position,
        key_def: schema.key_def(&schema.indexes[position]),
        condition: found.condition,
        distribution: distribution.clone(),
        ordered: false,
        reverse: false,
    };
    let rows = (total * found.selectivity).clamp(1.0, total);
    let several = points > 1 || !access.condition.any.is_empty();
    if several && of.joins {
        return None;
    }
    let merged = MergeAccess { parts: vec![access.clone()], way: MergeWay::SortUnion };
    Some(Chosen {
        rows,
        kept: 0.0,
        cost: rows * (RANGE_ROW + if several { merge::MERGED_ROW } else { 0.0 }) + RANGE * ranges.max(1) as f64,
        covers: vec![],
        uses: found.uses,
        possible: vec![],
        ordered: false,
        access: if several { Access::Merge(Box::new(merged)) } else { Access::Range(access) },
    })
}

/// Whether an index gives rows in `order`, and if so whether it must be read backwards. Columns fixed to one value order nothing.
fn index_order(schema: &TableSchema, index: &IndexSchema, fixed: &[usize], order: &[(usize, bool)]) -> Option<bool> {
    let mut reverse: Option<bool> = None;
    let mut parts = index.parts.iter().peekable();
    for (column, descending) in order {
        if fixed.contains(column) {
            continue;
        }
        while parts.peek().is_some_and(|p| fixed.contains(&p.column)) {
            parts.next();
        }
        let Some(part) = parts.next() else {
            // Behind a whole unique key nothing is left to order.
            let unique = index.kind == IndexKind::Primary
                || index.kind == IndexKind::Unique && index.parts.iter().all(|p| !schema.columns[p.column].nullable);
            let whole = index.parts.iter().all(|p| p.prefix.is_none());
            return (unique && whole).then_some(reverse.unwrap_or(false));
        };
        if part.column != *column || part.prefix.is_some() {
            return None;
        }
        let backwards = part.descending != *descending;
        if reverse.is_some_and(|r| r != backwards) {
            return None;
        }
        reverse = Some(backwards);
    }
    Some(reverse.unwrap_or(false))
}
