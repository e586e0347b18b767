//! Many operations in one round trip, outside of transactions: each for itself.

use super::{Account, Place, account, accounts, balance, coded, text};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rauk_client::{BatchResult, Done, ErrorKind, OpId, Value, column};
use std::collections::BTreeMap;

/// What became of an operation, to be compared.
#[derive(Debug, PartialEq)]
enum Became {
    Done,
    Row(Option<i64>),
    Missing,
    Duplicate(String),
    ConditionFalse,
    Failed(ErrorKind),
}

fn became(result: &BatchResult, op: OpId) -> Became {
    match result.outcome(op) {
        Ok(Done::Done(_)) => Became::Done,
        Ok(Done::Row(row)) => Became::Row(row.get("balance").ok()),
        Ok(Done::Missing) => Became::Missing,
        Ok(Done::Duplicate { index }) => Became::Duplicate(index),
        Ok(Done::ConditionFalse) => Became::ConditionFalse,
        Ok(Done::NotExecuted) => panic!("an operation outside of transactions does not depend on others"),
        Err(error) => Became::Failed(error.kind),
    }
}

pub async fn mixed_operations(place: &Place) {
    let accounts = accounts(place, 3).await;
    let table = accounts.table();
    accounts.insert(&coded(50, "fifty")).await.expect("inserted");
    let mut batch = place.client.batch();
    let set = [("balance", Value::from(1))];
    let ops = [
        (batch.get(table, 1u64), Became::Row(Some(100))),
        (batch.get(table, 99u64), Became::Missing),
        (batch.get_by(table, "code", "fifty"), Became::Row(Some(0))),
        (batch.get_by(table, "code", "sixty"), Became::Missing),
        (batch.insert_record(&accounts, &account(4, 4)), Became::Done),
        (batch.insert_record(&accounts, &account(3, 4)), Became::Duplicate("PRIMARY".into())),
        (batch.insert_record(&accounts, &coded(60, "fifty")), Became::Duplicate("code".into())),
        (batch.write_record(&accounts, &account(5, 5)), Became::Done),
        (batch.update_record(&accounts, &account(98, 5)), Became::Missing),
        (batch.update(table, 2u64, &set), Became::Done),
        (batch.update(table, 97u64, &set), Became::Missing),
        (batch.update_if(table, 50u64, &set, column("balance").greater_than(7)), Became::ConditionFalse),
        (batch.increment(table, 50u64, "balance", 11), Became::Row(Some(11))),
        (batch.delete(table, 96u64), Became::Missing),
        (batch.delete(table, 3u64), Became::Done),
    ];
    assert_eq!(batch.len(), ops.len());
    let result = place.client.execute(batch).await.expect("executed");
    assert_eq!(result.len(), ops.len());
    for (i, (op, expected)) in ops.iter().enumerate() {
        assert_eq!(became(&result, *op), *expected, "operation {i}");
    }
    let good = ops.iter().filter(|(_, became)| matches!(became, Became::Done | Became::Row(_))).count();
    assert_eq!(result.succeeded(), good);
    assert_eq!(result.row(ops[1].0).map(|row| row.is_none()), Ok(true));
    assert_eq!(result.record(&accounts, ops[0].0), Ok(Some(account(1, 100))));
    for (id, expected) in [(2, Some(1)), (3, None), (4, Some(4)), (5, Some(5)), (50, Some(11)), (60, None)] {
        assert_eq!(balance(&accounts, id).await, expected);
    }
    let nothing = place.client.execute(place.client.batch()).await.expect("nothing is no mistake");
    assert!(nothing.is_empty());
}

pub async fn the_same_key_in_order(place: &Place) {
    let accounts = accounts(place, 0).await;
    let table = accounts.table();
    let mut batch = place.client.batch();
    let mut ops =
        vec![(batch.get(table, 1u64), Became::Missing), (batch.insert_record(&accounts, &account(1, 0)), Became::Done)];
    for i in 1..=20 {
        ops.push((batch.increment(table, 1u64, "balance", 1), Became::Row(Some(i))));
        ops.push((batch.get(table, 1u64), Became::Row(Some(i))));
    }
    ops.push((batch.insert_record(&accounts, &account(1, 0)), Became::Duplicate("PRIMARY".into())));
    ops.push((batch.delete(table, 1u64), Became::Done));
    ops.push((batch.get(table, 1u64), Became::Missing));
    ops.push((batch.increment(table, 1u64, "balance", 1), Became::Missing));
    ops.push((batch.write_record(&accounts, &account(1, 7)), Became::Done));
    ops.push((batch.get(table, 1u64), Became::Row(Some(7))));
    let result = place.client.execute(batch).await.expect("executed");
    for (i, (op, expected)) in ops.iter().enumerate() {
        assert_eq!(became(&result, *op), *expected, "operation {i}");
    }
    assert_eq!(balance(&accounts, 1).await, Some(7));
}

pub async fn projections(place: &Place) {
    let accounts = accounts(place, 3).await;
    let mut batch = place.client.batch();
    let some = batch.get_columns(accounts.table(), 2u64, &["balance", "id"]);
    let missing = batch.get_columns(accounts.table(), 9u64, &["id"]);
    let result = place.client.execute(batch).await.expect("executed");
    let row = result.row(some).expect("read").expect("there");
    assert_eq!((row.get::<i64>("balance"), row.get::<u64>("id")), (Ok(100), Ok(2)));
    assert_eq!(row.columns().map(|(name, _)| name.to_string()).collect::<Vec<_>>(), ["balance", "id"]);
    assert_eq!(row.get::<String>("owner").unwrap_err().kind, ErrorKind::UnknownColumn);
    assert_eq!(result.row(missing).map(|row| row.is_none()), Ok(true));
}

pub async fn large_batches(place: &Place) {
    let accounts = accounts(place, 3000).await;
    // More operations than one request holds.
    let mut batch = place.client.batch();
    let ops: Vec<_> = (0..70_000u64).map(|i| (i % 4000, batch.get(accounts.table(), i % 4000))).collect();
    let result = place.client.execute(batch).await.expect("executed");
    assert_eq!(result.len(), 70_000);
    for (id, op) in ops.iter().step_by(7) {
        let found = result.record(&accounts, *op).expect("read").map(|account| account.id);
        assert_eq!(found, (1..=3000).contains(id).then_some(*id));
    }
    let there = ops.iter().filter(|(id, _)| (1..=3000).contains(id)).count();
    assert_eq!(result.succeeded(), there);
    // More bytes than one request holds.
    let long = "x".repeat(50);
    let mut batch = place.client.batch();
    for id in 0..50_000 {
        batch.write_record(&accounts, &Account { owner: long.clone(), ..account(id, 1) });
    }
    let result = place.client.execute(batch).await.expect("executed");
    assert_eq!(result.succeeded(), 50_000);
    assert_eq!(accounts.get(49_999u64).await.expect("read").map(|account| account.owner), Some(long));
}

/// Random batches have, operation by operation, the outcomes that a map would have.
pub async fn random_batches_against_a_model(place: &Place) {
    let accounts = accounts(place, 0).await;
    let table = accounts.table();
    let mut random = StdRng::seed_from_u64(3);
    let mut model: BTreeMap<u64, i64> = BTreeMap::new();
    for round in 0..150 {
        let mut batch = place.client.batch();
        let mut ops = Vec::new();
        for _ in 0..random.random_range(1..40) {
            let (key, number) = (random.random_range(0..25u64), random.random_range(-50..50i64));
            let old = model.get(&key).copied();
            let limit = random.random_range(-50..50i64);
            let condition = column("balance").less_than(limit);
            let set = [("balance", Value::from(number))];
            ops.push(match random.random_range(0..8) {
                0 => (batch.get(table, key), old.map_or(Became::Missing, |b| Became::Row(Some(b)))),
                1 if old.is_some() => {
                    (batch.insert_record(&accounts, &account(key, number)), Became::Duplicate("PRIMARY".into()))
                }
                1 => {
                    model.insert(key, number);
                    (batch.insert_record(&accounts, &account(key, number)), Became::Done)
                }
                2 => {
                    model.insert(key, number);
                    (batch.write_record(&accounts, &account(key, number)), Became::Done)
                }
                3 => {
                    let became = model.get_mut(&key).map_or(Became::Missing, |b| {
                        *b = number;
                        Became::Done
                    });
                    (batch.update(table, key, &set), became)
                }
                4 => {
                    let became = model.get_mut(&key).map_or(Became::Missing, |b| {
                        *b += number;
                        Became::Row(Some(*b))
                    });
                    (batch.increment(table, key, "balance", number), became)
                }
                5 => {
                    let became = if model.remove(&key).is_some() { Became::Done } else { Became::Missing };
                    (batch.delete(table, key), became)
                }
                6 => {
                    let became = match old {
                        None => Became::Missing,
                        Some(b) if b < limit => {
                            model.insert(key, number);
                            Became::Done
                        }
                        Some(_) => Became::ConditionFalse,
                    };
                    (batch.update_if(table, key, &set, condition), became)
                }
                _ => {
                    let became = match old {
                        None => Became::Missing,
                        Some(b) if b < limit => {
                            model.remove(&key);
                            Became::Done
                        }
                        Some(_) => Became::ConditionFalse,
                    };
                    (batch.delete_if(table, key, condition), became)
                }
            });
        }
        let result = place.client.execute(batch).await.expect("executed");
        for (i, (op, expected)) in ops.iter().enumerate() {
            assert_eq!(became(&result, *op), *expected, "round {round}, operation {i}");
        }
    }
    let mut rows = table.scan().collect_records(&accounts).await.expect("scanned");
    rows.sort_by_key(|row| row.id);
    assert_eq!(rows.iter().map(|row| (row.id, row.balance)).collect::<Vec<_>>(), model.into_iter().collect::<Vec<_>>());
}

pub async fn mistakes_name_the_operation(place: &Place) {
    let accounts = accounts(place, 3).await;
    let table = accounts.table();
    type Mistake = fn(&mut rauk_client::Batch, &rauk_client::Table);
    let mistakes: [(Mistake, ErrorKind, &str); 6] = [
        (|b, t| _ = b.update(t, 1u64, &[("none", Value::Null)]), ErrorKind::UnknownColumn, "none"),
        (|b, t| _ = b.update(t, 1u64, &[("balance", text("much"))]), ErrorKind::WrongType, "balance"),
        (|b, t| _ = b.get(t, "one"), ErrorKind::WrongType, "id"),
        (|b, t| _ = b.get(t, (1u64, 2u64)), ErrorKind::WrongType, "id"),
        (|b, t| _ = b.get_by(t, "owner", "x"), ErrorKind::UnknownIndex, "owner"),
        (|b, t| _ = b.delete_if(t, 1u64, column("none").is_null()), ErrorKind::UnknownColumn, "none"),
    ];
    for (mistake, kind, named) in mistakes {
        let mut batch = place.client.batch();
        batch.delete(table, 1u64);
        batch.delete(table, 2u64);
        mistake(&mut batch, table);
        batch.delete(table, 3u64);
        let error = place.client.execute(batch).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains("operation 2") && error.message.contains(named), "{error}");
    }
    // Nothing of such a batch is sent.
    assert_eq!(table.scan().collect().await.expect("scanned").len(), 3);
}

pub async fn many_at_once(place: &Place) {
    let accounts = accounts(place, 10).await;
    let work = (0..200u64).map(|i| {
        let (client, accounts) = (&place.client, &accounts);
        async move {
            let mut batch = client.batch();
            let read = batch.get(accounts.table(), 1 + i % 10);
            let changed = batch.increment(accounts.table(), 1 + i % 10, "balance", 1);
            let result = client.execute(batch).await.expect("executed");
            let balance = |op| result.record(accounts, op).expect("read").expect("there").balance;
            assert!(balance(read) < balance(changed));
        }
    });
    futures::future::join_all(work).await;
    for id in 1..=10 {
        assert_eq!(balance(&accounts, id).await, Some(120));
    }
}

pub async fn a_failure_leaves_the_others_alone(place: &Place) {
    let accounts = accounts(place, 3).await;
    let table = accounts.table();
    accounts.update(&account(2, i64::MAX)).await.expect("changed");
    let mut batch = place.client.batch();
    let before = batch.increment(table, 1u64, "balance", 1);
    let over = batch.increment(table, 2u64, "balance", 1);
    let incomplete = batch.insert(table, &[("id", Value::from(9u64))]);
    let after = batch.increment(table, 3u64, "balance", 1);
    let result = place.client.execute(batch).await.expect("each operation has its own outcome");
    assert_eq!(became(&result, before), Became::Row(Some(101)));
    assert_eq!(became(&result, over), Became::Failed(ErrorKind::InvalidValue));
    assert_eq!(became(&result, incomplete), Became::Failed(ErrorKind::InvalidValue));
    assert_eq!(became(&result, after), Became::Row(Some(101)));
    assert_eq!(result.succeeded(), 2);
    assert_eq!(balance(&accounts, 2).await, Some(i64::MAX));
}
