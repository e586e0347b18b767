//! From conditions to keys: what an access path reads, for the parameters and outer row of this execution.
//!
//! A value is first *placed* among the values of its column: it is one of them, lies between two, or covers several (a local time that occurs twice).
//! So `int_column < 3.5` reads up to 3, `= 3.5` reads nothing, and a constant beyond the type's range gives all or nothing. Conversions never lose
//! rows: where a place ([`crate::physical::place`]) is not known, the part is not bounded, and the filters that the planner kept decide.
//!
//! Ranges are byte strings, low end included, high end excluded; sorted, without overlap, so that several of them give rows in index order and none twice.

use super::row::Joined;
use crate::expr::{Context, Expr};
use crate::physical::model::{IndexAccess, KeyCondition, KeyValue, RangePart};
use crate::physical::place::{Place, place};
use rauk_types::key::prefix_successor;
use rauk_types::{KeyPart, MysqlError, Value, ValueRef};

/// A range of keys: low end included, high end excluded (`None`: no end).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub low: Vec<u8>,
    pub high: Option<Vec<u8>>,
}

impl KeyRange {
    /// Every key that begins with `prefix`.
    fn prefix(prefix: Vec<u8>) -> KeyRange {
        let high = successor(&prefix);
        KeyRange { low: prefix, high }
    }
}

/// The end of the keys that begin with `key`.
pub(crate) fn successor(key: &[u8]) -> Option<Vec<u8>> {
    let mut key = key.to_vec();
    prefix_successor(&mut key).then_some(key)
}

/// The whole keys that a lookup touches.
pub(crate) enum Points {
    /// Sorted, each once.
    Keys(Vec<Vec<u8>>),
    /// Some value has no exact key: read ranges of keys and let the filters decide.
    Unknown,
}

fn evaluate(expr: &Expr, row: &Joined<'_>, context: &mut Context) -> Result<Value, MysqlError> {
    expr.eval(row, context)
}

/// Appends the key of a lookup with one value a part to `out`.
pub(crate) fn single_key(
    access: &IndexAccess,
    row: &Joined<'_>,
    context: &mut Context,
    out: &mut Vec<u8>,
) -> Result<SingleKey, MysqlError> {
    for (part, equal) in access.key_def.parts.iter().zip(&access.condition.equal) {
        let (KeyValue::Value(expr) | KeyValue::NullSafe(expr)) = &equal.values[0] else {
            return Ok(SingleKey::Nothing);
        };
        match place(evaluate(expr, row, context)?, &part.ty, row.zone) {
            Place::Exact(value) => part.encode(value.as_ref(), out),
            Place::Null | Place::Gap { .. } => return Ok(SingleKey::Nothing),
            Place::Fuzzy { .. } | Place::Unknown => return Ok(SingleKey::Unknown),
        }
    }
    Ok(SingleKey::Key)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SingleKey {
    Key,
    Nothing,
    Unknown,
}

/// Whether a condition fixes leading parts by one value each, and asks for nothing else.
fn is_one_prefix(condition: &KeyCondition) -> bool {
    let plain = condition.tuples.is_none() && condition.range.is_none() && condition.any.is_empty();
    plain && condition.equal.iter().all(|part| part.values.len() == 1)
}

/// The range of a condition that is one: its low end, and its high end, which is empty where there is none.
pub(crate) fn single_range(
    access: &IndexAccess,
    row: &Joined<'_>,
    context: &mut Context,
    low: &mut Vec<u8>,
    high: &mut Vec<u8>,
) -> Result<SingleKey, MysqlError> {
    let parts = &access.key_def.parts;
    if !is_one_prefix(&access.condition) {
        let mut ranges = condition_ranges(parts, &access.condition, row, context)?.into_iter();
        return Ok(match (ranges.next(), ranges.next()) {
            (None, _) => SingleKey::Nothing,
            (Some(range), None) => {
                *low = range.low;
                *high = range.high.unwrap_or_default();
                SingleKey::Key
            }
            _ => SingleKey::Unknown,
        });
    }
    for (part, equal) in parts.iter().zip(&access.condition.equal) {
        let (expr, null_safe) = match &equal.values[0] {
            KeyValue::Value(expr) => (expr, false),
            KeyValue::NullSafe(expr) => (expr, true),
            KeyValue::Null if part.nullable => {
                part.encode(ValueRef::Null, low);
                continue;
            }
            KeyValue::Null => return Ok(SingleKey::Nothing),
        };
        match place(evaluate(expr, row, context)?, &part.ty, row.zone) {
            Place::Exact(value) => part.encode(value.as_ref(), low),
            Place::Null if null_safe && part.nullable => part.encode(ValueRef::Null, low),
            Place::Null | Place::Gap { .. } => return Ok(SingleKey::Nothing),
            Place::Fuzzy { .. } | Place::Unknown => return Ok(SingleKey::Unknown),
        }
    }
    high.clear();
    high.extend_from_slice(low);
    if !prefix_successor(high) {
        high.clear();
    }
    Ok(SingleKey::Key)
}

/// The keys of a lookup.
pub(crate) fn points(access: &IndexAccess, row: &Joined<'_>, context: &mut Context) -> Result<Points, MysqlError> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let parts = &access.key_def.parts;
    if let Some(tuples) = &access.condition.tuples {
        'tuples: for tuple in tuples {
            let mut key = Vec::new();
            for (part, value) in parts.iter().zip(tuple) {
                let KeyValue::Value(expr) = value else { return Ok(Points::Unknown) };
                match place(evaluate(expr, row, context)?, &part.ty, row.zone) {
                    Place::Exact(value) => part.encode(value.as_ref(), &mut key),
                    Place::Null | Place::Gap { .. } => continue 'tuples,
                    Place::Fuzzy { .. } | Place::Unknown => return Ok(Points::Unknown),
                }
            }
            keys.push(key);
        }
    } else {
        keys.push(Vec::new());
        for (part, equal) in parts.iter().zip(&access.condition.equal) {
            let mut next = Vec::with_capacity(keys.len() * equal.values.len());
            for value in &equal.values {
                let (KeyValue::Value(expr) | KeyValue::NullSafe(expr)) = value else { continue };
                match place(evaluate(expr, row, context)?, &part.ty, row.zone) {
                    Place::Exact(value) => {
                        let mut encoded = Vec::new();
                        part.encode(value.as_ref(), &mut encoded);
                        next.extend(keys.iter().map(|k| [k.as_slice(), &encoded].concat()));
                    }
                    Place::Null | Place::Gap { .. } => {}
                    Place::Fuzzy { .. } | Place::Unknown => return Ok(Points::Unknown),
                }
            }
            keys = next;
        }
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(Points::Keys(keys))
}

/// The ranges of an index that a scan reads, in index order.
pub(crate) fn ranges(
    access: &IndexAccess,
    row: &Joined<'_>,
    context: &mut Context,
) -> Result<Vec<KeyRange>, MysqlError> {
    if is_one_prefix(&access.condition) {
        let (mut low, mut high) = (Vec::with_capacity(40), Vec::with_capacity(40));
        match single_range(access, row, context, &mut low, &mut high)? {
            SingleKey::Key => return Ok(vec![KeyRange { low, high: (!high.is_empty()).then_some(high) }]),
            SingleKey::Nothing => return Ok(Vec::new()),
            SingleKey::Unknown => {}
        }
    }
    condition_ranges(&access.key_def.parts, &access.condition, row, context)
}

/// The keys that meet a condition on the parts.
pub(crate) fn condition_ranges(
    parts: &[KeyPart],
    condition: &KeyCondition,
    row: &Joined<'_>,
    context: &mut Context,
) -> Result<Vec<KeyRange>, MysqlError> {
    let mut out = plain_ranges(parts, condition, row, context)?;
    for any in &condition.any {
        if out.is_empty() {
            break;
        }
        let mut united = Vec::with_capacity(any.len());
        for alternative in any {
            united.extend(condition_ranges(parts, alternative, row, context)?);
        }
        out = intersect(&out, &merge(united));
    }
    Ok(out)
}

/// The same without its alternatives.
fn plain_ranges(
    parts: &[KeyPart],
    condition: &KeyCondition,
    row: &Joined<'_>,
    context: &mut Context,
) -> Result<Vec<KeyRange>, MysqlError> {
    let mut out = Vec::new();
    let mut prefixes = vec![Vec::new()];
    if let Some(tuples) = &condition.tuples {
        prefixes.clear();
        'tuples: for tuple in tuples {
            let mut prefix = Vec::new();
            for (part, value) in parts.iter().zip(tuple) {
                let bounds = part_value(part, value, row, context)?;
                match bounds {
                    Bounds::Point(encoded) => prefix.extend_from_slice(&encoded),
                    Bounds::Empty => continue 'tuples,
                    Bounds::Range(low, high) => {
                        out.push(join_range(&prefix, low, high));
                        continue 'tuples;
                    }
                }
            }
            prefixes.push(prefix);
        }
    } else {
        for (part, equal) in parts.iter().zip(&condition.equal) {
            let mut bounds = Vec::with_capacity(equal.values.len());
            for value in &equal.values {
                bounds.push(part_value(part, value, row, context)?);
            }
            if bounds.iter().any(|b| matches!(b, Bounds::Range(..))) {
                // Not exact: nothing behind this part can be used.
                for prefix in &prefixes {
                    for bound in &bounds {
                        match bound {
                            Bounds::Point(encoded) => {
                                out.push(KeyRange::prefix([prefix.as_slice(), encoded].concat()));
                            }
                            Bounds::Range(low, high) => {
                                out.push(join_range(prefix, low.clone(), high.clone()));
                            }
                            Bounds::Empty => {}
                        }
                    }
                }
                return Ok(merge(out));
            }
            let mut next = Vec::with_capacity(prefixes.len() * bounds.len());
            for prefix in &prefixes {
                for bound in &bounds {
                    if let Bounds::Point(encoded) = bound {
                        next.push([prefix.as_slice(), encoded].concat());
                    }
                }
            }
            prefixes = next;
        }
    }
    match &condition.range {
        Some(range) if !prefixes.is_empty() => {
            let part = &parts[condition.fixed_parts()];
            match part_range(part, range, row, context)? {
                Bounds::Empty => {}
                Bounds::Point(encoded) => {
                    out.extend(prefixes.iter().map(|p| KeyRange::prefix([p.as_slice(), &encoded].concat())))
                }
                Bounds::Range(low, high) => {
                    out.extend(prefixes.iter().map(|p| join_range(p, low.clone(), high.clone())));
                }
            }
        }
        _ => out.extend(prefixes.into_iter().map(KeyRange::prefix)),
    }
    Ok(merge(out))
}

/// Sorts, and joins what overlaps or touches.
fn merge(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.retain(|r| r.high.as_ref().is_none_or(|h| r.low < *h));
    if ranges.len() < 2 {
        return ranges;
    }
    ranges.sort_unstable_by(|a, b| a.low.cmp(&b.low));
    let mut out: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.high.as_ref().is_none_or(|h| range.low <= *h) => {
                if let Some(high) = &last.high
                    && range.high.as_ref().is_none_or(|h| h > high)
                {
                    last.high = range.high;
                }
            }
            _ => out.push(range),
        }
    }
    out
}

/// What two sorted lists of ranges have in common.
fn intersect(left: &[KeyRange], right: &[KeyRange]) -> Vec<KeyRange> {
    let mut out = Vec::with_capacity(left.len().max(right.len()));
    let (mut l, mut r) = (0, 0);
    while let (Some(a), Some(b)) = (left.get(l), right.get(r)) {
        let low = (&a.low).max(&b.low);
        let high = min_end(a.high.as_ref(), b.high.as_ref());
        if high.is_none_or(|high| low < high) {
            out.push(KeyRange { low: low.clone(), high: high.cloned() });
        }
        // The one that ends first has nothing in common with what follows.
        match high.is_some() && a.high.as_ref() == high {
            true => l += 1,
            false => r += 1,
        }
    }
    out
}

/// What a part is bounded to, as encoded bytes of this part alone.
enum Bounds {
    Empty,
    Point(Vec<u8>),
    /// Low included, high excluded; `None`: the end of the part's values.
    Range(Vec<u8>, Option<Vec<u8>>),
}

/// Puts the bounds of a part behind a prefix.
fn join_range(prefix: &[u8], low: Vec<u8>, high: Option<Vec<u8>>) -> KeyRange {
    KeyRange {
        low: [prefix, &low].concat(),
        high: match high {
            Some(high) => Some([prefix, &high].concat()),
            None => successor(prefix),
        },
    }
}

fn encode(part: &KeyPart, value: ValueRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    part.encode(value, &mut out);
    out
}

/// All values of a part but NULL.
fn not_null(part: &KeyPart) -> (Vec<u8>, Option<Vec<u8>>) {
    if !part.nullable {
        return (Vec::new(), None);
    }
    let null = encode(part, ValueRef::Null);
    if part.descending { (Vec::new(), Some(null)) } else { (successor(&null).unwrap_or_default(), None) }
}

fn part_value(part: &KeyPart, value: &KeyValue, row: &Joined<'_>, context: &mut Context) -> Result<Bounds, MysqlError> {
    let (expr, null_safe) = match value {
        KeyValue::Value(expr) => (expr, false),
        KeyValue::NullSafe(expr) => (expr, true),
        KeyValue::Null => {
            return Ok(if part.nullable { Bounds::Point(encode(part, ValueRef::Null)) } else { Bounds::Empty });
        }
    };
    Ok(match place(evaluate(expr, row, context)?, &part.ty, row.zone) {
        Place::Exact(value) => Bounds::Point(encode(part, value.as_ref())),
        Place::Null if null_safe && part.nullable => Bounds::Point(encode(part, ValueRef::Null)),
        Place::Null | Place::Gap { .. } => Bounds::Empty,
        Place::Fuzzy { low, high } => between(part, Some((low, true)), Some((high, true))),
        Place::Unknown => {
            let (low, high) = not_null(part);
            Bounds::Range(low, high)
        }
    })
}

/// Bounds in the column's values become bounds in bytes.
fn between(part: &KeyPart, low: Option<(Value, bool)>, high: Option<(Value, bool)>) -> Bounds {
    let inclusive = |inclusive: bool| inclusive || part.prefix.is_some();
    let (mut from, mut to) = not_null(part);
    // A descending part turns the ends around.
    let (first, last) = if part.descending { (high, low) } else { (low, high) };
    if let Some((value, included)) = first {
        let key = encode(part, value.as_ref());
        from = match inclusive(included) {
            true => key,
            false => match successor(&key) {
                Some(next) => next,
                None => return Bounds::Empty,
            },
        };
    }
    if let Some((value, included)) = last {
        let key = encode(part, value.as_ref());
        to = if inclusive(included) { successor(&key) } else { Some(key) };
    }
    if to.as_ref().is_some_and(|to| *to <= from) {
        return Bounds::Empty;
    }
    Bounds::Range(from, to)
}

fn part_range(
    part: &KeyPart,
    range: &RangePart,
    row: &Joined<'_>,
    context: &mut Context,
) -> Result<Bounds, MysqlError> {
    let (mut from, mut to) = not_null(part);
    let mut narrow = |bounds: Bounds| -> bool {
        match bounds {
            Bounds::Empty => return false,
            Bounds::Point(key) => {
                to = min_end(to.take(), successor(&key));
                from = std::mem::take(&mut from).max(key);
            }
            Bounds::Range(low, high) => {
                from = std::mem::take(&mut from).max(low);
                to = min_end(to.take(), high);
            }
        }
        true
    };
    for (expr, inclusive) in &range.low {
        let bounds = match place(evaluate(expr, row, context)?, &part.ty, row.zone) {
            Place::Null => Bounds::Empty,
            Place::Exact(value) => between(part, Some((value, *inclusive)), None),
            Place::Gap { below: Some(below) } => between(part, Some((below, false)), None),
            Place::Fuzzy { low, .. } => between(part, Some((low, true)), None),
            Place::Gap { below: None } | Place::Unknown => continue,
        };
        if !narrow(bounds) {
            return Ok(Bounds::Empty);
        }
    }
    for (expr, inclusive) in &range.high {
        let bounds = match place(evaluate(expr, row, context)?, &part.ty, row.zone) {
            Place::Null | Place::Gap { below: None } => Bounds::Empty,
            Place::Exact(value) => between(part, None, Some((value, *inclusive))),
            Place::Gap { below: Some(below) } => between(part, None, Some((below, true))),
            Place::Fuzzy { high, .. } => between(part, None, Some((high, true))),
            Place::Unknown => continue,
        };
        if !narrow(bounds) {
            return Ok(Bounds::Empty);
        }
    }
    for (pattern, escape) in &range.like {
        let value = evaluate(pattern, row, context)?;
        let Some(bytes) = value.as_ref().as_bytes() else {
            if value.is_null() {
                return Ok(Bounds::Empty);
            }
            continue;
        };
        if let Some((low, high)) = like_range(part, bytes, *escape)
            && !narrow(Bounds::Range(low, high))
        {
            return Ok(Bounds::Empty);
        }
    }
    Ok(match &to {
        Some(end) if *end <= from => Bounds::Empty,
        _ => Bounds::Range(from, to),
    })
}

/// The first of two ends.
fn min_end<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The keys of all strings that begin as a pattern does before its first wildcard.
fn like_range(part: &KeyPart, pattern: &[u8], escape: Option<char>) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let mut characters = std::str::from_utf8(pattern).ok()?.chars().peekable();
    let mut text = String::new();
    while let Some(character) = characters.next() {
        match character {
            _ if Some(character) == escape && characters.peek().is_some() => text.extend(characters.next()),
            '%' | '_' => break,
            _ => text.push(character),
        }
    }
    if text.is_empty() {
        return None;
    }
    let mut low = Vec::new();
    part.encode_like_prefix(&text, &mut low);
    let high = successor(&low);
    Some((low, high))
}
