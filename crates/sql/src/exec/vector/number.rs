//! `+ − ×` of vectors of numbers, in the type that binding derived.
//!
//! A kernel computes all values or gives up (`None`): where a result does not fit, the evaluator decides row by row whether that is an error, or a
//! decimal with fewer digits. Decimals are computed in 64 bits first and in 128 bits where that is not enough.

use super::batch::{Values, Vector};
use crate::expr::ArithmeticOp;
use rauk_types::FieldKind;

const MAX_SCALE: u8 = 30;

/// In which numbers an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// 64 bits, signed or not.
    Int,
    UInt,
    Decimal,
    Double,
}

/// 10 to the power of `digits`; `None` beyond 128 bits.
fn power(digits: u8) -> Option<i128> {
    10i128.checked_pow(digits.into())
}

/// The digits behind the point of exact numbers; `None` of doubles and of what is no number.
pub(super) fn scale_of(kind: FieldKind) -> Option<u8> {
    match kind {
        FieldKind::Int | FieldKind::UInt => Some(0),
        FieldKind::Decimal(scale) | FieldKind::WideDecimal(scale) => Some(scale),
        _ => None,
    }
}

pub(super) fn is_number(kind: FieldKind) -> bool {
    kind == FieldKind::Double || scale_of(kind).is_some()
}

/// Whether there is a kernel for an operation on these kinds.
pub(super) fn is_possible(op: ArithmeticOp, target: Target, left: FieldKind, right: FieldKind) -> bool {
    if !matches!(op, ArithmeticOp::Add | ArithmeticOp::Subtract | ArithmeticOp::Multiply) {
        return false;
    }
    let is_integer = |kind| matches!(kind, FieldKind::Int | FieldKind::UInt);
    match target {
        Target::Int | Target::UInt => is_integer(left) && is_integer(right),
        Target::Double => is_number(left) && is_number(right),
        Target::Decimal => match (scale_of(left), scale_of(right)) {
            (Some(a), Some(b)) => op != ArithmeticOp::Multiply || a + b <= MAX_SCALE,
            _ => false,
        },
    }
}

/// The kind of a result. A decimal may be wide in one batch and not in another.
pub(super) fn result_kind(op: ArithmeticOp, target: Target, left: FieldKind, right: FieldKind) -> FieldKind {
    match target {
        Target::Int => FieldKind::Int,
        Target::UInt => FieldKind::UInt,
        Target::Double => FieldKind::Double,
        Target::Decimal => {
            let (a, b) = (scale_of(left).unwrap_or(0), scale_of(right).unwrap_or(0));
            FieldKind::Decimal(if op == ArithmeticOp::Multiply { a + b } else { a.max(b) })
        }
    }
}

/// Computes `left op right`.
pub(super) fn calculate(op: ArithmeticOp, target: Target, left: &Vector, right: &Vector) -> Option<Vector> {
    let validity = left.validity.and(&right.validity, left.len());
    let kind = result_kind(op, target, left.kind, right.kind);
    let words = match target {
        Target::Int if (left.kind, right.kind) == (FieldKind::Int, FieldKind::Int) => {
            narrow(op, left.words(), right.words(), 1, 1)?
        }
        Target::Int | Target::UInt => integers(op, target, left, right)?,
        Target::Double => doubles(op, left, right)?,
        Target::Decimal => {
            let (a, b) = (scale_of(left.kind)?, scale_of(right.kind)?);
            let scale = a.max(b);
            let factors = match op {
                ArithmeticOp::Multiply => (1, 1),
                _ => (power(scale - a)?, power(scale - b)?),
            };
            // Unsigned words may be beyond the signed ones.
            let fits = |vector: &Vector| matches!(vector.kind, FieldKind::Int | FieldKind::Decimal(_));
            let small = (i64::try_from(factors.0), i64::try_from(factors.1));
            let words = match small {
                (Ok(a), Ok(b)) if fits(left) && fits(right) => narrow(op, left.words(), right.words(), a, b),
                _ => None,
            };
            match words {
                Some(words) => words,
                None => {
                    let FieldKind::Decimal(scale) = kind else { unreachable!("the result is a decimal") };
                    let values = Values::Wide(wide(op, left, right, factors)?);
                    return Some(Vector { kind: FieldKind::WideDecimal(scale), values, validity });
                }
            }
        }
    };
    Some(Vector::of_words(kind, words, validity))
}

/// `-x`.
pub(super) fn negate(target: Target, of: &Vector) -> Option<Vector> {
    let zero = match target {
        Target::Double => {
            let words = as_doubles(of)?.into_iter().map(|value| (-value).to_bits()).collect();
            return Some(Vector::of_words(FieldKind::Double, words, of.validity.clone()));
        }
        // Of its own scale, so that nothing is brought to another.
        Target::Decimal => FieldKind::Decimal(scale_of(of.kind)?),
        Target::Int | Target::UInt => FieldKind::Int,
    };
    calculate(ArithmeticOp::Subtract, target, &Vector::of_constant(zero, 0, of.len()), of)
}

/// Signed words, each multiplied by a factor first.
fn narrow(op: ArithmeticOp, left: &[u64], right: &[u64], a: i64, b: i64) -> Option<Vec<u64>> {
    let mut beyond = false;
    let pairs = left.iter().zip(right).map(|(&left, &right)| (left as i64, right as i64));
    let words: Vec<u64> = match (op, a, b) {
        (ArithmeticOp::Multiply, ..) => pairs
            .map(|(left, right)| {
                let (value, over) = left.overflowing_mul(right);
                beyond |= over;
                value as u64
            })
            .collect(),
        (_, 1, 1) => pairs
            .map(|(left, right)| {
                let (value, over) = match op {
                    ArithmeticOp::Add => left.overflowing_add(right),
                    _ => left.overflowing_sub(right),
                };
                beyond |= over;
                value as u64
            })
            .collect(),
        _ => pairs
            .map(|(left, right)| {
                let ((left, over_left), (right, over_right)) = (left.overflowing_mul(a), right.overflowing_mul(b));
                let (value, over) = match op {
                    ArithmeticOp::Add => left.overflowing_add(right),
                    _ => left.overflowing_sub(right),
                };
                beyond |= over | over_left | over_right;
                value as u64
            })
            .collect(),
    };
    (!beyond).then_some(words)
}

fn wide(op: ArithmeticOp, left: &Vector, right: &Vector, factors: (i128, i128)) -> Option<Vec<i128>> {
    let (left, right) = (as_wide(left), as_wide(right));
    let pairs = left.into_iter().zip(right);
    match op {
        ArithmeticOp::Multiply => pairs.map(|(left, right)| left.checked_mul(right)).collect(),
        _ => pairs
            .map(|(left, right)| {
                let (left, right) = (left.checked_mul(factors.0)?, right.checked_mul(factors.1)?);
                match op {
                    ArithmeticOp::Add => left.checked_add(right),
                    _ => left.checked_sub(right),
                }
            })
            .collect(),
    }
}

/// The unscaled integers of exact numbers.
fn as_wide(vector: &Vector) -> Vec<i128> {
    match &vector.values {
        Values::Wide(values) => values.clone(),
        _ if vector.kind == FieldKind::UInt => vector.words().iter().map(|&word| word.into()).collect(),
        _ => vector.words().iter().map(|&word| (word as i64).into()).collect(),
    }
}

/// Integers of which one or the result is unsigned.
fn integers(op: ArithmeticOp, target: Target, left: &Vector, right: &Vector) -> Option<Vec<u64>> {
    let (left, right) = (as_wide(left), as_wide(right));
    left.into_iter()
        .zip(right)
        .map(|(left, right)| {
            // Products of 64 bits fit.
            let value = match op {
                ArithmeticOp::Add => left + right,
                ArithmeticOp::Subtract => left - right,
                _ => left.checked_mul(right)?,
            };
            match target {
                Target::UInt => u64::try_from(value).ok(),
                _ => i64::try_from(value).ok().map(|value| value as u64),
            }
        })
        .collect()
}

fn doubles(op: ArithmeticOp, left: &Vector, right: &Vector) -> Option<Vec<u64>> {
    let (left, right) = (as_doubles(left)?, as_doubles(right)?);
    let mut finite = true;
    let words = left
        .into_iter()
        .zip(right)
        .map(|(left, right)| {
            let value = match op {
                ArithmeticOp::Add => left + right,
                ArithmeticOp::Subtract => left - right,
                _ => left * right,
            };
            finite &= value.is_finite();
            value.to_bits()
        })
        .collect();
    finite.then_some(words)
}

/// The nearest doubles; `None`: of a decimal with more digits than a double has exactly.
pub(super) fn as_doubles(vector: &Vector) -> Option<Vec<f64>> {
    let words = vector.words().iter();
    match vector.kind {
        FieldKind::Int => Some(words.map(|&word| word as i64 as f64).collect()),
        FieldKind::UInt => Some(words.map(|&word| word as f64).collect()),
        FieldKind::Double => Some(words.map(|&word| f64::from_bits(word)).collect()),
        // As `Decimal::to_f64`: both sides of the division are exact, so that it rounds once.
        FieldKind::Decimal(scale) if scale <= 22 => {
            let divisor = power(scale)? as f64;
            words
                .map(|&word| {
                    let value = word as i64;
                    (value.unsigned_abs() < 1 << 53).then(|| value as f64 / divisor)
                })
                .collect()
        }
        _ => None,
    }
}
