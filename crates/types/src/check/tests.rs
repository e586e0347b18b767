use super::*;
use crate::row::encode_refs;
use crate::schema::tests::{column, table};
use crate::{Collation, DateTime, KeyPart, RowView, Time, Value};
use proptest::prelude::*;
use std::cmp::Ordering;

fn ty(kind: TypeKind) -> DataType {
    DataType::new(kind)
}

fn unsigned(ty: DataType) -> DataType {
    DataType { unsigned: true, ..ty }
}

fn length(kind: TypeKind, length: u32) -> DataType {
    DataType { length, ..ty(kind) }
}

fn fraction(kind: TypeKind, scale: u8) -> DataType {
    DataType { scale, ..ty(kind) }
}

fn all_types() -> Vec<DataType> {
    use TypeKind::*;
    let mut types: Vec<DataType> = vec![ty(Date), ty(Json), length(Binary, 3), length(VarBinary, 3), ty(Blob)];
    types.extend(
        [TinyInt, SmallInt, MediumInt, Int, BigInt, Float, Double].into_iter().flat_map(|k| [ty(k), unsigned(ty(k))]),
    );
    types.extend([(4, 1), (5, 5), (18, 0), (30, 10), (65, 30)].map(|(p, s)| DataType::decimal(p, s)));
    types.push(unsigned(DataType::decimal(10, 2)));
    types.push(DataType { precision: 5, scale: 2, ..ty(Double) });
    types.push(DataType { precision: 5, scale: 2, ..ty(Float) });
    types.extend([Time, DateTime, Timestamp].into_iter().flat_map(|kind| [0, 3, 6].map(|scale| fraction(kind, scale))));
    types.extend([Char, VarChar, TinyText, Text].map(|kind| length(kind, 4)));
    types.push(DataType { length: 4, collation: Collation::Utf8mb4Bin, ..ty(Char) });
    types
}

/// Values near the limits of some type or other, and any.
fn any_value() -> impl Strategy<Value = Value> {
    let micros = prop_oneof![
        any::<i64>(),
        (0..3_000_000_000i64).prop_map(|s| s * 1_000_000),
        (0..3_000_000_000_000i64).prop_map(|ms| ms * 1000),
        Just(0)
    ];
    let near = (0..65u32, -2..=2i128, any::<bool>()).prop_map(|(bits, off, negative)| {
        let number = (1i128 << bits) + off;
        if negative { -number } else { number }
    });
    prop_oneof![
        Just(Value::Null),
        near.clone().prop_map(|v| Value::Int(v.clamp(i64::MIN.into(), i64::MAX.into()) as i64)),
        near.clone().prop_map(|v| Value::UInt(v.clamp(0, u64::MAX.into()) as u64)),
        (near, 0..=30u8).prop_map(|(v, scale)| Value::Decimal(Decimal::new(v, scale))),
        (any::<i16>(), 0..=6u8).prop_map(|(v, scale)| Value::Decimal(Decimal::new(v.into(), scale))),
        "-?[1-9][0-9]{0,64}".prop_map(|digits| Value::Decimal(digits.parse().unwrap())),
        any::<f64>().prop_map(Value::Double),
        any::<f32>().prop_map(|v| Value::Double(v.into())),
        any::<i16>().prop_map(|v| Value::Double(f64::from(v) / 100.0)),
        any::<u32>().prop_map(|v| Value::Date(Date::from_packed(v))),
        (0..=9999u16, 0..=12u8, 0..=31u8).prop_map(|(y, m, d)| Value::Date(Date::from_parts(y, m, d))),
        micros.clone().prop_map(|v| Value::Time(Time::clipped(v))),
        any::<u64>().prop_map(|v| Value::DateTime(DateTime::from_packed(v))),
        (0..=9999u16, 0..=12u8, 0..=31u8, micros.clone()).prop_map(|(y, m, d, t)| Value::DateTime(DateTime::new(
            Date::from_parts(y, m, d),
            t.rem_euclid(MICROS_PER_DAY)
        ))),
        micros.prop_map(Value::Timestamp),
        "[aä \u{0}]{0,6}".prop_map(Value::Str),
        "[0-9]{1,3}|\\[\\]|\\{\"a\": null\\}".prop_map(Value::Str),
        prop::collection::vec(any::<u8>(), 0..6).prop_map(Value::Bytes),
    ]
}

fn same(given: ValueRef<'_>, stored: ValueRef<'_>) -> bool {
    use ValueRef::*;
    match (given, stored) {
        (Str(a), Str(b)) => a.trim_end_matches(' ') == b.trim_end_matches(' '),
        (Double(a), Double(b)) => a == b,
        (a, Decimal(b)) if a.as_integer().is_some() => b == crate::Decimal::from(a.as_integer().unwrap()),
        (a, Double(b)) if a.as_integer().is_some() => b as i128 == a.as_integer().unwrap(),
        (a, b) if a.as_integer().is_some() => a.as_integer() == b.as_integer(),
        (a, b) => a == b,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    /// What passes is stored, is read as it was, and has a key; what does not has an error that names the column.
    #[test]
    fn what_passes_can_be_stored(ty in prop::sample::select(all_types()), nullable: bool, value in any_value()) {
        let table = table(vec![column(0, ty, nullable)]);
        match column_value(&table.columns[0], value.as_ref()) {
            Ok(checked) => {
                prop_assert!(same(value.as_ref(), checked), "{:?} became {:?}", value, checked);
                let mut bytes = Vec::new();
                encode_refs(&table, &[checked], &mut bytes);
                let row = RowView::new(&table, 0, &bytes);
                if ty.kind == TypeKind::Json {
                    // Stored as it is, and read as JSON. It has no key.
                    prop_assert_eq!(row.get(0).to_owned(), checked.as_str().map_or(Value::Null, |t| Value::Json(t.into())));
                    return Ok(());
                }
                prop_assert_eq!(row.get(0), checked);
                let part = KeyPart { column: 0, ty, nullable, prefix: None, descending: false };
                let (mut key, mut of_row) = (Vec::new(), Vec::new());
                part.encode(checked, &mut key);
                part.encode(row.get(0), &mut of_row);
                prop_assert_eq!(key, of_row);
            }
            Err(error) => {
                prop_assert!(error.message.contains("column 'c0'") || error.message.contains("Column 'c0'"), "{}", error);
                prop_assert!([1048, 1264, 1265, 1292, 1366, 1406, 3140].contains(&error.code), "{}", error);
            }
        }
    }

    /// Integers pass exactly when the column's range has them.
    #[test]
    fn integers(ty in prop::sample::select(all_types()), value in any_value()) {
        if let (Some((low, high)), Some(number)) = (ty.integer_range(), value.as_ref().as_integer()) {
            let passes = column_value(&column(0, ty, false), value.as_ref()).is_ok();
            prop_assert_eq!(passes, low <= number && number <= high);
        }
    }
}

#[test]
fn messages_are_mysqls() {
    use TypeKind::*;
    let date = |y, m, d| crate::Date::from_parts(y, m, d);
    let decimal = |text: &str| Value::Decimal(text.parse().unwrap());
    let cases: Vec<(DataType, Value, u16, &str)> = vec![
        (ty(Int), Value::Null, 1048, "Column 'c0' cannot be null"),
        (ty(TinyInt), Value::Int(128), 1264, "Out of range value for column 'c0' at row 1"),
        (unsigned(ty(Int)), Value::Int(-1), 1264, "Out of range value for column 'c0' at row 1"),
        (ty(BigInt), Value::UInt(u64::MAX), 1264, "Out of range value for column 'c0' at row 1"),
        (ty(Int), Value::from("5"), 1366, "Incorrect integer value: '5' for column 'c0' at row 1"),
        (ty(Int), Value::Double(5.0), 1366, "Incorrect integer value: '5' for column 'c0' at row 1"),
        (DataType::decimal(5, 2), decimal("1000"), 1264, "Out of range value for column 'c0' at row 1"),
        (DataType::decimal(5, 2), decimal("1.005"), 1265, "Data truncated for column 'c0' at row 1"),
        (unsigned(DataType::decimal(5, 2)), decimal("-1"), 1264, "Out of range value for column 'c0' at row 1"),
        (DataType::decimal(5, 2), Value::Double(0.5), 1366, "Incorrect decimal value: '0.5' for column 'c0' at row 1"),
        (ty(Float), Value::Double(0.1), 1265, "Data truncated for column 'c0' at row 1"),
        (ty(Float), Value::Double(1e300), 1264, "Out of range value for column 'c0' at row 1"),
        (ty(Double), Value::Double(f64::NAN), 1264, "Out of range value for column 'c0' at row 1"),
        (
            ty(Double),
            Value::Int((1 << 53) + 1),
            1366,
            "Incorrect double value: '9007199254740993' for column 'c0' at row 1",
        ),
        (length(VarChar, 3), Value::from("äöüß"), 1406, "Data too long for column 'c0' at row 1"),
        (length(VarChar, 3), Value::from("abc "), 1406, "Data too long for column 'c0' at row 1"),
        (
            length(VarChar, 3),
            Value::Bytes(b"ab".to_vec()),
            1366,
            "Incorrect string value: 'ab' for column 'c0' at row 1",
        ),
        (ty(TinyText), Value::Str("x".repeat(256)), 1406, "Data too long for column 'c0' at row 1"),
        (length(Binary, 3), Value::Bytes(vec![1; 4]), 1406, "Data too long for column 'c0' at row 1"),
        (
            length(Binary, 3),
            Value::Bytes(vec![1; 2]),
            1366,
            "Incorrect binary value: '2 of 3 bytes' for column 'c0' at row 1",
        ),
        (ty(LongBlob), Value::Bytes(vec![0; MAX_LOB_BYTES + 1]), 1406, "Data too long for column 'c0' at row 1"),
        (ty(Blob), Value::from("text"), 1366, "Incorrect binary value: 'text' for column 'c0' at row 1"),
        (ty(Date), Value::Date(date(2023, 2, 29)), 1292, "Incorrect date value: '2023-02-29' for column 'c0' at row 1"),
        (ty(Date), Value::from("2024-01-01"), 1292, "Incorrect date value: '2024-01-01' for column 'c0' at row 1"),
        (
            ty(Time),
            Value::Time(crate::Time::clipped(1)),
            1292,
            "Incorrect time value: '00:00:00.000001' for column 'c0' at row 1",
        ),
        (
            fraction(DateTime, 3),
            Value::DateTime(crate::DateTime::new(date(2024, 1, 31), 1)),
            1292,
            "Incorrect datetime value: '2024-01-31 00:00:00.000001' for column 'c0' at row 1",
        ),
        (
            ty(Timestamp),
            Value::Timestamp(1 << 62),
            1292,
            "Incorrect datetime value: '4611686018427387904' for column 'c0' at row 1",
        ),
        (
            ty(Json),
            Value::from("{\"a\": }"),
            3140,
            "Invalid JSON text: \"Invalid value.\" at position 6 in value for column 'c0'.",
        ),
        (
            ty(Json),
            Value::from(""),
            3140,
            "Invalid JSON text: \"The document is empty.\" at position 0 in value for column 'c0'.",
        ),
    ];
    for (ty, value, code, message) in cases {
        let error = column_value(&column(0, ty, false), value.as_ref()).expect_err(message);
        assert_eq!((error.code, error.message.as_str()), (code, message));
    }
}

#[test]
fn what_loses_nothing_passes() {
    use TypeKind::*;
    let date = |y, m, d| Value::Date(crate::Date::from_parts(y, m, d));
    let decimal = |text: &str| Value::Decimal(text.parse().unwrap());
    let cases: Vec<(DataType, Value, Value)> = vec![
        (ty(BigInt), Value::UInt(7), Value::Int(7)),
        (unsigned(ty(TinyInt)), Value::Int(255), Value::UInt(255)),
        (DataType::decimal(5, 2), Value::Int(-999), decimal("-999.00")),
        (DataType::decimal(5, 2), decimal("1.5"), decimal("1.50")),
        (DataType::decimal(5, 2), decimal("1.5000"), decimal("1.50")),
        (
            DataType::decimal(65, 30),
            decimal("99999999999999999999999999999999999"),
            decimal("99999999999999999999999999999999999.000000000000000000000000000000"),
        ),
        (ty(Double), Value::Int(-(1 << 53)), Value::Double(-9_007_199_254_740_992.0)),
        (ty(Double), Value::Double(-0.0), Value::Double(0.0)),
        (ty(Float), Value::Double(0.1f32.into()), Value::Double(0.1f32.into())),
        (DataType { precision: 5, scale: 2, ..ty(Double) }, Value::Double(123.45), Value::Double(123.45)),
        (length(Char, 3), Value::from("abc   "), Value::from("abc")),
        (length(VarChar, 3), Value::from("äöü"), Value::from("äöü")),
        (ty(Json), Value::from("[1, {}]"), Value::from("[1, {}]")),
        (ty(Date), date(0, 0, 0), date(0, 0, 0)),
        (ty(Date), date(2024, 0, 0), date(2024, 0, 0)),
        (ty(Timestamp), Value::Timestamp(0), Value::Timestamp(0)),
    ];
    for (ty, value, stored) in cases {
        let column = column(0, ty, false);
        let checked = column_value(&column, value.as_ref()).unwrap().to_owned();
        assert_eq!(checked, stored);
        if let (Value::Decimal(a), Value::Decimal(b)) = (checked, stored) {
            assert_eq!((a.scale(), a.cmp(&b)), (column.ty.scale, Ordering::Equal));
        }
    }
}

#[test]
fn members_bits_and_years() {
    let members = crate::Members::intern(vec!["a".to_string(), "b".to_string()]);
    let of = |kind| column(0, DataType::of_members(kind, members, Collation::DEFAULT), false);
    let year = column(0, ty(TypeKind::Year), false);
    let bit = column(0, DataType::bit(3), false);
    let good = |column: &Column, value: ValueRef<'_>, stored: u64| {
        assert_eq!(column_value(column, value).unwrap(), ValueRef::UInt(stored));
    };
    good(&of(TypeKind::Enum), ValueRef::Str("B"), 2);
    good(&of(TypeKind::Enum), ValueRef::Int(1), 1);
    good(&of(TypeKind::Set), ValueRef::Str("b,a"), 3);
    good(&of(TypeKind::Set), ValueRef::Str(""), 0);
    good(&of(TypeKind::Set), ValueRef::UInt(2), 2);
    good(&year, ValueRef::Int(2155), 2155);
    good(&year, ValueRef::Int(0), 0);
    good(&bit, ValueRef::UInt(7), 7);
    let bad = |column: &Column, value: ValueRef<'_>, code: u16| {
        assert_eq!(column_value(column, value).unwrap_err().code, code, "{value:?}");
    };
    bad(&of(TypeKind::Enum), ValueRef::Str("c"), 1265);
    bad(&of(TypeKind::Enum), ValueRef::UInt(0), 1265);
    bad(&of(TypeKind::Enum), ValueRef::UInt(3), 1265);
    bad(&of(TypeKind::Enum), ValueRef::Double(1.0), 1366);
    bad(&of(TypeKind::Set), ValueRef::Str("a,c"), 1265);
    bad(&of(TypeKind::Set), ValueRef::UInt(4), 1265);
    bad(&year, ValueRef::Int(70), 1264);
    bad(&year, ValueRef::Int(2156), 1264);
    bad(&bit, ValueRef::UInt(8), 1264);
    bad(&bit, ValueRef::Str("a"), 1366);
}
