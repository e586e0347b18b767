//! The logical tree as people read it: one node a line, what it reads below it, further in.
//!
//! A column is `name#id`, or `#id` when it has no name. A subquery stands behind the tree, under the number by which expressions name it
//! (`select #2`), with the columns that it reads of the queries around it; so do common tables and what a statement writes.

use super::{Body, InsertSource, JoinKind, Node, Query, Scan, SetOp, SortKey, Statement, Target, WindowNode, Write};
use crate::expr::{AggregateFunction, ColumnId, Distance, Expr, FrameBound, WindowFrame, WindowFunction};
use std::fmt::Write as _;

impl Statement {
    /// The statement, a line for each node.
    pub fn print(&self) -> String {
        let mut printer = Printer { statement: self, out: String::new() };
        match &self.body {
            Body::Query(query) => printer.query(query, 0),
            Body::Write(write) => printer.write(write),
        }
        for (number, subquery) in self.subqueries.iter().enumerate().filter(|(_, subquery)| !subquery.is_gone()) {
            let reads = if subquery.outer.is_empty() {
                String::new()
            } else {
                format!(" reads {}", printer.columns(&subquery.outer))
            };
            printer.line(0, &format!("Subquery #{}{reads}", number + 2));
            printer.query(&subquery.query, 1);
        }
        for (number, table) in self.tables.iter().enumerate() {
            printer.line(0, &format!("Common table {number} {}", table.name));
            printer.query(&table.seed, 1);
            if let Some(recursive) = &table.recursive {
                printer.line(0, &format!("Recursive part{}", if recursive.all { " all" } else { "" }));
                printer.query(&recursive.query, 1);
            }
        }
        printer.out
    }
}

struct Printer<'a> {
    statement: &'a Statement,
    out: String,
}

impl Printer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        writeln!(self.out, "{:1$}{text}", "", depth * 2).expect("a string takes all text");
    }

    fn column(&self, id: ColumnId) -> String {
        format!("{}#{}", self.statement.columns.get(id).result.name, id.0)
    }

    fn columns(&self, ids: &[ColumnId]) -> String {
        ids.iter().map(|&id| self.column(id)).collect::<Vec<_>>().join(", ")
    }

    /// An expression; its columns, which print as `#id`, get their names.
    fn expr(&self, expr: &Expr) -> String {
        let text = expr.to_string();
        let mut out = String::with_capacity(text.len());
        let mut quoted = false;
        let mut rest = text.as_str();
        while let Some(next) = rest.chars().next() {
            rest = &rest[next.len_utf8()..];
            quoted ^= next == '\'';
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let column = next == '#' && !quoted && digits > 0 && !out.ends_with("select ");
            match rest[..digits].parse() {
                Ok(id) if column && (id as usize) < self.statement.columns.len() => {
                    out.push_str(&self.column(ColumnId(id)));
                    rest = &rest[digits..];
                }
                _ => out.push(next),
            }
        }
        out
    }

    fn exprs<'e>(&self, list: impl IntoIterator<Item = &'e Expr>, between: &str) -> String {
        list.into_iter().map(|expr| self.expr(expr)).collect::<Vec<_>>().join(between)
    }

    fn keys(&self, keys: &[SortKey]) -> String {
        let key = |key: &SortKey| format!("{}{}", self.expr(&key.expr), if key.descending { " desc" } else { "" });
        keys.iter().map(key).collect::<Vec<_>>().join(", ")
    }

    fn query(&mut self, query: &Query, depth: usize) {
        let mut given = Vec::new();
        query.node.columns(&mut given);
        if given != query.columns {
            let text = format!("Give {}", self.columns(&query.columns));
            self.line(depth, &text);
            return self.node(&query.node, depth + 1);
        }
        self.node(&query.node, depth);
    }

    fn node(&mut self, node: &Node, depth: usize) {
        crate::stack::grow(|| {
            let text = self.text(node);
            self.line(depth, &text);
            match node {
                Node::Derived(derived) => self.query(&derived.query, depth + 1),
                Node::Window(window) => self.query(&window.input, depth + 1),
                Node::SetOperation(operation) => {
                    self.query(&operation.left, depth + 1);
                    self.query(&operation.right, depth + 1);
                }
                node => node.for_each_input(&mut |input| self.node(input, depth + 1)),
            }
        });
    }

    fn text(&self, node: &Node) -> String {
        match node {
            Node::OneRow => "One row".to_string(),
            Node::Scan(scan) => self.scan(scan),
            Node::Values { columns, rows } => {
                let rows: Vec<String> = rows.iter().map(|row| format!("({})", self.exprs(row, ", "))).collect();
                format!("Values {}: {}", self.columns(columns), rows.join(", "))
            }
            Node::CommonTable(table) => {
                let kind = if table.working { "Working rows of" } else { "Rows of" };
                format!("{kind} common table {} {}: {}", table.table, table.alias, self.columns(&table.columns))
            }
            Node::Derived(derived) => format!("Derived {}", derived.alias),
            Node::Lateral(lateral) => format!(
                "Lateral {} (select #{}): {}",
                lateral.alias,
                lateral.subquery.0 + 2,
                self.columns(&lateral.columns)
            ),
            Node::TableFunction(function) => {
                format!("Json table of {}: {}", self.expr(&function.document), self.columns(&function.columns))
            }
            Node::Filter { conditions, having, .. } => {
                format!("{} {}", if *having { "Having" } else { "Filter" }, self.exprs(conditions, " and "))
            }
            Node::Project { items, .. } => {
                let item = |(id, expr): &(ColumnId, Expr)| format!("{} as {}", self.expr(expr), self.column(*id));
                format!("Project {}", items.iter().map(item).collect::<Vec<_>>().join(", "))
            }
            Node::Join(join) => {
                let kind = match join.kind {
                    JoinKind::Inner => "Join",
                    JoinKind::Left => "Left join",
                    JoinKind::Semi => "Semi join",
                    JoinKind::Anti => "Anti join",
                };
                let straight = if join.straight { " straight" } else { "" };
                let on = if join.on.is_empty() { "" } else { " on " };
                format!("{kind}{straight}{on}{}", self.exprs(&join.on, " and "))
            }
            Node::Aggregate(aggregate) => {
                let computed = |(id, aggregate): &(ColumnId, crate::expr::Aggregate)| {
                    let distinct = if aggregate.distinct { "distinct " } else { "" };
                    let arguments = self.exprs(&aggregate.arguments, ", ");
                    let star =
                        if aggregate.function == AggregateFunction::Count && arguments.is_empty() { "*" } else { "" };
                    format!("{:?}({distinct}{arguments}{star}) as #{}", aggregate.function, id.0)
                };
                let mut text = "Aggregate".to_string();
                if !aggregate.aggregates.is_empty() {
                    let list = aggregate.aggregates.iter().map(computed).collect::<Vec<_>>().join(", ");
                    text = format!("{text} {list}");
                }
                if !aggregate.keys.is_empty() {
                    text = format!("{text} by {}", self.exprs(&aggregate.keys, ", "));
                }
                text
            }
            Node::Window(window) => self.window(window),
            Node::Distinct { columns, .. } => format!("Distinct {}", self.columns(columns)),
            Node::Sort { keys, .. } => format!("Sort {}", self.keys(keys)),
            Node::Limit(limit) => {
                let offset = limit.offset.as_ref().map(|offset| format!(" offset {offset}")).unwrap_or_default();
                let count = limit.count.as_ref().map_or("all".to_string(), |count| self.expr(count));
                format!("Limit {count}{offset}")
            }
            Node::SetOperation(operation) => {
                let name = match operation.op {
                    SetOp::Union => "Union",
                    SetOp::Except => "Except",
                    SetOp::Intersect => "Intersect",
                };
                let all = if operation.all { " all" } else { "" };
                format!("{name}{all} {}", self.columns(&operation.columns))
            }
        }
    }

    fn window(&self, window: &WindowNode) -> String {
        let mut text = String::new();
        for stage in &window.stages {
            text.push_str(if text.is_empty() { "Window" } else { "; then" });
            for (number, (id, call, frame)) in stage.calls.iter().enumerate() {
                let name = match call.function {
                    WindowFunction::Aggregate(function) => format!("{function:?}"),
                    function => format!("{function:?}"),
                };
                let comma = if number > 0 { "," } else { "" };
                let frame = if call.function.uses_frame() { self.frame(frame) } else { String::new() };
                write!(text, "{comma} {name}({}){frame} as #{}", self.exprs(&call.arguments, ", "), id.0)
                    .expect("a string takes all text");
            }
            if !stage.partition.is_empty() {
                text.push_str(&format!(" partition by {}", self.exprs(&stage.partition, ", ")));
            }
            if !stage.order.is_empty() {
                text.push_str(&format!(" order by {}", self.keys(&stage.order)));
            }
        }
        text
    }

    fn frame(&self, frame: &WindowFrame) -> String {
        let bound = |bound: &FrameBound, unbounded: &str| match bound {
            FrameBound::Unbounded => unbounded.to_string(),
            FrameBound::CurrentRow => "current row".to_string(),
            FrameBound::Distance { by, preceding } => {
                let distance = match by {
                    Distance::Number(number) => self.expr(number),
                    Distance::Interval { moved, .. } => self.expr(moved),
                };
                format!("{distance} {}", if *preceding { "preceding" } else { "following" })
            }
        };
        let unit = if frame.range { "range" } else { "rows" };
        let (start, end) = (bound(&frame.start, "start"), bound(&frame.end, "end"));
        format!(" {unit} from {start} to {end}")
    }

    fn scan(&self, scan: &Scan) -> String {
        let name = &scan.schema().name;
        let alias = if *name == scan.alias { String::new() } else { format!(" {}", scan.alias) };
        let lock = if scan.lock.is_some() { " locking" } else { "" };
        format!("Scan {name}{alias}{lock}: {}", self.columns(&scan.columns))
    }

    fn write(&mut self, write: &Write) {
        match write {
            Write::Insert(insert) => {
                let name = &insert.table.schema().name;
                self.line(0, &format!("Insert {name}"));
                match &insert.source {
                    InsertSource::Query(query) => self.query(query, 1),
                    InsertSource::Rows(rows) => self.line(1, &format!("{} rows", rows.len())),
                    InsertSource::File(file) => self.line(1, &format!("File {}", file.name)),
                }
            }
            Write::Update(update) => self.target("Update", &update.target),
            Write::Delete(delete) => self.target("Delete", &delete.target),
            Write::Change(change) => {
                let names: Vec<&str> = change.targets.iter().map(|target| target.alias.as_str()).collect();
                let verb = if change.update { "Update" } else { "Delete" };
                self.line(0, &format!("{verb} {}", names.join(", ")));
                self.query(&change.rows, 1);
            }
        }
    }

    fn target(&mut self, kind: &str, target: &Target) {
        self.line(0, kind);
        let mut depth = 1;
        if let Some(limit) = &target.limit {
            let text = format!("Limit {}", self.expr(limit));
            self.line(depth, &text);
            depth += 1;
        }
        if !target.order.is_empty() {
            let text = format!("Sort {}", self.keys(&target.order));
            self.line(depth, &text);
            depth += 1;
        }
        if !target.conditions.is_empty() {
            let text = format!("Filter {}", self.exprs(&target.conditions, " and "));
            self.line(depth, &text);
            depth += 1;
        }
        let text = self.scan(&target.scan);
        self.line(depth, &text);
    }
}
