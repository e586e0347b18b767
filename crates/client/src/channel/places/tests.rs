//! Servers that only say where partitions are led, and a client that goes by it.

use super::map::NOWHERE;
use crate::address::Address;
use crate::channel::remote::{Connection, Remote};
use crate::channel::{Ask, Line};
use crate::options::Options;
use crate::{Error, ErrorKind, blocking::wait};
use parking_lot::Mutex;
use rauk_transporter::{CloseReason, Handler, Identity, Link, Secret, Security, Transporter, Urgency};
use rauk_types::NodeId;
use rauk_types::schema::BUCKETS;
use rauk_wire::hello::Role;
use rauk_wire::placement::PlacedNode;
use rauk_wire::{Frame, Header, Kind, Placement};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CLUSTER: [u8; 16] = [9; 16];
const SECRET: &[u8] = b"a secret for tests of placement";

/// What a server says, and what was asked of it.
#[derive(Default)]
struct Said {
    /// In the header of answers.
    version: AtomicU32,
    placement: Mutex<Vec<u8>>,
    asked: AtomicUsize,
    links: Mutex<Vec<Arc<Link>>>,
}

impl Said {
    fn open_links(&self) -> usize {
        self.links.lock().iter().filter(|link| !link.is_closed()).count()
    }
}

/// Answers questions for the placement, and ends of transactions; all else is never answered.
struct Answers(Arc<Said>);

impl Handler for Answers {
    fn on_open(&self, link: &Arc<Link>) {
        self.0.links.lock().push(link.clone());
    }

    fn on_frame(&self, link: &Arc<Link>, frame: Frame) {
        let mut payload = link.buffer();
        let kind = match frame.header.kind {
            Kind::AskPlacement => {
                self.0.asked.fetch_add(1, Ordering::SeqCst);
                payload.extend_from_slice(&self.0.placement.lock());
                Kind::Placement
            }
            Kind::Rollback => Kind::Done,
            _ => return,
        };
        let placement = self.0.version.load(Ordering::SeqCst);
        let header = Header { placement, ..Header::new(kind, frame.header.request) };
        // A client that has gone needs no answer.
        let _ = link.send(&header, payload, Urgency::Force);
    }

    fn on_close(&self, _link: &Arc<Link>, _reason: &CloseReason) {}
}

struct Server {
    address: SocketAddr,
    said: Arc<Said>,
    _transporter: Arc<Transporter>,
}

fn server() -> Server {
    let said = Arc::new(Said::default());
    let options = rauk_transporter::Options { accepts: Some(Role::Client), ..Default::default() };
    let identity =
        Identity { role: Role::Node, cluster: CLUSTER, incarnation: 1, version: 1, name: "a server of a test".into() };
    let transporter = Transporter::start(options, identity, Arc::new(Answers(said.clone()))).expect("started");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let security = Security { secret: Some(Secret::new(SECRET.to_vec()).expect("long enough")), tls: None };
    let address = transporter.listen(listener, security).expect("listening");
    Server { address, said, _transporter: transporter }
}

/// Two nodes, each of which leads half of the buckets.
fn two(version: u32, here: u16, first: SocketAddr, second: SocketAddr) -> Placement {
    let node = |number, address: SocketAddr| PlacedNode { node: NodeId(number), address: address.to_string() };
    Placement {
        version,
        here: NodeId(here),
        spread: 2,
        groups: 2,
        nodes: vec![node(1, first), node(2, second)],
        leaders: vec![NodeId(1), NodeId(2), NodeId(1)],
    }
}

fn says(server: &Server, placement: &Placement) {
    let mut bytes = Vec::new();
    placement.encode(&mut bytes);
    *server.said.placement.lock() = bytes;
    server.said.version.store(placement.version, Ordering::SeqCst);
}

const OF_FIRST: u16 = 0;
const OF_SECOND: u16 = BUCKETS - 1;

struct Client {
    remote: Arc<Remote>,
}

impl Client {
    fn of(server: &Server, more: &str) -> Client {
        let options = Options { connect_timeout: Duration::from_secs(5), ..Options::secret(SECRET) };
        let address = Address::parse(&format!("rauk://{}{more}", server.address)).expect("an address");
        let remote = Remote::new(address, &options).expect("a client");
        wait(remote.connect_first()).expect("connected");
        Client { remote }
    }

    fn present(&self) -> Arc<Connection> {
        self.remote.open(None).expect("connected")
    }

    /// Any request: the header of its answer says what version the server has.
    fn hear(&self) {
        let line = Line::Remote(self.present());
        wait(line.call(Ask::new(Kind::Rollback), Kind::Done, Duration::from_secs(5), |out| out)).expect("an answer");
    }

    /// The node to which a read of a bucket goes; `None`: by the present connection.
    fn goes_to(&self, bucket: u16) -> Option<u16> {
        let connection = self.remote.open_at(bucket, false, None)?;
        connection.node().map(|node| node.0)
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Two nodes and a client of the first that knows both.
fn connected() -> (Server, Server, Client) {
    let (first, second) = (server(), server());
    says(&first, &two(1, 1, first.address, second.address));
    says(&second, &two(1, 2, first.address, second.address));
    let client = Client::of(&first, "");
    client.hear();
    until("a read goes to the second node", || client.goes_to(OF_SECOND) == Some(2));
    (first, second, client)
}

#[test]
fn requests_go_to_the_node_that_leads() {
    let (first, second, client) = connected();
    assert_eq!(client.goes_to(OF_FIRST), Some(1));
    assert!(Arc::ptr_eq(&client.present(), &client.remote.open_at(OF_FIRST, true, None).expect("the present one")));
    assert_eq!(client.goes_to(NOWHERE), None);
    assert_eq!((first.said.open_links(), second.said.open_links()), (1, 1));
    // Nothing has changed, so nothing is asked.
    let asked = first.said.asked.load(Ordering::SeqCst);
    for _ in 0..100 {
        client.hear();
        client.goes_to(OF_SECOND);
    }
    assert_eq!(first.said.asked.load(Ordering::SeqCst), asked);
}

#[test]
fn a_newer_version_is_asked_for() {
    let (first, second, client) = connected();
    let mut moved = two(2, 1, first.address, second.address);
    moved.leaders = vec![NodeId(2), NodeId(1), NodeId(1)];
    says(&first, &moved);
    client.hear();
    until("leaders have changed places", || {
        (client.goes_to(OF_FIRST), client.goes_to(OF_SECOND)) == (Some(2), Some(1))
    });
    // An older one is not taken, whoever says it.
    says(&second, &two(1, 2, first.address, second.address));
    let other = client.remote.open_at(OF_FIRST, false, None).expect("a connection");
    wait(Line::Remote(other).call(Ask::new(Kind::Rollback), Kind::Done, Duration::from_secs(5), |out| out))
        .expect("told");
    assert_eq!(client.goes_to(OF_FIRST), Some(2));
}

#[test]
fn a_server_alone_is_not_asked_and_a_client_may_not_want_to() {
    let first = server();
    let client = Client::of(&first, "");
    client.hear();
    assert_eq!(client.goes_to(OF_SECOND), None);
    let second = server();
    says(&first, &two(1, 1, first.address, second.address));
    let client = Client::of(&first, "/?placement=off");
    client.hear();
    assert_eq!(client.goes_to(OF_SECOND), None);
    assert!(!client.remote.is_placed());
    assert_eq!(first.said.asked.load(Ordering::SeqCst), 0);
    assert_eq!(second.said.open_links(), 0);
}

#[test]
fn an_address_that_leads_nowhere_or_elsewhere_is_left_alone() {
    let first = server();
    // A port that nobody listens on: servers of other tests have another address.
    let closed = TcpListener::bind("127.0.0.2:0").expect("a port").local_addr().expect("its address");
    says(&first, &two(1, 1, first.address, closed));
    let client = Client::of(&first, "");
    client.hear();
    until("the placement is known", || client.goes_to(OF_FIRST) == Some(1));
    for _ in 0..50 {
        assert_eq!(client.goes_to(OF_SECOND), None, "by the present connection");
        client.hear();
    }
    // What is advertised leads to the first node again.
    says(&first, &two(2, 1, first.address, first.address));
    client.hear();
    until("it was tried", || {
        client.goes_to(OF_SECOND);
        first.said.links.lock().len() == 2
    });
    until("it was given up", || first.said.open_links() == 1);
    assert_eq!(client.goes_to(OF_SECOND), None);
    assert_eq!(first.said.links.lock().len(), 2, "once, for a minute");
}

#[test]
fn nonsense_is_passed_over() {
    let (first, second) = (server(), server());
    let good = two(7, 1, first.address, second.address);
    let client = Client::of(&first, "");
    let nonsense: [&dyn Fn(&mut Placement); 4] =
        [&|p| p.groups = 60_000, &|p| p.leaders.truncate(1), &|p| p.nodes[1].node = NodeId(1), &|p| {
            p.nodes[0].address = "x".repeat(1000)
        }];
    for (change, version) in nonsense.iter().zip(1..) {
        let mut placement = Placement { version, ..good.clone() };
        change(&mut placement);
        let asked = first.said.asked.load(Ordering::SeqCst);
        says(&first, &placement);
        client.hear();
        until("it is asked", || {
            client.goes_to(OF_SECOND);
            first.said.asked.load(Ordering::SeqCst) > asked
        });
        assert_eq!(client.goes_to(OF_SECOND), None);
    }
    // A leader whom nobody knows, and addresses that are none.
    let mut strange = Placement { version: 6, ..good.clone() };
    strange.leaders = vec![NodeId(77), NodeId(2), NodeId(0)];
    strange.nodes[1].address = "no address".into();
    says(&first, &strange);
    client.hear();
    until("it is known where the connection leads", || {
        client.goes_to(OF_SECOND);
        client.present().node() == Some(NodeId(1))
    });
    assert_eq!((client.goes_to(OF_FIRST), client.goes_to(OF_SECOND)), (None, None));
    // The connection has lasted, and what makes sense is taken.
    says(&first, &good);
    says(&second, &two(7, 2, first.address, second.address));
    client.hear();
    until("a read goes to the second node", || client.goes_to(OF_SECOND) == Some(2));
    assert_eq!(first.said.open_links(), 1);
}

#[test]
fn a_node_that_leaves_takes_its_connection_and_what_waits_there() {
    let (first, second, client) = connected();
    let there = Line::Remote(client.remote.open_at(OF_SECOND, false, None).expect("a connection"));
    let mut left = two(2, 1, first.address, second.address);
    left.nodes.pop();
    left.leaders = vec![NodeId(1); 3];
    // The second node is silent, and the first one has not been asked since it knows more.
    says(&first, &left);
    let waiting = there.call(Ask::new(Kind::Batch), Kind::BatchAnswer, Duration::from_secs(60), |out| out);
    let began = Instant::now();
    let error: Error = wait(waiting).expect_err("it is never answered").into();
    assert_eq!(error.kind, ErrorKind::Disconnected, "{error}");
    assert!(error.message.contains("left the cluster"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(50), "before the request's own time is over");
    assert_eq!(client.goes_to(OF_SECOND), Some(1));
    until("its connection has ended", || second.said.open_links() == 0);
}

#[test]
fn connections_end_with_the_client() {
    let (first, second, client) = connected();
    drop(client);
    until("they have ended", || first.said.open_links() + second.said.open_links() == 0);
}
