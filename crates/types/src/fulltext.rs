//! Full-text indexes: which words a text has, and the keys that a row has for them.
//!
//! A full-text index is an ordered index with several entries a row: one for each distinct word of its columns. The key of
//! an entry is the word's sort key in the collation of the columns, so that words that the collation takes as equal are one
//! word, and the words with a common beginning stand side by side. How often a word is in a row, and where, is not in the
//! index: whoever needs it reads it from the text again.
//!
//! Two parsers cut texts into tokens:
//!
//! | parser | tokens | indexed |
//! |---|---|---|
//! | the built-in one | runs of letters, digits, combining marks and `_` | 3 to 84 characters, no stop word |
//! | `ngram` | every two characters that follow each other, none of them a space | those without a stop word in them |
//!
//! The numbers and the stop words are InnoDB's defaults. They are fixed: entries on all replicas must be the same.
//!
//! Left out: stop words from a table, parser plugins.

#[cfg(test)]
mod tests;

use crate::index_keys::RowKeys;
use crate::key::KeyPart;
use crate::{Collation, IndexKind, IndexSchema, RowView, TableSchema, ValueRef};
use serde::{Deserialize, Serialize};

/// innodb_ft_min_token_size: shorter words are not indexed.
pub const MIN_TOKEN_CHARS: usize = 3;
/// innodb_ft_max_token_size: longer words are not indexed.
pub const MAX_TOKEN_CHARS: usize = 84;
/// ngram_token_size.
pub const NGRAM_CHARS: usize = 2;

/// information_schema.INNODB_FT_DEFAULT_STOPWORD, with the word that MySQL lists twice.
pub const STOP_WORDS: [&str; 36] = [
    "a", "about", "an", "are", "as", "at", "be", "by", "com", "de", "en", "for", "from", "how", "i", "in", "is", "it",
    "la", "of", "on", "or", "that", "the", "this", "to", "was", "what", "when", "where", "who", "will", "with", "und",
    "the", "www",
];

/// How an index cuts texts into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TextParser {
    Words,
    Ngram,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'t> {
    pub text: &'t str,
    /// Where it begins, in bytes.
    pub at: usize,
    pub chars: usize,
}

/// Whether a character is part of a word.
#[inline]
pub fn is_word_char(c: char) -> bool {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => true,
        '\0'..='\x7f' => false,
        // Marks that combine with the letter before them.
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' => true,
        _ => c.is_alphanumeric(),
    }
}

/// Calls `visit` with every run of word characters, short and long ones and stop words included.
#[inline]
pub fn for_each_word<'t>(text: &'t str, mut visit: impl FnMut(Token<'t>)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let (start, mut chars) = (at, 0);
        while at < bytes.len() {
            let byte = bytes[at];
            let length = match byte {
                0..0x80 if byte.is_ascii_alphanumeric() || byte == b'_' => 1,
                0..0x80 => break,
                _ => match text[at..].chars().next() {
                    Some(c) if is_word_char(c) => c.len_utf8(),
                    _ => break,
                },
            };
            at += length;
            chars += 1;
        }
        if chars > 0 {
            visit(Token { text: &text[start..at], at: start, chars });
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
}

/// Calls `visit` with every two characters that follow each other without a space.
pub fn for_each_ngram<'t>(text: &'t str, mut visit: impl FnMut(Token<'t>)) {
    let mut starts = [0; NGRAM_CHARS];
    let mut known = 0;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            known = 0;
            continue;
        }
        if known == NGRAM_CHARS {
            starts.copy_within(1.., 0);
            known -= 1;
        }
        starts[known] = at;
        known += 1;
        if known == NGRAM_CHARS {
            visit(Token { text: &text[starts[0]..at + c.len_utf8()], at: starts[0], chars: NGRAM_CHARS });
        }
    }
}

/// Whether a word is a stop word.
pub fn is_stop_word(word: &str, collation: Collation) -> bool {
    const LONGEST: usize = 5;
    if word.is_ascii() {
        return word.len() <= LONGEST && STOP_WORDS.iter().any(|stop| stop.eq_ignore_ascii_case(word));
    }
    word.len() <= 4 * LONGEST && STOP_WORDS.iter().any(|stop| collation.equal(stop.as_bytes(), word.as_bytes()))
}

fn has_stop_word(token: &str, collation: Collation) -> bool {
    let starts = token.char_indices().map(|(at, _)| at);
    let mut pieces =
        starts.flat_map(|from| token[from..].char_indices().map(move |(at, c)| &token[from..from + at + c.len_utf8()]));
    pieces.any(|piece| is_stop_word(piece, collation))
}

impl TextParser {
    /// Calls `visit` with every token of a text, those that are not indexed too.
    pub fn for_each_token<'t>(self, text: &'t str, visit: impl FnMut(Token<'t>)) {
        match self {
            TextParser::Words => for_each_word(text, visit),
            TextParser::Ngram => for_each_ngram(text, visit),
        }
    }

    /// Whether the index has entries for this token.
    #[inline]
    pub fn indexes(self, token: &Token<'_>, collation: Collation) -> bool {
        match self {
            TextParser::Words => {
                (MIN_TOKEN_CHARS..=MAX_TOKEN_CHARS).contains(&token.chars) && !is_stop_word(token.text, collation)
            }
            TextParser::Ngram => !has_stop_word(token.text, collation),
        }
    }
}

/// How the keys of a full-text index are made.
#[derive(Clone, Debug, PartialEq)]
pub struct WordKeys {
    /// Positions of the columns in the table.
    columns: Vec<usize>,
    parser: TextParser,
    /// A word as a part of a key.
    word: KeyPart,
}

impl WordKeys {
    /// `None`: the index is not a full-text one.
    pub fn new(table: &TableSchema, index: &IndexSchema) -> Option<WordKeys> {
        let IndexKind::FullText(parser) = index.kind else { return None };
        let columns: Vec<usize> = index.parts.iter().map(|part| part.column).collect();
        let ty = table.columns[columns[0]].ty;
        let word = KeyPart { column: columns[0], ty, nullable: false, prefix: None, descending: false };
        Some(WordKeys { columns, parser, word })
    }

    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    pub fn parser(&self) -> TextParser {
        self.parser
    }

    pub fn collation(&self) -> Collation {
        self.word.ty.collation
    }

    /// Appends the key of a word.
    pub fn encode(&self, word: &str, out: &mut Vec<u8>) {
        self.word.encode(ValueRef::Str(word), out);
    }

    /// Appends what the keys of all words that begin with `start` have in common.
    pub fn encode_prefix(&self, start: &str, out: &mut Vec<u8>) {
        self.word.encode_like_prefix(start, out);
    }

    /// The keys of a row.
    pub fn collect(&self, row: &RowView<'_>, words: &mut RowKeys) {
        words.clear();
        let collation = self.collation();
        for &column in &self.columns {
            let ValueRef::Str(text) = row.get(column) else { continue };
            self.parser.for_each_token(text, |token| {
                if self.parser.indexes(&token, collation) {
                    words.push(|out| self.encode(token.text, out));
                }
            });
        }
        words.sort();
    }
}
