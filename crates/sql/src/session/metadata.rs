//! Queries in WHERE over virtual tables: `… IN (SELECT …)`, as dump tools ask information_schema.
//!
//! Such a query does not depend on the rows around it, and virtual tables have no snapshot; so it is run first and its values take its place. For
//! stored tables that would read another snapshot, and error 1235 stands.

use super::collect::Collector;
use super::data::Source;
use super::session::Session;
use crate::parse::Statement;
use rauk_types::result::{Completion, ResultSink};
use rauk_types::{MysqlError, Value};
use sqlparser::ast;
use std::future::Future;
use std::pin::Pin;

type Resolving<'a> = Pin<Box<dyn Future<Output = Result<bool, MysqlError>> + Send + 'a>>;

fn literal(value: ast::Value) -> ast::Expr {
    ast::Expr::Value(value.into())
}

/// A value as the tree has it; `None`: a kind that no virtual table has as a key.
fn literal_of(value: Value) -> Option<ast::Expr> {
    Some(literal(match value {
        Value::Null => ast::Value::Null,
        Value::Int(v) => ast::Value::Number(v.to_string(), false),
        Value::UInt(v) => ast::Value::Number(v.to_string(), false),
        Value::Str(v) => ast::Value::SingleQuotedString(v),
        _ => return None,
    }))
}

impl Session {
    /// The statement with the values of its metadata queries in place of them; `None` when there are none.
    pub(crate) async fn resolve_metadata(&mut self, statement: &Statement) -> Result<Option<Statement>, MysqlError> {
        let Statement::Query(query) = statement else { return Ok(None) };
        let mut query = query.clone();
        Ok(self.resolve_query(&mut query).await?.then_some(Statement::Query(query)))
    }

    fn resolve_query<'a>(&'a mut self, query: &'a mut ast::Query) -> Resolving<'a> {
        Box::pin(async move {
            let ast::SetExpr::Select(select) = query.body.as_mut() else { return Ok(false) };
            match &mut select.selection {
                Some(condition) => self.resolve_condition(condition).await,
                None => Ok(false),
            }
        })
    }

    fn resolve_condition<'a>(&'a mut self, condition: &'a mut ast::Expr) -> Resolving<'a> {
        Box::pin(async move {
            match condition {
                ast::Expr::Nested(inner) => self.resolve_condition(inner).await,
                ast::Expr::UnaryOp { expr, .. } => self.resolve_condition(expr).await,
                ast::Expr::BinaryOp { left, right, .. } => {
                    let first = self.resolve_condition(left).await?;
                    Ok(self.resolve_condition(right).await? || first)
                }
                ast::Expr::InSubquery { expr, subquery, negated } => {
                    let Some(values) = self.metadata_values(subquery).await? else { return Ok(false) };
                    *condition = match values.is_empty() {
                        true => literal(ast::Value::Boolean(*negated)),
                        false => ast::Expr::InList { expr: expr.clone(), list: values, negated: *negated },
                    };
                    Ok(true)
                }
                _ => Ok(false),
            }
        })
    }

    /// The values of a query of one column over virtual tables alone.
    async fn metadata_values(&mut self, query: &mut ast::Query) -> Result<Option<Vec<ast::Expr>>, MysqlError> {
        self.resolve_query(query).await?;
        let statement = Statement::Query(Box::new(query.clone()));
        let (plan, own) = self.plan(&statement, self.parameter_types.clone())?;
        if !own || !plan.plan.tables.is_empty() || plan.plan.columns.len() != 1 {
            return Ok(None);
        }
        let mut rows = Collector::default();
        let source = Source { text: "", statement: Some(&statement), types: &[], known: None };
        self.run_uncached(source, &mut rows).await?;
        rows.complete(&Completion::default());
        let values = rows.results.pop().map(|result| result.rows).unwrap_or_default();
        Ok(values.into_iter().flatten().map(literal_of).collect())
    }
}
