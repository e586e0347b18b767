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

    #[cold]
    pub fn malformed(&self) -> WireError {
        WireError::Malformed(self.what)
    }

    /// What was read since `earlier`, which is a copy of this reader of then.
    #[inline]
    pub fn since(&self, earlier: &Reader<'a>) -> &'a [u8] {
        &earlier.rest[..earlier.rest.len() - self.rest.len()]
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
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (first, rest) = self.rest.split_first_chunk().ok_or(WireError::Malformed(self.what))?;
        self.rest = rest;
        Ok(*first)
    }

    #[inline]
    pub fn u8(&mut self) -> Result<u8, WireError> {
        self.array::<1>().map(|[byte]| byte)
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

    /// A yes or no in one byte.
    pub fn flag(&mut self) -> Result<bool, WireError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.malformed()),
        }
    }

    /// A little-endian number in so many bytes, at most eight.
    #[inline]
    pub fn unsigned(&mut self, width: usize) -> Result<u64, WireError> {
        let mut bytes = [0; 8];
        bytes.get_mut(..width).ok_or(WireError::Malformed(self.what))?.copy_from_slice(self.bytes(width)?);
        Ok(u64::from_le_bytes(bytes))
    }

    /// LEB128, at most 32 bits, shortest form only.
    #[inline]
    pub fn varint(&mut self) -> Result<u32, WireError> {
        match self.rest.split_first() {
            Some((byte, rest)) if *byte < 0x80 => {
                self.rest = rest;
                Ok(u32::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    #[cold]
    fn long_varint(&mut self) -> Result<u32, WireError> {
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
