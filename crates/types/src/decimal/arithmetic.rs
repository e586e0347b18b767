//! Addition, multiplication, division and remainder with MySQL's scales.
//!
//! Every operation tries `i128` first. Where even 256 bits are too few (a product of two long numbers, a dividend that
//! gets zeros appended), the work is done in steps that fit.

use super::rounding::{Mode, shrink_i128, shrink_i256};
use super::{Decimal, DecimalError, MAX_PRECISION, MAX_SCALE, POWERS, digits_u256, power};
use ethnum::I256;

/// Digits in one word of MySQL's decimal arithmetic; quotients are computed in whole words.
const WORD_DIGITS: u8 = 9;

impl Decimal {
    /// `value` / 10^`scale` with the fraction shortened until 65 digits suffice and the scale is at most 30.
    fn fitted(value: I256, scale: u32) -> Result<Decimal, DecimalError> {
        let too_many = digits_u256(value.unsigned_abs()).saturating_sub(MAX_PRECISION.into());
        let drop = too_many.max(scale.saturating_sub(MAX_SCALE.into()));
        if drop > scale {
            return Err(DecimalError::Overflow);
        }
        let mut scale = scale - drop;
        let mut value = if drop == 0 { value } else { shrink_i256(value, drop, Mode::HalfAway) };
        // Rounding 99…9 up makes one digit more.
        if scale > 0 && digits_u256(value.unsigned_abs()) > MAX_PRECISION.into() {
            value = shrink_i256(value, 1, Mode::HalfAway);
            scale -= 1;
        }
        Decimal::from_unscaled(value, scale as u8)
    }

    /// Both unscaled values at one common scale: the larger one, or less where the integer parts need the room; `mode` is for the digits that have none.
    fn aligned(&self, other: &Decimal, mode: Mode) -> (I256, I256, u32) {
        let wanted = u32::from(self.scale().max(other.scale()));
        // 76 digits fit 256 bits; one is kept for the carry.
        let room = 75 - u32::from(self.integer_digits().max(other.integer_digits()));
        let scale = wanted.min(room);
        let at_scale = |d: &Decimal| {
            let from = u32::from(d.scale());
            if from <= scale {
                d.unscaled() * power(scale - from)
            } else {
                shrink_i256(d.unscaled(), from - scale, mode)
            }
        };
        (at_scale(self), at_scale(other), scale)
    }

    /// Sum; its scale is the larger one.
    #[inline]
    pub fn checked_add(&self, other: &Decimal) -> Result<Decimal, DecimalError> {
        if let (Some(a), Some(b)) = (self.unscaled_i128(), other.unscaled_i128()) {
            let (s, t) = (self.scale(), other.scale());
            let sum = if s == t {
                a.checked_add(b)
            } else if s < t {
                a.checked_mul(POWERS[usize::from(t - s)]).and_then(|a| a.checked_add(b))
            } else {
                b.checked_mul(POWERS[usize::from(s - t)]).and_then(|b| a.checked_add(b))
            };
            if let Some(sum) = sum {
                return Ok(Decimal::new(sum, s.max(t)));
            }
        }
        // Cutting the sum towards zero leaves its rounding right: half of a later digit is a whole number of these.
        let (mut a, mut b, scale) = self.aligned(other, Mode::Floor);
        if (a + b).is_negative() {
            (a, b, _) = self.aligned(other, Mode::Ceiling);
        }
        Decimal::fitted(a + b, scale)
    }

    /// Difference; its scale is the larger one.
    #[inline]
    pub fn checked_sub(&self, other: &Decimal) -> Result<Decimal, DecimalError> {
        self.checked_add(&other.neg())
    }

    /// Product; its scale is the sum of the scales, at most 30.
    pub fn checked_mul(&self, other: &Decimal) -> Result<Decimal, DecimalError> {
        let scale = self.scale() + other.scale();
        if let (Some(a), Some(b)) = (self.unscaled_i128(), other.unscaled_i128())
            && let Some(product) = a.checked_mul(b)
        {
            let drop = u32::from(scale.saturating_sub(MAX_SCALE));
            return Ok(Decimal::new(shrink_i128(product, drop, Mode::HalfAway), scale.min(MAX_SCALE)));
        }
        if let Some(product) = self.unscaled().checked_mul(other.unscaled()) {
            return Decimal::fitted(product, scale.into());
        }
        // Over 256 bits: 77 digits or more. With all digits in reach of the scale gone there must remain at most 65.
        let negative = self.is_negative() != other.is_negative();
        let mut product = Product::new(self.unscaled().unsigned_abs(), other.unscaled().unsigned_abs());
        let digits = product.digits();
        let drop = digits.saturating_sub(MAX_PRECISION.into()).max(u32::from(scale.saturating_sub(MAX_SCALE)));
        if drop > scale.into() {
            return Err(DecimalError::Overflow);
        }
        // One digit is left for the rounding.
        product.drop_digits(drop - 1);
        let value = product.to_i256();
        Decimal::fitted(if negative { -value } else { value }, u32::from(scale) - (drop - 1))
    }

    /// Quotient with `increment` (MySQL's `div_precision_increment`, 4) digits more behind the point than the dividend,
    /// at most 30: the value that `a / b` shows. It is [`Decimal::checked_div_guarded`] rounded, so where MySQL has no guard digits
    /// the last digit is cut off, not rounded: `18.41549 / 5822` is 0.003163086.
    pub fn checked_div(&self, other: &Decimal, increment: u8) -> Result<Decimal, DecimalError> {
        Ok(self.checked_div_guarded(other, increment)?.rounded((self.scale() + increment).min(MAX_SCALE)))
    }

    /// Quotient with the guard digits that MySQL carries inside an expression: its arithmetic works in words of nine digits and cuts
    /// off there, and rounds to the scale of [`Decimal::checked_div`] only when the value leaves the expression. With it, `2 / 3 * 3` is 2.0000 as
    /// in MySQL, not 2.0001.
    pub fn checked_div_guarded(&self, other: &Decimal, increment: u8) -> Result<Decimal, DecimalError> {
        let words = |digits: u8| digits.div_ceil(WORD_DIGITS) * WORD_DIGITS;
        let (s, t) = (self.scale(), other.scale());
        let grown = words(s) - s + words(t) - t;
        let scale = words(words(s) + words(t) + increment.saturating_sub(grown));
        self.divide(other, scale.min(MAX_SCALE))
    }

    /// `a DIV b`: the integer part of the quotient.
    pub fn checked_div_integer(&self, other: &Decimal) -> Result<Decimal, DecimalError> {
        self.divide(other, 0)
    }

    /// The quotient cut off after `scale` digits, or after fewer where the integer part needs the room.
    fn divide(&self, other: &Decimal, scale: u8) -> Result<Decimal, DecimalError> {
        if other.is_zero() {
            return Err(DecimalError::DivisionByZero);
        }
        // The quotient is a * 10^shift / b, or a / (b * 10^-shift) for a DIV with a longer dividend.
        let shift = i32::from(scale) + i32::from(other.scale()) - i32::from(self.scale());
        if let (Some(a), Some(b)) = (self.unscaled_i128(), other.unscaled_i128())
            && let Some(&factor) = POWERS.get(shift.unsigned_abs() as usize)
        {
            let scaled =
                if shift >= 0 { a.checked_mul(factor).map(|a| (a, b)) } else { b.checked_mul(factor).map(|b| (a, b)) };
            // i128::MIN / -1 is the one quotient that i128 lacks.
            if let Some(quotient) = scaled.and_then(|(a, b)| a.checked_div(b)) {
                return Ok(Decimal::new(quotient, scale));
            }
        }
        let negative = self.is_negative() != other.is_negative();
        let (a, mut b) = (self.unscaled().abs(), other.unscaled().abs());
        let mut shift = shift;
        while shift < 0 {
            // The divisor outgrows every dividend long before it could overflow.
            if b > power(MAX_PRECISION.into()) {
                return Ok(Decimal::new(0, scale));
            }
            b *= I256::new(10);
            shift += 1;
        }
        let (mut quotient, mut rest, mut scale) = (a / b, a % b, u32::from(scale));
        let mut left = shift as u32;
        while left > 0 {
            // A rest has at most 66 digits and nine more fit 256 bits.
            let room = u32::from(MAX_PRECISION).saturating_sub(digits_u256(quotient.unsigned_abs()));
            let step = left.min(WORD_DIGITS.into()).min(room);
            if step == 0 {
                // No room for the whole fraction: it ends here.
                break;
            }
            rest *= power(step);
            quotient = quotient * power(step) + rest / b;
            rest %= b;
            left -= step;
        }
        if left > scale {
            return Err(DecimalError::Overflow);
        }
        scale -= left;
        Decimal::fitted(if negative { -quotient } else { quotient }, scale)
    }

    /// `a % b`: the sign is the dividend's, the scale the larger one.
    pub fn checked_rem(&self, other: &Decimal) -> Result<Decimal, DecimalError> {
        if other.is_zero() {
            return Err(DecimalError::DivisionByZero);
        }
        let (s, t) = (self.scale(), other.scale());
        let scale = s.max(t);
        if let (Some(a), Some(b)) = (self.unscaled_i128(), other.unscaled_i128())
            && let Some(a) = a.checked_mul(POWERS[usize::from(scale - s)])
            && let Some(b) = b.checked_mul(POWERS[usize::from(scale - t)])
        {
            // i128::MIN % -1 is zero, but overflows on its way.
            return Ok(Decimal::new(a.checked_rem(b).unwrap_or(0), scale));
        }
        let (a, mut b) = (self.unscaled(), other.unscaled().abs());
        for _ in t..scale {
            if b > power(MAX_PRECISION.into()) {
                return Ok(*self);
            }
            b *= I256::new(10);
        }
        // The divisor may have 66 digits now, so one digit at a time.
        let mut rest = a % b;
        for _ in s..scale {
            rest = rest * 10 % b;
        }
        Decimal::fitted(rest, scale.into())
    }

    pub fn neg(&self) -> Decimal {
        match self.unscaled_i128().and_then(i128::checked_neg) {
            Some(small) => Decimal::new(small, self.scale()),
            None => Decimal::from_unscaled(-self.unscaled(), self.scale()).expect("as many digits as before"),
        }
    }

    pub fn abs(&self) -> Decimal {
        if self.is_negative() { self.neg() } else { *self }
    }
}

impl std::ops::Neg for Decimal {
    type Output = Decimal;

    fn neg(self) -> Decimal {
        Decimal::neg(&self)
    }
}

/// An unsigned product of up to 512 bits, in little-endian limbs.
struct Product([u32; 16]);

impl Product {
    fn new(a: ethnum::U256, b: ethnum::U256) -> Self {
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        let limb = |bytes: &[u8; 32], i: usize| {
            u64::from(u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().expect("four bytes")))
        };
        let mut limbs = [0u32; 16];
        for i in 0..8 {
            let mut carry = 0u64;
            for j in 0..8 {
                let sum = limb(&a, i) * limb(&b, j) + u64::from(limbs[i + j]) + carry;
                limbs[i + j] = sum as u32;
                carry = sum >> 32;
            }
            limbs[i + 8] = carry as u32;
        }
        Product(limbs)
    }

    /// Divides by `divisor`, forgets the rest.
    fn divide(&mut self, divisor: u32) {
        let mut rest = 0u64;
        for limb in self.0.iter_mut().rev() {
            let value = rest << 32 | u64::from(*limb);
            *limb = (value / u64::from(divisor)) as u32;
            rest = value % u64::from(divisor);
        }
    }

    fn drop_digits(&mut self, digits: u32) {
        for _ in 0..digits / 9 {
            self.divide(1_000_000_000);
        }
        self.divide(10u32.pow(digits % 9));
    }

    fn digits(&self) -> u32 {
        let mut rest = Product(self.0);
        let mut digits = 0;
        while rest.0[8..].iter().any(|limb| *limb != 0) {
            rest.divide(1_000_000_000);
            digits += 9;
        }
        digits + digits_u256(rest.low_half())
    }

    fn low_half(&self) -> ethnum::U256 {
        let mut bytes = [0u8; 32];
        for (chunk, limb) in bytes.chunks_exact_mut(4).zip(&self.0) {
            chunk.copy_from_slice(&limb.to_le_bytes());
        }
        ethnum::U256::from_le_bytes(bytes)
    }

    /// Panics when more than 255 bits are set.
    fn to_i256(&self) -> I256 {
        assert!(self.0[8..].iter().all(|limb| *limb == 0), "the product was not shortened enough");
        self.low_half().try_into().expect("below 10^67")
    }
}
