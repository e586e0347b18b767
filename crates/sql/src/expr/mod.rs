//! Typed expressions: the one meaning of every operator and function.
//!
//! [`bind`] turns sqlparser's expressions into [`Expr`]s whose type, nullability and collation are known; evaluation follows MySQL's rules of
//! coercion and comparison. Executors give rows through [`Columns`].

pub mod context;

pub use context::Context;

use rauk_types::{DataType, MysqlError, Value, ValueRef};
use sqlparser::ast;

/// The pseudo table whose "columns" are the aggregates of the present group.
pub const AGGREGATES: usize = usize::MAX;

/// Where an expression finds column values: table by its number in FROM, column by position in its schema.
pub trait Columns {
    fn column(&self, table: usize, column: usize) -> ValueRef<'_>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: DataType,
    pub nullable: bool,
    /// MySQL's coercibility, 0 (explicit COLLATE) to 6 (NULL).
    pub coercibility: u8,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Literal(Value),
    Column {
        table: usize,
        column: usize,
    },
    /// A `?`, or a literal that the plan cache took out; typed at bind time.
    Parameter(usize),
    // operators, functions, CASE, IN, LIKE, CAST, variables … follow
}

/// An aggregate call found while binding; its arguments are bound already.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub function: AggregateFunction,
    pub distinct: bool,
    /// Empty for COUNT(*).
    pub arguments: Vec<Expr>,
    pub ty: DataType,
    /// GROUP_CONCAT: separator.
    pub separator: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateFunction {
    Count,
    Sum,
    Min,
    Max,
    Avg,
    GroupConcat,
}

/// What a name means where the expression stands.
pub enum Resolved {
    Column {
        table: usize,
        column: usize,
        ty: DataType,
        nullable: bool,
    },
    /// An alias of the select list, or a grouped expression: stands for this expression.
    Expression(Expr),
}

/// The names and calls that are allowed where an expression stands.
pub trait Scope {
    /// `path` is `[name]`, `[table, name]` or `[database, table, name]`. Errors: 1054, 1052.
    fn resolve(&mut self, path: &[&str]) -> Result<Resolved, MysqlError>;
    /// Registers an aggregate and gives its number; 1111 where none may stand.
    fn aggregate(&mut self, aggregate: Aggregate) -> Result<usize, MysqlError>;
    /// `VALUES(column)` in ON DUPLICATE KEY UPDATE.
    fn inserted_value(&mut self, column: &str) -> Result<Resolved, MysqlError>;
    /// `DEFAULT(column)`.
    fn default_value(&mut self, column: &[&str]) -> Result<Expr, MysqlError>;
}

/// What binding needs to know besides names.
#[derive(Clone, Debug, Default)]
pub struct BindContext {
    /// Types of parameters, by position.
    pub parameters: Vec<DataType>,
    /// collation_connection and sql_mode decide literals and operators.
    pub collation: rauk_types::Collation,
    pub sql_mode: context::SqlMode,
}

#[allow(unused_variables)]
pub fn bind(expr: &ast::Expr, scope: &mut dyn Scope, context: &BindContext) -> Result<Expr, MysqlError> {
    todo!()
}

#[allow(unused_variables)]
impl Expr {
    pub fn eval(&self, row: &dyn Columns, context: &mut Context) -> Result<Value, MysqlError> {
        todo!()
    }

    /// As a condition: NULL is false.
    pub fn eval_bool(&self, row: &dyn Columns, context: &mut Context) -> Result<bool, MysqlError> {
        todo!()
    }

    /// No column, aggregate, or function whose value changes within a statement: may be evaluated once before the scan (parameters are allowed).
    pub fn is_constant(&self) -> bool {
        todo!()
    }

    /// Calls `visit` on every column that the expression reads.
    pub fn for_each_column(&self, visit: &mut dyn FnMut(usize, usize)) {
        todo!()
    }
}

/// Converts a value of type `from` for storing into a column of type `to`, as INSERT and UPDATE do: strict sql_mode makes errors 1264, 1265, 1292, 1366, 1406
/// (naming column and row), otherwise the value is clipped and a warning noted.
#[allow(unused_variables)]
pub fn convert_for_column(
    value: Value,
    from: &DataType,
    column: &rauk_types::Column,
    row_number: u64,
    context: &mut Context,
) -> Result<Value, MysqlError> {
    todo!()
}
