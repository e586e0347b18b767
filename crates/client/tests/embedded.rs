//! The shared suite on an embedded database, and what only such a one has: opening, closing, coming back after a crash.

use rauk_client::{Rauk, Record, blocking::wait};
use std::path::Path;
use std::sync::Arc;

#[macro_use]
mod suite;

/// Small: a test writes little.
fn config() -> rauk_node::Config {
    rauk_node::Config { partitions: 4, segment_bytes: 1 << 20, ..Default::default() }
}

fn open(directory: &Path) -> Rauk {
    Rauk::open_with(directory, config()).expect("the database opens")
}

fn start() -> suite::Place {
    start_with(config())
}

fn start_with(config: rauk_node::Config) -> suite::Place {
    let directory = tempfile::tempdir().expect("a directory");
    let rauk = Arc::new(Rauk::open_with(directory.path(), config).expect("the database opens"));
    let for_others = rauk.clone();
    suite::Place {
        client: rauk.client(),
        another: Arc::new(move || for_others.client()),
        _running: Box::new((rauk, directory)),
    }
}

suite!(crate::start);

/// Without a wait for the disk writes go other ways.
#[test]
fn at_relaxed_durability() {
    let place = || start_with(rauk_node::Config { durability: rauk_node::Durability::Relaxed, ..config() });
    wait(suite::batches::random_batches_against_a_model(&place()));
    wait(suite::batches::the_same_key_in_order(&place()));
    wait(suite::operations::upserts(&place()));
    suite::concurrency::increments_add_up(&place());
    suite::concurrency::transfers_keep_the_sum(&place());
}

#[derive(Record, Clone, Debug, PartialEq)]
#[rauk(database = "app", table = "notes")]
struct Note {
    #[rauk(key, auto_increment)]
    id: u64,
    text: String,
}

fn note(id: u64, text: &str) -> Note {
    Note { id, text: text.into() }
}

#[test]
fn what_was_acknowledged_is_there_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut last = 0;
    for round in 1..=3u64 {
        let rauk = open(directory.path());
        let client = rauk.client();
        let transaction = wait(async {
            let notes = client.open_or_create::<Note>().await.expect("opened");
            let number = notes.insert(&note(0, &format!("round {round}"))).await.expect("inserted").expect("a number");
            assert!(number > last, "numbers are not given twice");
            last = number;
            let mut transaction = client.begin();
            transaction.insert(&notes, &note(0, "not committed")).await.expect("inserted");
            let scan = notes.table().scan_index("PRIMARY").expect("there");
            let found = scan.collect_records(&notes).await.expect("scanned").into_iter().map(|n| n.text);
            assert_eq!(found.collect::<Vec<_>>(), (1..=round).map(|r| format!("round {r}")).collect::<Vec<_>>());
            transaction
        });
        match round {
            1 => rauk.close().expect("closed"),
            2 => drop(rauk),
            // The program ends as it is.
            _ => std::mem::forget(rauk),
        }
        // The transaction was open when the database was closed.
        drop((transaction, client));
    }
}

#[test]
fn a_directory_has_one_database_at_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = open(directory.path());
    let error = Rauk::open(directory.path()).map(|_| ()).unwrap_err();
    assert!(!error.message.is_empty());
    assert!(error.message.contains(&directory.path().display().to_string()), "{error}");
    first.close().expect("closed");
    open(directory.path()).close().expect("closed");
}

#[test]
fn what_is_no_data_directory_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    std::fs::write(&file, "text").expect("written");
    let error = Rauk::open(&file).map(|_| ()).unwrap_err();
    assert!(error.message.contains("file"), "{error}");
}

#[test]
fn a_client_outlives_the_name_it_came_by() {
    let directory = tempfile::tempdir().expect("a directory");
    let rauk = open(directory.path());
    let client = rauk.client();
    wait(async {
        let notes = client.open_or_create::<Note>().await.expect("opened");
        notes.insert(&note(1, "a")).await.expect("inserted");
        rauk.close().expect("closed");
        let error = notes.get(1u64).await.unwrap_err();
        assert!(!error.message.is_empty(), "a closed database says so");
    });
}
