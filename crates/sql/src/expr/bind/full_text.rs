//! MATCH … AGAINST: columns of one table, a text that is the same for all rows, and the search that the scope registers for
//! them.

use super::{Binder, Result};
use crate::expr::{Expr, ExprKind, SearchMode, fulltext};
use crate::parse::ast;
use rauk_types::MysqlError;

/// ER_WRONG_ARGUMENTS.
pub(crate) fn wrong_arguments(of: &str) -> MysqlError {
    MysqlError::new(1210, format!("Incorrect arguments to {of}"))
}

impl Binder<'_> {
    /// Errors: 1210 for what is no column, and for a text that depends on the row; those of [`crate::expr::Scope::search`].
    pub fn full_text(
        &mut self,
        columns: &[ast::ColumnName],
        against: &ast::Expr,
        mode: ast::MatchMode,
    ) -> Result<Expr> {
        let mut bound = Vec::with_capacity(columns.len());
        for column in columns {
            let resolved = self.scope.resolve(&column.path())?;
            let column = self.resolved(resolved)?;
            if !matches!(column.kind, ExprKind::Reference(_)) {
                return Err(wrong_arguments("MATCH"));
            }
            bound.push(column);
        }
        let against = self.bind(against)?;
        if !against.is_constant() || against.has_subquery() {
            return Err(wrong_arguments("AGAINST"));
        }
        let mode = match mode {
            ast::MatchMode::Natural => SearchMode::Natural,
            ast::MatchMode::Boolean => SearchMode::Boolean,
            ast::MatchMode::NaturalWithExpansion | ast::MatchMode::Expansion => SearchMode::Expansion,
        };
        let number = self.scope.search(&bound, against, mode)?;
        Ok(fulltext::call(number, bound))
    }
}
