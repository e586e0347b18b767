//! Numbers: rounding, powers, logarithms, trigonometry, chance.

use super::{Call, Derived, Function, Typing, rules};
use crate::expr::Context;
use crate::expr::arithmetic::{self, double};
use crate::expr::convert::Result;
use crate::expr::types::{decimal_digits, numeric};
use rauk_types::{DataType, Decimal, TypeKind, Value, ValueRef};

pub const FUNCTIONS: &[Function] = &[
    Function::new("ABS", 1, 1, abs_type, abs),
    Function::new("CEIL", 1, 1, whole_type, |c, x| whole(c, x, Decimal::ceil, f64::ceil)),
    Function::new("FLOOR", 1, 1, whole_type, |c, x| whole(c, x, Decimal::floor, f64::floor)),
    Function::new("ROUND", 1, 2, round_type, |c, x| round(c, x, false)),
    Function::new("TRUNCATE", 2, 2, round_type, |c, x| round(c, x, true)),
    Function::new("SIGN", 1, 1, rules::integer, sign),
    Function::new("POW", 2, 2, rules::double, |c, x| {
        let value = c.f64(0, x)?.powf(c.f64(1, x)?);
        double(value, &format!("pow({},{})", c.text(0), c.text(1)))
    }),
    Function::new("SQRT", 1, 1, rules::double_or_null, |c, x| Ok(defined(c.f64(0, x)?.sqrt()))),
    Function::new("EXP", 1, 1, rules::double, |c, x| double(c.f64(0, x)?.exp(), &format!("exp({})", c.text(0)))),
    Function::new("LN", 1, 1, rules::double_or_null, |c, x| logarithm(c.f64(0, x)?, f64::ln, x)),
    Function::new("LOG", 1, 2, rules::double_or_null, log),
    Function::new("LOG2", 1, 1, rules::double_or_null, |c, x| logarithm(c.f64(0, x)?, f64::log2, x)),
    Function::new("LOG10", 1, 1, rules::double_or_null, |c, x| logarithm(c.f64(0, x)?, f64::log10, x)),
    Function::new("SIN", 1, 1, rules::double, |c, x| Ok(Value::Double(c.f64(0, x)?.sin()))),
    Function::new("COS", 1, 1, rules::double, |c, x| Ok(Value::Double(c.f64(0, x)?.cos()))),
    Function::new("TAN", 1, 1, rules::double, |c, x| Ok(Value::Double(c.f64(0, x)?.tan()))),
    Function::new("COT", 1, 1, rules::double_or_null, |c, x| {
        double(1.0 / c.f64(0, x)?.tan(), &format!("cot({})", c.text(0)))
    }),
    Function::new("ASIN", 1, 1, rules::double_or_null, |c, x| Ok(defined(c.f64(0, x)?.asin()))),
    Function::new("ACOS", 1, 1, rules::double_or_null, |c, x| Ok(defined(c.f64(0, x)?.acos()))),
    Function::new("ATAN", 1, 2, rules::double, arc_tangent),
    Function::new("ATAN2", 2, 2, rules::double, arc_tangent),
    Function::new("DEGREES", 1, 1, rules::double, |c, x| Ok(Value::Double(c.f64(0, x)?.to_degrees()))),
    Function::new("RADIANS", 1, 1, rules::double, |c, x| Ok(Value::Double(c.f64(0, x)?.to_radians()))),
    Function::new("PI", 0, 0, pi_type, |_, _| Ok(Value::Double(std::f64::consts::PI))),
    Function::new("RAND", 0, 1, rules::double, rand).with_null().volatile(),
];

fn defined(value: f64) -> Value {
    if value.is_nan() { Value::Null } else { Value::Double(value) }
}

/// PI() shows six digits, though it has all of them.
fn pi_type(_: Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(DataType { precision: 8, scale: 6, ..DataType::DOUBLE }))
}

fn abs_type(t: Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(numeric(&t.arguments[0].ty)))
}

fn abs(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    Ok(match c.ty.kind {
        TypeKind::BigInt => match c.number(0) {
            ValueRef::UInt(v) => Value::UInt(v),
            _ => {
                let value = c.int(0, context)?;
                return arithmetic::integer(Some(i128::from(value).abs()), c.ty, &format!("abs({value})"));
            }
        },
        TypeKind::Decimal => Value::Decimal(c.decimal(0, context)?.abs()),
        _ => Value::Double(c.f64(0, context)?.abs()),
    })
}

/// Digits that surely fit a BIGINT.
const BIGINT_DIGITS: u8 = 18;

fn whole_type(t: Typing<'_>) -> Result<Derived> {
    let ty = numeric(&t.arguments[0].ty);
    let (precision, scale) = decimal_digits(&ty);
    Ok(Derived::new(match ty.kind {
        TypeKind::Decimal if precision - scale < BIGINT_DIGITS => {
            let unsigned = t.arguments[0].ty.unsigned;
            DataType { length: u32::from(precision - scale) + 1, unsigned, ..DataType::BIGINT }
        }
        TypeKind::Decimal => DataType::decimal((precision - scale + 1).min(65), 0),
        TypeKind::Double if ty.scale < DataType::DOUBLE.scale => DataType { scale: 0, ..ty },
        _ => ty,
    }))
}

fn whole(
    c: &Call<'_, '_>,
    context: &mut Context,
    exact: fn(&Decimal) -> Decimal,
    approximate: fn(f64) -> f64,
) -> Result<Value> {
    if let ValueRef::UInt(value) = c.number(0) {
        return Ok(Value::UInt(value));
    }
    Ok(match c.ty.kind {
        TypeKind::BigInt if c.argument_type(0).is_integer() => Value::Int(c.int(0, context)?),
        TypeKind::BigInt => match exact(&c.decimal(0, context)?).to_i64().unwrap_or(i64::MAX) {
            value @ 0.. if c.ty.unsigned => Value::UInt(value as u64),
            value => Value::Int(value),
        },
        TypeKind::Decimal => Value::Decimal(exact(&c.decimal(0, context)?)),
        _ => Value::Double(approximate(c.f64(0, context)?)),
    })
}

/// The digits that are left are known when the second argument is a literal.
fn round_type(t: Typing<'_>) -> Result<Derived> {
    let ty = numeric(&t.arguments[0].ty);
    let digits = if t.arguments.len() > 1 { t.constant(1) } else { Some(0) };
    let derived = match ty.kind {
        TypeKind::Decimal => {
            let Some(digits) = digits else { return Ok(Derived::new(ty)) };
            let scale = digits.clamp(0, i64::from(ty.scale)) as u8;
            // Rounding may carry into one digit more.
            let integer = ty.precision - ty.scale + u8::from(scale < ty.scale);
            DataType::decimal((integer + scale).clamp(1, 65), scale)
        }
        // The digits that were asked for are shown, zeros too.
        TypeKind::Double => match digits {
            Some(digits) if digits < 31 => DataType { scale: digits.max(0) as u8, ..DataType::DOUBLE },
            _ => DataType::DOUBLE,
        },
        _ => ty,
    };
    Ok(Derived::new(derived))
}

fn round(c: &Call<'_, '_>, context: &mut Context, cut: bool) -> Result<Value> {
    let digits = if c.has(1) { c.int(1, context)?.clamp(-400, 400) as i32 } else { 0 };
    match c.ty.kind {
        TypeKind::BigInt => {
            let value = crate::expr::convert::to_integer(c.number(0), context)?;
            if digits >= 0 {
                return arithmetic::integer(Some(value), c.ty, "round");
            }
            if digits < -19 {
                return arithmetic::integer(Some(0), c.ty, "round");
            }
            let unit = 10i128.pow(digits.unsigned_abs());
            let half = if cut { 0 } else { unit / 2 * value.signum() };
            arithmetic::integer(Some((value + half) / unit * unit), c.ty, &format!("round({},{digits})", c.text(0)))
        }
        TypeKind::Decimal => {
            let value = c.decimal(0, context)?;
            let result = if cut { value.truncate(digits) } else { value.round(digits).unwrap_or(value) };
            Ok(Value::Decimal(result.rescale(c.ty.scale).unwrap_or(result)))
        }
        _ => {
            let value = c.f64(0, context)?;
            Ok(Value::Double(if cut { truncate_double(value, digits) } else { round_double(value, digits) }))
        }
    }
}

/// Doubles round halves to even, as the C library does.
pub fn round_double(value: f64, digits: i32) -> f64 {
    let power = 10f64.powi(digits.abs());
    let result = if digits < 0 {
        if power.is_infinite() { 0.0 } else { (value / power).round_ties_even() * power }
    } else if (value * power).is_infinite() || power.is_infinite() {
        value
    } else {
        (value * power).round_ties_even() / power
    };
    if result.is_finite() { result } else { value }
}

fn truncate_double(value: f64, digits: i32) -> f64 {
    let power = 10f64.powi(digits.abs());
    if digits < 0 {
        if power.is_infinite() { 0.0 } else { (value / power).trunc() * power }
    } else if (value * power).is_infinite() || power.is_infinite() {
        value
    } else {
        (value * power).trunc() / power
    }
}

fn sign(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    Ok(Value::Int(match c.number(0) {
        ValueRef::Int(v) => v.signum(),
        ValueRef::UInt(v) => i64::from(v > 0),
        ValueRef::Decimal(v) => v.signum().into(),
        _ => {
            let value = c.f64(0, context)?;
            i64::from(value > 0.0) - i64::from(value < 0.0)
        }
    }))
}

/// ER_INVALID_ARGUMENT_FOR_LOGARITHM.
const INVALID_LOGARITHM: u16 = 3020;

fn logarithm(value: f64, of: fn(f64) -> f64, context: &mut Context) -> Result<Value> {
    if value <= 0.0 {
        context.warn_or_fail(INVALID_LOGARITHM, "Invalid argument for logarithm".into())?;
        return Ok(Value::Null);
    }
    Ok(Value::Double(of(value)))
}

fn log(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let first = c.f64(0, context)?;
    if !c.has(1) {
        return logarithm(first, f64::ln, context);
    }
    let value = c.f64(1, context)?;
    if first <= 0.0 || first == 1.0 || value <= 0.0 {
        context.warn_or_fail(INVALID_LOGARITHM, "Invalid argument for logarithm".into())?;
        return Ok(Value::Null);
    }
    Ok(Value::Double(value.ln() / first.ln()))
}

fn arc_tangent(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let first = c.f64(0, context)?;
    Ok(Value::Double(if c.has(1) { first.atan2(c.f64(1, context)?) } else { first.atan() }))
}

/// Two numbers below 2^30, as MySQL's generator has them.
const RANDOM_LIMIT: u64 = 0x3FFF_FFFF;

fn random_step(first: u64, second: u64) -> (u64, u64) {
    let first = (first * 3 + second) % RANDOM_LIMIT;
    (first, (first + second + 33) % RANDOM_LIMIT)
}

/// The state that a seed begins with.
fn seeded(seed: u32) -> (u64, u64) {
    let first = u64::from(seed.wrapping_mul(0x10001).wrapping_add(55_555_555)) % RANDOM_LIMIT;
    (first, u64::from(seed.wrapping_mul(0x1000_0001)) % RANDOM_LIMIT)
}

/// RAND() goes on with the session's generator. RAND(seed) gives the first number after that seed; where the seed is constant, the call has
/// a number of its own as a second argument, and goes on with its own sequence in each statement.
fn rand(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let first = if !c.has(0) {
        let state = context.random_state;
        let (first, second) = random_step((state >> 32) % RANDOM_LIMIT, (state & u64::from(u32::MAX)) % RANDOM_LIMIT);
        context.random_state = first << 32 | second;
        first
    } else if c.has(1) {
        let call = c.int(1, context)?;
        let known = context.seeded_random.iter().position(|(known, _, _)| *known == call);
        let at = match known {
            Some(at) => at,
            None => {
                let (first, second) = seeded(seed(c, context)?);
                context.seeded_random.push((call, first, second));
                context.seeded_random.len() - 1
            }
        };
        let (_, first, second) = &mut context.seeded_random[at];
        (*first, *second) = random_step(*first, *second);
        *first
    } else {
        let (first, second) = seeded(seed(c, context)?);
        random_step(first, second).0
    };
    Ok(Value::Double(first as f64 / RANDOM_LIMIT as f64))
}

fn seed(c: &Call<'_, '_>, context: &mut Context) -> Result<u32> {
    Ok(if c.is_null(0) { 0 } else { c.int(0, context)? as u32 })
}
