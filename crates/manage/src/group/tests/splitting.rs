//! Groups that become two.

use super::*;
use rauk_cluster::EntryId;
use rauk_types::{Position, Timestamp};

/// Two nodes, a group of four partitions that both have, led by the first, and that of the fully replicated tables.
fn one_group(durability: ClusterDurability) -> (Group, Vec<Member>) {
    let mut group = Group::new();
    let config = ClusterConfig { durability, groups: Some(1), ..config(4, 2) };
    assert_eq!(run(&mut group, GroupCommand::Create { config, adopted: None }), Answer::Done);
    let mut members = Vec::new();
    for n in 1..=2 {
        run(&mut group, add_node(n, &[RoleKind::Manage, RoleKind::Data, RoleKind::Sql]));
        members.push(register(&mut group, NodeId(n as u16), n, vec![]));
    }
    for number in 0..2u16 {
        let id = GroupId(number);
        let version = |group: &Group| group.replication_groups[usize::from(number)].version;
        let (v, nodes) = (version(&group), members.iter().map(|m| m.node).collect());
        assert_eq!(run(&mut group, GroupCommand::Place { group: id, version: v, nodes }), Answer::Done);
        let v = version(&group);
        assert_eq!(run(&mut group, GroupCommand::Lead { group: id, version: v, member: members[0] }), Answer::Done);
        let v = version(&group);
        assert_eq!(run(&mut group, GroupCommand::Join { group: id, version: v, member: members[1] }), Answer::Done);
    }
    (group, members)
}

fn end(group: &Group, id: GroupId) -> EntryId {
    EntryId { view: group.replication_groups[usize::from(id.0)].view, position: Position(7) }
}

/// Splits a group: its heir.
fn split(group: &mut Group, id: GroupId, at: u16) -> GroupId {
    let version = |group: &Group| group.replication_groups[usize::from(id.0)].version;
    let v = version(group);
    assert_eq!(run(group, GroupCommand::Divide { group: id, version: v, at }), Answer::Done);
    let (v, end) = (version(group), end(group, id));
    assert_eq!(run(group, GroupCommand::Split { group: id, version: v, at, end }), Answer::Done);
    group.heir(group.splits.len() - 1)
}

#[test]
fn both_groups_have_the_replicas_and_a_new_view() {
    let (mut group, members) = one_group(ClusterDurability::Fsync);
    let before = group.replication_groups[0].clone();
    let heir = split(&mut group, P, 3);
    assert_eq!(heir, GroupId(2), "behind that of the fully replicated tables");
    let (parent, heir) = (&group.replication_groups[0], &group.replication_groups[2]);
    assert_eq!(parent, heir);
    assert!(parent.view.0 == before.view.0 + 1 && parent.version > before.version && parent.dividing.is_none());
    assert_eq!((parent.primary, &parent.in_sync), (Some(members[0]), &members));
    let groups = group.groups().unwrap();
    assert_eq!([0, 1, 2].map(|id| groups.partitions_of(GroupId(id))), [0..3, 4..5, 3..4]);
    assert_eq!(split(&mut group, P, 1), GroupId(3));
    assert_eq!(group.groups().unwrap().partitions_of(GroupId(3)), 1..3);
    assert_eq!(group.health().groups.len(), 4);
}

#[test]
fn what_cannot_be_split_is_refused() {
    let (mut group, _) = one_group(ClusterDurability::Fsync);
    for (id, at) in [(P, 0), (P, 4), (GroupId(1), 4), (GroupId(2), 1)] {
        let version = group.replication_group(id).map_or(0, |state| state.version);
        let answer = nothing(&mut group, GroupCommand::Divide { group: id, version, at });
        assert!(refused(answer).to_string().contains("cannot be split"));
    }
    let version = group.replication_groups[0].version;
    assert_eq!(nothing(&mut group, GroupCommand::Divide { group: P, version: version - 1, at: 1 }), Answer::Void);
    let end = end(&group, P);
    let early = GroupCommand::Split { group: P, version, at: 1, end };
    assert_eq!(nothing(&mut group, early), Answer::Void, "nobody wants it");
}

#[test]
fn a_split_is_void_when_the_group_has_changed_since_its_last_entry() {
    let (mut group, members) = one_group(ClusterDurability::Fsync);
    done(&mut group, |version| GroupCommand::Divide { group: P, version, at: 2 });
    let (version, end) = (group.replication_groups[0].version, end(&group, P));
    let other = GroupCommand::Split { group: P, version, at: 1, end };
    assert_eq!(nothing(&mut group, other), Answer::Void, "it is to be split elsewhere");
    done(&mut group, |version| GroupCommand::Relieve { group: P, version });
    let unled = GroupCommand::Split { group: P, version: version + 1, at: 2, end };
    assert_eq!(nothing(&mut group, unled), Answer::Void, "nobody leads");
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: members[1] });
    let version = group.replication_groups[0].version;
    let older = GroupCommand::Split { group: P, version, at: 2, end };
    assert_eq!(nothing(&mut group, older), Answer::Void, "the last entry is of an older view");
    assert_eq!(group.replication_groups[0].dividing, Some(2), "the next primary does it");
}

#[test]
fn a_process_that_opened_before_a_split_opens_again() {
    let (mut group, _) = one_group(ClusterDurability::Fsync);
    let register = |group: &mut Group, nonce, groups| {
        let (whole, directory) = (all(group), DirectoryState::default());
        run(group, GroupCommand::Register { node: NodeId(2), nonce, whole, recovery: 0, directory, groups })
    };
    let opened = Some(group.replication_groups.len() as u16);
    split(&mut group, P, 2);
    assert_eq!(register(&mut group, 20, opened), Answer::Void);
    assert!(matches!(register(&mut group, 21, Some(3)), Answer::Process(_)));
    assert!(group.replication_groups.iter().all(|state| state.in_sync.len() == 2), "it has all of both");
}

#[test]
fn going_back_to_a_cut_undoes_later_splits() {
    let (mut group, members) = one_group(ClusterDurability::Replicated);
    let cut = |group: &mut Group, time: u64| {
        let entry = |state: &ReplicationGroup| EntryId { view: state.view, position: Position(time) };
        let (versions, entries) = (group.versions(), group.replication_groups.iter().map(entry).collect());
        assert_eq!(run(group, GroupCommand::Cut { time: Timestamp(time), versions, entries }), Answer::Done);
    };
    split(&mut group, P, 3);
    cut(&mut group, 5);
    split(&mut group, P, 1);
    split(&mut group, GroupId(3), 2);
    assert_eq!(group.replication_groups.len(), 5);
    let used = group.replication_groups[3].view;
    let (versions, views) = (group.versions(), group.replication_groups[0].view);
    members.iter().for_each(|member| drop(run(&mut group, GroupCommand::Down { member: *member })));
    assert_eq!(run(&mut group, GroupCommand::Recover { number: 1 }), Answer::Done);
    assert_eq!((group.replication_groups.len(), group.splits.len()), (3, 1), "that of the cut stays");
    assert_eq!(group.groups().unwrap().partitions_of(P), 0..3);
    assert!(group.versions() > versions && group.replication_groups[0].view >= views);
    // What had a number once is told from what has it next, whichever group is split then.
    assert_eq!(group.undone.view, used);
    let (state, undone) = (&mut group.replication_groups[0], group.undone);
    (state.primary, state.in_sync, state.view) = (Some(members[0]), vec![members[0]], View(1));
    assert!(split(&mut group, P, 1) == GroupId(3) && group.replication_groups[3].view > undone.view);
    assert!(group.replication_groups[3].version > undone.version);
}
