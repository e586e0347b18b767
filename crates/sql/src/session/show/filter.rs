//! WHERE behind a SHOW: an expression over the columns of its rows.

use super::Table;
use crate::expr::{self, Aggregate, BindContext, Columns, Context, Expr, ExprKind, Resolved, Scope};
use crate::parse::ast;
use rauk_types::error::codes;
use rauk_types::result::ResultColumn;
use rauk_types::{MysqlError, Value, ValueRef};

struct Names<'a>(&'a [ResultColumn]);

impl Scope for Names<'_> {
    fn resolve(&mut self, path: &[&str]) -> Result<Resolved, MysqlError> {
        let name = path.last().copied().unwrap_or_default();
        let at =
            self.0.iter().position(|c| c.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
                MysqlError::new(codes::BAD_FIELD, format!("Unknown column '{name}' in 'where clause'"))
            })?;
        Ok(Resolved::Column { table: 0, column: at, ty: self.0[at].ty, nullable: self.0[at].nullable })
    }

    fn aggregate(&mut self, _: Aggregate) -> Result<ExprKind, MysqlError> {
        Err(MysqlError::new(codes::INVALID_GROUP_FUNC_USE, "Invalid use of group function"))
    }

    fn inserted_value(&mut self, column: &str) -> Result<Resolved, MysqlError> {
        self.resolve(&[column])
    }

    fn default_value(&mut self, column: &[&str]) -> Result<Expr, MysqlError> {
        let name = column.join(".");
        Err(MysqlError::new(codes::NO_DEFAULT_FOR_FIELD, format!("Field '{name}' doesn't have a default value")))
    }
}

struct Row<'a>(&'a [Value]);

impl Columns for Row<'_> {
    fn column(&self, _: usize, column: usize) -> ValueRef<'_> {
        self.0[column].as_ref()
    }
}

/// Keeps the rows for which the condition holds.
pub(super) fn retain(
    table: &mut Table,
    condition: &ast::Expr,
    bind_context: &BindContext,
    context: &mut Context,
) -> Result<(), MysqlError> {
    let bound = expr::bind(condition, &mut Names(&table.columns), bind_context)?;
    let mut kept = Vec::with_capacity(table.rows.len());
    for row in table.rows.drain(..) {
        if bound.eval_bool(&Row(&row), context)? {
            kept.push(row);
        }
    }
    table.rows = kept;
    Ok(())
}
