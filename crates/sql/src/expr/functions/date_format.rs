//! Dates as text: DATE_FORMAT, TIME_FORMAT, STR_TO_DATE, names of days and months.
//!
//! The language of names is an argument: of DATE_FORMAT one that may be written (MariaDB has it), of DAYNAME and MONTHNAME one that binding adds where
//! `lc_time_names` is not en_US. STR_TO_DATE reads English names, as MySQL does.

use super::locale::{self, Locale};
use super::{Call, Derived, Function, Typing};
use crate::expr::convert::{self, Result};
use crate::expr::{Context, ExprKind};
use rauk_types::datetime::{MICROS_PER_SECOND, WeekMode};
use rauk_types::{DataType, Date, DateTime, Time, TypeKind, Value};
use std::fmt::Write;

pub const FUNCTIONS: &[Function] = &[
    Function::new("DATE_FORMAT", 2, 3, |t| Ok(t.connection_text(t.length(1) * 10).nullable()), date_format)
        .of_statement(),
    Function::new("TIME_FORMAT", 2, 2, |t| Ok(t.connection_text(t.length(1) * 10).nullable()), time_format)
        .of_statement(),
    Function::new("STR_TO_DATE", 2, 2, str_to_date_type, str_to_date).of_statement(),
    Function::new(
        "DAYNAME",
        1,
        1,
        |t| Ok(t.connection_text(NAME_LENGTH).nullable()),
        |c, x| {
            let day = c.date(0, x)?.and_then(Date::weekday);
            let locale = locale_of(c, 1, x);
            Ok(day.map_or(Value::Null, |d| Value::from(locale.days[usize::from(d)])))
        },
    )
    .of_statement(),
    Function::new(
        "MONTHNAME",
        1,
        1,
        |t| Ok(t.connection_text(NAME_LENGTH).nullable()),
        |c, x| {
            let month = c.date(0, x)?.map(Date::month).filter(|m| *m > 0);
            let locale = locale_of(c, 1, x);
            Ok(month.map_or(Value::Null, |m| Value::from(locale.months[usize::from(m) - 1])))
        },
    )
    .of_statement(),
    Function::new(
        "GET_FORMAT",
        2,
        2,
        |t| Ok(t.connection_text(20).nullable()),
        |c, _| Ok(get_format(&c.text(0), &c.text(1)).map_or(Value::Null, Value::from)),
    ),
];

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn get_format(kind: &str, style: &str) -> Option<&'static str> {
    let row = match style.to_ascii_uppercase().as_str() {
        "USA" => ["%m.%d.%Y", "%h:%i:%s %p", "%Y-%m-%d %H.%i.%s"],
        "JIS" => ["%Y-%m-%d", "%H:%i:%s", "%Y-%m-%d %H:%i:%s"],
        "ISO" => ["%Y-%m-%d", "%H:%i:%s", "%Y-%m-%d %H:%i:%s"],
        "EUR" => ["%d.%m.%Y", "%H.%i.%s", "%Y-%m-%d %H.%i.%s"],
        "INTERNAL" => ["%Y%m%d", "%H%i%s", "%Y%m%d%H%i%s"],
        _ => return None,
    };
    Some(match kind {
        "DATE" => row[0],
        "TIME" => row[1],
        _ => row[2],
    })
}

/// Characters of the longest name of a day or month.
const NAME_LENGTH: u64 = 24;

/// ER_UNKNOWN_LOCALE.
const UNKNOWN_LOCALE: u16 = 1649;

/// The locale that an argument names; en_US without one. One that is not known is warning 1649.
pub fn locale_of(c: &Call<'_, '_>, argument: usize, context: &mut Context) -> &'static Locale {
    if !c.has(argument) {
        return locale::usual();
    }
    let name = if c.is_null(argument) { "NULL".into() } else { c.text(argument) };
    locale::find(&name).unwrap_or_else(|| {
        context.warn(UNKNOWN_LOCALE, format!("Unknown locale: '{name}'"));
        locale::usual()
    })
}

fn date_format(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let format_text = c.text(1);
    let locale = locale_of(c, 2, context);
    let Some(date) = c.datetime(0, context)? else { return Ok(Value::Null) };
    let text = format(&format_text, date, date.time(), Some(locale), context.max_allowed_packet);
    Ok(text.map_or(Value::Null, Value::Str))
}

fn time_format(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let Some(time) = c.time(0, context)? else { return Ok(Value::Null) };
    Ok(format(&c.text(1), DateTime::ZERO, time, None, context.max_allowed_packet).map_or(Value::Null, Value::Str))
}

fn ordinal(day: u8) -> &'static str {
    match (day / 10, day % 10) {
        (1, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// The text ends soon when it is longer than `limit`. `None` for an empty format, and for specifiers that a date without a month, or a time alone (`names`
/// is `None`), has no answer to. A negative time has its sign at the beginning, whatever the format.
pub fn format(
    specifiers: &str,
    value: DateTime,
    time: Time,
    names: Option<&'static Locale>,
    limit: usize,
) -> Option<String> {
    if specifiers.is_empty() {
        return None;
    }
    let (date, only_time) = (value.date(), names.is_none());
    let names = names.unwrap_or_else(locale::usual);
    let mut out = String::with_capacity(specifiers.len());
    if time.is_negative() {
        out.push('-');
    }
    let mut chars = specifiers.chars();
    while let Some(c) = chars.next() {
        if out.len() > limit {
            break;
        }
        if c != '%' {
            out.push(c);
            continue;
        }
        let Some(specifier) = chars.next() else {
            out.push('%');
            break;
        };
        let answered = match specifier {
            'D' | 'j' | 'U' | 'u' | 'V' | 'v' | 'X' | 'x' => !only_time,
            'M' | 'b' => date.month() > 0,
            'W' | 'a' | 'w' => date.month() > 0 || date.year() > 0,
            _ => true,
        };
        if !answered {
            return None;
        }
        let _ = specify(specifier, date, time, names, &mut out);
    }
    Some(out)
}

/// The number of a day as MySQL counts, also of dates without a month or a day.
fn day_number(year: u16, month: u8, day: u8) -> i64 {
    if year == 0 && month == 0 {
        return 0;
    }
    let (mut year, month) = (i64::from(year), i64::from(month));
    let mut days = 365 * year + 31 * (month - 1) + i64::from(day);
    if month <= 2 {
        year -= 1;
    } else {
        days -= (month * 4 + 23) / 10;
    }
    days + year / 4 - (year / 100 + 1) * 3 / 4
}

fn specify(specifier: char, date: Date, time: Time, names: &Locale, out: &mut String) -> std::fmt::Result {
    let (year, month, day) = (date.year(), date.month(), date.day());
    let (hour, minute, second) = (time.hours(), time.minutes(), time.seconds());
    let hour12 = (hour % 24 + 11) % 12 + 1;
    let half = if hour % 24 < 12 { "AM" } else { "PM" };
    let number = || day_number(year, month, day);
    // 0 is Monday.
    let weekday = || (number() + 5).rem_euclid(7) as usize;
    let week = |mode: u32| date.week(WeekMode::new(mode)).unwrap_or((0, 0));
    match specifier {
        'Y' => write!(out, "{year:04}"),
        'y' => write!(out, "{:02}", year % 100),
        'm' => write!(out, "{month:02}"),
        'c' => write!(out, "{month}"),
        'd' => write!(out, "{day:02}"),
        'e' => write!(out, "{day}"),
        'D' => write!(out, "{day}{}", ordinal(day)),
        'M' => out.write_str(names.months[usize::from(month) - 1]),
        'b' => out.write_str(names.short_months[usize::from(month) - 1]),
        'W' => out.write_str(names.days[weekday()]),
        'a' => out.write_str(names.short_days[weekday()]),
        'w' => write!(out, "{}", (weekday() + 1) % 7),
        'j' => write!(out, "{:03}", number() - day_number(year, 1, 1) + 1),
        'H' => write!(out, "{hour:02}"),
        'k' => write!(out, "{hour}"),
        'h' | 'I' => write!(out, "{hour12:02}"),
        'l' => write!(out, "{hour12}"),
        'i' => write!(out, "{minute:02}"),
        'S' | 's' => write!(out, "{second:02}"),
        'f' => write!(out, "{:06}", time.microsecond()),
        'p' => out.write_str(half),
        'r' => write!(out, "{hour12:02}:{minute:02}:{second:02} {half}"),
        'T' => write!(out, "{hour:02}:{minute:02}:{second:02}"),
        'U' => write!(out, "{:02}", week(0).1),
        'u' => write!(out, "{:02}", week(1).1),
        'V' => write!(out, "{:02}", week(2).1),
        'v' => write!(out, "{:02}", week(3).1),
        'X' => write!(out, "{:04}", week(2).0),
        'x' => write!(out, "{:04}", week(3).0),
        other => out.write_char(other),
    }
}

/// Which parts a format asks for.
fn parts_of(format: &str) -> (bool, bool, bool) {
    let mut chars = format.chars();
    let (mut date, mut time, mut fraction) = (false, false, false);
    while let Some(c) = chars.next() {
        if c == '%' {
            match chars.next() {
                Some('f') => (time, fraction) = (true, true),
                Some('H' | 'h' | 'I' | 'i' | 'k' | 'l' | 'p' | 'r' | 'S' | 's' | 'T') => time = true,
                Some('%') | None => {}
                Some(_) => date = true,
            }
        }
    }
    (date, time, fraction)
}

/// DATE, TIME or DATETIME by a literal format; otherwise DATETIME(6).
fn str_to_date_type(t: Typing<'_>) -> Result<Derived> {
    let (kind, scale) = match &t.arguments[1].kind {
        ExprKind::Literal(Value::Str(format)) => match parts_of(format) {
            (true, false, _) => (TypeKind::Date, 0),
            (false, true, fraction) => (TypeKind::Time, if fraction { 6 } else { 0 }),
            (_, _, fraction) => (TypeKind::DateTime, if fraction { 6 } else { 0 }),
        },
        _ => (TypeKind::DateTime, 6),
    };
    Ok(Derived::new(DataType { scale, ..DataType::new(kind) }).nullable())
}

#[derive(Default)]
struct Fields {
    year: u16,
    month: u8,
    day: u8,
    hour: u32,
    minute: u8,
    second: u8,
    micros: u32,
    day_of_year: u16,
    /// Set by the hours of a clock with twelve of them; only then %p may follow.
    afternoon: Option<bool>,
    weekday: Option<u8>,
    /// %U, %u, %V, %v: number, whether weeks begin on Monday, and whether %X or %x has the year.
    week: Option<(u8, bool)>,
    week_year: Option<u16>,
}

fn str_to_date(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let (text, format) = (c.text(0), c.text(1));
    let mut rest = &text[..];
    let mut fields = Fields::default();
    let value = read(&format, &mut rest, &mut fields).and_then(|()| assemble(fields, c.ty));
    let Some(value) = value else {
        let kind = match c.ty.kind {
            TypeKind::Time => "time",
            _ => "datetime",
        };
        // ER_WRONG_VALUE_FOR_TYPE.
        let message = format!("Incorrect {kind} value: '{}' for function str_to_date", convert::shown(text.as_bytes()));
        context.warn_or_fail(1411, message)?;
        return Ok(Value::Null);
    };
    if !rest.trim_start().is_empty() {
        let kind = if c.ty.kind == TypeKind::Date {
            "date"
        } else if c.ty.kind == TypeKind::Time {
            "time"
        } else {
            "datetime"
        };
        context.truncated(kind, &convert::shown(text.as_bytes()))?;
    }
    let flags = context.sql_mode.date_flags(true);
    let refused = match &value {
        Value::Date(date) => date.check(flags).is_err(),
        Value::DateTime(value) => value.check(flags).is_err(),
        _ => false,
    };
    if refused {
        let message =
            format!("Incorrect datetime value: '{}' for function str_to_date", convert::shown(text.as_bytes()));
        context.warn_or_fail(1411, message)?;
        return Ok(Value::Null);
    }
    Ok(value)
}

/// Up to `width` digits at the beginning.
fn number(rest: &mut &str, width: usize) -> Option<u32> {
    let length = rest.bytes().take(width).take_while(u8::is_ascii_digit).count();
    let value = rest[..length].parse().ok()?;
    *rest = &rest[length..];
    Some(value)
}

/// The longest name at the beginning, from 0; full names or their first three letters.
fn name(rest: &mut &str, names: &[&str], short: bool) -> Option<u8> {
    let found = names.iter().position(|n| {
        let n = if short { &n[..3] } else { n };
        rest.get(..n.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(n))
    })?;
    *rest = &rest[if short { 3 } else { names[found].len() }..];
    Some(found as u8)
}

fn read(format: &str, rest: &mut &str, f: &mut Fields) -> Option<()> {
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c.is_whitespace() {
            *rest = rest.trim_start();
            continue;
        }
        if c != '%' {
            *rest = rest.trim_start().strip_prefix(c)?;
            continue;
        }
        let specifier = chars.next()?;
        if rest.trim_start().is_empty() {
            // The text may end before the format does.
            *rest = "";
            return Some(());
        }
        *rest = rest.trim_start();
        match specifier {
            'Y' => {
                let before = rest.len();
                let year = number(rest, 4)?;
                f.year = if before - rest.len() <= 2 { two_digits(year) } else { year as u16 };
            }
            'y' => f.year = two_digits(number(rest, 2)?),
            'm' | 'c' => f.month = number(rest, 2)? as u8,
            'd' | 'e' => f.day = number(rest, 2)? as u8,
            'D' => {
                f.day = number(rest, 2)? as u8;
                *rest = rest.get(2..)?;
            }
            'M' => f.month = name(rest, &MONTHS, false)? + 1,
            'b' => f.month = name(rest, &MONTHS, true)? + 1,
            'W' => f.weekday = Some(name(rest, &DAYS, false)?),
            'a' => f.weekday = Some(name(rest, &DAYS, true)?),
            'w' => f.weekday = Some(((number(rest, 1)?.min(7) + 6) % 7) as u8),
            'j' => f.day_of_year = number(rest, 3)? as u16,
            'H' | 'k' => f.hour = number(rest, 2)?,
            'h' | 'I' | 'l' => {
                f.hour = number(rest, 2)?;
                if !(1..=12).contains(&f.hour) {
                    return None;
                }
                f.afternoon.get_or_insert(false);
            }
            'i' => f.minute = number(rest, 2)? as u8,
            's' | 'S' => f.second = number(rest, 2)? as u8,
            'f' => {
                let digits = rest.bytes().take(6).take_while(u8::is_ascii_digit).count();
                f.micros = number(rest, 6)? * 10u32.pow(6 - digits as u32);
            }
            'p' => {
                let half = rest.get(..2)?;
                f.afternoon?;
                f.afternoon = Some(match half.to_ascii_uppercase().as_str() {
                    "AM" => false,
                    "PM" => true,
                    _ => return None,
                });
                *rest = &rest[2..];
            }
            'r' => read("%I:%i:%S %p", rest, f)?,
            'T' => read("%H:%i:%S", rest, f)?,
            'U' | 'V' => f.week = Some((number(rest, 2)? as u8, false)),
            'u' | 'v' => f.week = Some((number(rest, 2)? as u8, true)),
            'X' | 'x' => f.week_year = Some(number(rest, 4)? as u16),
            '%' => *rest = rest.strip_prefix('%')?,
            '#' => *rest = rest.trim_start_matches(|c: char| c.is_ascii_digit()),
            '.' => *rest = rest.trim_start_matches(|c: char| c.is_ascii_punctuation()),
            '@' => *rest = rest.trim_start_matches(|c: char| c.is_alphabetic()),
            _ => return None,
        }
    }
    Some(())
}

fn two_digits(year: u32) -> u16 {
    (if year < 70 { year + 2000 } else { year + 1900 }) as u16
}

fn assemble(mut f: Fields, ty: &DataType) -> Option<Value> {
    if let Some(afternoon) = f.afternoon {
        if !(1..=12).contains(&f.hour) {
            return None;
        }
        f.hour = f.hour % 12 + if afternoon { 12 } else { 0 };
    }
    if f.month > 12 || f.day > 31 || f.hour > 23 || f.minute > 59 || f.second > 59 || f.year > 9999 {
        return None;
    }
    let micros = (i64::from(f.hour) * 3600 + i64::from(f.minute) * 60 + i64::from(f.second)) * MICROS_PER_SECOND
        + i64::from(f.micros);
    if ty.kind == TypeKind::Time {
        return Time::from_micros(micros).map(Value::Time);
    }
    let date = if f.day_of_year > 0 {
        Date::from_parts(f.year, 1, 1).add_days(i64::from(f.day_of_year) - 1)?
    } else if let (Some((week, monday)), Some(weekday)) = (f.week, f.weekday) {
        from_week(f.week_year.unwrap_or(f.year), week, weekday, monday)?
    } else {
        Date::from_parts(f.year, f.month, f.day)
    };
    Some(if ty.kind == TypeKind::Date { Value::Date(date) } else { Value::DateTime(DateTime::new(date, micros)) })
}

/// The date of a weekday (0 is Monday) in a numbered week: of weeks that begin on Monday, ISO's; of those that begin on Sunday, the first has the first Sunday.
fn from_week(year: u16, week: u8, weekday: u8, monday: bool) -> Option<Date> {
    if week > 53 {
        return None;
    }
    let first = Date::new(year, 1, 1)?;
    let first_day = i64::from(first.weekday()?);
    let start = if monday {
        let offset = if first_day <= 3 { -first_day } else { 7 - first_day };
        (i64::from(week) - 1) * 7 + offset + i64::from(weekday)
    } else {
        let sunday = (6 - first_day) % 7;
        (i64::from(week) - 1) * 7 + sunday + (i64::from(weekday) + 1) % 7
    };
    first.add_days(start)
}
