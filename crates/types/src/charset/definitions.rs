//! The character sets there are: names, descriptions and default collations as MySQL 8.4 has them, and how each is
//! coded.

use super::Charset;
use super::double::{self, Double};
use super::euc::{self, Euc};
use super::single::{self, Single};
use std::sync::LazyLock;

/// How a set's characters are written in bytes.
pub(super) enum Coding {
    Utf8,
    /// UTF-8 of at most three bytes.
    Utf8Basic,
    /// No characters at all.
    Bytes,
    Ascii,
    /// ASCII, and what a table says of the other bytes.
    Single(&'static LazyLock<Single>),
    /// ASCII, and codes of one or two bytes.
    Double(&'static LazyLock<Double>),
    /// ASCII, and codes of two or three bytes.
    Euc(&'static LazyLock<Euc>),
    Ucs2,
    Utf16 {
        little: bool,
    },
    Utf32,
}

pub(super) struct Definition {
    pub name: &'static str,
    pub description: &'static str,
    pub default_collation: u16,
    pub max_bytes: u32,
    pub coding: Coding,
}

macro_rules! sets {
    ($($constant:ident $name:literal $description:literal $collation:literal $bytes:literal $coding:expr;)*) => {
        pub(super) static ALL: [Definition; [$($name),*].len()] = [$(Definition {
            name: $name,
            description: $description,
            default_collation: $collation,
            max_bytes: $bytes,
            coding: $coding,
        }),*];

        /// Their places in the list.
        #[repr(u8)]
        #[expect(clippy::upper_case_acronyms, reason = "named as the constants are")]
        enum Place {
            $($constant),*
        }

        impl Charset {
            $(pub const $constant: Charset = Charset(Place::$constant as u8);)*
        }
    };
}

sets! {
    ARMSCII8 "armscii8" "ARMSCII-8 Armenian" 32 1 Coding::Single(&single::ARMSCII8);
    ASCII "ascii" "US ASCII" 11 1 Coding::Ascii;
    BIG5 "big5" "Big5 Traditional Chinese" 1 2 Coding::Double(&double::BIG5);
    BINARY "binary" "Binary pseudo charset" 63 1 Coding::Bytes;
    CP1250 "cp1250" "Windows Central European" 26 1 Coding::Single(&single::CP1250);
    CP1251 "cp1251" "Windows Cyrillic" 51 1 Coding::Single(&single::CP1251);
    CP1256 "cp1256" "Windows Arabic" 57 1 Coding::Single(&single::CP1256);
    CP1257 "cp1257" "Windows Baltic" 59 1 Coding::Single(&single::CP1257);
    CP850 "cp850" "DOS West European" 4 1 Coding::Single(&single::CP850);
    CP852 "cp852" "DOS Central European" 40 1 Coding::Single(&single::CP852);
    CP866 "cp866" "DOS Russian" 36 1 Coding::Single(&single::CP866);
    CP932 "cp932" "SJIS for Windows Japanese" 95 2 Coding::Double(&double::CP932);
    DEC8 "dec8" "DEC West European" 3 1 Coding::Single(&single::DEC8);
    EUCJPMS "eucjpms" "UJIS for Windows Japanese" 97 3 Coding::Euc(&euc::EUCJPMS);
    EUCKR "euckr" "EUC-KR Korean" 19 2 Coding::Double(&double::EUCKR);
    GB2312 "gb2312" "GB2312 Simplified Chinese" 24 2 Coding::Double(&double::GB2312);
    GBK "gbk" "GBK Simplified Chinese" 28 2 Coding::Double(&double::GBK);
    GEOSTD8 "geostd8" "GEOSTD8 Georgian" 92 1 Coding::Single(&single::GEOSTD8);
    GREEK "greek" "ISO 8859-7 Greek" 25 1 Coding::Single(&single::GREEK);
    HEBREW "hebrew" "ISO 8859-8 Hebrew" 16 1 Coding::Single(&single::HEBREW);
    HP8 "hp8" "HP West European" 6 1 Coding::Single(&single::HP8);
    KEYBCS2 "keybcs2" "DOS Kamenicky Czech-Slovak" 37 1 Coding::Single(&single::KEYBCS2);
    KOI8R "koi8r" "KOI8-R Relcom Russian" 7 1 Coding::Single(&single::KOI8R);
    KOI8U "koi8u" "KOI8-U Ukrainian" 22 1 Coding::Single(&single::KOI8U);
    LATIN1 "latin1" "cp1252 West European" 8 1 Coding::Single(&single::LATIN1);
    LATIN2 "latin2" "ISO 8859-2 Central European" 9 1 Coding::Single(&single::LATIN2);
    LATIN5 "latin5" "ISO 8859-9 Turkish" 30 1 Coding::Single(&single::LATIN5);
    LATIN7 "latin7" "ISO 8859-13 Baltic" 41 1 Coding::Single(&single::LATIN7);
    MACCE "macce" "Mac Central European" 38 1 Coding::Single(&single::MACCE);
    MACROMAN "macroman" "Mac West European" 39 1 Coding::Single(&single::MACROMAN);
    SJIS "sjis" "Shift-JIS Japanese" 13 2 Coding::Double(&double::SJIS);
    UCS2 "ucs2" "UCS-2 Unicode" 35 2 Coding::Ucs2;
    UJIS "ujis" "EUC-JP Japanese" 12 3 Coding::Euc(&euc::UJIS);
    UTF16 "utf16" "UTF-16 Unicode" 54 4 Coding::Utf16 { little: false };
    UTF16LE "utf16le" "UTF-16LE Unicode" 56 4 Coding::Utf16 { little: true };
    UTF32 "utf32" "UTF-32 Unicode" 60 4 Coding::Utf32;
    UTF8MB3 "utf8mb3" "UTF-8 Unicode" 33 3 Coding::Utf8Basic;
    UTF8MB4 "utf8mb4" "UTF-8 Unicode" 255 4 Coding::Utf8;
}
