//! Dates and times as MySQL prints them.

use super::{Date, DateTime, Time};
use std::fmt;

/// `-838:59:59.000000` and `9999-12-31 23:59:59.999999` fit.
const MAX_TEXT_BYTES: usize = 26;

/// A short text built on the stack.
struct Text {
    bytes: [u8; MAX_TEXT_BYTES],
    length: usize,
}

impl Text {
    fn new() -> Self {
        Text { bytes: [0; MAX_TEXT_BYTES], length: 0 }
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    fn push_two(&mut self, number: u32) {
        self.push(b'0' + (number / 10) as u8);
        self.push(b'0' + (number % 10) as u8);
    }

    fn push_date(&mut self, date: Date) {
        let year = u32::from(date.year());
        self.push_two(year / 100);
        self.push_two(year % 100);
        self.push(b'-');
        self.push_two(date.month().into());
        self.push(b'-');
        self.push_two(date.day().into());
    }

    fn push_time(&mut self, time: Time, fsp: u8) {
        if time.is_negative() {
            self.push(b'-');
        }
        let hours = time.hours();
        if hours >= 100 {
            self.push(b'0' + (hours / 100) as u8);
        }
        self.push_two(hours % 100);
        self.push(b':');
        self.push_two(time.minutes().into());
        self.push(b':');
        self.push_two(time.seconds().into());
        if fsp > 0 {
            self.push(b'.');
            let mut rest = time.microsecond();
            let mut unit = 100_000;
            for _ in 0..fsp.min(6) {
                self.push(b'0' + (rest / unit) as u8);
                rest %= unit;
                unit /= 10;
            }
        }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(self.as_bytes()).expect("ASCII"))
    }
}

impl Date {
    /// Appends `2024-01-31`.
    pub fn append_text(self, out: &mut Vec<u8>) {
        let mut text = Text::new();
        text.push_date(self);
        out.extend_from_slice(text.as_bytes());
    }
}

impl Time {
    /// Appends `-12:34:56.789` with `fsp` digits of the second, further ones cut off.
    pub fn append_text(self, fsp: u8, out: &mut Vec<u8>) {
        let mut text = Text::new();
        text.push_time(self, fsp);
        out.extend_from_slice(text.as_bytes());
    }
}

impl DateTime {
    /// Appends `2024-01-31 12:34:56.789` with `fsp` digits of the second, further ones cut off.
    pub fn append_text(self, fsp: u8, out: &mut Vec<u8>) {
        let mut text = Text::new();
        text.push_date(self.date());
        text.push(b' ');
        text.push_time(self.time(), fsp);
        out.extend_from_slice(text.as_bytes());
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::new();
        text.push_date(*self);
        text.write(f)
    }
}

/// With as many fraction digits as the precision asks for (`{:.3}`), none without.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::new();
        text.push_time(*self, f.precision().unwrap_or(0) as u8);
        text.write(f)
    }
}

/// With as many fraction digits as the precision asks for (`{:.3}`), none without.
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::new();
        text.push_date(self.date());
        text.push(b' ');
        text.push_time(self.time(), f.precision().unwrap_or(0) as u8);
        text.write(f)
    }
}
