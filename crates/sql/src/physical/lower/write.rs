//! INSERT, UPDATE and DELETE: a source of rows, a locking scan, or a block whose rows are locked and changed when it has ended.

use super::Lowering;
use super::places::{Outer, Places};
use crate::expr::{ColumnId, Expr, ExprKind};
use crate::logical::{self, Node, RowCheck, Scan, Target, Write};
use crate::physical::condition;
use crate::physical::join::{Item, JoinInput, WantedOrder, plan_join};
use crate::physical::model::{
    ChangePlan, ChangeTarget, DeletePlan, Fill, InsertPlan, InsertSource, Level, PlanKind, SetColumn, SortKey, Source,
    Step, UpdatePlan,
};
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_types::MysqlError;
use rauk_types::error::codes;

/// The rows that an UPDATE or DELETE changes.
struct Changed {
    sources: Vec<Source>,
    level: Level,
    once: Vec<Expr>,
    order: Vec<SortKey>,
    limit: Option<Expr>,
}

impl Lowering<'_> {
    pub(super) fn write(&mut self, write: Write) -> Result<PlanKind, MysqlError> {
        match write {
            Write::Insert(insert) => self.insert(*insert),
            Write::Update(update) => {
                let logical::Update { target, set, check, rules } = *update;
                let ignore = target.ignore;
                let outer = Outer::default();
                let mut places = Places::new(&outer);
                places.add_table(0, &target.scan.columns);
                let set = place_set(set, &places)?;
                let check = place_check(check, &places)?;
                let schema = target.scan.schema().clone();
                let changed = self.changed(target, &places)?;
                Ok(PlanKind::Update(Box::new(UpdatePlan {
                    database: self.database.clone(),
                    sources: changed.sources,
                    level: changed.level,
                    once: changed.once,
                    set,
                    order: changed.order,
                    limit: changed.limit,
                    ignore,
                    key_defs: schema.indexes.iter().map(|i| schema.key_def(i)).collect(),
                    check,
                    rules,
                })))
            }
            Write::Delete(delete) => {
                let outer = Outer::default();
                let mut places = Places::new(&outer);
                places.add_table(0, &delete.target.scan.columns);
                let ignore = delete.target.ignore;
                let returning = places.place_all(delete.returning)?;
                let changed = self.changed(delete.target, &places)?;
                Ok(PlanKind::Delete(Box::new(DeletePlan {
                    sources: changed.sources,
                    level: changed.level,
                    once: changed.once,
                    order: changed.order,
                    limit: changed.limit,
                    ignore,
                    returning,
                })))
            }
            Write::Change(change) => self.change(*change),
        }
    }

    fn change(&mut self, change: logical::Change) -> Result<PlanKind, MysqlError> {
        let logical::Change { update, ignore, rows, targets, returning } = change;
        let given = rows.columns.clone();
        let mut rows = self.block(rows.node, &given, &Outer::default())?;
        rows.stored = true;
        let repeats = rows.sources.len() > 1;
        let outer = Outer::default();
        let place = |id: &ColumnId| given.iter().position(|column| column == id).expect("the block gives what is read");
        let mut placed = Places::new(&outer);
        let mut lowered: Vec<ChangeTarget> = Vec::with_capacity(targets.len());
        for logical::ChangeTarget { table, columns, inputs, set, check, rules, .. } in targets {
            let schema = table.schema().clone();
            let first = place(&columns[0]);
            assert!(
                columns.iter().map(place).eq(first..first + schema.columns.len()),
                "the columns of a row lie together"
            );
            placed.add_table(0, &columns);
            let mut places = Places::new(&outer);
            places.add_table(1, &inputs);
            places.add_table(0, &columns);
            let ExprKind::Column { table: source, .. } = rows.items[first].kind else {
                unreachable!("a changed row is read from its table")
            };
            for step in &mut rows.steps {
                if let Step::Scan(level) = step {
                    level.changed |= level.table == source;
                }
            }
            for (stored, written) in &mut self.stored {
                *written |= stored.schema().id == schema.id;
            }
            let group = lowered.iter().position(|other| other.table.schema().id == schema.id);
            lowered.push(ChangeTarget {
                first,
                inputs: inputs.iter().map(place).collect(),
                set: place_set(set, &places)?,
                check: place_check(check, &places)?,
                rules,
                key_defs: schema.indexes.iter().map(|i| schema.key_def(i)).collect(),
                group: group.unwrap_or(lowered.len()),
                repeats,
                table,
            });
        }
        let returning = placed.place_all(returning)?;
        let database = self.database.clone();
        Ok(PlanKind::Change(Box::new(ChangePlan { database, update, ignore, rows, targets: lowered, returning })))
    }

    fn insert(&mut self, insert: logical::Insert) -> Result<PlanKind, MysqlError> {
        let outer = Outer::default();
        let mut places = Places::new(&outer);
        // The row in the way is table 0, the row that was to be inserted table 1.
        places.add_table(0, &insert.existing);
        places.add_table(1, &insert.inserted);
        places.add_table(2, &insert.inputs);
        self.stored.push((insert.table.clone(), true));
        let source = match insert.source {
            logical::InsertSource::Rows(rows) => {
                let value = |value: Option<Expr>| value.map(|expr| places.place(expr)).transpose();
                let row = |row: Vec<Option<Expr>>| row.into_iter().map(value).collect::<Result<Vec<_>, _>>();
                InsertSource::Rows(rows.into_iter().map(row).collect::<Result<_, _>>()?)
            }
            logical::InsertSource::Query(query) => {
                let types = self.types(&query.columns);
                InsertSource::Query(Box::new(self.query(query, &outer)?), types)
            }
            logical::InsertSource::File(file) => {
                let set = place_set(file.set, &places)?;
                InsertSource::File(Box::new(logical::FileRows { set, ..file }))
            }
        };
        let mut fill = Vec::with_capacity(insert.fill.len());
        for value in insert.fill {
            fill.push(match value {
                Fill::Value(expr) => Fill::Value(places.place(expr)?),
                other => other,
            });
        }
        let schema = insert.table.schema();
        Ok(PlanKind::Insert(Box::new(InsertPlan {
            database: self.database.clone(),
            columns: insert.columns,
            source,
            ignored: insert.ignored,
            fill,
            on_duplicate: insert.on_duplicate,
            ignore: insert.ignore,
            update: place_set(insert.update, &places)?,
            key_defs: schema.indexes.iter().map(|i| schema.key_def(i)).collect(),
            reads_row: insert.reads_row,
            returning: places.place_all(insert.returning)?,
            check: place_check(insert.check, &places)?,
            rules: insert.rules,
            table: insert.table,
        })))
    }

    fn changed(&mut self, target: Target, places: &Places<'_>) -> Result<Changed, MysqlError> {
        let Target { scan, conditions, order, limit, .. } = target;
        let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
        let scan = Node::Scan(Box::new(Scan { lock, ..scan }));
        let (source, _, _) = self.source(scan, &Outer::default())?;
        if let Some((_, written)) = self.stored.last_mut() {
            *written = true;
        }
        let sources = vec![source];
        let mut conditions = places.place_all(conditions)?;
        for condition in &mut conditions {
            condition::find_zero_dates(condition, &sources);
            // Binding makes a block of these.
            assert!(!condition.reads_around(), "a locking scan runs no correlated subquery");
        }
        let mut placed = Vec::new();
        for key in order {
            let expr = places.place(key.expr)?;
            if !expr.is_constant() {
                placed.push(SortKey { expr, descending: key.descending });
            }
        }
        let mut order = placed;
        let columns: Option<Vec<(usize, bool)>> = order
            .iter()
            .map(|k| match k.expr.kind {
                ExprKind::Column { column, .. } => Some((column, k.descending)),
                _ => None,
            })
            .collect();
        let wanted = columns.filter(|c| !c.is_empty()).map(|order| WantedOrder {
            table: 0,
            order,
            limit: limit.as_ref().map(|l| match &l.kind {
                ExprKind::Literal(value) => value.as_ref().as_integer().map_or(10.0, |v| v as f64),
                _ => 10.0,
            }),
        });
        let joined = plan_join(JoinInput {
            sources: &sources,
            items: vec![Item::Table(0)],
            conditions,
            keep_order: true,
            wanted,
            equal_rows: None,
            // Its rows are locked.
            read: &[vec![]],
            locks: &[lock],
            switches: self.switches,
            database: self.database,
        });
        if joined.ordered {
            order.clear();
        }
        let Some(Step::Scan(level)) = joined.steps.into_iter().next() else {
            return Err(MysqlError::new(codes::NO_TABLES_USED, "No tables used"));
        };
        Ok(Changed { sources, level: *level, once: joined.once, order, limit })
    }
}

fn place_check(check: Option<RowCheck>, places: &Places<'_>) -> Result<Option<RowCheck>, MysqlError> {
    let Some(RowCheck { view, conditions }) = check else { return Ok(None) };
    Ok(Some(RowCheck { view, conditions: places.place_all(conditions)? }))
}

fn place_set(set: Vec<SetColumn>, places: &Places<'_>) -> Result<Vec<SetColumn>, MysqlError> {
    set.into_iter()
        .map(|set| {
            let value = set.value.map(|value| places.place(value)).transpose()?;
            Ok(SetColumn { value, ..set })
        })
        .collect()
}
