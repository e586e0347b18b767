//! Typed expressions: the one meaning of every operator and function.
//!
//! ```text
//! bind       syntax tree → [`Expr`]: names resolved, types and collations derived, comparisons decided, constants folded
//! types      MySQL's rules for result types and collations
//! subquery   queries in expressions; answers: what is known of their rows
//! window     window functions, and what their calls say
//! eval       the evaluator; compare, arithmetic, pattern, cast, interval: what its nodes do
//! convert    values between types with MySQL's truncation warnings
//! column     values into columns: the errors and warnings of INSERT and UPDATE
//! budget     what evaluation may use: memory, the size of values, time between looks at KILL
//! json       paths in documents, and values as documents
//! find       text in text under a collation, in linear time
//! functions  the registry: one entry a function, by subject
//! codec      expressions on their way to other nodes, and which of them may run there
//! deep       marks in high expressions, where recursion asks for stack
//! switches   optimizer_switch
//! display    expressions as EXPLAIN and error messages print them
//! ```
//! **Values and types.** An integer is `Int` or `UInt` as its type says; a TIMESTAMP column is a `DateTime` of the session's time zone as soon as it
//! is read; JSON is a document ([`rauk_types::json`]), and its text where text is asked for. A value may be narrower than its type says, never wider.
//!
//! **Comparisons** are decided when binding ([`Comparison`]): integers, decimals, doubles, text by a collation, bytes, dates. The evaluator borrows
//! both sides ([`Val`]) and copies nothing, so that `id = ?` or `name < 'x'` costs no allocation.
//!
//! Row comparisons but IN are gone after binding: `(a, b) = (1, 2)` is `a = 1 AND b = 2`, `(a, b) < (1, 2)` is `a < 1 OR (a = 1
//! AND b < 2)`. What would be copied so is simple ([`Expr::is_simple`]). Other expressions are not copied: nesting would
//! double them at each level.
//!

mod answers;
mod arithmetic;
mod bind;
mod budget;
pub(crate) mod cast;
pub(crate) mod codec;
mod column;
mod compare;
pub mod context;
pub(crate) mod convert;
mod deep;
mod display;
mod eval;
mod find;
pub(crate) mod fulltext;
mod functions;
mod interval;
pub(crate) mod json;
mod pattern;
mod subquery;
mod switches;
mod types;
mod value;
pub(crate) mod value_key;
mod window;
mod xml;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use answers::{Answer, CommonRows, RowSet, SharedRows, Want, append_exact};
pub(crate) use bind::{settle_comparisons, wrong_arguments};
pub(crate) use budget::run;
pub use budget::{Beside, Budget, GiveWay};
pub use column::convert_for_column;
pub(crate) use column::{member_number, type_zero, year_number};
pub use compare::compare_values;
pub(crate) use compare::key_class;
pub use context::Context;
pub use convert::{as_number, temporal_decimal, to_bits};
pub(crate) use convert::{coded_bytes as bytes_of, text as text_of, to_datetime, to_f64, to_time};
pub use deep::Deep;
pub(crate) use display::{Named, Names, readable};
pub use fulltext::SearchMode;
pub(crate) use functions::digits::result_type;
pub(crate) use functions::json::elements::{AskedElements, INDEX_NAME, by_elements, constant_document, sought};
pub(crate) use functions::{ANY_VALUE, Collected, check_gtid_set, crc32, is_spatial_test, locale};
pub(crate) use subquery::{Awaited, is_pending, pending};
pub use subquery::{BoundSubquery, ColumnId, Missing, Subquery, SubqueryId, SubqueryTest};
pub use switches::Switches;
pub use types::plain as plain_type;
pub(crate) use types::{column_coercibility, misplaced_array, quotient_digits};
pub use value::Val;
pub(crate) use value::type_of;
pub use window::{Distance, FrameBound, WindowCall, WindowFrame, WindowFunction};

use crate::parse::ast::{self, Unit};
use bind::{
    as_document as bind_document, converted as bind_converted, not_yet as bind_not_yet, shown as bind_shown,
    sorted as bind_sorted,
};
use functions::Function;
use pattern::{LikePattern, RegexpPattern};
use rauk_types::{Collation, DataType, MysqlError, TypeKind, Value, ValueRef};

/// Where an expression finds column values: table by its number in FROM, column by position in its schema.
pub trait Columns {
    fn column(&self, table: usize, column: usize) -> ValueRef<'_>;

    /// The same as it is stored: a TIMESTAMP not in local time.
    fn stored(&self, table: usize, column: usize) -> ValueRef<'_> {
        self.column(table, column)
    }

    /// What the present group has computed: [`ExprKind::GroupValue`].
    fn group_value(&self, number: usize) -> ValueRef<'_> {
        unreachable!("value {number} of a group is read where there are no groups")
    }
}

/// No columns at all: for constants.
pub struct NoColumns;

impl Columns for NoColumns {
    fn column(&self, _: usize, _: usize) -> ValueRef<'_> {
        ValueRef::Null
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: DataType,
    pub nullable: bool,
    /// MySQL's coercibility, 0 (explicit COLLATE) to 6 (NULL).
    pub coercibility: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    Eq,
    /// `<=>`: never NULL.
    NullSafeEq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl CompareOp {
    /// The operator with its sides exchanged: `a < b` is `b > a`.
    pub fn flipped(self) -> CompareOp {
        match self {
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::Le => CompareOp::Ge,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Le,
            same => same,
        }
    }
}

/// Two parts of rows that are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct RowPart {
    pub by: Comparison,
    pub left: Expr,
    pub right: Expr,
}

/// A row among rows.
#[derive(Clone, Debug, PartialEq)]
pub struct RowIn {
    /// Evaluated once, however many rows there are.
    pub left: Vec<Expr>,
    pub negated: bool,
    /// As many values each as there are on the left, with how they compare.
    pub rows: Vec<Vec<(Expr, Comparison)>>,
    /// The rows by their keys, where all are literals: they decide for a left side without NULL.
    pub(crate) keys: Option<RowKeys>,
}

/// Keys of rows, and the types by which both sides are encoded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowKeys {
    pub classes: Vec<DataType>,
    pub keys: rustc_hash::FxHashSet<Box<[u8]>>,
    /// A row has a NULL: what is not found may be unknown.
    pub nulls: bool,
}

/// As what two values are compared; decided by their types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Both are integers, signed or not.
    Integer,
    /// Exact numbers.
    Decimal,
    /// A double or a text is among them. An integer against a text that is one compares exactly, so that `id = '9007199254740993'` finds its row.
    Double,
    Text(Collation),
    Bytes,
    /// DATE, DATETIME, TIMESTAMP, and what is compared with them.
    DateTime,
    Time,
    /// One is JSON: in the order of JSON values; what is not JSON is a scalar.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegerDivide,
    Modulo,
}

impl ArithmeticOp {
    pub fn symbol(self) -> &'static str {
        match self {
            ArithmeticOp::Add => "+",
            ArithmeticOp::Subtract => "-",
            ArithmeticOp::Multiply => "*",
            ArithmeticOp::Divide => "/",
            ArithmeticOp::IntegerDivide => "DIV",
            ArithmeticOp::Modulo => "%",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOp {
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

impl BitOp {
    pub fn symbol(self) -> &'static str {
        match self {
            BitOp::And => "&",
            BitOp::Or => "|",
            BitOp::Xor => "^",
            BitOp::ShiftLeft => "<<",
            BitOp::ShiftRight => ">>",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Literal(Value),
    Column {
        table: usize,
        column: usize,
    },
    /// What the block computes of a group, by its number: first the aggregates, then, under ROLLUP, the keys and what
    /// GROUPING() tells of them. Only above the grouping.
    GroupValue(usize),
    /// A column of the logical tree. Lowering replaces it by where the column lies: a [`ExprKind::Column`] or
    /// [`ExprKind::GroupValue`], or in a subquery, for a column of the queries around it, a [`ExprKind::Parameter`].
    Reference(ColumnId),
    /// A `?`, a literal that the plan cache took out, or in a subquery a column of the queries around it; typed at bind time.
    Parameter(usize),
    Subquery(Box<Subquery>),

    Compare {
        op: CompareOp,
        by: Comparison,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// Rows in an order: of the first parts that differ, or of NULL. Only of what is not simple ([`Expr::is_simple`]).
    RowOrder {
        op: CompareOp,
        parts: Vec<RowPart>,
    },
    /// `(a, b) [NOT] IN ((1, 2), …)`.
    RowIn(Box<RowIn>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Xor(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    IsNull {
        expr: Box<Expr>,
        negated: bool,
    },
    /// IS [NOT] TRUE, IS [NOT] FALSE.
    IsTruth {
        expr: Box<Expr>,
        truth: bool,
        negated: bool,
    },
    Between {
        expr: Box<Expr>,
        negated: bool,
        low: Box<Expr>,
        low_by: Comparison,
        high: Box<Expr>,
        high_by: Comparison,
    },
    /// `list` holds no subquery. Every item has its own comparison; a long list of literals is sorted as well.
    InList {
        expr: Box<Expr>,
        negated: bool,
        list: Vec<(Expr, Comparison)>,
        sorted: Option<Box<SortedList>>,
    },
    Like(Box<Like>),
    Regexp(Box<Regexp>),

    Arithmetic {
        op: ArithmeticOp,
        left: Box<Expr>,
        right: Box<Expr>,
        /// What error 1690 prints.
        text: Box<str>,
    },
    Negate {
        expr: Box<Expr>,
        text: Box<str>,
    },
    Bit {
        op: BitOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    BitNot(Box<Expr>),

    /// The expression itself; its tree is high.
    Deep(Deep),

    /// CASE, with comparisons where it has an operand; IF and NULLIF too.
    Case {
        operand: Option<Box<Expr>>,
        branches: Vec<CaseBranch>,
        otherwise: Option<Box<Expr>>,
    },
    /// The first that is not NULL; IFNULL too.
    Coalesce(Vec<Expr>),
    /// NULLIF of something that is not simple, which is a CASE otherwise.
    NullIf {
        by: Comparison,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// Converts to the type of this expression, as CAST does.
    Cast(Box<Expr>),
    /// COLLATE: the value itself under another collation.
    Collate(Box<Expr>),
    /// `date ± INTERVAL amount unit`.
    DateAdd {
        date: Box<Expr>,
        amount: Box<Expr>,
        unit: Unit,
        subtract: bool,
    },
    Function {
        function: &'static Function,
        arguments: Vec<Expr>,
    },

    UserVariable(Box<str>),
    AssignVariable {
        name: Box<str>,
        value: Box<Expr>,
    },
    SystemVariable {
        scope: crate::parse::statement::Scope,
        name: Box<str>,
    },
}

/// `expr LIKE pattern`.
#[derive(Clone, Debug, PartialEq)]
pub struct Like {
    pub expr: Expr,
    pub pattern: Expr,
    pub escape: Option<char>,
    pub negated: bool,
    /// [`Collation::Binary`]: by bytes.
    pub collation: Collation,
    /// Of a literal pattern.
    pub(crate) compiled: Option<LikePattern>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Regexp {
    pub expr: Expr,
    pub pattern: Expr,
    pub negated: bool,
    pub case_insensitive: bool,
    /// Of a literal pattern.
    pub(crate) compiled: Option<RegexpPattern>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CaseBranch {
    pub when: Expr,
    /// How `when` compares with the operand; unused without one.
    pub by: Comparison,
    pub then: Expr,
}

/// The literals of a long IN list in order, for a binary search.
#[derive(Clone, Debug, PartialEq)]
pub enum SortedList {
    Integers(Vec<i128>),
    Texts(Vec<String>, Collation),
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
    /// GROUP_CONCAT: ORDER BY, with whether it descends.
    pub order_by: Vec<(Expr, bool)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateFunction {
    Count,
    Sum,
    Min,
    Max,
    Avg,
    GroupConcat,
    BitAnd,
    BitOr,
    BitXor,
    VarPop,
    VarSamp,
    StddevPop,
    StddevSamp,
    JsonArrayAgg,
    JsonObjectAgg,
    /// ST_Collect.
    Collect,
}

impl AggregateFunction {
    /// As EXPLAIN prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Avg => "avg",
            Self::GroupConcat => "group_concat",
            Self::BitAnd => "bit_and",
            Self::BitOr => "bit_or",
            Self::BitXor => "bit_xor",
            Self::VarPop => "var_pop",
            Self::VarSamp => "var_samp",
            Self::StddevPop => "std",
            Self::StddevSamp => "stddev_samp",
            Self::JsonArrayAgg => "json_arrayagg",
            Self::JsonObjectAgg => "json_objectagg",
            Self::Collect => "st_collect",
        }
    }

    /// Whether it may be NULL.
    pub fn is_nullable(self) -> bool {
        !matches!(self, Self::Count | Self::BitAnd | Self::BitOr | Self::BitXor)
    }
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
    /// Registers an aggregate and gives the node that reads its value; 1111 where none may stand.
    fn aggregate(&mut self, aggregate: Aggregate) -> Result<ExprKind, MysqlError>;
    /// A call of GROUPING(): the node that reads its value; 1111 where none may stand.
    fn grouping(&mut self, _arguments: Vec<Expr>) -> Result<ExprKind, MysqlError> {
        Err(MysqlError::new(rauk_types::error::codes::INVALID_GROUP_FUNC_USE, "Invalid use of group function"))
    }
    /// The arguments of a call of the window function `name` (upper case) follow. Error 3593 where none may stand.
    fn enter_window(&mut self, name: &str) -> Result<(), MysqlError> {
        Err(window_refused(name))
    }
    /// The arguments of that call have been bound.
    fn leave_window(&mut self) {}
    /// Registers a call of a window function and gives the node that reads its value.
    fn window(&mut self, _call: WindowCall, _over: &ast::Window) -> Result<ExprKind, MysqlError> {
        unreachable!("a scope that lets windows in registers them")
    }
    /// The column is what an aggregate or a window function gives.
    fn is_computed(&self, _column: ColumnId) -> bool {
        false
    }
    /// The column is one of a table of the system.
    fn is_of_system(&self, _column: ColumnId) -> bool {
        false
    }
    /// The arguments of an aggregate follow, or have been bound.
    fn within_aggregate(&mut self, _inside: bool) {}
    /// `VALUES(column)` in ON DUPLICATE KEY UPDATE.
    fn inserted_value(&mut self, column: &str) -> Result<Resolved, MysqlError>;
    /// Registers a search by MATCH over columns, and gives its number. Errors 1191, 1210.
    fn search(&mut self, _columns: &[Expr], _against: Expr, _mode: SearchMode) -> Result<usize, MysqlError> {
        Err(bind::wrong_arguments("MATCH"))
    }
    /// Binds a subquery. Error 1235 where none may stand.
    fn subquery(&mut self, _query: &crate::parse::ast::Query) -> Result<BoundSubquery, MysqlError> {
        Err(bind_not_yet("subqueries in expressions"))
    }
    /// Makes the `wanted` columns of a subquery, bound here, texts where they are ENUM or SET.
    fn subquery_texts(&mut self, _bound: &mut BoundSubquery, _wanted: &[bool]) {
        unreachable!("a scope that binds subqueries knows their columns")
    }
    /// `DEFAULT(column)`.
    fn default_value(&mut self, column: &[&str]) -> Result<Expr, MysqlError>;
}

/// ER_WINDOW_INVALID_WINDOW_FUNC_USE; `name` in upper case. The last quote is MySQL's.
pub(crate) fn window_refused(name: &str) -> MysqlError {
    let name = name.to_ascii_lowercase();
    MysqlError::new(3593, format!("You cannot use the window function '{name}' in this context.'"))
}

/// What binding needs to know besides names.
#[derive(Clone, Debug, Default)]
pub struct BindContext {
    /// Types of parameters, by position. A parameter beyond its end, or of type Null, is text that is converted when it is used.
    pub parameters: Vec<DataType>,
    /// collation_connection and sql_mode decide literals and operators.
    pub collation: rauk_types::Collation,
    pub sql_mode: context::SqlMode,
    pub switches: Switches,
    /// What DEFAULT in a hint that sets optimizer_switch means.
    pub usual_switches: Switches,
    /// The types of system variables, by name in lower case; without it they are text.
    pub variable_type: Option<fn(&str) -> Option<DataType>>,
    /// Types of the user variables that have a value, by name in lower case. A plan that reads one must not outlive its type.
    pub user_variables: std::collections::HashMap<String, DataType>,
    /// What the statement's trees are counted against.
    pub memory: crate::memory::Memory,
    /// CAST(… AS … ARRAY) is known: in expressions of a table.
    pub arrays: bool,
    /// Set when a call is bound that the operator waits for (SLEEP).
    pub waits: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

/// Binds an expression. Errors: those of [`Scope`], 1305 and 1582 for calls, 1267 for collations, 1235 for what Rauk has not, 1241 for rows.
pub fn bind(expr: &ast::Expr, scope: &mut dyn Scope, context: &BindContext) -> Result<Expr, MysqlError> {
    bind::Binder::new(scope, context).bind(expr)
}

/// Of CAST(document AS type ARRAY), the document and the type.
pub(crate) fn elements_of(expr: &Expr) -> Option<(&Expr, rauk_types::DataType)> {
    match &expr.kind {
        ExprKind::Function { function, arguments } if function.name == functions::json::elements::CAST_ARRAY.name => {
            Some((&arguments[0], arguments[1].ty))
        }
        _ => None,
    }
}

/// `left op right` for two bound expressions.
pub(crate) fn compare(
    op: CompareOp,
    left: Expr,
    right: Expr,
    scope: &mut dyn Scope,
    context: &BindContext,
) -> Result<Expr, MysqlError> {
    bind::Binder::new(scope, context).compare(op, left, right)
}

/// `date ± INTERVAL amount unit` of bound expressions.
pub(crate) fn date_add(
    date: Expr,
    amount: Expr,
    unit: Unit,
    subtract: bool,
    scope: &mut dyn Scope,
    context: &BindContext,
) -> Expr {
    bind::Binder::new(scope, context).date_add(date, amount, unit, subtract)
}

/// The type that the columns of a set operation agree on, and how strongly its collation holds. Errors 1267, 1271.
pub(crate) fn unified_type(
    items: &[Expr],
    operation: &str,
    context: &BindContext,
) -> Result<(DataType, u8), MysqlError> {
    // A BIT and other numbers are texts of digits.
    let is_bit = |item: &Expr| item.ty.kind == TypeKind::Bit;
    let is_number =
        |item: &Expr| matches!(types::Class::of(&item.ty), types::Class::Null) || item.ty.is_numeric() || is_bit(item);
    let others = items.iter().any(|item| !is_bit(item) && item.ty.kind != TypeKind::Null);
    if others && items.iter().any(is_bit) && items.iter().all(is_number) {
        let length = items.iter().map(|item| types::text_length(&types::numeric(&item.ty)));
        return Ok((types::text_type(length.max().unwrap_or(0), Collation::Binary), types::IMPLICIT));
    }
    // One ENUM or SET beside NULL stays one; two become texts.
    let mut present = items.iter().filter(|item| item.ty.kind != TypeKind::Null);
    if let (Some(only), None) = (present.next(), present.next())
        && only.ty.has_members()
    {
        return Ok((only.ty, only.coercibility));
    }
    match types::unify(items, operation, context.collation) {
        Ok((ty, types::MIXED)) if ty.is_text() => Err(types::mix_of_many(operation)),
        unified => unified,
    }
}

/// The text of an ENUM or SET; anything else as it is.
pub(crate) fn text_of_members(expr: Expr) -> Expr {
    bind::as_text(expr)
}

/// The expression as a value of this type.
pub(crate) fn converted_to(expr: Expr, ty: &DataType) -> Expr {
    let is_digits = expr.ty.kind == TypeKind::Bit && ty.is_bytes();
    let expr = if is_digits { bind_sorted(expr) } else { expr };
    let is_new_year = ty.kind == TypeKind::Year && !matches!(expr.ty.kind, TypeKind::Year | TypeKind::Null);
    let cast_to = matches!(expr.kind, ExprKind::Cast(_)).then_some(expr.ty);
    let converted = bind_converted(expr, ty);
    // What a cast does is its type: CHAR(2) cuts, also beside a longer text.
    if cast_to == Some(converted.ty) {
        return converted;
    }
    if is_new_year {
        // Two digits are a year, as where they are stored.
        let nullable = converted.nullable;
        let kind =
            ExprKind::Function { function: &functions::miscellaneous::YEAR_CONSTANT, arguments: vec![converted] };
        return Expr { kind, ty: *ty, nullable, coercibility: types::NUMERIC };
    }
    Expr { ty: *ty, ..converted }
}

impl Expr {
    /// The value for one row. Errors: those of the functions; 1690, 1365 and 1292 where strictness makes them errors.
    pub fn eval(&self, row: &dyn Columns, context: &mut Context) -> Result<Value, MysqlError> {
        eval::with_parameters(context, |parameters, context| {
            Ok(self.value(&eval::Env { row, parameters }, context)?.into_value())
        })
    }

    /// As a condition: NULL is false.
    pub fn eval_bool(&self, row: &dyn Columns, context: &mut Context) -> Result<bool, MysqlError> {
        eval::with_parameters(context, |parameters, context| {
            Ok(self.truth(&eval::Env { row, parameters }, context)? == Some(true))
        })
    }

    /// As a condition of which NULL is neither.
    pub fn eval_truth(&self, row: &dyn Columns, context: &mut Context) -> Result<Option<bool>, MysqlError> {
        eval::with_parameters(context, |parameters, context| self.truth(&eval::Env { row, parameters }, context))
    }

    /// Gives the value to `use_value` without copying it out of the row: for sorting, grouping and sending.
    pub fn eval_ref<R>(
        &self,
        row: &dyn Columns,
        context: &mut Context,
        use_value: impl FnOnce(ValueRef<'_>) -> R,
    ) -> Result<R, MysqlError> {
        eval::with_parameters(context, |parameters, context| {
            let value = self.value(&eval::Env { row, parameters }, context)?;
            Ok(use_value(value.as_ref()))
        })
    }

    /// No column, aggregate, or function whose value changes within a statement: may be evaluated once before the scan (parameters are allowed).
    pub fn is_constant(&self) -> bool {
        let own = match &self.kind {
            ExprKind::Column { .. }
            | ExprKind::GroupValue(_)
            | ExprKind::Reference(_)
            | ExprKind::AssignVariable { .. } => false,
            ExprKind::Function { function, .. } => !function.volatile,
            _ => true,
        };
        let mut constant = own;
        self.for_each_child(&mut |child| constant = constant && child.is_constant());
        constant
    }

    /// Whether evaluating it more or less often, or in another order, makes a difference.
    pub(crate) fn has_effects(&self) -> bool {
        let mut effects = match &self.kind {
            ExprKind::AssignVariable { .. } => true,
            ExprKind::Function { function, .. } => function.volatile,
            _ => false,
        };
        self.for_each_child(&mut |child| effects = effects || child.has_effects());
        effects
    }

    /// Gives the same value in every statement of every session: no column, parameter, variable, clock or session state. Only such a
    /// value may be kept in a definition.
    pub fn is_immutable(&self) -> bool {
        let own = match &self.kind {
            ExprKind::Column { .. }
            | ExprKind::GroupValue(_)
            | ExprKind::Reference(_)
            | ExprKind::Subquery(_)
            | ExprKind::AssignVariable { .. }
            | ExprKind::UserVariable(_)
            | ExprKind::SystemVariable { .. }
            | ExprKind::Parameter(_) => false,
            ExprKind::Function { function, .. } => function.pure,
            _ => true,
        };
        let mut immutable = own;
        self.for_each_child(&mut |child| immutable = immutable && child.is_immutable());
        immutable
    }

    /// Whether its value is a boolean in a document. A literal may be TRUE or 1: binding knows that by what was written.
    pub(crate) fn is_boolean(&self) -> bool {
        self.is_predicate() && !matches!(self.kind, ExprKind::Literal(_))
    }

    /// Whether MySQL takes an integer expression for a boolean.
    pub(crate) fn is_predicate(&self) -> bool {
        match &self.kind {
            ExprKind::Literal(_) => self.ty == DataType { length: 1, ..DataType::BIGINT },
            ExprKind::Compare { .. }
            | ExprKind::And(..)
            | ExprKind::Or(..)
            | ExprKind::Xor(..)
            | ExprKind::Not(_)
            | ExprKind::IsNull { .. }
            | ExprKind::IsTruth { .. }
            | ExprKind::Between { .. }
            | ExprKind::InList { .. }
            | ExprKind::Like(_)
            | ExprKind::Regexp(_) => true,
            _ => false,
        }
    }

    /// Has few nodes: what the binder may copy.
    pub(crate) fn is_simple(&self) -> bool {
        const MOST: usize = 8;
        fn count(expr: &Expr, nodes: &mut usize) {
            *nodes += 1;
            if *nodes <= MOST {
                expr.for_each_child(&mut |child| count(child, nodes));
            }
        }
        let mut nodes = 0;
        count(self, &mut nodes);
        nodes <= MOST
    }

    /// How many nodes it has.
    pub(crate) fn nodes(&self) -> usize {
        let mut nodes = 1;
        self.for_each_child(&mut |child| nodes += child.nodes());
        nodes
    }

    /// Calls `visit` on every column that the expression reads.
    pub fn for_each_column(&self, visit: &mut dyn FnMut(usize, usize)) {
        if let ExprKind::Column { table, column } = self.kind {
            visit(table, column);
        }
        self.for_each_child(&mut |child| child.for_each_column(visit));
    }

    /// Calls `visit` on the expressions right below this one.
    pub fn for_each_child(&self, visit: &mut dyn FnMut(&Expr)) {
        match &self.kind {
            ExprKind::Literal(_)
            | ExprKind::Column { .. }
            | ExprKind::GroupValue(_)
            | ExprKind::Reference(_)
            | ExprKind::Parameter(_)
            | ExprKind::UserVariable(_)
            | ExprKind::SystemVariable { .. } => {}
            ExprKind::Subquery(subquery) => subquery.outer.iter().chain(subquery.test.left()).for_each(visit),
            ExprKind::Deep(deep) => deep.with(visit),
            ExprKind::Compare { left, right, .. }
            | ExprKind::And(left, right)
            | ExprKind::Or(left, right)
            | ExprKind::Xor(left, right)
            | ExprKind::Arithmetic { left, right, .. }
            | ExprKind::NullIf { left, right, .. }
            | ExprKind::Bit { left, right, .. } => {
                visit(left);
                visit(right);
            }
            ExprKind::RowOrder { parts, .. } => parts.iter().for_each(|part| {
                visit(&part.left);
                visit(&part.right);
            }),
            ExprKind::RowIn(row_in) => {
                row_in.left.iter().chain(row_in.rows.iter().flatten().map(|(value, _)| value)).for_each(visit);
            }
            ExprKind::Not(expr)
            | ExprKind::IsNull { expr, .. }
            | ExprKind::IsTruth { expr, .. }
            | ExprKind::Negate { expr, .. }
            | ExprKind::BitNot(expr)
            | ExprKind::Cast(expr)
            | ExprKind::Collate(expr)
            | ExprKind::AssignVariable { value: expr, .. } => visit(expr),
            ExprKind::Between { expr, low, high, .. } => {
                visit(expr);
                visit(low);
                visit(high);
            }
            ExprKind::InList { expr, list, .. } => {
                visit(expr);
                list.iter().for_each(|(item, _)| visit(item));
            }
            ExprKind::Like(like) => {
                visit(&like.expr);
                visit(&like.pattern);
            }
            ExprKind::Regexp(regexp) => {
                visit(&regexp.expr);
                visit(&regexp.pattern);
            }
            ExprKind::Case { operand, branches, otherwise } => {
                operand.iter().for_each(|e| visit(e));
                for branch in branches {
                    visit(&branch.when);
                    visit(&branch.then);
                }
                otherwise.iter().for_each(|e| visit(e));
            }
            ExprKind::Coalesce(items) | ExprKind::Function { arguments: items, .. } => items.iter().for_each(visit),
            ExprKind::DateAdd { date, amount, .. } => {
                visit(date);
                visit(amount);
            }
        }
    }

    /// The expression with every node below and itself given to `change`, innermost first.
    pub fn map(mut self, change: &mut dyn FnMut(Expr) -> Expr) -> Expr {
        self.for_each_child_mut(&mut |child| {
            let inner = std::mem::replace(child, Expr::null());
            *child = inner.map(change);
        });
        change(self)
    }

    /// As [`Expr::for_each_child`], to change them.
    pub fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match &mut self.kind {
            ExprKind::Literal(_)
            | ExprKind::Column { .. }
            | ExprKind::GroupValue(_)
            | ExprKind::Reference(_)
            | ExprKind::Parameter(_)
            | ExprKind::UserVariable(_)
            | ExprKind::SystemVariable { .. } => {}
            ExprKind::Subquery(subquery) => {
                let Subquery { outer, test, .. } = &mut **subquery;
                outer.iter_mut().chain(test.left_mut()).for_each(visit);
            }
            ExprKind::Deep(deep) => deep.with_mut(visit),
            ExprKind::Compare { left, right, .. }
            | ExprKind::And(left, right)
            | ExprKind::Or(left, right)
            | ExprKind::Xor(left, right)
            | ExprKind::Arithmetic { left, right, .. }
            | ExprKind::NullIf { left, right, .. }
            | ExprKind::Bit { left, right, .. } => {
                visit(left);
                visit(right);
            }
            ExprKind::RowOrder { parts, .. } => parts.iter_mut().for_each(|part| {
                visit(&mut part.left);
                visit(&mut part.right);
            }),
            ExprKind::RowIn(row_in) => {
                let RowIn { left, rows, .. } = &mut **row_in;
                left.iter_mut().chain(rows.iter_mut().flatten().map(|(value, _)| value)).for_each(visit);
            }
            ExprKind::Not(expr)
            | ExprKind::IsNull { expr, .. }
            | ExprKind::IsTruth { expr, .. }
            | ExprKind::Negate { expr, .. }
            | ExprKind::BitNot(expr)
            | ExprKind::Cast(expr)
            | ExprKind::Collate(expr)
            | ExprKind::AssignVariable { value: expr, .. } => visit(expr),
            ExprKind::Between { expr, low, high, .. } => {
                visit(expr);
                visit(low);
                visit(high);
            }
            ExprKind::InList { expr, list, .. } => {
                visit(expr);
                list.iter_mut().for_each(|(item, _)| visit(item));
            }
            ExprKind::Like(like) => {
                visit(&mut like.expr);
                visit(&mut like.pattern);
            }
            ExprKind::Regexp(regexp) => {
                visit(&mut regexp.expr);
                visit(&mut regexp.pattern);
            }
            ExprKind::Case { operand, branches, otherwise } => {
                operand.iter_mut().for_each(|e| visit(e));
                for branch in branches {
                    visit(&mut branch.when);
                    visit(&mut branch.then);
                }
                otherwise.iter_mut().for_each(|e| visit(e));
            }
            ExprKind::Coalesce(items) | ExprKind::Function { arguments: items, .. } => items.iter_mut().for_each(visit),
            ExprKind::DateAdd { date, amount, .. } => {
                visit(date);
                visit(amount);
            }
        }
    }

    /// The literal NULL.
    pub fn null() -> Expr {
        Expr {
            kind: ExprKind::Literal(Value::Null),
            ty: DataType::new(rauk_types::TypeKind::Null),
            nullable: true,
            coercibility: types::IGNORABLE,
        }
    }

    /// The conditions that AND joins, outermost first, left to right.
    pub fn conjuncts(self) -> Vec<Expr> {
        let mut out = Vec::new();
        let mut pending = vec![self];
        while let Some(expr) = pending.pop() {
            match expr.kind {
                ExprKind::And(left, right) => {
                    pending.push(*right);
                    pending.push(*left);
                }
                _ => out.push(expr),
            }
        }
        out
    }
}
