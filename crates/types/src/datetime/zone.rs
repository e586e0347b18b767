//! Between local dates and the microseconds since 1970 that TIMESTAMP stores.

use super::{Date, DateTime, MICROS_PER_DAY, MICROS_PER_SECOND};
use jiff::tz::{AmbiguousOffset, TimeZone};

/// TIMESTAMP '1970-01-01 00:00:01' UTC in microseconds; 0 stands for the zero timestamp.
pub const TIMESTAMP_MIN: i64 = MICROS_PER_SECOND;
/// TIMESTAMP '2038-01-19 03:14:07.999999' UTC in microseconds.
pub const TIMESTAMP_MAX: i64 = i32::MAX as i64 * MICROS_PER_SECOND + 999_999;

/// TO_DAYS('1970-01-01').
const EPOCH_DAY: i64 = 719_528;

/// A local time as microseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixMicros {
    pub micros: i64,
    /// The local time does not exist: clocks were put forward over it. `micros` is the moment they were. (Error 1292 for a TIMESTAMP in strict mode.)
    pub in_gap: bool,
}

impl UnixMicros {
    /// Whether TIMESTAMP holds it.
    pub fn is_timestamp(&self) -> bool {
        (TIMESTAMP_MIN..=TIMESTAMP_MAX).contains(&self.micros)
    }
}

impl DateTime {
    /// Microseconds since 1970-01-01 when read as UTC, negative before; `None` when month or day is zero.
    pub fn to_unix_micros_utc(self) -> Option<i64> {
        Some((self.date().to_days()? - EPOCH_DAY) * MICROS_PER_DAY + self.micros_of_day())
    }

    /// UTC date and time; `None` beyond the years 1 to 9999.
    pub fn from_unix_micros_utc(micros: i64) -> Option<DateTime> {
        let days = micros.div_euclid(MICROS_PER_DAY) + EPOCH_DAY;
        let date = Date::from_days(days);
        (!date.is_zero()).then(|| DateTime::new(date, micros.rem_euclid(MICROS_PER_DAY)))
    }

    /// Microseconds since 1970-01-01 UTC when read in `zone`. A time that occurs twice is the first of the two. `None` for dates that are not real.
    pub fn to_unix_micros(self, zone: &TimeZone) -> Option<UnixMicros> {
        if !self.date().is_real() {
            return None;
        }
        let utc = self.to_unix_micros_utc()?;
        if let Ok(offset) = zone.to_fixed_offset() {
            return Some(UnixMicros { micros: utc - i64::from(offset.seconds()) * MICROS_PER_SECOND, in_gap: false });
        }
        let civil = jiff::civil::DateTime::new(
            self.year() as i16,
            self.month() as i8,
            self.day() as i8,
            self.hour() as i8,
            self.minute() as i8,
            self.second() as i8,
            self.microsecond() as i32 * 1000,
        )
        .ok()?;
        let at = |offset: jiff::tz::Offset| utc - i64::from(offset.seconds()) * MICROS_PER_SECOND;
        match zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => Some(UnixMicros { micros: at(offset), in_gap: false }),
            AmbiguousOffset::Fold { before, .. } => Some(UnixMicros { micros: at(before), in_gap: false }),
            AmbiguousOffset::Gap { after, .. } => {
                // Read with the later offset it is before the change, so the change is the next one.
                let inside = jiff::Timestamp::from_microsecond(at(after)).ok()?;
                let change = zone.following(inside).next()?;
                Some(UnixMicros { micros: change.timestamp().as_microsecond(), in_gap: true })
            }
        }
    }

    /// The date and time that clocks in `zone` show; `None` beyond the years 1 to 9999.
    pub fn from_unix_micros(micros: i64, zone: &TimeZone) -> Option<DateTime> {
        let timestamp = jiff::Timestamp::from_microsecond(micros).ok()?;
        let offset = zone.to_offset(timestamp);
        DateTime::from_unix_micros_utc(micros + i64::from(offset.seconds()) * MICROS_PER_SECOND)
    }
}
