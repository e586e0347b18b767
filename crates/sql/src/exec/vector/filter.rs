//! Conditions as kernels: which of the selected rows meet them.
//!
//! A test has three answers, as in SQL, and [`Test::keep`] leaves the rows where it is TRUE, or those where it is FALSE; rows of NULL are in neither. So AND, OR
//! and NOT need no vector of answers: AND keeps what both keep, and what is false under AND is what is false on either side.
//!
//! Every comparison of a number, date or time with a constant is a range of unscaled integers, also where the constant has more digits than the column
//! (`a < 1.005` is `a <= 1.00` for two digits), and one kernel decides ranges of signed and of unsigned words: by one subtraction.

use super::batch::{Batch, Selection, Values};
use crate::expr::CompareOp;
use rauk_types::{Collation, FieldKind};
use std::cmp::Ordering;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// A word from `low` on, `width` further at most.
    Words {
        column: usize,
        low: u64,
        width: u64,
        negated: bool,
    },
    /// The same for 128 bits; both ends belong to it.
    Wide {
        column: usize,
        low: i128,
        high: i128,
        negated: bool,
    },
    /// One of these words, ascending.
    Among {
        column: usize,
        words: Vec<u64>,
    },
    /// Every value, or none; NULL is NULL.
    Constant {
        column: usize,
        truth: bool,
    },
    Double {
        column: usize,
        op: CompareOp,
        value: f64,
    },
    /// By a collation; `None`: by bytes.
    Bytes {
        column: usize,
        op: CompareOp,
        value: Box<[u8]>,
        collation: Option<Collation>,
    },
    /// Two columns of one kind.
    Columns {
        op: CompareOp,
        left: usize,
        right: usize,
    },
    IsNull {
        column: usize,
        negated: bool,
    },
    /// NULL.
    Unknown,
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    Not(Box<Test>),
}

/// A range of integers, both ends included; empty where the first is greater.
pub(super) type Range = (i128, i128);

impl Test {
    /// Values of a column in a range, or outside of it.
    pub fn range(column: usize, kind: FieldKind, (low, high): Range, negated: bool) -> Test {
        let domain = match kind {
            FieldKind::WideDecimal(_) => (i128::MIN, i128::MAX),
            FieldKind::UInt | FieldKind::Date | FieldKind::DateTime => (0, u64::MAX.into()),
            _ => (i64::MIN.into(), i64::MAX.into()),
        };
        let (low, high) = (low.max(domain.0), high.min(domain.1));
        if low > high {
            return Test::Constant { column, truth: negated };
        }
        if (low, high) == domain {
            return Test::Constant { column, truth: !negated };
        }
        match kind {
            FieldKind::WideDecimal(_) => Test::Wide { column, low, high, negated },
            _ => Test::Words { column, low: low as u64, width: (high - low) as u64, negated },
        }
    }

    /// The only word that it is true for.
    fn point(&self) -> Option<(usize, u64)> {
        match self {
            Test::Words { column, low, width: 0, negated: false } => Some((*column, *low)),
            _ => None,
        }
    }

    /// One of several tests.
    pub fn any(tests: Vec<Test>) -> Option<Test> {
        let points: Option<Vec<(usize, u64)>> = tests.iter().map(Test::point).collect();
        if let Some(points) = points
            && points.len() > 2
            && points.iter().all(|(column, _)| *column == points[0].0)
        {
            let mut words: Vec<u64> = points.iter().map(|(_, word)| *word).collect();
            words.sort_unstable();
            words.dedup();
            return Some(Test::Among { column: points[0].0, words });
        }
        tests.into_iter().reduce(|left, right| Test::Or(Box::new(left), Box::new(right)))
    }

    /// Both of two tests; two ranges of one column are one.
    pub fn both(self, other: Test) -> Test {
        if let (
            Test::Words { column: a, low, width, negated: false },
            Test::Words { column: b, low: other_low, width: other_width, negated: false },
        ) = (&self, &other)
            && a == b
            // Where neither goes through the highest word, whatever signs they have.
            && let (Some(high), Some(other_high)) = (low.checked_add(*width), other_low.checked_add(*other_width))
        {
            let (low, high) = (*low.max(other_low), high.min(other_high));
            return match high.checked_sub(low) {
                Some(width) => Test::Words { column: *a, low, width, negated: false },
                None => Test::Constant { column: *a, truth: false },
            };
        }
        Test::And(Box::new(self), Box::new(other))
    }

    /// Leaves the selected rows for which the test is `wanted`.
    pub fn keep(&self, batch: &Batch<'_>, wanted: bool, selection: &mut Selection) {
        match self {
            Test::Words { column, low, width, negated } => {
                let (low, width) = (*low, *width);
                match *negated == wanted {
                    false => by_words(batch, *column, selection, |word| word.wrapping_sub(low) <= width),
                    true => by_words(batch, *column, selection, |word| word.wrapping_sub(low) > width),
                }
            }
            Test::Wide { column, low, high, negated } => {
                let Some(vector) = batch.vector(*column) else { unreachable!("tests are of vectors") };
                let Values::Wide(values) = &vector.values else { unreachable!("the column is wide") };
                let inside = *negated != wanted;
                selection.retain(|row| (*low <= values[row] && values[row] <= *high) == inside);
                drop_nulls(batch, *column, selection);
            }
            Test::Among { column, words } => {
                by_words(batch, *column, selection, |word| words.binary_search(&word).is_ok() == wanted);
            }
            Test::Constant { column, truth } => match *truth == wanted {
                true => drop_nulls(batch, *column, selection),
                false => selection.rows.clear(),
            },
            Test::Double { column, op, value } => {
                let kind = batch.kind(*column);
                by_words(batch, *column, selection, |word| {
                    let number = match kind {
                        FieldKind::Int => word as i64 as f64,
                        FieldKind::UInt => word as f64,
                        _ => f64::from_bits(word),
                    };
                    op.holds(number.partial_cmp(value).unwrap_or(Ordering::Equal)) == wanted
                });
            }
            Test::Bytes { column, op, value, collation } => {
                let Some(vector) = batch.vector(*column) else { unreachable!("tests are of vectors") };
                let (value, equality) = (&**value, matches!(op, CompareOp::Eq | CompareOp::Ne));
                match (collation, equality) {
                    (None, true) => {
                        selection.retain(|row| (vector.bytes(row) == value) == ((*op == CompareOp::Eq) == wanted))
                    }
                    (None, false) => selection.retain(|row| op.holds(vector.bytes(row).cmp(value)) == wanted),
                    (Some(collation), true) => selection.retain(|row| {
                        let bytes = vector.bytes(row);
                        let equal = bytes == value || collation.equal(bytes, value);
                        equal == ((*op == CompareOp::Eq) == wanted)
                    }),
                    (Some(collation), false) => {
                        selection.retain(|row| op.holds(collation.compare(vector.bytes(row), value)) == wanted)
                    }
                }
                drop_nulls(batch, *column, selection);
            }
            Test::Columns { op, left, right } => {
                let (Some(a), Some(b)) = (batch.vector(*left), batch.vector(*right)) else {
                    unreachable!("tests are of vectors")
                };
                let (a, b) = (a.words(), b.words());
                let holds = |order: Ordering| op.holds(order) == wanted;
                match batch.kind(*left) {
                    FieldKind::UInt | FieldKind::Date | FieldKind::DateTime => {
                        selection.retain(|row| holds(a[row].cmp(&b[row])));
                    }
                    FieldKind::Double => selection.retain(|row| {
                        let (a, b) = (f64::from_bits(a[row]), f64::from_bits(b[row]));
                        holds(a.partial_cmp(&b).unwrap_or(Ordering::Equal))
                    }),
                    _ => selection.retain(|row| holds((a[row] as i64).cmp(&(b[row] as i64)))),
                }
                drop_nulls(batch, *left, selection);
                drop_nulls(batch, *right, selection);
            }
            Test::IsNull { column, negated } => {
                let Some(vector) = batch.vector(*column) else { unreachable!("tests are of vectors") };
                let valid = *negated == wanted;
                match (vector.validity.has_nulls(), valid) {
                    (false, true) => {}
                    (false, false) => selection.rows.clear(),
                    (true, _) => selection.retain(|row| vector.validity.is_valid(row) == valid),
                }
            }
            Test::Unknown => selection.rows.clear(),
            Test::Not(test) => test.keep(batch, !wanted, selection),
            Test::And(left, right) | Test::Or(left, right) => {
                // What both say, or what either says.
                if matches!(self, Test::And(..)) == wanted {
                    left.keep(batch, wanted, selection);
                    right.keep(batch, wanted, selection);
                } else {
                    let mut rest = selection.clone();
                    left.keep(batch, wanted, selection);
                    rest.remove(selection);
                    right.keep(batch, wanted, &mut rest);
                    selection.add(&rest);
                }
            }
        }
    }
}

#[inline]
fn by_words(batch: &Batch<'_>, column: usize, selection: &mut Selection, test: impl Fn(u64) -> bool) {
    let Some(vector) = batch.vector(column) else { unreachable!("tests are of vectors") };
    let words = vector.words();
    selection.retain(|row| test(words[row]));
    drop_nulls(batch, column, selection);
}

#[inline]
fn drop_nulls(batch: &Batch<'_>, column: usize, selection: &mut Selection) {
    if let Some(vector) = batch.vector(column)
        && vector.validity.has_nulls()
    {
        selection.retain(|row| vector.validity.is_valid(row));
    }
}
