//! Binding of queries: from the syntax tree to the logical tree.
//!
//! ```text
//! frame      the names of one query block: tables, aliases, grouped keys; what a name means in each clause; errors 1052, 1054
//! from       FROM: tables, derived tables, joins, USING and NATURAL
//! json_table JSON_TABLE
//! select     one SELECT: list, grouping, HAVING, ORDER BY, LIMIT, locking clauses
//! rollup     WITH ROLLUP and GROUPING()
//! windows    WINDOW, OVER, and the node that computes window functions
//! query      WITH, set operations, VALUES, TABLE, and the clauses around them
//! common     common tables, recursive ones too
//! view       views, defined and in FROM     through  changes through views
//! change     UPDATE, DELETE             insert  INSERT, REPLACE    load  LOAD DATA
//! own_row    CHECK, generated columns and computed defaults of the tables that are written
//! partition_function  what a partitioned table computes of a row
//! names      clauses and errors of names; expressions without names
//! ```
//! Expressions are bound by [`crate::expr`], which asks a [`Scope`](crate::expr::Scope) for every name, aggregate and subquery. The scope of a clause is
//! the innermost [`Frame`] of a stack: a name that its block does not know is looked for in the blocks around it, and every block between
//! notes the column as an outer one.
//!
//! Order of errors, as in MySQL: tables and privileges, FROM, select list, WHERE, GROUP BY, HAVING, ORDER BY.
//!
//! What the syntax tree can hold and this version leaves out is refused here with error 1235: PARTITION (…) behind a table
//! that has partitions of its own.

mod change;
mod common;
mod frame;
mod from;
mod hints;
mod insert;
mod json_table;
mod load;
pub(crate) mod names;
pub(crate) mod own_row;
pub(crate) mod partition_function;
mod query;
mod rollup;
mod select;
mod through;
pub(crate) mod view;
mod windows;

use crate::expr::{BindContext, BoundSubquery, ColumnId, Expr, SubqueryId, Switches};
use crate::logical::{self, Body, Column, Columns, Statement};
use crate::lookup::{GuardedTable, Lookup, unsupported};
use crate::parse::Statement as Parsed;
use crate::parse::ast;
use crate::parse::print::FullNames;
use change::Forbidden;
use common::CommonName;
use frame::Frame;
use rauk_types::result::ResultColumn;
use rauk_types::{MysqlError, TableId, TableSchema};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Columns that a query gives at most (1117).
const MAX_COLUMNS: usize = 4096;

/// Queries in queries (1473), as in MySQL.
const MAX_NESTING: usize = 63;

/// ER_TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT.
const TOO_MANY_LEVELS: u16 = 1473;

pub(crate) struct Binder<'a> {
    lookup: &'a dyn Lookup,
    context: &'a BindContext,
    columns: Columns,
    /// `None` while the query is being bound.
    subqueries: Vec<Option<logical::Subquery>>,
    tables: Vec<Option<logical::CommonTable>>,
    searches: Vec<logical::Search>,
    /// Columns of derived tables and views that show columns of tables with full-text keys.
    searchable: Vec<Searchable>,
    /// Query blocks around what is being bound, the innermost last.
    frames: Vec<Frame>,
    /// Common tables in reach, the innermost last.
    common: Vec<CommonName>,
    /// Subqueries that are being bound, the innermost last.
    open: Vec<OpenSubquery>,
    /// For each aggregate whose arguments are being bound: how many outer columns each open subquery had before them.
    before_arguments: Vec<Vec<usize>>,
    nesting: usize,
    /// Tables that the statement changes, which its subqueries may not read (1093).
    targets: Vec<Forbidden>,
    /// Tables that subqueries read, those of derived and common tables left out.
    read: Vec<TableId>,
    /// The columns of RETURNING.
    returned: Vec<ResultColumn>,
    /// SELECTs met so far: their numbers in hints.
    blocks: usize,
    /// The statement is a query.
    is_query: bool,
    hints: logical::StatementHints,
    /// Hints that speak of blocks which are not bound yet.
    of_others: Vec<(String, ast::Hint)>,
    /// The block that was bound last says NO_SEMIJOIN.
    no_semijoin: bool,
    /// optimizer_switch, with what hints met so far change of it.
    switches: Switches,
    /// Derived and common tables around what is being bound: their rows are there before the first change.
    materialized: usize,
    /// Views around what is being bound, the outermost first.
    views: Vec<view::Around>,
    /// CREATE VIEW: what names mean.
    names: Option<FullNames>,
    /// What the statement does with the tables that it changes, as errors call it.
    operation: &'static str,
    /// The height of the block whose views are opened; 0: none.
    opens_views: usize,
    /// Views that the statement changes through.
    opened: Vec<through::Opened>,
    /// Columns that `*` leaves out.
    invisible: FxHashSet<ColumnId>,
    /// Columns that are to be asked for before they are read: only on some of their table is SELECT granted.
    guarded: FxHashMap<ColumnId, (Rc<GuardedTable>, String)>,
    /// Tables whose written columns are to be asked for.
    by_columns: Vec<TableId>,
    /// What columns of opened views are that are no columns of tables.
    computed: FxHashMap<ColumnId, Expr>,
}

/// A subquery while it is being bound.
struct OpenSubquery {
    /// How many blocks are around it: what it reads from them are outer columns.
    height: usize,
    outer: Vec<(ColumnId, Expr)>,
    /// `None`: a common table.
    id: Option<SubqueryId>,
}

/// Binds a statement. Everything but SELECT, INSERT, REPLACE, UPDATE and DELETE is the session's, and a mistake of the caller here (1235).
pub(crate) fn bind(statement: &Parsed, lookup: &dyn Lookup, context: &BindContext) -> Result<Statement, MysqlError> {
    let mut binder = Binder::new(lookup, context);
    binder.operation = match statement {
        Parsed::Insert(_) | Parsed::Load(_) => "INSERT",
        Parsed::Update(_) => "UPDATE",
        _ => "DELETE",
    };
    binder.is_query = matches!(statement, Parsed::Query(_));
    let body = match statement {
        Parsed::Query(query) => Body::Query(binder.query(query)?),
        Parsed::Insert(insert) => Body::Write(binder.insert(insert)?),
        Parsed::Load(load) => Body::Write(binder.load(load)?),
        Parsed::Update(update) => Body::Write(binder.update(update)?),
        Parsed::Delete(delete) => Body::Write(binder.delete(delete)?),
        _ => return Err(unsupported("this statement in a query plan")),
    };
    binder.finish(body)
}

/// What a column of a derived table shows as it is.
struct Searchable {
    column: ColumnId,
    schema: Arc<TableSchema>,
    at: usize,
    /// The first column of that table, which tells it from others of its schema.
    of: ColumnId,
}

impl<'a> Binder<'a> {
    pub fn new(lookup: &'a dyn Lookup, context: &'a BindContext) -> Self {
        Binder {
            lookup,
            context,
            columns: Columns::default(),
            subqueries: vec![],
            tables: vec![],
            searches: vec![],
            searchable: vec![],
            frames: vec![],
            common: vec![],
            open: vec![],
            before_arguments: vec![],
            nesting: 0,
            targets: vec![],
            read: vec![],
            returned: vec![],
            blocks: 0,
            is_query: false,
            hints: logical::StatementHints::default(),
            of_others: vec![],
            no_semijoin: false,
            switches: context.switches,
            materialized: 0,
            views: vec![],
            names: None,
            operation: "",
            opens_views: 0,
            opened: vec![],
            invisible: FxHashSet::default(),
            guarded: FxHashMap::default(),
            by_columns: vec![],
            computed: FxHashMap::default(),
        }
    }

    fn finish(mut self, body: Body) -> Result<Statement, MysqlError> {
        self.warn_of_unknown_blocks();
        let statement = Statement {
            columns: self.columns,
            subqueries: self.subqueries.into_iter().map(|s| s.expect("every subquery is bound")).collect(),
            tables: self.tables.into_iter().map(|t| t.expect("every common table is bound")).collect(),
            searches: self.searches,
            body,
            returned: self.returned,
            hints: (!self.hints.is_empty()).then(|| Box::new(self.hints)),
            switches: self.switches,
            parameters: self.context.parameters.len(),
            waits: self.context.waits.load(Ordering::Relaxed),
            by_values: false,
        };
        statement.validate()?;
        Ok(statement)
    }

    /// One level of queries deeper. Error 1473.
    fn deeper<R>(&mut self, bind: impl FnOnce(&mut Self) -> Result<R, MysqlError>) -> Result<R, MysqlError> {
        if self.nesting == MAX_NESTING {
            return Err(MysqlError::new(TOO_MANY_LEVELS, "Too high level of nesting for select"));
        }
        self.nesting += 1;
        let result = bind(self);
        self.nesting -= 1;
        result
    }

    /// Binds a query and gives the columns of the blocks around it that it reads.
    fn watched<R>(
        &mut self,
        id: Option<SubqueryId>,
        bind: impl FnOnce(&mut Self) -> Result<R, MysqlError>,
    ) -> Result<(R, Vec<(ColumnId, Expr)>), MysqlError> {
        self.open.push(OpenSubquery { height: self.frames.len(), outer: vec![], id });
        let result = self.deeper(bind);
        let open = self.open.pop().expect("it was pushed above");
        assert!(result.is_err() || open.height == self.frames.len(), "a query leaves the blocks around it as they are");
        Ok((result?, open.outer))
    }

    /// Binds a subquery of an expression of the innermost block.
    fn subquery(&mut self, query: &ast::Query) -> Result<BoundSubquery, MysqlError> {
        let id = SubqueryId(self.subqueries.len() as u32);
        self.subqueries.push(None);
        let (query, outer) = self.watched(Some(id), |binder| binder.query(query))?;
        let columns = query.columns.iter().map(|&id| self.reference(id, true)).collect();
        let ids = outer.iter().map(|(id, _)| *id).collect();
        let subquery = logical::Subquery { query, outer: ids, apart: self.no_semijoin, shared: self.has_tables(id) };
        self.subqueries[id.0 as usize] = Some(subquery);
        Ok(BoundSubquery { id, outer: outer.into_iter().map(|(_, expr)| expr).collect(), columns })
    }

    /// Makes columns of a bound subquery texts where they are ENUM or SET.
    fn subquery_texts(&mut self, bound: &mut BoundSubquery, wanted: &[bool]) {
        let subquery = self.subqueries[bound.id.0 as usize].take();
        let mut subquery = subquery.expect("a subquery that an expression has is bound");
        subquery.query = self.texts(subquery.query, wanted);
        bound.columns = subquery.query.columns.iter().map(|&id| self.reference(id, true)).collect();
        self.subqueries[bound.id.0 as usize] = Some(subquery);
    }

    /// Whether common tables of a subquery read its outer columns.
    fn has_tables(&self, id: SubqueryId) -> bool {
        self.tables.iter().flatten().any(|table| table.within == Some(id))
    }

    /// Whether some of the columns that were bound may be used only with a privilege on them.
    fn may_guard(&self) -> bool {
        !self.guarded.is_empty()
    }

    /// From now on names of these columns are checked.
    fn guard(&mut self, table: GuardedTable, columns: &[(String, ColumnId)]) {
        let table = Rc::new(table);
        self.guarded.extend(columns.iter().map(|(name, id)| (*id, (table.clone(), name.clone()))));
    }

    /// Whether the columns that a name means may be read. Error 1143.
    fn may_read(&self, expr: &Expr) -> Result<(), MysqlError> {
        if self.guarded.is_empty() {
            return Ok(());
        }
        let mut denied = None;
        expr.for_each_reference(&mut |id, _| {
            if let Some((table, column)) = self.guarded.get(&id) {
                denied = denied.take().or(self.lookup.may_use_column(table, column, "SELECT").err());
            }
        });
        denied.map_or(Ok(()), Err)
    }

    /// Whether the columns of a table may be written that are granted one by one. Error 1143.
    fn may_write(&self, schema: &TableSchema, columns: &[usize], privilege: &str) -> Result<(), MysqlError> {
        if !self.by_columns.contains(&schema.id) {
            return Ok(());
        }
        let table = GuardedTable { database: schema.database.clone(), name: schema.name.clone() };
        let mut names = columns.iter().map(|&at| &schema.columns[at].name);
        names.try_for_each(|name| self.lookup.may_use_column(&table, name, privilege))
    }

    /// The statement reads a table that it changes: SELECT is needed, on the table or on what it reads.
    fn reads_changed(&mut self, schema: &TableSchema, columns: &[ColumnId]) -> Result<(), MysqlError> {
        let (_, by_columns) = self.lookup.table_by_columns(Some(&schema.database), &schema.name, "SELECT")?;
        if by_columns {
            self.guard_row(schema, columns);
        }
        Ok(())
    }

    /// A value that is stored reads the row that it changes: that takes SELECT, or what is hidden could be copied to where it can be seen. Error 1143.
    fn may_copy(&mut self, schema: &TableSchema, row: &[ColumnId], value: Option<&Expr>) -> Result<(), MysqlError> {
        let Some(value) = value else { return Ok(()) };
        let mut reads = false;
        value.for_each_reference(&mut |id, _| reads |= row.contains(&id));
        if !reads {
            return Ok(());
        }
        if let Ok((_, false)) = self.lookup.table_by_columns(Some(&schema.database), &schema.name, "SELECT") {
            return Ok(());
        }
        self.guard_row(schema, row);
        self.may_read(value)
    }

    fn guard_row(&mut self, schema: &TableSchema, columns: &[ColumnId]) {
        let names: Vec<(String, ColumnId)> =
            schema.columns.iter().zip(columns).map(|(column, id)| (column.name.clone(), *id)).collect();
        self.guard(GuardedTable { database: schema.database.clone(), name: schema.name.clone() }, &names);
    }

    /// A new column that no table has.
    fn add_column(&mut self, ty: rauk_types::DataType, nullable: bool, name: String) -> ColumnId {
        let coercibility = crate::expr::column_coercibility(&ty);
        self.columns.add(Column { ty, nullable, coercibility, result: computed_column(ty, nullable, name) })
    }

    /// A column by its id. `null_rows`: the inner side of an outer join.
    fn reference(&self, id: ColumnId, null_rows: bool) -> Expr {
        if let Some(computed) = self.computed.get(&id) {
            return computed.clone();
        }
        let column = self.columns.get(id);
        let reference = Expr::reference(id, column.ty, column.nullable || null_rows);
        Expr { coercibility: column.coercibility, ..reference }
    }
}

/// What clients are told of a column that is computed.
pub(crate) fn computed_column(ty: rauk_types::DataType, nullable: bool, name: String) -> ResultColumn {
    ResultColumn {
        name,
        org_name: String::new(),
        table: String::new(),
        org_table: String::new(),
        database: String::new(),
        ty,
        nullable,
        primary_key: false,
        unique_key: false,
        multiple_key: false,
        auto_increment: false,
    }
}
