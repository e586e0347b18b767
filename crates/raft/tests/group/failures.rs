//! Leaders that die, links that are cut, disks that fill, processes that come back.

use crate::support::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_log::{Disk, DiskFile, MemoryDisk, RealDisk};
use rauk_manage::consensus::{Consensus, ProposeError};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[test]
fn the_others_go_on_without_the_leader() {
    let net = Net::new();
    let mut nodes = cluster(&net, 3);
    nodes.push(Node::new(&net, "s4", SQL));
    nodes[3].join("n2").unwrap();
    for round in 0..2 {
        let dead = leader(&nodes);
        assert!(dead < 3, "only voters lead");
        if round == 0 {
            nodes[dead].stop();
        } else {
            // Not dead, but cut off: nobody can reach it, nor it anybody.
            let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
            let others: Vec<&str> = names.iter().filter(|name| **name != names[dead]).map(String::as_str).collect();
            net.part(&[&[&names[dead]], &others]);
        }
        let begun = Instant::now();
        assert_eq!(nodes[3].begin(1), round + 1);
        let gap = begun.elapsed();
        println!("the leader {}: the next proposal was done after {gap:?}", ["ended", "was cut off"][round]);
        assert!(gap < Duration::from_secs(4), "{gap:?}");
        if round == 0 {
            nodes[dead].start();
        } else {
            // It may still believe that it leads, but nobody confirms it.
            assert_eq!(wait(nodes[dead].group().confirm()), None);
            net.heal();
        }
        agree(&nodes);
        until("the old leader follows", || !nodes[dead].leads());
    }
    assert_eq!(times(&nodes[0].group().group(), 1), 2);
}

/// How long proposals and confirmations take when all is well: printed, for people.
#[test]
fn what_a_proposal_costs() {
    let net = Net::new();
    let mut nodes = cluster(&net, 3);
    nodes.push(Node::new(&net, "s4", SQL));
    nodes[3].join("n1").unwrap();
    let leader = leader(&nodes);
    for (what, node) in [("the leader", leader), ("a follower", (leader + 1) % 3), ("a learner", 3)] {
        let begun = Instant::now();
        (0..100).for_each(|_| assert!(nodes[node].begin(1) > 0));
        println!("a proposal of {what}: {:?}", begun.elapsed() / 100);
    }
    let begun = Instant::now();
    (0..100).for_each(|_| assert!(wait(nodes[leader].group().confirm()).is_some()));
    println!("a confirmation: {:?}", begun.elapsed() / 100);
}

/// Who was cut off and comes back, or starts again, does not disturb the leader that the others have.
#[test]
fn coming_back_disturbs_nobody() {
    let net = Net::new();
    let nodes = form((1..4).map(|i| Node::patient(&net, &format!("n{i}"), MemoryDisk::new())).collect());
    let leads = leader(&nodes);
    let term = nodes[leads].group().leading();
    let away = (leads + 1) % 3;
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    for _ in 0..2 {
        (0..3).filter(|other| *other != away).for_each(|other| net.part(&[&[&names[away]], &[&names[other]]]));
        std::thread::sleep(Duration::from_millis(1_500));
        nodes[leads].begin(1);
        net.heal();
        nodes[away].begin(1);
        nodes[away].stop();
        nodes[leads].begin(1);
        nodes[away].start();
        std::thread::sleep(Duration::from_millis(1_300));
    }
    agree(&nodes);
    assert_eq!(nodes[leads].group().leading(), term);
}

/// A leader that starts again is elected again: its new process does not lead in the old one's term.
#[test]
fn a_term_is_led_by_one_process() {
    let net = Net::new();
    let nodes = cluster(&net, 1);
    let before = nodes[0].group().leading().unwrap();
    nodes[0].stop();
    nodes[0].start();
    until("it leads again", || nodes[0].leads());
    assert!(nodes[0].group().leading().unwrap() > before);
}

/// The leader's words arrive, and no answer comes back: the others do without it.
#[test]
fn a_deaf_leader_is_replaced() {
    let net = Net::new();
    let nodes = cluster(&net, 3);
    let deaf = leader(&nodes);
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    (0..3).filter(|other| *other != deaf).for_each(|other| net.cut(&names[other], &names[deaf]));
    let since = Instant::now();
    assert_eq!(nodes[(deaf + 1) % 3].begin(1), 1);
    println!("the leader was deaf: the next proposal was done after {:?}", since.elapsed());
    net.heal();
    agree(&nodes);
}

#[test]
fn a_minority_commits_nothing() {
    let net = Net::new();
    let nodes = cluster(&net, 3);
    let alone = leader(&nodes);
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let others: Vec<&str> = names.iter().copied().filter(|name| *name != names[alone]).collect();
    net.part(&[&[names[alone]], &others]);
    let begun = Instant::now();
    let refused = wait(nodes[alone].group().propose(begin(1), Duration::from_millis(1_500)));
    // It is in this node's log.
    assert!(matches!(refused, Err(ProposeError::Unknown(_))), "{refused:?}");
    assert!(begun.elapsed() < Duration::from_millis(2_500), "{:?}", begun.elapsed());
    assert_eq!(wait(nodes[alone].group().confirm()), None);
    assert_eq!(times(&nodes[alone].group().group(), 1), 0);
    let other = &nodes[(alone + 1) % 3];
    assert_eq!(other.begin(2), 1);
    net.heal();
    agree(&nodes);
    // What the minority gave up is not done later: the next number of its session is above.
    assert_eq!(nodes[alone].begin(2), 2);
    assert_eq!(times(&nodes[alone].group().group(), 1), 0);
    agree(&nodes);
}

#[test]
fn everything_is_there_after_a_restart_of_all() {
    let directories: Vec<tempfile::TempDir> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    for real in [false, true] {
        let net = Net::new();
        let disk = |i: usize| -> Arc<dyn Disk> {
            if real { Arc::new(RealDisk::open(directories[i].path()).unwrap()) } else { MemoryDisk::new() }
        };
        let mut nodes: Vec<Node> = (0..3).map(|i| Node::on(&net, &format!("n{}", i + 1), ALL, disk(i))).collect();
        nodes = form(nodes);
        // More than a snapshot's worth, so that there is one, and some after it.
        for i in 0..73 {
            nodes[i % 3].begin(i as u32 % 5);
        }
        agree(&nodes);
        let before = nodes[0].group().group();
        nodes.iter().for_each(Node::stop);
        if real {
            // The directories' locks are given back with the last handle.
            drop(nodes);
            nodes = (0..3).map(|i| Node::on(&net, &format!("n{}", i + 1), ALL, disk(i))).collect();
        } else {
            nodes.iter().for_each(Node::start);
        }
        for node in &nodes {
            until("all is there again", || *node.group().group() == *before);
        }
        assert_eq!(nodes[1].begin(9), 1);
        agree(&nodes);
    }
}

#[test]
fn one_node_alone_comes_back() {
    let net = Net::new();
    let node = Node::new(&net, "n1", ALL);
    node.bootstrap();
    for _ in 0..130 {
        node.begin(1);
    }
    let before = node.group().group();
    node.stop();
    node.start();
    until("all is there again", || *node.group().group() == *before);
    assert_eq!(node.begin(1), 131);
}

/// The log's beginning is gone when this one comes: it gets a snapshot, and its watchers hear of it.
#[test]
fn a_late_joiner_gets_a_snapshot() {
    let net = Net::new();
    let mut nodes = cluster(&net, 3);
    for i in 0..220 {
        nodes[i % 3].begin(i as u32 % 7);
    }
    nodes.push(Node::new(&net, "s4", SQL));
    nodes[3].join("n3").unwrap();
    agree(&nodes);
    let heard = nodes[3].heard();
    assert!(heard.len() < 100, "by a snapshot, not by {} entries", heard.len());
    // And one that was away for long.
    nodes[3].stop();
    for i in 0..150 {
        nodes[i % 3].begin(i as u32 % 7);
    }
    nodes[3].start();
    agree(&nodes);
    assert_eq!(nodes[3].begin(100), 1);
}

/// A learner's directory is restored from an old copy: the leader survives it, and brings everything anew.
#[test]
fn an_old_copy_of_a_learner_is_mended() {
    let net = Net::new();
    let mut nodes = cluster(&net, 3);
    nodes.push(Node::new(&net, "s4", SQL));
    nodes[3].join("n1").unwrap();
    nodes[0].begin(1);
    agree(&nodes);
    let old = nodes[3].copy_disk();
    (0..5).for_each(|_| assert!(nodes[0].begin(1) > 0));
    agree(&nodes);
    nodes[3].stop();
    nodes[3].disk = old;
    nodes[3].start();
    nodes[0].begin(1);
    agree(&nodes);
    assert_eq!(nodes[3].begin(1), 8);
    assert!(nodes.iter().all(|node| node.group().failure().is_none()));
}

/// A voter's directory is restored from an older copy: it may have forgotten a vote. It is told, says why, and votes no more; the others go on.
#[test]
fn an_older_copy_of_a_voter_ends() {
    let net = Net::new();
    let mut nodes = cluster(&net, 3);
    let stale = (leader(&nodes) + 1) % 3;
    let other = (stale + 1) % 3;
    nodes[other].begin(1);
    agree(&nodes);
    let older = nodes[stale].copy_disk();
    (0..5).for_each(|_| assert!(nodes[other].begin(1) > 0));
    agree(&nodes);
    nodes[stale].stop();
    let newest = std::mem::replace(&mut nodes[stale].disk, older);
    nodes[stale].start();
    until("it says why", || nodes[stale].group().failure().is_some());
    let why = nodes[stale].group().failure().unwrap();
    assert!(why.contains("older copy") && why.contains("FORGET NODE"), "{why}");
    assert_eq!(nodes[other].begin(1), 7, "the others go on");
    nodes[stale].stop();
    nodes[stale].disk = newest;
    nodes[stale].start();
    agree(&nodes);
    assert_eq!(nodes[stale].begin(1), 8);
}

/// Proposals while links are cut and mended, answers are lost, requests doubled, and processes end and start again: each is done once if it was acknowledged, once at most if not, and all
/// states are equal. `RAFT_SEEDS` says how many schedules are tried.
#[test]
fn each_proposal_counts_once() {
    let seeds = std::env::var("RAFT_SEEDS").map_or(3, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        let net = Net::new();
        let mut nodes = cluster(&net, 3);
        nodes.push(Node::new(&net, "s4", SQL));
        nodes[3].join("n1").unwrap();
        net.unreliable(Some((seed, 0.05)));
        let over = AtomicBool::new(false);
        let mut acknowledged = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| weather(&nodes, &net, seed, &over));
            let workers: Vec<_> = (0..8)
                .map(|worker| {
                    scope.spawn({
                        let nodes = &nodes;
                        move || work(nodes, seed, worker)
                    })
                })
                .collect();
            let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            over.store(true, Ordering::Relaxed);
            for done in ended {
                acknowledged.extend(done.unwrap());
            }
        });
        net.heal();
        net.unreliable(None);
        nodes[0].begin(1_000);
        agree(&nodes);
        let group = nodes[3].group().group();
        let done = (1..=200).filter(|table| times(&group, *table) == 1).count();
        println!("seed {seed}: {} of 200 acknowledged, {done} done", acknowledged.len());
        assert!((1..=200).all(|table| times(&group, table) <= 1));
        assert!(acknowledged.iter().all(|table| times(&group, *table) == 1));
        assert!(acknowledged.len() >= 20, "{}", acknowledged.len());
    }
}

/// Cuts links and ends processes, and mends it all, until it is over.
fn weather(nodes: &[Node], net: &Net, seed: u64, over: &AtomicBool) {
    let mut random = SmallRng::seed_from_u64(seed);
    while !over.load(Ordering::Relaxed) {
        for _ in 0..random.random_range(0..4) {
            let (a, b) = (random.random_range(0..4), random.random_range(0..4));
            net.cut(&nodes[a].name, &nodes[b].name);
        }
        if random.random_bool(0.3) {
            let alone = random.random_range(0..4);
            for other in (0..4).filter(|other| *other != alone) {
                net.part(&[&[&nodes[alone].name], &[&nodes[other].name]]);
            }
        }
        let dead = random.random_range(0..8_usize);
        if let Some(node) = nodes.get(dead) {
            node.stop();
        }
        std::thread::sleep(Duration::from_millis(random.random_range(50..700)));
        if let Some(node) = nodes.get(dead) {
            node.start();
        }
        net.heal();
        std::thread::sleep(Duration::from_millis(random.random_range(20..300)));
    }
}

/// Proposes 25 commands on any nodes; gives those that were acknowledged.
fn work(nodes: &[Node], seed: u64, worker: u32) -> Vec<u32> {
    let mut random = SmallRng::seed_from_u64(seed * 100 + u64::from(worker));
    let mut done = Vec::new();
    for table in 1 + worker * 25..=25 + worker * 25 {
        let limit = Duration::from_millis(random.random_range(100..1_500));
        let Some(group) = nodes[random.random_range(0..4)].running() else { continue };
        match wait(group.propose(begin(table), limit)) {
            Ok(answer) => {
                assert_done(&answer);
                done.push(table);
            }
            Err(ProposeError::Unavailable(_) | ProposeError::Unknown(_) | ProposeError::Closed) => {}
            Err(error @ ProposeError::TooLarge { .. }) => panic!("{error}"),
        }
    }
    done
}

/// A disk that has no room from some moment on, or takes long to sync.
struct Bad {
    disk: Arc<MemoryDisk>,
    trouble: Arc<Trouble>,
}

#[derive(Default)]
struct Trouble {
    full: AtomicBool,
    sync_ms: AtomicU64,
    /// No sync ends.
    stands: AtomicBool,
    /// Syncs that wait for that.
    waiting: AtomicU64,
}

struct BadFile {
    file: Arc<dyn DiskFile>,
    trouble: Arc<Trouble>,
}

impl Bad {
    fn new() -> (Arc<Bad>, Arc<Trouble>) {
        let trouble = Arc::<Trouble>::default();
        (Arc::new(Bad { disk: MemoryDisk::new(), trouble: trouble.clone() }), trouble)
    }
}

impl Trouble {
    fn room(&self) -> io::Result<()> {
        if self.full.load(Ordering::Relaxed) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl Disk for Bad {
    fn create_dir_all(&self, path: &str) -> io::Result<()> {
        self.disk.create_dir_all(path)
    }
    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }
    fn exists(&self, path: &str) -> io::Result<bool> {
        self.disk.exists(path)
    }
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(BadFile { file: self.disk.open(path, create)?, trouble: self.trouble.clone() }))
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.disk.sync_dir(path)
    }
}

impl DiskFile for BadFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }
    fn write_all_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.trouble.room()?;
        self.file.write_all_at(buffer, offset)
    }
    fn allocate(&self, length: u64) -> io::Result<()> {
        self.trouble.room()?;
        self.file.allocate(length)
    }
    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }
    fn sync_data(&self) -> io::Result<()> {
        std::thread::sleep(Duration::from_millis(self.trouble.sync_ms.load(Ordering::Relaxed)));
        self.trouble.waiting.fetch_add(1, Ordering::Relaxed);
        while self.trouble.stands.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.trouble.waiting.fetch_sub(1, Ordering::Relaxed);
        self.file.sync_data()
    }
}

/// What was given up without an answer may be carried out when the majority is back: nobody is told that nothing has happened.
#[test]
fn a_proposal_without_a_majority_is_unknown_and_may_come_later() {
    let net = Net::new();
    let nodes = cluster(&net, 3);
    let leading = leader(&nodes);
    nodes[leading].begin(9);
    let others: Vec<usize> = (0..3).filter(|other| *other != leading).collect();
    others.iter().for_each(|other| nodes[*other].stop());
    let given_up = wait(nodes[leading].group().propose(begin(1), Duration::from_millis(1_000)));
    assert!(matches!(given_up, Err(ProposeError::Unknown(_))), "{given_up:?}");
    others.iter().for_each(|other| nodes[*other].start());
    agree(&nodes);
    nodes[others[0]].begin(2);
    agree(&nodes);
    let done = times(&nodes[leading].group().group(), 1);
    assert!(done <= 1, "{done}");
    println!("the proposal that was given up was carried out {done} times");
}

/// A command that no message and no journal takes is refused where it is proposed, and the group goes on.
#[test]
fn a_command_that_is_too_large_is_refused() {
    let net = Net::new();
    let nodes = cluster(&net, 1);
    let command = rauk_manage::group::GroupCommand::AddNode {
        directory: 99,
        address: "x".repeat(17 << 20),
        sql_address: String::new(),
        native_address: String::new(),
        roles: Default::default(),
    };
    let refused = nodes[0].propose(command).unwrap_err();
    assert!(matches!(refused, ProposeError::TooLarge { bytes, limit } if bytes > limit), "{refused}");
    assert_eq!(nodes[0].begin(1), 1);
}

#[test]
fn a_full_disk_ends_one_node_s_part() {
    let net = Net::new();
    let (disk, trouble) = Bad::new();
    let mut nodes = vec![Node::on(&net, "n1", ALL, disk)];
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let telling = told.clone();
    nodes[0].stop();
    nodes[0].options.on_failure = Arc::new(move |why| telling.lock().unwrap().push(why.to_string()));
    nodes[0].start();
    nodes[0].bootstrap();
    nodes.extend((2..4).map(|i| Node::new(&net, &format!("n{i}"), ALL)));
    nodes[1].join("n1").unwrap();
    nodes[2].join("n1").unwrap();
    until("three vote", || nodes.iter().all(|node| node.voters().len() == 3));
    nodes[1].begin(1);
    trouble.full.store(true, Ordering::Relaxed);
    assert_eq!(nodes[1].begin(1), 2, "the others go on");
    until("it says why", || told.lock().unwrap().len() == 1);
    let why = told.lock().unwrap()[0].clone();
    assert!(why.contains("no room on disk"), "{why}");
    let refused = nodes[0].propose(begin(1)).unwrap_err();
    assert!(matches!(&refused, ProposeError::Unavailable(why) if why.contains("no room on disk")), "{refused}");
    assert_eq!((nodes[0].group().leading(), wait(nodes[0].group().confirm())), (None, None));
    // With room again, and a restart, it follows.
    trouble.full.store(false, Ordering::Relaxed);
    nodes[0].stop();
    nodes[0].start();
    nodes[0].begin(1);
    agree(&nodes);
}

/// Syncs that take longer than a heartbeat's answer is waited for: slower, and the leader stays.
#[test]
fn slow_disks_depose_nobody() {
    let net = Net::new();
    let (disks, troubles): (Vec<_>, Vec<_>) = (0..3).map(|_| Bad::new()).unzip();
    let nodes = disks.into_iter().enumerate();
    let nodes = form(nodes.map(|(i, disk)| Node::patient(&net, &format!("n{}", i + 1), disk)).collect());
    let leads = leader(&nodes);
    let term = nodes[leads].group().leading();
    for trouble in &troubles {
        trouble.sync_ms.store(120, Ordering::Relaxed);
    }
    let since = Instant::now();
    for i in 0..6 {
        nodes[i % 3].begin(1);
    }
    println!("a proposal while a sync takes 120 ms: {:?}", since.elapsed() / 6);
    assert_eq!(nodes[leads].group().leading(), term);
    agree(&nodes);
}

/// openraft answers nothing while it writes. That must not end the leases of all processes, which need a follower's word.
#[test]
fn followers_with_slow_disks_confirm_their_leader() {
    let net = Net::new();
    let mut nodes = vec![Node::new(&net, "n1", ALL)];
    nodes[0].bootstrap();
    let (disks, troubles): (Vec<_>, Vec<_>) = (0..2).map(|_| Bad::new()).unzip();
    for (number, disk) in disks.into_iter().enumerate() {
        nodes.push(Node::on(&net, &format!("n{}", number + 2), ALL, disk));
        nodes[number + 1].join("n1").unwrap();
    }
    until("three vote", || nodes.iter().all(|node| node.voters().len() == 3));
    let leader = nodes.iter().position(|node| node.leads()).unwrap();
    troubles.iter().for_each(|trouble| trouble.sync_ms.store(80, Ordering::Relaxed));
    let ended = AtomicBool::new(false);
    let (leader, ended) = (&nodes[leader], &ended);
    let confirmed = std::thread::scope(|scope| {
        scope.spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let _ = leader.propose(begin(1));
            }
        });
        let confirmed = (0..40).filter(|_| wait(leader.group().confirm()).is_some()).count();
        ended.store(true, Ordering::Relaxed);
        confirmed
    });
    troubles.iter().for_each(|trouble| trouble.sync_ms.store(0, Ordering::Relaxed));
    assert_eq!(confirmed, 40);
}

/// Lets syncs end again when the test does, however it does: who waits for one is waited for.
struct Released<'a>(&'a [Arc<Trouble>]);

impl Drop for Released<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|trouble| trouble.stands.store(false, Ordering::Relaxed));
    }
}

/// Three voters, and the disks of these and of the leader, on which no sync ends from now on.
fn on_disks_that_stand(of: impl Fn(usize) -> bool) -> (Vec<Node>, Vec<Arc<Trouble>>, usize) {
    let net = Net::new();
    let (disks, troubles): (Vec<_>, Vec<_>) = (0..3).map(|_| Bad::new()).unzip();
    let nodes = disks.into_iter().enumerate();
    let nodes = form(nodes.map(|(i, disk)| Node::on(&net, &format!("n{}", i + 1), ALL, disk)).collect());
    let leads = leader(&nodes);
    nodes[leads].begin(1);
    agree(&nodes);
    (0..3).filter(|i| of(*i) || *i == leads).for_each(|i| troubles[i].stands.store(true, Ordering::Relaxed));
    (nodes, troubles, leads)
}

/// All disks stand still for longer than a lease, with a command to be written. Leases are granted, and nobody is deposed.
#[test]
fn disks_that_stand_still_for_a_moment_end_no_lease() {
    let (nodes, troubles, leads) = on_disks_that_stand(|_| true);
    let term = nodes[leads].group().leading();
    std::thread::scope(|scope| {
        let released = Released(&troubles);
        let proposed = scope.spawn(|| nodes[leads].propose(begin(1)));
        until("the leader's disk is waited for", || troubles[leads].waiting.load(Ordering::Relaxed) > 0);
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(900) {
            assert!(wait(nodes[leads].group().confirm()).is_some(), "after {:?}", since.elapsed());
        }
        assert_eq!(times(&nodes[leads].group().group(), 1), 1, "nothing is committed that is not on disk");
        drop(released);
        assert_done(&proposed.join().unwrap().unwrap());
    });
    assert_eq!(nodes[leads].group().leading(), term);
    agree(&nodes);
}

/// A leader whose disk does not come back is replaced by one whose disk works.
#[test]
fn a_leader_whose_disk_does_not_come_back_is_replaced() {
    let (nodes, troubles, stuck) = on_disks_that_stand(|_| false);
    let other = &nodes[(stuck + 1) % 3];
    std::thread::scope(|scope| {
        let _released = Released(&troubles);
        scope.spawn(|| nodes[stuck].propose(begin(2)));
        until("another leads", || {
            let led = nodes.iter().enumerate().any(|(i, node)| i != stuck && node.leads());
            let confirmed = wait(nodes[stuck].group().confirm()).is_some();
            assert!(!(led && confirmed), "a majority follows two leaders");
            led
        });
        assert_done(&other.propose(begin(3)).unwrap());
        assert_eq!(wait(nodes[stuck].group().confirm()), None);
    });
    agree(&nodes);
}
