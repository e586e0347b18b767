//! Which statement does what, and what surrounds every statement: its time, its warnings, its completion.

use super::data::{DataKind, Source};
use super::errors;
use super::session::{LONG_TEXT, Session};
use super::status::Counter;
use super::users::Privileges;
use crate::expr::context::WarningLevel;
use crate::memory;
use crate::parse::ast::{Expr, PartitionOperation, PartitionWork, RoleStatement};
use crate::parse::handler::Handler;
use crate::parse::statement::{FlushOption, Show, ViewChange};
use crate::parse::{self, Statement};
use crate::stack::{self, Roomy};
use rauk_node::member::processes::KillOutcome;
use rauk_types::error::codes;
use rauk_types::result::{Completion, ResultSink, ServerStatus};
use rauk_types::{DataType, MysqlError, NodeId, Value};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A statement that succeeded.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub completion: Completion,
    /// It gave a result set.
    pub rows: bool,
}

impl From<Completion> for Done {
    fn from(completion: Completion) -> Self {
        Done { completion, rows: false }
    }
}

impl Done {
    pub fn rows() -> Done {
        Done { completion: Completion::default(), rows: true }
    }
}

impl Session {
    pub(crate) async fn run_text(&mut self, sql: &str, sink: &mut dyn ResultSink) -> Result<(), MysqlError> {
        if self.client.multi_statements && sql.contains(';') {
            let interrupt = &self.process.interrupt;
            let split = || parse::split(sql, self.mode(), || !interrupt.is_killed()).collect();
            let parts: Vec<&str> = if sql.len() >= LONG_TEXT { self.context.budget.beside(split) } else { split() };
            if let [first @ .., last] = parts.as_slice() {
                for part in first {
                    self.run_one(part, true, sink).await?;
                }
                return self.run_one(last, false, sink).await;
            }
        }
        self.run_one(sql, false, sink).await
    }

    async fn run_one(&mut self, sql: &str, more: bool, sink: &mut dyn ResultSink) -> Result<(), MysqlError> {
        self.start_statement();
        if self.settings.max_execution_time > 0 && parse::is_query(sql, self.mode()) {
            self.limit_time();
        }
        let result = match self.spend_query() {
            Ok(()) => self.run_statement(sql, sink).await,
            Err(error) => Err(error),
        };
        let result = self.finish_statement(result, more, sink);
        self.count_statement(sql, result.is_err());
        result
    }

    pub(crate) fn start_statement(&mut self) {
        let fixed = self.variables.fixed_timestamp.load(Ordering::Relaxed);
        let now = self.engine.now_micros();
        self.context.now_micros = if fixed != 0 { fixed } else { now };
        self.variables.statement_micros.store(now, Ordering::Relaxed);
        let locked = self.locked();
        self.run.begin(now, locked);
        self.begin_profile();
        self.context.new_last_insert_id = None;
        self.context.budget.begin(self.settings.memory_limit);
        self.context.seeded_random.clear();
        self.process.counters.add(Counter::Questions, 1);
        self.process.counters.add(Counter::Queries, 1);
    }

    /// max_execution_time counts from the beginning of a SELECT, parsing and planning included. Gives when it ends.
    pub(crate) fn limit_time(&self) -> Option<Duration> {
        let (limit, memory) = (self.settings.max_execution_time, &self.context.budget.memory);
        if limit > 0 && memory.deadline().is_none() {
            memory.set_deadline(Some(self.engine.runtime.now() + Duration::from_millis(limit)));
        }
        memory.deadline()
    }

    /// Writes the completion, or notes the error.
    pub(crate) fn finish_statement(
        &mut self,
        result: Result<Done, MysqlError>,
        more: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<(), MysqlError> {
        self.context.budget.memory.release();
        self.stage("query end");
        let done = match result {
            Ok(done) => done,
            Err(error) => return Err(self.failed(error)),
        };
        let mut completion = done.completion;
        completion.warnings = self.context.warning_count.min(u64::from(u16::MAX)) as u16;
        completion.status = ServerStatus { more_results: more, ..self.status() };
        self.context.row_count = if done.rows { -1 } else { completion.affected_rows as i64 };
        self.variables.warning_count.store(self.context.warning_count, Ordering::Relaxed);
        self.variables.error_count.store(self.errors, Ordering::Relaxed);
        self.variables.last_insert_id.store(self.context.last_insert_id, Ordering::Relaxed);
        self.variables.insert_id.store(self.context.insert_id.unwrap_or(0), Ordering::Relaxed);
        if done.rows
            && let Some(open) = &mut self.open
        {
            open.tracked.sent = true;
        }
        self.take_changes().into_iter().for_each(|change| sink.changed(change));
        sink.complete(&completion);
        Ok(())
    }

    /// An error is the last of its statement's warnings.
    pub(crate) fn failed(&mut self, error: MysqlError) -> MysqlError {
        self.push_warning(WarningLevel::Error, error.code, error.message.clone());
        self.errors += 1;
        self.context.row_count = -1;
        self.variables.warning_count.store(self.context.warning_count, Ordering::Relaxed);
        self.variables.error_count.store(self.errors, Ordering::Relaxed);
        self.process.counters.add(Counter::StatementsFailed, 1);
        error
    }

    async fn run_statement(&mut self, sql: &str, sink: &mut dyn ResultSink) -> Result<Done, MysqlError> {
        if let Some(result) = self.run_normal(sql, sink).await {
            return result;
        }
        let parsed = match self.parse(sql) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.clear_warnings();
                // A text of comments alone is a statement that does nothing, as in MySQL; an empty one is an error.
                let comment =
                    error.code == codes::EMPTY_QUERY && !sql.trim_matches([' ', ';', '\t', '\r', '\n']).is_empty();
                return if comment { Ok(Done::default()) } else { Err(error) };
            }
        };
        if parsed.parameters > 0 {
            self.clear_warnings();
            // A `?` means something in prepared statements only.
            let place = sql.find('?').map_or("", |at| &sql[at..]);
            let place: String = place.chars().take(80).collect();
            return Err(MysqlError::new(
                codes::PARSE_ERROR,
                format!(
                    "You have an error in your SQL syntax; see Rauk's SQL reference for the right syntax to use near '{place}' at line 1"
                ),
            ));
        }
        let diagnostic = matches!(
            *parsed.statement,
            Statement::Show(Show::Warnings { .. } | Show::Errors { .. }) | Statement::GetDiagnostics(_)
        );
        if !diagnostic {
            self.clear_warnings();
        }
        self.stage("init");
        let (statement, height) = (&parsed.statement, parsed.statement.height);
        // Boxed: the future of a statement whose plan is known has no room for all other statements, since it is copied at its start.
        let future = Box::pin(self.dispatch(statement, sink));
        if height <= stack::SHALLOW {
            return future.await;
        }
        Roomy { height, future }.await
    }

    /// Runs any statement.
    pub(crate) async fn dispatch(
        &mut self,
        statement: &Statement,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        if let Some(changed) = self.changed_under_locks(statement)? {
            return Box::pin(self.change_under_locks(changed, statement, sink)).await;
        }
        self.count(statement);
        self.check_expired(statement)?;
        self.may_run(statement)?;
        let _changing = self.changing(statement).await?;
        self.note_wanted(statement);
        Ok(match statement {
            Statement::Query(query) if query.into.is_some() => {
                let into = query.into.as_ref().expect("it is there");
                return Box::pin(self.select_into(query, into)).await;
            }
            Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
                let source = Source { text: "", statement: Some(statement), types: &[], known: None };
                return self.run_uncached(source, sink).await;
            }
            Statement::Load(load) => return Box::pin(self.load_data(load, sink)).await,
            Statement::Explain { analyze: true, format, statement } => {
                return Box::pin(self.explain_analyze(format.as_deref(), statement, sink)).await;
            }
            Statement::Explain { format, statement, .. } => return self.explain(format.as_deref(), statement, sink),
            Statement::Show(Show::ProcessList { full }) => return Ok(self.list_processes(*full, sink).await),
            Statement::Show(show) => {
                if matches!(show, Show::TableStatus { .. } | Show::Indexes { .. }) {
                    self.engine.database.gather_usage().await;
                }
                return self.show(show, sink);
            }
            Statement::Describe { table, column } => return self.describe(table, column.as_deref(), sink),

            Statement::Begin { read_only, consistent_snapshot } => {
                self.begin(*read_only, *consistent_snapshot).await?.into()
            }
            Statement::Commit { chain, release } => self.commit(*chain, *release).await?.into(),
            Statement::Rollback { chain, release } => self.rollback(*chain, *release).await?.into(),
            Statement::Savepoint(name) => self.savepoint(name)?.into(),
            Statement::RollbackToSavepoint(name) => self.rollback_to(name)?.into(),
            Statement::ReleaseSavepoint(name) => self.release_savepoint(name)?.into(),
            Statement::Set(items) => self.run_set(items).await?.into(),
            Statement::SetPassword(change) => return Box::pin(self.set_password(change, sink)).await,
            Statement::Use(name) => {
                self.use_database(name)?;
                Done::default()
            }

            Statement::CreateDatabase { name, if_not_exists, options } => {
                self.create_database(name, *if_not_exists, options).await?.into()
            }
            Statement::AlterDatabase { name, options } => self.alter_database(name.as_deref(), options).await?.into(),
            Statement::DropDatabase { name, if_exists } => self.drop_database(name, *if_exists).await?.into(),
            Statement::CreateTable(table) => Box::pin(self.create_table(table)).await?.into(),
            Statement::AlterTable { table, partitions: Some(PartitionOperation::Maintain { work, names }), .. }
                if *work != PartitionWork::Rebuild =>
            {
                return Box::pin(self.maintain_partitions(table, *work, names, sink)).await;
            }
            Statement::AlterTable { table, operations, partitions } => {
                Box::pin(self.alter_table(table, operations, partitions.as_ref())).await?.into()
            }
            Statement::DropTable { tables, if_exists, temporary } => {
                Box::pin(self.drop_tables(tables, *if_exists, *temporary)).await?.into()
            }
            Statement::CreateView(view) => Box::pin(self.create_view(view)).await?.into(),
            Statement::DropView { views, if_exists } => Box::pin(self.drop_views(views, *if_exists)).await?.into(),
            Statement::TruncateTable(table) => Box::pin(self.truncate_table(table)).await?.into(),
            Statement::RenameTable(pairs) => Box::pin(self.rename_tables(pairs)).await?.into(),
            Statement::CreateIndex(index) => Box::pin(self.create_index(index)).await?.into(),
            Statement::DropIndex { name, table, if_exists, demands } => {
                Box::pin(self.drop_index(table, name, *if_exists, demands)).await?.into()
            }

            Statement::CreateUser { users, options, if_not_exists } => {
                return Box::pin(self.create_users(users, options, *if_not_exists, sink)).await;
            }
            Statement::AlterUser { users, options, if_exists } => {
                return Box::pin(self.alter_users(users, options, *if_exists, sink)).await;
            }
            Statement::RenameUser(pairs) => Box::pin(self.rename_users(pairs)).await?.into(),
            Statement::Role(role) => {
                Box::pin(self.run_role_statement(role)).await?;
                Done::default()
            }
            Statement::DropUser { users, if_exists } => self.drop_users(users, *if_exists).await?.into(),
            Statement::Grant { privileges, database, table, users, grant_option } => {
                let level = (database.as_deref(), table.as_deref());
                Box::pin(self.grant(privileges, level, users, *grant_option)).await?.into()
            }
            Statement::Revoke { privileges, database, table, users, forgiving } => {
                let level = (database.as_deref(), table.as_deref());
                Box::pin(self.revoke(privileges, level, users, *forgiving)).await?.into()
            }

            Statement::Kill { query_only, id } => {
                self.kill(*query_only, id).await?;
                Done::default()
            }
            Statement::Prepare { name, from } => {
                self.prepare_named(name, from)?;
                self.track_state();
                Done::default()
            }
            Statement::Execute { name, using } => return self.execute_named(name, using, sink).await,
            Statement::Deallocate(name) => {
                self.deallocate(name)?;
                self.track_state();
                Done::default()
            }
            Statement::Do(expressions) => {
                for expression in expressions {
                    self.value_with_queries(expression).await?;
                }
                Done::default()
            }
            Statement::LockTables(tables) => {
                Box::pin(self.lock_tables(tables)).await?;
                Done::default()
            }
            Statement::UnlockTables => {
                self.unlock_tables().await?;
                Done::default()
            }
            Statement::LockInstance => {
                Box::pin(self.lock_instance()).await?;
                Done::default()
            }
            Statement::UnlockInstance => {
                self.unlock_instance()?;
                Done::default()
            }
            Statement::FlushTables { tables, read_lock } => {
                Box::pin(self.flush_tables(tables, *read_lock)).await?;
                Done::default()
            }
            Statement::ChecksumTable { tables, quick } => {
                return Box::pin(self.checksum_tables(tables, *quick, sink)).await;
            }
            Statement::TableMaintenance { tables, histograms: Some(change), .. } => {
                return self.change_histograms(tables, change, sink).await;
            }
            Statement::TableMaintenance { verb, tables, .. } => {
                return Box::pin(self.maintain(verb, tables, sink)).await;
            }
            Statement::ResetPersist { variable, if_exists } => {
                self.reset_persist(variable.as_deref(), *if_exists).await?;
                Done::default()
            }
            Statement::Flush(what) => {
                self.flush(what).await?;
                Done::default()
            }
            Statement::Handler(handler) => return Box::pin(self.run_handler(handler, sink)).await,
            Statement::GetDiagnostics(of) => {
                self.get_diagnostics(of)?;
                Done::default()
            }
            Statement::Signal(signal) => {
                self.signal(signal)?;
                Done::default()
            }
            Statement::ForgetNode(node) => {
                self.forget_node(*node).await?;
                Done::default()
            }
            Statement::AcceptLoss => {
                self.accept_loss().await?;
                Done::default()
            }
            Statement::Unsupported(what) => return Err(errors::not_supported(what)),
        })
    }

    fn count(&mut self, statement: &Statement) {
        let counter = match statement {
            // Counted where they run.
            Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Load(_) => {
                self.run.kind = Some(DataKind::of(statement).counter());
                return;
            }
            Statement::Explain { .. } | Statement::Describe { .. } => Counter::Explain,
            Statement::Begin { .. } => Counter::Begin,
            Statement::Commit { .. } => Counter::Commit,
            Statement::Rollback { .. } => Counter::Rollback,
            Statement::Savepoint(_) => Counter::Savepoint,
            Statement::RollbackToSavepoint(_) => Counter::RollbackToSavepoint,
            Statement::ReleaseSavepoint(_) => Counter::ReleaseSavepoint,
            Statement::Set(_) => Counter::SetOption,
            Statement::SetPassword(_) => Counter::SetPassword,
            Statement::Use(_) => Counter::ChangeDatabase,
            Statement::CreateDatabase { .. } => Counter::CreateDatabase,
            Statement::AlterDatabase { .. } => Counter::AlterDatabase,
            Statement::DropDatabase { .. } => Counter::DropDatabase,
            Statement::CreateTable(_) => Counter::CreateTable,
            Statement::AlterTable { .. } => Counter::AlterTable,
            Statement::DropTable { .. } => Counter::DropTable,
            Statement::CreateView(view) if view.change == ViewChange::Alter => Counter::AlterView,
            Statement::CreateView(_) => Counter::CreateView,
            Statement::DropView { .. } => Counter::DropView,
            Statement::TruncateTable(_) => Counter::Truncate,
            Statement::RenameTable(_) => Counter::RenameTable,
            Statement::CreateIndex(_) => Counter::CreateIndex,
            Statement::DropIndex { .. } => Counter::DropIndex,
            Statement::CreateUser { .. } => Counter::CreateUser,
            Statement::AlterUser { .. } => Counter::AlterUser,
            Statement::DropUser { .. } => Counter::DropUser,
            Statement::RenameUser(_) => Counter::RenameUser,
            Statement::Role(role) => match **role {
                RoleStatement::Create { .. } => Counter::CreateRole,
                RoleStatement::Drop { .. } => Counter::DropRole,
                RoleStatement::Grant { .. } => Counter::GrantRoles,
                RoleStatement::Revoke { .. } => Counter::RevokeRoles,
                RoleStatement::Set(_) => Counter::SetRole,
                RoleStatement::SetDefault { .. } => Counter::AlterUserDefaultRole,
            },
            Statement::Grant { .. } => Counter::Grant,
            Statement::Revoke { .. } => Counter::Revoke,
            Statement::Show(_) => Counter::Show,
            Statement::Kill { .. } => Counter::Kill,
            Statement::Prepare { .. } => Counter::PrepareSql,
            Statement::Execute { .. } => Counter::ExecuteSql,
            Statement::Deallocate(_) => Counter::Deallocate,
            Statement::Do(_) => Counter::Do,
            Statement::LockTables(_) => Counter::LockTables,
            Statement::UnlockTables => Counter::UnlockTables,
            Statement::LockInstance => Counter::LockInstance,
            Statement::UnlockInstance => Counter::UnlockInstance,
            Statement::TableMaintenance { .. } => Counter::Maintenance,
            Statement::ChecksumTable { .. } => Counter::Checksum,
            Statement::Flush(_) | Statement::FlushTables { .. } => Counter::Flush,
            Statement::Handler(handler) => match **handler {
                Handler::Open { .. } => Counter::HandlerOpen,
                Handler::Read { .. } => Counter::HandlerRead,
                Handler::Close(_) => Counter::HandlerClose,
            },
            Statement::GetDiagnostics(_) | Statement::Signal(_) | Statement::ResetPersist { .. } => return,
            Statement::ForgetNode(_) | Statement::AcceptLoss | Statement::Unsupported(_) => return,
        };
        self.process.counters.add(counter, 1);
        self.run.kind = Some(counter);
    }

    /// The value of an expression without columns.
    pub(crate) fn evaluate(&mut self, expression: &Expr) -> Result<(Value, DataType), MysqlError> {
        let bind_context = self.bind_context(self.parameter_types.clone());
        super::ddl::columns::evaluate(expression, &bind_context, &mut self.context)
    }

    /// KILL of a session of any node; a number below 2³² is one of this node.
    async fn kill(&mut self, query_only: bool, id: &Expr) -> Result<(), MysqlError> {
        let (value, _) = self.evaluate(id)?;
        let id = value.as_ref().as_integer().unwrap_or(0);
        let unknown = || MysqlError::new(codes::NO_SUCH_THREAD, format!("Unknown thread id: {id}"));
        let number = u64::try_from(id).map_err(|_| unknown())?;
        let all = self.account.global.intersects(Privileges::SUPER.with(Privileges::CONNECTION_ADMIN));
        let user = (!all).then(|| self.process.user.clone());
        let here = number as u32;
        let is_here = number >> 32 == 0 || self.engine.database.cluster_session_id(here) == number;
        let outcome = match is_here {
            true => self.engine.processes.kill(here, query_only, user.as_deref()),
            false => self.engine.database.kill_elsewhere(number, query_only, user.as_deref()).await?,
        };
        match outcome {
            KillOutcome::Done if is_here && here == self.process.id => Err(memory::interrupted()),
            KillOutcome::Done => Ok(()),
            KillOutcome::Unknown => Err(unknown()),
            KillOutcome::Denied => {
                Err(MysqlError::new(codes::KILL_DENIED, format!("You are not owner of thread {id}")))
            }
        }
    }

    async fn flush(&mut self, options: &[FlushOption]) -> Result<(), MysqlError> {
        for option in options {
            let (needed, names) = match option {
                FlushOption::Status => (Privileges::FLUSH_STATUS, "RELOAD or FLUSH_STATUS"),
                FlushOption::Privileges => (Privileges::FLUSH_PRIVILEGES, "RELOAD or FLUSH_PRIVILEGES"),
                FlushOption::UserResources => (Privileges::FLUSH_USER_RESOURCES, "RELOAD or FLUSH_USER_RESOURCES"),
                FlushOption::Nothing => (Privileges::RELOAD, "RELOAD"),
            };
            self.require_any(Privileges::RELOAD.with(needed), names)?;
        }
        self.commit_implicitly().await?;
        for option in options {
            match option {
                FlushOption::Status => self.process.counters.clear(),
                FlushOption::Privileges => self.engine.logins.forget_failures(),
                FlushOption::UserResources => self.engine.logins.forget_usage(),
                FlushOption::Nothing => {}
            }
        }
        Ok(())
    }

    async fn forget_node(&mut self, node: u64) -> Result<(), MysqlError> {
        self.require_any(Privileges::SUPER, "SUPER")?;
        self.commit_implicitly().await?;
        // A number beyond all that there are is that of no node.
        let node = NodeId(u16::try_from(node).unwrap_or(u16::MAX));
        Ok(self.engine.database.forget_node(node).await?)
    }

    async fn accept_loss(&mut self) -> Result<(), MysqlError> {
        self.require_any(Privileges::SUPER, "SUPER")?;
        self.commit_implicitly().await?;
        Ok(self.engine.database.accept_loss().await?)
    }
}

#[cfg(test)]
impl Session {
    /// Bytes of the future that runs a text.
    pub(crate) fn text_future_bytes(&mut self, sink: &mut dyn ResultSink) -> usize {
        size_of_val(&self.run_text("", sink))
    }
}
