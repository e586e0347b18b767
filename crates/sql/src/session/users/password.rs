//! Password hashes as MySQL stores them in `authentication_string`.
//!
//! `mysql_native_password`: `*` and the hex of SHA1(SHA1(password)). `caching_sha2_password`: `$A$005$`, 20 bytes of salt, and the 43 characters of
//! SHA-256-crypt (Drepper's scheme) with 5 000 rounds. An empty password has an empty hash.

use sha1::Sha1;
use sha2::{Digest, Sha256};

pub const CACHING_SHA2: &str = "caching_sha2_password";
pub const NATIVE: &str = "mysql_native_password";
const ROUNDS: usize = 5000;
const SALT_BYTES: usize = 20;

/// The hash for a plugin that Rauk has; `random` gives the salt's bits.
pub fn hash(plugin: &str, password: &str, random: &mut dyn FnMut() -> u64) -> String {
    if password.is_empty() {
        return String::new();
    }
    match plugin {
        NATIVE => native(password),
        _ => {
            let mut salt = [0u8; SALT_BYTES];
            for byte in &mut salt {
                // Printable, and neither `$` nor a quote, so that the hash can be dumped and restored as text.
                const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
                *byte = ALPHABET[(random() >> 58) as usize];
            }
            caching_sha2(password, &salt)
        }
    }
}

/// Whether text may stand behind IDENTIFIED WITH plugin AS.
pub fn is_hash(plugin: &str, hash: &str) -> bool {
    if hash.is_empty() {
        return true;
    }
    match plugin {
        NATIVE => hash.len() == 41 && hash.starts_with('*') && hash[1..].bytes().all(|b| b.is_ascii_hexdigit()),
        _ => hash.len() == 7 + SALT_BYTES + 43 && hash.starts_with("$A$005$"),
    }
}

/// Whether a hash is that of a password.
pub fn matches(plugin: &str, hash: &str, password: &str) -> bool {
    if hash.is_empty() || password.is_empty() {
        return hash.is_empty() && password.is_empty();
    }
    if plugin == NATIVE {
        return hash == native(password);
    }
    let salt = hash.as_bytes().get(7..7 + SALT_BYTES).and_then(|salt| salt.try_into().ok());
    salt.is_some_and(|salt: &[u8; SALT_BYTES]| {
        std::str::from_utf8(salt).is_ok() && hash == caching_sha2(password, salt)
    })
}

fn native(password: &str) -> String {
    let stage = Sha1::digest(Sha1::digest(password.as_bytes()));
    let mut out = String::from("*");
    for byte in stage {
        out.push_str(&format!("{byte:02X}"));
    }
    out
}

fn caching_sha2(password: &str, salt: &[u8; SALT_BYTES]) -> String {
    let salt_text = std::str::from_utf8(salt).expect("the salt is printable");
    format!("$A$005${salt_text}{}", sha256_crypt(password.as_bytes(), salt, ROUNDS))
}

/// The 43 characters of SHA-256-crypt (https://www.akkadia.org/drepper/SHA-crypt.txt).
fn sha256_crypt(password: &[u8], salt: &[u8], rounds: usize) -> String {
    let alternate = Sha256::new().chain_update(password).chain_update(salt).chain_update(password).finalize();

    let repeated = |digest: &[u8], length: usize| -> Vec<u8> { digest.iter().copied().cycle().take(length).collect() };

    let mut first = Sha256::new().chain_update(password).chain_update(salt);
    first.update(repeated(&alternate, password.len()));
    let mut bits = password.len();
    while bits > 0 {
        if bits & 1 == 1 {
            first.update(alternate);
        } else {
            first.update(password);
        }
        bits >>= 1;
    }
    let mut digest = first.finalize();

    let mut of_password = Sha256::new();
    for _ in 0..password.len() {
        of_password.update(password);
    }
    let p = repeated(&of_password.finalize(), password.len());

    let mut of_salt = Sha256::new();
    for _ in 0..16 + usize::from(digest[0]) {
        of_salt.update(salt);
    }
    let s = repeated(&of_salt.finalize(), salt.len());

    for round in 0..rounds {
        let mut next = Sha256::new();
        if round % 2 == 1 {
            next.update(&p);
        } else {
            next.update(digest);
        }
        if round % 3 != 0 {
            next.update(&s);
        }
        if round % 7 != 0 {
            next.update(&p);
        }
        if round % 2 == 1 {
            next.update(digest);
        } else {
            next.update(&p);
        }
        digest = next.finalize();
    }
    encode(&digest)
}

fn encode(digest: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut out = String::with_capacity(43);
    let mut group = |high: u8, middle: u8, low: u8, characters: usize| {
        let mut bits = u32::from(high) << 16 | u32::from(middle) << 8 | u32::from(low);
        for _ in 0..characters {
            out.push(char::from(ALPHABET[(bits & 63) as usize]));
            bits >>= 6;
        }
    };
    for (a, b, c) in [
        (0, 10, 20),
        (21, 1, 11),
        (12, 22, 2),
        (3, 13, 23),
        (24, 4, 14),
        (15, 25, 5),
        (6, 16, 26),
        (27, 7, 17),
        (18, 28, 8),
        (9, 19, 29),
    ] {
        group(digest[a], digest[b], digest[c], 4);
    }
    group(0, digest[31], digest[30], 3);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_crypt_matches_its_specification() {
        assert_eq!(sha256_crypt(b"Hello world!", b"saltstring", 5000), "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5");
        assert_eq!(
            sha256_crypt(b"Hello world!", b"saltstringsaltst", 10_000),
            "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA"
        );
        assert_eq!(
            sha256_crypt("a longer pässword with more than thirty-two bytes".as_bytes(), b"abcdefghijklmnop", 5000),
            "7uTRAT864y6cVRs0KG5dZoH2qVgtTkv24iNGEAa.9GB"
        );
    }

    #[test]
    fn native_password_matches_mysql() {
        assert_eq!(native("password"), "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
    }

    #[test]
    fn hashes_are_recognised() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state
        };
        for plugin in [CACHING_SHA2, NATIVE] {
            let hash = hash(plugin, "secret", &mut random);
            assert!(is_hash(plugin, &hash), "{hash}");
            assert!(!is_hash(plugin, "secret"));
            assert!(
                matches(plugin, &hash, "secret") && !matches(plugin, &hash, "Secret") && !matches(plugin, &hash, "")
            );
        }
        assert_eq!(hash(CACHING_SHA2, "", &mut random), "");
    }
}
