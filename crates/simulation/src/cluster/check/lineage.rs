//! Promise: *rows stay in the table that they were written to*, whatever becomes of its name and form: what was acknowledged is there (once, and both rows of a pair alike) for as long as the table, or what it
//! was made into, is; and in no other. A table that is emptied is another one afterwards.
use super::Verdict;
use super::definitions::Change;
use crate::cluster::workload::schemas::record::{Effect, Look, Pair, Schemas};
use rauk_types::TableId;
use std::collections::BTreeMap;

/// What each table was at first: tables that were made out of each other have one root.
fn roots(changes: &[Change]) -> BTreeMap<TableId, TableId> {
    let mut roots = BTreeMap::new();
    for change in changes {
        let Some(after) = change.after else { continue };
        let root = match (&change.effect, change.before) {
            (Effect::Alter { .. } | Effect::Rename { .. } | Effect::Rewrite { .. }, Some(before)) => {
                roots.get(&before).copied().unwrap_or(before)
            }
            _ => after,
        };
        roots.insert(after, root);
    }
    roots
}

/// What is in each table: ids and values.
pub type Contents = BTreeMap<TableId, BTreeMap<i64, i64>>;

pub fn check(record: &Schemas, changes: &[Change], contents: &Contents) -> Verdict {
    let roots = roots(changes);
    let root = |table: TableId| roots.get(&table).copied().ok_or(format!("table {} was never made", table.0));
    for look in &record.looks {
        let pair = &record.pairs[&look.pair];
        check_look(look, pair, root(look.table)? == root(pair.table)?)?;
    }
    let mut left: BTreeMap<TableId, BTreeMap<i64, i64>> = BTreeMap::new();
    for (table, rows) in contents {
        if left.insert(root(*table)?, rows.clone()).is_some() {
            return Err(format!("two tables come out of table {}", root(*table)?.0));
        }
    }
    for (number, pair) in &record.pairs {
        let Some(rows) = left.get_mut(&root(pair.table)?) else { continue };
        let found = [rows.remove(&(number * 2)), rows.remove(&(number * 2 + 1))];
        let may = |value: Option<i64>| found == [value; 2];
        if !may(pair.value) && !pair.maybe.is_some_and(may) {
            return Err(format!("pair {number} is {found:?}, and was left as {pair:?}"));
        }
    }
    match left.iter().find(|(_, rows)| !rows.is_empty()) {
        Some((table, rows)) => Err(format!("the table that began as {} has rows of others: {rows:?}", table.0)),
        None => Ok(()),
    }
}

fn check_look(look: &Look, pair: &Pair, same: bool) -> Verdict {
    let expected = look.expected.filter(|_| same);
    match look.found == [expected; 2] {
        true => Ok(()),
        false => Err(format!("{look:?} of {pair:?}, which was {} there", if same { "put" } else { "never put" })),
    }
}

#[cfg(test)]
mod tests {
    use super::super::definitions::tests::change;
    use super::*;

    fn name() -> String {
        String::new()
    }

    /// 1 was rewritten as 2; 3 was emptied and is 4.
    fn history() -> Vec<Change> {
        vec![
            change(1, Effect::Create { name: name() }, None, Some(1)),
            change(2, Effect::Create { name: name() }, None, Some(3)),
            change(3, Effect::Rewrite { name: name() }, Some(1), Some(2)),
            change(4, Effect::Truncate { name: name() }, Some(3), Some(4)),
            change(5, Effect::Rename { from: name(), to: name() }, Some(2), Some(2)),
        ]
    }

    fn pair(table: u32, value: Option<i64>, maybe: Option<Option<i64>>) -> Pair {
        Pair { table: TableId(table), value, maybe }
    }

    fn judge(pairs: &[Pair], looks: &[Look], contents: &[(u32, &[(i64, i64)])]) -> Verdict {
        let record =
            Schemas { pairs: (1..).zip(pairs.iter().cloned()).collect(), looks: looks.to_vec(), ..Schemas::default() };
        let contents = contents.iter().map(|(table, rows)| (TableId(*table), rows.iter().copied().collect()));
        check(&record, &history(), &contents.collect())
    }

    #[test]
    fn rows_follow_their_table() {
        let both: &[(i64, i64)] = &[(2, 7), (3, 7)];
        assert_eq!(judge(&[pair(1, Some(7), None)], &[], &[(2, both), (4, &[])]), Ok(()));
        assert_eq!(judge(&[pair(3, Some(7), None)], &[], &[(2, &[]), (4, &[])]), Ok(()));
        assert_eq!(judge(&[pair(1, None, Some(Some(7)))], &[], &[(2, both)]), Ok(()));
        assert_eq!(judge(&[pair(1, None, Some(Some(7)))], &[], &[(2, &[])]), Ok(()));
        // It was dropped.
        assert_eq!(judge(&[pair(1, Some(7), None)], &[], &[]), Ok(()));
        let look = |table, found| Look { pair: 1, table: TableId(table), found, expected: Some(7) };
        let seen = [look(1, [Some(7); 2]), look(2, [Some(7); 2]), look(4, [None; 2])];
        assert_eq!(judge(&[pair(1, Some(7), None)], &seen, &[]), Ok(()));
    }

    #[test]
    fn rows_that_are_lost_or_elsewhere_are_found() {
        let both: &[(i64, i64)] = &[(2, 7), (3, 7)];
        let one: &[(i64, i64)] = &[(2, 7)];
        assert!(judge(&[pair(1, Some(7), None)], &[], &[(2, &[])]).unwrap_err().contains("was left as"));
        assert!(judge(&[pair(1, Some(7), None)], &[], &[(2, one)]).is_err());
        assert!(judge(&[pair(1, None, Some(Some(7)))], &[], &[(2, one)]).is_err());
        assert!(judge(&[pair(1, Some(8), None)], &[], &[(2, both)]).is_err());
        assert!(judge(&[pair(3, Some(7), None)], &[], &[(4, both)]).unwrap_err().contains("rows of others"));
        let look = |table, found| Look { pair: 1, table: TableId(table), found, expected: Some(7) };
        for bad in [look(1, [None; 2]), look(2, [Some(7), None]), look(4, [Some(7); 2]), look(2, [Some(6); 2])] {
            assert!(judge(&[pair(1, Some(7), None)], &[bad], &[]).is_err());
        }
        assert!(judge(&[pair(9, Some(7), None)], &[], &[]).unwrap_err().contains("never made"));
    }
}
