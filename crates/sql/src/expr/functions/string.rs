//! Text: its parts, cases, padding, joining.
//!
//! Everything works on bytes with a notion of characters: of binary strings each byte is one.

use super::{Call, Derived, Function, Typing, rules};
use crate::expr::convert::Result;
use crate::expr::types::{self, Class, is_hex, text_type};
use crate::expr::{Context, budget};
use rauk_types::{TypeKind, Value};
use std::borrow::Cow;

pub const FUNCTIONS: &[Function] = &[
    Function::new("CONCAT", 1, u8::MAX, concat_type, concat),
    Function::new("CONCAT_WS", 2, u8::MAX, concat_ws_type, concat_ws).with_null(),
    Function::new("LENGTH", 1, 1, rules::integer, |c, _| Ok(Value::Int(c.bytes(0).len() as i64))).of_bytes(),
    Function::new("BIT_LENGTH", 1, 1, rules::integer, |c, _| Ok(Value::Int(c.bytes(0).len() as i64 * 8))).of_bytes(),
    Function::new("CHAR_LENGTH", 1, 1, rules::integer, |c, _| {
        let binary = c.argument_type(0).is_bytes();
        Ok(Value::Int(char_count(&c.bytes(0), binary) as i64))
    }),
    Function::new("UPPER", 1, 1, rules::same_text, |c, x| change_case(c, x, char::to_uppercase)),
    Function::new("LOWER", 1, 1, rules::same_text, |c, x| change_case(c, x, char::to_lowercase)),
    Function::new("SUBSTRING", 2, 3, rules::same_text, substring),
    Function::new("LEFT", 2, 2, left_type, left),
    Function::new("RIGHT", 2, 2, left_type, right),
    Function::new("TRIM", 1, 2, trim_type, |c, _| Ok(trim(c, true, true))),
    Function::new("LTRIM", 1, 2, trim_type, |c, _| Ok(trim(c, true, false))),
    Function::new("RTRIM", 1, 2, trim_type, |c, _| Ok(trim(c, false, true))),
    Function::new("LPAD", 3, 3, pad_type, |c, x| pad(c, x, true)).unbounded(),
    Function::new("RPAD", 3, 3, pad_type, |c, x| pad(c, x, false)).unbounded(),
    Function::new("REPEAT", 2, 2, repeat_type, repeat).unbounded(),
    Function::new("SPACE", 1, 1, space_type, space).unbounded(),
    Function::new("REVERSE", 1, 1, rules::same_text, reverse),
    Function::new("INSERT", 4, 4, insert_type, insert),
    Function::new("QUOTE", 1, 1, quote_type, quote).with_null(),
    Function::new("SOUNDEX", 1, 1, soundex_type, |c, _| Ok(c.string(soundex(&c.text(0)).into_bytes()))),
    Function::new("FORMAT", 2, 3, format_type, format_number).with_null(),
];

/// Where the character number `n` begins; the length when there are fewer.
pub fn char_offset(bytes: &[u8], n: usize, binary: bool) -> usize {
    if binary || bytes.is_ascii() {
        return n.min(bytes.len());
    }
    bytes.iter().enumerate().filter(|(_, b)| **b & 0xC0 != 0x80).nth(n).map_or(bytes.len(), |(i, _)| i)
}

pub fn char_count(bytes: &[u8], binary: bool) -> usize {
    if binary { bytes.len() } else { bytes.iter().filter(|b| **b & 0xC0 != 0x80).count() }
}

fn concat_type(mut t: Typing<'_>) -> Result<Derived> {
    let length = (0..t.arguments.len()).map(|i| t.length(i)).sum();
    t.text(0..usize::MAX, length)
}

fn concat(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    // Numbers and dates are short; they make the sum a little larger than it is foreseen.
    if !c.fits((0..c.len()).map(|i| c.values[i].bytes()).sum(), context) {
        return Ok(Value::Null);
    }
    let mut out = Vec::new();
    for i in 0..c.len() {
        out.extend_from_slice(&c.bytes(i));
    }
    Ok(c.string(out))
}

fn concat_ws_type(mut t: Typing<'_>) -> Result<Derived> {
    let separators = t.length(0) * (t.arguments.len() as u64).saturating_sub(2);
    let length = (1..t.arguments.len()).map(|i| t.length(i)).sum::<u64>() + separators;
    let nullable = t.arguments[0].nullable;
    t.text(0..usize::MAX, length).map(|d| Derived { nullable, ..d })
}

fn concat_ws(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    if c.is_null(0) {
        return Ok(Value::Null);
    }
    let separator = c.bytes(0);
    let parts = (1..c.len()).filter(|i| !c.is_null(*i));
    let (count, bytes) = parts.fold((0, 0), |(count, bytes), i| (count + 1, bytes + c.values[i].bytes()));
    if !c.fits(separator.len().saturating_mul(usize::saturating_sub(count, 1)).saturating_add(bytes), context) {
        return Ok(Value::Null);
    }
    let mut out = Vec::new();
    let mut first = true;
    for i in (1..c.len()).filter(|i| !c.is_null(*i)) {
        if !first {
            out.extend_from_slice(&separator);
        }
        first = false;
        out.extend_from_slice(&c.bytes(i));
    }
    Ok(c.string(out))
}

/// Characters whose other case is one character; the others stay (`ß`).
fn change_case<I: Iterator<Item = char>>(
    c: &Call<'_, '_>,
    context: &mut Context,
    convert: fn(char) -> I,
) -> Result<Value> {
    if c.is_binary() {
        return Ok(c.string(c.bytes(0).into_owned()));
    }
    let text = c.text(0);
    let set = c.ty.collation.charset();
    let mut out = String::with_capacity(text.len());
    context.budget.memory.while_it_may(text.chars(), |characters| {
        for original in characters {
            let mut other = convert(original);
            match (other.next(), other.next()) {
                // A letter whose other case the set lacks stays too (`µ` in latin1).
                (Some(single), None) if set.has(single) => out.push(single),
                // Unicode's case of one letter by one letter drops the dot that its full case keeps.
                (Some(single), Some('\u{307}')) if original == 'İ' => out.push(single),
                _ => out.push(original),
            }
        }
    })?;
    Ok(Value::Str(out))
}

fn substring(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let bytes = c.bytes(0);
    let binary = c.is_binary();
    let start = c.int(1, context)?;
    let length = if c.has(2) { c.int(2, context)? } else { i64::MAX };
    if start == 0 || length <= 0 {
        return Ok(c.string(Vec::new()));
    }
    let begin = if start > 0 {
        char_offset(&bytes, usize::try_from(start - 1).unwrap_or(usize::MAX), binary)
    } else {
        let total = char_count(&bytes, binary) as u64;
        if start.unsigned_abs() > total {
            return Ok(c.string(Vec::new()));
        }
        char_offset(&bytes, (total - start.unsigned_abs()) as usize, binary)
    };
    let rest = &bytes[begin..];
    let end = char_offset(rest, usize::try_from(length).unwrap_or(usize::MAX), binary);
    Ok(c.string(rest[..end].to_vec()))
}

fn left_type(mut t: Typing<'_>) -> Result<Derived> {
    let limit = t.constant(1).map_or(u64::MAX, |n| n.max(0) as u64);
    t.text(0..1, t.length(0).min(limit))
}

fn left(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let bytes = c.bytes(0);
    let count = usize::try_from(c.int(1, context)?).unwrap_or(0);
    let end = char_offset(&bytes, count, c.is_binary());
    Ok(c.string(bytes[..end].to_vec()))
}

fn right(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let bytes = c.bytes(0);
    let binary = c.is_binary();
    let count = usize::try_from(c.int(1, context)?).unwrap_or(0);
    let begin = char_offset(&bytes, char_count(&bytes, binary).saturating_sub(count), binary);
    Ok(c.string(bytes[begin..].to_vec()))
}

/// In the collation of the text and what is cut off it.
fn trim_type(mut t: Typing<'_>) -> Result<Derived> {
    // Spaces are cut off without a comparison.
    if t.arguments.len() == 1 { t.text(0..1, t.length(0)) } else { t.compared_text(0..2, t.length(0)) }
}

fn trim(c: &Call<'_, '_>, front: bool, back: bool) -> Value {
    let bytes = c.bytes(0);
    let what = if c.has(1) { c.bytes(1) } else { Cow::Borrowed(&b" "[..]) };
    let mut rest = &bytes[..];
    if !what.is_empty() {
        while front && let Some(shorter) = rest.strip_prefix(&what[..]) {
            rest = shorter;
        }
        while back && let Some(shorter) = rest.strip_suffix(&what[..]) {
            rest = shorter;
        }
    }
    c.string(rest.to_vec())
}

fn pad_type(mut t: Typing<'_>) -> Result<Derived> {
    let length = t.constant(1).map_or(16_383, |n| n.max(0) as u64);
    let mut derived = t.text(0..1, length)?;
    if t.arguments[2].ty.is_bytes() && !t.arguments[0].ty.is_bytes() && Class::of(&t.arguments[0].ty) != Class::Text {
        derived = t.text(0..3, length)?;
    }
    Ok(derived.nullable())
}

fn pad(c: &Call<'_, '_>, context: &mut Context, front: bool) -> Result<Value> {
    let (bytes, padding) = (c.bytes(0), c.bytes(2));
    let binary = c.is_binary();
    let Ok(length) = usize::try_from(c.int(1, context)?) else { return Ok(Value::Null) };
    let present = char_count(&bytes, binary);
    if length <= present {
        return Ok(c.string(bytes[..char_offset(&bytes, length, binary)].to_vec()));
    }
    let unit = char_count(&padding, binary);
    if unit == 0 {
        return Ok(c.string(Vec::new()));
    }
    let missing = length - present;
    let size = missing.saturating_mul(padding.len()) / unit + bytes.len();
    if !c.fits(size, context) {
        return Ok(Value::Null);
    }
    let rest = &padding[..char_offset(&padding, missing % unit, binary)];
    let parts = [(&*padding, missing / unit), (rest, 1)];
    let out = match front {
        true => repeated(&[parts[0], parts[1], (&*bytes, 1)], context)?,
        false => repeated(&[(&*bytes, 1), parts[0], parts[1]], context)?,
    };
    Ok(c.string(out))
}

fn repeat_type(mut t: Typing<'_>) -> Result<Derived> {
    let count = t.constant(1).map_or(u64::from(u32::MAX), |n| n.max(0) as u64);
    Ok(t.text(0..1, t.length(0).saturating_mul(count))?.nullable())
}

fn repeat(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let bytes = c.bytes(0);
    let count = usize::try_from(c.int(1, context)?).unwrap_or(0);
    if !c.fits(bytes.len().saturating_mul(count), context) {
        return Ok(Value::Null);
    }
    Ok(c.string(repeated(&[(&*bytes, count)], context)?))
}

/// Bytes that are written in one go, between two looks at KILL.
const PIECE: usize = 256 << 10;

/// Each part as often as is said, one after the other. Arguments are small where results are large: so it says itself what it goes through.
fn repeated(parts: &[(&[u8], usize)], context: &mut Context) -> Result<Vec<u8>> {
    let size = parts.iter().map(|(part, count)| part.len() * count).sum();
    budget::run(context.budget.runner(size), || {
        let mut out = Vec::with_capacity(size);
        for &(part, count) in parts.iter().filter(|(part, _)| !part.is_empty()) {
            let together = (PIECE / part.len()).clamp(1, count.max(1));
            let piece = part.repeat(together);
            for _ in 0..count / together {
                context.budget.work(piece.len())?;
                out.extend_from_slice(&piece);
            }
            out.extend_from_slice(&piece[..count % together * part.len()]);
        }
        Ok(out)
    })
}

fn space_type(t: Typing<'_>) -> Result<Derived> {
    let count = t.constant(0).map_or(u64::from(u32::MAX), |n| n.max(0) as u64);
    Ok(t.connection_text(count).nullable())
}

fn space(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let count = usize::try_from(c.int(0, context)?).unwrap_or(0);
    if !c.fits(count, context) {
        return Ok(Value::Null);
    }
    Ok(c.string(repeated(&[(b" ", count)], context)?))
}

fn reverse(c: &Call<'_, '_>, _: &mut Context) -> Result<Value> {
    if c.is_binary() {
        let mut bytes = c.bytes(0).into_owned();
        bytes.reverse();
        return Ok(c.string(bytes));
    }
    let text = c.text(0);
    if text.is_ascii() {
        return Ok(c.string(text.bytes().rev().collect()));
    }
    Ok(Value::Str(text.chars().rev().collect()))
}

fn insert_type(mut t: Typing<'_>) -> Result<Derived> {
    let length = t.length(0) + t.length(3);
    let mut derived = t.text(0..1, length)?;
    let texts = [&t.arguments[0], &t.arguments[3]].into_iter().filter(|e| Class::of(&e.ty).is_string());
    let (collation, coercibility) = types::result_collation(texts, "insert", t.context.collation)?;
    if Class::of(&t.arguments[3].ty) == Class::Text && derived.ty.is_text() {
        derived = Derived { ty: text_type(length, collation), coercibility, ..derived };
    }
    if t.arguments[3].ty.is_bytes() {
        derived = Derived::new(super::text_type(t.length(0) + t.length(3), rauk_types::Collation::Binary));
    }
    Ok(derived)
}

fn insert(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let (bytes, new) = (c.bytes(0), c.bytes(3));
    let binary = c.is_binary();
    let (position, length) = (c.int(1, context)?, c.int(2, context)?);
    let total = char_count(&bytes, binary) as i64;
    if position < 1 || position > total {
        return Ok(c.string(bytes.into_owned()));
    }
    let begin = char_offset(&bytes, (position - 1) as usize, binary);
    let count = if length < 0 || length > total - position + 1 { total - position + 1 } else { length };
    let end = begin + char_offset(&bytes[begin..], count as usize, binary);
    if !c.fits(bytes.len() - (end - begin) + new.len(), context) {
        return Ok(Value::Null);
    }
    Ok(c.string([&bytes[..begin], &new, &bytes[end..]].concat()))
}

fn quote_type(mut t: Typing<'_>) -> Result<Derived> {
    t.text(0..1, t.length(0) * 2 + 2)
}

fn quote(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    if c.is_null(0) {
        return Ok(c.string(b"NULL".to_vec()));
    }
    let bytes = c.bytes(0);
    let escaped = bytes.iter().filter(|byte| matches!(byte, b'\'' | b'\\' | 0 | 0x1A)).count();
    if !c.fits(bytes.len() + escaped + 2, context) {
        return Ok(Value::Null);
    }
    let mut out = vec![b'\''];
    context.budget.memory.while_it_may(bytes.iter(), |bytes| {
        for byte in bytes {
            match byte {
                b'\'' | b'\\' => out.extend([b'\\', *byte]),
                0 => out.extend(b"\\0"),
                0x1A => out.extend(b"\\Z"),
                byte => out.push(*byte),
            }
        }
    })?;
    out.push(b'\'');
    Ok(c.string(out))
}

fn soundex_type(mut t: Typing<'_>) -> Result<Derived> {
    t.text(0..1, t.length(0).max(4))
}

/// The letters' classes in English; vowels and other characters separate nothing but themselves.
fn soundex(text: &str) -> String {
    const CODES: &[u8; 26] = b"01230120022455012623010202";
    let code = |c: char| {
        if c.is_ascii_alphabetic() { Some(CODES[(c.to_ascii_uppercase() as u8 - b'A') as usize]) } else { None }
    };
    let mut letters = text.chars().filter(|c| c.is_alphabetic());
    let Some(first) = letters.next() else { return String::new() };
    let mut out = String::from(first.to_ascii_uppercase());
    let mut last = code(first).unwrap_or(b'0');
    for letter in letters {
        let digit = code(letter).unwrap_or(b'0');
        // H and W are transparent in the original soundex; MySQL treats them as vowels.
        if digit != b'0' && digit != last {
            out.push(char::from(digit));
        }
        if digit != b'0' {
            last = digit;
        }
    }
    while out.chars().count() < 4 {
        out.push('0');
    }
    out
}

fn format_type(t: Typing<'_>) -> Result<Derived> {
    let length = t.length(0) * 4 / 3 + 32;
    Ok(t.connection_text(length).nullable())
}

/// FORMAT(x, digits[, locale]): rounded, with separators between thousands.
fn format_number(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    if c.is_null(0) || c.is_null(1) {
        return Ok(Value::Null);
    }
    let digits = c.int(1, context)?.clamp(0, 30) as u8;
    let text = if Class::of(c.argument_type(0)) == Class::Decimal
        || c.argument_type(0).is_integer()
        || is_hex(c.argument_type(0))
    {
        let number = c.decimal(0, context)?;
        number.rounded(digits).rescale(digits).unwrap_or(number).to_string()
    } else {
        let number = c.f64(0, context)?;
        format!("{:.*}", usize::from(digits), crate::expr::functions::numeric::round_double(number, digits.into()))
    };
    let locale = super::date_format::locale_of(c, 2, context);
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", &text[..]),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut out = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        let left = whole.len() - i;
        let groups = if locale.by_lakh && left > 3 { (left - 3).is_multiple_of(2) } else { left.is_multiple_of(3) };
        if i > 0 && groups {
            out.push_str(locale.thousands);
        }
        out.push(digit);
    }
    if digits > 0 {
        out.push_str(locale.point);
        out.push_str(fraction);
    }
    debug_assert!(c.ty.kind == TypeKind::VarChar || c.ty.is_text());
    Ok(Value::Str(out))
}
