//! Promise: *when nothing goes on, all in-sync replicas of a partition have the same rows*, committed at the same times.
use super::Verdict;
use rauk_node::member::dump::Rows;
use rauk_types::Member;
use std::collections::BTreeMap;

pub fn check(partition: u16, replicas: &BTreeMap<Member, Rows>) -> Verdict {
    let Some((first, rows)) = replicas.first_key_value() else {
        return Err(format!("partition {partition} has no replica"));
    };
    for (member, others) in replicas {
        let differs = others.iter().find(|(key, row)| rows.get(key) != Some(row));
        let missing = rows.iter().find(|(key, _)| !others.contains_key(key));
        if let Some(((table, key), _)) = differs.or(missing) {
            let place = (*table, key.clone());
            return Err(format!(
                "partition {partition}: replicas differ in table {}, key {key:02x?}: {first:?} has {:?}, {member:?} has {:?}",
                table.0,
                rows.get(&place),
                others.get(&place)
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::{NodeId, ProcessId, TableId, Timestamp};

    fn member(node: u16) -> Member {
        Member { node: NodeId(node), process: ProcessId(node.into()) }
    }

    fn dump(rows: &[(u8, u64, u8)]) -> Rows {
        rows.iter().map(|(key, time, row)| ((TableId(1), vec![*key]), (Timestamp(*time), vec![*row]))).collect()
    }

    #[test]
    fn differences_are_found() {
        let judge = |a: &[(u8, u64, u8)], b: &[(u8, u64, u8)]| {
            check(3, &BTreeMap::from([(member(1), dump(a)), (member(2), dump(b))]))
        };
        assert_eq!(judge(&[(1, 5, 1), (2, 6, 1)], &[(1, 5, 1), (2, 6, 1)]), Ok(()));
        assert!(judge(&[(1, 5, 1)], &[(1, 5, 2)]).is_err());
        assert!(judge(&[(1, 5, 1)], &[(1, 6, 1)]).is_err());
        assert!(judge(&[(1, 5, 1), (2, 6, 1)], &[(1, 5, 1)]).is_err());
        assert!(judge(&[(1, 5, 1)], &[(1, 5, 1), (2, 6, 1)]).is_err());
        assert!(check(3, &BTreeMap::new()).is_err());
    }
}
