//! LIKE and REGEXP.
//!
//! LIKE compares character by character by the collation's weights of single characters, as MySQL does (`'ß' LIKE 's'` is false in every collation,
//! though they may be equal); spaces at the end count. Of bytes, `_` is one byte. A pattern without an escape or `_` whose only `%` is at its end is a prefix.
//! Behind a `%` place after place is tried, without a copy of anything; when that has cost more than [`SPARE`] steps, the segments between the `%`
//! are sought in linear time instead ([`find`]).
//!
//! REGEXP takes the `regex` crate's syntax, which is MySQL's (ICU) without look-around and back-references; those are error 3692. It ignores case where the
//! collation does. Its time is that of the pattern's states times the text's length; so a large pattern is refused over a long text (3699).

use super::convert::{self, Result};
use super::find::{self, NEEDLE_BYTES, Unit, Units};
use super::{Context, Like, Regexp};
use crate::memory::{LARGE, Watched};
use rauk_types::{Collation, DataType, MysqlError, ValueRef};

/// ER_REGEXP_RULE_SYNTAX.
const REGEXP_SYNTAX: u16 = 3685;
/// ER_REGEXP_TIME_OUT and the like: too large when compiled.
const REGEXP_TOO_BIG: u16 = 3688;

/// ER_REGEXP_TIME_OUT.
const REGEXP_TIME_OUT: u16 = 3699;
/// Sizes of compiled patterns: the first that a pattern fits into is its own.
const REGEXP_SIZES: [usize; 4] = [2 << 10, 16 << 10, 128 << 10, 1 << 20];
/// The size of a pattern times the length of a text: some seconds in the worst case, which nothing interrupts.
const REGEXP_WORK: usize = 1 << 36;
/// Steps back that LIKE takes before it seeks segments: more than most texts have characters.
const SPARE: usize = 64 << 10;

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
    /// What a byte of the pattern takes.
    pub const BYTES: usize = size_of::<Piece>();

    pub fn new(pattern: &str, escape: Option<char>) -> Self {
        LikePattern::of(pattern.chars(), pattern.len(), escape)
    }

    /// `most`: as many characters there are at most.
    fn of(mut chars: impl Iterator<Item = char>, most: usize, escape: Option<char>) -> Self {
        let mut pieces = Vec::with_capacity(most);
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

    /// `None`: it takes more than `spare` steps back.
    fn matches<T: Copy>(
        &self,
        text: impl Iterator<Item = T> + Clone,
        equal: impl Fn(T, char) -> bool,
        mut spare: usize,
    ) -> Option<bool> {
        let mut text = text;
        let mut piece = 0;
        // Where to go on when a piece behind the last `%` does not match: the text one further.
        let mut retry = None;
        loop {
            if let Some(Piece::Many) = self.pieces.get(piece) {
                piece += 1;
                if piece == self.pieces.len() {
                    return Some(true);
                }
                retry = Some((piece, text.clone()));
                continue;
            }
            let here = text.next();
            let matched = match (self.pieces.get(piece), here) {
                (None, None) => return Some(true),
                (Some(Piece::Any), Some(_)) => true,
                (Some(Piece::One(c)), Some(t)) => equal(t, *c),
                // The text ended before the pattern.
                (Some(_), None) => return Some(false),
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
                        return Some(false);
                    }
                    spare = spare.checked_sub(piece - *start)?;
                    piece = *start;
                    text = rest.clone();
                }
                None => return Some(false),
            }
        }
    }

    /// The same by segments. `text`: as many units as it has characters.
    fn search(&self, text: Vec<Unit>, units: &mut Units, context: &mut Context) -> Result<bool> {
        let unit = |piece: &Piece| match piece {
            Piece::One(c) => Some(Some(units.unit(*c))),
            Piece::Any => Some(None),
            Piece::Many => None,
        };
        let pieces: Vec<Option<Unit>> =
            context.budget.memory.while_it_may(self.pieces.iter(), |pieces| pieces.filter_map(unit).collect())?;
        let mut rest = &pieces[..];
        let mut segments = Vec::new();
        for segment in self.pieces.split(|piece| *piece == Piece::Many) {
            let (segment, behind) = rest.split_at(segment.len());
            segments.push(segment);
            rest = behind;
        }
        find::like(&text, &segments, context)
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

    pub(crate) fn matches(&self, value: ValueRef<'_>, pattern: ValueRef<'_>, context: &mut Context) -> Result<bool> {
        let long = pattern.as_bytes().map_or(0, <[u8]>::len);
        let held = if self.compiled.is_none() && long >= LARGE { long * size_of::<Piece>() } else { 0 };
        context.budget.memory.take(held)?;
        let matches = self.matches_counted(value, pattern, context);
        context.budget.memory.give(held);
        matches
    }

    fn matches_counted(&self, value: ValueRef<'_>, pattern: ValueRef<'_>, context: &mut Context) -> Result<bool> {
        if self.collation == Collation::Binary {
            let (value, text) =
                (convert::text_bytes(value, &self.expr.ty), convert::text_bytes(pattern, &self.pattern.ty));
            // Each byte is a character of its own.
            let text: String = text.iter().map(|b| char::from(*b)).collect();
            let pattern = LikePattern::new(&text, self.escape);
            let bytes = value.iter().map(|byte| char::from(*byte));
            return self.decide(&pattern, bytes, |a, b| a == b, context);
        }
        let value = convert::text(value, &self.expr.ty);
        let collation = self.collation;
        let equal = |a: char, b: char| a == b || collation.chars_equal(a, b);
        match &self.compiled {
            Some(compiled) => self.decide(compiled, value.chars(), equal, context),
            None => {
                let text = convert::text(pattern, &self.pattern.ty);
                let of = |chars: Watched<'_, std::str::Chars<'_>>| LikePattern::of(chars, text.len(), self.escape);
                let pattern = context.budget.memory.while_it_may(text.chars(), of)?;
                self.decide(&pattern, value.chars(), equal, context)
            }
        }
    }

    fn decide(
        &self,
        pattern: &LikePattern,
        text: impl Iterator<Item = char> + Clone,
        equal: impl Fn(char, char) -> bool,
        context: &mut Context,
    ) -> Result<bool> {
        if let Some(matches) = pattern.matches(text.clone(), equal, SPARE) {
            return Ok(matches);
        }
        let most = text.size_hint().1.unwrap_or(0) * size_of::<Unit>() + pattern.pieces.len() * (8 + NEEDLE_BYTES + 16);
        context.budget.memory.take(most)?;
        let mut units = Units::new(self.collation);
        let text = context.budget.memory.while_it_may(text, |text| text.map(|c| units.unit(c)).collect())?;
        let matches = pattern.search(text, &mut units, context);
        context.budget.memory.give(most);
        matches
    }
}

/// A compiled regular expression; equal when its text is.
#[derive(Clone, Debug)]
pub struct RegexpPattern {
    regex: regex::Regex,
    /// Bytes, at most.
    size: usize,
}

impl PartialEq for RegexpPattern {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

/// How a pattern matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RegexpFlags {
    pub case_insensitive: bool,
    /// `^` and `$` stand at the ends of lines too.
    pub multi_line: bool,
    pub dot_matches_new_line: bool,
}

impl RegexpPattern {
    /// Compiles; errors 3685 for a wrong pattern, 3688 for one that is too large.
    pub fn new(pattern: &str, case_insensitive: bool) -> Result<Self> {
        Self::with_flags(pattern, RegexpFlags { case_insensitive, ..RegexpFlags::default() })
    }

    pub(crate) fn with_flags(pattern: &str, flags: RegexpFlags) -> Result<Self> {
        if pattern.is_empty() {
            return Err(MysqlError::new(REGEXP_SYNTAX, "Illegal argument to a regular expression."));
        }
        let compile = |size: usize| {
            let mut builder = regex::RegexBuilder::new(pattern);
            builder.case_insensitive(flags.case_insensitive).multi_line(flags.multi_line);
            builder.dot_matches_new_line(flags.dot_matches_new_line);
            builder.size_limit(size).nest_limit(100).build()
        };
        let mut compiled = Err(regex::Error::CompiledTooBig(0));
        for size in REGEXP_SIZES {
            if let Err(regex::Error::CompiledTooBig(_)) = compiled {
                compiled = compile(size).map(|regex| RegexpPattern { regex, size });
            }
        }
        compiled.map_err(|error| match error {
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

impl RegexpPattern {
    /// For use on a text. Error 3699 where that may take long.
    pub(crate) fn on(&self, text: &str) -> Result<&regex::Regex> {
        if text.len().saturating_mul(self.size) > REGEXP_WORK {
            return Err(MysqlError::new(REGEXP_TIME_OUT, "Timeout exceeded in regular expression match."));
        }
        Ok(&self.regex)
    }

    fn is_match(&self, text: &str) -> Result<bool> {
        Ok(self.on(text)?.is_match(text))
    }
}

impl Regexp {
    pub(crate) fn matches(&self, value: ValueRef<'_>, pattern: ValueRef<'_>) -> Result<bool> {
        let value = convert::text(value, &self.expr.ty);
        match &self.compiled {
            Some(compiled) => compiled.is_match(&value),
            None => {
                let text = convert::text(pattern, &DataType::varchar(0, Collation::Utf8mb4Bin));
                RegexpPattern::new(&text, self.case_insensitive)?.is_match(&value)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str) -> bool {
        let collation = Collation::Utf8mb40900AiCi;
        let pattern = LikePattern::new(pattern, Some('\\'));
        let tried = pattern.matches(text.chars(), |a, b| a == b || collation.chars_equal(a, b), usize::MAX).unwrap();
        if pattern.pieces.contains(&Piece::Many) {
            let mut units = Units::new(collation);
            let text = text.chars().map(|c| units.unit(c)).collect();
            let mut context = Context::new(std::sync::Arc::new(crate::expr::tests::Variables));
            assert_eq!(pattern.search(text, &mut units, &mut context).unwrap(), tried);
        }
        tried
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

    proptest::proptest! {
        /// Trying places and seeking segments give the same.
        #[test]
        fn both_ways_agree(text in "[abA]{0,12}", pattern in "[abA_%]{0,8}") {
            like(&text, &pattern);
        }
    }
}
