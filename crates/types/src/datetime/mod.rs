//! DATE, TIME(6) and DATETIME(6) as packed numbers, zero dates included.
//!
//! | type | packed as | order |
//! |---|---|---|
//! | [`Date`] | year · 512 + month · 32 + day, 23 bits | numeric order is calendar order |
//! | [`Time`] | signed microseconds | numeric order |
//! | [`DateTime`] | the packed date, then 37 bits of microseconds since midnight | numeric order is time order |
//!
//! MySQL stores dates that are none: `0000-00-00`, a month or day of zero (`2024-00-00`), and under ALLOW_INVALID_DATES 31 February. All of them are representable; [`Date::check`]
//! says what a sql_mode lets pass. Arithmetic needs real dates and gives `None` for the others.
//!
//! [`calendar`](self) arithmetic follows MySQL's `sql-common/my_time.cc`: day numbers count from the year 0 (1970-01-01 is 719528), years run from
//! 0 to 9999. Nothing here knows the present time.

mod calendar;
mod number;
mod parse;
mod text;
mod zone;

pub use calendar::{WeekMode, days_in_month, is_leap_year};
pub use number::{date_time_from_number, time_from_number};
pub use parse::{ParsedDateTime, ParsedTime, parse_date_time, parse_time};
pub use zone::{TIMESTAMP_MAX, TIMESTAMP_MIN, UnixMicros};

use serde::{Deserialize, Serialize};

pub const MICROS_PER_SECOND: i64 = 1_000_000;
pub const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// A calendar date; `0000-00-00` and zero months or days are representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Date(u32);

/// A signed duration of up to 838:59:59, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time(i64);

/// Date and time of day with microseconds, packed so that numeric order is time order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DateTime(u64);

/// What sql_mode says of dates that are none. The default is MySQL's own without any mode: zero dates and zero parts pass, 31 February does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DateFlags {
    /// NO_ZERO_DATE: `0000-00-00` is refused.
    pub no_zero_date: bool,
    /// NO_ZERO_IN_DATE: a zero month or day is refused.
    pub no_zero_in_date: bool,
    /// ALLOW_INVALID_DATES: any day up to 31 in any month.
    pub allow_invalid: bool,
}

/// Why a text, number or date is not accepted. All of them are error 1292 (`Incorrect datetime value: '…'`) in strict mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemporalError {
    #[error("not a date or time")]
    Malformed,
    #[error("a part of the date or time is out of range")]
    OutOfRange,
    /// `0000-00-00` under NO_ZERO_DATE.
    #[error("zero date")]
    ZeroDate,
    /// A zero month or day under NO_ZERO_IN_DATE.
    #[error("zero in date")]
    ZeroInDate,
}

impl Date {
    /// `0000-00-00`.
    pub const ZERO: Date = Date(0);
    pub const MAX: Date = Date::from_parts(9999, 12, 31);

    /// A real date of the calendar in the years 0 to 9999; `None` for anything else.
    pub const fn new(year: u16, month: u8, day: u8) -> Option<Date> {
        if year > 9999 || month == 0 || month > 12 || day == 0 || day > days_in_month(year, month) {
            return None;
        }
        Some(Date::from_parts(year, month, day))
    }

    /// Packs the parts; they may be zero, or a day that the month lacks. Panics beyond year 9999, month 12 or day 31.
    pub const fn from_parts(year: u16, month: u8, day: u8) -> Date {
        assert!(year <= 9999 && month <= 12 && day <= 31, "part of a date out of range");
        Date((year as u32) << 9 | (month as u32) << 5 | day as u32)
    }

    /// The number that [`Date::packed`] gave.
    pub const fn from_packed(packed: u32) -> Date {
        Date(packed)
    }

    /// 23 bits in calendar order.
    pub const fn packed(self) -> u32 {
        self.0
    }

    pub const fn year(self) -> u16 {
        (self.0 >> 9) as u16
    }

    pub const fn month(self) -> u8 {
        (self.0 >> 5 & 15) as u8
    }

    pub const fn day(self) -> u8 {
        (self.0 & 31) as u8
    }

    /// Whether it is `0000-00-00`.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whether it is a date of the calendar: no zero month or day, no 31 February.
    pub const fn is_real(self) -> bool {
        let month = self.month();
        month != 0 && self.day() != 0 && self.day() <= days_in_month(self.year(), month)
    }

    /// Whether sql_mode accepts it.
    pub fn check(self, flags: DateFlags) -> Result<(), TemporalError> {
        check_date(self, !self.is_zero(), flags)
    }

    /// `20240131`.
    pub const fn to_number(self) -> u32 {
        self.year() as u32 * 10_000 + self.month() as u32 * 100 + self.day() as u32
    }

    /// The date at midnight.
    pub const fn at_midnight(self) -> DateTime {
        DateTime::new(self, 0)
    }
}

/// MySQL's rules; a zero date with a time of day counts as not zero.
fn check_date(date: Date, not_zero: bool, flags: DateFlags) -> Result<(), TemporalError> {
    if !not_zero {
        return if flags.no_zero_date { Err(TemporalError::ZeroDate) } else { Ok(()) };
    }
    let (month, day) = (date.month(), date.day());
    if month == 0 || day == 0 {
        if flags.no_zero_in_date {
            return Err(TemporalError::ZeroInDate);
        }
        if month == 0 {
            return Ok(());
        }
    }
    if !flags.allow_invalid && day > days_in_month(date.year(), month) {
        return Err(TemporalError::OutOfRange);
    }
    Ok(())
}

impl Time {
    pub const ZERO: Time = Time(0);
    /// 838:59:59.
    pub const MAX: Time = Time((838 * 3600 + 59 * 60 + 59) * MICROS_PER_SECOND);
    pub const MIN: Time = Time(-Time::MAX.0);

    /// A duration in microseconds; `None` beyond 838:59:59.
    pub const fn from_micros(micros: i64) -> Option<Time> {
        if micros > Time::MAX.0 || micros < Time::MIN.0 { None } else { Some(Time(micros)) }
    }

    /// The nearest TIME value: MySQL clips to ±838:59:59.
    pub fn clipped(micros: i64) -> Time {
        Time(micros.clamp(Time::MIN.0, Time::MAX.0))
    }

    /// From parts; `None` when minutes, seconds or microseconds are out of range, or the whole is.
    pub const fn new(negative: bool, hours: u32, minutes: u8, seconds: u8, micros: u32) -> Option<Time> {
        if minutes > 59 || seconds > 59 || micros > 999_999 {
            return None;
        }
        let total = (hours as i64 * 3600 + minutes as i64 * 60 + seconds as i64) * MICROS_PER_SECOND + micros as i64;
        Time::from_micros(if negative { -total } else { total })
    }

    /// Signed microseconds.
    pub const fn micros(self) -> i64 {
        self.0
    }

    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Whole hours without the sign, 0 to 838.
    pub const fn hours(self) -> u32 {
        (self.0.unsigned_abs() / 3_600_000_000) as u32
    }

    pub const fn minutes(self) -> u8 {
        (self.0.unsigned_abs() / 60_000_000 % 60) as u8
    }

    pub const fn seconds(self) -> u8 {
        (self.0.unsigned_abs() / 1_000_000 % 60) as u8
    }

    /// Microseconds within the second.
    pub const fn microsecond(self) -> u32 {
        (self.0.unsigned_abs() % 1_000_000) as u32
    }

    /// `-123456` for -12:34:56, the fraction cut off.
    pub const fn to_number(self) -> i64 {
        let number = self.hours() as i64 * 10_000 + self.minutes() as i64 * 100 + self.seconds() as i64;
        if self.is_negative() { -number } else { number }
    }

    /// Rounded to `fsp` digits of the second, halves away from zero, clipped to the range of TIME.
    pub fn rounded(self, fsp: u8) -> Time {
        let unit = fraction_unit(fsp);
        let magnitude = (self.0.abs() + unit / 2) / unit * unit;
        Time::clipped(magnitude * self.0.signum())
    }

    /// Digits of the second beyond `fsp` cut off.
    pub fn truncated(self, fsp: u8) -> Time {
        let unit = fraction_unit(fsp);
        Time(self.0 / unit * unit)
    }
}

/// Microseconds of the last of `fsp` fraction digits.
const fn fraction_unit(fsp: u8) -> i64 {
    match fsp {
        0 => 1_000_000,
        1 => 100_000,
        2 => 10_000,
        3 => 1_000,
        4 => 100,
        5 => 10,
        _ => 1,
    }
}

impl DateTime {
    /// `0000-00-00 00:00:00`.
    pub const ZERO: DateTime = DateTime(0);
    pub const MAX: DateTime = DateTime::new(Date::MAX, MICROS_PER_DAY - 1);
    const MICROS_BITS: u32 = 37;

    /// `micros_of_day` microseconds after midnight. Panics when that is another day.
    pub const fn new(date: Date, micros_of_day: i64) -> DateTime {
        assert!(micros_of_day >= 0 && micros_of_day < MICROS_PER_DAY, "time of day out of range");
        DateTime((date.0 as u64) << Self::MICROS_BITS | micros_of_day as u64)
    }

    /// From parts; the date must be real. `None` otherwise.
    #[allow(clippy::too_many_arguments)]
    pub const fn from_parts(
        year: u16,
        month: u8,
        day: u8,
        hour: u8,
        minute: u8,
        second: u8,
        micros: u32,
    ) -> Option<DateTime> {
        if hour > 23 || minute > 59 || second > 59 || micros > 999_999 {
            return None;
        }
        let seconds = hour as i64 * 3600 + minute as i64 * 60 + second as i64;
        match Date::new(year, month, day) {
            Some(date) => Some(DateTime::new(date, seconds * MICROS_PER_SECOND + micros as i64)),
            None => None,
        }
    }

    /// The number that [`DateTime::packed`] gave.
    pub const fn from_packed(packed: u64) -> DateTime {
        DateTime(packed)
    }

    /// 60 bits in time order.
    pub const fn packed(self) -> u64 {
        self.0
    }

    pub const fn date(self) -> Date {
        Date((self.0 >> Self::MICROS_BITS) as u32)
    }

    /// Microseconds since midnight.
    pub const fn micros_of_day(self) -> i64 {
        (self.0 & ((1 << Self::MICROS_BITS) - 1)) as i64
    }

    /// The time of day.
    pub const fn time(self) -> Time {
        Time(self.micros_of_day())
    }

    pub const fn year(self) -> u16 {
        self.date().year()
    }

    pub const fn month(self) -> u8 {
        self.date().month()
    }

    pub const fn day(self) -> u8 {
        self.date().day()
    }

    pub const fn hour(self) -> u8 {
        (self.micros_of_day() / 3_600_000_000) as u8
    }

    pub const fn minute(self) -> u8 {
        self.time().minutes()
    }

    pub const fn second(self) -> u8 {
        self.time().seconds()
    }

    /// Microseconds within the second.
    pub const fn microsecond(self) -> u32 {
        self.time().microsecond()
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whether sql_mode accepts it.
    pub fn check(self, flags: DateFlags) -> Result<(), TemporalError> {
        check_date(self.date(), !self.is_zero(), flags)
    }

    /// `20240131235959`, the fraction cut off.
    pub const fn to_number(self) -> u64 {
        self.date().to_number() as u64 * 1_000_000 + self.time().to_number() as u64
    }

    /// Rounded to `fsp` digits of the second; `None` when that leads beyond the year 9999, or out of a day that is not real.
    pub fn rounded(self, fsp: u8) -> Option<DateTime> {
        let unit = fraction_unit(fsp);
        let micros = (self.micros_of_day() + unit / 2) / unit * unit;
        if micros < MICROS_PER_DAY {
            return Some(DateTime::new(self.date(), micros));
        }
        Some(self.date().add_days(1)?.at_midnight())
    }

    /// Digits of the second beyond `fsp` cut off.
    pub fn truncated(self, fsp: u8) -> DateTime {
        let unit = fraction_unit(fsp);
        DateTime::new(self.date(), self.micros_of_day() / unit * unit)
    }
}

impl From<Date> for DateTime {
    fn from(date: Date) -> DateTime {
        date.at_midnight()
    }
}

#[cfg(test)]
mod tests;
