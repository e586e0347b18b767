//! Documents as MySQL shows them: a blank behind each comma and colon; or in lines, as JSON_PRETTY has it.
//!
//! A whole DOUBLE shows `.0`. Times have six digits behind the second. Binary strings are `"base64:type253:…"`, with MySQL's number of the type; unlike
//! in MySQL no line breaks are in the digits, so that the text is JSON.

use super::{Corrupt, JsonRef, MAX_DEPTH, Node};
use crate::format::{append_f64, append_i64, append_u64};

type Result<T> = std::result::Result<T, Corrupt>;

/// How the parts of a document stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `{"a": [1, 2]}`
    Plain,
    /// Each value on a line, indented by two blanks a level.
    Lines,
    /// Without blanks.
    Dense,
}

impl JsonRef<'_> {
    /// Appends MySQL's normal form. A value that is still text must be [normalised](JsonRef::normal) before.
    pub fn append_text(self, out: &mut Vec<u8>) -> Result<()> {
        append(self, Form::Plain, 0, usize::MAX, out).map(|_| ())
    }

    /// Appends what clients see: the normal form, of JSON text too. Text that is no JSON (no column has taken such) stays as it is.
    pub fn append_shown(self, out: &mut Vec<u8>) {
        let start = out.len();
        let shown = match self.normal(&mut |_| Ok(())) {
            Ok(normal) => normal.get().append_text(out).is_ok(),
            Err(_) => false,
        };
        if !shown {
            out.truncate(start);
            if self.is_text() {
                out.extend_from_slice(String::from_utf8_lossy(self.bytes).as_bytes());
            }
        }
    }

    /// Appends the document in this form, as long as `out` is not longer than `most`: a deep document has many more blanks than
    /// values. `false`: it is longer.
    pub fn append_form(self, form: Form, most: usize, out: &mut Vec<u8>) -> Result<bool> {
        append(self, form, 0, most, out)
    }

    /// Appends a string as it is, anything else as [`JsonRef::append_text`].
    pub fn append_unquoted(self, out: &mut Vec<u8>) -> Result<()> {
        match self.read()? {
            Node::String(text) => out.extend_from_slice(text.as_bytes()),
            Node::Date(v) => v.append_text(out),
            Node::Time(v) => v.append_text(6, out),
            Node::DateTime(v) => v.append_text(6, out),
            Node::Opaque(ty, data) => append_opaque(ty, data, out),
            _ => self.append_text(out)?,
        }
        Ok(())
    }
}

fn line(depth: usize, form: Form, out: &mut Vec<u8>) {
    if form == Form::Lines {
        out.push(b'\n');
        out.resize(out.len() + 2 * depth, b' ');
    }
}

/// Gives whether `out` is within `most` bytes; it ends early where it is not.
fn append(value: JsonRef<'_>, form: Form, depth: usize, most: usize, out: &mut Vec<u8>) -> Result<bool> {
    if depth >= MAX_DEPTH {
        return Err(Corrupt);
    }
    let (list, object) = match value.read()? {
        Node::Array(list) => (list, false),
        Node::Object(list) => (list, true),
        scalar => {
            append_scalar(&scalar, out);
            return Ok(out.len() <= most);
        }
    };
    out.push(if object { b'{' } else { b'[' });
    for (number, item) in list.iter().enumerate() {
        let (name, value) = item?;
        if number > 0 {
            out.extend_from_slice(if form == Form::Plain { b", " } else { b"," });
        }
        line(depth + 1, form, out);
        if object {
            append_quoted(name, out);
            out.extend_from_slice(if form == Form::Dense { b":" } else { b": " });
        }
        if !append(value, form, depth + 1, most, out)? {
            return Ok(false);
        }
    }
    if !list.is_empty() {
        line(depth, form, out);
    }
    out.push(if object { b'}' } else { b']' });
    Ok(out.len() <= most)
}

fn append_scalar(scalar: &Node<'_>, out: &mut Vec<u8>) {
    let quoted = |out: &mut Vec<u8>, append: &dyn Fn(&mut Vec<u8>)| {
        out.push(b'"');
        append(out);
        out.push(b'"');
    };
    match scalar {
        Node::Null => out.extend_from_slice(b"null"),
        Node::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Node::Int(v) => append_i64(*v, out),
        Node::UInt(v) => append_u64(*v, out),
        Node::Double(v) => append_double(*v, out),
        Node::Decimal(v) => v.append_text(out),
        Node::String(v) => append_quoted(v, out),
        Node::Date(v) => quoted(out, &|out| v.append_text(out)),
        Node::Time(v) => quoted(out, &|out| v.append_text(6, out)),
        Node::DateTime(v) => quoted(out, &|out| v.append_text(6, out)),
        Node::Opaque(ty, data) => quoted(out, &|out| append_opaque(*ty, data, out)),
        Node::Array(_) | Node::Object(_) => unreachable!("not a scalar"),
    }
}

fn append_opaque(ty: u8, data: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    out.extend_from_slice(b"base64:type");
    append_u64(ty.into(), out);
    out.push(b':');
    for three in data.chunks(3) {
        let bits = three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= three.len() { digit } else { b'=' });
        }
    }
}

/// A DOUBLE, which is told from an integer by its point.
pub fn append_double(value: f64, out: &mut Vec<u8>) {
    let before = out.len();
    append_f64(value, out);
    if out[before..].iter().all(|byte| byte.is_ascii_digit() || *byte == b'-') {
        out.extend_from_slice(b".0");
    }
}

/// A text as a JSON string.
pub fn append_quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' | b'\\' => byte,
            8 => b'b',
            9 => b't',
            10 => b'n',
            12 => b'f',
            13 => b'r',
            0..0x20 => b'u',
            _ => continue,
        };
        out.extend_from_slice(&text.as_bytes()[plain..at]);
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(&[b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        plain = at + 1;
    }
    out.extend_from_slice(&text.as_bytes()[plain..]);
    out.push(b'"');
}
