//! The login of an account: what is said between the hello and the welcome by a client that has a user and a password, and not the secret.
//!
//! ```text
//! client                                        server
//!   Login(user, key), Hello                ──►
//!                                          ◄──  Challenge, Salts(key, salt …)                     or Refused, Denied
//!   Claim(a proof for each salt)           ──►
//!                                          ◄──  Known(which, proof of the server)                  or Denied
//!   Password(sealed)                       ──►
//!                                          ◄──  Welcome                                            or Denied
//! ```
//! The keys are of X25519, made for this connection. A proof is HMAC-SHA-256(verifier, role ‖ transcript), where the verifier is what the server has stored of
//! the password, which the client makes of password and salt. The state machine is the transporter's; it says why it is done so.

use crate::WireError;
use crate::hello::PROOF;
use crate::read::{Reader, put_prefixed};

pub const KEY: usize = 32;
pub const SALT: usize = 20;
/// An account has two passwords at most.
pub const MOST_SALTS: usize = 2;
/// Longest name of a user: 32 characters.
pub const MAX_USER: usize = 128;
/// Longest password, and what sealing adds.
const MAX_SEALED: usize = 256 + 16;
const MAX_MESSAGE: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub key: [u8; KEY],
}

/// How the server has stored a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Salt {
    /// `caching_sha2_password`: SHA-256-crypt with this salt and 5 000 rounds.
    CachingSha2([u8; SALT]),
    /// `mysql_native_password`: SHA1(SHA1(password)).
    Native,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salts {
    pub key: [u8; KEY],
    pub salts: Vec<Salt>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// In the order of the salts.
    pub proofs: Vec<[u8; PROOF]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Number of the salt whose proof was right.
    pub which: u8,
    pub proof: [u8; PROOF],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Password {
    pub sealed: Vec<u8>,
}

/// Why an account is not let in, with MySQL's code and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    pub code: u16,
    pub message: String,
}

impl Login {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key);
        put_prefixed(self.user.as_bytes(), out);
    }

    pub fn decode(payload: &[u8]) -> Result<Login, WireError> {
        let mut reader = Reader::new(payload, "login");
        let (key, user) = (reader.array()?, reader.text()?.to_owned());
        reader.end()?;
        match user.len() <= MAX_USER {
            true => Ok(Login { user, key }),
            false => Err(reader.malformed()),
        }
    }
}

impl Salts {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key);
        out.push(self.salts.len() as u8);
        for salt in &self.salts {
            match salt {
                Salt::CachingSha2(salt) => {
                    out.push(1);
                    out.extend_from_slice(salt);
                }
                Salt::Native => out.push(2),
            }
        }
    }

    pub fn decode(payload: &[u8]) -> Result<Salts, WireError> {
        let mut reader = Reader::new(payload, "salts");
        let key = reader.array()?;
        let salts = (0..count(&mut reader)?)
            .map(|_| match reader.u8()? {
                1 => Ok(Salt::CachingSha2(reader.array()?)),
                2 => Ok(Salt::Native),
                _ => Err(reader.malformed()),
            })
            .collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Salts { key, salts })
    }
}

fn count(reader: &mut Reader<'_>) -> Result<usize, WireError> {
    match usize::from(reader.u8()?) {
        count @ 1..=MOST_SALTS => Ok(count),
        _ => Err(reader.malformed()),
    }
}

impl Claim {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.proofs.len() as u8);
        self.proofs.iter().for_each(|proof| out.extend_from_slice(proof));
    }

    pub fn decode(payload: &[u8]) -> Result<Claim, WireError> {
        let mut reader = Reader::new(payload, "claim");
        let proofs = (0..count(&mut reader)?).map(|_| reader.array()).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Claim { proofs })
    }
}

impl Known {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.which);
        out.extend_from_slice(&self.proof);
    }

    pub fn decode(payload: &[u8]) -> Result<Known, WireError> {
        let mut reader = Reader::new(payload, "known");
        let known = Known { which: reader.u8()?, proof: reader.array()? };
        reader.end()?;
        Ok(known)
    }
}

impl Password {
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_prefixed(&self.sealed, out);
    }

    pub fn decode(payload: &[u8]) -> Result<Password, WireError> {
        let mut reader = Reader::new(payload, "password");
        let sealed = reader.prefixed()?.to_vec();
        reader.end()?;
        match sealed.len() <= MAX_SEALED {
            true => Ok(Password { sealed }),
            false => Err(reader.malformed()),
        }
    }
}

impl Denied {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.code.to_le_bytes());
        let message = &self.message[..self.message.floor_char_boundary(MAX_MESSAGE)];
        put_prefixed(message.as_bytes(), out);
    }

    pub fn decode(payload: &[u8]) -> Result<Denied, WireError> {
        let mut reader = Reader::new(payload, "denial");
        let denied = Denied { code: reader.u16()?, message: reader.text()?.to_owned() };
        reader.end()?;
        Ok(denied)
    }
}
