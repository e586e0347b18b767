//! Queries and what they read from.
//!
//! Operands of set operations stand in parentheses where the parser would read another shape: an operand of a weaker
//! operator on the left, and every set operation of the same or a weaker operator on the right.

use super::{Construct, Print, Printer};
use crate::parse::ast::{
    CommonTable, Expr, FileFormat, Frame, FrameBound, FrameUnit, IndexHint, IndexHintAction, IndexHintScope, Into,
    IntoVariable, ItemName, Join, JoinCondition, JoinKind, JsonTable, JsonTableColumn, Limit, LockClause, LockStrength,
    LockWait, OnMissing, OrderItem, Query, QueryBody, Select, SelectItem, SetOp, TableFactor, TableReference, Window,
    WindowSpec, With,
};
use crate::stack;
use std::fmt;

fn strength(op: SetOp) -> u8 {
    match op {
        SetOp::Union | SetOp::Except => 1,
        SetOp::Intersect => 2,
    }
}

impl Printer<'_> {
    pub(super) fn query(&mut self, query: &Query) -> fmt::Result {
        stack::grow(|| {
            if self.reads.is_some() {
                return self.reads_of(query);
            }
            self.with(query.with.as_ref())?;
            self.query_behind_with(query)
        })
    }

    pub(super) fn query_behind_with(&mut self, query: &Query) -> fmt::Result {
        self.query_body(&query.body)?;
        self.order_by(&query.order_by)?;
        self.limit(query.limit.as_ref())?;
        for lock in &query.locks {
            self.lock(lock)?;
        }
        self.into(query.into.as_ref())
    }

    pub(super) fn subquery(&mut self, query: &Query) -> fmt::Result {
        self.text("(")?;
        self.query(query)?;
        self.text(")")
    }

    /// WITH and the blank behind it.
    pub(super) fn with(&mut self, with: Option<&With>) -> fmt::Result {
        let Some(with) = with else { return Ok(()) };
        let tables: Vec<&CommonTable> = with.tables.iter().filter(|table| !self.is_noted_unread(table)).collect();
        if tables.is_empty() {
            return Ok(());
        }
        self.text(if with.recursive { "with recursive " } else { "with " })?;
        self.list(&tables, |p, table| p.common_table(table))?;
        self.text(" ")
    }

    fn common_table(&mut self, table: &CommonTable) -> fmt::Result {
        self.name(&table.name)?;
        self.column_names(&table.columns)?;
        self.text(" as ")?;
        self.subquery(&table.query)
    }

    fn query_body(&mut self, body: &QueryBody) -> fmt::Result {
        stack::grow(|| match body {
            QueryBody::Select(select) => self.select(select),
            QueryBody::Query(query) => self.subquery(query),
            QueryBody::SetOperation { op, all, left, right } => {
                self.set_operand(left, strength(*op))?;
                self.text(match op {
                    SetOp::Union => " union ",
                    SetOp::Except => " except ",
                    SetOp::Intersect => " intersect ",
                })?;
                if *all {
                    self.text("all ")?;
                }
                self.set_operand(right, strength(*op) + 1)
            }
            QueryBody::Values(rows) => {
                self.meets_if(true, Construct::ValuesRows);
                self.text("values ")?;
                self.list(rows, |p, row| {
                    p.text("row(")?;
                    p.exprs(row)?;
                    p.text(")")
                })
            }
            QueryBody::Table(table) => {
                self.note_read(table);
                if self.noted_whole_table(table)? {
                    return Ok(());
                }
                self.meets_if(true, Construct::WholeTable);
                self.meets_table(table);
                self.text("table ")?;
                self.table_name(table)
            }
        })
    }

    /// An operand; in parentheses when it is a set operation weaker than `least`.
    fn set_operand(&mut self, body: &QueryBody, least: u8) -> fmt::Result {
        match body {
            QueryBody::SetOperation { op, .. } if strength(*op) < least => {
                self.text("(")?;
                self.query_body(body)?;
                self.text(")")
            }
            body => self.query_body(body),
        }
    }

    fn select(&mut self, select: &Select) -> fmt::Result {
        self.text("select ")?;
        for (is_set, word) in [
            (select.distinct, "distinct "),
            (select.straight_join, "straight_join "),
            (select.calc_found_rows, "sql_calc_found_rows "),
        ] {
            if is_set {
                self.text(word)?;
            }
        }
        self.list(&select.items, Self::select_item)?;
        if !select.from.is_empty() {
            self.text(" from ")?;
            self.tables(&select.from)?;
        } else if select.filter.is_some() || !select.group_by.is_empty() || select.having.is_some() {
            self.text(" from dual")?;
        }
        self.clause(" where ", select.filter.as_ref())?;
        if !select.group_by.is_empty() {
            self.text(" group by ")?;
            self.exprs(&select.group_by)?;
            if select.rollup {
                self.text(" with rollup")?;
            }
        }
        self.clause(" having ", select.having.as_ref())?;
        if !select.windows.is_empty() {
            self.text(" window ")?;
            self.list(&select.windows, |p, (name, spec)| {
                p.name(name)?;
                p.text(" as ")?;
                p.window_spec(spec)
            })?;
        }
        Ok(())
    }

    /// `word expression`, if there is one.
    pub(super) fn clause(&mut self, word: &str, expr: Option<&Expr>) -> fmt::Result {
        let Some(expr) = expr else { return Ok(()) };
        self.text(word)?;
        self.expr(expr)
    }

    pub(super) fn select_item(&mut self, item: &SelectItem) -> fmt::Result {
        if self.noted_star(item)? {
            return Ok(());
        }
        match item {
            SelectItem::Wildcard => self.text("*"),
            SelectItem::TableWildcard(table) => {
                self.table_name(table)?;
                self.text(".*")
            }
            SelectItem::Expr { expr, name: ItemName::Alias(name) | ItemName::Text(name) } => {
                self.expr(expr)?;
                self.text(" AS ")?;
                self.name(name)
            }
        }
    }

    // Order, limit, locks, INTO

    pub(super) fn order_by(&mut self, items: &[OrderItem]) -> fmt::Result {
        if items.is_empty() {
            return Ok(());
        }
        self.text(" order by ")?;
        self.list(items, Self::order_item)
    }

    fn order_item(&mut self, item: &OrderItem) -> fmt::Result {
        self.expr(&item.expr)?;
        self.text(if item.descending { " desc" } else { "" })
    }

    fn limit(&mut self, limit: Option<&Limit>) -> fmt::Result {
        let Some(Limit { count, offset }) = limit else { return Ok(()) };
        self.text(" limit ")?;
        match (offset, count) {
            (None, _) => self.expr(count),
            // `?` are numbered as they stand in the text.
            (Some(offset @ Expr::Parameter(second)), Expr::Parameter(first)) if first < second => {
                self.expr(count)?;
                self.text(" offset ")?;
                self.expr(offset)
            }
            (Some(offset), _) => {
                self.expr(offset)?;
                self.text(",")?;
                self.expr(count)
            }
        }
    }

    fn lock(&mut self, lock: &LockClause) -> fmt::Result {
        self.meets_lock(lock);
        self.text(match lock.strength {
            LockStrength::Update => " for update",
            LockStrength::Share => " for share",
        })?;
        if !lock.of.is_empty() {
            self.text(" of ")?;
            self.list(&lock.of, |p, table| p.table_name(table))?;
        }
        self.text(match lock.wait {
            LockWait::Wait => "",
            LockWait::NoWait => " nowait",
            LockWait::SkipLocked => " skip locked",
        })
    }

    fn into(&mut self, into: Option<&Into>) -> fmt::Result {
        match into {
            None => Ok(()),
            Some(Into::Variables(variables)) => {
                self.text(" into ")?;
                self.list(variables, |p, variable| match variable {
                    IntoVariable::User(name) => p.user_variable(name),
                    IntoVariable::Local(name) => p.name(name),
                })
            }
            Some(Into::OutFile(file)) => {
                self.text(" into outfile ")?;
                self.string(&file.path)?;
                if let Some(charset) = &file.charset {
                    self.text(" character set ")?;
                    self.name(charset)?;
                }
                self.file_format(&file.format)
            }
            Some(Into::DumpFile(path)) => {
                self.text(" into dumpfile ")?;
                self.string(path)
            }
        }
    }

    /// FIELDS and LINES, as far as they are not the usual ones.
    fn file_format(&mut self, format: &FileFormat) -> fmt::Result {
        let mut usual = FileFormat::default();
        if self.mode.no_backslash_escapes {
            usual.escaped.clear();
        }
        let enclosed = if format.optionally { " optionally enclosed by " } else { " enclosed by " };
        let fields = [
            (" terminated by ", &format.field_end, format.field_end == usual.field_end),
            (enclosed, &format.enclosed, format.enclosed.is_empty() && !format.optionally),
            (" escaped by ", &format.escaped, format.escaped == usual.escaped),
        ];
        let lines = [
            (" starting by ", &format.line_start, format.line_start == usual.line_start),
            (" terminated by ", &format.line_end, format.line_end == usual.line_end),
        ];
        for (clause, options) in [(" fields", fields.as_slice()), (" lines", lines.as_slice())] {
            if options.iter().all(|(_, _, usual)| *usual) {
                continue;
            }
            self.text(clause)?;
            for (words, bytes, _) in options.iter().filter(|(_, _, usual)| !usual) {
                self.text(words)?;
                match std::str::from_utf8(bytes) {
                    Ok(text) => self.string(text)?,
                    Err(_) => {
                        let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
                        self.text("0x")?;
                        self.text(&digits)?;
                    }
                }
            }
        }
        Ok(())
    }

    // FROM

    /// Tables between commas, as joins: `((a join b) join c)`.
    pub(super) fn tables(&mut self, tables: &[TableReference]) -> fmt::Result {
        let Some((first, others)) = tables.split_first() else { return Ok(()) };
        for _ in others {
            self.text("(")?;
        }
        self.table_reference(first)?;
        for table in others {
            self.text(" join ")?;
            self.table_reference(table)?;
            self.text(")")?;
        }
        Ok(())
    }

    fn table_reference(&mut self, table: &TableReference) -> fmt::Result {
        stack::grow(|| match table {
            TableReference::Table(table) => self.table_factor(table),
            TableReference::Derived { lateral, query, alias, columns } => {
                self.meets_if(*lateral, Construct::Lateral);
                self.meets_if(!columns.is_empty(), Construct::DerivedColumns);
                if *lateral {
                    self.text("lateral ")?;
                }
                self.subquery(query)?;
                self.text(" ")?;
                self.name(alias)?;
                self.column_names(columns)
            }
            TableReference::JsonTable(table) => self.json_table(table),
            TableReference::Join(join) => self.join(join),
        })
    }

    fn json_table(&mut self, table: &JsonTable) -> fmt::Result {
        self.text("json_table(")?;
        self.expr(&table.document)?;
        self.text(", ")?;
        self.string(&table.path)?;
        self.json_columns(&table.columns)?;
        self.text(") ")?;
        self.name(&table.alias)
    }

    fn json_columns(&mut self, columns: &[JsonTableColumn]) -> fmt::Result {
        self.text(" columns (")?;
        for (number, column) in columns.iter().enumerate() {
            self.text(if number == 0 { "" } else { ", " })?;
            stack::grow(|| self.json_column(column))?;
        }
        self.text(")")
    }

    fn json_column(&mut self, column: &JsonTableColumn) -> fmt::Result {
        match column {
            JsonTableColumn::Ordinality(name) => {
                self.name(name)?;
                self.text(" for ordinality")
            }
            JsonTableColumn::Value { name, column_type, options, path, on_empty, on_error } => {
                self.typed_name(name, column_type, options)?;
                self.text(" path ")?;
                self.string(path)?;
                self.on_missing(on_empty.as_ref(), " on empty")?;
                self.on_missing(on_error.as_ref(), " on error")
            }
            JsonTableColumn::Exists { name, column_type, options, path } => {
                self.typed_name(name, column_type, options)?;
                self.text(" exists path ")?;
                self.string(path)
            }
            JsonTableColumn::Nested { path, columns } => {
                self.text("nested path ")?;
                self.string(path)?;
                self.json_columns(columns)
            }
        }
    }

    fn on_missing(&mut self, action: Option<&OnMissing>, when: &str) -> fmt::Result {
        match action {
            None => return Ok(()),
            Some(OnMissing::Null) => self.text(" null")?,
            Some(OnMissing::Error) => self.text(" error")?,
            Some(OnMissing::Default(text)) => {
                self.text(" default ")?;
                self.string(text)?;
            }
        }
        self.text(when)
    }

    fn table_factor(&mut self, table: &TableFactor) -> fmt::Result {
        self.note_read(&table.name);
        self.meets_table(&table.name);
        self.table_name(&table.name)?;
        if !table.partitions.is_empty() {
            self.text(" partition")?;
            self.column_names(&table.partitions)?;
        }
        if let Some(alias) = &table.alias {
            self.text(" ")?;
            self.name(alias)?;
        }
        for hint in &table.hints {
            self.index_hint(hint)?;
        }
        Ok(())
    }

    fn index_hint(&mut self, hint: &IndexHint) -> fmt::Result {
        self.text(match hint.action {
            IndexHintAction::Use => " use index",
            IndexHintAction::Force => " force index",
            IndexHintAction::Ignore => " ignore index",
        })?;
        self.text(match hint.scope {
            None => " ",
            Some(IndexHintScope::Join) => " for join ",
            Some(IndexHintScope::OrderBy) => " for order by ",
            Some(IndexHintScope::GroupBy) => " for group by ",
        })?;
        self.names(&hint.indexes)
    }

    fn join(&mut self, join: &Join) -> fmt::Result {
        self.text("(")?;
        self.table_reference(&join.left)?;
        if join.condition == JoinCondition::Natural {
            self.text(" natural")?;
        }
        self.text(match join.kind {
            JoinKind::Inner => " join ",
            JoinKind::Straight => " straight_join ",
            JoinKind::Left => " left join ",
            JoinKind::Right => " right join ",
        })?;
        self.table_reference(&join.right)?;
        match &join.condition {
            JoinCondition::None | JoinCondition::Natural => {}
            JoinCondition::On(condition) => {
                self.text(" on(")?;
                self.expr(condition)?;
                self.text(")")?;
            }
            JoinCondition::Using(columns) => {
                self.text(" using ")?;
                self.names(columns)?;
            }
        }
        self.text(")")
    }

    // Windows

    pub(super) fn over(&mut self, window: &Window) -> fmt::Result {
        self.text(" over ")?;
        match window {
            Window::Named(name) => self.name(name),
            Window::Spec(spec) => self.window_spec(spec),
        }
    }

    fn window_spec(&mut self, spec: &WindowSpec) -> fmt::Result {
        self.text("(")?;
        // Each clause begins with a blank but the first.
        let mut blank = "";
        if let Some(base) = &spec.base {
            self.name(base)?;
            blank = " ";
        }
        if !spec.partition_by.is_empty() {
            write!(self.out, "{blank}partition by ")?;
            self.exprs(&spec.partition_by)?;
            blank = " ";
        }
        if !spec.order_by.is_empty() {
            write!(self.out, "{blank}order by ")?;
            self.list(&spec.order_by, Self::order_item)?;
            blank = " ";
        }
        if let Some(frame) = &spec.frame {
            self.text(blank)?;
            self.frame(frame)?;
        }
        self.text(")")
    }

    fn frame(&mut self, frame: &Frame) -> fmt::Result {
        self.meets_frame(frame);
        self.text(match frame.unit {
            FrameUnit::Rows => "rows ",
            FrameUnit::Range => "range ",
        })?;
        match &frame.end {
            None => self.frame_bound(&frame.start),
            Some(end) => {
                self.text("between ")?;
                self.frame_bound(&frame.start)?;
                self.text(" and ")?;
                self.frame_bound(end)
            }
        }
    }

    fn frame_bound(&mut self, bound: &FrameBound) -> fmt::Result {
        match bound {
            FrameBound::CurrentRow => self.text("current row"),
            FrameBound::UnboundedPreceding => self.text("unbounded preceding"),
            FrameBound::UnboundedFollowing => self.text("unbounded following"),
            FrameBound::Preceding(distance) => {
                self.expr(distance)?;
                self.text(" preceding")
            }
            FrameBound::Following(distance) => {
                self.expr(distance)?;
                self.text(" following")
            }
        }
    }
}

impl Print for Query {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.query(self)
    }
}

impl Print for Select {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.select(self)
    }
}

impl Print for SelectItem {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.select_item(self)
    }
}

impl Print for OrderItem {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.order_item(self)
    }
}

impl Print for TableReference {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.table_reference(self)
    }
}
