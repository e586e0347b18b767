//! Deadlocks over two nodes: two transactions, each with a lock in a partition of another node and waiting for the other's.
//!
//! No node sees such a circle whole. Measured is the time from sending the statement that closes it to the answer 1213 on whichever connection is chosen; the other transaction must then get its lock and commit.
//! Connections are at the two nodes that lead the rows.

use crate::bench::cluster::nodes::Cluster;
use crate::bench::servers::{again_on_conflict, connect_with_patience};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::time::{Duration, Instant};

const TIMES: usize = 20;
pub const GOAL: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(15);
/// The first waits by then.
const WAITS: Duration = Duration::from_millis(50);
/// A round is repeated when a transaction met a primary that moved.
const ATTEMPTS: usize = 5 * TIMES;

pub struct Circles {
    pub nodes: usize,
    /// Ascending.
    pub times: Vec<Duration>,
}

/// Uses the row of `failures.fixed` that each partition has.
pub fn run(cluster: &Cluster, nodes: usize, partitions: u16) -> Result<Circles, String> {
    eprintln!("failures: {TIMES} deadlocks over two nodes");
    let mut connection = connect_with_patience(cluster.sql_ports()[0], PATIENCE)?;
    let text = |e: mysql::Error| e.to_string();
    connection.query_drop("CREATE TABLE failures.circle (stripe INT PRIMARY KEY, v INT NOT NULL)").map_err(text)?;
    let stripes = super::clients::stripes(&mut connection, partitions)?;
    let values: Vec<String> = stripes.iter().map(|stripe| format!("({stripe}, 0)")).collect();
    again_on_conflict(&mut connection, &format!("INSERT INTO failures.circle VALUES {}", values.join(",")))?;
    let mut times = Vec::new();
    for _ in 0..ATTEMPTS {
        if times.len() == TIMES {
            break;
        }
        let ports = cluster.primaries()?;
        let of: Vec<(u16, u32)> = ports.into_iter().zip(stripes.iter().copied()).collect();
        let here = of[times.len() % of.len()];
        let Some(there) = of.iter().cycle().skip(times.len()).take(of.len()).find(|(port, _)| *port != here.0) else {
            return Err("all partitions are led by one node".into());
        };
        let views = cluster.views();
        match once(here, *there)? {
            Ending::Victim(time) => times.push(time),
            Ending::NoCircle => {}
            // Locks die with a primary.
            Ending::Neither(_) if cluster.views() != views => {}
            Ending::Neither(why) => return Err(why),
        }
    }
    times.sort();
    match times.len() {
        TIMES => Ok(Circles { nodes, times }),
        few => Err(format!("only {few} of {ATTEMPTS} circles ended with 1213 on one side")),
    }
}

enum Ending {
    /// One was chosen, so long after the circle had closed.
    Victim(Duration),
    /// A transaction had ended before.
    NoCircle,
    Neither(String),
}

fn once(a: (u16, u32), b: (u16, u32)) -> Result<Ending, String> {
    let update = |row: u32| format!("UPDATE failures.circle SET v = v + 1 WHERE stripe = {row}");
    let (mut one, mut other) = (connect_with_patience(a.0, PATIENCE)?, connect_with_patience(b.0, PATIENCE)?);
    for (connection, row) in [(&mut one, a.1), (&mut other, b.1)] {
        connection.query_drop("BEGIN").map_err(|e| e.to_string())?;
        if connection.query_drop(update(row)).is_err() {
            return Ok(Ending::NoCircle);
        }
    }
    // Whoever gets the lock commits, so that nobody waits for the end of this.
    let finish = |connection: &mut Conn, row: u32| {
        let result = connection.query_drop(update(row));
        let answered = Instant::now();
        (result.and_then(|()| connection.query_drop("COMMIT")), answered)
    };
    let (first, second, closed) = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| finish(&mut one, b.1));
        std::thread::sleep(WAITS);
        let closed = (!waiting.is_finished()).then(Instant::now);
        let second = finish(&mut other, a.1);
        (waiting.join().expect("the statement does not panic"), second, closed)
    });
    let Some(closed) = closed else { return Ok(Ending::NoCircle) };
    Ok(match (first, second) {
        ((Err(error), at), (Ok(()), _)) | ((Ok(()), _), (Err(error), at)) if is_deadlock(&error) => {
            Ending::Victim(at.saturating_duration_since(closed))
        }
        (first, second) => Ending::Neither(format!("a circle ended with {:?} and {:?}", first.0, second.0)),
    })
}

fn is_deadlock(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::MySqlError(e) if e.code == 1213)
}
