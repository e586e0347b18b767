//! Dates and times written as numbers: 20240131, 240131235959, 123456 for 12:34:56.

use super::{Date, DateFlags, DateTime, MICROS_PER_SECOND, TemporalError, Time, check_date};

/// Two-digit years from here on are 19xx.
pub(super) const PIVOT_YEAR: i64 = 70;

/// YYMMDD, YYYYMMDD, YYMMDDhhmmss or YYYYMMDDhhmmss as MySQL tells them apart, and whether there was a time of day. 0 is the zero date.
pub fn date_time_from_number(number: i64, flags: DateFlags) -> Result<(DateTime, bool), TemporalError> {
    const DATE: i64 = 1_000_000;
    // The last date of 2069 and the first of 1970, as YYMMDD and as YYMMDDhhmmss.
    const LAST_20: i64 = (PIVOT_YEAR - 1) * 10_000 + 1231;
    const FIRST_19: i64 = PIVOT_YEAR * 10_000 + 101;
    const LAST_20_TIME: i64 = LAST_20 * DATE + 235_959;
    const FIRST_19_TIME: i64 = FIRST_19 * DATE;
    let (full, date_only) = match number {
        0 => (0, false),
        101..=LAST_20 => ((number + 20_000_000) * DATE, true),
        FIRST_19..=991_231 => ((number + 19_000_000) * DATE, true),
        991_232..=99_991_231 => (number * DATE, true),
        101_000_000..=LAST_20_TIME => (number + 20_000_000 * DATE, false),
        FIRST_19_TIME..=991_231_235_959 => (number + 19_000_000 * DATE, false),
        991_231_235_960..=99_999_999_999_999 => (number, false),
        100_000_000_000_000.. => return Err(TemporalError::OutOfRange),
        _ => return Err(TemporalError::Malformed),
    };
    let (date, time) = (full / DATE, full % DATE);
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    let (hour, minute, second) = (time / 10_000, time / 100 % 100, time % 100);
    if year > 9999 || month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 {
        return Err(TemporalError::OutOfRange);
    }
    let date = Date::from_parts(year as u16, month as u8, day as u8);
    check_date(date, full != 0, flags)?;
    let seconds = hour * 3600 + minute * 60 + second;
    Ok((DateTime::new(date, seconds * MICROS_PER_SECOND), date_only))
}

/// `hhmmss`, or a whole YYYYMMDDhhmmss whose time of day is taken. Out of range: MySQL clips to [`Time::MAX`] or [`Time::MIN`] with a warning.
pub fn time_from_number(number: i64) -> Result<Time, TemporalError> {
    const LARGEST: i64 = 8_385_959;
    if number >= 10_000_000_000
        && let Ok((value, _)) = date_time_from_number(number, DateFlags::default())
    {
        return Ok(value.time());
    }
    let magnitude = number.unsigned_abs();
    if magnitude > LARGEST as u64 {
        return Err(TemporalError::OutOfRange);
    }
    Time::new(number < 0, (magnitude / 10_000) as u32, (magnitude / 100 % 100) as u8, (magnitude % 100) as u8, 0)
        .ok_or(TemporalError::Malformed)
}
