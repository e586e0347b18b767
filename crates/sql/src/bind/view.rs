//! Views: what CREATE VIEW stores, and a view in FROM.
//!
//! A view in FROM is a derived table whose query is bound by a binder of its own: with the lookup that the view's SQL SECURITY and database
//! decide, with the collation of its creation, and without any name of the statement around it. The merge pass then treats it like every derived table.
//! The binders of a statement share columns, subqueries and common tables, so that ids stay unique.
//!
//! Errors inside of a view that would tell its reader what it is made of (1054, 1142, 1146 and the like) become one error 1356, which names the
//! outermost view. A view that comes to read itself is error 1462; views in views count as queries in queries (1473).
//!
//! CREATE VIEW binds the query once with [`Defining`] in place: it collects the full name of every column and table and the columns of
//! each `*`, with which the query is printed for the catalog.

use super::change::is_merged;
use super::frame::{Frame, Table};
use super::{Binder, OpenSubquery};
use crate::expr::{BindContext, ColumnId, Expr, ExprKind};
use crate::logical::{Derived, Node, Query, Scan, ScanTable};
use crate::lookup::Lookup;
use crate::parse::ast::{self, ItemName, QueryBody, SelectItem};
use crate::parse::print::{self, FullColumn, FullNames};
use crate::parse::{self, Mode, Statement};
use crate::stack;
use rauk_types::error::codes;
use rauk_types::{ColumnDefault, DataType, MysqlError, ViewAlgorithm, ViewSchema};
use std::sync::Arc;

/// Characters of a view's column name.
const MAX_NAME: usize = 64;

/// A view around what is being bound.
#[derive(Clone)]
pub(super) struct Around {
    database: String,
    name: String,
    /// It is the one that the statement defines: its errors are the statement's own.
    defining: bool,
}

/// What CREATE VIEW makes of a query.
pub(crate) struct DefinedView {
    /// Canonical text with names in full.
    pub query: String,
    pub is_mergeable: bool,
    pub is_updatable: bool,
}

/// A column as SHOW COLUMNS and information_schema show it.
pub(crate) struct ViewColumn {
    pub name: String,
    pub ty: DataType,
    pub nullable: bool,
    /// Of the table's column that it shows.
    pub default: Option<ColumnDefault>,
}

/// Binds the query of a view that is being defined. Errors: those of the query, 1353, 1060, 1166, 1146.
pub(crate) fn define(
    database: &str,
    name: &str,
    columns: &[String],
    query: &ast::Query,
    lookup: &dyn Lookup,
    context: &BindContext,
) -> Result<DefinedView, MysqlError> {
    check_names(columns, &query.body)?;
    let mut binder = Binder::new(lookup, context);
    binder.views.push(Around { database: database.to_string(), name: name.to_string(), defining: true });
    binder.names = Some(FullNames::default());
    let bound = binder.query(query).map_err(|error| {
        // A view that would read itself finds no view of its name.
        let missing = format!("Table '{database}.{name}' doesn't exist");
        if error == recursion(database, name) { MysqlError::new(codes::NO_SUCH_TABLE, missing) } else { error }
    })?;
    binder.named_columns(name, columns, &bound)?;
    let names = binder.names.take().expect("it was set above");
    Ok(DefinedView {
        query: print::in_full(query, &names),
        is_mergeable: block_of(&bound.node).is_some(),
        is_updatable: is_updatable(&bound),
    })
}

/// What is known of a view as its tables are now.
pub(crate) struct Described {
    pub columns: Vec<ViewColumn>,
    pub is_updatable: bool,
    /// Tables and views that its FROM clauses name, without those in expressions.
    pub tables: Vec<(String, String)>,
}

/// Errors: 1356, 1449, 1462.
pub(crate) fn describe(view: &ViewSchema, lookup: &dyn Lookup, context: &BindContext) -> Result<Described, MysqlError> {
    let mut binder = Binder::new(lookup, context);
    let bound = binder.query_of(view, false)?;
    let columns = binder.described(&view.name, &view.columns, &bound)?;
    let mut tables = Vec::new();
    tables_of(&bound.node, &mut tables);
    let is_updatable = view.algorithm != ViewAlgorithm::Temptable && is_updatable(&bound);
    Ok(Described { columns, is_updatable, tables })
}

fn tables_of(node: &Node, tables: &mut Vec<(String, String)>) {
    let name = match node {
        Node::Scan(scan) => Some((scan.schema().database.clone(), scan.schema().name.clone())),
        Node::Derived(derived) => derived.view.as_ref().map(|view| view.full_name()),
        _ => None,
    };
    match name {
        Some(name) if tables.contains(&name) => {}
        Some(name) => tables.push(name),
        None => node.for_each_input(&mut |input| stack::grow(|| tables_of(input, tables))),
    }
}

/// The stored column that a column of a tree shows as it is.
fn base_column(node: &Node, id: ColumnId) -> Option<&rauk_types::Column> {
    base_of(node, id).map(|(scan, at)| &scan.schema().columns[at])
}

/// The table whose column a column of a tree shows as it is, and the column's position there.
pub(super) fn base_of(node: &Node, id: ColumnId) -> Option<(&Scan, usize)> {
    match node {
        Node::Scan(scan) => scan.columns.iter().position(|&column| column == id).map(|at| (&**scan, at)),
        Node::Project { input, items } => match items.iter().find(|(item, _)| *item == id)?.1.kind {
            ExprKind::Reference(of) => stack::grow(|| base_of(input, of)),
            _ => None,
        },
        Node::SetOperation(_) => None,
        node => {
            let mut found = None;
            node.for_each_input(&mut |input| found = found.or_else(|| stack::grow(|| base_of(input, id))));
            found
        }
    }
}

/// Items that have no alias and whose text is no name are called `Name_exp_1` by their number.
pub(crate) fn name_items(query: &mut ast::Query) {
    let mut body = &mut query.body;
    let select = loop {
        match body {
            QueryBody::Select(select) => break select,
            QueryBody::SetOperation { left, .. } => body = left,
            QueryBody::Query(query) => body = &mut query.body,
            QueryBody::Values(_) | QueryBody::Table(_) => return,
        }
    };
    for (number, item) in select.items.iter_mut().enumerate() {
        if let SelectItem::Expr { name: ItemName::Text(name), .. } = item
            && !is_name(name)
        {
            *name = format!("Name_exp_{}", number + 1);
        }
    }
}

/// The tables of a query that is one block without grouping, DISTINCT, ORDER BY … LIMIT and the like, and that reads a table.
fn block_of(node: &Node) -> Option<&Node> {
    match node {
        Node::Sort { input, .. } => block_of(input),
        Node::Project { input, .. } => {
            let mut node = &**input;
            while let Node::Filter { input, having: false, .. } = node {
                node = input;
            }
            matches!(node, Node::Scan(_) | Node::Join(_) | Node::Derived(_)).then_some(node)
        }
        _ => None,
    }
}

/// Whether rows of a view are rows of its tables, one of whose columns it shows: of stored tables and of other such views.
pub(super) fn is_updatable(query: &Query) -> bool {
    fn leaves(node: &Node) -> bool {
        match node {
            Node::Scan(scan) => matches!(scan.table, ScanTable::Stored(_)),
            Node::Join(join) => stack::grow(|| leaves(&join.left) && leaves(&join.right)),
            Node::Derived(derived) => {
                let is_view = derived.view.as_ref().is_some_and(|view| view.algorithm != ViewAlgorithm::Temptable);
                is_view && stack::grow(|| is_updatable(&derived.query))
            }
            _ => false,
        }
    }
    let mut node = &query.node;
    while let Node::Sort { input, .. } = node {
        node = input;
    }
    let Node::Project { items, .. } = node else { return false };
    let shows = items.iter().any(|(_, item)| matches!(item.kind, ExprKind::Reference(_)));
    shows && block_of(node).is_some_and(leaves)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.ends_with(' ') && name.chars().nth(MAX_NAME).is_none()
}

/// Error 1166 for aliases and listed names that are no column names.
fn check_names(columns: &[String], mut body: &QueryBody) -> Result<(), MysqlError> {
    let wrong = |name: &str| Err(MysqlError::new(codes::WRONG_COLUMN_NAME, format!("Incorrect column name '{name}'")));
    if let Some(name) = columns.iter().find(|name| !is_name(name)) {
        return wrong(name);
    }
    if !columns.is_empty() {
        return Ok(());
    }
    loop {
        match body {
            QueryBody::Select(select) => {
                for item in &select.items {
                    if let SelectItem::Expr { name: ItemName::Alias(name), .. } = item
                        && !is_name(name)
                    {
                        return wrong(name);
                    }
                }
                return Ok(());
            }
            QueryBody::SetOperation { left, .. } => body = left,
            QueryBody::Query(query) => body = &query.body,
            QueryBody::Values(_) | QueryBody::Table(_) => return Ok(()),
        }
    }
}

impl Binder<'_> {
    /// A view as a table of the innermost frame.
    pub(super) fn view(
        &mut self,
        alias: &str,
        is_aliased: bool,
        view: Arc<ViewSchema>,
    ) -> Result<(Node, Table), MysqlError> {
        let read = self.read.len();
        let hinted = self.hint_merge(alias);
        // As in MySQL a view that says how it is read is read so.
        let apart = match view.algorithm {
            ViewAlgorithm::Temptable => Some(true),
            ViewAlgorithm::Merge => Some(false),
            ViewAlgorithm::Undefined => hinted,
        };
        // The rows of one that the statement may change through are those of its tables in any case.
        let kept = match view.algorithm {
            ViewAlgorithm::Undefined if self.is_opening() => false,
            _ => apart.unwrap_or(!self.switches.derived_merge()),
        };
        let query = self.query_of(&view, kept)?;
        let mut columns = self.named_columns(alias, &view.columns, &query)?;
        let opened = self.opened(alias, &view, query, &mut columns, read)?;
        let table = Table {
            database: Some(view.database.clone()),
            alias: alias.to_string(),
            is_aliased,
            columns,
            null_rows: false,
            schema: None,
        };
        let node = match opened {
            Ok(node) => node,
            Err(query) => Node::Derived(Box::new(Derived {
                alias: alias.to_string(),
                query,
                view: Some(view),
                lock: None,
                apart,
                pushdown: self.hint_pushdown(alias),
            })),
        };
        Ok((node, table))
    }

    /// The bound query of a view. Errors: 1356, 1449, 1462, 1473.
    fn query_of(&mut self, view: &ViewSchema, kept: bool) -> Result<Query, MysqlError> {
        if self.views.iter().any(|around| around.database == view.database && around.name == view.name) {
            return Err(recursion(&view.database, &view.name));
        }
        let outermost = self.views.iter().all(|around| around.defining);
        let bound = self.deeper(|binder| stack::grow(|| binder.within(view, kept)));
        if outermost { bound.map_err(|error| hidden(error, &view.database, &view.name)) } else { bound }
    }

    /// `kept`: its rows are read before the first change.
    fn within(&mut self, view: &ViewSchema, kept: bool) -> Result<Query, MysqlError> {
        let parsed = parse::parse_within(&view.query, Mode::default(), &self.context.memory)?.statement;
        let height = parsed.height;
        let Statement::Query(query) = &*parsed else { return Err(invalid(&view.database, &view.name)) };
        let lookup = self.lookup.within(view)?;
        let context = BindContext {
            parameters: Vec::new(),
            collation: view.collation,
            sql_mode: self.context.sql_mode,
            variable_type: self.context.variable_type,
            user_variables: Default::default(),
            memory: self.context.memory.clone(),
            arrays: false,
            waits: self.context.waits.clone(),
            switches: self.switches,
            usual_switches: self.context.usual_switches,
        };
        let mut views = self.views.clone();
        views.push(Around { database: view.database.clone(), name: view.name.clone(), defining: false });
        let mut binder = Binder {
            columns: std::mem::take(&mut self.columns),
            subqueries: std::mem::take(&mut self.subqueries),
            tables: std::mem::take(&mut self.tables),
            searches: std::mem::take(&mut self.searches),
            nesting: self.nesting,
            targets: self.targets.clone(),
            operation: self.operation,
            read: std::mem::take(&mut self.read),
            // What is read in a subquery is noted, in a view too; outer columns are out of its reach.
            open: if self.open.is_empty() { vec![] } else { vec![OpenSubquery { height: 0, outer: vec![], id: None }] },
            materialized: self.materialized + usize::from(kept || !is_merged(query)),
            views,
            ..Binder::new(&*lookup, &context)
        };
        let bound = stack::with_room(height, || binder.query(query));
        let Binder { columns, subqueries, tables, searches, read, .. } = binder;
        self.searches = searches;
        self.read = read;
        self.columns = columns;
        self.subqueries = subqueries;
        self.tables = tables;
        bound
    }

    fn described(&mut self, name: &str, columns: &[String], query: &Query) -> Result<Vec<ViewColumn>, MysqlError> {
        let named = self.named_columns(name, columns, query)?;
        let column = |(name, id): (String, ColumnId)| {
            let column = self.columns.get(id);
            let default = base_column(&query.node, id).map(|column| column.default.clone());
            ViewColumn { name, ty: column.ty, nullable: column.nullable, default }
        };
        Ok(named.into_iter().map(column).collect())
    }

    /// Error 1443 in the place of 1093: a view is between the statement and the table that it changes, or between it and the table that a subquery
    /// reads. Not where both are the same view.
    pub(super) fn prevented_by_view(&self, target: &str) -> Option<MysqlError> {
        let changed = self.opened.iter().any(|opened| opened.alias == target);
        let around = self.views.iter().find(|around| !around.defining);
        let view = match (changed, around) {
            (_, Some(around)) if around.name == target => return None,
            (_, Some(around)) => &around.name,
            (true, None) => target,
            (false, None) => return None,
        };
        let message =
            format!("The definition of table '{view}' prevents operation {} on table '{target}'.", self.operation);
        Some(MysqlError::new(codes::VIEW_PREVENT_UPDATE, message))
    }

    // What CREATE VIEW notes

    /// The name means this in a block: noted where it is a column of one of the block's tables and not an alias of its select list.
    pub(super) fn note_name(&mut self, path: &[&str], level: usize, expr: &Expr) {
        let (Some(names), ExprKind::Reference(id)) = (&mut self.names, &expr.kind) else { return };
        let frame = &self.frames[level];
        if frame.column(path).is_ok_and(|found| found == Some(*id))
            && let (Some(name), Some(full)) = (path.last(), full_column(frame, *id))
        {
            names.note_column(name, full);
        }
    }

    pub(super) fn note_table(&mut self, table: &ast::TableName, database: &str) {
        if let Some(names) = &mut self.names {
            names.note_table(table, database);
        }
    }

    /// The definition is left out of the view's text.
    pub(super) fn note_unread(&mut self, table: &ast::CommonTable) {
        if let Some(names) = &mut self.names {
            names.note_unread(table);
        }
    }

    /// `*` or `table.*` means these columns of the innermost frame.
    pub(super) fn note_star(&mut self, item: &SelectItem, columns: &[ColumnId]) {
        let full = self.full_columns(columns);
        if let Some(names) = &mut self.names {
            names.note_star(item, full);
        }
    }

    /// `TABLE name` means what was noted for a SELECT made of it.
    pub(super) fn note_whole_table(&mut self, table: &ast::TableName, select: &ast::Select) {
        if let (Some(names), [item], [ast::TableReference::Table(copy)]) =
            (&mut self.names, select.items.as_slice(), select.from.as_slice())
        {
            names.note_whole_table(table, item, &copy.name);
        }
    }

    fn full_columns(&self, columns: &[ColumnId]) -> Vec<FullColumn> {
        match (&self.names, self.frames.last()) {
            (Some(_), Some(frame)) => columns.iter().filter_map(|&id| full_column(frame, id)).collect(),
            _ => Vec::new(),
        }
    }
}

/// A column of a frame with the names that mean it in the frame's block. An alias has no database.
fn full_column(frame: &Frame, id: ColumnId) -> Option<FullColumn> {
    frame.tables.iter().find_map(|table| {
        let (name, _) = table.columns.iter().find(|(_, known)| *known == id)?;
        let database = if table.is_aliased { None } else { table.database.clone() };
        Some(FullColumn { database, table: table.alias.clone(), name: name.clone() })
    })
}

/// Whether the rows of a view may be read as rows of its tables: no grouping, DISTINCT, LIMIT or set operation.
pub(super) fn is_mergeable(query: &ast::Query) -> bool {
    let QueryBody::Select(select) = &query.body else { return false };
    query.with.is_none()
        && query.limit.is_none()
        && !select.distinct
        && select.group_by.is_empty()
        && select.having.is_none()
        && select.windows.is_empty()
        && !select.from.is_empty()
}

/// Error 1462.
fn recursion(database: &str, name: &str) -> MysqlError {
    MysqlError::new(codes::VIEW_RECURSIVE, format!("`{database}`.`{name}` contains view recursion"))
}

/// Error 1356.
pub(crate) fn invalid(database: &str, name: &str) -> MysqlError {
    MysqlError::new(
        codes::VIEW_INVALID,
        format!(
            "View '{database}.{name}' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights to use them"
        ),
    )
}

/// Error 1356 in the place of one that shows what a view is made of.
pub(super) fn hidden(error: MysqlError, database: &str, name: &str) -> MysqlError {
    match error.code {
        codes::BAD_DB
        | codes::BAD_FIELD
        | codes::NO_SUCH_TABLE
        | codes::UNKNOWN_TABLE
        | codes::SP_DOES_NOT_EXIST
        | codes::DBACCESS_DENIED
        | codes::TABLEACCESS_DENIED
        | codes::COLUMNACCESS_DENIED => invalid(database, name),
        _ => error,
    }
}
