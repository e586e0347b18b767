//! Links between nodes with certificates: who is let in, who is refused and is told why, how a node gets a certificate.

use crate::support::{CLUSTER, SECRET};
use bytes::Bytes;
use parking_lot::Mutex;
use rauk_transporter::certificates::VALID;
use rauk_transporter::peers::{PeerHandler, Peers, node_name};
use rauk_transporter::{Authority, Clock, Identity, Name, NodeCertificate, NodeKey, NodeTls, Options, Secret};
use rauk_transporter::{Security, Tls, TransportError, Transporter, Urgency};
use rauk_types::ErrorClass;
use rauk_wire::hello::{Refusal, Role};
use rauk_wire::{Header, Kind};
use std::collections::HashMap;
use std::future::Future;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant, SystemTime};

const NOW: u64 = 1_900_000_000;

type Answering = Pin<Box<dyn Future<Output = Vec<u8>> + Send>>;

#[derive(Default)]
struct Ear {
    messages: Mutex<Vec<(Option<Name>, Bytes)>>,
}

impl PeerHandler for Ear {
    fn on_message(&self, from: Option<Name>, payload: Bytes) {
        self.messages.lock().push((from, payload));
    }

    fn on_request(&self, payload: Bytes) -> Answering {
        Box::pin(async move { [b"answer to ", &payload[..]].concat() })
    }

    fn on_enrol(&self, payload: Bytes) -> Answering {
        Box::pin(async move { [b"signed ", &payload[..]].concat() })
    }
}

struct Node {
    ear: Arc<Ear>,
    peers: Arc<Peers>,
    tls: Option<Arc<NodeTls>>,
    address: String,
    seconds: Arc<AtomicU64>,
}

fn started(secret: &str, certificate: Option<NodeCertificate>, with_tls: bool) -> Node {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let ear = Arc::new(Ear::default());
    let seconds = Arc::new(AtomicU64::new(NOW));
    let clock = seconds.clone();
    let clock = Clock::new(move || SystemTime::UNIX_EPOCH + Duration::from_secs(clock.load(SeqCst)));
    let tls = with_tls.then(|| NodeTls::new(clock));
    if let (Some(tls), Some(certificate)) = (&tls, &certificate) {
        tls.install(certificate).unwrap();
    }
    let identity = Identity {
        role: Role::Node,
        cluster: CLUSTER,
        incarnation: 0,
        version: rauk_wire::PROTOCOL,
        name: node_name("a node", &address),
    };
    let options = Options { accepts: Some(Role::Node), ..Options::default() };
    let secret = Secret::new(secret).unwrap();
    let peers = Peers::start(options, identity, (secret, tls.clone()), ear.clone()).unwrap();
    peers.listen(listener).unwrap();
    Node { ear, peers, tls, address, seconds }
}

fn certificate(authority: &Authority, node: u16) -> NodeCertificate {
    let key = NodeKey::new().unwrap();
    let name = Name { cluster: authority.cluster(), node, directory: 0x1000 + u64::from(node) };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
    let certificate = authority.sign(&name, key.public(), now).unwrap();
    NodeCertificate { certificate, key: key.pem(), authority: authority.certificate_pem() }
}

fn member(authority: &Authority, node: u16) -> Node {
    started(SECRET, Some(certificate(authority, node)), true)
}

fn call(from: &Node, to: &Node) -> Result<Bytes, TransportError> {
    futures::executor::block_on(from.peers.call(&to.address, b"question".to_vec()))
}

/// The reason, and whether it stays until somebody acts.
fn not_linked(result: Result<Bytes, TransportError>) -> (String, bool) {
    match result {
        Err(error @ TransportError::Certificate { .. }) => {
            let permanent = error.class() == ErrorClass::Permanent;
            (error.to_string(), permanent)
        }
        other => panic!("{other:?}"),
    }
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn members_are_linked_and_known_by_their_certificates() {
    let authority = Authority::found(CLUSTER).unwrap();
    let [one, two] = [1, 2].map(|node| member(&authority, node));
    assert_eq!(call(&one, &two).unwrap(), "answer to question");
    one.peers.send(&two.address, b"hello".to_vec());
    until("the message is there", || !two.ear.messages.lock().is_empty());
    let (from, payload) = two.ear.messages.lock()[0].clone();
    assert_eq!(from, Some(Name { cluster: CLUSTER, node: 1, directory: 0x1001 }));
    assert_eq!(payload, "hello");
}

#[test]
fn another_clusters_node_is_refused_by_both_sides() {
    // The same id: only the key of the authority differs.
    let [one, two] = [1, 2].map(|node| member(&Authority::found(CLUSTER).unwrap(), node));
    let (text, permanent) = not_linked(call(&one, &two));
    assert!(text.contains("of another cluster") && text.contains("correct the address") && permanent, "{text}");
    until("the other side counts it", || two.peers.statistics().links_refused == 1);
}

#[test]
fn a_node_that_is_not_the_one_that_is_meant_is_refused() {
    let authority = Authority::found(CLUSTER).unwrap();
    let [one, two] = [1, 2].map(|node| member(&authority, node));
    one.peers.expect(HashMap::from([(two.address.clone(), 3)]));
    let (text, permanent) = not_linked(call(&one, &two));
    assert!(text.contains("that of node 2, and node 3 is expected") && !permanent, "{text}");
    one.peers.expect(HashMap::from([(two.address.clone(), 2)]));
    until("it is tried again", || call(&one, &two).is_ok());
}

#[test]
fn an_expired_certificate_is_refused_by_both_sides_until_it_is_renewed() {
    let authority = Authority::found(CLUSTER).unwrap();
    let [one, two] = [1, 2].map(|node| member(&authority, node));
    let late = NOW + VALID.as_secs() + 1;
    // The other's has expired by this node's clock.
    one.seconds.store(late, SeqCst);
    let (text, permanent) = not_linked(call(&one, &two));
    assert!(text.contains("its certificate has expired") && text.contains("gets a new one") && !permanent, "{text}");
    // This node's has expired by the other's clock.
    one.seconds.store(NOW, SeqCst);
    two.seconds.store(late, SeqCst);
    assert!(two.tls.as_ref().unwrap().left().is_zero());
    until("the other node refuses it", || match call(&one, &two) {
        // Before it is tried again it fails as it did the last time.
        Err(TransportError::Certificate { reason, .. }) => reason.contains("certificate of this node has expired"),
        // The link is made, and ended by the other side before it is used.
        Err(TransportError::Closed(_) | TransportError::Connect { .. }) => false,
        other => panic!("{other:?}"),
    });
    two.seconds.store(NOW, SeqCst);
    one.tls.as_ref().unwrap().install(&certificate(&authority, 1)).unwrap();
    until("the renewed one is taken", || call(&one, &two).is_ok());
}

#[test]
fn plain_and_tls_links_do_not_mix_and_the_flag_is_named() {
    let authority = Authority::found(CLUSTER).unwrap();
    let secure = member(&authority, 1);
    let plain = started(SECRET, None, false);
    match call(&plain, &secure) {
        Err(TransportError::Refused { reason: Refusal::Version, message }) => {
            assert!(message.contains("this node are TLS") && message.contains("--plain-links"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let (text, permanent) = not_linked(call(&secure, &plain));
    assert!(text.contains("--plain-links") && permanent, "{text}");
    // A build that knows of no TLS closes what it cannot read.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let deaf = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let (text, permanent) = not_linked(futures::executor::block_on(secure.peers.call(&address, Vec::new())));
    assert!(text.contains("an earlier version") && text.contains("--plain-links") && !permanent, "{text}");
    deaf.join().unwrap();
    assert_eq!(call(&secure, &member(&authority, 2)).unwrap(), "answer to question");
}

#[test]
fn a_certificate_is_asked_for_with_the_secret_and_nothing_else_is() {
    let authority = Authority::found(CLUSTER).unwrap();
    let secure = member(&authority, 1);
    let joiner = started(SECRET, None, true);
    let enrol = |from: &Node| {
        futures::executor::block_on(from.peers.enrol(&secure.address, from.tls.as_ref().unwrap(), b"my key".to_vec()))
    };
    assert!(matches!(call(&joiner, &secure), Err(TransportError::NoCertificate)));
    assert_eq!(enrol(&joiner).unwrap(), "signed my key");
    match enrol(&started("another secret, quite another", None, true)) {
        Err(TransportError::Refused { reason: Refusal::Credentials, message }) => {
            assert!(message.contains("secret") && message.contains("is wrong"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    // With the secret and without a certificate nothing else is done.
    let security =
        Security { secret: Some(Secret::new(SECRET).unwrap()), tls: Some(Tls::Enrol(joiner.tls.clone().unwrap())) };
    let client = Arc::new(crate::support::Client::default());
    let transporter =
        Transporter::start(Options::default(), crate::support::identity(Role::Node), client.clone()).unwrap();
    let link = crate::support::connect_with(&transporter, secure.address.parse().unwrap(), &security).unwrap();
    link.send(&Header::new(Kind::Member, 0), link.buffer(), Urgency::Force).unwrap();
    until("the link is ended", || client.closed.lock().is_some());
    assert!(secure.ear.messages.lock().is_empty());
}

#[test]
fn nonsense_ends_one_connection_only() {
    let authority = Authority::found(CLUSTER).unwrap();
    let [one, two] = [1, 2].map(|node| member(&authority, node));
    for nonsense in [&[22, 3, 1, 0, 4, 1, 0, 0, 0][..], &[22; 4096], b"GET / HTTP/1.1\r\n\r\n"] {
        let mut socket = TcpStream::connect(&two.address).unwrap();
        socket.write_all(nonsense).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut rest = Vec::new();
        // An answer, the end, or a reset.
        let _ = socket.read_to_end(&mut rest);
    }
    assert_eq!(call(&one, &two).unwrap(), "answer to question");
}
