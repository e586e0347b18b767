//! `caching_sha2_password`.
//!
//! What is stored is `$A$005$`, a salt of 20 bytes and the 43 characters of SHA-256-crypt with 5 000 rounds: slow to check on purpose
//! (a few milliseconds). So the server remembers SHA256(SHA256(password)) of accounts that have shown their password once ([`Cache`]);
//! with it, a proof of 32 bytes is checked in a microsecond. The cache is in memory only, bounded, and an entry holds for one stored hash.
use super::{NONCE, equal, random};
use ::sha2::{Digest, Sha256};
use parking_lot::Mutex;
pub use rauk_types::password::MAX_PASSWORD;
use rauk_types::password::{ALPHABET, DIGEST_CHARS, ROUNDS, sha256_crypt};
use std::collections::HashMap;

const SALT: usize = 20;
const ROUND_UNIT: usize = 1000;
const PREFIX: &[u8] = b"$A$";

/// `$A$005$…` of a password with a fresh salt; the empty password is the empty string. Takes some milliseconds.
pub fn hash(password: &[u8]) -> String {
    if password.is_empty() {
        return String::new();
    }
    let salt = random::<SALT>().map(|byte| ALPHABET[usize::from(byte & 63)]);
    let mut text = String::from("$A$005$");
    text.push_str(std::str::from_utf8(&salt).expect("the alphabet is ASCII"));
    text.push_str(std::str::from_utf8(&sha256_crypt(password, &salt, ROUNDS)).expect("the alphabet is ASCII"));
    text
}

/// Splits a stored hash into rounds, salt and digest.
fn decode(stored: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let rest = stored.strip_prefix(PREFIX)?;
    let (rounds, rest) = rest.split_at_checked(3)?;
    let rounds = usize::from_str_radix(std::str::from_utf8(rounds).ok()?, 16).ok()?;
    let (salt, digest) = rest.strip_prefix(b"$")?.split_at_checked(SALT)?;
    (digest.len() == DIGEST_CHARS && (1..=0xFFF).contains(&rounds)).then_some((rounds * ROUND_UNIT, salt, digest))
}

/// Whether a string has the form of a stored hash.
pub fn is_hash(text: &[u8]) -> bool {
    decode(text).is_some()
}

/// Whether `password` is the one behind `stored`. Takes some milliseconds.
pub fn verify_password(stored: &[u8], password: &[u8]) -> bool {
    if password.len() > MAX_PASSWORD {
        return false;
    }
    let Some((rounds, salt, digest)) = decode(stored) else { return false };
    equal(&sha256_crypt(password, salt, rounds), digest)
}

/// SHA256(SHA256(password)): what the fast path needs to know.
pub type Digest2 = [u8; 32];

pub fn digest2(password: &[u8]) -> Digest2 {
    Sha256::digest(Sha256::digest(password)).into()
}

/// Whether `response` proves the password behind `known`.
pub fn verify_fast(known: &Digest2, nonce: &[u8; NONCE], response: &[u8]) -> bool {
    let Ok(response) = <[u8; 32]>::try_from(response) else { return false };
    let mask = Sha256::new().chain_update(known).chain_update(nonce).finalize();
    let once: [u8; 32] = std::array::from_fn(|i| response[i] ^ mask[i]);
    equal(&Sha256::digest(once), known)
}

/// Accounts that have shown their password since the start.
#[derive(Default)]
pub struct Cache {
    entries: Mutex<HashMap<(String, String), (String, Digest2)>>,
}

impl Cache {
    /// Accounts that are remembered; beyond that, all are forgotten and learned again.
    const ENTRIES: usize = 10_000;

    /// `host` is the account's pattern, `stored` its present hash: after a change of password nothing is found.
    pub fn get(&self, user: &str, host: &str, stored: &str) -> Option<Digest2> {
        let entries = self.entries.lock();
        let (hash, digest) = entries.get(&(user.to_owned(), host.to_owned()))?;
        (hash == stored).then_some(*digest)
    }

    pub fn put(&self, user: &str, host: &str, stored: &str, digest: Digest2) {
        let mut entries = self.entries.lock();
        if entries.len() >= Self::ENTRIES {
            entries.clear();
        }
        entries.insert((user.to_owned(), host.to_owned()), (stored.to_owned(), digest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mysql_common::auth::plugins::caching_sha2_password::scramble_sha256;

    #[test]
    fn a_hash_that_mysql_made() {
        // The published example of this format (hashcat, mode 7401): password `hashcat`.
        let salt = [
            0xF9, 0xCC, 0x98, 0xCE, 0x08, 0x89, 0x29, 0x24, 0xF5, 0x0A, 0x21, 0x3B, 0x6B, 0xC5, 0x71, 0xA2, 0xC1, 0x17,
            0x78, 0xC5,
        ];
        let mut stored = b"$A$005$".to_vec();
        stored.extend_from_slice(&salt);
        stored.extend_from_slice(b"bTy95Y99eAME1dwEkHOA1ndHGBWz.1bxSSRkuTXFGV/");
        assert!(verify_password(&stored, b"hashcat"));
        assert!(!verify_password(&stored, b"hashcas"));
    }

    #[test]
    fn hashes_verify() {
        for password in [&b"x"[..], b"secret", &[b'p'; 64], "pässwörd".as_bytes()] {
            let stored = hash(password);
            assert_eq!(stored.len(), 70);
            assert!(is_hash(stored.as_bytes()));
            assert!(verify_password(stored.as_bytes(), password));
            assert!(!verify_password(stored.as_bytes(), b"other"));
        }
        assert_ne!(hash(b"x"), hash(b"x"), "salted");
        for bad in [&b""[..], b"$A$", b"$A$zzz$aaaaaaaaaaaaaaaaaaaabbbb", b"$B$005$"] {
            assert!(!verify_password(bad, b"x"));
        }
    }

    #[test]
    fn fast_proofs_and_their_cache() {
        let nonce = crate::auth::nonce();
        let known = digest2(b"secret");
        let good = scramble_sha256(&nonce, b"secret").unwrap();
        assert!(verify_fast(&known, &nonce, &good));
        assert!(!verify_fast(&known, &nonce, &scramble_sha256(&nonce, b"secreT").unwrap()));
        assert!(!verify_fast(&known, &[1; 20], &good));
        assert!(!verify_fast(&known, &nonce, b""));

        let cache = Cache::default();
        cache.put("u", "%", "hash1", known);
        assert_eq!(cache.get("u", "%", "hash1"), Some(known));
        assert_eq!(cache.get("u", "%", "hash2"), None);
        assert_eq!(cache.get("u", "localhost", "hash1"), None);
    }
}
