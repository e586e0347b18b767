//! The handshake's two sides as state machines: frames in, frames out, nonces and keys passed in; no socket and no clock.
//!
//! The messages and their order are [`rauk_wire::hello`]'s. Proofs are HMAC-SHA-256 over the name of the role that proves and the transcript: every
//! handshake frame so far (kind, length, payload), both nonces among them. So a proof is worth nothing in another connection, the client's none as the server's, and nobody can
//! change what was said before (a version, a cluster) without spoiling it. Comparing takes the same time wherever the difference is.
//!
//! What the server asks for: the secret when it has one; else the certificate that TLS has verified before the first frame. A client that has a
//! secret asks the same proof of the server, unless a verified certificate vouches for the server.

use crate::stream::BINDING;
use crate::{Identity, Secret};
use aws_lc_rs::hmac;
use rauk_wire::hello::{Challenge, Hello, NONCE, PROOF, Proof, Refusal, Refused, Role, Welcome, agree};
use rauk_wire::{Header, Kind, MAX_PAYLOAD, frame};

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
    /// Send this and wait for the next frame.
    Send(Vec<u8>),
    /// The handshake is over, after this frame has been sent.
    Done { last: Option<Vec<u8>>, peer: Identity, limits: Limits },
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
}

impl ServerHandshake {
    pub fn new(side: Side, connection: u64, max_requests: u32) -> ServerHandshake {
        let limits = Limits { connection, max_payload: MAX_PAYLOAD as u32, max_requests };
        let mut side = side;
        if side.certified && side.certificate_suffices {
            side.secret = None;
        }
        ServerHandshake { side, limits, transcript: Transcript::default(), hello: None }
    }

    /// Under TLS: proofs between nodes are good for this connection only.
    pub fn bind(&mut self, binding: Option<[u8; BINDING]>) {
        self.transcript.binding = binding;
    }

    /// `room` is asked once, when the peer has said hello and nothing else is wrong with it.
    pub fn on_frame(&mut self, kind: Kind, payload: &[u8], room: impl FnOnce() -> Room) -> Step {
        match (kind, self.hello.take()) {
            (Kind::Hello, None) => self.on_hello(payload, room),
            (Kind::Proof, Some((hello, version))) => self.on_proof(payload, hello, version),
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
        if self.side.secret.is_some() && !hello.has_secret {
            return self.refuse(
                Refusal::Credentials,
                "this server asks for a shared secret, and the client has none; give it the server's secret file"
                    .into(),
            );
        }
        if self.side.secret.is_none() && !self.side.certified {
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
            wants_secret: self.side.secret.is_some(),
        };
        self.hello = Some((hello, version));
        Step::Send(self.transcript.say(Kind::Challenge, |out| challenge.encode(out)))
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
        let welcome = Welcome {
            proof: answer,
            connection: self.limits.connection,
            max_payload: self.limits.max_payload,
            max_requests: self.limits.max_requests,
        };
        Step::Done {
            last: Some(message(Kind::Welcome, |out| welcome.encode(out))),
            peer: Identity { role: hello.role, cluster: hello.cluster, incarnation: 0, version, name: hello.name },
            limits: self.limits,
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
}

impl ClientHandshake {
    pub fn new(side: Side) -> ClientHandshake {
        ClientHandshake { side, transcript: Transcript::default(), challenge: None, proved: false }
    }

    /// See [`ServerHandshake::bind`].
    pub fn bind(&mut self, binding: Option<[u8; BINDING]>) {
        self.transcript.binding = binding;
    }

    /// The first frame.
    pub fn hello(&mut self) -> Vec<u8> {
        let hello = Hello {
            oldest: self.side.versions.0,
            newest: self.side.versions.1,
            role: self.side.identity.role,
            cluster: self.side.identity.cluster,
            nonce: self.side.nonce,
            has_secret: self.side.secret.is_some(),
            name: self.side.identity.name.clone(),
        };
        self.transcript.say(Kind::Hello, |out| hello.encode(out))
    }

    pub fn on_frame(&mut self, kind: Kind, payload: &[u8]) -> Step {
        let violation = |e: rauk_wire::WireError| Step::Violation(e.to_string());
        match kind {
            Kind::Refused => Refused::decode(payload).map_or_else(violation, Step::RefusedBy),
            Kind::Challenge if self.challenge.is_none() => match Challenge::decode(payload) {
                Ok(challenge) => self.on_challenge(payload, challenge),
                Err(e) => violation(e),
            },
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
mod tests {
    use super::*;
    use rauk_wire::frame::{Parsed, parse};

    fn side(role: Role, secret: Option<&str>) -> Side {
        let (role_number, cluster) = (role as u8, if role == Role::Node { [7; 16] } else { [0; 16] });
        Side {
            identity: Identity { role, cluster, incarnation: 3, version: 5, name: "test".into() },
            versions: (4, 5),
            secret: secret.map(|s| Secret::new(s).unwrap()),
            accepts: None,
            certified: false,
            certificate_suffices: false,
            nonce: [role_number; NONCE],
        }
    }

    fn read(frame: &[u8]) -> (Kind, &[u8]) {
        match parse(frame) {
            Ok(Parsed::Whole(header, total)) if total == frame.len() => (header.kind, &frame[frame::HEADER..]),
            _ => panic!("not a whole frame"),
        }
    }

    /// Talks until one side has an end; gives the client's last step and the server's.
    fn talk(client: Side, server: Side, mut meddle: impl FnMut(&mut Vec<u8>)) -> (Step, Step) {
        let mut client = ClientHandshake::new(client);
        let mut server = ServerHandshake::new(server, 9, 100);
        let mut frame = client.hello();
        loop {
            let (kind, payload) = read(&frame);
            let step = server.on_frame(kind, payload, || Room::Free);
            let (last, mut frame_back) = match step {
                Step::Send(frame) => (None, frame),
                Step::Refuse(frame, refused) => (Some(Step::Refuse(Vec::new(), refused)), frame),
                Step::Done { last, peer, limits } => {
                    (Some(Step::Done { last: None, peer, limits }), last.expect("a welcome"))
                }
                other => panic!("{other:?}"),
            };
            meddle(&mut frame_back);
            let (kind, payload) = read(&frame_back);
            match (client.on_frame(kind, payload), last) {
                (Step::Send(next), None) => frame = next,
                (step, last) => return (step, last.unwrap_or(Step::Untrusted)),
            }
        }
    }

    const SECRET: &str = "0123456789abcdef";

    fn refusal(step: &Step) -> Option<(Refusal, &str)> {
        match step {
            Step::RefusedBy(refused) => Some((refused.reason, &refused.message)),
            _ => None,
        }
    }

    #[test]
    fn both_know_the_secret() {
        let (client, server) = talk(side(Role::Client, Some(SECRET)), side(Role::Node, Some(SECRET)), |_| {});
        let Step::Done { peer, limits, .. } = client else { panic!("{client:?}") };
        assert_eq!((peer.cluster, peer.incarnation, peer.version), ([7; 16], 3, 5));
        assert_eq!((limits.connection, limits.max_requests), (9, 100));
        let Step::Done { peer, .. } = server else { panic!("{server:?}") };
        assert_eq!((peer.role, peer.name.as_str(), peer.version), (Role::Client, "test", 5));
    }

    #[test]
    fn older_peers_are_let_in_and_much_older_ones_are_told() {
        for (versions, agreed) in [((3, 4), Some(4)), ((5, 6), Some(5)), ((2, 3), None), ((6, 7), None)] {
            let mut old = side(Role::Client, Some(SECRET));
            old.versions = versions;
            let (client, _) = talk(old, side(Role::Node, Some(SECRET)), |_| {});
            match agreed {
                Some(version) => assert!(matches!(client, Step::Done { peer, .. } if peer.version == version)),
                None => {
                    let (reason, message) = refusal(&client).expect("refused");
                    assert_eq!(reason, Refusal::Version);
                    assert!(message.contains("4 to 5"), "{message}");
                }
            }
        }
    }

    #[test]
    fn wrong_and_missing_secrets_are_refused() {
        let server = || side(Role::Node, Some(SECRET));
        let (client, _) = talk(side(Role::Client, Some("0123456789abcdeF")), server(), |_| {});
        assert_eq!(refusal(&client).unwrap().0, Refusal::Credentials);
        assert!(refusal(&client).unwrap().1.contains("the secret is wrong"));
        let (client, _) = talk(side(Role::Client, None), server(), |_| {});
        assert_eq!(refusal(&client).unwrap().0, Refusal::Credentials);
        let mut other = side(Role::Client, Some(SECRET));
        other.identity.cluster = [8; 16];
        let (client, _) = talk(other, server(), |_| {});
        assert_eq!(refusal(&client).unwrap().0, Refusal::Cluster);
    }

    #[test]
    fn an_earlier_secret_is_good_for_a_listener_that_has_it() {
        let mut server = side(Role::Node, Some(SECRET));
        server.secret = server.secret.map(|secret| secret.or(Secret::new("the secret of before").unwrap()));
        for known in [SECRET, "the secret of before"] {
            let (client, _) = talk(side(Role::Client, Some(known)), server.clone(), |_| {});
            assert!(matches!(client, Step::Done { .. }), "{client:?}");
        }
        let (client, _) = talk(side(Role::Client, Some("another secret altogether")), server, |_| {});
        assert_eq!(refusal(&client).unwrap().0, Refusal::Credentials);
    }

    #[test]
    fn a_server_that_does_not_know_the_secret_is_noticed() {
        // It lets everybody in, and says so.
        let mut open = side(Role::Node, None);
        open.certified = true;
        let (client, _) = talk(side(Role::Client, Some(SECRET)), open.clone(), |_| {});
        assert!(matches!(client, Step::Untrusted), "{client:?}");
        let (client, _) = talk(side(Role::Client, None), open.clone(), |_| {});
        assert!(matches!(client, Step::Untrusted), "{client:?}");
        // Its welcome is made up.
        let (client, _) = talk(side(Role::Client, Some(SECRET)), side(Role::Node, Some(SECRET)), |frame| {
            let (kind, payload) = read(frame);
            if kind == Kind::Welcome {
                let mut welcome = Welcome::decode(payload).unwrap();
                welcome.proof.as_mut().unwrap()[0] ^= 1;
                *frame = message(Kind::Welcome, |out| welcome.encode(out));
            }
        });
        assert!(matches!(client, Step::Untrusted), "{client:?}");
        // A certificate on both sides is enough.
        let mut certified = side(Role::Client, None);
        certified.certified = true;
        assert!(matches!(talk(certified, open, |_| {}).0, Step::Done { .. }));
    }

    #[test]
    fn what_was_said_before_cannot_be_changed() {
        let (client, _) = talk(side(Role::Client, Some(SECRET)), side(Role::Node, Some(SECRET)), |frame| {
            let (kind, payload) = read(frame);
            if kind == Kind::Challenge {
                let mut challenge = Challenge::decode(payload).unwrap();
                challenge.version = 4;
                *frame = message(Kind::Challenge, |out| challenge.encode(out));
            }
        });
        assert_eq!(refusal(&client).unwrap().0, Refusal::Credentials, "the proofs are over different transcripts");
    }

    /// Somebody in between has a TLS connection to each side, and hands the frames on.
    #[test]
    fn a_proof_is_good_for_one_connection_only() {
        for (first, second, is_good) in [(7, 7, true), (7, 8, false)] {
            let mut client = ClientHandshake::new(side(Role::Node, Some(SECRET)));
            let mut server = ServerHandshake::new(side(Role::Node, Some(SECRET)), 9, 100);
            client.bind(Some([first; BINDING]));
            server.bind(Some([second; BINDING]));
            let hello = client.hello();
            let Step::Send(challenge) = server.on_frame(Kind::Hello, read(&hello).1, || Room::Free) else { panic!() };
            let Step::Send(proof) = client.on_frame(Kind::Challenge, read(&challenge).1) else { panic!() };
            match server.on_frame(Kind::Proof, read(&proof).1, || Room::Free) {
                Step::Done { .. } => assert!(is_good),
                Step::Refuse(_, refused) => assert!(!is_good && refused.reason == Refusal::Credentials),
                step => panic!("{step:?}"),
            }
        }
    }

    /// A node with a certificate proves no secret; one without must.
    #[test]
    fn a_certificate_takes_the_place_of_the_secret() {
        let server = |certified| Side { certified, certificate_suffices: true, ..side(Role::Node, Some(SECRET)) };
        let certified = Side { certified: true, ..side(Role::Node, None) };
        assert!(matches!(talk(certified.clone(), server(true), |_| {}).0, Step::Done { .. }));
        assert_eq!(refusal(&talk(certified, server(false), |_| {}).0).unwrap().0, Refusal::Credentials);
        assert!(matches!(talk(side(Role::Node, Some(SECRET)), server(false), |_| {}).0, Step::Done { .. }));
    }

    #[test]
    fn a_proof_is_not_good_for_the_other_role() {
        let mut transcript = Transcript::default();
        transcript.add(Kind::Hello, b"hello");
        let secret = Secret::new(SECRET).unwrap();
        let proof = transcript.prove(secret.bytes(), BY_CLIENT);
        assert!(transcript.verify(secret.bytes(), BY_CLIENT, &proof));
        assert!(!transcript.verify(secret.bytes(), BY_SERVER, &proof));
    }

    #[test]
    fn out_of_order_is_refused() {
        let mut server = ServerHandshake::new(side(Role::Node, Some(SECRET)), 1, 1);
        assert!(matches!(server.on_frame(Kind::Proof, &[], || Room::Free), Step::Refuse(..)));
        let mut server = ServerHandshake::new(side(Role::Node, Some(SECRET)), 1, 1);
        assert!(matches!(server.on_frame(Kind::Hello, b"nonsense", || Room::Free), Step::Refuse(..)));
        let mut client = ClientHandshake::new(side(Role::Client, Some(SECRET)));
        client.hello();
        assert!(matches!(client.on_frame(Kind::Welcome, &[]), Step::Violation(_)));
        for (room, reason) in [(Room::Full, Refusal::TooManyConnections), (Room::Stopping, Refusal::ShuttingDown)] {
            let mut server = ServerHandshake::new(side(Role::Node, Some(SECRET)), 1, 1);
            let hello = ClientHandshake::new(side(Role::Client, Some(SECRET))).hello();
            let Step::Refuse(_, refused) = server.on_frame(Kind::Hello, &hello[frame::HEADER..], || room) else {
                panic!("not refused")
            };
            assert_eq!(refused.reason, reason);
        }
    }
}
