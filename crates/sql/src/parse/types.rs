//! Column types and the types of CAST.
//!
//! They become sqlparser's [`DataType`], with its UNSIGNED variants; ZEROFILL implies UNSIGNED and is otherwise ignored, as MySQL 8
//! advises. A character set or BINARY behind a type becomes column options. Types that Rauk has not (ENUM, SET, BIT, YEAR, spatial ones)
//! are parsed, so that the error can name them.

use super::cursor::{Parser, Result};
use super::lexer::Kind;
use sqlparser::ast::*;

/// A column type and the options that were written as part of it.
pub(super) struct ColumnType {
    pub data_type: DataType,
    pub options: Vec<ColumnOption>,
}

impl Parser<'_> {
    fn length(&mut self) -> Result<Option<u64>> {
        if self.kind() == Kind::LParen { self.parenthesized(Self::integer).map(Some) } else { Ok(None) }
    }

    fn character_length(&mut self) -> Result<Option<CharacterLength>> {
        Ok(self.length()?.map(|length| CharacterLength::IntegerLength { length, unit: None }))
    }

    fn digits(&mut self) -> Result<ExactNumberInfo> {
        if self.kind() != Kind::LParen {
            return Ok(ExactNumberInfo::None);
        }
        self.parenthesized(|p| {
            let precision = p.integer()?;
            if p.accept(Kind::Comma) {
                Ok(ExactNumberInfo::PrecisionAndScale(precision, p.integer()? as i64))
            } else {
                Ok(ExactNumberInfo::Precision(precision))
            }
        })
    }

    /// SIGNED, UNSIGNED and ZEROFILL in any order.
    fn unsigned(&mut self) -> bool {
        let mut unsigned = false;
        while let Some(word) = self.accept_any_kw(&["SIGNED", "UNSIGNED", "ZEROFILL"]) {
            unsigned |= word != "SIGNED";
        }
        unsigned
    }

    /// CHARACTER SET x, CHARSET x, COLLATE x, ASCII, UNICODE, BINARY behind a character type.
    fn charset_options(&mut self) -> Result<Vec<ColumnOption>> {
        let mut options = Vec::new();
        let name = |s: String| ObjectName::from(vec![Ident::new(s)]);
        loop {
            if self.accept_kws(&["CHARACTER", "SET"]) || self.accept_kw("CHARSET") || self.accept_kws(&["CHAR", "SET"])
            {
                options.push(ColumnOption::CharacterSet(name(self.charset_name()?)));
            } else if self.accept_kw("ASCII") {
                options.push(ColumnOption::CharacterSet(name("latin1".into())));
            } else if self.accept_kw("UNICODE") {
                options.push(ColumnOption::CharacterSet(name("ucs2".into())));
            } else if self.accept_kw("BINARY") {
                options.push(ColumnOption::Collation(name("utf8mb4_bin".into())));
            } else {
                return Ok(options);
            }
        }
    }

    pub fn column_type(&mut self) -> Result<ColumnType> {
        let token = self.peek();
        if token.kind != Kind::Word {
            return self.fail();
        }
        let word = self.text(token).to_ascii_uppercase();
        self.advance();
        let mut options = Vec::new();
        let data_type = match word.as_str() {
            "TINYINT" | "INT1" => {
                let length = self.length()?;
                if self.unsigned() { DataType::TinyIntUnsigned(length) } else { DataType::TinyInt(length) }
            }
            "SMALLINT" | "INT2" => {
                let length = self.length()?;
                if self.unsigned() { DataType::SmallIntUnsigned(length) } else { DataType::SmallInt(length) }
            }
            "MEDIUMINT" | "INT3" | "MIDDLEINT" => {
                let length = self.length()?;
                if self.unsigned() { DataType::MediumIntUnsigned(length) } else { DataType::MediumInt(length) }
            }
            "INT" | "INTEGER" | "INT4" => {
                let length = self.length()?;
                if self.unsigned() { DataType::IntUnsigned(length) } else { DataType::Int(length) }
            }
            "BIGINT" | "INT8" => {
                let length = self.length()?;
                if self.unsigned() { DataType::BigIntUnsigned(length) } else { DataType::BigInt(length) }
            }
            "SERIAL" => {
                options.extend([
                    ColumnOption::NotNull,
                    ColumnOption::DialectSpecific(vec![sqlparser::tokenizer::Token::make_keyword("AUTO_INCREMENT")]),
                    ColumnOption::Unique(super::table::unique_option()),
                ]);
                DataType::BigIntUnsigned(None)
            }
            "BOOL" | "BOOLEAN" => DataType::Boolean,
            "DECIMAL" | "NUMERIC" | "DEC" | "FIXED" => {
                let digits = self.digits()?;
                if self.unsigned() { DataType::DecimalUnsigned(digits) } else { DataType::Decimal(digits) }
            }
            "FLOAT" | "FLOAT4" => {
                let digits = self.digits()?;
                if self.unsigned() { DataType::FloatUnsigned(digits) } else { DataType::Float(digits) }
            }
            "DOUBLE" | "REAL" | "FLOAT8" => {
                self.accept_kw("PRECISION");
                let digits = self.digits()?;
                if self.unsigned() { DataType::DoubleUnsigned(digits) } else { DataType::Double(digits) }
            }
            "CHAR" | "CHARACTER" | "NCHAR" => {
                let varying = self.accept_kw("VARYING");
                let length = self.character_length()?;
                options = self.charset_options()?;
                if varying { DataType::Varchar(length) } else { DataType::Char(length) }
            }
            "VARCHAR" | "VARCHARACTER" | "NVARCHAR" => {
                let length = self.character_length()?;
                options = self.charset_options()?;
                DataType::Varchar(length)
            }
            "NATIONAL" => {
                let varying = match self.accept_any_kw(&["CHAR", "CHARACTER", "VARCHAR"]) {
                    Some("VARCHAR") => true,
                    Some(_) => self.accept_kw("VARYING"),
                    None => return self.fail(),
                };
                let length = self.character_length()?;
                options = self.charset_options()?;
                if varying { DataType::Varchar(length) } else { DataType::Char(length) }
            }
            "TINYTEXT" | "TEXT" | "MEDIUMTEXT" | "LONGTEXT" | "LONG" => {
                let long_binary = word == "LONG" && self.accept_kw("VARBINARY");
                if word == "LONG" && !long_binary {
                    self.accept_kw("VARCHAR");
                }
                // TEXT(n) picks the smallest kind that holds n characters.
                let length = if word == "TEXT" { self.length()? } else { None };
                options = self.charset_options()?;
                match (word.as_str(), length) {
                    _ if long_binary => DataType::MediumBlob,
                    ("TINYTEXT", _) => DataType::TinyText,
                    ("TEXT", Some(n)) if n * 4 <= 255 => DataType::TinyText,
                    ("TEXT", Some(n)) if n.saturating_mul(4) > 16_777_215 => DataType::LongText,
                    ("TEXT", Some(n)) if n * 4 > 65_535 => DataType::MediumText,
                    ("TEXT", _) => DataType::Text,
                    ("LONGTEXT", _) => DataType::LongText,
                    _ => DataType::MediumText,
                }
            }
            "BINARY" => DataType::Binary(self.length()?),
            "VARBINARY" => DataType::Varbinary(self.length()?.map(|length| BinaryLength::IntegerLength { length })),
            "TINYBLOB" => DataType::TinyBlob,
            "BLOB" => match self.length()? {
                Some(n) if n <= 255 => DataType::TinyBlob,
                Some(n) if n > 16_777_215 => DataType::LongBlob,
                Some(n) if n > 65_535 => DataType::MediumBlob,
                _ => DataType::Blob(None),
            },
            "MEDIUMBLOB" => DataType::MediumBlob,
            "LONGBLOB" => DataType::LongBlob,
            "DATE" => DataType::Date,
            "TIME" => DataType::Time(self.length()?, TimezoneInfo::None),
            "DATETIME" => DataType::Datetime(self.length()?),
            "TIMESTAMP" => DataType::Timestamp(self.length()?, TimezoneInfo::None),
            "JSON" => DataType::JSON,
            "BIT" => DataType::Bit(self.length()?),
            "ENUM" => {
                let members = self.parenthesized(|p| p.comma_separated(Self::string))?;
                options = self.charset_options()?;
                DataType::Enum(members.into_iter().map(EnumMember::Name).collect(), None)
            }
            "SET" => {
                let members = self.parenthesized(|p| p.comma_separated(Self::string))?;
                options = self.charset_options()?;
                DataType::Set(members)
            }
            "YEAR" | "GEOMETRY" | "POINT" | "LINESTRING" | "POLYGON" | "MULTIPOINT" | "MULTILINESTRING"
            | "MULTIPOLYGON" | "GEOMETRYCOLLECTION" | "VECTOR" | "UUID" | "INET6" | "INET4" => {
                let arguments = self.length()?.map(|n| n.to_string()).into_iter().collect();
                DataType::Custom(ObjectName::from(vec![Ident::new(word)]), arguments)
            }
            _ => return self.fail_at(token),
        };
        Ok(ColumnType { data_type, options })
    }

    /// The types that CAST and CONVERT know. A character set makes no difference but for `binary`.
    pub fn cast_type(&mut self) -> Result<DataType> {
        let token = self.peek();
        if let Some(word) = self.accept_any_kw(&["SIGNED", "UNSIGNED"]) {
            let _ = self.accept_any_kw(&["INTEGER", "INT"]);
            return Ok(if word == "SIGNED" { DataType::Signed } else { DataType::Unsigned });
        }
        let result = self.column_type()?;
        let binary = result.options.iter().any(|o| match o {
            ColumnOption::CharacterSet(name) => name.to_string().eq_ignore_ascii_case("binary"),
            _ => false,
        });
        match result.data_type {
            DataType::Char(length) if binary => Ok(DataType::Binary(length.map(|l| match l {
                CharacterLength::IntegerLength { length, .. } => length,
                CharacterLength::Max => u64::from(u32::MAX),
            }))),
            data_type @ (DataType::Char(_)
            | DataType::Binary(_)
            | DataType::Date
            | DataType::Datetime(_)
            | DataType::Time(..)
            | DataType::Decimal(_)
            | DataType::Double(_)
            | DataType::Float(_)
            | DataType::JSON) => Ok(data_type),
            DataType::Custom(name, arguments) if name.to_string() == "YEAR" => Ok(DataType::Custom(name, arguments)),
            _ => self.fail_at(token),
        }
    }
}
