//! HANDLER: a table read row by row, from where the last READ has stopped.
//!
//! What is kept between two READs is a position: the values of the index's columns and of the primary key in the last
//! row. A READ is a query in the order of the index, forwards or backwards, of what is behind that position; so it sees
//! what the session's transaction sees, and another statement that changes the table does not disturb it. Such a query
//! finds its place by the index where the index has no NULLs; else it looks at the rows before, too.
//!
//! A handler is closed by DDL on its table, by whomever, by HANDLER … CLOSE, and with the session. Left out (1235):
//! tables without a primary key, and indexes on expressions, on prefixes or with descending columns.

use super::data::Source;
use super::errors;
use super::run::Done;
use super::session::Session;
use super::users::Privileges;
use crate::parse::Statement;
use crate::parse::ast::{BinaryOp, ColumnName, Expr, IsTest, Limit, QueryBody, TableName};
use crate::parse::handler::{Handler, KeyOp, Place, Step};
use rauk_node::TableHandle;
use rauk_types::error::codes;
use rauk_types::result::{Completion, FlushFuture, ResultColumn, ResultSink, SessionChange};
use rauk_types::{DataType, IndexSchema, MysqlError, TableId, TableSchema, Value, ValueRef};

const NOT_BASE_TABLE: u16 = 1347;
const NO_SUCH_KEY: u16 = 1176;
const TOO_MANY_KEY_PARTS: u16 = 1070;
/// Handlers that a session may have open.
const MOST: usize = 1024;
const TOO_MANY_OPEN: u16 = 1041;

/// A handler of a session.
pub(crate) struct Opened {
    /// As the client calls it, in lower case.
    name: String,
    database: String,
    table: String,
    id: TableId,
    version: u32,
    position: Option<Position>,
}

/// Behind, or before, a row.
struct Position {
    /// `None`: in the natural order.
    index: Option<String>,
    values: Vec<Value>,
}

/// Passes rows on without their last columns, and keeps these of the last row.
struct Positioning<'a> {
    inner: &'a mut dyn ResultSink,
    shown: usize,
    last: Option<Vec<Value>>,
}

impl ResultSink for Positioning<'_> {
    fn columns(&mut self, columns: &[ResultColumn]) {
        self.inner.columns(&columns[..self.shown]);
    }

    fn row(&mut self, values: &[ValueRef<'_>]) {
        self.inner.row(&values[..self.shown]);
        self.last = Some(values[self.shown..].iter().map(|value| Value::from(*value)).collect());
    }

    fn withdraw(&mut self) -> bool {
        self.last = None;
        self.inner.withdraw()
    }

    fn changed(&mut self, change: SessionChange) {
        self.inner.changed(change);
    }

    fn complete(&mut self, completion: &Completion) {
        self.inner.complete(completion);
    }

    fn buffered(&self) -> usize {
        self.inner.buffered()
    }

    fn flush(&mut self) -> FlushFuture<'_> {
        self.inner.flush()
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn not_open(name: &str) -> MysqlError {
    MysqlError::new(codes::UNKNOWN_TABLE, format!("Unknown table '{name}' in HANDLER"))
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right) }
}

fn all(op: BinaryOp, parts: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    parts.into_iter().reduce(|left, right| binary(op, left, right))
}

/// The columns of an index, each with whether it may be NULL.
type Columns = Vec<(String, bool)>;

/// What a READ asks for, apart from its own conditions.
struct Range {
    condition: Option<Expr>,
    backwards: bool,
}

impl Session {
    pub(crate) async fn run_handler(
        &mut self,
        handler: &Handler,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        if self.locked.is_some() {
            let message =
                "Can't execute the given command because you have active locked tables or an active transaction";
            return Err(MysqlError::new(codes::LOCK_OR_ACTIVE_TRANSACTION, message));
        }
        self.close_changed_handlers();
        match handler {
            Handler::Open { table, alias } => {
                self.open_handler(table, alias.as_deref())?;
                Ok(Done::default())
            }
            Handler::Close(table) => {
                let at = self.handler_at(table)?;
                self.handlers.remove(at);
                Ok(Done::default())
            }
            Handler::Read { table, place, filter, limit } => {
                self.read_handler(table, place, filter.as_ref(), limit.as_deref(), sink).await
            }
        }
    }

    /// DDL closes the handlers of its tables.
    fn close_changed_handlers(&mut self) {
        let mut handlers = std::mem::take(&mut self.handlers);
        handlers.retain(|opened| {
            let table = self.stored_table(&opened.database, &opened.table);
            table.is_ok_and(|table| (table.schema().id, table.schema().version) == (opened.id, opened.version))
        });
        self.handlers = handlers;
    }

    fn handler_at(&self, name: &TableName) -> Result<usize, MysqlError> {
        let wanted = name.name.to_lowercase();
        let is_it = |opened: &Opened| {
            opened.name == wanted && name.database.as_ref().is_none_or(|database| *database == opened.database)
        };
        self.handlers.iter().position(is_it).ok_or_else(|| not_open(&name.name))
    }

    /// Errors: 1041, 1066, 1142, 1146, 1235, 1347.
    fn open_handler(&mut self, name: &TableName, alias: Option<&str>) -> Result<(), MysqlError> {
        let shown = alias.unwrap_or(&name.name);
        if self.handlers.iter().any(|opened| opened.name == shown.to_lowercase()) {
            return Err(MysqlError::new(codes::NONUNIQ_TABLE, format!("Not unique table/alias: '{shown}'")));
        }
        if self.handlers.len() >= MOST {
            let message = format!("Out of resources: a session has at most {MOST} handlers open");
            return Err(MysqlError::new(TOO_MANY_OPEN, message));
        }
        let (database, table) = self.qualified(name)?;
        if super::system::is_system(&database) || self.view(&database, &table).is_some() {
            return Err(MysqlError::new(NOT_BASE_TABLE, format!("'{database}.{table}' is not BASE TABLE")));
        }
        if !self.temporary.has(&database, &table) {
            self.require_table("SELECT", &database, &table, Privileges::SELECT)?;
        }
        let handle = self.stored_table(&database, &table)?;
        let schema = handle.schema();
        if schema.hidden_key {
            return Err(errors::not_supported("HANDLER of a table without a primary key"));
        }
        self.handlers.push(Opened {
            name: shown.to_lowercase(),
            id: schema.id,
            version: schema.version,
            database,
            table,
            position: None,
        });
        Ok(())
    }

    async fn read_handler(
        &mut self,
        name: &TableName,
        place: &Place,
        filter: Option<&Expr>,
        limit: Option<&Limit>,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        let at = self.handler_at(name)?;
        let (database, table) = (self.handlers[at].database.clone(), self.handlers[at].table.clone());
        let handle = self.stored_table(&database, &table)?;
        let alias = name.name.clone();
        let index_name = match place {
            Place::Step { index, .. } => index.clone(),
            Place::Key { index, .. } => Some(index.clone()),
        };
        let (columns, parts) = columns_of(&handle, index_name.as_deref(), &alias)?;
        let given = self.context.parameters.clone();
        let range = self.range_of(at, place, &index_name, (&columns, parts), &alias)?;
        let select =
            query_text(handle.schema(), (&database, &table, &alias), index_name.as_deref(), &columns, range.backwards);
        let mut statement = Statement::clone(&*self.parse_one(&select)?);
        if let Statement::Query(query) = &mut statement
            && let QueryBody::Select(select) = &mut query.body
        {
            select.filter = all(BinaryOp::And, range.condition.into_iter().chain(filter.cloned()));
            query.limit = Some(limit.cloned().unwrap_or(Limit { count: Expr::number("1".to_string()), offset: None }));
        }
        let collation = self.settings.collation;
        let types: Vec<DataType> =
            self.context.parameters.iter().map(|value| crate::expr::type_of(value, collation)).collect();
        let shown = handle.schema().visible_columns().iter().filter(|column| !column.invisible).count();
        let mut positioning = Positioning { inner: sink, shown, last: None };
        let source = Source { text: "", statement: Some(&statement), types: &types, known: None };
        let result = Box::pin(self.run_uncached(source, &mut positioning)).await;
        let last = positioning.last.take();
        self.context.parameters = given;
        let done = result?;
        if let (Some(values), Ok(at)) = (last, self.handler_at(name)) {
            self.handlers[at].position = Some(Position { index: index_name, values });
        }
        Ok(done)
    }

    /// Values of the position become parameters behind those that the statement has.
    fn range_of(
        &mut self,
        at: usize,
        place: &Place,
        index: &Option<String>,
        (columns, parts): (&Columns, usize),
        alias: &str,
    ) -> Result<Range, MysqlError> {
        let column = |name: &str| {
            Expr::Column(ColumnName { database: None, table: Some(alias.to_string()), name: name.to_string() })
        };
        let step = match place {
            Place::Step { step, .. } => *step,
            Place::Key { op, values, .. } => {
                if values.len() > parts {
                    let message = format!("Too many key parts specified; max {parts} parts allowed");
                    return Err(MysqlError::new(TOO_MANY_KEY_PARTS, message));
                }
                let of = |op| {
                    let pairs = columns.iter().zip(values);
                    all(BinaryOp::And, pairs.map(|((name, _), value)| binary(op, column(name), value.clone())))
                };
                let row = |op| {
                    let names: Vec<Expr> = columns.iter().take(values.len()).map(|(name, _)| column(name)).collect();
                    match <[Expr; 1]>::try_from(names) {
                        Ok([one]) => binary(op, one, values[0].clone()),
                        Err(names) => binary(op, Expr::Row(names), Expr::Row(values.clone())),
                    }
                };
                return Ok(match op {
                    KeyOp::Equal => Range { condition: of(BinaryOp::NullSafeEqual), backwards: false },
                    KeyOp::GreaterOrEqual => Range { condition: Some(row(BinaryOp::GreaterOrEqual)), backwards: false },
                    KeyOp::Greater => Range { condition: Some(row(BinaryOp::Greater)), backwards: false },
                    KeyOp::LessOrEqual => Range { condition: Some(row(BinaryOp::LessOrEqual)), backwards: true },
                    KeyOp::Less => Range { condition: Some(row(BinaryOp::Less)), backwards: true },
                });
            }
        };
        let backwards = matches!(step, Step::Prev | Step::Last);
        let position = self.handlers[at].position.as_ref().filter(|known| known.index == *index);
        let (Step::Next | Step::Prev, Some(position)) = (step, position) else {
            return Ok(Range { condition: None, backwards });
        };
        let mut parameters = Vec::new();
        for value in &position.values {
            parameters.push(Expr::Parameter(self.context.parameters.len()));
            self.context.parameters.push(value.clone());
        }
        let further = if backwards { BinaryOp::Less } else { BinaryOp::Greater };
        if columns.iter().all(|(_, nullable)| !nullable) {
            let names: Vec<Expr> = columns.iter().map(|(name, _)| column(name)).collect();
            let condition = match names.len() {
                1 => binary(further, column(&columns[0].0), parameters[0].clone()),
                _ => binary(further, Expr::Row(names), Expr::Row(parameters)),
            };
            return Ok(Range { condition: Some(condition), backwards });
        }
        // NULL comes before all values.
        let is_null = |name: &str, negated| Expr::Is { operand: Box::new(column(name)), test: IsTest::Null, negated };
        let mut ways = Vec::new();
        for (i, (name, nullable)) in columns.iter().enumerate() {
            let beyond = match (&position.values[i], backwards) {
                (Value::Null, true) => continue,
                (Value::Null, false) => is_null(name, true),
                (_, true) if *nullable => {
                    binary(BinaryOp::Or, binary(further, column(name), parameters[i].clone()), is_null(name, false))
                }
                _ => binary(further, column(name), parameters[i].clone()),
            };
            let same = columns.iter().zip(&parameters).take(i);
            let same = same.map(|((name, _), value)| binary(BinaryOp::NullSafeEqual, column(name), value.clone()));
            ways.extend(all(BinaryOp::And, same.chain([beyond])));
        }
        Ok(Range { condition: all(BinaryOp::Or, ways), backwards })
    }
}

/// The columns of an index with those of the primary key behind them, and how many are its own.
fn columns_of(table: &TableHandle, index: Option<&str>, alias: &str) -> Result<(Columns, usize), MysqlError> {
    let schema = table.schema();
    let primary = schema.indexes.first().filter(|_| !schema.hidden_key);
    let primary = primary.ok_or_else(|| errors::not_supported("HANDLER of a table without a primary key"))?;
    let own = match index {
        None => primary,
        Some(name) => schema
            .indexes
            .iter()
            .find(|index| index.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| MysqlError::new(NO_SUCH_KEY, format!("Key '{name}' doesn't exist in table '{alias}'")))?,
    };
    let named = schema.visible_columns().len();
    let plain = |index: &IndexSchema| {
        index.parts.iter().all(|part| part.column < named && part.prefix.is_none() && !part.descending)
    };
    if !plain(own) || !plain(primary) {
        return Err(errors::not_supported("HANDLER by a key on expressions, on prefixes or with descending columns"));
    }
    let mut at: Vec<usize> = own.parts.iter().map(|part| part.column).collect();
    let parts = at.len();
    at.extend(
        primary.parts.iter().map(|part| part.column).filter(|column| !own.parts.iter().any(|p| p.column == *column)),
    );
    let column = |at: usize| (schema.columns[at].name.clone(), schema.columns[at].nullable);
    Ok((at.into_iter().map(column).collect(), parts))
}

fn query_text(
    schema: &TableSchema,
    (database, table, alias): (&str, &str, &str),
    index: Option<&str>,
    columns: &Columns,
    backwards: bool,
) -> String {
    let (alias, direction) = (quoted(alias), if backwards { "DESC" } else { "ASC" });
    let extra: Vec<String> = columns.iter().map(|(name, _)| format!("{alias}.{}", quoted(name))).collect();
    let order: Vec<String> = extra.iter().map(|column| format!("{column} {direction}")).collect();
    let used = index.filter(|name| schema.indexes.iter().any(|i| i.name.eq_ignore_ascii_case(name) && !i.invisible));
    let force = used.map_or(String::new(), |index| format!(" FORCE INDEX ({})", quoted(index)));
    format!(
        "SELECT {alias}.*, {} FROM {}.{} AS {alias}{force} ORDER BY {}",
        extra.join(", "),
        quoted(database),
        quoted(table),
        order.join(", ")
    )
}
