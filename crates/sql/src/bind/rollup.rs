//! GROUP BY … WITH ROLLUP: what its keys are above the grouping, and GROUPING().
//!
//! In a super-aggregate row the keys that are summed up are NULL, whatever the rows below hold. So the grouping makes a column of each key, and the
//! select list, HAVING and ORDER BY read these columns wherever a key stands in them, as a whole or as a part. The arguments of aggregates are
//! evaluated below the grouping and keep the columns of the tables.
//!
//! `GROUPING(a, b)` is a number with a bit for each argument, the last one's the lowest: 1 when the row sums that key up. Which key an argument
//! is becomes known after GROUP BY was bound, which is after the select list.

use super::Binder;
use super::frame::{Aggregates, invalid_use};
use crate::expr::{ColumnId, Expr, ExprKind};
use crate::logical::Rollup;
use crate::stack;
use rauk_types::{DataType, MysqlError};

/// Arguments of one call: the bits of a BIGINT.
const MAX_ARGUMENTS: usize = 63;

/// ER_INVALID_NO_OF_ARGS.
const WRONG_ARGUMENT_COUNT: u16 = 3601;

/// ER_FIELD_IN_GROUPING_NOT_GROUP_BY.
const NOT_GROUPED: u16 = 3602;

impl Binder<'_> {
    /// A call of GROUPING in the innermost block. Errors: 1111 where the block has no WITH ROLLUP, or the call stands below the grouping; 3601.
    pub(super) fn grouping_call(&mut self, arguments: Vec<Expr>) -> Result<ExprKind, MysqlError> {
        let Some(frame) = self.frames.last() else { return Err(invalid_use()) };
        if !frame.rollup || frame.allowed == Aggregates::Refused || frame.aggregates_around > 0 {
            return Err(invalid_use());
        }
        if arguments.len() > MAX_ARGUMENTS {
            let count = arguments.len();
            let message =
                format!("Invalid number of arguments for function GROUPING: {count}, the maximum is {MAX_ARGUMENTS}");
            return Err(MysqlError::new(WRONG_ARGUMENT_COUNT, message));
        }
        let known = frame.groupings.iter().find(|(_, known)| *known == arguments).map(|(id, _)| *id);
        let id = match known {
            Some(id) => id,
            None => {
                let id = self.add_column(DataType::BIGINT, false, String::new());
                self.frame().groupings.push((id, arguments));
                id
            }
        };
        Ok(ExprKind::Reference(id))
    }

    /// The columns that the grouping makes of the keys and of the calls of GROUPING. Error 3602.
    pub(super) fn rollup(&mut self, keys: &[Expr]) -> Result<Rollup, MysqlError> {
        let calls = std::mem::take(&mut self.frame().groupings);
        let columns = keys.iter().map(|key| self.add_column(key.ty, true, String::new())).collect();
        let mut groupings = Vec::with_capacity(calls.len());
        for (id, arguments) in calls {
            let mut positions = Vec::with_capacity(arguments.len());
            for (number, argument) in arguments.iter().enumerate() {
                let Some(position) = keys.iter().position(|key| key == argument) else {
                    let message = format!("Argument #{} of GROUPING function is not in GROUP BY", number + 1);
                    return Err(MysqlError::new(NOT_GROUPED, message));
                };
                positions.push(position);
            }
            groupings.push((id, positions));
        }
        Ok(Rollup { keys: columns, groupings })
    }
}

/// Makes an expression above the grouping read the columns that stand for keys there. Gives whether it reads any.
pub(super) fn raise(expr: &mut Expr, keys: &[Expr], columns: &[ColumnId]) -> bool {
    if let Some(at) = keys.iter().position(|key| key == expr) {
        expr.kind = ExprKind::Reference(columns[at]);
        expr.nullable = true;
        return true;
    }
    let mut raised = false;
    expr.for_each_child_mut(&mut |child| raised |= stack::grow(|| raise(child, keys, columns)));
    if raised {
        expr.nullable = match &expr.kind {
            ExprKind::IsNull { .. } => false,
            ExprKind::Coalesce(items) => items.iter().all(|item| item.nullable),
            _ => true,
        };
    }
    raised
}
