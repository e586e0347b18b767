//! Indexes with several entries a row: of the words of a text, and of the elements of an array. Random histories of a table with one, every search checked
//! against the rows, and all entries against all versions ([`Partition::validate`]).

use super::support::*;
use crate::budget::Purpose;
use crate::partition::{ReadAt, ScanRequest};
use crate::row_store::RowId;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_types::json::Json;
use rauk_types::{
    Collation, Column, ColumnId, DataType, Elements, IndexId, IndexKind, IndexPart, IndexSchema, TableSchema,
    TextParser, Timestamp, TypeKind, Value, ValueRef, WordKeys, key, row,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

const BY_WORD: IndexId = IndexId(1);
const WORDS: [&str; 8] = ["apple", "Apple", "pear", "plum", "cherry", "the", "fig", "date_palm"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    Words,
    Elements,
}

const BOTH: [Of; 2] = [Of::Words, Of::Elements];

fn elements() -> Elements {
    Elements { part: 0, ty: DataType::varchar(20, Collation::DEFAULT), unique: false }
}

fn schema(of: Of, indexed: bool) -> Arc<TableSchema> {
    let (ty, kind) = match of {
        Of::Words => (DataType::varchar(200, Collation::DEFAULT), IndexKind::FullText(TextParser::Words)),
        Of::Elements => (DataType::new(TypeKind::Json), IndexKind::Elements(elements())),
    };
    let columns =
        vec![Column::new(ColumnId(0), "id", DataType::BIGINT, false), Column::new(ColumnId(1), "text", ty, true)];
    let mut indexes = vec![IndexSchema::primary(&[0])];
    if indexed {
        indexes.push(IndexSchema {
            id: BY_WORD,
            name: "words".into(),
            kind,
            parts: vec![IndexPart { column: 1, prefix: None, descending: false }],
            ..IndexSchema::primary(&[0])
        });
    }
    Arc::new(TableSchema::new(TABLE, "d", "t", columns, indexes))
}

struct Texts {
    of: Of,
    w: World,
}

impl Texts {
    fn new(of: Of) -> Texts {
        Texts { of, w: World::new(schema(of, true)) }
    }

    /// A text, or an array of its words.
    fn value(&self, text: &str) -> Value {
        match self.of {
            Of::Words => Value::from(text),
            Of::Elements => {
                let words = text.split_whitespace().map(|word| Json::String(Cow::Borrowed(word))).collect();
                Value::Json(Json::Array(words).encode(&mut |_| Ok(())).expect("it is small"))
            }
        }
    }

    fn word(&self, word: &str) -> Vec<u8> {
        let mut key = Vec::new();
        match self.of {
            Of::Words => {
                let words = WordKeys::new(&self.w.schema, &self.w.schema.indexes[1]);
                words.expect("a full-text index").encode(word, &mut key);
            }
            Of::Elements => elements().key_part(1).encode(ValueRef::Str(word), &mut key),
        }
        key
    }

    fn has(&self, text: &str, word: &str) -> bool {
        let left_out = self.of == Of::Words && word == "the";
        !left_out && text.split(' ').any(|known| known.eq_ignore_ascii_case(word))
    }

    fn key(&self, id: i64) -> Vec<u8> {
        let mut key = Vec::new();
        self.w.schema.key_def(self.w.schema.primary()).encode_prefix(&[ValueRef::Int(id)], &mut key);
        key
    }

    fn put(&mut self, txn: &Txn, id: i64, text: &str, new: bool) {
        let key = self.key(id);
        let mut bytes = Vec::new();
        row::encode_row(&self.w.schema, &[Value::Int(id), self.value(text)], &mut bytes);
        let mut access = self.w.access(Some(txn), ReadAt::Newest);
        match new {
            true => self.w.p.insert(TABLE, &key, key::hash(&key), &bytes, &mut access).expect("nothing is in the way"),
            false => assert!(self.w.p.update(TABLE, &key, key::hash(&key), &bytes, &mut access).expect("it is free")),
        }
    }

    fn delete(&mut self, txn: &Txn, id: i64) {
        let key = self.key(id);
        let mut access = self.w.access(Some(txn), ReadAt::Newest);
        assert!(self.w.p.delete(TABLE, &key, key::hash(&key), &mut access).expect("it is free"));
    }

    /// Rows that have a word, as `at` sees them.
    fn find(&mut self, txn: Option<&Txn>, word: &str, at: ReadAt) -> Vec<i64> {
        let key = self.word(word);
        let request =
            ScanRequest { low: Bound::Included(key.clone()), high: Bound::Included(key), ..whole(Some(BY_WORD)) };
        let mut position = Default::default();
        let mut access = self.w.access(txn, at);
        let mut found = Vec::new();
        let mut visit = |row: &crate::partition::ScanRow<'_>| {
            let ValueRef::Int(id) = row.row.get(0) else { panic!("an id") };
            found.push(id);
            crate::partition::Verdict::Keep
        };
        while self.w.p.scan(&request, &mut position, 3, &mut access, &mut visit).expect("a plain scan")
            == crate::partition::ScanEnd::More
        {}
        found.sort_unstable();
        found
    }
}

type Rows = BTreeMap<i64, String>;

fn check(t: &mut Texts, txn: Option<&Txn>, rows: &Rows, at: ReadAt) {
    for word in WORDS {
        let expected: Vec<i64> = rows.iter().filter(|(_, text)| t.has(text, word)).map(|(id, _)| *id).collect();
        assert_eq!(t.find(txn, word, at), expected, "{word} at {at:?}");
    }
}

#[test]
fn random_histories_find_what_the_texts_say() {
    for seed in 0..80 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut t = Texts::new(BOTH[seed as usize % 2]);
        let mut committed = Rows::new();
        let mut snapshots: Vec<(u64, Rows)> = Vec::new();
        for _ in 0..40 {
            let mut txn = t.w.begin();
            let mut own = committed.clone();
            let mut marks = vec![(txn.statement, own.clone())];
            for _ in 0..rng.random_range(1..6) {
                let id = rng.random_range(0..8);
                let count = rng.random_range(0..5);
                let text: Vec<&str> = (0..count).map(|_| WORDS[rng.random_range(0..WORDS.len())]).collect();
                let text = text.join(" ");
                if own.contains_key(&id) && rng.random_bool(0.3) {
                    t.delete(&txn, id);
                    own.remove(&id);
                } else {
                    let new = own.insert(id, text.clone()).is_none();
                    t.put(&txn, id, &text, new);
                }
                t.w.p.validate();
                if rng.random_bool(0.5) {
                    txn.statement += 1;
                    marks.push((txn.statement, own.clone()));
                }
                if rng.random_bool(0.2) {
                    let (statement, before) = marks[rng.random_range(0..marks.len())].clone();
                    t.w.p.rollback_to(txn.r.id, statement);
                    own = before;
                    marks.retain(|(known, _)| *known <= statement);
                    txn.statement = statement;
                    t.w.p.validate();
                }
            }
            txn.statement += 1;
            check(&mut t, Some(&txn), &own, ReadAt::Newest);
            check(&mut t, None, &committed, ReadAt::Newest);
            if rng.random_bool(0.7) {
                t.w.commit(txn);
                committed = own;
            } else {
                t.w.abort(txn);
            }
            t.w.p.validate();
            if rng.random_bool(0.3) {
                snapshots.push((t.w.snapshot(), committed.clone()));
            }
            if snapshots.len() > 3 {
                let (time, _) = snapshots.remove(0);
                t.w.end_snapshot(time);
                t.w.durable = t.w.now;
                t.w.p.collect(t.w.horizon(), usize::MAX);
                t.w.p.validate();
            }
            for (time, rows) in snapshots.clone() {
                check(&mut t, None, &rows, ReadAt::Snapshot(Timestamp(time)));
            }
        }
    }
}

#[test]
fn an_index_that_is_added_later_has_all_words() {
    BOTH.into_iter().for_each(added_later);
}

fn added_later(of: Of) {
    let mut t = Texts::new(of);
    t.w.p.alter_table(schema(of, false));
    let mut rows = Rows::new();
    for id in 0..50 {
        let txn = t.w.begin();
        let text = format!("{} {}", WORDS[id as usize % 8], WORDS[id as usize % 5]);
        t.put(&txn, id, &text, true);
        rows.insert(id, text);
        t.w.commit(txn);
    }
    t.w.p.alter_table(schema(of, true));
    let mut next = Some(RowId(0));
    while let Some(from) = next {
        next = t.w.p.build_index(TABLE, BY_WORD, from, 7, Purpose::Write).expect("there is room");
    }
    t.w.p.validate();
    check(&mut t, None, &rows, ReadAt::Newest);
}

#[test]
fn recovery_fills_it() {
    BOTH.into_iter().for_each(recovered);
}

fn recovered(of: Of) {
    let mut t = Texts::new(of);
    let mut rows = Rows::new();
    for id in 0..50 {
        let text = format!("{} {}", WORDS[id as usize % 8], WORDS[id as usize % 5]);
        let mut bytes = Vec::new();
        row::encode_row(&t.w.schema, &[Value::Int(id), t.value(&text)], &mut bytes);
        t.w.p.restore_put(TABLE, 0, &bytes, Timestamp(1)).expect("there is room");
        rows.insert(id, text);
    }
    t.w.p.finish_restore().expect("there is room");
    t.w.now = 1;
    t.w.p.validate();
    check(&mut t, None, &rows, ReadAt::Newest);
}
