//! The table entry by entry.

use super::*;

#[test]
fn a_commit_of_one_partition_happens_when_it_is_stable() {
    let mut shown = Shown::default();
    assert_eq!(shown.entry(Record::Opening), []);
    assert_eq!(shown.entry(commit(1, 5)), [adopt(1, 5)]);
    assert_eq!(shown.table.look_alone(txn(1)), Some(Known::Soon));
    assert_eq!(shown.table.pending(), [adopt(1, 5)]);
    let vote = Vote::Decided(committed(5));
    assert_eq!(shown.stable(2), [commits(1, 5), answer(1, vote)]);
    assert_eq!(shown.table.look_alone(txn(1)), Some(Known::Vote(vote)));
    assert_eq!(shown.table.ask(txn(1)), Known::Vote(vote));
    assert!(!shown.table.may_prepare(txn(1)) && shown.table.is_confirmed(txn(1)));
    assert_eq!((shown.table.pending(), shown.table.len(), shown.table.writes_bytes), (vec![], 0, 0));
    assert_eq!(shown.stable(2), []);
    assert_eq!(shown.entry(forget(&[1])), []);
    assert_eq!(shown.stable(3), [], "it was never one to be forgotten by an entry");
    assert_eq!(shown.table.outcome(txn(1)), Some(committed(5)));
}

#[test]
fn a_prepare_votes_when_stable_commits_when_told_and_confirms_when_that_is_stable() {
    let mut shown = Shown::default();
    assert_eq!(shown.entry(prepare(1, 5)), [adopt(1, 5)]);
    assert_eq!((shown.table.ask(txn(1)), shown.table.look(txn(2))), (Known::Soon, None));
    assert_eq!(shown.table.undecided(millis(99)), [], "not stable: it may not take over");
    assert_eq!(shown.stable(1), [answer(1, Vote::Prepared(Timestamp(5)))]);
    assert_eq!(shown.table.ask(txn(1)), Known::Vote(Vote::Prepared(Timestamp(5))));
    assert_eq!(shown.table.undecided(millis(0)), [], "it came at 1 ms");
    let vote = Vote::Prepared(Timestamp(5));
    let open = Undecided { txn: txn(1), participants: vec![A, B], least: Timestamp(5), vote };
    assert_eq!(shown.table.undecided(millis(1)), [open]);

    assert_eq!(shown.table.tell(txn(1), committed(8)), Ok(Told::Propose(decide(1, committed(8)))));
    assert_eq!(shown.entry(decide(1, committed(8))), [commits(1, 8)], "a fact at once");
    assert_eq!(shown.table.ask(txn(1)), Known::Vote(Vote::Decided(committed(8))));
    assert_eq!(shown.table.tell(txn(1), committed(8)), Ok(Told::Soon));
    assert!(!shown.table.is_confirmed(txn(1)));
    assert_eq!(shown.table.forgettable(&[txn(1)]), []);
    assert_eq!(shown.entry(decide(1, committed(8))), [], "twice is once");
    assert_eq!(shown.stable(2), [confirms(1)]);
    assert_eq!(shown.stable(3), [confirms(1)], "who repeats it is answered again");
    assert_eq!(shown.table.tell(txn(1), committed(8)), Ok(Told::Confirmed));
    assert_eq!((shown.table.undecided(millis(99)), shown.table.pending()), (vec![], vec![]));

    assert_eq!(shown.table.forgettable(&[txn(1), txn(1), txn(9)]), [txn(1)]);
    assert_eq!(shown.entry(forget(&[1, 9])), []);
    assert_eq!(shown.table.forgettable(&[txn(1)]), [], "it is being forgotten");
    assert_eq!(shown.table.ask(txn(1)), Known::Vote(Vote::Decided(committed(8))));
    assert_eq!(shown.stable(4), []);
    assert!(shown.table.is_empty());
    assert_eq!(shown.table.ask(txn(1)), Known::Vote(Vote::Forgotten));
    assert_eq!(shown.table.tell(txn(1), committed(8)), Ok(Told::Confirmed));
    assert!(shown.table.tell(txn(1), Outcome::Aborted).is_err() && !shown.table.may_prepare(txn(1)));
    assert_eq!(shown.entry(decide(1, committed(8))), []);
    assert_eq!(shown.stable(5), [confirms(1)]);
    assert_eq!(shown.table.writes_bytes, 0);
}

#[test]
fn who_is_asked_and_knows_nothing_refuses_for_ever() {
    let mut shown = Shown::default();
    assert_eq!(shown.table.ask(txn(1)), Known::Fence(fence(1)));
    assert_eq!(shown.entry(fence(1)), [aborts(1)], "locks that wait for their prepare go");
    assert_eq!((shown.table.ask(txn(1)), shown.table.may_prepare(txn(1))), (Known::Soon, false));
    assert_eq!(shown.table.tell(txn(1), Outcome::Aborted), Ok(Told::Soon));
    assert_eq!(shown.stable(1), [answer(1, Vote::Refused), confirms(1)]);
    assert_eq!(shown.table.ask(txn(1)), Known::Vote(Vote::Refused));
    assert_eq!(shown.table.tell(txn(1), Outcome::Aborted), Ok(Told::Confirmed), "the fence is the abort's record");
    assert!(shown.table.tell(txn(1), committed(4)).is_err());
    assert_eq!(shown.entry(forget(&[1])), []);
    assert_eq!(shown.stable(2), []);
    assert_eq!(shown.table.ask(txn(1)), Known::Fence(fence(1)), "an abort leaves nothing");
}

#[test]
fn an_abort_of_what_was_never_here_is_a_record() {
    let mut shown = Shown::default();
    assert_eq!(shown.table.tell(txn(1), Outcome::Aborted), Ok(Told::Propose(decide(1, Outcome::Aborted))));
    assert_eq!(shown.entry(decide(1, Outcome::Aborted)), [aborts(1)]);
    assert!(!shown.table.may_prepare(txn(1)));
    assert_eq!(shown.table.ask(txn(1)), Known::Vote(Vote::Decided(Outcome::Aborted)));
    assert_eq!(shown.cut(0), []);
    assert_eq!((shown.table.is_empty(), shown.table.may_prepare(txn(1))), (true, true));
    assert_eq!(shown.table.tell(txn(1), committed(3)), Ok(Told::Confirmed), "can only be long forgotten");
}

#[test]
fn a_cut_aborts_what_was_prepared_and_undoes_fences() {
    let mut shown = Shown::default();
    shown.entry(prepare(1, 5));
    shown.stable(1);
    shown.entry(commit(2, 6));
    shown.entry(prepare(3, 7));
    shown.entry(fence(4));
    assert_eq!(shown.table.pending(), [adopt(1, 5), adopt(2, 6), adopt(3, 7)]);
    let times = [1, 2, 3, 4].map(|number| shown.table.alone_time(txn(number)));
    assert_eq!(times, [None, Some(Timestamp(6)), None, None], "only a commit needs nobody's decision");
    assert_eq!(shown.cut(1), [aborts(3), aborts(2)]);
    assert_eq!(shown.table.pending(), [adopt(1, 5)]);
    assert!((2..5).all(|number| shown.table.may_prepare(txn(number))));
    assert_eq!((shown.table.last, shown.table.writes_bytes), (Position(1), 8));
    assert_eq!(shown.cut(1), []);
    assert_eq!(shown.entry(prepare(3, 9)), [adopt(3, 9)], "another stream may have it again");
}

#[test]
fn an_outcome_is_a_fact_that_a_cut_does_not_undo() {
    for (outcome, effect) in [(committed(6), commits(1, 6)), (Outcome::Aborted, aborts(1))] {
        let mut shown = Shown::default();
        shown.entry(prepare(1, 5));
        shown.stable(1);
        assert_eq!(shown.entry(decide(1, outcome)), [effect]);
        assert_eq!(shown.cut(1), [], "the rows stay as decided");
        assert_eq!(shown.table.pending(), []);
        assert_eq!(shown.table.ask(txn(1)), Known::Vote(Vote::Decided(outcome)));
        let told_again = shown.table.undecided(millis(9));
        assert_eq!(told_again.iter().map(|u| u.vote).collect::<Vec<_>>(), [Vote::Decided(outcome)]);
        assert_eq!(shown.table.tell(txn(1), outcome), Ok(Told::Propose(decide(1, outcome))));
        assert_eq!(shown.entry(decide(1, outcome)), [], "done before");
        assert_eq!(shown.stable(2), [confirms(1)]);
        assert_eq!(shown.table.undecided(millis(9)), []);
    }
}

#[test]
fn a_cut_of_prepare_and_abort_leaves_nothing_and_of_forgetting_leaves_the_outcome() {
    let mut shown = Shown::default();
    shown.entry(prepare(1, 5));
    shown.entry(decide(1, Outcome::Aborted));
    assert_eq!(shown.cut(0), []);
    assert!(shown.table.is_empty() && shown.table == TxnTable::default());

    shown.entry(prepare(1, 5));
    shown.entry(decide(1, committed(5)));
    shown.stable(2);
    shown.entry(forget(&[1]));
    assert_eq!(shown.cut(2), []);
    assert_eq!(shown.table.forgettable(&[txn(1)]), [txn(1)]);
    assert_eq!(shown.table.lingering(millis(2)), [txn(1)]);
    assert_eq!(shown.table.lingering(millis(1)), [], "decided at 2 ms");
}

#[test]
fn dead_coordinators_leave_orphans() {
    let mut shown = Shown::default();
    shown.entry(prepare(1, 5));
    shown.entry(prepare(2, 5));
    shown.entry(prepare(3, 5));
    shown.entry(fence(4));
    shown.entry(decide(2, committed(6)));
    shown.entry(decide(3, Outcome::Aborted));
    shown.stable(4);
    let orphans = shown.table.orphans(|_| false);
    let open = |orphans: &Orphans| orphans.close.iter().map(|u| (u.txn, u.vote)).collect::<Vec<_>>();
    assert_eq!(orphans.forget, [txn(4)], "the outcomes are not stable");
    assert_eq!(open(&orphans), [(txn(1), Vote::Prepared(Timestamp(5)))]);
    shown.stable(6);
    let orphans = shown.table.orphans(|_| false);
    assert_eq!(orphans.forget, [txn(3), txn(4)]);
    assert_eq!(
        open(&orphans),
        [(txn(1), Vote::Prepared(Timestamp(5))), (txn(2), Vote::Decided(committed(6)))],
        "a commit is pushed first"
    );
    assert_eq!(shown.table.orphans(|process| process == ProcessId(7)), Orphans::default());
}

#[test]
fn what_a_copy_lacks_may_be_stable_already() {
    let mut shown = Shown::default();
    assert_eq!(shown.stable(10), []);
    assert_eq!(shown.entry(prepare(1, 5)), [adopt(1, 5), answer(1, Vote::Prepared(Timestamp(5)))]);
}

#[test]
fn memory_is_bounded() {
    let mut shown = Shown::default();
    let many = super::super::memory::COMMITS as u64 + 100;
    for number in 1..=many {
        shown.entry(commit(number, number));
        shown.stable(number);
    }
    let bytes = shown.table.bytes();
    assert!(bytes < 1_500_000, "{bytes}");
    assert_eq!(shown.table.look(txn(50)), None);
    assert_eq!(shown.table.look_alone(txn(50)), Some(Known::Vote(Vote::Forgotten)), "outcome unknown, not refused");
    assert_eq!(shown.table.look_alone(txn(many + 1)), None);
    let read = TxnTable::decode(&shown.table.encode(), millis(0)).expect("a table");
    assert!(read == shown.table && read.bytes() == bytes);
    assert!(shown.table.encode().len() < 200_000);
}

#[test]
#[should_panic(expected = "commits here without a prepare")]
fn a_commit_without_a_prepare_is_our_mistake() {
    Shown::default().entry(decide(1, committed(5)));
}

#[test]
#[should_panic(expected = "and Aborted")]
fn two_outcomes_are_our_mistake() {
    let mut shown = Shown::default();
    shown.entry(prepare(1, 5));
    shown.entry(decide(1, committed(5)));
    shown.entry(decide(1, Outcome::Aborted));
}

#[test]
#[should_panic(expected = "was refused here and commits")]
fn a_commit_of_what_was_fenced_is_our_mistake() {
    let mut shown = Shown::default();
    shown.entry(fence(1));
    shown.entry(decide(1, committed(5)));
}

#[test]
#[should_panic(expected = "the prepare of committed transaction")]
fn a_cut_of_a_committed_prepare_is_our_mistake() {
    let mut shown = Shown::default();
    shown.entry(prepare(1, 5));
    shown.entry(decide(1, committed(5)));
    shown.cut(0);
}

#[test]
#[should_panic(expected = "stable up to 1")]
fn a_cut_of_what_is_stable_is_our_mistake() {
    let mut shown = Shown::default();
    shown.entry(prepare(1, 5));
    shown.stable(1);
    shown.cut(0);
}

#[test]
fn a_replica_that_has_not_heard_of_forgetting_hears_it_by_what_begins_anew() {
    for anew in [fence(1), decide(1, Outcome::Aborted)] {
        let mut shown = [Shown::default(), Shown::default()];
        for (late, shown) in shown.iter_mut().enumerate() {
            shown.entry(fence(1));
            shown.stable(1);
            shown.entry(forget(&[1]));
            if late == 0 {
                shown.stable(2);
            }
            shown.entry(anew.clone());
        }
        assert!(shown[0].table == shown[1].table);
    }
}

#[test]
fn rows_are_compared_where_no_decision_is_missing_in_the_stream() {
    let mut shown = Shown::default();
    let compare = |at: u64| vec![Effect::Compare { at: Position(at) }];
    assert_eq!(shown.entry(Record::Compare), compare(1));
    shown.entry(prepare(1, 5));
    shown.entry(commit(2, 6));
    assert_eq!(
        shown.entry(Record::Compare),
        compare(4),
        "what is prepared, and what is not stable yet, is the same everywhere"
    );
    shown.stable(4);
    shown.entry(decide(1, committed(7)));
    assert_eq!(shown.entry(Record::Compare), compare(6));
    assert_eq!(shown.cut(4), [], "what was decided stays");
    assert_eq!(shown.entry(Record::Opening), []);
    assert_eq!(shown.entry(Record::Compare), [], "transaction 1 has committed here, and others need not know");
    shown.entry(decide(1, committed(7)));
    assert_eq!(shown.entry(Record::Compare), compare(8));
    assert_eq!(shown.stable(8).len(), 1, "a comparison says nothing when it is stable");
}
