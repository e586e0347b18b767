//! Handshakes with secrets and certificates: who is let in, what is noticed.

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
            Step::Done { last, peer, limits, granted } => {
                (Some(Step::Done { last: None, peer, limits, granted }), last.expect("a welcome"))
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
