//! A bank over SQL: transfers read two balances, write what they have computed, and leave a line in the ledger; audits add all balances up.
//!
//! What must hold: every audit sees the same total; at the end each account has what it began with and what the ledger says, the ledger has every transfer that was acknowledged, none that was undone, and no
//! other; and so through every node.

use super::clients::{Client, Over};
use crate::common::cluster::{Node, insist_on};
use mysql::Conn;
use mysql::prelude::Queryable;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const ACCOUNTS: i64 = 40;
const BALANCE: i64 = 1000;
const TOTAL: i64 = ACCOUNTS * BALANCE;

/// By transfer: whether it was acknowledged; `None`: nobody knows. Those undone are in it as `Some(false)`.
pub type Book = BTreeMap<u64, Option<bool>>;

pub fn prepare(node: &Node) {
    let rows: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, {BALANCE})")).collect();
    insist_on(
        node,
        &[
            "CREATE TABLE IF NOT EXISTS h.accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL)",
            "CREATE TABLE IF NOT EXISTS h.ledger (id BIGINT PRIMARY KEY, source INT NOT NULL, target INT NOT NULL, amount BIGINT NOT NULL)",
            &format!("REPLACE INTO h.accounts VALUES {}", rows.join(",")),
        ],
    );
}

/// Transfers, and an audit now and then, until told to stop.
pub fn work(mut client: Client, seed: u64, numbers: &AtomicU64, stop: &AtomicBool) -> (Client, Book) {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut book = Book::new();
    while client.connect(stop) && !stop.load(Ordering::Relaxed) {
        if random.random_bool(0.15) {
            audit(&mut client);
        } else {
            let number = numbers.fetch_add(1, Ordering::Relaxed);
            let done = transfer(&mut client, &mut random, number).and_then(|()| client.commit());
            let fate = match done {
                Ok(()) => Some(true),
                Err(Over::Undone) => Some(false),
                Err(Over::Unknown) => None,
            };
            if fate == Some(true) {
                client.count("transfers");
            }
            book.insert(number, fate);
        }
        std::thread::sleep(Duration::from_millis(random.random_range(0..10)));
    }
    (client, book)
}

fn transfer(client: &mut Client, random: &mut SmallRng, number: u64) -> Result<(), Over> {
    let source = random.random_range(0..ACCOUNTS);
    let target = (source + random.random_range(1..ACCOUNTS)) % ACCOUNTS;
    let amount = random.random_range(1..10);
    client.run("BEGIN")?;
    for (account, change) in [(source, -amount), (target, amount)] {
        let balance: Vec<i64> = client.rows(&format!("SELECT balance FROM h.accounts WHERE id = {account}"))?;
        let balance = balance[0] + change;
        // Computed here: a balance that changed meanwhile must not be overwritten.
        client.run(&format!("UPDATE h.accounts SET balance = {balance} WHERE id = {account}"))?;
    }
    client.run(&format!("INSERT INTO h.ledger VALUES ({number}, {source}, {target}, {amount})"))
}

/// Of one statement, and of several in one transaction.
fn audit(client: &mut Client) {
    let sum = || -> String { "SELECT CAST(SUM(balance) AS SIGNED) FROM h.accounts".into() };
    let audited = (|| {
        client.run("BEGIN")?;
        let whole: Vec<i64> = client.rows(&sum())?;
        let mut parts = 0;
        for part in 0..4 {
            let part: Vec<i64> = client.rows(&format!("{} WHERE id % 4 = {part}", sum()))?;
            parts += part[0];
        }
        client.commit()?;
        Ok::<_, Over>((whole[0], parts))
    })();
    if let Ok(sums) = audited {
        assert_eq!(sums, (TOTAL, TOTAL), "an audit at {:?}", client.level());
        client.count("audits");
    }
}

/// Through one node, when nobody works any more.
pub fn check(connection: &mut Conn, book: &Book) {
    let ledger: Vec<(u64, i64, i64, i64)> =
        connection.query("SELECT id, source, target, amount FROM h.ledger").expect("the ledger is read");
    let accounts: BTreeMap<i64, i64> =
        connection.query("SELECT id, balance FROM h.accounts").expect("accounts are read").into_iter().collect();
    let mut wanted: BTreeMap<i64, i64> = (0..ACCOUNTS).map(|id| (id, BALANCE)).collect();
    for (number, source, target, amount) in &ledger {
        assert!(matches!(book.get(number), Some(Some(true) | None)), "transfer {number} was undone, and is there");
        *wanted.get_mut(source).expect("an account") -= amount;
        *wanted.get_mut(target).expect("an account") += amount;
    }
    assert_eq!(accounts, wanted, "balances are those of the ledger");
    let there: std::collections::BTreeSet<u64> = ledger.iter().map(|(number, ..)| *number).collect();
    let lost: Vec<&u64> =
        book.iter().filter(|(n, fate)| **fate == Some(true) && !there.contains(n)).map(|(n, _)| n).collect();
    assert!(lost.is_empty(), "{} acknowledged transfers are lost: {lost:?}", lost.len());
}
