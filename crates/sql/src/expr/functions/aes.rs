//! AES_ENCRYPT and AES_DECRYPT.
//!
//! `block_encryption_mode` says the length of the key and the mode. A key of another length is folded: its bytes are combined by
//! XOR, wrapping around. ECB and CBC pad to whole blocks (PKCS #7), the others take any length. Every mode but ECB takes
//! the first 16 bytes of the third argument as initialization vector; ECB ignores it, with a warning (1618). What cannot
//! be decrypted is NULL.
//!
//! A fourth argument names how the key is derived, by SHA-512: `hkdf` (salt, info) or `pbkdf2_hmac` (salt, iterations). Without it a key that is longer than the
//! mode's is a warning (3237).

use super::{Call, Derived, Function, Typing};
use crate::expr::Context;
use crate::expr::convert::Result;
use crate::expr::types::text_type;
use crate::parse::statement::Scope;
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{hkdf, pbkdf2};
use rauk_types::error::codes;
use rauk_types::{Collation, MysqlError, Value};
use std::borrow::Cow;
use std::num::NonZeroU32;

pub const FUNCTIONS: &[Function] = &[
    Function::new("AES_ENCRYPT", 2, 6, bytes_type, |c, x| aes(c, x, true)).of_bytes().with_null().unbounded(),
    Function::new("AES_DECRYPT", 2, 6, bytes_type, |c, x| aes(c, x, false)).with_null().unbounded(),
];

/// ER_AES_INVALID_IV.
const INVALID_IV: u16 = 1882;
/// WARN_OPTION_IGNORED.
const OPTION_IGNORED: u16 = 1618;

/// ER_AES_INVALID_KDF_NAME.
const INVALID_KDF: u16 = 3235;
/// ER_AES_INVALID_KDF_ITERATIONS.
const INVALID_ITERATIONS: u16 = 3236;
/// WARN_AES_KEY_SIZE.
const KEY_SIZE: u16 = 3237;
/// ER_AES_INVALID_KDF_OPTION_SIZE.
const INVALID_OPTION: u16 = 3238;

const BLOCK: usize = 16;
/// Bytes of a salt, of information and of a number of iterations are fewer.
const SALT_LIMIT: usize = 256;
const ITERATIONS_LIMIT: usize = 8;
const ITERATIONS: std::ops::RangeInclusive<u32> = 1000..=65_535;

fn bytes_type(_: Typing<'_>) -> Result<Derived> {
    Ok(Derived::new(text_type(u32::MAX.into(), Collation::Binary)).nullable())
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Ecb,
    Cbc,
    Cfb1,
    Cfb8,
    Cfb128,
    Ofb,
}

impl Mode {
    /// Of `aes-256-cbc` the algorithm, the bytes of a key, and the mode.
    fn of(name: &str) -> Option<(&'static Algorithm, usize, Mode)> {
        let (bits, mode) = name.strip_prefix("aes-")?.split_once('-')?;
        let (algorithm, length): (&'static Algorithm, usize) = match bits {
            "128" => (&AES_128, 16),
            "192" => (&AES_192, 24),
            "256" => (&AES_256, 32),
            _ => return None,
        };
        let mode = match mode {
            "ecb" => Mode::Ecb,
            "cbc" => Mode::Cbc,
            "cfb1" => Mode::Cfb1,
            "cfb8" => Mode::Cfb8,
            "cfb128" => Mode::Cfb128,
            "ofb" => Mode::Ofb,
            _ => return None,
        };
        Some((algorithm, length, mode))
    }

    fn pads(self) -> bool {
        matches!(self, Mode::Ecb | Mode::Cbc)
    }
}

fn folded(key: &[u8], length: usize) -> Vec<u8> {
    let mut out = vec![0; length];
    for (at, byte) in key.iter().enumerate() {
        out[at % length] ^= byte;
    }
    out
}

/// An argument of a derivation; empty when it is not given.
fn option<'c>(c: &'c Call<'_, '_>, argument: usize, limit: usize) -> Result<Cow<'c, [u8]>> {
    if !c.has(argument) {
        return Ok(Cow::Borrowed(&[]));
    }
    let bytes = if c.is_null(argument) { None } else { Some(c.bytes(argument)) };
    bytes.filter(|bytes| bytes.len() < limit).ok_or_else(|| {
        let message = format!("KDF option size is invalid, please provide valid size < {limit} bytes and not NULL.");
        MysqlError::new(INVALID_OPTION, message)
    })
}

struct KeyLength(usize);

impl hkdf::KeyType for KeyLength {
    fn len(&self) -> usize {
        self.0
    }
}

/// The key that the fourth argument's method makes of a key.
fn derived(c: &Call<'_, '_>, key: &[u8], length: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; length];
    let name = if c.is_null(3) { Cow::Borrowed(&[][..]) } else { c.bytes(3) };
    match &*name {
        b"hkdf" => {
            let (salt, info) = (option(c, 4, SALT_LIMIT)?, option(c, 5, SALT_LIMIT)?);
            let secret = hkdf::Salt::new(hkdf::HKDF_SHA512, &salt).extract(key);
            let made = secret.expand(&[&info], KeyLength(length)).and_then(|made| made.fill(&mut out));
            made.expect("a key is shorter than what can be derived");
        }
        b"pbkdf2_hmac" => {
            let (salt, written) = (option(c, 4, SALT_LIMIT)?, option(c, 5, ITERATIONS_LIMIT)?);
            let iterations = match c.has(5) {
                false => Some(*ITERATIONS.start()),
                true => std::str::from_utf8(&written).ok().and_then(|digits| digits.trim().parse().ok()),
            };
            let iterations = iterations.filter(|count| ITERATIONS.contains(count)).and_then(NonZeroU32::new);
            let iterations = iterations.ok_or_else(|| {
                let message = "For KDF method pbkdf2_hmac iterations value less than 1000 or more than 65535, which is not \
                               allowed.";
                MysqlError::new(INVALID_ITERATIONS, message)
            })?;
            pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA512, iterations, &salt, key, &mut out);
        }
        _ => {
            let message = "KDF method name is not valid. Please use hkdf or pbkdf2_hmac method name";
            return Err(MysqlError::new(INVALID_KDF, message));
        }
    }
    Ok(out)
}

fn aes(c: &Call<'_, '_>, context: &mut Context, encrypts: bool) -> Result<Value> {
    let name = match context.variables.get(Scope::Default, "block_encryption_mode")? {
        Value::Str(name) => name.to_ascii_lowercase(),
        other => unreachable!("block_encryption_mode is {other:?}"),
    };
    let (algorithm, length, mode) = Mode::of(&name).expect("the variable has one of these values");
    let function = if encrypts { "aes_encrypt" } else { "aes_decrypt" };
    let iv = match (mode, c.has(2)) {
        (Mode::Ecb, false) => None,
        (Mode::Ecb, true) => {
            if !c.has(3) {
                context.warn(OPTION_IGNORED, "<IV> option ignored".into());
            }
            None
        }
        (_, false) => {
            let message = format!("Incorrect parameter count in the call to native function '{function}'");
            return Err(MysqlError::new(codes::WRONG_PARAMCOUNT_TO_NATIVE_FCT, message));
        }
        (_, true) => {
            let bytes = if c.is_null(2) { Cow::Borrowed(&[][..]) } else { c.bytes(2) };
            let Some(iv) = bytes.first_chunk::<BLOCK>() else {
                let message = format!(
                    "The initialization vector supplied to {function} is too short. Must be at least {BLOCK} bytes long"
                );
                return Err(MysqlError::new(INVALID_IV, message));
            };
            Some(*iv)
        }
    };
    if c.is_null(0) || c.is_null(1) {
        return Ok(Value::Null);
    }
    let (bytes, written) = (c.bytes(0), c.bytes(1));
    let key = if c.has(3) {
        context.budget.beside(|| derived(c, &written, length))?
    } else {
        if written.len() > length {
            let message = format!(
                "AES key size should be {length} bytes length or secure KDF methods hkdf or pbkdf2_hmac should be used, \
                 please provide exact AES key size or use KDF methods for better security."
            );
            context.warn(KEY_SIZE, message);
        }
        folded(&written, length)
    };
    if !c.fits(bytes.len() + BLOCK, context) {
        return Ok(Value::Null);
    }
    context.budget.work(bytes.len())?;
    let key = UnboundCipherKey::new(algorithm, &key).expect("the key has the length of the algorithm");
    let out = if encrypts { encrypted(key, mode, iv, &bytes) } else { decrypted(key, mode, iv, &bytes) };
    Ok(out.map_or(Value::Null, Value::Bytes))
}

fn encrypted(key: UnboundCipherKey, mode: Mode, iv: Option<[u8; BLOCK]>, bytes: &[u8]) -> Option<Vec<u8>> {
    let key = match mode {
        Mode::Ecb => EncryptingKey::ecb(key),
        Mode::Cbc => EncryptingKey::cbc(key),
        Mode::Cfb1 => EncryptingKey::cfb1(key),
        Mode::Cfb8 => EncryptingKey::cfb8(key),
        Mode::Cfb128 => EncryptingKey::cfb128(key),
        Mode::Ofb => EncryptingKey::ofb(key),
    };
    let mut out = bytes.to_vec();
    if mode.pads() {
        let padding = BLOCK - out.len() % BLOCK;
        out.resize(out.len() + padding, padding as u8);
    }
    let iv = iv.map_or(EncryptionContext::None, |iv| EncryptionContext::Iv128(FixedLength::from(iv)));
    key.ok()?.less_safe_encrypt(&mut out, iv).ok()?;
    Some(out)
}

fn decrypted(key: UnboundCipherKey, mode: Mode, iv: Option<[u8; BLOCK]>, bytes: &[u8]) -> Option<Vec<u8>> {
    if mode.pads() && (bytes.is_empty() || !bytes.len().is_multiple_of(BLOCK)) {
        return None;
    }
    let key = match mode {
        Mode::Ecb => DecryptingKey::ecb(key),
        Mode::Cbc => DecryptingKey::cbc(key),
        Mode::Cfb1 => DecryptingKey::cfb1(key),
        Mode::Cfb8 => DecryptingKey::cfb8(key),
        Mode::Cfb128 => DecryptingKey::cfb128(key),
        Mode::Ofb => DecryptingKey::ofb(key),
    };
    let mut out = bytes.to_vec();
    let iv = iv.map_or(DecryptionContext::None, |iv| DecryptionContext::Iv128(FixedLength::from(iv)));
    key.ok()?.decrypt(&mut out, iv).ok()?;
    if mode.pads() {
        let padding = usize::from(*out.last()?);
        let valid = (1..=BLOCK).contains(&padding) && out.ends_with(&vec![padding as u8; padding]);
        if !valid {
            return None;
        }
        out.truncate(out.len() - padding);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
    }

    /// The first block of NIST SP 800-38A's examples (the first two bytes for CFB1), and back.
    #[test]
    fn modes_give_the_examples_of_nist() {
        let plain = bytes("6bc1bee22e409f96e93d7e117393172a");
        let iv: [u8; BLOCK] = bytes("000102030405060708090a0b0c0d0e0f").try_into().unwrap();
        let short = "2b7e151628aed2a6abf7158809cf4f3c";
        let middle = "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b";
        let long = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
        for (name, key, expected) in [
            ("aes-128-ecb", short, "3ad77bb40d7a3660a89ecaf32466ef97"),
            ("aes-192-ecb", middle, "bd334f1d6e45f25ff712a214571fa5cc"),
            ("aes-256-ecb", long, "f3eed1bdb5d2a03c064b5a7e3db181f8"),
            ("aes-128-cbc", short, "7649abac8119b246cee98e9b12e9197d"),
            ("aes-192-cbc", middle, "4f021db243bc633d7178183a9fa071e8"),
            ("aes-256-cbc", long, "f58c4c04d6e5f1ba779eabfb5f7bfbd6"),
            ("aes-128-cfb128", short, "3b3fd92eb72dad20333449f8e83cfb4a"),
            ("aes-256-cfb128", long, "dc7e84bfda79164b7ecd8486985d3860"),
            ("aes-128-cfb8", short, "3b79424c9c0dd436bace9e0ed4586a4f"),
            ("aes-128-cfb1", short, "68b3"),
            ("aes-128-ofb", short, "3b3fd92eb72dad20333449f8e83cfb4a"),
            ("aes-256-ofb", long, "dc7e84bfda79164b7ecd8486985d3860"),
        ] {
            let (algorithm, length, mode) = Mode::of(name).unwrap();
            let own = folded(&bytes(key), length);
            let key = || UnboundCipherKey::new(algorithm, &own).unwrap();
            let iv = (mode != Mode::Ecb).then_some(iv);
            let out = encrypted(key(), mode, iv, &plain).unwrap();
            assert!(out.starts_with(&bytes(expected)), "{name}: {out:02x?}");
            assert_eq!(out.len(), if mode.pads() { 32 } else { 16 }, "{name}");
            assert_eq!(decrypted(key(), mode, iv, &out).unwrap(), plain, "{name}");
            if mode.pads() {
                assert_eq!(decrypted(key(), mode, iv, &out[..16]), None, "{name}: no padding");
                assert_eq!(decrypted(key(), mode, iv, &out[..17]), None, "{name}: no whole block");
            }
            assert_eq!(decrypted(key(), mode, iv, &[]).is_none(), mode.pads());
        }
    }

    #[test]
    fn keys_are_folded() {
        assert_eq!(folded(b"", 16), [0; 16]);
        assert_eq!(folded(b"abc", 4), *b"abc\0");
        assert_eq!(folded(b"abcdabcd", 4), [0; 4]);
    }
}
