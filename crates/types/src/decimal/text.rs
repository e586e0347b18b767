//! Decimals from and to text.

use super::{Decimal, DecimalError, MAX_PRECISION, MAX_SCALE, POWERS, power};
use crate::decimal::rounding::{Mode, shrink_i256};
use ethnum::{I256, U256};
use std::fmt;
use std::str::FromStr;

/// Sign, 65 digits, point, and a zero before it.
pub(super) const MAX_TEXT_BYTES: usize = 72;

/// A decimal read from the beginning of a text, as MySQL reads numbers from strings.
#[derive(Clone, Copy, Debug)]
pub struct ParsedDecimal {
    pub value: Decimal,
    /// Bytes that belong to the number, spaces before it included. 0: there is no number, and `value` is zero.
    pub consumed: usize,
    /// The integer part has more than 65 digits; `value` is 65 nines with the sign.
    pub overflow: bool,
    /// Significand of the fraction had no room; `value` is rounded.
    pub rounded: bool,
}

impl Decimal {
    /// Reads `[spaces][sign]digits[.digits][e[sign]digits]` from the beginning of `text`. What follows is left to the caller:
    /// MySQL ignores spaces there and warns (1292, 1366) about anything else.
    pub fn parse_prefix(text: &[u8]) -> ParsedDecimal {
        let mut at = text.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let negative = text.get(at) == Some(&b'-');
        if matches!(text.get(at), Some(b'-' | b'+')) {
            at += 1;
        }
        let mut number = Significand::default();
        at += number.take(&text[at..], false);
        if text.get(at) == Some(&b'.') {
            at += 1;
            at += number.take(&text[at..], true);
        }
        if !number.any {
            return ParsedDecimal { value: Decimal::ZERO, consumed: 0, overflow: false, rounded: false };
        }
        let (exponent, length) = exponent(&text[at..]);
        number.scale -= exponent;
        let mut parsed = number.finish(negative);
        parsed.consumed = at + length;
        parsed
    }

    /// Writes the number with all digits of its scale, returns the length.
    pub(super) fn write_text(&self, out: &mut [u8; MAX_TEXT_BYTES]) -> usize {
        let scale = usize::from(self.scale());
        // Significand from the end of the buffer, then moved to its beginning.
        let mut buffer = [b'0'; MAX_TEXT_BYTES];
        let mut start = buffer.len();
        match self.unscaled_i128() {
            Some(small) => start = write_digits(&mut buffer, start, small.unsigned_abs()),
            None => {
                let (low, high) = split(self.unscaled().unsigned_abs());
                let end = start;
                write_digits(&mut buffer, start, low);
                start = write_digits(&mut buffer, end - 38, high);
            }
        }
        // At least one digit before the point; the buffer was filled with zeros.
        start = start.min(buffer.len() - scale - 1);
        let mut length = 0;
        if self.is_negative() {
            out[0] = b'-';
            length = 1;
        }
        let whole = buffer.len() - scale;
        out[length..length + whole - start].copy_from_slice(&buffer[start..whole]);
        length += whole - start;
        if scale > 0 {
            out[length] = b'.';
            out[length + 1..length + 1 + scale].copy_from_slice(&buffer[whole..]);
            length += 1 + scale;
        }
        length
    }

    /// Appends the number with all digits of its scale: `-0.50`.
    pub fn append_text(&self, out: &mut Vec<u8>) {
        let mut buffer = [0u8; MAX_TEXT_BYTES];
        let length = self.write_text(&mut buffer);
        out.extend_from_slice(&buffer[..length]);
    }
}

/// Quotient and rest by 10^38, as (rest, quotient).
fn split(value: U256) -> (u128, u128) {
    let divisor = U256::from(POWERS[38] as u128);
    ((value % divisor).as_u128(), (value / divisor).as_u128())
}

/// Writes digits that end before `end`, returns where they start; zero writes nothing.
fn write_digits(buffer: &mut [u8; MAX_TEXT_BYTES], mut end: usize, mut value: u128) -> usize {
    const CHUNK: u128 = 10_000_000_000_000_000_000;
    while value > u128::from(u64::MAX) {
        let (rest, stop) = ((value % CHUNK) as u64, end - 19);
        write_digits_u64(buffer, end, rest);
        value /= CHUNK;
        end = stop;
    }
    write_digits_u64(buffer, end, value as u64)
}

fn write_digits_u64(buffer: &mut [u8; MAX_TEXT_BYTES], mut end: usize, mut value: u64) -> usize {
    while value != 0 {
        end -= 1;
        buffer[end] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    end
}

/// Reads `e[sign]digits`; without digits it is no exponent and takes nothing. Clamped far beyond what a decimal holds.
fn exponent(text: &[u8]) -> (i64, usize) {
    if !matches!(text.first(), Some(b'e' | b'E')) {
        return (0, 0);
    }
    let sign = matches!(text.get(1), Some(b'-' | b'+'));
    let start = 1 + usize::from(sign);
    let digits = text[start..].iter().take_while(|b| b.is_ascii_digit()).count();
    let value =
        text[start..start + digits].iter().fold(0i64, |value, b| (value * 10 + i64::from(b - b'0')).min(1_000_000));
    match digits {
        0 => (0, 0),
        _ if text[1] == b'-' => (-value, start + digits),
        _ => (value, start + digits),
    }
}

/// Significant digits as they are read: the first 38 into `small`, up to 66 into `wide`.
#[derive(Default)]
struct Significand {
    small: u128,
    wide: U256,
    /// Significant digits kept.
    count: u32,
    /// Significand kept behind the point, less digits before it that were not.
    scale: i64,
    any: bool,
    /// A digit other than zero was not kept.
    lost: bool,
}

/// One digit more than a decimal has, for rounding.
const KEPT_DIGITS: u32 = MAX_PRECISION as u32 + 1;

impl Significand {
    fn take(&mut self, text: &[u8], fraction: bool) -> usize {
        let mut length = 0;
        for byte in text.iter().take_while(|b| b.is_ascii_digit()) {
            length += 1;
            let digit = byte - b'0';
            if self.count < 38 {
                self.small = self.small * 10 + u128::from(digit);
            } else if self.count < KEPT_DIGITS {
                if self.count == 38 {
                    self.wide = self.small.into();
                }
                self.wide = self.wide * 10 + U256::from(digit);
            } else {
                self.lost |= digit != 0;
                self.scale -= i64::from(!fraction);
                continue;
            }
            // Zeros in front do not count.
            self.count += u32::from(self.count > 0 || digit != 0);
            self.scale += i64::from(fraction);
        }
        self.any |= length > 0;
        length
    }

    fn finish(self, negative: bool) -> ParsedDecimal {
        let magnitude = if self.count <= 38 { self.small.into() } else { self.wide };
        let value: I256 = if negative { -magnitude.as_i256() } else { magnitude.as_i256() };
        let parsed = |value, overflow, rounded| ParsedDecimal { value, consumed: 0, overflow, rounded };
        let largest = || {
            let nines = Decimal::largest(MAX_PRECISION, 0);
            if negative { nines.neg() } else { nines }
        };
        if value == 0 {
            return parsed(Decimal::new(0, self.scale.clamp(0, MAX_SCALE.into()) as u8), false, self.lost);
        }
        if self.scale <= 0 {
            let zeros = -self.scale;
            if i64::from(self.count) + zeros > MAX_PRECISION.into() {
                return parsed(largest(), true, false);
            }
            let value = Decimal::from_unscaled(value * power(zeros as u32), 0).expect("at most 65 digits");
            return parsed(value, false, self.lost);
        }
        let drop = (self.scale - i64::from(MAX_SCALE)).max(i64::from(self.count) - i64::from(MAX_PRECISION)).max(0);
        if drop > self.scale {
            return parsed(largest(), true, false);
        }
        let mut scale = self.scale - drop;
        let mut shrunk = if drop == 0 { value } else { shrink_i256(value, drop.min(100) as u32, Mode::HalfAway) };
        if drop > 0 && shrunk.unsigned_abs() == power(MAX_PRECISION.into()).as_u256() {
            // 99…9.99 was rounded up to one digit more.
            if scale == 0 {
                return parsed(largest(), true, false);
            }
            shrunk /= I256::new(10);
            scale -= 1;
        }
        let rounded = self.lost || drop > 100 || drop > 0 && value % power(drop.min(76) as u32) != 0;
        parsed(Decimal::from_unscaled(shrunk, scale as u8).expect("at most 65 digits"), false, rounded)
    }
}

impl FromStr for Decimal {
    type Err = DecimalError;

    /// The whole text must be a number; spaces around it do not count.
    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let parsed = Decimal::parse_prefix(text.as_bytes());
        if parsed.consumed == 0 || !text.as_bytes()[parsed.consumed..].iter().all(u8::is_ascii_whitespace) {
            return Err(DecimalError::NotANumber);
        }
        if parsed.overflow { Err(DecimalError::Overflow) } else { Ok(parsed.value) }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0u8; MAX_TEXT_BYTES];
        let length = self.write_text(&mut buffer);
        f.write_str(std::str::from_utf8(&buffer[..length]).expect("digits"))
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Decimal> for String {
    fn from(value: Decimal) -> String {
        value.to_string()
    }
}

impl TryFrom<String> for Decimal {
    type Error = DecimalError;

    fn try_from(text: String) -> Result<Self, DecimalError> {
        text.parse()
    }
}
