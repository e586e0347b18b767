//! Password hashes as MySQL stores them in `authentication_string`.
//!
//! `mysql_native_password`: `*` and the hex of SHA1(SHA1(password)). `caching_sha2_password`: `$A$005$`, 20 bytes of salt, and the 43 characters of
//! SHA-256-crypt (Drepper's scheme) with 5 000 rounds. An empty password has an empty hash.

use rauk_types::password::{self, ALPHABET, DIGEST_CHARS, ROUNDS};

pub const CACHING_SHA2: &str = "caching_sha2_password";
pub const NATIVE: &str = "mysql_native_password";
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
        _ => hash.len() == 7 + SALT_BYTES + DIGEST_CHARS && hash.starts_with("$A$005$"),
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
    let mut out = String::from("*");
    for byte in password::native(password.as_bytes()) {
        out.push_str(&format!("{byte:02X}"));
    }
    out
}

fn caching_sha2(password: &str, salt: &[u8; SALT_BYTES]) -> String {
    let salt_text = std::str::from_utf8(salt).expect("the salt is printable");
    let digest = password::sha256_crypt(password.as_bytes(), salt, ROUNDS);
    format!("$A$005${salt_text}{}", std::str::from_utf8(&digest).expect("the alphabet is ASCII"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
