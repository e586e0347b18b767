//! The collations there are: names, MySQL's numbers, and how each orders text.
//!
//! MySQL 8.4's collations of utf8mb4 but those of Chinese, Japanese and Mongolian, and MariaDB's uca1400 family and `_nopad_` names. Numbers are
//! MySQL's, and MariaDB's where MySQL has none. A collation is known by its number, in schemas too, so a number never gets another meaning.

use super::table::{GENERAL_CI, GeneralTable};
use super::uca::{Uca, Version};

/// How texts are ordered.
pub(super) enum Order {
    /// By their bytes, which is by code points; NO PAD.
    Bytes,
    /// By code points, with PAD SPACE.
    CodePoints,
    /// One weight a character.
    General(&'static GeneralTable),
    /// By the Unicode collation algorithm.
    Uca(Uca),
}

pub(super) struct Definition {
    pub id: u16,
    pub name: &'static str,
    pub order: Order,
    /// PAD SPACE.
    pub pad: bool,
    /// SORTLEN of SHOW COLLATION.
    pub sort_length: u8,
}

const fn plain(id: u16, name: &'static str, order: Order, pad: bool) -> Definition {
    Definition { id, name, order, pad, sort_length: 1 }
}

const fn uca(
    id: u16,
    name: &'static str,
    version: Version,
    levels: &'static [usize],
    language: Option<&'static str>,
    pad: bool,
) -> Definition {
    let sort_length = if matches!(version, Version::V900) { 0 } else { 8 };
    Definition { id, name, order: Order::Uca(Uca::new(version, levels, language)), pad, sort_length }
}

const fn unicode(id: u16, name: &'static str, language: &'static str) -> Definition {
    uca(id, name, Version::V400, &[0], Some(language), true)
}

static PLAIN: [Definition; 5] = [
    plain(45, "utf8mb4_general_ci", Order::General(&GENERAL_CI), true),
    plain(46, "utf8mb4_bin", Order::CodePoints, true),
    plain(63, "binary", Order::Bytes, false),
    plain(309, "utf8mb4_0900_bin", Order::Bytes, false),
    plain(1070, "utf8mb4_nopad_bin", Order::Bytes, false),
];

static UNICODE: [Definition; 26] = [
    uca(224, "utf8mb4_unicode_ci", Version::V400, &[0], None, true),
    unicode(225, "utf8mb4_icelandic_ci", "unicode_icelandic"),
    unicode(226, "utf8mb4_latvian_ci", "unicode_latvian"),
    unicode(227, "utf8mb4_romanian_ci", "unicode_romanian"),
    unicode(228, "utf8mb4_slovenian_ci", "unicode_slovenian"),
    unicode(229, "utf8mb4_polish_ci", "unicode_polish"),
    unicode(230, "utf8mb4_estonian_ci", "unicode_estonian"),
    unicode(231, "utf8mb4_spanish_ci", "unicode_spanish"),
    unicode(232, "utf8mb4_swedish_ci", "unicode_swedish"),
    unicode(233, "utf8mb4_turkish_ci", "unicode_turkish"),
    unicode(234, "utf8mb4_czech_ci", "unicode_czech"),
    unicode(235, "utf8mb4_danish_ci", "unicode_danish"),
    unicode(236, "utf8mb4_lithuanian_ci", "unicode_lithuanian"),
    unicode(237, "utf8mb4_slovak_ci", "unicode_slovak"),
    unicode(238, "utf8mb4_spanish2_ci", "unicode_spanish2"),
    unicode(239, "utf8mb4_roman_ci", "unicode_roman"),
    unicode(240, "utf8mb4_persian_ci", "unicode_persian"),
    unicode(241, "utf8mb4_esperanto_ci", "unicode_esperanto"),
    unicode(242, "utf8mb4_hungarian_ci", "unicode_hungarian"),
    unicode(243, "utf8mb4_sinhala_ci", "unicode_sinhala"),
    unicode(244, "utf8mb4_german2_ci", "unicode_german2"),
    // MariaDB calls it croatian_mysql561, and has another croatian.
    unicode(245, "utf8mb4_croatian_ci", "unicode_croatian"),
    uca(246, "utf8mb4_unicode_520_ci", Version::V520, &[0], None, true),
    unicode(247, "utf8mb4_vietnamese_ci", "unicode_vietnamese"),
    uca(1248, "utf8mb4_unicode_nopad_ci", Version::V400, &[0], None, false),
    uca(1270, "utf8mb4_unicode_520_nopad_ci", Version::V520, &[0], None, false),
];

macro_rules! languages_0900 {
    ($($insensitive:literal $sensitive:literal $name:literal $language:expr;)*) => {
        static LANGUAGES_0900: [Definition; 2 * [$($insensitive),*].len()] = [$(
            uca($insensitive, concat!("utf8mb4_", $name, "0900_ai_ci"), Version::V900, &[0], $language, false),
            uca($sensitive, concat!("utf8mb4_", $name, "0900_as_cs"), Version::V900, &[0, 1, 2], $language, false),
        )*];
    };
}

languages_0900! {
    255 278 "" None;
    256 279 "de_pb_" Some("0900_de_pb");
    257 280 "is_" Some("0900_is");
    258 281 "lv_" Some("0900_lv");
    259 282 "ro_" Some("0900_ro");
    260 283 "sl_" Some("0900_sl");
    261 284 "pl_" Some("0900_pl");
    262 285 "et_" Some("0900_et");
    263 286 "es_" Some("0900_es");
    264 287 "sv_" Some("0900_sv");
    265 288 "tr_" Some("0900_tr");
    266 289 "cs_" Some("0900_cs");
    267 290 "da_" Some("0900_da");
    268 291 "lt_" Some("0900_lt");
    269 292 "sk_" Some("0900_sk");
    270 293 "es_trad_" Some("0900_es_trad");
    271 294 "la_" None;
    273 296 "eo_" Some("0900_eo");
    274 297 "hu_" Some("0900_hu");
    275 298 "hr_" Some("0900_hr");
    277 300 "vi_" Some("0900_vi");
    306 307 "ru_" Some("0900_ru");
    310 311 "nb_" Some("0900_nb");
    312 313 "nn_" Some("0900_nb");
    314 315 "sr_latn_" Some("0900_hr");
    316 317 "bs_" Some("0900_hr");
    318 319 "bg_" Some("0900_ru");
    320 321 "gl_" Some("0900_es");
}

static ACCENTS_0900: [Definition; 1] = [uca(305, "utf8mb4_0900_as_ci", Version::V900, &[0, 1], None, false)];

macro_rules! uca_1400 {
    ($($first:literal $name:literal $language:literal;)*) => {
        static UCA_1400: [Definition; 8 * [$($first),*].len()] = [$(
            uca($first, concat!("utf8mb4_uca1400_", $name, "ai_ci"), Version::V1400, &[0], Some($language), true),
            uca($first + 1, concat!("utf8mb4_uca1400_", $name, "ai_cs"), Version::V1400, &[0, 2], Some($language), true),
            uca($first + 2, concat!("utf8mb4_uca1400_", $name, "as_ci"), Version::V1400, &[0, 1], Some($language), true),
            uca($first + 3, concat!("utf8mb4_uca1400_", $name, "as_cs"), Version::V1400, &[0, 1, 2], Some($language), true),
            uca($first + 4, concat!("utf8mb4_uca1400_", $name, "nopad_ai_ci"), Version::V1400, &[0], Some($language), false),
            uca($first + 5, concat!("utf8mb4_uca1400_", $name, "nopad_ai_cs"), Version::V1400, &[0, 2], Some($language), false),
            uca($first + 6, concat!("utf8mb4_uca1400_", $name, "nopad_as_ci"), Version::V1400, &[0, 1], Some($language), false),
            uca($first + 7, concat!("utf8mb4_uca1400_", $name, "nopad_as_cs"), Version::V1400, &[0, 1, 2], Some($language), false),
        )*];
    };
}

uca_1400! {
    2304 "" "uca1400";
    2312 "icelandic_" "uca1400_icelandic";
    2320 "latvian_" "uca1400_latvian";
    2328 "romanian_" "uca1400_romanian";
    2336 "slovenian_" "uca1400_slovenian";
    2344 "polish_" "uca1400_polish";
    2352 "estonian_" "uca1400_estonian";
    2360 "spanish_" "uca1400_spanish";
    2368 "swedish_" "uca1400_swedish";
    2376 "turkish_" "uca1400_turkish";
    2384 "czech_" "uca1400_czech";
    2392 "danish_" "uca1400_danish";
    2400 "lithuanian_" "uca1400_lithuanian";
    2408 "slovak_" "uca1400_slovak";
    2416 "spanish2_" "uca1400_spanish2";
    2424 "roman_" "uca1400_roman";
    2432 "persian_" "uca1400_persian";
    2440 "esperanto_" "uca1400_esperanto";
    2448 "hungarian_" "uca1400_hungarian";
    2456 "sinhala_" "uca1400_sinhala";
    2464 "german2_" "uca1400_german2";
    2488 "vietnamese_" "uca1400_vietnamese";
    2496 "croatian_" "uca1400_croatian";
}

static ALL: [&[Definition]; 5] = [&PLAIN, &UNICODE, &LANGUAGES_0900, &ACCENTS_0900, &UCA_1400];

/// Numbers are below this.
const LIMIT: usize = 2504;

static BY_ID: [Option<&'static Definition>; LIMIT] = {
    let mut by_id = [None; LIMIT];
    let mut list = 0;
    while list < ALL.len() {
        let mut at = 0;
        while at < ALL[list].len() {
            let definition = &ALL[list][at];
            assert!(by_id[definition.id as usize].is_none(), "two collations of one number");
            by_id[definition.id as usize] = Some(definition);
            at += 1;
        }
        list += 1;
    }
    by_id
};

#[inline]
pub(super) const fn by_id(id: u16) -> Option<&'static Definition> {
    if (id as usize) < LIMIT { BY_ID[id as usize] } else { None }
}

/// In the order of their numbers.
pub(super) fn all() -> impl Iterator<Item = &'static Definition> {
    BY_ID.iter().filter_map(|definition| *definition)
}
