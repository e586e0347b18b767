//! LIKE and REGEXP.
//!
//! LIKE compares character by character by the collation's weights of single characters, as MySQL does (`'ß' LIKE 's'` is false in every collation,
//! though they may be equal); spaces at the end count. Of bytes, `_` is one byte. A pattern without an escape or `_` whose only `%` is at its end is a prefix.
//! Behind a `%` place after place is tried. A text that takes more than [`SPARE`] steps so is searched from its beginning again for the segments
//! between the `%`, in linear time ([`find`]). Only the search looks at KILL. Neither copies the text.
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
/// The same beside the rows of other nodes' statements: a millisecond in the worst case.
const BOUNDED_WORK: usize = 1 << 24;
/// Patterns whose compilation takes no longer than that: how many of the sizes they may try, and how long they are.
const BOUNDED_SIZES: usize = 2;
const BOUNDED_LENGTH: usize = 1024;
/// Steps that LIKE takes before it seeks segments, a millisecond or two: more than most texts have characters.
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

    /// Whether a text is like it, character by character.
    pub fn matches_exactly(&self, text: &str) -> bool {
        self.matches(text.chars(), |a, b| a == b, usize::MAX) == Some(true)
    }

    /// `None`: it takes more than `spare` steps.
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
            spare = spare.checked_sub(1)?;
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
                    piece = *start;
                    text = rest.clone();
                }
                None => return Some(false),
            }
        }
    }

    /// The same by segments.
    fn search(
        &self,
        text: impl DoubleEndedIterator<Item = char> + Clone,
        collation: Collation,
        context: &mut Context,
    ) -> Result<bool> {
        let mut units = Units::new(collation);
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
        find::like(text, &segments, &mut units, context)
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
        text: impl DoubleEndedIterator<Item = char> + Clone,
        equal: impl Fn(char, char) -> bool,
        context: &mut Context,
    ) -> Result<bool> {
        if let Some(matches) = pattern.matches(text.clone(), equal, SPARE) {
            return Ok(matches);
        }
        // Units in a list that grows as they come, segments, and what is sought of one of them.
        let most = pattern.pieces.len() * (2 * size_of::<Option<Unit>>() + size_of::<&[Unit]>() + NEEDLE_BYTES);
        context.budget.memory.take(most)?;
        let matches = pattern.search(text, self.collation, context);
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
    /// Most work on one text.
    work: usize,
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

    /// For use beside the rows of other nodes' statements; `None`: it is wrong, or to compile it or to use it may take long.
    pub(crate) fn bounded(pattern: &str, case_insensitive: bool) -> Option<Self> {
        if pattern.len() > BOUNDED_LENGTH {
            return None;
        }
        let flags = RegexpFlags { case_insensitive, ..RegexpFlags::default() };
        let compiled = Self::compile(pattern, flags, &REGEXP_SIZES[..BOUNDED_SIZES]).ok()?;
        Some(RegexpPattern { work: BOUNDED_WORK, ..compiled })
    }

    pub(crate) fn with_flags(pattern: &str, flags: RegexpFlags) -> Result<Self> {
        Self::compile(pattern, flags, &REGEXP_SIZES)
    }

    fn compile(pattern: &str, flags: RegexpFlags, sizes: &[usize]) -> Result<Self> {
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
        for &size in sizes {
            if let Err(regex::Error::CompiledTooBig(_)) = compiled {
                compiled = compile(size).map(|regex| RegexpPattern { regex, size, work: REGEXP_WORK });
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
        if text.len().saturating_mul(self.size) > self.work {
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
    use crate::expr::{Expr, ExprKind};
    use rauk_types::Value;

    fn like(text: &str, pattern: &str) -> bool {
        let collation = Collation::Utf8mb40900AiCi;
        let pattern = LikePattern::new(pattern, Some('\\'));
        let tried = pattern.matches(text.chars(), |a, b| a == b || collation.chars_equal(a, b), usize::MAX).unwrap();
        let mut context = Context::new(std::sync::Arc::new(crate::expr::tests::Variables));
        assert_eq!(pattern.search(text.chars(), collation, &mut context).unwrap(), tried, "{text} {pattern:?}");
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
            ("aab", "aab%_", false),
            ("abab", "%_b_%", true),
            ("abab", "%_b__%", true),
            ("abab", "%_b___%", false),
            ("ab", "ab%ab", false),
            ("xaxbxaab", "%a_b%", true),
            ("axxbaxb", "%a_b%b%", false),
            ("axbaxbb", "%a_b_%b", true),
            ("ÆæAB", "%æ_b", true),
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

    /// One evaluation over a long text looks at KILL, whichever part of it takes the time, and needs no memory for the text.
    #[test]
    fn a_long_text_is_left_when_the_statement_is_killed() {
        use crate::memory::{Memory, Watch};
        use std::sync::Arc;
        let interrupt = Arc::new(rauk_node::transaction::Interrupt::default());
        let watch = Watch::new(interrupt.clone(), rauk_node::Threads::start().unwrap());
        let mut context = Context::new(Arc::new(crate::expr::tests::Variables));
        context.budget.memory = Memory::new(Arc::default(), 1 << 20, watch);
        let long = "a".repeat(1 << 20);
        for (pattern, expected) in [
            ("%_b%", false),
            ("%b", false),
            ("%b%", false),
            ("%a_ab%", false),
            ("a%_a", true),
            ("%a_a_b_%", false),
            ("%a%a_a%", true),
            ("%_%__%", true),
        ] {
            for collation in [Collation::Utf8mb40900AiCi, Collation::Utf8mb4Bin] {
                let ty = DataType::varchar(0, collation);
                let literal = |text: &str| Expr {
                    kind: ExprKind::Literal(Value::Str(text.into())),
                    ty,
                    nullable: false,
                    coercibility: 4,
                };
                let like = Like {
                    expr: literal(&long),
                    pattern: literal(pattern),
                    escape: Some('\\'),
                    negated: false,
                    collation,
                    compiled: Some(LikePattern::new(pattern, Some('\\'))),
                };
                let mut matches = || like.matches(ValueRef::Str(&long), ValueRef::Str(pattern), &mut context);
                interrupt.clear();
                assert_eq!(matches().unwrap(), expected, "{pattern}");
                interrupt.kill();
                let killed = matches().map_err(|error| error.code);
                // What is decided by a few characters needs no look.
                assert!(killed == Err(1317) || pattern == "%b" || expected, "{pattern}: {killed:?}");
            }
        }
        // A pattern as long as the text.
        let pattern = LikePattern::new(&long, None);
        context.budget.memory =
            Memory::new(Arc::default(), 1 << 30, Watch::new(interrupt, rauk_node::Threads::start().unwrap()));
        let killed = pattern.search(long.chars(), Collation::Utf8mb40900AiCi, &mut context);
        assert_eq!(killed.map_err(|error| error.code), Err(1317));
    }

    proptest::proptest! {
        /// Trying places and seeking segments give the same.
        #[test]
        fn both_ways_agree(text in "[abA]{0,12}", pattern in "[abA_%]{0,8}") {
            like(&text, &pattern);
        }

        #[test]
        fn both_ways_agree_where_much_is_unknown(text in "[ab]{0,40}", pattern in "[ab__]{0,4}%[ab__]{0,12}%[ab__]{0,4}") {
            like(&text, &pattern);
        }
    }
}
