//! UPDATE and DELETE of the rows that a block gives: of several tables, or of rows that correlated subqueries choose.
//!
//! ```text
//! read    the block runs to its end: of each target the rows to be changed, each once, with what their assignments read besides
//! lock    the newest version of each of them, where reading has not locked them: many in one call
//! change  target by target, in the order in which they were found; in a cluster many together
//! ```
//! So a statement does not see what it writes, whatever it joins. What a join gives several times is changed once, by what the first
//! joined row brings. Two aliases of a table are merged: assignments of both go into one write of a row.
//!
//! | isolation | reads | a row that another transaction has changed meanwhile |
//! |---|---|---|
//! | READ COMMITTED | a snapshot of the statement | stays locked, and everything is read again on a newer snapshot |
//! | REPEATABLE READ | the transaction's snapshot | 1020; where the statement drew that snapshot, it is read again as above |
//! | SERIALIZABLE, or without `innodb_snapshot_isolation` | the newest, with locks: exclusive ones on changed tables | cannot be |
//!
//! Reading again holds the locks taken before, so each round has fewer rows that can change under it; after [`MAX_ROUNDS`] the statement gives up (1020).
//! Rows that no longer match stay locked until the transaction ends.
//!
//! Rows that wait count against the statement's memory (1038).

use super::answer::turn;
use super::assignments::Assignments;
use super::check::satisfies;
use super::insert::{check_keys, set_on_update};
use super::output::Target;
use super::rules;
use super::select::{run_select, take_snapshot};
use super::sort::{Sorted, Sorter, put_values, values_of};
use super::together::{Deletes, Updates};
use crate::expr::Context;
use crate::expr::context::UserVariable;
use crate::hash::{KeyMap, KeySet};
use crate::measure::BlockMeasure;
use crate::memory::values_bytes;
use crate::physical::model::{ChangePlan, ChangeTarget, Parts};
use jiff::tz::TimeZone;
use rauk_node::bulk::Keys;
use rauk_node::{Isolation, NodeError, Transaction};
use rauk_types::error::codes;
use rauk_types::result::{Completion, ResultColumn, ResultSink};
use rauk_types::{MysqlError, RowView, Value, ValueRef};
use std::collections::HashMap;
use std::sync::Arc;

/// How often a statement reads again because rows have changed under it.
const MAX_ROUNDS: usize = 10;

/// Bytes of rows from which on no more are locked together.
const LOCKED_BYTES: usize = 1 << 20;

/// What a row takes in a table of rows by key, beside its bytes.
const ENTRY_BYTES: usize = 96;

pub(crate) async fn run_change(
    plan: &ChangePlan,
    parts: Option<&Arc<Parts>>,
    columns: &[ResultColumn],
    txn: &mut Transaction,
    context: &mut Context,
    sink: &mut dyn ResultSink,
) -> Result<Completion, MysqlError> {
    let locks = match txn.options().isolation {
        Isolation::ReadCommitted => false,
        Isolation::RepeatableRead => !txn.options().snapshot_isolation,
        Isolation::Serializable => true,
    };
    let may_repeat = txn.options().isolation == Isolation::ReadCommitted || !txn.has_snapshot();
    let before = Before::of(context);
    let begin = context.measures.as_ref().map(|measures| measures.now());
    for round in 1.. {
        take_snapshot(txn).await?;
        match attempt(plan, locks, may_repeat, columns, txn, context, sink).await {
            Ok(Some(completion)) => {
                if let (Some(begin), Some(measures)) = (begin, &mut context.measures) {
                    let time = measures.now().saturating_sub(begin);
                    let delivered = completion.affected_rows;
                    // The address of the plan may be that of its block.
                    measures.add(&plan.targets, BlockMeasure { delivered, time, ..BlockMeasure::default() });
                }
                return Ok(completion);
            }
            Ok(None) if round == MAX_ROUNDS => return Err(changed(&plan.targets[0])),
            Ok(None) => {}
            Err(error) if error.code == codes::CHECKREAD && may_repeat && round < MAX_ROUNDS && sink.withdraw() => {
                txn.rollback_statement();
            }
            Err(error) => return Err(error),
        }
        txn.give_up_snapshot();
        before.restore(parts, context);
    }
    unreachable!("the loop returns")
}

/// Error 1020.
fn changed(target: &ChangeTarget) -> MysqlError {
    NodeError::Changed { table: target.table.schema().name.clone() }.into()
}

/// Reads, locks and changes. `None`: a row has changed in between, and nothing has been written.
async fn attempt(
    plan: &ChangePlan,
    locks: bool,
    may_repeat: bool,
    columns: &[ResultColumn],
    txn: &mut Transaction,
    context: &mut Context,
    sink: &mut dyn ResultSink,
) -> Result<Option<Completion>, MysqlError> {
    context.locks_changed_tables = locks;
    let found = read(plan, txn, context).await;
    context.locks_changed_tables = false;
    let mut found = found?;
    if !locks && !lock(plan, &mut found, may_repeat, txn, context).await? {
        return Ok(None);
    }
    if !plan.returning.is_empty() {
        sink.columns(columns);
    }
    let warnings = |context: &Context| context.warning_count.min(u16::MAX.into()) as u16;
    if !plan.update {
        let affected_rows = delete(plan, found, txn, context, sink).await?;
        return Ok(Some(Completion { affected_rows, warnings: warnings(context), ..Completion::default() }));
    }
    let Counts { matched, changed } = update(plan, found, txn, context).await?;
    context.matched_rows = matched;
    Ok(Some(Completion {
        affected_rows: changed,
        warnings: warnings(context),
        info: format!("Rows matched: {matched}  Changed: {changed}  Warnings: {}", context.warning_count),
        ..Completion::default()
    }))
}

/// The rows to be changed, one list a target: the key of each, its columns as stored, and the inputs of its assignments.
async fn read(plan: &ChangePlan, txn: &mut Transaction, context: &mut Context) -> Result<Vec<Sorted>, MysqlError> {
    let memory = context.budget.memory.clone();
    let mut rows: Vec<Sorter> = plan.targets.iter().map(|_| Sorter::new(usize::MAX, memory.clone())).collect();
    let mut seen: Vec<KeySet> = plan.targets.iter().map(|_| KeySet::default()).collect();
    let (mut key, mut payload) = (Vec::new(), Vec::new());
    let mut each = |values: Vec<Value>| {
        for (number, target) in plan.targets.iter().enumerate() {
            let primary = &target.key_defs[0];
            let row = &values[target.first..target.first + target.table.schema().columns.len()];
            // The null row of an outer join is no row: no part of a primary key is NULL.
            if row[primary.parts[0].column].is_null() {
                continue;
            }
            key.clear();
            primary.encode_values(row, &mut key);
            if target.repeats {
                // Each alias of an updated table has assignments of its own.
                let seen = &mut seen[if plan.update { number } else { target.group }];
                if seen.contains(key.as_slice()) {
                    continue;
                }
                memory.take(key.len() + ENTRY_BYTES)?;
                seen.insert(key.as_slice().into());
            }
            payload.clear();
            put_values(row.iter().map(Value::as_ref), &mut payload);
            put_values(target.inputs.iter().map(|&at| values[at].as_ref()), &mut payload);
            rows[number].push(&key, &payload)?;
        }
        Ok(true)
    };
    run_select(&plan.rows, txn, context, Target::Each(&mut each)).await?;
    Ok(rows.into_iter().map(Sorter::unsorted).collect())
}

/// Locks all rows, many together. Whether they are what was read.
async fn lock(
    plan: &ChangePlan,
    found: &mut [Sorted],
    may_repeat: bool,
    txn: &mut Transaction,
    context: &mut Context,
) -> Result<bool, MysqlError> {
    let mut all_same = true;
    let (mut keys, mut payloads) = (Keys::default(), Keys::default());
    for (target, rows) in plan.targets.iter().zip(found) {
        let columns = target.table.schema().columns.len();
        loop {
            keys.clear();
            payloads.clear();
            let mut bytes = 0;
            while keys.len() < txn.rows_together()
                && bytes < LOCKED_BYTES
                && let Some((key, payload)) = rows.next_record()
            {
                keys.push(key);
                payloads.push(payload);
                bytes += key.len() + payload.len();
            }
            if keys.is_empty() {
                break;
            }
            turn(keys.len(), txn, context).await?;
            let mut same = true;
            let mut compare = |number: usize, view: Option<RowView<'_>>| {
                let read = values_of(payloads.get(number)).take(columns);
                same &= view.is_some_and(|view| read.enumerate().all(|(column, value)| view.get(column) == value));
                true
            };
            match txn.take_many(&target.table, &keys, &mut compare).await {
                Err(NodeError::Changed { .. } | NodeError::SnapshotTooOld { .. }) if may_repeat => {
                    // Without a snapshot they are locked as they are now, and stay so while everything is read again.
                    txn.give_up_snapshot();
                    txn.take_many(&target.table, &keys, &mut |_, _| true).await?;
                    same = false;
                }
                taken => taken?,
            }
            if !same && !may_repeat {
                return Err(changed(target));
            }
            all_same &= same;
        }
        rows.rewind();
    }
    Ok(all_same)
}

async fn delete(
    plan: &ChangePlan,
    found: Vec<Sorted>,
    txn: &mut Transaction,
    context: &mut Context,
    sink: &mut dyn ResultSink,
) -> Result<u64, MysqlError> {
    let mut deleted = 0;
    for (target, mut rows) in plan.targets.iter().zip(found) {
        let mut deletes = Deletes::new(&target.table, plan.ignore, &plan.returning, txn);
        while let Some((_, payload)) = rows.next_record() {
            turn(1, txn, context).await?;
            let row: Vec<Value> = values_of(payload).map(ValueRef::to_owned).collect();
            deletes.write(row, txn, context, sink).await?;
        }
        deletes.write_waiting(txn, context, sink).await?;
        deleted += deletes.deleted;
    }
    Ok(deleted)
}

#[derive(Default)]
struct Counts {
    matched: u64,
    changed: u64,
}

async fn update(
    plan: &ChangePlan,
    found: Vec<Sorted>,
    txn: &mut Transaction,
    context: &mut Context,
) -> Result<Counts, MysqlError> {
    let mut counts = Counts::default();
    let mut found: Vec<Option<Sorted>> = found.into_iter().map(Some).collect();
    for number in 0..plan.targets.len() {
        let aliases: Vec<usize> = (number..plan.targets.len()).filter(|&n| plan.targets[n].group == number).collect();
        let highest = match aliases.as_slice() {
            // It has been changed with the first alias of its table.
            [] => continue,
            [_] => {
                let rows = found[number].take().expect("a target's rows are changed once");
                update_rows(plan, &plan.targets[number], rows, &mut counts, txn, context).await?
            }
            aliases => {
                let rows = |&n: &usize| (&plan.targets[n], found[n].take().expect("a target's rows are changed once"));
                let lists = aliases.iter().map(rows).collect();
                update_aliases(plan, lists, &mut counts, txn, context).await?
            }
        };
        if let Some(highest) = highest {
            plan.database.raise_auto_increment(&plan.targets[number].table, highest).await?;
        }
    }
    Ok(counts)
}

/// Changes the rows of a table that has one alias; gives the highest AUTO_INCREMENT number that they get.
async fn update_rows(
    plan: &ChangePlan,
    target: &ChangeTarget,
    mut rows: Sorted,
    counts: &mut Counts,
    txn: &mut Transaction,
    context: &mut Context,
) -> Result<Option<u64>, MysqlError> {
    let zone = context.time_zone.clone();
    let assignments = assignments_of(plan, target, &zone);
    let mut updates = Updates::new(&target.table, &target.key_defs, plan.ignore, txn);
    let result: Result<(), MysqlError> = async {
        while let Some((_, payload)) = rows.next_record() {
            turn(1, txn, context).await?;
            let (old, inputs) = row_of(target, payload);
            if let Some(new) = assignments.of(&old, &inputs, &mut counts.matched, txn, context).await? {
                updates.write(old, new, 1, txn, context).await?;
            }
        }
        Ok(())
    }
    .await;
    updates.end(result, txn, context).await?;
    counts.changed += updates.changed;
    Ok(updates.highest)
}

fn assignments_of<'a>(plan: &ChangePlan, target: &'a ChangeTarget, zone: &'a TimeZone) -> Assignments<'a> {
    Assignments {
        set: &target.set,
        schema: target.table.schema(),
        key_defs: &target.key_defs,
        check: target.check.as_ref(),
        rules: target.rules.as_deref(),
        ignore: plan.ignore,
        zone,
    }
}

/// A row that is changed through several aliases.
struct Merged {
    old: Vec<Value>,
    new: Vec<Value>,
    /// Aliases whose assignments have changed it.
    changes: u64,
}

/// Changes the rows of a table that has several aliases: all assignments to a row go into one write.
async fn update_aliases(
    plan: &ChangePlan,
    lists: Vec<(&ChangeTarget, Sorted)>,
    counts: &mut Counts,
    txn: &mut Transaction,
    context: &mut Context,
) -> Result<Option<u64>, MysqlError> {
    let first = lists[0].0;
    let schema = first.table.schema();
    let memory = context.budget.memory.clone();
    let mut by_key: KeyMap<usize> = KeyMap::default();
    let mut merged: Vec<Merged> = Vec::new();
    let zone = context.time_zone.clone();
    for (target, mut rows) in lists {
        let assignments = assignments_of(plan, target, &zone);
        while let Some((key, payload)) = rows.next_record() {
            turn(1, txn, context).await?;
            counts.matched += 1;
            let (old, inputs) = row_of(target, payload);
            let mut own = old.clone();
            assignments.apply(&mut own, &inputs, counts.matched, txn, context).await?;
            let at = match by_key.get(key) {
                Some(&at) => at,
                None => {
                    memory.take(key.len() + ENTRY_BYTES + 2 * values_bytes(&own))?;
                    by_key.insert(key.into(), merged.len());
                    merged.push(Merged { new: old.clone(), old, changes: 0 });
                    merged.len() - 1
                }
            };
            let row = &mut merged[at];
            let mut changes = false;
            for set in &target.set {
                changes |= row.new[set.column] != own[set.column];
                row.new[set.column] = own[set.column].clone();
            }
            if changes {
                set_on_update(schema, &target.set, &mut row.new, context);
                if let Some(rules) = &target.rules {
                    rules::compute(rules, schema, &mut row.new, counts.matched, plan.ignore, context)?;
                }
                // What another alias makes of the row is not undone, so here IGNORE does not help.
                if let Some(check) = &target.check {
                    satisfies(check, &row.new, &inputs, false, txn, context).await?;
                }
                row.changes += 1;
            }
        }
    }
    let mut updates = Updates::new(&first.table, &first.key_defs, plan.ignore, txn);
    let result: Result<(), MysqlError> = async {
        for Merged { old, new, changes } in merged {
            turn(1, txn, context).await?;
            if new == old {
                continue;
            }
            if let Some(rules) = &first.rules
                && !rules::holds(rules, &new, plan.ignore, context)?
            {
                continue;
            }
            check_keys(schema, &first.key_defs, &new)?;
            updates.write(old, new, changes, txn, context).await?;
        }
        Ok(())
    }
    .await;
    updates.end(result, txn, context).await?;
    counts.changed += updates.changed;
    Ok(updates.highest)
}

/// A row as stored, and the inputs of its assignments.
fn row_of(target: &ChangeTarget, payload: &[u8]) -> (Vec<Value>, Vec<Value>) {
    let mut row: Vec<Value> = values_of(payload).map(ValueRef::to_owned).collect();
    let inputs = row.split_off(target.table.schema().columns.len());
    (row, inputs)
}

/// What a statement changes in its session, as it was before.
pub(super) struct Before {
    warnings: usize,
    warning_count: u64,
    new_last_insert_id: Option<u64>,
    random_state: u64,
    seeded_random: Vec<(i64, u64, u64)>,
    user_variables: HashMap<String, UserVariable>,
    user_variable_bytes: usize,
    memory: usize,
}

impl Before {
    pub fn of(context: &Context) -> Before {
        Before {
            warnings: context.warnings.len(),
            warning_count: context.warning_count,
            new_last_insert_id: context.new_last_insert_id,
            random_state: context.random_state,
            seeded_random: context.seeded_random.clone(),
            user_variables: context.user_variables.clone(),
            user_variable_bytes: context.user_variable_bytes,
            memory: context.budget.memory.used(),
        }
    }

    /// The statement begins again: answers of its subqueries and its common tables are those of another snapshot.
    pub fn restore(&self, parts: Option<&Arc<Parts>>, context: &mut Context) {
        context.warnings.truncate(self.warnings);
        context.warning_count = self.warning_count;
        context.new_last_insert_id = self.new_last_insert_id;
        context.random_state = self.random_state;
        context.seeded_random.clone_from(&self.seeded_random);
        context.user_variables.clone_from(&self.user_variables);
        context.user_variable_bytes = self.user_variable_bytes;
        if let Some(parts) = parts {
            super::answer::begin(parts, context);
        }
        let memory = &context.budget.memory;
        memory.give(memory.used().saturating_sub(self.memory));
    }
}
