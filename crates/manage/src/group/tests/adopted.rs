//! A cluster that is made of the directory of a node alone.

use super::*;
use rauk_cluster::EntryId;
use rauk_types::{Position, Timestamp};
use std::collections::BTreeMap;

const TIME: Timestamp = Timestamp(40);
const HIDDEN: TableId = TableId(7 | 1 << 31);

fn adopted() -> Adopted {
    let mut catalog = Catalog::default();
    let [made, table] = make_table(7, "t");
    for command in [made, table] {
        let GroupCommand::Catalog { command, .. } = command else { panic!("a change of the catalog") };
        catalog.apply(&command).unwrap();
    }
    // Of a table that was dropped, too.
    let counters = BTreeMap::from([(TableId(7), 300), (HIDDEN, 9), (TableId(3), 5)]);
    Adopted { catalog, counters, time: TIME }
}

fn made(durability: ClusterDurability) -> Group {
    let mut group = Group::new();
    let create = GroupCommand::Create {
        config: ClusterConfig { durability, ..config(2, 2) },
        adopted: Some(adopted().encode()),
    };
    assert_eq!(run(&mut group, create.clone()), Answer::Done);
    assert_eq!(nothing(&mut group, create), Answer::Done);
    for directory in 1..=3 {
        run(&mut group, add_node(directory, &[RoleKind::Manage, RoleKind::Data, RoleKind::Sql]));
    }
    group
}

fn register_in(group: &mut Group, node: u16, recovery: u64, whole: Vec<GroupId>) -> Answer {
    let (node, nonce) = (NodeId(node), group.index);
    run(group, GroupCommand::Register { node, nonce, whole, recovery, directory: Default::default() })
}

#[test]
fn it_begins_with_tables_counters_and_times() {
    let mut group = made(ClusterDurability::Fsync);
    assert_eq!(group.catalog.table(TableId(7)).map(|table| table.name.as_str()), Some("t"));
    assert!(!group.holds_nothing());
    assert_eq!(group.counters, BTreeMap::from([(TableId(7), 300), (HIDDEN, 9)]));
    assert_eq!(run(&mut group, GroupCommand::Reserve { table: TableId(7), count: 2 }), Answer::Numbers(300));
    assert_eq!(group.timestamp_bound, 41);
    // It comes out of a snapshot as it is.
    let text = serde_json::to_string(&group).unwrap();
    assert_eq!(serde_json::from_str::<Group>(&text).unwrap(), group);
}

#[test]
fn only_the_founder_with_its_rows_leads_first() {
    for durability in [ClusterDurability::Fsync, ClusterDurability::Replicated] {
        let mut group = made(durability);
        let entry = EntryId { view: View(1), position: Position(1) };
        assert!((0..3).all(|number| group.recovery.cut.entry(GroupId(number)) == entry));
        let whole = all(&group);
        assert_eq!(register_in(&mut group, 1, 0, whole.clone()), Answer::Void, "it has not carried the recovery out");
        // Another node, and the founder's directory emptied.
        for (node, claimed) in [(2, whole.clone()), (1, vec![])] {
            let Answer::Process(process) = register_in(&mut group, node, 1, claimed) else { panic!("registered") };
            let member = Member { node: NodeId(node), process };
            for number in 0..3 {
                let id = GroupId(number);
                let nodes = vec![member.node];
                let version = group.replication_groups[usize::from(number)].version;
                run(&mut group, GroupCommand::Place { group: id, version, nodes });
                let version = group.replication_groups[usize::from(number)].version;
                assert_eq!(run(&mut group, GroupCommand::Lead { group: id, version, member }), Answer::Void);
                assert!(group.replication_groups[usize::from(number)].in_sync.is_empty());
            }
        }
        let Answer::Process(process) = register_in(&mut group, 1, 1, whole) else { panic!("registered") };
        let founder = Member { node: NodeId(1), process };
        for number in 0..3 {
            let id = GroupId(number);
            let version = group.replication_groups[usize::from(number)].version;
            assert_eq!(run(&mut group, GroupCommand::Lead { group: id, version, member: founder }), Answer::Done);
            let state = &group.replication_groups[usize::from(number)];
            assert_eq!((state.view, &state.in_sync), (View(2), &vec![founder]));
        }
    }
}

#[test]
fn an_unfinished_statement_is_not_taken_over() {
    let mut wrong = adopted();
    let job = Command::StartJob { what: "ALTER".into(), table: TableId(7), builds: 1 };
    wrong.catalog.apply(&job).unwrap();
    let create = GroupCommand::Create { config: config(2, 2), adopted: Some(wrong.encode()) };
    assert!(matches!(refused(nothing(&mut Group::new(), create)), Refused::OutOfRange(_)));
    let create = GroupCommand::Create { config: config(2, 2), adopted: Some("{}".into()) };
    assert!(matches!(refused(nothing(&mut Group::new(), create)), Refused::OutOfRange(_)));
    let late = Adopted { time: Timestamp::MAX, ..adopted() };
    let create = GroupCommand::Create { config: config(2, 2), adopted: Some(late.encode()) };
    assert!(matches!(refused(nothing(&mut Group::new(), create)), Refused::OutOfRange(_)));
}
