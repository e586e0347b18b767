//! Asking the processor to fetch memory that will be needed soon.
//!
//! A key read of a row that no cache holds is three or four reads of memory, each needing the one before. With many keys at once those of
//! different keys can be under way together; a processor finds some of that by itself, and all of it when asked
//! (`benches/partition.rs`, `key_read` beside `key_reads_of_64`).
//!
//! `unsafe` is here because the instruction takes a pointer. Invariant: a prefetch neither faults nor changes anything that a program can see, whatever the
//! address, so any pointer will do; ours are made from references without being followed. Other processors than x86-64 do nothing.

/// Fetches the cache line in which `slice[index]` begins. `index` may lie outside.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    line(slice.as_ptr().wrapping_add(index).cast());
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn line(at: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch of any address is without effect on the program; SSE, which has it, is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn line(_at: *const i8) {}
