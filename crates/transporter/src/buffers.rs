//! Buffers that were sent, kept for the next frames.
//!
//! A frame is built in a `Vec` and given away to be sent; allocating a new one each time costs more than the send of a small frame is worth. Sent ones
//! come back here, all of a system call at a time: large ones as well, whose pages would have to be made anew each time. The number of buffers, their bytes together
//! and the size of each are bounded; what is beyond is given back to the allocator.

use parking_lot::Mutex;
use rauk_wire::frame;

const MOST: usize = 1024;
const MOST_BYTES: usize = 16 << 20;
const LARGEST: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Buffers(Mutex<Free>);

#[derive(Default)]
struct Free {
    buffers: Vec<Vec<u8>>,
    /// Their capacities together.
    bytes: usize,
}

impl Buffers {
    /// A buffer as [`frame::begin`] makes it.
    pub fn take(&self) -> Vec<u8> {
        let popped = {
            let mut free = self.0.lock();
            let popped = free.buffers.pop();
            free.bytes -= popped.as_ref().map_or(0, Vec::capacity);
            popped
        };
        let Some(mut buffer) = popped else { return frame::begin() };
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
            let free = free.get_or_insert_with(|| self.0.lock());
            if free.buffers.len() < MOST && free.bytes + buffer.capacity() <= MOST_BYTES {
                free.bytes += buffer.capacity();
                free.buffers.push(buffer);
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
        assert_eq!(buffers.0.lock().buffers.len(), 1);
        assert_eq!(buffers.take(), vec![0; frame::HEADER]);
        assert_eq!(buffers.0.lock().bytes, 0);
        buffers.give((0..2 * MOST).map(|_| vec![0; 100]));
        assert_eq!(buffers.0.lock().buffers.len(), MOST);
        (0..MOST).for_each(|_| drop(buffers.take()));
        buffers.give((0..MOST).map(|_| vec![0; LARGEST]));
        let free = buffers.0.lock();
        assert_eq!((free.buffers.len(), free.bytes), (MOST_BYTES / LARGEST, MOST_BYTES));
    }
}
