//! Transactions of one program: isolation, savepoints, locks, and how they end.

use super::{Place, account, accounts, balance, coded, refused};
use rauk_client::{Client, Done, ErrorKind, Isolation, Records, Transaction, TransactionOptions, column};
use std::time::Duration;

fn begin(client: &Client, isolation: Isolation) -> Transaction {
    let lock_wait = Duration::from_millis(100);
    client.begin_with(TransactionOptions { isolation, lock_wait, ..Default::default() })
}

async fn read(transaction: &mut Transaction, accounts: &Records<super::Account>, id: u64) -> Option<i64> {
    transaction.get(accounts, id).await.expect("read").map(|account| account.balance)
}

pub async fn commit_and_rollback(place: &Place) {
    let accounts = accounts(place, 3).await;
    let mut transaction = place.client.begin();
    transaction.insert(&accounts, &account(4, 4)).await.expect("inserted");
    assert_eq!(transaction.update(&accounts, &account(1, 1)).await, Ok(true));
    assert_eq!(transaction.delete(&accounts, 2u64).await, Ok(true));
    assert_eq!(transaction.delete(&accounts, 2u64).await, Ok(false));
    transaction.write(&accounts, &account(5, 5)).await.expect("written");
    for (id, outside) in [(1, Some(100)), (2, Some(100)), (4, None), (5, None)] {
        assert_eq!(balance(&accounts, id).await, outside);
    }
    transaction.commit().await.expect("committed");
    for (id, after) in [(1, Some(1)), (2, None), (4, Some(4)), (5, Some(5))] {
        assert_eq!(balance(&accounts, id).await, after);
    }
    let mut transaction = place.client.begin();
    transaction.delete(&accounts, 1u64).await.expect("deleted");
    transaction.rollback().await.expect("rolled back");
    assert_eq!(balance(&accounts, 1).await, Some(1));
    // One that is dropped is rolled back, and gives its locks back without anybody waiting for it.
    let mut transaction = place.client.begin();
    transaction.delete(&accounts, 1u64).await.expect("deleted");
    drop(transaction);
    assert_eq!(accounts.update(&account(1, 2)).await, Ok(true));
    assert_eq!(balance(&accounts, 1).await, Some(2));
}

pub async fn read_committed_sees_commits(place: &Place) {
    let accounts = accounts(place, 1).await;
    let mut reader = begin(&place.client, Isolation::ReadCommitted);
    assert_eq!(read(&mut reader, &accounts, 1).await, Some(100));
    accounts.update(&account(1, 1)).await.expect("changed");
    assert_eq!(read(&mut reader, &accounts, 1).await, Some(1));
    accounts.delete(1u64).await.expect("deleted");
    assert_eq!(read(&mut reader, &accounts, 1).await, None);
    accounts.insert(&account(1, 2)).await.expect("inserted");
    // And writes on the newest state.
    assert_eq!(reader.increment(&accounts, 1u64, "balance", 1).await, Ok(Some(account(1, 3))));
    reader.commit().await.expect("committed");
    assert_eq!(balance(&accounts, 1).await, Some(3));
}

pub async fn a_snapshot_stays(place: &Place) {
    let accounts = accounts(place, 3).await;
    let mut reader = begin(&place.client, Isolation::RepeatableRead);
    assert_eq!(read(&mut reader, &accounts, 1).await, Some(100));
    accounts.update(&account(1, 1)).await.expect("changed");
    accounts.delete(2u64).await.expect("deleted");
    accounts.insert(&account(4, 4)).await.expect("inserted");
    for (id, then) in [(1, Some(100)), (2, Some(100)), (3, Some(100)), (4, None)] {
        assert_eq!(read(&mut reader, &accounts, id).await, then);
    }
    let mut rows = reader.scan(accounts.table().scan_index("PRIMARY").expect("there"));
    let mut ids = Vec::new();
    while let Some(row) = rows.next().await.expect("scanned") {
        ids.push(row.get::<u64>("id").expect("id"));
    }
    assert_eq!(ids, [1, 2, 3]);
    drop(rows);
    reader.commit().await.expect("committed");
    assert_eq!(balance(&accounts, 1).await, Some(1));
}

/// Read, computed, written: at REPEATABLE READ the second of two is told, instead of writing over the first.
pub async fn a_lost_update_is_refused(place: &Place) {
    let accounts = accounts(place, 1).await;
    let mut first = begin(&place.client, Isolation::RepeatableRead);
    let mut second = begin(&place.client, Isolation::RepeatableRead);
    let (a, b) = (read(&mut first, &accounts, 1).await, read(&mut second, &accounts, 1).await);
    assert_eq!((a, b), (Some(100), Some(100)));
    first.update(&accounts, &account(1, 110)).await.expect("changed");
    first.commit().await.expect("committed");
    let error = refused(second.update(&accounts, &account(1, 120)).await, ErrorKind::Conflict, 1020);
    assert!(error.is_temporary());
    drop(second);
    assert_eq!(balance(&accounts, 1).await, Some(110));
    // An update that did not read before is on the newest state, as is one of what is read for update.
    let mut third = begin(&place.client, Isolation::RepeatableRead);
    assert_eq!(third.get_for_update(&accounts, 1u64).await, Ok(Some(account(1, 110))));
    third.update(&accounts, &account(1, 120)).await.expect("changed");
    third.commit().await.expect("committed");
    assert_eq!(balance(&accounts, 1).await, Some(120));
}

/// Two transactions read both rows, and each changes one: only SERIALIZABLE refuses it.
pub async fn write_skew(place: &Place) {
    for (isolation, allowed) in [(Isolation::RepeatableRead, true), (Isolation::Serializable, false)] {
        let accounts = accounts(place, 0).await;
        accounts.write(&account(1, 100)).await.expect("written");
        accounts.write(&account(2, 100)).await.expect("written");
        let mut transactions = [begin(&place.client, isolation), begin(&place.client, isolation)];
        for transaction in &mut transactions {
            assert_eq!(read(transaction, &accounts, 1).await, Some(100));
            assert_eq!(read(transaction, &accounts, 2).await, Some(100));
        }
        let [mut first, mut second] = transactions;
        // Whoever comes second waits for the first's shared lock, which nobody gives back before: a deadlock, or the wait ends.
        let (one, two) = futures::future::join(
            async {
                first.increment(&accounts, 1u64, "balance", -150).await?;
                first.commit().await
            },
            async {
                second.increment(&accounts, 2u64, "balance", -150).await?;
                second.commit().await
            },
        )
        .await;
        let sum = balance(&accounts, 1).await.expect("there") + balance(&accounts, 2).await.expect("there");
        if allowed {
            assert_eq!((one, two, sum), (Ok(()), Ok(()), -100));
            continue;
        }
        assert!(one.is_err() || two.is_err(), "both took place: {sum}");
        for error in [one.err(), two.err()].into_iter().flatten() {
            assert!(matches!(error.kind, ErrorKind::Deadlock | ErrorKind::LockTimeout), "{error}");
            assert!(error.is_temporary());
        }
        assert!(sum >= 50, "{sum}");
    }
}

/// What a SERIALIZABLE scan has found stays the whole truth until the transaction ends.
pub async fn phantoms(place: &Place) {
    let accounts = accounts(place, 3).await;
    let mut reader = begin(&place.client, Isolation::Serializable);
    let range = accounts.table().scan_index("PRIMARY").expect("there").range(1u64..=10);
    let mut rows = reader.scan(range);
    let mut count = 0;
    while rows.next().await.expect("scanned").is_some() {
        count += 1;
    }
    drop(rows);
    assert_eq!(count, 3);
    let mut writer = begin(&place.client, Isolation::ReadCommitted);
    refused(writer.insert(&accounts, &account(7, 7)).await, ErrorKind::LockTimeout, 1205);
    drop(writer);
    let mut writer = begin(&place.client, Isolation::ReadCommitted);
    writer.insert(&accounts, &account(11, 7)).await.expect("beyond the range");
    writer.commit().await.expect("committed");
    reader.commit().await.expect("committed");
    accounts.insert(&account(7, 7)).await.expect("nobody looks any more");
}

pub async fn read_only(place: &Place) {
    let accounts = accounts(place, 1).await;
    let options = TransactionOptions { read_only: true, ..Default::default() };
    let mut transaction = place.client.begin_with(options);
    assert_eq!(read(&mut transaction, &accounts, 1).await, Some(100));
    refused(transaction.update(&accounts, &account(1, 1)).await, ErrorKind::Refused, 1792);
    refused(transaction.insert(&accounts, &account(2, 1)).await, ErrorKind::Refused, 1792);
    assert_eq!(read(&mut transaction, &accounts, 1).await, Some(100));
    transaction.commit().await.expect("committed");
    assert_eq!(balance(&accounts, 1).await, Some(100));
}

pub async fn savepoints(place: &Place) {
    let accounts = accounts(place, 1).await;
    let mut transaction = place.client.begin();
    transaction.update(&accounts, &account(1, 1)).await.expect("changed");
    let first = transaction.savepoint().await.expect("set");
    transaction.update(&accounts, &account(1, 2)).await.expect("changed");
    transaction.insert(&accounts, &coded(2, "two")).await.expect("inserted");
    let second = transaction.savepoint().await.expect("set");
    transaction.delete(&accounts, 2u64).await.expect("deleted");
    transaction.rollback_to(second).await.expect("undone");
    assert_eq!(transaction.get(&accounts, 2u64).await, Ok(Some(coded(2, "two"))));
    transaction.rollback_to(first).await.expect("undone");
    assert_eq!(transaction.get(&accounts, 2u64).await, Ok(None));
    assert_eq!(read(&mut transaction, &accounts, 1).await, Some(1));
    // The later one went with what was undone.
    assert!(transaction.rollback_to(second).await.is_err());
    // The first may be gone back to again.
    transaction.increment(&accounts, 1u64, "balance", 10).await.expect("changed");
    transaction.rollback_to(first).await.expect("undone");
    transaction.insert(&accounts, &coded(3, "two")).await.expect("the code is free");
    transaction.commit().await.expect("committed");
    assert_eq!(balance(&accounts, 1).await, Some(1));
    assert_eq!(accounts.get_by("code", "two").await, Ok(Some(coded(3, "two"))));
}

/// In a transaction a batch is all or nothing, and the transaction goes on.
pub async fn batches_are_statements(place: &Place) {
    let accounts = accounts(place, 3).await;
    let table = accounts.table();
    let mut transaction = place.client.begin();
    transaction.update(&accounts, &account(1, 1)).await.expect("changed");
    let mut batch = transaction.batch();
    let before = batch.increment(table, 1u64, "balance", 1);
    let duplicate = batch.insert_record(&accounts, &account(3, 0));
    let after = batch.increment(table, 2u64, "balance", 1);
    let result = transaction.execute(batch).await.expect("the batch has an answer");
    assert!(matches!(result.outcome(duplicate), Ok(Done::Duplicate { index }) if index == "PRIMARY"));
    assert!(matches!(result.outcome(before), Ok(Done::NotExecuted)), "{:?}", result.outcome(before));
    assert!(matches!(result.outcome(after), Ok(Done::NotExecuted)));
    assert_eq!(read(&mut transaction, &accounts, 1).await, Some(1));
    for mistake in 0..3 {
        let mut batch = transaction.batch();
        batch.increment(table, 2u64, "balance", 1);
        let failed = match mistake {
            0 => batch.update_record(&accounts, &account(77, 0)),
            1 => batch.delete_if(table, 3u64, column("balance").less_than(0)),
            _ => batch.get(table, 77u64),
        };
        let result = transaction.execute(batch).await.expect("the batch has an answer");
        let outcome = result.outcome(failed);
        assert!(matches!(outcome, Ok(Done::Missing | Done::ConditionFalse)), "{outcome:?}");
        assert_eq!(read(&mut transaction, &accounts, 2).await, Some(100));
    }
    let mut batch = transaction.batch();
    let one = batch.increment(table, 1u64, "balance", 1);
    let two = batch.get(table, 1u64);
    let result = transaction.execute(batch).await.expect("executed");
    assert_eq!(result.record(&accounts, one), Ok(Some(account(1, 2))));
    assert_eq!(result.record(&accounts, two), Ok(Some(account(1, 2))));
    transaction.commit().await.expect("committed");
    for (id, after) in [(1, 2), (2, 100), (3, 100)] {
        assert_eq!(balance(&accounts, id).await, Some(after));
    }
}

pub async fn batches_each_for_itself(place: &Place) {
    let accounts = accounts(place, 3).await;
    let table = accounts.table();
    let mut transaction = place.client.begin();
    let mut batch = transaction.batch();
    let one = batch.increment(table, 1u64, "balance", 1);
    let duplicate = batch.insert_record(&accounts, &account(3, 0));
    let missing = batch.get(table, 77u64);
    let three = batch.increment(table, 3u64, "balance", 1);
    let result = transaction.execute_each(batch).await.expect("executed");
    assert!(matches!(result.outcome(duplicate), Ok(Done::Duplicate { .. })));
    assert!(matches!(result.outcome(missing), Ok(Done::Missing)));
    assert_eq!(result.record(&accounts, one), Ok(Some(account(1, 101))));
    assert_eq!(result.record(&accounts, three), Ok(Some(account(3, 101))));
    transaction.commit().await.expect("committed");
    for (id, after) in [(1, 101), (2, 100), (3, 101)] {
        assert_eq!(balance(&accounts, id).await, Some(after));
    }
}

pub async fn commit_with_the_last_batch(place: &Place) {
    let accounts = accounts(place, 3).await;
    let table = accounts.table();
    let mut transaction = place.client.begin();
    transaction.update(&accounts, &account(1, 1)).await.expect("changed");
    let mut batch = transaction.batch();
    let two = batch.increment(table, 2u64, "balance", 1);
    let result = transaction.execute_and_commit(batch).await.expect("committed");
    assert_eq!(result.record(&accounts, two), Ok(Some(account(2, 101))));
    assert_eq!((balance(&accounts, 1).await, balance(&accounts, 2).await), (Some(1), Some(101)));
    // A whole transaction in one round trip, that does not take place.
    for mistake in 0..3 {
        let mut transaction = place.client.begin();
        transaction.update(&accounts, &account(1, 1000)).await.expect("changed");
        let mut batch = transaction.batch();
        batch.increment(table, 2u64, "balance", 1000);
        let kind = match mistake {
            0 => {
                batch.insert_record(&accounts, &account(3, 0));
                ErrorKind::Duplicate
            }
            1 => {
                batch.update_record(&accounts, &account(77, 0));
                ErrorKind::NotFound
            }
            _ => {
                batch.delete_if(table, 3u64, column("balance").less_than(0));
                ErrorKind::ConditionFalse
            }
        };
        let error = transaction.execute_and_commit(batch).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert_eq!((balance(&accounts, 1).await, balance(&accounts, 2).await), (Some(1), Some(101)));
        assert_eq!(accounts.update(&account(3, 100)).await, Ok(true), "its locks are gone");
    }
}

pub async fn lock_timeout(place: &Place) {
    let accounts = accounts(place, 2).await;
    let mut holder = place.client.begin();
    holder.update(&accounts, &account(1, 1)).await.expect("changed");
    let mut waiter = begin(&place.client, Isolation::RepeatableRead);
    waiter.update(&accounts, &account(2, 2)).await.expect("changed");
    let started = std::time::Instant::now();
    let error = refused(waiter.update(&accounts, &account(1, 2)).await, ErrorKind::LockTimeout, 1205);
    assert!(error.is_temporary());
    let waited = started.elapsed();
    assert!(waited >= Duration::from_millis(90) && waited < Duration::from_secs(5), "{waited:?}");
    // Only the operation is undone, as in MySQL; the transaction goes on.
    holder.rollback().await.expect("rolled back");
    waiter.update(&accounts, &account(1, 2)).await.expect("changed");
    waiter.commit().await.expect("committed");
    assert_eq!((balance(&accounts, 1).await, balance(&accounts, 2).await), (Some(2), Some(2)));
}

/// Of two that wait for each other one is told, typed and soon; run again, it gets through.
pub async fn deadlock(place: &Place) {
    let accounts = accounts(place, 2).await;
    let mut one = place.client.begin();
    let mut two = place.client.begin();
    one.increment(&accounts, 1u64, "balance", 1).await.expect("changed");
    two.increment(&accounts, 2u64, "balance", 1).await.expect("changed");
    let started = std::time::Instant::now();
    let finish = async |mut transaction: Transaction, id: u64| {
        transaction.increment(&accounts, id, "balance", 1).await?;
        transaction.commit().await
    };
    let (one, two) = futures::future::join(finish(one, 2), finish(two, 1)).await;
    assert!(started.elapsed() < Duration::from_secs(5));
    let (error, other) = if one.is_err() { (one, two) } else { (two, one) };
    assert!(refused(error, ErrorKind::Deadlock, 1213).is_temporary());
    assert_eq!(other, Ok(()));
    assert_eq!((balance(&accounts, 1).await, balance(&accounts, 2).await), (Some(101), Some(101)));
    let tries = std::cell::Cell::new(0);
    let gate = futures::future::join_all((0..6).map(|i| {
        let (accounts, tries, client) = (&accounts, &tries, &place.client);
        async move {
            let (first, second) = if i % 2 == 0 { (1u64, 2u64) } else { (2, 1) };
            let work = async |transaction: &mut Transaction| {
                tries.set(tries.get() + 1);
                transaction.increment(accounts, first, "balance", 1).await?;
                transaction.increment(accounts, second, "balance", 1).await?;
                Ok(())
            };
            client.transact(work).await
        }
    }));
    for done in gate.await {
        assert_eq!(done, Ok(()));
    }
    assert!(tries.get() >= 6);
    assert_eq!((balance(&accounts, 1).await, balance(&accounts, 2).await), (Some(107), Some(107)));
}

pub async fn locked_reads(place: &Place) {
    let accounts = accounts(place, 2).await;
    let mut holder = place.client.begin();
    assert_eq!(holder.get_for_update(&accounts, 1u64).await, Ok(Some(account(1, 100))));
    assert_eq!(holder.get_for_update(&accounts, 9u64).await, Ok(None));
    // Plain reads wait for nobody.
    assert_eq!(balance(&accounts, 1).await, Some(100));
    let mut waiter = begin(&place.client, Isolation::ReadCommitted);
    refused(waiter.get_for_update(&accounts, 1u64).await, ErrorKind::LockTimeout, 1205);
    assert_eq!(waiter.get_for_update(&accounts, 2u64).await, Ok(Some(account(2, 100))));
    holder.update(&accounts, &account(1, 1)).await.expect("changed");
    holder.commit().await.expect("committed");
    assert_eq!(waiter.get_for_update(&accounts, 1u64).await, Ok(Some(account(1, 1))));
    waiter.rollback().await.expect("rolled back");
}

pub async fn own_changes_are_seen(place: &Place) {
    let accounts = accounts(place, 2).await;
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable] {
        let mut transaction = begin(&place.client, isolation);
        assert_eq!(read(&mut transaction, &accounts, 1).await, Some(100));
        transaction.insert(&accounts, &coded(5, "five")).await.expect("inserted");
        assert_eq!(transaction.get(&accounts, 5u64).await, Ok(Some(coded(5, "five"))));
        let mut batch = transaction.batch();
        let by_code = batch.get_by(accounts.table(), "code", "five");
        let result = transaction.execute(batch).await.expect("executed");
        assert_eq!(result.record(&accounts, by_code), Ok(Some(coded(5, "five"))));
        transaction.update(&accounts, &coded(5, "cinq")).await.expect("changed");
        transaction.delete(&accounts, 1u64).await.expect("deleted");
        assert_eq!(read(&mut transaction, &accounts, 1).await, None);
        let mut batch = transaction.batch();
        let gone = batch.get_by(accounts.table(), "code", "five");
        let there = batch.get_by(accounts.table(), "code", "cinq");
        let result = transaction.execute_each(batch).await.expect("executed");
        assert_eq!(result.record(&accounts, gone), Ok(None));
        assert_eq!(result.record(&accounts, there), Ok(Some(coded(5, "cinq"))));
        transaction.rollback().await.expect("rolled back");
        assert_eq!((balance(&accounts, 1).await, balance(&accounts, 5).await), (Some(100), None));
    }
}

pub async fn nothing_done_nothing_sent(place: &Place) {
    place.client.begin().commit().await.expect("nothing to commit");
    place.client.begin().rollback().await.expect("nothing to undo");
    drop(place.client.begin());
    let made = place.client.transact(async |_| Ok(7)).await;
    assert_eq!(made, Ok(7));
}
