//! Scans with every option, against a list.

use super::{Place, account, accounts};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rauk_client::{Direction, ErrorKind, Isolation, Record, Row, TransactionOptions, Value, column};
use std::ops::Bound;
use std::time::Duration;

#[derive(Record, Clone, Debug, PartialEq)]
#[rauk(database = "suite", table = "lines")]
struct Line {
    #[rauk(key)]
    book: u16,
    #[rauk(key)]
    number: i32,
    #[rauk(index)]
    colour: Option<i8>,
    #[rauk(length = 10, collation = "utf8mb4_bin", index)]
    word: String,
    text: String,
}

async fn lines(place: &Place, n: i32) -> (rauk_client::Records<Line>, Vec<Line>) {
    let records = place.client.open_or_create::<Line>().await.expect("the table can be made");
    let mut random = StdRng::seed_from_u64(n as u64);
    let mut rows: Vec<Line> = (0..n)
        .map(|i| Line {
            book: (i % 7) as u16,
            number: i / 7 - 20,
            colour: random.random_bool(0.8).then(|| random.random_range(-5..5)),
            word: ["", "a", "ab", "abc", "b", "ü"][random.random_range(0..6)].into(),
            text: "t".repeat(random.random_range(0..40)),
        })
        .collect();
    let mut batch = place.client.batch();
    for row in &rows {
        batch.insert_record(&records, row);
    }
    assert_eq!(place.client.execute(batch).await.expect("executed").succeeded(), rows.len());
    rows.sort_by_key(|row| (row.book, row.number));
    (records, rows)
}

type Key = (Option<i64>, String);
type Test = Box<dyn Fn(&Line) -> bool>;

/// What random scans give is what a list gives that is filtered, sorted and cut.
pub async fn against_a_model(place: &Place) {
    let (records, rows) = lines(place, 500).await;
    let table = records.table();
    let mut random = StdRng::seed_from_u64(1);
    for round in 0..250 {
        let index = ["", "PRIMARY", "colour", "word"][random.random_range(0..4)];
        let mut scan = match index {
            "" => table.scan(),
            name => table.scan_index(name).expect("there is such an index"),
        };
        // Of a key, what the range is about.
        let key = |row: &Line| -> Key {
            match index {
                "colour" => (row.colour.map(i64::from), String::new()),
                "word" => (None, row.word.clone()),
                _ => (Some(row.book.into()), String::new()),
            }
        };
        let value =
            |key: &Key| -> Value { if index == "word" { Value::from(key.1.as_str()) } else { Value::from(key.0) } };
        let mut expected: Vec<&Line> = rows.iter().collect();
        if !index.is_empty() && random.random_bool(0.6) {
            // NULL is before all numbers in an index, and in `Option`.
            let bound = |random: &mut StdRng| {
                let row = key(&rows[random.random_range(0..rows.len())]);
                match random.random_range(0..3) {
                    0 => Bound::Unbounded,
                    1 => Bound::Included(row),
                    _ => Bound::Excluded(row),
                }
            };
            let (low, high) = (bound(&mut random), bound(&mut random));
            expected.retain(|row| {
                let key = key(row);
                let above = match &low {
                    Bound::Unbounded => true,
                    Bound::Included(low) => key >= *low,
                    Bound::Excluded(low) => key > *low,
                };
                let below = match &high {
                    Bound::Unbounded => true,
                    Bound::Included(high) => key <= *high,
                    Bound::Excluded(high) => key < *high,
                };
                above && below
            });
            let of_values = |bound: &Bound<Key>| bound.as_ref().map(value);
            scan = scan.range::<Value>((of_values(&low), of_values(&high)));
        }
        if random.random_bool(0.5) {
            let (limit, word) = (random.random_range(-5..5i64), ["a", "ab", "x", ""][random.random_range(0..4)]);
            let (condition, passes): (_, Test) = match random.random_range(0..4) {
                0 => (
                    column("colour").at_least(limit),
                    Box::new(move |row| row.colour.is_some_and(|c| i64::from(c) >= limit)),
                ),
                1 => (
                    column("colour").equals(limit).negated().or(column("word").equals(word)),
                    Box::new(move |row| row.colour.is_some_and(|c| i64::from(c) != limit) || row.word == word),
                ),
                2 => (
                    column("word").starts_with(word).and(column("number").less_than(0)),
                    Box::new(move |row| row.word.starts_with(word) && row.number < 0),
                ),
                _ => (column("colour").is_null(), Box::new(|row| row.colour.is_none())),
            };
            expected.retain(|row| passes(row));
            scan = scan.filter(condition);
        }
        let backward = !index.is_empty() && random.random_bool(0.4);
        if backward {
            scan = scan.direction(Direction::Backward);
        }
        match index {
            "colour" | "word" => expected.sort_by_key(|row| key(row)),
            _ => {}
        }
        if backward {
            expected.reverse();
        }
        let limit = random.random_bool(0.3).then(|| random.random_range(0..60));
        if let Some(limit) = limit {
            scan = scan.limit(limit as u64);
        }
        let projected = random.random_bool(0.3);
        if projected {
            scan = scan.columns(&["number", "book", "colour", "word"]);
        }
        let isolation = match random.random_range(0..4) {
            0 => Some(Isolation::ReadCommitted),
            1 => Some(Isolation::Serializable),
            _ => None,
        };
        let found = match isolation {
            None => scan.collect().await.expect("scanned"),
            Some(isolation) => {
                let options = TransactionOptions { isolation, ..Default::default() };
                let mut transaction = place.client.begin_with(options);
                let mut found = Vec::new();
                let mut under_way = transaction.scan(scan);
                while let Some(row) = under_way.next().await.expect("scanned") {
                    found.push(row);
                }
                drop(under_way);
                transaction.commit().await.expect("committed");
                found
            }
        };
        let record = |row: &Row| if projected { line(row, &rows) } else { records.record_of(row) };
        let found: Vec<Line> = found.iter().map(|row| record(row).expect("a whole row")).collect();
        let at = format!("round {round}: {isolation:?} index {index:?} backward {backward} limit {limit:?}");
        let cut = limit.map_or(expected.len(), |limit| expected.len().min(limit));
        assert_eq!(found.len(), cut, "{at}");
        match index {
            // In no order: the same rows, or as many of them as were asked for.
            "" => {
                let mut found = found;
                found.sort_by_key(|row| (row.book, row.number));
                if limit.is_none() {
                    assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{at}");
                }
                assert!(found.iter().all(|row| expected.contains(&row)), "{at}");
            }
            // Rows with equal keys are in no order among themselves.
            "colour" | "word" => {
                let keys = |rows: &mut dyn Iterator<Item = Key>| rows.collect::<Vec<_>>();
                let wanted = keys(&mut expected.iter().take(cut).map(|row| key(row)));
                assert_eq!(keys(&mut found.iter().map(key)), wanted, "{at}");
                assert!(found.iter().all(|row| expected.contains(&row)), "{at}");
            }
            _ => assert_eq!(found.iter().collect::<Vec<_>>(), expected[..cut], "{at}"),
        }
    }
}

/// A row without its text, which is taken from the list.
fn line(row: &Row, all: &[Line]) -> Result<Line, rauk_client::Error> {
    assert_eq!(row.value("text").unwrap_err().kind, ErrorKind::UnknownColumn);
    let (book, number) = (row.get("book")?, row.get("number")?);
    let text = all.iter().find(|row| (row.book, row.number) == (book, number)).map(|row| row.text.clone());
    Ok(Line { book, number, colour: row.get("colour")?, word: row.get("word")?, text: text.unwrap_or_default() })
}

pub async fn bounds_of_a_composite_key(place: &Place) {
    let (records, rows) = lines(place, 210).await;
    let table = records.table();
    let primary = || table.scan_index("PRIMARY").expect("there is a primary key");
    let of = |book: u16, numbers: std::ops::Range<i32>| -> Vec<Line> {
        rows.iter().filter(|row| row.book == book && numbers.contains(&row.number)).cloned().collect()
    };
    let found = primary().prefix(3u16).collect_records(&records).await;
    assert_eq!(found, Ok(of(3, -20..100)));
    let found = primary().prefix((3u16, -5)).collect_records(&records).await;
    assert_eq!(found, Ok(of(3, -5..-4)));
    let found = primary().range((3u16, -5)..(3u16, 4)).collect_records(&records).await;
    assert_eq!(found, Ok(of(3, -5..4)));
    let found = primary().range((3u16, -5)..=(3u16, 4)).direction(Direction::Backward).collect_records(&records).await;
    assert_eq!(found, Ok(of(3, -5..5).into_iter().rev().collect()));
    let found = primary().range((6u16, 5)..).collect_records(&records).await;
    assert_eq!(found, Ok(of(6, 5..100)));
    let found = primary().range(..(0u16, -18)).limit(1).collect_records(&records).await;
    assert_eq!(found, Ok(of(0, -20..-19)));
    let found = primary().prefix(77u16).collect_records(&records).await;
    assert_eq!(found, Ok(vec![]));
    let found = primary().limit(0).collect_records(&records).await;
    assert_eq!(found, Ok(vec![]));
}

pub async fn many_pages(place: &Place) {
    let accounts = accounts(place, 20_000).await;
    let table = accounts.table();
    let mut rows = table.scan_index("PRIMARY").expect("there").rows();
    let mut count = 0;
    while let Some(row) = rows.next().await.expect("scanned") {
        count += 1;
        assert_eq!(row.get::<u64>("id"), Ok(count));
    }
    assert_eq!(count, 20_000);
    let mut ids: Vec<u64> = Vec::new();
    for row in table.scan().columns(&["id"]).collect().await.expect("scanned") {
        ids.push(row.get("id").expect("the column that was asked for"));
    }
    ids.sort_unstable();
    assert!(ids.into_iter().eq(1..=20_000));
    let few = table.scan().filter(column("id").is_one_of([5u64, 19_999, 30_000])).collect().await.expect("scanned");
    assert_eq!(few.len(), 2);
    let some = table.scan().limit(7_777).collect().await.expect("scanned");
    assert_eq!(some.len(), 7_777);
}

pub async fn in_a_transaction(place: &Place) {
    let accounts = accounts(place, 5).await;
    let table = accounts.table();
    let mut transaction = place.client.begin();
    transaction.insert(&accounts, &account(6, 6)).await.expect("inserted");
    transaction.delete(&accounts, 1u64).await.expect("deleted");
    transaction.increment(&accounts, 2u64, "balance", 1).await.expect("changed");
    let mut rows = transaction.scan(table.scan_index("PRIMARY").expect("there"));
    let mut found = Vec::new();
    while let Some(row) = rows.next().await.expect("scanned") {
        found.push((row.get::<u64>("id").expect("id"), row.get::<i64>("balance").expect("balance")));
    }
    drop(rows);
    assert_eq!(found, [(2, 101), (3, 100), (4, 100), (5, 100), (6, 6)]);
    // Others see nothing of it.
    assert_eq!(table.scan().collect().await.expect("scanned").len(), 5);
    transaction.rollback().await.expect("rolled back");
    let rows = table.scan_index("PRIMARY").expect("there").collect_records(&accounts).await;
    assert_eq!(rows, Ok((1..=5).map(|id| account(id, 100)).collect()));
}

pub async fn locking(place: &Place) {
    let accounts = accounts(place, 5).await;
    let table = accounts.table();
    let mut transaction = place.client.begin();
    let mut rows = transaction.scan(table.scan_index("PRIMARY").expect("there").range(..=2u64).for_update());
    while rows.next().await.expect("scanned").is_some() {}
    drop(rows);
    let options = TransactionOptions { lock_wait: Duration::from_millis(50), ..Default::default() };
    let mut other = place.client.begin_with(options);
    assert_eq!(other.increment(&accounts, 3u64, "balance", 1).await, Ok(Some(account(3, 101))));
    let error = other.increment(&accounts, 2u64, "balance", 1).await.unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::LockTimeout, 1205));
    transaction.rollback().await.expect("rolled back");
    assert_eq!(other.increment(&accounts, 2u64, "balance", 1).await, Ok(Some(account(2, 101))));
    other.commit().await.expect("committed");
    // Outside of a transaction nothing could be kept locked.
    assert!(table.scan().for_update().collect().await.is_err());
}

pub async fn ended_early(place: &Place) {
    let accounts = accounts(place, 10_000).await;
    let table = accounts.table();
    for _ in 0..600 {
        let mut rows = table.scan().rows();
        assert!(rows.next().await.expect("scanned").is_some());
    }
    for _ in 0..20 {
        let mut transaction = place.client.begin();
        for _ in 0..20 {
            let mut rows = transaction.scan(table.scan_index("owner").expect("there"));
            assert!(rows.next().await.expect("scanned").is_some());
        }
        assert_eq!(transaction.get(&accounts, 7u64).await, Ok(Some(account(7, 100))));
        transaction.commit().await.expect("committed");
    }
    assert_eq!(table.scan().collect().await.expect("scanned").len(), 10_000);
}

pub async fn of_records(place: &Place) {
    let accounts = accounts(place, 3).await;
    let table = accounts.table();
    let scan = table.scan_index("owner").expect("there").prefix("OWNER 2");
    assert_eq!(scan.collect_records(&accounts).await, Ok(vec![account(2, 100)]));
    // A record needs all of its columns.
    let scan = table.scan().columns(&["id"]);
    assert_eq!(scan.collect_records(&accounts).await.unwrap_err().kind, ErrorKind::UnknownColumn);
    assert!(table.scan_index("none").is_err_and(|error| error.kind == ErrorKind::UnknownIndex));
    // Mistakes are noticed when it starts.
    // A range without an index is one of the primary key.
    assert_eq!(table.scan().range(2u64..).collect().await.map(|rows| rows.len()), Ok(2));
    let error = table.scan_index("PRIMARY").expect("there").range("a"..).collect().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::WrongType, "{error}");
    let error = table.scan().filter(column("none").is_null()).collect().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownColumn, "{error}");
    let error = table.scan().columns(&["none"]).collect().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownColumn, "{error}");
}
