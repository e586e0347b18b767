//! Making a cluster, joining it, who votes, and what is refused.

use crate::support::*;
use rauk_log::MemoryDisk;
use rauk_manage::consensus::{BoxFuture, Consensus, Watcher};
use rauk_manage::group::{Answer, GroupCommand};
use rauk_raft::{Options, RaftError, RaftGroup, Transport};
use rauk_types::NodeId;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn voters_follow_the_manage_nodes() {
    let net = Net::new();
    let first = Node::new(&net, "n1", ALL);
    assert!(wait(first.group().confirm()).is_none());
    first.bootstrap();
    assert_eq!((first.group().node(), first.group().leader()), (Some(NodeId(1)), Some(NodeId(1))));
    assert!(first.leads() && wait(first.group().confirm()).is_some());
    let second = Node::new(&net, "n2", ALL);
    assert_eq!(second.join("n1").unwrap(), NodeId(2));
    let sql = Node::new(&net, "s3", SQL);
    // By way of one that does not lead.
    assert_eq!(sql.join("n2").unwrap(), NodeId(3));
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(first.voters(), [1], "two manage nodes are no better than one");
    let fourth = Node::new(&net, "n4", ALL);
    fourth.join("s3").unwrap();
    until("three vote", || [&first, &second, &sql, &fourth].iter().all(|node| node.voters() == [1, 2, 4]));
    let learners: Vec<u16> = first.group().status().learners.iter().map(|node| node.0).collect();
    assert_eq!(learners, [3]);
    // A learner proposes and hears as well as anybody.
    assert_eq!(sql.begin(7), 1);
    assert_eq!(times(&sql.group().group(), 7), 1, "applied here when it resolves");
    assert_eq!(second.begin(7), 2);
    let nodes = [first, second, sql, fourth];
    agree(&nodes);
    for node in &nodes {
        until("heard of all", || *node.heard().last().unwrap() == node.group().group().index);
    }
}

#[test]
fn five_vote_and_a_dead_one_is_replaced() {
    let net = Net::new();
    let nodes = cluster(&net, 6);
    assert_eq!(nodes[0].voters(), [1, 2, 3, 4, 5]);
    nodes[3].stop();
    until("the sixth takes its place", || nodes[0].voters() == [1, 2, 3, 5, 6]);
    nodes[3].start();
    nodes[1].begin(1);
    agree(&nodes);
    assert_eq!(nodes[0].voters(), [1, 2, 3, 5, 6]);
    // A node that is taken out of the cluster is out of Raft too.
    nodes[4].stop();
    until("the fourth is back", || nodes[0].voters() == [1, 2, 3, 4, 6]);
    assert_eq!(nodes[0].propose(GroupCommand::RemoveNode { node: NodeId(5) }).unwrap(), Answer::Done);
    until("it is gone", || {
        let status = nodes[0].group().status();
        !status.learners.contains(&NodeId(5)) && !status.voters.contains(&NodeId(5))
    });
    // It comes back all the same, and hears so; nothing of it is left behind.
    let next = nodes[0].group().group().next_node;
    nodes[4].start();
    let error = wait(nodes[4].group().announce(&["n1".to_string()], nodes[4].description(), SOON)).unwrap_err();
    assert!(matches!(error, RaftError::Removed { node: 5 }), "{error}");
    assert_eq!(nodes[0].group().group().next_node, next);
}

#[test]
fn joining_is_refused_with_the_cause() {
    let net = Net::new();
    let nodes = cluster(&net, 2);
    let seeds = ["n1".to_string()];
    let new = Node::new(&net, "n3", ALL);
    let join =
        |cluster: &str, seeds: &[String], limit| wait(new.group().join(cluster, seeds, new.description(), limit));
    let error = join("shoe", &seeds, SOON).unwrap_err();
    assert!(matches!(&error, RaftError::OtherCluster { found, .. } if found == "shop"), "{error}");
    let error = join("shop", &["nobody".to_string()], Duration::from_millis(300)).unwrap_err();
    assert!(matches!(&error, RaftError::Unreachable(why) if why.contains("nobody")), "{error}");
    let error = join("shop", &[], SOON).unwrap_err();
    assert!(matches!(error, RaftError::Unreachable(_)), "{error}");
    assert!(new.group().node().is_none());
    // The address of a node that is up.
    let register =
        GroupCommand::Register { node: NodeId(2), nonce: 5, whole: vec![], recovery: 0, directory: Default::default() };
    nodes[0].propose(register).unwrap();
    let mut taken = new.description();
    taken.address = "n2".into();
    let error = wait(new.group().join("shop", &seeds, taken, SOON)).unwrap_err();
    assert!(matches!(&error, RaftError::Refused(why) if why.contains("n2")), "{error}");
    join("shop", &seeds, SOON).unwrap();
    // A member of one cluster cannot join or make another.
    let error = join("shoe", &seeds, SOON).unwrap_err();
    assert!(matches!(&error, RaftError::Member { name } if name == "shop"), "{error}");
    let error = wait(new.group().bootstrap(config("shoe"), None, new.description())).unwrap_err();
    assert!(matches!(error, RaftError::Member { .. }), "{error}");
    agree(&nodes);
}

/// Another version's answer, whatever its messages are like.
struct Newer;

impl Transport for Newer {
    fn call(&self, _to: NodeId, _address: &str, request: Vec<u8>) -> BoxFuture<Result<Vec<u8>, String>> {
        assert!(request.starts_with(b"RKMG"));
        Box::pin(async { Ok(b"RKMG\x09\x00\x059.9.9and what nobody knows yet".to_vec()) })
    }
}

#[test]
fn another_version_is_named() {
    let net = Net::new();
    let node = Node::new(&net, "n1", ALL);
    let group = RaftGroup::start(Options::new(1), MemoryDisk::new(), Arc::new(Newer), vec![]).unwrap();
    let error = wait(group.join("shop", &["there".to_string()], node.description(), SOON)).unwrap_err();
    let RaftError::OtherVersion { address, theirs, ours } = &error else { panic!("{error}") };
    assert_eq!((address.as_str(), theirs.as_str()), ("there", "9.9.9 (protocol 9)"));
    assert_eq!(ours, &format!("{} (protocol {})", env!("CARGO_PKG_VERSION"), rauk_raft::PROTOCOL));
}

/// Watchers may come later, and go.
#[test]
fn watchers_come_and_go() {
    let net = Net::new();
    let node = Node::new(&net, "n1", ALL);
    node.bootstrap();
    let late = Arc::new(Recorder::default());
    let watcher: Arc<dyn Watcher> = late.clone();
    node.group().watch(Arc::downgrade(&watcher));
    node.begin(1);
    let index = node.group().group().index;
    assert_eq!(*late.heard.lock().unwrap(), [index]);
    drop(watcher);
    node.begin(1);
    assert_eq!(late.heard.lock().unwrap().len(), 2, "it lives as long as anybody holds it");
    let heard = Arc::downgrade(&late);
    drop(late);
    node.begin(1);
    assert!(heard.upgrade().is_none());
}

/// A voter that has lost its disk has forgotten what it promised.
#[test]
fn a_voter_without_its_state_is_refused() {
    let net = Net::new();
    let mut nodes = cluster(&net, 3);
    let behind = leader(&nodes);
    let lost = (behind + 1) % 3;
    nodes[lost].stop();
    nodes[lost].disk = MemoryDisk::new();
    nodes[lost].start();
    let error = nodes[lost].join(&nodes[behind].name.clone()).unwrap_err();
    assert!(matches!(error, RaftError::StateLost { node } if usize::from(node) == lost + 1), "{error}");
}

/// The directory of a node that runs, started a second time under another address.
#[test]
fn a_copy_of_a_directory_takes_no_part() {
    let net = Net::new();
    let nodes = cluster(&net, 3);
    let copy = nodes[1].copy_disk();
    let start = || {
        let wire = Arc::new(Wire { net: net.clone(), from: "copy".into() });
        RaftGroup::start(nodes[1].options.clone(), copy.clone(), wire, vec![])
    };
    let error = start().err().expect("it runs");
    assert!(matches!(&error, RaftError::Running { node: 2, address } if address == "n2"), "{error}");
    // A directory that was moved is as good as the one that it was.
    nodes[1].stop();
    let moved = start().unwrap();
    net.put("copy", &moved);
    let mut description = nodes[1].description();
    description.address = "copy".into();
    assert_eq!(wait(moved.announce(&["n1".to_string()], description, SOON)).unwrap(), NodeId(2));
    until("it has all", || moved.group() == nodes[0].group().group());
}

#[test]
fn two_clusters_do_not_mix() {
    let net = Net::new();
    let first = Node::new(&net, "a", ALL);
    first.bootstrap();
    let second = Node::new(&net, "b", ALL);
    wait(second.group().bootstrap(config("other"), None, second.description())).unwrap();
    // The first cluster believes that its second node is at b, where another cluster's is.
    let add = GroupCommand::AddNode {
        directory: 99,
        address: "b".into(),
        sql_address: String::new(),
        native_address: String::new(),
        roles: ALL.iter().copied().collect(),
    };
    assert_eq!(first.propose(add).unwrap(), Answer::Node(NodeId(2)));
    std::thread::sleep(Duration::from_millis(400));
    first.begin(1);
    second.begin(2);
    assert_eq!(second.group().group().config.as_ref().unwrap().name, "other");
    assert_eq!(times(&second.group().group(), 1), 0);
    assert!(second.leads() && first.leads());
}

/// What is no message of the manage group gets an answer and changes nothing.
#[test]
fn garbage_is_answered() {
    let net = Net::new();
    let node = Node::new(&net, "n1", ALL);
    node.bootstrap();
    for request in [&b""[..], b"RKMG", b"RKMG\x01\x00\x05", &[0; 1000], b"GET / HTTP/1.1\r\n"] {
        assert!(wait(node.group().serve(request)).starts_with(b"RKMG"));
    }
    assert!(node.leads());
}

/// All addresses of a cluster change while it is down: the nodes find each other by the seeds.
#[test]
fn nodes_move() {
    let net = Net::new();
    let mut nodes = cluster(&net, 3);
    nodes[2].begin(1);
    agree(&nodes);
    nodes.iter().for_each(Node::stop);
    for node in &mut nodes {
        node.name = format!("{}-new", node.name);
        node.start();
    }
    let seeds: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    let announced: Vec<_> = nodes.iter().map(|node| node.group().announce(&seeds, node.description(), SOON)).collect();
    for (number, announced) in announced.into_iter().enumerate() {
        assert_eq!(wait(announced).unwrap(), NodeId(number as u16 + 1));
    }
    nodes[1].begin(1);
    agree(&nodes);
    assert!(nodes[0].group().group().nodes.values().all(|node| node.address.ends_with("-new")));
    assert_eq!(times(&nodes[0].group().group(), 1), 2);
}

#[test]
fn the_last_handle_may_go_anywhere() {
    let net = Net::new();
    let node = Node::new(&net, "n1", ALL);
    node.bootstrap();
    let group: Arc<RaftGroup> = node.group();
    let pending = group.propose(begin(1), SOON);
    drop(node);
    wait(pending).unwrap();
    group.shutdown();
    assert_eq!(wait(group.propose(begin(1), SOON)), Err(rauk_manage::consensus::ProposeError::Closed));
    assert_eq!(wait(group.confirm()), None);
    assert_eq!(group.leading(), None);
}
