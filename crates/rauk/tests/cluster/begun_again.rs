//! Real processes of a cluster that begin anew: started again, and taken for gone while they serve or open; and signals that come in the middle of it.

use crate::common::Rauk;
use crate::common::cluster::{Node, all_in_one, member_command, until, until_healthy};
use crate::common::run;
use mysql::{Conn, OptsBuilder};
use std::time::Duration;

fn is_down(node: &Node, other: u16) -> bool {
    run(&mut node.connect(), &format!("SELECT status FROM rauk.nodes WHERE node_id = {other}")) == ["down"]
}

/// It must not ask at its own address whether it runs already: it would meet itself, and say so as an error.
#[test]
fn a_node_that_comes_back_does_not_meet_itself() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 2, "2");
    until_healthy(&nodes[0], 2);
    nodes[1].stop();
    until("it is down", || is_down(&nodes[0], 2));
    nodes[1].restart();
    until_healthy(&nodes[0], 2);
    let said = nodes[1].process().said();
    assert!(!said.contains("this node itself"), "{said}");
}

/// Its address is given by another name than before, and what is at the former one is this node itself, not another with its directory.
#[test]
fn a_node_that_comes_back_by_another_name_does_not_take_itself_for_another() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 2, "2");
    until_healthy(&nodes[0], 2);
    nodes[1].stop();
    until("it is down", || is_down(&nodes[0], 2));
    nodes[1].restart_with(&["--advertise", "localhost"]);
    until_healthy(&nodes[0], 2);
    let named = format!("localhost:{}", nodes[1].cluster_port);
    let address = run(&mut nodes[0].connect(), "SELECT address FROM rauk.nodes WHERE node_id = 2");
    assert_eq!(address, [named.as_str()]);
    let said = nodes[1].process().said();
    assert!(!said.contains("itself") && !said.contains("no link to a node"), "{said}");
    // Nor does one join by way of itself, whatever it calls itself.
    nodes[1].stop();
    let text = nodes[1].refused_restart(&["--join", &named]);
    assert!(text.contains("--join") && text.contains("own address"), "{text}");
}

/// The process of a node without the first accounts has been registered, and gets no time until others have taken it for gone: what it then wants of the cluster is refused to it.
#[test]
fn a_process_that_is_taken_for_gone_while_it_opens_starts_anew() {
    let root = tempfile::tempdir().unwrap();
    let secret = root.path().join("secret");
    let secret = ["--cluster-secret-file", secret.to_str().unwrap()];
    let founder = Node::start(&root.path().join("n1"), &[&secret[..], &["--roles", "manage,data"]].concat());
    let arguments = ["--roles", "sql", "--join", &founder.address()];
    let mut command = member_command(&root.path().join("n2"), &[&secret[..], &arguments].concat());
    command.env("RAUK_FAULT", "member.open.registered:pause=4000");
    let process = Rauk::start_with(command).unwrap_or_else(|e| panic!("it does not start anew: {e}"));
    let said = process.said();
    assert!(said.contains("process fenced before it served"), "{said}");
    until("it serves", || process.try_connect().is_ok_and(|mut c| run(&mut c, "SELECT 1") == ["1"]));
}

/// A node that does not hear of the accounts for longer than it waits for anything else must not take the cluster for a new one, whose root has no password.
#[test]
fn a_node_that_is_slow_to_follow_serves_with_the_accounts_of_the_cluster() {
    let root = tempfile::tempdir().unwrap();
    let secret = root.path().join("secret");
    let secret = ["--cluster-secret-file", secret.to_str().unwrap()];
    let founder = Node::start(&root.path().join("n1"), &secret);
    run(&mut founder.connect(), "ALTER USER root@localhost IDENTIFIED BY 'secret'");
    let member = founder.address();
    let arguments = [&secret[..], &["--join", &member, "--log-level", "info"]].concat();
    let mut command = member_command(&root.path().join("n2"), &arguments);
    command.env("RAUK_FAULT", "member.follow:pause=6000@1");
    let second = Rauk::start_with(command).unwrap_or_else(|e| panic!("{e}"));
    for port in [founder.process().port, second.port] {
        let options = OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(port).prefer_socket(false);
        let open = |password| Conn::new(options.clone().user(Some("root")).pass(password));
        assert!(open(None).is_err(), "root has a password");
        assert_eq!(run(&mut open(Some("secret")).expect("it is known"), "SELECT 1"), ["1"]);
    }
    assert!(second.said().contains("waiting until this node has the cluster's catalog"), "{}", second.said());
}

/// Between the decision to start anew and the new program's first look nobody is there who could act on a signal: it must be there still when somebody is.
#[test]
fn a_signal_is_not_lost_while_a_process_starts_anew() {
    let root = tempfile::tempdir().unwrap();
    let secret = root.path().join("secret");
    let secret = ["--cluster-secret-file", secret.to_str().unwrap()];
    let founder = Node::start(&root.path().join("n1"), &secret);
    let mut command = member_command(&root.path().join("n2"), &[&secret[..], &["--join", &founder.address()]].concat());
    command.env("RAUK_FAULT", "member.start_anew:pause=1500");
    let mut process = Rauk::start_with(command).unwrap_or_else(|e| panic!("{e}"));
    until_healthy(&founder, 2);
    process.signal("STOP");
    until("it is taken for gone", || is_down(&founder, 2));
    process.signal("CONT");
    until("it is about to execute itself again", || process.said().contains("it executes itself again"));
    process.signal("TERM");
    let status = process.wait(Duration::from_secs(30));
    assert!(status.is_some_and(|status| status.success()), "the signal is lost: {status:?}");
}
