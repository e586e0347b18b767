//! Promise: *a statement that changes definitions is done, or not, as was answered, and wholly.* What was acknowledged happened between the call and the answer, what was refused has not, what nobody
//! knows of happened once or never; nothing happens that nobody asked for; and no statement takes longer than its wait for the table and [`LONGEST`].
//!
//! The history of the group's catalog is the truth: each step that touches a table of the workload is one [`Change`]. Statements and changes are matched: every acknowledged statement needs
//! a change of its own, every change a statement that was not refused. (If each side alone can be matched wholly, both can together: Mendelsohn and Dulmage.)
use super::Verdict;
use crate::cluster::record::Fate;
use crate::cluster::workload::schemas::PREFIX;
use crate::cluster::workload::schemas::record::{Effect, Shape, Statement};
use crate::node::tables::DATABASE;
use rauk_manage::Catalog;
use rauk_manage::group::Group;
use rauk_types::{TableId, TableSchema};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Beside waiting for its tables, with processes that hang, partitions that nobody leads, and a manage group without a majority.
const LONGEST: Duration = Duration::from_secs(40);

/// What one command of the group did to a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub index: u64,
    pub effect: Effect,
    /// What it made of the definition.
    pub shape: Option<Shape>,
    pub before: Option<TableId>,
    pub after: Option<TableId>,
}

type Tables = BTreeMap<TableId, Arc<TableSchema>>;

fn tables(catalog: &Catalog) -> Tables {
    let own = catalog.tables_of(DATABASE).filter(|table| table.name.starts_with(PREFIX));
    own.map(|table| (table.id, table.clone())).collect()
}

/// All changes in the order in which they happened.
pub fn changes(states: &[Arc<Group>]) -> Result<Vec<Change>, String> {
    let mut changes = Vec::new();
    let Some(first) = states.first() else { return Ok(changes) };
    let (mut before, mut index) = (tables(&first.catalog), first.catalog_index);
    for state in states.iter().filter(|state| state.config.is_some()) {
        if state.catalog_index == index {
            continue;
        }
        index = state.catalog_index;
        let after = tables(&state.catalog);
        changes.extend(change(state.index, &before, &after)?);
        before = after;
    }
    Ok(changes)
}

fn change(index: u64, before: &Tables, after: &Tables) -> Result<Option<Change>, String> {
    let gone: Vec<_> = before.values().filter(|table| !after.contains_key(&table.id)).collect();
    let new: Vec<_> = after.values().filter(|table| !before.contains_key(&table.id)).collect();
    let other: Vec<_> = after.values().filter_map(|table| Some((before.get(&table.id)?, table))).collect();
    let other: Vec<_> = other.into_iter().filter(|(old, new)| old != new).collect();
    let named = |table: &TableSchema| table.name.clone();
    let made = |table: &TableSchema| Some(Shape::of(table));
    let (effect, shape, before, after) = match (&gone[..], &new[..], &other[..]) {
        ([], [], []) => return Ok(None),
        ([], [new], []) => (Effect::Create { name: named(new) }, made(new), None, Some(new.id)),
        ([old], [], []) => (Effect::Drop { name: named(old) }, None, Some(old.id), None),
        ([old], [new], []) if old.name == new.name && Shape::of(old) == Shape::of(new) => {
            (Effect::Truncate { name: named(new) }, None, Some(old.id), Some(new.id))
        }
        ([old], [new], []) if old.name == new.name && old.comment != new.comment => {
            (Effect::Rewrite { name: named(new) }, made(new), Some(old.id), Some(new.id))
        }
        // To its own name too, which is another version.
        ([], [], [(old, new)]) if Shape::of(old) == Shape::of(new) => {
            let (from, to) = (named(old), named(new));
            (Effect::Rename { from, to }, None, Some(old.id), Some(new.id))
        }
        ([], [], [(old, new)]) if old.name == new.name && old.comment != new.comment => {
            (Effect::Alter { name: named(new) }, made(new), Some(old.id), Some(new.id))
        }
        _ => {
            let short = |table: &TableSchema| (table.id, table.version, table.name.clone(), Shape::of(table));
            let gone: Vec<_> = gone.into_iter().map(|table| short(table)).collect();
            let new: Vec<_> = new.into_iter().map(|table| short(table)).collect();
            let other: Vec<_> = other.into_iter().map(|(old, new)| (short(old), short(new))).collect();
            return Err(format!("command {index} is no whole statement: gone {gone:?}, new {new:?}, other {other:?}"));
        }
    };
    Ok(Some(Change { index, effect, shape, before, after }))
}

fn may_be(statement: &Statement, change: &Change) -> bool {
    let ended = statement.answered.filter(|_| statement.fate == Fate::Committed);
    statement.effect == change.effect
        && statement.shape == change.shape
        && statement.called < change.index
        && ended.is_none_or(|ended| change.index <= ended)
}

pub fn check(statements: &[Statement], changes: &[Change]) -> Verdict {
    for statement in statements {
        if statement.lasted.is_some_and(|lasted| lasted > statement.wait + LONGEST) {
            return Err(format!("a statement took too long: {statement:?}"));
        }
    }
    let asked: Vec<&Statement> = statements.iter().filter(|statement| statement.fate != Fate::Aborted).collect();
    let candidates = |change: &Change| {
        let able = asked.iter().enumerate().filter(|(_, statement)| may_be(statement, change));
        able.map(|(at, _)| at).collect::<Vec<usize>>()
    };
    if let Some(at) = unmatched(&changes.iter().map(candidates).collect::<Vec<_>>()) {
        let alike = statements.iter().filter(|statement| statement.effect == changes[at].effect).collect::<Vec<_>>();
        return Err(format!("nobody asked for {:?}, or it was refused: {alike:#?}", changes[at]));
    }
    let acknowledged: Vec<&Statement> = asked.iter().copied().filter(|s| s.fate == Fate::Committed).collect();
    let done = |statement: &&Statement| {
        let able = changes.iter().enumerate().filter(|(_, change)| may_be(statement, change));
        able.map(|(at, _)| at).collect::<Vec<usize>>()
    };
    match unmatched(&acknowledged.iter().map(done).collect::<Vec<_>>()) {
        Some(at) => Err(format!("{:?} was acknowledged and has not happened", acknowledged[at])),
        None => Ok(()),
    }
}

/// Gives each a candidate of its own, by augmenting paths; the first for which that cannot be.
fn unmatched(candidates: &[Vec<usize>]) -> Option<usize> {
    fn give(at: usize, candidates: &[Vec<usize>], taken: &mut BTreeMap<usize, usize>, tried: &mut Vec<usize>) -> bool {
        for &candidate in &candidates[at] {
            if tried.contains(&candidate) {
                continue;
            }
            tried.push(candidate);
            let holder = taken.get(&candidate).copied();
            if holder.is_none_or(|holder| give(holder, candidates, taken, tried)) {
                taken.insert(candidate, at);
                return true;
            }
        }
        false
    }
    let mut taken = BTreeMap::new();
    (0..candidates.len()).find(|&at| !give(at, candidates, &mut taken, &mut Vec::new()))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    fn name(name: &str) -> String {
        format!("{PREFIX}{name}")
    }

    pub fn statement(effect: Effect, called: u64, answered: u64, fate: Fate) -> Statement {
        let answered = (fate != Fate::Unknown).then_some(answered);
        let (wait, answer) = (Duration::ZERO, String::new());
        Statement { effect, shape: None, called, answered, fate, wait, lasted: Some(Duration::ZERO), answer }
    }

    pub fn change(index: u64, effect: Effect, before: Option<u32>, after: Option<u32>) -> Change {
        Change { index, effect, shape: None, before: before.map(TableId), after: after.map(TableId) }
    }

    fn drop_of(table: &str) -> Effect {
        Effect::Drop { name: name(table) }
    }

    #[test]
    fn answers_that_agree_with_the_catalog_pass() {
        let dropped = |index| change(index, drop_of("a"), Some(1), None);
        let said = |called, answered, fate| statement(drop_of("a"), called, answered, fate);
        assert_eq!(check(&[], &[]), Ok(()));
        assert_eq!(check(&[said(1, 9, Fate::Committed)], &[dropped(5)]), Ok(()));
        assert_eq!(check(&[said(1, 9, Fate::Aborted)], &[]), Ok(()));
        assert_eq!(check(&[said(1, 0, Fate::Unknown)], &[]), Ok(()));
        assert_eq!(check(&[said(1, 0, Fate::Unknown)], &[dropped(50)]), Ok(()));
        // The first could be either; the second can only be the earlier.
        let both = [said(1, 20, Fate::Committed), said(1, 8, Fate::Committed)];
        assert_eq!(check(&both, &[dropped(5), dropped(15)]), Ok(()));
    }

    #[test]
    fn what_was_not_answered_so_is_found() {
        let dropped = |index| change(index, drop_of("a"), Some(1), None);
        let said = |called, answered, fate| statement(drop_of("a"), called, answered, fate);
        let bad = |statements: &[Statement], changes: &[Change], what: &str| {
            let verdict = check(statements, changes).unwrap_err();
            assert!(verdict.contains(what), "{verdict}");
        };
        bad(&[said(1, 9, Fate::Committed)], &[], "has not happened");
        bad(&[said(1, 9, Fate::Committed)], &[dropped(10)], "nobody asked");
        bad(&[said(5, 9, Fate::Committed)], &[dropped(5)], "nobody asked");
        bad(&[said(1, 9, Fate::Aborted)], &[dropped(5)], "refused");
        bad(&[said(1, 9, Fate::Unknown)], &[dropped(5), dropped(6)], "nobody asked");
        let twice = [said(1, 9, Fate::Committed), said(2, 9, Fate::Committed)];
        bad(&twice, &[dropped(5)], "has not happened");
        bad(&[statement(drop_of("b"), 1, 9, Fate::Committed)], &[dropped(5)], "nobody asked");
        let mut slow = said(1, 9, Fate::Committed);
        slow.lasted = Some(LONGEST * 2);
        bad(&[slow], &[dropped(5)], "too long");
    }

    #[test]
    fn each_kind_of_change_is_known_and_halves_are_refused() {
        let table = |id: u32, called: &str, comment: &str| {
            let mut schema = crate::node::tables::table(&name(called), Vec::new(), Vec::new());
            schema.indexes.clear();
            (schema.id, schema.comment) = (TableId(id), comment.to_string());
            Arc::new(schema)
        };
        let step = |before: &[Arc<TableSchema>], after: &[Arc<TableSchema>]| {
            let map = |tables: &[Arc<TableSchema>]| tables.iter().map(|t| (t.id, t.clone())).collect::<Tables>();
            super::change(7, &map(before), &map(after)).map(|change| change.map(|change| change.effect))
        };
        let (a, b) = (table(1, "a", "x"), table(2, "b", "y"));
        let (only_a, only_b) = ([a.clone()], [b.clone()]);
        assert_eq!(step(&[], &[]), Ok(None));
        assert_eq!(step(&[], &only_a), Ok(Some(Effect::Create { name: name("a") })));
        assert_eq!(step(&[a.clone(), b.clone()], &only_b), Ok(Some(drop_of("a"))));
        assert_eq!(step(&only_a, &[table(3, "a", "x")]), Ok(Some(Effect::Truncate { name: name("a") })));
        assert_eq!(step(&only_a, &[table(3, "a", "z")]), Ok(Some(Effect::Rewrite { name: name("a") })));
        assert_eq!(step(&only_a, &[table(1, "a", "z")]), Ok(Some(Effect::Alter { name: name("a") })));
        let renamed = Effect::Rename { from: name("a"), to: name("c") };
        assert_eq!(step(&only_a, &[table(1, "c", "x")]), Ok(Some(renamed)));
        let mut again = (*a).clone();
        again.version += 1;
        let renamed = Effect::Rename { from: name("a"), to: name("a") };
        assert_eq!(step(&only_a, &[Arc::new(again)]), Ok(Some(renamed)));
        assert!(step(&only_a, &[table(1, "c", "z")]).is_err());
        assert!(step(&[a, b], &[]).is_err());
        assert!(step(&only_a, &only_b).is_err());
    }
}
