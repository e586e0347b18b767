//! Comparing two values as [`Comparison`] says.

use super::convert::{self, Result};
use super::json;
use super::types::Class;
use super::{CompareOp, Comparison, Context};
use rauk_types::format::parse_int_prefix;
use rauk_types::{Collation, DataType, DateTime, Decimal, Time, TypeKind, ValueRef};
use std::cmp::Ordering;

fn integers(a: ValueRef<'_>, b: ValueRef<'_>) -> Option<Ordering> {
    Some(match (a, b) {
        (ValueRef::Int(a), ValueRef::Int(b)) => a.cmp(&b),
        (ValueRef::UInt(a), ValueRef::UInt(b)) => a.cmp(&b),
        (ValueRef::Int(a), ValueRef::UInt(b)) => i128::from(a).cmp(&i128::from(b)),
        (ValueRef::UInt(a), ValueRef::Int(b)) => i128::from(a).cmp(&i128::from(b)),
        _ => return None,
    })
}

/// An integer against a text that is an integer too: exact.
fn integer_and_text(a: ValueRef<'_>, b: ValueRef<'_>) -> Option<Ordering> {
    let (integer, text, flipped) = match (a.as_integer(), b.as_integer()) {
        (Some(integer), None) => (integer, b.as_bytes()?, false),
        (None, Some(integer)) => (integer, a.as_bytes()?, true),
        _ => return None,
    };
    let parsed = parse_int_prefix(text);
    if parsed.trailing || parsed.overflow {
        return None;
    }
    let order = integer.cmp(&parsed.value);
    Some(if flipped { order.reverse() } else { order })
}

fn doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

impl Comparison {
    /// Compares two values that are not NULL.
    #[inline]
    pub(crate) fn compare(self, a: ValueRef<'_>, b: ValueRef<'_>, context: &mut Context) -> Result<Ordering> {
        match self {
            Comparison::Integer => match integers(a, b) {
                Some(order) => Ok(order),
                // A parameter may hold something else than its type said.
                None => Comparison::Double.compare_slow(a, b, context),
            },
            Comparison::Text(collation) => match (a, b) {
                (ValueRef::Str(a), ValueRef::Str(b)) => Ok(collation.compare(a.as_bytes(), b.as_bytes())),
                _ => Ok(compare_texts(a, b, collation)),
            },
            Comparison::Bytes => match (a.as_bytes(), b.as_bytes()) {
                (Some(a), Some(b)) => Ok(a.cmp(b)),
                _ => Ok(compare_texts(a, b, Collation::Binary)),
            },
            _ => self.compare_slow(a, b, context),
        }
    }

    fn compare_slow(self, a: ValueRef<'_>, b: ValueRef<'_>, context: &mut Context) -> Result<Ordering> {
        Ok(match self {
            Comparison::Decimal => match (a, b) {
                (ValueRef::Decimal(a), ValueRef::Decimal(b)) => a.cmp(&b),
                _ => match integers(a, b) {
                    Some(order) => order,
                    None => {
                        let (a, b) = (convert::to_decimal(a, context)?, convert::to_decimal(b, context)?);
                        a.cmp(&b)
                    }
                },
            },
            Comparison::DateTime => match (a, b) {
                (ValueRef::DateTime(a), ValueRef::DateTime(b)) => a.cmp(&b),
                (ValueRef::Date(a), ValueRef::Date(b)) => a.cmp(&b),
                _ => {
                    // What is no date (a warning was noted) compares as the zero date.
                    let (a, b) = (convert::to_datetime(a, context)?, convert::to_datetime(b, context)?);
                    a.unwrap_or(DateTime::ZERO).cmp(&b.unwrap_or(DateTime::ZERO))
                }
            },
            Comparison::Json => json::compare_values(a, b, context)?,
            Comparison::Time => {
                let (a, b) = (convert::to_time(a, context)?, convert::to_time(b, context)?);
                a.unwrap_or(Time::ZERO).cmp(&b.unwrap_or(Time::ZERO))
            }
            _ => match integers(a, b).or_else(|| integer_and_text(a, b)) {
                Some(order) => order,
                None => doubles(convert::to_f64(a, context)?, convert::to_f64(b, context)?),
            },
        })
    }

    /// Whether two values that are not NULL are equal; cheaper than an order.
    #[inline]
    pub(crate) fn equal(self, a: ValueRef<'_>, b: ValueRef<'_>, context: &mut Context) -> Result<bool> {
        match (self, a, b) {
            (Comparison::Integer, ValueRef::Int(a), ValueRef::Int(b)) => Ok(a == b),
            (Comparison::Text(collation), ValueRef::Str(a), ValueRef::Str(b)) => {
                Ok(a == b || collation.equal(a.as_bytes(), b.as_bytes()))
            }
            (Comparison::Bytes, ValueRef::Bytes(a), ValueRef::Bytes(b)) => Ok(a == b),
            _ => Ok(self.compare(a, b, context)?.is_eq()),
        }
    }
}

/// Values of any types by their text.
fn compare_texts(a: ValueRef<'_>, b: ValueRef<'_>, collation: Collation) -> Ordering {
    let plain = DataType::varbinary(0);
    collation.compare(&convert::text_bytes(a, &plain), &convert::text_bytes(b, &plain))
}

impl CompareOp {
    #[inline]
    pub(crate) fn holds(self, order: Ordering) -> bool {
        match self {
            CompareOp::Eq | CompareOp::NullSafeEq => order.is_eq(),
            CompareOp::Ne => order.is_ne(),
            CompareOp::Lt => order.is_lt(),
            CompareOp::Le => order.is_le(),
            CompareOp::Gt => order.is_gt(),
            CompareOp::Ge => order.is_ge(),
        }
    }
}

/// The type in which values of two types have equal keys when `by` calls them equal; `None`: there is none.
pub(crate) fn key_class(by: Comparison, left: &DataType, right: &DataType) -> Option<DataType> {
    let both = |test: fn(&DataType) -> bool| test(left) && test(right);
    Some(match by {
        Comparison::Integer => DataType::BIGINT,
        Comparison::Decimal => DataType::decimal(65, 30),
        Comparison::Double if both(DataType::is_numeric) => DataType::DOUBLE,
        Comparison::Text(collation) if both(DataType::is_text) => DataType::varchar(0, collation),
        Comparison::Json => DataType::new(TypeKind::Json),
        Comparison::Bytes => DataType::varbinary(0),
        Comparison::DateTime if both(|t| t.is_temporal() && t.kind != TypeKind::Time) => {
            DataType::new(TypeKind::DateTime)
        }
        Comparison::Time if both(|t| t.kind == TypeKind::Time) => DataType::new(TypeKind::Time),
        _ => return None,
    })
}

/// The order of two values of one type, NULL first: what ORDER BY, MIN and MAX need. Stored TIMESTAMPs compare as they are.
pub fn compare_values(a: ValueRef<'_>, b: ValueRef<'_>, ty: &DataType) -> Ordering {
    match (a, b) {
        (ValueRef::Null, ValueRef::Null) => Ordering::Equal,
        (ValueRef::Null, _) => Ordering::Less,
        (_, ValueRef::Null) => Ordering::Greater,
        (ValueRef::Str(a), ValueRef::Str(b)) => ty.collation.compare(a.as_bytes(), b.as_bytes()),
        (ValueRef::Double(a), ValueRef::Double(b)) => doubles(a, b),
        (ValueRef::Decimal(a), ValueRef::Decimal(b)) => a.cmp(&b),
        (ValueRef::Date(a), ValueRef::Date(b)) => a.cmp(&b),
        (ValueRef::Time(a), ValueRef::Time(b)) => a.cmp(&b),
        (ValueRef::DateTime(a), ValueRef::DateTime(b)) => a.cmp(&b),
        (ValueRef::Timestamp(a), ValueRef::Timestamp(b)) => a.cmp(&b),
        (ValueRef::Json(a), ValueRef::Json(b)) => json::compare(a, b),
        _ => match integers(a, b) {
            Some(order) => order,
            None => mixed(a, b, ty),
        },
    }
}

/// Values whose variants differ: a narrower one where the type allows it.
fn mixed(a: ValueRef<'_>, b: ValueRef<'_>, ty: &DataType) -> Ordering {
    let number = |v: ValueRef<'_>| match v {
        ValueRef::Int(v) => Some(Decimal::from(v)),
        ValueRef::UInt(v) => Some(Decimal::from(v)),
        ValueRef::Decimal(v) => Some(v),
        _ => None,
    };
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        return a.cmp(&b);
    }
    let double = |v: ValueRef<'_>| match v {
        ValueRef::Double(v) => Some(v),
        v => number(v).map(|d| d.to_f64()),
    };
    if let (Some(a), Some(b)) = (double(a), double(b)) {
        return doubles(a, b);
    }
    let collation = if Class::of(ty) == Class::Text { ty.collation } else { Collation::Binary };
    collation.compare(&convert::text_bytes(a, ty), &convert::text_bytes(b, ty))
}
