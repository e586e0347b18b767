//! The checker of list-append histories (as Elle does it): lists show the order of all writes, so every anomaly shows as a contradiction.
//!
//! Given the lists' present contents:
//! - an acknowledged transaction's appends are all there, once, in its order and side by side; one of unknown fate has all or none; an aborted one has none;
//! - every answered read is what the list began with, up to own appends behind it: nothing that was read was taken back, was dirty or intermediate;
//! - a transaction that began after another was acknowledged sees it;
//! - with the order of appends (ww), who read whose append (wr), and whose read was overtaken by whom (rw), there is no cycle of ww and wr at any isolation (G1c),
//!   none with rw of SERIALIZABLE readers (G2), and none with a single rw of a REPEATABLE READ reader (G-single).
use super::history::{Element, Fate, History, Key, Op, TxnLog};
use rauk_node::Isolation;
use std::collections::BTreeMap;

type Lists = BTreeMap<Key, Vec<Element>>;

/// Judges the history against the lists as they are; then they become its new beginning. `Err` says what is wrong.
pub fn check(history: &mut History, lists: &Lists) -> Result<(), String> {
    let empty = Vec::new();
    let list = |key: &Key| lists.get(key).unwrap_or(&empty);
    for (key, base) in &history.base {
        if !list(key).starts_with(base) {
            return Err(format!("list {key} was {base:?} and is {:?}", list(key)));
        }
    }
    let writers = writers(history);
    let mut positions: BTreeMap<Element, usize> = BTreeMap::new();
    for (key, elements) in lists {
        for (at, element) in elements.iter().enumerate() {
            if positions.insert(*element, at).is_some() {
                return Err(format!("element {element} of list {key} is there twice"));
            }
            let from_base = history.base.get(key).is_some_and(|base| at < base.len());
            match writers.get(element) {
                _ if from_base => {}
                Some((txn, on)) if on == key && history.txns[*txn].fate != Fate::Aborted => {}
                Some((txn, _)) => {
                    return Err(format!("list {key} has element {element} of {:?}", history.txns[*txn]));
                }
                None => return Err(format!("list {key} has element {element}, which nobody appended")),
            }
        }
    }
    settle(history, &positions)?;
    for txn in &history.txns {
        check_appends(txn, lists)?;
        check_reads(txn, &list)?;
    }
    check_recency(history, &positions, &list)?;
    Graph::new(history, lists, &writers).check(history)?;
    history.base = lists.clone();
    history.txns.clear();
    Ok(())
}

fn writers(history: &History) -> BTreeMap<Element, (usize, Key)> {
    let of = |(i, txn): (usize, &TxnLog)| {
        let appends = txn.ops.iter().filter_map(move |op| match op {
            Op::Append(key, element) => Some((*element, (i, *key))),
            Op::Read { .. } => None,
        });
        appends.collect::<Vec<_>>()
    };
    history.txns.iter().enumerate().flat_map(of).collect()
}

/// All or none of each transaction's appends are there; unknown fates become known.
fn settle(history: &mut History, positions: &BTreeMap<Element, usize>) -> Result<(), String> {
    for txn in &mut history.txns {
        let appends = txn.ops.iter().filter_map(|op| match op {
            Op::Append(_, element) => Some(positions.contains_key(element)),
            Op::Read { .. } => None,
        });
        let (there, missing) = appends.fold((0, 0), |(t, m), is| if is { (t + 1, m) } else { (t, m + 1) });
        match txn.fate {
            Fate::Committed if missing > 0 => return Err(format!("acknowledged, but lost {missing} appends: {txn:?}")),
            Fate::Unknown if there > 0 && missing > 0 => return Err(format!("half there: {txn:?}")),
            Fate::Unknown => txn.fate = if there > 0 { Fate::Committed } else { Fate::Aborted },
            Fate::Committed | Fate::Aborted => {}
        }
    }
    Ok(())
}

fn appends_to(txn: &TxnLog, key: Key) -> Vec<Element> {
    let of_key = |op: &Op| match op {
        Op::Append(on, element) if *on == key => Some(*element),
        _ => None,
    };
    txn.ops.iter().filter_map(of_key).collect()
}

/// Appends of one transaction to one list stand side by side: the row was locked.
fn check_appends(txn: &TxnLog, lists: &Lists) -> Result<(), String> {
    if txn.fate != Fate::Committed {
        return Ok(());
    }
    for (key, list) in lists {
        let own = appends_to(txn, *key);
        if !own.is_empty() && !list.windows(own.len()).any(|part| part == own) {
            return Err(format!("list {key} is {list:?}, and the appends are not side by side in it: {txn:?}"));
        }
    }
    Ok(())
}

fn check_reads<'a>(txn: &TxnLog, list: &impl Fn(&Key) -> &'a Vec<Element>) -> Result<(), String> {
    for (at, op) in txn.ops.iter().enumerate() {
        let Op::Read { key, list: read, answered: true } = op else { continue };
        let before = TxnLog { ops: txn.ops[..at].to_vec(), ..txn.clone() };
        let own = appends_to(&before, *key);
        let Some(others) = read.strip_suffix(&own[..]) else {
            return Err(format!("read {at} does not end with own appends {own:?}: {txn:?}"));
        };
        if !list(key).starts_with(others) {
            return Err(format!("read {at} saw {read:?}, and list {key} is {:?}: {txn:?}", list(key)));
        }
    }
    Ok(())
}

/// What was acknowledged before a transaction began is in what it reads.
fn check_recency<'a>(
    history: &History,
    positions: &BTreeMap<Element, usize>,
    list: &impl Fn(&Key) -> &'a Vec<Element>,
) -> Result<(), String> {
    // For each list: (event of the acknowledgement, length that the list must have had by then).
    let mut floors: BTreeMap<Key, Vec<(u64, usize)>> = BTreeMap::new();
    for txn in &history.txns {
        let Some(acknowledged) = txn.acknowledged else { continue };
        for op in &txn.ops {
            if let Op::Append(key, element) = op {
                floors.entry(*key).or_default().push((acknowledged, positions[element] + 1));
            }
        }
    }
    for txn in &history.txns {
        for op in &txn.ops {
            let Op::Read { key, list: read, answered: true } = op else { continue };
            let base = history.base.get(key).map_or(0, Vec::len);
            let acknowledged = floors.get(key).into_iter().flatten().filter(|(event, _)| *event < txn.began);
            let floor = acknowledged.map(|(_, length)| *length).max().unwrap_or(0).max(base);
            if read.len() < floor || !read.starts_with(&list(key)[..floor]) {
                let what = format!("list {key} had at least {:?}", &list(key)[..floor]);
                return Err(format!("{what} when this began, which saw less: {txn:?}"));
            }
        }
    }
    Ok(())
}

/// Who came before whom, among committed transactions.
struct Graph {
    /// ww and wr edges, which exist at every isolation.
    order: Vec<Vec<usize>>,
    /// rw edges: from a reader to who appended next.
    overtaken: Vec<Vec<usize>>,
}

impl Graph {
    fn new(history: &History, lists: &Lists, writers: &BTreeMap<Element, (usize, Key)>) -> Graph {
        let count = history.txns.len();
        let mut graph = Graph { order: vec![Vec::new(); count], overtaken: vec![Vec::new(); count] };
        let writer = |element: &Element| writers.get(element).map(|(txn, _)| *txn);
        for list in lists.values() {
            for pair in list.windows(2) {
                if let (Some(a), Some(b)) = (writer(&pair[0]), writer(&pair[1]))
                    && a != b
                {
                    graph.order[a].push(b);
                }
            }
        }
        for (reader, txn) in history.txns.iter().enumerate().filter(|(_, txn)| txn.fate == Fate::Committed) {
            for op in &txn.ops {
                let Op::Read { key, list: read, .. } = op else { continue };
                let others: Vec<_> = read.iter().filter(|e| writer(e) != Some(reader)).collect();
                if let Some(from) = others.last().and_then(|e| writer(e)) {
                    graph.order[from].push(reader);
                }
                let next = lists.get(key).and_then(|list| list.get(others.len()));
                if let Some(next) = next.and_then(writer).filter(|&next| next != reader) {
                    graph.overtaken[reader].push(next);
                }
            }
        }
        graph
    }

    fn check(&self, history: &History) -> Result<(), String> {
        let serializable = |reader: usize| history.txns[reader].isolation == Isolation::Serializable;
        if let Some(cycle) = find_cycle(self.order.len(), |txn| self.order[txn].clone()) {
            return Err(format!("G1c: {}", describe(&cycle, history)));
        }
        let with_serializable = |txn: usize| {
            let rw = if serializable(txn) { &self.overtaken[txn][..] } else { &[] };
            [&self.order[txn][..], rw].concat()
        };
        if let Some(cycle) = find_cycle(self.order.len(), with_serializable) {
            return Err(format!("G2 of SERIALIZABLE: {}", describe(&cycle, history)));
        }
        for (reader, txn) in history.txns.iter().enumerate() {
            if txn.isolation != Isolation::RepeatableRead || !txn.snapshot_isolation {
                continue;
            }
            for &next in &self.overtaken[reader] {
                if self.reaches(next, reader) {
                    return Err(format!("G-single of REPEATABLE READ: {}", describe(&[reader, next], history)));
                }
            }
        }
        Ok(())
    }

    /// Whether `to` comes after `from` by ww and wr.
    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = vec![false; self.order.len()];
        let mut stack = vec![from];
        while let Some(txn) = stack.pop() {
            if txn == to {
                return true;
            }
            if !std::mem::replace(&mut seen[txn], true) {
                stack.extend(&self.order[txn]);
            }
        }
        false
    }
}

fn describe(cycle: &[usize], history: &History) -> String {
    cycle.iter().map(|&txn| format!("\n  {:?}", history.txns[txn])).collect()
}

/// The transactions of some cycle.
fn find_cycle(count: usize, edges: impl Fn(usize) -> Vec<usize>) -> Option<Vec<usize>> {
    // 0 not seen, 1 on the path, 2 done.
    let mut state = vec![0u8; count];
    for root in 0..count {
        if state[root] != 0 {
            continue;
        }
        let mut path = vec![(root, edges(root))];
        state[root] = 1;
        while let Some((txn, left)) = path.last_mut() {
            let txn = *txn;
            match left.pop() {
                Some(next) if state[next] == 1 => {
                    let from = path.iter().position(|(t, _)| *t == next)?;
                    return Some(path[from..].iter().map(|(t, _)| *t).collect());
                }
                Some(next) if state[next] == 0 => {
                    state[next] = 1;
                    path.push((next, edges(next)));
                }
                Some(_) => {}
                None => {
                    state[txn] = 2;
                    path.pop();
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(key: Key, element: Element) -> Op {
        Op::Append(key, element)
    }

    fn read(key: Key, list: &[Element]) -> Op {
        Op::Read { key, list: list.to_vec(), answered: true }
    }

    /// Transactions in order of their beginning; none acknowledged before another began unless `sequential`.
    fn history(isolation: Isolation, txns: &[(Fate, &[Op])], sequential: bool) -> History {
        let mut history = History::default();
        let begin = |history: &mut History, ops: &[Op]| {
            let txn = history.begin(isolation, true);
            history.txns[txn].ops = ops.to_vec();
            txn
        };
        let end = |history: &mut History, txn: usize, fate| {
            if fate == Fate::Committed {
                history.acknowledge(txn);
            }
            history.txns[txn].fate = fate;
        };
        if sequential {
            for (fate, ops) in txns {
                let txn = begin(&mut history, ops);
                end(&mut history, txn, *fate);
            }
        } else {
            let begun: Vec<_> = txns.iter().map(|(_, ops)| begin(&mut history, ops)).collect();
            begun.iter().zip(txns).for_each(|(txn, (fate, _))| end(&mut history, *txn, *fate));
        }
        history
    }

    fn judge(mut history: History, lists: &[(Key, &[Element])]) -> String {
        let lists = lists.iter().map(|(key, list)| (*key, list.to_vec())).collect();
        check(&mut history, &lists).err().unwrap_or_default()
    }

    use Fate::{Aborted, Committed, Unknown};
    use Isolation::{ReadCommitted, RepeatableRead, Serializable};

    #[test]
    fn sound_histories_pass() {
        let txns: &[(Fate, &[Op])] = &[
            (Committed, &[append(1, 1), append(2, 2), append(1, 3), read(1, &[1, 3])]),
            (Aborted, &[read(1, &[1, 3]), append(1, 4)]),
            (Unknown, &[append(1, 5), append(2, 6)]),
            (Unknown, &[append(1, 7), append(2, 8)]),
            (Committed, &[read(1, &[1, 3, 7]), append(1, 9)]),
        ];
        assert_eq!(judge(history(Serializable, txns, true), &[(1, &[1, 3, 7, 9]), (2, &[2, 8])]), "");
    }

    #[test]
    fn anomalies_are_found() {
        let find = |isolation, txns: &[(Fate, &[Op])], sequential, lists: &[(Key, &[Element])], what: &str| {
            let verdict = judge(history(isolation, txns, sequential), lists);
            assert!(verdict.contains(what), "expected {what}: {verdict}");
        };
        let rc = ReadCommitted;
        find(rc, &[(Committed, &[append(1, 1)])], true, &[(1, &[])], "lost 1 appends");
        find(rc, &[(Unknown, &[append(1, 1), append(2, 2)])], true, &[(1, &[1])], "half there");
        find(rc, &[(Aborted, &[append(1, 1)])], true, &[(1, &[1])], "has element 1 of");
        find(rc, &[(Committed, &[append(1, 1)])], true, &[(1, &[1, 1])], "twice");
        find(rc, &[(Committed, &[])], true, &[(1, &[9])], "nobody appended");
        find(rc, &[(Aborted, &[append(1, 1)]), (Committed, &[read(1, &[1])])], true, &[(1, &[])], "read 0 saw");
        let intermediate: &[(Fate, &[Op])] =
            &[(Committed, &[append(1, 1), append(1, 2)]), (Committed, &[read(1, &[1]), append(1, 3)])];
        find(rc, intermediate, false, &[(1, &[1, 3, 2])], "not side by side");
        find(rc, &[(Committed, &[append(1, 1)]), (Committed, &[read(1, &[])])], true, &[(1, &[1])], "saw less");
        let circular: &[(Fate, &[Op])] =
            &[(Committed, &[append(1, 1), read(2, &[2])]), (Committed, &[append(2, 2), read(1, &[1])])];
        find(rc, circular, false, &[(1, &[1]), (2, &[2])], "G1c");
        let write_skew: &[(Fate, &[Op])] =
            &[(Committed, &[read(2, &[]), append(1, 1)]), (Committed, &[read(1, &[]), append(2, 2)])];
        find(Serializable, write_skew, false, &[(1, &[1]), (2, &[2])], "G2 of SERIALIZABLE");
        assert_eq!(judge(history(RepeatableRead, write_skew, false), &[(1, &[1]), (2, &[2])]), "");
        let read_skew: &[(Fate, &[Op])] =
            &[(Committed, &[append(1, 1), append(2, 2)]), (Committed, &[read(1, &[1]), read(2, &[])])];
        find(RepeatableRead, read_skew, false, &[(1, &[1]), (2, &[2])], "G-single");
        assert_eq!(judge(history(rc, read_skew, false), &[(1, &[1]), (2, &[2])]), "");
    }
}
