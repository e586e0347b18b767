//! One command at a time changes what runs in a directory of `rauk cluster`.
//!
//! `up`, `add` and `restart` read `cluster.json`, start processes and write the file again; `down` ends what it lists. Two
//! of these at once would write over each other's nodes: one would run that no file names. So each of them has
//! `cluster.lock` locked while it runs (`flock`), and refuses to begin where another one has it. The lock goes with its
//! process, however that ends; nodes do not inherit it, since the file is closed when they are executed. The file says
//! whose the lock is, for the message.
//!
//! The others change nothing in the file and need no lock; `kill` must be possible while `up` waits for a node.

use crate::cluster::directory::lock_private;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

pub const FILE: &str = "cluster.lock";

/// The longest text that is shown of a lock file.
const MOST_SHOWN: u64 = 100;

/// Held by a command that works in the directory.
#[must_use]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// `directory` exists; `command` as the user calls it: `rauk cluster up`.
    pub fn take(directory: &Path, command: &str) -> Result<Lock, String> {
        let path = directory.join(FILE);
        let cannot = |e: std::io::Error| format!("cannot lock {}: {e}", path.display());
        let mut file = lock_private(&path).map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(taken(&mut file, directory)),
            Err(TryLockError::Error(e)) => return Err(cannot(e)),
        }
        let text = format!("`{command}` (process {})", std::process::id());
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes())).map_err(cannot)?;
        Ok(Lock { _file: file })
    }
}

fn taken(file: &mut File, directory: &Path) -> String {
    let mut owner = String::new();
    // Empty where the other one has not come to write it.
    if file.take(MOST_SHOWN).read_to_string(&mut owner).is_err() || owner.is_empty() {
        owner = "another command".to_string();
    }
    format!("{owner} is at work in {}; wait until it has ended, or end it", directory.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_command_is_told_of_the_first_one() {
        let directory = tempfile::tempdir().unwrap();
        let first = Lock::take(directory.path(), "rauk cluster up").unwrap();
        let refused = Lock::take(directory.path(), "rauk cluster add").err().unwrap();
        let owner = format!("`rauk cluster up` (process {}) is at work in", std::process::id());
        assert!(refused.starts_with(&owner), "{refused}");
        drop(first);
        let second = Lock::take(directory.path(), "rauk cluster restart").unwrap();
        let refused = Lock::take(directory.path(), "rauk cluster up").err().unwrap();
        assert!(refused.starts_with("`rauk cluster restart` (process"), "{refused}");
        drop(second);
    }

    #[test]
    fn a_lock_file_that_cannot_be_opened_is_named() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join(FILE)).unwrap();
        let refused = Lock::take(directory.path(), "rauk cluster up").err().unwrap();
        assert!(refused.contains("cluster.lock"), "{refused}");
    }
}
