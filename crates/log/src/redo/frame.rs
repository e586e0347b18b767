//! The bytes of a frame: a 40-byte header at a multiple of 8, and pieces of records. Behind the last frame, an end mark.
//!
//! ```text
//! header    0 mark: u32             16 incarnation: u32    32 crc32c of the pieces: u32
//!           4 length: u32           20 zero: u32           36 crc32c of 0..36: u32
//!           8 its position: u64     24 time before: u64    40 pieces
//! piece     0 length: u32    4 flags: u8 (first, last, has a time)    5 time: u64, if it has one    then `length` bytes
//! end mark  0 mark: u32      4 crc32c of 8..16: u32    8 its position: u64
//! ```
//! A record is one piece, first and last at once, unless the end of a segment cuts it. An end mark stands where the next
//! frame will begin, so that frame's header overwrites it.
use crate::header::array;

/// `RKF1`.
const MARK: u32 = 0x3146_4b52;
pub(crate) const FRAME_HEADER: u64 = 40;
/// `RKZ1`.
const END_MARK: u32 = 0x315a_4b52;
pub(crate) const END_MARK_BYTES: u64 = 16;
/// A segment with less room than this behind its last frame has ended: a frame with a piece of a record would not fit. An end
/// mark does fit where there is more, and has no place where there is less.
pub(crate) const MIN_ROOM: u64 = 64;
/// Frames begin at multiples of this.
pub(crate) const ALIGNMENT: u64 = 8;

const FIRST: u8 = 1;
const LAST: u8 = 2;
const HAS_TIME: u8 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Bytes behind the header.
    pub length: u32,
    /// Position of the header itself.
    pub lsn: u64,
    /// How often the database had been opened; only grows along the log.
    pub incarnation: u32,
    /// Newest commit time before this frame.
    pub time_before: u64,
    pub payload_crc: u32,
}

impl FrameHeader {
    pub fn encode(&self, seed: u32) -> [u8; FRAME_HEADER as usize] {
        let mut bytes = [0; FRAME_HEADER as usize];
        bytes[..4].copy_from_slice(&MARK.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.lsn.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.incarnation.to_le_bytes());
        // 20..24 is zero.
        bytes[24..32].copy_from_slice(&self.time_before.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32c::crc32c_append(seed, &bytes[..36]);
        bytes[36..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header of a frame at position `lsn`, if these bytes are one. At least [`FRAME_HEADER`] bytes.
    pub fn decode(bytes: &[u8], seed: u32, lsn: u64) -> Option<FrameHeader> {
        if u32::from_le_bytes(array(bytes, 0)) != MARK || u64::from_le_bytes(array(bytes, 8)) != lsn {
            return None;
        }
        (u32::from_le_bytes(array(bytes, 36)) == crc32c::crc32c_append(seed, &bytes[..36])).then(|| FrameHeader {
            length: u32::from_le_bytes(array(bytes, 4)),
            lsn,
            incarnation: u32::from_le_bytes(array(bytes, 16)),
            time_before: u64::from_le_bytes(array(bytes, 24)),
            payload_crc: u32::from_le_bytes(array(bytes, 32)),
        })
    }
}

/// The end mark for position `lsn`: no frame that begins there was ever synced.
pub(crate) fn end_mark(seed: u32, lsn: u64) -> [u8; END_MARK_BYTES as usize] {
    let mut bytes = [0; END_MARK_BYTES as usize];
    bytes[..4].copy_from_slice(&END_MARK.to_le_bytes());
    bytes[4..8].copy_from_slice(&crc32c::crc32c_append(seed, &lsn.to_le_bytes()).to_le_bytes());
    bytes[8..].copy_from_slice(&lsn.to_le_bytes());
    bytes
}

/// Whether these bytes begin with the end mark for position `lsn`.
pub(crate) fn is_end_mark(bytes: &[u8], seed: u32, lsn: u64) -> bool {
    bytes.starts_with(&end_mark(seed, lsn))
}

pub(crate) fn payload_crc(seed: u32, payload: &[u8]) -> u32 {
    crc32c::crc32c_append(seed, payload)
}

/// Bytes before a piece's content.
pub(crate) fn piece_header(first: bool, time: Option<u64>) -> u64 {
    if first && time.is_some() { 13 } else { 5 }
}

pub(crate) fn put_piece(out: &mut Vec<u8>, first: bool, last: bool, time: Option<u64>, content: &[u8]) {
    let time = time.filter(|_| first);
    out.extend_from_slice(&(content.len() as u32).to_le_bytes());
    let flag = |set, flag| if set { flag } else { 0 };
    out.push(flag(first, FIRST) | flag(last, LAST) | flag(time.is_some(), HAS_TIME));
    if let Some(time) = time {
        out.extend_from_slice(&time.to_le_bytes());
    }
    out.extend_from_slice(content);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub first: bool,
    pub last: bool,
    pub time: Option<u64>,
    /// Where its content lies in the frame's payload.
    pub content: std::ops::Range<usize>,
}

/// The piece that begins at `at`; `None` if these bytes are none.
pub(crate) fn take_piece(payload: &[u8], at: usize) -> Option<Piece> {
    let header = payload.get(at..at.checked_add(5)?)?;
    let length = u32::from_le_bytes(array(header, 0)) as usize;
    let flags = header[4];
    let (first, last) = (flags & FIRST != 0, flags & LAST != 0);
    if flags & !(FIRST | LAST | HAS_TIME) != 0 || (flags & HAS_TIME != 0 && !first) {
        return None;
    }
    let mut start = at + 5;
    let mut time = None;
    if flags & HAS_TIME != 0 {
        time = Some(u64::from_le_bytes(payload.get(start..start + 8)?.try_into().ok()?));
        start += 8;
    }
    let end = start.checked_add(length)?;
    (end <= payload.len()).then_some(Piece { first, last, time, content: start..end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_bound_to_its_position_and_database() {
        let header = FrameHeader { length: 9, lsn: 4096, incarnation: 3, time_before: 77, payload_crc: 5 };
        let bytes = header.encode(1);
        assert_eq!(FrameHeader::decode(&bytes, 1, 4096), Some(header));
        assert_eq!(FrameHeader::decode(&bytes, 2, 4096), None);
        assert_eq!(FrameHeader::decode(&bytes, 1, 8192), None);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FrameHeader::decode(&flipped, 1, 4096), None);
        }
    }

    #[test]
    fn end_mark_is_bound_to_its_position_and_database() {
        let bytes = end_mark(1, 4096);
        assert!(is_end_mark(&bytes, 1, 4096));
        assert!(!is_end_mark(&bytes, 2, 4096) && !is_end_mark(&bytes, 1, 4104) && !is_end_mark(&bytes[..15], 1, 4096));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_end_mark(&flipped, 1, 4096));
        }
    }

    #[test]
    fn pieces() {
        let mut out = Vec::new();
        put_piece(&mut out, true, false, Some(8), b"abc");
        let middle = out.len();
        put_piece(&mut out, false, true, Some(8), b"de");
        assert_eq!(middle as u64, piece_header(true, Some(8)) + 3);
        assert_eq!(out.len() as u64, middle as u64 + piece_header(false, Some(8)) + 2);
        let one = take_piece(&out, 0).unwrap();
        assert_eq!((one.first, one.last, one.time, &out[one.content.clone()]), (true, false, Some(8), &b"abc"[..]));
        assert_eq!(one.content.end, middle);
        let two = take_piece(&out, middle).unwrap();
        assert_eq!((two.first, two.last, two.time, &out[two.content]), (false, true, None, &b"de"[..]));
        assert_eq!(take_piece(&out[..out.len() - 1], middle), None);
        assert_eq!(take_piece(&out, out.len()), None);
        assert_eq!(take_piece(&[0, 0, 0, 0, 4 | 2], 0), None);
        assert_eq!(take_piece(&[0, 0, 0, 0, 8], 0), None);
    }
}
