//! Single points by hand: roles, rule 24, strikes, bounds, late copies, bad messages.

use super::super::*;
use super::node::GROUP;
use rauk_types::{Member, NodeId, ProcessId};
use std::time::Duration;

fn member(number: u16) -> Member {
    Member { node: NodeId(number), process: ProcessId(u32::from(number)) }
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn id(view: u64, position: u64) -> EntryId {
    EntryId { view: View(view), position: Position(position) }
}

fn entry(view: u64, position: u64) -> Entry {
    Entry { id: id(view, position), record: Bytes::from_static(b"an entry") }
}

fn assignment(version: u64, view: u64, primary: u16, in_sync: &[u16], joining: &[u16]) -> Assignment {
    let members = |numbers: &[u16]| numbers.iter().map(|number| member(*number)).collect();
    let (in_sync, joining) = (members(in_sync), members(joining));
    Assignment { group: GROUP, version, view: View(view), primary: Some(member(primary)), in_sync, joining }
}

fn append(view: u64, previous: EntryId, entries: &[Entry], stable: u64) -> Message {
    Message::Append { view: View(view), version: 1, previous, entries: entries.to_vec(), stable: Position(stable) }
}

fn acknowledge(view: u64, upto: u64, copy: u64) -> Message {
    let (received, durable) = (Position(upto), Position(upto));
    Message::Acknowledge { view: View(view), received, durable, copy, contents: Contents::Whole }
}

fn block(me: u16, limits: Limits) -> Replica {
    Replica::new(GROUP, member(me), limits, None)
}

/// All records that were written are on disk.
fn sync(replica: &mut Replica, now: Duration, out: &mut Outbox) {
    let numbers = out.iter().filter_map(|output| match output {
        Output::Log { number, .. } => Some(*number),
        _ => None,
    });
    if let Some(number) = numbers.max() {
        replica.on_durable(now, number, out);
    }
}

fn sent(out: &Outbox) -> Vec<&Message> {
    let messages = out.iter().filter_map(|output| match output {
        Output::Send { message, .. } => Some(message),
        _ => None,
    });
    messages.collect()
}

/// A primary of view 1 whose opening is stable, with these peers.
fn primary(limits: Limits, in_sync: &[u16], joining: &[u16]) -> Replica {
    let mut replica = block(1, limits);
    let mut out = Outbox::new();
    replica.on_assignment(ms(0), &assignment(1, 1, 1, in_sync, joining), &mut out);
    assert_eq!(replica.role(), Role::Opening);
    assert!(replica.propose(ms(0), Bytes::new(), &mut out).is_none(), "no work before the opening is stable");
    sync(&mut replica, ms(0), &mut out);
    for other in in_sync.iter().filter(|other| **other != 1) {
        replica.on_message(ms(1), member(*other), acknowledge(1, 1, 0), &mut out);
    }
    assert_eq!((replica.role(), replica.stable()), (Role::Primary, Position(1)));
    replica
}

#[test]
fn alone_it_is_stable_when_its_own_log_is() {
    let mut replica = primary(Limits::default(), &[1], &[]);
    let mut out = Outbox::new();
    assert_eq!(replica.propose(ms(2), Bytes::from_static(b"x"), &mut out), Some(id(1, 2)));
    assert_eq!(replica.stable(), Position(1));
    sync(&mut replica, ms(3), &mut out);
    assert_eq!(replica.stable(), Position(2));
    assert!(out.contains(&Output::Stable { upto: Position(2) }));
}

#[test]
fn only_the_process_that_is_named_leads() {
    let mut replica = block(1, Limits::default());
    let mut out = Outbox::new();
    let mut older = assignment(4, 2, 1, &[1, 2], &[]);
    older.primary = Some(Member { node: NodeId(1), process: ProcessId(99) });
    replica.on_assignment(ms(0), &older, &mut out);
    assert_eq!(replica.role(), Role::Follower);
    replica.on_assignment(ms(0), &assignment(3, 3, 1, &[1, 2], &[]), &mut out);
    assert_eq!(replica.role(), Role::Follower, "an older version is passed over");
    replica.on_assignment(ms(0), &assignment(5, 3, 1, &[1, 2], &[]), &mut out);
    assert_eq!(replica.role(), Role::Opening);
    // Another one leads a newer view, and says so before the group does.
    replica.on_message(ms(1), member(2), append(4, id(0, 0), &[entry(4, 1)], 0), &mut out);
    assert_eq!((replica.role(), replica.view(), replica.last()), (Role::Follower, View(4), id(4, 1)));
    assert!(out.contains(&Output::Cut { after: Position(0) }));
    replica.on_assignment(ms(2), &assignment(6, 3, 1, &[1, 2], &[]), &mut out);
    assert_eq!(replica.role(), Role::Follower);
}

#[test]
fn proposals_of_one_turn_leave_together_without_copies() {
    let mut replica = primary(Limits::default(), &[1, 2, 3], &[]);
    let mut out = Outbox::new();
    let records: Vec<Bytes> = (0..10u8).map(|number| Bytes::from(vec![number; 100])).collect();
    for record in &records {
        replica.propose(ms(2), record.clone(), &mut out);
    }
    let messages = sent(&out);
    assert_eq!(messages.len(), 2);
    for message in messages {
        let Message::Append { previous, entries, .. } = message else { panic!("{message:?}") };
        assert_eq!((*previous, entries.len()), (id(1, 1), 10));
        for (entry, record) in entries.iter().zip(&records) {
            assert_eq!(entry.record.as_ptr(), record.as_ptr(), "record bytes are shared");
        }
    }
}

#[test]
fn what_is_under_way_is_bounded() {
    let limits = Limits { flight_bytes: 4000, append_bytes: 1000, kept_bytes: 20_000, ..Limits::default() };
    let mut replica = primary(limits, &[1], &[2]);
    let mut out = Outbox::new();
    let (received, durable, contents) = (Position(1), Position(0), Contents::Whole);
    let message = Message::Acknowledge { view: View(1), received, durable, copy: 0, contents };
    replica.on_message(ms(2), member(2), message, &mut out);
    out.clear();
    let (mut bytes, mut messages) = (0, 0);
    for turn in 0..2000u64 {
        replica.propose(ms(2), Bytes::from(vec![7; 50]), &mut out);
        sync(&mut replica, ms(2), &mut out);
        replica.on_tick(ms(3 + turn), &mut out);
        for message in sent(&out) {
            if let Message::Append { entries, .. } = message {
                bytes += if turn < 49 { entries.len() * 146 } else { 0 };
                messages += u32::from(turn >= 49);
            }
        }
        out.clear();
    }
    assert!((4000..=5146).contains(&bytes), "{bytes} bytes to a joiner that says nothing");
    assert!(messages < 60, "then {messages} messages in two seconds");
    // It holds nothing up, and memory is bounded although it has not got the entries.
    assert!(replica.stable() > Position(1900));
    assert!(replica.kept_bytes() <= 20_000 + replica.unstable_bytes());
    // When it speaks again, entries do not help any more.
    let mismatch = Message::Mismatch {
        view: View(1),
        last: id(1, 30),
        history: vec![id(1, 30)],
        floor: Position(1),
        stable: id(0, 0),
        contents: Contents::Whole,
    };
    replica.on_message(ms(2100), member(2), mismatch, &mut out);
    assert_eq!(out, [Output::ReadState { to: member(2) }]);
}

#[test]
fn a_joiner_counts_from_the_request_until_the_group_has_decided() {
    let mut replica = primary(Limits::default(), &[1], &[2]);
    let mut out = Outbox::new();
    let join = |version| Output::RequestJoin { version, member: member(2) };
    replica.on_message(ms(2), member(2), acknowledge(1, 1, 0), &mut out);
    assert!(out.contains(&join(1)));
    out.clear();
    replica.propose(ms(3), Bytes::new(), &mut out);
    sync(&mut replica, ms(3), &mut out);
    assert_eq!(replica.stable(), Position(1), "it counts already");
    // Long silence changes nothing; the request is repeated.
    for time in 4..600 {
        replica.on_tick(ms(time), &mut out);
    }
    assert_eq!(replica.stable(), Position(1));
    assert!(out.iter().filter(|output| **output == join(1)).count() > 3);
    assert!(!out.iter().any(|output| matches!(output, Output::RequestStrike { .. })), "it is not in-sync");
    // A newer version without it: the request was void, and it is not asked again while it is silent.
    out.clear();
    replica.on_assignment(ms(600), &assignment(2, 1, 1, &[1], &[2]), &mut out);
    assert_eq!(replica.stable(), Position(2));
    assert!(!out.contains(&join(2)));
    replica.on_message(ms(601), member(2), acknowledge(1, 2, 0), &mut out);
    assert!(out.contains(&join(2)), "and again when it has everything");
    // A newer version while it is right: asked again at once, and nothing gets stable without it.
    out.clear();
    replica.propose(ms(602), Bytes::new(), &mut out);
    sync(&mut replica, ms(602), &mut out);
    replica.on_assignment(ms(603), &assignment(3, 1, 1, &[1], &[2, 3]), &mut out);
    assert!(out.contains(&Output::RequestJoin { version: 3, member: member(2) }));
    assert_eq!(replica.stable(), Position(2));
    // Its process is gone: no version says so, but it is listed nowhere.
    replica.on_assignment(ms(604), &assignment(3, 1, 1, &[1], &[3]), &mut out);
    assert_eq!(replica.stable(), Position(3));
}

#[test]
fn a_joiner_under_load_is_waited_for() {
    let mut replica = primary(Limits::default(), &[1], &[2]);
    let mut out = Outbox::new();
    for _ in 0..3 {
        replica.propose(ms(2), Bytes::new(), &mut out);
    }
    sync(&mut replica, ms(2), &mut out);
    assert_eq!(replica.stable(), Position(4));
    replica.on_message(ms(3), member(2), acknowledge(1, 3, 0), &mut out);
    replica.propose(ms(3), Bytes::new(), &mut out);
    sync(&mut replica, ms(3), &mut out);
    assert_eq!(replica.stable(), Position(4), "held");
    assert!(!out.iter().any(|output| matches!(output, Output::RequestJoin { .. })), "it has not everything");
    for time in 4..400 {
        replica.on_tick(ms(time), &mut out);
    }
    assert_eq!(replica.stable(), Position(5), "a silent one is let go");
    replica.on_message(ms(400), member(2), acknowledge(1, 4, 0), &mut out);
    replica.propose(ms(400), Bytes::new(), &mut out);
    sync(&mut replica, ms(400), &mut out);
    assert_eq!(replica.stable(), Position(5), "held again");
    replica.on_message(ms(401), member(2), acknowledge(1, 5, 0), &mut out);
    assert!(out.contains(&Output::RequestJoin { version: 1, member: member(2) }));
}

#[test]
fn who_holds_everything_up_is_struck_and_nobody_else() {
    let mut replica = primary(Limits::default(), &[1, 2, 3], &[4]);
    let mut out = Outbox::new();
    for time in 2..1000 {
        replica.on_tick(ms(time), &mut out);
    }
    assert!(!out.iter().any(|output| matches!(output, Output::RequestStrike { .. })), "nothing waits");
    replica.propose(ms(1000), Bytes::new(), &mut out);
    sync(&mut replica, ms(1000), &mut out);
    replica.on_message(ms(1001), member(2), acknowledge(1, 2, 0), &mut out);
    out.clear();
    for time in 1001..1349 {
        replica.on_tick(ms(time), &mut out);
    }
    assert!(!out.iter().any(|output| matches!(output, Output::RequestStrike { .. })));
    for time in 1349..1400 {
        replica.on_tick(ms(time), &mut out);
    }
    let strikes: Vec<_> = out.iter().filter(|output| matches!(output, Output::RequestStrike { .. })).collect();
    assert_eq!(strikes, [&Output::RequestStrike { version: 1, member: member(3) }]);
    assert_eq!(replica.stable(), Position(1), "nothing is stable without it before the group has spoken");
    replica.on_assignment(ms(1400), &assignment(2, 1, 1, &[1, 2], &[3, 4]), &mut out);
    assert_eq!(replica.stable(), Position(2));
    // It is alive, and comes back by the ordinary way.
    out.clear();
    replica.on_message(ms(1401), member(3), acknowledge(1, 2, 0), &mut out);
    assert!(out.contains(&Output::RequestJoin { version: 2, member: member(3) }));
}

/// To send, read and write a long entry takes long: it is not sent again meanwhile, and nobody is struck for it; but for ever it is not waited for.
#[test]
fn a_long_entry_is_waited_for() {
    let limits = Limits::default();
    let mut replica = primary(limits, &[1, 2], &[]);
    let mut out = Outbox::new();
    replica.on_message(ms(2), member(2), acknowledge(1, 1, 0), &mut out);
    replica.on_tick(ms(999), &mut out);
    out.clear();
    replica.propose(ms(1000), vec![0; limits.flight_bytes + 4_000_000].into(), &mut out);
    sync(&mut replica, ms(1000), &mut out);
    let strike = Output::RequestStrike { version: 1, member: member(2) };
    let entries = |out: &Outbox| {
        let has = |message: &&&Message| matches!(message, Message::Append { entries, .. } if !entries.is_empty());
        sent(out).iter().filter(has).count()
    };
    (1001..3000).step_by(10).for_each(|time| replica.on_tick(ms(time), &mut out));
    assert_eq!((entries(&out), out.contains(&strike)), (1, false));
    (3000..3500).step_by(10).for_each(|time| replica.on_tick(ms(time), &mut out));
    assert_eq!((entries(&out), out.contains(&strike)), (2, true));
}

#[test]
fn a_primary_that_was_stopped_blames_nobody() {
    let mut replica = primary(Limits::default(), &[1, 2], &[]);
    let mut out = Outbox::new();
    replica.on_tick(ms(2), &mut out);
    replica.propose(ms(2), Bytes::new(), &mut out);
    replica.on_tick(ms(2000), &mut out);
    assert!(!out.iter().any(|output| matches!(output, Output::RequestStrike { .. })));
}

/// A follower of view 1 that has four entries on disk, two of them stable.
fn follower(in_sync: &[u16], joining: &[u16]) -> Replica {
    let mut replica = block(2, Limits::default());
    let mut out = Outbox::new();
    replica.on_message(ms(0), member(1), append(1, id(0, 0), &[entry(1, 1)], 0), &mut out);
    assert!(out.is_empty(), "before its first assignment it listens to nobody");
    replica.on_assignment(ms(0), &assignment(1, 1, 1, in_sync, joining), &mut out);
    let entries: Vec<Entry> = (1..=4).map(|position| entry(1, position)).collect();
    replica.on_message(ms(0), member(1), append(1, id(0, 0), &entries, 2), &mut out);
    assert!(sent(&out).is_empty(), "acknowledged when durable");
    sync(&mut replica, ms(1), &mut out);
    assert_eq!(sent(&out), [&acknowledge(1, 4, 0)]);
    replica
}

#[test]
fn a_follower_says_only_what_it_has_compared() {
    let mut replica = follower(&[1, 2, 3], &[]);
    let mut out = Outbox::new();
    replica.on_assignment(ms(2), &assignment(2, 2, 3, &[2, 3], &[]), &mut out);
    out.clear();
    // The new primary has three of the four entries; without entries nothing shows that the fourth is void.
    replica.on_message(ms(3), member(3), append(2, id(1, 3), &[], 9), &mut out);
    assert_eq!(sent(&out), [&acknowledge(2, 3, 0)]);
    assert_eq!((replica.stable(), replica.last()), (Position(3), id(1, 4)));
    out.clear();
    replica.on_message(ms(4), member(3), append(2, id(1, 3), &[entry(2, 4)], 3), &mut out);
    assert!(out.contains(&Output::Cut { after: Position(3) }));
    assert!(sent(&out).is_empty(), "the new entry is not on disk, though the void one was");
    sync(&mut replica, ms(5), &mut out);
    assert_eq!(sent(&out), [&acknowledge(2, 4, 0)]);
    // The old primary is not heard any more.
    out.clear();
    replica.on_message(ms(6), member(1), append(1, id(1, 4), &[entry(1, 5)], 4), &mut out);
    assert!(out.is_empty());
}

#[test]
fn nothing_wrong_is_cut_or_panics() {
    let mut replica = follower(&[1, 2], &[]);
    let before = (replica.last(), replica.stable());
    let max = u64::MAX;
    for message in [
        append(1, id(1, 1), &[entry(1, 3)], 0),
        append(1, id(1, 4), &[entry(2, 5)], 0),
        append(1, id(1, 4), &[entry(0, 5)], 0),
        append(1, id(0, 4), &[entry(1, 5)], 0),
        append(1, id(1, max), &[entry(1, max)], max),
        append(1, id(1, max), &[], max),
        append(2, id(0, 0), &[entry(2, 1), entry(2, 2), entry(2, 3)], 3),
        append(2, id(2, 2), &[entry(2, 3)], 3),
        Message::CopyBegin {
            view: View(2),
            copy: 1,
            from: id(1, 9),
            stable: Position(10),
            history: vec![id(1, 9)],
            state: Bytes::new(),
        },
        Message::CopySlice { view: View(2), copy: 1, number: 0, at: Position(max), rows: Bytes::new(), last: true },
        Message::CopyTaken { view: View(2), copy: 1, number: Some(3) },
        Message::Mismatch {
            view: View(2),
            last: id(1, max),
            history: vec![id(1, max)],
            floor: Position(max),
            stable: id(1, max),
            contents: Contents::Whole,
        },
        acknowledge(2, max, max),
    ] {
        replica.on_message(ms(9), member(1), message, &mut Outbox::new());
        assert_eq!(replica.last(), before.0);
    }
    assert!(replica.stable() >= before.1 && replica.stable() <= before.0.position);
    let mut replica = primary(Limits::default(), &[1, 2], &[3]);
    for from in [2, 3, 4] {
        for view in [0, 1, 7] {
            for position in [0, 1, 2, max] {
                let mismatch = Message::Mismatch {
                    view: View(view),
                    last: id(1, position),
                    history: vec![id(1, position), id(0, 3)],
                    floor: Position(position),
                    stable: id(0, position),
                    contents: Contents::Partial,
                };
                let taken = Message::CopyTaken { view: View(view), copy: position, number: Some(1) };
                for message in [mismatch, taken, acknowledge(view, position, position), acknowledge(view, position, 0)]
                {
                    replica.on_message(ms(9), member(from), message, &mut Outbox::new());
                }
            }
        }
    }
    assert_eq!((replica.last(), replica.role()), (id(1, 1), Role::Primary));
}

#[test]
fn a_copy_that_comes_too_late_is_refused() {
    let begin = |copy, from| Message::CopyBegin {
        view: View(1),
        copy,
        from: id(1, from),
        stable: Position(1),
        history: vec![id(1, from)],
        state: Bytes::from_static(b"state"),
    };
    let mut out = Outbox::new();
    let mut in_sync = follower(&[1, 2], &[]);
    in_sync.on_message(ms(2), member(1), begin(1, 9), &mut out);
    let mut joiner = follower(&[1], &[2]);
    joiner.on_message(ms(2), member(1), begin(1, 4), &mut out);
    assert_eq!((in_sync.last(), joiner.last(), out.len()), (id(1, 4), id(1, 4), 0));
    joiner.on_message(ms(3), member(1), begin(2, 9), &mut out);
    assert_eq!((joiner.last(), joiner.contents(), joiner.stable()), (id(1, 9), Contents::Partial, Position(1)));
    sync(&mut joiner, ms(3), &mut out);
    out.clear();
    joiner.on_message(ms(3), member(1), begin(1, 12), &mut out);
    assert!(out.is_empty());
    // Slices: doubled ones once, later ones not at all; whole only with the entries up to where the last was read.
    let slice = |number, last| Message::CopySlice {
        view: View(1),
        copy: 2,
        number,
        at: Position(10),
        rows: Bytes::from_static(b"rows"),
        last,
    };
    joiner.on_message(ms(4), member(1), slice(1, true), &mut out);
    assert!(out.is_empty());
    joiner.on_message(ms(4), member(1), slice(0, false), &mut out);
    joiner.on_message(ms(4), member(1), slice(0, false), &mut out);
    joiner.on_message(ms(4), member(1), slice(1, true), &mut out);
    assert_eq!(out.iter().filter(|output| matches!(output, Output::Install { .. })).count(), 2);
    sync(&mut joiner, ms(5), &mut out);
    assert_eq!(joiner.contents(), Contents::Partial);
    let taken = |number| Message::CopyTaken { view: View(1), copy: 2, number };
    assert!(!sent(&out).contains(&&taken(Some(1))), "the last slice is taken when the copy is whole");
    out.clear();
    joiner.on_message(ms(6), member(1), append(1, id(1, 9), &[entry(1, 10)], 10), &mut out);
    assert!(out.contains(&Output::Finish) && joiner.contents() == Contents::Whole);
    assert!(!sent(&out).contains(&&taken(Some(1))), "and that on disk");
    sync(&mut joiner, ms(7), &mut out);
    assert!(sent(&out).contains(&&taken(Some(1))));
}

#[test]
fn a_log_that_contradicts_itself_is_refused() {
    let record = |entry: Entry, stable| LogRecord::Entry { entry, stable: Position(stable) };
    let mut steps = Vec::new();
    let mut replay = Replay::new(1000);
    assert!(Replay::new(1000).finish().is_none());
    replay.push(record(entry(1, 1), 0), &mut steps).unwrap();
    replay.push(record(entry(1, 2), 1), &mut steps).unwrap();
    replay.push(record(entry(2, 2), 1), &mut steps).unwrap();
    // What was stable before an entry is told before it.
    let stable = Step::Stable { upto: Position(1) };
    assert_eq!(steps[1..3], [stable, Step::Entry { entry: entry(1, 2) }]);
    assert_eq!(steps[3..], [Step::Cut { after: Position(1) }, Step::Entry { entry: entry(2, 2) }]);
    assert_eq!(replay.push(record(entry(2, 4), 1), &mut steps), Err(ReplayError::Gap { position: 4, last: 2 }));
    let cut = ReplayError::CutStable { position: 1, stable: 1 };
    assert_eq!(replay.push(record(entry(3, 1), 1), &mut steps), Err(cut));
    let restored = replay.finish().unwrap();
    assert_eq!((restored.stable, restored.kept.len()), (Position(1), 2));
    // A log whose beginning is gone and that has no anchor is not whole.
    let mut replay = Replay::new(1000);
    replay.push(record(entry(1, 7), 0), &mut steps).unwrap();
    assert_eq!(replay.finish().unwrap().contents, Contents::Partial);
}

#[test]
fn an_acknowledgement_of_another_process_counts_for_nobody() {
    let mut replica = primary(Limits::default(), &[1, 2], &[]);
    let mut out = Outbox::new();
    replica.propose(ms(2), Bytes::new(), &mut out);
    sync(&mut replica, ms(2), &mut out);
    for number in [1, 3] {
        let other = Member { node: NodeId(2), process: ProcessId(number) };
        replica.on_message(ms(3), other, acknowledge(1, 2, 0), &mut out);
    }
    replica.on_message(ms(3), member(2), acknowledge(2, 2, 0), &mut out);
    replica.on_message(ms(3), member(2), acknowledge(0, 2, 0), &mut out);
    assert_eq!(replica.stable(), Position(1));
    replica.on_message(ms(3), member(2), acknowledge(1, 2, 0), &mut out);
    assert_eq!(replica.stable(), Position(2));
}

#[test]
fn half_a_copy_does_not_lead() {
    let (stable, history) = (Position(3), vec![id(1, 4)]);
    let restored = Restored { contents: Contents::Partial, stable, history, kept: vec![entry(1, 4)] };
    let mut replica = Replica::new(GROUP, member(1), Limits::default(), Some(restored));
    let mut out = Outbox::new();
    replica.on_assignment(ms(0), &assignment(1, 2, 1, &[1], &[]), &mut out);
    assert_eq!((replica.role(), replica.last()), (Role::Follower, id(1, 4)));
    assert!(!replica.copies_in());
}

#[test]
fn a_void_entry_on_disk_says_nothing_of_the_one_in_its_place() {
    let mut replica = follower(&[1, 2, 3], &[]);
    let mut out = Outbox::new();
    replica.on_assignment(ms(2), &assignment(2, 2, 3, &[2, 3], &[]), &mut out);
    replica.on_message(ms(3), member(3), append(2, id(1, 3), &[entry(2, 4), entry(2, 5)], 3), &mut out);
    out.clear();
    replica.on_tick(ms(30), &mut out);
    let (received, durable, contents) = (Position(5), Position(3), Contents::Whole);
    assert_eq!(sent(&out), [&Message::Acknowledge { view: View(2), received, durable, copy: 0, contents }]);
}

#[test]
fn entries_do_not_bring_up_what_cannot_be_cut() {
    let mut replica = primary(Limits::default(), &[1], &[2]);
    let mismatch = |floor| Message::Mismatch {
        view: View(1),
        last: id(0, 0),
        history: vec![],
        floor: Position(floor),
        stable: id(0, 0),
        contents: Contents::Whole,
    };
    let mut out = Outbox::new();
    replica.on_message(ms(100), member(2), mismatch(0), &mut out);
    assert!(matches!(sent(&out)[..], [Message::Append { previous: EntryId { position: Position(0), .. }, .. }]));
    out.clear();
    replica.on_message(ms(200), member(2), mismatch(1), &mut out);
    assert_eq!(out, [Output::ReadState { to: member(2) }]);
    // A joiner whose copy began behind what the new primary has.
    let mut joiner = follower(&[1], &[2]);
    let begin = Message::CopyBegin {
        view: View(1),
        copy: 1,
        from: id(1, 9),
        stable: Position(2),
        history: vec![id(1, 9)],
        state: Bytes::new(),
    };
    joiner.on_message(ms(1), member(1), begin, &mut out);
    let rows =
        Message::CopySlice { view: View(1), copy: 1, number: 0, at: Position(9), rows: Bytes::new(), last: true };
    joiner.on_message(ms(1), member(1), rows, &mut out);
    sync(&mut joiner, ms(2), &mut out);
    assert_eq!(joiner.contents(), Contents::Whole);
    joiner.on_assignment(ms(3), &assignment(2, 2, 3, &[3], &[2]), &mut out);
    for (time, entries) in [(4, 3..=8), (40, 3..=12)] {
        out.clear();
        let entries: Vec<Entry> = entries.map(|position| entry(2, position)).collect();
        joiner.on_message(ms(time), member(3), append(2, id(1, 2), &entries, 2), &mut out);
        let [Message::Mismatch { last, floor, .. }] = sent(&out)[..] else { panic!("{out:?}") };
        assert_eq!((*last, *floor), (id(1, 9), Position(9)));
    }
}

/// Messages between the blocks, until there are none: `out` is what the first one wants. Gives the wishes that are no messages or records.
fn talk(first: &mut Replica, second: &mut Replica, now: Duration, mut out: Outbox) -> Outbox {
    let mut wishes = Outbox::new();
    for turn in 0..100 {
        let (from, to) = if turn % 2 == 0 { (&mut *first, &mut *second) } else { (&mut *second, &mut *first) };
        sync(from, now, &mut out);
        let sender = from.me();
        let mut answers = Outbox::new();
        for output in std::mem::take(&mut out) {
            match output {
                Output::Send { message, .. } => to.on_message(now, sender, message, &mut answers),
                Output::Log { .. } => {}
                other => wishes.push(other),
            }
        }
        out = answers;
    }
    wishes
}

/// A replica out of a disk that has entries of view 1 up to `last`, the stable one of which is `stable`.
fn restored(me: u16, limits: Limits, last: u64, stable: u64) -> Replica {
    let kept = (1..=last).map(|position| entry(1, position)).collect();
    let restored = Restored { contents: Contents::Whole, stable: Position(stable), history: vec![id(1, last)], kept };
    Replica::new(GROUP, member(me), limits, Some(restored))
}

/// Rule 38: the disk of the primary has gone back, and the follower has what it acknowledged since; also where the follower does not keep the entries any more.
#[test]
fn a_primary_that_lacks_a_stable_entry_hears_of_it() {
    for kept_bytes in [300, 16 << 20] {
        let limits = Limits { kept_bytes, ..Limits::default() };
        let (mut primary, mut follower) = (restored(1, limits, 5, 4), restored(2, limits, 20, 0));
        let mut out = Outbox::new();
        let old = assignment(1, 1, 1, &[1, 2], &[]);
        follower.on_assignment(ms(1), &old, &mut out);
        follower.on_message(ms(1), member(1), append(1, id(1, 20), &[], 18), &mut out);
        assert_eq!(follower.stable(), Position(18));
        let new = assignment(2, 2, 1, &[1, 2], &[]);
        follower.on_assignment(ms(2), &new, &mut Outbox::new());
        let mut out = Outbox::new();
        primary.on_assignment(ms(2), &new, &mut out);
        let mut wishes = talk(&mut primary, &mut follower, ms(3), out);
        for time in (10..1000).step_by(10) {
            let mut out = Outbox::new();
            primary.on_tick(ms(time), &mut out);
            wishes.extend(talk(&mut primary, &mut follower, ms(time), out));
        }
        let lacking = Output::Lacking { member: member(2), stable: id(1, 18) };
        assert!(wishes.contains(&lacking), "{kept_bytes} {wishes:?}");
        assert_eq!((primary.role(), follower.last()), (Role::Opening, id(1, 20)), "{kept_bytes}");
    }
}

/// A follower whose disk has gone back does not answer reads before it has what the others have acknowledged.
#[test]
fn a_follower_is_current_when_it_has_what_was_stable() {
    let mut follower = restored(2, Limits::default(), 5, 4);
    let named = assignment(2, 1, 1, &[1, 2], &[]);
    let mut out = Outbox::new();
    follower.on_assignment(ms(1), &named, &mut out);
    let entries = |range: std::ops::RangeInclusive<u64>| range.map(|position| entry(1, position)).collect::<Vec<_>>();
    for (previous, append_to, is_current) in [(7, 9, false), (5, 8, false), (8, 17, false), (17, 18, true)] {
        follower.on_message(
            ms(2),
            member(1),
            append(1, id(1, previous), &entries(previous + 1..=append_to), 18),
            &mut out,
        );
        assert_eq!(follower.is_current(), is_current, "{previous}..{append_to}");
    }
    follower.on_assignment(ms(3), &assignment(3, 2, 3, &[2, 3], &[]), &mut out);
    assert!(!follower.is_current(), "nobody of the new view has spoken");
}

/// A primary that has just begun may know less to be stable than what its clients were told: another in-sync member may have it.
#[test]
fn a_follower_is_current_when_the_opening_is_stable() {
    let mut follower = restored(2, Limits::default(), 5, 4);
    let mut out = Outbox::new();
    follower.on_assignment(ms(1), &assignment(2, 2, 1, &[1, 2, 3], &[]), &mut out);
    let old: Vec<_> = (6..=8).map(|position| entry(1, position)).collect();
    let mut tell = |previous, entries: &[Entry], stable, is_current| {
        follower.on_message(ms(2), member(1), append(2, previous, entries, stable), &mut out);
        assert_eq!(follower.is_current(), is_current, "{previous:?}, stable {stable}");
    };
    tell(id(1, 5), &old, 5, false);
    tell(id(1, 8), &[entry(2, 9)], 5, false);
    tell(id(2, 9), &[], 8, false);
    tell(id(2, 9), &[], 9, true);
}

/// What is not known to be stable a primary may lack for good reasons; what a joiner has is replaced, and the caller is told once.
#[test]
fn a_primary_lacks_nothing_that_is_not_stable() {
    let (mut primary, mut follower) = (restored(1, Limits::default(), 5, 4), restored(2, Limits::default(), 20, 5));
    let named = assignment(2, 2, 1, &[1, 2], &[]);
    follower.on_assignment(ms(2), &named, &mut Outbox::new());
    let mut out = Outbox::new();
    primary.on_assignment(ms(2), &named, &mut out);
    let wishes = talk(&mut primary, &mut follower, ms(3), out);
    assert!(!wishes.iter().any(|wish| matches!(wish, Output::Lacking { .. } | Output::Discards { .. })), "{wishes:?}");
    assert_eq!((primary.role(), follower.last()), (Role::Primary, id(2, 6)));

    let (mut primary, mut joiner) = (restored(1, Limits::default(), 5, 4), restored(2, Limits::default(), 20, 18));
    let named = assignment(2, 2, 1, &[1], &[2]);
    joiner.on_assignment(ms(2), &named, &mut Outbox::new());
    let mut out = Outbox::new();
    primary.on_assignment(ms(2), &named, &mut out);
    let mut wishes = talk(&mut primary, &mut joiner, ms(3), out);
    for time in (10..200).step_by(10) {
        let mut out = Outbox::new();
        primary.on_tick(ms(time), &mut out);
        wishes.extend(talk(&mut primary, &mut joiner, ms(time), out));
    }
    let discards = Output::Discards { member: member(2), stable: id(1, 18) };
    assert_eq!(wishes.iter().filter(|wish| **wish == discards).count(), 1, "{wishes:?}");
    assert!(!wishes.iter().any(|wish| matches!(wish, Output::Lacking { .. })), "{wishes:?}");
}

#[test]
fn who_has_just_joined_is_not_blamed_for_the_time_before() {
    let mut replica = primary(Limits::default(), &[1], &[2]);
    let mut out = Outbox::new();
    replica.on_message(ms(2), member(2), acknowledge(1, 1, 0), &mut out);
    replica.on_assignment(ms(3), &assignment(2, 1, 1, &[1, 2], &[]), &mut out);
    for time in (3..800).step_by(10) {
        replica.on_tick(ms(time), &mut out);
    }
    replica.propose(ms(800), Bytes::new(), &mut out);
    for time in (800..1140).step_by(10) {
        replica.on_tick(ms(time), &mut out);
    }
    let strike = Output::RequestStrike { version: 2, member: member(2) };
    assert!(!out.contains(&strike));
    for time in (1140..1200).step_by(10) {
        replica.on_tick(ms(time), &mut out);
    }
    assert!(out.contains(&strike));
    // The first opening of all waits for answers as well.
    let mut replica = block(1, Limits::default());
    replica.on_assignment(ms(0), &assignment(1, 1, 1, &[1, 2], &[]), &mut out);
    out.clear();
    for time in (0..400).step_by(10) {
        replica.on_tick(ms(time), &mut out);
    }
    assert!(out.contains(&Output::RequestStrike { version: 1, member: member(2) }));
}

#[test]
fn nobody_joins_before_what_was_there_when_it_came_is_stable() {
    let mut replica = primary(Limits::default(), &[1, 3], &[]);
    let mut out = Outbox::new();
    for _ in 0..4 {
        replica.propose(ms(2), Bytes::new(), &mut out);
    }
    sync(&mut replica, ms(2), &mut out);
    replica.on_assignment(ms(3), &assignment(2, 1, 1, &[1, 3], &[2]), &mut out);
    replica.on_message(ms(4), member(2), acknowledge(1, 5, 0), &mut out);
    let join = Output::RequestJoin { version: 2, member: member(2) };
    assert_eq!((replica.stable(), out.contains(&join)), (Position(1), false));
    replica.on_message(ms(5), member(3), acknowledge(1, 5, 0), &mut out);
    replica.on_tick(ms(6), &mut out);
    assert_eq!((replica.stable(), out.contains(&join)), (Position(5), true));
}

#[test]
fn what_an_entry_rests_on_is_stable_before_it() {
    let mut replica = follower(&[1, 2], &[]);
    let mut out = Outbox::new();
    replica.on_message(ms(2), member(1), append(1, id(1, 4), &[entry(1, 5), entry(1, 6)], 5), &mut out);
    let told: Vec<_> = out
        .iter()
        .filter_map(|output| match output {
            Output::Received { entry } => Some((true, entry.id.position.0)),
            Output::Stable { upto } => Some((false, upto.0)),
            _ => None,
        })
        .collect();
    assert_eq!(told, [(false, 4), (true, 5), (false, 5), (true, 6)]);
    let logged = out.iter().filter_map(|output| match output {
        Output::Log { record: LogRecord::Entry { stable, .. }, .. } => Some(stable.0),
        _ => None,
    });
    assert_eq!(logged.collect::<Vec<_>>(), [4, 5]);
}

#[test]
fn a_copy_in_the_log_counts_with_its_beginning_only() {
    let anchor = LogRecord::Anchor {
        last: id(1, 4),
        stable: Position(4),
        history: vec![id(1, 4)],
        kept: vec![],
        contents: Contents::Partial,
        state: Bytes::new(),
    };
    let (from, stable, history) = (id(1, 4), Position(4), vec![id(1, 4)]);
    let reset = LogRecord::Reset { from, stable, history, state: Bytes::new() };
    let rows = LogRecord::Rows { rows: Bytes::new() };
    let replayed = |records: &[&LogRecord]| {
        let mut replay = Replay::new(1000);
        for record in records {
            replay.push((*record).clone(), &mut Vec::new()).unwrap();
        }
        replay.finish().unwrap().contents
    };
    assert_eq!(replayed(&[&anchor, &rows, &LogRecord::Whole]), Contents::Partial);
    assert_eq!(replayed(&[&reset, &rows, &anchor, &rows, &LogRecord::Whole]), Contents::Whole);
    assert_eq!(replayed(&[&anchor, &reset, &rows, &LogRecord::Whole]), Contents::Whole);
    assert_eq!(replayed(&[&reset, &rows]), Contents::Partial);
}

/// What a joiner gives up, for want of room say, is brought again.
#[test]
fn a_copy_that_was_given_up_is_begun_anew() {
    let limits = Limits { kept_bytes: 300, ..Limits::default() };
    let (mut primary, mut joiner) = (restored(1, limits, 20, 19), block(2, limits));
    let named = assignment(2, 2, 1, &[1], &[2]);
    joiner.on_assignment(ms(2), &named, &mut Outbox::new());
    let mut out = Outbox::new();
    primary.on_assignment(ms(2), &named, &mut out);
    let mut wishes = talk(&mut primary, &mut joiner, ms(3), out);
    let (mut begun, mut given_up) = (0, false);
    for time in (10..4000).step_by(10) {
        let mut out = Outbox::new();
        for wish in std::mem::take(&mut wishes) {
            match wish {
                Output::ReadState { to } => primary.on_copy_state(ms(time), to, Bytes::new(), &mut out),
                Output::ReadSlice { to, copy, .. } => {
                    begun += 1;
                    if given_up {
                        let last = primary.last().position;
                        primary.on_slice(ms(time), to, copy, last, Bytes::new(), None, &mut out);
                    }
                }
                _ => {}
            }
        }
        if begun == 1 && !std::mem::replace(&mut given_up, true) {
            joiner.give_copy_up();
            primary.propose(ms(time), Bytes::from_static(b"x"), &mut out);
        }
        primary.on_tick(ms(time), &mut out);
        wishes.extend(talk(&mut primary, &mut joiner, ms(time), out));
    }
    assert!(given_up && begun > 1, "{begun}");
    assert_eq!((joiner.contents(), joiner.last()), (Contents::Whole, primary.last()));
}
