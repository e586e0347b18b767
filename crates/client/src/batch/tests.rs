use super::*;
use crate::table::drop_id;
use crate::testing::{opened, place, schema};
use rauk_types::{Column, ColumnId, DataType, TypeKind};
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
