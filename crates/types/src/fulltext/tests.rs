use super::*;
use crate::IndexKeys;
use crate::row::encode_row;
use crate::{Column, ColumnId, DataType, IndexId, IndexPart, TableId, TypeKind, Value};

fn words(text: &str) -> Vec<&str> {
    let mut out = vec![];
    TextParser::Words.for_each_token(text, |token| out.push(token.text));
    out
}

fn ngrams(text: &str) -> Vec<&str> {
    let mut out = vec![];
    TextParser::Ngram.for_each_token(text, |token| out.push(token.text));
    out
}

#[test]
fn words_are_runs_of_letters_digits_marks_and_underscores() {
    assert_eq!(words("MySQL's full-text: snake_case, 42x!"), ["MySQL", "s", "full", "text", "snake_case", "42x"]);
    assert_eq!(words("  "), [""; 0]);
    assert_eq!(words("cafe\u{301} – naïve»été"), ["cafe\u{301}", "naïve", "été"]);
    assert_eq!(words("数据库 база"), ["数据库", "база"]);
    let mut at = vec![];
    for_each_word("é ab", |token| at.push((token.at, token.chars)));
    assert_eq!(at, [(0, 1), (3, 2)]);
}

#[test]
fn ngrams_are_two_characters_without_a_space() {
    assert_eq!(ngrams("数据库x yz"), ["数据", "据库", "库x", "yz"]);
    assert_eq!(ngrams("a b"), [""; 0]);
}

#[test]
fn short_long_and_stop_words_are_not_indexed() {
    let ci = Collation::Utf8mb40900AiCi;
    let indexed =
        |parser: TextParser, text: &str| parser.indexes(&Token { text, at: 0, chars: text.chars().count() }, ci);
    let long = "x".repeat(85);
    assert!(indexed(TextParser::Words, "abc") && indexed(TextParser::Words, &long[..84]));
    for text in ["ab", "The", "where", &long] {
        assert!(!indexed(TextParser::Words, text), "{text}");
    }
    assert!(indexed(TextParser::Words, "whereas"));
    assert!(indexed(TextParser::Ngram, "xy") && !indexed(TextParser::Ngram, "ax") && !indexed(TextParser::Ngram, "to"));
}

#[test]
fn a_row_has_a_key_for_each_of_its_words() {
    let ty = DataType::varchar(200, Collation::Utf8mb40900AiCi);
    let columns = vec![
        Column::new(ColumnId(1), "id", DataType::new(TypeKind::Int), false),
        Column::new(ColumnId(2), "title", ty, true),
        Column::new(ColumnId(3), "body", ty, true),
    ];
    let part = |column| IndexPart { column, prefix: None, descending: false };
    let index = IndexSchema {
        id: IndexId(1),
        name: "f".into(),
        kind: IndexKind::FullText(TextParser::Words),
        parts: vec![part(1), part(2)],
        ..IndexSchema::primary(&[0])
    };
    let table = TableSchema::new(TableId(1), "d", "t", columns, vec![IndexSchema::primary(&[0]), index]);
    let keys = IndexKeys::new(&table, &table.indexes[1]);
    let IndexKeys::Words(def) = &keys else { panic!("a full-text index") };
    let row = |title: Value, body: Value| {
        let mut bytes = vec![];
        encode_row(&table, &[Value::Int(1), title, body], &mut bytes);
        bytes
    };
    let of = |bytes: &[u8]| {
        let mut out = vec![];
        keys.for_each(&RowView::new(&table, 0, bytes), &mut vec![], |key| out.push(key.to_vec()));
        out
    };
    let key = |word: &str| {
        let mut out = vec![];
        def.encode(word, &mut out);
        out
    };
    let bytes = row(Value::from("Zebra apple"), Value::from("APPLE the tree, Äpple"));
    let mut expected = vec![key("apple"), key("tree"), key("zebra")];
    expected.sort();
    assert_eq!(of(&bytes), expected);
    let view = RowView::new(&table, 0, &bytes);
    assert!(keys.has(&view, &key("TREE"), &mut vec![]) && !keys.has(&view, &key("the"), &mut vec![]));
    let mut start = vec![];
    def.encode_prefix("app", &mut start);
    assert!(key("apple").starts_with(&start) && !key("zebra").starts_with(&start));
    assert_eq!(of(&row(Value::Null, Value::Null)), Vec::<Vec<u8>>::new());
}
