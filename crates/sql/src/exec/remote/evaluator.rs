//! The side of the partition: runs programs of other nodes' statements on the rows of a request.

use super::MAX_INPUT;
use super::best::Best;
use super::change::Changing;
use super::partial::Partial;
use super::program::{self, Program, Settings, Then, Warned};
use crate::bind::{own_row, partition_function};
use crate::exec::rules;
use crate::exec::scan::passes;
use crate::expr::context::{SystemVariables, Warning};
use crate::expr::{BindContext, Budget, Context, Expr, ExprKind};
use crate::logical::RowRules;
use crate::memory::Memory;
use crate::parse::statement::Scope;
use crate::physical::row::{Joined, Part, Rows};
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use rauk_node::{Evaluator, Fate, RowChange, RowProgram};
use rauk_types::error::codes;
use rauk_types::{MysqlError, Partitioning, RowView, TableId, TableSchema, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What evaluation may use beside its inputs.
const MEMORY: usize = 4 << 20;
/// Most warnings of a request, and most bytes of their texts; more are counted only.
const MAX_WARNINGS: usize = 1024;
const MAX_WARNING_BYTES: usize = 128 << 10;

/// Tables whose rules are kept.
const KEPT: usize = 64;

/// A table by its id and version, and its rules.
type KeptRules = ((TableId, u32), Option<Arc<RowRules>>);

/// Knows the expressions of SQL.
#[derive(Default)]
pub struct SqlEvaluator {
    /// Of tables whose generated columns were computed, by id and version; the last used is the last.
    rules: Mutex<Vec<KeptRules>>,
}

impl SqlEvaluator {
    fn rules_of(&self, table: &TableSchema) -> Result<Option<Arc<RowRules>>, MysqlError> {
        let wanted = (table.id, table.version);
        let known = {
            let mut kept = self.rules.lock();
            kept.iter().position(|(of, _)| *of == wanted).map(|at| {
                let found = kept.remove(at);
                kept.push(found.clone());
                found.1
            })
        };
        if let Some(rules) = known {
            return Ok(rules);
        }
        let rules = own_row::row_rules(table, &BindContext::default())?;
        let mut kept = self.rules.lock();
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((wanted, rules.clone()));
        Ok(rules)
    }
}

/// Tables whose partitioning expressions a thread keeps.
const KEPT_PARTITIONINGS: usize = 16;

/// What a thread knows of the tables whose rows it has told apart, so that no row waits for another thread.
struct Partitions {
    context: Context,
    zone: TimeZone,
    /// The last used is the last.
    known: Vec<KnownPartitions>,
}

/// The expressions of a partitioned table.
struct KnownPartitions {
    table: (TableId, u32),
    /// As long as it is held, no other table has one at its place.
    partitioning: Arc<Partitioning>,
    /// Of its partitions, and of its subpartitions.
    functions: [Option<Expr>; 2],
}

impl Partitions {
    fn new() -> Partitions {
        let mut context = Context::new(Arc::new(NoVariables));
        // As of a division by zero, what is wrong has the value NULL.
        context.strict_statement = false;
        context.budget.memory = Memory::limited(MEMORY);
        Partitions { zone: context.time_zone.clone(), context, known: Vec::new() }
    }

    /// Where the table stands among those that are known.
    fn find(&mut self, table: &TableSchema, partitioning: &Arc<Partitioning>) -> Result<usize, MysqlError> {
        let wanted = (table.id, table.version);
        let is_it = |of: &KnownPartitions| of.table == wanted && Arc::ptr_eq(&of.partitioning, partitioning);
        if let Some(at) = self.known.iter().rposition(is_it) {
            return Ok(at);
        }
        let functions = [false, true].map(|sub| partition_function::bound(table, partitioning, sub));
        let [by, sub] = functions;
        let known = KnownPartitions { table: wanted, partitioning: partitioning.clone(), functions: [by?, sub?] };
        if self.known.len() == KEPT_PARTITIONINGS {
            self.known.remove(0);
        }
        self.known.push(known);
        Ok(self.known.len() - 1)
    }

    fn value(&mut self, table: &TableSchema, sub: bool, row: &[Value]) -> Result<Option<i128>, MysqlError> {
        let partitioning = table.partitioning.as_ref().expect("a partitioned table");
        let at = self.find(table, partitioning)?;
        let function = self.known[at].functions[usize::from(sub)].as_ref().expect("it is partitioned by an expression");
        if let ExprKind::Column { column, .. } = function.kind {
            return Ok(row[column].as_ref().as_integer());
        }
        let context = &mut self.context;
        let before = context.budget.memory.used();
        let value = function.eval(&Rows { rows: [row, &[], &[]], zone: &self.zone }, context);
        context.budget.memory.back_to(before);
        if context.warning_count > 0 {
            context.warning_count = 0;
            context.warnings.clear();
        }
        Ok(match value? {
            Value::Decimal(number) => number.to_i128(),
            value => value.as_ref().as_integer(),
        })
    }
}

thread_local! {
    static PARTITIONS: RefCell<Option<Partitions>> = const { RefCell::new(None) };
}

impl Evaluator for SqlEvaluator {
    /// As in strict mode: a value that does not fit is an error of the change that led to it.
    fn compute_generated(&self, table: &Arc<TableSchema>, row: &mut [Value]) -> Result<(), MysqlError> {
        let Some(rules) = self.rules_of(table)? else { return Ok(()) };
        let mut context = Context::new(Arc::new(NoVariables));
        context.strict_statement = true;
        context.budget = Budget::default();
        context.budget.memory = Memory::limited(MEMORY);
        rules::compute(&rules, table, row, 1, false, &mut context)
    }

    fn partition_value(&self, table: &TableSchema, sub: bool, row: &[Value]) -> Result<Option<i128>, MysqlError> {
        PARTITIONS.with_borrow_mut(|known| known.get_or_insert_with(Partitions::new).value(table, sub, row))
    }

    fn prepare(&self, bytes: &[u8], table: &Arc<TableSchema>) -> Option<Box<dyn RowProgram>> {
        let (settings, program) = program::decode(bytes, table)?;
        Running::new(settings, program, table).map(|running| Box::new(running) as _)
    }

    fn prepare_change(&self, bytes: &[u8], table: &Arc<TableSchema>) -> Option<Box<dyn RowChange>> {
        let (settings, program) = program::decode(bytes, table)?;
        Changing::new(settings, program, table).map(|changing| Box::new(changing) as _)
    }
}

/// In which a program is evaluated.
pub(super) fn context_of(settings: Settings) -> Context {
    let mut context = Context::new(Arc::new(NoVariables));
    context.sql_mode = settings.sql_mode;
    context.strict_statement = settings.strict_statement;
    context.now_micros = settings.now_micros;
    context.time_zone = settings.time_zone;
    context.collation = settings.collation;
    context.max_allowed_packet = settings.max_allowed_packet;
    context.max_error_count = settings.max_error_count.min(MAX_WARNINGS);
    context.budget = Budget::default();
    context.budget.memory = Memory::limited(MEMORY);
    context
}

/// What bounded expressions do not ask for.
struct NoVariables;

impl SystemVariables for NoVariables {
    fn get(&self, _: Scope, name: &str) -> Result<Value, MysqlError> {
        Err(MysqlError::new(codes::UNKNOWN_SYSTEM_VARIABLE, format!("Unknown system variable '{name}'")))
    }
}

/// What has become of the rows that passed.
enum State {
    Send,
    Sum(Partial),
    First(Best),
}

/// A program on the rows of one request.
struct Running {
    context: Context,
    zone: TimeZone,
    conditions: Vec<Expr>,
    complete: bool,
    then: State,
    /// Columns that are read and may be longer than [`MAX_INPUT`].
    long: Vec<usize>,
    /// Rows that were sent.
    sent: u32,
    warned: Warned,
    warning_bytes: usize,
}

impl Running {
    /// `None`: it is not a program of a scan.
    fn new(settings: Settings, program: Program, table: &TableSchema) -> Option<Running> {
        let context = context_of(settings);
        let mut read = BTreeSet::new();
        let mut note = |expr: &Expr| {
            expr.for_each_column(&mut |_, column| {
                read.insert(column);
            });
        };
        program.conditions.iter().for_each(&mut note);
        match &program.then {
            Then::Send | Then::Change(_) | Then::Delete => {}
            Then::First(order) => order.keys.iter().for_each(|(key, _)| note(key)),
            Then::Sum(aggregation) => {
                let arguments = aggregation.aggregates.iter().flat_map(|aggregate| &aggregate.arguments);
                aggregation.keys.iter().chain(arguments).for_each(&mut note);
                read.extend(aggregation.carried.iter().map(|&column| usize::from(column)));
            }
        }
        let long = |column: &usize| {
            let ty = &table.columns[*column].ty;
            // A character has four bytes at most.
            (ty.is_text() || ty.is_bytes()) && ty.length as usize > MAX_INPUT / 4
        };
        let then = match program.then {
            Then::Send => State::Send,
            Then::Sum(aggregation) => State::Sum(Partial::new(aggregation)),
            Then::First(order) => State::First(Best::new(order)),
            Then::Change(_) | Then::Delete => return None,
        };
        Some(Running {
            zone: context.time_zone.clone(),
            context,
            conditions: program.conditions,
            complete: program.complete,
            then,
            long: read.into_iter().filter(long).collect(),
            sent: 0,
            warned: Warned::default(),
            warning_bytes: 0,
        })
    }

    /// Whether the row is wanted by nobody, counts in a group here, or comes after all that are wanted.
    fn is_done_with(&mut self, row: &RowView<'_>) -> Result<bool, MysqlError> {
        let root = Joined::root(&self.zone);
        let joined = root.with(0, Part::Stored(*row));
        if !passes(&self.conditions, &joined, &mut self.context)? {
            return Ok(true);
        }
        match &mut self.then {
            State::Send => Ok(false),
            State::First(best) => best.is_beyond(&joined, &mut self.context),
            State::Sum(partial) => {
                let memory = self.context.budget.memory.clone();
                partial.push(&joined, &mut self.context, &memory)
            }
        }
    }

    /// The warnings of the present row go with it, or are kept.
    fn settle(&mut self, dropped: bool) {
        let list = std::mem::take(&mut self.context.warnings);
        let count = std::mem::take(&mut self.context.warning_count);
        if !dropped {
            return;
        }
        self.warned.count += count;
        for warning in list {
            let Warning { message, .. } = &warning;
            let fits = self.warned.list.len() < self.context.max_error_count
                && self.warning_bytes + message.len() <= MAX_WARNING_BYTES;
            if fits {
                self.warning_bytes += message.len();
                self.warned.list.push((self.sent, warning));
            }
        }
    }
}

impl RowProgram for Running {
    fn visit(&mut self, row: &RowView<'_>) -> Fate {
        let is_long = |column: &usize| row.get(*column).as_bytes().is_some_and(|bytes| bytes.len() > MAX_INPUT);
        let mut done = !self.long.iter().any(is_long);
        if done {
            let before = self.context.budget.memory.used();
            done = match self.is_done_with(row) {
                // Whether the statement comes to the condition that warns, it knows itself.
                Ok(done) => done && (self.complete || self.context.warning_count == 0),
                Err(_) => {
                    self.context.budget.memory.back_to(before);
                    false
                }
            };
            if self.context.warning_count > 0 {
                self.settle(done);
            }
        }
        if done {
            return Fate::Drop;
        }
        self.sent += 1;
        Fate::Send
    }

    fn finish(self: Box<Self>) -> Vec<u8> {
        let mut out = Vec::new();
        self.warned.encode(&mut out);
        if let State::Sum(partial) = self.then {
            partial.finish(&mut out);
        }
        out
    }
}
