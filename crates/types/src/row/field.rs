//! One column of many rows as plain numbers or bytes: for readers that gather columns into vectors.
//!
//! A [`Field`] is where a column lies in rows of the newest layout. It is looked up once and then reads any number of rows without looking at types
//! again; it reads the head of a row ([`RowImage`]), and bytes from the whole of it. A number of up to eight bytes is a *word*: signed numbers are extended by their sign, FLOAT and DOUBLE are the bits of a double, dates and
//! times are packed, a DECIMAL is its unscaled integer. What is NULL reads as zero or empty; [`Field::is_null`] tells. Rows of older layouts are read
//! by [`RowView::get`](super::RowView::get).

use super::{Codec, NONE, RowImage, RowLayout, Slot, array};

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// `i64`.
    Int,
    /// `u64`.
    UInt,
    /// `f64`.
    Double,
    /// `i64` with a scale.
    Decimal(u8),
    /// `i128` with a scale: not a word.
    WideDecimal(u8),
    /// A packed date.
    Date,
    /// Microseconds.
    Time,
    /// A packed date and time.
    DateTime,
    /// Microseconds since 1970.
    Timestamp,
    /// UTF-8: not a word.
    Text,
    /// Not a word.
    Bytes,
}

/// Where a column lies in rows of one layout.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    slot: Slot,
    kind: FieldKind,
}

impl FieldKind {
    fn of(codec: Codec, scale: u8) -> Option<FieldKind> {
        Some(match codec {
            Codec::I8 | Codec::I16 | Codec::I24 | Codec::I32 | Codec::I64 => FieldKind::Int,
            Codec::U8 | Codec::U16 | Codec::U24 | Codec::U32 | Codec::U64 | Codec::Year => FieldKind::UInt,
            Codec::F32 | Codec::F64 => FieldKind::Double,
            Codec::Date => FieldKind::Date,
            Codec::Time => FieldKind::Time,
            Codec::DateTime => FieldKind::DateTime,
            Codec::Timestamp => FieldKind::Timestamp,
            Codec::Decimal32 | Codec::Decimal64 => FieldKind::Decimal(scale),
            Codec::Decimal128 => FieldKind::WideDecimal(scale),
            Codec::Char | Codec::Text => FieldKind::Text,
            Codec::Bytes => FieldKind::Bytes,
            // Its integer has up to 27 bytes. A document is no text.
            Codec::DecimalWide | Codec::Json => return None,
        })
    }
}

impl RowLayout {
    /// The field of the column at `position` of this layout; `None`: its values are neither numbers of up to 16 bytes nor bytes.
    pub fn field(&self, position: usize) -> Option<Field> {
        let slot = self.slots[position];
        Some(Field { slot, kind: FieldKind::of(slot.codec, slot.scale)? })
    }
}

impl Field {
    pub fn kind(&self) -> FieldKind {
        self.kind
    }

    /// Whether a row may have NULL here.
    #[inline]
    pub fn is_nullable(&self) -> bool {
        self.slot.null_bit != NONE
    }

    #[inline]
    pub fn is_null(&self, row: &[u8]) -> bool {
        let bit = self.slot.null_bit;
        bit != NONE && row[usize::from(bit / 8)] & 1 << (bit % 8) != 0
    }

    /// The word of a row. Panics on fields that have none.
    #[inline]
    pub fn word(&self, row: &[u8]) -> u64 {
        let at = usize::from(self.slot.place);
        let wide24 = || {
            let [a, b, c] = array(row, at);
            u32::from_le_bytes([a, b, c, 0])
        };
        let signed = |value: i64| value as u64;
        match self.slot.codec {
            Codec::I64
            | Codec::U64
            | Codec::F64
            | Codec::Time
            | Codec::DateTime
            | Codec::Timestamp
            | Codec::Decimal64 => u64::from_le_bytes(array(row, at)),
            Codec::I32 | Codec::Decimal32 => signed(i32::from_le_bytes(array(row, at)).into()),
            Codec::U32 => u32::from_le_bytes(array(row, at)).into(),
            Codec::Date | Codec::U24 => wide24().into(),
            Codec::I8 => signed((row[at] as i8).into()),
            Codec::U8 => row[at].into(),
            Codec::I16 => signed(i16::from_le_bytes(array(row, at)).into()),
            Codec::U16 => u16::from_le_bytes(array(row, at)).into(),
            Codec::I24 => signed(((wide24() << 8) as i32 >> 8).into()),
            Codec::F32 => f64::from(f32::from_le_bytes(array(row, at))).to_bits(),
            Codec::Year => match row[at] {
                0 => 0,
                since => 1900 + u64::from(since),
            },
            Codec::Decimal128 | Codec::DecimalWide | Codec::Char | Codec::Text | Codec::Bytes | Codec::Json => {
                unreachable!("{:?} is no word", self.kind)
            }
        }
    }

    /// Of [`FieldKind::WideDecimal`].
    #[inline]
    pub fn wide(&self, row: &[u8]) -> i128 {
        i128::from_le_bytes(array(row, usize::from(self.slot.place)))
    }

    /// Of [`FieldKind::Text`] and [`FieldKind::Bytes`], in a row of this layout.
    #[inline]
    pub fn bytes<'a>(&self, layout: &RowLayout, row: RowImage<'a>) -> &'a [u8] {
        layout.variable(self.slot.place, row)
    }
}
