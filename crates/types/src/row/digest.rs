//! A digest of a stored row, by which replicas are compared and memory is checked.
//!
//! Two rows have the same digest if they are of the same table, have the same layout and the same bytes; other rows
//! have another, but for chance (2^-128). The digest is for accidents, not for attackers: its seed is no secret.
//!
//! A large value goes in by its own hash, which was computed when the value was made: a change of a row with ten
//! documents reads none of them. So the digest of a row does not say that the bytes of its large values are intact;
//! [`LargeValue::is_intact`] does.

use super::large::{LargeValue, RowImage};
use crate::TableId;
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

/// Spreads table and layout over the seed (2^64 divided by the golden ratio): of rows of one to three bytes the hash takes
/// the seed in as it takes the bytes, so that a seed with one bit more would be a row with another byte.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl RowImage<'_> {
    /// See the module.
    #[inline]
    pub fn digest(&self, table: TableId, layout: u16) -> u128 {
        let place = u64::from(table.0) << 16 | u64::from(layout);
        let seed = place.wrapping_mul(SPREAD);
        let head = xxh3_128_with_seed(self.head, seed);
        self.beside.iter().fold(head, with_value)
    }
}

#[cold]
fn with_value(before: u128, value: &LargeValue) -> u128 {
    let mut both = [0; 32];
    both[..16].copy_from_slice(&before.to_le_bytes());
    both[16..].copy_from_slice(&value.hash().to_le_bytes());
    xxh3_128(&both)
}

impl LargeValue {
    /// Whether the bytes are those that the value was made of. Reads them all.
    pub fn is_intact(&self) -> bool {
        xxh3_128(self.bytes()) == self.hash()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::large::Account;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    struct Nobody;

    impl Account for Nobody {
        fn give_back(&self, _: u64) {}
    }

    fn large(bytes: &[u8]) -> LargeValue {
        LargeValue::new(bytes, Arc::new(Nobody))
    }

    #[test]
    fn every_bit_and_every_value_beside_changes_the_digest() {
        let row: Vec<u8> = (0..300).map(|i| (i * 7) as u8).collect();
        for length in [1, 16, 100, 240, 241, 300] {
            let head = &row[..length];
            let mut seen = BTreeSet::from([RowImage::from(head).digest(TableId(1), 0)]);
            for bit in 0..length * 8 {
                let mut flipped = head.to_vec();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(seen.insert(RowImage::from(&flipped).digest(TableId(1), 0)), "bit {bit} of {length} bytes");
            }
            assert!(seen.insert(RowImage::from(head).digest(TableId(2), 0)), "the table");
            assert!(seen.insert(RowImage::from(head).digest(TableId(1), 1)), "the layout");
            let values = [large(&[1; 9000]), large(&[2; 9000])];
            let swapped = [values[1].clone(), values[0].clone()];
            for beside in [&values[..1], &values[1..], &values[..], &swapped[..]] {
                assert!(seen.insert(RowImage { head, beside }.digest(TableId(1), 0)), "values beside");
            }
            let equal = [large(&[1; 9000]), large(&[2; 9000])];
            let digest = |beside| RowImage { head, beside }.digest(TableId(1), 0);
            assert_eq!(digest(&equal[..]), digest(&values[..]), "equal values are one");
        }
        let value = large(&[1; 9000]);
        assert!(value.is_intact());
        assert!((0..9000 * 8).step_by(777).all(|bit| !value.damaged(bit).is_intact()));
    }
}
