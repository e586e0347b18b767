//! EXPLAIN, in MySQL's twelve columns.
//!
//! A row shows a table of a block. Blocks are numbered (`id`): a block first, then its derived and common tables in the order of FROM, then its
//! subqueries in the order in which they were bound, each with all that is in it; rows come in that order too. `<derivedN>` is the table of the
//! rows that block N gives; `<unionN,M>` (with no id) is the result of a set operation that keeps its rows: every one but UNION ALL without ORDER BY.
//!
//! `partitions` names the partitions of the table that are read, p0 to pn. The values of this execution decide that (and an impossible WHERE), so
//! EXPLAIN of a prepared statement shows what its parameters would do. It runs no subquery: what needs the answer of one, or a column of a
//! block around a subquery, is not known.

use super::Plan;
use super::model::{
    Access, CommonTablePlan, IndexAccess, InsertSource, KeyValue, Level, OnDuplicate, Parts, PlanKind, QueryPlan,
    RowsOf, SelectPlan, SetOp, SetPlan, Source, SourceTable, Step, WindowPlan,
};
use crate::exec::{Distribution, Joined, distribution};
use crate::expr::{AGGREGATES, Context, Expr, ExprKind, NoColumns};
use rauk_types::schema::BUCKETS;
use rauk_types::{DataType, MysqlError, TableSchema, TypeKind, Value, key};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

const COLUMNS: usize = 12;

type Rows = Vec<Vec<Value>>;

pub(super) fn rows(plan: &Plan, context: &mut Context) -> Result<Rows, MysqlError> {
    let parts = plan.parts.as_deref();
    let mut explain = Explain { parts, context, blocks: 0, common: FxHashMap::default(), outer: FxHashMap::default() };
    match &plan.kind {
        PlanKind::Select(select) => Ok(explain.block(select, Role::Main)?.1),
        PlanKind::Query(query) => Ok(explain.query(query, Role::Main)?.1),
        PlanKind::Update(update) => {
            let mut found = BTreeSet::new();
            for value in update.set.iter().filter_map(|set| set.value.as_ref()) {
                explain.find_subqueries(value, &update.sources, &mut found);
            }
            for key in &update.order {
                explain.find_subqueries(&key.expr, &update.sources, &mut found);
            }
            explain.change("UPDATE", &update.sources, &update.level, &update.once, !update.order.is_empty(), found)
        }
        PlanKind::Delete(delete) => {
            let mut found = BTreeSet::new();
            for expr in delete.order.iter().map(|key| &key.expr).chain(&delete.returning) {
                explain.find_subqueries(expr, &delete.sources, &mut found);
            }
            explain.change("DELETE", &delete.sources, &delete.level, &delete.once, !delete.order.is_empty(), found)
        }
        PlanKind::Change(change) => {
            let mut found = BTreeSet::new();
            for value in change.targets.iter().flat_map(|target| &target.set).filter_map(|set| set.value.as_ref()) {
                explain.find_subqueries(value, &[], &mut found);
            }
            for item in &change.returning {
                explain.find_subqueries(item, &[], &mut found);
            }
            let role = if found.is_empty() { Role::Main } else { Role::Primary };
            let mut rows = explain.block(&change.rows, role)?.1;
            // The rows of the block's tables come first.
            let levels = change.rows.steps.iter().filter_map(|step| match step {
                Step::Scan(level) => Some(level),
                _ => None,
            });
            let kind = if change.update { "UPDATE" } else { "DELETE" };
            if rows[0][2].is_null() {
                rows[0][1] = text(kind);
            } else {
                for (row, level) in rows.iter_mut().zip(levels) {
                    if level.changed {
                        row[1] = text(kind);
                    }
                }
            }
            rows.extend(explain.subqueries(found)?);
            Ok(rows)
        }
        PlanKind::Insert(insert) => {
            let name = if insert.on_duplicate == OnDuplicate::Replace { "REPLACE" } else { "INSERT" };
            let mut first = empty_row(Some(1), name);
            first[2] = text(&insert.table.schema().name);
            first[4] = text("ALL");
            let mut rows = vec![first];
            let mut found = BTreeSet::new();
            match &insert.source {
                InsertSource::Query(query, _) => rows.extend(explain.query(query, Role::Main)?.1),
                InsertSource::Rows(values) => {
                    explain.blocks = 1;
                    for value in values.iter().flatten().flatten() {
                        explain.find_subqueries(value, &[], &mut found);
                    }
                }
            }
            for value in insert.update.iter().filter_map(|set| set.value.as_ref()).chain(&insert.returning) {
                explain.find_subqueries(value, &[], &mut found);
            }
            rows.extend(explain.subqueries(found)?);
            Ok(rows)
        }
    }
}

/// What a block is in its statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The whole query: SIMPLE when there is no other block, else PRIMARY.
    Main,
    Primary,
    Derived,
    Subquery,
    DependentSubquery,
    /// A member of a set operation behind the first.
    Member(SetOp),
    DependentMember(SetOp),
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Main => "SIMPLE",
            Role::Primary => "PRIMARY",
            Role::Derived => "DERIVED",
            Role::Subquery => "SUBQUERY",
            Role::DependentSubquery => "DEPENDENT SUBQUERY",
            Role::Member(SetOp::Union) => "UNION",
            Role::Member(SetOp::Except) => "EXCEPT",
            Role::Member(SetOp::Intersect) => "INTERSECT",
            Role::DependentMember(SetOp::Union) => "DEPENDENT UNION",
            Role::DependentMember(SetOp::Except) => "DEPENDENT EXCEPT",
            Role::DependentMember(SetOp::Intersect) => "DEPENDENT INTERSECT",
        }
    }

    /// As the first member of a set operation.
    fn first(self) -> Role {
        if self == Role::Main { Role::Primary } else { self }
    }

    /// As another member of it.
    fn member(self, op: SetOp) -> Role {
        match self {
            Role::DependentSubquery | Role::DependentMember(_) => Role::DependentMember(op),
            _ => Role::Member(op),
        }
    }
}

struct Explain<'p, 'c> {
    parts: Option<&'p Parts>,
    context: &'c mut Context,
    /// Blocks that have a number.
    blocks: i64,
    /// The first block of each common table that has been shown.
    common: FxHashMap<usize, i64>,
    /// Parameters that are columns of the blocks around a subquery: their names, where they have one.
    outer: FxHashMap<usize, Option<String>>,
}

fn text(text: &str) -> Value {
    Value::Str(text.to_string())
}

fn empty_row(id: Option<i64>, kind: &str) -> Vec<Value> {
    let mut row = vec![Value::Null; COLUMNS];
    row[0] = id.map_or(Value::Null, Value::Int);
    row[1] = text(kind);
    row
}

/// The row of the result of an operation on the rows of blocks.
fn result_row(kind: &str, members: &[i64], sorts: bool) -> Vec<Value> {
    let members: Vec<String> = members.iter().map(i64::to_string).collect();
    let mut row = empty_row(None, &format!("{} RESULT", kind.to_ascii_uppercase()));
    row[2] = text(&format!("<{kind}{}>", members.join(",")));
    row[4] = text("ALL");
    row[11] = text(if sorts { "Using temporary; Using filesort" } else { "Using temporary" });
    row
}

fn operation_name(op: SetOp) -> &'static str {
    match op {
        SetOp::Union => "union",
        SetOp::Except => "except",
        SetOp::Intersect => "intersect",
    }
}

/// The query inside of a block that does no more than to convert its columns, to sort or to limit its rows.
fn inside(block: &SelectPlan) -> Option<&QueryPlan> {
    let [source] = block.sources.as_slice() else { return None };
    let SourceTable::Query(RowsOf::Derived(query), _) = &source.table else { return None };
    let filters = block.steps.iter().any(|step| match step {
        Step::Scan(level) => !level.filters.is_empty() || !level.late_filters.is_empty(),
        Step::Enter { .. } | Step::Leave { .. } => true,
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
    /// The rows of a query, with the number of its first block.
    fn query(&mut self, query: &'p QueryPlan, role: Role) -> Result<(i64, Rows), MysqlError> {
        crate::stack::grow(|| match query {
            QueryPlan::Select(block) => self.block(block, role),
            QueryPlan::Values(rows) => {
                let id = self.new_block();
                let mut found = BTreeSet::new();
                for value in rows.iter().flatten() {
                    self.find_subqueries(value, &[], &mut found);
                }
                let below = self.subqueries(found)?;
                Ok((id, self.with_message(id, role, "No tables used", below)))
            }
            QueryPlan::Set(set) => self.set(set, role, false),
            QueryPlan::Window(windows) => self.query(&windows.input, role),
        })
    }

    /// A block with window functions: the rows of what is below them, whose first table says what is sorted and kept.
    fn windows(
        &mut self,
        plan: &'p SelectPlan,
        windows: &'p WindowPlan,
        role: Role,
    ) -> Result<(i64, Rows), MysqlError> {
        let (id, mut rows) = self.query(&windows.input, role)?;
        let mut found = BTreeSet::new();
        for expr in plan.items.iter().chain(plan.order.iter().map(|key| &key.expr)).chain(plan.limit.iter()) {
            self.find_subqueries(expr, &plan.sources, &mut found);
        }
        let below = self.subqueries(found)?;
        let first = &mut rows[0];
        if !below.is_empty() {
            first[1] = text(role.first().name());
        }
        if !first[2].is_null() {
            let mut extra = match &first[11] {
                Value::Str(text) => text.split("; ").map(str::to_string).collect(),
                _ => vec![],
            };
            let sorts = !plan.order.is_empty() || windows.stages.iter().any(|stage| stage.sorts);
            for (applies, note) in [(true, "Using temporary"), (sorts, "Using filesort")] {
                if applies && !extra.iter().any(|known| known == note) {
                    extra.push(note.to_string());
                }
            }
            first[11] = text(&extra.join("; "));
        }
        rows.extend(below);
        Ok((id, rows))
    }

    fn set(&mut self, set: &'p SetPlan, role: Role, sorts: bool) -> Result<(i64, Rows), MysqlError> {
        let mut list = Vec::new();
        let keeps = members(set, &mut list);
        let mut ids = Vec::new();
        let mut rows = Vec::new();
        for (at, member) in list.into_iter().enumerate() {
            let role = if at == 0 { role.first() } else { role.member(set.op) };
            let (id, of_member) = self.query(member, role)?;
            ids.push(id);
            rows.extend(of_member);
        }
        if keeps || sorts {
            rows.push(result_row(operation_name(set.op), &ids, sorts));
        }
        Ok((ids[0], rows))
    }

    fn new_block(&mut self) -> i64 {
        self.blocks += 1;
        self.blocks
    }

    /// A row that says why a block has nothing to read, and the rows of the blocks in it.
    fn with_message(&self, id: i64, role: Role, extra: &str, below: Rows) -> Rows {
        let role = if below.is_empty() { role } else { role.first() };
        let mut row = empty_row(Some(id), role.name());
        row[11] = text(extra);
        let mut rows = vec![row];
        rows.extend(below);
        rows
    }

    fn block(&mut self, plan: &'p SelectPlan, role: Role) -> Result<(i64, Rows), MysqlError> {
        if let Some(windows) = plan.windows() {
            return self.windows(plan, windows, role);
        }
        if let Some(query) = inside(plan) {
            let sorts = !plan.order.is_empty();
            if let QueryPlan::Set(set) = query {
                return self.set(set, role, sorts);
            }
            let (id, mut rows) = self.query(query, if sorts { role.first() } else { role })?;
            if sorts {
                rows.push(result_row("unary", &[id], sorts));
            }
            return Ok((id, rows));
        }
        let id = self.new_block();
        let mut below = Vec::new();
        let mut derived = Vec::with_capacity(plan.sources.len());
        for source in &plan.sources {
            derived.push(match &source.table {
                SourceTable::Query(RowsOf::Derived(query), _) => {
                    let (id, rows) = self.query(query, Role::Derived)?;
                    below.extend(rows);
                    Some(id)
                }
                SourceTable::Query(RowsOf::Common(number), _) => {
                    let (id, rows) = self.common_table(*number)?;
                    below.extend(rows);
                    Some(id)
                }
                _ => None,
            });
        }
        let mut found = BTreeSet::new();
        let late = plan.having.iter().chain(&plan.items).chain(plan.order.iter().map(|key| &key.expr));
        for expr in plan.once.iter().chain(plan.limit.iter()).chain(late) {
            self.find_subqueries(expr, &plan.sources, &mut found);
        }
        if let Some(grouping) = &plan.grouping {
            for aggregate in &grouping.aggregates {
                let order = aggregate.order_by.iter().map(|(expr, _)| expr);
                for expr in aggregate.arguments.iter().chain(order) {
                    self.find_subqueries(expr, &plan.sources, &mut found);
                }
            }
            for key in &grouping.keys {
                self.find_subqueries(key, &plan.sources, &mut found);
            }
        }
        for step in &plan.steps {
            match step {
                Step::Scan(level) => self.find_in_level(level, &plan.sources, &mut found),
                Step::Enter { .. } => {}
                Step::Leave { filters, .. } => {
                    filters.iter().for_each(|filter| self.find_subqueries(filter, &plan.sources, &mut found));
                }
            }
        }
        below.extend(self.subqueries(found)?);
        if plan.steps.is_empty() {
            return Ok((id, self.with_message(id, role, "No tables used", below)));
        }
        if self.impossible(&plan.once)? {
            return Ok((id, self.with_message(id, role, "Impossible WHERE", below)));
        }
        let simple = below.is_empty() && derived.iter().all(Option::is_none);
        let role = if simple { role } else { role.first() };
        let mut rows = Vec::new();
        for step in &plan.steps {
            let Step::Scan(level) = step else { continue };
            let mut extra = Vec::new();
            if rows.is_empty() {
                if plan.distinct || plan.grouping.as_ref().is_some_and(|g| !g.keys.is_empty()) {
                    extra.push("Using temporary");
                }
                if !plan.order.is_empty() {
                    extra.push("Using filesort");
                }
            }
            let mut row = self.level_row(id, role.name(), &plan.sources, level, extra, !rows.is_empty())?;
            if let Some(id) = derived[level.table] {
                row[2] = text(&format!("<derived{id}>"));
            }
            rows.push(row);
        }
        rows.extend(below);
        Ok((id, rows))
    }

    /// The number of the first block of a common table, with its rows where they have not been shown yet.
    fn common_table(&mut self, number: usize) -> Result<(i64, Rows), MysqlError> {
        if let Some(&id) = self.common.get(&number) {
            return Ok((id, vec![]));
        }
        self.common.insert(number, self.blocks + 1);
        let parts = self.parts.expect("a statement with a common table has parts");
        let CommonTablePlan { seed, recursive, .. } = &parts.tables[number];
        let (id, mut rows) = self.query(seed, Role::Derived)?;
        assert_eq!(id, self.common[&number], "the first block of a query takes the next number");
        if let Some(recursive) = recursive {
            let (next, more) = self.query(&recursive.query, Role::Member(SetOp::Union))?;
            rows.extend(more);
            if !recursive.all {
                rows.push(result_row("union", &[id, next], false));
            }
        }
        Ok((id, rows))
    }

    /// Notes the subqueries of an expression, and what the columns are called that they read of the block where it stands.
    fn find_subqueries(&mut self, expr: &Expr, sources: &[Source], found: &mut BTreeSet<u32>) {
        let Some(parts) = self.parts else { return };
        if let ExprKind::Subquery(subquery) = &expr.kind {
            found.insert(subquery.id.0);
            let first = parts.subqueries[subquery.id.0 as usize].first_outer;
            for (at, outer) in subquery.outer.iter().enumerate() {
                let name = match outer.kind {
                    ExprKind::Column { table, column } if table != AGGREGATES => {
                        sources.get(table).map(|source| column_name(source, column))
                    }
                    ExprKind::Parameter(parameter) => self.outer.get(&parameter).cloned().flatten(),
                    _ => None,
                };
                self.outer.insert(first + at, name);
            }
        }
        expr.for_each_child(&mut |child| self.find_subqueries(child, sources, found));
    }

    fn find_in_level(&mut self, level: &Level, sources: &[Source], found: &mut BTreeSet<u32>) {
        level.access.for_each_expr(&mut |expr| self.find_subqueries(expr, sources, found));
        for filter in level.filters.iter().chain(&level.late_filters) {
            self.find_subqueries(filter, sources, found);
        }
        for expr in level.hash.iter().flat_map(|hash| hash.inner.iter().chain(&hash.outer)) {
            self.find_subqueries(expr, sources, found);
        }
    }

    /// The rows of subqueries.
    fn subqueries(&mut self, found: BTreeSet<u32>) -> Result<Rows, MysqlError> {
        let mut rows = Vec::new();
        for id in found {
            let parts = self.parts.expect("a statement with a subquery has parts");
            let subquery = &parts.subqueries[id as usize];
            let role = if subquery.outer > 0 { Role::DependentSubquery } else { Role::Subquery };
            rows.extend(self.query(&subquery.query, role)?.1);
        }
        Ok(rows)
    }

    fn change(
        &mut self,
        kind: &str,
        sources: &[Source],
        level: &Level,
        once: &[Expr],
        sorts: bool,
        mut found: BTreeSet<u32>,
    ) -> Result<Rows, MysqlError> {
        let id = self.new_block();
        self.find_in_level(level, sources, &mut found);
        once.iter().for_each(|expr| self.find_subqueries(expr, sources, &mut found));
        let extra = if sorts { vec!["Using filesort"] } else { vec![] };
        let mut rows = vec![self.level_row(id, kind, sources, level, extra, false)?];
        rows.extend(self.subqueries(found)?);
        Ok(rows)
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

    fn level_row(
        &mut self,
        id: i64,
        kind: &str,
        sources: &[Source],
        level: &Level,
        extra: Vec<&str>,
        inner: bool,
    ) -> Result<Vec<Value>, MysqlError> {
        let source = &sources[level.table];
        let schema = source.schema();
        let mut row = empty_row(Some(id), kind);
        row[2] = text(&source.alias);
        row[3] = match &source.table {
            SourceTable::Stored(_) => self.partitions(level)?,
            SourceTable::Virtual(_) | SourceTable::Query(..) => Value::Null,
        };
        let access_type = self.access_type(&level.access);
        row[4] = text(access_type);
        let visible: Vec<&str> = level.possible.iter().map(|&i| schema.indexes[i].name.as_str()).collect();
        if !visible.is_empty() {
            row[5] = text(&visible.join(","));
        }
        let mut notes: Vec<&str> = Vec::new();
        if let SourceTable::Query(RowsOf::Working(_), _) = &source.table {
            notes.push("Recursive");
        }
        if level.used_where {
            notes.push("Using where");
        }
        if let Some(access) = index_of(&level.access) {
            row[6] = text(&schema.indexes[access.index].name);
            row[7] = text(&key_length(access, schema).to_string());
            if matches!(access_type, "const" | "eq_ref" | "ref") {
                row[8] = text(&self.references(access, sources));
            }
            if access.reverse {
                notes.push("Backward index scan");
            }
        }
        row[9] = Value::Int(level.rows.min(i64::MAX as u64) as i64);
        row[10] = Value::Double((level.filtered * 100.0).round() / 100.0);
        notes.extend(extra);
        if inner && level.buffered {
            notes.push(if level.hash.is_some() {
                "Using join buffer (hash join)"
            } else {
                "Using join buffer (Block Nested Loop)"
            });
        }
        if !notes.is_empty() {
            row[11] = text(&notes.join("; "));
        }
        Ok(row)
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
            Access::Range(a) => {
                let condition = &a.condition;
                if condition.is_empty() {
                    "index"
                } else if condition.range.is_none() && condition.tuples.is_none() && condition.points() == 1 {
                    "ref"
                } else {
                    "range"
                }
            }
        }
    }

    fn references(&self, access: &IndexAccess, sources: &[Source]) -> String {
        let name = |expr: &Expr| match expr.kind {
            ExprKind::Column { table, column } => column_name(&sources[table], column),
            ExprKind::Parameter(parameter) if self.reads_outer(expr) => {
                self.outer.get(&parameter).cloned().flatten().unwrap_or_else(|| "func".to_string())
            }
            _ if expr.is_constant() && !self.reads_outer(expr) => "const".to_string(),
            _ => "func".to_string(),
        };
        let names: Vec<String> = access
            .condition
            .equal
            .iter()
            .map(|part| match part.values.first() {
                Some(KeyValue::Value(expr) | KeyValue::NullSafe(expr)) => name(expr),
                _ => "const".to_string(),
            })
            .collect();
        names.join(",")
    }

    fn partitions(&mut self, level: &Level) -> Result<Value, MysqlError> {
        let key = match &level.access {
            Access::Full { distribution } => distribution.as_ref(),
            Access::Primary(a) | Access::Unique(a) | Access::Range(a) => a.distribution.as_ref(),
            Access::Virtual { .. } | Access::Rows => None,
        };
        let count = level.partitions;
        let zone = self.context.time_zone.clone();
        let known = match key {
            Some(key) if key.values.iter().all(|value| self.is_known(value)) => {
                match distribution(Some(key), &Joined::root(&zone), self.context)? {
                    Distribution::Key(encoded) => Some(key::bucket(key::hash(&encoded))),
                    Distribution::Nothing => return Ok(Value::Null),
                    Distribution::Unknown => None,
                }
            }
            _ => None,
        };
        Ok(text(&match known {
            // Partitions hold contiguous ranges of buckets.
            Some(bucket) => format!("p{}", u32::from(bucket) * u32::from(count) / u32::from(BUCKETS)),
            None => (0..count).map(|p| format!("p{p}")).collect::<Vec<_>>().join(","),
        }))
    }
}

fn column_name(source: &Source, column: usize) -> String {
    let schema = source.schema();
    let name = &schema.columns[column].name;
    if schema.database.is_empty() {
        return format!("{}.{name}", source.alias);
    }
    format!("{}.{}.{name}", schema.database, source.alias)
}

fn index_of(access: &Access) -> Option<&IndexAccess> {
    match access {
        Access::Primary(access) | Access::Unique(access) | Access::Range(access) => Some(access),
        Access::Full { .. } | Access::Virtual { .. } | Access::Rows => None,
    }
}

/// Bytes of the key parts in use, as MySQL counts them.
fn key_length(access: &IndexAccess, schema: &TableSchema) -> u32 {
    let condition = &access.condition;
    let mut used = condition.fixed_parts() + usize::from(condition.range.is_some());
    let index = &schema.indexes[access.index];
    if used == 0 {
        used = index.parts.len();
    }
    index.parts[..used]
        .iter()
        .map(|part| {
            let column = &schema.columns[part.column];
            type_length(&column.ty, part.prefix) + u32::from(column.nullable)
        })
        .sum()
}

fn type_length(ty: &DataType, prefix: Option<u32>) -> u32 {
    let fraction = u32::from(ty.scale.min(6)).div_ceil(2);
    match ty.kind {
        TypeKind::Null => 0,
        TypeKind::TinyInt => 1,
        TypeKind::SmallInt => 2,
        TypeKind::MediumInt | TypeKind::Date => 3,
        TypeKind::Int | TypeKind::Float => 4,
        TypeKind::BigInt | TypeKind::Double => 8,
        TypeKind::Time => 3 + fraction,
        TypeKind::Timestamp => 4 + fraction,
        TypeKind::DateTime => 5 + fraction,
        TypeKind::Decimal => {
            let bytes = |digits: u32| digits / 9 * 4 + [0, 1, 1, 2, 2, 3, 3, 4, 4][(digits % 9) as usize];
            bytes(u32::from(ty.precision - ty.scale)) + bytes(u32::from(ty.scale))
        }
        TypeKind::Char => prefix.unwrap_or(ty.length) * 4,
        TypeKind::Binary => prefix.unwrap_or(ty.length),
        TypeKind::VarBinary => prefix.unwrap_or(ty.length) + 2,
        _ if ty.is_bytes() => prefix.unwrap_or(ty.length) + 2,
        _ => prefix.unwrap_or(ty.length).saturating_mul(4) + 2,
    }
}
