//! What AGAINST says: from its text to terms and operators, as InnoDB reads it.
//!
//! ```text
//! natural    words; "…" is a phrase
//! boolean    query:  item …
//!            item:   [+ - > < ~] (word | word* | "…" | "…" @n | ( query ))
//! ```
//! A word of the text may be several words of the index (`full:text`): each of them has the operator, and only the last the
//! `*`. Of those, what is too short is left out, but for the first. A phrase of which the index has one word is that word,
//! one without any says nothing. With the ngram parser a word in boolean mode is the phrase of its ngrams; with `*` it is the
//! words that begin with it if it is shorter than an ngram.
//!
//! Errors: 1064, with InnoDB's text.

use crate::hash::KeyMap;
use rauk_types::error::codes;
use rauk_types::fulltext::{MAX_TOKEN_CHARS, MIN_TOKEN_CHARS, NGRAM_CHARS, Token as Piece};
use rauk_types::{Collation, MysqlError, TextParser};

/// How AGAINST is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchMode {
    Natural,
    Boolean,
    /// Natural, and then once more with the words of what was found.
    Expansion,
}

/// A word that is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub text: String,
    /// Every word that begins with it.
    pub prefix: bool,
    /// No index has it: a stop word, or too short or too long.
    pub unknown: bool,
    pub ascii: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    None,
    /// `+`
    Exist,
    /// `-`
    Ignore,
    /// `>`
    Raise,
    /// `<`
    Lower,
    /// `~`
    Negate,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    /// By its number.
    Term(usize),
    Phrase(Phrase),
    Group(Vec<Node>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Phrase {
    /// All its tokens, those that are not indexed too.
    pub tokens: Vec<String>,
    /// Those that are.
    pub terms: Vec<usize>,
    /// `@n`: all terms within so many words, in any order.
    pub distance: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub operator: Operator,
    pub item: Item,
}

/// A text of AGAINST that has been read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Query {
    pub nodes: Vec<Node>,
    pub terms: Vec<Term>,
}

impl Query {
    /// Numbers the terms in the order in which they are worked through: so are the parts of a rank added up.
    fn in_order(mut self) -> Query {
        fn visit(nodes: &[Node], order: &mut Vec<usize>) {
            let later = |node: &&Node| matches!(node.operator, Operator::Exist | Operator::Ignore);
            let of = |operator: Operator| nodes.iter().filter(move |node| node.operator == operator);
            let first = nodes.iter().filter(|node| !later(node));
            for node in first.chain(of(Operator::Exist)).chain(of(Operator::Ignore)) {
                match &node.item {
                    Item::Term(term) => order.push(*term),
                    Item::Phrase(phrase) => order.extend(&phrase.terms),
                    Item::Group(nodes) => visit(nodes, order),
                }
            }
        }
        fn renumber(nodes: &mut [Node], order: &[usize]) {
            let number = |term: &mut usize| *term = order[*term];
            for node in nodes {
                match &mut node.item {
                    Item::Term(term) => number(term),
                    Item::Phrase(phrase) => phrase.terms.iter_mut().for_each(number),
                    Item::Group(nodes) => renumber(nodes, order),
                }
            }
        }
        let mut visited = Vec::new();
        visit(&self.nodes, &mut visited);
        // By the old numbers the new ones.
        let mut order = vec![usize::MAX; self.terms.len()];
        let mut terms = Vec::with_capacity(order.len());
        for term in visited {
            if order[term] == usize::MAX {
                order[term] = terms.len();
                terms.push(self.terms[term].clone());
            }
        }
        renumber(&mut self.nodes, &order);
        Query { nodes: self.nodes, terms }
    }
}

/// More than this is no text that somebody wrote; each level takes stack.
const MAX_DEPTH: usize = 100;

#[derive(Clone, Debug, PartialEq)]
enum Lexeme<'t> {
    Term(&'t str),
    Number(&'t str),
    Text(&'t str),
    Sign(char),
}

pub(super) fn parse(
    text: &str,
    mode: SearchMode,
    parser: TextParser,
    collation: Collation,
) -> Result<Query, MysqlError> {
    let mut reader = Reader {
        lexemes: lexemes(text, mode),
        at: 0,
        parser,
        collation,
        mode,
        terms: vec![],
        known: KeyMap::default(),
    };
    let nodes = reader.list(0)?;
    match reader.peek() {
        None => Ok(Query { nodes, terms: reader.terms }.in_order()),
        Some(_) => Err(reader.unexpected(", expecting $end")),
    }
}

fn lexemes(text: &str, mode: SearchMode) -> Vec<Lexeme<'_>> {
    let boolean = mode == SearchMode::Boolean;
    let is_sign = |c: char| boolean && matches!(c, '(' | ')' | '+' | '-' | '<' | '>' | '~' | '*' | '@');
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let behind = &rest[c.len_utf8()..];
        if c.is_whitespace() || c == '%' {
            rest = behind;
        } else if c == '"' {
            // A quote without its other end says nothing.
            match behind.find(['"', '\n']).filter(|end| behind.as_bytes()[*end] == b'"') {
                Some(end) => {
                    out.push(Lexeme::Text(&behind[..end]));
                    rest = &behind[end + 1..];
                }
                None => rest = behind,
            }
        } else if is_sign(c) {
            out.push(Lexeme::Sign(c));
            rest = behind;
        } else {
            let ends = |c: char| c.is_whitespace() || c == '%' || c == '"' || is_sign(c);
            let end = rest.find(ends).unwrap_or(rest.len());
            let word = &rest[..end];
            out.push(match word.bytes().all(|byte| byte.is_ascii_digit()) {
                true => Lexeme::Number(word),
                false => Lexeme::Term(word),
            });
            rest = &rest[end..];
        }
    }
    out
}

struct Reader<'t> {
    lexemes: Vec<Lexeme<'t>>,
    at: usize,
    parser: TextParser,
    collation: Collation,
    mode: SearchMode,
    terms: Vec<Term>,
    /// Their numbers, by what makes them equal.
    known: KeyMap<usize>,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<&Lexeme<'t>> {
        self.lexemes.get(self.at)
    }

    fn accept(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(&Lexeme::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn unexpected(&self, expecting: &str) -> MysqlError {
        let found = match self.peek() {
            None => "$end".to_string(),
            Some(Lexeme::Term(_)) => "FTS_TERM".to_string(),
            Some(Lexeme::Number(_)) => "FTS_NUMB".to_string(),
            Some(Lexeme::Text(_)) => "FTS_TEXT".to_string(),
            Some(Lexeme::Sign(sign)) => format!("'{sign}'"),
        };
        MysqlError::new(codes::PARSE_ERROR, format!("syntax error, unexpected {found}{expecting}"))
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, MysqlError> {
        let mut nodes = Vec::new();
        loop {
            let operator = match self.peek() {
                None | Some(Lexeme::Sign(')' | '@')) => return Ok(nodes),
                Some(Lexeme::Sign('+')) => Operator::Exist,
                Some(Lexeme::Sign('-')) => Operator::Ignore,
                Some(Lexeme::Sign('>')) => Operator::Raise,
                Some(Lexeme::Sign('<')) => Operator::Lower,
                Some(Lexeme::Sign('~')) => Operator::Negate,
                Some(_) => Operator::None,
            };
            self.at += usize::from(operator != Operator::None);
            if self.accept('(') {
                if depth == MAX_DEPTH {
                    return Err(MysqlError::new(codes::PARSE_ERROR, "syntax error, memory exhausted"));
                }
                let inner = self.list(depth + 1)?;
                if !self.accept(')') {
                    return Err(self.unexpected(""));
                }
                if !inner.is_empty() {
                    nodes.push(Node { operator, item: Item::Group(inner) });
                }
                continue;
            }
            self.operand(operator, &mut nodes)?;
        }
    }

    /// A word or phrase, behind its operator.
    fn operand(&mut self, operator: Operator, nodes: &mut Vec<Node>) -> Result<(), MysqlError> {
        let mut stars = false;
        while self.accept('*') {
            stars = true;
        }
        match self.peek().cloned() {
            Some(Lexeme::Term(word) | Lexeme::Number(word)) => {
                self.at += 1;
                // A star with nothing behind it that it could stand before.
                let prefix = self.accept('*');
                self.word(word, prefix, operator, nodes);
                Ok(())
            }
            Some(Lexeme::Text(text)) if !stars => {
                self.at += 1;
                let mut distance = None;
                if self.accept('@') {
                    let Some(Lexeme::Number(digits)) = self.peek() else {
                        return Err(self.unexpected(", expecting FTS_NUMB"));
                    };
                    distance = Some(digits.parse().unwrap_or(usize::MAX));
                    self.at += 1;
                }
                self.phrase(text, distance, operator, nodes);
                Ok(())
            }
            _ if stars => Err(self.unexpected(", expecting FTS_TERM or FTS_NUMB or '*'")),
            _ => Err(self.unexpected("")),
        }
    }

    fn term(&mut self, text: &str, prefix: bool, unknown: bool) -> usize {
        let mut key = vec![u8::from(prefix)];
        self.collation.sort_key(text.as_bytes(), &mut key);
        let next = self.terms.len();
        let number = *self.known.entry(key.into_boxed_slice()).or_insert(next);
        if number == next {
            self.terms.push(Term { text: text.to_string(), prefix, unknown, ascii: text.is_ascii() });
        }
        number
    }

    fn word(&mut self, word: &str, prefix: bool, operator: Operator, nodes: &mut Vec<Node>) {
        match self.parser {
            TextParser::Words => {
                let mut pieces: Vec<Piece<'_>> = Vec::new();
                self.parser.for_each_token(word, |piece| {
                    if (pieces.is_empty() || piece.chars >= MIN_TOKEN_CHARS) && piece.chars <= MAX_TOKEN_CHARS {
                        pieces.push(piece);
                    }
                });
                for (number, piece) in pieces.iter().enumerate() {
                    let prefix = prefix && number + 1 == pieces.len();
                    let unknown = !prefix && !self.parser.indexes(piece, self.collation);
                    let item = Item::Term(self.term(piece.text, prefix, unknown));
                    nodes.push(Node { operator, item });
                }
            }
            TextParser::Ngram => {
                let chars = word.chars().count();
                if chars < NGRAM_CHARS {
                    let item = Item::Term(self.term(word, prefix, !prefix));
                    nodes.push(Node { operator, item });
                } else if self.mode == SearchMode::Boolean {
                    self.phrase(word, None, operator, nodes);
                } else {
                    let mut pieces: Vec<Piece<'_>> = Vec::new();
                    self.parser.for_each_token(word, |piece| pieces.push(piece));
                    pieces.retain(|piece| self.parser.indexes(piece, self.collation));
                    for piece in &pieces {
                        let item = Item::Term(self.term(piece.text, false, false));
                        nodes.push(Node { operator, item });
                    }
                }
            }
        }
    }

    fn phrase(&mut self, text: &str, distance: Option<usize>, operator: Operator, nodes: &mut Vec<Node>) {
        let mut pieces: Vec<Piece<'_>> = Vec::new();
        self.parser.for_each_token(text, |piece| pieces.push(piece));
        let mut terms = Vec::new();
        for piece in &pieces {
            if self.parser.indexes(piece, self.collation) {
                terms.push(self.term(piece.text, false, false));
            }
        }
        let tokens = pieces.iter().map(|piece| piece.text.to_string()).collect();
        let item = match terms.as_slice() {
            [] => return,
            [term] => Item::Term(*term),
            _ => Item::Phrase(Phrase { tokens, terms, distance }),
        };
        nodes.push(Node { operator, item });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, mode: SearchMode) -> String {
        fn list(query: &Query, nodes: &[Node]) -> String {
            let one = |node: &Node| {
                let sign = match node.operator {
                    Operator::None => "",
                    Operator::Exist => "+",
                    Operator::Ignore => "-",
                    Operator::Raise => ">",
                    Operator::Lower => "<",
                    Operator::Negate => "~",
                };
                let term = |at: &usize| {
                    let Term { text, prefix, unknown, .. } = &query.terms[*at];
                    format!("{}{text}{}", if *unknown { "?" } else { "" }, if *prefix { "*" } else { "" })
                };
                match &node.item {
                    Item::Term(at) => format!("{sign}{}", term(at)),
                    Item::Phrase(phrase) => format!("{sign}\"{}\"{:?}", phrase.tokens.join(" "), phrase.distance),
                    Item::Group(nodes) => format!("{sign}({})", list(query, nodes)),
                }
            };
            nodes.iter().map(one).collect::<Vec<_>>().join(" ")
        }
        match parse(text, mode, TextParser::Words, Collation::DEFAULT) {
            Ok(query) => list(&query, &query.nodes),
            Err(error) => error.message,
        }
    }

    #[test]
    fn boolean_texts_are_read_as_innodb_reads_them() {
        for (text, expected) in [
            ("+apple -pie >one <two ~three", "+apple -pie >one <two ~three"),
            ("full-text", "full -text"),
            ("+full:text ab,cde", "+full +text ?ab cde"),
            ("cde,ab", "cde"),
            ("+(>apple <pie) ban*", "+(>apple <pie) ban*"),
            ("\"the pie\" \"cherry the pie\" @4", "pie \"cherry the pie\"Some(4)"),
            ("+\"\" apple ()", "apple"),
            ("*apple +the", "apple +?the"),
            ("\"apple", "apple"),
            ("apple%pie", "apple pie"),
            ("+>apple", "syntax error, unexpected '>'"),
            ("apple(", "syntax error, unexpected $end"),
            ("apple)", "syntax error, unexpected ')', expecting $end"),
            ("apple+", "syntax error, unexpected $end"),
            ("@apple", "syntax error, unexpected '@', expecting $end"),
            ("*", "syntax error, unexpected $end, expecting FTS_TERM or FTS_NUMB or '*'"),
            ("apple**", "syntax error, unexpected $end, expecting FTS_TERM or FTS_NUMB or '*'"),
            ("\"apple pie\"@x", "syntax error, unexpected FTS_TERM, expecting FTS_NUMB"),
            ("", ""),
        ] {
            assert_eq!(shown(text, SearchMode::Boolean), expected, "{text}");
        }
        let deep = "(".repeat(1000);
        assert_eq!(shown(&deep, SearchMode::Boolean), "syntax error, memory exhausted");
    }

    #[test]
    fn natural_texts_have_no_operators_but_quotes() {
        assert_eq!(shown("+apple -pie (juice) Apple", SearchMode::Natural), "apple pie juice apple");
        assert_eq!(shown("\"apple juice\" x", SearchMode::Natural), "\"apple juice\"None ?x");
    }

    #[test]
    fn ngrams_of_a_word_are_a_phrase_in_boolean_mode() {
        let read = |text, mode| parse(text, mode, TextParser::Ngram, Collation::DEFAULT).unwrap();
        let query = read("数据库", SearchMode::Boolean);
        let Item::Phrase(phrase) = &query.nodes[0].item else { panic!("{query:?}") };
        assert_eq!(phrase.tokens, ["数据", "据库"]);
        assert_eq!(read("数据库", SearchMode::Natural).nodes.len(), 2);
        let query = read("数*", SearchMode::Boolean);
        assert!(query.terms[0].prefix && !query.terms[0].unknown);
    }
}
