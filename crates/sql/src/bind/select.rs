//! One query block: the select list, grouping, HAVING, ORDER BY, LIMIT and locking clauses around FROM and WHERE.
//!
//! The tree of a block, from the top: Limit, Sort, Distinct, Project, Filter (HAVING), Aggregate, Filter (WHERE), joins. A key of ORDER BY that is not in
//! the select list is a column of Project that the query does not give.

use super::frame::{Aggregates, Alias, Frame};
use super::names::{Clause, bind_row_count, check_alias};
use super::rollup::raise;
use super::windows::BoundCall;
use super::{Binder, MAX_COLUMNS, computed_column};
use crate::expr::{self, Aggregate, AggregateFunction, BindContext, ColumnId, Expr, ExprKind, fulltext};
use crate::logical::{AggregateNode, Column, Limit, Node, Query, ScanTable, SortKey};
use crate::parse::ast;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::transaction::Lock;
use rauk_types::error::codes;
use rauk_types::{MysqlError, TypeKind};

/// Characters of a column's name that is taken from the text of an expression.
const MAX_NAME: usize = 256;

/// The clauses around the body of a query.
#[derive(Clone, Copy)]
pub(super) struct Clauses<'q> {
    pub order_by: &'q [ast::OrderItem],
    pub limit: Option<&'q ast::Limit>,
    pub locks: &'q [ast::LockClause],
}

/// Whether the groups are summed up. Without FROM there is one row, and ROLLUP adds none.
fn rolls(select: &ast::Select) -> bool {
    select.rollup && !select.from.is_empty()
}

impl Binder<'_> {
    pub(super) fn select(&mut self, select: &ast::Select, clauses: Clauses<'_>) -> Result<Query, MysqlError> {
        self.frames.push(Frame { rollup: rolls(select), ..Frame::new() });
        let bound = self.block(select, clauses);
        let frame = self.frames.pop();
        self.no_semijoin = frame.and_then(|frame| frame.hints).is_some_and(|hints| hints.no_semijoin);
        bound
    }

    pub(super) fn block(&mut self, select: &ast::Select, clauses: Clauses<'_>) -> Result<Query, MysqlError> {
        self.take_hints(&select.hints);
        let fixed = self.has_fixed_order();
        let mut node = self.from(&select.from, select.straight_join || fixed)?;
        self.hint_order(&mut node);
        self.locks(clauses.locks, &mut node)?;

        self.frame().allowed = Aggregates::Allowed;
        self.frame().takes_windows = true;
        let mut items = Items::default();
        self.select_list(&select.items, &mut items)?;
        self.frame().takes_windows = false;

        let mut relevance = None;
        if let Some(filter) = &select.filter {
            self.frame().allowed = Aggregates::Refused;
            let bound = self.bind_in(filter, Clause::Where)?;
            relevance = found_by(&bound);
            node = filtered(node, bound, false);
        }
        let keys = self.group_by(&select.group_by, rolls(select), &items)?;
        self.frame().use_aliases = true;
        self.frame().allowed = Aggregates::Allowed;
        let mut having = None;
        if let Some(condition) = &select.having {
            self.frame().grouped = Some(keys.clone());
            having = Some(self.bind_in(condition, Clause::Having)?);
            self.frame().grouped = None;
        }
        self.frame().takes_windows = true;
        let mut order = self.order_by(clauses.order_by, &items)?;
        let mut windows = self.windows(&select.windows)?;
        let limit = bind_limit(clauses.limit, self.context)?;
        let rollup = if rolls(select) { Some(self.rollup(&keys)?) } else { None };
        if let Some(rollup) = &rollup {
            let above = having.iter_mut().chain(order.iter_mut().map(|key| &mut key.expr));
            above.chain(windows.iter_mut().flat_map(BoundCall::for_each_expr_mut)).for_each(|expr| {
                raise(expr, &keys, &rollup.keys);
            });
            for (id, item) in &mut items.list {
                if raise(item, &keys, &rollup.keys) {
                    let column = self.columns.get_mut(*id);
                    column.nullable = item.nullable;
                    column.result.nullable = item.nullable;
                }
            }
        }

        let aggregates = std::mem::take(&mut self.frame().aggregates);
        let is_average = |aggregate: &Aggregate| {
            aggregate.function == AggregateFunction::Avg && aggregate.ty.kind == TypeKind::Decimal
        };
        let averages: Vec<ColumnId> = aggregates.iter().filter(|(_, a)| is_average(a)).map(|(id, _)| *id).collect();
        if !averages.is_empty() {
            let above = having.iter_mut().chain(order.iter_mut().map(|key| &mut key.expr));
            for expr in above.chain(items.list.iter_mut().map(|(_, item)| item)) {
                *expr = expr::settle_comparisons(std::mem::replace(expr, Expr::null()), &averages);
            }
        }
        let plain = keys.is_empty() && aggregates.is_empty() && windows.is_empty() && !select.distinct;
        // Of a table in FROM or a subquery, order shows where it is cut off.
        let outermost = self.frames.len() == 1 && self.views.is_empty() && self.materialized == 0;
        let plain = plain && (outermost || clauses.limit.is_some());
        if let Some(expr) = relevance.filter(|_| plain && order.is_empty()) {
            order.push(SortKey { expr, descending: true });
        }
        if !keys.is_empty() || !aggregates.is_empty() {
            node = Node::Aggregate(Box::new(AggregateNode { input: node, keys, aggregates, rollup }));
        }
        if let Some(having) = having {
            node = filtered(node, having, true);
        }
        let columns = items.ids();
        if !windows.is_empty() {
            node = self.window_node(node, windows, &mut items.list, &mut order);
        }
        let keys = items.sort_keys(order, self);
        node = Node::Project { input: Box::new(node), items: items.list };
        if select.distinct {
            node = Node::Distinct { input: Box::new(node), columns: columns.clone() };
        }
        Ok(Query { node: ordered(node, keys, limit, select.calc_found_rows), columns })
    }

    pub(super) fn select_list(&mut self, list: &[ast::SelectItem], items: &mut Items) -> Result<(), MysqlError> {
        for item in list {
            match item {
                ast::SelectItem::Wildcard => {
                    if self.frame().tables.is_empty() {
                        return Err(MysqlError::new(codes::NO_TABLES_USED, "No tables used"));
                    }
                    let mut ids: Vec<ColumnId> = self.frame().visible.iter().map(|visible| visible.id).collect();
                    ids.retain(|id| !self.invisible.contains(id));
                    self.note_star(item, &ids);
                    for id in ids {
                        self.push_column(id, items)?;
                    }
                }
                ast::SelectItem::TableWildcard(name) => {
                    let matches = |table: &&super::frame::Table| {
                        table.alias == name.name
                            && name.database.as_deref().is_none_or(|d| table.database.as_deref() == Some(d))
                    };
                    let found = self.frame().tables.iter().find(matches);
                    let Some(table) = found else {
                        let path: Vec<&str> =
                            name.database.as_deref().into_iter().chain([name.name.as_str()]).collect();
                        return Err(MysqlError::new(codes::BAD_TABLE, format!("Unknown table '{}'", path.join("."))));
                    };
                    let mut ids: Vec<ColumnId> = table.columns.iter().map(|(_, id)| *id).collect();
                    ids.retain(|id| !self.invisible.contains(id));
                    self.note_star(item, &ids);
                    for id in ids {
                        self.push_column(id, items)?;
                    }
                }
                ast::SelectItem::Expr { expr, name } => {
                    let name = match name {
                        ast::ItemName::Alias(alias) => {
                            check_alias(alias)?;
                            alias.clone()
                        }
                        ast::ItemName::Text(text) => text.chars().take(MAX_NAME).collect(),
                    };
                    let bound = self.bind_in(expr, Clause::FieldList)?;
                    self.push(bound, name, items)?;
                }
            }
        }
        Ok(())
    }

    fn push_column(&mut self, id: ColumnId, items: &mut Items) -> Result<(), MysqlError> {
        let null_rows = self.frame().null_rows(id);
        let expr = self.reference(id, null_rows);
        self.may_read(&expr)?;
        let name = self.columns.get(id).result.name.clone();
        self.push(expr, name, items)
    }

    fn push(&mut self, expr: Expr, name: String, items: &mut Items) -> Result<(), MysqlError> {
        if items.list.len() == MAX_COLUMNS {
            return Err(MysqlError::new(codes::TOO_MANY_FIELDS, "Too many columns"));
        }
        let id = self.add_item(&expr, name.clone());
        self.frame().aliases.push(Alias { name: name.clone(), expr: expr.clone() });
        items.names.push(name);
        items.list.push((id, expr));
        Ok(())
    }

    /// The column of a projected expression.
    pub(super) fn add_item(&mut self, expr: &Expr, name: String) -> ColumnId {
        let mut result = match expr.kind {
            ExprKind::Reference(id) => self.columns.get(id).result.clone(),
            _ => computed_column(expr.ty, expr.nullable, String::new()),
        };
        result.name = name;
        result.ty = expr::result_type(expr);
        result.nullable = expr.nullable;
        self.columns.add(Column { ty: expr.ty, nullable: expr.nullable, coercibility: expr.coercibility, result })
    }

    /// The keys. An equal one adds nothing, but a level of ROLLUP.
    fn group_by(&mut self, group_by: &[ast::Expr], rollup: bool, items: &Items) -> Result<Vec<Expr>, MysqlError> {
        if group_by.is_empty() {
            return Ok(vec![]);
        }
        let frame = self.frame();
        frame.use_aliases = true;
        frame.allowed = Aggregates::Refused;
        let mut keys: Vec<Expr> = Vec::new();
        for expr in group_by {
            let (bound, name) = match position(expr) {
                Some(number) => {
                    let Some((_, item)) = number.checked_sub(1).and_then(|n| items.list.get(n)) else {
                        return Err(unknown_position(number, Clause::GroupBy));
                    };
                    (item.clone(), items.names[number - 1].clone())
                }
                None => (self.bind_in(expr, Clause::GroupBy)?, item_name(expr)),
            };
            if self.frame().reads_grouped(&bound) || self.frame().reads_windows(&bound) {
                return Err(MysqlError::new(codes::WRONG_GROUP_FIELD, format!("Can't group on '{name}'")));
            }
            if rollup || !keys.contains(&bound) {
                keys.push(bound);
            }
        }
        Ok(keys)
    }

    fn order_by(&mut self, order_by: &[ast::OrderItem], items: &Items) -> Result<Vec<SortKey>, MysqlError> {
        let mut keys = Vec::new();
        for key in order_by {
            let expr = match position(&key.expr) {
                Some(number) => match number.checked_sub(1).and_then(|n| items.list.get(n)) {
                    Some((_, item)) => item.clone(),
                    None => return Err(unknown_position(number, Clause::OrderBy)),
                },
                // A name by itself is an alias of the select list before it is a column.
                None => match bare_name(&key.expr).and_then(|name| items.named(name)) {
                    Some(item) => item.clone(),
                    None => self.bind_in(&key.expr, Clause::OrderBy)?,
                },
            };
            keys.push(SortKey { expr, descending: key.descending });
        }
        Ok(keys)
    }

    /// Sets the lock of each table of the block. Errors: 3568, 1142.
    fn locks(&mut self, clauses: &[ast::LockClause], node: &mut Node) -> Result<(), MysqlError> {
        let mut chosen: Vec<(usize, Lock)> = Vec::new();
        for clause in clauses {
            let mode = match clause.strength {
                ast::LockStrength::Share => LockMode::Shared,
                ast::LockStrength::Update => LockMode::Exclusive,
            };
            let wait = match clause.wait {
                ast::LockWait::Wait => WaitPolicy::Wait,
                ast::LockWait::NoWait => WaitPolicy::NoWait,
                ast::LockWait::SkipLocked => WaitPolicy::SkipLocked,
            };
            let tables = &self.frame().tables;
            let named: Vec<usize> = if clause.of.is_empty() {
                (0..tables.len()).collect()
            } else {
                let mut named = Vec::new();
                for name in &clause.of {
                    let Some(table) = tables.iter().position(|table| table.alias == name.name) else {
                        let message = format!("Unresolved table name `{}` in locking clause.", name.name);
                        return Err(MysqlError::new(3568, message));
                    };
                    named.push(table);
                }
                named
            };
            for table in named {
                match chosen.iter().find(|(known, _)| *known == table) {
                    Some((_, known)) if *known != Some((mode, wait)) => {
                        let alias = &tables[table].alias;
                        let message = format!("Table `{alias}` appears in multiple locking clauses.");
                        return Err(MysqlError::new(3569, message));
                    }
                    Some(_) => {}
                    None => chosen.push((table, Some((mode, wait)))),
                }
            }
        }
        if chosen.is_empty() {
            return Ok(());
        }
        let locked: Vec<(ColumnId, Lock)> = chosen
            .into_iter()
            .filter_map(|(table, lock)| Some((self.frames.last()?.tables[table].columns.first()?.1, lock)))
            .collect();
        let lock_of =
            |columns: &[ColumnId]| locked.iter().find(|(id, _)| columns.contains(id)).and_then(|(_, lock)| *lock);
        let lookup = self.lookup;
        let allowed = |lock: Lock, database: &str, name: &str| match lock {
            Some((LockMode::Exclusive, _)) => lookup.may_lock_rows(database, name),
            _ => Ok(()),
        };
        for_each_leaf(node, &mut |leaf| match leaf {
            Node::Scan(scan) => {
                scan.lock = lock_of(&scan.columns);
                match &scan.table {
                    ScanTable::Stored(table) => allowed(scan.lock, &table.schema().database, &table.schema().name),
                    ScanTable::Virtual(_) => Ok(()),
                }
            }
            Node::Derived(derived) => {
                let Some(view) = &derived.view else { return Ok(()) };
                derived.lock = lock_of(&derived.query.columns);
                allowed(derived.lock, &view.database, &view.name)
            }
            _ => Ok(()),
        })
    }
}

/// Calls `visit` on the tables of a block.
fn for_each_leaf(
    node: &mut Node,
    visit: &mut dyn FnMut(&mut Node) -> Result<(), MysqlError>,
) -> Result<(), MysqlError> {
    match node {
        Node::Join(join) => {
            for_each_leaf(&mut join.left, visit)?;
            for_each_leaf(&mut join.right, visit)
        }
        leaf => visit(leaf),
    }
}

/// The select list as it is bound.
#[derive(Default)]
pub(super) struct Items {
    pub list: Vec<(ColumnId, Expr)>,
    names: Vec<String>,
}

impl Items {
    fn ids(&self) -> Vec<ColumnId> {
        self.list.iter().map(|(id, _)| *id).collect()
    }

    fn named(&self, name: &str) -> Option<&Expr> {
        self.names.iter().position(|known| known.eq_ignore_ascii_case(name)).map(|at| &self.list[at].1)
    }

    /// The keys of ORDER BY as columns of the projection; those that are not selected are added to it.
    fn sort_keys(&mut self, order: Vec<SortKey>, binder: &mut Binder<'_>) -> Vec<SortKey> {
        let mut keys = Vec::new();
        for SortKey { expr, descending } in order {
            let known = self.list.iter().position(|(_, item)| *item == expr);
            let id = match known {
                Some(at) => self.list[at].0,
                None => {
                    let id = binder.add_item(&expr, String::new());
                    self.list.push((id, expr.clone()));
                    id
                }
            };
            keys.push(SortKey { expr: Expr { kind: ExprKind::Reference(id), ..expr }, descending });
        }
        keys
    }
}

/// MATCH by itself, where a condition requires it: rows that it finds come in the order of their relevance.
fn found_by(condition: &Expr) -> Option<Expr> {
    match &condition.kind {
        ExprKind::And(left, right) => found_by(left).or_else(|| found_by(right)),
        _ => fulltext::called(condition).map(|_| condition.clone()),
    }
}

/// `node` with a condition above it.
fn filtered(node: Node, condition: Expr, having: bool) -> Node {
    Node::Filter { input: Box::new(node), conditions: condition.conjuncts(), having }
}

/// `node` with ORDER BY and LIMIT above it.
pub(super) fn ordered(
    mut node: Node,
    keys: Vec<SortKey>,
    (count, offset): (Option<Expr>, Option<Expr>),
    calc_found_rows: bool,
) -> Node {
    if !keys.is_empty() {
        node = Node::Sort { input: Box::new(node), keys };
    }
    if count.is_some() || calc_found_rows {
        node = Node::Limit(Box::new(Limit { input: node, count, offset, calc_found_rows }));
    }
    node
}

pub(super) fn unknown_position(number: usize, clause: Clause) -> MysqlError {
    MysqlError::new(codes::BAD_FIELD, format!("Unknown column '{number}' in '{}'", clause.name()))
}

/// `GROUP BY 2`, `ORDER BY 2`.
pub(super) fn position(expr: &ast::Expr) -> Option<usize> {
    match expr {
        ast::Expr::Literal(ast::Literal::Number(text)) => text.parse().ok(),
        _ => None,
    }
}

/// A column by its name alone.
pub(super) fn bare_name(expr: &ast::Expr) -> Option<&str> {
    match expr {
        ast::Expr::Column(ast::ColumnName { database: None, table: None, name }) => Some(name),
        _ => None,
    }
}

/// LIMIT and OFFSET: literals or parameters.
pub(super) fn bind_limit(
    limit: Option<&ast::Limit>,
    context: &BindContext,
) -> Result<(Option<Expr>, Option<Expr>), MysqlError> {
    let Some(ast::Limit { count, offset }) = limit else { return Ok((None, None)) };
    let offset = offset.as_ref().map(|offset| bind_row_count(offset, context)).transpose()?;
    Ok((Some(bind_row_count(count, context)?), offset))
}

/// As error 1056 names a key of GROUP BY.
fn item_name(expr: &ast::Expr) -> String {
    match expr {
        ast::Expr::Column(name) => name.name.clone(),
        other => crate::expr::readable(other),
    }
}
