//! ORDER BY with LIMIT: which rows are certainly none of the first, by one word.
//!
//! The push form encodes all keys of a row and asks the sorter. Of a long scan nearly every row comes behind those that are wanted already by its first key alone. So the
//! first keys of the best rows are kept as words in their order, as many as are wanted; a row whose word is greater than all of them needs no key. One that is equal
//! goes on: the other keys decide.
//!
//! Only where nothing is evaluated for such a row: keys and items are columns, so that no error or warning is lost. Rows of older layouts go on always.

use crate::expr::ExprKind;
use crate::physical::model::{Level, SelectPlan};
use rauk_types::{Field, FieldKind, RowView, TableSchema};
use std::collections::BinaryHeap;

/// Most rows that may be wanted.
const MOST: usize = 4096;

pub(in crate::exec) struct Top {
    field: Field,
    descending: bool,
    wanted: usize,
    /// The first keys of the best rows, the last of them on top.
    best: BinaryHeap<u128>,
}

impl Top {
    /// For the `wanted` first rows of a block that reads one table. `None`: the keys are no words, or something would not be evaluated.
    pub fn new(plan: &SelectPlan, level: &Level, schema: &TableSchema, wanted: usize) -> Option<Top> {
        let column = |kind: &ExprKind| match *kind {
            ExprKind::Column { table, column } if table == level.table => Some(column),
            _ => None,
        };
        let plain = plan.items.iter().all(|item| column(&item.kind).is_some())
            && plan.order.iter().all(|key| column(&key.expr.kind).is_some());
        let first = plan.order.first().filter(|_| plain && (1..=MOST).contains(&wanted))?;
        let field = schema.layout().field(column(&first.expr.kind)?)?;
        let is_word = match field.kind() {
            // It sorts by its local time.
            FieldKind::Timestamp => false,
            FieldKind::WideDecimal(_) | FieldKind::Text | FieldKind::Bytes => false,
            _ => true,
        };
        is_word.then(|| Top { field, descending: first.descending, wanted, best: BinaryHeap::new() })
    }

    /// Whether the row comes behind as many others as are wanted.
    #[inline]
    pub fn is_beyond(&mut self, row: &RowView<'_>) -> bool {
        if row.newest_layout().is_none() {
            return false;
        }
        let place = self.place(row.image().head);
        if self.best.len() < self.wanted {
            self.best.push(place);
            return false;
        }
        match self.best.peek() {
            Some(last) if place > *last => true,
            Some(last) if place == *last => false,
            _ => {
                self.best.pop();
                self.best.push(place);
                false
            }
        }
    }

    /// A number in the order of the key; NULL is before all others.
    #[inline]
    fn place(&self, row: &[u8]) -> u128 {
        let sign = 1u64 << 63;
        let place = if self.field.is_null(row) {
            0
        } else {
            let word = self.field.word(row);
            let ordered = match self.field.kind() {
                FieldKind::UInt | FieldKind::Date | FieldKind::DateTime => word,
                FieldKind::Double => {
                    // -0.0 equals 0.0.
                    let bits = (f64::from_bits(word) + 0.0).to_bits();
                    if bits & sign == 0 { bits | sign } else { !bits }
                }
                _ => word ^ sign,
            };
            1 << 64 | u128::from(ordered)
        };
        if self.descending { !place } else { place }
    }
}
