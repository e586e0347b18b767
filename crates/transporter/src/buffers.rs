//! Buffers that were sent, kept for the next frames.
//!
//! A frame is built in a `Vec` and given away to be sent; allocating a new one each time costs more than the send of a small frame is worth. Sent ones
//! come back here, all of a system call at a time. Both the number of buffers and the size of each are bounded: large ones are given back to the allocator.

use parking_lot::Mutex;
use rauk_wire::frame;

const MOST: usize = 1024;
const LARGEST: usize = 64 << 10;

#[derive(Default)]
pub(crate) struct Buffers {
    free: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    /// A buffer as [`frame::begin`] makes it.
    pub fn take(&self) -> Vec<u8> {
        let Some(mut buffer) = self.free.lock().pop() else { return frame::begin() };
        buffer.clear();
        buffer.resize(frame::HEADER, 0);
        buffer
    }

    pub fn give(&self, sent: impl Iterator<Item = Vec<u8>>) {
        let mut free = None;
        for buffer in sent {
            if buffer.capacity() < frame::HEADER || buffer.capacity() > LARGEST {
                continue;
            }
            let free = free.get_or_insert_with(|| self.free.lock());
            if free.len() < MOST {
                free.push(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_clean_and_large_ones_do_not() {
        let buffers = Buffers::default();
        let mut used = buffers.take();
        used.extend_from_slice(b"payload");
        used[0] = 1;
        buffers.give([used, vec![0; LARGEST + 1], Vec::new()].into_iter());
        assert_eq!(buffers.free.lock().len(), 1);
        assert_eq!(buffers.take(), vec![0; frame::HEADER]);
        buffers.give((0..2 * MOST).map(|_| vec![0; 100]));
        assert_eq!(buffers.free.lock().len(), MOST);
    }
}
