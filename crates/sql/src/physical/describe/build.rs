//! Describes a plan: walks its blocks in the order of their numbers.

use super::text::{BlockNames, column_name, index_of, key_length, used_parts};
use super::{
    BATCHED, BATCHES, Below, Block, COVERED, Described, Index, Part, Place, Print, Role, Set, TABLE_FUNCTION, Table,
    Tests, Texts, Windows,
};
use crate::expr::{Context, Expr, ExprKind, Names, NoColumns, SubqueryId};
use crate::physical::Plan;
use crate::physical::cost;
use crate::physical::model::{
    Access, CommonTablePlan, IndexAccess, InsertSource, KeyValue, Level, MergeAccess, OnDuplicate, Parts, PlanKind,
    QueryPlan, RowsOf, SelectPlan, SetOp, SetPlan, Source, SourceTable, Step, Take, WindowPlan,
};
use crate::physical::place::{Distribution, distribution};
use crate::physical::prune;
use crate::physical::row::Joined;
use rauk_node::TableHandle;
use rauk_types::schema::BUCKETS;
use rauk_types::{MysqlError, TableSchema, key};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Describes a plan. Errors: those of the expressions that are evaluated.
pub(in crate::physical) fn describe<'p>(
    plan: &'p Plan,
    context: &mut Context,
    print: Print,
) -> Result<Described<'p>, MysqlError> {
    let parts = plan.parts.as_deref();
    let common = FxHashMap::default();
    let mut explain = Explain {
        parts,
        context,
        print,
        blocks: 0,
        common,
        outer: FxHashMap::default(),
        numbers: FxHashMap::default(),
    };
    Ok(match &plan.kind {
        PlanKind::Select(select) => Described::Query(explain.block(select, Role::Main)?),
        PlanKind::Query(query) => Described::Query(explain.query(query, Role::Main)?),
        PlanKind::Update(update) => {
            let mut found = Found::new();
            for value in update.set.iter().filter_map(|set| set.value.as_ref()) {
                explain.find_subqueries(value, &update.sources, Place::Values, &mut found);
            }
            for key in &update.order {
                explain.find_subqueries(&key.expr, &update.sources, Place::Order, &mut found);
            }
            let sorts = !update.order.is_empty();
            Described::Change(Box::new(explain.change(
                Role::Update,
                &update.sources,
                &update.level,
                &update.once,
                sorts,
                found,
            )?))
        }
        PlanKind::Delete(delete) => {
            let mut found = Found::new();
            for key in &delete.order {
                explain.find_subqueries(&key.expr, &delete.sources, Place::Order, &mut found);
            }
            for expr in &delete.returning {
                explain.find_subqueries(expr, &delete.sources, Place::Values, &mut found);
            }
            let sorts = !delete.order.is_empty();
            Described::Change(Box::new(explain.change(
                Role::Delete,
                &delete.sources,
                &delete.level,
                &delete.once,
                sorts,
                found,
            )?))
        }
        PlanKind::Change(change) => {
            let mut found = Found::new();
            for value in change.targets.iter().flat_map(|target| &target.set).filter_map(|set| set.value.as_ref()) {
                explain.find_subqueries(value, &[], Place::Values, &mut found);
            }
            for item in &change.returning {
                explain.find_subqueries(item, &[], Place::Values, &mut found);
            }
            let role = if found.is_empty() { Role::Main } else { Role::Primary };
            let mut part = explain.block(&change.rows, role)?;
            let below = explain.subqueries(found)?;
            let block = part.first_block();
            block.below.extend(below);
            block.changes = Some(if change.update { Role::Update } else { Role::Delete });
            Described::Query(part)
        }
        PlanKind::Insert(insert) => {
            let mut found = Found::new();
            let mut source = None;
            match &insert.source {
                InsertSource::Query(query, _) => source = Some(explain.query(query, Role::Main)?),
                // No statement that explains has one.
                InsertSource::File(_) => {}
                InsertSource::Rows(values) => {
                    explain.blocks = 1;
                    for value in values.iter().flatten().flatten() {
                        explain.find_subqueries(value, &[], Place::Values, &mut found);
                    }
                }
            }
            for value in insert.update.iter().filter_map(|set| set.value.as_ref()).chain(&insert.returning) {
                explain.find_subqueries(value, &[], Place::Values, &mut found);
            }
            let below = explain.subqueries(found)?;
            let replace = insert.on_duplicate == OnDuplicate::Replace;
            Described::Insert { replace, table: &insert.table.schema().name, source, below }
        }
    })
}

/// The subqueries of a block, and where each stands.
type Found = BTreeMap<u32, Place>;

pub(super) struct Explain<'p, 'c> {
    pub(super) parts: Option<&'p Parts>,
    pub(super) context: &'c mut Context,
    pub(super) print: Print,
    /// Blocks that have a number.
    pub(super) blocks: i64,
    /// The first block of each common table that has been shown.
    pub(super) common: FxHashMap<usize, i64>,
    /// Parameters that are columns of the blocks around a subquery: their names, where they have one.
    pub(super) outer: FxHashMap<usize, Option<String>>,
    /// The first block of each subquery that has been shown.
    pub(super) numbers: FxHashMap<SubqueryId, i64>,
}

/// The query inside of a block that does no more than to convert its columns, to sort or to limit its rows.
fn inside(block: &SelectPlan) -> Option<&QueryPlan> {
    let [source] = block.sources.as_slice() else { return None };
    let SourceTable::Query(RowsOf::Derived(query), _) = &source.table else { return None };
    let filters = block.steps.iter().any(|step| match step {
        Step::Scan(level) => !level.filters.is_empty() || !level.late_filters.is_empty(),
        Step::Enter { .. } | Step::Leave { .. } | Step::Test { .. } | Step::Match { .. } => true,
    });
    let plain = source.alias.is_empty()
        && !filters
        && !block.distinct
        && !block.late
        && block.once.is_empty()
        && block.grouping.is_none()
        && block.having.is_none();
    plain.then_some(query)
}

/// The members of a chain of one set operation, with whether its rows are kept to find equal ones.
fn members<'p>(set: &'p SetPlan, out: &mut Vec<&'p QueryPlan>) -> bool {
    let mut keeps = !set.all || set.op != SetOp::Union;
    let left = match &set.left {
        // Only the types of its columns are changed.
        QueryPlan::Select(block) if block.order.is_empty() && block.limit.is_none() => {
            inside(block).unwrap_or(&set.left)
        }
        left => left,
    };
    match left {
        QueryPlan::Set(left) if left.op == set.op => keeps |= members(left, out),
        left => out.push(left),
    }
    out.push(&set.right);
    keeps
}

impl<'p> Explain<'p, '_> {
    fn query(&mut self, query: &'p QueryPlan, role: Role) -> Result<Part<'p>, MysqlError> {
        crate::stack::grow(|| match query {
            QueryPlan::Select(block) => self.block(block, role),
            QueryPlan::Values(rows) => {
                let id = self.new_block();
                let mut found = Found::new();
                for value in rows.iter().flatten() {
                    self.find_subqueries(value, &[], Place::Select, &mut found);
                }
                let below = self.subqueries(found)?;
                Ok(Part::Block(Box::new(without_tables(id, role, None, "No tables used", below, Texts::default()))))
            }
            QueryPlan::Set(set) => Ok(Part::Set(self.set(set, role, false)?)),
            QueryPlan::JsonTable(_) => unreachable!("a table function is a table of a block"),
            QueryPlan::Window(windows) => self.query(&windows.input, role),
        })
    }

    /// A block with window functions: the block whose rows they read, with them above it.
    fn windows(&mut self, plan: &'p SelectPlan, windows: &'p WindowPlan, role: Role) -> Result<Part<'p>, MysqlError> {
        let mut part = self.query(&windows.input, role)?;
        let found = self.find_in_block(plan);
        let below = self.subqueries(found)?;
        let texts = self.texts(plan);
        let block = part.first_block();
        if !below.is_empty() {
            block.role = block.role.first();
        }
        block.below.extend(below);
        let functions = windows.stages.iter().map(|stage| stage.calls.len()).sum();
        let sorts = windows.stages.iter().any(|stage| stage.sorts);
        block.windows = Some(Windows { plan, functions, sorts, texts });
        Ok(part)
    }

    fn set(&mut self, set: &'p SetPlan, role: Role, sorts: bool) -> Result<Set<'p>, MysqlError> {
        let mut list = Vec::new();
        let keeps = members(set, &mut list);
        let mut parts = Vec::new();
        for (at, member) in list.into_iter().enumerate() {
            let role = if at == 0 { role.first() } else { role.member(set.op) };
            parts.push(self.query(member, role)?);
        }
        Ok(Set { op: set.op, all: set.all, members: parts, keeps, sorts, plan: Some(set) })
    }

    fn new_block(&mut self) -> i64 {
        self.blocks += 1;
        self.blocks
    }

    fn block(&mut self, plan: &'p SelectPlan, role: Role) -> Result<Part<'p>, MysqlError> {
        if let Some(windows) = plan.windows() {
            return self.windows(plan, windows, role);
        }
        if let Some(query) = inside(plan) {
            let sorts = !plan.order.is_empty();
            if let QueryPlan::Set(set) = query {
                return Ok(Part::Set(self.set(set, role, sorts)?));
            }
            let part = self.query(query, if sorts { role.first() } else { role })?;
            return Ok(if sorts { Part::Sorted(Box::new(part)) } else { part });
        }
        let id = self.new_block();
        let mut below = Vec::new();
        let mut derived = Vec::with_capacity(plan.sources.len());
        for (table, source) in plan.sources.iter().enumerate() {
            let place = Place::From(table);
            derived.push(match &source.table {
                _ if self.is_function(source) => {
                    if let SourceTable::Query(RowsOf::Lateral(lateral), _) = &source.table {
                        let parts = self.parts.expect("a statement with a lateral table has parts");
                        self.name_outer(parts.subqueries[lateral.query].first_outer, &lateral.outer, &plan.sources);
                    }
                    None
                }
                SourceTable::Query(RowsOf::Derived(query), _) => {
                    let part = self.query(query, Role::Derived)?;
                    let id = part.id();
                    below.push(Below { place, dependent: false, part });
                    Some(id)
                }
                SourceTable::Query(RowsOf::Lateral(lateral), _) => {
                    let parts = self.parts.expect("a statement with a lateral table has parts");
                    let query = &parts.subqueries[lateral.query];
                    self.name_outer(query.first_outer, &lateral.outer, &plan.sources);
                    let part = self.query(&query.query, Role::DependentDerived)?;
                    let id = part.id();
                    below.push(Below { place, dependent: true, part });
                    Some(id)
                }
                SourceTable::Query(RowsOf::Common(number), _) => {
                    let (id, part) = self.common_table(*number)?;
                    below.extend(part.map(|part| Below { place, dependent: false, part }));
                    Some(id)
                }
                _ => None,
            });
        }
        let found = self.find_in_block(plan);
        below.extend(self.subqueries(found)?);
        let texts = self.texts(plan);
        if plan.steps.is_empty() {
            let block = without_tables(id, role, Some(plan), "No tables used", below, texts);
            return Ok(Part::Block(Box::new(block)));
        }
        if self.impossible(&plan.once)? {
            let block = without_tables(id, role, Some(plan), "Impossible WHERE", below, texts);
            return Ok(Part::Block(Box::new(block)));
        }
        let simple = below.is_empty() && derived.iter().all(Option::is_none);
        let role = if simple { role } else { role.first() };
        let mut tables: Vec<Table<'p>> = Vec::new();
        let mut estimate = cost::Estimate::new();
        let mut before_tests = Vec::new();
        for (at, step) in plan.steps.iter().enumerate() {
            let (before, cost) = (estimate.rows, estimate.cost);
            estimate.step(step);
            if let Step::Test { .. } = step {
                before_tests.push(tables.last().map_or(String::new(), |table| table.source.alias.clone()));
            }
            if let Step::Match { group } = step
                && let (Some(table), Some(before)) = (tables.last_mut(), before_tests.pop())
            {
                let anti = |step: &Step| matches!(step, Step::Test { group: of, anti: true, .. } if of == group);
                table.tests = Some(match plan.steps.iter().any(anti) {
                    true => Tests::NotExists,
                    false => Tests::FirstMatch(before),
                });
            }
            let Step::Scan(level) = step else { continue };
            let mut table = self.table(&plan.sources, level, !tables.is_empty())?;
            table.step = at;
            if plan.batches.iter().any(|batch| batch.level == at) {
                table.join_buffer = Some(BATCHED);
            }
            table.produced = before * level.produced();
            table.step_cost = estimate.cost - cost;
            table.prefix_cost = estimate.cost;
            if plan.vector.is_some() {
                table.notes.push(BATCHES);
            }
            if let Some(id) = derived[level.table] {
                table.name = format!("<derived{id}>");
            }
            tables.push(table);
        }
        Ok(Part::Block(Box::new(Block {
            id,
            role,
            plan: Some(plan),
            message: None,
            tables,
            below,
            temporary: plan.distinct || plan.grouping.as_ref().is_some_and(|g| !g.keys.is_empty()),
            sorts: !plan.order.is_empty(),
            windows: None,
            changes: None,
            texts,
        })))
    }

    /// The subqueries of a block's expressions.
    fn find_in_block(&mut self, plan: &'p SelectPlan) -> Found {
        let mut found = Found::new();
        let sources = &plan.sources;
        for expr in plan.once.iter().chain(plan.limit.iter()) {
            self.find_subqueries(expr, sources, Place::Once, &mut found);
        }
        if let Some(expr) = &plan.having {
            self.find_subqueries(expr, sources, Place::Having, &mut found);
        }
        for expr in &plan.items {
            self.find_subqueries(expr, sources, Place::Select, &mut found);
        }
        for key in &plan.order {
            self.find_subqueries(&key.expr, sources, Place::Order, &mut found);
        }
        if let Some(grouping) = &plan.grouping {
            for aggregate in &grouping.aggregates {
                let order = aggregate.order_by.iter().map(|(expr, _)| expr);
                for expr in aggregate.arguments.iter().chain(order) {
                    self.find_subqueries(expr, sources, Place::Select, &mut found);
                }
            }
            for key in &grouping.keys {
                self.find_subqueries(key, sources, Place::Group, &mut found);
            }
        }
        let mut last = Place::Once;
        for step in &plan.steps {
            match step {
                Step::Scan(level) => {
                    last = Place::Condition(level.table);
                    self.find_in_level(level, sources, &mut found);
                }
                Step::Enter { .. } | Step::Test { .. } | Step::Match { .. } => {}
                Step::Leave { filters, .. } => {
                    filters.iter().for_each(|filter| self.find_subqueries(filter, sources, last, &mut found));
                }
            }
        }
        found
    }

    /// The number of the first block of a common table, with its description where it has not been shown yet.
    fn common_table(&mut self, number: usize) -> Result<(i64, Option<Part<'p>>), MysqlError> {
        if let Some(&id) = self.common.get(&number) {
            return Ok((id, None));
        }
        self.common.insert(number, self.blocks + 1);
        let parts = self.parts.expect("a statement with a common table has parts");
        let CommonTablePlan { seed, recursive, .. } = &parts.tables[number];
        let mut part = self.query(seed, Role::Derived)?;
        let id = part.id();
        assert_eq!(id, self.common[&number], "the first block of a query takes the next number");
        if let Some(recursive) = recursive {
            let next = self.query(&recursive.query, Role::Member(SetOp::Union))?;
            part = Part::Set(Set {
                op: SetOp::Union,
                all: recursive.all,
                members: vec![part, next],
                keeps: !recursive.all,
                sorts: false,
                plan: None,
            });
        }
        Ok((id, Some(part)))
    }

    /// Notes the subqueries of an expression, and what the columns are called that they read of the block where it stands.
    fn find_subqueries(&mut self, expr: &Expr, sources: &[Source], place: Place, found: &mut Found) {
        let Some(parts) = self.parts else { return };
        if let ExprKind::Subquery(subquery) = &expr.kind {
            found.entry(subquery.id.0).or_insert(place);
            let first = parts.subqueries[subquery.id.0 as usize].first_outer;
            self.name_outer(first, &subquery.outer, sources);
        }
        expr.for_each_child(&mut |child| self.find_subqueries(child, sources, place, found));
    }

    /// Notes what the columns are called that a query reads of the block where it stands.
    fn name_outer(&mut self, first: usize, outer: &[Expr], sources: &[Source]) {
        for (at, outer) in outer.iter().enumerate() {
            let name = match outer.kind {
                ExprKind::Column { table, column } => sources.get(table).map(|source| column_name(source, column)),
                ExprKind::Parameter(parameter) => self.outer.get(&parameter).cloned().flatten(),
                _ => None,
            };
            self.outer.insert(first + at, name);
        }
    }

    fn find_in_level(&mut self, level: &Level, sources: &[Source], found: &mut Found) {
        let place = Place::Condition(level.table);
        level.access.for_each_expr(&mut |expr| self.find_subqueries(expr, sources, place, found));
        for filter in level.filters.iter().chain(&level.late_filters) {
            self.find_subqueries(filter, sources, place, found);
        }
        for expr in level.hash.iter().flat_map(|hash| hash.inner.iter().chain(&hash.outer)) {
            self.find_subqueries(expr, sources, place, found);
        }
    }

    fn subqueries(&mut self, found: Found) -> Result<Vec<Below<'p>>, MysqlError> {
        let mut below = Vec::new();
        for (id, place) in found {
            let parts = self.parts.expect("a statement with a subquery has parts");
            let subquery = &parts.subqueries[id as usize];
            let dependent = subquery.outer > 0;
            let role = if dependent { Role::DependentSubquery } else { Role::Subquery };
            self.numbers.insert(SubqueryId(id), self.blocks + 1);
            below.push(Below { place, dependent, part: self.query(&subquery.query, role)? });
        }
        Ok(below)
    }

    fn change(
        &mut self,
        role: Role,
        sources: &'p [Source],
        level: &'p Level,
        once: &[Expr],
        sorts: bool,
        mut found: Found,
    ) -> Result<Block<'p>, MysqlError> {
        let id = self.new_block();
        self.find_in_level(level, sources, &mut found);
        once.iter().for_each(|expr| self.find_subqueries(expr, sources, Place::Once, &mut found));
        let below = self.subqueries(found)?;
        let mut table = self.table(sources, level, false)?;
        let mut estimate = cost::Estimate::new();
        estimate.level(level);
        (table.produced, table.step_cost, table.prefix_cost) = (level.produced(), estimate.cost, estimate.cost);
        Ok(Block {
            id,
            role,
            plan: None,
            message: None,
            tables: vec![table],
            below,
            temporary: false,
            sorts,
            windows: None,
            changes: Some(role),
            texts: Texts::default(),
        })
    }

    /// Whether an expression has a value before anything is read.
    fn is_known(&self, expr: &Expr) -> bool {
        expr.is_constant() && !expr.has_subquery() && !self.reads_outer(expr)
    }

    /// Whether an expression reads a column of a block around its own.
    fn reads_outer(&self, expr: &Expr) -> bool {
        let Some(parts) = self.parts else { return false };
        let mut found = matches!(expr.kind, ExprKind::Parameter(parameter) if parameter >= parts.parameters);
        expr.for_each_child(&mut |child| found = found || self.reads_outer(child));
        found
    }

    fn impossible(&mut self, once: &[Expr]) -> Result<bool, MysqlError> {
        for condition in once {
            if self.is_known(condition) && !condition.eval_bool(&NoColumns, self.context)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the rows of a table are those of a table function.
    fn is_function(&self, source: &Source) -> bool {
        let query = match &source.table {
            SourceTable::Query(RowsOf::Derived(query), _) => &**query,
            SourceTable::Query(RowsOf::Lateral(lateral), _) => {
                let parts = self.parts.expect("a statement with a lateral table has parts");
                &parts.subqueries[lateral.query].query
            }
            _ => return false,
        };
        matches!(query, QueryPlan::JsonTable(_))
    }

    /// How a table is read. Its place among the steps is the caller's.
    fn table(&mut self, sources: &'p [Source], level: &'p Level, inner: bool) -> Result<Table<'p>, MysqlError> {
        let source = &sources[level.table];
        let schema = source.schema();
        let partitions = match &source.table {
            // A temporary table is in no partition of the node.
            SourceTable::Stored(table) if table.is_temporary() => None,
            SourceTable::Stored(table) if table.parts().is_some() => self.user_partitions(source, table, level)?,
            SourceTable::Stored(_) => self.partitions(level)?.map(named),
            SourceTable::Virtual(_) | SourceTable::Query(..) => None,
        };
        let all_partitions = match source.handle().and_then(TableHandle::parts) {
            Some(parts) => parts.count(),
            None => usize::from(level.partitions),
        };
        let access_type = self.access_type(&level.access);
        let mut notes = Vec::new();
        if let SourceTable::Query(RowsOf::Working(_), _) = &source.table {
            notes.push("Recursive");
        }
        if self.is_function(source) {
            notes.extend([TABLE_FUNCTION, "Using temporary"]);
        }
        if level.used_where {
            notes.push("Using where");
        }
        let index_of_one = index_of(&level.access).map(|access| {
            let index = &schema.indexes[access.index];
            let used = used_parts(&level.access, access, schema);
            let whole = matches!(access_type, "const" | "eq_ref" | "ref");
            Index {
                name: index.name.clone(),
                parts: index.parts[..used].iter().map(|part| schema.columns[part.column].name.as_str()).collect(),
                length: key_length(&level.access, access, schema).to_string(),
                references: if whole { self.references(access, sources) } else { vec![] },
            }
        });
        let (index, merge) = match &level.access {
            Access::Merge(merge) => {
                let (index, way) = merged(merge, &level.access, schema);
                // One index is read by a list of keys.
                (Some(index), (merge.parts.len() > 1).then_some(way))
            }
            _ => (index_of_one, None),
        };
        if index_of(&level.access).is_some_and(|access| access.reverse) {
            notes.push("Backward index scan");
        }
        if level.covering.is_some() && matches!(level.access, Access::Range(_)) {
            notes.push(COVERED);
        }
        if let Access::Skip(skip) = &level.access {
            notes.push(match skip.take {
                Take::All => "Using index for skip scan",
                Take::One | Take::Ends { .. } => "Using index for group-by",
            });
        }
        let join_buffer = (inner && level.buffered).then_some(match level.hash {
            Some(_) => "hash join",
            None => "Block Nested Loop",
        });
        let block = BlockNames { explain: self, sources, grouping: None };
        let filters = level.filters.iter().chain(&level.late_filters);
        let condition = block.all(filters);
        let keys = block.keys(level);
        let hash = level.hash.as_ref().and_then(|hash| {
            let pairs = hash.inner.iter().zip(&hash.outer);
            let pairs: Option<Vec<String>> = pairs
                .map(|(inner, outer)| Some(format!("({} = {})", block.text(inner)?, block.text(outer)?)))
                .collect();
            Some(pairs?.join(", "))
        });
        Ok(Table {
            source,
            level,
            step: 0,
            name: source.alias.clone(),
            partitions,
            all_partitions,
            access_type,
            possible: level.possible.iter().map(|&i| schema.indexes[i].name.as_str()).collect(),
            index,
            notes,
            tests: None,
            join_buffer,
            merge,
            produced: 0.0,
            step_cost: 0.0,
            prefix_cost: 0.0,
            condition,
            keys,
            hash,
        })
    }

    /// What is printed of a block's expressions.
    fn texts(&self, plan: &SelectPlan) -> Texts {
        if self.print == Print::No {
            return Texts::default();
        }
        let block = BlockNames { explain: self, sources: &plan.sources, grouping: plan.grouping.as_ref() };
        let list = |exprs: &[Expr]| exprs.iter().filter_map(|expr| block.text(expr)).collect::<Vec<String>>();
        let order = plan
            .order
            .iter()
            .filter_map(|key| Some(format!("{}{}", block.text(&key.expr)?, if key.descending { " DESC" } else { "" })));
        let leaves = plan.steps.iter().enumerate().filter_map(|(at, step)| match step {
            Step::Leave { filters, .. } => Some((at, block.all(filters.iter())?)),
            _ => None,
        });
        Texts {
            group: plan.grouping.as_ref().map_or_else(Vec::new, |grouping| list(&grouping.keys)),
            aggregates: plan.grouping.as_ref().map_or_else(Vec::new, |grouping| {
                (0..grouping.aggregates.len()).map(|number| block.group_value(number)).collect()
            }),
            having: plan.having.as_ref().and_then(|having| block.text(having)),
            order: order.collect(),
            limit: plan.limit.as_ref().and_then(|limit| block.text(limit)),
            offset: plan.offset.as_ref().and_then(|offset| block.text(offset)),
            leaves: leaves.collect(),
            once: block.all(plan.once.iter()),
        }
    }

    fn access_type(&self, access: &Access) -> &'static str {
        let known = |access: &IndexAccess| {
            access.condition.equal.iter().flat_map(|p| &p.values).all(|v| match v {
                KeyValue::Value(e) | KeyValue::NullSafe(e) => e.is_constant() && !self.reads_outer(e),
                KeyValue::Null => true,
            })
        };
        match access {
            Access::Full { .. } | Access::Virtual { .. } | Access::Rows => "ALL",
            Access::Primary(a) | Access::Unique(a) if a.condition.points() > 1 || a.condition.tuples.is_some() => {
                "range"
            }
            Access::Primary(a) | Access::Unique(a) => {
                if known(a) {
                    "const"
                } else {
                    "eq_ref"
                }
            }
            Access::Skip(_) => "range",
            Access::Merge(merge) if merge.parts.len() == 1 => "range",
            Access::Merge(_) => "index_merge",
            Access::Text(_) => "fulltext",
            Access::Range(a) => {
                let condition = &a.condition;
                if condition.is_empty() {
                    "index"
                } else if condition.range.is_none()
                    && condition.tuples.is_none()
                    && condition.any.is_empty()
                    && condition.points() == 1
                {
                    "ref"
                } else {
                    "range"
                }
            }
        }
    }

    fn references(&self, access: &IndexAccess, sources: &[Source]) -> Vec<String> {
        let name = |expr: &Expr| match expr.kind {
            ExprKind::Column { table, column } => column_name(&sources[table], column),
            ExprKind::Parameter(parameter) if self.reads_outer(expr) => {
                self.outer.get(&parameter).cloned().flatten().unwrap_or_else(|| "func".to_string())
            }
            _ if expr.is_constant() && !self.reads_outer(expr) => "const".to_string(),
            _ => "func".to_string(),
        };
        access
            .condition
            .equal
            .iter()
            .map(|part| match part.values.first() {
                Some(KeyValue::Value(expr) | KeyValue::NullSafe(expr)) => name(expr),
                _ => "const".to_string(),
            })
            .collect()
    }

    /// The partitions of a user's partitioned table that are read; `None`: nothing is.
    fn user_partitions(
        &mut self,
        source: &Source,
        table: &TableHandle,
        level: &Level,
    ) -> Result<Option<Vec<String>>, MysqlError> {
        let mut known = true;
        if let Some(prune) = &level.prune {
            prune.for_each_expr(&mut |expr| known = known && self.is_known(expr));
        }
        let zone = self.context.time_zone.clone();
        let prune = level.prune.as_deref().filter(|_| known);
        let read = prune::leaves(prune, source, &Joined::root(&zone), self.context)?;
        let partitioning = table.schema().partitioning.as_ref().expect("a partitioned table");
        let mut names = Vec::new();
        let leaves = partitioning.partitions.iter().flat_map(|of| of.leaves.iter().map(move |leaf| (of, leaf)));
        for (number, (of, leaf)) in leaves.enumerate() {
            let marked = |marks: Option<&Arc<[bool]>>| marks.is_none_or(|marks| marks[number]);
            if marked(read.as_ref()) && marked(table.leaves()) {
                names.push(match &leaf.name {
                    Some(sub) => format!("{}_{sub}", of.name),
                    None => of.name.clone(),
                });
            }
        }
        Ok((!names.is_empty()).then_some(names))
    }

    /// The partitions that are read; `None`: nothing is.
    fn partitions(&mut self, level: &Level) -> Result<Option<Vec<u16>>, MysqlError> {
        let key = match &level.access {
            Access::Full { distribution } => distribution.as_ref(),
            Access::Primary(a) | Access::Unique(a) | Access::Range(a) => a.distribution.as_ref(),
            Access::Skip(skip) => skip.access.distribution.as_ref(),
            Access::Merge(merge) => merge.parts.first().and_then(|part| part.distribution.as_ref()),
            Access::Virtual { .. } | Access::Rows | Access::Text(_) => None,
        };
        let count = level.partitions;
        let zone = self.context.time_zone.clone();
        let known = match key {
            Some(key) if key.values.iter().all(|value| self.is_known(value)) => {
                match distribution(Some(key), &NoColumns, &zone, self.context)? {
                    Distribution::Key(encoded) => Some(key::bucket(key::hash(&encoded))),
                    Distribution::Nothing => return Ok(None),
                    Distribution::Unknown => None,
                }
            }
            _ => None,
        };
        Ok(Some(match known {
            // Partitions hold contiguous ranges of buckets.
            Some(bucket) => vec![(u32::from(bucket) * u32::from(count) / u32::from(BUCKETS)) as u16],
            None => (0..count).collect(),
        }))
    }
}

/// The node's own partitions have numbers.
fn named(partitions: Vec<u16>) -> Vec<String> {
    partitions.iter().map(|partition| format!("p{partition}")).collect()
}

/// The indexes of an index merge, and how they are merged.
fn merged<'p>(merge: &'p MergeAccess, access: &Access, schema: &'p TableSchema) -> (Index<'p>, String) {
    let names: Vec<&str> = merge.parts.iter().map(|part| schema.indexes[part.index].name.as_str()).collect();
    let lengths: Vec<String> = merge.parts.iter().map(|part| key_length(access, part, schema).to_string()).collect();
    let parts = merge.parts.iter().flat_map(|part| {
        let used = used_parts(access, part, schema);
        schema.indexes[part.index].parts[..used].iter().map(|part| schema.columns[part.column].name.as_str())
    });
    let names = names.join(",");
    let way = format!("{}({names})", merge.way.name());
    (Index { name: names, parts: parts.collect(), length: lengths.join(","), references: vec![] }, way)
}

/// A block that reads nothing.
fn without_tables<'p>(
    id: i64,
    role: Role,
    plan: Option<&'p SelectPlan>,
    message: &'static str,
    below: Vec<Below<'p>>,
    texts: Texts,
) -> Block<'p> {
    let role = if below.is_empty() { role } else { role.first() };
    let message = Some(message);
    Block {
        id,
        role,
        plan,
        message,
        tables: vec![],
        below,
        temporary: false,
        sorts: false,
        windows: None,
        changes: None,
        texts,
    }
}
