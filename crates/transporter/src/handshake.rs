//! The handshake's two sides as state machines: frames in, frames out, nonces and keys passed in; no socket and no clock.
//!
//! The messages and their order are [`rauk_wire::hello`]'s. Proofs are HMAC-SHA-256 over the name of the role that proves and the transcript: every
//! handshake frame so far (kind, length, payload), both nonces among them. So a proof is worth nothing in another connection, the client's none as the server's, and nobody can
//! change what was said before (a version, a cluster) without spoiling it. Comparing takes the same time wherever the difference is.
//!
//! What the server asks for: the secret when it has one; else the certificate that TLS has verified before the first frame. A client that has a
//! secret asks the same proof of the server, unless a verified certificate vouches for the server. A client with an account shows that in the place of the secret ([`account`]).

mod account;

use crate::login::{Account, Accounts, Denied, Granted, Stranger};
use crate::stream::BINDING;
use crate::{Identity, Secret};
use account::{ClientLogin, ServerLogin};
use aws_lc_rs::hmac;
use rauk_wire::hello::{Challenge, Hello, NONCE, PROOF, Proof, Refusal, Refused, Role, Welcome, agree};
use rauk_wire::{Header, Kind, MAX_PAYLOAD, frame};
use std::sync::Arc;

const BY_CLIENT: &[u8] = b"rauk client";
const BY_SERVER: &[u8] = b"rauk server";

/// This side: who it is, and the versions it speaks, oldest and newest.
#[derive(Clone, Debug)]
pub struct Side {
    pub identity: Identity,
    pub versions: (u16, u16),
    pub secret: Option<Secret>,
    /// Only peers of this role are let in.
    pub accepts: Option<Role>,
    /// TLS has verified the peer's certificate.
    pub certified: bool,
    /// That takes the place of the secret.
    pub certificate_suffices: bool,
    pub nonce: [u8; NONCE],
}

/// What the peer has said it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connection: u64,
    pub max_payload: u32,
    pub max_requests: u32,
}

/// What to do after a frame.
#[derive(Debug)]
pub enum Step {
    /// Wait for the next frame.
    Wait,
    /// Send this and wait for the next frame.
    Send(Vec<u8>),
    /// The handshake is over, after this frame has been sent. `granted`: to the account of the peer.
    Done { last: Option<Vec<u8>>, peer: Identity, limits: Limits, granted: Option<Granted> },
    /// Send this, which denies an account, then close.
    Deny(Vec<u8>, String),
    /// (Client) the server has denied our account.
    DeniedBy(Denied),
    /// Send this, then close: the peer is told why.
    Refuse(Vec<u8>, Refused),
    /// (Client) the server has refused us.
    RefusedBy(Refused),
    /// (Client) the server could not prove that it knows the secret.
    Untrusted,
    /// The peer does not keep to the protocol.
    Violation(String),
}

/// Whether there is a place for one more link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Free,
    Full,
    Stopping,
}

#[derive(Default)]
struct Transcript {
    said: Vec<u8>,
    /// Of the TLS connection; between nodes.
    binding: Option<[u8; BINDING]>,
}

impl Transcript {
    fn add(&mut self, kind: Kind, payload: &[u8]) {
        self.said.extend_from_slice(&(kind as u16).to_le_bytes());
        self.said.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        self.said.extend_from_slice(payload);
    }

    /// The frame of a message, which becomes part of the transcript.
    fn say(&mut self, kind: Kind, encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let frame = message(kind, encode);
        self.add(kind, &frame[frame::HEADER..]);
        frame
    }

    fn keyed(&self, secret: &[u8], role: &[u8]) -> hmac::Context {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret));
        context.update(role);
        context.update(&self.said);
        context.update(self.binding.as_ref().map_or(&[], |binding| &binding[..]));
        context
    }

    fn prove(&self, secret: &[u8], role: &[u8]) -> [u8; PROOF] {
        self.keyed(secret, role).sign().as_ref().try_into().expect("HMAC-SHA-256 has 32 bytes")
    }

    fn verify(&self, secret: &[u8], role: &[u8], proof: &[u8; PROOF]) -> bool {
        let right = self.keyed(secret, role).sign();
        aws_lc_rs::constant_time::verify_slices_are_equal(right.as_ref(), proof).is_ok()
    }
}

fn message(kind: Kind, encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = frame::begin();
    encode(&mut frame);
    frame::finish(&mut frame, &Header::new(kind, 0));
    frame
}

/// The side that accepts.
pub struct ServerHandshake {
    side: Side,
    limits: Limits,
    transcript: Transcript,
    hello: Option<(Hello, u16)>,
    accounts: Option<Arc<dyn Accounts>>,
    stranger: Option<Stranger>,
    login: Option<ServerLogin>,
}

impl ServerHandshake {
    pub fn new(side: Side, connection: u64, max_requests: u32) -> ServerHandshake {
        let limits = Limits { connection, max_payload: MAX_PAYLOAD as u32, max_requests };
        let mut side = side;
        if side.certified && side.certificate_suffices {
            side.secret = None;
        }
        ServerHandshake {
            side,
            limits,
            transcript: Transcript::default(),
            hello: None,
            accounts: None,
            stranger: None,
            login: None,
        }
    }

    /// Lets in accounts as well. `stranger`: who connects, but for the user.
    pub fn with_accounts(self, accounts: Option<&Arc<dyn Accounts>>, stranger: Stranger) -> ServerHandshake {
        ServerHandshake { accounts: accounts.cloned(), stranger: Some(stranger), ..self }
    }

    /// Under TLS: proofs between nodes are good for this connection only.
    pub fn bind(&mut self, binding: Option<[u8; BINDING]>) {
        self.transcript.binding = binding;
    }

    /// `room` is asked once, when the peer has said hello and nothing else is wrong with it.
    pub fn on_frame(&mut self, kind: Kind, payload: &[u8], room: impl FnOnce() -> Room) -> Step {
        match (kind, self.hello.take()) {
            (Kind::Hello, None) => self.on_hello(payload, room),
            (Kind::Proof, Some((hello, version))) if self.login.is_none() => self.on_proof(payload, hello, version),
            (Kind::Login, None) => self.on_login(payload),
            (Kind::Claim, Some(hello)) => self.on_claim(payload, hello),
            (Kind::Password, Some((hello, version))) => self.on_password(payload, hello, version),
            (kind, _) => self.refuse(Refusal::Malformed, format!("{kind:?} does not belong here in the handshake")),
        }
    }

    fn on_hello(&mut self, payload: &[u8], room: impl FnOnce() -> Room) -> Step {
        let hello = match Hello::decode(payload) {
            Ok(hello) => hello,
            Err(e) => return self.refuse(Refusal::Malformed, e.to_string()),
        };
        let ours = self.side.versions;
        let Some(version) = agree(ours, (hello.oldest, hello.newest)) else {
            return self.refuse(
                Refusal::Version,
                match hello.role {
                    Role::Client => format!(
                        "this server speaks versions {} to {} of the native protocol, the client {} to {}; upgrade the older one",
                        ours.0, ours.1, hello.oldest, hello.newest
                    ),
                    Role::Node => format!(
                        "this node speaks versions {} to {} of the protocol between nodes, {} versions {} to {}; upgrade the older one",
                        ours.0, ours.1, called(&hello.name), hello.oldest, hello.newest
                    ),
                },
            );
        };
        if let Some(text) = self.side.accepts.filter(|role| *role != hello.role).map(wrong_port) {
            return self.refuse(Refusal::Role, text.into());
        }
        let cluster = self.side.identity.cluster;
        // A node that has no cluster yet talks to any: what it joins, it joins by name.
        let unmade = hello.role == Role::Node && cluster == [0; 16];
        if hello.cluster != [0; 16] && hello.cluster != cluster && !unmade {
            let (expected, here) = (hexadecimal(&hello.cluster), hexadecimal(&cluster));
            let text = match hello.role {
                Role::Client => {
                    format!("this server belongs to cluster {here}, the client expects cluster {expected}")
                }
                Role::Node => format!(
                    "this node belongs to cluster {here}, {} to cluster {expected}: an address leads to the wrong node, or a data directory is another cluster's",
                    called(&hello.name)
                ),
            };
            return self.refuse(Refusal::Cluster, text);
        }
        if self.login.is_some() {
            // The account is proved in the place of a secret.
        } else if self.side.secret.is_some() && !hello.has_secret {
            return self.refuse(
                Refusal::Credentials,
                "this server asks for a shared secret, and the client has none; give it the server's secret file, or a user and a password"
                    .into(),
            );
        } else if self.side.secret.is_none() && !self.side.certified {
            return self.refuse(Refusal::Credentials, "this server asks for a client certificate".into());
        }
        match room() {
            Room::Free => {}
            Room::Full => {
                return self.refuse(
                    Refusal::TooManyConnections,
                    "too many connections: the server's limit is reached; try again later or raise it".into(),
                );
            }
            Room::Stopping => return self.refuse(Refusal::ShuttingDown, "the server is shutting down".into()),
        }
        self.transcript.add(Kind::Hello, payload);
        let challenge = Challenge {
            version,
            cluster,
            incarnation: self.side.identity.incarnation,
            nonce: self.side.nonce,
            wants_secret: self.side.secret.is_some() && self.login.is_none(),
        };
        self.hello = Some((hello, version));
        let mut frames = self.transcript.say(Kind::Challenge, |out| challenge.encode(out));
        match self.salts(&mut frames) {
            Ok(()) => Step::Send(frames),
            Err(denied) => denied,
        }
    }

    fn on_proof(&mut self, payload: &[u8], hello: Hello, version: u16) -> Step {
        let proof = match Proof::decode(payload) {
            Ok(proof) => proof.proof,
            Err(e) => return self.refuse(Refusal::Malformed, e.to_string()),
        };
        let mut answer = None;
        if let Some(secret) = &self.side.secret {
            let known = |secret: &&[u8]| proof.is_some_and(|proof| self.transcript.verify(secret, BY_CLIENT, &proof));
            let Some(secret) = secret.accepted().find(known) else {
                let text = match hello.role {
                    Role::Client => "the secret is wrong: client and server must use the same secret file".into(),
                    Role::Node => format!(
                        "the secret of {} is wrong: all nodes of a cluster must be given the same secret file",
                        called(&hello.name)
                    ),
                };
                return self.refuse(Refusal::Credentials, text);
            };
            self.transcript.add(Kind::Proof, payload);
            answer = Some(self.transcript.prove(secret, BY_SERVER));
        }
        self.welcome(answer, hello, version, None)
    }

    fn welcome(&self, proof: Option<[u8; PROOF]>, hello: Hello, version: u16, granted: Option<Granted>) -> Step {
        let welcome = Welcome {
            proof,
            connection: self.limits.connection,
            max_payload: self.limits.max_payload,
            max_requests: self.limits.max_requests,
        };
        Step::Done {
            last: Some(message(Kind::Welcome, |out| welcome.encode(out))),
            peer: Identity { role: hello.role, cluster: hello.cluster, incarnation: 0, version, name: hello.name },
            limits: self.limits,
            granted,
        }
    }

    pub fn refuse(&self, reason: Refusal, message: String) -> Step {
        let (oldest, newest) = self.side.versions;
        let refused = Refused { reason, message, oldest, newest };
        Step::Refuse(self::message(Kind::Refused, |out| refused.encode(out)), refused)
    }
}

/// The side that connects.
pub struct ClientHandshake {
    side: Side,
    transcript: Transcript,
    challenge: Option<Challenge>,
    proved: bool,
    login: Option<ClientLogin>,
}

impl ClientHandshake {
    pub fn new(side: Side) -> ClientHandshake {
        ClientHandshake { side, transcript: Transcript::default(), challenge: None, proved: false, login: None }
    }

    /// Shows an account in the place of a secret.
    pub fn with_account(mut self, account: Option<&Account>) -> ClientHandshake {
        self.login = account.map(|account| ClientLogin::new(account.clone()));
        if self.login.is_some() {
            self.side.secret = None;
        }
        self
    }

    /// See [`ServerHandshake::bind`].
    pub fn bind(&mut self, binding: Option<[u8; BINDING]>) {
        self.transcript.binding = binding;
    }

    /// The first frame, or two.
    pub fn hello(&mut self) -> Vec<u8> {
        let mut frames = self.log_in();
        let hello = Hello {
            oldest: self.side.versions.0,
            newest: self.side.versions.1,
            role: self.side.identity.role,
            cluster: self.side.identity.cluster,
            nonce: self.side.nonce,
            has_secret: self.side.secret.is_some(),
            name: self.side.identity.name.clone(),
        };
        frames.extend_from_slice(&self.transcript.say(Kind::Hello, |out| hello.encode(out)));
        frames
    }

    pub fn on_frame(&mut self, kind: Kind, payload: &[u8]) -> Step {
        let violation = |e: rauk_wire::WireError| Step::Violation(e.to_string());
        match kind {
            Kind::Refused => Refused::decode(payload).map_or_else(violation, Step::RefusedBy),
            Kind::Challenge if self.challenge.is_none() => match Challenge::decode(payload) {
                Ok(challenge) => self.on_challenge(payload, challenge),
                Err(e) => violation(e),
            },
            Kind::Denied if self.login.is_some() => Denied::decode(payload).map_or_else(violation, Step::DeniedBy),
            Kind::Salts if self.challenge.is_some() => self.on_salts(payload),
            Kind::Known if self.challenge.is_some() => self.on_known(payload),
            Kind::Welcome if self.proved => match Welcome::decode(payload) {
                Ok(welcome) => self.on_welcome(&welcome),
                Err(e) => violation(e),
            },
            kind => Step::Violation(format!("{kind:?} does not belong here in the handshake")),
        }
    }

    fn on_challenge(&mut self, payload: &[u8], challenge: Challenge) -> Step {
        let (oldest, newest) = self.side.versions;
        if challenge.version < oldest || challenge.version > newest {
            return Step::Violation(format!("the server chose version {}, which was not offered", challenge.version));
        }
        let expected = self.side.identity.cluster;
        // Between nodes, one that has no cluster yet is about to join this one.
        let joining = self.side.identity.role == Role::Node && challenge.cluster == [0; 16];
        if expected != [0; 16] && challenge.cluster != expected && !joining {
            return Step::Violation(format!("the server belongs to cluster {}", hexadecimal(&challenge.cluster)));
        }
        if self.login.is_some() {
            // The server's proof follows.
            self.transcript.add(Kind::Challenge, payload);
            self.challenge = Some(challenge);
            return Step::Wait;
        }
        // Only a certificate can stand in for a proof that the server does not want to give.
        if !challenge.wants_secret && !self.side.certified {
            return Step::Untrusted;
        }
        self.transcript.add(Kind::Challenge, payload);
        let secret = self.side.secret.as_ref().filter(|_| challenge.wants_secret);
        if challenge.wants_secret && secret.is_none() {
            return Step::Violation("the server asks for a secret that was not offered".into());
        }
        let proof = Proof { proof: secret.map(|secret| self.transcript.prove(secret.bytes(), BY_CLIENT)) };
        self.challenge = Some(challenge);
        self.proved = true;
        Step::Send(self.transcript.say(Kind::Proof, |out| proof.encode(out)))
    }

    fn on_welcome(&mut self, welcome: &Welcome) -> Step {
        self.proved = false;
        let Some(challenge) = &self.challenge else { return Step::Violation("a welcome without a challenge".into()) };
        if challenge.wants_secret
            && let Some(secret) = &self.side.secret
            && !welcome.proof.is_some_and(|proof| self.transcript.verify(secret.bytes(), BY_SERVER, &proof))
        {
            return Step::Untrusted;
        }
        Step::Done {
            last: None,
            peer: Identity {
                role: Role::Node,
                cluster: challenge.cluster,
                incarnation: challenge.incarnation,
                version: challenge.version,
                name: String::new(),
            },
            limits: Limits {
                connection: welcome.connection,
                max_payload: welcome.max_payload,
                max_requests: welcome.max_requests,
            },
            granted: None,
        }
    }
}

/// Who speaks, by its own word; for people.
fn called(name: &str) -> &str {
    if name.is_empty() { "the other node" } else { name }
}

/// What a port that lets in this role only says to others.
fn wrong_port(accepts: Role) -> &'static str {
    match accepts {
        Role::Node => "this is a cluster port, for nodes only: programs use the native port",
        Role::Client => "this is a native port, for programs only: nodes use the cluster port",
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests;
