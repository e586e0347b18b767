//! SELECT, INSERT, REPLACE, UPDATE, DELETE: from text to answer.
//!
//! A text goes to the plan cache in its normal form, without being parsed; only a miss parses and plans. A plan runs as one statement of the open
//! transaction, or as a transaction of its own (autocommit). A statement is atomic: on an error what it wrote is undone, and a deadlock
//! undoes the transaction. A plan that meets a newer definition than it was made for is made again and run again, unseen by the client.

use super::errors;
use super::lookup::denied;
use super::plan_cache::{CachedPlan, Key};
use super::run::Done;
use super::session::Session;
use super::status::Counter;
use super::transactions::{OpenTransaction, ends_transaction, is_stale};
use super::users::Privileges;
use crate::exec;
use crate::expr::convert::without;
use crate::logical::StatementHints;
use crate::measure::Measures;
use crate::memory::out_of_time;
use crate::parse::ast::{Expr, Limit, LoadTarget, QueryBody};
use crate::parse::{self, Statement};
use crate::physical::facts::Facts;
use crate::physical::{self, Plan};
use crate::stack;
use rauk_types::error::codes;
use rauk_types::result::{Completion, FlushFuture, ResultColumn, ResultSink};
use rauk_types::{Collation, DataType, MysqlError, TypeKind, Value, ValueRef};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// How often a statement is planned again because definitions changed under it.
/// Runs of a plan from the cache, after which it asks whether its tables have changed much.
const RUNS_BETWEEN_LOOKS: u32 = 256;
pub(super) const MAX_REPLANS: usize = 8;
/// Times that a statement which met a partition without a primary is done again.
const MAX_REPEATS: usize = 10;

/// ER_TOO_BIG_SELECT.
const TOO_BIG_SELECT: u16 = 1104;

/// A statement whose tree takes so many bytes takes milliseconds to plan.
const LONG_TREE: usize = 16 << 20;

/// Longer texts are not cached: the bulk INSERTs of a dump, each of which comes once.
const MAX_CACHED_TEXT: usize = 16 * 1024;

/// Whether a text may read a user variable, whose type belongs to the plan. Yes too often does no harm.
fn reads_user_variable(text: &str) -> bool {
    let bytes = text.as_bytes();
    let at = |i: usize| bytes.get(i) == Some(&b'@');
    text.bytes().enumerate().any(|(i, b)| b == b'@' && !at(i + 1) && !(i > 0 && at(i - 1)))
}

/// Takes rows that nobody wants.
struct Nowhere;

impl ResultSink for Nowhere {
    fn columns(&mut self, _: &[ResultColumn]) {}

    fn row(&mut self, _: &[ValueRef<'_>]) {}

    fn withdraw(&mut self) -> bool {
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

/// Which of the statements a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    Select,
    Insert,
    Replace,
    Load,
    Update,
    Delete,
}

impl DataKind {
    pub(crate) fn of(statement: &Statement) -> DataKind {
        match statement {
            Statement::Insert(insert) if insert.replace => DataKind::Replace,
            Statement::Insert(_) => DataKind::Insert,
            Statement::Load(_) => DataKind::Load,
            Statement::Update(_) => DataKind::Update,
            Statement::Delete(_) => DataKind::Delete,
            _ => DataKind::Select,
        }
    }

    pub(crate) fn counter(self) -> Counter {
        match self {
            DataKind::Select => Counter::Select,
            DataKind::Insert => Counter::Insert,
            DataKind::Replace => Counter::Replace,
            DataKind::Load => Counter::Load,
            DataKind::Update => Counter::Update,
            DataKind::Delete => Counter::Delete,
        }
    }
}

/// A statement to run: by its text in the form in which plans are cached, with the tree at hand or made when it is needed.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub text: &'a str,
    pub statement: Option<&'a Statement>,
    /// Types of `context.parameters`.
    pub types: &'a [DataType],
    /// A plan that served this source before: tried first.
    pub known: Option<&'a Arc<CachedPlan>>,
}

impl Session {
    fn key<'a>(&'a self, source: &Source<'a>) -> Key<'a> {
        Key {
            text: source.text,
            parameters: source.types,
            database: self.context.current_database.as_deref(),
            sql_mode: self.settings.sql_mode,
            switches: self.settings.switches,
            collation: self.settings.collation,
        }
    }

    /// Whether plans may come from and go to the cache: not while sql_select_limit rewrites SELECTs.
    pub(crate) fn may_cache(&self) -> bool {
        self.settings.select_limit == u64::MAX && !self.password_expired && self.locked.is_none()
    }

    /// Runs a text through the plan cache, without parsing it when its plan is there. `None`: it has to be parsed as it stands, because it is
    /// another statement, or because its normal form cannot be planned (the error should speak of the text that the client sent).
    pub(crate) async fn run_normal(
        &mut self,
        sql: &str,
        sink: &mut dyn ResultSink,
    ) -> Option<Result<Done, MysqlError>> {
        if sql.len() > MAX_CACHED_TEXT || !self.may_cache() {
            return None;
        }
        let mut normal = std::mem::take(&mut self.normal);
        let mut result = None;
        if parse::normalize(sql, self.mode(), &mut normal) {
            for (ty, value) in normal.types.iter_mut().zip(&mut normal.parameters).filter(|(ty, _)| ty.is_text()) {
                match self.settings.collation {
                    // As a literal is then.
                    Collation::Binary => {
                        let Value::Str(text) = std::mem::replace(value, Value::Null) else { continue };
                        *ty = DataType { length: ty.length, ..DataType::new(TypeKind::VarBinary) };
                        *value = Value::Bytes(text.into_bytes());
                    }
                    collation => {
                        ty.collation = collation;
                        if let Value::Str(text) = value {
                            keep_known(text, collation);
                        }
                    }
                }
            }
            self.clear_warnings();
            std::mem::swap(&mut self.context.parameters, &mut normal.parameters);
            let source = Source { text: &normal.text, statement: None, types: &normal.types, known: None };
            if let Ok(Some(plan)) = self.plan_of_normal(&source) {
                let source = Source { known: Some(&plan), ..source };
                result = Some(self.run_data(source, sink).await.map(|(done, _)| done));
            }
            std::mem::swap(&mut self.context.parameters, &mut normal.parameters);
            self.context.parameters.clear();
        }
        self.normal = normal;
        result
    }

    /// The plan of a normal form; `None`: a statement that is run without one, or is planned with its literals.
    fn plan_of_normal(&mut self, source: &Source<'_>) -> Result<Option<Arc<CachedPlan>>, MysqlError> {
        if let Some(plan) = self.cached_plan(source) {
            return Ok(Some(plan).filter(|plan| !plan.plan.by_values));
        }
        let statement = self.parse_one(source.text)?;
        let source = Source { statement: Some(&statement), ..*source };
        stack::with_room(statement.height, || Ok(Some(self.make_plan(&source)?.0).filter(|plan| !plan.plan.by_values)))
    }

    /// A plan of the cache; one that is outdated leaves it.
    fn cached_plan(&mut self, source: &Source<'_>) -> Option<Arc<CachedPlan>> {
        let plan = self.engine.plans.get(&self.key(source))?;
        if self.is_shadowed(&plan) {
            return None;
        }
        if plan.is_outdated(&self.engine.database) {
            self.engine.plans.remove(&self.key(source));
            return None;
        }
        self.process.counters.add(Counter::PlanCacheHits, 1);
        Some(plan)
    }

    /// Runs a statement, and gives the plan that served it when it may be used again.
    pub(crate) async fn run_data(
        &mut self,
        source: Source<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<(Done, Option<Arc<CachedPlan>>), MysqlError> {
        let mut known = source.known.cloned();
        let alone = self.is_alone();
        for attempt in 0.. {
            let (plan, reusable) = match known.take() {
                Some(plan) if self.is_usable(&plan) && !self.needs_columns(&plan) => {
                    self.check_needs(&plan)?;
                    (plan, true)
                }
                _ => self.find_plan(&source)?,
            };
            self.process.counters.add(plan.kind.counter(), u64::from(attempt == 0));
            self.look_at_tables(&plan);
            self.stage("executing");
            match self.run_plan(&plan, sink).await {
                // Another node may say so when rows have been given already.
                Err(error) if is_stale(&error) && attempt < MAX_REPLANS && sink.withdraw() => {
                    self.engine.plans.remove(&self.key(&source));
                }
                Err(error) if alone && attempt < MAX_REPEATS && self.may_repeat(&error) && sink.withdraw() => {}
                Err(error) => {
                    self.count_plan(&plan, None);
                    return Err(error);
                }
                Ok(completion) => {
                    self.count_plan(&plan, Some(&completion));
                    let rows = !plan.plan.columns.is_empty();
                    return Ok((Done { completion, rows }, reusable.then_some(plan)));
                }
            }
        }
        unreachable!("the loop returns")
    }

    /// Whether a plan still means what its statement means, as far as is known before it runs, and the plan cache was not emptied since it was made.
    fn is_usable(&self, plan: &CachedPlan) -> bool {
        !plan.is_outdated(&self.engine.database)
            && plan.generation == self.engine.plans.generation()
            && !self.is_shadowed(plan)
            && !self.has_lost(plan)
    }

    /// Every so many runs of a plan: asks for new statistics of its tables where they have changed much.
    fn look_at_tables(&self, plan: &CachedPlan) {
        if plan.uses.fetch_add(1, Ordering::Relaxed) % RUNS_BETWEEN_LOOKS == RUNS_BETWEEN_LOOKS - 1 {
            plan.plan.tables.iter().for_each(|(table, _)| _ = self.engine.statistics_for_plan(table));
        }
    }

    /// Whether the next statement is a transaction of its own. To be asked before it runs: a refusal ends the transaction that it is in, and then there is none open either.
    fn is_alone(&self) -> bool {
        self.open.is_none() && self.settings.autocommit
    }

    /// In a cluster a statement that is a transaction of its own may meet a partition that changes its primary: it has been rolled back (1213), and is done again unless rows have been sent to the client.
    fn may_repeat(&self, error: &MysqlError) -> bool {
        error.code == codes::LOCK_DEADLOCK && self.engine.database.member().is_some()
    }

    /// A plan from the cache, or a new one; `true`: it may be used again.
    fn find_plan(&mut self, source: &Source<'_>) -> Result<(Arc<CachedPlan>, bool), MysqlError> {
        if self.may_cache()
            && let Some(plan) = self.cached_plan(source)
            && !self.needs_columns(&plan)
        {
            self.check_needs(&plan)?;
            return Ok((plan, true));
        }
        self.make_plan(source)
    }

    fn make_plan(&mut self, source: &Source<'_>) -> Result<(Arc<CachedPlan>, bool), MysqlError> {
        self.process.counters.add(Counter::PlanCacheMisses, 1);
        let parsed = match source.statement {
            Some(_) => None,
            None => Some(self.parse_one(source.text)?),
        };
        let statement = source.statement.or(parsed.as_deref()).expect("it is at hand or was parsed");
        let height = parsed.as_ref().map_or(0, |tree| tree.height);
        let (plan, own) = stack::with_room(height, || self.plan(statement, source.types.to_vec()))?;
        if !source.text.is_empty() {
            let _ = plan.digest.set(self.find_digest(source.text));
        }
        let by_global = plan.plan.hints.as_ref().is_some_and(|hints| hints.by_global);
        let reusable = self.may_cache()
            && !own
            && !by_global
            && source.text.len() <= MAX_CACHED_TEXT
            && !reads_user_variable(source.text);
        if reusable && !plan.temporary {
            self.engine.plans.insert(&self.key(source), plan.clone());
        }
        Ok((plan, reusable))
    }

    /// Binds a statement; `true`: the plan is this session's own, since it reads what only this session may see.
    pub(crate) fn plan(
        &self,
        statement: &Statement,
        types: Vec<DataType>,
    ) -> Result<(Arc<CachedPlan>, bool), MysqlError> {
        let limited = self.with_select_limit(statement);
        let statement = limited.as_ref().unwrap_or(statement);
        let catalog = self.engine.database.catalog_version();
        let generation = self.engine.plans.generation();
        let lookup = self.lookup();
        let mut context = self.bind_context(types);
        if let Statement::Load(load) = statement {
            // The variables that take fields are texts, whatever they are now.
            let ty = DataType { collation: self.settings.collation, ..DataType::new(TypeKind::LongText) };
            for target in &load.targets {
                if let LoadTarget::Variable(name) = target {
                    context.user_variables.insert(name.to_lowercase(), ty);
                }
            }
        }
        let plan = || physical::plan(statement, &lookup, &context);
        // What the parser has counted says how long planning takes.
        let budget = &self.context.budget;
        let plan = if budget.memory.used() >= LONG_TREE { budget.beside(plan) } else { plan() }?;
        let used = lookup.finish(catalog);
        let kind = DataKind::of(statement);
        let uses = AtomicU32::new(0);
        let (needs, catalog, temporary) = (used.needs, used.catalog, used.temporary);
        let (facts, digest) = (Facts::of(&plan), OnceLock::new());
        let plan = CachedPlan { plan, needs, kind, catalog, temporary, generation, uses, facts, digest };
        Ok((Arc::new(plan), used.virtual_table))
    }

    /// The logical tree of a statement, as it would be planned.
    pub(crate) fn tree(&self, statement: &Statement, types: Vec<DataType>) -> Result<String, MysqlError> {
        let limited = self.with_select_limit(statement);
        let statement = limited.as_ref().unwrap_or(statement);
        let lookup = self.lookup();
        physical::tree(statement, &lookup, &self.bind_context(types))
    }

    /// sql_select_limit: a LIMIT for a SELECT that has none.
    fn with_select_limit(&self, statement: &Statement) -> Option<Statement> {
        let Statement::Query(query) = statement else { return None };
        let limited = query.limit.is_some() || !matches!(query.body, QueryBody::Select(_));
        if limited || self.settings.select_limit == u64::MAX {
            return None;
        }
        let mut query = query.clone();
        query.limit = Some(Limit { count: Expr::number(self.settings.select_limit.to_string()), offset: None });
        Some(Statement::Query(query))
    }

    /// Whether a plan reads or writes a table of which the session may do so with some columns only: it is to be made
    /// again, since the plan does not say which columns it needs.
    fn needs_columns(&self, plan: &CachedPlan) -> bool {
        plan.needs.privileges.iter().any(|need| {
            if self.account.global_on(&need.database).contains(need.privileges) {
                return false;
            }
            let missing = need.privileges.without(self.account.on_table(&need.database, &need.name));
            // Of a table that may be changed and not read, the error names the column.
            let names_column = missing == Privileges::SELECT && missing != need.privileges;
            !missing.is_empty() && (names_column || self.account.on_columns(&need.database, &need.name).is_some())
        })
    }

    /// A plan out of the cache was made for another user perhaps.
    fn check_needs(&self, plan: &CachedPlan) -> Result<(), MysqlError> {
        for (database, table) in &plan.needs.row_locks {
            self.require_row_locks(database, table)?;
        }
        for need in &plan.needs.privileges {
            if self.account.global_on(&need.database).contains(need.privileges) {
                continue;
            }
            for (privilege, command) in [
                (Privileges::SELECT, "SELECT"),
                (Privileges::INSERT, "INSERT"),
                (Privileges::UPDATE, "UPDATE"),
                (Privileges::DELETE, "DELETE"),
            ] {
                if need.privileges.contains(privilege) {
                    let granted = self.require_table(command, &need.database, &need.name, privilege);
                    granted.map_err(|error| denied(need, error))?;
                }
            }
        }
        Ok(())
    }

    /// sql_safe_updates: error 1175 for an UPDATE or DELETE that would look at every row and has no LIMIT.
    fn check_safe_update(&self, plan: &CachedPlan) -> Result<(), MysqlError> {
        if !self.settings.safe_updates || !plan.plan.changes_without_key() {
            return Ok(());
        }
        Err(MysqlError::new(
            1175,
            "You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column.",
        ))
    }

    /// max_join_size: error 1104 for a query one of whose blocks would look at more rows, or combinations of rows.
    fn check_join_size(&mut self, plan: &CachedPlan) -> Result<(), MysqlError> {
        if plan.plan.most_rows(&mut self.context)? <= self.settings.max_join_size as f64 {
            return Ok(());
        }
        Err(MysqlError::new(
            TOO_BIG_SELECT,
            "The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE and use SET SQL_BIG_SELECTS=1 or SET MAX_JOIN_SIZE=# if the SELECT is okay",
        ))
    }

    /// Runs a plan as one statement.
    pub(super) async fn run_plan(
        &mut self,
        plan: &CachedPlan,
        sink: &mut dyn ResultSink,
    ) -> Result<Completion, MysqlError> {
        match &plan.plan.hints {
            None => self.run_plain(plan, sink).await,
            Some(hints) => Box::pin(self.run_hinted(hints, plan, sink)).await,
        }
    }

    /// Runs a plan with the variables of its hints, which have their values back afterwards.
    async fn run_hinted(
        &mut self,
        hints: &StatementHints,
        plan: &CachedPlan,
        sink: &mut dyn ResultSink,
    ) -> Result<Completion, MysqlError> {
        let before = self.take_hints(hints);
        let result = self.run_plain(plan, sink).await;
        self.give_back(before);
        result
    }

    async fn run_plain(&mut self, plan: &CachedPlan, sink: &mut dyn ResultSink) -> Result<Completion, MysqlError> {
        self.check_safe_update(plan)?;
        let changes = plan.kind != DataKind::Select;
        let stored = changes && !plan.plan.changes_only_temporary();
        if stored {
            self.may_change()?;
            self.check_read_lock()?;
            self.spend_update()?;
        }
        if !self.settings.big_selects {
            self.check_join_size(plan)?;
        }
        let own = self.open.is_none();
        let autocommit = own && self.settings.autocommit;
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                let next = self.next;
                let open = self.new_transaction(autocommit, None);
                if plan.plan.tables.is_empty() {
                    // What SET TRANSACTION said is for the next statement that uses a table.
                    self.next = next;
                }
                open
            }
        };
        if stored && open.read_only {
            self.open = (!own).then_some(open);
            return Err(MysqlError::new(
                codes::READ_ONLY_TRANSACTION,
                "Cannot execute statement in a READ ONLY transaction.",
            ));
        }
        let (read, wrote) = plan.plan.uses();
        open.tracked.read |= read;
        open.tracked.wrote |= wrote;
        self.note_tables(plan, autocommit);
        self.context.new_last_insert_id = None;
        open.transaction.set_lock_wait_timeout(self.settings.lock_wait_timeout);
        open.transaction.set_foreign_key_checks(self.settings.foreign_key_checks);
        open.transaction.begin_statement();
        // Rows of RETURNING wait until they are written for good.
        let mut held = (changes && !plan.plan.columns.is_empty())
            .then(|| Box::new(exec::Held::new(self.context.budget.memory.clone())));
        let limited = plan.kind == DataKind::Select && self.settings.max_execution_time > 0;
        let read_before = open.transaction.rows_read();
        let at_once = match limited {
            true => None,
            false => exec::read_point(&plan.plan, &mut open.transaction, &mut self.context, sink),
        };
        let mut result = match (&mut held, at_once) {
            (_, Some(result)) => result,
            (Some(held), None) => {
                let result = exec::execute(&plan.plan, &mut open.transaction, &mut self.context, &mut **held).await;
                result.and_then(|completion| held.check().map(|()| completion))
            }
            (None, None) if limited => Box::pin(self.execute_limited(&plan.plan, &mut open, sink)).await,
            (None, None) => exec::execute(&plan.plan, &mut open.transaction, &mut self.context, sink).await,
        };
        self.run.examined += open.transaction.rows_read() - read_before;
        result = result.map(|completion| self.with_insert_id(completion, plan.kind));
        match result {
            Ok(completion) if autocommit => {
                open.transaction.commit().await?;
                if let Some(held) = held {
                    held.send(&plan.plan.columns, sink).await?;
                }
                Ok(completion)
            }
            Ok(completion) => {
                let observed = open.transaction.wait_observed().await;
                // With autocommit off, a transaction begins with the first statement that uses a table.
                if !own || !plan.plan.tables.is_empty() {
                    self.open = Some(open);
                }
                observed?;
                if let Some(held) = held {
                    held.send(&plan.plan.columns, sink).await?;
                }
                Ok(completion)
            }
            Err(error) => {
                if autocommit || ends_transaction(&error) {
                    let observed = open.transaction.wait_observed().await;
                    open.transaction.rollback();
                    observed?;
                } else {
                    open.transaction.rollback_statement();
                    let observed = open.transaction.wait_observed().await;
                    if !own || (!is_stale(&error) && !plan.plan.tables.is_empty()) {
                        self.open = Some(open);
                    }
                    observed?;
                }
                match error.code {
                    codes::LOCK_DEADLOCK => self.process.counters.add(Counter::Deadlocks, 1),
                    codes::LOCK_WAIT_TIMEOUT => self.process.counters.add(Counter::LockTimeouts, 1),
                    _ => {}
                }
                Err(error)
            }
        }
    }

    /// LAST_INSERT_ID() and the completion's number; and matched instead of changed rows for a client that asked for those.
    fn with_insert_id(&mut self, mut completion: Completion, kind: DataKind) -> Completion {
        if let Some(id) = self.context.new_last_insert_id.take() {
            self.context.last_insert_id = id;
            if completion.last_insert_id == 0 {
                completion.last_insert_id = id;
            }
        }
        if self.client.found_rows && kind == DataKind::Update {
            completion.affected_rows = self.context.matched_rows;
        }
        completion
    }

    /// Executes a SELECT, and ends it when max_execution_time has passed (3024).
    async fn execute_limited(
        &mut self,
        plan: &Plan,
        open: &mut OpenTransaction,
        sink: &mut dyn ResultSink,
    ) -> Result<Completion, MysqlError> {
        let end = self.limit_time().expect("it is limited");
        // The timer ends waits, the deadline evaluation, which does not wait.
        let timer = self.engine.runtime.sleep(end.saturating_sub(self.engine.runtime.now()));
        let execution = Box::pin(exec::execute(plan, &mut open.transaction, &mut self.context, sink));
        match futures::future::select(execution, timer).await {
            futures::future::Either::Left((result, _)) => result,
            futures::future::Either::Right(((), execution)) => {
                self.process.interrupt.kill();
                let result = execution.await;
                self.process.interrupt.clear();
                result.map_err(|error| match error.code {
                    codes::QUERY_INTERRUPTED => out_of_time(),
                    _ => error,
                })
            }
        }
    }

    /// An INSERT that the session itself makes (CREATE TABLE … AS SELECT): in a transaction of its own.
    /// Of a temporary table, in the one that is open, if any.
    pub(crate) async fn run_insert(
        &mut self,
        statement: &Statement,
        temporary: bool,
    ) -> Result<Completion, MysqlError> {
        let mut nowhere = super::collect::Collector::default();
        let autocommit = self.settings.autocommit;
        self.settings.autocommit = autocommit || !temporary;
        let source = Source { text: "", statement: Some(statement), types: &[], known: None };
        let result = self.run_uncached(source, &mut nowhere).await;
        self.settings.autocommit = autocommit;
        Ok(result?.completion)
    }

    /// Runs a statement, counting what its operators do, and gives the text of EXPLAIN ANALYZE. Its rows go nowhere; what it changes is changed.
    pub(crate) async fn run_measured(&mut self, statement: &Statement) -> Result<String, MysqlError> {
        let alone = self.is_alone();
        for attempt in 0.. {
            let (plan, _) = self.plan(statement, self.parameter_types.clone())?;
            if !plan.plan.is_measured() {
                return Err(super::show::not_measured());
            }
            self.context.measures = Some(Box::new(Measures::new(self.engine.runtime.clone())));
            let result = self.run_plan(&plan, &mut Nowhere).await;
            let measures = self.context.measures.take().expect("a plan that runs leaves them");
            match result {
                Err(error) if is_stale(&error) && attempt < MAX_REPLANS => {}
                Err(error) if alone && attempt < MAX_REPEATS && self.may_repeat(&error) => {}
                Err(error) => return Err(error),
                Ok(_) => return plan.plan.explain_measured(&measures, &mut self.context),
            }
        }
        unreachable!("the loop returns")
    }

    /// Runs a statement with a plan made for this once.
    pub(crate) async fn run_uncached(
        &mut self,
        source: Source<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        let statement = source.statement.ok_or_else(|| errors::not_supported("an empty statement"))?;
        let alone = self.is_alone();
        for attempt in 0.. {
            let (plan, _) = self.plan(statement, source.types.to_vec())?;
            self.process.counters.add(plan.kind.counter(), u64::from(attempt == 0));
            self.run.kind = Some(plan.kind.counter());
            self.run.facts = plan.facts;
            match self.run_plan(&plan, sink).await {
                Err(error) if is_stale(&error) && attempt < MAX_REPLANS && sink.withdraw() => {}
                Err(error) if alone && attempt < MAX_REPEATS && self.may_repeat(&error) && sink.withdraw() => {}
                Err(error) => return Err(error),
                Ok(completion) => return Ok(Done { completion, rows: !plan.plan.columns.is_empty() }),
            }
        }
        unreachable!("the loop returns")
    }
}

/// Makes `?` of what the connection's character set lacks of a text that came in the client's.
pub(super) fn keep_known(text: &mut String, collation: Collation) {
    if collation.charset().lacks(text).is_some() {
        *text = without(std::mem::take(text).into(), collation.charset()).into_owned();
    }
}
