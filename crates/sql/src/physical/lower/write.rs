//! INSERT, UPDATE and DELETE: a source of rows, or a locking scan, and what happens to the rows.

use super::Lowering;
use super::places::{Outer, Places};
use crate::expr::{Expr, ExprKind};
use crate::logical::{self, Node, Scan, Target, Write};
use crate::lookup::unsupported;
use crate::physical::condition;
use crate::physical::join::{Item, JoinInput, WantedOrder, plan_join};
use crate::physical::model::{
    DeletePlan, Fill, InsertPlan, InsertSource, Level, PlanKind, SetColumn, SortKey, Source, Step, UpdatePlan,
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
                let logical::Update { target, set } = *update;
                let outer = Outer::default();
                let mut places = Places::new(&outer);
                places.add_table(0, &target.scan.columns);
                let set = place_set(set, &places)?;
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
                    ignore: false,
                    key_defs: schema.indexes.iter().map(|i| schema.key_def(i)).collect(),
                })))
            }
            Write::Delete(delete) => {
                let outer = Outer::default();
                let mut places = Places::new(&outer);
                places.add_table(0, &delete.target.scan.columns);
                let changed = self.changed(delete.target, &places)?;
                Ok(PlanKind::Delete(Box::new(DeletePlan {
                    sources: changed.sources,
                    level: changed.level,
                    once: changed.once,
                    order: changed.order,
                    limit: changed.limit,
                })))
            }
        }
    }

    fn insert(&mut self, insert: logical::Insert) -> Result<PlanKind, MysqlError> {
        let outer = Outer::default();
        let mut places = Places::new(&outer);
        // The row in the way is table 0, the row that was to be inserted table 1.
        places.add_table(0, &insert.existing);
        places.add_table(1, &insert.inserted);
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
            fill,
            on_duplicate: insert.on_duplicate,
            ignore: insert.ignore,
            update: place_set(insert.update, &places)?,
            key_defs: schema.indexes.iter().map(|i| schema.key_def(i)).collect(),
            reads_row: insert.reads_row,
            table: insert.table,
        })))
    }

    fn changed(&mut self, target: Target, places: &Places<'_>) -> Result<Changed, MysqlError> {
        let Target { scan, conditions, order, limit } = target;
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
            if condition.reads_around() {
                return Err(unsupported("subqueries in UPDATE and DELETE that read the rows to be changed"));
            }
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
            locks: &[lock],
            switches: self.context.switches,
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

fn place_set(set: Vec<SetColumn>, places: &Places<'_>) -> Result<Vec<SetColumn>, MysqlError> {
    set.into_iter()
        .map(|set| {
            let value = set.value.map(|value| places.place(value)).transpose()?;
            Ok(SetColumn { value, ..set })
        })
        .collect()
}
