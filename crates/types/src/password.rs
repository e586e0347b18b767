//! How passwords of accounts are stored, as MySQL does: what a server checks, and what a client of the native API makes of its password to prove that it knows it.
//!
//! `caching_sha2_password` is SHA-256-crypt (Drepper's scheme, <https://www.akkadia.org/drepper/SHA-crypt.txt>) with MySQL's longer salt: slow to
//! compute on purpose, some milliseconds. `mysql_native_password` is SHA1(SHA1(password)).

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Characters of a digest of SHA-256-crypt.
pub const DIGEST_CHARS: usize = 43;
/// Rounds of a hash `$A$005$…`.
pub const ROUNDS: usize = 5000;
/// Longest password in bytes that MySQL takes for `caching_sha2_password`.
pub const MAX_PASSWORD: usize = 256;
/// The digits of a salt and of a digest.
pub const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// SHA1(SHA1(password)).
pub fn native(password: &[u8]) -> [u8; 20] {
    Sha1::digest(Sha1::digest(password)).into()
}

/// The digits of SHA-256-crypt.
pub fn sha256_crypt(password: &[u8], salt: &[u8], rounds: usize) -> [u8; DIGEST_CHARS] {
    let b = Sha256::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut a = Sha256::new().chain_update(password).chain_update(salt);
    for chunk in password.chunks(32) {
        a.update(&b[..chunk.len()]);
    }
    let mut n = password.len();
    while n > 0 {
        if n & 1 == 1 {
            a.update(b)
        } else {
            a.update(password)
        }
        n >>= 1;
    }
    let mut digest: [u8; 32] = a.finalize().into();

    let mut dp = Sha256::new();
    for _ in 0..password.len() {
        dp.update(password);
    }
    let dp = dp.finalize();
    let p: Vec<u8> = dp.iter().copied().cycle().take(password.len()).collect();
    let mut ds = Sha256::new();
    for _ in 0..16 + usize::from(digest[0]) {
        ds.update(salt);
    }
    let ds = ds.finalize();
    let s: Vec<u8> = ds.iter().copied().cycle().take(salt.len()).collect();

    for round in 0..rounds {
        let mut c = Sha256::new();
        if round & 1 == 1 {
            c.update(&p)
        } else {
            c.update(digest)
        }
        if round % 3 != 0 {
            c.update(&s);
        }
        if round % 7 != 0 {
            c.update(&p);
        }
        if round & 1 == 1 {
            c.update(digest)
        } else {
            c.update(&p)
        }
        digest = c.finalize().into();
    }

    // Three bytes make four characters, in the order that the algorithm prescribes.
    let mut out = [0; DIGEST_CHARS];
    let mut at = 0;
    let mut emit = |bytes: [u8; 3], chars: usize| {
        let mut word = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        for _ in 0..chars {
            out[at] = ALPHABET[(word & 63) as usize];
            word >>= 6;
            at += 1;
        }
    };
    let (mut x, mut y, mut z) = (0, 10, 20);
    for _ in 0..10 {
        emit([digest[x], digest[y], digest[z]], 4);
        (x, y, z) = (z + 1, x + 1, y + 1);
    }
    emit([0, digest[31], digest[30]], 3);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_algorithm_is_sha256_crypt() {
        // Vectors of Drepper's specification.
        let crypt = |password: &str, salt: &[u8], rounds| {
            String::from_utf8(sha256_crypt(password.as_bytes(), salt, rounds).to_vec()).unwrap()
        };
        assert_eq!(crypt("Hello world!", b"saltstring", 5000), "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5");
        assert_eq!(crypt("Hello world!", b"saltstringsaltst", 10_000), "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA");
        assert_eq!(
            crypt("a longer pässword with more than thirty-two bytes", b"abcdefghijklmnop", 5000),
            "7uTRAT864y6cVRs0KG5dZoH2qVgtTkv24iNGEAa.9GB"
        );
    }

    #[test]
    fn native_passwords_are_mysqls() {
        let text: String = native(b"password").iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(text, "2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
    }
}
