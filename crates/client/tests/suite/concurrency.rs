//! Many threads and tasks on the same rows.

use super::operations::Event;
use super::{Account, Place, account, accounts, balance};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rauk_client::blocking::wait;
use rauk_client::{Client, Error, ErrorKind, Isolation, Records, TransactionOptions};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A client of the thread's own, and its view of the accounts.
fn own(place: &(dyn Fn() -> Client + Send + Sync)) -> (Client, Records<Account>) {
    let client = place();
    let accounts = wait(client.open::<Account>()).expect("opened");
    (client, accounts)
}

pub async fn handed_between_threads(place: &Place) {
    let accounts = accounts(place, 8).await;
    let mut transaction = place.client.begin();
    for id in 1..=8u64 {
        let records = accounts.clone();
        let step = std::thread::spawn(move || {
            wait(transaction.increment(&records, id, "balance", id as i64)).expect("changed");
            transaction
        });
        transaction = step.join().expect("no panic");
    }
    assert_eq!(balance(&accounts, 8).await, Some(100));
    std::thread::spawn(move || wait(transaction.commit())).join().expect("no panic").expect("committed");
    for id in 1..=8 {
        assert_eq!(balance(&accounts, id).await, Some(100 + id as i64));
    }
}

/// Moves an amount when there is so much; the sum of all accounts stays.
async fn transfer(
    client: &Client,
    accounts: &Records<Account>,
    isolation: Isolation,
    random: &mut StdRng,
) -> Result<(), Error> {
    let (from, to, amount) =
        (random.random_range(1..=8u64), random.random_range(1..=8u64), random.random_range(1..40i64));
    loop {
        let mut transaction = client.begin_with(TransactionOptions { isolation, ..Default::default() });
        let work = async {
            let Some(mut payer) = transaction.get(accounts, from).await? else { panic!("nobody deletes accounts") };
            if payer.balance >= amount {
                payer.balance -= amount;
                transaction.update(accounts, &payer).await?;
                transaction.increment(accounts, to, "balance", amount).await?;
            }
            transaction.commit().await
        };
        match work.await {
            Err(error) if error.is_temporary() => continue,
            done => return done,
        }
    }
}

pub async fn transfers_keep_the_sum(place: &Place) {
    let all = accounts(place, 8).await;
    std::thread::scope(|threads| {
        for seed in 0..4 {
            let another = &place.another;
            threads.spawn(move || {
                let (client, accounts) = own(&**another);
                let mut random = StdRng::seed_from_u64(seed);
                // Read first, then written: only these two refuse to lose an update.
                let isolation = if seed % 2 == 0 { Isolation::RepeatableRead } else { Isolation::Serializable };
                for _ in 0..60 {
                    wait(transfer(&client, &accounts, isolation, &mut random)).expect("transferred");
                }
            });
        }
    });
    let rows = all.table().scan().collect_records(&all).await.expect("scanned");
    assert_eq!(rows.iter().map(|row| row.balance).sum::<i64>(), 800);
    assert!(rows.iter().all(|row| row.balance >= 0), "{rows:?}");
}

/// Increments outside of transactions, and within, all count.
pub async fn increments_add_up(place: &Place) {
    let all = accounts(place, 2).await;
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let another = &place.another;
            threads.spawn(move || {
                let (client, accounts) = own(&**another);
                for i in 0..60 {
                    if (thread + i) % 3 == 0 {
                        let work = async |transaction: &mut rauk_client::Transaction| {
                            transaction.increment(&accounts, 1u64, "balance", 1).await.map(|_| ())
                        };
                        wait(client.transact(work)).expect("changed");
                    } else {
                        let mut batch = client.batch();
                        batch.increment(accounts.table(), 1u64, "balance", 1);
                        batch.increment(accounts.table(), 2u64, "balance", 1);
                        assert_eq!(wait(client.execute(batch)).expect("executed").succeeded(), 2);
                    }
                }
            });
        }
    });
    assert_eq!(balance(&all, 1).await, Some(100 + 240));
    assert_eq!(balance(&all, 2).await, Some(100 + 160));
}

/// Of many who insert the same key one succeeds, the others are told.
pub async fn inserts_of_one_key(place: &Place) {
    accounts(place, 0).await;
    let inserted = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for thread in 0..4i64 {
            let (another, inserted) = (&place.another, &inserted);
            threads.spawn(move || {
                let (client, accounts) = own(&**another);
                for id in 1..=40 {
                    // Distinct keys, the same code; and the same key.
                    let mut row = account(id, thread);
                    row.code = Some(format!("code {id}"));
                    if thread % 2 == 0 {
                        row.id = id * 10 + 1_000 * (thread as u64 + 1);
                    }
                    let done = wait(client.transact(async |t| t.insert(&accounts, &row).await));
                    match done {
                        Ok(_) => _ = inserted.fetch_add(1, Ordering::Relaxed),
                        Err(error) => assert_eq!(error.kind, ErrorKind::Duplicate, "{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(inserted.into_inner(), 40);
    let accounts = place.client.open::<Account>().await.expect("opened");
    assert_eq!(accounts.table().scan().collect().await.expect("scanned").len(), 40);
    for id in 1..=40 {
        assert!(accounts.get_by("code", format!("code {id}")).await.expect("read").is_some());
    }
}

pub async fn numbers_are_unique(place: &Place) {
    let events = place.client.open_or_create::<Event>().await.expect("the table can be made");
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let another = &place.another;
            threads.spawn(move || {
                let client = another();
                let events = wait(client.open::<Event>()).expect("opened");
                for _ in 0..50 {
                    let number = wait(events.insert(&Event { id: 0, what: thread.to_string() })).expect("inserted");
                    assert!(number.is_some_and(|number| number > 0));
                }
            });
        }
    });
    assert_eq!(events.table().scan().collect().await.expect("scanned").len(), 200);
}

/// Many tasks on one thread, by an executor that knows nothing of this library.
pub async fn tasks_on_one_thread(place: &Place) {
    let accounts = accounts(place, 4).await;
    let (client, records) = (place.client.clone(), accounts.clone());
    let other_runtime = std::thread::spawn(move || {
        let tasks = (0..50u64).map(|i| {
            let (client, records) = (&client, &records);
            async move {
                let work = async |transaction: &mut rauk_client::Transaction| {
                    transaction.increment(records, 1 + i % 4, "balance", 1).await.map(|_| ())
                };
                client.transact(work).await
            }
        });
        rauk_node::block_on(futures::future::join_all(tasks))
    });
    for done in other_runtime.join().expect("no panic") {
        done.expect("committed");
    }
    let mut sum = 0;
    for id in 1..=4 {
        sum += balance(&accounts, id).await.expect("there");
    }
    assert_eq!(sum, 450);
}
