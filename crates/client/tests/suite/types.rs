//! Every type of a record, with its extremes: what was written is what is read.

use super::{Place, decimal, refused, text};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rauk_client::{Date, DateTime, Decimal, ErrorKind, Record, Time, Value};

#[derive(Record, Clone, Debug, PartialEq)]
#[rauk(database = "suite", table = "everything")]
struct Everything {
    #[rauk(key)]
    id: u64,
    i8: i8,
    i16: i16,
    i32: i32,
    i64: i64,
    u8: u8,
    u16: u16,
    u32: u32,
    u64: u64,
    f32: f32,
    f64: f64,
    bool: bool,
    #[rauk(length = 30)]
    varchar: String,
    text: String,
    #[rauk(length = 30)]
    varbinary: Vec<u8>,
    blob: Vec<u8>,
    #[rauk(precision = 9, scale = 4)]
    narrow: Decimal,
    wide: Decimal,
    date: Date,
    time: Time,
    at: DateTime,
}

#[derive(Record, Clone, Debug, PartialEq, Default)]
#[rauk(database = "suite", table = "nothing")]
struct Nothing {
    #[rauk(key)]
    id: u64,
    i8: Option<i8>,
    i16: Option<i16>,
    i32: Option<i32>,
    i64: Option<i64>,
    u8: Option<u8>,
    u16: Option<u16>,
    u32: Option<u32>,
    u64: Option<u64>,
    f32: Option<f32>,
    f64: Option<f64>,
    bool: Option<bool>,
    #[rauk(length = 30)]
    varchar: Option<String>,
    text: Option<String>,
    #[rauk(length = 30)]
    varbinary: Option<Vec<u8>>,
    blob: Option<Vec<u8>>,
    #[rauk(precision = 12, scale = 2)]
    decimal: Option<Decimal>,
    date: Option<Date>,
    time: Option<Time>,
    at: Option<DateTime>,
}

fn moment(year: u16, month: u8, day: u8, hour: u8, minute: u8, second: u8, micros: u32) -> DateTime {
    DateTime::from_parts(year, month, day, hour, minute, second, micros).expect("a moment")
}

fn zero() -> Everything {
    Everything {
        id: 0,
        i8: 0,
        i16: 0,
        i32: 0,
        i64: 0,
        u8: 0,
        u16: 0,
        u32: 0,
        u64: 0,
        f32: 0.0,
        f64: 0.0,
        bool: false,
        varchar: String::new(),
        text: String::new(),
        varbinary: Vec::new(),
        blob: Vec::new(),
        narrow: Decimal::default(),
        wide: Decimal::default(),
        date: Date::ZERO,
        time: Time::from_micros(0).expect("a time"),
        at: DateTime::ZERO,
    }
}

fn largest() -> Everything {
    Everything {
        id: u64::MAX,
        i8: i8::MAX,
        i16: i16::MAX,
        i32: i32::MAX,
        i64: i64::MAX,
        u8: u8::MAX,
        u16: u16::MAX,
        u32: u32::MAX,
        u64: u64::MAX,
        f32: f32::MAX,
        f64: f64::MAX,
        bool: true,
        // Thirty characters of four bytes each.
        varchar: "🦀".repeat(30),
        text: "ÿ\0\u{10FFFF}\n'\"\\".repeat(50),
        varbinary: vec![0xFF; 30],
        blob: (0..=255).collect(),
        narrow: decimal("99999.9999"),
        wide: decimal("99999999999999999999999999999999999.999999999999999999999999999999"),
        date: Date::MAX,
        time: Time::MAX,
        at: DateTime::MAX,
    }
}

fn smallest() -> Everything {
    Everything {
        id: 1,
        i8: i8::MIN,
        i16: i16::MIN,
        i32: i32::MIN,
        i64: i64::MIN,
        f32: f32::MIN,
        f64: f64::MIN,
        varchar: " ".into(),
        narrow: decimal("-99999.9999"),
        wide: decimal("-99999999999999999999999999999999999.999999999999999999999999999999"),
        date: Date::new(1, 1, 1).expect("a date"),
        time: Time::MIN,
        at: moment(1, 1, 1, 0, 0, 0, 1),
        ..zero()
    }
}

pub async fn smallest_and_largest(place: &Place) {
    let table = place.client.open_or_create::<Everything>().await.expect("the table can be made");
    let tiny = Everything {
        id: 2,
        f32: f32::MIN_POSITIVE,
        f64: 5e-324,
        wide: decimal("0.000000000000000000000000000001"),
        ..zero()
    };
    let rows = [zero(), smallest(), tiny, largest()];
    for row in &rows {
        table.insert(row).await.expect("inserted");
        assert_eq!(table.get(row.id).await, Ok(Some(row.clone())));
    }
    // And over each other.
    for (i, row) in rows.iter().enumerate() {
        let other = Everything { id: row.id, ..rows[(i + 1) % rows.len()].clone() };
        assert_eq!(table.update(&other).await, Ok(true));
        assert_eq!(table.get(row.id).await, Ok(Some(other)));
        table.write(row).await.expect("written");
    }
    let untyped = table.table();
    for row in &rows {
        let found = untyped.get(row.id).await.expect("read").expect("there");
        assert_eq!(found.get::<i64>("i8"), Ok(row.i8.into()));
        assert_eq!(found.get::<u64>("u64"), Ok(row.u64));
        assert_eq!(found.get::<f32>("f32"), Ok(row.f32));
        assert_eq!(found.get::<f64>("f32"), Ok(row.f32.into()));
        assert_eq!(found.get::<bool>("bool"), Ok(row.bool));
        assert_eq!(found.get::<Decimal>("wide"), Ok(row.wide));
        assert_eq!(found.get::<DateTime>("at"), Ok(row.at));
        assert_eq!(found.get::<Time>("time"), Ok(row.time));
        assert_eq!(found.get::<Vec<u8>>("text"), Ok(row.text.clone().into_bytes()));
        let again: Vec<(String, Value)> = found.columns().map(|(name, v)| (name.to_string(), v.to_owned())).collect();
        let again: Vec<(&str, Value)> = again.iter().map(|(name, v)| (name.as_str(), v.clone())).collect();
        untyped.write(&again).await.expect("what was read can be written");
        assert_eq!(table.get(row.id).await, Ok(Some(row.clone())));
    }
    // Floats that are no number are no value.
    for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = table.insert(&Everything { id: 77, f64: wrong, ..zero() }).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidValue, "{error}");
    }
    assert_eq!(table.get(77u64).await, Ok(None));
}

pub async fn null_in_every_type(place: &Place) {
    let table = place.client.open_or_create::<Nothing>().await.expect("the table can be made");
    let nothing = Nothing { id: 1, ..Default::default() };
    let everything = Nothing {
        id: 2,
        i8: Some(-1),
        i16: Some(-1),
        i32: Some(-1),
        i64: Some(-1),
        u8: Some(1),
        u16: Some(1),
        u32: Some(1),
        u64: Some(1),
        f32: Some(0.25),
        f64: Some(-0.1),
        bool: Some(false),
        varchar: Some(String::new()),
        text: Some("ä".into()),
        varbinary: Some(Vec::new()),
        blob: Some(vec![0]),
        decimal: Some(decimal("-0.01")),
        date: Some(Date::ZERO),
        time: Some(Time::MIN),
        at: Some(DateTime::MAX),
    };
    for row in [&nothing, &everything] {
        table.insert(row).await.expect("inserted");
        assert_eq!(table.get(row.id).await, Ok(Some(row.clone())));
    }
    for (to, of) in [(1, &everything), (2, &nothing)] {
        let row = Nothing { id: to, ..of.clone() };
        assert_eq!(table.update(&row).await, Ok(true));
        assert_eq!(table.get(to).await, Ok(Some(row)));
    }
    let row = table.table().get(2u64).await.expect("read").expect("there");
    assert!(row.columns().skip(1).all(|(_, value)| value.is_null()));
    assert_eq!(row.get::<u8>("u8").unwrap_err().kind, ErrorKind::WrongType);
}

/// A table whose key is of a type, with these values in ascending order: each is found, and they are scanned in this order.
macro_rules! key_of {
    ($place:expr, $table:literal, $type:ty $(, #[$attribute:meta])*; $values:expr) => {{
        #[derive(Record, Clone, Debug, PartialEq)]
        #[rauk(database = "suite", table = $table)]
        struct Keyed {
            #[rauk(key)]
            $(#[$attribute])*
            key: $type,
            number: u32,
        }
        let table = $place.client.open_or_create::<Keyed>().await.expect("the table can be made");
        let values: Vec<$type> = $values;
        // Against the order, so that the index has something to do.
        for (number, key) in values.iter().enumerate().rev() {
            let row = Keyed { key: key.clone(), number: number as u32 };
            table.insert(&row).await.expect("inserted");
            refused(table.insert(&row).await, ErrorKind::Duplicate, 1062);
        }
        for (number, key) in values.iter().enumerate() {
            let row = table.get(key).await.expect("read").expect("there");
            assert_eq!((&row.key, row.number), (key, number as u32));
        }
        let scan = table.table().scan_index("PRIMARY").expect("there is a primary key");
        let rows = scan.collect_records(&table).await.expect("scanned");
        assert_eq!(rows.into_iter().map(|row| row.key).collect::<Vec<_>>(), values, "{}", $table);
        let middle = values[values.len() / 2].clone();
        let scan = table.table().scan_index("PRIMARY").expect("there").range(middle..);
        let rows = scan.collect_records(&table).await.expect("scanned");
        assert_eq!(rows.into_iter().map(|row| row.key).collect::<Vec<_>>(), values[values.len() / 2..], "{}", $table);
    }};
}

pub async fn every_type_as_a_key(place: &Place) {
    key_of!(place, "key_i8", i8; vec![i8::MIN, -1, 0, 1, i8::MAX]);
    key_of!(place, "key_u16", u16; vec![0, 1, 255, 256, u16::MAX]);
    key_of!(place, "key_i32", i32; vec![i32::MIN, -65536, -1, 0, 255, 256, i32::MAX]);
    key_of!(place, "key_i64", i64; vec![i64::MIN, -1, 0, 1, 1 << 40, i64::MAX]);
    key_of!(place, "key_u64", u64; vec![0, 1, 1 << 40, i64::MAX as u64, 1 << 63, u64::MAX]);
    key_of!(place, "key_bool", bool; vec![false, true]);
    key_of!(place, "key_text", String, #[rauk(collation = "utf8mb4_bin", length = 20)];
        ["", "A", "B", "a", "aa", "b", "ä", "🦀"].map(String::from).to_vec());
    key_of!(place, "key_bytes", Vec<u8>; vec![vec![], vec![0], vec![0, 0], vec![0, 1], vec![1], vec![255], vec![255, 0]]);
    key_of!(place, "key_decimal", Decimal, #[rauk(precision = 20, scale = 3)];
        ["-99999999999999999.999", "-1.5", "-0.001", "0", "0.001", "1", "1.5", "99999999999999999.999"].map(decimal).to_vec());
    key_of!(place, "key_wide", Decimal; ["-12345678901234567890123456789012345.5", "-0.5", "0", "12345678901234567890123456789012345.5"].map(decimal).to_vec());
    key_of!(place, "key_date", Date; vec![Date::ZERO, Date::from_parts(1, 1, 1), Date::from_parts(2024, 2, 29), Date::MAX]);
    key_of!(place, "key_time", Time;
        [Time::MIN.micros(), -1_000_000, -1, 0, 1, 1_000_000, Time::MAX.micros()].map(|m| Time::from_micros(m).expect("a time")).to_vec());
    key_of!(place, "key_at", DateTime;
        vec![DateTime::ZERO, moment(1970, 1, 1, 0, 0, 0, 0), moment(1970, 1, 1, 0, 0, 0, 1), DateTime::MAX]);
}

pub async fn random_rows(place: &Place) {
    let table = place.client.open_or_create::<Everything>().await.expect("the table can be made");
    let mut random = StdRng::seed_from_u64(11);
    let mut rows = Vec::new();
    let mut batch = place.client.batch();
    for id in 0..300 {
        let bytes = |random: &mut StdRng, most: usize| -> Vec<u8> {
            let length = random.random_range(0..=most);
            (0..length).map(|_| random.random()).collect()
        };
        let words = |random: &mut StdRng, most: usize| -> String {
            let length = random.random_range(0..=most);
            (0..length).map(|_| random.random::<char>()).collect()
        };
        let row = Everything {
            id,
            i8: random.random(),
            i16: random.random(),
            i32: random.random(),
            i64: random.random(),
            u8: random.random(),
            u16: random.random(),
            u32: random.random(),
            u64: random.random(),
            f32: random.random(),
            f64: random.random_range(-1e300..1e300),
            bool: random.random(),
            varchar: words(&mut random, 30),
            text: words(&mut random, 300),
            varbinary: bytes(&mut random, 30),
            blob: bytes(&mut random, 3000),
            narrow: decimal(&format!("{}.{:04}", random.random_range(-99999..99999), random.random_range(0..9999))),
            wide: decimal(&format!("{}.{}", random.random::<i64>(), random.random::<u64>())),
            date: Date::from_parts(
                random.random_range(1..9999),
                random.random_range(1..=12),
                random.random_range(1..=28),
            ),
            time: Time::from_micros(random.random_range(Time::MIN.micros()..=Time::MAX.micros())).expect("a time"),
            at: DateTime::from_unix_micros_utc(random.random_range(0..4_000_000_000_000_000)).expect("a moment"),
        };
        batch.insert_record(&table, &row);
        rows.push(row);
    }
    let result = place.client.execute(batch).await.expect("executed");
    assert_eq!(result.succeeded(), rows.len());
    let mut batch = place.client.batch();
    let ops: Vec<_> = rows.iter().map(|row| batch.get(table.table(), row.id)).collect();
    let result = place.client.execute(batch).await.expect("executed");
    for (row, op) in rows.iter().zip(&ops) {
        assert_eq!(result.record(&table, *op).as_ref(), Ok(&Some(row.clone())));
    }
    let mut found = table.table().scan().collect_records(&table).await.expect("scanned");
    found.sort_by_key(|row| row.id);
    assert_eq!(found, rows);
}

pub async fn large_values(place: &Place) {
    let table = place.client.open_or_create::<Nothing>().await.expect("the table can be made");
    let mut random = StdRng::seed_from_u64(5);
    for (id, length) in [(1, 8_191), (2, 8_193), (3, 65_536), (4, 1 << 20), (5, 5 << 20)] {
        let mut blob = vec![0; length];
        random.fill(&mut blob[..]);
        let row = Nothing { id, text: Some("ß".repeat(length / 2)), blob: Some(blob), ..Default::default() };
        table.insert(&row).await.expect("inserted");
        assert!(table.get(id).await == Ok(Some(row.clone())), "{length} bytes came back as others");
        let shorter = Nothing { id, text: Some("s".into()), ..Default::default() };
        assert_eq!(table.update(&shorter).await, Ok(true));
        assert_eq!(table.get(id).await, Ok(Some(shorter)));
        table.write(&row).await.expect("written");
    }
    // Several in one answer; what does not fit into it is told, operation by operation.
    for (count, fits) in [(8, true), (20, false)] {
        let mut batch = place.client.batch();
        let ops: Vec<_> = (0..count).map(|i| batch.get(table.table(), 4 + i % 2)).collect();
        let result = place.client.execute(batch).await.expect("executed");
        let mut told = 0;
        for (i, op) in ops.into_iter().enumerate() {
            match result.record(&table, op) {
                Ok(row) => {
                    let length = row.expect("there").blob.map(|blob| blob.len());
                    assert_eq!(length, Some([1 << 20, 5 << 20][i % 2]));
                }
                Err(error) => {
                    assert!(error.code == 1153 && error.message.contains("operation"), "{error}");
                    told += 1;
                }
            }
        }
        assert_eq!(told == 0, fits, "{count} operations, {told} told");
    }
}

#[derive(Record, Clone, Debug, PartialEq)]
#[rauk(database = "suite", table = "words")]
struct Word {
    #[rauk(key, length = 20)]
    word: String,
    #[rauk(length = 20, collation = "utf8mb4_bin", unique)]
    exact: String,
}

pub async fn text_keys_by_collation(place: &Place) {
    let words = place.client.open_or_create::<Word>().await.expect("the table can be made");
    let word = |word: &str, exact: &str| Word { word: word.into(), exact: exact.into() };
    words.insert(&word("Résumé", "a")).await.expect("inserted");
    assert_eq!(words.get("resume").await, Ok(Some(word("Résumé", "a"))));
    refused(words.insert(&word("RESUME", "b")).await, ErrorKind::Duplicate, 1062);
    words.insert(&word("other", "A")).await.expect("a binary collation tells a from A");
    assert_eq!(words.get_by("exact", "A").await, Ok(Some(word("other", "A"))));
    assert_eq!(words.get_by("exact", "ä").await, Ok(None));
    // The key as it was spelled first stays, or is spelled anew by an upsert.
    assert_eq!(words.table().update("RÉSUMÉ", &[("exact", text("c"))]).await, Ok(true));
    assert_eq!(words.get_by("exact", "c").await, Ok(Some(word("Résumé", "c"))));
}

#[derive(Record, Clone, Debug, PartialEq)]
#[rauk(database = "suite", table = "moments")]
struct Moment {
    #[rauk(key)]
    id: u8,
    #[rauk(fraction = 0)]
    time: Time,
    #[rauk(fraction = 3)]
    at: DateTime,
}

pub async fn fractions_of_seconds(place: &Place) {
    let table = place.client.open_or_create::<Moment>().await.expect("the table can be made");
    let at = |micros| moment(2024, 2, 29, 23, 59, 59, micros);
    let time = |micros| Time::from_micros(micros).expect("a time");
    let fits = Moment { id: 1, time: time(-1_000_000), at: at(999_000) };
    table.insert(&fits).await.expect("inserted");
    assert_eq!(table.get(1u8).await, Ok(Some(fits.clone())));
    // What has more digits than the column is not rounded behind the program's back.
    let longer = Moment { id: 2, at: at(999_001), ..fits.clone() };
    assert_eq!(table.insert(&longer).await.unwrap_err().kind, ErrorKind::InvalidValue);
    let longer = Moment { id: 2, time: time(1), ..fits };
    assert_eq!(table.insert(&longer).await.unwrap_err().kind, ErrorKind::InvalidValue);
    assert_eq!(table.get(2u8).await, Ok(None));
}
