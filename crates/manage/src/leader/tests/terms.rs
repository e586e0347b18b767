//! One leader, command by command: terms, leases, timestamps.

use super::super::*;
use super::{NOBODY, steady};
use crate::group::Answer;
use crate::group::tests::{add_node, config, run};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn group_of(nodes: u16) -> (Group, Vec<Member>) {
    let mut group = Group::new();
    run(&mut group, GroupCommand::Create { config: config(2, 2), adopted: None });
    let members = (1..=nodes)
        .map(|n| {
            run(&mut group, add_node(u64::from(n), &[RoleKind::Data]));
            register(&mut group, n, u64::from(n))
        })
        .collect();
    (group, members)
}

fn register(group: &mut Group, node: u16, nonce: u64) -> Member {
    let answer = run(
        group,
        GroupCommand::Register { node: NodeId(node), nonce, whole: vec![], recovery: 0, directory: Default::default() },
    );
    let Answer::Process(process) = answer else { panic!("{answer:?}") };
    Member { node: NodeId(node), process }
}

fn begin(group: &mut Group, now: Duration, term: u64) -> Leader {
    begin_in(NOBODY, group, now, term)
}

fn begin_in(own: ProcessId, group: &mut Group, now: Duration, term: u64) -> Leader {
    let mut leader = Leader::new(now, term, own, group);
    assert_eq!(leader.on_tick(now, group), [GroupCommand::Term { number: term }]);
    run(group, GroupCommand::Term { number: term });
    leader
}

fn expired(commands: &[GroupCommand]) -> Vec<Member> {
    let members = |c: &GroupCommand| match c {
        GroupCommand::Expire { members, .. } => members.clone(),
        _ => Vec::new(),
    };
    commands.iter().flat_map(members).collect()
}

#[test]
fn nothing_before_the_term_has_begun_and_nothing_after_it_has_ended() {
    let (mut group, members) = group_of(1);
    let mut leader = Leader::new(ms(0), 3, NOBODY, &group);
    assert_eq!(leader.on_heartbeat(ms(1), members[0], &group), Heard::NotNow);
    leader.on_confirmed(ms(1));
    assert_eq!(leader.draw_timestamp(ms(1), &group), None);
    assert_eq!(steady(&mut leader, ms(10), &group), [GroupCommand::Term { number: 3 }]);
    // Under way, and proposed again when it seems lost.
    assert_eq!(steady(&mut leader, ms(500), &group), []);
    assert_eq!(steady(&mut leader, ms(1010), &group), [GroupCommand::Term { number: 3 }]);
    run(&mut group, GroupCommand::Term { number: 3 });
    assert_eq!(leader.on_heartbeat(ms(1011), members[0], &group), Heard::Granted);
    run(&mut group, GroupCommand::Term { number: 4 });
    assert_eq!(leader.on_heartbeat(ms(1012), members[0], &group), Heard::NotNow);
    assert_eq!(steady(&mut leader, ms(9000), &group), []);
    leader.on_confirmed(ms(9000));
    assert_eq!(leader.draw_timestamp(ms(9000), &group), None);
}

#[test]
fn a_new_leader_waits_one_lease_and_no_longer() {
    let (mut group, members) = group_of(2);
    let mut leader = begin(&mut group, ms(1000), 1);
    leader.on_heartbeat(ms(1100), members[0], &group);
    assert_eq!(expired(&steady(&mut leader, ms(1299), &group)), []);
    assert_eq!(expired(&steady(&mut leader, ms(1300), &group)), [members[1]]);
    assert_eq!(expired(&steady(&mut leader, ms(1399), &group)), []);
    // With the one that was said before: nobody knows whether that is still to come.
    assert_eq!(expired(&steady(&mut leader, ms(1400), &group)), [members[0], members[1]]);
}

/// A leader that was followed by nobody for a while has granted nothing meanwhile: that is no reason to give up those who
/// have asked.
#[test]
fn a_leader_without_a_majority_gives_nobody_up() {
    let (mut group, members) = group_of(3);
    let mut leader = begin(&mut group, ms(0), 1);
    let mut given_up = Vec::new();
    for now in (0..4_000).step_by(10) {
        // The second process ends while no majority follows, from 1 s to 2 s.
        let is_followed = !(1_000..2_000).contains(&now);
        for (at, member) in members.iter().enumerate().filter(|_| is_followed && now % 50 == 0) {
            if at != 1 || now < 1_500 {
                leader.on_confirmed(ms(now));
                assert_eq!(leader.on_heartbeat(ms(now), *member, &group), Heard::Granted);
            }
        }
        let ended = expired(&steady(&mut leader, ms(now), &group));
        given_up.extend(ended.iter().map(|member| (now, *member)));
        if !ended.is_empty() {
            run(&mut group, GroupCommand::Expire { term: 1, members: ended });
        }
    }
    assert!(matches!(given_up[..], [(2_100..2_300, member)] if member == members[1]), "{given_up:?}");
}

#[test]
fn who_was_given_up_is_granted_nothing_more() {
    let (mut group, members) = group_of(1);
    let mut leader = begin(&mut group, ms(0), 1);
    leader.on_heartbeat(ms(100), members[0], &group);
    assert_eq!(expired(&steady(&mut leader, ms(400), &group)), [members[0]]);
    // The command may be held up anywhere: it stays given up, and it is said again.
    assert_eq!(leader.on_heartbeat(ms(401), members[0], &group), Heard::NotNow);
    assert_eq!(expired(&steady(&mut leader, ms(410), &group)), []);
    assert_eq!(expired(&steady(&mut leader, ms(1400), &group)), [members[0]]);
    run(&mut group, GroupCommand::Expire { term: 1, members: vec![members[0]] });
    assert_eq!(leader.on_heartbeat(ms(1401), members[0], &group), Heard::Refused);
    let newer = register(&mut group, 1, 9);
    assert_eq!(leader.on_heartbeat(ms(1402), newer, &group), Heard::Granted);
    assert_eq!(leader.on_heartbeat(ms(1403), members[0], &group), Heard::Refused);
    // One whose registration this leader has not heard of.
    let unknown = Member { process: ProcessId(newer.process.0 + 1), ..newer };
    assert_eq!(leader.on_heartbeat(ms(1404), unknown, &group), Heard::NotNow);
    assert_eq!(leader.on_heartbeat(ms(1404), Member { node: NodeId(7), ..newer }, &group), Heard::NotNow);
    run(&mut group, GroupCommand::Down { member: newer });
    assert_eq!(run(&mut group, GroupCommand::RemoveNode { node: NodeId(1) }), Answer::Done);
    assert_eq!(leader.on_heartbeat(ms(1405), newer, &group), Heard::Refused);
}

#[test]
fn a_process_that_has_just_registered_has_time_to_ask() {
    let (mut group, members) = group_of(1);
    let mut leader = begin(&mut group, ms(0), 1);
    leader.on_heartbeat(ms(100), members[0], &group);
    let late = register(&mut group, 1, 9);
    steady(&mut leader, ms(200), &group);
    assert_eq!(expired(&steady(&mut leader, ms(1199), &group)), []);
    assert_eq!(expired(&steady(&mut leader, ms(1200), &group)), [late]);
}

#[test]
fn a_relieved_primary_is_awaited_until_it_has_heard_or_its_lease_has_ended() {
    for hears in [true, false] {
        let (mut group, members) = group_of(2);
        let mut leader = begin(&mut group, ms(0), 1);
        let [a, b] = [members[0], members[1]];
        let id = GroupId(0);
        run(&mut group, GroupCommand::Place { group: id, version: 0, nodes: vec![b.node, a.node] });
        run(&mut group, GroupCommand::Lead { group: id, version: 1, member: a });
        run(&mut group, GroupCommand::Join { group: id, version: 2, member: b });
        leader.on_heartbeat(ms(1000), a, &group);
        leader.on_known(a, group.index, &group);
        leader.on_heartbeat(ms(1000), b, &group);
        let commands = steady(&mut leader, ms(1001), &group);
        assert!(commands.contains(&GroupCommand::Relieve { group: id, version: 3 }), "{commands:?}");
        run(&mut group, GroupCommand::Relieve { group: id, version: 3 });
        let lead = GroupCommand::Lead { group: id, version: 4, member: b };
        assert!(!steady(&mut leader, ms(1010), &group).contains(&lead));
        leader.on_heartbeat(ms(1200), b, &group);
        if hears {
            leader.on_known(a, group.index, &group);
            assert!(steady(&mut leader, ms(1020), &group).contains(&lead));
        } else {
            assert!(!steady(&mut leader, ms(1299), &group).contains(&lead));
            assert!(steady(&mut leader, ms(1300), &group).contains(&lead));
        }
    }
}

/// Has the bound raised that timestamps are drawn below.
fn raise(leader: &mut Leader, now: Duration, group: &mut Group) {
    for command in leader.on_tick(now, group) {
        if matches!(command, GroupCommand::Timestamps { .. }) {
            assert_eq!(run(group, command), Answer::Done);
        }
    }
}

#[test]
fn timestamps_grow_over_leaders() {
    let (mut group, _) = group_of(1);
    let mut first = begin(&mut group, ms(0), 1);
    first.on_confirmed(ms(10));
    assert_eq!(first.draw_timestamp(ms(10), &group), None);
    raise(&mut first, ms(10), &mut group);
    let drawn = first.draw_timestamp(ms(10), &group).unwrap();
    assert!(drawn > Timestamp::ZERO);
    assert_eq!(first.draw_timestamp(ms(11), &group), Some(Timestamp(drawn.0 + 1)));
    let old_copy = group.clone();
    let mut second = begin(&mut group, ms(500), 2);
    second.on_confirmed(ms(800));
    assert_eq!(second.draw_timestamp(ms(800), &group), None, "its first bound is not committed");
    raise(&mut second, ms(810), &mut group);
    let mut last = second.draw_timestamp(ms(810), &group).unwrap();
    // The first has not heard of it; it stays below for ever.
    for _ in 0..1_100_000 {
        match first.draw_timestamp(ms(12), &old_copy) {
            Some(time) => assert!(time < last),
            None => break,
        }
    }
    assert_eq!(first.draw_timestamp(ms(12), &old_copy), None);
    assert_eq!(first.draw_timestamp(ms(12), &group), None);
    // The bound is raised before it is reached.
    for round in 0..1_300_000u64 {
        let now = ms(820 + round / 1000);
        second.on_confirmed(now);
        let time = second.draw_timestamp(now, &group).expect("raised ahead");
        assert!(time > last);
        last = time;
        if round % 50_000 == 0 {
            raise(&mut second, now, &mut group);
        }
    }
}

#[test]
fn timestamps_are_drawn_while_a_majority_has_followed_lately_and_when_those_before_draw_no_more() {
    let (mut group, _) = group_of(1);
    let mut first = begin(&mut group, ms(0), 1);
    raise(&mut first, ms(0), &mut group);
    assert_eq!(first.draw_timestamp(ms(1), &group), None, "nobody has followed it");
    first.on_confirmed(ms(100));
    // One that was begun earlier and ended later.
    first.on_confirmed(ms(50));
    let drawn = first.draw_timestamp(ms(369), &group).expect("the first of all waits for nobody");
    assert_eq!(first.draw_timestamp(ms(370), &group), None);
    first.on_confirmed(ms(371));
    let before = group.clone();
    // Elected right after.
    let mut second = begin(&mut group, ms(371), 2);
    raise(&mut second, ms(372), &mut group);
    second.on_confirmed(ms(600));
    assert_eq!(second.draw_timestamp(ms(670), &group), None);
    let last = first.draw_timestamp(ms(640), &before).unwrap();
    assert!(last > drawn);
    assert_eq!(first.draw_timestamp(ms(641), &before), None);
    assert!(second.draw_timestamp(ms(671), &group).unwrap() > last);
}

/// Two nodes that lead and follow group 0, last heard at the given times.
fn heard_last(a_at: u64, b_at: u64) -> (Group, Leader, [Member; 2]) {
    let (mut group, members) = group_of(2);
    let mut leader = begin(&mut group, ms(0), 1);
    let [a, b] = [members[0], members[1]];
    let id = GroupId(0);
    run(&mut group, GroupCommand::Place { group: id, version: 0, nodes: vec![a.node, b.node] });
    run(&mut group, GroupCommand::Lead { group: id, version: 1, member: a });
    run(&mut group, GroupCommand::Join { group: id, version: 2, member: b });
    leader.on_heartbeat(ms(a_at), a, &group);
    leader.on_heartbeat(ms(b_at), b, &group);
    steady(&mut leader, ms(a_at.max(b_at) + 1), &group);
    (group, leader, [a, b])
}

#[test]
fn who_would_go_on_alone_is_to_be_alive() {
    // A's disk is lost at 1 000, B's process ends a little later; its lease is the first to end.
    let (mut group, mut leader, [a, b]) = heard_last(1000, 990);
    assert_eq!(expired(&steady(&mut leader, ms(1295), &group)), []);
    assert_eq!(expired(&steady(&mut leader, ms(1300), &group)), [a, b]);
    // It is lost, and said again with both.
    assert_eq!(expired(&steady(&mut leader, ms(1310), &group)), []);
    let again = steady(&mut leader, ms(2300), &group);
    assert_eq!(expired(&again), [a, b]);
    again.into_iter().for_each(|command| drop(run(&mut group, command)));
    assert_eq!(group.replication_groups[0].in_sync, [a, b]);

    // A lives: there is nothing to wait for.
    let (mut group, mut leader, [a, b]) = heard_last(1200, 990);
    let commands = steady(&mut leader, ms(1290), &group);
    assert_eq!(expired(&commands), [b]);
    commands.into_iter().for_each(|command| drop(run(&mut group, command)));
    assert_eq!(group.replication_groups[0].in_sync, [a]);

    // A was only late: B has its lease back, if it has not been given up yet.
    let (group, mut leader, [a, b]) = heard_last(1000, 990);
    assert_eq!(expired(&steady(&mut leader, ms(1295), &group)), []);
    leader.on_heartbeat(ms(1296), a, &group);
    leader.on_heartbeat(ms(1297), b, &group);
    assert_eq!(expired(&steady(&mut leader, ms(1400), &group)), []);
}

#[test]
fn a_chain_of_doubt_is_followed_to_its_end() {
    // B and C have ended; B shares a group with C, and C one with A, which may be dead.
    let (mut group, members) = group_of(3);
    let mut leader = begin(&mut group, ms(0), 1);
    let [a, b, c] = [members[0], members[1], members[2]];
    for (number, pair) in [(0, [b, c]), (1, [c, a])] {
        let id = GroupId(number);
        run(&mut group, GroupCommand::Place { group: id, version: 0, nodes: pair.map(|m| m.node).to_vec() });
        run(&mut group, GroupCommand::Lead { group: id, version: 1, member: pair[0] });
        run(&mut group, GroupCommand::Join { group: id, version: 2, member: pair[1] });
    }
    for (member, at) in [(a, 1100), (b, 1000), (c, 1000)] {
        leader.on_heartbeat(ms(at), member, &group);
    }
    assert_eq!(expired(&steady(&mut leader, ms(1300), &group)), []);
    leader.on_heartbeat(ms(1310), a, &group);
    assert_eq!(expired(&steady(&mut leader, ms(1311), &group)), [b, c]);
}

#[test]
fn a_primary_that_begins_without_others_is_to_be_alive() {
    let (mut group, mut leader, [a, b]) = heard_last(1000, 1000);
    // A ends in good order, and at that time B has been silent for a while.
    run(&mut group, GroupCommand::Down { member: a });
    let lead = GroupCommand::Lead { group: GroupId(0), version: group.replication_groups[0].version, member: b };
    assert!(!steady(&mut leader, ms(1200), &group).contains(&lead));
    leader.on_heartbeat(ms(1210), b, &group);
    assert!(steady(&mut leader, ms(1211), &group).contains(&lead));
}

/// The only process with rows was not run for a while: nobody has taken over, nobody could, and it goes on in the same view.
#[test]
fn a_leader_that_is_alone_does_not_take_itself_for_gone() {
    let (mut group, members) = group_of(1);
    let own = members[0];
    let mut leader = begin_in(own.process, &mut group, ms(0), 1);
    let id = GroupId(0);
    run(&mut group, GroupCommand::Place { group: id, version: 0, nodes: vec![own.node] });
    run(&mut group, GroupCommand::Lead { group: id, version: 1, member: own });
    assert_eq!(leader.on_heartbeat(ms(100), own, &group), Heard::Granted);
    let mut lease = Lease::default();
    lease.on_grant(ms(100), group.index);
    // Nothing runs for seconds; then the look comes first, and the heartbeat later.
    for now in [3000, 3025, 9000] {
        assert_eq!(expired(&steady(&mut leader, ms(now), &group)), []);
        assert!(!lease.holds(ms(now), group.index), "what is answered is answered under a lease");
    }
    let before = group.clone();
    assert_eq!(leader.on_heartbeat(ms(9001), own, &group), Heard::Granted);
    lease.on_grant(ms(9001), group.index);
    assert!(lease.holds(ms(9002), group.index));
    assert_eq!(group.replication_groups, before.replication_groups);
    // A manage node has neither rows nor clients, and does not count; one that has does.
    run(&mut group, add_node(8, &[RoleKind::Manage]));
    register(&mut group, 2, 80);
    leader.on_heartbeat(ms(9100), Member { node: NodeId(2), process: ProcessId(2) }, &group);
    assert!(!expired(&steady(&mut leader, ms(9350), &group)).contains(&own));
    run(&mut group, add_node(9, &[RoleKind::Sql]));
    let other = register(&mut group, 3, 90);
    assert_eq!(leader.on_heartbeat(ms(9400), other, &group), Heard::Granted);
    assert!(expired(&steady(&mut leader, ms(9450), &group)).contains(&own), "the other waits for its locks");
    // It was said, and may come to pass at any time: by then there is no way back, alone or not.
    run(&mut group, GroupCommand::Down { member: other });
    assert_eq!(leader.on_heartbeat(ms(9460), own, &group), Heard::NotNow);
    assert!(expired(&steady(&mut leader, ms(10_460), &group)).contains(&own));
}

/// Another leader's process: it may hang, and whoever leads does not know.
#[test]
fn a_process_without_the_leader_is_taken_for_gone_though_it_is_the_only_one() {
    let (mut group, members) = group_of(1);
    let mut leader = begin(&mut group, ms(0), 1);
    leader.on_heartbeat(ms(100), members[0], &group);
    assert_eq!(expired(&steady(&mut leader, ms(3000), &group)), [members[0]]);
}

/// Ticks in time, from the one moment to the other, each 50 ms with heartbeats of these; gives when who was taken for gone.
fn run_for(leader: &mut Leader, group: &Group, from: u64, to: u64, alive: &[Member]) -> Vec<(u64, Member)> {
    let mut gone = Vec::new();
    for now in (from..to).step_by(25) {
        // What waits is read after the look.
        gone.extend(expired(&leader.on_tick(ms(now), group)).into_iter().map(|m| (now, m)));
        if (now - from).is_multiple_of(50) {
            alive.iter().for_each(|m| assert_ne!(leader.on_heartbeat(ms(now + 5), *m, group), Heard::Refused));
        }
    }
    gone
}

/// Two nodes that lead and follow, and a third that is in no group; all are heard for a second.
fn at_work() -> (Group, Leader, [Member; 3]) {
    let (mut group, members) = group_of(3);
    let mut leader = begin(&mut group, ms(0), 1);
    let [a, b, c] = [members[0], members[1], members[2]];
    let id = GroupId(0);
    run(&mut group, GroupCommand::Place { group: id, version: 0, nodes: vec![a.node, b.node] });
    run(&mut group, GroupCommand::Lead { group: id, version: 1, member: a });
    run(&mut group, GroupCommand::Join { group: id, version: 2, member: b });
    assert_eq!(run_for(&mut leader, &group, 25, 1000, &members), []);
    (group, leader, [a, b, c])
}

#[test]
fn a_leader_that_was_not_run_itself_takes_nobody_for_gone_whose_word_waits() {
    for pause in [200, 320, 5000] {
        let (group, mut leader, members) = at_work();
        let on = 1000 + pause;
        assert_eq!(run_for(&mut leader, &group, on, on + 3000, &members), [], "after {pause} ms");
    }
}

#[test]
fn who_is_gone_when_a_leader_goes_on_is_found_all_the_same() {
    let (group, mut leader, [a, b, c]) = at_work();
    assert_eq!(run_for(&mut leader, &group, 1350, 1600, &[a, b]), [(1550, c)]);
    // Nobody was heard meanwhile: whether A would go on without B is not known yet, and both are given up with one command, or none (rule 25).
    let (group, mut leader, [a, _, c]) = at_work();
    let gone = run_for(&mut leader, &group, 1350, 1550, &[c]);
    assert_eq!(gone, []);
    assert!(!leader.is_fresh(ms(1550), a.process), "a pause makes nobody heard");
    assert!(!leader.has_lease(ms(1550), a.process), "nor does it make a lease longer");
    let gone = leader.on_tick(ms(1550), &group);
    assert_eq!(expired(&gone).len(), 2, "{gone:?}");
}

/// What a process has said before it died may be read only now: it is not taken for alive, and nobody given up in its favour.
#[test]
fn an_old_word_that_has_waited_makes_nobody_alive() {
    for read_after in [0, 5, 20, 40] {
        let (group, mut leader, [a, b, c]) = at_work();
        for now in 1350..2000 {
            leader.on_heartbeat(ms(now), c, &group);
            let gone = expired(&leader.on_tick(ms(now), &group));
            assert!(gone.is_empty() || gone.contains(&a) && gone.contains(&b), "{gone:?} at {now}");
            if now == 1350 + read_after {
                leader.on_heartbeat(ms(now), b, &group);
            }
        }
    }
}

#[test]
fn a_leader_that_is_always_late_still_finds_who_is_gone() {
    let (group, mut leader, [a, b, c]) = at_work();
    let mut found = None;
    for now in (1160..4000).step_by(160) {
        leader.on_heartbeat(ms(now), a, &group);
        leader.on_heartbeat(ms(now), b, &group);
        let gone = expired(&leader.on_tick(ms(now), &group));
        assert!(gone.is_empty() || gone == [c], "{gone:?} at {now}");
        found = found.or((!gone.is_empty()).then_some(now));
    }
    assert!(found.is_some_and(|at| at < 2500), "{found:?}");
    // In time again for a while, it listens the next time that it was not run.
    assert_eq!(run_for(&mut leader, &group, 4025, 4400, &[a, b]).iter().find(|(_, m)| *m != c), None);
    assert_eq!(run_for(&mut leader, &group, 5000, 5500, &[a, b]).iter().find(|(_, m)| *m != c), None);
}

/// A suspended machine with the only manage node: its nodes were not away for that long.
#[test]
fn a_node_is_not_away_while_the_leader_is_not_run() {
    let (mut group, mut leader, [a, b, c]) = at_work();
    run(&mut group, GroupCommand::Down { member: b });
    run_for(&mut leader, &group, 1000, 2000, &[a, c]);
    let replace_after = Duration::from_secs(group.config.as_ref().expect("made").replace_after.into());
    let on = 2000 + replace_after.as_millis() as u64;
    run_for(&mut leader, &group, on, on + 500, &[a, c]);
    assert!(leader.data_nodes(ms(on + 500), &group).kept.contains(&b.node), "its places are kept");
}
