//! Tokens of an XPath.

#[derive(Clone, Debug, PartialEq)]
pub enum Token<'t> {
    /// A name, with its prefix if it has one.
    Name(&'t str),
    /// A name before `::`.
    Axis(&'t str),
    /// A name before `(`.
    Function(&'t str),
    /// With the digits behind its point.
    Number(f64, u8),
    Text(&'t str),
    /// `$@name`, and `$name`, which nothing defines.
    UserVariable(&'t str),
    Variable(&'t str),
    Mark(&'static str),
    End,
}

pub struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

/// Longer ones before their beginnings.
const MARKS: [&str; 20] =
    ["//", "/", "[", "]", "(", ")", ",", "@", "..", ".", "|", "+", "-", "!=", "<=", "<", ">=", ">", "=", "*"];

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Lexer<'t> {
        Lexer { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn take(&mut self, length: usize) -> &'t str {
        let taken = &self.rest()[..length];
        self.at += length;
        taken
    }

    fn name_length(text: &str) -> usize {
        match text.chars().next() {
            Some(c) if begins_name(c) => text.find(|c| !continues_name(c)).unwrap_or(text.len()),
            _ => 0,
        }
    }

    /// The next token and where it begins; nothing where no token begins.
    pub fn next(&mut self) -> (usize, Option<Token<'t>>) {
        self.at += self.rest().len() - self.rest().trim_start().len();
        let begin = self.at;
        (begin, self.token())
    }

    fn token(&mut self) -> Option<Token<'t>> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Some(Token::End) };
        if matches!(first, '"' | '\'') {
            let length = rest[1..].find(first)?;
            self.at += 1;
            let text = self.take(length);
            self.at += 1;
            return Some(Token::Text(text));
        }
        if first.is_ascii_digit() {
            let whole = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let fraction = match rest[whole..].strip_prefix('.') {
                Some(digits) => 1 + digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()),
                None => 0,
            };
            let digits = u8::try_from(fraction.saturating_sub(1)).ok()?;
            return self.take(whole + fraction).parse().ok().map(|number| Token::Number(number, digits));
        }
        if begins_name(first) {
            return Some(self.name());
        }
        if first == '$' {
            let user = rest[1..].starts_with('@');
            let begin = if user { 2 } else { 1 };
            let length = rest[begin..].find(|c| !continues_name(c) && c != '$').unwrap_or(rest.len() - begin);
            if length == 0 {
                return None;
            }
            self.at += begin;
            let name = self.take(length);
            return Some(if user { Token::UserVariable(name) } else { Token::Variable(name) });
        }
        let mark = MARKS.iter().find(|mark| rest.starts_with(**mark))?;
        self.at += mark.len();
        Some(Token::Mark(mark))
    }

    fn name(&mut self) -> Token<'t> {
        let rest = self.rest();
        let mut length = Self::name_length(rest);
        if let Some(behind) = rest[length..].strip_prefix(':').filter(|behind| !behind.starts_with(':')) {
            let second = Self::name_length(behind);
            length += if second > 0 { 1 + second } else { 0 };
        }
        let name = self.take(length);
        let behind = self.rest().trim_start();
        if behind.starts_with("::") {
            self.at = self.text.len() - behind.len() + 2;
            return Token::Axis(name);
        }
        if behind.starts_with('(') { Token::Function(name) } else { Token::Name(name) }
    }
}
