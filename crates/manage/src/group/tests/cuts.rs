//! Cuts, and going back to one: durability `replicated`.

use super::*;
use rauk_cluster::EntryId;
use rauk_types::{Position, Timestamp};

/// Three nodes; each group is led by one and in-sync on the next.
fn replicated() -> (Group, Vec<Member>) {
    let mut group = Group::new();
    let config = ClusterConfig { durability: ClusterDurability::Replicated, ..config(2, 2) };
    assert_eq!(run(&mut group, GroupCommand::Create { config, adopted: None }), Answer::Done);
    let mut members = Vec::new();
    for n in 1..=3 {
        run(&mut group, add_node(n, &[RoleKind::Manage, RoleKind::Data, RoleKind::Sql]));
        members.push(register(&mut group, NodeId(n as u16), n, vec![]));
    }
    for number in 0..3u16 {
        let id = GroupId(number);
        let two = [members[usize::from(number)], members[usize::from(number + 1) % 3]];
        let version = |group: &Group| group.replication_groups[usize::from(number)].version;
        let nodes = two.iter().map(|m| m.node).collect();
        let v = version(&group);
        assert_eq!(run(&mut group, GroupCommand::Place { group: id, version: v, nodes }), Answer::Done);
        let v = version(&group);
        assert_eq!(run(&mut group, GroupCommand::Lead { group: id, version: v, member: two[0] }), Answer::Done);
        let v = version(&group);
        assert_eq!(run(&mut group, GroupCommand::Join { group: id, version: v, member: two[1] }), Answer::Done);
    }
    (group, members)
}

fn entries(group: &Group, position: u64) -> Vec<EntryId> {
    group.replication_groups.iter().map(|p| EntryId { view: p.view, position: Position(position) }).collect()
}

fn cut(group: &mut Group, time: u64) -> Answer {
    let (versions, entries) = (group.versions(), entries(group, time));
    run(group, GroupCommand::Cut { time: Timestamp(time), versions, entries })
}

fn register_again(group: &mut Group, node: u16, nonce: u64, recovery: u64) -> Answer {
    let whole = all(group);
    run(group, GroupCommand::Register { node: NodeId(node), nonce, whole, recovery, directory: Default::default() })
}

#[test]
fn a_cut_counts_only_when_nothing_has_changed_since_its_draw() {
    let (mut group, members) = replicated();
    let (versions, old) = (group.versions(), entries(&group, 5));
    let version = group.replication_groups[0].version;
    run(&mut group, GroupCommand::Strike { group: P, version, member: members[1] });
    let late = GroupCommand::Cut { time: Timestamp(5), versions, entries: old };
    assert_eq!(run(&mut group, late), Answer::Void);
    assert_eq!(cut(&mut group, 6), Answer::Done);
    assert_eq!(group.cut.holders[0], [NodeId(1)]);
    assert_eq!(cut(&mut group, 6), Answer::Void, "the same again");
    let version = group.replication_groups[1].version;
    run(&mut group, GroupCommand::Relieve { group: GroupId(1), version });
    assert_eq!(cut(&mut group, 7), Answer::Void, "nobody leads a replication group");
    assert_eq!(group.cut.time, Timestamp(6));
}

#[test]
fn who_begins_anew_has_lost_its_memory() {
    let (mut group, members) = replicated();
    assert!(matches!(register_again(&mut group, 2, 20, 0), Answer::Process(_)));
    assert_eq!(group.replication_groups[0].in_sync, [members[0]]);
    assert_eq!(group.replication_groups[1].in_sync, [members[2]]);
    assert_eq!(run(&mut group, GroupCommand::Recover { number: 1 }), Answer::Void, "nothing is gone");
}

#[test]
fn the_cluster_goes_back_when_the_last_memory_of_a_partition_is_gone() {
    let (mut group, members) = replicated();
    assert_eq!(cut(&mut group, 9), Answer::Done);
    run(&mut group, GroupCommand::Down { member: members[0] });
    run(&mut group, GroupCommand::Down { member: members[1] });
    assert!(group.has_no_memory(&group.replication_groups[0]) && !group.has_no_memory(&group.replication_groups[1]));
    assert!(group.health().reasons[0].contains("node 1 or node 2"), "{:?}", group.health().reasons);
    let survivor = group.replication_groups[2].primary;
    assert_eq!(run(&mut group, GroupCommand::Recover { number: 2 }), Answer::Void);
    assert_eq!(run(&mut group, GroupCommand::Recover { number: 1 }), Answer::Done);
    assert!(!group.is_up(members[2].process), "survivors too have what others have lost");
    assert_eq!(group.replication_groups[2].former, survivor, "it may not have heard");
    assert!(group.replication_groups.iter().all(|p| p.in_sync.is_empty() && p.primary.is_none()));
    assert_eq!(register_again(&mut group, 1, 31, 0), Answer::Void, "it was opened before");
    let Answer::Process(process) = register_again(&mut group, 1, 32, 1) else { panic!("registered") };
    let one = Member { node: NodeId(1), process };
    // Node 1 held groups 0 and 2.
    assert_eq!(group.replication_groups[0].in_sync, [one]);
    assert!(group.replication_groups[1].in_sync.is_empty(), "it claims what it never held");
    let version = group.replication_groups[0].version;
    assert_eq!(run(&mut group, GroupCommand::Lead { group: P, version, member: one }), Answer::Done);
    let Answer::Process(process) = register_again(&mut group, 2, 33, 1) else { panic!("registered") };
    let two = Member { node: NodeId(2), process };
    assert_eq!(group.replication_groups[0].in_sync, [one], "led by now: the other gets what it lacks from the primary");
    assert_eq!(group.replication_groups[1].in_sync, [two]);
    assert_eq!(run(&mut group, GroupCommand::Recover { number: 2 }), Answer::Void, "nothing is gone any more");
}

fn succeed(group: &mut Group, member: Member, nonce: u64, recovery: u64) -> Answer {
    let (node, predecessor, kept) = (member.node, member.process, all(group));
    run(
        group,
        GroupCommand::Succeed {
            node,
            nonce,
            whole: vec![],
            recovery,
            predecessor,
            kept,
            directory: Default::default(),
        },
    )
}

/// Rule 34: a process that follows a fenced one has what that one had.
#[test]
fn a_successor_keeps_the_places_of_its_predecessor() {
    let (mut group, members) = replicated();
    run(&mut group, GroupCommand::Expire { term: 0, members: vec![members[1]] });
    assert_eq!(group.replication_groups[0].in_sync, [members[0]], "the other goes on without it");
    run(&mut group, GroupCommand::Expire { term: 0, members: vec![members[0]] });
    assert!(group.has_no_memory(&group.replication_groups[0]) && !group.is_memory_lost(&group.replication_groups[0]));
    let why = &group.health().reasons[0];
    assert!(why.contains("memory of node 1") && why.contains("rauk_memory_return_timeout"), "{why}");
    // A member that was removed from the in-sync set has nothing to keep.
    let Answer::Process(_) = succeed(&mut group, members[1], 50, 0) else { panic!("registered") };
    assert_eq!(group.replication_groups[0].in_sync, [members[0]]);
    let Answer::Process(process) = succeed(&mut group, members[0], 51, 0) else { panic!("registered") };
    let successor = Member { process, ..members[0] };
    assert_eq!(group.replication_groups[0].in_sync, [successor]);
    assert!(!group.has_no_memory(&group.replication_groups[0]));
    assert_eq!(succeed(&mut group, members[0], 51, 0), Answer::Process(process), "the same again");
    let version = group.replication_groups[0].version;
    assert_eq!(run(&mut group, GroupCommand::Lead { group: P, version, member: successor }), Answer::Done);
    assert_eq!(run(&mut group, GroupCommand::Recover { number: 1 }), Answer::Void, "nothing is gone");
}

/// What a directory says of a fenced process is void when another process of the node has registered since, or the cluster has gone back.
#[test]
fn an_old_claim_keeps_nothing() {
    let (mut group, members) = replicated();
    assert_eq!(cut(&mut group, 9), Answer::Done);
    run(&mut group, GroupCommand::Expire { term: 0, members: vec![members[0], members[1]] });
    let Answer::Process(_) = succeed(&mut group, members[0], 50, 0) else { panic!("registered") };
    assert!(group.replication_groups[0].in_sync.iter().any(|m| m.node == NodeId(1) && m.process != members[0].process));
    // That one ends, and the next reads the old note.
    let Answer::Process(_) = succeed(&mut group, members[0], 51, 0) else { panic!("registered") };
    assert_eq!(group.replication_groups[0].in_sync, [members[1]], "its memory is lost, and the other's is not");
    assert!(!group.is_memory_lost(&group.replication_groups[0]));
    assert!(matches!(register_again(&mut group, 2, 52, 0), Answer::Process(_)));
    assert!(group.is_memory_lost(&group.replication_groups[0]), "newer processes of all have registered without it");
    assert_eq!(run(&mut group, GroupCommand::Recover { number: 1 }), Answer::Done);
    assert_eq!(succeed(&mut group, members[1], 53, 0), Answer::Void);
    let Answer::Process(_) = succeed(&mut group, members[1], 54, 1) else { panic!("registered") };
    assert!(group.replication_groups[0].in_sync.is_empty(), "it waits for a holder of the cut");
}

#[test]
fn durability_is_chosen_when_the_cluster_is_made() {
    let (mut group, _) = replicated();
    let change = |durability| GroupCommand::Configure {
        replicas: Some(3),
        durability: Some(durability),
        replace_after: None,
        memory_return: None,
    };
    let Answer::Refused(why) = run(&mut group, change(ClusterDurability::Fsync)) else { panic!("refused") };
    assert!(why.to_string().contains("when it is founded"), "{why}");
    assert_eq!(run(&mut group, change(ClusterDurability::Replicated)), Answer::Done);
}

fn forget(group: &mut Group, node: u16) -> Answer {
    run(group, GroupCommand::ForgetNode { node: NodeId(node) })
}

fn only_holder(node: u16, id: u16) -> Answer {
    Answer::Refused(Refused::OnlyHolder { node, group: id })
}

/// While the cluster goes back, and before, a node that has the cut is not forgotten unless another that has it is up.
#[test]
fn holders_are_not_forgotten_while_the_cluster_goes_back() {
    let (mut group, members) = replicated();
    assert_eq!(cut(&mut group, 9), Answer::Done);
    run(&mut group, GroupCommand::Down { member: members[0] });
    run(&mut group, GroupCommand::Down { member: members[1] });
    assert_eq!(forget(&mut group, 1), only_holder(1, 0));
    assert_eq!(forget(&mut group, 2), only_holder(2, 0));
    assert_eq!(run(&mut group, GroupCommand::Recover { number: 1 }), Answer::Done);
    for (node, id) in [(1, 0), (2, 0), (3, 1)] {
        assert_eq!(forget(&mut group, node), only_holder(node, id), "nobody is in-sync, and all are needed");
    }
    assert!(matches!(register_again(&mut group, 3, 40, 1), Answer::Process(_)));
    assert_eq!(forget(&mut group, 2), only_holder(2, 0));
    // A holder that comes without what it held is none.
    let lost = GroupCommand::Register {
        node: NodeId(2),
        nonce: 41,
        whole: vec![],
        recovery: 1,
        directory: Default::default(),
    };
    let Answer::Process(process) = run(&mut group, lost) else { panic!("registered") };
    assert_eq!(forget(&mut group, 1), only_holder(1, 0));
    run(&mut group, GroupCommand::Down { member: Member { node: NodeId(2), process } });
    assert!(matches!(register_again(&mut group, 1, 42, 1), Answer::Process(_)));
    assert!(group.replication_groups.iter().all(|state| !Group::is_recovering(state)));
    assert_eq!(forget(&mut group, 2), Answer::Done, "all that it held another has");
}

/// In-sync is not all: who has become so since the last cut cannot go back to it.
#[test]
fn the_only_node_with_the_last_cut_is_not_forgotten() {
    let (mut group, members) = replicated();
    strike(&mut group, members[1]);
    assert_eq!(cut(&mut group, 9), Answer::Done);
    assert!(!group.wants_holders());
    let version = group.replication_groups[0].version;
    assert_eq!(run(&mut group, GroupCommand::Join { group: P, version, member: members[1] }), Answer::Done);
    assert!(group.wants_holders(), "one is in-sync that does not hold the cut");
    let mut drawn = group.clone();
    let expire = GroupCommand::Expire { term: 0, members: vec![members[0]] };
    run(&mut group, expire.clone());
    assert_eq!(group.replication_groups[0].in_sync, [members[1]]);
    assert_eq!(forget(&mut group, 1), only_holder(1, 0), "the others are in-sync, and do not have the cut");
    run(&mut group, GroupCommand::Down { member: members[1] });
    assert!(group.has_no_memory(&group.replication_groups[0]));
    assert_eq!(forget(&mut group, 1), only_holder(1, 0), "gone");
    let why = only_holder(1, 0);
    let Answer::Refused(why) = why else { unreachable!() };
    assert!(why.to_string().contains("start it"), "{why}");
    // Once another cut is complete there are other holders.
    assert_eq!(cut(&mut drawn, 10), Answer::Done);
    assert!(!drawn.wants_holders());
    run(&mut drawn, expire);
    assert_eq!(forget(&mut drawn, 1), Answer::Done);
}
