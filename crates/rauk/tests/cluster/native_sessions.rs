//! One session at several nodes: its commits at one are not below what it has seen at another, and a node ignores times
//! that no commit can have had.

use crate::common::cluster::{Node, all_in_one, insist, until, until_healthy, until_settled};
use crate::common::number;
use mysql::prelude::Queryable;
use parking_lot::Mutex;
use rauk_transporter::{CloseReason, Handler, Identity, Link, Options, Secret, Security, Transporter, Urgency};
use rauk_types::{IndexId, TableSchema, ValueRef, key};
use rauk_wire::definition::{self, Definition, TableName};
use rauk_wire::hello::Role;
use rauk_wire::{
    AnswerReader, BatchBuilder, BatchOptions, Frame, Header, Kind, LockWish, OpKind, Outcome, Placement, Shape, Wanted,
};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// Hands on what a server sends.
struct Answers(Mutex<Sender<Frame>>);

impl Handler for Answers {
    fn on_open(&self, _link: &Arc<Link>) {}

    fn on_frame(&self, _link: &Arc<Link>, frame: Frame) {
        // Nobody waits any more when the test has ended.
        let _ = self.0.lock().send(frame);
    }

    fn on_close(&self, _link: &Arc<Link>, _reason: &CloseReason) {}
}

/// A client that says what it likes of what it has seen.
struct Session {
    link: Arc<Link>,
    answers: Receiver<Frame>,
    next: u64,
    _transporter: Arc<Transporter>,
}

impl Session {
    fn of(node: &Node) -> Session {
        let (sender, answers) = channel();
        let identity =
            Identity { role: Role::Client, cluster: [0; 16], incarnation: 0, version: 1, name: "sessions".into() };
        let handler = Arc::new(Answers(Mutex::new(sender)));
        let transporter = Transporter::start(Options::default(), identity, handler).expect("started");
        let secret = Secret::from_file(&node.dir.join("native.secret")).expect("its secret");
        let security = Security { secret: Some(secret), tls: None };
        let address = format!("127.0.0.1:{}", node.process().native_port);
        let link = rauk_client::blocking::wait(transporter.connect(&address, &security, PATIENCE)).expect("let in");
        Session { link, answers, next: 1, _transporter: transporter }
    }

    /// `seen`: the commit time that it claims to have seen.
    fn ask(&mut self, kind: Kind, seen: u64, payload: &[u8]) -> Frame {
        let mut buffer = self.link.buffer();
        buffer.extend_from_slice(payload);
        let header = Header { timestamp: seen, ..Header::new(kind, self.next) };
        self.next += 1;
        self.link.send(&header, buffer, Urgency::Force).expect("sent");
        loop {
            let frame = self.answers.recv_timeout(PATIENCE).expect("an answer");
            if frame.header.request == header.request {
                return frame;
            }
        }
    }

    fn open(&mut self, table: &str) -> TableSchema {
        let mut payload = Vec::new();
        definition::encode(&TableName { database: "shop".into(), table: table.into() }, &mut payload);
        let answer = self.ask(Kind::OpenTable, 0, &payload);
        definition::decode::<Definition>(&answer.payload).expect("a definition").schema
    }

    fn placement(&mut self) -> Placement {
        let answer = self.ask(Kind::AskPlacement, 0, b"");
        assert_eq!(answer.header.kind, Kind::Placement);
        let placement = Placement::decode(&answer.payload).expect("it is sound");
        assert_eq!(answer.header.placement, placement.version, "every answer names the version");
        placement
    }

    /// Adds one to a row; the time of the commit.
    fn change(&mut self, table: &TableSchema, id: i32, seen: u64) -> u64 {
        let shape = Shape {
            table: table.id,
            version: table.version,
            kind: OpKind::Increment,
            index: IndexId::PRIMARY,
            lock: LockWish::None,
            conditional: false,
            columns: vec![1],
            wanted: Wanted::Nothing,
        };
        let mut builder = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &[shape]);
        builder.key_and_values(0, &encoded(table, id), [ValueRef::Int(1)], None);
        let answer = self.ask(Kind::Batch, seen, &builder.finish());
        assert_eq!(answer.header.kind, Kind::BatchAnswer);
        let mut reader = AnswerReader::parse(&answer.payload).expect("an answer");
        let outcome = reader.next_entry().expect("an entry").expect("one operation").1;
        assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
        answer.header.timestamp
    }
}

fn encoded(table: &TableSchema, id: i32) -> Vec<u8> {
    let mut bytes = Vec::new();
    table.key_def(table.primary()).encode_prefix(&[ValueRef::Int(id.into())], &mut bytes);
    bytes
}

#[test]
fn commits_of_a_session_are_in_order_whatever_nodes_they_are_made_by() {
    let root = tempfile::tempdir().unwrap();
    let nodes = all_in_one(root.path(), 2, "2");
    until_healthy(&nodes[0], 2);
    until_settled(&nodes[0]);
    let mut sql = nodes[0].connect();
    insist(&mut sql, "CREATE DATABASE shop");
    insist(&mut sql, "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT NOT NULL)");
    let rows: Vec<String> = (0..100).map(|id| format!("({id}, 0)")).collect();
    insist(&mut sql, &format!("INSERT INTO shop.t VALUES {}", rows.join(", ")));
    let mut sessions = [Session::of(&nodes[0]), Session::of(&nodes[1])];
    let table = sessions[0].open("t");

    // A row that the first node leads, and one of the second.
    let placement = sessions[0].placement();
    let by_other = sessions[1].placement();
    assert_ne!(placement.here, by_other.here);
    assert_eq!(placement, Placement { here: placement.here, ..by_other }, "both have the same state");
    let layout = placement.layout().expect("it is sound");
    let node_of = |id: i32| {
        let key = encoded(&table, id);
        placement.leader(layout, rauk_types::route::Route::new(&table).bucket_of_key(&key, key::hash(&key)))
    };
    let here = placement.here;
    let led = |here_wanted: bool| (0..100).find(|id| node_of(*id).is_some_and(|node| (node == here) == here_wanted));
    let (one, other) = (led(true).expect("it leads rows"), led(false).expect("the other one does too"));

    // Snapshots make the times of what they have read grow, and no other times.
    let read = format!("SELECT v FROM shop.t WHERE id = {one}");
    until("one row's commits are later than the other's", || {
        for _ in 0..10 {
            sql.query_drop("START TRANSACTION").expect("begun");
            number(&mut sql, &read);
            number(&mut sql, &read);
            sql.query_drop("COMMIT").expect("ended");
        }
        sessions[0].change(&table, one, 0) > sessions[1].change(&table, other, 0) + 5
    });
    let seen = sessions[0].change(&table, one, 0);
    assert!(sessions[1].change(&table, other, 0) < seen, "it does not know of the first commit");
    assert!(sessions[1].change(&table, other, seen) >= seen, "it does, and is not before it");

    // A time that nothing can have had is passed over: what is committed is in the next snapshot, at any node.
    for claimed in [seen + 1_000_000, u64::MAX, u64::MAX / 2] {
        sessions[1].change(&table, other, claimed);
    }
    let sum = "SELECT SUM(v) FROM shop.t";
    sql.query_drop("START TRANSACTION").expect("begun");
    let before = number(&mut sql, sum);
    sessions[1].change(&table, other, u64::MAX);
    assert_eq!(number(&mut sql, sum), before, "a snapshot does not change");
    sql.query_drop("COMMIT").expect("ended");
    for node in &nodes {
        let mut sql = node.connect();
        sql.query_drop("START TRANSACTION").expect("begun");
        assert_eq!(number(&mut sql, sum), before + 1);
    }
}
