//! Real nodes whose files are damaged, shortened, missing or older than they were while their processes are down:
//! nothing that was acknowledged is lost, what cannot be used is refused with its place and the way out, and the others
//! go on. Where the only whole replica is lost for good, the operator accepts the loss.

use crate::common::cluster::{Node, all_in_one, health, insist, insist_on, restart_all, until, until_healthy};
use crate::common::{connect_to, run};
use mysql::Conn;
use mysql::prelude::Queryable;
use rauk_log::{Disk, RealDisk, Superblocks};
use rauk_simulation::disk::frames;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows by key, each of which was acknowledged; the last of them just before everything ends.
fn insert(node: &Node, from: u64, count: u64) {
    let mut connection = node.connect();
    for id in from..from + count {
        // It may have been done by an attempt that was not answered.
        insist(&mut connection, &format!("INSERT INTO d.t VALUES ({id}, {id}) ON DUPLICATE KEY UPDATE v = v"));
    }
}

/// Flips a bit in the middle of the last frame of a node's redo log; `false`: that is known to be synced already, and
/// such damage is refused.
fn damage_log(dir: &Path) -> bool {
    let files = std::fs::read_dir(dir.join("redo")).unwrap().map(|entry| entry.unwrap().path());
    let last = |path: PathBuf| {
        frames::last(&std::fs::read(&path).unwrap()).map(|(at, start, length)| (at, start, length, path))
    };
    let (position, start, length, path) = files.filter_map(last).max().expect("the log has frames");
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(dir).unwrap());
    if position < Superblocks::load(&disk).unwrap().claims().redo.0 {
        return false;
    }
    flip(&path, (start + length / 2) as usize);
    true
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 16;
    std::fs::write(path, bytes).unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

fn table(nodes: &[Node]) {
    until_healthy(&nodes[0], nodes.len());
    let mut connection = nodes[0].connect();
    insist(&mut connection, "CREATE DATABASE d");
    insist(&mut connection, "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v BIGINT)");
}

#[test]
fn the_end_of_one_log_is_damaged_while_all_are_down() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 3, "2");
    table(&nodes);
    let (mut rows, mut done) = (0, 0);
    // Where the machine is slow the last frame may be known to be synced before all have ended: once more.
    for attempt in 0..30 {
        let damaged = attempt % 3;
        insert(&nodes[(damaged + 1) % 3], rows + 1, 20);
        rows += 20;
        nodes[damaged].kill();
        nodes.iter_mut().filter(|node| node.process.is_some()).for_each(Node::kill);
        let shows = damage_log(&nodes[damaged].dir);
        restart_all(&mut nodes);
        until_healthy(&nodes[0], 3);
        for node in &nodes {
            assert_eq!(run(&mut node.connect(), "SELECT COUNT(*) FROM d.t"), [rows.to_string()]);
        }
        if shows {
            let said = nodes[damaged].process().said();
            assert!(said.contains("redo log cut at its damaged or torn end"), "{said}");
            done += 1;
        }
        if done == 3 {
            return;
        }
    }
    panic!("the end of the log was always known to be synced");
}

/// The last entry of Raft's log is there twice; what is missing before that cannot be made up for.
#[test]
fn a_damaged_raft_log_is_mended_or_refused_and_the_others_go_on() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 3, "2");
    table(&nodes);
    let path = nodes[1].dir.join("manage/raft.journal");
    for round in 0..2 {
        nodes[1].kill();
        let mut bytes = std::fs::read(&path).unwrap();
        match round {
            0 => *bytes.last_mut().unwrap() ^= 1,
            _ => bytes.truncate(bytes.len() - 7),
        }
        std::fs::write(&path, bytes).unwrap();
        nodes[1].restart();
        let said = nodes[1].process().said();
        assert!(said.contains("restored from its copy"), "{said}");
        until_healthy(&nodes[0], 3);
    }
    nodes[1].kill();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let why = nodes[1].refused_restart(&[]);
    assert!(why.contains("manage/raft.journal is damaged at byte") && why.contains("empty directory"), "{why}");
    std::fs::remove_file(&path).unwrap();
    let why = nodes[1].refused_restart(&[]);
    assert!(why.contains("manage/raft.journal") && why.contains("missing"), "{why}");
    insert(&nodes[0], 1, 10);
    // Put back, it is as it was.
    std::fs::write(&path, &whole).unwrap();
    nodes[1].restart();
    until_healthy(&nodes[0], 3);
    assert_eq!(run(&mut nodes[1].connect(), "SELECT COUNT(*) FROM d.t"), ["10"]);
}

#[test]
fn an_older_copy_of_a_directory_is_refused_and_the_others_go_on() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 3, "2");
    table(&nodes);
    nodes[2].stop();
    let (dir, older, newest) = (nodes[2].dir.clone(), root.path().join("older"), root.path().join("newest"));
    copy(&dir, &older);
    nodes[2].restart();
    until_healthy(&nodes[0], 3);
    insert(&nodes[0], 1, 10);
    nodes[2].stop();
    std::fs::rename(&dir, &newest).unwrap();
    std::fs::rename(&older, &dir).unwrap();
    for _ in 0..2 {
        let why = nodes[2].refused_restart(&[]);
        assert!(why.contains("older copy") && why.contains("empty"), "{why}");
    }
    let mut connection = nodes[0].connect();
    connection.query_drop("SELECT 1").unwrap();
    insert(&nodes[0], 11, 10);
    std::fs::remove_dir_all(&dir).unwrap();
    std::fs::rename(&newest, &dir).unwrap();
    nodes[2].restart();
    until_healthy(&nodes[0], 3);
    assert_eq!(run(&mut nodes[2].connect(), "SELECT COUNT(*) FROM d.t"), ["20"]);
}

/// As an account without any privilege.
fn connect_as_stranger(node: &Node) -> Option<Conn> {
    let options = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(node.process().port);
    Conn::new(options.user(Some("stranger")).prefer_socket(false)).ok()
}

const ACCEPT: &str = "ALTER CLUSTER ACCEPT LOSS";

fn error_of(connection: &mut Conn, sql: &str) -> (u16, String) {
    match connection.query_drop(sql) {
        Err(mysql::Error::MySqlError(error)) => (error.code, error.message),
        other => panic!("{sql}: {other:?}"),
    }
}

/// The end of one node's log is damaged, and the other node of some partitions is lost for good: these have no primary
/// until the operator says that the loss is accepted. Nobody else may say so, and on a healthy cluster there is nothing
/// to accept.
#[test]
fn the_operator_accepts_a_loss() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 3, "2");
    table(&nodes);
    insist(&mut nodes[0].connect(), "CREATE USER 'stranger'@'%'");
    let (code, text) = error_of(&mut nodes[2].connect(), ACCEPT);
    assert!(code == 1105 && text.contains("there is nothing to accept"), "{code} {text}");
    let mut rows = 0;
    // Where the machine is slow the last frame may be known to be synced before all have ended: once more.
    let shows = (0..30).any(|_| {
        insert(&nodes[1], rows + 1, 20);
        rows += 20;
        nodes.iter_mut().for_each(Node::kill);
        let shows = damage_log(&nodes[0].dir);
        if !shows {
            restart_all(&mut nodes);
            until_healthy(&nodes[0], 3);
        }
        shows
    });
    assert!(shows, "the end of the log was always known to be synced");
    // Two of three are the majority of the voters.
    let (damaged, others) = nodes.split_at_mut(1);
    std::thread::scope(|scope| {
        scope.spawn(|| damaged[0].restart());
        scope.spawn(|| others[1].restart());
    });
    let reasons =
        || run(&mut connect_to(nodes[2].process().port).unwrap(), "SELECT reason FROM rauk.health").join("; ");
    until("the operator is told what to do", || reasons().contains(ACCEPT));
    let told = reasons();
    assert!(told.contains("waits for node 2") && told.contains("the log of node 1 ended in a damaged entry"), "{told}");
    assert_eq!(health(&nodes[2]).as_deref(), Some("red"));
    let mut stranger = None;
    until("the account is let in", || {
        stranger = connect_as_stranger(&nodes[2]);
        stranger.is_some()
    });
    let (code, text) = error_of(&mut stranger.expect("it is in"), ACCEPT);
    assert!(code == 1227 && text.contains("SUPER"), "{code} {text}");
    assert!(reasons().contains(ACCEPT), "what was refused has changed nothing");

    insist_on(&nodes[2], &[ACCEPT]);
    until("all partitions are led", || health(&nodes[2]).is_some_and(|health| health != "red"));
    insert(&nodes[2], rows + 1, 20);
    let count = |node: &Node| run(&mut node.connect(), "SELECT COUNT(*) FROM d.t")[0].parse::<u64>().unwrap();
    let left = count(&nodes[2]);
    // One frame has what was flushed at once: rows of one client, which waited for each.
    assert!(left + 1 >= rows + 20 && left <= rows + 20, "{left} of {} rows", rows + 20);
    let (code, text) = error_of(&mut nodes[2].connect(), ACCEPT);
    assert!(code == 1105 && text.contains("there is nothing to accept"), "{code} {text}");
    // Whoever comes back gets what the others went on with.
    nodes[1].restart();
    until_healthy(&nodes[0], 3);
    for node in &nodes {
        assert_eq!(count(node), left);
    }
}

/// Moves everything else of a directory to another one.
fn keep_only(kept: &[&str], dir: &Path, aside: &Path) {
    std::fs::create_dir(aside).unwrap();
    for name in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()) {
        if !kept.iter().any(|kept| name == *kept) {
            std::fs::rename(dir.join(&name), aside.join(&name)).unwrap();
        }
    }
}

/// Moves it back, over what a start has made meanwhile.
fn put_back(dir: &Path, aside: &Path) {
    for name in std::fs::read_dir(aside).unwrap().map(|entry| entry.unwrap().file_name()) {
        let place = dir.join(&name);
        match place.is_dir() {
            true => std::fs::remove_dir_all(&place).unwrap(),
            false => drop(std::fs::remove_file(&place)),
        }
        std::fs::rename(aside.join(&name), place).unwrap();
    }
}

/// `member.json` alone, or with the part of the control plane, is not the node that the cluster knows.
#[test]
fn a_member_without_its_data_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 3, "2");
    table(&nodes);
    let mut rows = 0;
    for (kept, words) in [
        (&["member.json", "cluster.secret", "manage"][..], ["has lost its files", "an empty one"]),
        (&["member.json", "cluster.secret"], ["its part of the manage group", "an empty directory"]),
    ] {
        nodes[2].kill();
        let (dir, aside) = (nodes[2].dir.clone(), root.path().join(format!("aside{}", kept.len())));
        keep_only(kept, &dir, &aside);
        for _ in 0..2 {
            let why = nodes[2].refused_restart(&[]);
            assert!(words.iter().all(|word| why.contains(word)), "{kept:?}: {why}");
        }
        rows += 10;
        insert(&nodes[0], rows - 9, 10);
        put_back(&dir, &aside);
        nodes[2].restart();
        until_healthy(&nodes[0], 3);
        assert_eq!(run(&mut nodes[2].connect(), "SELECT COUNT(*) FROM d.t"), [rows.to_string()]);
    }
}
