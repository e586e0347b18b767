//! Reads the fields of one packet. Every read checks what is left; a packet that ends too early or says nonsense is [`Malformed`], never a panic.

/// A packet that does not hold what it promised; the text says which part, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed packet: {0}")]
pub struct Malformed(pub &'static str);

/// The unread rest of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Fields { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.bytes.split_at_checked(n).ok_or(Malformed("ends too early"))?;
        self.bytes = rest;
        Ok(head)
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.bytes.split_first_chunk::<N>().ok_or(Malformed("ends too early"))?;
        self.bytes = rest;
        Ok(*head)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub fn u24(&mut self) -> Result<u32, Malformed> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_le_bytes([a, b, c, 0]))
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A length-encoded integer; the NULL mark 0xFB and 0xFF are not numbers.
    pub fn lenenc(&mut self) -> Result<u64, Malformed> {
        Ok(match self.u8()? {
            n @ 0..=0xFA => u64::from(n),
            0xFC => u64::from(self.u16()?),
            0xFD => u64::from(self.u24()?),
            0xFE => self.u64()?,
            _ => return Err(Malformed("not a length")),
        })
    }

    /// A length-encoded string.
    pub fn lenenc_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let n = self.lenenc()?;
        let n = usize::try_from(n).map_err(|_| Malformed("absurd length"))?;
        self.take(n)
    }

    /// Up to a NUL, which is taken too; without one, everything that is left (some clients leave the last one out).
    pub fn nul_bytes(&mut self) -> &'a [u8] {
        match self.bytes.iter().position(|b| *b == 0) {
            Some(i) => {
                let head = &self.bytes[..i];
                self.bytes = &self.bytes[i + 1..];
                head
            }
            None => self.rest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_every_width() {
        let mut f = Fields::new(&[0xFA, 0xFC, 0, 1, 0xFD, 1, 2, 3, 0xFE, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(f.lenenc(), Ok(0xFA));
        assert_eq!(f.lenenc(), Ok(256));
        assert_eq!(f.lenenc(), Ok(0x030201));
        assert_eq!(f.lenenc(), Ok(0x0102030405060708));
        assert!(f.is_empty());
    }

    #[test]
    fn absurd_lengths_are_refused() {
        for bytes in
            [&[0xFE, 255, 255, 255, 255, 255, 255, 255, 255][..], &[0xFD, 255, 255, 255, 1], &[0xFB], &[0xFF], &[]]
        {
            assert!(Fields::new(bytes).lenenc_bytes().is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn strings_up_to_nul() {
        let mut f = Fields::new(b"ab\0\0cd");
        assert_eq!(f.nul_bytes(), b"ab");
        assert_eq!(f.nul_bytes(), b"");
        assert_eq!(f.nul_bytes(), b"cd");
        assert!(f.is_empty());
    }
}
