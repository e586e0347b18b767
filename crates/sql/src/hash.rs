//! Hash tables whose keys are values that clients choose.
//!
//! Groups, DISTINCT, set operations, joins by hash and remembered answers find rows by the bytes of values. Whoever knows the
//! hash function can choose values that all have one hash, and a table of them takes quadratic time. So the hash has a seed
//! that is drawn when the process starts ([`hashbrown::DefaultHashBuilder`]: foldhash, about as fast as a hash without one).
//! No answer depends on the order of such a table: nothing goes through one.
//!
//! Maps whose keys are our own numbers (columns, tables, steps) need no seed.

use hashbrown::DefaultHashBuilder;
use std::hash::BuildHasher;
use std::sync::LazyLock;

pub(crate) type KeySet = hashbrown::HashSet<Box<[u8]>, DefaultHashBuilder>;

pub(crate) type KeyMap<V> = hashbrown::HashMap<Box<[u8]>, V, DefaultHashBuilder>;

static SEEDED: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// A hash of a key, the same for all tables of the process.
#[inline]
pub(crate) fn hash_of(key: &[u8]) -> u64 {
    SEEDED.hash_one(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustc_hash::{FxBuildHasher, FxHashSet};

    /// Keys that begin with the first constant of Fx all have one hash there.
    fn chosen_keys() -> impl Iterator<Item = Vec<u8>> {
        (0..1000u64).map(|number| {
            let mut key = 0x243f_6a88_85a3_08d3_u64.to_le_bytes().to_vec();
            key.extend_from_slice(&number.to_le_bytes());
            key
        })
    }

    #[test]
    fn chosen_keys_do_not_collide() {
        let unseeded: FxHashSet<u64> = chosen_keys().map(|key| FxBuildHasher.hash_one(key.as_slice())).collect();
        assert_eq!(unseeded.len(), 1, "the attack that this is about");
        let hashes: FxHashSet<u64> = chosen_keys().map(|key| hash_of(&key)).collect();
        assert_eq!(hashes.len(), 1000);
        let low: FxHashSet<u64> = chosen_keys().map(|key| hash_of(&key) & 0xFFFF).collect();
        assert!(low.len() > 950, "{} of 1000 places", low.len());
    }
}
