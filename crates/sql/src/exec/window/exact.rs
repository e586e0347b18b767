//! Sums of doubles from which values can be taken away again.
//!
//! The sum is kept exactly, as a number of [`LIMBS`] times 32 bits that begins with the least bit of a double. Adding and
//! taking away are exact, so that the order does not matter, and the sum is rounded once, when it is asked for.

/// Enough for 2^78 values of the largest double.
const LIMBS: usize = 68;
/// Additions after which carries are brought up: a limb has room for so many.
const CARRY: u32 = 1 << 30;
/// The exponent of the least bit.
const LEAST: i32 = -1074;

#[derive(Clone)]
pub(super) struct ExactSum {
    /// 32 bits each, the least first, and what is to be carried on.
    limbs: [i64; LIMBS],
    additions: u32,
}

impl Default for ExactSum {
    fn default() -> Self {
        ExactSum { limbs: [0; LIMBS], additions: 0 }
    }
}

impl ExactSum {
    pub fn add(&mut self, value: f64) {
        self.count(value, 1);
    }

    pub fn remove(&mut self, value: f64) {
        self.count(value, -1);
    }

    fn count(&mut self, value: f64, sign: i64) {
        // A text may stand for more than a double holds.
        let value = if value.is_nan() { 0.0 } else { value.clamp(f64::MIN, f64::MAX) };
        let bits = value.to_bits();
        let exponent = (bits >> 52 & 0x7FF) as usize;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, place) = if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent - 1) };
        let sign = if value.is_sign_negative() { -sign } else { sign };
        let wide = u128::from(mantissa) << (place % 32);
        for part in 0..3 {
            self.limbs[place / 32 + part] += sign * i64::from((wide >> (32 * part)) as u32);
        }
        self.additions += 1;
        if self.additions == CARRY {
            self.carry();
        }
    }

    fn carry(&mut self) {
        let mut carry = 0;
        for limb in &mut self.limbs[..LIMBS - 1] {
            let total = *limb + carry;
            *limb = total & 0xFFFF_FFFF;
            carry = total >> 32;
        }
        self.limbs[LIMBS - 1] += carry;
        self.additions = 0;
    }

    /// The sum, rounded to the nearest double.
    pub fn value(&self) -> f64 {
        let mut sum = self.clone();
        sum.carry();
        let negative = sum.limbs[LIMBS - 1] < 0;
        if negative {
            sum.limbs.iter_mut().for_each(|limb| *limb = -*limb);
            sum.carry();
        }
        let Some(high) = sum.limbs.iter().rposition(|limb| *limb != 0) else { return 0.0 };
        let limb = |below: usize| high.checked_sub(below).map_or(0, |at| sum.limbs[at] as u128);
        let bits = limb(0) << 64 | limb(1) << 32 | limb(2);
        let sticky = high > 2 && sum.limbs[..high - 2].iter().any(|limb| *limb != 0);
        let exponent = 32 * (high as i32 - 2) + LEAST;
        let length = 128 - bits.leading_zeros() as i32;
        // Bits behind the mantissa, or behind the least bit.
        let drop = (length - 53).max(LEAST - exponent).max(0);
        let (mut mantissa, rest) = (bits >> drop, bits & ((1 << drop) - 1));
        let half = if drop == 0 { 1 } else { 1 << (drop - 1) };
        if drop > 0 && (rest > half || rest == half && (sticky || mantissa & 1 == 1)) {
            mantissa += 1;
        }
        let value = double(mantissa as u64, exponent + drop);
        if negative { -value } else { value }
    }
}

/// `mantissa * 2^exponent`, of at most 53 bits and exactly so, or 2^53 by rounding.
fn double(mut mantissa: u64, mut exponent: i32) -> f64 {
    if mantissa == 1 << 53 {
        mantissa >>= 1;
        exponent += 1;
    }
    while mantissa != 0 && mantissa < 1 << 52 && exponent > LEAST {
        mantissa <<= 1;
        exponent -= 1;
    }
    if mantissa < 1 << 52 {
        return f64::from_bits(mantissa);
    }
    let biased = exponent - LEAST + 1;
    if biased >= 0x7FF {
        return f64::INFINITY;
    }
    f64::from_bits((biased as u64) << 52 | mantissa & ((1 << 52) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(values: &[f64]) -> f64 {
        let mut sum = ExactSum::default();
        values.iter().for_each(|value| sum.add(*value));
        sum.value()
    }

    #[test]
    fn sums_are_exact() {
        assert_eq!(sum(&[]), 0.0);
        assert_eq!(sum(&[0.1, 0.2, 0.3]), 0.6);
        assert_eq!(sum(&[1e300, 1.0, -1e300]), 1.0);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[-f64::MAX, -f64::MAX]), f64::NEG_INFINITY);
        assert_eq!(sum(&[f64::from_bits(1), f64::from_bits(1)]), f64::from_bits(2));
        assert_eq!(sum(&[f64::MIN_POSITIVE, -f64::from_bits(1)]), f64::from_bits((1 << 52) - 1));
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0]), 1.0);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, 1e-300]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[-0.5, -0.25]), -0.75);
    }

    proptest! {
        /// Against whole numbers of 128 bits, which Rust rounds to the nearest double.
        #[test]
        fn sums_are_rounded_once(parts in proptest::collection::vec((any::<i64>(), 0u32..50), 1..40)) {
            let value = |(mantissa, shift): &(i64, u32)| (*mantissa >> 11) as f64 * 2f64.powi(*shift as i32 - 40);
            let exact: i128 = parts.iter().map(|(mantissa, shift)| i128::from(mantissa >> 11) << shift).sum();
            let values: Vec<f64> = parts.iter().map(value).collect();
            prop_assert_eq!(sum(&values), exact as f64 * 2f64.powi(-40));
        }

        #[test]
        fn what_is_taken_away_leaves_no_trace(bits in proptest::collection::vec(any::<u64>(), 2..40), kept in 0usize..40) {
            let values: Vec<f64> = bits.into_iter().map(f64::from_bits).filter(|value| value.is_finite()).collect();
            let kept = kept.min(values.len());
            let mut all = ExactSum::default();
            values.iter().for_each(|value| all.add(*value));
            values[kept..].iter().for_each(|value| all.remove(*value));
            prop_assert_eq!(all.value().to_bits(), sum(&values[..kept]).to_bits());
        }
    }
}
