//! Collects the packets of an answer in one buffer, so that a command is answered by one write.
//!
//! A packet is opened with [`begin`](PacketWriter::begin), its payload appended to [`out`](PacketWriter::out), and closed with
//! [`end`](PacketWriter::end), which fills in the frame header and splits what is longer than a frame.
use super::{HEADER, MAX_FRAME, pool};

/// A place in the answer to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    length: usize,
    sequence: u8,
}

#[derive(Debug, Default)]
pub struct PacketWriter {
    buffer: Vec<u8>,
    /// Where the open packet's header lies.
    open: usize,
    sequence: u8,
}

impl PacketWriter {
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// The number of the next packet.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    pub fn begin(&mut self) {
        if self.buffer.capacity() == 0 {
            self.buffer = pool::take_write();
        }
        self.open = self.buffer.len();
        self.buffer.extend_from_slice(&[0; HEADER]);
    }

    /// Where the open packet's payload is appended.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    pub fn end(&mut self) {
        let length = self.buffer.len() - self.open - HEADER;
        if length >= MAX_FRAME {
            return self.end_split(length);
        }
        self.header(self.open, length);
    }

    pub fn packet(&mut self, payload: &[u8]) {
        self.begin();
        self.buffer.extend_from_slice(payload);
        self.end();
    }

    fn header(&mut self, at: usize, length: usize) {
        let [a, b, c, _] = (length as u32).to_le_bytes();
        self.buffer[at..at + HEADER].copy_from_slice(&[a, b, c, self.sequence]);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Makes room for the headers of the further frames from the back, then fills all headers in.
    fn end_split(&mut self, length: usize) {
        let first = self.open + HEADER;
        let more = length / MAX_FRAME;
        self.buffer.resize(self.buffer.len() + more * HEADER, 0);
        for i in (1..=more).rev() {
            let from = first + i * MAX_FRAME;
            let to = from + i * HEADER;
            self.buffer.copy_within(from..from + (length - i * MAX_FRAME).min(MAX_FRAME), to);
        }
        for i in 0..=more {
            let at = self.open + i * (MAX_FRAME + HEADER);
            self.header(at, (length - i * MAX_FRAME).min(MAX_FRAME));
        }
    }

    /// Bytes that wait to be sent.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    pub fn mark(&self) -> Mark {
        Mark { length: self.buffer.len(), sequence: self.sequence }
    }

    /// Takes back what was written since `mark`, none of which may have been sent.
    pub fn rewind(&mut self, mark: Mark) {
        self.buffer.truncate(mark.length);
        self.sequence = mark.sequence;
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Everything was sent.
    pub fn clear(&mut self) {
        self.buffer.clear();
        if self.buffer.capacity() > 8 * pool::SIZE {
            self.buffer = Vec::new();
        }
    }

    /// The command is answered: the buffer goes back to the pool.
    pub fn park(&mut self) {
        if self.buffer.is_empty() && self.buffer.capacity() > 0 {
            pool::give_write(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::reader::PacketReader;

    #[test]
    fn frames_are_read_back() {
        for length in [0, 1, 251, MAX_FRAME - 1, MAX_FRAME, MAX_FRAME + 1, 2 * MAX_FRAME, 2 * MAX_FRAME + 7] {
            let mut payload = vec![7; length];
            for (i, at) in [0, MAX_FRAME - 1, MAX_FRAME, 2 * MAX_FRAME - 1, 2 * MAX_FRAME].into_iter().enumerate() {
                if let Some(byte) = payload.get_mut(at) {
                    *byte = i as u8;
                }
            }
            let mut writer = PacketWriter::default();
            writer.packet(b"first");
            writer.packet(&payload);
            let mut reader = PacketReader::new(64 << 20);
            reader.feed(writer.bytes());
            let first = reader.next_packet().unwrap().unwrap();
            assert_eq!(reader.payload(&first), b"first");
            let second = reader.next_packet().unwrap().unwrap();
            assert!(reader.payload(&second) == payload, "payload of {length} bytes");
            assert_eq!(reader.sequence(), writer.sequence());
            assert!(!reader.in_packet());
        }
    }

    #[test]
    fn rewinding() {
        let mut writer = PacketWriter::default();
        writer.packet(b"a");
        let mark = writer.mark();
        writer.packet(b"b");
        writer.rewind(mark);
        writer.packet(b"c");
        assert_eq!(writer.bytes(), [1, 0, 0, 0, b'a', 1, 0, 0, 1, b'c']);
    }
}
