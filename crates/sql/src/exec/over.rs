//! Rows of ON DUPLICATE KEY UPDATE, REPLACE and IGNORE that meet others.
//!
//! A row that is there has the key, primary or unique, of one that is to be inserted. It is updated, or goes, and with
//! REPLACE the next row in the way is looked for; with IGNORE it stays, and the other one is left out.
//!
//! *Many rows in a cluster.* Row by row that is an insert that fails, the lock of the row in the way and its change, for
//! each a question wherever another node leads the partition. So gathered rows ([`super::gathered`]) are first inserted
//! together, unless the last ones have met others; and then
//!
//! ```text
//! look    all rows in the way of them are locked and read together
//! decide  row by row, in memory: each meets what those before it have left, and is counted
//! write   what has changed in the end, by key: all of it, or none
//! ```
//! Where that cannot be (a row gets another key, somebody inserts one meanwhile, a row is newer than the snapshot),
//! everything is as it was, and the rows are written one by one.
//!
//! The AUTO_INCREMENT number of a row that is not inserted goes to the next one. So the rows of a call have all got
//! numbers, or none has; the numbers are those that they have if all are inserted, and else are given out again.
//!
//! Left out: updates that wait for a subquery, or depend on when they are evaluated (RAND(), variables that are
//! assigned); REPLACE into a table that others refer to.

use super::answer::with_answers;
use super::change::changed_number;
use super::check::satisfies;
use super::gathered::Beside;
use super::insert::{Insert, Number, assign, check_keys, duplicate, set_on_update};
use super::row::Rows;
use super::rules;
use super::targets::Before;
use super::violation::unless_refused;
use crate::expr::{Expr, ExprKind};
use crate::physical::model::{Fill, InsertPlan, InsertSource, OnDuplicate};
use rauk_node::transaction::UpdateOutcome;
use rauk_node::{NodeError, Transaction};
use rauk_types::{IndexId, IndexSchema, MysqlError, Value};

/// What came of rows that were decided about together.
enum Decided {
    /// They are written. Whether some have met others.
    Written(bool),
    /// Nothing is written, and what has been counted does not count.
    Unknown,
    /// The same, since a row would get another key: so would others.
    Moves,
}

/// Whether an ON DUPLICATE KEY UPDATE may be decided about for many rows together.
pub(super) fn may_go_over(plan: &InsertPlan, txn: &Transaction) -> bool {
    let waits = |expr: &Expr| expr.has_effects() || expr.has_subquery();
    let values = match &plan.source {
        InsertSource::Rows(rows) => rows.iter().flatten().flatten().any(assigns),
        // Its rows are there.
        InsertSource::Query(..) | InsertSource::File(_) => false,
    };
    let mut updates = plan.update.iter().filter_map(|set| set.value.as_ref());
    goes_over(plan, txn) && !values && !updates.any(waits)
}

/// Whether rows that meet others are decided about together.
pub(super) fn goes_over(plan: &InsertPlan, txn: &Transaction) -> bool {
    let changes = match plan.on_duplicate {
        OnDuplicate::Update | OnDuplicate::Skip => true,
        OnDuplicate::Replace => !plan.table.is_referenced(),
        OnDuplicate::Error => false,
    };
    changes && txn.changes_together(&plan.table, false) > 1
}

/// Whether evaluating it leaves something behind that another expression may read.
fn assigns(expr: &Expr) -> bool {
    let mut found = match &expr.kind {
        ExprKind::AssignVariable { .. } => true,
        ExprKind::Function { function, .. } => function.name == "LAST_INSERT_ID",
        _ => false,
    };
    expr.for_each_child(&mut |child| found = found || assigns(child));
    found
}

fn has_uniques(plan: &InsertPlan) -> bool {
    plan.table.schema().indexes.iter().any(IndexSchema::is_guarded)
}

impl Insert<'_> {
    /// Writes rows that may meet others.
    pub(super) async fn write_over(
        &mut self,
        mut rows: Vec<Vec<Value>>,
        numbers: Vec<Number>,
        beside: Vec<Beside>,
    ) -> Result<(), MysqlError> {
        let plan = self.plan;
        let table = &plan.table;
        let goes_over = goes_over(plan, self.txn);
        let first = match numbers.first() {
            Some(Number::Generated(first)) => Some(*first),
            _ => None,
        };
        let mut done = vec![false; rows.len()];
        // What is inserted has its number.
        let is_tried = goes_over && rows.len() > 1 && !self.gathered.meets;
        if is_tried && (first.is_none() || has_uniques(plan)) {
            match has_uniques(plan) {
                true => {
                    let all = self.txn.insert_all(table, &mut rows).await?;
                    done.fill(all);
                }
                false => self.txn.insert_many(table, &mut rows, &mut done).await?,
            }
        }
        if let (Some(first), true, Some((next, count))) = (first, done.contains(&false), &mut self.reserved) {
            (*next, *count) = (first, *count + rows.len() as u64);
        }
        // One that is left is written as any other.
        if goes_over && done.iter().filter(|done| !**done).count() > 1 {
            let before = Before::of(self.context);
            let counts = (self.affected, self.duplicates, self.last_explicit, self.generated, self.number);
            let in_hand = self.reserved;
            match self.decide(&mut rows, &numbers, &beside, &done).await? {
                Decided::Written(meets) => {
                    self.gathered.meets = meets;
                    return Ok(());
                }
                Decided::Unknown => {}
                Decided::Moves => self.gathered.useless = true,
            }
            before.restore(None, self.context);
            (self.affected, self.duplicates, self.last_explicit, self.generated, self.number) = counts;
            self.reserved = in_hand;
        }
        let last = self.number;
        let mut beside = beside.into_iter();
        for ((mut values, mut number), done) in rows.into_iter().zip(numbers).zip(done) {
            let beside = beside.next();
            if done {
                self.inserted(number).await?;
                continue;
            }
            if first.is_some() {
                number = self.take_number(&mut values)?;
            }
            self.number = beside.as_ref().map_or(last, |beside| beside.number);
            self.write(values, number, beside.map_or_else(Vec::new, |beside| beside.inputs)).await?;
        }
        self.number = last;
        Ok(())
    }

    /// Decides about rows and writes what comes of them; those that are done are counted only.
    async fn decide(
        &mut self,
        rows: &mut [Vec<Value>],
        numbers: &[Number],
        beside: &[Beside],
        done: &[bool],
    ) -> Result<Decided, MysqlError> {
        let plan = self.plan;
        let table = &plan.table;
        let mut standing = match self.txn.standing(table, rows).await {
            Ok(Some(standing)) => standing,
            // Which row it is that has changed is told row by row.
            Ok(None) | Err(NodeError::Changed { .. } | NodeError::SnapshotTooOld { .. }) => {
                return Ok(Decided::Unknown);
            }
            Err(error) => return Err(error.into()),
        };
        let meets = !standing.is_empty();
        let (mut highest, last): (Option<u64>, u64) = (None, self.number);
        for (at, values) in rows.iter_mut().enumerate() {
            let mut number = numbers[at];
            if !done[at] {
                if let Number::Generated(_) = number {
                    number = self.take_number(values)?;
                }
                if plan.on_duplicate == OnDuplicate::Replace {
                    while let Some((index, place)) = standing.in_the_way(values) {
                        self.affected += 1;
                        if self.replaces_nothing(index, standing.row(place), values) {
                            break;
                        }
                        self.duplicates += 1;
                        standing.delete(place);
                    }
                }
                if let Some((index, place)) = standing.in_the_way(values) {
                    self.give_back(number);
                    if plan.on_duplicate == OnDuplicate::Skip {
                        let error = duplicate(self.schema, &plan.key_defs, index, values, self.context);
                        self.context.warn(error.code, error.message);
                        self.duplicates += 1;
                    }
                    let Some(Beside { number, inputs }) = beside.get(at) else { continue };
                    let old = standing.row(place).to_vec();
                    self.number = *number;
                    let Some(new) = self.updated(&old, values, inputs).await? else { continue };
                    if !self.txn.keeps_keys(table, &old, &new) || changed_number(self.schema, &old, &new).is_some() {
                        return Ok(Decided::Moves);
                    }
                    self.affected += 2;
                    self.duplicates += 1;
                    standing.change(place, new);
                    continue;
                }
                standing.insert(values.clone());
            }
            self.affected += 1;
            match number {
                Number::Explicit(number) => {
                    self.last_explicit = number;
                    highest = highest.max(Some(number));
                }
                Number::Generated(number) => {
                    self.generated.get_or_insert(number);
                    highest = highest.max(Some(number).filter(|_| self.forced));
                }
                Number::None => {}
            }
        }
        self.number = last;
        let changes = standing.into_changes();
        if !changes.is_empty() && !self.txn.change_all(table, &changes).await? {
            return Ok(Decided::Unknown);
        }
        if let Some(highest) = highest {
            plan.database.raise_auto_increment(table, highest).await?;
        }
        Ok(Decided::Written(meets))
    }

    /// Whether a row that is to be replaced has all values of the new one, and its key is the last that is looked at:
    /// MySQL updates it in place then. Where others refer to the table, it goes and comes again.
    pub(super) fn replaces_nothing(&self, index: IndexId, old: &[Value], new: &[Value]) -> bool {
        let last_unique = self.schema.indexes.iter().rev().find(|index| index.forbids_duplicates());
        // A hidden key is the row's own.
        let seen = self.schema.visible_columns().len();
        let in_place = last_unique.is_some_and(|last| last.id == index) && !self.plan.table.is_referenced();
        in_place && old[..seen] == new[..seen]
    }

    /// Updates the row in the way, which is locked.
    pub(super) async fn update_existing(
        &mut self,
        old: Vec<Value>,
        inserted: Vec<Value>,
        inputs: Vec<Value>,
    ) -> Result<(), MysqlError> {
        let Some(new) = self.updated(&old, &inserted, &inputs).await? else { return self.returned(&old).await };
        let written = self.txn.update(&self.plan.table, &old, &new).await;
        let Some(outcome) = unless_refused(written, self.plan.ignore, self.context)? else { return Ok(()) };
        match outcome {
            UpdateOutcome::Updated => {
                self.affected += 2;
                self.duplicates += 1;
                if let Some(number) = changed_number(self.schema, &old, &new) {
                    self.pass_number(number);
                    self.plan.database.raise_auto_increment(&self.plan.table, number).await?;
                }
                self.returned(&new).await
            }
            UpdateOutcome::Missing => Ok(()),
            UpdateOutcome::Duplicate { index, .. } => {
                let error = duplicate(self.schema, &self.plan.key_defs, index, &new, self.context);
                if !self.plan.ignore {
                    return Err(error);
                }
                self.context.warn(error.code, error.message);
                Ok(())
            }
        }
    }

    /// What the assignments make of the row in the way; `None`: it stays as it is.
    async fn updated(
        &mut self,
        old: &[Value],
        inserted: &[Value],
        inputs: &[Value],
    ) -> Result<Option<Vec<Value>>, MysqlError> {
        let schema = self.schema;
        let zone = self.context.time_zone.clone();
        let mut new = old.to_vec();
        for set in &self.plan.update {
            let definition = &schema.columns[set.column];
            let value = match &set.value {
                None => self.filled(set.column, &Fill::Missing, true)?,
                Some(expr) => {
                    let row = Rows { rows: [&new, inserted, inputs], zone: &zone };
                    let value = with_answers(self.txn, self.context, |context| expr.eval(&row, context)).await?;
                    assign(value, &expr.ty, definition, self.number, self.plan.ignore, self.context)?
                }
            };
            new[set.column] = value;
        }
        let id = |row: &[Value]| {
            let column = schema.auto_increment?;
            row[column].as_ref().as_counted().and_then(|v| u64::try_from(v).ok())
        };
        // The row's number is what the client hears, changed or not.
        self.last_explicit = id(&new).unwrap_or(self.last_explicit);
        if new == old {
            return Ok(None);
        }
        set_on_update(schema, &self.plan.update, &mut new, self.context);
        let ignore = self.plan.ignore;
        if let Some(rules) = &self.plan.rules {
            rules::compute(rules, schema, &mut new, self.number, ignore, self.context)?;
        }
        if let Some(check) = &self.plan.check
            && !satisfies(check, &new, inputs, ignore, self.txn, self.context).await?
        {
            return Ok(None);
        }
        if let Some(rules) = &self.plan.rules
            && !rules::holds(rules, &new, ignore, self.context)?
        {
            return Ok(None);
        }
        check_keys(schema, &self.plan.key_defs, &new)?;
        Ok(Some(new))
    }
}
