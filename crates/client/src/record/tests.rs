use super::*;
use rauk_types::{Column, ColumnId, IndexKind, IndexPart, IndexSchema, TableId, Value};

#[derive(rauk_derive::Record, Clone, Debug, PartialEq)]
#[rauk(database = "shop", table = "orders")]
struct Order {
    #[rauk(key)]
    customer: u32,
    #[rauk(key)]
    number: u64,
    #[rauk(length = 20, index, collation = "utf8mb4_bin")]
    note: Option<String>,
    #[rauk(precision = 12, scale = 2)]
    price: Decimal,
    paid: bool,
    #[rauk(column = "at", fraction = 3)]
    r#type: DateTime,
    weight: f32,
    photo: Vec<u8>,
}

fn order() -> Order {
    Order {
        customer: 7,
        number: u64::MAX,
        note: None,
        price: "12.50".parse().unwrap(),
        paid: true,
        r#type: DateTime::MAX,
        weight: 0.5,
        photo: vec![1, 2],
    }
}

/// The table that is made from the struct.
fn orders() -> TableSchema {
    let field =
        |(i, field): (usize, &FieldInfo)| Column::new(ColumnId(i as u16), field.column, field.ty, field.nullable);
    let columns = Order::fields().iter().enumerate().map(field).collect();
    TableSchema::new(TableId(1), "shop", "orders", columns, vec![IndexSchema::primary(&[0, 1])])
}

#[test]
fn a_record_says_what_its_table_is() {
    let fields = Order::fields();
    assert_eq!((Order::DATABASE, Order::TABLE), ("shop", "orders"));
    assert_eq!(
        fields.iter().map(|f| f.column).collect::<Vec<_>>(),
        ["customer", "number", "note", "price", "paid", "at", "weight", "photo"]
    );
    assert_eq!(fields[1].ty, DataType::BIGINT_UNSIGNED);
    assert_eq!(fields[2].ty, DataType::varchar(20, Collation::Utf8mb4Bin));
    assert!(fields[2].nullable && fields[2].index && !fields[2].unique && fields[0].key && !fields[2].key);
    assert_eq!(fields[2].rust, "Option<String>");
    assert_eq!(fields[3].ty, DataType::decimal(12, 2));
    assert_eq!(fields[5].ty, DataType { scale: 3, ..DataType::new(TypeKind::DateTime) });
    assert_eq!(columns_of::<Order>(&orders()), Ok((0..8).collect()));
}

#[test]
fn values_there_and_back() {
    let order = order();
    let mut values = Vec::new();
    order.values(&mut values);
    assert_eq!(values[0], ValueRef::UInt(7));
    assert_eq!(values[2], ValueRef::Null);
    assert_eq!(values[6], ValueRef::Double(0.5));
    assert_eq!(Order::from_values(&mut |i| values[i]), Ok(order.clone()));
    values[3] = ValueRef::Null;
    assert_eq!(Order::from_values(&mut |i| values[i]), Err(3));
}

#[test]
fn fields_are_found_in_a_table_of_another_order() {
    let mut table = orders();
    table.columns.reverse();
    table.columns.insert(0, Column::new(ColumnId(99), "more", DataType::DOUBLE, true));
    table.indexes[0] = IndexSchema::primary(&[8, 7]);
    assert_eq!(columns_of::<Order>(&table), Ok(vec![8, 7, 6, 5, 4, 3, 2, 1]));
}

#[test]
fn every_mismatch_is_told_with_its_mending() {
    let mut table = orders();
    table.columns[0].ty = DataType::BIGINT;
    table.columns[3].nullable = true;
    table.columns[4].ty.length = 0;
    let error = columns_of::<Order>(&table).unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::WrongType, 1366));
    assert_eq!(
        error.message,
        "column `customer` of shop.orders is BIGINT NOT NULL, which a field of type u32 does not hold: make the field i64; \
         column `price` of shop.orders is DECIMAL(12,2), which a field of type Decimal does not hold: make the field Option<Decimal>; \
         column `paid` of shop.orders is TINYINT NOT NULL, which a field of type bool does not hold: make the field i8"
    );
    table.columns[7].name = "picture".into();
    let error = columns_of::<Order>(&table).unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::UnknownColumn, 1054));
    assert!(error.message.starts_with("shop.orders has no column `photo`; column `customer`"), "{}", error.message);
}

#[test]
fn the_key_must_be_the_tables() {
    let mut table = orders();
    table.indexes[0].parts.pop();
    let error = columns_of::<Order>(&table).unwrap_err();
    assert!(
        error
            .message
            .starts_with("the primary key of shop.orders is (customer), that of the record is (customer, number)")
    );
    let hidden = Column::new(ColumnId(50), rauk_types::schema::HIDDEN_KEY_COLUMN, DataType::BIGINT_UNSIGNED, false);
    table.columns.push(hidden);
    table.indexes[0].parts = vec![IndexPart { column: 8, prefix: None, descending: false }];
    assert_eq!(table.indexes[0].kind, IndexKind::Primary);
    table.hidden_key = true;
    assert!(columns_of::<Order>(&table).unwrap_err().message.contains("has no primary key"));
}

/// A type is accepted exactly when its smallest and largest value are read into the field.
#[test]
fn integers_are_accepted_when_every_value_fits() {
    fn check<T: Field>() {
        use TypeKind::*;
        for kind in [TinyInt, SmallInt, MediumInt, Int, BigInt] {
            for unsigned in [false, true] {
                let ty = DataType { unsigned, ..DataType::new(kind) };
                let (low, high) = ty.integer_range().unwrap();
                let value = |v: i128| match unsigned {
                    true => Value::UInt(v as u64),
                    false => Value::Int(v as i64),
                };
                let fits = [low, high].into_iter().all(|v| T::from_value(value(v).as_ref()).is_some());
                assert_eq!(T::accepts(&ty), fits, "{ty:?} into {}", std::any::type_name::<T>());
                assert!(!<Option<T>>::accepts(&DataType::DOUBLE));
            }
        }
    }
    check::<i8>();
    check::<i16>();
    check::<i32>();
    check::<i64>();
    check::<u8>();
    check::<u16>();
    check::<u32>();
    check::<u64>();
}

#[test]
fn other_types_are_accepted_as_the_table_says() {
    use TypeKind::*;
    let all = [
        TinyInt, SmallInt, MediumInt, Int, BigInt, Decimal, Float, Double, Char, VarChar, TinyText, Text, MediumText,
        LongText, Binary, VarBinary, TinyBlob, Blob, MediumBlob, LongBlob, Date, Time, DateTime, Timestamp, Json,
    ];
    let accepted = |accepts: fn(&DataType) -> bool| -> Vec<TypeKind> {
        all.into_iter().filter(|&kind| accepts(&DataType::new(kind))).collect()
    };
    assert_eq!(accepted(bool::accepts), []);
    assert!(bool::accepts(&DataType { length: 1, ..DataType::new(TinyInt) }));
    assert_eq!(accepted(f32::accepts), [Float]);
    assert_eq!(accepted(f64::accepts), [Float, Double]);
    assert_eq!(accepted(rauk_types::Decimal::accepts), [Decimal]);
    assert_eq!(accepted(String::accepts), [Char, VarChar, TinyText, Text, MediumText, LongText, Json]);
    assert_eq!(accepted(Vec::<u8>::accepts), [Binary, VarBinary, TinyBlob, Blob, MediumBlob, LongBlob]);
    assert_eq!(accepted(rauk_types::Date::accepts), [Date]);
    assert_eq!(accepted(rauk_types::Time::accepts), [Time]);
    assert_eq!(accepted(rauk_types::DateTime::accepts), [DateTime, Timestamp]);
}
