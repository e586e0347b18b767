use super::*;
use proptest::prelude::*;

/// One of each kind, and languages with contractions, expansions, moved letters and upper case first.
fn kinds() -> Vec<Collation> {
    let names = "bin 0900_ai_ci general_ci unicode_ci 0900_bin nopad_bin unicode_520_ci unicode_520_nopad_ci 0900_as_ci
        0900_as_cs da_0900_as_cs hu_0900_as_cs hr_0900_as_cs vi_0900_as_cs cs_0900_ai_ci ru_0900_ai_ci sv_0900_as_cs lt_0900_as_cs czech_ci
        german2_ci spanish2_ci croatian_ci uca1400_ai_ci uca1400_ai_cs uca1400_as_ci uca1400_as_cs uca1400_nopad_as_cs
        uca1400_danish_as_cs uca1400_nopad_ai_cs";
    let of_sets =
        ["latin1_german2_ci", "latin7_general_ci", "gbk_chinese_ci"].map(|name| Collation::named(name).expect(name));
    names.split_ascii_whitespace().map(named).chain(of_sets).collect()
}

fn named(name: &str) -> Collation {
    Collation::named(&format!("utf8mb4_{name}")).expect(name)
}

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
    const UNICODE: Collation = Collation::Utf8mb4UnicodeCi;
    const GENERAL: Collation = Collation::Utf8mb4GeneralCi;
    assert!(equal(Collation::DEFAULT, "Résumé", "RESUME"));
    assert!(equal(Collation::DEFAULT, "ß", "SS") && !equal(Collation::DEFAULT, "ß", "s"));
    assert!(equal(GENERAL, "ß", "s") && !equal(GENERAL, "ß", "ss"));
    assert!(equal(UNICODE, "ß", "ss") && !equal(UNICODE, "ß", "s"));
    assert!(equal(GENERAL, "Ä", "a") && !equal(Collation::Utf8mb4Bin, "A", "a"));
    assert!(equal(GENERAL, "😀", "😁") && equal(UNICODE, "😀", "😁"));
    assert!(!equal(Collation::DEFAULT, "😀", "😁"));
    for collation in kinds() {
        assert_eq!(equal(collation, "a", "a  "), collation.pad_space());
        let ordered = if collation.pad_space() { ["a\t", "a", "ab"] } else { ["a", "a\t", "ab"] };
        assert!(ordered.windows(2).all(|w| collation.compare(w[0].as_bytes(), w[1].as_bytes()) == Ordering::Less));
    }
    assert!(!equal(Collation::Binary, "a", "a "));
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
fn every_character_has_weights() {
    for code in (0..=0x10FFFF).step_by(7) {
        let Some(c) = char::from_u32(code) else { continue };
        for collation in ["0900_as_cs", "unicode_ci", "unicode_520_ci", "uca1400_as_cs"].map(named) {
            let levels = if collation.name().ends_with("as_cs") { 3 } else { 1 };
            let weights = weights(collation, c.encode_utf8(&mut [0; 4]));
            assert_eq!(weights.iter().filter(|weight| **weight == 0).count(), levels - 1, "{collation:?} {c:?}");
        }
    }
}

#[test]
fn names_and_numbers() {
    for collation in Collation::all() {
        assert_eq!(Collation::from_name(&collation.name().to_uppercase()), Some(collation));
        assert_eq!(Collation::from_mysql_id(collation.mysql_id()), Some(collation));
    }
    for (name, id) in [
        ("utf8_general_ci", Some(33)),
        ("utf8mb3_bin", Some(83)),
        ("latin1_swedish_ci", Some(8)),
        ("ascii_bin", Some(65)),
        ("gbk_chinese_ci", Some(28)),
        ("utf16_unicode_ci", Some(101)),
        ("utf32_vietnamese_ci", Some(183)),
        ("latin2_czech_cs", None),
        ("tis620_thai_ci", None),
        ("utf8mb4_unicode_520_ci", Some(246)),
        ("utf8mb3_swedish_ci", Some(200)),
        ("utf8mb4_de_pb_0900_ai_ci", Some(256)),
        ("utf8mb4_0900_as_cs", Some(278)),
        ("utf8mb4_0900_bin", Some(309)),
        ("uca1400_ai_ci", Some(2304)),
        ("uca1400_nopad_as_cs", Some(2311)),
        ("utf8mb4_uca1400_danish_as_cs", Some(2395)),
        // Chinese, Japanese and Mongolian are not there, and 0900 is of no other character set.
        ("utf8mb4_ja_0900_as_cs", None),
        ("utf8mb4_zh_0900_as_cs", None),
        ("utf8mb3_0900_ai_ci", None),
        ("utf8mb4_nonsense_ci", None),
        ("koi8r_bin", Some(74)),
        ("", None),
    ] {
        assert_eq!(Collation::from_name(name).map(Collation::mysql_id), id, "{name}");
    }
    assert_eq!(Collation::from_mysql_id(303), None);
    assert_eq!(Collation::of_charset(Charset::UTF8MB4), Collation::DEFAULT);
    assert_eq!(Collation::of_charset(Charset::LATIN1).name(), "latin1_swedish_ci");
}

#[test]
fn what_was_stored_before_is_read() {
    for name in ["Binary", "Utf8mb4Bin", "Utf8mb40900AiCi", "Utf8mb4GeneralCi", "Utf8mb4UnicodeCi"] {
        let text = format!("{name:?}");
        let collation: Collation = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&collation).unwrap(), text);
    }
    for (number, collation) in [
        (0, Collation::Binary),
        (1, Collation::Utf8mb4Bin),
        (2, Collation::Utf8mb40900AiCi),
        (3, Collation::Utf8mb4GeneralCi),
        (4, Collation::Utf8mb4UnicodeCi),
        (16 + 46 + 200, named("unicode_520_ci")),
    ] {
        // The number of a variant and a number are written alike.
        let bytes = postcard::to_allocvec(&collation).unwrap();
        assert_eq!(bytes, postcard::to_allocvec(&(number as u32)).unwrap());
        assert_eq!(postcard::from_bytes::<Collation>(&bytes).unwrap(), collation);
    }
    for collation in Collation::all() {
        let text = serde_json::to_string(&collation).unwrap();
        assert_eq!(serde_json::from_str::<Collation>(&text).unwrap(), collation);
        let bytes = postcard::to_allocvec(&collation).unwrap();
        assert_eq!(postcard::from_bytes::<Collation>(&bytes).unwrap(), collation);
    }
    assert!(serde_json::from_str::<Collation>("\"utf8mb4_zh_0900_as_cs\"").is_err());
    assert!(postcard::from_bytes::<Collation>(&[5]).is_err());
}

/// Words in the order of the language, as the rules of CLDR say it.
#[test]
fn languages_sort_as_they_do() {
    for (collations, words) in [
        ("da_0900_as_cs danish_ci uca1400_danish_as_cs nb_0900_ai_ci", "zebra Ærø Ørsted Aarhus"),
        ("sv_0900_as_cs swedish_ci uca1400_swedish_as_cs", "zebra ål älg öl"),
        ("de_pb_0900_as_cs german2_ci uca1400_german2_ai_ci", "Ad Ä Af"),
        ("cs_0900_ai_ci czech_ci sk_0900_as_cs uca1400_czech_as_cs", "c cy č h hz chata i"),
        ("es_trad_0900_ai_ci spanish2_ci", "cz chico d lz llama m nz ñu o"),
        ("es_0900_as_cs spanish_ci gl_0900_ai_ci", "ch cz d nz ñu o"),
        ("hu_0900_ai_ci", "cu csak d dy dz dzs e gu gyár h oy öt pz su sz t"),
        ("hr_0900_as_cs bs_0900_ai_ci croatian_ci", "cz č ć d dž đ e lz lj m nz nj o"),
        ("ru_0900_ai_ci bg_0900_as_cs", "5 жук яма apple zebra ωμέγα"),
        ("hr_0900_ai_ci", "apple zebra жук ωμέγα"),
        ("lt_0900_as_cs lithuanian_ci", "cz č i k"),
        ("et_0900_ai_ci estonian_ci", "s š z ž t w õ ä ö ü x"),
        ("tr_0900_as_cs turkish_ci", "c ç d g ğ h ı i j o ö p s ş t u ü v"),
        ("vi_0900_as_cs vietnamese_ci", "a ă â b d đ e ê g o ô ơ p u ư v"),
        ("is_0900_ai_ci icelandic_ci", "a á b d ð e é f z æ ö å"),
        ("pl_0900_ai_ci polish_ci uca1400_polish_ai_ci", "a ą b c ć d l ł m z ź ż"),
    ] {
        for collation in collations.split(' ').map(named) {
            let words: Vec<&str> = words.split(' ').collect();
            for pair in words.windows(2) {
                let order = collation.compare(pair[0].as_bytes(), pair[1].as_bytes());
                assert_eq!(order, Ordering::Less, "{collation:?} {pair:?}");
            }
        }
    }
}

#[test]
fn levels_tell_accents_and_case_apart() {
    for family in ["0900", "uca1400", "uca1400_nopad"] {
        let of = |kind: &str| named(&format!("{family}_{kind}"));
        for (kind, accents, case) in [("ai_ci", false, false), ("as_ci", true, false), ("as_cs", true, true)] {
            assert_eq!(equal(of(kind), "résumé", "resume"), !accents, "{family} {kind}");
            assert_eq!(equal(of(kind), "Resume", "resume"), !case, "{family} {kind}");
        }
        // Accents count before case, and lower case comes first.
        let order = ["resume", "Resume", "résumé", "Résumé", "resumes"];
        let less = |w: &[&str]| of("as_cs").compare(w[0].as_bytes(), w[1].as_bytes()) == Ordering::Less;
        assert!(order.windows(2).all(less), "{family}");
    }
    assert!(equal(named("uca1400_ai_cs"), "é", "e") && !equal(named("uca1400_ai_cs"), "E", "e"));
    // Danish has upper case first.
    let compare = |a: &str, b: &str| named("da_0900_as_cs").compare(a.as_bytes(), b.as_bytes());
    assert_eq!([compare("A", "a"), compare("Aa", "aa"), compare("Å", "å")], [Ordering::Less; 3]);
    assert!(equal(named("danish_ci"), "aa", "å") && equal(named("da_0900_ai_ci"), "aa", "å"));
}

/// Frozen: rows of indexes are found by these bytes. A collation that is added has a line more (`RAUK_WRITE_GOLDEN=1` writes the file).
#[test]
fn keys_are_those_that_were_written() {
    let mut lines = String::new();
    for collation in Collation::all() {
        let mut all = Vec::new();
        // All letters with rules of their own, and some of the others.
        for code in (0..0x700).chain((0x700..=0x10FFFF).step_by(97)) {
            if let Some(c) = char::from_u32(code) {
                collation.sort_key(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut all);
            }
        }
        let samples = ["Chaloupka  čtvrť dždzs", "aÅ Þórr\tǆ ll", "가한 \u{20000}😀 "];
        let keys = samples.map(|text| key(collation, text).iter().map(|b| format!("{b:02X}")).collect::<String>());
        lines += &format!("{}\t{:016x}\t{}\n", collation.name(), xxhash_rust::xxh3::xxh3_64(&all), keys.join("\t"));
    }
    if std::env::var_os("RAUK_WRITE_GOLDEN").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/collation/tables/golden_keys.tsv"), &lines).unwrap();
    } else {
        let mut golden = include_str!("tables/golden_keys.tsv").lines();
        lines.lines().for_each(|line| assert_eq!(Some(line), golden.next()));
        assert_eq!(golden.next(), None);
    }
}

#[test]
fn like_ranges_hold_every_text_with_the_prefix() {
    for collation in kinds() {
        for (prefix, rest) in [
            ("ab", "c"),
            ("ab", ""),
            ("ab", " "),
            ("ab ", "c"),
            ("ab ", "\t"),
            ("", "x"),
            ("ß", "\t"),
            ("c", "h"),
            ("dd", "zs"),
        ] {
            let mut low = Vec::new();
            collation.sort_key_prefix(prefix.as_bytes(), &mut low);
            assert!(key(collation, &format!("{prefix}{rest}")).starts_with(&low), "{collation:?} {prefix:?} {rest:?}");
        }
    }
}

/// Short texts in which spaces, characters below a space, accents and case meet.
fn texts() -> impl Strategy<Value = String> {
    let chars = prop::sample::select(vec![
        ' ', ' ', ' ', '\t', '\u{0}', '\u{1}', 'a', 'A', 'b', 'ä', 'ß', 's', 'c', 'h', 'd', 'z', 'S', 'l', '·', 'å',
        'Å', 'Ж', '\u{A0}', '\u{301}', '가', '一', '😀', '\u{FFFF}',
    ]);
    prop_oneof![prop::collection::vec(chars, 0..6).prop_map(String::from_iter), any::<String>()]
}

proptest! {
    #[test]
    fn key_order_is_text_order(a in texts(), b in texts()) {
        for collation in kinds().into_iter().chain([Collation::Binary]) {
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
        for (collation, space) in [(Collation::Utf8mb4GeneralCi, 0x20), (Collation::Utf8mb4UnicodeCi, 0x209)] {
            let (mut x, mut y) = (weights(collation, &a), weights(collation, &b));
            let length = x.len().max(y.len());
            x.resize(length, space);
            y.resize(length, space);
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
        for collation in kinds() {
            let mut out = Vec::new();
            collation.sort_key(&bytes, &mut out);
            let _ = collation.compare(&bytes, &other);
        }
    }
}

/// Run by hand, with the directory that `tools/mariadb_weights.sh` wrote: `RAUK_MARIADB_WEIGHTS=… cargo test -p rauk-types -- --ignored`.
/// Every character of every collation that MariaDB has, and pairs of letters and marks, weigh as that server says.
#[test]
#[ignore = "needs what a MariaDB server says"]
fn weights_are_those_of_mariadb() {
    let directory = std::env::var("RAUK_MARIADB_WEIGHTS").expect("RAUK_MARIADB_WEIGHTS names a directory");
    type Said = std::collections::HashMap<String, Vec<Vec<u16>>>;
    // Of one to three characters, by number, what the server says of each level.
    let read = |name: String, characters: usize| -> Said {
        let text = std::fs::read_to_string(format!("{directory}/{name}")).unwrap();
        let mut said = Said::new();
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let points = fields[..characters].iter().filter(|field| **field != "NULL");
            let text: String = points.map(|n| char::from_u32(n.parse().unwrap()).unwrap()).collect();
            let word = |at: usize, hex: &str| u16::from_str_radix(&hex[4 * at..4 * at + 4], 16).unwrap();
            let level = |hex: &&str| (0..hex.len() / 4).map(|at| word(at, hex)).collect();
            said.insert(text, fields[characters..].iter().map(level).collect());
        }
        said
    };
    let levels = |collation, text: &str| -> Vec<Vec<u16>> {
        weights(collation, text).split(|weight| *weight == 0).map(<[u16]>::to_vec).collect()
    };
    let mut compared = 0usize;
    let mut compare = |collation: Collation, text: &str, said: &[Vec<u16>]| {
        assert_eq!(levels(collation, text), said, "{collation:?} {text:?}");
        compared += 1;
    };
    let ucas = (read("w_520.tsv".into(), 1), read("w_1400.tsv".into(), 1));
    assert_eq!((ucas.0.len(), ucas.1.len()), (0x110000 - 0x800, 0x110000 - 0x800));
    ucas.0.iter().for_each(|(text, said)| compare(named("unicode_520_ci"), text, said));
    ucas.1.iter().for_each(|(text, said)| compare(named("uca1400_as_cs"), text, said));
    read("k_1400.tsv".into(), 3).iter().for_each(|(text, said)| compare(named("uca1400_as_cs"), text, said));
    let letters: Vec<char> = (0x41..0x5B)
        .chain(0x61..0x7B)
        .chain(0xC0..0x250)
        .chain(0x300..0x346)
        .chain(0x1E00..0x1F00)
        .chain(0x621..0x656)
        .chain(0x6D0..0x6D6)
        .chain(0xD80..0xDE0)
        .filter_map(char::from_u32)
        .collect();
    let files = std::fs::read_dir(&directory).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    for name in files.filter(|name| name.starts_with("d_") || name.starts_with("e_")) {
        let language = &name[2..name.len() - 4];
        let (collation, base, pairs) = match name.starts_with("d_") {
            true => (format!("{}_ci", language.replace("_mysql561", "")), named("unicode_ci"), "p_"),
            false => (format!("uca1400_{language}_as_cs"), named("uca1400_as_cs"), "q_"),
        };
        let collation = named(&collation);
        let differences = read(name.clone(), 1);
        let last = if pairs == "p_" { 0xFFFF } else { 0x10FFFF };
        for c in (0..=last).filter_map(char::from_u32) {
            let text = c.to_string();
            let same = || levels(base, &text);
            compare(collation, &text, &differences.get(&text).cloned().unwrap_or_else(same));
        }
        let contractions = read(format!("{pairs}{language}.tsv"), 2);
        for (a, b) in letters.iter().flat_map(|a| letters.iter().map(move |b| (*a, *b))) {
            let text = format!("{a}{b}");
            let apart = || {
                let (a, b) = (levels(collation, &a.to_string()), levels(collation, &b.to_string()));
                a.into_iter().zip(b).map(|(a, b)| [a, b].concat()).collect()
            };
            compare(collation, &text, &contractions.get(&text).cloned().unwrap_or_else(apart));
        }
    }
    println!("{compared} texts weigh the same");
}
