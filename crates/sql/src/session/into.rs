//! SELECT … INTO @variables, and values of expressions that need a query: those of DO and SET.
//!
//! A query INTO variables may have one row. Of several the first sets them, as in MySQL, and the statement is error 1172; none
//! is warning 1329, and they keep their values. At most two rows are read. INTO OUTFILE and DUMPFILE are `outfile`'s.

use super::data::Source;
use super::run::Done;
use super::session::Session;
use crate::expr::context::WarningLevel;
use crate::expr::value_key::shown;
use crate::parse::Statement;
use crate::parse::ast::{Expr, Into, IntoVariable, ItemName, Limit, Query, QueryBody, Select, SelectItem};
use rauk_types::error::codes;
use rauk_types::format::append_text;
use rauk_types::result::{Completion, FlushFuture, ResultColumn, ResultSink};
use rauk_types::{DataType, MysqlError, TypeKind, Value, ValueRef};

/// ER_TOO_MANY_ROWS.
pub(super) const TOO_MANY_ROWS: u16 = 1172;
/// ER_SP_FETCH_NO_DATA.
const NO_DATA: u16 = 1329;
/// ER_SP_UNDECLARED_VAR.
const UNDECLARED: u16 = 1327;

/// Keeps the first row and counts the others.
#[derive(Default)]
struct FirstRow {
    columns: Vec<ResultColumn>,
    row: Option<Vec<Value>>,
    count: u64,
}

impl FirstRow {
    /// The values, as variables keep them.
    fn values(&mut self) -> Option<Vec<Value>> {
        let mut row = self.row.take()?;
        for (value, column) in row.iter_mut().zip(&self.columns) {
            match value {
                Value::Decimal(decimal) => *decimal = shown(*decimal, &column.ty),
                // A variable holds no dates: it has their text.
                Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Timestamp(_) => {
                    let mut text = Vec::new();
                    append_text(value.as_ref(), &column.ty, &mut text);
                    *value = Value::Str(String::from_utf8_lossy(&text).into_owned());
                }
                _ => {}
            }
        }
        Some(row)
    }
}

impl ResultSink for FirstRow {
    fn columns(&mut self, columns: &[ResultColumn]) {
        self.columns = columns.to_vec();
    }

    fn row(&mut self, values: &[ValueRef<'_>]) {
        if self.row.is_none() {
            self.row = Some(values.iter().map(|value| Value::from(*value)).collect());
        }
        self.count += 1;
    }

    fn withdraw(&mut self) -> bool {
        *self = FirstRow::default();
        true
    }

    fn complete(&mut self, _: &Completion) {}

    fn buffered(&self) -> usize {
        0
    }

    fn flush(&mut self) -> FlushFuture<'_> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// `SELECT item, …`
pub(super) fn select_of(items: Vec<Expr>) -> Query {
    let item = |expr| SelectItem::Expr { expr, name: ItemName::Text(String::new()) };
    Query::plain(QueryBody::Select(Box::new(Select {
        hints: Default::default(),
        distinct: false,
        straight_join: false,
        calc_found_rows: false,
        items: items.into_iter().map(item).collect(),
        from: vec![],
        filter: None,
        group_by: vec![],
        rollup: false,
        having: None,
        windows: vec![],
    })))
}

impl Session {
    /// SELECT … INTO. Errors 1172, 1222, 1327, those of files; warning 1329.
    pub(super) async fn select_into(&mut self, query: &Query, into: &Into) -> Result<Done, MysqlError> {
        let Into::Variables(variables) = into else { return self.select_into_file(query, into).await };
        let mut names = Vec::with_capacity(variables.len());
        for variable in variables {
            match variable {
                IntoVariable::User(name) => names.push(name.to_lowercase()),
                IntoVariable::Local(name) => {
                    return Err(MysqlError::new(UNDECLARED, format!("Undeclared variable: {name}")));
                }
            }
        }
        let mut query = Query { into: None, ..query.clone() };
        if query.limit.is_none() {
            // The second row is one too many already.
            let most = self.settings.select_limit.min(2);
            query.limit = Some(Limit { count: Expr::number(most.to_string()), offset: None });
        }
        let statement = Statement::Query(Box::new(query));
        let types = self.parameter_types.clone();
        let (plan, _) = self.plan(&statement, types.clone())?;
        if plan.plan.columns.len() != names.len() {
            return Err(MysqlError::new(
                codes::WRONG_NUMBER_OF_COLUMNS_IN_SELECT,
                "The used SELECT statements have a different number of columns",
            ));
        }
        let mut rows = FirstRow::default();
        let source = Source { text: "", statement: Some(&statement), types: &types, known: None };
        self.run_uncached(source, &mut rows).await?;
        let affected_rows = rows.count.min(1);
        match rows.values() {
            Some(values) => {
                let types = plan.plan.columns.iter().map(|column| column.ty);
                for ((name, value), ty) in names.into_iter().zip(values).zip(types) {
                    let value = match value.as_ref() {
                        ValueRef::UInt(_) if ty.has_members() => {
                            let mut text = Vec::new();
                            append_text(value.as_ref(), &ty, &mut text);
                            Value::Str(String::from_utf8(text).expect("members are texts"))
                        }
                        _ => value,
                    };
                    self.context.set_user_variable(name, value, ty.collation)?;
                }
            }
            None => self.push_warning(
                WarningLevel::Warning,
                NO_DATA,
                "No data - zero rows fetched, selected, or processed".to_string(),
            ),
        }
        if rows.count > 1 {
            return Err(MysqlError::new(TOO_MANY_ROWS, "Result consisted of more than one row"));
        }
        Ok(Completion { affected_rows, ..Completion::default() }.into())
    }

    /// The value of an expression that may have queries in it. Errors: those of the query.
    pub(crate) async fn value_with_queries(&mut self, expression: &Expr) -> Result<(Value, DataType), MysqlError> {
        if !expression.has_query() {
            return self.evaluate(expression);
        }
        let statement = Statement::Query(Box::new(select_of(vec![expression.clone()])));
        let types = self.parameter_types.clone();
        let mut rows = FirstRow::default();
        let source = Source { text: "", statement: Some(&statement), types: &types, known: None };
        self.run_uncached(source, &mut rows).await?;
        let ty = rows.columns.first().map_or(DataType::new(TypeKind::Null), |column| column.ty);
        Ok((rows.values().unwrap_or_default().pop().unwrap_or_default(), ty))
    }
}
