//! Queries in WHERE over virtual tables: `… IN (SELECT …)`, as dump tools ask information_schema.
//!
//! Such a query does not depend on the rows around it, and virtual tables have no snapshot; so it is run first and its values take its place. For
//! stored tables that would read another snapshot, and error 1235 stands.

use super::collect::Collector;
use super::data::Source;
use super::session::Session;
use crate::parse::Statement;
use crate::parse::ast::{Expr, Literal, Query, QueryBody};
use rauk_types::result::{Completion, ResultSink};
use rauk_types::{MysqlError, Value};
use std::future::Future;
use std::pin::Pin;

type Resolving<'a> = Pin<Box<dyn Future<Output = Result<bool, MysqlError>> + Send + 'a>>;

/// A value as the tree has it; `None`: a kind that no virtual table has as a key.
fn literal_of(value: Value) -> Option<Expr> {
    Some(match value {
        Value::Null => Expr::Literal(Literal::Null),
        Value::Int(v) => Expr::number(v.to_string()),
        Value::UInt(v) => Expr::number(v.to_string()),
        Value::Str(v) => Expr::text(v),
        _ => return None,
    })
}

impl Session {
    /// The statement with the values of its metadata queries in place of them; `None` when there are none.
    pub(crate) async fn resolve_metadata(&mut self, statement: &Statement) -> Result<Option<Statement>, MysqlError> {
        let Statement::Query(query) = statement else { return Ok(None) };
        let mut query = query.clone();
        Ok(self.resolve_query(&mut query).await?.then_some(Statement::Query(query)))
    }

    fn resolve_query<'a>(&'a mut self, query: &'a mut Query) -> Resolving<'a> {
        Box::pin(async move {
            let QueryBody::Select(select) = &mut query.body else { return Ok(false) };
            match &mut select.filter {
                Some(condition) => self.resolve_condition(condition).await,
                None => Ok(false),
            }
        })
    }

    fn resolve_condition<'a>(&'a mut self, condition: &'a mut Expr) -> Resolving<'a> {
        Box::pin(async move {
            match condition {
                Expr::Unary { operand, .. } => self.resolve_condition(operand).await,
                Expr::Binary { left, right, .. } => {
                    let first = self.resolve_condition(left).await?;
                    Ok(self.resolve_condition(right).await? || first)
                }
                Expr::InQuery { operand, query, negated } => {
                    let Some(values) = self.metadata_values(query).await? else { return Ok(false) };
                    *condition = match values.is_empty() {
                        true => Expr::Literal(Literal::Boolean(*negated)),
                        false => Expr::InList { operand: operand.clone(), list: values, negated: *negated },
                    };
                    Ok(true)
                }
                _ => Ok(false),
            }
        })
    }

    /// The values of a query of one column over virtual tables alone.
    async fn metadata_values(&mut self, query: &mut Query) -> Result<Option<Vec<Expr>>, MysqlError> {
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
