//! Sort keys: bytes whose order is the collation's.
//!
//! A key is the weights of the text, 16 bits each and big-endian (for binary collations the bytes themselves). PAD SPACE makes that less than
//! obvious: `'a\t' < 'a' < 'ab'`, though `'a'` is a prefix of both, because the shorter text compares as if spaces followed. So under PAD SPACE spaces at
//! the end are dropped, a key ends with the weight of a space and the byte 1, and every space inside has a byte behind its weight that says whether
//! the next other character is below (0) or above (2) a space. Such keys are never a prefix of one another; NO PAD keys may be.
//!
//! Where a collation has several levels, the key has them one after the other: first all letters, then all accents, then all cases. Under NO PAD a zero
//! stands between two; under PAD SPACE a zero stands behind each but the first, and spaces at the end are dropped there too.
//!
//! Keys are built in pieces on the stack and handed to a closure, so that a stored key can be compared with a text without building the text's key in memory.

use super::definitions::Order;
use super::set::SetTable;
use super::uca::Uca;
use super::{Collation, GENERAL_SPACE, Weigh, Weights, first_char, trim_spaces};

/// Marks behind the weight of a space in keys of PAD SPACE collations.
const PAD_BELOW: u8 = 0;
const PAD_END: u8 = 1;
const PAD_ABOVE: u8 = 2;

/// Between levels, and behind each but the first under PAD SPACE. No weight is 0.
const LEVEL_END: u16 = 0;

impl Collation {
    /// Appends the weight string of valid UTF-8 `text` (bytes themselves for Binary): equal strings give equal bytes, and byte
    /// order is collation order, PAD SPACE included. Between PAD SPACE keys neither is a prefix of the other.
    pub fn sort_key(self, text: &[u8], out: &mut Vec<u8>) {
        if !self.is_bytes() {
            out.reserve(text.len() * 2 + 3);
        }
        self.emit_key(text, |bytes| out.extend_from_slice(bytes));
    }

    /// Calls `emit` with the pieces of the sort key, in order.
    #[inline]
    pub(crate) fn emit_key(self, text: &[u8], mut emit: impl FnMut(&[u8])) {
        let definition = self.definition();
        match &definition.order {
            Order::Bytes => emit(text),
            Order::CodePoints => {
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
            Order::General(table) => {
                let mut chunk = Chunk::new(emit);
                match definition.pad {
                    true => emit_padded(&mut chunk, table.ascii_weights(), GENERAL_SPACE, text, *table),
                    false => emit_plain(&mut chunk, table.ascii_weights(), text, *table),
                }
                chunk.flush();
            }
            Order::Set { table, .. } => {
                let table: &'static SetTable = table;
                let mut chunk = Chunk::new(emit);
                match definition.pad {
                    true => emit_padded(&mut chunk, table.ascii_weights(), table.space(), text, table),
                    false => emit_plain(&mut chunk, table.ascii_weights(), text, table),
                }
                chunk.flush();
            }
            Order::Uca(uca) => {
                let mut chunk = Chunk::new(emit);
                match uca.tailoring() {
                    None => emit_levels(&mut chunk, uca, definition.pad, text, |level| uca.plain(level)),
                    Some(tailoring) => {
                        emit_levels(&mut chunk, uca, definition.pad, text, |level| uca.tailored(tailoring, level));
                    }
                }
                chunk.flush();
            }
        }
    }

    /// Appends a prefix that the sort keys of all texts beginning with `text` share: the lower end of the range for LIKE 'text%'
    /// (its upper end is [`prefix_successor`](crate::key::prefix_successor)). Under PAD SPACE, spaces at the end of `text` are left out, so the range is wider than the pattern;
    /// so are characters at the end that may be part of a contraction with what follows, and all levels but the first.
    pub fn sort_key_prefix(self, text: &[u8], out: &mut Vec<u8>) {
        let definition = self.definition();
        match &definition.order {
            Order::Bytes => out.extend_from_slice(text),
            Order::CodePoints => {
                self.sort_key(text, out);
                // Without the mark of the end; the spaces that it stands for are dropped already.
                out.truncate(out.len() - 2);
            }
            Order::General(_) | Order::Set { .. } => {
                self.sort_key(text, out);
                out.truncate(out.len() - if definition.pad { 3 } else { 0 });
            }
            Order::Uca(uca) => {
                let mut text = text;
                while let (Some(tailoring), Some(last)) = (uca.tailoring(), last_char(text)) {
                    if !tailoring.is_open(first_char(&text[last..]).0) {
                        break;
                    }
                    text = &text[..last];
                }
                let mut chunk = Chunk::new(|bytes: &[u8]| out.extend_from_slice(bytes));
                match uca.tailoring() {
                    None => emit_letters(&mut chunk, uca, definition.pad, text, uca.plain(0)),
                    Some(tailoring) => {
                        emit_letters(&mut chunk, uca, definition.pad, text, uca.tailored(tailoring, 0));
                    }
                }
                chunk.flush();
                out.truncate(out.len() - if definition.pad { 3 } else { 0 });
            }
        }
    }

    /// Length of the sort key at the beginning of longer bytes, which `byte` gives by position; `None` when they end within it, or are no
    /// sort key. Keys of PAD SPACE collations end themselves; behind others stands a weight of zero. Not for collations of bytes.
    pub(crate) fn sort_key_length(self, byte: impl Fn(usize) -> Option<u8>) -> Option<usize> {
        let weight = |at| Some(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
        let definition = self.definition();
        let mut at = 0;
        let (space, levels) = match &definition.order {
            Order::Bytes => unreachable!("bytes have no sort key"),
            Order::CodePoints => loop {
                match byte(at)? {
                    b' ' => match byte(at + 1)? {
                        PAD_END => return Some(at + 2),
                        PAD_BELOW | PAD_ABOVE => at += 2,
                        _ => return None,
                    },
                    _ => at += 1,
                }
            },
            Order::General(_) => (GENERAL_SPACE, 1),
            Order::Set { table, .. } => (table.space(), 1),
            Order::Uca(uca) => (uca.space(0), uca.levels.len()),
        };
        if !definition.pad {
            for level in 0..levels {
                at += if level > 0 { 2 } else { 0 };
                while weight(at)? != LEVEL_END {
                    at += 2;
                }
            }
            return Some(at);
        }
        loop {
            if weight(at)? != space {
                at += 2;
                continue;
            }
            at += 3;
            match byte(at - 1)? {
                PAD_END => break,
                PAD_BELOW | PAD_ABOVE => {}
                _ => return None,
            }
        }
        for _ in 1..levels {
            while weight(at)? != LEVEL_END {
                at += 2;
            }
            at += 2;
        }
        Some(at)
    }
}

/// Where the last character of a text begins.
fn last_char(text: &[u8]) -> Option<usize> {
    text.iter().rposition(|byte| byte & 0xC0 != 0x80)
}

/// The first level.
#[inline]
fn emit_letters<E: FnMut(&[u8]), W: Weigh>(chunk: &mut Chunk<E>, uca: &'static Uca, pad: bool, text: &[u8], weigh: W) {
    match pad {
        true => emit_padded(chunk, uca.ascii_weights(), uca.space(0), text, weigh),
        false => emit_plain(chunk, uca.ascii_weights(), text, weigh),
    }
}

#[inline]
fn emit_levels<E: FnMut(&[u8]), W: Weigh>(
    chunk: &mut Chunk<E>,
    uca: &'static Uca,
    pad: bool,
    text: &[u8],
    weigh: impl Fn(usize) -> W,
) {
    emit_letters(chunk, uca, pad, text, weigh(0));
    for &level in &uca.levels[1..] {
        let weights = Weights::new(weigh(level), text);
        if pad {
            // A space has the least weight of the level, so that the end of the level, which is less, stands for those at the end.
            let (space, mut held) = (uca.space(level), 0);
            for weight in weights {
                if weight == space {
                    held += 1;
                    continue;
                }
                (0..std::mem::take(&mut held)).for_each(|_| chunk.push(space, None));
                chunk.push(weight, None);
            }
            chunk.push(LEVEL_END, None);
        } else {
            chunk.push(LEVEL_END, None);
            weights.for_each(|weight| chunk.push(weight, None));
        }
    }
}

/// The weights of a level, NO PAD.
#[inline]
fn emit_plain<E: FnMut(&[u8]), W: Weigh>(chunk: &mut Chunk<E>, ascii: &[u16; 256], text: &[u8], weigh: W) {
    let mut rest = text;
    while !rest.is_empty() {
        rest = chunk.push_ascii(ascii, 0, rest);
        if !rest.is_empty() {
            let length = weigh.first(rest, &mut |weight| chunk.push(weight, None));
            rest = &rest[length..];
        }
    }
}

/// The weights of a level, PAD SPACE, with marks behind spaces and the end.
#[inline]
fn emit_padded<E: FnMut(&[u8]), W: Weigh>(chunk: &mut Chunk<E>, ascii: &[u16; 256], space: u16, text: &[u8], weigh: W) {
    let mut held = 0;
    let mut rest = text;
    while !rest.is_empty() {
        if held == 0 {
            rest = chunk.push_ascii(ascii, space, rest);
        }
        if !rest.is_empty() {
            let length = weigh.first(rest, &mut |weight| {
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
