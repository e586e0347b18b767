//! GREATEST and LEAST, UUIDs, units for people, and what else has no better place.

use super::{Call, Derived, Function, Typing, rules};
use crate::expr::Context;
use crate::expr::compare::compare_values;
use crate::expr::convert::Result;
use crate::expr::types::{self, Class, text_type, unify};
use crate::expr::{bind_converted, member_number, year_number};
use crate::parse::statement::Scope;
use rand::TryRngCore;
use rand::rngs::OsRng;
use rauk_types::error::codes;
use rauk_types::{Collation, DataType, MysqlError, Value};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub const FUNCTIONS: &[Function] = &[
    Function::new("GREATEST", 2, u8::MAX, extreme_type, |c, _| Ok(extreme(c, Ordering::Greater))),
    Function::new("LEAST", 2, u8::MAX, extreme_type, |c, _| Ok(extreme(c, Ordering::Less))),
    Function::new("UUID", 0, 0, |t| Ok(t.connection_text(36)), uuid).volatile(),
    Function::new("UUID_TO_BIN", 1, 2, |_| Ok(Derived::new(DataType::varbinary(16)).nullable()), uuid_to_bin),
    Function::new("BIN_TO_UUID", 1, 2, |t| Ok(t.connection_text(36).nullable()), bin_to_uuid),
    Function::new("IS_UUID", 1, 1, rules::boolean, |c, _| Ok(Value::Int(uuid_bytes(&c.text(0)).is_some().into()))),
    Function::new("INTERVAL", 2, u8::MAX, rules::integer, interval).with_null(),
    Function::new(ANY_VALUE, 1, 1, any_value_type, |c, _| Ok(c.value(0).to_owned())).with_null(),
    Function::new("UUID_SHORT", 0, 0, rules::unsigned, |_, x| uuid_short(x)).volatile(),
    Function::new("RANDOM_BYTES", 1, 1, random_bytes_type, random_bytes).volatile(),
    Function::new("FORMAT_BYTES", 1, 1, |t| Ok(t.connection_text(16)), |c, x| Ok(in_units(c.f64(0, x)?, BYTES))),
    Function::new("FORMAT_PICO_TIME", 1, 1, |t| Ok(t.connection_text(16)), |c, x| Ok(in_units(c.f64(0, x)?, TIMES))),
    Function::new("LOAD_FILE", 1, 1, load_file_type, load_file).impure(),
    // Without a component that judges passwords it is 0.
    Function::new("VALIDATE_PASSWORD_STRENGTH", 1, 1, rules::integer, |_, _| Ok(Value::Int(0))).impure(),
    Function::new("NAME_CONST", 2, 2, name_const_type, |c, _| Ok(c.value(1).to_owned())).with_null(),
];

/// A text that is compared with an ENUM or SET: the number of the value that equals it.
pub(in crate::expr) static MEMBER_CONSTANT: Function = Function::new(
    "MEMBER_CONSTANT",
    1,
    1,
    |_| Ok(Derived::new(DataType::BIGINT)),
    |c, _| Ok(member_number(&c.text(0), c.ty)),
);

/// A number or text that is compared with a YEAR: two digits stand for a year.
pub(in crate::expr) static YEAR_CONSTANT: Function = Function::new(
    "YEAR_CONSTANT",
    1,
    1,
    |_| Ok(Derived::new(DataType::BIGINT)),
    |c, _| Ok(year_number(c.value(0)).map_or_else(|| c.value(0).to_owned(), Value::Int)),
);

/// The function whose argument ONLY_FULL_GROUP_BY does not judge.
pub(crate) const ANY_VALUE: &str = "ANY_VALUE";

fn any_value_type(t: Typing<'_>) -> Result<Derived> {
    let argument = &t.arguments[0];
    Ok(Derived { ty: types::plain(argument.ty), nullable: argument.nullable, coercibility: argument.coercibility })
}

/// One type for all of them; numbers beside texts make it a comparison of texts, as MySQL 8 does.
fn extreme_type(t: Typing<'_>) -> Result<Derived> {
    let (ty, coercibility) = unify(t.arguments.iter(), &t.name.to_ascii_lowercase(), t.context.collation)?;
    for argument in t.arguments.iter_mut() {
        let own = std::mem::replace(argument, crate::expr::Expr::null());
        *argument = bind_converted(own, &ty);
    }
    let coercibility = if Class::of(&ty).is_string() { coercibility } else { types::NUMERIC };
    Ok(Derived { ty, nullable: false, coercibility })
}

fn extreme(c: &Call<'_, '_>, wanted: Ordering) -> Value {
    let mut best = c.value(0);
    for i in 1..c.len() {
        if compare_values(c.value(i), best, c.ty) == wanted {
            best = c.value(i);
        }
    }
    best.to_owned()
}

/// INTERVAL(n, a, b, …): how many of the others, which ascend, are not above the first; -1 for NULL.
fn interval(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    if c.is_null(0) {
        return Ok(Value::Int(-1));
    }
    let number = c.f64(0, context)?;
    let mut count = 0;
    for i in 1..c.len() {
        if !c.is_null(i) && c.f64(i, context)? > number {
            break;
        }
        count = i;
    }
    Ok(Value::Int(count as i64))
}

/// The next number of a splitmix sequence: enough for identifiers that only have to differ.
fn next_random(context: &mut Context) -> u64 {
    context.random_state = context.random_state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = context.random_state;
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// The server's number, the second at which the first one was made, and a count.
fn uuid_short(context: &mut Context) -> Result<Value> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let server = match context.variables.clone().get(Scope::Default, "server_id")? {
        Value::Int(id) => id as u64,
        Value::UInt(id) => id,
        _ => 0,
    };
    let second = (context.now_micros.max(0) as u64 / 1_000_000) << 24;
    let next = |last: u64| Some(if last == 0 { second } else { last + 1 });
    let last = LAST.fetch_update(Relaxed, Relaxed, next).expect("there is always a next one");
    let number = next(last).expect("there is always a next one");
    Ok(Value::UInt((server & 0xFF) << 56 | number & ((1 << 56) - 1)))
}

fn random_bytes_type(_: Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(DataType::varbinary(1024)).nullable())
}

/// Bytes that nobody can foresee, 1 to 1024. Error 1690.
fn random_bytes(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let count = c.int(0, context)?;
    let out_of_range = || crate::expr::arithmetic::out_of_range("length", "random_bytes");
    let count = usize::try_from(count).ok().filter(|n| (1..=1024).contains(n)).ok_or_else(out_of_range)?;
    let mut bytes = vec![0; count];
    match OsRng.try_fill_bytes(&mut bytes) {
        Ok(()) => Ok(Value::Bytes(bytes)),
        Err(error) => Err(MysqlError::new(codes::UNKNOWN_ERROR, format!("no random bytes from the system: {error}"))),
    }
}

fn load_file_type(_: Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(text_type(u32::MAX.into(), Collation::Binary)).nullable())
}

/// NULL for a file that the session may not read, or that is not there.
fn load_file(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let name = c.text(0);
    // One more than may be: the caller sees that it is too long.
    let most = context.max_allowed_packet + 1;
    let (server, budget) = (&context.server, &context.budget);
    Ok(budget.beside(|| server.read_file(&name, most)).map_or(Value::Null, Value::Bytes))
}

/// Units and how many of the smallest each is, the smallest first.
type UnitsOf = &'static [(&'static str, f64)];

const BYTES: UnitsOf = &[
    ("bytes", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("PiB", 1_125_899_906_842_624.0),
    ("EiB", 1_152_921_504_606_846_976.0),
];

const TIMES: UnitsOf = &[
    ("ps", 1.0),
    ("ns", 1e3),
    ("us", 1e6),
    ("ms", 1e9),
    ("s", 1e12),
    ("min", 60e12),
    ("h", 3600e12),
    ("d", 86_400e12),
];

/// `2.50 KiB`, `512 bytes`: in the largest unit that the number has one of.
fn in_units(number: f64, units: UnitsOf) -> Value {
    let at = units.iter().rposition(|(_, size)| number.abs() >= *size).unwrap_or(0);
    let (unit, size) = units[at];
    let shown = number / size;
    Value::Str(if at == 0 {
        let width = if unit == "bytes" { 4 } else { 3 };
        format!("{:>width$} {unit}", number.trunc())
    } else if shown.abs() >= 100_000.0 {
        let text = format!("{shown:.2e}");
        // As C writes exponents.
        let (digits, exponent) = text.split_once('e').expect("it was written so");
        format!("{digits}e+{exponent:0>2} {unit}")
    } else {
        format!("{shown:.2} {unit}")
    })
}

/// 100-nanosecond steps between 1582-10-15 and 1970-01-01.
const UUID_EPOCH: u64 = 0x01B2_1DD2_1381_4000;

/// Version 1, as MySQL's: time, clock sequence, node. The low digits of the time and the node come from the session's generator.
fn uuid(_: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let random = next_random(context);
    let time =
        (context.now_micros.max(0) as u64).wrapping_mul(10).wrapping_add(UUID_EPOCH).wrapping_add(random & 0xFFFF);
    let node = next_random(context) & 0xFFFF_FFFF_FFFF | 0x0100_0000_0000;
    let (low, middle, high) = (time as u32, (time >> 32) as u16, (time >> 48 & 0x0FFF) as u16 | 0x1000);
    let clock = (random >> 16 & 0x3FFF) as u16 | 0x8000;
    Ok(Value::Str(format!("{low:08x}-{middle:04x}-{high:04x}-{clock:04x}-{node:012x}")))
}

pub(super) fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let text = text.trim_start_matches('{').trim_end_matches('}');
    let dashes: Vec<usize> = text.bytes().enumerate().filter(|(_, b)| *b == b'-').map(|(i, _)| i).collect();
    if !(dashes.is_empty() || dashes == [8, 13, 18, 23]) {
        return None;
    }
    let digits: Vec<u8> = text
        .bytes()
        .filter(|b| *b != b'-')
        .map(|b| char::from(b).to_digit(16).map(|d| d as u8))
        .collect::<Option<_>>()?;
    if digits.len() != 32 {
        return None;
    }
    let mut out = [0; 16];
    out.iter_mut().zip(digits.chunks(2)).for_each(|(o, d)| *o = d[0] << 4 | d[1]);
    Some(out)
}

fn wrong_uuid(value: &str, function: &str) -> MysqlError {
    MysqlError::new(1411, format!("Incorrect string value: '{value}' for function {function}"))
}

fn swapped(c: &Call<'_, '_>, context: &mut Context) -> Result<bool> {
    Ok(c.has(1) && c.int(1, context)? != 0)
}

fn uuid_to_bin(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let text = c.text(0);
    let Some(b) = uuid_bytes(&text) else { return Err(wrong_uuid(&text, "uuid_to_bin")) };
    Ok(Value::Bytes(if swapped(c, context)? { [&b[6..8], &b[4..6], &b[0..4], &b[8..]].concat() } else { b.to_vec() }))
}

fn bin_to_uuid(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let bytes = c.bytes(0);
    if bytes.len() != 16 {
        return Err(wrong_uuid(&String::from_utf8_lossy(&bytes), "bin_to_uuid"));
    }
    let b = if swapped(c, context)? {
        [&bytes[4..8], &bytes[2..4], &bytes[0..2], &bytes[8..]].concat()
    } else {
        bytes.to_vec()
    };
    let hex: String = b.iter().map(|b| format!("{b:02x}")).collect();
    Ok(Value::Str(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])))
}

fn name_const_type(t: Typing<'_>) -> Result<Derived> {
    let value = &t.arguments[1];
    Ok(Derived { ty: value.ty, nullable: value.nullable, coercibility: value.coercibility })
}
