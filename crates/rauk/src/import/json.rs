//! Lines of JSON to members: one object a line, each member a column.
//!
//! The library says whether a line is JSON, and where it stops being so. Members are then found by their places in the
//! text, so that a number keeps all digits that are written and a document of a JSON column stays as it is.

use serde::de::IgnoredAny;

/// A member's value, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a>(pub &'a str);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(String),
    /// An object or an array.
    Document(&'a str),
}

impl<'a> Raw<'a> {
    pub fn scalar(self) -> Scalar<'a> {
        match self.0.as_bytes().first() {
            Some(b'n') | None => Scalar::Null,
            Some(b't') => Scalar::Bool(true),
            Some(b'f') => Scalar::Bool(false),
            Some(b'"') => Scalar::Text(text(self.0)),
            Some(b'{' | b'[') => Scalar::Document(self.0),
            Some(_) => Scalar::Number(self.0),
        }
    }
}

/// Calls `take` for each member, in order.
pub fn each<E>(
    line: &str,
    broken: impl FnOnce(String) -> E,
    mut take: impl FnMut(&str, Raw<'_>) -> Result<(), E>,
) -> Result<(), E> {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(line) {
        return Err(broken(match error.is_eof() {
            true => "the JSON object does not end".into(),
            false => format!("it is no JSON: {}", without_line(&error)),
        }));
    }
    let bytes = line.as_bytes();
    let mut at = spaces(bytes, 0);
    if bytes.get(at) != Some(&b'{') {
        return Err(broken("it is no JSON object; wanted: {\"column\": value, …}".into()));
    }
    at = spaces(bytes, at + 1);
    // From here on the text is known to be an object, so each step finds what it looks for.
    while bytes.get(at).is_some_and(|b| *b == b'"') {
        let end = value_end(bytes, at);
        let name = text(&line[at..end]);
        // Behind the name comes a colon.
        at = spaces(bytes, spaces(bytes, end) + 1);
        let end = value_end(bytes, at);
        take(&name, Raw(&line[at..end]))?;
        at = spaces(bytes, end);
        if bytes.get(at) == Some(&b',') {
            at = spaces(bytes, at + 1);
        }
    }
    Ok(())
}

/// The library counts lines of its own text, which is one line of the file.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at line ") {
        Some((what, _)) => format!("{what} (character {})", error.column()),
        None => text,
    }
}

/// The text of a JSON string.
fn text(quoted: &str) -> String {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    if !inner.contains('\\') {
        return inner.into();
    }
    serde_json::from_str(quoted).unwrap_or_else(|_| inner.into())
}

fn spaces(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Where the value ends that begins here.
fn value_end(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b'"') => string_end(bytes, at),
        Some(b'{' | b'[') => {
            let (mut depth, mut at) = (0usize, at);
            while let Some(byte) = bytes.get(at) {
                match byte {
                    b'"' => {
                        at = string_end(bytes, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    break;
                }
            }
            at
        }
        _ => bytes[at..]
            .iter()
            .position(|b| matches!(b, b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n'))
            .map_or(bytes.len(), |n| at + n),
    }
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(line: &str) -> Result<Vec<(String, String)>, String> {
        let mut found = Vec::new();
        each(
            line,
            |e| e,
            |name, value| {
                found.push((name.to_string(), value.0.to_string()));
                Ok(())
            },
        )?;
        Ok(found)
    }

    #[test]
    fn members_as_they_are_written() {
        let line = r#" { "a" : 1.50000000000000000000001 , "b\"\u00e4":"x\"},", "c":{"d":[1,"]}"]} ,"e":null,"f":[]} "#;
        let found = members(line).expect("JSON");
        let wanted = [
            ("a", "1.50000000000000000000001"),
            ("b\"ä", "\"x\\\"},\""),
            ("c", "{\"d\":[1,\"]}\"]}"),
            ("e", "null"),
            ("f", "[]"),
        ];
        assert_eq!(found, wanted.map(|(a, b)| (a.to_string(), b.to_string())));
        assert_eq!(members("{}"), Ok(Vec::new()));
        assert_eq!(Raw("\"x\\n\"").scalar(), Scalar::Text("x\n".into()));
    }

    #[test]
    fn what_is_no_object_is_told() {
        assert!(members("[1]").expect_err("no object").contains("no JSON object"));
        assert!(members("{\"a\":1").expect_err("cut").contains("does not end"));
        assert!(members("{\"a\":1,}").expect_err("bad").contains("character 8"));
        assert!(members("{'a':1}").expect_err("bad").contains("it is no JSON: "));
    }
}
