//! Queries: everything that gives rows.

use super::{ColumnOption, ColumnType, Expr, FileFormat, Hints, TableName};

/// WITH, a body, and what holds for the whole of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub with: Option<With>,
    pub body: QueryBody,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
    pub locks: Vec<LockClause>,
    /// SELECT … INTO, wherever in the query it was written.
    pub into: Option<Into>,
}

impl Query {
    /// A body without clauses around it.
    pub fn plain(body: QueryBody) -> Query {
        Query { with: None, body, order_by: vec![], limit: None, locks: vec![], into: None }
    }

    /// Whether no clauses are around the body.
    pub fn is_plain(&self) -> bool {
        self.with.is_none()
            && self.order_by.is_empty()
            && self.limit.is_none()
            && self.locks.is_empty()
            && self.into.is_none()
    }

    /// The query in the outermost parentheses, when nothing is around them.
    pub fn without_parentheses(self) -> Query {
        match self {
            Query { body: QueryBody::Query(inner), with: None, order_by, limit: None, locks, into: None }
                if order_by.is_empty() && locks.is_empty() =>
            {
                *inner
            }
            query => query,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum QueryBody {
    Select(Box<Select>),
    /// A query in parentheses that has clauses of its own; without any, it is its body.
    Query(Box<Query>),
    SetOperation {
        op: SetOp,
        /// ALL; else duplicate rows go.
        all: bool,
        left: Box<QueryBody>,
        right: Box<QueryBody>,
    },
    /// `VALUES ROW(…), ROW(…)`.
    Values(Vec<Vec<Expr>>),
    /// `TABLE name`.
    Table(TableName),
}

impl QueryBody {
    /// What is in the parentheses, when it has no clauses of its own.
    pub fn without_parentheses(self) -> QueryBody {
        match self {
            QueryBody::Query(query) if query.is_plain() => query.body,
            body => body,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    Union,
    Except,
    Intersect,
}

#[derive(Clone, Debug, PartialEq)]
pub struct With {
    pub recursive: bool,
    pub tables: Vec<CommonTable>,
}

/// `name (columns) AS (query)`.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonTable {
    pub name: String,
    pub columns: Vec<String>,
    pub query: Query,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub hints: Hints,
    pub distinct: bool,
    /// STRAIGHT_JOIN behind SELECT: tables are joined in the order written.
    pub straight_join: bool,
    pub calc_found_rows: bool,
    pub items: Vec<SelectItem>,
    /// Tables between commas.
    pub from: Vec<TableReference>,
    /// WHERE.
    pub filter: Option<Expr>,
    pub group_by: Vec<Expr>,
    /// WITH ROLLUP.
    pub rollup: bool,
    pub having: Option<Expr>,
    /// WINDOW name AS (…).
    pub windows: Vec<(String, WindowSpec)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// `*`
    Wildcard,
    /// `table.*`, `database.table.*`
    TableWildcard(TableName),
    Expr {
        expr: Expr,
        name: ItemName,
    },
}

/// What a column of a result is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemName {
    /// `AS alias`.
    Alias(String),
    /// Without an alias: the name of the column, the value of the string, or the text of the expression as it was written.
    Text(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    pub expr: Expr,
    pub descending: bool,
}

/// `LIMIT offset, count`. A literal or a parameter each.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub count: Expr,
    pub offset: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LockClause {
    pub strength: LockStrength,
    /// OF; empty: all tables.
    pub of: Vec<TableName>,
    pub wait: LockWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockStrength {
    Update,
    /// FOR SHARE and LOCK IN SHARE MODE.
    Share,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    Wait,
    NoWait,
    SkipLocked,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Into {
    Variables(Vec<IntoVariable>),
    OutFile(Box<OutFile>),
    DumpFile(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutFile {
    pub path: String,
    /// CHARACTER SET.
    pub charset: Option<String>,
    pub format: FileFormat,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntoVariable {
    /// `@name`.
    User(String),
    /// A variable of a stored program.
    Local(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableReference {
    Table(TableFactor),
    /// A derived table.
    Derived {
        lateral: bool,
        query: Box<Query>,
        alias: String,
        columns: Vec<String>,
    },
    JsonTable(Box<JsonTable>),
    Join(Box<Join>),
}

/// `JSON_TABLE(document, path COLUMNS (…)) alias`.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonTable {
    pub document: Expr,
    pub path: String,
    pub columns: Vec<JsonTableColumn>,
    pub alias: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JsonTableColumn {
    /// `name FOR ORDINALITY`.
    Ordinality(String),
    Value {
        name: String,
        column_type: ColumnType,
        /// Character set and collation.
        options: Vec<ColumnOption>,
        path: String,
        on_empty: Option<OnMissing>,
        on_error: Option<OnMissing>,
    },
    /// `name type EXISTS PATH path`.
    Exists { name: String, column_type: ColumnType, options: Vec<ColumnOption>, path: String },
    /// `NESTED PATH path COLUMNS (…)`.
    Nested { path: String, columns: Vec<JsonTableColumn> },
}

/// Before ON EMPTY and ON ERROR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnMissing {
    Null,
    Error,
    /// A JSON text.
    Default(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct TableFactor {
    pub name: TableName,
    pub alias: Option<String>,
    /// PARTITION (…).
    pub partitions: Vec<String>,
    pub hints: Vec<IndexHint>,
}

/// Two sides; joins between equals lean to the left: `a JOIN b JOIN c` is `(a JOIN b) JOIN c`. `(a, b)` in parentheses is an inner join without
/// condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    pub kind: JoinKind,
    pub left: TableReference,
    pub right: TableReference,
    pub condition: JoinCondition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// JOIN, INNER JOIN and CROSS JOIN.
    Inner,
    /// STRAIGHT_JOIN: the left side is read first.
    Straight,
    Left,
    Right,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JoinCondition {
    None,
    On(Expr),
    Using(Vec<String>),
    Natural,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexHint {
    pub action: IndexHintAction,
    /// FOR JOIN, FOR ORDER BY, FOR GROUP BY; `None`: everything.
    pub scope: Option<IndexHintScope>,
    pub indexes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexHintAction {
    Use,
    Force,
    Ignore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexHintScope {
    Join,
    OrderBy,
    GroupBy,
}

/// Behind OVER.
#[derive(Clone, Debug, PartialEq)]
pub enum Window {
    Named(String),
    Spec(Box<WindowSpec>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct WindowSpec {
    /// A window that this one extends.
    pub base: Option<String>,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<OrderItem>,
    pub frame: Option<Frame>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub unit: FrameUnit,
    pub start: FrameBound,
    /// `None`: up to the current row.
    pub end: Option<FrameBound>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnit {
    Rows,
    Range,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    CurrentRow,
    UnboundedPreceding,
    UnboundedFollowing,
    /// A literal, a parameter, or [`Expr::Interval`].
    Preceding(Expr),
    Following(Expr),
}
