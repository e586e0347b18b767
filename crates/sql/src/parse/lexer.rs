//! Text to tokens, by MySQL's lexical rules.
//!
//! A token is a kind and a byte range of the source: nothing is copied, and an error message or a column name is a slice of what
//! the client wrote. Strings are unescaped only when a parser asks for their value ([`unescape`]).
//!
//! The rules that differ from other dialects: `--` begins a comment only before white space; `#` always does; `/*!80036 … */` is code
//! when the number is at most [`VERSION`] (no number: always), or [`RAUK_VERSION`], and a comment otherwise, as is `/*M! … */`, MariaDB's own; `/*+ … */` hints
//! are comments; an identifier may begin with digits; behind a dot everything word-like is an identifier; `@name` and `@@name` are one
//! token each. Quotes follow sql_mode ([`Mode`]).

/// The version that conditional comments are compared with, as MySQL 8.0.36 does.
pub const VERSION: u32 = 80_036;
/// Conditional comments that only Rauk reads: no version of MySQL or MariaDB reaches the number.
pub const RAUK_VERSION: u32 = 990_001;

/// The parts of sql_mode that change how text is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mode {
    /// `"x"` is an identifier.
    pub ansi_quotes: bool,
    /// A backslash in a string is a backslash.
    pub no_backslash_escapes: bool,
    /// `||` concatenates.
    pub pipes_as_concat: bool,
    /// NOT binds as tightly as `!`.
    pub high_not_precedence: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The end of the text.
    End,
    /// A name or keyword without quotes.
    Word,
    /// A name in backquotes (or double quotes, in ANSI_QUOTES).
    Quoted,
    String,
    /// `N'…'`
    National,
    /// `x'…'` and `0x…`
    Hex,
    /// `b'…'` and `0b…`
    Bit,
    Integer,
    /// Digits with a point.
    Decimal,
    /// Digits with an exponent.
    Float,
    /// `?`
    Placeholder,
    /// `@name`, with the at sign; quoted names too.
    UserVariable,
    /// `@@name` or `@@scope.name`, with the at signs.
    SystemVariable,
    LParen,
    RParen,
    LBrace,
    RBrace,
    Comma,
    Dot,
    Semicolon,
    Colon,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Eq,
    Lt,
    Gt,
    Le,
    Ge,
    Ne,
    NullEq,
    ShiftLeft,
    ShiftRight,
    Amp,
    AmpAmp,
    Pipe,
    PipePipe,
    Caret,
    Tilde,
    Bang,
    Assign,
    Arrow,
    LongArrow,
    At,
    /// A character that begins no token, an unclosed string or an unclosed comment.
    Bad,
}

/// A kind and a byte range of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
}

impl Token {
    pub fn text<'a>(&self, sql: &'a str) -> &'a str {
        &sql[self.start as usize..self.end as usize]
    }
}

#[derive(Clone)]
pub struct Lexer<'a> {
    sql: &'a str,
    bytes: &'a [u8],
    position: usize,
    mode: Mode,
    /// Inside `/*! … */` whose content is code.
    in_code_comment: bool,
    /// A comment was passed that held code.
    pub saw_code_comment: bool,
    last: Kind,
    last_end: usize,
}

const fn word_table() -> [bool; 256] {
    let mut table = [false; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        table[i] = b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80;
        i += 1;
    }
    table
}

/// Bytes of names without quotes: letters, digits, `_`, `$`, everything beyond ASCII.
static WORD: [bool; 256] = word_table();

pub fn is_word_byte(byte: u8) -> bool {
    WORD[byte as usize]
}

impl<'a> Lexer<'a> {
    pub fn new(sql: &'a str, mode: Mode) -> Self {
        Lexer {
            sql,
            bytes: sql.as_bytes(),
            position: 0,
            mode,
            in_code_comment: false,
            saw_code_comment: false,
            last: Kind::End,
            last_end: 0,
        }
    }

    #[inline]
    fn at(&self, position: usize) -> u8 {
        self.bytes.get(position).copied().unwrap_or(0)
    }

    /// The next token; [`Kind::End`] again and again at the end.
    #[inline]
    pub fn next_token(&mut self) -> Token {
        let token = match self.skip_blanks() {
            Ok(()) => self.scan(),
            Err(start) => {
                self.position = self.bytes.len();
                Token { kind: Kind::Bad, start: start as u32, end: self.position as u32 }
            }
        };
        self.last = token.kind;
        self.last_end = token.end as usize;
        token
    }

    /// Passes white space and comments. `Err`: where a comment begins that has no end.
    #[inline]
    fn skip_blanks(&mut self) -> Result<(), usize> {
        loop {
            match self.at(self.position) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.position += 1,
                b'#' => self.skip_line(),
                b'-' if self.at(self.position + 1) == b'-' && self.ends_dashes(self.position + 2) => self.skip_line(),
                b'/' if self.at(self.position + 1) == b'*' => self.skip_comment()?,
                b'*' if self.in_code_comment && self.at(self.position + 1) == b'/' => {
                    self.in_code_comment = false;
                    self.position += 2;
                }
                _ => return Ok(()),
            }
        }
    }

    fn ends_dashes(&self, position: usize) -> bool {
        position >= self.bytes.len() || self.bytes[position] <= b' '
    }

    fn skip_line(&mut self) {
        while self.position < self.bytes.len() && self.bytes[self.position] != b'\n' {
            self.position += 1;
        }
    }

    fn skip_comment(&mut self) -> Result<(), usize> {
        let start = self.position;
        let mut inside = start + 2;
        if self.at(inside) == b'!' {
            inside += 1;
            let digits = (0..6).take_while(|&i| self.at(inside + i).is_ascii_digit()).count();
            let number: u32 = self.sql[inside..inside + digits].parse().unwrap_or(0);
            if digits < 5 || number <= VERSION || number == RAUK_VERSION {
                self.position = if digits < 5 { inside } else { inside + digits };
                self.in_code_comment = true;
                self.saw_code_comment = true;
                return Ok(());
            }
            // Skipped code may hold comments of its own.
            let mut depth = 1;
            let mut position = inside + digits;
            while position + 1 < self.bytes.len() {
                match (self.bytes[position], self.bytes[position + 1]) {
                    (b'*', b'/') => {
                        depth -= 1;
                        position += 2;
                        if depth == 0 {
                            self.position = position;
                            return Ok(());
                        }
                    }
                    (b'/', b'*') => {
                        depth += 1;
                        position += 2;
                    }
                    _ => position += 1,
                }
            }
            return Err(start);
        }
        match self.sql[inside..].find("*/") {
            Some(length) => {
                self.position = inside + length + 2;
                Ok(())
            }
            None => Err(start),
        }
    }

    #[inline]
    fn take(&mut self, kind: Kind, length: usize) -> Token {
        let start = self.position;
        self.position += length;
        Token { kind, start: start as u32, end: self.position as u32 }
    }

    fn scan(&mut self) -> Token {
        let start = self.position;
        let Some(&byte) = self.bytes.get(start) else {
            return self.take(Kind::End, 0);
        };
        let next = self.at(start + 1);
        match byte {
            b'0'..=b'9' => self.scan_number(),
            b'.' => {
                let qualifies = matches!(self.last, Kind::Word | Kind::Quoted) && self.last_end == start;
                if next.is_ascii_digit() && !qualifies { self.scan_number() } else { self.take(Kind::Dot, 1) }
            }
            b'\'' => self.scan_string(Kind::String, start, b'\''),
            b'"' if self.mode.ansi_quotes => self.scan_quoted(Kind::Quoted, start, b'"'),
            b'"' => self.scan_string(Kind::String, start, b'"'),
            b'`' => self.scan_quoted(Kind::Quoted, start, b'`'),
            b'x' | b'X' if next == b'\'' => self.scan_digits(Kind::Hex),
            b'b' | b'B' if next == b'\'' => self.scan_digits(Kind::Bit),
            b'n' | b'N' if next == b'\'' => self.scan_string(Kind::National, start + 1, b'\''),
            b'@' => self.scan_variable(),
            b'(' => self.take(Kind::LParen, 1),
            b')' => self.take(Kind::RParen, 1),
            b'{' => self.take(Kind::LBrace, 1),
            b'}' => self.take(Kind::RBrace, 1),
            b',' => self.take(Kind::Comma, 1),
            b';' => self.take(Kind::Semicolon, 1),
            b'+' => self.take(Kind::Plus, 1),
            b'-' if next == b'>' && self.at(start + 2) == b'>' => self.take(Kind::LongArrow, 3),
            b'-' if next == b'>' => self.take(Kind::Arrow, 2),
            b'-' => self.take(Kind::Minus, 1),
            b'*' => self.take(Kind::Star, 1),
            b'/' => self.take(Kind::Slash, 1),
            b'%' => self.take(Kind::Percent, 1),
            b'=' => self.take(Kind::Eq, 1),
            b'<' => match next {
                b'=' if self.at(start + 2) == b'>' => self.take(Kind::NullEq, 3),
                b'=' => self.take(Kind::Le, 2),
                b'>' => self.take(Kind::Ne, 2),
                b'<' => self.take(Kind::ShiftLeft, 2),
                _ => self.take(Kind::Lt, 1),
            },
            b'>' => match next {
                b'=' => self.take(Kind::Ge, 2),
                b'>' => self.take(Kind::ShiftRight, 2),
                _ => self.take(Kind::Gt, 1),
            },
            b'!' if next == b'=' => self.take(Kind::Ne, 2),
            b'!' => self.take(Kind::Bang, 1),
            b'&' if next == b'&' => self.take(Kind::AmpAmp, 2),
            b'&' => self.take(Kind::Amp, 1),
            b'|' if next == b'|' => self.take(Kind::PipePipe, 2),
            b'|' => self.take(Kind::Pipe, 1),
            b'^' => self.take(Kind::Caret, 1),
            b'~' => self.take(Kind::Tilde, 1),
            b':' if next == b'=' => self.take(Kind::Assign, 2),
            b':' => self.take(Kind::Colon, 1),
            b'?' => self.take(Kind::Placeholder, 1),
            _ if WORD[byte as usize] => {
                let length = self.word_length(start);
                self.take(Kind::Word, length)
            }
            _ => self.take(Kind::Bad, 1),
        }
    }

    #[inline]
    fn word_length(&self, start: usize) -> usize {
        self.bytes[start..].iter().position(|&b| !WORD[b as usize]).unwrap_or(self.bytes.len() - start)
    }

    fn digits(&self, mut position: usize) -> usize {
        while self.at(position).is_ascii_digit() {
            position += 1;
        }
        position
    }

    fn scan_number(&mut self) -> Token {
        let start = self.position;
        if self.last == Kind::Dot && self.last_end == start {
            let length = self.word_length(start);
            return self.take(Kind::Word, length);
        }
        let word_end = start + self.word_length(start);
        if self.bytes[start] == b'0' && matches!(self.at(start + 1), b'x' | b'b') {
            let hex = self.bytes[start + 1] == b'x';
            let digits = &self.bytes[start + 2..word_end];
            let fits = |b: &u8| if hex { b.is_ascii_hexdigit() } else { matches!(b, b'0' | b'1') };
            if !digits.is_empty() && digits.iter().all(fits) {
                return self.take(if hex { Kind::Hex } else { Kind::Bit }, word_end - start);
            }
        }
        let mut end = self.digits(start);
        let mut kind = Kind::Integer;
        if self.at(end) == b'.' {
            kind = Kind::Decimal;
            end = self.digits(end + 1);
        }
        if matches!(self.at(end), b'e' | b'E') {
            let sign = usize::from(matches!(self.at(end + 1), b'+' | b'-'));
            let exponent_end = self.digits(end + 1 + sign);
            let complete = exponent_end > end + 1 + sign;
            // Behind a point it is a number in any case: `1.5e` is none, where `1e` is a name.
            if kind == Kind::Decimal && !complete {
                return self.take(Kind::Bad, exponent_end - start);
            }
            if complete && (kind == Kind::Decimal || !WORD[self.at(exponent_end) as usize]) {
                return self.take(Kind::Float, exponent_end - start);
            }
        }
        if kind == Kind::Integer && word_end > end {
            // `1st` is a name.
            return self.take(Kind::Word, word_end - start);
        }
        self.take(kind, end - start)
    }

    /// A string whose opening quote is at `open`; the token begins at the present position.
    fn scan_string(&mut self, kind: Kind, open: usize, quote: u8) -> Token {
        let escapes = !self.mode.no_backslash_escapes;
        let mut position = open + 1;
        while position < self.bytes.len() {
            let byte = self.bytes[position];
            if byte == quote {
                if self.at(position + 1) == quote {
                    position += 2;
                    continue;
                }
                return self.take(kind, position + 1 - self.position);
            }
            position += if byte == b'\\' && escapes { 2 } else { 1 };
        }
        self.take(Kind::Bad, self.bytes.len() - self.position)
    }

    fn scan_quoted(&mut self, kind: Kind, open: usize, quote: u8) -> Token {
        let mut position = open + 1;
        while position < self.bytes.len() {
            if self.bytes[position] == quote {
                if self.at(position + 1) != quote {
                    return self.take(kind, position + 1 - self.position);
                }
                position += 1;
            }
            position += 1;
        }
        self.take(Kind::Bad, self.bytes.len() - self.position)
    }

    /// `x'…'` or `b'…'`: only digits between the quotes, hexadecimal ones in pairs.
    fn scan_digits(&mut self, kind: Kind) -> Token {
        let open = self.position + 2;
        let length = self.bytes[open..]
            .iter()
            .position(|&b| if kind == Kind::Hex { !b.is_ascii_hexdigit() } else { !matches!(b, b'0' | b'1') })
            .unwrap_or(self.bytes.len() - open);
        if self.at(open + length) == b'\'' && (kind == Kind::Bit || length % 2 == 0) {
            self.take(kind, length + 3)
        } else {
            self.take(Kind::Bad, 1)
        }
    }

    fn scan_variable(&mut self) -> Token {
        let start = self.position;
        let variable = |b: u8| WORD[b as usize] || b == b'.';
        if self.at(start + 1) == b'@' {
            let mut end = start + 2;
            loop {
                if self.at(end) == b'`' {
                    match self.bytes[end + 1..].iter().position(|&b| b == b'`') {
                        Some(length) => end += length + 2,
                        None => return self.take(Kind::Bad, 2),
                    }
                } else if end < self.bytes.len() && variable(self.bytes[end]) {
                    end += 1;
                } else {
                    break;
                }
            }
            return if end == start + 2 {
                self.take(Kind::Bad, 2)
            } else {
                self.take(Kind::SystemVariable, end - start)
            };
        }
        match self.at(start + 1) {
            b'`' => self.scan_quoted(Kind::UserVariable, start + 1, b'`'),
            quote @ (b'\'' | b'"') => self.scan_string(Kind::UserVariable, start + 1, quote),
            _ => {
                let length =
                    self.bytes[start + 1..].iter().position(|&b| !variable(b)).unwrap_or(self.bytes.len() - start - 1);
                self.take(if length == 0 { Kind::At } else { Kind::UserVariable }, length + 1)
            }
        }
    }
}

/// The value of a string token's content (between the quotes).
pub fn unescape(content: &str, quote: char, mode: Mode) -> String {
    let escapes = !mode.no_backslash_escapes;
    let plain = !content.contains(quote) && (!escapes || !content.contains('\\'));
    if plain {
        return content.to_string();
    }
    let mut out = String::with_capacity(content.len());
    let mut chars = content.chars();
    while let Some(c) = chars.next() {
        if c == quote {
            // Only doubled quotes stand inside.
            chars.next();
            out.push(quote);
        } else if c == '\\' && escapes {
            match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('b') => out.push('\u{8}'),
                Some('0') => out.push('\0'),
                Some('Z') => out.push('\u{1a}'),
                // LIKE patterns keep these two for themselves.
                Some(c @ ('%' | '_')) => {
                    out.push('\\');
                    out.push(c);
                }
                Some(c) => out.push(c),
                None => out.push('\\'),
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// A quoted name's text: quotes removed, doubled ones made single. Words stay as they are.
pub fn unquote_name(text: &str) -> String {
    let quote = match text.as_bytes().first() {
        Some(b'`') => "`",
        Some(b'"') => "\"",
        _ => return text.to_string(),
    };
    text[1..text.len() - 1].replace(&quote.repeat(2), quote)
}

/// The bytes of a [`Kind::Hex`] or [`Kind::Bit`] token, as MySQL pads them on the left.
pub fn literal_digits(text: &str) -> &str {
    match text.as_bytes() {
        [b'0', ..] => &text[2..],
        _ => &text[2..text.len() - 1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lex(sql: &str) -> Vec<(Kind, &str)> {
        lex_mode(sql, Mode::default())
    }

    fn lex_mode(sql: &str, mode: Mode) -> Vec<(Kind, &str)> {
        let mut lexer = Lexer::new(sql, mode);
        let mut out = Vec::new();
        loop {
            let token = lexer.next_token();
            if token.kind == Kind::End {
                return out;
            }
            out.push((token.kind, token.text(sql)));
        }
    }

    fn texts(sql: &str) -> Vec<&str> {
        lex(sql).into_iter().map(|(_, t)| t).collect()
    }

    #[test]
    fn numbers_and_names() {
        assert_eq!(
            lex("1 1.5 .5 1e3 1.5E-3 1."),
            [
                (Kind::Integer, "1"),
                (Kind::Decimal, "1.5"),
                (Kind::Decimal, ".5"),
                (Kind::Float, "1e3"),
                (Kind::Float, "1.5E-3"),
                (Kind::Decimal, "1.")
            ]
        );
        assert_eq!(
            lex("1st a.1 a.5b 1e"),
            [
                (Kind::Word, "1st"),
                (Kind::Word, "a"),
                (Kind::Dot, "."),
                (Kind::Word, "1"),
                (Kind::Word, "a"),
                (Kind::Dot, "."),
                (Kind::Word, "5b"),
                (Kind::Word, "1e")
            ]
        );
        assert_eq!(
            lex("0x1F 0xg x'AB' b'01' 0b11 N'x' x'1'"),
            [
                (Kind::Hex, "0x1F"),
                (Kind::Word, "0xg"),
                (Kind::Hex, "x'AB'"),
                (Kind::Bit, "b'01'"),
                (Kind::Bit, "0b11"),
                (Kind::National, "N'x'"),
                (Kind::Bad, "x"),
                (Kind::String, "'1'")
            ]
        );
    }

    #[test]
    fn strings_and_variables() {
        assert_eq!(
            lex(r#"'it''s' 'a\'b' "x""y" `q``r`"#),
            [
                (Kind::String, "'it''s'"),
                (Kind::String, r"'a\'b'"),
                (Kind::String, "\"x\"\"y\""),
                (Kind::Quoted, "`q``r`")
            ]
        );
        assert_eq!(
            lex("@a @'b c' @`d` @@x @@global.`y` a@b @ c"),
            [
                (Kind::UserVariable, "@a"),
                (Kind::UserVariable, "@'b c'"),
                (Kind::UserVariable, "@`d`"),
                (Kind::SystemVariable, "@@x"),
                (Kind::SystemVariable, "@@global.`y`"),
                (Kind::Word, "a"),
                (Kind::UserVariable, "@b"),
                (Kind::At, "@"),
                (Kind::Word, "c")
            ]
        );
        assert_eq!(lex("'open"), [(Kind::Bad, "'open")]);
        let ansi = Mode { ansi_quotes: true, no_backslash_escapes: true, ..Mode::default() };
        assert_eq!(lex_mode(r#""a" 'b\'"#, ansi), [(Kind::Quoted, "\"a\""), (Kind::String, r"'b\'")]);
        assert_eq!(unescape(r"a''b\n\%\\\x", '\'', Mode::default()), "a'b\n\\%\\x");
        assert_eq!(unescape(r"a\n", '\'', ansi), r"a\n");
    }

    #[test]
    fn comments() {
        assert_eq!(texts("a -- b\nc # d\n e /* f */ g --h"), ["a", "c", "e", "g", "-", "-", "h"]);
        assert_eq!(
            texts("a /*!40101 b */ c /*!80037 d */ e /*! f */ /*!999999 /* x */ y */ g /*M! h */"),
            ["a", "b", "c", "e", "f", "g"]
        );
        assert_eq!(texts("'/* x */' /*+ hint */ b /*!50000 'x*/y' */"), ["'/* x */'", "b", "'x*/y'"]);
        assert_eq!(lex("a /* b"), [(Kind::Word, "a"), (Kind::Bad, "/* b")]);
        assert_eq!(texts("a--"), ["a"]);
    }
}
