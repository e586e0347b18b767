//! The text of a statement, as bytes from the wire to a string.
//!
//! Statements are written in character_set_client, and become UTF-8 here; what is UTF-8 already is not copied. Drivers
//! without prepared statements also put raw bytes into string literals (`_binary'…'`): a literal that is not valid in
//! the client's set, or that stands behind the name of a set (`_latin1'…'`) and is written in another than UTF-8, is
//! rewritten as `x'…'`, which is the same value. Invalid bytes anywhere else are error 1300, as in MySQL.
//!
//! utf8mb3 is read as utf8mb4 is: what stands in a literal counts, not how the client calls it. So is `binary`, in
//! which a statement's words are ASCII.
use crate::constants::code;
use rauk_types::{Charset, MysqlError};
use std::borrow::Cow;

/// Decodes a statement. `no_backslash_escapes`: the session's sql_mode says that `\` is an ordinary character.
pub fn decode(bytes: &[u8], client: Charset, no_backslash_escapes: bool) -> Result<Cow<'_, str>, MysqlError> {
    let utf8 = [Charset::UTF8MB4, Charset::UTF8MB3, Charset::BINARY].contains(&client);
    match std::str::from_utf8(bytes) {
        Ok(text) if utf8 || text.is_ascii() => Ok(Cow::Borrowed(text)),
        _ => {
            let set = if utf8 { Charset::UTF8MB4 } else { client };
            rewrite(bytes, set, no_backslash_escapes).map(Cow::Owned)
        }
    }
}

fn rewrite(bytes: &[u8], set: Charset, no_backslash_escapes: bool) -> Result<String, MysqlError> {
    let mut out = String::with_capacity(bytes.len() + bytes.len() / 2);
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match rest {
            [quote @ (b'\'' | b'"'), ..] => {
                let (length, closed) = quoted(rest, set, !no_backslash_escapes);
                let literal = &rest[..length];
                let raw = || set.decode(literal).malformed.is_some();
                let introduced = || set != Charset::UTF8MB4 && !literal.is_ascii() && is_introduced(&out);
                if closed && (introduced() || raw()) {
                    if out.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
                        out.push(' ');
                    }
                    out.push_str("x'");
                    for byte in unescape(literal, *quote, set, !no_backslash_escapes) {
                        out.push_str(&format!("{byte:02X}"));
                    }
                    out.push('\'');
                    at += length;
                    continue;
                }
                length
            }
            [b'`', ..] => quoted(rest, set, false).0,
            [b'#', ..] | [b'-', b'-', b' ' | b'\t' | b'\n', ..] => {
                rest.iter().position(|b| *b == b'\n').map_or(rest.len(), |i| i + 1)
            }
            [b'/', b'*', c, ..] if *c != b'!' => {
                rest.windows(2).skip(2).position(|w| w == b"*/").map_or(rest.len(), |i| i + 4)
            }
            _ => set.step(rest),
        };
        let decoded = set.decode(&rest[..length]);
        if let Some(bad) = decoded.malformed {
            return Err(invalid(&rest[bad..], set));
        }
        out.push_str(&decoded.text);
        at += length;
    }
    Ok(out)
}

/// Error 1300.
fn invalid(bytes: &[u8], set: Charset) -> MysqlError {
    let shown: String = bytes
        .iter()
        .take(6)
        .map(|b| if b.is_ascii_graphic() { char::from(*b).to_string() } else { format!("\\x{b:02X}") })
        .collect();
    let message = format!("Invalid {} character string: '{shown}'", set.name());
    MysqlError::new(code::INVALID_CHARACTER_STRING, message)
}

/// Whether a text ends with `_name`, which says the character set of the literal behind it.
fn is_introduced(before: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let end = before.trim_end();
    let begin = end.trim_end_matches(word);
    end[begin.len()..].starts_with('_') && !begin.ends_with(['@', '.', '`'])
}

/// Length of a quoted token that begins `text`, quotes included, and whether it is closed; an unclosed one goes to the
/// end.
fn quoted(text: &[u8], set: Charset, backslash: bool) -> (usize, bool) {
    let quote = text[0];
    let mut at = 1;
    while at < text.len() {
        if text[at] == b'\\' && backslash {
            at += 1;
            at += text.get(at..).filter(|rest| !rest.is_empty()).map_or(1, |rest| set.step(rest));
        } else if text[at] == quote {
            if text.get(at + 1) != Some(&quote) {
                return (at + 1, true);
            }
            at += 2;
        } else {
            at += set.step(&text[at..]);
        }
    }
    (text.len(), false)
}

/// The bytes that a closed literal stands for.
fn unescape(literal: &[u8], quote: u8, set: Charset, backslash: bool) -> Vec<u8> {
    let mut inner = &literal[1..literal.len() - 1];
    let mut out = Vec::with_capacity(literal.len());
    while let Some((&byte, rest)) = inner.split_first() {
        if byte == quote {
            out.push(quote);
            inner = rest.get(1..).unwrap_or_default();
        } else if byte == b'\\' && backslash && !rest.is_empty() {
            match rest[0] {
                b'0' => out.push(0),
                b'n' => out.push(b'\n'),
                b'r' => out.push(b'\r'),
                b't' => out.push(b'\t'),
                b'b' => out.push(8),
                b'Z' => out.push(0x1A),
                _ => out.extend_from_slice(&rest[..set.step(rest)]),
            }
            inner = &rest[set.step(rest)..];
        } else {
            let length = set.step(inner);
            out.extend_from_slice(&inner[..length]);
            inner = &inner[length..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_text_is_untouched() {
        assert!(matches!(decode("SELECT 'ß'".as_bytes(), Charset::UTF8MB4, false), Ok(Cow::Borrowed("SELECT 'ß'"))));
    }

    #[test]
    fn raw_bytes_in_literals() {
        let decoded = |bytes: &[u8]| decode(bytes, Charset::UTF8MB4, false).unwrap().into_owned();
        assert_eq!(decoded(b"SELECT _binary'\xff\\0\\'a', 'b'"), "SELECT _binary x'FF002761', 'b'");
        assert_eq!(decoded(b"INSERT INTO t VALUES ('it''s', \"\xfe\"\"\")"), "INSERT INTO t VALUES ('it''s', x'FE22')");
        assert_eq!(decoded(b"SELECT 1 /* don't */, '\xff'"), "SELECT 1 /* don't */, x'FF'");
        assert_eq!(decoded(b"SELECT `a'b`, '\xff' -- it's\n"), "SELECT `a'b`, x'FF' -- it's\n");
        assert_eq!(decode(b"SELECT '\xff\\'", Charset::UTF8MB4, true).unwrap(), "SELECT x'FF5C'");
    }

    #[test]
    fn elsewhere_it_is_an_error() {
        let error = decode(b"SELECT \xff\xfe FROM t", Charset::UTF8MB4, false).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (1300, "Invalid utf8mb4 character string: '\\xFF\\xFE\\x20FRO'")
        );
        assert!(decode(b"SELECT `\xff`", Charset::UTF8MB4, false).is_err());
        assert!(decode(b"'\xff", Charset::UTF8MB4, false).is_err());
        assert!(decode(b"'\xff\\'", Charset::UTF8MB4, false).is_err());
    }

    #[test]
    fn statements_in_other_sets() {
        let decoded = |set, bytes: &[u8]| decode(bytes, set, false).unwrap().into_owned();
        assert_eq!(decoded(Charset::LATIN1, b"SELECT '\xE4\x80', `\xDF` -- \xFC"), "SELECT 'ä€', `ß` -- ü");
        assert!(matches!(decode(b"SELECT 1", Charset::LATIN1, false), Ok(Cow::Borrowed("SELECT 1"))));
        // What a name of a set stands before is bytes.
        assert_eq!(
            decoded(Charset::LATIN1, b"SELECT _latin1 '\xE4', _utf8mb4'\xC3\\\xA4\\'', @_a='\xE4'"),
            "SELECT _latin1 x'E4', _utf8mb4 x'C3A427', @_a='ä'"
        );
        // Second bytes that are a backslash, a backtick or a letter.
        assert_eq!(
            decoded(Charset::SJIS, b"SELECT '\x95\x5C', '\x95\x5C\\'', `\x83\x60`"),
            "SELECT '表', '表\\'', `チ`"
        );
        assert_eq!(decoded(Charset::GBK, b"SELECT '\xD6\xD0\\\xB3\x5C', '\xFF'"), "SELECT '中\\砛', x'FF'");
        let error = decode(b"SELECT \xFF", Charset::GBK, false).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (1300, "Invalid gbk character string: '\\xFF'"));
    }
}
