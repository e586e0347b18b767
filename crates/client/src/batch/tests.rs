use super::*;
use crate::table::drop_id;
use crate::testing::{opened, place, schema};
use rauk_types::{Column, ColumnId, DataType, TableSchema, TypeKind};
use rauk_wire::Batch as WireBatch;

fn payload(batch: &Batch, part: usize) -> Vec<u8> {
    batch.build(part, &BatchOptions::default(), Vec::new())
}

#[test]
fn operations_that_are_alike_share_a_shape() {
    let place = place();
    let (one, two) = (place.table(opened(schema())), place.table(opened(schema())));
    let mut batch = Batch::default();
    for id in 0..100u64 {
        assert_eq!(batch.get(&one, id), OpId(id as u32));
    }
    assert_eq!(batch.shapes.len(), 1);
    for id in 0..10u64 {
        batch.get(&one, id);
        batch.update(&one, id, &[("name", Value::from("x")), ("a", Value::from(1i64))]);
        batch.update(&one, id, &[("NAME", Value::from("x"))]);
        batch.get_columns(&one, id, &["a", "b"]);
        batch.get_for_update(&one, id);
        batch.delete(&one, id);
        batch.get(&two, id);
        batch.increment(&one, id, "a", 1i64);
    }
    // A name in another case is looked up anew, so it gets shapes of its own.
    let in_exact_case: Vec<_> = batch.shapes.iter().filter(|shape| shape.columns != [1]).collect();
    assert_eq!(in_exact_case.len(), 7);
    assert!(batch.writes());
    assert_eq!(batch.mistake().map(|(error, ..)| error.to_string()), None);
    let payload = payload(&batch, 0);
    let parsed = WireBatch::parse(&payload).expect("well formed");
    assert_eq!(parsed.operations().filter(|operation| operation.is_ok()).count(), batch.len());
}

#[test]
fn the_first_mistake_counts_and_names_its_operation() {
    let place = place();
    let table = place.table(opened(schema()));
    type Add<'a> = &'a dyn Fn(&mut Batch);
    let cases: [(Add<'_>, ErrorKind, u16); 8] = [
        (&|b| drop_id(b.get(&table, "text")), ErrorKind::WrongType, 1366),
        (&|b| drop_id(b.get(&table, (1u64, 2u64))), ErrorKind::WrongType, 1366),
        (&|b| drop_id(b.get(&table, -1i64)), ErrorKind::InvalidValue, 1264),
        (&|b| drop_id(b.get_columns(&table, 1u64, &["zzz"])), ErrorKind::UnknownColumn, 1054),
        (&|b| drop_id(b.get_by(&table, "zzz", 1u64)), ErrorKind::UnknownIndex, 1176),
        (&|b| drop_id(b.get_by(&table, "ab", (1, 1))), ErrorKind::UnknownIndex, 1176),
        (&|b| drop_id(b.insert(&table, &[("name", Value::from("longer than ten"))])), ErrorKind::InvalidValue, 1406),
        (
            &|b| drop_id(b.insert(&table, &[("a", Value::from(1i64)), ("A", Value::from(2i64))])),
            ErrorKind::InvalidValue,
            1110,
        ),
    ];
    for (add, kind, code) in cases {
        let mut batch = Batch::default();
        batch.get(&table, 1u64);
        add(&mut batch);
        batch.get(&table, "another mistake");
        assert_eq!(batch.len(), 3);
        let (error, _, _) = batch.mistake().expect("a mistake");
        assert_eq!((error.kind, error.code), (kind, code), "{error}");
        assert!(error.message.starts_with("test.t, operation 1 ("), "{error}");
    }
}

#[test]
fn what_is_too_much_for_a_request_goes_into_the_next() {
    let place = place();
    let table = place.table(opened(schema()));
    let mut batch = Batch::default();
    for id in 0..140_000u64 {
        batch.get(&table, id);
    }
    assert_eq!(batch.parts(), 3);
    let mut first = 0;
    for part in 0..3 {
        let payload = payload(&batch, part);
        let parsed = WireBatch::parse(&payload).expect("well formed");
        assert_eq!(batch.range(part), (first, first + parsed.operations));
        let keys: Vec<u64> = parsed
            .operations()
            .map(|operation| u64::from_be_bytes(operation.expect("well formed").key.try_into().expect("eight bytes")))
            .collect();
        assert!(keys.iter().copied().eq(first as u64..(first + parsed.operations) as u64));
        first += parsed.operations;
    }
    assert_eq!(first, 140_000);
}

#[test]
fn bytes_are_bounded_too() {
    let place = place();
    let mut definition = schema();
    definition.columns[1] = Column::new(ColumnId(1), "name", DataType::new(TypeKind::LongBlob), true);
    definition.layouts = vec![Arc::new(rauk_types::RowLayout::for_columns(0, &definition.columns))];
    let table = place.table(opened(definition));
    let mut batch = Batch::default();
    let large = vec![7u8; 10 << 20];
    for id in 0..9u64 {
        batch.insert(&table, &[("id", Value::from(id)), ("name", Value::from(large.clone()))]);
    }
    assert_eq!(batch.mistake().map(|(error, ..)| error.to_string()), None);
    assert_eq!(batch.parts(), 2);
    assert_eq!((batch.range(0), batch.range(1)), ((0, 6), (6, 9)));
    for part in 0..2 {
        let payload = payload(&batch, part);
        assert!(payload.len() <= MAX_PAYLOAD);
        let parsed = WireBatch::parse(&payload).expect("well formed");
        assert_eq!(parsed.operations().filter(Result::is_ok).count(), parsed.operations);
    }
}

#[test]
fn a_batch_follows_a_change_that_leaves_its_meaning() {
    let place = place();
    let table = place.table(opened(schema()));
    let mut batch = Batch::default();
    batch.update(&table, 7u64, &[("a", Value::from(1i64))]);
    batch.get_columns(&table, 7u64, &["b", "name"]);
    let before = batch.clone();
    // A column in front, one behind, another number of the table.
    let mut changed = schema();
    changed.version = 5;
    changed.columns.insert(0, Column::new(ColumnId(4), "first", DataType::DOUBLE, true));
    changed.columns.push(Column::new(ColumnId(5), "last", DataType::DOUBLE, true));
    for index in &mut changed.indexes {
        index.parts.iter_mut().for_each(|part| part.column += 1);
    }
    changed.add_layout();
    table.replace(opened(changed.clone()));
    batch.renew().expect("the same meaning");
    assert_eq!(batch.shapes[0].columns, [3]);
    assert_eq!(batch.shapes[0].version, 5);
    assert_eq!(batch.shapes[1].wanted, Wanted::Columns(vec![4, 2]));
    // Conditions name columns by position in their bytes.
    let mut conditional = before.clone();
    conditional.shapes[0].conditional = true;
    assert_eq!(conditional.renew().map_err(|error| error.kind), Err(ErrorKind::SchemaChanged));
    // Another type, another column of the same name.
    for change in [
        |schema: &mut rauk_types::TableSchema| schema.columns[3].ty = DataType::BIGINT,
        |schema: &mut rauk_types::TableSchema| schema.columns[3].id = ColumnId(17),
        |schema: &mut rauk_types::TableSchema| schema.columns[3].name = "c".into(),
        |schema: &mut rauk_types::TableSchema| schema.columns[1].ty = DataType::BIGINT,
    ] {
        let mut other = changed.clone();
        change(&mut other);
        other.layouts.clear();
        other.add_layout();
        table.replace(opened(other));
        let error = before.clone().renew().unwrap_err();
        assert_eq!((error.kind, error.code, error.is_temporary()), (ErrorKind::SchemaChanged, 1412, true));
    }
}

/// The buckets of a batch's operations.
fn buckets(batch: &Batch) -> Vec<u16> {
    batch.located(0).operations.iter().map(|spot| spot.bucket).collect()
}

#[test]
fn operations_by_primary_key_say_where_they_are() {
    let place = place();
    let table = place.table(opened(schema()).placed());
    let where_is = |add: &dyn Fn(&mut Batch)| {
        let mut batch = Batch::default();
        add(&mut batch);
        assert_eq!(batch.mistake().map(|(error, ..)| error.to_string()), None);
        buckets(&batch)[0]
    };
    let read = |id: u64| where_is(&|b| drop_id(b.get(&table, id)));
    let (five, six) = (read(5), read(6));
    assert_ne!(five, six);
    let name = [("name", Value::from("x"))];
    let row = [("name", Value::from("x")), ("id", Value::from(5u64))];
    for add in [
        &|b: &mut Batch| drop_id(b.get_for_update(&table, 5u64)) as _,
        &|b: &mut Batch| drop_id(b.update(&table, 5u64, &name)) as _,
        &|b: &mut Batch| drop_id(b.increment(&table, 5u64, "a", 1)) as _,
        &|b: &mut Batch| drop_id(b.delete(&table, 5u64)) as _,
        &|b: &mut Batch| drop_id(b.insert(&table, &row)) as _,
        &|b: &mut Batch| drop_id(b.write(&table, &row)) as _,
    ] as [&dyn Fn(&mut Batch); 6]
    {
        assert_eq!(where_is(add), five);
    }
    // The server's numbers, and rows that bring one, are the present node's.
    let numbered = || TableSchema { auto_increment: Some(0), ..schema() };
    let counted = place.table(opened(numbered()).placed());
    for values in [&row[..], &name] {
        assert_eq!(where_is(&|b| drop_id(b.insert(&counted, values))), NOWHERE);
    }
    assert_eq!(where_is(&|b| drop_id(b.update(&counted, 5u64, &[("id", Value::from(9u64))]))), NOWHERE);
    assert_eq!(where_is(&|b| drop_id(b.update(&counted, 5u64, &name))), five);
    // A client that does not choose between nodes notes nothing.
    let mut batch = Batch::default();
    batch.get(&place.table(opened(schema())), 5u64);
    assert!(buckets(&batch).is_empty());
}

#[test]
fn only_plain_reads_by_primary_key_are_divided() {
    let place = place();
    let table = place.table(opened(schema()).placed());
    let is_divisible = |add: &dyn Fn(&mut Batch)| {
        let mut batch = Batch::default();
        batch.get(&table, 1u64);
        add(&mut batch);
        batch.located(0).divisible
    };
    assert!(is_divisible(&|b| drop_id(b.get_columns(&table, 2u64, &["a"]))));
    assert!(!is_divisible(&|b| drop_id(b.get_for_share(&table, 2u64))));
    assert!(!is_divisible(&|b| drop_id(b.delete(&table, 2u64))));
    assert!(!is_divisible(&|b| drop_id(b.get_by(&table, "PRIMARY", 2u64))));
}

#[test]
fn shares_have_their_operations_and_answers_go_to_their_places() {
    let place = place();
    let table = place.table(opened(schema()).placed());
    let mut batch = Batch::default();
    // In two requests, of which the second is divided.
    for id in 0..MAX_OPERATIONS as u64 + 5 {
        if id % 2 == 0 {
            batch.get(&table, id)
        } else {
            batch.get_columns(&table, id, &["a"])
        };
    }
    assert_eq!(batch.parts(), 2);
    let second = MAX_OPERATIONS as u64;
    let shares = [1u8, 0, 1, 0, 0];
    assert_eq!(batch.located(1).operations.len(), shares.len());
    let key = |id: u64| {
        let mut key = Vec::new();
        table.current().encode_key(0, &id, &mut key).expect("a key");
        key
    };
    let mut answers = Answers::new();
    let mut whole = rauk_wire::AnswerBuilder::new(Vec::new());
    (0..MAX_OPERATIONS).for_each(|operation| whole.missing(operation as u16));
    answers.push(Answer::whole(0, whole.finish(false, false).into()));
    for share in [0u8, 1] {
        let numbers: Vec<u16> = (0..5).filter(|at| shares[usize::from(*at)] == share).collect();
        let payload = batch.build_share(1, &BatchOptions::default(), (&shares, share), Vec::new());
        let parsed = WireBatch::parse(&payload).expect("well formed");
        let keys: Vec<Vec<u8>> = parsed.operations().map(|op| op.expect("well formed").key.to_vec()).collect();
        assert_eq!(keys, numbers.iter().map(|at| key(second + u64::from(*at))).collect::<Vec<_>>());
        // Rows in one share, none in the other.
        let mut answer = rauk_wire::AnswerBuilder::new(Vec::new());
        for (operation, at) in (0u16..).zip(&numbers) {
            match share {
                0 if (second + u64::from(*at)).is_multiple_of(2) => answer.done(operation, Some(u64::from(*at))),
                0 => answer.columns(operation, [ValueRef::Int(i64::from(*at))].into_iter()),
                _ => answer.missing(operation),
            }
        }
        let payload = answer.finish(false, false).into();
        answers.push(Answer { first: MAX_OPERATIONS, numbers: Some(numbers.into()), payload });
    }
    let result = BatchResult::new(batch, answers).expect("whole");
    assert_eq!((result.len(), result.succeeded()), (MAX_OPERATIONS + 5, 3));
    for (at, share) in shares.iter().enumerate() {
        let op = OpId((MAX_OPERATIONS + at) as u32);
        let found = match result.outcome(op).expect("an outcome") {
            Done::Row(row) => row.get::<Option<i32>>("a").expect("a number").map(|a| a as usize),
            Done::Done(number) => number.map(|number| number as usize),
            Done::Missing => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(found, (*share == 0).then_some(at));
    }
    assert!(matches!(result.outcome(OpId(3)), Ok(Done::Missing)));
}

#[test]
fn answers_to_operations_that_a_share_does_not_have_are_refused() {
    let place = place();
    let table = place.table(opened(schema()).placed());
    let mut batch = Batch::default();
    batch.get(&table, 1u64);
    let mut answer = rauk_wire::AnswerBuilder::new(Vec::new());
    answer.missing(1);
    let payload = answer.finish(false, false).into();
    let answers = Answers::from_vec(vec![Answer { first: 0, numbers: Some(vec![0].into()), payload }]);
    assert_eq!(BatchResult::new(batch, answers).err().map(|error| error.kind), Some(ErrorKind::Protocol));
}
