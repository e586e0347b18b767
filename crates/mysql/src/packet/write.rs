//! Appends the protocol's field encodings to a buffer.

/// Appends a length-encoded integer.
pub fn lenenc(n: u64, out: &mut Vec<u8>) {
    match n {
        0..=0xFA => out.push(n as u8),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&(n as u16).to_le_bytes());
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&(n as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&n.to_le_bytes());
        }
    }
}

/// Appends a length-encoded string.
pub fn lenenc_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.len() <= 0xFA {
        out.push(bytes.len() as u8);
    } else {
        lenenc(bytes.len() as u64, out);
    }
    out.extend_from_slice(bytes);
}

/// Appends a string whose length is known only once it is written; short ones, which is what they nearly always are, cost no copy.
pub fn lenenc_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    write(out);
    let n = out.len() - at - 1;
    if n <= 0xFA {
        out[at] = n as u8;
    } else {
        let mut prefix = Vec::with_capacity(9);
        lenenc(n as u64, &mut prefix);
        out.splice(at..=at, prefix);
    }
}

pub fn nul_str(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Appends a decimal integer.
pub fn digits(mut n: u64, negative: bool, out: &mut Vec<u8>) {
    const PAIRS: &[u8; 200] =
        b"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
        5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
    let mut buf = [0u8; 21];
    let mut at = buf.len();
    while n >= 100 {
        let pair = (n % 100) as usize * 2;
        n /= 100;
        at -= 2;
        buf[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if n >= 10 {
        at -= 2;
        buf[at..at + 2].copy_from_slice(&PAIRS[n as usize * 2..n as usize * 2 + 2]);
    } else {
        at -= 1;
        buf[at] = b'0' + n as u8;
    }
    if negative {
        at -= 1;
        buf[at] = b'-';
    }
    out.extend_from_slice(&buf[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::read::Fields;

    #[test]
    fn what_is_written_is_read() {
        for n in [0u64, 1, 250, 251, 252, 65_535, 65_536, 0xFF_FFFF, 0x100_0000, u64::MAX] {
            let mut out = Vec::new();
            lenenc(n, &mut out);
            let mut f = Fields::new(&out);
            assert_eq!((f.lenenc(), f.is_empty()), (Ok(n), true));
        }
    }

    #[test]
    fn strings_of_unknown_length() {
        for n in [0usize, 250, 251, 70_000] {
            let (mut a, mut b) = (vec![9], vec![9]);
            lenenc_with(&mut a, |out| out.resize(out.len() + n, b'x'));
            lenenc_bytes(&vec![b'x'; n], &mut b);
            assert_eq!(a, b);
        }
    }

    #[test]
    fn integers_as_text() {
        for n in [0i64, 7, 10, 99, 100, 101, 12_345, -1, -100, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            digits(n.unsigned_abs(), n < 0, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), n.to_string());
        }
        let mut out = Vec::new();
        digits(u64::MAX, false, &mut out);
        assert_eq!(out, u64::MAX.to_string().as_bytes());
    }
}
