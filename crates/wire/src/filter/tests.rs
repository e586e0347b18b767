use super::*;
use rauk_types::{Collation, ColumnId, DataType, Date, DateTime, IndexSchema, TableId, Time, row};

const COLUMNS: [&str; 11] = ["id", "int", "uint", "double", "decimal", "ci", "pad", "bytes", "date", "time", "stamp"];

fn table() -> TableSchema {
    let types = [
        DataType::BIGINT,
        DataType::BIGINT,
        DataType::BIGINT_UNSIGNED,
        DataType::DOUBLE,
        DataType::decimal(20, 3),
        DataType::varchar(20, Collation::Utf8mb40900AiCi),
        DataType::varchar(20, Collation::Utf8mb4Bin),
        DataType::varbinary(20),
        DataType::new(TypeKind::DateTime),
        DataType::new(TypeKind::Time),
        DataType::new(TypeKind::Timestamp),
    ];
    let column = |(i, (name, ty)): (usize, (&&str, DataType))| Column::new(ColumnId(i as u16), *name, ty, i > 0);
    let columns = COLUMNS.iter().zip(types).enumerate().map(column).collect();
    TableSchema::new(TableId(1), "d", "t", columns, vec![IndexSchema::primary(&[0])])
}

fn midnight(day: u8) -> DateTime {
    Date::from_parts(2024, 5, day).at_midnight()
}

fn a_row() -> Vec<Value> {
    vec![
        Value::Int(1),
        Value::Int(-5),
        Value::UInt(u64::MAX),
        Value::Double(2.5),
        Value::Decimal(Decimal::new(2500, 3)),
        Value::from("Straße"),
        Value::from("abc"),
        Value::Bytes(b"abc\xFF".to_vec()),
        Value::DateTime(midnight(17)),
        Value::Time(Time::from_micros(-1).unwrap()),
        Value::Timestamp(1_000_000),
    ]
}

fn number(name: &str) -> u16 {
    COLUMNS.iter().position(|column| *column == name).unwrap() as u16
}

fn compare(name: &str, op: CompareOp, value: impl Into<Value>) -> Filter {
    Filter::Compare { column: number(name), op, value: value.into() }
}

fn eval(filter: &Filter, values: &[Value]) -> Option<bool> {
    let table = table();
    filter.check(&table).unwrap();
    let mut bytes = Vec::new();
    row::encode_row(&table, values, &mut bytes);
    filter.eval(&RowView::new(&table, 0, &bytes))
}

/// Each operator says of the row what the order of column and constant makes it say.
#[test]
fn columns_compare_with_constants_of_other_types() {
    use CompareOp::*;
    use std::cmp::Ordering::{Equal as Same, Greater as Above, Less as Below};
    let decimal = |text: &str| Value::Decimal(text.parse().unwrap());
    let cases: Vec<(&str, Value, Ordering)> = vec![
        ("int", Value::Int(-5), Same),
        ("int", Value::UInt(0), Below),
        ("int", Value::Double(-5.0), Same),
        ("int", Value::Double(-5.5), Above),
        ("int", Value::Double(-4.5), Below),
        ("int", decimal("-5.000"), Same),
        ("int", decimal("-5.001"), Above),
        ("uint", Value::Int(-1), Above),
        ("uint", Value::UInt(u64::MAX), Same),
        // As a double it is 2^64.
        ("uint", Value::Double(u64::MAX as f64), Below),
        ("uint", Value::Double(1e300), Below),
        ("uint", Value::Double(-1e300), Above),
        ("uint", decimal("18446744073709551615.0"), Same),
        ("double", Value::Double(2.5), Same),
        ("double", Value::Int(2), Above),
        ("double", Value::UInt(3), Below),
        ("double", decimal("2.50"), Same),
        ("decimal", decimal("2.5"), Same),
        ("decimal", Value::Int(3), Below),
        ("decimal", Value::Double(2.5), Same),
        ("decimal", Value::Double(2.4), Above),
        ("ci", Value::from("strasse"), Same),
        ("ci", Value::from("strasse "), Below),
        ("pad", Value::from("abc   "), Same),
        ("pad", Value::from("ABC"), Above),
        ("bytes", Value::Bytes(b"abc".to_vec()), Above),
        ("date", Value::Date(Date::from_parts(2024, 5, 17)), Same),
        ("date", Value::DateTime(midnight(18)), Below),
        ("time", Value::Time(Time::ZERO), Below),
        ("stamp", Value::Timestamp(0), Above),
    ];
    for (name, value, order) in cases {
        let holds = [
            (Equal, order == Same),
            (NotEqual, order != Same),
            (Less, order == Below),
            (LessOrEqual, order != Above),
            (Greater, order == Above),
            (GreaterOrEqual, order != Below),
        ];
        for (op, expected) in holds {
            let filter = compare(name, op, value.clone());
            assert_eq!(eval(&filter, &a_row()), Some(expected), "{filter:?}");
        }
    }
}

#[test]
fn integers_above_the_exact_doubles() {
    let exact = 1i64 << 53;
    let cases = [(exact, exact as f64, Ordering::Equal), (exact + 1, exact as f64, Ordering::Greater)];
    for (integer, double, order) in cases {
        assert_eq!(compare_integer(integer.into(), double), Some(order));
    }
    assert_eq!(compare_integer(0, -0.0), Some(Ordering::Equal));
    assert_eq!(compare_integer(0, -0.5), Some(Ordering::Greater));
    assert_eq!(compare_integer(0, f64::INFINITY), Some(Ordering::Less));
    assert_eq!(compare_integer(0, f64::NAN), None);
}

#[test]
fn three_values() {
    let mut values = a_row();
    values[usize::from(number("int"))] = Value::Null;
    let yes = || compare("id", CompareOp::Equal, 1);
    let no = || compare("id", CompareOp::Equal, 2);
    let unknown = || compare("int", CompareOp::Equal, 1);
    let not = |filter| Filter::Not(Box::new(filter));
    let cases = [
        (unknown(), None),
        (compare("id", CompareOp::Equal, Value::Null), None),
        (not(unknown()), None),
        (not(no()), Some(true)),
        (Filter::And(vec![yes(), unknown()]), None),
        (Filter::And(vec![unknown(), no()]), Some(false)),
        (Filter::And(vec![yes(), yes()]), Some(true)),
        (Filter::Or(vec![unknown(), yes()]), Some(true)),
        (Filter::Or(vec![no(), unknown()]), None),
        (Filter::Or(vec![no(), no()]), Some(false)),
        (Filter::And(Vec::new()), Some(true)),
        (Filter::Or(Vec::new()), Some(false)),
        (Filter::IsNull { column: number("int") }, Some(true)),
        (Filter::IsNull { column: number("uint") }, Some(false)),
        (Filter::StartsWith { column: number("pad"), prefix: b"ab".to_vec() }, Some(true)),
        (Filter::StartsWith { column: number("pad"), prefix: b"AB".to_vec() }, Some(false)),
        (Filter::StartsWith { column: number("bytes"), prefix: b"abc\xFF".to_vec() }, Some(true)),
    ];
    for (filter, expected) in cases {
        assert_eq!(eval(&filter, &values), expected, "{filter:?}");
    }
    values[usize::from(number("bytes"))] = Value::Null;
    assert_eq!(eval(&Filter::StartsWith { column: number("bytes"), prefix: Vec::new() }, &values), None);
}

#[test]
fn constants_that_do_not_compare_are_named() {
    let refused = |filter: Filter| filter.check(&table()).unwrap_err();
    assert_eq!(
        refused(compare("uint", CompareOp::Equal, "5")),
        "column 'uint' of table 't' is BIGINT UNSIGNED and cannot be compared with a text"
    );
    assert_eq!(
        refused(Filter::And(vec![Filter::Not(Box::new(compare("ci", CompareOp::Less, Value::Bytes(Vec::new()))))])),
        "column 'ci' of table 't' is VARCHAR and cannot be compared with bytes"
    );
    assert_eq!(
        refused(compare("double", CompareOp::Less, f64::NAN)),
        "column 'double' of table 't' is DOUBLE and cannot be compared with a double that is not finite"
    );
    assert_eq!(refused(Filter::IsNull { column: 11 }), "table 't' has 11 columns, none at position 11");
    assert_eq!(
        refused(Filter::StartsWith { column: number("date"), prefix: b"2024".to_vec() }),
        "column 'date' of table 't' is DATETIME; only texts and bytes begin with something"
    );
    for (name, value) in [
        ("time", Value::DateTime(midnight(1))),
        ("stamp", Value::DateTime(midnight(1))),
        ("date", Value::Timestamp(0)),
        ("bytes", Value::from("abc")),
        ("date", Value::Int(20_240_517)),
    ] {
        assert!(compare(name, CompareOp::Equal, value).check(&table()).is_err(), "{name}");
    }
}
