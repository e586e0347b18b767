//! Who may come in: password hashes and proofs, the cache behind the fast path, the RSA key, the brake on guessing.
//!
//! The conversation itself is in [`crate::connection`]; what is here neither reads nor writes packets. Passwords and proofs are compared
//! in constant time. The hash functions are public: CREATE USER and ALTER USER store what [`sha2::hash`] and [`native::hash`] make.

pub mod native;
pub mod rsa_key;
pub mod sha2;
pub mod throttle;

pub const CACHING_SHA2: &str = "caching_sha2_password";
pub const NATIVE: &str = "mysql_native_password";

/// Length of the challenge in bytes.
pub const NONCE: usize = 20;

/// A fresh challenge: like MySQL's, without NUL and `$`, seven bits a byte.
pub fn nonce() -> [u8; NONCE] {
    let mut nonce = [0; NONCE];
    let mut filled = 0;
    while filled < NONCE {
        for byte in random::<NONCE>().map(|byte| byte & 0x7F) {
            if byte != 0 && byte != b'$' && filled < NONCE {
                nonce[filled] = byte;
                filled += 1;
            }
        }
    }
    nonce
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}
