//! Paths that jump over keys of an index: loose scans and skip scans.
//!
//! An index on `(a, b)` shows each value of `a` by its first key; behind it the next value is found by going down the tree
//! again. So, of a block with one table that locks nothing:
//!
//! * a *loose scan* reads one row of each value of the leading parts, for `SELECT DISTINCT a`, `GROUP BY a`, and aggregates that
//!   do not count equal values twice (`COUNT(DISTINCT a)`); with `MIN(b)` and `MAX(b)` the ends of each value too. Without
//!   `GROUP BY` there is one value, the empty one: `MIN(a), MAX(a)` reads two rows;
//! * a *skip scan* reads, for each value of the leading parts, the range that conditions on the next part leave.
//!
//! Rows of a loose scan stand for those that are left out, so keys must say all of the conditions, and the block must see no
//! difference between rows of one key. Texts that are equal may differ, and which of them stands for all is open; in small
//! tables that is the first by the primary key, so these are not read so.
//!
//! How many values there are is known from statistics; without them only the empty value is.

use super::access::{Chosen, RANGE, RANGE_ROW, Spread, Table, match_index};
use super::condition::{Sarg, Test, is_deterministic};
use super::model::{Access, DistributionKey, IndexAccess, KeyCondition, SkipAccess, Take};
use crate::expr::{Aggregate, AggregateFunction, Expr, ExprKind};
use crate::logical::PathHint;
use rauk_node::Database;
use rauk_types::{IndexSchema, KeyDef, TableSchema, TypeKind};

/// To find the next value of the leading parts, beside what each partition costs.
const JUMP: f64 = 10.0;
/// A table of so many rows comes in the order of its primary key.
const SMALL_TABLE: f64 = rauk_node::SMALL_TABLE as f64;

/// What a block reads of its only table, where rows that are equal in it count once.
pub(crate) struct Groups {
    /// Columns, and whether only their values are compared and shown, by themselves.
    columns: Vec<(usize, bool)>,
    /// MIN and MAX of a column beside them.
    ends: Option<Ends>,
}

struct Ends {
    column: usize,
    min: bool,
    max: bool,
}

impl Groups {
    fn add(&mut self, expr: &Expr) -> Option<()> {
        if !is_deterministic(expr) || expr.has_subquery() {
            return None;
        }
        let plain = matches!(expr.kind, ExprKind::Column { .. });
        expr.for_each_column(&mut |_, column| match self.columns.iter_mut().find(|(known, _)| *known == column) {
            Some((_, all_plain)) => *all_plain &= plain,
            None => self.columns.push((column, plain)),
        });
        Some(())
    }

    /// Of GROUP BY and aggregates: `None` when rows that are equal in some columns count each.
    pub fn of_aggregates<'e>(
        keys: &[Expr],
        aggregates: &[Aggregate],
        after: impl Iterator<Item = &'e Expr>,
    ) -> Option<Groups> {
        let mut groups = Groups { columns: vec![], ends: None };
        keys.iter().try_for_each(|key| groups.add(key))?;
        // What is carried along with a group is the same in all of its rows only if it is a key.
        let is_key = |column: usize| {
            keys.iter().any(|key| matches!(key.kind, ExprKind::Column { column: of, .. } if of == column))
        };
        let mut keys_only = true;
        after.for_each(|expr| expr.for_each_column(&mut |_, column| keys_only &= is_key(column)));
        if !keys_only {
            return None;
        }
        for aggregate in aggregates {
            let min = aggregate.function == AggregateFunction::Min;
            let max = aggregate.function == AggregateFunction::Max;
            match aggregate.arguments.as_slice() {
                [Expr { kind: ExprKind::Column { column, .. }, .. }]
                    if (min || max) && groups.ends.as_ref().is_none_or(|ends| ends.column == *column) =>
                {
                    let ends = groups.ends.get_or_insert(Ends { column: *column, min: false, max: false });
                    ends.min |= min;
                    ends.max |= max;
                }
                arguments => {
                    let once = matches!(
                        aggregate.function,
                        AggregateFunction::Count | AggregateFunction::Sum | AggregateFunction::Avg
                    ) && aggregate.distinct;
                    if !(once || min || max) || arguments.is_empty() {
                        return None;
                    }
                    arguments.iter().try_for_each(|argument| groups.add(argument))?;
                }
            }
        }
        Some(groups)
    }

    /// Of DISTINCT.
    pub fn of_distinct<'e>(mut exprs: impl Iterator<Item = &'e Expr>) -> Option<Groups> {
        let mut groups = Groups { columns: vec![], ends: None };
        exprs.try_for_each(|expr| groups.add(expr))?;
        (!groups.columns.is_empty()).then_some(groups)
    }
}

/// Whether values with equal keys are the same in every respect.
fn is_told_by_key(schema: &TableSchema, column: usize) -> bool {
    let ty = &schema.columns[column].ty;
    let by_value = matches!(
        ty.kind,
        TypeKind::Decimal | TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp | TypeKind::Time
    );
    ty.holds_integer() || by_value || ty.is_bytes()
}

/// The table, the index and the conditions that a path is looked for.
pub(super) struct Asked<'a> {
    pub of: &'a Table<'a>,
    pub position: usize,
    pub sargs: &'a [&'a Sarg],
    /// Numbers of the conditions.
    pub conditions: &'a [usize],
    pub total: f64,
    pub distribution: &'a Option<DistributionKey>,
    pub database: &'a Database,
}

impl Asked<'_> {
    fn schema(&self) -> &TableSchema {
        self.of.source.schema()
    }

    fn index(&self) -> &IndexSchema {
        &self.schema().indexes[self.position]
    }

    /// How many values the first parts have in the rows that `part` of all is.
    fn values(&self, parts: usize, part: f64) -> Option<f64> {
        if parts == 0 {
            return Some(1.0);
        }
        let statistics = self.of.source.statistics.as_deref()?;
        let distinct = statistics.distinct(self.index().id, parts, self.total as u64)?;
        Some((distinct * part).max(1.0))
    }

    /// What the conditions say of some parts of the index.
    fn matched(&self, parts: std::ops::Range<usize>) -> Said {
        let index = IndexSchema { parts: self.index().parts[parts.clone()].to_vec(), ..self.index().clone() };
        let statistics = self.of.source.statistics.as_deref().filter(|_| parts.start == 0);
        let found = match index.parts.is_empty() {
            true => None,
            false => match_index(&Spread { index: &index, statistics, total: self.total }, self.sargs),
        };
        match found {
            Some(found) => Said {
                single: found.single.iter().all(|single| *single)
                    && found.condition.tuples.is_none()
                    && found.condition.any.is_empty(),
                selectivity: found.selectivity,
                covers: found.covers,
                uses: found.uses,
                condition: Some(found.condition),
            },
            None => Said { condition: None, selectivity: 1.0, covers: vec![], uses: vec![], single: true },
        }
    }

    fn access(&self, condition: KeyCondition) -> IndexAccess {
        IndexAccess {
            index: self.position,
            key_def: self.schema().key_def(self.index()),
            condition,
            distribution: self.distribution.clone(),
            ordered: true,
            reverse: false,
        }
    }

    fn jump(&self) -> f64 {
        let partitions = if self.distribution.is_some() { 1 } else { self.database.partition_count().max(1) };
        JUMP + RANGE * f64::from(partitions)
    }

    fn prefix(&self, parts: usize) -> KeyDef {
        KeyDef { parts: self.schema().key_def(self.index()).parts[..parts].to_vec() }
    }
}

/// What conditions say of some parts.
struct Said {
    condition: Option<KeyCondition>,
    selectivity: f64,
    covers: Vec<usize>,
    uses: Vec<usize>,
    /// Each of its equalities has one value.
    single: bool,
}

/// Appends the paths through one index that jump.
pub(super) fn candidates(asked: &Asked<'_>, out: &mut Vec<Chosen>) {
    let of = asked.of;
    if of.joins || !of.plain || !asked.index().is_ordered() {
        return;
    }
    let hints = &of.source.path_hints;
    let ranges = PathHint::allows(&hints.range, asked.position);
    if let Some(groups) = of.groups.filter(|_| ranges && PathHint::allows(&hints.group, asked.position)) {
        out.extend(loose(asked, groups));
    }
    let hint = &hints.skip;
    if !ranges || !PathHint::allows(&hints.lookup, asked.position) {
        return;
    }
    if (of.switches.skip_scan() || PathHint::asks(hint)) && PathHint::allows(hint, asked.position) {
        out.extend(skip(asked));
    }
}

/// Whether it reads a range for each value of the leading parts.
pub(super) fn is_skip(candidate: &Chosen) -> bool {
    matches!(&candidate.access, Access::Skip(skip) if matches!(skip.take, Take::All))
}

/// Whether it reads rows that stand for all others of a key.
pub(super) fn is_loose(candidate: &Chosen) -> bool {
    matches!(&candidate.access, Access::Skip(skip) if !matches!(skip.take, Take::All))
}

/// Rows that stand for all others of a key.
fn loose(asked: &Asked<'_>, groups: &Groups) -> Option<Chosen> {
    let (schema, index) = (asked.schema(), asked.index());
    let open = |column: usize| !is_told_by_key(schema, column) && asked.total <= SMALL_TABLE;
    let place = |column: usize| index.parts.iter().position(|part| part.column == column && part.prefix.is_none());
    let mut parts = 0;
    for (column, plain) in &groups.columns {
        if open(*column) || !plain && !is_told_by_key(schema, *column) {
            return None;
        }
        parts = parts.max(place(*column)? + 1);
    }
    let mut ends = groups.ends.as_ref();
    if let Some(of) = ends {
        // Times of day that came twice are not in the order of the index.
        if open(of.column) || schema.columns[of.column].ty.kind == TypeKind::Timestamp {
            return None;
        }
        if place(of.column)? < parts {
            ends = None;
        }
    }
    let (lead, rest) = (asked.matched(0..parts), asked.matched(parts..index.parts.len()));
    let known = |number: &usize| lead.covers.contains(number) || rest.covers.contains(number);
    if !asked.conditions.iter().all(known) {
        return None;
    }
    let values = asked.values(parts, lead.selectivity)?;
    let mut cost = values * asked.jump();
    let mut rows = values;
    let take = match ends {
        None => Take::One,
        Some(ends) => {
            let at = place(ends.column)? - parts;
            let mut condition = rest.condition.clone().unwrap_or_default();
            // The column must be the one that orders the rows of a value.
            if condition.equal.len() != at || !rest.single {
                return None;
            }
            condition.range.get_or_insert_default().not_null = true;
            let descending = index.parts[parts + at].descending;
            let (first, last) = if descending { (ends.max, ends.min) } else { (ends.min, ends.max) };
            let more = f64::from(u8::from(last) + u8::from(first && schema.columns[ends.column].nullable));
            rows += values * more;
            cost += values * more * asked.jump();
            Take::Ends { column: ends.column, condition, first, last }
        }
    };
    let used = parts
        + match &take {
            Take::Ends { condition, .. } => condition.used_parts(),
            _ => rest.condition.as_ref().map_or(0, KeyCondition::used_parts),
        };
    let covers = [lead.covers, rest.covers].concat();
    let uses = [lead.uses, rest.uses].concat();
    let access = asked.access(lead.condition.unwrap_or_default());
    let skip = SkipAccess { access, prefix: asked.prefix(parts), rest: rest.condition, take, used };
    Some(chosen(skip, rows, cost, covers, uses))
}

/// The range that conditions on later parts leave of each value of the leading ones.
fn skip(asked: &Asked<'_>) -> Option<Chosen> {
    let index = asked.index();
    asked.of.source.statistics.as_ref()?;
    let said = |sarg: &Sarg, column: usize| sarg.column == column && !matches!(sarg.test, Test::IsNotNull);
    let parts = (1..index.parts.len()).find(|at| asked.sargs.iter().any(|sarg| said(sarg, index.parts[*at].column)))?;
    // Keys of prefixes of values say too little of the next part.
    if index.parts[..parts].iter().any(|part| part.prefix.is_some()) {
        return None;
    }
    let (lead, rest) = (asked.matched(0..parts), asked.matched(parts..index.parts.len()));
    let fixed = lead.condition.as_ref().is_some_and(|lead| lead.fixed_parts() == parts);
    let condition = rest.condition?;
    if fixed {
        return None;
    }
    let values = asked.values(parts, lead.selectivity)?;
    let rows = (asked.total * lead.selectivity * rest.selectivity).clamp(1.0, asked.total);
    let cost = values * (asked.jump() + RANGE * condition.ranges() as f64) + rows * RANGE_ROW;
    let used = parts + condition.used_parts();
    let access = asked.access(lead.condition.unwrap_or_default());
    let skip = SkipAccess { access, prefix: asked.prefix(parts), rest: Some(condition), take: Take::All, used };
    Some(chosen(skip, rows, cost, [lead.covers, rest.covers].concat(), [lead.uses, rest.uses].concat()))
}

fn chosen(skip: SkipAccess, rows: f64, cost: f64, covers: Vec<usize>, uses: Vec<usize>) -> Chosen {
    Chosen {
        access: Access::Skip(Box::new(skip)),
        rows,
        kept: 0.0,
        cost,
        covers,
        uses,
        possible: vec![],
        ordered: false,
    }
}
