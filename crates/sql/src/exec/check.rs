//! WITH CHECK OPTION: a row that is written through a view must be one of the view's rows.

use super::answer::with_answers;
use super::row::Rows;
use crate::expr::Context;
use crate::physical::model::RowCheck;
use rauk_node::Transaction;
use rauk_types::error::codes;
use rauk_types::{MysqlError, Value};

/// Whether a new row may be written; else error 1369, or with `ignore` a warning. `inputs`: what the conditions read of other tables of the view.
pub(super) async fn satisfies(
    check: &RowCheck,
    row: &[Value],
    inputs: &[Value],
    ignore: bool,
    txn: &mut Transaction,
    context: &mut Context,
) -> Result<bool, MysqlError> {
    let zone = context.time_zone.clone();
    let read = Rows { rows: [row, inputs, &[]], zone: &zone };
    for condition in &check.conditions {
        if !with_answers(txn, context, |context| condition.eval_bool(&read, context)).await? {
            let message = format!("CHECK OPTION failed '{}'", check.view);
            if !ignore {
                return Err(MysqlError::new(codes::VIEW_CHECK_FAILED, message));
            }
            context.warn(codes::VIEW_CHECK_FAILED, message);
            return Ok(false);
        }
    }
    Ok(true)
}
