//! Which durable write is faster: buffered `pwrite` + `fdatasync`, or `O_DIRECT|O_DSYNC` on aligned blocks, both overwriting a preallocated file; and a buffered first write
//! into blocks that were only allocated. Prints mean, median and 99th percentile in µs. What came out stands in `real_disk.rs`.
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

const FILE_BYTES: u64 = 64 << 20;
const WRITES: u64 = 1000;
/// `O_DIRECT | O_DSYNC` on Linux x86-64.
const DIRECT_DSYNC: i32 = 0o40000 | 0o10000;

fn measure(name: &str, bytes: usize, mut write: impl FnMut(u64)) {
    let mut times: Vec<f64> = (0..WRITES)
        .map(|i| {
            let start = Instant::now();
            write(i);
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let (median, high) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("{name:<44} {bytes:>6} B   mean {mean:6.0}   median {median:6.0}   p99 {high:6.0} µs");
}

fn open(path: &Path, flags: i32) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).custom_flags(flags).open(path).unwrap()
}

fn main() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = dir.path().join("segment");
    let file = open(&path, 0);
    fs4::FileExt::allocate(&file, FILE_BYTES).unwrap();
    file.sync_all().unwrap();
    let block = vec![5; 4096];
    let buffered = |bytes: usize, base: u64| {
        let (file, block) = (&file, &block);
        move |i: u64| {
            file.write_all_at(&block[..bytes], base + i * bytes as u64).unwrap();
            file.sync_data().unwrap();
        }
    };
    measure("buffered, first write into allocated blocks", 4096, buffered(4096, FILE_BYTES / 2));
    for mib in 0..FILE_BYTES >> 20 {
        file.write_all_at(&vec![1; 1 << 20], mib << 20).unwrap();
    }
    file.sync_all().unwrap();
    let direct = open(&path, DIRECT_DSYNC);
    // A buffer aligned to 4 KiB without unsafe code: the aligned part of a larger one.
    let larger = vec![5u8; 8192];
    let skip = larger.as_ptr().align_offset(4096);
    let aligned = &larger[skip..skip + 4096];
    for _ in 0..2 {
        for bytes in [256, 512, 1024, 4096] {
            measure("buffered overwrite + fdatasync", bytes, buffered(bytes, 0));
        }
        for bytes in [512, 1024, 4096] {
            let write = |i: u64| direct.write_all_at(&aligned[..bytes], i * bytes as u64).unwrap();
            measure("O_DIRECT|O_DSYNC overwrite", bytes, write);
        }
    }
}
