//! Fewer digits: rounding half away from zero, truncating, floor and ceiling, and changes of scale.

use super::{Decimal, DecimalError, MAX_PRECISION, POWERS, power};
use ethnum::I256;

/// What happens to the digits that go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    HalfAway,
    Truncate,
    Floor,
    Ceiling,
}

fn carry(mode: Mode, negative: bool, dropped: bool, at_least_half: bool) -> i8 {
    let away = match mode {
        Mode::HalfAway => at_least_half,
        Mode::Truncate => false,
        Mode::Floor => dropped && negative,
        Mode::Ceiling => dropped && !negative,
    };
    match (away, negative) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => -1,
    }
}

/// `value` / 10^`drop`.
pub(super) fn shrink_i128(value: i128, drop: u32, mode: Mode) -> i128 {
    let Some(&divisor) = POWERS.get(drop as usize) else {
        // Below half of 10^39 whatever the value.
        return carry(mode, value < 0, value != 0, false).into();
    };
    let (quotient, rest) = (value / divisor, value % divisor);
    let half = rest != 0 && rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs();
    quotient + i128::from(carry(mode, value < 0, rest != 0, half))
}

/// `value` / 10^`drop`.
pub(super) fn shrink_i256(value: I256, drop: u32, mode: Mode) -> I256 {
    if let Ok(small) = i128::try_from(value) {
        return shrink_i128(small, drop, mode).into();
    }
    if drop > 76 {
        return carry(mode, value.is_negative(), true, false).into();
    }
    let divisor = power(drop);
    let (quotient, rest) = (value / divisor, value % divisor);
    let half = rest != 0 && rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs();
    quotient + I256::from(carry(mode, value.is_negative(), rest != 0, half))
}

impl Decimal {
    fn shrink(&self, scale: u8, mode: Mode) -> Decimal {
        let drop = u32::from(self.scale() - scale);
        match self.unscaled_i128() {
            Some(small) => Decimal::new(shrink_i128(small, drop, mode), scale),
            // Rounding up can add a digit, but one at least was dropped.
            None => Decimal::from_unscaled(shrink_i256(self.unscaled(), drop, mode), scale).expect("no more digits"),
        }
    }

    /// At most `scale` digits behind the point; a number with fewer stays as it is.
    pub fn rounded(&self, scale: u8) -> Decimal {
        if scale >= self.scale() { *self } else { self.shrink(scale, Mode::HalfAway) }
    }

    /// At most `scale` digits behind the point, the others cut off.
    pub fn truncated(&self, scale: u8) -> Decimal {
        if scale >= self.scale() { *self } else { self.shrink(scale, Mode::Truncate) }
    }

    /// Exactly `scale` digits behind the point: rounded, or filled with zeros. `Overflow` when there is no room for the zeros.
    pub fn rescale(&self, scale: u8) -> Result<Decimal, DecimalError> {
        let from = self.scale();
        if scale <= from {
            return Ok(self.rounded(scale));
        }
        let more = u32::from(scale - from);
        if let Some(small) = self.unscaled_i128()
            && let Some(value) = small.checked_mul(POWERS[more as usize])
        {
            return Ok(Decimal::new(value, scale));
        }
        if self.digits() + more > MAX_PRECISION.into() {
            return Err(DecimalError::Overflow);
        }
        Decimal::from_unscaled(self.unscaled() * power(more), scale)
    }

    /// Rounded and filled to `scale` and within DECIMAL(`precision`, `scale`); `Overflow` otherwise.
    pub fn to_precision(&self, precision: u8, scale: u8) -> Result<Decimal, DecimalError> {
        let value = self.rescale(scale)?;
        if value.digits() > precision.into() { Err(DecimalError::Overflow) } else { Ok(value) }
    }

    /// The largest integer not above.
    pub fn floor(&self) -> Decimal {
        self.shrink(0, Mode::Floor)
    }

    /// The smallest integer not below.
    pub fn ceil(&self) -> Decimal {
        self.shrink(0, Mode::Ceiling)
    }

    /// ROUND(x, places): negative places round before the point (`ROUND(155, -1)` is 160). Never adds digits to the fraction: where the type
    /// of the result has more, as MySQL's has `places`, [`Decimal::rescale`] does.
    pub fn round(&self, places: i32) -> Result<Decimal, DecimalError> {
        self.at_places(places, Mode::HalfAway)
    }

    /// TRUNCATE(x, places): as [`Decimal::round`], cutting off.
    pub fn truncate(&self, places: i32) -> Decimal {
        self.at_places(places, Mode::Truncate).expect("truncating makes no number larger")
    }

    fn at_places(&self, places: i32, mode: Mode) -> Result<Decimal, DecimalError> {
        if places >= 0 {
            let scale = places.min(u8::MAX.into()) as u8;
            return Ok(if scale >= self.scale() { *self } else { self.shrink(scale, mode) });
        }
        let zeros = places.unsigned_abs();
        if zeros > MAX_PRECISION.into() {
            return Ok(Decimal::ZERO);
        }
        let rounded = shrink_i256(self.unscaled(), u32::from(self.scale()) + zeros, mode);
        if rounded == 0 {
            return Ok(Decimal::ZERO);
        }
        // The value has at most 65 digits and rounding adds at most one.
        rounded
            .checked_mul(power(zeros))
            .ok_or(DecimalError::Overflow)
            .and_then(|value| Decimal::from_unscaled(value, 0))
    }
}
