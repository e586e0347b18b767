//! Placement and primaries, with one leader and no faults: whatever nodes come and go, it comes to rest, evenly, with few copies.

use super::super::*;
use super::NOBODY;
use crate::group::tests::random::{Random, check_invariants};
use crate::group::tests::{add_node, config, run, with_table};
use crate::group::{Answer, Colour, DirectoryState};

const TICK: Duration = Duration::from_millis(20);

struct Calm {
    random: Random,
    group: Group,
    leader: Leader,
    now: Duration,
    /// Processes that send heartbeats.
    alive: BTreeSet<Member>,
    /// Replicas that were brought up where there was something to copy.
    copies: usize,
}

impl Calm {
    /// A cluster with something to copy.
    fn new(seed: u64, partitions: u16, replicas: u8) -> Calm {
        let mut calm = Calm::empty(seed, partitions, replicas);
        with_table(&mut calm.group, 1, "t");
        calm
    }

    fn empty(seed: u64, partitions: u16, replicas: u8) -> Calm {
        let mut group = Group::new();
        run(&mut group, GroupCommand::Create { config: config(partitions, replicas), adopted: None });
        let leader = Leader::new(Duration::ZERO, 1, NOBODY, &group);
        let random = Random(seed);
        Calm { random, group, leader, now: Duration::ZERO, alive: BTreeSet::new(), copies: 0 }
    }

    fn start(&mut self, directory: u64, roles: &[RoleKind]) -> NodeId {
        self.start_cut(directory, roles, false)
    }

    /// `cut`: the damaged end of its log was cut.
    fn start_cut(&mut self, directory: u64, roles: &[RoleKind], cut: bool) -> NodeId {
        let Answer::Node(node) = run(&mut self.group, add_node(directory, roles)) else { panic!() };
        let nonce = self.random.next();
        let whole = (0..self.group.replication_groups.len() as u16).map(GroupId).collect();
        let answer = run(
            &mut self.group,
            GroupCommand::Register {
                node,
                nonce,
                whole,
                recovery: 0,
                directory: DirectoryState { cut, ..Default::default() },
            },
        );
        let Answer::Process(process) = answer else { panic!("{answer:?}") };
        self.alive.retain(|m| m.node != node);
        self.alive.insert(Member { node, process });
        node
    }

    fn start_data(&mut self, directories: std::ops::Range<u64>) {
        for directory in directories {
            self.start(directory, &[RoleKind::Data]);
        }
    }

    fn stop(&mut self, node: NodeId) {
        self.alive.retain(|m| m.node != node);
    }

    fn tick(&mut self) {
        self.now += TICK;
        for member in &self.alive {
            self.leader.on_heartbeat(self.now, *member, &self.group);
            self.leader.on_known(*member, self.group.index, &self.group);
        }
        let before = self.group.replication_groups.clone();
        for command in self.leader.on_tick(self.now, &self.group) {
            let answer = run(&mut self.group, command.clone());
            assert_eq!(answer, Answer::Done, "{command:?}");
        }
        self.check_joining(&before);
        for number in 0..self.group.replication_groups.len() as u16 {
            let assignment = self.group.assignment(GroupId(number));
            let Some(member) = self.random.pick(&assignment.joining).filter(|_| self.random.one_in(3)) else {
                continue;
            };
            let (id, version) = (assignment.group, assignment.version);
            let join = GroupCommand::Join { group: id, version, member };
            if run(&mut self.group, join) == Answer::Done {
                self.copies += 1;
            }
        }
        check_invariants(&self.group);
    }

    /// Who is given a replica to copy is not copying much already.
    fn check_joining(&self, before: &[ReplicationGroup]) {
        let mut joining: BTreeMap<NodeId, usize> = BTreeMap::new();
        let mut given = BTreeSet::new();
        for (number, (old, new)) in before.iter().zip(&self.group.replication_groups).enumerate() {
            for member in self.group.assignment(GroupId(number as u16)).joining {
                // What nobody has led yet has nothing to copy.
                *joining.entry(member.node).or_default() += usize::from(new.view != View::default());
                if old.view != View::default() && !old.placed.contains(&member.node) {
                    given.insert(member.node);
                }
            }
        }
        let bounded = !self.group.holds_nothing();
        assert!(!bounded || given.iter().all(|node| joining[node] <= placement::JOINING), "{joining:?} {given:?}");
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.tick();
        }
    }

    /// Runs until nothing is to be done any more; at most for `limit`.
    fn settle(&mut self, limit: Duration) {
        let end = self.now + limit;
        loop {
            let index = self.group.index;
            self.run_for(Duration::from_millis(2500));
            let bounds = self.group.index - index;
            if bounds == 0 {
                return;
            }
            assert!(self.now < end, "not at rest: {:#?}", self.group.replication_groups);
        }
    }

    /// Replicas of ordinary groups, and primaries of all, by data node that is alive.
    fn counts(&self) -> (Vec<usize>, Vec<usize>) {
        let data = |m: &&Member| self.group.nodes[&m.node].has(RoleKind::Data);
        let nodes: Vec<NodeId> = self.alive.iter().filter(data).map(|m| m.node).collect();
        let ordinary = &self.group.replication_groups[..self.group.replication_groups.len() - 1];
        let replicas = |n: &NodeId| ordinary.iter().filter(|p| p.placed.contains(n)).count();
        let primaries = |n: &NodeId| {
            self.group.replication_groups.iter().filter(|p| p.primary.is_some_and(|m| m.node == *n)).count()
        };
        (nodes.iter().map(replicas).collect(), nodes.iter().map(primaries).collect())
    }

    fn assert_even(&self, replicas: usize) {
        let (by_node, primaries) = self.counts();
        let spread = |counts: &[usize]| counts.iter().max().unwrap() - counts.iter().min().unwrap();
        assert!(spread(&by_node) <= 1, "replicas {by_node:?}");
        assert!(spread(&primaries) <= 1, "primaries {primaries:?}");
        let (full, ordinary) = self.group.replication_groups.split_last().unwrap();
        for state in ordinary {
            assert_eq!(state.in_sync.len(), replicas, "{state:?}");
            assert_eq!(state.placed.len(), replicas, "{state:?}");
            assert_eq!(state.placed[0], state.primary.unwrap().node);
        }
        assert_eq!(full.in_sync.len(), by_node.len());
    }
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn a_new_cluster_is_spread_evenly() {
    for (seed, nodes, replicas) in
        [(1, 1, 1), (2, 2, 2), (3, 3, 2), (4, 4, 2), (5, 5, 3), (6, 3, 4), (7, 7, 4), (8, 3, 1)]
    {
        let mut calm = Calm::new(seed, 11 + seed as u16, replicas);
        calm.start_data(0..nodes);
        calm.settle(secs(120));
        calm.assert_even(usize::from(replicas).min(nodes as usize));
        let expected = if nodes < u64::from(replicas) { Colour::Yellow } else { Colour::Green };
        assert_eq!(calm.group.health().colour, expected, "{:?}", calm.group.health().reasons);
    }
}

#[test]
fn nodes_that_come_later_get_their_share_and_no_more_is_copied() {
    for seed in 0..4 {
        let (partitions, replicas) = (12, 2);
        let mut calm = Calm::new(seed, partitions, replicas);
        calm.start(100, &[RoleKind::Manage, RoleKind::Sql]);
        calm.start_data(0..1);
        calm.settle(secs(60));
        calm.start_data(1..2);
        calm.settle(secs(120));
        calm.assert_even(2);
        for (nodes, share) in [(3u64, 8), (4, 6), (5, 5)] {
            let before = calm.copies;
            calm.start_data(nodes - 1..nodes);
            calm.settle(secs(120));
            calm.assert_even(2);
            // Its share, and the fully replicated group.
            assert!(calm.copies - before <= share + 1, "{} copies for node {nodes}", calm.copies - before);
        }
        let manage = NodeId(1);
        assert!(calm.group.replication_groups.iter().all(|p| !p.placed.contains(&manage)), "a node without data role");
    }
}

#[test]
fn what_a_node_leads_is_spread_over_many_when_it_fails() {
    let mut calm = Calm::new(7, 24, 2);
    // All at once: the first heartbeats come before the first tick.
    calm.start_data(0..4);
    calm.settle(secs(60));
    let pairs = |node: u16| {
        let mut by_other: BTreeMap<NodeId, usize> = BTreeMap::new();
        for state in calm.group.replication_groups[..24].iter().filter(|p| p.placed.contains(&NodeId(node))) {
            for other in state.placed.iter().filter(|n| n.0 != node) {
                *by_other.entry(*other).or_default() += 1;
            }
        }
        by_other
    };
    for node in 1..=4 {
        let by_other = pairs(node);
        assert!(by_other.len() == 3 && by_other.values().all(|n| (3..=5).contains(n)), "node {node}: {by_other:?}");
    }
    calm.stop(NodeId(1));
    calm.run_for(secs(1));
    let (_, primaries) = calm.counts();
    assert!(primaries.iter().max().unwrap() - primaries.iter().min().unwrap() <= 3, "{primaries:?}");
}

#[test]
fn many_partitions_are_planned_quickly() {
    let mut calm = Calm::new(8, 2000, 3);
    calm.start_data(0..8);
    calm.run_for(secs(1));
    let (replicas, _) = calm.counts();
    assert_eq!(replicas, [750; 8]);
    let primaries: Vec<usize> =
        (1..=8).map(|n| calm.group.replication_groups.iter().filter(|p| p.placed[0] == NodeId(n)).count()).collect();
    assert!(primaries.iter().all(|n| (250..=251).contains(n)), "{primaries:?}");
}

#[test]
fn a_node_that_restarts_keeps_its_places() {
    for seed in 0..4 {
        let mut calm = Calm::new(seed, 10, 2);
        calm.start_data(0..4);
        calm.settle(secs(60));
        let placed: Vec<_> = calm.group.replication_groups.iter().map(|p| p.placed.clone()).collect();
        let node = NodeId(1 + (seed % 4) as u16);
        calm.stop(node);
        calm.run_for(secs(30));
        assert!(calm.group.replication_groups.iter().all(|p| p.primary.is_some_and(|m| m.node != node)));
        assert_eq!(calm.group.health().colour, Colour::Yellow);
        let before = calm.copies;
        calm.start(u64::from(node.0) - 1, &[RoleKind::Data]);
        calm.settle(secs(60));
        calm.assert_even(2);
        assert_eq!(placed, calm.group.replication_groups.iter().map(|p| p.placed.clone()).collect::<Vec<_>>());
        assert!(calm.copies - before <= 6, "only what it had");
    }
}

#[test]
fn a_node_that_stays_away_is_replaced() {
    for seed in 0..2 {
        let mut calm = Calm::new(seed, 10, 2);
        calm.start_data(0..4);
        calm.settle(secs(60));
        calm.stop(NodeId(2));
        let grace = calm.group.config.as_ref().unwrap().replace_after;
        calm.run_for(secs(u64::from(grace) - 5));
        assert!(calm.group.replication_groups.iter().any(|p| p.placed.contains(&NodeId(2))), "too early");
        calm.run_for(secs(6));
        calm.settle(secs(60));
        calm.assert_even(2);
        assert!(calm.group.replication_groups.iter().all(|p| !p.placed.contains(&NodeId(2))));
        assert_eq!(run(&mut calm.group, GroupCommand::RemoveNode { node: NodeId(2) }), Answer::Done);
        assert_eq!(calm.group.health().colour, Colour::Green);
    }
}

#[test]
fn a_node_whose_disk_was_replaced_is_replaced_at_once() {
    let mut calm = Calm::new(3, 10, 2);
    calm.start_data(0..2);
    calm.settle(secs(60));
    calm.stop(NodeId(2));
    calm.run_for(secs(2));
    // The same address, another directory.
    let GroupCommand::AddNode { address, sql_address, native_address, roles, .. } = add_node(1, &[RoleKind::Data])
    else {
        panic!()
    };
    let taking = GroupCommand::AddNode { directory: 50, address, sql_address, native_address, roles };
    assert_eq!(run(&mut calm.group, taking), Answer::Node(NodeId(3)));
    let answer = run(
        &mut calm.group,
        GroupCommand::Register { node: NodeId(3), nonce: 1, whole: vec![], recovery: 0, directory: Default::default() },
    );
    let Answer::Process(process) = answer else { panic!() };
    calm.alive.insert(Member { node: NodeId(3), process });
    calm.settle(secs(60));
    calm.assert_even(2);
    assert_eq!(calm.group.health().colour, Colour::Green, "{:?}", calm.group.health().reasons);
}

#[test]
fn a_node_that_gives_its_data_role_up_is_emptied() {
    let mut calm = Calm::new(4, 10, 2);
    calm.start_data(0..3);
    calm.settle(secs(60));
    run(&mut calm.group, add_node(0, &[RoleKind::Sql]));
    calm.settle(secs(60));
    assert!(calm.group.replication_groups.iter().all(|p| !p.placed.contains(&NodeId(1)) && p.in_sync.len() == 2));
    calm.stop(NodeId(1));
    calm.assert_even(2);
}

#[test]
fn a_node_that_is_forgotten_is_replaced_at_once() {
    for seed in 0..3 {
        let mut calm = Calm::new(seed, 10, 2);
        calm.start_data(0..3);
        calm.settle(secs(60));
        calm.stop(NodeId(2));
        calm.run_for(secs(1));
        calm.start_data(7..8);
        calm.run_for(secs(3));
        assert_eq!(calm.group.health().colour, Colour::Yellow);
        assert_eq!(run(&mut calm.group, GroupCommand::ForgetNode { node: NodeId(2) }), Answer::Done);
        let told = calm.now;
        while calm.group.health().colour != Colour::Green {
            calm.tick();
        }
        assert!(calm.now - told < secs(10), "{:?}", calm.now - told);
        calm.assert_even(2);
    }
}

/// As long as there are no tables nobody can be disturbed: the time of forming is that of the slowest node.
#[test]
fn a_cluster_without_tables_is_spread_at_once() {
    for (seed, nodes) in [(1, 2), (2, 3), (3, 5), (4, 8)] {
        let mut calm = Calm::empty(seed, 16, 2);
        calm.start_data(0..1);
        calm.run_for(secs(2));
        calm.start_data(1..nodes);
        calm.run_for(Duration::from_millis(100));
        let came = calm.now;
        while !calm.group.is_settled() {
            calm.tick();
        }
        assert_eq!(calm.group.health().colour, Colour::Green);
        assert!(calm.now - came < Duration::from_millis(900), "{nodes} nodes: {:?}", calm.now - came);
        calm.assert_even(2);
        let index = calm.group.index;
        calm.run_for(secs(3));
        assert_eq!(calm.group.index, index, "green is when nothing moves any more");
    }
}

/// Where there are tables primaries go one after the other, and who looks at the health sees that they do.
#[test]
fn primaries_of_rows_move_one_by_one() {
    let mut calm = Calm::new(5, 16, 2);
    calm.start_data(0..2);
    calm.settle(secs(60));
    calm.stop(NodeId(1));
    calm.run_for(secs(1));
    calm.start_data(0..1);
    let (mut last, mut moves) = (None, 0);
    let end = calm.now + secs(30);
    while calm.group.health().colour != Colour::Green {
        let led = |group: &Group| group.replication_groups.iter().filter(|p| p.primary.is_none()).count();
        let before = led(&calm.group);
        calm.tick();
        assert!(led(&calm.group) <= 1);
        if led(&calm.group) > before {
            assert!(last.is_none_or(|at| calm.now - at >= MOVE_PAUSE));
            (last, moves) = (Some(calm.now), moves + 1);
        }
        assert!(calm.now < end, "{:?}", calm.group.health().reasons);
    }
    assert!((7..=9).contains(&moves), "{moves}");
    calm.settle(secs(5));
    calm.assert_even(2);
}

#[test]
fn replicas_are_changed_while_it_runs() {
    let mut calm = Calm::new(5, 9, 1);
    calm.start_data(0..4);
    calm.settle(secs(60));
    calm.assert_even(1);
    for replicas in [3, 2, 4, 1] {
        run(
            &mut calm.group,
            GroupCommand::Configure {
                replicas: Some(replicas),
                durability: None,
                replace_after: None,
                memory_return: None,
            },
        );
        calm.settle(secs(120));
        calm.assert_even(usize::from(replicas));
    }
}

#[test]
fn any_order_of_coming_and_going() {
    for seed in 0..12 {
        let partitions = 1 + (seed % 13) as u16;
        let replicas = 1 + (seed % 4) as u8;
        let mut calm = Calm::new(seed, partitions, replicas);
        calm.start_data(0..6);
        for _ in 0..12 {
            let directory = calm.random.below(6);
            let node = NodeId(directory as u16 + 1);
            if calm.alive.len() > 1 && calm.random.one_in(2) {
                calm.stop(node);
            } else {
                calm.start(directory, &[RoleKind::Data]);
            }
            let pause = calm.random.below(4000);
            calm.run_for(Duration::from_millis(pause));
        }
        calm.start_data(0..6);
        calm.settle(secs(180));
        calm.assert_even(usize::from(replicas));
        assert_eq!(calm.group.health().colour, Colour::Green);
    }
}

#[test]
fn a_killed_node_is_replaced_as_primary_in_time() {
    let mut calm = Calm::new(9, 10, 2);
    calm.start_data(0..3);
    calm.settle(secs(60));
    calm.stop(NodeId(1));
    let killed = calm.now;
    while calm.group.replication_groups.iter().any(|p| p.primary.is_none_or(|m| m.node == NodeId(1))) {
        calm.tick();
    }
    assert!(calm.now - killed <= Duration::from_millis(350), "{:?}", calm.now - killed);
}

/// All processes end, and one log comes back with a damaged end: its node leads nothing that another has until that one is back, and then all is as before.
#[test]
fn a_doubtful_node_leads_when_the_others_are_back() {
    for all_doubtful in [false, true] {
        let mut calm = Calm::new(5, 12, 2);
        calm.start_data(1..4);
        calm.run_for(Duration::from_secs(20));
        (1..4).for_each(|node| calm.stop(NodeId(node)));
        calm.run_for(Duration::from_secs(2));
        calm.start_cut(1, &[RoleKind::Data], true);
        calm.run_for(Duration::from_secs(2));
        let led = calm.group.replication_groups.iter().filter(|p| p.primary.is_some()).count();
        assert_eq!(led, 0, "every replication group is elsewhere too");
        assert_eq!(calm.group.health().colour, Colour::Red);
        (2..4).for_each(|node| assert_eq!(calm.start_cut(node, &[RoleKind::Data], all_doubtful), NodeId(node as u16)));
        calm.run_for(Duration::from_secs(20));
        let health = calm.group.health();
        assert_eq!(health.colour, Colour::Green, "{:?}", health.reasons);
    }
}

/// Rule 35: the end of a lease is not the end of a process. One node goes on without the other, and falls silent before that has come back.
#[test]
fn silent_memory_is_waited_for() {
    let silent = |patience: u32| {
        let mut calm = Calm::new(7, 2, 2);
        calm.start_data(1..3);
        calm.settle(Duration::from_secs(20));
        let config = calm.group.config.as_mut().expect("it was made");
        (config.durability, config.memory_return) = (crate::group::ClusterDurability::Replicated, patience);
        let [other, last] = [NodeId(1), NodeId(2)];
        calm.stop(other);
        calm.run_for(Duration::from_secs(1));
        let member = calm.group.member(last).expect("it is up");
        assert!(calm.group.replication_groups.iter().all(|state| state.in_sync == [member]));
        calm.stop(last);
        calm.run_for(Duration::from_secs(1));
        let directory = calm.group.nodes[&other].directory;
        calm.start(directory, &[RoleKind::Data]);
        assert!(calm.group.replication_groups.iter().all(|state| calm.group.has_no_memory(state)));
        (calm, member)
    };
    let (mut calm, _) = silent(5);
    calm.run_for(Duration::from_secs(3));
    assert_eq!(calm.group.recovery.number, 0);
    calm.run_for(Duration::from_secs(2));
    assert_eq!(calm.group.recovery.number, 1, "it has not come back");
    let (mut calm, _) = silent(0);
    calm.run_for(Duration::from_millis(200));
    assert_eq!(calm.group.recovery.number, 1, "nobody is waited for");
    let (mut calm, last) = silent(5);
    let directory = calm.group.nodes[&last.node].directory;
    calm.start(directory, &[RoleKind::Data]);
    calm.run_for(Duration::from_millis(200));
    assert_eq!(calm.group.recovery.number, 1, "it has come back without what it had");
    let (mut calm, last) = silent(5);
    let kept = (0..calm.group.replication_groups.len() as u16).map(GroupId).collect();
    let (node, predecessor) = (last.node, last.process);
    let succeed = GroupCommand::Succeed {
        node,
        nonce: 99,
        whole: vec![],
        recovery: 0,
        predecessor,
        kept,
        directory: Default::default(),
    };
    let Answer::Process(process) = run(&mut calm.group, succeed) else { panic!("registered") };
    calm.alive.insert(Member { node, process });
    calm.run_for(Duration::from_secs(6));
    assert_eq!(calm.group.recovery.number, 0, "it has come back with what it had");
    assert!(calm.group.replication_groups.iter().all(|state| state.primary.is_some() && state.in_sync.len() == 2));
}
