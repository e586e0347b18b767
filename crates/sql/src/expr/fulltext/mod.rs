//! MATCH … AGAINST: the state of a search while its statement runs, and its value for a row.
//!
//! A call is a function of the number of its search and of the columns. What is the same for all rows — the text of AGAINST as
//! it was read, how many rows have each word — is made once, before the statement reads its rows (`exec/search`), and kept in
//! the session's context. The value of a row is computed from its texts, so that it is right wherever the row comes from: by the index or by
//! another path, old or newly written. The last row is remembered: conditions, order and list mostly ask for the same one.
//!
//! [`query`] reads the text, [`rank`] says what is found and how relevant it is.

mod query;
mod rank;

pub use query::SearchMode;

use super::eval::Env;
use super::functions::{Function, full_text};
use super::{Context, Expr, ExprKind, Val, budget};
use query::{Item, Node, Operator, Query};
use rank::{Candidate, Matcher};
use rauk_types::key::prefix_successor;
use rauk_types::{DataType, MysqlError, TableSchema, TypeKind, Value, ValueRef, WordKeys};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// The lower and the upper end of a scan.
pub(crate) type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A search that is ready.
pub(crate) struct Search {
    query: Query,
    matcher: Matcher,
    keys: WordKeys,
    /// Rows that have each term.
    rows: Vec<u64>,
    idf: Vec<f64>,
    /// Terms one of which every row has that is found; the fewest rows.
    cover: Vec<usize>,
    /// Beside the only one of these: terms that every such row has too.
    also: Vec<usize>,
}

/// The searches of the running statement.
#[derive(Default)]
pub struct Searches {
    /// `None`: nothing that runs has it.
    list: Vec<Option<Running>>,
}

struct Running {
    search: Arc<Search>,
    /// The texts of the last row, one after the other, and where each ends.
    texts: Vec<u8>,
    ends: SmallVec<[usize; 2]>,
    counts: Vec<u32>,
    rank: Option<f32>,
}

/// Words whose entries are looked at together.
const MOST_COMMON: usize = 4;

/// Texts up to this length are remembered.
const REMEMBERED: usize = 64 << 10;

impl Search {
    /// Reads the text. What the index knows of its terms is to follow ([`Search::learn`]).
    pub fn read(text: &str, mode: SearchMode, keys: &WordKeys) -> Result<Search, MysqlError> {
        let query = query::parse(text, mode, keys.parser(), keys.collation())?;
        let matcher = Matcher::new(query.terms.clone(), keys.clone());
        let count = query.terms.len();
        let (rows, idf) = (vec![0; count], vec![0.0; count]);
        Ok(Search { query, matcher, keys: keys.clone(), rows, idf, cover: vec![], also: vec![] })
    }

    /// The same search with more words, which need not be found.
    pub fn with_words(&self, words: Vec<String>) -> Search {
        let mut query = self.query.clone();
        for text in words {
            query.nodes.push(Node { operator: Operator::None, item: Item::Term(query.terms.len()) });
            let ascii = text.is_ascii();
            query.terms.push(query::Term { text, prefix: false, unknown: false, ascii });
        }
        let matcher = Matcher::new(query.terms.clone(), self.keys.clone());
        let count = query.terms.len();
        let (rows, idf) = (vec![0; count], vec![0.0; count]);
        Search { query, matcher, keys: self.keys.clone(), rows, idf, cover: vec![], also: vec![] }
    }

    /// How many terms it has.
    pub fn terms(&self) -> usize {
        self.query.terms.len()
    }

    /// The entries of a term; `None`: there are none.
    pub fn range(&self, term: usize) -> Option<Range> {
        let term = &self.query.terms[term];
        if term.unknown {
            return None;
        }
        let mut low = Vec::new();
        if !term.prefix {
            self.keys.encode(&term.text, &mut low);
            return Some((Bound::Included(low.clone()), Bound::Included(low)));
        }
        self.keys.encode_prefix(&term.text, &mut low);
        let mut high = low.clone();
        let high = if prefix_successor(&mut high) { Bound::Excluded(high) } else { Bound::Unbounded };
        Some((Bound::Included(low), high))
    }

    /// Takes in how many rows each term has, of all rows of the table.
    pub fn learn(&mut self, rows: Vec<u64>, total: u64) {
        // Rows that are not committed are counted among those of a word only.
        let whole = rows.iter().zip(&self.query.terms).filter(|(_, term)| !term.prefix);
        let total = whole.map(|(rows, _)| *rows).fold(total, u64::max);
        let idf = |rows: &u64| match *rows {
            0 => 0.0,
            rows if rows >= total => 1.0001f64.log10(),
            rows => (total as f64 / rows as f64).log10(),
        };
        self.idf = rows.iter().map(idf).collect();
        self.rows = rows;
        self.cover = self.cover_of(&self.query.nodes);
        self.cover.sort_unstable();
        self.cover.dedup();
        self.also = match self.cover.as_slice() {
            [only] if !self.repeats(*only) => self.required(*only),
            _ => vec![],
        };
    }

    /// Whole words beside `only` that every row has that is found, the rarest first.
    fn required(&self, only: usize) -> Vec<usize> {
        let nodes = &self.query.nodes;
        let exist = nodes.iter().filter(|node| node.operator == Operator::Exist);
        let alone = (nodes.len() == 1).then(|| &nodes[0]).filter(|node| node.operator == Operator::None);
        let mut terms: Vec<usize> = Vec::new();
        for node in exist.chain(alone) {
            match &node.item {
                Item::Term(term) => terms.push(*term),
                Item::Phrase(phrase) => terms.extend(&phrase.terms),
                Item::Group(_) => {}
            }
        }
        terms.retain(|term| *term != only && !self.query.terms[*term].prefix && !self.query.terms[*term].unknown);
        terms.sort_unstable_by_key(|term| (self.rows[*term], *term));
        terms.dedup();
        terms.truncate(MOST_COMMON - 1);
        terms
    }

    /// Terms one of which every row has that is found.
    pub fn cover(&self) -> &[usize] {
        &self.cover
    }

    /// Whole words that every row has too that is found, where the cover is one whole word.
    pub fn also(&self) -> &[usize] {
        &self.also
    }

    /// Whether a row may have several entries among those of a term.
    pub fn repeats(&self, term: usize) -> bool {
        self.query.terms[term].prefix
    }

    fn cost(&self, cover: &[usize]) -> u64 {
        cover.iter().map(|term| self.rows[*term]).sum()
    }

    fn cover_of(&self, nodes: &[Node]) -> Vec<usize> {
        let of_item = |item: &Item| match item {
            Item::Term(term) => vec![*term],
            Item::Phrase(phrase) => {
                let rarest = phrase.terms.iter().min_by_key(|term| self.rows[**term]);
                rarest.copied().into_iter().collect()
            }
            Item::Group(nodes) => self.cover_of(nodes),
        };
        let required = nodes.iter().filter(|node| node.operator == Operator::Exist).map(|node| of_item(&node.item));
        if let Some(best) = required.min_by_key(|cover| self.cost(cover)) {
            return best;
        }
        let finds = |node: &&Node| matches!(node.operator, Operator::None | Operator::Raise | Operator::Lower);
        nodes.iter().filter(finds).flat_map(|node| of_item(&node.item)).collect()
    }

    /// The rank of texts; `None`: they are not found.
    fn rank(&self, texts: &[&str], counts: &mut Vec<u32>) -> Option<f32> {
        self.matcher.count(texts, counts);
        Candidate { matcher: &self.matcher, texts, counts }.rank(&self.query, &self.idf)
    }

    /// Whether texts are found.
    pub fn finds(&self, texts: &[&str]) -> bool {
        self.rank(texts, &mut Vec::new()).is_some()
    }

    /// Adds the words of texts that the query has not, by their keys, with one of their spellings.
    pub fn new_words(&self, texts: &[&str], words: &mut BTreeMap<Vec<u8>, String>) -> usize {
        let (parser, collation) = (self.keys.parser(), self.keys.collation());
        let mut added = 0;
        for text in texts {
            parser.for_each_token(text, |token| {
                if !parser.indexes(&token, collation) {
                    return;
                }
                let mut key = Vec::new();
                self.keys.encode(token.text, &mut key);
                let known =
                    |term: &query::Term| !term.prefix && collation.equal(term.text.as_bytes(), token.text.as_bytes());
                if !words.contains_key(&key) && !self.query.terms.iter().any(known) {
                    added += key.len() + token.text.len() + 96;
                    words.insert(key, token.text.to_string());
                }
            });
        }
        added
    }
}

impl Searches {
    /// The searches of a statement, by their numbers.
    pub(crate) fn begin(&mut self, searches: Vec<Option<Arc<Search>>>) {
        let running =
            |search| Running { search, texts: Vec::new(), ends: SmallVec::new(), counts: Vec::new(), rank: None };
        self.list = searches.into_iter().map(|search| search.map(running)).collect();
    }

    pub(crate) fn end(&mut self) {
        self.list = Vec::new();
    }

    pub(crate) fn get(&self, number: usize) -> &Arc<Search> {
        &self.list[number].as_ref().expect("a search that is read was made").search
    }

    /// Which term of the cover comes first in texts, by its place there.
    pub(crate) fn first_of_cover(&mut self, number: usize, texts: &[&str]) -> Option<usize> {
        self.rank(number, texts);
        let running = self.list[number].as_ref().expect("its rank was computed");
        running.search.cover.iter().position(|term| running.counts[*term] > 0)
    }

    fn rank(&mut self, number: usize, texts: &[&str]) -> Option<f32> {
        let running = self.list[number].as_mut().expect("a search that is read was made");
        let mut start = 0;
        let mut same = running.ends.len() == texts.len();
        for (text, end) in texts.iter().zip(&running.ends) {
            same = same && running.texts[start..*end] == *text.as_bytes();
            start = *end;
        }
        if same && !texts.is_empty() {
            return running.rank;
        }
        running.rank = running.search.rank(texts, &mut running.counts);
        running.texts.clear();
        running.ends.clear();
        if texts.iter().map(|text| text.len()).sum::<usize>() <= REMEMBERED {
            for text in texts {
                running.texts.extend_from_slice(text.as_bytes());
                running.ends.push(running.texts.len());
            }
        }
        running.rank
    }
}

/// MATCH over columns, in the search of this number.
pub(crate) fn call(number: usize, columns: Vec<Expr>) -> Expr {
    let number = Expr {
        kind: ExprKind::Literal(Value::Int(number as i64)),
        ty: DataType::BIGINT,
        nullable: false,
        coercibility: super::types::NUMERIC,
    };
    let arguments = std::iter::once(number).chain(columns).collect();
    Expr {
        kind: ExprKind::Function { function: &full_text::MATCH, arguments },
        ty: DataType::new(TypeKind::Double),
        nullable: false,
        coercibility: super::types::NUMERIC,
    }
}

/// The number of the search and the columns, if the expression is a MATCH.
pub(crate) fn called(expr: &Expr) -> Option<(usize, &[Expr])> {
    let ExprKind::Function { function, arguments } = &expr.kind else { return None };
    if !std::ptr::eq::<Function>(*function, &full_text::MATCH) {
        return None;
    }
    let (number, columns) = arguments.split_first()?;
    let ExprKind::Literal(Value::Int(number)) = number.kind else { return None };
    Some((usize::try_from(number).ok()?, columns))
}

/// The full-text index over exactly these columns, in any order: its position.
pub(crate) fn index_of(schema: &TableSchema, columns: &[usize]) -> Option<usize> {
    schema.indexes.iter().position(|index| {
        let parts = &index.parts;
        let same = parts.iter().all(|part| columns.contains(&part.column))
            && columns.iter().all(|column| parts.iter().any(|part| part.column == *column));
        index.is_full_text() && !index.invisible && same
    })
}

/// The value of MATCH for a row.
pub(super) fn value<'a>(arguments: &'a [Expr], env: &Env<'a>, context: &mut Context) -> Result<Val<'a>, MysqlError> {
    let Some((number, columns)) = arguments.split_first() else { return Ok(Val::Own(Value::Null)) };
    let ExprKind::Literal(Value::Int(number)) = number.kind else { return Ok(Val::Own(Value::Null)) };
    let mut values: SmallVec<[Val<'a>; 4]> = SmallVec::new();
    for column in columns {
        values.push(column.value(env, context)?);
    }
    let mut texts: SmallVec<[&str; 4]> = SmallVec::new();
    for value in &values {
        if let ValueRef::Str(text) = value.as_ref() {
            texts.push(text);
        }
    }
    let bytes = texts.iter().map(|text| text.len()).sum();
    context.budget.work(bytes)?;
    let runner = context.budget.runner(bytes);
    let rank = budget::run(runner, || context.searches.rank(number as usize, &texts));
    Ok(Val::Own(Value::Double(rank.map_or(0.0, f64::from))))
}
