//! Dates and times from text, in all of MySQL's spellings.
//!
//! The two readers follow `str_to_datetime` and `str_to_time` of MySQL's `my_time.cc`. A date and time is either all digits
//! (`20240131`, `240131235959.5`, `20240131T235959`) or parts between any punctuation (`2024-1-31 3:4:5`, `24^1^31@3*4*5`). A time is `[days ]hh:mm[:ss]`, `hhmmss`, or a whole
//! date and time. Seven digits of a second and more are read; the seventh decides the rounding.

use super::number::PIVOT_YEAR;
use super::{Date, DateFlags, DateTime, MICROS_PER_SECOND, TemporalError, Time, check_date};

/// A date, or date and time, read from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedDateTime {
    /// Cut off after six digits of the second.
    pub value: DateTime,
    /// Year, month and day only.
    pub date_only: bool,
    /// Digits of the fraction that stood there, at most 6: the type of a literal.
    pub fraction_digits: u8,
    /// A seventh digit of the fraction is 5 or more.
    pub round_up: bool,
    /// Something other than spaces follows: 1292 in strict mode, else a warning.
    pub truncated: bool,
    /// Seconds east of UTC, from a suffix such as `+05:30`. The value is in that zone, not in the session's.
    pub offset: Option<i32>,
}

/// A time read from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedTime {
    /// Cut off after six digits of the second, clipped to ±838:59:59.
    pub value: Time,
    pub fraction_digits: u8,
    /// A seventh digit of the fraction is 5 or more.
    pub round_up: bool,
    /// Something other than spaces follows.
    pub truncated: bool,
    /// The value was clipped.
    pub out_of_range: bool,
    /// The text was a whole date and time; this is its date.
    pub date: Option<Date>,
}

impl ParsedDateTime {
    /// The value with `fsp` digits of the second, rounded (`None` beyond the year 9999), or cut off under TIME_TRUNCATE_FRACTIONAL.
    pub fn to_precision(&self, fsp: u8, truncate: bool) -> Option<DateTime> {
        if truncate {
            return Some(self.value.truncated(fsp));
        }
        let value = if self.round_up { self.value.add_micros(1)? } else { self.value };
        value.rounded(fsp)
    }
}

impl ParsedTime {
    /// The value with `fsp` digits of the second, rounded or cut off.
    pub fn to_precision(&self, fsp: u8, truncate: bool) -> Time {
        if truncate {
            return self.value.truncated(fsp);
        }
        let up = if self.round_up { if self.value.is_negative() { -1 } else { 1 } } else { 0 };
        Time::clipped(self.value.micros() + up).rounded(fsp)
    }
}

fn is_space(byte: u8) -> bool {
    byte == b' ' || (9..=13).contains(&byte)
}

/// Position of the date's and time's parts in an array.
const YEAR: usize = 0;
const DAY: usize = 2;
const SECOND: usize = 5;
const FRACTION: usize = 6;

/// Reads a DATE, DATETIME or TIMESTAMP. `flags` decide about zero dates and 31 February.
pub fn parse_date_time(text: &[u8], flags: DateFlags) -> Result<ParsedDateTime, TemporalError> {
    let mut at = text.iter().take_while(|b| is_space(**b)).count();
    if !text.get(at).is_some_and(u8::is_ascii_digit) {
        return Err(TemporalError::Malformed);
    }
    let digits = text[at..].iter().take_while(|b| b.is_ascii_digit() || **b == b'T').count();
    let compact = matches!(text.get(at + digits), None | Some(b'.'));
    let mut year_length = if digits == 4 || digits == 8 || digits >= 14 { 4 } else { 2 };
    let mut field_length = year_length;

    let mut parts = [0u32; 7];
    let mut lengths = [0usize; 7];
    let mut count = 0;
    let mut not_zero = false;
    // Behind the last part; delimiters after it are not garbage while a part follows.
    let mut end = at;
    while count < parts.len() && text.get(at).is_some_and(u8::is_ascii_digit) {
        let i = count;
        let start = at;
        let mut value = 0u32;
        let until_delimiter = !compact && i != FRACTION;
        while let Some(digit) = text.get(at).filter(|b| b.is_ascii_digit())
            && (until_delimiter || at - start < field_length)
        {
            value = value * 10 + u32::from(digit - b'0');
            at += 1;
            if value > 999_999 {
                return Err(TemporalError::Malformed);
            }
        }
        parts[i] = value;
        lengths[i] = at - start;
        not_zero |= value != 0;
        field_length = 2;
        end = at;
        count += 1;
        let Some(&next) = text.get(at) else { break };
        if i == DAY && next == b'T' {
            at += 1;
            continue;
        }
        if i == SECOND {
            if next == b'.' {
                at += 1;
                end = at;
                field_length = 6;
                continue;
            }
            break;
        }
        if i == FRACTION {
            break;
        }
        while let Some(byte) = text.get(at)
            && (byte.is_ascii_punctuation() || is_space(*byte) && i == DAY)
        {
            at += 1;
        }
        end = at;
    }
    at = end;
    if !compact {
        year_length = lengths[YEAR];
    }
    let fraction_digits = lengths[FRACTION];
    let micros = parts[FRACTION] * 10u32.pow(6 - fraction_digits as u32);
    if year_length == 2 && not_zero {
        parts[YEAR] += if i64::from(parts[YEAR]) < PIVOT_YEAR { 2000 } else { 1900 };
    }
    let [year, month, day, hour, minute, second, _] = parts;
    if count < 3 || year > 9999 || month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 {
        let only_spaces = text[at..].iter().all(|b| is_space(*b));
        return Err(match (not_zero, only_spaces) {
            (false, true) => TemporalError::ZeroDate,
            _ if count < 3 => TemporalError::Malformed,
            _ => TemporalError::OutOfRange,
        });
    }
    let date = Date::from_parts(year as u16, month as u8, day as u8);
    check_date(date, not_zero, flags)?;

    let mut round_up = false;
    if fraction_digits == 6 && text.get(at).is_some_and(u8::is_ascii_digit) {
        round_up = text[at] >= b'5';
        at += text[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    }
    let date_only = count <= 3;
    let mut offset = None;
    if !date_only && matches!(text.get(at), Some(b'+' | b'-')) {
        offset = zone_offset(&text[at..]);
        if offset.is_some() {
            at = text.len();
        }
    }
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    Ok(ParsedDateTime {
        value: DateTime::new(date, seconds * MICROS_PER_SECOND + i64::from(micros)),
        date_only,
        fraction_digits: fraction_digits as u8,
        round_up,
        truncated: !text[at..].iter().all(|b| is_space(*b)),
        offset,
    })
}

/// `+hh:mm` or `-hh:mm`, at most 14 hours, at the end of the text; `-00:00` is none.
fn zone_offset(text: &[u8]) -> Option<i32> {
    let [sign, a, b, b':', c, d] = *text else { return None };
    if ![a, b, c, d].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |tens: u8, ones: u8| i32::from(tens - b'0') * 10 + i32::from(ones - b'0');
    let (hours, minutes) = (number(a, b), number(c, d));
    let seconds = hours * 3600 + minutes * 60;
    if minutes > 59 || seconds > 14 * 3600 || (sign == b'-' && seconds == 0) {
        return None;
    }
    Some(if sign == b'-' { -seconds } else { seconds })
}

/// Reads a TIME.
pub fn parse_time(text: &[u8]) -> Result<ParsedTime, TemporalError> {
    let mut at = text.iter().take_while(|b| is_space(**b)).count();
    let negative = text.get(at) == Some(&b'-');
    if negative {
        at += 1;
    }
    let text = &text[at..];
    if text.is_empty() {
        return Err(TemporalError::Malformed);
    }
    // Long enough for a whole date and time with a delimited time of day or all digits.
    if text.len() >= 12
        && let Ok(parsed) = parse_date_time(text, DateFlags::default())
        && !parsed.date_only
        && (text.iter().take_while(|b| b.is_ascii_digit()).count() >= 12
            || text.iter().any(|b| is_space(*b) || *b == b'T'))
        && !looks_like_days(text)
    {
        return Ok(ParsedTime {
            value: parsed.value.time(),
            fraction_digits: parsed.fraction_digits,
            round_up: parsed.round_up,
            truncated: parsed.truncated,
            out_of_range: false,
            date: Some(parsed.value.date()),
        });
    }
    at = 0;
    let number = |at: &mut usize| {
        let mut value = 0u64;
        while let Some(digit) = text.get(*at).filter(|b| b.is_ascii_digit()) {
            value = value.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
            *at += 1;
        }
        value
    };
    let digit_at = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let first = number(&mut at);
    if first > u32::MAX.into() {
        return Err(TemporalError::Malformed);
    }
    let days_end = at;
    at += text[at..].iter().take_while(|b| is_space(**b)).count();
    // days, hours, minutes, seconds
    let mut parts = [0u64; 4];
    let mut state = 4;
    if text.len() - at > 1 && at != days_end && digit_at(at) {
        parts[0] = first;
        state = 1;
    } else if days_end > 0 && text.get(at) == Some(&b':') && digit_at(at + 1) {
        parts[1] = first;
        state = 2;
        at += 1;
    } else {
        at = days_end;
        parts = [0, first / 10_000, first / 100 % 100, first % 100];
    }
    while state < 4 {
        parts[state] = number(&mut at);
        state += 1;
        if state == 4 || text.get(at) != Some(&b':') || !digit_at(at + 1) {
            break;
        }
        at += 1;
    }
    let (mut micros, mut fraction_digits, mut round_up) = (0u32, 0u8, false);
    if text.get(at) == Some(&b'.') && (digit_at(at + 1) || at + 1 == text.len()) {
        at += 1;
        while let Some(digit) = text.get(at).filter(|b| b.is_ascii_digit()) {
            if fraction_digits < 6 {
                micros = micros * 10 + u32::from(digit - b'0');
                fraction_digits += 1;
            } else if !round_up && text[at - 1].is_ascii_digit() && at_seventh(text, at) {
                round_up = *digit >= b'5';
            }
            at += 1;
        }
        micros *= 10u32.pow(6 - u32::from(fraction_digits));
    }
    let exponent_follows = matches!(text.get(at), Some(b'e' | b'E'))
        && (digit_at(at + 1) || matches!(text.get(at + 1), Some(b'+' | b'-')) && digit_at(at + 2));
    if exponent_follows || parts.iter().any(|part| *part > u32::MAX.into()) {
        return Err(TemporalError::Malformed);
    }
    let [days, hours, minutes, seconds] = parts;
    if minutes > 59 || seconds > 59 {
        return Err(TemporalError::OutOfRange);
    }
    let truncated = !text[at..].iter().all(|b| is_space(*b));
    if truncated && at == 0 {
        return Err(TemporalError::Malformed);
    }
    let total = ((days * 24 + hours) * 3600 + minutes * 60 + seconds) as i128 * i128::from(MICROS_PER_SECOND)
        + i128::from(micros);
    let out_of_range = total > i128::from(Time::MAX.micros());
    let value = Time::clipped(total.min(i64::MAX.into()) as i64);
    Ok(ParsedTime {
        value: if negative { Time::clipped(-value.micros()) } else { value },
        fraction_digits,
        round_up: round_up && !out_of_range,
        truncated,
        out_of_range,
        date: None,
    })
}

/// Whether the digit at `at` is the seventh behind the point.
fn at_seventh(text: &[u8], at: usize) -> bool {
    at >= 7 && text[at - 7] == b'.'
}

/// `D hh:mm:ss…`: the first delimiter is a space, so it is days and a time, not a date.
fn looks_like_days(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    text.get(digits).is_some_and(|b| is_space(*b))
}
