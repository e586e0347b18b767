//! The state machine by itself: what each command does, and what it must not do.

use super::*;
use crate::command::{Command, JobStep};
use crate::error::CatalogError;
use rauk_types::{Collation, GroupId, Member, NodeId, ProcessId, TableId, TableSchema, View};
use std::collections::BTreeSet;
use std::sync::Arc;

mod adopted;
mod cuts;
mod doubt;
pub(crate) mod random;

pub(crate) fn config(partitions: u16, replicas: u8) -> ClusterConfig {
    ClusterConfig {
        id: [7; 16],
        name: "test".into(),
        partitions,
        groups: None,
        replicas,
        durability: ClusterDurability::Fsync,
        replace_after: DEFAULT_REPLACE_AFTER,
        memory_return: DEFAULT_MEMORY_RETURN,
    }
}

pub(crate) fn add_node(directory: u64, roles: &[RoleKind]) -> GroupCommand {
    GroupCommand::AddNode {
        directory,
        address: format!("host{directory}:7306"),
        sql_address: String::new(),
        native_address: String::new(),
        roles: roles.iter().copied().collect(),
    }
}

/// Applies commands one after the other.
pub(crate) fn run(group: &mut Group, command: GroupCommand) -> Answer {
    group.apply(group.index + 1, &command)
}

const P: GroupId = GroupId(0);

fn all(group: &Group) -> Vec<GroupId> {
    (0..group.replication_groups.len() as u16).map(GroupId).collect()
}

fn register(group: &mut Group, node: NodeId, nonce: u64, whole: Vec<GroupId>) -> Member {
    match run(group, GroupCommand::Register { node, nonce, whole, recovery: 0, directory: Default::default() }) {
        Answer::Process(process) => Member { node, process },
        other => panic!("{other:?}"),
    }
}

/// `nodes` data nodes, all up; group 0 is led by the first, the others are in-sync.
pub(crate) fn cluster(nodes: u16) -> (Group, Vec<Member>) {
    let mut group = Group::new();
    assert_eq!(run(&mut group, GroupCommand::Create { config: config(2, 2), adopted: None }), Answer::Done);
    let roles = [RoleKind::Manage, RoleKind::Data, RoleKind::Sql];
    let members: Vec<Member> = (1..=nodes)
        .map(|n| {
            assert_eq!(run(&mut group, add_node(u64::from(n), &roles)), Answer::Node(NodeId(n)));
            register(&mut group, NodeId(n), u64::from(n), vec![])
        })
        .collect();
    let placed = members.iter().map(|m| m.node).collect();
    done(&mut group, |version| GroupCommand::Place { group: P, version, nodes: placed });
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: members[0] });
    for member in &members[1..] {
        done(&mut group, |version| GroupCommand::Join { group: P, version, member: *member });
    }
    assert_eq!(group.replication_groups[0].in_sync, members);
    (group, members)
}

/// A command under the version of group 0, which must be done.
fn done(group: &mut Group, command: impl FnOnce(u64) -> GroupCommand) {
    let version = group.replication_groups[0].version;
    assert_eq!(run(group, command(version)), Answer::Done);
}

/// One that must change nothing but the index.
fn nothing(group: &mut Group, command: GroupCommand) -> Answer {
    let mut before = group.clone();
    let answer = run(group, command);
    before.index += 1;
    assert_eq!(*group, before);
    answer
}

fn refused(answer: Answer) -> Refused {
    match answer {
        Answer::Refused(refused) => refused,
        other => panic!("{other:?}"),
    }
}

fn table(id: u32, name: &str) -> Arc<TableSchema> {
    crate::catalog::tests::table(id, "shop", name)
}

/// The commands that make a table.
pub(crate) fn make_table(id: u32, name: &str) -> [GroupCommand; 2] {
    let database =
        Command::CreateDatabase { name: "shop".into(), collation: Collation::DEFAULT, comment: String::new() };
    [database, Command::CreateTables { tables: vec![table(id, name)] }]
        .map(|command| GroupCommand::Catalog { command, intent: None })
}

pub(crate) fn with_table(group: &mut Group, id: u32, name: &str) {
    let [_, answer] = make_table(id, name).map(|command| run(group, command));
    assert!(matches!(answer, Answer::Catalog(CatalogAnswer::Applied(_))), "{answer:?}");
}

fn intent(owner: ProcessId, tables: &[u32], what: &str) -> Intent {
    let tables = tables.iter().copied().map(TableId).collect();
    Intent { owner, tables, reads: vec![], what: what.into(), open: Open::No, under: None }
}

#[test]
fn a_cluster_is_made_once() {
    let mut group = Group::new();
    assert_eq!(refused(nothing(&mut group, add_node(1, &[RoleKind::Data]))), Refused::NotMade);
    let config = config(4, 2);
    for wrong in [
        ClusterConfig { partitions: 0, ..config.clone() },
        ClusterConfig { partitions: u16::MAX, ..config.clone() },
        ClusterConfig { replicas: 0, ..config.clone() },
        ClusterConfig { replicas: 5, ..config.clone() },
        ClusterConfig { name: "x".repeat(256), ..config.clone() },
    ] {
        assert!(matches!(
            refused(nothing(&mut group, GroupCommand::Create { config: wrong, adopted: None })),
            Refused::OutOfRange(_)
        ));
    }
    assert_eq!(run(&mut group, GroupCommand::Create { config: config.clone(), adopted: None }), Answer::Done);
    assert_eq!(group.replication_groups.len(), 5);
    assert_eq!(nothing(&mut group, GroupCommand::Create { config: config.clone(), adopted: None }), Answer::Done);
    let other = ClusterConfig { id: [8; 16], ..config };
    assert_eq!(refused(nothing(&mut group, GroupCommand::Create { config: other, adopted: None })), Refused::Made);
}

#[test]
fn what_can_be_configured() {
    let mut group = Group::new();
    run(&mut group, GroupCommand::Create { config: config(4, 2), adopted: None });
    assert_eq!(
        run(
            &mut group,
            GroupCommand::Configure {
                replicas: Some(3),
                durability: None,
                replace_after: Some(5),
                memory_return: None
            }
        ),
        Answer::Done
    );
    let config = group.config.clone().unwrap();
    assert_eq!((config.replicas, config.replace_after), (3, 5));
    let never =
        GroupCommand::Configure { replicas: None, durability: None, replace_after: Some(0), memory_return: None };
    assert!(matches!(refused(nothing(&mut group, never)), Refused::OutOfRange(_)));
}

#[test]
fn a_node_is_known_by_its_directory() {
    let (mut group, _) = cluster(2);
    assert_eq!(
        nothing(&mut group, add_node(1, &[RoleKind::Manage, RoleKind::Data, RoleKind::Sql])),
        Answer::Node(NodeId(1))
    );
    let moved = GroupCommand::AddNode {
        directory: 1,
        address: "elsewhere:1".into(),
        sql_address: "elsewhere:2".into(),
        native_address: String::new(),
        roles: BTreeSet::from([RoleKind::Data]),
    };
    assert_eq!(run(&mut group, moved), Answer::Node(NodeId(1)));
    assert_eq!(group.nodes[&NodeId(1)].address, "elsewhere:1");
    assert!(!group.nodes[&NodeId(1)].has(RoleKind::Sql));
    assert!(matches!(refused(nothing(&mut group, add_node(9, &[]))), Refused::OutOfRange(_)));
}

#[test]
fn the_address_of_a_node_that_is_up_is_its_own() {
    let (mut group, members) = cluster(2);
    let taking = GroupCommand::AddNode {
        directory: 99,
        address: "host2:7306".into(),
        sql_address: String::new(),
        native_address: String::new(),
        roles: BTreeSet::from([RoleKind::Data]),
    };
    let expected = Refused::AddressTaken { address: "host2:7306".into(), node: 2 };
    assert_eq!(refused(nothing(&mut group, taking.clone())), expected);
    run(&mut group, GroupCommand::Down { member: members[1] });
    assert_eq!(run(&mut group, taking), Answer::Node(NodeId(3)));
    // The old one is not coming back there.
    assert_eq!(group.nodes[&NodeId(2)].life, Life::Absent);
    assert_eq!(group.nodes[&NodeId(2)].address, "");
}

#[test]
fn a_registration_that_comes_twice_gives_the_same_process() {
    let (mut group, members) = cluster(2);
    let again = |nonce| GroupCommand::Register {
        node: NodeId(2),
        nonce,
        whole: vec![],
        recovery: 0,
        directory: Default::default(),
    };
    assert_eq!(nothing(&mut group, again(2)), Answer::Process(members[1].process));
    let newer = register(&mut group, NodeId(2), 50, vec![]);
    assert!(newer.process > members[1].process);
    // Late, when a newer one is there: it stays the newest.
    assert_eq!(nothing(&mut group, again(2)), Answer::Process(members[1].process));
    assert_eq!(group.member(NodeId(2)), Some(newer));
    assert_eq!(
        refused(nothing(
            &mut group,
            GroupCommand::Register {
                node: NodeId(9),
                nonce: 1,
                whole: vec![],
                recovery: 0,
                directory: Default::default()
            }
        )),
        Refused::NoSuchNode(9)
    );
}

#[test]
fn a_process_with_its_log_keeps_its_place() {
    let (mut group, members) = cluster(2);
    let whole = all(&group);
    let version = group.replication_groups[0].version;
    let newer = register(&mut group, NodeId(2), 50, whole.clone());
    assert_eq!(group.replication_groups[0].in_sync, [members[0], newer]);
    assert_eq!(group.replication_groups[0].primary, Some(members[0]));
    assert_eq!(group.replication_groups[0].version, version + 1);
    // Where it led, nobody does; the view stays until another is named.
    let view = group.replication_groups[0].view;
    let newer = register(&mut group, NodeId(1), 51, whole);
    let state = &group.replication_groups[0];
    assert_eq!((state.primary, state.former, state.view), (None, Some(members[0]), view));
    assert_eq!(state.in_sync[0], newer);
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: newer });
    assert_eq!(group.replication_groups[0].view, View(view.0 + 1));
    assert_eq!(group.replication_groups[0].former, None);
}

#[test]
fn a_process_without_its_log_is_struck() {
    let (mut group, members) = cluster(2);
    let newer = register(&mut group, NodeId(2), 50, vec![]);
    assert_eq!(group.replication_groups[0].in_sync, [members[0]]);
    assert_eq!(group.assignment(P).joining, [newer]);
    // The last one stays, as the process that had everything: what comes back empty is not it.
    let empty = register(&mut group, NodeId(1), 51, vec![]);
    assert_eq!(group.replication_groups[0].in_sync, [members[0]]);
    assert_eq!(group.replication_groups[0].primary, None);
    let version = group.replication_groups[0].version;
    for member in [empty, members[0], newer] {
        assert_eq!(nothing(&mut group, GroupCommand::Lead { group: P, version, member }), Answer::Void);
    }
    let health = group.health();
    assert_eq!(health.colour, Colour::Red);
    assert!(health.reasons[0].contains("are lost"), "{:?}", health.reasons);
    // Nor is the next one, although it has all that the empty one had.
    let whole = all(&group);
    register(&mut group, NodeId(1), 52, whole);
    assert_eq!(group.replication_groups[0].in_sync, [members[0]]);
}

#[test]
fn who_is_down_stays_down_and_whoever_begins_goes_on_without_it() {
    let (mut group, members) = cluster(3);
    assert_eq!(run(&mut group, GroupCommand::Down { member: members[0] }), Answer::Done);
    let state = &group.replication_groups[0];
    assert_eq!((state.primary, state.former), (None, None));
    assert_eq!(state.in_sync, members);
    assert!(!group.is_up(members[0].process));
    assert_eq!(nothing(&mut group, GroupCommand::Down { member: members[0] }), Answer::Void);
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: members[1] });
    assert_eq!(group.replication_groups[0].in_sync, members[1..]);
    run(&mut group, GroupCommand::Down { member: members[1] });
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: members[2] });
    run(&mut group, GroupCommand::Down { member: members[2] });
    // Only the last has everything.
    assert_eq!(group.replication_groups[0].in_sync, [members[2]]);
    assert_eq!(group.replication_groups[0].primary, None);
    let whole = all(&group);
    let back = register(&mut group, NodeId(1), 50, whole.clone());
    let version = group.replication_groups[0].version;
    assert_eq!(nothing(&mut group, GroupCommand::Lead { group: P, version, member: back }), Answer::Void);
    let last = register(&mut group, NodeId(3), 51, whole);
    assert_eq!(group.replication_groups[0].in_sync, [last]);
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: last });
    // A late Down of the old process does nothing to the new one.
    assert_eq!(nothing(&mut group, GroupCommand::Down { member: members[2] }), Answer::Void);
}

/// The disk of one is lost, and the process of the other ends at the same time: the other has everything, whichever lease ends first.
#[test]
fn who_ends_together_keeps_its_place() {
    for lost in [0, 1] {
        let (mut group, members) = cluster(2);
        let whole = all(&group);
        run(&mut group, GroupCommand::Term { number: 1 });
        let together = GroupCommand::Expire { term: 1, members: members.clone() };
        assert_eq!(run(&mut group, together.clone()), Answer::Done);
        assert_eq!(nothing(&mut group, together), Answer::Void);
        assert_eq!((group.replication_groups[0].primary, &group.replication_groups[0].in_sync), (None, &members));
        let health = group.health();
        assert_eq!(
            health.reasons[0],
            "replication group 0 waits for node 1 or node 2, each of which has a whole replica: start one"
        );
        // Nobody is dropped as long as nobody knows who comes back.
        let (version, other) = (group.replication_groups[0].version, members[1 - lost]);
        let place = GroupCommand::Place { group: P, version, nodes: vec![members[lost].node] };
        assert_eq!(refused(nothing(&mut group, place)), Refused::Needed { node: other.node.0, group: 0 });
        // One comes with an empty disk, as another node at its address.
        let address = group.nodes[&members[lost].node].address.clone();
        let empty = GroupCommand::AddNode {
            directory: 77,
            address,
            sql_address: String::new(),
            native_address: String::new(),
            roles: BTreeSet::from([RoleKind::Data]),
        };
        let Answer::Node(node) = run(&mut group, empty) else { panic!() };
        let newcomer = register(&mut group, node, 70, whole.clone());
        let waits =
            format!("replication group 0 waits for node {}, which has the only whole replica: start it", other.node.0);
        assert_eq!(group.health().reasons[0], waits);
        let version = group.replication_groups[0].version;
        for member in [newcomer, members[lost]] {
            assert_eq!(nothing(&mut group, GroupCommand::Lead { group: P, version, member }), Answer::Void);
        }
        let back = register(&mut group, other.node, 71, whole);
        done(&mut group, |version| GroupCommand::Lead { group: P, version, member: back });
        assert_eq!(group.replication_groups[0].in_sync, [back]);
    }
}

#[test]
fn whoever_ends_is_struck_where_somebody_is_left() {
    let (mut group, members) = cluster(3);
    run(&mut group, GroupCommand::Term { number: 1 });
    run(&mut group, GroupCommand::Expire { term: 1, members: members[1..].to_vec() });
    assert_eq!(group.replication_groups[0].in_sync, members[..1]);
    assert_eq!(group.replication_groups[0].primary, Some(members[0]));
    // What was acknowledged without them they do not have, whole as they may be.
    run(&mut group, GroupCommand::Expire { term: 1, members: members[..1].to_vec() });
    let whole = all(&group);
    let back = register(&mut group, NodeId(2), 50, whole);
    let version = group.replication_groups[0].version;
    assert_eq!(nothing(&mut group, GroupCommand::Lead { group: P, version, member: back }), Answer::Void);
}

#[test]
fn both_disks_lost_is_said() {
    let (mut group, members) = cluster(2);
    run(&mut group, GroupCommand::Term { number: 1 });
    run(&mut group, GroupCommand::Expire { term: 1, members: members.clone() });
    register(&mut group, NodeId(1), 50, vec![]);
    assert_eq!(group.replication_groups[0].in_sync, [members[1]]);
    assert!(group.health().reasons[0].contains("waits for node 2"), "{:?}", group.health());
    register(&mut group, NodeId(2), 51, vec![]);
    assert!(group.health().reasons[0].contains("are lost: only node 2 had"), "{:?}", group.health());
}

#[test]
fn requests_under_an_old_version_are_void() {
    let (mut group, members) = cluster(3);
    let old = group.replication_groups[0].version;
    done(&mut group, |version| GroupCommand::Strike { group: P, version, member: members[2] });
    for late in [
        GroupCommand::Strike { group: P, version: old, member: members[1] },
        GroupCommand::Join { group: P, version: old, member: members[2] },
        GroupCommand::Lead { group: P, version: old, member: members[1] },
        GroupCommand::Relieve { group: P, version: old },
        GroupCommand::Withdraw { group: P, version: old, member: members[0] },
        GroupCommand::Place { group: P, version: old, nodes: vec![NodeId(1)] },
    ] {
        assert_eq!(nothing(&mut group, late), Answer::Void);
    }
    let beyond = GroupCommand::Relieve { group: GroupId(3), version: 0 };
    assert!(matches!(refused(nothing(&mut group, beyond)), Refused::OutOfRange(_)));
}

/// Rule 80: a primary that has stopped gives way at once, and only where somebody can go on.
#[test]
fn a_primary_that_has_stopped_leads_no_more() {
    let (mut group, members) = cluster(3);
    let withdraw = |group: &Group, member| {
        let version = group.replication_groups[0].version;
        GroupCommand::Withdraw { group: P, version, member }
    };
    for other in [members[1], Member { process: ProcessId(99), ..members[0] }] {
        let late = withdraw(&group, other);
        assert_eq!(nothing(&mut group, late), Answer::Void);
    }
    let stopped = withdraw(&group, members[0]);
    assert_eq!(run(&mut group, stopped.clone()), Answer::Done);
    assert_eq!(nothing(&mut group, stopped), Answer::Void, "twice is as good as once");
    let state = &group.replication_groups[0];
    assert_eq!((state.primary, state.former, state.in_sync.as_slice()), (None, None, &members[1..]));
    assert!(state.leaving.is_empty() && state.placed.contains(&members[0].node));
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: members[1] });
    assert_eq!(group.assignment(P).joining, [members[0]]);
    // The last that has everything stays, and so does one whose followers have all ended.
    strike(&mut group, members[2]);
    let alone = withdraw(&group, members[1]);
    assert_eq!(nothing(&mut group, alone), Answer::Void);
    done(&mut group, |version| GroupCommand::Join { group: P, version, member: members[0] });
    run(&mut group, GroupCommand::Down { member: members[0] });
    let alone = withdraw(&group, members[1]);
    assert_eq!(nothing(&mut group, alone), Answer::Void);
}

#[test]
fn every_change_of_an_assignment_has_a_version_of_its_own() {
    let (mut group, members) = cluster(3);
    strike(&mut group, members[2]);
    let before = group.assignment(P);
    assert_eq!(before.joining, [members[2]]);
    // The joiner goes: what the primary is told has changed.
    run(&mut group, GroupCommand::Down { member: members[2] });
    let after = group.assignment(P);
    assert_eq!(after.joining, []);
    assert!(after.version > before.version);
    let newer = register(&mut group, NodeId(3), 50, vec![]);
    assert_eq!(group.assignment(P).joining, [newer]);
    assert!(group.assignment(P).version > after.version);
}

/// Takes a member out that knows of it at once.
pub(super) fn strike(group: &mut Group, member: Member) {
    done(group, |version| GroupCommand::Strike { group: P, version, member });
    let members = group.replication_groups[0].leaving.clone();
    done(group, |version| GroupCommand::LetGo { group: P, version, members: members.clone() });
}

/// Rule 33: it may not have heard of it, and reads on.
#[test]
fn who_is_struck_while_it_is_up_counts_until_it_is_let_go() {
    let (mut group, members) = cluster(3);
    done(&mut group, |version| GroupCommand::Strike { group: P, version, member: members[2] });
    let counted = |group: &Group| group.assignment(P).in_sync.contains(&members[2]);
    assert!(!group.replication_groups[0].in_sync.contains(&members[2]) && counted(&group));
    assert_eq!(group.assignment(P).joining, []);
    let version = group.replication_groups[0].version;
    let join = GroupCommand::Join { group: P, version, member: members[2] };
    assert_eq!(nothing(&mut group, join), Answer::Void, "it leaves");
    // The next primary counts it too.
    done(&mut group, |version| GroupCommand::Relieve { group: P, version });
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: members[1] });
    assert!(counted(&group));
    let leaving = group.replication_groups[0].leaving.clone();
    let let_go = |group: &Group| {
        let version = group.replication_groups[0].version;
        GroupCommand::LetGo { group: P, version, members: leaving.clone() }
    };
    let first = let_go(&group);
    assert_eq!(run(&mut group, first.clone()), Answer::Done);
    assert!(!counted(&group));
    assert_eq!(group.assignment(P).joining, [members[2]]);
    // In again, and out again: what was said of the first time is not true of the second.
    done(&mut group, |version| GroupCommand::Join { group: P, version, member: members[2] });
    done(&mut group, |version| GroupCommand::Strike { group: P, version, member: members[2] });
    let late = let_go(&group);
    for late in [first, late] {
        assert_eq!(nothing(&mut group, late), Answer::Void);
    }
    assert!(counted(&group));
    // Whoever has ended reads nothing.
    run(&mut group, GroupCommand::Down { member: members[2] });
    assert!(!counted(&group) && group.replication_groups[0].leaving.is_empty());
}

#[test]
fn who_has_ended_or_is_moved_away_is_counted_only_while_it_is_up() {
    let (mut group, members) = cluster(3);
    done(&mut group, |version| GroupCommand::Place { group: P, version, nodes: vec![NodeId(1), NodeId(2)] });
    assert_eq!(group.assignment(P).in_sync, members);
    assert!(group.replication_groups[0].is_leaving(members[2]));
    let newer = register(&mut group, NodeId(3), 50, vec![]);
    assert!(group.replication_groups[0].leaving.is_empty() && !group.assignment(P).names(newer));
    run(&mut group, GroupCommand::Down { member: members[1] });
    done(&mut group, |version| GroupCommand::Strike { group: P, version, member: members[1] });
    assert_eq!(group.assignment(P).in_sync, [members[0]]);
}

#[test]
fn only_who_can_joins() {
    let (mut group, members) = cluster(3);
    strike(&mut group, members[2]);
    let join =
        |group: &Group, member| GroupCommand::Join { group: P, version: group.replication_groups[0].version, member };
    let void = |group: &mut Group, member| assert_eq!(nothing(group, join(group, member)), Answer::Void);
    // In-sync already; of an old process; of a node that is not placed here.
    void(&mut group, members[1]);
    void(&mut group, Member { process: ProcessId(99), ..members[2] });
    done(&mut group, |version| GroupCommand::Place { group: P, version, nodes: vec![NodeId(1), NodeId(2)] });
    void(&mut group, members[2]);
    done(&mut group, |version| GroupCommand::Place { group: P, version, nodes: vec![NodeId(1), NodeId(2), NodeId(3)] });
    done(&mut group, |version| GroupCommand::Relieve { group: P, version });
    // Nobody leads, so nobody can say that it has everything.
    void(&mut group, members[2]);
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: members[1] });
    let joins = join(&group, members[2]);
    assert_eq!(run(&mut group, joins), Answer::Done);
}

#[test]
fn a_primary_is_relieved_before_another_leads() {
    let (mut group, members) = cluster(2);
    let version = group.replication_groups[0].version;
    assert_eq!(nothing(&mut group, GroupCommand::Lead { group: P, version, member: members[1] }), Answer::Void);
    assert_eq!(nothing(&mut group, GroupCommand::Strike { group: P, version, member: members[0] }), Answer::Void);
    done(&mut group, |version| GroupCommand::Relieve { group: P, version });
    assert_eq!(group.replication_groups[0].former, Some(members[0]));
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: members[1] });
    assert_eq!(group.replication_groups[0].in_sync, [members[1], members[0]]);
}

#[test]
fn placement_never_drops_what_is_needed() {
    let (mut group, members) = cluster(2);
    let place = |group: &Group, nodes: &[u16]| GroupCommand::Place {
        group: P,
        version: group.replication_groups[0].version,
        nodes: nodes.iter().copied().map(NodeId).collect(),
    };
    let needed = Refused::Needed { node: 1, group: 0 };
    let command = place(&group, &[2]);
    assert_eq!(refused(nothing(&mut group, command)), needed);
    for wrong in [&[][..], &[1, 1], &[1, 9]] {
        let command = place(&group, wrong);
        refused(nothing(&mut group, command));
    }
    let command = place(&group, &[1]);
    assert_eq!(run(&mut group, command), Answer::Done);
    assert_eq!(group.replication_groups[0].in_sync, [members[0]]);
    run(&mut group, GroupCommand::Down { member: members[0] });
    let command = place(&group, &[2]);
    assert_eq!(refused(nothing(&mut group, command)), needed);
    assert_eq!(refused(nothing(&mut group, GroupCommand::RemoveNode { node: NodeId(1) })), Refused::NodeInUse(1));
    assert_eq!(run(&mut group, GroupCommand::RemoveNode { node: NodeId(2) }), Answer::Done);
    assert_eq!(nothing(&mut group, GroupCommand::RemoveNode { node: NodeId(2) }), Answer::Done);
    assert_eq!(refused(nothing(&mut group, GroupCommand::RemoveNode { node: NodeId(7) })), Refused::NoSuchNode(7));
    assert_eq!(run(&mut group, add_node(2, &[RoleKind::Data])), Answer::Node(NodeId(3)));
}

#[test]
fn the_operator_forgets_a_node_that_does_not_come_back() {
    let (mut group, members) = cluster(3);
    let forget = |node| GroupCommand::ForgetNode { node: NodeId(node) };
    assert_eq!(refused(nothing(&mut group, forget(2))), Refused::NodeUp(2));
    assert_eq!(refused(nothing(&mut group, forget(9))), Refused::NoSuchNode(9));
    run(&mut group, GroupCommand::Down { member: members[1] });
    let before = group.replication_groups[0].version;
    assert_eq!(run(&mut group, forget(2)), Answer::Done);
    assert!(!group.nodes.contains_key(&NodeId(2)));
    // It was in-sync still: the primary goes on without it.
    assert_eq!(group.replication_groups[0].in_sync, [members[0], members[2]]);
    assert_eq!(group.replication_groups[0].placed, [NodeId(1), NodeId(3)]);
    assert_eq!(group.replication_groups[0].version, before + 1);
    assert_eq!(nothing(&mut group, forget(2)), Answer::Done);
    // As long as nobody is up who has everything, those that have it stay, whatever is asked.
    run(&mut group, GroupCommand::Down { member: members[2] });
    run(&mut group, GroupCommand::Down { member: members[0] });
    for node in [1, 3] {
        assert_eq!(refused(nothing(&mut group, forget(node))), Refused::OnlyReplica { node, group: 0 });
    }
    let whole = all(&group);
    register(&mut group, NodeId(1), 70, whole);
    assert_eq!(run(&mut group, forget(3)), Answer::Done);
    // Its directory is a stranger's from now on.
    assert_eq!(run(&mut group, add_node(2, &[RoleKind::Data])), Answer::Node(NodeId(4)));
}

#[test]
fn what_an_older_leader_says_of_leases_is_void() {
    let (mut group, members) = cluster(2);
    assert_eq!(run(&mut group, GroupCommand::Term { number: 5 }), Answer::Done);
    assert_eq!(nothing(&mut group, GroupCommand::Expire { term: 4, members: vec![members[1]] }), Answer::Void);
    assert_eq!(nothing(&mut group, GroupCommand::Term { number: 4 }), Answer::Void);
    assert_eq!(run(&mut group, GroupCommand::Expire { term: 5, members: vec![members[1]] }), Answer::Done);
    assert!(!group.is_up(members[1].process));
}

#[test]
fn counters_give_nothing_twice_and_go_with_their_tables() {
    let (mut group, _) = cluster(1);
    let reserve = |table, count| GroupCommand::Reserve { table: TableId(table), count };
    refused(nothing(&mut group, reserve(1, 10)));
    with_table(&mut group, 1, "orders");
    let hidden = 1 | 1 << 31;
    assert_eq!(run(&mut group, reserve(1, 10)), Answer::Numbers(1));
    assert_eq!(run(&mut group, reserve(1, 5)), Answer::Numbers(11));
    assert_eq!(run(&mut group, reserve(hidden, 100)), Answer::Numbers(1));
    assert_eq!(run(&mut group, GroupCommand::Observe { table: TableId(1), value: 100 }), Answer::Done);
    assert_eq!(nothing(&mut group, GroupCommand::Observe { table: TableId(1), value: 50 }), Answer::Done);
    assert_eq!(run(&mut group, reserve(1, 1)), Answer::Numbers(101));
    refused(nothing(&mut group, reserve(1, u64::MAX)));
    run(&mut group, GroupCommand::Observe { table: TableId(1), value: u64::MAX });
    refused(nothing(&mut group, reserve(1, 1)));
    let drop = Command::DropTables { tables: vec![TableId(1)] };
    run(&mut group, GroupCommand::Catalog { command: drop, intent: None });
    assert!(group.counters.is_empty());
}

#[test]
fn counters_of_tables_that_a_job_builds() {
    let (mut group, _) = cluster(1);
    with_table(&mut group, 1, "orders");
    let start = Command::StartJob { what: "ALTER".into(), table: TableId(1), builds: 1 };
    let answer = run(&mut group, GroupCommand::Catalog { command: start, intent: None });
    let Answer::Catalog(CatalogAnswer::Applied(applied)) = answer else { panic!("{answer:?}") };
    let job = applied.job.unwrap();
    let built = job.builds[0];
    assert_eq!(run(&mut group, GroupCommand::Reserve { table: built, count: 7 }), Answer::Numbers(1));
    run(
        &mut group,
        GroupCommand::Catalog { command: Command::JobStep { job: job.id, step: JobStep::Filling }, intent: None },
    );
    assert_eq!(group.counters.get(&built), Some(&8));
    run(&mut group, GroupCommand::Catalog { command: Command::AbortJob { job: job.id }, intent: None });
    assert!(group.counters.is_empty());
    let many = Command::StartJob { what: String::new(), table: TableId(1), builds: u32::MAX };
    refused(nothing(&mut group, GroupCommand::Catalog { command: many, intent: None }));
    let last = Command::CreateTables { tables: vec![table(u32::MAX, "x")] };
    refused(nothing(&mut group, GroupCommand::Catalog { command: last, intent: None }));
}

#[test]
fn timestamps_only_rise() {
    let (mut group, _) = cluster(1);
    run(&mut group, GroupCommand::Timestamps { bound: 1000 });
    assert_eq!(nothing(&mut group, GroupCommand::Timestamps { bound: 10 }), Answer::Done);
    refused(nothing(&mut group, GroupCommand::Timestamps { bound: u64::MAX }));
    assert_eq!(group.timestamp_bound, 1000);
}

#[test]
fn intents_share_no_table_and_end_with_their_owner() {
    let (mut group, members) = cluster(2);
    let intend = |owner: Member, tables: &[u32], what: &str| GroupCommand::Intend {
        intent: intent(owner.process, tables, what),
    };
    assert_eq!(run(&mut group, intend(members[0], &[1, 2], "ALTER TABLE a")), Answer::Intent(1));
    assert_eq!(
        refused(nothing(&mut group, intend(members[1], &[2, 3], "x"))),
        Refused::Intended("ALTER TABLE a".into())
    );
    assert_eq!(run(&mut group, intend(members[1], &[3], "DROP TABLE c")), Answer::Intent(2));
    run(&mut group, GroupCommand::Down { member: members[0] });
    assert_eq!(group.intents.keys().collect::<Vec<_>>(), [&2]);
    assert_eq!(nothing(&mut group, intend(members[0], &[9], "late")), Answer::Void);
    register(&mut group, NodeId(2), 50, vec![]);
    assert!(group.intents.is_empty());
    // A change whose intent has ended is void: its tables are not locked any more.
    let command = Command::CreateDatabase { name: "d".into(), collation: Collation::DEFAULT, comment: String::new() };
    assert_eq!(nothing(&mut group, GroupCommand::Catalog { command, intent: Some(2) }), Answer::Void);
}

#[test]
fn an_open_intent_has_another_number_and_keeps_other_ddl_out() {
    let (mut group, members) = cluster(2);
    let alter = intent(members[0].process, &[1], "ALTER TABLE a");
    let drop = || GroupCommand::Intend { intent: intent(members[1].process, &[1], "DROP TABLE a") };
    let read = || {
        let intent = Intent { reads: vec![TableId(1)], ..intent(members[1].process, &[], "LOCK TABLES") };
        GroupCommand::Intend { intent }
    };
    let intended = || Refused::Intended("ALTER TABLE a".into());
    run(&mut group, GroupCommand::Intend { intent: alter.clone() });
    assert_eq!(refused(nothing(&mut group, read())), intended());
    assert_eq!(run(&mut group, GroupCommand::Reopen { number: 1, open: Open::ToAll }), Answer::Intent(2));
    assert_eq!(group.intents, [(2, Intent { open: Open::ToAll, ..alter.clone() })].into());
    assert_eq!(nothing(&mut group, GroupCommand::Reopen { number: 1, open: Open::No }), Answer::Void);
    assert_eq!(refused(nothing(&mut group, drop())), intended());
    // LOCK TABLES … READ passes, and is then in the way.
    assert_eq!(run(&mut group, read()), Answer::Intent(3));
    let close = GroupCommand::Reopen { number: 2, open: Open::No };
    assert_eq!(refused(nothing(&mut group, close.clone())), Refused::Intended("LOCK TABLES".into()));
    run(&mut group, GroupCommand::EndIntent { number: 3 });
    assert_eq!(run(&mut group, close), Answer::Intent(4));
    assert_eq!(group.intents, [(4, alter)].into());
    run(&mut group, GroupCommand::Down { member: members[0] });
    assert!(group.intents.is_empty());
}

#[test]
fn a_change_under_locks_is_followed_by_them() {
    let (mut group, members) = cluster(2);
    let me = members[0].process;
    with_table(&mut group, 1, "orders");
    let create = Command::CreateTables { tables: vec![table(2, "items"), table(3, "parts")] };
    run(&mut group, GroupCommand::Catalog { command: create, intent: None });
    let locks = Intent { reads: vec![TableId(3)], ..intent(me, &[1, 2], "LOCK TABLES") };
    assert_eq!(run(&mut group, GroupCommand::Intend { intent: locks.clone() }), Answer::Intent(1));
    let under = |tables: &[u32]| Intent { under: Some(1), ..intent(me, tables, "TRUNCATE TABLE") };
    let intend = |group: &mut Group, tables: &[u32]| {
        let intent = under(tables);
        let Answer::Intent(number) = run(group, GroupCommand::Intend { intent }) else { panic!("an intent") };
        number
    };
    // Two statements under the same locks exclude each other as any do, and so do others and both.
    let first = intend(&mut group, &[1, 3]);
    assert!(matches!(nothing(&mut group, GroupCommand::Intend { intent: under(&[1]) }), Answer::Refused(_)));
    let other = GroupCommand::Intend { intent: intent(members[1].process, &[3], "DROP TABLE c") };
    assert!(matches!(nothing(&mut group, other), Answer::Refused(_)));
    let truncate =
        Command::Switch { job: None, drop: vec![TableId(1)], create: vec![table(4, "orders")], replace: vec![] };
    run(&mut group, GroupCommand::Catalog { command: truncate, intent: Some(first) });
    assert_eq!(group.intents.keys().collect::<Vec<_>>(), [&1]);
    assert_eq!(group.intents[&1].tables, [TableId(2), TableId(4)]);
    let second = intend(&mut group, &[2]);
    let drop = Command::DropTables { tables: vec![TableId(2)] };
    run(&mut group, GroupCommand::Catalog { command: drop, intent: Some(second) });
    assert_eq!((&group.intents[&1].tables[..], &group.intents[&1].reads[..]), (&[TableId(4)][..], &[TableId(3)][..]));
    // With the locks ends what works under them; what comes late is void.
    let third = intend(&mut group, &[4]);
    run(&mut group, GroupCommand::EndIntent { number: 1 });
    assert!(group.intents.is_empty());
    let late = Command::DropTables { tables: vec![TableId(4)] };
    assert_eq!(nothing(&mut group, GroupCommand::Catalog { command: late, intent: Some(third) }), Answer::Void);
    assert_eq!(nothing(&mut group, GroupCommand::Intend { intent: under(&[4]) }), Answer::Void);
}

#[test]
fn a_catalog_change_ends_its_intent() {
    let (mut group, members) = cluster(1);
    with_table(&mut group, 1, "orders");
    let asked = GroupCommand::Intend { intent: intent(members[0].process, &[1], "DROP TABLE shop.orders") };
    let Answer::Intent(number) = run(&mut group, asked) else { panic!() };
    let wrong = Command::DropTables { tables: vec![TableId(9)] };
    let answer = nothing(&mut group, GroupCommand::Catalog { command: wrong, intent: Some(number) });
    assert_eq!(answer, Answer::Catalog(CatalogAnswer::Refused(CatalogError::NoSuchTableId(TableId(9)))));
    let drop = Command::DropTables { tables: vec![TableId(1)] };
    run(&mut group, GroupCommand::Catalog { command: drop, intent: Some(number) });
    assert!(group.intents.is_empty());
    assert_eq!(group.catalog_index, group.index);
    assert_eq!(nothing(&mut group, GroupCommand::EndIntent { number }), Answer::Done);
}

#[test]
fn what_is_built_needs_its_intent_and_ends_with_it() {
    let (mut group, members) = cluster(2);
    with_table(&mut group, 1, "orders");
    let build = |id: u32, intent| GroupCommand::Catalog {
        command: Command::StartBuild {
            what: "ALTER TABLE shop.orders".into(),
            table: TableId(1),
            owner: members[0].process,
            tables: vec![table(id, "built")],
            definitions: vec![table(1, "half")],
            limits: Default::default(),
        },
        intent,
    };
    let intend = || GroupCommand::Intend { intent: intent(members[0].process, &[1], "ALTER TABLE shop.orders") };
    let placed = |group: &Group| group.catalog.partition_tables();
    let before = placed(&group);

    assert_eq!(nothing(&mut group, build(2, None)), Answer::Void);
    let Answer::Intent(first) = run(&mut group, intend()) else { panic!() };
    run(&mut group, build(2, Some(first)));
    assert!(group.intents.contains_key(&first), "it goes on under its intent");
    assert_eq!(placed(&group)[&TableId(1)].name, "half");
    run(&mut group, GroupCommand::EndIntent { number: first });
    assert_eq!((placed(&group), group.catalog_index), (before.clone(), group.index));

    // One that comes late finds the table with another statement, even one of the same process.
    let Answer::Intent(second) = run(&mut group, intend()) else { panic!() };
    assert_eq!(nothing(&mut group, build(3, Some(first))), Answer::Void);
    // What that one builds stays no longer than it, whichever way it ends.
    run(&mut group, build(3, Some(second)));
    let wider = Command::ReplaceDefinitions { tables: vec![table(1, "wider")] };
    run(&mut group, GroupCommand::Catalog { command: wider, intent: Some(second) });
    assert_eq!(placed(&group)[&TableId(1)].name, "wider");
    let Answer::Intent(third) = run(&mut group, intend()) else { panic!() };
    run(&mut group, build(4, Some(third)));
    run(&mut group, GroupCommand::Down { member: members[0] });
    assert_eq!(placed(&group)[&TableId(1)].name, "wider");
    assert_eq!(group.catalog.jobs().count(), 0);
}

#[test]
fn what_is_proposed_again_is_done_once() {
    let (mut group, members) = cluster(2);
    with_table(&mut group, 1, "orders");
    let process = members[0].process;
    let once = |number, command: GroupCommand| command.once(Origin { process, number });
    let reserve = || GroupCommand::Reserve { table: TableId(1), count: 10 };
    assert_eq!(run(&mut group, once(1, reserve())), Answer::Numbers(1));
    assert_eq!(run(&mut group, once(2, reserve())), Answer::Numbers(11));
    assert_eq!(nothing(&mut group, once(1, reserve())), Answer::Numbers(1));
    let create =
        || GroupCommand::Catalog { command: Command::CreateTables { tables: vec![table(2, "items")] }, intent: None };
    let first = run(&mut group, once(3, create()));
    assert!(matches!(first, Answer::Catalog(CatalogAnswer::Applied(_))));
    assert_eq!(nothing(&mut group, once(3, create())), first);
    let intend = || GroupCommand::Intend { intent: intent(process, &[1], "x") };
    assert_eq!(run(&mut group, once(4, intend())), Answer::Intent(1));
    assert_eq!(nothing(&mut group, once(4, intend())), Answer::Intent(1));
    // Refusals are remembered too: the proposer has perhaps been told.
    let refusal = run(&mut group, once(5, intend()));
    assert!(matches!(refusal, Answer::Refused(Refused::Intended(_))));
    run(&mut group, GroupCommand::EndIntent { number: 1 });
    assert_eq!(nothing(&mut group, once(5, intend())), refusal);
    for number in 100..200 {
        run(&mut group, once(number, reserve()));
    }
    assert_eq!(refused(nothing(&mut group, once(1, reserve()))), Refused::Forgotten);
    // Nothing of a process that has ended takes effect.
    run(&mut group, GroupCommand::Down { member: members[0] });
    assert_eq!(nothing(&mut group, once(300, reserve())), Answer::Void);
    assert!(group.origins.is_empty());
    let same = GroupCommand::EndIntent { number: 1 };
    assert_eq!(same.clone().once(Origin { process, number: 1 }), same);
}

#[test]
fn health_says_what_is_wrong() {
    assert_eq!(Group::new().health().colour, Colour::Red);
    let (mut group, members) = cluster(2);
    let health = group.health();
    assert_eq!(health.colour, Colour::Red);
    assert!(health.reasons.contains(&"replication group 1 has no data node yet".to_owned()), "{:?}", health.reasons);
    for number in 1..3 {
        let id = GroupId(number);
        run(&mut group, GroupCommand::Place { group: id, version: 0, nodes: vec![NodeId(2), NodeId(1)] });
        run(&mut group, GroupCommand::Lead { group: id, version: 1, member: members[1] });
    }
    let health = group.health();
    assert_eq!(health.colour, Colour::Yellow);
    assert_eq!(
        health.reasons,
        ["2 of 3 replication groups have fewer replicas than wanted (replication group 1: 1 of 2)"]
    );
    assert_eq!((health.groups[1].joining, health.groups[0].in_sync), (1, 2));
    for number in 1..3 {
        run(&mut group, GroupCommand::Join { group: GroupId(number), version: 2, member: members[0] });
    }
    assert_eq!(group.health(), Health { colour: Colour::Green, reasons: vec![], groups: group.health().groups });
    // Led from elsewhere than where it is to be led.
    let mut moving = group.clone();
    done(&mut moving, |version| GroupCommand::Place { group: P, version, nodes: vec![NodeId(2), NodeId(1)] });
    assert_eq!(moving.health().reasons, ["1 of 3 replication groups are on their way to where they are to be"]);
    assert_eq!(moving.health().colour, Colour::Yellow);
    run(&mut group, GroupCommand::Down { member: members[0] });
    let health = group.health();
    assert_eq!(health.colour, Colour::Red);
    assert_eq!(health.reasons[0], "replication group 0 is about to get a new primary");
    assert!(
        health.reasons[2].starts_with("node 1 (host1:7306) is down; others get its replicas when it stays away for")
    );
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: members[1] });
    assert_eq!(group.health().colour, Colour::Yellow);
    run(&mut group, GroupCommand::Down { member: members[1] });
    assert_eq!(
        group.health().reasons[0],
        "replication group 0 waits for node 2, which has the only whole replica: start it"
    );
}
