//! A group of two partitions becomes two groups.

use super::*;
use rauk_cluster::transactions::Known;

const HEIR: GroupId = GroupId(2);

fn split(view: u64, position: u64) -> Happening {
    let end = EntryId { view: View(view), position: Position(position) };
    Happening::Split { heir: HEIR, split: GroupSplit { parent: GROUP, at: 1, end } }
}

fn end(view: u64) -> Record {
    Record::End { view: View(view), at: 1 }
}

impl World {
    /// What the heir's slot does with what has come to it.
    fn enter_heir<R>(&mut self, f: impl FnOnce(&Slot, &mut State, &mut Context<'_>) -> R) -> R {
        let mut actions = Vec::new();
        let mut cx = Context {
            replicated: false,
            now: self.now,
            rows: &GroupRows {
                layout: self.layout,
                group: HEIR,
                groups: &self.groups,
                queues: &self.rows,
                announce: &|_| (),
            },
            slots: &self.heirs,
            limits: Limits::default(),
            log: &self.log,
            actions: &mut actions,
            safeguards: Safeguards::default(),
            budget: &self.budget,
            rooms: &self.rooms,
            compare_every: Duration::from_secs(5),
            longest_state: usize::MAX,
        };
        self.heirs[usize::from(HEIR.0)].enter(&mut cx, f)
    }

    fn last_entry(&mut self) -> (u64, u64) {
        let last = self.enter(|_, s, _| s.replica.last());
        (last.view.0, last.position.0)
    }
}

/// A follower of a group of two partitions that has its first view up to the end, of which it does not know that it is
/// stable; and a transaction of that view.
fn follower() -> (World, TxnId) {
    let (mut world, txn) = (two_partitions(), TxnId::of_process(ProcessId(2), 5));
    world.happens(assignment(1, 2, &[1, 2]));
    let commit = Record::Commit { txn, time: Timestamp(4), writes: Bytes::new() };
    world.happens(append(2, 1, (0, 0), vec![entry(1, 1, &Record::Opening), entry(1, 2, &commit)], 1));
    world.happens(append(2, 1, (1, 2), vec![entry(1, 3, &end(1))], 1));
    assert_eq!(world.last_entry(), (1, 3));
    (world, txn)
}

#[test]
fn a_stream_that_has_ended_takes_nothing_of_a_later_view_before_it_hears_of_the_split() {
    let (mut world, _) = follower();
    let later = || append(2, 2, (1, 3), vec![entry(2, 4, &Record::Opening)], 3);
    world.happens(later());
    assert_eq!(world.last_entry(), (1, 3), "the heir would have what came later");
    world.happens(split(1, 3));
    world.happens(later());
    assert_eq!(world.last_entry(), (1, 3));
    world.happens(assignment(2, 2, &[1, 2]));
    world.happens(later());
    assert_eq!(world.last_entry(), (2, 4));
}

#[test]
fn a_view_that_has_ended_in_vain_does_not_stand_in_the_way_of_the_next() {
    let (mut world, _) = follower();
    world.happens(assignment(2, 3, &[1, 3]));
    world.happens(append(3, 2, (1, 3), vec![entry(2, 4, &Record::Opening)], 3));
    world.happens(append(3, 2, (2, 4), vec![entry(2, 5, &end(2))], 4));
    assert_eq!(world.last_entry(), (2, 5));
}

#[test]
fn the_heir_has_what_its_parent_had_at_the_end() {
    let (mut world, txn) = follower();
    world.happens(split(1, 3));
    assert_eq!((world.groups.partitions_of(GROUP), world.groups.partitions_of(HEIR)), (0..1, 1..2));
    assert_eq!(world.enter(|_, s, _| s.replica.stable()), Position(3), "the control plane says so");
    let (last, known, whole) = world.enter_heir(|_, s, _| {
        (s.replica.last(), s.table.look_alone(txn).is_some_and(|known| matches!(known, Known::Vote(_))), !s.restoring)
    });
    assert_eq!((last, known, whole), (EntryId { view: View(1), position: Position(3) }, true, true));
    // It follows its own stream, behind the parent's last entry.
    world.heirs[usize::from(HEIR.0)].queue.lock().extend([
        Happening::Assigned(Assignment { group: HEIR, ..assigned(2, 2, &[1, 2]) }),
        append(2, 2, (1, 3), vec![entry(2, 4, &Record::Opening)], 3),
    ]);
    assert_eq!(world.enter_heir(|_, s, _| s.replica.last().position), Position(4));
}

#[test]
fn what_comes_for_a_group_before_it_begins_is_passed_over_but_for_its_assignment() {
    let (mut world, _) = follower();
    world.heirs[usize::from(HEIR.0)].queue.lock().extend([
        append(2, 2, (0, 0), vec![entry(2, 1, &Record::Opening)], 0),
        Happening::Assigned(Assignment { group: HEIR, ..assigned(2, 2, &[1, 2]) }),
        Happening::Tick,
    ]);
    assert_eq!(world.enter_heir(|_, s, _| (s.replica.last(), s.replica.version())), (EntryId::default(), None));
    world.happens(split(1, 3));
    let begun = world.enter_heir(|_, s, _| (s.replica.last().position, s.replica.version()));
    assert_eq!(begun, (Position(3), Some(2)));
}

fn contents(s: &State) -> (Contents, bool) {
    (s.replica.contents(), s.restoring)
}

#[test]
fn a_replica_that_lacks_the_end_forgets_both_groups() {
    let (mut world, _) = follower();
    world.happens(split(1, 4));
    assert_eq!(world.enter(|_, s, _| contents(s)), (Contents::Partial, true));
    assert_eq!(world.enter_heir(|_, s, _| contents(s)), (Contents::Partial, true));
    assert_eq!(world.groups.partitions_of(HEIR), 1..2);
}

/// It may hear of the next view by its primary, and be in-sync, before it hears of the split.
#[test]
fn a_replica_that_is_past_the_end_keeps_the_parent() {
    let mut world = two_partitions();
    world.happens(assignment(1, 2, &[2]));
    let entries = vec![entry(1, 1, &Record::Opening), entry(1, 2, &end(1)), entry(2, 3, &Record::Opening)];
    world.happens(append(2, 2, (0, 0), entries, 1));
    assert_eq!(world.last_entry(), (2, 3));
    world.happens(split(1, 2));
    let (stable, whole) = world.enter(|_, s, _| (s.replica.stable(), contents(s)));
    assert_eq!((stable, whole), (Position(2), (Contents::Whole, false)));
    assert_eq!(world.enter_heir(|_, s, _| contents(s)), (Contents::Partial, true));
}

#[test]
fn a_primary_ends_its_view_when_all_is_decided_and_asks_when_that_is_stable() {
    let mut world = World::leading_on(two_partitions());
    let txn = TxnRef::new(TxnId::of_process(ProcessId(1), 7));
    let participants = vec![GROUP, GroupId(1)];
    let vote = world.enter(|slot, s, cx| slot.prepare(s, cx, &txn, participants, Timestamp::ZERO, nothing()));
    assert!(vote.is_ok());
    world.happens(Happening::Divide { view: View(1), at: 1 });
    assert_eq!(world.last_entry(), (1, 2), "something is prepared");
    assert!(world.slot.is_ending(View(1)));
    let other = TxnRef::new(TxnId::of_process(ProcessId(1), 8));
    let commit = world.enter(|slot, s, cx| slot.commit_alone(s, cx, &other, Timestamp::ZERO, nothing()).is_err());
    assert!(commit, "no more work is taken");
    let decided = world.enter(|slot, s, cx| slot.decide(s, cx, txn.id, Outcome::Aborted).is_ok());
    assert!(decided);
    assert_eq!(world.last_entry(), (1, 4), "the decision, then the end");
    let forgotten = world.enter(|slot, s, cx| {
        slot.forget(s, cx, vec![txn.id]);
        slot.ask(s, cx, other.id, true).is_err()
    });
    assert!(forgotten && world.last_entry() == (1, 4), "nothing comes behind the end");
    world.durable();
    let mut actions = Vec::new();
    for from in [2, 3] {
        world.slot.queue.lock().push_back(acknowledge(from, 1, 4));
        world.enter_slot(&mut actions, |_, _, _| ());
    }
    let asks = |action: &&Action| matches!(action, Action::Split { at: 1, end, .. } if end.position == Position(4));
    assert_eq!(actions.iter().filter(asks).count(), 1);
}
