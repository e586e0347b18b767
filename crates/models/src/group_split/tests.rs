use super::*;
use crate::check::{exhaust, hunt, stuck};
use std::collections::BTreeSet;

#[test]
fn every_state_is_safe() {
    let mut never: Option<BTreeSet<&str>> = None;
    for (form, size) in sizes(false) {
        let seen = exhaust(GroupSplit { form, size, mutation: None }, 1);
        seen.assert_safe();
        let missed: BTreeSet<_> = seen.never.into_iter().collect();
        never = Some(never.map_or(missed.clone(), |before| &before & &missed));
    }
    assert_eq!(never, Some(BTreeSet::new()), "seen at none of the sizes");
}

#[test]
fn groups_come_to_rest() {
    for (form, size) in sizes(false) {
        let (states, found) = stuck(&GroupSplit { form, size: Size { snapshot: false, ..size }, mutation: None });
        assert_eq!(found, None, "{form:?} {size:?}, {states} states");
    }
}

/// Each safeguard, switched off, breaks what it guards.
#[test]
fn every_mutation_is_found() {
    use Form::*;
    use Mutation::*;
    let calm = Size { crashes: 0, removals: 0, snapshot: false, elsewhere: false };
    let crash = Size { crashes: 1, ..calm };
    let reads = Size { snapshot: true, ..calm };
    for (mutation, property, form, size) in [
        (EndsWhilePrepared, ENTIRE, Split, Size { elsewhere: true, ..calm }),
        (EndsWhilePrepared, ENTIRE, Merge, calm),
        (LocksInherited, KEPT, Split, calm),
        (LocksOfTwoVersions, KEPT, Split, calm),
        (WritesPastTheEnd, KEPT, Split, calm),
        (ReadsPastTheEnd, NEWEST, Split, calm),
        (ReadsPastTheEnd, REPEATABLE, Split, reads),
        (EndNotStable, KEPT, Split, calm),
        (MergesUnequalSets, KEPT, Merge, Size { removals: 1, ..crash }),
        (MaxReadNotHandedOn, REPEATABLE, Split, reads),
        (FinishedNotInherited, ORDERED, Split, Size { elsewhere: true, ..calm }),
        (OutcomesNotInherited, TRUE, Split, calm),
    ] {
        let seen = hunt(GroupSplit { form, size, mutation: Some(mutation) }, property);
        assert!(seen.broken.iter().any(|(name, _)| *name == property), "{mutation:?} {form:?}: {property}");
    }
}
