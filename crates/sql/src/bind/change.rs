//! UPDATE and DELETE.
//!
//! One table whose conditions read no other rows of it is bound as a scan with conditions, order and limit. Every other statement becomes a query
//! that gives the rows to be changed: all columns of each changed table, then what its assignments read of other tables ([`Change`]).
//!
//! An assignment reads its own row as the assignments before it have left it, and other tables' rows as they were before the statement.
//! Errors: 1093, a subquery reads a table that is changed; 1288, a name that has no stored rows; 1706, a table is changed through two aliases
//! and one of them assigns to its primary key; 1221, ORDER BY or LIMIT with several tables.

use super::Binder;
use super::frame::{Aggregates, Frame, Table};
use super::names::{Clause, bind_row_count, default_expression, unknown_column, unknown_column_of};
use super::own_row;
use super::select::ordered;
use super::through::{lifted, no_delete, several};
use super::view::is_mergeable;
use crate::expr::{ColumnId, Expr, ExprKind};
use crate::logical::{
    Change, ChangeTarget, Delete, Node, Query, RowCheck, Scan, ScanTable, SetColumn, SortKey, Target, Update, Write,
};
use crate::lookup::{TableSource, unsupported};
use crate::parse::ast::{self, TableReference};
use crate::parse::print::Reader;
use rauk_node::TableHandle;
use rauk_types::error::codes;
use rauk_types::{MysqlError, TableId};
use rustc_hash::FxHashMap;

/// ER_MULTI_UPDATE_KEY_CONFLICT.
const KEY_CONFLICT: u16 = 1706;

/// The clauses that choose rows.
struct Chosen<'q> {
    filter: Option<&'q ast::Expr>,
    order_by: &'q [ast::OrderItem],
    limit: Option<&'q ast::Expr>,
    ignore: bool,
}

/// A changed table while a statement of several tables is bound.
struct Changed {
    table: TableHandle,
    alias: String,
    /// One a column of the schema.
    columns: Vec<ColumnId>,
    set: Vec<SetColumn>,
    check: Option<RowCheck>,
}

impl Binder<'_> {
    pub(super) fn update(&mut self, update: &ast::Update) -> Result<Write, MysqlError> {
        self.behind_with(Reader::Update(update), &update.hints, |binder| match update.tables.as_slice() {
            [TableReference::Table(table)] if !binder.names_view(table) => binder.update_one(update, table),
            _ => binder.update_several(update),
        })
    }

    pub(super) fn delete(&mut self, delete: &ast::Delete) -> Result<Write, MysqlError> {
        self.behind_with(Reader::Delete(delete), &delete.hints, |binder| {
            match (delete.from.as_slice(), delete.targets.as_slice()) {
                ([TableReference::Table(table)], []) if binder.names_view(table) => binder.delete_view(delete, table),
                ([TableReference::Table(table)], []) => binder.delete_one(delete, table),
                // `DELETE t FROM t`.
                ([TableReference::Table(table)], [name])
                    if is_named(table, name) && delete.returning.is_empty() && !binder.names_view(table) =>
                {
                    binder.delete_one(delete, table)
                }
                _ => binder.delete_several(delete),
            }
        })
    }

    /// Binds a change in a block of its own, with the common tables of its WITH in reach.
    fn behind_with(
        &mut self,
        reader: Reader<'_>,
        hints: &ast::Hints,
        bind: impl FnOnce(&mut Self) -> Result<Write, MysqlError>,
    ) -> Result<Write, MysqlError> {
        let known = self.common.len();
        self.with(reader)?;
        self.frames.push(Frame::new());
        self.take_hints(hints);
        let bound = bind(self);
        self.frames.pop();
        self.common.truncate(known);
        bound
    }

    fn update_one(&mut self, update: &ast::Update, table: &ast::TableFactor) -> Result<Write, MysqlError> {
        let scan = self.changed_table(table, "UPDATE")?;
        self.hint_order(&mut Node::OneRow);
        let mut set = Vec::new();
        for assignment in &update.assignments {
            let column = self.assigned_column(&assignment.column, &scan)?;
            self.may_write(scan.schema(), &[column], "UPDATE")?;
            let assigned = self.assigned_value(column, &assignment.value, scan.schema(), &scan.columns)?;
            if assignment.value != ast::Expr::Default {
                self.may_copy(scan.schema(), &scan.columns, assigned.value.as_ref())?;
            }
            set.push(assigned);
        }
        let chosen = Chosen {
            filter: update.filter.as_ref(),
            order_by: &update.order_by,
            limit: update.limit.as_ref(),
            ignore: update.ignore,
        };
        let target = self.target(scan, chosen)?;
        if target.conditions.iter().any(is_correlated) {
            return self.change_of(target, true, set, vec![], None);
        }
        let rules = own_row::row_rules(target.scan.schema(), self.context)?;
        Ok(Write::Update(Box::new(Update { target, set, check: None, rules })))
    }

    fn delete_one(&mut self, delete: &ast::Delete, table: &ast::TableFactor) -> Result<Write, MysqlError> {
        let scan = self.changed_table(table, "DELETE")?;
        self.hint_order(&mut Node::OneRow);
        let chosen = Chosen {
            filter: delete.filter.as_ref(),
            order_by: &delete.order_by,
            limit: delete.limit.as_ref(),
            ignore: delete.ignore,
        };
        let target = self.target(scan, chosen)?;
        if !delete.returning.is_empty() {
            let schema = target.scan.schema();
            self.lookup.table(Some(&schema.database), &schema.name, "SELECT")?;
        }
        let returning = self.returning(&delete.returning)?;
        if target.conditions.iter().any(is_correlated) {
            return self.change_of(target, false, vec![], returning, None);
        }
        Ok(Write::Delete(Box::new(Delete { target, returning })))
    }

    fn update_several(&mut self, update: &ast::Update) -> Result<Write, MysqlError> {
        let fixed = self.has_fixed_order();
        let mut node = self.opening(|binder| binder.from(&update.tables, fixed))?;
        self.hint_order(&mut node);
        self.check_null_rows()?;
        let (node, conditions) = lifted(node);
        if let (Node::Scan(_), [TableReference::Table(table)]) = (&node, update.tables.as_slice()) {
            let Node::Scan(scan) = node else { unreachable!("it was looked at above") };
            return self.update_view(update, table, *scan, conditions);
        }
        let node = above(node, conditions);
        let refused =
            if !update.order_by.is_empty() { Some("ORDER BY") } else { update.limit.as_ref().map(|_| "LIMIT") };
        if let Some(clause) = refused {
            return Err(wrong_usage("UPDATE", clause));
        }
        let mut changed: Vec<Changed> = Vec::new();
        let mut assigned = Vec::new();
        for assignment in &update.assignments {
            let path = assignment.column.path();
            self.frame().clause = Clause::FieldList;
            let id = self.frame().column(&path)?.ok_or_else(|| unknown_column(&path, Clause::FieldList))?;
            if let Some(error) = self.not_a_column(id, &assignment.column.name) {
                return Err(error);
            }
            let (at, column) = match changed.iter().position(|c| c.columns.contains(&id)) {
                Some(at) => (at, position(&changed[at].columns, id)),
                None => {
                    let scan = self.changed_scan(&node, id, "UPDATE")?;
                    changed.push(scan);
                    (changed.len() - 1, position(&changed[changed.len() - 1].columns, id))
                }
            };
            self.may_write(changed[at].table.schema(), &[column], "UPDATE")?;
            assigned.push((at, column, &assignment.value));
        }
        self.check_views(&changed)?;
        self.check_aliases(&changed, &assigned.iter().map(|(at, column, _)| (*at, *column)).collect::<Vec<_>>())?;
        self.note_targets(&changed);
        self.frame().allowed = Aggregates::Refused;
        for (at, column, value) in assigned {
            let schema = changed[at].table.schema().clone();
            let ids = changed[at].columns.clone();
            let set = self.assigned_value(column, value, &schema, &ids)?;
            changed[at].set.push(set);
        }
        // In the order of FROM.
        let mut ids = Vec::new();
        node.columns(&mut ids);
        changed.sort_by_key(|c| position(&ids, c.columns[0]));
        let node = self.filtered(node, update.filter.as_ref())?;
        self.check_read(&changed)?;
        self.change(node, vec![], None, changed, true, update.ignore, vec![])
    }

    fn delete_several(&mut self, delete: &ast::Delete) -> Result<Write, MysqlError> {
        if !delete.returning.is_empty() {
            return Err(MysqlError::new(
                codes::PARSE_ERROR,
                "You have an error in your SQL syntax; RETURNING stands behind a DELETE from one table only",
            ));
        }
        let fixed = self.has_fixed_order();
        let mut node = self.opening(|binder| binder.from(&delete.from, fixed))?;
        self.hint_order(&mut node);
        let (node, conditions) = lifted(node);
        let node = above(node, conditions);
        let mut changed: Vec<Changed> = Vec::new();
        for name in &delete.targets {
            let id = self.deleted_table(name)?;
            if changed.iter().any(|c| c.columns.contains(&id)) {
                let message = format!("Not unique table/alias: '{}'", name.name);
                return Err(MysqlError::new(codes::NONUNIQ_TABLE, message));
            }
            let scan = self.changed_scan(&node, id, "DELETE")?;
            changed.push(scan);
        }
        self.note_targets(&changed);
        self.frame().allowed = Aggregates::Refused;
        let node = self.filtered(node, delete.filter.as_ref())?;
        self.check_read(&changed)?;
        self.change(node, vec![], None, changed, false, delete.ignore, vec![])
    }

    /// A column of the table that a name behind DELETE means. Errors 1109, 1066, 1288.
    fn deleted_table(&mut self, name: &ast::TableName) -> Result<ColumnId, MysqlError> {
        let unknown = || {
            let message = format!("Unknown table '{}' in MULTI DELETE", name.name);
            MysqlError::new(codes::UNKNOWN_TABLE, message)
        };
        // What the name means where it is no alias.
        let own = match self.lookup.table(name.database.as_deref(), &name.name, "DELETE") {
            Ok(TableSource::Stored(table)) => Some(table.schema().id),
            Err(error) if error.code == codes::TABLEACCESS_DENIED => return Err(error),
            _ => None,
        };
        let mut found = None;
        for table in self.frames.last().into_iter().flat_map(|frame| &frame.tables) {
            let matches = match &table.schema {
                Some(schema) if !table.is_aliased => own == Some(schema.id),
                // A name with its database is no alias.
                _ => name.database.is_none(),
            };
            if table.alias != name.name || !matches {
                continue;
            }
            if found.is_some() {
                let message = format!("Not unique table/alias: '{}'", name.name);
                return Err(MysqlError::new(codes::NONUNIQ_TABLE, message));
            }
            found = Some(table.columns.first().map(|(_, id)| *id));
        }
        found.flatten().ok_or_else(unknown)
    }

    /// The table that is changed, as the only one of the innermost frame.
    fn changed_table(&mut self, table: &ast::TableFactor, privilege: &str) -> Result<Scan, MysqlError> {
        if table.name.database.is_none() && self.is_common_table(&table.name.name) {
            return Err(not_updatable(table.alias.as_ref().unwrap_or(&table.name.name), privilege));
        }
        let (node, visible) = self.named_table(table, privilege)?;
        let Node::Scan(scan) = node else {
            return Err(MysqlError::new(codes::NO_TABLES_USED, "No tables used"));
        };
        if matches!(scan.table, ScanTable::Virtual(_)) {
            return Err(denied(&scan.alias, privilege));
        }
        self.targets.push(Forbidden::by_table(scan.schema().id, &scan.alias));
        self.frame().visible = visible;
        self.frame().allowed = Aggregates::Refused;
        Ok(*scan)
    }

    /// The table of FROM that a column belongs to, which the statement changes.
    fn changed_scan(&mut self, node: &Node, id: ColumnId, privilege: &str) -> Result<Changed, MysqlError> {
        if let Some(changed) = self.changed_below(id, privilege)? {
            return Ok(changed);
        }
        let Some(scan) = scan_of(node, id) else {
            let table = self.frame().tables.iter().find(|table| table.columns.iter().any(|(_, column)| *column == id));
            return Err(not_updatable(table.map_or("", |table| table.alias.as_str()), privilege));
        };
        let ScanTable::Stored(table) = &scan.table else { return Err(denied(&scan.alias, privilege)) };
        let schema = table.schema();
        let (_, by_columns) = self.lookup.table_by_columns(Some(&schema.database), &schema.name, privilege)?;
        if by_columns {
            self.by_columns.push(schema.id);
        }
        let (alias, columns) = (scan.alias.clone(), scan.columns.clone());
        Ok(Changed { table: table.clone(), alias, columns, set: vec![], check: None })
    }

    // Views

    fn names_view(&self, table: &ast::TableFactor) -> bool {
        let common = table.name.database.is_none() && self.is_common_table(&table.name.name);
        let source = || self.lookup.table(table.name.database.as_deref(), &table.name.name, "SELECT");
        !common && (source().is_ok_and(|source| matches!(source, TableSource::View(_))))
    }

    /// UPDATE of a view of one table. `conditions`: the view's.
    fn update_view(
        &mut self,
        update: &ast::Update,
        table: &ast::TableFactor,
        scan: Scan,
        conditions: Vec<Expr>,
    ) -> Result<Write, MysqlError> {
        let check = self.begin_view(table, &scan, "UPDATE")?;
        let schema = scan.schema().clone();
        let mut set = Vec::new();
        for assignment in &update.assignments {
            let path = assignment.column.path();
            self.frame().clause = Clause::FieldList;
            let id = self.frame().column(&path)?.ok_or_else(|| unknown_column(&path, Clause::FieldList))?;
            if let Some(error) = self.not_a_column(id, &assignment.column.name) {
                return Err(error);
            }
            let column = position(&scan.columns, id);
            set.push(self.assigned_value(column, &assignment.value, &schema, &scan.columns)?);
        }
        let chosen = Chosen {
            filter: update.filter.as_ref(),
            order_by: &update.order_by,
            limit: update.limit.as_ref(),
            ignore: update.ignore,
        };
        let target = self.target_of_view(scan, conditions, chosen, false)?;
        if target.conditions.iter().any(is_correlated) {
            return self.change_of(target, true, set, vec![], check);
        }
        let rules = own_row::row_rules(target.scan.schema(), self.context)?;
        Ok(Write::Update(Box::new(Update { target, set, check, rules })))
    }

    /// Errors 1288, 1395.
    fn delete_view(&mut self, delete: &ast::Delete, table: &ast::TableFactor) -> Result<Write, MysqlError> {
        let (node, visible) = self.opening(|binder| binder.named_table(table, "DELETE"))?;
        self.frame().visible = visible;
        let (node, conditions) = lifted(node);
        let alias = table.alias.as_ref().unwrap_or(&table.name.name);
        let scan = match node {
            Node::Scan(scan) => *scan,
            Node::Join(_) => return Err(no_delete(self.opened[0].below[0].view())),
            _ => return Err(not_updatable(alias, "DELETE")),
        };
        self.begin_view(table, &scan, "DELETE")?;
        let chosen = Chosen {
            filter: delete.filter.as_ref(),
            order_by: &delete.order_by,
            limit: delete.limit.as_ref(),
            ignore: delete.ignore,
        };
        let target = self.target_of_view(scan, conditions, chosen, !delete.returning.is_empty())?;
        let returning = self.returning(&delete.returning)?;
        if target.conditions.iter().any(is_correlated) {
            return self.change_of(target, false, vec![], returning, None);
        }
        Ok(Write::Delete(Box::new(Delete { target, returning })))
    }

    /// The rows of a view's only table are changed: what the view asks of them.
    fn begin_view(
        &mut self,
        table: &ast::TableFactor,
        scan: &Scan,
        privilege: &str,
    ) -> Result<Option<RowCheck>, MysqlError> {
        let opened = self.opened.last().expect("the table is below a view");
        self.may_change_below(&opened.below[0], privilege)?;
        let check = opened.check.clone().filter(|_| privilege != "DELETE");
        let alias = table.alias.as_ref().unwrap_or(&table.name.name).clone();
        self.targets.push(Forbidden::by_table(scan.schema().id, &alias));
        self.frame().allowed = Aggregates::Refused;
        Ok(check)
    }

    /// `reads`: RETURNING reads the view too.
    fn target_of_view(
        &mut self,
        scan: Scan,
        mut conditions: Vec<Expr>,
        chosen: Chosen<'_>,
        reads: bool,
    ) -> Result<Target, MysqlError> {
        if chosen.filter.is_some() || reads {
            let view = self.opened.last().expect("the table is below a view").below[0].view();
            self.lookup.table(Some(&view.database), &view.name, "SELECT")?;
        }
        let mut target = self.chosen(scan, chosen)?;
        conditions.append(&mut target.conditions);
        Ok(Target { conditions, ..target })
    }

    /// The table below an opened view that a column belongs to; of a DELETE, the view's only table. `None`: it belongs to no opened view.
    fn changed_below(&self, id: ColumnId, privilege: &str) -> Result<Option<Changed>, MysqlError> {
        let Some(opened) = self.opened_of(id) else { return Ok(None) };
        if privilege == "DELETE" && opened.below.len() > 1 {
            return Err(no_delete(opened.below[0].view()));
        }
        let of = opened.below.iter().find(|below| privilege == "DELETE" || below.columns.contains(&id));
        let Some(below) = of else { return Ok(None) };
        self.may_change_below(below, privilege)?;
        let check = opened.check.clone().filter(|_| privilege != "DELETE");
        let (alias, columns) = (opened.alias.clone(), below.columns.clone());
        Ok(Some(Changed { table: below.table.clone(), alias, columns, set: vec![], check }))
    }

    /// Error 1393: columns of several tables of one view.
    fn check_views(&self, changed: &[Changed]) -> Result<(), MysqlError> {
        for opened in &self.opened {
            let of = |c: &&Changed| opened.below.iter().any(|below| below.columns.contains(&c.columns[0]));
            if changed.iter().filter(of).count() > 1 {
                let view = opened.below[0].view();
                return Err(several(&format!("{}.{}", view.database, view.name)));
            }
        }
        Ok(())
    }

    /// Null rows of an outer join would not make an expression of an opened view NULL.
    fn check_null_rows(&self) -> Result<(), MysqlError> {
        let computes = |table: &Table| table.columns.iter().any(|(_, id)| self.computed.contains_key(id));
        match self
            .frames
            .last()
            .is_some_and(|frame| frame.tables.iter().any(|table| table.null_rows && computes(table)))
        {
            true => Err(unsupported("UPDATE of an outer join with a view that computes columns")),
            false => Ok(()),
        }
    }

    fn note_targets(&mut self, changed: &[Changed]) {
        self.targets.extend(changed.iter().map(|c| Forbidden::by_table(c.table.schema().id, &c.alias)));
    }

    /// Error 1093 for subqueries that were bound before it was known what is changed.
    fn check_read(&self, changed: &[Changed]) -> Result<(), MysqlError> {
        match changed.iter().find(|c| self.read.contains(&c.table.schema().id)) {
            Some(c) => Err(self.prevented_by_view(&c.alias).unwrap_or_else(|| target_used(&c.alias))),
            None => Ok(()),
        }
    }

    /// Error 1706.
    fn check_aliases(&self, changed: &[Changed], assigned: &[(usize, usize)]) -> Result<(), MysqlError> {
        for (at, first) in changed.iter().enumerate() {
            let schema = first.table.schema();
            let same = |other: &Changed| other.table.schema().id == schema.id;
            let Some(behind) = changed[at + 1..].iter().position(same) else { continue };
            let second = at + 1 + behind;
            let in_key = |column: usize| schema.indexes[0].parts.iter().any(|part| part.column == column);
            if assigned.iter().any(|&(table, column)| same(&changed[table]) && in_key(column)) {
                return Err(MysqlError::new(
                    KEY_CONFLICT,
                    format!(
                        "Primary key/partition key update is not allowed since the table is updated both as '{}' and '{}'.",
                        first.alias, changed[second].alias
                    ),
                ));
            }
        }
        Ok(())
    }

    fn target(&mut self, scan: Scan, chosen: Chosen<'_>) -> Result<Target, MysqlError> {
        if chosen.filter.is_some() {
            // A condition reads.
            self.reads_changed(scan.schema(), &scan.columns)?;
        }
        self.chosen(scan, chosen)
    }

    fn chosen(&mut self, scan: Scan, chosen: Chosen<'_>) -> Result<Target, MysqlError> {
        let mut conditions = Vec::new();
        if let Some(filter) = chosen.filter {
            conditions = self.bind_in(filter, Clause::Where)?.conjuncts();
        }
        let mut order = Vec::new();
        for key in chosen.order_by {
            let expr = self.bind_in(&key.expr, Clause::OrderBy)?;
            order.push(SortKey { expr, descending: key.descending });
        }
        let limit = chosen.limit.map(|limit| bind_row_count(limit, self.context)).transpose()?;
        Ok(Target { scan, conditions, order, limit, ignore: chosen.ignore })
    }

    fn filtered(&mut self, node: Node, filter: Option<&ast::Expr>) -> Result<Node, MysqlError> {
        let Some(filter) = filter else { return Ok(node) };
        let conditions = self.bind_in(filter, Clause::Where)?.conjuncts();
        Ok(Node::Filter { input: Box::new(node), conditions, having: false })
    }

    /// The position of a column that is assigned to.
    fn assigned_column(&self, name: &ast::ColumnName, scan: &Scan) -> Result<usize, MysqlError> {
        let schema = scan.schema();
        let table = name.table.as_ref().is_none_or(|table| *table == scan.alias);
        let database = name.database.as_ref().is_none_or(|database| *database == schema.database);
        let position = |name: &str| schema.visible_columns().iter().position(|c| c.name.eq_ignore_ascii_case(name));
        let column = if table && database { position(&name.name) } else { None };
        // Column names are no secret to whoever may change the whole table only.
        let names = || schema.visible_columns().iter().map(|c| c.name.as_str()).filter(|_| !self.may_guard());
        column.ok_or_else(|| unknown_column_of(&name.path(), Clause::FieldList, names()))
    }

    /// `ids`: the columns of the row. Error 3105.
    pub(super) fn assigned_value(
        &mut self,
        column: usize,
        value: &ast::Expr,
        schema: &rauk_types::TableSchema,
        ids: &[ColumnId],
    ) -> Result<SetColumn, MysqlError> {
        let generated = schema.columns[column].generated.is_some();
        let value = match value {
            // It is computed again in any case.
            ast::Expr::Default if generated => Some(self.reference(ids[column], false)),
            _ if generated => return Err(own_row::not_default(schema, column)),
            ast::Expr::Default => match default_expression(&schema.columns[column], self.context)? {
                Some(value) => Some(value),
                None => own_row::default_reading(schema, column, ids, self.context)?,
            },
            value => Some(self.bind_in(value, Clause::FieldList)?),
        };
        Ok(SetColumn { column, value })
    }

    /// The change of rows of one table that subqueries choose by reading them.
    fn change_of(
        &mut self,
        target: Target,
        update: bool,
        set: Vec<SetColumn>,
        returning: Vec<Expr>,
        check: Option<RowCheck>,
    ) -> Result<Write, MysqlError> {
        let Target { scan, conditions, order, limit, ignore } = target;
        let ScanTable::Stored(table) = &scan.table else { unreachable!("changed_table refuses other tables") };
        let changed = vec![Changed {
            table: table.clone(),
            alias: scan.alias.clone(),
            columns: scan.columns.clone(),
            set,
            check,
        }];
        let node = Node::Filter { input: Box::new(Node::Scan(Box::new(scan))), conditions, having: false };
        self.change(node, order, limit, changed, update, ignore, returning)
    }

    fn share_subqueries(&mut self, expr: &Expr) {
        if let ExprKind::Subquery(subquery) = &expr.kind {
            let bound = self.subqueries[subquery.id.0 as usize].as_mut();
            bound.expect("conditions of a view are bound").shared = true;
        }
        expr.for_each_child(&mut |child| crate::stack::grow(|| self.share_subqueries(child)));
    }

    /// The query over `node` that gives the rows to be changed, and what happens to them.
    #[allow(clippy::too_many_arguments)]
    fn change(
        &mut self,
        node: Node,
        order: Vec<SortKey>,
        limit: Option<Expr>,
        changed: Vec<Changed>,
        update: bool,
        ignore: bool,
        mut returning: Vec<Expr>,
    ) -> Result<Write, MysqlError> {
        let mut rows = Given::default();
        for id in changed.iter().flat_map(|c| &c.columns) {
            rows.give(*id, self);
        }
        let mut targets = Vec::new();
        for Changed { table, alias, columns, mut set, mut check } in changed {
            // The conditions stand in the query too.
            check.iter().flat_map(|check| &check.conditions).for_each(|condition| self.share_subqueries(condition));
            let mut inputs = Vec::new();
            let checks = check.iter_mut().flat_map(|check| &mut check.conditions);
            for value in set.iter_mut().filter_map(|set| set.value.as_mut()).chain(checks) {
                value.for_each_reference(&mut |id, _| {
                    if !columns.contains(&id) && !inputs.contains(&id) {
                        inputs.push(id);
                    }
                });
                rows.rename(value, self);
            }
            let columns = columns.into_iter().map(|id| rows.give(id, self)).collect();
            let inputs = inputs.into_iter().map(|id| rows.give(id, self)).collect();
            let rules = match update {
                true => own_row::row_rules(table.schema(), self.context)?,
                false => None,
            };
            targets.push(ChangeTarget { table, alias, columns, inputs, set, check, rules });
        }
        for item in &mut returning {
            rows.rename(item, self);
        }
        let columns: Vec<ColumnId> = rows.items.iter().map(|(id, _)| *id).collect();
        let mut keys = Vec::new();
        for SortKey { expr, descending } in order {
            let id = self.add_item(&expr, String::new());
            keys.push(SortKey { expr: Expr { kind: ExprKind::Reference(id), ..expr.clone() }, descending });
            rows.items.push((id, expr));
        }
        let node = Node::Project { input: Box::new(node), items: rows.items };
        let rows = Query { node: ordered(node, keys, (limit, None), false), columns };
        Ok(Write::Change(Box::new(Change { update, ignore, rows, targets, returning })))
    }
}

/// The columns that the query of a change gives.
#[derive(Default)]
struct Given {
    items: Vec<(ColumnId, Expr)>,
    by_column: FxHashMap<ColumnId, ColumnId>,
}

impl Given {
    /// The column that gives another one.
    fn give(&mut self, id: ColumnId, binder: &mut Binder<'_>) -> ColumnId {
        if let Some(&item) = self.by_column.get(&id) {
            return item;
        }
        let null_rows = binder.frame().null_rows(id);
        let expr = binder.reference(id, null_rows);
        let name = binder.columns.get(id).result.name.clone();
        let item = binder.add_item(&expr, name);
        self.items.push((item, expr));
        self.by_column.insert(id, item);
        item
    }

    /// Makes an expression read what the query gives.
    fn rename(&mut self, expr: &mut Expr, binder: &mut Binder<'_>) {
        let old = std::mem::replace(expr, Expr::null());
        *expr = old.map(&mut |expr| match expr.kind {
            ExprKind::Reference(id) => Expr { kind: ExprKind::Reference(self.give(id, binder)), ..expr },
            _ => expr,
        });
    }
}

/// Whether a name by itself surely means a table.
fn is_named(table: &ast::TableFactor, name: &ast::TableName) -> bool {
    let alias = match &table.alias {
        Some(alias) => alias,
        None if table.name.database.is_none() => &table.name.name,
        None => return false,
    };
    name.database.is_none() && name.name == *alias
}

fn position(columns: &[ColumnId], id: ColumnId) -> usize {
    columns.iter().position(|column| *column == id).expect("the column is one of the table's")
}

/// The table of FROM that makes a column.
fn scan_of(node: &Node, id: ColumnId) -> Option<&Scan> {
    match node {
        Node::Scan(scan) => scan.columns.contains(&id).then_some(scan),
        Node::Filter { input, .. } => scan_of(input, id),
        Node::Join(join) => crate::stack::grow(|| scan_of(&join.left, id).or_else(|| scan_of(&join.right, id))),
        _ => None,
    }
}

/// Whether an expression waits for each row: it has a subquery that reads the row, or SLEEP.
fn is_correlated(expr: &Expr) -> bool {
    let mut found = matches!(&expr.kind, ExprKind::Subquery(subquery) if !subquery.outer.is_empty())
        || expr.waiting_call().is_some();
    expr.for_each_child(&mut |child| found = found || is_correlated(child));
    found
}

/// Tables with the conditions of their views above them.
fn above(node: Node, conditions: Vec<Expr>) -> Node {
    match conditions.is_empty() {
        true => node,
        false => Node::Filter { input: Box::new(node), conditions, having: false },
    }
}

fn wrong_usage(statement: &str, clause: &str) -> MysqlError {
    MysqlError::new(codes::WRONG_USAGE, format!("Incorrect usage of {statement} and {clause}"))
}

fn not_updatable(alias: &str, statement: &str) -> MysqlError {
    let message = format!("The target table {alias} of the {statement} is not updatable");
    MysqlError::new(codes::NON_UPDATABLE_TABLE, message)
}

fn denied(alias: &str, privilege: &str) -> MysqlError {
    MysqlError::new(codes::TABLEACCESS_DENIED, format!("{privilege} command denied to user for table '{alias}'"))
}

/// A table that the statement changes.
#[derive(Clone)]
pub(super) struct Forbidden {
    pub table: TableId,
    pub alias: String,
    /// Subqueries may read it by another alias: so it is with INSERT and REPLACE, whose rows are computed before they are written.
    by_alias: bool,
}

impl Forbidden {
    pub fn by_table(table: TableId, alias: &str) -> Forbidden {
        Forbidden { table, alias: alias.to_string(), by_alias: false }
    }

    pub fn by_alias(table: TableId, alias: &str) -> Forbidden {
        Forbidden { by_alias: true, ..Forbidden::by_table(table, alias) }
    }

    pub fn meets(&self, table: TableId, alias: &str) -> bool {
        self.table == table && (!self.by_alias || self.alias.eq_ignore_ascii_case(alias))
    }
}

/// Error 1093.
pub(super) fn target_used(alias: &str) -> MysqlError {
    MysqlError::new(
        codes::UPDATE_TABLE_USED,
        format!("You can't specify target table '{alias}' for update in FROM clause"),
    )
}

/// Whether a derived table of a subquery is merged into it, so that the subquery reads the tables of the derived one (1093). One that computes
/// columns may be grouped: it is taken for one that is kept.
pub(super) fn is_merged(query: &ast::Query) -> bool {
    let ast::QueryBody::Select(select) = &query.body else { return false };
    let plain = |item: &ast::SelectItem| match item {
        ast::SelectItem::Wildcard | ast::SelectItem::TableWildcard(_) => true,
        ast::SelectItem::Expr { expr, .. } => matches!(expr, ast::Expr::Column(_)),
    };
    is_mergeable(query) && select.items.iter().all(plain)
}

/// Whether a derived table that no view stands for is kept: one that is not merged, or whose condition has a subquery.
pub(super) fn is_kept(query: &ast::Query) -> bool {
    let ast::QueryBody::Select(select) = &query.body else { return true };
    !is_merged(query) || select.filter.as_ref().is_some_and(ast::Expr::has_query)
}

/// Whether an expression reads one of these columns.
pub(super) fn reads(expr: &Expr, columns: &[ColumnId]) -> bool {
    let mut found = false;
    expr.for_each_reference(&mut |id, _| found |= columns.contains(&id));
    found
}
