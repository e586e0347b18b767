//! Exact decimals: MySQL's DECIMAL(65,30).
//!
//! A [`Decimal`] is an unscaled integer and a scale: 1.50 is 150 with scale 2. It is `Copy` and 28 bytes in every width, so that it
//! travels by value through rows and expressions. Almost every number fits an `i128` (38 digits), and all operations try
//! that first; wider ones (up to 65 digits, 216 bits) go through [`ethnum::I256`].
//!
//! Layout of the 28 bytes: the top byte of `high` has the scale (5 bits) and the flags `WIDE` and `NEGATIVE`. Without `WIDE`,
//! `low` is the unscaled value as an `i128` in little-endian limbs and the rest of `high` is zero. With it, `low` and the other 88 bits of `high`
//! are the magnitude. A value that fits an `i128` is never stored wide, so equal (value, scale) pairs have equal representations.
//!
//! `==`, `Ord` and `Hash` are numeric: 1.0 equals 1.00 and hashes alike. [`Decimal::identical`] also compares the scale.
//!
//! Rounding is half away from zero everywhere. Results never have more than 65 digits: when the integer part leaves no room for the
//! fraction, the fraction gives way, and only an integer part over 65 digits is [`DecimalError::Overflow`] (error 1690).

mod arithmetic;
mod rounding;
mod text;

#[cfg(test)]
mod oracle;

pub use text::ParsedDecimal;

use ethnum::{I256, U256};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// Most digits of a decimal, before and behind the point together.
pub const MAX_PRECISION: u8 = 65;
/// Most digits behind the point.
pub const MAX_SCALE: u8 = 30;

const SCALE_MASK: u32 = 0x1F;
const WIDE: u32 = 0x20;
const NEGATIVE: u32 = 0x40;
const META_SHIFT: u32 = 24;

/// An exact decimal number with a scale.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Decimal {
    low: [u32; 4],
    high: [u32; 3],
}

/// Why an operation on decimals has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    #[error("decimal value needs more than 65 digits")]
    Overflow,
    #[error("division by zero")]
    DivisionByZero,
    #[error("not a decimal number")]
    NotANumber,
}

const fn powers_of_ten() -> [i128; 39] {
    let mut powers = [1i128; 39];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
}

/// 10^0 to 10^38.
static POWERS: [i128; 39] = powers_of_ten();

/// 10^`exponent` for exponents up to 76.
fn power(exponent: u32) -> I256 {
    match exponent {
        0..=38 => I256::from(POWERS[exponent as usize]),
        39..=76 => I256::from(POWERS[38]) * I256::from(POWERS[exponent as usize - 38]),
        _ => unreachable!("10^{exponent} does not fit 256 bits"),
    }
}

/// Decimal digits of a magnitude; zero has none.
fn digits_u128(value: u128) -> u32 {
    if value == 0 { 0 } else { value.ilog10() + 1 }
}

fn digits_u256(value: U256) -> u32 {
    if *value.high() == 0 {
        return digits_u128(*value.low());
    }
    let mut digits = 39;
    while digits <= 76 && value >= power(digits).as_u256() {
        digits += 1;
    }
    digits
}

impl Decimal {
    pub const ZERO: Decimal = Decimal::new(0, 0);

    /// `unscaled` / 10^`scale`. Panics when `scale` is over 30.
    #[inline]
    pub const fn new(unscaled: i128, scale: u8) -> Self {
        assert!(scale <= MAX_SCALE, "scale over 30");
        let bits = unscaled as u128;
        Decimal {
            low: [bits as u32, (bits >> 32) as u32, (bits >> 64) as u32, (bits >> 96) as u32],
            high: [0, 0, (scale as u32) << META_SHIFT],
        }
    }

    /// `unscaled` / 10^`scale` for any width; `Overflow` beyond 65 digits. Panics when `scale` is over 30.
    pub fn from_unscaled(unscaled: I256, scale: u8) -> Result<Self, DecimalError> {
        if let Ok(small) = i128::try_from(unscaled) {
            return Ok(Decimal::new(small, scale));
        }
        assert!(scale <= MAX_SCALE, "scale over 30");
        let magnitude = unscaled.unsigned_abs();
        if magnitude >= power(MAX_PRECISION.into()).as_u256() {
            return Err(DecimalError::Overflow);
        }
        let mut decimal = Decimal::new(*magnitude.low() as i128, scale);
        let high = *magnitude.high();
        let meta = scale as u32 | WIDE | if unscaled.is_negative() { NEGATIVE } else { 0 };
        decimal.high = [high as u32, (high >> 32) as u32, (high >> 64) as u32 | meta << META_SHIFT];
        Ok(decimal)
    }

    #[inline]
    fn meta(&self) -> u32 {
        self.high[2] >> META_SHIFT
    }

    #[inline]
    fn low_bits(&self) -> u128 {
        let [a, b, c, d] = self.low;
        (a as u128) | (b as u128) << 32 | (c as u128) << 64 | (d as u128) << 96
    }

    /// Digits behind the point.
    #[inline]
    pub fn scale(&self) -> u8 {
        (self.meta() & SCALE_MASK) as u8
    }

    /// The unscaled value when it fits an `i128`.
    #[inline]
    pub fn unscaled_i128(&self) -> Option<i128> {
        (self.meta() & WIDE == 0).then(|| self.low_bits() as i128)
    }

    /// The value times 10^scale.
    pub fn unscaled(&self) -> I256 {
        if let Some(small) = self.unscaled_i128() {
            return small.into();
        }
        let high = self.high[0] as u128 | (self.high[1] as u128) << 32 | ((self.high[2] & 0x00FF_FFFF) as u128) << 64;
        let magnitude = U256::from_words(high, self.low_bits()).as_i256();
        if self.meta() & NEGATIVE != 0 { -magnitude } else { magnitude }
    }

    pub fn is_zero(&self) -> bool {
        self.unscaled_i128() == Some(0)
    }

    pub fn is_negative(&self) -> bool {
        match self.unscaled_i128() {
            Some(small) => small < 0,
            None => self.meta() & NEGATIVE != 0,
        }
    }

    /// Digits of the unscaled value; 0 for zero.
    fn digits(&self) -> u32 {
        match self.unscaled_i128() {
            Some(small) => digits_u128(small.unsigned_abs()),
            None => digits_u256(self.unscaled().unsigned_abs()),
        }
    }

    /// Digits it takes to write the number, those behind the point included: 0.05 has two, 0 has one.
    pub fn precision(&self) -> u8 {
        (self.digits() as u8).max(self.scale()).max(1)
    }

    /// Digits before the point; 0 for 0.05.
    pub fn integer_digits(&self) -> u8 {
        (self.digits() as u8).saturating_sub(self.scale())
    }

    /// Whether DECIMAL(`precision`, `scale`) holds the value exactly as it is.
    pub fn fits(&self, precision: u8, scale: u8) -> bool {
        self.scale() <= scale && self.integer_digits() <= precision - scale
    }

    /// The largest value of DECIMAL(`precision`, `scale`), `999.99` for (5, 2); MySQL clips to it outside strict mode.
    pub fn largest(precision: u8, scale: u8) -> Self {
        Decimal::from_unscaled(power(precision.into()) - 1, scale).expect("a precision is at most 65")
    }

    /// Same number and same scale: 1.0 is not identical to 1.00.
    pub fn identical(&self, other: &Decimal) -> bool {
        self.low == other.low && self.high == other.high
    }

    /// Without zeros at the end of the fraction: the one form that all equal numbers share.
    pub fn normalized(&self) -> Self {
        if let Some(mut small) = self.unscaled_i128() {
            let mut scale = self.scale();
            while scale > 0 && small % 10 == 0 {
                small /= 10;
                scale -= 1;
            }
            return Decimal::new(small, scale);
        }
        let (mut wide, mut scale) = (self.unscaled(), self.scale());
        while scale > 0 && wide % 10 == 0 {
            wide /= I256::new(10);
            scale -= 1;
        }
        Decimal::from_unscaled(wide, scale).expect("fewer digits than before")
    }

    /// The exact power of ten above the number: 0.05 has -1, 123.4 has 3. Zero has no meaning here.
    fn magnitude(&self) -> i32 {
        self.digits() as i32 - i32::from(self.scale())
    }

    fn compare_slow(&self, other: &Self) -> Ordering {
        let signs = (self.signum(), other.signum());
        if signs.0 != signs.1 {
            return signs.0.cmp(&signs.1);
        }
        if signs.0 == 0 {
            return Ordering::Equal;
        }
        // With equal magnitudes the common scale needs no more digits than the number that has it now.
        let by_size = self.magnitude().cmp(&other.magnitude()).then_with(|| {
            let scale = self.scale().max(other.scale());
            let aligned = |d: &Decimal| d.unscaled().unsigned_abs() * power((scale - d.scale()).into()).as_u256();
            aligned(self).cmp(&aligned(other))
        });
        if signs.0 < 0 { by_size.reverse() } else { by_size }
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i32 {
        match self.unscaled_i128() {
            Some(small) => small.signum() as i32,
            None if self.is_negative() => -1,
            None => 1,
        }
    }
}

impl Default for Decimal {
    fn default() -> Self {
        Decimal::ZERO
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Some(a), Some(b)) = (self.unscaled_i128(), other.unscaled_i128()) {
            let (s, t) = (self.scale(), other.scale());
            if s == t {
                return a.cmp(&b);
            }
            let aligned = if s < t {
                a.checked_mul(POWERS[usize::from(t - s)]).map(|a| (a, b))
            } else {
                b.checked_mul(POWERS[usize::from(s - t)]).map(|b| (a, b))
            };
            if let Some((a, b)) = aligned {
                return a.cmp(&b);
            }
        }
        self.compare_slow(other)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let normal = self.normalized();
        normal.low.hash(state);
        normal.high.hash(state);
    }
}

macro_rules! from_integers {
    ($($t:ty),*) => {$(
        impl From<$t> for Decimal {
            fn from(value: $t) -> Self {
                Decimal::new(value.into(), 0)
            }
        }
    )*};
}
from_integers!(i32, u32, i64, u64, i128);

impl Decimal {
    /// From a double by its shortest decimal form (0.1 gives 0.1), as MySQL does. `NotANumber` for infinities and NaN.
    pub fn from_f64(value: f64) -> Result<Self, DecimalError> {
        if !value.is_finite() {
            return Err(DecimalError::NotANumber);
        }
        let mut text = crate::format::Digits::new();
        text.push_shortest(value);
        let parsed = Decimal::parse_prefix(text.as_bytes());
        if parsed.overflow { Err(DecimalError::Overflow) } else { Ok(parsed.value) }
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        // Both are exact doubles, so one division rounds once.
        if let Some(small) = self.unscaled_i128()
            && small.unsigned_abs() < 1 << 53
            && self.scale() <= 22
        {
            return small as f64 / POWERS[usize::from(self.scale())] as f64;
        }
        let mut buffer = [0u8; text::MAX_TEXT_BYTES];
        let length = self.write_text(&mut buffer);
        std::str::from_utf8(&buffer[..length]).expect("digits").parse().expect("a decimal is a number")
    }

    /// The nearest integer, halves away from zero; `None` beyond `i128`.
    pub fn to_i128(&self) -> Option<i128> {
        self.rounded(0).unscaled_i128()
    }

    /// The nearest integer, halves away from zero; `None` when it is no `i64`.
    pub fn to_i64(&self) -> Option<i64> {
        self.to_i128()?.try_into().ok()
    }

    /// The nearest integer, halves away from zero; `None` when it is no `u64`.
    pub fn to_u64(&self) -> Option<u64> {
        self.to_i128()?.try_into().ok()
    }
}
