//! Sort keys: bytes whose order is the collation's.
//!
//! A key is the weights of the text, 16 bits each and big-endian (for binary collations the bytes themselves). PAD SPACE makes that less than
//! obvious: `'a\t' < 'a' < 'ab'`, though `'a'` is a prefix of both, because the shorter text compares as if spaces followed. So under PAD SPACE spaces at
//! the end are dropped, a key ends with the weight of a space and the byte 1, and every space inside has a byte behind its weight that says whether
//! the next other character is below (0) or above (2) a space. Such keys are never a prefix of one another; NO PAD keys may be.
//!
//! Keys are built in pieces on the stack and handed to a closure, so that a stored key can be compared with a text without building the text's key in memory.

use super::{Collation, first_char, trim_spaces};

/// Marks behind the weight of a space in keys of PAD SPACE collations.
const PAD_BELOW: u8 = 0;
const PAD_END: u8 = 1;
const PAD_ABOVE: u8 = 2;

impl Collation {
    /// Appends the weight string of valid UTF-8 `text` (bytes themselves for Binary): equal strings give equal bytes, and byte
    /// order is collation order, PAD SPACE included. Between PAD SPACE keys neither is a prefix of the other.
    pub fn sort_key(self, text: &[u8], out: &mut Vec<u8>) {
        if self != Collation::Binary {
            out.reserve(text.len() * 2 + 3);
        }
        self.emit_key(text, |bytes| out.extend_from_slice(bytes));
    }

    /// Calls `emit` with the pieces of the sort key, in order.
    #[inline]
    pub(crate) fn emit_key(self, text: &[u8], mut emit: impl FnMut(&[u8])) {
        match self {
            Collation::Binary => emit(text),
            Collation::Utf8mb4Bin => {
                let mut rest = trim_spaces(text);
                while let Some(space) = rest.iter().position(|byte| *byte == b' ') {
                    emit(&rest[..space]);
                    let spaces = &rest[space..];
                    let count = spaces.iter().take_while(|byte| **byte == b' ').count();
                    rest = &spaces[count..];
                    let mark = if rest[0] < b' ' { PAD_BELOW } else { PAD_ABOVE };
                    for _ in 0..count {
                        emit(&[b' ', mark]);
                    }
                }
                emit(rest);
                emit(&[b' ', PAD_END]);
            }
            Collation::Utf8mb40900AiCi => {
                let mut chunk = Chunk::new(emit);
                let mut rest = text;
                while !rest.is_empty() {
                    rest = chunk.push_ascii(self.ascii_weights(), 0, rest);
                    if !rest.is_empty() {
                        let (code, length) = first_char(rest);
                        self.char_weights(code, &mut |weight| chunk.push(weight, None));
                        rest = &rest[length..];
                    }
                }
                chunk.flush();
            }
            Collation::Utf8mb4GeneralCi | Collation::Utf8mb4UnicodeCi => {
                let (ascii, space) = (self.ascii_weights(), self.space());
                let mut chunk = Chunk::new(emit);
                let mut held = 0;
                let mut rest = text;
                while !rest.is_empty() {
                    if held == 0 {
                        rest = chunk.push_ascii(ascii, space, rest);
                    }
                    if !rest.is_empty() {
                        let (code, length) = first_char(rest);
                        self.char_weights(code, &mut |weight| {
                            if weight == space {
                                // Held back until it is known what follows; at the end of the text nothing does.
                                held += 1;
                                return;
                            }
                            let mark = if weight < space { PAD_BELOW } else { PAD_ABOVE };
                            for _ in 0..std::mem::take(&mut held) {
                                chunk.push(space, Some(mark));
                            }
                            chunk.push(weight, None);
                        });
                        rest = &rest[length..];
                    }
                }
                chunk.push(space, Some(PAD_END));
                chunk.flush();
            }
        }
    }

    /// Appends a prefix that the sort keys of all texts beginning with `text` share: the lower end of the range for LIKE 'text%'
    /// (its upper end is [`prefix_successor`](crate::key::prefix_successor)). Under PAD SPACE, spaces at the end of `text` are left out, so the range is wider than the pattern.
    pub fn sort_key_prefix(self, text: &[u8], out: &mut Vec<u8>) {
        self.sort_key(text, out);
        // Without the mark of the end; the spaces that it stands for are dropped already.
        let mark = match self {
            Collation::Binary | Collation::Utf8mb40900AiCi => 0,
            Collation::Utf8mb4Bin => 2,
            Collation::Utf8mb4GeneralCi | Collation::Utf8mb4UnicodeCi => 3,
        };
        out.truncate(out.len() - mark);
    }
}

impl Collation {
    /// Length of the sort key at the beginning of longer bytes, which `byte` gives by position; `None` when they end within it, or are no
    /// sort key. Keys of PAD SPACE collations end themselves; behind others stands a weight of zero. Not for Binary.
    pub(crate) fn sort_key_length(self, byte: impl Fn(usize) -> Option<u8>) -> Option<usize> {
        let weight = |at| Some(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
        let mut at = 0;
        loop {
            match self {
                Collation::Binary => unreachable!("bytes have no sort key"),
                Collation::Utf8mb40900AiCi => match weight(at)? {
                    0 => return Some(at),
                    _ => at += 2,
                },
                Collation::Utf8mb4Bin => match byte(at)? {
                    b' ' => match byte(at + 1)? {
                        PAD_END => return Some(at + 2),
                        PAD_BELOW | PAD_ABOVE => at += 2,
                        _ => return None,
                    },
                    _ => at += 1,
                },
                Collation::Utf8mb4GeneralCi | Collation::Utf8mb4UnicodeCi => match weight(at)? == self.space() {
                    true => match byte(at + 2)? {
                        PAD_END => return Some(at + 3),
                        PAD_BELOW | PAD_ABOVE => at += 3,
                        _ => return None,
                    },
                    false => at += 2,
                },
            }
        }
    }
}

/// Gathers weights, so that they are given out in larger pieces.
struct Chunk<E> {
    bytes: [u8; 64],
    length: usize,
    emit: E,
}

impl<E: FnMut(&[u8])> Chunk<E> {
    fn new(emit: E) -> Self {
        Chunk { bytes: [0; 64], length: 0, emit }
    }

    /// Adds the weights of the first ASCII characters of `text`, up to one that is ignored or weighs `stop`, and returns the rest of the text. What
    /// has no more room in the chunk is left too.
    #[inline]
    fn push_ascii<'a>(&mut self, ascii: &[u16; 256], stop: u16, text: &'a [u8]) -> &'a [u8] {
        if self.length > self.bytes.len() / 2 {
            self.flush();
        }
        let mut count = 0;
        for (place, byte) in self.bytes[self.length..].chunks_exact_mut(2).zip(text) {
            let weight = ascii[usize::from(*byte)];
            if weight == 0 || weight == stop {
                break;
            }
            place.copy_from_slice(&weight.to_be_bytes());
            count += 1;
        }
        self.length += 2 * count;
        &text[count..]
    }

    #[inline]
    fn push(&mut self, weight: u16, mark: Option<u8>) {
        if self.length + 3 > self.bytes.len() {
            self.flush();
        }
        self.bytes[self.length..self.length + 2].copy_from_slice(&weight.to_be_bytes());
        self.length += 2;
        if let Some(mark) = mark {
            self.bytes[self.length] = mark;
            self.length += 1;
        }
    }

    fn flush(&mut self) {
        (self.emit)(&self.bytes[..self.length]);
        self.length = 0;
    }
}
