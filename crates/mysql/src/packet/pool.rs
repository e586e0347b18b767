//! Buffers of one size, kept per thread, so that an idle connection holds none.
//!
//! A worker's connections run on one thread and take a buffer only while bytes are in it. What has grown beyond the common size is
//! given back to the allocator.
use std::cell::RefCell;

/// Bytes of a pooled buffer: most commands and most answers fit.
pub const SIZE: usize = 16 * 1024;
/// Buffers that one thread keeps.
const KEPT: usize = 64;

thread_local! {
    static READ: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static WRITE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer of [`SIZE`] initialised bytes (their content is left over), to read into.
pub fn take_read() -> Vec<u8> {
    READ.with_borrow_mut(Vec::pop).unwrap_or_else(|| vec![0; SIZE])
}

pub fn give_read(buffer: Vec<u8>) {
    if buffer.len() == SIZE {
        READ.with_borrow_mut(|pool| {
            if pool.len() < KEPT {
                pool.push(buffer);
            }
        });
    }
}

/// An empty buffer with room for [`SIZE`] bytes.
pub fn take_write() -> Vec<u8> {
    WRITE.with_borrow_mut(Vec::pop).unwrap_or_else(|| Vec::with_capacity(SIZE))
}

pub fn give_write(mut buffer: Vec<u8>) {
    if (SIZE..=4 * SIZE).contains(&buffer.capacity()) {
        buffer.clear();
        WRITE.with_borrow_mut(|pool| {
            if pool.len() < KEPT {
                pool.push(buffer);
            }
        });
    }
}
