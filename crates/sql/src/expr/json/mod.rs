//! JSON documents: parsing a text that an expression gave, and printing a document as MySQL shows it.
//!
//! MySQL keeps JSON in a binary form and prints it from there: a blank behind each comma and colon, the members of an object sorted by the
//! length of their names and then by bytes, the last of equal names. Rauk keeps the text as it was written, so a document is parsed when it
//! is read and printed in that form. A whole DOUBLE shows `.0`.
//!
//! A parsed document takes more memory than its text. [`parse`] counts an upper bound before it parses and the [`Document`] gives it back
//! when it is dropped, so that a statement that holds several documents stays within its limit.
//!
//! `path` finds values in a document. Left out: the JSON functions but JSON_VALID.

pub mod path;

use super::cast::json_reason;
use crate::memory::Memory;
use rauk_types::format::append_f64;
use serde_json::Value;

/// Bytes that an object takes beside its text: the first node of its map.
const OBJECT_BYTES: usize = 720;
/// Bytes that a value, and its place in an array or in a map, takes beside its text.
const VALUE_BYTES: usize = 96;

/// A parsed document, and the memory that it was counted for.
pub struct Document {
    pub value: Value,
    bytes: usize,
    memory: Memory,
}

impl Drop for Document {
    fn drop(&mut self) {
        self.memory.give(self.bytes);
    }
}

/// What is wrong with a text that is no document.
pub struct Invalid {
    pub reason: &'static str,
    /// In bytes.
    pub position: usize,
}

/// An upper bound of the bytes that the parsed document takes.
fn parsed_bytes(text: &str) -> usize {
    let (mut objects, mut values) = (0, 1);
    for byte in text.bytes() {
        match byte {
            b'{' => {
                objects += 1;
                values += 1;
            }
            b'[' | b',' | b':' => values += 1,
            _ => {}
        }
    }
    text.len() + objects * OBJECT_BYTES + values * VALUE_BYTES
}

/// Parses a document. The outer error is 1038, the inner one says what is wrong with the text.
pub fn parse(text: &str, memory: &Memory) -> Result<Result<Document, Invalid>, rauk_types::MysqlError> {
    let bytes = parsed_bytes(text);
    memory.take(bytes)?;
    let document = |value| Document { value, bytes, memory: memory.clone() };
    Ok(match serde_json::from_str(text) {
        Ok(value) => Ok(document(value)),
        Err(error) => {
            memory.give(bytes);
            Err(Invalid { reason: json_reason(&error), position: byte_position(text, &error) })
        }
    })
}

/// Where in a text an error was found.
pub fn byte_position(text: &str, error: &serde_json::Error) -> usize {
    let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    (before + error.column().saturating_sub(1)).min(text.len())
}

/// Appends a document as MySQL shows it.
pub fn append(document: &Value, out: &mut Vec<u8>) {
    match document {
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(value) => append_double(value, out),
            None => out.extend_from_slice(number.to_string().as_bytes()),
        },
        Value::Array(items) => {
            out.push(b'[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    out.extend_from_slice(b", ");
                }
                append(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (number, (name, value)) in sorted(members).into_iter().enumerate() {
                if number > 0 {
                    out.extend_from_slice(b", ");
                }
                append_string(name, out);
                out.extend_from_slice(b": ");
                append(value, out);
            }
            out.push(b'}');
        }
        Value::String(text) => append_string(text, out),
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(truth) => out.extend_from_slice(if *truth { &b"true"[..] } else { b"false" }),
    }
}

/// A document as MySQL shows it.
pub fn text(document: &Value) -> String {
    let mut out = Vec::new();
    append(document, &mut out);
    String::from_utf8(out).expect("a document is made of texts")
}

/// Members in MySQL's order.
fn sorted(members: &serde_json::Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by_key(|(name, _)| (name.len(), name.as_bytes()));
    sorted
}

pub fn append_double(value: f64, out: &mut Vec<u8>) {
    let before = out.len();
    append_f64(value, out);
    if out[before..].iter().all(|byte| byte.is_ascii_digit() || *byte == b'-') {
        out.extend_from_slice(b".0");
    }
}

pub fn append_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a text is written to memory");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_shown_in_mysqls_form_and_its_memory_is_counted() {
        let memory = Memory::limited(1 << 20);
        let document = parse(r#" {"bb":1,"a":[1.0,true,null,"x\"y"], "a" : {"z":1e300}}"#, &memory).unwrap();
        let document = document.ok().unwrap();
        assert_eq!(text(&document.value), r#"{"a": {"z": 1e300}, "bb": 1}"#);
        assert!(memory.used() > 1000);
        drop(document);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn a_text_that_is_none_says_where() {
        let memory = Memory::limited(1 << 20);
        let invalid = parse("[1,\nx]", &memory).unwrap().err().unwrap();
        assert_eq!((invalid.reason, invalid.position), ("Invalid value.", 4));
        assert_eq!(parse("", &memory).unwrap().err().unwrap().reason, "The document is empty.");
        assert_eq!(memory.used(), 0);
        assert_eq!(parse(&"{".repeat(2000), &memory).err().unwrap().code, 1038);
    }
}
