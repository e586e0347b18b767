//! Members whose log ended in damage, and older copies of a directory (rule 37).

use super::*;
use rauk_cluster::EntryId;
use rauk_types::Position;

fn end(view: u64, position: u64) -> EntryId {
    EntryId { view: View(view), position: Position(position) }
}

/// A registration of a directory whose log ends at `last` in every group.
fn start(group: &mut Group, node: u16, nonce: u64, cut: bool, last: EntryId) -> Member {
    let (node, whole) = (NodeId(node), all(group));
    let directory = DirectoryState { starts: None, cut, ends: vec![last; whole.len()] };
    match run(group, GroupCommand::Register { node, nonce, whole, recovery: 0, directory }) {
        Answer::Process(process) => Member { node, process },
        other => panic!("{other:?}"),
    }
}

fn lead(group: &Group, member: Member) -> GroupCommand {
    GroupCommand::Lead { group: P, version: group.replication_groups[0].version, member }
}

fn reason(group: &Group) -> String {
    group.health().reasons.first().cloned().unwrap_or_default()
}

/// Two in-sync members, the first of which led; both processes have ended.
fn both_down() -> Group {
    let (mut group, members) = cluster(2);
    run(&mut group, GroupCommand::Term { number: 1 });
    assert_eq!(run(&mut group, GroupCommand::Expire { term: 1, members }), Answer::Done);
    assert_eq!(group.replication_groups[0].in_sync.len(), 2);
    group
}

#[test]
fn a_doubtful_member_waits_for_one_that_has_everything() {
    let mut group = both_down();
    let doubtful = start(&mut group, 1, 11, true, end(1, 5));
    assert_eq!(group.replication_groups[0].in_sync.len(), 1);
    assert_eq!(group.replication_groups[0].doubtful, [Doubtful { member: doubtful, last: end(1, 5) }]);
    let command = lead(&group, doubtful);
    assert_eq!(nothing(&mut group, command), Answer::Void);
    let why = reason(&group);
    assert!(why.contains("waits for node 2") && why.contains("the log of node 1 ended in a damaged entry"), "{why}");
    assert!(why.contains("ALTER CLUSTER ACCEPT LOSS"), "{why}");
    // A restart does not bring back what was cut, though the log ends well by now.
    let doubtful = start(&mut group, 1, 12, false, end(1, 5));
    let command = lead(&group, doubtful);
    assert_eq!(nothing(&mut group, command), Answer::Void);
    // Nor is it forgotten that the other one has everything.
    let forget = GroupCommand::ForgetNode { node: NodeId(2) };
    assert_eq!(refused(nothing(&mut group, forget)), Refused::OnlyReplica { node: 2, group: 0 });
    let whole = start(&mut group, 2, 21, false, end(1, 4));
    assert!(reason(&group).contains("about to get a new primary"));
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: whole });
    assert_eq!(group.replication_groups[0].in_sync, [whole]);
    assert!(group.replication_groups[0].doubtful.is_empty());
    assert_eq!(group.assignment(P).joining, [doubtful]);
    done(&mut group, |version| GroupCommand::Join { group: P, version, member: doubtful });
}

/// The order in which they come back does not matter, nor that one of them goes again.
#[test]
fn where_all_are_doubtful_the_longest_log_leads() {
    for (first, second) in [(end(1, 4), end(1, 6)), (end(1, 9), end(2, 3)), (end(1, 6), end(1, 4))] {
        let mut group = both_down();
        let one = start(&mut group, 1, 11, true, first);
        let command = lead(&group, one);
        assert_eq!(nothing(&mut group, command), Answer::Void);
        let two = start(&mut group, 2, 21, true, second);
        assert!(group.replication_groups[0].in_sync.is_empty() && !Group::is_recovering(&group.replication_groups[0]));
        let (longer, shorter) = if first < second { (two, one) } else { (one, two) };
        let command = lead(&group, shorter);
        assert_eq!(nothing(&mut group, command), Answer::Void);
        run(&mut group, GroupCommand::Down { member: longer });
        let command = lead(&group, shorter);
        assert_eq!(nothing(&mut group, command), Answer::Void);
        assert!(reason(&group).contains("whose log reaches furthest"), "{}", reason(&group));
        let forget = GroupCommand::ForgetNode { node: longer.node };
        assert!(matches!(refused(nothing(&mut group, forget)), Refused::OnlyReplica { .. }));
        // One that comes back without its log does not have it either.
        let node = longer.node;
        let register = GroupCommand::Register {
            node,
            nonce: 31,
            whole: vec![],
            recovery: 0,
            directory: DirectoryState::default(),
        };
        assert!(matches!(run(&mut group.clone(), register.clone()), Answer::Process(_)));
        let mut lost = group.clone();
        run(&mut lost, register);
        let command = lead(&lost, shorter);
        assert_eq!(nothing(&mut lost, command), Answer::Void);
        let back = start(&mut group, node.0, 41, false, first.max(second));
        done(&mut group, |version| GroupCommand::Lead { group: P, version, member: back });
        assert_eq!(
            (group.replication_groups[0].in_sync.as_slice(), group.replication_groups[0].doubtful.len()),
            (&[back][..], 0)
        );
    }
}

/// While a primary is there it goes on without the doubtful one, which joins again.
#[test]
fn beside_a_primary_a_doubtful_member_is_a_joiner() {
    let (mut group, members) = cluster(2);
    let doubtful = start(&mut group, 2, 22, true, end(1, 3));
    assert_eq!((group.replication_groups[0].primary, group.replication_groups[0].in_sync.len()), (Some(members[0]), 1));
    assert_eq!(group.assignment(P).joining, [doubtful]);
    // The primary ends: it has everything, and nobody else.
    run(&mut group, GroupCommand::Term { number: 1 });
    run(&mut group, GroupCommand::Expire { term: 1, members: vec![members[0]] });
    assert_eq!(group.replication_groups[0].in_sync, [members[0]]);
    let command = lead(&group, doubtful);
    assert_eq!(nothing(&mut group, command), Answer::Void);
    let back = start(&mut group, 1, 31, false, end(1, 8));
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: back });
    done(&mut group, |version| GroupCommand::Join { group: P, version, member: doubtful });
    assert!(group.replication_groups[0].doubtful.is_empty());
}

#[test]
fn the_operator_accepts_the_loss() {
    let (mut group, _) = cluster(2);
    assert_eq!(refused(nothing(&mut group, GroupCommand::AcceptLoss)), Refused::NothingDoubtful);
    let mut group_down = both_down();
    std::mem::swap(&mut group, &mut group_down);
    let doubtful = start(&mut group, 1, 11, true, end(1, 5));
    assert_eq!(run(&mut group, GroupCommand::AcceptLoss), Answer::Done);
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: doubtful });
    assert_eq!(group.replication_groups[0].in_sync, [doubtful]);
    // The other one comes back too late: it is a joiner.
    let late = start(&mut group, 2, 21, false, end(1, 9));
    assert_eq!(group.replication_groups[0].in_sync, [doubtful]);
    assert_eq!(group.assignment(P).joining, [late]);
    assert_eq!(refused(nothing(&mut group, GroupCommand::AcceptLoss)), Refused::NothingDoubtful);
}

/// Nothing of it where memory counts: a new process keeps no place there.
#[test]
fn an_only_member_leads_with_what_it_has() {
    let (mut group, members) = cluster(1);
    let doubtful = start(&mut group, 1, 11, true, end(1, 5));
    assert_ne!(members[0], doubtful);
    done(&mut group, |version| GroupCommand::Lead { group: P, version, member: doubtful });
}

#[test]
fn an_older_copy_of_a_directory_is_refused() {
    let (mut group, _) = cluster(2);
    let register = |nonce, starts: Option<&[u64]>| {
        let directory = DirectoryState { starts: starts.map(<[u64]>::to_vec), ..Default::default() };
        GroupCommand::Register { node: NodeId(2), nonce, whole: vec![], recovery: 0, directory }
    };
    let is_up = |answer| assert!(matches!(answer, Answer::Process(_)), "{answer:?}");
    is_up(run(&mut group, register(51, Some(&[51]))));
    // An attempt that never arrived is no start; the directory knows both.
    is_up(run(&mut group, register(53, Some(&[51, 52, 53]))));
    for older in [&[51, 61][..], &[61], &[]] {
        assert_eq!(refused(nothing(&mut group, register(61, Some(older)))), Refused::OlderDirectory(2));
    }
    // The newest one may come again, also by a proposal that was doubled on the way.
    is_up(run(&mut group, register(54, Some(&[53, 54]))));
    is_up(nothing(&mut group, register(53, Some(&[51, 52, 53]))));
}
