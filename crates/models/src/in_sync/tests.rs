use super::*;
use crate::check::{exhaust, hunt};

#[test]
fn every_state_is_safe() {
    for size in sizes(false) {
        let seen = exhaust(InSync { size, mutation: None }, 1);
        seen.assert_safe();
        if size.writes == 2 {
            assert!(seen.never.is_empty(), "{size:?}: never {:?}", seen.never);
        }
    }
}

/// Each safeguard, switched off, breaks what it guards.
#[test]
fn every_mutation_is_found() {
    use Mutation::*;
    let size = |crash, crashes, elections, drifts, versions| Size {
        crash,
        crashes,
        elections,
        drifts,
        writes: 1,
        versions,
        doubts: 0,
        drops: 0,
        olds: 0,
        stops: 0,
    };
    let older = |crashes, versions| Size { olds: 1, ..size(Crash::KeepsLog, crashes, 0, 0, versions) };
    let damaged =
        |crashes, doubts, versions| Size { doubts, drops: 1, ..size(Crash::KeepsLog, crashes, 0, 0, versions) };
    let stops = |versions| Size { stops: 1, ..size(Crash::KeepsLog, 0, 0, 0, versions) };
    let found = |mutation, property, size| {
        let seen = hunt(InSync { size, mutation: Some(mutation) }, property);
        assert!(!seen.trace(property).is_empty(), "{mutation:?}");
    };
    let (keeps, loses) = (Crash::KeepsLog, Crash::LosesLog);
    found(LeaseNotCheckedBeforeAnswer, LEASED, size(keeps, 0, 0, 0, 2));
    found(LeaseNotCheckedBeforeAnswer, ONE_PRIMARY, size(keeps, 0, 0, 0, 2));
    found(NewLeaderDoesNotWait, ONE_PRIMARY, size(keeps, 0, 1, 0, 2));
    found(OldLeaderGrants, ONE_PRIMARY, size(keeps, 0, 1, 0, 2));
    found(HolderCountsFromGrant, ONE_PRIMARY, size(keeps, 0, 0, 0, 2));
    found(NoMargin, ONE_PRIMARY, size(keeps, 0, 0, 1, 2));
    found(LeaseWithoutEntry, ONE_PRIMARY, size(keeps, 0, 0, 0, 2));
    found(AcknowledgedBeforeStrike, HELD, size(keeps, 0, 0, 0, 2));
    found(OutOfSyncPromoted, LED, size(keeps, 0, 0, 0, 4));
    found(IncarnationNotChecked, HELD, size(loses, 1, 0, 0, 3));
    found(RestartedKeepsPlace, HELD, size(loses, 1, 0, 0, 2));
    found(OldStreamTaken, HELD, size(keeps, 1, 0, 0, 2));
    found(JoinedBeforeCaughtUp, HELD, size(keeps, 0, 0, 0, 4));
    found(InheritedNotRequired, HELD, size(keeps, 0, 0, 0, 4));
    found(InheritedShownEarly, HELD, size(keeps, 0, 0, 0, 4));
    found(JoinerNotCounted, HELD, size(keeps, 0, 0, 0, 4));
    found(VersionNotChecked, HELD, size(loses, 1, 0, 0, 4));
    found(DoubtfulKeepsPlace, HELD, damaged(1, 1, 2));
    found(DoubtfulKeepsPlace, LED, damaged(1, 1, 3));
    found(DoubtfulLeadsEarly, LED, damaged(1, 1, 3));
    found(ShorterLogLeads, LED, damaged(2, 2, 4));
    found(DoubtForgotten, HELD, damaged(2, 1, 2));
    found(LackingPrimaryGoesOn, SHOWN, older(1, 4));
    found(UnstableTold, ENDED, older(0, 2));
    found(StoppedServes, ONE_PRIMARY, stops(3));
    found(StoppedForgets, HELD, stops(2));
    found(StaleStop, ONE_PRIMARY, stops(7));
}
