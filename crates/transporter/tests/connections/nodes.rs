//! Links between nodes: who is let in, what is said, what becomes of links to peers that die, hang and come back.

use crate::support::{CLUSTER, SECRET};
use bytes::Bytes;
use parking_lot::Mutex;
use rauk_transporter::peers::{incarnation, node_name};
use rauk_transporter::{Identity, Name, Options, PeerHandler, Peers, Secret, TransportError, Transporter};
use rauk_wire::hello::{Refusal, Role};
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Node {
    messages: Mutex<Vec<Bytes>>,
    /// Its receive thread hangs.
    hangs: AtomicBool,
    /// It has long to do with messages that say so.
    busy: AtomicBool,
    at_work: AtomicBool,
}

impl PeerHandler for Node {
    fn on_message(&self, from: Option<Name>, payload: Bytes) {
        assert_eq!(from, None, "links without TLS name nobody");
        while self.hangs.load(SeqCst) || self.busy.load(SeqCst) && payload == "busy" {
            self.at_work.store(true, SeqCst);
            std::thread::sleep(Duration::from_millis(5));
        }
        self.messages.lock().push(payload);
    }

    fn on_request(&self, payload: Bytes) -> Pin<Box<dyn Future<Output = Vec<u8>> + Send>> {
        Box::pin(async move { [b"answer to ", &payload[..]].concat() })
    }

    fn on_enrol(&self, _: Bytes) -> Pin<Box<dyn Future<Output = Vec<u8>> + Send>> {
        unreachable!("links without TLS need no certificates")
    }
}

struct Started {
    node: Arc<Node>,
    peers: Arc<Peers>,
    address: String,
}

struct Wish {
    secret: &'static str,
    cluster: [u8; 16],
    version: u16,
    address: String,
    send_limit: usize,
    directory: u64,
    process: u64,
}

impl Default for Wish {
    fn default() -> Wish {
        let address = "127.0.0.1:0".into();
        Wish {
            secret: SECRET,
            cluster: CLUSTER,
            version: rauk_wire::PROTOCOL,
            address,
            send_limit: 1 << 20,
            directory: 0,
            process: 0,
        }
    }
}

fn start(wish: Wish) -> Started {
    let listener = TcpListener::bind(wish.address.parse::<SocketAddr>().unwrap()).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let node = Arc::new(Node::default());
    let identity = Identity {
        role: Role::Node,
        cluster: wish.cluster,
        incarnation: if wish.directory == 0 { 0 } else { incarnation(wish.directory, wish.process) },
        version: wish.version,
        name: node_name("a node", &address),
    };
    let options = Options { accepts: Some(Role::Node), send_limit: wish.send_limit, ..Options::default() };
    let secret = Secret::new(wish.secret).unwrap();
    let peers = Peers::start(options, identity, (secret, None), node.clone()).unwrap();
    peers.listen(listener).unwrap();
    Started { node, peers, address }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// `None`: it takes longer than ten seconds.
fn wait<T>(future: impl Future<Output = T>) -> Option<T> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(value);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        std::thread::park_timeout(left);
    }
}

fn call(from: &Started, to: &str) -> Result<Bytes, TransportError> {
    wait(from.peers.call(to, b"question".to_vec())).expect("a call ends")
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn messages_and_calls() {
    let (a, b) = (start(Wish::default()), start(Wish::default()));
    for number in 0..100u8 {
        a.peers.send(&b.address, vec![number]);
    }
    assert_eq!(call(&a, &b.address).unwrap(), "answer to question");
    assert_eq!(call(&b, &a.address).unwrap(), "answer to question");
    until("all messages", || b.node.messages.lock().len() == 100);
    let expected: Vec<Bytes> = (0..100u8).map(|n| Bytes::from(vec![n])).collect();
    assert_eq!(*b.node.messages.lock(), expected, "on one link they stay in order");
    // Two links in each direction, however much is said.
    let of_a = a.peers.peers();
    assert_eq!((of_a.len(), of_a[0].connected, of_a[0].links_made, of_a[0].dropped), (1, true, 2, 0));
    let (messages, requests) = a.peers.traffic();
    assert_eq!((messages.sent, messages.sent_bytes), (100, 100));
    assert_eq!((requests.sent, requests.received), (3, 4), "a request and an answer each, and greetings");
}

#[test]
fn strangers_are_refused_with_the_cause() {
    let node = start(Wish::default());
    let refused = |wish: Wish| match call(&start(wish), &node.address) {
        Err(TransportError::Refused { reason, message }) => (reason, message),
        other => panic!("{other:?}"),
    };
    let (reason, text) = refused(Wish { secret: "another secret, just as long", ..Wish::default() });
    assert_eq!(reason, Refusal::Credentials);
    assert!(text.contains("secret of a node at 127.0.0.1:") && text.contains("same secret file"), "{text}");
    let (reason, text) = refused(Wish { cluster: [9; 16], ..Wish::default() });
    assert_eq!(reason, Refusal::Cluster);
    assert!(text.contains("wrong node") && text.contains(&"09".repeat(16)), "{text}");
    let (reason, text) = refused(Wish { version: rauk_wire::PROTOCOL + 2, ..Wish::default() });
    assert_eq!(reason, Refusal::Version);
    assert!(text.contains("upgrade the older one"), "{text}");
    // A program that takes the cluster port for the native one.
    let handler = crate::support::Server::new(|_, _| {});
    let program = Transporter::start(Options::default(), crate::support::identity(Role::Client), handler).unwrap();
    let result = wait(program.connect(&node.address, &crate::support::secret(), crate::support::TIMEOUT)).unwrap();
    assert!(
        matches!(&result, Err(TransportError::Refused { reason: Refusal::Role, message }) if message.contains("native port")),
        "{result:?}"
    );
    assert!(node.node.messages.lock().is_empty());
    assert_eq!(node.peers.statistics().links_refused, 4);
}

#[test]
fn a_node_without_a_cluster_can_join_and_be_reached() {
    let member = start(Wish::default());
    let joiner = start(Wish { cluster: [0; 16], ..Wish::default() });
    assert!(call(&joiner, &member.address).is_ok());
    // The leader brings it its log before it knows where it is.
    assert!(call(&member, &joiner.address).is_ok());
    joiner.peers.set_cluster(CLUSTER);
    let other = start(Wish { cluster: [9; 16], ..Wish::default() });
    assert!(matches!(call(&other, &joiner.address), Err(TransportError::Refused { reason: Refusal::Cluster, .. })));
}

#[test]
fn a_copy_of_oneself_is_no_peer() {
    let with = |directory, process| start(Wish { directory, process, ..Wish::default() });
    let (a, copy) = (with(77 << 32, 5), with(77 << 32, 6));
    let port = a.address.rsplit_once(':').expect("an address").1;
    // By whatever name.
    for own in [a.address.clone(), format!("localhost:{port}")] {
        assert_eq!(call(&a, &own), Err(TransportError::Oneself { address: own }));
    }
    let error = call(&a, &copy.address).unwrap_err();
    assert!(matches!(error, TransportError::Configuration(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("a copy of it") && text.contains(copy.address.as_str()), "{text}");
    assert!(call(&a, &with(78 << 32, 5).address).is_ok());
}

#[test]
fn a_peer_that_dies_is_found_again() {
    let a = start(Wish::default());
    let b = start(Wish::default());
    let address = b.address.clone();
    assert!(call(&a, &address).is_ok());
    b.peers.shutdown();
    drop(b);
    until("a call fails", || call(&a, &address).is_err());
    let before = Instant::now();
    for _ in 0..1000 {
        a.peers.send(&address, b"into the void".to_vec());
        assert!(call(&a, &address).is_err());
    }
    assert!(before.elapsed() < Duration::from_secs(3), "nothing waits for a peer that is not there");
    let b = start(Wish { address: address.clone(), ..Wish::default() });
    until("it is found again", || call(&a, &address).is_ok());
    until("and gets messages", || {
        a.peers.send(&address, b"hello".to_vec());
        !b.node.messages.lock().is_empty()
    });
    assert!(a.peers.peers()[0].dropped > 0);
    assert_eq!(a.peers.peers()[0].error, None);
}

/// A process that is stopped, or does not come round to reading: what is sent to it is bounded, and its link ends.
#[test]
fn a_peer_that_hangs_costs_no_memory() {
    const LIMIT: usize = 256 << 10;
    let a = start(Wish { send_limit: LIMIT, ..Wish::default() });
    let b = start(Wish::default());
    assert!(call(&a, &b.address).is_ok());
    b.node.hangs.store(true, SeqCst);
    let message = vec![7; 64 << 10];
    let began = Instant::now();
    let mut most = 0;
    // More than buffers of the system take.
    for _ in 0..2000 {
        a.peers.send(&b.address, message.clone());
        most = most.max(a.peers.peers()[0].unsent_bytes);
    }
    assert!(began.elapsed() < Duration::from_secs(4), "sending does not block");
    assert!(a.peers.peers()[0].dropped > 0);
    assert!(most < 4 * LIMIT as u64, "{most} bytes wait");
    assert!(call(&a, &b.address).is_ok(), "calls do not wait for messages");
    until("its link ends", || !a.peers.peers()[0].connected);
    b.node.hangs.store(false, SeqCst);
    until("it is there again", || {
        a.peers.send(&b.address, b"again".to_vec());
        b.node.messages.lock().iter().any(|message| message == "again")
    });
}

#[test]
fn urgent_messages_do_not_wait_for_what_is_done_with_others() {
    let (a, b) = (start(Wish::default()), start(Wish::default()));
    a.peers.send_urgent(&b.address, b"first".to_vec());
    until("it comes", || b.node.messages.lock().len() == 1);
    b.node.busy.store(true, SeqCst);
    for _ in 0..50 {
        a.peers.send(&b.address, b"busy".to_vec());
    }
    until("it is busy", || b.node.at_work.load(SeqCst));
    for number in 0..20u8 {
        a.peers.send_urgent(&b.address, vec![number]);
    }
    until("they come", || b.node.messages.lock().len() == 21);
    assert!(call(&a, &b.address).is_ok());
    assert_eq!(b.node.messages.lock()[1..], (0..20u8).map(|n| Bytes::from(vec![n])).collect::<Vec<_>>());
    b.node.busy.store(false, SeqCst);
    until("the others come", || b.node.messages.lock().len() == 71);
}

/// Who is called by a peer that hangs is told when its link ends.
#[test]
fn calls_of_a_peer_that_hangs_fail() {
    let a = start(Wish::default());
    let b = start(Wish::default());
    assert!(call(&a, &b.address).is_ok());
    b.node.hangs.store(true, SeqCst);
    a.peers.send_urgent(&b.address, b"urgent".to_vec());
    let pending = a.peers.call(&b.address, b"question".to_vec());
    until("its link ends", || !a.peers.peers()[0].connected);
    assert!(matches!(wait(pending), Some(Err(_))), "whoever asked is told");
    b.node.hangs.store(false, SeqCst);
    until("it is there again", || call(&a, &b.address).is_ok());
}
