//! EXPLAIN ANALYZE: the operators of a plan as a tree, each with what was estimated and what was counted.
//!
//! ```text
//! -> Limit: 10 row(s)  (actual time=0.412..0.412 rows=10 loops=1)
//!     -> Nested loop inner join  (cost=310.00 rows=30) (actual time=0.021..0.391 rows=28 loops=1)
//!         -> Filter: (t.a > 1)  (cost=110.00 rows=30) (actual time=0.019..0.100 rows=28 loops=1)
//!             -> Table scan on t  (cost=110.00 rows=100) (actual time=0.019..0.100 rows=100 loops=1)
//!         -> Single-row index lookup on u using PRIMARY (id = t.a)  (cost=1.00 rows=1) (actual time=… rows=1 loops=28)
//! ```
//! Times are milliseconds of one loop, up to its first row and up to its last; rows are those of one loop too, on
//! average. The time of an operator contains that of the operators below it. Conditions are checked where rows are read,
//! so a filter and what it reads have one time. What is measured runs row by row, and so somewhat slower than otherwise.
//! A change of several tables that had to find its rows more than once shows each time as a loop of what it reads.

use super::cost;
use super::describe::{BATCHED, Below, Block, COVERED, Described, Part, Place, Set, TABLE_FUNCTION, Table, Texts};
use super::model::{Access, ChangePlan, RowsOf, SelectPlan, SetOp, SourceTable, Step};
use crate::measure::{BlockMeasure, Measures, StepMeasure};
use std::fmt::Write;
use std::time::Duration;

/// `change`: what is done with the rows.
pub(super) fn text(described: &Described<'_>, change: Option<&ChangePlan>, measures: &Measures) -> String {
    let mut out = String::new();
    if let Described::Query(query) = described {
        let mut tree = Tree { measures };
        let mut operator = tree.part(query);
        if let Some(change) = change {
            operator = tree.change(change, operator);
        }
        print(&operator, 0, &mut out);
    }
    out
}

#[derive(Default)]
struct Operator {
    text: String,
    /// Cost and rows of one loop.
    estimated: Option<(f64, f64)>,
    actual: Option<Actual>,
    inputs: Vec<Operator>,
    /// Whether there is something to count.
    silent: bool,
}

/// Sums over all loops.
#[derive(Clone, Copy, Default)]
struct Actual {
    loops: u64,
    rows: u64,
    first: Duration,
    time: Duration,
}

fn print(operator: &Operator, depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', depth * 4));
    write!(out, "-> {}", operator.text).expect("a text takes a text");
    if let Some((cost, rows)) = operator.estimated {
        write!(out, "  (cost={cost:.2} rows={})", number(rows)).expect("a text takes a text");
    }
    match operator.actual {
        Some(actual) if actual.loops > 0 => {
            let gap = if operator.estimated.is_some() { " " } else { "  " };
            let each = |time: Duration| time.as_secs_f64() * 1000.0 / actual.loops as f64;
            let rows = number(actual.rows as f64 / actual.loops as f64);
            let (first, time, loops) = (each(actual.first), each(actual.time), actual.loops);
            write!(out, "{gap}(actual time={first:.3}..{time:.3} rows={rows} loops={loops})").expect("a text");
        }
        _ if operator.silent => {}
        _ => out.push_str(if operator.estimated.is_some() { " (never executed)" } else { "  (never executed)" }),
    }
    out.push('\n');
    crate::stack::grow(|| operator.inputs.iter().for_each(|input| print(input, depth + 1, out)));
}

/// A whole number, or one with two digits behind the point.
fn number(value: f64) -> String {
    if (value - value.round()).abs() < 0.005 { format!("{value:.0}") } else { format!("{value:.2}") }
}

struct Tree<'m> {
    measures: &'m Measures,
}

impl Tree<'_> {
    /// UPDATE or DELETE: its rows are those that were changed. All are found before the first of them is, which MySQL calls buffered.
    fn change(&mut self, change: &ChangePlan, rows: Operator) -> Operator {
        let changed = |step: &Step| match step {
            Step::Scan(level) if level.changed => {
                Some(format!("{} (buffered)", change.rows.sources[level.table].alias))
            }
            _ => None,
        };
        let tables: Vec<String> = change.rows.steps.iter().filter_map(changed).collect();
        let actual = self.measures.of(&change.targets).map(|run| Actual {
            loops: run.runs,
            rows: run.delivered,
            first: run.time,
            time: run.time,
        });
        let verb = if change.update { "Update" } else { "Delete from" };
        over(format!("{verb} {}", tables.join(", ")), actual, rows)
    }

    fn part(&mut self, query: &Part<'_>) -> Operator {
        crate::stack::grow(|| match query {
            Part::Block(block) => self.block(block),
            Part::Set(set) => self.set(set),
            Part::Sorted(of) => over("Sort".to_string(), None, self.part(of)),
        })
    }

    fn set(&mut self, set: &Set<'_>) -> Operator {
        let text = match (set.op, set.all) {
            (SetOp::Union, true) => "Append",
            (SetOp::Union, false) => "Union with deduplication",
            (SetOp::Except, true) => "Except all",
            (SetOp::Except, false) => "Except with deduplication",
            (SetOp::Intersect, true) => "Intersect all",
            (SetOp::Intersect, false) => "Intersect with deduplication",
        };
        let text = if set.plan.is_none() { "Repeat until no row is added".to_string() } else { text.to_string() };
        let text = if set.sorts { format!("{text}, then sort") } else { text };
        let actual = set.plan.and_then(|plan| self.measures.of(plan)).map(|run| Actual {
            loops: run.runs,
            rows: run.delivered,
            first: if set.keeps || set.sorts { run.time } else { Duration::ZERO },
            time: run.time,
        });
        let inputs = set.members.iter().map(|member| self.part(member)).collect();
        Operator { text, actual, inputs, silent: actual.is_none(), ..Operator::default() }
    }

    fn block(&mut self, block: &Block<'_>) -> Operator {
        let Some(plan) = block.plan else {
            return Operator { text: "Rows of VALUES".to_string(), silent: true, ..Operator::default() };
        };
        let run = self.measures.of(plan);
        let mut operator = match block.message {
            Some("No tables used") => {
                Operator { text: "Rows fetched before execution".to_string(), silent: true, ..Operator::default() }
            }
            Some(message) => Operator { text: format!("Zero rows ({message})"), silent: true, ..Operator::default() },
            None => self.joins(block, plan, run),
        };
        if let Some(once) = &block.texts.once
            && block.message.is_none()
        {
            operator = silent(format!("Filter once: {once}"), operator);
        }
        operator = self.results(&block.texts, plan, run, operator);
        if let Some(windows) = &block.windows {
            let run = self.measures.of(windows.plan);
            let actual = run.map(|run| Actual {
                loops: run.runs,
                rows: run.steps.first().map_or(0, |step| step.examined),
                first: run.time,
                time: run.time,
            });
            let text = match windows.sorts {
                true => format!("Window functions: {}, with sort", windows.functions),
                false => format!("Window functions: {}", windows.functions),
            };
            operator = over(text, actual, operator);
            operator = self.results(&windows.texts, windows.plan, run, operator);
        }
        for below in block.below.iter().filter(|below| !matches!(below.place, Place::From(_))) {
            let below = self.subquery(below);
            operator.inputs.push(below);
        }
        operator
    }

    fn subquery(&mut self, below: &Below<'_>) -> Operator {
        let place = match below.place {
            Place::Select => "in the select list",
            Place::Group => "in GROUP BY",
            Place::Having => "in HAVING",
            Place::Order => "in ORDER BY",
            Place::From(_) | Place::Condition(_) | Place::Once | Place::Values => "in a condition",
        };
        let how = if below.dependent { "dependent" } else { "run only once" };
        let text = format!("Select #{} (subquery {place}; {how})", below.part.id());
        silent(text, self.part(&below.part))
    }

    /// What happens to joined rows.
    fn results(
        &mut self,
        texts: &Texts,
        plan: &SelectPlan,
        run: Option<&BlockMeasure>,
        mut below: Operator,
    ) -> Operator {
        let whole = |rows: u64| run.map(|run| Actual { loops: run.runs, rows, first: run.time, time: run.time });
        let rows = |of: fn(&BlockMeasure) -> u64| run.map_or(0, of);
        if plan.grouping.is_some() {
            let list = texts.aggregates.join(", ");
            let text = match (texts.group.is_empty(), list.is_empty()) {
                (true, _) => format!("Aggregate: {list}"),
                (false, true) => format!("Group by {}", texts.group.join(", ")),
                (false, false) => format!("Aggregate: {list} by {}", texts.group.join(", ")),
            };
            let actual = whole(rows(|run| run.groups));
            below = over(text, actual, below);
        }
        if let Some(having) = &texts.having {
            let actual = if plan.distinct { None } else { whole(rows(|run| run.arrived)) };
            below = Operator { silent: plan.distinct, ..over(format!("Filter: {having}"), actual, below) };
        }
        if plan.distinct {
            below = over("Remove duplicates".to_string(), whole(rows(|run| run.arrived)), below);
        }
        let delivered = whole(rows(|run| run.delivered));
        if !texts.order.is_empty() {
            let mut text = format!("Sort: {}", texts.order.join(", "));
            if let Some(limit) = &texts.limit {
                write!(text, ", limit input to {limit} row(s)").expect("a text takes a text");
            }
            below = over(text, delivered, below);
        }
        if let Some(limit) = &texts.limit {
            let text = match &texts.offset {
                Some(offset) => format!("Limit/Offset: {limit}/{offset} row(s)"),
                None => format!("Limit: {limit} row(s)"),
            };
            below = over(text, delivered, below);
        }
        below
    }

    /// The nested loops of a block.
    fn joins(&mut self, block: &Block<'_>, plan: &SelectPlan, run: Option<&BlockMeasure>) -> Operator {
        let none = StepMeasure::default();
        let step = |at: usize| run.and_then(|run| run.steps.get(at)).unwrap_or(&none);
        let mut tables = block.tables.iter();
        let mut estimate = cost::Estimate::new();
        // Where each open group began, and what stands before it.
        let mut groups: Vec<(usize, Option<Operator>, bool)> = Vec::new();
        let mut current: Option<Operator> = None;
        // The first step of what `current` covers.
        let mut begin = 0;
        for (at, of) in plan.steps.iter().enumerate() {
            estimate.step(of);
            let joined = |begin: usize| run.is_some().then(|| covered(step, begin, at));
            match of {
                Step::Scan(_) => {
                    let table = tables.next().expect("each level is a table of the block");
                    let leaf = self.table(block, table, step(at));
                    current = Some(match current.take() {
                        None => {
                            begin = at;
                            leaf
                        }
                        Some(left) => Operator {
                            text: format!("{} inner join", loop_name(table)),
                            estimated: Some((estimate.cost, estimate.rows)),
                            actual: joined(begin),
                            inputs: vec![left, leaf],
                            silent: false,
                        },
                    });
                }
                Step::Enter { .. } => groups.push((begin, current.take(), false)),
                Step::Test { anti, .. } => groups.push((begin, current.take(), *anti)),
                Step::Leave { .. } | Step::Match { .. } => {
                    let (outer, left, anti) = groups.pop().expect("a group begins before it ends");
                    let kind = match of {
                        Step::Leave { .. } => "left join",
                        _ if anti => "antijoin",
                        _ => "semijoin",
                    };
                    let inner = current.take();
                    begin = outer;
                    let text = format!("Nested loop {kind}");
                    let mut operator = Operator {
                        text,
                        estimated: Some((estimate.cost, estimate.rows)),
                        actual: joined(begin),
                        inputs: left.into_iter().chain(inner).collect(),
                        silent: false,
                    };
                    if let Some(condition) = block.texts.leaves.get(&at) {
                        operator = silent(format!("Filter: {condition}"), operator);
                    }
                    current = Some(operator);
                }
            }
        }
        current.unwrap_or_default()
    }

    fn table(&mut self, block: &Block<'_>, table: &Table<'_>, step: &StepMeasure) -> Operator {
        let mut inputs = Vec::new();
        if let SourceTable::Query(rows, _) = &table.source.table {
            let below = block.below.iter().find(|below| below.place == Place::From(table.level.table));
            if let (Some(below), false) = (below, matches!(rows, RowsOf::Working(_))) {
                let query = self.part(&below.part);
                inputs.push(silent(format!("Materialize (select #{})", below.part.id()), query));
            }
        }
        let cost = table.level.cost;
        let read = |rows: u64| Actual { loops: step.loops, rows, first: step.first, time: step.time };
        let mut operator = Operator {
            text: access_text(table),
            estimated: Some((cost, table.level.rows as f64)),
            actual: Some(read(step.examined)),
            inputs,
            silent: false,
        };
        if table.join_buffer.is_some_and(|kind| kind != BATCHED) {
            let kept = step.kept.map_or(String::new(), |rows| format!(" ({rows} rows in memory)"));
            let text = match &table.hash {
                Some(hash) => format!("Probe hash table: {hash}{kept}"),
                None => format!("Read from join buffer{kept}"),
            };
            // It is read once; what is counted are the rows that were found in memory.
            let read = Operator { actual: None, silent: true, ..operator };
            operator = Operator {
                text,
                estimated: Some((cost, table.level.rows as f64)),
                actual: Some(Actual { loops: step.loops, rows: step.examined, first: step.first, time: step.time }),
                inputs: vec![read],
                silent: false,
            };
        }
        match &table.condition {
            None => operator,
            Some(condition) => Operator {
                text: format!("Filter: {condition}"),
                estimated: Some((cost, table.level.produced())),
                actual: Some(read(step.rows)),
                inputs: vec![operator],
                silent: false,
            },
        }
    }
}

fn loop_name(table: &Table<'_>) -> &'static str {
    match table.join_buffer {
        Some("hash join") => "Hash",
        Some(BATCHED) | None => "Nested loop",
        Some(_) => "Block nested loop",
    }
}

/// The steps from `begin` to `end` as one operator. What it hands on opens the step behind it.
fn covered<'s>(step: impl Fn(usize) -> &'s StepMeasure, begin: usize, end: usize) -> Actual {
    let first = step(begin);
    let time = (begin..=end).map(|at| step(at).time).sum();
    Actual { loops: first.loops, rows: step(end + 1).loops, first: first.first, time }
}

fn access_text(table: &Table<'_>) -> String {
    let name = &table.source.alias;
    let Some(index) = &table.index else {
        return match table.source.table {
            SourceTable::Query(RowsOf::Working(_), _) => format!("Scan new records on {name}"),
            _ if table.notes.contains(&TABLE_FUNCTION) => format!("Table scan on {name} (json_table)"),
            _ => format!("Table scan on {name}"),
        };
    };
    let reverse = if table.notes.contains(&"Backward index scan") { " (reverse)" } else { "" };
    let (of, keys) = (format!("on {name} using {}", index.name), &table.keys);
    let text = match (&table.level.access, table.access_type) {
        (Access::Primary(_) | Access::Unique(_), "const" | "eq_ref") => {
            format!("Single-row index lookup {of} ({keys})")
        }
        (_, "ref") => format!("Index lookup {of} ({keys}){reverse}"),
        (_, "index") => format!("Index scan {of}{reverse}"),
        _ => format!("Index range scan {of} over ({keys}){reverse}"),
    };
    match table.notes.contains(&COVERED) {
        true => format!("Covering i{}", &text[1..]),
        false => text,
    }
}

/// An operator that reads one other.
fn over(text: String, actual: Option<Actual>, input: Operator) -> Operator {
    Operator { text, estimated: None, silent: false, actual, inputs: vec![input] }
}

/// An operator for which nothing is counted.
fn silent(text: String, input: Operator) -> Operator {
    Operator { silent: true, ..over(text, None, input) }
}
