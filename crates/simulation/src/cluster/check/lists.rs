//! Promise: *isolation over the whole cluster*: SERIALIZABLE transactions have an order, REPEATABLE READ ones a snapshot, and nobody sees what was rolled back.
//!
//! The judge is the one of a single node ([`crate::node::list_check`]: lists show the order of all writes, so anomalies show as cycles of the dependency graph). Here clients work on all
//! nodes and their events are in one order, and every node must read the same lists when nothing goes on.
use super::Verdict;
use crate::cluster::network::Site;
use crate::node::history::{Element, History, Key};
use crate::node::list_check;
use std::collections::BTreeMap;

pub type Lists = BTreeMap<Key, Vec<Element>>;

/// `read`: all lists as each node reads them. The history begins anew with them.
pub fn check(history: &mut History, read: &BTreeMap<Site, Lists>) -> Verdict {
    let Some((first, lists)) = read.first_key_value() else { return Err("nobody read the lists".to_string()) };
    for (site, others) in read {
        if let Some((key, list)) = others.iter().find(|(key, list)| lists.get(key) != Some(list)) {
            let there = lists.get(key);
            return Err(format!("list {key} is {list:?} as {site:?} reads it, and {there:?} as {first:?} does"));
        }
        if others.len() != lists.len() {
            return Err(format!("{site:?} reads {} lists, {first:?} {}", others.len(), lists.len()));
        }
    }
    list_check::check(history, lists)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::history::{Fate, Op};
    use rauk_node::Isolation;

    fn history() -> History {
        let mut history = History::default();
        for (site, list) in [(1, vec![]), (2, vec![7])] {
            let txn = history.begin(Isolation::Serializable, true);
            let element = if site == 1 { 7 } else { 8 };
            history.txns[txn].ops.push(Op::Read { key: 1, list, answered: true });
            history.txns[txn].ops.push(Op::Append(1, element));
            history.acknowledge(txn);
            assert_eq!(history.txns[txn].fate, Fate::Committed);
        }
        history
    }

    fn lists(list: &[Element]) -> Lists {
        Lists::from([(1, list.to_vec())])
    }

    #[test]
    fn nodes_that_differ_and_anomalies_are_found() {
        let both = |a: &[Element], b: &[Element]| BTreeMap::from([(Site(1), lists(a)), (Site(2), lists(b))]);
        assert_eq!(check(&mut history(), &both(&[7, 8], &[7, 8])), Ok(()));
        assert!(check(&mut history(), &both(&[7, 8], &[7])).unwrap_err().contains("as Site(2) reads it"));
        assert!(check(&mut history(), &both(&[7], &[7])).unwrap_err().contains("lost"));
        assert!(check(&mut history(), &both(&[8, 7], &[8, 7])).is_err());
        assert!(check(&mut history(), &BTreeMap::new()).is_err());
        let mut fewer = both(&[7, 8], &[7, 8]);
        fewer.get_mut(&Site(2)).unwrap().clear();
        assert!(check(&mut history(), &fewer).is_err());
    }
}
