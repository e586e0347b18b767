//! MySQL's order of JSON values, one by one and as bytes.
//!
//! Values of different kinds are ordered by kind ([`kind`]); numbers of all types compare as numbers. A DOUBLE stands for the shortest decimal that
//! reads back as it, so that the order is total whatever types meet. Strings compare by bytes, arrays element by element, objects by how
//! many members they have, then member by member.

use super::{Corrupt, JsonRef, MAX_DEPTH, Node, field};
use crate::Decimal;
use std::cmp::Ordering;
use std::io::Write as _;

type Result<T> = std::result::Result<T, Corrupt>;

/// Integers up to here are doubles too.
const EXACT: u128 = 1 << 53;

/// The place of a kind of value among the others.
fn kind(node: &Node<'_>) -> u8 {
    match node {
        Node::Null => 1,
        Node::Int(_) | Node::UInt(_) | Node::Double(_) | Node::Decimal(_) => 2,
        Node::String(_) => 3,
        Node::Object(_) => 4,
        Node::Array(_) => 5,
        Node::Bool(_) => 6,
        Node::Date(_) => 7,
        Node::Time(_) => 8,
        Node::DateTime(_) => 9,
        Node::Opaque(field::BIT, _) => 11,
        Node::Opaque(..) if node.type_name() == "BLOB" => 12,
        Node::Opaque(..) => 10,
    }
}

impl JsonRef<'_> {
    /// A total order. Values that are still text must be [normalised](JsonRef::normal) before.
    pub fn compare(self, other: JsonRef<'_>) -> Result<Ordering> {
        compare(self, other, MAX_DEPTH)
    }

    /// Appends bytes that are ordered as the values are; none is the beginning of another one's.
    pub fn append_key(self, out: &mut Vec<u8>) -> Result<()> {
        append_key(self, MAX_DEPTH, out)
    }
}

fn compare(a: JsonRef<'_>, b: JsonRef<'_>, most: usize) -> Result<Ordering> {
    if most == 0 {
        return Err(Corrupt);
    }
    let (a, b) = (a.read()?, b.read()?);
    Ok(match (&a, &b) {
        (Node::String(a), Node::String(b)) => a.cmp(b),
        (Node::Bool(a), Node::Bool(b)) => a.cmp(b),
        (Node::Date(a), Node::Date(b)) => a.packed().cmp(&b.packed()),
        (Node::Time(a), Node::Time(b)) => a.micros().cmp(&b.micros()),
        (Node::DateTime(a), Node::DateTime(b)) => a.packed().cmp(&b.packed()),
        (Node::Array(a), Node::Array(b)) => {
            for (a, b) in a.iter().zip(b.iter()) {
                match compare(a?.1, b?.1, most - 1)? {
                    Ordering::Equal => {}
                    order => return Ok(order),
                }
            }
            a.len().cmp(&b.len())
        }
        (Node::Object(a), Node::Object(b)) => {
            if a.len() != b.len() {
                return Ok(a.len().cmp(&b.len()));
            }
            for (a, b) in a.iter().zip(b.iter()) {
                let ((a_name, a), (b_name, b)) = (a?, b?);
                let names = (a_name.len(), a_name).cmp(&(b_name.len(), b_name));
                match if names.is_eq() { compare(a, b, most - 1)? } else { names } {
                    Ordering::Equal => {}
                    order => return Ok(order),
                }
            }
            Ordering::Equal
        }
        (Node::Opaque(a_type, a_data), Node::Opaque(b_type, b_data)) => {
            kind(&a).cmp(&kind(&b)).then_with(|| a_data.cmp(b_data)).then_with(|| a_type.cmp(b_type))
        }
        _ => match kind(&a).cmp(&kind(&b)) {
            Ordering::Equal if kind(&a) == 2 => compare_numbers(&a, &b),
            order => order,
        },
    })
}

fn integer(node: &Node<'_>) -> Option<i128> {
    match node {
        Node::Int(v) => Some((*v).into()),
        Node::UInt(v) => Some((*v).into()),
        _ => None,
    }
}

fn compare_numbers(a: &Node<'_>, b: &Node<'_>) -> Ordering {
    if let (Some(a), Some(b)) = (integer(a), integer(b)) {
        return a.cmp(&b);
    }
    let double = |node: &Node<'_>| match (node, integer(node)) {
        (Node::Double(v), _) => Some(*v),
        (_, Some(v)) if v.unsigned_abs() <= EXACT => Some(v as f64),
        _ => None,
    };
    if let (Some(a), Some(b)) = (double(a), double(b)) {
        return a.partial_cmp(&b).unwrap_or(Ordering::Equal);
    }
    if let (Node::Decimal(a), Node::Decimal(b)) = (a, b) {
        return a.cmp(b);
    }
    let key = |node: &Node<'_>| {
        let mut key = Vec::with_capacity(40);
        append_number(node, &mut key);
        key
    };
    key(a).cmp(&key(b))
}

fn append_key(value: JsonRef<'_>, most: usize, out: &mut Vec<u8>) -> Result<()> {
    if most == 0 {
        return Err(Corrupt);
    }
    let node = value.read()?;
    out.push(kind(&node));
    match &node {
        Node::Null => {}
        Node::Bool(v) => out.push((*v).into()),
        Node::Int(_) | Node::UInt(_) | Node::Double(_) | Node::Decimal(_) => append_number(&node, out),
        Node::String(text) => append_bytes(text.as_bytes(), out),
        Node::Date(v) => out.extend_from_slice(&v.packed().to_be_bytes()),
        Node::Time(v) => out.extend_from_slice(&(v.micros() as u64 ^ 1 << 63).to_be_bytes()),
        Node::DateTime(v) => out.extend_from_slice(&v.packed().to_be_bytes()),
        Node::Opaque(ty, data) => {
            append_bytes(data, out);
            out.push(*ty);
        }
        Node::Array(list) => {
            for item in list.iter() {
                append_key(item?.1, most - 1, out)?;
            }
            // Below every kind.
            out.push(0);
        }
        Node::Object(list) => {
            out.extend_from_slice(&(list.len() as u32).to_be_bytes());
            for item in list.iter() {
                let (name, value) = item?;
                out.extend_from_slice(&(name.len() as u16).to_be_bytes());
                out.extend_from_slice(name.as_bytes());
                append_key(value, most - 1, out)?;
            }
        }
    }
    Ok(())
}

/// Bytes with an end that no other bytes contain.
fn append_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xFF);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// Sign, exponent and digits.
fn append_number(node: &Node<'_>, out: &mut Vec<u8>) {
    let mut text: Vec<u8> = Vec::with_capacity(32);
    match node {
        Node::Int(v) => crate::format::append_i64(*v, &mut text),
        Node::UInt(v) => crate::format::append_u64(*v, &mut text),
        // Rust's digits are the shortest that read back as the number.
        Node::Double(v) => write!(text, "{v:e}").expect("memory takes all"),
        Node::Decimal(v) => Decimal::append_text(v, &mut text),
        _ => {}
    }
    let negative = text.first().is_some_and(|byte| *byte == b'-');
    let number = &text[usize::from(negative)..];
    let (number, power) = match number.iter().position(|byte| *byte == b'e') {
        Some(at) => {
            let power = std::str::from_utf8(&number[at + 1..]).ok().and_then(|power| power.parse::<i32>().ok());
            (&number[..at], power.unwrap_or(0))
        }
        None => (number, 0),
    };
    let point = number.iter().position(|byte| *byte == b'.').unwrap_or(number.len());
    let digits: Vec<u8> = number.iter().copied().filter(u8::is_ascii_digit).collect();
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let end = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    if end == 0 {
        out.push(1);
        return;
    }
    out.push(if negative { 0 } else { 2 });
    let start = out.len();
    // The number is 0.DIGITS × 10^exponent.
    let exponent = point as i32 - zeros as i32 + power;
    out.extend_from_slice(&((exponent + 0x4000) as u16).to_be_bytes());
    out.extend_from_slice(&digits[zeros..end]);
    out.push(0);
    if negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}
