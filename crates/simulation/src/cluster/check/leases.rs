//! Promise: *no serving without a lease*: once a newer view of a group has answered anybody, none of an older view
//! does. That is what leases are for, whatever clocks, pauses and cuts do, and it is looked at by the simulation's own
//! clock.
use super::Verdict;
use crate::cluster::record::Served;
use rauk_types::GroupId;
use std::collections::BTreeMap;

/// `served`: every answer that was given, in the order in which they were.
pub fn check(served: &[Served]) -> Verdict {
    let mut newest: BTreeMap<GroupId, &Served> = BTreeMap::new();
    for answer in served {
        let before = newest.entry(answer.group).or_insert(answer);
        if answer.view < before.view {
            return Err(format!("{answer:?} was given after a newer view had answered: {before:?}"));
        }
        *before = answer;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::record::tests::served;

    #[test]
    fn answers_of_the_deposed_are_found() {
        assert_eq!(check(&[served(1, 1, 0, 1), served(2, 1, 1, 5), served(3, 2, 0, 2), served(4, 2, 0, 2)]), Ok(()));
        let late = [served(1, 1, 0, 1), served(3, 2, 0, 2), served(4, 1, 0, 1)];
        assert!(check(&late).unwrap_err().contains("after a newer view"));
    }
}
