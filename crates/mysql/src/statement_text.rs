//! The text of a statement, as bytes from the wire to a string.
//!
//! Statements are UTF-8. Drivers without prepared statements also put raw bytes into string literals (`_binary'…'`); a literal that is not
//! valid UTF-8 is rewritten as `x'…'`, which is the same value. Invalid bytes anywhere else are error 1300, as in MySQL.
use crate::constants::code;
use rauk_types::MysqlError;
use std::borrow::Cow;

/// Decodes a statement. `no_backslash_escapes`: the session's sql_mode says that `\` is an ordinary character.
pub fn decode(bytes: &[u8], no_backslash_escapes: bool) -> Result<Cow<'_, str>, MysqlError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) => rewrite(bytes, no_backslash_escapes).map(Cow::Owned),
    }
}

fn rewrite(bytes: &[u8], no_backslash_escapes: bool) -> Result<String, MysqlError> {
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len() + bytes.len() / 2);
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match rest {
            [quote @ (b'\'' | b'"'), ..] => {
                let (length, closed) = quoted(rest, !no_backslash_escapes);
                if closed && std::str::from_utf8(&rest[..length]).is_err() {
                    if out.last().is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_') {
                        out.push(b' ');
                    }
                    out.extend_from_slice(b"x'");
                    for byte in unescape(&rest[..length], *quote, !no_backslash_escapes) {
                        out.extend_from_slice(format!("{byte:02X}").as_bytes());
                    }
                    out.push(b'\'');
                    at += length;
                    continue;
                }
                length
            }
            [b'`', ..] => quoted(rest, false).0,
            [b'#', ..] | [b'-', b'-', b' ' | b'\t' | b'\n', ..] => {
                rest.iter().position(|b| *b == b'\n').map_or(rest.len(), |i| i + 1)
            }
            [b'/', b'*', c, ..] if *c != b'!' => {
                rest.windows(2).skip(2).position(|w| w == b"*/").map_or(rest.len(), |i| i + 4)
            }
            _ => 1,
        };
        out.extend_from_slice(&rest[..length]);
        at += length;
    }
    String::from_utf8(out).map_err(|error| {
        let bad = error.utf8_error().valid_up_to();
        let shown: String = error.as_bytes()[bad..]
            .iter()
            .take(6)
            .map(|b| if b.is_ascii_graphic() { char::from(*b).to_string() } else { format!("\\x{b:02X}") })
            .collect();
        MysqlError::new(code::INVALID_CHARACTER_STRING, format!("Invalid utf8mb4 character string: '{shown}'"))
    })
}

/// Length of a quoted token that begins `text`, quotes included, and whether it is closed; an unclosed one goes to the end.
fn quoted(text: &[u8], backslash: bool) -> (usize, bool) {
    let quote = text[0];
    let mut at = 1;
    while at < text.len() {
        if text[at] == b'\\' && backslash {
            at += 2;
        } else if text[at] == quote {
            if text.get(at + 1) != Some(&quote) {
                return (at + 1, true);
            }
            at += 2;
        } else {
            at += 1;
        }
    }
    (text.len(), false)
}

/// The bytes that a closed literal stands for.
fn unescape(literal: &[u8], quote: u8, backslash: bool) -> Vec<u8> {
    let mut inner = literal[1..literal.len() - 1].iter().copied();
    let mut out = Vec::with_capacity(literal.len());
    while let Some(byte) = inner.next() {
        if byte == quote {
            inner.next();
            out.push(quote);
        } else if byte == b'\\' && backslash {
            match inner.next() {
                Some(b'0') => out.push(0),
                Some(b'n') => out.push(b'\n'),
                Some(b'r') => out.push(b'\r'),
                Some(b't') => out.push(b'\t'),
                Some(b'b') => out.push(8),
                Some(b'Z') => out.push(0x1A),
                Some(other) => out.push(other),
                None => {}
            }
        } else {
            out.push(byte);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_text_is_untouched() {
        assert!(matches!(decode("SELECT 'ß'".as_bytes(), false), Ok(Cow::Borrowed("SELECT 'ß'"))));
    }

    #[test]
    fn raw_bytes_in_literals() {
        let decoded = |bytes: &[u8]| decode(bytes, false).unwrap().into_owned();
        assert_eq!(decoded(b"SELECT _binary'\xff\\0\\'a', 'b'"), "SELECT _binary x'FF002761', 'b'");
        assert_eq!(decoded(b"INSERT INTO t VALUES ('it''s', \"\xfe\"\"\")"), "INSERT INTO t VALUES ('it''s', x'FE22')");
        assert_eq!(decoded(b"SELECT 1 /* don't */, '\xff'"), "SELECT 1 /* don't */, x'FF'");
        assert_eq!(decoded(b"SELECT `a'b`, '\xff' -- it's\n"), "SELECT `a'b`, x'FF' -- it's\n");
        assert_eq!(decode(b"SELECT '\xff\\'", true).unwrap(), "SELECT x'FF5C'");
    }

    #[test]
    fn elsewhere_it_is_an_error() {
        let error = decode(b"SELECT \xff\xfe FROM t", false).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (1300, "Invalid utf8mb4 character string: '\\xFF\\xFE\\x20FRO'")
        );
        assert!(decode(b"SELECT `\xff`", false).is_err());
        assert!(decode(b"'\xff", false).is_err());
        assert!(decode(b"'\xff\\'", false).is_err());
    }
}
