//! Single operations, outside of transactions.

use super::{Account, Place, account, accounts, balance, coded, decimal, refused, text};
use rauk_client::{Done, ErrorKind, Record, Value, column};

pub async fn a_row_from_insert_to_delete(place: &Place) {
    let accounts = accounts(place, 0).await;
    let mut one = Account { code: Some("c-1".into()), ..account(1, 10) };
    assert_eq!(accounts.get(1u64).await, Ok(None));
    assert_eq!(accounts.update(&one).await, Ok(false));
    assert_eq!(accounts.delete(1u64).await, Ok(false));
    assert_eq!(accounts.insert(&one).await, Ok(None));
    assert_eq!(accounts.get(1u64).await, Ok(Some(one.clone())));
    one.balance = -7;
    one.code = None;
    assert_eq!(accounts.update(&one).await, Ok(true));
    assert_eq!(accounts.get(1u64).await, Ok(Some(one.clone())));
    // The same values again: the row is there, that is what counts.
    assert_eq!(accounts.update(&one).await, Ok(true));
    assert_eq!(accounts.delete(1u64).await, Ok(true));
    assert_eq!(accounts.get(1u64).await, Ok(None));
    assert_eq!(accounts.insert(&one).await, Ok(None));
    assert_eq!(accounts.get(1u64).await, Ok(Some(one)));
}

pub async fn the_same_without_types(place: &Place) {
    accounts(place, 0).await;
    let table = place.client.table("suite", "accounts").await.expect("opened");
    assert_eq!(table.schema().columns.len(), 4);
    assert!(table.get(1u64).await.expect("read").is_none());
    let values = [("id", Value::from(1u64)), ("owner", text("Ada")), ("balance", Value::from(5))];
    assert_eq!(table.insert(&values).await, Ok(None));
    let row = table.get(1u64).await.expect("read").expect("there");
    assert_eq!(row.get::<u64>("id"), Ok(1));
    assert_eq!(row.get::<i64>("BALANCE"), Ok(5));
    assert_eq!(row.get::<String>("owner"), Ok("Ada".into()));
    assert_eq!(row.get::<Option<String>>("code"), Ok(None));
    assert_eq!(row.value("owner").map(|v| v.to_owned()), Ok(text("Ada")));
    let names: Vec<String> = row.columns().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names, ["id", "owner", "balance", "code"]);
    refused(row.get::<u8>("owner"), ErrorKind::WrongType, 1366);
    assert_eq!(row.get::<u64>("none").unwrap_err().kind, ErrorKind::UnknownColumn);
    assert_eq!(table.update(1u64, &[("balance", Value::from(6)), ("code", text("x"))]).await, Ok(true));
    assert_eq!(table.update(2u64, &[("balance", Value::from(6))]).await, Ok(false));
    let row = table.get(1u64).await.expect("read").expect("there");
    assert_eq!(
        (row.get("owner"), row.get("balance"), row.get("code")),
        (Ok("Ada".to_string()), Ok(6), Ok("x".to_string()))
    );
    assert_eq!(table.delete(1u64).await, Ok(true));
    assert_eq!(table.delete(1u64).await, Ok(false));
    // A row outlives its table's.
    assert_eq!(row.get("balance"), Ok(6));
}

pub async fn duplicates_are_refused(place: &Place) {
    let accounts = accounts(place, 0).await;
    accounts.insert(&coded(1, "a")).await.expect("inserted");
    accounts.insert(&coded(2, "b")).await.expect("inserted");
    let error = refused(accounts.insert(&account(1, 99)).await, ErrorKind::Duplicate, 1062);
    assert!(error.message.contains("PRIMARY"), "{error}");
    let error = refused(accounts.insert(&coded(3, "a")).await, ErrorKind::Duplicate, 1062);
    assert!(error.message.contains("code"), "{error}");
    refused(accounts.update(&coded(2, "a")).await, ErrorKind::Duplicate, 1062);
    refused(accounts.write(&coded(2, "a")).await, ErrorKind::Duplicate, 1062);
    refused(accounts.write(&coded(4, "b")).await, ErrorKind::Duplicate, 1062);
    assert_eq!(accounts.get(1u64).await, Ok(Some(coded(1, "a"))));
    assert_eq!(accounts.get(2u64).await, Ok(Some(coded(2, "b"))));
    assert_eq!(accounts.get(3u64).await, Ok(None));
    assert_eq!(accounts.get(4u64).await, Ok(None));
    // What was refused holds nothing.
    accounts.delete(1u64).await.expect("deleted");
    accounts.insert(&coded(3, "a")).await.expect("the code is free again");
}

pub async fn upserts(place: &Place) {
    let accounts = accounts(place, 0).await;
    let table = accounts.table();
    accounts.write(&coded(1, "a")).await.expect("inserted");
    accounts.write(&Account { balance: 3, ..coded(1, "b") }).await.expect("changed");
    assert_eq!(accounts.get(1u64).await, Ok(Some(Account { balance: 3, ..coded(1, "b") })));
    // Columns that are not named keep what they have.
    table.write(&[("id", Value::from(1u64)), ("owner", text("new"))]).await.expect("changed");
    assert_eq!(accounts.get(1u64).await, Ok(Some(Account { owner: "new".into(), balance: 3, ..coded(1, "b") })));
    // In a transaction, too.
    let transaction = place.client.begin();
    let mut batch = transaction.batch();
    batch.write(table, &[("id", Value::from(1u64)), ("balance", Value::from(4))]);
    transaction.execute_and_commit(batch).await.expect("changed").all_succeeded().expect("all");
    assert_eq!(balance(&accounts, 1).await, Some(4));
    refused(table.write(&[("owner", text("no key"))]).await, ErrorKind::InvalidValue, 1364);
    // A row that is not there needs them all.
    let part = [("id", Value::from(2u64)), ("owner", text("new"))];
    let error = refused(table.write(&part).await, ErrorKind::InvalidValue, 1364);
    assert!(error.message.contains("balance"), "{error}");
    assert_eq!(accounts.get(2u64).await, Ok(None));
}

pub async fn unique_keys(place: &Place) {
    let accounts = accounts(place, 3).await;
    accounts.insert(&coded(10, "ten")).await.expect("inserted");
    accounts.insert(&coded(11, "eleven")).await.expect("inserted");
    assert_eq!(accounts.get_by("code", "ten").await, Ok(Some(coded(10, "ten"))));
    // By the column's collation.
    assert_eq!(accounts.get_by("code", "TEN").await, Ok(Some(coded(10, "ten"))));
    assert_eq!(accounts.get_by("CODE", "twelve").await, Ok(None));
    assert_eq!(accounts.get_by("PRIMARY", 2u64).await, Ok(Some(account(2, 100))));
    accounts.update(&coded(10, "twelve")).await.expect("changed");
    assert_eq!(accounts.get_by("code", "ten").await, Ok(None));
    assert_eq!(accounts.get_by("code", "twelve").await, Ok(Some(coded(10, "twelve"))));
    accounts.update(&coded(11, "ten")).await.expect("the code is free");
    accounts.delete(10u64).await.expect("deleted");
    assert_eq!(accounts.get_by("code", "twelve").await, Ok(None));
    // NULL is equal to nothing, so there may be many.
    assert_eq!(accounts.get_by("code", [Value::Null]).await, Ok(None));
    let row = accounts.table().get_by("code", "ten").await.expect("read").expect("there");
    assert_eq!(row.get::<u64>("id"), Ok(11));
}

pub async fn values_not_given(place: &Place) {
    let accounts = accounts(place, 0).await;
    let table = accounts.table();
    table
        .insert(&[("id", Value::from(1u64)), ("owner", text("a")), ("balance", Value::from(1))])
        .await
        .expect("inserted");
    assert_eq!(accounts.get(1u64).await.expect("read").expect("there").code, None);
    let missing = table.insert(&[("id", Value::from(2u64)), ("owner", text("a"))]).await;
    assert!(refused(missing, ErrorKind::InvalidValue, 1364).message.contains("balance"));
    let null = table.update(1u64, &[("owner", Value::Null)]).await;
    assert!(refused(null, ErrorKind::InvalidValue, 1048).message.contains("owner"));
    assert_eq!(table.update(1u64, &[("code", text("x"))]).await, Ok(true));
    assert_eq!(table.update(1u64, &[("code", Value::Null)]).await, Ok(true));
    assert_eq!(accounts.get(1u64).await.expect("read").expect("there").code, None);
    assert_eq!(accounts.get(2u64).await, Ok(None));
}

#[derive(Record, Clone, Debug, PartialEq)]
#[rauk(database = "suite", table = "events")]
pub struct Event {
    #[rauk(key, auto_increment)]
    pub id: u64,
    #[rauk(length = 40)]
    pub what: String,
}

pub async fn numbers_are_given(place: &Place) {
    let events = place.client.open_or_create::<Event>().await.expect("the table can be made");
    let event = |id| Event { id, what: "x".into() };
    let first = events.insert(&event(0)).await.expect("inserted").expect("a number");
    let second = events.insert(&event(0)).await.expect("inserted").expect("a number");
    assert!(first >= 1 && second > first);
    assert_eq!(events.get(first).await, Ok(Some(event(first))));
    events.insert(&event(1000)).await.expect("inserted");
    let third = events.insert(&event(0)).await.expect("inserted").expect("a number");
    assert!(third > 1000, "{third}");
    let table = events.table();
    let fourth = table.insert(&[("what", text("untyped"))]).await.expect("inserted").expect("a number");
    assert!(fourth > third);
    let mut batch = place.client.batch();
    let ops: Vec<_> = (0..100).map(|_| batch.insert_record(&events, &event(0))).collect();
    let result = place.client.execute(batch).await.expect("executed");
    let mut numbers: Vec<u64> = ops
        .iter()
        .map(|op| match result.outcome(*op) {
            Ok(Done::Done(Some(number))) => number,
            other => panic!("{other:?}"),
        })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 100);
    assert!(numbers[0] > fourth);
}

pub async fn increments(place: &Place) {
    let accounts = accounts(place, 2).await;
    assert_eq!(accounts.increment(1u64, "balance", 5).await, Ok(Some(account(1, 105))));
    assert_eq!(accounts.increment(1u64, "balance", -200i64).await, Ok(Some(account(1, -95))));
    assert_eq!(accounts.increment(9u64, "balance", 5).await, Ok(None));
    accounts.update(&account(1, i64::MAX - 1)).await.expect("changed");
    assert_eq!(balance(&accounts, 1).await, Some(i64::MAX - 1));
    assert_eq!(accounts.increment(1u64, "balance", 1).await, Ok(Some(account(1, i64::MAX))));
    let error = accounts.increment(1u64, "balance", 1).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidValue);
    assert!(matches!(error.code, 1264 | 1690), "{error:?}");
    assert_eq!(balance(&accounts, 1).await, Some(i64::MAX));
    let row = accounts.table().increment(2u64, "balance", 1u8).await.expect("done").expect("there");
    assert_eq!(row.get("balance"), Ok(101i64));
    assert_eq!(accounts.increment(2u64, "owner", 1).await.unwrap_err().kind, ErrorKind::WrongType);
    assert_eq!(accounts.increment(2u64, "balance", "1").await.unwrap_err().kind, ErrorKind::WrongType);
    assert_eq!(accounts.increment(2u64, "none", 1).await.unwrap_err().kind, ErrorKind::UnknownColumn);
    assert_eq!(balance(&accounts, 2).await, Some(101));
}

#[derive(Record, Clone, Debug, PartialEq)]
#[rauk(database = "suite", table = "numbers")]
struct Numbers {
    #[rauk(key)]
    id: u32,
    tiny: i8,
    small: Option<u8>,
    big: u64,
    #[rauk(precision = 6, scale = 2)]
    price: rauk_client::Decimal,
    double: f64,
}

pub async fn increments_of_other_types(place: &Place) {
    let numbers = place.client.open_or_create::<Numbers>().await.expect("the table can be made");
    let mut row = Numbers { id: 1, tiny: 126, small: None, big: u64::MAX - 1, price: decimal("9999.00"), double: 0.5 };
    numbers.insert(&row).await.expect("inserted");
    let over = async |column: &str, by: Value| {
        let error = numbers.increment(1u32, column, by).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidValue, "{error}");
        assert!(matches!(error.code, 1264 | 1690), "{error:?}");
    };
    row.tiny = 127;
    assert_eq!(numbers.increment(1u32, "tiny", 1).await, Ok(Some(row.clone())));
    over("tiny", Value::from(1)).await;
    // NULL and anything is NULL.
    assert_eq!(numbers.increment(1u32, "small", 1).await, Ok(Some(row.clone())));
    row.big = u64::MAX;
    assert_eq!(numbers.increment(1u32, "big", 1).await, Ok(Some(row.clone())));
    over("big", Value::from(1)).await;
    row.big = 0;
    numbers.update(&row).await.expect("changed");
    over("big", Value::from(-1)).await;
    row.big = 4;
    assert_eq!(numbers.increment(1u32, "big", 4).await, Ok(Some(row.clone())));
    // What is added need not be a value of the column.
    row.big = 1;
    assert_eq!(numbers.increment(1u32, "big", -3).await, Ok(Some(row.clone())));
    row.tiny = -128;
    assert_eq!(numbers.increment(1u32, "tiny", -255).await, Ok(Some(row.clone())));
    row.price = decimal("9999.99");
    assert_eq!(numbers.increment(1u32, "price", decimal("0.99")).await, Ok(Some(row.clone())));
    over("price", Value::from(decimal("0.01"))).await;
    row.price = decimal("-0.01");
    assert_eq!(numbers.increment(1u32, "price", decimal("-10000")).await, Ok(Some(row.clone())));
    row.double = -1.75;
    assert_eq!(numbers.increment(1u32, "double", -2.25).await, Ok(Some(row.clone())));
    assert_eq!(numbers.get(1u32).await, Ok(Some(row)));
}

pub async fn conditional_changes(place: &Place) {
    let accounts = accounts(place, 4).await;
    let table = accounts.table();
    let mut batch = place.client.batch();
    let enough = || column("balance").at_least(100).and(column("code").is_null());
    let set = |balance: i64| [("balance", Value::from(balance))];
    let done = batch.update_if(table, 1u64, &set(1), enough());
    let not = batch.update_if(table, 2u64, &set(2), column("owner").equals("somebody"));
    let unknown = batch.update_if(table, 2u64, &set(2), column("code").equals("x"));
    let missing = batch.update_if(table, 9u64, &set(9), enough());
    let deleted = batch.delete_if(table, 3u64, enough());
    let kept = batch.delete_if(table, 4u64, enough().negated());
    let result = place.client.execute(batch).await.expect("executed");
    assert!(matches!(result.outcome(done), Ok(Done::Done(_))));
    assert!(matches!(result.outcome(not), Ok(Done::ConditionFalse)));
    assert!(matches!(result.outcome(unknown), Ok(Done::ConditionFalse)));
    assert!(matches!(result.outcome(missing), Ok(Done::Missing)));
    assert!(matches!(result.outcome(deleted), Ok(Done::Done(_))));
    assert!(matches!(result.outcome(kept), Ok(Done::ConditionFalse)));
    assert_eq!(result.succeeded(), 2);
    for (id, expected) in [(1, Some(1)), (2, Some(100)), (3, None), (4, Some(100)), (9, None)] {
        assert_eq!(balance(&accounts, id).await, expected, "account {id}");
    }
    // Compare and set: only one of two that saw the same value wins.
    let mut batch = place.client.batch();
    let first = batch.update_if(table, 1u64, &set(2), column("balance").equals(1));
    let second = batch.update_if(table, 1u64, &set(3), column("balance").equals(1));
    let result = place.client.execute(batch).await.expect("executed");
    assert!(matches!(result.outcome(first), Ok(Done::Done(_))));
    assert!(matches!(result.outcome(second), Ok(Done::ConditionFalse)));
    assert_eq!(balance(&accounts, 1).await, Some(2));
}

pub async fn names_in_any_case(place: &Place) {
    let accounts = accounts(place, 1).await;
    let table = accounts.table();
    assert_eq!(table.update(1u64, &[("Balance", Value::from(7))]).await, Ok(true));
    assert_eq!(balance(&accounts, 1).await, Some(7));
    let twice = table.update(1u64, &[("Balance", Value::from(7)), ("balance", Value::from(8))]).await;
    assert_eq!(twice.unwrap_err().code, 1110);
    assert_eq!(balance(&accounts, 1).await, Some(7));
}
