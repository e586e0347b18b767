//! ONLY_FULL_GROUP_BY: what stands beside aggregates must have one value a group.
//!
//! A column has one value a group when it is determined by the grouped columns: because it is one of them, because WHERE or an inner join fixes it to
//! a constant or to a determined column, or because the primary key (or a unique key without NULLs) of its table is determined.
//! Expressions that are grouped as a whole count as one.

use super::condition::{self, Sarg, Test};
use super::join::Item;
use super::model::{QueryPlan, RowsOf, SortKey, Source, SourceTable};
use crate::bind::names::{Clause, unknown_column};
use crate::expr::{ANY_VALUE, Expr, ExprKind};
use rauk_types::error::codes;
use rauk_types::{IndexKind, MysqlError};

/// What a column that is computed below windows is in the select list.
pub(crate) struct Selected {
    /// The first item that reads it, itself or by a window function; numbers begin with 1.
    pub item: usize,
    /// It is that item, and not a part of it.
    pub whole: bool,
}

pub(crate) struct Checked<'a> {
    pub sources: &'a [Source],
    pub items: &'a [Item],
    pub conditions: &'a [Expr],
    pub keys: &'a [Expr],
    /// Nothing but the keys has one value in a super-aggregate row.
    pub rollup: bool,
    pub select: &'a [Expr],
    /// Below windows: what the columns of `select` are in the select list.
    pub selected: Option<&'a [Selected]>,
    pub having: Option<&'a Expr>,
    pub order: &'a [SortKey],
}

pub(crate) fn check(query: &Checked<'_>) -> Result<(), MysqlError> {
    let determined = if query.rollup { vec![] } else { determined_columns(query) };
    let plain = |expr: &Expr| loose_column(expr, query.keys, &determined);
    for (number, item) in query.select.iter().enumerate() {
        if let Some(column) = plain(item) {
            let number = query.selected.map_or(number + 1, |selected| selected[number].item);
            return Err(refuse(query, number, "SELECT list", column));
        }
    }
    if let Some(having) = query.having
        && let Some((table, column)) = plain(having)
    {
        // HAVING sees only what is grouped or selected.
        let name = &query.sources[table].schema().columns[column].name;
        return Err(unknown_column(&[name], Clause::Having));
    }
    for (number, key) in query.order.iter().enumerate() {
        if query.select.contains(&key.expr) {
            continue;
        }
        if let Some(column) = plain(&key.expr) {
            return Err(refuse(query, number + 1, "ORDER BY clause", column));
        }
    }
    Ok(())
}

fn refuse(query: &Checked<'_>, number: usize, place: &str, column: (usize, usize)) -> MysqlError {
    let name = full_name(query.sources, column);
    if query.keys.is_empty() {
        return MysqlError::new(
            codes::MIX_OF_GROUP_FUNC_AND_FIELDS,
            format!(
                "In aggregated query without GROUP BY, expression #{number} of {place} contains nonaggregated column '{name}'; this is incompatible with sql_mode=only_full_group_by"
            ),
        );
    }
    MysqlError::new(
        codes::WRONG_FIELD_WITH_GROUP,
        format!(
            "Expression #{number} of {place} is not in GROUP BY clause and contains nonaggregated column '{name}' which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by"
        ),
    )
}

fn full_name(sources: &[Source], (table, column): (usize, usize)) -> String {
    let source = &sources[table];
    let schema = source.schema();
    if source.alias.is_empty() {
        return schema.columns[column].name.clone();
    }
    format!("{}.{}.{}", schema.database, source.alias, schema.columns[column].name)
}

/// A column in `expr` that may have several values a group.
fn loose_column(expr: &Expr, keys: &[Expr], determined: &[(usize, usize)]) -> Option<(usize, usize)> {
    if keys.contains(expr) {
        return None;
    }
    if let ExprKind::Column { table, column } = expr.kind {
        return (!determined.contains(&(table, column))).then_some((table, column));
    }
    if matches!(&expr.kind, ExprKind::Function { function, .. } if function.name == ANY_VALUE) {
        return None;
    }
    let mut found = None;
    expr.for_each_child(&mut |child| {
        if found.is_none() {
            found = loose_column(child, keys, determined);
        }
    });
    found
}

fn determined_columns(query: &Checked<'_>) -> Vec<(usize, usize)> {
    let mut known: Vec<(usize, usize)> = query
        .keys
        .iter()
        .filter_map(|k| match k.kind {
            ExprKind::Column { table, column } => Some((table, column)),
            _ => None,
        })
        .collect();
    let mut sargs: Vec<Sarg> = Vec::new();
    for (number, condition) in query.conditions.iter().enumerate() {
        condition::sargs(condition, number, &mut sargs);
    }
    let mut inner = Vec::new();
    for item in query.items {
        if let Item::Table(table) = item {
            inner.push(*table);
        }
    }
    loop {
        let before = known.len();
        for sarg in &sargs {
            let fixed = match &sarg.test {
                Test::Equal(value) => match value.kind {
                    ExprKind::Column { table, column } => known.contains(&(table, column)),
                    _ => value.is_constant(),
                },
                Test::IsNull => true,
                _ => false,
            };
            if fixed && !known.contains(&(sarg.table, sarg.column)) {
                known.push((sarg.table, sarg.column));
            }
        }
        for (number, source) in query.sources.iter().enumerate() {
            let schema = source.schema();
            let whole = schema.indexes.iter().any(|index| {
                index.is_unique()
                    && index.parts.iter().all(|p| {
                        p.prefix.is_none()
                            && (index.kind == IndexKind::Primary || !schema.columns[p.column].nullable)
                            && known.contains(&(number, p.column))
                    })
            });
            if whole {
                for column in 0..schema.columns.len() {
                    if !known.contains(&(number, column)) {
                        known.push((number, column));
                    }
                }
            }
        }
        if known.len() == before {
            return known;
        }
    }
}

/// DISTINCT: ORDER BY may use only what is selected (3065).
pub(crate) fn check_distinct(sources: &[Source], select: &[Expr], order: &[SortKey]) -> Result<(), MysqlError> {
    for (number, key) in order.iter().enumerate() {
        if select.contains(&key.expr) {
            continue;
        }
        let mut selected = columns_of(select);
        add_computed_of_selected(sources, &mut selected);
        if let Some((table, column)) = loose_column(&key.expr, select, &selected) {
            return Err(MysqlError::new(
                3065,
                format!(
                    "Expression #{} of ORDER BY clause is not in SELECT list, references column '{}' which is not in SELECT list; this is incompatible with DISTINCT",
                    number + 1,
                    full_name(sources, (table, column))
                ),
            ));
        }
    }
    Ok(())
}

/// The items that are columns.
fn columns_of(select: &[Expr]) -> Vec<(usize, usize)> {
    let column = |e: &Expr| match e.kind {
        ExprKind::Column { table, column } => Some((table, column)),
        _ => None,
    };
    select.iter().filter_map(column).collect()
}

/// What a block computes below its windows stands there as a column: `HEX(a)` of ORDER BY, where `a` is selected, is one
/// that the selected ones determine.
fn add_computed_of_selected(sources: &[Source], selected: &mut Vec<(usize, usize)>) {
    for (table, source) in sources.iter().enumerate() {
        let Some(items) = items_below_windows(source) else { continue };
        let listed = selected.iter().filter(|(of, _)| *of == table);
        // Behind the columns of the block below are those of the windows.
        let listed: Vec<Expr> = listed.filter_map(|(_, column)| items.get(*column).cloned()).collect();
        let columns = columns_of(&listed);
        for (column, item) in items.iter().enumerate() {
            if !selected.contains(&(table, column)) && loose_column(item, &listed, &columns).is_none() {
                selected.push((table, column));
            }
        }
    }
}

/// The list of the block below the windows whose rows the source has.
fn items_below_windows(source: &Source) -> Option<&[Expr]> {
    let SourceTable::Query(RowsOf::Derived(plan), _) = &source.table else { return None };
    let QueryPlan::Window(windows) = plan.as_ref() else { return None };
    match &windows.input {
        QueryPlan::Select(block) if source.alias.is_empty() => Some(&block.items),
        _ => None,
    }
}

/// HAVING without grouping sees the select list only; below windows, what of it is a whole item.
pub(crate) fn check_having(
    sources: &[Source],
    select: &[Expr],
    items: Option<&[Selected]>,
    having: Option<&Expr>,
) -> Result<(), MysqlError> {
    let whole = |at: usize| items.is_none_or(|items| items[at].whole);
    let select: Vec<Expr> = select.iter().enumerate().filter(|(at, _)| whole(*at)).map(|(_, e)| e.clone()).collect();
    let selected = columns_of(&select);
    if let Some(having) = having
        && let Some((table, column)) = loose_column(having, &select, &selected)
    {
        let name = &sources[table].schema().columns[column].name;
        return Err(unknown_column(&[name], Clause::Having));
    }
    Ok(())
}
