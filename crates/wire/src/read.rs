//! A cursor over bytes that nobody vouches for.

use crate::WireError;

/// Every call either gives what was asked for or an error, and never reads past the end.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// `what` is named in errors.
    pub fn new(bytes: &'a [u8], what: &'static str) -> Reader<'a> {
        Reader { rest: bytes, what }
    }

    pub fn malformed(&self) -> WireError {
        WireError::Malformed(self.what)
    }

    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (first, rest) = self.rest.split_at_checked(count).ok_or(WireError::Malformed(self.what))?;
        self.rest = rest;
        Ok(first)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        Ok(self.bytes(N)?.try_into().expect("N bytes"))
    }

    #[inline]
    pub fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.bytes(1)?[0])
    }

    #[inline]
    pub fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    /// LEB128, at most 32 bits, shortest form only.
    #[inline]
    pub fn varint(&mut self) -> Result<u32, WireError> {
        let mut value = 0u32;
        for shift in (0..35).step_by(7) {
            let byte = self.u8()?;
            let bits = u32::from(byte & 0x7F);
            if shift == 28 && bits > 0xF || byte == 0 && shift > 0 {
                return Err(self.malformed());
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.malformed())
    }

    /// Bytes behind their varint length.
    #[inline]
    pub fn prefixed(&mut self) -> Result<&'a [u8], WireError> {
        let count = self.varint()? as usize;
        self.bytes(count)
    }

    pub fn text(&mut self) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.prefixed()?).map_err(|_| self.malformed())
    }

    /// Nothing may follow.
    pub fn end(&self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.malformed()) }
    }
}

#[inline]
pub fn put_varint(mut value: u32, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
pub fn put_prefixed(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(u32::try_from(bytes.len()).expect("a payload is bounded"), out);
    out.extend_from_slice(bytes);
}
