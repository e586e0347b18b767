//! REGEXP_INSTR, REGEXP_SUBSTR, REGEXP_REPLACE, and REGEXP_LIKE with a match type.
//!
//! Positions count characters from 1. The pattern's engine takes time linear in the text ([`RegexpPattern`]). In a replacement `$1` is what the first
//! group matched and `\` takes the next character as it is, as ICU has it. The pattern that a thread used last is kept compiled.

use super::string::char_count;
use super::{Call, Derived, Function, Typing, rules};
use crate::expr::Context;
use crate::expr::convert::Result;
use crate::expr::pattern::{RegexpFlags, RegexpPattern};
use crate::expr::types::{self, Class};
use rauk_types::error::codes;
use rauk_types::{Collation, MysqlError, Value};
use std::cell::RefCell;

pub const FUNCTIONS: &[Function] = &[
    Function::new("REGEXP_LIKE", 2, 3, rules::compared, like).unbounded(),
    Function::new("REGEXP_INSTR", 2, 6, rules::compared, instr).unbounded(),
    Function::new("REGEXP_SUBSTR", 2, 5, substr_type, substr).unbounded(),
    Function::new("REGEXP_REPLACE", 3, 6, replace_type, replace).unbounded(),
];

/// ER_REGEXP_INDEX_OUTOFBOUNDS_ERROR.
const OUT_OF_BOUNDS: u16 = 3686;

/// Characters of a result whose length is not known.
const LONG: u64 = 1 << 24;

fn substr_type(mut t: Typing<'_>) -> Result<Derived> {
    Ok(t.compared_text(0..2, t.length(0))?.nullable())
}

fn replace_type(mut t: Typing<'_>) -> Result<Derived> {
    t.compared_text(0..3, LONG)
}

fn out_of_bounds() -> MysqlError {
    MysqlError::new(OUT_OF_BOUNDS, "Index out of bounds in regular expression search.")
}

thread_local! {
    static LAST: RefCell<Option<(String, RegexpFlags, RegexpPattern)>> = const { RefCell::new(None) };
}

/// The compiled pattern of a call, whose match type, if any, is the argument at `match_type`.
fn pattern(c: &Call<'_, '_>, match_type: usize) -> Result<RegexpPattern> {
    let strings = c.arguments[..2].iter().filter(|e| Class::of(&e.ty).is_string());
    let collation = types::aggregate_collations(strings, "", Collation::DEFAULT).map_or(Collation::DEFAULT, |c| c.0);
    let mut flags = RegexpFlags { case_insensitive: !collation.is_case_sensitive(), ..RegexpFlags::default() };
    if c.has(match_type) {
        for letter in c.text(match_type).chars() {
            match letter {
                'c' => flags.case_insensitive = false,
                'i' => flags.case_insensitive = true,
                'm' => flags.multi_line = true,
                'n' => flags.dot_matches_new_line = true,
                // Lines end with a line feed alone here in any case.
                'u' => {}
                _ => {
                    let message = format!("Incorrect arguments to {}", c.name.to_ascii_lowercase());
                    return Err(MysqlError::new(codes::WRONG_ARGUMENTS, message));
                }
            }
        }
    }
    let text = c.text(1);
    LAST.with_borrow_mut(|last| match last {
        Some((known, with, compiled)) if *known == *text && *with == flags => Ok(compiled.clone()),
        _ => {
            let compiled = RegexpPattern::with_flags(&text, flags)?;
            *last = Some((text.into_owned(), flags, compiled.clone()));
            Ok(compiled)
        }
    })
}

/// Where the character at the position that an argument says begins; the text's first without the argument.
fn start(c: &Call<'_, '_>, text: &str, argument: usize, context: &mut Context) -> Result<usize> {
    if !c.has(argument) {
        return Ok(0);
    }
    let position = c.int(argument, context)?;
    let before = usize::try_from(position).ok().and_then(|p| p.checked_sub(1)).ok_or_else(out_of_bounds)?;
    match text.char_indices().nth(before) {
        Some((at, _)) => Ok(at),
        None if before == text.chars().count() => Ok(text.len()),
        None => Err(out_of_bounds()),
    }
}

/// Which match is meant, from 1.
fn occurrence(c: &Call<'_, '_>, argument: usize, context: &mut Context) -> Result<usize> {
    let number = if c.has(argument) { c.int(argument, context)? } else { 1 };
    Ok(usize::try_from(number).unwrap_or(1).max(1))
}

fn like(c: &Call<'_, '_>, _: &mut Context) -> Result<Value> {
    let text = c.text(0);
    Ok(Value::Int(pattern(c, 2)?.on(&text)?.is_match(&text).into()))
}

/// The bytes of the match that is meant.
fn found(
    c: &Call<'_, '_>,
    text: &str,
    match_type: usize,
    context: &mut Context,
) -> Result<Option<std::ops::Range<usize>>> {
    let pattern = pattern(c, match_type)?;
    let regex = pattern.on(text)?;
    let start = start(c, text, 2, context)?;
    let wanted = occurrence(c, 3, context)?;
    let rest = &text[start..];
    let found = context.budget.memory.while_it_may(regex.find_iter(rest), |mut all| all.nth(wanted - 1))?;
    Ok(found.map(|found| start + found.start()..start + found.end()))
}

fn instr(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let text = c.text(0);
    let behind = if c.has(4) { c.int(4, context)? } else { 0 };
    if !matches!(behind, 0 | 1) {
        return Err(MysqlError::new(
            codes::WRONG_ARGUMENTS,
            "Incorrect arguments to regexp_instr: return_option must be 1 or 0.",
        ));
    }
    let found = found(c, &text, 5, context)?;
    let at = found.map(|found| if behind == 1 { found.end } else { found.start });
    Ok(Value::Int(at.map_or(0, |at| char_count(&text.as_bytes()[..at], false) as i64 + 1)))
}

fn substr(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let text = c.text(0);
    let found = found(c, &text, 4, context)?;
    Ok(found.map_or(Value::Null, |found| c.string(text.as_bytes()[found].to_vec())))
}

fn replace(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let (text, new) = (c.text(0), c.text(2));
    let pattern = pattern(c, 5)?;
    let regex = pattern.on(&text)?;
    let start = start(c, &text, 3, context)?;
    let wanted = if c.has(4) { c.int(4, context)? } else { 0 };
    let wanted = usize::try_from(wanted).unwrap_or(0);
    let rest = &text[start..];
    let limit = context.max_allowed_packet;
    let memory = context.budget.memory.clone();
    let replaced = memory.while_it_may(regex.captures_iter(rest), |all| {
        let mut out = text[..start].to_string();
        let mut done = 0;
        for (number, captures) in all.enumerate() {
            if wanted > 0 && number + 1 != wanted {
                continue;
            }
            let whole = captures.get(0).expect("a match has itself as its first group");
            out.push_str(&rest[done..whole.start()]);
            expand(&new, &captures, &mut out)?;
            done = whole.end();
            if out.len() > limit || wanted > 0 {
                break;
            }
        }
        out.push_str(&rest[done..]);
        Ok::<_, MysqlError>(out)
    })??;
    if !c.fits(replaced.len(), context) {
        return Ok(Value::Null);
    }
    Ok(c.string(replaced.into_bytes()))
}

/// A replacement with its groups. Error 3686 for a group that the pattern has not.
fn expand(new: &str, captures: &regex::Captures<'_>, out: &mut String) -> Result<()> {
    let mut characters = new.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => out.extend(characters.next()),
            '$' => {
                // As many digits as there are groups.
                let mut group = None;
                while let Some(digit) = characters.peek().and_then(|c| c.to_digit(10)) {
                    let longer = group.unwrap_or(0) * 10 + digit as usize;
                    if group.is_some() && longer >= captures.len() {
                        break;
                    }
                    group = Some(longer);
                    characters.next();
                }
                match group {
                    Some(group) if group < captures.len() => {
                        out.push_str(captures.get(group).map_or("", |found| found.as_str()));
                    }
                    _ => return Err(out_of_bounds()),
                }
            }
            character => out.push(character),
        }
    }
    Ok(())
}
