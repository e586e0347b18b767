//! Calls of window functions: what they may say, and the types of their results.
//!
//! The window behind OVER is the scope's: it knows the windows of the block.

use super::aggregates::aggregate_function;
use super::{Binder, members, not_yet, syntax};
use crate::expr::convert::Result;
use crate::expr::types::{self, unify};
use crate::expr::{Aggregate, AggregateFunction, Expr, ExprKind, WindowCall, WindowFunction};
use crate::parse::ast::{self, Arguments, Call, Literal, NullTreatment};
use rauk_types::error::codes;
use rauk_types::{DataType, MysqlError, Value};

/// Error 1210.
fn wrong_arguments(name: &str) -> MysqlError {
    MysqlError::new(codes::WRONG_ARGUMENTS, format!("Incorrect arguments to {}", name.to_ascii_lowercase()))
}

/// Whether MySQL's grammar takes the expression as a count: an integer as it is written, a parameter, a variable.
fn is_count(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Literal(Literal::Number(digits)) => digits.bytes().all(|digit| digit.is_ascii_digit()),
        ast::Expr::Parameter(_) | ast::Expr::UserVariable(_) => true,
        _ => false,
    }
}

impl Binder<'_> {
    /// A call with OVER, or of a function that needs it; `name` in upper case. Errors: 3593 where none may stand, 1064, 1210, 1235.
    pub(super) fn window_call(&mut self, call: &Call, name: &str) -> Result<Expr> {
        let Some(over) = &call.over else { return Err(syntax(&call.name)) };
        let function = match (WindowFunction::from_name(name), aggregate_function(name)) {
            (Some(function), _) => function,
            (None, Some(function)) => WindowFunction::Aggregate(function),
            (None, None) => return Err(syntax("OVER")),
        };
        self.scope.enter_window(name)?;
        if call.nulls == Some(NullTreatment::Ignore) {
            return Err(not_yet("IGNORE NULLS"));
        }
        if call.from_last {
            return Err(not_yet("FROM LAST"));
        }
        let (bound, coercibility) = match function {
            WindowFunction::Aggregate(function) => self.aggregate_in_window(function, call, name)?,
            function => self.own_window_call(function, call, name)?,
        };
        self.scope.leave_window();
        let (ty, nullable) = (bound.ty, bound.nullable);
        let kind = self.scope.window(bound, over)?;
        Ok(Expr { kind, ty, nullable, coercibility })
    }

    fn aggregate_in_window(
        &mut self,
        function: AggregateFunction,
        call: &Call,
        name: &str,
    ) -> Result<(WindowCall, u8)> {
        let (aggregate, coercibility) = self.aggregate_call(function, call, name)?;
        if aggregate.distinct {
            return Err(not_yet("<window function>(DISTINCT ..)"));
        }
        if function == AggregateFunction::GroupConcat {
            return Err(not_yet("GROUP_CONCAT as window function"));
        }
        let nullable = function.is_nullable();
        let Aggregate { arguments, ty, .. } = aggregate;
        Ok((WindowCall { function: WindowFunction::Aggregate(function), arguments, ty, nullable }, coercibility))
    }

    fn own_window_call(&mut self, function: WindowFunction, call: &Call, name: &str) -> Result<(WindowCall, u8)> {
        use WindowFunction::{Aggregate, CumeDist, DenseRank, FirstValue, Lag, LastValue, Lead};
        use WindowFunction::{NthValue, Ntile, PercentRank, Rank, RowNumber};
        let items = match &call.arguments {
            Arguments::List { distinct: false, items } if call.order_by.is_empty() && call.separator.is_none() => items,
            _ => return Err(syntax(name)),
        };
        let wanted = match function {
            RowNumber | Rank | DenseRank | PercentRank | CumeDist => 0..=0,
            Ntile | FirstValue | LastValue => 1..=1,
            NthValue => 2..=2,
            Lag | Lead => 1..=3,
            Aggregate(_) => unreachable!("aggregates are bound as such"),
        };
        if !wanted.contains(&items.len()) {
            return Err(syntax(name));
        }
        let mut arguments = Vec::with_capacity(items.len().max(2));
        for (number, item) in items.iter().enumerate() {
            let count = match function {
                Ntile => number == 0,
                Lag | Lead => number == 1,
                _ => false,
            };
            if count && !is_count(item) {
                return Err(syntax(name));
            }
            let bound = self.bind(item)?;
            // A member is a text here, as in MIN: its number is the column's.
            let is_value = number == 0 && matches!(function, FirstValue | LastValue | NthValue | Lag | Lead);
            arguments.push(if is_value { members::as_text(bound) } else { bound });
        }
        let unsigned = DataType { length: 21, ..DataType::BIGINT_UNSIGNED };
        let (ty, nullable, coercibility) = match function {
            RowNumber | Rank | DenseRank => (unsigned, false, types::NUMERIC),
            PercentRank | CumeDist => (DataType::DOUBLE, false, types::NUMERIC),
            Ntile => {
                check_count(&arguments[0], 1, name)?;
                (unsigned, false, types::NUMERIC)
            }
            NthValue => {
                if !arguments[1].is_constant() || arguments[1].has_subquery() {
                    return Err(wrong_arguments(name));
                }
                check_count(&arguments[1], 1, name)?;
                (types::plain(arguments[0].ty), true, arguments[0].coercibility)
            }
            Lag | Lead => {
                if arguments.len() == 1 {
                    arguments.push(super::literal(Value::Int(1), DataType::BIGINT, types::NUMERIC));
                }
                check_count(&arguments[1], 0, name)?;
                match arguments.pop() {
                    Some(default) if arguments.len() == 2 => {
                        let operation = name.to_ascii_lowercase();
                        let (ty, coercibility) = unify([&arguments[0], &default], &operation, self.context.collation)?;
                        let nullable = arguments[0].nullable || default.nullable;
                        let count = arguments.pop().expect("there are two");
                        let value = arguments.pop().expect("there is one");
                        arguments.extend([super::converted(value, &ty), count, super::converted(default, &ty)]);
                        (ty, nullable, coercibility)
                    }
                    count => {
                        arguments.extend(count);
                        (types::plain(arguments[0].ty), true, arguments[0].coercibility)
                    }
                }
            }
            _ => (types::plain(arguments[0].ty), true, arguments[0].coercibility),
        };
        Ok((WindowCall { function, arguments, ty, nullable }, coercibility))
    }
}

/// Error 1210 for a count that is written and none: what only an execution knows is checked there.
fn check_count(count: &Expr, least: i64, name: &str) -> Result<()> {
    match &count.kind {
        ExprKind::Literal(Value::Int(count)) if *count >= least => Ok(()),
        ExprKind::Literal(_) => Err(wrong_arguments(name)),
        _ => Ok(()),
    }
}
