//! The leaves of a partitioned table that a level reads in this execution.
//!
//! Conditions are values by now. Those on columns become ranges of keys, as of an index, and each range says the partitions
//! that may have such keys. Those on an expression's columns become values of the expression: of each combination that equalities allow, or from
//! the least to the greatest that a range allows. Where anything is not known all partitions stay.

use super::{Prune, PruneBy, Rising};
use crate::expr::{Context, Expr};
use crate::physical::keys::{Points, condition_ranges, points, successor};
use crate::physical::model::{KeyCondition, KeyValue, RangePart, Source};
use crate::physical::place::{Place, place};
use crate::physical::row::{Joined, Rows};
use rauk_node::Parts;
use rauk_types::{DataType, MysqlError, TableSchema, TypeKind, Value};
use std::ops::Bound;
use std::sync::Arc;

/// Combinations of values that are looked at one by one.
const MOST_COMBINATIONS: usize = 4096;

/// One mark a leaf; `None`: all are read.
pub(crate) fn leaves(
    prune: Option<&Prune>,
    source: &Source,
    row: &Joined<'_>,
    context: &mut Context,
) -> Result<Option<Arc<[bool]>>, MysqlError> {
    let (Some(prune), Some(handle)) = (prune, source.handle()) else { return Ok(None) };
    let Some(parts) = handle.parts() else { return Ok(None) };
    let each = parts.leaves_each();
    let partitions = parts.count() / each;
    let mut looking = Looking { parts, schema: handle.schema(), row, context };
    let main = match &prune.main {
        Some(by) => looking.marks(by, false, partitions)?,
        None => vec![true; partitions],
    };
    let sub = match &prune.sub {
        Some(by) => looking.marks(by, true, each)?,
        None => vec![true; each],
    };
    let leaves: Arc<[bool]> = main.iter().flat_map(|partition| sub.iter().map(move |sub| *partition && *sub)).collect();
    Ok((!leaves.iter().all(|read| *read)).then_some(leaves))
}

struct Looking<'a, 'r> {
    parts: &'a Parts,
    schema: &'a TableSchema,
    row: &'a Joined<'r>,
    context: &'a mut Context,
}

impl Looking<'_, '_> {
    /// One mark a partition, or a subpartition of each.
    fn marks(&mut self, by: &PruneBy, sub: bool, count: usize) -> Result<Vec<bool>, MysqlError> {
        match &by.expression {
            None => self.by_keys(by, sub, count),
            Some((expr, rising)) => {
                let marks = self.by_numbers(by, &by.access.condition, (expr, *rising), sub, count)?;
                Ok(marks.unwrap_or_else(|| vec![true; count]))
            }
        }
    }

    fn by_keys(&mut self, by: &PruneBy, sub: bool, count: usize) -> Result<Vec<bool>, MysqlError> {
        let mut marks = vec![false; count];
        let condition = &by.access.condition;
        if condition.fixed_parts() == by.access.key_def.parts.len()
            && condition.any.is_empty()
            && !may_find_null(condition)
            && let Points::Keys(keys) = points(&by.access, self.row, self.context)?
        {
            let places = keys.iter().filter_map(|key| self.parts.place_of_columns(sub, key));
            places.for_each(|place| marks[place] = true);
            return Ok(marks);
        }
        for range in condition_ranges(&by.access.key_def.parts, &by.access.condition, self.row, self.context)? {
            if by.access.key_def.is_whole(&range.low) && range.high == successor(&range.low) {
                if let Some(place) = self.parts.place_of_columns(sub, &range.low) {
                    marks[place] = true;
                }
                continue;
            }
            if sub {
                return Ok(vec![true; count]);
            }
            let low = if range.low.is_empty() { Bound::Unbounded } else { Bound::Included(range.low.as_slice()) };
            let high = range.high.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let more = self.parts.partitions_of_keys(low, high);
            marks.iter_mut().zip(more).for_each(|(mark, more)| *mark |= more);
        }
        Ok(marks)
    }

    /// `None`: nothing is known.
    fn by_numbers(
        &mut self,
        by: &PruneBy,
        condition: &KeyCondition,
        expression: (&Expr, Rising),
        sub: bool,
        count: usize,
    ) -> Result<Option<Vec<bool>>, MysqlError> {
        let mut marks = match &condition.tuples {
            Some(tuples) => self.by_tuples(by, tuples, expression.0, sub, count)?,
            None if condition.equal.len() == by.access.key_def.parts.len() => {
                let lists: Vec<&[KeyValue]> = condition.equal.iter().map(|part| part.values.as_slice()).collect();
                self.by_lists(by, &lists, expression.0, sub, count)?
            }
            None => match (&condition.range, expression.1) {
                (Some(range), Rising::Yes { has_null }) if condition.equal.is_empty() && !sub => {
                    self.by_range(by, range, expression.0, has_null)?
                }
                _ => None,
            },
        };
        for any in &condition.any {
            let mut united = Some(vec![false; count]);
            for alternative in any {
                let more = self.by_numbers(by, alternative, expression, sub, count)?;
                united = united.zip(more).map(|(a, b)| a.iter().zip(b).map(|(a, b)| *a || b).collect());
            }
            marks = match (marks, united) {
                (Some(a), Some(b)) => Some(a.iter().zip(b).map(|(a, b)| *a && b).collect()),
                (a, b) => a.or(b),
            };
        }
        Ok(marks)
    }

    fn by_tuples(
        &mut self,
        by: &PruneBy,
        tuples: &[Vec<KeyValue>],
        expr: &Expr,
        sub: bool,
        count: usize,
    ) -> Result<Option<Vec<bool>>, MysqlError> {
        let mut marks = vec![false; count];
        for tuple in tuples {
            if tuple.len() < by.access.key_def.parts.len() {
                return Ok(None);
            }
            let lists: Vec<&[KeyValue]> = tuple.iter().map(std::slice::from_ref).collect();
            match self.by_lists(by, &lists, expr, sub, count)? {
                Some(more) => marks.iter_mut().zip(more).for_each(|(mark, more)| *mark |= more),
                None => return Ok(None),
            }
        }
        Ok(Some(marks))
    }

    /// By the values that each column may have.
    fn by_lists(
        &mut self,
        by: &PruneBy,
        lists: &[&[KeyValue]],
        expr: &Expr,
        sub: bool,
        count: usize,
    ) -> Result<Option<Vec<bool>>, MysqlError> {
        let mut rows = vec![vec![Value::Null; self.schema.columns.len()]];
        for (part, list) in by.access.key_def.parts.iter().zip(lists) {
            let mut values = Vec::with_capacity(list.len());
            for value in *list {
                match self.value(value, &part.ty)? {
                    Some(One::Value(value)) => values.push(value),
                    Some(One::Nothing) => {}
                    None => return Ok(None),
                }
            }
            if rows.len() * values.len() > MOST_COMBINATIONS {
                return Ok(None);
            }
            let with = |row: &Vec<Value>, value: &Value| {
                let mut row = row.clone();
                row[part.column] = value.clone();
                row
            };
            rows = rows.iter().flat_map(|row| values.iter().map(move |value| with(row, value))).collect();
        }
        let mut marks = vec![false; count];
        for row in rows {
            let number = self.number(expr, &row)?;
            match sub {
                true => self.parts.sub_of_number(number).into_iter().for_each(|place| marks[place] = true),
                false => {
                    let more = match number {
                        Some(number) => self.parts.partitions_of_numbers(Some(number), Some(number), false),
                        // Of NULL alone.
                        None => self.parts.partitions_of_numbers(Some(1), Some(0), true),
                    };
                    marks.iter_mut().zip(more).for_each(|(mark, more)| *mark |= more);
                }
            }
        }
        Ok(Some(marks))
    }

    fn by_range(
        &mut self,
        by: &PruneBy,
        range: &RangePart,
        function: &Expr,
        has_null: bool,
    ) -> Result<Option<Vec<bool>>, MysqlError> {
        let part = &by.access.key_def.parts[0];
        let (mut low, mut high): (Option<i128>, Option<i128>) = (None, None);
        let mut row = vec![Value::Null; self.schema.columns.len()];
        for (of, is_low) in [(&range.low, true), (&range.high, false)] {
            for (expr, inclusive) in of {
                let end = match (self.place(expr, &part.ty)?, is_low) {
                    (Place::Exact(value), _) if *inclusive => value,
                    (Place::Exact(value), _) => beside(&value, &part.ty, is_low).unwrap_or(value),
                    (Place::Gap { below: Some(below) }, true) => beside(&below, &part.ty, true).unwrap_or(below),
                    (Place::Gap { below: Some(below) }, false) => below,
                    (Place::Gap { below: None }, true) | (Place::Unknown, _) => continue,
                    (Place::Fuzzy { low, .. }, true) => low,
                    (Place::Fuzzy { high, .. }, false) => high,
                    // Nothing is below all values, or compares with NULL.
                    (Place::Gap { below: None }, false) | (Place::Null, _) => {
                        return Ok(Some(self.parts.partitions_of_numbers(Some(1), Some(0), false)));
                    }
                };
                row[part.column] = end;
                // NULL of a value at an end says nothing of those behind it.
                let Some(number) = self.number(function, &row)? else { continue };
                match is_low {
                    true => low = Some(low.map_or(number, |low| low.max(number))),
                    false => high = Some(high.map_or(number, |high| high.min(number))),
                }
            }
        }
        Ok(Some(self.parts.partitions_of_numbers(low, high, has_null)))
    }

    /// The expression's value for a row.
    fn number(&mut self, expr: &Expr, row: &[Value]) -> Result<Option<i128>, MysqlError> {
        let rows = Rows { rows: [row, &[], &[]], zone: self.row.zone };
        Ok(match expr.eval(&rows, self.context)? {
            Value::Decimal(number) => number.to_i128(),
            value => value.as_ref().as_integer(),
        })
    }

    fn place(&mut self, expr: &Expr, ty: &DataType) -> Result<Place, MysqlError> {
        Ok(place(expr.eval(self.row, self.context)?, ty, self.row.zone))
    }

    /// `None`: it is not exactly one value.
    fn value(&mut self, value: &KeyValue, ty: &DataType) -> Result<Option<One>, MysqlError> {
        let (expr, finds_null) = match value {
            KeyValue::Null => return Ok(Some(One::Value(Value::Null))),
            KeyValue::Value(expr) => (expr, false),
            KeyValue::NullSafe(expr) => (expr, true),
        };
        Ok(match self.place(expr, ty)? {
            Place::Exact(value) => Some(One::Value(value)),
            Place::Null if finds_null => Some(One::Value(Value::Null)),
            Place::Null | Place::Gap { .. } => Some(One::Nothing),
            Place::Fuzzy { .. } | Place::Unknown => None,
        })
    }
}

enum One {
    Value(Value),
    /// No row has it.
    Nothing,
}

/// Whether NULL may be among the fixed values: lookups leave it out, since what has it is in no unique key.
fn may_find_null(condition: &KeyCondition) -> bool {
    let fixed = condition.equal.iter().map(|part| &part.values).chain(condition.tuples.iter().flatten());
    fixed.flatten().any(|value| !matches!(value, KeyValue::Value(_)))
}

/// The next value of a type, above or below; `None`: there is none, or it is not known.
fn beside(value: &Value, ty: &DataType, above: bool) -> Option<Value> {
    let step = |unit: i64| if above { unit } else { -unit };
    let fraction = || 10_i64.pow(6 - u32::from(ty.scale.min(6)));
    Some(match value {
        Value::Int(number) => Value::Int(number.checked_add(step(1))?),
        Value::UInt(number) if above => Value::UInt(number.checked_add(1)?),
        Value::UInt(number) => Value::UInt(number.checked_sub(1)?),
        Value::Date(date) => Value::Date(date.add_days(step(1))?),
        Value::DateTime(time) => Value::DateTime(time.add_micros(step(fraction()))?),
        Value::Timestamp(micros) if ty.kind == TypeKind::Timestamp => {
            Value::Timestamp(micros.checked_add(step(fraction()))?)
        }
        _ => return None,
    })
}
