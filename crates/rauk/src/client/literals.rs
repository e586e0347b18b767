//! Statements with bytes that are not UTF-8, as texts.
//!
//! Dumps write the bytes of BLOB columns between quotes as they are (`_binary 'ÿØÿà…'`), so that a statement of a dump
//! need not be UTF-8. The protocol library takes texts only. Each quoted text with such bytes becomes a hexadecimal
//! literal (`_binary x'FFD8FFE0…'`), which has the same bytes and, like them, no character set of its own. Statements in
//! UTF-8 are taken as they are. Such bytes in comments become `?`; elsewhere, in a name for example, they are an error,
//! since they say that the text has another encoding.

use std::fmt::Write;

/// The text of a statement; `Err`: where it has a byte that cannot be kept.
pub fn to_text(statement: Vec<u8>) -> Result<String, String> {
    match String::from_utf8(statement) {
        Ok(text) => Ok(text),
        Err(error) => converted(error.as_bytes()),
    }
}

fn converted(statement: &[u8]) -> Result<String, String> {
    let mut text = String::with_capacity(statement.len() * 2);
    let mut at = 0;
    while at < statement.len() {
        let here = &statement[at..];
        let (length, kind) = token(here);
        let token = &here[..length];
        match (std::str::from_utf8(token), kind) {
            (Ok(same), _) => text.push_str(same),
            (Err(_), Token::Comment) => text.push_str(&String::from_utf8_lossy(token).replace('\u{FFFD}', "?")),
            (Err(_), Token::Text) => {
                // A word in front (`_binary`, `N`) must not grow together with the x.
                text.push_str(if text.ends_with(|c: char| c.is_ascii_alphanumeric()) { " x'" } else { "x'" });
                for byte in bytes_of(token) {
                    write!(text, "{byte:02X}").expect("a String takes all");
                }
                text.push('\'');
            }
            (Err(error), Token::Other) => {
                let at = at + error.valid_up_to();
                return Err(format!(
                    "byte 0x{:02X} of the statement is not UTF-8; make the dump with --default-character-set=utf8mb4, or convert it (iconv)",
                    statement[at]
                ));
            }
        }
        at += length;
    }
    Ok(text)
}

#[derive(Clone, Copy)]
enum Token {
    Text,
    Comment,
    Other,
}

/// The length and kind of what begins here.
fn token(here: &[u8]) -> (usize, Token) {
    let line = || here.iter().position(|b| *b == b'\n').unwrap_or(here.len());
    match here {
        [b'\'' | b'"', ..] => (quoted(here), Token::Text),
        [b'#', ..] => (line(), Token::Comment),
        [b'-', b'-', space, ..] if *space <= b' ' => (line(), Token::Comment),
        [b'/', b'*', third, ..] if !b"!M".contains(third) => {
            let end = here.windows(2).skip(2).position(|w| w == b"*/").map_or(here.len(), |at| at + 4);
            (end, Token::Comment)
        }
        // At least one byte, so that it goes on.
        _ => (1 + here[1..].iter().take_while(|b| !b"'\"#-/".contains(b)).count(), Token::Other),
    }
}

/// The length of a quoted text with its quotes.
fn quoted(here: &[u8]) -> usize {
    let mut at = 1;
    while at < here.len() {
        match here[at] {
            b'\\' => at += 2,
            byte if byte == here[0] => match here.get(at + 1) {
                Some(next) if *next == byte => at += 2,
                _ => return at + 1,
            },
            _ => at += 1,
        }
    }
    here.len()
}

/// The bytes that a quoted text means.
fn bytes_of(quoted: &[u8]) -> Vec<u8> {
    let quote = quoted[0];
    let inner = quoted[1..].strip_suffix(&[quote]).unwrap_or(&quoted[1..]);
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.iter().copied();
    while let Some(byte) = rest.next() {
        if byte == quote {
            // It is doubled.
            rest.next();
            bytes.push(byte);
        } else if byte != b'\\' {
            bytes.push(byte);
        } else {
            match rest.next() {
                Some(b'0') => bytes.push(0),
                Some(b'b') => bytes.push(8),
                Some(b'n') => bytes.push(b'\n'),
                Some(b'r') => bytes.push(b'\r'),
                Some(b't') => bytes.push(b'\t'),
                Some(b'Z') => bytes.push(26),
                Some(other) => bytes.push(other),
                None => bytes.push(b'\\'),
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_and_bytes_become_hexadecimal() {
        let same = "INSERT INTO t VALUES ('ä', \"it''s\", _binary 'x')";
        assert_eq!(to_text(same.as_bytes().to_vec()).unwrap(), same);
        let bytes =
            b"INSERT INTO t VALUES (1, _binary '\xFF\\0\\'''\\n', 'ok', '\xE4') -- \xFC\n/* \xFC */, N'\xFF'".to_vec();
        assert_eq!(
            to_text(bytes).unwrap(),
            "INSERT INTO t VALUES (1, _binary x'FF0027270A', 'ok', x'E4') -- ?\n/* ? */, N x'FF'"
        );
        // What the splitter takes as one string is one here.
        let bytes = b"SELECT '\\\\', '\xFF', \"'\xFE\"".to_vec();
        assert_eq!(to_text(bytes).unwrap(), "SELECT '\\\\', x'FF', x'27FE'");
    }

    #[test]
    fn a_name_in_another_encoding_is_refused() {
        let error = to_text(b"SELECT * FROM `stra\xDFe`".to_vec()).unwrap_err();
        assert!(error.contains("0xDF") && error.contains("utf8mb4"), "{error}");
    }
}
