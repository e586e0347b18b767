//! A real process on a directory that somebody has meddled with: what is missing, damaged or an older copy is refused
//! with its name and the way out, a refused start changes nothing, and with the file put back everything is there.
//! And who may read a directory.

use crate::common::{Rauk, rauk_command};
use mysql::prelude::Queryable;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ROWS: u64 = 60;
const LIMIT: Duration = Duration::from_secs(60);

fn command(data: &Path) -> std::process::Command {
    let mut command = rauk_command(data);
    command.args(["--redo-segment", "1MiB"]);
    command
}

fn start(data: &Path) -> Rauk {
    Rauk::start_with(command(data)).unwrap_or_else(|e| panic!("{e}"))
}

/// A database with rows in several segments of the redo log.
fn fill(rauk: &Rauk) {
    let mut connection = rauk.connect();
    connection.query_drop("CREATE DATABASE d").unwrap();
    connection.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY, content TEXT)").unwrap();
    for id in 0..ROWS {
        connection.query_drop(format!("INSERT INTO d.t VALUES ({id}, REPEAT('x', 50000))")).unwrap();
    }
    // The last entry of the catalog's journal.
    connection.query_drop("CREATE TABLE d.last (id INT PRIMARY KEY)").unwrap();
    connection.query_drop("INSERT INTO d.last VALUES (7)").unwrap();
}

fn check(rauk: &Rauk) {
    let mut connection = rauk.connect();
    assert_eq!(connection.query_first::<u64, _>("SELECT COUNT(*) FROM d.t").unwrap(), Some(ROWS));
    assert_eq!(connection.query_first::<u64, _>("SELECT id FROM d.last").unwrap(), Some(7));
}

fn files(directory: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            // Where a killed process served; the next start takes that away first.
            false if path.ends_with("ready.json") => {}
            false => drop(found.insert(path.clone(), std::fs::read(&path).unwrap())),
        }
    }
}

fn image(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    files(directory, &mut found);
    found
}

/// What a start that is refused says; it changes nothing.
fn refused(data: &Path) -> String {
    let before = image(data);
    let words = Rauk::start_with(command(data)).err().expect("the start is refused");
    assert!(image(data) == before, "a refused start changes nothing: {words}");
    words
}

/// The segment that holds the end of the redo log: the newest one with anything behind the end mark that it was made
/// with.
fn last_segment(data: &Path) -> PathBuf {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes[32..40].try_into().unwrap());
    let segments = image(&data.join("redo")).into_iter().filter(|(_, bytes)| &bytes[4096..4100] == b"RKF1");
    segments.max_by_key(|(_, bytes)| number(bytes)).expect("there is one").0
}

#[test]
fn a_file_that_is_missing_or_damaged_is_refused_until_it_is_put_back() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let rauk = start(data);
    fill(&rauk);
    assert!(rauk.stop().success());
    let flip = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        bytes
    };
    let journal = data.join("catalog.journal");
    type Change<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<u8>>;
    let cases: [(&Path, Change, &str); 6] = [
        (&journal, &|_| None, "catalog.journal is missing"),
        (&journal, &|bytes| Some(flip(bytes)), "catalog.journal is damaged at byte"),
        (&journal, &|bytes| Some(bytes[..bytes.len() - 7].to_vec()), "catalog.journal is damaged at byte"),
        (&data.join("checkpoint/manifest"), &|_| None, "checkpoint/manifest is missing"),
        (&last_segment(data), &|_| None, ".redo is missing"),
        (&data.join("checkpoint/0000000001-p0000.rows"), &|_| None, ".rows is missing"),
    ];
    for (path, change, text) in cases {
        let good = std::fs::read(path).unwrap();
        match change(&good) {
            None => std::fs::remove_file(path).unwrap(),
            Some(bytes) => std::fs::write(path, bytes).unwrap(),
        }
        for _ in 0..2 {
            let words = refused(data);
            assert!(words.contains(text) && words.contains("put the file back from a copy"), "{words}");
        }
        std::fs::write(path, good).unwrap();
    }
    let both = ["superblock.0", "superblock.1"].map(|name| (data.join(name), std::fs::read(data.join(name)).unwrap()));
    both.iter().for_each(|(path, _)| std::fs::remove_file(path).unwrap());
    let words = refused(data);
    assert!(words.contains("superblock.0 is missing"), "{words}");
    // One of the two is enough.
    std::fs::write(&both[1].0, &both[1].1).unwrap();
    let rauk = start(data);
    check(&rauk);
    assert!(rauk.stop().success());
}

/// The process is killed when the superblocks have claimed what it has acknowledged: no checkpoint stands between.
#[test]
fn a_deleted_last_segment_is_refused_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let rauk = start(data);
    fill(&rauk);
    // The log rests: both superblocks claim it, and are written no more.
    let claims = || ["superblock.0", "superblock.1"].map(|name| std::fs::read(data.join(name)).unwrap());
    let deadline = Instant::now() + LIMIT;
    loop {
        let before = claims();
        std::thread::sleep(Duration::from_millis(200));
        if claims() == before {
            break;
        }
        assert!(Instant::now() < deadline, "the superblocks come to rest");
    }
    rauk.kill();
    let last = last_segment(data);
    let good = std::fs::read(&last).unwrap();
    std::fs::remove_file(&last).unwrap();
    let words = refused(data);
    let name = last.file_name().unwrap().to_str().unwrap();
    assert!(words.contains(&format!("redo/{name} is missing")), "{words}");
    // Damage in its last frame: the last bytes that are not zero are the end mark's, and before them come the record's.
    let mut bad = good.clone();
    let end = bad.iter().rposition(|byte| *byte != 0).expect("it has frames");
    bad[end - 40] ^= 1;
    std::fs::write(&last, bad).unwrap();
    let words = refused(data);
    assert!(words.contains(name) && words.contains("but the log was durable up to position"), "{words}");
    std::fs::write(&last, good).unwrap();
    check(&start(data));
}

#[test]
fn only_the_owner_may_read_a_directory() {
    let modes = |data: &Path| {
        let mut paths: Vec<PathBuf> = image(data).into_keys().collect();
        let directories: Vec<PathBuf> = paths.iter().map(|path| path.parent().unwrap().to_path_buf()).collect();
        paths.extend(directories);
        let mode = |path: &PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        paths.iter().map(|path| (path.clone(), path.is_dir(), mode(path))).collect::<Vec<_>>()
    };
    let closed = |data: &Path| {
        for (path, directory, mode) in modes(data) {
            assert_eq!(mode, if directory { 0o700 } else { 0o600 }, "{}", path.display());
        }
    };
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let rauk = start(&data);
    fill(&rauk);
    closed(&data);
    assert!(rauk.stop().success());
    closed(&data);
    for (path, directory, _) in modes(&data) {
        let mode = std::fs::Permissions::from_mode(if directory { 0o755 } else { 0o644 });
        std::fs::set_permissions(path, mode).unwrap();
    }
    let rauk = start(&data);
    assert!(rauk.said().contains("files that other accounts could read are closed to them"), "{}", rauk.said());
    closed(&data);
    check(&rauk);
}
