//! Bytes that lie about their lengths take no more memory than what has arrived justifies. Alone in its binary, since it counts all allocations.

#[allow(dead_code)] // The golden bytes use all of it.
mod messages;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_wire::{Kind, fuzz};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// Safety: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that were in use at once beyond those at the beginning.
fn peak_of(work: impl FnOnce()) -> usize {
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    work();
    PEAK.load(Relaxed) - before
}

#[test]
fn damaged_messages_take_little_memory() {
    // A layout of one column takes two bytes for each column number, so 128 KiB whatever has arrived; a definition may have as many as it has layouts,
    // and comes from a server that has proved who it is.
    let floor = 1 << 20;
    let mut rng = SmallRng::seed_from_u64(3306);
    let messages = messages::all();
    for round in 0..30_000 {
        let message = &messages[round % messages.len()];
        let mut data = message.payload.clone();
        for _ in 0..rng.random_range(0..5) {
            if data.is_empty() {
                break;
            }
            let at = rng.random_range(0..data.len());
            match rng.random_range(0..4) {
                0 => data[at] = rng.random(),
                1 => data.truncate(at),
                2 => data[at] = 0xFF,
                _ => data.insert(at, [0, 0x7F, 0x80, 0xFF][rng.random_range(0..4)]),
            }
        }
        let peak = peak_of(|| drop(fuzz::read_payload(message.kind, &data)));
        assert!(peak <= floor + 40 * data.len(), "{}: {peak} bytes for {data:?}", message.name);
    }
    let reads = [Kind::Batch, Kind::BatchAnswer, Kind::Scan, Kind::ScanPage, Kind::Failed, Kind::Hello];
    for round in 0..30_000 {
        let data: Vec<u8> = (0..rng.random_range(0..64)).map(|_| rng.random()).collect();
        let kind = reads[round % reads.len()];
        let peak = peak_of(|| drop(fuzz::read_payload(kind, &data)));
        assert!(peak <= 40 * (64 + data.len()), "{kind:?}: {peak} bytes for {data:?}");
    }
}
