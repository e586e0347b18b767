//! FROM: tables with their aliases and hints, and the structure of joins.
//!
//! Inner joins are sets of tables whose conditions join those of WHERE. LEFT JOIN makes a group of tables (one, or several when its right side is a
//! join in parentheses) with the conditions on which it matches; RIGHT JOIN is a LEFT JOIN the other way round. USING and NATURAL
//! become equalities, and hide the right-hand (of RIGHT JOIN: left-hand) column from bare names and `*`. Then `*` gives the common columns in the
//! order of the first table (of RIGHT JOIN: the second) before the others.

use super::model::{Source, SourceTable};
use super::names::{Clause, Names, Visible, check_alias, name_parts, unknown_column};
use super::{Lookup, TableSource, condition, unsupported};
use crate::expr::{BindContext, Expr};
use rauk_types::MysqlError;
use rauk_types::error::codes;
use sqlparser::ast;

/// A table, or the inner side of an outer join.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Table(usize),
    Outer { items: Vec<Item>, on: Vec<Expr> },
}

impl Item {
    pub fn tables(&self, out: &mut Vec<usize>) {
        match self {
            Item::Table(table) => out.push(*table),
            Item::Outer { items, .. } => items.iter().for_each(|i| i.tables(out)),
        }
    }
}

#[derive(Default)]
pub(crate) struct From {
    pub sources: Vec<Source>,
    pub items: Vec<Item>,
    /// Conditions of inner joins.
    pub conditions: Vec<Expr>,
    /// What `*` and bare names mean.
    pub visible: Vec<Visible>,
    /// STRAIGHT_JOIN was written: tables are read as written.
    pub keep_order: bool,
}

struct Tree {
    items: Vec<Item>,
    conditions: Vec<Expr>,
    visible: Vec<Visible>,
}

/// Binds FROM. `privilege` is what is asked of every table.
pub(crate) fn bind_from(
    from: &[ast::TableWithJoins],
    lookup: &dyn Lookup,
    context: &BindContext,
    privilege: &str,
) -> Result<From, MysqlError> {
    let mut out = From::default();
    for joins in from {
        let tree = bind_joins(joins, &mut out, lookup, context, privilege)?;
        out.items.extend(tree.items);
        out.conditions.extend(tree.conditions);
        out.visible.extend(tree.visible);
    }
    Ok(out)
}

fn bind_joins(
    joins: &ast::TableWithJoins,
    out: &mut From,
    lookup: &dyn Lookup,
    context: &BindContext,
    privilege: &str,
) -> Result<Tree, MysqlError> {
    let mut left = bind_factor(&joins.relation, out, lookup, context, privilege)?;
    for join in &joins.joins {
        let right = bind_factor(&join.relation, out, lookup, context, privilege)?;
        left = bind_join(left, right, &join.join_operator, out, context)?;
    }
    Ok(left)
}

#[derive(PartialEq)]
enum Kind {
    Inner,
    Left,
    Right,
}

fn bind_join(
    left: Tree,
    right: Tree,
    operator: &ast::JoinOperator,
    out: &mut From,
    context: &BindContext,
) -> Result<Tree, MysqlError> {
    use ast::JoinOperator as J;
    let (kind, constraint) = match operator {
        J::Join(c) | J::Inner(c) | J::CrossJoin(c) => (Kind::Inner, c),
        J::StraightJoin(c) => {
            out.keep_order = true;
            (Kind::Inner, c)
        }
        J::Left(c) | J::LeftOuter(c) => (Kind::Left, c),
        J::Right(c) | J::RightOuter(c) => (Kind::Right, c),
        J::FullOuter(_) => return Err(unsupported("FULL OUTER JOIN")),
        _ => return Err(unsupported("this kind of JOIN")),
    };
    let mut on = Vec::new();
    let visible;
    match constraint {
        ast::JoinConstraint::On(condition) => {
            visible = [left.visible.clone(), right.visible.clone()].concat();
            let mut tables = Vec::new();
            left.items.iter().chain(&right.items).for_each(|i| i.tables(&mut tables));
            // Null rows of this join come after its condition: what is bound here sees the columns as they are.
            let mut names = Names::new(&out.sources, &visible, Clause::On, context);
            names.tables = Some(&tables);
            let mut bound = names.bind(condition)?;
            condition::find_zero_dates(&mut bound, &out.sources);
            condition::split_and(bound, &mut on);
        }
        ast::JoinConstraint::Using(columns) => {
            let mut names = Vec::new();
            for column in columns {
                names.push(name_parts(column)?.last().copied().unwrap_or_default().to_string());
            }
            visible = merge_columns(&left, &right, &names, &kind, &mut on, out, context)?;
        }
        ast::JoinConstraint::Natural => {
            let names: Vec<String> = left
                .visible
                .iter()
                .filter(|l| right.visible.iter().any(|r| r.name.eq_ignore_ascii_case(&l.name)))
                .map(|l| l.name.clone())
                .collect();
            visible = merge_columns(&left, &right, &names, &kind, &mut on, out, context)?;
        }
        ast::JoinConstraint::None => {
            if kind != Kind::Inner {
                return Err(MysqlError::new(
                    codes::PARSE_ERROR,
                    "You have an error in your SQL syntax; an outer join needs ON or USING",
                ));
            }
            visible = [left.visible.clone(), right.visible.clone()].concat();
        }
    }
    let (outer, inner) = match kind {
        Kind::Inner => {
            let mut tree =
                Tree { items: left.items, conditions: [left.conditions, right.conditions, on].concat(), visible };
            tree.items.extend(right.items);
            return Ok(tree);
        }
        Kind::Left => (left, right),
        Kind::Right => (right, left),
    };
    let mut nulls = Vec::new();
    inner.items.iter().for_each(|i| i.tables(&mut nulls));
    for table in nulls {
        out.sources[table].null_rows = true;
    }
    let mut items = outer.items;
    items.push(Item::Outer { items: inner.items, on: [inner.conditions, on].concat() });
    Ok(Tree { items, conditions: outer.conditions, visible })
}

/// Equalities for the common columns, and what is visible after them: the common columns, then the rest of the first side, then the rest of the
/// second. A RIGHT JOIN is a LEFT JOIN whose first side is written second. The common columns come in the order of the first side, whatever
/// the order in USING.
fn merge_columns(
    left: &Tree,
    right: &Tree,
    names: &[String],
    kind: &Kind,
    on: &mut Vec<Expr>,
    out: &From,
    context: &BindContext,
) -> Result<Vec<Visible>, MysqlError> {
    let (first, second) = if *kind == Kind::Right { (right, left) } else { (left, right) };
    for (number, name) in names.iter().enumerate() {
        if names[..number].iter().any(|n| n.eq_ignore_ascii_case(name)) {
            continue;
        }
        let column = |side: &Tree| {
            let scope = Names::new(&out.sources, &side.visible, Clause::From, context);
            scope.column(&[name])?.ok_or_else(|| unknown_column(&[name], Clause::From))
        };
        on.push(condition::column_equality(&out.sources, column(left)?, column(right)?, context)?);
    }
    let common = |visible: &&Visible| names.iter().any(|n| n.eq_ignore_ascii_case(&visible.name));
    let rest = |side: &Tree| side.visible.iter().filter(|v| !common(v)).cloned().collect::<Vec<_>>();
    let mut visible: Vec<Visible> = first.visible.iter().filter(common).cloned().collect();
    visible.extend(rest(first));
    visible.extend(rest(second));
    Ok(visible)
}

fn bind_factor(
    factor: &ast::TableFactor,
    out: &mut From,
    lookup: &dyn Lookup,
    context: &BindContext,
    privilege: &str,
) -> Result<Tree, MysqlError> {
    match factor {
        ast::TableFactor::Table { name, alias, args, partitions, index_hints, .. } => {
            if args.is_some() {
                return Err(unsupported("table functions"));
            }
            if !partitions.is_empty() {
                return Err(unsupported("PARTITION selection"));
            }
            let parts = name_parts(name)?;
            let (database, table) = match parts.as_slice() {
                [table] => (None, *table),
                [database, table] => (Some(*database), *table),
                _ => return Err(MysqlError::new(codes::WRONG_TABLE_NAME, format!("Incorrect table name '{name}'"))),
            };
            if database.is_none() && table.eq_ignore_ascii_case("dual") && alias.is_none() {
                return Ok(Tree { items: vec![], conditions: vec![], visible: vec![] });
            }
            let source = match lookup.table(database, table, privilege)? {
                TableSource::Stored(handle) => SourceTable::Stored(handle),
                TableSource::Virtual(table) => SourceTable::Virtual(table),
            };
            let alias = match alias {
                Some(alias) => {
                    check_alias(&alias.name.value)?;
                    alias.name.value.clone()
                }
                None => table.to_string(),
            };
            let mut source =
                Source { table: source, alias, null_rows: false, allowed_indexes: None, force_index: false };
            let same_database = |other: &Source| other.schema().database == source.schema().database;
            if out.sources.iter().any(|s| s.alias == source.alias && same_database(s)) {
                return Err(MysqlError::new(
                    codes::NONUNIQ_TABLE,
                    format!("Not unique table/alias: '{}'", source.alias),
                ));
            }
            apply_hints(&mut source, index_hints)?;
            Ok(tree_of(source, out))
        }
        ast::TableFactor::NestedJoin { table_with_joins, alias } => {
            if alias.is_some() {
                return Err(unsupported("an alias of a join"));
            }
            bind_joins(table_with_joins, out, lookup, context, privilege)
        }
        ast::TableFactor::Derived { .. } => Err(unsupported("subqueries in FROM (derived tables)")),
        _ => Err(unsupported("table functions")),
    }
}

fn tree_of(source: Source, out: &mut From) -> Tree {
    let number = out.sources.len();
    let visible = source
        .schema()
        .visible_columns()
        .iter()
        .enumerate()
        .map(|(column, c)| Visible { name: c.name.clone(), table: number, column })
        .collect();
    out.sources.push(source);
    Tree { items: vec![Item::Table(number)], conditions: vec![], visible }
}

/// A FROM of one table, as UPDATE and DELETE have it.
pub(crate) fn single(source: Source) -> From {
    let mut out = From::default();
    let tree = tree_of(source, &mut out);
    out.items = tree.items;
    out.visible = tree.visible;
    out
}

fn apply_hints(source: &mut Source, hints: &[ast::TableIndexHints]) -> Result<(), MysqlError> {
    let schema = source.schema().clone();
    let mut used: Option<Vec<usize>> = None;
    let mut ignored = Vec::new();
    for hint in hints {
        let mut named = Vec::new();
        for name in &hint.index_names {
            let position = schema.indexes.iter().position(|i| i.name.eq_ignore_ascii_case(&name.value));
            let Some(position) = position.filter(|&p| !(p == 0 && schema.hidden_key)) else {
                return Err(MysqlError::new(
                    codes::KEY_DOES_NOT_EXITS,
                    format!("Key '{}' doesn't exist in table '{}'", name.value, source.alias),
                ));
            };
            named.push(position);
        }
        // FOR ORDER BY and FOR GROUP BY restrict only how order is got, which an index scan may always be sorted for instead.
        if hint.for_clause.is_some_and(|c| c != ast::TableIndexHintForClause::Join) {
            continue;
        }
        match hint.hint_type {
            ast::TableIndexHintType::Ignore => ignored.extend(named),
            ast::TableIndexHintType::Use => used.get_or_insert_default().extend(named),
            ast::TableIndexHintType::Force => {
                source.force_index = true;
                used.get_or_insert_default().extend(named);
            }
        }
    }
    if used.is_some() || !ignored.is_empty() {
        let mut allowed = used.unwrap_or_else(|| (0..schema.indexes.len()).collect());
        allowed.retain(|p| !ignored.contains(p));
        source.allowed_indexes = Some(allowed);
    }
    Ok(())
}
