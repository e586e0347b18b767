//! Which texts a query finds, and how relevant they are, as InnoDB computes it.
//!
//! The rank of a text is the sum over the words that found it of `count × idf²`, `idf = log10(rows / rows with the word)`; of
//! a word that all rows have, idf is log10(1.0001). Operators of boolean mode add or take 1, within -1 and 1.
//!
//! A list of items is worked through in three passes: what is without sign or has `>`, `<`, `~`, in the order of the text;
//! then `+`; then `-`. The order shows: `~` lowers what the items before it have found, so it does nothing to what only a `+`
//! finds. A sum of 32-bit floats, so that the digits are InnoDB's.

use super::query::{Item, Node, Operator, Phrase, Query, Term};
use rauk_types::fulltext::Token;
use rauk_types::{Collation, TextParser, WordKeys};
use smallvec::{SmallVec, smallvec};

/// Up to so many terms each token is compared with each.
const FEW: usize = 8;

/// How tokens are compared with terms.
pub(super) struct Matcher {
    parser: TextParser,
    collation: Collation,
    /// ASCII texts are equal when they are without regard to case.
    folds_ascii: bool,
    terms: Vec<Term>,
    /// Of many terms: the keys of whole words in order, with the number of the term, and those of beginnings.
    sorted: Vec<(Vec<u8>, usize)>,
    beginnings: Vec<(Vec<u8>, usize)>,
    keys: WordKeys,
}

impl Matcher {
    pub fn new(terms: Vec<Term>, keys: WordKeys) -> Matcher {
        let collation = keys.collation();
        let folds_ascii =
            [Collation::Utf8mb40900AiCi, Collation::Utf8mb4GeneralCi, Collation::Utf8mb4UnicodeCi].contains(&collation);
        let (mut sorted, mut beginnings) = (Vec::new(), Vec::new());
        let many = terms.len() > FEW;
        for (number, term) in terms.iter().enumerate().filter(|(_, term)| !term.unknown) {
            let mut key = Vec::new();
            if term.prefix {
                keys.encode_prefix(&term.text, &mut key);
                beginnings.push((key, number));
            } else if many {
                keys.encode(&term.text, &mut key);
                sorted.push((key, number));
            }
        }
        sorted.sort();
        Matcher { parser: keys.parser(), collation, folds_ascii, terms, sorted, beginnings, keys }
    }

    /// Sets `counts` to how often each term is in the texts. Of the words that begin with a term, only the first in order is
    /// counted, as InnoDB does.
    pub fn count(&self, texts: &[&str], counts: &mut Vec<u32>) {
        counts.clear();
        counts.resize(self.terms.len(), 0);
        let mut firsts: SmallVec<[Vec<u8>; 2]> = smallvec![vec![]; self.beginnings.len()];
        texts.iter().for_each(|text| self.count_in(text, counts, &mut firsts));
    }

    fn count_in(&self, text: &str, counts: &mut [u32], firsts: &mut [Vec<u8>]) {
        let few = self.terms.len() <= FEW;
        let mut key = Vec::new();
        self.parser.for_each_token(text, |token| {
            if few {
                for (term, count) in self.terms.iter().zip(counts.iter_mut()) {
                    if !term.unknown && !term.prefix && self.is(term, &token) {
                        *count += 1;
                    }
                }
                if self.beginnings.is_empty() {
                    return;
                }
            }
            if !self.parser.indexes(&token, self.collation) {
                return;
            }
            key.clear();
            self.keys.encode(token.text, &mut key);
            if !few && let Ok(at) = self.sorted.binary_search_by(|(known, _)| known.as_slice().cmp(&key)) {
                counts[self.sorted[at].1] += 1;
            }
            for ((start, number), first) in self.beginnings.iter().zip(firsts.iter_mut()) {
                if !key.starts_with(start) {
                    continue;
                }
                let count = &mut counts[*number];
                if *count == 0 || key < *first {
                    first.clone_from(&key);
                    *count = 1;
                } else if key == *first {
                    *count += 1;
                }
            }
        });
    }

    /// Whether a token is a term.
    #[inline]
    fn is(&self, term: &Term, token: &Token<'_>) -> bool {
        // A token of as many bytes as characters is ASCII.
        if self.folds_ascii && term.ascii && token.chars == token.text.len() {
            return term.text.len() == token.text.len() && term.text.eq_ignore_ascii_case(token.text);
        }
        self.equal(&term.text, token.text)
    }

    fn equal(&self, a: &str, b: &str) -> bool {
        a == b || self.collation.equal(a.as_bytes(), b.as_bytes())
    }

    /// Whether one of the texts has a phrase.
    fn has_phrase(&self, phrase: &Phrase, texts: &[&str]) -> bool {
        texts.iter().any(|text| {
            let mut tokens: Vec<Token<'_>> = Vec::new();
            self.parser.for_each_token(text, |token| tokens.push(token));
            match phrase.distance {
                Some(distance) => self.are_near(phrase, &tokens, distance),
                None => {
                    let wanted = &phrase.tokens;
                    let same = |window: &[Token<'_>]| {
                        window.iter().zip(wanted).all(|(token, wanted)| self.equal(wanted, token.text))
                    };
                    tokens.windows(wanted.len()).any(same)
                }
            }
        })
    }

    /// Whether some run of `distance` tokens has all terms of a phrase.
    fn are_near(&self, phrase: &Phrase, tokens: &[Token<'_>], distance: usize) -> bool {
        let mut last: SmallVec<[Option<usize>; 8]> = SmallVec::from_elem(None, phrase.terms.len());
        tokens.iter().enumerate().any(|(at, token)| {
            let mut found = false;
            for (term, last) in phrase.terms.iter().zip(last.iter_mut()) {
                if self.is(&self.terms[*term], token) {
                    *last = Some(at);
                    found = true;
                }
            }
            let first = last.iter().copied().min().flatten();
            found && first.is_some_and(|first| at - first < distance)
        })
    }
}

/// Terms that found a text, by number, ascending.
type Words = SmallVec<[usize; 8]>;

/// A text that a list has found so far.
#[derive(Default)]
struct Found {
    rank: f32,
    words: Words,
}

impl Found {
    fn add_words(&mut self, words: &[usize]) {
        for word in words {
            if let Err(at) = self.words.binary_search(word) {
                self.words.insert(at, *word);
            }
        }
    }

    fn change(&mut self, by: f32) {
        self.rank = (self.rank + by).clamp(-1.0, 1.0);
    }
}

/// A text under evaluation.
pub(super) struct Candidate<'c> {
    pub matcher: &'c Matcher,
    pub texts: &'c [&'c str],
    pub counts: &'c [u32],
}

impl Candidate<'_> {
    /// The rank; `None`: the query does not find the text.
    pub fn rank(&self, query: &Query, idf: &[f64]) -> Option<f32> {
        let found = self.list(&query.nodes)?;
        let mut rank = found.rank;
        for word in found.words {
            let weight = f64::from(self.counts[word]) * idf[word];
            rank += (weight * idf[word]) as f32;
        }
        Some(rank)
    }

    fn item(&self, item: &Item) -> Option<Found> {
        match item {
            Item::Term(term) => {
                (self.counts[*term] > 0).then(|| Found { rank: 0.0, words: SmallVec::from_elem(*term, 1) })
            }
            Item::Phrase(phrase) => {
                let all = phrase.terms.iter().all(|term| self.counts[*term] > 0);
                (all && self.matcher.has_phrase(phrase, self.texts)).then(|| {
                    let mut found = Found::default();
                    found.add_words(&phrase.terms);
                    found
                })
            }
            Item::Group(nodes) => self.list(nodes),
        }
    }

    fn list(&self, nodes: &[Node]) -> Option<Found> {
        let mut found: Option<Found> = None;
        for Node { operator, item } in nodes {
            let by = match operator {
                Operator::Exist | Operator::Ignore => continue,
                Operator::Negate if found.is_none() => continue,
                Operator::None => 0.0,
                Operator::Raise => 1.0,
                Operator::Lower | Operator::Negate => -1.0,
            };
            let Some(of_item) = self.item(item) else { continue };
            // What was found before keeps its rank.
            let known = found.get_or_insert_with(|| Found { rank: of_item.rank, words: Words::new() });
            known.change(by);
            known.add_words(&of_item.words);
        }
        let mut first = true;
        for Node { item, .. } in nodes.iter().filter(|node| node.operator == Operator::Exist) {
            if !first && found.is_none() {
                return None;
            }
            first = false;
            let of_item = self.item(item)?;
            let known = found.get_or_insert_with(Found::default);
            known.change(of_item.rank);
            known.add_words(&of_item.words);
        }
        let ignored = |node: &Node| node.operator == Operator::Ignore && self.item(&node.item).is_some();
        found.filter(|_| !nodes.iter().any(ignored))
    }
}
