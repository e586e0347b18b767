//! The measurements: one writer that waits for the disk after each block, as one client does that commits.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of each measurement's file.
pub const BYTES: u64 = 32 << 20;
const BLOCK: usize = 4096;
/// A cache that acknowledges at once would fill memory with latencies.
const MOST: usize = 200_000;

/// How long each flush took, sorted, and all of them together.
#[derive(Debug)]
pub struct Latencies {
    sorted: Vec<Duration>,
    all: Duration,
}

impl Latencies {
    pub fn of(mut latencies: Vec<Duration>) -> Latencies {
        assert!(!latencies.is_empty(), "a measurement writes one block at least");
        latencies.sort();
        Latencies { all: latencies.iter().sum(), sorted: latencies }
    }

    pub fn per_second(&self) -> f64 {
        self.sorted.len() as f64 / self.all.as_secs_f64().max(1e-9)
    }

    pub fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    pub fn quantile(&self, share: f64) -> Duration {
        let at = (self.sorted.len() as f64 * share) as usize;
        self.sorted[at.min(self.sorted.len() - 1)]
    }

    pub fn longest(&self) -> Duration {
        self.quantile(1.0)
    }
}

/// A file without a name: it goes with this process, however that ends.
fn unnamed(dir: &Path) -> io::Result<File> {
    let path = dir.join(format!(".rauk-check-disk-{}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Not the same twice: a disk that compresses or merges equal blocks would look better than it is.
fn block(number: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for word in block.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    block
}

/// Writes blocks at the places that `place` gives, until it gives none, or the time is over.
fn timed(file: &File, limit: Duration, place: impl Fn(u64) -> Option<u64>) -> io::Result<Latencies> {
    let began = Instant::now();
    let mut latencies = Vec::new();
    while let Some(at) = place(latencies.len() as u64) {
        let block = block(latencies.len() as u64);
        let start = Instant::now();
        file.write_all_at(&block, at)?;
        file.sync_data()?;
        latencies.push(start.elapsed());
        if began.elapsed() >= limit || latencies.len() >= MOST {
            break;
        }
    }
    Ok(Latencies::of(latencies))
}

/// Blocks of a file that has been written and synced before, one after the other and again.
pub fn overwrite(dir: &Path, limit: Duration) -> io::Result<Latencies> {
    let file = unnamed(dir)?;
    for number in 0..BYTES / BLOCK as u64 {
        file.write_all_at(&block(!number), number * BLOCK as u64)?;
    }
    file.sync_all()?;
    timed(&file, limit, |number| Some(number * BLOCK as u64 % BYTES))
}

/// Blocks at the end of a file that grows.
pub fn append(dir: &Path, limit: Duration) -> io::Result<Latencies> {
    let file = unnamed(dir)?;
    file.sync_all()?;
    timed(&file, limit, |number| Some(number * BLOCK as u64).filter(|at| *at < BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_bounded_and_leave_nothing() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let began = Instant::now();
        let limit = Duration::from_millis(50);
        let (overwrite, append) =
            (overwrite(dir.path(), limit).expect("it runs"), append(dir.path(), limit).expect("it runs"));
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        assert!(overwrite.median() <= overwrite.quantile(0.99) && append.median() <= append.longest());
        assert!(append.sorted.len() as u64 <= BYTES / BLOCK as u64);
        assert_eq!(std::fs::read_dir(dir.path()).expect("readable").count(), 0);
    }

    #[test]
    fn quantiles_are_of_the_sorted_latencies() {
        let all = Latencies::of((1..=100).rev().map(Duration::from_millis).collect());
        assert_eq!(all.median(), Duration::from_millis(51));
        assert_eq!((all.quantile(0.99), all.longest()), (Duration::from_millis(100), Duration::from_millis(100)));
        assert!((all.per_second() - 100.0 / 5.05).abs() < 0.01);
        assert_ne!(block(1), block(2));
    }
}
