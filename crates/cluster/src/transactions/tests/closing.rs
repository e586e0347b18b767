//! Closing, step by step.

use super::*;

const PACE: Pace = Pace { patience: millis_const(100), first: millis_const(10), longest: millis_const(40) };

const fn millis_const(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn coordinator() -> Closing {
    Closing::coordinator(txn(1), &[A, B], PACE, millis(0))
}

fn take_over(vote: Vote, coordinator_is_dead: bool) -> Closing {
    let undecided = Undecided { txn: txn(1), participants: vec![A, B, C], least: Timestamp(4), vote };
    Closing::take_over(&undecided, B, coordinator_is_dead, PACE)
}

#[test]
fn a_coordinator_asks_when_answers_do_not_come() {
    let mut closing = coordinator();
    assert_eq!(closing.on_tick(millis(99)), []);
    assert_eq!(closing.on_vote(A, Vote::Prepared(Timestamp(3))), None);
    assert_eq!(closing.next_due(), Some(millis(100)));
    assert_eq!(closing.on_tick(millis(100)), [(B, Step::Ask)]);
    assert_eq!(closing.on_tick(millis(109)), []);
    assert_eq!(closing.on_tick(millis(110)), [(B, Step::Ask)], "10 ms later");
    assert_eq!((closing.on_tick(millis(129)), closing.next_due()), (vec![], Some(millis(130))), "20 ms later");
    closing.hurry(B);
    assert_eq!(closing.on_tick(millis(129)), [(B, Step::Ask)]);
    closing.on_confirmed(B);
    assert_eq!(closing.on_vote(B, Vote::Prepared(Timestamp(9))), Some(committed(9)));
    let decide = Step::Decide(committed(9));
    assert_eq!(closing.on_tick(millis(130)), [(A, decide), (B, decide)]);
    closing.on_confirmed(B);
    assert_eq!(closing.on_tick(millis(140)), [(A, decide)]);
    closing.on_confirmed(A);
    assert!(!closing.is_done());
    assert_eq!(closing.on_tick(millis(140)), [(A, Step::Forget), (B, Step::Forget)]);
    assert!(closing.is_done() && closing.on_tick(millis(999)).is_empty() && closing.next_due().is_none());
    assert_eq!(closing.outcome(), Some(committed(9)));
}

#[test]
fn a_coordinator_never_aborts_without_a_refusal() {
    let mut closing = coordinator();
    for time in 0..100 {
        assert!(closing.on_tick(millis(time * 100)).iter().all(|(_, step)| *step == Step::Ask));
    }
    assert_eq!(closing.outcome(), None);
    assert_eq!(closing.on_vote(A, Vote::Refused), Some(Outcome::Aborted));
    assert_eq!(closing.on_tick(millis(9_999)).len(), 2);
}

#[test]
fn a_take_over_asks_all_others_and_leaves_forgetting_to_a_living_coordinator() {
    let prepared = Vote::Prepared(Timestamp(4));
    let mut closing = take_over(prepared, false);
    assert_eq!(closing.on_tick(millis(0)), [(A, Step::Ask), (C, Step::Ask)]);
    assert_eq!(closing.on_vote(A, prepared), None);
    assert_eq!(closing.on_vote(C, Vote::Prepared(Timestamp(2))), Some(committed(4)));
    let mut dead = closing.clone();
    for partition in [A, B, C] {
        assert!(!closing.is_done());
        assert!(!closing.on_tick(millis(5)).contains(&(partition, Step::Forget)));
        closing.on_confirmed(partition);
        dead.on_confirmed(partition);
    }
    assert!(closing.is_done() && closing.on_tick(millis(99)).is_empty() && closing.next_due().is_none());
    dead.on_coordinator_dead();
    assert!(!dead.is_done());
    assert_eq!(dead.on_tick(millis(6)).len(), 3);
    assert!(dead.is_done());
}

#[test]
fn a_commit_that_a_dead_coordinator_left_is_pushed() {
    let mut closing = take_over(Vote::Decided(committed(5)), true);
    assert_eq!(closing.outcome(), Some(committed(5)));
    assert_eq!(closing.on_tick(millis(0)).len(), 3);
    for partition in [A, B, C] {
        closing.on_confirmed(partition);
    }
    assert_eq!(closing.on_tick(millis(1)), [(A, Step::Forget), (B, Step::Forget), (C, Step::Forget)]);
}

#[test]
fn what_others_have_forgotten_needs_no_closing() {
    let mut closing = take_over(Vote::Prepared(Timestamp(4)), false);
    assert_eq!(closing.on_vote(GroupId(9), Vote::Forgotten), None);
    assert!(!closing.is_done());
    assert_eq!(closing.on_vote(A, Vote::Forgotten), None);
    assert!(closing.is_done() && closing.outcome().is_none() && closing.on_tick(millis(9)).is_empty());

    let mut decided = take_over(Vote::Decided(committed(5)), false);
    for partition in [A, B, C] {
        decided.on_vote(partition, Vote::Forgotten);
    }
    assert!(decided.is_done());
}

#[test]
fn a_rule_that_is_switched_off_is_off_on_this_thread_only() {
    use safeguards::{Safeguard, off, switch_off};
    switch_off(Some(Safeguard::AbortOnlyOnRefusal));
    let mut closing = coordinator();
    closing.on_tick(millis(100));
    assert_eq!(closing.outcome(), Some(Outcome::Aborted));
    assert!(!std::thread::spawn(|| off(Safeguard::AbortOnlyOnRefusal)).join().expect("it ends"));
    switch_off(None);
}
