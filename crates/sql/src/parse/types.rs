//! Column types and the types of CAST.
//!
//! Synonyms are merged: INTEGER is INT, NUMERIC is DECIMAL, TEXT(n) is the smallest TEXT that holds n characters. ZEROFILL implies
//! UNSIGNED. It, a character set or BINARY behind a type become column options, and SERIAL brings its own.
//! Types that Rauk has not (`VECTOR`, `UUID`) are parsed, so that the error can name them.

use super::ast::{CastType, ColumnOption, ColumnType, Digits, IntegerSize};
use super::cursor::{Parser, Result};
use super::lexer::Kind;
use rauk_types::GeometryKind;

/// The character set of NCHAR, as MySQL names it.
const NATIONAL: &str = "utf8mb3";

/// The kind that a word in upper case names; `GEOMETRYCOLLECTION` has two names.
fn geometry_kind(word: &str) -> Option<GeometryKind> {
    let named = |kind: &GeometryKind| kind.text_name() == word || kind.type_name().eq_ignore_ascii_case(word);
    GeometryKind::ALL.into_iter().find(named)
}

impl Parser<'_> {
    fn length(&mut self) -> Result<Option<u64>> {
        if self.kind() == Kind::LParen { self.parenthesized(Self::integer).map(Some) } else { Ok(None) }
    }

    fn digits(&mut self) -> Result<Digits> {
        if self.kind() != Kind::LParen {
            return Ok(Digits::default());
        }
        self.parenthesized(|p| {
            let precision = Some(p.integer()?);
            let scale = if p.accept(Kind::Comma) { Some(p.integer()?) } else { None };
            Ok(Digits { precision, scale })
        })
    }

    /// SIGNED, UNSIGNED and ZEROFILL in any order.
    fn unsigned(&mut self, options: &mut Vec<ColumnOption>) -> bool {
        let mut unsigned = false;
        while let Some(word) = self.accept_any_kw(&["SIGNED", "UNSIGNED", "ZEROFILL"]) {
            unsigned |= word != "SIGNED";
            if word == "ZEROFILL" && !options.contains(&ColumnOption::Zerofill) {
                options.push(ColumnOption::Zerofill);
            }
        }
        unsigned
    }

    /// CHARACTER SET x, CHARSET x, ASCII, UNICODE, BYTE, BINARY behind a character type.
    fn charset_options(&mut self) -> Result<Vec<ColumnOption>> {
        let mut options = Vec::new();
        loop {
            if self.accept_kws(&["CHARACTER", "SET"]) || self.accept_kw("CHARSET") || self.accept_kws(&["CHAR", "SET"])
            {
                options.push(ColumnOption::Charset(self.charset_name()?));
            } else if self.accept_kw("ASCII") {
                options.push(ColumnOption::Charset("latin1".into()));
            } else if self.accept_kw("UNICODE") {
                options.push(ColumnOption::Charset("ucs2".into()));
            } else if self.accept_kw("BYTE") {
                options.push(ColumnOption::Charset("binary".into()));
            } else if self.accept_kw("BINARY") {
                options.push(ColumnOption::BinaryCollation);
            } else {
                return Ok(options);
            }
        }
    }

    fn integer_type(&mut self, size: IntegerSize, options: &mut Vec<ColumnOption>) -> Result<ColumnType> {
        Ok(ColumnType::Integer { size, width: self.length()?, unsigned: self.unsigned(options) })
    }

    /// A column type and the options that were written as part of it.
    pub fn column_type(&mut self) -> Result<(ColumnType, Vec<ColumnOption>)> {
        let token = self.peek();
        if token.kind != Kind::Word {
            return self.fail();
        }
        let word = self.text(token).to_ascii_uppercase();
        self.advance();
        let mut options = Vec::new();
        let column_type = match word.as_str() {
            "TINYINT" | "INT1" => self.integer_type(IntegerSize::Tiny, &mut options)?,
            "SMALLINT" | "INT2" => self.integer_type(IntegerSize::Small, &mut options)?,
            "MEDIUMINT" | "INT3" | "MIDDLEINT" => self.integer_type(IntegerSize::Medium, &mut options)?,
            "INT" | "INTEGER" | "INT4" => self.integer_type(IntegerSize::Int, &mut options)?,
            "BIGINT" | "INT8" => self.integer_type(IntegerSize::Big, &mut options)?,
            "SERIAL" => {
                options.extend([ColumnOption::NotNull, ColumnOption::AutoIncrement, ColumnOption::Unique]);
                ColumnType::Integer { size: IntegerSize::Big, width: None, unsigned: true }
            }
            "BOOL" | "BOOLEAN" => ColumnType::Boolean,
            "DECIMAL" | "NUMERIC" | "DEC" | "FIXED" => {
                ColumnType::Decimal { digits: self.digits()?, unsigned: self.unsigned(&mut options) }
            }
            "FLOAT" | "FLOAT4" => ColumnType::Float { digits: self.digits()?, unsigned: self.unsigned(&mut options) },
            "DOUBLE" | "REAL" | "FLOAT8" => {
                self.accept_kw("PRECISION");
                ColumnType::Double { digits: self.digits()?, unsigned: self.unsigned(&mut options) }
            }
            "CHAR" | "CHARACTER" | "NCHAR" | "VARCHAR" | "VARCHARACTER" | "NVARCHAR" | "NATIONAL" => {
                let varying = match word.as_str() {
                    "VARCHAR" | "VARCHARACTER" | "NVARCHAR" => true,
                    "NATIONAL" => match self.accept_any_kw(&["CHAR", "CHARACTER", "VARCHAR"]) {
                        Some("VARCHAR") => true,
                        Some(_) => self.accept_kw("VARYING"),
                        None => return self.fail(),
                    },
                    "NCHAR" => self.accept_any_kw(&["VARCHAR", "VARYING"]).is_some(),
                    _ => self.accept_kw("VARYING"),
                };
                let length = self.length()?;
                options = self.charset_options()?;
                if matches!(word.as_str(), "NCHAR" | "NVARCHAR" | "NATIONAL") {
                    options.insert(0, ColumnOption::Charset(NATIONAL.into()));
                }
                if varying { ColumnType::VarChar(length) } else { ColumnType::Char(length) }
            }
            "TINYTEXT" | "TEXT" | "MEDIUMTEXT" | "LONGTEXT" | "LONG" => {
                let long_binary = word == "LONG" && self.accept_kw("VARBINARY");
                if word == "LONG" && !long_binary {
                    let varying = self.accept_kws(&["CHAR", "VARYING"]) || self.accept_kws(&["CHARACTER", "VARYING"]);
                    if !varying {
                        self.accept_kw("VARCHAR");
                    }
                }
                let length = if word == "TEXT" { self.length()? } else { None };
                options = self.charset_options()?;
                match (word.as_str(), length) {
                    _ if long_binary => ColumnType::MediumBlob,
                    ("TINYTEXT", _) => ColumnType::TinyText,
                    ("TEXT", Some(characters)) => match characters.saturating_mul(4) {
                        0..=255 => ColumnType::TinyText,
                        256..=65_535 => ColumnType::Text,
                        65_536..=16_777_215 => ColumnType::MediumText,
                        _ => ColumnType::LongText,
                    },
                    ("TEXT", None) => ColumnType::Text,
                    ("LONGTEXT", _) => ColumnType::LongText,
                    _ => ColumnType::MediumText,
                }
            }
            "BINARY" => ColumnType::Binary(self.length()?),
            "VARBINARY" => ColumnType::VarBinary(self.length()?),
            "TINYBLOB" => ColumnType::TinyBlob,
            "BLOB" => match self.length()? {
                Some(n) if n <= 255 => ColumnType::TinyBlob,
                Some(n) if n > 16_777_215 => ColumnType::LongBlob,
                Some(n) if n > 65_535 => ColumnType::MediumBlob,
                _ => ColumnType::Blob,
            },
            "MEDIUMBLOB" => ColumnType::MediumBlob,
            "LONGBLOB" => ColumnType::LongBlob,
            "DATE" => ColumnType::Date,
            "TIME" => ColumnType::Time(self.length()?),
            "DATETIME" => ColumnType::DateTime(self.length()?),
            "TIMESTAMP" => ColumnType::Timestamp(self.length()?),
            "YEAR" => ColumnType::Year(self.length()?),
            "JSON" => ColumnType::Json,
            "BIT" => ColumnType::Bit(self.length()?),
            "ENUM" | "SET" => {
                let members = self.parenthesized(|p| p.comma_separated(Self::string))?;
                options = self.charset_options()?;
                if word == "ENUM" { ColumnType::Enum(members) } else { ColumnType::Set(members) }
            }
            "VECTOR" | "UUID" | "INET6" | "INET4" => {
                self.length()?;
                ColumnType::Other(word)
            }
            word => match geometry_kind(word) {
                Some(kind) => {
                    // MariaDB's word for SRID.
                    if self.accept_kw("REF_SYSTEM_ID") {
                        self.expect(Kind::Eq)?;
                        options.push(ColumnOption::Srid(self.operand()?));
                    }
                    ColumnType::Geometry(kind)
                }
                None => return self.fail_at(token),
            },
        };
        Ok((column_type, options))
    }

    /// The types that CAST and CONVERT know. The character set `binary` makes CHAR a BINARY.
    pub fn cast_type(&mut self) -> Result<CastType> {
        let token = self.peek();
        if let Some(word) = self.accept_any_kw(&["SIGNED", "UNSIGNED"]) {
            let _ = self.accept_any_kw(&["INTEGER", "INT"]);
            return Ok(if word == "SIGNED" { CastType::Signed } else { CastType::Unsigned });
        }
        // As a cast NCHAR is a CHAR of the connection's character set.
        let national = self.is_kw("NCHAR") || self.is_kw("NATIONAL");
        let (column_type, options) = self.column_type()?;
        let charset = options.into_iter().find_map(|option| match option {
            ColumnOption::Charset(name) if !national => Some(name),
            _ => None,
        });
        Ok(match column_type {
            ColumnType::Char(length) if charset.as_ref().is_some_and(|c| c.eq_ignore_ascii_case("binary")) => {
                CastType::Binary(length)
            }
            ColumnType::Char(length) => CastType::Char { length, charset },
            ColumnType::Binary(length) => CastType::Binary(length),
            ColumnType::Date => CastType::Date,
            ColumnType::DateTime(digits) => CastType::DateTime(digits),
            ColumnType::Time(digits) => CastType::Time(digits),
            ColumnType::Decimal { digits: Digits { precision, scale }, unsigned: false } => {
                CastType::Decimal { precision, scale }
            }
            ColumnType::Float { digits: Digits { precision, scale: None }, unsigned: false } => {
                CastType::Float(precision)
            }
            ColumnType::Double { digits: Digits { precision: None, .. }, unsigned: false } => CastType::Double,
            ColumnType::Json => CastType::Json,
            ColumnType::Geometry(kind) if kind != GeometryKind::Geometry => CastType::Geometry(kind),
            ColumnType::Year(None) => CastType::Year,
            _ => return self.fail_at(token),
        })
    }
}
