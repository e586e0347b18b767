//! Promise: *who has ended holds nothing*. When nothing goes on, no in-sync replica of a partition has locks or unfinished writes of any transaction.
use super::Verdict;
use crate::cluster::network::Site;
use rauk_types::TxnId;
use std::collections::BTreeMap;

/// By node and partition, the transactions that have locks, writes or waits there.
pub fn check(open: &BTreeMap<(Site, u16), Vec<TxnId>>) -> Verdict {
    match open.iter().find(|(_, txns)| !txns.is_empty()) {
        None => Ok(()),
        Some(((site, partition), txns)) => {
            let txns: Vec<String> =
                txns.iter().map(|txn| format!("{} of process {}", txn.0, txn.process().0)).collect();
            Err(format!("{site:?}, partition {partition}: still there: {}", txns.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::ProcessId;

    #[test]
    fn what_is_left_is_found() {
        let txn = TxnId::of_process(ProcessId(3), 7);
        assert_eq!(check(&BTreeMap::from([((Site(1), 0), vec![]), ((Site(2), 0), vec![])])), Ok(()));
        let wrong = check(&BTreeMap::from([((Site(1), 0), vec![]), ((Site(2), 0), vec![txn])]));
        assert!(wrong.is_err_and(|wrong| wrong.contains("of process 3")));
    }
}
