//! Finds the last frame of a segment of the redo log in its bytes, without the log's own code: who damages files does not ask those who read them.
//!
//! A segment begins with two copies of its header (the newer one counts), whose words are number, base position and size. Its frames stand at multiples of 8, each with a mark, its length and its own position; what an
//! earlier life of the file has left names other positions. The layouts are those of `rauk-log` (`header.rs`, `redo/frame.rs`), where golden bytes keep them.

const HEADER_COPIES: [usize; 2] = [0, 512];
const FIRST_FRAME: usize = 4096;
/// `RKF1`.
const MARK: &[u8] = b"RKF1";
const FRAME_HEADER: u64 = 40;

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Position in the log, offset in the file and length of the last frame, with its header.
pub fn last(bytes: &[u8]) -> Option<(u64, u64, u64)> {
    if bytes.len() < FIRST_FRAME {
        return None;
    }
    let (_, base) = HEADER_COPIES.into_iter().map(|at| (word(bytes, at + 32), word(bytes, at + 40))).max()?;
    let is_frame = |at: &usize| {
        let header = bytes.get(*at..*at + FRAME_HEADER as usize);
        header.is_some_and(|header| header.starts_with(MARK) && word(header, 8) == base + *at as u64)
    };
    let at = (FIRST_FRAME..bytes.len()).step_by(8).rev().find(is_frame)?;
    let length = u64::from(u32::from_le_bytes(bytes[at + 4..at + 8].try_into().expect("four bytes")));
    let whole = (FRAME_HEADER + length).min((bytes.len() - at) as u64);
    Some((base + at as u64, at as u64, whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_log::{DatabaseId, Disk, Lsn, MemoryDisk, RedoOptions, RedoReader, record::CommitBuilder};
    use rauk_types::TableId;
    use std::sync::Arc;

    /// Found as the log's own reader has it: a bit that is flipped there makes the end doubtful, and takes the last record away.
    #[test]
    fn the_last_frame_is_found() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let options = RedoOptions::new(DatabaseId([4; 16]));
        let superblocks = || rauk_log::Superblocks::load(&disk).unwrap();
        let read = || {
            let mut reader = RedoReader::open(&Arc::new(superblocks()), options, Lsn(0), Lsn(0)).unwrap();
            let mut ends = Vec::new();
            while let Some(entry) = reader.next().unwrap() {
                ends.push(entry.start);
            }
            (reader, ends)
        };
        let log = read().0.into_log(Default::default()).unwrap();
        for value in 1..=3 {
            let mut builder = CommitBuilder::default();
            builder.counter(TableId(1), value);
            log.append(builder.payload()).unwrap();
            log.flush().unwrap();
        }
        drop(log);
        let (reader, starts) = read();
        assert!(starts.len() == 3 && reader.doubtful_end().is_none());
        let name = disk.list("redo").unwrap().pop().unwrap();
        let file = disk.open(&format!("redo/{name}"), false).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let (position, start, length) = last(&bytes).unwrap();
        assert_eq!(position + FRAME_HEADER, starts[2].0);
        for at in start..start + length {
            file.write_all_at(&[bytes[at as usize] ^ 4], at).unwrap();
            let (reader, starts) = read();
            assert!(starts.len() == 2 && reader.doubtful_end().is_some(), "byte {at}");
            file.write_all_at(&[bytes[at as usize]], at).unwrap();
        }
    }
}
