//! Who works while nodes fail: for each partition a writer and a reader with connections of their own, and the book of what was acknowledged.
//!
//! A *stripe* is what the table is partitioned by; for each partition one is found that lies in it. A writer inserts rows of its stripe, numbered as nobody before, one transaction each; a reader reads one row of
//! its stripe at the snapshot of the moment. Both wait for each answer, pause for a moment, and go on; what is refused is not tried again but counted by its code. A row is in the book when its INSERT was answered:
//! it must be found ever after, through every node. What had no answer may be there or not, and no other row may be.

use super::LOOK;
use crate::bench::cluster::nodes::Cluster;
use crate::bench::cluster::pauses::Successes;
use crate::bench::servers::{again_on_conflict, connect, connect_with_patience};
use mysql::prelude::Queryable;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two operations of a client.
const PAUSE: Duration = Duration::from_millis(8);
/// A client gives an answer up after this: longer than any failover should last, so that it is seen whole.
const PATIENCE: Duration = Duration::from_secs(15);
/// Stripes that are tried for one in each partition.
const STRIPES: u32 = 4096;

/// How often, by MySQL's code; "lost" is a connection.
pub type Errors = BTreeMap<String, u64>;

/// Rows that were acknowledged, and the stripes that lie in one partition each.
pub struct Book {
    pub stripes: Vec<u32>,
    rows: BTreeSet<(u32, u64)>,
    /// Newest number tried in each stripe.
    tried: BTreeMap<u32, u64>,
}

impl Book {
    pub fn make(cluster: &Cluster, partitions: u16) -> Result<Book, String> {
        let mut connection = connect(cluster.sql_ports()[0])?;
        for statement in [
            "CREATE DATABASE failures",
            "CREATE TABLE failures.written (stripe INT, id BIGINT, PRIMARY KEY (stripe, id)) PARTITION BY KEY (stripe)",
            "CREATE TABLE failures.fixed (stripe INT PRIMARY KEY, v INT NOT NULL)",
        ] {
            connection.query_drop(statement).map_err(|e| format!("making tables: {e}"))?;
        }
        let stripes = stripes(&mut connection, partitions)?;
        let values: Vec<String> = stripes.iter().map(|stripe| format!("({stripe}, 0)")).collect();
        again_on_conflict(&mut connection, &format!("INSERT INTO failures.fixed VALUES {}", values.join(",")))?;
        Ok(Book { stripes, rows: BTreeSet::new(), tried: BTreeMap::new() })
    }

    /// Gives how many were acknowledged.
    pub fn note(&mut self, seen: &Seen) -> u64 {
        let before = self.rows.len();
        for client in &seen.writers {
            self.rows.extend(client.acknowledged.iter().map(|id| (client.stripe, *id)));
            self.tried.insert(client.stripe, client.tried);
        }
        (self.rows.len() - before) as u64
    }

    /// Acknowledged rows that are not there, through whichever node misses most. A row that nobody has tried to write is an error.
    pub fn lost(&self, cluster: &Cluster) -> Result<u64, String> {
        let mut most = 0;
        for port in cluster.sql_ports() {
            let shown = |e: mysql::Error| format!("reading back through port {port}: {e}");
            let mut connection = connect(port)?;
            let there: BTreeSet<(u32, u64)> =
                connection.query("SELECT stripe, id FROM failures.written").map_err(shown)?.into_iter().collect();
            most = most.max(self.missing(&there)?);
        }
        Ok(most)
    }

    fn missing(&self, there: &BTreeSet<(u32, u64)>) -> Result<u64, String> {
        let unknown = there.iter().find(|(stripe, id)| self.tried.get(stripe).is_none_or(|newest| id > newest));
        match unknown {
            Some(row) => Err(format!("there is a row that nobody wrote: {row:?}")),
            None => Ok(self.rows.difference(there).count() as u64),
        }
    }
}

/// A stripe for each partition, by the partition's number.
pub fn stripes(connection: &mut mysql::Conn, partitions: u16) -> Result<Vec<u32>, String> {
    let mut found = BTreeMap::new();
    for stripe in 0..STRIPES {
        let statement = format!("EXPLAIN SELECT v FROM failures.fixed WHERE stripe = {stripe}");
        let row: Option<mysql::Row> = connection.query_first(statement).map_err(|e| e.to_string())?;
        let name: Option<String> = row.and_then(|row| row.get("partitions"));
        let number = name.as_deref().and_then(|name| name.strip_prefix('p')?.parse::<u16>().ok());
        found.entry(number.ok_or_else(|| format!("EXPLAIN names no single partition: {name:?}"))?).or_insert(stripe);
        if found.len() == usize::from(partitions) {
            return Ok(found.into_values().collect());
        }
    }
    Err(format!("of {partitions} partitions only {} have one of {STRIPES} stripes", found.len()))
}

/// What one client has seen.
struct Client {
    stripe: u32,
    successes: Successes,
    acknowledged: Vec<u64>,
    tried: u64,
    errors: Errors,
}

pub struct Clients {
    stop: Arc<AtomicBool>,
    writers: Vec<JoinHandle<Result<Client, String>>>,
    readers: Vec<JoinHandle<Result<Client, String>>>,
}

impl Clients {
    /// All connected to one node.
    pub fn start(port: u16, book: &Book) -> Clients {
        let stop = Arc::new(AtomicBool::new(false));
        let each = |writes: bool| {
            let client = |&stripe: &u32| {
                let (stop, first) = (stop.clone(), book.tried.get(&stripe).copied().unwrap_or(0));
                std::thread::spawn(move || work(port, stripe, writes, first, &stop))
            };
            book.stripes.iter().map(client).collect()
        };
        Clients { writers: each(true), readers: each(false), stop }
    }

    pub fn stop(self) -> Result<Seen, String> {
        self.stop.store(true, Ordering::Relaxed);
        let join = |threads: Vec<JoinHandle<Result<Client, String>>>| -> Result<Vec<Client>, String> {
            let ended: Vec<_> = threads.into_iter().map(|t| t.join().expect("a client does not panic")).collect();
            ended.into_iter().collect()
        };
        // Both are waited for, whatever one says.
        let (writers, readers) = (join(self.writers), join(self.readers));
        Ok(Seen { writers: writers?, readers: readers? })
    }
}

fn work(port: u16, stripe: u32, writes: bool, first: u64, stop: &AtomicBool) -> Result<Client, String> {
    let mut connection = Some(connect_with_patience(port, PATIENCE)?);
    let (successes, errors) = (Successes::begin(), Errors::new());
    let mut client = Client { stripe, successes, acknowledged: Vec::new(), tried: first, errors };
    while !stop.load(Ordering::Relaxed) {
        let Some(open) = &mut connection else {
            connection = connect_with_patience(port, PATIENCE).ok();
            if connection.is_none() {
                std::thread::sleep(LOOK);
            }
            continue;
        };
        let result = if writes {
            client.tried += 1;
            open.exec_drop("INSERT INTO failures.written VALUES (?, ?)", (stripe, client.tried))
        } else {
            match open.exec_first("SELECT v FROM failures.fixed WHERE stripe = ?", (stripe,)) {
                Ok(Some(0)) => Ok(()),
                Ok(other) => return Err(format!("the row of stripe {stripe} reads {other:?}")),
                Err(error) => Err(error),
            }
        };
        match result {
            Ok(()) => {
                client.successes.another();
                if writes {
                    client.acknowledged.push(client.tried);
                }
            }
            Err(mysql::Error::MySqlError(error)) => *client.errors.entry(error.code.to_string()).or_default() += 1,
            Err(_) => {
                *client.errors.entry("lost".into()).or_default() += 1;
                connection = None;
            }
        }
        std::thread::sleep(PAUSE);
    }
    client.successes.end();
    Ok(client)
}

/// What all clients of a round have seen.
pub struct Seen {
    writers: Vec<Client>,
    readers: Vec<Client>,
}

/// The longest times without a success of any client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gaps {
    /// Before the failure: the machine's own.
    pub calm: Duration,
    pub write: Duration,
    pub read: Duration,
    /// From when the node was on its way back.
    pub write_after: Duration,
    pub read_after: Duration,
}

impl Seen {
    pub fn gaps(&self, failed: Instant, mended: Instant) -> Gaps {
        let longest = |clients: &[Client]| -> [Duration; 3] {
            let each = clients.iter().map(|client| client.successes.longest(failed, mended));
            each.fold([Duration::ZERO; 3], |a, b| [a[0].max(b[0]), a[1].max(b[1]), a[2].max(b[2])])
        };
        let (writes, reads) = (longest(&self.writers), longest(&self.readers));
        Gaps {
            calm: writes[0].max(reads[0]),
            write: writes[1],
            read: reads[1],
            write_after: writes[2],
            read_after: reads[2],
        }
    }

    pub fn errors(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        self.writers.iter().chain(&self.readers).flat_map(|c| &c.errors).map(|(code, count)| (code.clone(), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_book_finds_what_is_lost_and_what_nobody_wrote() {
        let mut book = Book { stripes: vec![1, 2], rows: BTreeSet::new(), tried: BTreeMap::new() };
        let client = |stripe, acknowledged: &[u64], tried| {
            let (successes, acknowledged) = (Successes::begin(), acknowledged.to_vec());
            Client { stripe, successes, acknowledged, tried, errors: Errors::from([("1213".to_string(), 2)]) }
        };
        let seen = Seen { writers: vec![client(1, &[1, 3], 4), client(2, &[1], 1)], readers: vec![] };
        assert_eq!((book.note(&seen), book.note(&seen)), (3, 0));
        assert_eq!(seen.errors().map(|(_, count)| count).sum::<u64>(), 4);
        assert_eq!(book.missing(&BTreeSet::from([(1, 1), (1, 3), (2, 1)])), Ok(0));
        assert_eq!(book.missing(&BTreeSet::from([(1, 1), (1, 2), (1, 3), (1, 4), (2, 1)])), Ok(0));
        assert_eq!(book.missing(&BTreeSet::from([(1, 3), (2, 1)])), Ok(1));
        assert!(book.missing(&BTreeSet::from([(1, 5)])).unwrap_err().contains("nobody wrote"));
        assert!(book.missing(&BTreeSet::from([(3, 1)])).is_err());
    }
}
