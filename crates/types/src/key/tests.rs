use super::*;
use crate::row::encode_row;
use crate::schema::tests::{column, table};
use crate::{Date, DateTime, Time};
use proptest::prelude::*;
use std::cmp::Ordering;

fn part(ty: DataType) -> KeyPart {
    KeyPart { column: 0, ty, nullable: true, prefix: None, descending: false }
}

fn key(part: &KeyPart, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    part.encode(value.as_ref(), &mut out);
    out
}

fn compare(a: &Value, b: &Value, collation: Collation) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b).unwrap(),
        (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        (Value::Str(a), Value::Str(b)) => collation.compare(a.as_bytes(), b.as_bytes()),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        _ => unreachable!(),
    }
}

fn decimal(precision: u8, scale: u8) -> BoxedStrategy<Value> {
    let digits = format!("-?0[0-9]{{0,{}}}", precision - scale);
    let text = match scale {
        0 => digits,
        _ => format!(r"{digits}\.[0-9]{{0,{scale}}}"),
    };
    prop::string::string_regex(&text).unwrap().prop_map(|text| Value::Decimal(text.parse().unwrap())).boxed()
}

fn date() -> impl Strategy<Value = Date> {
    (0u16..=9999, 0u8..=12, 0u8..=31).prop_map(|(y, m, d)| Date::from_parts(y, m, d))
}

/// Values close enough to one another to differ late.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[aAbä ß\t\u{0}\u{1}]{0,4}", any::<String>()]
}

fn values(ty: DataType) -> BoxedStrategy<Value> {
    let value = match ty.kind {
        _ if ty.is_integer() => {
            let (low, high) = ty.integer_range().unwrap();
            let number = prop_oneof![low..=high, (0i128..=3).prop_map(move |n| low + n), Just(high), 0i128..=100];
            number.prop_map(move |v| if ty.unsigned { Value::UInt(v as u64) } else { Value::Int(v as i64) }).boxed()
        }
        TypeKind::Float => {
            any::<f32>().prop_filter("NaN", |v| !v.is_nan()).prop_map(|v| Value::Double(v.into())).boxed()
        }
        TypeKind::Double => {
            let any = any::<f64>().prop_filter("NaN", |v| !v.is_nan());
            prop_oneof![any, Just(0.0), Just(-0.0), -2.0..2.0].prop_map(Value::Double).boxed()
        }
        TypeKind::Decimal => decimal(ty.precision, ty.scale),
        TypeKind::Date => date().prop_map(Value::Date).boxed(),
        TypeKind::Time => (Time::MIN.micros()..=Time::MAX.micros()).prop_map(|v| Value::Time(Time::clipped(v))).boxed(),
        TypeKind::DateTime => {
            (date(), 0i64..86_400_000_000).prop_map(|(d, t)| Value::DateTime(DateTime::new(d, t))).boxed()
        }
        TypeKind::Timestamp => (0i64..1 << 50).prop_map(Value::Timestamp).boxed(),
        _ if ty.is_text() => text().prop_map(Value::Str).boxed(),
        _ => prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..5)
            .prop_map(Value::Bytes)
            .boxed(),
    };
    prop_oneof![1 => Just(Value::Null), 9 => value].boxed()
}

/// Some of each kind.
fn collations() -> Vec<Collation> {
    let names = "binary utf8mb4_bin utf8mb4_0900_ai_ci utf8mb4_general_ci utf8mb4_unicode_ci utf8mb4_0900_bin
        utf8mb4_0900_as_cs utf8mb4_hu_0900_as_cs utf8mb4_spanish2_ci utf8mb4_uca1400_as_cs utf8mb4_uca1400_nopad_as_ci";
    names.split_ascii_whitespace().map(|name| Collation::named(name).expect(name)).collect()
}

fn types() -> Vec<DataType> {
    use TypeKind::*;
    let mut types = Vec::new();
    for kind in [TinyInt, SmallInt, MediumInt, Int, BigInt] {
        types.extend([DataType::new(kind), DataType { unsigned: true, ..DataType::new(kind) }]);
    }
    types.extend([Float, Double, Date, Time, DateTime, Timestamp, VarBinary].map(DataType::new));
    types.extend([(5, 2), (9, 9), (18, 4), (30, 10), (38, 0), (65, 30), (40, 5)].map(|(p, s)| DataType::decimal(p, s)));
    types.extend(collations().into_iter().map(|collation| DataType::varchar(9, collation)));
    types
}

fn typed_pair() -> impl Strategy<Value = (DataType, Value, Value)> {
    prop::sample::select(types()).prop_flat_map(|ty| (Just(ty), values(ty), values(ty)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn byte_order_is_value_order((ty, a, b) in typed_pair()) {
        let (ascending, descending) = (part(ty), KeyPart { descending: true, ..part(ty) });
        let order = compare(&a, &b, ty.collation);
        prop_assert_eq!(key(&ascending, &a).cmp(&key(&ascending, &b)), order);
        prop_assert_eq!(key(&descending, &a).cmp(&key(&descending, &b)), order.reverse());
        // No part is a prefix of another, so that what follows it cannot disturb.
        prop_assert!(order.is_eq() || !key(&ascending, &a).starts_with(&key(&ascending, &b)));
        if !a.is_null() && !b.is_null() {
            let strict = KeyPart { nullable: false, ..part(ty) };
            prop_assert_eq!(key(&strict, &a).cmp(&key(&strict, &b)), order);
        }
    }

    #[test]
    fn a_part_says_how_long_it_is((ty, a, _) in typed_pair(), nullable: bool, descending: bool, junk: Vec<u8>) {
        let part = KeyPart { nullable: nullable || a.is_null(), descending, ..part(ty) };
        let mut bytes = key(&part, &a);
        let length = bytes.len();
        bytes.extend(junk);
        prop_assert_eq!(part.length_in(&bytes), length);
    }

    /// Keys of several parts, whole and in pieces.
    #[test]
    fn keys_from_outside(pairs in prop::collection::vec((typed_pair(), any::<bool>()), 1..4), junk: u8) {
        let columns = pairs.iter().enumerate().map(|(i, ((ty, ..), _))| column(i as u16, *ty, true)).collect();
        let part = |(column, (_, descending)): (usize, &(_, bool))| IndexPart { column, prefix: None, descending: *descending };
        let parts: Vec<IndexPart> = pairs.iter().enumerate().map(part).collect();
        let def = KeyDef::new(&table(columns), &parts);
        let values: Vec<ValueRef<'_>> = pairs.iter().map(|((_, value, _), _)| value.as_ref()).collect();
        let (mut key, mut ends) = (Vec::new(), vec![0]);
        for count in 1..=values.len() {
            key.clear();
            def.encode_prefix(&values[..count], &mut key);
            ends.push(key.len());
        }
        for end in 0..=key.len() {
            prop_assert_eq!(def.is_whole(&key[..end]), end == key.len());
            prop_assert_eq!(def.is_prefix_of_parts(&key[..end]), ends.contains(&end));
        }
        key.push(junk);
        prop_assert!(!def.is_whole(&key) && !def.is_prefix_of_parts(&key));
    }

    /// Any bytes at all are judged without a panic; what is judged a key is taken apart without one.
    #[test]
    fn garbage_is_no_key(
        (ty, value, _) in typed_pair(), nullable: bool, descending: bool,
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(1), Just(2), Just(0x20), Just(0xFF)], 0..40),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let part = KeyPart { nullable: nullable || value.is_null(), descending, ..part(ty) };
        let def = KeyDef { parts: vec![part.clone(), part.clone()] };
        let mut damaged = key(&part, &value);
        damaged.extend_from_within(..);
        for (at, with) in hits {
            let at = at.index(damaged.len());
            damaged[at] ^= with;
        }
        for bytes in [&bytes, &damaged] {
            let whole = def.is_whole(bytes);
            prop_assert!(!whole || def.is_prefix_of_parts(bytes));
            if whole {
                let first = part.length_in(bytes);
                prop_assert_eq!(first + part.length_in(&bytes[first..]), bytes.len());
            }
        }
    }

    #[test]
    fn a_row_matches_its_own_key_only(
        (ty, a, b) in typed_pair(), (other, c, d) in typed_pair(), descending: bool, junk: Vec<u8>
    ) {
        let table = table(vec![column(0, ty, true), column(1, other, true)]);
        let parts = [
            IndexPart { column: 1, prefix: None, descending },
            IndexPart { column: 0, prefix: None, descending: false },
        ];
        let def = KeyDef::new(&table, &parts);
        let same = compare(&a, &b, ty.collation).is_eq() && compare(&c, &d, other.collation).is_eq();
        let (mut bytes, mut key, mut from_row) = (Vec::new(), Vec::new(), Vec::new());
        encode_row(&table, &[a.clone(), c.clone()], &mut bytes);
        let row = RowView::new(&table, 0, &bytes);
        def.encode_values(&[b, d], &mut key);
        prop_assert_eq!(def.matches(&row, &key), same);
        def.encode_row(&row, &mut from_row);
        prop_assert!(def.matches(&row, &from_row));
        prop_assert_eq!(def.has_null(&row), a.is_null() || c.is_null());
        from_row.extend_from_slice(&junk);
        prop_assert_eq!(def.matches(&row, &from_row), junk.is_empty());
        prop_assert!(!def.matches(&row, &key[..key.len() - 1]));
    }

    #[test]
    fn a_prefix_key_is_the_key_of_the_prefix(text in text(), bytes: Vec<u8>, n in 1u32..4) {
        for collation in collations() {
            let whole = part(DataType::varchar(9, collation));
            let prefix = KeyPart { prefix: Some(n), ..whole.clone() };
            let cut: String = text.chars().take(n as usize).collect();
            prop_assert_eq!(key(&prefix, &Value::from(text.as_str())), key(&whole, &Value::Str(cut)));
        }
        let whole = part(DataType::varbinary(99));
        let prefix = KeyPart { prefix: Some(n), ..whole.clone() };
        let cut = bytes[..bytes.len().min(n as usize)].to_vec();
        prop_assert_eq!(key(&prefix, &Value::Bytes(bytes)), key(&whole, &Value::Bytes(cut)));
    }

    #[test]
    fn like_ranges_hold_all_texts_with_the_prefix(prefix in text(), rest in text(), descending: bool, n in prop::option::of(1u32..4)) {
        for collation in collations() {
            let part = KeyPart { descending, prefix: n, ..part(DataType::varchar(9, collation)) };
            let mut low = Vec::new();
            part.encode_like_prefix(&prefix, &mut low);
            let mut high = low.clone();
            let bounded = prefix_successor(&mut high);
            let key = key(&part, &Value::Str(format!("{prefix}{rest}")));
            prop_assert!(key >= low && (!bounded || key < high), "{:?}", collation);
        }
    }

    #[test]
    fn the_successor_is_the_next_key_without_the_prefix(prefix: Vec<u8>, rest: Vec<u8>) {
        let mut next = prefix.clone();
        if prefix_successor(&mut next) {
            prop_assert!([&prefix[..], &rest[..]].concat() < next);
            prop_assert!(next > prefix && !next.starts_with(&prefix));
        } else {
            prop_assert!(prefix.iter().all(|b| *b == 0xFF));
        }
    }
}

#[test]
fn frozen_bytes() {
    let encoded = |ty, value: Value| key(&KeyPart { nullable: false, ..part(ty) }, &value);
    let varchar = |collation| DataType::varchar(9, collation);
    assert_eq!(encoded(DataType::new(TypeKind::Int), Value::Int(-2)), [0x7F, 0xFF, 0xFF, 0xFE]);
    assert_eq!(encoded(DataType::BIGINT_UNSIGNED, Value::UInt(258)), [0, 0, 0, 0, 0, 0, 1, 2]);
    assert_eq!(encoded(DataType::decimal(5, 2), Value::Decimal("-1.5".parse().unwrap())), [0x7F, 0xFF, 0xFF, 0x6A]);
    assert_eq!(encoded(DataType::DOUBLE, Value::Double(-0.0)), [0x80, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(encoded(varchar(Collation::DEFAULT), Value::from("Á")), [0x1C, 0x47, 0, 0]);
    assert_eq!(encoded(varchar(Collation::Utf8mb4GeneralCi), Value::from("a ")), [0, 0x41, 0, 0x20, 1]);
    assert_eq!(encoded(varchar(Collation::Utf8mb4Bin), Value::from("a b")), [b'a', b' ', 2, b'b', b' ', 1]);
    assert_eq!(encoded(DataType::varbinary(9), Value::Bytes(vec![0, 1])), [0, 0xFF, 1, 0, 0]);
    // The algorithm's own test vector, and one of ours: the hash decides where rows live.
    assert_eq!(hash(b""), 0x2D06_8005_38D3_94C2);
    assert_eq!(hash(b"rauk"), 8_786_371_213_070_642_678);
    assert_eq!((bucket(0), bucket(u64::MAX)), (0, crate::schema::BUCKETS - 1));
}

/// Their keys have the same width whatever the number of members or bits: members are added without a new index.
#[test]
fn keys_of_members_bits_and_years_are_numbers() {
    let members = |count: usize| crate::Members::intern((0..count).map(|n| format!("m{n}")).collect());
    let of = |kind, count| part(DataType::of_members(kind, members(count), Collation::DEFAULT));
    let number = |part: &KeyPart, value: u64| key(part, &Value::UInt(value));
    for count in [2, 300] {
        assert_eq!(number(&of(TypeKind::Enum, count), 2), [1, 0, 2]);
    }
    assert_eq!(number(&of(TypeKind::Set, 9), 0x101), [1, 0, 0, 0, 0, 0, 0, 1, 1]);
    assert_eq!(number(&part(DataType::bit(64)), u64::MAX), [1, 255, 255, 255, 255, 255, 255, 255, 255]);
    assert_eq!(number(&part(DataType::new(TypeKind::Year)), 2024), [1, 7, 0xE8]);
    for part in
        [of(TypeKind::Enum, 3), of(TypeKind::Set, 3), part(DataType::bit(3)), part(DataType::new(TypeKind::Year))]
    {
        let whole = number(&part, 3);
        assert_eq!(part.length_in(&whole), whole.len());
        assert!(number(&part, 2) < whole);
    }
}
