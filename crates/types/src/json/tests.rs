use super::*;
use crate::{Date, DateTime, Decimal, Time};
use proptest::prelude::*;
use std::borrow::Cow;
use std::cmp::Ordering;

fn free(_: usize) -> Result<(), MysqlError> {
    Ok(())
}

fn stored(text: &str) -> Vec<u8> {
    let tree = parse(text, &mut free).unwrap().unwrap_or_else(|invalid| panic!("{text}: {invalid:?}"));
    tree.encode(&mut free).unwrap()
}

fn shown(stored: &[u8]) -> String {
    let mut out = Vec::new();
    JsonRef::stored(stored).append_text(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn key(stored: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    JsonRef::stored(stored).append_key(&mut out).unwrap();
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What lies in rows and logs.
#[test]
fn the_layout_is_frozen() {
    for (text, bytes) in [
        ("null", "010400"),
        ("true", "010401"),
        ("false", "010402"),
        ("-1", "0105ffff"),
        ("70000", "010770110100"),
        ("-3000000000", "010900a22f4dffffffff"),
        ("18446744073709551615", "010affffffffffffffff"),
        ("1.5", "010b000000000000f83f"),
        (r#""aé""#, "010c0361c3a9"),
        ("[]", "010200000400"),
        ("[1, \"b\", 70000]", "01 02 0300 1300 05 0100 0c 0d00 07 0f00 0162 70110100"),
        (r#"{"bb": true, "a": [0]}"#, "01 00 0200 1c00 1200 0100 1300 0200 02 1500 04 0100 61 6262 0100 0700 05 0000"),
    ] {
        assert_eq!(hex(&stored(text)), bytes.replace(' ', ""), "{text}");
    }
    let opaque = [
        (Json::Decimal(Decimal::new(-125, 2)), "010ff6020283"),
        (Json::Date(Date::from_parts(2024, 2, 29)), "010f0a085dd00f0000000000"),
        (Json::Time(Time::clipped(-1)), "010f0b08ffffffffffffffff"),
        (Json::Opaque(field::VAR_STRING, Cow::Borrowed(b"ab")), "010ffd026162"),
    ];
    for (json, bytes) in opaque {
        assert_eq!(hex(&json.encode(&mut free).unwrap()), bytes, "{json:?}");
    }
}

/// From MySQL's manual.
#[test]
fn documents_are_as_large_as_mysqls() {
    for (text, size) in [
        (r#"[100, "sakila", [1, 3, 5], 425.05]"#, 45),
        (r#"{"a": 1000, "b": "a", "c": "[1, 3, 5, 7]"}"#, 44),
        (r#"{"a": 1000, "b": "wxyz", "c": "[1, 3, 5, 7]"}"#, 47),
        (r#"[100, "json", [[10, 20, 30], 3, 5], 425.05]"#, 56),
    ] {
        assert_eq!(stored(text).len() - 1, size, "{text}");
    }
}

#[test]
fn documents_are_normalised() {
    for (text, normal) in [
        (r#" {"bb":1,"a":[1.0,true,null,"x\"y"], "a" : {"z":1e300}}"#, r#"{"a": {"z": 1e300}, "bb": 1}"#),
        (r#"{"key1": "value1", "key1": "value2"}"#, r#"{"key1": "value2"}"#),
        (r#""\u00e9\ud83d\ude00\n\u0001/\/""#, "\"é😀\\n\\u0001//\""),
        (
            "[-0, 0.10, 1E2, 9223372036854775808, 18446744073709551616]",
            "[0, 0.1, 100.0, 9223372036854775808, 1.8446744073709552e19]",
        ),
        ("{}", "{}"),
    ] {
        assert_eq!(shown(&stored(text)), normal);
    }
    let mut pretty = Vec::new();
    JsonRef::stored(&stored(r#"{"a":[1,{}],"b":[]}"#)).append_form(Form::Lines, 1000, &mut pretty).unwrap();
    let short = JsonRef::stored(&stored("[[[1]]]")).append_form(Form::Lines, 20, &mut Vec::new());
    assert_eq!(short, Ok(false));
    assert_eq!(String::from_utf8(pretty).unwrap(), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
}

#[test]
fn a_text_that_is_no_document_says_where() {
    for (text, reason, position) in [
        ("", "The document is empty.", 0),
        (" ", "The document is empty.", 1),
        ("[1,\nx]", "Invalid value.", 4),
        ("[1 2]", "Missing a comma or ] after an array element.", 3),
        ("{a: 1}", "Missing a name for object member.", 1),
        (r#"{"a" 1}"#, "Missing a colon after a name of object member.", 5),
        (r#"{"a": 1 "b"}"#, "Missing a comma or } after an object member.", 8),
        ("[1] 2", "The document root must not be followed by other values.", 4),
        ("\"ab", "Missing a closing quotation mark in string.", 3),
        (r#""a\x""#, "Invalid escape character in string.", 2),
        (r#""\u12g4""#, "Incorrect hex digit after \\u escape in string.", 1),
        (r#""\ud800x""#, "The surrogate pair in string is invalid.", 1),
        ("1.", "Missing fraction part in number.", 2),
        ("1e+", "Missing exponent in number.", 3),
        ("[1e400]", "Number too big to be stored in double.", 1),
        ("nul", "Invalid value.", 3),
        ("01", "The document root must not be followed by other values.", 1),
    ] {
        assert_eq!(parse(text, &mut free).unwrap(), Err(Invalid { reason, position }), "{text}");
    }
}

#[test]
fn a_document_has_a_hundred_levels() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let deepest = stored(&nested(99));
    assert_eq!(JsonRef::stored(&deepest).depth(), Ok(100));
    assert_eq!(parse(&nested(100), &mut free).unwrap_err().code, 3157);
    assert!(parse(&format!("{}{}", "[".repeat(100), "]".repeat(100)), &mut free).is_ok());
    let around = Json::Array(vec![Json::Stored(JsonRef::stored(&deepest))]);
    assert_eq!(around.encode(&mut free).unwrap_err().code, 3157);
    let hostile = "[".repeat(1 << 20);
    assert_eq!(parse(&hostile, &mut free).unwrap_err().code, 3157);
}

#[test]
fn names_and_documents_have_bounds() {
    let name = "n".repeat(MAX_NAME + 1);
    let long = Json::Object(Members::new(vec![(name.into(), Json::Null)]));
    assert_eq!(long.encode(&mut free).unwrap_err().code, 3151);
    let big = Json::Array(vec![Json::String("x".repeat(9 << 20).into()); 2]);
    assert_eq!(big.encode(&mut free).unwrap_err().code, 3150);
    let mut limit = |_| Err(MysqlError::new(1038, ""));
    assert_eq!(parse("[1]", &mut limit).unwrap_err().code, 1038);
}

/// Each level tries to be small first; together they write little.
#[test]
fn large_documents_are_written_in_time_of_their_size() {
    let mut json = Json::String("x".repeat(1 << 20).into());
    for _ in 0..90 {
        json = Json::Array(vec![Json::Int(1), json]);
    }
    let mut written = 0;
    let bytes = json.encode(&mut |bytes| {
        written += bytes;
        Ok(())
    });
    assert!(written < 16 << 20, "{written}");
    let bytes = bytes.unwrap();
    assert_eq!(JsonRef::stored(&bytes).depth(), Ok(91));
    // Many that are small in one that is large.
    let items: Vec<Json<'_>> = (0..40_000).map(|n| Json::Array(vec![Json::Int(n), Json::Int(100_000)])).collect();
    let bytes = Json::Array(items).encode(&mut free).unwrap();
    let Node::Array(list) = JsonRef::stored(&bytes).read().unwrap() else { panic!() };
    assert_eq!(shown(&list.value(39_999).unwrap().to_stored()), "[39999, 100000]");
}

#[test]
fn kinds_have_mysqls_order() {
    let text = |text: &str| stored(text);
    let of = |json: Json<'_>| json.encode(&mut free).unwrap();
    let ascending = [
        text("null"),
        text("-1e300"),
        text("-9223372036854775808"),
        of(Json::Decimal(Decimal::new(-15, 1))),
        text("-1"),
        text("0"),
        text("1e-300"),
        of(Json::Decimal(Decimal::new(1, 2))),
        text("0.5"),
        text("9007199254740992"),
        text("9007199254740993"),
        text("18446744073709551615"),
        text("1e300"),
        text(r#""""#),
        text(r#""A""#),
        text(r#""a""#),
        text(r#""a\u0000""#),
        text(r#""ab""#),
        text("{}"),
        text(r#"{"b": 1}"#),
        text(r#"{"b": 2}"#),
        text(r#"{"aa": 1}"#),
        text(r#"{"a": 1, "b": 1}"#),
        text("[]"),
        text("[1]"),
        text("[1, 2]"),
        text("[[]]"),
        text("[true]"),
        text("false"),
        text("true"),
        of(Json::Date(Date::from_parts(2024, 1, 1))),
        of(Json::Time(Time::clipped(-5))),
        of(Json::Time(Time::clipped(5))),
        of(Json::DateTime(DateTime::from_packed(0))),
        of(Json::Opaque(field::BIT, Cow::Borrowed(b"\x01"))),
        of(Json::Opaque(field::BLOB, Cow::Borrowed(b"a"))),
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            let (left, right) = (JsonRef::stored(a), JsonRef::stored(b));
            assert_eq!(left.compare(right).unwrap(), i.cmp(&j), "{left:?} {right:?}");
            assert_eq!(key(a).cmp(&key(b)), i.cmp(&j), "{left:?} {right:?}");
        }
    }
    let equal = [text("100"), text("1e2"), of(Json::Decimal(Decimal::new(10000, 2))), of(Json::UInt(100))];
    for (a, b) in equal.iter().zip(equal.iter().skip(1)) {
        assert_eq!(JsonRef::stored(a).compare(JsonRef::stored(b)), Ok(Ordering::Equal));
        assert_eq!(key(a), key(b));
    }
}

#[test]
fn text_of_before_is_read_as_what_it_says() {
    let before = JsonRef::stored(br#" {"b":1,  "a":2}"#);
    assert!(before.is_text());
    let normal = before.normal(&mut free).unwrap();
    assert!(matches!(normal.get().read().unwrap(), Node::Object(list) if list.len() == 2));
    let mut out = Vec::new();
    before.append_shown(&mut out);
    assert_eq!(out, br#"{"a": 2, "b": 1}"#);
    assert_eq!(JsonRef::stored(b"").normal(&mut free).unwrap().get(), JsonRef::NULL);
    assert_eq!(JsonRef::stored(b"[").normal(&mut free).unwrap_err().code, 3140);
    // No text begins with the byte of the binary form.
    assert!(parse("\u{1}", &mut free).unwrap().is_err());
}

fn documents() -> impl Strategy<Value = Json<'static>> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i64>().prop_map(Json::Int),
        (-40_000..40_000i64).prop_map(Json::Int),
        any::<u64>().prop_map(Json::UInt),
        any::<f64>().prop_filter("finite", |v| v.is_finite()).prop_map(Json::Double),
        (-100..100i32).prop_map(|v| Json::Double(f64::from(v) / 4.0)),
        (any::<i64>(), 0..30u8).prop_map(|(v, scale)| Json::Decimal(Decimal::new(v.into(), scale))),
        ".{0,6}".prop_map(|v| Json::String(v.into())),
        "x{0,300}".prop_map(|v| Json::String(v.into())),
        (0..9999u16, 0..12u8, 0..31u8).prop_map(|(y, m, d)| Json::Date(Date::from_parts(y, m, d))),
        any::<i32>().prop_map(|v| Json::Time(Time::clipped(v.into()))),
        proptest::collection::vec(any::<u8>(), 0..5).prop_map(|v| Json::Opaque(field::BLOB, v.into())),
    ];
    leaf.prop_recursive(5, 60, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Json::Array),
            proptest::collection::vec(("[a-d]{0,3}".prop_map(Cow::Owned), inner), 0..8)
                .prop_map(|list| Json::Object(Members::new(list))),
        ]
    })
}

/// All of it, opened.
fn whole(json: Json<'_>) -> Json<'_> {
    let mut json = json;
    json.open().unwrap();
    match json {
        Json::Array(items) => Json::Array(items.into_iter().map(whole).collect()),
        Json::Object(members) => {
            Json::Object(Members::new(members.into_list().into_iter().map(|(k, v)| (k, whole(v))).collect()))
        }
        scalar => scalar,
    }
}

/// Looks at each value by its place and by its name.
fn read_in_parts(value: JsonRef<'_>, json: &Json<'_>) {
    match (value.read().unwrap(), json) {
        (Node::Array(list), Json::Array(items)) => {
            assert_eq!(list.len(), items.len());
            items.iter().enumerate().for_each(|(at, item)| read_in_parts(list.value(at).unwrap(), item));
        }
        (Node::Object(list), Json::Object(members)) => {
            assert_eq!(list.len(), members.len());
            for (name, item) in members.iter() {
                let at = list.find(name).unwrap().unwrap();
                assert_eq!(list.name(at).unwrap(), name);
                read_in_parts(list.value(at).unwrap(), item);
            }
            assert_eq!(list.find("no such member"), Ok(None));
        }
        _ => assert_eq!(whole(Json::Stored(value)), *json),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn trees_come_back(json in documents()) {
        let bytes = json.encode(&mut free).unwrap();
        let value = JsonRef::stored(&bytes);
        prop_assert_eq!(&whole(Json::Stored(value)), &json);
        read_in_parts(value, &json);
        // A copy of a stored part is what is written of the part.
        prop_assert_eq!(&Json::Stored(value).encode(&mut free).unwrap(), &bytes);
        prop_assert_eq!(value.to_stored(), bytes);
    }

    #[test]
    fn text_comes_back(json in documents()) {
        let text = shown(&json.encode(&mut free).unwrap());
        let again = stored(&text);
        // Decimals are doubles in text.
        prop_assert_eq!(&stored(&shown(&again)), &again);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
        let mut out = Vec::new();
        JsonRef::stored(&again).append_form(Form::Dense, usize::MAX, &mut out).unwrap();
        prop_assert_eq!(stored(std::str::from_utf8(&out).unwrap()), again.clone());
        out.clear();
        JsonRef::stored(&again).append_form(Form::Lines, usize::MAX, &mut out).unwrap();
        prop_assert_eq!(stored(std::str::from_utf8(&out).unwrap()), again);
    }

    #[test]
    fn the_order_is_total_and_keys_have_it(list in proptest::collection::vec(documents(), 3)) {
        let stored: Vec<Vec<u8>> = list.iter().map(|json| json.encode(&mut free).unwrap()).collect();
        let order = |i: usize, j: usize| JsonRef::stored(&stored[i]).compare(JsonRef::stored(&stored[j])).unwrap();
        for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 2), (0, 2)] {
            prop_assert_eq!(order(i, j), order(j, i).reverse());
            prop_assert_eq!(order(i, j), key(&stored[i]).cmp(&key(&stored[j])));
        }
        if order(0, 1).is_le() && order(1, 2).is_le() {
            prop_assert!(order(0, 2).is_le());
        }
    }

    #[test]
    fn damaged_bytes_never_panic(
        json in documents(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = json.encode(&mut free).unwrap();
        for (at, byte) in &damage {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
            let value = JsonRef::stored(bytes);
            let mut out = Vec::new();
            value.append_shown(&mut out);
            if let Ok(normal) = value.normal(&mut free) {
                let value = normal.get();
                let _ = (value.depth(), value.append_key(&mut out), value.append_form(Form::Lines, usize::MAX, &mut out));
                let _ = (value.compare(value), value.append_unquoted(&mut out));
                let _ = Json::Stored(value).encode(&mut free);
                if let Ok(Some(list)) = value.list() {
                    let _ = (list.find("a"), list.value(0), list.name(list.len()));
                }
            }
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "[\\[\\]{},:\"\\\\ue0-9.a-f-]{0,40}") {
        if let Ok(json) = parse(&text, &mut free).unwrap() {
            prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok(), "{}", text);
            json.encode(&mut free).unwrap();
        }
    }
}
