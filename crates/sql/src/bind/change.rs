//! UPDATE and DELETE of one table.
//!
//! Several tables, IGNORE, WITH and RETURNING are not supported yet.

use super::Binder;
use super::frame::{Aggregates, Frame};
use super::names::{Clause, bind_row_count, default_expression, unknown_column};
use crate::expr::{ColumnId, Expr};
use crate::logical::{Delete, Node, Scan, ScanTable, SetColumn, SortKey, Target, Update, Write};
use crate::lookup::unsupported;
use crate::parse::ast::{self, TableReference};
use rauk_types::MysqlError;
use rauk_types::error::codes;

const WITH: &str = "WITH before UPDATE and DELETE";

/// The clauses that choose rows.
struct Chosen<'q> {
    filter: Option<&'q ast::Expr>,
    order_by: &'q [ast::OrderItem],
    limit: Option<&'q ast::Expr>,
}

impl Binder<'_> {
    pub(super) fn update(&mut self, update: &ast::Update) -> Result<Write, MysqlError> {
        if update.with.is_some() {
            return Err(unsupported(WITH));
        }
        let [TableReference::Table(table)] = update.tables.as_slice() else {
            return Err(unsupported("UPDATE of several tables"));
        };
        if update.ignore {
            return Err(unsupported("UPDATE IGNORE"));
        }
        self.frames.push(Frame::new());
        let bound = self.bound_update(update, table);
        self.frames.pop();
        bound
    }

    fn bound_update(&mut self, update: &ast::Update, table: &ast::TableFactor) -> Result<Write, MysqlError> {
        let scan = self.changed_table(table, "UPDATE")?;
        let mut set = Vec::new();
        for assignment in &update.assignments {
            let column = self.assigned_column(&assignment.column, &scan)?;
            let value = match &assignment.value {
                ast::Expr::Default => default_expression(&scan.schema().columns[column], self.context)?,
                value => Some(self.bind_in(value, Clause::FieldList)?),
            };
            set.push(SetColumn { column, value });
        }
        let chosen =
            Chosen { filter: update.filter.as_ref(), order_by: &update.order_by, limit: update.limit.as_ref() };
        let target = self.target(scan, chosen)?;
        Ok(Write::Update(Box::new(Update { target, set })))
    }

    pub(super) fn delete(&mut self, delete: &ast::Delete) -> Result<Write, MysqlError> {
        if delete.with.is_some() {
            return Err(unsupported(WITH));
        }
        let ([TableReference::Table(table)], []) = (delete.from.as_slice(), delete.targets.as_slice()) else {
            return Err(unsupported("DELETE from several tables"));
        };
        if delete.ignore {
            return Err(unsupported("DELETE IGNORE"));
        }
        if !delete.returning.is_empty() {
            return Err(unsupported("DELETE … RETURNING"));
        }
        self.frames.push(Frame::new());
        let chosen =
            Chosen { filter: delete.filter.as_ref(), order_by: &delete.order_by, limit: delete.limit.as_ref() };
        let target = self.changed_table(table, "DELETE").and_then(|scan| self.target(scan, chosen));
        self.frames.pop();
        Ok(Write::Delete(Box::new(Delete { target: target? })))
    }

    /// The table that is changed, as the only one of the innermost frame.
    fn changed_table(&mut self, table: &ast::TableFactor, privilege: &str) -> Result<Scan, MysqlError> {
        let (node, visible) = self.named_table(table, privilege)?;
        let Node::Scan(scan) = node else {
            return Err(MysqlError::new(codes::NO_TABLES_USED, "No tables used"));
        };
        if matches!(scan.table, ScanTable::Virtual(_)) {
            return Err(MysqlError::new(
                codes::TABLEACCESS_DENIED,
                format!("{privilege} command denied to user for table '{}'", scan.alias),
            ));
        }
        self.target = Some((scan.schema().id, scan.alias.clone()));
        self.frame().visible = visible;
        self.frame().allowed = Aggregates::Refused;
        Ok(*scan)
    }

    fn target(&mut self, scan: Scan, chosen: Chosen<'_>) -> Result<Target, MysqlError> {
        let mut conditions = Vec::new();
        if let Some(filter) = chosen.filter {
            // A condition reads.
            let schema = scan.schema();
            self.lookup.table(Some(&schema.database), &schema.name, "SELECT")?;
            conditions = self.bind_in(filter, Clause::Where)?.conjuncts();
        }
        let mut order = Vec::new();
        for key in chosen.order_by {
            let expr = self.bind_in(&key.expr, Clause::OrderBy)?;
            order.push(SortKey { expr, descending: key.descending });
        }
        let limit = chosen.limit.map(|limit| bind_row_count(limit, self.context)).transpose()?;
        Ok(Target { scan, conditions, order, limit })
    }

    /// The position of a column that is assigned to.
    fn assigned_column(&self, name: &ast::ColumnName, scan: &Scan) -> Result<usize, MysqlError> {
        let schema = scan.schema();
        let table = name.table.as_ref().is_none_or(|table| *table == scan.alias);
        let database = name.database.as_ref().is_none_or(|database| *database == schema.database);
        let position = |name: &str| schema.visible_columns().iter().position(|c| c.name.eq_ignore_ascii_case(name));
        let column = if table && database { position(&name.name) } else { None };
        column.ok_or_else(|| unknown_column(&name.path(), Clause::FieldList))
    }
}

/// Whether an expression reads one of these columns.
pub(super) fn reads(expr: &Expr, columns: &[ColumnId]) -> bool {
    let mut found = false;
    expr.for_each_reference(&mut |id, _| found |= columns.contains(&id));
    found
}
