use super::*;
use crate::check::{exhaust, hunt};
use std::collections::BTreeSet;

fn model(second: Second, size: Size) -> GroupEntry {
    GroupEntry { second, size, mutation: None }
}

#[test]
fn every_state_is_safe() {
    let mut never: Option<BTreeSet<&str>> = None;
    for (second, size) in sizes(false) {
        let seen = exhaust(model(second, size), 1);
        seen.assert_safe();
        let missed: BTreeSet<_> = seen.never.into_iter().collect();
        never = Some(never.map_or(missed.clone(), |before| &before & &missed));
    }
    assert_eq!(never, Some(BTreeSet::new()), "seen at none of the sizes");
}

/// Each safeguard, switched off, breaks what it guards.
#[test]
fn every_mutation_is_found() {
    use Mutation::*;
    use Second::*;
    let alone = Size { nodes: 1, crashes: 0, views: 0, kills: 0, snapshot: true, locks_pass_early: true };
    let two = Size { nodes: 2, ..alone };
    for (mutation, property, second, size) in [
        (AbortsCommitting, ENTIRE, Nothing, Size { kills: 1, ..alone }),
        (AbortsCommitting, TRUE, Nothing, Size { kills: 1, ..alone }),
        (ViewNotChecked, ENTIRE, Nothing, Size { views: 1, ..alone }),
        (ViewNotChecked, LOCKED, Nothing, Size { views: 1, ..alone }),
        (ServesUnopened, NEWEST, Nothing, Size { views: 1, ..two }),
        (TimeBeforeAppend, REPEATABLE, Nothing, alone),
        (TimeBeforeAppend, WHOLE, Nothing, alone),
        (LookThenRaise, REPEATABLE, Nothing, alone),
        (PositionBeforeRaise, REPEATABLE, Nothing, two),
        (PositionBeforeRaise, WHOLE, Nothing, two),
        (AcknowledgedBeforeAdopted, NEWEST, Nothing, two),
        (AcknowledgedBeforeAdopted, WHOLE, Nothing, two),
        (ShownAtAppend, KEPT, Nothing, Size { crashes: 1, views: 1, ..two }),
        (JoinsWithoutTheNewest, KEPT, Nothing, Size { crashes: 2, views: 2, ..two }),
        (ObservedNotAwaited, CAUSAL, Elsewhere, Size { crashes: 1, views: 1, ..two }),
        (ForgottenByNumber, TRUE, Nothing, alone),
    ] {
        let seen = hunt(GroupEntry { mutation: Some(mutation), ..model(second, size) }, property);
        assert!(!seen.trace(property).is_empty(), "{mutation:?}");
    }
}
