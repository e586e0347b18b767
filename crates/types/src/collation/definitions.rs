//! The collations there are: names, MySQL's numbers, and how each orders text.
//!
//! MySQL 8.4's collations of utf8mb4 but those of Chinese, Japanese and Mongolian, and MariaDB's uca1400 family and `_nopad_` names; utf8mb3's, ucs2's,
//! utf16's and utf32's of the same names; of the other sets those with one weight a character. Numbers are MySQL's, and MariaDB's where MySQL has none. A
//! collation is known by its number, in schemas too, so a number never gets another meaning.
//!
//! Not there: latin2_czech_cs and cp1250_czech_cs (four passes over the text), utf8mb3_tolower_ci, the general_mysql500_ci ones, uca1400 of ucs2,
//! utf16 and utf32, and `_nopad_` of other sets than utf8mb3 and utf8mb4.

use super::set::{self, SetTable};
use super::table::{GENERAL_CI, GeneralTable};
use super::uca::{Uca, Version};
use crate::charset::Charset;
use std::sync::LazyLock;

/// How texts are ordered.
pub(super) enum Order {
    /// By their bytes, which is by code points; NO PAD.
    Bytes,
    /// By code points, with PAD SPACE.
    CodePoints,
    /// One weight a character.
    General(&'static GeneralTable),
    /// By what a table says of the set's codes. `binary`: no two characters weigh the same.
    Set { table: &'static LazyLock<SetTable>, binary: bool },
    /// By the Unicode collation algorithm.
    Uca(Uca),
}

pub(super) struct Definition {
    pub id: u16,
    pub name: &'static str,
    pub charset: Charset,
    pub order: Order,
    /// PAD SPACE.
    pub pad: bool,
    /// SORTLEN of SHOW COLLATION.
    pub sort_length: u8,
}

const fn plain(id: u16, name: &'static str, charset: Charset, order: Order, pad: bool) -> Definition {
    Definition { id, name, charset, order, pad, sort_length: 1 }
}

/// The same order in another set.
const fn of_set(charset: Charset, mut definition: Definition) -> Definition {
    definition.charset = charset;
    definition
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
    let order = Order::Uca(Uca::new(version, levels, language));
    Definition { id, name, charset: Charset::UTF8MB4, order, pad, sort_length }
}

const fn unicode(id: u16, name: &'static str, language: &'static str) -> Definition {
    uca(id, name, Version::V400, &[0], Some(language), true)
}

static PLAIN: [Definition; 16] = [
    plain(33, "utf8mb3_general_ci", Charset::UTF8MB3, Order::General(&GENERAL_CI), true),
    plain(35, "ucs2_general_ci", Charset::UCS2, Order::General(&GENERAL_CI), true),
    plain(45, "utf8mb4_general_ci", Charset::UTF8MB4, Order::General(&GENERAL_CI), true),
    plain(46, "utf8mb4_bin", Charset::UTF8MB4, Order::CodePoints, true),
    plain(54, "utf16_general_ci", Charset::UTF16, Order::General(&GENERAL_CI), true),
    plain(55, "utf16_bin", Charset::UTF16, Order::CodePoints, true),
    plain(56, "utf16le_general_ci", Charset::UTF16LE, Order::General(&GENERAL_CI), true),
    plain(60, "utf32_general_ci", Charset::UTF32, Order::General(&GENERAL_CI), true),
    plain(61, "utf32_bin", Charset::UTF32, Order::CodePoints, true),
    plain(62, "utf16le_bin", Charset::UTF16LE, Order::CodePoints, true),
    plain(63, "binary", Charset::BINARY, Order::Bytes, false),
    plain(83, "utf8mb3_bin", Charset::UTF8MB3, Order::CodePoints, true),
    plain(90, "ucs2_bin", Charset::UCS2, Order::CodePoints, true),
    plain(309, "utf8mb4_0900_bin", Charset::UTF8MB4, Order::Bytes, false),
    plain(1070, "utf8mb4_nopad_bin", Charset::UTF8MB4, Order::Bytes, false),
    plain(1107, "utf8mb3_nopad_bin", Charset::UTF8MB3, Order::Bytes, false),
];

/// The family of utf8mb4_unicode_ci, with the number of unicode_ci.
macro_rules! unicode {
    ($list:ident $charset:ident $prefix:literal $first:literal) => {
        static $list: [Definition; 24] = [
            of_set(Charset::$charset, uca($first, concat!($prefix, "_unicode_ci"), Version::V400, &[0], None, true)),
            of_set(Charset::$charset, unicode($first + 1, concat!($prefix, "_icelandic_ci"), "unicode_icelandic")),
            of_set(Charset::$charset, unicode($first + 2, concat!($prefix, "_latvian_ci"), "unicode_latvian")),
            of_set(Charset::$charset, unicode($first + 3, concat!($prefix, "_romanian_ci"), "unicode_romanian")),
            of_set(Charset::$charset, unicode($first + 4, concat!($prefix, "_slovenian_ci"), "unicode_slovenian")),
            of_set(Charset::$charset, unicode($first + 5, concat!($prefix, "_polish_ci"), "unicode_polish")),
            of_set(Charset::$charset, unicode($first + 6, concat!($prefix, "_estonian_ci"), "unicode_estonian")),
            of_set(Charset::$charset, unicode($first + 7, concat!($prefix, "_spanish_ci"), "unicode_spanish")),
            of_set(Charset::$charset, unicode($first + 8, concat!($prefix, "_swedish_ci"), "unicode_swedish")),
            of_set(Charset::$charset, unicode($first + 9, concat!($prefix, "_turkish_ci"), "unicode_turkish")),
            of_set(Charset::$charset, unicode($first + 10, concat!($prefix, "_czech_ci"), "unicode_czech")),
            of_set(Charset::$charset, unicode($first + 11, concat!($prefix, "_danish_ci"), "unicode_danish")),
            of_set(Charset::$charset, unicode($first + 12, concat!($prefix, "_lithuanian_ci"), "unicode_lithuanian")),
            of_set(Charset::$charset, unicode($first + 13, concat!($prefix, "_slovak_ci"), "unicode_slovak")),
            of_set(Charset::$charset, unicode($first + 14, concat!($prefix, "_spanish2_ci"), "unicode_spanish2")),
            of_set(Charset::$charset, unicode($first + 15, concat!($prefix, "_roman_ci"), "unicode_roman")),
            of_set(Charset::$charset, unicode($first + 16, concat!($prefix, "_persian_ci"), "unicode_persian")),
            of_set(Charset::$charset, unicode($first + 17, concat!($prefix, "_esperanto_ci"), "unicode_esperanto")),
            of_set(Charset::$charset, unicode($first + 18, concat!($prefix, "_hungarian_ci"), "unicode_hungarian")),
            of_set(Charset::$charset, unicode($first + 19, concat!($prefix, "_sinhala_ci"), "unicode_sinhala")),
            of_set(Charset::$charset, unicode($first + 20, concat!($prefix, "_german2_ci"), "unicode_german2")),
            // MariaDB calls it croatian_mysql561, and has another croatian.
            of_set(Charset::$charset, unicode($first + 21, concat!($prefix, "_croatian_ci"), "unicode_croatian")),
            of_set(
                Charset::$charset,
                uca($first + 22, concat!($prefix, "_unicode_520_ci"), Version::V520, &[0], None, true),
            ),
            of_set(Charset::$charset, unicode($first + 23, concat!($prefix, "_vietnamese_ci"), "unicode_vietnamese")),
        ];
    };
}

unicode!(UNICODE_UCS2 UCS2 "ucs2" 128);
unicode!(UNICODE_UTF8MB3 UTF8MB3 "utf8mb3" 192);
unicode!(UNICODE_UTF8MB4 UTF8MB4 "utf8mb4" 224);
unicode!(UNICODE_UTF16 UTF16 "utf16" 101);
unicode!(UNICODE_UTF32 UTF32 "utf32" 160);

static UNICODE_NO_PAD: [Definition; 4] = [
    of_set(Charset::UTF8MB3, uca(1216, "utf8mb3_unicode_nopad_ci", Version::V400, &[0], None, false)),
    of_set(Charset::UTF8MB3, uca(1238, "utf8mb3_unicode_520_nopad_ci", Version::V520, &[0], None, false)),
    uca(1248, "utf8mb4_unicode_nopad_ci", Version::V400, &[0], None, false),
    uca(1270, "utf8mb4_unicode_520_nopad_ci", Version::V520, &[0], None, false),
];

macro_rules! sets {
    ($($id:literal $name:literal $charset:ident $table:ident $kind:ident;)*) => {
        static SETS: [Definition; [$($id),*].len()] = [$(Definition {
            id: $id,
            name: $name,
            charset: Charset::$charset,
            order: sets!($kind $table),
            pad: true,
            sort_length: if $id == 31 { 2 } else { 1 },
        }),*];
    };
    (binary $table:ident) => { Order::Set { table: &set::$table, binary: true } };
    (weighed $table:ident) => { Order::Set { table: &set::$table, binary: false } };
}

sets! {
    1 "big5_chinese_ci" BIG5 BIG5_CHINESE_CI weighed;
    3 "dec8_swedish_ci" DEC8 DEC8_SWEDISH_CI weighed;
    4 "cp850_general_ci" CP850 CP850_GENERAL_CI weighed;
    5 "latin1_german1_ci" LATIN1 LATIN1_GERMAN1_CI weighed;
    6 "hp8_english_ci" HP8 HP8_ENGLISH_CI weighed;
    7 "koi8r_general_ci" KOI8R KOI8R_GENERAL_CI weighed;
    8 "latin1_swedish_ci" LATIN1 LATIN1_SWEDISH_CI weighed;
    9 "latin2_general_ci" LATIN2 LATIN2_GENERAL_CI weighed;
    11 "ascii_general_ci" ASCII ASCII_GENERAL_CI weighed;
    12 "ujis_japanese_ci" UJIS UJIS_JAPANESE_CI weighed;
    13 "sjis_japanese_ci" SJIS SJIS_JAPANESE_CI weighed;
    14 "cp1251_bulgarian_ci" CP1251 CP1251_BULGARIAN_CI weighed;
    15 "latin1_danish_ci" LATIN1 LATIN1_DANISH_CI weighed;
    16 "hebrew_general_ci" HEBREW HEBREW_GENERAL_CI weighed;
    19 "euckr_korean_ci" EUCKR EUCKR_KOREAN_CI weighed;
    20 "latin7_estonian_cs" LATIN7 LATIN7_ESTONIAN_CS weighed;
    21 "latin2_hungarian_ci" LATIN2 LATIN2_HUNGARIAN_CI weighed;
    22 "koi8u_general_ci" KOI8U KOI8U_GENERAL_CI weighed;
    23 "cp1251_ukrainian_ci" CP1251 CP1251_UKRAINIAN_CI weighed;
    24 "gb2312_chinese_ci" GB2312 GB2312_CHINESE_CI weighed;
    25 "greek_general_ci" GREEK GREEK_GENERAL_CI weighed;
    26 "cp1250_general_ci" CP1250 CP1250_GENERAL_CI weighed;
    27 "latin2_croatian_ci" LATIN2 LATIN2_CROATIAN_CI weighed;
    28 "gbk_chinese_ci" GBK GBK_CHINESE_CI weighed;
    29 "cp1257_lithuanian_ci" CP1257 CP1257_LITHUANIAN_CI weighed;
    30 "latin5_turkish_ci" LATIN5 LATIN5_TURKISH_CI weighed;
    31 "latin1_german2_ci" LATIN1 LATIN1_GERMAN2_CI weighed;
    32 "armscii8_general_ci" ARMSCII8 ARMSCII8_GENERAL_CI weighed;
    36 "cp866_general_ci" CP866 CP866_GENERAL_CI weighed;
    37 "keybcs2_general_ci" KEYBCS2 KEYBCS2_GENERAL_CI weighed;
    38 "macce_general_ci" MACCE MACCE_GENERAL_CI weighed;
    39 "macroman_general_ci" MACROMAN MACROMAN_GENERAL_CI weighed;
    40 "cp852_general_ci" CP852 CP852_GENERAL_CI weighed;
    41 "latin7_general_ci" LATIN7 LATIN7_GENERAL_CI weighed;
    42 "latin7_general_cs" LATIN7 LATIN7_GENERAL_CS weighed;
    43 "macce_bin" MACCE MACCE_BIN binary;
    44 "cp1250_croatian_ci" CP1250 CP1250_CROATIAN_CI weighed;
    47 "latin1_bin" LATIN1 LATIN1_BIN binary;
    48 "latin1_general_ci" LATIN1 LATIN1_GENERAL_CI weighed;
    49 "latin1_general_cs" LATIN1 LATIN1_GENERAL_CS weighed;
    50 "cp1251_bin" CP1251 CP1251_BIN binary;
    51 "cp1251_general_ci" CP1251 CP1251_GENERAL_CI weighed;
    52 "cp1251_general_cs" CP1251 CP1251_GENERAL_CS weighed;
    53 "macroman_bin" MACROMAN MACROMAN_BIN binary;
    57 "cp1256_general_ci" CP1256 CP1256_GENERAL_CI weighed;
    58 "cp1257_bin" CP1257 CP1257_BIN binary;
    59 "cp1257_general_ci" CP1257 CP1257_GENERAL_CI weighed;
    64 "armscii8_bin" ARMSCII8 ARMSCII8_BIN binary;
    65 "ascii_bin" ASCII ASCII_BIN binary;
    66 "cp1250_bin" CP1250 CP1250_BIN binary;
    67 "cp1256_bin" CP1256 CP1256_BIN binary;
    68 "cp866_bin" CP866 CP866_BIN binary;
    69 "dec8_bin" DEC8 DEC8_BIN binary;
    70 "greek_bin" GREEK GREEK_BIN binary;
    71 "hebrew_bin" HEBREW HEBREW_BIN binary;
    72 "hp8_bin" HP8 HP8_BIN binary;
    73 "keybcs2_bin" KEYBCS2 KEYBCS2_BIN binary;
    74 "koi8r_bin" KOI8R KOI8R_BIN binary;
    75 "koi8u_bin" KOI8U KOI8U_BIN binary;
    77 "latin2_bin" LATIN2 LATIN2_BIN binary;
    78 "latin5_bin" LATIN5 LATIN5_BIN binary;
    79 "latin7_bin" LATIN7 LATIN7_BIN binary;
    80 "cp850_bin" CP850 CP850_BIN binary;
    81 "cp852_bin" CP852 CP852_BIN binary;
    84 "big5_bin" BIG5 BIG5_BIN binary;
    85 "euckr_bin" EUCKR EUCKR_BIN binary;
    86 "gb2312_bin" GB2312 GB2312_BIN binary;
    87 "gbk_bin" GBK GBK_BIN binary;
    88 "sjis_bin" SJIS SJIS_BIN binary;
    91 "ujis_bin" UJIS UJIS_BIN binary;
    92 "geostd8_general_ci" GEOSTD8 GEOSTD8_GENERAL_CI weighed;
    93 "geostd8_bin" GEOSTD8 GEOSTD8_BIN binary;
    94 "latin1_spanish_ci" LATIN1 LATIN1_SPANISH_CI weighed;
    95 "cp932_japanese_ci" CP932 CP932_JAPANESE_CI weighed;
    96 "cp932_bin" CP932 CP932_BIN binary;
    97 "eucjpms_japanese_ci" EUCJPMS EUCJPMS_JAPANESE_CI weighed;
    98 "eucjpms_bin" EUCJPMS EUCJPMS_BIN binary;
    99 "cp1250_polish_ci" CP1250 CP1250_POLISH_CI weighed;
}

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
        static UCA_1400: [Definition; 8 * [$($first),*].len()] = uca_1400!(UTF8MB4 "utf8mb4" 0 $($first $name $language)*);
        /// Numbers are 256 less.
        static UCA_1400_UTF8MB3: [Definition; 8 * [$($first),*].len()] =
            uca_1400!(UTF8MB3 "utf8mb3" 256 $($first $name $language)*);
    };
    ($charset:ident $prefix:literal $less:literal $($first:literal $name:literal $language:literal)*) => {[$(
        uca_1400!(of $charset $first - $less, concat!($prefix, "_uca1400_", $name, "ai_ci"), &[0], $language, true),
        uca_1400!(of $charset $first - $less + 1, concat!($prefix, "_uca1400_", $name, "ai_cs"), &[0, 2], $language, true),
        uca_1400!(of $charset $first - $less + 2, concat!($prefix, "_uca1400_", $name, "as_ci"), &[0, 1], $language, true),
        uca_1400!(of $charset $first - $less + 3, concat!($prefix, "_uca1400_", $name, "as_cs"), &[0, 1, 2], $language, true),
        uca_1400!(of $charset $first - $less + 4, concat!($prefix, "_uca1400_", $name, "nopad_ai_ci"), &[0], $language, false),
        uca_1400!(of $charset $first - $less + 5, concat!($prefix, "_uca1400_", $name, "nopad_ai_cs"), &[0, 2], $language, false),
        uca_1400!(of $charset $first - $less + 6, concat!($prefix, "_uca1400_", $name, "nopad_as_ci"), &[0, 1], $language, false),
        uca_1400!(of $charset $first - $less + 7, concat!($prefix, "_uca1400_", $name, "nopad_as_cs"), &[0, 1, 2], $language, false),
    )*]};
    (of $charset:ident $id:expr, $name:expr, $levels:expr, $language:literal, $pad:literal) => {
        of_set(Charset::$charset, uca($id, $name, Version::V1400, $levels, Some($language), $pad))
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

static ALL: [&[Definition]; 12] = [
    &PLAIN,
    &SETS,
    &UNICODE_UCS2,
    &UNICODE_UTF8MB3,
    &UNICODE_UTF8MB4,
    &UNICODE_UTF16,
    &UNICODE_UTF32,
    &UNICODE_NO_PAD,
    &LANGUAGES_0900,
    &ACCENTS_0900,
    &UCA_1400,
    &UCA_1400_UTF8MB3,
];

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
