//! Interleaved sessions against a real server, from the scripts in `isolation/`.
//!
//! A script is a list of steps, each followed by what it must give:
//!
//! ```text
//! level REPEATABLE READ       for every session of the script
//! setup CREATE TABLE …        once, before
//! A> BEGIN                    session A sends a statement …
//! ok 0                        … and this is the answer: rows (columns joined by ` | `), `(empty)`, `ok affected`, `error code`
//! B> UPDATE t SET v = 2
//! (waits)                     no answer for 300 ms: it waits for a lock
//! A> COMMIT
//! ok 0
//! B<                          now the answer of B's waiting statement
//! ok 1
//! ```
//! Lines that begin with `#` say what the script shows.

use crate::common::{Rauk, run};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

struct Session {
    statements: Sender<String>,
    answers: Receiver<Vec<String>>,
}

impl Session {
    fn open(server: &Rauk, database: &str, level: &str) -> Session {
        let mut connection = server.connect();
        assert_eq!(run(&mut connection, &format!("USE {database}")), ["ok 0"]);
        assert_eq!(run(&mut connection, &format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")), ["ok 0"]);
        assert_eq!(run(&mut connection, "SET SESSION innodb_lock_wait_timeout = 5"), ["ok 0"]);
        let (statements, received) = channel::<String>();
        let (answer, answers) = channel();
        std::thread::spawn(move || {
            for sql in received {
                if answer.send(run(&mut connection, &sql)).is_err() {
                    return;
                }
            }
        });
        Session { statements, answers }
    }
}

fn play(server: &Rauk, database: &str, script: &str) -> Result<(), String> {
    let mut admin = server.connect();
    run(&mut admin, &format!("CREATE DATABASE {database}"));
    run(&mut admin, &format!("USE {database}"));
    let mut level = "REPEATABLE READ".to_string();
    let mut sessions: BTreeMap<String, Session> = BTreeMap::new();
    let mut lines = script.lines().enumerate().filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#')).peekable();
    while let Some((number, line)) = lines.next() {
        let number = number + 1;
        if let Some(name) = line.strip_prefix("level ") {
            level = name.to_string();
            continue;
        }
        if let Some(sql) = line.strip_prefix("setup ") {
            let answer = run(&mut admin, sql);
            if !answer[0].starts_with("ok") {
                return Err(format!("line {number}: {sql}: {answer:?}"));
            }
            continue;
        }
        let (name, sql) = match line.split_once("> ").filter(|(name, _)| name.len() == 1) {
            Some((name, sql)) => (name, Some(sql)),
            None => (line.strip_suffix('<').ok_or(format!("line {number}: what is this: {line}"))?, None),
        };
        let session = sessions.entry(name.into()).or_insert_with(|| Session::open(server, database, &level));
        if let Some(sql) = sql {
            session.statements.send(sql.into()).map_err(|e| e.to_string())?;
        }
        let mut wanted = Vec::new();
        while let Some((_, line)) = lines.next_if(|(_, l)| {
            let is_step = l.starts_with("level ")
                || l.starts_with("setup ")
                || l.get(1..3) == Some("> ")
                || (l.len() == 2 && l.ends_with('<'));
            !is_step
        }) {
            wanted.push(line.trim().to_string());
        }
        let waits = wanted == ["(waits)"];
        let limit = Duration::from_millis(if waits { 300 } else { 8000 });
        let found = match session.answers.recv_timeout(limit) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => vec!["(waits)".into()],
            Err(RecvTimeoutError::Disconnected) => vec!["(session ended)".into()],
        };
        if found != wanted {
            return Err(format!("line {number}: {line}\n  wanted {wanted:?}\n  found  {found:?}"));
        }
    }
    Ok(())
}

#[test]
fn scripts() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/isolation");
    let mut files: Vec<_> =
        std::fs::read_dir(directory).expect("scripts are there").map(|e| e.expect("readable").path()).collect();
    files.sort();
    assert!(files.len() >= 20, "only {} scripts were found", files.len());
    let data = tempfile::tempdir().expect("a temporary directory");
    let server = Rauk::start(data.path());
    let mut failures = Vec::new();
    for (i, file) in files.iter().enumerate() {
        let script = std::fs::read_to_string(file).expect("readable");
        if let Err(error) = play(&server, &format!("script{i}"), &script) {
            failures.push(format!("{}: {error}", file.file_name().expect("a name").to_string_lossy()));
        }
    }
    assert!(failures.is_empty(), "{} of {} scripts failed\n{}", failures.len(), files.len(), failures.join("\n"));
}
