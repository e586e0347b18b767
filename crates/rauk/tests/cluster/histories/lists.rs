//! Lists over SQL: a row is a list, an UPDATE with CONCAT appends to it, and the judge of the simulator says whether what was read and written fits an order of transactions.

use super::clients::{Client, Level, Over};
use crate::common::cluster::{Node, insist_on};
use mysql::Conn;
use mysql::prelude::Queryable;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_node::Isolation;
use rauk_simulation::cluster::check::lists::Lists;
use rauk_simulation::node::history::{Element, Fate, History, Key, Op};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const KEYS: Key = 24;
/// A client ends after so many, so that the graph stays one that can be searched.
const TRANSACTIONS: usize = 1500;

pub fn prepare(node: &Node) {
    let rows: Vec<String> = (0..KEYS).map(|key| format!("({key}, '')")).collect();
    insist_on(
        node,
        &[
            "CREATE TABLE IF NOT EXISTS h.lists (id BIGINT PRIMARY KEY, list TEXT NOT NULL)",
            &format!("REPLACE INTO h.lists VALUES {}", rows.join(",")),
        ],
    );
}

fn elements(text: &str) -> Vec<Element> {
    text.split_terminator(',').map(|n| n.parse().expect("lists hold numbers")).collect()
}

/// All of them, in one snapshot.
pub fn read(connection: &mut Conn) -> Lists {
    let rows: Vec<(Key, String)> = connection.query("SELECT id, list FROM h.lists").expect("the lists are read");
    rows.into_iter().map(|(key, text)| (key, elements(&text))).filter(|(_, list)| !list.is_empty()).collect()
}

/// Transactions until told to stop.
pub fn work(mut client: Client, seed: u64, history: &Mutex<History>, stop: &AtomicBool) -> Client {
    let mut random = SmallRng::seed_from_u64(seed);
    let isolation = match client.level() {
        Level::RepeatableRead => Isolation::RepeatableRead,
        Level::Serializable => Isolation::Serializable,
    };
    for _ in 0..TRANSACTIONS {
        if !client.connect(stop) || stop.load(Ordering::Relaxed) {
            break;
        }
        // Noted before it begins: what was acknowledged by then it must see.
        let number = history.lock().unwrap().begin(isolation, true);
        let asked = operations(&mut client, &mut random, history, number).and_then(|()| {
            history.lock().unwrap().txns[number].fate = Fate::Unknown;
            client.commit()
        });
        let mut history = history.lock().unwrap();
        match asked {
            Ok(()) => {
                history.acknowledge(number);
                client.count(if client.level() == Level::Serializable { "serializable" } else { "repeatable read" });
            }
            Err(Over::Undone) => history.txns[number].fate = Fate::Aborted,
            Err(Over::Unknown) => client.count("unknown"),
        }
        drop(history);
        std::thread::sleep(Duration::from_millis(random.random_range(0..10)));
    }
    client
}

fn operations(client: &mut Client, random: &mut SmallRng, history: &Mutex<History>, number: usize) -> Result<(), Over> {
    client.run("BEGIN")?;
    for _ in 0..random.random_range(1..=4) {
        let key = random.random_range(0..KEYS);
        if random.random_bool(0.5) {
            let element = history.lock().unwrap().element();
            client.run(&format!("UPDATE h.lists SET list = CONCAT(list, '{element},') WHERE id = {key}"))?;
            history.lock().unwrap().txns[number].ops.push(Op::Append(key, element));
        } else {
            let rows: Vec<String> = client.rows(&format!("SELECT list FROM h.lists WHERE id = {key}"))?;
            let list = elements(&rows[0]);
            history.lock().unwrap().txns[number].ops.push(Op::Read { key, list, answered: true });
        }
    }
    Ok(())
}
