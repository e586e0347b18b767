//! Arithmetic on the calendar: day numbers, months, weeks.
//!
//! Day numbers are MySQL's (TO_DAYS): day 366 is 0001-01-01, and numbers up to 365 lead to `0000-00-00` as in FROM_DAYS.

use super::{Date, DateTime, MICROS_PER_DAY};

/// TO_DAYS of 0001-01-01 and of 9999-12-31: what arithmetic on days can lead to.
const FIRST_DAY: i64 = 366;
const LAST_DAY: i64 = 3_652_424;

pub const fn is_leap_year(year: u16) -> bool {
    // As MySQL has it: the year 0 is none.
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || (year.is_multiple_of(400) && year != 0))
}

const fn days_in_year(year: u16) -> i64 {
    if is_leap_year(year) { 366 } else { 365 }
}

/// Days of a month, 1 to 12.
pub const fn days_in_month(year: u16, month: u8) -> u8 {
    match month {
        2 => 28 + is_leap_year(year) as u8,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// MySQL's `calc_daynr`; month and day may be zero.
const fn day_number(year: u16, month: u8, day: u8) -> i64 {
    if year == 0 && month == 0 {
        return 0;
    }
    let (mut y, month) = (year as i64, month as i64);
    let mut days = 365 * y + 31 * (month - 1) + day as i64;
    if month <= 2 {
        y -= 1;
    } else {
        days -= (month * 4 + 23) / 10;
    }
    days + y / 4 - (y / 100 + 1) * 3 / 4
}

/// How WEEK counts: MySQL's mode 0 to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeekMode {
    monday_first: bool,
    /// Weeks run from 1 to 53 and belong to the year of most of their days, instead of 0 to 53.
    week_year: bool,
    /// Week 1 begins with the first such weekday of the year, instead of being the first with four days or more.
    first_weekday: bool,
}

impl WeekMode {
    /// ISO 8601: mode 3.
    pub const ISO: WeekMode = WeekMode::new(3);

    /// The `mode` argument of WEEK and `default_week_format`; only its low three bits count.
    pub const fn new(mode: u32) -> WeekMode {
        let monday_first = mode & 1 != 0;
        // The third bit means the opposite where weeks begin on Sunday.
        WeekMode { monday_first, week_year: mode & 2 != 0, first_weekday: (mode & 4 != 0) == monday_first }
    }

    /// As YEARWEEK counts: weeks 1 to 53.
    pub const fn with_week_year(self) -> WeekMode {
        WeekMode { week_year: true, ..self }
    }
}

impl Date {
    /// TO_DAYS; `None` when month or day is zero.
    pub const fn to_days(self) -> Option<i64> {
        if self.month() == 0 || self.day() == 0 {
            return None;
        }
        Some(day_number(self.year(), self.month(), self.day()))
    }

    /// FROM_DAYS: `0000-00-00` below day 366 and beyond the year 9999.
    pub const fn from_days(days: i64) -> Date {
        if days < FIRST_DAY || days > LAST_DAY {
            return Date::ZERO;
        }
        let mut year = (days * 100 / 36_525) as u16;
        let before = ((year as i64 - 1) / 100 + 1) * 3 / 4;
        let mut day_of_year = (days - year as i64 * 365) - (year as i64 - 1) / 4 + before;
        while day_of_year > days_in_year(year) {
            day_of_year -= days_in_year(year);
            year += 1;
        }
        let mut month = 1;
        while day_of_year > days_in_month(year, month) as i64 {
            day_of_year -= days_in_month(year, month) as i64;
            month += 1;
        }
        Date::from_parts(year, month, day_of_year as u8)
    }

    /// So many days later; `None` beyond the years 1 to 9999 or from a date with a zero part.
    pub fn add_days(self, days: i64) -> Option<Date> {
        let number = self.to_days()?.checked_add(days)?;
        (FIRST_DAY..=LAST_DAY).contains(&number).then(|| Date::from_days(number))
    }

    /// So many months later, as DATE_ADD … INTERVAL n MONTH: a day that the month lacks becomes its last one (31 January and a month is
    /// 28 or 29 February). `None` beyond the years 0 to 9999 or from a date with a zero month.
    pub fn add_months(self, months: i64) -> Option<Date> {
        if self.month() == 0 {
            return None;
        }
        let total = (i64::from(self.year()) * 12 + i64::from(self.month()) - 1).checked_add(months)?;
        if !(0..120_000).contains(&total) {
            return None;
        }
        let (year, month) = ((total / 12) as u16, (total % 12) as u8 + 1);
        Some(Date::from_parts(year, month, self.day().min(days_in_month(year, month))))
    }

    /// WEEKDAY: 0 is Monday. `None` when month or day is zero.
    pub fn weekday(self) -> Option<u8> {
        Some(((self.to_days()? + 5) % 7) as u8)
    }

    /// DAYOFWEEK: 1 is Sunday. `None` when month or day is zero.
    pub fn day_of_week(self) -> Option<u8> {
        Some(((self.to_days()? + 6) % 7) as u8 + 1)
    }

    /// DAYOFYEAR, 1 to 366. `None` when month or day is zero.
    pub fn day_of_year(self) -> Option<u16> {
        Some((self.to_days()? - day_number(self.year(), 1, 1) + 1) as u16)
    }

    /// QUARTER, 1 to 4; 0 for month 0.
    pub fn quarter(self) -> u8 {
        self.month().div_ceil(3)
    }

    /// LAST_DAY. `None` when the month is zero.
    pub fn last_day(self) -> Option<Date> {
        (self.month() != 0)
            .then(|| Date::from_parts(self.year(), self.month(), days_in_month(self.year(), self.month())))
    }

    /// WEEK: the year that the week belongs to, and its number. `None` when month or day is zero.
    pub fn week(self, mode: WeekMode) -> Option<(u16, u8)> {
        let number = self.to_days()?;
        let mut year = i64::from(self.year());
        let mut first = day_number(self.year(), 1, 1);
        let mut weekday = (first + 5 + i64::from(!mode.monday_first)) % 7;
        let mut week_year = mode.week_year;
        // Whether week 1 begins after 1 January.
        let later = |weekday: i64| if mode.first_weekday { weekday != 0 } else { weekday >= 4 };
        let length = |year: i64| days_in_year(year.max(0) as u16);
        if self.month() == 1 && i64::from(self.day()) <= 7 - weekday && later(weekday) {
            if !week_year {
                return Some((self.year(), 0));
            }
            week_year = true;
            year -= 1;
            first -= length(year);
            weekday = (weekday + 53 * 7 - length(year)) % 7;
        }
        let days = if later(weekday) { number - (first + 7 - weekday) } else { number - (first - weekday) };
        if week_year && days >= 52 * 7 {
            weekday = (weekday + length(year)) % 7;
            if !later(weekday) {
                return Some((year as u16 + 1, 1));
            }
        }
        Some((year.max(0) as u16, (days / 7) as u8 + 1))
    }
}

impl DateTime {
    /// Microseconds since day 0; `None` when month or day is zero.
    pub fn to_micros(self) -> Option<i64> {
        Some(self.date().to_days()? * MICROS_PER_DAY + self.micros_of_day())
    }

    /// The same for TIMEDIFF, which takes a date with a zero month or day for the day that its formula gives.
    pub fn to_micros_of_any(self) -> i64 {
        let date = self.date();
        day_number(date.year(), date.month(), date.day()) * MICROS_PER_DAY + self.micros_of_day()
    }

    /// So many microseconds later; `None` beyond the years 1 to 9999 or from a date with a zero part.
    pub fn add_micros(self, micros: i64) -> Option<DateTime> {
        let total = self.to_micros()?.checked_add(micros)?;
        let days = total.div_euclid(MICROS_PER_DAY);
        (FIRST_DAY..=LAST_DAY)
            .contains(&days)
            .then(|| DateTime::new(Date::from_days(days), total.rem_euclid(MICROS_PER_DAY)))
    }

    /// As [`Date::add_days`]; the time of day stays.
    pub fn add_days(self, days: i64) -> Option<DateTime> {
        Some(DateTime::new(self.date().add_days(days)?, self.micros_of_day()))
    }

    /// As [`Date::add_months`]; the time of day stays.
    pub fn add_months(self, months: i64) -> Option<DateTime> {
        Some(DateTime::new(self.date().add_months(months)?, self.micros_of_day()))
    }

    /// Whole months from `earlier` to `self`, as TIMESTAMPDIFF(MONTH, …) counts; negative when `self` is earlier.
    pub fn months_since(self, earlier: DateTime) -> i64 {
        if self < earlier {
            return -earlier.months_since(self);
        }
        let months = |d: DateTime| i64::from(d.year()) * 12 + i64::from(d.month());
        let rest = |d: DateTime| (d.day(), d.micros_of_day());
        months(self) - months(earlier) - i64::from(rest(self) < rest(earlier))
    }
}
