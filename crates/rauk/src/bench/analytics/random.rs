//! A generator of numbers (SplitMix64) that gives the same sequence on every machine and in every version: data of a
//! seed and a scale never change.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Uniform, both ends included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        assert!(low <= high, "the range {low}..={high} is empty");
        let count = (high - low) as u128 + 1;
        low + ((u128::from(self.next()) * count) >> 64) as i64
    }

    pub fn one_of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.between(0, list.len() as i64 - 1) as usize]
    }
}
