//! A store for web sessions: found by token in microseconds, kept alive while they are used, thrown away when they are not.
//!
//! `cargo run -p rauk-client --example session_store` (with `--release` its times mean something)
//!
//! Shown here: rows as structs, batches (many operations in one round trip), conditional changes, and an index that is scanned by range.

mod common;

use rauk_client::{Client, Done, Error, Record, Records, Value, blocking, column};
use std::time::Instant;

#[derive(Record, Clone, Debug)]
#[rauk(database = "examples", table = "sessions")]
struct Session {
    // A binary collation: tokens that differ in case are different tokens.
    #[rauk(key, length = 32, collation = "utf8mb4_bin")]
    token: String,
    #[rauk(index)]
    user: u64,
    /// Second in which it ends, if nobody uses it before.
    #[rauk(index)]
    expires: u64,
    /// What the application keeps, as JSON perhaps.
    data: String,
}

const LIFETIME: u64 = 1800;
const SESSIONS: u64 = 10_000;

fn token(number: u64) -> String {
    // An application takes random numbers here.
    format!("{:032x}", u128::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
}

fn main() -> Result<(), Error> {
    let (client, _rauk) = common::open()?;
    blocking::wait(run(&client))
}

async fn run(client: &Client) -> Result<(), Error> {
    let sessions = client.open_or_create::<Session>().await?;
    let now = 1_000_000; // a clock would say

    log_in(client, &sessions, now).await?;
    look_up(client, &sessions).await?;
    keep_alive(client, &sessions, now + 1000).await?;
    log_out_everywhere(client, &sessions, 7).await?;
    throw_away_old_ones(client, &sessions, now + LIFETIME + 1).await?;

    let left = sessions.table().scan().columns(&["token"]).collect().await?.len();
    println!("{left} sessions are left; the database keeps them until the next run");
    Ok(())
}

/// Many rows are written in one batch: one round trip, and one write to disk for a group of them.
async fn log_in(client: &Client, sessions: &Records<Session>, now: u64) -> Result<(), Error> {
    let started = Instant::now();
    let mut batch = client.batch();
    for number in 0..SESSIONS {
        let data = format!("{{\"cart\": [{number}]}}");
        // An upsert: the run before may have left it there.
        batch.write_record(
            sessions,
            &Session { token: token(number), user: number % 1000, expires: now + LIFETIME, data },
        );
    }
    let written = client.execute(batch).await?.succeeded();
    println!("{written} sessions written in {:?}, and on disk", started.elapsed());
    Ok(())
}

async fn look_up(client: &Client, sessions: &Records<Session>) -> Result<(), Error> {
    let started = Instant::now();
    let session = sessions.get(&token(42)).await?.expect("it was written");
    println!("one session in {:?}: user {} has {}", started.elapsed(), session.user, session.data);

    let started = Instant::now();
    for first in (0..SESSIONS).step_by(100) {
        let mut batch = client.batch();
        for number in first..first + 100 {
            batch.get(sessions.table(), token(number));
        }
        assert_eq!(client.execute(batch).await?.succeeded(), 100);
    }
    println!("{SESSIONS} sessions, 100 a batch: {:?} each", started.elapsed() / SESSIONS as u32);
    Ok(())
}

/// Each use prolongs a session, but one that has ended stays ended: the condition is looked at where the row is, so nobody comes between.
async fn keep_alive(client: &Client, sessions: &Records<Session>, now: u64) -> Result<(), Error> {
    let mut batch = client.batch();
    let alive = column("expires").greater_than(now);
    let prolong = [("expires", Value::from(now + LIFETIME))];
    let used: Vec<_> = (0..SESSIONS)
        .step_by(3)
        .map(|number| batch.update_if(sessions.table(), token(number), &prolong, alive.clone()))
        .collect();
    let result = client.execute(batch).await?;
    let mut prolonged = 0;
    for op in &used {
        match result.outcome(*op)? {
            Done::Done(_) => prolonged += 1,
            Done::ConditionFalse | Done::Missing => println!("a session has ended: log in again"),
            other => println!("unexpected: {other:?}"),
        }
    }
    println!("{prolonged} sessions prolonged");
    Ok(())
}

async fn log_out_everywhere(client: &Client, sessions: &Records<Session>, user: u64) -> Result<(), Error> {
    let of_user = sessions.table().scan_index("user")?.prefix(user).collect_records(sessions).await?;
    let mut batch = client.batch();
    for session in &of_user {
        batch.delete(sessions.table(), &session.token);
    }
    println!("user {user} logs out everywhere: {} sessions", client.execute(batch).await?.succeeded());
    Ok(())
}

/// The index on `expires` has the old ones in front. They are found without locks, so each is deleted only if it is still old.
async fn throw_away_old_ones(client: &Client, sessions: &Records<Session>, now: u64) -> Result<(), Error> {
    let started = Instant::now();
    let mut old = sessions.table().scan_index("expires")?.range(..=now).columns(&["token"]).rows();
    let mut batch = client.batch();
    let mut gone = 0;
    while let Some(row) = old.next().await? {
        batch.delete_if(sessions.table(), row.get::<String>("token")?, column("expires").at_most(now));
        if batch.len() == 1000 {
            gone += client.execute(std::mem::replace(&mut batch, client.batch())).await?.succeeded();
        }
    }
    gone += client.execute(batch).await?.succeeded();
    println!("{gone} old sessions thrown away in {:?}", started.elapsed());
    Ok(())
}
