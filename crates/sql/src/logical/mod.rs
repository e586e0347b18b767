//! The logical tree: what a query means, before anything is decided about how it runs.
//!
//! A tree is made by binding and changed by passes. Its expressions name columns by [`ColumnId`]s, each made by exactly one node of
//! the statement, so that an expression may be moved to wherever its columns are in reach.
//!
//! ```text
//! node        gives
//! OneRow      one row without columns: SELECT without FROM
//! Scan        the columns of a stored or computed table
//! Values      the columns of VALUES
//! CommonTable the columns of one reference to a common table
//! Derived     the columns of a query in FROM
//! Lateral     the columns of a query in FROM that reads columns of the tables before it, and is run for each of their rows
//! TableFunction  the columns of JSON_TABLE
//! Filter      its input's rows that satisfy all conditions
//! Project     columns computed from its input's; the input's columns are out of reach behind it
//! Join        columns of both sides; of a left join those of the right side may be NULL. A semi join gives the rows of the left side that match
//!             a row of the right side, an anti join those that match none: columns of the left side only
//! Aggregate   one row a group: the aggregates, and the input's columns with the values of the group's first row; with ROLLUP
//!             super-aggregate rows too, the keys as columns of its own, and the values of GROUPING()
//! Window      its input's columns, and one for each call of a window function
//! Distinct    its input's rows, equal ones (in the named columns) once
//! Sort        its input's rows in order
//! Limit       some of its input's rows
//! SetOperation  columns of its own, in the places of those of both sides
//! ```
//! A query is a tree with the list of the columns it gives, in order. Subqueries of expressions and common tables stand beside the tree, in the
//! [`Statement`]; a subquery reads columns of the queries around it by their ids.

mod file;
mod hints;
mod json_table;
mod print;
mod validate;
mod window;
mod write;

use crate::expr::{Aggregate, ColumnId, Expr, SearchMode, SubqueryId, Switches};
use crate::lookup::VirtualTable;
use rauk_node::TableHandle;
use rauk_node::transaction::Lock;
use rauk_types::result::ResultColumn;
use rauk_types::{DataType, IndexId, TableId, TableSchema, ViewSchema};
use std::sync::Arc;

pub(crate) use file::{FileRows, FileTarget, LineFormat, file_charset, fixed_width};
pub(crate) use hints::{JoinHints, PathHint, PathHints, StatementHints};
pub(crate) use json_table::{JsonCell, JsonRows, JsonTable, OnMissing, TableFunction};
pub(crate) use window::{WindowNode, WindowStage};
pub(crate) use write::{
    Change, ChangeTarget, Delete, Fill, Insert, InsertSource, OnDuplicate, RowCheck, RowRules, SetColumn, Target,
    Update, Write,
};

/// A bound statement.
pub(crate) struct Statement {
    pub columns: Columns,
    pub subqueries: Vec<Subquery>,
    pub tables: Vec<CommonTable>,
    /// By the numbers that its calls of MATCH have.
    pub searches: Vec<Search>,
    pub body: Body,
    /// What RETURNING tells clients of its columns.
    pub returned: Vec<ResultColumn>,
    /// What optimizer hints ask of the whole statement.
    pub hints: Option<Box<StatementHints>>,
    /// optimizer_switch, with what hints change of it.
    pub switches: Switches,
    /// Parameters that the statement itself has.
    pub parameters: usize,
    /// An expression of it may wait (SLEEP, GET_LOCK).
    pub waits: bool,
    /// Literals in the places of its parameters might make an expression that a key has.
    pub by_values: bool,
}

/// MATCH … AGAINST: what is looked for, in which index. `against` is the same for all rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Search {
    pub table: TableId,
    pub index: IndexId,
    pub against: Expr,
    pub mode: SearchMode,
}

/// What the statement does.
pub(crate) enum Body {
    Query(Query),
    Write(Write),
}

/// All columns of a statement, by their ids.
#[derive(Default)]
pub(crate) struct Columns {
    list: Vec<Column>,
}

/// What is known of a column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub ty: DataType,
    /// NULL rows of outer joins are not counted here: expressions that are bound above them are nullable.
    pub nullable: bool,
    /// How strongly its collation holds: that of the expression which it shows.
    pub coercibility: u8,
    /// What clients are told of it; its name is that by which the select list calls it.
    pub result: ResultColumn,
}

impl Columns {
    pub fn add(&mut self, column: Column) -> ColumnId {
        self.list.push(column);
        ColumnId(self.list.len() as u32 - 1)
    }

    pub fn get(&self, id: ColumnId) -> &Column {
        &self.list[id.0 as usize]
    }

    pub fn get_mut(&mut self, id: ColumnId) -> &mut Column {
        &mut self.list[id.0 as usize]
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }
}

/// A tree and the columns that it gives, in order.
pub(crate) struct Query {
    pub node: Node,
    pub columns: Vec<ColumnId>,
}

/// A query that an expression, or a lateral table, uses at the place of its `SubqueryId`.
pub(crate) struct Subquery {
    pub query: Query,
    /// Columns of the queries around it that it reads, in the order of `expr::Subquery::outer`.
    pub outer: Vec<ColumnId>,
    /// By a hint: it does not become a join.
    pub apart: bool,
    /// Several expressions have it, or common tables read its outer columns: no pass may take it out of its expression.
    pub shared: bool,
}

impl Subquery {
    /// The place of one that no expression has.
    pub fn gone() -> Subquery {
        Subquery { query: Query { node: Node::OneRow, columns: vec![] }, outer: vec![], apart: false, shared: false }
    }

    /// Whether a pass has made it part of the block that used it: no expression has it any more.
    pub fn is_gone(&self) -> bool {
        self.query.columns.is_empty()
    }
}

/// A common table expression that something reads.
pub(crate) struct CommonTable {
    pub name: String,
    pub seed: Query,
    pub recursive: Option<Recursive>,
    /// Names and types of its columns.
    pub names: Vec<String>,
    pub types: Vec<DataType>,
    /// Columns of the queries around its WITH that it reads: it has other rows for other values of them.
    pub outer: Vec<ColumnId>,
    /// The subquery that its WITH belongs to, where it reads such columns: they are outer columns of that one too.
    pub within: Option<SubqueryId>,
}

pub(crate) struct Recursive {
    pub query: Query,
    /// UNION ALL.
    pub all: bool,
    /// LIMIT and OFFSET of the whole table.
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
}

pub(crate) enum Node {
    OneRow,
    Scan(Box<Scan>),
    Values {
        columns: Vec<ColumnId>,
        rows: Vec<Vec<Expr>>,
    },
    CommonTable(Box<CommonTableScan>),
    Derived(Box<Derived>),
    Lateral(Box<Lateral>),
    TableFunction(Box<TableFunction>),
    Filter {
        input: Box<Node>,
        conditions: Vec<Expr>,
        /// HAVING, which without grouping sees the select list only.
        having: bool,
    },
    Project {
        input: Box<Node>,
        items: Vec<(ColumnId, Expr)>,
    },
    Join(Box<Join>),
    Aggregate(Box<AggregateNode>),
    Window(Box<WindowNode>),
    Distinct {
        input: Box<Node>,
        columns: Vec<ColumnId>,
    },
    Sort {
        input: Box<Node>,
        keys: Vec<SortKey>,
    },
    Limit(Box<Limit>),
    SetOperation(Box<SetOperation>),
}

/// Tables of one FROM, as in MySQL.
pub(crate) const MAX_TABLES: usize = 61;

pub(crate) enum ScanTable {
    Stored(TableHandle),
    Virtual(Arc<dyn VirtualTable>),
}

/// A table of FROM.
pub(crate) struct Scan {
    pub table: ScanTable,
    /// The name it goes by in its query.
    pub alias: String,
    /// One a column of the schema, hidden ones included.
    pub columns: Vec<ColumnId>,
    /// Columns that keys have, with the expressions of the row that they hold.
    pub computed: Vec<(ColumnId, Expr)>,
    /// Indexes that hints leave, by position in the schema; `None`: all.
    pub allowed_indexes: Option<Vec<usize>>,
    /// FORCE INDEX: a full scan only when no allowed index can be used.
    pub force_index: bool,
    pub lock: Lock,
    /// By hints: columns of the tables that are to be read before it.
    pub follows: Vec<ColumnId>,
    pub join_hints: JoinHints,
    pub path_hints: PathHints,
}

impl Scan {
    pub fn schema(&self) -> &Arc<TableSchema> {
        match &self.table {
            ScanTable::Stored(handle) => handle.schema(),
            ScanTable::Virtual(table) => table.schema(),
        }
    }
}

/// One reference to a common table.
pub(crate) struct CommonTableScan {
    /// Its place in [`Statement::tables`].
    pub table: usize,
    pub alias: String,
    pub columns: Vec<ColumnId>,
    /// Inside of its own recursive part: the rows that the last round added.
    pub working: bool,
    /// By a hint: whether it does not become part of the block around it; `None`: as derived_merge says.
    pub apart: Option<bool>,
    /// By a hint: whether conditions of that move into it, if it does not.
    pub pushdown: Option<bool>,
}

/// A derived table or a view.
pub(crate) struct Derived {
    pub alias: String,
    pub query: Query,
    pub view: Option<Arc<ViewSchema>>,
    /// Of a view, what a locking clause of the block around it asks of its rows; the merge pass gives it to the view's tables.
    pub lock: Lock,
    /// Whether it does not become part of the block around it, by a hint or as a view says; `None`: as derived_merge says.
    pub apart: Option<bool>,
    /// Whether conditions of the block around it move into it, by a hint; `None`: as derived_condition_pushdown says.
    pub pushdown: Option<bool>,
}

/// A derived table that reads columns of the tables before it. Its query is one of [`Statement::subqueries`].
pub(crate) struct Lateral {
    pub alias: String,
    pub subquery: SubqueryId,
    /// The columns that the query reads of those around it, in the order of [`Subquery::outer`].
    pub outer: Vec<Expr>,
    pub columns: Vec<ColumnId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinKind {
    Inner,
    /// A RIGHT JOIN is bound with its sides exchanged.
    Left,
    /// The left side's rows that match a row of the right side, each once. Conditions in the right side may read columns of the left side, here and
    /// of an anti join.
    Semi,
    /// The left side's rows that match no row of the right side.
    Anti,
}

impl JoinKind {
    /// Whether the right side only says which rows of the left side stay.
    pub fn only_tests(self) -> bool {
        matches!(self, JoinKind::Semi | JoinKind::Anti)
    }
}

pub(crate) struct Join {
    pub kind: JoinKind,
    pub left: Node,
    pub right: Node,
    /// Conjuncts.
    pub on: Vec<Expr>,
    /// STRAIGHT_JOIN: the left side is read first.
    pub straight: bool,
}

pub(crate) struct AggregateNode {
    pub input: Node,
    /// Empty: one group, even of no rows.
    pub keys: Vec<Expr>,
    pub aggregates: Vec<(ColumnId, Aggregate)>,
    pub rollup: Option<Rollup>,
}

/// WITH ROLLUP: behind the groups that share the first keys comes a super-aggregate row of all of them, in which the other keys are NULL.
pub(crate) struct Rollup {
    /// The keys as they are above the grouping, one a key.
    pub keys: Vec<ColumnId>,
    /// Calls of GROUPING(): their values, and the keys they ask for, by position.
    pub groupings: Vec<(ColumnId, Vec<usize>)>,
}

impl AggregateNode {
    /// The columns that this node makes.
    pub fn own_columns(&self) -> impl Iterator<Item = ColumnId> {
        let rollup = self.rollup.iter();
        let rolled = rollup.flat_map(|r| r.keys.iter().copied().chain(r.groupings.iter().map(|(id, _)| *id)));
        self.aggregates.iter().map(|(id, _)| *id).chain(rolled)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SortKey {
    pub expr: Expr,
    pub descending: bool,
}

pub(crate) struct Limit {
    pub input: Node,
    pub count: Option<Expr>,
    pub offset: Option<Expr>,
    /// SQL_CALC_FOUND_ROWS: rows beyond the limit are counted.
    pub calc_found_rows: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetOp {
    Union,
    Except,
    Intersect,
}

/// The columns of both sides have the types of `columns` already.
pub(crate) struct SetOperation {
    pub op: SetOp,
    pub all: bool,
    pub left: Query,
    pub right: Query,
    pub columns: Vec<ColumnId>,
}

impl Node {
    /// Calls `visit` on every table of the tree, those of subqueries left out.
    pub fn for_each_scan<'a>(&'a self, visit: &mut dyn FnMut(&'a Scan)) {
        match self {
            Node::Scan(scan) => visit(scan),
            node => node.for_each_input(&mut |input| crate::stack::grow(|| input.for_each_scan(visit))),
        }
    }

    /// Calls `visit` on the nodes right below.
    pub fn for_each_input<'a>(&'a self, visit: &mut dyn FnMut(&'a Node)) {
        match self {
            Node::OneRow
            | Node::Scan(_)
            | Node::Values { .. }
            | Node::CommonTable(_)
            | Node::Lateral(_)
            | Node::TableFunction(_) => {}
            Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::Distinct { input, .. }
            | Node::Sort { input, .. } => visit(input),
            Node::Join(join) => {
                visit(&join.left);
                visit(&join.right);
            }
            Node::Derived(derived) => visit(&derived.query.node),
            Node::Aggregate(aggregate) => visit(&aggregate.input),
            Node::Window(window) => visit(&window.input.node),
            Node::Limit(limit) => visit(&limit.input),
            Node::SetOperation(operation) => {
                visit(&operation.left.node);
                visit(&operation.right.node);
            }
        }
    }

    /// Calls `visit` on the expressions of this node itself.
    pub fn for_each_expr<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            Node::OneRow
            | Node::Scan(_)
            | Node::CommonTable(_)
            | Node::Derived(_)
            | Node::Distinct { .. }
            | Node::SetOperation(_) => {}
            Node::Values { rows, .. } => rows.iter().flatten().for_each(visit),
            Node::Lateral(lateral) => lateral.outer.iter().for_each(visit),
            Node::TableFunction(function) => visit(&function.document),
            Node::Filter { conditions, .. } => conditions.iter().for_each(visit),
            Node::Project { items, .. } => items.iter().for_each(|(_, expr)| visit(expr)),
            Node::Join(join) => join.on.iter().for_each(visit),
            Node::Aggregate(aggregate) => {
                aggregate.keys.iter().for_each(&mut *visit);
                for (_, aggregate) in &aggregate.aggregates {
                    aggregate.arguments.iter().for_each(&mut *visit);
                    aggregate.order_by.iter().for_each(|(expr, _)| visit(expr));
                }
            }
            Node::Window(window) => window.for_each_expr(visit),
            Node::Sort { keys, .. } => keys.iter().for_each(|key| visit(&key.expr)),
            Node::Limit(limit) => limit.count.iter().chain(&limit.offset).for_each(visit),
        }
    }

    /// The columns in reach above this node.
    pub fn columns(&self, out: &mut Vec<ColumnId>) {
        match self {
            Node::OneRow => {}
            Node::Scan(scan) => out.extend(&scan.columns),
            Node::Values { columns, .. } => out.extend(columns),
            Node::CommonTable(table) => out.extend(&table.columns),
            Node::Derived(derived) => out.extend(&derived.query.columns),
            Node::Lateral(lateral) => out.extend(&lateral.columns),
            Node::TableFunction(function) => out.extend(&function.columns),
            Node::Filter { input, .. } | Node::Distinct { input, .. } | Node::Sort { input, .. } => input.columns(out),
            Node::Project { items, .. } => out.extend(items.iter().map(|(id, _)| *id)),
            Node::Join(join) => {
                join.left.columns(out);
                if !join.kind.only_tests() {
                    join.right.columns(out);
                }
            }
            Node::Aggregate(aggregate) => {
                out.extend(aggregate.own_columns());
                aggregate.input.columns(out);
            }
            Node::Window(window) => {
                out.extend(&window.input.columns);
                out.extend(window.own_columns());
            }
            Node::Limit(limit) => limit.input.columns(out),
            Node::SetOperation(operation) => out.extend(&operation.columns),
        }
    }
}
