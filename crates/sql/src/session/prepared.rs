//! Prepared statements, of the binary protocol and of SQL (`PREPARE … FROM`).
//!
//! A prepared statement keeps its tree and the last plan that served it. Both count as long as the statement exists
//! ([`Place`]): a session's prepared statements together against rauk_query_memory_limit, those of all sessions against
//! rauk_total_query_memory_limit (1038), and their number against max_prepared_stmt_count (1461).
//! A plan is for parameter *types*; a client that sends other types, or
//! whose session has other settings, gets another plan.

use super::data::{Source, keep_known};
use super::plan_cache::CachedPlan;
use super::run::Done;
use super::session::Session;
use super::status::Counter;
use crate::expr::context::SqlMode;
use crate::expr::type_of;
use crate::memory::Memory;
use crate::parse::ast::Query;
use crate::parse::statement::{PrepareSource, Show};
use crate::parse::{Statement, Tree};
use crate::stack::{self, Roomy};
use parking_lot::Mutex;
use rauk_types::error::codes;
use rauk_types::result::{ResultColumn, ResultSink};
use rauk_types::{Collation, DataType, MysqlError, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a client gets for COM_STMT_PREPARE.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub id: u32,
    pub parameters: Vec<ResultColumn>,
    pub columns: Vec<ResultColumn>,
    pub warnings: u16,
}

pub(crate) struct PreparedStatement {
    pub text: String,
    pub statement: Tree,
    pub parameters: usize,
    last: Mutex<Option<LastPlan>>,
    _place: Place,
}

/// What a prepared statement counts for, until it is dropped.
struct Place {
    memory: Memory,
    bytes: usize,
    /// Prepared statements of all sessions.
    number: Arc<AtomicU64>,
}

impl Place {
    /// Errors: 1461, 1038.
    fn take(number: &Arc<AtomicU64>, most: u64) -> Result<Place, MysqlError> {
        let place = Place { memory: Memory::default(), bytes: 0, number: number.clone() };
        if number.fetch_add(1, Relaxed) < most {
            return Ok(place);
        }
        let message = format!("Can't create more than max_prepared_stmt_count statements (current value: {most})");
        Err(MysqlError::new(codes::MAX_PREPARED_STMT_COUNT_REACHED, message))
    }

    fn holds(&mut self, memory: &Memory, bytes: usize) -> Result<(), MysqlError> {
        memory.take(bytes)?;
        (self.memory, self.bytes) = (memory.clone(), bytes);
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.memory.give_back(self.bytes);
        self.number.fetch_sub(1, Relaxed);
    }
}

/// The last plan, and what it was made for.
struct LastPlan {
    plan: Arc<CachedPlan>,
    types: Vec<DataType>,
    database: Option<String>,
    sql_mode: SqlMode,
    collation: Collation,
}

fn parameter_column() -> ResultColumn {
    ResultColumn {
        name: "?".to_string(),
        org_name: String::new(),
        table: String::new(),
        org_table: String::new(),
        database: String::new(),
        ty: DataType::varchar(0, Collation::Binary),
        nullable: true,
        primary_key: false,
        unique_key: false,
        multiple_key: false,
        auto_increment: false,
    }
}

/// Error 1243.
fn unknown_handler(name: &str, command: &str) -> MysqlError {
    let message = format!("Unknown prepared statement handler ({name}) given to {command}");
    MysqlError::new(codes::UNKNOWN_STMT_HANDLER, message)
}

impl Session {
    /// Statements that MySQL cannot prepare either: 1295. Gives the columns of the result, too.
    fn make_prepared(&mut self, sql: &str) -> Result<(PreparedStatement, Vec<ResultColumn>), MysqlError> {
        let most = self.engine.variables.unsigned("max_prepared_stmt_count");
        let mut place = Place::take(&self.engine.prepared, most)?;
        let before = self.context.budget.memory.used();
        let parsed = self.parse(sql)?;
        let refused = matches!(
            *parsed.statement,
            Statement::Prepare { .. }
                | Statement::Execute { .. }
                | Statement::Deallocate(_)
                | Statement::Load(_)
                | Statement::GetDiagnostics(_)
                | Statement::Signal(_)
                | Statement::LockTables(_)
                | Statement::UnlockTables
                | Statement::LockInstance
                | Statement::UnlockInstance
        );
        if refused {
            return Err(MysqlError::new(
                codes::UNSUPPORTED_PS,
                "This command is not supported in the prepared statement protocol yet",
            ));
        }
        if let Statement::Unsupported(what) = &*parsed.statement {
            return Err(super::errors::not_supported(what));
        }
        if parsed.parameters > 0 && matches!(*parsed.statement, Statement::CreateView(_)) {
            return Err(crate::parse::view::variable_in_view());
        }
        let (statement, parameters) = (parsed.statement, parsed.parameters);
        let columns = self.columns_of_statement(&statement, parameters)?;
        // What parsing and planning have taken says what the tree and a plan hold.
        let grown = self.context.budget.memory.used().saturating_sub(before);
        self.prepared_memory.set_limit(self.settings.memory_limit);
        place.holds(&self.prepared_memory, size_of::<PreparedStatement>() + sql.len() + grown)?;
        let text = sql.to_string();
        Ok((PreparedStatement { text, statement, parameters, last: Mutex::new(None), _place: place }, columns))
    }

    pub async fn prepare(&mut self, sql: &str) -> Result<Prepared, MysqlError> {
        self.begin_command(sql)?;
        let result = self.prepare_statement(sql);
        self.context.budget.memory.release();
        self.process.end();
        match result {
            Ok(prepared) => Ok(prepared),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn prepare_statement(&mut self, sql: &str) -> Result<Prepared, MysqlError> {
        self.clear_warnings();
        self.context.budget.begin(self.settings.memory_limit);
        self.process.counters.add(Counter::StatementPrepare, 1);
        let (statement, columns) = self.make_prepared(sql)?;
        self.last_prepared = self.last_prepared.wrapping_add(1).max(1);
        while self.prepared.contains_key(&self.last_prepared) {
            self.last_prepared = self.last_prepared.wrapping_add(1).max(1);
        }
        let id = self.last_prepared;
        let parameters = vec![parameter_column(); statement.parameters];
        self.prepared.insert(id, Arc::new(statement));
        Ok(Prepared { id, parameters, columns, warnings: 0 })
    }

    /// The columns of the result, as far as they are known before parameters have types; also finds names that do not exist.
    fn columns_of_statement(&mut self, tree: &Tree, parameters: usize) -> Result<Vec<ResultColumn>, MysqlError> {
        match &**tree {
            // The rows go into variables.
            Statement::Query(query) if query.into.is_some() => {
                let plan = || {
                    let query = Query { into: None, ..(**query).clone() };
                    self.plan(&Statement::Query(Box::new(query)), vec![DataType::BIGINT; parameters])
                };
                stack::with_room(tree.height, plan).map(|_| Vec::new())
            }
            statement @ (Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)) => {
                let plan = || self.plan(statement, vec![DataType::BIGINT; parameters]);
                let (plan, _) = stack::with_room(tree.height, plan)?;
                Ok(plan.plan.columns.clone())
            }
            Statement::Show(show) => self.show_columns(show),
            Statement::Describe { table, .. } => {
                self.show_columns(&Show::Columns { full: false, table: table.clone(), filter: Default::default() })
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Runs a prepared statement. Parameters as decoded from the binary protocol: integers, doubles, strings, bytes, temporal values, NULL.
    pub async fn execute(
        &mut self,
        id: u32,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<(), MysqlError> {
        let Some(prepared) = self.prepared.get(&id).cloned() else {
            return Err(unknown_handler(&id.to_string(), "mysqld_stmt_execute"));
        };
        self.begin_command(&prepared.text)?;
        self.process.counters.add(Counter::StatementExecute, 1);
        self.start_statement();
        self.clear_warnings();
        let height = prepared.statement.height;
        let result = if let Err(error) = self.spend_query() {
            Err(error)
        } else if parameters.len() == prepared.parameters {
            let mut parameters = parameters.to_vec();
            for parameter in &mut parameters {
                if let Value::Str(text) = parameter {
                    match self.settings.collation {
                        // As a literal is then.
                        Collation::Binary => *parameter = Value::Bytes(std::mem::take(text).into_bytes()),
                        collation => keep_known(text, collation),
                    }
                }
            }
            let future = Box::pin(self.run_prepared(&prepared, parameters, sink));
            if height <= stack::SHALLOW { future.await } else { Roomy { height, future }.await }
        } else {
            Err(MysqlError::new(codes::WRONG_ARGUMENTS, "Incorrect arguments to mysqld_stmt_execute"))
        };
        let result = self.finish_statement(result, false, sink);
        self.count_statement(&prepared.text, result.is_err());
        self.process.end();
        result
    }

    pub fn close_statement(&mut self, id: u32) {
        if self.prepared.remove(&id).is_some() {
            self.process.counters.add(Counter::StatementClose, 1);
        }
    }

    /// The values stay in the context while the statement runs.
    pub(crate) async fn run_prepared(
        &mut self,
        prepared: &PreparedStatement,
        parameters: Vec<Value>,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        let collation = self.settings.collation;
        let types: Vec<DataType> = parameters.iter().map(|v| type_of(v, collation)).collect();
        self.context.parameters = parameters;
        if matches!(*prepared.statement, Statement::Query(_)) {
            self.limit_time();
        }
        let data = match &*prepared.statement {
            Statement::Query(query) => query.into.is_none(),
            other => matches!(other, Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)),
        };
        if data {
            self.check_not_expired()?;
        }
        if !data {
            self.parameter_types = types;
            let result = Box::pin(self.dispatch(&prepared.statement, sink)).await;
            self.parameter_types = Vec::new();
            self.context.parameters = Vec::new();
            return result;
        }
        let known = prepared.last.lock().as_ref().filter(|last| self.still_fits(last, &types)).map(|l| l.plan.clone());
        let source =
            Source { text: &prepared.text, statement: Some(&prepared.statement), types: &types, known: known.as_ref() };
        let result = self.run_data(source, sink).await;
        self.context.parameters = Vec::new();
        let (done, plan) = result?;
        if let Some(plan) = plan.filter(|plan| known.as_ref().is_none_or(|k| !Arc::ptr_eq(k, plan))) {
            *prepared.last.lock() = Some(LastPlan {
                plan,
                types,
                database: self.context.current_database.clone(),
                sql_mode: self.settings.sql_mode,
                collation,
            });
        }
        Ok(done)
    }

    fn still_fits(&self, last: &LastPlan, types: &[DataType]) -> bool {
        self.may_cache()
            && last.types == types
            && last.database == self.context.current_database
            && last.sql_mode == self.settings.sql_mode
            && last.collation == self.settings.collation
    }

    // The SQL statements

    pub(crate) fn prepare_named(&mut self, name: &str, from: &PrepareSource) -> Result<(), MysqlError> {
        // A statement of that name is gone even when the new one does not parse.
        self.named.remove(&name.to_lowercase());
        let text = match from {
            PrepareSource::Text(text) => text.clone(),
            PrepareSource::Variable(variable) => match self.user_variable(variable) {
                Value::Str(text) => text,
                Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Value::Null => "NULL".to_string(),
                other => format!("{other:?}"),
            },
        };
        let (prepared, _) = self.make_prepared(&text)?;
        self.named.insert(name.to_lowercase(), Arc::new(prepared));
        Ok(())
    }

    pub(crate) async fn execute_named(
        &mut self,
        name: &str,
        using: &[String],
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        let prepared = self.named.get(&name.to_lowercase()).cloned().ok_or_else(|| unknown_handler(name, "EXECUTE"))?;
        if using.len() != prepared.parameters {
            return Err(MysqlError::new(codes::WRONG_ARGUMENTS, "Incorrect arguments to EXECUTE"));
        }
        let parameters = using.iter().map(|variable| self.user_variable(variable)).collect();
        let height = prepared.statement.height;
        Roomy { height, future: Box::pin(self.run_prepared(&prepared, parameters, sink)) }.await
    }

    pub(crate) fn deallocate(&mut self, name: &str) -> Result<(), MysqlError> {
        match self.named.remove(&name.to_lowercase()) {
            Some(_) => Ok(()),
            None => Err(unknown_handler(name, "DEALLOCATE PREPARE")),
        }
    }

    pub(crate) fn user_variable(&self, name: &str) -> Value {
        self.context.user_variables.get(&name.to_lowercase()).map_or(Value::Null, |variable| variable.value.clone())
    }
}
