//! Rows of the text protocol: every value as a length and its text, NULL as one byte.
use crate::packet::write;
use rauk_types::{DataType, ValueRef, format};

/// Appends a row's payload; as many `values` as `types`.
pub fn write_row(values: &[ValueRef<'_>], types: &[DataType], out: &mut Vec<u8>) {
    for (value, ty) in values.iter().zip(types) {
        match value {
            ValueRef::Null => out.push(0xFB),
            ValueRef::Int(n) if ty.is_integer() => {
                write::lenenc_with(out, |out| write::digits(n.unsigned_abs(), *n < 0, out));
            }
            ValueRef::UInt(n) if ty.is_integer() && !ty.zerofill => {
                write::lenenc_with(out, |out| write::digits(*n, false, out))
            }
            ValueRef::Str(text) => write::lenenc_bytes(text.as_bytes(), out),
            ValueRef::Bytes(bytes) => write::lenenc_bytes(bytes, out),
            other => write::lenenc_with(out, |out| format::append_text(*other, ty, out)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::Collation;

    #[test]
    fn zeros_before_a_number() {
        let padded = |length| DataType { unsigned: true, zerofill: true, length, ..DataType::BIGINT };
        let types = [padded(3), padded(0), DataType::new(rauk_types::TypeKind::Year), DataType::bit(9)];
        let values = [ValueRef::UInt(7), ValueRef::UInt(1), ValueRef::UInt(0), ValueRef::UInt(256)];
        let mut out = Vec::new();
        write_row(&values, &types, &mut out);
        assert_eq!(out, b"\x03007\x1400000000000000000001\x040000\x02\x01\0");
    }

    #[test]
    fn a_row() {
        let text = DataType::varchar(9, Collation::DEFAULT);
        let types = [DataType::BIGINT, DataType::BIGINT_UNSIGNED, text, DataType::varbinary(9), text, DataType::DOUBLE];
        let values = [
            ValueRef::Int(-42),
            ValueRef::UInt(u64::MAX),
            ValueRef::Str("aß"),
            ValueRef::Bytes(&[0, 255]),
            ValueRef::Null,
            ValueRef::Double(1.5),
        ];
        let mut out = Vec::new();
        write_row(&values, &types, &mut out);
        assert_eq!(out, b"\x03-42\x1418446744073709551615\x03a\xc3\x9f\x02\x00\xff\xfb\x031.5");
    }
}
