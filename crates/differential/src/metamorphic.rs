//! Checks of Rauk against itself: statements whose answers follow from each other.
//!
//! They judge what MariaDB 10.11 does not have (`utf8mb4_0900_ai_ci`, LATERAL, GROUPING), and look at the same query
//! from a side on which a wrong answer of both servers would show. A check is skipped when Rauk answers one of its
//! statements with an error: which rows meet an error depends on the plan.

use crate::compare::{self, Category};
use crate::dice::Dice;
use crate::generate::query::{SWITCHES, hints};
use crate::known;
use crate::run::outcome::{Outcome, Row};
use crate::schema::Schema;
use crate::tree::print::VIEW;
use crate::tree::visit::{NodeMut, walk_mut};
use crate::tree::{Body, Class, Cte, Expr, From, Item, Query, Select, Statement};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// A predicate, its negation and its IS NULL partition the rows (ternary logic partitioning).
    Partition,
    /// No index is used.
    NoIndex,
    /// Each of the tables' first keys is forced.
    ForcedIndex,
    /// The query as a derived table.
    Derived,
    /// The query as a common table.
    Common,
    /// The rows that a condition takes are as many as those for which it is true.
    Counted,
    /// Optimizer hints in every block.
    Hints,
    /// Another value of `optimizer_switch`.
    Switches,
    /// Through a view.
    View,
    /// As a prepared statement whose literals are parameters, which has run with other values before.
    Prepared,
}

pub const CHECKS: &[Check] = &[
    Check::Partition,
    Check::NoIndex,
    Check::ForcedIndex,
    Check::Derived,
    Check::Common,
    Check::Counted,
    Check::Hints,
    Check::Switches,
    Check::View,
    Check::Prepared,
];

impl Check {
    pub fn name(self) -> &'static str {
        match self {
            Check::Partition => "a predicate partitions the rows",
            Check::NoIndex => "without indexes",
            Check::ForcedIndex => "by other indexes",
            Check::Derived => "as a derived table",
            Check::Common => "as a common table",
            Check::Counted => "counted by its condition",
            Check::Hints => "with optimizer hints",
            Check::Switches => "with another optimizer_switch",
            Check::View => "through a view",
            Check::Prepared => "as a prepared statement",
        }
    }
}

/// Runs a check of a query; `None` if it does not fit the query, `Some(None)` if it holds.
pub fn run(
    check: Check,
    schema: &Schema,
    statement: &Statement,
    ask: &mut dyn FnMut(&str) -> Outcome,
) -> Option<Option<Category>> {
    let Statement::Query(query) = statement else { return None };
    let holds = match check {
        Check::Partition => partition(query, ask),
        Check::NoIndex => same_as(schema, query, other_hints(schema, query, false), ask),
        Check::ForcedIndex => same_as(schema, query, other_hints(schema, query, true), ask),
        Check::Derived => same_as(schema, query, derived(query), ask),
        Check::Common => same_as(schema, query, common(query), ask),
        Check::Counted => counted(query, ask),
        Check::Hints => with_hints(schema, query, ask),
        Check::Switches => switched(schema, query, ask),
        Check::View => through_view(schema, query, ask),
        Check::Prepared => prepared(schema, query, ask),
    };
    holds.map(|holds| (!holds).then_some(Category::Metamorphic(check.name())))
}

fn rows(outcome: Outcome) -> Option<(Vec<Row>, Outcome)> {
    match &outcome {
        Outcome::Rows { rows, .. } => Some((rows.clone(), outcome)),
        _ => None,
    }
}

fn same_as(schema: &Schema, query: &Query, other: Option<Query>, ask: &mut dyn FnMut(&str) -> Outcome) -> Option<bool> {
    let other = other?;
    let (_, one) = rows(ask(&query.to_string()))?;
    let (_, other) = rows(ask(&other.to_string()))?;
    Some(are_same(schema, query, &one, &other))
}

/// The same rows, but for which of several equal texts is shown; where rows are merged, its spaces may be inside of
/// another text.
fn are_same(schema: &Schema, query: &Query, one: &Outcome, other: &Outcome) -> bool {
    let without_spaces = |cell: &compare::Cell| {
        cell.as_ref().map(|bytes| compare::fold(bytes).into_iter().filter(|byte| *byte != b' ').collect())
    };
    let merges = || schema.variants && known::merges_rows(&Statement::Query(query.clone()));
    compare::same_rows(one, other)
        || compare::same_folded_rows(one, other)
        || merges() && compare::same_rows_by(one, other, |_, cell| without_spaces(cell))
}

/// As [`are_same`] where derived tables are merged in one of the two.
fn are_same_merged(schema: &Schema, query: &Query, one: &Outcome, other: &Outcome) -> bool {
    are_same(schema, query, one, other) || known::same_but_for_quotients(schema, query, one, other)
}

/// A SELECT that gives a row for each row that its condition takes.
fn plain_select(query: &Query) -> Option<&Select> {
    let Body::Select(select) = &query.body else { return None };
    let is_plain = query.limit.is_none()
        && !select.distinct
        && select.group.is_empty()
        && select.having.is_none()
        && select.from.is_some()
        && !select.items.iter().any(|item| needs_all_rows(&item.expr));
    is_plain.then_some(select)
}

/// An aggregate or a window function.
fn needs_all_rows(expr: &Expr) -> bool {
    use crate::generate::forms::{AGGREGATES, BITS, STATISTICS};
    match expr {
        Expr::Window { .. } => true,
        Expr::Form { form, arguments, .. } => {
            AGGREGATES.iter().any(|(_, aggregate, _)| aggregate == form)
                || STATISTICS.contains(form)
                || BITS.contains(form)
                || form.contains("AGG(")
                || form.starts_with("ANY_VALUE")
                || arguments.iter().any(needs_all_rows)
        }
        Expr::Subquery { arguments, .. } => arguments.iter().any(needs_all_rows),
        Expr::Literal { .. } | Expr::Column { .. } => false,
    }
}

fn with_filter(query: &Query, filter: Option<Expr>) -> Query {
    let mut other = Query { order: Vec::new(), ..query.clone() };
    if let Body::Select(select) = &mut other.body {
        select.filter = filter;
    }
    other
}

fn partition(query: &Query, ask: &mut dyn FnMut(&str) -> Outcome) -> Option<bool> {
    let predicate = plain_select(query)?.filter.clone()?;
    let form = |form| Expr::form(form, Class::Boolean, vec![predicate.clone()]);
    let all = rows(ask(&with_filter(query, None).to_string()))?;
    let mut parts = Vec::new();
    for filter in [form("{0}"), form("(NOT {0})"), form("({0} IS NULL)")] {
        parts.extend(rows(ask(&with_filter(query, Some(filter)).to_string()))?.0);
    }
    let Outcome::Rows { columns, warnings, .. } = &all.1 else { return None };
    let parts = Outcome::Rows { columns: columns.clone(), rows: parts, warnings: *warnings };
    Some(compare::same_rows(&all.1, &parts))
}

fn counted(query: &Query, ask: &mut dyn FnMut(&str) -> Outcome) -> Option<bool> {
    let select = plain_select(query)?;
    let predicate = select.filter.clone()?;
    let list = |expr| vec![Item { expr, alias: "n".into() }];
    let of = |items: Vec<Item>, filter: Option<Expr>| {
        let select = Select { items, filter, ..select.clone() };
        Query { with: query.with.clone(), ..Query::of(Body::Select(Box::new(select))) }
    };
    let count = of(list(Expr::form("COUNT(*)", Class::Integer, Vec::new())), Some(predicate.clone()));
    let sum = of(list(Expr::form("COALESCE(SUM({0} IS TRUE), 0)", Class::Integer, vec![predicate])), None);
    Some(rows(ask(&count.to_string()))?.0 == rows(ask(&sum.to_string()))?.0)
}

/// Other hints on all base tables that have keys; nothing if none has.
fn other_hints(schema: &Schema, query: &Query, force: bool) -> Option<Query> {
    let mut statement = Statement::Query(query.clone());
    let mut is_changed = false;
    walk_mut(&mut statement, &mut |node| {
        if let NodeMut::From(From::Table { name, hint, .. }) = node
            && let Some(table) = schema.table(name)
            && !table.keys.is_empty()
        {
            let names: Vec<&str> =
                table.keys.iter().map(|key| if key.primary { "PRIMARY" } else { key.name.as_str() }).collect();
            *hint = match force {
                true => format!("FORCE INDEX ({})", names[names.len() - 1]),
                false => format!("IGNORE INDEX ({})", names.join(", ")),
            };
            is_changed = true;
        }
    });
    match statement {
        Statement::Query(query) if is_changed => Some(query),
        _ => None,
    }
}

/// `SELECT * FROM …` is what the generator's tree does not have: the names of the list are written down.
fn outer(query: &Query, from: From) -> Option<Query> {
    let names = query.names();
    if names.is_empty() {
        return None;
    }
    let item = |name: &&str| Item { expr: Expr::column("outermost", name, Class::Text), alias: (*name).to_string() };
    let select = Select { from: Some(from), ..Select::of(names.iter().map(item).collect()) };
    Some(Query::of(Body::Select(Box::new(select))))
}

fn derived(query: &Query) -> Option<Query> {
    outer(query, From::Derived { query: Box::new(query.clone()), alias: "outermost".into(), lateral: false })
}

fn common(query: &Query) -> Option<Query> {
    if !query.with.is_empty() {
        return None;
    }
    let from = From::Table { name: "outermost".into(), alias: "outermost".into(), hint: String::new() };
    let mut other = outer(query, from)?;
    let columns = query.names().into_iter().map(str::to_string).collect();
    other.with.push(Cte { name: "outermost".into(), columns, recursive: false, query: query.clone() });
    Some(other)
}

/// What a check throws depends on the query alone, so that shrinking repeats it.
fn dice_of(query: &Query) -> Dice {
    Dice::new(query.to_string().bytes().fold(0, |sum, byte| sum * 31 % 65_521 + u64::from(byte)), 0)
}

fn hinted(query: &Query) -> Option<Query> {
    let mut dice = dice_of(query);
    let mut statement = Statement::Query(query.clone());
    let mut is_outermost = true;
    walk_mut(&mut statement, &mut |node| {
        if let NodeMut::Select(select) = node
            && let Some(from) = &select.from
        {
            select.hints = hints(&mut dice, from, is_outermost);
            is_outermost = false;
        }
    });
    match statement {
        Statement::Query(query) if !is_outermost => Some(query),
        _ => None,
    }
}

fn with_hints(schema: &Schema, query: &Query, ask: &mut dyn FnMut(&str) -> Outcome) -> Option<bool> {
    let other = hinted(query)?;
    let (_, one) = rows(ask(&query.to_string()))?;
    let (_, other) = rows(ask(&other.to_string()))?;
    Some(are_same_merged(schema, query, &one, &other))
}

fn switched(schema: &Schema, query: &Query, ask: &mut dyn FnMut(&str) -> Outcome) -> Option<bool> {
    let switches = *dice_of(query).pick(SWITCHES);
    let one = ask(&query.to_string());
    ask(&format!("SET optimizer_switch = '{switches}'"));
    let other = ask(&query.to_string());
    ask("SET optimizer_switch = 'default'");
    let ((_, one), (_, other)) = (rows(one)?, rows(other)?);
    Some(are_same_merged(schema, query, &one, &other))
}

fn through_view(schema: &Schema, query: &Query, ask: &mut dyn FnMut(&str) -> Outcome) -> Option<bool> {
    if query.names().is_empty() {
        return None;
    }
    let (_, one) = rows(ask(&query.to_string()))?;
    let made = ask(&format!("CREATE VIEW {VIEW} AS {query}"));
    if made.error_code().is_some() {
        return None;
    }
    let other = ask(&format!("SELECT * FROM {VIEW}"));
    ask(&format!("DROP VIEW {VIEW}"));
    let (_, other) = rows(other)?;
    Some(are_same(schema, query, &one, &other))
}

/// Whole numbers become parameters, but for those of GROUP BY: a parameter there is no key that the list may name.
fn prepared(schema: &Schema, query: &Query, ask: &mut dyn FnMut(&str) -> Outcome) -> Option<bool> {
    let mut statement = Statement::Query(query.clone());
    let mut values: Vec<String> = Vec::new();
    let mut has_groups = false;
    walk_mut(&mut statement, &mut |node| match node {
        NodeMut::Select(select) => has_groups |= !select.group.is_empty() || select.having.is_some(),
        NodeMut::Expr(Expr::Literal { text, class: Class::Integer }) => {
            let number = text.trim_matches(['(', ')']);
            if number.parse::<i64>().is_ok() {
                values.push(number.to_string());
                *text = "?".into();
            }
        }
        _ => {}
    });
    if values.is_empty() || has_groups {
        return None;
    }
    let text = statement.to_string();
    // A number in the ORDER BY of GROUP_CONCAT is a position.
    if text.contains("GROUP_CONCAT") || text.matches('?').count() != values.len() {
        return None;
    }
    let text = text.replace('\\', "\\\\").replace('\'', "''");
    let (_, one) = rows(ask(&query.to_string()))?;
    if ask(&format!("PREPARE differential FROM '{text}'")).error_code().is_some() {
        return None;
    }
    let names: Vec<String> = (0..values.len()).map(|n| format!("@p{n}")).collect();
    let mut execute = |values: Vec<&str>| {
        let set: Vec<String> = names.iter().zip(values).map(|(name, value)| format!("{name} = {value}")).collect();
        ask(&format!("SET {}", set.join(", ")));
        ask(&format!("EXECUTE differential USING {}", names.join(", ")))
    };
    execute(vec!["3"; values.len()]);
    let other = execute(values.iter().map(String::as_str).collect());
    ask("DEALLOCATE PREPARE differential");
    let (_, other) = rows(other)?;
    Some(are_same(schema, query, &one, &other))
}
