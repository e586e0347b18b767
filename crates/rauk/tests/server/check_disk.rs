//! `rauk check-disk` as an operator runs it.

use std::path::Path;
use std::process::{Command, Output};

fn check(dir: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    command.args(["check-disk", dir, "--seconds", "1"]).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn a_disk_is_judged_and_nothing_is_left_on_it() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let output = check(dir.path().to_str().expect("UTF-8"));
    let (said, failed) = (text(&output.stdout), text(&output.stderr));
    for part in [
        "overwrite 4 KiB, then fdatasync: ",
        "append 4 KiB, then fdatasync: ",
        " a second; half of them within ",
        "Rauk's redo log overwrites.",
    ] {
        assert!(said.contains(part), "{part}: {said}{failed}");
    }
    // Whatever this machine has: one verdict, and a code that says the same.
    let good = said.contains("\ngood: ") || said.contains("\nslow: ");
    assert_eq!((good, failed.starts_with("rauk: not durable: ")), (output.status.success(), !output.status.success()));
    assert_eq!(std::fs::read_dir(dir.path()).expect("readable").count(), 0, "nothing is left");
}

#[test]
fn a_file_system_in_memory_is_not_durable() {
    if !Path::new("/dev/shm").is_dir() {
        return;
    }
    let output = check("/dev/shm");
    let failed = text(&output.stderr);
    // In some containers it is no tmpfs; then it is judged as what it is.
    if text(&output.stdout).contains("/dev/shm: tmpfs") {
        assert!(!output.status.success() && failed.contains("tmpfs is a file system in memory"), "{failed}");
        assert_eq!(failed.lines().count(), 1, "{failed}");
    }
}

#[test]
fn what_is_no_directory_is_refused() {
    let output = check("/not/there");
    let failed = text(&output.stderr);
    assert!(failed.contains("/not/there is no directory") && failed.lines().count() == 1, "{failed}");
}
