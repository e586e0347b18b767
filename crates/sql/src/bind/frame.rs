//! The names of one query block, and what a name means in each clause.
//!
//! WHERE and ON see the tables of FROM; the select list too, and its aggregates; GROUP BY prefers columns to aliases of the
//! select list. In HAVING a name is a grouped column first, then an alias, then any column. ORDER BY takes a name by itself as an
//! alias first (the select binder does that) and inside of expressions as a column first. Inside of an aggregate a column always
//! goes before an alias. A name that the block does not know is looked for in the blocks around it, by the rules of the clause in which the
//! subquery stands there.
//!
//! Column names compare without case, table names and aliases with case, as MySQL does on Linux.

use super::Binder;
use super::hints::BlockHints;
use super::names::{Clause, ambiguous, default_expression, literal, no_default, unknown_column, unknown_column_of};
use super::windows::PendingCall;
use crate::expr::{
    Aggregate, BoundSubquery, ColumnId, Expr, ExprKind, Resolved, Scope, SearchMode, WindowCall, fulltext,
};
use crate::logical;
use crate::parse::ast;
use rauk_types::error::codes;
use rauk_types::{ColumnDefault, MysqlError, TableSchema, Value};
use std::sync::Arc;

/// A table of FROM, as names see it.
pub(super) struct Table {
    /// Of a stored or computed table; a derived one has none.
    pub database: Option<String>,
    pub alias: String,
    /// Its own name does not mean it: it has an alias, or no other name.
    pub is_aliased: bool,
    /// Names and ids of its columns, hidden ones left out.
    pub columns: Vec<(String, ColumnId)>,
    /// Null rows may stand for it: the inner side of an outer join.
    pub null_rows: bool,
    /// For `DEFAULT(column)`.
    pub schema: Option<Arc<TableSchema>>,
}

/// A column that a bare name or `*` finds.
#[derive(Clone, Debug)]
pub(super) struct Visible {
    pub name: String,
    pub id: ColumnId,
}

/// An item of the select list that other clauses may name.
pub(super) struct Alias {
    pub name: String,
    pub expr: Expr,
}

/// Which aggregates may be made where an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregates {
    /// Error 1111.
    Refused,
    Allowed,
}

pub(super) struct Frame {
    pub tables: Vec<Table>,
    pub visible: Vec<Visible>,
    pub clause: Clause,
    /// Tables that names may mean while ON is bound; `None`: all.
    pub in_reach: Option<Vec<usize>>,
    pub aliases: Vec<Alias>,
    /// Aliases may be used in the present clause.
    pub use_aliases: bool,
    /// HAVING: the keys of GROUP BY.
    pub grouped: Option<Vec<Expr>>,
    pub aggregates: Vec<(ColumnId, Aggregate)>,
    /// GROUP BY … WITH ROLLUP.
    pub rollup: bool,
    /// Calls of GROUPING with their arguments.
    pub groupings: Vec<(ColumnId, Vec<Expr>)>,
    pub allowed: Aggregates,
    /// How many aggregates are around the name that is looked up.
    pub aggregates_around: usize,
    /// Calls of window functions.
    pub windows: Vec<PendingCall>,
    /// Window functions may stand in the present clause.
    pub takes_windows: bool,
    /// The window whose keys are being bound, as errors call it.
    pub in_window: Option<String>,
    /// How many calls of window functions are around what is bound.
    pub windows_around: usize,
    /// ON DUPLICATE KEY UPDATE: what `VALUES(column)` reads.
    pub inserted: Option<Vec<(String, ColumnId)>>,
    /// A derived table of this block is being bound, which does not see the block.
    pub hidden: bool,
    /// While FROM is bound: the columns of the tables before the present part of it, which LATERAL sees.
    pub before: Vec<Visible>,
    pub hints: Option<Box<BlockHints>>,
}

impl Frame {
    pub fn new() -> Frame {
        Frame {
            tables: vec![],
            visible: vec![],
            clause: Clause::FieldList,
            in_reach: None,
            aliases: vec![],
            use_aliases: false,
            grouped: None,
            aggregates: vec![],
            rollup: false,
            groupings: vec![],
            allowed: Aggregates::Refused,
            aggregates_around: 0,
            windows: vec![],
            takes_windows: false,
            in_window: None,
            windows_around: 0,
            inserted: None,
            hidden: false,
            before: vec![],
            hints: None,
        }
    }

    /// The column that a path names, with no regard to aliases.
    pub fn column(&self, path: &[&str]) -> Result<Option<ColumnId>, MysqlError> {
        let mut found = None;
        match path {
            [name] => {
                for visible in &self.visible {
                    if visible.name.eq_ignore_ascii_case(name) {
                        if found.is_some_and(|f| f != visible.id) {
                            return Err(ambiguous(path, self.clause));
                        }
                        found = Some(visible.id);
                    }
                }
            }
            [rest @ .., table, name] => {
                for (number, source) in self.tables.iter().enumerate() {
                    if self.in_reach.as_ref().is_some_and(|t| !t.contains(&number)) || source.alias != *table {
                        continue;
                    }
                    if let [database] = rest
                        && source.database.as_deref() != Some(*database)
                    {
                        continue;
                    }
                    for (_, id) in source.columns.iter().filter(|(column, _)| column.eq_ignore_ascii_case(name)) {
                        if found.is_some() {
                            return Err(ambiguous(path, self.clause));
                        }
                        found = Some(*id);
                    }
                }
            }
            [] => {}
        }
        Ok(found)
    }

    fn table_of(&self, id: ColumnId) -> Option<&Table> {
        self.tables.iter().find(|table| table.columns.iter().any(|(_, column)| *column == id))
    }

    /// Whether a column may be of a null row.
    pub fn null_rows(&self, id: ColumnId) -> bool {
        self.table_of(id).is_some_and(|table| table.null_rows)
    }

    /// `within`: the name stands in a subquery of the block, which sees the items of the select list that were bound before it.
    fn alias(&self, path: &[&str], within: bool) -> Result<Option<Expr>, MysqlError> {
        let [name] = path else { return Ok(None) };
        let mut found: Option<&Expr> = None;
        let in_reach = self.use_aliases || within && self.clause == Clause::FieldList;
        for alias in self.aliases.iter().filter(|_| in_reach) {
            if alias.name.eq_ignore_ascii_case(name) {
                if found.is_some_and(|f| *f != alias.expr) {
                    return Err(ambiguous(path, self.clause));
                }
                found = Some(&alias.expr);
            }
        }
        Ok(found.cloned())
    }

    /// The key of GROUP BY that a bare name in HAVING means: a column of that name, or what the select list calls so.
    fn grouped_key(&self, path: &[&str], keys: &[Expr]) -> Result<Option<Expr>, MysqlError> {
        let [name] = path else { return Ok(None) };
        let mut found: Option<&Expr> = None;
        for key in keys {
            let column = match key.kind {
                ExprKind::Reference(id) => self.name_of(id),
                _ => None,
            };
            let alias = |name: &str| self.aliases.iter().any(|a| a.name.eq_ignore_ascii_case(name) && a.expr == *key);
            // GROUP BY has taken the key for the column and not for a selected expression of its name.
            let hidden = column.is_some_and(|column| {
                self.aliases.iter().any(|a| a.name.eq_ignore_ascii_case(column) && a.expr != *key)
            });
            let matches = column.is_some_and(|column| column.eq_ignore_ascii_case(name)) || !hidden && alias(name);
            if matches {
                if found.is_some_and(|f| f != key) {
                    return Err(ambiguous(path, self.clause));
                }
                found = Some(key);
            }
        }
        Ok(found.cloned())
    }

    fn name_of(&self, id: ColumnId) -> Option<&str> {
        let of = |columns: &'_ [(String, ColumnId)]| columns.iter().position(|(_, column)| *column == id);
        self.tables.iter().find_map(|table| of(&table.columns).map(|at| table.columns[at].0.as_str()))
    }

    /// What a name means in this block; `None`: nothing. `within`: the name stands in a subquery.
    fn resolve(&self, path: &[&str], within: bool, binder: &Binder<'_>) -> Result<Option<Expr>, MysqlError> {
        if let Some(keys) = self.grouped.as_ref().filter(|_| self.aggregates_around == 0) {
            if let Some(expr) = self.grouped_key(path, keys)? {
                return Ok(Some(expr));
            }
            if let Some(expr) = self.alias(path, within)? {
                return Ok(Some(expr));
            }
        }
        if let Some(id) = self.column(path)? {
            return Ok(Some(binder.reference(id, self.null_rows(id))));
        }
        self.alias(path, within)
    }
}

impl<'a> Binder<'a> {
    pub(super) fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a query block is being bound")
    }

    pub(super) fn bind(&mut self, expr: &ast::Expr) -> Result<Expr, MysqlError> {
        let context = self.context;
        crate::expr::bind(expr, self, context)
    }

    /// Binds an expression of `clause` in the innermost block.
    pub(super) fn bind_in(&mut self, expr: &ast::Expr, clause: Clause) -> Result<Expr, MysqlError> {
        self.frame().clause = clause;
        self.bind(expr)
    }

    /// Notes that every subquery between a block and the innermost one reads these columns of the block.
    pub(super) fn note_outer(&mut self, level: usize, expr: &Expr) {
        let mut read = Vec::new();
        expr.for_each_reference(&mut |id, column| {
            if !read.iter().any(|(known, _)| *known == id) {
                read.push((id, column.clone()));
            }
        });
        for subquery in self.open.iter_mut().filter(|subquery| subquery.height > level) {
            for (id, column) in &read {
                if !subquery.outer.iter().any(|(known, _)| known == id) {
                    subquery.outer.push((*id, column.clone()));
                }
            }
        }
    }

    /// The name, in the innermost block that knows it.
    fn resolve_name(&mut self, path: &[&str]) -> Result<Option<Expr>, MysqlError> {
        for level in (0..self.frames.len()).rev() {
            let frame = &self.frames[level];
            if frame.hidden {
                continue;
            }
            if let Some(expr) = frame.resolve(path, level + 1 < self.frames.len(), self)? {
                let inner = level + 1 < self.frames.len();
                if frame.reads_windows(&expr) && (inner || frame.clause != Clause::OrderBy) {
                    return Err(windowed_alias(path));
                }
                if inner {
                    self.note_outer(level, &expr);
                }
                self.may_read(&expr)?;
                self.note_name(path, level, &expr);
                return Ok(Some(expr));
            }
        }
        Ok(None)
    }

    /// The block that an aggregate belongs to: the innermost one of those whose columns it reads, if it may have aggregates where the
    /// subquery stands; without columns the innermost of all.
    fn level_of(&self, aggregate: &Aggregate) -> usize {
        let mut level = None;
        let arguments = aggregate.arguments.iter().chain(aggregate.order_by.iter().map(|(expr, _)| expr));
        for argument in arguments {
            argument.for_each_reference(&mut |id, _| {
                let of = self.frames.iter().rposition(|frame| frame.makes(id));
                level = level.max(of);
            });
        }
        let innermost = self.frames.len() - 1;
        let level = level.unwrap_or(innermost);
        let allowed = |level: &usize| {
            let frame = &self.frames[*level];
            !frame.hidden && frame.allowed == Aggregates::Allowed
        };
        // WHERE has no aggregates: those of its subqueries belong to a block between, or to that in which they stand.
        if allowed(&level) { level } else { (level + 1..innermost).rev().find(allowed).unwrap_or(innermost) }
    }
}

impl Frame {
    /// Whether an expression reads what this block's grouping makes.
    pub fn reads_grouped(&self, expr: &Expr) -> bool {
        let mut reads = false;
        expr.for_each_reference(&mut |id, _| {
            reads |= self.aggregates.iter().any(|(known, _)| *known == id);
            reads |= self.groupings.iter().any(|(known, _)| *known == id);
        });
        reads
    }

    /// Whether an expression reads the value of a window function of this block.
    pub fn reads_windows(&self, expr: &Expr) -> bool {
        let mut reads = false;
        if !self.windows.is_empty() {
            expr.for_each_reference(&mut |id, _| reads |= self.windows.iter().any(|window| window.id == id));
        }
        reads
    }

    /// Whether a column comes from a table or an aggregate of this block.
    pub fn makes(&self, id: ColumnId) -> bool {
        self.table_of(id).is_some() || self.aggregates.iter().any(|(known, _)| *known == id)
    }
}

/// ER_WINDOW_INVALID_WINDOW_FUNC_ALIAS_USE. The last quote is MySQL's.
fn windowed_alias(path: &[&str]) -> MysqlError {
    let alias = path.last().copied().unwrap_or_default();
    let message =
        format!("You cannot use the alias '{alias}' of an expression containing a window function in this context.'");
    MysqlError::new(3594, message)
}

pub(super) fn invalid_use() -> MysqlError {
    MysqlError::new(codes::INVALID_GROUP_FUNC_USE, "Invalid use of group function")
}

impl Binder<'_> {
    /// The table that these columns of a derived table show columns of, and their positions there. Error 1210 for several tables.
    fn searchable_columns(&self, ids: &[ColumnId]) -> Result<(Option<&Arc<TableSchema>>, Vec<usize>), MysqlError> {
        let shown = |id: &ColumnId| self.searchable.iter().find(|shown| shown.column == *id);
        let Some(columns) = ids.iter().map(shown).collect::<Option<Vec<_>>>() else { return Ok((None, vec![])) };
        let first = columns.first();
        if columns.iter().any(|shown| first.is_some_and(|first| first.of != shown.of)) {
            return Err(crate::expr::wrong_arguments("MATCH"));
        }
        Ok((first.map(|shown| &shown.schema), columns.iter().map(|shown| shown.at).collect()))
    }
}

impl Binder<'_> {
    /// Names that a path might have meant: columns of the table that it names, or all columns and aliases in reach. None
    /// where some of them may not be read, since an error must not tell of them.
    fn names_in_reach(&self, path: &[&str]) -> Vec<&str> {
        if self.may_guard() {
            return Vec::new();
        }
        let frames = self.frames.iter().rev().filter(|frame| !frame.hidden);
        match path {
            [.., table, _] => {
                let tables = frames.flat_map(|frame| &frame.tables).filter(|source| source.alias == *table);
                tables.flat_map(|source| source.columns.iter().map(|(name, _)| name.as_str())).collect()
            }
            _ => frames.flat_map(frame_names).collect(),
        }
    }
}

fn frame_names(frame: &Frame) -> impl Iterator<Item = &str> {
    let aliases = frame.aliases.iter().filter(|_| frame.use_aliases).map(|alias| alias.name.as_str());
    frame.visible.iter().map(|column| column.name.as_str()).chain(aliases)
}

impl Scope for Binder<'_> {
    fn resolve(&mut self, path: &[&str]) -> Result<Resolved, MysqlError> {
        let clause = self.frames.last().map_or(Clause::FieldList, |frame| frame.clause);
        match self.resolve_name(path)? {
            Some(expr) => Ok(Resolved::Expression(expr)),
            None => Err(unknown_column_of(path, clause, self.names_in_reach(path))),
        }
    }

    fn aggregate(&mut self, aggregate: Aggregate) -> Result<ExprKind, MysqlError> {
        if self.frames.is_empty() {
            return Err(invalid_use());
        }
        let level = self.level_of(&aggregate);
        let frame = &self.frames[level];
        if frame.allowed == Aggregates::Refused {
            return Err(invalid_use());
        }
        if aggregate.arguments.iter().any(|argument| frame.reads_grouped(argument)) {
            return Err(invalid_use());
        }
        let known = frame.aggregates.iter().find(|(_, known)| *known == aggregate).map(|(id, _)| *id);
        let id = match known {
            Some(id) => id,
            None => {
                let nullable = aggregate.function.is_nullable();
                let id = self.add_column(aggregate.ty, nullable, String::new());
                self.frames[level].aggregates.push((id, aggregate));
                id
            }
        };
        if level + 1 < self.frames.len() {
            // The columns that it reads are read where it is computed, not in the subqueries between.
            if let Some(known) = self.before_arguments.last() {
                for (subquery, known) in self.open.iter_mut().zip(known).filter(|(s, _)| s.height > level) {
                    subquery.outer.truncate(*known);
                }
            }
            let expr = self.reference(id, true);
            self.note_outer(level, &expr);
        }
        Ok(ExprKind::Reference(id))
    }

    fn grouping(&mut self, arguments: Vec<Expr>) -> Result<ExprKind, MysqlError> {
        self.grouping_call(arguments)
    }

    fn enter_window(&mut self, name: &str) -> Result<(), MysqlError> {
        self.check_window_place(name)?;
        self.frame().windows_around += 1;
        Ok(())
    }

    fn leave_window(&mut self) {
        self.frame().windows_around -= 1;
    }

    fn window(&mut self, call: WindowCall, over: &ast::Window) -> Result<ExprKind, MysqlError> {
        Ok(self.register_window(call, over))
    }

    fn is_computed(&self, column: ColumnId) -> bool {
        let made = |frame: &Frame| {
            let aggregates = frame.aggregates.iter().map(|(id, _)| *id);
            aggregates.chain(frame.windows.iter().map(|call| call.id)).any(|id| id == column)
        };
        self.frames.iter().any(made)
    }

    fn is_of_system(&self, column: ColumnId) -> bool {
        self.lookup.is_system(&self.columns.get(column).result.database)
    }

    fn within_aggregate(&mut self, inside: bool) {
        if inside {
            self.before_arguments.push(self.open.iter().map(|subquery| subquery.outer.len()).collect());
        } else {
            self.before_arguments.pop();
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.aggregates_around = if inside { frame.aggregates_around + 1 } else { frame.aggregates_around - 1 };
        }
    }

    fn inserted_value(&mut self, column: &str) -> Result<Resolved, MysqlError> {
        let clause = self.frames.last().map_or(Clause::FieldList, |frame| frame.clause);
        let inserted = self.frames.last().and_then(|frame| frame.inserted.as_ref());
        let Some(inserted) = inserted else {
            // Outside of ON DUPLICATE KEY UPDATE, VALUES(column) is NULL.
            return match self.resolve_name(&[column])? {
                Some(expr) => Ok(Resolved::Expression(literal(Value::Null, expr.ty))),
                None => Err(unknown_column(&[column], clause)),
            };
        };
        match inserted.iter().find(|(name, _)| name.eq_ignore_ascii_case(column)) {
            Some(&(_, id)) => Ok(Resolved::Expression(self.reference(id, true))),
            None => Err(unknown_column(&[column], clause)),
        }
    }

    fn default_value(&mut self, column: &[&str]) -> Result<Expr, MysqlError> {
        let clause = self.frames.last().map_or(Clause::FieldList, |frame| frame.clause);
        let found = self.frames.last().map(|frame| frame.column(column)).transpose()?.flatten();
        let frame = self.frames.last();
        let Some((table, id)) = found.and_then(|id| Some((frame?.table_of(id)?, id))) else {
            return Err(unknown_column(column, clause));
        };
        let at = table.columns.iter().position(|(_, known)| *known == id);
        let definition = table.schema.as_ref().zip(at).map(|(schema, at)| &schema.columns[at]);
        let Some(definition) = definition else { return Err(no_default(column.last().copied().unwrap_or_default())) };
        if matches!(definition.default, ColumnDefault::Expression(_)) {
            return Err(MysqlError::new(3773, "DEFAULT function cannot be used with default value expressions"));
        }
        default_expression(definition, self.context)?.ok_or_else(|| no_default(&definition.name))
    }

    fn search(&mut self, columns: &[Expr], against: Expr, mode: SearchMode) -> Result<usize, MysqlError> {
        let id = |column: &Expr| match column.kind {
            ExprKind::Reference(id) => Some(id),
            _ => None,
        };
        let ids: Vec<ColumnId> = columns.iter().filter_map(id).collect();
        // All of one table, which may be one of a block around.
        let table = self.frames.iter().find_map(|frame| frame.table_of(*ids.first()?));
        let Some(table) = table.filter(|table| ids.iter().all(|id| table.columns.iter().any(|(_, known)| known == id)))
        else {
            return Err(crate::expr::wrong_arguments("MATCH"));
        };
        let (schema, positions) = match &table.schema {
            Some(schema) => {
                let position = |id: &ColumnId| table.columns.iter().position(|(_, known)| known == id);
                (Some(schema), ids.iter().filter_map(position).collect())
            }
            None => self.searchable_columns(&ids)?,
        };
        let index = schema.and_then(|schema| {
            let at = fulltext::index_of(schema, &positions)?;
            Some((schema.id, schema.indexes[at].id))
        });
        let Some((table, index)) = index else {
            return Err(MysqlError::new(1191, "Can't find FULLTEXT index matching the column list"));
        };
        let search = logical::Search { table, index, against, mode };
        // Conditions, order and list ask for the same one.
        let number = self.searches.iter().position(|known| *known == search).unwrap_or(self.searches.len());
        if number == self.searches.len() {
            self.searches.push(search);
        }
        Ok(number)
    }

    fn subquery(&mut self, query: &ast::Query) -> Result<BoundSubquery, MysqlError> {
        Binder::subquery(self, query)
    }

    fn subquery_texts(&mut self, bound: &mut BoundSubquery, wanted: &[bool]) {
        Binder::subquery_texts(self, bound, wanted);
    }
}
