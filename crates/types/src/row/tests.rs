use super::*;
use crate::schema::tests::{column, table};
use crate::{Collation, ColumnDefault, IndexPart, KeyDef};
use proptest::prelude::*;
use std::sync::Arc;

mod large;

fn ty(kind: TypeKind) -> DataType {
    DataType::new(kind)
}

fn unsigned(kind: TypeKind) -> DataType {
    DataType { unsigned: true, ..ty(kind) }
}

/// One column of every type, each nullable or not by `nullable(position)`.
fn every_type(nullable: impl Fn(usize) -> bool) -> TableSchema {
    use TypeKind::*;
    let mut types: Vec<DataType> =
        [TinyInt, SmallInt, MediumInt, Int, BigInt].into_iter().flat_map(|k| [ty(k), unsigned(k)]).collect();
    types
        .extend([Float, Double, Date, Time, DateTime, Timestamp, Char, VarChar, LongText, VarBinary, LongBlob].map(ty));
    let members = |count: usize| crate::Members::intern((0..count).map(|n| format!("m{n}")).collect());
    let of = |kind, count| DataType::of_members(kind, members(count), Collation::DEFAULT);
    types.extend([1, 255, 256, 300].map(|count| of(Enum, count)));
    types.extend([1, 8, 9, 17, 25, 33, 64].map(|count| of(Set, count)));
    types.extend([1, 8, 9, 24, 32, 40, 64].map(DataType::bit));
    types.push(ty(Year));
    types.extend([(9, 2), (18, 0), (38, 30), (65, 30), (39, 0)].map(|(p, s)| DataType::decimal(p, s)));
    table(types.into_iter().enumerate().map(|(i, ty)| column(i as u16, ty, nullable(i))).collect())
}

fn value_of(ty: DataType) -> BoxedStrategy<Value> {
    if ty.kind == TypeKind::Year {
        return prop_oneof![Just(0), 1901..=2155u64].prop_map(Value::UInt).boxed();
    }
    let unsigned = ty.unsigned || ty.is_plain_number();
    if let Some((low, high)) = ty.integer_range() {
        return prop_oneof![Just(low), Just(high), low..=high]
            .prop_map(move |v| if unsigned { Value::UInt(v as u64) } else { Value::Int(v as i64) })
            .boxed();
    }
    match ty.kind {
        TypeKind::Float => any::<f32>().prop_map(|v| Value::Double(v.into())).boxed(),
        TypeKind::Double => prop::num::f64::NORMAL.prop_map(Value::Double).boxed(),
        TypeKind::Decimal => {
            let largest = Decimal::largest(ty.precision, ty.scale);
            prop_oneof![
                Just(largest),
                Just(largest.neg()),
                (any::<i128>(), any::<u32>()).prop_map(move |(high, low)| {
                    let limit = largest.unscaled() + 1;
                    let unscaled = I256::from(high) * I256::from(i128::MAX) + I256::from(low);
                    Decimal::from_unscaled(unscaled % limit, ty.scale).unwrap()
                }),
                (any::<i16>()).prop_map(move |v| Decimal::new(v.into(), ty.scale)),
            ]
            .prop_map(Value::Decimal)
            .boxed()
        }
        TypeKind::Date => {
            (0u16..=9999, 0u8..=12, 0u8..=31).prop_map(|(y, m, d)| Value::Date(Date::from_parts(y, m, d))).boxed()
        }
        TypeKind::Time => (Time::MIN.micros()..=Time::MAX.micros()).prop_map(|v| Value::Time(Time::clipped(v))).boxed(),
        TypeKind::DateTime => (0u16..=9999, 0u8..=12, 0u8..=31, 0i64..86_400_000_000)
            .prop_map(|(y, m, d, t)| Value::DateTime(DateTime::new(Date::from_parts(y, m, d), t)))
            .boxed(),
        TypeKind::Timestamp => any::<i64>().prop_map(Value::Timestamp).boxed(),
        TypeKind::Char => "[a-z ä]{0,5}[a-z]".prop_map(Value::Str).boxed(),
        _ if ty.is_text() => any::<String>().prop_map(Value::Str).boxed(),
        _ => any::<Vec<u8>>().prop_map(Value::Bytes).boxed(),
    }
}

fn row_of(table: &TableSchema) -> impl Strategy<Value = Vec<Value>> + use<> {
    let columns: Vec<_> =
        table
            .columns
            .iter()
            .map(|c| {
                if c.nullable {
                    prop_oneof![1 => Just(Value::Null), 3 => value_of(c.ty)].boxed()
                } else {
                    value_of(c.ty)
                }
            })
            .collect();
    columns
}

fn encoded(table: &TableSchema, values: &[Value]) -> Vec<u8> {
    let mut out = vec![0xAA; 3];
    encode_row(table, values, &mut out);
    let mut from_refs = vec![0xAA; 3];
    encode_refs(table, &values.iter().map(Value::as_ref).collect::<Vec<_>>(), &mut from_refs);
    assert_eq!(from_refs, out);
    out.split_off(3)
}

proptest! {
    #[test]
    fn what_is_written_is_read(values in row_of(&every_type(|i| i % 3 != 0))) {
        let table = every_type(|i| i % 3 != 0);
        let bytes = encoded(&table, &values);
        let row = RowView::new(&table, 0, &bytes);
        for (position, value) in values.iter().enumerate() {
            prop_assert_eq!(row.get(position), value.as_ref());
            prop_assert_eq!(row.is_null(position), value.is_null());
            if let (ValueRef::Decimal(a), Value::Decimal(b)) = (row.get(position), value) {
                prop_assert!(a.identical(b));
            }
        }
        prop_assert_eq!(row.to_values(), values);
    }

    /// What a field says of a row is what the row says.
    #[test]
    fn fields_read_what_the_row_says(values in row_of(&every_type(|i| i % 3 != 0))) {
        let table = every_type(|i| i % 3 != 0);
        let bytes = encoded(&table, &values);
        let row = RowView::new(&table, 0, &bytes);
        let layout = row.newest_layout().expect("there is one layout");
        for (position, value) in values.iter().enumerate() {
            let Some(field) = layout.field(position) else {
                let ty = table.columns[position].ty;
                prop_assert!(ty.kind == TypeKind::Decimal && ty.precision > 38);
                continue;
            };
            prop_assert_eq!(field.is_null(&bytes), value.is_null());
            prop_assert_eq!(field.is_nullable(), table.columns[position].nullable);
            if value.is_null() {
                continue;
            }
            let read = match field.kind() {
                FieldKind::Int => ValueRef::Int(field.word(&bytes) as i64),
                FieldKind::UInt => ValueRef::UInt(field.word(&bytes)),
                FieldKind::Double => ValueRef::Double(f64::from_bits(field.word(&bytes))),
                FieldKind::Decimal(scale) => decimal(field.word(&bytes) as i64, scale),
                FieldKind::WideDecimal(scale) => decimal(field.wide(&bytes), scale),
                FieldKind::Date => ValueRef::Date(Date::from_packed(field.word(&bytes) as u32)),
                FieldKind::Time => ValueRef::Time(Time::clipped(field.word(&bytes) as i64)),
                FieldKind::DateTime => ValueRef::DateTime(DateTime::from_packed(field.word(&bytes))),
                FieldKind::Timestamp => ValueRef::Timestamp(field.word(&bytes) as i64),
                FieldKind::Text => ValueRef::Str(std::str::from_utf8(field.bytes(layout, (&bytes).into())).unwrap()),
                FieldKind::Bytes => ValueRef::Bytes(field.bytes(layout, (&bytes).into())),
            };
            prop_assert_eq!(read, row.get(position));
        }
    }

    /// What has the shape of a row can be read, whoever sent it.
    #[test]
    fn what_holds_is_read(
        values in row_of(&every_type(|i| i % 3 != 0)),
        hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let table = every_type(|i| i % 3 != 0);
        let mut bytes = encoded(&table, &values);
        prop_assert!(table.layout().holds(&bytes));
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
            prop_assert!(!table.layout().holds(&bytes));
        }
        let length = bytes.len();
        for (at, with) in hits.iter().filter(|_| length > 0) {
            bytes[at.index(length)] ^= with;
        }
        if table.layout().holds(&bytes) {
            RowView::new(&table, 0, &bytes).to_values();
        }
    }

    #[test]
    fn rows_of_older_layouts_are_read_by_the_newest_schema(values in row_of(&every_type(|_| true))) {
        let old = every_type(|_| true);
        let bytes = encoded(&old, &values);
        // Every third column dropped, one added in front and one behind, the rest turned around.
        let mut columns: Vec<_> = old.columns.iter().enumerate().filter(|(i, _)| i % 3 != 0).map(|(_, c)| c.clone()).collect();
        columns.reverse();
        let added = |id: u16, initial: &str| {
            crate::Column { initial: Value::from(initial), ..column(id, DataType::varchar(9, Collation::DEFAULT), false) }
        };
        columns.insert(0, added(900, "first"));
        columns.push(added(901, "last"));
        let mut new = table(columns);
        new.layouts = vec![old.layout().clone(), Arc::new(RowLayout::for_columns(1, &new.columns))];
        let row = RowView::new(&new, 0, &bytes);
        let mut expected: Vec<_> = values.iter().enumerate().filter(|(i, _)| i % 3 != 0).map(|(_, v)| v.clone()).collect();
        expected.reverse();
        expected.insert(0, Value::from("first"));
        expected.push(Value::from("last"));
        prop_assert_eq!(row.to_values(), expected.clone());
        prop_assert!(!row.is_null(0));
        // Written anew, it reads the same.
        let rewritten = encoded(&new, &expected);
        prop_assert_eq!(RowView::new(&new, 1, &rewritten).to_values(), expected);
    }

    /// What an index says of a row is what the row says.
    #[test]
    fn a_covering_row_has_the_values_of_the_row(
        values in row_of(&every_type(|i| i % 3 != 0)),
        picks in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>(), any::<bool>()), 1..5),
    ) {
        let table = every_type(|i| i % 3 != 0);
        let row = encoded(&table, &values);
        let view = RowView::new(&table, 0, &row);
        let (mut parts, mut wanted): (Vec<IndexPart>, Vec<usize>) = (vec![], vec![]);
        for (pick, descending, want) in picks {
            let column = pick.index(table.columns.len());
            if parts.iter().all(|part| part.column != column) {
                parts.push(IndexPart { column, prefix: None, descending });
                wanted.extend(want.then_some(column));
            }
        }
        let def = KeyDef::new(&table, &parts);
        let mut key = Vec::new();
        def.encode_row(&view, &mut key);
        let told = |column: &usize| {
            let ty = &table.columns[*column].ty;
            let other_width = matches!(ty.kind, TypeKind::Enum | TypeKind::Set | TypeKind::Bit | TypeKind::Year);
            !(ty.is_text() || other_width || ty.kind == TypeKind::Decimal && ty.precision > 38)
        };
        let bytes = wanted.iter().filter(|column| table.columns[**column].ty.is_bytes()).count();
        let covering = Covering::new(&table, &def, &wanted);
        prop_assert_eq!(covering.is_some(), wanted.iter().all(told) && bytes <= 1);
        prop_assert_eq!(covering.is_some(), Covering::is_possible(&table, &parts, &wanted));
        if let Some(covering) = covering {
            // What another key has left behind does not matter.
            let mut made = vec![0xAA; 7];
            let zero = |column: &usize| values[*column] == Value::Double(0.0);
            let filled = covering.fill(&key, &mut made);
            prop_assert_eq!(filled, !wanted.iter().any(zero));
            if filled {
                prop_assert!(table.layout().holds(&made));
                let made = RowView::new(&table, covering.layout(), &made);
                for column in wanted {
                    prop_assert_eq!(made.get(column), view.get(column));
                }
            }
        }
    }

    /// Corrupt rows panic or read as something else, no more.
    #[test]
    fn corrupt_bytes_do_no_harm(bytes: Vec<u8>) {
        let table = every_type(|i| i % 2 == 0);
        let read = std::panic::catch_unwind(|| {
            for position in 0..table.columns.len() {
                std::hint::black_box(RowView::new(&table, 0, &bytes).get(position));
            }
        });
        let _ = read;
    }
}

#[test]
fn a_covering_row_needs_whole_values() {
    let mut table = table(vec![
        column(0, ty(TypeKind::Double), true),
        column(1, DataType::varbinary(9), true),
        column(2, DataType::varchar(5, Collation::DEFAULT), true),
        column(3, DataType::varbinary(9), true),
    ]);
    let part = |column, prefix| IndexPart { column, prefix, descending: false };
    let covering = |table: &TableSchema, parts: &[IndexPart], columns: &[usize]| {
        let covering = Covering::new(table, &KeyDef::new(table, parts), columns);
        assert_eq!(covering.is_some(), Covering::is_possible(table, parts, columns));
        covering
    };
    assert!(covering(&table, &[part(1, Some(3))], &[1]).is_none(), "a prefix");
    assert!(covering(&table, &[part(2, None)], &[2]).is_none(), "a text");
    assert!(covering(&table, &[part(2, None)], &[]).is_some(), "of a text nothing is wanted");
    assert!(covering(&table, &[part(1, None), part(3, None)], &[1, 3]).is_none(), "two columns of bytes");
    assert!(covering(&table, &[part(1, None), part(3, None)], &[3]).is_some());
    assert!(covering(&table, &[part(1, None)], &[0, 1]).is_none(), "a column that is not in the index");
    // Negative zero has the key of zero.
    let parts = [part(0, None), part(1, None)];
    let of_both = covering(&table, &parts, &[0, 1]).unwrap();
    let def = KeyDef::new(&table, &parts);
    let mut made = Vec::new();
    for (double, told) in [(-0.0, false), (0.0, false), (-1.5, true)] {
        let values = [Value::Double(double), Value::Bytes(vec![0, 255, 0]), Value::Null, Value::Null];
        let mut key = Vec::new();
        def.encode_values(&values, &mut key);
        assert_eq!(of_both.fill(&key, &mut made), told);
    }
    let view = RowView::new(&table, 0, &made);
    assert_eq!((view.get(0), view.get(1)), (ValueRef::Double(-1.5), ValueRef::Bytes(&[0, 255, 0])));
    // Rows are of the newest layout.
    table.layouts.push(Arc::new(RowLayout::for_columns(1, &table.columns)));
    assert_eq!(covering(&table, &parts, &[0]).unwrap().layout(), 1);
}

#[test]
fn bytes_are_as_described() {
    let table = table(vec![
        column(0, ty(TypeKind::Int), false),
        column(1, ty(TypeKind::Char), true),
        column(2, DataType::varchar(5, Collation::DEFAULT), true),
    ]);
    let row = [Value::from(258i64), Value::from("x  "), Value::from("yz ")];
    assert_eq!(encoded(&table, &row), [0, 2, 1, 0, 0, 1, 0, 4, 0, b'x', b'y', b'z', b' ']);
    let row = [Value::from(-1i64), Value::Null, Value::from("")];
    assert_eq!(encoded(&table, &row), [2, 255, 255, 255, 255, 0, 0, 0, 0]);
}

#[test]
fn a_table_without_nullable_and_variable_columns_has_no_bits() {
    let table = table(vec![column(0, unsigned(TypeKind::BigInt), false)]);
    assert_eq!(encoded(&table, &[Value::UInt(1)]), [1, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn large_rows_have_wide_offsets() {
    let table = table(vec![
        column(0, ty(TypeKind::LongText), false),
        column(1, ty(TypeKind::LongBlob), true),
        column(2, ty(TypeKind::LongText), true),
    ]);
    for length in [65_530, 65_531, 65_532, 65_533, 65_535, 65_536, 16 << 20] {
        let row = [Value::Str("a".repeat(length)), Value::Bytes(vec![0, 1, 2]), Value::from("ä")];
        let bytes = encoded(&table, &row);
        assert_eq!(bytes[0] & WIDE != 0, length + 5 > 65_535);
        assert_eq!(RowView::new(&table, 0, &bytes).to_values(), row);
    }
}

#[test]
fn layouts_survive_serialization() {
    let table = every_type(|i| i % 2 == 0);
    let layout = table.layout();
    let text = serde_json::to_string(layout.as_ref()).unwrap();
    let read: RowLayout = serde_json::from_str(&text).unwrap();
    assert_eq!(&read, layout.as_ref());
    assert_eq!(
        (read.slots, read.by_id, read.fixed_end),
        (layout.slots.clone(), layout.by_id.clone(), layout.fixed_end)
    );
    assert!(layout.has_column(ColumnId(3)) && !layout.has_column(ColumnId(999)));
}

#[test]
#[should_panic(expected = "was not converted")]
fn a_value_of_another_type_is_our_mistake() {
    let table = table(vec![column(0, ty(TypeKind::Date), false)]);
    assert_eq!(table.columns[0].default, ColumnDefault::None);
    encoded(&table, &[Value::from("2024-01-01")]);
}

/// A row of before has JSON as text, as a program of the native API writes and sees it.
#[test]
fn json_is_read_in_both_forms_and_shown_as_text() {
    let schema = table(vec![column(0, ty(TypeKind::Int), false), column(1, ty(TypeKind::Json), true)]);
    let tree = crate::json::parse(r#"{"bb": [1], "a": "x"}"#, &mut |_| Ok(())).unwrap().unwrap();
    let binary = tree.encode(&mut |_| Ok(())).unwrap();
    for (value, text) in [
        (Value::from("{\"bb\":[1],\"a\":\"x\"}"), r#"{"a": "x", "bb": [1]}"#),
        (Value::Json(binary), r#"{"a": "x", "bb": [1]}"#),
    ] {
        let mut bytes = Vec::new();
        encode_row(&schema, &[Value::Int(1), value.clone()], &mut bytes);
        let row = RowView::checked(&schema, 0, &bytes).unwrap();
        let ValueRef::Json(json) = row.get(1) else { panic!("{:?}", row.get(1)) };
        assert_eq!(json.text().is_some(), value.as_ref().as_str().is_some());
        let (layout, shown) = row.shown().unwrap();
        let ValueRef::Json(json) = RowView::new(&schema, layout, &shown).get(1) else { panic!() };
        assert_eq!(json.text(), Some(text));
    }
    let mut bytes = Vec::new();
    encode_row(&schema, &[Value::Int(1), Value::Null], &mut bytes);
    assert!(RowView::new(&schema, 0, &bytes).is_null(1));
    let plain = table(vec![column(0, ty(TypeKind::Int), false)]);
    bytes.clear();
    encode_row(&plain, &[Value::Int(1)], &mut bytes);
    assert_eq!(RowView::new(&plain, 0, &bytes).shown(), None);
}
