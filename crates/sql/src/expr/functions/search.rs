//! Finding text in text, by the collation.
//!
//! A needle is sought at character boundaries; two texts match when they have as many characters and compare equal, as MySQL's LOCATE does.

use super::string::{char_count, char_offset};
use super::{Call, Chosen, Derived, Function, Typing, rules};
use crate::expr::budget::run;
use crate::expr::convert::{self, Result};
use crate::expr::eval::{self, Env};
use crate::expr::find::{NEEDLE_BYTES, Needle, Units};
use crate::expr::types::{self, Class};
use crate::expr::{Context, Expr, Val};
use crate::memory::{LARGE, Memory};
use memchr::memmem::{self, Finder};
use rauk_types::{Collation, DataType, TypeKind, Value, ValueRef};
use std::cmp::Ordering;

pub const FUNCTIONS: &[Function] = &[
    Function::new("INSTR", 2, 2, rules::compared, |c, x| {
        hold_needle(c, 1, x, |memory| locate(&c.bytes(0), &c.bytes(1), 0, collation(c, 0, 1), memory))
    }),
    Function::new("LOCATE", 2, 3, rules::compared, locate_from),
    Function::new("REPLACE", 3, 3, replace_type, replace).unbounded(),
    Function::new("SUBSTRING_INDEX", 3, 3, substring_index_type, substring_index),
    Function {
        walk: Some(field),
        ..Function::new("FIELD", 2, u8::MAX, rules::compared, |_, _| Ok(Value::Null)).with_null()
    },
    Function::new("ELT", 2, u8::MAX, elt_type, elt).choosing(elt_choice),
    Function::new("FIND_IN_SET", 2, 2, rules::compared, find_in_set),
    Function::new("STRCMP", 2, 2, rules::compared, |c, _| {
        let order = collation(c, 0, 1).compare(&c.bytes(0), &c.bytes(1));
        Ok(Value::Int(order as i64))
    }),
    Function::new("EXPORT_SET", 3, 5, export_set_type, export_set).unbounded(),
    Function::new("MAKE_SET", 2, u8::MAX, make_set_type, make_set).choosing(make_set_choice),
];

/// The collation in which two arguments compare: what an aggregation would give, decided by the types alone.
fn collation(c: &Call<'_, '_>, a: usize, b: usize) -> Collation {
    aggregated([&c.arguments[a], &c.arguments[b]])
}

/// The collation in which all arguments compare.
fn common_collation(arguments: &[Expr]) -> Collation {
    aggregated(arguments)
}

fn aggregated<'e>(arguments: impl IntoIterator<Item = &'e Expr>) -> Collation {
    let strings = arguments.into_iter().filter(|e| Class::of(&e.ty).is_string());
    types::aggregate_collations(strings, "", Collation::DEFAULT).map_or(Collation::DEFAULT, |c| c.0)
}

/// Character position (from 1) of `needle` at or behind character `from` (from 0); 0: not there.
fn locate(haystack: &[u8], needle: &[u8], from: usize, collation: Collation, memory: &Memory) -> Result<i64> {
    let binary = collation == Collation::Binary;
    let total = char_count(haystack, binary);
    let length = char_count(needle, binary);
    if from > total {
        return Ok(0);
    }
    if needle.is_empty() {
        return Ok(from as i64 + 1);
    }
    if from.saturating_add(length) > total {
        return Ok(0);
    }
    let begin = char_offset(haystack, from, binary);
    let rest = &haystack[begin..];
    let found = match (std::str::from_utf8(rest), std::str::from_utf8(needle)) {
        (Ok(rest), Ok(needle)) if !binary && !collation.is_binary() => {
            let mut units = Units::new(collation);
            let needle = memory.while_it_may(needle.chars(), |n| Needle::new(n.map(|c| units.unit(c))))?;
            memory.while_it_may(rest.chars(), |rest| needle.places(rest.map(|c| units.unit(c))).next())?
        }
        // A character's bytes are found where a character begins.
        _ => memmem::find(rest, needle).map(|at| char_count(&rest[..at], binary)),
    };
    Ok(found.map_or(0, |at| (from + at) as i64 + 1))
}

fn locate_from(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let from = if c.has(2) { c.int(2, context)? } else { 1 };
    let Some(from) = usize::try_from(from).ok().and_then(|f| f.checked_sub(1)) else { return Ok(Value::Int(0)) };
    hold_needle(c, 0, context, |memory| locate(&c.bytes(1), &c.bytes(0), from, collation(c, 0, 1), memory))
}

/// Counts what preparing a long sought text takes, while it is sought.
fn hold_needle(
    c: &Call<'_, '_>,
    needle: usize,
    context: &mut Context,
    seek: impl FnOnce(&Memory) -> Result<i64>,
) -> Result<Value> {
    let bytes = c.values[needle].bytes();
    let held = if bytes >= LARGE { bytes * NEEDLE_BYTES } else { 0 };
    context.budget.memory.take(held)?;
    let found = seek(&context.budget.memory)?;
    context.budget.memory.give(held);
    Ok(Value::Int(found))
}

fn replace_type(mut t: Typing<'_>) -> Result<Derived> {
    let (whole, from, to) = (t.length(0), t.length(1).max(1), t.length(2));
    let length = if to > from { whole.saturating_mul(to) } else { whole };
    t.compared_text(0..3, length)
}

/// By bytes, as MySQL: REPLACE is case-sensitive.
fn replace(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let (whole, from, to) = (c.bytes(0), c.bytes(1), c.bytes(2));
    if from.is_empty() {
        return Ok(c.string(whole.into_owned()));
    }
    let finder = Finder::new(&from);
    let memory = context.budget.memory.clone();
    let found = memory.while_it_may(finder.find_iter(&whole), |places| places.count())?;
    if found == 0 {
        return Ok(c.string(whole.into_owned()));
    }
    let rest = whole.len() - found * from.len();
    if !c.fits(found.saturating_mul(to.len()).saturating_add(rest), context) {
        return Ok(Value::Null);
    }
    let mut out = Vec::with_capacity(rest + found * to.len());
    let mut done = 0;
    memory.while_it_may(finder.find_iter(&whole), |places| {
        for at in places {
            out.extend_from_slice(&whole[done..at]);
            out.extend_from_slice(&to);
            done = at + from.len();
        }
    })?;
    out.extend_from_slice(&whole[done..]);
    Ok(c.string(out))
}

fn substring_index_type(mut t: Typing<'_>) -> Result<Derived> {
    t.compared_text(0..2, t.length(0))
}

fn substring_index(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let (whole, delimiter) = (c.bytes(0), c.bytes(1));
    let count = c.int(2, context)?;
    if whole.is_empty() || delimiter.is_empty() || count == 0 {
        return Ok(c.string(Vec::new()));
    }
    let finder = Finder::new(&delimiter);
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let memory = &context.budget.memory;
    let nth = |n: usize| memory.while_it_may(finder.find_iter(&whole), |mut places| places.nth(n));
    let part = if count > 0 {
        nth(wanted - 1)?.map_or(&whole[..], |end| &whole[..end])
    } else {
        // Counted from the end, of those that are found from the beginning.
        let found = memory.while_it_may(finder.find_iter(&whole), |places| places.count())?;
        match found.checked_sub(wanted).map(nth).transpose()?.flatten() {
            Some(at) => &whole[at + delimiter.len()..],
            None => &whole[..],
        }
    };
    Ok(c.string(part.to_vec()))
}

/// Compares as texts when all are, as numbers otherwise. What stands behind an argument that is equal is not evaluated.
fn field<'a>(arguments: &'a [Expr], env: &Env<'a>, context: &mut Context) -> Result<Val<'a>> {
    let none = || Ok(Val::Own(Value::Int(0)));
    let first = arguments[0].value(env, context)?;
    if first.is_null() {
        return none();
    }
    let held = eval::hold(&first, context)?;
    let by = FieldBy::of(arguments);
    for (at, argument) in arguments.iter().enumerate().skip(1) {
        let value = argument.value(env, context)?;
        if value.is_null() {
            continue;
        }
        let bytes = first.bytes() + value.bytes();
        context.budget.work(bytes)?;
        let sides = [(&first, &arguments[0].ty), (&value, &argument.ty)];
        if run(context.budget.runner(bytes), || by.are_equal(sides, context))? {
            context.budget.memory.give(held);
            return Ok(Val::Own(Value::Int(at as i64)));
        }
    }
    context.budget.memory.give(held);
    none()
}

/// As what FIELD compares.
enum FieldBy {
    Text(Collation),
    /// 64 bits, whatever the sign.
    Bits,
    Decimal,
    Double,
}

impl FieldBy {
    fn of(arguments: &[Expr]) -> FieldBy {
        let all = |f: fn(Class) -> bool| arguments.iter().all(|e| f(Class::of(&e.ty)));
        if all(|c| c.is_string() || c == Class::Null) {
            FieldBy::Text(common_collation(arguments))
        } else if all(|c| c == Class::Integer) {
            FieldBy::Bits
        } else if all(|c| matches!(c, Class::Integer | Class::Decimal | Class::Null)) {
            FieldBy::Decimal
        } else {
            FieldBy::Double
        }
    }

    fn are_equal(&self, sides: [(&Val<'_>, &DataType); 2], context: &mut Context) -> Result<bool> {
        if let FieldBy::Text(collation) = self {
            let [one, other] = sides.map(|(value, ty)| convert::text_bytes(value.as_ref(), ty));
            return Ok(collation.compare(&one, &other) == Ordering::Equal);
        }
        let [one, other] = sides.map(|(value, ty)| convert::as_number(value.as_ref(), ty));
        Ok(match self {
            FieldBy::Bits => convert::to_bits(one, context)? == convert::to_bits(other, context)?,
            FieldBy::Decimal => convert::to_decimal(one, context)? == convert::to_decimal(other, context)?,
            _ => convert::to_f64(one, context)? == convert::to_f64(other, context)?,
        })
    }
}

fn elt_type(mut t: Typing<'_>) -> Result<Derived> {
    let length = (1..t.arguments.len()).map(|i| t.length(i)).max().unwrap_or(0);
    Ok(t.text(1..usize::MAX, length)?.nullable())
}

fn elt_choice(first: &mut Val<'_>, ty: &DataType, context: &mut Context) -> Result<Chosen> {
    let index = convert::to_i64(convert::as_number(first.as_ref(), ty), context)?;
    *first = Val::Own(Value::Int(index));
    Ok(Chosen::One(usize::try_from(index).unwrap_or(0)))
}

fn elt(c: &Call<'_, '_>, _: &mut Context) -> Result<Value> {
    let ValueRef::Int(index) = c.value(0) else { return Ok(Value::Null) };
    match usize::try_from(index) {
        Ok(index @ 1..) if c.has(index) && !c.is_null(index) => Ok(c.string(c.bytes(index).into_owned())),
        _ => Ok(Value::Null),
    }
}

fn find_in_set(c: &Call<'_, '_>, _: &mut Context) -> Result<Value> {
    // Of a constant in a SET column it is the member's number in the declaration, as MySQL has it.
    let ty = c.argument_type(1);
    if let (TypeKind::Set, Some(members), ValueRef::UInt(bits)) = (ty.kind, ty.members, c.value(1))
        && c.arguments[0].is_constant()
    {
        let text = c.text(0);
        let position = members.position(&text, ty.collation).filter(|_| !text.ends_with(' '));
        return Ok(Value::Int(position.filter(|at| bits >> (at - 1) & 1 == 1).map_or(0, |at| at as i64)));
    }
    let (item, list) = (c.bytes(0), c.bytes(1));
    if list.is_empty() || item.contains(&b',') {
        return Ok(Value::Int(0));
    }
    let collation = collation(c, 0, 1);
    // Spaces at the end count here, also where the collation pads.
    let spaces = |text: &[u8]| text.iter().rev().take_while(|b| **b == b' ').count();
    let (own, at_end) = (&item, spaces(&item));
    let found = list
        .split(|b| *b == b',')
        .position(|part| spaces(part) == at_end && collation.compare(part, own) == Ordering::Equal);
    Ok(Value::Int(found.map_or(0, |p| p as i64 + 1)))
}

fn export_set_type(mut t: Typing<'_>) -> Result<Derived> {
    let longest = t.length(1).max(t.length(2));
    let separator = if t.arguments.len() > 3 { t.length(3) } else { 1 };
    t.text(1..4, (longest + separator) * 64)
}

fn export_set(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let bits = convert::to_bits(c.number(0), context)?;
    let (on, off) = (c.bytes(1), c.bytes(2));
    let separator = if c.has(3) { c.bytes(3).into_owned() } else { b",".to_vec() };
    let count = if c.has(4) { c.int(4, context)?.clamp(0, 64) } else { 64 };
    let parts: Vec<&[u8]> = (0..count).map(|i| if bits >> i & 1 == 1 { &on[..] } else { &off[..] }).collect();
    let separators = separator.len() * parts.len().saturating_sub(1);
    if !c.fits(parts.iter().map(|part| part.len()).sum::<usize>() + separators, context) {
        return Ok(Value::Null);
    }
    Ok(c.string(parts.join(&separator[..])))
}

fn make_set_type(mut t: Typing<'_>) -> Result<Derived> {
    let length = (1..t.arguments.len()).map(|i| t.length(i) + 1).sum();
    Ok(t.text(1..usize::MAX, length)?.nullable())
}

fn make_set_choice(first: &mut Val<'_>, ty: &DataType, context: &mut Context) -> Result<Chosen> {
    let bits = convert::to_bits(convert::as_number(first.as_ref(), ty), context)?;
    *first = Val::Own(Value::UInt(bits));
    Ok(Chosen::Bits(bits))
}

fn make_set(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    if c.is_null(0) {
        return Ok(Value::Null);
    }
    // What is not chosen is NULL.
    let parts: Vec<_> = (1..c.len()).filter(|i| !c.is_null(*i)).map(|i| c.bytes(i)).collect();
    if !c.fits(parts.iter().map(|part| part.len() + 1).sum::<usize>().saturating_sub(1), context) {
        return Ok(Value::Null);
    }
    Ok(c.string(parts.join(&b","[..])))
}
