//! Many seeds of bad weather (more with `RAUK_GROUP_SEEDS=1000`); and each safeguard switched off, to see that the weather finds it.

use super::super::*;
use super::weather::{Off, World};
use super::{NOBODY, steady};
use crate::group::Answer;
use crate::group::tests::{add_node, config, run};

/// Steps of bad weather: 15 s.
const STORM: usize = 3000;
/// Steps until all must be well afterwards: 40 s.
const CALM: usize = 8000;

#[test]
fn nothing_goes_wrong_in_any_weather_and_all_is_well_afterwards() {
    let (mut views, mut draws) = (0, 0);
    let seeds = std::env::var("RAUK_GROUP_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(15);
    for seed in 0..seeds {
        let mut world = World::new(seed, None);
        for _ in 0..STORM {
            world.step();
            assert_eq!(world.wrong, None, "seed {seed}");
        }
        world.calm_down();
        let mut steps = 0;
        while !world.is_healthy() {
            world.step();
            assert_eq!(world.wrong, None, "seed {seed}");
            steps += 1;
            assert!(steps < CALM, "seed {seed}: {:#?}", world.truth);
        }
        assert!(world.copies_agree(), "seed {seed}");
        views += world.views;
        draws += world.draws;
    }
    assert!(draws > 100 * seeds, "only {draws} timestamps");
    assert!(views > 300, "only {views} views: nothing has happened");
}

/// In few seeds, and as one of these.
fn found(off: Off, what: &str) {
    for seed in 0..60 {
        let mut world = World::new(seed, Some(off));
        for _ in 0..STORM {
            world.step();
            if let Some(wrong) = &world.wrong {
                assert!(what.split('|').any(|part| wrong.contains(part)), "{off:?}, seed {seed}: {wrong}");
                return;
            }
        }
    }
    panic!("{off:?} was not found");
}

#[test]
fn a_new_leader_that_does_not_wait_is_found() {
    found(Off::NewLeaderWaits, "lease holds|lead replication group|was drawn after");
}

#[test]
fn an_older_leader_that_ends_leases_is_found() {
    found(Off::TermChecked, "lease holds|lead replication group");
}

#[test]
fn versions_that_are_not_checked_are_found() {
    found(Off::VersionChecked, "does not lead any more|lead replication group");
}

#[test]
fn a_holder_that_counts_from_the_grant_is_found() {
    found(Off::HolderCountsFromSending, "lease holds|lead replication group");
}

#[test]
fn a_lease_without_margin_for_drift_is_found() {
    found(Off::Margin, "lease holds|lead replication group");
}

#[test]
fn a_replaced_leader_that_grants_is_found() {
    found(Off::MajorityConfirmed, "lease holds|lead replication group");
}

#[test]
fn a_primary_that_is_replaced_too_soon_is_found() {
    found(Off::FormerAwaited, "lead replication group");
}

#[test]
fn a_replaced_leader_that_draws_timestamps_is_found() {
    found(Off::DrawsConfirmed, "was drawn after");
}

#[test]
fn a_leader_that_draws_by_the_end_of_a_round_is_found() {
    found(Off::DrawsCountFromAsking, "was drawn after");
}

#[test]
fn a_new_leader_that_draws_at_once_is_found() {
    found(Off::DrawsWait, "was drawn after");
}

/// The ignorant holder (rule 16), by hand: that the leader waits for a former primary hides it from the weather but for a chain of accidents.
#[test]
fn a_lease_without_the_entries_before_it_is_of_no_use() {
    let ms = Duration::from_millis;
    let mut group = Group::new();
    run(&mut group, GroupCommand::Create { config: config(1, 2), adopted: None });
    let members = [1, 2].map(|node| {
        run(&mut group, add_node(node, &[RoleKind::Data]));
        let register = GroupCommand::Register {
            node: NodeId(node as u16),
            nonce: node,
            whole: vec![],
            recovery: 0,
            directory: Default::default(),
        };
        let Answer::Process(process) = run(&mut group, register) else { panic!() };
        Member { node: NodeId(node as u16), process }
    });
    let [a, b] = members;
    let id = GroupId(0);
    run(&mut group, GroupCommand::Place { group: id, version: 0, nodes: vec![a.node, b.node] });
    run(&mut group, GroupCommand::Lead { group: id, version: 1, member: a });
    run(&mut group, GroupCommand::Join { group: id, version: 2, member: b });
    run(&mut group, GroupCommand::Term { number: 1 });
    let mut first = Leader::new(ms(0), 1, NOBODY, &group);
    assert_eq!(first.on_heartbeat(ms(100), a, &group), Heard::Granted);
    // A hears no more of the log, and is relieved.
    let as_a_knows_it = group.clone();
    run(&mut group, GroupCommand::Relieve { group: id, version: 3 });
    first.on_heartbeat(ms(300), b, &group);
    let leads = |c: &GroupCommand| matches!(c, GroupCommand::Lead { group: GroupId(0), .. });
    assert!(!steady(&mut first, ms(390), &group).iter().any(leads), "A's lease holds");
    let commands = steady(&mut first, ms(400), &group);
    assert!(commands.contains(&GroupCommand::Expire { term: 1, members: vec![a] }), "{commands:?}");
    assert!(commands.contains(&GroupCommand::Lead { group: id, version: 4, member: b }), "{commands:?}");
    // The one is lost, the other is not; then another leads the control plane, and does not know that A was given up.
    run(&mut group, GroupCommand::Lead { group: id, version: 4, member: b });
    run(&mut group, GroupCommand::Term { number: 2 });
    let mut second = Leader::new(ms(500), 2, NOBODY, &group);
    assert_eq!(second.on_heartbeat(ms(510), a, &group), Heard::Granted);
    assert_eq!(as_a_knows_it.replication_groups[0].primary, Some(a));
    let mut lease = Lease::default();
    lease.on_grant(ms(505), group.index);
    assert!(!lease.holds(ms(520), as_a_knows_it.index), "A would serve, and B does");
    assert!(lease.holds(ms(520), group.index));
    let mut careless = Lease::default();
    careless.on_grant(ms(505), 0);
    assert!(careless.holds(ms(520), as_a_knows_it.index), "without the index it would");
}

/// Rule 33: who was struck while it was up is counted until it has heard of it, or no lease is left that it could hold without having heard.
#[test]
fn who_was_struck_is_let_go_when_it_knows_or_its_lease_has_ended() {
    let ms = Duration::from_millis;
    let mut group = Group::new();
    run(&mut group, GroupCommand::Create { config: config(1, 2), adopted: None });
    let [a, b] = [1, 2].map(|node| {
        run(&mut group, add_node(node, &[RoleKind::Data]));
        let register = GroupCommand::Register {
            node: NodeId(node as u16),
            nonce: node,
            whole: vec![],
            recovery: 0,
            directory: Default::default(),
        };
        let Answer::Process(process) = run(&mut group, register) else { panic!() };
        Member { node: NodeId(node as u16), process }
    });
    let id = GroupId(0);
    let version = |group: &Group| group.replication_groups[0].version;
    run(&mut group, GroupCommand::Place { group: id, version: 0, nodes: vec![a.node, b.node] });
    run(&mut group, GroupCommand::Lead { group: id, version: 1, member: a });
    run(&mut group, GroupCommand::Join { group: id, version: 2, member: b });
    run(&mut group, GroupCommand::Term { number: 1 });
    let mut leader = Leader::new(ms(0), 1, NOBODY, &group);
    let lets_go = |leader: &mut Leader, now: u64, group: &Group| {
        let is_it = |c: &GroupCommand| matches!(c, GroupCommand::LetGo { group: GroupId(0), .. });
        leader.on_tick(ms(now), group).into_iter().find(is_it)
    };
    let mut now = 1000;
    for hears in [false, true] {
        let before = group.index;
        let strike = GroupCommand::Strike { group: id, version: version(&group), member: b };
        assert_eq!(run(&mut group, strike), Answer::Done);
        let struck = now;
        let mut let_go = None;
        while let_go.is_none() {
            // It is granted leases all the time.
            for member in [a, b] {
                leader.on_heartbeat(ms(now), member, &group);
            }
            let known = if hears && now >= struck + 50 { group.index } else { before };
            leader.on_known(b, known, &group);
            let_go = lets_go(&mut leader, now, &group);
            now += 25;
        }
        let after = now - 25 - struck;
        assert_eq!(after, if hears { 50 } else { 300 });
        assert_eq!(run(&mut group, let_go.unwrap()), Answer::Done);
        let join = GroupCommand::Join { group: id, version: version(&group), member: b };
        assert_eq!(run(&mut group, join), Answer::Done);
    }
}
