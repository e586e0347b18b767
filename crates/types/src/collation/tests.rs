use super::*;
use proptest::prelude::*;

const TEXT: [Collation; 4] =
    [Collation::Utf8mb4Bin, Collation::Utf8mb40900AiCi, Collation::Utf8mb4GeneralCi, Collation::Utf8mb4UnicodeCi];

fn key(collation: Collation, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    collation.sort_key(text.as_bytes(), &mut out);
    out
}

fn weights(collation: Collation, text: &str) -> Vec<u16> {
    collation.weights(text.as_bytes()).collect()
}

fn equal(collation: Collation, a: &str, b: &str) -> bool {
    collation.equal(a.as_bytes(), b.as_bytes())
}

/// From MySQL's manual and the table of UCA 9.0.0.
#[test]
fn weights_0900_are_those_of_mysql() {
    let weights = |text| weights(Collation::DEFAULT, text);
    assert_eq!(weights("a"), [0x1C47]);
    assert_eq!(weights("Á"), [0x1C47]);
    assert_eq!(weights(" "), [0x0209]);
    assert_eq!(weights("0"), [0x1C3D]);
    assert_eq!(weights("ß"), weights("ss"));
    assert_eq!(weights("ﬁ"), weights("fi"));
    assert_eq!(weights("ǅ"), weights("dz"));
    // a with combining acute, and control characters, add nothing
    assert_eq!(weights("a\u{301}\u{0}\u{7}"), [0x1C47]);
    // implicit: CJK, extension B, unassigned, Tangut
    assert_eq!(weights("一"), [0xFB40, 0xCE00]);
    assert_eq!(weights("\u{20000}"), [0xFB84, 0x8000]);
    assert_eq!(weights("\u{10FFFD}"), [0xFBE1, 0xFFFD]);
    assert_eq!(weights("\u{17001}"), [0xFB00, 0x8001]);
    // a syllable is its letters
    assert_eq!(weights("각"), weights("\u{1100}\u{1161}\u{11A8}"));
    assert_eq!(weights("가"), weights("\u{1100}\u{1161}"));
    assert_eq!(weights("😀"), [0x15FB]);
}

#[test]
fn equalities_that_the_manual_names() {
    use Collation::*;
    assert!(equal(Utf8mb40900AiCi, "Résumé", "RESUME"));
    assert!(equal(Utf8mb40900AiCi, "ß", "SS") && !equal(Utf8mb40900AiCi, "ß", "s"));
    assert!(equal(Utf8mb4GeneralCi, "ß", "s") && !equal(Utf8mb4GeneralCi, "ß", "ss"));
    assert!(equal(Utf8mb4UnicodeCi, "ß", "ss") && !equal(Utf8mb4UnicodeCi, "ß", "s"));
    assert!(equal(Utf8mb4GeneralCi, "Ä", "a") && !equal(Utf8mb4Bin, "A", "a"));
    assert!(equal(Utf8mb4GeneralCi, "😀", "😁") && equal(Utf8mb4UnicodeCi, "😀", "😁"));
    assert!(!equal(Utf8mb40900AiCi, "😀", "😁"));
    for collation in TEXT {
        assert_eq!(equal(collation, "a", "a  "), collation.pad_space());
        let ordered = if collation.pad_space() { ["a\t", "a", "ab"] } else { ["a", "a\t", "ab"] };
        assert!(ordered.windows(2).all(|w| collation.compare(w[0].as_bytes(), w[1].as_bytes()) == Ordering::Less));
    }
    assert!(!equal(Binary, "a", "a "));
}

/// Four thousand characters as MariaDB 10.11 weighs them.
#[test]
fn general_and_unicode_agree_with_mariadb() {
    let mut count = 0;
    for line in include_str!("tables/mariadb_10_11_samples.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let text = char::from_u32(fields[0].parse().unwrap()).unwrap().to_string();
        let hex = |collation| weights(collation, &text).iter().map(|w| format!("{w:04X}")).collect::<String>();
        assert_eq!(hex(Collation::Utf8mb4GeneralCi), fields[1], "{text:?}");
        assert_eq!(hex(Collation::Utf8mb4UnicodeCi), fields[2], "{text:?}");
        count += 1;
    }
    assert!(count > 3000);
}

#[test]
fn every_character_has_weights_that_fit() {
    for code in 0..=0x10FFFF {
        let Some(c) = char::from_u32(code) else { continue };
        for collation in [Collation::Utf8mb40900AiCi, Collation::Utf8mb4UnicodeCi] {
            let mut count = 0;
            collation.char_weights(c.into(), &mut |weight| {
                assert_ne!(weight, 0);
                count += 1;
            });
            assert!(count <= 18, "{c:?}");
        }
    }
}

#[test]
fn names_and_numbers() {
    for collation in Collation::ALL {
        assert_eq!(Collation::from_name(&collation.name().to_uppercase()), Some(collation));
        assert_eq!(Collation::from_mysql_id(collation.mysql_id()), Some(collation));
    }
    for (name, expected) in [
        ("utf8_general_ci", Some(Collation::Utf8mb4GeneralCi)),
        ("utf8mb3_bin", Some(Collation::Utf8mb4Bin)),
        ("latin1_swedish_ci", Some(Collation::Utf8mb4GeneralCi)),
        ("ascii_bin", Some(Collation::Utf8mb4Bin)),
        ("utf8mb4_unicode_520_ci", Some(Collation::Utf8mb4UnicodeCi)),
        ("utf8mb4_de_pb_0900_ai_ci", Some(Collation::Utf8mb40900AiCi)),
        ("utf8mb4_0900_as_cs", Some(Collation::Utf8mb4Bin)),
        ("utf8mb4_0900_bin", Some(Collation::Utf8mb4Bin)),
        ("utf8mb4_nonsense_ci", None),
        ("koi8r_bin", None),
        ("", None),
    ] {
        assert_eq!(Collation::from_name(name), expected, "{name}");
    }
    for (id, expected) in [
        (8, Some(Collation::Utf8mb4GeneralCi)),
        (33, Some(Collation::Utf8mb4GeneralCi)),
        (246, Some(Collation::Utf8mb4UnicodeCi)),
        (278, Some(Collation::Utf8mb4Bin)),
        (305, Some(Collation::DEFAULT)),
        (322, Some(Collation::DEFAULT)),
        (323, Some(Collation::Utf8mb4Bin)),
        (1, None),
    ] {
        assert_eq!(Collation::from_mysql_id(id), expected, "{id}");
    }
    assert_eq!(Collation::from_charset("UTF8MB4"), Some(Collation::DEFAULT));
    assert_eq!(Collation::from_charset("latin1"), Some(Collation::Utf8mb4GeneralCi));
    assert_eq!(Collation::from_charset("big5"), None);
}

#[test]
fn like_ranges_hold_every_text_with_the_prefix() {
    for collation in TEXT {
        for (prefix, rest) in
            [("ab", "c"), ("ab", ""), ("ab", " "), ("ab ", "c"), ("ab ", "\t"), ("", "x"), ("ß", "\t")]
        {
            let mut low = Vec::new();
            collation.sort_key_prefix(prefix.as_bytes(), &mut low);
            assert!(key(collation, &format!("{prefix}{rest}")).starts_with(&low), "{collation:?} {prefix:?} {rest:?}");
        }
    }
}

/// Short texts in which spaces, characters below a space, accents and case meet.
fn texts() -> impl Strategy<Value = String> {
    let chars = prop::sample::select(vec![
        ' ', ' ', ' ', '\t', '\u{0}', '\u{1}', 'a', 'A', 'b', 'ä', 'ß', 's', '\u{A0}', '\u{301}', '가', '一', '😀',
        '\u{FFFF}',
    ]);
    prop_oneof![prop::collection::vec(chars, 0..6).prop_map(String::from_iter), any::<String>()]
}

proptest! {
    #[test]
    fn key_order_is_text_order(a in texts(), b in texts()) {
        for collation in TEXT.into_iter().chain([Collation::Binary]) {
            let order = collation.compare(a.as_bytes(), b.as_bytes());
            prop_assert_eq!(key(collation, &a).cmp(&key(collation, &b)), order, "{:?}", collation);
            prop_assert_eq!(collation.compare(b.as_bytes(), a.as_bytes()), order.reverse());
            prop_assert_eq!(collation.equal(a.as_bytes(), b.as_bytes()), order.is_eq());
            let mut pieces = Vec::new();
            collation.emit_key(a.as_bytes(), |bytes| pieces.extend_from_slice(bytes));
            prop_assert_eq!(pieces, key(collation, &a));
            if collation.pad_space() {
                let padded = format!("{a}  ");
                prop_assert_eq!(key(collation, &padded), key(collation, &a));
            }
        }
    }

    /// The specification of PAD SPACE itself: fill with spaces to one length in weights, then compare.
    #[test]
    fn padding_is_as_if_spaces_followed(a in texts(), b in texts()) {
        for collation in [Collation::Utf8mb4GeneralCi, Collation::Utf8mb4UnicodeCi] {
            let (mut x, mut y) = (weights(collation, &a), weights(collation, &b));
            let length = x.len().max(y.len());
            x.resize(length, collation.space());
            y.resize(length, collation.space());
            prop_assert_eq!(collation.compare(a.as_bytes(), b.as_bytes()), x.cmp(&y));
        }
        let points = |text: &str| text.chars().map(u32::from).collect::<Vec<_>>();
        let (mut x, mut y) = (points(&a), points(&b));
        let length = x.len().max(y.len());
        x.resize(length, 32);
        y.resize(length, 32);
        prop_assert_eq!(Collation::Utf8mb4Bin.compare(a.as_bytes(), b.as_bytes()), x.cmp(&y));
    }

    #[test]
    fn broken_utf8_does_no_harm(bytes: Vec<u8>, other: Vec<u8>) {
        for collation in TEXT {
            let mut out = Vec::new();
            collation.sort_key(&bytes, &mut out);
            let _ = collation.compare(&bytes, &other);
        }
    }
}
