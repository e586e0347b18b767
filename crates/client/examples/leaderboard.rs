//! A leaderboard: scores change from many threads, and the best ten, a player's rank and his neighbours are read from an index.
//!
//! `cargo run -p rauk-client --example leaderboard` (with `--release` its times mean something)
//!
//! Shown here: increments (no read before the write), scans of an index in both directions with limits, and one client used by many threads.

mod common;

use rauk_client::{Client, Direction, Error, Record, Records, Row, blocking};
use std::ops::Bound;
use std::time::Instant;

#[derive(Record, Clone, Debug)]
#[rauk(database = "examples", table = "players")]
struct Player {
    #[rauk(key)]
    id: u32,
    #[rauk(length = 40)]
    name: String,
    // The node keeps an ordered index of it.
    #[rauk(index)]
    score: i64,
    games: u32,
}

const PLAYERS: u32 = 5_000;
const THREADS: u32 = 4;

fn main() -> Result<(), Error> {
    let (client, _rauk) = common::open()?;
    let players = blocking::wait(register(&client))?;
    play(&client, &players)?;
    blocking::wait(async {
        best(&players).await?;
        around(&players, 42).await
    })
}

async fn register(client: &Client) -> Result<Records<Player>, Error> {
    let players = client.open_or_create::<Player>().await?;
    let mut batch = client.batch();
    for id in 1..=PLAYERS {
        batch.write_record(&players, &Player { id, name: format!("player {id}"), score: 0, games: 0 });
    }
    println!("{} players begin at 0", client.execute(batch).await?.succeeded());
    Ok(players)
}

/// Four threads share a client; each sends its games in batches. An increment adds to what is there, whoever else adds to it: none is lost.
fn play(client: &Client, players: &Records<Player>) -> Result<(), Error> {
    let started = Instant::now();
    let games = std::thread::scope(|threads| {
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                threads.spawn(move || {
                    let mut random = u64::from(thread) + 1;
                    let mut done = 0;
                    for _ in 0..50 {
                        let mut batch = client.batch();
                        for _ in 0..50 {
                            // A small generator is enough for a game.
                            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                            let id = (random >> 33) as u32 % PLAYERS + 1;
                            let points = (random >> 20) as i64 % 100;
                            batch.increment(players.table(), id, "score", points);
                            batch.increment(players.table(), id, "games", 1);
                        }
                        done += blocking::wait(client.execute(batch))?.succeeded() / 2;
                    }
                    Ok(done)
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("no thread panics")).sum::<Result<usize, Error>>()
    })?;
    println!("{games} games by {THREADS} threads in {:?}\n", started.elapsed());
    let counted: u64 = blocking::wait(async {
        let rows = players.table().scan().columns(&["games"]).collect().await?;
        rows.iter().map(|row| row.get::<u64>("games")).sum::<Result<u64, Error>>()
    })?;
    assert_eq!(counted, games as u64);
    Ok(())
}

async fn best(players: &Records<Player>) -> Result<(), Error> {
    let started = Instant::now();
    // The highest ten come from the end of the index; nothing else is read.
    let scan = players.table().scan_index("score")?.direction(Direction::Backward).limit(10);
    let best = scan.collect_records(players).await?;
    println!("the best ten, read in {:?}:", started.elapsed());
    for (place, player) in best.iter().enumerate() {
        println!("{:>4}. {:<12} {:>6} points in {} games", place + 1, player.name, player.score, player.games);
    }
    Ok(())
}

/// A player's rank is one more than the number of those with more points; his neighbours stand beside him in the index.
async fn around(players: &Records<Player>, id: u32) -> Result<(), Error> {
    let player = players.get(id).await?.expect("all players are registered");
    let index = || players.table().scan_index("score");
    let started = Instant::now();
    let better = index()?.range((Bound::Excluded(player.score), Bound::Unbounded)).columns(&["id"]).collect().await?;
    println!("\n{} has rank {} with {} points ({:?})", player.name, better.len() + 1, player.score, started.elapsed());
    let shown = |row: &Row| Ok::<_, Error>(format!("{} with {}", row.get::<String>("name")?, row.get::<i64>("score")?));
    let above = index()?.range((Bound::Excluded(player.score), Bound::Unbounded)).limit(1).collect().await?;
    let below = index()?.range(..player.score).direction(Direction::Backward).limit(1).collect().await?;
    for (place, rows) in [("next above", above), ("next below", below)] {
        match rows.first() {
            Some(row) => println!("{place}: {}", shown(row)?),
            None => println!("{place}: nobody"),
        }
    }
    Ok(())
}
