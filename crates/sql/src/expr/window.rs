//! Window functions: which there are, and what a call says.
//!
//! As with aggregates, a call is not computed where it stands: the scope registers it with its query block and gives the node that reads its value. Every
//! aggregate is a window function too; it then takes the rows of the frame of each row.

use super::{AggregateFunction, Comparison, Expr};
use rauk_types::DataType;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
    Aggregate(AggregateFunction),
}

impl WindowFunction {
    /// The functions that are nothing but window functions, by their names in upper case.
    pub fn from_name(name: &str) -> Option<WindowFunction> {
        Some(match name {
            "ROW_NUMBER" => WindowFunction::RowNumber,
            "RANK" => WindowFunction::Rank,
            "DENSE_RANK" => WindowFunction::DenseRank,
            "PERCENT_RANK" => WindowFunction::PercentRank,
            "CUME_DIST" => WindowFunction::CumeDist,
            "NTILE" => WindowFunction::Ntile,
            "LAG" => WindowFunction::Lag,
            "LEAD" => WindowFunction::Lead,
            "FIRST_VALUE" => WindowFunction::FirstValue,
            "LAST_VALUE" => WindowFunction::LastValue,
            "NTH_VALUE" => WindowFunction::NthValue,
            _ => return None,
        })
    }

    /// Whether its value depends on the frame, and not on the partition alone.
    pub fn uses_frame(self) -> bool {
        matches!(self, Self::FirstValue | Self::LastValue | Self::NthValue | Self::Aggregate(_))
    }
}

/// A call of a window function; its arguments are bound already.
///
/// The number of NTILE (first argument) and of LAG, LEAD and NTH_VALUE (second one) is a constant, evaluated once an execution; LAG and LEAD
/// always have it. All other arguments are evaluated for each row.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    pub function: WindowFunction,
    pub arguments: Vec<Expr>,
    pub ty: DataType,
    pub nullable: bool,
}

impl WindowCall {
    /// The place of the argument that is a constant number.
    pub fn count_argument(&self) -> Option<usize> {
        match self.function {
            WindowFunction::Ntile => Some(0),
            WindowFunction::Lag | WindowFunction::Lead | WindowFunction::NthValue => Some(1),
            _ => None,
        }
    }
}

/// The rows of a partition that a function takes for a row.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFrame {
    /// Its window, as errors call it.
    pub window: Box<str>,
    /// RANGE: bounds are found by the values of the order, and CURRENT ROW means all rows that are equal to it there. Else ROWS.
    pub range: bool,
    pub start: FrameBound,
    pub end: FrameBound,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    /// The first row of the partition, or the last one: that on the bound's own side.
    Unbounded,
    CurrentRow,
    Distance {
        by: Distance,
        preceding: bool,
    },
}

/// How far a bound is from the current row.
#[derive(Clone, Debug, PartialEq)]
pub enum Distance {
    /// ROWS: so many rows. RANGE over a number: a difference. A constant, evaluated once an execution.
    Number(Expr),
    /// RANGE over a date or time.
    Interval {
        /// A constant.
        amount: Expr,
        /// The current row's key, moved by the amount.
        moved: Expr,
        /// How keys compare with it.
        by: Comparison,
    },
}

impl FrameBound {
    /// Calls `visit` on its expressions.
    pub fn for_each_expr<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            FrameBound::Distance { by: Distance::Number(number), .. } => visit(number),
            FrameBound::Distance { by: Distance::Interval { amount, moved, .. }, .. } => {
                visit(amount);
                visit(moved);
            }
            FrameBound::Unbounded | FrameBound::CurrentRow => {}
        }
    }

    /// Calls `visit` on its expressions, to change them.
    pub fn for_each_expr_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            FrameBound::Distance { by: Distance::Number(number), .. } => visit(number),
            FrameBound::Distance { by: Distance::Interval { amount, moved, .. }, .. } => {
                visit(amount);
                visit(moved);
            }
            FrameBound::Unbounded | FrameBound::CurrentRow => {}
        }
    }
}
