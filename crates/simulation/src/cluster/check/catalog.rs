//! Promise: *all processes have the same catalog*: whoever has applied the same number of commands has the same state, and tables as SQL sees them follow it everywhere.
use super::Verdict;
use crate::cluster::network::Site;
use rauk_manage::group::Group;
use rauk_types::TableSchema;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Each site's copy of the group, and the tables that its database lists.
pub fn check(sites: &BTreeMap<Site, (Arc<Group>, Vec<Arc<TableSchema>>)>) -> Verdict {
    let Some((first, (group, tables))) = sites.first_key_value() else { return Err("no site is there".to_string()) };
    for (site, (other, listed)) in sites {
        if other.index != group.index {
            return Err(format!("{site:?} is at command {}, {first:?} at {}", other.index, group.index));
        }
        if other.catalog != group.catalog {
            return Err(format!("{site:?} and {first:?} have different catalogs at command {}", group.index));
        }
        if other != group {
            return Err(format!("{site:?} and {first:?} have different states at command {}", group.index));
        }
        check_tables((*first, tables), (*site, listed))?;
    }
    Ok(())
}

fn check_tables(first: (Site, &[Arc<TableSchema>]), other: (Site, &[Arc<TableSchema>])) -> Verdict {
    let names = |tables: &[Arc<TableSchema>]| tables.iter().map(|table| table.name.clone()).collect::<Vec<_>>();
    if names(first.1) != names(other.1) {
        return Err(format!("tables: {:?} has {:?}, {:?} has {:?}", first.0, names(first.1), other.0, names(other.1)));
    }
    match first.1.iter().zip(other.1).find(|(a, b)| a != b) {
        Some((a, b)) => {
            Err(format!("table {}: {:?} has version {}, {:?} {}", a.name, first.0, a.version, other.0, b.version))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::tables::{columns, table};
    use rauk_manage::Command;
    use rauk_manage::group::{
        ClusterConfig, ClusterDurability, DEFAULT_MEMORY_RETURN, DEFAULT_REPLACE_AFTER, GroupCommand,
    };
    use rauk_types::{Collation, DataType};

    fn schema(name: &str, version: u32) -> Arc<TableSchema> {
        let mut schema = table(name, columns(&[("id", DataType::BIGINT, false)]), Vec::new());
        schema.version = version;
        Arc::new(schema)
    }

    #[test]
    fn differences_are_found() {
        let with = |name: &str| {
            let mut group = Group::new();
            let config = ClusterConfig {
                id: [1; 16],
                name: "sim".to_string(),
                partitions: 1,
                groups: None,
                replicas: 1,
                durability: ClusterDurability::Fsync,
                replace_after: DEFAULT_REPLACE_AFTER,
                memory_return: DEFAULT_MEMORY_RETURN,
            };
            group.apply(1, &GroupCommand::Create { config, adopted: None });
            let command = Command::CreateDatabase {
                name: name.to_string(),
                collation: Collation::DEFAULT,
                comment: String::new(),
            };
            group.apply(2, &GroupCommand::Catalog { command, intent: None });
            Arc::new(group)
        };
        let judge = |a: (Arc<Group>, Vec<Arc<TableSchema>>), b: (Arc<Group>, Vec<Arc<TableSchema>>)| {
            check(&BTreeMap::from([(Site(1), a), (Site(2), b)]))
        };
        let tables = vec![schema("a", 1)];
        assert_eq!(judge((with("x"), tables.clone()), (with("x"), tables.clone())), Ok(()));
        assert!(judge((with("x"), tables.clone()), (with("y"), tables.clone())).unwrap_err().contains("catalogs"));
        let behind = judge((with("x"), tables.clone()), (Arc::new(Group::new()), tables.clone()));
        assert!(behind.unwrap_err().contains("at command 0"));
        assert!(judge((with("x"), tables.clone()), (with("x"), Vec::new())).unwrap_err().contains("tables"));
        let changed = judge((with("x"), tables.clone()), (with("x"), vec![schema("a", 2)]));
        assert!(changed.unwrap_err().contains("version"));
    }
}
