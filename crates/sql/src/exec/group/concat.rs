//! GROUP_CONCAT: the texts of the rows, joined when the group is complete.
//!
//! A row with a NULL among its arguments adds nothing. The result is cut behind `group_concat_max_len` bytes, at a character's end, with warning 1260.

use crate::exec::output::with_value;
use crate::expr::value_key::append_key;
use crate::expr::{Aggregate, Columns, Context};
use crate::memory::Memory;
use rauk_types::format::append_text;
use rauk_types::{MysqlError, Value};

/// The text of a row, with the key of the call's own ORDER BY.
#[derive(Clone)]
struct Piece {
    key: Box<[u8]>,
    text: Box<[u8]>,
}

/// In the order in which they came.
#[derive(Clone, Default)]
pub(super) struct Concat {
    pieces: Vec<Piece>,
}

impl Concat {
    pub fn push(
        &mut self,
        aggregate: &Aggregate,
        row: &dyn Columns,
        context: &mut Context,
        memory: &Memory,
    ) -> Result<(), MysqlError> {
        let mut text = Vec::new();
        for argument in &aggregate.arguments {
            let mut null = false;
            with_value(argument, row, context, |value| {
                null = value.is_null();
                append_text(value, &argument.ty, &mut text);
            })?;
            if null {
                return Ok(());
            }
        }
        let mut key = Vec::new();
        for (expr, descending) in &aggregate.order_by {
            with_value(expr, row, context, |value| append_key(value, &expr.ty, *descending, &mut key))?;
        }
        memory.take(text.len() + key.len() + 32)?;
        self.pieces.push(Piece { key: key.into_boxed_slice(), text: text.into_boxed_slice() });
        Ok(())
    }

    pub fn finish(
        mut self,
        aggregate: &Aggregate,
        limit: usize,
        memory: &Memory,
        context: &mut Context,
    ) -> Result<Value, MysqlError> {
        if self.pieces.is_empty() {
            return Ok(Value::Null);
        }
        if !aggregate.order_by.is_empty() {
            self.pieces.sort_by(|a, b| a.key.cmp(&b.key));
        }
        let separator = aggregate.separator.as_deref().unwrap_or(",").as_bytes();
        let mut text = Vec::new();
        // The separators are not counted yet. One byte beyond the limit shows that it was reached.
        let whole = self.pieces.iter().map(|piece| piece.text.len() + separator.len()).sum::<usize>();
        memory.take(whole.min(limit))?;
        let append = |part: &[u8], text: &mut Vec<u8>| {
            text.extend_from_slice(&part[..part.len().min(limit + 1 - text.len())]);
        };
        for (number, piece) in self.pieces.iter().enumerate() {
            if number > 0 {
                append(separator, &mut text);
            }
            append(&piece.text, &mut text);
            if text.len() > limit {
                let mut end = limit;
                while !aggregate.ty.is_bytes() && end > 0 && text[end] & 0xC0 == 0x80 {
                    end -= 1;
                }
                text.truncate(end);
                context.warn(1260, format!("Row {} was cut by GROUP_CONCAT()", number + 1));
                break;
            }
        }
        Ok(if aggregate.ty.is_bytes() {
            Value::Bytes(text)
        } else {
            Value::Str(String::from_utf8_lossy(&text).into_owned())
        })
    }
}
