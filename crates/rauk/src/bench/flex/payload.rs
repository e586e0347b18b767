//! The bytes of a record: they say whose they are.
//!
//! The first eight bytes are the key and the version of the write (16 bits), the last eight a mixture of the first: so a record that belongs to another
//! key, was cut, or is half of one write and half of another is noticed, at the cost of two comparisons. What is between never changes. A record of fewer than 16
//! bytes has the first part only.

/// Keys are below this, so that key and version fit into eight bytes.
pub const MAX_KEY: u64 = 1 << 48;
pub const MIN_SIZE: usize = 8;

/// A well mixed number (splitmix64's last step).
#[inline]
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A record whose first and last part are still to be stamped.
pub fn blank(size: usize) -> Vec<u8> {
    assert!(size >= MIN_SIZE, "the command line bounds it");
    (0..size).map(|i| b'a' + (i % 23) as u8).collect()
}

#[inline]
pub fn stamp(payload: &mut [u8], key: u64, version: u16) {
    let head = key << 16 | u64::from(version);
    payload[..8].copy_from_slice(&head.to_le_bytes());
    let size = payload.len();
    if size >= 16 {
        payload[size - 8..].copy_from_slice(&mix(head).to_le_bytes());
    }
}

/// Whether these bytes were stamped with this key.
#[inline]
pub fn belongs_to(payload: &[u8], key: u64) -> bool {
    let Some(head) = payload.first_chunk() else { return false };
    let head = u64::from_le_bytes(*head);
    let tail = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes) == mix(head);
    head >> 16 == key && (payload.len() < 16 || payload.last_chunk().is_some_and(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_records_of_the_key_belong_to_it() {
        for size in [8, 9, 15, 16, 17, 100, 2000] {
            let mut payload = blank(size);
            stamp(&mut payload, 123_456_789, 7);
            assert!(belongs_to(&payload, 123_456_789), "{size}");
            assert!(!belongs_to(&payload, 123_456_788), "{size}");
            assert!(!belongs_to(&payload[..7], 123_456_789), "{size}");
            // One byte less than 16 is a short record, which has no last part; its length tells.
            if size > 16 {
                assert!(!belongs_to(&payload[..size - 1], 123_456_789), "{size}: cut");
            }
            if size >= 16 {
                let mut other = blank(size);
                stamp(&mut other, 123_456_789, 8);
                other[size - 8..].copy_from_slice(&payload[size - 8..]);
                assert!(!belongs_to(&other, 123_456_789), "{size}: half of one, half of another");
            }
        }
    }
}
