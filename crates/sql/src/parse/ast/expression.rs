//! Expressions as they were written.

use super::{ColumnName, OrderItem, Query, Window};
use crate::parse::statement::Scope;

/// `JSON_VALUE(document, 'path' RETURNING type … ON EMPTY … ON ERROR)`
#[derive(Clone, Debug, PartialEq)]
pub struct JsonValue {
    pub document: Expr,
    pub path: String,
    pub returning: Option<CastType>,
    pub on_empty: Option<OnNoValue>,
    pub on_error: Option<OnNoValue>,
}

/// Before ON EMPTY and ON ERROR of JSON_VALUE.
#[derive(Clone, Debug, PartialEq)]
pub enum OnNoValue {
    Null,
    Error,
    Default(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Literal(Literal),
    Column(ColumnName),
    /// The `?` at this position, from 0.
    Parameter(usize),
    /// `@name`.
    UserVariable(String),
    /// `@name := value`.
    AssignVariable {
        name: String,
        value: Box<Expr>,
    },
    /// `@@name`, `@@SESSION.name`.
    SystemVariable {
        scope: Scope,
        name: String,
    },
    /// DEFAULT by itself, as a value of INSERT or UPDATE.
    Default,
    /// `DEFAULT(column)`.
    DefaultOf(ColumnName),
    /// `VALUES(column)`.
    InsertedValue(ColumnName),

    Unary {
        op: UnaryOp,
        operand: Box<Expr>,
    },
    Binary {
        op: BinaryOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// IS [NOT] NULL, TRUE, FALSE, UNKNOWN.
    Is {
        operand: Box<Expr>,
        test: IsTest,
        negated: bool,
    },
    Between {
        operand: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
    },
    InList {
        operand: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
    },
    InQuery {
        operand: Box<Expr>,
        query: Box<Query>,
        negated: bool,
    },
    Like {
        operand: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<Box<Expr>>,
        negated: bool,
    },
    /// REGEXP and RLIKE.
    Regexp {
        operand: Box<Expr>,
        pattern: Box<Expr>,
        negated: bool,
    },
    /// `value MEMBER OF (array)`.
    MemberOf {
        value: Box<Expr>,
        array: Box<Expr>,
    },
    /// `column -> path`; `->>` unquotes.
    JsonPath {
        column: Box<Expr>,
        path: String,
        unquote: bool,
    },

    /// JSON_VALUE with RETURNING, ON EMPTY or ON ERROR; without them it is a call.
    JsonValue(Box<JsonValue>),

    /// `(a, b)` and `ROW(a, b)`: at least one item.
    Row(Vec<Expr>),
    /// `(SELECT …)` as a value or a row.
    Subquery(Box<Query>),
    Exists(Box<Query>),
    /// `left op ANY (SELECT …)`; SOME is ANY. `op` is a comparison.
    Quantified {
        left: Box<Expr>,
        op: BinaryOp,
        quantifier: Quantifier,
        query: Box<Query>,
    },

    Case {
        operand: Option<Box<Expr>>,
        /// WHEN and THEN; at least one.
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    /// `CAST(operand AS target)`, `CONVERT(operand, target)`, `BINARY operand`.
    Cast {
        operand: Box<Expr>,
        target: CastType,
    },
    /// `CONVERT(operand USING charset)`.
    ConvertUsing {
        operand: Box<Expr>,
        charset: String,
    },
    Collate {
        operand: Box<Expr>,
        collation: String,
    },
    Extract {
        unit: Unit,
        operand: Box<Expr>,
    },
    /// WEIGHT_STRING(operand AS CHAR(length)), or AS BINARY.
    WeightString {
        operand: Box<Expr>,
        binary: bool,
        length: u32,
    },
    Trim {
        side: TrimSide,
        /// What is removed; `None`: spaces.
        what: Option<Box<Expr>>,
        operand: Box<Expr>,
    },
    /// `INTERVAL amount unit`: beside `+` and `-`, as an argument, in a frame.
    Interval {
        amount: Box<Expr>,
        unit: Unit,
    },
    /// `TIMESTAMPADD(unit, amount, date)`.
    TimestampAdd {
        unit: Unit,
        amount: Box<Expr>,
        date: Box<Expr>,
    },
    /// `TIMESTAMPDIFF(unit, from, to)`.
    TimestampDiff {
        unit: Unit,
        from: Box<Expr>,
        to: Box<Expr>,
    },
    /// `MATCH (columns) AGAINST (text mode)`.
    Match {
        columns: Vec<ColumnName>,
        against: Box<Expr>,
        mode: MatchMode,
    },
    Call(Box<Call>),
}

/// A call of a function or of an aggregate.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// `database.function`, for stored functions.
    pub database: Option<String>,
    /// As written.
    pub name: String,
    pub arguments: Arguments,
    /// GROUP_CONCAT.
    pub order_by: Vec<OrderItem>,
    /// GROUP_CONCAT: SEPARATOR.
    pub separator: Option<String>,
    pub over: Option<Window>,
    /// LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE: what is written behind the arguments.
    pub nulls: Option<NullTreatment>,
    /// NTH_VALUE: FROM LAST.
    pub from_last: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// `COUNT(*)`.
    Star,
    List {
        distinct: bool,
        items: Vec<Expr>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullTreatment {
    Respect,
    Ignore,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Null,
    Boolean(bool),
    /// The digits as they were written: an integer, a decimal, or a double with an exponent.
    Number(String),
    Text {
        value: String,
        introducer: Option<Introducer>,
    },
    /// `x'…'` and `0x…`: an even number of hexadecimal digits.
    Hex {
        digits: String,
        introducer: Option<Introducer>,
    },
    /// `b'…'` and `0b…`.
    Bits {
        digits: String,
        introducer: Option<Introducer>,
    },
    /// `DATE '…'`, `{d '…'}`.
    Date(String),
    /// `TIME '…'`, `{t '…'}`.
    Time(String),
    /// `TIMESTAMP '…'`, `{ts '…'}`.
    Timestamp(String),
}

/// What stands before a text: `_utf8mb4'…'`, or `N'…'`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Introducer {
    /// The name of the character set in lower case, without the underscore.
    Charset(String),
    National,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `+a`.
    Plus,
    Minus,
    /// `~a`.
    BitNot,
    /// NOT and `!`.
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    Or,
    Xor,
    And,
    Equal,
    /// `<=>`.
    NullSafeEqual,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    BitOr,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    /// DIV.
    IntegerDivide,
    /// `%` and MOD.
    Modulo,
    BitXor,
    /// `||` under PIPES_AS_CONCAT.
    Concat,
}

impl BinaryOp {
    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Or => "or",
            BinaryOp::Xor => "xor",
            BinaryOp::And => "and",
            BinaryOp::Equal => "=",
            BinaryOp::NullSafeEqual => "<=>",
            BinaryOp::NotEqual => "<>",
            BinaryOp::Less => "<",
            BinaryOp::LessOrEqual => "<=",
            BinaryOp::Greater => ">",
            BinaryOp::GreaterOrEqual => ">=",
            BinaryOp::BitOr => "|",
            BinaryOp::BitAnd => "&",
            BinaryOp::ShiftLeft => "<<",
            BinaryOp::ShiftRight => ">>",
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
            BinaryOp::Divide => "/",
            BinaryOp::IntegerDivide => "DIV",
            BinaryOp::Modulo => "%",
            BinaryOp::BitXor => "^",
            BinaryOp::Concat => "||",
        }
    }

    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Equal | NullSafeEqual | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsTest {
    Null,
    True,
    False,
    /// UNKNOWN: NULL under another name.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    Any,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimSide {
    Both,
    Leading,
    Trailing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchMode {
    /// IN NATURAL LANGUAGE MODE, and when nothing is said.
    Natural,
    NaturalWithExpansion,
    Boolean,
    /// WITH QUERY EXPANSION.
    Expansion,
}

/// The types that CAST knows.
#[derive(Clone, Debug, PartialEq)]
pub enum CastType {
    Signed,
    Unsigned,
    /// CHAR and NCHAR, with `CHARACTER SET` where one was written.
    Char {
        length: Option<u64>,
        charset: Option<String>,
    },
    Binary(Option<u64>),
    Date,
    DateTime(Option<u64>),
    Time(Option<u64>),
    Decimal {
        precision: Option<u64>,
        scale: Option<u64>,
    },
    Float(Option<u64>),
    Double,
    Json,
    Year,
    Geometry(rauk_types::GeometryKind),
    /// `type ARRAY`: of the elements of a document, in keys.
    Array(Box<CastType>),
}

/// The units of INTERVAL, EXTRACT, TIMESTAMPADD and TIMESTAMPDIFF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

impl Unit {
    const NAMES: [(Unit, &'static str); 20] = [
        (Unit::Microsecond, "MICROSECOND"),
        (Unit::Second, "SECOND"),
        (Unit::Minute, "MINUTE"),
        (Unit::Hour, "HOUR"),
        (Unit::Day, "DAY"),
        (Unit::Week, "WEEK"),
        (Unit::Month, "MONTH"),
        (Unit::Quarter, "QUARTER"),
        (Unit::Year, "YEAR"),
        (Unit::SecondMicrosecond, "SECOND_MICROSECOND"),
        (Unit::MinuteMicrosecond, "MINUTE_MICROSECOND"),
        (Unit::MinuteSecond, "MINUTE_SECOND"),
        (Unit::HourMicrosecond, "HOUR_MICROSECOND"),
        (Unit::HourSecond, "HOUR_SECOND"),
        (Unit::HourMinute, "HOUR_MINUTE"),
        (Unit::DayMicrosecond, "DAY_MICROSECOND"),
        (Unit::DaySecond, "DAY_SECOND"),
        (Unit::DayMinute, "DAY_MINUTE"),
        (Unit::DayHour, "DAY_HOUR"),
        (Unit::YearMonth, "YEAR_MONTH"),
    ];

    /// By its upper-case name.
    pub fn from_name(name: &str) -> Option<Unit> {
        Unit::NAMES.iter().find(|(_, known)| *known == name).map(|(unit, _)| *unit)
    }

    /// In upper case.
    pub fn name(self) -> &'static str {
        Unit::NAMES.iter().find(|(unit, _)| *unit == self).map_or("", |(_, name)| name)
    }
}

/// Functions that may wait before they have a value.
const WAITING: &[&str] = &["sleep", "get_lock", "release_lock", "release_all_locks", "is_free_lock", "is_used_lock"];

impl Expr {
    /// Whether it has to be run as a query: one stands in it, or a function that waits (SLEEP, GET_LOCK), at any depth.
    pub fn has_query(&self) -> bool {
        let any = |items: &[Expr]| items.iter().any(|item| item.has_query());
        let maybe = |item: &Option<Box<Expr>>| item.as_ref().is_some_and(|item| item.has_query());
        crate::stack::grow(|| match self {
            Expr::InQuery { .. } | Expr::Subquery(_) | Expr::Exists(_) | Expr::Quantified { .. } => true,
            Expr::Literal(_)
            | Expr::Column(_)
            | Expr::Parameter(_)
            | Expr::UserVariable(_)
            | Expr::SystemVariable { .. }
            | Expr::Default
            | Expr::DefaultOf(_)
            | Expr::InsertedValue(_)
            | Expr::Match { .. } => false,
            Expr::AssignVariable { value: operand, .. }
            | Expr::Unary { operand, .. }
            | Expr::Is { operand, .. }
            | Expr::JsonPath { column: operand, .. }
            | Expr::Cast { operand, .. }
            | Expr::ConvertUsing { operand, .. }
            | Expr::Collate { operand, .. }
            | Expr::WeightString { operand, .. }
            | Expr::Extract { operand, .. }
            | Expr::Interval { amount: operand, .. } => operand.has_query(),
            Expr::Binary { left: one, right: other, .. }
            | Expr::Regexp { operand: one, pattern: other, .. }
            | Expr::MemberOf { value: one, array: other }
            | Expr::TimestampAdd { amount: one, date: other, .. }
            | Expr::TimestampDiff { from: one, to: other, .. } => one.has_query() || other.has_query(),
            Expr::JsonValue(call) => {
                let default = |on: &Option<OnNoValue>| matches!(on, Some(OnNoValue::Default(item)) if item.has_query());
                call.document.has_query() || default(&call.on_empty) || default(&call.on_error)
            }
            Expr::Between { operand, low, high, .. } => operand.has_query() || low.has_query() || high.has_query(),
            Expr::InList { operand, list, .. } => operand.has_query() || any(list),
            Expr::Like { operand, pattern, escape, .. } => operand.has_query() || pattern.has_query() || maybe(escape),
            Expr::Trim { what, operand, .. } => operand.has_query() || maybe(what),
            Expr::Row(items) => any(items),
            Expr::Case { operand, branches, otherwise } => {
                let branch = |(when, then): &(Expr, Expr)| when.has_query() || then.has_query();
                maybe(operand) || branches.iter().any(branch) || maybe(otherwise)
            }
            Expr::Call(call) => match &call.arguments {
                _ if call.database.is_none() && WAITING.iter().any(|name| call.name.eq_ignore_ascii_case(name)) => true,
                Arguments::Star => false,
                Arguments::List { items, .. } => any(items),
            },
        })
    }

    /// An integer or decimal literal by its digits.
    pub fn number(digits: impl Into<String>) -> Expr {
        Expr::Literal(Literal::Number(digits.into()))
    }

    pub fn text(value: impl Into<String>) -> Expr {
        Expr::Literal(Literal::Text { value: value.into(), introducer: None })
    }

    pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
        Expr::Binary { op, left: Box::new(left), right: Box::new(right) }
    }

    /// A call of a function with these arguments.
    pub fn call(name: impl Into<String>, items: Vec<Expr>) -> Expr {
        Expr::Call(Box::new(Call {
            database: None,
            name: name.into(),
            arguments: Arguments::List { distinct: false, items },
            order_by: vec![],
            separator: None,
            over: None,
            nulls: None,
            from_last: false,
        }))
    }
}
