//! Changes through views.
//!
//! A view whose rows are rows of its tables is *opened* where a statement changes it: its tables stand in FROM in its place, its columns are the tables' columns
//! (or expressions over them, which can be read and not assigned to, 1348), and its conditions become conditions of the statement. Views below it are opened with it.
//! Everything else about the statement is as if the tables had been named.
//!
//! | what is not opened | error |
//! |---|---|
//! | a view that groups, has DISTINCT, LIMIT, a set operation, ALGORITHM=TEMPTABLE, or a subquery that reads its own table | 1288, INSERT 1471 |
//! | DELETE from a view of several tables | 1395 |
//! | INSERT into a view with a computed column, or one column twice | 1471 |
//! | INSERT into a view of several tables, without a list, or with columns of several | 1394, 1393 |
//! | UPDATE of columns of several tables of one view | 1393 |
//!
//! Privileges: the session's account needs the right to change the view, and each view's account the right to change what the view reads.
//!
//! WITH CHECK OPTION gives conditions that the changed row must satisfy (1369): those of the view, and of views below it as they say
//! (LOCAL) or all of them (CASCADED), with the conditions of their inner joins. A new row of one table of a join view has no rows of the other
//! tables beside it: it is checked with the defaults of their columns, as in MySQL.

use super::Binder;
use super::frame::Table;
use super::view::{hidden, is_updatable};
use crate::expr::{ColumnId, Expr, ExprKind};
use crate::logical::{JoinKind, Node, Query, RowCheck, ScanTable};
use crate::lookup::Lookup;
use crate::stack;
use rauk_node::TableHandle;
use rauk_types::error::codes;
use rauk_types::{MysqlError, ViewAlgorithm, ViewCheck, ViewSchema};
use rustc_hash::FxHashMap;
use std::sync::Arc;

type Items = FxHashMap<ColumnId, Expr>;

/// A table below a view.
pub(super) struct Below {
    pub table: TableHandle,
    /// One a column of the schema.
    pub columns: Vec<ColumnId>,
    /// The views through which it is changed, from the outermost.
    chain: Vec<Arc<ViewSchema>>,
}

/// A view that has been opened.
pub(super) struct Opened {
    pub alias: String,
    /// Names of its columns, and their ids in the frame.
    pub columns: Vec<(String, ColumnId)>,
    pub below: Vec<Below>,
    /// What WITH CHECK OPTION asks of its rows.
    pub check: Option<RowCheck>,
}

/// What is collected while a view is opened.
#[derive(Default)]
struct Opening {
    below: Vec<Below>,
    checks: Vec<Expr>,
    chain: Vec<Arc<ViewSchema>>,
}

/// A view's tables, its items and its conditions, over columns of the tables.
struct Inside {
    node: Node,
    items: Vec<(ColumnId, Expr)>,
    conditions: Vec<Expr>,
}

fn replaced(expr: Expr, items: &Items) -> Expr {
    if items.is_empty() {
        return expr;
    }
    expr.map(&mut |expr| match expr.kind {
        ExprKind::Reference(id) => items.get(&id).cloned().unwrap_or(expr),
        _ => expr,
    })
}

impl Opening {
    fn query(&mut self, view: &Arc<ViewSchema>, query: Query, cascaded: bool) -> Inside {
        self.chain.push(view.clone());
        let mut node = query.node;
        while let Node::Sort { input, .. } = node {
            node = *input;
        }
        let Node::Project { input, items } = node else { unreachable!("an updatable view is one block") };
        let mut conditions = Vec::new();
        node = *input;
        while let Node::Filter { input, conditions: list, .. } = node {
            conditions.splice(0..0, list);
            node = *input;
        }
        let (mut inner, mut all) = (Items::default(), Vec::new());
        let mut joining = Vec::new();
        let below = cascaded || view.check == ViewCheck::Cascaded;
        let node = self.joins(node, below, &mut inner, &mut all, &mut joining);
        let own: Vec<Expr> = conditions.into_iter().map(|condition| replaced(condition, &inner)).collect();
        if cascaded || view.check != ViewCheck::None {
            self.checks.extend(joining);
            self.checks.extend(own.iter().cloned());
        }
        all.extend(own);
        self.chain.pop();
        Inside {
            node,
            items: items.into_iter().map(|(id, item)| (id, replaced(item, &inner))).collect(),
            conditions: all,
        }
    }

    /// The joins with the tables of views in them. `items`: what columns of those views are; `lifted`: their conditions; `joining`: the
    /// conditions of inner joins.
    fn joins(
        &mut self,
        node: Node,
        cascaded: bool,
        items: &mut Items,
        lifted: &mut Vec<Expr>,
        joining: &mut Vec<Expr>,
    ) -> Node {
        match node {
            Node::Join(mut join) => {
                let left = std::mem::replace(&mut join.left, Node::OneRow);
                let right = std::mem::replace(&mut join.right, Node::OneRow);
                let mut of_right = Vec::new();
                let mut outer = Vec::new();
                let inner = if join.kind == JoinKind::Inner { &mut *joining } else { &mut outer };
                join.left = stack::grow(|| self.joins(left, cascaded, items, lifted, inner));
                join.right = stack::grow(|| self.joins(right, cascaded, items, &mut of_right, inner));
                let on = std::mem::take(&mut join.on);
                join.on = on.into_iter().map(|condition| replaced(condition, items)).collect();
                match join.kind {
                    JoinKind::Inner => {
                        joining.extend(join.on.iter().cloned());
                        lifted.extend(of_right);
                    }
                    JoinKind::Left => join.on.extend(of_right),
                    JoinKind::Semi | JoinKind::Anti => unreachable!("only passes make them"),
                }
                Node::Join(join)
            }
            Node::Derived(derived) => {
                let view = derived.view.as_ref().expect("an updatable view reads tables and views").clone();
                let inside = stack::grow(|| self.query(&view, derived.query, cascaded));
                items.extend(inside.items);
                lifted.extend(inside.conditions);
                inside.node
            }
            Node::Scan(scan) => {
                let ScanTable::Stored(table) = &scan.table else {
                    unreachable!("an updatable view reads stored tables")
                };
                let (table, columns) = (table.clone(), scan.columns.clone());
                self.below.push(Below { table, columns, chain: self.chain.clone() });
                Node::Scan(scan)
            }
            other => other,
        }
    }
}

impl Binder<'_> {
    /// Binds the tables of a statement that changes some of them: views of this block are opened. Their conditions are above the tables.
    pub(super) fn opening<R>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<R, MysqlError>,
    ) -> Result<R, MysqlError> {
        self.opens_views = self.frames.len();
        let bound = bind(self);
        self.opens_views = 0;
        bound
    }

    /// Whether the innermost block is one whose views are opened.
    pub(super) fn is_opening(&self) -> bool {
        self.opens_views > 0 && self.opens_views == self.frames.len()
    }

    /// The tables of a view of the innermost block in the place of its query, if that block opens views and the view can be. Else the query.
    pub(super) fn opened(
        &mut self,
        alias: &str,
        view: &Arc<ViewSchema>,
        query: Query,
        columns: &mut [(String, ColumnId)],
        read_before: usize,
    ) -> Result<Result<Node, Query>, MysqlError> {
        if !self.is_opening() || view.algorithm == ViewAlgorithm::Temptable || !is_updatable(&query) {
            return Ok(Err(query));
        }
        let mut names = Vec::new();
        query.node.for_each_scan(&mut |scan| names.push(scan.schema().id));
        if self.read[read_before..].iter().any(|id| names.contains(id)) {
            return Ok(Err(query));
        }
        let mut opening = Opening::default();
        let Inside { node, items, conditions } = opening.query(view, query, false);
        let items: Items = items.into_iter().collect();
        for (_, id) in columns.iter_mut() {
            match items.get(id) {
                // A column of two names has two ids: each is known by its own in the frame.
                Some(Expr { kind: ExprKind::Reference(column), .. }) => *id = *column,
                Some(computed) => {
                    self.computed.insert(*id, computed.clone());
                }
                None => {}
            }
        }
        let check = match opening.checks.is_empty() {
            true => None,
            false => Some(RowCheck { view: format!("{}.{}", view.database, view.name), conditions: opening.checks }),
        };
        self.opened.push(Opened { alias: alias.to_string(), columns: columns.to_vec(), below: opening.below, check });
        Ok(Ok(match conditions.is_empty() {
            true => node,
            false => Node::Filter { input: Box::new(node), conditions, having: false },
        }))
    }

    /// The opened view that a column of the frame belongs to.
    pub(super) fn opened_of(&self, id: ColumnId) -> Option<&Opened> {
        let of = |opened: &&Opened| {
            opened.columns.iter().any(|(_, column)| *column == id)
                || opened.below.iter().any(|below| below.columns.contains(&id))
        };
        self.opened.iter().find(of)
    }

    /// Whether the statement may change a table through its views. Errors: 1142, 1356.
    pub(super) fn may_change_below(&self, below: &Below, privilege: &str) -> Result<(), MysqlError> {
        let outermost = &below.chain[0];
        self.lookup.table(Some(&outermost.database), &outermost.name, privilege)?;
        let schema = below.table.schema();
        let mut names = below.chain.iter().skip(1).map(|view| (&view.database, &view.name)).collect::<Vec<_>>();
        names.push((&schema.database, &schema.name));
        let mut within: Option<Box<dyn Lookup>> = None;
        for (view, (database, name)) in below.chain.iter().zip(names) {
            let next = within.as_deref().unwrap_or(self.lookup).within(view)?;
            let allowed = next.table(Some(database), name, privilege);
            allowed.map_err(|error| hidden(error, &outermost.database, &outermost.name))?;
            within = Some(next);
        }
        Ok(())
    }

    /// Error 1348 for a column of a view that is no column of a table.
    pub(super) fn not_a_column(&self, id: ColumnId, name: &str) -> Option<MysqlError> {
        self.computed
            .contains_key(&id)
            .then(|| MysqlError::new(codes::NONUPDATEABLE_COLUMN, format!("Column '{name}' is not updatable")))
    }

    /// The view and the table below it that an INSERT goes to. `named`: the columns that it lists. Errors: 1471, 1393, 1394, 1142, 1356.
    pub(super) fn insert_target(
        &mut self,
        view: &Arc<ViewSchema>,
        named: Option<&[String]>,
    ) -> Result<InsertThrough, MysqlError> {
        let refused = || {
            let message = format!("The target table {} of the INSERT is not insertable-into", view.name);
            MysqlError::new(codes::NON_INSERTABLE_TABLE, message)
        };
        self.frames.push(super::frame::Frame::new());
        let bound = self.opening(|binder| {
            let read = binder.read.len();
            let bound = binder.view(&view.name, false, view.clone());
            binder.read.truncate(read);
            bound
        });
        self.frames.pop();
        let (_, Table { columns, .. }) = bound?;
        let Some(Opened { below, check, .. }) = self.opened.pop_if(|opened| opened.alias == view.name) else {
            return Err(refused());
        };
        let twice = |at: usize| columns[..at].iter().any(|(_, id)| *id == columns[at].1);
        if columns.iter().any(|(_, id)| self.computed.contains_key(id)) || (0..columns.len()).any(twice) {
            return Err(refused());
        }
        let full_name = format!("{}.{}", view.database, view.name);
        let table_of = |id: ColumnId| below.iter().position(|below| below.columns.contains(&id)).expect("it is below");
        let mut target = 0;
        if below.len() > 1 {
            let Some(named) = named.filter(|named| !named.is_empty()) else {
                let message = format!("Can not insert into join view '{full_name}' without fields list");
                return Err(MysqlError::new(codes::VIEW_NO_INSERT_FIELD_LIST, message));
            };
            let ids = columns.iter().filter(|(name, _)| named.iter().any(|named| named.eq_ignore_ascii_case(name)));
            let mut tables: Vec<usize> = ids.map(|(_, id)| table_of(*id)).collect();
            tables.dedup();
            if tables.len() > 1 {
                return Err(several(&full_name));
            }
            target = tables.first().copied().unwrap_or(0);
        }
        let mut others = below;
        let below = others.remove(target);
        let position = |id: ColumnId| below.columns.iter().position(|column| *column == id);
        let columns = columns.iter().filter_map(|(name, id)| Some((name.clone(), position(*id)?))).collect();
        Ok(InsertThrough { columns, below, others, check })
    }
}

/// Where an INSERT into a view goes.
pub(super) struct InsertThrough {
    /// Names of the view's columns, and their positions in the table's schema.
    pub columns: Vec<(String, usize)>,
    pub below: Below,
    /// The view's other tables.
    pub others: Vec<Below>,
    pub check: Option<RowCheck>,
}

/// Error 1393; the view with its database.
pub(super) fn several(view: &str) -> MysqlError {
    let message = format!("Can not modify more than one base table through a join view '{view}'");
    MysqlError::new(codes::VIEW_MULTIUPDATE, message)
}

/// Error 1395.
pub(super) fn no_delete(view: &ViewSchema) -> MysqlError {
    let message = format!("Can not delete from join view '{}.{}'", view.database, view.name);
    MysqlError::new(codes::VIEW_DELETE_MERGE_VIEW, message)
}

impl Below {
    /// The view that the statement names.
    pub fn view(&self) -> &ViewSchema {
        &self.chain[0]
    }
}

/// Conditions of opened views that stand in joins, brought to the next place above: above the joins, or to ON of an outer join.
pub(super) fn lifted(node: Node) -> (Node, Vec<Expr>) {
    match node {
        Node::Filter { input, conditions, having: false } => {
            let (node, mut all) = lifted(*input);
            all.extend(conditions);
            (node, all)
        }
        Node::Join(mut join) => {
            let left = std::mem::replace(&mut join.left, Node::OneRow);
            let right = std::mem::replace(&mut join.right, Node::OneRow);
            let (left, mut all) = stack::grow(|| lifted(left));
            let (right, of_right) = stack::grow(|| lifted(right));
            join.left = left;
            join.right = right;
            match join.kind {
                JoinKind::Inner => all.extend(of_right),
                JoinKind::Left => join.on.extend(of_right),
                JoinKind::Semi | JoinKind::Anti => unreachable!("only passes make them"),
            }
            (Node::Join(join), all)
        }
        node => (node, Vec::new()),
    }
}
