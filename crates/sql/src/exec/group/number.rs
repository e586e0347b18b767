//! Sums, averages, variances and bits.
//!
//! SUM and AVG of exact numbers, dates and times are exact (integers in 128 bits, then DECIMAL); of everything else they are DOUBLE, as the plan's
//! types say. The variance is Welford's recurrence over doubles, in the order of the rows, with the same operations as MySQL's, so that the last
//! digit is the same too.
//!
//! BIT_AND, BIT_OR and BIT_XOR of binary strings give binary strings of the same length; of everything else they give 64 bits. Without a value they
//! give the value that changes nothing: ones for BIT_AND, zeros for the others.

use crate::expr::{self, Aggregate, AggregateFunction, quotient_digits};
use rauk_types::error::codes;
use rauk_types::format::parse_double_prefix;
use rauk_types::{DataType, Decimal, MysqlError, Value, ValueRef};

/// ER_INVALID_BITWISE_OPERANDS_SIZE.
const BITWISE_OPERANDS_SIZE: u16 = 3513;

/// SUM and AVG.
#[derive(Clone)]
pub(in crate::exec) enum Sum {
    /// Exact numbers of one scale; becomes `Exact` when a value has another one, or when they are too many for 128 bits.
    Scaled {
        sum: i128,
        scale: u8,
        count: u64,
    },
    Exact {
        sum: Decimal,
        count: u64,
    },
    Double {
        sum: f64,
        count: u64,
    },
}

impl Sum {
    /// `result`: the aggregate's type.
    pub fn new(argument: Option<&DataType>, result: &DataType) -> Sum {
        if result.kind != rauk_types::TypeKind::Decimal {
            return Sum::Double { sum: 0.0, count: 0 };
        }
        match argument {
            Some(ty) if ty.is_integer() => Sum::Scaled { sum: 0, scale: 0, count: 0 },
            Some(ty) if ty.kind == rauk_types::TypeKind::Decimal => Sum::Scaled { sum: 0, scale: ty.scale, count: 0 },
            _ => Sum::Exact { sum: Decimal::ZERO, count: 0 },
        }
    }

    #[inline]
    pub fn push(&mut self, value: ValueRef<'_>, function: AggregateFunction) -> Result<(), MysqlError> {
        match self {
            Sum::Scaled { sum, scale, count } => {
                match unscaled(value, *scale).and_then(|value| sum.checked_add(value)) {
                    Some(more) => {
                        *sum = more;
                        *count += 1;
                    }
                    None => {
                        self.make_exact();
                        return self.push(value, function);
                    }
                }
            }
            Sum::Exact { sum, count } => {
                *sum = sum.checked_add(&term(value)).map_err(|_| out_of_range(function))?;
                *count += 1;
            }
            Sum::Double { sum, count } => {
                *sum += number(value);
                *count += 1;
            }
        }
        Ok(())
    }

    /// The sum and its count, where they are exact.
    pub fn exact(&self) -> Option<(Decimal, u64)> {
        match self {
            // The scale of no value is not that of a sum.
            Sum::Scaled { count: 0, .. } => Some((Decimal::ZERO, 0)),
            Sum::Scaled { sum, scale, count } => Some((Decimal::new(*sum, *scale), *count)),
            Sum::Exact { sum, count } => Some((*sum, *count)),
            Sum::Double { .. } => None,
        }
    }

    fn make_exact(&mut self) {
        let (sum, count) = self.exact().expect("sums of doubles are not exact");
        *self = Sum::Exact { sum, count };
    }

    /// Adds the sum of `rows` other values that have this scale.
    #[inline]
    pub fn add(&mut self, more: i128, of: u8, rows: u64, function: AggregateFunction) -> Result<(), MysqlError> {
        match self {
            Sum::Scaled { sum, scale, count } if *scale == of => {
                if let Some(total) = sum.checked_add(more) {
                    *sum = total;
                    *count = count.saturating_add(rows);
                    return Ok(());
                }
            }
            _ => {}
        }
        if rows == 0 { Ok(()) } else { self.absorb(Decimal::new(more, of), rows, function) }
    }

    /// Adds the sum of other rows.
    pub fn absorb(&mut self, more: Decimal, rows: u64, function: AggregateFunction) -> Result<(), MysqlError> {
        if let Sum::Scaled { sum, scale, count } = self {
            let term = more.unscaled_i128().filter(|_| more.scale() == *scale);
            if let Some(total) = term.and_then(|term| sum.checked_add(term)) {
                *sum = total;
                *count = count.saturating_add(rows);
                return Ok(());
            }
            self.make_exact();
        }
        let Sum::Exact { sum, count } = self else { unreachable!("sums of doubles do not travel") };
        *sum = sum.checked_add(&more).map_err(|_| out_of_range(function))?;
        *count = count.saturating_add(rows);
        Ok(())
    }

    /// Adds doubles in their order.
    pub fn add_doubles(&mut self, values: impl Iterator<Item = f64>) {
        let Sum::Double { sum, count } = self else { unreachable!("an exact sum has no doubles") };
        for value in values {
            *sum += value;
            *count += 1;
        }
    }

    /// Takes a value away that was added.
    pub fn remove(&mut self, value: ValueRef<'_>, function: AggregateFunction) -> Result<(), MysqlError> {
        match self {
            Sum::Scaled { sum, scale, count } => {
                // A sum with a value of another scale is exact already.
                *sum -= unscaled(value, *scale).unwrap_or_default();
                *count -= 1;
            }
            Sum::Exact { sum, count } => {
                *sum = sum.checked_sub(&term(value)).map_err(|_| out_of_range(function))?;
                *count -= 1;
            }
            Sum::Double { sum, count } => {
                *sum -= number(value);
                *count -= 1;
            }
        }
        Ok(())
    }

    pub fn finish(self, aggregate: &Aggregate) -> Result<Value, MysqlError> {
        let (result, function) = (&aggregate.ty, aggregate.function);
        let average = function == AggregateFunction::Avg;
        let argument = aggregate.arguments.first().map_or(DataType::BIGINT, |argument| argument.ty);
        let digits = quotient_digits(result, &argument);
        let exact = |sum: Decimal, count: u64| -> Result<Value, MysqlError> {
            if count == 0 {
                return Ok(Value::Null);
            }
            let value = if average {
                // With guard digits, as every division inside an expression; they go when the value leaves it.
                sum.checked_div_guarded(&Decimal::from(count), digits)
            } else {
                sum.rescale(result.scale)
            };
            value.map(Value::Decimal).map_err(|_| out_of_range(function))
        };
        match self {
            Sum::Scaled { sum, scale, count } => exact(Decimal::new(sum, scale), count),
            Sum::Exact { sum, count } => exact(sum, count),
            Sum::Double { count: 0, .. } => Ok(Value::Null),
            Sum::Double { sum, count } => Ok(Value::Double(if average { sum / count as f64 } else { sum })),
        }
    }
}

/// The integer that a value of this scale is; `None`: it has another scale, or is wider.
#[inline]
fn unscaled(value: ValueRef<'_>, scale: u8) -> Option<i128> {
    match value {
        ValueRef::Decimal(value) if value.scale() == scale => value.unscaled_i128(),
        ValueRef::Decimal(_) => None,
        value if scale == 0 => value.as_integer(),
        _ => None,
    }
}

/// What a value adds to an exact sum.
fn term(value: ValueRef<'_>) -> Decimal {
    match value {
        ValueRef::Decimal(v) => v,
        ValueRef::Int(v) => Decimal::from(v),
        ValueRef::UInt(v) => Decimal::from(v),
        other => match expr::temporal_decimal(other) {
            Some(number) => number,
            None => Decimal::from_f64(number(other)).unwrap_or(Decimal::ZERO),
        },
    }
}

/// STD, VARIANCE and their kin.
#[derive(Clone, Default)]
pub(super) struct Variance {
    count: u64,
    mean: f64,
    /// The squares of the distances from the mean.
    squares: f64,
}

impl Variance {
    pub fn push(&mut self, value: ValueRef<'_>) {
        let value = number(value);
        self.count += 1;
        if self.count == 1 {
            self.mean = value;
            return;
        }
        let before = self.mean;
        self.mean = before + (value - before) / self.count as f64;
        self.squares += (value - before) * (value - self.mean);
    }

    pub fn finish(self, sample: bool, root: bool) -> Value {
        if self.count <= u64::from(sample) {
            return Value::Null;
        }
        let divisor = self.count - u64::from(sample);
        let variance = if self.count == 1 { 0.0 } else { self.squares / divisor as f64 };
        Value::Double(if root { variance.sqrt() } else { variance })
    }
}

/// BIT_AND, BIT_OR, BIT_XOR.
#[derive(Clone)]
pub(super) enum Bits {
    Integer(u64),
    /// `None`: no value yet.
    Bytes(Option<Vec<u8>>),
}

impl Bits {
    pub fn new(function: AggregateFunction, result: &DataType) -> Bits {
        if result.is_bytes() { Bits::Bytes(None) } else { Bits::Integer(neutral(function)) }
    }

    pub fn push_integer(&mut self, bits: u64, function: AggregateFunction) {
        let Bits::Integer(known) = self else { unreachable!("binary strings have bytes") };
        *known = match function {
            AggregateFunction::BitAnd => *known & bits,
            AggregateFunction::BitOr => *known | bits,
            _ => *known ^ bits,
        };
    }

    /// Error 3513: the strings have several lengths.
    pub fn push_bytes(&mut self, bytes: &[u8], function: AggregateFunction) -> Result<(), MysqlError> {
        let Bits::Bytes(known) = self else { unreachable!("numbers have bits") };
        let Some(known) = known else {
            *known = Some(bytes.to_vec());
            return Ok(());
        };
        if known.len() != bytes.len() {
            let message = "Binary operands of bitwise operators must be of equal length";
            return Err(MysqlError::new(BITWISE_OPERANDS_SIZE, message));
        }
        for (known, byte) in known.iter_mut().zip(bytes) {
            match function {
                AggregateFunction::BitAnd => *known &= byte,
                AggregateFunction::BitOr => *known |= byte,
                _ => *known ^= byte,
            }
        }
        Ok(())
    }

    pub fn finish(self, result: &DataType, function: AggregateFunction) -> Value {
        match self {
            Bits::Integer(bits) => Value::UInt(bits),
            Bits::Bytes(Some(bytes)) => Value::Bytes(bytes),
            Bits::Bytes(None) => Value::Bytes(vec![neutral(function) as u8; result.length as usize]),
        }
    }
}

fn neutral(function: AggregateFunction) -> u64 {
    if function == AggregateFunction::BitAnd { u64::MAX } else { 0 }
}

/// A value as aggregates take it where they work with doubles.
pub(in crate::exec) fn number(value: ValueRef<'_>) -> f64 {
    match value {
        ValueRef::Null => 0.0,
        ValueRef::Int(v) => v as f64,
        ValueRef::UInt(v) => v as f64,
        ValueRef::Double(v) => v,
        ValueRef::Decimal(v) => v.to_f64(),
        ValueRef::Str(v) => parse_double_prefix(v.as_bytes()).value,
        ValueRef::Bytes(v) => parse_double_prefix(v).value,
        ValueRef::Json(v) => expr::json::plain(v).ok().flatten().map_or(0.0, |plain| number(plain.as_ref())),
        temporal => expr::temporal_decimal(temporal).map_or(0.0, |v| v.to_f64()),
    }
}

fn out_of_range(function: AggregateFunction) -> MysqlError {
    let name = if function == AggregateFunction::Avg { "avg" } else { "sum" };
    MysqlError::new(codes::DATA_OUT_OF_RANGE, format!("DECIMAL value is out of range in '{name}'"))
}
