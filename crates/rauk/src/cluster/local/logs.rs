//! `rauk cluster logs N`: what a node has written to its log, and what it goes on to write.
//!
//! Only the end of the file is read, in blocks from its end, since a log may be larger than memory. Following is looking
//! at the file's length now and then: it works on every file system, and a log is written seldom.

use super::file::NodeEntry;
use crate::out;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

const BLOCK: u64 = 64 << 10;
const LOOK: Duration = Duration::from_millis(100);

/// Shows the last lines of a node's log; with `follow` also those that come, until Ctrl-C.
pub fn show(entry: &NodeEntry, lines: usize, follow: bool) -> Result<(), String> {
    let path = &entry.log;
    let cannot = |e: std::io::Error| format!("cannot read the log of node {}, {}: {e}", entry.number, path.display());
    let (text, mut at) = tail(path, lines).map_err(cannot)?;
    if !text.is_empty() {
        out::line(format_args!("{}", text.trim_end_matches('\n')))?;
    }
    if !follow {
        return Ok(());
    }
    let mut rest = Vec::new();
    loop {
        std::thread::sleep(LOOK);
        at = more(path, at, &mut rest).map_err(cannot)?;
        // A line is shown when it is whole.
        if let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') {
            let whole: Vec<u8> = rest.drain(..=end).collect();
            out::line(format_args!("{}", String::from_utf8_lossy(&whole[..end])))?;
        }
    }
}

/// The last lines of a file, and where it ends.
fn tail(path: &Path, lines: usize) -> std::io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let end = file.metadata()?.len();
    let (mut from, mut bytes) = (end, Vec::new());
    // One end of line more than lines: that before the first of them.
    while from > 0 && bytes.iter().filter(|byte| **byte == b'\n').count() <= lines {
        let step = BLOCK.min(from);
        from -= step;
        file.seek(SeekFrom::Start(from))?;
        let mut block = vec![0; step as usize];
        file.read_exact(&mut block)?;
        block.append(&mut bytes);
        bytes = block;
    }
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    Ok((all[all.len().saturating_sub(lines)..].join("\n"), end))
}

/// What has come behind a place, and the place behind it; a file that has become shorter begins again.
fn more(path: &Path, at: u64, into: &mut Vec<u8>) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    let from = if file.metadata()?.len() < at { 0 } else { at };
    file.seek(SeekFrom::Start(from))?;
    Ok(from + file.read_to_end(into)? as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_found_in_files_of_any_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let all: Vec<String> = (0..20_000).map(|n| format!("line {n}")).collect();
        for (count, lines) in [(0, 5), (1, 5), (5, 5), (6, 5), (20_000, 5), (20_000, 15_000), (20_000, 0)] {
            std::fs::write(&path, all[..count].iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
            let (text, end) = tail(&path, lines).unwrap();
            assert_eq!(text, all[count.saturating_sub(lines)..count].join("\n"), "{count} {lines}");
            assert_eq!(end, std::fs::metadata(&path).unwrap().len());
        }
        std::fs::write(&path, "one\ntwo").unwrap();
        let (text, end) = tail(&path, 1).unwrap();
        assert_eq!((text.as_str(), end), ("two", 7));
        std::fs::write(&path, "one\ntwo\nthree").unwrap();
        let mut rest = Vec::new();
        assert_eq!(more(&path, end, &mut rest).unwrap(), 13);
        assert_eq!(rest, b"\nthree");
        std::fs::write(&path, "new").unwrap();
        assert_eq!(more(&path, 13, &mut rest).unwrap(), 3, "it began again");
    }
}
