//! Promise: *nothing is left behind* of statements that have ended, whoever ended them: no intent, no job, no index table without its index (or index without its table), no counter of a table
//! that is gone; and the engine's partitions of every process have the catalog's tables, or their leaves, in their newest definitions, and no others.
use super::Verdict;
use crate::cluster::network::Site;
use rauk_manage::group::Group;
use rauk_node::physical_tables;
use rauk_types::schema::IndexKind;
use rauk_types::{TableId, TableSchema};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The tables of one partition, with their definitions there.
pub type Placed = BTreeMap<TableId, Arc<TableSchema>>;

pub fn check(group: &Group, partitions: &BTreeMap<(Site, u16), Placed>) -> Verdict {
    if let Some((number, intent)) = group.intents.first_key_value() {
        return Err(format!("intent {number} is left: {intent:?}"));
    }
    if let Some(job) = group.catalog.jobs().next() {
        return Err(format!("a job is left: {job:?}"));
    }
    check_index_tables(group)?;
    // The highest bit marks counters of hidden keys.
    let orphan = group.counters.keys().find(|id| group.catalog.table(TableId(id.0 & !(1 << 31))).is_none());
    if let Some(counter) = orphan {
        return Err(format!("there is a counter of table {}, which is gone", counter.0));
    }
    let wanted: Placed = group.catalog.tables().flat_map(physical_tables).map(|table| (table.id, table)).collect();
    for ((site, partition), placed) in partitions {
        let ids = |tables: &Placed| tables.keys().map(|id| id.0).collect::<BTreeSet<u32>>();
        if ids(placed) != ids(&wanted) {
            let (has, should) = (ids(placed), ids(&wanted));
            return Err(format!("{site:?} has tables {has:?} in partition {partition}, the catalog {should:?}"));
        }
        if let Some((id, _)) = placed.iter().find(|(id, table)| wanted[id] != **table) {
            return Err(format!("{site:?} has another definition of table {} in partition {partition}", id.0));
        }
    }
    Ok(())
}

fn check_index_tables(group: &Group) -> Verdict {
    let (mut needed, mut there) = (BTreeSet::new(), BTreeSet::new());
    for table in &group.catalog.tables().flat_map(physical_tables).collect::<Vec<_>>() {
        let uniques = table.indexes.iter().filter(|index| index.kind == IndexKind::Unique);
        let owner = |global: bool| table.leaf_of.filter(|_| global).unwrap_or(table.id);
        needed.extend(uniques.map(|index| (index.entry_table, Some((owner(index.global), index.id)))));
        if table.entry_of.is_some() {
            there.insert((Some(table.id), table.entry_of));
        }
    }
    match needed.symmetric_difference(&there).next() {
        Some(one) => Err(format!("index tables are {there:?} and should be {needed:?}: {one:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::tables::{DATABASE, columns, index, table};
    use rauk_manage::Command;
    use rauk_manage::group::{ClusterConfig, ClusterDurability, GroupCommand, Intent, Open};
    use rauk_types::{Collation, DataType, ProcessId};

    fn apply(group: &mut Group, command: GroupCommand) {
        let index = group.index + 1;
        group.apply(index, &command);
    }

    fn catalog(group: &mut Group, command: Command) {
        apply(group, GroupCommand::Catalog { command, intent: None });
    }

    /// One table with a unique index.
    fn whole() -> (Group, Placed) {
        let mut group = Group::new();
        let config = ClusterConfig {
            id: [1; 16],
            name: "sim".to_string(),
            partitions: 1,
            groups: None,
            replicas: 1,
            durability: ClusterDurability::Fsync,
            replace_after: 60,
            memory_return: 30,
        };
        apply(&mut group, GroupCommand::Create { config, adopted: None });
        catalog(
            &mut group,
            Command::CreateDatabase {
                name: DATABASE.to_string(),
                collation: Collation::DEFAULT,
                comment: String::new(),
            },
        );
        let fields = columns(&[("id", DataType::BIGINT, false), ("code", DataType::BIGINT, true)]);
        let mut base = table("t", fields, vec![index(1, "code", IndexKind::Unique, &[1])]);
        (base.id, base.indexes[1].entry_table) = (TableId(1), Some(TableId(2)));
        let mut entries = table("e", columns(&[("id", DataType::BIGINT, false)]), Vec::new());
        (entries.id, entries.entry_of) = (TableId(2), Some((TableId(1), base.indexes[1].id)));
        catalog(&mut group, Command::CreateTables { tables: vec![Arc::new(base), Arc::new(entries)] });
        let placed = group.catalog.partition_tables();
        (group, placed)
    }

    #[test]
    fn what_is_left_is_named() {
        let judge = |group: &Group, placed: &Placed| check(group, &BTreeMap::from([((Site(1), 0), placed.clone())]));
        let (group, placed) = whole();
        assert_eq!(judge(&group, &placed), Ok(()));
        let bad = |group: &Group, placed: &Placed, what: &str| {
            let verdict = judge(group, placed).unwrap_err();
            assert!(verdict.contains(what), "{verdict}");
        };
        let mut more = group.clone();
        let (tables, what) = (vec![TableId(1)], "DROP".to_string());
        let intent = Intent { owner: ProcessId(1), tables, reads: vec![], what, open: Open::No, under: None };
        more.intents.insert(1, intent);
        bad(&more, &placed, "intent 1");
        let mut more = group.clone();
        catalog(&mut more, Command::StartJob { what: "ALTER".to_string(), table: TableId(1), builds: 1 });
        bad(&more, &placed, "a job is left");
        let mut more = group.clone();
        more.counters.insert(TableId(9), 5);
        bad(&more, &placed, "counter of table 9");
        let mut fewer = group.clone();
        catalog(&mut fewer, Command::DropTables { tables: vec![TableId(2)] });
        bad(&fewer, &placed, "index tables");
        let mut other = placed.clone();
        other.remove(&TableId(2));
        bad(&group, &other, "has tables {1}");
        let mut other = placed.clone();
        let mut renamed = (*other[&TableId(1)]).clone();
        renamed.name = "u".to_string();
        other.insert(TableId(1), Arc::new(renamed));
        bad(&group, &other, "another definition");
    }
}
