//! Values of files as literals of SQL, by the type of their column.
//!
//! Every value but a number of a BIT column is sent as a text or as bytes, and the server makes it a value of its column
//! as a strict INSERT does: what does not fit is an error there, so the rules are the server's alone. Columns of bytes
//! get a hexadecimal literal. How files write bytes is chosen: in hexadecimal (with or without `0x`), in base64, or as
//! they are (`text`).

use super::fields::Field;
use super::json::{Raw, Scalar};
use std::fmt::Write;

/// How a column is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// BINARY, VARBINARY, the BLOBs and the spatial types.
    Bytes,
    Bit,
    Json,
}

impl Kind {
    /// By `information_schema.COLUMNS.DATA_TYPE`.
    pub fn of(data_type: &str) -> Kind {
        match data_type.to_ascii_lowercase().as_str() {
            "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Kind::Bytes,
            "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring" | "multipolygon"
            | "geometrycollection" | "geomcollection" => Kind::Bytes,
            "bit" => Kind::Bit,
            "json" => Kind::Json,
            _ => Kind::Text,
        }
    }
}

/// How files write bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Hex,
    Base64,
    Text,
}

/// A field of CSV or TSV; `Err`: why it cannot be a value of the column.
pub fn push_field(out: &mut String, field: &Field<'_>, kind: Kind, binary: Binary) -> Result<(), String> {
    if field.null {
        out.push_str("NULL");
        return Ok(());
    }
    match kind {
        Kind::Bytes => push_decoded(out, &field.bytes, binary),
        Kind::Bit => push_bit(out, &field.bytes),
        Kind::Text | Kind::Json => {
            let text = std::str::from_utf8(&field.bytes).map_err(|e| not_utf8(&field.bytes, e.valid_up_to()))?;
            push_text(out, text);
            Ok(())
        }
    }
}

/// A value of a line of JSON.
pub fn push_json(out: &mut String, value: Raw<'_>, kind: Kind, binary: Binary) -> Result<(), String> {
    let scalar = value.scalar();
    match (&scalar, kind) {
        (Scalar::Null, _) => out.push_str("NULL"),
        (_, Kind::Json) => push_text(out, value.0),
        (Scalar::Text(text), Kind::Bytes) => push_decoded(out, text.as_bytes(), binary)?,
        (_, Kind::Bytes) => return Err("bytes are written as a JSON string".into()),
        (Scalar::Number(text), Kind::Bit) => push_bit(out, text.as_bytes())?,
        (Scalar::Text(text), Kind::Bit) => push_bit(out, text.as_bytes())?,
        (Scalar::Bool(true), _) => out.push('1'),
        (Scalar::Bool(false), _) => out.push('0'),
        (Scalar::Number(text), _) => push_text(out, text),
        (Scalar::Text(text), _) => push_text(out, text),
        (Scalar::Document(_), Kind::Bit) => return Err("an object or array is no value of a BIT column".into()),
        (Scalar::Document(text), Kind::Text) => push_text(out, text),
    }
    Ok(())
}

pub fn push_text(out: &mut String, text: &str) {
    out.push('\'');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'\'' => "''",
            b'\\' => "\\\\",
            0 => "\\0",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(escaped);
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out.push('\'');
}

pub fn push_bytes(out: &mut String, bytes: &[u8]) {
    out.reserve(bytes.len() * 2 + 3);
    out.push_str("x'");
    push_hex(out, bytes);
    out.push('\'');
}

pub fn push_hex(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)] as char);
        out.push(DIGITS[usize::from(byte & 15)] as char);
    }
}

/// A name of SQL.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn push_decoded(out: &mut String, text: &[u8], binary: Binary) -> Result<(), String> {
    match binary {
        Binary::Text => push_bytes(out, text),
        Binary::Hex => {
            let digits = text.strip_prefix(b"0x").unwrap_or(text);
            if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
                return Err(
                    "the column has bytes and the value is not hexadecimal; --binary base64 and --binary text \
                            read others"
                        .into(),
                );
            }
            out.push_str("x'");
            digits.iter().for_each(|digit| out.push(*digit as char));
            out.push('\'');
        }
        Binary::Base64 => {
            let bytes = from_base64(text).ok_or("the column has bytes and the value is not base64 (--binary)")?;
            push_bytes(out, &bytes);
        }
    }
    Ok(())
}

fn push_bit(out: &mut String, text: &[u8]) -> Result<(), String> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let number = number.ok_or("a value of a BIT column is a number")?;
    write!(out, "{number}").expect("a String takes all");
    Ok(())
}

fn not_utf8(bytes: &[u8], at: usize) -> String {
    format!("byte 0x{:02X} is not UTF-8; convert the file (iconv -f LATIN1 -t UTF-8)", bytes[at])
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn push_base64(out: &mut String, bytes: &[u8]) {
    for part in bytes.chunks(3) {
        let byte = |at: usize| u32::from(part.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            match at <= part.len() {
                true => out.push(BASE64[(bits >> (18 - 6 * at) & 63) as usize] as char),
                false => out.push('='),
            }
        }
    }
}

fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
    let padding = digits.iter().rev().take_while(|b| **b == b'=').count();
    if padding > 2 || !digits.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    for part in digits[..digits.len() - padding].chunks(4) {
        let mut bits = 0u32;
        for digit in part {
            bits = bits << 6 | BASE64.iter().position(|b| b == digit)? as u32;
        }
        bits <<= 6 * (4 - part.len());
        let whole = part.len() * 6 / 8;
        bytes.extend_from_slice(&bits.to_be_bytes()[1..=whole]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::prelude::*;

    #[test]
    fn base64_goes_out_and_comes_in() {
        let mut random = StdRng::seed_from_u64(19);
        for length in 0..100 {
            let bytes: Vec<u8> = (0..length).map(|_| random.random()).collect();
            let mut text = String::new();
            push_base64(&mut text, &bytes);
            assert_eq!(from_base64(text.as_bytes()), Some(bytes));
        }
        let mut text = String::new();
        push_base64(&mut text, b"light w");
        assert_eq!(text, "bGlnaHQgdw==");
        assert_eq!((from_base64(b"bGl"), from_base64(b"bG!n")), (None, None));
    }

    #[test]
    fn literals() {
        let mut out = String::new();
        push_text(&mut out, "it's \\ ä\0");
        assert_eq!(out, "'it''s \\\\ ä\\0'");
        out.clear();
        push_decoded(&mut out, b"0xfF00", Binary::Hex).expect("hexadecimal");
        push_decoded(&mut out, b"", Binary::Hex).expect("hexadecimal");
        assert_eq!(out, "x'fF00'x''");
        assert!(push_decoded(&mut out, b"abc", Binary::Hex).expect_err("odd").contains("--binary text"));
        assert!(push_bit(&mut out, b"x").is_err());
        assert_eq!(quoted("a`b"), "`a``b`");
    }
}
