//! JSON paths: `$.a[0].b`, `$[*]`, `$**.x`, `$[last-1]`, `$[1 to 3]`.
//!
//! ```text
//! path = '$' leg*
//! leg  = '.' ( name | "name" | '*' )  |  '[' ( index | index 'to' index | '*' ) ']'  |  '**' leg
//! index = n | 'last' | 'last' '-' n
//! ```
//! Blanks may stand between all parts. A value that is no array is taken for an array of itself by an index or a range that
//! holds the first element, not by `[*]`. Matches come in the order of the document, the members of an object in MySQL's
//! order; `**` gives a value before what is in it, and no value twice.
//!
//! Following a path may visit a document many times (`$**.a**.b`), so every visited value counts as work of the statement.

use rauk_types::MysqlError;
use rauk_types::json::{Json, JsonRef, Node};
use std::fmt::{self, Write as _};
use std::sync::Arc;

/// ER_INVALID_JSON_PATH.
const INVALID_PATH: u16 = 3143;

/// Legs of one path; more are a path that is wrong.
const MAX_LEGS: usize = 100;

#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    legs: Vec<Leg>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Leg {
    Member(String),
    AnyMember,
    Element(Index),
    Range(Index, Index),
    AnyElement,
    /// `**`: the value and everything in it.
    Ellipsis,
}

/// A place in an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Index {
    First(usize),
    /// Counted from the last element.
    Last(usize),
}

impl Index {
    /// The place in an array of `length` elements; `None`: before its beginning. It may be behind its end.
    pub fn place(self, length: usize) -> Option<usize> {
        match self {
            Index::First(number) => Some(number),
            Index::Last(number) => length.checked_sub(1)?.checked_sub(number),
        }
    }
}

/// Paths that were parsed lately, by their texts.
#[derive(Default)]
pub struct Paths {
    known: Vec<(Box<str>, Arc<Path>)>,
    /// Where the next one goes when there are [`MOST_PATHS`].
    next: usize,
}

/// Paths that a session keeps.
const MOST_PATHS: usize = 32;
/// Bytes of the longest one that it keeps.
const LONGEST_PATH: usize = 1024;

impl Paths {
    /// Error 3143.
    pub fn find(&mut self, text: &str) -> Result<Arc<Path>, MysqlError> {
        if let Some((_, path)) = self.known.iter().find(|(known, _)| **known == *text) {
            return Ok(path.clone());
        }
        let path = Arc::new(Path::parse(text)?);
        if text.len() <= LONGEST_PATH {
            let entry = (Box::from(text), path.clone());
            match self.known.get_mut(self.next) {
                Some(old) => *old = entry,
                None => self.known.push(entry),
            }
            self.next = (self.next + 1) % MOST_PATHS;
        }
        Ok(path)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn blanks(&mut self) {
        self.at += self.text[self.at..].len() - self.text[self.at..].trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn accept(&mut self, what: &str) -> bool {
        self.blanks();
        let found = self.text[self.at..].starts_with(what);
        self.at += if found { what.len() } else { 0 };
        found
    }

    fn word(&mut self) -> &str {
        let from = self.at;
        let rest = &self.text[from..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
        self.at += end;
        &self.text[from..from + end]
    }

    fn path(&mut self) -> Option<Path> {
        let mut legs = Vec::new();
        if !self.accept("$") {
            return None;
        }
        loop {
            self.blanks();
            if self.at == self.text.len() || legs.len() == MAX_LEGS {
                break;
            }
            let leg = self.leg()?;
            legs.push(leg);
        }
        // An ellipsis needs a leg behind it.
        (self.at == self.text.len() && legs.last() != Some(&Leg::Ellipsis)).then_some(Path { legs })
    }

    fn leg(&mut self) -> Option<Leg> {
        if self.accept("**") {
            // `***` is none.
            return (!self.text[self.at..].starts_with('*')).then_some(Leg::Ellipsis);
        }
        if self.accept(".") {
            return self.member();
        }
        if !self.accept("[") {
            return None;
        }
        if self.accept("*") {
            return self.accept("]").then_some(Leg::AnyElement);
        }
        let from = self.index()?;
        if self.accept("]") {
            return Some(Leg::Element(from));
        }
        if !self.accept("to") {
            return None;
        }
        let to = self.index()?;
        let is_ordered = match (from, to) {
            (Index::First(from), Index::First(to)) => from <= to,
            (Index::Last(from), Index::Last(to)) => from >= to,
            _ => true,
        };
        (is_ordered && self.accept("]")).then_some(Leg::Range(from, to))
    }

    fn member(&mut self) -> Option<Leg> {
        if self.accept("*") {
            return Some(Leg::AnyMember);
        }
        self.blanks();
        if self.text[self.at..].starts_with('"') {
            // A name in quotes is a JSON string.
            let rest = &self.text[self.at..];
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, c)| {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                ends
            });
            let quoted = &rest[..end?.0 + 1];
            let Ok(Ok(Json::String(name))) = rauk_types::json::parse(quoted, &mut |_| Ok(())) else { return None };
            let name = name.into_owned();
            self.at += quoted.len();
            return Some(Leg::Member(name));
        }
        let name = self.word();
        let is_name = name.chars().next().is_some_and(|first| !first.is_numeric());
        is_name.then(|| Leg::Member(name.to_string()))
    }

    fn index(&mut self) -> Option<Index> {
        if !self.accept("last") {
            return self.number().map(Index::First);
        }
        if self.accept("-") { self.number().map(Index::Last) } else { Some(Index::Last(0)) }
    }

    fn number(&mut self) -> Option<usize> {
        self.blanks();
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number = rest[..end].parse::<u32>().ok()?;
        self.at += end;
        Some(number as usize)
    }
}

/// Values by their places.
type Known = hashbrown::HashSet<*const u8>;

/// Counts visited values. Errors: 1317, 3024.
pub type Work<'w> = dyn FnMut() -> Result<(), MysqlError> + 'w;

impl Path {
    /// Error 3143.
    pub fn parse(text: &str) -> Result<Path, MysqlError> {
        let mut parser = Parser { text, at: 0 };
        parser.path().ok_or_else(|| {
            let position = text[..parser.at].chars().count().max(1);
            let message = format!("Invalid JSON path expression. The error is around character position {position}.");
            MysqlError::new(INVALID_PATH, message)
        })
    }

    pub fn legs(&self) -> &[Leg] {
        &self.legs
    }

    /// Whether it may find several values.
    pub fn has_wildcard(&self) -> bool {
        self.legs.iter().any(|leg| !matches!(leg, Leg::Member(_) | Leg::Element(_)))
    }

    /// The value that a path without wildcards finds: only what is on the way is read.
    #[inline]
    pub fn get<'v>(&self, document: JsonRef<'v>) -> Result<Option<JsonRef<'v>>, MysqlError> {
        let mut value = document;
        for leg in &self.legs {
            match leg.step(value)? {
                Some(next) => value = next,
                None => return Ok(None),
            }
        }
        Ok(Some(value))
    }

    /// The values that the path finds.
    pub fn find<'v>(&self, document: JsonRef<'v>, work: &mut Work<'_>) -> Result<Vec<JsonRef<'v>>, MysqlError> {
        if !self.has_wildcard() {
            return Ok(self.get(document)?.into_iter().collect());
        }
        let mut found = vec![document];
        for (at, leg) in self.legs.iter().enumerate() {
            let mut next = Vec::new();
            // What an earlier value has brought has brought what is in it too.
            let mut known = Known::new();
            for value in found {
                match leg {
                    Leg::Ellipsis => everything_in(value, &mut known, &mut next, work)?,
                    leg => leg.follow(value, &mut next, work)?,
                }
            }
            // By different ways an ellipsis may come to one value.
            if *leg != Leg::Ellipsis && self.legs[..at].contains(&Leg::Ellipsis) {
                next.retain(|value| known.insert(value.address()));
            }
            found = next;
        }
        Ok(found)
    }

    /// Whether it finds anything.
    pub fn exists(&self, document: JsonRef<'_>, work: &mut Work<'_>) -> Result<bool, MysqlError> {
        Ok(!self.find(document, work)?.is_empty())
    }
}

/// A value before what is in it, each once.
fn everything_in<'v>(
    value: JsonRef<'v>,
    known: &mut Known,
    out: &mut Vec<JsonRef<'v>>,
    work: &mut Work<'_>,
) -> Result<(), MysqlError> {
    work()?;
    if !known.insert(value.address()) {
        return Ok(());
    }
    out.push(value);
    let Some(list) = value.list()? else { return Ok(()) };
    list.iter().try_for_each(|item| everything_in(item?.1, known, out, work))
}

impl Leg {
    /// The one value to which a leg leads that is no wildcard.
    #[inline]
    fn step<'v>(&self, value: JsonRef<'v>) -> Result<Option<JsonRef<'v>>, MysqlError> {
        let place = match (self, value.list()?) {
            (Leg::Member(name), Some(list)) => list.find(name)?.map(|place| (list, place)),
            (Leg::Element(index), Some(list)) if !list.is_object() => {
                index.place(list.len()).filter(|place| *place < list.len()).map(|place| (list, place))
            }
            // Of an array of this value alone.
            (Leg::Element(index), _) => return Ok((index.place(1) == Some(0)).then_some(value)),
            _ => None,
        };
        Ok(place.map(|(list, place)| list.value(place)).transpose()?)
    }

    fn follow<'v>(
        &self,
        value: JsonRef<'v>,
        out: &mut Vec<JsonRef<'v>>,
        work: &mut Work<'_>,
    ) -> Result<(), MysqlError> {
        work()?;
        match (self, value.read()?) {
            (Leg::Member(_) | Leg::Element(_), _) => out.extend(self.step(value)?),
            (Leg::AnyMember, Node::Object(list)) | (Leg::AnyElement, Node::Array(list)) => {
                for item in list.iter() {
                    work()?;
                    out.push(item?.1);
                }
            }
            (Leg::Range(from, to), Node::Array(list)) => {
                let from = from.place(list.len()).unwrap_or(0);
                let Some(to) = to.place(list.len()) else { return Ok(()) };
                for place in from..to.saturating_add(1).min(list.len()) {
                    work()?;
                    out.push(list.value(place)?);
                }
            }
            // Of an array of this value alone.
            (Leg::Range(from, to), _) if from.place(1).is_none_or(|at| at == 0) && to.place(1).is_some() => {
                out.push(value);
            }
            _ => {}
        }
        Ok(())
    }
}

/// As MySQL writes a leg: names that need it are in quotes.
pub fn append_member(name: &str, out: &mut String) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let plain =
        name.chars().next().is_some_and(|first| is_word(first) && !first.is_numeric()) && name.chars().all(is_word);
    out.push('.');
    if plain {
        out.push_str(name);
        return;
    }
    let mut quoted = Vec::new();
    rauk_types::json::append_quoted(name, &mut quoted);
    out.push_str(&String::from_utf8_lossy(&quoted));
}

pub fn append_element(place: usize, out: &mut String) {
    write!(out, "[{place}]").unwrap_or_else(|fmt::Error| unreachable!("a text takes a number"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(document: &str, path: &str) -> String {
        let document = JsonRef::of_text(document).normal(&mut |_| Ok(())).unwrap();
        let path = Path::parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let found = path.find(document.get(), &mut || Ok(())).unwrap();
        let text = |value: JsonRef<'_>| {
            let mut text = Vec::new();
            value.append_text(&mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        found.into_iter().map(text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn legs_find_what_they_name() {
        for (document, path, expected) in [
            (r#"{"a": 1}"#, "$", r#"{"a": 1}"#),
            (r#"{"a": 1}"#, " $ . a ", "1"),
            (r#"{"a": {"b": [1, 2]}}"#, "$.a.b[1]", "2"),
            (r#"{"a b": 1, "é": 2}"#, r#"$."a b""#, "1"),
            (r#"{"a b": 1, "é": 2}"#, "$.é", "2"),
            (r#"{"a\"b": 1}"#, r#"$."a\"b""#, "1"),
            (r#"{"bb": 1, "c": 2}"#, "$.*", "2 1"),
            ("[1, 2, 3]", "$[*]", "1 2 3"),
            ("[1, 2, 3]", "$[last]", "3"),
            ("[1, 2, 3]", "$[ last - 2 ]", "1"),
            ("[1, 2, 3]", "$[last-3]", ""),
            ("[1, 2, 3, 4]", "$[1 to last]", "2 3 4"),
            ("[1, 2, 3, 4]", "$[last-9 to 1]", "1 2"),
            ("[1]", "$[3 to 7]", ""),
            ("7", "$[0]", "7"),
            ("7", "$[last]", "7"),
            ("7", "$[1]", ""),
            ("7", "$[0 to 3]", "7"),
            ("7", "$[*]", ""),
            ("7", "$.a", ""),
            (r#"{"a": {"a": 1}}"#, "$**.a", r#"{"a": 1} 1"#),
            (r#"[[1, 2], [3]]"#, "$**[0]", "[1, 2] 1 2 3"),
            (r#"{"x": {"y": {"y": 5}}}"#, "$**.y**.y", "5"),
        ] {
            assert_eq!(find(document, path), expected, "{path} of {document}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for path in [
            "",
            "a",
            "$a",
            "$.",
            "$.1a",
            "$[",
            "$[]",
            "$[a]",
            "$[1",
            "$**",
            "$***.a",
            "$[2 to 1]",
            "$[1 to]",
            "$.a.",
            "$[99999999999]",
        ] {
            assert_eq!(Path::parse(path).map_err(|error| error.code), Err(3143), "{path}");
        }
        assert!(Path::parse("!@#").unwrap_err().message.ends_with("position 1."));
        assert_eq!(Path::parse(&format!("${}", ".a".repeat(200))).unwrap_err().code, 3143);
    }

    /// By several ellipses a value is reached from each value around it; it is visited once for each leg.
    #[test]
    fn several_ellipses_take_work_of_the_size_of_the_document() {
        let (depth, width) = (90, 2000);
        let text = format!("{}{}1{}", "[".repeat(depth), "1,".repeat(width), "]".repeat(depth));
        let document = JsonRef::of_text(&text).normal(&mut |_| Ok(())).unwrap();
        let mut visits = 0;
        let mut work = || {
            visits += 1;
            Ok(())
        };
        let found = Path::parse("$**[*]**[*]").unwrap().find(document.get(), &mut work).unwrap();
        assert_eq!(found.len(), depth - 2 + width + 1);
        assert!(visits < 10 * (depth + width), "{visits}");
    }
}
