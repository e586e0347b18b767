//! Money moved between accounts by many threads at once: no amount is lost, doubled or half moved, whatever fails.
//!
//! `cargo run -p rauk-client --example transfer` (with `--release` its times mean something)
//!
//! Shown here: transactions that are run again when they met another one, operations that travel together with the commit, and what to do
//! when nobody knows whether a commit took place.

mod common;

use rauk_client::{Client, Error, ErrorKind, Record, Records, Transaction, blocking};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

#[derive(Record, Clone, Debug)]
#[rauk(database = "examples", table = "accounts")]
struct Account {
    #[rauk(key)]
    id: u32,
    cents: i64,
}

/// What was moved. The request's number is unique, so a request that comes twice is carried out once.
#[derive(Record, Clone, Debug)]
#[rauk(database = "examples", table = "transfers")]
struct Transfer {
    #[rauk(key, auto_increment)]
    number: u64,
    #[rauk(unique, length = 40)]
    request: String,
    payer: u32,
    payee: u32,
    cents: i64,
}

const ACCOUNTS: u32 = 10;
const THREADS: u32 = 4;
const EACH: u32 = 100;

struct Bank {
    client: Client,
    accounts: Records<Account>,
    transfers: Records<Transfer>,
}

#[derive(Debug, PartialEq)]
enum Moved {
    Done,
    DoneBefore,
    TooLittle,
}

impl Bank {
    async fn open(client: Client) -> Result<Bank, Error> {
        let accounts = client.open_or_create::<Account>().await?;
        let transfers = client.open_or_create::<Transfer>().await?;
        let mut batch = client.batch();
        for id in 1..=ACCOUNTS {
            batch.write_record(&accounts, &Account { id, cents: 10_000 });
        }
        client.execute(batch).await?.all_succeeded()?;
        Ok(Bank { client, accounts, transfers })
    }

    /// One transfer, once: the same request may be given as often as one likes.
    async fn transfer(
        &self,
        request: &str,
        payer: u32,
        payee: u32,
        cents: i64,
        tries: &AtomicU32,
    ) -> Result<Moved, Error> {
        loop {
            let work = async |transaction: &mut Transaction| {
                tries.fetch_add(1, Ordering::Relaxed);
                self.work(transaction, request, payer, payee, cents).await
            };
            // `transact` runs it again by itself when it met another transaction (deadlock, conflict), or lost the connection before the commit.
            match self.client.transact(work).await {
                Err(error) if error.kind == ErrorKind::Duplicate => return Ok(Moved::DoneBefore),
                // The connection broke during the commit. The request's number tells: if it took place, trying again finds a duplicate.
                Err(error) if error.is_unknown_outcome() => continue,
                done => return done,
            }
        }
    }

    async fn work(
        &self,
        transaction: &mut Transaction,
        request: &str,
        payer: u32,
        payee: u32,
        cents: i64,
    ) -> Result<Moved, Error> {
        // Locked, so that nobody spends the same money meanwhile.
        let account = transaction.get_for_update(&self.accounts, payer).await?.expect("there are no other accounts");
        if account.cents < cents {
            return Ok(Moved::TooLittle);
        }
        let entry = Transfer { number: 0, request: request.into(), payer, payee, cents };
        transaction.insert(&self.transfers, &entry).await?;
        // Both in one round trip: all or nothing.
        let mut batch = transaction.batch();
        batch.increment(self.accounts.table(), payer, "cents", -cents);
        batch.increment(self.accounts.table(), payee, "cents", cents);
        transaction.execute(batch).await?.all_succeeded()?;
        Ok(Moved::Done)
    }

    async fn total(&self) -> Result<i64, Error> {
        let rows = self.accounts.table().scan().collect_records(&self.accounts).await?;
        Ok(rows.iter().map(|account| account.cents).sum())
    }
}

fn main() -> Result<(), Error> {
    let (client, _rauk) = common::open()?;
    let bank = blocking::wait(Bank::open(client))?;
    println!("{ACCOUNTS} accounts with {} cents in all", blocking::wait(bank.total())?);
    let run = std::process::id();
    let (started, tries) = (Instant::now(), AtomicU32::new(0));
    let moved = std::thread::scope(|threads| {
        let work = |thread: u32| {
            let (bank, tries) = (&bank, &tries);
            move || {
                (0..EACH)
                    .map(|i| {
                        let (payer, payee) = ((thread + i) % ACCOUNTS + 1, (thread + i * 7 + 3) % ACCOUNTS + 1);
                        let request = format!("{run}-{thread}-{i}");
                        blocking::wait(bank.transfer(&request, payer, payee, i64::from(i * 13 % 500), tries))
                            .map(|moved| u32::from(moved == Moved::Done))
                    })
                    .sum::<Result<u32, Error>>()
            }
        };
        let workers: Vec<_> = (0..THREADS).map(|thread| threads.spawn(work(thread))).collect();
        workers.into_iter().map(|worker| worker.join().expect("no thread panics")).sum::<Result<u32, Error>>()
    })?;
    println!("{moved} transfers by {THREADS} threads in {:?}, each on disk before it counts", started.elapsed());
    println!("{} were run again since they met another", tries.load(Ordering::Relaxed) - THREADS * EACH);
    let again = blocking::wait(bank.transfer(&format!("{run}-0-1"), 1, 2, 10, &tries))?;
    println!("a request that comes twice: {again:?}");
    let total = blocking::wait(bank.total())?;
    println!("{total} cents in all");
    assert_eq!(total, 10_000 * i64::from(ACCOUNTS));
    Ok(())
}
