//! `mysql_native_password`: what is stored is `*` and SHA1(SHA1(password)) in hexadecimal; the proof is SHA1(password) masked with
//! SHA1(challenge, stored).
use super::{NONCE, equal};
use ::sha1::{Digest, Sha1};

/// `*HEX` of a password; the empty password is the empty string.
pub fn hash(password: &[u8]) -> String {
    if password.is_empty() {
        return String::new();
    }
    let twice = Sha1::digest(Sha1::digest(password));
    let mut text = String::with_capacity(41);
    text.push('*');
    for byte in twice {
        text.push_str(&format!("{byte:02X}"));
    }
    text
}

/// The 20 bytes behind `*HEX`.
fn decode(hash: &str) -> Option<[u8; 20]> {
    let hex = hash.strip_prefix('*')?.as_bytes();
    if hex.len() != 40 {
        return None;
    }
    let mut out = [0; 20];
    for (byte, pair) in out.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

/// Whether a string has the form of a stored hash (`*` and 40 hexadecimal digits).
pub fn is_hash(text: &str) -> bool {
    decode(text).is_some()
}

/// Whether `response` proves the password behind `stored`. An empty password is never proven here.
pub fn verify(stored: &str, nonce: &[u8; NONCE], response: &[u8]) -> bool {
    let (Some(stored), Ok(response)) = (decode(stored), <[u8; 20]>::try_from(response)) else { return false };
    let mask = Sha1::new().chain_update(nonce).chain_update(stored).finalize();
    let once: [u8; 20] = std::array::from_fn(|i| response[i] ^ mask[i]);
    equal(&Sha1::digest(once), &stored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mysql_common::auth::plugins::mysql_native_password::scramble_native;

    #[test]
    fn known_hashes() {
        // SELECT PASSWORD('…') on MariaDB 10.11; the first one also stands in MySQL's manual.
        assert_eq!(hash(b"password"), "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
        assert_eq!(hash(b"mypass"), "*6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4");
        assert_eq!(hash(b""), "");
    }

    #[test]
    fn proofs() {
        let nonce = crate::auth::nonce();
        let stored = hash(b"secret");
        let good = scramble_native(&nonce, b"secret").unwrap();
        assert!(verify(&stored, &nonce, &good));
        assert!(verify(&stored.to_lowercase(), &nonce, &good));
        assert!(!verify(&stored, &nonce, &scramble_native(&nonce, b"Secret").unwrap()));
        assert!(!verify(&stored, &[1; 20], &good));
        for bad in ["", "*", "*zz", "2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"] {
            assert!(!verify(bad, &nonce, &good));
        }
        assert!(!verify(&stored, &nonce, b""));
    }
}
