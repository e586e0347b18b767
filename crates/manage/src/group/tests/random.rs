//! Random commands, sensible and senseless ones: invariants hold after each, what is not done changes nothing, replaying and both encodings give the
//! same state.

use super::*;
use rauk_cluster::EntryId;
use rauk_types::{Position, Timestamp};
use std::collections::BTreeMap;

/// SplitMix64.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.below(from.len() as u64) as usize]) }
    }
}

/// What has to be true of every state of a group.
pub(crate) fn check_invariants(group: &Group) {
    let mut processes = BTreeSet::new();
    for (id, node) in &group.nodes {
        assert!(id.0 < group.next_node);
        assert!(node.process.0 < group.next_process);
        assert!(node.process == ProcessId::default() || processes.insert(node.process), "a process of two nodes");
        assert!(node.life != Life::Up || node.process != ProcessId::default());
    }
    for (number, state) in group.replication_groups.iter().enumerate() {
        let place = format!("replication group {number}: {state:?}");
        let nodes: BTreeSet<NodeId> = state.in_sync.iter().map(|m| m.node).collect();
        assert_eq!(nodes.len(), state.in_sync.len(), "{place}");
        assert!(nodes.iter().all(|n| state.placed.contains(n)), "{place}");
        assert!(state.placed.iter().all(|n| group.nodes.contains_key(n)), "{place}");
        let recovering = Group::is_recovering(state) && group.recovery.number > 0 && state.primary.is_none();
        let has_members = !state.in_sync.is_empty() || !state.doubtful.is_empty();
        assert!(recovering || (state.view == View::default()) != has_members, "{place}");
        let doubtful: BTreeSet<NodeId> = state.doubtful.iter().map(|d| d.member.node).collect();
        assert_eq!(doubtful.len(), state.doubtful.len(), "{place}");
        assert!(doubtful.iter().all(|n| state.placed.contains(n) && !nodes.contains(n)), "{place}");
        assert!(doubtful.is_empty() || !group.is_replicated(), "{place}");
        // A process that has been followed by a newer one of its node stands only for what is lost.
        let replaced = |m: &Member| group.nodes[&m.node].process != m.process;
        assert!(state.in_sync.len() == 1 || !state.in_sync.iter().any(replaced), "{place}");
        if let Some(primary) = state.primary {
            assert_eq!(state.in_sync.first(), Some(&primary), "{place}");
            assert!(group.is_member(primary) && state.former.is_none(), "{place}");
        }
        let assignment = group.assignment(GroupId(number as u16));
        assert!(assignment.joining.iter().all(|m| !state.in_sync.contains(m) && group.is_member(*m)), "{place}");
    }
    for (number, one) in &group.intents {
        let locks = one.under.map(|locks| group.intents.get(&locks));
        assert!(locks.is_none_or(|locks| locks.is_some()), "an intent under one that has ended");
        for (other, two) in group.intents.range(number + 1..) {
            let apart = two.under != Some(*number) && one.under != Some(*other);
            let shared = one.tables.iter().any(|table| two.tables.contains(table));
            assert!(!(apart && shared), "intents that share a table");
        }
    }
    assert!(group.intents.values().all(|i| group.is_up(i.owner)));
    assert!(group.origins.keys().all(|p| group.is_up(*p)));
}

fn directory(group: &Group, random: &mut Random) -> DirectoryState {
    let end = |p: &ReplicationGroup| EntryId { view: p.view, position: Position(random.below(4)) };
    let ends = group.replication_groups.iter().map(end).collect();
    DirectoryState { starts: random.one_in(5).then(|| vec![random.below(200)]), cut: random.one_in(3), ends }
}

fn member(group: &Group, random: &mut Random) -> Member {
    let node = NodeId(random.below(6) as u16);
    let newest = group.nodes.get(&node).map_or(ProcessId(3), |n| n.process);
    let process = if random.one_in(6) { ProcessId(random.below(20) as u32) } else { newest };
    Member { node, process }
}

/// A group, with its version or another.
fn under(group: &Group, random: &mut Random) -> (GroupId, u64) {
    let id = GroupId(random.below(5) as u16);
    let version = group.replication_group(id).map_or(0, |p| p.version);
    (id, if random.one_in(6) { version.wrapping_sub(random.below(3)) } else { version })
}

fn roles(random: &mut Random) -> BTreeSet<RoleKind> {
    let all = [RoleKind::Manage, RoleKind::Data, RoleKind::Sql];
    all.into_iter().filter(|_| !random.one_in(4)).collect()
}

fn catalog_command(random: &mut Random) -> Command {
    let number = random.below(6) as u32 + 1;
    match random.below(8) {
        0 => Command::CreateDatabase { name: "shop".into(), collation: Collation::DEFAULT, comment: String::new() },
        1 if random.one_in(4) => Command::DropDatabase { name: "shop".into() },
        2 => Command::DropTables { tables: vec![TableId(number)] },
        3 => Command::StartJob { what: "ALTER".into(), table: TableId(number), builds: random.below(3) as u32 },
        4 => Command::AbortJob { job: crate::command::JobId(random.below(5)) },
        5 if random.one_in(2) => Command::Settings { changes: vec![(format!("k{number}"), Some("v".into()))] },
        5 => {
            let mut text = || random.one_in(2).then(|| "v".to_owned());
            let (from, to) = (text(), text());
            Command::ChangeSettings {
                changes: vec![crate::command::SettingChange { key: format!("k{number}"), from, to }],
            }
        }
        _ => Command::CreateTables { tables: vec![table(random.below(30) as u32, &format!("t{number}"))] },
    }
}

fn command(group: &Group, random: &mut Random) -> GroupCommand {
    let (id, version) = under(group, random);
    let someone = member(group, random);
    let counter = TableId(random.below(12) as u32 | if random.one_in(3) { 1 << 31 } else { 0 });
    let command = match random.below(29) {
        0 => GroupCommand::Create { config: config(random.below(4) as u16, random.below(5) as u8), adopted: None },
        26 | 27 => {
            let entry = |p: &ReplicationGroup| EntryId { view: p.view, position: Position(random.below(50)) };
            let entries = group.replication_groups.iter().map(entry).collect();
            let versions = group.versions().wrapping_add(u64::from(random.one_in(6)));
            GroupCommand::Cut { time: Timestamp(random.below(5_000)), versions, entries }
        }
        28 => GroupCommand::Recover { number: group.recovery.number + random.below(2) },
        1 | 2 => {
            let directory = random.below(7);
            let address = format!("host{}:1", if random.one_in(5) { random.below(7) } else { directory });
            let addresses = [address, String::new(), String::new()];
            let [address, sql_address, native_address] = addresses;
            GroupCommand::AddNode { directory, address, sql_address, native_address, roles: roles(random) }
        }
        3 | 4 => {
            let whole = (0..5).filter(|_| !random.one_in(3)).map(GroupId).collect();
            if random.one_in(3) {
                let predecessor = someone.process;
                let kept = (0..5).filter(|_| !random.one_in(3)).map(GroupId).collect();
                let (node, recovery) = (someone.node, group.recovery.number);
                let directory = directory(group, random);
                let nonce = random.below(200);
                return GroupCommand::Succeed { node, nonce, whole, recovery, predecessor, kept, directory };
            }
            GroupCommand::Register {
                node: someone.node,
                nonce: random.below(200),
                whole,
                recovery: group.recovery.number,
                directory: directory(group, random),
            }
        }
        5 => GroupCommand::Down { member: someone },
        6 => {
            let others = (0..random.below(3)).map(|_| member(group, random)).collect::<Vec<_>>();
            let members = std::iter::once(someone).chain(others).collect();
            GroupCommand::Expire { term: group.term.saturating_sub(random.below(2)), members }
        }
        7 | 8 => GroupCommand::Strike { group: id, version, member: someone },
        9..=11 => GroupCommand::Join { group: id, version, member: someone },
        12..=14 => GroupCommand::Lead { group: id, version, member: someone },
        15..=17 => {
            let nodes = (0..random.below(4)).map(|_| NodeId(random.below(7) as u16)).collect();
            GroupCommand::Place { group: id, version, nodes }
        }
        18 if random.one_in(2) => GroupCommand::Withdraw { group: id, version, member: someone },
        18 => GroupCommand::Relieve { group: id, version },
        19 if random.one_in(2) => GroupCommand::ForgetNode { node: someone.node },
        19 if random.one_in(4) => GroupCommand::AcceptLoss,
        19 => GroupCommand::RemoveNode { node: someone.node },
        20 => GroupCommand::Timestamps { bound: random.next() >> random.below(64) },
        21 => GroupCommand::Catalog {
            command: catalog_command(random),
            intent: random.one_in(3).then(|| random.below(group.next_intent + 1)),
        },
        22 => GroupCommand::Reserve { table: counter, count: random.next() >> random.below(64) },
        23 => GroupCommand::Observe { table: counter, value: random.next() >> random.below(64) },
        24 => {
            let tables: BTreeSet<u32> = (0..random.below(3)).map(|_| random.below(8) as u32).collect();
            let tables: Vec<u32> = tables.into_iter().collect();
            let under = random.one_in(3).then(|| random.below(group.next_intent + 1));
            GroupCommand::Intend { intent: Intent { under, ..intent(someone.process, &tables, "DDL") } }
        }
        _ => match random.below(4) {
            3 => GroupCommand::Reopen {
                number: random.below(group.next_intent + 1),
                open: [Open::No, Open::ToReaders, Open::ToAll][random.below(3) as usize],
            },
            0 => GroupCommand::EndIntent { number: random.below(group.next_intent + 1) },
            1 => GroupCommand::Term { number: group.term + random.below(3) },
            _ => GroupCommand::Configure {
                replicas: Some(random.below(6) as u8),
                durability: None,
                replace_after: Some(random.below(40) as u32),
                memory_return: random.one_in(2).then(|| random.below(40) as u32),
            },
        },
    };
    if random.one_in(3) {
        command.once(Origin { process: someone.process, number: random.below(300) })
    } else {
        command
    }
}

fn json<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let text = serde_json::to_vec(value).unwrap();
    assert_eq!(serde_json::from_slice::<T>(&text).unwrap(), *value);
    let bytes = postcard::to_stdvec(value).unwrap();
    assert_eq!(postcard::from_bytes::<T>(&bytes).unwrap(), *value);
}

#[test]
fn whatever_is_said() {
    let mut done = 0;
    for seed in 0..40 {
        let random = &mut Random(seed);
        let mut group = Group::new();
        let mut said = Vec::new();
        if !random.one_in(4) {
            let durability = match random.one_in(2) {
                true => ClusterDurability::Replicated,
                false => ClusterDurability::Fsync,
            };
            let time = Timestamp(random.below(50));
            let adopted = || Adopted { catalog: Catalog::default(), counters: BTreeMap::new(), time }.encode();
            let adopted = random.one_in(2).then(adopted);
            said.push(GroupCommand::Create { config: ClusterConfig { durability, ..config(3, 2) }, adopted });
            run(&mut group, said[0].clone());
        }
        for _ in 0..400 {
            // Some come again.
            let command = match random.pick(&(0..said.len()).collect::<Vec<_>>()) {
                Some(old) if random.one_in(8) => said[old].clone(),
                _ => command(&group, random),
            };
            let mut before = group.clone();
            let answer = run(&mut group, command.clone());
            check_invariants(&group);
            let once = matches!(command, GroupCommand::Once { .. });
            match answer {
                Answer::Void => {
                    before.index += 1;
                    before.origins.clone_from(&group.origins);
                    assert_eq!(group, before, "void, and not without a trace: {command:?}");
                }
                Answer::Refused(_) | Answer::Catalog(CatalogAnswer::Refused(_)) if !once => {
                    before.index += 1;
                    assert_eq!(group, before, "refused, and not without a trace: {command:?}");
                }
                _ => done += 1,
            }
            for (number, (old, new)) in before.replication_groups.iter().zip(&group.replication_groups).enumerate() {
                let id = GroupId(number as u16);
                assert!(new.version >= old.version && new.view >= old.view);
                assert!(new.version > old.version || before.assignment(id) == group.assignment(id));
            }
            json(&command);
            json(&answer);
            said.push(command);
        }
        json(&group);
        let mut replayed = Group::new();
        for command in &said {
            run(&mut replayed, command.clone());
        }
        assert_eq!(replayed, group);
    }
    assert!(done > 3_000, "only {done} commands did anything");
}
