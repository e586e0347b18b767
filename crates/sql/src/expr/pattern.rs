//! LIKE and REGEXP.
//!
//! LIKE compares character by character by the collation's weights of single characters, as MySQL does (`'ß' LIKE 's'` is false in every collation,
//! though they may be equal); spaces at the end count. Of bytes, `_` is one byte. A pattern without an escape or `_` whose only `%` is at its end is a prefix.
//!
//! REGEXP takes the `regex` crate's syntax, which is MySQL's (ICU) without look-around and back-references; those are error 3692. It ignores case where the
//! collation does.

use super::convert::{self, Result};
use super::{Like, Regexp};
use rauk_types::{Collation, DataType, MysqlError, ValueRef};

/// ER_REGEXP_RULE_SYNTAX.
const REGEXP_SYNTAX: u16 = 3685;
/// ER_REGEXP_TIME_OUT and the like: too large when compiled.
const REGEXP_TOO_BIG: u16 = 3688;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// This character.
    One(char),
    /// `_`
    Any,
    /// `%`
    Many,
}

/// A pattern split into its pieces.
#[derive(Clone, Debug, PartialEq)]
pub struct LikePattern {
    pieces: Vec<Piece>,
}

impl LikePattern {
    pub fn new(pattern: &str, escape: Option<char>) -> Self {
        let mut pieces = Vec::with_capacity(pattern.len());
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            if Some(c) == escape {
                pieces.push(Piece::One(chars.next().unwrap_or(c)));
            } else if c == '%' {
                if pieces.last() != Some(&Piece::Many) {
                    pieces.push(Piece::Many);
                }
            } else if c == '_' {
                pieces.push(Piece::Any);
            } else {
                pieces.push(Piece::One(c));
            }
        }
        LikePattern { pieces }
    }

    fn matches<T: Copy>(&self, text: impl Iterator<Item = T> + Clone, equal: impl Fn(T, char) -> bool) -> bool {
        let mut text = text;
        let mut piece = 0;
        // Where to go on when a piece behind the last `%` does not match: the text one further.
        let mut retry = None;
        loop {
            if let Some(Piece::Many) = self.pieces.get(piece) {
                piece += 1;
                if piece == self.pieces.len() {
                    return true;
                }
                retry = Some((piece, text.clone()));
                continue;
            }
            let here = text.next();
            let matched = match (self.pieces.get(piece), here) {
                (None, None) => return true,
                (Some(Piece::Any), Some(_)) => true,
                (Some(Piece::One(c)), Some(t)) => equal(t, *c),
                // The text ended before the pattern.
                (Some(_), None) => return false,
                (None, Some(_)) => false,
                (Some(Piece::Many), _) => unreachable!("handled above"),
            };
            if matched {
                piece += 1;
                continue;
            }
            match &mut retry {
                Some((start, rest)) => {
                    if rest.next().is_none() {
                        return false;
                    }
                    piece = *start;
                    text = rest.clone();
                }
                None => return false,
            }
        }
    }

    /// Characters that every match begins with: for index ranges. `None` when it begins with a wildcard.
    pub fn prefix(&self) -> Option<String> {
        let prefix: String =
            self.pieces.iter().map_while(|p| if let Piece::One(c) = p { Some(*c) } else { None }).collect();
        (!prefix.is_empty()).then_some(prefix)
    }

    /// Whether it is a text followed by `%`: the prefix decides alone.
    pub fn is_prefix(&self) -> bool {
        matches!(self.pieces.split_last(), Some((Piece::Many, rest)) if rest.iter().all(|p| matches!(p, Piece::One(_))))
    }
}

impl Like {
    /// The characters that a value must begin with to match this pattern, and whether that is all there is to it (`'abc%'`).
    pub fn prefix_of(&self, pattern: &str) -> Option<(String, bool)> {
        let pattern = LikePattern::new(pattern, self.escape);
        pattern.prefix().map(|prefix| (prefix, pattern.is_prefix()))
    }

    pub(crate) fn matches(&self, value: ValueRef<'_>, pattern: ValueRef<'_>) -> bool {
        if self.collation == Collation::Binary {
            let (value, text) =
                (convert::text_bytes(value, &self.expr.ty), convert::text_bytes(pattern, &self.pattern.ty));
            // Each byte is a character of its own.
            let text: String = text.iter().map(|b| char::from(*b)).collect();
            return LikePattern::new(&text, self.escape).matches(value.iter().copied(), |b, c| char::from(b) == c);
        }
        let value = convert::text(value, &self.expr.ty);
        let collation = self.collation;
        let equal = |a: char, b: char| a == b || collation.chars_equal(a, b);
        match &self.compiled {
            Some(compiled) => compiled.matches(value.chars(), equal),
            None => {
                let text = convert::text(pattern, &self.pattern.ty);
                LikePattern::new(&text, self.escape).matches(value.chars(), equal)
            }
        }
    }
}

/// A compiled regular expression; equal when its text is.
#[derive(Clone, Debug)]
pub struct RegexpPattern(regex::Regex);

impl PartialEq for RegexpPattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl RegexpPattern {
    /// Compiles; errors 3685 for a wrong pattern, 3688 for one that is too large.
    pub fn new(pattern: &str, case_insensitive: bool) -> Result<Self> {
        if pattern.is_empty() {
            return Err(MysqlError::new(REGEXP_SYNTAX, "Illegal argument to a regular expression."));
        }
        regex::RegexBuilder::new(pattern)
            .case_insensitive(case_insensitive)
            .size_limit(1 << 20)
            .nest_limit(100)
            .build()
            .map(RegexpPattern)
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => {
                    MysqlError::new(REGEXP_TOO_BIG, "Overflow in the regular expression backtrack stack.")
                }
                _ => MysqlError::new(
                    REGEXP_SYNTAX,
                    format!("Syntax error in regular expression: '{}'", convert::shown(pattern.as_bytes())),
                ),
            })
    }
}

impl Regexp {
    pub(crate) fn matches(&self, value: ValueRef<'_>, pattern: ValueRef<'_>) -> Result<bool> {
        let value = convert::text(value, &self.expr.ty);
        match &self.compiled {
            Some(compiled) => Ok(compiled.0.is_match(&value)),
            None => {
                let text = convert::text(pattern, &DataType::varchar(0, Collation::Utf8mb4Bin));
                Ok(RegexpPattern::new(&text, self.case_insensitive)?.0.is_match(&value))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str) -> bool {
        let collation = Collation::Utf8mb40900AiCi;
        LikePattern::new(pattern, Some('\\')).matches(text.chars(), |a, b| a == b || collation.chars_equal(a, b))
    }

    #[test]
    fn wildcards() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("a", "", false),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "a_c", true),
            ("abc", "a_", false),
            ("abc", "%%c%", true),
            ("aXbXc", "a%b%c", true),
            ("aab", "%ab", true),
            ("mississippi", "m%iss%pp_", true),
            ("ABC", "abc", true),
            ("é", "E", true),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("a ", "a", false),
            ("a\\", "a\\", true),
        ] {
            assert_eq!(like(text, pattern), expected, "{text} LIKE {pattern}");
        }
    }

    #[test]
    fn prefixes() {
        let pattern = |p: &str| LikePattern::new(p, Some('\\'));
        assert_eq!(pattern("abc%").prefix().as_deref(), Some("abc"));
        assert!(pattern("abc%").is_prefix() && !pattern("ab_c%").is_prefix());
        assert_eq!(pattern("a\\%b%").prefix().as_deref(), Some("a%b"));
        assert_eq!(pattern("%a").prefix(), None);
    }

    /// Patterns that make naive backtracking exponential.
    #[test]
    fn many_wildcards_take_no_time() {
        assert!(!like(&"a".repeat(2000), &format!("{}b", "%a".repeat(200))));
    }
}
