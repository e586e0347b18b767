//! The first rows in an order, of those of one request: which row is certain to be none of them.
//!
//! The keys of the best rows that were sent are kept, as many as are wanted. A row whose key is not less than the greatest of these comes after all of them,
//! also where it is equal: they were there before.

use crate::exec::output::with_value;
use crate::expr::value_key::append_key;
use crate::expr::{Columns, Context, Expr};
use rauk_types::MysqlError;
use std::collections::BinaryHeap;

/// Most rows that may be wanted.
pub(super) const MAX_BEST: usize = 4096;
/// Bytes of keys that are kept. Where they are more, the rows are sent.
const MAX_BYTES: usize = 1 << 20;

pub(super) struct Order {
    /// With whether it descends.
    pub keys: Vec<(Expr, bool)>,
    /// How many rows are wanted.
    pub count: usize,
}

pub(super) struct Best {
    order: Order,
    /// The keys of rows that were sent, the greatest on top.
    sent: BinaryHeap<Box<[u8]>>,
    bytes: usize,
    key: Vec<u8>,
}

impl Best {
    pub fn new(order: Order) -> Best {
        Best { order, sent: BinaryHeap::new(), bytes: 0, key: Vec::new() }
    }

    /// Whether the row comes after as many others as are wanted. If not, it is sent.
    pub fn is_beyond(&mut self, row: &dyn Columns, context: &mut Context) -> Result<bool, MysqlError> {
        self.key.clear();
        for (key, descending) in &self.order.keys {
            with_value(key, row, context, |value| append_key(value, &key.ty, *descending, &mut self.key))?;
        }
        let full = self.sent.len() >= self.order.count;
        if full && self.sent.peek().is_some_and(|last| self.key.as_slice() >= &**last) {
            return Ok(true);
        }
        if self.bytes + self.key.len() <= MAX_BYTES {
            if full && let Some(last) = self.sent.pop() {
                self.bytes -= last.len();
            }
            self.bytes += self.key.len();
            self.sent.push(self.key.as_slice().into());
        }
        Ok(false)
    }
}
