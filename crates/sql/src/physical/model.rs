//! What a plan is made of.
//!
//! A SELECT is a list of [`Step`]s that run as nested loops: a [`Level`] puts one row of one table beside the rows of the levels before it. Two marks
//! delimit the tables of an outer join, and two others those of a semi or anti join. What passes the last step goes through grouping, HAVING, projection, DISTINCT, sorting and LIMIT. UPDATE
//! and DELETE use one level; INSERT uses expressions or a SELECT.
//!
//! Expressions name a column by the number of its table in FROM and its position in the schema the plan was made with; the executor's
//! `use_table` refuses a plan whose definitions are stale, so a position never means another column.

use crate::expr::{Aggregate, Expr, ExprKind, SearchMode, WindowCall, WindowFrame};
use crate::logical::JsonTable;
pub(crate) use crate::logical::{FileRows, Fill, OnDuplicate, RowCheck, RowRules, SetColumn, SetOp};
use crate::logical::{JoinHints, PathHints};
use crate::lookup::VirtualTable;
use crate::physical::prune::Prune;
use crate::statistics::TableStatistics;
use rauk_node::{Database, TableHandle, transaction::Lock};
use rauk_types::{Covering, DataType, IndexId, KeyDef, TableSchema};
use std::sync::Arc;

pub(crate) enum PlanKind {
    /// One query block: the fused operators of most statements.
    Select(Box<SelectPlan>),
    /// Every other query.
    Query(Box<QueryPlan>),
    Insert(Box<InsertPlan>),
    Update(Box<UpdatePlan>),
    Delete(Box<DeletePlan>),
    Change(Box<ChangePlan>),
}

/// What gives rows.
pub(crate) enum QueryPlan {
    Select(Box<SelectPlan>),
    Set(Box<SetPlan>),
    /// VALUES: one list of expressions a row.
    Values(Vec<Vec<Expr>>),
    JsonTable(Box<JsonTablePlan>),
    Window(Box<WindowPlan>),
}

impl QueryPlan {
    /// Calls `visit` on every block, those of its derived tables included.
    pub fn for_each_block<'a>(&'a self, visit: &mut dyn FnMut(&'a SelectPlan)) {
        match self {
            QueryPlan::Select(select) => select.for_each_block(visit),
            QueryPlan::Set(set) => {
                set.left.for_each_block(visit);
                set.right.for_each_block(visit);
            }
            QueryPlan::Values(_) | QueryPlan::JsonTable(_) => {}
            QueryPlan::Window(window) => window.input.for_each_block(visit),
        }
    }

    /// The types of its columns.
    pub fn types(&self) -> Vec<DataType> {
        match self {
            QueryPlan::Select(select) => select.items.iter().map(|item| item.ty).collect(),
            QueryPlan::Set(set) => set.types.clone(),
            QueryPlan::Values(rows) => rows.first().map_or_else(Vec::new, |row| row.iter().map(|e| e.ty).collect()),
            QueryPlan::JsonTable(plan) => plan.table.columns.iter().map(|column| column.ty).collect(),
            QueryPlan::Window(window) => {
                let mut types = window.input.types();
                let calls = window.stages.iter().flat_map(|stage| &stage.calls);
                types.resize(window.width + calls.clone().count(), DataType::BIGINT);
                calls.for_each(|call| types[call.output] = call.call.ty);
                types
            }
        }
    }
}

/// JSON_TABLE. Columns of tables before it are parameters of the document.
pub(crate) struct JsonTablePlan {
    pub document: Expr,
    pub table: Arc<JsonTable>,
}

/// Window functions: the rows of a query, each with the values of the functions behind its columns. Expressions read a row as table 0.
pub(crate) struct WindowPlan {
    pub input: QueryPlan,
    /// Columns of the input.
    pub width: usize,
    /// In the order in which they run.
    pub stages: Vec<Stage>,
}

/// Window functions of one partition and order.
pub(crate) struct Stage {
    /// The keys of the partition, then those of the order.
    pub keys: Vec<Key>,
    /// How many of the keys are the partition's.
    pub partitions: usize,
    pub calls: Vec<StageCall>,
    /// Else rows come in this order already.
    pub sorts: bool,
}

#[derive(Clone)]
pub(crate) struct Key {
    pub column: usize,
    pub ty: DataType,
    pub descending: bool,
}

pub(crate) struct StageCall {
    pub call: WindowCall,
    pub frame: WindowFrame,
    /// The column of its value.
    pub output: usize,
}

/// UNION, EXCEPT, INTERSECT of two queries whose columns have the same types already.
pub(crate) struct SetPlan {
    pub op: SetOp,
    /// ALL; else equal rows, as `types` compare, are one.
    pub all: bool,
    pub left: QueryPlan,
    pub right: QueryPlan,
    pub types: Vec<DataType>,
}

/// The queries of a statement beside its main one.
pub(crate) struct Parts {
    pub subqueries: Vec<SubqueryPlan>,
    pub tables: Vec<CommonTablePlan>,
    /// Parameters of the statement itself. Behind them lie the outer columns of its subqueries, each subquery's in a place of its own.
    pub parameters: usize,
    pub outer_columns: usize,
}

/// A subquery of an expression.
pub(crate) struct SubqueryPlan {
    pub query: QueryPlan,
    /// Where the values of its outer columns go among the parameters.
    pub first_outer: usize,
    pub outer: usize,
    /// Types of its columns: how answers of IN are compared.
    pub types: Vec<DataType>,
}

/// A common table expression: run when it is first read, once an execution or once for each set of values that it reads.
pub(crate) struct CommonTablePlan {
    /// Of its columns, for errors.
    pub names: Vec<String>,
    /// The part that does not read the table itself.
    pub seed: QueryPlan,
    pub recursive: Option<RecursivePlan>,
    pub types: Vec<DataType>,
    /// Parameters that are columns of the queries around its WITH: its rows are made again when their values have changed.
    pub reads: Vec<usize>,
}

/// The part of a recursive table that is run again and again on the rows that the last round added ([`RowsOf::Working`]), until it adds none.
pub(crate) struct RecursivePlan {
    pub query: QueryPlan,
    /// UNION ALL; else rows that are there already are not added.
    pub all: bool,
    /// No more rows are added when these are there.
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
}

/// Rows of a query that stand for a table of FROM; its columns are those of the schema beside it.
#[derive(Clone)]
pub(crate) enum RowsOf {
    /// A derived table, run when it is first read.
    Derived(Arc<QueryPlan>),
    /// The common table of this number.
    Common(usize),
    /// In the recursive part of the common table of this number: the rows that the last round added.
    Working(usize),
    /// A lateral table, run for each different set of values of the columns that it reads.
    Lateral(Arc<LateralRows>),
}

/// The query of a lateral table.
pub(crate) struct LateralRows {
    /// Its number among the subqueries.
    pub query: usize,
    /// The columns that it reads of the tables before it and of the blocks around.
    pub outer: Vec<Expr>,
}

/// Where the rows of a table come from.
#[derive(Clone)]
pub(crate) enum SourceTable {
    Stored(TableHandle),
    Virtual(Arc<dyn VirtualTable>),
    /// Rows that a query of the statement gives; kept in memory while the block runs. Access is [`Access::Rows`].
    Query(RowsOf, Arc<TableSchema>),
}

/// A table of FROM.
#[derive(Clone)]
pub(crate) struct Source {
    pub table: SourceTable,
    /// The name it goes by in the statement.
    pub alias: String,
    /// Null rows may stand for it: the inner side of an outer join.
    pub null_rows: bool,
    /// Indexes that hints leave, by position in the schema; `None`: all.
    pub allowed_indexes: Option<Vec<usize>>,
    /// FORCE INDEX: a full scan only when no allowed index can be used.
    pub force_index: bool,
    /// Of a stored table, where they are known.
    pub statistics: Option<Arc<TableStatistics>>,
    /// By hints: tables that are to be read before it.
    pub follows: Vec<usize>,
    pub join_hints: JoinHints,
    pub path_hints: PathHints,
}

impl Source {
    pub fn schema(&self) -> &Arc<TableSchema> {
        match &self.table {
            SourceTable::Stored(handle) => handle.schema(),
            SourceTable::Virtual(table) => table.schema(),
            SourceTable::Query(_, schema) => schema,
        }
    }

    pub fn lateral(&self) -> Option<&Arc<LateralRows>> {
        match &self.table {
            SourceTable::Query(RowsOf::Lateral(lateral), _) => Some(lateral),
            _ => None,
        }
    }

    pub fn handle(&self) -> Option<&TableHandle> {
        match &self.table {
            SourceTable::Stored(handle) => Some(handle),
            SourceTable::Virtual(_) | SourceTable::Query(..) => None,
        }
    }
}

/// One leading part of an index that a condition fixes to a few values.
#[derive(Clone, Debug)]
pub(crate) struct EqualPart {
    pub values: Vec<KeyValue>,
}

/// A value for a key part.
#[derive(Clone, Debug)]
pub(crate) enum KeyValue {
    Value(Expr),
    /// `<=>`: NULL finds NULLs.
    NullSafe(Expr),
    /// IS NULL.
    Null,
}

/// Bounds on the part after the fixed ones. Several of a kind: the tightest counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangePart {
    /// (value, inclusive).
    pub low: Vec<(Expr, bool)>,
    pub high: Vec<(Expr, bool)>,
    /// Patterns of LIKE with their escape character.
    pub like: Vec<(Expr, Option<char>)>,
    /// IS NOT NULL, and what every other bound implies.
    pub not_null: bool,
}

/// Which keys of an index a scan or lookup touches.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyCondition {
    /// Conditions on the leading parts, one each; their values multiply.
    pub equal: Vec<EqualPart>,
    /// Instead of `equal`: whole tuples of values of the leading parts (row IN, OR of ANDs).
    pub tuples: Option<Vec<Vec<KeyValue>>>,
    pub range: Option<RangePart>,
    /// Beside these, of an index that is scanned: each list is an OR, one of whose conditions the key must meet too.
    pub any: Vec<Vec<KeyCondition>>,
}

impl KeyCondition {
    /// Whether it keeps every key.
    pub fn is_empty(&self) -> bool {
        self.equal.is_empty() && self.range.is_none() && self.tuples.is_none() && self.any.is_empty()
    }

    /// How many leading parts are fixed.
    pub fn fixed_parts(&self) -> usize {
        match &self.tuples {
            Some(tuples) => tuples.first().map_or(0, Vec::len),
            None => self.equal.len(),
        }
    }

    /// How many keys the fixed parts stand for.
    pub fn points(&self) -> usize {
        match &self.tuples {
            Some(tuples) => tuples.len(),
            None => self.equal.iter().map(|p| p.values.len()).product(),
        }
    }

    /// How many leading parts its keys have at most.
    pub fn used_parts(&self) -> usize {
        let own = self.fixed_parts() + usize::from(self.range.is_some());
        self.any.iter().flatten().map(KeyCondition::used_parts).fold(own, usize::max)
    }

    /// About how many ranges of an index it stands for.
    pub fn ranges(&self) -> usize {
        let of_any = |any: &Vec<KeyCondition>| any.iter().map(KeyCondition::ranges).sum();
        self.any.iter().map(of_any).fold(self.points(), usize::max)
    }
}

/// An index and how to make its keys.
#[derive(Clone, Debug)]
pub(crate) struct IndexAccess {
    /// Position in the schema's `indexes`.
    pub index: usize,
    pub key_def: KeyDef,
    pub condition: KeyCondition,
    /// Where the distribution columns stand among the index parts, when all of them do.
    pub distribution: Option<DistributionKey>,
    /// Rows come in the index's order, and must.
    pub ordered: bool,
    pub reverse: bool,
}

/// How the key of the only partition that can have matching rows is made.
#[derive(Clone, Debug)]
pub(crate) struct DistributionKey {
    pub key_def: KeyDef,
    /// One a distribution column.
    pub values: Vec<Expr>,
}

/// How an index is read that shows the values of its leading parts by jumping from each to the next.
#[derive(Clone, Debug)]
pub(crate) struct SkipAccess {
    /// With the condition on the leading parts.
    pub access: IndexAccess,
    /// The leading parts; none: there is one value, the empty one.
    pub prefix: KeyDef,
    /// The condition on the parts behind.
    pub rest: Option<KeyCondition>,
    pub take: Take,
    /// How many parts its keys have.
    pub used: usize,
}

/// The indexes of an index merge.
#[derive(Clone, Debug)]
pub(crate) struct MergeAccess {
    pub parts: Vec<IndexAccess>,
    pub way: MergeWay,
}

/// Which rows of its indexes a merge gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeWay {
    /// Those of any, by whole keys.
    Union,
    /// Those of any, by ranges.
    SortUnion,
    /// Those of all, by a whole key of each.
    Intersect,
}

impl MergeWay {
    pub fn name(self) -> &'static str {
        match self {
            MergeWay::Union => "union",
            MergeWay::SortUnion => "sort_union",
            MergeWay::Intersect => "intersect",
        }
    }
}

/// What is read of each value of the leading parts.
#[derive(Clone, Debug)]
pub(crate) enum Take {
    /// Every row.
    All,
    /// One row.
    One,
    /// One row, and the rows at the ends of a column where it is not NULL: those with the keys of the condition on the parts behind.
    Ends { column: usize, condition: KeyCondition, first: bool, last: bool },
}

/// Rows that MATCH … AGAINST finds.
#[derive(Clone, Debug)]
pub(crate) struct TextAccess {
    /// The index; it has no condition.
    pub access: IndexAccess,
    /// The number of the search.
    pub search: usize,
    /// `MATCH … > value` (or `>=`: inclusive) instead of MATCH by itself: below 0 it holds for rows that are not found.
    pub above: Option<(Expr, bool)>,
}

/// A search of the statement: what AGAINST says, of an index.
pub(crate) struct SearchPlan {
    /// Knows how many rows there are.
    pub database: Database,
    pub table: TableHandle,
    pub index: IndexId,
    pub against: Expr,
    pub mode: SearchMode,
}

#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// Every row (of one partition, when the distribution columns are fixed).
    Full { distribution: Option<DistributionKey> },
    /// Whole primary keys.
    Primary(IndexAccess),
    /// Whole keys of a unique index, none of them NULL.
    Unique(IndexAccess),
    /// Ranges of an ordered index; without conditions the whole index.
    Range(IndexAccess),
    /// Jumps over keys of an ordered index.
    Skip(Box<SkipAccess>),
    /// Ranges of several ordered indexes.
    Merge(Box<MergeAccess>),
    /// The words of a full-text index.
    Text(Box<TextAccess>),
    /// The rows of a query.
    Rows,
    /// A virtual table, with what WHERE fixes TABLE_SCHEMA and TABLE_NAME to.
    Virtual { schema: Option<Expr>, table: Option<Expr> },
}

impl KeyValue {
    fn expr(&self) -> Option<&Expr> {
        match self {
            KeyValue::Value(expr) | KeyValue::NullSafe(expr) => Some(expr),
            KeyValue::Null => None,
        }
    }
}

impl KeyCondition {
    pub(super) fn for_each_expr(&self, visit: &mut dyn FnMut(&Expr)) {
        self.equal.iter().flat_map(|part| &part.values).filter_map(KeyValue::expr).for_each(&mut *visit);
        self.tuples.iter().flatten().flatten().filter_map(KeyValue::expr).for_each(&mut *visit);
        if let Some(range) = &self.range {
            range.low.iter().chain(&range.high).for_each(|(expr, _)| visit(expr));
            range.like.iter().for_each(|(expr, _)| visit(expr));
        }
        self.any.iter().flatten().for_each(|condition| condition.for_each_expr(visit));
    }
}

impl Access {
    /// Calls `visit` on every expression that makes its keys.
    pub fn for_each_expr(&self, visit: &mut dyn FnMut(&Expr)) {
        let distribution = match self {
            Access::Full { distribution } => distribution.as_ref(),
            Access::Primary(access) | Access::Unique(access) | Access::Range(access) => {
                access.condition.for_each_expr(visit);
                access.distribution.as_ref()
            }
            Access::Skip(skip) => {
                skip.access.condition.for_each_expr(visit);
                skip.rest.iter().for_each(|condition| condition.for_each_expr(visit));
                skip.access.distribution.as_ref()
            }
            Access::Merge(merge) => {
                merge.parts.iter().for_each(|part| part.condition.for_each_expr(visit));
                merge.parts.first().and_then(|part| part.distribution.as_ref())
            }
            Access::Text(text) => {
                text.above.iter().for_each(|(value, _)| visit(value));
                None
            }
            Access::Rows => None,
            Access::Virtual { schema, table } => {
                schema.iter().chain(table).for_each(&mut *visit);
                None
            }
        };
        distribution.iter().flat_map(|key| &key.values).for_each(visit);
    }

    pub fn has_subquery(&self) -> bool {
        let mut found = false;
        self.for_each_expr(&mut |expr| found = found || expr.has_subquery());
        found
    }
}

/// Equality of columns of this level with what comes from the levels before it, where no index serves.
#[derive(Clone, Debug)]
pub(crate) struct HashJoin {
    pub inner: Vec<Expr>,
    pub outer: Vec<Expr>,
    /// How both sides are encoded, one each.
    pub classes: Vec<DataType>,
}

/// One loop: the rows of one table for each combination of the rows before it.
pub(crate) struct Level {
    pub table: usize,
    pub access: Access,
    /// The index says all columns of the table that the block reads, so that rows may be made of its keys; of
    /// [`Access::Full`]: it reads none.
    pub covering: Option<Arc<Covering>>,
    /// Positions of columns that may have large values, which the block does not read.
    pub unread: Arc<[usize]>,
    /// All conditions that can be checked once this row is there, but those the access path guarantees.
    pub filters: Vec<Expr>,
    /// Conditions with subqueries: checked on a copy of the row, after `filters`, since their queries are run in between.
    pub late_filters: Vec<Expr>,
    /// Those of `filters` that read only this table: checked while a join buffer is filled.
    pub own_filters: Vec<Expr>,
    pub hash: Option<HashJoin>,
    /// Keep this table's rows in memory between iterations (inner tables without an index).
    pub buffered: bool,
    /// A row that passes is a match of the semi or anti join around it: nothing that reads a table or waits stands between.
    pub ends_match: bool,
    /// With `ends_match` and `hash`: the equalities and `own_filters` say all of a row, so that its buffer keeps no rows but their keys, each once. These
    /// are the other conditions, which do not read the table.
    pub keys_only: Option<Vec<Expr>>,
    pub lock: Lock,
    /// The statement changes rows of this table: where its reads lock, they lock exclusively.
    pub changed: bool,
    /// The table that a block reads first, or one that is looked up by an index: programs written for InnoDB expect the rows of a small one in the order of its primary key or of the
    /// index that is read, also where they are equal in a sort or concatenated in a group.
    pub key_order: bool,
    /// For EXPLAIN: the estimated cost of one iteration, its rows, and the part of them that the filters keep (percent).
    pub cost: f64,
    pub rows: u64,
    pub filtered: f64,
    /// For EXPLAIN: indexes that could have been used.
    pub possible: Vec<usize>,
    pub used_where: bool,
    pub partitions: u16,
    /// Of a user's partitioned table: what conditions say of its partitions.
    pub prune: Option<Box<Prune>>,
}

pub(crate) enum Step {
    Scan(Box<Level>),
    /// Begins outer join group `group`, whose tables are null rows when nothing matches; its [`Step::Leave`] stands at `leave`.
    Enter {
        group: usize,
        leave: usize,
        tables: Vec<usize>,
    },
    /// The group's tables match: conditions on them that may also see null rows follow.
    Leave {
        group: usize,
        filters: Vec<Expr>,
    },
    /// Begins the tables of a semi join (of an anti join: `anti`), which end with the [`Step::Match`] at `end`. The first match ends their loops; what
    /// follows `end` then goes on without their rows, of an anti join when there was no match.
    Test {
        group: usize,
        anti: bool,
        end: usize,
    },
    /// The tables of a semi or anti join match.
    Match {
        group: usize,
    },
}

/// A table that is looked up by key for many rows of the tables before it at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyBatch {
    /// Where rows are gathered: the table's step, or the first of the outer, semi and anti joins that begin with it.
    pub at: usize,
    /// The table's step.
    pub level: usize,
}

pub(crate) struct SortKey {
    pub expr: Expr,
    pub descending: bool,
}

pub(crate) struct Grouping {
    pub keys: Vec<Expr>,
    pub aggregates: Vec<Aggregate>,
    /// Columns that expressions after grouping read: kept from each group's first row.
    pub carried: Vec<(usize, usize)>,
    /// Keys whose values a group keeps, one a key: they follow the aggregates. Those that are computed and read above the grouping, so that
    /// they are computed once for each row; of ROLLUP all.
    pub kept: Vec<bool>,
    /// WITH ROLLUP. Behind the keys come the values of GROUPING().
    pub rollup: Option<Rollup>,
}

/// A block whose only table is read in batches.
pub(crate) struct VectorPlan {
    /// Positions of the table's columns that are read, ascending.
    pub columns: Vec<usize>,
}

pub(crate) struct Rollup {
    /// The keys that each call of GROUPING() asks for, the one of the lowest bit last.
    pub groupings: Vec<Vec<usize>>,
}

pub(crate) struct SelectPlan {
    pub sources: Vec<Source>,
    pub steps: Vec<Step>,
    /// Conditions without columns: checked once, before anything is read.
    pub once: Vec<Expr>,
    pub grouping: Option<Grouping>,
    pub having: Option<Expr>,
    pub items: Vec<Expr>,
    pub distinct: bool,
    /// Empty when rows come in this order already.
    pub order: Vec<SortKey>,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
    pub calc_found_rows: bool,
    /// A lone MIN or MAX whose column comes in index order: the first row is enough.
    pub first_row_only: bool,
    pub lock: Lock,
    pub outer_groups: usize,
    /// Tables that are looked up by key for many rows at once, by step.
    pub batches: Vec<KeyBatch>,
    /// An expression behind the first table has a subquery: rows are copied before what follows is evaluated.
    pub late: bool,
    /// Columns are given as they are stored: a TIMESTAMP not in local time.
    pub stored: bool,
    /// Its rows are grouped in batches.
    pub vector: Option<Box<VectorPlan>>,
    /// At most one row, by a whole primary key whose values are literals and parameters, to be given as it comes: `exec::point` can read it.
    pub point: bool,
}

impl SelectPlan {
    /// Whether the statement changes rows of one of its tables.
    pub fn changes_tables(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Scan(level) if level.changed))
    }

    /// Whether rows of a query stand for one of its tables.
    pub fn reads_queries(&self) -> bool {
        self.sources.iter().any(|source| matches!(source.table, SourceTable::Query(..)))
    }

    /// The windows whose rows it reads.
    pub fn windows(&self) -> Option<&WindowPlan> {
        let [Source { table: SourceTable::Query(RowsOf::Derived(query), _), .. }] = self.sources.as_slice() else {
            return None;
        };
        match &**query {
            QueryPlan::Window(window) => Some(window),
            _ => None,
        }
    }

    /// What [`SelectPlan::point`] says.
    pub fn reads_point(&self) -> bool {
        let plain = self.once.is_empty()
            && self.grouping.is_none()
            && self.having.is_none()
            && self.order.is_empty()
            && self.offset.is_none()
            && self.lock.is_none()
            && !(self.calc_found_rows || self.first_row_only || self.late || self.stored);
        let (true, [Step::Scan(level)]) = (plain, self.steps.as_slice()) else { return false };
        let Access::Primary(access) = &level.access else { return false };
        let known = |part: &EqualPart| match part.values.as_slice() {
            [KeyValue::Value(value) | KeyValue::NullSafe(value)] => {
                matches!(value.kind, ExprKind::Literal(_) | ExprKind::Parameter(_))
            }
            _ => false,
        };
        let condition = &access.condition;
        condition.tuples.is_none()
            && condition.any.is_empty()
            && condition.range.is_none()
            && condition.equal.len() == access.key_def.parts.len()
            && condition.equal.iter().all(known)
            && level.late_filters.is_empty()
            && level.lock.is_none()
            && !(level.buffered || level.changed || level.ends_match)
    }

    /// Calls `visit` on this block and on those of its derived tables.
    pub fn for_each_block<'a>(&'a self, visit: &mut dyn FnMut(&'a SelectPlan)) {
        visit(self);
        for source in &self.sources {
            if let SourceTable::Query(RowsOf::Derived(query), _) = &source.table {
                query.for_each_block(visit);
            }
        }
    }
}

pub(crate) enum InsertSource {
    /// One expression a listed column; `None` is DEFAULT.
    Rows(Vec<Vec<Option<Expr>>>),
    /// With the types of its columns.
    Query(Box<QueryPlan>, Vec<DataType>),
    /// LOAD DATA. Its assignments read the row as table 0.
    File(Box<FileRows>),
}

/// Expressions of VALUES read the row as far as it is filled as table 0; those of ON DUPLICATE KEY UPDATE read the row in the way as table 0, the row
/// that was to be inserted as table 1, and as table 2 what the query gives behind the columns that are inserted.
pub(crate) struct InsertPlan {
    /// For AUTO_INCREMENT numbers.
    pub database: Database,
    pub table: TableHandle,
    /// Positions of the columns that the source gives, in its order.
    pub columns: Vec<usize>,
    pub source: InsertSource,
    /// Positions of the generated columns whose values VALUES gives and nobody takes: one a value, row by row.
    pub ignored: Vec<usize>,
    /// One a column of the schema.
    pub fill: Vec<Fill>,
    pub on_duplicate: OnDuplicate,
    pub ignore: bool,
    /// ON DUPLICATE KEY UPDATE.
    pub update: Vec<SetColumn>,
    pub key_defs: Vec<KeyDef>,
    /// Whether VALUES expressions read columns: the row is then filled with defaults before they are evaluated.
    pub reads_row: bool,
    /// RETURNING: reads the row as it is stored in the end, as table 0.
    pub returning: Vec<Expr>,
    /// Reads the row as table 0.
    pub check: Option<RowCheck>,
    pub rules: Option<Arc<RowRules>>,
}

pub(crate) struct UpdatePlan {
    /// For AUTO_INCREMENT numbers.
    pub database: Database,
    pub sources: Vec<Source>,
    pub level: Level,
    pub once: Vec<Expr>,
    pub set: Vec<SetColumn>,
    pub order: Vec<SortKey>,
    pub limit: Option<Expr>,
    pub ignore: bool,
    pub key_defs: Vec<KeyDef>,
    /// Reads the row as table 0.
    pub check: Option<RowCheck>,
    pub rules: Option<Arc<RowRules>>,
}

pub(crate) struct DeletePlan {
    pub sources: Vec<Source>,
    pub level: Level,
    pub once: Vec<Expr>,
    pub order: Vec<SortKey>,
    pub limit: Option<Expr>,
    pub ignore: bool,
    /// RETURNING: reads the row as table 0.
    pub returning: Vec<Expr>,
}

/// UPDATE or DELETE of the rows that a block gives.
pub(crate) struct ChangePlan {
    /// For AUTO_INCREMENT numbers.
    pub database: Database,
    pub update: bool,
    pub ignore: bool,
    pub rows: SelectPlan,
    /// In the order in which they are changed.
    pub targets: Vec<ChangeTarget>,
    /// RETURNING of the only target: reads its row as table 0.
    pub returning: Vec<Expr>,
}

/// A table under one of the aliases by which it is changed.
pub(crate) struct ChangeTarget {
    pub table: TableHandle,
    /// Where the columns of its rows begin among those that the block gives.
    pub first: usize,
    /// What its assignments read besides, among the columns that the block gives.
    pub inputs: Vec<usize>,
    /// They read their own row as table 0 and the inputs as table 1.
    pub set: Vec<SetColumn>,
    pub key_defs: Vec<KeyDef>,
    /// The first target of the same table.
    pub group: usize,
    /// The block may give a row more than once.
    pub repeats: bool,
    /// Reads what assignments read.
    pub check: Option<RowCheck>,
    pub rules: Option<Arc<RowRules>>,
}

impl Level {
    /// Whether it looks at every row of its table.
    pub fn looks_at_all(&self) -> bool {
        match &self.access {
            Access::Full { .. } | Access::Rows | Access::Virtual { .. } => true,
            Access::Primary(_) | Access::Unique(_) | Access::Skip(_) | Access::Merge(_) | Access::Text(_) => false,
            Access::Range(access) => access.condition.is_empty(),
        }
    }
}
