//! Whatever is written is read again as it was, and whatever else is read does no harm.

#[allow(dead_code)] // The golden bytes use all of it.
mod messages;

use proptest::collection::vec;
use proptest::prelude::*;
use rauk_types::{Date, DateTime, Decimal, ErrorClass, IndexId, NodeId, TableId, Time, Value, ValueRef};
use rauk_wire::batch::{BatchOptions, Isolation, OpKind, Outcome};
use rauk_wire::hello::{Challenge, Hello, Proof, Refusal, Refused, Role, Welcome};
use rauk_wire::placement::{PlacedNode, Placement};
use rauk_wire::read::Reader;
use rauk_wire::scan::{PageBuilder, PageReader, PageRow, Scan};
use rauk_wire::{
    AnswerBuilder, AnswerReader, Batch, BatchBuilder, CompareOp, Failure, Filter, LockWish, Shape, Values, Wanted,
    fuzz, value,
};
use std::ops::Bound;

fn date() -> impl Strategy<Value = Date> {
    (0..=9999u16, 0..=12u8, 0..=31u8).prop_map(|(year, month, day)| Date::from_parts(year, month, day))
}

fn a_value() -> impl Strategy<Value = Value> {
    let integer = prop_oneof![any::<i64>(), any::<i8>().prop_map(i64::from), any::<i32>().prop_map(i64::from)];
    prop_oneof![
        Just(Value::Null),
        integer.prop_map(Value::Int),
        prop_oneof![any::<u64>(), any::<u16>().prop_map(u64::from)].prop_map(Value::UInt),
        (-1e300..1e300f64).prop_map(Value::Double),
        (any::<i128>(), 0..=30u8).prop_map(|(unscaled, scale)| Value::Decimal(Decimal::new(unscaled, scale))),
        ("-?[1-9][0-9]{30,64}", 0..=30u8).prop_map(|(digits, scale)| {
            let whole: Decimal = digits.parse().unwrap();
            Value::Decimal(Decimal::from_unscaled(whole.unscaled(), scale).unwrap())
        }),
        date().prop_map(Value::Date),
        (Time::MIN.micros()..=Time::MAX.micros()).prop_map(|micros| Value::Time(Time::from_micros(micros).unwrap())),
        (date(), 0..86_400_000_000i64).prop_map(|(date, micros)| Value::DateTime(DateTime::new(date, micros))),
        prop_oneof![Just(0), 1_000_000..=2_147_483_647_999_999i64].prop_map(Value::Timestamp),
        ".{0,40}".prop_map(Value::Str),
        vec(any::<u8>(), 0..40).prop_map(Value::Bytes),
    ]
}

fn filter() -> impl Strategy<Value = Filter> {
    let op = prop_oneof![
        Just(CompareOp::Equal),
        Just(CompareOp::NotEqual),
        Just(CompareOp::Less),
        Just(CompareOp::LessOrEqual),
        Just(CompareOp::Greater),
        Just(CompareOp::GreaterOrEqual),
    ];
    let leaf = prop_oneof![
        (0..1017u16, op, a_value()).prop_map(|(column, op, value)| Filter::Compare { column, op, value }),
        (0..1017u16).prop_map(|column| Filter::IsNull { column }),
        (0..1017u16, vec(any::<u8>(), 0..20)).prop_map(|(column, prefix)| Filter::StartsWith { column, prefix }),
    ];
    leaf.prop_recursive(6, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Filter::And),
            vec(inner.clone(), 0..5).prop_map(Filter::Or),
            inner.prop_map(|part| Filter::Not(Box::new(part))),
        ]
    })
}

fn wanted() -> impl Strategy<Value = Wanted> {
    prop_oneof![Just(Wanted::Nothing), Just(Wanted::Row), vec(0..1017u16, 0..6).prop_map(Wanted::Columns)]
}

fn lock() -> impl Strategy<Value = LockWish> {
    use LockWish::*;
    let all = [None, Shared, Exclusive, SharedNoWait, ExclusiveNoWait, SharedSkipLocked, ExclusiveSkipLocked];
    prop::sample::select(all.to_vec())
}

fn shape() -> impl Strategy<Value = Shape> {
    use OpKind::*;
    let kind = prop::sample::select(vec![Read, Insert, Update, Write, Delete, Increment]);
    let rest = (any::<u32>(), any::<u32>(), any::<u16>(), lock(), any::<bool>(), vec(0..1017u16, 0..5), wanted());
    (kind, rest).prop_map(|(kind, (table, version, index, lock, conditional, columns, wanted))| Shape {
        table: TableId(table),
        version,
        kind,
        index: IndexId(index),
        lock,
        conditional: conditional && kind.may_be_conditional(),
        columns: if kind.has_values() { columns } else { Vec::new() },
        wanted,
    })
}

fn options() -> impl Strategy<Value = BatchOptions> {
    let isolation =
        prop::sample::select(vec![Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]);
    (any::<[bool; 4]>(), isolation, any::<u32>()).prop_map(
        |([begin, commit, stop, read_only], isolation, lock_wait_ms)| BatchOptions {
            begin,
            commit,
            stop_at_failure: stop,
            isolation,
            read_only,
            lock_wait_ms,
        },
    )
}

fn failure() -> impl Strategy<Value = Failure> {
    use ErrorClass::*;
    let class = prop::sample::select(vec![Temporary, Permanent, UnknownOutcome, Fatal]);
    (any::<u16>(), class, any::<bool>(), ".{0,60}").prop_map(|(code, class, ended, message)| Failure {
        code,
        class,
        ended,
        message,
    })
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        Just(Bound::Unbounded),
        vec(any::<u8>(), 0..200).prop_map(Bound::Included),
        vec(any::<u8>(), 0..200).prop_map(Bound::Excluded),
    ]
}

fn scan() -> impl Strategy<Value = Scan> {
    let flags = (any::<[bool; 3]>(), lock(), prop::option::of(any::<u16>()), prop::option::of(any::<u16>()));
    let numbers = (any::<u32>(), any::<u32>(), any::<u64>(), any::<u32>(), any::<u32>());
    let wanted = prop_oneof![Just(Wanted::Row), vec(0..1017u16, 0..6).prop_map(Wanted::Columns)];
    (flags, numbers, bound(), bound(), prop::option::of(filter()), wanted).prop_map(
        |(([reverse, ordered, begin], lock, index, partition), numbers, low, high, filter, wanted)| Scan {
            table: TableId(numbers.0),
            version: numbers.1,
            index: index.map(IndexId),
            low,
            high,
            reverse,
            ordered,
            lock,
            partition,
            limit: numbers.2,
            page_rows: numbers.3,
            page_bytes: numbers.4,
            filter,
            wanted,
            begin,
        },
    )
}

fn values_of(count: u16, bytes: &[u8]) -> Vec<Value> {
    let mut read = Vec::new();
    Values::new(count.into(), bytes).read(&mut read).unwrap();
    read.into_iter().map(ValueRef::to_owned).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn values(values in vec(a_value(), 0..20)) {
        let mut bytes = Vec::new();
        values.iter().for_each(|v| value::put(v.as_ref(), &mut bytes));
        prop_assert_eq!(&values_of(values.len() as u16, &bytes), &values);
        let mut skipped = Reader::new(&bytes, "test");
        for _ in &values {
            value::skip(&mut skipped).unwrap();
        }
        prop_assert_eq!(skipped.remaining(), 0);
        // A decimal's scale stays, too.
        let mut again = Vec::new();
        values_of(values.len() as u16, &bytes).iter().for_each(|v| value::put(v.as_ref(), &mut again));
        prop_assert_eq!(again, bytes);
    }

    #[test]
    fn filters(filter in filter()) {
        let mut bytes = Vec::new();
        filter.encode(&mut bytes);
        let mut reader = Reader::new(&bytes, "test");
        prop_assert_eq!(Filter::decode(&mut reader).unwrap(), filter);
        prop_assert_eq!(reader.remaining(), 0);
    }

    #[test]
    fn batches(
        options in options(),
        shapes in vec(shape(), 1..5),
        wishes in vec((any::<prop::sample::Index>(), vec(any::<u8>(), 0..300), vec(a_value(), 5), filter(), 0..10u32), 0..20),
    ) {
        let mut builder = BatchBuilder::new(vec![1, 2, 3], &options, &shapes);
        for (number, (which, key, values, filter, special)) in wishes.iter().enumerate() {
            let shape = which.index(shapes.len());
            let form = &shapes[shape];
            let values = values[..form.columns.len()].iter().map(Value::as_ref);
            let condition = form.conditional.then_some(filter);
            let given = match (special, form.kind.has_key(), form.kind.has_values()) {
                (0, ..) => builder.savepoint(),
                (1, ..) => builder.rollback_to(number as u32),
                (_, true, false) => builder.key(shape as u16, key, condition),
                (_, false, _) => builder.values(shape as u16, values),
                (_, true, true) => builder.key_and_values(shape as u16, key, values, condition),
            };
            prop_assert_eq!(usize::from(given), number);
        }
        prop_assert_eq!(builder.len(), wishes.len());
        let length = builder.bytes();
        let payload = builder.finish();
        prop_assert_eq!(payload.len(), 3 + length);
        let batch = Batch::parse(&payload[3..]).unwrap();
        prop_assert_eq!((batch.options, &batch.shapes, batch.operations), (options, &shapes, wishes.len()));
        let mut count = 0;
        for (operation, (number, (which, key, values, filter, special))) in batch.operations().zip(wishes.iter().enumerate()) {
            let operation = operation.unwrap();
            count += 1;
            if *special < 2 {
                let expected = if *special == 0 { OpKind::Savepoint } else { OpKind::RollbackTo };
                prop_assert_eq!((operation.shape, operation.kind), (None, expected));
                prop_assert_eq!(operation.key, if *special == 0 { Vec::new() } else { (number as u32).to_le_bytes().to_vec() });
                continue;
            }
            let shape = which.index(shapes.len());
            let form = &shapes[shape];
            prop_assert_eq!((operation.shape, operation.kind), (Some(shape as u16), form.kind));
            prop_assert_eq!(operation.key, if form.kind.has_key() { key.as_slice() } else { &[] });
            let mut read = Vec::new();
            operation.values.read(&mut read).unwrap();
            prop_assert!(read.iter().copied().eq(values[..form.columns.len()].iter().map(Value::as_ref)));
            prop_assert_eq!(operation.condition.as_deref(), form.conditional.then_some(filter));
        }
        prop_assert_eq!(count, wishes.len());
    }

    #[test]
    fn answers(
        entries in vec((any::<u16>(), 0..10u8, vec(a_value(), 0..5), vec(any::<u8>(), 0..300), failure()), 0..20),
        taken_back in vec((0..10u8, failure()), 0..5),
        flags in any::<(bool, bool)>(),
    ) {
        let mut builder = AnswerBuilder::new(vec![9]);
        let write = |builder: &mut AnswerBuilder, operation: u16, kind: u8, values: &[Value], bytes: &[u8], failure: &Failure| match kind {
            0 => builder.done(operation, None),
            1 => builder.row(operation, failure.code, bytes),
            2 => builder.columns(operation, values.iter().map(Value::as_ref)),
            3 => builder.missing(operation),
            4 => builder.duplicate(operation, IndexId(failure.code)),
            5 => builder.condition_false(operation),
            6 => builder.savepoint(operation, u32::from(failure.code) << 7),
            7 => builder.not_executed(operation),
            8 => builder.failed(operation, failure),
            _ => builder.done(operation, Some(u64::from(failure.code) << 40)),
        };
        for (operation, kind, values, bytes, failure) in &entries {
            write(&mut builder, *operation, *kind, values, bytes, failure);
            let mark = builder.bytes();
            for (kind, failure) in &taken_back {
                write(&mut builder, 7, *kind, values, bytes, failure);
            }
            builder.truncate(mark);
        }
        let payload = builder.finish(flags.0, flags.1);
        let mut reader = AnswerReader::parse(&payload[1..]).unwrap();
        prop_assert_eq!((reader.answer.committed, reader.answer.ended), flags);
        prop_assert_eq!(usize::from(reader.answer.entries), entries.len());
        for (operation, kind, values, bytes, failure) in &entries {
            let (read, outcome) = reader.next_entry().unwrap().unwrap();
            prop_assert_eq!(read, *operation);
            let expected = match kind {
                0 => Outcome::Done { generated: None },
                1 => Outcome::Row { layout: failure.code, bytes },
                2 => {
                    let Outcome::Columns { count, bytes } = outcome else { panic!("{outcome:?}") };
                    prop_assert_eq!(&values_of(count, bytes), values);
                    continue;
                }
                3 => Outcome::Missing,
                4 => Outcome::Duplicate { index: IndexId(failure.code) },
                5 => Outcome::ConditionFalse,
                6 => Outcome::Savepoint(u32::from(failure.code) << 7),
                7 => Outcome::NotExecuted,
                8 => Outcome::Failed(failure.clone()),
                _ => Outcome::Done { generated: Some(u64::from(failure.code) << 40) },
            };
            prop_assert_eq!(outcome, expected);
        }
        prop_assert_eq!(reader.next_entry(), Ok(None));
    }

    #[test]
    fn scans(scan in scan()) {
        let mut bytes = Vec::new();
        scan.encode(&mut bytes);
        prop_assert_eq!(Scan::decode(&bytes).unwrap(), scan);
    }

    #[test]
    fn pages(scan in any::<u64>(), rows in vec((any::<bool>(), any::<u16>(), vec(any::<u8>(), 0..200), vec(a_value(), 0..5)), 0..20)) {
        let mut builder = PageBuilder::new(vec![4; 4]);
        for (whole, layout, bytes, values) in &rows {
            if *whole { builder.row(*layout, bytes) } else { builder.columns(values.iter().map(Value::as_ref)) }
        }
        prop_assert_eq!(builder.rows() as usize, rows.len());
        let payload = builder.finish(scan);
        let mut reader = PageReader::parse(&payload[4..]).unwrap();
        prop_assert_eq!((reader.scan, reader.rows as usize), (scan, rows.len()));
        for (whole, layout, bytes, values) in &rows {
            match reader.next_row().unwrap().unwrap() {
                PageRow::Row { layout: l, bytes: b } => prop_assert_eq!((true, l, b), (*whole, *layout, bytes.as_slice())),
                PageRow::Columns { count, bytes } => prop_assert_eq!((false, &values_of(count, bytes)), (*whole, values)),
            }
        }
        prop_assert_eq!(reader.next_row(), Ok(None));
    }

    #[test]
    fn handshakes(
        versions in (any::<u16>(), any::<u16>()),
        cluster in any::<[u8; 16]>(),
        nonce in any::<[u8; 32]>(),
        proof in prop::option::of(any::<[u8; 32]>()),
        numbers in any::<(u64, u32, u32)>(),
        yes in any::<bool>(),
        text in ".{0,60}",
        reason in prop::sample::select(vec![Refusal::Version, Refusal::Cluster, Refusal::Credentials, Refusal::TooManyConnections, Refusal::ShuttingDown, Refusal::Malformed]),
    ) {
        let (oldest, newest) = (versions.0.min(versions.1), versions.0.max(versions.1));
        let role = if yes { Role::Client } else { Role::Node };
        let hello = Hello { oldest, newest, role, cluster, nonce, has_secret: yes, name: text.clone() };
        let challenge = Challenge { version: oldest, cluster, incarnation: numbers.0, nonce, wants_secret: yes };
        let welcome = Welcome { proof, connection: numbers.0, max_payload: numbers.1, max_requests: numbers.2 };
        let refused = Refused { reason, message: text, oldest, newest };
        let mut bytes = Vec::new();
        hello.encode(&mut bytes);
        prop_assert_eq!(Hello::decode(&bytes).unwrap(), hello);
        bytes.clear();
        challenge.encode(&mut bytes);
        prop_assert_eq!(Challenge::decode(&bytes).unwrap(), challenge);
        bytes.clear();
        Proof { proof }.encode(&mut bytes);
        prop_assert_eq!(Proof::decode(&bytes).unwrap(), Proof { proof });
        bytes.clear();
        welcome.encode(&mut bytes);
        prop_assert_eq!(Welcome::decode(&bytes).unwrap(), welcome);
        bytes.clear();
        refused.encode(&mut bytes);
        prop_assert_eq!(Refused::decode(&bytes).unwrap(), refused);
    }

    #[test]
    fn placements(
        version in 1..=u32::MAX,
        here in 1..=u16::MAX,
        (spread, groups) in (1..64u16).prop_flat_map(|spread| (Just(spread), 1..=spread)),
        nodes in prop::collection::btree_map(1..=u16::MAX, ".{1,60}", 0..10),
        leader in vec(any::<u16>(), 64),
        bucket in 0..=rauk_types::layout::EVERYWHERE,
    ) {
        let nodes = nodes.into_iter().map(|(node, address)| PlacedNode { node: NodeId(node), address }).collect();
        let leaders = leader[..usize::from(groups) + 1].iter().map(|leader| NodeId(*leader)).collect();
        let placement = Placement { version, here: NodeId(here), spread, groups, nodes, leaders };
        let mut bytes = Vec::new();
        placement.encode(&mut bytes);
        let read = Placement::decode(&bytes).unwrap();
        prop_assert_eq!(&read, &placement);
        let leader = read.leader(read.layout().unwrap(), bucket);
        prop_assert!(leader.is_none_or(|leader| placement.leaders.contains(&leader)));
    }

    #[test]
    fn failures(failure in failure()) {
        let mut bytes = Vec::new();
        failure.encode(&mut bytes);
        prop_assert_eq!(Failure::decode(&bytes).unwrap(), failure);
    }

    #[test]
    fn garbage_does_no_harm(data in vec(any::<u8>(), 0..400)) {
        fuzz::fuzz_signal(&data);
    }

    /// Right messages, damaged in a few places, with and without a frame around them.
    #[test]
    fn nearly_right(
        which in any::<prop::sample::Index>(),
        framed in any::<bool>(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 0..4),
    ) {
        let messages = messages::all();
        let message = which.get(&messages);
        let mut data = if framed { message.frame() } else { message.payload.clone() };
        for (at, with, how) in damage {
            if data.is_empty() {
                break;
            }
            let at = at.index(data.len());
            match how {
                0 => data[at] = with,
                1 => data.truncate(at),
                2 => data[at] = 0xFF,
                _ => data.insert(at, with),
            }
        }
        fuzz::fuzz_signal(&data);
    }
}

/// Names and texts that are too long are cut between characters; a hello of a version to come may have more fields.
#[test]
fn handshakes_at_their_limits() {
    let hello = Hello { name: "é".repeat(200), ..messages::hello() };
    let mut bytes = Vec::new();
    hello.encode(&mut bytes);
    assert_eq!(Hello::decode(&bytes).unwrap().name, "é".repeat(127));
    let refused = Refused { message: "x".repeat(5000), ..messages::refused() };
    bytes.clear();
    refused.encode(&mut bytes);
    assert!(bytes.len() < rauk_wire::MAX_HANDSHAKE);
    assert_eq!(Refused::decode(&bytes).unwrap().message, "x".repeat(1024));
    for (newest, right) in [(1, false), (2, true)] {
        bytes.clear();
        Hello { newest, ..messages::hello() }.encode(&mut bytes);
        bytes.extend_from_slice(b"what version 2 has more");
        assert_eq!(Hello::decode(&bytes).is_ok(), right);
    }
    bytes.clear();
    Hello { oldest: 3, newest: 2, ..messages::hello() }.encode(&mut bytes);
    assert!(Hello::decode(&bytes).is_err());
}

/// Dates, times and decimals that no constructor makes.
#[test]
fn values_out_of_range() {
    let number = |kind: u8, bits: u64| [&[kind << 4 | 8][..], &bits.to_le_bytes()].concat();
    let date = |year: u64, month: u64, day: u64| year << 9 | month << 5 | day;
    let wrong = [
        number(5, date(10_000, 1, 1)),
        number(5, date(2024, 13, 1)),
        number(5, u64::MAX),
        number(7, date(2024, 13, 1) << 37),
        number(7, date(2024, 1, 1) << 37 | 86_400_000_000),
        number(7, 1 << 60),
        number(6, Time::MAX.micros() as u64 + 1),
        number(6, i64::MIN as u64),
        number(8, 1),
        number(8, 2_147_483_648_000_000),
        vec![4 << 4, 31, 1, 0],
        vec![4 << 4, 0, 0],
        [&[4 << 4, 0, 28][..], &[0x7F; 28]].concat(),
        [&[4 << 4, 0, 29][..], &[0; 29]].concat(),
        vec![9 << 4 | 1, 0xFF],
        vec![1 << 4 | 9, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        vec![3 << 4 | 4, 0, 0, 0, 0],
        vec![1],
        // A document has a byte that says its form.
        vec![11 << 4],
        vec![12 << 4],
    ];
    for bytes in wrong {
        assert!(value::get(&mut Reader::new(&bytes, "value")).is_err(), "{bytes:?}");
    }
    assert!(value::get(&mut Reader::new(&number(5, date(9999, 12, 31)), "value")).is_ok());
    assert!(value::get(&mut Reader::new(&number(7, DateTime::MAX.packed()), "value")).is_ok());
}

/// Deeper or larger filters than allowed are refused before they are built.
#[test]
fn filters_at_their_limits() {
    use rauk_wire::filter::{MAX_DEPTH, MAX_NODES};
    let nested = |depth: usize| (1..depth).fold(Filter::IsNull { column: 0 }, |part, _| Filter::Not(Box::new(part)));
    let wide = |nodes: usize| Filter::Or(vec![Filter::IsNull { column: 0 }; nodes - 1]);
    let cases = [
        (nested(MAX_DEPTH), true),
        (nested(MAX_DEPTH + 1), false),
        (wide(MAX_NODES), true),
        (wide(MAX_NODES + 1), false),
    ];
    for (filter, right) in cases {
        let mut bytes = Vec::new();
        filter.encode(&mut bytes);
        assert_eq!(Filter::decode(&mut Reader::new(&bytes, "filter")).is_ok(), right);
        assert_eq!(filter.check(&messages::table()).is_ok(), right);
    }
    let endless = vec![5; 1 << 20];
    assert!(Filter::decode(&mut Reader::new(&endless, "filter")).is_err());
    let counts = [3, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 1, 0];
    assert!(Filter::decode(&mut Reader::new(&counts, "filter")).is_err());
}
