//! EXPLAIN in MySQL's twelve columns.
//!
//! A row shows a table of a block; rows come in the order of the blocks' numbers. `<derivedN>` is the table of the rows
//! that block N gives; `<unionN,M>` (with no id) is the result of a set operation that keeps its rows: every one but
//! UNION ALL without ORDER BY. `partitions` names the partitions of the table that are read, p0 to pn.

use super::describe::{Below, Block, Described, Part, Table, Tests};
use super::model::SetOp;
use rauk_types::Value;

const COLUMNS: usize = 12;

type Rows = Vec<Vec<Value>>;

pub(super) fn rows(described: &Described<'_>) -> Rows {
    let mut rows = Vec::new();
    match described {
        Described::Query(query) => part(query, &mut rows),
        Described::Change(change) => block(change, &mut rows),
        Described::Insert { replace, table, source, below } => {
            let mut first = empty_row(Some(1), if *replace { "REPLACE" } else { "INSERT" });
            first[2] = text(table);
            first[4] = text("ALL");
            rows.push(first);
            source.iter().for_each(|source| part(source, &mut rows));
            inner(below, &mut rows);
        }
    }
    rows
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

pub(super) fn operation_name(op: SetOp) -> &'static str {
    match op {
        SetOp::Union => "union",
        SetOp::Except => "except",
        SetOp::Intersect => "intersect",
    }
}

fn part(query: &Part<'_>, rows: &mut Rows) {
    crate::stack::grow(|| match query {
        Part::Block(of) => block(of, rows),
        Part::Set(set) => {
            set.members.iter().for_each(|member| part(member, rows));
            if set.keeps || set.sorts {
                let ids: Vec<i64> = set.members.iter().map(Part::id).collect();
                rows.push(result_row(operation_name(set.op), &ids, set.sorts));
            }
        }
        Part::Sorted(of) => {
            part(of, rows);
            rows.push(result_row("unary", &[of.id()], true));
        }
    })
}

fn inner(below: &[Below<'_>], rows: &mut Rows) {
    below.iter().for_each(|below| part(&below.part, rows));
}

fn block(block: &Block<'_>, rows: &mut Rows) {
    if let Some(message) = block.message {
        let mut row = empty_row(Some(block.id), block.changes.unwrap_or(block.role).name());
        row[11] = text(message);
        rows.push(row);
    }
    for (at, table) in block.tables.iter().enumerate() {
        let mut extra = Vec::new();
        if at == 0 && (block.temporary || block.windows.is_some()) {
            extra.push("Using temporary");
        }
        let windows = block.windows.as_ref();
        if at == 0 && (block.sorts || windows.is_some_and(|windows| windows.sorts || !windows.plan.order.is_empty())) {
            extra.push("Using filesort");
        }
        rows.push(table_row(block, table, extra));
    }
    inner(&block.below, rows);
}

fn table_row(block: &Block<'_>, table: &Table<'_>, extra: Vec<&str>) -> Vec<Value> {
    let mut row = empty_row(Some(block.id), block.role_of(table).name());
    row[2] = text(&table.name);
    if let Some(partitions) = &table.partitions {
        row[3] = text(&partitions.join(","));
    }
    row[4] = text(table.access_type);
    if !table.possible.is_empty() {
        row[5] = text(&table.possible.join(","));
    }
    if let Some(index) = &table.index {
        row[6] = text(&index.name);
        row[7] = text(&index.length);
        if !index.references.is_empty() {
            row[8] = text(&index.references.join(","));
        }
    }
    row[9] = Value::Int(table.level.rows.min(i64::MAX as u64) as i64);
    row[10] = Value::Double((table.level.filtered * 100.0).round() / 100.0);
    let merge = table.merge.as_ref().map(|merge| format!("Using {merge}"));
    let mut notes: Vec<&str> = merge.as_deref().into_iter().chain(table.notes.iter().copied()).collect();
    notes.extend(extra);
    let tests = table.tests.as_ref().map(|tests| match tests {
        Tests::FirstMatch(table) => format!("FirstMatch({table})"),
        Tests::NotExists => "Not exists".to_string(),
    });
    notes.extend(tests.as_deref());
    let buffer = table.join_buffer.map(|kind| format!("Using join buffer ({kind})"));
    notes.extend(buffer.as_deref());
    if !notes.is_empty() {
        row[11] = text(&notes.join("; "));
    }
    row
}
