//! Wrong use: every mistake has a typed error that names it, changes nothing, and leaves the client usable.

use super::{Account, Place, account, accounts, balance, refused, text};
use rauk_client::{Date, Decimal, ErrorKind, Isolation, Record, TransactionOptions, Value, column};
use std::time::Duration;

pub async fn names_that_are_not_there(place: &Place) {
    let client = &place.client;
    let error = client.table("nowhere", "accounts").await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownTable, "{error}");
    assert!(matches!(error.code, 1049 | 1146) && error.message.contains("nowhere"), "{error:?}");
    let accounts = accounts(place, 1).await;
    let error = refused(client.table("suite", "none").await.map(|_| ()), ErrorKind::UnknownTable, 1146);
    assert!(error.message.contains("suite.none"), "{error}");
    let table = accounts.table();
    let error = table.insert(&[("id", Value::from(2u64)), ("none", Value::Null)]).await.unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::UnknownColumn, 1054));
    assert!(error.message.contains("none") && error.message.contains("accounts"), "{error}");
    assert_eq!(table.update(1u64, &[("none", Value::Null)]).await.unwrap_err().kind, ErrorKind::UnknownColumn);
    assert_eq!(table.get_by("none", 1u64).await.map(|_| ()).unwrap_err().kind, ErrorKind::UnknownIndex);
    // An index that is not unique has no "the row".
    assert_eq!(table.get_by("owner", "x").await.map(|_| ()).unwrap_err().kind, ErrorKind::UnknownIndex);
    assert!(table.scan_index("none").is_err_and(|error| error.kind == ErrorKind::UnknownIndex));
    assert_eq!(client.table("suite", "").await.map(|_| ()).unwrap_err().kind, ErrorKind::UnknownTable);
    assert_eq!(balance(&accounts, 1).await, Some(100));
}

pub async fn values_that_do_not_fit(place: &Place) {
    let accounts = accounts(place, 1).await;
    let table = accounts.table();
    let set = async |column: &str, value: Value| table.update(1u64, &[(column, value)]).await;
    for (column, value, kind, code) in [
        ("owner", Value::from(1), ErrorKind::WrongType, 1366),
        ("balance", text("1"), ErrorKind::WrongType, 1366),
        ("balance", Value::from(1.0), ErrorKind::WrongType, 1366),
        ("balance", Value::from(Date::MAX), ErrorKind::WrongType, 1366),
        ("owner", Value::from(vec![0xFFu8]), ErrorKind::WrongType, 1366),
        ("balance", Value::from(u64::MAX), ErrorKind::InvalidValue, 1264),
        ("owner", text(&"x".repeat(51)), ErrorKind::InvalidValue, 1406),
        ("owner", Value::Null, ErrorKind::InvalidValue, 1048),
    ] {
        let error = refused(set(column, value).await, kind, code);
        assert!(error.message.contains(column), "{error}");
    }
    let error = table.update(1u64, &[("id", Value::from(-1))]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidValue, "{error}");
    let long = Account { owner: "ü".repeat(51), ..account(2, 1) };
    refused(accounts.insert(&long).await, ErrorKind::InvalidValue, 1406);
    let whole = Account { owner: "ü".repeat(50), ..account(2, 1) };
    accounts.insert(&whole).await.expect("fifty characters fit");
    assert_eq!(accounts.get(1u64).await, Ok(Some(account(1, 100))));
}

pub async fn keys_that_do_not_fit(place: &Place) {
    let accounts = accounts(place, 1).await;
    let table = accounts.table();
    for (key, kind) in [
        (vec![text("1")], ErrorKind::WrongType),
        (vec![], ErrorKind::WrongType),
        (vec![Value::from(1), Value::from(2)], ErrorKind::WrongType),
    ] {
        assert_eq!(table.get(&key).await.map(|_| ()).unwrap_err().kind, kind, "{key:?}");
        assert_eq!(table.delete(&key).await.unwrap_err().kind, kind, "{key:?}");
    }
    // A key that no row can have is a mistake, not a row that is missing.
    assert_eq!(table.get(-1).await.map(|_| ()).unwrap_err().kind, ErrorKind::InvalidValue);
    assert_eq!(table.get([Value::Null]).await.map(|_| ()).unwrap_err().kind, ErrorKind::InvalidValue);
    assert_eq!(accounts.get(1u8).await, Ok(Some(account(1, 100))));
    assert_eq!(accounts.get(1i32).await, Ok(Some(account(1, 100))));
}

/// Other records over the table of accounts.
mod wrong {
    use super::{Decimal, Record};

    #[derive(Record, Debug)]
    #[rauk(database = "suite", table = "accounts")]
    pub struct Types {
        #[rauk(key)]
        id: u32,
        owner: Decimal,
        balance: Option<i64>,
        code: String,
        more: u8,
    }

    #[derive(Record, Debug)]
    #[rauk(database = "suite", table = "accounts")]
    pub struct Key {
        id: u64,
        #[rauk(key)]
        owner: String,
    }

    /// Some of the columns, and wider types: that is right.
    #[derive(Record, Debug, PartialEq)]
    #[rauk(database = "suite", table = "accounts")]
    pub struct Part {
        #[rauk(key)]
        pub id: u64,
        #[rauk(column = "BALANCE")]
        pub amount: Option<i64>,
    }
}

pub async fn records_that_do_not_fit(place: &Place) {
    let accounts = accounts(place, 1).await;
    let error = place.client.open::<wrong::Types>().await.map(|_| ()).unwrap_err();
    for named in ["`more`", "`id`", "u64", "`owner`", "`code`", "Option<String>"] {
        assert!(error.message.contains(named), "{named} is not in: {error}");
    }
    assert!(!error.message.contains("balance"), "an Option may be read from what is never NULL: {error}");
    assert_eq!(error.kind, ErrorKind::UnknownColumn);
    let error = place.client.open::<wrong::Key>().await.map(|_| ()).unwrap_err();
    assert!(error.message.contains("primary key"), "{error}");
    let error = place.client.open_or_create::<wrong::Types>().await.map(|_| ()).unwrap_err();
    assert!(!error.is_temporary(), "{error}");
    let part = place.client.open::<wrong::Part>().await.expect("it fits");
    assert_eq!(part.get(1u64).await, Ok(Some(wrong::Part { id: 1, amount: Some(100) })));
    assert_eq!(part.update(&wrong::Part { id: 1, amount: Some(7) }).await, Ok(true));
    assert_eq!(accounts.get(1u64).await, Ok(Some(account(1, 7))));
    refused(part.update(&wrong::Part { id: 1, amount: None }).await, ErrorKind::InvalidValue, 1048);
    refused(part.insert(&wrong::Part { id: 2, amount: Some(7) }).await, ErrorKind::InvalidValue, 1364);
    assert_eq!(accounts.get(1u64).await, Ok(Some(account(1, 7))));
}

/// What a deadlock undid is over; its transaction says so.
pub async fn an_ended_transaction(place: &Place) {
    let accounts = accounts(place, 2).await;
    let mut transactions = [place.client.begin(), place.client.begin()];
    transactions[0].increment(&accounts, 1u64, "balance", 1).await.expect("changed");
    transactions[1].increment(&accounts, 2u64, "balance", 1).await.expect("changed");
    let [one, two] = &mut transactions;
    let results = futures::future::join(
        async {
            let done = one.increment(&accounts, 2u64, "balance", 1).await.map(|_| ());
            if done.is_ok() {
                // The other one is over, and its locks are free.
                assert!(one.get(&accounts, 1u64).await.is_ok());
            }
            done
        },
        async {
            let done = two.increment(&accounts, 1u64, "balance", 1).await.map(|_| ());
            if done.is_ok() {
                assert!(two.get(&accounts, 1u64).await.is_ok());
            }
            done
        },
    )
    .await;
    let [one, two] = transactions;
    let (mut ended, alive) = if results.0.is_err() { (one, two) } else { (two, one) };
    // With the kind of what ended it: that is what says whether to run it again.
    for _ in 0..2 {
        let error = ended.get(&accounts, 1u64).await.unwrap_err();
        assert!(error.kind == ErrorKind::Deadlock && error.message.contains("the transaction has ended"), "{error}");
        let error = ended.update(&accounts, &account(1, 0)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Deadlock, "{error}");
    }
    assert_eq!(ended.commit().await.unwrap_err().kind, ErrorKind::Deadlock);
    alive.commit().await.expect("committed");
    assert_eq!((balance(&accounts, 1).await, balance(&accounts, 2).await), (Some(101), Some(101)));
}

pub async fn a_foreign_savepoint(place: &Place) {
    let accounts = accounts(place, 1).await;
    let mut one = place.client.begin();
    one.increment(&accounts, 1u64, "balance", 1).await.expect("changed");
    let mut savepoint = one.savepoint().await.expect("set");
    for _ in 0..5 {
        savepoint = one.savepoint().await.expect("set");
    }
    one.rollback().await.expect("rolled back");
    let options = TransactionOptions { isolation: Isolation::ReadCommitted, ..Default::default() };
    let mut two = place.client.begin_with(options);
    two.increment(&accounts, 1u64, "balance", 5).await.expect("changed");
    let error = two.rollback_to(savepoint).await.unwrap_err();
    assert!(!error.is_temporary(), "{error}");
    two.commit().await.expect("committed");
    assert_eq!(balance(&accounts, 1).await, Some(105));
}

pub async fn a_dropped_table(place: &Place) {
    let accounts = accounts(place, 3).await;
    place.client.drop_table("suite", "accounts").await.expect("dropped");
    for _ in 0..2 {
        let error = accounts.get(1u64).await.unwrap_err();
        assert_eq!((error.kind, error.code), (ErrorKind::UnknownTable, 1146), "{error}");
        let error = accounts.insert(&account(9, 1)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::UnknownTable, "{error}");
        let error = accounts.table().scan().collect().await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::UnknownTable, "{error}");
    }
    let error = place.client.drop_table("suite", "accounts").await.unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::UnknownTable, 1051));
    // A new one with the same name: what was opened finds it.
    let again = place.client.open_or_create::<Account>().await.expect("made");
    again.insert(&account(1, 7)).await.expect("inserted");
    assert_eq!(accounts.get(1u64).await, Ok(Some(account(1, 7))));
    // In a transaction, too, after it was told.
    place.client.drop_table("suite", "accounts").await.expect("dropped");
    place.client.open_or_create::<Account>().await.expect("made");
    let moved = async |transaction: &mut rauk_client::Transaction| transaction.write(&accounts, &account(2, 2)).await;
    place.client.transact(moved).await.expect("the definition is fetched between the tries");
    assert_eq!(accounts.get(2u64).await, Ok(Some(account(2, 2))));
}

pub async fn a_table_of_the_system(place: &Place) {
    for (database, what) in [("mysql", "user"), ("information_schema", "TABLES")] {
        let error = place.client.drop_table(database, what).await.unwrap_err();
        assert!(!error.is_temporary(), "{error}");
    }
}

pub async fn conditions_that_do_not_fit(place: &Place) {
    let accounts = accounts(place, 2).await;
    let table = accounts.table();
    for (condition, kind) in [
        (column("none").is_null(), ErrorKind::UnknownColumn),
        (column("balance").equals("one"), ErrorKind::WrongType),
        (column("owner").less_than(1), ErrorKind::WrongType),
        (column("balance").starts_with("1"), ErrorKind::WrongType),
        (column("balance").equals(Date::MAX), ErrorKind::WrongType),
        ((0..40).fold(column("id").is_null(), |deeper, _| deeper.negated()), ErrorKind::InvalidValue),
        (column("id").is_one_of(0..2000), ErrorKind::InvalidValue),
    ] {
        let mut batch = place.client.batch();
        batch.delete_if(table, 1u64, condition.clone());
        assert_eq!(place.client.execute(batch).await.map(|_| ()).unwrap_err().kind, kind, "{condition:?}");
        assert_eq!(table.scan().filter(condition.clone()).collect().await.unwrap_err().kind, kind, "{condition:?}");
        let mut transaction =
            place.client.begin_with(TransactionOptions { lock_wait: Duration::from_millis(50), ..Default::default() });
        let mut rows = transaction.scan(table.scan().filter(condition));
        assert_eq!(rows.next().await.map(|_| ()).unwrap_err().kind, kind);
    }
    assert_eq!(table.scan().collect().await.expect("scanned").len(), 2);
}
