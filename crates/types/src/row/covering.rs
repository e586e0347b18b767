//! Rows made of index keys: for reads that need no other columns than those of one index.
//!
//! A [`Covering`] turns a key of an index into the bytes of a row of the table's newest layout, in which only the wanted columns have their values; the
//! others are NULL, zero or empty, and nobody may read them. So whoever reads rows needs not know that there was none.
//!
//! A column can be taken from a key when the key's part says its value wholly: integers, DECIMAL of up to 38 digits, FLOAT, DOUBLE, dates and times, and
//! at most one column of bytes. Text cannot, since texts that are equal under a collation have the same key, nor can prefixes. The key of a zero
//! of FLOAT and DOUBLE does not say whether the zero is negative: such a key makes no row. ENUM, SET, BIT and YEAR are left out: they have other widths in keys.

use super::{Codec, NONE, RowLayout, Slot};
use crate::{IndexPart, KeyDef, KeyPart, TableSchema, TypeKind};

#[derive(Clone, Debug, PartialEq)]
pub struct Covering {
    layout: u16,
    /// A row with nothing in it.
    empty: Vec<u8>,
    /// The parts of a key, up to the last one that is wanted.
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
struct Part {
    key: KeyPart,
    way: Way,
    /// Byte and bit of the row that say NULL.
    null: Option<(usize, u8)>,
}

/// How a part of a key becomes a column.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Nobody wants it.
    Skip,
    /// Up to eight bytes, some of whose bits are inverted.
    Word { width: usize, at: usize, inverted: u64 },
    /// A DECIMAL of 16 bytes.
    Wide { at: usize },
    /// Bits of a float in ascending order: 4 bytes, or 8.
    Float { width: usize, at: usize },
    /// Bytes, and where the end offsets of variable columns stand that count them: from, to.
    Bytes { ends: (usize, usize) },
}

impl Covering {
    /// Whether keys of an index with these parts say all of the columns at these positions.
    pub fn is_possible(table: &TableSchema, parts: &[IndexPart], columns: &[usize]) -> bool {
        let layout = table.layout();
        let told = |column: &usize| {
            let part = parts.iter().find(|part| part.column == *column);
            part.and_then(|part| Way::of(part.prefix, table.columns[*column].ty.kind, &layout.slots[*column], layout))
        };
        let mut bytes = 0;
        columns.iter().enumerate().all(|(number, column)| {
            let Some(way) = told(column) else { return false };
            bytes += usize::from(matches!(way, Way::Bytes { .. }) && !columns[..number].contains(column));
            bytes <= 1
        })
    }

    /// Of the columns at these positions, by keys of `index`. `None`: the keys do not say all of them.
    pub fn new(table: &TableSchema, index: &KeyDef, columns: &[usize]) -> Option<Covering> {
        let layout = table.layout();
        let mut found = 0;
        let mut bytes = 0;
        let mut parts = Vec::new();
        let mut end = 0;
        for (number, key) in index.parts.iter().enumerate() {
            let wanted = columns.contains(&key.column);
            let slot = &layout.slots[key.column];
            let way = match wanted {
                true => Way::of(key.prefix, key.ty.kind, slot, layout)?,
                false => Way::Skip,
            };
            if wanted {
                (found, end) = (found + 1, number + 1);
            }
            bytes += usize::from(matches!(way, Way::Bytes { .. }));
            let null = (slot.null_bit != NONE).then_some((usize::from(slot.null_bit / 8), 1 << (slot.null_bit % 8)));
            assert!(key.nullable == null.is_some(), "a key part is nullable as its column is");
            parts.push(Part { key: key.clone(), way, null });
        }
        let mut distinct = columns.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        if found != distinct.len() || bytes > 1 {
            return None;
        }
        parts.truncate(end);
        let variable = layout.variable_columns as usize;
        let mut empty = vec![0; layout.fixed_end as usize + 2 * variable];
        for slot in layout.slots.iter().filter(|slot| slot.null_bit != NONE) {
            empty[usize::from(slot.null_bit / 8)] |= 1 << (slot.null_bit % 8);
        }
        Some(Covering { layout: layout.version, empty, parts })
    }

    /// Whether some column is wanted.
    pub fn needs_key(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The layout of the rows.
    pub fn layout(&self) -> u16 {
        self.layout
    }

    /// Makes `row` the row of a key. `false`: the key does not say it, and `row` is none. `key` is one of the index.
    #[inline]
    pub fn fill(&self, key: &[u8], row: &mut Vec<u8>) -> bool {
        row.clear();
        row.extend_from_slice(&self.empty);
        let mut rest = key;
        for Part { key: part, way, null } in &self.parts {
            if *way == Way::Skip {
                rest = &rest[part.length_in(rest)..];
                continue;
            }
            let mask = if part.descending { 0xFF } else { 0 };
            if let Some((byte, bit)) = null {
                let value = rest[0] ^ mask != 0;
                rest = &rest[1..];
                if !value {
                    continue;
                }
                row[*byte] &= !bit;
            }
            let taken = match *way {
                Way::Skip => unreachable!("left out above"),
                Way::Word { width, at, inverted } => {
                    put(word(rest, width, mask) ^ inverted, width, at, row);
                    width
                }
                Way::Float { width, at } => {
                    let (bits, sign) = (word(rest, width, mask), 1 << (8 * width - 1));
                    if bits == sign {
                        return false;
                    }
                    put(if bits & sign != 0 { bits ^ sign } else { !bits }, width, at, row);
                    width
                }
                Way::Wide { at } => {
                    let mut bytes: [u8; 16] = rest[..16].try_into().expect("16 bytes");
                    bytes.iter_mut().for_each(|byte| *byte ^= mask);
                    bytes[0] ^= 0x80;
                    bytes.reverse();
                    row[at..at + 16].copy_from_slice(&bytes);
                    16
                }
                Way::Bytes { ends: (first, last) } => {
                    let (taken, length) = unescape(rest, mask, row);
                    let Ok(length) = u16::try_from(length) else { return false };
                    row[first..last].chunks_exact_mut(2).for_each(|end| end.copy_from_slice(&length.to_le_bytes()));
                    taken
                }
            };
            rest = &rest[taken..];
        }
        true
    }
}

impl Way {
    /// `None`: the part does not say the value of its column.
    fn of(prefix: Option<u32>, kind: TypeKind, slot: &Slot, layout: &RowLayout) -> Option<Way> {
        // The numbers of these have another width in a key than in a row.
        let widths_differ = matches!(kind, TypeKind::Enum | TypeKind::Set | TypeKind::Bit | TypeKind::Year);
        if prefix.is_some() || widths_differ {
            return None;
        }
        let at = usize::from(slot.place);
        let word = |inverted: u64| Some(Way::Word { width: slot.codec.width() as usize, at, inverted });
        match slot.codec {
            Codec::I8 => word(1 << 7),
            Codec::I16 => word(1 << 15),
            Codec::I24 => word(1 << 23),
            Codec::I32 | Codec::Decimal32 => word(1 << 31),
            Codec::I64 | Codec::Time | Codec::Timestamp | Codec::Decimal64 => word(1 << 63),
            Codec::U8 | Codec::U16 | Codec::U24 | Codec::U32 | Codec::U64 | Codec::Date | Codec::DateTime => word(0),
            Codec::F32 => Some(Way::Float { width: 4, at }),
            Codec::F64 => Some(Way::Float { width: 8, at }),
            Codec::Decimal128 => Some(Way::Wide { at }),
            Codec::Bytes => {
                let ends = layout.fixed_end as usize;
                Some(Way::Bytes { ends: (ends + 2 * at, ends + 2 * layout.variable_columns as usize) })
            }
            Codec::Year | Codec::DecimalWide | Codec::Char | Codec::Text | Codec::Json => None,
        }
    }
}

/// The number that the first `width` bytes are, big-endian.
#[inline]
fn word(key: &[u8], width: usize, mask: u8) -> u64 {
    let bits = match key.first_chunk::<8>() {
        Some(all) => u64::from_be_bytes(*all) >> (64 - 8 * width),
        None => key[..width].iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)),
    };
    if mask == 0 { bits } else { !bits & (u64::MAX >> (64 - 8 * width)) }
}

#[inline]
fn put(bits: u64, width: usize, at: usize, row: &mut [u8]) {
    match width {
        8 => row[at..at + 8].copy_from_slice(&bits.to_le_bytes()),
        4 => row[at..at + 4].copy_from_slice(&(bits as u32).to_le_bytes()),
        _ => row[at..at + width].copy_from_slice(&bits.to_le_bytes()[..width]),
    }
}

/// Appends escaped bytes to `row`; gives how many bytes of the key they take, and how many they are.
fn unescape(key: &[u8], mask: u8, row: &mut Vec<u8>) -> (usize, usize) {
    let before = row.len();
    let mut at = 0;
    loop {
        let byte = key[at] ^ mask;
        at += 1;
        if byte == 0 {
            // 0x00 0x00 is the end, 0x00 0xFF a zero byte.
            at += 1;
            if key[at - 1] ^ mask == 0 {
                return (at, row.len() - before);
            }
        }
        row.push(byte);
    }
}
