//! What a plan does in any run, as far as the plan itself says it: for the counts of statements (`session::digests`).

use super::Plan;
use super::model::{Access, InsertSource, Level, PlanKind, QueryPlan, RowsOf, SelectPlan, SourceTable, Step};

/// What is known of every run of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The first table of a block is looked at from end to end.
    pub scans: bool,
    /// A further table of a block is.
    pub full_join: bool,
    /// The first table of a block is read by ranges of an index.
    pub range: bool,
    /// A stored table is read without an index.
    pub no_index: bool,
    pub sorts: bool,
    /// Results that are kept in memory between two parts of the plan.
    pub temporary: u16,
}

impl Facts {
    pub(crate) fn of(plan: &Plan) -> Facts {
        let mut facts = Facts::default();
        match &plan.kind {
            PlanKind::Select(select) => select.for_each_block(&mut |block| facts.add_block(block)),
            PlanKind::Query(query) => {
                facts.temporary += u16::from(!matches!(**query, QueryPlan::Select(_) | QueryPlan::Values(_)));
                query.for_each_block(&mut |block| facts.add_block(block));
            }
            PlanKind::Insert(insert) => {
                if let InsertSource::Query(query, _) = &insert.source {
                    query.for_each_block(&mut |block| facts.add_block(block));
                }
            }
            PlanKind::Update(update) => facts.add_level(&update.level, true),
            PlanKind::Delete(delete) => facts.add_level(&delete.level, true),
            PlanKind::Change(change) => change.rows.for_each_block(&mut |block| facts.add_block(block)),
        }
        facts
    }

    fn add_block(&mut self, block: &SelectPlan) {
        let mut first = true;
        for step in &block.steps {
            if let Step::Scan(level) = step {
                if block.sources[level.table].handle().is_some() {
                    self.add_level(level, first);
                }
                first = false;
            }
        }
        self.sorts |= !block.order.is_empty();
        let kept = |table: &SourceTable| matches!(table, SourceTable::Query(RowsOf::Derived(_), _));
        let derived = block.sources.iter().filter(|source| kept(&source.table)).count();
        let grouped = block.grouping.as_ref().is_some_and(|grouping| !grouping.keys.is_empty());
        let more = derived + usize::from(grouped || block.distinct);
        self.temporary = self.temporary.saturating_add(u16::try_from(more).unwrap_or(u16::MAX));
    }

    fn add_level(&mut self, level: &Level, first: bool) {
        let whole = level.looks_at_all();
        self.scans |= first && whole;
        self.full_join |= !first && whole;
        self.no_index |= matches!(level.access, Access::Full { .. });
        let ranges = matches!(level.access, Access::Range(_) | Access::Skip(_) | Access::Merge(_));
        self.range |= first && !whole && ranges;
    }
}
