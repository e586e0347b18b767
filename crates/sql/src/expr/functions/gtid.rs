//! Sets of transaction identifiers as texts, and waiting for a replica.
//!
//! A set is `uuid[:tag]:interval[:interval…]`, several of them with commas between. The two functions on sets compute
//! with texts alone. There is no binary log and no replica here: `gtid_mode` is OFF (error 3111), and who waits for a
//! position of a source gets NULL, as on a MySQL server that replicates nothing.

use super::miscellaneous::uuid_bytes;
use super::{Call, Function, rules};
use crate::expr::Context;
use crate::expr::convert::Result;
use rauk_types::error::codes;
use rauk_types::{MysqlError, Value};
use std::collections::BTreeMap;

pub const FUNCTIONS: &[Function] = &[
    Function::new("GTID_SUBSET", 2, 2, rules::integer, subset),
    Function::new("GTID_SUBTRACT", 2, 2, |t| Ok(t.connection_text(t.length(0) + t.length(1))), subtract),
    Function::new("WAIT_FOR_EXECUTED_GTID_SET", 1, 2, rules::integer_or_null, |_, _| {
        let message = "Cannot use WAIT_FOR_EXECUTED_GTID_SET when @@GLOBAL.GTID_MODE = OFF.";
        Err(MysqlError::new(GTID_MODE_OFF, message))
    })
    .impure(),
    Function::new("SOURCE_POS_WAIT", 2, 4, rules::integer_or_null, |c, x| wait(c, "SOURCE_POS_WAIT", x)).impure(),
    Function::new("MASTER_POS_WAIT", 2, 4, rules::integer_or_null, |c, x| {
        let message = "'MASTER_POS_WAIT' is deprecated and will be removed in a future release. Please use \
                       SOURCE_POS_WAIT instead";
        x.warn(DEPRECATED, message.into());
        wait(c, "MASTER_POS_WAIT", x)
    })
    .impure(),
];

/// ER_WARN_DEPRECATED_SYNTAX.
const DEPRECATED: u16 = 1287;
/// ER_MALFORMED_GTID_SET_SPECIFICATION.
const MALFORMED: u16 = 1772;
/// ER_GTID_MODE_OFF.
const GTID_MODE_OFF: u16 = 3111;

/// Characters of a tag.
const TAG_CHARS: usize = 32;

/// Numbers of transactions, ends exclusive: ascending, with gaps between.
type Intervals = Vec<(i64, i64)>;

/// By source and tag; no tag is an empty one. A text has at most as many intervals as half its bytes.
#[derive(Debug, Default, PartialEq)]
struct GtidSet(BTreeMap<([u8; 16], String), Intervals>);

fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number < i64::MAX)
}

fn interval(text: &str) -> Option<(i64, i64)> {
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (number(first.trim())?, number(last.trim())?),
        None => (number(text)?, number(text)?),
    };
    (first > 0).then_some((first, last + 1))
}

fn tag(text: &str) -> Option<String> {
    let mut characters = text.chars();
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    let valid = characters.next().is_some_and(begins) && characters.all(|c| begins(c) || c.is_ascii_digit());
    (valid && text.len() <= TAG_CHARS).then(|| text.to_ascii_lowercase())
}

/// Sorts intervals and joins those that touch.
fn joined(mut intervals: Intervals) -> Intervals {
    intervals.sort_unstable();
    let mut out: Intervals = Vec::with_capacity(intervals.len());
    for (from, to) in intervals {
        match out.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => out.push((from, to)),
        }
    }
    out
}

/// What of `a` is not in `b`.
fn without(a: &[(i64, i64)], b: &[(i64, i64)]) -> Intervals {
    let mut out = Vec::new();
    let mut others = b.iter().peekable();
    for &(mut from, to) in a {
        while let Some(&&(begin, end)) = others.peek().filter(|other| other.0 < to) {
            if begin > from {
                out.push((from, begin));
            }
            from = from.max(end);
            if end > to {
                break;
            }
            others.next();
        }
        if from < to {
            out.push((from, to));
        }
    }
    out
}

/// Error 1772 for a text that is no set.
pub(crate) fn check_set(text: &str) -> Result<()> {
    GtidSet::parse(text).map(|_| ())
}

impl GtidSet {
    /// Error 1772.
    fn parse(text: &str) -> Result<GtidSet> {
        let malformed = || MysqlError::new(MALFORMED, format!("Malformed GTID set specification '{text}'."));
        let mut set = GtidSet::default();
        for piece in text.split(',').map(str::trim).filter(|piece| !piece.is_empty()) {
            let mut parts = piece.split(':').map(str::trim);
            let source = parts.next().filter(|source| !source.starts_with('{')).and_then(uuid_bytes);
            let source = source.ok_or_else(malformed)?;
            let (mut name, mut count) = (String::new(), 0);
            for part in parts {
                if let Some(tag) = tag(part) {
                    (name, count) = (tag, 0);
                    continue;
                }
                let (from, to) = interval(part).ok_or_else(malformed)?;
                count += 1;
                if from < to {
                    set.0.entry((source, name.clone())).or_default().push((from, to));
                }
            }
            if count == 0 {
                return Err(malformed());
            }
        }
        set.0.values_mut().for_each(|intervals| *intervals = joined(std::mem::take(intervals)));
        Ok(set)
    }

    fn minus(&self, other: &GtidSet) -> GtidSet {
        let left = self.0.iter().map(|(source, intervals)| {
            let others = other.0.get(source).map_or(&[][..], Vec::as_slice);
            (source.clone(), without(intervals, others))
        });
        GtidSet(left.filter(|(_, intervals)| !intervals.is_empty()).collect())
    }
}

impl std::fmt::Display for GtidSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut last = None;
        for ((source, tag), intervals) in &self.0 {
            if last != Some(source) {
                let hex: String = source.iter().map(|byte| format!("{byte:02x}")).collect();
                let comma = if last.is_some() { ",\n" } else { "" };
                let (a, b, c) = (&hex[..8], &hex[8..12], &hex[12..16]);
                write!(f, "{comma}{a}-{b}-{c}-{}-{}", &hex[16..20], &hex[20..])?;
            }
            last = Some(source);
            if !tag.is_empty() {
                write!(f, ":{tag}")?;
            }
            for &(from, to) in intervals {
                write!(f, ":{from}")?;
                if to - from > 1 {
                    write!(f, "-{}", to - 1)?;
                }
            }
        }
        Ok(())
    }
}

fn subset(c: &Call<'_, '_>, _: &mut Context) -> Result<Value> {
    let (a, b) = (GtidSet::parse(&c.text(0))?, GtidSet::parse(&c.text(1))?);
    Ok(Value::Int(a.minus(&b).0.is_empty().into()))
}

fn subtract(c: &Call<'_, '_>, _: &mut Context) -> Result<Value> {
    let (a, b) = (GtidSet::parse(&c.text(0))?, GtidSet::parse(&c.text(1))?);
    Ok(Value::Str(a.minus(&b).to_string()))
}

fn wait(c: &Call<'_, '_>, name: &str, context: &mut Context) -> Result<Value> {
    if c.has(2) && c.f64(2, context)? < 0.0 {
        let message = format!("Incorrect arguments to {name}.");
        if context.sql_mode.strict {
            return Err(MysqlError::new(codes::WRONG_ARGUMENTS, message));
        }
        context.warn(codes::WRONG_ARGUMENTS, message);
    }
    Ok(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3E11FA47-71CA-11E1-9E33-C80AA9429562";

    fn minus(a: &str, b: &str) -> String {
        GtidSet::parse(a).unwrap().minus(&GtidSet::parse(b).unwrap()).to_string()
    }

    #[test]
    fn differences() {
        let a = A.to_ascii_lowercase();
        for (left, right, expected) in [
            (":21-57", ":21", ":22-57"),
            (":21-57", ":20-25", ":26-57"),
            (":21-57", ":23-24", ":21-22:25-57"),
            (":1-5:4-9:11", ":3", ":1-2:4-9:11"),
            (":1-3:5-7:9-11", ":2-10", ":1:11"),
            (":1-10", ":2:4:6-7", ":1:3:5:8-10"),
            (":5-3:7", ":1", ":7"),
            (":1-3:x:1-4", ":x:2", ":1-3:x:1:3-4"),
            (":X_1:1", ":1", ":x_1:1"),
        ] {
            let of = |set: &str| format!("{A}{set}");
            assert_eq!(minus(&of(left), &of(right)), format!("{a}{expected}"), "{left} - {right}");
        }
        assert_eq!(minus(&format!("{A}:1-3"), &format!(" {A} : 1 - 3 ,")), "");
        let b = "00000000-71ca-11e1-9e33-c80aa9429562";
        assert_eq!(minus(&format!("{A}:1,{b}:2"), ""), format!("{b}:2,\n{a}:1"));
    }

    #[test]
    fn what_is_no_set() {
        for set in [
            "x",
            ":1",
            A,
            "{A}:",
            "{A}:0",
            "{A}:1-",
            "{A}:-1",
            "{A}:a-b",
            "{A}:x",
            "{A}:1;2",
            "{A}:9223372036854775807",
        ] {
            assert!(GtidSet::parse(&set.replace("{A}", A)).is_err(), "{set}");
        }
        assert!(GtidSet::parse(" , ").is_ok());
    }
}
