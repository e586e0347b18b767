//! Frames: a header of fixed width, a payload, one checksum over both.

use crate::{Kind, WireError};
use bytes::Bytes;
use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub const MAGIC: [u8; 4] = *b"RAUK";
/// Bytes of a header.
pub const HEADER: usize = size_of::<RawHeader>();

/// The header as it stands on the wire (design: every frame names format, cluster, view, incarnation, placement and schema version, transaction,
/// session timestamp, deadline). One node has view 0 and placement 0.
/// In an answer of a cluster's node `placement` is the version of [`crate::Placement`] there; clients send 0.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawHeader {
    pub magic: [u8; 4],
    pub format: U16,
    pub kind: U16,
    /// Bytes of the payload.
    pub length: U32,
    /// CRC-32C of the header, with this field zero, and the payload.
    pub checksum: U32,
    /// Chosen by who asks; the answer repeats it. 0: needs no answer.
    pub request: U64,
    pub cluster: [u8; 16],
    pub view: U64,
    pub incarnation: U64,
    pub placement: U32,
    /// Version of the catalog that the sender knew.
    pub schema: U32,
    /// 0: outside of a transaction.
    pub transaction: U64,
    /// The highest commit time that the sender's session has seen.
    pub timestamp: U64,
    /// Microseconds left for the request; 0: no deadline.
    pub deadline_us: U32,
    pub reserved: U32,
}

/// A header's fields, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub format: u16,
    pub kind: Kind,
    pub request: u64,
    pub cluster: [u8; 16],
    pub view: u64,
    pub incarnation: u64,
    pub placement: u32,
    pub schema: u32,
    pub transaction: u64,
    pub timestamp: u64,
    pub deadline_us: u32,
}

impl Header {
    /// A header with everything else zero.
    pub fn new(kind: Kind, request: u64) -> Header {
        Header {
            format: crate::PROTOCOL,
            kind,
            request,
            cluster: [0; 16],
            view: 0,
            incarnation: 0,
            placement: 0,
            schema: 0,
            transaction: 0,
            timestamp: 0,
            deadline_us: 0,
        }
    }
}

/// A whole frame that has arrived.
#[derive(Clone, Debug)]
pub struct Frame {
    pub header: Header,
    pub payload: Bytes,
}

/// A buffer with room for a header in front: the payload is appended to it.
pub fn begin() -> Vec<u8> {
    let mut frame = Vec::with_capacity(256);
    frame.resize(HEADER, 0);
    frame
}

/// Fills in the header of a buffer made by [`begin`] (or cleared and resized to [`HEADER`] zero bytes), length and checksum included.
/// Panics when the payload is longer than [`crate::MAX_PAYLOAD`]: whoever builds it bounds it.
pub fn finish(frame: &mut [u8], header: &Header) {
    let length = frame.len() - HEADER;
    assert!(length <= crate::MAX_PAYLOAD, "a payload of {length} bytes");
    let mut raw = RawHeader {
        magic: MAGIC,
        format: header.format.into(),
        kind: (header.kind as u16).into(),
        length: (length as u32).into(),
        checksum: 0.into(),
        request: header.request.into(),
        cluster: header.cluster,
        view: header.view.into(),
        incarnation: header.incarnation.into(),
        placement: header.placement.into(),
        schema: header.schema.into(),
        transaction: header.transaction.into(),
        timestamp: header.timestamp.into(),
        deadline_us: header.deadline_us.into(),
        reserved: 0.into(),
    };
    raw.checksum = checksum(&raw, &frame[HEADER..]).into();
    frame[..HEADER].copy_from_slice(raw.as_bytes());
}

/// Of a header whose checksum is zero, and a payload.
fn checksum(header: &RawHeader, payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(header.as_bytes()), payload)
}

/// What stands at the beginning of `bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// So many bytes in all are needed to go on.
    Incomplete(usize),
    /// A whole frame of this many bytes, header included; magic, version, kind, length and checksum are right.
    Whole(Header, usize),
}

/// Reads the header as soon as it is there, and refuses at once what can never become right.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Parsed, WireError> {
    parse_bounded(bytes, crate::MAX_PAYLOAD)
}

/// The same, with a bound of its own on payloads: from a peer that has not proved yet who it is, nothing longer than [`crate::MAX_HANDSHAKE`] is
/// waited for, whatever it announces.
pub fn parse_bounded(bytes: &[u8], longest: usize) -> Result<Parsed, WireError> {
    if bytes.iter().zip(MAGIC).any(|(byte, expected)| *byte != expected) {
        return Err(WireError::Magic);
    }
    let Ok((raw, rest)) = RawHeader::read_from_prefix(bytes) else {
        return Ok(Parsed::Incomplete(HEADER));
    };
    let (format, number, length) = (raw.format.get(), raw.kind.get(), raw.length.get() as usize);
    let kind = Kind::from_number(number);
    let handshake = kind.is_some_and(Kind::is_handshake);
    if !handshake && !crate::is_spoken(format) {
        return Err(WireError::Version(format));
    }
    let kind = kind.ok_or(WireError::Kind(number))?;
    if length > longest.min(if handshake { crate::MAX_HANDSHAKE } else { crate::MAX_PAYLOAD }) {
        return Err(WireError::TooLong(length as u64));
    }
    if !handshake && raw.reserved.get() != 0 {
        return Err(WireError::Malformed("header"));
    }
    let Some(payload) = rest.get(..length) else {
        return Ok(Parsed::Incomplete(HEADER + length));
    };
    if checksum(&RawHeader { checksum: 0.into(), ..raw }, payload) != raw.checksum.get() {
        return Err(WireError::Checksum);
    }
    let header = Header {
        format,
        kind,
        request: raw.request.get(),
        cluster: raw.cluster,
        view: raw.view.get(),
        incarnation: raw.incarnation.get(),
        placement: raw.placement.get(),
        schema: raw.schema.get(),
        transaction: raw.transaction.get(),
        timestamp: raw.timestamp.get(),
        deadline_us: raw.deadline_us.get(),
    };
    Ok(Parsed::Whole(header, HEADER + length))
}
