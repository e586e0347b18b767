//! WEIGHT_STRING: by what a text is compared.
//!
//! The weights of the characters one after the other, 16 bits each and big-endian, level after level with two zero bytes between; in utf8mb4_bin the
//! code points, 24 bits each; of binary strings
//! the bytes, with zero bytes for what is missing. Numbers and dates have no weights: NULL. A second argument is the number of characters that AS CHAR(n) asks for: more are cut off, and what is missing
//! weighs as spaces where the collation pads (utf8mb4_0900_ai_ci does not).

use super::{Call, Derived, Function, Typing};
use crate::expr::Context;
use crate::expr::convert::Result;
use crate::expr::types::Class;
use rauk_types::{Collation, DataType, Value};
use std::borrow::Cow;

pub const FUNCTIONS: &[Function] = &[Function::new("WEIGHT_STRING", 1, 2, weights_type, weights)];

/// Bytes of the weights of a character, mostly.
const EACH: u64 = 4;

fn weights_type(t: Typing<'_>) -> Result<Derived> {
    let characters = t.constant(1).map_or(0, |n| n.max(0) as u64).max(t.length(0));
    let length = u32::try_from(characters.saturating_mul(EACH)).unwrap_or(u32::MAX);
    let coercibility = t.arguments[0].coercibility;
    Ok(Derived { ty: DataType::varbinary(length), nullable: true, coercibility })
}

fn weights(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let ty = c.argument_type(0);
    if !Class::of(ty).is_string() {
        return Ok(Value::Null);
    }
    let collation = ty.collation;
    let wanted = if c.has(1) { Some(usize::try_from(c.int(1, context)?).unwrap_or(0)) } else { None };
    let bytes = c.bytes(0);
    if collation == Collation::Binary {
        let wanted = wanted.unwrap_or(bytes.len());
        if !c.fits(wanted, context) {
            return Ok(Value::Null);
        }
        let mut bytes = bytes.into_owned();
        bytes.resize(wanted, 0);
        return Ok(Value::Bytes(bytes));
    }
    let text = String::from_utf8_lossy(&bytes);
    let (end, count) = match wanted {
        None => (text.len(), 0),
        Some(wanted) => match text.char_indices().nth(wanted) {
            Some((end, _)) => (end, 0),
            None => (text.len(), wanted - text.chars().count()),
        },
    };
    let text = &text[..end];
    // Spaces behind it; NO PAD has none.
    let missing = if collation.pad_space() { count } else { 0 };
    let points = collation.is_binary();
    let each = if points { 3 } else { 2 };
    let padding = missing.saturating_mul(each);
    // A character weighs no more than its bytes allow, but for the few of several weights, which are counted when they are there.
    if !c.fits(padding, context) {
        return Ok(Value::Null);
    }
    if let Some(mut weights) = collation.weight_bytes(text.as_bytes()) {
        weights
            .extend(std::iter::repeat_n(b' ', missing).flat_map(|_| collation.weight_bytes(b" ").unwrap_or_default()));
        return Ok(if c.fits(weights.len(), context) { Value::Bytes(weights) } else { Value::Null });
    }
    let limit = context.max_allowed_packet;
    let mut out = Vec::new();
    let mut push = |weight: &[u8]| {
        // What is beyond the limit is not kept: the result is NULL then.
        if out.len() <= limit {
            out.extend_from_slice(weight);
        }
    };
    if points {
        let characters = text.chars().chain(std::iter::repeat_n(' ', missing));
        context.budget.memory.while_it_may(characters, |characters| {
            characters.for_each(|character| push(&u32::from(character).to_be_bytes()[1..]));
        })?;
    } else {
        let padded = if missing == 0 { Cow::Borrowed(text) } else { Cow::Owned(format!("{text}{:missing$}", "")) };
        let weights = collation.weights(padded.as_bytes());
        context.budget.memory.while_it_may(weights, |weights| weights.for_each(|w| push(&w.to_be_bytes())))?;
    }
    Ok(if c.fits(out.len(), context) { Value::Bytes(out) } else { Value::Null })
}
