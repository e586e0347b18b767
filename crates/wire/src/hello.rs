//! The handshake: who connects says hello, both agree on a version and prove who they are, and only then is anything else read.
//!
//! ```text
//! client                                        server
//!   Hello(versions, who, nonce, cluster?)  ──►
//!                                          ◄──  Challenge(version, nonce, cluster, incarnation)   or Refused
//!   Proof(proof over everything so far)    ──►
//!                                          ◄──  Welcome(proof of the server, limits)              or Refused
//! ```
//! With a shared secret a proof is HMAC-SHA-256(secret, role ‖ transcript), so the secret never travels, neither side can replay the other's, and a server
//! that does not know it is noticed. With mutual TLS the proofs are empty and the certificates have said it all.
//! The messages are here; the state machine is the transporter's.

use crate::WireError;
use crate::read::{Reader, put_prefixed};

pub const NONCE: usize = 32;
pub const PROOF: usize = 32;
/// Longest name in a hello and longest text of a refusal, in bytes; more is cut off.
const MAX_NAME: usize = 255;
const MAX_MESSAGE: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// A program that uses the native API.
    Client = 1,
    /// Another node of the cluster.
    Node = 2,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Versions that the client speaks, oldest and newest.
    pub oldest: u16,
    pub newest: u16,
    pub role: Role,
    /// The cluster it expects; zero: any. A node says its own, and zero before it has one.
    pub cluster: [u8; 16],
    pub nonce: [u8; NONCE],
    /// Whether it can prove a shared secret.
    pub has_secret: bool,
    /// Program and library, for the log: at most 255 bytes.
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The newest that both speak.
    pub version: u16,
    pub cluster: [u8; 16],
    pub incarnation: u64,
    pub nonce: [u8; NONCE],
    /// Whether a proof by the shared secret is wanted; else the certificate was enough.
    pub wants_secret: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    pub proof: Option<[u8; PROOF]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    pub proof: Option<[u8; PROOF]>,
    /// Number of this connection at the server, for logs.
    pub connection: u64,
    pub max_payload: u32,
    /// Requests that may be unanswered at a time.
    pub max_requests: u32,
}

/// Why the server goes no further; payload of `Refused`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    Version = 1,
    Cluster = 2,
    /// Neither a certificate nor the right secret.
    Credentials = 3,
    TooManyConnections = 4,
    ShuttingDown = 5,
    Malformed = 6,
    /// The port is for others: programs on one for nodes, or the other way round.
    Role = 7,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub reason: Refusal,
    /// For a person: what is wrong and what to do. Says nothing of the secret.
    pub message: String,
    /// Versions that the server speaks.
    pub oldest: u16,
    pub newest: u16,
}

/// At most `most` bytes of a text, cut between characters.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn put_proof(proof: &Option<[u8; PROOF]>, out: &mut Vec<u8>) {
    out.push(proof.is_some().into());
    out.extend_from_slice(proof.as_ref().map_or(&[], |proof| &proof[..]));
}

fn read_proof(reader: &mut Reader<'_>) -> Result<Option<[u8; PROOF]>, WireError> {
    Ok(if reader.flag()? { Some(reader.array()?) } else { None })
}

/// Nothing may follow, except what a version that is not known here has added.
fn end(reader: &Reader<'_>, newest: u16) -> Result<(), WireError> {
    if newest > crate::PROTOCOL { Ok(()) } else { reader.end() }
}

impl Hello {
    /// These fields stay as they are in all versions; a later one may add some behind them.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.oldest.to_le_bytes());
        out.extend_from_slice(&self.newest.to_le_bytes());
        out.push(self.role as u8);
        out.extend_from_slice(&self.cluster);
        out.extend_from_slice(&self.nonce);
        out.push(self.has_secret.into());
        put_prefixed(cut(&self.name, MAX_NAME).as_bytes(), out);
    }

    pub fn decode(payload: &[u8]) -> Result<Hello, WireError> {
        let mut reader = Reader::new(payload, "hello");
        let (oldest, newest) = (reader.u16()?, reader.u16()?);
        let role = match reader.u8()? {
            1 => Role::Client,
            2 => Role::Node,
            _ => return Err(reader.malformed()),
        };
        let (cluster, nonce, has_secret) = (reader.array()?, reader.array()?, reader.flag()?);
        let name = reader.text()?.to_owned();
        if name.len() > MAX_NAME || oldest > newest {
            return Err(reader.malformed());
        }
        end(&reader, newest)?;
        Ok(Hello { oldest, newest, role, cluster, nonce, has_secret, name })
    }
}

impl Challenge {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.cluster);
        out.extend_from_slice(&self.incarnation.to_le_bytes());
        out.extend_from_slice(&self.nonce);
        out.push(self.wants_secret.into());
    }

    pub fn decode(payload: &[u8]) -> Result<Challenge, WireError> {
        let mut reader = Reader::new(payload, "challenge");
        let challenge = Challenge {
            version: reader.u16()?,
            cluster: reader.array()?,
            incarnation: reader.u64()?,
            nonce: reader.array()?,
            wants_secret: reader.flag()?,
        };
        reader.end()?;
        Ok(challenge)
    }
}

impl Proof {
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_proof(&self.proof, out);
    }

    pub fn decode(payload: &[u8]) -> Result<Proof, WireError> {
        let mut reader = Reader::new(payload, "proof");
        let proof = read_proof(&mut reader)?;
        reader.end()?;
        Ok(Proof { proof })
    }
}

impl Welcome {
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_proof(&self.proof, out);
        out.extend_from_slice(&self.connection.to_le_bytes());
        out.extend_from_slice(&self.max_payload.to_le_bytes());
        out.extend_from_slice(&self.max_requests.to_le_bytes());
    }

    pub fn decode(payload: &[u8]) -> Result<Welcome, WireError> {
        let mut reader = Reader::new(payload, "welcome");
        let welcome = Welcome {
            proof: read_proof(&mut reader)?,
            connection: reader.u64()?,
            max_payload: reader.u32()?,
            max_requests: reader.u32()?,
        };
        reader.end()?;
        Ok(welcome)
    }
}

impl Refused {
    /// As for [`Hello`], these fields stay in all versions.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.reason as u8);
        out.extend_from_slice(&self.oldest.to_le_bytes());
        out.extend_from_slice(&self.newest.to_le_bytes());
        put_prefixed(cut(&self.message, MAX_MESSAGE).as_bytes(), out);
    }

    pub fn decode(payload: &[u8]) -> Result<Refused, WireError> {
        let mut reader = Reader::new(payload, "refusal");
        let reason = match reader.u8()? {
            1 => Refusal::Version,
            2 => Refusal::Cluster,
            3 => Refusal::Credentials,
            4 => Refusal::TooManyConnections,
            5 => Refusal::ShuttingDown,
            6 => Refusal::Malformed,
            7 => Refusal::Role,
            _ => return Err(reader.malformed()),
        };
        let (oldest, newest) = (reader.u16()?, reader.u16()?);
        let message = reader.text()?.to_owned();
        end(&reader, newest)?;
        Ok(Refused { reason, message, oldest, newest })
    }
}

/// The newest version in both ranges.
pub fn agree(ours: (u16, u16), theirs: (u16, u16)) -> Option<u16> {
    let newest = ours.1.min(theirs.1);
    (newest >= ours.0 && newest >= theirs.0 && theirs.0 <= theirs.1).then_some(newest)
}
