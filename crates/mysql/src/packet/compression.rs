//! The compressed protocol (CLIENT_COMPRESS, zlib): the packet stream in chunks of 7 header bytes and a payload.
//!
//! Header: 3 bytes compressed length, 1 byte sequence number of its own, 3 bytes uncompressed length (0: the payload is not compressed).
//! A chunk ends anywhere in the packet stream. At most one chunk is held, at most 16 MiB uncompressed, and only once its
//! compressed bytes are there.
use super::MAX_FRAME;
use super::read::Malformed;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::io::{Read, Write};

pub const CHUNK_HEADER: usize = 7;
/// Shorter payloads go uncompressed, as in MySQL.
const WORTHWHILE: usize = 50;

/// Cuts a compressed stream into the packet stream.
#[derive(Debug, Default)]
pub struct Inflater {
    pending: Vec<u8>,
    /// The number that the answer's first chunk carries.
    sequence: u8,
}

impl Inflater {
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Whether part of a chunk has come and the rest has not.
    pub fn in_chunk(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Takes bytes from the wire and hands decompressed ones to `out`.
    pub fn feed(&mut self, bytes: &[u8], mut out: impl FnMut(&[u8])) -> Result<(), Malformed> {
        self.pending.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(header) = self.pending[at..].first_chunk::<CHUNK_HEADER>() {
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            let plain_length = u32::from_le_bytes([header[4], header[5], header[6], 0]) as usize;
            let Some(payload) = self.pending.get(at + CHUNK_HEADER..at + CHUNK_HEADER + length) else { break };
            self.sequence = header[3].wrapping_add(1);
            if plain_length == 0 {
                out(payload);
            } else {
                let mut plain = Vec::new();
                let read = ZlibDecoder::new(payload).take(plain_length as u64 + 1).read_to_end(&mut plain);
                if read.is_err() || plain.len() != plain_length {
                    return Err(Malformed("compressed payload"));
                }
                out(&plain);
            }
            at += CHUNK_HEADER + length;
        }
        self.pending.drain(..at);
        if self.pending.is_empty() {
            self.pending = Vec::new();
        }
        Ok(())
    }
}

/// Appends `plain` (whole packets) as compressed chunks; `sequence` numbers them.
pub fn deflate(plain: &[u8], sequence: &mut u8, out: &mut Vec<u8>) {
    for chunk in plain.chunks(MAX_FRAME) {
        let at = out.len();
        out.extend_from_slice(&[0; CHUNK_HEADER]);
        let mut plain_length = 0;
        if chunk.len() >= WORTHWHILE {
            let mut encoder = ZlibEncoder::new(&mut *out, Compression::default());
            encoder.write_all(chunk).and_then(|()| encoder.finish().map(drop)).expect("writing to memory");
            plain_length = chunk.len();
        }
        if plain_length == 0 || out.len() - at - CHUNK_HEADER >= chunk.len() {
            out.truncate(at + CHUNK_HEADER);
            out.extend_from_slice(chunk);
            plain_length = 0;
        }
        let length = (out.len() - at - CHUNK_HEADER) as u32;
        out[at..at + 3].copy_from_slice(&length.to_le_bytes()[..3]);
        out[at + 3] = *sequence;
        out[at + 4..at + 7].copy_from_slice(&(plain_length as u32).to_le_bytes()[..3]);
        *sequence = sequence.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for length in [1, 49, 50, 1000, MAX_FRAME + 10] {
            let plain: Vec<u8> = (0..length).map(|i| (i % 7) as u8).collect();
            let (mut wire, mut sequence) = (Vec::new(), 3);
            deflate(&plain, &mut sequence, &mut wire);
            assert!(length < 1000 || wire.len() < length / 2);
            for step in [1 + wire.len() / 5, wire.len()] {
                let (mut inflater, mut got) = (Inflater::default(), Vec::new());
                for piece in wire.chunks(step) {
                    inflater.feed(piece, |bytes| got.extend_from_slice(bytes)).unwrap();
                }
                assert!(got == plain, "{length} bytes");
                assert_eq!(inflater.sequence(), sequence);
                assert!(!inflater.in_chunk());
            }
        }
    }

    #[test]
    fn lies_about_the_length() {
        let (mut wire, mut sequence) = (Vec::new(), 0);
        deflate(&[7; 1000], &mut sequence, &mut wire);
        for plain_length in [999u32, 1001, 1] {
            let mut bad = wire.clone();
            bad[4..7].copy_from_slice(&plain_length.to_le_bytes()[..3]);
            assert!(Inflater::default().feed(&bad, |_| ()).is_err());
        }
        assert!(Inflater::default().feed(&[2, 0, 0, 0, 9, 0, 0, 1, 2], |_| ()).is_err());
    }
}
