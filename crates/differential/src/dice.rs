//! Everything random of a run comes from here, and all of it from one number.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub struct Dice(StdRng);

impl Dice {
    /// The dice of one part of a seed's work (the schema, a statement): parts do not disturb each other, so that
    /// statement 70 can be drawn without the 69 before.
    pub fn new(seed: u64, part: u64) -> Dice {
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31) ^ part.wrapping_mul(0xD1B5_4A32_D192_ED03);
        Dice(StdRng::seed_from_u64(mixed))
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.0.random_bool(probability)
    }

    /// 0 … n − 1.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }

    /// Both ends included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0.random_range(low..=high)
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// One of the items by its weight; `None` if all weigh nothing.
    pub fn weighted<'a, T>(&mut self, of: &'a [T], weight: impl Fn(&T) -> u32) -> Option<&'a T> {
        let total: u32 = of.iter().map(&weight).sum();
        if total == 0 {
            return None;
        }
        let mut left = self.0.random_range(0..total);
        of.iter().find(|item| {
            let w = weight(item);
            let found = left < w;
            left = left.saturating_sub(w);
            found
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_part_of_a_seed_throws_the_same() {
        let throws = |seed, part| {
            let mut dice = Dice::new(seed, part);
            (0..20).map(|_| dice.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(throws(7, 3), throws(7, 3));
        assert_ne!(throws(7, 3), throws(7, 4));
        assert_ne!(throws(7, 3), throws(8, 3));
    }

    #[test]
    fn weights_decide() {
        let mut dice = Dice::new(1, 1);
        let mut counts = [0; 3];
        for _ in 0..1000 {
            counts[*dice.weighted(&[0usize, 1, 2], |i| [1, 0, 9][*i]).expect("some weigh")] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!(counts[2] > counts[0] * 5, "{counts:?}");
        assert!(dice.weighted(&[1, 2], |_| 0).is_none());
    }
}
