//! FROM: tables with their aliases and hints, and the structure of joins.
//!
//! Inner joins are sets of tables whose conditions join those of WHERE. LEFT JOIN makes a group of tables (one, or several when its right side is a
//! join in parentheses) with the conditions on which it matches; RIGHT JOIN is a LEFT JOIN the other way round. USING and NATURAL
//! become equalities, and hide the right-hand (of RIGHT JOIN: left-hand) column from bare names and `*`. Then `*` gives the common columns in the
//! order of the first table (of RIGHT JOIN: the second) before the others.

use super::model::{Source, SourceTable};
use super::names::{Clause, Names, Visible, check_alias, unknown_column};
use super::{Lookup, TableSource, condition, unsupported};
use crate::expr::{BindContext, Expr};
use crate::parse::ast::{self, IndexHintAction, IndexHintScope, JoinCondition, JoinKind, TableFactor, TableReference};
use crate::stack;
use rauk_types::MysqlError;
use rauk_types::error::codes;

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
    from: &[TableReference],
    lookup: &dyn Lookup,
    context: &BindContext,
    privilege: &str,
) -> Result<From, MysqlError> {
    let mut binder = Binder { out: From::default(), lookup, context, privilege };
    for reference in from {
        let tree = binder.reference(reference)?;
        binder.out.items.extend(tree.items);
        binder.out.conditions.extend(tree.conditions);
        binder.out.visible.extend(tree.visible);
    }
    Ok(binder.out)
}

struct Binder<'a> {
    out: From,
    lookup: &'a dyn Lookup,
    context: &'a BindContext,
    privilege: &'a str,
}

impl Binder<'_> {
    fn reference(&mut self, reference: &TableReference) -> Result<Tree, MysqlError> {
        // Joins lean to the left: hundreds of them stand on the way to the first table.
        let mut joins = Vec::new();
        let mut first = reference;
        while let TableReference::Join(join) = first {
            joins.push(join);
            first = &join.left;
        }
        let mut left = match first {
            TableReference::Table(table) => self.table(table)?,
            _ => return Err(unsupported("subqueries in FROM (derived tables)")),
        };
        while let Some(join) = joins.pop() {
            let right = stack::grow(|| self.reference(&join.right))?;
            left = self.join(left, right, join.kind, &join.condition)?;
        }
        Ok(left)
    }

    fn join(&mut self, left: Tree, right: Tree, kind: JoinKind, condition: &JoinCondition) -> Result<Tree, MysqlError> {
        self.out.keep_order |= kind == JoinKind::Straight;
        let mut on = Vec::new();
        let visible;
        match condition {
            JoinCondition::On(condition) => {
                visible = [left.visible.clone(), right.visible.clone()].concat();
                let mut tables = Vec::new();
                left.items.iter().chain(&right.items).for_each(|i| i.tables(&mut tables));
                // Null rows of this join come after its condition: what is bound here sees the columns as they are.
                let mut names = Names::new(&self.out.sources, &visible, Clause::On, self.context);
                names.tables = Some(&tables);
                let mut bound = names.bind(condition)?;
                condition::find_zero_dates(&mut bound, &self.out.sources);
                condition::split_and(bound, &mut on);
            }
            JoinCondition::Using(columns) => {
                visible = self.merge_columns(&left, &right, columns, kind, &mut on)?;
            }
            JoinCondition::Natural => {
                let names: Vec<String> = left
                    .visible
                    .iter()
                    .filter(|l| right.visible.iter().any(|r| r.name.eq_ignore_ascii_case(&l.name)))
                    .map(|l| l.name.clone())
                    .collect();
                visible = self.merge_columns(&left, &right, &names, kind, &mut on)?;
            }
            JoinCondition::None => {
                if matches!(kind, JoinKind::Left | JoinKind::Right) {
                    return Err(MysqlError::new(
                        codes::PARSE_ERROR,
                        "You have an error in your SQL syntax; an outer join needs ON or USING",
                    ));
                }
                visible = [left.visible.clone(), right.visible.clone()].concat();
            }
        }
        let (outer, inner) = match kind {
            JoinKind::Inner | JoinKind::Straight => {
                let mut tree =
                    Tree { items: left.items, conditions: [left.conditions, right.conditions, on].concat(), visible };
                tree.items.extend(right.items);
                return Ok(tree);
            }
            JoinKind::Left => (left, right),
            JoinKind::Right => (right, left),
        };
        let mut nulls = Vec::new();
        inner.items.iter().for_each(|i| i.tables(&mut nulls));
        for table in nulls {
            self.out.sources[table].null_rows = true;
        }
        let mut items = outer.items;
        items.push(Item::Outer { items: inner.items, on: [inner.conditions, on].concat() });
        Ok(Tree { items, conditions: outer.conditions, visible })
    }

    /// Equalities for the common columns, and what is visible after them: the common columns, then the rest of the first side, then the rest of the
    /// second. A RIGHT JOIN is a LEFT JOIN whose first side is written second. The common columns come in the order of the first side, whatever
    /// the order in USING.
    fn merge_columns(
        &self,
        left: &Tree,
        right: &Tree,
        names: &[String],
        kind: JoinKind,
        on: &mut Vec<Expr>,
    ) -> Result<Vec<Visible>, MysqlError> {
        let (first, second) = if kind == JoinKind::Right { (right, left) } else { (left, right) };
        for (number, name) in names.iter().enumerate() {
            if names[..number].iter().any(|n| n.eq_ignore_ascii_case(name)) {
                continue;
            }
            let column = |side: &Tree| {
                let scope = Names::new(&self.out.sources, &side.visible, Clause::From, self.context);
                scope.column(&[name])?.ok_or_else(|| unknown_column(&[name], Clause::From))
            };
            on.push(condition::column_equality(&self.out.sources, column(left)?, column(right)?, self.context)?);
        }
        let common = |visible: &&Visible| names.iter().any(|n| n.eq_ignore_ascii_case(&visible.name));
        let rest = |side: &Tree| side.visible.iter().filter(|v| !common(v)).cloned().collect::<Vec<_>>();
        let mut visible: Vec<Visible> = first.visible.iter().filter(common).cloned().collect();
        visible.extend(rest(first));
        visible.extend(rest(second));
        Ok(visible)
    }

    fn table(&mut self, table: &TableFactor) -> Result<Tree, MysqlError> {
        if !table.partitions.is_empty() {
            return Err(unsupported("PARTITION selection"));
        }
        let (database, name) = (table.name.database.as_deref(), table.name.name.as_str());
        if database.is_none() && name.eq_ignore_ascii_case("dual") && table.alias.is_none() {
            return Ok(Tree { items: vec![], conditions: vec![], visible: vec![] });
        }
        let source = match self.lookup.table(database, name, self.privilege)? {
            TableSource::Stored(handle) => SourceTable::Stored(handle),
            TableSource::Virtual(table) => SourceTable::Virtual(table),
        };
        if let Some(alias) = &table.alias {
            check_alias(alias)?;
        }
        let alias = table.alias.as_deref().unwrap_or(name).to_string();
        let mut source = Source { table: source, alias, null_rows: false, allowed_indexes: None, force_index: false };
        let same_database = |other: &Source| other.schema().database == source.schema().database;
        if self.out.sources.iter().any(|s| s.alias == source.alias && same_database(s)) {
            return Err(MysqlError::new(codes::NONUNIQ_TABLE, format!("Not unique table/alias: '{}'", source.alias)));
        }
        apply_hints(&mut source, &table.hints)?;
        Ok(tree_of(source, &mut self.out))
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

fn apply_hints(source: &mut Source, hints: &[ast::IndexHint]) -> Result<(), MysqlError> {
    let schema = source.schema().clone();
    let mut used: Option<Vec<usize>> = None;
    let mut ignored = Vec::new();
    for hint in hints {
        let mut named = Vec::new();
        for name in &hint.indexes {
            let position = schema.indexes.iter().position(|i| i.name.eq_ignore_ascii_case(name));
            let Some(position) = position.filter(|&p| !(p == 0 && schema.hidden_key)) else {
                return Err(MysqlError::new(
                    codes::KEY_DOES_NOT_EXITS,
                    format!("Key '{name}' doesn't exist in table '{}'", source.alias),
                ));
            };
            named.push(position);
        }
        // FOR ORDER BY and FOR GROUP BY restrict only how order is got, which an index scan may always be sorted for instead.
        if hint.scope.is_some_and(|scope| scope != IndexHintScope::Join) {
            continue;
        }
        match hint.action {
            IndexHintAction::Ignore => ignored.extend(named),
            IndexHintAction::Use => used.get_or_insert_default().extend(named),
            IndexHintAction::Force => {
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
