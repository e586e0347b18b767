//! Many threads and tasks on the same rows.
//!
//! These are plain functions: a future should not block the thread that runs it, as joining a thread does.

use super::operations::Event;
use super::{Account, Place, account, accounts, balance};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rauk_client::blocking::wait;
use rauk_client::{Client, Error, ErrorKind, Isolation, Records, Row, TransactionOptions};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A client of the thread's own, and its view of the accounts.
fn own(place: &(dyn Fn() -> Client + Send + Sync)) -> (Client, Records<Account>) {
    let client = place();
    let accounts = wait(client.open::<Account>()).expect("opened");
    (client, accounts)
}

pub fn handed_between_threads(place: &Place) {
    let accounts = wait(accounts(place, 8));
    let mut transaction = place.client.begin();
    for id in 1..=8u64 {
        let records = accounts.clone();
        let step = std::thread::spawn(move || {
            wait(transaction.increment(&records, id, "balance", id as i64)).expect("changed");
            transaction
        });
        transaction = step.join().expect("no panic");
    }
    assert_eq!(wait(balance(&accounts, 8)), Some(100));
    std::thread::spawn(move || wait(transaction.commit())).join().expect("no panic").expect("committed");
    for id in 1..=8 {
        assert_eq!(wait(balance(&accounts, id)), Some(100 + id as i64));
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

pub fn transfers_keep_the_sum(place: &Place) {
    let all = wait(accounts(place, 8));
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
    let rows = wait(all.table().scan().collect_records(&all)).expect("scanned");
    assert_eq!(rows.iter().map(|row| row.balance).sum::<i64>(), 800);
    assert!(rows.iter().all(|row| row.balance >= 0), "{rows:?}");
}

/// Increments outside of transactions, and within, all count.
pub fn increments_add_up(place: &Place) {
    let all = wait(accounts(place, 2));
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
    assert_eq!(wait(balance(&all, 1)), Some(100 + 240));
    assert_eq!(wait(balance(&all, 2)), Some(100 + 160));
}

/// Of many who insert the same key one succeeds, the others are told.
pub fn inserts_of_one_key(place: &Place) {
    wait(accounts(place, 0));
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
    let accounts = wait(place.client.open::<Account>()).expect("opened");
    assert_eq!(wait(accounts.table().scan().collect()).expect("scanned").len(), 40);
    for id in 1..=40 {
        assert!(wait(accounts.get_by("code", format!("code {id}"))).expect("read").is_some());
    }
}

pub fn numbers_are_unique(place: &Place) {
    let events = wait(place.client.open_or_create::<Event>()).expect("the table can be made");
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
    assert_eq!(wait(events.table().scan().collect()).expect("scanned").len(), 200);
}

pub fn a_table_made_by_two(place: &Place) {
    std::thread::scope(|threads| {
        for id in 1..=4 {
            let another = &place.another;
            threads.spawn(move || {
                let accounts = wait(another().open_or_create::<Account>()).expect("made, or opened");
                wait(accounts.insert(&account(id, 1))).expect("inserted");
            });
        }
    });
    let accounts = wait(place.client.open_or_create::<Account>()).expect("opened");
    assert_eq!(wait(accounts.table().scan().collect()).expect("scanned").len(), 4);
}

/// Many tasks on one thread, by an executor that knows nothing of this library.
pub fn tasks_on_one_thread(place: &Place) {
    let accounts = wait(accounts(place, 4));
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
        sum += wait(balance(&accounts, id)).expect("there");
    }
    assert_eq!(sum, 450);
}

/// Money is moved while it is counted: every count is right.
pub fn one_state_while_others_write(place: &Place) {
    let accounts = wait(accounts(place, 2_000));
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for seed in 0..2 {
            let (client, accounts, stop) = ((place.another)(), &accounts, &stop);
            threads.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed);
                let records = wait(client.open::<Account>()).expect("opened");
                assert_eq!(records.table().schema().id, accounts.table().schema().id);
                while !stop.load(Ordering::Relaxed) {
                    let (from, to) = (random.random_range(1..=2_000u64), random.random_range(1..=2_000u64));
                    let moved = wait(client.transact(async |transaction| {
                        transaction.increment(&records, from, "balance", -1).await?;
                        transaction.increment(&records, to, "balance", 1).await?;
                        Ok(())
                    }));
                    moved.expect("moved");
                }
            });
        }
        let count = || {
            wait(async {
                let sum =
                    |rows: &[Row]| rows.iter().map(|row| row.get::<i64>("balance").expect("a number")).sum::<i64>();
                let table = accounts.table();
                for round in 0..20 {
                    assert_eq!(sum(&table.scan().collect().await.expect("scanned")), 200_000, "round {round}");
                    let ordered = table.scan_index("owner").expect("there").columns(&["balance"]);
                    assert_eq!(sum(&ordered.collect().await.expect("scanned")), 200_000, "round {round}");
                    let options = TransactionOptions {
                        isolation: Isolation::RepeatableRead,
                        read_only: true,
                        ..Default::default()
                    };
                    let mut transaction = place.client.begin_with(options);
                    for _ in 0..2 {
                        let mut rows = transaction.scan(table.scan());
                        let mut total = 0;
                        while let Some(row) = rows.next().await.expect("scanned") {
                            total += row.get::<i64>("balance").expect("a number");
                        }
                        assert_eq!(total, 200_000, "round {round}");
                    }
                    transaction.commit().await.expect("committed");
                }
            })
        };
        let counted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(count));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = counted {
            std::panic::resume_unwind(panic);
        }
    });
}
