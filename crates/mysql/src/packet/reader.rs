//! Cuts the byte stream of a client into packets.
//!
//! A packet is one or more frames: 3 bytes length, 1 byte sequence number, payload; a frame of 16 MiB − 1 bytes says that the packet goes
//! on. A packet that lies in one frame is handed out where it was read, without a copy. Invariants: memory grows only with bytes that
//! arrived (at most twice as much), never with what a header promises; a packet over the limit is read and thrown away
//! frame by frame, so that the connection can go on after the error; with nothing unread the buffer goes back to the pool.
use super::{HEADER, MAX_FRAME, pool};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The whole packet was skipped: the next one can be read.
    #[error("packet larger than the limit")]
    TooLarge,
    #[error("packet number {got} where {expected} was due")]
    OutOfOrder { expected: u8, got: u8 },
}

/// Where a packet's payload lies; valid until the reader is next told to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    Whole(Range<usize>),
    Assembled,
}

#[derive(Debug)]
pub struct PacketReader {
    /// All initialised; `start..end` is unread.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Payload of a packet of several frames.
    assembled: Vec<u8>,
    /// Frames of the present packet went into `assembled`.
    split: bool,
    /// Bytes of the present frame that still must be thrown away, and whether that frame is the packet's last.
    skip: Option<(usize, bool)>,
    sequence: u8,
    limit: usize,
}

impl PacketReader {
    /// `limit`: longest payload in bytes.
    pub fn new(limit: usize) -> Self {
        PacketReader {
            buffer: Vec::new(),
            start: 0,
            end: 0,
            assembled: Vec::new(),
            split: false,
            skip: None,
            sequence: 0,
            limit,
        }
    }

    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The number that the next frame must carry; after a packet, the number that the answer begins with.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    pub fn payload(&self, packet: &Packet) -> &[u8] {
        match packet {
            Packet::Whole(range) => &self.buffer[range.clone()],
            Packet::Assembled => &self.assembled,
        }
    }

    /// Whether part of a packet has come and the rest has not.
    pub fn in_packet(&self) -> bool {
        self.start < self.end || self.split || self.skip.is_some()
    }

    /// Bytes that this reader holds in memory.
    pub fn memory(&self) -> usize {
        self.buffer.capacity() + self.assembled.capacity()
    }

    /// The next whole packet, or `None` when more bytes are needed.
    pub fn next_packet(&mut self) -> Result<Option<Packet>, FrameError> {
        if !self.split && !self.assembled.is_empty() {
            self.assembled = Vec::new();
        }
        loop {
            if let Some((left, last)) = self.skip {
                let now = left.min(self.end - self.start);
                self.start += now;
                if now < left {
                    self.skip = Some((left - now, last));
                    return Ok(None);
                }
                if last {
                    self.skip = None;
                    return Err(FrameError::TooLarge);
                }
                // The header of the packet's next frame comes first.
            }
            let unread = &self.buffer[self.start..self.end];
            let Some(header) = unread.first_chunk::<HEADER>() else {
                if self.skip.is_some() {
                    self.skip = Some((0, false));
                }
                return Ok(None);
            };
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            if header[3] != self.sequence {
                return Err(FrameError::OutOfOrder { expected: self.sequence, got: header[3] });
            }
            let last = length < MAX_FRAME;
            if self.skip.is_some() || self.assembled.len() + length > self.limit {
                self.sequence = self.sequence.wrapping_add(1);
                self.start += HEADER;
                self.assembled = Vec::new();
                self.split = false;
                self.skip = Some((length, last));
                continue;
            }
            if unread.len() < HEADER + length {
                return Ok(None);
            }
            self.sequence = self.sequence.wrapping_add(1);
            let payload = self.start + HEADER..self.start + HEADER + length;
            self.start = payload.end;
            if last && !self.split {
                return Ok(Some(Packet::Whole(payload)));
            }
            self.assembled.extend_from_slice(&self.buffer[payload]);
            self.split = !last;
            if last {
                return Ok(Some(Packet::Assembled));
            }
        }
    }

    /// Room to read into; at least a few hundred bytes. Packets handed out before are gone.
    pub fn space(&mut self) -> &mut [u8] {
        if self.buffer.is_empty() {
            self.buffer = pool::take_read();
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start > 0 && self.buffer.len() - self.end < pool::SIZE / 4 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            // A frame longer than the buffer: grow with what has arrived, to the frame's end if that is near.
            let unread = &self.buffer[self.start..self.end];
            let length = u32::from_le_bytes([unread[0], unread[1], unread[2], 0]) as usize;
            let now = self.buffer.len();
            let wanted = (HEADER + length + pool::SIZE).clamp(now + now / 2, now * 2);
            // Fresh zeroed memory costs nothing until it is used.
            let mut grown = vec![0; wanted];
            grown[..self.end].copy_from_slice(&self.buffer);
            self.buffer = grown;
        }
        &mut self.buffer[self.end..]
    }

    /// `n` bytes were read into [`space`](Self::space).
    pub fn filled(&mut self, n: usize) {
        self.end += n;
        assert!(self.end <= self.buffer.len(), "more bytes than room");
    }

    /// Takes bytes from elsewhere (decompressed ones).
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.space();
            let n = space.len().min(bytes.len());
            space[..n].copy_from_slice(&bytes[..n]);
            self.filled(n);
            bytes = &bytes[n..];
        }
    }

    /// Nothing came: with nothing unread, the buffer goes back to the pool.
    pub fn park(&mut self) {
        if self.start == self.end && !self.buffer.is_empty() {
            (self.start, self.end) = (0, 0);
            pool::give_read(std::mem::take(&mut self.buffer));
            if !self.split {
                self.assembled = Vec::new();
            }
        }
    }

    /// The bytes after the last packet: what a client sent ahead of a change to TLS or compression.
    pub fn take_unread(&mut self) -> Vec<u8> {
        let unread = self.buffer[self.start..self.end].to_vec();
        (self.start, self.end) = (0, 0);
        unread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(sequence: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        out.push(sequence);
        out.extend_from_slice(payload);
        out
    }

    /// Feeds `bytes` in pieces of `step` and gives every packet and error.
    fn run(reader: &mut PacketReader, bytes: &[u8], step: usize) -> Vec<Result<Vec<u8>, FrameError>> {
        let mut out = Vec::new();
        for piece in bytes.chunks(step) {
            reader.feed(piece);
            loop {
                match reader.next_packet() {
                    Ok(Some(p)) => {
                        out.push(Ok(reader.payload(&p).to_vec()));
                        reader.set_sequence(0);
                    }
                    Ok(None) => break,
                    Err(e) => {
                        out.push(Err(e));
                        reader.set_sequence(0);
                        if matches!(e, FrameError::OutOfOrder { .. }) {
                            return out;
                        }
                    }
                }
            }
            reader.park();
        }
        out
    }

    #[test]
    fn packets_whatever_the_pieces() {
        let mut bytes = frame(0, b"\x03SELECT 1");
        bytes.extend(frame(0, b""));
        bytes.extend(frame(0, &[b'x'; 40_000]));
        bytes.extend(frame(0, b"\x0e"));
        for step in [1, 3, 4, 5, 100, 16_384, 100_000] {
            let mut reader = PacketReader::new(1 << 20);
            let got = run(&mut reader, &bytes, step);
            let lengths: Vec<usize> = got.iter().map(|p| p.as_ref().unwrap().len()).collect();
            assert_eq!(lengths, [9, 0, 40_000, 1], "in steps of {step}");
            assert!(!reader.in_packet());
            assert_eq!(reader.memory(), 0, "an idle reader holds nothing");
        }
    }

    #[test]
    fn split_packets_are_put_together() {
        let mut bytes = frame(0, &vec![1; MAX_FRAME]);
        bytes.extend(frame(1, &vec![2; MAX_FRAME]));
        bytes.extend(frame(2, b""));
        let mut reader = PacketReader::new(64 << 20);
        let got = run(&mut reader, &bytes, 1 << 20);
        assert_eq!(got.len(), 1);
        let packet = got[0].as_ref().unwrap();
        assert_eq!((packet.len(), packet[MAX_FRAME - 1], packet[MAX_FRAME]), (2 * MAX_FRAME, 1, 2));
        assert!(reader.next_packet().unwrap().is_none());
        assert_eq!(reader.memory(), 0);
    }

    #[test]
    fn too_large_is_skipped_and_the_next_is_read() {
        let mut bytes = frame(0, &vec![1; MAX_FRAME]);
        bytes.extend(frame(1, &[2; 5000]));
        bytes.extend(frame(0, b"next"));
        for step in [4093, 1 << 20] {
            let mut reader = PacketReader::new(1 << 20);
            let got = run(&mut reader, &bytes, step);
            assert_eq!(got, [Err(FrameError::TooLarge), Ok(b"next".to_vec())]);
            assert!(reader.memory() <= 4 << 20);
        }
    }

    #[test]
    fn a_promise_takes_no_memory() {
        let mut reader = PacketReader::new(1 << 30);
        reader.feed(&[0xFF, 0xFF, 0xFF, 0, 1, 2, 3]);
        assert_eq!(reader.next_packet(), Ok(None));
        reader.space();
        assert!(reader.memory() <= pool::SIZE);
        assert!(reader.in_packet());
    }

    #[test]
    fn wrong_sequence() {
        let mut reader = PacketReader::new(1 << 20);
        let got = run(&mut reader, &frame(3, b"x"), 100);
        assert_eq!(got, [Err(FrameError::OutOfOrder { expected: 0, got: 3 })]);
    }
}
