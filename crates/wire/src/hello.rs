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

pub const NONCE: usize = 32;
pub const PROOF: usize = 32;

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
    /// The cluster it expects; zero: any.
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

macro_rules! codec {
    ($($message:ty),*) => {$(
        impl $message {
            pub fn encode(&self, _out: &mut Vec<u8>) {
                todo!()
            }
            pub fn decode(_payload: &[u8]) -> Result<Self, WireError> {
                todo!()
            }
        }
    )*};
}
codec!(Hello, Challenge, Proof, Welcome, Refused);

/// The newest version in both ranges.
pub fn agree(ours: (u16, u16), theirs: (u16, u16)) -> Option<u16> {
    let newest = ours.1.min(theirs.1);
    (newest >= ours.0 && newest >= theirs.0 && theirs.0 <= theirs.1).then_some(newest)
}
